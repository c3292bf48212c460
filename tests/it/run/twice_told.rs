//! Of two lines that tell one booking the one counts by which the row is found; what a file books
//! stands in its sums as it has it.

use std::collections::BTreeMap;

use super::files::{at_bank, lines, shop_with_bank};
use super::payouts::{bring_cards, dir, shop_with_cards_and_bank, stripe};
use super::twice::{braintree, paypal};
use crate::run::shop::{Engine, Payment, Ran, Shop, on_both_databases};

on_both_databases!(
    a_payment_that_was_reversed_counts_as_its_file_has_it,
    a_reversal_without_a_tag_does_not_hide_the_payment_that_has_it,
    a_report_that_has_the_tag_tells_what_one_without_it_told,
    a_format_that_changed_makes_no_other_rows,
    a_payment_that_overlapping_reports_tell_counts_once,
);

/// A row of a PayPal report: [`paypal`].
type Row<'a> = (&'a str, &'a str, &'a str, &'a str, i64, &'a str, &'a str);

fn at_cards(id: i64, status: &'static str) -> Payment {
    Payment { account: "cards", status, ..Payment::stuck(id) }
}

/// `declared parsed cents` of each file of the run, the cents by what became of its lines.
fn inputs(shop: &Shop, ran: &Ran) -> Vec<String> {
    let mut reader = csv::Reader::from_path(dir(shop, ran).join("inputs.csv")).unwrap();
    let rows = reader.deserialize::<BTreeMap<String, String>>().map(Result::unwrap);
    let files = rows.filter(|row| row["kind"] == "file");
    let sum = |row: &BTreeMap<String, String>| -> i64 {
        ["matched_amount", "open_amount", "no_row_amount", "elsewhere_amount"]
            .map(|name| row[name].replace('.', "").parse::<i64>().unwrap())
            .iter()
            .sum()
    };
    files
        .map(|row| format!("{} {} {}", row["declared_sum"], row["parsed_sum"], sum(&row)))
        .collect()
}

/// In 200.03 and out 100.01: the reversal takes out what came in, once.
async fn a_payment_that_was_reversed_counts_as_its_file_has_it(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    shop.insert(&[at_cards(1, "processing"), at_cards(2, "processing")]).await;
    let rows: [Row<'_>; 3] = [
        ("T1", "pay_1", "T0006", "CR", 10_001, "V", ""),
        ("R1", "", "T1106", "DR", 10_001, "S", "T1"),
        ("T2", "pay_2", "T0006", "CR", 10_002, "S", ""),
    ];
    bring_cards(&shop, "one.csv", &paypal(18, &rows)).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "review returned");
    assert_eq!(ran.verdict(2), "succeeded settled");
    assert_eq!(inputs(&shop, &ran), ["100.02 100.02 10002"]);
    let path = shop.folder().join("one.csv");
    let shown = shop.tieout(&["files", "inspect", path.to_str().unwrap()]).await.ended(0).stdout;
    assert!(shown.contains("in 200.03 (2)") && shown.contains("out 100.01 (1)"), "{shown}");
    let shown = shop.tieout(&["files", "show", "1", "--lines"]).await.ended(0).stdout;
    let of = |place: &str| shown.lines().find(|line| line.contains(place)).unwrap().to_owned();
    assert!(of(" 1:1 ").contains("credit") && of(" 1:2 ").contains("debit"), "{shown}");
    let report = dir(&shop, &ran);
    shop.tieout(&["report", "verify", report.to_str().unwrap(), "--database"]).await.ended(0);
    shop.check(false).await;
}

/// In one file, and where the reversal came first; a row that has the reversal keeps it.
async fn a_reversal_without_a_tag_does_not_hide_the_payment_that_has_it(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    let known = Payment { psp_ref: Some("T4".to_owned()), ..at_cards(4, "paid") };
    let rows = [at_cards(1, "processing"), at_cards(2, "paid"), at_cards(3, "paid"), known];
    shop.insert(&rows).await;
    let back = |id, cents, of| (id, "", "T1106", "DR", cents, "S", of);
    let sale = |id, invoice, cents| (id, invoice, "T0006", "CR", cents, "V", "");
    let first: [Row<'_>; 6] = [
        sale("T1", "pay_1", 10_001),
        back("R1", 10_001, "T1"),
        back("R2", 10_002, "T2"),
        sale("T2", "pay_2", 10_002),
        back("R3", 10_003, "T3"),
        back("R4", 10_004, "T4"),
    ];
    bring_cards(&shop, "one.csv", &paypal(18, &first)).await;
    shop.run().await;
    let second = [sale("T3", "pay_3", 10_003), sale("T4", "pay_4", 10_004)];
    bring_cards(&shop, "two.csv", &paypal(19, &second)).await;
    shop.run().await;
    let told = lines(&shop).await;
    let is_its = |at: usize, start: &str, end: &str| {
        assert!(told[at].starts_with(start) && told[at].ends_with(end), "{at} of {told:?}");
    };
    is_its(0, "pay_1 matched ", " 1");
    is_its(1, "- excluded told_before", "-");
    is_its(2, "- excluded told_before", "-");
    is_its(3, "pay_2 matched ", " 2");
    is_its(4, "- excluded told_before", "-");
    is_its(5, "- matched ", " 4");
    is_its(6, "pay_3 matched ", " 3");
    is_its(7, "pay_4 excluded told_before", "-");
    let statuses: Vec<String> = [1, 2, 3, 4]
        .map(|id| format!("{id} {}", if id == 1 { "returned" } else { "late_contradiction" }))
        .into();
    assert_eq!(shop.open_cases().await, statuses);
    shop.check(false).await;
}

/// The column of the order was not asked for the first time. A row that the first line belongs to
/// has the payment already; the other order changes nothing.
async fn a_report_that_has_the_tag_tells_what_one_without_it_told(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    let known = Payment { psp_ref: Some("ch_3".to_owned()), ..at_cards(3, "processing") };
    shop.insert(&[at_cards(1, "processing"), at_cards(2, "processing"), known]).await;
    shop.insert(&[at_cards(4, "processing")]).await;
    let charge = |id, gross| ("charge", id, gross, "3.00", "1.00", "po_1");
    let net = |text: String| {
        let of = |cents: &str, left: &str| format!("{cents},3.00,{left},");
        text.replace("100.01,3.00,1.00,", &of("100.01", "97.01"))
            .replace("100.02,3.00,1.00,", &of("100.02", "97.02"))
            .replace("100.03,3.00,1.00,", &of("100.03", "97.03"))
    };
    let all = [charge("ch_1", "100.01"), charge("ch_2", "100.02"), charge("ch_3", "100.03")];
    let today = chrono::Utc::now().date_naive().to_string();
    let without = net(stripe(&all)).replace("2026-11-17", &today).replace("2026-11-19", &today);
    let with: Vec<String> = without
        .lines()
        .enumerate()
        .map(|(n, row)| if n == 0 { row.to_owned() } else { format!("{row}pay_{n}") })
        .collect();
    let only = |n: usize| format!("{}\n{}\n", with[0], with[n]);
    bring_cards(&shop, "second.csv", &only(2)).await;
    bring_cards(&shop, "without.csv", &without).await;
    bring_cards(&shop, "sale.csv", &braintree(&[("bt4", "", 10_004, "settled", "")])).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(3), "succeeded settled");
    assert_eq!([shop.status(1).await, shop.status(4).await], ["processing"; 2]);
    bring_cards(&shop, "with.csv", &(with.join("\n") + "\n")).await;
    bring_cards(&shop, "again.csv", &braintree(&[("bt4", "pay_4", 10_004, "settled", "")])).await;
    shop.run().await;
    assert_eq!(
        lines(&shop).await,
        [
            "pay_2 matched settled 2",
            "ch_1 excluded told_before -",
            "ch_2 excluded told_before -",
            "ch_3 matched settled 3",
            "bt4 excluded told_before -",
            "pay_1 matched settled 1",
            "pay_2 excluded told_before -",
            "pay_3 excluded told_before -",
            "pay_4 matched settled 4",
        ]
    );
    for id in 1..=4 {
        assert_eq!(shop.status(id).await, "paid", "row {id}");
    }
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    shop.check(false).await;
}

/// A report of payments, each with its number and cents, of a PSP: its text.
type Report = fn(&str, &[(i64, i64)]) -> String;

/// Units and cents.
fn units(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

fn account_money(day: &str, payments: &[(i64, i64)]) -> String {
    let row = |&(id, cents): &(i64, i64)| {
        let units = units(cents);
        format!(
            "90{id},pay_{id},SETTLEMENT,{units},EUR,0.00,{units},EUR,\
             {day}T10:00:00.000-03:00,0.00\n"
        )
    };
    let rows: String = payments.iter().map(row).collect();
    format!(
        "SOURCE_ID,EXTERNAL_REFERENCE,TRANSACTION_TYPE,TRANSACTION_AMOUNT,TRANSACTION_CURRENCY,\
         FEE_AMOUNT,SETTLEMENT_NET_AMOUNT,SETTLEMENT_CURRENCY,SETTLEMENT_DATE,TAXES_AMOUNT\n{rows}"
    )
}

/// One that ties by the balance of each row.
fn released(day: &str, payments: &[(i64, i64)]) -> String {
    let mut balance = 0;
    let row = |&(id, cents): &(i64, i64)| {
        balance += cents;
        let (units, balance) = (units(cents), units(balance));
        format!(
            "{day}T10:00:00.000-03:00;90{id};pay_{id};release;payment;{units};0.00;{units};0.00;\
             EUR;{balance}\n"
        )
    };
    let rows: String = payments.iter().map(row).collect();
    let sum = units(payments.iter().map(|(_, cents)| cents).sum());
    format!(
        "DATE;SOURCE_ID;EXTERNAL_REFERENCE;RECORD_TYPE;DESCRIPTION;NET_CREDIT_AMOUNT;\
         NET_DEBIT_AMOUNT;GROSS_AMOUNT;MP_FEE_AMOUNT;CURRENCY;BALANCE_AMOUNT\n\
         {day}T00:00:00.000-03:00;;;initial_available_balance;;0.00;0.00;0.00;0.00;;0.00\n{rows}\
         ;;;total;;{sum};0.00;{sum};0.00;;0.00\n"
    )
}

fn trustly(day: &str, payments: &[(i64, i64)]) -> String {
    let row = |&(id, cents): &(i64, i64)| {
        format!(
            "I,8{id},{day}T13:00:00.000Z,7{id},1234,Deferred,1,1{id},1111,aa11,Capture,Processed,\
             {day}T05:00:00.000Z,{day}T05:00:00.000Z,EUR,{},ABC,AC118,999,,pay_{id},ptx-{id},\n",
            units(cents)
        )
    };
    let rows: String = payments.iter().map(row).collect();
    let (sum, count) = (units(payments.iter().map(|(_, cents)| cents).sum()), payments.len());
    format!(
        "H,ACME,1.0.0,2026-11-{:02}T00:00:00.000Z,{day}T23:00:00.000Z,1234,0001of0001\n{rows}\
         F,Acme,,ABC,EUR,{sum},{count},{day}T10:00:00.000Z\nL,{count},{sum},1,{sum}\n",
        payments.last().unwrap().0
    )
}

fn shopify(day: &str, payments: &[(i64, i64)]) -> String {
    let row = |&(id, cents): &(i64, i64)| {
        let units = units(cents);
        format!(
            "{day} 10:00:00 -0400,charge,pay_{id},paid,{day},9,{day},{units},0.00,{units},EUR\n"
        )
    };
    let rows: String = payments.iter().map(row).collect();
    format!(
        "Transaction Date,Type,Order,Payout Status,Payout Date,Payout ID,Available On,Amount,Fee,\
         Net,Currency\n{rows}"
    )
}

fn described(day: &str, payments: &[(i64, i64)]) -> String {
    let row = |&(id, cents): &(i64, i64)| format!("{day},{},EUR,pay_{id},P{id}\n", units(cents));
    let rows: String = payments.iter().map(row).collect();
    format!("day,amount,currency,tag,id\n{rows}")
}

/// A row of twice the money is not paid by it, and one that was paid by it has no case.
async fn a_payment_that_overlapping_reports_tell_counts_once(engine: Engine) {
    let reports: [(&str, Report); 5] = [
        ("mercadopago", account_money),
        ("mercadopago_release", released),
        ("trustly", trustly),
        ("shopify", shopify),
        ("north", described),
    ];
    for (format, report) in reports {
        let mut shop = shop_with_cards_and_bank(engine).await;
        shop.words.more.push_str(FORMAT);
        shop.words.more.push_str("psp_reference = \"id\"\n");
        shop.write_words();
        shop.insert(&[1, 2, 3, 4].map(|id| at_cards(id, "processing"))).await;
        let bring = async |name: &str, text: &str| {
            let path = shop.folder().join(name);
            std::fs::write(&path, text).unwrap();
            let path = path.to_str().unwrap();
            let asked = ["ingest", path, "--account", "cards", "--format", format];
            shop.tieout(&asked).await.ended(0);
        };
        let day = chrono::Utc::now().date_naive().to_string();
        // The second one of the row's money would make it whole.
        let both = [(1, 10_001), (2, 5_001)];
        bring("one.csv", &report(&day, &[&both[..], &[(9, 900)]].concat())).await;
        shop.run().await;
        assert_eq!(shop.open_cases().await, ["2 amount_mismatch"], "{format}");
        bring("two.csv", &report(&day, &[&both[..], &[(3, 10_003)]].concat())).await;
        shop.run().await;
        assert_eq!(shop.open_cases().await, ["2 amount_mismatch"], "{format}");
        assert_eq!(
            lines(&shop).await[3..],
            [
                "pay_1 excluded told_before -",
                "pay_2 excluded told_before -",
                "pay_3 matched settled 3"
            ],
            "{format}"
        );
        shop.check(false).await;
    }
}

const FORMAT: &str = r#"
[[format]]
name = "north"
date = "day"
date_pattern = "%Y-%m-%d"
amount = "amount"
decimal = "."
currency = "currency"
tag = [{ column = "tag", kind = "merchant_reference" }]
"#;

/// Rows are known by their text, whatever a format reads of them. Released, only the others count.
async fn a_format_that_changed_makes_no_other_rows(engine: Engine) {
    let mut shop = shop_with_bank(engine).await;
    shop.insert(&[1, 2, 3].map(|id| at_bank(id, "processing"))).await;
    let words = shop.words.clone();
    let bring = async |shop: &Shop, name: &str, rows: &[&str], code: i32| {
        let path = shop.folder().join(name);
        std::fs::write(&path, format!("day,value,amount,currency,tag,name\n{}", rows.concat()))
            .unwrap();
        let path = path.to_str().unwrap();
        let asked = ["ingest", path, "--account", "bank", "--format", "north"];
        shop.tieout(&asked).await.ended(code);
    };
    let day = chrono::Utc::now().date_naive();
    let rows = [1, 2, 3].map(|id| format!("{day},{day},100.0{id},EUR,pay_{id},Ada\n"));
    let rows = rows.each_ref().map(String::as_str);
    shop.words.more.push_str(FORMAT);
    shop.write_words();
    bring(&shop, "one.csv", &rows[..2], 0).await;
    shop.run().await;
    let changed = FORMAT.replace("currency =", "value_date = \"value\"\ncurrency =");
    shop.words = words;
    shop.words.more.push_str(&changed.replace("merchant_reference", "order_id"));
    shop.write_words();
    bring(&shop, "two.csv", &rows, 3).await;
    let held = "excluded statement_corrected -";
    assert_eq!(lines(&shop).await[2..], [1, 2, 3].map(|id| format!("pay_{id} {held}")));
    shop.tieout(&["files", "release", "2", "--reason", "a longer export"]).await.ended(0);
    shop.run().await;
    let told = lines(&shop).await;
    assert_eq!(told[2..4], [1, 2].map(|id| format!("pay_{id} {held}")));
    assert_eq!(told[4], "pay_3 matched settled 3");
    for id in 1..=3 {
        assert_eq!(shop.status(id).await, "paid", "row {id}");
    }
    shop.check(false).await;
}
