//! The workers of `examples/`, started for real by `tests/workers/storm.py`: killed at random and
//! at each of their lines, beside runs of the built program that are killed too.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use sqlx::{Connection as _, Executor as _, SqliteConnection};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
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

/// Refused in one line, of the field.
fn refused(done: &Output, field: &str, shown: &str) {
    let errors = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(65), "{shown}: {errors}");
    let says = format!("refused: {field}");
    assert!(errors.starts_with(&says) && errors.lines().count() == 1, "{shown}: {errors}");
    assert!(done.stdout.is_empty(), "{shown}");
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
            refused(&done, "", &format!("{channel} {shown}"));
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

/// Both workers hold an event to the same forms, whatever their languages would read.
async fn refuses_other_forms(language: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut lines = Vec::new();
    let times = [
        "0000-01-01T00:00:00.000000Z",
        "2026-02-29T10:45:00.000000Z",
        "2026-11-19T24:00:00.000000Z",
        "2026-11-19T10:45:60.000000Z",
        "2026-11-19T10:45:00.000000000Z",
        "2026-11-19T10:45:00Z",
        "2026-1-9T1:4:0.0Z",
        "2026-11-19T10:45:00.000000Z\n",
        "\u{ff12}026-11-19T10:45:00.000000Z",
    ];
    for at in times {
        lines.push(("decided_at: ", event(json!({ "decided_at": at }))));
    }
    for field in ["same_key_until", "not_before", "charge_before"] {
        lines.push((field, event(json!({ "hand_back": { "number": 1, field: "tomorrow" } }))));
    }
    for key in ["", "0", "01", "-1", "+1", "1 ", "\u{ff11}", "9223372036854775808"] {
        lines.push(("key: ", event(json!({ "key": key }))));
    }
    for id in ["", "a b", "a\u{a0}b", "a\u{200b}b", "a\u{1b}b"] {
        lines.push(("id: ", event(json!({ "id": id }))));
    }
    let sound = String::from_utf8(event(json!({ "type": "transaction.review" }))).unwrap();
    let rest = sound.strip_prefix('{').unwrap();
    for text in [
        format!("/* \"c\" */{sound}"),
        format!("{sound} // c"),
        format!("{{\"x\":/**/1,{rest}"),
        format!("{{\"x\":NaN,{rest}"),
        format!("{{\"x\":-Infinity,{rest}"),
        format!("{{\"x\":\"\\q\",{rest}"),
    ] {
        lines.push(("an event: ", text.into_bytes()));
    }
    for (field, line) in &lines {
        let done = fed(worker(language, "status", folder.path(), "events"), line).await;
        refused(&done, field, &String::from_utf8_lossy(line));
    }
    let at = ["0001-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z"];
    let at = at.into_iter().chain(["2024-02-29T10:45:00.000000Z", "1582-10-10T10:45:00.000000Z"]);
    for at in at {
        let reason = "a/b /* \" \\ // \u{e4}\u{a0}";
        let review = json!({ "type": "transaction.review", "decided_at": at, "reason": reason });
        let line = event(review);
        let done = fed(worker(language, "status", folder.path(), "events"), &line).await;
        assert!(done.status.success(), "{at}: {done:?}");
        assert_eq!(String::from_utf8_lossy(&done.stdout), "evt_1 a person looks at it\n");
    }
}

#[tokio::test]
async fn python_refuses_other_forms_of_an_event() {
    refuses_other_forms("python").await;
}

#[tokio::test]
async fn ruby_refuses_other_forms_of_an_event() {
    refuses_other_forms("ruby").await;
}

/// A shop with so many payments that were never sent.
async fn shop_of(folder: &Path, payments: usize) -> SqliteConnection {
    let url = format!("sqlite:{}?mode=rwc", folder.join("shop.db").display());
    let mut shop = SqliteConnection::connect(&url).await.unwrap();
    shop.execute(sqlx::raw_sql(include_str!("../../examples/charges/sqlite.sql"))).await.unwrap();
    for number in 1..=payments {
        sqlx::query(
            "insert into charges (subscription_id, period, amount_cents, currency, \
             payment_method) values ('sub_' || ?, '2026-11', 1999, 'EUR', 'pm_card_visa')",
        )
        .bind(number.to_string())
        .execute(&mut shop)
        .await
        .unwrap();
    }
    shop
}

/// An answer of HTTP whose length is told by itself.
fn answer(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// Whether a request is here to its end.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.unwrap().parse().unwrap()
}

/// Gives each request its answer, in their order.
async fn answers(listener: TcpListener, all: Vec<String>) {
    for text in all {
        let (mut line, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !is_whole(&request) {
            assert!(line.read_buf(&mut request).await.unwrap() > 0, "the request broke off");
        }
        // Who cannot read it may hang up before its end.
        let _gone = line.write_all(text.as_bytes()).await;
        let _gone = line.shutdown().await;
    }
}

/// Whatever is no clear answer leaves the row processing, and the worker at its work.
async fn reads_no_answer_into_garbage(language: &str) {
    let too_long = "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n{}";
    let declined = r#"{"error":{"type":"card_error","decline_code":7,"code":"card_declined"}}"#;
    let all = [
        (answer("200 OK", &"[".repeat(100_000)), "processing"),
        (answer("200 OK", &"{\"a\":".repeat(100_000)), "processing"),
        (answer("200 OK", "<html>"), "processing"),
        (answer("200 OK", ""), "processing"),
        (too_long.to_owned(), "processing"),
        ("HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n".to_owned(), "processing"),
        (answer("200 OK", r#"{"status":"succeeded"}"#), "processing"),
        (answer("200 OK", r#"{"status":"succeeded","id":{}}"#), "processing"),
        (answer("200 OK", r#"{"status":"succeeded","id":"a\u0000b"}"#), "processing"),
        (answer("402 Payment Required", declined), "failed"),
        (answer("200 OK", r#"{"status":"succeeded","id":"pi_1"}"#), "paid"),
    ];
    let folder = tempfile::tempdir().unwrap();
    let mut shop = shop_of(folder.path(), all.len()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let texts = all.iter().map(|(text, _)| text.clone()).collect();
    let psp = tokio::task::JoinSet::from_iter([answers(listener, texts)]);
    let mut command = worker(language, "status", folder.path(), "work");
    // On a busy machine as well each of them is sent, and gets its own answer.
    command.arg("new").env("PSP_URL", address).env("CHARGE_SEND_WITHIN", "60");
    let mut child = command.spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    for (number, (text, want)) in (1..).zip(&all) {
        let next = tokio::time::timeout(Duration::from_secs(60), said.next_line()).await;
        let next = next.unwrap().unwrap();
        let shown: String = text.chars().take(200).collect();
        assert_eq!(next, Some(format!("{number} {want}")), "{shown}");
    }
    child.kill().await.unwrap();
    psp.join_all().await;
    let codes: Vec<String> =
        sqlx::query_scalar("select decline_code from charges where decline_code is not null")
            .fetch_all(&mut shop)
            .await
            .unwrap();
    assert_eq!(codes, ["card_declined"]);
}

#[tokio::test]
async fn python_reads_no_answer_into_garbage() {
    reads_no_answer_into_garbage("python").await;
}

#[tokio::test]
async fn ruby_reads_no_answer_into_garbage() {
    reads_no_answer_into_garbage("ruby").await;
}

/// A call that cannot be meant so does nothing and says how it goes.
async fn says_how_it_is_called(language: &str) {
    let folder = tempfile::tempdir().unwrap();
    let called = async |words: &str, set: &[(&str, &str)]| {
        let mut words = words.split(' ');
        let mut command = worker(language, "status", folder.path(), words.next().unwrap());
        command.args(words).envs(set.iter().copied()).stdin(Stdio::null());
        command.output().await.unwrap()
    };
    let no_set: &[(&str, &str)] = &[];
    for (words, set) in [
        ("", no_set),
        ("bogus", no_set),
        ("work bogus", no_set),
        ("work handback", no_set),
        ("work new handbacks", no_set),
        ("events new", no_set),
        ("intend", no_set),
        ("intend sub_1 2026-11 1999 EUR", no_set),
        ("intend sub_1 2026-11 1999 EUR pm_card_visa more", no_set),
        ("intend sub_1 2026-11 19.99 EUR pm_card_visa", no_set),
        ("intend sub_1 2026-11 0 EUR pm_card_visa", no_set),
        ("intend sub_1 2026-11 1999 EURO pm_card_visa", no_set),
        ("intend sub_1  1999 EUR pm_card_visa", no_set),
        ("events", &[("DATABASE_URL", "")]),
        ("events", &[("STRIPE_KEY", "")]),
        ("events", &[("CHARGE_CHANNEL", "bogus")]),
        ("work", &[("CHARGE_SEND_WITHIN", "soon")]),
    ] {
        let done = called(words, set).await;
        let errors = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{words} {set:?}: {errors}");
        let first = errors.lines().next().unwrap();
        assert!(first.contains("expected "), "{words} {set:?}: {errors}");
        assert!(errors.contains("intend SUBSCRIPTION PERIOD CENTS"), "{words} {set:?}: {errors}");
        assert!(done.stdout.is_empty(), "{words} {set:?}");
    }
    let mut command = worker(language, "status", folder.path(), "events");
    let done = command.env_remove("DATABASE_URL").stdin(Stdio::null()).output().await.unwrap();
    assert_eq!(done.status.code(), Some(2), "{done:?}");
    assert!(!folder.path().join("shop.db").exists(), "nothing was opened");
    shop_of(folder.path(), 1).await.close().await.unwrap();
    let done = called("intend sub_1 2026-11 1 EUR pm_card_visa", no_set).await;
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    assert_eq!(String::from_utf8_lossy(&done.stderr).lines().count(), 1, "{done:?}");
}

#[tokio::test]
async fn python_says_how_it_is_called() {
    says_how_it_is_called("python").await;
}

#[tokio::test]
async fn ruby_says_how_it_is_called() {
    says_how_it_is_called("ruby").await;
}

/// Nothing to read is no event, and no mistake: neither where it is empty nor where it is closed.
async fn reads_nothing(language: &str) {
    let folder = tempfile::tempdir().unwrap();
    let command = worker(language, "status", folder.path(), "events");
    let command = command.as_std();
    for shell in ["exec \"$@\" </dev/null", "exec \"$@\" <&-"] {
        let mut closed = Command::new("sh");
        closed.args(["-c", shell, "sh"]).arg(command.get_program()).args(command.get_args());
        closed.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let done = closed.output().await.unwrap();
        assert!(done.status.success(), "{shell}: {done:?}");
        assert!(done.stdout.is_empty() && done.stderr.is_empty(), "{shell}: {done:?}");
    }
}

#[tokio::test]
async fn python_reads_nothing_from_nothing() {
    reads_nothing("python").await;
}

#[tokio::test]
async fn ruby_reads_nothing_from_nothing() {
    reads_nothing("ruby").await;
}

/// Ctrl-C at a worker that is at its work, once it said so.
async fn ends_quietly(language: &str) {
    let folder = tempfile::tempdir().unwrap();
    shop_of(folder.path(), 1).await.close().await.unwrap();
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
