//! Many stuck rows in a window of many more transactions, asked of a PSP that is slow and counts
//! requests: the time of the whole job against the least that the rate allows.
//!
//!     cargo bench --bench w3_list [-- ROWS WINDOW [ROUNDS]]
//!
//! The least is one request for every hundred objects of each kind that the window holds, at the
//! permitted rate: a proof of absence needs them all. Everything else is the job's own: claiming,
//! pages read twice, the end of each slice, deciding, writing, the report, the process itself.
//! The day is no flat one: busy noons, quiet nights, and a second in which a campaign went out.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark reports to a person")]

mod shop;

use std::fmt::Write as _;
use std::time::Duration;

use shop::{Shop, TAG, ratio};
use tieout::sandbox::seeds::Seed;
use tieout::sandbox::settings::{Behaviour, RateLimit, Settings};
use tieout::sandbox::{Handle, Sandbox};

const PER_SECOND: u32 = 100;
const LATENCY_MS: u64 = 50;
const PAGE: u64 = 100;
const KINDS: u64 = 2;

/// How busy each hour of the day is.
const HOURS: [u64; 24] =
    [2, 1, 1, 1, 1, 2, 4, 6, 8, 10, 12, 14, 14, 12, 11, 10, 10, 9, 9, 8, 7, 5, 4, 3];
/// Objects of the one second.
const CAMPAIGN: u64 = 300;

fn main() {
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    let rows: u64 = words.next().map_or(10_000, |word| word.parse().unwrap());
    let window: u64 = words.next().map_or(100_000, |word| word.parse().unwrap());
    let rounds: usize = words.next().map_or(3, |word| word.parse().unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut took = Vec::new();
        for _round in 0..rounds {
            took.push(round(rows, window).await);
        }
        took.sort_unstable();
        println!("w3_list: middle ratio {}", ratio(took[took.len() / 2], optimum(window)));
    });
}

fn optimum(window: u64) -> Duration {
    Duration::from_micros(window.div_ceil(PAGE) * KINDS * 1_000_000 / u64::from(PER_SECOND))
}

async fn round(rows: u64, window: u64) -> Duration {
    let psp = psp().await;
    let shop = Shop::sqlite(&psp.base_url()).await;
    let captured = plant(&shop, &psp, rows, window).await;
    let ran = shop.watched(&["run", "--quiet"]);
    let asked = psp.total_requests();
    let best = optimum(window);
    println!(
        "w3_list: {rows} rows, {window} transactions of {KINDS} kinds: {} ms, {asked} requests; \
         the least {} requests, {} ms; ratio {}; memory {} MiB",
        ran.took.as_millis(),
        window.div_ceil(PAGE) * KINDS,
        best.as_millis(),
        ratio(ran.took, best),
        ran.peak_kib / 1_024,
    );
    let paid = shop.count("select count(*) from payments where status = 'paid'").await;
    assert_eq!(paid, i64::try_from(captured).unwrap(), "every captured row is found");
    let rest = "select count(*) from tieout_checks where last_outcome = 'wait'";
    let waiting = shop.count(rest).await;
    assert_eq!(waiting, i64::try_from(rows - captured).unwrap(), "and no other");
    psp.shutdown().await;
    ran.took
}

async fn psp() -> Handle {
    let limit = RateLimit {
        per_second: PER_SECOND,
        burst: 0,
        per_route: None,
        retry_after: Default::default(),
    };
    let behaviour =
        Behaviour { latency_ms: LATENCY_MS, rate_limit: Some(limit), ..Behaviour::default() };
    Sandbox::start(Settings { behaviour, ..Settings::default() }).await.unwrap()
}

/// Every `window / rows`th transaction is a stuck row's; of a hundred rows one has none. Returns
/// how many rows have theirs.
async fn plant(shop: &Shop, psp: &Handle, rows: u64, window: u64) -> u64 {
    let dawn = psp.now() - 26 * 3_600;
    let mut captured = 0;
    let mut values = String::from("begin;\n");
    let mut seeds = Vec::new();
    let every = window / rows;
    for number in 0..window {
        let created = dawn + second_of_day(number, window);
        let is_row = number % every == 0 && number / every < rows;
        let row = number / every;
        if is_row {
            writeln!(
                values,
                "insert into payments values ({row}, 'processing', {}, 'EUR', \
                 datetime({created}, 'unixepoch'), datetime({created}, 'unixepoch'), null, null);",
                1_000 + row
            )
            .unwrap();
        }
        let is_lost = is_row && row % 100 == 7;
        captured += u64::from(is_row && !is_lost);
        let tag = if is_row && !is_lost { format!("pay_{row}") } else { format!("o_{number}") };
        let amount = if is_row { 1_000 + row } else { 5_000_000 + number };
        let seed = Seed::captured(TAG, &tag, i64::try_from(amount).unwrap(), "eur");
        seeds.push(seed.created_at(created));
    }
    values.push_str("commit;");
    shop.sql(&values).await;
    psp.seed(seeds).unwrap();
    captured
}

/// When the transaction of this number was made, in order.
fn second_of_day(number: u64, window: u64) -> i64 {
    // The campaign's stand together in the first second of the thirteenth hour.
    let (before, all) = (HOURS[..12].iter().sum::<u64>(), HOURS.iter().sum::<u64>());
    let rest = window - CAMPAIGN;
    let first = rest * before / all;
    if (first..first + CAMPAIGN).contains(&number) {
        return 12 * 3_600;
    }
    let number = if number < first { number } else { number - CAMPAIGN };
    let mut place = number * all * 3_600;
    for (hour, weight) in (0_i64..).zip(HOURS) {
        let span = rest * weight * 3_600;
        if place < span {
            return hour * 3_600 + i64::try_from(place / (rest * weight)).unwrap();
        }
        place -= span;
    }
    24 * 3_600 - 1
}
