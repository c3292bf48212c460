//! Formats that the configuration describes.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::process::Command;

use tieout::model::settlement::TagKind;
use tieout::settlement::ledger::{Inspection, State, inspect_table};
use tieout::settlement::table::{FormatSettings, Table};

use crate::support::tieout_bin;

fn settings(text: &str) -> FormatSettings {
    toml::from_str(text).unwrap()
}

fn look(description: &str, file: &str) -> Inspection {
    let bytes = Box::new(Cursor::new(file.as_bytes().to_vec()));
    inspect_table(bytes, &described(description), None).unwrap()
}

fn described(description: &str) -> Table {
    settings(description).check().unwrap()
}

/// Descriptions, each with a file.
pub fn samples() -> Vec<(Table, &'static str)> {
    let samples = [(NAMED, NAMED_FILE), (FIXED, FIXED_FILE), (BATCHED, BATCHED_FILE)];
    samples.map(|(description, file)| (described(description), file)).into()
}

fn sums(found: &Inspection) -> (State, u64, Vec<(String, i128, i128)>) {
    let totals = found.sums.totals.iter();
    let totals = totals.map(|(c, t)| (c.code().to_owned(), t.credit_minor, t.debit_minor));
    (found.state, found.sums.entries, totals.collect())
}

fn euro(credit: i128, debit: i128) -> Vec<(String, i128, i128)> {
    vec![("EUR".to_owned(), credit, debit)]
}

const NAMED: &str = include_str!("../../../fixtures/formats/named.toml");

const NAMED_FILE: &str = include_str!("../../../fixtures/formats/named.txt");

#[test]
fn columns_by_name_with_a_balance_that_proves_them() {
    let found = look(NAMED, NAMED_FILE);
    assert_eq!(sums(&found), (State::Ok, 2, euro(100_000, 50)), "{:?}", found.sums.problems);
    let statement = &found.sums.statements[0];
    assert_eq!(statement.ties, Some(true));
    assert_eq!(statement.head.from.unwrap().to_string(), "2026-06-01");
    let references: Vec<_> =
        found.sums.references.iter().map(|(kind, n)| (kind.as_str(), *n)).collect();
    assert_eq!(references, [("end_to_end_id", 1), ("text", 2)]);
    for (from, to, field) in [
        ("-0,50", "-0,5x", "Betrag"),
        ("999,50", "999,60", "balance"),
        ("02.06.2026", "2026-06-02", "Buchungstag"),
        ("-0,50;EUR", "-0,50;XXY", "Währung"),
        (";Saldo;", ";Stand;", "header row"),
    ] {
        let found = look(NAMED, &NAMED_FILE.replace(from, to));
        assert_eq!(found.state, State::Quarantined, "{to}");
        let fields: Vec<&str> = found.sums.problems.iter().map(|p| p.field.as_str()).collect();
        assert!(fields.contains(&field), "{to}: {fields:?}");
    }
}

/// A slip of a description is named, with what mends it.
#[test]
fn what_a_description_reads_otherwise_is_said_by_its_settings() {
    let said = |from: &str, to: &str| {
        let found = look(&NAMED.replace(from, to), NAMED_FILE);
        assert_eq!(found.state, State::Quarantined, "{to}");
        found.sums.problems[0].to_string()
    };
    let amount = said("decimal = \",\"", "decimal = \".\"");
    assert!(amount.contains("(`decimal = \".\"` and `grouped = true` of the"), "{amount}");
    let column = said("\"Saldo\"", "\"Salden\"");
    assert!(column.contains("expected a column `salden`, found none; `Saldo` is near"), "{column}");
}

const FIXED: &str = include_str!("../../../fixtures/formats/fixed.toml");

const FIXED_FILE: &str = include_str!("../../../fixtures/formats/fixed.txt");

#[test]
fn what_lists_every_attempt_shows_that_no_row_is_lacking() {
    let covers = "covers = \"attempts\"\n";
    assert!(settings(&format!("{covers}{FIXED}")).check().unwrap().covers_attempts);
    assert!(!settings(FIXED).check().unwrap().covers_attempts);
    for (without, lacks) in [
        (FIXED.replace("count = 2, ", ""), "`trailer`"),
        (FIXED.replace("tag = [{ column", "# [{ column"), "`tag`"),
        (NAMED.to_owned(), "`trailer`"),
    ] {
        let wrong = settings(&format!("{covers}{without}")).check().unwrap_err();
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        assert!(wrong[0].0 == "covers" && wrong[0].1.contains(lacks), "{wrong:?}");
    }
}

#[test]
fn fields_at_fixed_places_with_a_trailer() {
    let found = look(FIXED, FIXED_FILE);
    assert_eq!(sums(&found), (State::Ok, 2, euro(10_000, 250)), "{:?}", found.sums.problems);
    for (from, to, field) in [
        ("C00010000", "X00010000", "way"),
        ("C00010000", "C00010001", "trailer sum"),
        ("M20260601D00000250ordér-2\n", "", "trailer count"),
        ("T2        00009750\n", "", "trailer"),
        ("C00010000", "C0001.000", "cents"),
    ] {
        let found = look(FIXED, &FIXED_FILE.replace(from, to));
        assert_eq!(found.state, State::Quarantined, "{to}");
        let fields: Vec<&str> = found.sums.problems.iter().map(|p| p.field.as_str()).collect();
        assert!(fields.contains(&field), "{to}: {fields:?}");
    }
}

#[test]
fn a_row_with_fewer_or_more_fields_is_not_passed_over_where_its_amount_is_empty() {
    for row in [
        "03.06.2026;;-1,00;EUR;998,50;c",
        "03.06.2026",
        "03.06.2026;",
        "Summe",
        ";;;998,50;c;-1,00",
    ] {
        let found = look(NAMED, &format!("{NAMED_FILE}{row}\n"));
        let (state, problems) = (found.state, found.sums.problems);
        assert_eq!(state, State::Quarantined, "{row}: {problems:?}");
        let said = problems.iter().any(|one| one.field == "row" && one.expected == "5 fields");
        assert!(said, "{row}: {problems:?}");
    }
    let whole = look(NAMED, &format!("{NAMED_FILE}Summe;;;;\n"));
    assert_eq!((whole.state, whole.sums.problems_total), (State::Ok, 1));
}

/// Of an amount that is cut, a smaller one is left: in the middle of a file, too.
#[test]
fn a_row_at_fixed_places_that_ends_within_its_amount_is_refused() {
    let description = FIXED.replace("trailer = ", "# trailer = ");
    let file = FIXED_FILE.replace("T2        00009750\n", "");
    let whole = look(&description, &file);
    assert_eq!(sums(&whole), (State::Ok, 2, euro(10_000, 250)), "{:?}", whole.sums.problems);
    for (row, field) in [
        ("M20260601C0001", "cents"),
        ("M20260601C0001000", "cents"),
        ("M20260601C", "cents"),
        ("M20260601", "cents"),
    ] {
        for text in [format!("{row}\n{file}"), format!("{file}{row}"), format!("{file}{row}\n")] {
            let found = look(&description, &text);
            assert_eq!(found.state, State::Quarantined, "{text}");
            assert!(found.sums.problems.iter().any(|one| one.field == field), "{text}");
        }
    }
    let text = look(&description, &format!("{file}M20260601C00000001"));
    assert_eq!(sums(&text), (State::Ok, 3, euro(10_001, 250)), "a text may be short");
    let behind = description.replace("first = 2, last = 9", "first = 31, last = 38");
    let with = |day: &str| look(&behind, &format!("M        C00000001order-1     {day}\n")).state;
    assert_eq!(with("20260611"), State::Ok);
    for day in ["2026061", "202606", ""] {
        assert_eq!(with(day), State::Quarantined, "{day}");
    }
}

/// As of a file that nobody described.
#[test]
fn a_last_field_whose_line_does_not_end_may_be_cut() {
    let description = r#"
        name = "own"
        date = "Day"
        date_pattern = "%Y-%m-%d"
        amount = "Amount"
        currency_is = "EUR"
        tag = [{ column = "Id", kind = "merchant_reference" }]
    "#;
    let file = "Day,Id,Amount\n2026-11-01,a,10.00\n2026-11-02,b,1234.56";
    assert_eq!(look(description, file).state, State::Ok);
    for less in 1..=6 {
        let cut = &file[..file.len() - less];
        assert_eq!(look(description, cut).state, State::Quarantined, "{cut}");
        assert_eq!(look(description, &format!("{cut}\n")).state, State::Ok, "{cut}");
    }
}

/// What the page shows reads the file that it shows.
#[test]
fn the_descriptions_of_the_page_read_its_files() {
    let page = include_str!("../../../docs/row-files.md");
    let block = |kind: &str| {
        let begun = page.split(&format!("```{kind}\n")).nth(1).unwrap();
        begun.split("```").next().unwrap()
    };
    let described: BTreeMap<String, Vec<FormatSettings>> = toml::from_str(block("toml")).unwrap();
    let formats: Vec<Table> =
        described["format"].iter().map(|format| format.check().unwrap()).collect();
    let fixed = formats.iter().find(|table| table.name == "host").unwrap();
    let read = |file: &str| {
        inspect_table(Box::new(Cursor::new(file.as_bytes().to_vec())), fixed, None).unwrap()
    };
    let file = block("text");
    let found = read(file);
    assert_eq!(sums(&found), (State::Ok, 3, euro(10_001, 2_500)), "{:?}", found.sums.problems);
    for (from, to) in [("D00002500", "D00002501"), ("T00000003", "T00000004")] {
        assert_eq!(read(&file.replace(from, to)).state, State::Quarantined, "{to}");
    }
    let cut = file.lines().take(3).collect::<Vec<_>>().join("\n");
    assert_eq!(read(&cut).state, State::Quarantined, "without its trailer");
}

const BATCHED: &str = include_str!("../../../fixtures/formats/batched.toml");

const BATCHED_FILE: &str = include_str!("../../../fixtures/formats/batched.txt");

#[test]
fn columns_by_number_with_batches_that_come_to_their_payout() {
    let found = look(BATCHED, BATCHED_FILE);
    assert_eq!(sums(&found), (State::Ok, 3, euro(1_000, 1_000)), "{:?}", found.sums.problems);
    for (from, to) in [
        ("|8.00|", "|8.01|"),
        ("b1|EUR|2.00||REFUND|p2\n", ""),
        ("b1|EUR|8.00||PAYOUT|\n", ""),
        ("||10.00|", "|1.00|10.00|"),
    ] {
        let found = look(BATCHED, &BATCHED_FILE.replace(from, to));
        assert_eq!(found.state, State::Quarantined, "{to}");
    }
}

#[test]
fn signs_can_be_turned_and_rows_be_pending() {
    let description = r#"
        name = "card"
        amount = "Amount"
        inverted = true
        currency_is = "JPY"
        booked = { column = "State", is = ["done"] }
    "#;
    let found = look(description, "State,Amount\nDone,500\nopen,-20\n");
    assert_eq!(sums(&found), (State::Ok, 2, vec![("JPY".to_owned(), 20, 500)]));
    let statuses: Vec<_> = found.sums.statuses.iter().map(|(s, n)| (s.as_str(), *n)).collect();
    assert_eq!(statuses, [("booked", 1), ("pending", 1)]);
}

#[test]
fn a_description_that_cannot_be_followed_says_what_is_wrong() {
    for (text, field) in [
        ("", "amount"),
        ("amount = \"a\"\ndebit = \"b\"", "amount"),
        ("amount = \"a\"\ncurrency_is = \"XXY\"", "currency_is"),
        ("amount = \"a\"\ncurrency_is = \"EUR\"\ncurrency = \"c\"", "currency"),
        ("amount = \"a\"\ncurrency_is = \"EUR\"\nheader = false", "delimiter"),
        ("amount = \"a\"\ncurrency_is = \"EUR\"\nheader = false\ndelimiter = \";\"", "amount"),
        ("amount = 0\ncurrency_is = \"EUR\"", "amount"),
        ("amount = \"a\"\ncurrency_is = \"EUR\"\ndecimal = \"x\"", "decimal"),
        ("amount = \"a\"\ncurrency_is = \"EUR\"\ndelimiter = \"ab\"", "delimiter"),
        ("amount = \"a\"\ncurrency_is = \"EUR\"\ndate = \"d\"", "date_pattern"),
        ("amount = \"a\"\ncurrency_is = \"EUR\"\ndate_pattern = \"%Q\"", "date_pattern"),
        ("amount = \"a\"\ncurrency_is = \"EUR\"\ntag = [{ column = \"t\", kind = \"x\" }]", "tag"),
        (
            "amount = \"a\"\ncurrency_is = \"EUR\"\ntag = [{ column = \"t\", kind = \"text\", \
             pattern = \"no group\" }]",
            "tag",
        ),
        (
            "amount = \"a\"\ncurrency_is = \"EUR\"\n\
             fixed = [{ name = \"a\", first = 0, last = 2 }]",
            "fixed",
        ),
        (
            "amount = \"a\"\ndate = \"d\"\ndate_pattern = \"%Y%m%d\"\ncurrency_is = \"EUR\"\n\
             fixed = [{ name = \"d\", first = 1, last = 8 }, \
             { name = \"a\", first = 8, last = 12 }]",
            "fixed",
        ),
        ("amount = \"a\"\ncurrency_is = \"EUR\"\ndate_pattern = \"%H:%M\"", "date_pattern"),
        ("amount = \"a\"\ncurrency_is = \"EUR\"\ndate_pattern = \"%d.%d.%Y\"", "date_pattern"),
        ("amount = \"a\"\ncurrency_is = \"EUR\"\nencoding = \"klingon\"", "encoding"),
        ("debit = \"a\"\ncredit = \"a\"\ncurrency_is = \"EUR\"", "credit"),
        (
            "amount = \"a\"\ncurrency_is = \"EUR\"\n\
             flag = { column = \"f\", credit = [\"C\"], debit = [\"c\", \"D\"] }",
            "flag",
        ),
        (
            "amount = \"b\"\ncurrency_is = \"EUR\"\n\
             fixed = [{ name = \"a\", first = 1, last = 2 }]",
            "amount",
        ),
    ] {
        let misfits = settings(&format!("name = \"x\"\n{text}")).check().unwrap_err();
        let fields: Vec<&str> = misfits.iter().map(|(field, _)| *field).collect();
        assert!(fields.contains(&field), "{text}: {fields:?}");
    }
}

/// What a description does not say is not made up: the file is quarantined.
#[test]
fn what_does_not_follow_its_description_is_refused() {
    const HEAD: &str = "name = \"hb\"\ncurrency_is = \"EUR\"\ndate = \"Day\"\ndecimal = \",\"\n";
    let signed = format!("{HEAD}amount = \"Amount\"\n");
    let sided = format!("{HEAD}debit = \"Out\"\ncredit = \"In\"\n");
    let dated = |pattern: &str| format!("{signed}date_pattern = \"{pattern}\"\n");
    let file = |day: &str| format!("Day;Amount\n{day};1,00\n");
    let states = |description: &str, file: &str| look(description, file).state;
    for (pattern, day) in [
        ("%d.%m.%Y", "01.11.26"),
        ("%d.%m.%y", "27.11.2026"),
        ("%Y%m%d", "2026112"),
        ("%d%m%Y", "1112026"),
        ("%d.%m.%Y", "01.11.12026"),
        ("%d.%m.%Y", "01.11.2026xyz"),
    ] {
        assert_eq!(states(&dated(pattern), &file(day)), State::Quarantined, "{pattern} {day}");
    }
    for (pattern, day) in [
        ("%d.%m.%Y", "1.11.2026"),
        ("%d.%m.%Y", "01.11.2026 10:15"),
        ("%Y-%m-%d", "2026-11-01T10:15:00Z"),
        ("%Y-%m-%d %H:%M:%S", "2026-11-01 10:15:00"),
        ("%Y%m%d%H%M%S", "20261101101500"),
        ("%Y%m%d", "20261101 10:15"),
        ("%Y-%m-%d", "2026-11-01Z"),
        ("%d %b %Y", "01 Nov 2026"),
    ] {
        assert_eq!(states(&dated(pattern), &file(day)), State::Ok, "{pattern} {day}");
    }
    let day = "date_pattern = \"%d.%m.%Y\"\n";
    let debits = |rows: &str| states(&format!("{sided}{day}"), &format!("Day;Out;In\n{rows}"));
    assert_eq!(debits("01.11.2026;3,00;\n02.11.2026;-3,00;\n"), State::Quarantined);
    assert_eq!(debits("01.11.2026;-3,00;\n02.11.2026;-3,00;\n"), State::Ok);
    let twice = "Day;Amount;Amount\n01.11.2026;1,00;9,00\n";
    assert_eq!(states(&format!("{signed}{day}"), twice), State::Quarantined);
    let numbers = format!(
        "{}amount = 9\nheader = false\ndelimiter = \";\"\n{day}",
        HEAD.replace("\"Day\"", "1")
    );
    assert_eq!(states(&numbers, "01.11.2026;1,00\n"), State::Quarantined);
    let gross = format!("{signed}{day}gross = \"Gross\"\nfee = \"Fee\"\n");
    let of =
        |gross_and_fee: &str| format!("Day;Amount;Gross;Fee\n01.11.2026;9,70;{gross_and_fee}\n");
    assert_eq!(states(&gross, &of("10,00;0,30")), State::Ok);
    assert_eq!(states(&gross, &of("10,00;")), State::Ok);
    for wrong in ["90,00;0,30", "-10,00;0,30", "-10,00;"] {
        assert_eq!(states(&gross, &of(wrong)), State::Quarantined, "{wrong}");
    }
}

#[test]
fn a_text_with_two_references_is_neithers() {
    let description = "name = \"hb\"\ncurrency_is = \"EUR\"\namount = \"Amount\"\n[[tag]]\n\
                       column = \"Text\"\nkind = \"order_id\"\npattern = 'INV-(\\d{2})'";
    let kinds = |text: &str| {
        let found = look(description, &format!("Amount;Text\n1.00;{text}\n"));
        found.sums.references.into_keys().collect::<Vec<_>>()
    };
    assert_eq!(kinds("Pay INV-12"), [TagKind::OrderId]);
    assert_eq!(kinds("Pay INV-12, INV-12"), [TagKind::OrderId]);
    assert_eq!(kinds("Pay INV-12 and INV-13"), [TagKind::Text]);
    assert_eq!(kinds("Pay INV-123"), [], "a part of a longer one");
}

#[test]
fn inspect_reads_a_described_file_without_an_account_or_a_database() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("tieout.toml");
    std::fs::write(&config, format!("[[format]]\n{NAMED}")).unwrap();
    let file = folder.path().join("bank.csv");
    std::fs::write(&file, NAMED_FILE).unwrap();
    let run = |name: &str| {
        let mut command = Command::new(tieout_bin());
        let command = command.args(["files", "inspect", "--json", "--format", name, "--config"]);
        command.arg(&config).arg(&file).output().unwrap()
    };
    let found = run("housebank");
    assert_eq!(found.status.code(), Some(0), "{found:?}");
    let body: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!((&body["format"], &body["version"]), (&"table".into(), &"housebank".into()));
    assert_eq!(body["totals"]["EUR"]["credit_minor"], 100_000);
    let unknown = run("otherbank");
    assert_eq!(unknown.status.code(), Some(2), "{unknown:?}");
    let text = String::from_utf8(unknown.stderr).unwrap();
    assert!(text.contains("housebank") && text.contains("adyen_settlement"), "{text}");
}

const MARKED: &str = r#"
name = "marked"
date = "D"
date_pattern = "%d.%m.%Y"
amount = "A"
currency_is = "EUR"
flag = { column = "F", credit = ["C"], debit = ["D"] }
"#;

/// A redundant minus turned the money of every debit round.
#[test]
fn a_minus_beside_a_mark_of_debit_does_not_turn_money_round() {
    let file = |rows: &[(&str, &str)]| {
        let rows = rows.iter().map(|(amount, way)| format!("20.11.2026;{amount};{way}\n"));
        format!("D;A;F\n{}", rows.collect::<String>())
    };
    for (rows, credit, debit) in [
        ([("10.00", "C"), ("-3.50", "D")], 1_000, 350),
        ([("-4.00", "D"), ("-3.50", "D")], 0, 750),
        ([("10.00", "C"), ("3.50", "D")], 1_000, 350),
    ] {
        let found = look(MARKED, &file(&rows));
        assert_eq!(sums(&found), (State::Ok, 2, euro(credit, debit)), "{rows:?}");
    }
    for (rows, line) in [
        ([("4.00", "D"), ("-3.50", "D")], 3),
        ([("-4.00", "D"), ("3.50", "D")], 3),
        ([("10.00", "C"), ("-3.50", "C")], 3),
        ([("-3.50", "C"), ("-3.50", "D")], 2),
    ] {
        let found = look(MARKED, &file(&rows));
        assert_eq!(found.state, State::Quarantined, "{rows:?}");
        let problem = &found.sums.problems[0];
        assert_eq!((problem.line, problem.field.as_str()), (line, "A"), "{rows:?}");
    }
    let turned = format!("{MARKED}inverted = true\n");
    let found = look(&turned, &file(&[("10.00", "C"), ("-3.50", "D")]));
    assert_eq!(sums(&found), (State::Ok, 2, euro(350, 1_000)));
}

/// Each row: its amount, its mark, and the balance behind it.
#[test]
fn a_balance_shows_what_a_minus_beside_a_mark_means() {
    let look = |rows: &[(&str, &str, &str)]| {
        let rows = rows
            .iter()
            .map(|(amount, way, balance)| format!("20.11.2026;{amount};{way};{balance}\n"));
        let file = format!("D;A;F;B\n{}", rows.collect::<String>());
        look(&format!("balance = \"B\"\n{MARKED}"), &file)
    };
    let first = ("10.00", "C", "110.00");
    for (rows, credit, debit) in [
        ([first, ("-3.50", "D", "106.50"), ("-1.50", "D", "105.00")], 1_000, 500),
        ([first, ("-3.50", "D", "113.50"), ("1.50", "D", "112.00")], 1_350, 150),
        ([first, ("1.50", "D", "108.50"), ("-3.50", "D", "112.00")], 1_350, 150),
        ([first, ("1.50", "D", "108.50"), ("-3.50", "D", "105.00")], 1_000, 500),
        ([first, ("-1.50", "C", "108.50"), ("3.50", "D", "105.00")], 1_000, 500),
        // The newest first.
        ([("-1.50", "D", "105.00"), ("-3.50", "D", "106.50"), first], 1_000, 500),
        ([("-3.50", "D", "103.00"), ("-3.50", "D", "106.50"), first], 1_000, 700),
        ([("1.50", "D", "112.00"), ("-3.50", "D", "113.50"), first], 1_350, 150),
    ] {
        let found = look(&rows);
        let problems = &found.sums.problems;
        assert_eq!(sums(&found), (State::Ok, 3, euro(credit, debit)), "{rows:?} {problems:?}");
    }
    for rows in [
        // The first is in no equation, and another shows that a minus means more than one thing.
        [("-3.50", "D", "106.50"), ("1.50", "D", "105.00"), ("1.00", "C", "106.00")],
        [("-3.50", "D", "106.50"), ("-1.50", "D", "108.00"), ("1.00", "C", "109.00")],
        [("-3.50", "C", "106.50"), ("1.50", "D", "105.00"), ("1.00", "C", "106.00")],
        // A row without a balance is not shown.
        [first, ("-3.50", "D", ""), ("1.50", "D", "105.00")],
        [first, ("1.50", "D", "108.50"), ("-3.50", "D", "")],
    ] {
        let found = look(&rows);
        assert_eq!(found.state, State::Quarantined, "{rows:?}");
        assert!(found.sums.problems.iter().any(|one| one.field == "A"), "{rows:?}");
    }
}

/// A sum below the rows, and a balance above them, were booked as movements.
#[test]
fn a_row_that_counts_without_its_day_is_refused() {
    let description = r#"
        name = "own"
        date = "Day"
        date_pattern = "%Y-%m-%d"
        value_date = "Value"
        amount = "Amount"
        currency_is = "EUR"
        booked = { column = "State", is = ["done"] }
        ignore = [{ column = "State", is = ["sum"] }]
    "#;
    let file = "Day,Value,Amount,State\n2026-11-01,,10.00,done\n";
    for row in [",,10.00,sum", ",2026-11-01,4.00,open", ",,,done", "2026-11-02,,4.00,open"] {
        let found = look(description, &format!("{file}{row}\n"));
        let problems = &found.sums.problems;
        assert_eq!(found.state, State::Ok, "{row}: {problems:?}");
    }
    for row in [",,10.00,done", " ,2026-11-01,-4.00,done", ",,0.00,done"] {
        let found = look(description, &format!("{file}{row}\n"));
        assert_eq!(found.state, State::Quarantined, "{row}");
        let problem = &found.sums.problems[0];
        let said = (problem.line, problem.field.as_str(), problem.expected.as_str());
        assert_eq!(said, (3, "Day", "a date as %Y-%m-%d"), "{row}");
        assert_eq!(problem.found, "none", "{row}");
    }
}

#[test]
fn a_column_that_no_row_has_is_refused_whatever_it_is_for() {
    let description = |more: &str| {
        format!(
            "name = \"own\"\ndelimiter = \";\"\nheader = false\namount = 1\n\
             currency_is = \"EUR\"\n{more}"
        )
    };
    for (more, near, far) in [
        ("tag = [{ column = COL, kind = \"order_id\" }]", 2, 3),
        ("kind = COL", 2, 3),
        ("psp_reference = COL", 2, 3),
        ("account = COL", 2, 3),
        ("fee = COL", 2, 3),
        ("gross = COL", 1, 3),
        ("value_date = COL\ndate_pattern = \"%d.%m.%Y\"", 2, 3),
        ("booked = { column = COL, is = [\"1\"] }", 2, 3),
        ("ignore = [{ column = COL, is = [\"9\"] }]", 2, 3),
        ("batch = { column = 2, payout = { column = COL, is = [\"1\"] } }", 2, 3),
    ] {
        let file = if more.starts_with("value_date") { "10.00;\n" } else { "10.00;1\n" };
        let look = |at: i32| {
            let own = more.replace("COL", &at.to_string());
            look(&description(&own), file).sums.problems
        };
        let is_told = |at: i32| {
            let told = format!("rows with a column {at}");
            look(at).iter().any(|one| one.expected == told && one.found == "2 columns at most")
        };
        assert!(is_told(far), "{more}: {:?}", look(far));
        assert!(!is_told(near), "{more}: {:?}", look(near));
    }
    let fixed = format!("kind = 6\n{FIXED}");
    assert_eq!(settings(&fixed).check().unwrap_err()[0].0, "kind", "of five fields");
    assert!(settings(&fixed.replace("kind = 6", "kind = 5")).check().is_ok());
}

/// A file of whole amounts in thousands was a thousandth of them.
#[test]
fn an_amount_that_may_be_in_thousands_is_refused_unless_the_mark_was_said() {
    let state = |more: &str, amount: &str, currency: &str| {
        let description =
            format!("name = \"own\"\namount = \"Amount\"\ncurrency_is = \"{currency}\"\n{more}");
        let found = look(&description, &format!("Amount;Text\n{amount};a\n"));
        let problem = found.sums.problems.first().map(|one| (one.line, one.expected.clone()));
        let total = found.sums.totals.values().next().map_or(0, |one| one.credit_minor);
        (found.state == State::Ok).then_some(total).ok_or(problem.unwrap_or_default())
    };
    for (amount, currency, minor) in [
        ("10.00", "EUR", 1_000),
        ("1000", "EUR", 100_000),
        ("1234.500", "EUR", 123_450),
        ("0.500", "EUR", 50),
        ("1.000", "KWD", 1_000),
    ] {
        assert_eq!(state("", amount, currency), Ok(minor), "{amount} {currency}");
    }
    for (amount, currency) in
        [("1.000", "EUR"), ("+12.500", "EUR"), ("1.000 EUR", "EUR"), ("1.000", "JPY")]
    {
        let (line, expected) = state("", amount, currency).unwrap_err();
        assert_eq!(line, 2, "{amount}");
        assert!(expected.contains("(say `decimal` in the [[format]]"), "{amount}: {expected}");
    }
    assert_eq!(state("decimal = \".\"", "1.000", "EUR"), Ok(100));
    assert_eq!(state("decimal = \",\"\ngrouped = true", "1.000", "EUR"), Ok(100_000));
    assert_eq!(state("grouped = true", "1,000.00", "EUR"), Ok(100_000));
    assert_eq!(state("unit = \"minor\"", "1000", "EUR"), Ok(1_000));
}
