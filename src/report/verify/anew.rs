//! The report built anew from the journal, and held against the one that stands there, byte by
//! byte.
//!
//! It is the building's own answer beside the recomputation, which shares no code with it. What no
//! total depends on (a sentence, a reason's side, a line of aging) is proven by it alone. It is
//! written into a folder of the system's own for such things, which goes when it is done.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use chrono_tz::Tz;
use serde_json::Value;

use crate::model::time::{Instant, to_short_text, to_text};
use crate::report::build::{self, BuildOptions};
use crate::report::cells::Dialect;
use crate::report::columns::{AGING, EXCEPTIONS, INPUTS, MANIFEST, SHEETS, Sheet};
use crate::report::error::ReportError;
use crate::report::facts::{COMMIT, Notes};
use crate::report::source::Source;
use crate::report::verify::Stated;
use crate::report::verify::beside::{Beside, Pair, first_line};
use crate::report::verify::database::FILES;
use crate::report::verify::table::Notation;
use crate::store::records::RunRow;

/// This program's version.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Letters of a cell that a sentence shows.
const SHOWN: usize = 60;

/// Where one file of the report and the one built anew differ first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The file.
    pub file: String,
    /// The line in the report's file, from 1.
    pub line: u64,
    /// The column, or the manifest's field, where one can be named.
    pub column: Option<String>,
    /// What stands there, and what would.
    pub text: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, text } = self;
        match column {
            Some(column) => write!(f, "{file} line {line}, {column}: {text}"),
            None => write!(f, "{file} line {line}: {text}"),
        }
    }
}

/// What building it anew told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rebuilt {
    /// No database was asked.
    NotAsked,
    /// The database has no such run.
    NoRun,
    /// Its records were pruned.
    Pruned {
        /// When.
        at: Instant,
    },
    /// It is the same, byte for byte.
    Same,
    /// It is the same but for what the database no longer tells.
    MovedOn {
        /// What that is, a sentence each.
        since: Vec<String>,
    },
    /// It differs, and the run was another version's: it may be nothing but that.
    OtherVersion {
        /// That version.
        made_by: String,
        /// The first difference of each file.
        differences: Vec<Difference>,
    },
    /// It differs.
    Differs {
        /// The first difference of each file.
        differences: Vec<Difference>,
    },
}

impl Rebuilt {
    /// The stable word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::NotAsked => "not_asked",
            Self::NoRun => "no_run",
            Self::Pruned { .. } => "pruned",
            Self::Same => "same",
            Self::MovedOn { .. } => "moved_on",
            Self::OtherVersion { .. } => "other_version",
            Self::Differs { .. } => "differs",
        }
    }

    /// One sentence.
    pub fn text(&self) -> String {
        match self {
            Self::NotAsked => "it was not held against the journal (`--database` does)".to_owned(),
            Self::NoRun => {
                "the database has no such run (it is another one, or was restored from before \
                 it), so that only what the files prove by themselves was verified"
                    .to_owned()
            }
            Self::Pruned { at } => format!(
                "its records were pruned {}, so that it cannot be built anew; its audit head, what \
                 its manifest says of the run, and the lines of its files were held against the \
                 database",
                to_short_text(*at)
            ),
            Self::Same => "built anew from the journal it is the same, byte for byte".to_owned(),
            Self::MovedOn { since } => format!(
                "built anew from the journal it is the same, but for what is no longer there: {}",
                since.join("; ")
            ),
            Self::OtherVersion { made_by, .. } => format!(
                "built anew it differs: it was built by another version ({made_by}, and this is \
                 {}), so that this tells nothing of changes; verify it by that version",
                program(VERSION, COMMIT)
            ),
            Self::Differs { .. } => "built anew from the journal it is another".to_owned(),
        }
    }

    /// Where it differs.
    pub fn differences(&self) -> &[Difference] {
        match self {
            Self::OtherVersion { differences, .. } | Self::Differs { differences } => differences,
            Self::NotAsked
            | Self::NoRun
            | Self::Pruned { .. }
            | Self::Same
            | Self::MovedOn { .. } => &[],
        }
    }

    /// Whether the database was asked, and could not say whether all of it is as it was built.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::NoRun | Self::Pruned { .. } | Self::OtherVersion { .. })
    }
}

/// A version with its commit.
fn program(version: &str, commit: Option<&str>) -> String {
    let commit = commit.map_or(String::new(), |commit| format!(" of {commit}"));
    format!("tieout {version}{commit}")
}

/// The version that the run was made by, where it is not this one: by the database, since whoever
/// changes a report may change what its manifest says.
fn another_version(run: &RunRow) -> Option<String> {
    let notes = serde_json::from_str::<Notes>(&run.notes).unwrap_or_default();
    let commit = notes.git_commit.as_deref();
    let is_other_commit = commit.zip(COMMIT).is_some_and(|(theirs, own)| theirs != own);
    let is_other = run.version != VERSION || is_other_commit;
    is_other.then(|| program(&run.version, commit))
}

/// Builds the report of a run anew and holds the one in `dir` against it.
pub(super) async fn hold<S: Source>(
    source: &S,
    run: &RunRow,
    dir: &Path,
    stated: &Stated,
) -> Result<Rebuilt, ReportError> {
    let scratch = Scratch::make()?;
    let zone: Tz = stated.word("/timezone").parse().unwrap_or(Tz::UTC);
    let dialect = Dialect::parse(stated.word("/dialect")).unwrap_or_default();
    let options = BuildOptions { dialect, ..BuildOptions::in_zone(zone) };
    let built = Box::pin(build::build(source, &run.id, &scratch.0, &options)).await;
    let anew = built.map_err(|error| scratch.failed(error))?.dir;
    let held = Held { source, run_id: &run.id, notation: stated.notation, dir, anew: &anew };
    let (differences, since) = held.compare().await?;
    Ok(match (differences.is_empty(), another_version(run)) {
        (true, _) if since.is_empty() => Rebuilt::Same,
        (true, _) => Rebuilt::MovedOn { since },
        (false, Some(made_by)) => Rebuilt::OtherVersion { made_by, differences },
        (false, None) => Rebuilt::Differs { differences },
    })
}

/// A folder that goes when it is done; payments are nobody else's to read.
struct Scratch(PathBuf);

impl Scratch {
    fn make() -> Result<Self, ReportError> {
        let name = format!("tieout-verify-{}", uuid::Uuid::now_v7());
        let path = std::env::temp_dir().join(name);
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        match made {
            Ok(()) => Ok(Self(path)),
            Err(source) => Err(ReportError::Anew { path, source }),
        }
    }

    /// What has no room here says nothing of where reports stand.
    fn failed(&self, error: ReportError) -> ReportError {
        match error {
            ReportError::File { source, .. } => ReportError::Anew { path: self.0.clone(), source },
            other => other,
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left is in a folder of the system's own for such things.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A report and the one built anew.
struct Held<'a, S> {
    source: &'a S,
    run_id: &'a str,
    notation: Notation,
    dir: &'a Path,
    anew: &'a Path,
}

impl<S: Source> Held<'_, S> {
    /// The first difference of each file, and what the database no longer tells.
    async fn compare(&self) -> Result<(Vec<Difference>, Vec<String>), ReportError> {
        let (mut differences, mut since) = (Vec::new(), Vec::new());
        let mut touched: BTreeSet<&str> = BTreeSet::new();
        let manifest = read_json(&self.anew.join(MANIFEST))?;
        let noted_aging = manifest.pointer("/aging").and_then(Value::as_str) == Some("at_end");
        for sheet in SHEETS {
            let (own, anew) = (self.dir.join(sheet.file), self.anew.join(sheet.file));
            // One that is missing is a finding of the files' own.
            let line = if own.exists() { first_line(&own, &anew)? } else { None };
            if own.exists() && line.is_none() {
                continue;
            }
            touched.insert(sheet.file);
            let Some(line) = line else { continue };
            if sheet.file == AGING.file && !noted_aging {
                since.push(format!(
                    "{} was worked out after the run, and its cases have gone on",
                    AGING.file
                ));
                continue;
            }
            match self.compare_records(sheet, line).await? {
                Found::Difference(difference) => differences.push(difference),
                Found::MovedOn(why) => since.push(why),
            }
        }
        differences.extend(self.compare_manifest(&manifest, &touched)?);
        Ok((differences, since))
    }

    /// The first record that differs and that the database cannot explain.
    async fn compare_records(
        &self,
        sheet: &'static Sheet,
        first: u64,
    ) -> Result<Found, ReportError> {
        let (own, anew) = (self.dir.join(sheet.file), self.anew.join(sheet.file));
        let mut beside = Beside::open(&own, &anew, self.notation.delimiter())?;
        let mut moved_on = None;
        let mut again: Option<BTreeSet<[String; 2]>> = None;
        while let Some(pair) = beside.differing()? {
            let row = Row { sheet, notation: self.notation, pair: &pair };
            let is_explained = match sheet.file {
                file if file == EXCEPTIONS.file => self.was_seen_by_pruned(row).await?,
                file if file == INPUTS.file && row.may_have_come_again() => {
                    if again.is_none() {
                        again = Some(self.came_again().await?);
                    }
                    again.as_ref().is_some_and(|files| files.contains(&row.file()))
                }
                _other => false,
            };
            if !is_explained {
                return Ok(Found::Difference(row.difference()));
            }
            moved_on = Some(explanation(sheet));
        }
        Ok(match moved_on {
            Some(why) => Found::MovedOn(why),
            None => Found::Difference(Difference {
                file: sheet.file.to_owned(),
                line: first,
                column: None,
                text: "its cells are the same, and its bytes are not those that were written"
                    .to_owned(),
            }),
        })
    }

    /// A case that runs before this one saw first: they were pruned, and their records are not
    /// there to be counted.
    async fn was_seen_by_pruned(&self, row: Row<'_>) -> Result<bool, ReportError> {
        if !row.differs_only_in(&["first_seen_run", "times_seen"]) {
            return Ok(false);
        }
        let (seen_by, now_by) = row.cells("first_seen_run");
        let (times, times_now) = row.cells("times_seen");
        let number = |text: &str| text.parse::<i64>().ok();
        let is_same_run = now_by.is_empty() || now_by == seen_by;
        let is_fewer = times_now.is_empty()
            || number(times).zip(number(times_now)).is_some_and(|(was, is)| is <= was);
        if !is_same_run || !is_fewer {
            return Ok(false);
        }
        let pruned_at = self.source.pruned_at(seen_by).await;
        Ok(pruned_at.map_err(ReportError::store(self.run_id))?.is_some())
    }

    /// Files that this run quarantined and that a later one read again: name and when they came.
    async fn came_again(&self) -> Result<BTreeSet<[String; 2]>, ReportError> {
        let mut again = BTreeSet::new();
        let mut after = 0;
        loop {
            let page = self.source.files_of_run(self.run_id, after, FILES).await;
            let page = page.map_err(ReportError::store(self.run_id))?;
            let Some(last) = page.last() else { return Ok(again) };
            after = last.file.id;
            let own = page.iter().filter(|own| own.came_again_after(self.run_id));
            again.extend(own.map(|own| [own.file.name.clone(), to_text(own.file.received_at)]));
        }
    }

    /// The manifest, but for what it says of files that differ: those are told already.
    fn compare_manifest(
        &self,
        anew: &Value,
        touched: &BTreeSet<&str>,
    ) -> Result<Option<Difference>, ReportError> {
        let path = self.dir.join(MANIFEST);
        let Some(first) = first_line(&path, &self.anew.join(MANIFEST))? else { return Ok(None) };
        let own = read_json(&path)?;
        let (own, anew) = (fields(&own, touched), fields(anew, touched));
        let names: BTreeSet<&String> = own.keys().chain(anew.keys()).collect();
        let Some(name) = names.into_iter().find(|name| own.get(*name) != anew.get(*name)) else {
            let is_told = !touched.is_empty();
            return Ok((!is_told).then(|| Difference {
                file: MANIFEST.to_owned(),
                line: first,
                column: None,
                text: "it says the same, and its bytes are not those that were written".to_owned(),
            }));
        };
        let shown = |value: Option<&Value>| {
            clipped(&value.map_or_else(|| "nothing".to_owned(), ToString::to_string))
        };
        Ok(Some(Difference {
            file: MANIFEST.to_owned(),
            line: if touched.is_empty() { first } else { line_of_field(&path, name)? },
            column: Some(name.clone()),
            text: words(&shown(own.get(name)), &shown(anew.get(name))),
        }))
    }
}

/// What two files that differ turned out to be.
enum Found {
    Difference(Difference),
    MovedOn(String),
}

fn explanation(sheet: &Sheet) -> String {
    let why = if sheet.file == INPUTS.file {
        "files that it quarantined came again since, and what was wrong with them is not kept"
    } else {
        "runs that saw its cases before it were pruned since, and how often is not kept"
    };
    format!("{}: {why}", sheet.file)
}

/// A record beside the one built anew.
#[derive(Clone, Copy)]
struct Row<'a> {
    sheet: &'static Sheet,
    notation: Notation,
    pair: &'a Pair,
}

impl<'a> Row<'a> {
    /// Both cells of a column, unescaped; empty where there is none.
    fn cells(self, column: &str) -> (&'a str, &'a str) {
        let at = self.sheet.columns.iter().position(|name| *name == column);
        let of = |cells: &'a Option<Vec<String>>| {
            let cell = cells.as_ref().zip(at).and_then(|(cells, at)| cells.get(at));
            self.notation.unescaped(cell.map_or("", String::as_str))
        };
        (of(&self.pair.own), of(&self.pair.anew))
    }

    /// Both whole records are there, and are the same but for these columns.
    fn differs_only_in(self, columns: &[&str]) -> bool {
        let width = self.sheet.columns.len();
        let is_whole =
            |cells: &Option<Vec<String>>| cells.as_ref().is_some_and(|cells| cells.len() == width);
        let mut others = self.sheet.columns.iter().filter(|name| !columns.contains(*name));
        is_whole(&self.pair.own)
            && is_whole(&self.pair.anew)
            && others.all(|name| {
                let (own, anew) = self.cells(name);
                own == anew
            })
    }

    /// A file that was quarantined, and of which only what was wrong with it differs.
    fn may_have_come_again(self) -> bool {
        self.differs_only_in(&["sha256", "account", "format", "note"])
            && self.cells("kind").0 == "file"
            && self.cells("state").0 == "quarantined"
    }

    /// A file's name and when it came.
    fn file(self) -> [String; 2] {
        ["name", "received_at"].map(|column| self.cells(column).0.to_owned())
    }

    fn difference(self) -> Difference {
        let Self { sheet, pair, .. } = self;
        let (column, text) = match (&pair.own, &pair.anew) {
            (Some(own), Some(anew)) if own.len() == anew.len() => {
                let mut cells = (0_usize..).zip(own.iter().zip(anew));
                let first = cells.find(|(_, (own, anew))| own != anew);
                let column = first.and_then(|(at, _)| sheet.columns.get(at));
                let text = first.map(|(_, (own, anew))| words(&quoted(own), &quoted(anew)));
                let text = text.unwrap_or_else(|| "its bytes are others".to_owned());
                (column.map(|name| (*name).to_owned()), text)
            }
            (Some(own), Some(anew)) => {
                (None, format!("it has {} cells, and {} built anew", own.len(), anew.len()))
            }
            (Some(_), None) => (None, "built anew the file ends before it".to_owned()),
            (None, _) => (None, "the file ends, and built anew it goes on".to_owned()),
        };
        Difference { file: sheet.file.to_owned(), line: pair.line, column, text }
    }
}

fn words(own: &str, anew: &str) -> String {
    format!("it says {own}, and built anew {anew}")
}

fn quoted(cell: &str) -> String {
    clipped(&format!("{cell:?}"))
}

fn clipped(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _letter)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn read_json(path: &Path) -> Result<Value, ReportError> {
    let bytes = std::fs::read(path).map_err(ReportError::file("reading", path))?;
    let json = serde_json::from_slice(&bytes);
    json.map_err(|error| ReportError::file("reading", path)(error.into()))
}

/// A manifest's fields, without what they say of some files.
fn fields(manifest: &Value, without: &BTreeSet<&str>) -> BTreeMap<String, Value> {
    let all = manifest.as_object().into_iter().flatten();
    let mut fields: BTreeMap<String, Value> =
        all.map(|(name, value)| (name.clone(), value.clone())).collect();
    if !without.is_empty() {
        fields.remove("escaped_cells");
    }
    if let Some(Value::Array(files)) = fields.get_mut("files") {
        files.retain(|file| {
            let name = file.get("name").and_then(Value::as_str);
            name.is_none_or(|name| !without.contains(name))
        });
    }
    fields
}

/// Where a field of the manifest stands; its first line where that cannot be told.
fn line_of_field(path: &Path, name: &str) -> Result<u64, ReportError> {
    let text = std::fs::read_to_string(path).map_err(ReportError::file("reading", path))?;
    let field = format!("  \"{name}\":");
    let lines = (1_u64..).zip(text.lines());
    let found = lines.filter(|(_, line)| line.starts_with(&field)).map(|(number, _)| number);
    Ok(found.min().unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(cells: &[&str]) -> Option<Vec<String>> {
        Some(cells.iter().map(|cell| (*cell).to_owned()).collect())
    }

    #[test]
    fn a_difference_names_its_column_and_shows_both_sides() {
        let width = AGING.columns.len();
        let long = "x".repeat(200);
        let mut own = vec!["a"; width];
        own[3] = "mara";
        let mut anew = vec!["a"; width];
        anew[3] = &long;
        let pair = Pair { line: 7, own: cells(&own), anew: cells(&anew) };
        let notation = Notation::of("rfc4180").unwrap();
        let row = Row { sheet: &AGING, notation, pair: &pair };
        let told = row.difference().to_string();
        let begins = "aging.csv line 7, owner: it says \"mara\", and built anew \"xxx";
        assert!(told.starts_with(begins), "{told}");
        assert!(told.ends_with('…') && told.chars().count() < 140, "{told}");
        let shorter = Pair { anew: cells(&["a"]), ..pair.clone() };
        let told = Row { pair: &shorter, ..row }.difference().to_string();
        assert_eq!(told, "aging.csv line 7: it has 13 cells, and 1 built anew");
        let gone = Pair { own: None, ..pair.clone() };
        let told = Row { pair: &gone, ..row }.difference().to_string();
        assert_eq!(told, "aging.csv line 7: the file ends, and built anew it goes on");
    }

    #[test]
    fn what_a_manifest_says_of_some_files_is_left_out() {
        let manifest = serde_json::json!({
            "escaped_cells": 3,
            "files": [{ "name": "a.csv", "rows": 1 }, { "name": "b.csv", "rows": 2 }],
            "tie_out": "tied",
        });
        let left = fields(&manifest, &BTreeSet::from(["a.csv"]));
        assert_eq!(left.keys().collect::<Vec<_>>(), ["files", "tie_out"]);
        assert_eq!(left["files"], serde_json::json!([{ "name": "b.csv", "rows": 2 }]));
        assert_eq!(fields(&manifest, &BTreeSet::new()).len(), 3);
    }
}
