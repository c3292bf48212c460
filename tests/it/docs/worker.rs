//! The statements by which docs/how-it-decides.md takes a hand-back, run on PostgreSQL.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Row as _};

use super::{blocks, read};
use crate::support::postgres::{Database, postgres_database};
use crate::support::tieout_bin;

const TABLES: &str = "
    create table charges (id bigint primary key, status text not null,
        last_attempted_at timestamptz, attempt integer not null default 1);
    insert into charges (id, status) values (7, '{status}');
    insert into tieout_runs (id, command, state, started_at, heartbeat_at, host, pid, version,
        config_sha256, policy_version, scope) values ('r', 'run', 'running', now(), now(), 'h', 1,
        '0', '', '', '{}');
    insert into tieout_handbacks (table_name, key, number, run_id, at, account, fingerprint, permit,
        retry, same_key_until, charge_before, evidence_sha256) values ('charges', '7', 1, 'r',
        now(), 'a', 'f', 'absent', 'same_key', now() + interval '1 day',
        now() + interval '1 hour', 'e')";

/// A database with one row and one hand-back that is there to take.
async fn handed_back(status: &str) -> (Database, PgConnection) {
    let database = postgres_database().await;
    let folder = tempfile::tempdir().unwrap();
    let config = format!(
        "business_timezone = \"UTC\"\n[database]\nurl = \"{}\"\n\
         [[account]]\nname = \"a\"\npsp = \"stripe\"\nmode = \"full\"\nlivemode = false\n\
         key_env = \"K\"\n[[table]]\nname = \"charges\"\nread = \"charges\"\nkey = [\"id\"]\n\
         tag = \"{{id}}\"\namount = {{ column = \"attempt\", unit = \"minor\" }}\n\
         currency = {{ const = \"EUR\" }}\naccount = {{ const = \"a\" }}\nstatus = \"status\"\n\
         created = \"last_attempted_at\"\nmode = \"full\"\n\
         map = [{{ from = [\"processing\"], succeeded = \"paid\" }}]\n",
        database.url()
    );
    std::fs::write(folder.path().join("tieout.toml"), config).unwrap();
    let migrate = std::process::Command::new(tieout_bin())
        .args(["db", "migrate", "--quiet"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(migrate.status.success(), "{migrate:?}");
    database.execute(TABLES.replace("{status}", status)).await;
    let connection = PgConnection::connect(database.url()).await.unwrap();
    (database, connection)
}

/// Takes a hand-back as a worker would: statement by statement, giving up where the page says so.
/// The number of the attempt to send, where there is one.
async fn take(connection: &mut PgConnection, channel: &str) -> Option<i32> {
    let mark = format!("-- PostgreSQL, {channel}:");
    let page = read("docs/how-it-decides.md");
    let text = blocks(&page, "sql").into_iter().find(|block| block.starts_with(&mark));
    let text = text.unwrap_or_else(|| panic!("no block `{mark}`"));
    let mut retry = String::new();
    let mut attempt = None;
    for statement in text.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
        let sql = statement.replace(":id", "7").replace(":retry", &format!("'{retry}'"));
        let rows = sqlx::query(AssertSqlSafe(sql.clone()))
            .fetch_all(&mut *connection)
            .await
            .unwrap_or_else(|error| panic!("{error}\n{sql}"));
        let gives = sql.contains("select ") || sql.contains("returning ");
        if gives && rows.is_empty() {
            sqlx::query("rollback").execute(&mut *connection).await.unwrap();
            return None;
        }
        if sql.contains("retry, psp_reference") {
            retry = rows[0].get("retry");
        }
        if sql.contains("returning attempt") {
            attempt = Some(rows[0].get("attempt"));
        }
    }
    attempt
}

#[tokio::test]
async fn a_worker_takes_a_hand_back_once_by_either_channel() {
    for (channel, status) in [("status", "retryable"), ("outbox", "processing")] {
        let (database, mut connection) = handed_back(status).await;
        let spoil = |set: &'static str| database.execute(format!("update tieout_handbacks {set}"));
        for (set, back) in [
            ("set ended_at = now(), end_reason = 'x'", "set ended_at = null, end_reason = null"),
            (
                "set charge_before = now() - interval '1 s'",
                "set charge_before = now() + interval '1 h'",
            ),
            ("set not_before = now() + interval '1 h'", "set not_before = null"),
            ("set taken_at = now()", "set taken_at = null"),
        ] {
            spoil(set).await;
            assert_eq!(take(&mut connection, channel).await, None, "{channel}: {set}");
            spoil(back).await;
        }
        assert_eq!(take(&mut connection, channel).await, Some(1), "{channel}: the same key");
        assert_eq!(take(&mut connection, channel).await, None, "{channel}: taken is taken");
        let row = sqlx::query("select status, last_attempted_at is not null from charges");
        let row = row.fetch_one(&mut connection).await.unwrap();
        assert_eq!((row.get(0), row.get(1)), ("processing".to_owned(), true), "{channel}");
    }
}

/// The excerpts of docs/charging-worker.md, each of a language whose worker has it word by word.
#[test]
fn the_excerpts_are_the_examples() {
    let page = read("docs/charging-worker.md");
    let mut seen = 0;
    for (language, file) in [("python", "charge_worker.py"), ("ruby", "charge_worker.rb")] {
        let example = read(&format!("examples/{language}/{file}"));
        for excerpt in blocks(&page, language) {
            assert!(example.contains(excerpt.trim_end()), "{file} has no such lines:\n{excerpt}");
            seen += 1;
        }
    }
    assert!(seen >= 6, "{seen} excerpts");
}

/// A hand-back is no permit for what was sent after it: a status that a person set back by hand.
#[tokio::test]
async fn a_hand_back_that_is_older_than_the_last_send_is_not_taken() {
    for (channel, status) in [("status", "retryable"), ("outbox", "processing")] {
        let (database, mut connection) = handed_back(status).await;
        let at = |when: &'static str| {
            let sql = format!("update charges set last_attempted_at = now() + interval '{when}'");
            database.execute(sql)
        };
        at("1 s").await;
        assert_eq!(take(&mut connection, channel).await, None, "{channel}");
        at("-1 h").await;
        assert_eq!(take(&mut connection, channel).await, Some(1), "{channel}");
    }
}

#[tokio::test]
async fn two_workers_do_not_take_one_hand_back() {
    for (channel, status) in [("status", "retryable"), ("outbox", "processing")] {
        let (database, mut one) = handed_back(status).await;
        database
            .execute("update tieout_handbacks set retry = 'new_attempt', same_key_until = null")
            .await;
        let mut other = PgConnection::connect(database.url()).await.unwrap();
        let (a, b) = tokio::join!(take(&mut one, channel), take(&mut other, channel));
        let mut taken: Vec<Option<i32>> = vec![a, b];
        taken.sort_unstable();
        assert_eq!(taken, [None, Some(2)], "{channel}: a new key, once");
    }
}
