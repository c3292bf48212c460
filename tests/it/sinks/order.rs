//! Order within a transaction, and at least once: under several deliverers, and under SIGKILL.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::hook::hook_sink;
use super::{deliver, leases_lapse, of_sink, sold, stage};
use crate::run::shop::{Engine, Ran, Shop, at_text, on_both_databases, tieout_now};
use crate::support::receiver::{Answer, Receiver};

on_both_databases!(
    killed_between_send_and_mark_it_is_sent_again_and_in_order,
    several_deliverers_never_interleave,
    killed_at_any_instant_nothing_is_lost_or_overtaken,
    one_bad_row_holds_up_its_own_events_alone,
);

/// Rows, each with three events.
const ROWS: i64 = 12;

async fn many(engine: Engine, hook: &Receiver) -> Shop {
    let shop = sold(engine, &hook_sink("hook", hook.url()), ROWS).await;
    for key in 1..=ROWS {
        for version in [2, 3] {
            stage(&shop, &key.to_string(), version).await;
        }
    }
    shop
}

/// The versions that a receiver got, by row, in the order of their coming.
fn versions(hook: &Receiver) -> BTreeMap<String, Vec<i64>> {
    let mut versions: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for sent in hook.sent("/events") {
        let body: Value = serde_json::from_str(&sent.body).unwrap();
        let key = body["key"].as_str().unwrap().to_owned();
        versions.entry(key).or_default().push(body["version"].as_i64().unwrap());
    }
    versions
}

/// Every event came, and none after a later one of its row.
#[track_caller]
fn all_in_order(hook: &Receiver) {
    let versions = versions(hook);
    assert_eq!(versions.len(), usize::try_from(ROWS).unwrap());
    for (key, came) in versions {
        assert!(came.is_sorted(), "row {key}: {came:?}");
        let mut each = came.clone();
        each.dedup();
        assert_eq!(each, [1, 2, 3], "row {key}: {came:?}");
    }
}

async fn killed_between_send_and_mark_it_is_sent_again_and_in_order(engine: Engine) {
    let hook = Receiver::start(Answer::Hang).await;
    let shop = many(engine, &hook).await;
    let mut killed = shop.program(&["deliver"]).spawn().unwrap();
    hook.until("/events", 1).await;
    killed.kill().await.unwrap();
    hook.answer(Answer::Status(200));
    // Its lease holds still: nobody else sends meanwhile.
    let before = hook.sent("").len();
    let ran = deliver(&shop, &[]).await.ended(0);
    assert_eq!(of_sink(&ran, "hook")["state"], "busy");
    assert_eq!(hook.sent("").len(), before);
    leases_lapse(&shop).await;
    deliver(&shop, &[]).await.ended(0);
    all_in_order(&hook);
    let again = hook.sent("").len();
    assert!(again > usize::try_from(ROWS * 3).unwrap(), "what was sent before the kill came twice");
    shop_is_done(&shop).await;
}

async fn several_deliverers_never_interleave(engine: Engine) {
    let hook = Receiver::start(Answer::Status(200)).await;
    let shop = many(engine, &hook).await;
    let running = (0..4).map(async |_| {
        Ran::of(&shop.program(&["deliver"]).output().await.unwrap()).ended(0);
    });
    futures_util::future::join_all(running).await;
    deliver(&shop, &[]).await.ended(0);
    all_in_order(&hook);
    assert_eq!(hook.sent("").len(), usize::try_from(ROWS * 3).unwrap(), "nobody died: once each");
    shop_is_done(&shop).await;
}

async fn killed_at_any_instant_nothing_is_lost_or_overtaken(engine: Engine) {
    let hook = Receiver::start(Answer::Status(200)).await;
    let shop = many(engine, &hook).await;
    for step in 0..12_u64 {
        let mut killed = shop.program(&["deliver"]).spawn().unwrap();
        tokio::time::sleep(Duration::from_millis(20 + 17 * step)).await;
        // Killed or over: either is an instant like any other.
        let _ended = killed.kill().await;
        leases_lapse(&shop).await;
    }
    deliver(&shop, &["--now"]).await.ended(0);
    all_in_order(&hook);
    shop_is_done(&shop).await;
}

async fn shop_is_done(shop: &Shop) {
    assert_eq!(shop.count("tieout_deliveries where state <> 'delivered'").await, 0);
    assert_eq!(shop.count("tieout_outbox where delivered_at is null").await, 0);
}

const TAKES_ALL_BUT_ONE: &str = "\
read -r event
case $event in *'\"key\":\"1\"'*) exit 1 ;; esac
printf '%s\\n' \"$event\" >>taken.ndjson
";

async fn one_bad_row_holds_up_its_own_events_alone(engine: Engine) {
    let sink = "[[sink]]\nname = \"own\"\nkind = \"command\"\nmax_attempts = 2\n\
                command = [\"sh\", \"take.sh\"]\n";
    let shop = sold(engine, sink, ROWS).await;
    std::fs::write(shop.folder().join("take.sh"), TAKES_ALL_BUT_ONE).unwrap();
    stage(&shop, "1", 2).await;
    stage(&shop, "2", 2).await;
    let ran = deliver(&shop, &[]).await.ended(0);
    let note = of_sink(&ran, "own");
    // All of the others, and the second event of row 2 as well.
    assert_eq!((&note["delivered"], &note["waiting"]), (&ROWS.into(), &2.into()), "{note}");
    let past = at_text(tieout_now() - 1);
    let later = "update tieout_deliveries set next_attempt_at";
    shop.raw.execute(&format!("{later} = '{past}' where state = 'waiting'")).await;
    stage(&shop, "3", 2).await;
    let ran = deliver(&shop, &["--now"]).await.ended(3);
    assert_eq!(of_sink(&ran, "own")["delivered"], 1, "the sink is fine: the event is not");
    let dead = deliver(&shop, &["list"]).await.ended(0).of_type("letter");
    assert_eq!(dead.len(), 1, "{dead:?}");
    assert_eq!((&dead[0]["txn_id"], &dead[0]["attempts"]), (&"1".into(), &2.into()));
    assert_eq!(shop.count("tieout_deliveries where state = 'waiting'").await, 1);
}
