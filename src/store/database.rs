//! One store, whichever database it is.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;

use chrono::{NaiveDate, TimeDelta};
use tokio::sync::mpsc::{Receiver, Sender};

use crate::model::reason::Reason;
use crate::model::time::Instant;
use crate::model::transaction::{SiblingFact, Transaction};
use crate::store::batches::{BatchBy, BatchDriver, BatchParts, ExplainedBatch, Says};
use crate::store::compare::{CompareDriver, Compared};
use crate::store::driver::{
    AccountCase, AccountState, AuditFinding, CaseCounts, CaseFilter, CheckRow, Driver, Pause,
    Paused, Undone, Writer,
};
use crate::store::effects::RowEffects;
use crate::store::error::StoreError;
use crate::store::files::{
    AbsentCase, AttemptFile, FileDriver, FileEnd, FileFilter, FileHead, FileOfRun, FileRow,
    KnownName, LineCase, LineMark, LineOfRun, LinePlace, LinesOfRun, OpenLine, Part, Sighting,
    Standing, StatementRow, StoredLine,
};
use crate::store::inspect::Inspect;
use crate::store::mapping::TableSettings;
use crate::store::outbox::{
    By, Deed, Done, Health, Letter, LetterEnd, LetterFilter, Merging, OpenLetter, OutboxDriver,
    SinkLease, SinkState, Stale, Taker, Turn, Undelivered, Which,
};
use crate::store::payouts::{Booking, NamedPayout, Payout, PayoutDriver, PayoutKey};
use crate::store::people::{
    Approved, CaseLinks, CaseNote, CaseRuns, CaseSum, NewProposal, PeopleDriver, Proposal,
};
use crate::store::postgres::PgStore;
use crate::store::prune::{Prunable, Pruned, Pruning};
use crate::store::records::{
    AbandonedRun, ApplyEnd, CaseRow, ClaimFilter, Claimed, HandbackRow, JournalRow, RunEnd, RunRow,
    RunStart, Tagged, TotalLine, Waiting,
};
use crate::store::release::{Difference, Release, Said, Spoken, Word};
use crate::store::replay::{Decided, RecordPlace, ReplayDriver, RuleCount, UnseenPlace, Written};
use crate::store::settings::{DatabaseSettings, shown_address};
use crate::store::source_table::SourceTable;
use crate::store::sqlite::SqliteStore;
use crate::store::watch::{Alert, AlertAsk, CaseLine, Change, FileFigures, Mark, StuckLine};

/// How long the end of the connections is waited for: SQLite may have a log to fold in.
const CLOSING: Duration = Duration::from_secs(30);

/// The opened database.
#[derive(Debug, Clone)]
pub enum Database {
    /// PostgreSQL.
    Postgres(PgStore),
    /// One file.
    Sqlite(SqliteStore),
}

impl Database {
    /// Opens the database of these settings (resolved before), and refuses what cannot serve: a
    /// replica, a read-only session, a pooler in transaction mode. tieout's tables are not looked
    /// at: see [`Database::require_schema`].
    pub async fn connect(settings: &DatabaseSettings) -> Result<Self, StoreError> {
        let url = settings.address()?;
        match url.split_once(':').map(|(scheme, _)| scheme) {
            Some("postgres" | "postgresql") => {
                Ok(Self::Postgres(PgStore::connect(settings).await?))
            }
            Some("sqlite") => Ok(Self::Sqlite(SqliteStore::connect(url).await?)),
            _other => Err(neither(url)),
        }
    }

    /// As [`Database::connect`], for commands that only read: an SQLite file is not given a
    /// write-ahead log that it had not, and a login or a session of PostgreSQL that can only read
    /// will do.
    pub async fn connect_as_is(settings: &DatabaseSettings) -> Result<Self, StoreError> {
        let url = settings.address()?;
        match url.strip_prefix("sqlite:") {
            Some(_file) => Ok(Self::Sqlite(SqliteStore::connect_as_is(url).await?)),
            None => Self::rehearse(settings).await,
        }
    }

    /// Opens the database for a dry run, which writes nothing: a login, a session or a file that
    /// can only be read will do, and nothing can be written through it. What else cannot serve is
    /// refused as by [`Database::connect`]: a replica lags, and lag looks like absence.
    pub async fn rehearse(settings: &DatabaseSettings) -> Result<Self, StoreError> {
        let url = settings.address()?;
        match url.split_once(':').map(|(scheme, _)| scheme) {
            Some("postgres" | "postgresql") => {
                Ok(Self::Postgres(PgStore::rehearse(settings).await?))
            }
            Some("sqlite") => Ok(Self::Sqlite(SqliteStore::rehearse(url).await?)),
            _other => Err(neither(url)),
        }
    }

    /// Refuses what was read of a file that could not be locked and was written meanwhile. Asked
    /// at the end of a dry run; anything else is locked, and reads what was committed.
    pub fn is_as_it_was(&self) -> Result<(), StoreError> {
        match self {
            Self::Postgres(_) => Ok(()),
            Self::Sqlite(store) => store.is_as_it_was(),
        }
    }

    /// The SQLite file that these settings name.
    pub fn file(settings: &DatabaseSettings) -> Option<PathBuf> {
        SqliteStore::file(settings.address().ok()?)
    }

    /// Whether a column holds values of its declared type alone; a file keeps what it is given.
    pub fn keeps_types(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    /// Opens the database to look at it alone, for commands that never write. What cannot serve
    /// is refused as by [`Database::connect`].
    pub async fn look(settings: &DatabaseSettings) -> Result<Self, StoreError> {
        let url = settings.address()?;
        match url.strip_prefix("sqlite:") {
            Some(_file) => Ok(Self::Sqlite(SqliteStore::look(url).await?)),
            None => Self::connect(settings).await,
        }
    }

    /// Refuses tieout's tables where they are missing, older or newer than this version needs.
    pub async fn require_schema(&self) -> Result<(), StoreError> {
        let (found, wanted) = self.schema_state().await?;
        match found.cmp(&wanted) {
            std::cmp::Ordering::Less => {
                let elsewhere = self.elsewhere(found).await?;
                Err(StoreError::SchemaBehind { found, wanted, elsewhere })
            }
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Greater => Err(StoreError::SchemaAhead { found, wanted }),
        }
    }

    /// Where no table of tieout's was found: the schemas that have some all the same.
    pub async fn elsewhere(&self, found: i64) -> Result<Vec<String>, StoreError> {
        match found {
            0 => Ok(self.server().await?.elsewhere),
            _made => Ok(Vec::new()),
        }
    }

    /// `PostgreSQL` or `SQLite`, for people.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Postgres(_) => "PostgreSQL",
            Self::Sqlite(_) => "SQLite",
        }
    }

    /// Writes what a SQLite file's log holds back to the file, as far as nobody reads it, beside
    /// whatever else is done: whoever closes the file last finds little left to write.
    pub async fn fold_log(&self) {
        match self {
            Self::Postgres(_) => {}
            Self::Sqlite(store) => store.fold_log().await,
        }
    }

    /// Ends every connection properly. One that does not end, since its server or its disk answers
    /// nothing any more, ends with the process: what was committed stands, and the rest never was.
    pub async fn close(&self) {
        let closed = async {
            match self {
                Self::Postgres(store) => store.close().await,
                Self::Sqlite(store) => store.close().await,
            }
        };
        let most = match self {
            Self::Postgres(store) => store.worth_waiting().unwrap_or(CLOSING),
            Self::Sqlite(_) => CLOSING,
        };
        if tokio::time::timeout(most, closed).await.is_err() {
            let database = self.kind();
            tracing::warn!(database, "A connection did not end; it is left to the program's exit");
        }
    }
}

fn neither(url: &str) -> StoreError {
    StoreError::Setting {
        field: "url".to_owned(),
        problem: format!("`{}` begins with neither postgres: nor sqlite:", shown_address(url)),
    }
}

/// Hands each verb to the driver at hand.
macro_rules! delegate {
    ($verbs:ident: $($verb:ident($($name:ident: $of:ty),*) -> $answer:ty;)+) => {
        impl $verbs for Database {
            $(async fn $verb(&self, $($name: $of),*) -> Result<$answer, StoreError> {
                match self {
                    Self::Postgres(store) => {
                        store.answer(std::pin::pin!(store.$verb($($name),*))).await
                    }
                    Self::Sqlite(store) => store.$verb($($name),*).await,
                }
            })+
        }
    };
}

delegate! { Driver:
    migrate() -> ();
    schema_state() -> (i64, i64);
    now() -> Instant;
    map_tables(tables: &[TableSettings], accounts: &[String]) -> Vec<SourceTable>;
    unmapped_statuses(table: &SourceTable) -> Vec<String>;
    lacks_status(table: &SourceTable) -> bool;
    role_statements(tables: &[SourceTable], prefix: &str) -> Option<String>;
    start_run(start: &RunStart, now: Instant) -> ();
    heartbeat(run_id: &str, now: Instant, lease_until: Instant) -> bool;
    abandon_run(run_id: &str, now: Instant, dead_after: TimeDelta) -> Option<AbandonedRun>;
    close_abandoned(now: Instant, dead_after: TimeDelta) -> Vec<AbandonedRun>;
    close_run(run_id: &str, end: &RunEnd, now: Instant) -> Option<String>;
    undone(now: Instant) -> Undone;
    enrol(table: &SourceTable, filter: &ClaimFilter, now: Instant) -> u64;
    claim_plan(table: &SourceTable, filter: &ClaimFilter, limit: i64, now: Instant) -> Vec<String>;
    claim_due(run_id: &str, table: &SourceTable, filter: &ClaimFilter, limit: i64, now: Instant,
        lease_until: Instant) -> Vec<Claimed>;
    is_due(run_id: &str, table: &SourceTable, filter: &ClaimFilter, now: Instant) -> bool;
    new_among(table: &SourceTable, filter: &ClaimFilter, keys: &[String]) -> Vec<String>;
    preview_due(table: &SourceTable, filter: &ClaimFilter, limit: i64, now: Instant)
        -> Vec<Claimed>;
    release(run_id: &str, rows: &[Claimed], now: Instant) -> ();
    siblings(table: &SourceTable, rows: &[&Transaction]) -> HashMap<String, Vec<SiblingFact>>;
    shared_tags(table: &SourceTable, account: &str, rows: &[&Transaction]) -> HashSet<String>;
    rows_tagged(table: &SourceTable, account: &str, tags: &[String]) -> Vec<Tagged>;
    resolve_tags(table: &SourceTable, account: &str, tags: &[String]) -> HashSet<String>;
    rows_known_by(table: &SourceTable, account: &str, tags: &[String], references: &[String],
        keys: &[String]) -> Vec<Transaction>;
    keys_storing(table: &SourceTable, account: &str, references: &[String])
        -> Vec<(String, String)>;
    resolve_references(table: &SourceTable, account: &str, references: &[String])
        -> HashMap<String, Vec<(String, String)>>;
    taken_references(account: &str, references: &[String])
        -> HashMap<String, Vec<(String, String)>>;
    references_of(account: &str, table: &str, keys: &[String]) -> Vec<(String, String)>;
    apply(run_id: &str, writer: &mut Writer, table: &SourceTable, batch: Vec<RowEffects>,
        now: Instant) -> ApplyEnd;
    put_account_case(run_id: &str, case: &AccountCase, now: Instant) -> i64;
    close_account_case(run_id: &str, account: &str, reason: Reason, resolution: &str,
        now: Instant) -> bool;
    pause_account(account: &str, by: &str, why: &str, now: Instant) -> Paused;
    resume_account(account: &str) -> Option<Pause>;
    pauses() -> Vec<Pause>;
    account_state(account: &str) -> AccountState;
    put_account_state(account: &str, unanswered_since: Option<Instant>,
        usual_permille: Option<u32>) -> ();
    run(run_id: &str) -> Option<RunRow>;
    runs(limit: i64) -> Vec<RunRow>;
    run_totals(run_id: &str) -> Vec<TotalLine>;
    withheld_of_run(run_id: &str) -> i64;
    journal_of_run(run_id: &str, after: Option<(String, i64)>, limit: i64) -> Vec<JournalRow>;
    journal_of_row(table: &str, key: &str) -> Vec<JournalRow>;
    check(table: &str, key: &str) -> Option<CheckRow>;
    handbacks(table: &str, key: &str) -> Vec<HandbackRow>;
    evidence(sha256: &str) -> Option<String>;
    cases(filter: &CaseFilter) -> Vec<CaseRow>;
    case_counts(run_id: &str) -> CaseCounts;
    case(number: i64) -> Option<CaseRow>;
    waiting(tables: &[String], now: Instant) -> Waiting;
    stuck_by_account() -> Vec<StuckLine>;
    open_cases_by_age(edges: &[Instant]) -> Vec<CaseLine>;
    file_figures() -> FileFigures;
    move_marks(scope: &str, changes: &[(String, Change)]) -> Vec<Mark>;
    marks(scope: &str) -> Vec<Mark>;
    take_alerts(ask: &AlertAsk) -> Vec<Alert>;
    settle_alerts(ask: &AlertAsk, alerts: &[Alert], is_told: bool) -> ();
    note_monitoring(run_id: &str, problems: &[String]) -> ();
    prunable(before: Instant) -> Prunable;
    prune_run(pruning: &Pruning<'_>, now: Instant) -> Option<Pruned>;
    pruned_at(run_id: &str) -> Option<Instant>;
    verify_audit() -> AuditFinding;
}

delegate! { FileDriver:
    put_file(run_id: &str, head: &FileHead, parts: Receiver<Part>, now: Instant) -> FileEnd;
    known_names(source: &str) -> Vec<KnownName>;
    names_of_account(source: &str, account: &str) -> Vec<KnownName>;
    note_name(run_id: &str, sighting: &Sighting, file: i64, now: Instant) -> ();
    note_archived(source: &str, name: &str, raw_sha256: &str, now: Instant) -> ();
    note_spooled(file: i64, spooled_as: &str) -> ();
    put_absent_case(run_id: &str, case: &AbsentCase, now: Instant) -> ();
    close_absent_cases(run_id: &str, source: &str, but: &[String], now: Instant) -> u64;
    ask_release(file: i64, word: &Word, now: Instant) -> Said;
    releases_waiting(file: Option<i64>) -> Vec<Spoken>;
    release_quarantined(run_id: &str, spoken: &Spoken, parts: Receiver<Part>, now: Instant)
        -> Release;
    release_held(run_id: &str, spoken: &Spoken, now: Instant) -> Release;
    refuse_release(run_id: &str, spoken: &Spoken, why: &str, now: Instant) -> bool;
    differences(file: i64) -> Vec<Difference>;
    lines_of(account: &str, tags: &[String], references: &[String]) -> Vec<StoredLine>;
    lines_plan(account: &str, tags: &[String]) -> Vec<String>;
    open_lines(account: &str, after: Option<LinePlace>, limit: i64) -> Vec<OpenLine>;
    open_of_money(account: &str, minors: &[i64]) -> Vec<StoredLine>;
    taken_out(account: &str, after: Option<LinePlace>, limit: i64) -> Vec<StoredLine>;
    taken_alone(account: &str, after: Option<LinePlace>, limit: i64) -> Vec<StoredLine>;
    taken_out_of(table: &str, keys: &[String]) -> Vec<StoredLine>;
    told_of_rows(account: &str, since: Instant) -> Vec<(LinePlace, (String, String))>;
    doubted(places: &[LinePlace]) -> Vec<(LinePlace, LinePlace)>;
    note_looked_again(run_id: &str, places: &[LinePlace]) -> ();
    exclude_lines(places: &[LinePlace]) -> ();
    asleep(table: &str, rows: &[(String, LinePlace)], now: Instant) -> Vec<String>;
    parked(table: &str, rows: &[(String, LinePlace)]) -> Vec<String>;
    cased(table: &str, rows: &[(String, LinePlace)]) -> Vec<String>;
    wake(table: &str, keys: &[String], now: Instant) -> u64;
    forget_looks(table: &str, keys: &[String]) -> u64;
    listed_after_all(account: &str, since: Instant) -> Vec<(String, String)>;
    files(filter: &FileFilter) -> Vec<FileRow>;
    statements(file: i64, after: i64, limit: i64) -> Vec<StatementRow>;
    attempt_files(account: &str) -> Vec<AttemptFile>;
    standings(account: &str, since: NaiveDate) -> Vec<Standing>;
    lines_of_file(after: LinePlace, limit: i64) -> Vec<StoredLine>;
    lines_of_run(run_id: &str, which: LinesOfRun, after: Option<LinePlace>, limit: i64)
        -> Vec<LineOfRun>;
    lines_of_rows(run_id: &str, rows: &[(String, String)], until: Instant) -> Vec<StoredLine>;
    files_of_run(run_id: &str, after: i64, limit: i64) -> Vec<FileOfRun>;
    mark_lines(run_id: &str, marks: &[LineMark], now: Instant) -> Vec<LinePlace>;
    put_line_cases(run_id: &str, cases: &[LineCase], now: Instant) -> u64;
    bookings_gone() -> Vec<StoredLine>;
    close_line_cases(run_id: &str, now: Instant) -> u64;
}

delegate! { CompareDriver:
    stream_rows(table: &SourceTable, filter: &ClaimFilter, rows: Sender<Vec<Transaction>>) -> ();
    files_of_days(account: &str, days: (NaiveDate, NaiveDate), after: i64, limit: i64) -> Vec<i64>;
    put_compared(run_id: &str, found: &[Compared]) -> ();
    compared_of_run(run_id: &str, after: i64, limit: i64) -> Vec<Compared>;
}

delegate! { BatchDriver:
    open_batches(account: &str, says: Says, after: Option<LinePlace>, limit: i64)
        -> Vec<StoredLine>;
    batch_parts(booking: LinePlace, by: BatchBy) -> BatchParts;
    explain_batch(run_id: &str, batch: &ExplainedBatch, now: Instant) -> bool;
}

delegate! { PeopleDriver:
    identity() -> Option<String>;
    case_sums(filter: &CaseFilter) -> Vec<CaseSum>;
    case_sums_of_first(filter: &CaseFilter, most: i64) -> Vec<CaseSum>;
    open_ages_of_first(edges: &[Instant], most: i64) -> Vec<(usize, i64)>;
    case_runs(case: &CaseRow) -> CaseRuns;
    case_plan(filter: &CaseFilter) -> Vec<String>;
    case_notes(case: i64) -> Vec<CaseNote>;
    case_links(case: i64) -> CaseLinks;
    links_of(cases: &[i64]) -> HashMap<i64, CaseLinks>;
    similar_cases(case: &CaseRow, limit: i64) -> Vec<CaseRow>;
    proposals(cases: &[i64]) -> Vec<Proposal>;
    approved(cases: Option<&[i64]>, after: i64, limit: i64) -> Vec<Approved>;
    assign_cases(cases: &[i64], owner: Option<&str>, by: &str, now: Instant) -> u64;
    comment_cases(cases: &[i64], text: &str, by: &str, now: Instant) -> u64;
    propose(proposals: &[NewProposal], by: &str, now: Instant) -> Vec<i64>;
    approve(proposals: &[(i64, Option<String>)], why: &str, by: &str, now: Instant) -> Vec<i64>;
    turn_down(proposals: &[i64], why: &str, by: &str, now: Instant) -> Vec<i64>;
    refuse_approved(run_id: &str, proposal: i64, why: &str, now: Instant) -> bool;
    leave_as_is(run_id: &str, proposal: i64, now: Instant) -> bool;
    merge_cases(into: Option<i64>, cases: &[i64], why: &str, by: &str, now: Instant) -> u64;
    purgeable_cases(cases: &[i64], before: Instant) -> Vec<i64>;
    purge_cases(cases: &[i64], before: Instant) -> u64;
    rows_to_look_at(
        table: &str, reasons: &[Reason], before: Instant, limit: i64, proposed: bool
    ) -> Vec<String>;
    note_looked_at(table: &str, keys: &[String], now: Instant) -> ();
}

delegate! { PayoutDriver:
    payouts_named(texts: &[String], until: Option<Instant>) -> Vec<NamedPayout>;
    payout(key: &PayoutKey, until: Option<Instant>) -> Option<Payout>;
    payouts_at(places: &[LinePlace], until: Instant) -> BTreeSet<PayoutKey>;
    payouts_of_file(file: i64, until: Option<Instant>) -> Vec<Payout>;
    payout_bookings(payout: &PayoutKey, until: Option<Instant>) -> Vec<Booking>;
}

delegate! { ReplayDriver:
    decided_since(since: Instant, after: Option<RecordPlace>, limit: i64)
        -> Vec<(RecordPlace, Decided)>;
    open_row_cases(after: i64, limit: i64) -> Vec<(i64, Decided)>;
    unseen_row_cases(after: Option<UnseenPlace>, limit: i64) -> Vec<(UnseenPlace, Decided)>;
    shown_by_cases(cases: &[i64]) -> Vec<(i64, String)>;
    last_written(table: &str, keys: &[String]) -> HashMap<String, Written>;
    ended_by_people(table: &str, keys: &[String]) -> HashMap<String, String>;
    rule_counts(since: Instant) -> Vec<RuleCount>;
}

delegate! { OutboxDriver:
    outbox_is_empty() -> bool;
    distribute(takers: &[Taker], limit: i64, now: Instant) -> u64;
    suppress_stale(now: Instant) -> Stale;
    lease_sink(sink: &str, owner: &str, now: Instant, until: Instant, now_at_all: bool) -> Turn;
    due_letters(lease: &SinkLease, which: Which, limit: i64, now: Instant, until: Instant)
        -> Option<Vec<Letter>>;
    due_plan(sink: &str, which: Which, now: Instant) -> Vec<String>;
    settle_letters(lease: &SinkLease, ends: &[(String, LetterEnd)], now: Instant) -> bool;
    release_sink(lease: &SinkLease, health: &Health, now: Instant) -> ();
    sink_states(now: Instant) -> Vec<SinkState>;
    open_letters(filter: &LetterFilter, limit: i64) -> (Vec<OpenLetter>, i64);
    merging(filter: &LetterFilter, limit: i64) -> Merging;
    undelivered_of_row(table: &str, key: &str) -> Vec<Undelivered>;
    change_letters(deed: Deed, filter: &LetterFilter, by: By<'_>, now: Instant) -> Done;
    notify(channel: &str, payloads: &[String]) -> ();
}
