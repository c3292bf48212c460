//! A bank's file against as many processing rows: brought in, matched, decided, written and
//! reported, as a ratio to a set-based SQL script that does the same writes in the same run, and
//! to a script that goes row by row.
//!
//!     cargo bench --bench w1_match [-- ROWS [ROUNDS [ROW_BY_ROW]]]
//!
//! By default 1,000,000 lines against 1,000,000 rows: 97 % exact, 1 % of another amount, 1 %
//! missing, 0.5 % orphans, 0.5 % twice. PostgreSQL by TEST_POSTGRES_URL (without it that half is
//! said to be left out), SQLite always. tieout is the built program, `ingest` and `run`, from its
//! start to its end with the report; the script is one transaction of one connection that loads
//! the file, joins, writes and puts out a reconciliation. The row-by-row script is given the least
//! that it must do (look the row up, change it, journal it, commit), on ROW_BY_ROW rows.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark reads its service's address and reports to a person"
)]

mod shop;

use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::{Duration, Instant as Watch};

use futures_util::StreamExt as _;
use shop::{Shop, median, ratio};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, SqliteConnection};

/// Rows and lines written by one statement while a bench is made ready.
const AT_ONCE: i64 = 500;

/// Amounts are this and the row's number, in cents.
const CENTS: i64 = 10_000;

const MORE: &str = r#"
[[account]]
name = "bank"
psp = "files"
mode = "full"
livemode = true
[[format]]
name = "own"
delimiter = ";"
date = "day"
date_pattern = "%Y-%m-%d"
amount = "amount"
unit = "minor"
currency_is = "EUR"
tag = [{ column = "reference", kind = "merchant_reference" }]
[policy]
"#;

fn main() {
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    let mut number = |default: i64| words.next().map_or(default, |word| word.parse().unwrap());
    let (rows, rounds, single) = (number(1_000_000), number(3), number(10_000));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        measure(None, rows, rounds, single).await;
        match std::env::var("TEST_POSTGRES_URL") {
            Ok(url) => measure(Some(url.as_str()), rows, rounds, single).await,
            Err(_) => println!("postgres: TEST_POSTGRES_URL is not set; left out"),
        }
    });
}

/// What one round took.
struct Round {
    ingest: Duration,
    run: Duration,
    script: Duration,
}

async fn measure(server: Option<&str>, rows: i64, rounds: i64, single: i64) {
    let mut all = Vec::new();
    let mut engine = "";
    for _round in 0..rounds {
        let (ours, peer) = (stuck(server, rows).await, stuck(server, rows).await);
        engine = ours.engine();
        let (ingest, run) = tieout_way(&ours, rows).await;
        let script = script_way(&peer, rows).await;
        let round = Round { ingest, run, script };
        println!(
            "{engine}: {rows} lines and rows: tieout {} ms (ingest {}, run {}), set-based script \
             {} ms, ratio {}",
            (ingest + run).as_millis(),
            ingest.as_millis(),
            run.as_millis(),
            script.as_millis(),
            ratio(ingest + run, script)
        );
        all.push(round);
        ours.close().await;
        peer.close().await;
    }
    let ours = median(all.iter().map(|round| round.ingest + round.run));
    let script = median(all.iter().map(|round| round.script));
    println!("{engine}: ratio of the medians {}", ratio(ours, script));
    let peer = stuck(server, single).await;
    let one_by_one = row_by_row(&peer, single).await;
    peer.close().await;
    // For as many rows as tieout had.
    let scaled = one_by_one * u32::try_from(rows / single.max(1)).unwrap().max(1);
    println!(
        "{engine}: row by row {single} rows in {} ms: tieout is {} times as fast a row",
        one_by_one.as_millis(),
        ratio(scaled, ours)
    );
}

/// A shop with so many rows that were sent and have no answer, and the bank's file beside it.
async fn stuck(server: Option<&str>, rows: i64) -> Shop {
    let nowhere = "http://127.0.0.1:9";
    let shop = match server {
        Some(server) => Shop::postgres(server, nowhere).await,
        None => Shop::sqlite(nowhere).await,
    };
    shop.set("accounts = { \"*\" = \"shop\" }", "accounts = { \"*\" = \"bank\" }");
    shop.set("[policy]\n", MORE);
    shop.set("rows = 100000", "rows = 1000000000");
    let fill = if shop.is_postgres() { PG_ROWS } else { SQLITE_ROWS };
    shop.sql(&fill.replace("{rows}", &rows.to_string())).await;
    write_file(&shop.folder.path().join("bank.csv"), rows);
    shop
}

/// Every line, by its day, amount and tag.
fn lines(rows: i64) -> impl Iterator<Item = (i64, String)> {
    (1..=rows).flat_map(|id| {
        let tag = || format!("pay_{id}");
        let own = || (CENTS + id, tag());
        match (id % 100, id % 200) {
            (0, _) => vec![],
            (1, _) => vec![(CENTS + id + 1, tag())],
            (_, 2) => vec![own(), own()],
            (_, 3) => vec![own(), (CENTS + id, format!("nobody_{id}"))],
            _exact => vec![own()],
        }
    })
}

fn write_file(path: &Path, rows: i64) {
    let mut file = BufWriter::new(std::fs::File::create(path).unwrap());
    let day = yesterday();
    writeln!(file, "day;amount;reference").unwrap();
    for (cents, tag) in lines(rows) {
        writeln!(file, "{day};{cents};{tag}").unwrap();
    }
    file.flush().unwrap();
}

fn yesterday() -> String {
    let today = chrono::Utc::now().date_naive();
    today.pred_opt().unwrap().to_string()
}

/// Rows whose one line has their amount.
fn exact(rows: i64) -> i64 {
    let exact = (1..=rows).filter(|id| !matches!(id % 100, 0 | 1) && id % 200 != 2);
    i64::try_from(exact.count()).unwrap()
}

async fn check(shop: &Shop, rows: i64) {
    let paid = shop.count("select count(*) from payments where status = 'paid'").await;
    assert_eq!(paid, exact(rows), "what is exact is paid, and nothing else");
    let journal = shop.count("select count(*) from tieout_journal").await;
    assert_eq!(journal, rows, "every row is journalled once");
    let open = shop.count("select count(*) from tieout_lines where state = 'open'").await;
    let orphans = (1..=rows).filter(|id| id % 200 == 3).count();
    assert_eq!(open, i64::try_from(orphans).unwrap(), "and no row has an orphan");
}

async fn tieout_way(shop: &Shop, rows: i64) -> (Duration, Duration) {
    let ingest = ["ingest", "bank.csv", "--account", "bank", "--format", "own", "--quiet"];
    let ingest = shop.tieout(&ingest).took;
    let run = shop.tieout(&["run", "--quiet", "--yes"]).took;
    check(shop, rows).await;
    (ingest, run)
}

async fn script_way(shop: &Shop, rows: i64) -> Duration {
    let out = shop.folder.path().join("reconciliation.csv");
    let took = match shop.is_postgres() {
        true => postgres_script(shop, &out).await,
        false => sqlite_script(shop, rows, &out).await,
    };
    check(shop, rows).await;
    took
}

const RECONCILIATION: &str = "select j.key, j.outcome, j.reason, j.currency, j.amount_minor, \
     j.psp_amount_minor, j.psp_reference from tieout_journal j order by j.key";

async fn postgres_script(shop: &Shop, out: &Path) -> Duration {
    let file = std::fs::read(shop.folder.path().join("bank.csv")).unwrap();
    let mut c = PgConnection::connect(&shop.url).await.unwrap();
    let watch = Watch::now();
    c.execute("begin").await.unwrap();
    c.execute(
        "create temporary table staged (n bigserial primary key, day date, minor bigint, \
         tag text) on commit drop",
    )
    .await
    .unwrap();
    let copy = "copy staged (day, minor, tag) from stdin (format csv, delimiter ';', header)";
    let mut copy = c.copy_in_raw(copy).await.unwrap();
    for chunk in file.chunks(1 << 20) {
        copy.send(chunk).await.unwrap();
    }
    copy.finish().await.unwrap();
    c.execute("analyze staged").await.unwrap();
    c.execute(sqlx::raw_sql(include_str!("w1_postgres.sql"))).await.unwrap();
    let copy = format!("copy ({RECONCILIATION}) to stdout (format csv, header)");
    let mut file = BufWriter::new(std::fs::File::create(out).unwrap());
    let mut chunks = c.copy_out_raw(&copy).await.unwrap();
    while let Some(chunk) = chunks.next().await {
        file.write_all(&chunk.unwrap()).unwrap();
    }
    drop(chunks);
    c.execute("commit").await.unwrap();
    file.flush().unwrap();
    let took = watch.elapsed();
    c.close().await.unwrap();
    took
}

/// A line of the reconciliation.
type Line = (String, String, String, String, i64, Option<i64>, Option<String>);

/// SQLite as tieout opens it: a commit is on the disk, and pages have as much memory.
async fn sqlite(shop: &Shop) -> SqliteConnection {
    let mut c = SqliteConnection::connect(&shop.url).await.unwrap();
    let settings = "pragma journal_mode = wal; pragma synchronous = full; \
                    pragma cache_size = -65536; pragma temp_store = memory";
    c.execute(sqlx::raw_sql(settings)).await.unwrap();
    c
}

async fn sqlite_script(shop: &Shop, rows: i64, out: &Path) -> Duration {
    let mut c = sqlite(shop).await;
    let day = yesterday();
    let watch = Watch::now();
    c.execute("begin immediate").await.unwrap();
    c.execute(
        "create temporary table staged (n integer primary key, day text, minor integer, tag text)",
    )
    .await
    .unwrap();
    let mut lines = lines(rows).peekable();
    while lines.peek().is_some() {
        let mut sql = "insert into staged (day, minor, tag) values ".to_owned();
        for (n, (cents, tag)) in lines.by_ref().take(AT_ONCE.try_into().unwrap()).enumerate() {
            let comma = if n > 0 { ", " } else { "" };
            write!(sql, "{comma}('{day}', {cents}, '{tag}')").unwrap();
        }
        c.execute(AssertSqlSafe(sql)).await.unwrap();
    }
    c.execute(sqlx::raw_sql(include_str!("w1_sqlite.sql"))).await.unwrap();
    let mut file = BufWriter::new(std::fs::File::create(out).unwrap());
    let mut found = sqlx::query_as::<_, Line>(RECONCILIATION).fetch(&mut c);
    while let Some(line) = found.next().await {
        let (key, outcome, reason, currency, minor, psp, reference) = line.unwrap();
        let (psp, reference) = (psp.unwrap_or_default(), reference.unwrap_or_default());
        writeln!(file, "{key},{outcome},{reason},{currency},{minor},{psp},{reference}").unwrap();
    }
    drop(found);
    c.execute("commit").await.unwrap();
    file.flush().unwrap();
    let took = watch.elapsed();
    c.close().await.unwrap();
    took
}

/// One look, one change, one record and one commit a line.
async fn row_by_row(shop: &Shop, rows: i64) -> Duration {
    let table = "create table peer_journal (id bigint primary key, outcome text, minor bigint)";
    shop.sql(table).await;
    let own = lines(rows).filter_map(|(cents, tag)| {
        let id: i64 = tag.strip_prefix("pay_")?.parse().ok()?;
        Some((id, cents))
    });
    let own: Vec<(i64, i64)> = own.collect();
    let watch;
    if shop.is_postgres() {
        let mut c = PgConnection::connect(&shop.url).await.unwrap();
        watch = Watch::now();
        for (id, cents) in own {
            let mut tx = c.begin().await.unwrap();
            let look = "select amount, status from payments where id = $1 for update";
            let found: Option<(i64, String)> =
                sqlx::query_as(look).bind(id).fetch_optional(&mut *tx).await.unwrap();
            if let Some(outcome) = outcome(found, cents) {
                let change = "update payments set status = 'paid', updated_at = now() \
                              where id = $1 and $2 = 'paid'";
                sqlx::query(change).bind(id).bind(outcome).execute(&mut *tx).await.unwrap();
                let record = "insert into peer_journal values ($1, $2, $3) on conflict do nothing";
                let record = sqlx::query(record).bind(id).bind(outcome).bind(cents);
                record.execute(&mut *tx).await.unwrap();
            }
            tx.commit().await.unwrap();
        }
    } else {
        let mut c = sqlite(shop).await;
        watch = Watch::now();
        for (id, cents) in own {
            let mut tx = c.begin_with("begin immediate").await.unwrap();
            let look = "select amount, status from payments where id = ?1";
            let found: Option<(i64, String)> =
                sqlx::query_as(look).bind(id).fetch_optional(&mut *tx).await.unwrap();
            if let Some(outcome) = outcome(found, cents) {
                let change = "update payments set status = 'paid', updated_at = datetime('now') \
                              where id = ?1 and ?2 = 'paid'";
                sqlx::query(change).bind(id).bind(outcome).execute(&mut *tx).await.unwrap();
                let record = "insert into peer_journal values (?1, ?2, ?3) on conflict do nothing";
                let record = sqlx::query(record).bind(id).bind(outcome).bind(cents);
                record.execute(&mut *tx).await.unwrap();
            }
            tx.commit().await.unwrap();
        }
    }
    watch.elapsed()
}

fn outcome(found: Option<(i64, String)>, cents: i64) -> Option<&'static str> {
    let (amount, status) = found?;
    (status == "processing").then_some(if amount == cents { "paid" } else { "review" })
}

const PG_ROWS: &str = "
insert into payments (id, status, amount, currency, created_at, attempted_at)
select n, 'processing', 10000 + n, 'EUR', now() - interval '2 days', now() - interval '2 days'
from generate_series(1, {rows}) n;
analyze payments;
";

const SQLITE_ROWS: &str = "
insert into payments (id, status, amount, currency, created_at, attempted_at)
with recursive n(n) as (select 1 union all select n + 1 from n where n < {rows})
select n, 'processing', 10000 + n, 'EUR', strftime('%Y-%m-%d %H:%M:%S', 'now', '-2 days'),
    strftime('%Y-%m-%d %H:%M:%S', 'now', '-2 days') from n;
analyze;
";
