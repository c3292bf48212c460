//! Faults of objects: answers that say other than the books.

use serde_json::{Value, json};
use tieout::sandbox::faults::{Action, Change, FaultRule, Matches, NearMiss, Which};
use tieout::sandbox::routes::Route;
use tieout::sandbox::situations::Situation;

use super::{DAWN, Rig, read};

const LONG: &str = "Order-0123456789-0123456789-0123456789-0123456789";

#[tokio::test]
async fn objects_are_changed_on_their_way_and_not_in_the_books() {
    let rig = Rig::new().await;
    let id = rig.pay(LONG).await["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/payment_intents/{id}?expand[]=latest_charge");
    let truth = rig.json(&path).await;
    let near = Change::NearMiss;
    let cut = |length: usize| json!(LONG.chars().take(length).collect::<String>());
    let cases = [
        (Change::Amount(7), "/amount_received", json!(7)),
        (Change::AmountBy(1), "/latest_charge/amount_captured", json!(1001)),
        (Change::AmountTimes(100), "/amount", json!(100_000)),
        (Change::AmountPer(100), "/amount", json!(10)),
        (Change::Currency("jpy".to_owned()), "/latest_charge/currency", json!("jpy")),
        (Change::Status("settling".to_owned()), "/status", json!("settling")),
        (Change::FlipLivemode, "/livemode", json!(true)),
        (Change::Created(0), "/created", json!(0)),
        (Change::Created(253_402_300_799), "/created", json!(253_402_300_799_i64)),
        (Change::CreatedBy(86_400), "/created", json!(truth["created"].as_i64().unwrap() + 86_400)),
        (near(NearMiss::UpperCase), "/metadata/order", json!(LONG.to_uppercase())),
        (near(NearMiss::LowerCase), "/latest_charge/metadata/order", json!(LONG.to_lowercase())),
        (near(NearMiss::Truncated(22)), "/metadata/order", cut(22)),
        (near(NearMiss::Truncated(40)), "/metadata/order", cut(40)),
        (near(NearMiss::Padded), "/metadata/order", json!(format!(" {LONG} "))),
        (near(NearMiss::ZeroBefore), "/metadata/order", json!(format!("0{LONG}"))),
        (near(NearMiss::UnderKey("ref".to_owned())), "/metadata", json!({ "ref": LONG })),
        (near(NearMiss::InDescription), "/description", json!(LONG)),
        (Change::DropTag, "/metadata", json!({})),
        (
            Change::Set { path: "latest_charge.outcome.type".to_owned(), value: json!("blocked") },
            "/latest_charge/outcome/type",
            json!("blocked"),
        ),
    ];
    for (change, pointer, value) in cases {
        rig.fault(Action::Alter { only: Which::All, change: change.clone() });
        let seen = rig.json(&path).await;
        assert_eq!(seen.pointer(pointer), Some(&value), "{change:?}");
        assert_ne!(truth.pointer(pointer), Some(&value), "{change:?} changes nothing");
        rig.sandbox.clear_faults();
        assert_eq!(rig.json(&path).await, truth, "{change:?} reached the books");
    }
}

#[tokio::test]
async fn only_the_chosen_objects_are_changed() {
    let rig = Rig::with_payments(3).await;
    let cases = [
        (Which::All, ["zzz", "zzz", "zzz"]),
        (Which::Id("pi_1".to_owned()), ["eur", "zzz", "eur"]),
        (Which::Tagged("row-0".to_owned()), ["eur", "eur", "zzz"]),
        (Which::Place(0), ["zzz", "eur", "eur"]),
    ];
    for (only, expected) in cases {
        let change = Change::Currency("zzz".to_owned());
        rig.fault(Action::Alter { only: only.clone(), change });
        let listed = rig.json("/v1/payment_intents").await;
        let seen: Vec<&Value> =
            listed["data"].as_array().unwrap().iter().map(|object| &object["currency"]).collect();
        assert_eq!(seen, expected, "{only:?}");
        rig.sandbox.clear_faults();
    }
}

#[tokio::test]
async fn a_status_flips_between_two_looks() {
    let rig = Rig::with_payments(1).await;
    rig.sandbox.move_to("pi_0", Situation::Processing).unwrap();
    let steps = vec![
        Situation::Processing,
        Situation::Succeeded,
        Situation::Refunded,
        Situation::DisputeLost,
    ];
    let rule = Action::Progress { id: "pi_0".to_owned(), steps };
    rig.sandbox.fault(FaultRule::on(Route::GetIntent, rule));
    let mut seen = Vec::new();
    for _ in 0..5 {
        let now = rig.json("/v1/payment_intents/pi_0?expand[]=latest_charge").await;
        let charge = &now["latest_charge"];
        seen.push((
            now["status"].as_str().unwrap().to_owned(),
            charge["refunded"] == json!(true),
            charge["disputed"] == json!(true),
        ));
    }
    let expected = [
        ("processing", false, false),
        ("succeeded", false, false),
        ("succeeded", true, false),
        ("succeeded", true, true),
        ("succeeded", true, true),
    ];
    let expected: Vec<_> = expected.map(|(s, r, d)| (s.to_owned(), r, d)).into();
    assert_eq!(seen, expected);
    let disputes = rig.json("/v1/disputes").await;
    assert_eq!(disputes["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_rule_fits_what_it_says() {
    let rig = Rig::with_payments(2).await;
    let any = Matches::default;
    let cases = [
        (any(), [true, true, true, true]),
        (Matches { route: Some(Route::GetIntent), ..any() }, [false, true, true, false]),
        (Matches { method: Some("POST".to_owned()), ..any() }, [false, false, false, true]),
        (
            Matches { path_prefix: Some("/v1/payment_intents/".to_owned()), ..any() },
            [false, true, true, false],
        ),
        (Matches { object_id: Some("pi_1".to_owned()), ..any() }, [false, false, true, false]),
        (Matches { mentions: Some("row-9".to_owned()), ..any() }, [false, false, false, true]),
        (Matches { account: Some("other".to_owned()), ..any() }, [false; 4]),
    ];
    for (matches, expected) in cases {
        let hit = Action::Html { code: 418 };
        let rule = FaultRule { matches: matches.clone(), ..FaultRule::always(hit) };
        rig.sandbox.fault(rule);
        let requests = [
            rig.get("/v1/payment_intents"),
            rig.get("/v1/payment_intents/pi_0"),
            rig.get("/v1/payment_intents/pi_1"),
            rig.paying("row-9"),
        ];
        let mut seen = Vec::new();
        for request in requests {
            seen.push(read(request).await.0 == 418);
        }
        assert_eq!(seen, expected, "{matches:?}");
        rig.sandbox.clear_faults();
    }
}

#[tokio::test]
async fn time_can_be_set_apart_from_the_clock() {
    let rig = Rig::with(tieout::sandbox::settings::Settings {
        frozen_at: Some(DAWN),
        ..Default::default()
    })
    .await;
    rig.sandbox.behave(|behaviour| {
        behaviour.date_skew_secs = 3_600;
        behaviour.created_skew_secs = -86_400;
    });
    let answer = rig.paying("skewed").send().await.unwrap();
    let date = answer.headers()["date"].to_str().unwrap().to_owned();
    let date = chrono::DateTime::parse_from_rfc2822(&date).unwrap();
    assert_eq!(date.timestamp(), DAWN + 3_600);
    assert_eq!(answer.json::<Value>().await.unwrap()["created"], DAWN - 86_400);
    rig.sandbox.advance(60);
    assert_eq!(rig.sandbox.now(), DAWN + 60);
}
