//! `tieout report`: build a run's report again, verify one, list those there are.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Subcommand};
use serde_json::json;

use crate::cli::args::{Common, Overriding, overrides, path, yes_or_no};
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::screen::{self, rows};
use crate::cli::{database, out, page};
use crate::config::{self, Config, names};
use crate::exit::Exit;
use crate::model::count::counted;
use crate::model::time::to_short_text;
use crate::report::build::BuildOptions;
use crate::report::cells::Dialect;
use crate::report::error::ReportError;
use crate::report::place::{Listed, ListedState};
use crate::report::source::Source;
use crate::report::verify::Verified;
use crate::report::verify::anew::{Difference, Rebuilt};
use crate::store::driver::Driver;

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout report list
  tieout report build 01990000-…                byte for byte as the run did
  tieout report verify reports/2026-11-19/01990000-…
  tieout report verify 01990000-…               where the configuration says
  tieout report verify DIR --database           built anew as well, and compared";

/// Findings listed; the rest is counted.
const LISTED: usize = 50;

/// What to do where the database holds what no run wrote.
const CHANGED: &str = "keep the database as it is: `tieout audit verify` looks at every record, \
                       and a backup and the reports' audit heads say what was changed";

/// What to do with reports.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Build the report of a closed run from its journal
    Build(Build),
    /// Recompute every hash, count and sum of a report; exit 16 where one differs
    Verify(Verify),
    /// List the reports there are, the newest first
    List(List),
}

/// Options of `report build`.
#[derive(Debug, clap::Args)]
pub struct Build {
    /// The run's id
    run: String,
    /// How CSV is written: rfc4180, excel (formulas escaped), excel-eu (`;` and decimal commas)
    #[arg(
        long, value_name = "DIALECT", env = names::REPORT_DIALECT, default_value = "rfc4180",
        value_parser = dialect
    )]
    dialect: Dialect,
    /// Where reports go [default: report.dir of the configuration]
    #[arg(long, value_name = "DIR", env = names::REPORT_DIR)]
    report_dir: Option<String>,
}

fn dialect(text: &str) -> Result<Dialect, String> {
    let words = || Dialect::ALL.map(Dialect::as_str).join(", ");
    Dialect::parse(text).ok_or_else(|| format!("expected one of {}", words()))
}

/// Options of `report verify`.
#[derive(Debug, clap::Args)]
pub struct Verify {
    /// The report's directory, or its run's id
    #[arg(value_parser = path())]
    dir: PathBuf,
    /// Hold it against the database as well: build it anew from the journal, and compare
    #[arg(long, env = names::REPORT_DATABASE, value_parser = yes_or_no)]
    database: bool,
}

/// Options of `report list`.
#[derive(Debug, clap::Args)]
pub struct List {
    /// Where reports go [default: report.dir of the configuration]
    #[arg(long, value_name = "DIR", env = names::REPORT_DIR)]
    report_dir: Option<String>,
}

const OVERRIDING: [Overriding; 1] = [Overriding {
    id: "report_dir",
    flag: "--report-dir",
    env: names::REPORT_DIR,
    path: "report.dir",
}];

/// Runs the command.
pub fn run(command: &Command, common: &Common, matches: &ArgMatches) -> Result<Exit, Failure> {
    let given = matches.subcommand().map_or(matches, |(_name, given)| given);
    match command {
        Command::List(_) => {
            list(common, &config::load(common.config(), &overrides(given, &OVERRIDING))?)
        }
        Command::Build(options) => {
            let config = config::load(common.config(), &overrides(given, &OVERRIDING))?;
            database::to_read(&config, async |db| {
                refuse_pruned(&options.run, db).await?;
                build(options, common, &config, db).await
            })
        }
        Command::Verify(options) if options.database => {
            let config = config::load(common.config(), &[])?;
            let dir = &place(&options.dir, common)?;
            database::to_read(&config, async |db| verify_against(dir, common, db).await)
        }
        Command::Verify(options) => verify(&place(&options.dir, common)?, common),
    }
}

/// The directory that was meant: itself, or the one of a run.
fn place(word: &Path, common: &Common) -> Result<PathBuf, Failure> {
    let run = word.to_str().filter(|text| uuid::Uuid::try_parse(text).is_ok());
    let Some(run) = run.filter(|_| !word.exists()) else { return Ok(word.to_path_buf()) };
    let root = config::load(common.config(), &[])?.report_dir;
    let reports = if root.exists() {
        crate::report::list(&root).map_err(|error| failure(&error))?
    } else {
        Vec::new()
    };
    let found = reports.into_iter().find(|report| report.run_id == run);
    found.map(|report| report.dir).ok_or_else(|| {
        let text =
            format!("no report of run {run} lies under {}; nothing was verified", root.display());
        Failure::new(Exit::Usage, text, format!("`tieout report build {run}` makes it"))
    })
}

/// A report of nothing would tie out.
async fn refuse_pruned<D: Driver>(run: &str, db: &D) -> Result<(), Failure> {
    let Some(at) = db.pruned_at(run).await.map_err(|e| Failure::store(&e))? else {
        return Ok(());
    };
    let at = to_short_text(at);
    let text = format!("run {run} was pruned {at}: its records are gone; nothing was built");
    Err(Failure::new(Exit::Usage, text, "its report lies where the run wrote it, or in a backup"))
}

/// `report build`.
async fn build<S: Source>(
    options: &Build,
    common: &Common,
    config: &Config,
    source: &S,
) -> Result<Exit, Failure> {
    let zone = config.business_timezone.value;
    let how = BuildOptions { dialect: options.dialect, ..BuildOptions::in_zone(zone) };
    let built = crate::report::build(source, &options.run, &config.report_dir, &how).await;
    let built = built.map_err(|error| failure(&error))?;
    let exit = if built.untied.is_empty() { Exit::Ok } else { Exit::Untied };
    if common.json {
        let body = json!({
            "run_id": options.run,
            "dir": built.dir.display().to_string(),
            "rows": built.rows,
            "untied": built.untied,
            "findings": built.findings,
            "replaced": built.replaced,
            "audit_head": built.audit_head,
        });
        out::stdout(&line("report_built", body));
    } else if !common.quiet {
        let replaced = if built.replaced { ", replacing an older one" } else { "" };
        let dir = built.dir.display();
        page::say(&format!("report   {dir} ({}{replaced})", rows(built.rows)));
    }
    untied(&built.untied, &built.findings);
    Ok(exit)
}

/// `report verify` from the files alone.
fn verify(dir: &Path, common: &Common) -> Result<Exit, Failure> {
    let verified = crate::report::verify(dir).map_err(|error| unverified(&error))?;
    told(&verified, common)
}

/// `report verify --database`.
async fn verify_against<S: Source>(
    dir: &Path,
    common: &Common,
    source: &S,
) -> Result<Exit, Failure> {
    let verified = crate::report::verify_against(source, dir).await;
    told(&verified.map_err(|error| unverified(&error))?, common)
}

/// What to do about a report that does not verify.
fn again(verified: &Verified) -> String {
    match &verified.rebuilt {
        Rebuilt::Pruned { .. } => "its records were pruned, so that it cannot be built again: \
                                   compare it with a copy of before"
            .to_owned(),
        _kept => format!("build it again (`tieout report build {}`) and compare", verified.run_id),
    }
}

/// What verifying found; what is wrong outweighs what is truly untied, and that what could not be
/// looked at.
fn told(verified: &Verified, common: &Common) -> Result<Exit, Failure> {
    let dir = verified.dir.display();
    if common.json {
        out::stdout(&line("report_verified", verified_body(verified)));
    }
    if !verified.is_sound() {
        for finding in verified.findings.iter().take(LISTED) {
            page::warn(&format!("tieout: integrity: {finding}"));
        }
        return Err(Failure::new(
            Exit::Integrity,
            format!(
                "{dir} does not verify: {}; {}",
                counted(verified.findings.len(), "finding", "findings"),
                answers(verified)
            ),
            again(verified),
        ));
    }
    let rebuilt = &verified.rebuilt;
    if !common.json && !common.quiet {
        let source = match rebuilt {
            Rebuilt::NotAsked | Rebuilt::NoRun => "its files",
            Rebuilt::Pruned { .. }
            | Rebuilt::Same
            | Rebuilt::MovedOn { .. }
            | Rebuilt::OtherVersion { .. }
            | Rebuilt::Differs { .. } => "its files and the database",
        };
        page::say(&format!("report ok: {dir} ({}), by {source}", rows(verified.rows)));
        if !rebuilt.is_open() {
            page::say(&format!("journal    {}", rebuilt.text()));
        }
    }
    untied(&verified.untied, &[]);
    let exit = if verified.untied.is_empty() { Exit::Ok } else { Exit::Untied };
    Ok(exit.or_stronger(left_open(rebuilt)))
}

/// Says what the database was asked for and could not say.
fn left_open(rebuilt: &Rebuilt) -> Exit {
    if !rebuilt.is_open() {
        return Exit::Ok;
    }
    for difference in rebuilt.differences() {
        page::warn(&format!("tieout: partial: built by another version: {difference}"));
    }
    page::warn(&format!("tieout: partial: {}", rebuilt.text()));
    Exit::Partial
}

/// Both answers: of the recomputation, and of the building.
fn answers(verified: &Verified) -> String {
    let holds = if verified.totals_hold { "every total holds" } else { "not all of it holds" };
    format!("recomputed from its files, {holds}; {}", verified.rebuilt.text())
}

fn verified_body(verified: &Verified) -> serde_json::Value {
    let difference = |one: &Difference| {
        json!({
            "file": one.file,
            "line": one.line,
            "column": one.column,
            "text": one.text,
        })
    };
    let differences: Vec<serde_json::Value> =
        verified.rebuilt.differences().iter().map(difference).collect();
    json!({
        "run_id": verified.run_id,
        "dir": verified.dir.display().to_string(),
        "rows": verified.rows,
        "sound": verified.is_sound(),
        "findings": verified.findings,
        "untied": verified.untied,
        "audit_head": verified.audit_head,
        "against_database": verified.against_database,
        "totals_hold": verified.totals_hold,
        "rebuilt": verified.rebuilt.as_str(),
        "rebuilt_text": verified.rebuilt.text(),
        "differences": differences,
    })
}

fn untied(currencies: &[String], findings: &[String]) {
    if !currencies.is_empty() {
        let text = currencies.join(", ");
        page::warn(&format!("tieout: untied: {text}: claimed and accounted for differ"));
        for finding in findings.iter().take(LISTED) {
            page::warn(&format!("tieout: untied: {finding}"));
        }
    }
}

/// `report list`.
fn list(common: &Common, config: &Config) -> Result<Exit, Failure> {
    if !config.report_dir.exists() {
        if !common.json && !common.quiet {
            page::say(&format!("no report yet under {}", config.report_dir.display()));
        }
        return Ok(Exit::Ok);
    }
    let reports = crate::report::list(&config.report_dir).map_err(|error| failure(&error))?;
    for report in &reports {
        if common.json {
            out::stdout(&line("report", body(report)));
        } else {
            page::say(&row(report));
        }
    }
    Ok(Exit::Ok)
}

fn row(report: &Listed) -> String {
    let state = match &report.state {
        ListedState::Whole { tie_out, exit_class, rows, .. } => {
            format!("{tie_out:<7} {exit_class:<12} {}", screen::rows(*rows))
        }
        ListedState::Unfinished => "no manifest: not a report".to_owned(),
        ListedState::Unreadable(problem) => format!("unreadable manifest: {problem}"),
    };
    format!("{}  {}  {state}", report.business_date, report.run_id)
}

fn body(report: &Listed) -> serde_json::Value {
    let state = match &report.state {
        ListedState::Whole { tie_out, exit_class, started_at, rows } => json!({
            "state": "whole",
            "tie_out": tie_out,
            "class": exit_class,
            "started_at": started_at,
            "rows": rows,
        }),
        ListedState::Unfinished => json!({ "state": "no_manifest" }),
        ListedState::Unreadable(problem) => {
            json!({ "state": "unreadable", "problem": problem })
        }
    };
    json!({
        "run_id": report.run_id,
        "business_date": report.business_date,
        "dir": report.dir.display().to_string(),
        "report": state,
    })
}

/// Whether a folder holds what a report is made of: without its manifest it was tampered with, and
/// any other path was mistyped.
fn has_tables(dir: &Path) -> bool {
    let mut files = std::fs::read_dir(dir).into_iter().flatten().flatten();
    files.any(|file| file.path().extension().is_some_and(|end| end == "csv"))
}

/// Of verifying: what cannot be read of a run is no longer as it was written.
fn unverified(error: &ReportError) -> Failure {
    let cannot = |what: &str, run_id: &str, why: &dyn Display| {
        format!("the {what} of run {run_id} cannot be read, and nothing was verified: {why}")
    };
    match error {
        ReportError::Store { run_id, source } => {
            let Failure { exit, text, hint } = Failure::store(source);
            let text = cannot("journal", run_id, &text);
            match exit {
                Exit::Internal => Failure::new(Exit::Integrity, text, CHANGED),
                _unreached => Failure { exit, text, hint },
            }
        }
        ReportError::Unreadable { run_id, field, source } => {
            Failure::new(Exit::Integrity, cannot(field, run_id, source), CHANGED)
        }
        other => failure(other),
    }
}

fn failure(error: &ReportError) -> Failure {
    let exit = match error {
        ReportError::Store { source, .. } => Failure::store(source).exit,
        ReportError::NoRun { .. } | ReportError::BadName { .. } => Exit::Usage,
        ReportError::StillRunning { .. } => Exit::Locked,
        ReportError::File { source, .. } | ReportError::Anew { source, .. } => {
            Exit::of_file(source, Exit::Config)
        }
        ReportError::NotAReport { path } if !has_tables(path) => {
            let hint = "name the folder of one run's report; `tieout report list` shows them";
            return Failure::new(Exit::Usage, format!("{error}; nothing was verified"), hint);
        }
        ReportError::NotAReport { .. } | ReportError::Manifest { .. } => Exit::Integrity,
        ReportError::Unreadable { .. } => Exit::Internal,
    };
    Failure::of(error, exit, error.hint())
}
