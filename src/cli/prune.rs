//! `tieout db prune`: closed runs older than a span leave the journal, each whole, and with them
//! the closed cases that they opened.

use std::io::IsTerminal;

use chrono::TimeDelta;
use serde_json::json;

use crate::cli::args::{Common, yes_or_no};
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::{out, page, person};
use crate::config::names;
use crate::exit::Exit;
use crate::model::count::counted;
use crate::model::time::{earlier, parse_keep, to_short_text, to_text};
use crate::store::driver::Driver;
use crate::store::error::StoreError;
use crate::store::prune::{OldCases, Prunable};

/// Younger records are what open questions are answered from.
const KEEP_MIN: TimeDelta = TimeDelta::days(30);

/// Options of `db prune`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Keep what is younger than this, at least 30d; the law may ask for years
    #[arg(long, value_name = "SPAN", env = names::PRUNE_KEEP)]
    keep: String,
    /// Say what would be deleted, and delete nothing
    #[arg(long, env = names::PRUNE_DRY_RUN, value_parser = yes_or_no)]
    dry_run: bool,
    /// Do not ask before deleting
    #[arg(long, env = names::PRUNE_YES, value_parser = yes_or_no)]
    yes: bool,
}

/// Runs the command.
pub async fn run<D: Driver>(args: &Args, common: &Common, db: &D) -> Result<Exit, Failure> {
    let keep = parse_keep(&args.keep, KEEP_MIN).ok_or_else(|| {
        let text = format!("--keep {}: expected a span of 30d to 36500d, as 400d", args.keep);
        Failure::usage(format!("{text}; nothing was deleted"))
    })?;
    let now = db.now().await.map_err(|e| Failure::store(&e))?;
    let before = earlier(now, keep);
    let found = db.prunable(before).await.map_err(|e| refused(&e, "prune"))?;
    let (runs, records) = (found.runs.len(), found.records());
    let what = format!(
        "{} of {} that ended before {}, and {} that they opened",
        counted(records, "record", "records"),
        counted(runs, "run", "runs"),
        to_short_text(before),
        counted(found.cases.gone, "closed case", "closed cases")
    );
    if args.dry_run || runs == 0 {
        tell_planned(common, &found, &what);
        return Ok(Exit::Ok);
    }
    confirm(args, &what)?;
    let by = person::name();
    let (mut pruned_runs, mut pruned_records, mut evidence) = (0_u64, 0_u64, 0_u64);
    let mut cases = 0_u64;
    for (run, _records) in &found.runs {
        let now = db.now().await.map_err(|e| Failure::store(&e))?;
        let pruned = db.prune_run(&found.one(run, &by), now).await.map_err(|e| {
            let mut failure = refused(&e, "prune");
            let before_it = counted(pruned_runs, "run was pruned", "runs were pruned");
            failure.text = format!("{}; {before_it} before it", failure.text);
            failure
        })?;
        let Some(pruned) = pruned else { continue };
        pruned_runs = pruned_runs.saturating_add(1);
        pruned_records = pruned_records.saturating_add(pruned.records);
        evidence = evidence.saturating_add(pruned.evidence);
        cases = cases.saturating_add(pruned.cases);
    }
    let cases = found.cases.after(cases);
    let text = format!(
        "deleted {}, {} and {} of {}; the heads of the chains are kept{}",
        counted(pruned_records, "record", "records"),
        counted(evidence, "evidence", "evidences"),
        counted(cases.gone, "closed case", "closed cases"),
        counted(pruned_runs, "run", "runs"),
        stay(cases, found.runs_kept)
    );
    let body = json!({
        "runs": pruned_runs,
        "records": pruned_records,
        "evidence": evidence,
        "cases": cases.gone,
        "runs_kept": found.runs_kept,
        "cases_kept": cases.kept,
        "before": to_text(before),
    });
    tell(common, &text, body);
    Ok(Exit::Ok)
}

fn tell_planned(common: &Common, found: &Prunable, what: &str) {
    let stay = stay(found.cases, found.runs_kept);
    let body = json!({
        "runs": found.runs.len(),
        "records": found.records(),
        "cases": found.cases.gone,
        "runs_kept": found.runs_kept,
        "cases_kept": found.cases.kept,
        "before": to_text(found.before),
    });
    tell(common, &format!("would delete {what}{stay}. Nothing was deleted"), body);
}

/// Says of runs and closed cases that are old enough, and stay, why they do.
fn stay(cases: OldCases, runs: u64) -> String {
    if (cases.kept, runs) == (0, 0) {
        return String::new();
    }
    format!(
        "; {} and {}: a decision of a closed case waits to be approved or carried out (`tieout \
         cases list --all --proposed open`, or `approved`), and it needs what the runs tell of its \
         row; so does the case that it is a part of",
        counted(cases.kept, "other closed case", "other closed cases"),
        counted(runs, "other run are kept", "other runs are kept")
    )
}

/// No role of `tieout db roles` may take records or cases away.
pub fn refused(error: &StoreError, verb: &str) -> Failure {
    let mut failure = Failure::store(error);
    if matches!(error, StoreError::Query { code: Some(code), .. } if code == "42501") {
        failure.hint = Some(format!(
            "{verb} as the owner of tieout's tables: the roles of `tieout db roles` may not"
        ));
    }
    failure
}

fn tell(common: &Common, text: &str, body: serde_json::Value) {
    if common.json {
        out::stdout(&line("prune", body));
    } else if !common.quiet {
        page::say(text);
    }
}

/// Asks on a terminal; elsewhere it needs `--yes`.
fn confirm(args: &Args, what: &str) -> Result<(), Failure> {
    if args.yes {
        return Ok(());
    }
    if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        out::stderr(&format!("Delete {what}, for good? [y/N]"));
        let mut answer = String::new();
        let read = std::io::stdin().read_line(&mut answer);
        if read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes") {
            return Ok(());
        }
    }
    Err(Failure::usage(format!("{what}: nothing was deleted; add --yes where that is meant")))
}
