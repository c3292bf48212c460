//! Payouts to the cent: what a PSP's report says that each is made of, and the bank's booking.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::run::fetching::folder;
use crate::run::files::{REFUNDS, at_bank, bring, camt, camt_from, credit, debit, lines, returned};
use crate::run::given_back::adyen;
use crate::run::shop::{Engine, Payment, Ran, Shop, Words, at_text, on_both_databases, tieout_now};
use crate::support::events;

on_both_databases!(
    a_payout_is_explained_to_the_cent_and_booked_once,
    a_window_that_is_compared_whole_explains_its_payouts,
    a_payout_that_changes_after_its_booking_differs,
    kinds_of_reports_that_tell_a_transaction_otherwise_are_for_a_person,
    what_is_ambiguous_or_differs_is_nobodys,
    a_booking_waits_for_the_report_that_explains_it,
    a_booking_names_its_payout_or_its_row_in_its_text,
    a_report_that_was_brought_by_hand_counts_beside_the_api,
    a_line_that_two_rows_have_a_claim_to_settles_neither,
    a_refund_that_stores_its_payments_id_claims_nothing_of_it,
    a_further_reference_is_a_claim_too,
    what_was_not_booked_as_paid_out_is_a_case,
    a_booking_that_a_correction_takes_out_is_a_case,
    a_payout_that_an_earlier_run_told_is_told_again_where_it_differs,
    another_payment_than_the_one_that_a_paid_row_stores_is_told,
    a_refund_is_its_own_rows,
    one_payout_that_two_reports_tell_is_explained_once,
    a_payout_of_nothing_waits_for_no_booking,
    a_payout_stands_once_with_what_counts,
    a_payout_of_checkouts_is_explained_by_either_report,
    a_breakdown_of_several_payouts_explains_each,
    a_report_without_a_row_of_the_payout_explains_it,
    windows_without_the_payouts_own_row_explain_it_together,
    a_booking_that_came_first_and_is_a_cent_short_is_told,
    a_payout_that_failed_is_a_part_of_the_next_one,
    a_payout_that_the_bank_took_back_is_not_explained,
    what_the_bank_did_to_a_payout_later_is_told,
    what_the_bank_took_back_of_a_payout_is_a_case_with_a_code_or_without,
    two_bookings_of_a_payout_of_an_earlier_run_stand_with_it,
    a_payout_known_by_a_reference_differs_with_its_line,
    batches_of_two_merchant_accounts_in_one_report_are_two_payouts,
    a_batch_that_several_kinds_of_report_tell_stands_once,
    what_lacks_some_of_a_listed_payout_differs_and_is_booked,
    a_released_correction_keeps_the_lines_of_the_first_issue,
);

pub async fn shop_with_cards_and_bank(engine: Engine) -> Shop {
    shop_with_sources(engine, "").await
}

async fn shop_with_sources(engine: Engine, sources: &str) -> Shop {
    let account = |name| {
        format!(
            "[[account]]\nname = \"{name}\"\npsp = \"files\"\nmode = \"full\"\nlivemode = true\n"
        )
    };
    let words = Words {
        accounts: ", bank = \"bank\", cards = \"cards\"",
        more: account("bank") + &account("cards") + sources,
        ..Words::default()
    };
    Shop::open_with(engine, words).await
}

const HEAD: &str = "balance_transaction_id,created,available_on,currency,gross,fee,net,\
    reporting_category,source_id,payment_intent_id,charge_id,automatic_payout_id,\
    payment_metadata[order_id]\n";

/// Rows of a Stripe payout reconciliation: kind, id, gross, fee, net, payout.
pub fn stripe(rows: &[(&str, &str, &str, &str, &str, &str)]) -> String {
    let mut text = HEAD.to_owned();
    for (n, (kind, id, gross, fee, net, payout)) in rows.iter().enumerate() {
        text.push_str(&format!(
            "txn_{payout}_{n},2026-11-17 10:00:00,2026-11-19 00:00:00,eur,{gross},{fee},{net},\
             {kind},{id},,,{payout},\n"
        ));
    }
    text
}

/// One of everything that a payout may be made of.
fn of_everything() -> String {
    stripe(&[
        ("charge", "ch_1", "100.01", "3.20", "96.81", "po_1"),
        ("refund", "re_1", "-20.00", "0.00", "-20.00", "po_1"),
        ("dispute", "dp_1", "-10.00", "15.00", "-25.00", "po_1"),
        ("fee", "fee_1", "-2.00", "0.00", "-2.00", "po_1"),
        ("other_adjustment", "adj_1", "1.00", "0.00", "1.00", "po_1"),
        ("payout", "po_1", "-50.81", "0.00", "-50.81", "po_1"),
    ])
}

pub async fn bring_cards(shop: &Shop, name: &str, text: &str) {
    let path = shop.folder().join(name);
    std::fs::write(&path, text).unwrap();
    shop.tieout(&["ingest", path.to_str().unwrap(), "--account", "cards"]).await.ended(0);
}

pub fn dir(shop: &Shop, ran: &Ran) -> PathBuf {
    let end = &ran.of_type("run_end")[0];
    shop.folder().join(end["report"].as_str().unwrap_or_else(|| panic!("no report: {end}")))
}

pub fn payouts(dir: &Path) -> Vec<String> {
    let mut reader = csv::Reader::from_path(dir.join("payouts.csv")).unwrap();
    let rows = reader.deserialize::<BTreeMap<String, String>>().map(Result::unwrap);
    let names = "payout_id currency lines gross fees refunds chargebacks adjustments net paid_out \
                 difference bank_account bank_amount state";
    let cell = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    rows.map(|row| names.split(' ').map(|n| cell(&row[n])).collect::<Vec<_>>().join(" ")).collect()
}

pub async fn bank_lines(shop: &Shop) -> Vec<String> {
    shop.texts(
        "select coalesce(tag, '-') || ' ' || state || ' ' || coalesce(reason, '-') || ' ' || \
         coalesce(table_name, '-') from tieout_lines where account = 'bank' \
         order by file_id, position",
    )
    .await
}

const EXPLAINED: &str =
    "po_1 EUR 5 100.01 -20.20 -20.00 -10.00 1.00 50.81 50.81 0.00 bank 50.81 explained";

async fn a_payout_is_explained_to_the_cent_and_booked_once(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    bring_cards(&shop, "payout.csv", &of_everything()).await;
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &[credit(5_081, "po_1")]), 0).await;
    let ran = shop.run().await;
    assert_eq!(bank_lines(&shop).await, ["po_1 matched - tieout_payouts"]);
    let report = dir(&shop, &ran);
    assert_eq!(payouts(&report), [EXPLAINED]);
    shop.tieout(&["report", "verify", report.to_str().unwrap()]).await.ended(0);
    let mut matched = csv::Reader::from_path(report.join("matched.csv")).unwrap();
    let rows: Vec<BTreeMap<String, String>> = matched.deserialize().map(Result::unwrap).collect();
    let payout = rows.iter().find(|row| row["method"] == "payout").unwrap();
    assert_eq!((&*payout["local_amount"], &*payout["difference"]), ("50.81", "0.00"));
    let shown = shop.tieout(&["files", "show", "1"]).await.ended(0).stdout;
    assert!(shown.contains("payout po_1: 50.81 EUR of 5 lines; the bank booked it"), "{shown}");
    let told = shop.tieout(&["files", "show", "1", "--json"]).await.ended(0).stdout;
    events::check(&told);
    assert!(told.contains("\"net_minor\":\"5081\""), "{told}");
    // The same again is another booking of what was paid out once.
    let again = camt_from(105_081, "camt.053", "S2", &[credit(5_081, "po_1")]);
    bring(&shop, "again.xml", &again, 0).await;
    shop.run().await;
    let lines = bank_lines(&shop).await;
    assert_eq!(lines[1], "po_1 open duplicate_capture -");
    let run_id = ran.of_type("run_end")[0]["run_id"].as_str().unwrap().to_owned();
    let before = std::fs::read(report.join("payouts.csv")).unwrap();
    shop.tieout(&["report", "build", &run_id]).await.ended(0);
    assert_eq!(std::fs::read(report.join("payouts.csv")).unwrap(), before);
    shop.check(false).await;
}

/// Whatever run read or matched them: one that the bank booked, one that it did not, and one that
/// it booked a cent short. One that no line of the window is of stands in its own window.
async fn a_window_that_is_compared_whole_explains_its_payouts(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    bring_cards(&shop, "one.csv", &of_everything()).await;
    for (n, (net, day)) in [("30.00", "17"), ("40.00", "17"), ("50.00", "12")].iter().enumerate() {
        let (payout, out) = (format!("po_{}", n + 2), format!("-{net}"));
        let text = stripe(&[
            ("charge", "ch_1", net, "0.00", net, &payout),
            ("payout", &payout, &out, "0.00", &out, &payout),
        ]);
        bring_cards(&shop, &format!("{n}.csv"), &text.replace("2026-11-17", day_of(day))).await;
    }
    bring(&shop, "a.xml", &camt("camt.053", "S1", &[credit(5_081, "po_1")]), 0).await;
    shop.run().await;
    bring(&shop, "b.xml", &camt("camt.053", "S2", &[credit(3_999, "po_3")]), 0).await;
    shop.run().await;
    let window = ["--all", "--from", "2026-11-16", "--to", "2026-11-18"];
    let unbooked = |name: &str, net: &str| {
        format!("{name} EUR 1 {net} 0.00 0.00 0.00 0.00 {net} {net} 0.00 - - unbooked")
    };
    for _again in 0..2 {
        let ran = shop.run_with(&window).await;
        let differs = "po_3 EUR 1 40.00 0.00 0.00 0.00 0.00 40.00 40.00 0.00 bank 39.99 differs";
        let all = [EXPLAINED.to_owned(), unbooked("po_2", "30.00"), differs.to_owned()];
        assert_eq!(payouts(&dir(&shop, &ran)), all);
        let counts = serde_json::json!({"differs": 1, "explained": 1, "unbooked": 1});
        assert_eq!(ran.of_type("run_end")[0]["payouts"], counts);
    }
    let older = shop.run_with(&["--all", "--from", "2026-11-11", "--to", "2026-11-13"]).await;
    assert_eq!(payouts(&dir(&shop, &older)), [unbooked("po_4", "50.00")]);
    let text = shop.tieout(&[&["run", "-v"], &window[..]].concat()).await;
    let line = "payouts  3: 1 differs · 1 explained · 1 unbooked";
    assert!(text.stdout.contains(line), "{} {}", text.stdout, text.stderr);
    shop.check(false).await;
}

fn day_of(day: &str) -> &'static str {
    if day == "12" { "2026-11-12" } else { "2026-11-17" }
}

/// What it is made of grew since: the bank booked another sum.
async fn a_payout_that_changes_after_its_booking_differs(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    let shopify = |days: &[(u32, &str)]| {
        let row = |(day, amount): &(u32, &str)| {
            format!(
                "2026-11-{day} 10:00:00 +0000,charge,#{day},paid,2026-11-19,9,{amount},0.00,\
                 {amount},EUR\n"
            )
        };
        let rows: String = days.iter().map(row).collect();
        format!(
            "Transaction Date,Type,Order,Payout Status,Payout Date,Payout ID,Amount,Fee,Net,\
             Currency\n{rows}"
        )
    };
    bring_cards(&shop, "one.csv", &shopify(&[(16, "100.00"), (17, "50.00")])).await;
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &[credit(15_000, "9")]), 0).await;
    let ran = shop.run().await;
    let told = payouts(&dir(&shop, &ran));
    assert_eq!(told, ["9 EUR 2 150.00 0.00 0.00 0.00 0.00 150.00 - - bank 150.00 explained"]);
    bring_cards(&shop, "two.csv", &shopify(&[(17, "50.00"), (18, "10.00")])).await;
    let ran = shop.run().await;
    let told = payouts(&dir(&shop, &ran));
    assert_eq!(told, ["9 EUR 3 160.00 0.00 0.00 0.00 0.00 160.00 - - bank 150.00 differs"]);
    let shown = shop.tieout(&["files", "show", "1"]).await.ended(0).stdout;
    assert!(shown.contains("the bank's files have it otherwise"), "{shown}");
    assert!(shown.contains("the bank booked 150.00 EUR of it, line 2:1"), "{shown}");
    let report = dir(&shop, &ran);
    shop.tieout(&["report", "verify", report.to_str().unwrap(), "--database"]).await.ended(0);
    shop.check(false).await;
}

/// A transaction has one amount and one fee, whichever of Stripe's reports tells of it.
async fn kinds_of_reports_that_tell_a_transaction_otherwise_are_for_a_person(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    let itemised = |gross: &str, net: &str| {
        let rows = stripe(&[("charge", "ch_1", gross, "3.00", net, "po_1")]);
        rows.replace(",po_1,\n", ",po_1,pay_1\n")
    };
    let activity = |text: String| {
        text.replace("automatic_payout_id,", "").replace(",po_1,pay_1\n", ",pay_1\n")
    };
    bring_cards(&shop, "payout.csv", &itemised("100.01", "97.01")).await;
    bring_cards(&shop, "same.csv", &activity(itemised("100.01", "97.01"))).await;
    let path = shop.folder().join("other.csv");
    std::fs::write(&path, activity(itemised("90.00", "87.00"))).unwrap();
    let asked = ["ingest", path.to_str().unwrap(), "--account", "cards"];
    shop.tieout(&asked).await.ended(3);
    let shown = shop.tieout(&["files", "show", "3"]).await.ended(0).stdout;
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let why = "id: expected 97.01 EUR (fee 3.00 EUR) as line 2 of file 1 has it, found 87.00 EUR \
               (fee 3.00 EUR)";
    assert!(shown.contains(why), "{shown}");
    shop.check(false).await;
}

async fn what_is_ambiguous_or_differs_is_nobodys(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    let one = |payout: &str| {
        stripe(&[
            ("charge", "ch_2", "10.00", "0.00", "10.00", payout),
            ("payout", payout, "-10.00", "0.00", "-10.00", payout),
        ])
    };
    bring_cards(&shop, "two.csv", &one("po_2")).await;
    bring_cards(&shop, "three.csv", &one("po_3")).await;
    let bookings = [credit(1_000, "po_2"), credit(1_000, "po_2"), credit(999, "po_3")];
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &bookings), 0).await;
    let ran = shop.run().await;
    assert_eq!(
        bank_lines(&shop).await,
        ["po_2 open tag_unusable -", "po_2 open tag_unusable -", "po_3 open amount_mismatch -",]
    );
    let told = payouts(&dir(&shop, &ran));
    assert!(told[0].ends_with("bank 10.00 differs"), "{told:?}");
    assert!(told[1].ends_with("bank 9.99 differs"), "{told:?}");
    let shown = shop.tieout(&["files", "show", "2"]).await.ended(0).stdout;
    assert!(shown.contains("the bank's files have it otherwise"), "{shown}");
    assert!(shown.contains("the bank booked 9.99 EUR, line 3:3 (amount_mismatch)"), "{shown}");
    let shown = shop.tieout(&["files", "show", "2", "--json"]).await.ended(0).stdout;
    assert!(shown.contains("\"state\":\"differs\""), "{shown}");
    shop.check(false).await;
}

async fn a_booking_waits_for_the_report_that_explains_it(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &[credit(5_081, "po_1")]), 0).await;
    shop.run().await;
    assert_eq!(bank_lines(&shop).await, ["po_1 open orphan -"]);
    bring_cards(&shop, "payout.csv", &of_everything()).await;
    let ran = shop.run().await;
    assert_eq!(payouts(&dir(&shop, &ran)), [EXPLAINED]);
    shop.check(false).await;
}

/// A statement whose bookings have a text beside the bank's own reference.
fn with_texts(id: &str, bookings: &[(i64, &str)]) -> String {
    let own: Vec<_> =
        (0..).zip(bookings).map(|(n, (cents, _))| credit(*cents, &format!("BANK{n}"))).collect();
    let mut text = camt("camt.053", id, &own);
    for (n, (_, said)) in (0..).zip(bookings) {
        let own = format!("<EndToEndId>BANK{n}</EndToEndId></Refs>");
        let both = format!("{own}<RmtInf><Ustrd>{said}</Ustrd></RmtInf>");
        text = text.replace(&own, &both);
    }
    text
}

async fn a_booking_names_its_payout_or_its_row_in_its_text(engine: Engine) {
    let inbox = tempfile::tempdir().unwrap();
    let patterns = r"patterns = [{ in = 'text', find = '\b((?:po|pay)_\d+)\b' }]";
    let mut shop = shop_with_sources(engine, &folder("inbox", inbox.path(), patterns)).await;
    shop.words = shop.words.clone().slow_calls();
    shop.write_words();
    let rows = [1, 10, 2, 3, 7].map(|id| at_bank(id, "processing"));
    shop.insert(&rows).await;
    shop.insert(&[at_bank(4, "paid"), at_bank(5, "paid"), at_bank(6, "paid")]).await;
    bring_cards(&shop, "payout.csv", &of_everything()).await;
    let said = [
        (5_081, "CARDS payout po_1 of 19 Nov"),
        (10_010, "order pay_10, thank you"),
        (10_004, "order pay_4"),
        (20_011, "pay_5 and pay_6"),
        // The amount of the one does not say that the other had no part in it.
        (10_002, "pay_2 with pay_3"),
        // The other text is no row's.
        (10_007, "po_999 pay_7"),
    ];
    std::fs::write(inbox.path().join("stmt.xml"), with_texts("S1", &said)).unwrap();
    let ran = shop.run().await;
    assert_eq!(ran.verdict(10), "succeeded settled");
    // The tag of the one stands within the other's, and not in the line.
    assert_eq!(ran.verdict(1), "wait within_grace");
    assert_eq!(ran.verdict(2), "wait within_grace");
    assert_eq!(ran.verdict(7), "succeeded settled");
    assert_eq!(
        lines(&shop).await[6..],
        [
            r#"BANK0 matched - ["cards","po_1","EUR",1]"#,
            "BANK1 matched settled 10",
            "BANK2 matched - 4",
            "BANK3 open tag_unusable -",
            "BANK4 open tag_unusable -",
            "BANK5 matched settled 7",
        ]
    );
    assert_eq!(payouts(&dir(&shop, &ran)), [EXPLAINED]);
    shop.check(false).await;
}

/// No source of the account is configured: what somebody brings is looked at all the same.
async fn a_report_that_was_brought_by_hand_counts_beside_the_api(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    shop.background(30).await;
    shop.insert(&[Payment::stuck(1), Payment::stuck(2)]).await;
    let path = shop.folder().join("report.csv");
    let today = chrono::Utc::now().date_naive();
    let row = format!(
        "txn_1,{today} 00:00:00,{today} 00:00:00,eur,100.01,3.20,96.81,charge,ch_1,pi_1,ch_1,\
         po_1,pay_1\n"
    );
    std::fs::write(&path, format!("{HEAD}{row}")).unwrap();
    let ingest = ["ingest", path.to_str().unwrap(), "--account", "shop"];
    shop.tieout(&ingest).await.ended(0);
    // The list has neither.
    shop.run_until_proven().await;
    assert_eq!([shop.status(1).await, shop.status(2).await], ["paid", "retry"]);
    let of_lines = "select state || ' ' || key from tieout_lines";
    assert_eq!(shop.texts(of_lines).await, ["matched 1"]);
    shop.check(false).await;
}

/// A Stripe payout reconciliation of payments whose orders it names: kind, payment, order, cents.
fn tagged(rows: &[(&str, &str, &str, i64)]) -> String {
    let day = chrono::Utc::now().date_naive();
    let mut text = HEAD.to_owned();
    for (n, (kind, payment, order, cents)) in rows.iter().enumerate() {
        let sign = if *cents < 0 { "-" } else { "" };
        let amount = format!("{sign}{}.{:02}", cents.abs() / 100, cents.abs() % 100);
        text.push_str(&format!(
            "txn_{kind}_{n},{day} 00:00:00,{day} 00:00:00,eur,{amount},0.00,{amount},{kind},\
             {kind}_{n},{payment},,po_1,{order}\n"
        ));
    }
    text
}

/// `tag state reason table key` of every line of the cards, in order.
async fn card_lines(shop: &Shop) -> Vec<String> {
    shop.texts(
        "select coalesce(tag, '-') || ' ' || state || ' ' || coalesce(reason, '-') || ' ' || \
         coalesce(table_name, '-') || ' ' || coalesce(key, '-') from tieout_lines \
         where account = 'cards' order by file_id, position",
    )
    .await
}

fn at_cards(id: i64, status: &'static str, stored: Option<&str>) -> Payment {
    let psp_ref = stored.map(str::to_owned);
    Payment { account: "cards", status, psp_ref, ..Payment::stuck(id) }
}

/// The line carries the tag of the one, and the id that the other stores.
async fn a_line_that_two_rows_have_a_claim_to_settles_neither(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    let tagged_one = Payment { amount: Some(10_000), ..at_cards(1, "processing", None) };
    let storing = Payment { amount: Some(10_000), ..at_cards(2, "processing", Some("pi_9")) };
    shop.insert(&[tagged_one, storing]).await;
    bring_cards(&shop, "one.csv", &tagged(&[("charge", "pi_9", "pay_1", 10_000)])).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "review reference_claimed");
    assert_eq!(ran.verdict(2), "review reference_mismatch");
    assert_eq!(card_lines(&shop).await, ["pay_1 matched reference_claimed payments 1"]);
    assert_eq!(shop.status(2).await, "processing");
    shop.check(false).await;
}

/// Of one table, the one in processing and the other ended, in both ways.
async fn a_refund_that_stores_its_payments_id_claims_nothing_of_it(engine: Engine) {
    let mut shop = shop_with_cards_and_bank(engine).await;
    let kinds = "kind = { column = \"note\", values = { pay = \"charge\", back = \"refund\" } }\n";
    shop.words.table = kinds.to_owned();
    shop.write_words();
    shop.insert(&[
        at_cards(1, "processing", None),
        at_cards(2, "paid", Some("pi_1")),
        at_cards(3, "processing", Some("pi_3")),
        at_cards(4, "processing", Some("pi_3")),
        at_cards(5, "processing", None),
        at_cards(6, "paid", Some("pi_5")),
    ])
    .await;
    let of_kind =
        |word: &str, ids: &str| format!("update payments set note = '{word}' where id in ({ids});");
    shop.raw.execute(&(of_kind("pay", "1, 3, 5, 6") + &of_kind("back", "2, 4"))).await;
    let charge = |id, tag, cents| ("charge", id, tag, cents);
    let rows = [
        charge("pi_1", "pay_1", 10_001),
        charge("pi_3", "pay_3", 10_003),
        charge("pi_5", "pay_5", 10_005),
    ];
    bring_cards(&shop, "one.csv", &tagged(&rows)).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(ran.verdict(3), "succeeded settled");
    assert!(ran.verdict(4).starts_with("wait "), "{}", ran.verdict(4));
    assert_eq!(ran.verdict(5), "review reference_claimed", "by a payment");
    shop.check(false).await;
}

/// Stripe's row has a third reference, that of the order: it is the tag of one row, and the payment
/// is the one that another row stores. Who is asked first changes nothing.
async fn a_further_reference_is_a_claim_too(engine: Engine) {
    for first in [None, Some("1"), Some("2")] {
        let shop = shop_with_cards_and_bank(engine).await;
        let row =
            |id, stored| Payment { amount: Some(10_000), ..at_cards(id, "processing", stored) };
        shop.insert(&[row(1, None), row(2, Some("m2"))]).await;
        let text = adyen(7, &[("Settled", "m2", 10_000, "psp9", "zz")]);
        let text = text.replacen(",Batch Number", ",Merchant Order Reference,Batch Number", 1);
        let text = text.replace(",7,", ",pay_1,7,").replace("zz", "other");
        bring_cards(&shop, "one.csv", &text).await;
        if let Some(first) = first {
            shop.run_with(&["--id", first]).await;
        }
        shop.run().await;
        let found = [shop.status(1).await, shop.status(2).await];
        assert_ne!(found, ["paid", "paid"], "{first:?}");
        assert_eq!(found[1], "processing", "{first:?}");
        shop.check(false).await;
    }
}

/// A bank that credits less than the PSP says that it paid out is asked, whatever `line_cases` says
/// of lines that nothing names.
async fn what_was_not_booked_as_paid_out_is_a_case(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    let one = |payout: &str| {
        stripe(&[
            ("charge", &payout.replace("po", "ch"), "10.00", "0.30", "9.70", payout),
            ("payout", payout, "-9.70", "0.00", "-9.70", payout),
        ])
    };
    bring_cards(&shop, "1.csv", &one("po_1")).await;
    shop.run().await;
    // A line has a case once the day of its booking is over.
    let now = chrono::Utc::now().date_naive();
    let day = now.checked_sub_days(chrono::Days::new(2)).unwrap();
    let older = |cents| {
        let text = camt("camt.053", "S1", &[credit(cents, "po_1")]);
        text.replace(&now.to_string(), &day.to_string())
    };
    bring(&shop, "stmt.xml", &older(470), 0).await;
    for _look in 0..3 {
        shop.run().await;
    }
    assert_eq!(bank_lines(&shop).await, ["po_1 open amount_mismatch -"]);
    assert_eq!(shop.open_cases().await, ["2:1 amount_mismatch"]);
    let said = shop.texts("select text from tieout_cases").await.remove(0);
    assert!(said.contains("not the one booking of payout po_1 of cards"), "{said}");
    // The bank corrects itself: the case ends with the line.
    bring(&shop, "right.xml", &older(970), 3).await;
    shop.tieout(&["files", "release", "3", "--reason", "confirmed"]).await.ended(0);
    shop.run().await;
    shop.run().await;
    assert_eq!(shop.open_cases().await, [""; 0]);
    assert_eq!(bank_lines(&shop).await[1], "po_1 matched - tieout_payouts");
    shop.check(false).await;
}

/// A correction of the bank's takes out what explained a payout; a later booking is that again.
async fn a_booking_that_a_correction_takes_out_is_a_case(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    let report = stripe(&[
        ("charge", "ch_1", "10.00", "0.30", "9.70", "po_1"),
        ("payout", "po_1", "-9.70", "0.00", "-9.70", "po_1"),
    ]);
    bring_cards(&shop, "report.csv", &report).await;
    let both = [credit(970, "po_1"), credit(500, "else")];
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &both), 0).await;
    shop.run().await;
    bring(&shop, "right.xml", &camt("camt.053", "S1", &both[1..]), 3).await;
    let said = shop.tieout(&["files", "release", "3", "--reason", "confirmed"]).await.ended(0);
    let said = said.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("payout po_1 of cards has a booking that is not there"), "{said}");
    for _again in 0..2 {
        shop.run().await;
        assert_eq!(shop.open_cases().await, ["2:1 late_contradiction"]);
    }
    let open = "select text from tieout_cases where state = 'open'";
    let said = shop.texts(open).await.remove(0);
    assert!(said.contains("was the booking of payout po_1 of cards"), "{said}");
    // The first issue's bytes again are known, and count no more than they did.
    let again = shop.tieout(&["ingest", "stmt.xml", "--account", "bank"]).await.ended(3);
    assert!(again.stderr.contains("file 3 corrected them since"), "{}", again.stderr);
    bring(&shop, "later.xml", &camt("camt.053", "S2", &both[..1]), 0).await;
    shop.run().await;
    assert_eq!(shop.open_cases().await, [""; 0]);
    shop.check(false).await;
}

/// A payout that came before its bank's file stands in the report of the run that finds it to
/// differ.
async fn a_payout_that_an_earlier_run_told_is_told_again_where_it_differs(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    let report = stripe(&[
        ("charge", "ch_1", "10.00", "0.30", "9.70", "po_1"),
        ("payout", "po_1", "-9.70", "0.00", "-9.70", "po_1"),
    ]);
    bring_cards(&shop, "report.csv", &report).await;
    let told = payouts(&dir(&shop, &shop.run().await));
    assert!(told[0].ends_with("- - unbooked"), "{told:?}");
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &[credit(470, "po_1")]), 0).await;
    let told = payouts(&dir(&shop, &shop.run().await));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].ends_with("bank 4.70 differs"), "{told:?}");
    shop.check(false).await;
}

/// Somebody charged twice and stored the first id: the file shows the second.
async fn another_payment_than_the_one_that_a_paid_row_stores_is_told(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    shop.insert(&[
        at_cards(1, "paid", Some("pi_old")),
        at_cards(2, "paid", Some("pi_2")),
        at_cards(3, "paid", None),
        // Ids of another kind say nothing of it.
        at_cards(4, "paid", Some("ch_4")),
    ])
    .await;
    let rows = [1, 2, 3, 4].map(|id| (format!("pi_{id}"), format!("pay_{id}"), 10_000 + id));
    let rows = rows.each_ref().map(|(pi, tag, cents)| ("charge", &**pi, &**tag, *cents));
    bring_cards(&shop, "one.csv", &tagged(&rows)).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "review reference_mismatch");
    assert_eq!(shop.status(1).await, "paid");
    assert_eq!(
        card_lines(&shop).await,
        [
            "pay_1 matched reference_mismatch payments 1",
            "pay_2 matched - payments 2",
            "pay_3 matched - payments 3",
            "pay_4 matched - payments 4",
        ]
    );
    shop.check(false).await;
}

/// A refund names the payment that it gives back, and is the refund's all the same.
async fn a_refund_is_its_own_rows(engine: Engine) {
    for (paid, sent) in [("paid", "sent"), ("paid", "done"), ("processing", "sent")] {
        let refunds = REFUNDS.replace("\"bank\"", "\"cards\"");
        let refunds = refunds.replace("tag = \"pay_{id}\"", "tag = \"re_{id}\"");
        let shop = shop_with_sources(engine, &refunds).await;
        shop.insert(&[at_cards(1, paid, None)]).await;
        let made = at_text(tieout_now() - 3_600);
        let columns = "insert into refunds (id, status, cents, made)";
        shop.raw.execute(&format!("{columns} values (7, '{sent}', 500, '{made}')")).await;
        let (charge, refund) = (("charge", 10_001), ("refund", -500));
        let both = [charge, refund].map(|(kind, cents)| (kind, "pi_1", "pay_1", cents));
        let text = tagged(&both);
        bring_cards(&shop, "one.csv", &text.replace("refund_1,", "re_7,")).await;
        shop.run().await;
        let lines = card_lines(&shop).await;
        assert!(lines[0].ends_with(" payments 1"), "{paid} {sent}: {lines:?}");
        assert!(lines[1].ends_with(" refunds 7"), "{paid} {sent}: {lines:?}");
        shop.check(false).await;
    }
}

/// What came and what went back are one: there is nothing that a bank could book.
async fn a_payout_of_nothing_waits_for_no_booking(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    let text = stripe(&[
        ("charge", "ch_1", "30.00", "0.00", "30.00", "po_2"),
        ("refund", "re_1", "-30.00", "0.00", "-30.00", "po_2"),
        ("payout", "po_2", "0.00", "0.00", "0.00", "po_2"),
    ]);
    bring_cards(&shop, "one.csv", &text).await;
    let ran = shop.run().await;
    let told = "po_2 EUR 2 30.00 0.00 -30.00 0.00 0.00 0.00 0.00 0.00 - - explained";
    assert_eq!(payouts(&dir(&shop, &ran)), [told]);
    let shown = shop.tieout(&["files", "show", "1"]).await.ended(0).stdout;
    assert!(shown.contains("payout po_2: 0.00 EUR of 2 lines; the bank has nothing"), "{shown}");
    shop.check(false).await;
}

/// The same payout in a Stripe balance history: kind, source, cents, each with its transaction.
fn history(rows: &[(&str, &str, i64)]) -> String {
    let day = chrono::Utc::now().date_naive();
    let mut text = "id,Type,Source,Amount,Fee,Net,Currency,Created (UTC),Available On (UTC),\
                    Description,Transfer\n"
        .to_owned();
    for (n, (kind, source, cents)) in rows.iter().enumerate() {
        let sign = if *cents < 0 { "-" } else { "" };
        let amount = format!("{sign}{}.{:02}", cents.abs() / 100, cents.abs() % 100);
        text.push_str(&format!(
            "txn_{kind}_{n},{kind},{source},{amount},0.00,{amount},eur,{day} 00:00,{day} 00:00,,\
             po_1\n"
        ));
    }
    text
}

/// The payout reconciliation knows the order, the balance history only the charge.
async fn one_payout_that_two_reports_tell_is_explained_once(engine: Engine) {
    let known = tagged(&[("charge", "pi_1", "pay_1", 10_001), ("payout", "", "", -10_001)]);
    let known = known.replace("payout_1,", "po_1,").replace("txn_po_1,", "txn_payout_1,");
    let own = history(&[("charge", "charge_0", 10_001), ("payout", "po_1", -10_001)]);
    for (first, second) in [(&known, &own), (&own, &known)] {
        let shop = shop_with_cards_and_bank(engine).await;
        shop.insert(&[at_cards(1, "paid", None)]).await;
        bring_cards(&shop, "first.csv", first).await;
        bring_cards(&shop, "second.csv", second).await;
        bring(&shop, "stmt.xml", &camt("camt.053", "S1", &[credit(10_001, "po_1")]), 0).await;
        let ran = shop.run().await;
        assert_eq!(bank_lines(&shop).await, ["po_1 matched - tieout_payouts"]);
        let report = dir(&shop, &ran);
        assert_eq!(
            payouts(&report),
            ["po_1 EUR 1 100.01 0.00 0.00 0.00 0.00 100.01 100.01 0.00 bank 100.01 explained"]
        );
        let lines = card_lines(&shop).await;
        assert!(lines.contains(&"pay_1 matched - payments 1".to_owned()), "{lines:?}");
        assert_eq!(shop.count("tieout_lines where reason = 'orphan'").await, 0, "{lines:?}");
        let verify = ["report", "verify", report.to_str().unwrap(), "--database"];
        shop.tieout(&verify).await.ended(0);
        // Explained once is booked once.
        let again = camt_from(110_001, "camt.053", "S2", &[credit(10_001, "po_1")]);
        bring(&shop, "again.xml", &again, 0).await;
        shop.run().await;
        assert_eq!(bank_lines(&shop).await[1], "po_1 open duplicate_capture -");
        shop.check(false).await;
    }
    // A report that lacks a part of what was paid out explains nothing.
    let shop = shop_with_cards_and_bank(engine).await;
    let lacking = history(&[("charge", "ch_1", 9_001), ("payout", "po_1", -10_001)]);
    bring_cards(&shop, "lacking.csv", &lacking).await;
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &[credit(10_001, "po_1")]), 0).await;
    let ran = shop.run().await;
    assert_eq!(bank_lines(&shop).await, ["po_1 open amount_mismatch -"]);
    assert_eq!(
        payouts(&dir(&shop, &ran)),
        ["po_1 EUR 1 90.01 0.00 0.00 0.00 0.00 90.01 100.01 10.00 bank 100.01 differs"]
    );
    shop.check(false).await;
}

/// Two reports overlap: what the second tells again counts in the first.
async fn a_payout_stands_once_with_what_counts(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    let own = [
        ("charge", "ch_1", "10.00", "0.30", "9.70", "po_1"),
        ("charge", "ch_2", "20.00", "0.30", "19.70", "po_1"),
        ("payout", "po_1", "-29.40", "0.00", "-29.40", "po_1"),
    ];
    bring_cards(&shop, "begun.csv", &stripe(&own[..1])).await;
    let ran = shop.run().await;
    let begun = dir(&shop, &ran);
    assert_eq!(payouts(&begun), ["po_1 EUR 1 10.00 -0.30 0.00 0.00 0.00 9.70 - - - - open"]);
    let before = std::fs::read(begun.join("payouts.csv")).unwrap();
    bring_cards(&shop, "whole.csv", &stripe(&own)).await;
    bring_cards(&shop, "again.csv", &stripe(&own).replace('\n', "\r\n")).await;
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &[credit(2_940, "po_1")]), 0).await;
    let after = shop.run().await;
    let report = dir(&shop, &after);
    assert_eq!(
        payouts(&report),
        ["po_1 EUR 2 30.00 -0.60 0.00 0.00 0.00 29.40 29.40 0.00 bank 29.40 explained"]
    );
    shop.tieout(&["report", "verify", report.to_str().unwrap(), "--database"]).await.ended(0);
    // What came later is not in the report of the first run, however late it is built again.
    let run_id = ran.of_type("run_end")[0]["run_id"].as_str().unwrap().to_owned();
    shop.tieout(&["report", "build", &run_id]).await.ended(0);
    assert_eq!(std::fs::read(begun.join("payouts.csv")).unwrap(), before);
    shop.check(false).await;
}

/// Each window tells a part of the payout, and none that it was paid out.
async fn windows_without_the_payouts_own_row_explain_it_together(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    let one = ("charge", "ch_1", "10.00", "0.30", "9.70", "po_1");
    let two = ("charge", "ch_2", "20.00", "0.30", "19.70", "po_1");
    bring_cards(&shop, "one.csv", &stripe(&[one])).await;
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &[credit(2_940, "po_1")]), 0).await;
    shop.run().await;
    assert_eq!(bank_lines(&shop).await, ["po_1 open amount_mismatch -"]);
    bring_cards(&shop, "two.csv", &stripe(&[one, two])).await;
    let ran = shop.run().await;
    assert_eq!(bank_lines(&shop).await, ["po_1 matched - tieout_payouts"]);
    let report = dir(&shop, &ran);
    assert_eq!(
        payouts(&report),
        ["po_1 EUR 2 30.00 -0.60 0.00 0.00 0.00 29.40 - - bank 29.40 explained"]
    );
    shop.tieout(&["report", "verify", report.to_str().unwrap(), "--database"]).await.ended(0);
    shop.check(false).await;
}

fn checkout(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/settlement/psp");
    std::fs::read_to_string(folder.join(name)).unwrap().replace("USD", "EUR")
}

async fn a_payout_of_checkouts_is_explained_by_either_report(engine: Engine) {
    const MADE: &str = "0000001K1 EUR 4 50.00 -3.70 -10.00 0.00 0.00 36.30";
    let (breakdown, paid) = ("checkout_breakdown.csv", "checkout_payouts.csv");
    for (files, cents, told) in [
        (vec![breakdown], 3_630, format!("{MADE} - - bank 36.30 explained")),
        (
            vec![paid],
            3_630,
            "0000001K1 EUR 0 - - - - - 36.30 36.30 0.00 bank 36.30 explained".to_owned(),
        ),
        (vec![breakdown, paid], 3_630, format!("{MADE} 36.30 0.00 bank 36.30 explained")),
        (vec![paid, breakdown], 3_630, format!("{MADE} 36.30 0.00 bank 36.30 explained")),
        (vec![paid, breakdown], 3_629, format!("{MADE} 36.30 0.00 bank 36.29 differs")),
        // No line of that file was looked at by this run, but one of the bank's that names it.
        (
            vec![paid],
            3_629,
            "0000001K1 EUR 0 - - - - - 36.30 36.30 0.00 bank 36.29 differs".to_owned(),
        ),
    ] {
        let shop = shop_with_cards_and_bank(engine).await;
        for name in &files {
            bring_cards(&shop, name, &checkout(name)).await;
        }
        let booking = credit(cents, "0000001K1");
        bring(&shop, "stmt.xml", &camt("camt.053", "S1", &[booking]), 0).await;
        let ran = shop.run().await;
        let lines = bank_lines(&shop).await;
        let is_right = cents == 3_630;
        let right = ["0000001K1 matched - tieout_payouts"];
        let wrong = ["0000001K1 open amount_mismatch -"];
        assert_eq!(lines, if is_right { right } else { wrong }, "{files:?}");
        let report = dir(&shop, &ran);
        assert_eq!(payouts(&report), [told], "{files:?}");
        let verify = ["report", "verify", report.to_str().unwrap(), "--database"];
        shop.tieout(&verify).await.ended(0);
        shop.check(false).await;
    }
}

/// Rows of a Checkout.com breakdown: payment, currency, payout, whole units.
fn breakdown(rows: &[(&str, &str, &str, i64)]) -> String {
    let day = chrono::Utc::now().date_naive();
    let own = checkout("checkout_breakdown.csv");
    let mut text = format!("{}\n", own.lines().next().unwrap());
    for (payment, currency, payout, gross) in rows {
        let net = gross - 1;
        text.push_str(&format!(
            "ent_1,Acme,pc_1,Shop,Charge,{payment},of_{payment},{day}T10:00:00.000,\
             {day}T12:00:00.000,{currency},{payout},{gross},-1,{net},-1,{currency},{gross},1,VISA\n"
        ));
    }
    text
}

/// The statement of a day of an account in dollars.
fn in_dollars(cents: i64, payout: &str) -> String {
    let text = camt("camt.053", "U1", &[credit(cents, payout)]).replace("EUR", "USD");
    text.replace("DE02120300000000202051", "DE87120400000000202051")
}

/// A report of a range of days, or of two currencies, names each of its payouts: under one id in
/// two currencies, too.
async fn a_breakdown_of_several_payouts_explains_each(engine: Engine) {
    let (one, two) = ("0000001K1", "0000002K1");
    let told = |payout: &str, currency: &str, net: &str| {
        let (lines, gross, fees) = match net {
            "58.00" => (2, "60.00", "-2.00"),
            _other => (1, "40.00", "-1.00"),
        };
        let parts = "0.00 0.00 0.00";
        format!("{payout} {currency} {lines} {gross} {fees} {parts} {net} - - bank {net} explained")
    };
    for (payout, currency) in [(two, "EUR"), (two, "USD"), (one, "USD")] {
        let shop = shop_with_cards_and_bank(engine).await;
        let rows =
            [("pay_a", "EUR", one, 50), ("pay_b", currency, payout, 40), ("pay_c", "EUR", one, 10)];
        bring_cards(&shop, "breakdown.csv", &breakdown(&rows)).await;
        let mut bookings = vec![credit(5_800, one)];
        if currency == "EUR" {
            bookings.push(credit(3_900, payout));
        } else {
            bring(&shop, "dollars.xml", &in_dollars(3_900, payout), 0).await;
        }
        bring(&shop, "euros.xml", &camt("camt.053", "E1", &bookings), 0).await;
        let ran = shop.run().await;
        let lines = bank_lines(&shop).await;
        let is_booked = |line: &String| line.ends_with(" matched - tieout_payouts");
        assert!(lines.len() == 2 && lines.iter().all(is_booked), "{currency}: {lines:?}");
        let report = dir(&shop, &ran);
        let mut found = payouts(&report);
        found.sort_unstable();
        let mut wanted = [told(one, "EUR", "58.00"), told(payout, currency, "39.00")];
        wanted.sort_unstable();
        assert_eq!(found, wanted);
        shop.tieout(&["report", "verify", report.to_str().unwrap(), "--database"]).await.ended(0);
        shop.check(false).await;
    }
    // Two bookings in one currency are nobody's, whatever there is in the other.
    let shop = shop_with_cards_and_bank(engine).await;
    let rows = [("pay_a", "EUR", one, 59), ("pay_b", "USD", one, 40)];
    bring_cards(&shop, "breakdown.csv", &breakdown(&rows)).await;
    bring(&shop, "dollars.xml", &in_dollars(3_900, one), 0).await;
    let bookings = [credit(5_800, one), credit(5_800, one)];
    bring(&shop, "euros.xml", &camt("camt.053", "E1", &bookings), 0).await;
    shop.run().await;
    assert_eq!(
        bank_lines(&shop).await,
        [
            "0000001K1 matched - tieout_payouts",
            "0000001K1 open tag_unusable -",
            "0000001K1 open tag_unusable -",
        ]
    );
    shop.check(false).await;
}

/// Mollie's settlements and Shopify's payouts have no row of their own: their rows name them.
async fn a_report_without_a_row_of_the_payout_explains_it(engine: Engine) {
    let shopify = "Transaction Date,Type,Order,Payout Status,Payout Date,Payout ID,Amount,Fee,Net,\
                   Currency\n\
                   2026-09-01 10:00:00 -0400,charge,#1,paid,2026-09-03,98001,45.00,1.61,43.39,\
                   EUR\n\
                   2026-09-02 10:00:00 -0400,refund,#1,paid,2026-09-03,98001,-10.00,0.00,-10.00,\
                   EUR\n\
                   2026-09-02 11:00:00 -0400,charge,#2,paid,2026-09-05,98002,20.00,1.00,19.00,\
                   EUR\n";
    let amazon = "settlement-id,settlement-start-date,settlement-end-date,deposit-date,\
                  total-amount,currency,transaction-type,order-id,amount-type,\
                  amount-description,amount,posted-date\n\
                  12345678901,2026-09-01,2026-09-14,2026-09-16,91.50,EUR,,,,,,\n\
                  12345678901,,,,,,Order,302-1,ItemPrice,Principal,100.00,2026-09-02\n\
                  12345678901,,,,,,Order,302-1,ItemFees,Commission,-8.50,2026-09-02\n";
    for (text, cents, payout, told) in [
        (
            amazon.replace(',', "\t"),
            9_150,
            "12345678901",
            "2 0.00 -8.50 0.00 0.00 100.00 91.50 - - bank 91.50 explained",
        ),
        (
            checkout("mollie.csv"),
            12_712,
            "1234567.2610.01",
            "4 150.00 -2.88 -20.00 0.00 0.00 127.12 - - bank 127.12 explained",
        ),
        (
            shopify.to_owned(),
            3_339,
            "98001",
            "2 45.00 -1.61 -10.00 0.00 0.00 33.39 - - bank 33.39 explained",
        ),
    ] {
        let shop = shop_with_cards_and_bank(engine).await;
        bring_cards(&shop, "report.csv", &text).await;
        bring(&shop, "stmt.xml", &camt("camt.053", "S1", &[credit(cents, payout)]), 0).await;
        let ran = shop.run().await;
        let booked = format!("{payout} matched - tieout_payouts");
        assert_eq!(bank_lines(&shop).await, [booked]);
        let report = dir(&shop, &ran);
        let mut found = payouts(&report);
        found.retain(|line| !line.ends_with("- - - - open"));
        assert_eq!(found, [format!("{payout} EUR {told}")]);
        shop.tieout(&["report", "verify", report.to_str().unwrap(), "--database"]).await.ended(0);
        shop.check(false).await;
    }
}

/// The bank's file came before the PSP's report: the run that brings the report says it.
async fn a_booking_that_came_first_and_is_a_cent_short_is_told(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    let bookings = [credit(969, "po_1"), credit(970, "po_2"), credit(970, "po_3")];
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &bookings), 0).await;
    let first = shop.run().await;
    assert!(payouts(&dir(&shop, &first)).is_empty());
    let one = |payout: &str| {
        stripe(&[
            ("charge", &payout.replace("po", "ch"), "10.00", "0.30", "9.70", payout),
            ("payout", payout, "-9.70", "0.00", "-9.70", payout),
        ])
    };
    for payout in ["po_1", "po_2", "po_3", "po_4"] {
        bring_cards(&shop, &format!("{payout}.csv"), &one(payout)).await;
    }
    let ran = shop.run().await;
    // Two of the same amount on one day are told apart by their ids.
    assert_eq!(
        bank_lines(&shop).await,
        [
            "po_1 open amount_mismatch -",
            "po_2 matched - tieout_payouts",
            "po_3 matched - tieout_payouts",
        ]
    );
    let report = dir(&shop, &ran);
    let told = payouts(&report);
    let made = "EUR 1 10.00 -0.30 0.00 0.00 0.00 9.70 9.70 0.00";
    assert_eq!(
        told,
        [
            format!("po_1 {made} bank 9.69 differs"),
            format!("po_2 {made} bank 9.70 explained"),
            format!("po_3 {made} bank 9.70 explained"),
            format!("po_4 {made} - - unbooked"),
        ]
    );
    let text = std::fs::read_to_string(report.join("payouts.csv")).unwrap();
    assert!(text.contains(",F1:1,"), "{text}");
    shop.tieout(&["report", "verify", report.to_str().unwrap(), "--database"]).await.ended(0);
    shop.check(false).await;
}

/// Stripe books what failed back under its own id, and pays it out with the next.
async fn a_payout_that_failed_is_a_part_of_the_next_one(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    let first = [
        ("charge", "ch_1", "100.00", "3.00", "97.00", "po_1"),
        ("payout", "po_1", "-97.00", "0.00", "-97.00", "po_1"),
    ];
    bring_cards(&shop, "first.csv", &stripe(&first)).await;
    for word in ["payout_reversal", "payout_failure"] {
        let own = format!("po_2{word}");
        let next = [
            (word, "po_1", "97.00", "0.00", "97.00", own.as_str()),
            ("charge", "ch_2", "50.00", "1.50", "48.50", own.as_str()),
            ("payout", own.as_str(), "-145.50", "0.00", "-145.50", own.as_str()),
        ];
        let (report, stmt) = (format!("{word}.csv"), format!("{word}.xml"));
        bring_cards(&shop, &report, &stripe(&next)).await;
        bring(&shop, &stmt, &camt("camt.053", word, &[credit(14_550, &own)]), 0).await;
        let ran = shop.run().await;
        let told = payouts(&dir(&shop, &ran));
        let says = "EUR 2 50.00 -1.50 0.00 0.00 97.00 145.50 145.50 0.00 bank 145.50 explained";
        assert!(told.contains(&format!("{own} {says}")), "{told:?}");
    }
    let booked = ["po_2payout_reversal", "po_2payout_failure"];
    let booked = booked.map(|own| format!("{own} matched - tieout_payouts"));
    assert_eq!(bank_lines(&shop).await, booked);
    // A booking under the first one's id is that one's, and not also of what holds it.
    bring(&shop, "late.xml", &camt("camt.053", "late", &[credit(9_700, "po_1")]), 0).await;
    shop.run().await;
    assert_eq!(bank_lines(&shop).await[2], "po_1 matched - tieout_payouts");
    // What failed, and stands in its own payout, leaves nothing that was paid out.
    let own = [
        ("charge", "ch_3", "10.00", "0.00", "10.00", "po_3"),
        ("payout", "po_3", "-10.00", "0.00", "-10.00", "po_3"),
        ("payout_failure", "po_3", "10.00", "0.00", "10.00", "po_3"),
    ];
    let path = shop.folder().join("own.csv");
    std::fs::write(&path, stripe(&own)).unwrap();
    shop.tieout(&["ingest", path.to_str().unwrap(), "--account", "cards"]).await;
    shop.check(false).await;
}

/// It came and went, in one statement or in two.
async fn a_payout_that_the_bank_took_back_is_not_explained(engine: Engine) {
    let report = stripe(&[
        ("charge", "ch_1", "100.00", "3.00", "97.00", "po_1"),
        ("payout", "po_1", "-97.00", "0.00", "-97.00", "po_1"),
    ]);
    let (came, went) = (|| credit(9_700, "po_1"), || returned(9_700, "po_1", "AC04"));
    let shop = shop_with_cards_and_bank(engine).await;
    bring_cards(&shop, "report.csv", &report).await;
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &[came(), went()]), 0).await;
    let ran = shop.run().await;
    let told = payouts(&dir(&shop, &ran));
    assert!(told[0].ends_with(" 0.00 bank 97.00 differs"), "{told:?}");
    let open = ["po_1 open tag_unusable -", "po_1 open returned -"];
    assert_eq!(bank_lines(&shop).await, open, "two lines that name it are nobody's");
    let shown = shop.tieout(&["files", "show", "1"]).await.ended(0).stdout;
    assert!(shown.contains("the bank's files have it otherwise"), "{shown}");
    assert!(shown.contains("the bank booked 97.00 EUR, line 2:1 (tag_unusable)"), "{shown}");
    assert!(shown.contains("the bank took back 97.00 EUR, line 2:2 (returned)"), "{shown}");
    shop.check(false).await;
    // It went before the run that matched what came.
    let shop = shop_with_cards_and_bank(engine).await;
    bring_cards(&shop, "report.csv", &report).await;
    bring(&shop, "came.xml", &camt("camt.053", "S1", &[came()]), 0).await;
    let ran = shop.run().await;
    assert!(payouts(&dir(&shop, &ran))[0].ends_with(" bank 97.00 explained"));
    bring(&shop, "went.xml", &camt("camt.053", "S2", &[went()]), 0).await;
    bring_cards(&shop, "again.csv", &report.replace('\n', "\r\n")).await;
    let ran = shop.run().await;
    let report = dir(&shop, &ran);
    shop.tieout(&["report", "verify", report.to_str().unwrap()]).await.ended(0);
    shop.check(false).await;
}

/// `files show` of the PSP's report tells it, whenever it came.
async fn what_the_bank_did_to_a_payout_later_is_told(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    let report = stripe(&[
        ("charge", "ch_1", "100.00", "3.00", "97.00", "po_1"),
        ("payout", "po_1", "-97.00", "0.00", "-97.00", "po_1"),
    ]);
    bring_cards(&shop, "report.csv", &report).await;
    bring(&shop, "came.xml", &camt("camt.053", "S1", &[credit(9_700, "po_1")]), 0).await;
    shop.run().await;
    let later = [
        (
            "went",
            (109_700, returned(9_700, "po_1", "AC04")),
            "took back 97.00 EUR, line 3:1 (returned)",
        ),
        (
            "again",
            (150_000, credit(9_700, "po_1")),
            "booked 97.00 EUR once more, line 4:1 (duplicate_capture)",
        ),
    ];
    for (name, (opening, booking), says) in later {
        let text = camt_from(opening, "camt.053", name, &[booking]);
        bring(&shop, &format!("{name}.xml"), &text, 0).await;
        shop.run().await;
        let shown = shop.tieout(&["files", "show", "1"]).await.ended(0).stdout;
        assert!(shown.contains("the bank's files have it otherwise"), "{shown}");
        assert!(shown.contains(says), "{shown}");
    }
    shop.check(false).await;
}

async fn what_the_bank_took_back_of_a_payout_is_a_case_with_a_code_or_without(engine: Engine) {
    // A line has a case once the day of its booking is over.
    let now = chrono::Utc::now().date_naive();
    let day = now.checked_sub_days(chrono::Days::new(2)).unwrap();
    let older = |text: String| text.replace(&now.to_string(), &day.to_string());
    for went in [returned(9_700, "po_1", "AC04"), debit(9_700, "po_1")] {
        let shop = shop_with_cards_and_bank(engine).await;
        let report = stripe(&[
            ("charge", "ch_1", "100.00", "3.00", "97.00", "po_1"),
            ("payout", "po_1", "-97.00", "0.00", "-97.00", "po_1"),
        ]);
        bring_cards(&shop, "report.csv", &report).await;
        let came = camt("camt.053", "S1", &[credit(9_700, "po_1")]);
        bring(&shop, "came.xml", &older(came), 0).await;
        let told = payouts(&dir(&shop, &shop.run().await));
        assert!(told[0].ends_with(" bank 97.00 explained"), "{told:?}");
        let went = camt_from(109_700, "camt.053", "S2", &[went]);
        bring(&shop, "went.xml", &older(went), 0).await;
        let report = dir(&shop, &shop.run().await);
        let told = payouts(&report);
        assert!(told[0].ends_with(" bank -97.00 differs"), "{told:?}");
        let exceptions = std::fs::read_to_string(report.join("exceptions.csv")).unwrap();
        assert!(exceptions.contains("A booked payment came back."), "{exceptions}");
        for _look in 0..2 {
            shop.run().await;
        }
        let open = ["po_1 matched - tieout_payouts", "po_1 open returned -"];
        assert_eq!(bank_lines(&shop).await, open);
        assert_eq!(shop.open_cases().await, ["3:1 returned"]);
        let said = shop.texts("select text from tieout_cases").await.remove(0);
        assert!(said.contains("not the one booking of payout po_1 of cards"), "{said}");
        let shown = shop.tieout(&["cases", "show", "1"]).await.ended(0).stdout;
        assert!(shown.contains("once the line is the payout's one booking"), "{shown}");
        assert!(!shown.contains("shop's row"), "{shown}");
        shop.check(false).await;
    }
}

async fn two_bookings_of_a_payout_of_an_earlier_run_stand_with_it(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    let report = stripe(&[
        ("charge", "ch_1", "10.00", "0.30", "9.70", "po_1"),
        ("payout", "po_1", "-9.70", "0.00", "-9.70", "po_1"),
    ]);
    bring_cards(&shop, "report.csv", &report).await;
    shop.run().await;
    let both = [credit(970, "po_1"), credit(970, "po_1")];
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &both), 0).await;
    let told = payouts(&dir(&shop, &shop.run().await));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].ends_with("bank 9.70 differs"), "{told:?}");
    shop.check(false).await;
}

/// Adyen's batch is called by its number, and the bank's line by the reference of its payout.
async fn a_payout_known_by_a_reference_differs_with_its_line(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    let batch = |number: u32| {
        let order = format!("o{number}");
        let rows = [("Settled", "m1", 10_000, "psp1", order.as_str())];
        adyen(number, &rows).replace(",payout,", &format!(",\"TX{number} batch, AcmeEU\","))
    };
    for number in [7, 8, 9] {
        bring_cards(&shop, &format!("{number}.csv"), &batch(number)).await;
    }
    let name = |number: u32| format!("TX{number} batch, AcmeEU");
    let bookings = [credit(9_999, &name(7)), credit(10_000, &name(8)), credit(10_000, &name(8))];
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &bookings), 0).await;
    let told = payouts(&dir(&shop, &shop.run().await));
    let ends = ["bank 99.99 differs", "bank 100.00 differs", "- - unbooked"];
    for (payout, end) in told.iter().zip(ends) {
        assert!(payout.ends_with(end), "{told:?}");
    }
    let shown = shop.tieout(&["files", "show", "1"]).await.ended(0).stdout;
    assert!(shown.contains("the bank booked 99.99 EUR, line 4:1 (amount_mismatch)"), "{shown}");
    let shown = shop.tieout(&["files", "show", "3"]).await.ended(0).stdout;
    assert!(shown.contains("no bank's file has it yet"), "{shown}");
    shop.check(false).await;
}

/// Adyen numbers each merchant account's batches alone, and a company's report tells of them all.
async fn batches_of_two_merchant_accounts_in_one_report_are_two_payouts(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    let batch = |merchant: &str, cents: i64| {
        let text = adyen(7, &[("Settled", "m1", cents, "psp1", "o1")]);
        let text = text.replace(",AcmeEU,", &format!(",{merchant},"));
        let text = text.replace("psp1,o1", &format!("psp{cents},o{cents}"));
        text.replace(",payout,", &format!(",\"TX{cents} batch, {merchant}\","))
    };
    let (eu, us) = (batch("AcmeEU", 10_000), batch("AcmeUS", 2_500));
    let us_rows = us.split_once('\n').unwrap().1.to_owned();
    bring_cards(&shop, "company.csv", &format!("{eu}{us_rows}")).await;
    let name = |cents: i64, merchant: &str| format!("TX{cents} batch, {merchant}");
    let bookings = [credit(10_000, &name(10_000, "AcmeEU")), credit(2_500, &name(2_500, "AcmeUS"))];
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &bookings), 0).await;
    let of_both = |report: &Path| {
        let mut reader = csv::Reader::from_path(report.join("payouts.csv")).unwrap();
        let rows = reader.deserialize::<BTreeMap<String, String>>().map(Result::unwrap);
        rows.map(|row| format!("{} {}", row["merchant_account"], row["bank_place"])).collect()
    };
    let first = dir(&shop, &shop.run().await);
    let explained = [
        "7 EUR 1 100.00 0.00 0.00 0.00 0.00 100.00 100.00 0.00 bank 100.00 explained",
        "7 EUR 1 25.00 0.00 0.00 0.00 0.00 25.00 25.00 0.00 bank 25.00 explained",
    ];
    assert_eq!(payouts(&first), explained);
    let places: Vec<String> = of_both(&first);
    assert_eq!(places, ["AcmeEU F2:1", "AcmeUS F2:2"]);
    shop.tieout(&["report", "verify", first.to_str().unwrap(), "--database"]).await.ended(0);
    let again = dir(&shop, &shop.run_with(&["--all", "--since", "3d"]).await);
    assert_eq!(payouts(&again), explained);
    let shown = shop.tieout(&["files", "show", "1"]).await.ended(0).stdout;
    for own in ["payout 7 of AcmeEU: 100.00 EUR", "payout 7 of AcmeUS: 25.00 EUR"] {
        assert!(shown.contains(own), "{shown}");
    }
    let stuck = shop.tieout(&["cases", "list"]).await.ended(0).stdout;
    assert!(!stuck.contains("tag_unusable"), "{stuck}");
    shop.check(false).await;
}

const BOOKS: &str = "Company Account,Merchant Account,Psp Reference,Merchant Reference,\
    Payment Method,Booking Date,TimeZone,Record Type,Modification Psp Reference,Main Currency,\
    Main Amount,Payment Currency,Received (PC),Authorised (PC),Captured (PC),\
    Settlement Currency,Payable (SC),Commission (SC),Payable Batch\n";

/// Adyen's accounting of a payment in batch 7: its number, what was paid, what of it is payable.
fn accounting(number: u32, paid: &str, payable: &str) -> String {
    let day = chrono::Utc::now().format("%Y-%m-%d 00:10:00");
    let mut text = BOOKS.to_owned();
    for word in ["Received", "Authorised", "Settled"] {
        let end = if word == "Settled" { format!("EUR,{payable},,7") } else { ",,,".to_owned() };
        text.push_str(&format!(
            "Acme,AcmeEU,P{number},pay_{number},visa,{day},UTC,{word},M{number},EUR,{paid},EUR,,,,\
             {end}\n"
        ));
    }
    text
}

/// The accounting names a batch on its lines alone; attempts and a second report move nothing.
async fn a_batch_that_several_kinds_of_report_tell_stands_once(engine: Engine) {
    let details = adyen(7, &[("Settled", "M1", 10_001, "P1", "pay_1")]);
    for (files, told) in [
        (
            [accounting(1, "100.01", "99.51"), accounting(2, "100.02", "99.52")],
            "7 EUR 2 200.03 -1.00 0.00 0.00 0.00 199.03 - - - - open",
        ),
        (
            [accounting(1, "100.01", "100.01"), details],
            "7 EUR 1 100.01 0.00 0.00 0.00 0.00 100.01 100.01 0.00 - - unbooked",
        ),
    ] {
        let shop = shop_with_cards_and_bank(engine).await;
        shop.insert(&[1, 2].map(|id| at_cards(id, "processing", None))).await;
        bring_cards(&shop, "one.csv", &files[0]).await;
        bring_cards(&shop, "two.csv", &files[1]).await;
        let report = dir(&shop, &shop.run().await);
        assert_eq!(payouts(&report), [told]);
        let mut matched = csv::Reader::from_path(report.join("matched.csv")).unwrap();
        let rows = matched.deserialize::<BTreeMap<String, String>>().map(Result::unwrap);
        let told: Vec<String> = rows.map(|row| row["difference"].clone()).collect();
        let told: Vec<&String> = told.iter().filter(|text| !text.is_empty()).collect();
        assert!(!told.is_empty() && told.iter().all(|text| *text == "0.00"), "{told:?}");
        let verify = ["report", "verify", report.to_str().unwrap(), "--database"];
        shop.tieout(&verify).await.ended(0);
        shop.check(false).await;
    }
}

/// A report of actions may lack some: it is shown beside what the list of payouts says, by which
/// the bank's line is known.
async fn what_lacks_some_of_a_listed_payout_differs_and_is_booked(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    let actions = checkout("checkout_actions.csv");
    let mut text = format!("{}\n", actions.lines().next().unwrap());
    let day = chrono::Utc::now().date_naive();
    for (part, amount) in [("Capture", "30.00"), ("Scheme Fixed Fee", "-0.50")] {
        text.push_str(&format!(
            "ent_1,pay_1,pay_1,Capture,act_1,{day}T00:10:00.000,EUR,EUR,0000001K1,{part},\
             {amount},{amount}\n"
        ));
    }
    bring_cards(&shop, "actions.csv", &text).await;
    bring_cards(&shop, "payouts.csv", &checkout("checkout_payouts.csv")).await;
    let booking = credit(3_630, "0000001K1");
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &[booking]), 0).await;
    let report = dir(&shop, &shop.run().await);
    assert_eq!(bank_lines(&shop).await, ["0000001K1 matched - tieout_payouts"]);
    assert_eq!(
        payouts(&report),
        ["0000001K1 EUR 2 30.00 -0.50 0.00 0.00 0.00 29.50 36.30 6.80 bank 36.30 differs"]
    );
    let verify = ["report", "verify", report.to_str().unwrap(), "--database"];
    shop.tieout(&verify).await.ended(0);
    shop.check(false).await;
}

/// What both issues have stays in the first one, and is a part of the payout all the same.
async fn a_released_correction_keeps_the_lines_of_the_first_issue(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    shop.insert(&[1, 2].map(|id| at_cards(id, "processing", None))).await;
    let one = ("Settled", "M1", 10_001, "P1", "pay_1");
    let two = ("Settled", "M2", 10_002, "P2", "pay_2");
    bring_cards(&shop, "first.csv", &adyen(7, &[one])).await;
    let first = shop.run().await;
    let before = payouts(&dir(&shop, &first));
    assert_eq!(before, ["7 EUR 1 100.01 0.00 0.00 0.00 0.00 100.01 100.01 0.00 - - unbooked"]);
    let path = shop.folder().join("second.csv");
    std::fs::write(&path, adyen(7, &[one, two])).unwrap();
    shop.tieout(&["ingest", path.to_str().unwrap(), "--account", "cards"]).await.ended(3);
    shop.tieout(&["files", "release", "2", "--reason", "sent again"]).await.ended(0);
    shop.run().await;
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &[credit(20_003, "payout")]), 0).await;
    let report = dir(&shop, &shop.run().await);
    assert_eq!(
        payouts(&report),
        ["7 EUR 2 200.03 0.00 0.00 0.00 0.00 200.03 200.03 0.00 bank 200.03 explained"]
    );
    let verify = ["report", "verify", report.to_str().unwrap(), "--database"];
    shop.tieout(&verify).await.ended(0);
    let run_id = first.of_type("run_end")[0]["run_id"].as_str().unwrap().to_owned();
    shop.tieout(&["report", "build", &run_id]).await.ended(0);
    assert_eq!(payouts(&dir(&shop, &first)), before);
    shop.check(false).await;
}
