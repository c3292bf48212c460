//! Reading settlement lines by what they carry, and marking what was found out about them.

use std::sync::Arc;

use sqlx::sqlite::{SqliteConnection, SqliteRow};

use crate::model::money::Money;
use crate::model::settlement::{Direction, EntryStatus, LineKind};
use crate::model::time::{Instant, to_text};
use crate::store::error::StoreError;
use crate::store::files::{
    CAME_BACK, LINE, LineMark, LinePlace, LineState, OF_MONEY, OPEN_ALONE, OPEN_LINE, OpenLine,
    RAN_ALONE, StoredLine, TAKEN_OUT, TAKEN_OUT_WAITS, bookings_gone_sql, currency_of, further_of,
    refs_of,
};
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::sql::{
    SqliteQuery, Value, execute_rows, failed, fetch, fetch_each, fetch_rows, json_set, rendered,
};
use crate::store::still_told::{self, ANY};

const READING: &str = "reading settlement lines";
const MARKING: &str = "marking settlement lines";

pub(super) fn line_of(row: &SqliteRow) -> Result<StoredLine, StoreError> {
    let cells = Cells::new(row, READING);
    let currency = cells.word(10, currency_of)?;
    Ok(StoredLine {
        place: cells.place(0)?,
        file_sha256: cells.text(2)?,
        file_name: cells.text(3)?,
        file_line: cells.int(4)?,
        statement: cells.int(5)?,
        account: cells.text(6)?,
        format: cells.text(7)?,
        version: cells.text(38)?,
        kind: cells.word(8, LineKind::parse)?,
        direction: cells.word(9, Direction::parse)?,
        amount: cells.opt_int(11)?.map(|minor| Money::new(minor, currency)),
        currency,
        gross: money(&cells, 12)?,
        fee: money(&cells, 14)?,
        net: money(&cells, 16)?,
        status: cells.word(18, EntryStatus::parse)?,
        decides: cells.int(19)? != 0,
        untied: cells.int(20)? != 0,
        itemised: cells.int(21)? != 0,
        tag: cells.opt_text(22)?,
        further: cells.opt_word(37, further_of)?.unwrap_or_default(),
        psp_reference: cells.opt_text(23)?,
        original: cells.opt_text(24)?,
        return_reason: cells.opt_text(25)?,
        type_code: cells.opt_text(26)?,
        bank_reference: cells.opt_text(27)?,
        batch: cells.opt_text(28)?,
        booked_on: cells.opt_day(29)?,
        value_on: cells.opt_day(30)?,
        refs: cells.word(31, refs_of)?,
        state: cells.word(32, LineState::parse)?,
        reason: cells.opt_text(33)?,
        row: cells.opt_text(34)?.zip(cells.opt_text(35)?),
        received_at: cells.at(36)?,
    })
}

fn open_line_of(row: &SqliteRow) -> Result<OpenLine, StoreError> {
    let cells = Cells::new(row, READING);
    let currency = cells.word(4, currency_of)?;
    Ok(OpenLine {
        place: cells.place(0)?,
        kind: cells.word(2, LineKind::parse)?,
        direction: cells.word(3, Direction::parse)?,
        amount: cells.opt_int(5)?.map(|minor| Money::new(minor, currency)),
        itemised: cells.int(6)? != 0,
        tag: cells.opt_text(7)?,
        further: cells.opt_word(8, further_of)?.unwrap_or_default(),
        psp_reference: cells.opt_text(9)?,
        original: cells.opt_text(10)?,
        refs: cells.word(11, refs_of)?,
        reason: cells.opt_text(12)?,
        type_code: cells.opt_text(13)?,
        return_reason: cells.opt_text(14)?,
        booked_on: cells.opt_day(15)?,
        gross: money(&cells, 16)?,
        cased: cells.opt_text(18)?,
    })
}

/// Two columns: currency and minor units.
pub(super) fn money(cells: &Cells<'_>, at: usize) -> Result<Option<Money>, StoreError> {
    let currency = cells.opt_word(at, currency_of)?;
    let minor = cells.opt_int(at.saturating_add(1))?;
    Ok(currency.zip(minor).map(|(currency, minor)| Money::new(minor, currency)))
}

fn of_sql(lead: &str) -> String {
    format!(
        "{lead}select {LINE} from (\
         select l.file_id, l.position from json_each(?2) j cross join tieout_lines l \
         on l.account = ?1 and l.tag = j.value and l.tag is not null \
         union select x.file_id, x.position from json_each(?2) j cross join tieout_line_tags x \
         on x.account = ?1 and x.text = j.value) h \
         cross join tieout_lines l on l.file_id = h.file_id and l.position = h.position \
         cross join tieout_files f on f.id = l.file_id \
         where l.state <> 'superseded' \
         and (l.kind not in ('fee', 'payout') or l.decides = 1) \
         and coalesce(l.reason, '') not in ('statement_corrected', 'told_before') \
         order by l.file_id, l.position"
    )
}

fn of_query(lead: &str, account: &str, texts: &[&str]) -> SqliteQuery {
    rendered(&of_sql(lead)).bind(account.to_owned()).bind(json_set(texts))
}

pub(super) async fn of(
    connection: &mut SqliteConnection,
    account: &str,
    texts: &[&str],
) -> Result<Vec<StoredLine>, StoreError> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    fetch_each(connection, READING, of_query("", account, texts), line_of).await
}

/// How SQLite would carry [`of`] out.
pub(super) async fn plan(
    connection: &mut SqliteConnection,
    account: &str,
    texts: &[&str],
) -> Result<Vec<String>, StoreError> {
    let query = of_query("explain query plan ", account, texts);
    fetch_each(connection, READING, query, |row| Cells::new(row, READING).text(3)).await
}

pub(super) async fn open(
    connection: &mut SqliteConnection,
    account: &str,
    after: Option<LinePlace>,
    limit: i64,
) -> Result<Vec<OpenLine>, StoreError> {
    let after = after.unwrap_or(LinePlace { file: 0, position: 0 });
    let sql = format!(
        "select {OPEN_LINE} from tieout_lines l where l.account = ?1 and l.state = 'open' \
         and l.decides = 1 and (l.file_id, l.position) > (?2, ?3) \
         order by l.file_id, l.position limit ?4"
    );
    let query =
        rendered(&sql).bind(account.to_owned()).bind(after.file).bind(after.position).bind(limit);
    fetch_each(connection, READING, query, open_line_of).await
}

/// Lines that decide, have no row yet and moved one of these amounts.
pub(super) async fn open_of_money(
    connection: &mut SqliteConnection,
    account: &str,
    minors: &[i64],
) -> Result<Vec<StoredLine>, StoreError> {
    let sql = format!(
        "select {LINE} from tieout_lines l cross join tieout_files f on f.id = l.file_id \
         where l.account = ?1 and {OPEN_ALONE} \
         and coalesce(l.gross_minor, l.amount_minor) in (select value from json_each(?2)) \
         order by l.file_id, l.position limit ?3"
    );
    let query = rendered(&sql).bind(account.to_owned()).bind(json_set(minors)).bind(OF_MONEY);
    fetch_each(connection, READING, query, line_of).await
}

/// Lines that a row succeeded by and that a correction took out, whose row waits to be looked at.
pub(super) async fn taken_out(
    connection: &mut SqliteConnection,
    account: &str,
    after: Option<LinePlace>,
    limit: i64,
) -> Result<Vec<StoredLine>, StoreError> {
    page(connection, READING, account, TAKEN_OUT_WAITS, after, limit).await
}

/// Lines that were the bookings of payouts until a correction took them out, and have no case.
pub(super) async fn bookings_gone(
    connection: &mut SqliteConnection,
) -> Result<Vec<StoredLine>, StoreError> {
    fetch_each(connection, READING, rendered(&bookings_gone_sql()), line_of).await
}

/// Lines of what came back that runs of single rows took. Those runs are few: what they took is
/// found by them, and not by all lines of the account.
pub(super) async fn taken_alone(
    connection: &mut SqliteConnection,
    account: &str,
    after: Option<LinePlace>,
    limit: i64,
) -> Result<Vec<StoredLine>, StoreError> {
    let after = after.unwrap_or(LinePlace { file: 0, position: 0 });
    let sql = format!(
        "select {LINE} from tieout_runs r cross join tieout_lines l on l.run_id = r.id \
         and l.key is not null cross join tieout_files f on f.id = l.file_id \
         where {RAN_ALONE} and l.account = ?1 and {CAME_BACK} \
         and (l.file_id, l.position) > (?2, ?3) order by l.file_id, l.position limit ?4"
    );
    let query =
        rendered(&sql).bind(account.to_owned()).bind(after.file).bind(after.position).bind(limit);
    fetch_each(connection, READING, query, line_of).await
}

/// The next lines of an account that fulfil a condition, in their order.
pub(super) async fn page(
    connection: &mut SqliteConnection,
    doing: &'static str,
    account: &str,
    condition: &str,
    after: Option<LinePlace>,
    limit: i64,
) -> Result<Vec<StoredLine>, StoreError> {
    let after = after.unwrap_or(LinePlace { file: 0, position: 0 });
    let sql = format!(
        "select {LINE} from tieout_lines l cross join tieout_files f on f.id = l.file_id \
         where l.account = ?1 and {condition} \
         and (l.file_id, l.position) > (?2, ?3) order by l.file_id, l.position limit ?4"
    );
    let query =
        rendered(&sql).bind(account.to_owned()).bind(after.file).bind(after.position).bind(limit);
    fetch_each(connection, doing, query, line_of).await
}

/// The same, of these rows, looked at or not.
pub(super) async fn taken_out_of(
    connection: &mut SqliteConnection,
    table: &str,
    keys: &[String],
) -> Result<Vec<StoredLine>, StoreError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "select {LINE} from json_each(?2) j cross join tieout_lines l \
         on l.table_name = ?1 and l.key = j.value and l.key is not null \
         cross join tieout_files f on f.id = l.file_id \
         where {TAKEN_OUT} \
         order by l.file_id, l.position"
    );
    let query = rendered(&sql).bind(table.to_owned()).bind(json_set(keys));
    fetch_each(connection, READING, query, line_of).await
}

/// Within the caller's transaction.
pub(super) async fn note_looked_again(
    connection: &mut SqliteConnection,
    run_id: &str,
    places: &[LinePlace],
) -> Result<(), StoreError> {
    let run_id: Arc<str> = Arc::from(run_id);
    let rows = places.iter().map(|place| {
        vec![Value::from(place.file), Value::from(place.position), Value::from(&run_id)]
    });
    let sql = |rows: &str| {
        format!(
            "update tieout_lines as l set again_run = m.column3 from (values {rows}) m \
             where l.file_id = +m.column1 and l.position = +m.column2 and l.again_run is null \
             and not exists (select 1 from tieout_checks c where c.table_name = l.table_name \
             and c.key = l.key and c.lease_run is not null)"
        )
    };
    execute_rows(connection, MARKING, rows, sql).await
}

/// Within the caller's transaction.
pub(super) async fn exclude(
    connection: &mut SqliteConnection,
    places: &[LinePlace],
) -> Result<(), StoreError> {
    let own = |place: &LinePlace| vec![Value::from(place.file), Value::from(place.position)];
    let rows = places.iter().map(own);
    let sql = |rows: &str| {
        format!(
            "update tieout_lines as l set decides = 0, state = 'excluded', reason = null \
             from (values {rows}) m where l.file_id = +m.column1 and l.position = +m.column2 \
             and +l.state = 'open'"
        )
    };
    execute_rows(connection, MARKING, rows, sql).await
}

pub(super) async fn of_file(
    connection: &mut SqliteConnection,
    after: LinePlace,
    limit: i64,
) -> Result<Vec<StoredLine>, StoreError> {
    let sql = format!(
        "select {LINE} from tieout_lines l cross join tieout_files f on f.id = l.file_id \
         where l.file_id = ?1 and l.position > ?2 order by l.position limit ?3"
    );
    let query = rendered(&sql).bind(after.file).bind(after.position).bind(limit);
    fetch_each(connection, READING, query, line_of).await
}

/// The lines at these places, in their order.
pub(super) async fn at(
    connection: &mut SqliteConnection,
    places: &[LinePlace],
) -> Result<Vec<StoredLine>, StoreError> {
    let sql = format!(
        "select {LINE} from json_each(?1) p cross join tieout_lines l \
         on l.file_id = p.value ->> 0 and l.position = p.value ->> 1 \
         cross join tieout_files f on f.id = l.file_id order by l.file_id, l.position"
    );
    let places: Vec<[i64; 2]> = places.iter().map(|place| [place.file, place.position]).collect();
    let query = rendered(&sql).bind(serde_json::json!(places).to_string());
    fetch_each(connection, READING, query, line_of).await
}

/// Lines that a correction took out, which another row's line tells, each with that row.
pub(super) async fn told_of_rows(
    connection: &mut SqliteConnection,
    account: &str,
    since: Instant,
) -> Result<Vec<(LinePlace, (String, String))>, StoreError> {
    let query = rendered(&still_told::rows_of_told());
    let query = query.bind(account.to_owned()).bind(to_text(since));
    fetch_each(connection, READING, query, |row| {
        let cells = Cells::new(row, READING);
        Ok((cells.place(0)?, (cells.text(2)?, cells.text(3)?)))
    })
    .await
}

/// Of these lines, those that tell what a correction of another statement took out, each with that.
pub(super) async fn doubted(
    connection: &mut SqliteConnection,
    places: &[LinePlace],
) -> Result<Vec<(LinePlace, LinePlace)>, StoreError> {
    if places.is_empty() || fetch(connection, READING, sqlx::query(ANY)).await?.is_empty() {
        return Ok(Vec::new());
    }
    let named = "(select j.value ->> 0 as f, j.value ->> 1 as n from json_each(?1) j) p";
    let places: Vec<[i64; 2]> = places.iter().map(|place| [place.file, place.position]).collect();
    let query = rendered(&still_told::doubted(named, "cross join", "is"));
    let query = query.bind(serde_json::json!(places).to_string());
    fetch_each(connection, READING, query, |row| {
        let cells = Cells::new(row, READING);
        Ok((cells.place(0)?, cells.place(2)?))
    })
    .await
}

/// As [`crate::store::files::FileDriver::mark_lines`], within the caller's transaction.
pub(super) async fn mark_in(
    connection: &mut SqliteConnection,
    run_id: &str,
    marks: &[LineMark],
    now: Instant,
) -> Result<Vec<LinePlace>, StoreError> {
    let (run_id, now): (Arc<str>, Arc<str>) = (Arc::from(run_id), Arc::from(to_text(now)));
    let rows = marks.iter().map(|mark| {
        let (table, key) = match &mark.row {
            Some((table, key)) => (Some(table.as_str()), Some(key.as_str())),
            None => (None, None),
        };
        vec![
            Value::from(mark.place.file),
            Value::from(mark.place.position),
            Value::from(table),
            Value::from(key),
            Value::from(&mark.reason),
            Value::from(&run_id),
            Value::from(&now),
            Value::from(mark.worth.map(|worth| worth.currency.code().to_owned())),
            Value::from(mark.worth.map(|worth| worth.minor)),
        ]
    });
    let sql = |rows: &str| {
        format!(
            "update tieout_lines as l set \
             state = case when m.column4 is null then l.state else 'matched' end, \
             table_name = m.column3, key = m.column4, reason = m.column5, \
             row_currency = m.column8, row_minor = m.column9, \
             seen_run = case when m.column4 is null then coalesce(l.seen_run, m.column6) \
             else l.seen_run end, \
             seen_reason = case when m.column4 is null and l.seen_run is null then m.column5 \
             else l.seen_reason end, \
             run_id = case when m.column4 is null then null else m.column6 end, \
             matched_at = case when m.column4 is null then null else m.column7 end \
             from (values {rows}) m where l.file_id = +m.column1 and l.position = +m.column2 \
             and +l.state = 'open' and (m.column4 is not null or l.reason is not m.column5)"
        )
    };
    execute_rows(connection, MARKING, rows, sql).await?;
    left(connection, marks).await
}

/// The lines that are not the row's that they were marked for.
async fn left(
    connection: &mut SqliteConnection,
    marks: &[LineMark],
) -> Result<Vec<LinePlace>, StoreError> {
    let rows = marks.iter().filter_map(|mark| {
        let (table, key) = mark.row.as_ref()?;
        Some(vec![
            Value::from(mark.place.file),
            Value::from(mark.place.position),
            Value::from(table),
            Value::from(key),
        ])
    });
    let sql = |rows: &str| {
        format!(
            "select m.column1, m.column2 from (values {rows}) m left join tieout_lines l \
             on l.file_id = +m.column1 and l.position = +m.column2 \
             where l.key is not m.column4 or l.table_name is not m.column3"
        )
    };
    let rows = fetch_rows(connection, rows, sql).await.map_err(failed(MARKING))?;
    let places = rows.iter().map(|row| {
        let cells = Cells::new(row, MARKING);
        cells.place(0)
    });
    places.collect()
}
