//! What a run is told: the configuration worked out for this room, and the command's options.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use chrono::TimeDelta;
use chrono_tz::Tz;

use crate::decide::expected::Expected;
use crate::decide::person::FourEyes;
use crate::decide::policy::{BrakePolicy, GaveUp, Mode, Timing, Tolerance};
use crate::decide::rules::RuleSet;
use crate::model::time::Instant;
use crate::psp::settings::AccountSettings;
use crate::run::kick::Kick;
use crate::secret::EnvLookup;
use crate::settlement::sources::settings::Source;
use crate::settlement::table::Table;
use crate::sinks::settings::{DeliverySettings, Sink};
use crate::store::mapping::{Channel, TableSettings};

/// The configuration, as the run needs it.
#[derive(Clone)]
pub struct Setup {
    /// The mapped tables.
    pub tables: Vec<TableSettings>,
    /// The PSP accounts by name.
    pub accounts: BTreeMap<String, AccountSetup>,
    /// Those of them that settlement files are brought in for.
    pub accounts_with_files: BTreeSet<String>,
    /// Looks up environment variables that settings name; only the wiring may touch them.
    pub env: EnvLookup,
    /// Rules: the user's, then the shipped.
    pub rules: RuleSet,
    /// Names rules and deciding settings together: a short hash.
    pub policy_version: String,
    /// SHA-256 of the effective configuration, secrets left out.
    pub config_sha256: String,
    /// tieout's version.
    pub version: String,
    /// The zone of business days.
    pub business_timezone: Tz,
    /// Where reports go: `DIR/YYYY-MM-DD/RUN/`.
    pub report_dir: PathBuf,
    /// Where settlement files come from.
    pub sources: Vec<Source>,
    /// Formats of files that the user described.
    pub formats: Vec<Table>,
    /// Where fetched files lie until their lines are in the database.
    pub spool_dir: PathBuf,
    /// Where events are delivered.
    pub sinks: Vec<Sink>,
    /// How they are.
    pub delivery: DeliverySettings,
    /// From which amount on a person's decision needs a second person.
    pub four_eyes: FourEyes,
}

impl Setup {
    /// Whether events of a table are staged: where a sink takes them, and where the outbox is all
    /// that the application hears of its rows by, whether it is told or reads there.
    pub fn stages(&self, table: &TableSettings) -> bool {
        table.channel == Channel::Outbox || self.sinks.iter().any(|sink| sink.wants(&table.name))
    }

    /// The files that are to come for an account, from all its sources.
    pub fn expected_for(&self, account: &str) -> Vec<Expected> {
        let own = self.sources.iter().filter(|one| one.account.as_deref() == Some(account));
        own.flat_map(|source| &source.expected).map(|one| one.file.clone()).collect()
    }
}

/// One account, with what deciding at it depends on.
#[derive(Debug, Clone)]
pub struct AccountSetup {
    /// How it is asked.
    pub settings: AccountSettings,
    /// How far tieout may go.
    pub mode: Mode,
    /// Spans of time.
    pub timing: Timing,
    /// How often a row may be handed back.
    pub max_retries: u32,
    /// What then.
    pub gave_up: GaveUp,
    /// The brake.
    pub brake: BrakePolicy,
    /// How far a settled line may lie from its row.
    pub tolerance: Tolerance,
}

/// Which timestamp a window cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// The row's creation.
    Created,
    /// The row's last attempt.
    Attempted,
}

impl On {
    /// The word of the command line and of stored scopes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Attempted => "attempted",
        }
    }
}

/// A window, half-open, as it was worked out from the command's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// From here …
    pub from: Option<Instant>,
    /// … to before here.
    pub to: Option<Instant>,
    /// Which timestamp.
    pub on: On,
    /// As it was asked for: `2026-11-19`, `since 6h`.
    pub words: String,
}

/// Conditions of `--fail-on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailOn {
    /// A new case.
    Cases,
    /// A row older than `max_age` is still open.
    Aged,
    /// Nothing was due.
    Empty,
    /// Money was found twice, may still be taken twice, or turned up after a hand-back.
    Duplicates,
    /// A window compared whole is not the same in all books.
    Differs,
}

impl FailOn {
    /// The word of `--fail-on`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cases => "cases",
            Self::Aged => "aged",
            Self::Empty => "empty",
            Self::Duplicates => "duplicates",
            Self::Differs => "differs",
        }
    }
}

/// The options of one `tieout run`.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The caller's own id; default: a new UUIDv7.
    pub run_id: Option<String>,
    /// Narrows to a window.
    pub window: Option<Window>,
    /// Narrows to these keys; they are due now.
    pub ids: Option<Vec<String>>,
    /// Narrows to the rows of these cases, by a person's word.
    pub kick: Option<Kick>,
    /// Narrows to these accounts.
    pub accounts: Option<Vec<String>>,
    /// Raises `stuck_after`.
    pub min_age: Option<TimeDelta>,
    /// At most so many rows.
    pub limit: i64,
    /// Somebody asked for just so many: those that are left are no news.
    pub is_limit_asked: bool,
    /// Rows claimed and decided together.
    pub batch: i64,
    /// Claims nothing new after this long, and begins no question.
    pub max_duration: Option<TimeDelta>,
    /// Writes nothing anywhere.
    pub dry_run: bool,
    /// Rows of the window that were given up are looked at as well.
    pub given_up: bool,
    /// Conditions that turn exit 0 into 4.
    pub fail_on: Vec<FailOn>,
    /// Whether a report is written.
    pub report: bool,
    /// Where nothing is due, it is counted what waits: for a person who looks on.
    pub tells_waiting: bool,
    /// Added to the database's clock: a rehearsal of another time, never a user's run.
    pub clock_offset: TimeDelta,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            run_id: None,
            window: None,
            ids: None,
            kick: None,
            accounts: None,
            min_age: None,
            limit: 10_000,
            is_limit_asked: false,
            batch: 10_000,
            max_duration: None,
            dry_run: false,
            given_up: false,
            fail_on: Vec::new(),
            report: true,
            tells_waiting: false,
            clock_offset: TimeDelta::zero(),
        }
    }
}
