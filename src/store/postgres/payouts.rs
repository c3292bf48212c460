//! Payouts, added up from the lines of the files that tell of them.

use std::collections::BTreeSet;

use sqlx::postgres::{PgConnection, PgPool, PgRow};

use crate::model::time::Instant;
use crate::store::error::StoreError;
use crate::store::files::{LINE, LinePlace};
use crate::store::payouts::{
    BANKS, BY_NAME, Booking, NamedPayout, Payout, PayoutKey, Sought, Sums, TABLE, Told, WHOSE,
    key_of, names_of, of_payout, one_each, says_which, stood_sql, sums_sql,
};
use crate::store::postgres::errors::failed;
use crate::store::postgres::lines::line_of;
use crate::store::postgres::sql::{Cells, Sql};

const READING: &str = "reading payouts";

/// How many columns [`LINE`] has: what follows them is read by place.
const AFTER_LINE: usize = 39;

/// The lines that carry one of these texts, with the text: tables `asked` and `hit`. Each look-up
/// is one by the index, whose first column is the account.
fn hit(texts: &str) -> String {
    format!(
        "asked as (select distinct t from unnest({texts}::text[]) as u(t)), \
         accounts as (select distinct account from tieout_files), \
         hit as (select asked.t, h.file_id, h.position from asked cross join accounts a \
         cross join lateral (select l.file_id, l.position from tieout_lines l \
         where l.account = a.account and l.tag = asked.t offset 0) h \
         union select asked.t, h.file_id, h.position from asked cross join accounts a \
         cross join lateral (select x.file_id, x.position from tieout_line_tags x \
         where x.account = a.account and x.text = asked.t offset 0) h)"
    )
}

pub(super) async fn named(
    pool: &PgPool,
    texts: &[String],
    until: Option<Instant>,
) -> Result<Vec<NamedPayout>, StoreError> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::default();
    let (texts, at) = (sql.bind(texts.to_vec()), sql.bind(until));
    let (stood, named) = (stood_sql(&format!("{at}::timestamptz")), says_which());
    sql.push(&format!(
        "with {} select distinct hit.t, l.account, l.batch, l.currency, l.file_id, \
         s.bank_account, {WHOSE} from hit cross join lateral (select l.* from tieout_lines l \
         where l.file_id = hit.file_id and l.position = hit.position offset 0) l \
         join tieout_files f on f.id = l.file_id \
         join tieout_statements s on s.file_id = l.file_id and s.number = l.statement \
         where {named} and {stood} and coalesce(l.reason, '') <> 'told_before' \
         union select l.batch, l.account, l.batch, l.currency, l.file_id, s.bank_account, {WHOSE} \
         from (select f.* from tieout_files f where {BY_NAME} and f.id in (\
         select n.file_id from tieout_statements n where n.statement_id in (select t from asked) \
         union select hit.file_id from hit) offset 0) f \
         join tieout_statements s on s.file_id = f.id \
         cross join lateral (select l.* from tieout_lines l where l.file_id = s.file_id \
         and l.statement = s.number and l.batch is not null offset 0) l \
         where l.batch in (select t from asked) and {stood} \
         and coalesce(l.reason, '') <> 'told_before'",
        hit(&texts)
    ));
    let found = sql.fetch_each(&mut connection, READING, |row| {
        let cells = Cells::new(row, READING);
        let key = PayoutKey {
            account: cells.text(1)?,
            payout: cells.text(2)?,
            currency: cells.text(3)?,
            file: cells.big(4)?,
            merchant: cells.text(6)?,
        };
        Ok((NamedPayout { text: cells.text(0)?, key }, cells.text(5)?))
    });
    Ok(one_each(found.await?))
}

pub(super) async fn one(
    pool: &PgPool,
    key: &PayoutKey,
    until: Option<Instant>,
) -> Result<Option<Payout>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::default();
    let file = sql.bind(key.file);
    let (payout, currency) = (sql.bind(key.payout.clone()), sql.bind(key.currency.clone()));
    let (at, own) = (sql.bind(until), sql.bind(key.merchant.clone()));
    sql.push(&format!(
        "select distinct l.batch, l.currency, s.bank_account from tieout_lines l \
         join tieout_files f on f.id = l.file_id \
         join tieout_statements s on s.file_id = l.file_id and s.number = l.statement \
         where l.file_id = {file} and l.batch = {payout} and l.currency = {currency} \
         and ({own} = '' or s.bank_account in ('', {own})) and {}",
        stood_sql(&format!("{at}::timestamptz"))
    ));
    let asked = sql.fetch_each(&mut connection, READING, asked_of).await?;
    Ok(told(&mut connection, key.file, asked, until).await?.into_iter().next())
}

pub(super) async fn of_file(
    pool: &PgPool,
    file: i64,
    until: Option<Instant>,
) -> Result<Vec<Payout>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::default();
    let (own, at) = (sql.bind(file), sql.bind(until));
    sql.push(&format!(
        "select distinct l.batch, l.currency, s.bank_account from tieout_lines l \
         join tieout_files f on f.id = l.file_id \
         join tieout_statements s on s.file_id = l.file_id and s.number = l.statement \
         where l.file_id = {own} and l.batch is not null and {} \
         and coalesce(l.reason, '') <> 'told_before' and (l.batch, l.currency, {WHOSE}) not in \
         (select l.batch, l.currency, {WHOSE} from tieout_lines l \
         join tieout_files f on f.id = l.file_id \
         join tieout_statements s on s.file_id = l.file_id and s.number = l.statement \
         where l.file_id = {own} and l.kind = 'payout' and l.batch is not null \
         and l.reason = 'told_before')",
        stood_sql(&format!("{at}::timestamptz"))
    ));
    let asked = sql.fetch_each(&mut connection, READING, asked_of).await?;
    told(&mut connection, file, asked, until).await
}

/// The payouts that lines at these places are parts or bookings of.
pub(super) async fn at(
    pool: &PgPool,
    places: &[LinePlace],
    until: Instant,
) -> Result<BTreeSet<PayoutKey>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::default();
    let files: Vec<i64> = places.iter().map(|place| place.file).collect();
    let positions: Vec<i64> = places.iter().map(|place| place.position).collect();
    let (files, positions, at) = (sql.bind(files), sql.bind(positions), sql.bind(until));
    sql.push(&format!(
        "select distinct {} from unnest({files}::bigint[], {positions}::bigint[]) \
         as k(file_id, position) cross join lateral (select l.* from tieout_lines l \
         where l.file_id = k.file_id and l.position = k.position offset 0) l \
         join tieout_files f on f.id = l.file_id \
         join tieout_statements s on s.file_id = l.file_id and s.number = l.statement \
         where l.status = 'booked' and (l.batch is not null or l.table_name = '{TABLE}')",
        of_payout(&at.to_string())
    ));
    let found = sql.fetch_each(&mut connection, READING, |row| {
        let cells = Cells::new(row, READING);
        let own = (cells.text(2)?, cells.big(3)?, cells.text(4)?);
        Ok(key_of(cells.text(0)?, cells.maybe_text(1)?, own, cells.maybe_text(5)?))
    });
    Ok(found.await?.into_iter().flatten().collect())
}

/// A payout's id, its currency and its account at the PSP.
fn asked_of(row: &PgRow) -> Result<(String, String, String), StoreError> {
    let cells = Cells::new(row, READING);
    Ok((cells.text(0)?, cells.text(1)?, cells.text(2)?))
}

/// Payouts of a file, as all files of its account tell of them.
async fn told(
    connection: &mut PgConnection,
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
        let mut sql = Sql::default();
        let (table, keys) = (sql.bind(TABLE.to_owned()), sql.bind(keys));
        sql.push(&format!(
            "select count(*) from tieout_lines l where l.table_name = {table} \
             and l.key = any({keys}::text[]) and l.state <> 'superseded'"
        ));
        let rows = sql.fetch(connection).await.map_err(failed(READING))?;
        if let Some(row) = rows.first() {
            payout.booked = Cells::new(row, READING).big(0)?;
        }
        payouts.push(payout);
    }
    Ok(payouts)
}

/// The table `k` of ids and currencies.
fn names(sql: &mut Sql, sought: &Sought) -> String {
    let names = sought.names();
    let payouts: Vec<String> = names.iter().map(|(payout, _)| (*payout).to_owned()).collect();
    let currencies: Vec<String> = names.iter().map(|(_, code)| (*code).to_owned()).collect();
    let (payouts, currencies) = (sql.bind(payouts), sql.bind(currencies));
    format!(
        "k as materialized (select * from unnest({payouts}::text[], {currencies}::text[]) \
         as u(payout, currency))"
    )
}

/// The table `k` of ids and currencies, each with every file that tells of it.
fn places(sql: &mut Sql, sought: &Sought) -> String {
    let places = sought.places();
    let payouts: Vec<String> = places.iter().map(|(payout, ..)| (*payout).to_owned()).collect();
    let currencies: Vec<String> = places.iter().map(|(_, code, _)| (*code).to_owned()).collect();
    let files: Vec<i64> = places.iter().map(|(.., file)| *file).collect();
    let (payouts, currencies) = (sql.bind(payouts), sql.bind(currencies));
    let files = sql.bind(files);
    format!(
        "k as materialized (select * from unnest({payouts}::text[], {currencies}::text[], \
         {files}::bigint[]) as u(payout, currency, file_id))"
    )
}

/// The files of the account that have a line of one of these payouts, which counts there.
async fn telling(
    connection: &mut PgConnection,
    file: i64,
    sought: &Sought,
    until: Option<Instant>,
) -> Result<Vec<(String, String, i64)>, StoreError> {
    let mut sql = Sql::default();
    let names = names(&mut sql, sought);
    let (own, at) = (sql.bind(file), sql.bind(until));
    sql.push(&format!(
        "with {names}, a as materialized (select account from tieout_files where id = {own}) \
         select distinct l.batch, l.currency, l.file_id from k cross join a \
         cross join lateral (select l.file_id, l.statement, l.batch, l.currency, l.status, \
         l.state, l.reason from tieout_lines l where l.account = a.account \
         and l.batch = k.payout and l.currency = k.currency offset 0) l \
         join tieout_files f on f.id = l.file_id \
         where {} and coalesce(l.reason, '') <> 'told_before'",
        stood_sql(&format!("{at}::timestamptz"))
    ));
    sql.fetch_each(connection, READING, place_of).await
}

/// The files whose lines these tell again.
async fn before(
    connection: &mut PgConnection,
    sought: &Sought,
) -> Result<Vec<(String, String, i64)>, StoreError> {
    let mut sql = Sql::default();
    let places = places(&mut sql, sought);
    sql.push(&format!(
        "with {places} select distinct l.batch, l.currency, l.of_file from tieout_lines l \
         where l.file_id in (select k.file_id from k) and l.of_file is not null \
         and l.reason = 'told_before' and (l.batch, l.currency, l.file_id) in \
         (select k.payout, k.currency, k.file_id from k)"
    ));
    sql.fetch_each(connection, READING, place_of).await
}

fn place_of(row: &PgRow) -> Result<(String, String, i64), StoreError> {
    let cells = Cells::new(row, READING);
    Ok((cells.text(0)?, cells.text(1)?, cells.big(2)?))
}

/// What each file says of each payout.
async fn parts(
    connection: &mut PgConnection,
    sought: &Sought,
    until: Option<Instant>,
) -> Result<Vec<Told>, StoreError> {
    let sums = sums_sql(|what| format!("coalesce(sum({what}), 0)::text"));
    let mut sql = Sql::default();
    let places = places(&mut sql, sought);
    let at = sql.bind(until);
    sql.push(&format!(
        "with {places} select l.account, l.batch, l.currency, l.file_id, f.format, f.version, \
         s.bank_account, coalesce(l.reason, '') = 'told_before', {WHOSE}, {sums} \
         from tieout_lines l \
         join tieout_files f on f.id = l.file_id \
         join tieout_statements s on s.file_id = l.file_id and s.number = l.statement \
         where l.file_id in (select k.file_id from k) and {} \
         and (l.batch, l.currency, l.file_id) in (select k.payout, k.currency, k.file_id from k) \
         group by 1, 2, 3, 4, 5, 6, 7, 8, 9 order by 4, 2, 3, 7, 8",
        stood_sql(&format!("{at}::timestamptz"))
    ));
    sql.fetch_each(connection, READING, told_of).await
}

fn told_of(row: &PgRow) -> Result<Told, StoreError> {
    let cells = Cells::new(row, READING);
    let key = PayoutKey {
        account: cells.text(0)?,
        payout: cells.text(1)?,
        currency: cells.text(2)?,
        file: cells.big(3)?,
        merchant: cells.text(8)?,
    };
    let sums = Sums {
        lines: cells.big(9)?,
        gross: cells.sum(10)?,
        fees: cells.sum(11)?,
        refunds: cells.sum(12)?,
        chargebacks: cells.sum(13)?,
        adjustments: cells.sum(14)?,
        payouts: cells.big(15)?,
        paid: cells.sum(16)?,
    };
    Ok(Told {
        key,
        format: cells.text(4)?,
        version: cells.text(5)?,
        bank_account: cells.text(6)?,
        again: cells.flag(7)?,
        sums,
    })
}

/// What the lines carry that say that a payout was paid out.
async fn references(pool: &PgPool, key: &PayoutKey) -> Result<Vec<String>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::default();
    let file = sql.bind(key.file);
    let (payout, currency) = (sql.bind(key.payout.clone()), sql.bind(key.currency.clone()));
    let own = sql.bind(key.merchant.clone());
    sql.push(&format!(
        "with own as materialized (select l.file_id, l.position, l.tag from tieout_lines l \
         join tieout_files f on f.id = l.file_id join tieout_statements s \
         on s.file_id = l.file_id and s.number = l.statement where l.file_id = {file} \
         and l.batch = {payout} and l.currency = {currency} \
         and ({own} = '' or s.bank_account in ('', {own})) and {}) \
         select own.tag from own where own.tag is not null \
         union select x.text from own join tieout_line_tags x \
         on x.file_id = own.file_id and x.position = own.position",
        says_which()
    ));
    sql.fetch_each(&mut connection, READING, |row| Cells::new(row, READING).text(0)).await
}

pub(super) async fn bookings(
    pool: &PgPool,
    payout: &PayoutKey,
    until: Option<Instant>,
) -> Result<Vec<Booking>, StoreError> {
    let references = references(pool, payout).await?;
    let others = named(pool, &references, until).await?;
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::default();
    let texts = sql.bind(names_of(payout, references, &others));
    let at = sql.bind(until);
    sql.push(&format!(
        "with {}, own as (select distinct file_id, position from hit) \
         select {LINE}, l.matched_at from own as hit \
         join tieout_lines l on l.file_id = hit.file_id and l.position = hit.position \
         join tieout_files f on f.id = l.file_id \
         where {BANKS} and {} order by l.file_id, l.position",
        hit(&texts),
        stood_sql(&format!("{at}::timestamptz"))
    ));
    let booking_of = |row: &PgRow| {
        let matched_at = Cells::new(row, READING).maybe_at(AFTER_LINE)?;
        Ok(Booking { line: line_of(row)?, matched_at })
    };
    sql.fetch_each(&mut connection, READING, booking_of).await
}
