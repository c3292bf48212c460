//! Files that are expected: a run that misses one says so, once, and until it is there.

use chrono::{Days, NaiveDate, TimeDelta, Utc};
use serde_json::Value;

use super::fetching::{folder, shop};
use super::files::{at_bank, camt, credit};
use crate::run::shop::{Engine, on_both_databases};
use crate::support::events;
use crate::support::receiver::{Answer, Receiver};

on_both_databases!(
    a_missing_file_is_told_until_it_is_there,
    ingest_tells_of_files_and_sources_as_a_run_does,
    files_of_one_name_and_bytes_are_told_apart_by_when_they_were_written,
    a_days_file_under_another_days_name_is_not_that_days,
    a_file_that_is_held_is_not_its_days,
);

fn name(day: NaiveDate) -> String {
    day.format("STMT_%Y%m%d.xml").to_string()
}

async fn a_missing_file_is_told_until_it_is_there(engine: Engine) {
    let inbox = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(Answer::Status(200)).await;
    let today = Utc::now().date_naive();
    let before = |days| today.checked_sub_days(Days::new(days)).unwrap();
    // Every day's file is there at its own midnight.
    let more = format!(
        "zone = 'UTC'\n[[source.expected]]\nname = 'STMT_%Y%m%d.xml'\nby = '00:00'\n\
         lag_days = 0\nsince = '{}'\ndays = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']\n\
         [[monitoring.alert]]\nname = \"ops\"\nkind = \"webhook\"\nurl = \"{}/ops\"\n\
         key_env = \"SHOP_PSP_KEY\"\nconditions = [\"file_missing\"]\n",
        before(2),
        receiver.url(),
    );
    let put = |day, text: &str| std::fs::write(inbox.path().join(name(day)), text).unwrap();
    let shop = shop(engine, &folder("inbox", inbox.path(), &more)).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing")]).await;
    put(before(2), &camt("camt.053", "S1", &[credit(10_001, "pay_1")]));
    put(today, "not a statement");
    let ran = shop.run().await.ended(3);
    assert_eq!(ran.verdict(1), "succeeded settled", "what is there counts");
    let says = format!("2 files of STMT_%Y%m%d.xml are missing, the first {}", name(before(1)));
    assert!(ran.stderr.contains(&says), "{}", ran.stderr);
    let case = "inbox: STMT_%Y%m%d.xml file_missing";
    assert_eq!(shop.open_cases().await, ["2 file_quarantined", case]);
    let expected = shop.tieout(&["files", "expected", "--json"]).await.ended(3);
    events::check(&expected.stdout);
    let all = expected.of_type("expected_file");
    let states: Vec<&str> = all.iter().map(|one| one["state"].as_str().unwrap()).collect();
    assert_eq!(states[..3], ["came", "missing", "quarantined"]);
    assert_eq!(all[0]["file"], name(before(2)));
    let screen = shop.tieout(&["files", "expected", "inbox"]).await.ended(3).stdout;
    let row = format!("{}  MISSING  {} since {} 00:00\n", before(1), name(before(1)), before(1));
    assert!(screen.contains(&row), "{screen}");
    let why = shop.tieout(&["explain", "2"]).await.ended(0).stdout;
    let line = format!("files      {} of source inbox is missing since", name(before(1)));
    assert!(why.contains(&line), "{why}");
    let why = shop.tieout(&["explain", "1"]).await.ended(0).stdout;
    assert!(!why.contains("is missing since"), "it is decided: {why}");
    // A second run says it again, and opens nothing.
    let ran = shop.run().await.ended(3);
    assert!(ran.stderr.contains(&says), "{}", ran.stderr);
    assert_eq!(shop.count("tieout_cases where reason = 'file_missing'").await, 1);
    // A person brings it in by hand: it is there, whoever brought it.
    let by_hand = shop.folder().join(name(before(1)));
    std::fs::write(&by_hand, camt("camt.053", "S2", &[credit(10_002, "pay_2")])).unwrap();
    let words = ["ingest", by_hand.to_str().unwrap(), "--account", "bank"];
    shop.tieout(&words).await.ended(0);
    let ran = shop.run().await.ended(3);
    let says = format!("({} came and is quarantined as file 2)", name(today));
    assert!(ran.stderr.contains(&says), "{}", ran.stderr);
    put(today, &camt("camt.053", "S3", &[credit(10_003, "pay_3")]));
    shop.run().await.ended(0);
    assert_eq!(shop.open_cases().await, ["2 file_quarantined"]);
    shop.tieout(&["files", "expected"]).await.ended(0);
    let told: Vec<Value> = receiver
        .sent("/ops")
        .iter()
        .map(|sent| serde_json::from_str(&sent.body).unwrap())
        .collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[0]["raised"][0]["condition"], "file_missing/bank");
    assert_eq!(told[1]["resolved"][0]["condition"], "file_missing/bank");
    shop.check(false).await;
}

/// A sender who sends yesterday's file once more did not send today's, unless nothing happened.
async fn a_days_file_under_another_days_name_is_not_that_days(engine: Engine) {
    let inbox = tempfile::tempdir().unwrap();
    let today = Utc::now().date_naive();
    let before = |days| today.checked_sub_days(Days::new(days)).unwrap();
    let more = format!(
        "zone = 'UTC'\n[[source.expected]]\nname = 'STMT_%Y%m%d.xml'\nby = '00:00'\n\
         lag_days = 0\nsince = '{}'\ndays = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']\n",
        before(4),
    );
    let put = |day, text: &str| std::fs::write(inbox.path().join(name(day)), text).unwrap();
    let shop = shop(engine, &folder("inbox", inbox.path(), &more)).await;
    let (one, empty) =
        (camt("camt.053", "S1", &[credit(10_001, "x")]), camt("camt.053", "S0", &[]));
    put(before(4), &one);
    shop.run().await;
    put(before(3), &one);
    put(before(2), &empty);
    put(before(1), &empty);
    put(today, &camt("camt.053", "S3", &[credit(10_003, "y")]));
    let ran = shop.run().await.ended(3);
    assert!(
        ran.stderr.contains(&format!("{} was not there by", name(before(3)))),
        "{}",
        ran.stderr
    );
    let states = async || {
        let told = shop.tieout(&["files", "expected", "--json"]).await.of_type("expected_file");
        told.iter().map(|one| one["state"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(states().await[..5], ["came", "missing", "came", "came", "came"]);
    put(before(3), &camt("camt.053", "S2", &[credit(10_002, "z")]));
    shop.run().await.ended(0);
    assert_eq!(states().await[..5], ["came"; 5]);
    shop.check(false).await;
}

/// What is held decides nothing: the bank sent an earlier statement under the day's name.
async fn a_file_that_is_held_is_not_its_days(engine: Engine) {
    let inbox = tempfile::tempdir().unwrap();
    let today = Utc::now().date_naive();
    let before = |days| today.checked_sub_days(Days::new(days)).unwrap();
    let more = format!(
        "zone = 'UTC'\n[[source.expected]]\nname = 'STMT_%Y%m%d.xml'\nby = '00:00'\n\
         lag_days = 0\nsince = '{}'\ndays = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']\n",
        before(1),
    );
    let put = |day, text: &str| std::fs::write(inbox.path().join(name(day)), text).unwrap();
    let shop = shop(engine, &folder("inbox", inbox.path(), &more)).await;
    put(before(1), &camt("camt.053", "S1", &[credit(10_001, "x")]));
    shop.run().await;
    put(today, &camt("camt.053", "S1", &[credit(10_002, "x")]));
    let ran = shop.run().await.ended(3);
    let says = format!("({} came and is held as file 2)", name(today));
    assert!(ran.stderr.contains(&says), "{}", ran.stderr);
    let told = shop.tieout(&["files", "expected", "--json"]).await.ended(3);
    events::check(&told.stdout);
    assert_eq!(told.of_type("expected_file")[1]["state"], "held");
    let screen = shop.tieout(&["files", "expected"]).await.ended(3).stdout;
    assert!(screen.contains(&format!("{}: held as file 2", name(today))), "{screen}");
    shop.tieout(&["files", "release", "2", "--reason", "confirmed"]).await.ended(0);
    shop.run().await.ended(0);
    shop.tieout(&["files", "expected"]).await.ended(0);
    shop.check(false).await;
}

async fn ingest_tells_of_files_and_sources_as_a_run_does(engine: Engine) {
    let place = tempfile::tempdir().unwrap();
    let (inbox, away) = (place.path().join("inbox"), place.path().join("away"));
    std::fs::create_dir(&inbox).unwrap();
    let receiver = Receiver::start(Answer::Status(200)).await;
    let today = Utc::now().date_naive();
    let before = |days| today.checked_sub_days(Days::new(days)).unwrap();
    let more = format!(
        "zone = 'UTC'\n[[source.expected]]\nname = 'STMT_%Y%m%d.xml'\nby = '00:00'\n\
         lag_days = 0\nsince = '{}'\ndays = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']\n\
         [monitoring.healthcheck]\nurl = \"{url}/ping\"\n\
         [[monitoring.alert]]\nname = \"ops\"\nkind = \"webhook\"\nurl = \"{url}/ops\"\n\
         key_env = \"SHOP_PSP_KEY\"\n\
         conditions = [\"file_missing\", \"source_unavailable\", \"no_success\"]\n",
        before(1),
        url = receiver.url(),
    );
    let shop = shop(engine, &folder("inbox", &inbox, &more)).await;
    let put = |day, id: &str| {
        std::fs::write(inbox.join(name(day)), camt("camt.053", id, &[credit(1, id)])).unwrap();
    };
    put(before(1), "S1");
    let ran = shop.tieout(&["ingest", "--json"]).await.ended(3);
    events::check(&ran.stdout);
    let says = format!("{} was not there by", name(today));
    assert!(ran.stderr.contains(&says), "{}", ran.stderr);
    let case = ["inbox: STMT_%Y%m%d.xml file_missing"];
    assert_eq!(shop.open_cases().await, case);
    let told = |which: &str| -> Vec<String> {
        let sent = receiver.sent("/ops");
        let bodies = sent.iter().map(|sent| serde_json::from_str::<Value>(&sent.body).unwrap());
        let of = |body: Value| body[which].as_array().unwrap().clone();
        let word = |one: Value| one["condition"].as_str().unwrap().to_owned();
        bodies.flat_map(of).map(word).collect()
    };
    assert_eq!(told("raised"), ["file_missing/bank"]);
    // What is told is told once, whoever looks.
    shop.tieout(&["ingest"]).await.ended(3);
    std::fs::rename(&inbox, &away).unwrap();
    shop.tieout(&["ingest"]).await.ended(3);
    assert_eq!(told("raised"), ["file_missing/bank", "source_unavailable/inbox"]);
    assert_eq!(told("resolved"), [""; 0]);
    std::fs::rename(&away, &inbox).unwrap();
    put(today, "S2");
    shop.tieout(&["ingest"]).await.ended(0);
    let mut resolved = told("resolved");
    resolved.sort();
    assert_eq!(resolved, ["file_missing/bank", "source_unavailable/inbox"]);
    assert_eq!(shop.open_cases().await, [""; 0]);
    // It decides no row: it is no sign of life of the schedule, and no success of it.
    assert_eq!(receiver.sent("/ping").len(), 0);
    assert_eq!(shop.count("tieout_marks where name in ('since', 'last_success')").await, 0);
    shop.run().await.ended(0);
    assert!(!receiver.sent("/ping").is_empty());
    assert_eq!(shop.count("tieout_marks where name in ('since', 'last_success')").await, 2);
    shop.check(false).await;
}

async fn files_of_one_name_and_bytes_are_told_apart_by_when_they_were_written(engine: Engine) {
    let inbox = tempfile::tempdir().unwrap();
    let today = Utc::now().date_naive();
    let before = |days| today.checked_sub_days(Days::new(days)).unwrap();
    // Each of the last four days' files was due at its own midnight.
    let more = format!(
        "zone = 'UTC'\n[[source.expected]]\nname = 'statement.xml'\nby = '00:00'\n\
         lag_days = 0\nsince = '{}'\ndays = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']\n",
        before(3),
    );
    let shop = shop(engine, &folder("inbox", inbox.path(), &more)).await;
    let bytes = camt("camt.053", "S1", &[credit(10_001, "pay_1")]);
    // Written an hour before it was due.
    let put = |day: NaiveDate| {
        let path = inbox.path().join("statement.xml");
        std::fs::write(&path, &bytes).unwrap();
        let at = day.and_hms_opt(0, 0, 0).unwrap().and_utc() - TimeDelta::hours(1);
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(at.into()).unwrap();
    };
    let states = async || {
        let all = shop.tieout(&["files", "expected", "--json"]).await;
        events::check(&all.stdout);
        let all = all.of_type("expected_file");
        let word = |one: &Value| one["state"].as_str().unwrap().to_owned();
        all.iter().map(word).take(4).collect::<Vec<String>>()
    };
    put(before(3));
    shop.run().await.ended(3);
    assert_eq!(states().await, ["came", "missing", "missing", "missing"]);
    // The same bytes on the next day are that day's; and the first day's stays there.
    put(before(2));
    shop.tieout(&["ingest"]).await;
    assert_eq!(states().await, ["came", "came", "missing", "missing"]);
    // One that still lies there is nobody's else.
    shop.run().await.ended(3);
    assert_eq!(states().await, ["came", "came", "missing", "missing"]);
    // A day without one stays without, whatever came after it.
    put(today);
    shop.run().await.ended(3);
    assert_eq!(states().await, ["came", "came", "missing", "came"]);
    assert_eq!(shop.open_cases().await, ["inbox: statement.xml file_missing"]);
    put(before(1));
    shop.run().await.ended(0);
    assert_eq!(states().await, ["came", "came", "came", "came"]);
    assert_eq!(shop.open_cases().await, [""; 0]);
    assert_eq!(shop.count("tieout_files").await, 1, "its lines count once");
    shop.check(false).await;
}
