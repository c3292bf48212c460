//! Faults of a whole answer: statuses, bodies that are no list, bodies that are too much.

use serde_json::{Value, json};
use tieout::sandbox::faults::{Action, FaultRule, SchemaFault};
use tieout::sandbox::settings::RetryAfter;

use super::{Rig, read};

const LIST: &str = "/v1/payment_intents";

#[tokio::test]
async fn statuses_come_with_their_headers() {
    let rig = Rig::new().await;
    let past = RetryAfter::DateIn(-60);
    let cases = [
        (500, RetryAfter::Absent, None, "api_error"),
        (502, RetryAfter::Absent, None, "api_error"),
        (503, RetryAfter::Seconds(3), None, "api_error"),
        (503, past, None, "api_error"),
        (504, RetryAfter::Text("soon".to_owned()), None, "api_error"),
        (429, RetryAfter::Absent, Some("global-rate"), "invalid_request_error"),
        (429, RetryAfter::Seconds(1_000_000_000), None, "invalid_request_error"),
        (429, RetryAfter::DateIn(30), Some("endpoint-rate"), "invalid_request_error"),
        (401, RetryAfter::Absent, None, "invalid_request_error"),
        (403, RetryAfter::Absent, None, "invalid_request_error"),
        (404, RetryAfter::Absent, None, "invalid_request_error"),
        (409, RetryAfter::Absent, None, "invalid_request_error"),
    ];
    for (code, retry_after, reason, kind) in cases {
        let reason = reason.map(str::to_owned);
        let action =
            Action::Status { code, retry_after: retry_after.clone(), reason: reason.clone() };
        rig.fault(action);
        let answer = rig.get(LIST).send().await.unwrap();
        let header =
            |name: &str| answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(answer.status().as_u16(), code);
        assert_eq!(header("stripe-rate-limited-reason"), reason, "{code}");
        match retry_after {
            RetryAfter::Absent => assert_eq!(header("retry-after"), None, "{code}"),
            RetryAfter::Seconds(secs) => {
                assert_eq!(header("retry-after"), Some(secs.to_string()), "{code}");
            }
            RetryAfter::Text(text) => assert_eq!(header("retry-after"), Some(text), "{code}"),
            RetryAfter::DateIn(_) => {
                let date = header("retry-after").unwrap();
                assert!(chrono::DateTime::parse_from_rfc2822(&date).is_ok(), "{date}");
            }
        }
        assert_eq!(answer.json::<Value>().await.unwrap()["error"]["type"], kind, "{code}");
        rig.sandbox.clear_faults();
    }
}

#[tokio::test]
async fn bodies_that_are_no_json_come_with_200() {
    let rig = Rig::with_payments(3).await;
    let whole = rig.get(LIST).send().await.unwrap().text().await.unwrap();
    let cases = [
        (Action::Html { code: 200 }, "text/html; charset=utf-8"),
        (Action::EmptyBody, "application/json"),
        (Action::TruncatedJson { keep_per_mille: 500 }, "application/json"),
    ];
    for (action, kind) in cases {
        rig.fault(action.clone());
        let answer = rig.get(LIST).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{action:?}");
        assert_eq!(answer.headers()["content-type"], kind, "{action:?}");
        let body = answer.text().await.unwrap();
        assert!(serde_json::from_str::<Value>(&body).is_err(), "{action:?}");
        match action {
            Action::EmptyBody => assert_eq!(body, ""),
            Action::TruncatedJson { .. } => {
                assert_eq!(body.len(), whole.len() / 2);
                assert!(whole.starts_with(&body));
            }
            _ => assert!(body.contains("<html>")),
        }
        rig.sandbox.clear_faults();
    }
}

#[tokio::test]
async fn json_comes_in_other_shapes() {
    let rig = Rig::with_payments(1).await;
    let path = format!("{LIST}?expand[]=data.latest_charge");
    type Holds = fn(&Value) -> bool;
    let cases: [(SchemaFault, &str, Holds); 11] = [
        (SchemaFault::TopLevelArray, "", Value::is_array),
        (SchemaFault::TopLevelNull, "", Value::is_null),
        (SchemaFault::DataIsObject, "/data", Value::is_object),
        (SchemaFault::NoData, "/data", |v| v == "absent"),
        (SchemaFault::NoHasMore, "/has_more", |v| v == "absent"),
        (SchemaFault::NoId, "/data/0/id", |v| v == "absent"),
        (SchemaFault::NoStatus, "/data/0/latest_charge/status", |v| v == "absent"),
        (SchemaFault::AmountIsText, "/data/0/amount", |v| v == "100"),
        (SchemaFault::AmountIsFraction, "/data/0/amount", |v| format!("{v}") == "100.5"),
        (SchemaFault::CreatedIsText, "/data/0/created", Value::is_string),
        (SchemaFault::OtherObject, "/data/0/object", |v| v == "setup_intent"),
    ];
    for (fault, pointer, holds) in cases {
        rig.fault(Action::WrongSchema(fault));
        let (status, body) = read(rig.get(&path)).await;
        let absent = json!("absent");
        assert_eq!(status, 200, "{fault:?}");
        assert!(holds(body.pointer(pointer).unwrap_or(&absent)), "{fault:?}: {body}");
        rig.sandbox.clear_faults();
    }
}

#[tokio::test]
async fn a_gzip_bomb_unpacks_to_a_thousand_times_its_size() {
    let rig = Rig::new().await;
    rig.fault(Action::GzipBomb { mib: 8 });
    let plain = reqwest::Client::builder().no_gzip().no_proxy().build().unwrap();
    let packed = plain.get(rig.url(LIST)).bearer_auth(super::KEY).send().await.unwrap();
    assert_eq!(packed.headers()["content-encoding"], "gzip");
    let packed = packed.bytes().await.unwrap();
    let unpacked = rig.get(LIST).send().await.unwrap().bytes().await.unwrap();
    assert_eq!(unpacked.len(), 8 * 1024 * 1024);
    assert!(packed.len() * 500 < unpacked.len(), "{} bytes on the wire", packed.len());
}

#[tokio::test]
async fn bodies_come_huge_and_crowded_and_deep() {
    let rig = Rig::new().await;
    rig.fault(Action::HugeBody { mib: 3 });
    let huge = rig.get(LIST).send().await.unwrap();
    assert_eq!(huge.content_length(), None, "an honest length would give it away");
    let huge = huge.bytes().await.unwrap();
    assert!(huge.len() > 3 * 1024 * 1024);
    assert!(serde_json::from_slice::<Value>(&huge).is_ok());

    rig.sandbox.clear_faults();
    rig.fault(Action::ManyItems { count: 2_500 });
    let crowd = rig.json("/v1/charges").await;
    assert_eq!(crowd["data"].as_array().unwrap().len(), 2_500);
    assert_eq!(crowd["data"][2_499]["object"], "charge");

    rig.sandbox.clear_faults();
    rig.fault(Action::DeepNesting { depth: 10_000 });
    let deep = rig.get(LIST).send().await.unwrap().text().await.unwrap();
    assert_eq!(deep.matches('[').count(), 10_000);
    assert_eq!(deep.matches(']').count(), 10_000);
}

#[tokio::test]
async fn redirects_point_elsewhere() {
    let rig = Rig::new().await;
    for (code, to) in [(302, "http://198.51.100.7/v1"), (308, "https://api.example.test/v1")] {
        rig.fault(Action::Redirect { code, to: to.to_owned() });
        let answer = rig.get(LIST).send().await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["location"]),
            (code, &to.parse().unwrap())
        );
        rig.sandbox.clear_faults();
    }
}

#[tokio::test]
async fn a_stale_answer_is_played_again() {
    let rig = Rig::with_payments(1).await;
    rig.sandbox
        .fault(FaultRule::always(Action::StaleReplay).at(tieout::sandbox::faults::Turn::From(2)));
    let first = rig.json(LIST).await;
    rig.pay("new").await;
    let answer = rig.get(LIST).send().await.unwrap();
    assert_eq!(answer.headers()["age"], "3600");
    assert_eq!(answer.json::<Value>().await.unwrap(), first);
    let other = rig.json("/v1/payment_intents?limit=5").await;
    assert_eq!(other["data"].as_array().unwrap().len(), 2, "another question is asked afresh");
}
