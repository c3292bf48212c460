//! Payouts, added up from the lines of the files that tell of them.

use std::collections::BTreeSet;

use sqlx::sqlite::{SqliteConnection, SqliteRow};

use crate::model::time::{Instant, to_text};
use crate::store::error::StoreError;
use crate::store::files::{LINE, LinePlace};
use crate::store::payouts::{
    BANKS, BY_NAME, Booking, NamedPayout, Payout, PayoutKey, Sought, Sums, TABLE, Told, WHOSE,
    key_of, names_of, of_payout, one_each, says_which, stood_sql, sums_sql,
};
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::lines::line_of;
use crate::store::sqlite::sql::{fetch, fetch_each, json_set, rendered};

pub(super) const READING: &str = "reading payouts";

/// How many columns [`LINE`] has: what follows them is read by place.
const AFTER_LINE: usize = 39;

/// The lines that carry one of the texts ?1, with the text.
const HIT: &str = "(select j.value as t, l.file_id, l.position from json_each(?1) j \
     cross join (select distinct account from tieout_files) a \
     cross join tieout_lines l on l.account = a.account and l.tag = j.value \
     and l.tag is not null \
     union select j.value, x.file_id, x.position from json_each(?1) j \
     cross join (select distinct account from tieout_files) a \
     cross join tieout_line_tags x on x.account = a.account and x.text = j.value)";

pub(super) async fn named(
    connection: &mut SqliteConnection,
    texts: &[String],
    until: Option<Instant>,
) -> Result<Vec<NamedPayout>, StoreError> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    let named = says_which();
    let sql = format!(
        "select distinct h.t, l.account, l.batch, l.currency, l.file_id, s.bank_account, {WHOSE} \
         from {HIT} h \
         cross join tieout_lines l on l.file_id = h.file_id and l.position = h.position \
         cross join tieout_files f on f.id = l.file_id \
         cross join tieout_statements s on s.file_id = l.file_id and s.number = l.statement \
         where {named} and {} and coalesce(l.reason, '') <> 'told_before' \
         union select l.batch, l.account, l.batch, l.currency, l.file_id, s.bank_account, {WHOSE} \
         from tieout_files f cross join tieout_statements s on s.file_id = f.id \
         cross join tieout_lines l on l.file_id = s.file_id and l.statement = s.number \
         where {BY_NAME} and f.id in (select n.file_id from tieout_statements n \
         where n.statement_id in (select j.value from json_each(?1) j) \
         union select h.file_id from {HIT} h) \
         and l.batch in (select j.value from json_each(?1) j) \
         and {} and coalesce(l.reason, '') <> 'told_before'",
        stood_sql("?2"),
        stood_sql("?2")
    );
    let query = rendered(&sql).bind(json_set(texts)).bind(until.map(to_text));
    let rows = fetch(connection, READING, query).await?;
    let found = rows.iter().map(|row| {
        let cells = Cells::new(row, READING);
        let key = PayoutKey {
            account: cells.text(1)?,
            payout: cells.text(2)?,
            currency: cells.text(3)?,
            file: cells.int(4)?,
            merchant: cells.text(6)?,
        };
        Ok((NamedPayout { text: cells.text(0)?, key }, cells.text(5)?))
    });
    Ok(one_each(found.collect::<Result<_, StoreError>>()?))
}

pub(super) async fn one(
    connection: &mut SqliteConnection,
    key: &PayoutKey,
    until: Option<Instant>,
) -> Result<Option<Payout>, StoreError> {
    let sql = format!(
        "select distinct l.batch, l.currency, s.bank_account from tieout_lines l \
         cross join tieout_files f on f.id = l.file_id \
         cross join tieout_statements s on s.file_id = l.file_id and s.number = l.statement \
         where l.file_id = ?1 and l.batch = ?2 and l.currency = ?3 \
         and (?5 = '' or s.bank_account in ('', ?5)) and {}",
        stood_sql("?4")
    );
    let query = rendered(&sql).bind(key.file).bind(key.payout.clone());
    let query = query.bind(key.currency.clone()).bind(until.map(to_text));
    let query = query.bind(key.merchant.clone());
    let asked = fetch_each(connection, READING, query, asked_of).await?;
    Ok(told(connection, key.file, asked, until).await?.into_iter().next())
}

pub(super) async fn of_file(
    connection: &mut SqliteConnection,
    file: i64,
    until: Option<Instant>,
) -> Result<Vec<Payout>, StoreError> {
    let sql = format!(
        "select distinct l.batch, l.currency, s.bank_account from tieout_lines l \
         cross join tieout_files f on f.id = l.file_id \
         cross join tieout_statements s on s.file_id = l.file_id and s.number = l.statement \
         where l.file_id = ?1 and l.batch is not null and {} \
         and coalesce(l.reason, '') <> 'told_before' and (l.batch, l.currency, {WHOSE}) not in \
         (select l.batch, l.currency, {WHOSE} from tieout_lines l \
         cross join tieout_files f on f.id = l.file_id \
         cross join tieout_statements s on s.file_id = l.file_id and s.number = l.statement \
         where l.file_id = ?1 and l.kind = 'payout' and l.batch is not null \
         and l.reason = 'told_before')",
        stood_sql("?2")
    );
    let query = rendered(&sql).bind(file).bind(until.map(to_text));
    let asked = fetch_each(connection, READING, query, asked_of).await?;
    told(connection, file, asked, until).await
}

/// The payouts that lines at these places, file by position as a JSON array, are parts or bookings
/// of.
pub(super) async fn at(
    connection: &mut SqliteConnection,
    places: &[LinePlace],
    until: Instant,
) -> Result<BTreeSet<PayoutKey>, StoreError> {
    let places: Vec<[i64; 2]> = places.iter().map(|place| [place.file, place.position]).collect();
    let sql = format!(
        "select distinct {} from json_each(?1) k \
         cross join tieout_lines l on l.file_id = k.value ->> 0 and l.position = k.value ->> 1 \
         cross join tieout_files f on f.id = l.file_id \
         cross join tieout_statements s on s.file_id = l.file_id and s.number = l.statement \
         where l.status = 'booked' and (l.batch is not null or l.table_name = '{TABLE}')",
        of_payout("?2")
    );
    let query = rendered(&sql).bind(serde_json::json!(places).to_string()).bind(to_text(until));
    let found = fetch_each(connection, READING, query, |row| {
        let cells = Cells::new(row, READING);
        let own = (cells.text(2)?, cells.int(3)?, cells.text(4)?);
        Ok(key_of(cells.text(0)?, cells.opt_text(1)?, own, cells.opt_text(5)?))
    });
    Ok(found.await?.into_iter().flatten().collect())
}

/// A payout's id, its currency and its account at the PSP.
fn asked_of(row: &SqliteRow) -> Result<(String, String, String), StoreError> {
    let cells = Cells::new(row, READING);
    Ok((cells.text(0)?, cells.text(1)?, cells.text(2)?))
}

/// Payouts of a file, as all files of its account tell of them.
async fn told(
    connection: &mut SqliteConnection,
    file: i64,
    asked: Vec<(String, String, String)>,
    until: Option<Instant>,
) -> Result<Vec<Payout>, StoreError> {
    let mut sought = Sought::of(asked);
    if sought.is_empty() {
        return Ok(Vec::new());
    }
    let found = telling(connection, file, &sought, until).await?;
    sought.add(found);
    sought.begin_at(file);
    // What was told before counts in the file that told it.
    loop {
        let found = before(connection, &sought).await?;
        if !sought.add(found) {
            break;
        }
    }
    let found = parts(connection, &sought, until).await?;
    let mut payouts = Vec::new();
    for (mut payout, keys) in sought.payouts(found) {
        let query = sqlx::query(
            "select count(*) from json_each(?2) j cross join tieout_lines l \
             on l.table_name = ?1 and l.key = j.value where l.state <> 'superseded'",
        );
        let query = query.bind(TABLE).bind(json_set(&keys));
        let rows = fetch(connection, READING, query).await?;
        if let Some(row) = rows.first() {
            payout.booked = Cells::new(row, READING).int(0)?;
        }
        payouts.push(payout);
    }
    Ok(payouts)
}

/// The files of the account that have a line of one of these payouts, which counts there.
async fn telling(
    connection: &mut SqliteConnection,
    file: i64,
    sought: &Sought,
    until: Option<Instant>,
) -> Result<Vec<(String, String, i64)>, StoreError> {
    let sql = format!(
        "select distinct l.batch, l.currency, l.file_id \
         from (select account from tieout_files where id = ?2) a cross join json_each(?1) k \
         cross join tieout_lines l on l.account = a.account and l.batch = k.value ->> 0 \
         and l.batch is not null cross join tieout_files f on f.id = l.file_id \
         where l.currency = k.value ->> 1 and {} and coalesce(l.reason, '') <> 'told_before'",
        stood_sql("?3")
    );
    let query = rendered(&sql).bind(json_set(&sought.names())).bind(file);
    fetch_each(connection, READING, query.bind(until.map(to_text)), place_of).await
}

/// The files whose lines these tell again.
async fn before(
    connection: &mut SqliteConnection,
    sought: &Sought,
) -> Result<Vec<(String, String, i64)>, StoreError> {
    let query = sqlx::query(
        "select distinct l.batch, l.currency, l.of_file from \
         (select distinct k.value ->> 2 as id from json_each(?1) k) n \
         cross join tieout_lines l on l.file_id = n.id where l.of_file is not null \
         and l.reason = 'told_before' and (l.batch, l.currency, l.file_id) in \
         (select k.value ->> 0, k.value ->> 1, k.value ->> 2 from json_each(?1) k)",
    );
    let query = query.bind(json_set(&sought.places()));
    fetch_each(connection, READING, query, place_of).await
}

fn place_of(row: &SqliteRow) -> Result<(String, String, i64), StoreError> {
    let cells = Cells::new(row, READING);
    Ok((cells.text(0)?, cells.text(1)?, cells.int(2)?))
}

/// What each file says of each payout.
async fn parts(
    connection: &mut SqliteConnection,
    sought: &Sought,
    until: Option<Instant>,
) -> Result<Vec<Told>, StoreError> {
    let sums = sums_sql(|what| format!("coalesce(sum({what}), 0)"));
    let sql = format!(
        "select l.account, l.batch, l.currency, l.file_id, f.format, f.version, s.bank_account, \
         coalesce(l.reason, '') = 'told_before', {WHOSE}, {sums} from \
         (select distinct k.value ->> 2 as id from json_each(?1) k) n \
         cross join tieout_files f on f.id = n.id \
         cross join tieout_lines l on l.file_id = f.id \
         cross join tieout_statements s on s.file_id = l.file_id and s.number = l.statement \
         where {} and (l.batch, l.currency, l.file_id) in \
         (select k.value ->> 0, k.value ->> 1, k.value ->> 2 from json_each(?1) k) \
         group by 1, 2, 3, 4, 5, 6, 7, 8, 9 order by 1, 2, 3, 4, 5, 6, 7, 8",
        stood_sql("?2")
    );
    let query = rendered(&sql).bind(json_set(&sought.places())).bind(until.map(to_text));
    fetch_each(connection, READING, query, told_of).await
}

fn told_of(row: &SqliteRow) -> Result<Told, StoreError> {
    let cells = Cells::new(row, READING);
    let key = PayoutKey {
        account: cells.text(0)?,
        payout: cells.text(1)?,
        currency: cells.text(2)?,
        file: cells.int(3)?,
        merchant: cells.text(8)?,
    };
    let sum = |at: usize| cells.int(at).map(i128::from);
    let sums = Sums {
        lines: cells.int(9)?,
        gross: sum(10)?,
        fees: sum(11)?,
        refunds: sum(12)?,
        chargebacks: sum(13)?,
        adjustments: sum(14)?,
        payouts: cells.int(15)?,
        paid: sum(16)?,
    };
    Ok(Told {
        key,
        format: cells.text(4)?,
        version: cells.text(5)?,
        bank_account: cells.text(6)?,
        again: cells.int(7)? != 0,
        sums,
    })
}

/// What the lines carry that say that a payout was paid out.
async fn references(
    connection: &mut SqliteConnection,
    key: &PayoutKey,
) -> Result<Vec<String>, StoreError> {
    let sql = format!(
        "with own as materialized (select l.file_id, l.position, l.tag from tieout_lines l \
         join tieout_files f on f.id = l.file_id join tieout_statements s \
         on s.file_id = l.file_id and s.number = l.statement where l.file_id = ?1 \
         and l.batch = ?2 and l.currency = ?3 and (?4 = '' or s.bank_account in ('', ?4)) \
         and {}) \
         select own.tag from own where own.tag is not null \
         union select x.text from own cross join tieout_line_tags x \
         on x.file_id = own.file_id and x.position = own.position",
        says_which()
    );
    let query = rendered(&sql).bind(key.file).bind(key.payout.clone());
    let query = query.bind(key.currency.clone()).bind(key.merchant.clone());
    fetch_each(connection, READING, query, |row| Cells::new(row, READING).text(0)).await
}

pub(super) async fn bookings(
    connection: &mut SqliteConnection,
    payout: &PayoutKey,
    until: Option<Instant>,
) -> Result<Vec<Booking>, StoreError> {
    let references = references(connection, payout).await?;
    let others = named(connection, &references, until).await?;
    let names = names_of(payout, references, &others);
    let sql = format!(
        "select {LINE}, l.matched_at from (select distinct file_id, position from {HIT}) h \
         cross join tieout_lines l on l.file_id = h.file_id and l.position = h.position \
         cross join tieout_files f on f.id = l.file_id \
         where {BANKS} and {} order by l.file_id, l.position",
        stood_sql("?2")
    );
    let query = rendered(&sql).bind(json_set(&names)).bind(until.map(to_text));
    fetch_each(connection, READING, query, booking_of).await
}

fn booking_of(row: &SqliteRow) -> Result<Booking, StoreError> {
    let matched_at = Cells::new(row, READING).opt_at(AFTER_LINE)?;
    Ok(Booking { line: line_of(row)?, matched_at })
}
