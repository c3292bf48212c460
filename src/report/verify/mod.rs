//! Verifying a report: its files read by another reader, every total worked out again; with the
//! database, the report built anew beside it.
//!
//! The recomputation shares the names of files and columns with the building, and nothing that
//! adds up; [`anew`] is the building itself. Both answers are told. It changes nothing, stops at
//! no finding, and needs no memory that grows with the rows.

pub mod table;
pub mod sums;
pub mod files;
pub mod checks;
pub mod database;
pub mod beside;
pub mod anew;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::model::money::{Currency, decimal_text};
use crate::report::columns::{
    AGING, BRIDGE, COMPARED, EXCEPTIONS, INPUTS, MANIFEST, MATCHED, PAYOUTS, RECONCILIATION,
    SCHEMA_VERSION, SHEETS, SUMMARY, Sheet, TRANSITIONS,
};
use crate::report::error::ReportError;
use crate::report::source::Source;
use crate::report::tie::currency_words;
use crate::report::verify::anew::Rebuilt;
use crate::report::verify::checks::{Bridge, ComparedFile, Exceptions, Summary, Transitions};
use crate::report::verify::database::Standing;
use crate::report::verify::files::Files;
use crate::report::verify::sums::{Pair, Rows};
use crate::report::verify::table::{Found, Notation, Record};

/// Findings listed per file; the rest is counted.
const LISTED: usize = 20;

/// What verifying a report found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The report.
    pub dir: PathBuf,
    /// Its run.
    pub run_id: String,
    /// Rows in `reconciliation.csv`.
    pub rows: u64,
    /// Everything that is wrong: the report does not verify unless this is empty (exit 16). What
    /// was built by another version is not.
    pub findings: Vec<String>,
    /// Currencies that the report itself says are untied (exit 5): true, and bad.
    pub untied: Vec<String>,
    /// The audit head that it names.
    pub audit_head: Option<String>,
    /// Whether a database was asked too.
    pub against_database: bool,
    /// Whether all that the files add up to, recomputed from them alone, holds.
    pub totals_hold: bool,
    /// What building it anew from the journal told.
    pub rebuilt: Rebuilt,
}

impl Verified {
    /// Whether every hash, count, sum and identity holds.
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty()
    }
}

/// A manifest, as far as verifying reads it.
pub struct Stated {
    json: Value,
    run_id: String,
    notation: Notation,
}

/// What the files turned out to be.
struct Read {
    files: BTreeMap<&'static str, Found>,
    rows: Rows,
    summary: Summary,
    bridge: Bridge,
    of_files: Files,
    findings: Vec<String>,
}

/// Verifies the files alone.
pub(in crate::report) fn files(dir: &Path) -> Result<Verified, ReportError> {
    let stated = Stated::read(dir)?;
    let read = read_all(dir, &stated)?;
    Ok(verified(dir, &stated, read, Vec::new(), Rebuilt::NotAsked))
}

/// Verifies the files, and holds them against the database.
pub(in crate::report) async fn against<S: Source>(
    source: &S,
    dir: &Path,
) -> Result<Verified, ReportError> {
    let stated = Stated::read(dir)?;
    let read = read_all(dir, &stated)?;
    let claims = database::Claims {
        dir,
        run_id: &stated.run_id,
        manifest: &stated.json,
        audit_head: stated.word("/audit_head"),
        dialect: stated.word("/dialect"),
        rows: &read.rows,
        claimed: &read.bridge.claimed(),
        released: &read.summary.released,
        lines: &read.of_files.inputs,
    };
    let (mut found, standing) = database::compare(source, &claims).await?;
    let rebuilt = match standing {
        Standing::Gone => Rebuilt::NoRun,
        Standing::Pruned(at) => Rebuilt::Pruned { at },
        Standing::There(run) => anew::hold(source, &run, dir, &stated).await?,
    };
    if let Rebuilt::Differs { differences } = &rebuilt {
        found.extend(differences.iter().map(|one| format!("built anew from the journal: {one}")));
    }
    Ok(verified(dir, &stated, read, found, rebuilt))
}

impl Stated {
    fn read(dir: &Path) -> Result<Self, ReportError> {
        let path = dir.join(MANIFEST);
        let text = std::fs::read_to_string(&path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => ReportError::NotAReport { path: dir.to_path_buf() },
            _other => ReportError::File { doing: "reading", path: path.clone(), source },
        })?;
        let wrong = |problem: String| ReportError::Manifest { path: dir.to_path_buf(), problem };
        let json: Value = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
        let version = json.pointer("/schema_version").and_then(Value::as_u64);
        if version != Some(u64::from(SCHEMA_VERSION)) {
            return Err(wrong(format!(
                "its schema_version is {version:?}, and this version reads {SCHEMA_VERSION}"
            )));
        }
        let word = |pointer: &str| json.pointer(pointer).and_then(Value::as_str);
        let run_id = word("/run_id").ok_or_else(|| wrong("it names no run".to_owned()))?;
        let dialect = word("/dialect").unwrap_or("");
        let notation = Notation::of(dialect)
            .ok_or_else(|| wrong(format!("its dialect {dialect:?} is unknown")))?;
        Ok(Self { run_id: run_id.to_owned(), notation, json })
    }

    fn word(&self, pointer: &str) -> &str {
        self.json.pointer(pointer).and_then(Value::as_str).unwrap_or("")
    }

    fn file(&self, name: &str) -> Option<&Value> {
        let files = self.json.pointer("/files")?.as_array()?;
        files.iter().find(|file| file.get("name").and_then(Value::as_str) == Some(name))
    }
}

fn read_all(dir: &Path, stated: &Stated) -> Result<Read, ReportError> {
    let run_id = stated.run_id.as_str();
    let mut files = BTreeMap::new();
    let mut findings = names(dir, stated)?;
    findings.extend(under_another_name(dir, run_id));
    let (mut rows, mut summary, mut bridge) =
        (Rows::default(), Summary::default(), Bridge::default());
    let (mut exceptions, mut transitions) = (Exceptions::default(), Transitions::default());
    let mut of_files = Files::default();
    let mut compared = ComparedFile::default();
    for sheet in SHEETS {
        let path = dir.join(sheet.file);
        if !path.exists() {
            continue; // named in `names`
        }
        let check = |record: &Record<'_>| match sheet.file {
            file if file == RECONCILIATION.file => rows.take(record, run_id),
            file if file == EXCEPTIONS.file => exceptions.take(record, run_id, &mut of_files),
            file if file == COMPARED.file => compared.take(record, run_id),
            file if file == PAYOUTS.file => checks::payouts(record),
            file if file == MATCHED.file => of_files.take_matched(record, run_id),
            file if file == SUMMARY.file => summary.take(record, &mut of_files),
            file if file == BRIDGE.file => bridge.take(record, &mut of_files),
            file if file == TRANSITIONS.file => transitions.take(record, run_id),
            file if file == INPUTS.file => checks::inputs(record, &mut of_files),
            file if file == AGING.file => checks::aging(record),
            _other => Vec::new(),
        };
        let found = table::read(&path, sheet.columns, sheet.sums, stated.notation, check)?;
        findings.extend(listed(sheet.file, &found.problems));
        findings.extend(against_manifest(sheet, &found, stated));
        files.insert(sheet.file, found);
    }
    findings.extend(summary.against(&rows));
    findings.extend(bridge.against(&rows, &summary));
    findings.extend(exceptions.against(&rows));
    findings.extend(transitions.against(&rows));
    findings.extend(of_files.against());
    Ok(Read { files, rows, summary, bridge, of_files, findings })
}

/// The files named, and no others, must be there.
fn names(dir: &Path, stated: &Stated) -> Result<Vec<String>, ReportError> {
    let failed = || ReportError::file("reading", dir);
    let mut there = BTreeSet::new();
    for entry in std::fs::read_dir(dir).map_err(failed())? {
        there.insert(entry.map_err(failed())?.file_name().to_string_lossy().into_owned());
    }
    there.remove(MANIFEST);
    let mut findings = Vec::new();
    for sheet in SHEETS {
        if !there.remove(sheet.file) {
            findings.push(format!("{} is missing", sheet.file));
        }
        if stated.file(sheet.file).is_none() {
            findings.push(format!("{}: the manifest does not name it", sheet.file));
        }
    }
    findings.extend(there.into_iter().map(|name| format!("{name} does not belong to the report")));
    Ok(findings)
}

/// A report stands under the id of its run: one that was put in another's place says another's.
fn under_another_name(dir: &Path, run_id: &str) -> Option<String> {
    let name = dir.file_name()?.to_str().filter(|name| uuid::Uuid::try_parse(name).is_ok())?;
    (name != run_id).then(|| format!("it stands under the name of run {name}, and is of {run_id}"))
}

fn listed(file: &str, problems: &[String]) -> Vec<String> {
    let mut findings: Vec<String> =
        problems.iter().take(LISTED).map(|problem| format!("{file}: {problem}")).collect();
    let more = problems.len().saturating_sub(LISTED);
    if more > 0 {
        findings.push(format!("{file}: and {more} more"));
    }
    findings
}

fn against_manifest(sheet: &Sheet, found: &Found, stated: &Stated) -> Vec<String> {
    let Some(entry) = stated.file(sheet.file) else { return Vec::new() };
    let mut findings = Vec::new();
    if entry.get("sha256").and_then(Value::as_str) != Some(&found.sha256) {
        findings.push(format!("{}: its bytes are not those that were written", sheet.file));
    }
    if entry.get("rows").and_then(Value::as_u64) != Some(found.rows) {
        findings.push(format!("{}: {} rows were read, not as stated", sheet.file, found.rows));
    }
    for (column, _) in sheet.sums {
        let stated_sums = entry.pointer(&format!("/sums/{column}")).and_then(Value::as_object);
        let stated_sums: BTreeMap<String, i128> = stated_sums
            .into_iter()
            .flatten()
            .filter_map(|(code, sum)| Some((code.clone(), sum.as_str()?.parse().ok()?)))
            .collect();
        let sums = found.sums.get(*column).cloned().unwrap_or_default();
        if stated_sums != sums {
            findings.push(format!(
                "{}: {column} adds up to {sums:?}, and the manifest says {stated_sums:?}",
                sheet.file
            ));
        }
    }
    findings
}

fn verified(
    dir: &Path,
    stated: &Stated,
    read: Read,
    from_database: Vec<String>,
    rebuilt: Rebuilt,
) -> Verified {
    let mut findings = read.findings;
    let untied = read.bridge.untied().chain(&read.summary.untied).chain(read.of_files.untied());
    let untied: BTreeSet<String> = untied.cloned().collect();
    let says_tied = stated.word("/tie_out") == "tied";
    if says_tied && !untied.is_empty() {
        findings.push(format!("the manifest says tied, and {untied:?} are not"));
    }
    let named = stated_untied(stated);
    if says_tied != named.is_empty() {
        let word = stated.word("/tie_out");
        findings.push(format!("the manifest says {word:?}, and names {named:?} as untied"));
    }
    let escaped = read.files.values().fold(0_u64, |sum, file| sum.saturating_add(file.escaped));
    if stated.json.pointer("/escaped_cells").and_then(Value::as_u64) != Some(escaped) {
        findings.push(format!("{escaped} cells are escaped, not as the manifest says"));
    }
    findings.extend(counts(stated, &read.rows, &read.summary, &read.bridge));
    findings.extend(residuals(stated, &read.bridge));
    let totals_hold = findings.is_empty();
    findings.extend(from_database);
    let untied = if says_tied || !untied.is_empty() {
        untied.iter().map(|code| currency_words(code)).collect()
    } else {
        named
    };
    Verified {
        dir: dir.to_path_buf(),
        run_id: stated.run_id.clone(),
        rows: read.files.get(RECONCILIATION.file).map_or(0, |file| file.rows),
        findings,
        untied,
        audit_head: Some(stated.word("/audit_head").to_owned()).filter(|head| !head.is_empty()),
        against_database: rebuilt != Rebuilt::NotAsked,
        totals_hold,
        rebuilt,
    }
}

fn stated_untied(stated: &Stated) -> Vec<String> {
    let codes = stated.json.pointer("/untied").and_then(Value::as_array);
    codes.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The manifest's residuals against those of the bridge.
fn residuals(stated: &Stated, bridge: &Bridge) -> Vec<String> {
    let told = stated.json.pointer("/residuals").and_then(Value::as_object);
    let told = told.into_iter().flatten().map(|(code, sum)| {
        let text = |name: &str| sum.get(name).and_then(Value::as_str).unwrap_or("");
        let rows = sum.get("rows").and_then(Value::as_i64).map(i128::from);
        let minor: Option<i128> = text("amount_minor").parse().ok();
        let exponent = Currency::parse(code).map_or(0, |known| known.exponent());
        let is_one = minor.is_some_and(|minor| decimal_text(minor, exponent) == text("amount"));
        (code.clone(), rows.zip(minor).filter(|_| is_one))
    });
    let told: BTreeMap<String, Option<Pair>> = told.collect();
    let left = bridge.residuals().into_iter().map(|(code, pair)| (code, Some(pair)));
    let left: BTreeMap<String, Option<Pair>> = left.collect();
    let differ = told != left;
    differ
        .then(|| format!("the manifest's residuals are {told:?}; those of bridge.csv {left:?}"))
        .into_iter()
        .collect()
}

/// The manifest's counts against the rows.
fn counts(stated: &Stated, rows: &Rows, summary: &Summary, bridge: &Bridge) -> Vec<String> {
    let mut wanted: BTreeMap<String, i128> = BTreeMap::new();
    for ((_, _, outcome), (count, _)) in &rows.outcomes {
        let sum = wanted.entry(outcome.clone()).or_default();
        *sum = sum.saturating_add(*count);
    }
    let all = |sum: i128, pair: &Pair| sum.saturating_add(pair.0);
    wanted.insert("claimed".to_owned(), bridge.claimed().values().fold(0, all));
    wanted.insert("released".to_owned(), summary.released.values().fold(0, all));
    let stated_counts = stated.json.pointer("/counts").and_then(Value::as_object);
    let stated_counts: BTreeMap<String, i128> = stated_counts
        .into_iter()
        .flatten()
        .filter_map(|(word, count)| Some((word.clone(), i128::from(count.as_i64()?))))
        .collect();
    let differ = stated_counts != wanted;
    differ
        .then(|| format!("the manifest counts {stated_counts:?}; recomputed: {wanted:?}"))
        .into_iter()
        .collect()
}
