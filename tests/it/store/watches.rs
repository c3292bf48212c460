//! What monitoring asks, and what it remembers between runs.

use tieout::model::reason::Reason;
use tieout::store::driver::AccountCase;
use tieout::store::records::{RunEnd, RunState};
use tieout::store::watch::{Alert, AlertAsk, Change, Turn};

use super::world::{Under, World, at, noon, wait};

pub async fn numbers_outlive_a_run<D: Under>() {
    let w = World::<D>::new().await;
    let moves = |changes: &[(&str, Change)]| -> Vec<(String, Change)> {
        changes.iter().map(|(name, change)| ((*name).to_owned(), *change)).collect()
    };
    let first = moves(&[("a", Change::Set(7)), ("b", Change::Add(2)), ("c", Change::Keep(1))]);
    w.store.move_marks("cron", &first).await.unwrap();
    let second = moves(&[("a", Change::Set(5)), ("b", Change::Add(3)), ("c", Change::Keep(9))]);
    let marks = w.store.move_marks("cron", &second).await.unwrap();
    let read: Vec<(&str, i64)> = marks.iter().map(|m| (m.name.as_str(), m.value)).collect();
    assert_eq!(read, [("a", 5), ("b", 5), ("c", 1)]);
    assert!(w.store.move_marks("other", &[]).await.unwrap().is_empty(), "scopes are apart");
    w.finish().await;
}

fn ask(run: &str, holding: &[&str], minutes: i64) -> AlertAsk {
    AlertAsk {
        scope: "cron".to_owned(),
        receiver: "ops".to_owned(),
        run_id: run.to_owned(),
        holding: holding.iter().map(|name| ((*name).to_owned(), format!("{name} holds"))).collect(),
        judged: vec!["untied", "absence_brake"],
        shared: vec!["absence_brake"],
        late: Vec::new(),
        growing: Vec::new(),
        now: at(minutes),
        lease_until: at(minutes + 1),
    }
}

fn names(alerts: &[Alert]) -> Vec<(&str, Turn)> {
    alerts.iter().map(|alert| (alert.condition.as_str(), alert.turn)).collect()
}

pub async fn each_condition_is_told_by_one_run<D: Under>() {
    let w = World::<D>::new().await;
    let other = D::again(&w.place).await;
    let both = ask("r1", &["untied", "absence_brake/a"], 0);
    let (mine, theirs) = tokio::join!(w.store.take_alerts(&both), other.take_alerts(&both));
    let (mine, theirs) = (mine.unwrap(), theirs.unwrap());
    let mut all = [names(&mine), names(&theirs)].concat();
    all.sort_by_key(|(name, _)| name.to_owned());
    assert_eq!(all, [("absence_brake/a", Turn::Raised), ("untied", Turn::Raised)]);
    for alerts in [&mine, &theirs] {
        w.store.settle_alerts(&both, alerts, true).await.unwrap();
    }
    let later = ask("r2", &["untied", "absence_brake/a"], 5);
    assert!(w.store.take_alerts(&later).await.unwrap().is_empty());

    // One is over; the other holds on. Its end is told once too, with when it began.
    let one = ask("r3", &["untied"], 6);
    let over = w.store.take_alerts(&one).await.unwrap();
    assert_eq!(names(&over), [("absence_brake/a", Turn::Resolved)]);
    assert_eq!((over[0].raised_at, over[0].text.as_str()), (noon(), "absence_brake/a holds"));
    assert!(w.store.take_alerts(&one).await.unwrap().is_empty(), "a run is telling it");
    w.store.settle_alerts(&one, &over, true).await.unwrap();
    assert!(w.store.take_alerts(&ask("r4", &["untied"], 9)).await.unwrap().is_empty());
    // It comes again: it is told again.
    let again = w.store.take_alerts(&ask("r5", &["untied", "absence_brake/a"], 20)).await.unwrap();
    assert_eq!(names(&again), [("absence_brake/a", Turn::Raised)]);
    // What nobody judged is not over.
    let blind = AlertAsk { judged: Vec::new(), ..ask("r6", &[], 30) };
    assert!(w.store.take_alerts(&blind).await.unwrap().is_empty());
    w.finish().await;
}

/// A case may stay open for days: another one beside it is told, and what was not taken again.
pub async fn more_cases_than_were_told_of_are_told_anew<D: Under>() {
    let w = World::<D>::new().await;
    let of = |run: &str, text: &str, minutes| AlertAsk {
        holding: vec![("absence_brake".to_owned(), text.to_owned())],
        growing: vec!["absence_brake"],
        ..ask(run, &[], minutes)
    };
    let take = async |ask: &AlertAsk| w.store.take_alerts(ask).await.unwrap();
    let (one, two) = ("1 case; the first: C-1", "2 cases; the first: C-1, the newest: C-2");
    let first = of("r1", one, 0);
    w.store.settle_alerts(&first, &take(&first).await, true).await.unwrap();
    assert!(take(&of("r2", one, 5)).await.is_empty(), "told already");
    let grown = of("r3", two, 10);
    let told = take(&grown).await;
    assert_eq!(names(&told), [("absence_brake", Turn::Raised)]);
    assert_eq!((told[0].text.as_str(), told[0].raised_at), (two, noon()), "since the first");
    assert!(take(&grown).await.is_empty(), "a run is telling it");
    w.store.settle_alerts(&grown, &told, false).await.unwrap();
    // The receiver did not take it.
    let again = of("r4", two, 20);
    let told = take(&again).await;
    assert_eq!(names(&told), [("absence_brake", Turn::Raised)]);
    w.store.settle_alerts(&again, &told, true).await.unwrap();
    assert!(take(&of("r5", two, 30)).await.is_empty(), "told anew");
    // Where one was closed nobody need be told; where another kind grows neither.
    assert!(take(&of("r6", one, 35)).await.is_empty());
    let three = "3 cases; the first: C-1, the newest: C-3";
    let other = AlertAsk { growing: Vec::new(), ..of("r7", three, 40) };
    assert!(take(&other).await.is_empty());
    // Its end is told once.
    let end = ask("r8", &[], 50);
    let over = take(&end).await;
    assert_eq!(names(&over), [("absence_brake", Turn::Resolved)]);
    assert_eq!(over[0].text, two);
    w.store.settle_alerts(&end, &over, true).await.unwrap();
    assert!(take(&ask("r9", &[], 60)).await.is_empty());
    w.finish().await;
}

/// What is of the database is told once, whichever schedule sees it, and its end once; what is of a
/// schedule's runs is told by each.
pub async fn what_is_of_the_database_is_told_once_for_all_schedules<D: Under>() {
    let w = World::<D>::new().await;
    let other = D::again(&w.place).await;
    let daily = |ask: AlertAsk| AlertAsk { scope: "daily".to_owned(), ..ask };
    let mine = ask("r1", &["untied", "absence_brake/a"], 0);
    let theirs = daily(ask("r2", &["untied", "absence_brake/a"], 0));
    let (told, also) = tokio::join!(w.store.take_alerts(&mine), other.take_alerts(&theirs));
    let (told, also) = (told.unwrap(), also.unwrap());
    let mut all = [names(&told), names(&also)].concat();
    all.sort_by_key(|(name, _)| name.to_owned());
    let raised = |name| (name, Turn::Raised);
    assert_eq!(all, [raised("absence_brake/a"), raised("untied"), raised("untied")]);
    w.store.settle_alerts(&mine, &told, true).await.unwrap();
    w.store.settle_alerts(&theirs, &also, true).await.unwrap();
    let by = told.iter().chain(&also).find(|alert| alert.condition != "untied").unwrap();
    let (raised_by, since) = (by.scope.clone(), by.raised_at);
    for again in [ask("r3", &["untied", "absence_brake/a"], 5), mine, theirs] {
        assert!(w.store.take_alerts(&again).await.unwrap().is_empty());
    }
    // Whoever sees its end tells it, under the name that it was raised by; a run's own stays.
    let seer = if raised_by == "daily" { "cron" } else { "daily" };
    let end = AlertAsk { scope: seer.to_owned(), ..ask("r4", &["untied"], 9) };
    let over = w.store.take_alerts(&end).await.unwrap();
    assert_eq!(names(&over), [("absence_brake/a", Turn::Resolved)]);
    assert_eq!((over[0].scope.as_str(), over[0].raised_at), (raised_by.as_str(), since));
    w.store.settle_alerts(&end, &over, true).await.unwrap();
    for scope in ["cron", "daily"] {
        let end = AlertAsk { scope: scope.to_owned(), ..ask("r5", &[], 12) };
        let over = w.store.take_alerts(&end).await.unwrap();
        assert_eq!(names(&over), [("untied", Turn::Resolved)]);
        assert_eq!(over[0].scope, scope);
        w.store.settle_alerts(&end, &over, true).await.unwrap();
    }
    assert_eq!(w.raw.one("select cast(count(*) as text) from tieout_alerts").await, "0");
    w.finish().await;
}

/// Two schedules had told it each, before it was told once for all: both ends are told.
pub async fn what_two_schedules_told_ends_for_both<D: Under>() {
    let w = World::<D>::new().await;
    for scope in ["cron", "daily"] {
        let apart = AlertAsk {
            scope: scope.to_owned(),
            shared: Vec::new(),
            ..ask("r1", &["absence_brake/a"], 0)
        };
        let told = w.store.take_alerts(&apart).await.unwrap();
        assert_eq!(names(&told), [("absence_brake/a", Turn::Raised)]);
        w.store.settle_alerts(&apart, &told, true).await.unwrap();
    }
    let holds = ask("r2", &["absence_brake/a"], 5);
    assert!(w.store.take_alerts(&holds).await.unwrap().is_empty());
    let end = ask("r3", &[], 9);
    let over = w.store.take_alerts(&end).await.unwrap();
    let scopes: Vec<&str> = over.iter().map(|alert| alert.scope.as_str()).collect();
    assert_eq!(scopes, ["cron", "daily"]);
    w.store.settle_alerts(&end, &over, true).await.unwrap();
    assert_eq!(w.raw.one("select cast(count(*) as text) from tieout_alerts").await, "0");
    w.finish().await;
}

pub async fn what_no_receiver_took_is_left_for_the_next<D: Under>() {
    let w = World::<D>::new().await;
    let first = ask("r1", &["untied"], 0);
    let taken = w.store.take_alerts(&first).await.unwrap();
    w.store.settle_alerts(&first, &taken, false).await.unwrap();
    let second = ask("r2", &["untied"], 1);
    let taken = w.store.take_alerts(&second).await.unwrap();
    assert_eq!(names(&taken), [("untied", Turn::Raised)]);
    assert_eq!(taken[0].raised_at, noon(), "it holds since then");
    // That run dies: its lease lapses.
    assert!(w.store.take_alerts(&ask("r3", &["untied"], 1)).await.unwrap().is_empty());
    let third = ask("r4", &["untied"], 2);
    assert_eq!(w.store.take_alerts(&third).await.unwrap().len(), 1);
    // Over before anyone was told: nobody ever hears of it.
    let fourth = ask("r5", &[], 3);
    assert!(w.store.take_alerts(&fourth).await.unwrap().is_empty());
    assert_eq!(w.raw.one("select cast(count(*) as text) from tieout_alerts").await, "0");
    w.finish().await;
}

pub async fn what_waits_is_counted<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=3).await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 9, noon()).await;
    assert_eq!(claimed.len(), 3);
    let tables = ["charges".to_owned()];
    let waiting = w.store.waiting(&tables, noon()).await.unwrap();
    assert_eq!(waiting.held, Some(("r1".to_owned(), 3)));
    w.apply("r1", &mut writer, &claimed, wait(noon()), noon()).await;
    let waiting = w.store.waiting(&tables, noon()).await.unwrap();
    assert_eq!((waiting.rows, waiting.held), (3, None));
    let stuck = w.store.stuck_by_account().await.unwrap();
    assert_eq!(stuck.len(), 1, "{stuck:?}");
    assert_eq!((stuck[0].account.as_str(), stuck[0].rows), ("stripe_live", 3));
    assert_eq!(stuck[0].oldest, claimed.iter().map(|c| c.row.created_at).min().unwrap());
    for (account, minutes) in [("stripe_live", 0), ("adyen_live", 90)] {
        let case = AccountCase {
            account: account.to_owned(),
            reason: Reason::AbsenceBrake,
            text: "the tag seems not to arrive".to_owned(),
            evidence: "{}".to_owned(),
            policy_version: "p1".to_owned(),
        };
        w.store.put_account_case("r1", &case, at(minutes)).await.unwrap();
    }
    let edges = [at(60), at(-600)];
    let cases = w.store.open_cases_by_age(&edges).await.unwrap();
    let read: Vec<_> =
        cases.iter().map(|c| (c.reason.as_str(), c.account.as_str(), c.bucket, c.cases)).collect();
    assert_eq!(
        read,
        [("absence_brake", "adyen_live", 0, 1), ("absence_brake", "stripe_live", 1, 1)]
    );
    w.finish().await;
}

pub async fn a_closed_run_is_told_what_monitoring_could_not_do<D: Under>() {
    let w = World::<D>::new().await;
    w.start("r1", noon()).await;
    let problems = ["healthcheck: it's \"down\"".to_owned()];
    let notes = async || {
        let notes = w.store.run("r1").await.unwrap().unwrap().notes;
        serde_json::from_str::<serde_json::Value>(&notes).unwrap()
    };
    w.store.note_monitoring("r1", &problems).await.unwrap();
    assert_eq!(notes().await, serde_json::json!({}), "the run still writes its own");
    let end = RunEnd {
        state: RunState::Complete,
        exit_code: 0,
        exit_class: "ok".to_owned(),
        notes: "{\"not_examined\":[\"x\"]}".to_owned(),
    };
    assert!(w.store.close_run("r1", &end, at(1)).await.unwrap().is_some());
    w.store.note_monitoring("r1", &problems).await.unwrap();
    let want = serde_json::json!({ "not_examined": ["x"], "monitoring": problems });
    assert_eq!(notes().await, want);
    assert!(w.store.verify_audit().await.unwrap().breaks.is_empty(), "the chain is as it was");
    w.finish().await;
}
