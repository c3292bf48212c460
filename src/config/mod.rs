//! tieout.toml and what overrides it → [`Config`], aggregating each room's own settings.
//!
//! Nobody but the faces imports this room: a room is handed its own settings. It reads files and
//! the environment, and it never prints or keeps a secret: secrets are named, not written.
//!
//! Adding a section: its settings in the room that needs them, its name in [`TOP`], its reading
//! in `reading`, its lines in `default.toml`.

pub mod check;
pub mod defaults;
pub mod document;
pub mod init;
pub mod names;
pub mod policy;
pub mod problem;
pub mod reading;
pub mod reference;
pub mod schema;
pub mod sections;
pub mod version;
pub mod web;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use chrono_tz::Tz;
use encoding_rs::{Encoding, UTF_8};

use crate::config::problem::ConfigError;
use crate::config::sections::{Given, Limits, Origin, Override, Shown};
use crate::config::web::WebSettings;
use crate::decide::person::FourEyes;
use crate::decide::rules::RuleSet;
use crate::monitor::settings::MonitoringSettings;
use crate::psp::rules::RuleFile;
use crate::psp::settings::PspKind;
use crate::run::setup::{AccountSetup, FailOn, Setup};
use crate::settlement::sources::settings::Source;
use crate::settlement::table::Table;
use crate::sinks::settings::{DeliverySettings, Sink};
use crate::store::mapping::TableSettings;
use crate::store::settings::DatabaseSettings;

/// The name that a configuration file has where none is named.
pub const FILE_NAME: &str = "tieout.toml";

/// Every name that may stand at the top of the file.
pub const TOP: [&str; 16] = [
    "business_timezone",
    "database",
    "account",
    "table",
    "policy",
    "rules",
    "report",
    "limits",
    "cases",
    "monitoring",
    "web",
    "format",
    "source",
    "files",
    "sink",
    "delivery",
];

/// A commented file with every setting, its default and an example.
pub const DEFAULT: &str = include_str!("default.toml");

/// The configuration, whole and checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// The file it was read from.
    pub path: PathBuf,
    /// The zone of business days.
    pub business_timezone: Given<Tz>,
    /// The database's settings, its address resolved.
    pub database: DatabaseSettings,
    /// The PSP accounts by name.
    pub accounts: BTreeMap<String, AccountSetup>,
    /// The mapped tables.
    pub tables: Vec<TableSettings>,
    /// Rules: the user's, then the shipped.
    pub rules: RuleSet,
    /// The files that they stand in, in the same order.
    pub rule_files: Vec<RuleFile>,
    /// Where reports go.
    pub report_dir: PathBuf,
    /// Conditions that turn exit 0 into 4.
    pub fail_on: Vec<FailOn>,
    /// Limits of a run.
    pub limits: Limits,
    /// From which amount on a person's decision needs a second person.
    pub four_eyes: FourEyes,
    /// Who is told how runs end.
    pub monitoring: MonitoringSettings,
    /// The review page.
    pub web: WebSettings,
    /// Formats of files that the user described.
    pub formats: Vec<Table>,
    /// Where settlement files come from.
    pub sources: Vec<Source>,
    /// Where fetched files lie until their lines are in the database.
    pub spool_dir: PathBuf,
    /// Where events are delivered.
    pub sinks: Vec<Sink>,
    /// How they are.
    pub delivery: DeliverySettings,
    /// Every setting that was given or resolved, with its value and where that comes from, in the
    /// order of paths: what the hash below is of.
    pub shown: Vec<Shown>,
    /// Files that hold secrets of one line each, by the settings that name them.
    pub secret_files: Vec<(String, PathBuf)>,
    /// SHA-256 of the effective settings, secrets left out.
    pub config_sha256: String,
    /// Names rules and deciding settings together.
    pub policy_version: String,
}

impl Config {
    /// Which of the names of a filter no account or table has, for whoever wonders why nothing is
    /// meant by it.
    pub fn unknown_names(&self, account: Option<&str>, table: Option<&str>) -> Option<String> {
        let accounts: Vec<&str> = self.accounts.keys().map(String::as_str).collect();
        let tables: Vec<&str> = self.tables.iter().map(|table| table.name.as_str()).collect();
        let given = [
            ("account is called", "configured are", account, accounts),
            ("table is called", "mapped are", table, tables),
        ];
        let texts = given.into_iter().filter_map(|(what, known, given, names)| {
            let name = given.filter(|name| !names.contains(name))?;
            Some(format!("no {what} `{name}`: {known} {}", names.join(", ")))
        });
        let texts: Vec<String> = texts.collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }

    /// What the run is told.
    pub fn setup(&self) -> Setup {
        Setup {
            env: std::sync::Arc::new(named_secret),
            tables: self.tables.clone(),
            accounts: self.accounts.clone(),
            accounts_with_files: self.accounts_with_files(),
            rules: self.rules.clone(),
            policy_version: self.policy_version.clone(),
            config_sha256: self.config_sha256.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            business_timezone: self.business_timezone.value,
            report_dir: self.report_dir.clone(),
            sources: self.sources.clone(),
            formats: self.formats.clone(),
            spool_dir: self.spool_dir.clone(),
            sinks: self.sinks.clone(),
            delivery: self.delivery.clone(),
            four_eyes: self.four_eyes.clone(),
        }
    }

    fn accounts_with_files(&self) -> BTreeSet<String> {
        let by_files = self.accounts.iter().filter(|(_, a)| a.settings.psp == PspKind::Files);
        let from_sources = self.sources.iter().filter_map(|source| source.account.clone());
        by_files.map(|(name, _)| name.clone()).chain(from_sources).collect()
    }
}

/// Finds the file, reads it, and lays `overrides` over it.
///
/// # Errors
/// With everything that was found wrong, each at its place. Nothing was done.
pub fn load(named: Option<&Path>, overrides: &[Override]) -> Result<Config, ConfigError> {
    let path = find(named)?;
    let text = text_of(&path)?;
    let places: Vec<Override> = places(overrides).chain(overrides.iter().cloned()).collect();
    reading::read(&path, &text, &places)
}

/// A file's text: UTF-8, or what its first bytes say that it is (UTF-16, as some editors save it).
fn text_of(path: &Path) -> Result<String, ConfigError> {
    let bytes = std::fs::read(path)
        .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
    let not_text = |line| ConfigError::NotText { path: path.to_owned(), line };
    let (encoding, mark) = Encoding::for_bom(&bytes).unwrap_or((UTF_8, 0));
    let body = bytes.get(mark..).unwrap_or_default();
    if encoding != UTF_8 {
        let text = encoding.decode_without_bom_handling_and_without_replacement(body);
        return text.map(Cow::into_owned).ok_or_else(|| not_text(1));
    }
    std::str::from_utf8(body).map(str::to_owned).map_err(|error| {
        let read = body.get(..error.valid_up_to()).unwrap_or_default();
        not_text(read.split(|byte| *byte == b'\n').count())
    })
}

/// What `--concurrency` says of every account.
pub const EVERY_CONCURRENCY: &str = "account.*.concurrency";

/// What `--rate` says of every account.
pub const EVERY_RATE: &str = "account.*.requests_per_second";

/// Where files are put, by variables that hold for every command: what one writes another reads.
const PLACES: [(&str, &str); 2] =
    [("report.dir", names::REPORT_DIR), ("files.spool", names::FILES_SPOOL)];

/// Those that are set, and that no flag of this command says otherwise.
fn places(overrides: &[Override]) -> impl Iterator<Item = Override> {
    let is_free = move |path: &str| !overrides.iter().any(|given| given.path == path);
    PLACES.into_iter().filter(move |(path, _)| is_free(path)).filter_map(|(path, name)| {
        Some(Override { path, value: variable(name)?, origin: Origin::Env(name) })
    })
}

/// The environment variables that the configuration names, where one is found: `…_env = "NAME"`.
pub fn variables_named(named: Option<&Path>) -> Vec<String> {
    let text = find(named).ok().and_then(|path| text_of(&path).ok());
    let root: Option<toml::Table> = text.and_then(|text| text.parse().ok());
    let mut names = Vec::new();
    let mut rest: Vec<toml::Value> = root.into_iter().map(toml::Value::Table).collect();
    while let Some(value) = rest.pop() {
        match value {
            toml::Value::Array(items) => rest.extend(items),
            toml::Value::Table(fields) => {
                for (name, value) in fields {
                    match value {
                        toml::Value::String(text) if name.ends_with("_env") => {
                            // Anything else is refused, and may be the secret itself.
                            if reading::may_name_a_variable(&text) {
                                names.push(text);
                            }
                        }
                        other => rest.push(other),
                    }
                }
            }
            _plain => {}
        }
    }
    names.sort();
    names.dedup();
    names
}

/// The formats that the file describes; nothing else of it is read, so that a file can be looked
/// at before there is an account or a database.
///
/// # Errors
/// As [`load`], of these alone.
pub fn formats(named: Option<&Path>) -> Result<Vec<Table>, ConfigError> {
    let path = find(named)?;
    let text = text_of(&path)?;
    reading::read_formats(&path, &text)
}

/// Looks for the file: the named one; else here, in the user's configuration, in the system's.
fn find(named: Option<&Path>) -> Result<PathBuf, ConfigError> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    let user = variable(names::XDG_CONFIG_HOME)
        .map(PathBuf::from)
        .or_else(|| variable(names::HOME).map(|home| PathBuf::from(home).join(".config")));
    let mut looked = vec![PathBuf::from(FILE_NAME)];
    looked.extend(user.map(|folder| folder.join("tieout").join(FILE_NAME)));
    looked.push(PathBuf::from("/etc/tieout").join(FILE_NAME));
    match looked.iter().find(|path| path.is_file()) {
        Some(path) => Ok(path.clone()),
        None => Err(ConfigError::NotFound { looked }),
    }
}

/// An environment variable that is set and not empty.
#[expect(clippy::disallowed_methods, reason = "config is the room that reads the environment")]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// What a secret's name stands for: an environment variable, or a credential of this name that
/// systemd handed to the service.
pub fn named_secret(name: &str) -> Option<String> {
    variable(name).or_else(|| {
        // A name is never a path: it stays within the folder.
        let is_plain = !name.is_empty() && !name.contains('/') && !name.starts_with('.');
        let folder = variable(names::CREDENTIALS_DIRECTORY).filter(|_| is_plain)?;
        std::fs::read_to_string(Path::new(&folder).join(name)).ok()
    })
}

/// Where a file of the configuration is: beside it, or among the credentials of the service.
pub fn place(folder: &Path, file: &Path) -> PathBuf {
    match file.strip_prefix("$CREDENTIALS_DIRECTORY") {
        Ok(name) => match variable(names::CREDENTIALS_DIRECTORY) {
            Some(credentials) => Path::new(&credentials).join(name),
            None => file.to_owned(),
        },
        Err(_elsewhere) => folder.join(file),
    }
}
