//! A report held against the database it was read from: totals, audit head, every record.
//!
//! It shares nothing with the building: only what stands in the database as it stands in the
//! report is compared, in every version alike.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::model::money::Currency;
use crate::model::time::{Instant, to_text};
use crate::report::columns::TRANSITIONS;
use crate::report::error::ReportError;
use crate::report::lines::StateThen;
use crate::report::source::Source;
use crate::report::verify::checks::differences;
use crate::report::verify::files::Bucket;
use crate::report::verify::sums::{Pair, Rows, add};
use crate::report::verify::table::{Notation, SetDigest, read};
use crate::store::effects::asked_text;
use crate::store::files::LineBucket;
use crate::store::records::{JournalRow, RunRow, TotalLine};

const PAGE: i64 = 2_000;

/// Files read at once.
pub(super) const FILES: i64 = 100;

/// The columns of `reconciliation.csv` that stand in the journal as they stand there, in the order
/// of [`journalled`]. What is worked out from them is the building's own.
pub const JOURNALLED: [&str; 30] = [
    "run_id",
    "table",
    "key",
    "account",
    "tag",
    "kind",
    "currency",
    "amount_minor",
    "status_before",
    "status_after",
    "outcome",
    "reason",
    "reason_text",
    "applied",
    "psp_reference",
    "psp_status",
    "psp_amount_minor",
    "psp_currency",
    "evidence_sha256",
    "created_at",
    "attempted_at",
    "checks",
    "next_check_at",
    "handback_no",
    "case_id",
    "policy_version",
    "asked",
    "rule",
    "writer",
    "audit_seq",
];

/// What the report claims.
pub struct Claims<'a> {
    /// Where it stands.
    pub dir: &'a Path,
    /// Its run.
    pub run_id: &'a str,
    /// Its manifest.
    pub manifest: &'a Value,
    /// The audit head that it names.
    pub audit_head: &'a str,
    /// Its dialect's word.
    pub dialect: &'a str,
    /// The sums of its rows.
    pub rows: &'a Rows,
    /// Claimed, by currency.
    pub claimed: &'a BTreeMap<String, Pair>,
    /// Released, by table and currency.
    pub released: &'a BTreeMap<(String, String), Pair>,
    /// Lines of files, by what became of them.
    pub lines: &'a BTreeMap<Bucket, Pair>,
}

/// How the run stands in the database.
pub enum Standing {
    /// The database has no such run.
    Gone,
    /// Its records were pruned.
    Pruned(Instant),
    /// All of it is there.
    There(Box<RunRow>),
}

/// Where report and database differ, and how the run stands there.
pub async fn compare<S: Source>(
    source: &S,
    claims: &Claims<'_>,
) -> Result<(Vec<String>, Standing), ReportError> {
    let run_id = claims.run_id;
    let run = source.run(run_id).await.map_err(ReportError::store(run_id))?;
    let Some(run) = run else { return Ok((Vec::new(), Standing::Gone)) };
    let mut findings = Vec::new();
    let head = run.close_hash.clone().unwrap_or_default();
    if head != claims.audit_head {
        findings.push(format!(
            "the audit head is {} in the report and {head} in the database",
            claims.audit_head
        ));
    }
    findings.extend(facts_differ(&run, claims.manifest));
    findings.extend(lines_differ(source, claims).await?);
    let pruned_at = source.pruned_at(run_id).await.map_err(ReportError::store(run_id))?;
    if let Some(at) = pruned_at {
        return Ok((findings, Standing::Pruned(at)));
    }
    let totals = source.run_totals(run_id).await.map_err(ReportError::store(run_id))?;
    findings.extend(totals_differ(&totals, claims));
    findings.extend(records_differ(source, claims).await?);
    Ok((findings, Standing::There(Box::new(run))))
}

/// What the manifest says of the run must be what the run's row says.
fn facts_differ(run: &RunRow, manifest: &Value) -> Vec<String> {
    let wanted = [
        ("/command", json!(run.command)),
        ("/state", json!(run.state.as_str())),
        ("/version", json!(run.version)),
        ("/policy_version", json!(run.policy_version)),
        ("/config_sha256", json!(run.config_sha256)),
        ("/started_at", json!(to_text(run.started_at))),
        ("/ended_at", json!(run.ended_at.map(to_text))),
        ("/exit/code", json!(run.exit_code)),
        ("/exit/class", json!(run.exit_class)),
        ("/journal_count", json!(run.journal_count)),
        ("/audit_place", json!(run.close_number)),
    ];
    let told = |pointer: &str| manifest.pointer(pointer).cloned().unwrap_or(Value::Null);
    let differ = wanted.into_iter().filter(|own| told(own.0) != own.1);
    let sentence = |(pointer, wanted): (&str, Value)| {
        let (name, told) = (pointer.trim_start_matches('/'), told(pointer));
        format!("the manifest's {name} is {told}, and {wanted} in the database")
    };
    differ.map(sentence).collect()
}

/// Every file's lines must be what the database adds up, bucket by bucket.
async fn lines_differ<S: Source>(
    source: &S,
    claims: &Claims<'_>,
) -> Result<Vec<String>, ReportError> {
    let run_id = claims.run_id;
    let mut lines: BTreeMap<Bucket, Pair> = BTreeMap::new();
    let mut after = 0;
    loop {
        let page = source.files_of_run(run_id, after, FILES).await;
        let page = page.map_err(ReportError::store(run_id))?;
        let Some(last) = page.last() else { break };
        after = last.file.id;
        for own in &page {
            if StateThen::of(own, run_id) == StateThen::Quarantined {
                continue;
            }
            for tally in &own.tallies {
                let bucket = match tally.bucket {
                    LineBucket::Matched => "matched",
                    LineBucket::Noted => "open",
                    LineBucket::NoRow => "no_row",
                    LineBucket::Elsewhere => "elsewhere",
                };
                let part = (own.file.sha256.clone(), tally.currency.clone());
                add(&mut lines, (part, bucket), i128::from(tally.lines), tally.minor);
            }
        }
    }
    let words = |((sha256, code), bucket): &Bucket| format!("{bucket} {code} of file {sha256}");
    Ok(differences("inputs.csv against the database", claims.lines, &lines, words))
}

fn totals_differ(totals: &[TotalLine], claims: &Claims<'_>) -> Vec<String> {
    let mut claimed: BTreeMap<String, Pair> = BTreeMap::new();
    let mut released: BTreeMap<(String, String), Pair> = BTreeMap::new();
    let mut outcomes: BTreeMap<(String, String, String), Pair> = BTreeMap::new();
    for total in totals {
        let (rows, minor) = (i128::from(total.rows), total.amount_minor);
        let (table, currency) = (total.table.clone(), total.currency.clone());
        match total.bucket.as_str() {
            "claimed" => add(&mut claimed, currency, rows, minor),
            "released" => add(&mut released, (table, currency), rows, minor),
            word => add(&mut outcomes, (table, currency, word.to_owned()), rows, minor),
        }
    }
    let name = "the report against the database";
    let mut findings =
        differences(name, claims.claimed, &claimed, |code| format!("claimed {code}"));
    findings.extend(differences(name, claims.released, &released, |(table, code)| {
        format!("released {table} {code}")
    }));
    findings.extend(differences(name, &claims.rows.outcomes, &outcomes, |(table, code, word)| {
        format!("{word} {table} {code}")
    }));
    findings
}

/// Every journal record must stand in both files as it stands in the database: the chain's
/// hashes in their order, the rows as a set, cell by cell.
async fn records_differ<S: Source>(
    source: &S,
    claims: &Claims<'_>,
) -> Result<Vec<String>, ReportError> {
    let mut rows = SetDigest::default();
    let mut chain = SetDigest::default();
    let mut after: Option<(String, i64)> = None;
    loop {
        let page = source.journal_of_run(claims.run_id, after.clone(), PAGE).await;
        let page = page.map_err(ReportError::store(claims.run_id))?;
        let Some(last) = page.last() else { break };
        after = Some((last.writer.clone(), last.seq));
        for record in &page {
            rows.add(journalled(record).iter().map(String::as_str));
            chain.add(link(record).iter().map(String::as_str));
        }
    }
    let mut findings = Vec::new();
    if rows != claims.rows.journalled {
        findings.push("reconciliation.csv is not what the journal holds".to_owned());
    }
    if chain != links_of_file(claims)? {
        findings.push("transitions.csv is not what the journal holds".to_owned());
    }
    Ok(findings)
}

/// A record as `reconciliation.csv` must have it, by the columns of [`JOURNALLED`].
fn journalled(record: &JournalRow) -> [String; 30] {
    let optional = |text: &Option<String>| text.clone().unwrap_or_default();
    let at = |at: Option<Instant>| at.map(to_text).unwrap_or_default();
    // An amount stands beside a currency, or not at all.
    let minor = |minor: i64, code: &str| match Currency::parse(code) {
        Ok(_known) => minor.to_string(),
        Err(_none) => String::new(),
    };
    let psp = record.psp_currency.as_deref().zip(record.psp_amount_minor);
    [
        record.run_id.clone(),
        record.table.clone(),
        record.key.clone(),
        record.account.clone(),
        record.tag.clone(),
        record.kind.clone(),
        record.currency.clone(),
        minor(record.amount_minor, &record.currency),
        record.status_before.clone(),
        record.status_after.clone(),
        record.outcome.as_str().to_owned(),
        record.reason.as_str().to_owned(),
        record.text.clone(),
        record.applied.as_str().to_owned(),
        optional(&record.psp_reference),
        optional(&record.psp_status),
        psp.map(|(code, amount)| minor(amount, code)).unwrap_or_default(),
        psp.map(|(code, _)| code.to_owned()).unwrap_or_default(),
        record.evidence_sha256.clone(),
        at(record.row_created_at),
        at(record.row_attempted_at),
        record.checks.to_string(),
        at(record.next_check_at),
        record.handback_number.map(|number| number.to_string()).unwrap_or_default(),
        record.case_number.map(|number| format!("C-{number}")).unwrap_or_default(),
        record.policy_version.clone(),
        asked_text(record.asked).to_owned(),
        optional(&record.rule),
        record.writer.clone(),
        record.seq.to_string(),
    ]
}

fn link(record: &JournalRow) -> [String; 4] {
    [record.writer.clone(), record.seq.to_string(), record.prev_hash.clone(), record.hash.clone()]
}

fn links_of_file(claims: &Claims<'_>) -> Result<SetDigest, ReportError> {
    let mut chain = SetDigest::default();
    let path = claims.dir.join(TRANSITIONS.file);
    let Some(notation) = Notation::of(claims.dialect).filter(|_| path.exists()) else {
        return Ok(chain);
    };
    read(&path, TRANSITIONS.columns, &[], notation, |record| {
        let columns = ["writer", "audit_seq", "prev_hash", "hash"];
        chain.add(columns.into_iter().map(|column| record.text(column)));
        Vec::new()
    })?;
    Ok(chain)
}
