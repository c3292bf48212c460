//! Rows that a new file names, and that were to be looked at later: due at once.

use sqlx::sqlite::{SqliteConnection, SqliteRow};

use crate::model::time::{Instant, to_text};
use crate::store::error::StoreError;
use crate::store::files::{LISTED, LinePlace, UNSEEN, UNSHOWN};
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::sql::{execute, fetch, json_set, rendered};

pub(super) const LOOKING: &str = "looking for rows that new files name";
pub(super) const CASED: &str = "looking for cases that new files tell of";
pub(super) const WAKING: &str = "making rows due that new files name";

pub(super) async fn asleep(
    connection: &mut SqliteConnection,
    table: &str,
    rows: &[(String, LinePlace)],
    now: Instant,
) -> Result<Vec<String>, StoreError> {
    unseen(connection, table, rows, Some(now)).await
}

/// Rows that nobody looks at any more, and that new lines tell of.
pub(super) async fn parked(
    connection: &mut SqliteConnection,
    table: &str,
    rows: &[(String, LinePlace)],
) -> Result<Vec<String>, StoreError> {
    unseen(connection, table, rows, None).await
}

/// Those of these rows that were not looked at since the line came, and wait for a look later than
/// `now`; without one, for none.
async fn unseen(
    connection: &mut SqliteConnection,
    table: &str,
    rows: &[(String, LinePlace)],
    now: Option<Instant>,
) -> Result<Vec<String>, StoreError> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let state = match now {
        Some(_) => "c.state = 'open' and c.next_check_at > ?3",
        None => "c.state = 'parked'",
    };
    let sql = format!(
        "select distinct c.key from json_each(?2) a cross join tieout_checks c \
         on c.table_name = ?1 and c.key = a.value ->> 0 \
         cross join tieout_files f on f.id = a.value ->> 1 \
         cross join tieout_runs n on n.id = coalesce(f.tried_run, f.run_id) \
         cross join tieout_lines l on l.file_id = f.id and l.position = a.value ->> 2 \
         left join tieout_lines b on b.file_id = l.of_file and b.position = l.of_position \
         left join tieout_runs r on r.id = c.last_run \
         where {state} and c.lease_run is null and {UNSEEN} order by c.key"
    );
    let rows: Vec<(&str, i64, i64)> =
        rows.iter().map(|(key, place)| (key.as_str(), place.file, place.position)).collect();
    let query = rendered(&sql).bind(table.to_owned()).bind(json_set(&rows));
    let query = match now {
        Some(now) => query.bind(to_text(now)),
        None => query,
    };
    let rows = fetch(connection, LOOKING, query).await?;
    rows.iter().map(|row| Cells::new(row, LOOKING).text(0)).collect()
}

/// Rows with an open case that new lines tell of.
pub(super) async fn cased(
    connection: &mut SqliteConnection,
    table: &str,
    rows: &[(String, LinePlace)],
) -> Result<Vec<String>, StoreError> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "select distinct c.key from json_each(?2) a cross join tieout_checks c \
         on c.table_name = ?1 and c.key = a.value ->> 0 \
         cross join tieout_cases k on k.subject_kind = 'row' and k.table_name = c.table_name \
         and k.subject = c.key and k.state = 'open' \
         cross join tieout_files f on f.id = a.value ->> 1 \
         cross join tieout_runs n on n.id = coalesce(f.tried_run, f.run_id) \
         cross join tieout_lines l on l.file_id = f.id and l.position = a.value ->> 2 \
         left join tieout_lines b on b.file_id = l.of_file and b.position = l.of_position \
         left join tieout_runs r on r.id = c.last_run \
         where c.state = 'case' and c.lease_run is null and {UNSEEN} and {UNSHOWN} \
         order by c.key"
    );
    let rows: Vec<(&str, i64, i64)> =
        rows.iter().map(|(key, place)| (key.as_str(), place.file, place.position)).collect();
    let query = rendered(&sql).bind(table.to_owned()).bind(json_set(&rows));
    let rows = fetch(connection, CASED, query).await?;
    rows.iter().map(|row| Cells::new(row, CASED).text(0)).collect()
}

pub(super) async fn wake(
    connection: &mut SqliteConnection,
    table: &str,
    keys: &[String],
    now: Instant,
) -> Result<u64, StoreError> {
    let query = sqlx::query(
        "update tieout_checks set next_check_at = ?3 where table_name = ?1 \
         and key in (select value from json_each(?2)) and state in ('open', 'watch') \
         and lease_run is null and +next_check_at > ?3",
    );
    let query = query.bind(table.to_owned()).bind(json_set(keys)).bind(to_text(now));
    execute(connection, WAKING, query).await
}

pub(super) async fn forget_looks(
    connection: &mut SqliteConnection,
    table: &str,
    keys: &[String],
) -> Result<u64, StoreError> {
    let query = sqlx::query(
        "update tieout_checks set last_run = null where table_name = ?1 \
         and key in (select value from json_each(?2)) and lease_run is null",
    );
    let query = query.bind(table.to_owned()).bind(json_set(keys));
    execute(connection, WAKING, query).await
}

pub(super) async fn listed_after_all(
    connection: &mut SqliteConnection,
    account: &str,
    since: Instant,
) -> Result<Vec<(String, String)>, StoreError> {
    let is_listed =
        format!("{LISTED} and (h.taken_at is null or l.booked_on <= substr(h.at, 1, 10))");
    let sql = format!(
        "select distinct h.table_name, h.key from tieout_handbacks h \
         cross join tieout_checks c on c.table_name = h.table_name and c.key = h.key \
         cross join tieout_journal j on j.table_name = h.table_name and j.key = h.key \
         and j.run_id = h.run_id and j.handback_number = h.number \
         where h.account = ?1 and h.at >= ?2 and h.number = c.handbacks \
         and c.ended_as = 'retryable' and c.state in ('watch', 'closed', 'parked') \
         and c.lease_run is null and (exists (select 1 from tieout_lines l \
         where l.account = h.account and l.tag = j.tag and l.tag is not null and {is_listed}) \
         or exists (select 1 from tieout_line_tags x cross join tieout_lines l \
         on l.file_id = x.file_id and l.position = x.position \
         where x.account = h.account and x.text = j.tag and {is_listed})) \
         order by h.table_name, h.key"
    );
    let query = rendered(&sql).bind(account.to_owned()).bind(to_text(since));
    let rows = fetch(connection, LOOKING, query).await?;
    let row = |row: &SqliteRow| {
        let cells = Cells::new(row, LOOKING);
        Ok((cells.text(0)?, cells.text(1)?))
    };
    rows.iter().map(row).collect()
}
