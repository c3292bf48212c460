//! Runs: opened, kept alive, closed with their chain; what they counted.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use sqlx::sqlite::SqliteConnection;

use crate::model::time::{Instant, earlier, to_text};
use crate::store::chain::{Head, close_hash};
use crate::store::driver::Undone;
use crate::store::error::StoreError;
use crate::store::people::{CaseRuns, KICKS_READ};
use crate::store::records::{AbandonedRun, CaseRow, RunEnd, RunRow, RunStart, RunState, TotalLine};
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::sql::{execute, fetch, rendered};

const CLOSING: &str = "closing a run";
const READING: &str = "reading runs";
const COUNTING: &str = "counting control totals";

/// The columns that [`run_of`] reads, in its order.
pub(super) const RUN_COLUMNS: &str = "id, command, state, started_at, heartbeat_at, ended_at, \
     host, pid, version, config_sha256, policy_version, scope, exit_code, exit_class, notes, \
     journal_count, close_number, close_hash";

pub(super) fn run_of(cells: Cells<'_>) -> Result<RunRow, StoreError> {
    Ok(RunRow {
        id: cells.text(0)?,
        command: cells.text(1)?,
        state: cells.word(2, RunState::parse)?,
        started_at: cells.at(3)?,
        heartbeat_at: cells.at(4)?,
        ended_at: cells.opt_at(5)?,
        host: cells.text(6)?,
        pid: cells.int(7)?,
        version: cells.text(8)?,
        config_sha256: cells.text(9)?,
        policy_version: cells.text(10)?,
        scope: cells.text(11)?,
        exit_code: cells.opt_small(12)?,
        exit_class: cells.opt_text(13)?,
        notes: cells.text(14)?,
        journal_count: cells.int(15)?,
        close_number: cells.opt_int(16)?,
        close_hash: cells.opt_text(17)?,
    })
}

pub(super) async fn start(
    connection: &mut SqliteConnection,
    start: &RunStart,
    now: Instant,
) -> Result<(), StoreError> {
    let query = sqlx::query(
        "insert into tieout_runs (id, command, state, started_at, heartbeat_at, host, pid, \
         version, config_sha256, policy_version, scope) \
         values (?1, ?2, 'running', ?3, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )
    .bind(start.id.clone())
    .bind(start.command.clone())
    .bind(to_text(now))
    .bind(start.host.clone())
    .bind(start.pid)
    .bind(start.version.clone())
    .bind(start.config_sha256.clone())
    .bind(start.policy_version.clone())
    .bind(start.scope.clone());
    execute(connection, "opening a run", query).await.map(|_| ())
}

/// Whether the run may still write.
pub(super) async fn is_running(
    connection: &mut SqliteConnection,
    run_id: &str,
) -> Result<bool, StoreError> {
    let query = sqlx::query("select 1 from tieout_runs where id = ?1 and state = 'running'")
        .bind(run_id.to_owned());
    Ok(!fetch(connection, "looking at the run", query).await?.is_empty())
}

pub(super) async fn heartbeat(
    connection: &mut SqliteConnection,
    run_id: &str,
    now: Instant,
    lease_until: Instant,
) -> Result<bool, StoreError> {
    let doing = "showing the run's life";
    let alive =
        sqlx::query("update tieout_runs set heartbeat_at = ?2 where id = ?1 and state = 'running'")
            .bind(run_id.to_owned())
            .bind(to_text(now));
    if execute(connection, doing, alive).await? == 0 {
        return Ok(false);
    }
    let leases = sqlx::query("update tieout_checks set lease_until = ?2 where lease_run = ?1")
        .bind(run_id.to_owned())
        .bind(to_text(lease_until));
    execute(connection, doing, leases).await?;
    Ok(true)
}

/// How a run is closed: by itself, or by another that found it dead.
struct Closing<'a> {
    state: RunState,
    exit_code: Option<i32>,
    exit_class: &'a str,
    notes: Option<&'a str>,
}

pub(super) async fn close(
    connection: &mut SqliteConnection,
    run_id: &str,
    end: &RunEnd,
    now: Instant,
) -> Result<Option<String>, StoreError> {
    let closing = Closing {
        state: end.state,
        exit_code: Some(end.exit_code),
        exit_class: &end.exit_class,
        notes: Some(&end.notes),
    };
    if end.state == RunState::Running || !is_running(connection, run_id).await? {
        return Ok(None);
    }
    close_as(connection, run_id, &closing, now).await.map(|closed| Some(closed.hash))
}

/// The innermost question goes by keys alone, whatever the statistics say of what waits.
const UNDONE: &str = "\
select exists (select 1 from tieout_outbox where distributed_at is null),
    exists (select 1 from tieout_handbacks where ended_at is null and taken_at is null
        and charge_before <= ?1)
    or exists (select 1 from tieout_deliveries d where d.state in ('waiting', 'dead')
        and (select h.ended_at is not null or h.charge_before <= ?1
            from tieout_outbox o cross join tieout_handbacks h where h.table_name = o.table_name
                and h.key = o.key and h.number = o.handback_number
                and o.event_id = d.event_id)),
    exists (select 1 from tieout_releases where state = 'waiting'),
    exists (select 1 from tieout_proposals where state = 'approved')";

pub(super) async fn undone(
    connection: &mut SqliteConnection,
    now: Instant,
) -> Result<Undone, StoreError> {
    let doing = "looking for what waits";
    let rows = fetch(connection, doing, sqlx::query(UNDONE).bind(to_text(now))).await?;
    let Some(row) = rows.first() else { return Ok(Undone::default()) };
    let cells = Cells::new(row, doing);
    let is = |place| cells.int(place).map(|flag| flag != 0);
    Ok(Undone { events: is(0)?, stale: is(1)?, releases: is(2)?, approvals: is(3)? })
}

/// Closes runs that show no life: all of them, or only `run_id`.
pub(super) async fn close_abandoned(
    connection: &mut SqliteConnection,
    run_id: Option<&str>,
    now: Instant,
    dead_after: TimeDelta,
) -> Result<Vec<AbandonedRun>, StoreError> {
    let query = sqlx::query(
        "select id, heartbeat_at, journal_count from tieout_runs \
         where state = 'running' and heartbeat_at < ?1 and (?2 is null or id = ?2) \
         order by heartbeat_at, id",
    )
    .bind(to_text(earlier(now, dead_after)))
    .bind(run_id.map(str::to_owned));
    let closing = Closing {
        state: RunState::Abandoned,
        exit_code: None,
        exit_class: "abandoned",
        notes: None,
    };
    let mut closed = Vec::new();
    for row in fetch(connection, "looking for abandoned runs", query).await? {
        let cells = Cells::new(&row, "looking for abandoned runs");
        let id = cells.text(0)?;
        let Closed { released, .. } = close_as(connection, &id, &closing, now).await?;
        closed.push(AbandonedRun {
            id,
            heartbeat_at: cells.at(1)?,
            decided: cells.int(2)?,
            released,
        });
    }
    Ok(closed)
}

/// What closing a run came to.
struct Closed {
    /// How many rows it held.
    released: i64,
    /// What closes its chain.
    hash: String,
}

/// Releases what the run holds, binds its chain to the last closed run's, ends it.
async fn close_as(
    connection: &mut SqliteConnection,
    run_id: &str,
    closing: &Closing<'_>,
    now: Instant,
) -> Result<Closed, StoreError> {
    let released = release_all(connection, run_id, now).await?;
    let (last_number, previous) = last_closed(connection).await?;
    let number = last_number.saturating_add(1);
    let heads = heads(connection, run_id).await?;
    let hash = close_hash(previous.as_deref(), number, run_id, closing.state, &heads);
    let query = sqlx::query(
        "update tieout_runs set state = ?2, ended_at = ?3, exit_code = ?4, exit_class = ?5, \
         notes = coalesce(?6, notes), close_number = ?7, prev_close_hash = ?8, close_hash = ?9 \
         where id = ?1",
    )
    .bind(run_id.to_owned())
    .bind(closing.state.as_str())
    .bind(to_text(now))
    .bind(closing.exit_code)
    .bind(closing.exit_class.to_owned())
    .bind(closing.notes.map(str::to_owned))
    .bind(number)
    .bind(previous)
    .bind(hash.clone());
    execute(connection, CLOSING, query).await?;
    Ok(Closed { released, hash })
}

/// Gives back every row that the run holds: due at once, behind what is due by now, and counted as
/// released.
async fn release_all(
    connection: &mut SqliteConnection,
    run_id: &str,
    now: Instant,
) -> Result<i64, StoreError> {
    let count = sqlx::query(
        "insert into tieout_run_totals (run_id, table_name, currency, side, rows, amount_minor) \
         select ?1, table_name, currency, 'released', count(*), sum(amount_minor) \
         from tieout_checks where lease_run = ?1 group by table_name, currency \
         on conflict (run_id, table_name, currency, side) do update \
         set rows = rows + excluded.rows, amount_minor = amount_minor + excluded.amount_minor",
    )
    .bind(run_id.to_owned());
    execute(connection, CLOSING, count).await?;
    let release = sqlx::query(
        "update tieout_checks set lease_run = null, lease_until = null, \
         next_check_at = case when next_check_at is not null then ?2 end where lease_run = ?1",
    )
    .bind(run_id.to_owned())
    .bind(to_text(now));
    let released = execute(connection, CLOSING, release).await?;
    Ok(i64::try_from(released).unwrap_or(i64::MAX))
}

async fn last_closed(
    connection: &mut SqliteConnection,
) -> Result<(i64, Option<String>), StoreError> {
    let query = sqlx::query(
        "select close_number, close_hash from tieout_runs \
         where close_number = (select max(close_number) from tieout_runs)",
    );
    match fetch(connection, CLOSING, query).await?.first() {
        None => Ok((0, None)),
        Some(row) => {
            let cells = Cells::new(row, CLOSING);
            Ok((cells.int(0)?, cells.opt_text(1)?))
        }
    }
}

pub(super) async fn heads(
    connection: &mut SqliteConnection,
    run_id: &str,
) -> Result<Vec<Head>, StoreError> {
    let query = sqlx::query(
        "select w.writer, w.count, j.hash from \
         (select writer, max(seq) as count from tieout_journal where run_id = ?1 \
         group by writer) w \
         join tieout_journal j on j.run_id = ?1 and j.writer = w.writer and j.seq = w.count",
    )
    .bind(run_id.to_owned());
    let rows = fetch(connection, CLOSING, query).await?;
    let heads = rows.iter().map(|row| {
        let cells = Cells::new(row, CLOSING);
        Ok(Head { writer: cells.text(0)?, count: cells.int(1)?, hash: cells.text(2)? })
    });
    heads.collect()
}

/// Both sides of the tie-out, in one statement and so in one snapshot.
pub(super) async fn totals(
    connection: &mut SqliteConnection,
    run_id: &str,
) -> Result<Vec<TotalLine>, StoreError> {
    let query = sqlx::query(
        "select table_name, currency, side as bucket, rows, cast(amount_minor as text) \
         from tieout_run_totals where run_id = ?1 \
         union all \
         select table_name, currency, \
         case applied when 'superseded' then 'superseded' else outcome end, \
         count(*), cast(sum(amount_minor) as text) \
         from tieout_journal where run_id = ?1 group by 1, 2, 3 order by 1, 2, 3",
    )
    .bind(run_id.to_owned());
    lines(&fetch(connection, "reading a run's totals", query).await?)
}

/// Of a run's records those that say that the mode withheld the decision.
pub(super) async fn withheld(
    connection: &mut SqliteConnection,
    run_id: &str,
) -> Result<i64, StoreError> {
    let doing = "counting what a mode withheld";
    let query = sqlx::query(
        "select count(*) from tieout_journal where run_id = ?1 and applied = 'withheld'",
    )
    .bind(run_id.to_owned());
    let rows = fetch(connection, doing, query).await?;
    rows.first().map_or(Ok(0), |row| Cells::new(row, doing).int(0))
}

fn lines(rows: &[sqlx::sqlite::SqliteRow]) -> Result<Vec<TotalLine>, StoreError> {
    let line = |row| {
        let cells = Cells::new(row, "reading a run's totals");
        Ok(TotalLine {
            table: cells.text(0)?,
            currency: cells.text(1)?,
            bucket: cells.text(2)?,
            rows: cells.int(3)?,
            amount_minor: cells.parse(4)?,
        })
    };
    rows.iter().map(line).collect()
}

pub(super) async fn one(
    connection: &mut SqliteConnection,
    run_id: &str,
) -> Result<Option<RunRow>, StoreError> {
    let sql = format!("select {RUN_COLUMNS} from tieout_runs where id = ?1");
    let rows = fetch(connection, READING, rendered(&sql).bind(run_id.to_owned())).await?;
    rows.first().map(|row| run_of(Cells::new(row, READING))).transpose()
}

/// The runs that a case's history names: kicks from its opening to its end, and what closed it.
pub(super) async fn of_case(
    connection: &mut SqliteConnection,
    case: &CaseRow,
) -> Result<CaseRuns, StoreError> {
    let sql = format!(
        "select {RUN_COLUMNS} from tieout_runs where command = 'kick' and started_at >= ?1 \
         and (?2 is null or started_at <= ?2) and scope like ?3 \
         order by started_at desc, id desc limit ?4"
    );
    let query = rendered(&sql)
        .bind(to_text(case.opened_at))
        .bind(case.closed_at.map(to_text))
        .bind(format!("%\"C-{}\"%", case.number))
        .bind(KICKS_READ);
    let rows = fetch(connection, READING, query).await?;
    let kicks: Result<Vec<RunRow>, StoreError> =
        rows.iter().rev().map(|row| run_of(Cells::new(row, READING))).collect();
    let sql = format!(
        "select {RUN_COLUMNS} from tieout_runs \
         where id = (select closed_run from tieout_cases where number = ?1)"
    );
    let rows = fetch(connection, READING, rendered(&sql).bind(case.number)).await?;
    let closed = rows.first().map(|row| run_of(Cells::new(row, READING))).transpose()?;
    Ok(CaseRuns { kicks: kicks?, closed })
}

pub(super) async fn newest(
    connection: &mut SqliteConnection,
    limit: i64,
) -> Result<Vec<RunRow>, StoreError> {
    let sql =
        format!("select {RUN_COLUMNS} from tieout_runs order by started_at desc, id desc limit ?1");
    let rows = fetch(connection, READING, rendered(&sql).bind(limit)).await?;
    rows.iter().map(|row| run_of(Cells::new(row, READING))).collect()
}

/// Rows and minor units by currency.
pub(super) type Buckets = BTreeMap<String, (i64, i64)>;

/// Adds one row to its bucket; a sum that does not fit is refused by the column, not wrapped.
pub(super) fn add_to(buckets: &mut Buckets, currency: &str, amount_minor: i64) {
    let (rows, amount) = buckets.entry(currency.to_owned()).or_default();
    *rows = rows.saturating_add(1);
    *amount = amount.saturating_add(amount_minor);
}

/// Counts rows into one side of a run's control totals: `claimed` or `released`.
pub(super) async fn count(
    connection: &mut SqliteConnection,
    run_id: &str,
    table: &str,
    side: &'static str,
    buckets: &Buckets,
) -> Result<(), StoreError> {
    for (currency, (rows, amount)) in buckets {
        let query = sqlx::query(
            "insert into tieout_run_totals \
             (run_id, table_name, currency, side, rows, amount_minor) \
             values (?1, ?2, ?3, ?4, ?5, ?6) \
             on conflict (run_id, table_name, currency, side) do update \
             set rows = rows + excluded.rows, amount_minor = amount_minor + excluded.amount_minor",
        )
        .bind(run_id.to_owned())
        .bind(table.to_owned())
        .bind(currency.clone())
        .bind(side)
        .bind(*rows)
        .bind(*amount);
        execute(connection, COUNTING, query).await?;
    }
    Ok(())
}

/// Takes rows out of the run's released ones: they were decided after all, and are superseded.
pub(super) async fn take_back_released(
    connection: &mut SqliteConnection,
    run_id: &str,
    table: &str,
    buckets: &Buckets,
) -> Result<(), StoreError> {
    for (currency, (rows, amount)) in buckets {
        let query = sqlx::query(
            "update tieout_run_totals set rows = rows - ?4, amount_minor = amount_minor - ?5 \
             where run_id = ?1 and table_name = ?2 and currency = ?3 and side = 'released'",
        )
        .bind(run_id.to_owned())
        .bind(table.to_owned())
        .bind(currency.clone())
        .bind(*rows)
        .bind(*amount);
        if execute(connection, COUNTING, query).await? == 0 {
            let problem = format!("{rows} rows lost their lease and were never released");
            return Err(StoreError::Unexpected { doing: COUNTING, problem });
        }
    }
    Ok(())
}
