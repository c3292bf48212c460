//! A run with nothing due: what it costs to call tieout from cron for nothing.
//!
//!     cargo bench --bench idle [-- ROWS [ROUNDS]]
//!
//! ROWS settled rows lie in the table. The peer is one call of the database's own shell that asks
//! the one question which matters, whether any row is stuck. PostgreSQL by TEST_POSTGRES_URL
//! (without it that half is said to be left out), SQLite always. The two are called in turn, and
//! the least and the middle of all rounds are printed.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark reads its service's address and reports to a person"
)]

mod shop;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant as Watch};

use shop::{Shop, least, median, ratio};

fn main() {
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    let rows: u64 = words.next().map_or(10_000, |word| word.parse().unwrap());
    let rounds: usize = words.next().map_or(40, |word| word.parse().unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        idle(Shop::sqlite(NOBODY).await, rows, rounds).await;
        match std::env::var("TEST_POSTGRES_URL") {
            Ok(url) => idle(Shop::postgres(&url, NOBODY).await, rows, rounds).await,
            Err(_) => println!("postgres: TEST_POSTGRES_URL is not set; left out"),
        }
    });
}

/// Nobody is asked.
const NOBODY: &str = "http://127.0.0.1:9";

async fn idle(shop: Shop, rows: u64, rounds: usize) {
    shop.sql(&settled(&shop, rows)).await;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _round in 0..rounds {
        let ran = shop.tieout(&["run", "--quiet"]);
        assert_eq!(ran.stdout, "", "a quiet run with nothing due says nothing");
        ours.push(ran.took);
        theirs.push(peer(&shop));
    }
    let peak = (0..5).map(|_| shop.watched(&["run", "--quiet"]).peak_kib).max().unwrap();
    let ms = |time: Duration| {
        format!("{}.{:01} ms", time.as_micros() / 1_000, time.as_micros() % 1_000 / 100)
    };
    let (ours_least, theirs_least) = (least(ours.clone()), least(theirs.clone()));
    let (ours, theirs) = (median(ours), median(theirs));
    println!(
        "{}: nothing due among {rows} rows: tieout {} (least {}), {} {} (least {}), ratio {} \
         (of the least {}); memory {}.{} MiB",
        shop.engine(),
        ms(ours),
        ms(ours_least),
        if shop.is_postgres() { "psql" } else { "sqlite3" },
        ms(theirs),
        ms(theirs_least),
        ratio(ours, theirs),
        ratio(ours_least, theirs_least),
        peak / 1_024,
        peak % 1_024 * 10 / 1_024,
    );
    shop.close().await;
}

fn settled(shop: &Shop, rows: u64) -> String {
    if shop.is_postgres() {
        format!(
            "insert into payments select g, 'paid', 1000 + g % 9000, 'EUR',
                now() - interval '1 day', now() - interval '1 day', 'pi_' || g, now()
             from generate_series(1, {rows}) g;
             analyze payments"
        )
    } else {
        format!(
            "insert into payments
             with recursive g(n) as (select 1 union all select n + 1 from g where n < {rows})
             select n, 'paid', 1000 + n % 9000, 'EUR', datetime('now', '-1 day'),
                datetime('now', '-1 day'), 'pi_' || n, datetime('now') from g"
        )
    }
}

/// The database's own shell, asked once whether anything is stuck.
fn peer(shop: &Shop) -> Duration {
    let mut command = if shop.is_postgres() {
        let mut command = Command::new("psql");
        command.args(["-X", "-q", "-A", "-t", "-d", &shop.url, "-c"]);
        command.arg(format!("{STUCK} and created_at < now() - interval '20 minutes'"));
        command
    } else {
        let mut command = Command::new("sqlite3");
        command.arg(shop.file());
        command.arg(format!("{STUCK} and created_at < datetime('now', '-20 minutes')"));
        command
    };
    let watch = Watch::now();
    let output = command.stdin(Stdio::null()).output().unwrap();
    let took = watch.elapsed();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0");
    took
}

const STUCK: &str = "select count(*) from payments where status = 'processing'";
