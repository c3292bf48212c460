//! Distributing events, holding sinks, marking letters. See `store::outbox`.

use sqlx::postgres::{PgConnection, PgPool};

use crate::model::time::Instant;
use crate::store::error::StoreError;
use crate::store::outbox::{
    Health, Letter, LetterEnd, SinkLease, SinkState, Stale, Taker, Turn, Which,
};
use crate::store::postgres::errors::failed;
use crate::store::postgres::patience::patiently;
use crate::store::postgres::sql::{Cells, Sql, small};
use crate::store::postgres::transactions::begin;

const DISTRIBUTING: &str = "distributing events to the sinks";
const SUPPRESSING: &str = "suppressing hand-backs that are no news any more";
const LEASING: &str = "taking a sink";
const READING: &str = "reading events that wait for a sink";
const MARKING: &str = "marking what a sink took";

pub(super) async fn is_empty(pool: &PgPool) -> Result<bool, StoreError> {
    sqlx::query_scalar(
        "select not exists (select from tieout_outbox where distributed_at is null) \
         and not exists (select from tieout_deliveries where state in ('waiting', 'dead'))",
    )
    .fetch_one(pool)
    .await
    .map_err(failed(READING))
}

/// The rows are waited for, never skipped: whoever distributes the second event of a transaction
/// sees the deliveries of the first.
const DISTRIBUTE: &str = "\
with fresh as materialized (
    select o.event_id, o.table_name, o.key, o.version, o.kind, o.staged_at, h.not_before
    from tieout_outbox o left join tieout_handbacks h on h.table_name = o.table_name
        and h.key = o.key and h.number = o.handback_number
    where o.distributed_at is null
    order by o.staged_at, o.event_id limit $2 for update of o),
made as (
    insert into tieout_deliveries
        (sink, event_id, table_name, key, version, state, next_attempt_at)
    select t.taker ->> 'sink', f.event_id, f.table_name, f.key, f.version, 'waiting',
        greatest(f.staged_at, f.not_before)
    from fresh f cross join jsonb_array_elements($1::jsonb) as t(taker)
    where (t.taker -> 'tables' = '[]' or jsonb_exists(t.taker -> 'tables', f.table_name))
    and (t.taker -> 'kinds' = '[]' or jsonb_exists(t.taker -> 'kinds', f.kind))
    on conflict do nothing
    returning event_id)
update tieout_outbox o set distributed_at = $3,
    delivered_at = case when exists (select from made m where m.event_id = o.event_id)
        then null else $3::timestamptz end
from fresh f where o.event_id = f.event_id";

pub(super) async fn distribute(
    pool: &PgPool,
    takers: &[Taker],
    limit: i64,
    now: Instant,
) -> Result<u64, StoreError> {
    let takers = serde_json::json!(takers).to_string();
    let done = sqlx::query(DISTRIBUTE).bind(takers).bind(limit).bind(now).execute(pool).await;
    Ok(done.map_err(failed(DISTRIBUTING))?.rows_affected())
}

/// Hand-backs that nobody came for in time, but those that all were told of whom it concerns. Rows
/// that a run holds are left to the next call.
const LAPSE: &str = "\
with late as materialized (
    select h.table_name, h.key, h.number from tieout_handbacks h
    where h.ended_at is null and h.taken_at is null and h.charge_before <= $1
    and not coalesce((select bool_or(d.state in ('delivered', 'purged'))
            and not bool_or(d.state in ('waiting', 'dead'))
        from tieout_outbox o join tieout_deliveries d on d.event_id = o.event_id
        where o.table_name = h.table_name and o.key = h.key
        and o.handback_number = h.number), false)),
free as materialized (
    select c.table_name, c.key, l.number
    from late l join tieout_checks c on c.table_name = l.table_name and c.key = l.key
    where c.lease_run is null and c.ended_as = 'retryable' and c.handbacks = l.number
    for update of c skip locked),
lapsed as (
    update tieout_handbacks h set ended_at = $1, end_reason = 'lapsed'
    from free f where h.table_name = f.table_name and h.key = f.key and h.number = f.number
    and h.ended_at is null and h.taken_at is null
    returning h.table_name, h.key)
update tieout_checks c set state = 'watch', next_check_at = $1,
    watch_from = coalesce(c.watch_from, $1), aged_from = $1, unanswered_since = null,
    unanswered = 0, misses = '[]'
from lapsed l where c.table_name = l.table_name and c.key = l.key";

/// Deliveries of hand-backs that ended, and of those that are too late and cannot lapse.
const SUPPRESS: &str = "\
update tieout_deliveries d set state = 'suppressed', ended_at = $1,
    why = case when h.end_reason = 'lapsed' then 'past charge_before; proved afresh'
        when h.end_reason is not null then 'superseded: ' || h.end_reason
        else 'past charge_before' end
from tieout_outbox o join tieout_handbacks h on h.table_name = o.table_name
    and h.key = o.key and h.number = o.handback_number
where o.event_id = d.event_id and d.state in ('waiting', 'dead')
and (h.ended_at is not null or (h.charge_before <= $1 and (h.taken_at is not null
    or not exists (select from tieout_checks c where c.table_name = h.table_name
        and c.key = h.key and c.ended_as = 'retryable' and c.handbacks = h.number))))
returning d.event_id";

/// One order for everybody.
const HOLD: &str =
    "select from tieout_outbox where event_id = any($1) order by event_id for update";

/// Events none of whose deliveries is open any more.
const FINISH: &str = "\
update tieout_outbox o set
    delivered_at = case when e.delivered then $2::timestamptz end,
    suppressed_at = case when e.delivered then null else $2::timestamptz end,
    suppressed_why = case when e.delivered then null else e.why end
from (select d.event_id, bool_or(d.state = 'delivered') as delivered, min(d.why) as why
    from tieout_deliveries d where d.event_id = any($1) group by d.event_id
    having not bool_or(d.state in ('waiting', 'dead'))) e
where o.event_id = e.event_id and o.delivered_at is null and o.suppressed_at is null";

pub(super) async fn suppress_stale(pool: &PgPool, now: Instant) -> Result<Stale, StoreError> {
    patiently(async || try_suppress(pool, now).await.map_err(failed(SUPPRESSING))).await
}

async fn try_suppress(pool: &PgPool, now: Instant) -> sqlx::Result<Stale> {
    let mut tx = begin(pool).await?;
    let lapsed = sqlx::query(LAPSE).bind(now).execute(&mut *tx).await?.rows_affected();
    let events: Vec<String> = sqlx::query_scalar(SUPPRESS).bind(now).fetch_all(&mut *tx).await?;
    finish(&mut tx, &events, now).await?;
    tx.commit().await?;
    let suppressed = u64::try_from(events.len()).unwrap_or(u64::MAX);
    Ok(Stale { suppressed, lapsed })
}

/// Ends the events of which nothing is open any more. Of two sinks that take the last of an event
/// at the same time neither sees what the other does: who comes second waits, and looks then.
pub(super) async fn finish(
    connection: &mut PgConnection,
    events: &[String],
    now: Instant,
) -> sqlx::Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    sqlx::query(HOLD).bind(events).execute(&mut *connection).await?;
    sqlx::query(FINISH).bind(events).bind(now).execute(connection).await.map(|_| ())
}

pub(super) async fn lease(
    pool: &PgPool,
    sink: &str,
    owner: &str,
    (now, until): (Instant, Instant),
    now_at_all: bool,
) -> Result<Turn, StoreError> {
    try_lease(pool, sink, owner, (now, until), now_at_all).await.map_err(failed(LEASING))
}

/// Letters that were tried and wait for another try; one that waits for its hand-back's
/// `not_before` was never tried.
const TRY_NOW: &str = "\
update tieout_deliveries set next_attempt_at = $2
where sink = $1 and state = 'waiting' and last_error is not null and next_attempt_at > $2";

async fn try_lease(
    pool: &PgPool,
    sink: &str,
    owner: &str,
    (now, until): (Instant, Instant),
    now_at_all: bool,
) -> sqlx::Result<Turn> {
    let mut tx = begin(pool).await?;
    sqlx::query("insert into tieout_sinks (name, since) values ($1, $2) on conflict do nothing")
        .bind(sink)
        .bind(now)
        .execute(&mut *tx)
        .await?;
    let ours: Option<(i64, i32)> = sqlx::query_as(
        "update tieout_sinks set lease_token = lease_token + 1, lease_owner = $2, \
         lease_until = $4 where name = $1 and (lease_until is null or lease_until <= $3) \
         and ($5 or next_attempt_at is null or next_attempt_at <= $3) \
         returning lease_token, failures",
    )
    .bind(sink)
    .bind(owner)
    .bind(now)
    .bind(until)
    .bind(now_at_all)
    .fetch_optional(&mut *tx)
    .await?;
    let turn = match ours {
        Some((token, failures)) => {
            if now_at_all {
                sqlx::query(TRY_NOW).bind(sink).bind(now).execute(&mut *tx).await?;
            }
            let failures = u32::try_from(failures).unwrap_or_default();
            Turn::Ours(SinkLease { sink: sink.to_owned(), token, failures })
        }
        None => why_not(&mut tx, sink, now).await?,
    };
    tx.commit().await?;
    Ok(turn)
}

async fn why_not(connection: &mut PgConnection, sink: &str, now: Instant) -> sqlx::Result<Turn> {
    let (lease_until, next, error): (Option<Instant>, Option<Instant>, Option<String>) =
        sqlx::query_as(
            "select lease_until, next_attempt_at, last_error from tieout_sinks where name = $1",
        )
        .bind(sink)
        .fetch_one(connection)
        .await?;
    Ok(match lease_until.filter(|until| *until > now) {
        Some(until) => Turn::Busy(until),
        None => Turn::LeftAlone(next.unwrap_or(now), error.unwrap_or_default()),
    })
}

/// Of each transaction the first event that did not end, and never one whose elders are not even
/// distributed.
///
/// Statistics that were taken while nothing waited say that no delivery is open and no event is
/// undistributed: a join with either is planned as a walk through all of them, once for each
/// letter. A scalar subquery is never made a join, and goes by the whole key. That of the elders
/// has no condition on `distributed_at`, which would let the index of what is not distributed
/// serve it.
macro_rules! due {
    ($which:literal) => {
        concat!(
            "select d.event_id, d.table_name, d.key, d.version, o.kind, o.payload, d.attempts, ",
            "o.staged_at ",
            "from tieout_deliveries d join tieout_outbox o on o.event_id = d.event_id ",
            "where d.sink = $1 and d.state = 'waiting' and d.next_attempt_at <= $2 ",
            "and d.last_error ",
            $which,
            " and (o.handback_number is null or (select h.charge_before from tieout_handbacks h ",
            "where h.table_name = o.table_name and h.key = o.key ",
            "and h.number = o.handback_number and h.ended_at is null) > $2) ",
            "and coalesce((select false from tieout_deliveries p where p.sink = d.sink ",
            "and p.table_name = d.table_name and p.key = d.key and p.version < d.version ",
            "and p.state in ('waiting', 'dead') limit 1), true) ",
            "and coalesce((select bool_and(p.distributed_at is not null) from tieout_outbox p ",
            "where p.table_name = d.table_name and p.key = d.key ",
            "and p.version < d.version), true) ",
            "order by d.next_attempt_at, d.event_id limit $3",
        )
    };
}

fn due_of(which: Which) -> &'static str {
    match which {
        Which::New => due!("is null"),
        Which::Tried => due!("is not null"),
    }
}

pub(super) async fn plan(
    pool: &PgPool,
    sink: &str,
    which: Which,
    now: Instant,
) -> Result<Vec<String>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::new(due_of(which));
    sql.bind(sink.to_owned());
    sql.bind(now);
    sql.bind(200_i64);
    let rows = sql.explained().fetch(&mut connection).await.map_err(failed(READING))?;
    rows.iter().map(|row| Cells::new(row, READING).text(0)).collect()
}

pub(super) async fn due(
    pool: &PgPool,
    lease: &SinkLease,
    (which, limit): (Which, i64),
    (now, until): (Instant, Instant),
) -> Result<Option<Vec<Letter>>, StoreError> {
    let renewed = sqlx::query(
        "update tieout_sinks set lease_until = $3 where name = $1 and lease_token = $2 \
         and lease_owner is not null",
    )
    .bind(&lease.sink)
    .bind(lease.token)
    .bind(until)
    .execute(pool)
    .await
    .map_err(failed(READING))?;
    if renewed.rows_affected() == 0 {
        return Ok(None);
    }
    let query = sqlx::query(due_of(which)).bind(&lease.sink).bind(now).bind(limit);
    let rows = query.fetch_all(pool).await.map_err(failed(READING))?;
    let letters = rows.iter().map(|row| letter(&Cells::new(row, READING), 0));
    letters.collect::<Result<Vec<Letter>, StoreError>>().map(Some)
}

/// Reads a letter whose columns begin at this place.
pub(super) fn letter(cells: &Cells<'_>, from: usize) -> Result<Letter, StoreError> {
    let at = |place: usize| from.saturating_add(place);
    Ok(Letter {
        event_id: cells.text(at(0))?,
        table: cells.text(at(1))?,
        key: cells.text(at(2))?,
        version: cells.count(at(3))?,
        kind: cells.text(at(4))?,
        payload: cells.text(at(5))?,
        attempts: cells.count(at(6))?,
        staged_at: cells.at(at(7))?,
    })
}

pub(super) async fn settle(
    pool: &PgPool,
    lease: &SinkLease,
    ends: &[(String, LetterEnd)],
    now: Instant,
) -> Result<bool, StoreError> {
    patiently(async || try_settle(pool, lease, ends, now).await.map_err(failed(MARKING))).await
}

async fn try_settle(
    pool: &PgPool,
    lease: &SinkLease,
    ends: &[(String, LetterEnd)],
    now: Instant,
) -> sqlx::Result<bool> {
    let mut tx = begin(pool).await?;
    let held = sqlx::query(
        "select from tieout_sinks where name = $1 and lease_token = $2 \
         and lease_owner is not null for update",
    )
    .bind(&lease.sink)
    .bind(lease.token)
    .fetch_optional(&mut *tx)
    .await?;
    if held.is_none() {
        return Ok(false);
    }
    let delivered: Vec<String> = ends
        .iter()
        .filter(|(_, end)| *end == LetterEnd::Delivered)
        .map(|(id, _)| id.clone())
        .collect();
    sqlx::query(
        "update tieout_deliveries set state = 'delivered', ended_at = $3, last_error = null \
         where sink = $1 and event_id = any($2) and state = 'waiting'",
    )
    .bind(&lease.sink)
    .bind(&delivered)
    .bind(now)
    .execute(&mut *tx)
    .await?;
    put_off(&mut tx, lease, ends, now).await?;
    finish(&mut tx, &delivered, now).await?;
    tx.commit().await?;
    Ok(true)
}

/// Those that the sink did not take.
async fn put_off(
    connection: &mut PgConnection,
    lease: &SinkLease,
    ends: &[(String, LetterEnd)],
    now: Instant,
) -> sqlx::Result<()> {
    let (mut ids, mut states, mut attempts) = (Vec::new(), Vec::new(), Vec::new());
    let (mut next, mut errors) = (Vec::new(), Vec::new());
    for (id, end) in ends {
        let (state, at, tries, error) = match end {
            LetterEnd::Delivered => continue,
            LetterEnd::Again { at, attempts, error } => ("waiting", *at, *attempts, error),
            LetterEnd::Dead { attempts, error } => ("dead", now, *attempts, error),
        };
        ids.push(id.clone());
        states.push(state.to_owned());
        attempts.push(small(tries));
        next.push(at);
        errors.push(error.clone());
    }
    if ids.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "update tieout_deliveries d set state = u.state, attempts = u.attempts, \
         next_attempt_at = u.next, last_error = u.error \
         from unnest($2::text[], $3::text[], $4::integer[], $5::timestamptz[], $6::text[]) \
         as u(id, state, attempts, next, error) \
         where d.sink = $1 and d.event_id = u.id and d.state = 'waiting'",
    )
    .bind(&lease.sink)
    .bind(ids)
    .bind(states)
    .bind(attempts)
    .bind(next)
    .bind(errors)
    .execute(connection)
    .await
    .map(|_| ())
}

pub(super) async fn release(
    pool: &PgPool,
    lease: &SinkLease,
    health: &Health,
    now: Instant,
) -> Result<(), StoreError> {
    let released = match health {
        Health::Well { took } => {
            sqlx::query(
                "update tieout_sinks set lease_owner = null, lease_until = null, \
                 failures = case when $3 then 0 else failures end, \
                 failing_since = case when $3 then null else failing_since end, \
                 next_attempt_at = case when $3 then null else next_attempt_at end, \
                 last_error = case when $3 then null else last_error end, \
                 last_delivered_at = case when $3 then $4 else last_delivered_at end \
                 where name = $1 and lease_token = $2",
            )
            .bind(&lease.sink)
            .bind(lease.token)
            .bind(*took)
            .bind(now)
            .execute(pool)
            .await
        }
        Health::Failing { took, until, error } => {
            sqlx::query(
                "update tieout_sinks set lease_owner = null, lease_until = null, \
                 failures = case when $6 then 1 else failures + 1 end, \
                 failing_since = case when $6 then $3 else coalesce(failing_since, $3) end, \
                 last_delivered_at = case when $6 then $3 else last_delivered_at end, \
                 next_attempt_at = $4, last_error = $5 where name = $1 and lease_token = $2",
            )
            .bind(&lease.sink)
            .bind(lease.token)
            .bind(now)
            .bind(until)
            .bind(error)
            .bind(*took)
            .execute(pool)
            .await
        }
    };
    released.map(|_| ()).map_err(failed("giving a sink back"))
}

const STATES: &str = "\
select n.name, coalesce(w.waiting, 0), w.oldest, coalesce(w.dead, 0), s.failing_since,
    s.next_attempt_at, s.last_error, s.last_delivered_at, coalesce(w.later, 0)
from (select name from tieout_sinks union
    select sink from tieout_deliveries where state in ('waiting', 'dead')) n
left join tieout_sinks s on s.name = n.name
left join (select d.sink, count(*) filter (where d.state = 'waiting') as waiting,
    count(*) filter (where d.state = 'dead') as dead,
    count(*) filter (where d.state = 'waiting' and d.last_error is null
        and d.next_attempt_at > $1) as later,
    min(o.staged_at) filter (where d.state = 'waiting') as oldest
    from tieout_deliveries d join tieout_outbox o on o.event_id = d.event_id
    where d.state in ('waiting', 'dead') group by d.sink) w on w.sink = n.name
order by 1";

pub(super) async fn states(pool: &PgPool, now: Instant) -> Result<Vec<SinkState>, StoreError> {
    let doing = "reading how the sinks stand";
    let rows = sqlx::query(STATES).bind(now).fetch_all(pool).await.map_err(failed(doing))?;
    let states = rows.iter().map(|row| {
        let cells = Cells::new(row, doing);
        Ok(SinkState {
            sink: cells.text(0)?,
            waiting: cells.big(1)?,
            later: cells.big(8)?,
            oldest: cells.maybe_at(2)?,
            dead: cells.big(3)?,
            failing_since: cells.maybe_at(4)?,
            next_attempt_at: cells.maybe_at(5)?,
            last_error: cells.maybe_text(6)?,
            last_delivered_at: cells.maybe_at(7)?,
        })
    });
    states.collect()
}

pub(super) async fn notify(
    pool: &PgPool,
    channel: &str,
    payloads: &[String],
) -> Result<(), StoreError> {
    sqlx::query(
        "select pg_notify($1, u.payload) from unnest($2::text[]) with ordinality \
         as u(payload, place) order by u.place",
    )
    .bind(channel)
    .bind(payloads)
    .fetch_all(pool)
    .await
    .map(|_| ())
    .map_err(failed("notifying listeners"))
}
