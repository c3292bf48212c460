//! `tieout config`: check the file, show what is in force and where it comes from.

use clap::Subcommand;
use serde_json::json;

use crate::cli::args::{Common, yes_or_no};
use crate::cli::failure::{Failure, SCHEMA};
use crate::cli::run::set_by_variables;
use crate::cli::{doctor, init, out, page, runtime};
use crate::config::document::Document;
use crate::config::problem::ConfigError;
use crate::config::{self, Config, names};
use crate::exit::Exit;
use crate::run::doctor::{
    Finding, Level, only_looks, out_of_sight, passed_over, refused_values, tags_like_cards,
    unread_values, unseen_retries, written,
};
use crate::run::fitting::map_tables;
use crate::store::database::Database;
use crate::store::error::StoreError;

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout config init --url postgres://localhost/shop
  tieout config default > tieout.toml     a commented file with every setting
  tieout config check                     every mistake, with its line
  tieout config check --connect           does each mapping fit the database?
  tieout config schema > tieout.schema.json    for editors
  tieout config reference                 every setting, in Markdown
  tieout config show --origin             what is in force, and why";

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Read and check the file; connects to nothing unless told to
    Check(Check),
    /// Propose a mapping from a real database, and write tieout.toml
    #[command(after_help = init::EXAMPLES)]
    Init(Box<init::Args>),
    /// Print every setting in force; secrets are left out
    Show(Show),
    /// Print a commented file with every setting and its default
    Default,
    /// Print the JSON schema of the file, for editors
    Schema,
    /// Print the reference of every setting, in Markdown
    Reference,
}

/// Options of `config check`.
#[derive(Debug, clap::Args)]
pub struct Check {
    /// Hold each mapping against the database too, as a run does at its start, and some stuck
    /// rows of `read` against `write`
    #[arg(long, env = names::CONNECT, value_parser = yes_or_no)]
    connect: bool,
}

/// Options of `config show`.
#[derive(Debug, clap::Args)]
pub struct Show {
    /// Say of each setting whether flag, environment, file or default gave it
    #[arg(long, env = names::ORIGIN, value_parser = yes_or_no)]
    origin: bool,
}

/// Runs the command.
pub fn run(command: &Command, common: &Common) -> Result<Exit, Failure> {
    match command {
        Command::Init(args) => return init::run(args, common),
        Command::Default => out::stdout(config::DEFAULT.trim_end()),
        Command::Schema => {
            let text = serde_json::to_string_pretty(&config::schema::schema());
            out::stdout(&text.unwrap_or_default());
        }
        Command::Reference => out::stdout(config::reference::reference().trim_end()),
        Command::Check(options) => {
            let config = load(common)?;
            readable(&config)?;
            let findings = if options.connect { connect(&config)? } else { Vec::new() };
            check(&config, options, common);
            findings.iter().for_each(|finding| tell(finding, common));
        }
        Command::Show(options) => {
            let config = load(common)?;
            show(&config, options, common);
        }
    }
    Ok(Exit::Ok)
}

/// The configuration as a run of this environment would go by it.
fn load(common: &Common) -> Result<Config, Failure> {
    Ok(config::load(common.config(), &set_by_variables())?)
}

/// Refuses a search path that no server reads, at its place in the file.
fn readable(config: &Config) -> Result<(), Failure> {
    let Err(error) = config.database.check_search_path() else { return Ok(()) };
    let text = std::fs::read_to_string(&config.path).unwrap_or_default();
    let mut document = Document::parse(&config.path, &text);
    // Of a file in another encoding no line is shown.
    if text.is_empty() || !document.is_sound() {
        return Err(Failure::store(&error));
    }
    document.complain("database.search_path", error.to_string());
    Err(ConfigError::Invalid { problems: document.into_problems() }.into())
}

/// Holds the mappings against the catalogue, and some rows of each against those that would be
/// written; nothing is written. What a run works with all the same comes back.
fn connect(config: &Config) -> Result<Vec<Finding>, Failure> {
    let found: Result<Vec<Finding>, StoreError> = runtime::block_on(Box::pin(async {
        let (db, looks) = open(config).await?;
        let mapped = map_tables(&db, &config.tables, &config.accounts).await;
        let found = match &mapped {
            Ok(tables) => {
                let mut found: Vec<Finding> = looks.into_iter().collect();
                found.extend(out_of_sight(&db).await);
                found.extend(refused_values(&db, tables).await);
                found.extend(unread_values(&db, tables).await);
                found.extend(written(&db, tables).await);
                found.extend(unseen_retries(tables));
                found.extend(passed_over(&db, tables).await);
                found.extend(tags_like_cards(&db, tables, &config.accounts).await);
                found
            }
            Err(_unfit) => Vec::new(),
        };
        db.close().await;
        mapped.map(|_fits| found)
    }))?;
    let found = found.map_err(|error| Failure::store(&error))?;
    for finding in &found {
        if let Level::Fail(exit) = finding.level {
            let text = format!("{}: {}; nothing was done", finding.what, finding.text);
            return Err(Failure::new(exit, text, finding.next.clone().unwrap_or_default()));
        }
    }
    Ok(found)
}

/// The database as the doctor looks at it: by a login that only looks as in a dry run, and then
/// with what is to be said of it.
async fn open(config: &Config) -> Result<(Database, Option<Finding>), StoreError> {
    let db = Database::look(&config.database).await?;
    let Some(looks) = only_looks(&db).await else { return Ok((db, None)) };
    db.close().await;
    Ok((Database::rehearse(&config.database).await?, Some(looks)))
}

fn tell(finding: &Finding, common: &Common) {
    let next = finding.next.as_deref().map(|next| common.copyable(next).into_owned());
    if common.json {
        return out::stdout(&doctor::event(&Finding { next, ..finding.clone() }));
    }
    let text = finding.text.replace('\n', " ");
    page::say(&format!("{}: {}: {text}", finding.what, finding.level.as_str()));
    if let Some(next) = &next {
        doctor::tell_next(next, 2, page::width());
    }
}

fn check(config: &Config, options: &Check, common: &Common) {
    let path = config.path.display().to_string();
    if common.json {
        let event = json!({
            "schema": SCHEMA,
            "type": "config",
            "file": path,
            "accounts": config.accounts.len(),
            "tables": config.tables.len(),
            "connected": options.connect,
            "config_sha256": config.config_sha256,
            "policy_version": config.policy_version,
        });
        out::stdout(&event.to_string());
    } else if !common.quiet {
        let fits = if options.connect { ", every mapping fits the database" } else { "" };
        page::say(&format!(
            "{path}: ok (accounts {}, tables {}, policy {}){fits}",
            config.accounts.len(),
            config.tables.len(),
            config.policy_version
        ));
    }
}

fn show(config: &Config, options: &Show, common: &Common) {
    let settings = config.in_force();
    let width = settings.iter().map(|s| s.path.len() + s.value.chars().count()).max();
    let width = width.unwrap_or(0).min(56);
    for setting in &settings {
        if common.json {
            let event = json!({
                "schema": SCHEMA,
                "type": "setting",
                "path": setting.path,
                "value": setting.value,
                "origin": setting.origin.text(),
            });
            out::stdout(&event.to_string());
            continue;
        }
        let line = format!("{} = {}", setting.path, setting.value);
        if options.origin {
            out::stdout(&format!("{line:<width$}  # {}", setting.origin.text(), width = width + 3));
        } else {
            out::stdout(&line);
        }
    }
}
