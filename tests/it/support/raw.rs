//! SQL on either database from outside of the product: for setting up, tampering and checking.

use sqlx::pool::PoolOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, Executor as _, PgPool, Row as _, SqlitePool};
use std::str::FromStr as _;
use std::time::Duration;

/// Longer than this no statement of a test takes, however busy the machine is.
const LONGEST: Duration = Duration::from_secs(240);

/// A pool that ends no connection by itself: the driver's way of doing so can keep a runtime from
/// ending, as the product's `store::pool` says.
pub fn lasting<DB: sqlx::Database>(most: u32) -> PoolOptions<DB> {
    PoolOptions::new().max_connections(most).idle_timeout(None).max_lifetime(None)
}

/// Waits for a statement. One that does not end is a failure that names it.
async fn ended<T>(work: impl Future<Output = T>, sql: &str) -> T {
    let ended = tokio::time::timeout(LONGEST, work).await;
    ended.unwrap_or_else(|_elapsed| panic!("it runs for {LONGEST:?}: {sql}"))
}

/// A connection of the test's own.
#[derive(Debug, Clone)]
pub enum Raw {
    /// A file.
    Sqlite(SqlitePool),
    /// A server.
    Postgres(PgPool),
}

impl Raw {
    /// Opens `postgres://…`, `sqlite://…`, or the path of an SQLite file.
    pub async fn open(place: &str) -> Self {
        if place.starts_with("postgres") {
            let pool = lasting(2).connect(place).await;
            return Self::Postgres(pool.expect("the test's own connection"));
        }
        let url = if place.starts_with("sqlite:") {
            place.to_owned()
        } else {
            format!("sqlite://{place}")
        };
        let options = SqliteConnectOptions::from_str(&url)
            .unwrap()
            .create_if_missing(true)
            .busy_timeout(Duration::from_secs(30))
            // Tampering must not be stopped by what the product itself asks for.
            .foreign_keys(false);
        let pool = lasting(1).connect_with(options).await;
        Self::Sqlite(pool.expect("the test's own connection"))
    }

    /// Runs statements, several at once if need be.
    pub async fn try_execute(&self, sql: &str) -> Result<u64, sqlx::Error> {
        let query = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        match self {
            Self::Sqlite(pool) => {
                ended(pool.execute(query), sql).await.map(|done| done.rows_affected())
            }
            Self::Postgres(pool) => {
                ended(pool.execute(query), sql).await.map(|done| done.rows_affected())
            }
        }
    }

    /// As [`Raw::try_execute`], and must not fail; says how many rows it changed.
    pub async fn execute(&self, sql: &str) -> u64 {
        self.try_execute(sql).await.unwrap_or_else(|error| panic!("{error}\nin: {sql}"))
    }

    /// Waits until somebody waits for a lock of this database: a server's alone.
    pub async fn until_a_lock_is_waited_for(&self) {
        let waiting = "select count(*)::text from pg_stat_activity \
             where datname = current_database() and wait_event_type = 'Lock'";
        for _try in 0..4_000 {
            if self.one(waiting).await != "0" {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("nobody waits for a lock");
    }

    /// The rows of a query whose columns are all texts: cast what is not.
    pub async fn rows(&self, sql: &str) -> Vec<Vec<Option<String>>> {
        let query = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        let text = |error: sqlx::Error| -> ! { panic!("{error}\nin: {sql}") };
        match self {
            Self::Sqlite(pool) => {
                let rows =
                    ended(pool.fetch_all(query), sql).await.unwrap_or_else(|error| text(error));
                let cells = |row: &sqlx::sqlite::SqliteRow| {
                    (0..row.len()).map(|i| row.try_get(i).unwrap_or_else(|e| text(e))).collect()
                };
                rows.iter().map(cells).collect()
            }
            Self::Postgres(pool) => {
                let rows =
                    ended(pool.fetch_all(query), sql).await.unwrap_or_else(|error| text(error));
                let cells = |row: &sqlx::postgres::PgRow| {
                    (0..row.len()).map(|i| row.try_get(i).unwrap_or_else(|e| text(e))).collect()
                };
                rows.iter().map(cells).collect()
            }
        }
    }

    /// The one text of a query of one row and one column.
    pub async fn one(&self, sql: &str) -> String {
        let rows = self.rows(sql).await;
        match rows.as_slice() {
            [row] if row.len() == 1 => row[0].clone().unwrap_or_else(|| "NULL".to_owned()),
            other => panic!("expected one text, and got {other:?}\nin: {sql}"),
        }
    }

    /// Whether this is SQLite.
    pub fn is_sqlite(&self) -> bool {
        matches!(self, Self::Sqlite(_))
    }

    /// Ends the connections.
    pub async fn close(self) {
        match self {
            Self::Sqlite(pool) => ended(pool.close(), "the end of the connection").await,
            Self::Postgres(pool) => ended(pool.close(), "the end of the connections").await,
        }
    }
}
