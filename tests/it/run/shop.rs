//! A shop of the tests: its payments table, its PSP (the sandbox), its tieout.toml, and the built
//! program run on them as cron would run it.
//!
//! Spans of the policy are seconds, so that a proof of absence takes seconds; whatever else would
//! have to wait (a back-off, a lease) is moved in the database as the passing of time would.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};
use tempfile::TempDir;
use tieout::sandbox::seeds::{Seed, SeedKind};
use tieout::sandbox::settings::Settings;
use tieout::sandbox::{Handle, Sandbox};
use tokio::io::AsyncReadExt as _;

use crate::invariants::{Mapped, assert_invariants};
use crate::support::events;
use crate::support::postgres::{Database, copy_of, login_role, postgres_database};
use crate::support::raw::Raw;
use crate::support::tieout_bin;

/// Which database a shop keeps its payments in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// A file.
    Sqlite,
    /// A server.
    Postgres,
}

/// Runs each test on both databases.
macro_rules! on_both_databases {
    ($($test:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                Box::pin(super::$test(crate::run::shop::Engine::Sqlite)).await;
            })+
        }
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                Box::pin(super::$test(crate::run::shop::Engine::Postgres)).await;
            })+
        }
    };
}
pub(crate) use on_both_databases;

/// The environment variable that holds the sandbox's key.
const KEY_NAME: &str = "SHOP_PSP_KEY";

/// The sandbox's key.
pub const KEY: &str = "sk_test_shop";

/// A sink that nobody sends to at the end of a run.
const STAGED_ALONE: &str = "[[sink]]\nname = \"events\"\nkind = \"file\"\n\
    path = \"events.ndjson\"\n[delivery]\nafter_run = \"0s\"\n";

const TABLES: &str = "
    create table payments (
        id bigint primary key, order_no text, account text not null, status text not null,
        amount bigint, currency text, created_at timestamptz not null, attempted_at timestamptz,
        psp_ref text, attempt integer not null default 1, updated_at timestamptz, note text);
    create index payments_status on payments (status, created_at);
    create index payments_order on payments (order_no);
    create index payments_ref on payments (psp_ref);
    create table refunds (
        id bigint primary key, status text not null, cents bigint not null,
        made timestamptz not null, re_id text);
    create index refunds_status on refunds (status, made);
    create table untouched (id bigint primary key, word text);
    insert into untouched values (1, 'as it was')";

/// The words of a tieout.toml that differ between tests.
#[derive(Debug, Clone)]
pub struct Words {
    /// The account's mode.
    pub account_mode: &'static str,
    /// The table's mode.
    pub table_mode: &'static str,
    /// More lines of `[[account]]`.
    pub account: String,
    /// Settings of `[policy]`, over the tests' own.
    pub policy: BTreeMap<&'static str, String>,
    /// What the account column's values mean, besides `live`.
    pub accounts: &'static str,
    /// More lines of `[[table]] payments`.
    pub table: String,
    /// More `[[table]]`s and sections.
    pub more: String,
    /// `[[sink]]`s and `[delivery]`. By default events are staged, and nobody sends them.
    pub sinks: String,
    /// Lines of `[limits]`.
    pub limits: String,
    /// Values of the status that tieout has nothing to do with.
    pub ignore: Vec<&'static str>,
    /// The sandbox's address; none is its own.
    pub base_url: Option<String>,
    /// The database's address; none is its own.
    pub database: Option<String>,
    /// More lines of `[database]`.
    pub database_more: &'static str,
    /// The name of the account in the key's variable: the key.
    pub key: String,
}

impl Default for Words {
    fn default() -> Self {
        Self {
            account_mode: "full",
            table_mode: "full",
            account: String::new(),
            policy: BTreeMap::new(),
            accounts: "",
            table: String::new(),
            more: String::new(),
            sinks: STAGED_ALONE.to_owned(),
            limits: String::new(),
            ignore: vec!["new", "cart"],
            base_url: None,
            database: None,
            database_more: "",
            key: KEY.to_owned(),
        }
    }
}

impl Words {
    /// With a setting of the policy.
    pub fn policy(mut self, name: &'static str, value: &str) -> Self {
        self.policy.insert(name, value.to_owned());
        self
    }

    /// With all the time for an answer that it takes: the test's PSP shares the processors with
    /// every run, and where nothing is to fail, being slow is no failure.
    pub fn patient(mut self) -> Self {
        self.account.push_str("deadline = \"60s\"\n");
        self
    }

    /// However slow the machine is, the call of what nothing tells of can still arrive.
    pub fn slow_calls(self) -> Self {
        self.policy("in_flight_max", "\"10min\"").policy("stuck_after", "\"10min\"")
    }

    /// The whole file.
    fn text(&self, database: &str, sandbox: &str) -> String {
        let base_url = self.base_url.as_deref().unwrap_or(sandbox);
        let database = self.database.as_deref().unwrap_or(database);
        let database_more = self.database_more;
        let mut policy = BTreeMap::from([
            ("in_flight_max", "\"1s\"".to_owned()),
            ("stuck_after", "\"1s\"".to_owned()),
            ("recheck_after", "\"1s\"".to_owned()),
            ("object_before_row", "\"30min\"".to_owned()),
            ("watch", "[\"1s\", \"1h\"]".to_owned()),
        ]);
        policy.extend(self.policy.clone());
        let mut lines = String::new();
        for (name, value) in policy {
            writeln!(lines, "{name} = {value}").unwrap();
        }
        let Self { account_mode, table_mode, account, accounts, table, more, .. } = self;
        let Self { limits, ignore, sinks, .. } = self;
        let deadline = if account.contains("deadline =") { "" } else { "deadline = \"2s\"" };
        format!(
            r#"
business_timezone = "Europe/Berlin"
[database]
url = "{database}"
{database_more}
[[account]]
name = "shop"
psp = "stripe"
mode = "{account_mode}"
livemode = false
key_env = "{KEY_NAME}"
base_url = "{base_url}"
tag = "metadata[order_id]"
{deadline}
connect_timeout = "1s"
retries = 1
requests_per_second = 500
{account}
[[table]]
name = "payments"
read = "payments"
key = ["id"]
natural_key = ["order_no"]
tag = "pay_{{id}}"
idempotency_key = "charge-{{id}}-{{attempt}}"
amount = {{ column = "amount", unit = "minor" }}
currency = {{ column = "currency" }}
account = ["account"]
status = "status"
created = "created_at"
attempted = "attempted_at"
psp_reference = "psp_ref"
mode = "{table_mode}"
ignore = {ignore:?}
accounts = {{ live = "shop"{accounts} }}
map = [{{ from = ["processing"], succeeded = "paid", failed = "failed", retryable = "retry" }}]
{table}
[table.set]
always = {{ updated_at = "{{now}}" }}
succeeded = {{ psp_ref = "{{psp_reference}}" }}
{more}
{sinks}
[policy]
{lines}
[report]
dir = "reports"
[limits]
{limits}
"#
        )
    }
}

/// A row of the payments table.
#[derive(Debug, Clone)]
pub struct Payment {
    /// Its id; its tag is `pay_` and this.
    pub id: i64,
    /// Its natural key.
    pub order_no: Option<String>,
    /// The value that names its account.
    pub account: &'static str,
    /// Its status.
    pub status: &'static str,
    /// Its amount in minor units.
    pub amount: Option<i64>,
    /// Its currency.
    pub currency: &'static str,
    /// How long ago it was made, in seconds.
    pub age: i64,
    /// How long ago the worker last sent it, in seconds.
    pub attempted: Option<i64>,
    /// The PSP reference that it stores.
    pub psp_ref: Option<String>,
}

impl Payment {
    /// Made 40 minutes ago, sent 30 minutes ago, and stuck since.
    pub fn stuck(id: i64) -> Self {
        Self {
            id,
            order_no: None,
            account: "live",
            status: "processing",
            amount: Some(10_000 + id),
            currency: "EUR",
            age: 40 * 60,
            attempted: Some(30 * 60),
            psp_ref: None,
        }
    }

    /// The captured object that explains it, made when it was sent: a second sooner, or a clock
    /// that moves on between row and object would put it after all that a span of a second covers.
    pub fn captured(&self) -> Seed {
        let at = tieout_now() - self.attempted.unwrap_or(self.age) - 1;
        let seed = Seed::captured(
            "order_id",
            &format!("pay_{}", self.id),
            self.amount.unwrap_or(0),
            &self.currency.to_lowercase(),
        );
        Seed { id: Some(format!("pi_{}", self.id)), ..seed.created_at(at) }
    }

    fn values(&self) -> String {
        let text = |value: &Option<String>| {
            value.as_ref().map_or("null".to_owned(), |value| format!("'{value}'"))
        };
        let amount = self.amount.map_or("null".to_owned(), |amount| amount.to_string());
        let attempted = self.attempted.map(|age| at_text(tieout_now() - age));
        format!(
            "({}, {}, '{}', '{}', {amount}, '{}', '{}', {}, {})",
            self.id,
            text(&self.order_no),
            self.account,
            self.status,
            self.currency,
            at_text(tieout_now() - self.age),
            text(&attempted),
            text(&self.psp_ref),
        )
    }
}

/// This machine's Unix second, which is the sandbox's and the databases' as well.
pub fn tieout_now() -> i64 {
    chrono::Utc::now().timestamp()
}

/// A Unix second as both databases read it.
pub fn at_text(second: i64) -> String {
    let at = chrono::DateTime::from_timestamp(second, 0).unwrap();
    at.format("%Y-%m-%dT%H:%M:%S.000000Z").to_string()
}

/// How one run of the program ended.
#[derive(Debug)]
pub struct Ran {
    /// The exit code; none where a signal that it does not catch ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// Longer than this no run of the tests takes, however busy the machine is.
const LONGEST: std::time::Duration = std::time::Duration::from_secs(240);

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Where each thread of a process stands.
fn stand(pid: u32) -> String {
    let mut told = String::new();
    for thread in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        for name in ["comm", "wchan", "syscall"] {
            let said = std::fs::read_to_string(thread.path().join(name)).unwrap_or_default();
            write!(told, " {}", said.trim()).unwrap();
        }
        told.push('\n');
    }
    told
}

impl Ran {
    /// From a process's output.
    pub fn of(output: &std::process::Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    /// Of a process once it has ended. One that does not is a failure that shows where it stands:
    /// what each of its threads waits for in the kernel, and what it had said.
    pub async fn once_over(mut child: tokio::process::Child) -> Self {
        let pid = child.id();
        let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let reads = async {
            let out = async { drop(out.as_mut().unwrap().read_to_end(&mut stdout).await) };
            let err = async { drop(err.as_mut().unwrap().read_to_end(&mut stderr).await) };
            tokio::join!(out, err, child.wait()).2.unwrap()
        };
        let ended = tokio::time::timeout(LONGEST, reads).await;
        let (stdout, stderr) = (text(&stdout), text(&stderr));
        match ended {
            Ok(status) => Self { code: status.code(), stdout, stderr },
            Err(_elapsed) => {
                panic!("it runs for {LONGEST:?}: {stderr}{stdout}{}", stand(pid.unwrap()))
            }
        }
    }

    /// The same, where it ended with this code.
    #[track_caller]
    pub fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.stderr, self.stdout);
        self
    }

    /// Says what was decided, for whoever reads a failed test; the first few rows will do.
    fn tell(&self) {
        eprintln!("run ended {:?} {}", self.code, self.stderr.trim_end());
        for v in self.of_type("verdict").iter().take(12) {
            eprintln!("  {} {} {}: {}", v["txn_id"], v["outcome"], v["reason"], v["text"]);
        }
    }

    /// The lines of `--json`.
    pub fn events(&self) -> Vec<Value> {
        let line =
            |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.stdout.lines().map(line).collect()
    }

    /// The events of one type.
    pub fn of_type(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["type"] == kind).collect()
    }

    /// What was decided: key → (outcome, reason).
    pub fn verdicts(&self) -> BTreeMap<String, (String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let verdicts = self.of_type("verdict").into_iter();
        verdicts.map(|v| (text(&v["txn_id"]), (text(&v["outcome"]), text(&v["reason"])))).collect()
    }

    /// What was decided of one row: `outcome reason`.
    pub fn verdict(&self, id: i64) -> String {
        match self.verdicts().get(&id.to_string()) {
            Some((outcome, reason)) => format!("{outcome} {reason}"),
            None => "not decided".to_owned(),
        }
    }
}

/// A transaction of the application's own, on PostgreSQL.
pub struct Held {
    connection: sqlx::PgConnection,
}

impl Held {
    /// Runs statements in it.
    pub async fn try_execute(&mut self, sql: &str) -> Result<(), sqlx::Error> {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        self.connection.execute(sql).await.map(|_| ())
    }

    /// Ends it, and what it holds.
    pub async fn rollback(&mut self) {
        self.try_execute("rollback").await.unwrap();
    }
}

/// A shop.
pub struct Shop {
    /// Its PSP.
    pub sandbox: Handle,
    /// The test's own connection to its database.
    pub raw: Raw,
    /// Which database.
    pub engine: Engine,
    /// The words of its tieout.toml.
    pub words: Words,
    place: String,
    folder: TempDir,
    server: Option<Database>,
    /// Everything that was planted there.
    pub seeds: Vec<Seed>,
    /// The role that the program logs in as; none: the owner.
    login: Option<String>,
    /// That role is the suite's choice, not the test's.
    is_login_by_suite: bool,
}

/// The role that a test's program logs in as on PostgreSQL: `TIEOUT_TEST_ROLE` where it is set
/// (empty: the owner), else the one for the schedule in every test of a run, so that a right which
/// `db roles` forgets fails there. What people decide is not the schedule's to say.
fn suite_role() -> Option<String> {
    if let Ok(role) = std::env::var("TIEOUT_TEST_ROLE") {
        return Some(role).filter(|role| !role.is_empty());
    }
    // The runner names a test's thread after the test.
    let thread = std::thread::current();
    let test = thread.name().unwrap_or_default();
    (test.starts_with("run::") && !test.starts_with("run::people")).then(|| "run".to_owned())
}

impl Shop {
    /// A shop without payments.
    pub async fn open(engine: Engine) -> Self {
        Self::open_with(engine, Words::default()).await
    }

    /// The same, with other words in its tieout.toml.
    pub async fn open_with(engine: Engine, words: Words) -> Self {
        let mut shop = Self::open_bare(engine, words).await;
        shop.tieout(&["db", "migrate"]).await.ended(0);
        if let (Engine::Postgres, Some(role)) = (engine, suite_role()) {
            shop.under_role(&role).await;
            shop.is_login_by_suite = true;
        }
        shop
    }

    /// The same, without tieout's own tables.
    pub async fn open_bare(engine: Engine, words: Words) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (place, server) = match engine {
            Engine::Sqlite => (format!("sqlite://{}", db_file(folder.path()).display()), None),
            Engine::Postgres => {
                let server = postgres_database().await;
                (server.url().to_owned(), Some(server))
            }
        };
        let raw = Raw::open(&place).await;
        raw.execute(TABLES).await;
        Self::around(engine, words, place, folder, server, raw).await
    }

    /// From here on the program runs as a role of `tieout db roles`, and may do nothing else.
    pub async fn under_role(&mut self, role: &str) {
        (self.login, self.is_login_by_suite) = (None, false);
        self.write_words();
        let name = format!("tieout_suite_{role}");
        let sql = self.tieout(&["db", "roles", "--prefix", "tieout_suite"]).await.ended(0).stdout;
        for each in ["run", "read", "people"] {
            login_role(&format!("tieout_suite_{each}")).await;
        }
        self.raw.execute(&sql).await;
        self.login = Some(name);
        self.write_words();
    }

    /// From here on the program runs as the owner of everything again.
    pub fn under_no_role(&mut self) {
        self.login = None;
        self.write_words();
    }

    /// The test's own connection as the role that the program runs as.
    pub async fn raw_as_role(&self) -> Raw {
        Raw::open(&self.program_place()).await
    }

    /// The address that the program connects to.
    fn program_place(&self) -> String {
        match &self.login {
            Some(login) => self.place.replacen("postgres@", &format!("{login}@"), 1),
            None => self.place.clone(),
        }
    }

    async fn around(
        engine: Engine,
        words: Words,
        place: String,
        folder: TempDir,
        server: Option<Database>,
        raw: Raw,
    ) -> Self {
        let sandbox = Sandbox::start(Settings::default()).await.unwrap();
        let shop = Self {
            sandbox,
            raw,
            engine,
            words,
            place,
            folder,
            server,
            seeds: Vec::new(),
            login: None,
            is_login_by_suite: false,
        };
        shop.write_words();
        shop
    }

    /// Writes tieout.toml anew.
    pub fn write_words(&self) {
        let text = self.words.text(&self.program_place(), &self.sandbox.base_url());
        std::fs::write(self.folder.path().join("tieout.toml"), text).unwrap();
    }

    /// Another shop whose database and books stand as these do now; its faults and requests do
    /// not come along.
    pub async fn copy(&mut self) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (place, server) = match &self.server {
            None => {
                let file = db_file(folder.path());
                self.raw.execute(&format!("vacuum into '{}'", file.display())).await;
                (format!("sqlite://{}", file.display()), None)
            }
            Some(server) => {
                // A server copies only a database that nobody is connected to.
                self.raw.clone().close().await;
                let copy = copy_of(server).await;
                self.raw = Raw::open(&self.place).await;
                (copy.url().to_owned(), Some(copy))
            }
        };
        let raw = Raw::open(&place).await;
        let mut copy =
            Self::around(self.engine, self.words.clone(), place, folder, server, raw).await;
        copy.login.clone_from(&self.login);
        copy.is_login_by_suite = self.is_login_by_suite;
        copy.write_words();
        copy.plant(self.seeds.clone());
        copy
    }

    /// The address of the database.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The server's database, where there is one.
    pub fn server(&self) -> Option<&Database> {
        self.server.as_ref()
    }

    /// A transaction of the application's own that holds a payment's row.
    pub async fn begin_holding(&self, id: i64) -> Held {
        let connection = sqlx::PgConnection::connect(&self.place).await.unwrap();
        let mut held = Held { connection };
        let hold = format!("begin; select from payments where id = {id} for update");
        held.try_execute(&hold).await.unwrap();
        held
    }

    /// The folder of tieout.toml and the reports.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Puts rows into the payments table.
    pub async fn insert(&self, payments: &[Payment]) {
        for some in payments.chunks(200) {
            let values: Vec<String> = some.iter().map(Payment::values).collect();
            let sql = format!(
                "insert into payments (id, order_no, account, status, amount, currency, \
                 created_at, attempted_at, psp_ref) values {}",
                values.join(", ")
            );
            self.raw.execute(&sql).await;
        }
    }

    /// Puts objects into the sandbox's books.
    pub fn plant(&mut self, seeds: Vec<Seed>) {
        self.sandbox.seed(seeds.clone()).unwrap();
        self.seeds.extend(seeds);
    }

    /// So many payments that went well, over the last 100 minutes up to now, with their objects:
    /// what a shop mostly consists of, and what shows that the tag arrives.
    pub async fn background(&mut self, count: i64) {
        let now = tieout_now();
        let mut rows = Vec::new();
        let mut seeds = Vec::new();
        for n in 0..count {
            let age = 100 * 60 * n / count;
            let row = Payment {
                status: "paid",
                age: age + 2,
                attempted: Some(age + 1),
                psp_ref: Some(format!("pi_{}", 900_000 + n)),
                amount: Some(500 + n),
                ..Payment::stuck(900_000 + n)
            };
            seeds.push(row.captured().created_at(now - age));
            rows.push(row);
        }
        self.insert(&rows).await;
        self.plant(seeds);
    }

    /// The program, about to be started with this shop's configuration.
    pub fn program(&self, args: &[&str]) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(tieout_bin());
        command
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap_or_default())
            // What is looked for in a line is to stand in one.
            .env("COLUMNS", "1000")
            .env(KEY_NAME, &self.words.key)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(words) = self.words_of_people(args) {
            command.env("TIEOUT_CONFIG", words);
        }
        command
    }

    /// What a person says goes by the people's login, where the whole suite goes by the runs'. A
    /// test that takes that role for itself says it under that role, and sees it refused.
    fn words_of_people(&self, args: &[&str]) -> Option<PathBuf> {
        let is_said = matches!(args, ["files", "release", ..] | ["pause" | "resume", ..]);
        let is_by_run = self.login.as_deref() == Some("tieout_suite_run");
        if !is_said || !is_by_run || !self.is_login_by_suite {
            return None;
        }
        let place = self.place.replacen("postgres@", "tieout_suite_people@", 1);
        let path = self.folder.path().join("people.toml");
        let text = self.words.text(&place, &self.sandbox.base_url());
        std::fs::write(&path, text).unwrap();
        Some(path)
    }

    /// Runs the program to its end.
    pub async fn tieout(&self, args: &[&str]) -> Ran {
        Ran::once_over(self.program(args).spawn().unwrap()).await
    }

    /// `tieout run --json` with more words.
    pub async fn run_with(&self, args: &[&str]) -> Ran {
        let mut all = vec!["run", "--json"];
        all.extend(args);
        let ran = self.tieout(&all).await;
        ran.tell();
        events::check(&ran.stdout);
        ran
    }

    /// `tieout run --json`.
    pub async fn run(&self) -> Ran {
        self.run_with(&[]).await
    }

    /// Runs again and again, each time as if the next look were due, until the spans of the tests'
    /// policy have proven what they can: three looks, a bit more than a second apart.
    pub async fn run_until_proven(&self) -> Ran {
        self.run().await;
        for _ in 0..2 {
            self.a_span_passes().await;
            self.run().await;
        }
        self.a_span_passes().await;
        self.run().await
    }

    /// Lets the spans of the tests' policy (a second each) go by, and what was planned for later
    /// be due.
    pub async fn a_span_passes(&self) {
        tokio::time::sleep(std::time::Duration::from_millis(1_300)).await;
        self.due_now().await;
    }

    /// Makes everything that is planned for later due, as waiting would.
    pub async fn due_now(&self) {
        let past = at_text(tieout_now() - 1);
        self.raw
            .execute(&format!(
                "update tieout_checks set next_check_at = '{past}' \
                 where state in ('open', 'watch') and lease_run is null"
            ))
            .await;
    }

    /// Moves every sign of life and every lease back by ten minutes, as a pause would have.
    pub async fn ten_minutes_pass(&self) {
        let sql = match self.engine {
            Engine::Sqlite => {
                let back = |column: &str| {
                    format!("strftime('%Y-%m-%dT%H:%M:%f', {column}, '-10 minutes') || '000Z'")
                };
                format!(
                    "update tieout_runs set started_at = {}, heartbeat_at = {} \
                     where state = 'running';
                     update tieout_checks set lease_until = {} where lease_run is not null",
                    back("started_at"),
                    back("heartbeat_at"),
                    back("lease_until"),
                )
            }
            Engine::Postgres => "update tieout_runs set \
                 started_at = started_at - interval '10 minutes', \
                 heartbeat_at = heartbeat_at - interval '10 minutes' where state = 'running';
                 update tieout_checks set lease_until = lease_until - interval '10 minutes' \
                 where lease_run is not null"
                .to_owned(),
        };
        // A run that lives meanwhile takes the same rows in another order.
        for _try in 0..5 {
            match self.raw.try_execute(&sql).await {
                Ok(_changed) => return,
                Err(error) if error.to_string().contains("deadlock") => {}
                Err(error) => panic!("{error}\nin: {sql}"),
            }
        }
        panic!("a deadlock each time: {sql}");
    }

    /// Changes closed runs too, as nobody but the owner of the tables can.
    pub async fn change_runs(&self, set: &str) {
        let sql = match self.engine {
            Engine::Sqlite => {
                format!("drop trigger if exists tieout_runs_closed; update tieout_runs set {set}")
            }
            Engine::Postgres => format!(
                "alter table tieout_runs disable trigger tieout_runs_closed;
                 update tieout_runs set {set};
                 alter table tieout_runs enable trigger tieout_runs_closed"
            ),
        };
        self.raw.execute(&sql).await;
    }

    /// The status of a payment.
    pub async fn status(&self, id: i64) -> String {
        self.raw.one(&format!("select status from payments where id = {id}")).await
    }

    /// The first column of a query of texts.
    pub async fn texts(&self, sql: &str) -> Vec<String> {
        let rows = self.raw.rows(sql).await;
        rows.into_iter().map(|row| row[0].clone().unwrap_or_else(|| "NULL".to_owned())).collect()
    }

    /// A count.
    pub async fn count(&self, from_where: &str) -> i64 {
        self.raw
            .one(&format!("select cast(count(*) as text) from {from_where}"))
            .await
            .parse()
            .unwrap()
    }

    /// The open cases: `subject reason`, in order.
    pub async fn open_cases(&self) -> Vec<String> {
        self.texts(
            "select subject || ' ' || reason from tieout_cases where state = 'open' \
             order by subject, reason",
        )
        .await
    }

    /// Every row of every table, by table.
    pub async fn dump(&self) -> BTreeMap<String, Vec<String>> {
        let names = match self.engine {
            Engine::Sqlite => "select name from sqlite_master where type = 'table' order by name",
            Engine::Postgres => {
                "select cast(table_name as text) from information_schema.tables \
                 where table_schema = 'public' order by 1"
            }
        };
        let mut dump = BTreeMap::new();
        for name in self.texts(names).await {
            let rows = match self.engine {
                Engine::Sqlite => {
                    let columns = self
                        .texts(&format!(
                            "select 'quote(\"' || name || '\")' from pragma_table_info('{name}')"
                        ))
                        .await;
                    format!("select {} from \"{name}\" order by 1", columns.join(" || ',' || "))
                }
                Engine::Postgres => {
                    format!("select cast(t as text) from \"{name}\" t order by 1")
                }
            };
            dump.insert(name.clone(), self.texts(&rows).await);
        }
        dump
    }

    /// The files under the folder of tieout.toml, but those of the database.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.path().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let is_database =
                    path.file_name().unwrap().to_string_lossy().starts_with("shop.db");
                if path.is_dir() {
                    folders.push(path);
                } else if !is_database {
                    found.push(path);
                }
            }
        }
        found.sort();
        found
    }

    /// What must hold after anything at all; `foreign` says that other hands changed statuses.
    pub async fn check(&self, foreign: bool) {
        let payments = Mapped {
            name: "payments",
            relation: "payments",
            key: "cast(t.id as text)",
            status: "t.status",
        };
        let mapped: &[Mapped<'_>] = if foreign { &[] } else { &[payments] };
        assert_invariants(&self.place, mapped).await;
        let untouched = self.texts("select word from untouched").await;
        assert_eq!(untouched, ["as it was"]);
    }

    /// The tags of captured objects with how often each was captured: the truth at the PSP.
    pub fn captures(&self) -> BTreeMap<String, usize> {
        let mut captures = BTreeMap::new();
        for intent in self.sandbox.objects(SeedKind::Intent) {
            if intent["amount_received"].as_i64().unwrap_or(0) > 0 {
                let tag = intent["metadata"]["order_id"].as_str().unwrap_or("-").to_owned();
                *captures.entry(tag).or_insert(0) += 1;
            }
        }
        captures
    }
}

fn db_file(folder: &Path) -> PathBuf {
    folder.join("shop.db")
}

/// Sends a signal to one process.
pub async fn signal(pid: u32, name: &str) {
    let script = format!("kill -{name} {pid}");
    let status = tokio::process::Command::new("sh").args(["-c", &script]).status().await.unwrap();
    assert!(status.success(), "{script}");
}
