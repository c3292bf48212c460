//! A bank that changes from MT940 to camt.053 sends both, without a reference in common: what moved
//! counts once.

use std::fmt::Write as _;

use super::files::{at_bank, bring, camt, credit, debit, lines, returned, shop_with_bank};
use crate::run::shop::{Engine, on_both_databases};
use crate::support::events;

on_both_databases!(
    a_statement_in_two_formats_counts_once,
    of_two_formats_the_line_that_names_the_row_counts,
    statements_that_differ_in_a_balance_count_each,
    sums_of_the_other_format_count_once,
    a_banks_csv_with_its_balances_beside_the_statement_counts_once,
    what_one_format_corrects_and_the_other_tells_still_is_for_a_person,
    what_one_format_corrects_pays_no_row_that_comes_later,
);

/// The day's MT940 of the same account: cents, + being money that came in, and a tag or none.
fn mt940(bookings: &[(i64, &str)]) -> String {
    let today = chrono::Utc::now().date_naive();
    let before = today.pred_opt().unwrap();
    let day = today.format("%y%m%d");
    let euros = |cents: i64| format!("{},{:02}", cents.abs() / 100, cents.abs() % 100);
    let mut text = format!(
        ":20:X\n:25:12030000/0000202051\n:28C:7/1\n:60F:C{}EUR{}\n",
        before.format("%y%m%d"),
        euros(100_000)
    );
    for (cents, tag) in bookings {
        let mark = if *cents < 0 { "D" } else { "C" };
        let tag = if tag.is_empty() { String::new() } else { format!("?20EREF+{tag}") };
        writeln!(text, ":61:{day}{mark}{}NTRFNONREF\n:86:166?00SEPA{tag}?21SVWZ+x", euros(*cents))
            .unwrap();
    }
    let sum: i64 = bookings.iter().map(|(cents, _)| cents).sum();
    writeln!(text, ":62F:C{day}EUR{}\n-", euros(100_000 + sum)).unwrap();
    text
}

/// Those with a tag, equal ones without, what came back, and the bank's own fee.
async fn a_statement_in_two_formats_counts_once(engine: Engine) {
    for camt_first in [true, false] {
        let shop = shop_with_bank(engine).await;
        shop.insert(&[1, 2].map(|id| at_bank(id, "processing"))).await;
        let bookings = [
            credit(10_001, "pay_1"),
            credit(10_002, "pay_2"),
            credit(777, ""),
            credit(777, ""),
            returned(10_002, "pay_2", "AC04"),
            debit(190, ""),
        ];
        let xml = camt("camt.053", "D1", &bookings);
        let swift = mt940(&[
            (10_001, "pay_1"),
            (10_002, "pay_2"),
            (777, ""),
            (777, ""),
            (-10_002, "pay_2"),
            (-190, ""),
        ]);
        let mut files = [("day.xml", xml), ("day.sta", swift)];
        if !camt_first {
            files.reverse();
        }
        for (name, text) in &files {
            bring(&shop, name, text, 0).await;
        }
        let ran = shop.run().await;
        assert_eq!(ran.verdict(1), "succeeded settled");
        assert_eq!(ran.verdict(2), "review returned");
        let told = lines(&shop).await;
        let is_again = |line: &&String| line.contains(" told_before ");
        assert_eq!(told.iter().filter(is_again).count(), 6, "{told:?}");
        assert_eq!(told.len(), 12);
        let shown = shop.tieout(&["files", "show", "2"]).await.ended(0).stdout;
        assert!(shown.contains("another file tells"), "{shown}");
        shop.check(false).await;
    }
}

async fn of_two_formats_the_line_that_names_the_row_counts(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[1, 2].map(|id| at_bank(id, "processing"))).await;
    bring(&shop, "day.sta", &mt940(&[(10_001, ""), (10_002, "PAY2"), (777, "")]), 0).await;
    let ran = shop.run().await;
    assert_ne!(ran.verdict(1), "succeeded settled");
    let bookings = [credit(10_001, "pay_1"), credit(10_002, "pay_2"), credit(777, "")];
    bring(&shop, "day.xml", &camt("camt.053", "D1", &bookings), 0).await;
    shop.due_now().await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(ran.verdict(2), "succeeded settled");
    assert_eq!(
        lines(&shop).await,
        [
            "- excluded told_before -",
            "PAY2 excluded told_before -",
            "- open reference_missing -",
            "pay_1 matched settled 1",
            "pay_2 matched settled 2",
            "- excluded told_before -",
        ]
    );
    shop.check(false).await;
}

async fn statements_that_differ_in_a_balance_count_each(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[1, 2].map(|id| at_bank(id, "processing"))).await;
    bring(&shop, "day.xml", &camt("camt.053", "D1", &[credit(10_001, "pay_1")]), 0).await;
    bring(&shop, "day.sta", &mt940(&[(10_001, "pay_1"), (10_002, "pay_2")]), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "review duplicate_capture");
    assert_eq!(ran.verdict(2), "succeeded settled");
    shop.check(false).await;
}

/// One of the two books several payments as a sum, under no reference, and less a charge.
async fn sums_of_the_other_format_count_once(engine: Engine) {
    let parts = [(10_001, "pay_1"), (10_002, "pay_2"), (-190, ""), (500, "")];
    for (sums, count) in [(vec![(20_003, ""), (-190, ""), (500, "")], 1), (vec![(20_313, "")], 1)] {
        for parts_first in [true, false] {
            let shop = shop_with_bank(engine).await;
            shop.insert(&[1, 2].map(|id| at_bank(id, "processing"))).await;
            let booked = |(cents, tag): &(i64, &str)| match *cents < 0 {
                true => debit(-cents, tag),
                false => credit(*cents, tag),
            };
            let bookings: Vec<_> = parts.iter().map(booked).collect();
            let mut files =
                [("day.xml", camt("camt.053", "D1", &bookings)), ("day.sta", mt940(&sums))];
            if !parts_first {
                files.reverse();
            }
            for (name, text) in &files {
                bring(&shop, name, text, 0).await;
            }
            let ran = shop.run().await;
            for id in [1, 2] {
                assert_eq!(ran.verdict(id), "succeeded settled", "{sums:?} {parts_first}");
            }
            let own = if parts_first { 2 } else { 1 };
            let told = format!(
                "select cast(count(*) as text) from tieout_lines where file_id = {own} \
                 and reason = 'told_before' and amount_minor > 1000"
            );
            assert_eq!(shop.texts(&told).await, [count.to_string()], "{sums:?} {parts_first}");
            let counting = "select cast(sum(case direction when 'debit' then -amount_minor \
                            else amount_minor end) as text) from tieout_lines \
                            where coalesce(reason, '') <> 'told_before'";
            assert_eq!(shop.texts(counting).await, ["20313"], "{sums:?} {parts_first}");
            shop.check(false).await;
        }
    }
}

/// The bank's own export of the day, with the balance behind each row or without.
fn export(bookings: &[(i64, &str)], with_balance: bool) -> String {
    let day = chrono::Utc::now().format("%d.%m.%Y");
    let euros = |cents: i64| {
        let (sign, all) = (if cents < 0 { "-" } else { "" }, cents.abs());
        format!("{sign}{},{:02}", all / 100, all % 100)
    };
    let more = if with_balance { ";Saldo nach Buchung" } else { "" };
    let mut text = format!(
        "Buchungstag;Valuta;Buchungstext;Verwendungszweck;End-to-End-Referenz;\
         Name Zahlungsbeteiligter;Betrag;Waehrung;IBAN Auftragskonto{more}\n"
    );
    let mut balance = 100_000;
    for (cents, tag) in bookings {
        balance += cents;
        let own = "DE02120300000000202051";
        let more = if with_balance { format!(";{}", euros(balance)) } else { String::new() };
        writeln!(
            text,
            "{day};{day};Gutschrift;{tag} x;{tag};Kunde;{};EUR;{own}{more}",
            euros(*cents)
        )
        .unwrap();
    }
    text
}

/// Without its balances nothing shows that it is the same day's: both count, and a person is told.
async fn a_banks_csv_with_its_balances_beside_the_statement_counts_once(engine: Engine) {
    let moved = [(10_001, "pay_1"), (10_002, "pay_2"), (-190, "")];
    let bookings = [credit(10_001, "pay_1"), credit(10_002, "pay_2"), debit(190, "")];
    for (csv_first, with_balance) in [(true, true), (false, true), (false, false)] {
        let shop = shop_with_bank(engine).await;
        shop.insert(&[1, 2].map(|id| at_bank(id, "processing"))).await;
        let csv = export(&moved, with_balance);
        let mut files = [("day.xml", camt("camt.053", "D1", &bookings)), ("day.csv", csv)];
        if csv_first {
            files.reverse();
        }
        for (name, text) in &files {
            bring(&shop, name, text, 0).await;
        }
        let ran = shop.run().await;
        let wanted = match with_balance {
            true => "succeeded settled",
            false => "review duplicate_capture",
        };
        let told = "select cast(count(*) as text) from tieout_lines where reason = 'told_before'";
        let count = if with_balance { "3" } else { "0" };
        assert_eq!(shop.texts(told).await, [count], "{csv_first} {with_balance}");
        for id in [1, 2] {
            assert_eq!(ran.verdict(id), wanted, "{csv_first} {with_balance}");
        }
        shop.check(false).await;
    }
}

/// The MT940 of a day whose camt.053 was corrected says still what the correction took out: it goes
/// on counting, the release says so, and so does the case of the row that it paid.
async fn what_one_format_corrects_and_the_other_tells_still_is_for_a_person(engine: Engine) {
    let files = || {
        let xml = camt("camt.053", "D1", &[credit(10_001, "pay_1"), credit(10_002, "pay_2")]);
        [("day.xml", xml), ("day.sta", mt940(&[(10_001, "pay_1"), (10_002, "pay_2")]))]
    };
    for camt_first in [true, false] {
        let shop = shop_with_bank(engine).await;
        shop.insert(&[1, 2, 3].map(|id| at_bank(id, "processing"))).await;
        let mut files = files();
        if !camt_first {
            files.reverse();
        }
        for (name, text) in &files {
            bring(&shop, name, text, 0).await;
        }
        assert_eq!(shop.run().await.verdict(2), "succeeded settled");
        let corrected = camt("camt.053", "D1", &[credit(10_001, "pay_1"), credit(10_003, "pay_3")]);
        bring(&shop, "again.xml", &corrected, 3).await;
        let words = ["files", "release", "3", "--reason", "confirmed"];
        let plan = shop.tieout(&[&words[..], &["--dry-run"]].concat()).await.ended(0);
        let plan = plan.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        let (gone, by) = if camt_first { ("1:2", "2:2") } else { ("2:2", "1:2") };
        let said = format!("line {gone} is told by {by} of day.sta, too, which goes on counting");
        assert!(plan.contains(&said), "{plan}");
        let done = shop.tieout(&[&words[..], &["--json"]].concat()).await.ended(0);
        events::check(&done.stdout);
        let still = &done.of_type("settlement_difference")[0]["still"];
        assert_eq!(still[0]["file_name"], "day.sta");
        let released = &done.of_type("released")[0];
        assert_eq!((&released["added"], &released["removed"]), (&1.into(), &0.into()));
        shop.due_now().await;
        let ran = shop.run().await;
        let carried = &ran.of_type("released")[0];
        assert_eq!((&carried["added"], &carried["removed"]), (&1.into(), &0.into()));
        assert_eq!(ran.verdict(2), "review late_contradiction", "camt first: {camt_first}");
        assert_eq!(ran.verdict(3), "succeeded settled");
        let text = shop.texts("select text from tieout_cases where state = 'open'").await.remove(0);
        let said = format!("a correction took {gone} out, which {by} tells still");
        assert!(text.contains(&said), "{text}");
        for _again in 0..2 {
            assert_eq!(shop.open_cases().await, ["2 late_contradiction"]);
            assert!(shop.run().await.verdicts().is_empty(), "it is said once");
        }
        bring(&shop, "again.sta", &mt940(&[(10_001, "pay_1"), (10_003, "pay_3")]), 3).await;
        shop.tieout(&["files", "release", "4", "--reason", "confirmed"]).await.ended(0);
        shop.run().await;
        assert_eq!(shop.open_cases().await, ["2 late_contradiction"], "nothing pays it");
        shop.check(false).await;
    }
}

async fn what_one_format_corrects_pays_no_row_that_comes_later(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[1, 2].map(|id| at_bank(id, "processing"))).await;
    let all = [credit(10_001, "pay_1"), credit(10_002, "pay_2"), credit(10_003, "pay_3")];
    bring(&shop, "day.xml", &camt("camt.053", "D1", &all), 0).await;
    // The second is told by both still, and the third by the MT940 alone, which comes last.
    let corrected = [credit(10_001, "pay_1"), credit(10_002, "pay_2"), credit(700, "else")];
    bring(&shop, "again.xml", &camt("camt.053", "D1", &corrected), 3).await;
    shop.tieout(&["files", "release", "2", "--reason", "confirmed"]).await.ended(0);
    shop.run().await;
    let swift = mt940(&[(10_001, "pay_1"), (10_002, "pay_2"), (10_003, "pay_3")]);
    bring(&shop, "day.sta", &swift, 0).await;
    shop.insert(&[at_bank(3, "processing")]).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(3), "review returned");
    assert_eq!(shop.open_cases().await.last().map(String::as_str), Some("3 returned"));
    shop.check(false).await;
}
