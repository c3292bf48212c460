//! Deliveries that did not end: listed for a person, and what the person does about them.

use sqlx::postgres::{PgConnection, PgPool, PgRow};

use crate::model::time::Instant;
use crate::store::error::StoreError;
use crate::store::outbox::{
    By, Deed, Done, LetterFilter, Merging, OpenLetter, Undelivered, outdated,
};
use crate::store::postgres::errors::failed;
use crate::store::postgres::outbox::{finish, letter};
use crate::store::postgres::sql::{Cells, Sql};
use crate::store::postgres::transactions::begin;

const LISTING: &str = "reading what could not be delivered";
const CHANGING: &str = "changing what could not be delivered";

/// Deliveries `d` with their events `o`.
const OPEN: &str = "\
select d.sink, d.state, d.next_attempt_at, d.last_error, count(*) over (), d.event_id, d.table_name,
    d.key, d.version, o.kind, o.payload, d.attempts, o.staged_at
from tieout_deliveries d join tieout_outbox o on o.event_id = d.event_id";

const OLDEST_FIRST: &str = "order by o.staged_at, d.event_id, d.sink";

/// The conditions of a filter on a delivery `d` and its event `o`.
fn conditions(filter: &LetterFilter, sql: &mut Sql) -> String {
    let mut all = vec![match filter.state {
        Some(state) => format!("d.state = {}", sql.bind(state.to_owned())),
        None => "d.state in ('waiting', 'dead')".to_owned(),
    }];
    let equal =
        [("d.sink", &filter.sink), ("d.table_name", &filter.table), ("o.kind", &filter.kind)];
    for (column, value) in equal {
        if let Some(value) = value {
            all.push(format!("{column} = {}", sql.bind(value.clone())));
        }
    }
    if let Some(keys) = &filter.keys {
        all.push(format!("d.key = any({})", sql.bind(keys.clone())));
    }
    if let Some(text) = &filter.error {
        all.push(format!("strpos(d.last_error, {}) > 0", sql.bind(text.clone())));
    }
    if let Some(before) = filter.staged_before {
        all.push(format!("o.staged_at < {}", sql.bind(before)));
    }
    all.join(" and ")
}

pub(super) async fn open(
    pool: &PgPool,
    filter: &LetterFilter,
    limit: i64,
) -> Result<(Vec<OpenLetter>, i64), StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(LISTING))?;
    let mut sql = Sql::default();
    let limit = sql.bind(limit);
    let which = conditions(filter, &mut sql);
    sql.push(&format!("{OPEN} where {which} {OLDEST_FIRST} limit {limit}"));
    let rows = sql.fetch(&mut connection).await.map_err(failed(LISTING))?;
    listed(&rows)
}

/// Of each row of [`OPEN`] its letter, and how many there are in all.
fn listed(rows: &[PgRow]) -> Result<(Vec<OpenLetter>, i64), StoreError> {
    let mut all = 0;
    let mut letters = Vec::new();
    for row in rows {
        let cells = Cells::new(row, LISTING);
        all = cells.big(4)?;
        letters.push(OpenLetter {
            sink: cells.text(0)?,
            state: cells.text(1)?,
            next_attempt_at: cells.at(2)?,
            last_error: cells.maybe_text(3)?,
            letter: letter(&cells, 5)?,
        });
    }
    Ok((letters, all))
}

pub(super) async fn merging(
    pool: &PgPool,
    filter: &LetterFilter,
    limit: i64,
) -> Result<Merging, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(LISTING))?;
    let mut sql = Sql::default();
    let limit = sql.bind(limit);
    let rows = own_rows(filter, &mut sql);
    sql.push(&format!(
        concat!("{} join ({}) own on ", outdated!(), " {} limit {}"),
        OPEN, rows, OLDEST_FIRST, limit
    ));
    let rows = sql.fetch(&mut connection).await.map_err(failed(LISTING))?;
    let (given_up, given_up_total) = listed(&rows)?;
    let again = rows_of(&mut connection, filter).await?;
    Ok(Merging { given_up, given_up_total, again })
}

pub(super) async fn undelivered_of_row(
    pool: &PgPool,
    table: &str,
    key: &str,
) -> Result<Vec<Undelivered>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(LISTING))?;
    let mut sql = Sql::new(
        "select d.sink, d.event_id, d.version, o.kind, d.attempts, d.last_error, \
         coalesce(d.ended_at, d.next_attempt_at), d.why, d.changed_by \
         from tieout_outbox o join tieout_deliveries d on d.event_id = o.event_id \
         where o.table_name = $1 and o.key = $2 and d.state in ('dead', 'purged') \
         order by o.version, d.sink",
    );
    sql.bind(table.to_owned());
    sql.bind(key.to_owned());
    let rows = sql.fetch(&mut connection).await.map_err(failed(LISTING))?;
    let undelivered = |row: &PgRow| {
        let cells = Cells::new(row, LISTING);
        Ok(Undelivered {
            sink: cells.text(0)?,
            event_id: cells.text(1)?,
            version: cells.count(2)?,
            kind: cells.text(3)?,
            attempts: cells.count(4)?,
            last_error: cells.maybe_text(5)?,
            at: cells.at(6)?,
            given_up: cells.maybe_text(7)?,
            changed_by: cells.maybe_text(8)?,
        })
    };
    rows.iter().map(undelivered).collect()
}

pub(super) async fn change(
    pool: &PgPool,
    deed: Deed,
    filter: &LetterFilter,
    by: By<'_>,
    now: Instant,
) -> Result<Done, StoreError> {
    let mut tx = begin(pool).await.map_err(failed(CHANGING))?;
    let done = match deed {
        Deed::Retry => Done { again: retry(&mut tx, filter, by, now).await?, given_up: 0 },
        Deed::Purge => Done { again: 0, given_up: give_up(&mut tx, deed, filter, by, now).await? },
        Deed::Merge => {
            let again = rows_of(&mut tx, filter).await?;
            let given_up = give_up(&mut tx, deed, filter, by, now).await?;
            // Those that did not die go out by themselves, once nothing older is before them.
            retry(&mut tx, filter, by, now).await?;
            Done { again, given_up }
        }
    };
    tx.commit().await.map_err(failed(CHANGING))?;
    Ok(done)
}

async fn retry(
    connection: &mut PgConnection,
    filter: &LetterFilter,
    by: By<'_>,
    now: Instant,
) -> Result<u64, StoreError> {
    let mut sql = Sql::default();
    let who = sql.bind(by.who.to_owned());
    let now = sql.bind(now);
    let which = conditions(&LetterFilter { state: Some("dead"), ..filter.clone() }, &mut sql);
    sql.push(&format!(
        "update tieout_deliveries d set state = 'waiting', attempts = 0, \
         next_attempt_at = {now}, changed_by = {who} || ' (database user ' || session_user || ')' \
         from tieout_outbox o where o.event_id = d.event_id and {which}"
    ));
    sql.run(connection).await.map_err(failed(CHANGING))
}

/// The rows of dead letters, at each sink.
fn own_rows(filter: &LetterFilter, sql: &mut Sql) -> String {
    let which = conditions(&LetterFilter { state: Some("dead"), ..filter.clone() }, sql);
    format!(
        "select distinct d.sink, d.table_name, d.key from tieout_deliveries d \
         join tieout_outbox o on o.event_id = d.event_id where {which}"
    )
}

async fn rows_of(connection: &mut PgConnection, filter: &LetterFilter) -> Result<u64, StoreError> {
    let mut sql = Sql::default();
    let rows = own_rows(filter, &mut sql);
    sql.push(&format!("select count(*) from ({rows}) as own"));
    let found = sql.fetch(connection).await.map_err(failed(LISTING))?;
    let count = found.first().map_or(Ok(0), |row| Cells::new(row, LISTING).big(0))?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// All of them, or with [`Deed::Merge`] those of their rows that did not end, and that a newer one
/// stands for: it waits behind them, as a dead letter holds back all that follows it.
async fn give_up(
    connection: &mut PgConnection,
    deed: Deed,
    filter: &LetterFilter,
    by: By<'_>,
    now: Instant,
) -> Result<u64, StoreError> {
    let mut sql = Sql::default();
    let who = sql.bind(by.who.to_owned());
    let why = sql.bind(by.why.to_owned());
    let at = sql.bind(now);
    let which = match deed {
        Deed::Merge => {
            format!(concat!("from ({}) as own where ", outdated!()), own_rows(filter, &mut sql))
        }
        Deed::Retry | Deed::Purge => format!(
            "from tieout_outbox o where o.event_id = d.event_id and {}",
            conditions(filter, &mut sql)
        ),
    };
    sql.push(&format!(
        "update tieout_deliveries d set state = 'purged', ended_at = {at}, \
         why = '{} by ' || {who} || ': ' || {why}, \
         changed_by = {who} || ' (database user ' || session_user || ')' {which} \
         returning d.event_id",
        deed.as_str(),
    ));
    let rows = sql.fetch(&mut *connection).await.map_err(failed(CHANGING))?;
    let events = rows.iter().map(|row| Cells::new(row, CHANGING).text(0));
    let events = events.collect::<Result<Vec<String>, StoreError>>()?;
    finish(connection, &events, now).await.map_err(failed(CHANGING))?;
    Ok(u64::try_from(events.len()).unwrap_or(u64::MAX))
}
