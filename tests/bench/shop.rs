//! What the benchmarks of the whole program stand on: a payments table, its tieout.toml, the built
//! program run on them, its time and its memory. Nothing in here is measured by itself.

#![allow(
    dead_code,
    clippy::allow_attributes,
    reason = "each benchmark takes a part of it, and is a program of its own"
)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant as Watch};

use sqlx::{Connection, Executor, PgConnection, SqliteConnection};

/// The tag's place at the PSP.
pub const TAG: &str = "order_id";

/// A shop whose database is made, migrated and empty; its folder goes with it.
pub struct Shop {
    /// Where its tieout.toml and its reports are.
    pub folder: tempfile::TempDir,
    /// The address of its database.
    pub url: String,
    server: Option<(String, String)>,
}

/// How one call of the program went.
pub struct Ran {
    /// From the call to its end.
    pub took: Duration,
    /// The most memory that it held at once, in KiB; 0 where it was not watched.
    pub peak_kib: u64,
    /// Standard output.
    pub stdout: String,
}

impl Shop {
    /// One in a file.
    pub async fn sqlite(base_url: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("shop.db").display());
        Self::made(folder, url, None, base_url).await
    }

    /// One at the server of this address.
    pub async fn postgres(server: &str, base_url: &str) -> Self {
        let name = format!("bench_{}", uuid::Uuid::now_v7().simple());
        let mut admin = PgConnection::connect(server).await.unwrap();
        admin.execute(sqlx::AssertSqlSafe(format!("create database {name}"))).await.unwrap();
        let (base, _) = server.rsplit_once('/').unwrap();
        let url = format!("{base}/{name}");
        let folder = tempfile::tempdir().unwrap();
        Self::made(folder, url, Some((server.to_owned(), name)), base_url).await
    }

    async fn made(
        folder: tempfile::TempDir,
        url: String,
        server: Option<(String, String)>,
        base_url: &str,
    ) -> Self {
        let shop = Self { folder, url, server };
        let config = CONFIG.replace("{url}", &shop.url).replace("{base_url}", base_url);
        std::fs::write(shop.folder.path().join("tieout.toml"), config).unwrap();
        shop.sql(if shop.is_postgres() { PG_TABLE } else { SQLITE_TABLE }).await;
        shop.tieout(&["db", "migrate"]);
        shop
    }

    pub fn is_postgres(&self) -> bool {
        self.server.is_some()
    }

    /// The word in what is printed.
    pub fn engine(&self) -> &'static str {
        if self.is_postgres() { "postgres" } else { "sqlite" }
    }

    /// The database's file.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("shop.db")
    }

    /// Runs statements.
    pub async fn sql(&self, text: &str) {
        let text = sqlx::AssertSqlSafe(text.to_owned());
        if self.is_postgres() {
            let mut c = PgConnection::connect(&self.url).await.unwrap();
            c.execute(sqlx::raw_sql(text)).await.unwrap();
            c.close().await.unwrap();
        } else {
            let url = format!("{}?mode=rwc", self.url);
            let mut c = SqliteConnection::connect(&url).await.unwrap();
            c.execute(sqlx::raw_sql("pragma journal_mode = wal")).await.unwrap();
            c.execute(sqlx::raw_sql(text)).await.unwrap();
            c.close().await.unwrap();
        }
    }

    /// The number that a question answers.
    pub async fn count(&self, question: &str) -> i64 {
        let question = sqlx::AssertSqlSafe(question.to_owned());
        if self.is_postgres() {
            let mut c = PgConnection::connect(&self.url).await.unwrap();
            sqlx::query_scalar(question).fetch_one(&mut c).await.unwrap()
        } else {
            let mut c = SqliteConnection::connect(&self.url).await.unwrap();
            sqlx::query_scalar(question).fetch_one(&mut c).await.unwrap()
        }
    }

    /// How long the database takes to list the keys of the stuck rows, and nothing else.
    pub async fn bare(&self) -> Duration {
        let keys = "select id from payments where status = 'processing'";
        let watch;
        if self.is_postgres() {
            let mut c = PgConnection::connect(&self.url).await.unwrap();
            watch = Watch::now();
            c.fetch_all(keys).await.unwrap();
        } else {
            let mut c = SqliteConnection::connect(&self.url).await.unwrap();
            watch = Watch::now();
            c.fetch_all(keys).await.unwrap();
        }
        watch.elapsed()
    }

    /// Changes a line of its tieout.toml.
    pub fn set(&self, line: &str, other: &str) {
        let path = self.folder.path().join("tieout.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(line), "{line}");
        std::fs::write(path, text.replace(line, other)).unwrap();
    }

    /// Drops what stands at the server; the folder goes by itself.
    pub async fn close(self) {
        if let Some((server, name)) = &self.server {
            let mut admin = PgConnection::connect(server).await.unwrap();
            let drop = format!("drop database {name} with (force)");
            admin.execute(sqlx::AssertSqlSafe(drop)).await.unwrap();
        }
    }

    /// A call of the program in the shop's folder, not begun yet.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tieout"));
        command.args(words).current_dir(self.folder.path()).env_clear();
        command.env("BENCH_KEY", "sk_test_bench");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end; it must end well.
    pub fn tieout(&self, words: &[&str]) -> Ran {
        let watch = Watch::now();
        let output = self.command(words).output().unwrap();
        let took = watch.elapsed();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {stderr}");
        let stdout = String::from_utf8(output.stdout).unwrap();
        Ran { took, peak_kib: 0, stdout }
    }

    /// The same, with an eye on its memory, which costs it some time.
    pub fn watched(&self, words: &[&str]) -> Ran {
        let watch = Watch::now();
        let mut command = self.command(words);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let peak_kib = peak_kib(&mut child);
        let took = watch.elapsed();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{words:?}");
        Ran { took, peak_kib, stdout: String::new() }
    }
}

/// The peak of a process that runs until it ends. The kernel keeps the peak itself, so that the
/// last look before the end says it.
fn peak_kib(child: &mut Child) -> u64 {
    let path = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        peak = std::fs::read_to_string(Path::new(&path)).map_or(peak, |text| {
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kib = line.and_then(|line| line.split_whitespace().next());
            kib.map_or(peak, |kib| kib.parse().unwrap())
        });
        std::thread::sleep(Duration::from_micros(500));
    }
    peak
}

/// The least of several, which the machine's other work cannot make smaller.
pub fn least(times: impl IntoIterator<Item = Duration>) -> Duration {
    times.into_iter().min().unwrap()
}

/// The one in the middle.
pub fn median(times: impl IntoIterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.into_iter().collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// `1.034` for 1.034 times as long.
pub fn ratio(ours: Duration, theirs: Duration) -> String {
    let permille = ours.as_micros() * 1_000 / theirs.as_micros().max(1);
    format!("{}.{:03}", permille / 1_000, permille % 1_000)
}

const CONFIG: &str = r#"
business_timezone = "UTC"
[database]
url = "{url}"
[[account]]
name = "shop"
psp = "stripe"
mode = "full"
livemode = false
key_env = "BENCH_KEY"
base_url = "{base_url}"
tag = "metadata[order_id]"
requests_per_second = 100
concurrency = 16
[[table]]
name = "payments"
read = "payments"
key = ["id"]
tag = "pay_{id}"
amount = { column = "amount", unit = "minor" }
currency = { column = "currency" }
accounts = { "*" = "shop" }
status = "status"
created = "created_at"
attempted = "attempted_at"
psp_reference = "psp_ref"
time = "utc"
mode = "full"
ignore = ["paid", "failed", "retry"]
map = [{ from = ["processing"], succeeded = "paid", failed = "failed", retryable = "retry" }]
set = { always = { updated_at = "{now}" }, succeeded = { psp_ref = "{psp_reference}" } }
[policy]
max_handbacks = 100000
[report]
dir = "reports"
[limits]
rows = 100000
"#;

const PG_TABLE: &str = "
create table payments (id bigint primary key, status text not null, amount bigint not null,
    currency text not null, created_at timestamptz not null, attempted_at timestamptz,
    psp_ref text, updated_at timestamptz);
create index payments_status on payments (status, created_at);
";

const SQLITE_TABLE: &str = "
create table payments (id integer primary key, status text not null, amount integer not null,
    currency text not null, created_at text not null, attempted_at text,
    psp_ref text, updated_at text);
create index payments_status on payments (status, created_at);
";
