//! `tieout ingest`: brings settlement files in that a person has, as a source would.

use std::path::PathBuf;

use serde_json::json;

use crate::cli::args::{Common, path};
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::files::named;
use crate::cli::{database, out, runtime};
use crate::config::problem::nearest;
use crate::config::{self, Config, names};
use crate::exit::Exit;
use crate::run::ingest::{BroughtIn, Delivery, What, ingest};
use crate::run::parts::{By, Reading};
use crate::run::shutdown::Stop;
use crate::settlement::tags::TagRules;

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout ingest statement.xml --account bank
  tieout ingest inbox/*.csv --account adyen --source adyen_sftp
  tieout ingest bank.txt --account bank --format bai2

A file whose own sums do not tie is kept and quarantined: none of its lines
counts, and the command ends with 3. The same bytes again change nothing.";

/// Where files come from that a person names.
const LOCAL: &str = "local";

/// Options of `ingest`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The files; .gz and .zip are opened
    #[arg(required = true, value_name = "FILE", value_parser = path())]
    files: Vec<PathBuf>,
    /// The account of the configuration that they belong to [default: the only one]
    #[arg(long, value_name = "ACCOUNT", env = names::INGEST_ACCOUNT)]
    account: Option<String>,
    /// Where they came from, for the records [default: local]
    #[arg(long, value_name = "NAME", env = names::INGEST_SOURCE)]
    source: Option<String>,
    /// What they are, where the content does not tell; also a [[format]]
    #[arg(long, value_name = "NAME", env = names::FILES_FORMAT)]
    format: Option<String>,
    /// How they are encoded, where neither a mark nor the content tells
    #[arg(long, value_name = "NAME", env = names::FILES_ENCODING)]
    encoding: Option<String>,
}

/// Runs the command.
pub fn run(args: &Args, common: &Common) -> Result<Exit, Failure> {
    let config = config::load(common.config(), &[])?;
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let account = account(given(&args.account), &config)?;
    let by = match given(&args.format) {
        Some(name) => named(&name, common)?,
        None => By::Content,
    };
    let reading =
        Reading { account, by, encoding: given(&args.encoding), tags: TagRules::default() };
    let delivery = Delivery {
        source: given(&args.source).unwrap_or_else(|| LOCAL.to_owned()),
        paths: args.files.clone(),
        reading,
        run_id: uuid::Uuid::now_v7().to_string(),
    };
    let setup = config.setup();
    runtime::block_on(Box::pin(async {
        let stop = Stop::new();
        let db = database::open(&config).await?;
        let listening = runtime::listen(&stop, config.limits.grace);
        let ended = match listening {
            Err(failure) => Err(failure),
            Ok(_listening) => {
                let mut counts = Counts::default();
                let mut told = |brought: &BroughtIn| {
                    counts.add(brought);
                    tell(brought, common);
                };
                let ended = ingest(&setup, &delivery, &db, &stop, &mut told).await;
                let ended = ended.map_err(|error| Failure::run(&error));
                if let (Ok(exit), true) = (&ended, common.json) {
                    out::stdout(&line("ingest_end", counts.body(&delivery.run_id, *exit)));
                }
                ended
            }
        };
        db.close().await;
        ended
    }))?
}

fn account(given: Option<String>, config: &Config) -> Result<String, Failure> {
    let names: Vec<&str> = config.accounts.keys().map(String::as_str).collect();
    match (given, names.as_slice()) {
        (Some(name), _) if config.accounts.contains_key(&name) => Ok(name),
        (Some(name), _) => {
            let help = match nearest(&name, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("configured: {}", names.join(", ")),
            };
            let text =
                format!("--account {name}: there is no such account; {help} Nothing was done");
            Err(Failure::usage(text))
        }
        (None, [only]) => Ok((*only).to_owned()),
        (None, _several) => {
            let text =
                format!("--account is needed, one of: {}; nothing was done", names.join(", "));
            Err(Failure::usage(text))
        }
    }
}

/// Files by what became of them.
#[derive(Default)]
struct Counts {
    loaded: u64,
    known: u64,
    quarantined: u64,
    held: u64,
    unread: u64,
}

impl Counts {
    fn add(&mut self, brought: &BroughtIn) {
        let count = match brought.what {
            What::Loaded { held, .. } => {
                self.held = self.held.saturating_add(held);
                &mut self.loaded
            }
            What::Known { .. } => &mut self.known,
            What::Quarantined { .. } => &mut self.quarantined,
            What::Unreadable(_) | What::Stopped => &mut self.unread,
        };
        *count = count.saturating_add(1);
    }

    fn body(&self, run_id: &str, exit: Exit) -> serde_json::Value {
        json!({
            "run_id": run_id,
            "exit": exit.code(),
            "class": exit.class(),
            "loaded": self.loaded,
            "known": self.known,
            "quarantined": self.quarantined,
            "held_statements": self.held,
            "unread": self.unread,
        })
    }
}

fn tell(brought: &BroughtIn, common: &Common) {
    if let Some((text, hint)) = trouble(brought) {
        out::stderr(&format!("tieout: partial: {}: {text}", brought.name));
        out::stderr(&format!("hint: {hint}"));
    }
    if common.json {
        out::stdout(&line("ingested", body(brought)));
    } else if !common.quiet
        && let Some(text) = words(brought)
    {
        out::stdout(&text);
    }
}

/// What a person has to do something about: what happened, and what to do next.
fn trouble(brought: &BroughtIn) -> Option<(String, String)> {
    match &brought.what {
        What::Loaded { held: 0, .. } | What::Known { .. } => None,
        What::Loaded { id, held } => Some((
            format!("{held} of its statements are held, and none of those lines counts"),
            format!("`tieout files show {id}` says which, and beside what"),
        )),
        What::Quarantined { id } => {
            let what = brought.problem().map(ToString::to_string).unwrap_or_default();
            let text = format!("quarantined as file {id}, none of its lines counts: {what}");
            Some((text, "ask for the file again; a right one is brought in beside it".to_owned()))
        }
        What::Unreadable(why) => Some((
            format!("it cannot be read: {why}; nothing of it was kept"),
            "check the path and the rights; then bring it in again".to_owned(),
        )),
        What::Stopped => Some((
            "it was not read to its end, or changed meanwhile; nothing of it was kept".to_owned(),
            "bring it in again".to_owned(),
        )),
    }
}

fn words(brought: &BroughtIn) -> Option<String> {
    let BroughtIn { name, format, version, what, sums, .. } = brought;
    match what {
        What::Loaded { id, .. } => {
            let lines = sums.as_ref().map_or(0, |sums| sums.lines);
            let statements = sums.as_ref().map_or(0, |sums| sums.statements_total);
            let version = if version.is_empty() { String::new() } else { format!(" {version}") };
            let plural = |n: u64| if n == 1 { "" } else { "s" };
            Some(format!(
                "{name}: file {id}, {format}{version}, {statements} statement{}, {lines} line{}",
                plural(statements),
                plural(lines),
            ))
        }
        What::Known { id } => Some(format!("{name}: known as file {id}; nothing was changed")),
        What::Quarantined { .. } | What::Unreadable(_) | What::Stopped => None,
    }
}

fn body(brought: &BroughtIn) -> serde_json::Value {
    let sums = brought.sums.as_ref();
    let held = if let What::Loaded { held, .. } = brought.what { held } else { 0 };
    let why = if let What::Unreadable(why) = &brought.what { Some(why) } else { None };
    json!({
        "file": brought.name,
        "id": brought.what.id(),
        "sha256": brought.sha256,
        "format": brought.format,
        "version": brought.version,
        "state": brought.what.as_str(),
        "statements": sums.map_or(0, |sums| sums.statements_total),
        "held_statements": held,
        "entries": sums.map_or(0, |sums| sums.entries),
        "lines": sums.map_or(0, |sums| sums.lines),
        "problems_total": sums.map_or(0, |sums| sums.problems_total),
        "problem": brought.problem().map(ToString::to_string).or_else(|| why.cloned()),
    })
}
