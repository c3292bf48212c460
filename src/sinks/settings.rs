//! `[[sink]]` and `[delivery]`: who is told of decisions, and how.
//!
//! [`SinkSettings`] is what the configuration says, [`Sink`] is that, checked. No secret stands
//! here: an address with a password, and a key, are named by a variable, a file or a command.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use chrono::TimeDelta;
use reqwest::Url;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use crate::model::time::parse_span;
use crate::secret::{EnvLookup, KeySource, SecretError};
use crate::sinks::Down;

/// The kinds of events that there are.
pub const EVENT_KINDS: [&str; 4] =
    ["transaction.succeeded", "transaction.retryable", "transaction.failed", "transaction.review"];

/// How long a sink may take for one event, unless the configuration says otherwise.
const TIMEOUT: TimeDelta = TimeDelta::seconds(10);

/// The longest that may be configured: a lease of two minutes must outlast it.
const TIMEOUT_MAX: TimeDelta = TimeDelta::seconds(60);

/// How long the end of a run delivers, unless the configuration says otherwise.
const AFTER_RUN: TimeDelta = TimeDelta::seconds(10);

/// The longest that may be configured.
const AFTER_RUN_MAX: TimeDelta = TimeDelta::minutes(10);

/// beanstalkd's own limit of a tube's name.
const TUBE_MAX: usize = 200;

/// PostgreSQL cuts longer names.
const CHANNEL_MAX: usize = 63;

/// `[delivery]`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeliverySettings {
    /// How long `tieout run` delivers at its end, before it begins nothing more; `0s`: not at all,
    /// `tieout deliver` does it.
    #[serde(default = "default_after_run", deserialize_with = "span")]
    #[schemars(with = "String")]
    pub after_run: TimeDelta,
    /// How long, at most, a sink that took nothing is left alone at first, and at least a
    /// tenth of it; it doubles from there …
    #[serde(default = "default_backoff_first", deserialize_with = "span")]
    #[schemars(with = "String")]
    pub backoff_first: TimeDelta,
    /// … up to this.
    #[serde(default = "default_backoff_cap", deserialize_with = "span")]
    #[schemars(with = "String")]
    pub backoff_cap: TimeDelta,
}

impl Default for DeliverySettings {
    fn default() -> Self {
        Self {
            after_run: default_after_run(),
            backoff_first: default_backoff_first(),
            backoff_cap: default_backoff_cap(),
        }
    }
}

fn default_after_run() -> TimeDelta {
    AFTER_RUN
}

fn default_backoff_first() -> TimeDelta {
    TimeDelta::seconds(10)
}

fn default_backoff_cap() -> TimeDelta {
    TimeDelta::hours(1)
}

fn default_timeout() -> TimeDelta {
    TIMEOUT
}

fn default_max_attempts() -> u32 {
    10
}

fn default_concurrency() -> u32 {
    4
}

fn span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TimeDelta, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_span(&text).ok_or_else(|| {
        serde::de::Error::custom(format!(
            "invalid span `{text}`; expected a whole number and a unit, as 90s, 15min, 24h"
        ))
    })
}

impl DeliverySettings {
    /// Every setting that cannot be meant so: its name, and the sentence.
    pub fn misfits(&self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        if self.after_run > AFTER_RUN_MAX {
            found.push(("after_run", "`after_run`: expected at most 10min".to_owned()));
        }
        if self.backoff_first < TimeDelta::seconds(1) || self.backoff_cap < self.backoff_first {
            let text = "expected `backoff_first` of at least 1s, and `backoff_cap` not below it";
            found.push(("backoff_first", text.to_owned()));
        }
        found
    }
}

/// What a sink is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SinkKind {
    /// An HTTP POST an event, signed by the scheme of Standard Webhooks.
    Webhook,
    /// A queue of Sidekiq's in Redis.
    Sidekiq,
    /// A queue of Resque's in Redis.
    Resque,
    /// A tube of beanstalkd's.
    Beanstalkd,
    /// A program, called once an event, which stands on its standard input.
    Command,
    /// A file, one line an event.
    File,
    /// PostgreSQL's NOTIFY, on tieout's own database.
    Notify,
}

impl SinkKind {
    /// The word of the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Sidekiq => "sidekiq",
            Self::Resque => "resque",
            Self::Beanstalkd => "beanstalkd",
            Self::Command => "command",
            Self::File => "file",
            Self::Notify => "notify",
        }
    }
}

/// An address that stands in the file. Its path may be half a secret: its Debug shows nothing.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SinkAddress(String);

impl fmt::Debug for SinkAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// `[[sink]]`: where events are delivered.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SinkSettings {
    /// Its name in commands, metrics and messages.
    pub name: String,
    /// What it is.
    pub kind: SinkKind,
    /// Only events of these tables; default: all.
    #[serde(default)]
    pub tables: Vec<String>,
    /// Only these events: `transaction.succeeded`, `.retryable`, `.failed`, `.review`; default:
    /// all.
    #[serde(default)]
    pub events: Vec<String>,
    /// webhook, sidekiq, resque, beanstalkd: the address, without a password.
    pub url: Option<SinkAddress>,
    /// The variable (or systemd credential) that holds the address …
    pub url_env: Option<String>,
    /// … or the file that holds it …
    pub url_file: Option<PathBuf>,
    /// … or the command that prints it: program and arguments, no shell.
    pub url_command: Option<Vec<String>>,
    /// webhook: the signing key, `whsec_…`, by a variable …
    pub key_env: Option<String>,
    /// … or a file …
    pub key_file: Option<PathBuf>,
    /// … or a command.
    pub key_command: Option<Vec<String>>,
    /// webhook: while keys are changed, the old one, which signs too: by a variable …
    pub old_key_env: Option<String>,
    /// … or a file …
    pub old_key_file: Option<PathBuf>,
    /// … or a command.
    pub old_key_command: Option<Vec<String>>,
    /// webhook: how many events are on their way at a time.
    #[serde(default = "default_concurrency")]
    pub concurrency: u32,
    /// webhook: a proxy to go through. Proxy variables of the environment are ignored.
    pub proxy: Option<String>,
    /// webhook, and Redis by TLS: trust only the certificates in this PEM file.
    pub ca_file: Option<PathBuf>,
    /// sidekiq, resque: the queue.
    pub queue: Option<String>,
    /// sidekiq, resque: the worker's class; its one argument is the event.
    pub class: Option<String>,
    /// sidekiq, resque: what the keys in Redis begin with. Default: nothing for Sidekiq, `resque`
    /// for Resque.
    pub namespace: Option<String>,
    /// sidekiq: how often Sidekiq itself retries a job that fails; default: as Sidekiq has it.
    pub retry: Option<u32>,
    /// beanstalkd: the tube.
    pub tube: Option<String>,
    /// beanstalkd: the job's priority; 0 is the most urgent.
    #[serde(default)]
    pub priority: u32,
    /// beanstalkd: how long a worker may have a job before another gets it. Default: 2min.
    #[serde(default = "default_ttr", deserialize_with = "span")]
    #[schemars(with = "String")]
    pub ttr: TimeDelta,
    /// command: the program and its arguments, no shell.
    pub command: Option<Vec<String>>,
    /// file: the file.
    pub path: Option<PathBuf>,
    /// notify: the channel.
    pub channel: Option<String>,
    /// How long one event may take.
    #[serde(default = "default_timeout", deserialize_with = "span")]
    #[schemars(with = "String")]
    pub timeout: TimeDelta,
    /// After so many tries that were an event's own fault a person looks at it.
    #[serde(default = "default_max_attempts")]
    pub max_attempts: u32,
}

fn default_ttr() -> TimeDelta {
    TimeDelta::minutes(2)
}

/// A sink, checked.
#[derive(Debug, Clone)]
pub struct Sink {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: SinkKind,
    /// Only events of these tables; none: of all.
    pub tables: Vec<String>,
    /// Only these kinds; none: all.
    pub events: Vec<String>,
    /// How long one event may take.
    pub timeout: Duration,
    /// Tries that an event has.
    pub max_attempts: u32,
    /// How it is told.
    pub how: How,
}

impl Sink {
    /// Whether it wants events of this table.
    pub fn wants(&self, table: &str) -> bool {
        self.tables.is_empty() || self.tables.iter().any(|name| name == table)
    }
}

/// How a sink is told.
#[derive(Debug, Clone)]
pub enum How {
    /// By HTTP.
    Webhook(HttpPlace),
    /// By Redis, for Sidekiq.
    Sidekiq(QueuePlace),
    /// By Redis, for Resque.
    Resque(QueuePlace),
    /// By beanstalkd.
    Beanstalkd(TubePlace),
    /// By a program.
    Command(Vec<String>),
    /// By a file.
    File(PathBuf),
    /// By the database.
    Notify(String),
}

/// Where a server is.
#[derive(Debug, Clone)]
pub struct Place {
    address: Address,
    /// Trust only these certificates.
    pub ca_file: Option<PathBuf>,
}

#[derive(Debug, Clone)]
enum Address {
    Written(SinkAddress),
    Named(KeySource),
}

impl Place {
    /// Reads the address, and holds it to these schemes. It is never quoted.
    ///
    /// # Errors
    /// Where it cannot be read, or is none.
    pub async fn resolve(&self, env: &EnvLookup, schemes: &[&str]) -> Result<Url, Down> {
        let text = match &self.address {
            Address::Written(SinkAddress(text)) => text.clone(),
            Address::Named(source) => {
                let read = source.read(env).await;
                read.map_err(|error| Down::config(unread(&error)))?.expose().to_owned()
            }
        };
        url_of(&text, schemes).map_err(Down::config)
    }
}

/// Why there is no address, in the words of one: who reads secrets speaks of keys.
fn unread(error: &SecretError) -> String {
    match error {
        SecretError::NotSet(name) => {
            format!("the environment variable {name}, which should hold the address, is not set")
        }
        SecretError::File { path, why } => {
            format!("{}, which should hold the address, could not be read: {why}", path.display())
        }
        SecretError::Run { program, source } => {
            format!("`{program}`, which should print the address, could not be run: {source}")
        }
        SecretError::Failed { program, status } => {
            format!("`{program}`, which should print the address, failed ({status})")
        }
        SecretError::Unusable(place) | SecretError::NoLine(place) => format!(
            "{place} holds no usable address: one line of visible ASCII is expected, and %20 in \
             the place of a space"
        ),
        SecretError::NoSource => "expected one of url, url_env, url_file, url_command".to_owned(),
    }
}

/// An address of one of these schemes, with a place in it. No error quotes any of it: where its
/// password ends is not known of what is none.
fn url_of(text: &str, schemes: &[&str]) -> Result<Url, String> {
    let text = text.trim();
    if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err("its address holds a space or a control character; expected %20 in the place \
                    of a space"
            .to_owned());
    }
    let scheme = text.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    let Some(scheme) = scheme.filter(|scheme| schemes.contains(&scheme.as_str())) else {
        let known: Vec<String> = schemes.iter().map(|scheme| format!("{scheme}://")).collect();
        return Err(format!("its address begins with none of {}", known.join(", ")));
    };
    let no_place = || match scheme.as_str() {
        "unix" => "its address names no file; expected unix:///PATH".to_owned(),
        tcp => format!("its address names no host; expected {tcp}://HOST"),
    };
    let url = Url::parse(text).map_err(|error| match error.to_string().as_str() {
        "empty host" => no_place(),
        // The library's words are fixed ones.
        why => format!("its address cannot be read: {why}"),
    })?;
    let has_place = match scheme.as_str() {
        "unix" => url.path().len() > 1,
        _tcp => url.host_str().is_some_and(|host| !host.is_empty()),
    };
    if !has_place {
        return Err(no_place());
    }
    if scheme == "http" && !is_loopback(&url) {
        return Err("its address is plain http, which is for this machine alone".to_owned());
    }
    Ok(url)
}

/// Whether an address is this machine's own.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or("").trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// A webhook's.
#[derive(Debug, Clone)]
pub struct HttpPlace {
    /// Where.
    pub place: Place,
    /// Its key.
    pub key: KeySource,
    /// The key before, while both are valid.
    pub old_key: Option<KeySource>,
    /// Events on their way at a time.
    pub concurrency: usize,
    /// A proxy.
    pub proxy: Option<String>,
}

/// A queue's in Redis.
#[derive(Debug, Clone)]
pub struct QueuePlace {
    /// Where.
    pub place: Place,
    /// The queue.
    pub queue: String,
    /// The worker's class.
    pub class: String,
    /// What keys begin with; empty: nothing.
    pub namespace: String,
    /// Sidekiq's own retries.
    pub retry: Option<u32>,
}

/// A tube's.
#[derive(Debug, Clone)]
pub struct TubePlace {
    /// Where.
    pub place: Place,
    /// The tube.
    pub tube: String,
    /// The job's priority.
    pub priority: u32,
    /// Seconds that a worker may have it.
    pub ttr_secs: i64,
}

/// Schemes of Redis.
pub const REDIS: [&str; 3] = ["redis", "rediss", "unix"];

/// Schemes of beanstalkd.
pub const BEANSTALK: [&str; 2] = ["beanstalk", "unix"];

/// Schemes of webhooks.
pub const HTTP: [&str; 2] = ["https", "http"];

type Misfit = (&'static str, String);

/// One of three ways to name a secret.
fn source(
    env: Option<&String>,
    file: Option<&PathBuf>,
    command: Option<&Vec<String>>,
) -> Option<KeySource> {
    match (env, file, command) {
        (Some(name), None, None) => Some(KeySource::Env(name.clone())),
        (None, Some(path), None) => Some(KeySource::File(path.clone())),
        (None, None, Some(words)) if !words.is_empty() => Some(KeySource::Command(words.clone())),
        _none_or_several => None,
    }
}

impl SinkSettings {
    /// Checks it.
    ///
    /// # Errors
    /// With everything that cannot be meant so: the setting, and the sentence.
    pub fn check(&self) -> Result<Sink, Vec<Misfit>> {
        let mut found = self.misfits();
        let how = match self.how() {
            Ok(how) => Some(how),
            Err(more) => {
                found.extend(more);
                None
            }
        };
        match how.filter(|_| found.is_empty()) {
            Some(how) => Ok(Sink {
                name: self.name.clone(),
                kind: self.kind,
                tables: self.tables.clone(),
                events: self.events.clone(),
                timeout: self.timeout.to_std().unwrap_or(Duration::from_secs(10)),
                max_attempts: self.max_attempts,
                how,
            }),
            None => Err(found),
        }
    }

    fn misfits(&self) -> Vec<Misfit> {
        let mut found = Vec::new();
        let mut wrong = |field, text: String| found.push((field, text));
        let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
        if self.name.is_empty() || self.name.len() > 64 || !self.name.bytes().all(is_name) {
            wrong("name", "expected 1 to 64 letters, digits, `_`, `-` or `.`".to_owned());
        }
        if self.timeout < TimeDelta::seconds(1) || self.timeout > TIMEOUT_MAX {
            wrong("timeout", "expected 1s to 60s".to_owned());
        }
        if self.max_attempts == 0 {
            wrong("max_attempts", "expected at least 1".to_owned());
        }
        for word in &self.events {
            if !EVENT_KINDS.contains(&word.as_str()) {
                let known = EVENT_KINDS.join(", ");
                wrong("events", format!("`{word}` is no event; expected {known}"));
            }
        }
        for (field, kinds) in self.strays() {
            let kinds: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
            let text = format!("only {} has it", kinds.join(", "));
            wrong(field, text);
        }
        found
    }

    /// Settings that this kind of sink knows nothing of, each with the kinds that do.
    fn strays(&self) -> Vec<(&'static str, &'static [SinkKind])> {
        use SinkKind::{Beanstalkd, Command, File, Notify, Resque, Sidekiq, Webhook};
        let has_url = self.url.is_some() || self.url_env.is_some() || self.url_file.is_some();
        let has_key = self.key_env.is_some() || self.key_file.is_some();
        let has_old = self.old_key_env.is_some() || self.old_key_file.is_some();
        let given: [(&'static str, bool, &'static [SinkKind]); 13] = [
            ("url", has_url || self.url_command.is_some(), &[Webhook, Sidekiq, Resque, Beanstalkd]),
            ("key_env", has_key || self.key_command.is_some(), &[Webhook]),
            ("old_key_env", has_old || self.old_key_command.is_some(), &[Webhook]),
            ("concurrency", self.concurrency != default_concurrency(), &[Webhook]),
            ("proxy", self.proxy.is_some(), &[Webhook]),
            ("ca_file", self.ca_file.is_some(), &[Webhook, Sidekiq, Resque]),
            ("queue", self.queue.is_some(), &[Sidekiq, Resque]),
            ("class", self.class.is_some(), &[Sidekiq, Resque]),
            ("namespace", self.namespace.is_some(), &[Sidekiq, Resque]),
            ("retry", self.retry.is_some(), &[Sidekiq]),
            ("tube", self.tube.is_some(), &[Beanstalkd]),
            ("command", self.command.is_some(), &[Command]),
            ("path", self.path.is_some(), &[File]),
        ];
        let mut strays: Vec<(&'static str, &'static [SinkKind])> = given
            .into_iter()
            .filter(|(_, is_given, kinds)| *is_given && !kinds.contains(&self.kind))
            .map(|(field, _, kinds)| (field, kinds))
            .collect();
        if self.channel.is_some() && self.kind != Notify {
            strays.push(("channel", &[Notify]));
        }
        strays
    }

    fn how(&self) -> Result<How, Vec<Misfit>> {
        match self.kind {
            SinkKind::Webhook => self.webhook().map(How::Webhook),
            SinkKind::Sidekiq => self.queue("").map(How::Sidekiq),
            SinkKind::Resque => self.queue("resque").map(How::Resque),
            SinkKind::Beanstalkd => self.tube().map(How::Beanstalkd),
            SinkKind::Command => match self.command.as_deref() {
                Some(words) if !words.is_empty() => Ok(How::Command(words.to_vec())),
                _none => Err(vec![("command", "expected a program and its arguments".to_owned())]),
            },
            SinkKind::File => match &self.path {
                Some(path) => Ok(How::File(path.clone())),
                None => Err(vec![("path", "expected the file's path".to_owned())]),
            },
            SinkKind::Notify => match &self.channel {
                Some(channel) if is_channel(channel) => Ok(How::Notify(channel.clone())),
                _other => {
                    let text = format!("expected a channel of 1 to {CHANNEL_MAX} bytes");
                    Err(vec![("channel", text)])
                }
            },
        }
    }

    fn place(&self, schemes: &[&str]) -> Result<Place, Misfit> {
        let named =
            source(self.url_env.as_ref(), self.url_file.as_ref(), self.url_command.as_ref());
        let is_named =
            self.url_env.is_some() || self.url_file.is_some() || self.url_command.is_some();
        let address = match (&self.url, named) {
            (Some(written), None) if !is_named => {
                let url = url_of(&written.0, schemes).map_err(|text| ("url", text))?;
                if url.password().is_some() {
                    let text = "a password stands in it; name the address by url_env, url_file \
                                or url_command";
                    return Err(("url", text.to_owned()));
                }
                Address::Written(written.clone())
            }
            (None, Some(source)) => Address::Named(source),
            _none_or_several => {
                let text = "expected exactly one of url, url_env, url_file, url_command";
                return Err(("url", text.to_owned()));
            }
        };
        Ok(Place { address, ca_file: self.ca_file.clone() })
    }

    fn webhook(&self) -> Result<HttpPlace, Vec<Misfit>> {
        let mut found = Vec::new();
        let place = self.place(&HTTP).map_err(|misfit| found.push(misfit)).ok();
        let key = source(self.key_env.as_ref(), self.key_file.as_ref(), self.key_command.as_ref());
        if key.is_none() {
            let text = "expected exactly one of key_env, key_file, key_command: what is sent is \
                        signed";
            found.push(("key_env", text.to_owned()));
        }
        let old = [self.old_key_env.is_some(), self.old_key_file.is_some()];
        let has_old = old.contains(&true) || self.old_key_command.is_some();
        let old_key = source(
            self.old_key_env.as_ref(),
            self.old_key_file.as_ref(),
            self.old_key_command.as_ref(),
        );
        if has_old && old_key.is_none() {
            let text = "expected at most one of old_key_env, old_key_file, old_key_command";
            found.push(("old_key_env", text.to_owned()));
        }
        if !(1..=64).contains(&self.concurrency) {
            found.push(("concurrency", "expected 1 to 64".to_owned()));
        }
        let concurrency = usize::try_from(self.concurrency).unwrap_or(1);
        match (place, key) {
            (Some(place), Some(key)) if found.is_empty() => {
                Ok(HttpPlace { place, key, old_key, concurrency, proxy: self.proxy.clone() })
            }
            _wrong => Err(found),
        }
    }

    fn queue(&self, namespace: &str) -> Result<QueuePlace, Vec<Misfit>> {
        let mut found = Vec::new();
        let place = self.place(&REDIS).map_err(|misfit| found.push(misfit)).ok();
        let word = |field, value: &Option<String>, found: &mut Vec<Misfit>| match value {
            Some(text) if !text.is_empty() && !text.contains(char::is_whitespace) => text.clone(),
            _none => {
                found.push((field, "expected one word".to_owned()));
                String::new()
            }
        };
        let queue = word("queue", &self.queue, &mut found);
        let class = word("class", &self.class, &mut found);
        let namespace = self.namespace.clone().unwrap_or_else(|| namespace.to_owned());
        match place {
            Some(place) if found.is_empty() => {
                Ok(QueuePlace { place, queue, class, namespace, retry: self.retry })
            }
            _wrong => Err(found),
        }
    }

    fn tube(&self) -> Result<TubePlace, Vec<Misfit>> {
        let mut found = Vec::new();
        let place = self.place(&BEANSTALK).map_err(|misfit| found.push(misfit)).ok();
        let tube = self.tube.clone().unwrap_or_default();
        if !is_tube(&tube) {
            let text = "expected 1 to 200 letters, digits or `-+/;.$_()`, not beginning with `-`";
            found.push(("tube", text.to_owned()));
        }
        let ttr_secs = self.ttr.num_seconds();
        if ttr_secs < 1 {
            found.push(("ttr", "expected at least 1s".to_owned()));
        }
        match place {
            Some(place) if found.is_empty() => {
                Ok(TubePlace { place, tube, priority: self.priority, ttr_secs })
            }
            _wrong => Err(found),
        }
    }
}

fn is_tube(name: &str) -> bool {
    let is_fine = |b: u8| b.is_ascii_alphanumeric() || b"-+/;.$_()".contains(&b);
    !name.is_empty()
        && name.len() <= TUBE_MAX
        && !name.starts_with('-')
        && name.bytes().all(is_fine)
}

fn is_channel(name: &str) -> bool {
    !name.is_empty() && name.len() <= CHANNEL_MAX && !name.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::exit::Exit;

    fn wrong(text: &str) -> String {
        let text = format!("name = \"s\"\n{text}");
        let settings: SinkSettings = toml::from_str(&text).unwrap();
        let found = settings.check().err().unwrap_or_default();
        found.into_iter().map(|(field, _)| field).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn each_kind_has_its_own_settings_and_no_other() {
        for (text, want) in [
            ("kind = \"file\"\npath = \"e\"", ""),
            ("kind = \"file\"", "path"),
            ("kind = \"file\"\npath = \"e\"\nqueue = \"q\"", "queue"),
            ("kind = \"command\"\ncommand = []", "command"),
            ("kind = \"notify\"\nchannel = \"c\"", ""),
            ("kind = \"notify\"\nchannel = \"\"", "channel"),
            ("kind = \"webhook\"\nurl = \"https://h/x\"\nkey_env = \"K\"", ""),
            ("kind = \"webhook\"\nurl = \"https://h/x\"", "key_env"),
            ("kind = \"webhook\"\nurl = \"http://h/x\"\nkey_env = \"K\"", "url"),
            ("kind = \"webhook\"\nurl = \"http://[::1]/x\"\nkey_env = \"K\"", ""),
            ("kind = \"sidekiq\"\nurl_env = \"R\"\nqueue = \"q\"\nclass = \"C\"", ""),
            ("kind = \"sidekiq\"\nurl = \"redis://:p@h\"\nqueue = \"q\"\nclass = \"C\"", "url"),
            ("kind = \"sidekiq\"\nurl_env = \"R\"\nurl_file = \"f\"", "url queue class"),
            ("kind = \"resque\"\nurl = \"unix:///r\"\nqueue = \"q\"\nclass = \"C\"", ""),
            ("kind = \"beanstalkd\"\nurl = \"beanstalk://h\"\ntube = \"t\"", ""),
            ("kind = \"beanstalkd\"\nurl = \"beanstalk://h\"\ntube = \"-t\"", "tube"),
            (
                "kind = \"file\"\npath = \"e\"\nevents = [\"paid\"]\ntimeout = \"2min\"",
                "timeout events",
            ),
        ] {
            assert_eq!(wrong(text), want, "{text}");
        }
    }

    #[test]
    fn no_address_shows() {
        let text = "name = \"s\"\nkind = \"webhook\"\nurl = \"https://h/secret\"\nkey_env = \"K\"";
        let settings: SinkSettings = toml::from_str(text).unwrap();
        assert!(!format!("{settings:?} {:?}", settings.check().unwrap()).contains("secret"));
    }

    #[test]
    fn what_is_wrong_with_an_address_is_told_without_it() {
        let redis = "its address begins with none of redis://, rediss://, unix://";
        let no_host = "its address names no host; expected redis://HOST";
        let no_file = "its address names no file; expected unix:///PATH";
        let spaced = "its address holds a space or a control character; expected %20 in the \
                      place of a space";
        let plain = "its address is plain http, which is for this machine alone";
        for (schemes, address, want) in [
            (&REDIS[..], "redis://:s3cret@/0", no_host),
            (&REDIS, "redis:///s3cret", no_host),
            (&REDIS, "redis:s3cret", no_host),
            (&REDIS, "unix://", no_file),
            (&REDIS, "unix:///", no_file),
            (&REDIS, "http://s3cret@h/0", redis),
            (&REDIS, "s3cret", redis),
            (&REDIS, "s3cret@h:6379", redis),
            (&REDIS, "", redis),
            (&REDIS, "redis://:s3 cret@h/0", spaced),
            (&REDIS, "redis://:s3\tcret@h/0", spaced),
            (&REDIS, "redis://:p@h:s3cret", "its address cannot be read: invalid port number"),
            (&HTTP, "http://h/s3cret", plain),
            (&HTTP, "https://", "its address names no host; expected https://HOST"),
        ] {
            assert_eq!(url_of(address, schemes).unwrap_err(), want, "{address}");
        }
        for address in [" redis://:p@h/0\n", "REDIS://h", "unix:///run/r", "rediss://[::1]:1"] {
            assert!(url_of(address, &REDIS).is_ok(), "{address}");
        }
    }

    #[tokio::test]
    async fn an_address_that_is_read_is_called_an_address() {
        let env: EnvLookup = Arc::new(|name| match name {
            "SPACED" => Some("redis://:s3 cret@h/0".to_owned()),
            "HOSTLESS" => Some("redis://:s3cret@/0".to_owned()),
            _other => None,
        });
        let missing = "/nonexistent/address".to_owned();
        for (source, want) in [
            (KeySource::Env("SPACED".to_owned()), "SPACED holds no usable address: one line"),
            (KeySource::Env("HOSTLESS".to_owned()), "its address names no host; expected"),
            (KeySource::Env("GONE".to_owned()), "GONE, which should hold the address, is not set"),
            (KeySource::File(missing.clone().into()), "should hold the address, could not be"),
            (KeySource::Command(vec![missing]), "should print the address, could not be run"),
            (KeySource::Command(vec!["false".to_owned()]), "should print the address, failed"),
        ] {
            let place = Place { address: Address::Named(source), ca_file: None };
            let down = place.resolve(&env, &REDIS).await.unwrap_err();
            assert_eq!(down.exit, Exit::Config);
            assert!(down.text.contains(want), "{}", down.text);
            assert!(!down.text.contains("key") && !down.text.contains("cret"), "{}", down.text);
        }
    }
}
