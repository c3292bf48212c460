//! `tieout ingest` and `tieout files`, as the built program: a file counts whole, once, or not.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::run::shop::{Engine, Shop, on_both_databases};
use crate::support::events;
use crate::support::golden::golden;

const LINES: &str = "tieout_lines";

/// A statement of `count` payments of 1.00 EUR.
fn statement(count: u32) -> String {
    let mut text =
        String::from(":20:BIG\n:25:10020030/1234567\n:28C:00042/001\n:60F:C261118EUR0,00\n");
    for n in 1..=count {
        text.push_str(&format!(
            ":61:2611181118C1,00NTRFNONREF//B{n}\n:86:166?00GUTSCHRIFT?20EREF+pay_{n}\n"
        ));
    }
    text.push_str(&format!(":62F:C261118EUR{count},00\n-\n"));
    text
}

fn put(shop: &Shop, name: &str, bytes: impl AsRef<[u8]>) {
    std::fs::write(shop.folder().join(name), bytes).unwrap();
}

fn packed(text: &str) -> Vec<u8> {
    let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
    gz.write_all(text.as_bytes()).unwrap();
    gz.finish().unwrap()
}

async fn the_same_money_comes_in_once(engine: Engine) {
    let shop = Shop::open(engine).await;
    put(&shop, "a.sta", statement(3));
    put(&shop, "b.sta.gz", packed(&statement(3)));
    let first = shop.tieout(&["ingest", "a.sta", "--json"]).await.ended(0);
    events::check(&first.stdout);
    let loaded = &first.of_type("ingested")[0];
    assert_eq!((loaded["state"].as_str(), loaded["lines"].as_u64()), (Some("loaded"), Some(3)));
    assert_eq!(loaded["format"], "mt940");
    let again = shop.tieout(&["ingest", "a.sta", "b.sta.gz", "--json"]).await.ended(0);
    events::check(&again.stdout);
    for known in again.of_type("ingested") {
        assert_eq!((&known["state"], &known["id"]), (&"known".into(), &loaded["id"]));
    }
    assert_eq!(again.of_type("ingest_end")[0]["known"], 2);
    assert_eq!(shop.count(LINES).await, 3);
    assert_eq!(shop.count("tieout_file_names").await, 2);
    let tags = shop.texts("select tag from tieout_lines order by position").await;
    assert_eq!(tags, ["pay_1", "pay_2", "pay_3"]);
    assert_eq!(shop.count("tieout_lines where decides and state = 'open'").await, 3);
    let shown = shop.tieout(&["files", "show", "1", "--lines", "--json"]).await.ended(0);
    events::check(&shown.stdout);
    let lines = shown.of_type("settlement_line");
    assert_eq!(lines.len(), 3);
    let texts =
        shop.texts("select coalesce(bank_reference, '-') from tieout_lines order by position");
    for (line, own) in lines.iter().zip(texts.await) {
        assert_eq!(line["bank_reference"].as_str().unwrap_or("-"), own);
        let mut references = line["references"].as_array().unwrap().iter();
        assert!(references.any(|one| one["text"] == line["tag"]), "{line}");
    }
    assert_eq!(shown.of_type("settlement_statement")[0]["ties"], true);
    let hash = loaded["sha256"].as_str().unwrap();
    shop.tieout(&["files", "show", &hash[..12]]).await.ended(0);
    shop.tieout(&["files", "show", "7"]).await.ended(2);
    let runs = shop.texts("select command || ' ' || state from tieout_runs").await;
    assert_eq!(runs, ["ingest complete", "ingest complete"]);
    shop.check(false).await;
}

async fn what_does_not_tie_is_kept_and_counts_for_nothing(engine: Engine) {
    let shop = Shop::open(engine).await;
    let bad = statement(3).replace(":62F:C261118EUR3,00", ":62F:C261118EUR4,00");
    put(&shop, "bad.sta", &bad);
    put(&shop, "notes.txt", "dear all, the file is late today\n");
    let words = ["ingest", "bad.sta", "notes.txt", "gone.sta"];
    let ran = shop.tieout(&words).await.ended(3);
    golden("fixtures/cli", "ingest_trouble", &format!("{}--\n{}", ran.stdout, ran.stderr));
    assert_eq!(shop.count(LINES).await, 0);
    assert_eq!(shop.open_cases().await, ["1 file_quarantined", "2 file_quarantined"]);
    let ran = shop.tieout(&["files", "list", "--state", "quarantined", "--json"]).await.ended(0);
    events::check(&ran.stdout);
    let names: Vec<_> = ran.events().iter().map(|event| event["name"].clone()).collect();
    assert_eq!(names, ["notes.txt", "bad.sta"]);
    let shown = shop.tieout(&["files", "show", "1"]).await.ended(0);
    golden("fixtures/cli", "files_show_quarantined", &shown.stdout);
    // The right one comes beside it.
    put(&shop, "good.sta", statement(3));
    let ran = shop.tieout(&["ingest", "good.sta"]).await.ended(0);
    golden("fixtures/cli", "ingest", &ran.stdout);
    let listed = shop.tieout(&["files", "list"]).await.ended(0);
    golden("fixtures/cli", "files_list", &listed.stdout);
    shop.check(false).await;
}

/// A year that was typed wrong; MT940 may tell the day of value alone, which may be far ahead.
async fn a_statement_of_a_day_far_ahead_is_quarantined(engine: Engine) {
    let shop = Shop::open(engine).await;
    let bai2 = |day: &str| {
        format!(
            "01,A,B,{day},0200,1,,,2/\n02,A,B,1,{day},2400,EUR,2/\n03,1,EUR,010,0,,,015,100,,/\n\
             16,195,100,,R1,pay_1,/\n49,200,3/\n98,200,1,5/\n99,200,1,7/\n"
        )
    };
    let value_alone = |text: String| text.replace(":61:2611181118", ":61:361118");
    for (name, text, code) in [
        ("year.sta", statement(2).replace("261118", "361118"), 3),
        ("value.sta", value_alone(statement(2)), 0),
        ("both.sta", value_alone(statement(2)).replace("C261118", "C361118"), 3),
        ("day.bai2", bai2("361118"), 3),
    ] {
        put(&shop, name, &text);
        let ran = shop.tieout(&["ingest", name]).await.ended(code);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        let is_said = said.contains("booking date: expected up to 20");
        assert_eq!(is_said, code == 3, "{name}: {said}");
    }
    assert_eq!(shop.count(LINES).await, 2);
    shop.check(false).await;
}

async fn the_same_statement_in_other_bytes_is_held(engine: Engine) {
    let shop = Shop::open(engine).await;
    put(&shop, "first.sta", statement(3));
    put(&shop, "second.sta", statement(3).replace("pay_2", "pay_9"));
    let ran = shop.tieout(&["ingest", "first.sta", "second.sta", "--json"]).await.ended(3);
    events::check(&ran.stdout);
    assert_eq!(ran.of_type("ingested")[1]["held_statements"], 1);
    assert_eq!(shop.count("tieout_lines where decides").await, 3);
    assert_eq!(shop.open_cases().await, ["2 statement_corrected"]);
    let shown = shop.tieout(&["files", "show", "2"]).await.ended(0);
    golden("fixtures/cli", "files_show_held", &shown.stdout);
    shop.check(false).await;
}

async fn card_numbers_are_masked_before_anything_is_kept(engine: Engine) {
    let shop = Shop::open(engine).await;
    put(&shop, "card.sta", statement(2).replace("pay_2", "4111111111111111"));
    shop.tieout(&["ingest", "card.sta"]).await.ended(0);
    assert_eq!(shop.open_cases().await, ["1 pan_detected"]);
    assert!(!format!("{:?}", shop.dump().await).contains("4111111111111111"));
    assert_eq!(shop.count("tieout_lines where tag = '************1111'").await, 1);
    shop.check(false).await;
}

async fn a_kill_at_any_moment_leaves_all_or_nothing(engine: Engine) {
    const COUNT: u32 = 8_000;
    let shop = Shop::open(engine).await;
    put(&shop, "big.sta", statement(COUNT));
    let mut left = Vec::new();
    for millis in [20, 60, 100, 150, 220, 300, 450, 700] {
        let mut child = shop.program(&["ingest", "big.sta"]).spawn().unwrap();
        tokio::time::sleep(Duration::from_millis(millis)).await;
        child.kill().await.unwrap();
        // The server ends a transaction whose client is gone a moment after.
        let count = loop {
            let (files, lines) = (shop.count("tieout_files").await, shop.count(LINES).await);
            let again = (shop.count("tieout_files").await, shop.count(LINES).await);
            if (files, lines) == again {
                break lines;
            }
        };
        assert!(count == 0 || count == i64::from(COUNT), "{count} lines after {millis} ms");
        left.push(count);
    }
    shop.tieout(&["ingest", "big.sta"]).await.ended(0);
    assert_eq!(shop.count(LINES).await, i64::from(COUNT), "{left:?}");
    assert_eq!(shop.count("tieout_files").await, 1);
}

async fn two_at_once_bring_it_in_once(engine: Engine) {
    let shop = Shop::open(engine).await;
    put(&shop, "a.sta", statement(2_000));
    let words = ["ingest", "a.sta", "--json"];
    let (one, two) = tokio::join!(shop.tieout(&words), shop.tieout(&words));
    let state = |ran: &crate::run::shop::Ran| ran.of_type("ingested")[0]["state"].to_string();
    let mut states = [state(&one.ended(0)), state(&two.ended(0))];
    states.sort();
    assert_eq!(states, ["\"known\"", "\"loaded\""]);
    assert_eq!(shop.count(LINES).await, 2_000);
    shop.check(false).await;
}

async fn what_cannot_be_meant_is_refused_before_anything_is_done(engine: Engine) {
    let shop = Shop::open(engine).await;
    put(&shop, "a.sta", statement(1));
    shop.tieout(&["ingest", "a.sta", "--account", "nobody"]).await.ended(2);
    shop.tieout(&["ingest", "a.sta", "--format", "nothing"]).await.ended(2);
    shop.tieout(&["ingest"]).await.ended(2);
    assert_eq!(shop.count("tieout_runs").await, 0);
    assert!(Path::new(&shop.folder().join("a.sta")).exists());
}

on_both_databases!(
    the_same_money_comes_in_once,
    what_does_not_tie_is_kept_and_counts_for_nothing,
    a_statement_of_a_day_far_ahead_is_quarantined,
    the_same_statement_in_other_bytes_is_held,
    card_numbers_are_masked_before_anything_is_kept,
    a_kill_at_any_moment_leaves_all_or_nothing,
    two_at_once_bring_it_in_once,
    what_cannot_be_meant_is_refused_before_anything_is_done,
);
