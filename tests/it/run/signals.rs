//! SIGTERM and SIGINT at any instant: gone within its grace, nothing half done, no lease kept.

use std::time::{Duration, Instant};

use tieout::sandbox::faults::{Action, FaultRule};
use tieout::sandbox::routes::Route;

use super::shop::{
    Engine, Payment, Ran, Shop, Words, at_text, on_both_databases, signal, tieout_now,
};
use crate::breaking::chance::Chance;

on_both_databases!(
    a_signal_at_any_instant_ends_cleanly,
    a_psp_that_never_answers_holds_nobody_up,
    a_short_grace_leaves_no_lease,
    a_signal_that_is_sent_twice_is_one,
    a_second_signal_ends_at_once,
    what_is_paid_is_written_while_others_are_searched_for,
    a_run_that_was_killed_is_told_of_in_a_quiet_one,
);

/// How long a stop may take; Heroku kills after ten seconds.
const GRACE: Duration = Duration::from_secs(8);

async fn with_rows(engine: Engine, rows: i64) -> Shop {
    let words = Words { limits: "batch = 10".to_owned(), ..Words::default() };
    let mut shop = Shop::open_with(engine, words).await;
    shop.background(60).await;
    let rows: Vec<Payment> = (1..=rows).map(Payment::stuck).collect();
    shop.plant(rows.iter().filter(|row| row.id % 3 > 0).map(Payment::captured).collect());
    shop.insert(&rows).await;
    shop
}

/// The schedules are quiet: else nobody would hear of runs that die one after the other.
async fn a_run_that_was_killed_is_told_of_in_a_quiet_one(engine: Engine) {
    let shop = Shop::open(engine).await;
    let (id, past) = ("01a1fcac-5a9c-75b1-9c97-eb49f1848265", at_text(tieout_now() - 600));
    shop.raw
        .execute(&format!(
            "insert into tieout_runs (id, command, state, started_at, heartbeat_at, host, pid, \
             version, config_sha256, policy_version, scope) values ('{id}', 'run', 'running', \
             '{past}', '{past}', 'pod-1', 1, '0', '0', '0', '{{}}')"
        ))
        .await;
    let ran = shop.tieout(&["run", "--quiet"]).await.ended(0);
    assert_eq!(ran.stdout, "");
    let said = format!("tieout: run {id} stopped without finishing");
    assert!(ran.stderr.starts_with(&said) && ran.stderr.lines().count() == 1, "{}", ran.stderr);
    let again = shop.tieout(&["run", "--quiet"]).await.ended(0);
    assert_eq!((again.stdout, again.stderr), (String::new(), String::new()));
}

/// Starts a run, sends a signal so much later, and says how it ended and how long that took.
async fn stopped(shop: &Shop, name: &str, after: Duration) -> (Ran, Duration) {
    let child = shop.program(&["run"]).spawn().unwrap();
    let pid = child.id().unwrap();
    tokio::time::sleep(after).await;
    signal(pid, name).await;
    let since = Instant::now();
    let ran = Ran::of(&child.wait_with_output().await.unwrap());
    (ran, since.elapsed())
}

async fn nothing_is_left_behind(shop: &Shop) {
    assert_eq!(shop.count("tieout_checks where lease_run is not null").await, 0);
    assert_eq!(shop.count("tieout_runs where state = 'running'").await, 0);
    shop.check(false).await;
}

async fn a_signal_at_any_instant_ends_cleanly(engine: Engine) {
    let mut chance = Chance::from_environment();
    let mut stage = with_rows(engine, 60).await;
    stage.sandbox.behave(|behaviour| behaviour.latency_ms = 20);
    let whole = stage.copy().await;
    whole.sandbox.behave(|behaviour| behaviour.latency_ms = 20);
    let began = Instant::now();
    whole.run().await.ended(0);
    let whole = began.elapsed();
    let mut caught = 0;
    for round in 0..20 {
        let shop = stage.copy().await;
        shop.sandbox.behave(|behaviour| behaviour.latency_ms = 20);
        let (name, code) = if round % 2 == 0 { ("TERM", 143) } else { ("INT", 130) };
        let after = chance.below(whole);
        let (ran, took) = stopped(&shop, name, after).await;
        assert!(took < GRACE, "{took:?} after {after:?}");
        // Before the program could ask for signals it ends by them; after its end it is too late.
        match ran.code {
            Some(got) if got == code => caught += 1,
            Some(0) | None => {}
            other => panic!("{name} after {after:?}: {other:?} {}", ran.stderr),
        }
        nothing_is_left_behind(&shop).await;
        shop.run().await.ended(0);
        let paid = shop.count("payments where status = 'paid' and id < 900000").await;
        assert_eq!(paid, 40, "{name} after {after:?}");
        shop.check(false).await;
    }
    assert!(caught >= 5, "only {caught} of 20 signals met a run; it took {whole:?}");
}

async fn a_psp_that_never_answers_holds_nobody_up(engine: Engine) {
    let mut stage = with_rows(engine, 30).await;
    stage.words.account = "deadline = \"60s\"".to_owned();
    let text = std::fs::read_to_string(stage.folder().join("tieout.toml")).unwrap();
    let patient = text.replace("deadline = \"2s\"", "deadline = \"60s\"");
    for (name, code, action) in
        [("TERM", 143, Action::NoAnswer), ("INT", 130, Action::Drip { bytes: 1, every_ms: 500 })]
    {
        let shop = stage.copy().await;
        let base = |shop: &Shop| shop.sandbox.base_url();
        let text = patient.replace(&base(&stage), &base(&shop));
        std::fs::write(shop.folder().join("tieout.toml"), text).unwrap();
        shop.sandbox.fault(FaultRule::always(action));
        let (ran, took) = stopped(&shop, name, Duration::from_millis(1_500)).await;
        assert!(took < GRACE, "{took:?}");
        assert_eq!(ran.code, Some(code), "{}", ran.stderr);
        nothing_is_left_behind(&shop).await;
        assert_eq!(shop.count("payments where status = 'processing'").await, 30);
    }
}

/// However short the grace, a part of it is for giving rows back.
async fn a_short_grace_leaves_no_lease(engine: Engine) {
    let shop = with_silence(engine).await;
    let child = shop.program(&["run", "--grace", "3s"]).spawn().unwrap();
    let pid = child.id().unwrap();
    while shop.count("tieout_checks where lease_run is not null").await == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // The PSP was asked by then, and says nothing.
    tokio::time::sleep(Duration::from_millis(700)).await;
    signal(pid, "TERM").await;
    let ran = Ran::of(&child.wait_with_output().await.unwrap());
    assert_eq!(ran.code, Some(143), "{}", ran.stderr);
    assert!(!ran.stderr.contains("ended at once"), "{}", ran.stderr);
    nothing_is_left_behind(&shop).await;
    assert_eq!(shop.count("payments where status = 'processing'").await, 30);
}

/// A shop whose PSP says nothing, and waits for ever.
async fn with_silence(engine: Engine) -> Shop {
    let shop = with_rows(engine, 30).await;
    let config = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("deadline = \"2s\"", "deadline = \"60s\"")).unwrap();
    shop.sandbox.fault(FaultRule::always(Action::NoAnswer));
    shop
}

/// `timeout` tells the program, and then its group: whoever it started hears of it twice.
async fn a_signal_that_is_sent_twice_is_one(engine: Engine) {
    let shop = with_silence(engine).await;
    let child = shop.program(&["run", "--grace", "4s"]).spawn().unwrap();
    let pid = child.id().unwrap();
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    for pause_ms in [0, 10, 400] {
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        signal(pid, "TERM").await;
    }
    let ran = Ran::of(&child.wait_with_output().await.unwrap());
    assert_eq!(ran.code, Some(143), "{}", ran.stderr);
    assert!(!ran.stderr.contains("ended at once"), "{}", ran.stderr);
    nothing_is_left_behind(&shop).await;
    assert_eq!(shop.count("payments where status = 'processing'").await, 30);
}

async fn a_second_signal_ends_at_once(engine: Engine) {
    let shop = with_silence(engine).await;
    let child = shop.program(&["run"]).spawn().unwrap();
    let pid = child.id().unwrap();
    tokio::time::sleep(Duration::from_millis(900)).await;
    signal(pid, "TERM").await;
    tokio::time::sleep(Duration::from_millis(1_300)).await;
    signal(pid, "TERM").await;
    let since = Instant::now();
    let ran = Ran::of(&child.wait_with_output().await.unwrap());
    assert!(since.elapsed() < Duration::from_secs(1), "{:?}", since.elapsed());
    assert_eq!(ran.code, Some(143));
    let told = "tieout: interrupted: ended at once, since a second signal came";
    assert!(ran.stderr.starts_with(told) && ran.stderr.contains("(exit 143)"), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    shop.check(false).await;
    // Its leases lapse, and the next run heals what it left.
    shop.sandbox.clear_faults();
    shop.ten_minutes_pass().await;
    shop.run().await.ended(0);
    assert_eq!(shop.count("payments where status = 'paid' and id < 900000").await, 20);
    shop.check(false).await;
}

async fn what_is_paid_is_written_while_others_are_searched_for(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    shop.background(60).await;
    shop.insert(&[Payment::stuck(1)]).await;
    assert_eq!(shop.run().await.verdict(1), "wait within_grace");
    shop.a_span_passes().await;
    assert_eq!(shop.run().await.verdict(1), "wait absence_unproven");
    // Row 1 is about to be handed back, and the search that must confirm it hangs.
    let paid = Payment { attempted: Some(5 * 60), ..Payment::stuck(2) };
    shop.plant(vec![paid.captured()]);
    shop.insert(&[paid]).await;
    let config = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("deadline = \"2s\"", "deadline = \"60s\"")).unwrap();
    for route in [Route::SearchIntents, Route::SearchCharges] {
        shop.sandbox.fault(FaultRule::on(route, Action::NoAnswer));
    }
    shop.a_span_passes().await;
    let child = shop.program(&["run"]).spawn().unwrap();
    let pid = child.id().unwrap();
    let since = Instant::now();
    while shop.status(2).await != "paid" {
        assert!(since.elapsed() < Duration::from_secs(30), "row 2 waits for the search of row 1");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    signal(pid, "KILL").await;
    assert_eq!(Ran::of(&child.wait_with_output().await.unwrap()).code, None, "it still ran");
    shop.check(false).await;
    shop.sandbox.clear_faults();
    shop.ten_minutes_pass().await;
    shop.due_now().await;
    assert_eq!(shop.run().await.ended(0).verdict(1), "retryable absent");
    assert_eq!(shop.count("tieout_journal where key = '2'").await, 1);
    shop.check(false).await;
}
