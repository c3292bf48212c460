//! A PostgreSQL database of its own for each test, in a few milliseconds, and gone at its end.
//!
//! Databases are copied from a template, which the first test that wants it builds. The template
//! is named by the digest of what it is made from, built under another name and renamed when it
//! is whole, so that no test ever copies half of one, whichever process was killed.

use super::need_env;
use super::raw::lasting;
use sha2::{Digest as _, Sha256};
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};
use std::time::Duration;

/// One test's database. It is dropped with this value, unless the test failed.
pub struct Database {
    name: String,
    url: String,
}

impl Database {
    /// Its name at the server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its address, straight to the server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The same database through pgbouncer in transaction mode, which tieout must refuse.
    pub fn pgbouncer_url(&self) -> String {
        address(&need_env("TEST_PGBOUNCER_URL"), &self.name)
    }

    /// The same through a pooler that drops a session's settings in silence, and takes its server
    /// connections in turn; in transaction mode too.
    pub fn lenient_pgbouncer_url(&self) -> String {
        address(&need_env("TEST_PGBOUNCER_LENIENT_URL"), &self.name)
    }

    /// The same through pgbouncer in session mode, which must do.
    pub fn session_pgbouncer_url(&self) -> String {
        address(&need_env("TEST_PGBOUNCER_SESSION_URL"), &self.name)
    }

    /// The same database on the streaming replica, once it has everything written so far.
    pub async fn replica_url(&self) -> String {
        let url = address(&need_env("TEST_POSTGRES_REPLICA_URL"), &self.name);
        let mut primary = PgConnection::connect(&self.url).await.expect("the primary");
        let written: String = sqlx::query_scalar("select pg_current_wal_insert_lsn()::text")
            .fetch_one(&mut primary)
            .await
            .expect("the primary's position");
        let mut replica =
            PgConnection::connect(&need_env("TEST_POSTGRES_REPLICA_URL")).await.expect("a replica");
        let caught_up = "select pg_last_wal_replay_lsn() >= $1::pg_lsn";
        for _ in 0..18_000 {
            let done: bool = sqlx::query_scalar(caught_up)
                .bind(&written)
                .fetch_one(&mut replica)
                .await
                .expect("the replica's position");
            if done {
                return url;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the replica did not reach {written} within 3 minutes");
    }

    /// A small pool on it.
    pub async fn pool(&self) -> PgPool {
        lasting(5).connect(&self.url).await.expect("the test database")
    }

    /// Runs statements on it, several at once if need be.
    pub async fn execute(&self, sql: impl Into<String>) {
        let sql = sql.into();
        let mut connection = PgConnection::connect(&self.url).await.expect("the test database");
        let done = connection.execute(sqlx::raw_sql(AssertSqlSafe(sql.clone()))).await;
        done.unwrap_or_else(|error| panic!("{error}\nin: {sql}"));
        connection.close().await.expect("closing");
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the database of the failed test is kept: {}", self.url);
            return;
        }
        // A thread and runtime of its own: a test's runtime cannot be waited for inside a drop.
        let sql = format!("drop database if exists {} with (force)", self.name);
        let dropped = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async { run(&mut server().await, &sql).await.unwrap() });
        });
        dropped.join().expect("dropping the test database");
    }
}

/// An empty database.
pub async fn postgres_database() -> Database {
    create("template1").await.expect("an empty database")
}

/// A copy of the template made by `build`, which gets the address of an empty database and must
/// close its connections. `made_from` is everything that the template depends on, such as the text
/// of the migrations: another text, another template.
pub async fn postgres_database_from(made_from: &str, build: impl AsyncFnOnce(String)) -> Database {
    let digest = Sha256::digest(made_from);
    let template = format!("tieout_template_{}", hex(&digest[..8]));
    if let Ok(database) = create(&template).await {
        return database;
    }
    let mut server = server().await;
    let key = i64::from_be_bytes(digest[..8].try_into().unwrap());
    sqlx::query("select pg_advisory_lock($1)").bind(key).execute(&mut server).await.unwrap();
    let there: bool =
        sqlx::query_scalar("select exists (select from pg_database where datname = $1)")
            .bind(&template)
            .fetch_one(&mut server)
            .await
            .unwrap();
    if !there {
        let unfinished = fresh_name();
        run(&mut server, &format!("create database {unfinished}")).await.unwrap();
        build(address(&need_env("TEST_POSTGRES_URL"), &unfinished)).await;
        rename(&mut server, &unfinished, &template).await;
    }
    server.close().await.unwrap(); // ends the lock
    create(&template).await.expect("a copy of the template")
}

/// A copy of a database that nobody is connected to, or will not be in a moment.
pub async fn copy_of(database: &Database) -> Database {
    create(database.name()).await.expect("a copy of the database")
}

/// Makes a role that may log in; roles belong to the whole server, which other tests share. All is
/// one transaction, and the lock ends after its commit: nobody misses a role that is being made.
pub async fn login_role(name: &str) {
    let mut server = server().await;
    let sql = format!(
        "select pg_advisory_xact_lock(hashtextextended('roles of the tests', 0)); \
         do $$ begin if not exists (select from pg_roles where rolname = '{name}') then \
         create role {name} login; \
         elsif exists (select from pg_roles where rolname = '{name}' and not rolcanlogin) then \
         alter role {name} login; end if; end $$"
    );
    run(&mut server, &sql).await.unwrap();
    server.close().await.unwrap();
}

async fn create(template: &str) -> Result<Database, sqlx::Error> {
    let name = fresh_name();
    let mut server = server().await;
    let sql = format!("create database {name} template {template} strategy file_copy");
    loop {
        match run(&mut server, &sql).await {
            Ok(()) => break,
            // Somebody is connected to the template for a moment, and will be gone.
            Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("55006") => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => return Err(error),
        }
    }
    let url = address(&need_env("TEST_POSTGRES_URL"), &name);
    Ok(Database { name, url })
}

/// A server process outlives its closed connection by a moment, and bars the renaming so long.
async fn rename(server: &mut PgConnection, from: &str, to: &str) {
    let mut last = None;
    for _ in 0..250 {
        match run(server, &format!("alter database {from} rename to {to}")).await {
            Ok(()) => return,
            Err(error) => last = Some(error),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the template's builder left a connection open: {last:?}");
}

async fn server() -> PgConnection {
    let url = need_env("TEST_POSTGRES_URL");
    PgConnection::connect(&url).await.unwrap_or_else(|error| panic!("{url}: {error}"))
}

async fn run(server: &mut PgConnection, sql: &str) -> Result<(), sqlx::Error> {
    server.execute(sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))).await.map(|_| ())
}

fn address(server: &str, database: &str) -> String {
    let (host, _) = server.rsplit_once('/').expect("an address that ends in a database");
    format!("{host}/{database}")
}

fn fresh_name() -> String {
    format!("t_{}", uuid::Uuid::now_v7().simple())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn each_test_has_its_own_database_and_leaves_none() {
    let (one, other) = (postgres_database().await, postgres_database().await);
    assert_ne!(one.url(), other.url());
    one.execute("create table only_here (id bigint); insert into only_here values (1)").await;
    let seen: Option<String> = sqlx::query_scalar("select to_regclass('only_here')::text")
        .fetch_one(&other.pool().await)
        .await
        .unwrap();
    assert_eq!(seen, None);

    let pool_still_open = one.pool().await;
    let name = one.name().to_owned();
    drop(one);
    let left: i64 = sqlx::query_scalar("select count(*) from pg_database where datname = $1")
        .bind(name)
        .fetch_one(&mut server().await)
        .await
        .unwrap();
    assert_eq!(left, 0);
    drop(pool_still_open);
}

#[tokio::test]
async fn a_template_is_built_once_however_many_want_it_at_once() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let built = AtomicUsize::new(0);
    let made_from = format!("create table t as select '{}' as x", fresh_name());
    let copy = || {
        postgres_database_from(&made_from, async |url| {
            built.fetch_add(1, Ordering::Relaxed);
            let mut connection = PgConnection::connect(&url).await.unwrap();
            run(&mut connection, &made_from).await.unwrap();
            connection.close().await.unwrap();
        })
    };
    let (one, two, three) = tokio::join!(copy(), copy(), copy());
    assert_eq!(built.load(Ordering::Relaxed), 1);
    for database in [one, two, three] {
        let rows: i64 = sqlx::query_scalar("select count(*) from t")
            .fetch_one(&database.pool().await)
            .await
            .unwrap();
        assert_eq!(rows, 1);
    }
    let template = format!("tieout_template_{}", hex(&Sha256::digest(&made_from)[..8]));
    run(&mut server().await, &format!("drop database {template}")).await.unwrap();
}

#[tokio::test]
async fn the_replica_follows_and_is_in_recovery() {
    let database = postgres_database().await;
    database.execute("create table followed as select 7 as x").await;
    let mut replica = PgConnection::connect(&database.replica_url().await).await.unwrap();
    let (recovering, x): (bool, i32) =
        sqlx::query_as("select pg_is_in_recovery(), x from followed")
            .fetch_one(&mut replica)
            .await
            .unwrap();
    assert!(recovering);
    assert_eq!(x, 7);
}

#[tokio::test]
async fn pgbouncer_stands_before_the_same_database_and_refuses_startup_options() {
    use std::str::FromStr as _;
    let database = postgres_database().await;
    let through = sqlx::postgres::PgConnectOptions::from_str(&database.pgbouncer_url()).unwrap();
    let mut connection = PgConnection::connect_with(&through).await.unwrap();
    let name: String = sqlx::query_scalar("select current_database()::text")
        .persistent(false)
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(name, database.name());
    let refused = PgConnection::connect_with(&through.options([("tieout.session", "x")])).await;
    assert!(refused.unwrap_err().to_string().contains("options"), "it must be told from a server");
}
