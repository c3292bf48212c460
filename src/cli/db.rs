//! `tieout db`: tieout's own tables.

use clap::Subcommand;
use serde_json::json;

use crate::cli::args::{Common, yes_or_no};
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::out;
use crate::config::names;
use crate::exit::Exit;
use crate::store::driver::Driver;
use crate::store::error::StoreError;

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout db migrate             make or bring up tieout's tables (tieout_*)
  tieout db status --check      exit 15 where they are not this version's

A run never migrates. Your own tables are never altered.";

/// What to do with the tables.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Apply the migrations that are missing; a second call does nothing
    Migrate,
    /// Say at which version tieout's tables are
    Status(Status),
}

/// Options of `db status`.
#[derive(Debug, clap::Args)]
pub struct Status {
    /// Exit 15 where they are missing, older or newer
    #[arg(long, env = names::DB_CHECK, value_parser = yes_or_no)]
    check: bool,
}

/// Runs the command.
pub async fn run<D: Driver>(command: &Command, common: &Common, db: &D) -> Result<Exit, Failure> {
    let before = db.schema_state().await.map_err(|e| Failure::store(&e))?;
    match command {
        Command::Migrate => {
            db.migrate().await.map_err(|e| Failure::store(&e))?;
            let after = db.schema_state().await.map_err(|e| Failure::store(&e))?;
            let applied = after.0.saturating_sub(before.0);
            tell(common, after, &format!("{applied} migrations applied"));
            Ok(Exit::Ok)
        }
        Command::Status(options) => {
            let (found, wanted) = before;
            let word = match found.cmp(&wanted) {
                std::cmp::Ordering::Equal => "as this version needs them",
                std::cmp::Ordering::Less => "older than this version: run `tieout db migrate`",
                std::cmp::Ordering::Greater => "newer than this version: install the newer tieout",
            };
            tell(common, before, word);
            match (options.check, found.cmp(&wanted)) {
                (false, _) | (true, std::cmp::Ordering::Equal) => Ok(Exit::Ok),
                (true, std::cmp::Ordering::Less) => {
                    Err(Failure::store(&StoreError::SchemaBehind { found, wanted }))
                }
                (true, std::cmp::Ordering::Greater) => {
                    Err(Failure::store(&StoreError::SchemaAhead { found, wanted }))
                }
            }
        }
    }
}

fn tell(common: &Common, (found, wanted): (i64, i64), word: &str) {
    if common.json {
        let body = json!({ "found": found, "wanted": wanted, "text": word });
        out::stdout(&line("schema", body));
    } else if !common.quiet {
        out::stdout(&format!("schema {found}/{wanted}: {word}"));
    }
}
