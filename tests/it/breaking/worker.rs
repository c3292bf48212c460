//! A charging worker in the loop: the user's application, in a process of its own, killed at
//! random, racing with runs of tieout that are killed at random, against a PSP that loses answers
//! and carries calls out late. It charges again only what tieout handed back. At the end each
//! intended payment was captured exactly once, or waits for a person.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tieout::sandbox::faults::{Action, FaultRule, Matches, Turn};
use tieout::sandbox::seeds::SeedKind;
use tieout::sandbox::settings::RetryAfter;
use tokio::process::Child;

use super::chance::Chance;
use crate::run::shop::{Engine, KEY, Payment, Shop, Words, at_text, on_both_databases, tieout_now};
use crate::support::raw::Raw;

on_both_databases!(every_intended_payment_is_captured_once_or_is_a_case);

/// Where the worker's process finds its orders.
const ORDERS: &str = "TIEOUT_TEST_WORKER";
/// How many payments are intended.
const PAYMENTS: i64 = 500;
/// What the mapping says of the longest life of a call; the worker keeps well below it.
const IN_FLIGHT_MAX: &str = "\"6s\"";
/// From the commit of an attempt to its send: later, it is not sent at all.
const SEND_WITHIN: Duration = Duration::from_millis(400);
/// The worker's own time-out.
const ANSWER_WITHIN: Duration = Duration::from_millis(800);
/// How long things go wrong …
const STORM: Duration = Duration::from_secs(25);
/// … and how long after that everything must be settled at the latest, on the slowest machine.
const CALM: Duration = Duration::from_secs(180);

// ------------------------------------------------------------------------------ the worker

/// One payment that the worker has taken, committed as attempted.
struct Job {
    id: i64,
    amount: i64,
    attempt: i64,
    /// The object to confirm, where one is to be paid again.
    object: Option<String>,
    taken: Instant,
}

struct Worker {
    raw: Raw,
    client: reqwest::Client,
    psp: String,
}

/// The worker's process: this test binary again, with orders. Without orders it has none to keep.
#[tokio::test]
async fn the_worker_process() {
    let Ok(orders) = std::env::var(ORDERS) else { return };
    let orders: Value = serde_json::from_str(&orders).unwrap();
    rustls::crypto::ring::default_provider().install_default().ok();
    let client = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([])
        .timeout(ANSWER_WITHIN)
        .pool_max_idle_per_host(0)
        .build()
        .unwrap();
    let worker = Worker {
        raw: Raw::open(orders["place"].as_str().unwrap()).await,
        client,
        psp: orders["psp"].as_str().unwrap().to_owned(),
    };
    loop {
        let job = match worker.take_hand_back().await {
            Some(job) => Some(job),
            None => worker.take_new().await,
        };
        match job {
            Some(job) => worker.charge(job).await,
            None => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

fn number(text: Option<&String>) -> i64 {
    text.unwrap().parse().unwrap()
}

impl Worker {
    /// Takes a payment that was never sent: committed as attempted before anything is sent.
    async fn take_new(&self) -> Option<Job> {
        let sql = format!(
            "update payments set status = 'processing', attempted_at = '{}' \
             where id = (select min(id) from payments where status = 'new') and status = 'new' \
             returning cast(id as text), cast(amount as text), cast(attempt as text)",
            now_text()
        );
        self.take(&sql, None).await
    }

    /// Takes what tieout handed back, once, by the way that it says.
    async fn take_hand_back(&self) -> Option<Job> {
        let now = now_text();
        let open = "h.table_name = 'payments' and h.taken_at is null and h.ended_at is null";
        let sql = format!(
            "select h.key, cast(h.number as text), h.retry, h.psp_reference \
             from tieout_handbacks h \
             join payments p on cast(p.id as text) = h.key where p.status = 'retry' and {open} \
             and h.charge_before > '{now}' and (h.not_before is null or h.not_before <= '{now}') \
             limit 1"
        );
        let rows = self.raw.rows(&sql).await;
        let row = rows.first()?;
        let text = |at: usize| row[at].clone();
        let (key, hand_back, retry) = (text(0)?, text(1)?, text(2)?);
        let more = i64::from(retry != "same_key");
        let sql = format!(
            "update payments set status = 'processing', attempted_at = '{now}', \
             attempt = attempt + {more} where id = {key} and status = 'retry' and exists (\
             select 1 from tieout_handbacks h where h.key = '{key}' and h.number = {hand_back} \
             and {open}) returning cast(id as text), cast(amount as text), cast(attempt as text)"
        );
        self.take(&sql, text(3).filter(|_| retry == "same_object")).await
    }

    async fn take(&self, sql: &str, object: Option<String>) -> Option<Job> {
        let rows = self.raw.rows(sql).await;
        let row = rows.first()?;
        Some(Job {
            id: number(row[0].as_ref()),
            amount: number(row[1].as_ref()),
            attempt: number(row[2].as_ref()),
            object,
            taken: Instant::now(),
        })
    }

    async fn charge(&self, job: Job) {
        let charged = match &job.object {
            Some(object) => self.confirm(&job, object).await,
            None => self.create(&job).await,
        };
        let Some(object) = charged else { return };
        let sql = format!(
            "update payments set status = 'paid', psp_ref = '{object}' \
             where id = {} and status = 'processing' and attempt = {}",
            job.id, job.attempt
        );
        self.raw.execute(&sql).await;
    }

    /// Creates a payment. Some applications create and confirm in two steps.
    async fn create(&self, job: &Job) -> Option<String> {
        // What is sold in the calm goes well, so that there is an end of it.
        let kind = if job.id <= PAYMENTS { job.id % 10 } else { 0 };
        let in_two_steps = kind == 7;
        let method = if kind == 3 && job.attempt == 1 {
            "pm_sandbox_decline.processing_error.try_again_later"
        } else {
            "pm_card_visa"
        };
        let form = [
            ("amount", job.amount.to_string()),
            ("currency", "eur".to_owned()),
            ("payment_method", method.to_owned()),
            ("metadata[order_id]", format!("pay_{}", job.id)),
            ("confirm", (!in_two_steps).to_string()),
        ];
        let key = format!("charge-{}-{}", job.id, job.attempt);
        let answer = self.post(job.taken, "/v1/payment_intents", &key, &form).await?;
        let object = answer["id"].as_str()?.to_owned();
        if answer["status"] == "succeeded" {
            return Some(object);
        }
        // The second step is a send like the first: committed before it.
        let sql = format!(
            "update payments set attempted_at = '{}' where id = {} and status = 'processing' \
             and attempt = {} returning cast(id as text)",
            now_text(),
            job.id,
            job.attempt
        );
        let mine =
            answer["status"] == "requires_confirmation" && !self.raw.rows(&sql).await.is_empty();
        let again = Job { object: None, taken: Instant::now(), ..*job };
        if mine { self.confirm(&again, &object).await } else { None }
    }

    async fn confirm(&self, job: &Job, object: &str) -> Option<String> {
        let path = format!("/v1/payment_intents/{object}/confirm");
        let key = format!("confirm-{}-{}", job.id, job.attempt);
        let form = [("payment_method", "pm_card_visa".to_owned())];
        let answer = self.post(job.taken, &path, &key, &form).await?;
        (answer["status"] == "succeeded").then(|| object.to_owned())
    }

    /// One send. Whatever is not a clear answer is none: the row stays `processing`.
    async fn post(
        &self,
        taken: Instant,
        path: &str,
        key: &str,
        form: &[(&str, String)],
    ) -> Option<Value> {
        if taken.elapsed() > SEND_WITHIN {
            return None;
        }
        let request = self.client.post(format!("{}{path}", self.psp)).basic_auth(KEY, Some(""));
        let answer = request.header("idempotency-key", key).form(form).send().await.ok()?;
        if answer.status() != 200 {
            return None;
        }
        answer.json().await.ok()
    }
}

fn now_text() -> String {
    chrono::Utc::now().format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

// -------------------------------------------------------------------------------- the storm

fn on(method: &str, share: u16, action: Action) -> FaultRule {
    let matches = Matches {
        method: Some(method.to_owned()),
        turn: Turn::PerMille(share),
        ..Matches::default()
    };
    FaultRule { matches, ..FaultRule::always(action) }
}

fn status(code: u16) -> Action {
    Action::Status { code, retry_after: RetryAfter::Absent, reason: None }
}

fn storm() -> Vec<FaultRule> {
    let lost = |action| Action::ActThen(Box::new(action));
    let late = Action::ActLate { after_ms: 1_000, meanwhile: Box::new(Action::NoAnswer) };
    let late_500 = Action::ActLate { after_ms: 600, meanwhile: Box::new(status(500)) };
    vec![
        on("POST", 80, lost(Action::Reset)),
        on("POST", 60, late),
        on("POST", 40, late_500),
        on("POST", 40, lost(status(500))),
        on("POST", 40, status(500)),
        on("POST", 40, status(429)),
        on("POST", 30, Action::Delay { ms: 1_200 }),
        on("POST", 4, Action::RefuseConnections { for_ms: 200 }),
        on("GET", 40, status(503)),
        on("GET", 30, Action::Reset),
        on("GET", 20, Action::Html { code: 200 }),
        on("GET", 20, Action::TruncatedJson { keep_per_mille: 700 }),
        on("GET", 20, Action::EndEarly),
        on("GET", 20, status(429)),
    ]
}

/// Workers, started again whenever they were killed.
struct Workers {
    running: Vec<Child>,
    orders: String,
}

impl Workers {
    fn new(shop: &Shop, count: usize) -> Self {
        let orders = json!({ "place": shop.place(), "psp": shop.sandbox.base_url() }).to_string();
        let running = (0..count).map(|_| start(&orders)).collect();
        Self { running, orders }
    }

    /// Kills one of them, and starts another in its place.
    async fn kill_one(&mut self, chance: &mut Chance) {
        let count = u64::try_from(self.running.len()).unwrap();
        let which = usize::try_from(chance.number(count)).unwrap();
        let worker = &mut self.running[which];
        assert!(worker.try_wait().unwrap().is_none(), "a worker ended by itself");
        worker.kill().await.unwrap();
        *worker = start(&self.orders);
    }
}

fn start(orders: &str) -> Child {
    tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "breaking::worker::the_worker_process", "--nocapture"])
        .env(ORDERS, orders)
        .stdout(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// One run of tieout, killed after so long where asked. What a killed one held is free again, as
/// it would be two minutes later.
async fn tieout_run(shop: &Shop, kill_after: Option<Duration>) {
    let id = uuid::Uuid::now_v7().to_string();
    let mut child = shop.program(&["run", "--run-id", &id]).spawn().unwrap();
    let Some(after) = kill_after else {
        let output = child.wait_with_output().await.unwrap();
        let known = [Some(0), Some(3)].contains(&output.status.code());
        assert!(known, "{:?} {}", output.status, String::from_utf8_lossy(&output.stderr));
        return;
    };
    tokio::time::sleep(after).await;
    child.kill().await.unwrap();
    let past = at_text(tieout_now() - 600);
    shop.raw
        .execute(&format!(
            "update tieout_runs set started_at = '{past}', heartbeat_at = '{past}' \
             where id = '{id}' and state = 'running';
             update tieout_checks set lease_until = '{past}' where lease_run = '{id}'"
        ))
        .await;
}

/// Runs tieout over and over until the deadline; of a hundred runs so many are killed.
async fn runs(shop: &Shop, mut chance: Chance, killed_of_100: u64, until: Instant) {
    while Instant::now() < until {
        let kills = chance.number(100) < killed_of_100;
        let after = kills.then(|| chance.below(Duration::from_millis(600)));
        tieout_run(shop, after).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// What is planned for later is due, as hours of waiting would make it: the next looks, and the
/// rest that a decline asks for before the card is tried again.
async fn hours_pass(shop: &Shop) {
    shop.due_now().await;
    let past = at_text(tieout_now() - 1);
    shop.raw
        .execute(&format!(
            "update tieout_handbacks set not_before = '{past}' \
             where not_before > '{past}' and taken_at is null and ended_at is null"
        ))
        .await;
}

async fn time_flies(shop: &Shop, until: Instant) {
    while Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(500)).await;
        hours_pass(shop).await;
    }
}

async fn workers_die(workers: &mut Workers, mut chance: Chance, until: Instant) {
    while Instant::now() < until {
        tokio::time::sleep(chance.below(Duration::from_millis(900))).await;
        workers.kill_one(&mut chance).await;
    }
}

/// Payments that neither went well nor wait for a person.
async fn unsettled(shop: &Shop) -> Vec<String> {
    shop.texts(
        "select cast(p.id as text) || ' ' || p.status from payments p where p.status <> 'paid' \
         and not exists (select 1 from tieout_cases k where k.subject = cast(p.id as text) \
         and k.state = 'open') order by p.id",
    )
    .await
}

/// What tieout said last of the first few of these.
async fn last_words(shop: &Shop, left: &[String]) -> String {
    let mut words = Vec::new();
    for line in left.iter().take(12) {
        let id = line.split(' ').next().unwrap_or_default();
        let sql = format!(
            "select cast(at as text) || ' ' || outcome || ' ' || reason || ' ' || applied || ': ' \
             || text from tieout_journal where key = '{id}' order by at desc limit 3"
        );
        words.push(format!("{line}\n    {}", shop.texts(&sql).await.join("\n    ")));
    }
    words.join("\n")
}

/// Runs tieout until everything is settled, while the shop goes on selling: newer payments are
/// what shows that the tag still arrives.
async fn calm(shop: &Shop, workers: &mut Workers) -> i64 {
    let until = Instant::now() + CALM;
    let mut last = PAYMENTS;
    loop {
        let left = unsettled(shop).await;
        if left.is_empty() {
            return last;
        }
        if Instant::now() >= until {
            panic!("after {CALM:?} of calm: {left:?}\n{}", last_words(shop, &left).await);
        }
        last += 1;
        shop.insert(&[intended(last)]).await;
        tieout_run(shop, None).await;
        hours_pass(shop).await;
        tokio::time::sleep(Duration::from_millis(400)).await;
        for worker in &mut workers.running {
            assert!(worker.try_wait().unwrap().is_none(), "a worker ended by itself");
        }
    }
}

fn intended(id: i64) -> Payment {
    Payment {
        status: "new",
        order_no: Some(format!("order-{id}")),
        age: 0,
        attempted: None,
        ..Payment::stuck(id)
    }
}

async fn every_intended_payment_is_captured_once_or_is_a_case(engine: Engine) {
    let mut chance = Chance::from_environment();
    let mut words = Words::default();
    for (name, value) in [
        ("in_flight_max", IN_FLIGHT_MAX),
        ("stuck_after", IN_FLIGHT_MAX),
        ("max_handbacks", "100000"),
        ("max_retries", "50"),
        ("watch", "[\"6s\", \"7s\", \"8s\", \"9s\", \"1h\"]"),
    ] {
        words = words.policy(name, value);
    }
    let shop = Shop::open_with(engine, words).await;
    let payments: Vec<Payment> = (1..=PAYMENTS).map(intended).collect();
    shop.insert(&payments).await;
    storm().into_iter().for_each(|rule| shop.sandbox.fault(rule));

    let mut workers = Workers::new(&shop, 2);
    let until = Instant::now() + STORM;
    let (first, second, third) =
        (Chance::of(chance.next()), Chance::of(chance.next()), Chance::of(chance.next()));
    tokio::join!(
        runs(&shop, first, 30, until),
        runs(&shop, second, 30, until),
        time_flies(&shop, until),
        workers_die(&mut workers, third, until),
    );
    shop.check(true).await;
    shop.sandbox.clear_faults();
    let last = calm(&shop, &mut workers).await;
    drop(workers);
    settled(&shop, last).await;
}

/// The truth of the sandbox's books against what the shop believes.
async fn settled(shop: &Shop, last: i64) {
    let captures = shop.captures();
    let cases: BTreeMap<String, String> = shop
        .open_cases()
        .await
        .iter()
        .filter_map(|case| case.split_once(' ').map(|(id, why)| (id.to_owned(), why.to_owned())))
        .collect();
    let mut wrong = Vec::new();
    for id in 1..=last {
        let times = captures.get(&format!("pay_{id}")).copied().unwrap_or(0);
        let case = cases.get(&id.to_string());
        let status = shop.status(id).await;
        let fine = match (times, case) {
            (1, None) => status == "paid",
            (0 | 1, Some(_)) => true,
            _ => false,
        };
        if !fine {
            wrong.push(format!("payment {id} ({status}): captured {times} times, case {case:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let untagged = captures.get("-").copied().unwrap_or(0);
    assert_eq!(untagged, 0);
    let intents = shop.sandbox.objects(SeedKind::Intent).len();
    let hand_backs = shop.count("tieout_handbacks").await;
    eprintln!(
        "{last} payments, {intents} intents, {hand_backs} hand-backs, {} runs, \
         open cases {cases:?}",
        shop.count("tieout_runs").await
    );
    let contradicted = cases.values().filter(|why| {
        ["late_contradiction", "duplicate_capture", "evidence_conflict"].contains(&why.as_str())
    });
    assert_eq!(contradicted.count(), 0, "{cases:?}");
    assert!(hand_backs >= 10, "the storm was too calm: {hand_backs} hand-backs");
    assert!(cases.len() <= 10, "{cases:?}");
    shop.check(true).await;
    let audit = shop.tieout(&["audit", "verify"]).await;
    assert_eq!(audit.code, Some(0), "{}", audit.stderr);
}
