//! What a run reports of settlement files: every line in one place, sums that lead to zero, and
//! the same bytes when it is built again after later runs have gone on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tieout::sandbox::seeds::Seed;

use crate::run::files::{at_bank, bring, camt, credit, returned, shop_with_bank};
use crate::run::shop::{Engine, Payment, Ran, Shop, on_both_databases};

on_both_databases!(
    lines_are_reported_and_tie_out,
    a_report_stays_when_later_runs_match_its_lines,
    a_lost_line_makes_the_report_untied,
    a_narrowed_run_leaves_other_lines_alone,
    a_dry_run_says_which_lines_would_be_matched,
    captures_in_two_currencies_are_summed_up_in_both,
);

type Table = Vec<BTreeMap<String, String>>;

/// Where a run's report is.
fn report_of(shop: &Shop, ran: &Ran) -> PathBuf {
    let end = &ran.of_type("run_end")[0];
    shop.folder().join(end["report"].as_str().unwrap_or_else(|| panic!("no report: {end}")))
}

fn table(dir: &Path, file: &str) -> Table {
    let mut reader = csv::Reader::from_path(dir.join(file)).unwrap();
    reader.deserialize().map(Result::unwrap).collect()
}

/// Some columns of each record, between blanks; `-` for an empty one.
fn columns(table: &Table, names: &str) -> Vec<String> {
    let cell = |row: &BTreeMap<String, String>, name: &str| match row[name].as_str() {
        "" => "-".to_owned(),
        text => text.to_owned(),
    };
    let line = |row| names.split(' ').map(|name| cell(row, name)).collect::<Vec<_>>().join(" ");
    table.iter().map(line).collect()
}

/// The report's bytes.
fn bytes(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(dir).unwrap().flatten();
    let read = |path: PathBuf| std::fs::read(path).unwrap();
    entries.map(|e| (e.file_name().into_string().unwrap(), read(e.path()))).collect()
}

async fn verifies(shop: &Shop, dir: &Path) {
    shop.tieout(&["report", "verify", dir.to_str().unwrap()]).await.ended(0);
}

/// Rows 1 and 2 are stuck, 3 and 4 ended.
async fn some_of_everything(engine: Engine) -> (Shop, Ran) {
    let shop = shop_with_bank(engine).await;
    let rows = [
        at_bank(1, "processing"),
        at_bank(2, "processing"),
        at_bank(3, "paid"),
        at_bank(4, "failed"),
        Payment { account: "live", ..at_bank(5, "paid") },
    ];
    shop.insert(&rows).await;
    let bookings = [
        credit(10_001, "pay_1"),
        credit(9_999, "pay_2"),
        credit(10_003, "pay_3"),
        credit(10_004, "pay_4"),
        credit(777, "nobody"),
        credit(778, ""),
    ];
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &bookings), 0).await;
    let ran = shop.run().await;
    (shop, ran)
}

async fn lines_are_reported_and_tie_out(engine: Engine) {
    let (shop, ran) = some_of_everything(engine).await;
    let dir = report_of(&shop, &ran);
    verifies(&shop, &dir).await;
    assert_eq!(
        columns(
            &table(&dir, "matched.csv"),
            "table internal_id reason local_amount bank_amount difference file_name line_no"
        ),
        [
            "payments 1 settled 100.01 100.01 0.00 stmt.xml 8",
            "payments 2 amount_mismatch 100.02 99.99 -0.03 stmt.xml 9",
            "payments 3 agrees 100.03 100.03 0.00 stmt.xml 10",
            "payments 4 late_contradiction 100.04 100.04 0.00 stmt.xml 11",
        ]
    );
    let exceptions = table(&dir, "exceptions.csv");
    let lines: Table = exceptions.into_iter().filter(|row| row["kind"] == "line").collect();
    assert_eq!(
        columns(&lines, "side reason tag bank_amount currency file_name line_no"),
        [
            "bank orphan nobody 7.77 EUR stmt.xml 12",
            "bank reference_missing - 7.78 EUR stmt.xml 13",
        ]
    );
    let inputs = table(&dir, "inputs.csv");
    let files: Table = inputs.into_iter().filter(|row| row["kind"] == "file").collect();
    let names = "name state account format currency declared_count declared_sum parsed_count \
                 parsed_sum opening_balance closing_balance lines_matched lines_open lines_no_row \
                 lines_elsewhere";
    assert_eq!(
        columns(&files, names),
        ["stmt.xml ok bank camt.053 EUR 6 415.62 6 415.62 1000.00 1415.62 4 2 0 0"]
    );
    let bridge = table(&dir, "bridge.csv");
    let of_files: Table =
        bridge.iter().filter(|l| l["kind"].starts_with("file")).cloned().collect();
    assert_eq!(
        columns(&of_files, "currency kind reason count amount"),
        [
            "EUR file_total - 6 415.62",
            "EUR file_item orphan -1 -7.77",
            "EUR file_item reference_missing -1 -7.78",
            "EUR file_matched - 4 400.07",
            "EUR file_residual - 0 0.00",
        ]
    );
    let last = bridge.last().unwrap();
    assert_eq!((&*last["kind"], &*last["amount"], &*last["count"]), ("residual", "0.00", "0"));
    let summary = table(&dir, "summary.csv");
    let of_files: Table = summary.into_iter().filter(|row| row["side"] == "file").collect();
    assert_eq!(
        columns(&of_files, "source counterparty bucket reason count amount"),
        [
            "- bank exception orphan 1 7.77",
            "- bank exception reference_missing 1 7.78",
            "payments bank exception amount_mismatch 1 99.99",
            "payments bank exception late_contradiction 1 100.04",
            "payments bank matched agrees 1 100.03",
            "payments bank matched settled 1 100.01",
        ]
    );
}

async fn a_report_stays_when_later_runs_match_its_lines(engine: Engine) {
    let (shop, ran) = some_of_everything(engine).await;
    let dir = report_of(&shop, &ran);
    let before = bytes(&dir);
    shop.raw
        .execute(
            "insert into payments (id, order_no, account, status, amount, currency, created_at)
             values (9, 'x', 'bank', 'paid', 777, 'EUR', '2026-11-19T00:00:00.000000Z')",
        )
        .await;
    shop.raw.execute("update tieout_lines set tag = 'pay_9' where tag = 'nobody'").await;
    let refs =
        "update tieout_lines set refs = '[[\"end_to_end_id\",\"pay_9\"]]' where tag = 'pay_9'";
    shop.raw.execute(refs).await;
    let later = [returned(10_003, "pay_3", "AM04"), credit(5, "stranger")];
    bring(&shop, "later.xml", &camt("camt.053", "S2", &later), 0).await;
    let again = shop.run().await;
    let later_dir = report_of(&shop, &again);
    verifies(&shop, &later_dir).await;
    let matched = columns(&table(&later_dir, "matched.csv"), "internal_id reason bank_amount");
    assert_eq!(matched, ["3 late_contradiction -100.03", "9 agrees 7.77"]);
    let inputs = table(&later_dir, "inputs.csv");
    let files: Table = inputs.into_iter().filter(|row| row["kind"] == "file").collect();
    assert_eq!(
        columns(&files, "name lines_matched lines_open lines_elsewhere"),
        ["stmt.xml 1 0 5", "later.xml 1 1 0"]
    );
    let run_id = ran.of_type("run_end")[0]["run_id"].as_str().unwrap().to_owned();
    shop.raw.execute("update tieout_lines set tag = 'nobody' where tag = 'pay_9'").await;
    shop.tieout(&["report", "build", &run_id]).await.ended(0);
    assert_eq!(bytes(&dir), before, "the same bytes after later runs");
}

async fn a_lost_line_makes_the_report_untied(engine: Engine) {
    let (shop, ran) = some_of_everything(engine).await;
    let run_id = ran.of_type("run_end")[0]["run_id"].as_str().unwrap().to_owned();
    let dir = report_of(&shop, &ran);
    shop.raw.execute("delete from tieout_lines where tag = 'nobody'").await;
    let built = shop.tieout(&["report", "build", &run_id]).await.ended(5);
    assert!(built.stderr.contains("6 lines") || built.stdout.contains("UNTIED"), "{built:?}");
    let last = table(&dir, "bridge.csv");
    let residual = last.iter().find(|line| line["kind"] == "file_residual").unwrap();
    assert_eq!((&*residual["count"], &*residual["amount"]), ("1", "7.77"));
    shop.tieout(&["report", "verify", dir.to_str().unwrap()]).await.ended(5);
}

async fn a_narrowed_run_leaves_other_lines_alone(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[at_bank(1, "paid"), at_bank(2, "paid")]).await;
    let bookings = [credit(10_001, "pay_1"), credit(10_002, "pay_2"), credit(1, "nobody")];
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &bookings), 0).await;
    let matched = async || shop.count("tieout_lines where state = 'matched'").await;
    let noted = async || shop.count("tieout_lines where reason is not null").await;
    shop.run_with(&["--psp", "shop"]).await;
    assert_eq!((matched().await, noted().await), (0, 0), "of another account");
    shop.run_with(&["--id", "2"]).await;
    assert_eq!((matched().await, noted().await), (1, 0), "of one row");
    shop.run_with(&["--psp", "bank"]).await;
    assert_eq!((matched().await, noted().await), (2, 1), "of the account");
}

async fn a_dry_run_says_which_lines_would_be_matched(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    let rows = [at_bank(1, "paid"), at_bank(2, "failed"), at_bank(3, "processing")];
    shop.insert(&rows).await;
    let bookings = [credit(10_001, "pay_1"), credit(10_002, "pay_2"), credit(10_003, "pay_3")];
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &bookings), 0).await;
    let ran = shop.run_with(&["--dry-run"]).await;
    let told: Vec<String> = ran
        .of_type("line_matched")
        .iter()
        .map(|event| format!("{} {} {}", event["line"], event["table"], event["txn_id"]))
        .collect();
    assert_eq!(told, ["\"F1:1\" \"payments\" \"1\""]);
    assert_eq!(ran.verdict(2), "review late_contradiction");
    assert_eq!(ran.verdict(3), "succeeded settled");
    assert_eq!(shop.count("tieout_lines where state <> 'open'").await, 0);
    assert_eq!(shop.count("tieout_journal").await, 0);
    let plan = shop.tieout(&["run", "--dry-run"]).await.ended(0).stdout;
    assert!(plan.contains("line F1:1 would be row 1's of payments"), "{plan}");
    let wet = shop.run().await;
    assert_eq!((wet.verdict(2), wet.verdict(3)), (ran.verdict(2), ran.verdict(3)), "as planned");
}

async fn captures_in_two_currencies_are_summed_up_in_both(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    let row = Payment::stuck(1);
    shop.insert(std::slice::from_ref(&row)).await;
    let dollars = Payment { currency: "USD", amount: Some(2_500), ..row.clone() };
    let dollars = Seed { id: Some("pi_1b".to_owned()), ..dollars.captured() };
    shop.plant(vec![row.captured(), dollars]);
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "review duplicate_capture");
    let dir = report_of(&shop, &ran);
    verifies(&shop, &dir).await;
    let summary = table(&dir, "summary.csv");
    let psp: Table = summary.into_iter().filter(|row| row["side"] == "psp").collect();
    assert_eq!(
        columns(&psp, "currency bucket reason count amount_minor"),
        ["EUR exception duplicate_capture 1 10001", "USD exception duplicate_capture 1 2500"]
    );
    let row = &table(&dir, "reconciliation.csv")[0];
    assert_eq!(row["psp_captured"], "1 EUR 10001; 1 USD 2500");
}
