//! Finding a few stuck rows in a large table.
//!
//!     cargo bench --bench claim [-- ROWS [STUCK]]
//!
//! ROWS rows are made by one statement, STUCK of them are stuck, all over the table. Enrolling them
//! (reading the table by its index on the status) and claiming them are timed by themselves, cold
//! and again, and printed as a ratio to the bare query that lists the stuck rows' keys.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark reads its service's address and reports to a person"
)]

mod shop;

use std::time::{Duration, Instant as Watch};

use chrono::TimeDelta;
use shop::{Shop, ratio};
use tieout::model::time::{earlier, later};
use tieout::store::database::Database;
use tieout::store::driver::Driver;
use tieout::store::mapping::TableSettings;
use tieout::store::records::{ClaimFilter, RunStart};
use tieout::store::settings::DatabaseSettings;

fn main() {
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    let rows: u64 = words.next().map_or(10_000_000, |word| word.parse().unwrap());
    let stuck: u64 = words.next().map_or(1_000, |word| word.parse().unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        claim(Shop::sqlite(NOBODY).await, rows, stuck).await;
        match std::env::var("TEST_POSTGRES_URL") {
            Ok(url) => claim(Shop::postgres(&url, NOBODY).await, rows, stuck).await,
            Err(_) => println!("postgres: TEST_POSTGRES_URL is not set; left out"),
        }
    });
}

/// Nobody is asked.
const NOBODY: &str = "http://127.0.0.1:9";

const MAPPING: &str = r#"
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
map = [{ from = ["processing"], succeeded = "paid", failed = "failed" }]
"#;

async fn claim(shop: Shop, rows: u64, stuck: u64) {
    let watch = Watch::now();
    shop.sql(&filled(&shop, rows, rows / stuck)).await;
    println!("{}: {rows} rows made in {} s", shop.engine(), watch.elapsed().as_secs());
    let settings: DatabaseSettings = toml::from_str(&format!("url = \"{}\"", shop.url)).unwrap();
    let db = Database::connect(&settings).await.unwrap();
    let mapping: TableSettings = toml::from_str(MAPPING).unwrap();
    let accounts = vec!["shop".to_owned()];
    let tables = db.map_tables(std::slice::from_ref(&mapping), &accounts).await.unwrap();
    let table = &tables[0];
    let now = db.now().await.unwrap();
    let filter = ClaimFilter {
        stuck_before: Some(earlier(now, TimeDelta::minutes(20))),
        ..ClaimFilter::default()
    };
    db.start_run(&start(), now).await.unwrap();
    let timed = async |filter: &ClaimFilter| {
        let watch = Watch::now();
        let taken = db.enrol(table, filter, now).await.unwrap();
        let enrol = watch.elapsed();
        let watch = Watch::now();
        let lease = later(now, TimeDelta::minutes(2));
        let claimed = db.claim_due("bench", table, filter, 10_000, now, lease).await.unwrap();
        (taken, enrol, claimed.len(), watch.elapsed())
    };
    let bare = shop.bare().await;
    let (taken, enrol, claimed, claim) = timed(&filter).await;
    assert_eq!((taken, claimed), (stuck, usize::try_from(stuck).unwrap()));
    let (none, again, nothing, claim_again) = timed(&filter).await;
    assert_eq!((none, nothing), (0, 0), "they are leased");
    println!(
        "{}: {stuck} stuck among {rows}: enrol {} ms, claim {} ms; with nothing new {} ms and \
         {} ms; their keys alone {} ms; ratio {}",
        shop.engine(),
        ms(enrol),
        ms(claim),
        ms(again),
        ms(claim_again),
        ms(bare),
        ratio(enrol + claim, bare),
    );
    db.close().await;
    shop.close().await;
}

fn ms(time: Duration) -> String {
    format!("{}.{:01}", time.as_micros() / 1_000, time.as_micros() % 1_000 / 100)
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

fn filled(shop: &Shop, rows: u64, every: u64) -> String {
    if shop.is_postgres() {
        format!(
            "insert into payments
             select g, case when g % {every} = 0 then 'processing' else 'paid' end,
                1000 + g % 9000, 'EUR', now() - interval '300 days' + g * interval '2 seconds',
                now() - interval '300 days' + g * interval '2 seconds', null, null
             from generate_series(1, {rows}) g;
             analyze payments"
        )
    } else {
        format!(
            "insert into payments
             with recursive g(n) as (select 1 union all select n + 1 from g where n < {rows})
             select n, iif(n % {every} = 0, 'processing', 'paid'), 1000 + n % 9000, 'EUR',
                datetime('now', '-300 days', (n * 2) || ' seconds'),
                datetime('now', '-300 days', (n * 2) || ' seconds'), null, null from g"
        )
    }
}
