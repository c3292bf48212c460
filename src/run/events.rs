//! What a run tells while it goes on. Screens, `--json` and progress bars are its readers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::exit::Exit;
use crate::model::reason::{Outcome, Reason};
use crate::model::time::Instant;
use crate::run::bring::BroughtIn;
use crate::run::fetch::SourceNote;
use crate::run::match_lines::LinesNote;
use crate::run::release::ReleasedNote;
use crate::store::files::LinePlace;
use crate::store::records::{AbandonedRun, JournalRow, NotApplied, TotalLine, Waiting};

/// One thing that happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// The run began.
    Started {
        /// Its id.
        run_id: String,
        /// The window's ends, where one was asked for.
        window: Option<crate::run::setup::Window>,
        /// Whether nothing is written.
        dry_run: bool,
        /// When (the database's clock).
        at: Instant,
    },
    /// A dead run was found and closed.
    Abandoned(AbandonedRun),
    /// A status value that the mapping neither maps nor ignores: its rows were not seen.
    UnmappedStatus {
        /// The mapped table.
        table: String,
        /// The value.
        value: String,
    },
    /// Bytes of a file are coming from a source.
    Fetching {
        /// The source.
        source: String,
        /// The file.
        name: String,
        /// Bytes that have come of it.
        bytes: u64,
        /// All its bytes.
        size: u64,
    },
    /// A settlement file was brought in.
    BroughtIn(Box<BroughtIn>),
    /// A person's word that a settlement file may count was carried out, or refused.
    Released(Box<ReleasedNote>),
    /// A source was fetched from.
    Fetched(Box<SourceNote>),
    /// Rows were claimed.
    Claimed {
        /// The mapped table.
        table: String,
        /// How many.
        rows: usize,
    },
    /// An account is about to be asked about so many rows.
    Asking {
        /// The account.
        account: String,
        /// How many rows.
        rows: usize,
    },
    /// An account was asked.
    Asked(AccountNote),
    /// A row was decided, and is about to be written; in a dry run this is what would be.
    Decided(Box<JournalRow>),
    /// A row that was not carried out as it was told to be decided.
    NotApplied(Box<NotApplied>),
    /// Of a dry run: a line of a settlement file would become the own of a row that had ended.
    LineMatched {
        /// The line.
        place: LinePlace,
        /// The mapped table.
        table: String,
        /// The row's key.
        id: String,
    },
    /// A row that was named and that was not looked at.
    NotLookedAt {
        /// The mapped table.
        table: String,
        /// Its key's text.
        id: String,
        /// Why not.
        why: String,
    },
    /// Something was not examined, with what was not done and what to do next.
    NotExamined {
        /// The class that it raises the exit to.
        exit: Exit,
        /// One line.
        text: String,
    },
    /// The run ended.
    Ended(Box<Summary>),
}

/// What asking one account took.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct AccountNote {
    /// The account.
    pub account: String,
    /// Its PSP's name.
    pub psp: String,
    /// Rows asked about.
    pub rows: u64,
    /// Rows that got an answer.
    pub answered: u64,
    /// Requests sent.
    pub requests: u64,
    /// Requests repeated.
    pub retries: u64,
    /// Requests by how they were answered: `2xx`, `3xx`, `4xx`, `429`, `5xx`, `none`.
    pub by_status: std::collections::BTreeMap<String, u64>,
    /// Objects listed.
    pub listed: u64,
    /// Milliseconds spent.
    pub duration_ms: u64,
    /// The brake's text, where it is on.
    pub brake: Option<String>,
    /// Why the account was stopped, where it was.
    pub stopped: Option<String>,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct Summary {
    /// Its id.
    pub run_id: String,
    /// The process's end.
    pub exit: Exit,
    /// Both sides of the tie-out.
    pub totals: Vec<TotalLine>,
    /// Currencies whose two sides differ; empty when tied.
    pub untied: Vec<String>,
    /// Of the waits: how many by reason.
    pub waits: Vec<(String, u64)>,
    /// Of the waits: rows that ended before and are looked at again, by currency.
    pub watched: Vec<TotalLine>,
    /// What waits for later; asked for only where a person reads it and nothing was due.
    pub waiting: Option<Waiting>,
    /// A window compared whole: how many rows, objects and lines stand where.
    pub compared: BTreeMap<&'static str, u64>,
    /// Of its payouts, how many stand in each state.
    pub payouts: BTreeMap<&'static str, u64>,
    /// What open lines of settlement files came to.
    pub lines: LinesNote,
    /// Rows decided: not those that were given back, as their account was paused meanwhile.
    pub decided: u64,
    /// The same, by account and by what was decided.
    pub by_account: BTreeMap<(String, Outcome), u64>,
    /// The same, by reason.
    pub by_reason: BTreeMap<Reason, u64>,
    /// Of those: rows that the mode left as they were.
    pub withheld: u64,
    /// Cases opened, closed by this run, and open now.
    pub cases: (u64, u64, u64),
    /// The words of `--fail-on` that hold, each with what it counted: `cases (2: C-4, C-5)`.
    pub attention: Vec<String>,
    /// What people approved and the evidence stood against.
    pub approvals_refused: u64,
    /// What people's decisions left in their rows, a sentence each with its case.
    pub kept: Vec<String>,
    /// The report's directory.
    pub report: Option<PathBuf>,
    /// What to do where it could not be written.
    pub hint: Option<String>,
    /// The audit chain's head.
    pub audit_head: Option<String>,
    /// What was asked of each account.
    pub accounts: Vec<AccountNote>,
    /// One line for each thing that was not examined.
    pub not_examined: Vec<String>,
    /// When it began and ended (the database's clock).
    pub started_at: Instant,
    /// The end.
    pub ended_at: Instant,
    /// Whether nothing was written.
    pub dry_run: bool,
}
