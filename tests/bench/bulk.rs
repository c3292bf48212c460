//! Claim + decide + apply of many rows, as a ratio to a set-based SQL script that does the same
//! writes in the same run.
//!
//!     cargo bench --bench bulk [-- ROWS [ROUNDS]]
//!
//! PostgreSQL by TEST_POSTGRES_URL (without it that half is said to be left out), SQLite always.
//! The PSP's answers are in memory on tieout's side and in a loaded table on the script's: asking
//! is another benchmark. Prints seconds, the ratio, and where tieout's time goes.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark reads its service's address and reports to a person"
)]

use std::pin::pin;
use std::time::{Duration, Instant as Watch};

use chrono::TimeDelta;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use sqlx::{Connection, Executor};
use tieout::decide::decision::{Asked, Inputs};
use tieout::decide::judge::decide;
use tieout::decide::policy::{
    AbsentMeans, BrakePolicy, GaveUp, Mode, Policy, PspFacts, Timing, Tolerance,
};
use tieout::decide::rules::RuleSet;
use tieout::model::evidence::{Answer, CompleteSearch, Evidence, ObjectState, PspObject, Route};
use tieout::model::time::{Instant, earlier, later};
use tieout::model::transaction::Kind;
use tieout::store::database::Database;
use tieout::store::driver::{Driver, Writer};
use tieout::store::effects::{RowEffects, effects};
use tieout::store::mapping::TableSettings;
use tieout::store::records::{
    ApplyEnd, ClaimFilter, Claimed, Planned, RunEnd, RunStart, RunState, StoredInputs,
};
use tieout::store::settings::DatabaseSettings;

const MAPPING: &str = r#"
name = "charges"
read = "charges"
key = ["id"]
tag = "{id}"
amount = { column = "amount_cents", unit = "minor" }
currency = { column = "currency" }
account = ["provider"]
accounts = { stripe = "stripe" }
status = "status"
created = "created_at"
attempted = "last_attempted_at"
psp_reference = "provider_payment_id"
time = "utc"
mode = "full"
map = [{ from = ["processing"], succeeded = "succeeded", failed = "failed" }]
set = { always = { updated_at = "{now}" }, succeeded = { provider_payment_id = "{psp_reference}" } }
"#;

/// Rows claimed together; the run room's own batch.
const BATCH: i64 = 10_000;
/// Rows written in one transaction; as in the run room.
const APPLY: usize = 5_000;

#[derive(Default)]
struct Spent {
    enrol: Duration,
    claim: Duration,
    decide: Duration,
    apply: Duration,
    /// All threads of this process: on SQLite the database too.
    cpu: Duration,
}

fn main() {
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    let rows: i64 = words.next().map_or(100_000, |word| word.parse().unwrap());
    let rounds: usize = words.next().map_or(3, |word| word.parse().unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        sqlite(rows, rounds).await;
        match std::env::var("TEST_POSTGRES_URL") {
            Ok(url) => postgres(&url, rows, rounds).await,
            Err(_) => println!("postgres: TEST_POSTGRES_URL is not set; left out"),
        }
    });
}

async fn sqlite(rows: i64, rounds: usize) {
    let mut ratios = Vec::new();
    for _round in 0..rounds {
        let dir = tempfile::tempdir().unwrap();
        let place = |who: &str| format!("sqlite:{}?mode=rwc", dir.path().join(who).display());
        let (ours, peer) = (place("ours.db"), place("peer.db"));
        for url in [&ours, &peer] {
            connect(url).await.migrate().await.unwrap();
            let mut c = sqlite_connection(url).await;
            c.execute(sqlx::AssertSqlSafe(SQLITE_TABLES.replace("{rows}", &rows.to_string())))
                .await
                .unwrap();
        }
        let db = connect(&ours).await;
        let (spent, total) = tieout_way(&db, rows).await;
        let mut c = sqlite_connection(&peer).await;
        let watch = Watch::now();
        c.execute(include_str!("bulk_sqlite.sql")).await.unwrap();
        let script = watch.elapsed();
        ratios.push(say("sqlite", rows, total, script, &spent));
    }
    summarize("sqlite", &mut ratios);
}

async fn sqlite_connection(url: &str) -> sqlx::SqliteConnection {
    use sqlx::ConnectOptions;
    let options: sqlx::sqlite::SqliteConnectOptions = url.parse().unwrap();
    options
        .create_if_missing(true)
        .journal_mode(sqlx::sqlite::SqliteJournalMode::Wal)
        .synchronous(sqlx::sqlite::SqliteSynchronous::Full)
        // As much memory for pages as tieout takes.
        .pragma("cache_size", "-65536")
        .pragma("temp_store", "memory")
        .connect()
        .await
        .unwrap()
}

async fn postgres(url: &str, rows: i64, rounds: usize) {
    let mut ratios = Vec::new();
    for round in 0..rounds {
        let name = |who: &str| format!("bench_{who}_{}_{round}", std::process::id());
        let mut admin = sqlx::PgConnection::connect(url).await.unwrap();
        let mut urls = Vec::new();
        for who in ["ours", "peer"] {
            let name = name(who);
            admin.execute(sqlx::AssertSqlSafe(format!("create database {name}"))).await.unwrap();
            let (base, _) = url.rsplit_once('/').unwrap();
            let url = format!("{base}/{name}");
            connect(&url).await.migrate().await.unwrap();
            let mut c = sqlx::PgConnection::connect(&url).await.unwrap();
            c.execute(sqlx::AssertSqlSafe(PG_TABLES.replace("{rows}", &rows.to_string())))
                .await
                .unwrap();
            // Not within the transaction that several statements at once are.
            c.execute("vacuum analyze").await.unwrap();
            urls.push(url);
        }
        let db = connect(&urls[0]).await;
        let (spent, total) = tieout_way(&db, rows).await;
        drop(db);
        let mut c = sqlx::PgConnection::connect(&urls[1]).await.unwrap();
        let watch = Watch::now();
        c.execute(include_str!("bulk_postgres.sql")).await.unwrap();
        let script = watch.elapsed();
        c.close().await.unwrap();
        ratios.push(say("postgres", rows, total, script, &spent));
        for who in ["ours", "peer"] {
            let drop = format!("drop database {} with (force)", name(who));
            admin.execute(sqlx::AssertSqlSafe(drop)).await.unwrap();
        }
    }
    summarize("postgres", &mut ratios);
}

async fn connect(url: &str) -> Database {
    let settings: DatabaseSettings = toml::from_str(&format!("url = \"{url}\"")).unwrap();
    Database::connect(&settings).await.unwrap()
}

/// Permille of the script's time, and the line that says so.
fn say(what: &str, rows: i64, ours: Duration, script: Duration, spent: &Spent) -> u128 {
    let permille = ours.as_micros() * 1_000 / script.as_micros().max(1);
    println!(
        "{what}: {rows} rows: tieout {} ms, its own CPU {} ms (enrol {}, claim {}, decide {}, \
         apply {}), set-based script {} ms, ratio {}.{:03}",
        ours.as_millis(),
        spent.cpu.as_millis(),
        spent.enrol.as_millis(),
        spent.claim.as_millis(),
        spent.decide.as_millis(),
        spent.apply.as_millis(),
        script.as_millis(),
        permille / 1_000,
        permille % 1_000
    );
    permille
}

fn summarize(what: &str, ratios: &mut [u128]) {
    ratios.sort_unstable();
    let median = ratios[ratios.len() / 2];
    println!("{what}: median ratio {}.{:03}", median / 1_000, median % 1_000);
}

/// What `tieout run` does with rows whose answers are there, without the asking.
async fn tieout_way(db: &Database, rows: i64) -> (Spent, Duration) {
    let settings: TableSettings = toml::from_str(MAPPING).unwrap();
    let accounts = vec!["stripe".to_owned()];
    let tables = db.map_tables(std::slice::from_ref(&settings), &accounts).await.unwrap();
    let table = &tables[0];
    let policy = policy();
    let names = if table.side_by_side { &["1", "2"][..] } else { &["1"] };
    let writer = |name: &&str| Writer { name: (*name).into(), seq: 0, head: "bench".into() };
    let mut writers: Vec<Writer> = names.iter().map(writer).collect();
    let mut under_way = FuturesUnordered::new();
    let mut spent = Spent::default();
    let (watch, cpu) = (Watch::now(), cpu_time());
    let now = db.now().await.unwrap();
    db.start_run(&start(), now).await.unwrap();
    let filter = ClaimFilter {
        stuck_before: Some(earlier(now, TimeDelta::minutes(20))),
        ..ClaimFilter::default()
    };
    let step = Watch::now();
    db.enrol(table, &filter, now).await.unwrap();
    spent.enrol = step.elapsed();
    let mut done = 0;
    loop {
        let step = Watch::now();
        let now = db.now().await.unwrap();
        let lease = later(now, TimeDelta::minutes(2));
        let claimed = db.claim_due("bench", table, &filter, BATCH, now, lease).await.unwrap();
        spent.claim += step.elapsed();
        if claimed.is_empty() {
            break;
        }
        let mut claimed = claimed.into_iter();
        let step = Watch::now();
        let mut batch = work_out(&mut claimed, &policy, &settings, now).await;
        spent.decide += step.elapsed();
        let step = Watch::now();
        while !batch.is_empty() {
            done += batch.len();
            // As the run room does it: the next rows are worked out while the database writes,
            // and where the table lets it, two batches are written at a time.
            let mut writer = writers.pop().unwrap();
            under_way.push(async move {
                let end = db.apply("bench", &mut writer, table, batch, now).await;
                assert!(matches!(end.unwrap(), ApplyEnd::Done { .. }));
                writer
            });
            let mut next = pin!(work_out(&mut claimed, &policy, &settings, now));
            batch = loop {
                tokio::select! {
                    biased;
                    Some(writer) = under_way.next() => writers.push(writer),
                    next = &mut next => break next,
                }
            };
            while writers.is_empty() {
                writers.extend(under_way.next().await);
            }
        }
        while let Some(writer) = under_way.next().await {
            writers.push(writer);
        }
        spent.apply += step.elapsed();
    }
    close(db).await;
    let total = watch.elapsed();
    spent.cpu = cpu_time() - cpu;
    assert_eq!(done, usize::try_from(rows).unwrap(), "every row must be decided");
    let totals = db.run_totals("bench").await.unwrap();
    let succeeded: i64 = totals.iter().filter(|t| t.bucket == "succeeded").map(|t| t.rows).sum();
    assert_eq!(succeeded, rows, "and succeed: {totals:?}");
    (spent, total)
}

async fn close(db: &Database) {
    let end = RunEnd {
        state: RunState::Complete,
        exit_code: 0,
        exit_class: "ok".into(),
        notes: "{}".into(),
    };
    db.close_run("bench", &end, db.now().await.unwrap()).await.unwrap();
}

async fn work_out(
    rows: &mut impl Iterator<Item = Claimed>,
    policy: &Policy,
    settings: &TableSettings,
    now: Instant,
) -> Vec<RowEffects> {
    let mut batch = Vec::new();
    for row in rows.take(APPLY) {
        let planned = plan(row, policy, now);
        batch.push(effects(planned, settings, &policy.timing, "bench"));
        if batch.len().is_multiple_of(16) {
            tokio::task::yield_now().await;
        }
    }
    batch
}

/// What the kernel says of this process, in hundredths of a second.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks: u64 =
        fields.split_whitespace().skip(11).take(2).map(|n| n.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}

fn start() -> RunStart {
    RunStart {
        id: "bench".into(),
        command: "run".into(),
        host: "bench".into(),
        pid: 1,
        version: "0".into(),
        config_sha256: "0".into(),
        policy_version: "0".into(),
        scope: "{}".into(),
    }
}

fn policy() -> Policy {
    Policy {
        timing: Timing::default(),
        max_retries: 5,
        gave_up: GaveUp::Review,
        absent_means: AbsentMeans::HandBack,
        rules: RuleSet::default(),
        psp: PspFacts {
            psp: "stripe".into(),
            kinds: vec![Kind::Charge],
            tag_max: 500,
            routes: Vec::new(),
            charges_by: vec!["payment_intent".into()],
            key_life: None,
        },
        brake: BrakePolicy::default(),
        tolerance: Tolerance::default(),
    }
}

/// What the decision is made from.
fn stored(claimed: &Claimed, evidence: Vec<Evidence>, now: Instant) -> StoredInputs {
    StoredInputs {
        schema: 1,
        now,
        asked: Asked::Run,
        row: claimed.row.clone(),
        siblings: Vec::new(),
        evidence,
        claimed_references: Vec::new(),
        untagged: Vec::new(),
        near_misses: Vec::new(),
        near_objects: Vec::new(),
        history: claimed.history.clone(),
        kicked: None,
    }
}

/// The PSP captured just this row's money.
fn plan(claimed: Claimed, policy: &Policy, now: Instant) -> Planned {
    let row = &claimed.row;
    let evidence = vec![Evidence {
        account: "stripe".into(),
        route: Route::List,
        asked_at: now,
        answer: Answer::Found {
            objects: vec![PspObject {
                reference: format!("pi_{:024}", row.key.id.parse::<u64>().unwrap()),
                aliases: vec![format!("ch_{:024}", row.key.id.parse::<u64>().unwrap())],
                kind: "payment_intent".into(),
                state: ObjectState::Captured,
                status: "succeeded".into(),
                amount: row.money,
                captured: row.money,
                refunded_minor: 0,
                capturable_minor: 0,
                disputed: false,
                charged_back_minor: 0,
                beyond_minor: 0,
                created_at: row.created_at,
                tag: Some(row.key.id.clone()),
                returned: None,
            }],
            search: Some(CompleteSearch {
                route: Route::List,
                kinds: vec!["payment_intent".into()],
                from: earlier(row.created_at, TimeDelta::days(7)),
                to: now,
                asked_at: now,
                counts_as_miss: true,
                lag_secs: 0,
                psp_skew_secs: Some(0),
                listed: 100_000,
                witness: None,
                lacks: None,
            }),
        },
    }];
    let inputs = Inputs {
        row,
        siblings: &[],
        evidence: &evidence,
        claimed_references: &[],
        untagged: &[],
        near_misses: &[],
        history: &claimed.history,
        asked: Asked::Run,
    };
    let decision = decide(&inputs, policy, now);
    let stored = stored(&claimed, evidence, now);
    let evidence = serde_json::to_string(&stored).unwrap();
    Planned {
        claimed,
        decision,
        mode: Mode::Full,
        now,
        evidence,
        policy_version: "0".into(),
        lines: Vec::new(),
        person: None,
        mapped_from: None,
        clears_case: false,
        stages: true,
        siblings: None,
    }
}

/// The script's evidence is made as long as tieout's, so that both write the same bytes.
const PG_TABLES: &str = "
create table charges (id bigint primary key, amount_cents bigint not null, currency text not null,
    status text not null, provider text not null, created_at timestamptz not null,
    last_attempted_at timestamptz, provider_payment_id text, updated_at timestamptz);
insert into charges select g, 1000 + g % 9000, 'EUR', 'processing', 'stripe',
    now() - interval '1 day' + g * interval '1 millisecond',
    now() - interval '1 day' + g * interval '1 millisecond', null, now()
from generate_series(1, {rows}) g;
create index charges_status on charges (status, created_at);
create table psp_answers (id bigint primary key, amount bigint, currency text, reference text,
    body text);
insert into psp_answers select g, 1000 + g % 9000, 'EUR', 'pi_' || lpad(g::text, 24, '0'),
    repeat('x', 1500) from generate_series(1, {rows}) g;
";

const SQLITE_TABLES: &str = "
create table charges (id integer primary key, amount_cents integer not null, currency text not null,
    status text not null, provider text not null, created_at text not null,
    last_attempted_at text, provider_payment_id text, updated_at text);
insert into charges
with recursive g(n) as (select 1 union all select n + 1 from g where n < {rows})
select n, 1000 + n % 9000, 'EUR', 'processing', 'stripe',
    strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 day'), strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 day'),
    null, strftime('%Y-%m-%d %H:%M:%S', 'now') from g;
create index charges_status on charges (status, created_at);
create table psp_answers (id integer primary key, amount integer, currency text, reference text,
    body text);
insert into psp_answers
with recursive g(n) as (select 1 union all select n + 1 from g where n < {rows})
select n, 1000 + n % 9000, 'EUR', 'pi_' || printf('%024d', n), printf('%01500d', 0) from g;
";
