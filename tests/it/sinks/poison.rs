//! Events that the sink will never take: they neither hold up the others nor make it look dead.

use super::hook::hook_sink;
use super::{deliver, of_sink, sold, stage};
use crate::run::shop::{Engine, Shop, at_text, on_both_databases, tieout_now};
use crate::support::receiver::{Answer, Receiver};

on_both_databases!(
    poisoned_events_become_dead_letters_and_hold_up_nobody,
    a_dead_sink_is_left_alone_and_kills_no_letter,
);

const POISONED: i64 = 10;

/// Whatever waits for a time is due, and no sink is left alone any more.
async fn time_passes(shop: &Shop) {
    let past = at_text(tieout_now() - 1);
    let later = format!("set next_attempt_at = '{past}' where next_attempt_at is not null");
    shop.raw.execute(&format!("update tieout_sinks {later}")).await;
    shop.raw.execute(&format!("update tieout_deliveries {later} and state = 'waiting'")).await;
}

async fn poisoned_events_become_dead_letters_and_hold_up_nobody(engine: Engine) {
    let hook = Receiver::start(Answer::Status(200)).await;
    hook.poison((1..=POISONED).map(|key| format!("\"key\":\"{key}\"")).collect());
    let sink = hook_sink("hook", hook.url()) + "max_attempts = 2\n";
    let shop = sold(engine, &sink, POISONED).await;
    let untried = "tieout_deliveries where state = 'waiting' and last_error is null";
    for _turn in 0..POISONED {
        time_passes(&shop).await;
        let ran = deliver(&shop, &[]).await.ended(3);
        assert_eq!(of_sink(&ran, "hook")["state"], "failing");
        if shop.count(untried).await == 0 {
            break;
        }
    }
    assert_eq!(shop.count(untried).await, 0, "each of them was tried");
    assert_eq!(shop.count("tieout_deliveries where attempts > 0").await, 0, "it may be the sink");

    // Only they wait: that says nothing of the sink, which is not left alone for them.
    time_passes(&shop).await;
    let ran = deliver(&shop, &[]).await.ended(3);
    assert_eq!(of_sink(&ran, "hook")["state"], "failing");
    assert_eq!(of_sink(&ran, "hook")["until"], serde_json::Value::Null);
    stage(&shop, "91", 1).await;
    let ran = deliver(&shop, &[]).await.ended(0);
    assert_eq!(of_sink(&ran, "hook")["delivered"], 1, "what is new is sent at once");
    assert_eq!(shop.count("tieout_sinks where failing_since is null").await, 1);

    // One that is taken proves the sink alive: each failure counts, more than three in a row too.
    time_passes(&shop).await;
    shop.raw.execute("update tieout_deliveries set attempts = 0").await;
    stage(&shop, "92", 1).await;
    let ran = deliver(&shop, &[]).await.ended(0);
    let note = of_sink(&ran, "hook");
    assert_eq!((&note["delivered"], &note["put_off"]), (&1.into(), &POISONED.into()), "{note}");
    assert_eq!(shop.count("tieout_deliveries where attempts = 1").await, POISONED);
    time_passes(&shop).await;
    stage(&shop, "93", 1).await;
    let ran = deliver(&shop, &[]).await.ended(3);
    let note = of_sink(&ran, "hook");
    assert_eq!((&note["delivered"], &note["died"]), (&1.into(), &POISONED.into()), "{note}");
    assert_eq!((&note["waiting"], &note["dead"]), (&0.into(), &POISONED.into()), "{note}");
    assert_eq!(shop.count("tieout_sinks where failing_since is null").await, 1);
    stage(&shop, "94", 1).await;
    let ran = deliver(&shop, &[]).await.ended(3);
    assert_eq!(of_sink(&ran, "hook")["delivered"], 1);
}

async fn a_dead_sink_is_left_alone_and_kills_no_letter(engine: Engine) {
    let hook = Receiver::start(Answer::Status(500)).await;
    let sink = hook_sink("hook", hook.url()) + "max_attempts = 2\n";
    let shop = sold(engine, &sink, 40).await;
    for _turn in 0..4 {
        time_passes(&shop).await;
        let before = hook.sent("").len();
        let ran = deliver(&shop, &[]).await.ended(3);
        assert_eq!(of_sink(&ran, "hook")["state"], "failing");
        // It is asked for a few new ones, and not for those that failed before besides.
        let asked = hook.sent("").len() - before;
        assert!((3..=7).contains(&asked), "{asked}");
        let ran = deliver(&shop, &[]).await.ended(3);
        assert_eq!(of_sink(&ran, "hook")["state"], "left_alone");
    }
    assert_eq!(shop.count("tieout_deliveries where attempts > 0").await, 0);
    hook.answer(Answer::Status(200));
    time_passes(&shop).await;
    let ran = deliver(&shop, &[]).await.ended(0);
    let note = of_sink(&ran, "hook");
    assert_eq!((&note["delivered"], &note["waiting"]), (&40.into(), &0.into()), "{note}");
}
