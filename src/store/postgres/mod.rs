//! PostgreSQL: many workers on many machines, one transaction for the user's rows and tieout's.
//!
//! What each verb must do stands in `store::driver`. READ COMMITTED throughout: correctness rests
//! on comparing rows, tokens and the run's state, not on the isolation level. Texts go in and
//! texts come out: parameters are cast to the column's type, columns never are, so that the
//! user's indexes serve. No future of this room may be cancelled halfway (a time-out or select
//! around it) but by `silence`: what it did is then unknown, though no connection stays within a
//! transaction.

mod accounts;
mod apply;
mod batches;
mod catalogue;
mod checks;
mod claim;
mod compare;
mod connect;
mod copy;
mod errors;
mod files;
mod foreseen;
mod guards;
mod inspect;
mod ledger;
mod letters;
mod line_cases;
mod lines;
mod of_run;
mod outbox;
mod alike;
mod pages;
mod patience;
mod payouts;
mod lookup;
mod migrate;
mod names;
mod pauses;
mod people;
mod prune;
mod new_rows;
mod preview;
mod read;
mod roles;
mod release;
mod replay;
mod rows;
mod runs;
mod schemas;
mod shelf;
mod silence;
mod sql;
mod statements;
mod told;
mod transactions;
mod wake;
mod watch;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use chrono::{NaiveDate, TimeDelta};
use sqlx::postgres::PgPool;
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::time::Instant as Tick;

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
use crate::store::mapping::TableSettings;
use crate::store::outbox::{
    By, Deed, Done, Health, Letter, LetterEnd, LetterFilter, Merging, OpenLetter, OutboxDriver,
    SinkLease, SinkState, Stale, Taker, Turn, Undelivered, Which,
};
use crate::store::payouts::{Booking, NamedPayout, Payout, PayoutDriver, PayoutKey};
use crate::store::people::{
    Approved, CaseLinks, CaseNote, CaseRuns, CaseSum, NewProposal, PeopleDriver, Proposal,
};
use crate::store::postgres::errors::failed;
use crate::store::postgres::patience::patiently;
use crate::store::postgres::silence::Doubt;
use crate::store::prune::{Prunable, Pruned, Pruning};
use crate::store::records::{
    AbandonedRun, ApplyEnd, CaseRow, ClaimFilter, Claimed, HandbackRow, JournalRow, RunEnd, RunRow,
    RunStart, Tagged, TotalLine, Waiting,
};
use crate::store::release::{Difference, Release, Said, Spoken, Word};
use crate::store::replay::{Decided, RecordPlace, ReplayDriver, RuleCount, UnseenPlace, Written};
use crate::store::settings::DatabaseSettings;
use crate::store::source_table::SourceTable;
use crate::store::watch::{Alert, AlertAsk, CaseLine, Change, FileFigures, Mark, StuckLine};

/// How long a connection may take on its way back: a short question to a server nearby.
const BACK_SOON: Duration = Duration::from_millis(3);

/// Connections that a run needs to write two batches at a time: its sign of life and what it reads
/// meanwhile take the others.
const ROOM: u32 = 4;

/// The store on PostgreSQL.
#[derive(Debug, Clone)]
pub struct PgStore {
    pool: PgPool,
    address: String,
    /// Opened for a dry run.
    rehearses: bool,
    doubt: Doubt,
}

impl PgStore {
    /// Connects, and refuses a replica, a read-only session and a pooler in transaction mode.
    pub async fn connect(settings: &DatabaseSettings) -> Result<Self, StoreError> {
        Self::open(settings, false).await
    }

    /// Connects for a dry run: a login or a session that may only read will do. What else cannot
    /// serve is refused as by [`PgStore::connect`].
    pub async fn rehearse(settings: &DatabaseSettings) -> Result<Self, StoreError> {
        Self::open(settings, true).await
    }

    async fn open(settings: &DatabaseSettings, rehearses: bool) -> Result<Self, StoreError> {
        let (pool, address) = connect::open(settings, rehearses).await?;
        let store = Self { pool, address, rehearses, doubt: Doubt::default() };
        if let Some(path) = &settings.search_path {
            let asked = std::pin::pin!(schemas::require(&store.pool, path));
            store.answer(asked).await?;
        }
        Ok(store)
    }

    /// An answer as it is; where a right was lacking, with who asked.
    async fn with_asker<T>(&self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        let mut answer = answer;
        if let Err(StoreError::Query { code: Some(code), asker, .. }) = &mut answer
            && code == "42501"
        {
            // Without it the hint names the roles by their usual names.
            *asker = roles::asker(&self.pool).await.ok().map(Box::new);
        }
        answer
    }

    /// Host, port and name, for people; never the login.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The pool, with a connection in it where one is on its way back. Each is checked after its
    /// use; whoever asks meanwhile would be given a new one, which costs the server more than all
    /// that a run with nothing due asks of it.
    async fn pool(&self) -> &PgPool {
        let patience = Tick::now() + BACK_SOON;
        while self.pool.num_idle() == 0 && self.pool.size() > 0 && Tick::now() < patience {
            tokio::task::yield_now().await;
            // The thread that brings it back may have been woken on this one's processor.
            std::thread::yield_now();
        }
        &self.pool
    }

    /// Closes every connection, so that the server sees a proper end.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

impl Driver for PgStore {
    async fn migrate(&self) -> Result<(), StoreError> {
        migrate::migrate(self.pool().await).await
    }

    async fn schema_state(&self) -> Result<(i64, i64), StoreError> {
        migrate::state(self.pool().await).await
    }

    async fn now(&self) -> Result<Instant, StoreError> {
        sqlx::query_scalar("select clock_timestamp()")
            .fetch_one(self.pool().await)
            .await
            .map_err(failed("reading the database's clock"))
    }

    async fn map_tables(
        &self,
        tables: &[TableSettings],
        accounts: &[String],
    ) -> Result<Vec<SourceTable>, StoreError> {
        let mut connection =
            self.pool().await.acquire().await.map_err(failed("reading the catalogue"))?;
        let mut mapped =
            catalogue::map_tables(&mut connection, tables, accounts, self.rehearses).await?;
        let has_room = self.pool.options().get_max_connections() >= ROOM;
        mapped.iter_mut().for_each(|table| table.side_by_side &= has_room);
        Ok(mapped)
    }

    async fn unmapped_statuses(&self, table: &SourceTable) -> Result<Vec<String>, StoreError> {
        let doing = "reading the status values";
        let mut connection = self.pool().await.acquire().await.map_err(failed(doing))?;
        catalogue::unmapped_statuses(&mut connection, table).await
    }

    async fn lacks_status(&self, table: &SourceTable) -> Result<bool, StoreError> {
        let doing = "looking for rows without a status";
        let mut connection = self.pool().await.acquire().await.map_err(failed(doing))?;
        catalogue::lacks_status(&mut connection, table).await
    }

    async fn role_statements(
        &self,
        tables: &[SourceTable],
        prefix: &str,
    ) -> Result<Option<String>, StoreError> {
        let doing = "reading the catalogue for the roles";
        let mut connection = self.pool().await.acquire().await.map_err(failed(doing))?;
        roles::statements(&mut connection, tables, prefix).await.map(Some)
    }

    async fn start_run(&self, start: &RunStart, now: Instant) -> Result<(), StoreError> {
        runs::start(self.pool().await, start, now).await
    }

    async fn heartbeat(
        &self,
        run_id: &str,
        now: Instant,
        lease_until: Instant,
    ) -> Result<bool, StoreError> {
        runs::heartbeat(self.pool().await, run_id, now, lease_until).await
    }

    async fn abandon_run(
        &self,
        run_id: &str,
        now: Instant,
        dead_after: TimeDelta,
    ) -> Result<Option<AbandonedRun>, StoreError> {
        runs::close_dead(self.pool().await, run_id, now, dead_after).await
    }

    async fn close_abandoned(
        &self,
        now: Instant,
        dead_after: TimeDelta,
    ) -> Result<Vec<AbandonedRun>, StoreError> {
        runs::close_abandoned(self.pool().await, now, dead_after).await
    }

    async fn close_run(
        &self,
        run_id: &str,
        end: &RunEnd,
        now: Instant,
    ) -> Result<Option<String>, StoreError> {
        runs::close(self.pool().await, run_id, end, now).await
    }

    async fn undone(&self, now: Instant) -> Result<Undone, StoreError> {
        runs::undone(self.pool().await, now).await
    }

    async fn enrol(
        &self,
        table: &SourceTable,
        filter: &ClaimFilter,
        now: Instant,
    ) -> Result<u64, StoreError> {
        claim::enrol(self.pool().await, table, filter, now).await
    }

    async fn claim_plan(
        &self,
        table: &SourceTable,
        filter: &ClaimFilter,
        limit: i64,
        now: Instant,
    ) -> Result<Vec<String>, StoreError> {
        claim::plan(self.pool().await, table, filter, limit, now).await
    }

    async fn claim_due(
        &self,
        run_id: &str,
        table: &SourceTable,
        filter: &ClaimFilter,
        limit: i64,
        now: Instant,
        lease_until: Instant,
    ) -> Result<Vec<Claimed>, StoreError> {
        let claim = claim::Claim { run_id, table, filter, now, lease_until };
        claim::claim_due(self.pool().await, &claim, limit).await
    }

    async fn is_due(
        &self,
        run_id: &str,
        table: &SourceTable,
        filter: &ClaimFilter,
        now: Instant,
    ) -> Result<bool, StoreError> {
        claim::is_due(self.pool().await, run_id, table, filter, now).await
    }

    async fn new_among(
        &self,
        table: &SourceTable,
        filter: &ClaimFilter,
        keys: &[String],
    ) -> Result<Vec<String>, StoreError> {
        new_rows::new_among(self.pool().await, table, filter, keys).await
    }

    async fn preview_due(
        &self,
        table: &SourceTable,
        filter: &ClaimFilter,
        limit: i64,
        now: Instant,
    ) -> Result<Vec<Claimed>, StoreError> {
        preview::preview_due(self.pool().await, table, filter, limit, now).await
    }

    async fn release(
        &self,
        run_id: &str,
        rows: &[Claimed],
        now: Instant,
    ) -> Result<(), StoreError> {
        claim::release(self.pool().await, run_id, rows, now).await
    }

    async fn siblings(
        &self,
        table: &SourceTable,
        rows: &[&Transaction],
    ) -> Result<HashMap<String, Vec<SiblingFact>>, StoreError> {
        lookup::siblings(self.pool().await, table, rows).await
    }

    async fn shared_tags(
        &self,
        table: &SourceTable,
        account: &str,
        rows: &[&Transaction],
    ) -> Result<HashSet<String>, StoreError> {
        lookup::shared_tags(self.pool().await, table, account, rows).await
    }

    async fn rows_tagged(
        &self,
        table: &SourceTable,
        account: &str,
        tags: &[String],
    ) -> Result<Vec<Tagged>, StoreError> {
        lookup::rows_tagged(self.pool().await, table, account, tags).await
    }

    async fn resolve_tags(
        &self,
        table: &SourceTable,
        account: &str,
        tags: &[String],
    ) -> Result<HashSet<String>, StoreError> {
        lookup::resolve_tags(self.pool().await, table, account, tags).await
    }

    async fn rows_known_by(
        &self,
        table: &SourceTable,
        account: &str,
        tags: &[String],
        references: &[String],
        keys: &[String],
    ) -> Result<Vec<Transaction>, StoreError> {
        lookup::rows_known_by(self.pool().await, table, account, tags, references, keys).await
    }

    async fn keys_storing(
        &self,
        table: &SourceTable,
        account: &str,
        references: &[String],
    ) -> Result<Vec<(String, String)>, StoreError> {
        lookup::keys_storing(self.pool().await, table, account, references).await
    }

    async fn taken_references(
        &self,
        account: &str,
        references: &[String],
    ) -> Result<HashMap<String, Vec<(String, String)>>, StoreError> {
        lookup::taken_references(self.pool().await, account, references).await
    }

    async fn references_of(
        &self,
        account: &str,
        table: &str,
        keys: &[String],
    ) -> Result<Vec<(String, String)>, StoreError> {
        lookup::references_of(self.pool().await, account, table, keys).await
    }

    async fn resolve_references(
        &self,
        table: &SourceTable,
        account: &str,
        references: &[String],
    ) -> Result<HashMap<String, Vec<(String, String)>>, StoreError> {
        lookup::resolve_references(self.pool().await, table, account, references).await
    }

    async fn apply(
        &self,
        run_id: &str,
        writer: &mut Writer,
        table: &SourceTable,
        batch: Vec<RowEffects>,
        now: Instant,
    ) -> Result<ApplyEnd, StoreError> {
        apply::apply(self.pool().await, run_id, writer, table, batch, now).await
    }

    async fn put_account_case(
        &self,
        run_id: &str,
        case: &AccountCase,
        now: Instant,
    ) -> Result<i64, StoreError> {
        let pool = self.pool().await;
        patiently(async || accounts::put_case(pool, run_id, case, now).await).await
    }

    async fn close_account_case(
        &self,
        run_id: &str,
        account: &str,
        reason: Reason,
        resolution: &str,
        now: Instant,
    ) -> Result<bool, StoreError> {
        let pool = self.pool().await;
        patiently(async || {
            accounts::close_case(pool, run_id, account, reason, resolution, now).await
        })
        .await
    }

    async fn pause_account(
        &self,
        account: &str,
        by: &str,
        why: &str,
        now: Instant,
    ) -> Result<Paused, StoreError> {
        pauses::pause(self.pool().await, account, by, why, now).await
    }

    async fn resume_account(&self, account: &str) -> Result<Option<Pause>, StoreError> {
        pauses::resume(self.pool().await, account).await
    }

    async fn pauses(&self) -> Result<Vec<Pause>, StoreError> {
        pauses::all(self.pool().await).await
    }

    async fn account_state(&self, account: &str) -> Result<AccountState, StoreError> {
        accounts::state(self.pool().await, account).await
    }

    async fn put_account_state(
        &self,
        account: &str,
        unanswered_since: Option<Instant>,
        usual_permille: Option<u32>,
    ) -> Result<(), StoreError> {
        accounts::put_state(self.pool().await, account, unanswered_since, usual_permille).await
    }

    async fn run(&self, run_id: &str) -> Result<Option<RunRow>, StoreError> {
        read::run(self.pool().await, run_id).await
    }

    async fn runs(&self, limit: i64) -> Result<Vec<RunRow>, StoreError> {
        read::runs(self.pool().await, limit).await
    }

    async fn run_totals(&self, run_id: &str) -> Result<Vec<TotalLine>, StoreError> {
        runs::totals(self.pool().await, run_id).await
    }

    async fn withheld_of_run(&self, run_id: &str) -> Result<i64, StoreError> {
        runs::withheld(self.pool().await, run_id).await
    }

    async fn journal_of_run(
        &self,
        run_id: &str,
        after: Option<(String, i64)>,
        limit: i64,
    ) -> Result<Vec<JournalRow>, StoreError> {
        read::journal_of_run(self.pool().await, run_id, after, limit).await
    }

    async fn journal_of_row(&self, table: &str, key: &str) -> Result<Vec<JournalRow>, StoreError> {
        read::journal_of_row(self.pool().await, table, key).await
    }

    async fn check(&self, table: &str, key: &str) -> Result<Option<CheckRow>, StoreError> {
        read::check(self.pool().await, table, key).await
    }

    async fn handbacks(&self, table: &str, key: &str) -> Result<Vec<HandbackRow>, StoreError> {
        read::handbacks(self.pool().await, table, key).await
    }

    async fn evidence(&self, sha256: &str) -> Result<Option<String>, StoreError> {
        read::evidence(self.pool().await, sha256).await
    }

    async fn cases(&self, filter: &CaseFilter) -> Result<Vec<CaseRow>, StoreError> {
        read::cases(self.pool().await, filter).await
    }

    async fn case_counts(&self, run_id: &str) -> Result<CaseCounts, StoreError> {
        read::case_counts(self.pool().await, run_id).await
    }

    async fn case(&self, number: i64) -> Result<Option<CaseRow>, StoreError> {
        read::case(self.pool().await, number).await
    }

    async fn waiting(&self, tables: &[String], now: Instant) -> Result<Waiting, StoreError> {
        watch::waiting(self.pool().await, tables, now).await
    }

    async fn stuck_by_account(&self) -> Result<Vec<StuckLine>, StoreError> {
        watch::stuck(self.pool().await).await
    }

    async fn open_cases_by_age(&self, edges: &[Instant]) -> Result<Vec<CaseLine>, StoreError> {
        watch::cases(self.pool().await, edges).await
    }

    async fn file_figures(&self) -> Result<FileFigures, StoreError> {
        watch::files(self.pool().await).await
    }

    async fn move_marks(
        &self,
        scope: &str,
        changes: &[(String, Change)],
    ) -> Result<Vec<Mark>, StoreError> {
        watch::move_marks(self.pool().await, scope, changes).await
    }

    async fn marks(&self, scope: &str) -> Result<Vec<Mark>, StoreError> {
        watch::marks(self.pool().await, scope).await
    }

    async fn take_alerts(&self, ask: &AlertAsk) -> Result<Vec<Alert>, StoreError> {
        watch::take(self.pool().await, ask).await
    }

    async fn settle_alerts(
        &self,
        ask: &AlertAsk,
        alerts: &[Alert],
        is_told: bool,
    ) -> Result<(), StoreError> {
        watch::settle(self.pool().await, ask, alerts, is_told).await
    }

    async fn note_monitoring(&self, run_id: &str, problems: &[String]) -> Result<(), StoreError> {
        watch::note(self.pool().await, run_id, problems).await
    }

    async fn prunable(&self, before: Instant) -> Result<Prunable, StoreError> {
        prune::prunable(&self.pool, before).await
    }

    async fn prune_run(
        &self,
        pruning: &Pruning<'_>,
        now: Instant,
    ) -> Result<Option<Pruned>, StoreError> {
        prune::prune(&self.pool, pruning, now).await
    }

    async fn pruned_at(&self, run_id: &str) -> Result<Option<Instant>, StoreError> {
        prune::pruned_at(&self.pool, run_id).await
    }

    async fn verify_audit(&self) -> Result<AuditFinding, StoreError> {
        read::verify_audit(self.pool().await).await
    }
}

impl FileDriver for PgStore {
    async fn put_file(
        &self,
        run_id: &str,
        head: &FileHead,
        parts: Receiver<Part>,
        now: Instant,
    ) -> Result<FileEnd, StoreError> {
        files::put(self.pool().await, run_id, head, parts, now).await
    }

    async fn known_names(&self, source: &str) -> Result<Vec<KnownName>, StoreError> {
        names::known(self.pool().await, source, None).await
    }

    async fn names_of_account(
        &self,
        source: &str,
        account: &str,
    ) -> Result<Vec<KnownName>, StoreError> {
        names::known(self.pool().await, source, Some(account)).await
    }

    async fn note_name(
        &self,
        run_id: &str,
        sighting: &Sighting,
        file: i64,
        now: Instant,
    ) -> Result<(), StoreError> {
        let mut connection = self.pool().await.acquire().await.map_err(failed(files::DOING))?;
        files::note_name(&mut connection, run_id, sighting, file, now).await
    }

    async fn note_archived(
        &self,
        source: &str,
        name: &str,
        raw_sha256: &str,
        now: Instant,
    ) -> Result<(), StoreError> {
        names::archived(self.pool().await, source, name, raw_sha256, now).await
    }

    async fn note_spooled(&self, file: i64, spooled_as: &str) -> Result<(), StoreError> {
        names::spooled(self.pool().await, file, spooled_as).await
    }

    async fn put_absent_case(
        &self,
        run_id: &str,
        case: &AbsentCase,
        now: Instant,
    ) -> Result<(), StoreError> {
        let pool = self.pool().await;
        patiently(async || names::put_absent(pool, run_id, case, now).await).await
    }

    async fn close_absent_cases(
        &self,
        run_id: &str,
        source: &str,
        but: &[String],
        now: Instant,
    ) -> Result<u64, StoreError> {
        let pool = self.pool().await;
        patiently(async || names::close_absent(pool, run_id, source, but, now).await).await
    }

    async fn ask_release(&self, file: i64, word: &Word, now: Instant) -> Result<Said, StoreError> {
        release::ask(self.pool().await, file, word, now).await
    }

    async fn releases_waiting(&self, file: Option<i64>) -> Result<Vec<Spoken>, StoreError> {
        release::waiting(self.pool().await, file).await
    }

    async fn release_quarantined(
        &self,
        run_id: &str,
        spoken: &Spoken,
        mut parts: Receiver<Part>,
        now: Instant,
    ) -> Result<Release, StoreError> {
        release::quarantined(self.pool().await, run_id, spoken, &mut parts, now).await
    }

    async fn release_held(
        &self,
        run_id: &str,
        spoken: &Spoken,
        now: Instant,
    ) -> Result<Release, StoreError> {
        let pool = self.pool().await;
        patiently(async || release::held(pool, run_id, spoken, now).await).await
    }

    async fn refuse_release(
        &self,
        run_id: &str,
        spoken: &Spoken,
        why: &str,
        now: Instant,
    ) -> Result<bool, StoreError> {
        let pool = self.pool().await;
        patiently(async || release::refuse(pool, run_id, spoken, why, now).await).await
    }

    async fn differences(&self, file: i64) -> Result<Vec<Difference>, StoreError> {
        release::differences(self.pool().await, file).await
    }

    async fn lines_of(
        &self,
        account: &str,
        tags: &[String],
        references: &[String],
    ) -> Result<Vec<StoredLine>, StoreError> {
        let texts: Vec<&str> = tags.iter().chain(references).map(String::as_str).collect();
        lines::of(self.pool().await, account, &texts).await
    }

    async fn lines_plan(&self, account: &str, tags: &[String]) -> Result<Vec<String>, StoreError> {
        let texts: Vec<&str> = tags.iter().map(String::as_str).collect();
        lines::plan(self.pool().await, account, &texts).await
    }

    async fn open_lines(
        &self,
        account: &str,
        after: Option<LinePlace>,
        limit: i64,
    ) -> Result<Vec<OpenLine>, StoreError> {
        lines::open(self.pool().await, account, after, limit).await
    }

    async fn open_of_money(
        &self,
        account: &str,
        minors: &[i64],
    ) -> Result<Vec<StoredLine>, StoreError> {
        lines::open_of_money(self.pool().await, account, minors).await
    }

    async fn taken_out(
        &self,
        account: &str,
        after: Option<LinePlace>,
        limit: i64,
    ) -> Result<Vec<StoredLine>, StoreError> {
        lines::taken_out(self.pool().await, account, after, limit).await
    }

    async fn taken_alone(
        &self,
        account: &str,
        after: Option<LinePlace>,
        limit: i64,
    ) -> Result<Vec<StoredLine>, StoreError> {
        lines::taken_alone(self.pool().await, account, after, limit).await
    }

    async fn taken_out_of(
        &self,
        table: &str,
        keys: &[String],
    ) -> Result<Vec<StoredLine>, StoreError> {
        lines::taken_out_of(self.pool().await, table, keys).await
    }

    async fn told_of_rows(
        &self,
        account: &str,
        since: Instant,
    ) -> Result<Vec<(LinePlace, (String, String))>, StoreError> {
        lines::told_of_rows(self.pool().await, account, since).await
    }

    async fn doubted(
        &self,
        places: &[LinePlace],
    ) -> Result<Vec<(LinePlace, LinePlace)>, StoreError> {
        lines::doubted(self.pool().await, places).await
    }

    async fn note_looked_again(
        &self,
        run_id: &str,
        places: &[LinePlace],
    ) -> Result<(), StoreError> {
        lines::note_looked_again(self.pool().await, run_id, places).await
    }

    async fn exclude_lines(&self, places: &[LinePlace]) -> Result<(), StoreError> {
        lines::exclude(self.pool().await, places).await
    }

    async fn asleep(
        &self,
        table: &str,
        rows: &[(String, LinePlace)],
        now: Instant,
    ) -> Result<Vec<String>, StoreError> {
        wake::asleep(self.pool().await, table, rows, now).await
    }

    async fn parked(
        &self,
        table: &str,
        rows: &[(String, LinePlace)],
    ) -> Result<Vec<String>, StoreError> {
        wake::parked(self.pool().await, table, rows).await
    }

    async fn cased(
        &self,
        table: &str,
        rows: &[(String, LinePlace)],
    ) -> Result<Vec<String>, StoreError> {
        wake::cased(self.pool().await, table, rows).await
    }

    async fn wake(&self, table: &str, keys: &[String], now: Instant) -> Result<u64, StoreError> {
        let pool = self.pool().await;
        patiently(async || wake::wake(pool, table, keys, now).await).await
    }

    async fn forget_looks(&self, table: &str, keys: &[String]) -> Result<u64, StoreError> {
        let pool = self.pool().await;
        patiently(async || wake::forget_looks(pool, table, keys).await).await
    }

    async fn listed_after_all(
        &self,
        account: &str,
        since: Instant,
    ) -> Result<Vec<(String, String)>, StoreError> {
        wake::listed_after_all(self.pool().await, account, since).await
    }

    async fn files(&self, filter: &FileFilter) -> Result<Vec<FileRow>, StoreError> {
        shelf::files(self.pool().await, filter).await
    }

    async fn statements(
        &self,
        file: i64,
        after: i64,
        limit: i64,
    ) -> Result<Vec<StatementRow>, StoreError> {
        shelf::statements(self.pool().await, file, after, limit).await
    }

    async fn standings(
        &self,
        account: &str,
        since: NaiveDate,
    ) -> Result<Vec<Standing>, StoreError> {
        shelf::standings(self.pool().await, account, since).await
    }

    async fn attempt_files(&self, account: &str) -> Result<Vec<AttemptFile>, StoreError> {
        shelf::attempt_files(self.pool().await, account).await
    }

    async fn lines_of_file(
        &self,
        after: LinePlace,
        limit: i64,
    ) -> Result<Vec<StoredLine>, StoreError> {
        lines::of_file(self.pool().await, after, limit).await
    }

    async fn lines_of_run(
        &self,
        run_id: &str,
        which: LinesOfRun,
        after: Option<LinePlace>,
        limit: i64,
    ) -> Result<Vec<LineOfRun>, StoreError> {
        of_run::lines(self.pool().await, run_id, which, after, limit).await
    }

    async fn lines_of_rows(
        &self,
        run_id: &str,
        rows: &[(String, String)],
        until: Instant,
    ) -> Result<Vec<StoredLine>, StoreError> {
        of_run::beside(self.pool().await, run_id, rows, until).await
    }

    async fn files_of_run(
        &self,
        run_id: &str,
        after: i64,
        limit: i64,
    ) -> Result<Vec<FileOfRun>, StoreError> {
        of_run::files(self.pool().await, run_id, after, limit).await
    }

    async fn mark_lines(
        &self,
        run_id: &str,
        marks: &[LineMark],
        now: Instant,
    ) -> Result<Vec<LinePlace>, StoreError> {
        let pool = self.pool().await;
        patiently(async || lines::mark(pool, run_id, marks, now).await).await
    }

    async fn put_line_cases(
        &self,
        run_id: &str,
        cases: &[LineCase],
        now: Instant,
    ) -> Result<u64, StoreError> {
        let pool = self.pool().await;
        patiently(async || line_cases::put(pool, run_id, cases, now).await).await
    }

    async fn bookings_gone(&self) -> Result<Vec<StoredLine>, StoreError> {
        lines::bookings_gone(self.pool().await).await
    }

    async fn close_line_cases(&self, run_id: &str, now: Instant) -> Result<u64, StoreError> {
        let pool = self.pool().await;
        patiently(async || line_cases::close(pool, run_id, now).await).await
    }
}

impl CompareDriver for PgStore {
    async fn stream_rows(
        &self,
        table: &SourceTable,
        filter: &ClaimFilter,
        rows: Sender<Vec<Transaction>>,
    ) -> Result<(), StoreError> {
        compare::stream(self.pool().await, table, filter, rows).await
    }

    async fn files_of_days(
        &self,
        account: &str,
        days: (NaiveDate, NaiveDate),
        after: i64,
        limit: i64,
    ) -> Result<Vec<i64>, StoreError> {
        compare::files(self.pool().await, account, days, after, limit).await
    }

    async fn put_compared(&self, run_id: &str, found: &[Compared]) -> Result<(), StoreError> {
        compare::put(self.pool().await, run_id, found).await
    }

    async fn compared_of_run(
        &self,
        run_id: &str,
        after: i64,
        limit: i64,
    ) -> Result<Vec<Compared>, StoreError> {
        compare::of_run(self.pool().await, run_id, after, limit).await
    }
}

impl BatchDriver for PgStore {
    async fn open_batches(
        &self,
        account: &str,
        says: Says,
        after: Option<LinePlace>,
        limit: i64,
    ) -> Result<Vec<StoredLine>, StoreError> {
        batches::open(self.pool().await, account, says, after, limit).await
    }

    async fn batch_parts(&self, booking: LinePlace, by: BatchBy) -> Result<BatchParts, StoreError> {
        batches::parts(self.pool().await, booking, by).await
    }

    async fn explain_batch(
        &self,
        run_id: &str,
        batch: &ExplainedBatch,
        now: Instant,
    ) -> Result<bool, StoreError> {
        let pool = self.pool().await;
        patiently(async || batches::explain(pool, run_id, batch, now).await).await
    }
}

impl PayoutDriver for PgStore {
    async fn payouts_named(
        &self,
        texts: &[String],
        until: Option<Instant>,
    ) -> Result<Vec<NamedPayout>, StoreError> {
        payouts::named(self.pool().await, texts, until).await
    }

    async fn payout(
        &self,
        key: &PayoutKey,
        until: Option<Instant>,
    ) -> Result<Option<Payout>, StoreError> {
        payouts::one(self.pool().await, key, until).await
    }

    async fn payouts_at(
        &self,
        places: &[LinePlace],
        until: Instant,
    ) -> Result<BTreeSet<PayoutKey>, StoreError> {
        payouts::at(self.pool().await, places, until).await
    }

    async fn payouts_of_file(
        &self,
        file: i64,
        until: Option<Instant>,
    ) -> Result<Vec<Payout>, StoreError> {
        payouts::of_file(self.pool().await, file, until).await
    }

    async fn payout_bookings(
        &self,
        payout: &PayoutKey,
        until: Option<Instant>,
    ) -> Result<Vec<Booking>, StoreError> {
        payouts::bookings(self.pool().await, payout, until).await
    }
}

impl ReplayDriver for PgStore {
    async fn decided_since(
        &self,
        since: Instant,
        after: Option<RecordPlace>,
        limit: i64,
    ) -> Result<Vec<(RecordPlace, Decided)>, StoreError> {
        replay::decided(self.pool().await, since, after, limit).await
    }

    async fn open_row_cases(
        &self,
        after: i64,
        limit: i64,
    ) -> Result<Vec<(i64, Decided)>, StoreError> {
        replay::open_cases(self.pool().await, after, limit).await
    }

    async fn unseen_row_cases(
        &self,
        after: Option<UnseenPlace>,
        limit: i64,
    ) -> Result<Vec<(UnseenPlace, Decided)>, StoreError> {
        replay::unseen_cases(self.pool().await, after, limit).await
    }

    async fn shown_by_cases(&self, cases: &[i64]) -> Result<Vec<(i64, String)>, StoreError> {
        replay::shown_by(self.pool().await, cases).await
    }

    async fn last_written(
        &self,
        table: &str,
        keys: &[String],
    ) -> Result<HashMap<String, Written>, StoreError> {
        replay::last_written(self.pool().await, table, keys).await
    }

    async fn ended_by_people(
        &self,
        table: &str,
        keys: &[String],
    ) -> Result<HashMap<String, String>, StoreError> {
        replay::ended_by_people(self.pool().await, table, keys).await
    }

    async fn rule_counts(&self, since: Instant) -> Result<Vec<RuleCount>, StoreError> {
        replay::counts(self.pool().await, since).await
    }
}

impl PeopleDriver for PgStore {
    async fn identity(&self) -> Result<Option<String>, StoreError> {
        people::identity(self.pool().await).await.map(Some)
    }

    async fn case_sums(&self, filter: &CaseFilter) -> Result<Vec<CaseSum>, StoreError> {
        people::sums(self.pool().await, filter).await
    }

    async fn case_sums_of_first(
        &self,
        filter: &CaseFilter,
        most: i64,
    ) -> Result<Vec<CaseSum>, StoreError> {
        people::sums_of_first(self.pool().await, filter, most).await
    }

    async fn open_ages_of_first(
        &self,
        edges: &[Instant],
        most: i64,
    ) -> Result<Vec<(usize, i64)>, StoreError> {
        people::ages_of_first(self.pool().await, edges, most).await
    }

    async fn case_runs(&self, case: &CaseRow) -> Result<CaseRuns, StoreError> {
        read::case_runs(self.pool().await, case).await
    }

    async fn case_plan(&self, filter: &CaseFilter) -> Result<Vec<String>, StoreError> {
        people::plan(self.pool().await, filter).await
    }

    async fn case_notes(&self, case: i64) -> Result<Vec<CaseNote>, StoreError> {
        people::notes(self.pool().await, case).await
    }

    async fn case_links(&self, case: i64) -> Result<CaseLinks, StoreError> {
        people::links(self.pool().await, case).await
    }

    async fn links_of(&self, cases: &[i64]) -> Result<HashMap<i64, CaseLinks>, StoreError> {
        people::links_of(self.pool().await, cases).await
    }

    async fn similar_cases(&self, case: &CaseRow, limit: i64) -> Result<Vec<CaseRow>, StoreError> {
        people::similar(self.pool().await, case, limit).await
    }

    async fn proposals(&self, cases: &[i64]) -> Result<Vec<Proposal>, StoreError> {
        people::proposals(self.pool().await, cases).await
    }

    async fn approved(
        &self,
        cases: Option<&[i64]>,
        after: i64,
        limit: i64,
    ) -> Result<Vec<Approved>, StoreError> {
        people::approved(self.pool().await, cases, after, limit).await
    }

    async fn assign_cases(
        &self,
        cases: &[i64],
        owner: Option<&str>,
        _by: &str,
        now: Instant,
    ) -> Result<u64, StoreError> {
        people::assign(self.pool().await, cases, owner, now).await
    }

    async fn comment_cases(
        &self,
        cases: &[i64],
        text: &str,
        _by: &str,
        now: Instant,
    ) -> Result<u64, StoreError> {
        people::comment(self.pool().await, cases, text, now).await
    }

    async fn propose(
        &self,
        proposals: &[NewProposal],
        _by: &str,
        now: Instant,
    ) -> Result<Vec<i64>, StoreError> {
        people::propose(self.pool().await, proposals, now).await
    }

    async fn approve(
        &self,
        proposals: &[(i64, Option<String>)],
        why: &str,
        _by: &str,
        now: Instant,
    ) -> Result<Vec<i64>, StoreError> {
        people::approve(self.pool().await, proposals, why, now).await
    }

    async fn turn_down(
        &self,
        proposals: &[i64],
        why: &str,
        _by: &str,
        now: Instant,
    ) -> Result<Vec<i64>, StoreError> {
        people::turn_down(self.pool().await, proposals, why, now).await
    }

    async fn refuse_approved(
        &self,
        run_id: &str,
        proposal: i64,
        why: &str,
        now: Instant,
    ) -> Result<bool, StoreError> {
        let pool = self.pool().await;
        patiently(async || people::refuse(pool, run_id, proposal, why, now).await).await
    }

    async fn leave_as_is(
        &self,
        run_id: &str,
        proposal: i64,
        now: Instant,
    ) -> Result<bool, StoreError> {
        people::leave(self.pool().await, run_id, proposal, now).await
    }

    async fn merge_cases(
        &self,
        into: Option<i64>,
        cases: &[i64],
        why: &str,
        _by: &str,
        now: Instant,
    ) -> Result<u64, StoreError> {
        people::merge(self.pool().await, into, cases, why, now).await
    }

    async fn purgeable_cases(
        &self,
        cases: &[i64],
        before: Instant,
    ) -> Result<Vec<i64>, StoreError> {
        people::purgeable(self.pool().await, cases, before).await
    }

    async fn purge_cases(&self, cases: &[i64], before: Instant) -> Result<u64, StoreError> {
        people::purge(self.pool().await, cases, before).await
    }

    async fn rows_to_look_at(
        &self,
        table: &str,
        reasons: &[Reason],
        before: Instant,
        limit: i64,
        proposed: bool,
    ) -> Result<Vec<String>, StoreError> {
        people::rows_to_look_at(self.pool().await, table, reasons, (before, limit), proposed).await
    }

    async fn note_looked_at(
        &self,
        table: &str,
        keys: &[String],
        now: Instant,
    ) -> Result<(), StoreError> {
        people::note_looked_at(self.pool().await, table, keys, now).await
    }
}

impl OutboxDriver for PgStore {
    async fn outbox_is_empty(&self) -> Result<bool, StoreError> {
        outbox::is_empty(self.pool().await).await
    }

    async fn distribute(
        &self,
        takers: &[Taker],
        limit: i64,
        now: Instant,
    ) -> Result<u64, StoreError> {
        outbox::distribute(self.pool().await, takers, limit, now).await
    }

    async fn suppress_stale(&self, now: Instant) -> Result<Stale, StoreError> {
        outbox::suppress_stale(self.pool().await, now).await
    }

    async fn lease_sink(
        &self,
        sink: &str,
        owner: &str,
        now: Instant,
        until: Instant,
        now_at_all: bool,
    ) -> Result<Turn, StoreError> {
        outbox::lease(self.pool().await, sink, owner, (now, until), now_at_all).await
    }

    async fn due_letters(
        &self,
        lease: &SinkLease,
        which: Which,
        limit: i64,
        now: Instant,
        until: Instant,
    ) -> Result<Option<Vec<Letter>>, StoreError> {
        outbox::due(self.pool().await, lease, (which, limit), (now, until)).await
    }

    async fn due_plan(
        &self,
        sink: &str,
        which: Which,
        now: Instant,
    ) -> Result<Vec<String>, StoreError> {
        outbox::plan(self.pool().await, sink, which, now).await
    }

    async fn settle_letters(
        &self,
        lease: &SinkLease,
        ends: &[(String, LetterEnd)],
        now: Instant,
    ) -> Result<bool, StoreError> {
        outbox::settle(self.pool().await, lease, ends, now).await
    }

    async fn release_sink(
        &self,
        lease: &SinkLease,
        health: &Health,
        now: Instant,
    ) -> Result<(), StoreError> {
        outbox::release(self.pool().await, lease, health, now).await
    }

    async fn sink_states(&self, now: Instant) -> Result<Vec<SinkState>, StoreError> {
        outbox::states(self.pool().await, now).await
    }

    async fn open_letters(
        &self,
        filter: &LetterFilter,
        limit: i64,
    ) -> Result<(Vec<OpenLetter>, i64), StoreError> {
        letters::open(self.pool().await, filter, limit).await
    }

    async fn merging(&self, filter: &LetterFilter, limit: i64) -> Result<Merging, StoreError> {
        letters::merging(self.pool().await, filter, limit).await
    }

    async fn undelivered_of_row(
        &self,
        table: &str,
        key: &str,
    ) -> Result<Vec<Undelivered>, StoreError> {
        letters::undelivered_of_row(self.pool().await, table, key).await
    }

    async fn change_letters(
        &self,
        deed: Deed,
        filter: &LetterFilter,
        by: By<'_>,
        now: Instant,
    ) -> Result<Done, StoreError> {
        letters::change(self.pool().await, deed, filter, by, now).await
    }

    async fn notify(&self, channel: &str, payloads: &[String]) -> Result<(), StoreError> {
        outbox::notify(self.pool().await, channel, payloads).await
    }
}
