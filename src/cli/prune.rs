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
use crate::store::prune::{KeptRuns, OldCases, Prunable, Pruned};

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
    if args.dry_run {
        tell_planned(common, &found, &what);
        return Ok(Exit::Ok);
    }
    // Where nothing goes there is nothing to ask.
    if runs > 0 {
        confirm(args, &what)?;
    }
    let (pruned_runs, pruned) = prune_all(db, &found).await?;
    let cases = found.cases.after(pruned.cases);
    let kept = kept("kept", cases, found.runs_kept);
    let text = match runs {
        0 => format!("deleted {what}{kept}"),
        _ => format!(
            "deleted {}, {} and {} of {}; the heads of the chains are kept{kept}",
            counted(pruned.records, "record", "records"),
            counted(pruned.evidence, "evidence", "evidences"),
            counted(cases.gone, "closed case", "closed cases"),
            counted(pruned_runs, "run", "runs"),
        ),
    };
    let body = json!({
        "runs": pruned_runs,
        "records": pruned.records,
        "evidence": pruned.evidence,
        "cases": cases.gone,
        "runs_kept": found.runs_kept.all(),
        "cases_kept": cases.kept(),
        "before": to_text(before),
    });
    tell(common, &text, body);
    Ok(Exit::Ok)
}

/// Prunes run after run; returns how many, and what was deleted of all of them.
async fn prune_all<D: Driver>(db: &D, found: &Prunable) -> Result<(u64, Pruned), Failure> {
    let by = person::name();
    let (mut runs, mut all) = (0_u64, Pruned::default());
    for (run, _records) in &found.runs {
        let now = db.now().await.map_err(|e| Failure::store(&e))?;
        let pruned = db.prune_run(&found.one(run, &by), now).await.map_err(|e| {
            let mut failure = refused(&e, "prune");
            let before_it = counted(runs, "run was pruned", "runs were pruned");
            failure.text = format!("{}; {before_it} before it", failure.text);
            failure
        })?;
        let Some(pruned) = pruned else { continue };
        runs = runs.saturating_add(1);
        all.records = all.records.saturating_add(pruned.records);
        all.evidence = all.evidence.saturating_add(pruned.evidence);
        all.cases = all.cases.saturating_add(pruned.cases);
    }
    Ok((runs, all))
}

fn tell_planned(common: &Common, found: &Prunable, what: &str) {
    let kept = kept("would keep", found.cases, found.runs_kept);
    let body = json!({
        "runs": found.runs.len(),
        "records": found.records(),
        "cases": found.cases.gone,
        "runs_kept": found.runs_kept.all(),
        "cases_kept": found.cases.kept(),
        "before": to_text(found.before),
    });
    tell(common, &format!("would delete {what}{kept}. Nothing was deleted"), body);
}

/// Where such cases are found, to be decided.
const WAITING: &str = "to be approved or carried out (`tieout cases list --all --proposed open`, \
                       or `approved`)";

/// A run by what it tells of the row of a closed case, and several.
const OF_CASE: (&str, &str) = (
    "run by whose records such a decision is carried out",
    "runs by whose records such decisions are carried out",
);

/// A run by how it ended a row, and several.
const OF_WATCH: (&str, &str) = (
    "run that ended a row which is still watched (a later look needs its record)",
    "runs that ended rows which are still watched (later looks need their records)",
);

/// Says of runs and closed cases that are old enough, and stay, how many stay for what.
fn kept(verb: &str, cases: OldCases, runs: KeptRuns) -> String {
    let all = [
        (cases.kept(), "other closed case", "other closed cases"),
        (runs.all(), "other run", "other runs"),
    ];
    let all = all.into_iter().filter(|(count, ..)| *count > 0);
    let all: Vec<String> = all.map(|(count, one, many)| counted(count, one, many)).collect();
    if all.is_empty() {
        return String::new();
    }
    let one = format!("case of which a decision waits {WAITING}");
    let many = format!("cases of which decisions wait {WAITING}");
    let reasons = [
        (cases.waiting, one.as_str(), many.as_str()),
        (cases.with_part, "case of which a part stays", "cases of which parts stay"),
        (cases.with_run, "case whose run stays", "cases whose runs stay"),
        (cases.meanwhile, "case that somebody needs by now", "cases that somebody needs by now"),
        (runs.waited_for, OF_CASE.0, OF_CASE.1),
        (runs.watched, OF_WATCH.0, OF_WATCH.1),
    ];
    let reasons = reasons.into_iter().filter(|(count, ..)| *count > 0);
    let reasons: Vec<String> =
        reasons.map(|(count, one, many)| counted(count, one, many)).collect();
    format!("; {verb} {}: {}", all.join(" and "), reasons.join(", "))
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
        page::warn(&format!("Delete {what}, for good? [y/N]"));
        let mut answer = String::new();
        let read = std::io::stdin().read_line(&mut answer);
        if read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes") {
            return Ok(());
        }
    }
    Err(Failure::usage(format!("{what}: nothing was deleted; add --yes where that is meant")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_count() {
        let cases = OldCases { gone: 9, waiting: 1, with_run: 2, with_part: 1, meanwhile: 0 };
        let runs = KeptRuns { waited_for: 2, watched: 1 };
        assert_eq!(
            kept("would keep", cases, runs),
            "; would keep 4 other closed cases and 3 other runs: 1 case of which a decision waits \
             to be approved or carried out (`tieout cases list --all --proposed open`, or \
             `approved`), 1 case of which a part stays, 2 cases whose runs stay, 2 runs by whose \
             records such decisions are carried out, 1 run that ended a row which is still \
             watched (a later look needs its record)"
        );
        let runs = KeptRuns { waited_for: 0, watched: 2 };
        assert_eq!(
            kept("kept", OldCases::default(), runs),
            "; kept 2 other runs: 2 runs that ended rows which are still watched (later looks \
             need their records)"
        );
        let (cases, runs) = (OldCases { gone: 3, ..OldCases::default() }, KeptRuns::default());
        assert_eq!(kept("kept", cases, runs), "", "what goes is told already");
    }
}
