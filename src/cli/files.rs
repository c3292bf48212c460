//! `tieout files`: settlement files. `inspect` needs no database and no configuration: it is for
//! the person who was mailed one. The others tell of those that were brought in, or were to be.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Subcommand;

use crate::cli::args::Common;
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::out;
use crate::cli::page::{self, wrapped};
use crate::config::problem::ConfigError;
use crate::config::{self, names};
use crate::exit::Exit;
use crate::model::money::Currency;
use crate::run::parts::By;
use crate::settlement::ledger::{Inspection, Said, State, inspect, inspect_table};
use crate::settlement::text::is_encoding;
use crate::settlement::unwrap::{Member, members};
use crate::settlement::{FORMATS, Format};

mod awaited;
mod json;
pub(in crate::cli) mod kept;
pub(in crate::cli) mod payouts;
pub(in crate::cli) mod release;
mod text;

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout files inspect statement.xml       what it is, and whether it ties
  tieout files inspect inbox/*.sta --json  an object for each file
  tieout files inspect --format bai2 bank.txt
  tieout files inspect bank.csv --currency GBP
  tieout files list --state quarantined    those that came and do not count
  tieout files show 12                     one: its statements and problems
  tieout files show 12 --lines             and every line, with its row
  tieout files expected                    what is missing, and since when
  tieout files quarantine                  what is wrong with those that are";

/// What to do with files.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Read files and check their own arithmetic; needs no database, changes nothing
    #[command(after_help = EXAMPLES)]
    Inspect(Inspect),
    /// List the files that were brought in, the newest first
    List(kept::List),
    /// Show one of them: its statements, what is wrong with it, its lines
    Show(kept::Show),
    /// Show the quarantined ones: line, field, what was expected and what was found
    Quarantine(release::Quarantine),
    /// Let one count that does not: a quarantined file, or a held statement
    #[command(after_help = release::EXAMPLES)]
    Release(release::Release),
    /// Show which files are to come, which came and which are missing
    Expected(awaited::Expected),
}

/// Options of `files inspect`.
#[derive(Debug, clap::Args)]
pub struct Inspect {
    /// The files; .gz and .zip are opened
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// What they are, where the content does not tell; also a [[format]] of --config
    #[arg(long, value_name = "NAME", env = names::FILES_FORMAT)]
    format: Option<String>,
    /// How they are encoded, where neither a mark nor the content tells
    #[arg(long, value_name = "NAME", env = names::FILES_ENCODING)]
    encoding: Option<String>,
    /// What amounts are in, where a bank's CSV names no currency; as GBP
    #[arg(long, value_name = "CODE", env = names::FILES_CURRENCY)]
    currency: Option<String>,
}

/// One file, or one of an archive, looked at.
pub struct Seen<'a> {
    /// As it was named on the command line.
    pub file: &'a Path,
    /// Its name within the archive.
    pub member: Option<String>,
    /// What it is; or why it could not be read.
    pub what: Result<Inspection, Unread>,
}

/// Why a file could not be read.
pub struct Unread {
    /// In words.
    pub why: String,
    /// What to do next.
    next: &'static str,
}

impl From<std::io::Error> for Unread {
    fn from(error: std::io::Error) -> Self {
        use std::io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof, Unsupported};
        let next = match error.kind() {
            InvalidData | InvalidInput | Other | UnexpectedEof | Unsupported => {
                "ask for it again, or for another form of it"
            }
            _of_this_machine => "check the path and the rights; then inspect it again",
        };
        Self { why: error.to_string(), next }
    }
}

impl Seen<'_> {
    fn exit(&self) -> Exit {
        match &self.what {
            Ok(found) if found.state == State::Ok => Exit::Ok,
            _other => Exit::Partial,
        }
    }
}

/// Runs the command.
pub fn run(command: &Command, common: &Common) -> Result<Exit, Failure> {
    let options = match command {
        Command::Inspect(options) => options,
        Command::List(options) => return kept::list(options, common),
        Command::Show(options) => return kept::show(options, common),
        Command::Quarantine(options) => return release::quarantine(options, common),
        Command::Release(options) => return release::release(options, common),
        Command::Expected(options) => return awaited::expected(options, common),
    };
    let format = options.format.as_deref().filter(|name| !name.is_empty());
    let format = match format {
        Some(name) => named(name, common)?,
        None => By::Content,
    };
    let encoding = encoding(options.encoding.as_deref())?;
    let said = Said { encoding, currency: currency(options.currency.as_deref())? };
    let mut exit = Exit::Ok;
    for file in &options.files {
        for seen in look(file, &format, said) {
            tell(&seen, common);
            exit = exit.or_stronger(seen.exit());
        }
    }
    Ok(exit)
}

fn inspect_by(by: &By, input: Box<dyn Read + Send>, said: Said<'_>) -> std::io::Result<Inspection> {
    match by {
        By::Content => inspect(input, None, Some(said)),
        By::Format(format) => inspect(input, Some(*format), Some(said)),
        By::Table(table) => inspect_table(input, table, Some(said)),
    }
}

/// What `--encoding` says.
pub fn encoding(name: Option<&str>) -> Result<Option<&str>, Failure> {
    let name = name.filter(|name| !name.is_empty());
    if let Some(name) = name.filter(|name| !is_encoding(name)) {
        let text = format!("--encoding `{name}` is no encoding that is read; nothing was done");
        let hint = "one of: utf-8, utf-16le, windows-1252, iso-8859-15, …, or none";
        return Err(Failure::new(Exit::Usage, text, hint));
    }
    Ok(name)
}

/// What `--currency` says.
pub fn currency(code: Option<&str>) -> Result<Option<Currency>, Failure> {
    let known = code.filter(|code| !code.is_empty()).map(Currency::parse_any).transpose();
    known.map_err(|unknown| {
        let hint = "three letters by ISO 4217, as EUR";
        Failure::new(Exit::Usage, format!("--currency: {unknown}; nothing was done"), hint)
    })
}

/// A format by its name: one of tieout's, or one that the configuration describes.
pub fn named(name: &str, common: &Common) -> Result<By, Failure> {
    if let Some(format) = Format::parse(name) {
        return Ok(By::Format(format));
    }
    let described = match config::formats(common.config()) {
        Ok(described) => described,
        Err(ConfigError::NotFound { .. }) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let mut known: Vec<&str> = FORMATS.iter().map(|known| known.name).collect();
    known.extend(described.iter().map(|table| table.name.as_str()));
    let text = format!("`{name}` is no format that is read here; nothing was done");
    let hint = format!("one of: {}; or describe it as a [[format]]", known.join(", "));
    let found = described.iter().find(|table| table.name == name).cloned();
    let found = found.map(|table| By::Table(Box::new(table)));
    found.ok_or_else(|| Failure::new(Exit::Usage, text, hint))
}

/// Lazily, so that each file of an archive is told as soon as it is read.
fn look<'a>(
    file: &'a Path,
    format: &'a By,
    said: Said<'a>,
) -> Box<dyn Iterator<Item = Seen<'a>> + 'a> {
    let found: Vec<Member> = match members(file) {
        Ok(found) => found,
        Err(error) => {
            return Box::new(std::iter::once(Seen { file, member: None, what: Err(error.into()) }));
        }
    };
    Box::new(found.into_iter().map(move |member| {
        let input = member.open();
        let what = input.and_then(|input| inspect_by(format, input, said)).map_err(Unread::from);
        Seen { file, member: member.name, what }
    }))
}

fn tell(seen: &Seen, common: &Common) {
    if let Err(Unread { why, next }) = &seen.what {
        let name = page::one_line(&seen.file.display().to_string());
        let member = seen.member.as_ref().map(|member| format!(" ({member})")).unwrap_or_default();
        page::warn(&format!(
            "tieout: partial: {name}{member} cannot be read: {why}; it was not inspected"
        ));
        page::warn(&format!("hint: {next}"));
    }
    if common.json {
        out::stdout(&line("file", json::body(seen)));
        return;
    }
    let Ok(found) = &seen.what else { return };
    let rows = match (common.quiet, found.state) {
        (true, State::Ok) => return,
        (true, _wrong) => text::wrong(seen, found),
        (false, _any) => text::lines(seen, found),
    };
    rows.iter().for_each(|row| out::stdout(row));
}

/// Text in lines of at most 80 columns, the later ones indented.
pub(in crate::cli) fn folded(lead: &str, text: &str) -> Vec<String> {
    let indent = lead.chars().count();
    let rows = wrapped(text, 80_usize.saturating_sub(indent)).into_iter().enumerate();
    rows.map(
        |(at, row)| {
            if at == 0 { format!("{lead}{row}") } else { format!("{:indent$}{row}", "") }
        },
    )
    .collect()
}
