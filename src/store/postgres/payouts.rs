//! Payouts, added up from the lines of the files that tell of them.

use sqlx::postgres::{PgPool, PgRow};

use crate::store::error::StoreError;
use crate::store::payouts::{NamedPayout, Payout, PayoutKey, Sums, TABLE, sums_sql};
use crate::store::postgres::errors::failed;
use crate::store::postgres::sql::{Cells, Sql};

const READING: &str = "reading payouts";

pub(super) async fn named(pool: &PgPool, texts: &[String]) -> Result<Vec<NamedPayout>, StoreError> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::default();
    let texts = sql.bind(texts.to_vec());
    // Each look-up is one by the index, whose first column is the account.
    sql.push(&format!(
        "with asked as (select distinct t from unnest({texts}::text[]) as u(t)), \
         accounts as (select distinct account from tieout_files), \
         hit as (select asked.t, h.file_id, h.position from asked cross join accounts a \
         cross join lateral (select l.file_id, l.position from tieout_lines l \
         where l.account = a.account and l.tag = asked.t offset 0) h \
         union select asked.t, h.file_id, h.position from asked cross join accounts a \
         cross join lateral (select x.file_id, x.position from tieout_line_tags x \
         where x.account = a.account and x.text = asked.t offset 0) h) \
         select distinct hit.t, l.account, l.batch, l.currency, l.file_id from hit \
         join tieout_lines l on l.file_id = hit.file_id and l.position = hit.position \
         where l.kind = 'payout' and l.batch is not null and l.status = 'booked' \
         and l.state <> 'superseded' \
         and coalesce(l.reason, '') not in ('statement_corrected', 'told_before')"
    ));
    let rows = sql.fetch(&mut connection).await.map_err(failed(READING))?;
    rows.iter()
        .map(|row| {
            let cells = Cells::new(row, READING);
            let key = PayoutKey {
                account: cells.text(1)?,
                payout: cells.text(2)?,
                currency: cells.text(3)?,
                file: cells.big(4)?,
            };
            Ok(NamedPayout { text: cells.text(0)?, key })
        })
        .collect()
}

pub(super) async fn one(pool: &PgPool, key: &PayoutKey) -> Result<Option<Payout>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::default();
    let file = sql.bind(key.file);
    let (payout, currency) = (sql.bind(key.payout.clone()), sql.bind(key.currency.clone()));
    sql.push(&summed(&format!(
        "l.file_id = {file} and l.batch = {payout} and l.currency = {currency}"
    )));
    let rows = sql.fetch(&mut connection).await.map_err(failed(READING))?;
    let Some(row) = rows.first() else { return Ok(None) };
    let mut found = payout_of(row, 0)?;
    let mut sql = Sql::default();
    let (table, own) = (sql.bind(TABLE.to_owned()), sql.bind(key.text()));
    sql.push(&format!(
        "select count(*) from tieout_lines where table_name = {table} and key = {own}"
    ));
    let rows = sql.fetch(&mut connection).await.map_err(failed(READING))?;
    if let Some(row) = rows.first() {
        found.booked = Cells::new(row, READING).big(0)?;
    }
    Ok(Some(found))
}

pub(super) async fn of_file(pool: &PgPool, file: i64) -> Result<Vec<Payout>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::default();
    let file = sql.bind(file);
    sql.push(&summed(&format!(
        "l.file_id = {file} and l.batch is not null and (l.batch, l.currency) not in \
         (select e.batch, e.currency from tieout_lines e where e.file_id = {file} \
         and e.kind = 'payout' and e.batch is not null and e.reason = 'told_before')"
    )));
    let rows = sql.fetch(&mut connection).await.map_err(failed(READING))?;
    rows.iter().map(|row| payout_of(row, 0)).collect()
}

fn summed(condition: &str) -> String {
    let sums = sums_sql(|what| format!("coalesce(sum({what}), 0)::text"));
    format!(
        "select l.account, l.batch, l.currency, l.file_id, {sums} from tieout_lines l \
         where {condition} and l.status = 'booked' \
         group by l.account, l.batch, l.currency, l.file_id \
         order by l.batch collate \"C\", l.currency collate \"C\""
    )
}

fn payout_of(row: &PgRow, booked: i64) -> Result<Payout, StoreError> {
    let cells = Cells::new(row, READING);
    let key = PayoutKey {
        account: cells.text(0)?,
        payout: cells.text(1)?,
        currency: cells.text(2)?,
        file: cells.big(3)?,
    };
    let sums = Sums {
        lines: cells.big(4)?,
        gross: cells.sum(5)?,
        fees: cells.sum(6)?,
        refunds: cells.sum(7)?,
        chargebacks: cells.sum(8)?,
        adjustments: cells.sum(9)?,
        payouts: cells.big(10)?,
        paid: cells.sum(11)?,
        booked,
    };
    Ok(sums.payout(key))
}
