//! The sandbox over real HTTP: the API it speaks, the state it keeps, and every fault it plays.
//!
//! Each fault shows its effect on the wire here; what tieout makes of it is tested elsewhere.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};
use tieout::sandbox::faults::{Action, FaultRule};
use tieout::sandbox::routes::Route;
use tieout::sandbox::seeds::Seed;
use tieout::sandbox::settings::{RetryAfter, Settings};
use tieout::sandbox::situations::Situation;
use tieout::sandbox::{Handle, Sandbox};

const KEY: &str = "sk_test_sandbox";

/// A sandbox and a client that follows nothing and hides nothing.
struct Rig {
    sandbox: Handle,
    client: reqwest::Client,
}

impl Rig {
    async fn new() -> Self {
        Self::with(Settings::default()).await
    }

    async fn with(settings: Settings) -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_secs(20))
            .no_proxy()
            .build()
            .unwrap();
        Self { sandbox: Sandbox::start(settings).await.unwrap(), client }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.sandbox.base_url())
    }

    fn get(&self, path: &str) -> reqwest::RequestBuilder {
        self.client.get(self.url(path)).bearer_auth(KEY)
    }

    fn post(&self, path: &str, form: &[(&str, &str)]) -> reqwest::RequestBuilder {
        self.client.post(self.url(path)).basic_auth(KEY, Some("")).form(form)
    }

    async fn json(&self, path: &str) -> Value {
        self.get(path).send().await.unwrap().json().await.unwrap()
    }

    async fn pay(&self, tag: &str) -> Value {
        let form = [
            ("amount", "1000"),
            ("currency", "usd"),
            ("confirm", "true"),
            ("payment_method", "pm_card_visa"),
            ("metadata[order]", tag),
        ];
        self.post("/v1/payment_intents", &form).send().await.unwrap().json().await.unwrap()
    }
}

fn ids(list: &Value) -> Vec<&str> {
    list["data"].as_array().unwrap().iter().map(|object| object["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_payment_is_made_listed_and_fetched() {
    let rig = Rig::new().await;
    let made = rig.pay("row-1").await;
    assert_eq!(made["status"], "succeeded");
    assert_eq!(made["amount_received"], 1000);
    assert_eq!(made["livemode"], false);
    let id = made["id"].as_str().unwrap();

    let listed = rig.json("/v1/payment_intents?limit=3&expand[]=data.latest_charge").await;
    assert_eq!(ids(&listed), [id]);
    assert_eq!(listed["has_more"], false);
    assert_eq!(listed["data"][0]["latest_charge"]["metadata"]["order"], "row-1");
    assert_eq!(listed["data"][0]["latest_charge"]["payment_intent"], id);

    let fetched = rig.json(&format!("/v1/payment_intents/{id}")).await;
    assert_eq!(fetched["id"], id);
    assert!(fetched["latest_charge"].as_str().unwrap().starts_with("ch_"));
    assert_eq!(rig.sandbox.count(Route::CreateIntent).received, 1);
}

#[tokio::test]
async fn a_seeded_page_is_read_to_its_end() {
    let rig = Rig::new().await;
    let seeds = (0..250_i64).map(|n| {
        Seed::captured("order", &format!("row-{n}"), 100 + n, "eur").created_at(1_700_000_000 + n)
    });
    let seeded = rig.sandbox.seed(seeds).unwrap();
    let mut seen: Vec<String> = Vec::new();
    let mut query = "limit=100".to_owned();
    loop {
        let page = rig.json(&format!("/v1/payment_intents?{query}")).await;
        seen.extend(ids(&page).into_iter().map(str::to_owned));
        if page["has_more"] == json!(false) {
            break;
        }
        query = format!("limit=100&starting_after={}", seen.last().unwrap());
    }
    let newest_first: Vec<String> = seeded.into_iter().rev().collect();
    assert_eq!(seen, newest_first);
    let window = "created[gte]=1700000010&created[lt]=1700000013";
    let page = rig.json(&format!("/v1/payment_intents?{window}")).await;
    assert_eq!(page["data"].as_array().unwrap().len(), 3);
    assert_eq!(page["data"][0]["metadata"]["order"], "row-12");
}

#[tokio::test]
async fn an_outage_answers_503_and_then_ends() {
    let rig = Rig::new().await;
    let seed = Seed::captured("order", "a", 5, "usd").standing(Situation::Processing);
    rig.sandbox.seed([seed]).unwrap();
    let outage = Action::Status { code: 503, retry_after: RetryAfter::Seconds(7), reason: None };
    rig.sandbox.fault(FaultRule::on(Route::ListIntents, outage).times(2));
    for _ in 0..2 {
        let answer = rig.get("/v1/payment_intents").send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.headers()["retry-after"], "7");
        assert_eq!(answer.json::<Value>().await.unwrap()["error"]["type"], "api_error");
    }
    let listed = rig.json("/v1/payment_intents").await;
    assert_eq!(listed["data"][0]["status"], "processing");
    assert_eq!(rig.sandbox.count(Route::ListIntents).faulted, 2);
}
