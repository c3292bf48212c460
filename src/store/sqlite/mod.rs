//! SQLite: the embedded default. One file holds the user's tables and tieout's.
//!
//! What each verb must do stands in `store::driver`. Every verb that writes is one
//! `begin immediate`: SQLite lets one process write at a time, so that the file's lock does what
//! row locks do elsewhere, and a transaction that reads first can never find its read outdated.
//! Readers go on meanwhile, each in a snapshot of its own.

mod apply;
mod batches;
mod cases;
mod catalogue;
mod cells;
mod claim;
mod compare;
mod files;
mod guards;
mod inspect;
mod journal;
mod letters;
mod line_cases;
mod lines;
mod of_run;
mod outbox;
mod alike;
mod pages;
mod payouts;
mod lookup;
mod migrate;
mod names;
mod new_rows;
mod pauses;
mod people;
mod prune;
mod release;
mod replay;
mod rows;
mod runs;
mod shelf;
mod sql;
mod statements;
mod still;
mod told;
mod wake;
mod watch;
mod write;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use chrono::{NaiveDate, TimeDelta};
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqliteSynchronous,
};
use sqlx::{ConnectOptions as _, Connection as _, Sqlite, Transaction as SqlTransaction};
use tokio::sync::mpsc::{Receiver, Sender};

use crate::model::reason::Reason;
use crate::model::time::{Instant, from_text};
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
    ProposalState,
};
use crate::store::pool;
use crate::store::prune::{Prunable, Pruned, Pruning};
use crate::store::records::{
    AbandonedRun, ApplyEnd, CaseRow, ClaimFilter, Claimed, HandbackRow, JournalRow, RunEnd, RunRow,
    RunStart, Tagged, TotalLine, Waiting,
};
use crate::store::release::{Difference, Release, Said, Spoken, Word};
use crate::store::replay::{Decided, RecordPlace, ReplayDriver, RuleCount, UnseenPlace, Written};
use crate::store::settings::shown_address;
use crate::store::source_table::SourceTable;
use crate::store::sqlite::apply::{Batch, Counts};
use crate::store::sqlite::claim::Turn as ClaimTurn;
use crate::store::sqlite::sql::{failed, primary_code};
use crate::store::sqlite::still::Still;
use crate::store::watch::{Alert, AlertAsk, CaseLine, Change, FileFigures, Mark, StuckLine};

/// How long a statement waits for another process that is writing. A batch holds the file for
/// about a second; whoever waits longer has found a process that hangs.
const BUSY: Duration = Duration::from_secs(30);

/// Between two tries to open a file that is locked.
const LOCKED_PAUSE: Duration = Duration::from_millis(20);

/// The writer's page cache, in KiB below zero as SQLite has it: hashes fall all over their index,
/// and a batch must not read the same pages again and again. It is taken only as it is used.
const CACHE_KIB: &str = "-65536";

/// After how many pages the log is written back to the file, 64 MiB of the usual ones. Each batch
/// changes pages all over the indices of hashes: they are written back once for several batches.
/// A commit is on the disk all the same, since it waits for the log.
const CHECKPOINT_PAGES: &str = "16000";

/// How many rows SQLite's thread may be ahead of whoever reads them: it waits for nobody then.
const ROWS_AHEAD: usize = 1_024;

/// Whoever only looks does not wait for long.
const BUSY_LOOK: Duration = Duration::from_secs(5);

/// Readers at a time; each is a thread and an open file.
const READERS: u32 = 4;

/// One SQLite file.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    writer: SqlitePool,
    reader: SqlitePool,
    /// For messages.
    address: String,
    /// Where it is read as it lies, without a lock.
    still: Option<Still>,
}

/// The one connection that writes. Whoever closes the file last folds its log in and takes it away,
/// and whoever opens it just then is told at once, without a wait, that it is locked.
async fn writer(options: SqliteConnectOptions) -> Result<SqlitePool, sqlx::Error> {
    let began = tokio::time::Instant::now();
    loop {
        let opened = pool::lasting(1)
            .test_before_acquire(false)
            .after_release(|connection, _| Box::pin(is_clean(connection)))
            .connect_with(options.clone())
            .await;
        match opened {
            Err(error) if is_locked(&error) && began.elapsed() < BUSY => {
                tokio::time::sleep(LOCKED_PAUSE).await;
            }
            opened => return opened,
        }
    }
}

/// By the primary code; what it is extended by tells where the lock was met.
fn is_locked(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.and_then(|code| code.parse::<u32>().ok()).is_some_and(|code| code & 0xff == 5)
}

/// Why a file could not be opened, by SQLite's result codes (sqlite.org/rescode.html).
fn unopened(url: &str, source: sqlx::Error) -> StoreError {
    let code = match &source {
        sqlx::Error::Database(error) => error.code().and_then(|code| code.parse::<i64>().ok()),
        _other => None,
    };
    let is_there = || SqliteStore::file(url).is_some_and(|file| file.exists());
    let why = match code.map(|code| code & 0xff) {
        Some(8) if is_read_only(url) => Some(BY_ITS_ADDRESS),
        Some(14) if is_there() => Some(OF_ANOTHER),
        _other => code.and_then(why_unopened),
    };
    match why {
        Some((problem, hint)) => StoreError::File { address: url.to_owned(), problem, hint },
        None => StoreError::Unreachable { address: url.to_owned(), source },
    }
}

/// A file that is to be written, at an address that says that it is not.
const BY_ITS_ADDRESS: (&str, &str) = (
    "cannot be written: its address says so",
    "take `mode=ro` or `immutable` out of [database] url for what writes",
);

/// A file that is there.
const OF_ANOTHER: (&str, &str) = (
    "is there, and cannot be opened by this user",
    "let the user that runs tieout read and write the file and its folder (SQLite keeps its log \
     beside it)",
);

/// What a result code says of a file, and what to do next.
fn why_unopened(code: i64) -> Option<(&'static str, &'static str)> {
    // The low byte is the primary code.
    Some(match code & 0xff {
        8 => (
            "cannot be written by this user",
            "let the user that runs tieout write the file and its folder (SQLite keeps its log \
             beside it)",
        ),
        10 | 13 => (
            "cannot be used: its disk failed, or has no room",
            "look at the disk that the file is on: is it full? SQLite keeps its log there, too",
        ),
        14 => (
            "cannot be opened: there is no such file, or its folder is out of reach",
            "check [database] url; name the file by its whole path, such as \
             sqlite:/srv/shop/shop.db; a file of your application's must be there already",
        ),
        26 => ("is no SQLite database", "check [database] url"),
        _other => return None,
    })
}

/// Why a file could not be opened to read it.
fn unread(url: &str, source: sqlx::Error) -> StoreError {
    match primary_code(&source) {
        Some(8) => still::unsettled(url),
        _other => unopened(url, source),
    }
}

fn no_memory(url: &str) -> Result<(), StoreError> {
    if url.contains(":memory:") || url.contains("mode=memory") {
        return Err(StoreError::Setting {
            field: "url".to_owned(),
            problem: "a database in memory ends with the process; name a file".to_owned(),
        });
    }
    Ok(())
}

/// Reads an address. What the driver says of a bad one may quote a parameter, and with it a secret.
fn read_address(url: &str) -> Result<SqliteConnectOptions, StoreError> {
    SqliteConnectOptions::from_str(url).map_err(|error| {
        let why = match url.contains('?') {
            true => "it may have mode, cache, immutable and vfs behind the `?`".to_owned(),
            false => error.to_string(),
        };
        let problem = format!("`{}` is no address of an SQLite file: {why}", shown_address(url));
        StoreError::Setting { field: "url".to_owned(), problem }
    })
}

/// Whether the address says that nothing is ever written there.
fn is_read_only(url: &str) -> bool {
    let (_, words) = url.split_once('?').unwrap_or_default();
    words.split('&').any(|word| matches!(word, "mode=ro" | "immutable=true" | "immutable=1"))
}

/// For what only reads: a log that somebody left stays as it is.
fn never_folding(options: SqliteConnectOptions) -> SqliteConnectOptions {
    match still::has_log(options.get_filename()) {
        true => options.read_only(true),
        false => options,
    }
}

/// How a file is opened to read it alone.
fn to_read(url: &str) -> Result<(SqliteConnectOptions, Option<Still>), StoreError> {
    let address = shown_address(url);
    let options = read_address(url)?;
    let still = Still::of(options.get_filename(), &address)?;
    let options = match &still {
        Some(_) => options.read_only(true).immutable(true),
        None => never_folding(options),
    };
    let options = options.create_if_missing(false).pragma("query_only", "on");
    Ok((options.disable_statement_logging(), still))
}

/// A few connections that read.
async fn readers(options: SqliteConnectOptions) -> Result<SqlitePool, sqlx::Error> {
    pool::lasting(READERS).test_before_acquire(false).connect_with(options).await
}

/// The same, once one of them has read: only then is it known whether this is a database, and one
/// that can be read. From then on nobody takes the log away. As for [`writer`], a file whose log is
/// just folded in is waited for.
async fn readers_that_read(options: SqliteConnectOptions) -> Result<SqlitePool, sqlx::Error> {
    let began = tokio::time::Instant::now();
    let pool = readers(options).await?;
    loop {
        match sqlx::query("select 1 from sqlite_master limit 1").execute(&pool).await {
            Err(error) if is_locked(&error) && began.elapsed() < BUSY => {
                tokio::time::sleep(LOCKED_PAUSE).await;
            }
            read => return read.map(|_| pool),
        }
    }
}

impl SqliteStore {
    /// Opens the file. It is made only where the address says so (`?mode=rwc`): a mistyped path
    /// must not become an empty database in which nothing is ever due.
    ///
    /// # Errors
    /// Where the address is none of SQLite's, or the file cannot be opened.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::open(url, Some(SqliteJournalMode::Wal)).await
    }

    /// As [`SqliteStore::connect`], for what only reads: a file without a write-ahead log is given
    /// none. Whoever reads such a file holds up who writes it. One that cannot be written, by its
    /// rights or by the address, is opened as for a dry run.
    ///
    /// # Errors
    /// Its.
    pub async fn connect_as_is(url: &str) -> Result<Self, StoreError> {
        match Self::file(url).is_some_and(|file| still::may_write(&file)) && !is_read_only(url) {
            true => Self::open(url, None).await,
            false => Self::rehearse(url).await,
        }
    }

    /// The file that an address names.
    pub fn file(url: &str) -> Option<PathBuf> {
        url.starts_with("sqlite:")
            .then(|| read_address(url).ok())
            .flatten()
            .map(|options| options.get_filename().to_owned())
    }

    async fn open(url: &str, journal: Option<SqliteJournalMode>) -> Result<Self, StoreError> {
        let options = read_address(url)?;
        no_memory(url)?;
        let options = options
            .foreign_keys(true)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY)
            .row_buffer_size(ROWS_AHEAD)
            .disable_statement_logging();
        let read_only = options.clone().create_if_missing(false).read_only(true);
        let options = match journal {
            Some(journal) => options.journal_mode(journal),
            None => never_folding(options),
        };
        let options = options
            .pragma("cache_size", CACHE_KIB)
            .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
            // What a statement would have to undo stays in memory: kept in a file, it was more than
            // half of all writes of a batch.
            .pragma("temp_store", "memory");
        let writer = writer(options).await.map_err(|source| unopened(url, source))?;
        let reader = pool::lasting(READERS).test_before_acquire(false).connect_lazy_with(read_only);
        Ok(Self { writer, reader, address: shown_address(url), still: None })
    }

    /// Opens a file to look at it alone: nothing can be written through it, its journal included.
    ///
    /// # Errors
    /// Where the address is none of SQLite's, or there is no such file.
    pub async fn look(url: &str) -> Result<Self, StoreError> {
        let (options, still) = to_read(url)?;
        let address = shown_address(url);
        let opened = readers(options.busy_timeout(BUSY_LOOK)).await;
        let pool = opened.map_err(|source| unopened(&address, source))?;
        Ok(Self { writer: pool.clone(), reader: pool, address, still })
    }

    /// Opens a file for a dry run: nothing can be written through it, and it may be one that cannot
    /// be written at all, by its rights or by the address (`?mode=ro`).
    ///
    /// # Errors
    /// Where the address is none of SQLite's, or the file cannot be read.
    pub async fn rehearse(url: &str) -> Result<Self, StoreError> {
        no_memory(url)?;
        let (options, still) = to_read(url)?;
        let options = options.busy_timeout(BUSY).row_buffer_size(ROWS_AHEAD);
        let pool = readers_that_read(options).await.map_err(|source| unread(url, source))?;
        Ok(Self { writer: pool.clone(), reader: pool, address: shown_address(url), still })
    }

    /// Refuses what was read of a file that was read without a lock, and written meanwhile.
    ///
    /// # Errors
    /// Where it was.
    pub fn is_as_it_was(&self) -> Result<(), StoreError> {
        match &self.still {
            Some(still) if !still.is_as_it_was() => Err(still::changed(&self.address)),
            Some(_) | None => Ok(()),
        }
    }

    /// Writes the log back to the file as far as nobody reads it; nobody waits for it meanwhile.
    pub async fn fold_log(&self) {
        let folded = sqlx::query("pragma wal_checkpoint(passive)").execute(&self.writer).await;
        if let Err(error) = folded {
            // Everything is in the log: the next to write or to close folds it.
            tracing::debug!(%error, "The write-ahead log was not folded into the file");
        }
    }

    /// Ends all connections; the last one tidies the write-ahead log.
    pub async fn close(&self) {
        self.reader.close().await;
        self.writer.close().await;
    }

    #[expect(clippy::disallowed_methods, reason = "what comes back within one is closed")]
    async fn write(
        &self,
        doing: &'static str,
    ) -> Result<SqlTransaction<'static, Sqlite>, StoreError> {
        self.writer.begin_with("begin immediate").await.map_err(failed(doing))
    }

    async fn read(&self, doing: &'static str) -> Result<PoolConnection<Sqlite>, StoreError> {
        self.reader.acquire().await.map_err(failed(doing))
    }

    /// One batch in one transaction; the writer moves on after the commit.
    async fn carry(
        &self,
        writer: &mut Writer,
        batch: &Batch<'_>,
    ) -> Result<Option<Counts>, StoreError> {
        let doing = "applying decisions";
        let mut transaction = self.write(doing).await?;
        let Some(carried) = apply::apply(&mut transaction, writer, batch).await? else {
            return Ok(None);
        };
        commit(transaction, doing).await?;
        *writer = carried.writer;
        Ok(Some(carried.counts))
    }

    #[expect(clippy::disallowed_methods, reason = "what comes back within one is closed")]
    async fn snapshot(
        &self,
        doing: &'static str,
    ) -> Result<SqlTransaction<'static, Sqlite>, StoreError> {
        self.reader.begin().await.map_err(failed(doing))
    }
}

/// A connection that comes back within a transaction is closed. SQLite itself ends a transaction
/// on some errors (a full disk, a trigger that rolls back), and what counts it would not know.
async fn is_clean(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    connection.ping().await?;
    Ok(!connection.is_in_transaction())
}

async fn commit(
    transaction: SqlTransaction<'static, Sqlite>,
    doing: &'static str,
) -> Result<(), StoreError> {
    transaction.commit().await.map_err(failed(doing))
}

impl Driver for SqliteStore {
    async fn migrate(&self) -> Result<(), StoreError> {
        let doing = "making tieout's tables";
        let mut transaction = self.write(doing).await?;
        migrate::migrate(&mut transaction).await?;
        commit(transaction, doing).await
    }

    async fn schema_state(&self) -> Result<(i64, i64), StoreError> {
        migrate::state(&mut *self.read("looking at tieout's tables").await?).await
    }

    async fn now(&self) -> Result<Instant, StoreError> {
        let doing = "asking the time";
        let mut connection = self.read(doing).await?;
        let text: String =
            sqlx::query_scalar("select strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z'")
                .fetch_one(&mut *connection)
                .await
                .map_err(failed(doing))?;
        from_text(&text).ok_or_else(|| StoreError::Unexpected {
            doing,
            problem: format!("`{text}` is not a time"),
        })
    }

    async fn map_tables(
        &self,
        tables: &[TableSettings],
        accounts: &[String],
    ) -> Result<Vec<SourceTable>, StoreError> {
        let mut connection = self.read("reading the catalogue").await?;
        catalogue::map_tables(&mut connection, tables, accounts).await
    }

    async fn unmapped_statuses(&self, table: &SourceTable) -> Result<Vec<String>, StoreError> {
        let mut connection = self.read("looking for unmapped status values").await?;
        catalogue::unmapped_statuses(&mut connection, table).await
    }

    async fn lacks_status(&self, table: &SourceTable) -> Result<bool, StoreError> {
        let mut connection = self.read("looking for rows without a status").await?;
        catalogue::lacks_status(&mut connection, table).await
    }

    async fn role_statements(
        &self,
        _tables: &[SourceTable],
        _prefix: &str,
    ) -> Result<Option<String>, StoreError> {
        Ok(None)
    }

    async fn start_run(&self, start: &RunStart, now: Instant) -> Result<(), StoreError> {
        let doing = "opening a run";
        let mut transaction = self.write(doing).await?;
        runs::start(&mut transaction, start, now).await?;
        commit(transaction, doing).await
    }

    async fn heartbeat(
        &self,
        run_id: &str,
        now: Instant,
        lease_until: Instant,
    ) -> Result<bool, StoreError> {
        let doing = "showing the run's life";
        let mut transaction = self.write(doing).await?;
        let is_alive = runs::heartbeat(&mut transaction, run_id, now, lease_until).await?;
        commit(transaction, doing).await?;
        Ok(is_alive)
    }

    async fn abandon_run(
        &self,
        run_id: &str,
        now: Instant,
        dead_after: TimeDelta,
    ) -> Result<Option<AbandonedRun>, StoreError> {
        let doing = "closing an abandoned run";
        let mut transaction = self.write(doing).await?;
        let id = Some(run_id);
        let mut closed = runs::close_abandoned(&mut transaction, id, now, dead_after).await?;
        commit(transaction, doing).await?;
        Ok(closed.pop())
    }

    async fn close_abandoned(
        &self,
        now: Instant,
        dead_after: TimeDelta,
    ) -> Result<Vec<AbandonedRun>, StoreError> {
        let doing = "closing abandoned runs";
        let mut transaction = self.write(doing).await?;
        let closed = runs::close_abandoned(&mut transaction, None, now, dead_after).await?;
        commit(transaction, doing).await?;
        Ok(closed)
    }

    async fn close_run(
        &self,
        run_id: &str,
        end: &RunEnd,
        now: Instant,
    ) -> Result<Option<String>, StoreError> {
        let doing = "closing a run";
        let mut transaction = self.write(doing).await?;
        let head = runs::close(&mut transaction, run_id, end, now).await?;
        commit(transaction, doing).await?;
        Ok(head)
    }

    async fn undone(&self, now: Instant) -> Result<Undone, StoreError> {
        runs::undone(&mut *self.read("looking for what waits").await?, now).await
    }

    async fn enrol(
        &self,
        table: &SourceTable,
        filter: &ClaimFilter,
        now: Instant,
    ) -> Result<u64, StoreError> {
        let doing = "taking stuck rows in";
        let turn = ClaimTurn { table, filter, run_id: None, limit: i64::MAX, now };
        let mut transaction = self.write(doing).await?;
        let taken = claim::enrol(&mut transaction, &turn).await?;
        commit(transaction, doing).await?;
        Ok(taken)
    }

    async fn claim_plan(
        &self,
        table: &SourceTable,
        filter: &ClaimFilter,
        limit: i64,
        now: Instant,
    ) -> Result<Vec<String>, StoreError> {
        let turn = ClaimTurn { table, filter, run_id: None, limit, now };
        let mut connection = self.read("asking how rows are claimed").await?;
        let mut steps = claim::plan(&mut connection, &turn).await?;
        steps.extend(write::plan(&mut connection, table).await?);
        Ok(steps)
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
        let doing = "claiming due rows";
        let turn = ClaimTurn { table, filter, run_id: Some(run_id), limit, now };
        let mut transaction = self.write(doing).await?;
        if !runs::is_running(&mut transaction, run_id).await? {
            return Ok(Vec::new());
        }
        let claimed = claim::claim_due(&mut transaction, &turn, run_id, lease_until).await?;
        commit(transaction, doing).await?;
        Ok(claimed)
    }

    async fn is_due(
        &self,
        run_id: &str,
        table: &SourceTable,
        filter: &ClaimFilter,
        now: Instant,
    ) -> Result<bool, StoreError> {
        let turn = ClaimTurn { table, filter, run_id: Some(run_id), limit: 1, now };
        claim::is_due(&mut *self.read("looking for rows still due").await?, &turn).await
    }

    async fn new_among(
        &self,
        table: &SourceTable,
        filter: &ClaimFilter,
        keys: &[String],
    ) -> Result<Vec<String>, StoreError> {
        let named = ClaimFilter { ids: Some(keys.to_vec()), ..filter.clone() };
        new_rows::new_among(&mut *self.read(new_rows::READING).await?, table, &named).await
    }

    async fn preview_due(
        &self,
        table: &SourceTable,
        filter: &ClaimFilter,
        limit: i64,
        now: Instant,
    ) -> Result<Vec<Claimed>, StoreError> {
        let turn = ClaimTurn { table, filter, run_id: None, limit, now };
        claim::preview(&mut *self.snapshot("looking for due rows").await?, &turn).await
    }

    async fn release(
        &self,
        run_id: &str,
        rows: &[Claimed],
        now: Instant,
    ) -> Result<(), StoreError> {
        let doing = "giving rows back";
        let mut transaction = self.write(doing).await?;
        claim::release(&mut transaction, run_id, rows, now).await?;
        commit(transaction, doing).await
    }

    async fn siblings(
        &self,
        table: &SourceTable,
        rows: &[&Transaction],
    ) -> Result<HashMap<String, Vec<SiblingFact>>, StoreError> {
        lookup::siblings(&mut *self.read("looking rows up").await?, table, rows).await
    }

    async fn shared_tags(
        &self,
        table: &SourceTable,
        account: &str,
        rows: &[&Transaction],
    ) -> Result<HashSet<String>, StoreError> {
        lookup::shared_tags(&mut *self.read("looking rows up").await?, table, account, rows).await
    }

    async fn rows_tagged(
        &self,
        table: &SourceTable,
        account: &str,
        tags: &[String],
    ) -> Result<Vec<Tagged>, StoreError> {
        lookup::rows_tagged(&mut *self.read("looking rows up").await?, table, account, tags).await
    }

    async fn resolve_tags(
        &self,
        table: &SourceTable,
        account: &str,
        tags: &[String],
    ) -> Result<HashSet<String>, StoreError> {
        lookup::resolve_tags(&mut *self.read("looking rows up").await?, table, account, tags).await
    }

    async fn rows_known_by(
        &self,
        table: &SourceTable,
        account: &str,
        tags: &[String],
        references: &[String],
        keys: &[String],
    ) -> Result<Vec<Transaction>, StoreError> {
        let mut connection = self.read("looking rows up").await?;
        lookup::rows_known_by(&mut connection, table, account, tags, references, keys).await
    }

    async fn keys_storing(
        &self,
        table: &SourceTable,
        account: &str,
        references: &[String],
    ) -> Result<Vec<(String, String)>, StoreError> {
        let mut connection = self.read("looking rows up").await?;
        lookup::keys_storing(&mut connection, table, account, references).await
    }

    async fn taken_references(
        &self,
        account: &str,
        references: &[String],
    ) -> Result<HashMap<String, Vec<(String, String)>>, StoreError> {
        let mut connection = self.read("looking rows up").await?;
        lookup::taken_references(&mut connection, account, references).await
    }

    async fn references_of(
        &self,
        account: &str,
        table: &str,
        keys: &[String],
    ) -> Result<Vec<(String, String)>, StoreError> {
        let mut connection = self.read("looking rows up").await?;
        lookup::references_of(&mut connection, account, table, keys).await
    }

    async fn resolve_references(
        &self,
        table: &SourceTable,
        account: &str,
        references: &[String],
    ) -> Result<HashMap<String, Vec<(String, String)>>, StoreError> {
        let mut connection = self.read("looking rows up").await?;
        lookup::resolve_references(&mut connection, table, account, references).await
    }

    async fn apply(
        &self,
        run_id: &str,
        writer: &mut Writer,
        table: &SourceTable,
        batch: Vec<RowEffects>,
        now: Instant,
    ) -> Result<ApplyEnd, StoreError> {
        let mut counts = Counts::default();
        let mut parts = vec![batch.as_slice()];
        while let Some(rows) = parts.pop() {
            let whole = Batch { run_id, table, rows, now, refused: None };
            let carried = match self.carry(writer, &whole).await {
                Ok(carried) => carried,
                Err(error) => match (sql::refused_whole(&error), rows) {
                    (None, _) | (_, []) => return Err(error),
                    (Some(why), [_only]) => {
                        let alone = Batch { refused: Some(&why), ..whole };
                        self.carry(writer, &alone).await?
                    }
                    // Refused as a whole: by halves, until the refusal has its row.
                    (Some(_), several) => {
                        let (first, second) = several.split_at(several.len().div_ceil(2));
                        parts.extend([second, first]);
                        continue;
                    }
                },
            };
            match carried {
                Some(part) => counts = counts.and(part),
                None => return Ok(ApplyEnd::RunClosed),
            }
        }
        Ok(counts.done())
    }

    async fn put_account_case(
        &self,
        run_id: &str,
        case: &AccountCase,
        now: Instant,
    ) -> Result<i64, StoreError> {
        let doing = "opening an account's case";
        let mut transaction = self.write(doing).await?;
        let number = cases::put_account(&mut transaction, run_id, case, now).await?;
        commit(transaction, doing).await?;
        Ok(number)
    }

    async fn close_account_case(
        &self,
        run_id: &str,
        account: &str,
        reason: Reason,
        resolution: &str,
        now: Instant,
    ) -> Result<bool, StoreError> {
        let doing = "closing an account's case";
        let mut transaction = self.write(doing).await?;
        let is_closed =
            cases::close_account(&mut transaction, run_id, account, reason, resolution, now)
                .await?;
        commit(transaction, doing).await?;
        Ok(is_closed)
    }

    async fn pause_account(
        &self,
        account: &str,
        by: &str,
        why: &str,
        now: Instant,
    ) -> Result<Paused, StoreError> {
        // Whoever writes has the file alone: a batch was committed before, or reads the switch.
        let mut transaction = self.write(pauses::PAUSING).await?;
        let paused = pauses::pause(&mut transaction, account, by, why, now).await?;
        commit(transaction, pauses::PAUSING).await?;
        Ok(paused)
    }

    async fn resume_account(&self, account: &str) -> Result<Option<Pause>, StoreError> {
        let mut transaction = self.write(pauses::RESUMING).await?;
        let pause = pauses::resume(&mut transaction, account).await?;
        commit(transaction, pauses::RESUMING).await?;
        Ok(pause)
    }

    async fn pauses(&self) -> Result<Vec<Pause>, StoreError> {
        pauses::all(&mut *self.read("reading the paused accounts").await?, None).await
    }

    async fn account_state(&self, account: &str) -> Result<AccountState, StoreError> {
        cases::account_state(&mut *self.read("reading accounts").await?, account).await
    }

    async fn put_account_state(
        &self,
        account: &str,
        unanswered_since: Option<Instant>,
        usual_permille: Option<u32>,
    ) -> Result<(), StoreError> {
        let doing = "storing what is known of an account";
        let mut transaction = self.write(doing).await?;
        cases::put_account_state(&mut transaction, account, unanswered_since, usual_permille)
            .await?;
        commit(transaction, doing).await
    }

    async fn run(&self, run_id: &str) -> Result<Option<RunRow>, StoreError> {
        let mut connection = self.read("reading runs").await?;
        runs::one(&mut connection, run_id).await
    }

    async fn runs(&self, limit: i64) -> Result<Vec<RunRow>, StoreError> {
        runs::newest(&mut *self.read("reading runs").await?, limit).await
    }

    async fn run_totals(&self, run_id: &str) -> Result<Vec<TotalLine>, StoreError> {
        runs::totals(&mut *self.read("reading a run's totals").await?, run_id).await
    }

    async fn withheld_of_run(&self, run_id: &str) -> Result<i64, StoreError> {
        runs::withheld(&mut *self.read("counting what a mode withheld").await?, run_id).await
    }

    async fn journal_of_run(
        &self,
        run_id: &str,
        after: Option<(String, i64)>,
        limit: i64,
    ) -> Result<Vec<JournalRow>, StoreError> {
        let mut connection = self.read("reading the journal").await?;
        journal::of_run(&mut connection, run_id, after.as_ref(), limit).await
    }

    async fn journal_of_row(&self, table: &str, key: &str) -> Result<Vec<JournalRow>, StoreError> {
        journal::of_row(&mut *self.read("reading the journal").await?, table, key).await
    }

    async fn check(&self, table: &str, key: &str) -> Result<Option<CheckRow>, StoreError> {
        rows::check(&mut *self.snapshot("reading what is remembered").await?, table, key).await
    }

    async fn handbacks(&self, table: &str, key: &str) -> Result<Vec<HandbackRow>, StoreError> {
        rows::handbacks(&mut *self.read("reading hand-backs").await?, table, key).await
    }

    async fn evidence(&self, sha256: &str) -> Result<Option<String>, StoreError> {
        journal::evidence(&mut *self.read("reading evidence").await?, sha256).await
    }

    async fn cases(&self, filter: &CaseFilter) -> Result<Vec<CaseRow>, StoreError> {
        cases::list(&mut *self.read("reading cases").await?, filter).await
    }

    async fn case(&self, number: i64) -> Result<Option<CaseRow>, StoreError> {
        cases::one(&mut *self.read("reading cases").await?, number).await
    }

    async fn case_counts(&self, run_id: &str) -> Result<CaseCounts, StoreError> {
        cases::counts(&mut *self.read("counting cases").await?, run_id).await
    }

    async fn waiting(&self, tables: &[String], now: Instant) -> Result<Waiting, StoreError> {
        watch::waiting(&mut *self.read("counting rows").await?, tables, now).await
    }

    async fn stuck_by_account(&self) -> Result<Vec<StuckLine>, StoreError> {
        watch::stuck(&mut *self.read("counting stuck rows").await?).await
    }

    async fn open_cases_by_age(&self, edges: &[Instant]) -> Result<Vec<CaseLine>, StoreError> {
        watch::cases(&mut *self.read("counting cases").await?, edges).await
    }

    async fn file_figures(&self) -> Result<FileFigures, StoreError> {
        watch::files(&mut *self.read("counting files").await?).await
    }

    async fn move_marks(
        &self,
        scope: &str,
        changes: &[(String, Change)],
    ) -> Result<Vec<Mark>, StoreError> {
        let doing = "moving monitoring's numbers";
        let mut transaction = self.write(doing).await?;
        let marks = watch::move_marks(&mut transaction, scope, changes).await?;
        commit(transaction, doing).await?;
        Ok(marks)
    }

    async fn marks(&self, scope: &str) -> Result<Vec<Mark>, StoreError> {
        watch::marks(&mut *self.read("reading what is remembered").await?, scope).await
    }

    async fn take_alerts(&self, ask: &AlertAsk) -> Result<Vec<Alert>, StoreError> {
        let doing = "taking alerts";
        let mut transaction = self.write(doing).await?;
        let alerts = watch::take(&mut transaction, ask).await?;
        commit(transaction, doing).await?;
        Ok(alerts)
    }

    async fn settle_alerts(
        &self,
        ask: &AlertAsk,
        alerts: &[Alert],
        is_told: bool,
    ) -> Result<(), StoreError> {
        let doing = "noting what was told";
        let mut transaction = self.write(doing).await?;
        watch::settle(&mut transaction, ask, alerts, is_told).await?;
        commit(transaction, doing).await
    }

    async fn note_monitoring(&self, run_id: &str, problems: &[String]) -> Result<(), StoreError> {
        let doing = "noting what monitoring could not do";
        let mut transaction = self.write(doing).await?;
        watch::note(&mut transaction, run_id, problems).await?;
        commit(transaction, doing).await
    }

    async fn prunable(&self, before: Instant) -> Result<Prunable, StoreError> {
        let looked_at = self.now().await?;
        let mut connection = self.snapshot("looking for runs to prune").await?;
        prune::prunable(&mut connection, before, looked_at).await
    }

    async fn prune_run(
        &self,
        pruning: &Pruning<'_>,
        now: Instant,
    ) -> Result<Option<Pruned>, StoreError> {
        let mut transaction = self.write(prune::PRUNING).await?;
        let pruned = prune::prune(&mut transaction, pruning, now).await?;
        commit(transaction, prune::PRUNING).await?;
        Ok(pruned)
    }

    async fn pruned_at(&self, run_id: &str) -> Result<Option<Instant>, StoreError> {
        let mut connection = self.read("reading whether the run was pruned").await?;
        prune::pruned_at(&mut connection, run_id).await
    }

    async fn verify_audit(&self) -> Result<AuditFinding, StoreError> {
        journal::verify(&mut *self.snapshot("verifying the audit chain").await?).await
    }
}

impl FileDriver for SqliteStore {
    async fn put_file(
        &self,
        run_id: &str,
        head: &FileHead,
        mut parts: Receiver<Part>,
        now: Instant,
    ) -> Result<FileEnd, StoreError> {
        // The first part is waited for before anybody else is kept from writing.
        let Some(first) = parts.recv().await else { return Ok(FileEnd::Dropped) };
        let mut transaction = self.write(files::DOING).await?;
        let end = files::put(&mut transaction, run_id, head, first, &mut parts, now).await?;
        match end {
            FileEnd::Dropped => transaction.rollback().await.map_err(failed(files::DOING))?,
            _kept => commit(transaction, files::DOING).await?,
        }
        Ok(end)
    }

    async fn known_names(&self, source: &str) -> Result<Vec<KnownName>, StoreError> {
        names::known(&mut *self.read(names::READING).await?, source, None).await
    }

    async fn names_of_account(
        &self,
        source: &str,
        account: &str,
    ) -> Result<Vec<KnownName>, StoreError> {
        names::known(&mut *self.read(names::READING).await?, source, Some(account)).await
    }

    async fn note_name(
        &self,
        run_id: &str,
        sighting: &Sighting,
        file: i64,
        now: Instant,
    ) -> Result<(), StoreError> {
        let mut transaction = self.write(files::DOING).await?;
        files::note_name(&mut transaction, run_id, sighting, file, now).await?;
        commit(transaction, files::DOING).await
    }

    async fn note_archived(
        &self,
        source: &str,
        name: &str,
        raw_sha256: &str,
        now: Instant,
    ) -> Result<(), StoreError> {
        let mut transaction = self.write(names::NOTING).await?;
        names::archived(&mut transaction, source, name, raw_sha256, now).await?;
        commit(transaction, names::NOTING).await
    }

    async fn note_spooled(&self, file: i64, spooled_as: &str) -> Result<(), StoreError> {
        let mut transaction = self.write(names::NOTING).await?;
        names::spooled(&mut transaction, file, spooled_as).await?;
        commit(transaction, names::NOTING).await
    }

    async fn put_absent_case(
        &self,
        run_id: &str,
        case: &AbsentCase,
        now: Instant,
    ) -> Result<(), StoreError> {
        let mut transaction = self.write(names::CASE).await?;
        names::put_absent(&mut transaction, run_id, case, now).await?;
        commit(transaction, names::CASE).await
    }

    async fn close_absent_cases(
        &self,
        run_id: &str,
        source: &str,
        but: &[String],
        now: Instant,
    ) -> Result<u64, StoreError> {
        let mut transaction = self.write(names::CASE).await?;
        let closed = names::close_absent(&mut transaction, run_id, source, but, now).await?;
        commit(transaction, names::CASE).await?;
        Ok(closed)
    }

    async fn ask_release(&self, file: i64, word: &Word, now: Instant) -> Result<Said, StoreError> {
        let mut transaction = self.write(release::ASKING).await?;
        let said = release::ask(&mut transaction, file, word, now).await?;
        commit(transaction, release::ASKING).await?;
        Ok(said)
    }

    async fn releases_waiting(&self, file: Option<i64>) -> Result<Vec<Spoken>, StoreError> {
        release::waiting(&mut *self.read(release::WAITED).await?, file).await
    }

    async fn release_quarantined(
        &self,
        run_id: &str,
        spoken: &Spoken,
        mut parts: Receiver<Part>,
        now: Instant,
    ) -> Result<Release, StoreError> {
        // The first part is waited for before anybody else is kept from writing.
        let Some(first) = parts.recv().await else { return Ok(Release::Dropped) };
        let mut transaction = self.write(release::DOING).await?;
        let parts = (first, &mut parts);
        let done = release::load(&mut transaction, run_id, spoken, parts, now).await?;
        match done {
            Release::Done { .. } => commit(transaction, release::DOING).await?,
            Release::Nothing | Release::Dropped | Release::Empty | Release::Later(_) => {
                transaction.rollback().await.map_err(failed(release::DOING))?;
            }
        }
        Ok(done)
    }

    async fn release_held(
        &self,
        run_id: &str,
        spoken: &Spoken,
        now: Instant,
    ) -> Result<Release, StoreError> {
        let mut transaction = self.write(release::DOING).await?;
        let done = release::let_count(&mut transaction, run_id, spoken, now).await?;
        match done {
            Release::Done { .. } => commit(transaction, release::DOING).await?,
            Release::Nothing | Release::Dropped | Release::Empty | Release::Later(_) => {
                transaction.rollback().await.map_err(failed(release::DOING))?;
            }
        }
        Ok(done)
    }

    async fn refuse_release(
        &self,
        run_id: &str,
        spoken: &Spoken,
        why: &str,
        now: Instant,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.write(release::DOING).await?;
        let is_ended = release::refuse(&mut transaction, run_id, spoken, why, now).await?;
        commit(transaction, release::DOING).await?;
        Ok(is_ended)
    }

    async fn differences(&self, file: i64) -> Result<Vec<Difference>, StoreError> {
        release::differences(&mut *self.read(release::COMPARING).await?, file).await
    }

    async fn lines_of(
        &self,
        account: &str,
        tags: &[String],
        references: &[String],
    ) -> Result<Vec<StoredLine>, StoreError> {
        let texts: Vec<&str> = tags.iter().chain(references).map(String::as_str).collect();
        lines::of(&mut *self.read("reading settlement lines").await?, account, &texts).await
    }

    async fn lines_plan(&self, account: &str, tags: &[String]) -> Result<Vec<String>, StoreError> {
        let texts: Vec<&str> = tags.iter().map(String::as_str).collect();
        lines::plan(&mut *self.read("reading settlement lines").await?, account, &texts).await
    }

    async fn open_lines(
        &self,
        account: &str,
        after: Option<LinePlace>,
        limit: i64,
    ) -> Result<Vec<OpenLine>, StoreError> {
        let mut connection = self.read("reading settlement lines").await?;
        lines::open(&mut connection, account, after, limit).await
    }

    async fn open_of_money(
        &self,
        account: &str,
        minors: &[i64],
    ) -> Result<Vec<StoredLine>, StoreError> {
        let mut connection = self.read("reading settlement lines").await?;
        lines::open_of_money(&mut connection, account, minors).await
    }

    async fn taken_out(
        &self,
        account: &str,
        after: Option<LinePlace>,
        limit: i64,
    ) -> Result<Vec<StoredLine>, StoreError> {
        let mut connection = self.read("reading settlement lines").await?;
        lines::taken_out(&mut connection, account, after, limit).await
    }

    async fn taken_alone(
        &self,
        account: &str,
        after: Option<LinePlace>,
        limit: i64,
    ) -> Result<Vec<StoredLine>, StoreError> {
        let mut connection = self.read("reading settlement lines").await?;
        lines::taken_alone(&mut connection, account, after, limit).await
    }

    async fn taken_out_of(
        &self,
        table: &str,
        keys: &[String],
    ) -> Result<Vec<StoredLine>, StoreError> {
        let mut connection = self.read("reading settlement lines").await?;
        lines::taken_out_of(&mut connection, table, keys).await
    }

    async fn told_of_rows(
        &self,
        account: &str,
        since: Instant,
    ) -> Result<Vec<(LinePlace, (String, String))>, StoreError> {
        let mut connection = self.read("reading settlement lines").await?;
        lines::told_of_rows(&mut connection, account, since).await
    }

    async fn doubted(
        &self,
        places: &[LinePlace],
    ) -> Result<Vec<(LinePlace, LinePlace)>, StoreError> {
        let mut connection = self.read("reading settlement lines").await?;
        lines::doubted(&mut connection, places).await
    }

    async fn note_looked_again(
        &self,
        run_id: &str,
        places: &[LinePlace],
    ) -> Result<(), StoreError> {
        let doing = "marking settlement lines";
        let mut transaction = self.write(doing).await?;
        lines::note_looked_again(&mut transaction, run_id, places).await?;
        commit(transaction, doing).await
    }

    async fn exclude_lines(&self, places: &[LinePlace]) -> Result<(), StoreError> {
        let doing = "marking settlement lines";
        let mut transaction = self.write(doing).await?;
        lines::exclude(&mut transaction, places).await?;
        commit(transaction, doing).await
    }

    async fn asleep(
        &self,
        table: &str,
        rows: &[(String, LinePlace)],
        now: Instant,
    ) -> Result<Vec<String>, StoreError> {
        wake::asleep(&mut *self.read(wake::LOOKING).await?, table, rows, now).await
    }

    async fn parked(
        &self,
        table: &str,
        rows: &[(String, LinePlace)],
    ) -> Result<Vec<String>, StoreError> {
        wake::parked(&mut *self.read(wake::LOOKING).await?, table, rows).await
    }

    async fn cased(
        &self,
        table: &str,
        rows: &[(String, LinePlace)],
    ) -> Result<Vec<String>, StoreError> {
        wake::cased(&mut *self.read(wake::CASED).await?, table, rows).await
    }

    async fn wake(&self, table: &str, keys: &[String], now: Instant) -> Result<u64, StoreError> {
        let mut transaction = self.write(wake::WAKING).await?;
        let woken = wake::wake(&mut transaction, table, keys, now).await?;
        commit(transaction, wake::WAKING).await?;
        Ok(woken)
    }

    async fn forget_looks(&self, table: &str, keys: &[String]) -> Result<u64, StoreError> {
        let mut transaction = self.write(wake::WAKING).await?;
        let forgotten = wake::forget_looks(&mut transaction, table, keys).await?;
        commit(transaction, wake::WAKING).await?;
        Ok(forgotten)
    }

    async fn listed_after_all(
        &self,
        account: &str,
        since: Instant,
    ) -> Result<Vec<(String, String)>, StoreError> {
        wake::listed_after_all(&mut *self.read(wake::LOOKING).await?, account, since).await
    }

    async fn files(&self, filter: &FileFilter) -> Result<Vec<FileRow>, StoreError> {
        shelf::files(&mut *self.read(shelf::READING).await?, filter).await
    }

    async fn statements(
        &self,
        file: i64,
        after: i64,
        limit: i64,
    ) -> Result<Vec<StatementRow>, StoreError> {
        shelf::statements(&mut *self.read(shelf::READING).await?, file, after, limit).await
    }

    async fn standings(
        &self,
        account: &str,
        since: NaiveDate,
    ) -> Result<Vec<Standing>, StoreError> {
        shelf::standings(&mut *self.read(shelf::READING).await?, account, since).await
    }

    async fn attempt_files(&self, account: &str) -> Result<Vec<AttemptFile>, StoreError> {
        shelf::attempt_files(&mut *self.read(shelf::READING).await?, account).await
    }

    async fn lines_of_file(
        &self,
        after: LinePlace,
        limit: i64,
    ) -> Result<Vec<StoredLine>, StoreError> {
        lines::of_file(&mut *self.read(shelf::READING).await?, after, limit).await
    }

    async fn lines_of_run(
        &self,
        run_id: &str,
        which: LinesOfRun,
        after: Option<LinePlace>,
        limit: i64,
    ) -> Result<Vec<LineOfRun>, StoreError> {
        let mut connection = self.read("reading settlement lines").await?;
        of_run::lines(&mut connection, run_id, which, after, limit).await
    }

    async fn lines_of_rows(
        &self,
        run_id: &str,
        rows: &[(String, String)],
        until: Instant,
    ) -> Result<Vec<StoredLine>, StoreError> {
        let mut connection = self.read("reading settlement lines").await?;
        of_run::beside(&mut connection, run_id, rows, until).await
    }

    async fn files_of_run(
        &self,
        run_id: &str,
        after: i64,
        limit: i64,
    ) -> Result<Vec<FileOfRun>, StoreError> {
        of_run::files(&mut *self.read(shelf::READING).await?, run_id, after, limit).await
    }

    async fn mark_lines(
        &self,
        run_id: &str,
        marks: &[LineMark],
        now: Instant,
    ) -> Result<Vec<LinePlace>, StoreError> {
        let doing = "marking settlement lines";
        let mut transaction = self.write(doing).await?;
        if !runs::is_running(&mut transaction, run_id).await? {
            // Closed meanwhile: what it found out is for another run to find out again.
            transaction.rollback().await.map_err(failed(doing))?;
            let left = marks.iter().filter(|mark| mark.row.is_some());
            return Ok(left.map(|mark| mark.place).collect());
        }
        let left = lines::mark_in(&mut transaction, run_id, marks, now).await?;
        commit(transaction, doing).await?;
        Ok(left)
    }

    async fn put_line_cases(
        &self,
        run_id: &str,
        cases: &[LineCase],
        now: Instant,
    ) -> Result<u64, StoreError> {
        let mut transaction = self.write(line_cases::OPENING).await?;
        if !runs::is_running(&mut transaction, run_id).await? {
            transaction.rollback().await.map_err(failed(line_cases::OPENING))?;
            return Ok(0);
        }
        let opened = line_cases::put(&mut transaction, run_id, cases, now).await?;
        commit(transaction, line_cases::OPENING).await?;
        Ok(opened)
    }

    async fn bookings_gone(&self) -> Result<Vec<StoredLine>, StoreError> {
        lines::bookings_gone(&mut *self.read(line_cases::OPENING).await?).await
    }

    async fn close_line_cases(&self, run_id: &str, now: Instant) -> Result<u64, StoreError> {
        if !line_cases::is_one_open(&mut *self.read(line_cases::CLOSING).await?).await? {
            return Ok(0);
        }
        let mut transaction = self.write(line_cases::CLOSING).await?;
        if !runs::is_running(&mut transaction, run_id).await? {
            transaction.rollback().await.map_err(failed(line_cases::CLOSING))?;
            return Ok(0);
        }
        let closed = line_cases::close(&mut transaction, run_id, now).await?;
        commit(transaction, line_cases::CLOSING).await?;
        Ok(closed)
    }
}

impl CompareDriver for SqliteStore {
    async fn stream_rows(
        &self,
        table: &SourceTable,
        filter: &ClaimFilter,
        rows: Sender<Vec<Transaction>>,
    ) -> Result<(), StoreError> {
        let mut connection = self.read("reading the rows of a window").await?;
        compare::stream(&mut connection, table, filter, rows).await
    }

    async fn files_of_days(
        &self,
        account: &str,
        days: (NaiveDate, NaiveDate),
        after: i64,
        limit: i64,
    ) -> Result<Vec<i64>, StoreError> {
        compare::files(&mut *self.read(shelf::READING).await?, account, days, after, limit).await
    }

    async fn put_compared(&self, run_id: &str, found: &[Compared]) -> Result<(), StoreError> {
        let doing = "keeping what was compared";
        let mut transaction = self.write(doing).await?;
        if runs::is_running(&mut transaction, run_id).await? {
            compare::put(&mut transaction, run_id, found).await?;
        }
        commit(transaction, doing).await
    }

    async fn compared_of_run(
        &self,
        run_id: &str,
        after: i64,
        limit: i64,
    ) -> Result<Vec<Compared>, StoreError> {
        let mut connection = self.read("reading what was compared").await?;
        compare::of_run(&mut connection, run_id, after, limit).await
    }
}

impl BatchDriver for SqliteStore {
    async fn open_batches(
        &self,
        account: &str,
        says: Says,
        after: Option<LinePlace>,
        limit: i64,
    ) -> Result<Vec<StoredLine>, StoreError> {
        let mut connection = self.read(batches::READING).await?;
        batches::open(&mut connection, account, says, after, limit).await
    }

    async fn batch_parts(&self, booking: LinePlace, by: BatchBy) -> Result<BatchParts, StoreError> {
        batches::parts(&mut *self.read(batches::READING).await?, booking, by).await
    }

    async fn explain_batch(
        &self,
        run_id: &str,
        batch: &ExplainedBatch,
        now: Instant,
    ) -> Result<bool, StoreError> {
        let doing = batches::EXPLAINING;
        let mut transaction = self.write(doing).await?;
        let is_open = runs::is_running(&mut transaction, run_id).await?;
        if is_open && batches::explain(&mut transaction, run_id, batch, now).await? {
            commit(transaction, doing).await?;
            return Ok(true);
        }
        // Closed, matched or changed meanwhile: another run finds it out again.
        transaction.rollback().await.map_err(failed(doing))?;
        Ok(false)
    }
}

impl PayoutDriver for SqliteStore {
    async fn payouts_named(
        &self,
        texts: &[String],
        until: Option<Instant>,
    ) -> Result<Vec<NamedPayout>, StoreError> {
        payouts::named(&mut *self.read(payouts::READING).await?, texts, until).await
    }

    async fn payout(
        &self,
        key: &PayoutKey,
        until: Option<Instant>,
    ) -> Result<Option<Payout>, StoreError> {
        payouts::one(&mut *self.read(payouts::READING).await?, key, until).await
    }

    async fn payouts_at(
        &self,
        places: &[LinePlace],
        until: Instant,
    ) -> Result<BTreeSet<PayoutKey>, StoreError> {
        payouts::at(&mut *self.read(payouts::READING).await?, places, until).await
    }

    async fn payouts_of_file(
        &self,
        file: i64,
        until: Option<Instant>,
    ) -> Result<Vec<Payout>, StoreError> {
        payouts::of_file(&mut *self.read(payouts::READING).await?, file, until).await
    }

    async fn payout_bookings(
        &self,
        payout: &PayoutKey,
        until: Option<Instant>,
    ) -> Result<Vec<Booking>, StoreError> {
        payouts::bookings(&mut *self.read(payouts::READING).await?, payout, until).await
    }
}

impl ReplayDriver for SqliteStore {
    async fn decided_since(
        &self,
        since: Instant,
        after: Option<RecordPlace>,
        limit: i64,
    ) -> Result<Vec<(RecordPlace, Decided)>, StoreError> {
        replay::decided(&mut *self.read(replay::READING).await?, since, after, limit).await
    }

    async fn open_row_cases(
        &self,
        after: i64,
        limit: i64,
    ) -> Result<Vec<(i64, Decided)>, StoreError> {
        replay::open_cases(&mut *self.read(replay::READING).await?, after, limit).await
    }

    async fn unseen_row_cases(
        &self,
        after: Option<UnseenPlace>,
        limit: i64,
    ) -> Result<Vec<(UnseenPlace, Decided)>, StoreError> {
        replay::unseen_cases(&mut *self.read(replay::READING).await?, after, limit).await
    }

    async fn shown_by_cases(&self, cases: &[i64]) -> Result<Vec<(i64, String)>, StoreError> {
        replay::shown_by(&mut *self.read(replay::READING).await?, cases).await
    }

    async fn last_written(
        &self,
        table: &str,
        keys: &[String],
    ) -> Result<HashMap<String, Written>, StoreError> {
        replay::last_written(&mut *self.read(replay::READING).await?, table, keys).await
    }

    async fn ended_by_people(
        &self,
        table: &str,
        keys: &[String],
    ) -> Result<HashMap<String, String>, StoreError> {
        replay::ended_by_people(&mut *self.read(replay::READING).await?, table, keys).await
    }

    async fn rule_counts(&self, since: Instant) -> Result<Vec<RuleCount>, StoreError> {
        replay::counts(&mut *self.read(replay::READING).await?, since).await
    }
}

impl PeopleDriver for SqliteStore {
    async fn identity(&self) -> Result<Option<String>, StoreError> {
        Ok(None)
    }

    async fn case_sums(&self, filter: &CaseFilter) -> Result<Vec<CaseSum>, StoreError> {
        people::sums(&mut *self.read("summing up cases").await?, filter).await
    }

    async fn case_sums_of_first(
        &self,
        filter: &CaseFilter,
        most: i64,
    ) -> Result<Vec<CaseSum>, StoreError> {
        people::sums_of_first(&mut *self.read("summing up cases").await?, filter, most).await
    }

    async fn open_ages_of_first(
        &self,
        edges: &[Instant],
        most: i64,
    ) -> Result<Vec<(usize, i64)>, StoreError> {
        cases::ages_of_first(&mut *self.read("counting cases by age").await?, edges, most).await
    }

    async fn case_runs(&self, case: &CaseRow) -> Result<CaseRuns, StoreError> {
        runs::of_case(&mut *self.read("reading the runs of a case").await?, case).await
    }

    async fn case_plan(&self, filter: &CaseFilter) -> Result<Vec<String>, StoreError> {
        cases::plan(&mut *self.read("asking how cases are found").await?, filter).await
    }

    async fn case_notes(&self, case: i64) -> Result<Vec<CaseNote>, StoreError> {
        people::notes(&mut *self.read("reading a case's history").await?, case).await
    }

    async fn case_links(&self, case: i64) -> Result<CaseLinks, StoreError> {
        people::links(&mut *self.read("reading which cases are one").await?, case).await
    }

    async fn links_of(&self, cases: &[i64]) -> Result<HashMap<i64, CaseLinks>, StoreError> {
        people::links_of(&mut *self.read("reading which cases are one").await?, cases).await
    }

    async fn similar_cases(&self, case: &CaseRow, limit: i64) -> Result<Vec<CaseRow>, StoreError> {
        people::similar(&mut *self.read("looking for similar cases").await?, case, limit).await
    }

    async fn proposals(&self, cases: &[i64]) -> Result<Vec<Proposal>, StoreError> {
        people::proposals(&mut *self.read("reading proposals").await?, cases).await
    }

    async fn approved(
        &self,
        cases: Option<&[i64]>,
        after: i64,
        limit: i64,
    ) -> Result<Vec<Approved>, StoreError> {
        let mut connection = self.read("reading what was approved").await?;
        people::approved(&mut connection, cases, after, limit).await
    }

    async fn assign_cases(
        &self,
        cases: &[i64],
        owner: Option<&str>,
        by: &str,
        now: Instant,
    ) -> Result<u64, StoreError> {
        let doing = "assigning cases";
        let mut transaction = self.write(doing).await?;
        let changed = people::assign(&mut transaction, cases, owner, by, now).await?;
        commit(transaction, doing).await?;
        Ok(changed)
    }

    async fn comment_cases(
        &self,
        cases: &[i64],
        text: &str,
        by: &str,
        now: Instant,
    ) -> Result<u64, StoreError> {
        let doing = "commenting cases";
        let mut transaction = self.write(doing).await?;
        let noted = people::comment(&mut transaction, cases, text, by, now).await?;
        commit(transaction, doing).await?;
        Ok(noted)
    }

    async fn propose(
        &self,
        proposals: &[NewProposal],
        by: &str,
        now: Instant,
    ) -> Result<Vec<i64>, StoreError> {
        let doing = "proposing decisions";
        let mut transaction = self.write(doing).await?;
        let stand = people::propose(&mut transaction, proposals, by, now).await?;
        commit(transaction, doing).await?;
        Ok(stand)
    }

    async fn approve(
        &self,
        proposals: &[(i64, Option<String>)],
        why: &str,
        by: &str,
        now: Instant,
    ) -> Result<Vec<i64>, StoreError> {
        let doing = "approving proposals";
        let mut transaction = self.write(doing).await?;
        let approved = people::approve(&mut transaction, proposals, why, by, now).await?;
        commit(transaction, doing).await?;
        Ok(approved)
    }

    async fn turn_down(
        &self,
        proposals: &[i64],
        why: &str,
        by: &str,
        now: Instant,
    ) -> Result<Vec<i64>, StoreError> {
        let doing = "turning proposals down";
        let mut transaction = self.write(doing).await?;
        let ended = people::turn_down(&mut transaction, proposals, why, by, now).await?;
        commit(transaction, doing).await?;
        Ok(ended)
    }

    async fn refuse_approved(
        &self,
        run_id: &str,
        proposal: i64,
        why: &str,
        now: Instant,
    ) -> Result<bool, StoreError> {
        let doing = "refusing what was approved";
        let mut transaction = self.write(doing).await?;
        let state = ProposalState::Refused;
        let ended =
            people::end_approved(&mut transaction, run_id, &[proposal], state, why, now).await?;
        commit(transaction, doing).await?;
        Ok(!ended.is_empty())
    }

    async fn leave_as_is(
        &self,
        run_id: &str,
        proposal: i64,
        now: Instant,
    ) -> Result<bool, StoreError> {
        let doing = "closing a case by a person's word";
        let mut transaction = self.write(doing).await?;
        if !runs::is_running(&mut transaction, run_id).await? {
            return Ok(false);
        }
        let is_left = people::leave(&mut transaction, run_id, proposal, now).await?;
        commit(transaction, doing).await?;
        Ok(is_left)
    }

    async fn merge_cases(
        &self,
        into: Option<i64>,
        cases: &[i64],
        why: &str,
        by: &str,
        now: Instant,
    ) -> Result<u64, StoreError> {
        let doing = "joining cases";
        let mut transaction = self.write(doing).await?;
        let changed = people::merge(&mut transaction, into, cases, why, by, now).await?;
        commit(transaction, doing).await?;
        Ok(changed)
    }

    async fn purgeable_cases(
        &self,
        cases: &[i64],
        before: Instant,
    ) -> Result<Vec<i64>, StoreError> {
        let mut connection = self.read("reading cases").await?;
        people::purgeable(&mut connection, cases, before).await
    }

    async fn purge_cases(&self, cases: &[i64], before: Instant) -> Result<u64, StoreError> {
        let doing = "purging closed cases";
        let mut transaction = self.write(doing).await?;
        let gone = people::purge(&mut transaction, cases, before).await?;
        commit(transaction, doing).await?;
        Ok(gone)
    }

    async fn rows_to_look_at(
        &self,
        table: &str,
        reasons: &[Reason],
        before: Instant,
        limit: i64,
        proposed: bool,
    ) -> Result<Vec<String>, StoreError> {
        let mut connection = self.read("looking for cases to look at again").await?;
        people::rows_to_look_at(&mut connection, table, reasons, (before, limit), proposed).await
    }

    async fn note_looked_at(
        &self,
        table: &str,
        keys: &[String],
        now: Instant,
    ) -> Result<(), StoreError> {
        let doing = "noting that cases were looked at";
        let mut transaction = self.write(doing).await?;
        people::note_looked_at(&mut transaction, table, keys, now).await?;
        commit(transaction, doing).await
    }
}

impl OutboxDriver for SqliteStore {
    async fn outbox_is_empty(&self) -> Result<bool, StoreError> {
        outbox::is_empty(&mut *self.read("looking for events that wait").await?).await
    }

    async fn distribute(
        &self,
        takers: &[Taker],
        limit: i64,
        now: Instant,
    ) -> Result<u64, StoreError> {
        let doing = "distributing events to the sinks";
        let mut transaction = self.write(doing).await?;
        let done = outbox::distribute(&mut transaction, takers, limit, now).await?;
        commit(transaction, doing).await?;
        Ok(done)
    }

    async fn suppress_stale(&self, now: Instant) -> Result<Stale, StoreError> {
        let doing = "suppressing hand-backs that are no news any more";
        let mut transaction = self.write(doing).await?;
        let stale = outbox::suppress_stale(&mut transaction, now).await?;
        commit(transaction, doing).await?;
        Ok(stale)
    }

    async fn lease_sink(
        &self,
        sink: &str,
        owner: &str,
        now: Instant,
        until: Instant,
        now_at_all: bool,
    ) -> Result<Turn, StoreError> {
        let doing = "taking a sink";
        let mut transaction = self.write(doing).await?;
        let times = (now, until);
        let turn = outbox::lease(&mut transaction, sink, owner, times, now_at_all).await?;
        commit(transaction, doing).await?;
        Ok(turn)
    }

    async fn due_letters(
        &self,
        lease: &SinkLease,
        which: Which,
        limit: i64,
        now: Instant,
        until: Instant,
    ) -> Result<Option<Vec<Letter>>, StoreError> {
        let doing = "reading events that wait for a sink";
        let mut transaction = self.write(doing).await?;
        let letters = outbox::due(&mut transaction, lease, (which, limit), (now, until)).await?;
        commit(transaction, doing).await?;
        Ok(letters)
    }

    async fn due_plan(
        &self,
        sink: &str,
        which: Which,
        now: Instant,
    ) -> Result<Vec<String>, StoreError> {
        let mut connection = self.read("asking how what is due is found").await?;
        outbox::plan(&mut connection, sink, which, now).await
    }

    async fn settle_letters(
        &self,
        lease: &SinkLease,
        ends: &[(String, LetterEnd)],
        now: Instant,
    ) -> Result<bool, StoreError> {
        let doing = "marking what a sink took";
        let mut transaction = self.write(doing).await?;
        let is_ours = outbox::settle(&mut transaction, lease, ends, now).await?;
        commit(transaction, doing).await?;
        Ok(is_ours)
    }

    async fn release_sink(
        &self,
        lease: &SinkLease,
        health: &Health,
        now: Instant,
    ) -> Result<(), StoreError> {
        let doing = "giving a sink back";
        let mut transaction = self.write(doing).await?;
        outbox::release(&mut transaction, lease, health, now).await?;
        commit(transaction, doing).await
    }

    async fn sink_states(&self, now: Instant) -> Result<Vec<SinkState>, StoreError> {
        outbox::states(&mut *self.read("reading how the sinks stand").await?, now).await
    }

    async fn open_letters(
        &self,
        filter: &LetterFilter,
        limit: i64,
    ) -> Result<(Vec<OpenLetter>, i64), StoreError> {
        let mut connection = self.read("reading what could not be delivered").await?;
        letters::open(&mut connection, filter, limit).await
    }

    async fn merging(&self, filter: &LetterFilter, limit: i64) -> Result<Merging, StoreError> {
        let mut connection = self.read("reading what could not be delivered").await?;
        letters::merging(&mut connection, filter, limit).await
    }

    async fn undelivered_of_row(
        &self,
        table: &str,
        key: &str,
    ) -> Result<Vec<Undelivered>, StoreError> {
        let mut connection = self.read("reading what could not be delivered").await?;
        letters::undelivered_of_row(&mut connection, table, key).await
    }

    async fn change_letters(
        &self,
        deed: Deed,
        filter: &LetterFilter,
        by: By<'_>,
        now: Instant,
    ) -> Result<Done, StoreError> {
        let doing = "changing what could not be delivered";
        let mut transaction = self.write(doing).await?;
        let done = letters::change(&mut transaction, deed, filter, by, now).await?;
        commit(transaction, doing).await?;
        Ok(done)
    }

    async fn notify(&self, _channel: &str, _payloads: &[String]) -> Result<(), StoreError> {
        Err(StoreError::Setting {
            field: "url".to_owned(),
            problem: "SQLite has no NOTIFY; use another kind of sink".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_no_server_that_is_down() {
        // SQLITE_FULL, SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_WRITE.
        for code in [13, 4_874, 778] {
            let (problem, hint) = why_unopened(code).unwrap();
            assert!(problem.contains("no room") && hint.contains("full?"), "{code}");
        }
        assert_eq!(why_unopened(1), None);
    }
}
