//! A report held against the database it was read from: totals, audit head, every record.

use std::collections::BTreeMap;
use std::path::Path;

use chrono_tz::Tz;

use crate::report::captured::captured;
use crate::report::cells::Dialect;
use crate::report::columns::TRANSITIONS;
use crate::report::error::ReportError;
use crate::report::facts::Facts;
use crate::report::lines::StateThen;
use crate::report::rows::reconciliation;
use crate::report::source::Source;
use crate::report::verify::checks::differences;
use crate::report::verify::files::Bucket;
use crate::report::verify::sums::{Pair, Rows, add};
use crate::report::verify::table::{Notation, SetDigest, read};
use crate::store::files::LineBucket;
use crate::store::records::{JournalRow, TotalLine};

const PAGE: i64 = 2_000;

/// Files read at once.
const FILES: i64 = 100;

/// What the report claims.
pub struct Claims<'a> {
    /// Where it stands.
    pub dir: &'a Path,
    /// Its run.
    pub run_id: &'a str,
    /// Its zone's name.
    pub zone: &'a str,
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

/// Where report and database differ.
pub async fn compare<S: Source>(
    source: &S,
    claims: &Claims<'_>,
) -> Result<Vec<String>, ReportError> {
    let run_id = claims.run_id;
    let run = source.run(run_id).await.map_err(ReportError::store(run_id))?;
    let Some(run) = run else {
        return Ok(vec![format!("the database has no run {run_id}")]);
    };
    let mut findings = Vec::new();
    let head = run.close_hash.clone().unwrap_or_default();
    if head != claims.audit_head {
        findings.push(format!(
            "the audit head is {} in the report and {head} in the database",
            claims.audit_head
        ));
    }
    let totals = source.run_totals(run_id).await.map_err(ReportError::store(run_id))?;
    findings.extend(totals_differ(&totals, claims));
    let zone: Tz = claims.zone.parse().unwrap_or(Tz::UTC);
    let facts = Facts::read(run, zone)?;
    findings.extend(records_differ(source, &facts, claims).await?);
    findings.extend(lines_differ(source, &facts, claims).await?);
    Ok(findings)
}

/// Every file's lines must be what the database adds up, bucket by bucket.
async fn lines_differ<S: Source>(
    source: &S,
    facts: &Facts,
    claims: &Claims<'_>,
) -> Result<Vec<String>, ReportError> {
    let run_id = &facts.run.id;
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
    facts: &Facts,
    claims: &Claims<'_>,
) -> Result<Vec<String>, ReportError> {
    let dialect = Dialect::parse(claims.dialect).unwrap_or_default();
    let mut rows = SetDigest::default();
    let mut chain = SetDigest::default();
    let mut after: Option<(String, i64)> = None;
    loop {
        let page = source.journal_of_run(&facts.run.id, after.clone(), PAGE).await;
        let page = page.map_err(ReportError::store(&facts.run.id))?;
        let Some(last) = page.last() else { break };
        after = Some((last.writer.clone(), last.seq));
        for record in &page {
            let several = captured(source, record).await?;
            let cells: Vec<String> = reconciliation(record, &several, facts)
                .iter()
                .map(|cell| cell.render(dialect).0.into_owned())
                .collect();
            rows.add(cells.iter().map(String::as_str));
            chain.add(link(record).iter().map(String::as_str));
        }
    }
    let mut findings = Vec::new();
    if rows != claims.rows.cells {
        findings.push("reconciliation.csv is not what the journal holds".to_owned());
    }
    if chain != links_of_file(claims)? {
        findings.push("transitions.csv is not what the journal holds".to_owned());
    }
    Ok(findings)
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
