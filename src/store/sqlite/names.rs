//! The names that a source's files came under, and the cases about those that did not come.

use sqlx::sqlite::SqliteConnection;

use crate::model::reason::Reason;
use crate::model::time::{Instant, to_text};
use crate::store::error::StoreError;
use crate::store::files::{
    AbsentCase, FileState, KnownName, PUT_FILE_CASE, SEALED, THERE_NOW, clean,
};
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::sql::{execute, fetch};

pub(super) const READING: &str = "reading the names of a source's files";
pub(super) const NOTING: &str = "noting what became of a source's file";
pub(super) const CASE: &str = "noting which files are missing";

/// Every name of a source, or those of one account's files.
pub(super) async fn known(
    connection: &mut SqliteConnection,
    source: &str,
    account: Option<&str>,
) -> Result<Vec<KnownName>, StoreError> {
    let query = sqlx::query(
        "select n.name, n.raw_sha256, n.raw_bytes, n.modified_at, n.first_seen_at, \
         n.archived_at, n.file_id, f.state, f.changed_at is not null, r.version, \
         r.config_sha256, case when f.format = ?3 then f.version end, f.lines, \
         exists (select 1 from tieout_statements s where s.file_id = f.id and s.state = 'held') \
         and not exists (select 1 from tieout_statements s where s.file_id = f.id \
         and s.state <> 'held') \
         from tieout_file_names n join tieout_files f on f.id = n.file_id \
         join tieout_runs r on r.id = coalesce(f.tried_run, f.run_id) \
         where n.source = ?1 and (?2 is null or f.account = ?2) \
         order by n.name, n.first_seen_at",
    )
    .bind(source.to_owned())
    .bind(account.map(str::to_owned))
    .bind(SEALED);
    let rows = fetch(connection, READING, query).await?;
    let names = rows.iter().map(|row| {
        let cells = Cells::new(row, READING);
        Ok(KnownName {
            name: cells.text(0)?,
            raw_sha256: cells.text(1)?,
            raw_bytes: cells.int(2)?,
            modified_at: cells.opt_at(3)?,
            first_seen_at: cells.at(4)?,
            archived_at: cells.opt_at(5)?,
            file: cells.int(6)?,
            state: cells.word(7, FileState::parse)?,
            is_settled: cells.int(8)? != 0,
            read_by: (cells.text(9)?, cells.text(10)?),
            tried_keys: cells.opt_text(11)?,
            lines: cells.int(12)?,
            is_held: cells.int(13)? != 0,
        })
    });
    names.collect()
}

pub(super) async fn archived(
    connection: &mut SqliteConnection,
    source: &str,
    name: &str,
    raw_sha256: &str,
    now: Instant,
) -> Result<(), StoreError> {
    let query = sqlx::query(
        "update tieout_file_names set archived_at = ?4 \
         where source = ?1 and name = ?2 and raw_sha256 = ?3",
    )
    .bind(source.to_owned())
    .bind(clean(name).into_owned())
    .bind(raw_sha256.to_owned())
    .bind(to_text(now));
    execute(connection, NOTING, query).await.map(|_| ())
}

pub(super) async fn spooled(
    connection: &mut SqliteConnection,
    file: i64,
    place: &str,
) -> Result<(), StoreError> {
    let query = sqlx::query(
        "update tieout_files set spooled_as = ?2 where id = ?1 and state = 'quarantined'",
    )
    .bind(file)
    .bind(place.to_owned());
    execute(connection, NOTING, query).await.map(|_| ())
}

pub(super) async fn put_absent(
    connection: &mut SqliteConnection,
    run_id: &str,
    case: &AbsentCase,
    now: Instant,
) -> Result<(), StoreError> {
    let query = sqlx::query(PUT_FILE_CASE)
        .bind(case.subject())
        .bind(Reason::FileMissing.as_str())
        .bind(clean(&case.text).into_owned())
        .bind(case.account.clone())
        .bind(to_text(now))
        .bind(run_id.to_owned());
    execute(connection, CASE, query).await.map(|_| ())
}

pub(super) async fn close_absent(
    connection: &mut SqliteConnection,
    run_id: &str,
    source: &str,
    but: &[String],
    now: Instant,
) -> Result<u64, StoreError> {
    let query = sqlx::query(
        "update tieout_cases set state = 'closed', closed_at = ?3, closed_run = ?4, \
         resolution = ?5 where state = 'open' and subject_kind = 'file' and reason = ?6 \
         and substr(subject, 1, length(?1)) = ?1 \
         and subject not in (select value from json_each(?2))",
    )
    .bind(format!("{source}: "))
    .bind(serde_json::json!(but).to_string())
    .bind(to_text(now))
    .bind(run_id.to_owned())
    .bind(THERE_NOW)
    .bind(Reason::FileMissing.as_str());
    execute(connection, CASE, query).await
}
