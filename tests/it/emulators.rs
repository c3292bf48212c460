//! The built program against Stripes that none of us wrote, over real HTTP.
//!
//! Each test plays the shop's worker through the emulator's own API, leaves rows stuck, and lets
//! `tieout run` decide them. What an emulator lacks must show as a wait or an exit, never as a
//! verdict; each quirk has a line where it matters. Their state is shared by all tests of a run,
//! so every test has ids, a key and an `ours` mark of its own.

mod emulate;
mod localstripe;
mod stateful_mock;

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::run::shop::{Engine, Payment, Ran, Shop, Words};
use crate::support::need_env;

/// One emulator, as one test's account at it.
struct Emulator {
    url: String,
    client: reqwest::Client,
    /// A key of this test's own: limits are counted by it.
    key: String,
    /// The mark of this test's objects.
    mark: String,
    /// The first of this test's row ids; their tags are nobody else's.
    first_id: i64,
    /// The connected account that everything is done for.
    connected: Option<String>,
}

impl Emulator {
    /// The emulator whose address stands in this variable. It must answer.
    async fn at(variable: &str) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mark = uuid::Uuid::now_v7().simple().to_string();
        let first_id = i64::from(u32::from_str_radix(&mark[25..], 16).unwrap()) * 1_000 + 1;
        let url = need_env(variable);
        let client = reqwest::Client::new();
        let key = format!("sk_test_{mark}");
        let answer = client.get(format!("{url}/v1/charges")).bearer_auth(&key).send().await;
        let answer = answer.unwrap_or_else(|error| panic!("{variable} at {url}: {error}"));
        assert_eq!(answer.status(), 200, "{variable} at {url}");
        Self { url, client, key, mark, first_id, connected: None }
    }

    /// A row id of this test's own.
    fn id(&self, number: i64) -> i64 {
        self.first_id + number
    }

    /// A payment of a minute ago that was sent just now.
    fn payment(&self, number: i64) -> Payment {
        let amount = Some(1_000 + number);
        Payment { amount, age: 60, attempted: Some(0), ..Payment::stuck(self.id(number)) }
    }

    /// The words of a tieout.toml that points here.
    fn words(&self, more_of_the_account: &str) -> Words {
        let ours = format!("ours = {{ field = \"metadata[mark]\", value = \"{}\" }}", self.mark);
        Words {
            base_url: Some(self.url.clone()),
            key: self.key.clone(),
            account: format!("{ours}\n{more_of_the_account}"),
            ..Words::default()
        }
    }

    /// The metadata that a worker sends with a row's call.
    fn metadata(&self, number: i64) -> Vec<(String, String)> {
        vec![
            ("metadata[order_id]".to_owned(), format!("pay_{}", self.id(number))),
            ("metadata[mark]".to_owned(), self.mark.clone()),
        ]
    }

    /// The form of a row's call.
    fn form(&self, number: i64, more: &[(&str, &str)]) -> Vec<(String, String)> {
        let more = more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let mut form: Vec<(String, String)> = more.collect();
        form.push(("amount".to_owned(), self.payment(number).amount.unwrap().to_string()));
        form.push(("currency".to_owned(), "eur".to_owned()));
        form.extend(self.metadata(number));
        form
    }

    /// One call of the worker's, whatever comes back.
    async fn try_post(&self, path: &str, form: &[(String, String)]) -> (u16, Value) {
        let call = self.client.post(format!("{}{path}", self.url)).bearer_auth(&self.key);
        let call = match &self.connected {
            Some(account) => call.header("stripe-account", account),
            None => call,
        };
        let answer = call.form(form).send().await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.json().await.unwrap_or_default())
    }

    /// One call of the worker's that must go well.
    async fn post(&self, path: &str, form: &[(String, String)]) -> Value {
        let (status, body) = self.try_post(path, form).await;
        assert_eq!(status, 200, "POST {path}: {body}");
        body
    }

    /// What the emulator answers to a question of the test's own.
    async fn get(&self, path: &str) -> Value {
        let call = self.client.get(format!("{}{path}", self.url)).bearer_auth(&self.key);
        let call = match &self.connected {
            Some(account) => call.header("stripe-account", account),
            None => call,
        };
        call.send().await.unwrap().json().await.unwrap()
    }

    /// A call whose answer the worker never sees: it is sent whole, and the connection is cut when
    /// the first byte comes back.
    async fn post_and_lose_the_answer(&self, path: &str, form: &[(String, String)]) {
        let encoded = |text: &str| -> String {
            let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
            let one = |b: u8| if plain(b) { char::from(b).into() } else { format!("%{b:02X}") };
            text.bytes().map(one).collect()
        };
        let pairs = form.iter().map(|(k, v)| format!("{}={}", encoded(k), encoded(v)));
        let body = pairs.collect::<Vec<_>>().join("&");
        let host = self.url.trim_start_matches("http://");
        let connected = self.connected.as_ref();
        let connected = connected.map_or(String::new(), |id| format!("Stripe-Account: {id}\r\n"));
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\n{connected}\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            self.key,
            body.len()
        );
        let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut first = [0_u8];
        stream.read_exact(&mut first).await.unwrap();
        stream.set_zero_linger().unwrap();
    }
}

/// The id of an object.
fn id_of(object: &Value) -> String {
    object["id"].as_str().unwrap_or_else(|| panic!("no id in {object}")).to_owned()
}

/// A shop whose PSP this is.
async fn shop_at(emulator: &Emulator, more_of_the_account: &str) -> Shop {
    Shop::open_with(Engine::Sqlite, emulator.words(more_of_the_account)).await
}

/// Waits until what was just sent is stuck by the shop's policy.
async fn until_stuck() {
    tokio::time::sleep(Duration::from_millis(1_300)).await;
}

/// Runs twice, a span apart: what a failure or an unpaid intent means is said only once the
/// original call is over since tieout's own first look.
async fn run_twice(shop: &Shop) -> Ran {
    shop.run().await.ended(0);
    shop.a_span_passes().await;
    shop.run().await.ended(0)
}

/// What became of each row: `(number, verdict, status)`, all wrong ones told at once.
async fn assert_ends(shop: &Shop, emulator: &Emulator, wanted: &[(i64, &str, &str)]) {
    assert_ends_of(shop, "payments", emulator, wanted).await;
    shop.check(false).await;
}

/// The same, of another table.
async fn assert_ends_of(
    shop: &Shop,
    table: &str,
    emulator: &Emulator,
    wanted: &[(i64, &str, &str)],
) {
    let mut wrong = Vec::new();
    for (number, verdict, status) in wanted {
        let id = emulator.id(*number);
        let verdicts = shop
            .texts(&format!(
                "select outcome || ' ' || reason || ': ' || text from tieout_journal \
                 where key = '{id}' and reason <> 'watched' order by at desc limit 1"
            ))
            .await;
        let now = shop.raw.one(&format!("select status from {table} where id = {id}")).await;
        let said = verdicts.first().map_or("not decided", String::as_str);
        if !said.starts_with(&format!("{verdict}: ")) || now != *status {
            wrong.push(format!("{number} is `{now}`, {said}; wanted {verdict} ({status})"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
