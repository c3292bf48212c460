//! A run that is paused (SIGSTOP, a laptop's lid, a stalled machine) past its lease: another run
//! closes it and takes its rows, and when it wakes up it writes nothing more and says so.

use std::time::{Duration, Instant};

use tieout::sandbox::faults::{Action, FaultRule};
use tieout::sandbox::seeds::Seed;
use tieout::sandbox::situations::Situation;

use super::chance::Chance;
use super::kill::outcome;
use crate::run::shop::{Engine, Payment, Ran, Shop, Words, on_both_databases, signal};

on_both_databases!(
    a_run_that_slept_past_its_lease_writes_nothing_more,
    a_run_paused_at_any_instant_writes_no_more_than_it_may,
);

/// Rows that the next look ends in every way there is, in batches of a few.
async fn stage(engine: Engine) -> Shop {
    let words = Words { limits: "batch = 7".to_owned(), ..Words::default() };
    let mut shop = Shop::open_with(engine, words.policy("watch", "[\"1h\"]").patient()).await;
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

/// Waits until the sandbox was asked something.
async fn is_asked(shop: &Shop) {
    for _ in 0..1_000 {
        if shop.sandbox.total_requests() > 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the run asked nothing within 10 s");
}

async fn a_run_that_slept_past_its_lease_writes_nothing_more(engine: Engine) {
    let mut shop = Shop::open_with(engine, Words::default().patient()).await;
    shop.background(60).await;
    let rows: Vec<Payment> = (1..=20).map(Payment::stuck).collect();
    shop.plant(rows.iter().map(Payment::captured).collect());
    shop.insert(&rows).await;
    shop.sandbox.fault(FaultRule::always(Action::Delay { ms: 1_000 }));

    let sleeper = shop.program(&["run"]).spawn().unwrap();
    let pid = sleeper.id().unwrap();
    is_asked(&shop).await;
    signal(pid, "STOP").await;
    assert_eq!(shop.count("tieout_checks where lease_run is not null").await, 20);
    let slept = shop.raw.one("select id from tieout_runs where state = 'running'").await;
    shop.sandbox.clear_faults();
    shop.ten_minutes_pass().await;

    let other = shop.run().await.ended(0);
    assert_eq!(other.of_type("run_abandoned")[0]["run_id"], slept.as_str());
    assert_eq!(other.verdicts().len(), 20);
    assert_eq!(shop.count("payments where status = 'paid'").await, 80);
    let before = shop.dump().await;

    signal(pid, "CONT").await;
    let since = Instant::now();
    let woken = Ran::once_over(sleeper).await;
    assert!(since.elapsed() < Duration::from_secs(30), "{:?}", since.elapsed());
    assert_eq!(woken.code, Some(1), "{}", woken.stderr);
    assert!(woken.stderr.contains("was closed by another run"), "{}", woken.stderr);
    assert_eq!(shop.dump().await, before, "not a byte after it woke up");
    shop.check(false).await;
}

async fn a_run_paused_at_any_instant_writes_no_more_than_it_may(engine: Engine) {
    let mut chance = Chance::from_environment();
    let mut stage = stage(engine).await;
    let unbroken = stage.copy().await;
    let began = Instant::now();
    unbroken.run().await.ended(0);
    let whole = began.elapsed();
    let wanted = outcome(&unbroken).await;
    for _ in 0..12 {
        let shop = stage.copy().await;
        let after = chance.below(whole);
        let sleeper = shop.program(&["run"]).spawn().unwrap();
        let pid = sleeper.id().unwrap();
        tokio::time::sleep(after).await;
        eprintln!("paused after {after:?}");
        signal(pid, "STOP").await;
        // It may hold locks of the database: the other run waits for them no longer than its own
        // limits allow, and says so.
        let moved = tokio::time::timeout(Duration::from_secs(5), shop.ten_minutes_pass()).await;
        if moved.is_ok() {
            let other = shop.run().await;
            assert!([Some(0), Some(14)].contains(&other.code), "{}", other.stderr);
        }
        signal(pid, "CONT").await;
        let woken = Ran::once_over(sleeper).await;
        let known = [Some(0), Some(1), Some(14)];
        assert!(known.contains(&woken.code), "{:?} {}", woken.code, woken.stderr);
        shop.check(false).await;
        shop.ten_minutes_pass().await;
        shop.run().await.ended(0);
        assert_eq!(outcome(&shop).await, wanted, "paused after {after:?}");
        shop.check(false).await;
    }
}
