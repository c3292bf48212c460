//! `tieout audit`: does the journal say what it said when it was written?

use clap::Subcommand;

use serde_json::json;

use crate::cli::args::Common;
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::{out, page};
use crate::exit::Exit;
use crate::model::count::counted;
use crate::model::time::{to_short_text, to_text};
use crate::store::driver::Driver;
use crate::store::error::StoreError;

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout audit verify           recompute every hash; exit 16 where one differs
  tieout audit verify --json";

/// What to do where it says something else.
const NEXT: &str =
    "keep the database as it is, and compare it with a backup and the reports' audit heads";

/// Breaks listed; the rest is counted.
const LISTED: usize = 50;

/// What to do with the journal.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Recompute every hash of the journal, of its runs and of its evidence
    Verify,
}

/// Runs the command.
pub async fn run<D: Driver>(command: &Command, common: &Common, db: &D) -> Result<Exit, Failure> {
    let Command::Verify = command;
    let found = db.verify_audit().await.map_err(|error| match error {
        // Every column was written by tieout in a form that it reads.
        StoreError::Unexpected { .. } => {
            Failure::of(&error, Exit::Integrity, Some(NEXT.to_owned()))
        }
        other => Failure::store(&other),
    })?;
    let exit = if found.breaks.is_empty() { Exit::Ok } else { Exit::Integrity };
    if common.json {
        let body = json!({
            "records": found.records,
            "runs": found.runs,
            "head": found.head,
            "pruned_runs": found.pruned_runs,
            "goes_back_to": found.goes_back_to.map(to_text),
            "breaks": found.breaks,
            "sound": found.breaks.is_empty(),
        });
        out::stdout(&line("audit", body));
        return Ok(exit);
    }
    let head = found.head.as_deref().unwrap_or("none yet");
    if found.breaks.is_empty() {
        if !common.quiet {
            page::say(&format!(
                "audit ok: head {head} ({}, {})",
                counted(found.records, "record", "records"),
                counted(found.runs, "run", "runs")
            ));
            if found.pruned_runs > 0 {
                let back = found.goes_back_to.map_or("no run".to_owned(), to_short_text);
                page::say(&format!(
                    "records go back to {back}; {}",
                    match found.pruned_runs {
                        1 => "1 run was pruned, and its head holds".to_owned(),
                        many => format!("{many} runs were pruned, and their heads hold"),
                    }
                ));
            }
        }
        return Ok(exit);
    }
    for text in found.breaks.iter().take(LISTED) {
        page::warn(&format!("tieout: integrity: {text}"));
    }
    Err(Failure::new(
        exit,
        format!(
            "the journal does not verify: {} in {} of {}; nothing was changed",
            counted(found.breaks.len(), "break", "breaks"),
            counted(found.records, "record", "records"),
            counted(found.runs, "run", "runs")
        ),
        NEXT,
    ))
}
