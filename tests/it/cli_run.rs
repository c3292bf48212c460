//! The whole program on a table of its own and a PSP that misbehaves on request: the screens of
//! the specification, what cron sees, what programs read, signals and exit codes.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use sqlx::{Connection, SqliteConnection};
use tieout::sandbox::seeds::Seed;
use tieout::sandbox::settings::Settings;
use tieout::sandbox::situations::Situation;
use tieout::sandbox::{Handle, Sandbox};

use crate::support::{events, golden, tieout_bin};

const CONFIG: &str = r#"
business_timezone = "Europe/Berlin"

[database]
url = "sqlite:shop.db"

[[account]]
name = "stripe_test"
psp = "stripe"
mode = "full"
livemode = false
key_env = "SHOP_KEY"
base_url = "{base_url}"
tag = "metadata[tieout_id]"
requests_per_second = 500
retries = 0
deadline = "2s"

[[table]]
name = "charges"
read = "charges"
key = ["id"]
tag = "{id}"
amount = { column = "amount", unit = "minor" }
currency = { column = "currency" }
accounts = { "*" = "stripe_test" }
status = "status"
created = "created_at"
attempted = "attempted_at"
psp_reference = "psp_id"
time = "utc"
mode = "full"
ignore = ["paid", "failed", "retry"]
map = [{ from = ["processing"], succeeded = "paid", failed = "failed", retryable = "retry" }]
"#;

/// How a call ended.
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// A shop with stuck rows, and the PSP it charges at.
pub struct Shop {
    folder: tempfile::TempDir,
    pub psp: Handle,
}

impl Shop {
    pub async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let psp = Sandbox::start(Settings::default()).await.unwrap();
        let config = CONFIG.replace("{base_url}", &psp.base_url());
        std::fs::write(folder.path().join("tieout.toml"), config).unwrap();
        let shop = Self { folder, psp };
        shop.sql(
            "create table charges (id text primary key, amount integer, currency text, \
             status text not null, psp_id text, created_at text, attempted_at text)",
        )
        .await;
        shop.sql("create index charges_status on charges (status)").await;
        shop
    }

    /// A shop whose tables are made, with these stuck rows: (key, minor units, what the PSP has).
    pub async fn with(rows: &[(&str, i64, &[Situation])]) -> Self {
        let shop = Self::open().await;
        let now = shop.psp.now();
        for (id, amount, objects) in rows {
            let at = "strftime('%Y-%m-%d %H:%M:%S', 'now', '-2 hours')";
            let values = format!("('{id}', {amount}, 'EUR', 'processing', null, {at}, {at})");
            shop.sql(&format!("insert into charges values {values}")).await;
            let seeds = objects.iter().map(|situation| {
                let seed = Seed::captured("tieout_id", id, *amount, "eur");
                seed.standing(*situation).created_at(now - 7_200)
            });
            shop.psp.seed(seeds).unwrap();
        }
        let migrated = shop.tieout(&["db", "migrate"], &[]);
        assert_eq!(migrated.code, Some(0), "{}", migrated.stderr);
        shop
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    async fn connect(&self) -> SqliteConnection {
        let url = format!("sqlite:{}?mode=rwc", self.path().join("shop.db").display());
        SqliteConnection::connect(&url).await.unwrap()
    }

    pub async fn sql(&self, text: &str) {
        let mut connection = self.connect().await;
        sqlx::raw_sql(sqlx::AssertSqlSafe(text.to_owned())).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    pub async fn statuses(&self) -> Vec<(String, String)> {
        let mut connection = self.connect().await;
        sqlx::query_as("select id, status from charges order by id")
            .fetch_all(&mut connection)
            .await
            .unwrap()
    }

    fn command(&self, words: &[&str], env: &[(&str, &str)]) -> Command {
        let mut command = Command::new(tieout_bin());
        command.args(words).current_dir(self.path()).env_clear();
        // Names and spans differ in length from run to run: where lines break is no golden matter.
        command.env("COLUMNS", "1000");
        command.env("SHOP_KEY", "sk_test_shop").envs(env.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn tieout(&self, words: &[&str], env: &[(&str, &str)]) -> Ended {
        let output = self.command(words, env).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let stdout = text(output.stdout);
        if words.contains(&"--json") {
            events::check(&stdout);
        }
        Ended { code: output.status.code(), stdout, stderr: text(output.stderr) }
    }

    pub fn begin(&self, words: &[&str]) -> Child {
        self.command(words, &[]).spawn().unwrap()
    }
}

#[track_caller]
fn golden(name: &str, shop: &Shop, ended: &Ended) {
    let text = format!(
        "exit {}\n--- stdout\n{}--- stderr\n{}",
        ended.code.unwrap(),
        ended.stdout,
        ended.stderr
    );
    golden::golden("fixtures/cli", name, &text.replace(&shop.psp.base_url(), "[psp]"));
}

pub const CAPTURED: &[Situation] = &[Situation::Succeeded];

#[tokio::test(flavor = "multi_thread")]
async fn a_good_run_from_cron_prints_nothing_and_the_same_run_by_hand_prints_its_summary() {
    let shop = Shop::with(&[("pay_1", 1_999, CAPTURED), ("pay_2", 500, CAPTURED)]).await;
    let quiet = shop.tieout(&["run", "--id", "pay_1"], &[]);
    assert_eq!((quiet.code, quiet.stdout.as_str(), quiet.stderr.as_str()), (Some(0), "", ""));
    golden("run_summary", &shop, &shop.tieout(&["run", "-v", "--log-file", "run.log"], &[]));
    let want = [("pay_1", "paid"), ("pay_2", "paid")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(shop.statuses().await, want);
    golden("run_nothing_due", &shop, &shop.tieout(&["run", "-v", "--log-file", "run.log"], &[]));
    let log = std::fs::read_to_string(shop.path().join("run.log")).unwrap();
    assert!(!log.contains("sk_test_shop"), "a secret in the log: {log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_prints_the_plan_and_writes_nothing_anywhere() {
    let twice = &[Situation::Succeeded, Situation::Succeeded];
    let shop = Shop::with(&[("pay_1", 1_999, CAPTURED), ("pay_2", 500, twice)]).await;
    let before = std::fs::read(shop.path().join("shop.db")).unwrap();
    golden("run_dry", &shop, &shop.tieout(&["run", "--dry-run"], &[]));
    assert!(std::fs::read(shop.path().join("shop.db")).unwrap() == before, "the file changed");
    assert!(!shop.path().join("reports").exists());
    let real = shop.tieout(&["run", "--json"], &[]);
    let said: Vec<String> = verdicts(&real.stdout);
    assert_eq!(said, ["pay_1 succeeded captured", "pay_2 review duplicate_capture"]);
}

pub fn events(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

fn verdicts(stdout: &str) -> Vec<String> {
    let mut verdicts: Vec<String> = events(stdout)
        .iter()
        .filter(|event| event["type"] == "verdict")
        .map(|event| {
            let word = |name: &str| event[name].as_str().unwrap().to_owned();
            format!("{} {} {}", word("txn_id"), word("outcome"), word("reason"))
        })
        .collect();
    verdicts.sort();
    verdicts
}

#[tokio::test(flavor = "multi_thread")]
async fn events_begin_and_end_a_run_and_name_their_schema() {
    let shop = Shop::with(&[("pay_1", 1_999, CAPTURED)]).await;
    let id = "01990000-0000-7000-8000-000000000001";
    let ended = shop.tieout(&["run", "--json", "--run-id", id, "--since", "1d"], &[]);
    let events = events(&ended.stdout);
    assert!(events.iter().all(|event| event["schema"] == "tieout/1"), "{}", ended.stdout);
    let first = events.first().unwrap();
    assert_eq!((&first["type"], &first["run_id"]), (&"run_start".into(), &id.into()));
    assert_eq!(first["window"]["tz"], "Europe/Berlin");
    let last = events.last().unwrap();
    assert_eq!((&last["type"], &last["exit"]), (&"run_end".into(), &0.into()));
    let tie = events.iter().find(|event| event["type"] == "tieout").unwrap();
    assert_eq!((&tie["claimed_minor"], &tie["residual_minor"]), (&1_999.into(), &0.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_bad_day_looks_like_from_cron() {
    for (scenario, code) in [("outage", 3), ("revoked_key", 12), ("maintenance_page", 3)] {
        let shop = Shop::with(&[("pay_1", 1_999, CAPTURED)]).await;
        shop.psp.scenario(scenario).unwrap();
        let ended = shop.tieout(&["run"], &[]);
        assert_eq!(ended.code, Some(code), "{scenario}: {}", ended.stderr);
        golden(&format!("run_{scenario}"), &shop, &ended);
        let want = [("pay_1".to_owned(), "processing".to_owned())];
        assert_eq!(shop.statuses().await, want, "{scenario}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_nowhere_is_told_and_never_shown() {
    let shop = Shop::with(&[("pay_1", 1_999, CAPTURED)]).await;
    golden("run_no_key", &shop, &shop.tieout(&["run"], &[("SHOP_KEY", "")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_file_that_is_none_is_told_with_the_way_out() {
    let shop = Shop::with(&[]).await;
    let path = shop.path().join("tieout.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    std::fs::write(shop.path().join("garbage.db"), "no database, whatever its name says").unwrap();
    for name in ["missing", "garbage"] {
        std::fs::write(&path, config.replace("sqlite:shop.db", &format!("sqlite:{name}.db")))
            .unwrap();
        golden(&format!("db_{name}"), &shop, &shop.tieout(&["run"], &[]));
    }
    assert!(!shop.path().join("missing.db").exists(), "a mistyped path makes no empty database");
}

#[tokio::test(flavor = "multi_thread")]
async fn why_is_this_row_here() {
    let twice = &[Situation::Succeeded, Situation::Succeeded];
    let shop = Shop::with(&[("pay_1", 1_999, CAPTURED), ("pay_2", 500, twice)]).await;
    assert_eq!(shop.tieout(&["run"], &[]).code, Some(0));
    golden("explain", &shop, &shop.tieout(&["explain", "pay_2"], &[]));
    golden("explain_unknown", &shop, &shop.tieout(&["explain", "pay_9"], &[]));
    golden("cases_list", &shop, &shop.tieout(&["cases", "list"], &[]));
    golden("cases_show", &shop, &shop.tieout(&["cases", "show", "C-1"], &[]));
    golden("runs_list", &shop, &shop.tieout(&["runs", "list"], &[]));
    golden("runs_show", &shop, &shop.tieout(&["runs", "show"], &[]));
    // As a person sees them.
    for words in [
        &["explain", "pay_2"][..],
        &["cases", "show", "C-1"],
        &["cases", "list"],
        &["runs", "list"],
        &["runs", "show"],
        &["audit", "verify"],
        &["config", "check", "--connect"],
        &["run", "--dry-run", "--id", "pay_2"],
    ] {
        let screen = shop.tieout(words, &[("COLUMNS", "")]).stdout;
        let wide: Vec<&str> = screen.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(!screen.is_empty() && wide.is_empty(), "{words:?}: {wide:#?}");
    }
    golden("audit", &shop, &shop.tieout(&["audit", "verify"], &[]));
    golden("report_list", &shop, &shop.tieout(&["report", "list"], &[]));
    for words in [
        &["explain", "pay_2"][..],
        &["cases", "list"],
        &["cases", "show", "C-1"],
        &["runs", "list"],
        &["runs", "show"],
        &["audit", "verify"],
        &["report", "list"],
        &["db", "status"],
    ] {
        let ended = shop.tieout(&[words, &["--json"]].concat(), &[]);
        assert_eq!(ended.code, Some(0), "{words:?}: {}", ended.stderr);
        let all = events(&ended.stdout);
        assert!(!all.is_empty(), "{words:?}");
        assert!(all.iter().all(|event| event["schema"] == "tieout/1"), "{words:?}");
    }
}

/// The lines from the head of the outcomes to the tie-out.
fn outcomes(screen: &str) -> Vec<&str> {
    let from = screen.lines().skip_while(|line| line.trim_start() != "rows     EUR");
    from.take_while(|line| !line.starts_with("tie-out")).collect()
}

/// A watched row ended before, and one that waits has a reason: the same at the run's end and
/// ever after.
#[tokio::test(flavor = "multi_thread")]
async fn a_stored_run_tells_watched_rows_and_waits_as_its_end_did() {
    let processing = &[Situation::Processing];
    let rows = [("pay_1", 1_999, CAPTURED), ("pay_2", 500, processing), ("pay_3", 700, &[])];
    let shop = Shop::with(&rows).await;
    shop.sql("update charges set status = 'failed' where id = 'pay_3'").await;
    let ended = shop.tieout(&["run", "--all", "--since", "1d", "-v"], &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let told = outcomes(&ended.stdout);
    assert_eq!(
        told[1..],
        [
            "  succeeded             1   19.99",
            "  retryable             0       –",
            "  needs a person        0       –",
            "  still processing      1    5.00",
            "  watched               1    7.00",
            "  of those still processing: 1 psp_pending",
        ]
    );
    let stored = shop.tieout(&["runs", "show"], &[]).stdout;
    assert_eq!(outcomes(&stored), told, "{stored}");
    assert!(stored.contains("tie-out  EUR residual 0.00 ✓"), "{stored}");
    // Its window has both ends: what had none went up to the run's start.
    let mut window = stored.lines().skip_while(|line| !line.starts_with("window "));
    assert_eq!(window.next(), Some("window   since 1d Europe/Berlin · on created"), "{stored}");
    let ends = window.next().unwrap();
    assert!(ends.contains("Z … now, at its start ") && ends.ends_with("Z (24 h)"), "{stored}");
    assert!(window.next().unwrap().starts_with("scope    its window · of charges"), "{stored}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_named_by_how_its_id_begins() {
    let shop = Shop::with(&[("pay_1", 1_999, CAPTURED)]).await;
    let ids = [
        "01990000-0000-7000-8000-000000000001",
        "01990000-0000-7000-8000-000000000002",
        "01a00000-0000-7000-8000-000000000003",
    ];
    for id in ids {
        let ran = shop.tieout(&["run", "--run-id", id], &[]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    let shown = shop.tieout(&["runs", "show", "01a0"], &[]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(shown.stdout.contains(ids[2]), "{}", shown.stdout);
    for (words, says) in [
        (["runs", "show", "0199"], "several runs begin with 0199"),
        (["runs", "show", "02bb"], "there is no run 02bb"),
        (["report", "verify", "nowhere"], "nowhere is not a report"),
    ] {
        let ended = shop.tieout(&words, &[]);
        assert_eq!(ended.code, Some(2), "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(says), "{words:?}: {}", ended.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_paused_by_a_person_and_goes_on() {
    let shop = Shop::with(&[("pay_1", 1_999, CAPTURED)]).await;
    let me = Command::new("id").arg("-un").output().unwrap().stdout;
    let me = format!(" by {}: ", String::from_utf8(me).unwrap().trim());
    let said = |words: &[&str]| {
        let mut ended = shop.tieout(words, &[]);
        ended.stdout = ended.stdout.replace(&me, " by [user]: ");
        ended
    };
    let why = "--why=refund migration, ask mara";
    golden("pause", &shop, &said(&["pause", "stripe_test", why]));
    golden("pause_again", &shop, &said(&["pause", "stripe_test", "--why", "other"]));
    golden("pause_unknown", &shop, &said(&["pause", "stripe_tset", why]));
    golden("pause_no_why", &shop, &said(&["pause", "stripe_test", "--why", " "]));
    golden("run_paused", &shop, &shop.tieout(&["run"], &[]));
    let runs = shop.tieout(&["runs", "show"], &[]).stdout;
    assert!(runs.contains("not examined: account stripe_test is paused (refund"), "{runs}");
    golden("resume", &shop, &said(&["resume", "stripe_test"]));
    golden("resume_again", &shop, &said(&["resume", "stripe_test"]));
    assert_eq!(shop.tieout(&["run"], &[]).code, Some(0));
    for (words, changed) in [(&["pause", "stripe_test", why][..], true), (&["resume"], true)] {
        let words = [words, &["stripe_test"][..usize::from(words.len() == 1)]].concat();
        let ended = shop.tieout(&[&words[..], &["--json"]].concat(), &[]);
        let event = &events(&ended.stdout)[0];
        assert_eq!((&event["type"], &event["changed"]), (&"account".into(), &changed.into()));
    }
}

/// A look that is planned decides nothing while the account is paused.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_of_a_paused_account_says_so() {
    let shop = Shop::with(&[("pay_1", 500, &[Situation::Processing])]).await;
    assert_eq!(shop.tieout(&["run"], &[]).code, Some(0));
    let explain = || shop.tieout(&["explain", "pay_1"], &[]).stdout;
    let says = "           not before `tieout resume stripe_test`: paused since ";
    let published = || events(&shop.tieout(&["explain", "pay_1", "--json"], &[]).stdout).remove(0);
    let before = explain();
    assert_eq!(published()["paused"], Value::Null);
    assert!(before.contains("next       looked at again at "), "{before}");
    assert!(!before.contains(says), "{before}");
    shop.tieout(&["pause", "stripe_test", "--why", "refund migration"], &[]);
    let screen = explain();
    let line = screen.lines().last().unwrap();
    assert!(line.starts_with(says) && line.ends_with(": refund migration"), "{screen}");
    let event = published();
    let paused = &event["paused"];
    let told = ["account", "why"].map(|name| paused[name].as_str().unwrap());
    assert_eq!(told, ["stripe_test", "refund migration"]);
    let (since, by) = (paused["since"].as_str().unwrap(), paused["by"].as_str().unwrap());
    // The screen has whole seconds.
    let (day_and_time, _) = since.split_once('.').unwrap();
    assert!(line.contains(&format!("paused since {day_and_time}Z by {by}: ")), "{paused}: {line}");
    shop.tieout(&["resume", "stripe_test"], &[]);
    assert_eq!(explain(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_given_up_by_name_where_it_shows_no_life() {
    let shop = Shop::with(&[("pay_1", 1_999, CAPTURED)]).await;
    let id = "01990000-0000-7000-8000-000000000009";
    shop.sql(&format!(
        "insert into tieout_runs (id, command, state, started_at, heartbeat_at, host, pid, \
         version, config_sha256, policy_version, scope) values ('{id}', 'run', 'running', \
         strftime('%Y-%m-%dT%H:%M:%S.000000Z', 'now'), \
         strftime('%Y-%m-%dT%H:%M:%S.000000Z', 'now', '+3 seconds'), 'h', 7, '0', 'c', 'p', '{{}}')"
    ))
    .await;
    golden("abandon_alive", &shop, &shop.tieout(&["runs", "abandon", id], &[]));
    // What it holds is under way, and no difference.
    shop.sql(&format!(
        "insert into tieout_run_totals (run_id, table_name, currency, side, rows, amount_minor) \
         values ('{id}', 'charges', 'EUR', 'claimed', 3, 500), \
         ('{id}', 'charges', 'EUR', 'released', 1, 100)"
    ))
    .await;
    let shown = shop.tieout(&["runs", "show"], &[]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let says = "so far   under way: 3 rows claimed, 1 of them done with\n";
    assert!(shown.stdout.contains(says), "{}", shown.stdout);
    let is_judged = ["UNTIED", "tie-out", "residual", "journal "].map(|w| shown.stdout.contains(w));
    assert_eq!(is_judged, [false; 4], "{}", shown.stdout);
    shop.sql("delete from tieout_run_totals").await;
    let silent = "update tieout_runs set heartbeat_at = '2026-01-01T00:00:00.000000Z'";
    shop.sql(&format!("{silent} where id = '{id}'")).await;
    let ended = shop.tieout(&["runs", "abandon", id], &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("closed as abandoned"), "{}", ended.stdout);
    golden("abandon_again", &shop, &shop.tieout(&["runs", "abandon", id], &[]));
    golden("abandon_unknown", &shop, &shop.tieout(&["runs", "abandon", "7"], &[]));
    assert_eq!(shop.tieout(&["audit", "verify"], &[]).code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_that_are_not_migrated_are_refused_with_the_way_out() {
    let shop = Shop::open().await;
    golden("schema_missing", &shop, &shop.tieout(&["run"], &[]));
    golden("schema_status", &shop, &shop.tieout(&["db", "status", "--check"], &[]));
    // What is to be copied names the file that this one was told to read.
    std::fs::rename(shop.path().join("tieout.toml"), shop.path().join("other.toml")).unwrap();
    for (words, ends) in [(&["db", "status"][..], "\n"), (&["db", "status", "--json"], "\"")] {
        let ended = shop.tieout(&[&["--config", "other.toml"], words].concat(), &[]);
        let said =
            format!("older than this version: run `tieout --config other.toml db migrate`{ends}");
        assert!(ended.code == Some(0) && ended.stdout.contains(&said), "{}", ended.stdout);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_was_changed_does_not_verify() {
    let shop = Shop::with(&[("pay_1", 1_999, CAPTURED)]).await;
    assert_eq!(shop.tieout(&["run"], &[]).code, Some(0));
    let day = std::fs::read_dir(shop.path().join("reports")).unwrap().next().unwrap().unwrap();
    let report = std::fs::read_dir(day.path()).unwrap().next().unwrap().unwrap().path();
    let dir = report.display().to_string();
    for words in [&["report", "verify", &dir][..], &["report", "verify", &dir, "--database"]] {
        let ended = shop.tieout(words, &[]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
    let file = report.join("reconciliation.csv");
    let text = std::fs::read_to_string(&file).unwrap().replace("19.99", "18.99");
    std::fs::write(&file, text).unwrap();
    let ended = shop.tieout(&["report", "verify", &dir], &[]);
    assert_eq!(ended.code, Some(16), "{}", ended.stderr);
    assert!(ended.stderr.contains("does not verify"), "{}", ended.stderr);
}

/// A record that nobody can read any more is no bug of the reader's.
#[tokio::test(flavor = "multi_thread")]
async fn a_report_of_a_changed_journal_is_not_verified() {
    let shop = Shop::with(&[("pay_1", 1_999, CAPTURED)]).await;
    assert_eq!(shop.tieout(&["run", "--run-id", FIRST], &[]).code, Some(0));
    shop.sql(
        "drop trigger tieout_journal_no_update; \
         update tieout_journal set reason = 'nonsense'",
    )
    .await;
    let ended = shop.tieout(&["report", "verify", FIRST, "--database"], &[]);
    assert_eq!(ended.code, Some(16), "{}", ended.stderr);
    let said = format!("tieout: integrity: the journal of run {FIRST} cannot be read, and nothing");
    assert!(ended.stderr.starts_with(&said), "{}", ended.stderr);
    assert!(ended.stderr.contains("\nhint: keep the database as it is"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("no report was written"), "{}", ended.stderr);
}

/// What was not done is said of what is not there, too.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_said_with_what_was_not_done() {
    let shop = Shop::with(&[]).await;
    for (words, not_done) in [
        (&["runs", "show"][..], "nothing was done"),
        (&["runs", "show", FIRST], "nothing was done"),
        (&["files", "show", "77"], "nothing was done"),
        (&["files", "show", "x"], "nothing was done"),
        (&["report", "build", FIRST], "no report was written"),
        (&["report", "verify", FIRST], "nothing was verified"),
    ] {
        let ended = shop.tieout(words, &[]);
        assert_eq!(ended.code, Some(2), "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(not_done), "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("\nhint: "), "{words:?}: {}", ended.stderr);
    }
}

const FIRST: &str = "01a00000-0000-7000-8000-000000000001";

/// Sends a signal by the system's own tool.
pub fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").arg(name).arg(child.id().to_string()).status().unwrap();
    assert!(sent.success());
}

pub async fn until_asked(shop: &Shop) {
    for _try in 0..200 {
        if shop.psp.total_requests() > 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the PSP was never asked");
}

/// A signal while the PSP keeps silent: the run ends by it, and no row was guessed at.
async fn signalled(name: &str, again: bool, code: i32, state: &str) {
    let shop = Shop::with(&[("pay_1", 1_999, CAPTURED)]).await;
    shop.psp.scenario("silent").unwrap();
    // The answer's deadline must outlive the run's patience.
    let config = std::fs::read_to_string(shop.path().join("tieout.toml")).unwrap();
    let config = config.replace("deadline = \"2s\"", "deadline = \"60s\"");
    std::fs::write(shop.path().join("tieout.toml"), config).unwrap();
    let mut child = shop.begin(&["run"]);
    until_asked(&shop).await;
    signal(&child, name);
    if again {
        // What comes sooner is the first one's echo.
        tokio::time::sleep(Duration::from_millis(1_300)).await;
        signal(&child, name);
    }
    assert_eq!(child.wait().unwrap().code(), Some(code), "{name}");
    let runs = shop.tieout(&["runs", "list"], &[]).stdout;
    assert!(runs.contains(state), "{name}: {runs}");
    let want = [("pay_1".to_owned(), "processing".to_owned())];
    assert_eq!(shop.statuses().await, want);
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_stops_cleanly() {
    signalled("-TERM", false, 143, "interrupted").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sigint_stops_cleanly() {
    signalled("-INT", false, 130, "interrupted").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_at_once() {
    signalled("-TERM", true, 143, "running").await;
}

/// A reader that has seen enough is no failure; a disk that takes nothing is one.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_printed_is_told_at_the_end() {
    let shop = Shop::with(&[("pay_1", 1_999, CAPTURED)]).await;
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let printing: [&[&str]; 5] = [
        &["run", "--dry-run"],
        &["runs", "list"],
        &["config", "default"],
        &["run", "--help"],
        &["--version"],
    ];
    for words in printing {
        let mut command = shop.command(words, &[]);
        if words == ["runs", "list"] {
            assert_eq!(shop.tieout(&["run"], &[]).code, Some(0));
        }
        let ended = command.stdout(full()).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(14), "{words:?}: {said}");
        assert!(said.contains("could not be written: No space left"), "{words:?}: {said}");
    }
}

/// How the shop's file keeps its journal, by its header: 1 beside it for each write, 2 in a log.
fn journal_of(shop: &Shop) -> u8 {
    std::fs::read(shop.path().join("shop.db")).unwrap()[18]
}

/// What somebody wrote there in another form was never written by tieout.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_cannot_be_read_does_not_verify() {
    let shop = Shop::with(&[("pay_1", 1_999, CAPTURED)]).await;
    assert_eq!(shop.tieout(&["run"], &[]).code, Some(0));
    shop.sql("drop trigger tieout_runs_closed").await;
    shop.sql("update tieout_runs set started_at = '2025-07-16T04:02:21.047Z'").await;
    let ended = shop.tieout(&["audit", "verify"], &[]);
    assert_eq!(ended.code, Some(16), "{}", ended.stderr);
    for words in ["integrity: ", "is not a time of tieout's", "compare it with a backup"] {
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
}

/// Commands that only read, and of which the last two may find something here.
const READING: [&[&str]; 14] = [
    &["explain", "pay_1"],
    &["runs", "list"],
    &["runs", "show"],
    &["audit", "verify"],
    &["files", "list"],
    &["files", "expected"],
    &["cases", "list"],
    &["cases", "export"],
    &["rules", "stats"],
    &["deliver", "list"],
    &["db", "status", "--check"],
    &["run", "--dry-run"],
    &["config", "check", "--connect"],
    &["doctor", "--quiet"],
];

#[tokio::test(flavor = "multi_thread")]
async fn what_only_reads_leaves_a_file_its_journal() {
    let shop = Shop::with(&[("pay_1", 1_999, CAPTURED)]).await;
    assert_eq!(shop.tieout(&["run"], &[]).code, Some(0));
    assert_eq!(journal_of(&shop), 2);
    shop.sql("pragma journal_mode = delete").await;
    assert_eq!(journal_of(&shop), 1);
    for words in READING {
        let ended = shop.tieout(words, &[]);
        assert_eq!(journal_of(&shop), 1, "{words:?}");
        let finds = ["config", "doctor"].contains(&words[0]);
        assert!(finds || ended.code == Some(0), "{words:?}: {}", ended.stderr);
    }
    assert_eq!(shop.tieout(&["run"], &[]).code, Some(0));
    assert_eq!(journal_of(&shop), 2);
}

/// An application that died leaves its log: it is the application's, or a run's, to fold in.
#[tokio::test(flavor = "multi_thread")]
async fn what_only_reads_leaves_the_log_of_a_dead_application() {
    let shop = Shop::with(&[("pay_1", 1_999, CAPTURED)]).await;
    assert_eq!(shop.tieout(&["run"], &[]).code, Some(0));
    let place = |end: &str| shop.path().join(format!("shop.db{end}"));
    let read = |end: &str| std::fs::read(place(end)).unwrap();
    let mut open = shop.connect().await;
    let late =
        "insert into charges (id, amount, currency, status) values ('pay_2', 1, 'EUR', 'paid')";
    sqlx::query(late).execute(&mut open).await.unwrap();
    let (file, log, index) = (read(""), read("-wal"), read("-shm"));
    open.close().await.unwrap();
    assert!(!place("-wal").exists());
    for (end, bytes) in [("", &file), ("-wal", &log), ("-shm", &index)] {
        std::fs::write(place(end), bytes).unwrap();
    }
    for words in READING {
        let ended = shop.tieout(words, &[]);
        let finds = ["config", "doctor"].contains(&words[0]);
        assert!(finds || ended.code == Some(0), "{words:?}: {}", ended.stderr);
        assert!((read(""), read("-wal")) == (file.clone(), log.clone()), "{words:?}");
    }
    let told = shop.tieout(&["explain", "pay_2"], &[]).stderr;
    assert!(told.contains("its status is `paid`"), "what is in the log alone is read: {told}");
    assert_eq!(shop.tieout(&["run"], &[]).code, Some(0));
    assert!(!place("-wal").exists(), "a run is the last to close it");
}

#[tokio::test(flavor = "multi_thread")]
async fn words_that_cannot_be_meant_say_that_nothing_was_done() {
    let shop = Shop::with(&[]).await;
    for words in [&["run", "--since", "3x"][..], &["cases", "show", "99x"], &["run", "--rate", "x"]]
    {
        let ended = shop.tieout(words, &[]);
        assert_eq!(ended.code, Some(2), "{words:?}: {}", ended.stderr);
        let said = ended.stderr.lines().next().unwrap();
        assert!(said.contains("nothing was done"), "{words:?}: {said}");
    }
}
