//! Reading all rows of a window, and keeping what was found of each.

use std::sync::Arc;

use chrono::NaiveDate;
use futures_util::TryStreamExt;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use tokio::sync::mpsc::Sender;

use crate::decide::compare::Bucket;
use crate::model::money::Money;
use crate::model::time::to_text;
use crate::model::transaction::Transaction;
use crate::store::compare::{COUNTED, Compared, ROWS_AT_ONCE};
use crate::store::decode::decode;
use crate::store::error::StoreError;
use crate::store::files::{LinePlace, currency_of, date_text};
use crate::store::records::ClaimFilter;
use crate::store::source_table::SourceTable;
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::sql::{Value, execute_rows, failed, fetch, rendered};
use crate::store::sqlite::statements::{Statement, belongs, cell_texts, image, in_scope, named};

const READING: &str = "reading the rows of a window";
const KEEPING: &str = "keeping what was compared";

pub(super) async fn stream(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    filter: &ClaimFilter,
    rows: Sender<Vec<Transaction>>,
) -> Result<(), StoreError> {
    let mut statement = Statement::default();
    let scope = in_scope(&mut statement, table, "t", filter);
    statement.push(&format!(
        "select {}, {} from {} as t where {} and {scope}",
        image(table, |column| named("t", column)),
        cell_texts(table, "t"),
        table.read,
        belongs(table, "t"),
    ));
    let mut found = statement.query().fetch(connection);
    let mut some = Vec::with_capacity(ROWS_AT_ONCE);
    while let Some(row) = found.try_next().await.map_err(failed(READING))? {
        some.push(row_of(table, &row)?);
        if some.len() >= ROWS_AT_ONCE && rows.send(std::mem::take(&mut some)).await.is_err() {
            return Ok(());
        }
    }
    if !some.is_empty() {
        // Nobody takes them any more: whoever stopped says why.
        let _ = rows.send(some).await;
    }
    Ok(())
}

fn row_of(table: &SourceTable, row: &SqliteRow) -> Result<Transaction, StoreError> {
    let cells = Cells::new(row, READING);
    let texts = (0..table.cells.len())
        .map(|index| cells.opt_text(index.saturating_add(1)))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(decode(table, &texts, cells.text(0)?))
}

pub(super) async fn files(
    connection: &mut SqliteConnection,
    account: &str,
    (from, to): (NaiveDate, NaiveDate),
    after: i64,
    limit: i64,
) -> Result<Vec<i64>, StoreError> {
    let text = format!(
        "select distinct file_id from tieout_statements where account = ?1 and {COUNTED} \
         and (to_on is null or to_on >= ?2) and (from_on is null or from_on <= ?3) \
         and file_id > ?4 order by file_id limit ?5"
    );
    let query = rendered(&text)
        .bind(account.to_owned())
        .bind(date_text(from))
        .bind(date_text(to))
        .bind(after)
        .bind(limit);
    let rows = fetch(connection, READING, query).await?;
    rows.iter().map(|row| Cells::new(row, READING).int(0)).collect()
}

pub(super) async fn put(
    connection: &mut SqliteConnection,
    run_id: &str,
    found: &[Compared],
) -> Result<(), StoreError> {
    let run_id: Arc<str> = Arc::from(run_id);
    let code = |money: &Option<Money>| money.map(|money| money.currency.code().to_owned());
    let minor = |money: &Option<Money>| money.map(|money| money.minor);
    let rows = found.iter().map(|one| {
        vec![
            Value::from(&run_id),
            Value::from(one.number),
            Value::from(one.bucket.as_str()),
            Value::from(&one.account),
            Value::from(one.row.as_ref().map(|row| row.0.as_str())),
            Value::from(one.row.as_ref().map(|row| row.1.as_str())),
            Value::from(&one.tag),
            Value::from(&one.local_status),
            Value::from(code(&one.local).unwrap_or_default()),
            Value::from(minor(&one.local)),
            Value::from(&one.psp_reference),
            Value::from(&one.psp_status),
            Value::from(code(&one.psp)),
            Value::from(minor(&one.psp)),
            Value::from(one.line.map(|line| line.file)),
            Value::from(one.line.map(|line| line.position)),
            Value::from(code(&one.file)),
            Value::from(minor(&one.file)),
            Value::from(one.at.map(to_text)),
            Value::from(&one.note),
        ]
    });
    let sql = |rows: &str| format!("insert into tieout_compared values {rows}");
    execute_rows(connection, KEEPING, rows, sql).await
}

pub(super) async fn of_run(
    connection: &mut SqliteConnection,
    run_id: &str,
    after: i64,
    limit: i64,
) -> Result<Vec<Compared>, StoreError> {
    let query = sqlx::query(
        "select number, bucket, account, table_name, key, tag, local_status, currency, \
         local_minor, psp_reference, psp_status, psp_currency, psp_minor, file_id, position, \
         file_currency, file_minor, at, note from tieout_compared \
         where run_id = ?1 and number > ?2 order by number limit ?3",
    );
    let query = query.bind(run_id.to_owned()).bind(after).bind(limit);
    let rows = fetch(connection, READING, query).await?;
    rows.iter().map(compared).collect()
}

fn compared(row: &SqliteRow) -> Result<Compared, StoreError> {
    let cells = Cells::new(row, READING);
    let place = cells.opt_int(13)?.zip(cells.opt_int(14)?);
    Ok(Compared {
        number: cells.int(0)?,
        bucket: cells.word(1, Bucket::parse)?,
        account: cells.text(2)?,
        row: cells.opt_text(3)?.zip(cells.opt_text(4)?),
        tag: cells.text(5)?,
        local_status: cells.opt_text(6)?,
        local: money(&cells, 7)?,
        psp_reference: cells.opt_text(9)?,
        psp_status: cells.opt_text(10)?,
        psp: money(&cells, 11)?,
        line: place.map(|(file, position)| LinePlace { file, position }),
        file: money(&cells, 15)?,
        at: cells.opt_at(17)?,
        note: cells.text(18)?,
    })
}

/// Two columns: currency, which may be empty, and minor units.
fn money(cells: &Cells<'_>, at: usize) -> Result<Option<Money>, StoreError> {
    let code = cells.opt_text(at)?.filter(|code| !code.is_empty());
    let Some(code) = code else { return Ok(None) };
    let currency = currency_of(&code)
        .ok_or_else(|| cells.wrong(at, format!("`{code}` is not a currency it knows")))?;
    let minor = cells.opt_int(at.saturating_add(1))?;
    Ok(minor.map(|minor| Money::new(minor, currency)))
}
