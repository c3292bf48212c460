//! `[[source]]`: where settlement files come from, and when which of them are expected.
//!
//! [`SourceSettings`] is what the configuration says, [`Source`] is that, checked. No secret stands
//! here: it is named, and read by [`Source::secrets`] before the first call.

use std::collections::BTreeSet;
use std::net::Ipv6Addr;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use chrono::{NaiveDate, NaiveTime, TimeDelta, Weekday};
use chrono_tz::Tz;
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::decide::expected::{Calendar, Expected};
use crate::exit::Exit;
use crate::model::money::Currency;
use crate::model::settlement::TagKind;
use crate::model::time::parse_span;
use crate::secret::{EnvLookup, KeySource, Secret};
use crate::settlement::sources::SourceError;
use crate::settlement::sources::pick::{Convention, unsafe_name};
use crate::settlement::tags::{TagRules, tag_kind};

/// Nobody waits longer for one answer of a server.
const TIMEOUT_MAX: TimeDelta = TimeDelta::minutes(10);

/// The longest business lag that makes sense; more is a mistyped number.
const LAG_MAX: u32 = 30;

/// What kind of place it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// A folder of an SFTP server.
    Sftp,
    /// A folder of this machine, or one that is mounted.
    Folder,
}

/// How a file shows that it is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ready {
    /// Two looks, `stable_for` apart, show the same size and time.
    Stable,
    /// It is written under an unfinished name and renamed.
    Rename,
    /// A second file beside it says so: `marker`.
    Marker,
}

/// `[[source]]`: a place where files of a bank or a PSP come in.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceSettings {
    /// Its name in commands, reports and messages.
    pub name: String,
    /// What it is.
    pub kind: SourceKind,
    /// The folder: at the server, by default where the login leads; of this machine, relative to
    /// this file.
    pub path: Option<String>,
    /// Which files: `*` stands for any text, `?` for one character.
    #[serde(default = "every_name")]
    pub glob: Vec<String>,
    /// How a file shows that it is whole.
    #[serde(default = "stable")]
    pub ready: Ready,
    /// With `ready = "marker"`: the name of the file that says so, as `{name}.done` or `{stem}.ok`
    /// (`{stem}` is the name without its ending).
    pub marker: Option<String>,
    /// With `ready = "stable"`: how far apart the two looks are.
    #[serde(default = "stable_for", deserialize_with = "span")]
    #[schemars(with = "String")]
    pub stable_for: TimeDelta,
    /// What the files are, where their content does not tell: a word of `files inspect --format`,
    /// or the name of a `[[format]]`.
    pub format: Option<String>,
    /// What amounts are in, by its ISO 4217 code, where a bank's CSV names no currency: `GBP`. One
    /// that the file names counts before it.
    pub currency: Option<String>,
    /// Which references of a line may be a row's tag, the likeliest first: `end_to_end_id`,
    /// `merchant_reference`, `customer_reference`, … Default: the order that the page on
    /// settlement files gives.
    pub tags: Option<Vec<String>>,
    /// Where a tag stands within a longer reference; tried after `tags`, in their order.
    #[serde(default)]
    pub patterns: Vec<PatternSettings>,
    /// The zone of the sender's days and cut-offs. Default: `business_timezone`.
    pub zone: Option<String>,
    /// The PSP account that the files belong to. Default: the only one.
    pub account: Option<String>,
    /// Moves each file into this folder, which is one below `path` where it does not begin with
    /// `/`, once its lines are committed. Without it nothing is ever changed at the source.
    pub archive: Option<String>,
    /// sftp: the server.
    pub host: Option<String>,
    /// sftp: its port; default 22.
    pub port: Option<u16>,
    /// sftp: the user to log in as.
    pub user: Option<String>,
    /// sftp: the private key: OpenSSH, PEM or PKCS#8.
    pub key_file: Option<PathBuf>,
    /// sftp: the key's passphrase, by an environment variable (or systemd credential) …
    pub passphrase_env: Option<String>,
    /// … by a file …
    pub passphrase_file: Option<PathBuf>,
    /// … or by the command that prints it: program and arguments, no shell.
    pub passphrase_command: Option<Vec<String>>,
    /// sftp: the password, where the server wants one: by an environment variable …
    pub password_env: Option<String>,
    /// … by a file …
    pub password_file: Option<PathBuf>,
    /// … or by a command.
    pub password_command: Option<Vec<String>>,
    /// sftp: also try the keys of the SSH agent: its first five, or four beside a `key_file`, as
    /// servers hang up after six tries.
    #[serde(default)]
    pub agent: bool,
    /// sftp: the host keys that are trusted, by fingerprint: `SHA256:…`; several while keys are
    /// changed. Where there is none, `known_hosts` says.
    #[serde(default)]
    pub host_key: Vec<String>,
    /// sftp: an OpenSSH known_hosts file; `sources trust` writes to it. Default: `known_hosts`
    /// beside this file.
    pub known_hosts: Option<PathBuf>,
    /// sftp: how long connecting may take.
    #[serde(default = "connect_timeout", deserialize_with = "span")]
    #[schemars(with = "String")]
    pub connect_timeout: TimeDelta,
    /// sftp: how long one answer may take.
    #[serde(default = "timeout", deserialize_with = "span")]
    #[schemars(with = "String")]
    pub timeout: TimeDelta,
    /// How files are decrypted that are OpenPGP messages.
    pub decrypt: Option<DecryptSettings>,
    /// Which files are to come, and by when.
    #[serde(default)]
    pub expected: Vec<ExpectedSettings>,
}

/// `[[source.patterns]]`: where a tag stands within a longer reference.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PatternSettings {
    /// Which kind of reference is searched: `text` is the line's free text.
    #[serde(rename = "in")]
    pub kind: String,
    /// A regular expression; its one group, in round brackets, is the tag: `INV-(\d+)`.
    pub find: String,
}

/// `[source.decrypt]`: OpenPGP.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecryptSettings {
    /// The secret key that files are encrypted to: as `gpg --export-secret-keys` writes it,
    /// armored or not.
    pub key_file: PathBuf,
    /// Its passphrase, by an environment variable …
    pub passphrase_env: Option<String>,
    /// … by a file …
    pub passphrase_file: Option<PathBuf>,
    /// … or by a command.
    pub passphrase_command: Option<Vec<String>>,
    /// The sender's public key: only files that it signed are taken then.
    pub signed_by: Option<PathBuf>,
}

/// `[[source.expected]]`: a file that is to come for every business day.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectedSettings {
    /// Its name, with the business day's date by strftime: `STMT_%Y%m%d*.xml`. A part of the date
    /// that comes again (`%m%d`, without a year) is refused: write a `*` in its place.
    pub name: String,
    /// The time of day by which it is there, in the source's zone: `07:30`.
    pub by: String,
    /// How many business days after its own.
    #[serde(default = "next_day")]
    pub lag_days: u32,
    /// The days of the week that it is for.
    #[serde(default = "weekdays")]
    pub days: Vec<DayWord>,
    /// A calendar whose holidays are no business days: `target`, of the euro's settlement system.
    pub calendar: Option<CalendarWord>,
    /// Days that are no business days: `2026-12-24`.
    #[serde(default)]
    pub holidays: Vec<String>,
    /// A file with more of them, one a line; `#` begins a comment.
    pub holidays_file: Option<PathBuf>,
    /// The first business day that it is for. Default: the day of the first file that came.
    pub since: Option<String>,
}

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "they are days")]
pub enum DayWord {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

/// A calendar that tieout knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CalendarWord {
    /// The euro's settlement system.
    Target,
}

impl DayWord {
    fn day(self) -> Weekday {
        match self {
            Self::Mon => Weekday::Mon,
            Self::Tue => Weekday::Tue,
            Self::Wed => Weekday::Wed,
            Self::Thu => Weekday::Thu,
            Self::Fri => Weekday::Fri,
            Self::Sat => Weekday::Sat,
            Self::Sun => Weekday::Sun,
        }
    }
}

fn every_name() -> Vec<String> {
    vec!["*".to_owned()]
}

/// The one convention that asks nothing of whoever writes the files.
fn stable() -> Ready {
    Ready::Stable
}

fn stable_for() -> TimeDelta {
    TimeDelta::seconds(10)
}

fn connect_timeout() -> TimeDelta {
    TimeDelta::seconds(10)
}

fn timeout() -> TimeDelta {
    TimeDelta::seconds(30)
}

/// A statement of a day is made in its night.
fn next_day() -> u32 {
    1
}

fn weekdays() -> Vec<DayWord> {
    vec![DayWord::Mon, DayWord::Tue, DayWord::Wed, DayWord::Thu, DayWord::Fri]
}

fn span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TimeDelta, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_span(&text).ok_or_else(|| {
        serde::de::Error::custom(format!("`{text}` is not a span such as 10s or 2min"))
    })
}

/// A source, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub place: Place,
    /// Which files.
    pub globs: Vec<String>,
    /// How a file shows that it is whole.
    pub convention: Convention,
    /// How far apart two looks are.
    pub stable_for: Duration,
    /// What the files are, where that is pinned.
    pub format: Option<String>,
    /// What amounts are in, where the file names no currency.
    pub currency: Option<Currency>,
    /// Which references of a line may be a row's tag.
    pub tags: TagRules,
    /// The zone of the sender's days.
    pub zone: Tz,
    /// The PSP account that the files belong to.
    pub account: Option<String>,
    /// Where files go once they are committed.
    pub archive: Option<String>,
    /// How files are decrypted.
    pub decrypt: Option<Decrypt>,
    /// Which files are to come.
    pub expected: Vec<ExpectedFile>,
}

/// A file that is to come for every business day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedFile {
    /// Its name, days and time.
    pub file: Expected,
    /// The first business day that it is for; none: that of the first file that came.
    pub since: Option<NaiveDate>,
}

/// Where a source is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A folder.
    Folder(PathBuf),
    /// A server.
    Sftp(Box<Server>),
}

/// An SFTP server, and how to log in there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Who logs in.
    pub user: String,
    /// The folder there.
    pub path: String,
    /// The private key.
    pub key_file: Option<PathBuf>,
    /// The private key's passphrase.
    pub passphrase: Option<KeySource>,
    /// The password.
    pub password: Option<KeySource>,
    /// Whether the agent's keys are tried.
    pub agent: bool,
    /// Trusted fingerprints.
    pub host_keys: Vec<String>,
    /// The file of trusted keys.
    pub known_hosts: PathBuf,
    /// Of connecting.
    pub connect_timeout: Duration,
    /// Of each answer.
    pub timeout: Duration,
}

impl Server {
    /// `host:port`, for messages.
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            return format!("[{}]:{}", self.host, self.port);
        }
        format!("{}:{}", self.host, self.port)
    }
}

/// How OpenPGP messages are decrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decrypt {
    /// The secret key.
    pub key_file: PathBuf,
    /// Its passphrase.
    pub passphrase: Option<KeySource>,
    /// Who must have signed.
    pub signed_by: Option<PathBuf>,
}

/// What a source's settings name, read.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    /// Of the private key.
    pub passphrase: Option<Secret>,
    /// Of the login.
    pub password: Option<Secret>,
    /// Of the OpenPGP key.
    pub decrypt: Option<Secret>,
}

impl Source {
    /// Reads the secrets that it names.
    ///
    /// # Errors
    /// Where one cannot be had.
    pub async fn secrets(&self, env: &EnvLookup) -> Result<Secrets, SourceError> {
        let mut secrets = Secrets::default();
        if let Place::Sftp(server) = &self.place {
            secrets.passphrase = read("passphrase", server.passphrase.as_ref(), env).await?;
            secrets.password = read("password", server.password.as_ref(), env).await?;
        }
        let own = self.decrypt.as_ref().and_then(|decrypt| decrypt.passphrase.as_ref());
        secrets.decrypt = read("passphrase of [source.decrypt]", own, env).await?;
        Ok(secrets)
    }
}

async fn read(
    field: &'static str,
    source: Option<&KeySource>,
    env: &EnvLookup,
) -> Result<Option<Secret>, SourceError> {
    let Some(source) = source else { return Ok(None) };
    let secret = source.read_phrase(env).await;
    secret.map(Some).map_err(|error| {
        let because = std::error::Error::source(&error).map(|why| format!(": {why}"));
        let problem = format!("{error}{}", because.unwrap_or_default());
        SourceError::Secret { field, problem, exit: Exit::Config }
    })
}

/// Where the settings stand, and what they leave to others.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// Makes a path of the file one of this machine.
    pub at: &'a dyn Fn(&Path) -> PathBuf,
    /// The zone of business days.
    pub zone: Tz,
}

impl SourceSettings {
    /// Checks what the types cannot say. What is wrong: the setting's path and a sentence.
    ///
    /// # Errors
    /// With everything that cannot be meant so.
    pub fn check(&self, around: Around<'_>) -> Result<Source, Vec<(String, String)>> {
        let mut wrong = Wrong::default();
        self.check_name(&mut wrong);
        self.check_globs(&mut wrong);
        let zone = wrong.or_none("zone", self.zone(around.zone));
        let convention = wrong.or_none("marker", self.convention());
        let currency = wrong.or_none("currency", self.currency()).flatten();
        let place = match self.kind {
            SourceKind::Folder => self.folder(around, &mut wrong),
            SourceKind::Sftp => self.server(around, &mut wrong),
        };
        self.check_spans(&mut wrong);
        self.check_archive(place.as_ref(), &mut wrong);
        let decrypt = self.decrypt(around, &mut wrong);
        let tags = self.tags(&mut wrong);
        let zone = zone.unwrap_or(around.zone);
        let expected = self.expected(zone, around, &mut wrong);
        let (Some(place), Some(convention)) = (place, convention) else {
            return Err(wrong.found);
        };
        if !wrong.found.is_empty() {
            return Err(wrong.found);
        }
        Ok(Source {
            name: self.name.clone(),
            place,
            globs: self.glob.clone(),
            convention,
            stable_for: self.stable_for.to_std().unwrap_or_default(),
            format: self.format.clone(),
            currency,
            tags,
            zone,
            account: self.account.clone(),
            archive: self.archive.clone(),
            decrypt,
            expected,
        })
    }

    fn check_name(&self, wrong: &mut Wrong) {
        let is_fine = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        if self.name.is_empty() || self.name.len() > 64 || !self.name.bytes().all(is_fine) {
            wrong.add("name", "expected 1 to 64 letters, digits, `_` or `-`");
        }
    }

    fn check_globs(&self, wrong: &mut Wrong) {
        if self.glob.is_empty() {
            wrong.add("glob", "expected at least one pattern, as [\"*.xml\"]");
        }
        for (at, glob) in self.glob.iter().enumerate() {
            if glob.is_empty() || glob.contains('/') || glob.contains(char::is_control) {
                wrong.add(format!("glob.{at}"), "expected a pattern of names, without a folder");
            }
        }
    }

    /// A file that is put away into the folder that it came from would come again.
    fn check_archive(&self, place: Option<&Place>, wrong: &mut Wrong) {
        let Some(archive) = &self.archive else { return };
        let is_inbox = match place {
            Some(Place::Folder(path)) => is_one_here(path, &path.join(archive)),
            Some(Place::Sftp(server)) => {
                let path = Path::new(&server.path);
                plain(path) == plain(&path.join(archive))
            }
            None => false,
        };
        if is_inbox || archive.contains(char::is_control) {
            let text = "expected the name of a folder that is not the source's own, as `done`";
            wrong.add("archive", text);
        }
    }

    fn tags(&self, wrong: &mut Wrong) -> TagRules {
        let mut rules = TagRules::default();
        if let Some(words) = &self.tags {
            if words.is_empty() {
                wrong.add("tags", "expected at least one kind, as [\"end_to_end_id\"]");
            }
            // Free text is searched by patterns, and never a tag itself.
            let known = TagKind::ALL.into_iter().filter(|kind| *kind != TagKind::Text);
            let known: Vec<TagKind> = known.collect();
            let kinds = words.iter().enumerate();
            let kinds = kinds.filter_map(|(at, word)| {
                wrong.or_none(&format!("tags.{at}"), tag_kind(word, &known))
            });
            rules.order = kinds.collect();
        }
        for (at, pattern) in self.patterns.iter().enumerate() {
            let kind = tag_kind(&pattern.kind, &TagKind::ALL);
            let kind = wrong.or_none(&format!("patterns.{at}.in"), kind);
            let find = wrong.or_none(&format!("patterns.{at}.find"), pattern.regex());
            rules.patterns.extend(kind.zip(find));
        }
        rules
    }

    fn currency(&self) -> Result<Option<Currency>, String> {
        let known = self.currency.as_deref().map(Currency::parse_any).transpose();
        known.map_err(|unknown| unknown.to_string())
    }

    fn zone(&self, business: Tz) -> Result<Tz, String> {
        let Some(zone) = &self.zone else { return Ok(business) };
        let expected = || "expected a zone of the IANA database such as Europe/Berlin".to_owned();
        zone.parse().map_err(|_unknown| expected())
    }

    fn convention(&self) -> Result<Convention, String> {
        let marker = self.marker.as_deref();
        match (self.ready, marker) {
            (Ready::Rename, None) => Ok(Convention::Rename),
            (Ready::Stable, None) => Ok(Convention::Stable),
            (Ready::Rename | Ready::Stable, Some(_)) => {
                Err("it has no say without `ready = \"marker\"`".to_owned())
            }
            (Ready::Marker, Some(marker)) => {
                let is_named = marker.contains("{name}") || marker.contains("{stem}");
                let is_other = !["{name}", "{stem}"].contains(&marker);
                let example = marker.replace("{name}", "a.xml").replace("{stem}", "a");
                if is_named && is_other && unsafe_name(&example).is_none() {
                    return Ok(Convention::Marker(marker.to_owned()));
                }
                Err("expected a name as `{name}.done` or `{stem}.ok`".to_owned())
            }
            (Ready::Marker, None) => {
                Err("`ready = \"marker\"` needs the marker's name, as `{name}.done`".to_owned())
            }
        }
    }

    fn folder(&self, around: Around<'_>, wrong: &mut Wrong) -> Option<Place> {
        let of_servers = [
            ("host", self.host.is_some()),
            ("port", self.port.is_some()),
            ("user", self.user.is_some()),
            ("key_file", self.key_file.is_some()),
            ("passphrase_env", self.passphrase_env.is_some()),
            ("passphrase_file", self.passphrase_file.is_some()),
            ("passphrase_command", self.passphrase_command.is_some()),
            ("password_env", self.password_env.is_some()),
            ("password_file", self.password_file.is_some()),
            ("password_command", self.password_command.is_some()),
            ("agent", self.agent),
            ("host_key", !self.host_key.is_empty()),
            ("known_hosts", self.known_hosts.is_some()),
        ];
        for (field, _set) in of_servers.iter().filter(|(_, is_set)| *is_set) {
            wrong.add(*field, "it has no say at a folder; leave it out, or `kind = \"sftp\"`");
        }
        let path = self.path.as_deref().filter(|path| !path.is_empty());
        if path.is_none() {
            wrong.add("path", "expected the folder, as \"inbox\"");
        }
        path.map(|path| Place::Folder((around.at)(Path::new(path))))
    }

    fn server(&self, around: Around<'_>, wrong: &mut Wrong) -> Option<Place> {
        let plain = |text: &&String| !text.is_empty() && !text.contains(char::is_control);
        let host = self.host.as_ref().filter(plain);
        if host.is_none_or(|host| host.contains(['/', '@', ' '])) {
            wrong.add("host", "expected the server's name or address, as \"sftp.bank.example\"");
        } else if host.is_some_and(|host| host.contains(':') && !is_ipv6(host)) {
            let text = "expected the name or address alone, as \"sftp.bank.example\" or \
                        \"2001:db8::1\"; the port stands in `port`";
            wrong.add("host", text);
        }
        if self.port == Some(0) {
            wrong.add("port", "expected 1 to 65535");
        }
        let user = self.user.as_ref().filter(plain);
        if user.is_none() {
            wrong.add("user", "expected the user to log in as");
        }
        let path = self.path.as_deref().unwrap_or(".");
        if path.is_empty() || path.contains(char::is_control) {
            wrong.add("path", "expected a folder of the server, as \"/outgoing\"");
        } else if path == "~" || path.starts_with("~/") {
            let text = "`~` is of shells alone: a path that does not begin with `/` is one of the \
                        login's own folder";
            wrong.add("path", text);
        }
        for (at, key) in self.host_key.iter().enumerate() {
            if !is_fingerprint(key) {
                let text = "expected a fingerprint as ssh-keygen -l prints it: SHA256:…";
                wrong.add(format!("host_key.{at}"), text);
            }
        }
        let (passphrase, password) = (self.passphrase(wrong), self.password(wrong));
        if self.key_file.is_none() && password.is_none() && !self.agent {
            wrong.add("key_file", "expected a way to log in: key_file, agent or password_…");
        }
        if self.key_file.is_none() && passphrase.is_some() {
            wrong.add("key_file", "a passphrase is named, and no key_file that it opens");
        }
        let at = |file: &PathBuf| (around.at)(file);
        Some(Place::Sftp(Box::new(Server {
            host: host?.clone(),
            port: self.port.unwrap_or(22),
            user: user?.clone(),
            path: path.to_owned(),
            key_file: self.key_file.as_ref().map(at),
            passphrase: passphrase.map(|source| placed(source, around)),
            password: password.map(|source| placed(source, around)),
            agent: self.agent,
            host_keys: self.host_key.clone(),
            known_hosts: at(self.known_hosts.as_ref().unwrap_or(&PathBuf::from("known_hosts"))),
            connect_timeout: self.connect_timeout.to_std().unwrap_or_default(),
            timeout: self.timeout.to_std().unwrap_or_default(),
        })))
    }

    fn passphrase(&self, wrong: &mut Wrong) -> Option<KeySource> {
        let (env, file) = (self.passphrase_env.as_ref(), self.passphrase_file.as_ref());
        wrong.or_none("passphrase_env", one_of(env, file, self.passphrase_command.as_ref()))?
    }

    fn password(&self, wrong: &mut Wrong) -> Option<KeySource> {
        let (env, file) = (self.password_env.as_ref(), self.password_file.as_ref());
        wrong.or_none("password_env", one_of(env, file, self.password_command.as_ref()))?
    }

    fn check_spans(&self, wrong: &mut Wrong) {
        let spans = [
            ("stable_for", self.stable_for),
            ("connect_timeout", self.connect_timeout),
            ("timeout", self.timeout),
        ];
        for (field, span) in spans {
            if span <= TimeDelta::zero() || span > TIMEOUT_MAX {
                wrong.add(field, "expected a span above 0 and at most 10min");
            }
        }
    }

    fn decrypt(&self, around: Around<'_>, wrong: &mut Wrong) -> Option<Decrypt> {
        let own = self.decrypt.as_ref()?;
        let (env, file) = (own.passphrase_env.as_ref(), own.passphrase_file.as_ref());
        let source = one_of(env, file, own.passphrase_command.as_ref());
        let passphrase = wrong.or_none("decrypt.passphrase_env", source)?;
        Some(Decrypt {
            key_file: (around.at)(&own.key_file),
            passphrase: passphrase.map(|source| placed(source, around)),
            signed_by: own.signed_by.as_ref().map(|file| (around.at)(file)),
        })
    }

    fn expected(&self, zone: Tz, around: Around<'_>, wrong: &mut Wrong) -> Vec<ExpectedFile> {
        let mut all = Vec::new();
        for (at, one) in self.expected.iter().enumerate() {
            match one.check(zone, around) {
                Ok(expected) => all.push(expected),
                Err((field, text)) => wrong.add(format!("expected.{at}.{field}"), text),
            }
        }
        all
    }
}

impl PatternSettings {
    /// Of one group: what a tag is, is said once.
    fn regex(&self) -> Result<Regex, String> {
        let regex = Regex::new(&self.find);
        let regex = regex.map_err(|error| {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default().trim();
            format!("`{}` is no regular expression: {last}", self.find)
        })?;
        // The whole match is the first of them.
        if regex.captures_len() == 2 {
            return Ok(regex);
        }
        let groups = regex.captures_len().saturating_sub(1);
        Err(format!("`{}`: expected one group in round brackets, found {groups}", self.find))
    }
}

type Misfit = (&'static str, String);

impl ExpectedSettings {
    fn check(&self, zone: Tz, around: Around<'_>) -> Result<ExpectedFile, Misfit> {
        if !Expected::is_name(&self.name) || self.name.is_empty() || self.name.contains('/') {
            let text = "expected a name with the day's date by strftime, as STMT_%Y%m%d*.xml";
            return Err(("name", text.to_owned()));
        }
        if let Some((first, again)) = Expected::days_of_one_name(&self.name) {
            let text = format!(
                "{first} and {again} have the same name, so that an old file would be taken for \
                 a new one; expected the date with its year, month and day, as STMT_%Y%m%d*.xml, \
                 or, where the names have no more, a name without a date: `*` in its place, and \
                 the time of writing tells the day"
            );
            return Err(("name", text));
        }
        let by = NaiveTime::parse_from_str(&self.by, "%H:%M");
        let by = by.map_err(|_bad| ("by", "expected a time of day, as 07:30".to_owned()))?;
        if self.lag_days > LAG_MAX {
            return Err(("lag_days", format!("expected 0 to {LAG_MAX}")));
        }
        if self.days.is_empty() {
            return Err(("days", "expected days of the week, as [\"mon\", \"tue\"]".to_owned()));
        }
        let mut calendar = Calendar::of(self.days.iter().map(|day| day.day()));
        calendar.target = self.calendar == Some(CalendarWord::Target);
        calendar.holidays = self.holidays(around)?;
        let since = self.since.as_deref().map(|text| date(text).map_err(|text| ("since", text)));
        let file =
            Expected { name: self.name.clone(), by, zone, lag_days: self.lag_days, calendar };
        Ok(ExpectedFile { file, since: since.transpose()? })
    }

    fn holidays(&self, around: Around<'_>) -> Result<BTreeSet<NaiveDate>, Misfit> {
        let own = self.holidays.iter().map(|text| date(text));
        let mut all: BTreeSet<NaiveDate> =
            own.collect::<Result<_, _>>().map_err(|text| ("holidays", text))?;
        let Some(file) = &self.holidays_file else { return Ok(all) };
        let path = (around.at)(file);
        let shown = path.display();
        let text = std::fs::read_to_string(&path)
            .map_err(|error| ("holidays_file", format!("{shown} cannot be read: {error}")))?;
        for (number, line) in (1_u64..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if !line.is_empty() {
                let wrong = |text| ("holidays_file", format!("{shown}:{number}: {text}"));
                all.insert(date(line).map_err(wrong)?);
            }
        }
        Ok(all)
    }
}

fn date(text: &str) -> Result<NaiveDate, String> {
    text.parse().map_err(|_bad| format!("expected a day as 2026-12-24, found `{text}`"))
}

/// A fingerprint as OpenSSH shows it: 32 bytes in base64, without padding.
pub fn is_fingerprint(text: &str) -> bool {
    let is_base64 = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    text.strip_prefix("SHA256:").is_some_and(|hash| hash.len() == 43 && hash.bytes().all(is_base64))
}

fn one_of(
    env: Option<&String>,
    file: Option<&PathBuf>,
    command: Option<&Vec<String>>,
) -> Result<Option<KeySource>, String> {
    match (env, file, command) {
        (None, None, None) => Ok(None),
        (Some(name), None, None) => Ok(Some(KeySource::Env(name.clone()))),
        (None, Some(path), None) => Ok(Some(KeySource::File(path.clone()))),
        (None, None, Some(command)) if command.is_empty() => {
            Err("a command is a program and its arguments".to_owned())
        }
        (None, None, Some(command)) => Ok(Some(KeySource::Command(command.clone()))),
        _several => Err("expected one of …_env, …_file and …_command".to_owned()),
    }
}

fn placed(source: KeySource, around: Around<'_>) -> KeySource {
    match source {
        KeySource::File(file) => KeySource::File((around.at)(&file)),
        other => other,
    }
}

#[derive(Default)]
struct Wrong {
    found: Vec<(String, String)>,
}

impl Wrong {
    fn add(&mut self, field: impl Into<String>, text: impl Into<String>) {
        self.found.push((field.into(), text.into()));
    }

    fn or_none<T>(&mut self, field: &str, read: Result<T, String>) -> Option<T> {
        read.map_err(|text| self.add(field, text)).ok()
    }
}

/// Whether two paths of this machine are one folder, by their words or, where both are there, by
/// what links lead to.
fn is_one_here(one: &Path, other: &Path) -> bool {
    let whole = |path: &Path| plain(&std::path::absolute(path).unwrap_or(path.to_owned()));
    let there = |path: &Path| std::fs::canonicalize(path).ok();
    whole(one) == whole(other) || there(one).is_some_and(|one| there(other) == Some(one))
}

/// A path without `.` and `..`, by its words alone.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match (part, plain.components().next_back()) {
            (Component::CurDir, _) | (Component::ParentDir, Some(Component::RootDir)) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => {
                plain.pop();
            }
            (part, _) => plain.push(part),
        }
    }
    plain
}

/// An address of version 6, which has colons; behind `%` stands the interface that it is of.
fn is_ipv6(host: &str) -> bool {
    let address = host.split_once('%').map_or(host, |(address, _)| address);
    address.parse::<Ipv6Addr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLDER: &str = "name = 'inbox'\nkind = 'folder'\npath = 'in'\n";
    const SFTP: &str = "name = 'bank-a'\nkind = 'sftp'\nhost = 'sftp.bank.example'\n\
                        user = 'shop'\nkey_file = 'bank-a.key'\n";

    fn read(text: &str) -> Result<Source, String> {
        let settings: SourceSettings = toml::from_str(text).map_err(|e| e.to_string())?;
        let at = |path: &Path| Path::new("/etc/tieout").join(path);
        let around = Around { at: &at, zone: chrono_tz::Europe::Berlin };
        let told = |(field, text): (String, String)| format!("{field}: {text}");
        settings
            .check(around)
            .map_err(|wrong| wrong.into_iter().map(told).collect::<Vec<_>>().join("; "))
    }

    fn server(source: &Source) -> &Server {
        match &source.place {
            Place::Sftp(server) => server,
            Place::Folder(path) => panic!("a folder at {}", path.display()),
        }
    }

    #[test]
    fn a_few_lines_make_a_source() {
        let source = read(FOLDER).unwrap();
        assert_eq!(source.place, Place::Folder("/etc/tieout/in".into()));
        assert_eq!(source.convention, Convention::Stable);
        let source = read(SFTP).unwrap();
        let server = server(&source);
        assert_eq!(
            (server.address().as_str(), server.path.as_str()),
            ("sftp.bank.example:22", ".")
        );
        assert_eq!(server.key_file.as_deref(), Some(Path::new("/etc/tieout/bank-a.key")));
        assert_eq!(server.known_hosts, Path::new("/etc/tieout/known_hosts"));
        assert_eq!((server.connect_timeout.as_secs(), server.timeout.as_secs()), (10, 30));
        assert_eq!(source.zone, chrono_tz::Europe::Berlin);
    }

    #[test]
    fn a_name_whose_part_of_a_date_comes_again_is_refused() {
        let of = |name: &str| format!("{FOLDER}[[expected]]\nname = '{name}'\nby = '07:30'\n");
        let text = read(&of("a_%m%d.xml")).unwrap_err();
        let says = "expected.0.name: 2024-01-01 and 2025-01-01 have the same name, so that";
        assert!(text.contains(says), "{text}");
        assert!(read(&of("a_%Y%m.xml")).is_ok());
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_name() {
        let expected = "[[expected]]\nname = 'a_%Y%m%d.xml'\nby = '07:30'\n";
        for (text, says) in [
            (format!("{FOLDER}host = 'x'"), "host: it has no say at a folder"),
            (format!("{SFTP}path = '~/out'"), "path: `~` is of shells alone"),
            (format!("{FOLDER}glob = []"), "glob: expected at least one"),
            (format!("{FOLDER}glob = ['a/*']"), "glob.0: expected a pattern of names"),
            (format!("{FOLDER}ready = 'marker'"), "marker: `ready"),
            (format!("{FOLDER}ready = 'marker'\nmarker = 'done'"), "marker: expected a name"),
            (format!("{FOLDER}ready = 'marker'\nmarker = '{{name}}'"), "marker: expected a name"),
            (format!("{FOLDER}ready = 'marker'\nmarker = 'x/{{name}}'"), "marker: expected"),
            (format!("{FOLDER}marker = '{{name}}.ok'"), "marker: it has no say"),
            (format!("{FOLDER}tags = []"), "tags: expected at least one kind"),
            (format!("{FOLDER}tags = ['mandate', 'text']"), "tags.1: `text`: expected one of"),
            (format!("{FOLDER}tags = ['endtoend']"), "tags.0: `endtoend`: expected one of"),
            (
                format!("{FOLDER}patterns = [{{ in = 'words', find = '(a)' }}]"),
                "patterns.0.in: `words`: expected one of",
            ),
            (
                format!("{FOLDER}patterns = [{{ in = 'text', find = 'INV-\\d+' }}]"),
                "patterns.0.find: `INV-\\d+`: expected one group in round brackets, found 0",
            ),
            (
                format!("{FOLDER}patterns = [{{ in = 'text', find = '(a)(b)' }}]"),
                "patterns.0.find: `(a)(b)`: expected one group in round brackets, found 2",
            ),
            (
                format!("{FOLDER}patterns = [{{ in = 'text', find = '(a' }}]"),
                "patterns.0.find: `(a` is no regular expression: error: unclosed group",
            ),
            (format!("{FOLDER}zone = 'Berlin'"), "zone: expected a zone"),
            (format!("{FOLDER}stable_for = '0s'"), "stable_for: expected a span"),
            (format!("{FOLDER}stable_for = 'soon'"), "not a span"),
            (format!("{FOLDER}archive = ''"), "archive: expected the name"),
            (format!("{FOLDER}archive = './.'"), "that is not the source's own"),
            (format!("{FOLDER}pasword_env = 'x'"), "unknown field"),
            (format!("{FOLDER}password = 'x'"), "unknown field"),
            (FOLDER.replace("inbox", "in/box"), "name: expected 1 to 64"),
            (FOLDER.replace("path = 'in'", ""), "path: expected the folder"),
            (SFTP.replace("key_file = 'bank-a.key'", ""), "key_file: expected a way to log in"),
            (SFTP.replace("user = 'shop'", ""), "user: expected the user"),
            (SFTP.replace("sftp.bank", "me@sftp.bank"), "host: expected the server"),
            (format!("{SFTP}host_key = ['SHA256:abc']"), "host_key.0: expected a fingerprint"),
            (format!("{SFTP}host_key = ['MD5:00']"), "host_key.0: expected a fingerprint"),
            (
                format!("{SFTP}password_env = 'A'\npassword_file = 'b'"),
                "password_env: expected one",
            ),
            (format!("{SFTP}passphrase_command = []"), "passphrase_env: a command is"),
            (format!("{SFTP}timeout = '1h'"), "timeout: expected a span"),
            (format!("{SFTP}port = 0x1ffff"), "invalid value"),
            (format!("{SFTP}{}", expected.replace("%d", "%H")), "expected.0.name: expected"),
            (format!("{SFTP}{}", expected.replace("07:30", "7.30")), "expected.0.by: expected"),
            (format!("{SFTP}{expected}lag_days = 31"), "expected.0.lag_days"),
            (format!("{SFTP}{expected}days = []"), "expected.0.days"),
            (format!("{SFTP}{expected}days = ['monday']"), "unknown variant"),
            (
                format!("{SFTP}{expected}holidays = ['24.12.']"),
                "expected.0.holidays: expected a day",
            ),
            (format!("{SFTP}{expected}holidays_file = '/none'"), "holidays_file: /none cannot"),
            (format!("{SFTP}{expected}since = 'now'"), "expected.0.since: expected a day"),
            (format!("{SFTP}[decrypt]\nkey_file = 'k'\npassphrase_command = []"), "a command is"),
        ] {
            let said = read(&text).unwrap_err();
            assert!(said.contains(says), "{text}: {said}");
        }
    }

    #[test]
    fn a_server_s_name_has_no_port_in_it() {
        for (text, says) in [
            (format!("{SFTP}port = 0"), "port: expected 1 to 65535"),
            (SFTP.replace("sftp.bank.example", "h:22"), "host: expected the name or address alone"),
            (
                SFTP.replace("sftp.bank.example", "[::1]"),
                "host: expected the name or address alone",
            ),
            (SFTP.replace("sftp.bank.example", "::1:x"), "the port stands in `port`"),
        ] {
            let said = read(&text).unwrap_err();
            assert!(said.contains(says), "{said}");
        }
    }

    /// Each run would give every file of it a longer name.
    #[test]
    fn an_archive_is_never_the_sources_own_folder_by_another_name() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().join("in");
        std::fs::create_dir(&here).unwrap();
        std::os::unix::fs::symlink(&here, folder.path().join("link")).unwrap();
        let of_folder = |path: &str| FOLDER.replace("'in'", &format!("'{path}'"));
        let of_server = |path: &str| format!("{SFTP}path = '{path}'\n");
        let here = here.display().to_string();
        for (source, archive, is_refused) in [
            (FOLDER.to_owned(), "/etc/tieout/in", true),
            (FOLDER.to_owned(), "/etc/tieout/../tieout/./in/", true),
            (FOLDER.to_owned(), "../in", true),
            (FOLDER.to_owned(), "done/..", true),
            (FOLDER.to_owned(), "..", false),
            (FOLDER.to_owned(), "../done", false),
            (FOLDER.to_owned(), "/in", false),
            (FOLDER.to_owned(), "in", false),
            (of_folder(&here), "../link", true),
            (of_folder(&here), "../none", false),
            (of_server("/out"), "/out", true),
            (of_server("/out/"), "//out/.", true),
            (of_server("/out"), "/../out", true),
            (of_server("/out"), "../out", true),
            (of_server("out"), "../out", true),
            (of_server("../out"), "../../out", false),
            (of_server("../out"), "../out", true),
            (of_server("."), "done/..", true),
            (of_server("."), "..", false),
            (of_server("/out"), "/done", false),
            (of_server("out"), "done", false),
        ] {
            let text = format!("{source}archive = '{archive}'\n");
            let read = read(&text);
            assert_eq!(read.is_err(), is_refused, "{text}: {read:?}");
            if let Err(said) = read {
                assert!(said.contains("archive: expected the name of a folder"), "{said}");
            }
        }
    }

    #[test]
    fn an_address_of_version_6_is_a_host() {
        for host in ["::1", "2001:db8::22", "fe80::1%eth0"] {
            let source = read(&SFTP.replace("sftp.bank.example", host)).unwrap();
            assert_eq!(server(&source).address(), format!("[{host}]:22"));
        }
    }

    #[test]
    fn references_are_taken_for_tags_as_it_is_said() {
        assert_eq!(read(FOLDER).unwrap().tags, TagRules::default());
        let own = "tags = ['mandate', 'end_to_end_id']\n\
                   patterns = [{ in = 'text', find = 'INV-(\\d+)' }]";
        let rules = read(&format!("{FOLDER}{own}")).unwrap().tags;
        assert_eq!(rules.order, [TagKind::Mandate, TagKind::EndToEndId]);
        assert_eq!(rules.patterns[0].0, TagKind::Text);
        assert_eq!(&rules.patterns[0].1.captures("x INV-12").unwrap()[1], "12");
        assert_ne!(rules, TagRules::default());
    }

    #[test]
    fn a_calendar_is_days_holidays_and_a_file_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("holidays");
        std::fs::write(&file, "# ours\n2026-12-24 # half\n\n2026-12-31\n").unwrap();
        let more = format!(
            "[[expected]]\nname = 'a.xml'\nby = '07:30'\ndays = ['sat']\ncalendar = 'target'\n\
             holidays = ['2026-11-21']\nholidays_file = '{}'\nsince = '2026-11-01'\nlag_days = 0",
            file.display()
        );
        let source = read(&format!("{FOLDER}zone = 'Asia/Tokyo'\n{more}")).unwrap();
        let expected = &source.expected[0];
        let day = |text: &str| date(text).unwrap();
        assert_eq!(expected.since, Some(day("2026-11-01")));
        assert_eq!((expected.file.lag_days, expected.file.zone), (0, chrono_tz::Asia::Tokyo));
        let calendar = &expected.file.calendar;
        assert!(calendar.has(day("2026-11-28")));
        for no in ["2026-11-27", "2026-11-21", "2026-12-24", "2026-12-26"] {
            assert!(!calendar.has(day(no)), "{no}");
        }
        std::fs::write(&file, "2026-12-24\nsoon\n").unwrap();
        let said = read(&format!("{FOLDER}{more}")).unwrap_err();
        assert!(said.contains("holidays:2: expected a day"), "{said}");
    }

    #[tokio::test]
    async fn secrets_are_read_where_they_are_named() {
        let text = format!(
            "{SFTP}passphrase_env = 'P'\npassword_command = ['printf', 'a b']\n\
             [decrypt]\nkey_file = 'k'\npassphrase_env = 'D'"
        );
        let source = read(&text).unwrap();
        let env: EnvLookup =
            std::sync::Arc::new(|name| (name != "NO").then(|| format!("{name}!\n")));
        let secrets = source.secrets(&env).await.unwrap();
        assert_eq!(secrets.passphrase.unwrap().expose(), "P!");
        assert_eq!(secrets.password.unwrap().expose(), "a b");
        assert_eq!(secrets.decrypt.unwrap().expose(), "D!");
        let source = read(&text.replace("'P'", "'NO'")).unwrap();
        let error = source.secrets(&env).await.unwrap_err();
        assert_eq!(error.exit(), Exit::Config);
        assert!(error.to_string().contains("NO"), "{error}");
    }
}
