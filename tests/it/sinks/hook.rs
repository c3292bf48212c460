//! Webhooks: signed as the scheme's reference verifies them, and every way of not being taken.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;

use super::{deliver, event_ids, ids, of_sink, sold};
use crate::run::shop::{Engine, tieout_now};
use crate::support::ports::Refusing;
use crate::support::receiver::{Answer, Receiver, Sent};

const KEY: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const OLD_KEY: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

pub fn hook_sink(name: &str, url: &str) -> String {
    format!(
        "[[sink]]\nname = \"{name}\"\nkind = \"webhook\"\nurl = \"{url}/events\"\n\
         key_command = [\"printf\", \"{KEY}\"]\ntimeout = \"2s\"\n"
    )
}

/// Standard Webhooks' reference: the time within five minutes, and one of the signatures.
fn verified(sent: &Sent, key: &str) -> bool {
    let header = |name: &str| sent.headers.get(name).unwrap().to_str().unwrap().to_owned();
    let (id, at) = (header("webhook-id"), header("webhook-timestamp"));
    assert!((at.parse::<i64>().unwrap() - tieout_now()).abs() <= 300, "{at}");
    let key = BASE64_STANDARD.decode(key.strip_prefix("whsec_").unwrap()).unwrap();
    header("webhook-signature").split(' ').any(|signature| {
        let (version, text) = signature.split_once(',').unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
        mac.update(format!("{id}.{at}.{}", sent.body).as_bytes());
        let bytes = BASE64_STANDARD.decode(text).unwrap();
        version == "v1" && mac.verify_slice(&bytes).is_ok()
    })
}

fn bodies(sent: &[Sent]) -> Vec<Value> {
    sent.iter().map(|sent| serde_json::from_str(&sent.body).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_verifies_by_the_reference() {
    let hook = Receiver::start(Answer::Status(204)).await;
    let sink =
        hook_sink("hook", hook.url()) + &format!("old_key_command = [\"printf\", \"{OLD_KEY}\"]\n");
    let shop = sold(Engine::Sqlite, &sink, 3).await;
    let ran = deliver(&shop, &[]).await.ended(0);
    assert_eq!(of_sink(&ran, "hook")["delivered"], 3);
    assert!(!ran.stdout.contains("whsec_") && !ran.stderr.contains("whsec_"));
    let sent = hook.sent("/events");
    assert_eq!(ids(&bodies(&sent)), event_ids(&shop).await);
    for one in &sent {
        assert!(verified(one, KEY) && verified(one, OLD_KEY));
        assert!(!verified(one, "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"));
        let body: Value = serde_json::from_str(&one.body).unwrap();
        assert_eq!(body["id"], one.headers["webhook-id"].to_str().unwrap());
        assert_eq!((&body["attempt"], &body["hand_back"]), (&1.into(), &Value::Null));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_takes_nothing_is_left_alone_and_loses_nothing() {
    for (answer, exit) in [
        (Answer::Status(500), 3),
        (Answer::Status(503), 3),
        (Answer::Status(429), 3),
        (Answer::Status(401), 12),
        (Answer::Status(404), 10),
        (Answer::Redirect, 10),
        (Answer::Hang, 3),
    ] {
        let hook = Receiver::start(answer).await;
        let shop = sold(Engine::Sqlite, &hook_sink("hook", hook.url()), 6).await;
        let ran = deliver(&shop, &[]).await.ended(exit);
        let note = of_sink(&ran, "hook");
        assert_eq!(
            (&note["state"], &note["waiting"]),
            (&"failing".into(), &6.into()),
            "{answer:?}"
        );
        assert_eq!(note["dead"], 0, "{answer:?}");
        let asked = hook.sent("").len();
        assert!((1..=7).contains(&asked), "{answer:?}: {asked}");
        // Not before its time: the back-off stands in the database.
        let ran = deliver(&shop, &[]).await.ended(3);
        assert_eq!(of_sink(&ran, "hook")["state"], "left_alone", "{answer:?}");
        assert_eq!(hook.sent("").len(), asked);
        hook.answer(Answer::Status(200));
        let past = crate::run::shop::at_text(tieout_now() - 1);
        shop.raw.execute(&format!("update tieout_deliveries set next_attempt_at = '{past}'")).await;
        deliver(&shop, &["--now"]).await.ended(0);
        let taken = hook.sent("").split_off(asked);
        assert_eq!(ids(&bodies(&taken)), event_ids(&shop).await, "{answer:?}");
    }
}

/// Why nobody is there is told once, and nothing of the address, which may be a secret.
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_not_there_is_told_with_its_cause() {
    let nobody = Refusing::new();
    let url = format!("http://127.0.0.1:{}/s3cret-path", nobody.port());
    let shop = sold(Engine::Sqlite, &hook_sink("deadhook", &url), 1).await;
    let ran = deliver(&shop, &[]).await.ended(3);
    let why = "cannot be reached: connection refused";
    assert_eq!(of_sink(&ran, "deadhook")["error"], why);
    assert!(ran.stderr.contains(&format!("sink deadhook: {why}; 1 event waits")), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("connection refused").count(), 1, "{}", ran.stderr);
    assert!(!format!("{}{}", ran.stdout, ran.stderr).contains("s3cret"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_sink_holds_up_no_other() {
    let dead = Receiver::start(Answer::Hang).await;
    let live = Receiver::start(Answer::Status(200)).await;
    let sinks = hook_sink("dead", dead.url()) + &hook_sink("live", live.url());
    let shop = sold(Engine::Sqlite, &sinks, 4).await;
    let ran = deliver(&shop, &[]).await.ended(3);
    assert_eq!(of_sink(&ran, "live")["delivered"], 4);
    assert_eq!(of_sink(&ran, "dead")["waiting"], 4);
    assert!(ran.stderr.contains("sink dead: "), "{}", ran.stderr);
    assert_eq!(ids(&bodies(&live.sent(""))), event_ids(&shop).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_delivers_at_its_end_and_says_what_it_could_not() {
    let hook = Receiver::start(Answer::Status(200)).await;
    let mut shop = sold(Engine::Sqlite, &hook_sink("hook", hook.url()), 2).await;
    shop.words.sinks = hook_sink("hook", hook.url());
    shop.write_words();
    shop.run().await.ended(0);
    assert_eq!(ids(&bodies(&hook.sent(""))), event_ids(&shop).await);
    let late = crate::run::shop::Payment::stuck(9);
    shop.insert(std::slice::from_ref(&late)).await;
    shop.plant(vec![late.captured()]);
    hook.answer(Answer::Status(500));
    let ran = shop.run().await.ended(3);
    let missed = ran.of_type("not_examined");
    assert!(missed[0]["text"].as_str().unwrap().starts_with("sink hook: "), "{missed:?}");
    assert_eq!(shop.status(9).await, "paid", "what is decided is decided");
    // A rehearsal tells nobody.
    let before = hook.sent("").len();
    shop.run_with(&["--dry-run"]).await;
    assert_eq!(hook.sent("").len(), before);
}
