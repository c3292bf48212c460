//! The workers of `examples/`, started for real by `tests/workers/storm.py`: killed at random and
//! at each of their lines, beside runs of the built program that are killed too.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::support::{need_env, tieout_bin};

/// Runs the script, which says what is wrong and exits 1 where anything is. Its figures.
async fn storm(situation: &str, [language, database, channel, keys]: [&str; 4]) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workers/storm.py");
    let mut command = tokio::process::Command::new(need_env("TEST_WORKERS"));
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
