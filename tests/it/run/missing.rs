//! Files that are expected: a run that misses one says so, once, and until it is there.

use chrono::{Days, NaiveDate, Utc};
use serde_json::Value;

use super::fetching::{folder, shop};
use super::files::{at_bank, camt, credit};
use crate::run::shop::{Engine, on_both_databases};
use crate::support::events;
use crate::support::receiver::{Answer, Receiver};

on_both_databases!(a_missing_file_is_told_until_it_is_there);

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
