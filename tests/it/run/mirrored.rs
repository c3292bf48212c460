//! A bank that changes from MT940 to camt.053 sends both, without a reference in common: what moved
//! counts once.

use std::fmt::Write as _;

use super::files::{at_bank, bring, camt, credit, debit, lines, returned, shop_with_bank};
use crate::run::shop::{Engine, on_both_databases};

on_both_databases!(
    a_statement_in_two_formats_counts_once,
    of_two_formats_the_line_that_names_the_row_counts,
    statements_that_differ_in_a_balance_count_each,
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
