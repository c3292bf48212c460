//! tieout's own tables in this file: made once, their number asked cheaply.

use sqlx::SqlSafeStr as _;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::sqlite::SqliteConnection;

use crate::store::error::StoreError;
use crate::store::sqlite::sql::{failed, fetch};

const MIGRATING: &str = "making tieout's tables";

/// Where the numbers of the migrations stand; the user's own `_sqlx_migrations` is not ours.
const TABLE: &str = "tieout_migrations";

/// Every migration of this binary. A new one is a file of the next number and a line here, and
/// its twin in the other database's folder.
const MIGRATIONS: &[(i64, &str, &str)] = &[
    (1, "init", include_str!("../../../migrations/sqlite/0001_init.sql")),
    (2, "monitoring", include_str!("../../../migrations/sqlite/0002_monitoring.sql")),
    (3, "prunes", include_str!("../../../migrations/sqlite/0003_prunes.sql")),
    (4, "files", include_str!("../../../migrations/sqlite/0004_files.sql")),
    (5, "release", include_str!("../../../migrations/sqlite/0005_release.sql")),
    (6, "line_marks", include_str!("../../../migrations/sqlite/0006_line_marks.sql")),
    (7, "compared", include_str!("../../../migrations/sqlite/0007_compared.sql")),
    (8, "line_names", include_str!("../../../migrations/sqlite/0008_line_names.sql")),
    (9, "batches", include_str!("../../../migrations/sqlite/0009_batches.sql")),
    (10, "taken_out", include_str!("../../../migrations/sqlite/0010_taken_out.sql")),
    (11, "people", include_str!("../../../migrations/sqlite/0011_people.sql")),
    (12, "delivery", include_str!("../../../migrations/sqlite/0012_delivery.sql")),
    (13, "lapses", include_str!("../../../migrations/sqlite/0013_lapses.sql")),
    (14, "runs_word", include_str!("../../../migrations/sqlite/0014_runs_word.sql")),
    (15, "case_lists", include_str!("../../../migrations/sqlite/0015_case_lists.sql")),
    (16, "releases", include_str!("../../../migrations/sqlite/0016_releases.sql")),
    (17, "guards", include_str!("../../../migrations/sqlite/0017_guards.sql")),
    (18, "said_now", include_str!("../../../migrations/sqlite/0018_said_now.sql")),
    (19, "closed_runs", include_str!("../../../migrations/sqlite/0019_closed_runs.sql")),
    (20, "tried_letters", include_str!("../../../migrations/sqlite/0020_tried_letters.sql")),
    (21, "said_by_whom", include_str!("../../../migrations/sqlite/0021_said_by_whom.sql")),
    (22, "noted", include_str!("../../../migrations/sqlite/0022_noted_of_proposals.sql")),
    (23, "rejected", include_str!("../../../migrations/sqlite/0023_rejected_by_people.sql")),
    (24, "line cases", include_str!("../../../migrations/sqlite/0024_line_cases.sql")),
    (25, "lines of payouts", include_str!("../../../migrations/sqlite/0025_lines_of_payouts.sql")),
    (
        26,
        "taken out of cases",
        include_str!("../../../migrations/sqlite/0026_taken_out_of_cases.sql"),
    ),
    (27, "zones of files", include_str!("../../../migrations/sqlite/0027_zones_of_files.sql")),
    (
        28,
        "taken out of nobody",
        include_str!("../../../migrations/sqlite/0028_taken_out_of_nobody.sql"),
    ),
    (
        29,
        "encodings of files",
        include_str!("../../../migrations/sqlite/0029_encodings_of_files.sql"),
    ),
];

fn all() -> Vec<Migration> {
    let migrations = MIGRATIONS.iter().map(|(number, name, text)| {
        let text = (*text).into_sql_str();
        Migration::new(*number, (*name).into(), MigrationType::Simple, text, false)
    });
    migrations.collect()
}

/// The number of the last migration of this binary.
fn wanted() -> i64 {
    all().iter().map(|migration| migration.version).max().unwrap_or(0)
}

/// Makes or completes the tables, within the caller's transaction: two processes that start at
/// once on a new file do it one after the other, and the second finds nothing to do.
pub(super) async fn migrate(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let found = found(connection).await?;
    if found > wanted() {
        return Err(StoreError::SchemaAhead { found, wanted: wanted() });
    }
    let mut migrator = Migrator::with_migrations(all());
    migrator.dangerous_set_table_name(TABLE);
    migrator.run(connection).await.map_err(refused)
}

fn refused(error: MigrateError) -> StoreError {
    let message = match error {
        MigrateError::Execute(source) | MigrateError::ExecuteMigration(source, _) => {
            return failed(MIGRATING)(source);
        }
        other => other.to_string(),
    };
    StoreError::Unexpected { doing: MIGRATING, problem: message }
}

async fn found(connection: &mut SqliteConnection) -> Result<i64, StoreError> {
    let there =
        sqlx::query("select 1 from sqlite_master where type = 'table' and name = ?1").bind(TABLE);
    if fetch(connection, MIGRATING, there).await?.is_empty() {
        return Ok(0);
    }
    sqlx::query_scalar("select coalesce(max(version), 0) from tieout_migrations where success")
        .fetch_one(connection)
        .await
        .map_err(failed(MIGRATING))
}

pub(super) async fn state(connection: &mut SqliteConnection) -> Result<(i64, i64), StoreError> {
    Ok((found(connection).await?, wanted()))
}
