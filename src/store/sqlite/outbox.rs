//! Distributing events, holding sinks, marking letters. See `store::outbox`.
//!
//! Whatever writes here runs within the caller's `begin immediate`: nobody else writes meanwhile.

use sqlx::sqlite::SqliteConnection;

use crate::model::time::{Instant, to_text};
use crate::store::error::StoreError;
use crate::store::outbox::{
    Health, Letter, LetterEnd, SinkLease, SinkState, Stale, Taker, Turn, Which,
};
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::sql::{execute, fetch, json_set};

const DISTRIBUTING: &str = "distributing events to the sinks";
const SUPPRESSING: &str = "suppressing hand-backs that are no news any more";
const LEASING: &str = "taking a sink";
const READING: &str = "reading events that wait for a sink";
const MARKING: &str = "marking what a sink took";

pub(super) async fn is_empty(connection: &mut SqliteConnection) -> Result<bool, StoreError> {
    let query = sqlx::query(
        "select not exists (select 1 from tieout_outbox where distributed_at is null) \
         and not exists (select 1 from tieout_deliveries where state in ('waiting', 'dead'))",
    );
    let rows = fetch(connection, READING, query).await?;
    let Some(row) = rows.first() else { return Ok(true) };
    Ok(Cells::new(row, READING).int(0)? != 0)
}

pub(super) async fn distribute(
    connection: &mut SqliteConnection,
    takers: &[Taker],
    limit: i64,
    now: Instant,
) -> Result<u64, StoreError> {
    let query = sqlx::query(concat!(
        "insert into tieout_deliveries ",
        "(sink, event_id, table_name, key, version, state, next_attempt_at) ",
        "select t.value ->> 'sink', f.event_id, f.table_name, f.key, f.version, 'waiting', ",
        "max(f.staged_at, coalesce(h.not_before, f.staged_at)) from (",
        "select * from tieout_outbox ",
        "where distributed_at is null order by staged_at, event_id limit ?2) f ",
        "left join tieout_handbacks h on h.table_name = f.table_name and h.key = f.key ",
        "and h.number = f.handback_number cross join json_each(?1) t ",
        "where (json_array_length(t.value, '$.tables') = 0 or f.table_name in ",
        "(select value from json_each(t.value, '$.tables'))) ",
        "and (json_array_length(t.value, '$.kinds') = 0 or f.kind in ",
        "(select value from json_each(t.value, '$.kinds'))) ",
        "on conflict do nothing",
    ))
    .bind(json_set(takers))
    .bind(limit);
    execute(connection, DISTRIBUTING, query).await?;
    // The same events: nobody else writes in between.
    let query = sqlx::query(
        "update tieout_outbox set distributed_at = ?2, delivered_at = case when exists \
         (select 1 from tieout_deliveries d where d.event_id = tieout_outbox.event_id) \
         then null else ?2 end where event_id in (select event_id from tieout_outbox \
         where distributed_at is null order by staged_at, event_id limit ?1)",
    )
    .bind(limit)
    .bind(to_text(now));
    execute(connection, DISTRIBUTING, query).await
}

/// Hand-backs that nobody came for in time, but those that all were told of whom it concerns. Rows
/// that a run holds are left to the next call.
const LATE: &str = "\
select h.table_name, h.key, h.number from tieout_handbacks h
cross join tieout_checks c on c.table_name = h.table_name and c.key = h.key
where h.ended_at is null and h.taken_at is null and h.charge_before <= ?1
and c.lease_run is null and c.ended_as = 'retryable' and c.handbacks = h.number
and not coalesce((select max(d.state in ('delivered', 'purged'))
        and not max(d.state in ('waiting', 'dead'))
    from tieout_outbox o join tieout_deliveries d on d.event_id = o.event_id
    where o.table_name = h.table_name and o.key = h.key
    and o.handback_number = h.number), 0)";

/// Deliveries of hand-backs that ended, and of those that are too late and cannot lapse.
const SUPPRESS: &str = "\
update tieout_deliveries as d set state = 'suppressed', ended_at = ?1,
    why = case when h.end_reason = 'lapsed' then 'past charge_before; proved afresh'
        when h.end_reason is not null then 'superseded: ' || h.end_reason
        else 'past charge_before' end
from tieout_outbox o join tieout_handbacks h on h.table_name = o.table_name
    and h.key = o.key and h.number = o.handback_number
where o.event_id = d.event_id and d.state in ('waiting', 'dead')
and (h.ended_at is not null or (h.charge_before <= ?1 and (h.taken_at is not null
    or not exists (select 1 from tieout_checks c where c.table_name = h.table_name
        and c.key = h.key and c.ended_as = 'retryable' and c.handbacks = h.number))))
returning event_id";

pub(super) async fn suppress_stale(
    connection: &mut SqliteConnection,
    now: Instant,
) -> Result<Stale, StoreError> {
    let query = sqlx::query(LATE).bind(to_text(now));
    let rows = fetch(connection, SUPPRESSING, query).await?;
    let mut late: Vec<(String, String, i64)> = Vec::new();
    for row in &rows {
        let cells = Cells::new(row, SUPPRESSING);
        late.push((cells.text(0)?, cells.text(1)?, cells.int(2)?));
    }
    if !late.is_empty() {
        lapse(connection, &late, now).await?;
    }
    let query = sqlx::query(SUPPRESS).bind(to_text(now));
    let rows = fetch(connection, SUPPRESSING, query).await?;
    let events = rows.iter().map(|row| Cells::new(row, SUPPRESSING).text(0));
    let events = events.collect::<Result<Vec<String>, StoreError>>()?;
    finish(connection, &events, now).await?;
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    Ok(Stale { suppressed: count(events.len()), lapsed: count(late.len()) })
}

async fn lapse(
    connection: &mut SqliteConnection,
    late: &[(String, String, i64)],
    now: Instant,
) -> Result<(), StoreError> {
    let query = sqlx::query(
        "update tieout_handbacks as h set ended_at = ?2, end_reason = 'lapsed' \
         from json_each(?1) j where h.table_name = j.value ->> 0 and h.key = j.value ->> 1 \
         and h.number = j.value ->> 2",
    )
    .bind(json_set(late))
    .bind(to_text(now));
    execute(connection, SUPPRESSING, query).await?;
    let query = sqlx::query(
        "update tieout_checks as c set state = 'watch', next_check_at = ?2, \
         watch_from = coalesce(c.watch_from, ?2), aged_from = ?2, unanswered_since = null, \
         unanswered = 0, misses = '[]' from json_each(?1) j \
         where c.table_name = j.value ->> 0 and c.key = j.value ->> 1",
    )
    .bind(json_set(late))
    .bind(to_text(now));
    execute(connection, SUPPRESSING, query).await.map(|_| ())
}

/// Ends the events of which nothing is open any more.
pub(super) async fn finish(
    connection: &mut SqliteConnection,
    events: &[String],
    now: Instant,
) -> Result<(), StoreError> {
    if events.is_empty() {
        return Ok(());
    }
    let query = sqlx::query(
        "update tieout_outbox as o set \
         delivered_at = case when e.delivered then ?2 end, \
         suppressed_at = case when e.delivered then null else ?2 end, \
         suppressed_why = case when e.delivered then null else e.why end \
         from (select d.event_id as event_id, max(d.state = 'delivered') as delivered, \
         min(d.why) as why from tieout_deliveries d \
         where d.event_id in (select value from json_each(?1)) group by d.event_id \
         having max(d.state in ('waiting', 'dead')) = 0) e \
         where o.event_id = e.event_id and o.delivered_at is null and o.suppressed_at is null",
    )
    .bind(json_set(events))
    .bind(to_text(now));
    execute(connection, MARKING, query).await.map(|_| ())
}

/// Letters that were tried and wait for another try; one that waits for its hand-back's
/// `not_before` was never tried.
const TRY_NOW: &str = "\
update tieout_deliveries set next_attempt_at = ?2
where sink = ?1 and state = 'waiting' and last_error is not null and next_attempt_at > ?2";

pub(super) async fn lease(
    connection: &mut SqliteConnection,
    sink: &str,
    owner: &str,
    (now, until): (Instant, Instant),
    now_at_all: bool,
) -> Result<Turn, StoreError> {
    let query = sqlx::query(
        "insert into tieout_sinks (name, since) values (?1, ?2) on conflict do nothing",
    )
    .bind(sink.to_owned())
    .bind(to_text(now));
    execute(connection, LEASING, query).await?;
    let query = sqlx::query(
        "update tieout_sinks set lease_token = lease_token + 1, lease_owner = ?2, \
         lease_until = ?4 where name = ?1 and (lease_until is null or lease_until <= ?3) \
         and (?5 or next_attempt_at is null or next_attempt_at <= ?3) \
         returning lease_token, failures",
    )
    .bind(sink.to_owned())
    .bind(owner.to_owned())
    .bind(to_text(now))
    .bind(to_text(until))
    .bind(now_at_all);
    let rows = fetch(connection, LEASING, query).await?;
    if let Some(row) = rows.first() {
        let cells = Cells::new(row, LEASING);
        let (token, failures) = (cells.int(0)?, cells.count(1)?);
        if now_at_all {
            let query = sqlx::query(TRY_NOW).bind(sink.to_owned()).bind(to_text(now));
            execute(connection, LEASING, query).await?;
        }
        return Ok(Turn::Ours(SinkLease { sink: sink.to_owned(), token, failures }));
    }
    let query = sqlx::query(
        "select lease_until, next_attempt_at, last_error from tieout_sinks where name = ?1",
    )
    .bind(sink.to_owned());
    let rows = fetch(connection, LEASING, query).await?;
    let Some(row) = rows.first() else { return Ok(Turn::Busy(until)) };
    let cells = Cells::new(row, LEASING);
    if let Some(busy) = cells.opt_at(0)?.filter(|until| *until > now) {
        return Ok(Turn::Busy(busy));
    }
    let error = cells.opt_text(2)?.unwrap_or_default();
    Ok(Turn::LeftAlone(cells.opt_at(1)?.unwrap_or(now), error))
}

/// Of each transaction the first event that did not end, and never one whose elders are not even
/// distributed.
macro_rules! due {
    ($which:literal) => {
        concat!(
            "select d.event_id, d.table_name, d.key, d.version, o.kind, o.payload, d.attempts, ",
            "o.staged_at from tieout_deliveries d ",
            "cross join tieout_outbox o on o.event_id = d.event_id ",
            "left join tieout_handbacks h on h.table_name = o.table_name and h.key = o.key ",
            "and h.number = o.handback_number ",
            "where d.sink = ?1 and d.state = 'waiting' and d.next_attempt_at <= ?2 ",
            "and d.last_error ",
            $which,
            " and (o.handback_number is null or (h.ended_at is null and h.charge_before > ?2)) ",
            "and not exists (select 1 from tieout_deliveries p where p.sink = d.sink ",
            "and p.table_name = d.table_name and p.key = d.key and p.version < d.version ",
            "and p.state in ('waiting', 'dead')) ",
            // No condition on `distributed_at`: it would let the index of what is not distributed
            // serve it, which has no key.
            "and coalesce((select min(p.distributed_at is not null) from tieout_outbox p ",
            "where p.table_name = d.table_name and p.key = d.key ",
            "and p.version < d.version), 1) ",
            "order by d.next_attempt_at, d.event_id limit ?3",
        )
    };
}

/// As it is read, or with how it would be.
macro_rules! due_of {
    ($before:literal, $which:expr) => {
        match $which {
            Which::New => concat!($before, due!("is null")),
            Which::Tried => concat!($before, due!("is not null")),
        }
    };
}

pub(super) async fn plan(
    connection: &mut SqliteConnection,
    sink: &str,
    which: Which,
    now: Instant,
) -> Result<Vec<String>, StoreError> {
    let query = sqlx::query(due_of!("explain query plan ", which));
    let query = query.bind(sink.to_owned()).bind(to_text(now)).bind(200_i64);
    let rows = fetch(connection, READING, query).await?;
    rows.iter().map(|row| Cells::new(row, READING).text(3)).collect()
}

pub(super) async fn due(
    connection: &mut SqliteConnection,
    lease: &SinkLease,
    (which, limit): (Which, i64),
    (now, until): (Instant, Instant),
) -> Result<Option<Vec<Letter>>, StoreError> {
    let query = sqlx::query(
        "update tieout_sinks set lease_until = ?3 where name = ?1 and lease_token = ?2 \
         and lease_owner is not null",
    )
    .bind(lease.sink.clone())
    .bind(lease.token)
    .bind(to_text(until));
    if execute(connection, READING, query).await? == 0 {
        return Ok(None);
    }
    let query = sqlx::query(due_of!("", which));
    let query = query.bind(lease.sink.clone()).bind(to_text(now)).bind(limit);
    let rows = fetch(connection, READING, query).await?;
    let letters = rows.iter().map(|row| letter(Cells::new(row, READING), 0));
    letters.collect::<Result<Vec<Letter>, StoreError>>().map(Some)
}

/// Reads a letter whose columns begin at this place.
pub(super) fn letter(cells: Cells<'_>, from: usize) -> Result<Letter, StoreError> {
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
    connection: &mut SqliteConnection,
    lease: &SinkLease,
    ends: &[(String, LetterEnd)],
    now: Instant,
) -> Result<bool, StoreError> {
    let query = sqlx::query(
        "select 1 from tieout_sinks where name = ?1 and lease_token = ?2 \
         and lease_owner is not null",
    )
    .bind(lease.sink.clone())
    .bind(lease.token);
    if fetch(connection, MARKING, query).await?.is_empty() {
        return Ok(false);
    }
    let mut delivered: Vec<String> = Vec::new();
    let mut others: Vec<(&str, &str, u32, String, &str)> = Vec::new();
    for (id, end) in ends {
        match end {
            LetterEnd::Delivered => delivered.push(id.clone()),
            LetterEnd::Again { at, attempts, error } => {
                others.push((id, "waiting", *attempts, to_text(*at), error));
            }
            LetterEnd::Dead { attempts, error } => {
                others.push((id, "dead", *attempts, to_text(now), error));
            }
        }
    }
    let query = sqlx::query(
        "update tieout_deliveries as d set state = 'delivered', ended_at = ?3, last_error = null \
         from json_each(?1) j where d.event_id = j.value and d.sink = ?2 and d.state = 'waiting'",
    )
    .bind(json_set(&delivered))
    .bind(lease.sink.clone())
    .bind(to_text(now));
    execute(connection, MARKING, query).await?;
    let query = sqlx::query(
        "update tieout_deliveries as d set state = j.value ->> 1, attempts = j.value ->> 2, \
         next_attempt_at = j.value ->> 3, last_error = j.value ->> 4 \
         from json_each(?1) j where d.event_id = j.value ->> 0 and d.sink = ?2 \
         and d.state = 'waiting'",
    )
    .bind(json_set(&others))
    .bind(lease.sink.clone());
    execute(connection, MARKING, query).await?;
    finish(connection, &delivered, now).await?;
    Ok(true)
}

pub(super) async fn release(
    connection: &mut SqliteConnection,
    lease: &SinkLease,
    health: &Health,
    now: Instant,
) -> Result<(), StoreError> {
    let query = match health {
        Health::Well { took } => sqlx::query(
            "update tieout_sinks set lease_owner = null, lease_until = null, \
             failures = case when ?3 is null then failures else 0 end, \
             failing_since = case when ?3 is null then failing_since end, \
             next_attempt_at = case when ?3 is null then next_attempt_at end, \
             last_error = case when ?3 is null then last_error end, \
             last_delivered_at = coalesce(?3, last_delivered_at) \
             where name = ?1 and lease_token = ?2",
        )
        .bind(lease.sink.clone())
        .bind(lease.token)
        .bind(took.then(|| to_text(now))),
        Health::Failing { took, until, error } => sqlx::query(
            "update tieout_sinks set lease_owner = null, lease_until = null, \
             failures = case when ?6 then 1 else failures + 1 end, \
             failing_since = case when ?6 then ?3 else coalesce(failing_since, ?3) end, \
             last_delivered_at = case when ?6 then ?3 else last_delivered_at end, \
             next_attempt_at = ?4, last_error = ?5 where name = ?1 and lease_token = ?2",
        )
        .bind(lease.sink.clone())
        .bind(lease.token)
        .bind(to_text(now))
        .bind(to_text(*until))
        .bind(error.clone())
        .bind(*took),
    };
    execute(connection, "giving a sink back", query).await.map(|_| ())
}

const STATES: &str = "\
select n.name, coalesce(w.waiting, 0), w.oldest, coalesce(w.dead, 0), s.failing_since,
    s.next_attempt_at, s.last_error, s.last_delivered_at, coalesce(w.later, 0)
from (select name from tieout_sinks union
    select sink from tieout_deliveries where state in ('waiting', 'dead')) n
left join tieout_sinks s on s.name = n.name
left join (select d.sink as sink, count(*) filter (where d.state = 'waiting') as waiting,
    count(*) filter (where d.state = 'dead') as dead,
    count(*) filter (where d.state = 'waiting' and d.last_error is null
        and d.next_attempt_at > ?1) as later,
    min(o.staged_at) filter (where d.state = 'waiting') as oldest
    from tieout_deliveries d join tieout_outbox o on o.event_id = d.event_id
    where d.state in ('waiting', 'dead') group by d.sink) w on w.sink = n.name
order by 1";

pub(super) async fn states(
    connection: &mut SqliteConnection,
    now: Instant,
) -> Result<Vec<SinkState>, StoreError> {
    let doing = "reading how the sinks stand";
    let rows = fetch(connection, doing, sqlx::query(STATES).bind(to_text(now))).await?;
    let states = rows.iter().map(|row| {
        let cells = Cells::new(row, doing);
        Ok(SinkState {
            sink: cells.text(0)?,
            waiting: cells.int(1)?,
            later: cells.int(8)?,
            oldest: cells.opt_at(2)?,
            dead: cells.int(3)?,
            failing_since: cells.opt_at(4)?,
            next_attempt_at: cells.opt_at(5)?,
            last_error: cells.opt_text(6)?,
            last_delivered_at: cells.opt_at(7)?,
        })
    });
    states.collect()
}
