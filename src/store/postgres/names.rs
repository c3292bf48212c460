//! The names that a source's files came under, and the cases about those that did not come.

use sqlx::postgres::PgPool;

use crate::model::reason::Reason;
use crate::model::time::Instant;
use crate::store::error::StoreError;
use crate::store::files::{
    AbsentCase, FileState, KnownName, PUT_FILE_CASE, SEALED, THERE_NOW, clean,
};
use crate::store::postgres::errors::failed;
use crate::store::postgres::sql::{Cells, Sql};

const READING: &str = "reading the names of a source's files";
const NOTING: &str = "noting what became of a source's file";
const CASE: &str = "noting which files are missing";

/// Every name of a source, or those of one account's files.
pub(super) async fn known(
    pool: &PgPool,
    source: &str,
    account: Option<&str>,
) -> Result<Vec<KnownName>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::default();
    let source = sql.bind(source.to_owned());
    let account = sql.bind(account.map(str::to_owned));
    let sealed = sql.bind(SEALED.to_owned());
    sql.push(&format!(
        "select n.name, n.raw_sha256, n.raw_bytes, n.modified_at, n.first_seen_at, \
         n.archived_at, n.file_id, f.state, f.changed_at is not null, r.version, \
         r.config_sha256, case when f.format = {sealed} then f.version end, f.lines, \
         exists (select 1 from tieout_statements s where s.file_id = f.id and s.state = 'held') \
         and not exists (select 1 from tieout_statements s where s.file_id = f.id \
         and s.state <> 'held') \
         from tieout_file_names n join tieout_files f on f.id = n.file_id \
         join tieout_runs r on r.id = coalesce(f.tried_run, f.run_id) \
         where n.source = {source} and ({account}::text is null or f.account = {account}) \
         order by n.name, n.first_seen_at"
    ));
    let rows = sql.fetch(&mut connection).await.map_err(failed(READING))?;
    let names = rows.iter().map(|row| {
        let cells = Cells::new(row, READING);
        Ok(KnownName {
            name: cells.text(0)?,
            raw_sha256: cells.text(1)?,
            raw_bytes: cells.big(2)?,
            modified_at: cells.maybe_at(3)?,
            first_seen_at: cells.at(4)?,
            archived_at: cells.maybe_at(5)?,
            file: cells.big(6)?,
            state: cells.word(7, FileState::parse)?,
            is_settled: cells.flag(8)?,
            read_by: (cells.text(9)?, cells.text(10)?),
            tried_keys: cells.maybe_text(11)?,
            lines: cells.big(12)?,
            is_held: cells.flag(13)?,
        })
    });
    names.collect()
}

pub(super) async fn archived(
    pool: &PgPool,
    source: &str,
    name: &str,
    raw_sha256: &str,
    now: Instant,
) -> Result<(), StoreError> {
    sqlx::query(
        "update tieout_file_names set archived_at = $4 \
         where source = $1 and name = $2 and raw_sha256 = $3",
    )
    .bind(source)
    .bind(clean(name))
    .bind(raw_sha256)
    .bind(now)
    .execute(pool)
    .await
    .map(|_| ())
    .map_err(failed(NOTING))
}

pub(super) async fn spooled(pool: &PgPool, file: i64, place: &str) -> Result<(), StoreError> {
    sqlx::query("update tieout_files set spooled_as = $2 where id = $1 and state = 'quarantined'")
        .bind(file)
        .bind(place)
        .execute(pool)
        .await
        .map(|_| ())
        .map_err(failed(NOTING))
}

pub(super) async fn put_absent(
    pool: &PgPool,
    run_id: &str,
    case: &AbsentCase,
    now: Instant,
) -> Result<(), StoreError> {
    sqlx::query(PUT_FILE_CASE)
        .bind(case.subject())
        .bind(Reason::FileMissing.as_str())
        .bind(clean(&case.text))
        .bind(&case.account)
        .bind(now)
        .bind(run_id)
        .execute(pool)
        .await
        .map(|_| ())
        .map_err(failed(CASE))
}

pub(super) async fn close_absent(
    pool: &PgPool,
    run_id: &str,
    source: &str,
    but: &[String],
    now: Instant,
) -> Result<u64, StoreError> {
    let closed = sqlx::query(
        "update tieout_cases set state = 'closed', closed_at = $3, closed_run = $4, \
         resolution = $5 where state = 'open' and subject_kind = 'file' and reason = $6 \
         and starts_with(subject, $1 || ': ') and subject <> all($2)",
    )
    .bind(source)
    .bind(but)
    .bind(now)
    .bind(run_id)
    .bind(THERE_NOW)
    .bind(Reason::FileMissing.as_str())
    .execute(pool)
    .await
    .map_err(failed(CASE))?;
    Ok(closed.rows_affected())
}
