//! Idempotency keys, as Stripe keeps them.

use std::time::Duration;

use serde_json::{Value, json};
use tieout::sandbox::faults::{Action, FaultRule};
use tieout::sandbox::settings::{RetryAfter, Settings};

use super::{DAWN, Rig, read};

#[tokio::test]
async fn a_key_answers_the_same_for_ever() {
    let rig = Rig::new().await;
    let keyed = || rig.paying("a").header("Idempotency-Key", "k1");
    let first = keyed().send().await.unwrap();
    assert!(!first.headers().contains_key("idempotent-replayed"));
    assert_eq!(first.headers()["idempotency-key"], "k1");
    let id = first.headers()["request-id"].clone();
    let first = first.json::<Value>().await.unwrap();
    let again = keyed().send().await.unwrap();
    assert_eq!(again.headers()["idempotent-replayed"], "true");
    assert_eq!(again.headers()["original-request"], id);
    assert_eq!(again.json::<Value>().await.unwrap(), first);
    assert_eq!(rig.kept(), ["a"]);

    let (status, other) = read(rig.paying("b").header("Idempotency-Key", "k1")).await;
    assert_eq!((status, &other["error"]["type"]), (400, &json!("idempotency_error")));
    let elsewhere = rig.client.post(rig.url("/v1/payment_intents"));
    let elsewhere = elsewhere.bearer_auth("sk_live_other").header("Idempotency-Key", "k1");
    let made = read(elsewhere.form(&[("amount", "1"), ("currency", "usd")])).await;
    assert_eq!(made.0, 200, "another account's key is another key");
}

#[tokio::test]
async fn failures_that_began_are_saved_and_others_are_not() {
    let failing = Action::Status { code: 500, retry_after: RetryAfter::Absent, reason: None };
    let acted = Action::ActThen(Box::new(failing.clone()));
    // The rule for the first try, its payment method, both statuses, payments made in the end.
    let cases = [
        (None, "pm_card_chargeDeclined", 402, 402, 1),
        (Some(acted), "pm_card_visa", 500, 500, 1),
        (Some(failing), "pm_card_visa", 500, 200, 1),
    ];
    for (rule, method, first, second, made) in cases {
        let rig = Rig::new().await;
        if let Some(action) = rule.clone() {
            rig.sandbox.fault(FaultRule::always(action).times(1));
        }
        let keyed = || rig.paying_by(method, "a").header("Idempotency-Key", "k1");
        assert_eq!(read(keyed()).await.0, first, "{rule:?}");
        let again = keyed().send().await.unwrap();
        let replayed = again.headers().contains_key("idempotent-replayed");
        assert_eq!((again.status().as_u16(), replayed), (second, second == first), "{rule:?}");
        assert_eq!(rig.kept().len(), made, "{rule:?}");
    }
    let rig = Rig::new().await;
    let wrong = [("amount", "x"), ("currency", "usd")];
    let right = [("amount", "5"), ("currency", "usd")];
    let keyed = |form: &[(&str, &str)]| {
        rig.post("/v1/payment_intents", form).header("Idempotency-Key", "k1")
    };
    assert_eq!(read(keyed(&wrong)).await.0, 400);
    assert_eq!(read(keyed(&right)).await.0, 200, "a refused request leaves its key unused");
}

#[tokio::test]
async fn two_at_once_with_one_key_are_one_payment() {
    let rig = Rig::new().await;
    rig.sandbox.behave(|behaviour| behaviour.latency_ms = 300);
    let keyed = || rig.paying("a").header("Idempotency-Key", "k1");
    let both = tokio::join!(read(keyed()), read(keyed()));
    let mut statuses = [both.0.0, both.1.0];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    assert_eq!(rig.kept(), ["a"]);
}

#[tokio::test]
async fn a_key_is_forgotten_after_its_time() {
    let settings = Settings { frozen_at: Some(DAWN), ..Settings::default() };
    let rig = Rig::with(settings).await;
    let keyed = || rig.paying("a").header("Idempotency-Key", "k1");
    read(keyed()).await;
    rig.sandbox.advance(24 * 60 * 60 - 1);
    read(keyed()).await;
    assert_eq!(rig.kept().len(), 1);
    rig.sandbox.advance(1);
    read(keyed()).await;
    assert_eq!(rig.kept().len(), 2, "from now on the key is a new one");
}

#[tokio::test]
async fn a_replayed_answer_has_to_cross_the_same_network() {
    let rig = Rig::new().await;
    let lost = Action::ActThen(Box::new(Action::Reset));
    rig.sandbox.fault(FaultRule::always(lost).times(2));
    let keyed =
        || rig.paying("a").header("Idempotency-Key", "k1").timeout(Duration::from_secs(5)).send();
    assert!(keyed().await.is_err());
    assert!(keyed().await.is_err());
    assert_eq!(keyed().await.unwrap().headers()["idempotent-replayed"], "true");
    assert_eq!(rig.kept(), ["a"]);
}
