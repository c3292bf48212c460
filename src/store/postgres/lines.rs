//! Reading settlement lines by what they carry, and marking what was found out about them.

use sqlx::postgres::{PgConnection, PgPool, PgRow};

use crate::model::money::{Currency, Money};
use crate::model::settlement::{Direction, EntryStatus, LineKind};
use crate::model::time::Instant;
use crate::store::error::StoreError;
use crate::store::files::{
    CAME_BACK, LINE, LineMark, LinePlace, LineState, OF_MONEY, OPEN_ALONE, OPEN_LINE, OpenLine,
    RAN_ALONE, StoredLine, TAKEN_OUT, TAKEN_OUT_WAITS, bookings_gone_sql, currency_of, further_of,
    refs_of,
};
use crate::store::postgres::errors::{failed, unexpected};
use crate::store::postgres::sql::{Cells, Sql};
use crate::store::postgres::transactions::begin;
use crate::store::still_told::{self, ANY};

const READING: &str = "reading settlement lines";
const MARKING: &str = "marking settlement lines";

pub(super) fn line_of(row: &PgRow) -> Result<StoredLine, StoreError> {
    let cells = Cells::new(row, READING);
    let currency = cells.word(10, currency_of)?;
    let row = cells.maybe_text(34)?.zip(cells.maybe_text(35)?);
    Ok(StoredLine {
        place: cells.place(0)?,
        file_sha256: cells.text(2)?,
        file_name: cells.text(3)?,
        file_line: cells.big(4)?,
        statement: cells.big(5)?,
        account: cells.text(6)?,
        format: cells.text(7)?,
        version: cells.text(38)?,
        kind: cells.word(8, LineKind::parse)?,
        direction: cells.word(9, Direction::parse)?,
        amount: cells.maybe_big(11)?.map(|minor| Money::new(minor, currency)),
        currency,
        gross: money(&cells, 12)?,
        fee: money(&cells, 14)?,
        net: money(&cells, 16)?,
        status: cells.word(18, EntryStatus::parse)?,
        decides: cells.flag(19)?,
        untied: cells.flag(20)?,
        itemised: cells.flag(21)?,
        tag: cells.maybe_text(22)?,
        further: further(&cells, 37)?,
        psp_reference: cells.maybe_text(23)?,
        original: cells.maybe_text(24)?,
        return_reason: cells.maybe_text(25)?,
        type_code: cells.maybe_text(26)?,
        bank_reference: cells.maybe_text(27)?,
        batch: cells.maybe_text(28)?,
        booked_on: cells.maybe_day(29)?,
        value_on: cells.maybe_day(30)?,
        refs: cells.word(31, refs_of)?,
        state: cells.word(32, LineState::parse)?,
        reason: cells.maybe_text(33)?,
        row,
        received_at: cells.at(36)?,
    })
}

fn open_line_of(row: &PgRow) -> Result<OpenLine, StoreError> {
    let cells = Cells::new(row, READING);
    let currency = cells.word(4, currency_of)?;
    Ok(OpenLine {
        place: cells.place(0)?,
        kind: cells.word(2, LineKind::parse)?,
        direction: cells.word(3, Direction::parse)?,
        amount: cells.maybe_big(5)?.map(|minor| Money::new(minor, currency)),
        itemised: cells.flag(6)?,
        tag: cells.maybe_text(7)?,
        further: further(&cells, 8)?,
        psp_reference: cells.maybe_text(9)?,
        original: cells.maybe_text(10)?,
        refs: cells.word(11, refs_of)?,
        reason: cells.maybe_text(12)?,
        type_code: cells.maybe_text(13)?,
        return_reason: cells.maybe_text(14)?,
        booked_on: cells.maybe_day(15)?,
        gross: money(&cells, 16)?,
        cased: cells.maybe_text(18)?,
    })
}

/// Texts that patterns found besides the tag.
fn further(cells: &Cells<'_>, at: usize) -> Result<Vec<String>, StoreError> {
    match cells.maybe_text(at)? {
        Some(_json) => cells.word(at, further_of),
        None => Ok(Vec::new()),
    }
}

/// Two columns: currency and minor units.
pub(super) fn money(cells: &Cells<'_>, at: usize) -> Result<Option<Money>, StoreError> {
    let Some(code) = cells.maybe_text(at)? else { return Ok(None) };
    let currency: Option<Currency> = currency_of(&code);
    let currency =
        currency.ok_or_else(|| unexpected(READING, format!("unknown currency `{code}`")))?;
    let minor = cells.maybe_big(at.saturating_add(1))?;
    Ok(minor.map(|minor| Money::new(minor, currency)))
}

/// A line `l` that may tell of a row: it stands, and is no part of what a bank or PSP took for
/// itself, unless it decides.
const OF_ROWS: &str = "l.state <> 'superseded' and (l.kind not in ('fee', 'payout') or l.decides) \
    and coalesce(l.reason, '') not in ('statement_corrected', 'told_before')";

fn of_texts(account: &str, texts: &[&str]) -> Sql {
    let mut sql = Sql::default();
    let account = sql.bind(account.to_owned());
    let texts = sql.bind(texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
    // `offset 0` keeps each look-up one of its own, by the index: as a join, a plan that reads
    // every line of the account is always near, and with it a batch costs as much as all files.
    sql.push(&format!(
        "with asked as (select distinct t from unnest({texts}::text[]) as u(t)), \
         other as (select distinct h.file_id, h.position from asked cross join lateral (\
         select x.file_id, x.position from tieout_line_tags x \
         where x.account = {account} and x.text = asked.t offset 0) h) \
         select l.* from asked cross join lateral (select {LINE} from tieout_lines l \
         join tieout_files f on f.id = l.file_id \
         where l.account = {account} and l.tag = asked.t and {OF_ROWS} offset 0) l \
         union all select l.* from other cross join lateral (select {LINE} from tieout_lines l \
         join tieout_files f on f.id = l.file_id \
         where l.file_id = other.file_id and l.position = other.position and {OF_ROWS} \
         and (l.tag is null or l.tag not in (select t from asked)) offset 0) l \
         order by file_id, position"
    ));
    sql
}

pub(super) async fn of(
    pool: &PgPool,
    account: &str,
    texts: &[&str],
) -> Result<Vec<StoredLine>, StoreError> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    of_texts(account, texts).fetch_each(&mut connection, READING, line_of).await
}

/// How the server would carry [`of`] out.
pub(super) async fn plan(
    pool: &PgPool,
    account: &str,
    texts: &[&str],
) -> Result<Vec<String>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let sql = of_texts(account, texts).explained();
    let rows = sql.fetch(&mut connection).await.map_err(failed(READING))?;
    rows.iter().map(|row| Cells::new(row, READING).text(0)).collect()
}

pub(super) async fn open(
    pool: &PgPool,
    account: &str,
    after: Option<LinePlace>,
    limit: i64,
) -> Result<Vec<OpenLine>, StoreError> {
    let after = after.unwrap_or(LinePlace { file: 0, position: 0 });
    let mut sql = Sql::default();
    let account = sql.bind(account.to_owned());
    let (file, position) = (sql.bind(after.file), sql.bind(after.position));
    let limit = sql.bind(limit);
    sql.push(&format!(
        "select {OPEN_LINE} from tieout_lines l where l.account = {account} \
         and l.state = 'open' and l.decides and (l.file_id, l.position) > ({file}, {position}) \
         order by l.file_id, l.position limit {limit}"
    ));
    sql.fetch_page(pool, READING, open_line_of).await
}

/// Lines that decide, have no row yet and moved one of these amounts.
pub(super) async fn open_of_money(
    pool: &PgPool,
    account: &str,
    minors: &[i64],
) -> Result<Vec<StoredLine>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::default();
    let account = sql.bind(account.to_owned());
    let (minors, limit) = (sql.bind(minors.to_vec()), sql.bind(OF_MONEY));
    sql.push(&format!(
        "select {LINE} from tieout_lines l join tieout_files f on f.id = l.file_id \
         where l.account = {account} and {OPEN_ALONE} \
         and coalesce(l.gross_minor, l.amount_minor) = any({minors}::bigint[]) \
         order by l.file_id, l.position limit {limit}"
    ));
    sql.fetch_each(&mut connection, READING, line_of).await
}

/// Lines that a row succeeded by and that a correction took out, whose row waits to be looked at.
pub(super) async fn taken_out(
    pool: &PgPool,
    account: &str,
    after: Option<LinePlace>,
    limit: i64,
) -> Result<Vec<StoredLine>, StoreError> {
    page(pool, READING, account, TAKEN_OUT_WAITS, after, limit).await
}

/// Lines that were the bookings of payouts until a correction took them out, and have no case.
pub(super) async fn bookings_gone(pool: &PgPool) -> Result<Vec<StoredLine>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    Sql::new(bookings_gone_sql()).fetch_each(&mut connection, READING, line_of).await
}

/// Lines of what came back that runs of single rows took. Those runs are few: what they took is
/// found by them, and not by all lines of the account in their order.
pub(super) async fn taken_alone(
    pool: &PgPool,
    account: &str,
    after: Option<LinePlace>,
    limit: i64,
) -> Result<Vec<StoredLine>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let after = after.unwrap_or(LinePlace { file: 0, position: 0 });
    let mut sql = Sql::default();
    let account = sql.bind(account.to_owned());
    let (file, position) = (sql.bind(after.file), sql.bind(after.position));
    let limit = sql.bind(limit);
    sql.push(&format!(
        "with alone as materialized (select r.id from tieout_runs r where {RAN_ALONE}) \
         select {LINE} from alone a join tieout_lines l on l.run_id = a.id and l.key is not null \
         join tieout_files f on f.id = l.file_id \
         where l.account = {account} and {CAME_BACK} \
         and (l.file_id, l.position) > ({file}, {position}) \
         order by l.file_id + 0, l.position limit {limit}"
    ));
    sql.fetch_each(&mut connection, READING, line_of).await
}

/// The next lines of an account that fulfil a condition, in their order.
pub(super) async fn page(
    pool: &PgPool,
    doing: &'static str,
    account: &str,
    condition: &str,
    after: Option<LinePlace>,
    limit: i64,
) -> Result<Vec<StoredLine>, StoreError> {
    let after = after.unwrap_or(LinePlace { file: 0, position: 0 });
    let mut sql = Sql::default();
    let account = sql.bind(account.to_owned());
    let (file, position) = (sql.bind(after.file), sql.bind(after.position));
    let limit = sql.bind(limit);
    sql.push(&format!(
        "select {LINE} from tieout_lines l join tieout_files f on f.id = l.file_id \
         where l.account = {account} and {condition} \
         and (l.file_id, l.position) > ({file}, {position}) \
         order by l.file_id, l.position limit {limit}"
    ));
    sql.fetch_page(pool, doing, line_of).await
}

/// The same, of these rows, looked at or not.
pub(super) async fn taken_out_of(
    pool: &PgPool,
    table: &str,
    keys: &[String],
) -> Result<Vec<StoredLine>, StoreError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::default();
    let (table, keys) = (sql.bind(table.to_owned()), sql.bind(keys.to_vec()));
    sql.push(&format!(
        "select {LINE} from tieout_lines l join tieout_files f on f.id = l.file_id \
         where l.table_name = {table} and l.key = any({keys}::text[]) \
         and {TAKEN_OUT} \
         order by l.file_id, l.position"
    ));
    sql.fetch_each(&mut connection, READING, line_of).await
}

pub(super) async fn note_looked_again(
    pool: &PgPool,
    run_id: &str,
    places: &[LinePlace],
) -> Result<(), StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(MARKING))?;
    let mut sql = Sql::default();
    let run = sql.bind(run_id.to_owned());
    let files = sql.bind(places.iter().map(|place| place.file).collect::<Vec<_>>());
    let positions = sql.bind(places.iter().map(|place| place.position).collect::<Vec<_>>());
    sql.push(&format!(
        "update tieout_lines l set again_run = {run} \
         from unnest({files}::bigint[], {positions}::bigint[]) as p(f, n) \
         where l.file_id = p.f and l.position = p.n and l.again_run is null \
         and not exists (select 1 from tieout_checks c where c.table_name = l.table_name \
         and c.key = l.key and c.lease_run is not null)"
    ));
    sql.run(&mut connection).await.map_err(failed(MARKING)).map(|_| ())
}

pub(super) async fn exclude(pool: &PgPool, places: &[LinePlace]) -> Result<(), StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(MARKING))?;
    let mut sql = Sql::default();
    let files = sql.bind(places.iter().map(|place| place.file).collect::<Vec<_>>());
    let positions = sql.bind(places.iter().map(|place| place.position).collect::<Vec<_>>());
    sql.push(&format!(
        "update tieout_lines l set decides = false, state = 'excluded', reason = null \
         from unnest({files}::bigint[], {positions}::bigint[]) as p(f, n) \
         where l.file_id = p.f and l.position = p.n and l.state = 'open'"
    ));
    sql.run(&mut connection).await.map_err(failed(MARKING)).map(|_| ())
}

pub(super) async fn of_file(
    pool: &PgPool,
    after: LinePlace,
    limit: i64,
) -> Result<Vec<StoredLine>, StoreError> {
    let mut sql = Sql::default();
    let (file, position) = (sql.bind(after.file), sql.bind(after.position));
    let limit = sql.bind(limit);
    sql.push(&format!(
        "select {LINE} from tieout_lines l join tieout_files f on f.id = l.file_id \
         where l.file_id = {file} and l.position > {position} order by l.position limit {limit}"
    ));
    sql.fetch_page(pool, READING, line_of).await
}

/// The lines at these places, in their order.
pub(super) async fn at(
    connection: &mut PgConnection,
    places: &[LinePlace],
) -> Result<Vec<StoredLine>, StoreError> {
    let mut sql = Sql::default();
    let files = sql.bind(places.iter().map(|place| place.file).collect::<Vec<_>>());
    let positions = sql.bind(places.iter().map(|place| place.position).collect::<Vec<_>>());
    sql.push(&format!(
        "select {LINE} from unnest({files}::bigint[], {positions}::bigint[]) as p(f, n) \
         join tieout_lines l on l.file_id = p.f and l.position = p.n \
         join tieout_files f on f.id = l.file_id order by l.file_id, l.position"
    ));
    sql.fetch_each(connection, READING, line_of).await
}

/// Lines that a correction took out, which another row's line tells, each with that row.
pub(super) async fn told_of_rows(
    pool: &PgPool,
    account: &str,
    since: Instant,
) -> Result<Vec<(LinePlace, (String, String))>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::new(still_told::rows_of_told());
    sql.bind(account.to_owned());
    sql.bind(since);
    sql.fetch_each(&mut connection, READING, |row| {
        let cells = Cells::new(row, READING);
        Ok((cells.place(0)?, (cells.text(2)?, cells.text(3)?)))
    })
    .await
}

/// Of these lines, those that tell what a correction of another statement took out, each with that.
pub(super) async fn doubted(
    pool: &PgPool,
    places: &[LinePlace],
) -> Result<Vec<(LinePlace, LinePlace)>, StoreError> {
    if places.is_empty() {
        return Ok(Vec::new());
    }
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let any = Sql::new(ANY.to_owned()).fetch(&mut connection).await.map_err(failed(READING))?;
    if any.is_empty() {
        return Ok(Vec::new());
    }
    let mut sql = Sql::default();
    let files = sql.bind(places.iter().map(|place| place.file).collect::<Vec<_>>());
    let positions = sql.bind(places.iter().map(|place| place.position).collect::<Vec<_>>());
    let named = format!("unnest({files}::bigint[], {positions}::bigint[]) as p(f, n)");
    sql.push(&still_told::doubted(&named, "join", "is not distinct from"));
    sql.fetch_each(&mut connection, READING, |row| {
        let cells = Cells::new(row, READING);
        Ok((cells.place(0)?, cells.place(2)?))
    })
    .await
}

pub(super) async fn mark(
    pool: &PgPool,
    run_id: &str,
    marks: &[LineMark],
    now: Instant,
) -> Result<Vec<LinePlace>, StoreError> {
    let mut tx = begin(pool).await.map_err(failed(MARKING))?;
    let mut running = Sql::default();
    let run = running.bind(run_id.to_owned());
    running.push(&format!(
        "select 1 from tieout_runs where id = {run} and state = 'running' for key share"
    ));
    let running = running.fetch(&mut tx).await.map_err(failed(MARKING))?;
    if running.is_empty() {
        // Closed meanwhile: what it found out is for another run to find out again.
        tx.rollback().await.map_err(failed(MARKING))?;
        return Ok(rows_of(marks));
    }
    let left = mark_in(&mut tx, run_id, marks, now).await.map_err(failed(MARKING))?;
    tx.commit().await.map_err(failed(MARKING))?;
    Ok(left)
}

fn rows_of(marks: &[LineMark]) -> Vec<LinePlace> {
    marks.iter().filter(|mark| mark.row.is_some()).map(|mark| mark.place).collect()
}

/// As [`crate::store::files::FileDriver::mark_lines`], within the caller's transaction.
pub(super) async fn mark_in(
    connection: &mut PgConnection,
    run_id: &str,
    marks: &[LineMark],
    now: Instant,
) -> sqlx::Result<Vec<LinePlace>> {
    if marks.is_empty() {
        return Ok(Vec::new());
    }
    let changed = mark_sql(run_id, marks, now).run(connection).await?;
    let all = u64::try_from(marks.len()).unwrap_or(u64::MAX);
    if changed == all {
        return Ok(Vec::new());
    }
    left_sql(marks)
        .fetch(connection)
        .await?
        .iter()
        .map(|row| {
            Ok(LinePlace {
                file: sqlx::Row::try_get(row, 0)?,
                position: sqlx::Row::try_get(row, 1)?,
            })
        })
        .collect()
}

/// Binds the marks; returns `unnest(…) as m(file_id, position, table_name, key, reason, …)`.
fn marks_in(sql: &mut Sql, marks: &[LineMark]) -> String {
    let files = sql.bind(marks.iter().map(|mark| mark.place.file).collect::<Vec<_>>());
    let positions = sql.bind(marks.iter().map(|mark| mark.place.position).collect::<Vec<_>>());
    let part = |pick: fn(&(String, String)) -> &String| {
        marks.iter().map(|mark| mark.row.as_ref().map(|row| pick(row).clone())).collect::<Vec<_>>()
    };
    let tables = sql.bind(part(|row| &row.0));
    let keys = sql.bind(part(|row| &row.1));
    let reasons = sql.bind(marks.iter().map(|mark| mark.reason.clone()).collect::<Vec<_>>());
    let worth = || marks.iter().map(|mark| mark.worth);
    let currencies = worth().map(|worth| worth.map(|money| money.currency.code().to_owned()));
    let currencies = sql.bind(currencies.collect::<Vec<_>>());
    let minors = sql.bind(worth().map(|worth| worth.map(|m| m.minor)).collect::<Vec<_>>());
    format!(
        "unnest({files}::bigint[], {positions}::bigint[], {tables}::text[], {keys}::text[], \
         {reasons}::text[], {currencies}::text[], {minors}::bigint[]) \
         as m(file_id, position, table_name, key, reason, currency, minor)"
    )
}

fn mark_sql(run_id: &str, marks: &[LineMark], now: Instant) -> Sql {
    let mut sql = Sql::default();
    let (run, now) = (sql.bind(run_id.to_owned()), sql.bind(now));
    let from = marks_in(&mut sql, marks);
    sql.push(&format!(
        "update tieout_lines l set state = case when m.key is null then l.state else 'matched' \
         end, table_name = m.table_name, key = m.key, reason = m.reason, \
         row_currency = m.currency, row_minor = m.minor, \
         seen_run = case when m.key is null then coalesce(l.seen_run, {run}) else l.seen_run end, \
         seen_reason = case when m.key is null and l.seen_run is null then m.reason \
         else l.seen_reason end, \
         run_id = case when m.key is null then null else {run} end, \
         matched_at = case when m.key is null then null else {now}::timestamptz end \
         from {from} where l.file_id = m.file_id and l.position = m.position \
         and l.state = 'open' and (m.key is not null or l.reason is distinct from m.reason)"
    ));
    sql
}

/// The lines that are not the row's that they were marked for.
fn left_sql(marks: &[LineMark]) -> Sql {
    let mut sql = Sql::default();
    let from = marks_in(&mut sql, marks);
    sql.push(&format!(
        "select distinct m.file_id, m.position from {from} left join tieout_lines l \
         on l.file_id = m.file_id and l.position = m.position where m.key is not null \
         and (l.key, l.table_name) is distinct from (m.key, m.table_name)"
    ));
    sql
}
