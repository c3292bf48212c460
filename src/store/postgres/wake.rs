//! Rows that a new file names, and that were to be looked at later: due at once.

use sqlx::postgres::{PgPool, PgRow};

use crate::model::time::Instant;
use crate::store::error::StoreError;
use crate::store::files::{LISTED, LinePlace, UNSEEN, UNSHOWN};
use crate::store::postgres::errors::failed;
use crate::store::postgres::sql::{Cells, Sql};

const LOOKING: &str = "looking for rows that new files name";
const CASED: &str = "looking for cases that new files tell of";
const WAKING: &str = "making rows due that new files name";

pub(super) async fn asleep(
    pool: &PgPool,
    table: &str,
    rows: &[(String, LinePlace)],
    now: Instant,
) -> Result<Vec<String>, StoreError> {
    unseen(pool, table, rows, Some(now)).await
}

/// Rows that nobody looks at any more, and that new lines tell of.
pub(super) async fn parked(
    pool: &PgPool,
    table: &str,
    rows: &[(String, LinePlace)],
) -> Result<Vec<String>, StoreError> {
    unseen(pool, table, rows, None).await
}

/// Those of these rows that were not looked at since the line came, and wait for a look later than
/// `now`; without one, for none.
async fn unseen(
    pool: &PgPool,
    table: &str,
    rows: &[(String, LinePlace)],
    now: Option<Instant>,
) -> Result<Vec<String>, StoreError> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let mut connection = pool.acquire().await.map_err(failed(LOOKING))?;
    let mut sql = Sql::default();
    let table = sql.bind(table.to_owned());
    let state = match now {
        Some(now) => format!("c.state = 'open' and c.next_check_at > {}", sql.bind(now)),
        None => "c.state = 'parked'".to_owned(),
    };
    let named = with_lines(&table, rows, &state, &mut sql);
    sql.push(&format!(
        "select distinct c.key from {named} join tieout_files f on f.id = a.file \
         join tieout_runs n on n.id = coalesce(f.tried_run, f.run_id) \
         left join tieout_runs r on r.id = c.last_run where {UNSEEN} order by c.key"
    ));
    let rows = sql.fetch(&mut connection).await.map_err(failed(LOOKING))?;
    rows.iter().map(|row| Cells::new(row, LOOKING).text(0)).collect()
}

/// Those of the rows `a` that nobody has at the moment: their memory `c` in a state, their line `l`
/// and the batch `b` that it is of. Each is looked up by its key (`offset 0`): as joins, a plan
/// that reads every line and every row's memory for a few of them is always near.
fn with_lines(table: &str, rows: &[(String, LinePlace)], state: &str, sql: &mut Sql) -> String {
    let keys = sql.bind(rows.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>());
    let files = sql.bind(rows.iter().map(|(_, place)| place.file).collect::<Vec<_>>());
    let positions = sql.bind(rows.iter().map(|(_, place)| place.position).collect::<Vec<_>>());
    format!(
        "unnest({keys}::text[], {files}::bigint[], {positions}::bigint[]) \
         as a(key, file, position) \
         cross join lateral (select c.* from tieout_checks c where c.table_name = {table} \
         and c.key = a.key and {state} and c.lease_run is null offset 0) c \
         cross join lateral (select l.* from tieout_lines l \
         where l.file_id = a.file and l.position = a.position offset 0) l \
         left join lateral (select b.* from tieout_lines b \
         where b.file_id = l.of_file and b.position = l.of_position offset 0) b on true"
    )
}

/// Rows with an open case that new lines tell of.
pub(super) async fn cased(
    pool: &PgPool,
    table: &str,
    rows: &[(String, LinePlace)],
) -> Result<Vec<String>, StoreError> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let mut connection = pool.acquire().await.map_err(failed(CASED))?;
    let mut sql = Sql::default();
    let table = sql.bind(table.to_owned());
    let named = with_lines(&table, rows, "c.state = 'case'", &mut sql);
    sql.push(&format!(
        "select distinct c.key from {named} \
         join tieout_cases k on k.subject_kind = 'row' and k.table_name = c.table_name \
         and k.subject = c.key and k.state = 'open' join tieout_files f on f.id = a.file \
         join tieout_runs n on n.id = coalesce(f.tried_run, f.run_id) \
         left join tieout_runs r on r.id = c.last_run where {UNSEEN} and {UNSHOWN} \
         order by c.key"
    ));
    let rows = sql.fetch(&mut connection).await.map_err(failed(CASED))?;
    rows.iter().map(|row| Cells::new(row, CASED).text(0)).collect()
}

pub(super) async fn wake(
    pool: &PgPool,
    table: &str,
    keys: &[String],
    now: Instant,
) -> Result<u64, StoreError> {
    if keys.is_empty() {
        return Ok(0);
    }
    let mut connection = pool.acquire().await.map_err(failed(WAKING))?;
    let mut sql = Sql::default();
    let (table, now) = (sql.bind(table.to_owned()), sql.bind(now));
    let keys = sql.bind(keys.to_vec());
    sql.push(&format!(
        "update tieout_checks set next_check_at = {now} where table_name = {table} \
         and key = any({keys}::text[]) and state in ('open', 'watch') and lease_run is null \
         and next_check_at > {now}"
    ));
    sql.run(&mut connection).await.map_err(failed(WAKING))
}

pub(super) async fn forget_looks(
    pool: &PgPool,
    table: &str,
    keys: &[String],
) -> Result<u64, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(WAKING))?;
    let mut sql = Sql::default();
    let (table, keys) = (sql.bind(table.to_owned()), sql.bind(keys.to_vec()));
    sql.push(&format!(
        "update tieout_checks set last_run = null where table_name = {table} \
         and key = any({keys}::text[]) and lease_run is null"
    ));
    sql.run(&mut connection).await.map_err(failed(WAKING))
}

pub(super) async fn listed_after_all(
    pool: &PgPool,
    account: &str,
    since: Instant,
) -> Result<Vec<(String, String)>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(LOOKING))?;
    let mut sql = Sql::default();
    let (account, since) = (sql.bind(account.to_owned()), sql.bind(since));
    let is_listed = format!(
        "{LISTED} and (h.taken_at is null \
         or l.booked_on <= (h.at at time zone 'UTC')::date)"
    );
    sql.push(&format!(
        "select distinct h.table_name, h.key from tieout_handbacks h \
         join tieout_checks c on c.table_name = h.table_name and c.key = h.key \
         join tieout_journal j on j.table_name = h.table_name and j.key = h.key \
         and j.run_id = h.run_id and j.handback_number = h.number \
         where h.account = {account} and h.at >= {since} and h.number = c.handbacks \
         and c.ended_as = 'retryable' and c.state in ('watch', 'closed', 'parked') \
         and c.lease_run is null and (exists (select from tieout_lines l \
         where l.account = h.account and l.tag = j.tag and {is_listed}) \
         or exists (select from tieout_line_tags x join tieout_lines l \
         on l.file_id = x.file_id and l.position = x.position \
         where x.account = h.account and x.text = j.tag and {is_listed})) \
         order by h.table_name, h.key"
    ));
    let rows = sql.fetch(&mut connection).await.map_err(failed(LOOKING))?;
    let row = |row: &PgRow| {
        let cells = Cells::new(row, LOOKING);
        Ok((cells.text(0)?, cells.text(1)?))
    };
    rows.iter().map(row).collect()
}
