//! Batch bookings, and the lines of notices that they are made of.

use sqlx::postgres::{PgConnection, PgPool};

use crate::model::time::Instant;
use crate::store::batches::{
    BatchBy, BatchParts, ExplainedBatch, Says, TABLE, count_sql, fellows_sql, parts_sql,
};
use crate::store::error::StoreError;
use crate::store::files::{LinePlace, StoredLine};
use crate::store::postgres::errors::failed;
use crate::store::postgres::lines::page;
use crate::store::postgres::sql::{Cells, Sql};
use crate::store::postgres::transactions::begin;

const READING: &str = "reading batch bookings";
const EXPLAINING: &str = "noting what a batch booking is made of";

/// How many days lie between two.
fn days(one: &str, other: &str) -> String {
    format!("abs({one} - {other})")
}

pub(super) async fn open(
    pool: &PgPool,
    account: &str,
    says: Says,
    after: Option<LinePlace>,
    limit: i64,
) -> Result<Vec<StoredLine>, StoreError> {
    let which = says.bookings("$1", "l.decides");
    page(pool, READING, account, &which, after, limit).await
}

pub(super) async fn parts(
    pool: &PgPool,
    booking: LinePlace,
    by: BatchBy,
) -> Result<BatchParts, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let sum = |what: &str| format!("coalesce(sum({what}), 0)::text");
    let mut sql = Sql::new(parts_sql(by, sum, days));
    sql.bind(booking.file);
    sql.bind(booking.position);
    let rows = sql.fetch(&mut connection).await.map_err(failed(READING))?;
    let Some(row) = rows.first() else { return Ok(BatchParts::default()) };
    let cells = Cells::new(row, READING);
    Ok(BatchParts {
        lines: cells.big(0)?,
        usable: cells.big(1)?,
        minor: cells.sum(2)?,
        rivals: cells.big(3)?,
        fellows: cells.big(4)?,
        fellow_minor: cells.sum(5)?,
        charged: cells.sum(6)?,
    })
}

pub(super) async fn explain(
    pool: &PgPool,
    run_id: &str,
    batch: &ExplainedBatch,
    now: Instant,
) -> Result<bool, StoreError> {
    let mut tx = begin(pool).await.map_err(failed(EXPLAINING))?;
    let mut running = Sql::default();
    let run = running.bind(run_id.to_owned());
    running.push(&format!(
        "select 1 from tieout_runs where id = {run} and state = 'running' for key share"
    ));
    let is_running = !running.fetch(&mut tx).await.map_err(failed(EXPLAINING))?.is_empty();
    let taken = match is_running {
        true => booked(run_id, batch, now).run(&mut tx).await.map_err(failed(EXPLAINING))?,
        false => 0,
    };
    let mut parts = Sql::new(count_sql(batch.by, days));
    parts.bind(batch.booking.file);
    parts.bind(batch.booking.position);
    let is_taken = taken == 1 && take_fellows(&mut tx, run_id, batch, now).await?;
    let counted = match is_taken {
        true => parts.run(&mut tx).await.map_err(failed(EXPLAINING))?,
        false => 0,
    };
    if counted == 0 || i64::try_from(counted).ok() != Some(batch.lines) {
        // Closed, matched or changed meanwhile: another run finds it out again.
        tx.rollback().await.map_err(failed(EXPLAINING))?;
        return Ok(false);
    }
    tx.commit().await.map_err(failed(EXPLAINING))?;
    Ok(true)
}

/// False: they are not those any more that were counted.
async fn take_fellows(
    connection: &mut PgConnection,
    run_id: &str,
    batch: &ExplainedBatch,
    now: Instant,
) -> Result<bool, StoreError> {
    if batch.fellows == 0 {
        return Ok(true);
    }
    let mut fellows = Sql::new(fellows_sql(batch.by));
    fellows.bind(batch.booking.file);
    fellows.bind(batch.booking.position);
    fellows.bind(TABLE.to_owned());
    fellows.bind(batch.key.clone());
    fellows.bind(run_id.to_owned());
    fellows.bind(now);
    fellows.bind(batch.minor);
    let taken = fellows.run(connection).await.map_err(failed(EXPLAINING))?;
    Ok(i64::try_from(taken).ok() == Some(batch.fellows))
}

fn booked(run_id: &str, batch: &ExplainedBatch, now: Instant) -> Sql {
    let mut sql = Sql::default();
    let (file, position) = (sql.bind(batch.booking.file), sql.bind(batch.booking.position));
    let (table, key) = (sql.bind(TABLE.to_owned()), sql.bind(batch.key.clone()));
    let (run, now) = (sql.bind(run_id.to_owned()), sql.bind(now));
    let minor = sql.bind(batch.minor);
    sql.push(&format!(
        "update tieout_lines set state = 'matched', table_name = {table}, key = {key}, \
         reason = null, run_id = {run}, matched_at = {now}::timestamptz, \
         row_currency = currency, row_minor = {minor} where file_id = {file} \
         and position = {position} and state = 'open' and decides \
         and (not itemised or tag is null)"
    ));
    sql
}
