//! From the file's text to a checked [`Config`]: every section read, every cross-reference held.
//!
//! Nothing here reads a clock or a network. All mistakes are gathered before it gives up.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use chrono_tz::Tz;
use serde::Deserialize;

use crate::config::check::table_misfits;
use crate::config::document::{Document, Section, Sought, quoted};
use crate::config::init::OPEN;
use crate::config::policy::{PolicySettings, Resolved, listed, misfits};
use crate::config::problem::{ConfigError, Place, Problem};
use crate::config::sections::{
    CasesSettings, FilesSettings, Given, Limits, LimitsSettings, Origin, Override, ReportSettings,
    Resolver, RulesSettings, Shown, read_fail_on, read_fail_on_list, show_fail_on,
};
use crate::config::web::WebSettings;
use crate::config::{Config, EVERY_CONCURRENCY, EVERY_RATE, TOP, version};
use crate::config::{named_secret, place};
use crate::decide::person::FourEyes;
use crate::decide::rules::RuleSet;
use crate::model::near::nearest;
use crate::monitor::settings::MonitoringSettings;
use crate::psp::rules::{self, RuleFile};
use crate::psp::settings::{AccountSettings, CONCURRENCY_MAX, PspKind, REQUESTS_PER_SECOND_MAX};
use crate::run::setup::{AccountSetup, FailOn};
use crate::settlement::sources::settings::{Around, Source, SourceSettings};
use crate::settlement::table::{FormatSettings, Table};
use crate::settlement::{FORMATS, Format};
use crate::sinks::settings::{DeliverySettings, How, Sink, SinkSettings};
use crate::store::error::StoreError;
use crate::store::mapping::TableSettings;
use crate::store::settings::{DatabaseSettings, holds_password};

/// `account = { const = "stripe_live" }`: every row of the table belongs to one account.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OneAccount {
    #[serde(rename = "const")]
    name: String,
}

/// What is said where a secret stands instead of the name of its variable. It is not shown.
const NO_VARIABLE: &str = "expected the name of an environment variable, such as STRIPE_KEY; if \
                           this is the secret itself, take it out of the file, and change it: it \
                           was written down";

/// The same where the path of a file belongs.
const NO_PATH: &str = "expected the path of a file, such as /etc/tieout/stripe.key; if this is \
                       the secret itself, take it out of the file, and change it: it was written \
                       down";

/// How keys begin that are no names of variables or of systemd's credentials.
const KEYS: [&str; 5] = ["sk_", "rk_", "pk_", "whsec_", "xox"];

/// Letters of the shortest word that is taken for a key and not for a file's name.
const KEY_LETTERS: usize = 12;

/// Letters of the shortest word that is looked at for whether somebody drew it by lot.
const DRAWN_LETTERS: usize = 20;

/// In such a word letters and digits take turns so often at least. `PRODUCTION2026` has one turn.
const DRAWN_TURNS: usize = 3;

/// Whether a setting ends so. Below these two its name may be that of a column.
fn is_named(path: &str, end: &str) -> bool {
    let is_column = ["table.", "format."].iter().any(|section| path.starts_with(section));
    !is_column && path.ends_with(end)
}

/// Whether a text can be the name of an environment variable, or of a credential.
pub fn may_name_a_variable(text: &str) -> bool {
    let may_be = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let may_begin = |c: char| may_be(c) && !c.is_ascii_digit();
    let is_key = KEYS.iter().any(|start| text.starts_with(start)) || is_drawn(text);
    text.starts_with(may_begin) && !is_key && text.chars().all(may_be)
}

/// Whether a text has no sense, or a part of it: PagerDuty's keys, say, begin as nothing else does.
fn is_drawn(text: &str) -> bool {
    let turns = |word: &str| {
        let kinds: Vec<bool> = word.bytes().map(|byte| byte.is_ascii_digit()).collect();
        kinds.windows(2).filter(|pair| pair.first() != pair.last()).count()
    };
    let mut words = text.split(['_', '-', '.']);
    words.any(|word| word.len() >= DRAWN_LETTERS && turns(word) >= DRAWN_TURNS)
        || uuid::Uuid::try_parse(text).is_ok()
}

/// Whether a setting that names an environment variable has something else for a value.
fn is_no_variable(path: &str, text: &str) -> bool {
    is_named(path, "_env") && !may_name_a_variable(text)
}

/// Whether a setting that names a file has an address, a key or what the file would hold.
fn is_no_path(path: &str, text: &str, folder: &Path) -> bool {
    if !is_named(path, "_file") {
        return false;
    }
    let may_be = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    // Somebody may call a file as its key begins.
    let is_key = KEYS.iter().any(|start| text.starts_with(start))
        && text.len() >= KEY_LETTERS
        && text.chars().all(may_be)
        && !place(folder, Path::new(text)).exists();
    let is_address = text.contains("://") || text.contains("password=");
    text.is_empty() || text.contains(char::is_control) || is_address || is_key
}

/// Reads a text.
///
/// # Errors
/// With everything that was found wrong, each at its place.
pub fn read(path: &Path, text: &str, overrides: &[Override]) -> Result<Config, ConfigError> {
    let mut reading = Reading {
        folder: path.parent().unwrap_or(Path::new("")).to_owned(),
        document: Document::parse(path, text),
        resolver: Resolver::new(overrides),
    };
    if !reading.document.is_sound() {
        return Err(ConfigError::Invalid { problems: reading.document.finish(&TOP) });
    }
    // What would follow from an open line is no news.
    if reading.document.complain_of_open(OPEN) {
        return Err(ConfigError::Invalid { problems: reading.document.into_problems() });
    }
    let leaves = reading.document.leaves();
    // Nothing more is read then: what would be said of it could hold the secret.
    let folder = reading.folder.clone();
    let no_variable: &Sought<'_> = &is_no_variable;
    let no_path: &Sought<'_> = &|path: &str, text: &str| is_no_path(path, text, &folder);
    let odd = [(no_variable, NO_VARIABLE), (no_path, NO_PATH)];
    if reading.document.complain_of(&odd) {
        return Err(ConfigError::Invalid { problems: reading.document.into_problems() });
    }
    let secret_files = secret_files(&leaves, &folder);
    let parts = reading.parts();
    let Reading { document, resolver, .. } = reading;
    let words = resolver.mistakes.into_iter();
    let mut problems: Vec<Problem> =
        words.map(|(word, text)| Problem { place: Place::Word(word), text }).collect();
    problems.extend(document.finish(&TOP));
    let Some(parts) = parts.filter(|_| problems.is_empty()) else {
        return Err(ConfigError::Invalid { problems });
    };
    let shown = shown(leaves, resolver.shown, &parts.policy);
    Ok(Config {
        path: path.to_owned(),
        business_timezone: parts.timezone,
        database: parts.database,
        config_sha256: version::config_sha256(&shown),
        policy_version: version::policy_version(&parts.rules, &parts.accounts, &shown),
        accounts: parts.accounts,
        tables: parts.tables,
        rules: parts.rules,
        rule_files: parts.rule_files,
        report_dir: parts.report_dir,
        fail_on: parts.fail_on,
        limits: parts.limits,
        four_eyes: parts.four_eyes,
        monitoring: parts.monitoring,
        web: parts.web,
        formats: parts.formats,
        sources: parts.sources,
        spool_dir: parts.spool_dir,
        sinks: parts.sinks,
        delivery: parts.delivery,
        shown,
        secret_files,
    })
}

/// Reads `[[format]]` alone.
///
/// # Errors
/// With what is wrong with them.
pub fn read_formats(path: &Path, text: &str) -> Result<Vec<Table>, ConfigError> {
    let mut document = Document::parse(path, text);
    let found = formats(&mut document);
    let problems = document.into_problems();
    found.filter(|_| problems.is_empty()).ok_or(ConfigError::Invalid { problems })
}

/// Every format that is described; none where one cannot be read.
fn formats(document: &mut Document<'_>) -> Option<Vec<Table>> {
    let mut tables: Vec<Table> = Vec::new();
    let mut all_read = true;
    for entry in document.entries("format") {
        let path = entry.path.clone();
        let checked = document.read::<FormatSettings>(entry).map(|settings| settings.check());
        match checked {
            Some(Ok(table)) => {
                let taken = tables.iter().any(|other| other.name == table.name);
                if taken || Format::parse(&table.name).is_some() {
                    let text = format!(
                        "[[format]] `{}`: another format is called so; names are unique",
                        table.name
                    );
                    document.complain(&format!("{path}.name"), text);
                    all_read = false;
                }
                tables.push(table);
            }
            Some(Err(misfits)) => {
                all_read = false;
                for (field, text) in misfits {
                    document.complain(&format!("{path}.{field}"), format!("`{field}`: {text}"));
                }
            }
            None => all_read = false,
        }
    }
    all_read.then_some(tables)
}

struct Reading<'a> {
    folder: PathBuf,
    document: Document<'a>,
    resolver: Resolver<'a>,
}

struct Parts {
    timezone: Given<Tz>,
    database: DatabaseSettings,
    accounts: BTreeMap<String, AccountSetup>,
    tables: Vec<TableSettings>,
    rules: RuleSet,
    rule_files: Vec<RuleFile>,
    report_dir: PathBuf,
    fail_on: Vec<FailOn>,
    limits: Limits,
    four_eyes: FourEyes,
    monitoring: MonitoringSettings,
    web: WebSettings,
    formats: Vec<Table>,
    sources: Vec<Source>,
    spool_dir: PathBuf,
    sinks: Vec<Sink>,
    delivery: DeliverySettings,
    policy: Resolved,
}

impl<'a> Reading<'a> {
    /// Every section, each tried even where another one failed.
    fn parts(&mut self) -> Option<Parts> {
        let timezone = self.timezone();
        let policy = self.policy();
        let accounts = self.accounts(&policy);
        let tables = self.tables(&accounts);
        let limits = self.limits();
        let four_eyes = self.cases();
        let monitoring = self.monitoring();
        let web = self.web();
        let formats = formats(&mut self.document);
        let sources = self.sources(timezone.as_ref(), &accounts, formats.as_deref());
        let spool_dir = self.spool_dir();
        let database = self.database();
        let sinks = self.sinks(tables.as_deref(), database.as_ref());
        let delivery = self.delivery();
        let (report_dir, fail_on) = self.report()?;
        let rule_files = self.rules()?;
        Some(Parts {
            timezone: timezone?,
            database: database?,
            accounts: accounts.setups,
            tables: tables?,
            rules: rules::combine(&rule_files),
            rule_files,
            report_dir,
            fail_on,
            limits,
            four_eyes,
            monitoring: monitoring?,
            web: web?,
            formats: formats?,
            sources: sources?,
            spool_dir,
            sinks: sinks?,
            delivery: delivery?,
            policy,
        })
    }

    fn timezone(&mut self) -> Option<Given<Tz>> {
        let text = self.document.text("business_timezone");
        let from_file = text.as_deref().map(read_zone);
        if let Some(Err(expected)) = &from_file {
            let text = format!("`business_timezone`: expected {expected}");
            self.document.complain("business_timezone", text);
        }
        let file = from_file.and_then(Result::ok).map(Some);
        let show = |zone: &Option<Tz>| quoted(zone.map_or("", |zone| zone.name()));
        let read = |text: &str| read_zone(text).map(Some);
        let given = self.resolver.pick("business_timezone", file, None, read, show);
        match given.value {
            Some(value) => Some(Given { value, origin: given.origin }),
            None => {
                if text.is_none() {
                    let text = "`business_timezone` is missing: days begin at midnight of a zone; \
                                write business_timezone = \"Europe/Berlin\", or the zone that \
                                finance closes its days in";
                    self.document.lacks(text.to_owned());
                }
                None
            }
        }
    }

    fn database(&mut self) -> Option<DatabaseSettings> {
        let Some(section) = self.document.section("database") else {
            let text = "[database] is missing: where your tables are, and tieout's own beside \
                        them; write [database] and url = \"postgres://…\" or \"sqlite:…\"";
            self.document.lacks(text.to_owned());
            return None;
        };
        let mut settings = self.document.read::<DatabaseSettings>(section)?;
        if settings.url.as_deref().is_some_and(holds_password) {
            let text = "url of [database] holds a password, and a secret does not stand in the \
                        file; write url without it and name it: password_env, password_file, \
                        password_command; or name the whole address: url_env, url_file";
            self.document.complain("database.url", text.to_owned());
            return None;
        }
        settings.url_file = settings.url_file.map(|file| place(&self.folder, &file));
        settings.password_file = settings.password_file.map(|file| place(&self.folder, &file));
        match settings.resolve(named_secret) {
            Ok(settings) => Some(self.beside_the_file(settings)),
            Err(error) => {
                let at = match &error {
                    StoreError::Setting { field, .. } => format!("database.{field}"),
                    _other => "database".to_owned(),
                };
                self.document.complain(&at, error.to_string());
                None
            }
        }
    }

    /// A relative SQLite path is relative to the configuration file.
    fn beside_the_file(&self, mut settings: DatabaseSettings) -> DatabaseSettings {
        let place = settings.url.as_deref().and_then(|url| url.strip_prefix("sqlite:"));
        let place = place.map(|place| place.strip_prefix("//").unwrap_or(place));
        if let Some(place) = place.filter(|place| !place.starts_with(['/', ':'])) {
            settings.url = Some(format!("sqlite:{}", self.folder.join(place).display()));
        }
        settings
    }

    fn policy(&mut self) -> Resolved {
        let section = self.document.section("policy");
        let settings: PolicySettings =
            section.and_then(|section| self.document.read(section)).unwrap_or_default();
        let resolved = settings.over(&Resolved::default());
        for (field, text) in misfits(&resolved) {
            self.document.complain(&format!("policy.{field}"), text);
        }
        resolved
    }

    fn accounts(&mut self, policy: &Resolved) -> Accounts {
        let entries = self.document.entries("account");
        let mut accounts = Accounts::default();
        if entries.is_empty() {
            self.missing_entries("account", "a PSP account to ask");
        }
        let bounds = self.bounds();
        for entry in entries {
            let path = entry.path.clone();
            let name = entry.text_of("name").map(str::to_owned);
            if let Some(name) = &name
                && !accounts.names.insert(name.clone())
            {
                let text = format!("a second [[account]] is called `{name}`; names are unique");
                self.document.complain(&format!("{path}.name"), text);
            }
            let Some(mut setup) = self.account(entry, policy) else { continue };
            // Of an account that has no API nothing is asked.
            if setup.settings.psp != PspKind::Files {
                self.bound(&mut setup.settings, &bounds);
            }
            accounts.setups.insert(setup.settings.name.clone(), setup);
        }
        accounts
    }

    /// What a flag or a variable says of them.
    fn bounds(&mut self) -> Bounds {
        let whole = |text: &str, most: u32| {
            let number = text.parse().ok().filter(|number| (1..=most).contains(number));
            number.ok_or_else(|| format!("1 to {most}"))
        };
        let a_second = |text: &str| whole(text.trim_end_matches("/s"), REQUESTS_PER_SECOND_MAX);
        let at_once = |text: &str| whole(text, CONCURRENCY_MAX);
        Bounds {
            concurrency: self.resolver.overridden(EVERY_CONCURRENCY, at_once),
            requests_per_second: self.resolver.overridden(EVERY_RATE, a_second),
        }
    }

    fn bound(&mut self, settings: &mut AccountSettings, bounds: &Bounds) {
        let begin = format!("account.{}", settings.name);
        for (name, setting, given) in [
            ("concurrency", &mut settings.concurrency, &bounds.concurrency),
            ("requests_per_second", &mut settings.requests_per_second, &bounds.requests_per_second),
        ] {
            let Some(given) = given else { continue };
            *setting = given.value;
            self.resolver.shown.push(Shown {
                path: format!("{begin}.{name}"),
                value: given.value.to_string(),
                origin: given.origin.clone(),
            });
        }
    }

    fn account(&mut self, mut entry: Section<'a>, policy: &Resolved) -> Option<AccountSetup> {
        let path = entry.path.clone();
        let own = entry.take("policy").and_then(|own| self.document.read::<PolicySettings>(own));
        let resolved = own.unwrap_or_default().over(policy);
        // What `[policy]` gets wrong was told there.
        let inherited = misfits(policy);
        for misfit in misfits(&resolved).into_iter().filter(|found| !inherited.contains(found)) {
            self.document.complain(&format!("{path}.policy.{}", misfit.0), misfit.1);
        }
        let mut settings: AccountSettings = self.document.read(entry)?;
        settings.key_file = settings.key_file.map(|file| place(&self.folder, &file));
        settings.ca_file = settings.ca_file.map(|file| place(&self.folder, &file));
        if let Err(error) = settings.check() {
            self.document.complain(&format!("{path}.{}", error.field), error.to_string());
        }
        let tolerance = resolved.tolerance();
        let Resolved { timing, max_retries, gave_up, brake, .. } = resolved;
        let mode = settings.mode;
        Some(AccountSetup { settings, mode, timing, max_retries, gave_up, brake, tolerance })
    }

    fn tables(&mut self, accounts: &Accounts) -> Option<Vec<TableSettings>> {
        let entries = self.document.entries("table");
        if entries.is_empty() {
            self.missing_entries("table", "a table of yours to look after");
        }
        let known: BTreeSet<&str> = accounts.names.iter().map(String::as_str).collect();
        let mut tables: Vec<TableSettings> = Vec::new();
        let mut all_read = true;
        for entry in entries {
            let path = entry.path.clone();
            let Some(table) = self.table(entry) else {
                all_read = false;
                continue;
            };
            for (field, text) in table_misfits(&table, &known) {
                let text = format!("[[table]] {}: {text}", table.name);
                self.document.complain(&format!("{path}.{field}"), text);
            }
            if tables.iter().any(|other| other.name == table.name) {
                let text =
                    format!("a second [[table]] is called `{}`; names are unique", table.name);
                self.document.complain(&format!("{path}.name"), text);
            }
            tables.push(table);
        }
        all_read.then_some(tables)
    }

    fn table(&mut self, mut entry: Section<'a>) -> Option<TableSettings> {
        let path = format!("{}.accounts", entry.path);
        let account = entry.take("account");
        let is_constant = account.is_some();
        let account: Option<OneAccount> = account.and_then(|words| self.document.read(words));
        let mut table = self.document.read::<TableSettings>(entry)?;
        if is_constant {
            if !table.accounts.is_empty() {
                let text = "`accounts` has no say where `account` is a constant; leave it out";
                self.document.complain(&path, format!("[[table]] {}: {text}", table.name));
            }
            table.accounts.insert("*".to_owned(), account?.name);
        }
        Some(table)
    }

    fn missing_entries(&mut self, name: &str, what: &str) {
        if self.document.has(name) {
            return;
        }
        self.document.lacks(format!("there is no [[{name}]]: tieout needs {what}"));
    }

    fn limits(&mut self) -> Limits {
        let section = self.document.section("limits");
        let settings: LimitsSettings =
            section.and_then(|section| self.document.read(section)).unwrap_or_default();
        let (limits, wrong) = settings.resolve(&mut self.resolver);
        for (path, text) in wrong {
            match self.resolver.shown.iter().find(|shown| shown.path == path) {
                Some(Shown { origin: origin @ (Origin::Env(_) | Origin::Flag(_)), .. }) => {
                    self.resolver.mistakes.push((origin.word(), text));
                }
                _from_file => self.document.complain(path, text),
            }
        }
        limits
    }

    fn cases(&mut self) -> FourEyes {
        let section = self.document.section("cases");
        let settings: CasesSettings =
            section.and_then(|section| self.document.read(section)).unwrap_or_default();
        let (four_eyes, wrong) = settings.resolve();
        for (path, text) in wrong {
            self.document.complain(&path, text);
        }
        four_eyes
    }

    fn web(&mut self) -> Option<WebSettings> {
        let section = self.document.section("web");
        let mut settings: WebSettings = match section {
            Some(section) => self.document.read(section)?,
            None => WebSettings::default(),
        };
        settings.beside(&self.folder);
        for (path, text) in settings.misfits() {
            self.document.complain(&format!("web.{path}"), text);
        }
        Some(settings)
    }

    fn monitoring(&mut self) -> Option<MonitoringSettings> {
        let section = self.document.section("monitoring");
        let (mut settings, is_whole): (MonitoringSettings, bool) = match section {
            Some(section) => self.document.read_rest(section)?,
            None => (MonitoringSettings::default(), true),
        };
        let scope = self.resolver.pick(
            "monitoring.scope",
            Some(settings.scope.clone()).filter(|_| self.document.has("monitoring.scope")),
            settings.scope.clone(),
            |text| Ok(text.to_owned()),
            |scope| quoted(scope),
        );
        settings.scope = scope.value;
        let folder = self.folder.clone();
        for alert in &mut settings.alert {
            for file in [&mut alert.url_file, &mut alert.key_file].into_iter().flatten() {
                *file = folder.join(&*file);
            }
        }
        if let Some(file) = settings.healthcheck.as_mut().and_then(|h| h.url_file.as_mut()) {
            *file = folder.join(&*file);
        }
        for (path, text) in settings.misfits() {
            // What a receiver lacks may be what it has by a mistaken name.
            let may_follow = path == "healthcheck" || path.starts_with("alert.");
            if is_whole || !may_follow {
                self.document.complain(&format!("monitoring.{path}"), text);
            }
        }
        is_whole.then_some(settings)
    }

    fn report(&mut self) -> Option<(PathBuf, Vec<FailOn>)> {
        let section = self.document.section("report");
        let settings: ReportSettings =
            section.and_then(|section| self.document.read(section)).unwrap_or_default();
        let folder = self.folder.clone();
        let given = self.resolver.pick(
            "report.dir",
            settings.dir.map(|dir| folder.join(dir)),
            folder.join("reports"),
            |text| Ok(PathBuf::from(text)),
            |dir| quoted(&dir.display().to_string()),
        );
        let words = settings.fail_on.map(|words| {
            let read = words.iter().map(|word| read_fail_on(word));
            read.collect::<Result<Vec<FailOn>, String>>()
        });
        if let Some(Err(expected)) = &words {
            self.document.complain("report.fail_on", format!("`fail_on`: expected {expected}"));
        }
        let fail_on = self.resolver.pick(
            "report.fail_on",
            words.and_then(Result::ok),
            Vec::new(),
            read_fail_on_list,
            |conditions| show_fail_on(conditions),
        );
        Some((given.value, fail_on.value))
    }

    /// Every source; none where one cannot be read.
    fn sources(
        &mut self,
        timezone: Option<&Given<Tz>>,
        accounts: &Accounts,
        formats: Option<&[Table]>,
    ) -> Option<Vec<Source>> {
        let mut sources: Vec<Source> = Vec::new();
        let mut all_read = true;
        for entry in self.document.entries("source") {
            let path = entry.path.clone();
            let Some(settings) = self.document.read::<SourceSettings>(entry) else {
                all_read = false;
                continue;
            };
            let folder = self.folder.clone();
            let at = move |file: &Path| place(&folder, file);
            let zone = timezone.map_or(Tz::UTC, |given| given.value);
            match settings.check(Around { at: &at, zone }) {
                Ok(mut source) => {
                    source.account = source.account.or_else(|| accounts.only());
                    sources.push(source);
                }
                Err(misfits) => {
                    all_read = false;
                    for (field, text) in misfits {
                        let text = format!("[[source]] {}: `{field}`: {text}", settings.name);
                        self.document.complain(&format!("{path}.{field}"), text);
                    }
                    continue;
                }
            }
            for (field, text) in source_misfits(&sources, accounts, formats) {
                let text = format!("[[source]] {}: {text}", settings.name);
                self.document.complain(&format!("{path}.{field}"), text);
            }
        }
        all_read.then_some(sources)
    }

    fn sinks(
        &mut self,
        tables: Option<&[TableSettings]>,
        database: Option<&DatabaseSettings>,
    ) -> Option<Vec<Sink>> {
        let mut sinks: Vec<Sink> = Vec::new();
        let mut all_read = true;
        for entry in self.document.entries("sink") {
            let path = entry.path.clone();
            let Some(mut settings) = self.document.read::<SinkSettings>(entry) else {
                all_read = false;
                continue;
            };
            let files = [
                &mut settings.url_file,
                &mut settings.key_file,
                &mut settings.old_key_file,
                &mut settings.ca_file,
                &mut settings.path,
            ];
            for file in files.into_iter().flatten() {
                *file = place(&self.folder, file);
            }
            let name = settings.name.clone();
            let mut wrong = match settings.check() {
                Ok(sink) => {
                    let wrong = sink_misfits(&sink, &sinks, tables, database);
                    sinks.push(sink);
                    wrong
                }
                Err(misfits) => misfits,
            };
            all_read &= wrong.is_empty();
            for (field, text) in wrong.drain(..) {
                let text = format!("[[sink]] {name}: `{field}`: {text}");
                self.document.complain(&format!("{path}.{field}"), text);
            }
        }
        all_read.then_some(sinks)
    }

    fn delivery(&mut self) -> Option<DeliverySettings> {
        let settings = match self.document.section("delivery") {
            Some(section) => self.document.read::<DeliverySettings>(section)?,
            None => DeliverySettings::default(),
        };
        let wrong = settings.misfits();
        let is_fine = wrong.is_empty();
        for (field, text) in wrong {
            self.document.complain(&format!("delivery.{field}"), text);
        }
        is_fine.then_some(settings)
    }

    fn spool_dir(&mut self) -> PathBuf {
        let section = self.document.section("files");
        let settings: FilesSettings =
            section.and_then(|section| self.document.read(section)).unwrap_or_default();
        let folder = self.folder.clone();
        let given = self.resolver.pick(
            "files.spool",
            settings.spool.map(|spool| folder.join(spool)),
            folder.join("spool"),
            |text| Ok(PathBuf::from(text)),
            |spool| quoted(&spool.display().to_string()),
        );
        given.value
    }

    /// The user's files, then the shipped ones.
    fn rules(&mut self) -> Option<Vec<RuleFile>> {
        let section = self.document.section("rules");
        let settings: RulesSettings = match section {
            Some(section) => self.document.read(section)?,
            None => RulesSettings::default(),
        };
        let mut files = Vec::new();
        for (at, file) in settings.files.iter().enumerate() {
            let name = file.display().to_string();
            let read = match std::fs::read(self.folder.join(file)) {
                Ok(bytes) => {
                    rules::parse_bytes(&bytes, &name, true).map_err(|error| error.to_string())
                }
                Err(error) => Err(format!("the rule file {name} cannot be read: {error}")),
            };
            match read {
                Ok(rules) => files.push(rules),
                Err(problem) => self.document.complain(&format!("rules.files.{at}"), problem),
            }
        }
        match rules::with_shipped(files) {
            Ok(files) => Some(files),
            Err(error) => {
                self.document.complain("rules.files", error.to_string());
                None
            }
        }
    }
}

/// What the last source says that does not fit what else the file says.
fn source_misfits(
    sources: &[Source],
    accounts: &Accounts,
    formats: Option<&[Table]>,
) -> Vec<(&'static str, String)> {
    let Some((source, earlier)) = sources.split_last() else { return Vec::new() };
    let mut found = Vec::new();
    if earlier.iter().any(|other| other.name == source.name) {
        found.push(("name", "another source is called so; names are unique".to_owned()));
    }
    if source.account.is_none() && accounts.names.len() > 1 {
        let names: Vec<&str> = accounts.names.iter().map(String::as_str).collect();
        let text = format!("whose files are these? expected one of: {}", names.join(", "));
        found.push(("account", text));
    }
    if let Some(account) = source.account.as_ref().filter(|name| !accounts.names.contains(*name)) {
        let near = nearest(account, accounts.names.iter().map(String::as_str));
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        found.push(("account", format!("there is no [[account]] `{account}`{near}")));
    }
    let described = |name: &str| {
        // What `[[format]]` gets wrong is told there.
        formats.is_none_or(|formats| formats.iter().any(|format| format.name == name))
    };
    let unknown = |name: &&String| Format::parse(name).is_none() && !described(name);
    if let Some(format) = source.format.as_ref().filter(unknown) {
        let known = FORMATS.iter().map(|known| known.name);
        let near = nearest(
            format,
            known.chain(formats.iter().copied().flatten().map(|f| f.name.as_str())),
        );
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        found.push(("format", format!("`{format}` is no format and no [[format]]{near}")));
    }
    found
}

/// What a sink says that does not fit what else the file says.
fn sink_misfits(
    sink: &Sink,
    earlier: &[Sink],
    tables: Option<&[TableSettings]>,
    database: Option<&DatabaseSettings>,
) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    if earlier.iter().any(|other| other.name == sink.name) {
        found.push(("name", "another sink is called so; names are unique".to_owned()));
    }
    // What `[[table]]` and `[database]` get wrong is told there.
    let known =
        |name: &str| tables.is_none_or(|tables| tables.iter().any(|table| table.name == name));
    if let Some(unknown) = sink.tables.iter().find(|name| !known(name)) {
        let names = tables.unwrap_or_default().iter().map(|table| table.name.as_str());
        let near = nearest(unknown, names);
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        found.push(("tables", format!("there is no [[table]] `{unknown}`{near}")));
    }
    let is_file = database
        .and_then(|database| database.address().ok())
        .is_some_and(|address| address.starts_with("sqlite:"));
    if is_file && matches!(sink.how, How::Notify(_)) {
        found.push(("kind", "SQLite has no NOTIFY; tieout's tables are in SQLite".to_owned()));
    }
    found
}

/// How fast every account may be asked, over what each says of itself.
struct Bounds {
    concurrency: Option<Given<u32>>,
    requests_per_second: Option<Given<u32>>,
}

#[derive(Default)]
struct Accounts {
    /// Every name, also of accounts with mistakes, so that mappings are not blamed for those.
    names: BTreeSet<String>,
    setups: BTreeMap<String, AccountSetup>,
}

impl Accounts {
    /// The one that there is, where there is one alone.
    fn only(&self) -> Option<String> {
        let mut names = self.names.iter();
        names.next().filter(|_| names.next().is_none()).cloned()
    }
}

fn read_zone(text: &str) -> Result<Tz, String> {
    text.parse::<Tz>().map_err(|_unknown| {
        let near = nearest(text, chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name()));
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        format!("a zone of the IANA database such as Europe/Berlin or UTC, found `{text}`{near}")
    })
}

/// Files that hold secrets, by their settings. The keys of sources are looked at with them.
fn secret_files(leaves: &[(String, String)], folder: &Path) -> Vec<(String, PathBuf)> {
    let is_one = |path: &str| {
        let is_key_of_source = path.starts_with("source.") && path.ends_with(".key_file");
        let is_public = path.ends_with(".ca_file") || path.ends_with(".holidays_file");
        is_named(path, "_file") && !is_key_of_source && !is_public
    };
    let named = leaves.iter().filter(|(path, _text)| is_one(path));
    // Leaves are as TOML and JSON both write them.
    let placed = named.filter_map(|(path, text)| {
        let file: String = serde_json::from_str(text).ok()?;
        Some((path.clone(), place(folder, Path::new(&file))))
    });
    placed.collect()
}

/// Every setting: what was resolved by precedence, the policy with its defaults, and the rest of
/// the file as it stands.
fn shown(leaves: Vec<(String, String)>, resolved: Vec<Shown>, policy: &Resolved) -> Vec<Shown> {
    let mut all = resolved;
    for (field, value) in listed(policy) {
        let path = format!("policy.{field}");
        let within = format!("{path}.");
        let is_it = |leaf: &String| *leaf == path || leaf.starts_with(&within);
        let in_file = leaves.iter().any(|(leaf, _)| is_it(leaf));
        let origin = if in_file { Origin::File } else { Origin::Default };
        all.push(Shown { path, value, origin });
    }
    for (path, value) in leaves {
        if !all.iter().any(|shown| shown.path == path) {
            let value = version::without_secret(&path, value);
            all.push(Shown { path, value, origin: Origin::File });
        }
    }
    all.sort_by(|a, b| a.path.cmp(&b.path));
    all
}
