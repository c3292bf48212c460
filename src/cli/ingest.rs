//! `tieout ingest`: brings settlement files in, from the sources or by a path that a person has,
//! without deciding anything.

use std::path::PathBuf;

use serde_json::json;

use crate::cli::args::{Common, path};
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::files::release::{released_body, released_words};
use crate::cli::files::{currency, encoding, named};
use crate::cli::meter::Meter;
use crate::cli::page::{self, broken};
use crate::cli::watched::around;
use crate::cli::{database, out, runtime, sources};
use crate::config::{self, Config, names};
use crate::exit::Exit;
use crate::model::count::counted;
use crate::model::near::nearest;
use crate::monitor::watch::Watch;
use crate::run::bring::{BroughtIn, What};
use crate::run::events::Event;
use crate::run::fetch::{SourceNote, Told, reading_of};
use crate::run::ingest::{Delivery, Goods, LOCAL, ingest};
use crate::run::parts::{By, Reading};
use crate::run::release::{ReleasedNote, tags_of};
use crate::run::setup::Setup;
use crate::run::shutdown::Stop;
use crate::settlement::sources::settings::Source;
use crate::settlement::tags::TagRules;

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout ingest                         what is new at every source
  tieout ingest --source bank-a         what is new at this one
  tieout ingest statement.xml --account bank
  tieout ingest inbox/*.csv --account adyen --source adyen_sftp
  tieout ingest bank.txt --account bank --format bai2

A file whose own sums do not tie is kept and quarantined: none of its lines
counts, and the command ends with 3. The same bytes again change nothing.";

/// Options of `ingest`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The files; .gz and .zip are opened; none: what is new at the sources
    #[arg(value_name = "FILE", value_parser = path())]
    files: Vec<PathBuf>,
    /// The account of the configuration that they belong to [default: that of --source, or the
    /// only one]; without files: only its sources
    #[arg(long, value_name = "ACCOUNT", env = names::INGEST_ACCOUNT)]
    account: Option<String>,
    /// Where they came from, for the records [default: local]; without files: only this source
    #[arg(long, value_name = "NAME", env = names::INGEST_SOURCE)]
    source: Option<String>,
    /// What they are, where the content does not tell; also a [[format]]
    #[arg(long, value_name = "NAME", env = names::FILES_FORMAT)]
    format: Option<String>,
    /// How they are encoded, where neither a mark nor the content tells
    #[arg(long, value_name = "NAME", env = names::FILES_ENCODING)]
    encoding: Option<String>,
    /// What amounts are in, where a bank's CSV names no currency; as GBP
    #[arg(long, value_name = "CODE", env = names::FILES_CURRENCY)]
    currency: Option<String>,
}

/// Runs the command.
pub fn run(args: &Args, common: &Common) -> Result<Exit, Failure> {
    let config = config::load(common.config(), &[])?;
    let goods = if args.files.is_empty() {
        fetched(args, &config)?
    } else {
        named_files(args, common, &config)?
    };
    let delivery = Delivery { goods, run_id: uuid::Uuid::now_v7().to_string() };
    let setup = config.setup();
    let is_watched = matches!(delivery.goods, Goods::Sources(_)) && config.monitoring.is_on();
    runtime::block_on(Box::pin(async {
        let stop = Stop::new();
        let db = database::open(&config).await?;
        let mut watch = is_watched.then(|| {
            let around = around(&config, &stop);
            Watch::of_files(&config.monitoring, around, &delivery.run_id)
        });
        let listening = runtime::listen(&stop, config.limits.grace);
        let ended = match listening {
            Err(failure) => Err(failure),
            Ok(_listening) => {
                let mut counts = Counts::default();
                let mut meter = Meter::new(common);
                let mut told = |told: Told| {
                    counts.add(&told);
                    if let (Some(watch), Told::Done(note)) = (&mut watch, &told) {
                        watch.note(&Event::Fetched(note.clone()));
                    }
                    tell(&told, &mut meter, common);
                };
                let ended = ingest(&setup, &delivery, &db, &stop, &mut told).await;
                let ended = ended.map_err(|error| Failure::run(&error));
                if let (Ok(exit), true) = (&ended, common.json) {
                    out::stdout(&line("ingest_end", counts.body(&delivery.run_id, *exit)));
                }
                if let Some(watch) = watch {
                    let exit = ended.as_ref().map_or_else(|failure| failure.exit, |exit| *exit);
                    let _noted = watch.end(exit, None, Some(&db)).await;
                }
                ended
            }
        };
        db.close().await;
        ended
    }))?
}

fn given(text: &Option<String>) -> Option<String> {
    text.clone().filter(|text| !text.is_empty())
}

/// The files that were named.
fn named_files(args: &Args, common: &Common, config: &Config) -> Result<Goods, Failure> {
    let source = given(&args.source);
    let own = source.as_deref().and_then(|name| config.sources.iter().find(|s| s.name == name));
    let of_source = || own.and_then(|source| source.account.clone());
    let account = account(given(&args.account).or_else(of_source), config)?;
    let setup = config.setup();
    let by = match (given(&args.format), own) {
        (Some(name), _) => named(&name, common)?,
        (None, Some(own)) => reading_of(own, &setup).by,
        (None, None) => By::Content,
    };
    let tags = tags(source.as_deref(), &account, &setup);
    let encoding = encoding(args.encoding.as_deref())?.map(str::to_owned);
    let currency = currency(args.currency.as_deref())?;
    let currency = currency.or_else(|| own.and_then(|source| source.currency));
    Ok(Goods::Paths {
        source: source.unwrap_or_else(|| LOCAL.to_owned()),
        paths: args.files.clone(),
        reading: Reading { account, by, encoding, currency, tags },
    })
}

/// As the files of that source are read; where none was named, as those of the account's only one.
fn tags(source: Option<&str>, account: &str, setup: &Setup) -> TagRules {
    let Some(name) = source else { return tags_of(setup, account) };
    let own = setup.sources.iter().find(|known| known.name == name);
    own.map(|source| source.tags.clone()).unwrap_or_default()
}

/// The sources that are fetched from where no file was named.
fn fetched(args: &Args, config: &Config) -> Result<Goods, Failure> {
    let refused = |text: &str| Failure::usage(format!("{text}; nothing was done"));
    let of_files = [
        ("--format", &args.format),
        ("--encoding", &args.encoding),
        ("--currency", &args.currency),
    ];
    for (flag, value) in of_files {
        if given(value).is_some() {
            let text = format!("{flag} is for files that are named; a [[source]] says its own");
            return Err(refused(&text));
        }
    }
    if config.sources.is_empty() {
        return Err(refused("no file was named, and no [[source]] is configured to fetch from"));
    }
    let only = given(&args.account).map(|name| account(Some(name), config)).transpose()?;
    let of_account = |source: &&Source| only.is_none() || source.account == only;
    let sources: Vec<Source> = match given(&args.source) {
        Some(name) => vec![sources::named("ingest --source", &name, config)?.clone()],
        None => config.sources.iter().filter(of_account).cloned().collect(),
    };
    match sources.is_empty() {
        false => Ok(Goods::Sources(sources)),
        true => Err(refused("no [[source]] is of this account")),
    }
}

fn account(given: Option<String>, config: &Config) -> Result<String, Failure> {
    let names: Vec<&str> = config.accounts.keys().map(String::as_str).collect();
    match (given, names.as_slice()) {
        (Some(name), _) if config.accounts.contains_key(&name) => Ok(name),
        (Some(name), _) => {
            let help = match nearest(&name, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("configured: {}.", names.join(", ")),
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
    fn add(&mut self, told: &Told) {
        let Told::BroughtIn(brought) = told else { return };
        let count = match brought.what {
            What::Loaded { held, .. } => {
                self.held = self.held.saturating_add(held);
                &mut self.loaded
            }
            What::Known { .. } => &mut self.known,
            What::Quarantined { .. } => &mut self.quarantined,
            What::Unreadable { .. } | What::Stopped => &mut self.unread,
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

fn tell(told: &Told, meter: &mut Meter, common: &Common) {
    match told {
        Told::Coming { source, name, bytes, size } => meter.show(source, name, *bytes, *size),
        Told::BroughtIn(brought) => meter.pause(|| tell_file(brought, common)),
        Told::Released(note) => meter.pause(|| tell_released(note, common)),
        Told::Missed(exit, text) => {
            meter.pause(|| page::warn(&format!("tieout: {}: {text}", exit.class())));
        }
        Told::Done(note) => meter.pause(|| {
            if common.json {
                out::stdout(&line("fetched", &**note));
            } else if !common.quiet {
                page::say(&fetched_words(note));
            }
        }),
    }
}

/// What became of a source, on one line.
pub fn fetched_words(note: &SourceNote) -> String {
    let counts = [
        (note.loaded, "loaded"),
        (note.known, "known"),
        (note.waiting, "not whole yet"),
        (note.quarantined, "quarantined"),
        (note.refused, "not read"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let mut words: Vec<String> = counts.map(|(count, word)| format!("{count} {word}")).collect();
    if words.is_empty() {
        words.push("no files".to_owned());
    }
    if note.lines > 0 {
        words.push(counted(note.lines, "line", "lines"));
    }
    if note.not_archived > 0 {
        words.push(format!("{} not put away", note.not_archived));
    }
    if note.failed.is_some() {
        words.push("not to the end".to_owned());
    }
    format!("{:<12} {}", note.source, words.join(", "))
}

/// What a person said of a file, carried out or refused.
fn tell_released(note: &ReleasedNote, common: &Common) {
    if common.json {
        out::stdout(&line("released", released_body(note)));
    } else if !common.quiet {
        broken(&released_words(note)).iter().for_each(|row| out::stdout(row));
    }
}

fn tell_file(brought: &BroughtIn, common: &Common) {
    if let Some((text, hint)) = brought.trouble() {
        page::warn(&format!("tieout: partial: {}: {text}", page::one_line(brought.shown())));
        page::warn(&format!("hint: {hint}"));
    }
    if common.json {
        out::stdout(&line("ingested", body(brought)));
    } else if !common.quiet
        && let Some(text) = words(brought)
    {
        out::stdout(&text);
    }
}

fn words(brought: &BroughtIn) -> Option<String> {
    let BroughtIn { format, version, what, sums, .. } = brought;
    let name = page::one_line(brought.shown());
    match what {
        What::Loaded { id, .. } => {
            let lines = sums.as_ref().map_or(0, |sums| sums.lines);
            let statements = sums.as_ref().map_or(0, |sums| sums.statements_total);
            let version = if version.is_empty() { String::new() } else { format!(" {version}") };
            // It counts, but proves no absence.
            let mut ended = sums.iter().flat_map(|sums| &sums.statements);
            let doubt = match ended.any(|sum| sum.ties == Some(false)) {
                true => format!("; it may have been cut: tieout files show {id}"),
                false => String::new(),
            };
            Some(format!(
                "{name}: file {id}, {format}{version}, {}, {}{doubt}",
                counted(statements, "statement", "statements"),
                counted(lines, "line", "lines"),
            ))
        }
        What::Known { id, account: None, corrected_by: None } => {
            Some(format!("{name}: known as file {id}; nothing was changed"))
        }
        What::Known { .. } | What::Quarantined { .. } | What::Unreadable { .. } | What::Stopped => {
            None
        }
    }
}

/// A file that was brought in, as an event.
pub fn body(brought: &BroughtIn) -> serde_json::Value {
    let sums = brought.sums.as_ref();
    let held = if let What::Loaded { held, .. } = brought.what { held } else { 0 };
    json!({
        "source": brought.source,
        "file": brought.name,
        "path": brought.path,
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
        "problem": brought.problem_text(),
    })
}
