//! One account's lane: retries, the pace, the breaker, the stop, the trust in the server.

use std::time::{Duration, Instant};

use tieout::model::evidence::CauseKind;
use tieout::psp::account::{Account, Need};
use tieout::psp::lane::StopKind;
use tieout::sandbox::faults::{Action, FaultRule, Turn};
use tieout::sandbox::routes::Route;
use tieout::sandbox::settings::{Behaviour, RateLimit, RetryAfter, Settings, Tls};
use tokio_util::sync::CancellationToken;

use super::{
    Desk, INTENTS, KEY, QUICK, account, account_until, asked, by_intent, causes, complete, found,
    nothing,
};

const GOOD: &str = include_str!("../../../fixtures/tls/good.pem");
const EXPIRED: &str = include_str!("../../../fixtures/tls/expired.pem");
const OTHER_HOST: &str = include_str!("../../../fixtures/tls/other-host.pem");
const SELF_SIGNED: &str = include_str!("../../../fixtures/tls/self-signed.pem");
const AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/tls/authority.pem");

fn failing(code: u16) -> Action {
    Action::Status { code, retry_after: RetryAfter::Absent, reason: None }
}

#[tokio::test]
async fn what_passes_by_itself_is_asked_again() {
    for action in [failing(500), failing(409), failing(429), Action::Reset] {
        let desk = Desk::new(&format!("{INTENTS}retries = 2\nconcurrency = 1\n")).await;
        desk.plant(3);
        desk.sandbox.fault(FaultRule::on(Route::ListIntents, action.clone()).times(2));
        let looked = desk.look(&[by_intent("nobody")], Need::Complete).await;
        assert!(nothing(&looked.evidence[0]).is_some(), "{action:?}: {:?}", looked.evidence);
        let counts = desk.account.counts();
        let failed =
            counts.rate_limited + counts.server_errors + counts.refused + counts.unanswered;
        assert_eq!((counts.requests, counts.ok, failed), (4, 2, 2), "{action:?}: {counts:?}");
    }
}

#[tokio::test]
async fn a_retry_after_is_obeyed_and_capped() {
    let more = format!("{INTENTS}retries = 1\nconcurrency = 1\nretry_after_max = \"2s\"\n");
    for (retry_after, least) in [
        (RetryAfter::Seconds(1), 1_000),
        (RetryAfter::Seconds(1_000_000_000), 2_000),
        (RetryAfter::DateIn(3_600), 2_000),
    ] {
        let desk = Desk::new(&more).await;
        desk.plant(1);
        let action = Action::Status { code: 429, retry_after: retry_after.clone(), reason: None };
        desk.sandbox.fault(FaultRule::on(Route::ListIntents, action).times(1));
        let began = Instant::now();
        let looked = desk.look(&[by_intent("nobody")], Need::Complete).await;
        assert!(nothing(&looked.evidence[0]).is_some(), "{retry_after:?}");
        let times: Vec<i64> = desk.sandbox.requests().iter().map(|r| r.at_ms).collect();
        assert!(times[1] - times[0] >= least - 20, "{retry_after:?}: {times:?}");
        assert!(began.elapsed() < Duration::from_secs(20), "{retry_after:?}");
    }
}

#[tokio::test]
async fn a_stricter_server_is_given_way_to() {
    let limit =
        RateLimit { per_second: 5, burst: 2, per_route: None, retry_after: RetryAfter::Absent };
    let behaviour = Behaviour { rate_limit: Some(limit), ..Behaviour::default() };
    let more = format!("{INTENTS}requests_per_second = 100\nretries = 6\nconcurrency = 4\n");
    let desk = Desk::with(Settings { behaviour, ..Settings::default() }, &more).await;
    desk.plant(1_500);
    let looked = desk.look(&[by_intent("nobody")], Need::Complete).await;
    assert!(nothing(&looked.evidence[0]).is_some(), "{:?}", looked.evidence);
    let counts = desk.account.counts();
    assert!(counts.rate_limited > 0, "the server did refuse: {counts:?}");
    assert!(counts.rate_limited < counts.ok, "and was not run against: {counts:?}");
}

#[tokio::test]
async fn a_dead_account_is_left_alone_and_tried_again_later() {
    let more = "retries = 0\nbreaker_after = 3\nbreaker_pause = \"1s\"\nconcurrency = 1\n\
                requests_per_second = 1000\n";
    let desk = Desk::new(more).await;
    desk.plant(1);
    desk.sandbox.fault(FaultRule::always(failing(500)));
    let questions: Vec<_> = (0..20).map(|_| asked(None, Some("pi_0"))).collect();
    // One by one: each row costs one call, the list would cost no more and is broken as well.
    let looked = desk.look(&questions, Need::Find).await;
    let mut kinds: Vec<CauseKind> = looked.evidence.iter().flat_map(|e| causes(e)).collect();
    kinds.dedup();
    assert!(kinds.contains(&CauseKind::BreakerOpen), "{kinds:?}");
    assert!(looked.evidence.iter().all(|evidence| !evidence.is_empty()));
    let asked_before = desk.sandbox.total_requests();
    assert!(asked_before <= 4, "{asked_before} calls to a dead account");
    desk.sandbox.clear_faults();
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let looked = desk.look(&questions[..1], Need::Find).await;
    assert_eq!(found(&looked.evidence[0]).len(), 1, "one question tries, and it works again");
}

/// What is under way may end; what fails then is not asked again, and nothing new is begun.
#[tokio::test]
async fn after_the_end_no_question_is_begun() {
    let more = format!("{INTENTS}retries = 3\nconcurrency = 1\nbreaker_after = 100\n");
    let desk = Desk::new(&more).await;
    desk.plant(1);
    let refused = Action::Status { code: 500, retry_after: RetryAfter::Seconds(1), reason: None };
    for (action, wanted) in [(Action::Delay { ms: 600 }, (1, 2, 0)), (refused, (0, 2, 1))] {
        let over = CancellationToken::new();
        let account = account_until(&desk.sandbox.base_url(), &more, &desk.stop, &over);
        desk.sandbox.fault(FaultRule::always(action));
        desk.sandbox.clear_requests();
        // So few that each is asked by itself.
        let questions: Vec<_> = (0..3).map(|_| asked(None, Some("pi_0"))).collect();
        let ending = async {
            while desk.sandbox.total_requests() == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            over.cancel();
        };
        let began = Instant::now();
        let (looked, ()) = tokio::join!(account.look(&questions, Need::Find), ending);
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        assert_eq!(desk.sandbox.total_requests(), 1, "{:?}", looked.evidence);
        let found = looked.evidence.iter().map(|evidence| found(evidence).len()).sum::<usize>();
        let kinds: Vec<CauseKind> = looked.evidence.iter().flat_map(|e| causes(e)).collect();
        let unasked = kinds.iter().filter(|kind| **kind == CauseKind::Interrupted).count();
        let failed = kinds.iter().filter(|kind| **kind == CauseKind::ServerError).count();
        assert_eq!((found, unasked, failed), wanted, "{:?}", looked.evidence);
        desk.sandbox.clear_faults();
    }
}

#[tokio::test]
async fn a_stop_sends_no_new_call_and_ends_those_in_flight() {
    let desk = Desk::new("deadline = \"60s\"\nconcurrency = 2\n").await;
    desk.plant(1);
    desk.sandbox.fault(FaultRule::always(Action::NoAnswer));
    let stop = desk.stop.clone();
    let questions: Vec<_> = (0..6).map(|_| asked(None, Some("pi_0"))).collect();
    let began = Instant::now();
    let stopping = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        stop.cancel();
    };
    let (looked, ()) = tokio::join!(desk.look(&questions, Need::Find), stopping);
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    let kinds: Vec<CauseKind> = looked.evidence.iter().flat_map(|e| causes(e)).collect();
    assert!(kinds.iter().all(|kind| *kind == CauseKind::Interrupted), "{kinds:?}");
    assert!(looked.evidence.iter().all(|evidence| !evidence.is_empty()));
    let before = desk.sandbox.total_requests();
    desk.sandbox.clear_faults();
    let looked = desk.look(&questions[..1], Need::Find).await;
    assert_eq!(causes(&looked.evidence[0]), [CauseKind::Interrupted]);
    assert_eq!(desk.sandbox.total_requests(), before);
}

#[tokio::test]
async fn a_server_that_cannot_be_trusted_stops_the_account() {
    for (identity, trusted) in
        [(GOOD, true), (EXPIRED, false), (OTHER_HOST, false), (SELF_SIGNED, false)]
    {
        for http2 in [true, false] {
            let tls = Tls { identity_pem: identity.to_owned(), http2 };
            let sandbox = Settings { tls: Some(tls), ..Settings::default() };
            let more = format!("{QUICK}ca_file = \"{AUTHORITY}\"\n");
            let desk = Desk::with(sandbox, &more).await;
            desk.plant(1);
            let looked = desk.look(&[asked(Some("row-0"), None)], Need::Complete).await;
            match desk.account.stopped() {
                None => assert!(trusted && complete(&looked.evidence[0]).is_some()),
                Some(stop) => {
                    assert_eq!((stop.kind, trusted), (StopKind::Tls, false), "{}", stop.text);
                    assert_eq!(stop.kind.exit_code(), 13);
                    assert_eq!(causes(&looked.evidence[0]), [CauseKind::AccountStopped]);
                    assert_eq!(desk.sandbox.total_requests(), 0);
                }
            }
        }
    }
}

#[tokio::test]
async fn the_clock_difference_is_told_with_the_search() {
    for secs in [-7_200, 600] {
        let behaviour = Behaviour { date_skew_secs: secs, ..Behaviour::default() };
        let desk = Desk::with(Settings { behaviour, ..Settings::default() }, QUICK).await;
        desk.plant(1);
        let looked = desk.look(&[asked(Some("nobody"), None)], Need::Complete).await;
        let skew = nothing(&looked.evidence[0]).unwrap().psp_skew_secs.unwrap();
        assert!((skew - secs).abs() <= 2, "{skew}");
    }
}

#[tokio::test]
async fn every_request_names_its_version_and_account_and_no_text_has_the_key() {
    let more = format!("{QUICK}stripe_account = \"acct_other\"\n");
    let desk = Desk::new(&more).await;
    desk.plant(1);
    desk.sandbox.fault(FaultRule::always(failing(401)).at(Turn::From(3)));
    let looked =
        desk.look(&[asked(Some("row-0"), None), asked(None, Some("pi_0"))], Need::Find).await;
    let requests = desk.sandbox.requests();
    assert!(requests.iter().all(|r| r.version.as_deref() == Some("2026-10-28.endive")));
    assert!(requests.iter().all(|r| r.account == "acct_other"), "{requests:?}");
    let stop = desk.account.stopped().unwrap();
    let told = format!("{looked_debug:?} {stop:?}", looked_debug = looked.evidence);
    assert!(!told.contains(KEY), "{told}");
}

#[tokio::test]
async fn a_key_of_the_other_mode_asks_nothing() {
    let desk = Desk::new(QUICK).await;
    for (key, livemode, kind) in [
        ("sk_live_x", false, Some(StopKind::WrongEnvironment)),
        ("rk_test_x", true, Some(StopKind::WrongEnvironment)),
        ("", false, Some(StopKind::NoKey)),
        ("two\nlines", false, Some(StopKind::NoKey)),
        ("sk_test_x", false, None),
    ] {
        let text = QUICK.to_owned();
        let mut settings = super::settings(&desk.sandbox.base_url(), &text);
        settings.livemode = livemode;
        let key = key.to_owned();
        let around = tieout::psp::account::Surroundings {
            env: std::sync::Arc::new(move |_| Some(key.clone())),
            db_now: std::sync::Arc::new(chrono::Utc::now),
            stop: CancellationToken::new(),
            grace: Duration::from_secs(6),
            over: CancellationToken::new(),
        };
        let account = Account::open(settings, around).unwrap();
        desk.sandbox.clear_requests();
        let looked = account.look(&[asked(Some("nobody"), None)], Need::Complete).await;
        assert_eq!(account.stopped().map(|stop| stop.kind), kind);
        assert_eq!(nothing(&looked.evidence[0]).is_some(), kind.is_none());
        assert_eq!(desk.sandbox.total_requests() > 0, kind.is_none());
    }
    let missing = account(&desk.sandbox.base_url(), QUICK, &CancellationToken::new());
    assert!(missing.stopped().is_none(), "nothing is read before the first question");
}
