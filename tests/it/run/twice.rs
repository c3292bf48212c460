//! One booking that two files tell counts once, and two bookings that look alike count twice.

use super::files::{Booking, at_bank, bring, camt, credit, lines, shop_with_bank};
use super::payouts::{bank_lines, bring_cards, dir, payouts, shop_with_cards_and_bank, stripe};
use crate::run::shop::{Engine, Ran, Shop, on_both_databases};

on_both_databases!(
    a_booking_that_several_statements_tell_counts_once,
    what_looks_alike_counts_each_time,
    what_was_told_again_counts_when_the_other_is_taken_out,
    a_report_that_comes_twice_counts_once,
    a_day_of_bai2_in_other_bytes_is_held,
    rows_that_overlap_are_held_and_only_the_others_count,
    pages_of_a_statement_are_no_issues_of_each_other,
    bytes_that_came_for_another_account_are_told,
);

/// A statement whose bookings carry the bank's references, in their order; an empty one is none.
fn with_refs(id: &str, bookings: &[Booking], refs: &[&str]) -> String {
    // Of the day that its bookings are of.
    let today = chrono::Utc::now().date_naive().to_string();
    let text = camt("camt.053", id, bookings).replace("2026-11-18", &today);
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

async fn rows_that_overlap_are_held_and_only_the_others_count(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    let rows = |rows: &[&str]| format!("Date;Reference;Amount;Currency;Balance\n{}", rows.concat());
    let all = [
        "2026-11-17;pay_1;100.01;EUR;200.01\n",
        "2026-11-18;pay_2;100.02;EUR;300.03\n",
        "2026-11-19;pay_3;100.03;EUR;400.06\n",
        "2026-11-19;pay_4;100.04;EUR;500.10\n",
        "2026-11-20;pay_5;100.05;EUR;600.15\n",
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
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    verified(&shop, &ran).await;
    shop.check(false).await;
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
