//! `tieout cases kick`: open cases decided again by today's rules and fresh evidence, and what
//! may come between.

use std::time::Duration;

use serde_json::Value;
use tieout::sandbox::faults::{Action, FaultRule, Matches};
use tieout::sandbox::seeds::Seed;
use tieout::sandbox::settings::RetryAfter;
use tieout::sandbox::situations::Situation;

use crate::run::people::{ONE_IS_ENOUGH, confirmed};
use crate::run::shop::{Engine, Payment, Ran, Shop, Words, on_both_databases, signal, tieout_now};
use crate::support::events;

/// A code that no rule knows.
const CODE: &str = "never_heard_of";

/// Rows 1..=`rows` are declined with it; each is a case.
async fn with_cases(engine: Engine, rows: i64) -> Shop {
    with_cases_by(engine, rows, |words| words).await
}

/// The same, by other words of its tieout.toml.
async fn with_cases_by(engine: Engine, rows: i64, words: impl Fn(String) -> String) -> Shop {
    let mut shop = Shop::open_with(engine, Words::default().patient()).await;
    let config = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, words(text)).unwrap();
    shop.background(30).await;
    let rows: Vec<Payment> = (1..=rows).map(Payment::stuck).collect();
    let declined = |row: &Payment| Seed {
        decline_code: Some(CODE.to_owned()),
        ..row.captured().standing(Situation::Declined)
    };
    shop.plant(rows.iter().map(declined).collect());
    shop.insert(&rows).await;
    shop.run().await.ended(0);
    assert_eq!(shop.open_cases().await.len(), rows.len());
    // The calls that were under way are over by now, so that a failure can be final.
    shop.a_span_passes().await;
    shop
}

/// Puts a rule in force that says what the code means.
fn rule(shop: &Shop, outcome: &str) {
    let text = format!(
        "[[rule]]\nid = \"own.unheard\"\npsp = \"stripe\"\nwhen = \"failure\"\n\
         code = [\"{CODE}\"]\noutcome = \"{outcome}\"\nsource = \"a letter of the bank\"\n\
         example = {{ code = \"{CODE}\" }}\n"
    );
    std::fs::write(shop.folder().join("own.toml"), text).unwrap();
    let config = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    if !text.contains("[rules]") {
        std::fs::write(&config, format!("{text}\n[rules]\nfiles = [\"own.toml\"]\n")).unwrap();
    }
}

async fn kick(shop: &Shop, words: &[&str]) -> Ran {
    let mut all = vec!["cases", "kick", "--json"];
    all.extend(words);
    let ran = shop.tieout(&all).await;
    events::check(&ran.stdout);
    ran
}

/// `case outcome reason` of each, and whether it is open.
fn ends(ran: &Ran) -> Vec<(String, bool)> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let kicked = ran.of_type("kicked_case");
    let end = |case: &Value| {
        let [case_id, outcome, reason] = ["case_id", "outcome", "reason"].map(|n| text(&case[n]));
        (format!("{case_id} {outcome} {reason}"), case["open"].as_bool().unwrap())
    };
    kicked.iter().map(end).collect()
}

async fn case(shop: &Shop, number: i64) -> Value {
    let number = format!("C-{number}");
    let mut found = shop.tieout(&["cases", "show", &number, "--json"]).await.ended(0).events();
    found.remove(0)["case"].take()
}

async fn what_a_rule_settles_is_settled_and_told_by_whom(engine: Engine) {
    let shop = with_cases(engine, 2).await;
    let none = kick(&shop, &["--fixed-by-rules", "--yes"]).await.ended(0);
    assert_eq!(none.of_type("kick")[0]["cases"], 0, "no rule knows the code yet");
    rule(&shop, "failed");
    let before = shop.dump().await;
    let dry = kick(&shop, &["--fixed-by-rules", "--dry-run"]).await.ended(0);
    assert_eq!(ends(&dry)[0], ("C-1 failed declined_final".to_owned(), true), "{}", dry.stdout);
    assert_eq!(shop.dump().await, before, "a dry run wrote something");
    // Several are never decided by a word that nobody confirmed.
    let unsure = shop.tieout(&["cases", "kick", "--fixed-by-rules"]).await.ended(2);
    assert!(unsure.stderr.contains("2 cases: 2 of 200.03 EUR"), "{}", unsure.stderr);
    assert!(unsure.stderr.contains("C-1  payments/1  100.01 EUR  decline_unknown"));
    assert_eq!(shop.dump().await, before);

    let why = ["--why", "the bank wrote"];
    let ran = kick(&shop, &[&["--fixed-by-rules", "--yes"][..], &why[..]].concat()).await.ended(0);
    let closed = |n: i64| (format!("C-{n} failed declined_final"), false);
    assert_eq!(ends(&ran), [closed(1), closed(2)]);
    let sum = &ran.of_type("kick")[0];
    assert_eq!((&sum["closed"], &sum["cases"]), (&2.into(), &2.into()), "{sum}");
    assert_eq!([shop.status(1).await, shop.status(2).await], ["failed", "failed"]);
    assert_eq!(case(&shop, 1).await["resolution"], "decided failed: declined_final");

    // By whom, why and by which rules stands in the run and in each decision's own evidence.
    let shown = shop.tieout(&["runs", "show"]).await.ended(0).stdout;
    assert!(shown.contains(" · kick · complete"), "{shown}");
    assert!(shown.contains("(--fixed-by-rules): the bank wrote"), "{shown}");
    let asked = "tieout_journal where asked = 'kick' and rule = 'own.unheard'";
    assert_eq!(shop.count(asked).await, 2);
    let bodies = shop.texts(
        "select cast(e.body as text) from tieout_evidence e join tieout_journal j \
         on j.evidence_sha256 = e.sha256 where j.asked = 'kick'",
    );
    for body in bodies.await {
        let kicked = &serde_json::from_str::<Value>(&body).unwrap()["kicked"];
        assert_eq!(kicked["why"], "the bank wrote", "{body}");
        assert!(!kicked["by"].as_str().unwrap().is_empty(), "{body}");
        assert_eq!(kicked["rules"].as_str().unwrap().len(), 12, "{body}");
    }
    let again = kick(&shop, &["C-1"]).await.ended(2);
    assert!(again.stderr.contains("case C-1 was closed"), "{}", again.stderr);
    shop.tieout(&["audit", "verify"]).await.ended(0);
    shop.check(false).await;
}

async fn what_is_still_unknown_stays_the_same_case(engine: Engine) {
    let shop = with_cases(engine, 2).await;
    let ran = kick(&shop, &["C-2"]).await.ended(0);
    assert_eq!(ends(&ran), [("C-2 review decline_unknown".to_owned(), true)]);
    let seen = [case(&shop, 1).await, case(&shop, 2).await].map(|case| case["times_seen"].clone());
    assert_eq!(seen, [1, 2], "the one that was not meant was left alone");
    assert_eq!(shop.count("tieout_cases").await, 2);
    let ran = kick(&shop, &["--reason", "decline_unknown", "--limit", "1", "--yes"]).await;
    let ran = ran.ended(0);
    assert_eq!(ends(&ran).len(), 1);
    assert!(ran.stderr.contains("there are more than 1"), "{}", ran.stderr);
    assert_eq!(ends(&ran)[0].0, "C-1 review decline_unknown", "it was looked at longest ago");
    let ran = kick(&shop, &["--reason", "decline_unknown", "--limit", "1", "--yes"]).await;
    assert_eq!(ends(&ran.ended(0))[0].0, "C-2 review decline_unknown", "the next goes on");
    let ran = kick(&shop, &["--all", "--yes"]).await.ended(0);
    assert_eq!(ran.of_type("kick")[0]["review"], 2);
    assert_eq!(shop.count("tieout_cases").await, 2);
    for words in [
        &["C-1", "--all"][..],
        &[],
        &["--reason", "decline_unknwon"],
        &["C-99"],
        &["C-x"],
        &["C-1", "--limit", "0"],
        &["C-1", "--why", " "],
    ] {
        let wrong = shop.tieout(&[&["cases", "kick"][..], words].concat()).await.ended(2);
        assert!(wrong.stderr.starts_with("tieout: usage: "), "{words:?}: {}", wrong.stderr);
    }
    shop.check(false).await;
}

/// A case that nothing can be done for does not stand in the way of the others for ever.
async fn a_kick_goes_on_behind_what_it_cannot_look_at(engine: Engine) {
    let shop = with_cases(engine, 2).await;
    shop.raw.execute("delete from payments where id = 1").await;
    let words = ["--all", "--limit", "1", "--yes"];
    // Nothing is noted by a dry run.
    for more in [&["--dry-run"][..], &[]] {
        let ran = kick(&shop, &[&words[..], more].concat()).await;
        assert_eq!(ends(&ran), [("C-1 - -".to_owned(), true)], "{}", ran.stderr);
    }
    let ran = kick(&shop, &words).await.ended(0);
    assert_eq!(ends(&ran), [("C-2 review decline_unknown".to_owned(), true)]);
}

/// So it is with those that a rule would settle: what is gone, and what the PSP gives no answer
/// for, is taken first by one kick, and not by the next.
async fn what_a_rule_would_settle_has_its_turn(engine: Engine) {
    let shop = with_cases(engine, 5).await;
    rule(&shop, "failed");
    shop.raw.execute("delete from payments where id in (1, 2)").await;
    let words = ["--fixed-by-rules", "--limit", "2", "--yes"];
    let named = |ran: &Ran| -> Vec<String> {
        let name = |(case, _): &(String, bool)| case.split(' ').next().unwrap().to_owned();
        ends(ran).iter().map(name).collect()
    };
    assert_eq!(named(&kick(&shop, &words).await), ["C-1", "C-2"]);
    let down = Action::Status { code: 503, retry_after: RetryAfter::Absent, reason: None };
    shop.sandbox.fault(FaultRule::always(down));
    let ran = kick(&shop, &words).await.ended(3);
    assert_eq!(ends(&ran), [("C-3 - -".to_owned(), true), ("C-4 - -".to_owned(), true)]);
    shop.sandbox.clear_faults();
    let ran = kick(&shop, &words).await;
    assert_eq!(named(&ran), ["C-5", "C-1"], "{}", ran.stderr);
    assert_eq!(shop.status(5).await, "failed");
    let ran = kick(&shop, &words).await;
    assert_eq!(named(&ran), ["C-2", "C-3"], "{}", ran.stderr);
    let ran = kick(&shop, &words).await;
    assert_eq!(named(&ran), ["C-4", "C-1"], "{}", ran.stderr);
    let left = ["1 decline_unknown", "2 decline_unknown"];
    assert_eq!(shop.open_cases().await, left);
}

/// Money that arrived meanwhile is found, whatever the rules say.
async fn fresh_evidence_decides(engine: Engine) {
    let shop = with_cases(engine, 1).await;
    rule(&shop, "retryable");
    shop.sandbox.move_to("pi_1", Situation::Succeeded).unwrap();
    let ran = kick(&shop, &["C-1"]).await.ended(0);
    assert_eq!(ends(&ran), [("C-1 succeeded captured".to_owned(), false)]);
    assert_eq!(shop.status(1).await, "paid");
    shop.check(false).await;
}

async fn a_psp_that_is_down_leaves_the_case_as_it_was(engine: Engine) {
    let shop = with_cases(engine, 1).await;
    rule(&shop, "failed");
    let before = (case(&shop, 1).await, shop.texts(CHECKS).await);
    let down = Action::Status { code: 503, retry_after: RetryAfter::Absent, reason: None };
    shop.sandbox.fault(FaultRule::always(down));
    let ran = kick(&shop, &["C-1"]).await.ended(3);
    assert_eq!(ends(&ran), [("C-1 - -".to_owned(), true)]);
    assert!(ran.stderr.contains("no answer for 1 of 1 row"), "{}", ran.stderr);
    assert_eq!((case(&shop, 1).await, shop.texts(CHECKS).await), before);
    shop.sandbox.clear_faults();
    let ran = kick(&shop, &["C-1"]).await.ended(0);
    assert_eq!(ends(&ran), [("C-1 failed declined_final".to_owned(), false)]);
    shop.check(false).await;
}

/// What a case's history says, on one line.
async fn history(shop: &Shop, number: &str) -> String {
    let shown = shop.tieout(&["cases", "show", number]).await.ended(0).stdout;
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// By whom a case was kicked, what came of it each time, and what closed it.
async fn a_history_tells_of_kicks_and_of_the_end(engine: Engine) {
    let shop = with_cases(engine, 2).await;
    kick(&shop, &["C-1", "--why", "the bank called"]).await.ended(0);
    let still = history(&shop, "C-1").await;
    assert!(still.contains(" (the bank called) with run "), "{still}");
    assert!(still.contains(": needs a person (decline_unknown)"), "{still}");
    assert!(!still.contains("closed by"), "{still}");
    let other = history(&shop, "C-2").await;
    assert!(!other.contains("kicked by"), "the other one was not: {other}");
    let down = Action::Status { code: 503, retry_after: RetryAfter::Absent, reason: None };
    shop.sandbox.fault(FaultRule::always(down));
    kick(&shop, &["C-1"]).await.ended(3);
    shop.sandbox.clear_faults();
    let silent = history(&shop, "C-1").await;
    assert!(silent.contains("nothing was decided, and the case stayed as it was"), "{silent}");

    rule(&shop, "failed");
    kick(&shop, &["C-1"]).await.ended(0);
    let ended = history(&shop, "C-1").await;
    assert!(ended.contains(": failed (declined_final)"), "{ended}");
    assert!(ended.contains("closed by run "), "{ended}");
    assert!(ended.contains(": decided failed: declined_final"), "{ended}");
    assert_eq!(ended.matches("kicked by ").count(), 4, "three kicks and the end: {ended}");
    // What a run closes by itself is nobody's kick.
    shop.sandbox.move_to("pi_2", Situation::Succeeded).unwrap();
    assert_eq!(shop.run_with(&["--id", "2"]).await.ended(0).verdict(2), "succeeded captured");
    let by_run = history(&shop, "C-2").await;
    assert!(by_run.contains("closed by run "), "{by_run}");
    assert!(by_run.contains(": decided succeeded: captured"), "{by_run}");
    assert!(!by_run.contains("kicked by"), "{by_run}");
    shop.check(false).await;
}

/// Gives the mapping a `review` value.
fn held(text: String) -> String {
    text.replace("retryable = \"retry\"", "retryable = \"retry\", review = \"held\"")
}

/// What tieout itself sent to review is settled from there, as it would have been before.
async fn a_row_that_was_sent_to_review_is_settled(engine: Engine) {
    let shop = with_cases_by(engine, 2, held).await;
    assert_eq!([shop.status(1).await, shop.status(2).await], ["held", "held"]);
    // Still unknown: the same case, the same status, and the row is not touched.
    let ran = kick(&shop, &["C-1"]).await.ended(0);
    assert_eq!(ends(&ran), [("C-1 review decline_unknown".to_owned(), true)]);
    assert_eq!(case(&shop, 1).await["times_seen"], 2);
    assert_eq!(shop.status(1).await, "held");
    rule(&shop, "failed");
    let ran = kick(&shop, &["C-1"]).await.ended(0);
    assert_eq!(ends(&ran), [("C-1 failed declined_final".to_owned(), false)]);
    let settled = "select status_before || ' ' || status_after from tieout_journal \
                   where outcome = 'failed' and applied = 'yes'";
    assert_eq!(shop.texts(settled).await, ["held failed"]);
    // By its key it is the same.
    shop.sandbox.move_to("pi_2", Situation::Succeeded).unwrap();
    assert_eq!(shop.run_with(&["--id", "2"]).await.ended(0).verdict(2), "succeeded captured");
    assert_eq!([shop.status(1).await, shop.status(2).await], ["failed", "paid"]);
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    shop.tieout(&["audit", "verify"]).await.ended(0);
    shop.check(false).await;
}

/// What must wait stays a person's: no run would find a row in its review value.
async fn a_row_in_review_that_must_wait_keeps_its_case(engine: Engine) {
    let shop = with_cases_by(engine, 1, held).await;
    shop.sandbox.move_to("pi_1", Situation::Processing).unwrap();
    let ran = shop.tieout(&["cases", "kick", "C-1"]).await.ended(0);
    assert!(ran.stdout.contains("only a later kick goes on with it"), "{}", ran.stdout);
    let state = "select state from tieout_checks where key = '1'";
    assert_eq!(shop.texts(state).await, ["case"]);
    shop.run().await.ended(0);
    assert_eq!(shop.open_cases().await, ["1 decline_unknown"]);
    shop.check(false).await;
    shop.sandbox.move_to("pi_1", Situation::Succeeded).unwrap();
    let ran = kick(&shop, &["C-1"]).await.ended(0);
    assert_eq!(ends(&ran), [("C-1 succeeded captured".to_owned(), false)]);
    assert_eq!(shop.status(1).await, "paid");
    shop.check(false).await;
}

/// Looked at again and again: what a first look remembers must not make the row tieout's own.
async fn is_left_alone(shop: &Shop) {
    let before = (case(shop, 1).await, shop.texts(CHECKS).await);
    shop.run_with(&["--id", "1"]).await.ended(0);
    assert_eq!((case(shop, 1).await, shop.texts(CHECKS).await), before, "named by its key");
    for _ in 0..2 {
        let ran = kick(shop, &["C-1"]).await.ended(0);
        assert_eq!(ends(&ran), [("C-1 - -".to_owned(), true)]);
        let why = "its status is `held`, and somebody else wrote that or changed the row since";
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
    }
    assert_eq!((case(shop, 1).await, shop.texts(CHECKS).await), before);
    shop.sandbox.move_to("pi_1", Situation::Succeeded).unwrap();
    let ran = kick(shop, &["C-1"]).await.ended(0);
    assert_eq!(ends(&ran), [("C-1 review late_contradiction".to_owned(), true)]);
    assert_eq!(shop.status(1).await, "held");
    assert_eq!(shop.count("tieout_cases").await, 1);
}

/// What a person put into the mapping's `review` value is theirs; the case is not lost by looking.
async fn a_row_that_a_person_holds_keeps_its_case(engine: Engine) {
    let shop = with_cases(engine, 1).await;
    assert_eq!(shop.status(1).await, "processing");
    rule(&shop, "failed");
    let config = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, held(text)).unwrap();
    shop.raw.execute("update payments set status = 'held' where id = 1").await;
    is_left_alone(&shop).await;
    shop.check(true).await;
}

/// So is what a person changed in it after tieout sent it to review.
async fn a_row_that_was_changed_in_review_keeps_its_case(engine: Engine) {
    let shop = with_cases_by(engine, 1, held).await;
    assert_eq!(shop.status(1).await, "held");
    rule(&shop, "failed");
    shop.raw.execute("update payments set psp_ref = 'pi_1' where id = 1").await;
    is_left_alone(&shop).await;
    // Put back to where the mapping begins, it is everybody's again.
    shop.raw.execute("update payments set status = 'processing' where id = 1").await;
    assert_eq!(shop.run().await.ended(0).verdict(1), "succeeded captured");
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    shop.check(false).await;
}

/// A list ends with a row's call. What a search had found later stands in the case all the same,
/// and is no absence where many are looked at together.
async fn what_a_case_shows_is_not_lost_by_a_narrower_look(engine: Engine) {
    let mut shop = Shop::open_with(engine, Words::default().patient()).await;
    shop.background(60).await;
    let row = Payment::stuck(1);
    shop.insert(std::slice::from_ref(&row)).await;
    let late = row.captured().created_at(tieout_now() - 20 * 60);
    let again = Seed { id: Some("pi_11".to_owned()), ..late.clone() };
    shop.plant(vec![late, again]);
    assert_eq!(shop.run().await.ended(0).verdict(1), "review duplicate_capture");
    let others: Vec<Payment> = (2..=8).map(Payment::stuck).collect();
    let declined = |row: &Payment| Seed {
        decline_code: Some(CODE.to_owned()),
        ..row.captured().standing(Situation::Declined)
    };
    shop.plant(others.iter().map(declined).collect());
    shop.insert(&others).await;
    shop.run().await.ended(0);
    assert_eq!(shop.open_cases().await.len(), 8);
    shop.a_span_passes().await;
    let before = case(&shop, 1).await;
    // One of the two cannot be had: the other alone would look like a single payment.
    let down = Action::Status { code: 503, retry_after: RetryAfter::Absent, reason: None };
    let matches = Matches { object_id: Some("pi_11".to_owned()), ..Matches::default() };
    shop.sandbox.fault(FaultRule { matches, ..FaultRule::always(down) });
    let ran = kick(&shop, &["--all", "--yes"]).await.ended(3);
    assert!(ends(&ran).contains(&("C-1 - -".to_owned(), true)), "{}", ran.stdout);
    assert!(ran.stderr.contains("no answer for 1 of 8 rows"), "{}", ran.stderr);
    assert_eq!(case(&shop, 1).await, before);
    shop.sandbox.clear_faults();
    let ran = kick(&shop, &["--all", "--yes"]).await.ended(0);
    let still = ("C-1 review duplicate_capture".to_owned(), true);
    assert!(ends(&ran).contains(&still), "{}", ran.stdout);
    let text = case(&shop, 1).await["text"].as_str().unwrap().to_owned();
    assert!(text.contains("pi_1 ") && text.contains("pi_11 "), "{text}");
    assert_eq!(shop.status(1).await, "processing");
    shop.check(false).await;
}

const CHECKS: &str = "select state || ' ' || coalesce(lease_run, '-') || ' ' || \
     cast(misses as text) || ' ' || cast(checks as text) || ' ' || cast(unanswered as text) \
     from tieout_checks where key = '1'";

async fn two_kicks_beside_a_run_decide_each_case_once(engine: Engine) {
    let shop = with_cases(engine, 20).await;
    rule(&shop, "failed");
    shop.sandbox.behave(|behaviour| behaviour.latency_ms = 20);
    let all = ["cases", "kick", "--fixed-by-rules", "--yes", "--json"];
    let (one, two, run) =
        tokio::join!(shop.tieout(&all), shop.tieout(&all), shop.tieout(&["run", "--json"]));
    for ran in [&one, &two, &run] {
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        events::check(&ran.stdout);
    }
    assert_eq!(shop.count("payments where status = 'failed' and id < 900000").await, 20);
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    let once = "tieout_journal where outcome = 'failed' and applied = 'yes'";
    assert_eq!(shop.count(once).await, 20);
    assert_eq!(shop.count("tieout_cases").await, 20);
    shop.check(false).await;
}

async fn a_kick_that_is_killed_loses_nothing(engine: Engine) {
    let mut stage = with_cases(engine, 20).await;
    let mut cut = 0;
    for after in [150, 400, 700, 1_000, 1_400] {
        let shop = stage.copy().await;
        rule(&shop, "failed");
        shop.sandbox.behave(|behaviour| behaviour.latency_ms = 60);
        let child = shop.program(&["cases", "kick", "--all", "--yes"]).spawn().unwrap();
        let pid = child.id().unwrap();
        tokio::time::sleep(Duration::from_millis(after)).await;
        // It may have ended before.
        if child_lives(pid) {
            signal(pid, "KILL").await;
        }
        let ran = Ran::of(&child.wait_with_output().await.unwrap());
        let left = shop.open_cases().await.len();
        cut += usize::from(ran.code.is_none() && left > 0);
        shop.check(false).await;
        shop.ten_minutes_pass().await;
        kick(&shop, &["--all", "--yes"]).await.ended(0);
        assert_eq!(shop.open_cases().await, Vec::<String>::new(), "killed after {after} ms");
        assert_eq!(shop.count("tieout_cases").await, 20);
        let once = "tieout_journal where outcome = 'failed' and applied = 'yes'";
        assert_eq!(shop.count(once).await, 20, "killed after {after} ms");
        shop.tieout(&["audit", "verify"]).await.ended(0);
        shop.check(false).await;
    }
    assert!(cut > 0, "no kill met a kick");
}

fn child_lives(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

on_both_databases!(
    what_a_rule_settles_is_settled_and_told_by_whom,
    what_is_still_unknown_stays_the_same_case,
    a_kick_goes_on_behind_what_it_cannot_look_at,
    what_a_rule_would_settle_has_its_turn,
    what_a_case_shows_is_not_lost_by_a_narrower_look,
    fresh_evidence_decides,
    a_psp_that_is_down_leaves_the_case_as_it_was,
    a_history_tells_of_kicks_and_of_the_end,
    a_row_that_was_sent_to_review_is_settled,
    a_row_in_review_that_must_wait_keeps_its_case,
    a_row_that_a_person_holds_keeps_its_case,
    a_row_that_was_changed_in_review_keeps_its_case,
    two_kicks_beside_a_run_decide_each_case_once,
    a_kick_that_is_killed_loses_nothing,
    what_people_approved_is_not_kicked,
    what_people_approve_during_a_kick_goes_first,
    what_people_approve_during_a_run_by_id_goes_first,
);

/// What people approved is the next run's to carry out, whatever a rule says of it meanwhile.
async fn what_people_approved_is_not_kicked(engine: Engine) {
    let shop = with_cases_by(engine, 2, |text| format!("{text}\n{ONE_IS_ENOUGH}")).await;
    let failed = ["cases", "propose", "C-1", "--as", "failed", "--why", "closed down"];
    confirmed(&shop, &failed).await.ended(0);
    shop.sandbox.fault(FaultRule::always(Action::Reset));
    confirmed(&shop, &["cases", "approve", "C-1", "--why", "so it is"]).await.ended(3);
    shop.sandbox.clear_faults();
    rule(&shop, "retryable");
    let named = kick(&shop, &["C-1"]).await.ended(2);
    let said = "people approved what is to become of case C-1";
    assert!(named.stderr.contains(said), "{}", named.stderr);
    for words in [&["--fixed-by-rules", "--dry-run"][..], &["--fixed-by-rules", "--yes"]] {
        let ran = kick(&shop, words).await.ended(0);
        let other: Vec<String> = ends(&ran).into_iter().map(|(end, _)| end).collect();
        assert_eq!(other, ["C-2 retryable declined_retryable"], "{}", ran.stderr);
        let said = "1 open case is left as it is (C-1): people approved";
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
    assert_eq!([shop.status(1).await, shop.status(2).await], ["processing", "retry"]);
    shop.run().await.ended(0);
    assert_eq!(shop.status(1).await, "failed");
    shop.check(false).await;
}

/// A kick asks for minutes, and so does a run of rows by their ids: what people approve of a case
/// meanwhile goes before what either decides.
async fn what_people_approve_during_a_kick_goes_first(engine: Engine) {
    let shop = with_cases_by(engine, 2, |text| format!("{text}\n{ONE_IS_ENOUGH}")).await;
    rule(&shop, "retryable");
    let kicking = kick(&shop, &["--fixed-by-rules", "--yes"]);
    let ran = approving_meanwhile(&shop, kicking).await.ended(0);
    assert_eq!([shop.status(1).await, shop.status(2).await], ["processing", "retry"]);
    let left = ran.of_type("kicked_case").into_iter().find(|case| case["case_id"] == "C-1");
    let why = left.unwrap()["not_decided"].to_string();
    assert!(why.contains("people approved what is to become of its case"), "{why}");
    shop.run().await.ended(0);
    assert_eq!(shop.status(1).await, "failed");
    shop.check(false).await;
}

async fn what_people_approve_during_a_run_by_id_goes_first(engine: Engine) {
    let shop = with_cases_by(engine, 2, |text| format!("{text}\n{ONE_IS_ENOUGH}")).await;
    rule(&shop, "retryable");
    let running = shop.run_with(&["--id", "1", "--id", "2"]);
    approving_meanwhile(&shop, running).await.ended(0);
    assert_eq!([shop.status(1).await, shop.status(2).await], ["processing", "retry"]);
    shop.run().await.ended(0);
    assert_eq!(shop.status(1).await, "failed");
    shop.check(false).await;
}

/// What ran on two rows beside a PSP that answers late, with an approval of the first one's case as
/// failed amid it.
async fn approving_meanwhile(shop: &Shop, running: impl Future<Output = Ran>) -> Ran {
    let failed = ["cases", "propose", "C-1", "--as", "failed", "--why", "closed down"];
    confirmed(shop, &failed).await.ended(0);
    shop.sandbox.fault(FaultRule::always(Action::Delay { ms: 4_000 }));
    let approving = async {
        while shop.count("tieout_checks where lease_run is not null").await != 2 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let later = ["cases", "approve", "C-1", "--why", "so it is", "--later"];
        confirmed(shop, &later).await.ended(0);
    };
    let (ran, ()) = tokio::join!(running, approving);
    shop.sandbox.clear_faults();
    ran
}
