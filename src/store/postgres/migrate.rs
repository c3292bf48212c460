//! tieout's own tables: made and brought up to date, never the user's.

use sqlx::SqlSafeStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::postgres::PgPool;

use crate::store::error::StoreError;
use crate::store::postgres::errors::{answered, failed};

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
];

pub(super) async fn migrate(pool: &PgPool) -> Result<(), StoreError> {
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
    migrator.run(pool).await.map_err(|error| {
        let doing = "bringing tieout's tables up to date";
        match error {
            sqlx::migrate::MigrateError::Execute(error)
            | sqlx::migrate::MigrateError::ExecuteMigration(error, _) => failed(doing)(error),
            other => {
                let message = other.to_string();
                StoreError::Query { doing, message, code: None, detail: None, asker: None }
            }
        }
    })
}

/// (found, wanted).
pub(super) async fn state(pool: &PgPool) -> Result<(i64, i64), StoreError> {
    let wanted = MIGRATIONS.last().map_or(0, |(number, ..)| *number);
    let found =
        sqlx::query_scalar("select coalesce(max(version), 0) from tieout_migrations where success")
            .fetch_one(pool)
            .await;
    match found {
        Ok(found) => Ok((found, wanted)),
        Err(error) if answered(&error).is_some_and(|pg| pg.code() == "42P01") => {
            see_schema(pool).await?;
            Ok((0, wanted))
        }
        Err(error) => Err(failed(READING)(error)),
    }
}

const READING: &str = "reading the schema's number";

/// A schema of the search path that has tieout's tables, and that this login may not look into.
const CLOSED: &str = "\
select n.nspname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relname = 'tieout_migrations' and not has_schema_privilege(n.oid, 'usage')
and n.nspname = any (string_to_array(
    replace(replace(current_setting('search_path'), '\"', ''), ', ', ','), ','))
limit 1";

/// Refuses a schema that the server passes over for want of a right: the tables are there.
async fn see_schema(pool: &PgPool) -> Result<(), StoreError> {
    let closed: Option<String> =
        sqlx::query_scalar(CLOSED).fetch_optional(pool).await.map_err(failed(READING))?;
    let Some(schema) = closed else { return Ok(()) };
    let message = format!("permission denied for schema {schema}");
    let code = Some("42501".to_owned());
    Err(StoreError::Query { doing: READING, message, code, detail: None, asker: None })
}
