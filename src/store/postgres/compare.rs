//! Reading all rows of a window, and keeping what was found of each.

use chrono::NaiveDate;
use futures_util::TryStreamExt;
use sqlx::postgres::{PgPool, PgRow};
use tokio::sync::mpsc::Sender;

use crate::decide::compare::Bucket;
use crate::model::money::Money;
use crate::model::transaction::Transaction;
use crate::store::compare::{COUNTED, Compared, ROWS_AT_ONCE};
use crate::store::error::StoreError;
use crate::store::files::{LinePlace, currency_of};
use crate::store::postgres::claim::{read_row, window_rows};
use crate::store::postgres::errors::{failed, unexpected};
use crate::store::postgres::sql::{Cells, Sql};
use crate::store::records::ClaimFilter;
use crate::store::source_table::SourceTable;

const READING: &str = "reading the rows of a window";
const KEEPING: &str = "keeping what was compared";

pub(super) async fn stream(
    pool: &PgPool,
    table: &SourceTable,
    filter: &ClaimFilter,
    rows: Sender<Vec<Transaction>>,
) -> Result<(), StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::default();
    let text = window_rows(table, filter, &mut sql);
    sql.push(&text);
    let mut found = sql.stream(&mut connection).map_err(failed(READING))?;
    let mut some = Vec::with_capacity(ROWS_AT_ONCE);
    while let Some(row) = found.try_next().await.map_err(failed(READING))? {
        some.push(read_row(table, &Cells::new(&row, READING), 1)?);
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

pub(super) async fn files(
    pool: &PgPool,
    account: &str,
    (from, to): (NaiveDate, NaiveDate),
    after: i64,
    limit: i64,
) -> Result<Vec<i64>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::default();
    let (account, after, limit) = (sql.bind(account.to_owned()), sql.bind(after), sql.bind(limit));
    let (from, to) = (sql.bind(from), sql.bind(to));
    sql.push(&format!(
        "select distinct file_id from tieout_statements where account = {account} \
         and {COUNTED} and (to_on is null or to_on >= {from}) \
         and (from_on is null or from_on <= {to}) and file_id > {after} \
         order by file_id limit {limit}"
    ));
    let rows = sql.fetch(&mut connection).await.map_err(failed(READING))?;
    rows.iter().map(|row| Cells::new(row, READING).big(0)).collect()
}

pub(super) async fn put(pool: &PgPool, run_id: &str, found: &[Compared]) -> Result<(), StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(KEEPING))?;
    let mut sql = Sql::default();
    let run = sql.bind(run_id.to_owned());
    let texts = |pick: &dyn Fn(&Compared) -> Option<String>| -> Vec<Option<String>> {
        found.iter().map(pick).collect()
    };
    let numbers = |pick: &dyn Fn(&Compared) -> Option<i64>| -> Vec<Option<i64>> {
        found.iter().map(pick).collect()
    };
    let code = |money: &Option<Money>| money.map(|money| money.currency.code().to_owned());
    let minor = |money: &Option<Money>| money.map(|money| money.minor);
    let arrays = [
        sql.bind(numbers(&|one| Some(one.number))),
        sql.bind(texts(&|one| Some(one.bucket.as_str().to_owned()))),
        sql.bind(texts(&|one| Some(one.account.clone()))),
        sql.bind(texts(&|one| one.row.as_ref().map(|row| row.0.clone()))),
        sql.bind(texts(&|one| one.row.as_ref().map(|row| row.1.clone()))),
        sql.bind(texts(&|one| Some(one.tag.clone()))),
        sql.bind(texts(&|one| one.local_status.clone())),
        sql.bind(texts(&|one| Some(code(&one.local).unwrap_or_default()))),
        sql.bind(numbers(&|one| minor(&one.local))),
        sql.bind(texts(&|one| one.psp_reference.clone())),
        sql.bind(texts(&|one| one.psp_status.clone())),
        sql.bind(texts(&|one| code(&one.psp))),
        sql.bind(numbers(&|one| minor(&one.psp))),
        sql.bind(numbers(&|one| one.line.map(|line| line.file))),
        sql.bind(numbers(&|one| one.line.map(|line| line.position))),
        sql.bind(texts(&|one| code(&one.file))),
        sql.bind(numbers(&|one| minor(&one.file))),
        sql.bind(found.iter().map(|one| one.at).collect::<Vec<_>>()),
        sql.bind(texts(&|one| Some(one.note.clone()))),
    ];
    let [
        number,
        bucket,
        account,
        table,
        key,
        tag,
        status,
        currency,
        local,
        reference,
        state,
        of,
        psp,
        file,
        position,
        in_file,
        amount,
        at,
        note,
    ] = arrays;
    sql.push(&format!(
        "insert into tieout_compared select {run}, u.* from unnest({number}::bigint[], \
         {bucket}::text[], {account}::text[], {table}::text[], {key}::text[], {tag}::text[], \
         {status}::text[], {currency}::text[], {local}::bigint[], {reference}::text[], \
         {state}::text[], {of}::text[], {psp}::bigint[], {file}::bigint[], {position}::bigint[], \
         {in_file}::text[], {amount}::bigint[], {at}::timestamptz[], {note}::text[]) as u \
         where exists (select 1 from tieout_runs where id = {run} and state = 'running')"
    ));
    sql.run(&mut connection).await.map_err(failed(KEEPING))?;
    Ok(())
}

pub(super) async fn of_run(
    pool: &PgPool,
    run_id: &str,
    after: i64,
    limit: i64,
) -> Result<Vec<Compared>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::default();
    let (run, after, limit) = (sql.bind(run_id.to_owned()), sql.bind(after), sql.bind(limit));
    sql.push(&format!(
        "select number, bucket, account, table_name, key, tag, local_status, currency, \
         local_minor, psp_reference, psp_status, psp_currency, psp_minor, file_id, position, \
         file_currency, file_minor, at, note from tieout_compared \
         where run_id = {run} and number > {after} order by number limit {limit}"
    ));
    let rows = sql.fetch(&mut connection).await.map_err(failed(READING))?;
    rows.iter().map(compared).collect()
}

fn compared(row: &PgRow) -> Result<Compared, StoreError> {
    let cells = Cells::new(row, READING);
    let place = cells.maybe_big(13)?.zip(cells.maybe_big(14)?);
    Ok(Compared {
        number: cells.big(0)?,
        bucket: cells.word(1, Bucket::parse)?,
        account: cells.text(2)?,
        row: cells.maybe_text(3)?.zip(cells.maybe_text(4)?),
        tag: cells.text(5)?,
        local_status: cells.maybe_text(6)?,
        local: money(&cells, 7)?,
        psp_reference: cells.maybe_text(9)?,
        psp_status: cells.maybe_text(10)?,
        psp: money(&cells, 11)?,
        line: place.map(|(file, position)| LinePlace { file, position }),
        file: money(&cells, 15)?,
        at: cells.maybe_at(17)?,
        note: cells.text(18)?,
    })
}

/// Two columns: currency, which may be empty, and minor units.
fn money(cells: &Cells<'_>, at: usize) -> Result<Option<Money>, StoreError> {
    let Some(code) = cells.maybe_text(at)?.filter(|code| !code.is_empty()) else {
        return Ok(None);
    };
    let currency = currency_of(&code);
    let currency =
        currency.ok_or_else(|| unexpected(READING, format!("unknown currency `{code}`")))?;
    let minor = cells.maybe_big(at.saturating_add(1))?;
    Ok(minor.map(|minor| Money::new(minor, currency)))
}
