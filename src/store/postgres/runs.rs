//! Runs: opening, showing life, closing, and the control totals of both sides.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use sqlx::postgres::{PgConnection, PgPool};

use crate::model::time::{Instant, earlier};
use crate::store::chain::{Head, close_hash};
use crate::store::driver::Undone;
use crate::store::error::StoreError;
use crate::store::postgres::errors::{answered, failed};
use crate::store::postgres::patience::patiently;
use crate::store::postgres::sql::{Cells, Sql};
use crate::store::postgres::transactions::begin;
use crate::store::records::{AbandonedRun, RunEnd, RunStart, RunState, TotalLine};

const CLOSING: &str = "closing the run";

/// A sum of rows and money: (table, currency) → (rows, minor units).
pub(super) type Sums = BTreeMap<(String, String), (i64, i128)>;

/// Adds one row to a sum.
pub(super) fn count_row(sums: &mut Sums, table: &str, currency: &str, amount_minor: i64) {
    let sum = sums.entry((table.to_owned(), currency.to_owned())).or_default();
    sum.0 = sum.0.saturating_add(1);
    sum.1 = sum.1.saturating_add(i128::from(amount_minor));
}

pub(super) async fn start(pool: &PgPool, start: &RunStart, now: Instant) -> Result<(), StoreError> {
    sqlx::query(
        "insert into tieout_runs (id, command, state, started_at, heartbeat_at, host, pid, \
         version, config_sha256, policy_version, scope) \
         values ($1, $2, 'running', $3, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(&start.id)
    .bind(&start.command)
    .bind(now)
    .bind(&start.host)
    .bind(start.pid)
    .bind(&start.version)
    .bind(&start.config_sha256)
    .bind(&start.policy_version)
    .bind(&start.scope)
    .execute(pool)
    .await
    .map_err(failed("opening the run"))?;
    Ok(())
}

/// The innermost question goes by keys alone, whatever the statistics say of what waits.
const UNDONE: &str = "\
select exists (select from tieout_outbox where distributed_at is null),
    exists (select from tieout_handbacks where ended_at is null and taken_at is null
        and charge_before <= $1)
    or exists (select from tieout_deliveries d where d.state in ('waiting', 'dead')
        and (select h.ended_at is not null or h.charge_before <= $1
            from tieout_outbox o join tieout_handbacks h on h.table_name = o.table_name
                and h.key = o.key and h.number = o.handback_number
            where o.event_id = d.event_id)),
    exists (select from tieout_releases where state = 'waiting'),
    exists (select from tieout_proposals where state = 'approved')";

pub(super) async fn undone(pool: &PgPool, now: Instant) -> Result<Undone, StoreError> {
    let read = sqlx::query_as(UNDONE).bind(now).fetch_one(pool).await;
    let (events, stale, releases, approvals) = read.map_err(failed("looking for what waits"))?;
    Ok(Undone { events, stale, releases, approvals })
}

pub(super) async fn heartbeat(
    pool: &PgPool,
    run_id: &str,
    now: Instant,
    lease_until: Instant,
) -> Result<bool, StoreError> {
    // Rows that an apply holds at this moment are about to be finished: they need no renewal, and
    // waiting for them in another order than it took them would be a deadlock.
    sqlx::query_scalar(
        "with alive as (\
         update tieout_runs set heartbeat_at = $2 where id = $1 and state = 'running' \
         returning 1), \
         renewed as (\
         update tieout_checks set lease_until = $3 where exists (select from alive) \
         and ctid = any(array(select c.ctid from tieout_checks c where c.lease_run = $1 \
         for update skip locked)) returning 1) \
         select exists (select from alive)",
    )
    .bind(run_id)
    .bind(now)
    .bind(lease_until)
    .fetch_one(pool)
    .await
    .map_err(failed("showing life"))
}

pub(super) async fn close_abandoned(
    pool: &PgPool,
    now: Instant,
    dead_after: TimeDelta,
) -> Result<Vec<AbandonedRun>, StoreError> {
    let before = earlier(now, dead_after);
    let dead: Vec<String> = sqlx::query_scalar(
        "select id from tieout_runs where state = 'running' and heartbeat_at < $1 order by id",
    )
    .bind(before)
    .fetch_all(pool)
    .await
    .map_err(failed("looking for abandoned runs"))?;
    let mut closed = Vec::new();
    for id in dead {
        closed.extend(close_dead(pool, &id, now, dead_after).await?);
    }
    Ok(closed)
}

/// Closes one run that shows no life.
pub(super) async fn close_dead(
    pool: &PgPool,
    run_id: &str,
    now: Instant,
    dead_after: TimeDelta,
) -> Result<Option<AbandonedRun>, StoreError> {
    patiently(async || match abandon(pool, run_id, now, earlier(now, dead_after)).await {
        // It still holds its row: an apply of it goes on. The next run looks again.
        Err(error) if answered(&error).is_some_and(|pg| pg.code() == "55P03") => Ok(None),
        ended => ended.map_err(failed(CLOSING)),
    })
    .await
}

async fn abandon(
    pool: &PgPool,
    run_id: &str,
    now: Instant,
    before: Instant,
) -> sqlx::Result<Option<AbandonedRun>> {
    let mut tx = begin(pool).await?;
    let heartbeat: Option<Instant> = sqlx::query_scalar(
        "select heartbeat_at from tieout_runs \
         where id = $1 and state = 'running' and heartbeat_at < $2 for update",
    )
    .bind(run_id)
    .bind(before)
    .fetch_optional(&mut *tx)
    .await?;
    let Some(heartbeat_at) = heartbeat else { return Ok(None) };
    let end = End {
        state: RunState::Abandoned,
        exit_code: None,
        exit_class: RunState::Abandoned.as_str(),
        notes: "{}",
    };
    let (decided, _) = end_run(&mut tx, run_id, &end, now).await?;
    let released: i64 = sqlx::query_scalar(
        "select coalesce(sum(rows), 0)::bigint from tieout_run_totals \
         where run_id = $1 and side = 'released'",
    )
    .bind(run_id)
    .fetch_one(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(Some(AbandonedRun { id: run_id.to_owned(), heartbeat_at, decided, released }))
}

pub(super) async fn close(
    pool: &PgPool,
    run_id: &str,
    end: &RunEnd,
    now: Instant,
) -> Result<Option<String>, StoreError> {
    let end = End {
        state: end.state,
        exit_code: Some(end.exit_code),
        exit_class: &end.exit_class,
        notes: &end.notes,
    };
    patiently(async || try_close(pool, run_id, &end, now).await.map_err(failed(CLOSING))).await
}

async fn try_close(
    pool: &PgPool,
    run_id: &str,
    end: &End<'_>,
    now: Instant,
) -> sqlx::Result<Option<String>> {
    let mut tx = begin(pool).await?;
    let is_open: Option<i32> = sqlx::query_scalar(
        "select 1 from tieout_runs where id = $1 and state = 'running' for update",
    )
    .bind(run_id)
    .fetch_optional(&mut *tx)
    .await?;
    if is_open.is_none() {
        return Ok(None);
    }
    let (_, hash) = end_run(&mut tx, run_id, end, now).await?;
    tx.commit().await?;
    Ok(Some(hash))
}

struct End<'a> {
    state: RunState,
    exit_code: Option<i32>,
    exit_class: &'a str,
    notes: &'a str,
}

/// Where each writer's chain ended. By one step of the index a writer: the records of a run may be
/// many.
pub(super) async fn heads(connection: &mut PgConnection, run_id: &str) -> sqlx::Result<Vec<Head>> {
    let heads: Vec<(String, i64, String)> = sqlx::query_as(
        "with recursive head as ( \
             (select writer, seq, hash from tieout_journal where run_id = $1 \
              order by writer desc, seq desc limit 1) \
             union all \
             select j.writer, j.seq, j.hash from head h cross join lateral ( \
                 select writer, seq, hash from tieout_journal \
                 where run_id = $1 and writer < h.writer \
                 order by writer desc, seq desc limit 1) j) \
         select writer, seq, hash from head order by writer",
    )
    .bind(run_id)
    .fetch_all(connection)
    .await?;
    Ok(heads.into_iter().map(|(writer, count, hash)| Head { writer, count, hash }).collect())
}

/// Releases what the run holds, binds its writers' chains to the last closed run, and ends it.
/// The run's row is held. Returns how many records it wrote, and the hash that closes its chain.
async fn end_run(
    connection: &mut PgConnection,
    run_id: &str,
    end: &End<'_>,
    now: Instant,
) -> sqlx::Result<(i64, String)> {
    release_all(connection, run_id, now).await?;
    let heads = heads(connection, run_id).await?;
    let records = heads.iter().map(|head| head.count).sum();
    // Closing is one after the other, so that every run follows exactly one.
    sqlx::query("select pg_advisory_xact_lock(hashtextextended('tieout closes a run', 0))")
        .execute(&mut *connection)
        .await?;
    let last: Option<(i64, String)> = sqlx::query_as(
        "select close_number, close_hash from tieout_runs where close_number is not null \
         order by close_number desc limit 1",
    )
    .fetch_optional(&mut *connection)
    .await?;
    let number = last.as_ref().map_or(1, |(number, _)| number.saturating_add(1));
    let previous = last.map(|(_, hash)| hash);
    let hash = close_hash(previous.as_deref(), number, run_id, end.state, &heads);
    sqlx::query(
        "update tieout_runs set state = $2, ended_at = $3, exit_code = $4, exit_class = $5, \
         notes = $6, journal_count = $7, close_number = $8, prev_close_hash = $9, close_hash = $10 \
         where id = $1",
    )
    .bind(run_id)
    .bind(end.state.as_str())
    .bind(now)
    .bind(end.exit_code)
    .bind(end.exit_class)
    .bind(end.notes)
    .bind(records)
    .bind(number)
    .bind(previous)
    .bind(&hash)
    .execute(connection)
    .await?;
    Ok((records, hash))
}

/// Gives back every row that the run holds: due at once, behind what is due by now, and counted as
/// released.
async fn release_all(
    connection: &mut PgConnection,
    run_id: &str,
    now: Instant,
) -> sqlx::Result<()> {
    sqlx::query(
        "with given_back as (\
         update tieout_checks set lease_run = null, lease_until = null, \
         next_check_at = case when next_check_at is not null then $2 end \
         where lease_run = $1 returning table_name, currency, amount_minor) \
         insert into tieout_run_totals as t \
         (run_id, table_name, currency, side, rows, amount_minor) \
         select $1, table_name, currency, 'released', count(*), sum(amount_minor) \
         from given_back group by table_name, currency \
         on conflict (run_id, table_name, currency, side) do update \
         set rows = t.rows + excluded.rows, amount_minor = t.amount_minor + excluded.amount_minor",
    )
    .bind(run_id)
    .bind(now)
    .execute(connection)
    .await?;
    Ok(())
}

/// Takes rows out of a run's released ones: they were decided after all.
pub(super) async fn take_back(
    connection: &mut PgConnection,
    run_id: &str,
    sums: &Sums,
) -> sqlx::Result<()> {
    for ((table, currency), (rows, amount)) in sums {
        sqlx::query(
            "update tieout_run_totals set rows = rows - $4, \
             amount_minor = amount_minor - $5::text::numeric \
             where run_id = $1 and table_name = $2 and currency = $3 and side = 'released'",
        )
        .bind(run_id)
        .bind(table)
        .bind(currency)
        .bind(rows)
        .bind(amount.to_string())
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

/// Adds to a run's control totals.
pub(super) async fn add_totals(
    connection: &mut PgConnection,
    run_id: &str,
    side: &'static str,
    sums: &Sums,
) -> sqlx::Result<()> {
    if sums.is_empty() {
        return Ok(());
    }
    let mut sql = Sql::new(
        "insert into tieout_run_totals as t \
         (run_id, table_name, currency, side, rows, amount_minor) \
         select ",
    );
    let run = sql.bind(run_id.to_owned());
    let side = sql.bind(side.to_owned());
    let tables = sql.bind(sums.keys().map(|(table, _)| table.clone()).collect::<Vec<_>>());
    let currencies = sql.bind(sums.keys().map(|(_, code)| code.clone()).collect::<Vec<_>>());
    let rows = sql.bind(sums.values().map(|(rows, _)| *rows).collect::<Vec<_>>());
    let amounts = sql.bind(sums.values().map(|(_, sum)| sum.to_string()).collect::<Vec<_>>());
    sql.push(&format!(
        "{run}, u.t, u.c, {side}, u.n, u.a::numeric \
         from unnest({tables}::text[], {currencies}::text[], {rows}::bigint[], {amounts}::text[]) \
         as u(t, c, n, a) \
         on conflict (run_id, table_name, currency, side) do update \
         set rows = t.rows + excluded.rows, amount_minor = t.amount_minor + excluded.amount_minor"
    ));
    sql.run(connection).await?;
    Ok(())
}

pub(super) async fn totals(pool: &PgPool, run_id: &str) -> Result<Vec<TotalLine>, StoreError> {
    let doing = "reading the run's totals";
    // One statement, one snapshot.
    let rows = sqlx::query(
        "select table_name, currency, side as bucket, rows, amount_minor::text \
         from tieout_run_totals where run_id = $1 \
         union all \
         select table_name, currency, \
         case applied when 'superseded' then 'superseded' else outcome end, \
         count(*), sum(amount_minor)::text \
         from tieout_journal where run_id = $1 group by 1, 2, 3 order by 1, 2, 3",
    )
    .bind(run_id)
    .fetch_all(pool)
    .await
    .map_err(failed(doing))?;
    rows.iter()
        .map(|row| {
            let cells = Cells::new(row, doing);
            Ok(TotalLine {
                table: cells.text(0)?,
                currency: cells.text(1)?,
                bucket: cells.text(2)?,
                rows: cells.big(3)?,
                amount_minor: cells.sum(4)?,
            })
        })
        .collect()
}

pub(super) async fn withheld(pool: &PgPool, run_id: &str) -> Result<i64, StoreError> {
    sqlx::query_scalar(
        "select count(*) from tieout_journal where run_id = $1 and applied = 'withheld'",
    )
    .bind(run_id)
    .fetch_one(pool)
    .await
    .map_err(failed("counting what a mode withheld"))
}
