//! One booking that two files tell counts once, and two bookings that look alike count twice.

use std::collections::BTreeMap;

use super::batches::notice;
use super::files::{Booking, at_bank, bring, camt, credit, debit, lines, returned, shop_with_bank};
use super::payouts::{bank_lines, bring_cards, dir, payouts, shop_with_cards_and_bank, stripe};
use crate::run::shop::{Engine, Payment, Ran, Shop, on_both_databases};

on_both_databases!(
    a_booking_that_several_statements_tell_counts_once,
    what_looks_alike_counts_each_time,
    what_was_told_again_counts_when_the_other_is_taken_out,
    a_batch_that_several_statements_tell_counts_once,
    what_came_back_in_a_batch_is_not_doubled,
    a_sum_and_its_parts_are_one_booking,
    a_sum_that_a_notice_explained_is_not_told_by_its_parts,
    a_report_that_comes_twice_counts_once,
    a_day_of_bai2_in_other_bytes_is_held,
    a_statement_under_other_words_is_held,
    what_only_resembles_a_statement_counts_beside_it,
    rows_that_overlap_are_held_and_only_the_others_count,
    rows_are_known_again_however_they_are_written,
    pages_of_a_statement_are_no_issues_of_each_other,
    a_page_of_mt940_that_is_lost_is_told,
    a_gap_that_a_correction_closes_is_none_any_more,
    a_statement_that_is_lost_between_two_files_is_told,
    pages_of_one_message_count_and_are_corrected_each_by_itself,
    statements_that_a_bank_calls_the_same_count_where_they_go_on,
    a_release_takes_out_what_it_replaces_and_nothing_before_it,
    bytes_that_came_for_another_account_are_told,
    a_reference_of_a_whole_day_is_not_one_booking,
    a_reference_that_mt940_cut_is_the_same,
    a_tag_that_a_bank_wore_down_is_the_same,
    a_booking_whose_tag_a_later_file_tells_finds_its_row,
    an_account_is_one_however_its_statements_write_it,
    what_may_be_one_booking_is_asked_of_the_bank,
    a_row_is_paid_by_the_line_that_was_told_again,
    a_line_that_a_third_issue_brings_back_ends_the_case,
    a_report_that_has_a_row_otherwise_is_for_a_person,
    what_paypal_reversed_came_back,
    what_paypal_reversed_is_one_movement,
    what_braintree_settled_is_settled_once,
);

/// A statement whose bookings carry the bank's references, in their order; an empty one is none.
fn with_refs(id: &str, bookings: &[Booking], refs: &[&str]) -> String {
    let text = camt("camt.053", id, bookings);
    let mut parts = text.split("<Refs>");
    let mut whole = parts.next().unwrap().to_owned();
    for (part, own) in parts.zip(refs) {
        let own = match *own {
            "" => String::new(),
            own => format!("<AcctSvcrRef>{own}</AcctSvcrRef>"),
        };
        whole.push_str(&format!("<Refs>{own}{part}"));
    }
    assert_eq!(bookings.len(), refs.len());
    whole
}

/// Where a run's report is; it holds against the database.
async fn verified(shop: &Shop, ran: &Ran) -> std::path::PathBuf {
    let report = dir(shop, ran);
    shop.tieout(&["report", "verify", report.to_str().unwrap(), "--database"]).await.ended(0);
    report
}

/// An MT940 of the same account, which writes it in its own way.
fn mt940(bookings: &[(i64, &str, &str)]) -> String {
    let today = chrono::Utc::now().date_naive();
    let (day, month_day) = (today.format("%y%m%d"), today.format("%m%d"));
    let euros = |cents: i64| format!("{},{:02}", cents / 100, cents % 100);
    let mut text = format!(
        ":20:X\n:25:12030000/0000202051\n:28C:00001/001\n:60F:C{day}EUR{}\n",
        euros(100_000)
    );
    for (cents, tag, own) in bookings {
        text.push_str(&format!(
            ":61:{day}{month_day}CR{}N051NONREF//{own}\n:86:166?00SEPA?20EREF+{tag}?21SVWZ+x\n",
            euros(*cents)
        ));
    }
    let sum: i64 = bookings.iter().map(|(cents, _, _)| cents).sum();
    text.push_str(&format!(":62F:C{day}EUR{}\n-\n", euros(100_000 + sum)));
    text
}

async fn a_booking_that_several_statements_tell_counts_once(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[1, 2, 3, 4].map(|id| at_bank(id, "processing"))).await;
    let (one, two) = (credit(10_001, "pay_1"), credit(10_002, "pay_2"));
    bring(&shop, "day.xml", &with_refs("D1", &[one, two], &["AR1", "AR2"]), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(ran.verdict(2), "succeeded settled");
    let (one, two) = (credit(10_001, "pay_1"), credit(10_002, "pay_2"));
    let three = credit(10_003, "pay_3");
    let days = with_refs("W1", &[one, two, three], &["AR1", "AR2", "AR3"]);
    bring(&shop, "days.xml", &days, 0).await;
    let swift = mt940(&[(10_003, "pay_3", "AR3"), (10_004, "pay_4", "AR4")]);
    bring(&shop, "day.sta", &swift, 0).await;
    shop.due_now().await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(3), "succeeded settled");
    assert_eq!(ran.verdict(4), "succeeded settled");
    assert_eq!(
        lines(&shop).await,
        [
            "pay_1 matched settled 1",
            "pay_2 matched settled 2",
            "pay_1 excluded told_before -",
            "pay_2 excluded told_before -",
            "pay_3 matched settled 3",
            "pay_3 excluded told_before -",
            "pay_4 matched settled 4",
        ]
    );
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    let shown = shop.tieout(&["files", "show", "2", "--lines"]).await.ended(0).stdout;
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("excluded (told before by 1:1)"), "{shown}");
    assert!(shown.contains("2 lines that another file tells"), "{shown}");
    verified(&shop, &ran).await;
    shop.check(false).await;
}

/// The same reference twice in one file is two bookings; so are equal amounts under other
/// references, on other days, or under a reference that stands for none.
async fn what_looks_alike_counts_each_time(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    let same = || credit(777, "same");
    let first = [same(), same(), credit(778, "zero"), credit(779, "blank"), credit(780, "mine")];
    let refs = ["AR9", "AR9", "0", "NONREF", "1"];
    bring(&shop, "one.xml", &with_refs("D1", &first, &refs), 0).await;
    let second = [
        same(),
        same(),
        same(),
        credit(777, "same"),
        credit(778, "zero"),
        credit(779, "blank"),
        credit(780, "another"),
    ];
    let refs = ["AR9", "AR9", "AR9", "AR10", "0", "NONREF", "1"];
    let text = with_refs("D2", &second, &refs);
    bring(&shop, "two.xml", &text, 0).await;
    let today = chrono::Utc::now().date_naive();
    let before = today.pred_opt().unwrap();
    let other = with_refs("D3", &[same()], &["AR9"]);
    let other = other.replace(&format!("<Dt>{today}</Dt>"), &format!("<Dt>{before}</Dt>"));
    bring(&shop, "three.xml", &other, 0).await;
    shop.run().await;
    let open = |tag: &str| format!("{tag} open orphan -");
    let told = || "same excluded told_before -".to_owned();
    let wanted = [
        vec![open("same"), open("same"), open("zero"), open("blank"), open("mine")],
        vec![told(), told(), open("same"), open("same"), open("zero"), open("blank")],
        vec![open("another"), open("same")],
    ];
    assert_eq!(lines(&shop).await, wanted.concat());
    shop.check(false).await;
}

/// Nothing is lost with the statement for whose sake it did not count.
async fn what_was_told_again_counts_when_the_other_is_taken_out(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[at_bank(2, "processing"), at_bank(3, "processing")]).await;
    let two = || credit(10_002, "pay_2");
    let first = with_refs("S1", &[credit(777, "nobody"), two()], &["AR1", "AR2"]);
    bring(&shop, "first.xml", &first, 0).await;
    let overlapping = [credit(777, "nobody"), credit(10_003, "pay_3")];
    bring(&shop, "days.xml", &with_refs("W1", &overlapping, &["AR1", "AR3"]), 0).await;
    shop.run().await;
    assert_eq!(lines(&shop).await[2], "nobody excluded told_before -");
    bring(&shop, "second.xml", &with_refs("S1", &[two()], &["AR2"]), 3).await;
    shop.tieout(&["files", "release", "3", "--reason", "sent again"]).await.ended(0);
    let ran = shop.run().await;
    assert_eq!(
        lines(&shop).await,
        [
            "nobody superseded orphan -",
            "pay_2 matched settled 2",
            "nobody open orphan -",
            "pay_3 matched settled 3",
            "pay_2 excluded statement_corrected -",
        ]
    );
    verified(&shop, &ran).await;
    shop.check(false).await;
}

/// A statement of one booking under a reference of the bank's, and the payments that it is made of.
fn with_batch(id: &str, reference: &str, parts: &[Booking]) -> String {
    let text = camt("camt.053", id, parts);
    let blocks = text.split("<NtryDtls>").skip(1);
    let details: Vec<&str> = blocks.map(|own| own.split("</NtryDtls>").next().unwrap()).collect();
    let details = details.concat();
    let (begin, end) = (text.find("<Ntry>").unwrap(), text.rfind("</Ntry>").unwrap());
    let sum = parts.iter().map(Booking::signed).sum::<i64>();
    let (mark, sum) = (if sum < 0 { "DBIT" } else { "CRDT" }, sum.abs());
    let today = chrono::Utc::now().date_naive();
    let entry = format!(
        "<Ntry><Amt Ccy=\"EUR\">{}.{:02}</Amt><CdtDbtInd>{mark}</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts>\
         <BookgDt><Dt>{today}</Dt></BookgDt><AcctSvcrRef>{reference}</AcctSvcrRef>\
         <NtryDtls>{details}</NtryDtls>",
        sum / 100,
        sum % 100
    );
    format!("{}{entry}{}", &text[..begin], &text[end..])
}

/// The bank's reference stands on the booking alone, as banks write it for a batch.
async fn a_batch_that_several_statements_tell_counts_once(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[1, 2].map(|id| at_bank(id, "processing"))).await;
    let batch = |id: &str, more: i64| {
        let same = (0..more).map(|_| credit(777, "same"));
        let own = [credit(10_001, "pay_1"), credit(10_002, "pay_2")];
        with_batch(id, "2026111700000001", &own.into_iter().chain(same).collect::<Vec<_>>())
    };
    bring(&shop, "day.xml", &batch("D1", 2), 0).await;
    // Of two equal parts one file tells two, and the other three.
    bring(&shop, "days.xml", &batch("W1", 3), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(ran.verdict(2), "succeeded settled");
    let told = |tag: &str| format!("{tag} excluded told_before -");
    let open = || "same open orphan -".to_owned();
    assert_eq!(
        lines(&shop).await,
        [
            "pay_1 matched settled 1".to_owned(),
            "pay_2 matched settled 2".to_owned(),
            open(),
            open(),
            told("pay_1"),
            told("pay_2"),
            told("same"),
            told("same"),
            open(),
        ]
    );
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    verified(&shop, &ran).await;
    shop.check(false).await;
}

async fn what_came_back_in_a_batch_is_not_doubled(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[1, 2].map(|id| at_bank(id, "processing"))).await;
    let paid = [credit(10_001, "pay_1"), credit(10_002, "pay_2")];
    bring(&shop, "paid.xml", &with_batch("D1", "PAIDREF000000001", &paid), 0).await;
    shop.run().await;
    let back = || [returned(4_000, "pay_1", "MD06"), returned(4_000, "pay_2", "MD06")];
    bring(&shop, "back.xml", &with_batch("D2", "BACKREF000000001", &back()), 0).await;
    shop.run().await;
    let says = async || {
        shop.texts("select text from tieout_cases where state = 'open' order by subject").await
    };
    let before = says().await;
    assert!(before.len() == 2 && before[0].contains("40.00 EUR"), "{before:?}");
    bring(&shop, "week.xml", &with_batch("W1", "BACKREF000000001", &back()), 0).await;
    shop.run().await;
    assert_eq!(says().await, before, "40.00 EUR of each came back, and not 80.00");
    assert_eq!(shop.count("tieout_lines where reason = 'told_before'").await, 2);
    shop.check(false).await;
}

/// An MT940 tells the sum, and a camt.053 what it is made of, in either order.
async fn a_sum_and_its_parts_are_one_booking(engine: Engine) {
    let parts = || {
        let own = [credit(10_001, "pay_1"), credit(10_002, "pay_2")];
        with_batch("D1", "2026111700000001", &own)
    };
    let sum = mt940(&[(20_003, "NOTPROVIDED", "2026111700000001")]);
    for is_first in [true, false] {
        let shop = shop_with_bank(engine).await;
        shop.insert(&[1, 2].map(|id| at_bank(id, "processing"))).await;
        let mut files = [("day.xml", parts()), ("day.sta", sum.clone())];
        if is_first {
            files.reverse();
        }
        for (name, text) in &files {
            bring(&shop, name, text, 0).await;
            shop.due_now().await;
            shop.run().await;
        }
        assert_eq!(shop.status(1).await, "paid");
        assert_eq!(shop.status(2).await, "paid");
        let mut told = lines(&shop).await;
        told.sort();
        assert_eq!(
            told,
            ["- excluded told_before -", "pay_1 matched settled 1", "pay_2 matched settled 2"],
            "the sum came first: {is_first}"
        );
        // Another sum under the same reference is another booking.
        let other = mt940(&[(20_004, "NOTPROVIDED", "2026111700000001")]);
        let other = other.replace(":28C:00001", ":28C:00002");
        bring(&shop, "other.sta", &other, 0).await;
        shop.run().await;
        assert_eq!(lines(&shop).await.last().unwrap(), "- open reference_missing -");
        shop.check(false).await;
    }
}

/// The parts were paid by the notice: a statement that lists them as well adds nothing.
async fn a_sum_that_a_notice_explained_is_not_told_by_its_parts(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[1, 2].map(|id| at_bank(id, "processing"))).await;
    let sum = mt940(&[(20_003, "NOTPROVIDED", "2026111700000001")]);
    bring(&shop, "day.sta", &sum.replace("12030000/0000202051", "DE02120300000000202051"), 0).await;
    let payments = [(10_001, "pay_1"), (10_002, "pay_2")];
    bring(&shop, "notice.xml", &notice("N1", "2026111700000001", &payments), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(ran.verdict(2), "succeeded settled");
    let own = [credit(10_001, "pay_1"), credit(10_002, "pay_2")];
    bring(&shop, "day.xml", &with_batch("D1", "2026111700000001", &own), 0).await;
    shop.due_now().await;
    let ran = shop.run().await;
    let again = "tieout_lines where reason = 'told_before' and of_file = 1 and of_position = 1";
    assert_eq!(shop.count(again).await, 2);
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    assert!(ran.verdicts().is_empty(), "{}", ran.stdout);
    shop.check(false).await;
}

async fn a_report_that_comes_twice_counts_once(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    let own = [
        ("charge", "ch_1", "100.00", "3.00", "97.00", "po_1"),
        ("payout", "po_1", "-97.00", "0.00", "-97.00", "po_1"),
    ];
    let next = ("charge", "ch_2", "100.00", "3.00", "97.00", "po_2");
    let paid = ("payout", "po_2", "-97.00", "0.00", "-97.00", "po_2");
    let report = stripe(&own);
    bring_cards(&shop, "report.csv", &report).await;
    bring_cards(&shop, "again.csv", &report.replace('\n', "\r\n")).await;
    bring_cards(&shop, "longer.csv", &stripe(&[own[0], own[1], next, paid])).await;
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &[credit(9_700, "po_1")]), 0).await;
    let ran = shop.run().await;
    assert_eq!(bank_lines(&shop).await, ["po_1 matched - tieout_payouts"]);
    assert_eq!(shop.count("tieout_lines where reason = 'told_before'").await, 4);
    assert_eq!(shop.count("tieout_lines where reason = 'told_before' and of_file = 1").await, 4);
    let report = verified(&shop, &ran).await;
    let told = payouts(&report);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("po_1 EUR 1 100.00"), "{told:?}");
    assert!(told[1].starts_with("po_2 EUR 1 100.00"), "{told:?}");
    // A row that stands twice under the id that is its own.
    let text = stripe(&[("charge", "ch_3", "5.00", "0.00", "5.00", "po_3")]);
    let row = text.lines().nth(1).unwrap();
    let path = shop.folder().join("doubled.csv");
    std::fs::write(&path, format!("{text}{row}\n")).unwrap();
    shop.tieout(&["ingest", path.to_str().unwrap(), "--account", "cards"]).await.ended(3);
    let case = shop.texts("select text from tieout_cases where state = 'open' and subject = '5'");
    let case = case.await;
    let says = "expected each id once, found txn_po_3_0 again, as on line 2";
    assert!(case[0].contains(says), "{case:?}");
    shop.check(false).await;
}

async fn a_day_of_bai2_in_other_bytes_is_held(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    let bai2 = |time: &str, day: &str| {
        format!(
            "01,122099999,123456789,261119,{time},1,,,2/\n\
             02,031001234,122099999,1,{day},2359,EUR,2/\n\
             03,0975312468,,010,500000,,,015,510001,,/\n\
             16,165,10001,Z,B1,pay_1,text\n\
             49,1020002,3/\n98,1020002,1,5/\n99,1020002,1,7/\n"
        )
    };
    bring(&shop, "one.bai", &bai2("0200", "261118"), 0).await;
    bring(&shop, "again.bai", &bai2("0300", "261118"), 3).await;
    bring(&shop, "next.bai", &bai2("0200", "261119"), 0).await;
    shop.run().await;
    assert_eq!(
        lines(&shop).await,
        ["pay_1 open orphan -", "pay_1 excluded statement_corrected -", "pay_1 open orphan -"]
    );
    assert_eq!(shop.open_cases().await, ["2 statement_corrected"]);
    shop.check(false).await;
}

/// A camt.053 of one day whose statement has a number, too.
fn numbered(id: &str, number: &str, bookings: &[Booking]) -> String {
    let text = camt("camt.053", id, bookings);
    let head = format!("<Stmt><Id>{id}</Id>");
    assert!(text.contains(&head), "{text}");
    text.replace(&head, &format!("{head}<ElctrncSeqNb>{number}</ElctrncSeqNb>"))
}

/// None of its lines has the bank's own reference: only the statement tells that they came before.
async fn a_statement_under_other_words_is_held(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[at_bank(1, "processing")]).await;
    let bookings = [credit(10_001, "pay_1"), debit(250, "")];
    let first = numbered("STMT-1", "1", &bookings);
    bring(&shop, "first.xml", &first, 0).await;
    let iban = "DE02120300000000202051";
    let others = [
        numbered("OTHER-26", "1", &bookings),
        numbered("OTHER-27", "2", &bookings),
        numbered("stmt-1", "001", &bookings),
        camt("camt.053", "STMT-1", &bookings),
        first.replace(iban, "DE02 1203 0000 0000 2020 51"),
        first.replace(iban, &iban.to_lowercase()),
        first.replace(&format!("<IBAN>{iban}</IBAN>"), "<Othr><Id>0000202051</Id></Othr>"),
        // Under one id and number it is a correction, whatever it books.
        numbered("stmt-1", "01", &[credit(10_001, "pay_1"), debit(250, ""), debit(251, "")]),
    ];
    for (at, other) in others.iter().enumerate() {
        bring(&shop, &format!("{at}.xml"), other, 3).await;
        let counted = "tieout_lines where state = 'open' and decides";
        assert_eq!(shop.count(counted).await, 2, "{at}");
    }
    let places = "select rival_file || '.' || rival_number from tieout_statements \
                  where state = 'held'";
    assert_eq!(shop.texts(places).await, vec!["1.1"; others.len()]);
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    let last = others.len() + 1;
    let words = ["files", "release", &last.to_string(), "--reason", "the bank corrected it"];
    shop.tieout(&words).await.ended(0);
    shop.run().await;
    let told = lines(&shop).await;
    assert_eq!(told[..2], ["pay_1 matched settled 1", "- open reference_missing -"]);
    assert_eq!(told[told.len() - 1], "- open reference_missing -");
    assert_eq!(shop.count("tieout_statements where state = 'live'").await, 1);
    let shown = shop.tieout(&["files", "show", &last.to_string()]).await.ended(0).stdout;
    let says = "was held as corrected, beside statement 1 of file 1, until it was released";
    assert!(shown.contains(says), "{shown}");
    shop.check(false).await;
}

/// Other days, another account, other lines, what ends as it began, what decides nothing, and what
/// is known by the bank's references.
async fn what_only_resembles_a_statement_counts_beside_it(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    let bookings = || [credit(10_001, "pay_1"), debit(250, "")];
    let first = camt("camt.053", "S-1", &bookings());
    bring(&shop, "first.xml", &first, 0).await;
    let today = chrono::Utc::now().date_naive();
    let before = format!("<Dt>{}</Dt>", today.pred_opt().unwrap());
    let other = camt("camt.053", "S-2", &bookings());
    let flat = [credit(250, "pay_3"), debit(250, "")];
    let even = |id: &str| camt("camt.053", id, &flat);
    let known = |id: &str| with_refs(id, &[credit(777, "same")], &["AR1"]);
    for (name, text) in [
        ("day", other.replace(&format!("<Dt>{today}</Dt>"), &before)),
        ("account", other.replace("DE02120300000000202051", "DE88100900001234567892")),
        ("lines", camt("camt.053", "S-4", &[credit(10_001, "pay_2"), debit(250, "")])),
        ("sums", camt("camt.053", "S-5", &[credit(10_002, "pay_1"), debit(251, "")])),
        ("even", even("S-6")),
        ("even again", even("S-7")),
        ("interim", camt("camt.052", "S-8", &bookings())),
        ("referenced", known("S-9")),
        ("referenced again", known("S-10")),
    ] {
        bring(&shop, &format!("{name}.xml"), &text, 0).await;
    }
    assert_eq!(shop.count("tieout_statements where state <> 'live'").await, 0);
    assert_eq!(shop.count("tieout_lines where reason = 'told_before'").await, 1);
    shop.check(false).await;
}

async fn rows_that_overlap_are_held_and_only_the_others_count(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    let rows = |rows: &[&str]| format!("Date;Reference;Amount;Currency;Balance\n{}", rows.concat());
    let all = [
        "2026-11-17;pay_1;+100.01;EUR;200.01\n",
        "2026-11-18;pay_2;+100.02;EUR;300.03\n",
        "2026-11-19;pay_3;+100.03;EUR;400.06\n",
        "2026-11-19;pay_4;+100.04;EUR;500.10\n",
        "2026-11-20;pay_5;+100.05;EUR;600.15\n",
    ];
    bring(&shop, "c1.csv", &rows(&all[..2]), 0).await;
    bring(&shop, "c2.csv", &rows(&all[1..3]), 3).await;
    shop.run().await;
    let held = "pay_2 excluded statement_corrected -";
    let first = ["pay_1 open orphan -", "pay_2 open orphan -", held];
    assert_eq!(lines(&shop).await[..3], first);
    assert_eq!(lines(&shop).await[3], "pay_3 excluded statement_corrected -");
    assert_eq!(shop.open_cases().await, ["2 statement_corrected"]);
    let case = shop.texts("select text from tieout_cases where state = 'open'").await;
    assert!(case[0].contains("every row of 2026-11-18 as in file 1 (c1.csv)"), "{case:?}");
    shop.tieout(&["files", "release", "2", "--reason", "a longer export"]).await.ended(0);
    // Another row of a day that was told is no overlap.
    bring(&shop, "c3.csv", &rows(&all[3..]), 0).await;
    let ran = shop.run().await;
    assert_eq!(lines(&shop).await[..3], first);
    assert_eq!(
        lines(&shop).await[3..],
        ["pay_3 open orphan -", "pay_4 open orphan -", "pay_5 open orphan -"]
    );
    // What two runs found no row for is somebody's to ask; the file is nobody's any more.
    assert_eq!(shop.open_cases().await, ["1:1 orphan", "1:2 orphan"]);
    verified(&shop, &ran).await;
    shop.check(false).await;
}

/// A bank's portal exports the day once more: for another program, or filled up.
async fn rows_are_known_again_however_they_are_written(engine: Engine) {
    let first = "Date;Reference;Amount;Currency;Balance\n\
                 2026-11-17;pay_1;+100.01;EUR;200.01\n2026-11-18;pay_2;+100.02;EUR;300.03\n";
    let quoted = first.lines().map(|row| format!("\"{}\"\n", row.replace(';', "\";\"")));
    for (name, text) in [
        ("commas", first.replace(';', ",")),
        ("tabs", first.replace(';', "\t")),
        ("quoted", quoted.collect()),
        ("blanks", first.replace(';', " ; ")),
        ("one more column", first.replace('\n', ";\r\n")),
    ] {
        let shop = shop_with_bank(engine).await;
        bring(&shop, "first.csv", first, 0).await;
        bring(&shop, "again.csv", &text, 3).await;
        assert_eq!(shop.open_cases().await, ["2 statement_corrected"], "{name}");
        shop.run().await;
        let open = "tieout_lines where decides and state = 'open'";
        assert_eq!(shop.count(open).await, 2, "{name}");
        let other = text.replace("100.02", "100.03").replace("300.03", "300.04");
        bring(&shop, "other.csv", &other.replace("2026-11-17", "2026-11-16"), 0).await;
        shop.check(false).await;
    }
}

/// How a page says its number.
type Numbered<'a> = &'a dyn Fn(&str, u8) -> String;

/// A page goes on where the one before it ended; whether it says its number or not.
async fn pages_of_a_statement_are_no_issues_of_each_other(engine: Engine) {
    let number = |text: &str, page: u8| {
        let head = "<Stmt><Id>S1</Id>";
        let own = format!("{head}<StmtPgntn><PgNb>{page}</PgNb></StmtPgntn>");
        text.replace(head, &own)
    };
    let message = |text: &str, page: u8| {
        let end = "</GrpHdr>";
        text.replace(end, &format!("<MsgPgntn><PgNb>{page}</PgNb></MsgPgntn>{end}"))
    };
    let plain = |text: &str, _page: u8| text.to_owned();
    let ways: [Numbered<'_>; 3] = [&number, &message, &plain];
    for way in ways {
        let shop = shop_with_bank(engine).await;
        shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing")]).await;
        let first = camt("camt.053", "S1", &[credit(10_001, "pay_1")]).replace("CLBD", "ITBD");
        let second = camt("camt.053", "S1", &[credit(10_002, "pay_2")]).replace("OPBD", "ITBD");
        let second = second.replace(">1000.00<", ">1100.01<").replace(">1100.02<", ">1200.03<");
        bring(&shop, "one.xml", &way(&first, 1), 0).await;
        bring(&shop, "two.xml", &way(&second, 2), 0).await;
        let ran = shop.run().await;
        assert_eq!(ran.verdict(1), "succeeded settled");
        assert_eq!(ran.verdict(2), "succeeded settled");
        assert_eq!(shop.open_cases().await, Vec::<String>::new());
        // The same page in other bytes is a correction.
        bring(&shop, "again.xml", &way(&second, 2).replace("06:00:00Z", "07:00:00Z"), 3).await;
        assert_eq!(shop.open_cases().await, ["3 statement_corrected"]);
        shop.check(false).await;
    }
}

/// A page of an MT940 in a file of its own: number, balances with their kinds, tag.
fn page_of_mt940(number: &str, from: (char, i64), to: (char, i64), tag: &str) -> String {
    let today = chrono::Utc::now().date_naive();
    let (day, month_day) = (today.format("%y%m%d"), today.format("%m%d"));
    let euros = |cents: i64| format!("{},{:02}", cents / 100, cents % 100);
    format!(
        ":20:X\n:25:12030000/0000202051\n:28C:{number}\n:60{}:C{day}EUR{}\n\
         :61:{day}{month_day}CR{}N051NONREF//B{tag}\n\
         :86:166?00SEPA?20EREF+{tag}?21SVWZ+x\n:62{}:C{day}EUR{}\n-\n",
        from.0,
        euros(from.1),
        euros(to.1 - from.1),
        to.0,
        euros(to.1),
    )
}

/// Each page ties by itself: that one between them never came is seen once a later one is there.
async fn a_page_of_mt940_that_is_lost_is_told(engine: Engine) {
    let first = page_of_mt940("45/1", ('F', 10_000), ('M', 20_000), "pay_1");
    let second = page_of_mt940("45/2", ('M', 20_000), ('M', 25_000), "pay_2");
    let third = page_of_mt940("45/3", ('M', 25_000), ('F', 27_500), "pay_3");
    let next = page_of_mt940("46/1", ('F', 27_500), ('F', 28_000), "pay_4");
    let missing =
        |file: i64, page: &str| format!("file {file}: the page after {page} file_missing");
    let shop = shop_with_bank(engine).await;
    bring(&shop, "one.sta", &first, 0).await;
    assert_eq!(shop.open_cases().await, Vec::<String>::new(), "it is to come");
    bring(&shop, "three.sta", &third, 0).await;
    assert_eq!(shop.open_cases().await, [missing(1, "45/1")]);
    let says = "expected the page after 45/1, which ended with 200.00 EUR, found 45/3, which \
                begins with 250.00 EUR: a page between them is lacking";
    let shown = async || {
        let shown = shop.tieout(&["files", "show", "1"]).await.ended(0).stdout;
        shown.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(shown().await.contains(says), "{}", shown().await);
    bring(&shop, "two.sta", &second, 0).await;
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    assert!(!shown().await.contains("is lacking"));
    shop.check(false).await;
    // The last page is lost, and the next statement is there.
    let shop = shop_with_bank(engine).await;
    for (name, text) in [("one", &first), ("two", &second), ("next", &next)] {
        bring(&shop, &format!("{name}.sta"), text, 0).await;
    }
    assert_eq!(shop.open_cases().await, [missing(2, "45/2")]);
    shop.check(false).await;
}

/// The same of another day.
fn of_day(text: &str, ago: u64) -> String {
    let today = chrono::Utc::now().date_naive();
    let day = today.checked_sub_days(chrono::Days::new(ago)).unwrap();
    let text = text
        .replace(&today.format("%y%m%d%m%d").to_string(), &day.format("%y%m%d%m%d").to_string());
    text.replace(&today.format("C%y%m%d").to_string(), &day.format("C%y%m%d").to_string())
}

/// The bank corrects where a statement ended, and a person lets that count.
async fn a_gap_that_a_correction_closes_is_none_any_more(engine: Engine) {
    let day = |number: u32, (from, to): (i64, i64), ago: u64| {
        let tag = format!("pay_{number}");
        of_day(&page_of_mt940(&format!("{number}/1"), ('F', from), ('F', to), &tag), ago)
    };
    let shop = shop_with_bank(engine).await;
    bring(&shop, "one.sta", &day(45, (10_000, 20_000), 3), 0).await;
    bring(&shop, "two.sta", &day(46, (25_000, 27_500), 2), 0).await;
    let gap = "statements of bank: the one before statement 46/1, file 2 file_missing";
    assert_eq!(shop.open_cases().await, [gap]);
    bring(&shop, "mended.sta", &day(45, (10_000, 25_000), 3), 3).await;
    assert_eq!(shop.open_cases().await.len(), 2, "it is held, and tells nothing");
    shop.tieout(&["files", "release", "3", "--reason", "the bank's"]).await.ended(0);
    shop.run().await.ended(0);
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    shop.check(false).await;
}

/// Each ties by itself: that one between two files never came is seen by where the account stood.
async fn a_statement_that_is_lost_between_two_files_is_told(engine: Engine) {
    let day = |number: u32, (from, to): (i64, i64), ago: u64| {
        let tag = format!("pay_{number}");
        of_day(&page_of_mt940(&format!("{number}/1"), ('F', from), ('F', to), &tag), ago)
    };
    let first = day(45, (10_000, 20_000), 3);
    let second = day(46, (20_000, 25_000), 2);
    let third = day(47, (25_000, 27_500), 1);
    let missing = |number: u32, file: i64| {
        let before = format!("the one before statement {number}/1, file {file}");
        format!("statements of bank: {before} file_missing")
    };
    let shop = shop_with_bank(engine).await;
    bring(&shop, "one.sta", &first, 0).await;
    bring(&shop, "three.sta", &third, 0).await;
    assert_eq!(shop.open_cases().await, [missing(47, 2)]);
    let says = "statement 47/1 of 12030000/0000202051 begins with 250.00 EUR (file 2, three.sta), \
                and statement 45/1 ended with 200.00 EUR on ";
    let text = shop.texts("select text from tieout_cases").await;
    assert!(text[0].starts_with(says), "{text:?}");
    bring(&shop, "two.sta", &second, 0).await;
    assert_eq!(shop.open_cases().await, Vec::<String>::new(), "it came late");
    shop.check(false).await;
    // A page that lacks before one of the same number in another account says nothing of it.
    let shop = shop_with_bank(engine).await;
    let other = |text: &str| text.replace("0000202051", "0000202052");
    let page = page_of_mt940("45/1", ('F', 10_000), ('M', 20_000), "pay_1");
    let next = page_of_mt940("45/3", ('M', 25_000), ('F', 27_500), "pay_3");
    let before = other(&of_day(&page_of_mt940("44/1", ('F', 1), ('F', 2), "pay_5"), 2));
    let after = other(&page_of_mt940("45/3", ('F', 3), ('F', 4), "pay_6"));
    for (name, text) in [("page", page), ("next", next), ("before", before), ("after", after)] {
        bring(&shop, &format!("{name}.sta"), &text, 0).await;
    }
    let gap = "statements of bank: the one before statement 45/3, file 4 file_missing";
    assert_eq!(shop.open_cases().await, ["file 1: the page after 45/1 file_missing", gap]);
    shop.check(false).await;
    // In any order, and one that moves nothing.
    let shop = shop_with_bank(engine).await;
    for (name, text) in [("three", &third), ("two", &second), ("one", &first)] {
        bring(&shop, &format!("{name}.sta"), text, 0).await;
        assert_eq!(shop.open_cases().await, Vec::<String>::new(), "{name}");
    }
    shop.check(false).await;
}

/// A statement of one payment, which begins with so many cents, by the kinds of its balances.
fn going_on(id: &str, opening: i64, payment: i64, kinds: [&str; 2]) -> String {
    let amount = |cents: i64| format!(">{}.{:02}<", cents / 100, cents % 100);
    let cents = 10_000 + payment;
    let text = camt("camt.053", id, &[credit(cents, &format!("pay_{payment}"))]);
    let text = text.replace(&amount(100_000 + cents), ">closing<");
    let text = text.replace(&amount(100_000), &amount(opening));
    let text = text.replace(">closing<", &amount(opening + cents));
    text.replace("OPBD", kinds[0]).replace("CLBD", kinds[1])
}

/// Statements in one message, which calls itself page 1 as nearly every one does.
fn one_message(statements: &[String]) -> String {
    let (head, _) = statements[0].split_once("<Stmt>").unwrap();
    let page = "<MsgPgntn><PgNb>1</PgNb><LastPgInd>true</LastPgInd></MsgPgntn></GrpHdr>";
    let mut text = head.replace("</GrpHdr>", page);
    for statement in statements {
        let (from, to) = (statement.find("<Stmt>"), statement.find("</BkToCstmrStmt>"));
        text.push_str(&statement[from.unwrap()..to.unwrap()]);
    }
    text + "</BkToCstmrStmt></Document>\n"
}

const BOOKED: [&str; 2] = ["OPBD", "CLBD"];

async fn pages_of_one_message_count_and_are_corrected_each_by_itself(engine: Engine) {
    let interim = [["OPBD", "ITBD"], ["ITBD", "ITBD"], ["ITBD", "CLBD"]];
    let mixed = [["OPBD", "ITBD"], ["OPBD", "ITBD"], BOOKED];
    for kinds in [interim, mixed, [BOOKED; 3]] {
        let shop = shop_with_bank(engine).await;
        shop.insert(&[1, 2, 3].map(|id| at_bank(id, "processing"))).await;
        let pages = [
            going_on("S1", 100_000, 1, kinds[0]),
            going_on("S1", 110_001, 2, kinds[1]),
            going_on("S1", 120_003, 3, kinds[2]),
        ];
        bring(&shop, "all.xml", &one_message(&pages), 0).await;
        let ran = shop.run().await;
        for id in 1..=3 {
            assert_eq!(ran.verdict(id), "succeeded settled", "{kinds:?}");
        }
        assert_eq!(shop.open_cases().await, Vec::<String>::new(), "{kinds:?}");
        // A correction of the second takes its place, and neither that of the first nor the third.
        let other = one_message(&[going_on("S1", 110_001, 4, kinds[1])]);
        bring(&shop, "other.xml", &other, 3).await;
        assert_eq!(shop.open_cases().await, ["2 statement_corrected"], "{kinds:?}");
        shop.tieout(&["files", "release", "2", "--reason", "sent again"]).await.ended(0);
        let ran = shop.run().await;
        let carried = &ran.of_type("released")[0];
        assert_eq!((&carried["added"], &carried["removed"]), (&1.into(), &1.into()), "{kinds:?}");
        assert_eq!(ran.verdict(2), "review late_contradiction", "{kinds:?}");
        assert_eq!(
            lines(&shop).await,
            [
                "pay_1 matched settled 1",
                "pay_2 superseded settled 2",
                "pay_3 matched settled 3",
                "pay_4 open orphan -",
            ],
            "{kinds:?}"
        );
        verified(&shop, &ran).await;
        shop.check(false).await;
    }
}

async fn statements_that_a_bank_calls_the_same_count_where_they_go_on(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[1, 2, 3].map(|id| at_bank(id, "processing"))).await;
    bring(&shop, "one.xml", &going_on("STMT", 100_000, 1, BOOKED), 0).await;
    bring(&shop, "two.xml", &going_on("STMT", 110_001, 2, BOOKED), 0).await;
    // The first of the day comes last.
    bring(&shop, "early.xml", &going_on("STMT", 89_997, 3, BOOKED), 0).await;
    let ran = shop.run().await;
    for id in 1..=3 {
        assert_eq!(ran.verdict(id), "succeeded settled");
    }
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    // What begins as one of them did is that one corrected; and nothing shows what this one is.
    for opening in [100_000, 110_001, 89_997, 50_000] {
        let other = going_on("STMT", opening, 4, BOOKED);
        bring(&shop, &format!("{opening}.xml"), &other, 3).await;
    }
    let rivals = "select cast(rival_file as text) from tieout_statements where state = 'held' \
                  order by file_id";
    assert_eq!(shop.texts(rivals).await, ["1", "2", "3", "1"]);
    assert_eq!(shop.open_cases().await.len(), 4);
    shop.check(false).await;

    let shop = shop_with_bank(engine).await;
    shop.insert(&[1, 2].map(|id| at_bank(id, "processing"))).await;
    let second = mt940(&[(10_002, "pay_2", "AR2")]);
    let second = second.replace("EUR1100,02", "EUR1200,03").replace("EUR1000,00", "EUR1100,01");
    bring(&shop, "one.sta", &mt940(&[(10_001, "pay_1", "AR1")]), 0).await;
    bring(&shop, "two.sta", &second, 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(ran.verdict(2), "succeeded settled");
    bring(&shop, "again.sta", &second.replace("AR2", "AR9"), 3).await;
    bring(&shop, "first.sta", &mt940(&[(10_001, "pay_1", "AR8")]), 3).await;
    assert_eq!(shop.open_cases().await, ["3 statement_corrected", "4 statement_corrected"]);
    shop.check(false).await;
}

/// The third came before the second, and nothing showed that it was no correction of the first.
async fn a_release_takes_out_what_it_replaces_and_nothing_before_it(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[1, 2, 3].map(|id| at_bank(id, "processing"))).await;
    bring(&shop, "one.xml", &going_on("S1", 100_000, 1, BOOKED), 0).await;
    bring(&shop, "three.xml", &going_on("S1", 120_003, 3, BOOKED), 3).await;
    bring(&shop, "two.xml", &going_on("S1", 110_001, 2, BOOKED), 0).await;
    let words = ["files", "release", "2", "--reason", "the third of the day", "--json"];
    let said = shop.tieout(&words).await.ended(0);
    let difference = &said.of_type("settlement_difference")[0];
    assert_eq!(difference["removed"].as_array().unwrap().len(), 0, "{difference}");
    let ran = shop.run().await;
    let carried = &ran.of_type("released")[0];
    assert_eq!((&carried["added"], &carried["removed"]), (&1.into(), &0.into()));
    for id in 1..=3 {
        assert_eq!(ran.verdict(id), "succeeded settled");
    }
    let named = "select statement_id from tieout_statements where state = 'live' order by file_id";
    let pages = ["S1", "S1 page from 1200.03 EUR", "S1 page from 1100.01 EUR"];
    assert_eq!(shop.texts(named).await, pages);
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    verified(&shop, &ran).await;
    shop.check(false).await;
}

async fn bytes_that_came_for_another_account_are_told(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    bring(&shop, "one.xml", &camt("camt.053", "S1", &[credit(10_001, "pay_1")]), 0).await;
    let path = shop.folder().join("one.xml");
    let words = ["ingest", path.to_str().unwrap(), "--account", "cards"];
    let again = shop.tieout(&words).await.ended(3);
    let said = again.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("file 1 already, of the account bank"), "{said}");
    assert!(said.contains("hint: "), "{said}");
    assert_eq!(shop.count("tieout_lines").await, 1);
    shop.check(false).await;
}

/// Some banks write one reference for all that they book on a day. A line without a tag may be any
/// of these; it is not two of them.
async fn a_reference_of_a_whole_day_is_not_one_booking(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    let row = |id| Payment { amount: Some(999), ..at_bank(id, "processing") };
    shop.insert(&[row(1), row(2)]).await;
    let refs = ["BATCH0001", "BATCH0001"];
    let (one, two) = (|| credit(999, "pay_1"), || credit(999, "pay_2"));
    bring(&shop, "one.xml", &with_refs("D1", &[one()], &refs[..1]), 0).await;
    bring(&shop, "two.xml", &with_refs("D2", &[two()], &refs[..1]), 0).await;
    bring(&shop, "days.xml", &with_refs("W1", &[one(), two()], &refs), 0).await;
    let bare = |cents| credit(cents, "NOTPROVIDED");
    bring(&shop, "bare.xml", &with_refs("D3", &[bare(999)], &refs[..1]), 0).await;
    let refs = ["BATCH0002"];
    for (id, booking) in [("D4", bare(998)), ("D5", credit(998, "a")), ("D6", credit(998, "b"))] {
        bring(&shop, &format!("{id}.xml"), &with_refs(id, &[booking], &refs), 0).await;
    }
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(ran.verdict(2), "succeeded settled");
    assert_eq!(
        lines(&shop).await,
        [
            "pay_1 matched settled 1",
            "pay_2 matched settled 2",
            "pay_1 excluded told_before -",
            "pay_2 excluded told_before -",
            "- excluded told_before -",
            "- excluded told_before -",
            "a open orphan -",
            "b open orphan -",
        ]
    );
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    verified(&shop, &ran).await;
    shop.check(false).await;
}

async fn a_reference_that_mt940_cut_is_the_same(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[1, 2, 3].map(|id| at_bank(id, "processing"))).await;
    let whole = |n: i64| format!("202611180012345{n}-00000{n}");
    let cut = |n: i64| format!("202611180012345{n}");
    assert_eq!(cut(1).len(), 16);
    let pay = |n: i64| credit(10_000 + n, &format!("pay_{n}"));
    let refs = [whole(1), whole(2), whole(3)];
    let refs = refs.each_ref().map(String::as_str);
    bring(&shop, "day.xml", &with_refs("D1", &[pay(1), pay(2)], &refs[..2]), 0).await;
    let own = [cut(1), cut(2), cut(3), cut(7)];
    let own = own.each_ref().map(String::as_str);
    let swift = mt940(&[
        (10_001, "pay_1", own[0]),
        (10_002, "pay_2", own[1]),
        (10_003, "pay_3", own[2]),
        // Another payment's reference begins with other letters; another payment has another tag.
        (10_002, "pay_2", own[3]),
        (10_001, "another", own[0]),
    ]);
    bring(&shop, "day.sta", &swift, 0).await;
    bring(&shop, "next.xml", &with_refs("D2", &[pay(3)], &refs[2..]), 0).await;
    // What was not cut is compared to its end.
    for n in [4, 5] {
        let name = format!("{n}.xml");
        let own = format!("{}-00000{n}", cut(4));
        let text = with_refs(&name, &[credit(777, "same")], &[own.as_str()]);
        bring(&shop, &name, &text, 0).await;
    }
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(ran.verdict(2), "review duplicate_capture");
    assert_eq!(ran.verdict(3), "succeeded settled");
    assert_eq!(
        lines(&shop).await,
        [
            "pay_1 matched settled 1",
            "pay_2 matched duplicate_capture 2",
            "pay_1 excluded told_before -",
            "pay_2 excluded told_before -",
            "pay_3 matched settled 3",
            "pay_2 matched duplicate_capture 2",
            "another open orphan -",
            "pay_3 excluded told_before -",
            "same open orphan -",
            "same open orphan -",
        ]
    );
    verified(&shop, &ran).await;
    shop.check(false).await;
}

/// The other statement has the tag in capitals, without its marks, or cut, and comes before or
/// after.
async fn a_tag_that_a_bank_wore_down_is_the_same(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[1, 2, 3].map(|id| at_bank(id, "processing"))).await;
    let long = format!("order-of-the-day-{:018}", 7);
    assert_eq!(long.len(), 35);
    let own = ["REF00000001", "REF00000002", "REF00000003", "REF00000004"];
    let first = [credit(10_001, "pay_1"), credit(777, &long)];
    bring(&shop, "day.xml", &with_refs("D1", &first, &[own[0], own[2]]), 0).await;
    let swift = mt940(&[
        (10_001, "PAY_1", own[0]),
        (10_002, "pay2", own[1]),
        (777, &long[..27], own[2]),
        (10_003, "pay_3", own[3]),
    ]);
    bring(&shop, "day.sta", &swift, 0).await;
    let before = shop.run().await;
    assert_eq!(before.verdict(1), "succeeded settled");
    assert_eq!(before.verdict(2), "review tag_near_miss");
    assert_eq!(before.verdict(3), "succeeded settled");
    assert_eq!(lines(&shop).await[3], "pay2 open orphan -");
    // The whole tag comes after the worn one. Tags that only begin alike are two payments.
    let more = [credit(10_002, "pay_2"), credit(10_003, "pay_30")];
    bring(&shop, "more.xml", &with_refs("D2", &more, &[own[1], own[3]]), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(2), "succeeded settled");
    assert_eq!(
        lines(&shop).await,
        [
            "pay_1 matched settled 1".to_owned(),
            format!("{long} open orphan -"),
            "PAY_1 excluded told_before -".to_owned(),
            "pay2 excluded told_before -".to_owned(),
            format!("{} excluded told_before -", &long[..27]),
            "pay_3 matched settled 3".to_owned(),
            "pay_2 matched settled 2".to_owned(),
            "pay_30 open orphan -".to_owned(),
        ]
    );
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    verified(&shop, &before).await;
    verified(&shop, &ran).await;
    shop.check(false).await;
}

/// The first file has no tags, and another one of the same bookings has them: a payment, and what
/// came back of a paid row. A third file without them tells nothing new.
async fn a_booking_whose_tag_a_later_file_tells_finds_its_row(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "paid")]).await;
    let own = ["REF00000001", "REF00000002"];
    let day = |id: &str, tags: [&str; 2]| {
        let bookings = [credit(10_001, tags[0]), returned(10_002, tags[1], "MD06")];
        with_refs(id, &bookings, &own)
    };
    bring(&shop, "week.xml", &day("W1", ["NOTPROVIDED"; 2]), 0).await;
    shop.run().await;
    assert_eq!(shop.status(1).await, "processing");
    bring(&shop, "day.xml", &day("D1", ["pay_1", "pay_2"]), 0).await;
    shop.due_now().await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(shop.open_cases().await, ["2 late_contradiction"]);
    let told = "- excluded told_before -";
    let counts = ["pay_1 matched settled 1", "pay_2 matched late_contradiction 2"];
    assert_eq!(lines(&shop).await, [told, told, counts[0], counts[1]]);
    bring(&shop, "month.xml", &day("M1", ["NOTPROVIDED"; 2]), 0).await;
    bring(&shop, "day.sta", &mt940(&[(10_001, "NOTPROVIDED", own[0])]), 0).await;
    verified(&shop, &ran).await;
    shop.run().await;
    assert_eq!(lines(&shop).await, [told, told, counts[0], counts[1], told, told, told]);
    shop.check(false).await;
}

async fn an_account_is_one_however_its_statements_write_it(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[at_bank(1, "processing")]).await;
    let both = [credit(10_001, "pay_1"), credit(777, "nobody")];
    bring(&shop, "day.xml", &with_refs("D1", &both, &["AR1", "AR2"]), 0).await;
    let mut told = vec!["pay_1 matched settled 1".to_owned(), "nobody open orphan -".to_owned()];
    let swift = mt940(&[(10_001, "pay_1", "AR1")]);
    for account in ["12030000/202051", "12030000/202051EUR", "202051", "0000202051EUR"] {
        let text = swift.replace("12030000/0000202051", account);
        bring(&shop, "day.sta", &text, 0).await;
        told.push("pay_1 excluded told_before -".to_owned());
    }
    shop.run().await;
    assert_eq!(lines(&shop).await, told);
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    // Another bank's account of the same number, and another one at the same bank.
    let swift = mt940(&[(777, "nobody", "AR2")]);
    for account in ["12030001/202051", "12030000/1202051"] {
        let text = swift.replace("12030000/0000202051", account);
        bring(&shop, "day.sta", &text, 0).await;
        told.push("nobody open orphan -".to_owned());
    }
    shop.run().await;
    assert_eq!(lines(&shop).await, told);
    shop.check(false).await;
}

/// Nothing tells two bookings from one that two files tell: nobody is to give money back before the
/// bank was asked. In one file they are two.
async fn what_may_be_one_booking_is_asked_of_the_bank(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing")]).await;
    let two = || credit(10_002, "pay_2");
    let first = [credit(10_001, "pay_1"), two(), two()];
    bring(&shop, "day.xml", &camt("camt.053", "D1", &first), 0).await;
    bring(&shop, "days.xml", &camt("camt.053", "W1", &[credit(10_001, "pay_1")]), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "review duplicate_capture");
    assert_eq!(ran.verdict(2), "review duplicate_capture");
    let report = verified(&shop, &ran).await;
    let mut reader = csv::Reader::from_path(report.join("exceptions.csv")).unwrap();
    let rows: Vec<BTreeMap<String, String>> = reader.deserialize().map(Result::unwrap).collect();
    let one = "it may be one booking that two files tell";
    for (id, action) in [("1", "contact_bank"), ("2", "refund_duplicate")] {
        let row = rows.iter().find(|row| row["internal_id"] == id).unwrap();
        assert_eq!(row["suggested_action"], action, "{row:?}");
        assert_eq!(row["reason_text"].contains(one), id == "1", "{row:?}");
        let shown = shop.tieout(&["cases", "show", &row["case_id"]]).await.ended(0).stdout;
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(shown.contains("ask the bank how often it was booked"), id == "1", "{shown}");
        assert_eq!(shown.contains("suggested refund"), id == "2", "{shown}");
    }
    shop.check(false).await;
}

/// The row stores the place of a line that is gone, and the same booking stands elsewhere: it has
/// that line, and a person is told that not all say it any more.
async fn a_row_is_paid_by_the_line_that_was_told_again(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing")]).await;
    let (one, two) = (|| credit(10_001, "pay_1"), || credit(10_002, "pay_2"));
    bring(&shop, "first.xml", &with_refs("S1", &[one(), two()], &["AR1", "AR2"]), 0).await;
    let swift = mt940(&[(10_001, "pay_1", "AR1"), (10_002, "pay_2", "AR2")]);
    bring(&shop, "day.sta", &swift, 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(2), "succeeded settled");
    let stored = "select psp_ref from payments where id = 2";
    assert_eq!(shop.texts(stored).await, ["1:2"]);
    bring(&shop, "second.xml", &with_refs("S1", &[one()], &["AR1"]), 3).await;
    shop.tieout(&["files", "release", "3", "--reason", "sent again"]).await.ended(0);
    shop.run().await;
    assert_eq!(shop.open_cases().await, ["2 late_contradiction"]);
    assert_eq!(shop.status(2).await, "paid");
    let told = lines(&shop).await;
    assert_eq!(told[1], "pay_2 superseded settled 2");
    assert!(told[3].starts_with("pay_2 matched "), "{told:?}");
    shop.due_now().await;
    shop.run().await;
    assert_eq!(shop.open_cases().await, ["2 late_contradiction"]);
    shop.check(false).await;
}

/// The second issue has no line of the paid row, which is a case; the third one has it again.
async fn a_line_that_a_third_issue_brings_back_ends_the_case(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing")]).await;
    let (one, two) = (|| credit(10_001, "pay_1"), || credit(10_002, "pay_2"));
    let first = with_refs("S1", &[one(), two()], &["AR1", "AR2"]);
    bring(&shop, "first.xml", &first, 0).await;
    shop.run().await;
    bring(&shop, "second.xml", &with_refs("S1", &[one()], &["AR1"]), 3).await;
    shop.tieout(&["files", "release", "2", "--reason", "corrected"]).await.ended(0);
    shop.run().await;
    shop.due_now().await;
    shop.run().await;
    assert_eq!(shop.open_cases().await, ["2 late_contradiction"]);
    bring(&shop, "third.xml", &first.replace("06:00:00Z", "07:00:00Z"), 3).await;
    shop.tieout(&["files", "release", "3", "--reason", "it was right"]).await.ended(0);
    let ran = shop.run().await;
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    assert_eq!(shop.status(2).await, "paid");
    assert_eq!(lines(&shop).await.last().map(String::as_str), Some("pay_2 matched - 2"));
    verified(&shop, &ran).await;
    shop.check(false).await;
}

/// Brings a file of the cards in that is not taken, and gives what its case says.
async fn refused(shop: &Shop, name: &str, text: &str, id: i64) -> String {
    let path = shop.folder().join(name);
    std::fs::write(&path, text).unwrap();
    let ran = shop.tieout(&["ingest", path.to_str().unwrap(), "--account", "cards"]).await;
    let said = ran.ended(3).stderr;
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("another file has it otherwise"), "{said}");
    let of = format!("where state = 'open' and subject = '{id}'");
    let case = shop.texts(&format!("select text from tieout_cases {of}")).await;
    case.into_iter().next().unwrap()
}

/// The same row of the PSP with other money is no second payment.
async fn a_report_that_has_a_row_otherwise_is_for_a_person(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    let row = |fee, net| ("charge", "ch_1", "10.00", fee, net, "po_1");
    let next = ("charge", "ch_2", "5.00", "0.10", "4.90", "po_1");
    bring_cards(&shop, "one.csv", &stripe(&[row("0.30", "9.70")])).await;
    let case = refused(&shop, "two.csv", &stripe(&[row("0.35", "9.65"), next]), 2).await;
    let says = "line 2: id: expected 9.70 EUR (fee 0.30 EUR) as line 2 of file 1 has it, \
                found 9.65 EUR (fee 0.35 EUR)";
    assert!(case.contains(says), "{case}");
    assert_eq!(shop.count("tieout_lines").await, 1);
    // A person's word lets only those of its rows count that no other file has.
    shop.tieout(&["files", "release", "2", "--reason", "the first is right"]).await.ended(0);
    let ran = shop.run().await;
    assert_eq!(
        shop.texts("select state from tieout_lines order by file_id, position").await,
        ["open", "excluded", "open"]
    );
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    verified(&shop, &ran).await;
    // The same row with the same money is told again, as ever.
    let again = stripe(&[row("0.30", "9.70")]).replace('\n', "\r\n");
    bring_cards(&shop, "again.csv", &again).await;
    assert_eq!(shop.count("tieout_lines where reason = 'told_before'").await, 2);
    shop.check(false).await;
}

/// A transaction detail report of PayPal, brought as that of a day: id, invoice, event, way, cents,
/// status, and the transaction that it is of.
pub fn paypal(day: u32, rows: &[(&str, &str, &str, &str, i64, &str, &str)]) -> String {
    let today = chrono::Utc::now().format("%Y/%m/%d 00:00:00 +0000");
    let names = [
        "Transaction ID",
        "Invoice ID",
        "PayPal Reference ID",
        "PayPal Reference ID Type",
        "Transaction Event Code",
        "Transaction Initiation Date",
        "Transaction Completion Date",
        "Transaction  Debit or Credit",
        "Gross Transaction Amount",
        "Gross Transaction Currency",
        "Fee Debit or Credit",
        "Fee Amount",
        "Fee Currency",
        "Transactional Status",
    ];
    let mut text = format!(
        "\"RH\",\"2026/11/20 03:00:00 -0700\",\"A\",\"ACCOUNT1\",\"11\"\n\"FH\",1\n\
         \"SH\",\"2026/11/{day} 00:00:00 -0700\",\"2026/11/{day} 23:59:59 -0700\",\
         \"ACCOUNT1\",\"shop@example.com\"\n\"CH\",\"{}\"\n",
        names.join("\",\"")
    );
    let (mut credits, mut debits) = (0, 0);
    for (id, invoice, event, way, cents, status, of) in rows {
        let kind = if of.is_empty() { "" } else { "TXN" };
        text.push_str(&format!(
            "\"SB\",\"{id}\",\"{invoice}\",\"{of}\",\"{kind}\",\"{event}\",{today},{today},\
             \"{way}\",{cents},\"EUR\",\"\",,\"\",\"{status}\"\n"
        ));
        let side = if *way == "CR" { &mut credits } else { &mut debits };
        *side += cents;
    }
    let count = rows.len();
    for (sums, rows) in [("SF", "SC"), ("RF", "RC")] {
        text.push_str(&format!(
            "\"{sums}\",\"EUR\",{credits},{debits},0,0,{count}\n\"{rows}\",{count}\n"
        ));
    }
    text + &format!("\"FF\",{count}\n")
}

/// A row that was reversed took place and came back, in whatever file that is told.
async fn what_paypal_reversed_came_back(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    let row = |id| Payment { account: "cards", ..Payment::stuck(id) };
    shop.insert(&[1, 2, 3, 4].map(row)).await;
    let sale = |id, invoice, cents, status| (id, invoice, "T0006", "CR", cents, status, "");
    let (one, two) = (sale("T1", "pay_1", 10_001, "V"), sale("T2", "pay_2", 10_002, "S"));
    let three = sale("T3", "pay_3", 10_003, "V");
    let back = ("T9", "pay_3", "T1106", "DR", 10_003, "S", "T3");
    let four = sale("T4", "pay_4", 10_004, "S");
    bring_cards(&shop, "one.csv", &paypal(18, &[one, two, three, back, four])).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "review returned");
    assert_eq!(ran.verdict(2), "succeeded settled");
    assert_eq!(ran.verdict(3), "review returned");
    assert_eq!(ran.verdict(4), "succeeded settled");
    let mut matched = csv::Reader::from_path(dir(&shop, &ran).join("matched.csv")).unwrap();
    let matched = matched.deserialize::<BTreeMap<String, String>>().map(Result::unwrap);
    let mut differs: Vec<String> =
        matched.map(|line| format!("{} {}", line["internal_id"], line["difference"])).collect();
    differs.sort();
    assert_eq!(differs, ["1 -100.01", "2 0.00", "3 -100.03", "4 0.00"], "it came, and went back");
    verified(&shop, &ran).await;
    // The day after: the one was reversed, the other is told again.
    let two = sale("T2", "pay_2", 10_002, "V");
    bring_cards(&shop, "two.csv", &paypal(19, &[two, four])).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(2), "review late_contradiction");
    assert_eq!(ran.verdict(4), "not decided");
    assert_eq!(shop.status(2).await, "paid");
    let told = lines(&shop).await;
    assert!(told[5].starts_with("pay_2 matched "), "{told:?}");
    assert_eq!(told[6], "pay_4 excluded told_before -");
    verified(&shop, &ran).await;
    shop.check(false).await;
}

/// The payment's own row says that it came back, and so does the row by which it did, in the same
/// file or in a later one.
async fn what_paypal_reversed_is_one_movement(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    let row = |id| Payment { account: "cards", ..Payment::stuck(id) };
    shop.insert(&[row(1), row(2)]).await;
    let sale = |id, invoice, cents, status| (id, invoice, "T0006", "CR", cents, status, "");
    let back = |id, invoice, cents, of| (id, invoice, "T1106", "DR", cents, "S", of);
    let sold = [sale("T1", "pay_1", 10_001, "S"), sale("T2", "pay_2", 10_002, "S")];
    bring_cards(&shop, "one.csv", &paypal(18, &sold)).await;
    shop.run().await;
    let next = [
        sale("T1", "pay_1", 10_001, "V"),
        back("R1", "pay_1", 10_001, "T1"),
        sale("T2", "pay_2", 10_002, "V"),
    ];
    bring_cards(&shop, "two.csv", &paypal(19, &next)).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "review late_contradiction");
    assert_eq!(ran.verdict(2), "review late_contradiction");
    bring_cards(&shop, "three.csv", &paypal(20, &[back("R2", "pay_2", 10_002, "T2")])).await;
    shop.run().await.ended(0);
    let told = lines(&shop).await;
    assert!(told[2].starts_with("pay_1 matched "), "{told:?}");
    assert_eq!(told[3], "pay_1 excluded told_before -");
    assert!(told[4].starts_with("pay_2 matched "), "{told:?}");
    assert_eq!(told[5], "pay_2 excluded told_before -");
    let moved = "sum(case direction when 'credit' then amount_minor else -amount_minor end)";
    let left = format!("select cast({moved} as text) from tieout_lines where state = 'matched'");
    assert_eq!(shop.texts(&left).await, ["0"], "what is left in the balance");
    assert_eq!([shop.status(1).await, shop.status(2).await], ["paid", "paid"]);
    verified(&shop, &ran).await;
    shop.check(false).await;
}

/// A search of Braintree's: id, order, cents, status, and the day of its disbursement.
pub fn braintree(rows: &[(&str, &str, i64, &str, &str)]) -> String {
    let today = chrono::Utc::now().format("%m/%d/%Y");
    let mut text = "\"Transaction ID\",\"Transaction Type\",\"Transaction Status\",\
        \"Created Datetime\",\"Settlement Date\",\"Disbursement Date\",\"Currency ISO Code\",\
        \"Amount Submitted For Settlement\",\"Order ID\"\n"
        .to_owned();
    for (id, order, cents, status, paid_out) in rows {
        let amount = format!("{}.{:02}", cents / 100, cents % 100);
        text.push_str(&format!(
            "\"{id}\",\"sale\",\"{status}\",\"{today} 00:00:00\",\"{today}\",\"{paid_out}\",\
             \"EUR\",\"{amount}\",\"{order}\"\n"
        ));
    }
    text
}

/// A transaction that was paid out since is the same; one that is void since is for a person.
async fn what_braintree_settled_is_settled_once(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    let row = |id| Payment { account: "cards", ..Payment::stuck(id) };
    shop.insert(&[row(1), row(2)]).await;
    let one = |status, paid_out| ("bt1", "pay_1", 10_001, status, paid_out);
    // What was never settled may be void.
    let never = ("bt9", "pay_9", 500, "voided", "");
    bring_cards(&shop, "one.csv", &braintree(&[one("settled", ""), never])).await;
    let two = ("bt2", "pay_2", 10_002, "settled", "");
    let later = chrono::Utc::now().date_naive().succ_opt().unwrap();
    let later = later.format("%m/%d/%Y").to_string();
    bring_cards(&shop, "two.csv", &braintree(&[one("settled", &later), two])).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(ran.verdict(2), "succeeded settled");
    let told = lines(&shop).await;
    assert_eq!(told[2], "pay_1 excluded told_before -");
    verified(&shop, &ran).await;
    for (n, status) in [(3, "voided"), (4, "settlement_declined")] {
        let text = braintree(&[two, one(status, ""), never]);
        let case = refused(&shop, &format!("{n}.csv"), &text, n).await;
        let says = "line 3: Transaction Status: expected settled, as line 2 of file 1 has it";
        assert!(case.contains(&format!("{says}, found {status}")), "{case}");
    }
    assert_eq!(lines(&shop).await, told);
    shop.check(false).await;
}
