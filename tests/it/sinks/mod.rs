//! Delivering, by the built program, to the real servers: what every kind of sink gets, in which
//! order, how often, and what becomes of what it does not take.

mod hook;
mod letters;
mod local;
mod order;
mod poison;
mod queues;
mod stale;

use serde_json::{Value, json};

use crate::run::shop::{Engine, Payment, Ran, Shop, Words, at_text, tieout_now};
use crate::support::events;

/// Nothing is sent at the end of a run.
const BY_HAND: &str = "[delivery]\nafter_run = \"0s\"\n";

/// A shop whose payments 1 to `count` were found captured: so many events wait for these sinks.
async fn sold(engine: Engine, sinks: &str, count: i64) -> Shop {
    let words = Words { sinks: format!("{sinks}{BY_HAND}"), ..Words::default() };
    let mut shop = Shop::open_with(engine, words).await;
    let paid: Vec<Payment> = (1..=count).map(Payment::stuck).collect();
    shop.insert(&paid).await;
    shop.plant(paid.iter().map(Payment::captured).collect());
    shop.run().await.ended(0);
    assert_eq!(shop.count("tieout_outbox").await, count);
    shop
}

/// `tieout deliver --json` with more words.
async fn deliver(shop: &Shop, words: &[&str]) -> Ran {
    let mut all = vec!["deliver", "--json"];
    all.extend(words);
    let ran = shop.tieout(&all).await;
    events::check(&ran.stdout);
    ran
}

/// The event of a sink.
fn of_sink(ran: &Ran, sink: &str) -> Value {
    let found = ran.of_type("delivery").into_iter().find(|event| event["sink"] == sink);
    found.unwrap_or_else(|| panic!("{sink}: {}\n{}", ran.stdout, ran.stderr))
}

/// The ids of every event of the shop.
async fn event_ids(shop: &Shop) -> Vec<String> {
    shop.texts("select event_id from tieout_outbox order by event_id").await
}

/// Stages one more event of a row, as a later decision would.
async fn stage(shop: &Shop, key: &str, version: u32) {
    let run = shop.raw.one("select min(id) from tieout_runs").await;
    let id = format!("evt_{key}_{version}");
    let payload = json!({
        "schema": "tieout.event/1", "id": id, "type": "transaction.review",
        "table": "payments", "key": key, "version": version,
    });
    let at = at_text(tieout_now());
    shop.raw
        .execute(&format!(
            "insert into tieout_outbox (event_id, table_name, key, version, kind, run_id, \
             staged_at, payload) values ('{id}', 'payments', '{key}', {version}, \
             'transaction.review', '{run}', '{at}', '{payload}')"
        ))
        .await;
}

/// Ends every lease of a sink, as its time would.
async fn leases_lapse(shop: &Shop) {
    let past = at_text(tieout_now() - 1);
    shop.raw
        .execute(&format!(
            "update tieout_sinks set lease_until = '{past}' where lease_owner is not null"
        ))
        .await;
}

/// Waits until something is so; half a minute at most.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _try in 0..600 {
        if holds() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{what} did not come");
}

/// A name that no other test has.
fn fresh(name: &str) -> String {
    format!("{name}_{}", uuid::Uuid::now_v7().simple())
}

/// The lines of a file of JSON; none where there is no file.
fn lines_of(path: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// The ids of events, sorted.
fn ids(events: &[Value]) -> Vec<String> {
    let mut ids: Vec<String> =
        events.iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}
