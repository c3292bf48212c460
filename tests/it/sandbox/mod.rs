//! The sandbox over real HTTP: the API it speaks, the state it keeps, and every fault it plays.
//!
//! Each fault shows its effect on the wire here; what tieout makes of it is tested elsewhere.

mod answers;
mod api;
mod behaviour;
mod connections;
mod control;
mod idempotency;
mod objects;
mod pages;
mod secure;
mod writes;

use std::time::Duration;

use serde_json::Value;
use tieout::sandbox::faults::{Action, FaultRule};
use tieout::sandbox::seeds::Seed;
use tieout::sandbox::settings::Settings;
use tieout::sandbox::{Handle, Sandbox};

const KEY: &str = "sk_test_sandbox";
/// Seeded objects are created from this second on, one a second.
const DAWN: i64 = 1_700_000_000;

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
            .timeout(Duration::from_secs(120))
            .no_proxy()
            .build()
            .unwrap();
        Self { sandbox: Sandbox::start(settings).await.unwrap(), client }
    }

    /// With so many captured payments `row-0`, `row-1`, …, the last one the newest.
    async fn with_payments(count: i64) -> Self {
        let rig = Self::new().await;
        let seeds = (0..count).map(|n| {
            let seed = Seed::captured("order", &format!("row-{n}"), 100 + n, "eur");
            Seed { id: Some(format!("pi_{n}")), ..seed.created_at(DAWN + n) }
        });
        rig.sandbox.seed(seeds).unwrap();
        rig
    }

    fn fault(&self, action: Action) {
        self.sandbox.fault(FaultRule::always(action));
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
        read(self.get(path)).await.1
    }

    /// The payment of one tag, as a worker would make it.
    fn paying(&self, tag: &str) -> reqwest::RequestBuilder {
        self.paying_by("pm_card_visa", tag)
    }

    fn paying_by(&self, method: &str, tag: &str) -> reqwest::RequestBuilder {
        let form = [
            ("amount", "1000"),
            ("currency", "usd"),
            ("confirm", "true"),
            ("payment_method", method),
            ("metadata[order]", tag),
        ];
        self.post("/v1/payment_intents", &form)
    }

    async fn pay(&self, tag: &str) -> Value {
        read(self.paying(tag)).await.1
    }

    /// The tags of the payments that the books hold, newest first.
    fn kept(&self) -> Vec<String> {
        let kind = tieout::sandbox::seeds::SeedKind::Intent;
        let tag = |object: &Value| object["metadata"]["order"].as_str().unwrap_or("-").to_owned();
        self.sandbox.objects(kind).iter().map(tag).collect()
    }
}

/// Status and JSON of an answer; null where it is none.
async fn read(request: reqwest::RequestBuilder) -> (u16, Value) {
    let answer = request.send().await.unwrap();
    let status = answer.status().as_u16();
    let body = answer.bytes().await.unwrap();
    (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

fn ids(list: &Value) -> Vec<&str> {
    list["data"].as_array().unwrap().iter().map(|object| object["id"].as_str().unwrap()).collect()
}
