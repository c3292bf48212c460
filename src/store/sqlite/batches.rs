//! Batch bookings, and the lines of notices that they are made of.

use sqlx::sqlite::SqliteConnection;

use crate::model::time::{Instant, to_text};
use crate::store::batches::{
    BatchBy, BatchParts, ExplainedBatch, Says, TABLE, count_sql, fellows_sql, parts_sql,
};
use crate::store::error::StoreError;
use crate::store::files::{LinePlace, StoredLine};
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::lines::page;
use crate::store::sqlite::sql::{execute, fetch, rendered};

pub(super) const READING: &str = "reading batch bookings";
pub(super) const EXPLAINING: &str = "noting what a batch booking is made of";

pub(super) async fn open(
    connection: &mut SqliteConnection,
    account: &str,
    says: Says,
    after: Option<LinePlace>,
    limit: i64,
) -> Result<Vec<StoredLine>, StoreError> {
    let which = says.bookings("?1", "l.decides = 1");
    page(connection, READING, account, &which, after, limit).await
}

pub(super) async fn parts(
    connection: &mut SqliteConnection,
    booking: LinePlace,
    by: BatchBy,
) -> Result<BatchParts, StoreError> {
    let sql = parts_sql(by, |what| format!("coalesce(sum({what}), 0)"), days);
    let query = rendered(&sql).bind(booking.file).bind(booking.position);
    let rows = fetch(connection, READING, query).await?;
    let Some(row) = rows.first() else { return Ok(BatchParts::default()) };
    let cells = Cells::new(row, READING);
    Ok(BatchParts {
        lines: cells.int(0)?,
        usable: cells.int(1)?,
        minor: cells.int(2).map(i128::from)?,
        rivals: cells.int(3)?,
        fellows: cells.int(4)?,
        fellow_minor: cells.int(5).map(i128::from)?,
        charged: cells.int(6).map(i128::from)?,
    })
}

/// How many days lie between two.
fn days(one: &str, other: &str) -> String {
    format!("abs(julianday({one}) - julianday({other}))")
}

/// Within the caller's transaction, which is to be rolled back where this says false.
pub(super) async fn explain(
    connection: &mut SqliteConnection,
    run_id: &str,
    batch: &ExplainedBatch,
    now: Instant,
) -> Result<bool, StoreError> {
    let booked = sqlx::query(
        "update tieout_lines set state = 'matched', table_name = ?3, key = ?4, reason = null, \
         run_id = ?5, matched_at = ?6, row_currency = currency, row_minor = ?7 \
         where file_id = ?1 and position = ?2 and state = 'open' and decides = 1 \
         and (itemised = 0 or tag is null)",
    )
    .bind(batch.booking.file)
    .bind(batch.booking.position)
    .bind(TABLE)
    .bind(batch.key.clone())
    .bind(run_id.to_owned())
    .bind(to_text(now))
    .bind(batch.minor);
    if execute(connection, EXPLAINING, booked).await? != 1 {
        return Ok(false);
    }
    if batch.fellows > 0 {
        let sql = fellows_sql(batch.by);
        let fellows = rendered(&sql)
            .bind(batch.booking.file)
            .bind(batch.booking.position)
            .bind(TABLE)
            .bind(batch.key.clone())
            .bind(run_id.to_owned())
            .bind(to_text(now))
            .bind(batch.minor);
        let taken = execute(connection, EXPLAINING, fellows).await?;
        if i64::try_from(taken).ok() != Some(batch.fellows) {
            return Ok(false);
        }
    }
    let sql = count_sql(batch.by, days);
    let parts = rendered(&sql).bind(batch.booking.file).bind(batch.booking.position);
    let counted = execute(connection, EXPLAINING, parts).await?;
    Ok(counted > 0 && i64::try_from(counted).ok() == Some(batch.lines))
}
