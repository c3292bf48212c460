//! `tieout db`: tieout's own tables.

use clap::Subcommand;
use serde_json::json;

use crate::cli::args::{Common, yes_or_no};
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::{out, page, prune};
use crate::config::{Config, names};
use crate::exit::Exit;
use crate::model::count::counted;
use crate::run::error::store_exit;
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::error::{StoreError, StoreErrorClass, off_path};

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout db migrate             make or bring up tieout's tables (tieout_*)
  tieout db status --check      exit 15 where they are not this version's
  tieout db prune --keep 400d --dry-run
  tieout db roles               print the SQL of roles of least privilege

A run never migrates. Your own tables are never altered.";

/// What to do with the tables.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Apply the migrations that are missing; a second call does nothing
    Migrate,
    /// Say at which version tieout's tables are
    Status(Status),
    /// Delete the records of old closed runs, with the closed cases that they opened
    Prune(prune::Args),
    /// Print SQL for three PostgreSQL roles of least privilege; changes nothing
    Roles(Roles),
}

/// Options of `db status`.
#[derive(Debug, clap::Args)]
pub struct Status {
    /// Exit 15 where they are missing, older or newer
    #[arg(long, env = names::DB_CHECK, value_parser = yes_or_no)]
    check: bool,
}

/// Options of `db roles`.
#[derive(Debug, clap::Args)]
pub struct Roles {
    /// What the roles' names begin with: PREFIX_run, PREFIX_read, PREFIX_people
    #[arg(long, value_name = "PREFIX", env = names::ROLE_PREFIX, default_value = "tieout")]
    prefix: String,
}

/// Runs the command.
pub async fn run(
    command: &Command,
    common: &Common,
    config: &Config,
    db: &Database,
) -> Result<Exit, Failure> {
    let before = db.schema_state().await.map_err(|e| Failure::store(&e))?;
    match command {
        Command::Prune(options) => {
            db.require_schema().await.map_err(|e| Failure::store(&e))?;
            prune::run(options, common, db).await
        }
        Command::Roles(options) => roles(options, common, config, db).await,
        Command::Migrate => {
            let (found, wanted) = before;
            if found > wanted {
                return Err(Failure::store(&StoreError::SchemaAhead { found, wanted }));
            }
            let elsewhere = db.elsewhere(found).await.map_err(|e| Failure::store(&e))?;
            db.migrate().await.map_err(|e| not_migrated(&e))?;
            if !elsewhere.is_empty() {
                page::warn(&format!(
                    "tieout: note: schema {} has tables of tieout's as well, which search_path \
                     does not lead to; where those are meant, correct it: two sets know nothing \
                     of each other",
                    elsewhere.join(", ")
                ));
            }
            let after = db.schema_state().await.map_err(|e| Failure::store(&e))?;
            let applied = after.0.saturating_sub(before.0);
            let applied = counted(applied, "migration", "migrations");
            tell(common, after, &format!("{applied} applied"));
            Ok(Exit::Ok)
        }
        Command::Status(options) => {
            let (found, wanted) = before;
            let elsewhere = db.elsewhere(found).await.map_err(|e| Failure::store(&e))?;
            let word = match found.cmp(&wanted) {
                std::cmp::Ordering::Equal => "as this version needs them".to_owned(),
                std::cmp::Ordering::Less if !elsewhere.is_empty() => off_path(&elsewhere),
                std::cmp::Ordering::Less => {
                    "older than this version: run `tieout db migrate`".to_owned()
                }
                std::cmp::Ordering::Greater => {
                    "newer than this version: install the newer tieout".to_owned()
                }
            };
            tell(common, before, &word);
            if options.check {
                db.require_schema().await.map_err(|e| Failure::store(&e))?;
            }
            Ok(Exit::Ok)
        }
    }
}

/// The rights of a run are not those that a migration needs.
fn not_migrated(error: &StoreError) -> Failure {
    let is_right = error.class() == StoreErrorClass::Auth;
    if !is_right || !matches!(error, StoreError::Query { .. }) {
        return Failure::store(error);
    }
    let hint = "migrating is for the owner of tieout's tables, or, the first time, for a role that \
                may create in that schema: run this with that login's address in [database]; runs \
                need no such right";
    Failure::of(error, store_exit(error), Some(hint.to_owned()))
}

/// The longest beginning of a role's name: PostgreSQL cuts names after 63 bytes.
const PREFIX_MAX: usize = 48;

async fn roles<D: Driver>(
    options: &Roles,
    common: &Common,
    config: &Config,
    db: &D,
) -> Result<Exit, Failure> {
    let prefix = &options.prefix;
    let is_fine = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    let begins = prefix.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
    if !begins || prefix.len() > PREFIX_MAX || !prefix.bytes().all(is_fine) {
        let text = format!(
            "--prefix {prefix}: expected 1 to {PREFIX_MAX} of a-z, 0-9 and _, a letter first"
        );
        return Err(Failure::usage(text));
    }
    let accounts: Vec<String> = config.accounts.keys().cloned().collect();
    let tables = db.map_tables(&config.tables, &accounts).await.map_err(|e| Failure::store(&e))?;
    let sql = db.role_statements(&tables, prefix).await.map_err(|e| Failure::store(&e))?;
    let Some(sql) = sql else {
        let text = "an SQLite file has no roles; nothing was printed";
        let hint = "who may write is who may write the file and its folder: chown, chmod";
        return Err(Failure::new(Exit::Usage, text, hint));
    };
    if common.json {
        out::stdout(&line("roles", json!({ "prefix": prefix, "sql": sql })));
    } else {
        out::stdout(sql.trim_end());
    }
    Ok(Exit::Ok)
}

fn tell(common: &Common, (found, wanted): (i64, i64), word: &str) {
    let word = &*common.copyable(word);
    if common.json {
        let body = json!({ "found": found, "wanted": wanted, "text": word });
        out::stdout(&line("schema", body));
    } else if !common.quiet {
        page::say(&format!("schema {found}/{wanted}: {word}"));
    }
}
