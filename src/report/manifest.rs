//! `manifest.json`: what the report is of, and what its files must be. It is written last, so
//! that a directory without one is no report. Nothing in it depends on when it was built.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use serde::Serialize;

use crate::model::money::{Currency, decimal_text};
use crate::model::time::to_text;
use crate::report::columns::{MANIFEST, SCHEMA_VERSION};
use crate::report::csv_file::FileEntry;
use crate::report::error::ReportError;
use crate::report::facts::Facts;
use crate::report::tie::{Sum, TieOut};
use crate::report::totals::UNTIED;

/// The whole manifest.
#[derive(Debug, Serialize)]
pub struct Manifest<'a> {
    schema_version: u32,
    run_id: &'a str,
    command: &'a str,
    state: &'static str,
    /// `tied`, or `UNTIED`.
    pub tie_out: &'static str,
    /// Currencies whose two sides differ.
    pub untied: &'a [String],
    /// One sentence for each difference.
    pub findings: &'a [String],
    version: &'a str,
    git_commit: Option<&'a str>,
    policy_version: &'a str,
    config_sha256: &'a str,
    business_date: String,
    timezone: &'static str,
    window: Option<&'a serde_json::Value>,
    scope: &'a serde_json::Value,
    sources: Vec<&'a str>,
    started_at: String,
    ended_at: String,
    exit: Exit<'a>,
    not_examined: &'a [String],
    counts: BTreeMap<&'a str, i64>,
    residuals: BTreeMap<String, Residual>,
    residuals_by_table: Vec<TableResidual<'a>>,
    dialect: &'static str,
    escaped_cells: u64,
    /// `at_end`: as the run noted it. `later`: worked out afterwards, without owners.
    aging: &'static str,
    files: &'a [FileEntry],
    journal_count: i64,
    audit_place: Option<i64>,
    audit_head: Option<&'a str>,
    preparer: Option<&'a str>,
    reviewer: Option<&'a str>,
    signatures: [&'a str; 0],
}

#[derive(Debug, Serialize)]
struct Exit<'a> {
    code: Option<i32>,
    class: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct Residual {
    rows: i64,
    amount: String,
    /// As text: a sum may be larger than a JSON number holds.
    amount_minor: String,
}

#[derive(Debug, Serialize)]
struct TableResidual<'a> {
    table: &'a str,
    currency: &'a str,
    rows: i64,
    amount_minor: String,
}

/// What the manifest is made from, besides the facts of the run.
pub struct Findings<'a> {
    /// Both sides.
    pub tie: &'a TieOut,
    /// Currencies that are off.
    pub untied: &'a [String],
    /// One sentence for each difference.
    pub findings: &'a [String],
    /// By outcome.
    pub outcomes: &'a BTreeMap<&'static str, u64>,
    /// What is left by currency.
    pub residuals: &'a BTreeMap<String, Sum>,
    /// The files.
    pub files: &'a [FileEntry],
    /// Cells escaped in all files.
    pub escaped_cells: u64,
    /// The dialect's word.
    pub dialect: &'static str,
    /// Whether the aging is the run's own.
    pub aging_at_end: bool,
}

impl<'a> Manifest<'a> {
    /// Puts everything together.
    pub fn new(facts: &'a Facts, found: &Findings<'a>) -> Self {
        let run = &facts.run;
        let sources = facts.notes.accounts.iter().map(|note| note.account.as_str());
        Self {
            schema_version: SCHEMA_VERSION,
            run_id: &run.id,
            command: &run.command,
            state: run.state.as_str(),
            tie_out: if found.untied.is_empty() { "tied" } else { UNTIED },
            untied: found.untied,
            findings: found.findings,
            version: &run.version,
            git_commit: facts.notes.git_commit.as_deref(),
            policy_version: &run.policy_version,
            config_sha256: &run.config_sha256,
            business_date: facts.business_date.to_string(),
            timezone: facts.zone.name(),
            window: facts.scope.get("window"),
            scope: &facts.scope,
            sources: sources.collect(),
            started_at: to_text(run.started_at),
            ended_at: to_text(facts.ended_at),
            exit: Exit { code: run.exit_code, class: run.exit_class.as_deref() },
            not_examined: &facts.notes.not_examined,
            counts: counts(found),
            residuals: found.residuals.iter().map(residual).collect(),
            residuals_by_table: found.tie.off().map(table_residual).collect(),
            dialect: found.dialect,
            escaped_cells: found.escaped_cells,
            aging: if found.aging_at_end { "at_end" } else { "later" },
            files: found.files,
            journal_count: run.journal_count,
            audit_place: run.close_number,
            audit_head: run.close_hash.as_deref(),
            preparer: None,
            reviewer: None,
            signatures: [],
        }
    }

    /// Writes it and brings it to the disk.
    pub fn write(&self, folder: &Path) -> Result<(), ReportError> {
        let path = folder.join(MANIFEST);
        let failed = || ReportError::file("writing", &path);
        let mut bytes = serde_json::to_vec_pretty(self).map_err(|e| failed()(e.into()))?;
        bytes.push(b'\n');
        let mut file = File::create_new(&path).map_err(failed())?;
        file.write_all(&bytes).map_err(failed())?;
        file.sync_all().map_err(failed())
    }
}

fn counts<'a>(found: &Findings<'a>) -> BTreeMap<&'a str, i64> {
    let lines = &found.tie.lines;
    let count = |pick: fn(&crate::report::tie::TieLine) -> i64| {
        lines.iter().map(pick).fold(0_i64, i64::saturating_add)
    };
    let mut counts: BTreeMap<&str, i64> = found
        .outcomes
        .iter()
        .map(|(word, rows)| (*word, i64::try_from(*rows).unwrap_or(i64::MAX)))
        .collect();
    counts.insert("claimed", count(|line| line.claimed.rows));
    counts.insert("released", count(|line| line.released.rows));
    counts
}

fn residual((code, sum): (&String, &Sum)) -> (String, Residual) {
    let exponent = Currency::parse(code).map_or(0, |known| known.exponent());
    let residual = Residual {
        rows: sum.rows,
        amount: decimal_text(sum.amount_minor, exponent),
        amount_minor: sum.amount_minor.to_string(),
    };
    (code.clone(), residual)
}

fn table_residual(line: &crate::report::tie::TieLine) -> TableResidual<'_> {
    let residual = line.residual();
    TableResidual {
        table: &line.table,
        currency: &line.currency,
        rows: residual.rows,
        amount_minor: residual.amount_minor.to_string(),
    }
}
