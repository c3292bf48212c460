//! SIGKILL at random instants, again and again over the same rows: what the killed runs left is
//! whole, and what comes of the rows is what an unbroken run makes of them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tieout::sandbox::seeds::Seed;
use tieout::sandbox::situations::Situation;

use super::chance::Chance;
use crate::run::shop::{Engine, Payment, Shop, Words, on_both_databases};

on_both_databases!(by hand: a_run_killed_at_any_instant_loses_and_doubles_nothing);

/// Kills on each database.
const KILLS: u32 = 100;
/// Kills of the runs over one copy of the stage.
const KILLS_OF_A_COPY: u32 = 5;

/// Rows that the next look ends in every way there is, in batches of a few.
pub async fn stage(engine: Engine) -> Shop {
    let words = Words { limits: "batch = 7".to_owned(), ..Words::default() };
    let mut shop = Shop::open_with(engine, words.policy("watch", "[\"1h\"]")).await;
    shop.background(60).await;
    let absent: Vec<Payment> = (1..=8).map(Payment::stuck).collect();
    let declined: Vec<Payment> = (9..=12).map(Payment::stuck).collect();
    shop.plant(declined.iter().map(declined_at).collect());
    shop.insert(&absent).await;
    shop.insert(&declined).await;
    shop.run().await.ended(0);
    shop.a_span_passes().await;
    let ids: Vec<String> = (1..=8).map(|id: i64| id.to_string()).collect();
    let words: Vec<&str> = ids.iter().flat_map(|id| ["--id", id]).collect();
    shop.run_with(&words).await.ended(0);
    tokio::time::sleep(Duration::from_millis(1_300)).await;
    let rows: Vec<Payment> = (13..=60).map(Payment::stuck).collect();
    let seeds = rows.iter().map(|row| match row.id % 8 {
        0 => Seed { amount: 1, ..row.captured() },
        1 => row.captured().standing(Situation::RequiresCapture),
        _ => row.captured(),
    });
    shop.plant(seeds.collect());
    shop.insert(&rows).await;
    shop.insert(&[Payment { amount: None, ..Payment::stuck(61) }]).await;
    shop.due_now().await;
    shop
}

fn declined_at(row: &Payment) -> Seed {
    let code = if row.id % 2 == 0 { "insufficient_funds" } else { "stolen_card" };
    let seed = row.captured().standing(Situation::Declined);
    Seed { decline_code: Some(code.to_owned()), ..seed }
}

/// What became of everything: by row its status, reference, ends, hand-backs, events, cases.
pub async fn outcome(shop: &Shop) -> BTreeMap<String, String> {
    let count = |from: &str, key: &str| {
        format!("(select cast(count(*) as text) from {from} x where x.{key} = cast(p.id as text))")
    };
    let ends = "(select * from tieout_journal where applied = 'yes' \
                and outcome in ('succeeded', 'retryable', 'failed'))";
    let columns = [
        "p.status".to_owned(),
        "coalesce(p.psp_ref, '-')".to_owned(),
        count(ends, "key"),
        count("tieout_handbacks", "key"),
        count("tieout_outbox", "key"),
        count("tieout_references", "key"),
        count("tieout_cases", "subject"),
        "coalesce((select max(k.reason || ' ' || k.state) from tieout_cases k \
         where k.subject = cast(p.id as text)), '-')"
            .to_owned(),
    ];
    let sql = format!(
        "select cast(p.id as text), {} from payments p where p.id < 900000",
        columns.join(", ")
    );
    let rows = shop.raw.rows(&sql).await.into_iter();
    rows.map(|row| {
        let texts: Vec<String> = row.into_iter().map(Option::unwrap_or_default).collect();
        (texts[0].clone(), texts[1..].join(" "))
    })
    .collect()
}

/// Kills a run after so long. Says whether it was still alive.
async fn killed(shop: &Shop, after: Duration) -> bool {
    let mut child = shop.program(&["run"]).spawn().unwrap();
    tokio::time::sleep(after).await;
    let alive = child.try_wait().unwrap().is_none();
    child.kill().await.unwrap();
    alive
}

fn slowed(shop: &Shop) {
    shop.sandbox.behave(|behaviour| behaviour.latency_ms = 5);
}

async fn a_run_killed_at_any_instant_loses_and_doubles_nothing(engine: Engine) {
    let mut chance = Chance::from_environment();
    let mut stage = stage(engine).await;
    let unbroken = stage.copy().await;
    slowed(&unbroken);
    let began = Instant::now();
    let ran = unbroken.run().await;
    let whole = began.elapsed();
    ran.ended(0);
    let wanted = outcome(&unbroken).await;
    assert_eq!(wanted.len(), 61);
    unbroken.check(false).await;

    let (mut kills, mut alive) = (0, 0);
    while kills < KILLS {
        let shop = stage.copy().await;
        slowed(&shop);
        for _ in 0..KILLS_OF_A_COPY {
            alive += u32::from(killed(&shop, chance.below(whole)).await);
            kills += 1;
            shop.check(false).await;
            shop.ten_minutes_pass().await;
        }
        let last = shop.run().await.ended(0);
        let untied: Vec<_> =
            last.of_type("tieout").into_iter().filter(|line| line["tied"] != true).collect();
        assert!(untied.is_empty(), "{untied:?}");
        assert_eq!(outcome(&shop).await, wanted, "after {kills} kills");
        assert_eq!(shop.count("tieout_runs where state = 'running'").await, 0);
        assert_eq!(shop.count("tieout_checks where lease_run is not null").await, 0);
        shop.check(false).await;
        shop.tieout(&["audit", "verify"]).await.ended(0);
    }
    eprintln!("{alive} of {kills} kills met a living run; an unbroken one took {whole:?}");
    assert!(alive > kills / 2, "only {alive} of {kills} kills met a living run");
}
