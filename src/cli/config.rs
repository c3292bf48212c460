//! `tieout config`: check the file, show what is in force and where it comes from.

use clap::Subcommand;
use serde_json::json;

use crate::cli::args::{Common, yes_or_no};
use crate::cli::failure::{Failure, SCHEMA};
use crate::cli::out;
use crate::config::{self, Config, names};
use crate::exit::Exit;

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout config default > tieout.toml     a commented file with every setting
  tieout config check                     every mistake, with its line
  tieout config show --origin             what is in force, and why";

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Read and check the file; connects to nothing
    Check,
    /// Print every setting in force; secrets are left out
    Show(Show),
    /// Print a commented file with every setting and its default
    Default,
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
        Command::Default => out::stdout(config::DEFAULT.trim_end()),
        Command::Check => check(&load(common)?, common),
        Command::Show(options) => show(&load(common)?, options, common),
    }
    Ok(Exit::Ok)
}

fn load(common: &Common) -> Result<Config, Failure> {
    Ok(config::load(common.config(), &[])?)
}

fn check(config: &Config, common: &Common) {
    let path = config.path.display().to_string();
    if common.json {
        let event = json!({
            "schema": SCHEMA,
            "type": "config",
            "file": path,
            "accounts": config.accounts.len(),
            "tables": config.tables.len(),
            "config_sha256": config.config_sha256,
            "policy_version": config.policy_version,
        });
        out::stdout(&event.to_string());
    } else if !common.quiet {
        out::stdout(&format!(
            "{path}: ok (accounts {}, tables {}, policy {})",
            config.accounts.len(),
            config.tables.len(),
            config.policy_version
        ));
    }
}

fn show(config: &Config, options: &Show, common: &Common) {
    let width = config.shown.iter().map(|s| s.path.len() + s.value.chars().count()).max();
    let width = width.unwrap_or(0).min(56);
    for setting in &config.shown {
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
