//! tieout's own tables: made and brought up to date, never the user's.

use sqlx::SqlSafeStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::postgres::PgPool;

use crate::store::error::{CLOSED_SCHEMA, StoreError};
use crate::store::postgres::errors::{answered, failed};
use crate::store::postgres::schemas;

const TABLE: &str = "tieout_migrations";

/// Number, name and text of each migration. Adding one: a file, a line here, and its twin at
/// SQLite. One that ever left this house is never changed.
pub(super) const MIGRATIONS: &[(i64, &str, &str)] = &[
    (1, "init", include_str!("../../../migrations/postgres/0001_init.sql")),
    (2, "monitoring", include_str!("../../../migrations/postgres/0002_monitoring.sql")),
    (3, "prunes", include_str!("../../../migrations/postgres/0003_prunes.sql")),
    (4, "files", include_str!("../../../migrations/postgres/0004_files.sql")),
    (5, "release", include_str!("../../../migrations/postgres/0005_release.sql")),
    (6, "line_marks", include_str!("../../../migrations/postgres/0006_line_marks.sql")),
    (7, "compared", include_str!("../../../migrations/postgres/0007_compared.sql")),
    (8, "line_names", include_str!("../../../migrations/postgres/0008_line_names.sql")),
    (9, "batches", include_str!("../../../migrations/postgres/0009_batches.sql")),
    (10, "taken_out", include_str!("../../../migrations/postgres/0010_taken_out.sql")),
    (11, "people", include_str!("../../../migrations/postgres/0011_people.sql")),
    (12, "delivery", include_str!("../../../migrations/postgres/0012_delivery.sql")),
    (13, "lapses", include_str!("../../../migrations/postgres/0013_lapses.sql")),
    (14, "runs_word", include_str!("../../../migrations/postgres/0014_runs_word.sql")),
    (15, "case_lists", include_str!("../../../migrations/postgres/0015_case_lists.sql")),
    (16, "releases", include_str!("../../../migrations/postgres/0016_releases.sql")),
    (17, "guards", include_str!("../../../migrations/postgres/0017_guards.sql")),
    (18, "said_now", include_str!("../../../migrations/postgres/0018_said_now.sql")),
    (19, "closed_runs", include_str!("../../../migrations/postgres/0019_closed_runs.sql")),
    (20, "tried_letters", include_str!("../../../migrations/postgres/0020_tried_letters.sql")),
    (21, "said_by_whom", include_str!("../../../migrations/postgres/0021_said_by_whom.sql")),
    (22, "noted", include_str!("../../../migrations/postgres/0022_noted_of_proposals.sql")),
    (23, "rejected", include_str!("../../../migrations/postgres/0023_rejected_by_people.sql")),
    (24, "line cases", include_str!("../../../migrations/postgres/0024_line_cases.sql")),
    (
        25,
        "lines of payouts",
        include_str!("../../../migrations/postgres/0025_lines_of_payouts.sql"),
    ),
    (
        26,
        "taken out of cases",
        include_str!("../../../migrations/postgres/0026_taken_out_of_cases.sql"),
    ),
    (27, "zones of files", include_str!("../../../migrations/postgres/0027_zones_of_files.sql")),
    (
        28,
        "taken out of nobody",
        include_str!("../../../migrations/postgres/0028_taken_out_of_nobody.sql"),
    ),
    (
        29,
        "encodings of files",
        include_str!("../../../migrations/postgres/0029_encodings_of_files.sql"),
    ),
];

/// tieout's tables are brought up to date where they are, be it that another schema comes first by
/// now: a second set of them would know nothing of what was decided and paused.
const WHERE_THEY_ARE: &str = "\
select set_config('search_path', quote_ident(n.nspname) || ', ' || current_setting('search_path'), \
 false)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.oid = to_regclass('tieout_migrations') and n.nspname is distinct from current_schema()";

pub(super) async fn migrate(pool: &PgPool) -> Result<(), StoreError> {
    see_schema(pool, &search_path(pool).await?).await?;
    let doing = "bringing tieout's tables up to date";
    let mut connection = pool.acquire().await.map_err(failed(doing))?;
    // Its path is no other statement's.
    connection.close_on_drop();
    sqlx::query(WHERE_THEY_ARE).execute(&mut *connection).await.map_err(failed(doing))?;
    let migrations = MIGRATIONS.iter().map(|(number, name, text)| {
        Migration::new(
            *number,
            (*name).into(),
            MigrationType::Simple,
            (*text).into_sql_str(),
            false,
        )
    });
    let mut migrator = Migrator::with_migrations(migrations.collect());
    migrator.dangerous_set_table_name(TABLE);
    migrator.run(&mut *connection).await.map_err(|error| match error {
        sqlx::migrate::MigrateError::Execute(error)
        | sqlx::migrate::MigrateError::ExecuteMigration(error, _) => {
            homeless(&error).unwrap_or_else(|| failed(doing)(error))
        }
        other => {
            let message = other.to_string();
            StoreError::Query { doing, message, code: None, detail: None, asker: None }
        }
    })
}

/// (found, wanted).
pub(super) async fn state(pool: &PgPool) -> Result<(i64, i64), StoreError> {
    let wanted = MIGRATIONS.last().map_or(0, |(number, ..)| *number);
    let found: Result<(i64, String), sqlx::Error> = sqlx::query_as(
        "select coalesce(max(version), 0), current_setting('search_path') from tieout_migrations \
         where success",
    )
    .fetch_one(pool)
    .await;
    match found {
        Ok((found, path)) => {
            // Of several schemas the server may have passed over the one that is meant.
            if schemas::named(&path).len() > 1 {
                see_schema(pool, &path).await?;
            }
            Ok((found, wanted))
        }
        Err(error) if answered(&error).is_some_and(|pg| pg.code() == "42P01") => {
            see_schema(pool, &search_path(pool).await?).await?;
            Ok((0, wanted))
        }
        Err(error) => Err(failed(READING)(error)),
    }
}

const READING: &str = "reading the schema's number";

/// What is wrong where the server knows no schema to make tables in.
fn homeless(error: &sqlx::Error) -> Option<StoreError> {
    answered(error).filter(|pg| pg.code() == "3F000")?;
    let problem = "it leads to no schema that is there and that this login may use, so that \
                   tieout's tables have no place"
        .to_owned();
    Some(StoreError::Setting { field: "search_path".to_owned(), problem })
}

/// A schema of the search path that has tieout's tables before any other, and that this login may
/// not look into: as it is called, and as SQL names it.
const CLOSED: &str = "\
select n.nspname::text, quote_ident(n.nspname)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relname = 'tieout_migrations' and not has_schema_privilege(n.oid, 'usage')
and n.nspname = any ($1) and (to_regclass('tieout_migrations') is null
 or array_position($1, n.nspname::text) < (select array_position($1, s.nspname::text)
  from pg_class t join pg_namespace s on s.oid = t.relnamespace
  where t.oid = to_regclass('tieout_migrations')))
order by array_position($1, n.nspname::text) limit 1";

/// A schema that the server passes over for want of a right, as if tieout's tables were not there.
pub(super) struct Closed {
    pub(super) name: String,
    pub(super) quoted: String,
}

/// The schema of tieout's tables, where this login may not look into it.
pub(super) async fn closed(pool: &PgPool) -> Result<Option<Closed>, StoreError> {
    closed_of(pool, &search_path(pool).await?).await
}

async fn search_path(pool: &PgPool) -> Result<String, StoreError> {
    let path = sqlx::query_scalar("select current_setting('search_path')").fetch_one(pool).await;
    path.map_err(failed(READING))
}

async fn closed_of(pool: &PgPool, path: &str) -> Result<Option<Closed>, StoreError> {
    let closed: Option<(String, String)> = sqlx::query_as(CLOSED)
        .bind(schemas::named(path))
        .fetch_optional(pool)
        .await
        .map_err(failed(READING))?;
    Ok(closed.map(|(name, quoted)| Closed { name, quoted }))
}

/// Refuses a schema that this login may not look into: the tables are there.
async fn see_schema(pool: &PgPool, path: &str) -> Result<(), StoreError> {
    let Some(Closed { name, .. }) = closed_of(pool, path).await? else { return Ok(()) };
    let message = format!("{CLOSED_SCHEMA}{name}");
    let code = Some("42501".to_owned());
    Err(StoreError::Query { doing: READING, message, code, detail: None, asker: None })
}
