//! Faults of writes: what was done and what the client knows of it fall apart.

use std::time::Duration;

use serde_json::json;
use tieout::sandbox::faults::{Action, FaultRule, Matches};
use tieout::sandbox::routes::Route;
use tieout::sandbox::settings::RetryAfter;

use super::{Rig, read};

fn error(code: u16) -> Action {
    Action::Status { code, retry_after: RetryAfter::Absent, reason: None }
}

fn then(action: Action) -> Action {
    Action::ActThen(Box::new(action))
}

#[tokio::test]
async fn whether_a_failing_write_was_carried_out_is_part_of_the_fault() {
    // The action, the status that the client sees (0: none), whether the payment was made.
    let cases = [
        (error(500), 500, false),
        (error(429), 429, false),
        (Action::Html { code: 200 }, 200, false),
        (Action::Reset, 0, false),
        (then(error(500)), 500, true),
        (then(error(504)), 504, true),
        (then(Action::Reset), 0, true),
        (then(Action::Html { code: 502 }), 502, true),
        (then(Action::EmptyBody), 200, true),
        (then(Action::TruncatedJson { keep_per_mille: 300 }), 200, true),
        (Action::ResetAfter { bytes: 10 }, 0, true),
        (Action::Forget, 200, false),
        (Action::Delay { ms: 1 }, 200, true),
    ];
    for (action, status, made) in cases {
        let rig = Rig::new().await;
        rig.fault(action.clone());
        let seen = match rig.paying("lost").send().await {
            Ok(answer) => {
                let status = answer.status().as_u16();
                answer.bytes().await.map_or(0, |_| status)
            }
            Err(_) => 0,
        };
        assert_eq!(seen, status, "{action:?}");
        assert_eq!(!rig.kept().is_empty(), made, "{action:?}");
    }
}

#[tokio::test]
async fn a_payment_is_made_though_its_client_gave_up() {
    let rig = Rig::new().await;
    rig.fault(then(Action::NoAnswer));
    let gave_up = rig.paying("lost").timeout(Duration::from_millis(300)).send().await;
    assert!(gave_up.unwrap_err().is_timeout());
    assert_eq!(rig.kept(), ["lost"]);

    rig.sandbox.clear_faults();
    rig.sandbox.behave(|behaviour| behaviour.latency_ms = 400);
    let gave_up = rig.paying("slow").timeout(Duration::from_millis(50)).send().await;
    assert!(gave_up.unwrap_err().is_timeout());
    wait_for(&rig, &["slow", "lost"]).await;
}

#[tokio::test]
async fn a_late_call_lands_after_its_answer_and_keeps_its_key_busy() {
    let rig = Rig::new().await;
    let late = Action::ActLate { after_ms: 600, meanwhile: Box::new(error(504)) };
    rig.sandbox.fault(FaultRule::on(Route::CreateIntent, late).times(1));
    let keyed = || rig.paying("late").header("Idempotency-Key", "k1");
    assert_eq!(read(keyed()).await.0, 504);
    assert!(rig.kept().is_empty());
    let (status, busy) = read(keyed()).await;
    assert_eq!((status, &busy["error"]["code"]), (409, &json!("idempotency_key_in_use")));
    wait_for(&rig, &["late"]).await;
    let replayed = keyed().send().await.unwrap();
    assert_eq!(replayed.status(), 200);
    assert_eq!(replayed.headers()["idempotent-replayed"], "true");
    assert_eq!(rig.kept(), ["late"]);
}

#[tokio::test]
async fn a_forgotten_write_leaves_things_as_they_were() {
    let rig = Rig::new().await;
    let form = [("amount", "5"), ("currency", "usd")];
    let (_, cart) = read(rig.post("/v1/payment_intents", &form)).await;
    let path = format!("/v1/payment_intents/{}", cart["id"].as_str().unwrap());
    let matches = Matches { path_prefix: Some(format!("{path}/")), ..Matches::default() };
    rig.sandbox.fault(FaultRule { matches, ..FaultRule::always(Action::Forget) });
    let pay = [("payment_method", "pm_card_visa")];
    let (status, paid) = read(rig.post(&format!("{path}/confirm"), &pay)).await;
    assert_eq!((status, &paid["status"]), (200, &json!("succeeded")));
    assert_eq!(rig.json(&path).await["status"], "requires_payment_method");
    assert_eq!(rig.json("/v1/charges").await["data"], json!([]));
}

/// Waits until the books hold these payments; the test's own time-out is the end of it.
async fn wait_for(rig: &Rig, tags: &[&str]) {
    while rig.kept() != tags {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
