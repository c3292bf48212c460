//! A report is believed by nobody until its files say so themselves.

use std::path::Path;

use serde_json::json;
use tieout::report;
use tieout::report::cells::Dialect;
use tieout::report::columns::MANIFEST;
use tieout::report::error::ReportError;

use super::vectors::{Vectors, block, built, manifest, mixed};

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
        let found = block(report::verify_against(&source, &built.dir)).unwrap();
        assert_eq!(found.findings, ["reconciliation.csv is not what the journal holds"]);
    }
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
    let mut other = source.clone();
    other.run.id = "another".into();
    assert!(findings(&other).contains("no run"), "{}", findings(&other));
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
