//! Payouts, added up from the lines of the files that tell of them.

use sqlx::sqlite::{SqliteConnection, SqliteRow};

use crate::store::error::StoreError;
use crate::store::payouts::{NamedPayout, Payout, PayoutKey, Sums, TABLE, sums_sql};
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::sql::{fetch, json_set, rendered};

pub(super) const READING: &str = "reading payouts";

pub(super) async fn named(
    connection: &mut SqliteConnection,
    texts: &[String],
) -> Result<Vec<NamedPayout>, StoreError> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    let query = sqlx::query(
        "select distinct h.t, l.account, l.batch, l.currency, l.file_id from (\
         select j.value as t, l.file_id, l.position from json_each(?1) j \
         cross join (select distinct account from tieout_files) a \
         cross join tieout_lines l on l.account = a.account and l.tag = j.value \
         and l.tag is not null \
         union select j.value, x.file_id, x.position from json_each(?1) j \
         cross join (select distinct account from tieout_files) a \
         cross join tieout_line_tags x on x.account = a.account and x.text = j.value) h \
         cross join tieout_lines l on l.file_id = h.file_id and l.position = h.position \
         where l.kind = 'payout' and l.batch is not null and l.status = 'booked' \
         and l.state <> 'superseded' \
         and coalesce(l.reason, '') not in ('statement_corrected', 'told_before')",
    );
    let rows = fetch(connection, READING, query.bind(json_set(texts))).await?;
    rows.iter()
        .map(|row| {
            let cells = Cells::new(row, READING);
            let key = PayoutKey {
                account: cells.text(1)?,
                payout: cells.text(2)?,
                currency: cells.text(3)?,
                file: cells.int(4)?,
            };
            Ok(NamedPayout { text: cells.text(0)?, key })
        })
        .collect()
}

pub(super) async fn one(
    connection: &mut SqliteConnection,
    key: &PayoutKey,
) -> Result<Option<Payout>, StoreError> {
    let sql = summed("l.file_id = ?1 and l.batch = ?2 and l.currency = ?3");
    let query = rendered(&sql).bind(key.file).bind(key.payout.clone()).bind(key.currency.clone());
    let rows = fetch(connection, READING, query).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let mut found = payout_of(row)?;
    let query = sqlx::query("select count(*) from tieout_lines where table_name = ?1 and key = ?2");
    let rows = fetch(connection, READING, query.bind(TABLE).bind(key.text())).await?;
    if let Some(row) = rows.first() {
        found.booked = Cells::new(row, READING).int(0)?;
    }
    Ok(Some(found))
}

pub(super) async fn of_file(
    connection: &mut SqliteConnection,
    file: i64,
) -> Result<Vec<Payout>, StoreError> {
    let sql = summed(
        "l.file_id = ?1 and l.batch is not null and (l.batch, l.currency) not in \
         (select e.batch, e.currency from tieout_lines e where e.file_id = ?1 \
         and e.kind = 'payout' and e.batch is not null and e.reason = 'told_before')",
    );
    let rows = fetch(connection, READING, rendered(&sql).bind(file)).await?;
    rows.iter().map(payout_of).collect()
}

fn summed(condition: &str) -> String {
    let sums = sums_sql(|what| format!("coalesce(sum({what}), 0)"));
    format!(
        "select l.account, l.batch, l.currency, l.file_id, {sums} from tieout_lines l \
         where {condition} and l.status = 'booked' \
         group by l.account, l.batch, l.currency, l.file_id order by l.batch, l.currency"
    )
}

fn payout_of(row: &SqliteRow) -> Result<Payout, StoreError> {
    let cells = Cells::new(row, READING);
    let key = PayoutKey {
        account: cells.text(0)?,
        payout: cells.text(1)?,
        currency: cells.text(2)?,
        file: cells.int(3)?,
    };
    let sum = |at: usize| cells.int(at).map(i128::from);
    let sums = Sums {
        lines: cells.int(4)?,
        gross: sum(5)?,
        fees: sum(6)?,
        refunds: sum(7)?,
        chargebacks: sum(8)?,
        adjustments: sum(9)?,
        payouts: cells.int(10)?,
        paid: sum(11)?,
        booked: 0,
    };
    Ok(sums.payout(key))
}
