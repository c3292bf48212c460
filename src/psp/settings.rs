//! What the configuration says of one PSP account, and the secret it names.
//!
//! A secret never stands in the configuration itself: it is named by an environment variable, a
//! file or a command, read at the first question, and its Debug shows nothing.

use std::path::PathBuf;

use chrono::TimeDelta;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use crate::decide::policy::Mode;
use crate::model::time::parse_span;
use crate::secret::KeySource;

/// The most requests a second that an account may be asked at.
pub const REQUESTS_PER_SECOND_MAX: u32 = 1_000;

/// The most requests that an account may have in flight.
pub const CONCURRENCY_MAX: u32 = 256;

/// Longest key of Stripe's metadata.
const METADATA_KEY_MAX: usize = 40;

/// The API version that the adapter was written against and that every request names.
pub const STRIPE_API_VERSION: &str = "2026-10-28.endive";

/// The PSPs that have an adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PspKind {
    /// Stripe, or what speaks its API.
    Stripe,
    /// No API is asked: what its settlement files say is all that is known.
    Files,
}

impl PspKind {
    /// The word of the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stripe => "stripe",
            Self::Files => "files",
        }
    }

    /// How many characters its ids have at least (`pi_` and 24 more), where they are of one form.
    pub fn id_chars(self) -> Option<usize> {
        match self {
            Self::Stripe => Some(27),
            Self::Files => None,
        }
    }
}

/// Which listed objects are this application's, at an account shared with another system.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ours {
    /// `metadata[KEY]`, `description`, `application`, `transfer_group` or `statement_descriptor`.
    pub field: String,
    /// The exact value that marks an object as ours.
    pub value: String,
}

/// Which lines of settlement files that no row has open a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LineCases {
    /// None: they stand in `exceptions.csv` alone.
    None,
    /// Those that name a row, or whose text only a row's tag has: of a PSP's file any that the
    /// tag's template reads, of a bank's one with letters or digits of the template's, or a UUID.
    #[default]
    Named,
    /// Every one that is a single payment's.
    All,
}

/// One `[[account]]` of the configuration.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountSettings {
    /// The account's name in mappings, reports and commands.
    pub name: String,
    /// The adapter.
    pub psp: PspKind,
    /// How far tieout may go with rows of this account. Required: nobody should find out later.
    pub mode: Mode,
    /// Whether the account holds live money. Required, and checked against every object.
    pub livemode: bool,
    /// Where the API answers; default: the PSP's own address.
    #[serde(default = "default_base_url")]
    pub base_url: String,
    /// The environment variable that holds the secret key.
    #[serde(default)]
    pub key_env: Option<String>,
    /// The file that holds the secret key.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// The command that prints the secret key: program and arguments, no shell.
    #[serde(default)]
    pub key_command: Option<Vec<String>>,
    /// Where the tag sits at the PSP: `metadata[KEY]`.
    #[serde(default = "default_tag")]
    pub tag: String,
    /// The API version named in every request.
    #[serde(default = "default_api_version")]
    pub api_version: String,
    /// A connected account to act for (the `Stripe-Account` header).
    #[serde(default)]
    pub stripe_account: Option<String>,
    /// The object kinds that this account charges by.
    #[serde(default = "default_charges_by")]
    pub charges_by: Vec<String>,
    /// Which objects are ours, at a shared account.
    #[serde(default)]
    pub ours: Option<Ours>,
    /// Whether the PSP offers its search to this account; Stripe does not to merchants in India.
    #[serde(default = "default_search")]
    pub search: bool,
    /// The most requests sent in a second; the lane goes lower by itself when told to.
    #[serde(default = "default_requests_per_second")]
    pub requests_per_second: u32,
    /// The most requests in flight at once.
    #[serde(default = "default_concurrency")]
    pub concurrency: u32,
    /// How long one whole answer may take, its body included.
    #[serde(default = "default_deadline", deserialize_with = "span")]
    #[schemars(with = "String")]
    pub deadline: TimeDelta,
    /// How long connecting may take.
    #[serde(default = "default_connect_timeout", deserialize_with = "span")]
    #[schemars(with = "String")]
    pub connect_timeout: TimeDelta,
    /// How often a question is asked again after a transient failure.
    #[serde(default = "default_retries")]
    pub retries: u32,
    /// The longest that a `Retry-After` is obeyed.
    #[serde(default = "default_retry_after_max", deserialize_with = "span")]
    #[schemars(with = "String")]
    pub retry_after_max: TimeDelta,
    /// After so many questions failed in a row, the account is left alone …
    #[serde(default = "default_breaker_after")]
    pub breaker_after: u32,
    /// … for this long; then one question tries again.
    #[serde(default = "default_breaker_pause", deserialize_with = "span")]
    #[schemars(with = "String")]
    pub breaker_pause: TimeDelta,
    /// The most bytes of one answer, unpacked.
    #[serde(default = "default_body_max_bytes")]
    pub body_max_bytes: u64,
    /// The most pages that one look may list.
    #[serde(default = "default_pages_max")]
    pub pages_max: u64,
    /// How long an idempotency key protects, from its first use.
    #[serde(default = "default_key_life", deserialize_with = "span")]
    #[schemars(with = "String")]
    pub key_life: TimeDelta,
    /// A proxy to go through. Proxy variables of the environment are ignored.
    #[serde(default)]
    pub proxy: Option<String>,
    /// Trust only the certificates in this PEM file.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// Which lines of its settlement files open a case where no row has them the day after they
    /// were booked: `none`, `named` (they name a row, or have what only a row's tag has) or `all`.
    #[serde(default)]
    pub line_cases: LineCases,
}

fn default_base_url() -> String {
    "https://api.stripe.com".to_owned()
}

fn default_tag() -> String {
    "metadata[tieout_id]".to_owned()
}

/// The first that shows a payment's charge as `latest_charge`, which refunds and disputes are read
/// from.
const OLDEST_VERSION: &str = "2022-11-15";

fn default_api_version() -> String {
    STRIPE_API_VERSION.to_owned()
}

fn default_charges_by() -> Vec<String> {
    vec!["payment_intent".to_owned(), "charge".to_owned()]
}

fn default_search() -> bool {
    true
}

/// Stripe lets 25 a second through for each endpoint; a reader leaves room for the shop.
fn default_requests_per_second() -> u32 {
    20
}

fn default_concurrency() -> u32 {
    8
}

fn default_deadline() -> TimeDelta {
    TimeDelta::seconds(20)
}

fn default_connect_timeout() -> TimeDelta {
    TimeDelta::seconds(5)
}

fn default_retries() -> u32 {
    3
}

fn default_retry_after_max() -> TimeDelta {
    TimeDelta::seconds(30)
}

fn default_breaker_after() -> u32 {
    5
}

fn default_breaker_pause() -> TimeDelta {
    TimeDelta::seconds(30)
}

/// A page of 100 expanded objects is below 1 MiB.
fn default_body_max_bytes() -> u64 {
    16 * 1024 * 1024
}

/// A million objects.
fn default_pages_max() -> u64 {
    10_000
}

/// Stripe keeps idempotency keys for at least 24 hours.
fn default_key_life() -> TimeDelta {
    TimeDelta::hours(24)
}

fn span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TimeDelta, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_span(&text).ok_or_else(|| {
        serde::de::Error::custom(format!("`{text}` is not a span such as 20s, 15min, 24h or 7d"))
    })
}

/// A setting that cannot be meant so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("account `{account}`: {field} is {found}; expected {expected}")]
pub struct SettingsError {
    /// The account's name.
    pub account: String,
    /// The setting.
    pub field: &'static str,
    /// What stands there.
    pub found: String,
    /// What was expected.
    pub expected: String,
}

impl AccountSettings {
    /// Checks what the types cannot say.
    ///
    /// # Errors
    /// With the first setting that cannot be meant so.
    pub fn check(&self) -> Result<(), SettingsError> {
        self.check_name()?;
        if self.psp == PspKind::Files {
            return Ok(());
        }
        self.check_key_source()?;
        self.check_address()?;
        self.tag_key()?;
        if let Some(ours) = &self.ours {
            OursField::parse(&ours.field).ok_or_else(|| {
                let expected = "metadata[KEY], description, application, transfer_group or \
                                statement_descriptor";
                self.refuse("ours.field", &ours.field, expected)
            })?;
            if ours.value.is_empty() {
                return Err(self.refuse("ours.value", "", "the value that our objects have"));
            }
        }
        self.check_headers()?;
        let known = |kind: &String| kind == "payment_intent" || kind == "charge";
        if self.charges_by.is_empty() || !self.charges_by.iter().all(known) {
            let found = format!("{:?}", self.charges_by);
            let expected = "a list of payment_intent, charge or both";
            return Err(self.refuse("charges_by", &found, expected));
        }
        self.check_limits()
    }

    fn refuse(&self, field: &'static str, found: &str, expected: &str) -> SettingsError {
        SettingsError {
            account: self.name.clone(),
            field,
            found: format!("`{found}`"),
            expected: expected.to_owned(),
        }
    }

    fn check_name(&self) -> Result<(), SettingsError> {
        let is_fine = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
        if self.name.is_empty() || self.name.len() > 64 || !self.name.bytes().all(is_fine) {
            let expected = "1 to 64 letters, digits, `_`, `-` or `.`";
            return Err(self.refuse("name", &self.name, expected));
        }
        Ok(())
    }

    fn check_key_source(&self) -> Result<(), SettingsError> {
        let named = [self.key_env.is_some(), self.key_file.is_some(), self.key_command.is_some()];
        let count = named.iter().filter(|is_named| **is_named).count();
        if count != 1 {
            let found = format!("{count} of key_env, key_file, key_command");
            return Err(self.refuse("the secret key", &found, "exactly one of them"));
        }
        if self.key_command.as_ref().is_some_and(Vec::is_empty) {
            return Err(self.refuse("key_command", "[]", "a program and its arguments"));
        }
        Ok(())
    }

    fn check_address(&self) -> Result<(), SettingsError> {
        let expected = "an https address without query (plain http only on loopback)";
        let refused = || self.refuse("base_url", &shown(&self.base_url), expected);
        let url = reqwest::Url::parse(&self.base_url).map_err(|_bad| refused())?;
        let is_plain =
            url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
        let is_safe = url.scheme() == "https" || (url.scheme() == "http" && is_loopback(&url));
        if is_plain && is_safe && url.password().is_none() { Ok(()) } else { Err(refused()) }
    }

    /// A header that Stripe refuses is found by no run before it asks.
    fn check_headers(&self) -> Result<(), SettingsError> {
        let day: String = self.api_version.chars().take(OLDEST_VERSION.len()).collect();
        let name = self.api_version.strip_prefix(day.as_str()).unwrap_or("");
        let is_name = |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase());
        let is_whole = name.is_empty() || name.strip_prefix('.').is_some_and(is_name);
        let is_day = chrono::NaiveDate::parse_from_str(&day, "%Y-%m-%d").is_ok();
        if !is_day || !is_whole || day.as_str() < OLDEST_VERSION {
            let expected = format!(
                "a version such as 2026-10-28.endive, {OLDEST_VERSION} or later: before that a \
                 payment did not show its charge as it does now"
            );
            return Err(self.refuse("api_version", &self.api_version, &expected));
        }
        match &self.stripe_account {
            Some(id) if !id.starts_with("acct_") => {
                Err(self.refuse("stripe_account", id, "a connected account's id, acct_…"))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn check_limits(&self) -> Result<(), SettingsError> {
        let positive = [
            ("requests_per_second", u64::from(self.requests_per_second)),
            ("concurrency", u64::from(self.concurrency)),
            ("breaker_after", u64::from(self.breaker_after)),
            ("body_max_bytes", self.body_max_bytes),
            ("pages_max", self.pages_max),
        ];
        if let Some((field, _zero)) = positive.iter().find(|(_, value)| *value == 0) {
            return Err(self.refuse(field, "0", "at least 1"));
        }
        let too_many = self.requests_per_second > REQUESTS_PER_SECOND_MAX
            || self.concurrency > CONCURRENCY_MAX;
        if too_many {
            let found = format!("{} / {}", self.requests_per_second, self.concurrency);
            let expected = format!("at most {REQUESTS_PER_SECOND_MAX} / {CONCURRENCY_MAX}");
            return Err(self.refuse("requests_per_second / concurrency", &found, &expected));
        }
        let spans = [
            ("deadline", self.deadline),
            ("connect_timeout", self.connect_timeout),
            ("key_life", self.key_life),
        ];
        match spans.iter().find(|(_, span)| *span <= TimeDelta::zero()) {
            Some((field, _span)) => Err(self.refuse(field, "0s", "a span above 0")),
            None => Ok(()),
        }
    }

    /// The metadata key that holds the tag.
    ///
    /// # Errors
    /// When `tag` is not `metadata[KEY]` with a key that Stripe takes.
    pub fn tag_key(&self) -> Result<&str, SettingsError> {
        metadata_key(&self.tag).ok_or_else(|| {
            let expected = "metadata[KEY] with a KEY of 1 to 40 characters without brackets";
            self.refuse("tag", &self.tag, expected)
        })
    }

    /// Where the secret key is to be read.
    pub fn key_source(&self) -> KeySource {
        match (&self.key_env, &self.key_file, &self.key_command) {
            (Some(name), _, _) => KeySource::Env(name.clone()),
            (None, Some(path), _) => KeySource::File(path.clone()),
            (None, None, Some(command)) => KeySource::Command(command.clone()),
            (None, None, None) => KeySource::Missing,
        }
    }
}

/// An address to be refused, without what may be a secret in it: a login, a query.
fn shown(address: &str) -> String {
    match reqwest::Url::parse(address) {
        Ok(url) if url.has_host() => {
            let login =
                if url.username().is_empty() && url.password().is_none() { "" } else { "***@" };
            let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
            let host = url.host_str().unwrap_or("");
            let more = if url.query().or(url.fragment()).is_some() { "?***" } else { "" };
            format!(
                "{}://{login}{host}{port}{}{more}",
                url.scheme(),
                url.path().trim_end_matches('/')
            )
        }
        _no_address => {
            let is_plain = address.chars().all(|c| c.is_ascii_alphanumeric() || "-./_".contains(c));
            if is_plain { address.to_owned() } else { "***".to_owned() }
        }
    }
}

/// Whether an address names this machine.
pub fn is_loopback(url: &reqwest::Url) -> bool {
    let host = url.host_str().unwrap_or("").trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn metadata_key(place: &str) -> Option<&str> {
    let key = place.strip_prefix("metadata[")?.strip_suffix(']')?;
    let is_fine = |c: char| !c.is_control() && !matches!(c, '[' | ']' | '"' | '\\');
    let fits = (1..=METADATA_KEY_MAX).contains(&key.chars().count());
    (fits && key.chars().all(is_fine)).then_some(key)
}

/// The field of [`Ours`], parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OursField {
    Metadata(String),
    Description,
    Application,
    TransferGroup,
    StatementDescriptor,
}

impl OursField {
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "description" => Some(Self::Description),
            "application" => Some(Self::Application),
            "transfer_group" => Some(Self::TransferGroup),
            "statement_descriptor" => Some(Self::StatementDescriptor),
            place => metadata_key(place).map(|key| Self::Metadata(key.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINIMAL: &str = r#"
        name = "stripe_live"
        psp = "stripe"
        mode = "full"
        livemode = true
        key_env = "STRIPE_KEY"
    "#;

    fn read(more: &str) -> Result<AccountSettings, String> {
        let settings: AccountSettings =
            toml::from_str(&format!("{MINIMAL}\n{more}")).map_err(|e| e.to_string())?;
        settings.check().map_err(|e| e.to_string()).map(|()| settings)
    }

    #[test]
    fn five_lines_make_an_account() {
        let settings = read("").unwrap();
        assert_eq!(settings.base_url, "https://api.stripe.com");
        assert_eq!(settings.tag_key().unwrap(), "tieout_id");
        assert_eq!(settings.charges_by, ["payment_intent", "charge"]);
        assert_eq!(settings.key_life, TimeDelta::hours(24));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_name() {
        for (more, says) in [
            ("key_file = \"/x\"", "exactly one of them"),
            ("tag = \"order_id\"", "tag is `order_id`; expected metadata[KEY]"),
            ("tag = \"metadata[a[b]]\"", "expected metadata[KEY]"),
            ("tag = \"metadata[]\"", "expected metadata[KEY]"),
            ("base_url = \"http://api.stripe.com\"", "expected an https address"),
            ("base_url = \"https://key@api.stripe.com\"", "expected an https address"),
            ("base_url = \"nonsense\"", "base_url is `nonsense`; expected an https address"),
            ("base_url = \"https://u:S3c@h.example\"", "base_url is `https://***@h.example`;"),
            ("base_url = \"https://h.example/v1?k=S3c\"", "is `https://h.example/v1?***`;"),
            ("base_url = \"https://u:S3c\"", "base_url is `***`;"),
            ("base_url = \"u:S3c@h.example\"", "base_url is `***`;"),
            ("charges_by = [\"invoice\"]", "charges_by"),
            ("charges_by = []", "charges_by"),
            ("concurrency = 0", "concurrency is `0`; expected at least 1"),
            ("deadline = \"0s\"", "deadline"),
            ("deadline = \"fast\"", "not a span"),
            ("ours = { field = \"amount\", value = \"1\" }", "ours.field"),
            ("ours = { field = \"application\", value = \"\" }", "ours.value"),
            ("api_version = \"2020-08-27\"", "api_version is `2020-08-27`; expected a version"),
            ("api_version = \"2026-13-01\"", "api_version"),
            ("api_version = \"2026-10-28.\u{d6}\"", "api_version"),
            ("api_version = \"latest\"", "api_version"),
            ("stripe_account = \"123\"", "stripe_account is `123`; expected"),
            ("livemod = true", "unknown field `livemod`"),
            ("secret_key = \"sk_live_1\"", "unknown field"),
        ] {
            let said = read(more).unwrap_err();
            assert!(said.contains(says), "{more}: {said}");
            assert!(!said.contains("S3c"), "{more}: {said}");
        }
        assert!(read("base_url = \"http://127.0.0.1:1\"").is_ok());
        assert!(read("base_url = \"http://[::1]:1\"").is_ok());
        let no_mode = toml::from_str::<AccountSettings>("name = \"a\"").unwrap_err();
        assert!(no_mode.to_string().contains("missing field"));
    }
}
