//! A report is believed by nobody until its files say so themselves.

use std::path::Path;

use serde_json::json;
use tieout::model::reason::Reason;
use tieout::report;
use tieout::report::aging::AgingLine;
use tieout::report::cells::Dialect;
use tieout::report::columns::MANIFEST;
use tieout::report::error::ReportError;
use tieout::report::verify::Verified;
use tieout::report::verify::anew::Rebuilt;

use super::vectors::{RUN, Vectors, at, block, built, manifest, mixed, review};

/// Changes one cell of the first record of a file, and the manifest's hash with it.
fn tamper(dir: &Path, file: &str, column: &str, to: &str) {
    let path = dir.join(file);
    let mut reader = csv::Reader::from_path(&path).unwrap();
    let header = reader.headers().unwrap().clone();
    let mut rows: Vec<Vec<String>> = reader
        .records()
        .map(|record| record.unwrap().iter().map(str::to_owned).collect())
        .collect();
    let at = header.iter().position(|name| name == column).unwrap();
    assert_ne!(rows[0][at], to, "{file} {column}");
    rows[0][at] = to.to_owned();
    let mut writer =
        csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_path(&path).unwrap();
    writer.write_record(&header).unwrap();
    for row in rows {
        writer.write_record(row).unwrap();
    }
    writer.flush().unwrap();
    drop(writer);
    let before = manifest(dir);
    let known = before["files"].as_array().unwrap().iter().find(|f| f["name"] == file).unwrap();
    let old = known["sha256"].as_str().unwrap();
    use sha2::Digest;
    let new = sha2::Sha256::digest(std::fs::read(&path).unwrap());
    let new: String = new.iter().map(|byte| format!("{byte:02x}")).collect();
    let text = std::fs::read_to_string(dir.join(MANIFEST)).unwrap().replace(old, &new);
    std::fs::write(dir.join(MANIFEST), text).unwrap();
}

#[test]
fn a_changed_cell_is_found_from_the_files_alone_even_with_its_hash_made_right() {
    for (file, column, to) in [
        ("reconciliation.csv", "run_id", "another"),
        ("reconciliation.csv", "amount", "19.98"),
        ("reconciliation.csv", "amount_minor", "1998"),
        ("reconciliation.csv", "psp_amount_minor", "1999"),
        ("reconciliation.csv", "difference_minor", "7"),
        ("reconciliation.csv", "outcome", "failed"),
        ("reconciliation.csv", "reason", "settled"),
        ("reconciliation.csv", "status_after", "PAID"),
        ("reconciliation.csv", "age_days", "44"),
        ("reconciliation.csv", "age_bucket", "90+"),
        ("reconciliation.csv", "currency", "USD"),
        ("reconciliation.csv", "key", "zzz"),
        ("exceptions.csv", "reason", "disputed"),
        ("exceptions.csv", "local_amount_minor", "1"),
        ("exceptions.csv", "run_id", "another"),
        ("summary.csv", "count", "99"),
        ("summary.csv", "bucket", "matched"),
        ("summary.csv", "counterparty", "someone"),
        ("bridge.csv", "count", "99"),
        ("bridge.csv", "line_no", "2"),
        ("bridge.csv", "kind", "item"),
        ("transitions.csv", "to_status", "PAID"),
        ("transitions.csv", "prev_hash", "00"),
        ("transitions.csv", "hash", "00"),
        ("transitions.csv", "audit_seq", "2"),
        ("inputs.csv", "rows_answered", "2"),
        ("inputs.csv", "pages_or_lines_read", "many"),
        ("aging.csv", "closing", "5"),
    ] {
        let (_root, built) = built(&mixed(), Dialect::Plain);
        tamper(&built.dir, file, column, to);
        let found = report::verify(&built.dir).unwrap();
        assert!(!found.is_sound(), "{file} {column}");
    }
}

#[test]
fn a_text_that_no_total_depends_on_is_found_against_the_database() {
    let source = mixed();
    for column in ["reason_text", "tag", "psp_reference", "next_check_at", "policy_version"] {
        let (_root, built) = built(&source, Dialect::Plain);
        tamper(&built.dir, "reconciliation.csv", column, "2026-11-30T00:00:00.000000Z");
        assert!(report::verify(&built.dir).unwrap().is_sound(), "{column}");
        let found = against(&source, &built.dir);
        assert_eq!(found.findings.len(), 2, "{:?}", found.findings);
        assert_eq!(found.findings[0], "reconciliation.csv is not what the journal holds");
        let anew = format!("built anew from the journal: reconciliation.csv line 2, {column}: ");
        assert!(found.findings[1].starts_with(&anew), "{:?}", found.findings);
    }
}

fn against(source: &Vectors, dir: &Path) -> Verified {
    block(report::verify_against(source, dir)).unwrap()
}

/// A run that noted its cases by age: nothing of its report is worked out afterwards.
fn noted(mut source: Vectors) -> Vectors {
    let line = AgingLine {
        currency: "EUR".into(),
        reason: "amount_mismatch".into(),
        owner: "mara".into(),
        bucket: "0-1".into(),
        amount_minor: "500".into(),
        oldest_case: Some(3),
        opening: 1,
        new: 2,
        closed: 1,
    };
    let account = json!({ "account": "stripe_live", "rows": 3, "answered": 3 });
    let notes = json!({ "accounts": [account], "aging": [line], "account_cases": [] });
    source.run.notes = notes.to_string();
    source
}

#[test]
fn a_cell_that_only_the_building_knows_is_found_by_building_anew() {
    let source = noted(mixed());
    for (file, column, to) in [
        ("reconciliation.csv", "created_at_local", "2026-11-17T09:00:01+01:00"),
        ("exceptions.csv", "reason_text", "all is well"),
        ("exceptions.csv", "internal_id", "another"),
        ("exceptions.csv", "suggested_action", "none"),
        ("exceptions.csv", "first_seen_run", "another"),
        ("exceptions.csv", "times_seen", "7"),
        ("exceptions.csv", "evidence_sha256", "00"),
        ("transitions.csv", "at", "2026-11-19T23:30:11.000000Z"),
        ("transitions.csv", "actor", "mara"),
        ("aging.csv", "owner", "nobody"),
        ("aging.csv", "oldest_case", "C-4"),
        ("inputs.csv", "name", "another"),
        ("inputs.csv", "note", "a note"),
        ("bridge.csv", "label", "other words"),
        ("bridge.csv", "ref_file", "nowhere.csv"),
    ] {
        let (_root, built) = built(&source, Dialect::Plain);
        tamper(&built.dir, file, column, to);
        let by_files = report::verify(&built.dir).unwrap();
        assert!(by_files.is_sound(), "{file} {column}: {:?}", by_files.findings);
        assert_eq!(by_files.rebuilt, Rebuilt::NotAsked);
        let found = against(&source, &built.dir);
        assert_eq!(found.findings.len(), 1, "{file} {column}: {:?}", found.findings);
        let says = format!("{file} line 2, {column}: it says {to:?}, and built anew ");
        assert!(found.findings[0].contains(&says), "{:?}", found.findings);
        assert!(found.totals_hold, "the recomputation has nothing against it");
        assert_eq!(found.rebuilt.as_str(), "differs");
        let [difference] = found.rebuilt.differences() else { panic!("{:?}", found.rebuilt) };
        assert_eq!((&*difference.file, difference.line), (file, 2));
    }
}

#[test]
fn a_field_of_the_manifest_is_found_by_building_anew() {
    let source = noted(mixed());
    let (_root, built) = built(&source, Dialect::Plain);
    assert_eq!(against(&source, &built.dir).rebuilt, Rebuilt::Same);
    let path = built.dir.join(MANIFEST);
    let whole = std::fs::read_to_string(&path).unwrap();
    let write = |from: &str, to: &str| {
        assert!(whole.contains(from), "{from}");
        std::fs::write(&path, whole.replace(from, to)).unwrap();
        against(&source, &built.dir).findings
    };
    let day = "\"business_date\": \"2026-11-20\"";
    let found = write(day, &day.replace("20\"", "21\""));
    let says = "manifest.json line 13, business_date: it says \"2026-11-21\", and built anew \
                \"2026-11-20\"";
    assert_eq!(found, [format!("built anew from the journal: {says}")]);
    let found = write("\"policy_version\": \"p1\"", "\"policy_version\": \"p2\"");
    assert_eq!(found[0], "the manifest's policy_version is \"p2\", and \"p1\" in the database");
    let found = write("\n  \"state\"", "\n   \"state\"");
    assert!(found[0].contains("manifest.json line 5: it says the same"), "{found:?}");
}

#[test]
fn what_another_version_built_is_no_finding_and_what_the_journal_says_is() {
    let mut source = noted(mixed());
    source.run.version = "0.0.1".into();
    let (_root, built) = built(&source, Dialect::Plain);
    assert_eq!(against(&source, &built.dir).rebuilt, Rebuilt::Same, "as long as it is the same");
    tamper(&built.dir, "exceptions.csv", "suggested_action", "none");
    let found = against(&source, &built.dir);
    assert_eq!(found.findings, Vec::<String>::new());
    let Rebuilt::OtherVersion { made_by, differences } = &found.rebuilt else {
        panic!("{:?}", found.rebuilt);
    };
    assert_eq!((made_by.as_str(), differences.len()), ("tieout 0.0.1", 1));
    assert_eq!(differences[0].column.as_deref(), Some("suggested_action"));
    assert!(found.rebuilt.text().contains("built by another version"));
    tamper(&built.dir, "reconciliation.csv", "reason_text", "another sentence");
    let found = against(&source, &built.dir);
    assert_eq!(found.findings, ["reconciliation.csv is not what the journal holds"]);
    // The version is the database's word, not that of whoever wrote the manifest.
    source.run.version = env!("CARGO_PKG_VERSION").into();
    let found = against(&source, &built.dir).findings;
    assert!(found[0].starts_with("the manifest's version is \"0.0.1\""), "{found:?}");
    assert!(found.iter().any(|one| one.contains("suggested_action")), "{found:?}");
}

#[test]
fn a_run_that_is_not_there_is_said_and_no_finding() {
    let source = noted(mixed());
    let (_root, built) = built(&source, Dialect::Plain);
    let mut other = source.clone();
    other.run.id = "another".into();
    let found = against(&other, &built.dir);
    assert_eq!((found.findings, &found.rebuilt), (vec![], &Rebuilt::NoRun));
    assert!(found.rebuilt.is_open() && found.against_database);
    let mut pruned = source.clone();
    pruned.journal.clear();
    pruned.totals.clear();
    let when = at("2027-11-20T00:00:00Z");
    pruned.pruned.insert(RUN.into(), when);
    let found = against(&pruned, &built.dir);
    assert_eq!((found.findings, &found.rebuilt), (vec![], &Rebuilt::Pruned { at: when }));
    // What is still there is held against it all the same.
    pruned.run.close_hash = Some("0000".into());
    let found = against(&pruned, &built.dir).findings;
    assert!(found[0].starts_with("the audit head is 7f3a in the report and 0000"), "{found:?}");
}

#[test]
fn what_pruning_earlier_runs_took_is_no_sign_of_a_change() {
    let mut source = noted(Vectors::of(vec![review(1, 1, Reason::AmountMismatch)]));
    source.cases[0].opened_run = "earlier".into();
    source.cases[0].times_seen = 3;
    let (_root, built) = built(&source, Dialect::Plain);
    assert_eq!(against(&source, &built.dir).rebuilt, Rebuilt::Same);
    // A later run saw it too, and the journal tells of two times less.
    source.cases[0].last_run = "later".into();
    source.cases[0].times_seen = 4;
    let found = against(&source, &built.dir);
    assert_eq!(found.rebuilt.as_str(), "differs", "nothing was pruned");
    source.pruned.insert("earlier".into(), at("2027-11-20T00:00:00Z"));
    let is_moved_on = |source: &Vectors| {
        let found = against(source, &built.dir);
        assert_eq!(found.findings, Vec::<String>::new());
        assert_eq!(found.rebuilt.as_str(), "moved_on", "{:?}", found.rebuilt);
        assert!(found.rebuilt.text().contains("exceptions.csv"), "{}", found.rebuilt.text());
    };
    is_moved_on(&source);
    // Its case was closed, and went with the run that opened it.
    let mut gone = source.clone();
    gone.cases.clear();
    is_moved_on(&gone);
    tamper(&built.dir, "exceptions.csv", "times_seen", "0");
    assert_eq!(against(&source, &built.dir).rebuilt.as_str(), "differs", "never fewer than now");
}

#[test]
fn a_report_under_another_runs_name_is_found() {
    let source = mixed();
    let (root, built) = built(&source, Dialect::Plain);
    let other = root.path().join("01990000-0000-7000-8000-000000000001");
    std::fs::rename(&built.dir, &other).unwrap();
    let found = report::verify(&other).unwrap().findings;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("it stands under the name of run 01990000"), "{found:?}");
}

#[test]
fn the_database_must_agree_with_the_head_the_totals_and_the_records() {
    let source = mixed();
    let (_root, built) = built(&source, Dialect::Plain);
    let findings = |source: &Vectors| {
        block(report::verify_against(source, &built.dir)).unwrap().findings.join("\n")
    };
    let mut other = source.clone();
    other.run.close_hash = Some("0000".into());
    assert!(findings(&other).contains("audit head"), "{}", findings(&other));
    let mut other = source.clone();
    other.totals[0].rows += 1;
    assert!(findings(&other).contains("claimed"), "{}", findings(&other));
    let mut other = source.clone();
    other.journal.pop();
    let found = findings(&other);
    assert!(
        found.contains("transitions.csv is not") && found.contains("reconciliation.csv is not")
    );
}

#[test]
fn what_the_manifest_says_of_totals_is_worked_out_again() {
    for (pointer, to) in [
        ("/residuals/EUR/rows", json!(1)),
        ("/residuals/EUR/amount_minor", json!("1")),
        ("/residuals/EUR/amount", json!("0.01")),
        ("/counts/released", json!(99)),
        ("/tie_out", json!("UNTIED")),
        ("/tie_out", json!("tide")),
        ("/untied", json!(["EUR"])),
    ] {
        let (_root, built) = built(&mixed(), Dialect::Plain);
        assert!(report::verify(&built.dir).unwrap().is_sound());
        let mut changed = manifest(&built.dir);
        *changed.pointer_mut(pointer).unwrap() = to;
        std::fs::write(built.dir.join(MANIFEST), changed.to_string()).unwrap();
        let found = report::verify(&built.dir).unwrap();
        assert!(!found.is_sound(), "{pointer}");
    }
}

#[test]
fn bytes_rows_and_files_must_be_those_of_the_manifest() {
    let (_root, built) = built(&mixed(), Dialect::Plain);
    let path = built.dir.join("inputs.csv");
    let whole = std::fs::read(&path).unwrap();
    for (name, bytes) in [
        ("a byte more", [whole.as_slice(), b"\n"].concat()),
        ("cut short", whole[..whole.len() - 9].to_vec()),
        ("empty", Vec::new()),
        ("no text", vec![0xff, 0xfe, b'\r', b'\n']),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let found = report::verify(&built.dir).unwrap();
        assert!(found.findings.iter().any(|f| f.contains("its bytes")), "{name}: {found:?}");
    }
    std::fs::remove_file(&path).unwrap();
    std::fs::write(built.dir.join("notes.txt"), "mine").unwrap();
    let found = report::verify(&built.dir).unwrap().findings.join("\n");
    assert!(found.contains("inputs.csv is missing"), "{found}");
    assert!(found.contains("notes.txt does not belong"), "{found}");
}

#[test]
fn what_is_no_report_is_refused_and_not_called_wrong() {
    let (_root, built) = built(&mixed(), Dialect::Plain);
    std::fs::write(built.dir.join(MANIFEST), r#"{"schema_version": 99}"#).unwrap();
    assert!(matches!(report::verify(&built.dir), Err(ReportError::Manifest { .. })));
    std::fs::write(built.dir.join(MANIFEST), "{").unwrap();
    assert!(matches!(report::verify(&built.dir), Err(ReportError::Manifest { .. })));
    std::fs::remove_file(built.dir.join(MANIFEST)).unwrap();
    assert!(matches!(report::verify(&built.dir), Err(ReportError::NotAReport { .. })));
}
