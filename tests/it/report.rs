//! Reports: built from vectors in place of a database, so that every file, order and sum can be
//! held against what went in; and from a real one.

mod database;
mod lines;
mod places;
mod properties;
mod vectors;
mod verifying;

use std::collections::BTreeMap;

use tieout::model::reason::{Outcome, Reason};
use tieout::model::time::from_text;
use tieout::report;
use tieout::report::aging::AgingLine;
use tieout::report::build::BuildOptions;
use tieout::report::cells::Dialect;
use tieout::report::columns::{MANIFEST, SHEETS};
use tieout::store::records::{CaseRow, JournalRow, TotalLine};

use vectors::{
    RUN, Vectors, at, block, built, bytes_of, manifest, mixed, options, record, review, sound,
    table,
};

#[test]
fn a_report_has_every_file_and_verifies() {
    for dialect in Dialect::ALL {
        let source = mixed();
        let (root, built) = built(&source, dialect);
        assert_eq!(built.dir, root.path().join("2026-11-20").join(RUN), "the local date");
        let mut names: Vec<String> = bytes_of(&built.dir).into_keys().collect();
        names.sort();
        let mut wanted: Vec<String> = SHEETS.iter().map(|s| s.file.to_owned()).collect();
        wanted.push(MANIFEST.into());
        wanted.sort();
        assert_eq!(names, wanted);
        assert_eq!((built.rows, built.untied.len(), built.replaced), (18, 0, false));
        sound(&source, &built.dir);
        for sheet in SHEETS {
            let text = std::fs::read(built.dir.join(sheet.file)).unwrap();
            assert!(text.ends_with(b"\r\n"), "{}", sheet.file);
            assert_eq!(text.starts_with(b"\xef\xbb\xbf"), dialect != Dialect::Plain);
        }
    }
}

#[test]
fn the_bridge_leads_from_what_was_claimed_to_what_moved() {
    let (_root, built) = built(&mixed(), Dialect::Plain);
    let lines: Vec<String> = table(&built.dir, "bridge.csv", Dialect::Plain)
        .iter()
        .map(|line| {
            ["currency", "line_no", "kind", "label", "reason", "count", "amount"]
                .map(|column| line[column].as_str())
                .join("|")
        })
        .collect();
    let wanted = "\
|1|local_total|claimed from charges||1|0
|2|item|needs a person|row_unreadable|-1|0
|3|external_total|moved for rows that succeeded, say the PSPs||0|0
|4|residual|residual||0|0
CHF|1|item|succeeded in this currency, claimed in another|captured|1|19.99
CHF|2|external_total|moved for rows that succeeded, say the PSPs||1|19.99
CHF|3|residual|residual||0|0.00
EUR|1|local_total|claimed from charges||14|245.99
EUR|2|local_total|claimed from refunds||1|-7.00
EUR|3|item|still processing|psp_pending|-1|-19.99
EUR|4|item|still processing|within_grace|-1|-19.99
EUR|5|item|needs a person|amount_mismatch|-1|-5.00
EUR|6|item|needs a person|duplicate_capture|-1|-19.99
EUR|7|item|handed back as retryable|absent|-1|-19.99
EUR|8|item|retryable, and withheld by the mode|absent|-1|-19.99
EUR|9|item|proven absent, and by the mapping not to be charged again|absent|-1|-1.11
EUR|10|item|failed|declined_final|-1|-19.99
EUR|11|item|superseded: the row changed meanwhile|psp_pending|-1|-19.99
EUR|12|item|succeeded, and the PSP states no amount|captured|-1|-19.99
EUR|13|item|succeeded with another amount at the PSP|tolerance_delta|0|-0.01
EUR|14|item|succeeded in another currency: left this one|captured|-1|-19.99
EUR|15|external_total|moved for rows that succeeded, say the PSPs||4|52.96
EUR|16|residual|residual||0|0.00
JPY|1|local_total|claimed from charges||1|310000
JPY|2|external_total|moved for rows that succeeded, say the PSPs (withheld by the mode: 1)||1|310000
JPY|3|residual|residual||0|0
USD|1|local_total|claimed from charges||1|19.99
USD|2|item|needs a person|currency_mismatch|-1|-19.99
USD|3|external_total|moved for rows that succeeded, say the PSPs||0|0.00
USD|4|residual|residual||0|0.00";
    assert_eq!(lines, wanted.lines().collect::<Vec<_>>());
}

#[test]
fn the_summary_puts_every_row_into_one_bucket() {
    let (_root, built) = built(&mixed(), Dialect::Plain);
    let lines: Vec<String> = table(&built.dir, "summary.csv", Dialect::Plain)
        .iter()
        .map(|line| {
            ["source", "currency", "side", "bucket", "reason", "count", "amount"]
                .map(|column| line[column].as_str())
                .join("|")
        })
        .collect();
    let wanted = "\
charges||local|exception|row_unreadable|1|0
charges|CHF|psp|matched|captured|1|19.99
charges|EUR|local|exception|amount_mismatch|1|5.00
charges|EUR|local|exception|duplicate_capture|1|19.99
charges|EUR|local|excluded|absent|3|41.09
charges|EUR|local|excluded|declined_final|1|19.99
charges|EUR|local|excluded|superseded|1|19.99
charges|EUR|local|matched|captured|5|99.95
charges|EUR|local|pending|psp_pending|1|19.99
charges|EUR|local|pending|within_grace|1|19.99
charges|EUR|psp|exception|amount_mismatch|1|19.99
charges|EUR|psp|exception|currency_mismatch|1|19.99
charges|EUR|psp|exception|duplicate_capture|1|19.99
charges|EUR|psp|matched|captured|3|59.96
charges|JPY|local|matched|captured|1|310000
charges|JPY|psp|matched|captured|1|310000
charges|USD|local|exception|currency_mismatch|1|19.99
refunds|EUR|local|matched|captured|1|-7.00
refunds|EUR|psp|matched|captured|1|-7.00";
    assert_eq!(lines, wanted.lines().collect::<Vec<_>>());
}

#[test]
fn a_double_charge_is_counted_as_two_and_a_watch_is_no_wait() {
    let source = Vectors::of(vec![
        record(1),
        JournalRow {
            psp_reference: Some("pi_2 pi_3".into()),
            psp_amount_minor: Some(3_998),
            ..review(2, 7, Reason::DuplicateCapture)
        },
        JournalRow {
            outcome: Outcome::Wait,
            reason: Reason::Watched,
            psp_amount_minor: None,
            psp_currency: None,
            next_check_at: Some(at("2026-11-20T00:00:00Z")),
            ..record(4)
        },
    ]);
    let (_root, built) = built(&source, Dialect::Plain);
    sound(&source, &built.dir);
    let exception = &table(&built.dir, "exceptions.csv", Dialect::Plain)[0];
    assert_eq!(exception["psp_txn_id"], "pi_2 pi_3");
    assert_eq!((&*exception["psp_amount"], &*exception["difference"]), ("39.98", "19.99"));
    let lines = table(&built.dir, "summary.csv", Dialect::Plain);
    let of = |side: &str, reason: &str| {
        let line = lines.iter().find(|line| line["side"] == side && line["reason"] == reason);
        line.map(|line| ["bucket", "count", "amount"].map(|column| line[column].clone()).join(" "))
    };
    assert_eq!(of("psp", "duplicate_capture").as_deref(), Some("exception 2 39.98"));
    assert_eq!(of("local", "duplicate_capture").as_deref(), Some("exception 1 19.99"));
    assert_eq!(of("local", "watched").as_deref(), Some("watched 1 19.99"));
    let bridge = table(&built.dir, "bridge.csv", Dialect::Plain);
    let labels: Vec<&str> = bridge.iter().map(|line| line["label"].as_str()).collect();
    assert!(labels.contains(&"watched: ended before, and looked at again"), "{labels:?}");
}

#[test]
fn rows_are_sorted_by_table_key_and_place_whatever_the_writers_did() {
    let (_root, built) = built(&mixed(), Dialect::Plain);
    let rows = table(&built.dir, "reconciliation.csv", Dialect::Plain);
    let keys: Vec<String> = rows
        .iter()
        .map(|row| format!("{}/{}/{}", row["table"], row["key"], row["writer"]))
        .collect();
    assert!(keys.is_sorted(), "{keys:?}");
    let cases = table(&built.dir, "exceptions.csv", Dialect::Plain);
    let numbers: Vec<&str> = cases.iter().map(|row| row["case_id"].as_str()).collect();
    assert_eq!(numbers, ["C-3", "C-7", "C-8", "C-9"]);
}

#[test]
fn a_row_reads_back_as_it_was_journalled() {
    let source = mixed();
    let (_root, built) = built(&source, Dialect::Plain);
    let rows = table(&built.dir, "reconciliation.csv", Dialect::Plain);
    assert_eq!(rows.len(), source.journal.len());
    for row in rows {
        let seq: i64 = row["audit_seq"].parse().unwrap();
        let record =
            source.journal.iter().find(|r| r.writer == row["writer"] && r.seq == seq).unwrap();
        let optional = |text: &Option<String>| text.clone().unwrap_or_default();
        assert_eq!(row["key"], record.key);
        assert_eq!(row["tag"], record.tag);
        assert_eq!(row["status_before"], record.status_before);
        assert_eq!(row["status_after"], record.status_after);
        assert_eq!(row["outcome"], record.outcome.as_str());
        assert_eq!(row["reason"], record.reason.as_str());
        assert_eq!(row["reason_text"], record.text);
        assert_eq!(row["applied"], record.applied.as_str());
        assert_eq!(row["psp_reference"], optional(&record.psp_reference));
        assert_eq!(row["evidence_sha256"], record.evidence_sha256);
        assert_eq!(row["currency"], record.currency);
        if record.currency.is_empty() {
            assert_eq!(row["amount_minor"], "", "an amount that cannot be read is not zero");
        } else {
            assert_eq!(row["amount_minor"], record.amount_minor.to_string());
        }
        assert_eq!(from_text(&row["created_at"]), record.row_created_at);
        assert_eq!(row["created_at_local"], "2026-11-17T09:00:00+01:00");
        assert_eq!((&*row["age_days"], &*row["age_bucket"]), ("3", "2-3"));
    }
}

#[test]
fn the_same_run_gives_the_same_bytes_whatever_happened_since() {
    let mut source = mixed();
    let lines = vec![AgingLine {
        currency: "EUR".into(),
        reason: "amount_mismatch".into(),
        owner: "mara".into(),
        bucket: "0-1".into(),
        amount_minor: "500".into(),
        oldest_case: Some(3),
        opening: 1,
        new: 2,
        closed: 1,
    }];
    source.run.notes = serde_json::json!({ "accounts": [], "aging": lines }).to_string();
    let (_root, first) = built(&source, Dialect::Plain);

    // Since then people took and closed cases, and a later run saw one of them again.
    let later = at("2026-11-21T08:00:00Z");
    for case in &mut source.cases {
        case.owner = Some("mara".into());
        case.closed_at = Some(later);
        case.open = false;
        case.resolution = Some("refunded".into());
        case.last_seen_at = later;
        case.last_run = "a-later-run".into();
        case.times_seen += 1;
        case.text = "another text".into();
    }
    source.elsewhere = source
        .journal
        .iter()
        .filter(|r| r.case_number.is_some())
        .map(|r| JournalRow { run_id: "a-later-run".into(), at: later, ..r.clone() })
        .collect();
    let (_root, second) = built(&source, Dialect::Plain);
    assert_eq!(bytes_of(&first.dir), bytes_of(&second.dir));

    // Spilling to the disk or not must not show either.
    let root = tempfile::tempdir().unwrap();
    let tight = BuildOptions { sort_budget: 600, ..options(Dialect::Plain) };
    let third = block(report::build(&source, RUN, root.path(), &tight)).unwrap();
    assert_eq!(bytes_of(&first.dir), bytes_of(&third.dir));
    assert_eq!(manifest(&first.dir)["aging"], "at_end");
}

#[test]
fn a_run_that_noted_no_aging_gets_what_can_still_be_told() {
    let mut source = mixed();
    source.cases[0].owner = Some("mara".into());
    let (_root, built) = built(&source, Dialect::Plain);
    assert_eq!(manifest(&built.dir)["aging"], "later");
    let lines = table(&built.dir, "aging.csv", Dialect::Plain);
    let read: Vec<String> = lines
        .iter()
        .map(|l| {
            ["as_of", "currency", "reason", "owner", "new", "amount"].map(|c| &*l[c]).join("|")
        })
        .collect();
    assert_eq!(
        read,
        [
            "2026-11-20||row_unreadable||1|0",
            "2026-11-20|EUR|amount_mismatch||1|5.00",
            "2026-11-20|EUR|duplicate_capture||1|19.99",
            "2026-11-20|USD|currency_mismatch||1|19.99",
        ]
    );
}

#[test]
fn a_run_that_does_not_tie_out_says_so_everywhere() {
    let mut source = mixed();
    for total in &mut source.totals {
        if total.bucket == "claimed" && total.table == "refunds" {
            total.amount_minor -= 1;
            total.rows += 1;
        }
    }
    let (_root, built) = built(&source, Dialect::Plain);
    assert_eq!(built.untied, ["EUR"]);
    assert_eq!(built.findings.len(), 1, "{:?}", built.findings);
    let manifest = manifest(&built.dir);
    assert_eq!(manifest["tie_out"], "UNTIED");
    assert_eq!(manifest["residuals"]["EUR"]["amount"], "-0.01");
    assert_eq!(manifest["residuals"]["JPY"]["amount"], "0");
    let bridge = table(&built.dir, "bridge.csv", Dialect::Plain);
    let loud: Vec<&BTreeMap<_, _>> =
        bridge.iter().filter(|line| line["label"].starts_with("UNTIED")).collect();
    assert_eq!(loud.len(), 1);
    assert_eq!((&*loud[0]["kind"], &*loud[0]["amount"]), ("residual", "-0.01"));
    let summary = table(&built.dir, "summary.csv", Dialect::Plain);
    assert!(summary.iter().any(|line| line["bucket"] == "UNTIED" && line["count"] == "1"));
    // The report tells the truth, so it verifies; and it is untied.
    let found = report::verify(&built.dir).unwrap();
    assert_eq!((found.findings, found.untied), (vec![], vec!["EUR".to_owned()]));
}

#[test]
fn tables_that_cancel_out_are_untied_although_their_sum_is_zero() {
    let mut source = mixed();
    for total in &mut source.totals {
        let off = match total.table.as_str() {
            "refunds" => -5,
            _charges => 5,
        };
        if total.bucket == "claimed" && total.currency == "EUR" {
            total.amount_minor += off;
        }
    }
    let (_root, built) = built(&source, Dialect::Plain);
    assert_eq!(built.untied, ["EUR"]);
    assert_eq!(manifest(&built.dir)["residuals"]["EUR"]["amount"], "0.00");
    assert_eq!(manifest(&built.dir)["residuals_by_table"].as_array().unwrap().len(), 2);
    let found = report::verify(&built.dir).unwrap();
    assert_eq!((found.findings, found.untied), (vec![], vec!["EUR".to_owned()]));
}

#[test]
fn two_sums_of_one_journal_that_differ_are_a_finding() {
    let mut source = mixed();
    // The database's own sum lost a row that the journal holds, and the claim never had it.
    for total in &mut source.totals {
        if total.table == "refunds" {
            total.rows = 0;
            total.amount_minor = 0;
        }
    }
    let (_root, built) = built(&source, Dialect::Plain);
    assert_eq!(built.untied, ["EUR"]);
    assert!(built.findings[0].starts_with("refunds EUR: the journal holds 1 row "), "{built:?}");
}

#[test]
fn released_rows_are_an_item_and_tie_out() {
    let mut source = mixed();
    for (bucket, rows, amount_minor) in [("claimed", 2, 300), ("released", 2, 300)] {
        source.totals.push(TotalLine {
            table: "payouts".into(),
            currency: "EUR".into(),
            bucket: bucket.into(),
            rows,
            amount_minor,
        });
    }
    let (_root, built) = built(&source, Dialect::Plain);
    assert_eq!(built.untied, Vec::<String>::new());
    sound(&source, &built.dir);
    let bridge = table(&built.dir, "bridge.csv", Dialect::Plain);
    let item = bridge.iter().find(|line| line["reason"] == "released").unwrap();
    assert_eq!((&*item["count"], &*item["amount"]), ("-2", "-3.00"));
}

#[test]
fn an_empty_run_ties_out_and_verifies() {
    let source = Vectors::of(Vec::new());
    let (_root, built) = built(&source, Dialect::Plain);
    assert_eq!(built.rows, 0);
    sound(&source, &built.dir);
}

#[test]
fn the_psps_time_comes_from_the_evidence_and_the_account_s_case_from_the_notes() {
    let mut source = Vectors::of(vec![review(1, 1, Reason::AmountMismatch)]);
    source.run.notes = serde_json::json!({
        "accounts": [{ "account": "stripe_live", "psp": "stripe", "rows": 1, "answered": 0,
            "brake": "3 of 20 tagged" }],
        "account_cases": [
            { "number": 2, "account": "stripe_live", "reason": "absence_brake", "text": "early" },
            { "number": 2, "account": "stripe_live", "reason": "absence_brake",
                "text": "3 of 20 tagged", "evidence_sha256": "ab" },
        ],
    })
    .to_string();
    source.cases.push(CaseRow {
        number: 2,
        subject_kind: "account".into(),
        table: String::new(),
        subject: "stripe_live".into(),
        text: "as a later run wrote it".into(),
        reason: Reason::AccountUnavailable,
        ..source.cases[0].clone()
    });
    let (_root, built) = built(&source, Dialect::Plain);
    let lines = table(&built.dir, "exceptions.csv", Dialect::Plain);
    let read: Vec<String> = lines
        .iter()
        .map(|l| {
            ["case_id", "side", "severity", "suggested_action", "psp_name", "reason_text"]
                .map(|c| &*l[c])
                .join("|")
        })
        .collect();
    assert_eq!(
        read,
        [
            "C-1|psp|high|contact_psp|stripe|captured 19.99 EUR",
            "C-2|psp|high|fix_reference|stripe|3 of 20 tagged",
        ]
    );
    sound(&source, &built.dir);

    // A run that was killed noted nothing: what it opened is still told.
    source.run.notes = "{}".into();
    let (_root, without) = self::built(&source, Dialect::Plain);
    let lines = table(&without.dir, "exceptions.csv", Dialect::Plain);
    assert_eq!(lines.len(), 2);
    assert_eq!((&*lines[1]["reason"], &*lines[1]["kind"]), ("account_unavailable", "account"));

    let inputs = table(&built.dir, "inputs.csv", Dialect::Plain);
    assert_eq!(
        (&*inputs[0]["state"], &*inputs[0]["note"]),
        ("incomplete", "brake: 3 of 20 tagged")
    );
}

#[test]
fn every_file_and_column_is_explained() {
    let docs = include_str!("../../docs/reports.md");
    let mut explained: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut file = "";
    for line in docs.lines() {
        if let Some(title) = line.strip_prefix("## `") {
            file = title.split('`').next().unwrap();
        } else if let Some(row) = line.strip_prefix("| `") {
            explained.entry(file).or_default().push(row.split('`').next().unwrap());
        }
    }
    for sheet in SHEETS {
        assert_eq!(explained[sheet.file], sheet.columns, "{}", sheet.file);
    }
}
