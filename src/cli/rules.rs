//! `tieout rules`: what statuses and codes mean, as data: looked at, tried, counted, compared.
//!
//! Nothing here writes to any table, asks a PSP or moves a case: what other rules would do is
//! said, and a person puts them in force by naming their file in the configuration.

mod begin;
mod book;
mod diff;
pub mod means;
mod stats;

use std::path::PathBuf;

use clap::Subcommand;

use crate::cli::args::{Common, yes_or_no};
use crate::cli::database;
use crate::cli::failure::Failure;
use crate::config::names;
use crate::exit::Exit;

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout rules check                    those in force: yours, then the shipped
  tieout rules check rules.toml         a file that is not in force yet
  tieout rules list --psp files         what banks' codes mean
  tieout rules show stripe.delayed
  tieout rules test rules.toml          every example, one line each
  tieout rules stats --since 90d        which rule decided how often
  tieout rules schema > rules.schema.json    for editors
  tieout rules new --from-case C-1043 >> rules.toml
  tieout rules diff rules.toml          what it would change; moves nothing";

/// What to do with rules.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Read rule files and try their examples
    Check(Files),
    /// List the rules in the order in which they are tried
    List(List),
    /// Show one rule as it is written, and where
    Show(Show),
    /// Try every example, and say which rule decides it
    Test(Files),
    /// Count what each rule decided
    Stats(Stats),
    /// Replay what was decided, and the open cases, by other rules; move nothing
    Diff(Diff),
    /// Begin a rule and its example from a case, for you to finish
    New(New),
    /// Print the JSON schema of a rule file, for editors
    Schema,
}

/// Which rule files.
#[derive(Debug, clap::Args)]
pub struct Files {
    /// Files in place of those that the configuration names; the shipped rules come after them
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Options of `rules list`.
#[derive(Debug, clap::Args)]
pub struct List {
    /// Only rules of this PSP: stripe, files
    #[arg(long, value_name = "PSP", env = names::RULES_PSP)]
    psp: Option<String>,
    /// Only your own
    #[arg(long, env = names::RULES_OWN, value_parser = yes_or_no)]
    own: bool,
}

/// Options of `rules show`.
#[derive(Debug, clap::Args)]
pub struct Show {
    /// The rule's id
    id: String,
}

/// Options of `rules stats`.
#[derive(Debug, clap::Args)]
pub struct Stats {
    /// Decisions of this span of time
    #[arg(long, value_name = "SPAN", env = names::RULES_SINCE, default_value = "30d")]
    since: String,
}

/// Options of `rules diff`.
#[derive(Debug, clap::Args)]
pub struct Diff {
    /// Files in place of those that the configuration names; the shipped rules come after them
    #[arg(value_name = "NEW", required = true)]
    files: Vec<PathBuf>,
    /// Decisions of this span of time; open cases always, however old
    #[arg(long, value_name = "SPAN", env = names::RULES_SINCE, default_value = "30d")]
    since: String,
    /// Show at most so many; all are counted
    #[arg(long, value_name = "ROWS", env = names::RULES_LIMIT, default_value_t = 200)]
    limit: u64,
}

/// Options of `rules new`.
#[derive(Debug, clap::Args)]
pub struct New {
    /// The case: C-1043 or 1043
    #[arg(long, value_name = "CASE", env = names::RULES_FROM_CASE)]
    from_case: String,
}

/// Runs the command. Only what reads decisions needs a database.
pub fn run(command: &Command, common: &Common) -> Result<Exit, Failure> {
    match command {
        Command::Check(options) => book::check(&book::of(&options.files, common)?, common),
        Command::List(options) => book::list(options, &book::of(&[], common)?, common),
        Command::Show(options) => book::show(&options.id, &book::of(&[], common)?, common),
        Command::Test(options) => book::test(&book::to_try(&options.files, common)?, common),
        Command::Stats(options) => {
            let config = crate::config::load(common.config(), &[])?;
            database::to_read(&config, async |db| stats::run(options, common, &config, db).await)
        }
        Command::Diff(options) => {
            let config = crate::config::load(common.config(), &[])?;
            let files = book::named(&options.files)?;
            database::to_read(&config, async |db| {
                diff::run(options, &files, common, &config, db).await
            })
        }
        Command::New(options) => {
            let config = crate::config::load(common.config(), &[])?;
            database::to_read(&config, async |db| begin::run(options, common, &config, db).await)
        }
        Command::Schema => {
            let text = serde_json::to_string_pretty(&crate::psp::rules::schema());
            crate::cli::out::stdout(&text.unwrap_or_default());
            Ok(Exit::Ok)
        }
    }
}
