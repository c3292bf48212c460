//! `[monitoring]`: who is told, and what of.
//!
//! Addresses of receivers are secrets as often as not: they may be named by a variable or a file,
//! and their Debug shows nothing of them.

use std::fmt;
use std::path::PathBuf;

use chrono::TimeDelta;
use reqwest::Url;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use crate::exit::Exit;
use crate::model::time::parse_span;
use crate::monitor::conditions::Kind;
use crate::psp::settings::is_loopback;
use crate::secret::KeySource;

/// How long one receiver may take, unless the configuration says otherwise.
const TIMEOUT: TimeDelta = TimeDelta::seconds(5);

/// The longest that may be configured: nobody waits longer for a run that is over.
const TIMEOUT_MAX: TimeDelta = TimeDelta::seconds(30);

/// What every shipped schedule has.
const INTERVAL: TimeDelta = TimeDelta::minutes(10);

/// What the shipped schedules call their daily run.
const DAILY: &str = "daily";

/// Letters of a scope: it stands in addresses, file names and labels.
const SCOPE_MAX: usize = 64;

/// `[monitoring]`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MonitoringSettings {
    /// Names the schedule that runs belong to; two schedules never share a check.
    #[serde(default = "default_scope")]
    pub scope: String,
    /// How long each receiver may take.
    #[serde(default = "default_timeout", deserialize_with = "span")]
    #[schemars(with = "String")]
    pub timeout: TimeDelta,
    /// How often the schedule runs: after two of these without a success it is a condition.
    #[serde(default = "default_interval", deserialize_with = "span")]
    #[schemars(with = "String")]
    pub interval: TimeDelta,
    /// The same of the schedule `daily`, as the shipped ones call their daily run.
    #[serde(default = "default_daily_interval", deserialize_with = "span")]
    #[schemars(with = "String")]
    pub daily_interval: TimeDelta,
    /// A row that waits longer than this is a condition.
    #[serde(default = "default_oldest_stuck", deserialize_with = "span")]
    #[schemars(with = "String")]
    pub oldest_stuck: TimeDelta,
    /// So many failed runs in a row are a condition.
    #[serde(default = "default_repeated")]
    pub repeated: u32,
    /// A proxy to go through. Proxy variables of the environment are ignored.
    #[serde(default)]
    pub proxy: Option<String>,
    /// The dead-man's switch.
    #[serde(default)]
    pub healthcheck: Option<HealthcheckSettings>,
    /// Metrics.
    #[serde(default)]
    pub prometheus: Option<PrometheusSettings>,
    /// `[[monitoring.alert]]`.
    #[serde(default)]
    pub alert: Vec<AlertSettings>,
}

impl Default for MonitoringSettings {
    fn default() -> Self {
        Self {
            scope: default_scope(),
            timeout: TIMEOUT,
            interval: INTERVAL,
            daily_interval: default_daily_interval(),
            oldest_stuck: default_oldest_stuck(),
            repeated: default_repeated(),
            proxy: None,
            healthcheck: None,
            prometheus: None,
            alert: Vec::new(),
        }
    }
}

fn default_scope() -> String {
    "default".to_owned()
}

fn default_timeout() -> TimeDelta {
    TIMEOUT
}

fn default_interval() -> TimeDelta {
    INTERVAL
}

fn default_daily_interval() -> TimeDelta {
    TimeDelta::days(1)
}

fn default_oldest_stuck() -> TimeDelta {
    TimeDelta::hours(24)
}

fn default_repeated() -> u32 {
    2
}

fn span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TimeDelta, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_span(&text).filter(|span| *span > TimeDelta::zero()).ok_or_else(|| {
        serde::de::Error::custom(format!("`{text}` is not a span such as 5s, 10min or 24h"))
    })
}

fn optional_span<'de, D: Deserializer<'de>>(from: D) -> Result<Option<TimeDelta>, D::Error> {
    span(from).map(Some)
}

/// An address that stands in the file, and is shown nowhere.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Address(String);

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[address]")
    }
}

/// Where an address is to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// It stands in the file.
    Written(Address),
    /// It is named like a secret.
    Named(KeySource),
}

impl Place {
    fn of(url: Option<&Address>, env: Option<&String>, file: Option<&PathBuf>) -> Option<Self> {
        match (url, env, file) {
            (Some(url), None, None) => Some(Self::Written(url.clone())),
            (None, Some(name), None) => Some(Self::Named(KeySource::Env(name.clone()))),
            (None, None, Some(path)) => Some(Self::Named(KeySource::File(path.clone()))),
            _none_or_several => None,
        }
    }
}

/// `healthcheck = { … }`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HealthcheckSettings {
    /// The check's ping address; `{scope}` in it is replaced.
    #[serde(default)]
    pub url: Option<Address>,
    /// The variable that holds it.
    #[serde(default)]
    pub url_env: Option<String>,
    /// The file that holds it.
    #[serde(default)]
    pub url_file: Option<PathBuf>,
    /// How long a ping may take; default: `timeout` of `[monitoring]`.
    #[serde(default, deserialize_with = "optional_span")]
    #[schemars(with = "Option<String>")]
    pub timeout: Option<TimeDelta>,
}

impl HealthcheckSettings {
    /// Where its address is.
    pub fn place(&self) -> Option<Place> {
        Place::of(self.url.as_ref(), self.url_env.as_ref(), self.url_file.as_ref())
    }
}

/// `prometheus = { … }`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrometheusSettings {
    /// A `.prom` file in the node exporter's folder; `{scope}` in it is replaced.
    #[serde(default)]
    pub textfile: Option<PathBuf>,
    /// A Pushgateway's address.
    #[serde(default)]
    pub push: Option<Address>,
}

/// What a receiver speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AlertKind {
    /// JSON by POST, signed.
    Webhook,
    /// Slack's incoming webhooks, and what is compatible.
    Slack,
    /// PagerDuty Events v2.
    Pagerduty,
    /// A command that takes a mail on its standard input.
    Sendmail,
}

/// One `[[monitoring.alert]]`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AlertSettings {
    /// Names the receiver in what is remembered of it.
    pub name: String,
    /// What it speaks.
    pub kind: AlertKind,
    /// Only conditions of this class and stronger.
    #[serde(default)]
    pub min_class: Option<String>,
    /// Only these conditions.
    #[serde(default)]
    pub conditions: Option<Vec<String>>,
    /// Its address.
    #[serde(default)]
    pub url: Option<Address>,
    /// The variable that holds the address.
    #[serde(default)]
    pub url_env: Option<String>,
    /// The file that holds the address.
    #[serde(default)]
    pub url_file: Option<PathBuf>,
    /// The variable that holds the signing key (webhook) or the routing key (pagerduty).
    #[serde(default)]
    pub key_env: Option<String>,
    /// The file that holds it.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// sendmail's program and arguments, no shell.
    #[serde(default)]
    pub command: Option<Vec<String>>,
    /// Who gets the mail.
    #[serde(default)]
    pub to: Vec<String>,
    /// Who it is from.
    #[serde(default)]
    pub from: Option<String>,
}

/// PagerDuty's own address.
const PAGERDUTY: &str = "https://events.pagerduty.com/v2/enqueue";

impl AlertSettings {
    /// Where its address is; PagerDuty has one of its own.
    pub fn place(&self) -> Option<Place> {
        let none = self.url.is_none() && self.url_env.is_none() && self.url_file.is_none();
        if none && self.kind == AlertKind::Pagerduty {
            return Some(Place::Written(Address(PAGERDUTY.to_owned())));
        }
        Place::of(self.url.as_ref(), self.url_env.as_ref(), self.url_file.as_ref())
    }

    /// Where its key is.
    pub fn key(&self) -> Option<KeySource> {
        match (&self.key_env, &self.key_file) {
            (Some(name), None) => Some(KeySource::Env(name.clone())),
            (None, Some(path)) => Some(KeySource::File(path.clone())),
            _none_or_both => None,
        }
    }

    /// Whether the receiver wants to hear of a condition.
    pub fn wants(&self, kind: Kind, class: Exit) -> bool {
        let named = self.conditions.as_ref();
        let named = named.is_none_or(|words| words.iter().any(|word| word == kind.as_str()));
        let strong = self.min_class.as_deref().and_then(class_of).unwrap_or(Exit::Attention);
        named && class.or_stronger(strong) == class
    }

    fn misfits(&self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        let mut wrong = |field, text: &str| found.push((field, text.to_owned()));
        let is_mail = self.kind == AlertKind::Sendmail;
        if !is_scope(&self.name) {
            wrong("name", "expected 1 to 64 letters, digits, `_`, `-` or `.`");
        }
        if !is_mail && self.place().is_none() {
            wrong("url", "expected exactly one of url, url_env, url_file");
        }
        if !is_mail && let Some(text) = self.url.as_ref().and_then(misfit_of) {
            wrong("url", text);
        }
        let wants_key = matches!(self.kind, AlertKind::Webhook | AlertKind::Pagerduty);
        if wants_key && self.key().is_none() {
            wrong("key_env", "expected exactly one of key_env, key_file");
        }
        if !wants_key && (self.key_env.is_some() || self.key_file.is_some()) {
            wrong("key_env", "only webhook and pagerduty have a key");
        }
        let has_command = self.command.as_ref().is_some_and(|words| !words.is_empty());
        if is_mail != (has_command && !self.to.is_empty()) {
            wrong("command", "`command` and `to` are for sendmail, which needs both");
        }
        let addresses = self.to.iter().chain(&self.from);
        if addresses.into_iter().any(|mail| mail.chars().any(char::is_control)) {
            wrong("to", "an address with a line break");
        }
        if self.min_class.as_deref().is_some_and(|word| class_of(word).is_none()) {
            let text = "expected attention, partial, untied or another class of exit codes";
            wrong("min_class", text);
        }
        for word in self.conditions.iter().flatten() {
            if Kind::parse(word).is_none() {
                let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
                let text = format!("`{word}` is no condition; expected {}", known.join(", "));
                wrong("conditions", &text);
            }
        }
        found
    }
}

/// The exit of a class's word.
fn class_of(word: &str) -> Option<Exit> {
    Exit::BY_PRECEDENCE.into_iter().find(|exit| exit.class() == word)
}

/// Whether a schedule, or whoever alerts go to, can be called so.
pub fn is_scope(text: &str) -> bool {
    let is_fine = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    !text.is_empty() && text.len() <= SCOPE_MAX && text.bytes().all(is_fine)
}

/// An address, read: https, or plain http on this machine.
///
/// # Errors
/// With what was expected; the address itself is never quoted.
pub fn address(text: &str) -> Result<Url, &'static str> {
    const EXPECTED: &str = "expected an https address (plain http only on loopback)";
    let url = Url::parse(text.trim()).map_err(|_bad| EXPECTED)?;
    let is_safe = url.scheme() == "https" || (url.scheme() == "http" && is_loopback(&url));
    if is_safe { Ok(url) } else { Err(EXPECTED) }
}

/// The address that stands in the file, with the scope in its place.
pub fn written(written: &Address, scope: &str) -> String {
    written.0.replace("{scope}", scope)
}

fn misfit_of(url: &Address) -> Option<&'static str> {
    address(&written(url, "x")).err()
}

impl MonitoringSettings {
    /// Whether anybody is told anything.
    pub fn is_on(&self) -> bool {
        self.healthcheck.is_some() || self.prometheus.is_some() || !self.alert.is_empty()
    }

    /// Every setting that cannot be meant so: its path below `monitoring`, and the sentence.
    pub fn misfits(&self) -> Vec<(String, String)> {
        let mut found: Vec<(String, String)> = Vec::new();
        let mut wrong = |path: &str, text: &str| found.push((path.to_owned(), text.to_owned()));
        if !is_scope(&self.scope) {
            wrong("scope", "`scope`: expected 1 to 64 letters, digits, `_`, `-` or `.`");
        }
        let own = self.healthcheck.as_ref().and_then(|check| check.timeout);
        for (path, span) in [("timeout", Some(self.timeout)), ("healthcheck.timeout", own)] {
            if span.is_some_and(|span| span > TIMEOUT_MAX) {
                wrong(path, "`timeout`: expected at most 30s: a run is over, and nobody waits");
            }
        }
        if self.repeated == 0 {
            wrong("repeated", "`repeated` is 0; expected at least 1");
        }
        if let Some(check) = &self.healthcheck {
            if check.place().is_none() {
                let text = "`healthcheck`: expected exactly one of url, url_env, url_file";
                wrong("healthcheck", text);
            } else if let Some(text) = check.url.as_ref().and_then(misfit_of) {
                wrong("healthcheck.url", &format!("`healthcheck.url`: {text}"));
            }
        }
        if let Some(text) =
            self.prometheus.as_ref().and_then(|to| to.push.as_ref()).and_then(misfit_of)
        {
            wrong("prometheus.push", &format!("`prometheus.push`: {text}"));
        }
        for (at, alert) in self.alert.iter().enumerate() {
            for (field, text) in alert.misfits() {
                let text = format!("[[monitoring.alert]] {}: `{field}`: {text}", alert.name);
                wrong(&format!("alert.{at}.{field}"), &text);
            }
            if self.alert.iter().take(at).any(|other| other.name == alert.name) {
                let text = format!("a second [[monitoring.alert]] is called `{}`", alert.name);
                wrong(&format!("alert.{at}.name"), &text);
            }
        }
        found
    }

    /// How often the schedule of this name runs.
    pub fn interval_of(&self, scope: &str) -> TimeDelta {
        if scope == DAILY { self.daily_interval } else { self.interval }
    }

    /// How long a ping may take.
    pub fn ping_timeout(&self) -> TimeDelta {
        self.healthcheck.as_ref().and_then(|check| check.timeout).unwrap_or(self.timeout)
    }
}
