//! What enrolling and claiming would take, read and never written.

use std::collections::HashSet;

use sqlx::postgres::{PgConnection, PgPool};

use crate::decide::decision::{Asked, History};
use crate::model::time::Instant;
use crate::model::transaction::Transaction;
use crate::store::error::StoreError;
use crate::store::postgres::checks::{self, Remembered};
use crate::store::postgres::claim::{
    MAY_WATCH, add_handbacks, cell_names, due_sql, given_up_rows, read_due, read_row, stuck_rows,
    turn_of,
};
use crate::store::postgres::errors::failed;
use crate::store::postgres::sql::{Cells, Sql};
use crate::store::postgres::transactions::begin_with;
use crate::store::records::{ClaimFilter, Claimed, LAST_LOOK};
use crate::store::source_table::SourceTable;

const READING: &str = "reading due rows";

pub(super) async fn preview_due(
    pool: &PgPool,
    table: &SourceTable,
    filter: &ClaimFilter,
    limit: i64,
    now: Instant,
) -> Result<Vec<Claimed>, StoreError> {
    let mut tx = begin_with(pool, "begin isolation level repeatable read, read only")
        .await
        .map_err(failed(READING))?;
    let sql = would_enrol(table, filter, limit, now);
    let mut fresh = taken_in(&mut tx, table, sql, now, as_enrolled).await?;
    if filter.given_up {
        let sql = would_watch(table, filter, limit, now);
        fresh.extend(taken_in(&mut tx, table, sql, now, as_watched).await?);
        fresh.sort_by_key(|(due_at, _)| *due_at);
    }
    let enrolled: Vec<Claimed> = fresh.into_iter().map(|(_, claimed)| claimed).collect();
    let reopened: HashSet<String> =
        enrolled.iter().map(|claimed| claimed.row.key.id.clone()).collect();
    let due = due_sql(table, filter, limit, now, None);
    let rows = due.fetch(&mut tx).await.map_err(failed(READING))?;
    let due = read_due(table, &rows)?;
    let mut claimed: Vec<Claimed> = due
        .into_iter()
        .filter(|due| !reopened.contains(&due.remembered.key))
        .filter_map(|due| due.claimed(now, 0, filter.kicked))
        .collect();
    claimed.extend(enrolled);
    if filter.kicked {
        claimed.retain(|row| row.open_case.is_some());
        let taken_in = claimed.iter_mut().filter(|row| row.asked == Asked::Run);
        taken_in.for_each(|row| row.asked = Asked::Kick);
    }
    claimed.truncate(usize::try_from(limit).unwrap_or_default());
    add_handbacks(&mut tx, table, &mut claimed, None).await?;
    tx.rollback().await.map_err(failed(READING))?;
    Ok(claimed)
}

/// Rows that would be taken in, each with when it would be due.
async fn taken_in(
    tx: &mut PgConnection,
    table: &SourceTable,
    sql: Sql,
    now: Instant,
    remember: fn(Transaction, Option<Remembered>, Instant) -> Claimed,
) -> Result<Vec<(Option<Instant>, Claimed)>, StoreError> {
    let rows = sql.fetch(tx).await.map_err(failed(READING))?;
    let mut fresh = Vec::with_capacity(rows.len());
    for row in &rows {
        let cells = Cells::new(row, READING);
        let remembered = match cells.maybe_text(0)? {
            Some(_) => Some(Remembered::read(&cells, READING)?),
            None => None,
        };
        let row = read_row(table, &cells, checks::COUNT)?;
        // Behind the image, the cells, their time and the key.
        let due_at = checks::COUNT.saturating_add(table.cells.len()).saturating_add(3);
        fresh.push((cells.maybe_at(due_at)?, remember(row, remembered, now)));
    }
    Ok(fresh)
}

fn would_enrol(table: &SourceTable, filter: &ClaimFilter, limit: i64, now: Instant) -> Sql {
    let mut sql = Sql::default();
    let stuck = stuck_rows(table, filter, &mut sql);
    let is_new = "c.key is null \
                  or (c.state <> 'open' and c.image <> s.image and c.lease_run is null)";
    would_take_in(table, sql, &stuck, is_new, limit, now)
}

fn would_watch(table: &SourceTable, filter: &ClaimFilter, limit: i64, now: Instant) -> Sql {
    let mut sql = Sql::default();
    let rows = given_up_rows(table, filter, &mut sql);
    would_take_in(table, sql, &rows, &format!("c.key is null or ({MAY_WATCH})"), limit, now)
}

/// Of these rows those whose check allows it, in their order: what is remembered of each, the
/// row, and when it would be due.
fn would_take_in(
    table: &SourceTable,
    mut sql: Sql,
    rows: &str,
    is_wanted: &str,
    limit: i64,
    now: Instant,
) -> Sql {
    let name = sql.bind(table.settings.name.clone());
    let now = sql.bind(now);
    let limit = sql.bind(limit);
    sql.push(&format!(
        "select p.*, {} as due from (\
         select distinct on (s.key) {}, s.image, {}, s.made, s.key as taken_in from ({rows}) s \
         left join tieout_checks c on c.table_name = {name} and c.key = s.key \
         where {is_wanted} order by s.key) p order by due limit {limit}",
        turn_of("p.made", "p.taken_in", &now),
        checks::COLUMNS,
        cell_names(table, "s"),
    ));
    sql
}

/// The memory that a look at a row given up would begin with.
fn as_watched(row: Transaction, remembered: Option<Remembered>, now: Instant) -> Claimed {
    let (open_case, events) =
        remembered.as_ref().map_or((None, 0), |known| (known.open_case, known.events));
    let is_watched = remembered.as_ref().is_some_and(|known| known.state == "watch");
    let is_another = remembered.as_ref().is_some_and(|known| known.image != row.image);
    let mut history = remembered.map_or_else(|| History::first_look(now), |known| known.history);
    if is_another {
        history.fingerprint_seen_at = now;
    }
    history.watch_from = history.watch_from.or(Some(now));
    history.watch_step = if is_watched { history.watch_step } else { LAST_LOOK };
    Claimed { row, history, asked: Asked::Watch, token: 0, open_case, events }
}

/// The memory that enrolling would leave.
fn as_enrolled(row: Transaction, remembered: Option<Remembered>, now: Instant) -> Claimed {
    let (open_case, events) =
        remembered.as_ref().map_or((None, 0), |known| (known.open_case, known.events));
    let history = match remembered {
        None => History::first_look(now),
        Some(known) => History {
            first_seen_at: known.history.first_seen_at,
            first_account: known.history.first_account,
            handbacks: known.history.handbacks,
            ..History::first_look(now)
        },
    };
    Claimed { row, history, asked: Asked::Run, token: 0, open_case, events }
}
