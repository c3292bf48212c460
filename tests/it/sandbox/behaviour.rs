//! What is set rather than broken: latency, limits, lags, dropped tags, scenarios.

use std::time::{Duration, Instant};

use serde_json::json;
use tieout::sandbox::routes::Route;
use tieout::sandbox::scenarios::scenarios;
use tieout::sandbox::settings::{RateLimit, RetryAfter, Settings};

use super::{DAWN, Rig, ids, read};

#[tokio::test]
async fn latency_is_at_least_what_was_asked() {
    let rig = Rig::new().await;
    rig.sandbox.behave(|behaviour| behaviour.latency_ms = 50);
    let before = Instant::now();
    rig.json("/v1/balance").await;
    assert!(before.elapsed() >= Duration::from_millis(50));
}

#[tokio::test]
async fn a_rate_limit_refuses_in_stripes_words() {
    let rig = Rig::new().await;
    rig.sandbox.behave(|behaviour| {
        behaviour.rate_limit = Some(RateLimit {
            per_second: 1,
            burst: 3,
            per_route: None,
            retry_after: RetryAfter::Seconds(9),
        });
    });
    let mut refused = 0;
    for _ in 0..10 {
        let answer = rig.get("/v1/balance").send().await.unwrap();
        if answer.status() == 429 {
            refused += 1;
            assert_eq!(answer.headers()["stripe-rate-limited-reason"], "global-rate");
            assert_eq!(answer.headers()["retry-after"], "9");
        }
    }
    assert!(refused >= 5, "{refused} of 10 were refused");
    assert_eq!(rig.sandbox.count(Route::GetBalance).rate_limited, refused);
}

#[tokio::test]
async fn too_many_at_once_are_refused() {
    let rig = Rig::new().await;
    rig.sandbox.behave(|behaviour| {
        behaviour.max_at_once = Some(1);
        behaviour.latency_ms = 300;
    });
    let ask = || rig.get("/v1/balance").send();
    let (one, two) = tokio::join!(ask(), ask());
    let answers = [one.unwrap(), two.unwrap()];
    let refused = answers.iter().find(|answer| answer.status() == 429).unwrap();
    assert_eq!(refused.headers()["stripe-rate-limited-reason"], "global-concurrency");
    assert!(answers.iter().any(|answer| answer.status() == 200));
}

#[tokio::test]
async fn tags_are_dropped_from_then_on() {
    let rig = Rig::new().await;
    rig.pay("kept").await;
    rig.sandbox.drop_tag(true);
    assert_eq!(rig.pay("gone").await["metadata"], json!({}));
    rig.sandbox.drop_tag(false);
    rig.pay("back").await;
    assert_eq!(rig.kept(), ["back", "-", "kept"]);
    rig.sandbox.behave(|behaviour| behaviour.dropped_tags_per_mille = 500);
    for n in 0..40 {
        rig.pay(&format!("half-{n}")).await;
    }
    let dropped = rig.kept().iter().filter(|tag| *tag == "-").count();
    assert!((8..=32).contains(&dropped), "{dropped} of 40 were dropped");
}

#[tokio::test]
async fn an_index_lags_behind_the_books() {
    let rig = Rig::with(Settings { frozen_at: Some(DAWN), ..Settings::default() }).await;
    rig.sandbox.behave(|behaviour| {
        behaviour.search_lag_secs = 60;
        behaviour.list_lag_secs = 10;
    });
    let id = rig.pay("young").await["id"].as_str().unwrap().to_owned();
    let search = "/v1/payment_intents/search?query=metadata['order']:'young'";
    for (age, searched, listed) in [(0, 0, 0), (9, 0, 0), (10, 0, 1), (59, 0, 1), (60, 1, 1)] {
        let offset = rig.sandbox.now() - DAWN;
        rig.sandbox.advance(age - offset);
        assert_eq!(ids(&rig.json(search).await).len(), searched, "search at {age} s");
        assert_eq!(ids(&rig.json("/v1/payment_intents").await).len(), listed, "list at {age} s");
        assert_eq!(read(rig.get(&format!("/v1/payment_intents/{id}"))).await.0, 200);
    }
}

#[tokio::test]
async fn every_scenario_is_noticed_and_calm_ends_it() {
    let calm = probe(&Rig::with_payments(30).await).await;
    for scenario in scenarios() {
        let rig = Rig::with_payments(30).await;
        rig.sandbox.scenario(scenario.name).unwrap();
        let seen = probe(&rig).await;
        let same = seen == calm;
        assert_eq!(same, scenario.name == "calm", "{}: {}", scenario.name, scenario.about);
        rig.sandbox.scenario("calm").unwrap();
        assert_eq!(read(rig.get("/v1/balance")).await.0, 200, "after {}", scenario.name);
    }
    let rig = Rig::new().await;
    let unknown = rig.sandbox.scenario("sunshine").unwrap_err().to_string();
    assert!(unknown.contains("calm, outage"), "{unknown}");
}

/// What a few rounds of requests look like from outside, up to the first without an answer.
async fn probe(rig: &Rig) -> Vec<String> {
    let mut seen = Vec::new();
    for round in 0..4 {
        let tag = format!("probe-{round}-abcdefghijklmnopqrstuvwxyz");
        let search = "/v1/payment_intents/search?query=status:'succeeded'&limit=3";
        let requests = [
            ("list", rig.get("/v1/payment_intents?limit=20&created[lte]=1700000029")),
            (
                "next",
                rig.get(
                    "/v1/payment_intents?limit=10&starting_after=pi_20&created[lte]=1700000029",
                ),
            ),
            ("pay", rig.paying(&tag)),
            ("new", rig.get("/v1/payment_intents?limit=1&created[gt]=1700000029")),
            ("search", rig.get(search)),
        ];
        for (name, request) in requests {
            let Some(line) = seen_of(rig, request, &tag).await else {
                seen.push(format!("{round} {name}: no answer"));
                return seen;
            };
            seen.push(format!("{round} {name}: {line}"));
        }
    }
    seen
}

/// One answer in a line; none where none came whole in time.
async fn seen_of(rig: &Rig, request: reqwest::RequestBuilder, tag: &str) -> Option<String> {
    let answer = request.timeout(Duration::from_millis(1_500)).send().await.ok()?;
    let status = answer.status();
    let date = answer.headers()["date"].to_str().unwrap().to_owned();
    let date = chrono::DateTime::parse_from_rfc2822(&date).unwrap();
    let ahead = date.timestamp() > rig.sandbox.now() + 60;
    let body = answer.text().await.ok()?;
    let count = |word: &str| body.matches(word).count();
    Some(format!(
        "{status} ahead={ahead} cursor={} more={} ids={} tags={} succeeded={} amounts={}",
        count("\"pi_20\""),
        count("\"has_more\":true"),
        count("\"id\":\"pi_"),
        count(tag),
        count("\"succeeded\""),
        count("\"amount\":100000"),
    ))
}
