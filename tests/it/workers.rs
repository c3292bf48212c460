//! The workers of `examples/`, started for real by `tests/workers/storm.py`: killed at random and
//! at each of their lines, beside runs of the built program that are killed too.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use sqlx::{Connection as _, Executor as _, SqliteConnection};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

use crate::run::shop::signal;
use crate::support::{need_env, tieout_bin};

/// Runs the script, which says what is wrong and exits 1 where anything is. Its figures.
async fn storm(situation: &str, [language, database, channel, keys]: [&str; 4]) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workers/storm.py");
    let mut command = Command::new(need_env("TEST_WORKERS"));
    command
        .arg(script)
        .args(["--situation", situation, "--language", language, "--database", database])
        .args(["--channel", channel, "--keys", keys, "--payments", "100", "--storm", "15"])
        .arg("--tieout")
        .arg(tieout_bin())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    if database == "postgres" {
        command.env("TEST_POSTGRES_URL", need_env("TEST_POSTGRES_URL"));
    }
    if let Ok(seed) = std::env::var("TIEOUT_TEST_SEED") {
        command.args(["--seed", &seed]);
    }
    let output = command.output().await.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    let figures: Value = serde_json::from_slice(&output.stdout).unwrap();
    eprintln!("{figures}");
    figures
}

/// One hand-back at least was made and taken, or the storm was too calm to show anything.
fn taken(figures: &Value) -> u64 {
    let kinds = figures["hand_backs"].as_object().unwrap();
    let taken = kinds.iter().filter(|(kind, _)| kind.ends_with(" taken"));
    taken.map(|(_, count)| count.as_u64().unwrap()).sum()
}

/// Each intended payment is captured once, was declined, or waits for a person.
async fn survives(worker: [&str; 4]) {
    let figures = storm("storm", worker).await;
    assert!(taken(&figures) > 0, "{figures}");
    assert!(figures["workers_killed"].as_u64().unwrap() > 5, "{figures}");
}

#[tokio::test]
async fn python_survives_a_storm_on_sqlite() {
    survives(["python", "sqlite", "status", "long"]).await;
}

#[tokio::test]
async fn python_survives_a_storm_of_forgotten_keys_on_postgres() {
    survives(["python", "postgres", "outbox", "short"]).await;
}

#[tokio::test]
async fn ruby_survives_a_storm_of_forgotten_keys_on_sqlite() {
    survives(["ruby", "sqlite", "outbox", "short"]).await;
}

#[tokio::test]
async fn ruby_survives_a_storm_on_postgres() {
    survives(["ruby", "postgres", "status", "long"]).await;
}

/// A Sidekiq that is killed loses the jobs that it had; no payment is lost with them.
#[tokio::test]
async fn sidekiq_may_lose_its_jobs() {
    let figures = storm("sidekiq", ["ruby", "postgres", "outbox", "long"]).await;
    assert!(figures["workers_killed"].as_u64().unwrap() > 0, "{figures}");
    assert!(figures["events"]["TieoutEventJob"].as_u64().unwrap() > 0, "{figures}");
}

/// Events as `tieout deliver` brings them, killed at random too.
async fn hears_of_it(worker: [&str; 4]) {
    let figures = storm("deliver", worker).await;
    assert!(taken(&figures) > 0, "{figures}");
    assert!(figures["workers_killed"].as_u64().unwrap() > 0, "{figures}");
    assert!(figures["events"]["taken"].as_u64().unwrap() > 0, "{figures}");
}

#[tokio::test]
async fn python_hears_of_it_by_deliveries() {
    hears_of_it(["python", "sqlite", "outbox", "long"]).await;
}

#[tokio::test]
async fn ruby_hears_of_it_by_deliveries() {
    hears_of_it(["ruby", "postgres", "outbox", "long"]).await;
}

/// Hand-backs that nobody is told of until they, and the keys, are long dead; or whose money tieout
/// found meanwhile.
async fn refuses(situation: &str, worker: [&str; 4]) {
    let figures = storm(situation, worker).await;
    assert!(figures["handed_back"].as_u64().unwrap() > 5, "{figures}");
    assert!(figures["turned_up_later"].as_u64().unwrap() > 1, "{figures}");
}

#[tokio::test]
async fn python_refuses_what_came_too_late() {
    refuses("late", ["python", "postgres", "outbox", "long"]).await;
}

#[tokio::test]
async fn ruby_refuses_what_came_too_late() {
    refuses("late", ["ruby", "sqlite", "status", "long"]).await;
}

#[tokio::test]
async fn python_refuses_what_was_superseded() {
    refuses("superseded", ["python", "sqlite", "status", "long"]).await;
}

#[tokio::test]
async fn ruby_refuses_what_was_superseded() {
    refuses("superseded", ["ruby", "postgres", "outbox", "long"]).await;
}

/// Killed at its first line, at its second, and so on to its end: charging, and taking.
async fn may_die_anywhere(worker: [&str; 4]) {
    let figures = storm("lines", worker).await;
    let lines = figures["killed_at_lines"].as_object().unwrap();
    assert_eq!(lines.len(), 2, "{figures}");
    for (what, count) in lines {
        assert!(count.as_u64().unwrap() > 20, "{what}: {figures}");
    }
}

#[tokio::test]
async fn python_may_die_at_any_line() {
    may_die_anywhere(["python", "sqlite", "outbox", "long"]).await;
}

#[tokio::test]
async fn ruby_may_die_at_any_line() {
    may_die_anywhere(["ruby", "postgres", "status", "long"]).await;
}

/// The worker of a language on the SQLite file of a folder, in a place where no PSP answers.
fn worker(language: &str, channel: &str, folder: &Path, word: &str) -> Command {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let (runner, script) = match language {
        "python" => (need_env("TEST_WORKERS"), "python/charge_worker.py"),
        _ruby => ("ruby".to_owned(), "ruby/charge_worker.rb"),
    };
    let mut command = Command::new(runner);
    command
        .arg(examples.join(script))
        .arg(word)
        .env("DATABASE_URL", format!("sqlite:{}", folder.join("shop.db").display()))
        .envs([("CHARGE_CHANNEL", channel), ("STRIPE_KEY", "sk_test_x")])
        .env("PSP_URL", "http://127.0.0.1:1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// An event of row 1 with some fields of its own.
fn event(fields: Value) -> Vec<u8> {
    let mut event = json!({
        "schema": "tieout.event/1", "id": "evt_1", "type": "transaction.retryable",
        "table": "charges", "key": "1", "psp_reference": null, "reason": "absent",
        "decided_at": "2026-11-19T10:45:00.000000Z", "hand_back": { "number": 1 },
    });
    let more = fields.as_object().unwrap().clone();
    event.as_object_mut().unwrap().extend(more);
    event.to_string().into_bytes()
}

async fn fed(mut command: Command, line: &[u8]) -> Output {
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&[line, b"\n"].concat()).await.unwrap();
    drop(stdin);
    child.wait_with_output().await.unwrap()
}

/// What no event is, however often it comes, is refused by its exit, and is no bug of the worker's.
async fn refuses_garbage(language: &str) {
    let folder = tempfile::tempdir().unwrap();
    let failed = |fields: Value| {
        let mut all = json!({ "type": "transaction.failed" });
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        event(all)
    };
    let mut lines = vec![
        event(json!({ "hand_back": null })),
        event(json!({ "hand_back": { "number": "1" } })),
        event(json!({ "hand_back": { "number": true } })),
        event(json!({ "key": null })),
        event(json!({ "key": 1 })),
        event(json!({ "key": "9".repeat(5_000) })),
        event(json!({ "id": null })),
        event(json!({ "type": "transaction.unheard_of" })),
        event(json!({ "schema": ["tieout.event/1"] })),
        event(json!({ "type": "transaction.succeeded", "psp_reference": "a\u{0}b" })),
        failed(json!({ "reason": {} })),
        failed(json!({ "decided_at": "2026-02-31T10:45:00.000000Z" })),
    ];
    let texts = ["", "{", "[]", "[1]", "null", "{\"schema\":\"tieout.event/1\"}"];
    lines.extend(texts.map(|text| text.as_bytes().to_vec()));
    lines.push(b"{\"schema\":\"\xff\"}".to_vec());
    lines.push(b"{\"a\":".repeat(5_000));
    for line in &lines {
        let shown = String::from_utf8_lossy(line);
        for channel in ["status", "outbox"] {
            let done = fed(worker(language, channel, folder.path(), "events"), line).await;
            let errors = String::from_utf8_lossy(&done.stderr);
            assert_eq!(done.status.code(), Some(65), "{channel} {shown}: {errors}");
            let is_short = errors.starts_with("refused: ") && errors.lines().count() == 1;
            assert!(is_short, "{channel} {shown}: {errors}");
            assert!(done.stdout.is_empty(), "{channel} {shown}");
        }
    }
    let other = event(json!({ "table": "refunds", "key": null }));
    let done = fed(worker(language, "status", folder.path(), "events"), &other).await;
    assert!(done.status.success(), "another table's keys are not its business: {done:?}");
}

#[tokio::test]
async fn python_refuses_what_is_no_event() {
    refuses_garbage("python").await;
}

#[tokio::test]
async fn ruby_refuses_what_is_no_event() {
    refuses_garbage("ruby").await;
}

/// Ctrl-C at a worker that is at its work, once it said so.
async fn ends_quietly(language: &str) {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}?mode=rwc", folder.path().join("shop.db").display());
    let mut shop = SqliteConnection::connect(&url).await.unwrap();
    shop.execute(sqlx::raw_sql(include_str!("../../examples/charges/sqlite.sql"))).await.unwrap();
    shop.execute(
        "insert into charges (subscription_id, period, amount_cents, currency, payment_method) \
         values ('sub_1', '2026-11', 1999, 'EUR', 'pm_card_visa')",
    )
    .await
    .unwrap();
    shop.close().await.unwrap();
    let review = event(json!({ "type": "transaction.review" }));
    for (word, line, says) in [
        ("events", Some(review), "evt_1 a person looks at it"),
        // The PSP gave no answer.
        ("work", None, "1 processing"),
    ] {
        let mut command = worker(language, "status", folder.path(), word);
        if word == "work" {
            command.arg("new");
        }
        let mut child = command.spawn().unwrap();
        // Held open: the end of what it reads is no Ctrl-C.
        let mut stdin = child.stdin.take().unwrap();
        if let Some(line) = line {
            stdin.write_all(&[&line[..], b"\n"].concat()).await.unwrap();
        }
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = tokio::time::timeout(Duration::from_secs(60), said.next_line()).await;
        assert_eq!(first.unwrap().unwrap().as_deref(), Some(says), "{word}");
        signal(child.id().unwrap(), "INT").await;
        let done = child.wait_with_output().await.unwrap();
        assert_eq!(done.status.code(), Some(130), "{word}: {done:?}");
        assert!(done.stderr.is_empty(), "{word}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

#[tokio::test]
async fn python_ends_quietly_on_ctrl_c() {
    ends_quietly("python").await;
}

#[tokio::test]
async fn ruby_ends_quietly_on_ctrl_c() {
    ends_quietly("ruby").await;
}
