//! Control over HTTP does what the handle does.

use serde_json::{Value, json};
use tieout::sandbox::settings::Settings;

use super::{Rig, ids, read};

impl Rig {
    async fn control(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let method = method.parse().unwrap();
        read(self.client.request(method, self.url(path)).json(&body)).await
    }
}

#[tokio::test]
async fn objects_are_put_in_moved_and_read_back() {
    let rig = Rig::new().await;
    let seeds = json!([
        { "id": "pi_a", "amount": 5, "metadata": { "order": "a" }, "situation": "processing" },
        { "kind": "charge", "id": "ch_b", "situation": "declined", "decline_code": "lost_card" },
        { "account": "acct_2", "live": true, "id": "pi_c" },
    ]);
    let (status, made) = rig.control("POST", "/_sandbox/objects", seeds).await;
    assert_eq!((status, &made["ids"]), (200, &json!(["pi_a", "ch_b", "pi_c"])));
    assert_eq!(rig.json("/v1/charges/ch_b").await["failure_code"], "card_declined");
    let step = json!({ "id": "pi_a", "to": "succeeded" });
    assert_eq!(rig.control("POST", "/_sandbox/move", step).await.0, 200);
    assert_eq!(rig.json("/v1/payment_intents/pi_a").await["status"], "succeeded");
    let (_, kept) =
        rig.control("GET", "/_sandbox/objects?account=acct_2&live=true", Value::Null).await;
    assert_eq!(kept["objects"][0]["id"], "pi_c");
    let (status, error) = rig.control("POST", "/_sandbox/objects", json!([{ "amuont": 5 }])).await;
    assert_eq!(status, 400);
    assert!(error["error"].as_str().unwrap().contains("[0].amuont"), "{error}");
    assert_eq!(rig.sandbox.total_requests(), 2, "control is not counted");
}

#[tokio::test]
async fn a_hundred_thousand_objects_are_put_in_and_paged() {
    let rig = Rig::new().await;
    let fill = json!({
        "count": 100_000, "every_ms": 864, "first_created": 1_700_000_000,
        "like": { "amount": 700, "metadata": { "order": "row-{n}" } },
    });
    let (_, filled) = rig.control("POST", "/_sandbox/fill", fill).await;
    assert_eq!(filled["count"], 100_000);
    let page = rig.json("/v1/payment_intents?limit=100&created[lt]=1700043200").await;
    assert_eq!(page["data"].as_array().unwrap().len(), 100);
    assert_eq!(page["data"][0]["metadata"]["order"], "row-49999");
    let found = rig.json("/v1/payment_intents/search?query=metadata['order']:'row-77777'").await;
    assert_eq!(ids(&found).len(), 1);
}

#[tokio::test]
async fn behaviour_faults_and_scenarios_are_set() {
    let rig = Rig::with_payments(1).await;
    let (_, set) = rig
        .control("PATCH", "/_sandbox/behaviour", json!({ "dropped_tags_per_mille": 1000 }))
        .await;
    assert_eq!((&set["dropped_tags_per_mille"], &set["latency_ms"]), (&json!(1000), &json!(0)));
    let typo = rig.control("PATCH", "/_sandbox/behaviour", json!({ "latency": 1 })).await;
    assert_eq!(typo.0, 400);

    let rules = json!([{
        "name": "lost answer", "times": 1,
        "matches": { "route": "list_intents", "page": "first", "turn": { "nth": 1 } },
        "action": { "act_then": { "status": { "code": 500, "retry_after": { "seconds": 3 } } } },
    }, {
        "matches": { "method": "POST" },
        "action": { "act_late": { "after_ms": 5, "meanwhile": "no_answer" } },
    }, {
        "action": { "alter": {
            "only": { "id": "pi_0" }, "change": { "near_miss": { "truncated": 22 } }
        } },
    }]);
    let (status, shown) = rig.control("POST", "/_sandbox/faults", rules).await;
    assert_eq!((status, shown["faults"].as_array().map(Vec::len)), (200, Some(3)), "{shown}");
    assert_eq!(read(rig.get("/v1/payment_intents")).await.0, 500);
    let (_, shown) = rig.control("GET", "/_sandbox/faults", Value::Null).await;
    assert_eq!(shown["faults"][0]["fired"], 1);
    let (_, seen) = rig.control("GET", "/_sandbox/requests", Value::Null).await;
    assert_eq!(seen["routes"]["list_intents"]["faulted"], 1);
    assert_eq!(seen["latest"][0]["fault"], "lost answer");
    rig.control("DELETE", "/_sandbox/faults", Value::Null).await;

    let (_, listed) = rig.control("GET", "/_sandbox/scenarios", Value::Null).await;
    assert!(listed["scenarios"].as_array().unwrap().len() > 10);
    rig.control("POST", "/_sandbox/scenarios/outage", Value::Null).await;
    assert_eq!(read(rig.get("/v1/payment_intents")).await.0, 503);
    assert_eq!(rig.control("POST", "/_sandbox/scenarios/none", Value::Null).await.0, 400);
    let (_, about) = rig.control("GET", "/_sandbox", Value::Null).await;
    assert_eq!((&about["door"], &about["objects"]), (&json!("open"), &json!(2)));
    let door = json!({ "door": "refusing", "for_ms": 1 });
    assert_eq!(rig.control("POST", "/_sandbox/door", door).await.0, 200);
}

#[tokio::test]
async fn reset_and_clock_and_a_sandbox_without_control() {
    let rig = Rig::with_payments(3).await;
    let before = rig.sandbox.now();
    let (_, clock) = rig.control("POST", "/_sandbox/clock", json!({ "advance_secs": 500 })).await;
    assert!(clock["now"].as_i64().unwrap() >= before + 500);
    rig.control("POST", "/_sandbox/reset", Value::Null).await;
    assert!(rig.kept().is_empty());
    assert_eq!(rig.control("PUT", "/_sandbox/reset", Value::Null).await.0, 404);

    let closed = Rig::with(Settings { control: false, ..Settings::default() }).await;
    let (status, body) = read(closed.get("/_sandbox")).await;
    assert_eq!((status, &body["error"]["type"]), (404, &json!("invalid_request_error")));
}
