//! `tieout demo`: the main job on a table and a PSP of its own, in seconds, with no service.
//!
//! The PSP is the sandbox, in this process; everything else is the real thing: the HTTP adapter,
//! the database, the journal, the reports. The past that proven absence needs is made by real
//! runs too, with the clocks of both sides set back.

pub mod accounts;
pub mod cast;
pub mod files;
pub mod show;

use std::path::PathBuf;

use chrono::TimeDelta;
use serde_json::json;

use crate::cli::args::Common;
use crate::cli::demo::show::{Shown, show};
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::files::{folded, payouts};
use crate::cli::{out, page, runtime, screen};
use crate::config::names;
use crate::exit::Exit;
use crate::model::count::counted;
use crate::run::events::Event;
use crate::run::shutdown::Stop;
use crate::store::files::FileState;

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout demo                       makes ./tieout-demo/, runs, shows the summary
  tieout demo                       again: nothing is decided twice
  cd tieout-demo && tieout cases list

It exits 0 and says how `tieout run` would have exited.";

/// From a signal to the end.
const GRACE: TimeDelta = TimeDelta::seconds(8);

/// Options of `demo`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the demo's files go
    #[arg(long, value_name = "DIR", env = names::DEMO_DIR, default_value = "tieout-demo")]
    dir: PathBuf,
}

/// Runs the command.
pub fn run(args: &Args, common: &Common) -> Result<Exit, Failure> {
    let shown = runtime::block_on(async {
        let stop = Stop::new();
        let _listening = runtime::listen(&stop, GRACE)?;
        let mut tell = |event: Event| {
            if let Event::NotExamined { exit, text } = event {
                page::warn(&format!("tieout: {}: {text}", exit.class()));
            }
        };
        let shown = Box::pin(show(&args.dir, &stop, &mut tell)).await;
        shown.map_err(|error| Failure::of(&error, error.exit(), error.hint()))
    })??;
    if common.json {
        let summary = &shown.summary;
        out::stdout(&line(
            "demo",
            json!({ "dir": args.dir, "again": shown.again, "run_id": summary.run_id,
                "exit": summary.exit.code(), "decided": summary.decided }),
        ));
    } else if !common.quiet {
        for text in words(args, &shown) {
            out::stdout(&text);
        }
    }
    Ok(Exit::Ok)
}

fn words(args: &Args, shown: &Shown) -> Vec<String> {
    let summary = &shown.summary;
    let dir = args.dir.display();
    let count = |rows: &[(String, i64)], status: &str| {
        rows.iter().find(|(known, _)| known == status).map_or(0, |(_, count)| *count)
    };
    let stuck = count(&shown.before, "processing");
    let mut lines = if shown.again {
        vec![
            format!("The demo in {dir}/ was there: its decided rows are not decided twice."),
            format!(
                "{}, those with a case among them; {} due by now.",
                counted(stuck, "row is still processing", "rows are still processing"),
                counted(summary.decided, "was", "were")
            ),
        ]
    } else {
        let rows = counted(stuck, "row is stuck", "rows are stuck");
        vec![format!("Made {dir}/: {rows}; asking the demo's PSP about them.")]
    };
    lines.push(String::new());
    lines.extend(screen::head(&summary.run_id, None, shown.zone, false));
    lines.extend(screen::summary(summary));
    lines.push(String::new());
    lines.push(format!(
        "`tieout run` would have exited {} ({}).",
        summary.exit.code(),
        summary.exit.class()
    ));
    if let Some(report) = &summary.report {
        lines.push(format!("The reports are in {}/", report.display()));
    }
    lines.extend(of_files(shown));
    lines.extend(next(args, shown));
    lines
}

/// The bank's and the PSP's files: what settled rows, what does not tie, what explains a payout.
fn of_files(shown: &Shown) -> Vec<String> {
    let mut lines = vec![String::new(), "Files came from the bank and the PSP, too:".to_owned()];
    for file in &shown.files {
        let path = format!("  {}/{}", file.source, file.name);
        if file.state != FileState::Quarantined {
            lines.push(format!("{path}: loaded, {}", counted(file.lines, "line", "lines")));
            continue;
        }
        lines.push(format!("{path}: quarantined, none of its lines counts:"));
        let problems = file.problems.iter();
        lines.extend(problems.flat_map(|problem| folded("    ", &problem.to_string())));
    }
    let paid = counted(shown.by_bank, "stuck row is paid", "stuck rows are paid");
    lines.push(format!("{paid} by what the bank's statement says."));
    lines.extend(shown.payouts.iter().flat_map(payouts::rows));
    lines
}

fn next(args: &Args, shown: &Shown) -> Vec<String> {
    let of = |state| shown.files.iter().find(|file| file.state == state);
    let mut lines = vec![String::new(), "Try next:".to_owned()];
    let mut add = |command: &str, what: &str| {
        lines.push(format!("  {command:<41}  {what}").trim_end().to_owned());
    };
    add(&format!("cd {}", args.dir.display()), "");
    add("tieout cases list", "what needs a person");
    add("tieout cases show C-1", "with the evidence");
    add("tieout explain ID", "why is this row where it is?");
    add("tieout files list", "what came");
    if let Some(file) = of(FileState::Loaded) {
        add(&format!("tieout files show {} --lines", file.id), "each line with its row");
    }
    if let Some(file) = of(FileState::Quarantined) {
        let path = format!("{}/{}", file.source, file.name);
        add(&format!("tieout files inspect {path}"), "where it does not tie");
    }
    add("tieout audit verify", "the journal's chain");
    add("less tieout.toml", "a beginning for your own");
    // A later run's report tells of what that run found out alone.
    if let Some(report) = shown.summary.report.as_ref().filter(|_| !shown.again) {
        let within = report.strip_prefix(&args.dir).unwrap_or(report);
        add(&format!("less {}/payouts.csv", within.display()), "");
    }
    let again = "Call `tieout demo` again in a few minutes: what waits is looked at again.";
    lines.push(again.to_owned());
    let ended = "The demo's PSP ended with it: `tieout doctor` finds none to connect to.";
    lines.push(ended.to_owned());
    lines
}
