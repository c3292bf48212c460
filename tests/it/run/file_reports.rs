//! What a run reports of settlement files: every line in one place, sums that lead to zero, and
//! the same bytes when it is built again after later runs have gone on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};
use tieout::sandbox::seeds::Seed;

use crate::run::files::{at_bank, bring, camt, credit, returned, shop_with_bank};
use crate::run::shop::{Engine, Payment, Ran, Shop, on_both_databases};
use crate::support::events;

on_both_databases!(
    lines_are_reported_and_tie_out,
    a_report_stays_when_later_runs_match_its_lines,
    a_lost_line_makes_the_report_untied,
    a_narrowed_run_leaves_other_lines_alone,
    a_dry_run_says_which_lines_would_be_matched,
    captures_in_two_currencies_are_summed_up_in_both,
    a_report_is_built_anew_and_compared_byte_by_byte,
    a_released_file_changes_no_report,
    a_file_that_is_read_again_changes_no_sum,
    the_difference_counts_what_earlier_runs_matched,
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

/// Verifies against the database, which ends so; what was told.
async fn held(shop: &Shop, dir: &Path, code: i32) -> (Value, String) {
    let words = ["report", "verify", dir.to_str().unwrap(), "--database", "--json"];
    let ran = shop.tieout(&words).await.ended(code);
    events::check(&ran.stdout);
    (ran.of_type("report_verified").remove(0), ran.stderr)
}

/// Builds the report of a run; where it is.
async fn built(shop: &Shop, run_id: &str) -> PathBuf {
    let ran = shop.tieout(&["report", "build", run_id, "--json"]).await.ended(0);
    shop.folder().join(ran.of_type("report_built")[0]["dir"].as_str().unwrap())
}

/// Changes a file, and the manifest with it, as a careful hand would.
fn forge(dir: &Path, file: &str, from: &str, to: &str) {
    let hash = |bytes: &[u8]| {
        let bytes = Sha256::digest(bytes);
        bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let before = std::fs::read_to_string(dir.join(file)).unwrap();
    let after = before.replace(from, to);
    assert_ne!(before, after, "{file}: {from}");
    std::fs::write(dir.join(file), &after).unwrap();
    let manifest = std::fs::read_to_string(dir.join("manifest.json")).unwrap();
    let right = manifest.replace(&hash(before.as_bytes()), &hash(after.as_bytes()));
    assert_ne!(manifest, right);
    std::fs::write(dir.join("manifest.json"), right).unwrap();
}

async fn a_report_is_built_anew_and_compared_byte_by_byte(engine: Engine) {
    let (shop, ran) = some_of_everything(engine).await;
    let dir = report_of(&shop, &ran);
    let run_id = ran.of_type("run_end")[0]["run_id"].as_str().unwrap().to_owned();
    assert_eq!(held(&shop, &dir, 0).await.0["rebuilt"], "same");
    // Later runs go on, and what was reported stays.
    let later = [returned(10_003, "pay_3", "AM04"), credit(5, "stranger")];
    bring(&shop, "later.xml", &camt("camt.053", "S2", &later), 0).await;
    shop.due_now().await;
    shop.run().await;
    assert_eq!(held(&shop, &dir, 0).await.0["rebuilt"], "same");
    let shown = shop.tieout(&["report", "verify", dir.to_str().unwrap(), "--database"]).await;
    let says = "journal    built anew from the journal it is the same, byte for byte\n";
    assert!(shown.stdout.ends_with(says), "{}", shown.stdout);
    // A sentence that no total depends on.
    forge(&dir, "exceptions.csv", "no row is known by nobody", "no row is known by anybody");
    verifies(&shop, &dir).await;
    let (told, stderr) = held(&shop, &dir, 16).await;
    assert_eq!((&told["rebuilt"], &told["totals_hold"]), (&"differs".into(), &true.into()));
    let difference = &told["differences"][0];
    assert_eq!([&difference["file"], &difference["column"]], ["exceptions.csv", "reason_text"]);
    let text = std::fs::read_to_string(dir.join("exceptions.csv")).unwrap();
    let place = text.lines().position(|line| line.contains("by anybody")).unwrap() + 1;
    assert_eq!(difference["line"], place);
    let says = format!("exceptions.csv line {place}, reason_text: it says ");
    assert!(stderr.contains(&says), "{stderr}");
    let says = "recomputed from its files, every total holds; built anew from the journal it is \
                another";
    assert!(stderr.contains(says), "{stderr}");
    // Nothing of it was mended by looking.
    assert_eq!(std::fs::read_to_string(dir.join("exceptions.csv")).unwrap(), text);

    // Another database knows nothing of the run.
    let other = Shop::open(engine).await;
    let (told, stderr) = held(&other, &dir, 3).await;
    assert_eq!((&told["rebuilt"], &told["sound"]), (&"no_run".into(), &true.into()));
    assert!(stderr.contains("partial: the database has no such run"), "{stderr}");

    // The same by another version is no forgery: only the version that built it can tell.
    shop.change_runs(&format!("version = '0.0.1' where id = '{run_id}'")).await;
    let dir = built(&shop, &run_id).await;
    assert_eq!(held(&shop, &dir, 0).await.0["rebuilt"], "same");
    forge(&dir, "exceptions.csv", "no row is known by nobody", "no row is known by anybody");
    let (told, stderr) = held(&shop, &dir, 3).await;
    assert_eq!((&told["rebuilt"], &told["sound"]), (&"other_version".into(), &true.into()));
    assert!(stderr.contains("built by another version: exceptions.csv line"), "{stderr}");
    assert!(stderr.contains("tieout 0.0.1"), "{stderr}");
}

/// Its statements came with its release: they were not there when the run looked.
async fn a_released_file_changes_no_report(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[at_bank(1, "processing")]).await;
    let bad = camt("camt.053", "S1", &[credit(10_001, "pay_1")]).replace("1100.01", "1300.01");
    bring(&shop, "bad.xml", &bad, 3).await;
    let run_id = shop.texts("select id from tieout_runs").await.remove(0);
    let dir = built(&shop, &run_id).await;
    let before = bytes(&dir);
    let words = ["files", "release", "1", "--reason", "the bank confirms"];
    shop.tieout(&words).await.ended(0);
    shop.due_now().await;
    assert_eq!(shop.run().await.verdict(1), "succeeded settled");
    assert_eq!(held(&shop, &dir, 0).await.0["rebuilt"], "same");
    assert_eq!(bytes(&built(&shop, &run_id).await), before);
}

const OURS: &str = "[[format]]\nname = \"ours\"\ndelimiter = \";\"\ndate = \"Day\"\n\
    date_pattern = \"%d.%m.%Y\"\namount = \"Amount\"\ndecimal = \",\"\n\
    currency_is = \"EUR\"\ntag = [{ column = \"Ref\", kind = \"end_to_end_id\" }]\n";

/// What was wrong with it then is not kept: that is said, and is no sign of a change.
async fn a_file_that_is_read_again_changes_no_sum(engine: Engine) {
    let mut shop = shop_with_bank(engine).await;
    let text = "Day;Amount;Ref\n18.11.2026;100,01;pay_1\n";
    bring(&shop, "ours.txt", text, 3).await;
    let run_id = shop.texts("select id from tieout_runs").await.remove(0);
    let dir = built(&shop, &run_id).await;
    let before = bytes(&dir);
    shop.words.more.push_str(OURS);
    shop.write_words();
    let path = shop.folder().join("ours.txt");
    let words = ["ingest", path.to_str().unwrap(), "--account", "bank", "--format", "ours"];
    shop.tieout(&words).await.ended(0);
    assert_eq!(shop.texts("select state from tieout_files").await, ["loaded"]);
    let (told, _) = held(&shop, &dir, 0).await;
    assert_eq!(told["rebuilt"], "moved_on");
    assert!(told["rebuilt_text"].as_str().unwrap().contains("inputs.csv: files that"), "{told}");
    let after = bytes(&built(&shop, &run_id).await);
    for (file, bytes) in before {
        if !["inputs.csv", "manifest.json"].contains(&file.as_str()) {
            assert_eq!(after[&file], bytes, "{file}");
        }
    }
    // A change of another cell of that line is found.
    let dir = built(&shop, &run_id).await;
    forge(&dir, "inputs.csv", "ours.txt", "others.txt");
    assert_eq!(held(&shop, &dir, 16).await.0["rebuilt"], "differs");
}

/// A row's lines that came in two runs are its lines all the same; what comes later is not in the
/// report of the first.
async fn the_difference_counts_what_earlier_runs_matched(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[1, 2].map(|id| at_bank(id, "processing"))).await;
    let first = [credit(10_001, "pay_1"), credit(10_002, "pay_2")];
    bring(&shop, "one.xml", &camt("camt.053", "S1", &first), 0).await;
    let ran = shop.run().await;
    let dir = report_of(&shop, &ran);
    let told = |dir: &Path| columns(&table(dir, "matched.csv"), "internal_id difference");
    assert_eq!(told(&dir), ["1 0.00", "2 0.00"]);
    let before = bytes(&dir);
    let second = [credit(10_001, "pay_1"), returned(10_002, "pay_2", "AC04")];
    bring(&shop, "two.xml", &camt("camt.053", "S2", &second), 0).await;
    let later = report_of(&shop, &shop.run().await);
    assert_eq!(told(&later), ["1 100.01", "2 -100.02"]);
    let verify = ["report", "verify", later.to_str().unwrap(), "--database"];
    shop.tieout(&verify).await.ended(0);
    let run_id = ran.of_type("run_end")[0]["run_id"].as_str().unwrap().to_owned();
    shop.tieout(&["report", "build", &run_id]).await.ended(0);
    assert_eq!(bytes(&dir), before);
}
