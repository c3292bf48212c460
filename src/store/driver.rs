//! The verbs of the store: what each must do, once for both databases.
//!
//! `postgres` and `sqlite` implement them; `tests/it/store.rs` is the one conformance suite.
//! Every verb that writes is one database transaction. No verb takes the current time by itself:
//! `now` is read once by [`Driver::now`] and bound.

use std::collections::{HashMap, HashSet};

use chrono::TimeDelta;

use crate::model::time::Instant;
use crate::model::transaction::{SiblingFact, Transaction};
use crate::store::effects::RowEffects;
use crate::store::error::StoreError;
use crate::store::mapping::TableSettings;
use crate::store::prune::{Prunable, Pruned, Pruning};
use crate::store::records::{
    AbandonedRun, ApplyEnd, CaseRow, ClaimFilter, Claimed, HandbackRow, JournalRow, RunEnd, RunRow,
    RunStart, Tagged, TotalLine, Waiting,
};
use crate::store::source_table::SourceTable;
use crate::store::watch::{Alert, AlertAsk, CaseLine, Change, FileFigures, Mark, StuckLine};

/// The head of one writer's chain of journal records. It moves on only after a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    /// The writer's name within its run.
    pub name: String,
    /// Records written.
    pub seq: i64,
    /// The last record's hash; the run's id before the first.
    pub head: String,
}

/// A case whose subject is an account.
#[derive(Debug, Clone)]
pub struct AccountCase {
    /// The account's name.
    pub account: String,
    /// `absence_brake`, `account_unavailable`, …
    pub reason: crate::model::reason::Reason,
    /// One sentence with the figures.
    pub text: String,
    /// JSON of the figures; stored as evidence.
    pub evidence: String,
    /// Names rules and settings.
    pub policy_version: String,
}

/// What people and earlier runs left about an account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountState {
    /// Paused by a person: since when and why.
    pub paused: Option<(Instant, String)>,
    /// Since when it gives no answer.
    pub unanswered_since: Option<Instant>,
    /// Its usual share of captured objects that resolve to rows, in thousandths.
    pub usual_permille: Option<u32>,
    /// A settlement file of it was ever brought in.
    pub has_files: bool,
}

/// What a run may have to do before it looks at rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Undone {
    /// Events have no deliveries yet.
    pub events: bool,
    /// Hand-backs or deliveries may be no news any more.
    pub stale: bool,
    /// People said of files that they count.
    pub releases: bool,
    /// People approved what is not carried out yet.
    pub approvals: bool,
}

/// An account that a person stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// The account's name.
    pub account: String,
    /// Since when.
    pub at: Instant,
    /// Who stopped it.
    pub by: String,
    /// Why.
    pub why: String,
}

/// What pausing an account came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paused {
    /// The pause in force: the one that was there before, where there was one.
    pub pause: Pause,
    /// It was not paused before.
    pub is_new: bool,
    /// False: a batch that was begun before the pause did not end while it was waited for, and
    /// may still be written.
    pub is_settled: bool,
}

/// Which cases to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaseFilter {
    /// Only open ones.
    pub open_only: bool,
    /// Only this reason's code.
    pub reason: Option<String>,
    /// Only those opened by this run.
    pub opened_run: Option<String>,
    /// Of the closed ones only those closed at or after this; the open ones all.
    pub closed_since: Option<Instant>,
    /// Only these numbers.
    pub numbers: Option<Vec<i64>>,
    /// Only of this account.
    pub account: Option<String>,
    /// Only of this mapped table.
    pub table: Option<String>,
    /// Only this owner's; an empty name: only those that nobody has.
    pub owner: Option<String>,
    /// Only of this currency.
    pub currency: Option<String>,
    /// Only of at least this many minor units, whatever the sign.
    pub amount_from: Option<i64>,
    /// Only of at most this many minor units, whatever the sign.
    pub amount_to: Option<i64>,
    /// Only those opened at or after this.
    pub opened_from: Option<Instant>,
    /// Only those opened before this.
    pub opened_to: Option<Instant>,
    /// Only those that this rule was tried for.
    pub rule: Option<String>,
    /// Only those decided by this policy last.
    pub policy_version: Option<String>,
    /// Only this case and those that are parts of it.
    pub whole: Option<i64>,
    /// Only those with a proposal in this state.
    pub proposed: Option<crate::store::people::ProposalState>,
    /// Those first that were looked at longest ago; else by number.
    pub longest_unseen: bool,
    /// Only numbers above this (keyset paging).
    pub after: Option<i64>,
    /// At most so many.
    pub limit: i64,
}

/// Cases around one run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CaseCounts {
    /// Opened by it.
    pub opened: u64,
    /// Closed by it.
    pub closed: u64,
    /// Open now.
    pub open: u64,
}

/// What `tieout_checks` remembers of one row.
#[derive(Debug, Clone)]
pub struct CheckRow {
    /// `open`, `case`, `parked`, `watch`, `closed`.
    pub state: String,
    /// The history that a decision would get.
    pub history: crate::decide::decision::History,
    /// When it is due.
    pub next_check_at: Option<Instant>,
    /// The run that holds the lease, and until when.
    pub lease: Option<(String, Instant)>,
    /// The image last seen.
    pub image: String,
    /// The number of its open case.
    pub open_case: Option<i64>,
}

/// What verifying the chain found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFinding {
    /// Records read.
    pub records: i64,
    /// Runs read.
    pub runs: i64,
    /// Hash of the last closed run: the head.
    pub head: Option<String>,
    /// Runs whose records were pruned; their heads are held against the chain all the same.
    pub pruned_runs: i64,
    /// Since when the records go back: the start of the first run that still has its own.
    pub goes_back_to: Option<Instant>,
    /// Every break found: which record or run, what was expected.
    pub breaks: Vec<String>,
}

/// The verbs. See each for what must hold.
#[expect(async_fn_in_trait, reason = "called on the two concrete drivers only, never as dyn")]
pub trait Driver {
    /// Applies tieout's migrations (table `tieout_migrations`); a second call is a no-op.
    async fn migrate(&self) -> Result<(), StoreError>;

    /// (found, wanted) numbers of migrations; found is 0 where there are none.
    async fn schema_state(&self) -> Result<(i64, i64), StoreError>;

    /// The database's clock, to the microsecond.
    async fn now(&self) -> Result<Instant, StoreError>;

    /// Checks mappings against the catalogue: identifiers, types, unique keys, enum labels, view
    /// updatability, row-level security. Every misfit is reported, not only the first.
    /// `accounts` are the configured accounts' names with each one's PSP. Opened for a dry run, a
    /// login that carries no run out is not asked for rights to write.
    async fn map_tables(
        &self,
        tables: &[TableSettings],
        accounts: &[String],
    ) -> Result<Vec<SourceTable>, StoreError>;

    /// Status values seen in the table (by enum labels, or a loose scan of an index led by the
    /// status; where neither is there, in its first and last rows) that the mapping neither maps
    /// nor ignores. A dry run that may not read the written table sees the first rows of `read`.
    async fn unmapped_statuses(&self, table: &SourceTable) -> Result<Vec<String>, StoreError>;

    /// Whether a row has no status at all, looked for where [`Driver::unmapped_statuses`] looks.
    /// Not asked where no row can be without, or `where` leaves such rows out by the status itself.
    async fn lacks_status(&self, table: &SourceTable) -> Result<bool, StoreError>;

    /// The SQL of roles that may do what their work needs and no more, for a person to read and
    /// run; none where the database has no roles. Their names begin with `prefix`.
    async fn role_statements(
        &self,
        tables: &[SourceTable],
        prefix: &str,
    ) -> Result<Option<String>, StoreError>;

    /// Opens a run.
    async fn start_run(&self, start: &RunStart, now: Instant) -> Result<(), StoreError>;

    /// Shows life and renews the run's leases to `lease_until`; false where the run is closed.
    async fn heartbeat(
        &self,
        run_id: &str,
        now: Instant,
        lease_until: Instant,
    ) -> Result<bool, StoreError>;

    /// Closes this one run where it is running and its last heartbeat is older than `dead_after`,
    /// as [`Driver::close_abandoned`] does; none where it shows life, ended before or is unknown.
    async fn abandon_run(
        &self,
        run_id: &str,
        now: Instant,
        dead_after: TimeDelta,
    ) -> Result<Option<AbandonedRun>, StoreError>;

    /// Closes every running run whose last heartbeat is older than `dead_after`: releases its
    /// leases (counted into its totals), closes its chain. Takes the run's row FOR UPDATE, so
    /// that an apply in progress ends first and a later one finds it closed.
    async fn close_abandoned(
        &self,
        now: Instant,
        dead_after: TimeDelta,
    ) -> Result<Vec<AbandonedRun>, StoreError>;

    /// Releases what the run still holds, closes its chain over all its writers' heads and
    /// counts, and ends it. Returns the hash that closes its chain; none where it was closed
    /// before.
    async fn close_run(
        &self,
        run_id: &str,
        end: &RunEnd,
        now: Instant,
    ) -> Result<Option<String>, StoreError>;

    /// What may wait to be done before rows are looked at: one read, so that a run with nothing to
    /// do asks once and opens no transaction for it.
    async fn undone(&self, now: Instant) -> Result<Undone, StoreError>;

    /// Takes stuck rows into `tieout_checks`: new ones, and those whose row is processing again
    /// with another image than the one that was decided. Set-based; returns how many.
    async fn enrol(
        &self,
        table: &SourceTable,
        filter: &ClaimFilter,
        now: Instant,
    ) -> Result<u64, StoreError>;

    /// How the database would carry out `enrol` and `claim_due` (SQLite: and what `apply` writes to
    /// the user's table), in its own words, a line a step: that table may hold a hundred million
    /// rows, and must be walked by an index.
    async fn claim_plan(
        &self,
        table: &SourceTable,
        filter: &ClaimFilter,
        limit: i64,
        now: Instant,
    ) -> Result<Vec<String>, StoreError>;

    /// Leases up to `limit` due rows, oldest due first, none twice in a run, and reads them.
    /// A row that left processing by itself is closed here (its open case too) and not counted;
    /// a row under watch is claimed whatever its status. Lapsed leases of other runs are counted
    /// as released by those. Control totals are written in the same transaction.
    /// With `filter.ids`, those rows are due now, however young they are and in whatever state
    /// their checks are: a row with
    /// a case is asked as `Kick`, one under watch as `Watch`, any other only while processing.
    /// Kicked rows without an open case are left alone.
    /// The other conditions of the filter hold for them too. `last_run` becomes this run.
    /// Where the channel is the status, the open hand-back of a row that has left its hand-back
    /// values (`retryable`, `absent`) is marked as taken now.
    async fn claim_due(
        &self,
        run_id: &str,
        table: &SourceTable,
        filter: &ClaimFilter,
        limit: i64,
        now: Instant,
        lease_until: Instant,
    ) -> Result<Vec<Claimed>, StoreError>;

    /// Whether `claim_due` would find a row to look at that this run did not take. By the index
    /// that it claims by, up to the first.
    async fn is_due(
        &self,
        run_id: &str,
        table: &SourceTable,
        filter: &ClaimFilter,
        now: Instant,
    ) -> Result<bool, StoreError>;

    /// Of these rows those that are stuck, fit the filter, and that nobody has taken in, by their
    /// keys: what only files tell of needs no lease between the question and the answer. Nothing is
    /// written; [`Driver::apply`] takes each in as it is decided, where nobody else has by then. A
    /// key that the table shows several times is left out.
    async fn new_among(
        &self,
        table: &SourceTable,
        filter: &ClaimFilter,
        keys: &[String],
    ) -> Result<Vec<String>, StoreError>;

    /// What `enrol` and `claim_due` would take, without writing anything anywhere.
    async fn preview_due(
        &self,
        table: &SourceTable,
        filter: &ClaimFilter,
        limit: i64,
        now: Instant,
    ) -> Result<Vec<Claimed>, StoreError>;

    /// Gives rows back undecided, counted as released. They are due at once again, behind what is
    /// due by `now`: rows that every run only gives back (their account is paused, its key is
    /// refused) hold up no other, however many there are.
    async fn release(&self, run_id: &str, rows: &[Claimed], now: Instant)
    -> Result<(), StoreError>;

    /// Rows with the same natural key as each given row, by the row's key text. The mapping's
    /// `where` does not narrow them: money that a row outside of it moved, moved.
    async fn siblings(
        &self,
        table: &SourceTable,
        rows: &[&Transaction],
    ) -> Result<HashMap<String, Vec<SiblingFact>>, StoreError>;

    /// The keys of those of these rows, all of `account`, whose tag another row of the table (any
    /// status, of the same kind, at the same account) has too. A tag that the whole key stands in
    /// costs nothing; any other one look-up for all rows together, by the index that leads with a
    /// column of the tag. Where there is none, the table is read once for all of them, never once
    /// for each: what cannot be told from the tag is not to be settled by it, so that leaving the
    /// question out is no way; `doctor` names the index.
    async fn shared_tags(
        &self,
        table: &SourceTable,
        account: &str,
        rows: &[&Transaction],
    ) -> Result<HashSet<String>, StoreError>;

    /// The rows of the table (any status, whatever the mapping's `where` says) that carry one of
    /// these tags at `account`; a row whose account nobody mapped may be there. One look-up for
    /// all tags together, by the indexes that [`Driver::resolve_tags`] uses, and none where no row
    /// can carry them: what another mapped table's rows share is asked here.
    async fn rows_tagged(
        &self,
        table: &SourceTable,
        account: &str,
        tags: &[String],
    ) -> Result<Vec<Tagged>, StoreError>;

    /// Which of these tags, as sent to `account`, resolve to a row of the table (any status).
    async fn resolve_tags(
        &self,
        table: &SourceTable,
        account: &str,
        tags: &[String],
    ) -> Result<HashSet<String>, StoreError>;

    /// The rows of `account`, in any status, that carry one of these tags, and those of these keys
    /// that store one of these references: whose a line of a settlement file may be. By the
    /// indexes that [`Driver::resolve_tags`] uses. The image of a row that is not in processing may
    /// be left empty: it is looked at, and never written by what was read here. Without tags and
    /// references: the rows of the account that have these keys.
    async fn rows_known_by(
        &self,
        table: &SourceTable,
        account: &str,
        tags: &[String],
        references: &[String],
        keys: &[String],
    ) -> Result<Vec<Transaction>, StoreError>;

    /// The rows whose mapped reference column has one of these: reference and key. A row that is
    /// known to be another account's may be left out. By the index that leads with the column;
    /// where there is none, which `doctor` says, the table is read once for all of them: whoever
    /// has many asks for many at once.
    async fn keys_storing(
        &self,
        table: &SourceTable,
        account: &str,
        references: &[String],
    ) -> Result<Vec<(String, String)>, StoreError>;

    /// Which of these PSP references some row already has, in tieout's own record of successes
    /// or in the table's mapped reference column: reference → (table, key).
    async fn resolve_references(
        &self,
        table: &SourceTable,
        account: &str,
        references: &[String],
    ) -> Result<HashMap<String, Vec<(String, String)>>, StoreError>;

    /// The same by tieout's own record of successes alone, whatever the table: all that there is
    /// to know of a name that tieout gave, and nothing of the user's table is read.
    async fn taken_references(
        &self,
        account: &str,
        references: &[String],
    ) -> Result<HashMap<String, Vec<(String, String)>>, StoreError>;

    /// What these rows of a table succeeded by, by tieout's own record: key and PSP reference.
    async fn references_of(
        &self,
        account: &str,
        table: &str,
        keys: &[String],
    ) -> Result<Vec<(String, String)>, StoreError>;

    /// Carries out decisions, all in one transaction, in this order: hold the run's row; move the
    /// checks whose token still matches; write or compare the user's rows by image; then, for what
    /// came back: evidence, references, cases, hand-backs, outbox, journal with chain. Rows of an
    /// account that a person has paused are given back, as [`Driver::release`] does, and have no
    /// record. Rows that did not come back are journalled as superseded and are due again at once;
    /// one whose lease was lost was counted as released when it was taken away, so that this count
    /// is taken back, and its check is left to the new owner. A row without a lease gets its check
    /// here, and is counted as claimed; one that has a check by now leaves the batch. `image` in
    /// the check becomes the row's image after the write. Any outcome but a wait ends the row's
    /// open hand-back. A success whose reference another row has becomes a `reference_claimed`
    /// case. A row that the user's database refuses (constraint, trigger) becomes a `write_refused`
    /// case of its own ([`RowEffects::send_to_review`]), never a failure of the batch; what is for
    /// a person as decided goes to them without its status. What this run decided before is left
    /// out: no row has two decisions in one run. Deadlocks and serialization failures are retried
    /// whole. `writer` moves on only after the commit.
    async fn apply(
        &self,
        run_id: &str,
        writer: &mut Writer,
        table: &SourceTable,
        batch: Vec<RowEffects>,
        now: Instant,
    ) -> Result<ApplyEnd, StoreError>;

    /// Opens or refreshes the account's case; returns its number.
    async fn put_account_case(
        &self,
        run_id: &str,
        case: &AccountCase,
        now: Instant,
    ) -> Result<i64, StoreError>;

    /// Closes the account's open case of this reason, if there is one and none of the account's
    /// rows waits for this reason any more.
    async fn close_account_case(
        &self,
        run_id: &str,
        account: &str,
        reason: crate::model::reason::Reason,
        resolution: &str,
        now: Instant,
    ) -> Result<bool, StoreError>;

    /// Stops writing rows of an account until it is resumed. Batches that are being written are
    /// waited for, so that nothing is written after an answer that is settled.
    /// The database's own name of the session's user is added to `by` where it has one.
    async fn pause_account(
        &self,
        account: &str,
        by: &str,
        why: &str,
        now: Instant,
    ) -> Result<Paused, StoreError>;

    /// Ends an account's pause; the pause that there was comes back.
    async fn resume_account(&self, account: &str) -> Result<Option<Pause>, StoreError>;

    /// The accounts that are paused, by name.
    async fn pauses(&self) -> Result<Vec<Pause>, StoreError>;

    /// What is known of an account.
    async fn account_state(&self, account: &str) -> Result<AccountState, StoreError>;

    /// Stores since when it gives no answer, and its usual share; `None` keeps the share.
    async fn put_account_state(
        &self,
        account: &str,
        unanswered_since: Option<Instant>,
        usual_permille: Option<u32>,
    ) -> Result<(), StoreError>;

    /// One run.
    async fn run(&self, run_id: &str) -> Result<Option<RunRow>, StoreError>;

    /// The newest runs first.
    async fn runs(&self, limit: i64) -> Result<Vec<RunRow>, StoreError>;

    /// Both sides of the tie-out of a run, each from its own tables: `claimed` and `released`
    /// from the control totals; outcomes (`applied` yes or withheld) and `superseded` from the
    /// journal. Read in one snapshot.
    async fn run_totals(&self, run_id: &str) -> Result<Vec<TotalLine>, StoreError>;

    /// How many journal records of a run say that the mode withheld the decision, by the journal's
    /// key, which begins with the run. Whether it ended by itself or not: each record says so.
    async fn withheld_of_run(&self, run_id: &str) -> Result<i64, StoreError>;

    /// Journal records of a run in the order (writer, seq), after the given place.
    async fn journal_of_run(
        &self,
        run_id: &str,
        after: Option<(String, i64)>,
        limit: i64,
    ) -> Result<Vec<JournalRow>, StoreError>;

    /// Journal records of a row, oldest first.
    async fn journal_of_row(&self, table: &str, key: &str) -> Result<Vec<JournalRow>, StoreError>;

    /// What is remembered of a row.
    async fn check(&self, table: &str, key: &str) -> Result<Option<CheckRow>, StoreError>;

    /// Its hand-backs, oldest first.
    async fn handbacks(&self, table: &str, key: &str) -> Result<Vec<HandbackRow>, StoreError>;

    /// Evidence by its hash.
    async fn evidence(&self, sha256: &str) -> Result<Option<String>, StoreError>;

    /// Cases, by number.
    async fn cases(&self, filter: &CaseFilter) -> Result<Vec<CaseRow>, StoreError>;

    /// How many cases the run opened and closed, and how many are open now.
    async fn case_counts(&self, run_id: &str) -> Result<CaseCounts, StoreError>;

    /// One case.
    async fn case(&self, number: i64) -> Result<Option<CaseRow>, StoreError>;

    /// Rows of these tables that are looked at later than `now`, watched ones included, by the
    /// index that the claim uses; and which run holds rows of them.
    async fn waiting(&self, tables: &[String], now: Instant) -> Result<Waiting, StoreError>;

    /// Rows that wait for an answer, by account.
    async fn stuck_by_account(&self) -> Result<Vec<StuckLine>, StoreError>;

    /// Open cases by reason, account and age; `edges` are the instants between the buckets, the
    /// latest first.
    async fn open_cases_by_age(&self, edges: &[Instant]) -> Result<Vec<CaseLine>, StoreError>;

    /// How settlement files stand, by source and by currency.
    async fn file_figures(&self) -> Result<FileFigures, StoreError>;

    /// Changes a scope's numbers and reads them all back.
    async fn move_marks(
        &self,
        scope: &str,
        changes: &[(String, Change)],
    ) -> Result<Vec<Mark>, StoreError>;

    /// Reads a scope's numbers, by name.
    async fn marks(&self, scope: &str) -> Result<Vec<Mark>, StoreError>;

    /// What this run is to tell a receiver: each condition goes to one run only, until its lease
    /// is over or [`Driver::settle_alerts`] says what became of it.
    async fn take_alerts(&self, ask: &AlertAsk) -> Result<Vec<Alert>, StoreError>;

    /// Notes what the receiver took; what it did not take is free for the next run.
    async fn settle_alerts(
        &self,
        ask: &AlertAsk,
        alerts: &[Alert],
        is_told: bool,
    ) -> Result<(), StoreError>;

    /// Adds to a closed run's notes what monitoring could not do.
    async fn note_monitoring(&self, run_id: &str, problems: &[String]) -> Result<(), StoreError>;

    /// Closed runs with records that ended before this and were not pruned yet.
    async fn prunable(&self, before: Instant) -> Result<Prunable, StoreError>;

    /// Takes one run's records out of the journal, with the evidence that nothing else leans on,
    /// its totals, its closed cases but for those of which a decision waits or a part stays, its
    /// events that were delivered or suppressed, and its hand-backs that ended and have a
    /// successor; keeps the run and its chains' heads. All in one transaction. None where it was
    /// pruned already or is too young.
    async fn prune_run(
        &self,
        pruning: &Pruning<'_>,
        now: Instant,
    ) -> Result<Option<Pruned>, StoreError>;

    /// When a run was pruned.
    async fn pruned_at(&self, run_id: &str) -> Result<Option<Instant>, StoreError>;

    /// Reads the whole chain and recomputes every hash: records within runs, runs to runs, and
    /// every evidence's hash.
    async fn verify_audit(&self) -> Result<AuditFinding, StoreError>;
}
