//! Reading the user's rows, and what tieout remembers of them.

use std::collections::{HashMap, HashSet};

use sqlx::sqlite::{SqliteConnection, SqliteRow};

use crate::decide::decision::{History, PastHandBack};
use crate::model::reason::Outcome;
use crate::model::time::Instant;
use crate::model::transaction::Transaction;
use crate::store::decode::decode;
use crate::store::driver::CheckRow;
use crate::store::error::StoreError;
use crate::store::records::HandbackRow;
use crate::store::source_table::{Column, SourceTable};
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::sql::{fetch, fetch_each, json_set, rendered};
use crate::store::sqlite::statements::{
    belongs, cell_texts, has_key, image, is_processing, named, read_has_key, read_key, text_of,
};

const READING: &str = "reading the mapped table";
const REMEMBERING: &str = "reading what is remembered of rows";

/// The columns of `tieout_checks` that [`memory_of`] reads, in its order.
pub(super) const MEMORY: &str = "c.key, c.state, c.account, c.image, c.first_seen_at, \
     c.fingerprint_seen_at, c.aged_from, c.unanswered_since, c.unanswered, c.checks, c.misses, \
     c.handbacks, c.next_check_at, c.watch_from, c.watch_step, c.events, c.lease_token, \
     c.lease_run, c.lease_until, c.currency, c.amount_minor, c.ended_as, \
     (select k.number from tieout_cases k where k.subject_kind = 'row' \
     and k.table_name = c.table_name and k.subject = c.key and k.state = 'open')";

/// What tieout remembers of a row, its last hand-back left out.
#[derive(Debug, Clone)]
pub(super) struct Memory {
    pub(super) key: String,
    pub(super) state: String,
    pub(super) image: String,
    pub(super) history: History,
    pub(super) next_check_at: Option<Instant>,
    pub(super) events: u32,
    pub(super) lease_token: i64,
    pub(super) lease: Option<(String, Instant)>,
    pub(super) currency: String,
    pub(super) amount_minor: i64,
    pub(super) open_case: Option<i64>,
}

pub(super) fn memory_of(row: &SqliteRow) -> Result<Memory, StoreError> {
    let cells = Cells::new(row, REMEMBERING);
    let history = History {
        first_account: cells.opt_text(2)?,
        first_seen_at: cells.at(4)?,
        fingerprint_seen_at: cells.at(5)?,
        aged_from: cells.at(6)?,
        unanswered_since: cells.opt_at(7)?,
        unanswered: cells.count(8)?,
        checks: cells.count(9)?,
        misses: cells.json(10)?,
        handbacks: cells.count(11)?,
        last_handback: None,
        watch_from: cells.opt_at(13)?,
        watch_step: cells.count(14)?,
        ended_as: cells.opt_word(21, Outcome::parse)?,
    };
    Ok(Memory {
        key: cells.text(0)?,
        state: cells.text(1)?,
        image: cells.text(3)?,
        history,
        next_check_at: cells.opt_at(12)?,
        events: cells.count(15)?,
        lease_token: cells.int(16)?,
        lease: cells.opt_text(17)?.zip(cells.opt_at(18)?),
        currency: cells.text(19)?,
        amount_minor: cells.int(20)?,
        open_case: cells.opt_int(22)?,
    })
}

pub(super) async fn memory(
    connection: &mut SqliteConnection,
    table: &str,
    key: &str,
) -> Result<Option<Memory>, StoreError> {
    let sql =
        format!("select {MEMORY} from tieout_checks c where c.table_name = ?1 and c.key = ?2");
    let query = rendered(&sql).bind(table.to_owned()).bind(key.to_owned());
    let rows = fetch(connection, REMEMBERING, query).await?;
    rows.first().map(memory_of).transpose()
}

/// A hand-back, and whether it still waits to be taken.
#[derive(Debug, Clone)]
pub(super) struct LastHandback {
    pub(super) past: PastHandBack,
    /// It is open, or lapsed when nobody had seen that its worker came for it.
    pub(super) may_be_taken: bool,
}

/// The last hand-back of each of these rows: (key, its number).
pub(super) async fn last_handbacks(
    connection: &mut SqliteConnection,
    table: &str,
    wanted: &[(&str, u32)],
) -> Result<HashMap<String, LastHandback>, StoreError> {
    if wanted.is_empty() {
        return Ok(HashMap::new());
    }
    let query = sqlx::query(
        "select h.key, h.number, h.at, h.taken_at, h.charge_before, \
         h.ended_at is null or h.end_reason in ('lapsed', 'sibling_pending'), \
         ifnull(h.end_reason in ('lapsed', 'sibling_pending'), 0), \
         (select count(*) from tieout_handbacks l where l.table_name = h.table_name \
         and l.key = h.key and l.end_reason in ('lapsed', 'sibling_pending')), \
         h.taken_at is null and h.end_reason is 'sibling_row', h.not_before, \
         h.retry = 'new_attempt' \
         from json_each(?1) j cross join tieout_handbacks h on h.table_name = ?2 \
         and h.key = j.value ->> 0 and h.number = j.value ->> 1",
    )
    .bind(json_set(wanted))
    .bind(table.to_owned());
    let mut found = HashMap::new();
    for row in &fetch(connection, REMEMBERING, query).await? {
        let cells = Cells::new(row, REMEMBERING);
        let past = PastHandBack {
            number: cells.count(1)?,
            at: cells.at(2)?,
            not_before: cells.opt_at(9)?,
            taken_at: cells.opt_at(3)?,
            charge_before: cells.at(4)?,
            anew: cells.int(10)? != 0,
            lapsed: cells.int(6)? != 0,
            lapses: cells.count(7)?,
            stopped: cells.int(8)? != 0,
        };
        let may_be_taken = past.taken_at.is_none() && cells.int(5)? != 0;
        found.insert(cells.text(0)?, LastHandback { past, may_be_taken });
    }
    Ok(found)
}

/// A row of the user's table, and whether the mapping's `where` means it.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) row: Transaction,
    pub(super) belongs: bool,
}

/// Reads the rows of these keys; a key that is not in the answer is gone from the table.
pub(super) async fn read(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    keys: &[&str],
) -> Result<HashMap<String, Found>, StoreError> {
    let image = image(table, |column| named("t", column));
    read_from(connection, table, &image, &keyed(table), json_set(keys)).await
}

/// As [`read`], with the images of rows in processing alone, which cost as much as all the rest:
/// the others are looked at, and never written by what was read.
pub(super) async fn read_in_processing(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    keys: &[&str],
) -> Result<HashMap<String, Found>, StoreError> {
    let image = image_in_processing(table);
    read_from(connection, table, &image, &keyed(table), json_set(keys)).await
}

fn image_in_processing(table: &SourceTable) -> String {
    let image = image(table, |column| named("t", column));
    format!("case when {} then {image} else '' end", is_processing(table, "t"))
}

/// As [`read_in_processing`]: the rows that fulfil a condition on `t`, of the set in ?1.
pub(super) async fn read_where(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    condition: &str,
    set: String,
) -> Result<HashMap<String, Found>, StoreError> {
    let from = format!("{} as t where {condition}", table.read);
    read_from(connection, table, &image_in_processing(table), &from, set).await
}

/// The rows `t` whose keys' texts are the set in ?1.
fn keyed(table: &SourceTable) -> String {
    let is_row = read_has_key(table, "t", "j.value");
    format!("json_each(?1) j join {} as t on {is_row}", table.read)
}

async fn read_from(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    image: &str,
    from: &str,
    set: String,
) -> Result<HashMap<String, Found>, StoreError> {
    let (belongs, cells) = (belongs(table, "t"), cell_texts(table, "t"));
    let sql = format!("select {image}, {belongs}, {cells} from {from}");
    let found_of = |row: &SqliteRow| {
        let cells = Cells::new(row, READING);
        let texts = (0..table.cells.len())
            .map(|index| cells.opt_text(index.saturating_add(2)))
            .collect::<Result<Vec<_>, _>>()?;
        let row = decode(table, &texts, cells.text(0)?);
        let belongs = cells.opt_int(1)?.is_some_and(|flag| flag != 0);
        Ok::<_, StoreError>((row.key.id.clone(), Found { row, belongs }))
    };
    let query = rendered(&sql).bind(set);
    Ok(fetch_each(connection, READING, query, found_of).await?.into_iter().collect())
}

/// The status texts of these rows as they are now.
pub(super) async fn statuses(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    keys: &[&str],
) -> Result<HashMap<String, Option<String>>, StoreError> {
    let Some(status) = table.cells.get(table.layout.status) else { return Ok(HashMap::new()) };
    let sql = format!(
        "select {}, {} from json_each(?1) j join {} as t on {}",
        read_key(table, "t"),
        text_of(status, &named("t", status)),
        table.read,
        read_has_key(table, "t", "j.value"),
    );
    let pair = |row: &SqliteRow| {
        let cells = Cells::new(row, READING);
        Ok::<_, StoreError>((cells.text(0)?, cells.opt_text(1)?))
    };
    let query = rendered(&sql).bind(json_set(keys));
    Ok(fetch_each(connection, READING, query, pair).await?.into_iter().collect())
}

/// The images of these rows as they are now.
pub(super) async fn images(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    keys: &[&str],
) -> Result<HashMap<String, String>, StoreError> {
    let sql = format!(
        "select {}, {} from json_each(?1) j join {} as t on {}",
        read_key(table, "t"),
        image(table, |column| named("t", column)),
        table.read,
        read_has_key(table, "t", "j.value"),
    );
    let pair = |row: &SqliteRow| {
        let cells = Cells::new(row, READING);
        Ok::<_, StoreError>((cells.text(0)?, cells.text(1)?))
    };
    let query = rendered(&sql).bind(json_set(keys));
    Ok(fetch_each(connection, READING, query, pair).await?.into_iter().collect())
}

/// Which of these keys are rows of the written table.
pub(super) async fn written(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    keys: &[&str],
) -> Result<HashSet<String>, StoreError> {
    let columns: Vec<&Column> = table.write_key.iter().collect();
    let sql = format!(
        "select j.value from json_each(?1) j join {} as w on {}",
        table.write,
        has_key(&columns, "w", "j.value"),
    );
    let key = |row: &SqliteRow| Cells::new(row, READING).text(0);
    let query = rendered(&sql).bind(json_set(keys));
    Ok(fetch_each(connection, READING, query, key).await?.into_iter().collect())
}

pub(super) async fn check(
    connection: &mut SqliteConnection,
    table: &str,
    key: &str,
) -> Result<Option<CheckRow>, StoreError> {
    let Some(memory) = memory(connection, table, key).await? else { return Ok(None) };
    let mut history = memory.history;
    let wanted = [(key, history.handbacks)];
    history.last_handback =
        last_handbacks(connection, table, &wanted).await?.remove(key).map(|last| last.past);
    Ok(Some(CheckRow {
        state: memory.state,
        history,
        next_check_at: memory.next_check_at,
        lease: memory.lease,
        image: memory.image,
        open_case: memory.open_case,
    }))
}

pub(super) async fn handbacks(
    connection: &mut SqliteConnection,
    table: &str,
    key: &str,
) -> Result<Vec<HandbackRow>, StoreError> {
    let query = sqlx::query(
        "select table_name, key, number, run_id, at, account, fingerprint, permit, retry, \
         psp_reference, same_key_until, not_before, charge_before, evidence_sha256, taken_at, \
         ended_at, end_reason from tieout_handbacks where table_name = ?1 and key = ?2 \
         order by number",
    )
    .bind(table.to_owned())
    .bind(key.to_owned());
    let rows = fetch(connection, REMEMBERING, query).await?;
    rows.iter().map(handback_of).collect()
}

fn handback_of(row: &SqliteRow) -> Result<HandbackRow, StoreError> {
    let cells = Cells::new(row, REMEMBERING);
    Ok(HandbackRow {
        table: cells.text(0)?,
        key: cells.text(1)?,
        number: cells.count(2)?,
        run_id: cells.text(3)?,
        at: cells.at(4)?,
        account: cells.text(5)?,
        fingerprint: cells.text(6)?,
        permit: cells.text(7)?,
        retry: cells.text(8)?,
        psp_reference: cells.opt_text(9)?,
        same_key_until: cells.opt_at(10)?,
        not_before: cells.opt_at(11)?,
        charge_before: cells.at(12)?,
        evidence_sha256: cells.text(13)?,
        taken_at: cells.opt_at(14)?,
        ended_at: cells.opt_at(15)?,
        end_reason: cells.opt_text(16)?,
    })
}
