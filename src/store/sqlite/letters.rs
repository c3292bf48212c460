//! Deliveries that did not end: listed for a person, and what the person does about them.

use sqlx::sqlite::{SqliteConnection, SqliteRow};

use crate::model::time::{Instant, to_text};
use crate::store::error::StoreError;
use crate::store::outbox::{
    By, Deed, Done, LetterFilter, Merging, OpenLetter, Undelivered, outdated,
};
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::outbox::{finish, letter};
use crate::store::sqlite::sql::{SqliteQuery, execute, fetch, json_set};

const LISTING: &str = "reading what could not be delivered";
const CHANGING: &str = "changing what could not be delivered";

/// Deliveries `d` with their events `o`.
macro_rules! open {
    () => {
        "select d.sink, d.state, d.next_attempt_at, d.last_error, count(*) over (), \
         d.event_id, d.table_name, d.key, d.version, o.kind, o.payload, d.attempts, o.staged_at \
         from tieout_deliveries d join tieout_outbox o on o.event_id = d.event_id"
    };
}

/// The oldest event first, and at most ?8.
macro_rules! oldest {
    () => {
        " order by o.staged_at, d.event_id, d.sink limit ?8"
    };
}

/// The conditions of a filter on a delivery `d` and its event `o`, by the parameters ?1 to ?7.
macro_rules! which {
    () => {
        "(d.state = ?1 or (?1 is null and d.state in ('waiting', 'dead'))) \
         and (?2 is null or d.sink = ?2) and (?3 is null or d.table_name = ?3) \
         and (?4 is null or o.kind = ?4) \
         and (?5 is null or d.key in (select value from json_each(?5))) \
         and (?6 is null or instr(coalesce(d.last_error, ''), ?6) > 0) \
         and (?7 is null or o.staged_at < ?7)"
    };
}

/// The rows of dead letters, at each sink.
macro_rules! own_rows {
    () => {
        concat!(
            "select distinct d.sink, d.table_name, d.key from tieout_deliveries d ",
            "join tieout_outbox o on o.event_id = d.event_id where ",
            which!(),
        )
    };
}

/// Binds ?1 to ?7.
fn bound(query: SqliteQuery, filter: &LetterFilter, state: Option<&'static str>) -> SqliteQuery {
    query
        .bind(state)
        .bind(filter.sink.clone())
        .bind(filter.table.clone())
        .bind(filter.kind.clone())
        .bind(filter.keys.as_ref().map(|keys| json_set(keys)))
        .bind(filter.error.clone())
        .bind(filter.staged_before.map(to_text))
}

pub(super) async fn open(
    connection: &mut SqliteConnection,
    filter: &LetterFilter,
    limit: i64,
) -> Result<(Vec<OpenLetter>, i64), StoreError> {
    let query = sqlx::query(concat!(open!(), " where ", which!(), oldest!()));
    let query = bound(query, filter, filter.state).bind(limit);
    listed(&fetch(connection, LISTING, query).await?)
}

/// Of each row of `open!` its letter, and how many there are in all.
fn listed(rows: &[SqliteRow]) -> Result<(Vec<OpenLetter>, i64), StoreError> {
    let mut all = 0;
    let mut letters = Vec::new();
    for row in rows {
        let cells = Cells::new(row, LISTING);
        all = cells.int(4)?;
        letters.push(OpenLetter {
            sink: cells.text(0)?,
            state: cells.text(1)?,
            next_attempt_at: cells.at(2)?,
            last_error: cells.opt_text(3)?,
            letter: letter(cells, 5)?,
        });
    }
    Ok((letters, all))
}

pub(super) async fn merging(
    connection: &mut SqliteConnection,
    filter: &LetterFilter,
    limit: i64,
) -> Result<Merging, StoreError> {
    let query =
        sqlx::query(concat!(open!(), " join (", own_rows!(), ") own on ", outdated!(), oldest!(),));
    let query = bound(query, filter, Some("dead")).bind(limit);
    let (given_up, given_up_total) = listed(&fetch(connection, LISTING, query).await?)?;
    let again = rows_of(connection, filter).await?;
    Ok(Merging { given_up, given_up_total, again })
}

pub(super) async fn undelivered_of_row(
    connection: &mut SqliteConnection,
    table: &str,
    key: &str,
) -> Result<Vec<Undelivered>, StoreError> {
    let query = sqlx::query(
        "select d.sink, d.event_id, d.version, o.kind, d.attempts, d.last_error, \
         coalesce(d.ended_at, d.next_attempt_at), d.why, d.changed_by \
         from tieout_outbox o cross join tieout_deliveries d on d.event_id = o.event_id \
         where o.table_name = ?1 and o.key = ?2 and d.state in ('dead', 'purged') \
         order by o.version, d.sink",
    );
    let query = query.bind(table.to_owned()).bind(key.to_owned());
    let rows = fetch(connection, LISTING, query).await?;
    let undelivered = |row: &SqliteRow| {
        let cells = Cells::new(row, LISTING);
        Ok(Undelivered {
            sink: cells.text(0)?,
            event_id: cells.text(1)?,
            version: cells.count(2)?,
            kind: cells.text(3)?,
            attempts: cells.count(4)?,
            last_error: cells.opt_text(5)?,
            at: cells.at(6)?,
            given_up: cells.opt_text(7)?,
            changed_by: cells.opt_text(8)?,
        })
    };
    rows.iter().map(undelivered).collect()
}

pub(super) async fn change(
    connection: &mut SqliteConnection,
    deed: Deed,
    filter: &LetterFilter,
    by: By<'_>,
    now: Instant,
) -> Result<Done, StoreError> {
    match deed {
        Deed::Retry => Ok(Done { again: retry(connection, filter, by, now).await?, given_up: 0 }),
        Deed::Purge => {
            Ok(Done { again: 0, given_up: give_up(connection, deed, filter, by, now).await? })
        }
        Deed::Merge => {
            let again = rows_of(connection, filter).await?;
            let given_up = give_up(connection, deed, filter, by, now).await?;
            // Those that did not die go out by themselves, once nothing older is before them.
            retry(connection, filter, by, now).await?;
            Ok(Done { again, given_up })
        }
    }
}

async fn retry(
    connection: &mut SqliteConnection,
    filter: &LetterFilter,
    by: By<'_>,
    now: Instant,
) -> Result<u64, StoreError> {
    let query = sqlx::query(concat!(
        "update tieout_deliveries as d set state = 'waiting', attempts = 0, ",
        "next_attempt_at = ?8, changed_by = ?9 from tieout_outbox o ",
        "where o.event_id = d.event_id and ",
        which!(),
    ));
    let query = bound(query, filter, Some("dead")).bind(to_text(now)).bind(by.who.to_owned());
    execute(connection, CHANGING, query).await
}

async fn rows_of(
    connection: &mut SqliteConnection,
    filter: &LetterFilter,
) -> Result<u64, StoreError> {
    let query = sqlx::query(concat!("select count(*) from (", own_rows!(), ")"));
    let rows = fetch(connection, LISTING, bound(query, filter, Some("dead"))).await?;
    let count = rows.first().map_or(Ok(0), |row| Cells::new(row, LISTING).int(0))?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// All of them, or with [`Deed::Merge`] those of their rows that did not end, and that a newer one
/// stands for: it waits behind them, as a dead letter holds back all that follows it. The newest of
/// each row is untouched by that, whichever goes first.
async fn give_up(
    connection: &mut SqliteConnection,
    deed: Deed,
    filter: &LetterFilter,
    by: By<'_>,
    now: Instant,
) -> Result<u64, StoreError> {
    macro_rules! purged {
        ($which:expr) => {
            concat!(
                "update tieout_deliveries as d set state = 'purged', ended_at = ?8, ",
                "why = ?11 || ' by ' || ?9 || ': ' || ?10, changed_by = ?9 ",
                $which,
                " returning event_id",
            )
        };
    }
    let (query, state) = match deed {
        Deed::Merge => {
            let query = purged!(concat!("from (", own_rows!(), ") as own where ", outdated!(),));
            (query, Some("dead"))
        }
        Deed::Retry | Deed::Purge => {
            let query = purged!(concat!(
                "from tieout_outbox o where o.event_id = d.event_id and ",
                which!()
            ));
            (query, filter.state)
        }
    };
    let query = bound(sqlx::query(query), filter, state)
        .bind(to_text(now))
        .bind(by.who.to_owned())
        .bind(by.why.to_owned())
        .bind(deed.as_str());
    let rows = fetch(connection, CHANGING, query).await?;
    let events = rows.iter().map(|row| Cells::new(row, CHANGING).text(0));
    let events = events.collect::<Result<Vec<String>, StoreError>>()?;
    finish(connection, &events, now).await?;
    Ok(u64::try_from(events.len()).unwrap_or(u64::MAX))
}
