//! `doctor`: everything that a run stands on, looked at one after the other, and for each thing
//! that is wrong the next command.
//!
//! It only reads, at the database and at the PSPs, and is meant for production: a look costs a
//! few short queries and a few requests. It ends at nothing: what one look could not tell is a
//! finding, and the next look goes on.

mod accounts;
mod agreement;
mod apart;
mod database;
mod disk;
mod paid;
mod secrets;
pub mod sources;
mod sinks;
mod tables;

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::exit::Exit;
use crate::psp::probe::Probe;
use crate::run::clock::DatabaseClock;
use crate::run::left_out;
use crate::run::setup::{AccountSetup, Setup};
use crate::run::shutdown::Stop;
use crate::store::database::Database;
use crate::store::settings::DatabaseSettings;
use crate::store::source_table::SourceTable;

/// How a thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// As it should be.
    Ok,
    /// A run works, and something should be known or mended.
    Warn,
    /// A run would refuse, or do harm; the exit that it leads to.
    Fail(Exit),
}

impl Level {
    /// The word of the screen.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail(_) => "FAIL",
        }
    }
}

/// One line of the doctor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at: `database`, `role`, a table's or an account's name.
    pub what: String,
    /// How it stands.
    pub level: Level,
    /// A stable word for programs: `no_index`, `tag_shared`.
    pub code: &'static str,
    /// One sentence.
    pub text: String,
    /// What to do next; always there after a warning or a failure.
    pub next: Option<String>,
}

/// Where findings go, one by one as they are made.
pub type Say<'a> = &'a mut (dyn FnMut(Finding) + Send);

/// Looks at everything that a run of this setup stands on; the strongest exit comes back.
pub async fn examine(
    setup: &Setup,
    settings: &DatabaseSettings,
    stop: &Stop,
    say: Say<'_>,
) -> Exit {
    let mut exit = Exit::Ok;
    let mut say = |finding: Finding| {
        if let Level::Fail(found) = finding.level {
            exit = exit.or_stronger(found);
        }
        say(finding);
    };
    let opened = match Database::look(settings).await {
        Ok(db) => Some(db),
        Err(error) => {
            say(database::refused(&error));
            None
        }
    };
    let mut mapped = Vec::new();
    let mut indexes = Indexes::new();
    let mut only_looks = false;
    if let Some(db) = &opened {
        // Who only looks is asked for no right to write, as in a dry run.
        only_looks = database::look(db, &mut say).await;
        let looking = match only_looks {
            true => Database::rehearse(settings).await.ok(),
            false => None,
        };
        let by = looking.as_ref().unwrap_or(db);
        mapped = tables::look(setup, by, &mut indexes, &mut say).await;
        if let Some(looking) = &looking {
            looking.close().await;
        }
    }
    let reading = database::clock(opened.as_ref()).await;
    let probes = accounts::probe(setup, stop, reading.clock(), &mapped).await;
    reading.tell(&probes, &mut say);
    let known = Known { setup, db: opened.as_ref(), tables: &mapped, indexes: &indexes };
    for name in setup.accounts.keys() {
        match probes.get(name) {
            Some(probe) => accounts::look(&known, name, probe, &mut say).await,
            None => accounts::files_only(&known, name, &mut say).await,
        }
    }
    sources::look(setup, &mut say).await;
    sinks::look(setup, opened.as_ref(), &mut say).await;
    disk::look(&setup.report_dir, &mut say);
    if let Some(file) = Database::file(settings).filter(|_| !only_looks && opened.is_some()) {
        disk::database(&file, &mut say);
    }
    if !setup.sources.is_empty() {
        disk::spool(&setup.spool_dir, &mut say);
    }
    if let Some(db) = &opened {
        db.close().await;
    }
    exit
}

/// Files of secrets, each with the setting that names it, that others than their owner may read.
pub fn open_secrets(files: &[(String, PathBuf)]) -> Vec<Finding> {
    secrets::look(files)
}

/// What to say of a login that only looks, where this is one: no run is carried out by it, and as
/// in a dry run it is asked for no right to write.
pub async fn only_looks(db: &Database) -> Option<Finding> {
    database::only_looks(db).await
}

/// What to say of tables of tieout's that this login may not look at; nothing where they are not
/// made yet.
pub async fn out_of_sight(db: &Database) -> Option<Finding> {
    database::out_of_sight(db).await
}

/// Whether stuck rows of what each mapping reads are the same rows in what it writes; nothing
/// where they are, and where both are one.
pub async fn written(db: &Database, mapped: &[SourceTable]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for table in mapped {
        findings.extend(tables::written(db, table).await);
    }
    findings
}

/// Values of each mapping that a constraint of its table refuses: a run could not write them.
pub async fn refused_values(db: &Database, mapped: &[SourceTable]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for table in mapped {
        findings.extend(tables::refused_values(db, table).await);
    }
    findings
}

/// Columns of times and amounts of which no looked-at value is one: each row would need a person.
pub async fn unread_values(db: &Database, mapped: &[SourceTable]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for table in mapped {
        findings.extend(tables::unread_values(db, table).await);
    }
    findings
}

/// What some rows of each table show that its mapping passes over: a status that nobody named,
/// accounts and kinds that are told apart by a column.
pub async fn passed_over(db: &Database, mapped: &[SourceTable]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for table in mapped {
        let beside = left_out::beside(&table.settings, mapped.iter().map(|other| &other.settings));
        findings.extend(tables::passed_over(db, table, &beside).await);
    }
    findings.extend(tables::taken_twice(db, mapped).await);
    findings
}

/// Mappings by which a worker never sees a hand-back, though it is told by the status.
pub fn unseen_retries(mapped: &[SourceTable]) -> Vec<Finding> {
    mapped.iter().filter_map(tables::unseen_retries).collect()
}

/// Tags of rows that files alone tell of, and that look like card numbers; of some rows of each
/// table.
pub async fn tags_like_cards(
    db: &Database,
    mapped: &[SourceTable],
    accounts: &BTreeMap<String, AccountSetup>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for table in mapped {
        findings.extend(tables::tags_like_cards(db, table, accounts).await);
    }
    findings
}

/// What the accounts' looks may ask.
struct Known<'a> {
    setup: &'a Setup,
    db: Option<&'a Database>,
    tables: &'a [SourceTable],
    indexes: &'a Indexes,
}

/// Statements that make what look-ups lack, by table and column.
type Indexes = BTreeMap<(String, String), String>;

/// An account's probe, or why it could not be opened; none of an account that has no API.
type Probes = BTreeMap<String, Result<Probe, String>>;

/// The clocks, read side by side.
struct Reading {
    /// The database's clock, going on; this machine's where no database answers.
    clock: DatabaseClock,
    /// Database minus this machine, in milliseconds.
    ahead_ms: Option<i64>,
}

impl Reading {
    fn clock(&self) -> DatabaseClock {
        self.clock.clone()
    }
}

fn ok(what: &str, code: &'static str, text: String) -> Finding {
    Finding { what: what.to_owned(), level: Level::Ok, code, text, next: None }
}

fn warn(what: &str, code: &'static str, text: String, next: impl Into<String>) -> Finding {
    let next = Some(next.into());
    Finding { what: what.to_owned(), level: Level::Warn, code, text, next }
}

fn fail(
    what: &str,
    exit: Exit,
    code: &'static str,
    text: String,
    next: impl Into<String>,
) -> Finding {
    let next = Some(next.into());
    Finding { what: what.to_owned(), level: Level::Fail(exit), code, text, next }
}
