//! How much memory `tieout run` holds, by the number of stuck rows.
//!
//!     cargo bench --bench memory [-- ROWS…]
//!
//! Every row's payment is captured at the PSP, in a sandbox without latency. What grows is printed
//! as the difference to the row count before.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark reads its service's address and reports to a person"
)]

mod shop;

use shop::{Shop, TAG};
use tieout::sandbox::Sandbox;
use tieout::sandbox::seeds::Seed;
use tieout::sandbox::settings::Settings;

fn main() {
    let words = std::env::args().skip(1).filter(|word| word != "--bench");
    let mut sizes: Vec<i64> = words.map(|word| word.parse().unwrap()).collect();
    if sizes.is_empty() {
        sizes = vec![1_000, 10_000, 100_000];
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for rows in &sizes {
            memory(None, *rows).await;
        }
        match std::env::var("TEST_POSTGRES_URL") {
            Ok(url) => {
                for rows in &sizes {
                    memory(Some(&url), *rows).await;
                }
            }
            Err(_) => println!("postgres: TEST_POSTGRES_URL is not set; left out"),
        }
    });
}

async fn memory(server: Option<&str>, rows: i64) {
    let psp = Sandbox::start(Settings::default()).await.unwrap();
    let shop = match server {
        Some(url) => Shop::postgres(url, &psp.base_url()).await,
        None => Shop::sqlite(&psp.base_url()).await,
    };
    shop.set("requests_per_second = 100", "requests_per_second = 1000");
    // Rows over the last hours, so that a batch's window is its own.
    shop.set("max_handbacks = 100000", "max_handbacks = 100000\nobject_before_row = \"15min\"");
    let start = psp.now() - 3_600 - rows;
    shop.sql(&stuck(&shop, rows, start)).await;
    let seeds = (1..=rows).map(|row| {
        let seed = Seed::captured(TAG, &format!("pay_{row}"), 1_000 + row % 9_000, "eur");
        seed.created_at(start + row)
    });
    psp.seed(seeds).unwrap();
    let ran = shop.watched(&["run", "--quiet"]);
    println!(
        "{}: {rows} stuck rows: memory {}.{} MiB, {} ms, {} requests",
        shop.engine(),
        ran.peak_kib / 1_024,
        ran.peak_kib % 1_024 * 10 / 1_024,
        ran.took.as_millis(),
        psp.total_requests(),
    );
    let paid = shop.count("select count(*) from payments where status = 'paid'").await;
    assert_eq!(paid, rows, "every row is decided");
    shop.close().await;
    psp.shutdown().await;
}

fn stuck(shop: &Shop, rows: i64, start: i64) -> String {
    if shop.is_postgres() {
        format!(
            "insert into payments select g, 'processing', 1000 + g % 9000, 'EUR',
                to_timestamp({start} + g), to_timestamp({start} + g), null, null
             from generate_series(1, {rows}) g;
             analyze payments"
        )
    } else {
        format!(
            "insert into payments
             with recursive g(n) as (select 1 union all select n + 1 from g where n < {rows})
             select n, 'processing', 1000 + n % 9000, 'EUR', datetime({start} + n, 'unixepoch'),
                datetime({start} + n, 'unixepoch'), null, null from g"
        )
    }
}
