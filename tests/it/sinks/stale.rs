//! Hand-backs that are no news any more: never sent, and proved afresh where nobody was told.

use serde_json::Value;
use tieout::sandbox::seeds::Seed;

use super::hook::hook_sink;
use super::{BY_HAND, deliver, of_sink};
use crate::run::shop::{Engine, Payment, Shop, Words, at_text, on_both_databases, tieout_now};
use crate::support::receiver::{Answer, Receiver};

on_both_databases!(
    a_sink_dead_beyond_charge_before_gets_a_fresh_hand_back,
    an_outbox_table_is_proved_afresh_too,
    without_a_sink_a_run_lets_it_lapse,
    whoever_was_told_and_does_not_come_is_a_persons,
    money_that_is_found_meanwhile_contradicts,
    a_hand_back_that_was_superseded_is_never_sent,
    a_row_that_its_worker_took_is_left_to_it,
);

/// A shop whose payment 1 was proven absent and handed back, and whose sink takes nothing.
async fn handed_back(engine: Engine, hook: &Receiver) -> Shop {
    let sinks = hook_sink("worker", hook.url()) + BY_HAND;
    let words = Words { sinks, ..Words::default() };
    let mut shop = Shop::open_with(engine, words.policy("max_retries", "1")).await;
    shop.background(60).await;
    shop.insert(&[Payment::stuck(1)]).await;
    shop.run_until_proven().await;
    assert_eq!(shop.count("tieout_handbacks").await, 1);
    let ran = deliver(&shop, &[]).await.ended(3);
    assert_eq!(of_sink(&ran, "worker")["waiting"], 1);
    shop
}

/// Lets the last moment for charging go by.
async fn too_late(shop: &Shop) {
    let past = at_text(tieout_now() - 1);
    shop.raw.execute(&format!("update tieout_handbacks set charge_before = '{past}'")).await;
}

/// The hand-backs that a receiver took: their numbers.
fn numbers(hook: &Receiver, from: usize) -> Vec<i64> {
    let sent = hook.sent("/events").split_off(from);
    let body = |sent: &crate::support::receiver::Sent| -> Value {
        serde_json::from_str(&sent.body).unwrap()
    };
    sent.iter().map(|sent| body(sent)["hand_back"]["number"].as_i64().unwrap()).collect()
}

async fn a_sink_dead_beyond_charge_before_gets_a_fresh_hand_back(engine: Engine) {
    let hook = Receiver::start(Answer::Status(500)).await;
    let shop = handed_back(engine, &hook).await;
    assert_eq!(shop.status(1).await, "retry");
    too_late(&shop).await;
    hook.answer(Answer::Status(200));
    let before = hook.sent("").len();
    let ran = deliver(&shop, &["--now"]).await.ended(0);
    let end = &ran.of_type("delivery_end")[0];
    assert_eq!((&end["suppressed"], &end["lapsed"]), (&1.into(), &1.into()));
    assert_eq!(hook.sent("").len(), before, "nothing stale is sent");
    let ends = shop.texts("select end_reason from tieout_handbacks").await;
    assert_eq!(ends, ["lapsed"]);
    // The ordinary look: two complete misses again, and then a hand-back of its own.
    shop.a_span_passes().await;
    let first = shop.run().await;
    assert_eq!(first.verdict(1), "wait absence_unproven", "{}", first.stdout);
    shop.a_span_passes().await;
    shop.run().await;
    if shop.count("tieout_handbacks").await < 2 {
        shop.a_span_passes().await;
        shop.run().await;
    }
    let hand_backs = shop
        .texts("select cast(number as text) from tieout_handbacks where ended_at is null")
        .await;
    assert_eq!(hand_backs, ["2"], "the lapsed one cost none of max_retries = 1");
    assert_eq!(shop.status(1).await, "retry");
    deliver(&shop, &["--now"]).await.ended(0);
    assert_eq!(numbers(&hook, before), [2]);
    let sent: Value = serde_json::from_str(&hook.sent("").last().unwrap().body).unwrap();
    assert_eq!((&sent["attempt"], &sent["version"]), (&2.into(), &2.into()));
    shop.check(false).await;
}

async fn an_outbox_table_is_proved_afresh_too(engine: Engine) {
    let hook = Receiver::start(Answer::Status(500)).await;
    let words = Words {
        sinks: hook_sink("worker", hook.url()) + BY_HAND,
        table: "channel = \"outbox\"\n".to_owned(),
        ..Words::default()
    };
    let mut shop = Shop::open_bare(engine, words).await;
    // No status says that it is to be charged again: the hand-back alone does.
    let path = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace(", retryable = \"retry\"", "")).unwrap();
    shop.tieout(&["db", "migrate"]).await.ended(0);
    shop.background(60).await;
    shop.insert(&[Payment::stuck(1)]).await;
    shop.run_until_proven().await;
    deliver(&shop, &[]).await.ended(3);
    too_late(&shop).await;
    hook.answer(Answer::Status(200));
    let before = hook.sent("").len();
    deliver(&shop, &["--now"]).await.ended(0);
    for _look in 0..4 {
        shop.run().await;
        shop.a_span_passes().await;
    }
    deliver(&shop, &["--now"]).await.ended(0);
    assert_eq!(numbers(&hook, before), [2]);
    assert_eq!(shop.status(1).await, "processing");
}

/// Nobody delivers anything: the worker polls, and was away.
async fn without_a_sink_a_run_lets_it_lapse(engine: Engine) {
    for channel in ["status", "outbox"] {
        let table = format!("channel = \"{channel}\"\n");
        let words = Words { sinks: String::new(), table, ..Words::default() };
        let mut shop = Shop::open_with(engine, words.policy("max_retries", "1")).await;
        shop.background(60).await;
        shop.insert(&[Payment::stuck(1)]).await;
        shop.run_until_proven().await;
        assert_eq!(shop.count("tieout_handbacks").await, 1, "{channel}");
        let status = shop.status(1).await;
        too_late(&shop).await;
        let first = shop.run().await;
        assert_eq!(first.verdict(1), "wait absence_unproven", "{channel}: {}", first.stdout);
        for _look in 0..2 {
            shop.a_span_passes().await;
            shop.run().await;
        }
        let ends = "select coalesce(end_reason, 'open') from tieout_handbacks order by number";
        assert_eq!(shop.texts(ends).await, ["lapsed", "open"], "{channel}");
        assert_eq!(shop.status(1).await, status, "{channel}");
        if channel == "outbox" {
            shop.check(false).await;
        } else {
            assert_eq!(shop.count("tieout_outbox").await, 0, "nobody reads events");
        }
    }
}

async fn whoever_was_told_and_does_not_come_is_a_persons(engine: Engine) {
    let hook = Receiver::start(Answer::Status(500)).await;
    let shop = handed_back(engine, &hook).await;
    hook.answer(Answer::Status(200));
    deliver(&shop, &["--now"]).await.ended(0);
    assert_eq!(numbers(&hook, 1), [1]);
    too_late(&shop).await;
    let long_ago = at_text(tieout_now() - 25 * 3_600);
    shop.raw.execute(&format!("update tieout_handbacks set at = '{long_ago}'")).await;
    shop.a_span_passes().await;
    assert_eq!(shop.run().await.verdict(1), "review handback_not_taken");
    assert_eq!(shop.count("tieout_handbacks where ended_at is null").await, 1);
}

async fn money_that_is_found_meanwhile_contradicts(engine: Engine) {
    let hook = Receiver::start(Answer::Status(500)).await;
    let mut shop = handed_back(engine, &hook).await;
    too_late(&shop).await;
    hook.answer(Answer::Status(200));
    let before = hook.sent("").len();
    deliver(&shop, &["--now"]).await.ended(0);
    let late = Seed { id: Some("pi_late".to_owned()), ..Payment::stuck(1).captured() };
    shop.plant(vec![late]);
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "review late_contradiction");
    assert_eq!(shop.status(1).await, "retry");
    deliver(&shop, &["--now"]).await.ended(0);
    let sent = hook.sent("").split_off(before);
    assert_eq!(sent.len(), 1);
    let body: Value = serde_json::from_str(&sent[0].body).unwrap();
    assert_eq!(body["type"], "transaction.review");
    assert_eq!(shop.count("tieout_handbacks").await, 1, "nobody charges again");
}

async fn a_hand_back_that_was_superseded_is_never_sent(engine: Engine) {
    let hook = Receiver::start(Answer::Status(500)).await;
    let mut shop = handed_back(engine, &hook).await;
    let late = Seed { id: Some("pi_late".to_owned()), ..Payment::stuck(1).captured() };
    shop.plant(vec![late]);
    shop.a_span_passes().await;
    assert_eq!(shop.run().await.verdict(1), "review late_contradiction");
    hook.answer(Answer::Status(200));
    let before = hook.sent("").len();
    let ran = deliver(&shop, &["--now"]).await.ended(0);
    let end = &ran.of_type("delivery_end")[0];
    assert_eq!((&end["suppressed"], &end["lapsed"]), (&1.into(), &0.into()));
    let sent = hook.sent("").split_off(before);
    let kinds: Vec<Value> = sent
        .iter()
        .map(|sent| serde_json::from_str::<Value>(&sent.body).unwrap()["type"].clone())
        .collect();
    assert_eq!(kinds, ["transaction.review"]);
    let why = shop.texts("select why from tieout_deliveries where state = 'suppressed'").await;
    assert_eq!(why, ["superseded: late_contradiction"]);
}

async fn a_row_that_its_worker_took_is_left_to_it(engine: Engine) {
    let hook = Receiver::start(Answer::Status(500)).await;
    let shop = handed_back(engine, &hook).await;
    // The worker polls the status, and came before it was too late.
    let now = at_text(tieout_now());
    shop.raw
        .execute(&format!(
            "update payments set status = 'processing', attempt = attempt + 1, \
             attempted_at = '{now}' where id = 1"
        ))
        .await;
    too_late(&shop).await;
    hook.answer(Answer::Status(200));
    let before = hook.sent("").len();
    deliver(&shop, &["--now"]).await.ended(0);
    assert_eq!(hook.sent("").len(), before);
    shop.run().await;
    assert_eq!(shop.count("tieout_handbacks").await, 1, "its call may be under way");
    let taken = "tieout_handbacks where taken_at is not null and ended_at is null";
    assert_eq!(shop.count(taken).await, 1, "it was taken before it lapsed");
    assert_eq!(shop.status(1).await, "processing");
}
