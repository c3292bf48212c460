//! Lines of settlement files in a report: whatever they are, each is in one place, and all sums
//! lead to zero; one line more or less, or one unit, and the report says so.

use proptest::prelude::*;
use tieout::model::money::{Currency, Money};
use tieout::model::reason::Reason;
use tieout::model::settlement::{Direction, EntryStatus, LineKind};
use tieout::report;
use tieout::report::cells::Dialect;
use tieout::store::files::{
    FileOfRun, FileRow, FileState, LineBucket, LineOfRun, LinePlace, LineState, LineTally,
    StoredLine,
};

use super::vectors::{RUN, Vectors, at, built, manifest, record, sound, table};

fn currency(code: &str) -> Currency {
    Currency::parse(code).unwrap()
}

/// A line of a file, with what became of it.
#[derive(Debug, Clone)]
struct Planned {
    bucket: usize,
    kind: usize,
    credit: bool,
    code: &'static str,
    minor: Option<i64>,
    fee: Option<i64>,
    row: u8,
    worth: Option<i64>,
    reason: usize,
}

prop_compose! {
    fn planned()(
        bucket in 0..4_usize,
        kind in 0..LineKind::ALL.len(),
        credit in any::<bool>(),
        code in prop_oneof![Just("EUR"), Just("USD"), Just("JPY"), Just("BHD")],
        minor in proptest::option::of(0..5_000_000_000_000_i64),
        fee in proptest::option::of(0..500_i64),
        row in 0..4_u8,
        worth in proptest::option::of(-5_000_000_000_000..5_000_000_000_000_i64),
        reason in 0..=Reason::ALL.len(),
    ) -> Planned {
        Planned { bucket, kind, credit, code, minor, fee, row, worth, reason }
    }
}

fn line_of(plan: &Planned, file: i64, position: i64) -> LineOfRun {
    let money = |minor: i64| Money::new(minor, currency(plan.code));
    let is_matched = plan.bucket == 0;
    let reason = Reason::ALL.get(plan.reason).map(|reason| reason.as_str().to_owned());
    let line = StoredLine {
        place: LinePlace { file, position },
        file_sha256: format!("{file:064}"),
        file_name: format!("=stmt{file}.xml"),
        file_line: position,
        statement: 1,
        account: "bank".into(),
        format: "camt.053".into(),
        version: String::new(),
        kind: LineKind::ALL[plan.kind],
        direction: if plan.credit { Direction::Credit } else { Direction::Debit },
        amount: plan.minor.map(money),
        currency: currency(plan.code),
        gross: plan.fee.and(plan.minor).map(money),
        fee: plan.fee.map(money),
        net: None,
        status: EntryStatus::Booked,
        decides: true,
        untied: false,
        itemised: true,
        tag: Some(format!("-pay_{}", plan.row)),
        further: Vec::new(),
        psp_reference: None,
        original: None,
        return_reason: None,
        type_code: None,
        bank_reference: None,
        batch: None,
        booked_on: None,
        value_on: None,
        refs: Vec::new(),
        state: if is_matched { LineState::Matched } else { LineState::Open },
        reason: reason.filter(|_| is_matched),
        row: is_matched.then(|| ("charges".into(), format!("{}", plan.row))),
        received_at: at("2026-11-19T06:00:00Z"),
    };
    LineOfRun {
        line,
        worth: plan.worth.map(money).filter(|_| is_matched),
        noted: (plan.bucket == 1).then(|| "orphan".into()),
    }
}

/// Files with their lines, as a database would read them back.
fn source(files: &[Vec<Planned>]) -> Vectors {
    let mut source = Vectors::of(vec![record(1)]);
    let all = [LineBucket::Matched, LineBucket::Noted, LineBucket::NoRow, LineBucket::Elsewhere];
    for (plans, number) in files.iter().zip(1..) {
        let mut tallies: Vec<LineTally> = Vec::new();
        let mut counted = serde_json::Map::new();
        for (plan, position) in plans.iter().zip(1..) {
            let own = line_of(plan, number, position);
            let minor = i128::from(plan.minor.unwrap_or(0)) * if plan.credit { 1 } else { -1 };
            let (currency, bucket) = (plan.code.to_owned(), all[plan.bucket]);
            tallies.push(LineTally { currency, bucket, lines: 1, minor });
            let body = counted.entry(plan.code).or_insert_with(|| {
                serde_json::json!({ "credits": 1, "debits": 0, "credit_minor": "5",
                    "debit_minor": "0", "lines": 0, "line_minor": "0" })
            });
            let sum: i128 = body["line_minor"].as_str().unwrap().parse().unwrap();
            body["line_minor"] = (sum + minor).to_string().into();
            body["lines"] = (body["lines"].as_i64().unwrap() + 1).into();
            if let Some(lines) = source.lines.get_mut(plan.bucket) {
                lines.push(own);
            }
        }
        source.files.push(FileOfRun {
            file: file_row(number, plans.len(), serde_json::Value::Object(counted).to_string()),
            raw_bytes: 1_000,
            period: (None, None),
            balances: (Some(0), None),
            tallies,
            tried_run: None,
        });
    }
    source
}

fn file_row(id: i64, lines: usize, totals: String) -> FileRow {
    FileRow {
        id,
        sha256: format!("{id:064}"),
        source: "local".into(),
        name: format!("=stmt{id}.xml"),
        account: "bank".into(),
        spooled_as: None,
        format: "camt.053".into(),
        version: "8".into(),
        state: FileState::Loaded,
        received_at: at("2026-11-19T06:00:00Z"),
        run_id: "another".into(),
        statements: 1,
        held: 0,
        entries: 1,
        lines: lines as i64,
        totals,
        problems: Vec::new(),
        problems_total: 0,
        changed: None,
        encoding: None,
    }
}

fn files() -> impl Strategy<Value = Vec<Vec<Planned>>> {
    proptest::collection::vec(proptest::collection::vec(planned(), 1..20), 1..4)
}

fn any_dialect() -> impl Strategy<Value = Dialect> {
    prop_oneof![Just(Dialect::Plain), Just(Dialect::Excel), Just(Dialect::ExcelEu)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_line_is_in_one_place_and_all_lead_to_zero(
        files in files(),
        dialect in any_dialect(),
    ) {
        let source = source(&files);
        let (_root, built) = built(&source, dialect);
        prop_assert_eq!(&built.untied, &Vec::<String>::new(), "{:?}", built.findings);
        sound(&source, &built.dir);
        let of = |bucket| files.iter().flatten().filter(|plan| plan.bucket == bucket).count();
        prop_assert_eq!(table(&built.dir, "matched.csv", dialect).len(), of(0));
        let exceptions = table(&built.dir, "exceptions.csv", dialect);
        prop_assert_eq!(exceptions.iter().filter(|row| row["kind"] == "line").count(), of(1));
        let bridge = table(&built.dir, "bridge.csv", dialect);
        for line in bridge.iter().filter(|line| line["kind"].ends_with("residual")) {
            prop_assert_eq!((&*line["count"], &*line["amount_minor"]), ("0", "0"));
        }
    }

    #[test]
    fn one_line_or_one_unit_that_got_lost_is_never_tied(
        files in files(),
        which in any::<prop::sample::Index>(),
        by_lines in any::<bool>(),
    ) {
        let mut source = source(&files);
        let mut all: Vec<&mut LineTally> =
            source.files.iter_mut().flat_map(|own| &mut own.tallies).collect();
        let which = which.index(all.len());
        if by_lines { all[which].lines -= 1 } else { all[which].minor += 1 }
        let (_root, built) = built(&source, Dialect::Plain);
        prop_assert!(!built.untied.is_empty());
        prop_assert_eq!(&manifest(&built.dir)["tie_out"], "UNTIED");
    }
}

#[test]
fn a_line_that_is_told_twice_or_not_at_all_is_found_from_the_files_alone() {
    let plan = |bucket| Planned {
        bucket,
        kind: 0,
        credit: true,
        code: "EUR",
        minor: Some(500),
        fee: None,
        row: 1,
        worth: Some(500),
        reason: Reason::ALL.len(),
    };
    let whole = source(&[vec![plan(0), plan(0), plan(1), plan(3)]]);
    let (_root, fine) = built(&whole, Dialect::Plain);
    sound(&whole, &fine.dir);
    for bucket in [0, 1] {
        for change in [-1, 1] {
            let mut other = whole.clone();
            let lines = &mut other.lines[bucket];
            if change < 0 {
                lines.pop();
            } else {
                let mut more = lines.last().unwrap().clone();
                more.line.place.position += 100;
                lines.push(more);
            }
            let (_root, built) = built(&other, Dialect::Plain);
            let found = report::verify(&built.dir).unwrap();
            assert!(!found.is_sound(), "bucket {bucket}, {change}");
        }
    }
}

#[test]
fn the_rows_amount_and_the_difference_stand_once() {
    let plan = |minor, row| Planned {
        bucket: 0,
        kind: 0,
        credit: true,
        code: "EUR",
        minor: Some(minor),
        fee: None,
        row,
        worth: Some(500),
        reason: Reason::ALL.len(),
    };
    let source = source(&[vec![plan(300, 2), plan(500, 1), plan(150, 2)]]);
    let (_root, built) = built(&source, Dialect::Plain);
    let lines: Vec<String> = table(&built.dir, "matched.csv", Dialect::Plain)
        .iter()
        .map(|line| {
            ["match_id", "internal_id", "bank_amount", "local_amount", "difference"]
                .map(|column| line[column].as_str())
                .join("|")
        })
        .collect();
    assert_eq!(lines, ["M-1-2|1|5.00|5.00|0.00", "M-1-1|2|3.00||", "M-1-1|2|1.50|5.00|-0.50"]);
    let sums = manifest(&built.dir)["files"]
        .as_array()
        .unwrap()
        .iter()
        .find(|file| file["name"] == "matched.csv")
        .unwrap()["sums"]
        .clone();
    assert_eq!(sums["local_amount_minor"]["EUR"], "1000");
    assert_eq!(source.run.id, RUN);
}

#[test]
fn a_file_that_the_run_quarantined_counts_for_nothing() {
    let mut source = source(&[vec![]]);
    let own = &mut source.files[0];
    own.file.run_id = RUN.into();
    own.file.state = FileState::Quarantined;
    own.file.problems = vec![tieout::model::settlement::Problem::error(3, "CLBD", "5", "6")];
    let (_root, before) = built(&source, Dialect::Plain);
    let line = table(&before.dir, "inputs.csv", Dialect::Plain).pop().unwrap();
    assert_eq!((&*line["state"], &*line["lines_matched"]), ("quarantined", ""));
    assert_eq!(line["note"], "line 3: CLBD: expected 5, found 6");
    sound(&source, &before.dir);
    // A person lets it count later: the report of the run that quarantined it stays.
    let bytes = super::vectors::bytes_of(&before.dir);
    let own = &mut source.files[0];
    own.file.state = FileState::Released;
    own.file.changed = Some((at("2026-11-20T06:00:00Z"), "mara".into(), "checked".into()));
    own.file.lines = 1;
    let tally = (LineBucket::Elsewhere, 1, 500);
    let (bucket, lines, minor) = tally;
    own.tallies = vec![LineTally { currency: "EUR".into(), bucket, lines, minor }];
    let (_root, after) = built(&source, Dialect::Plain);
    assert_eq!(super::vectors::bytes_of(&after.dir), bytes);
}
