//! `files list` and `files show`: settlement files that were brought in.

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::cli::args::{Common, yes_or_no};
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::files::{folded, payouts, release};
use crate::cli::page::{one_line, say};
use crate::cli::{database, out};
use crate::config::{self, Config, names};
use crate::exit::Exit;
use crate::model::money::{Currency, Money};
use crate::model::near::nearest;
use crate::model::time::{to_short_text, to_text};
use crate::run::ingest::LOCAL;
use crate::run::pages::lacking;
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::files::{
    FileDriver, FileFilter, FileRow, FileState, Held, LinePlace, LineState, StatementRow,
    StatementState, StoredLine,
};

/// How many statements or lines are read at once.
const PAGE: i64 = 1_000;

/// Options of `files list`.
#[derive(Debug, clap::Args)]
pub struct List {
    /// Only files of this account
    #[arg(long, value_name = "ACCOUNT", env = names::FILES_ACCOUNT)]
    account: Option<String>,
    /// Only files from this source
    #[arg(long, value_name = "NAME", env = names::FILES_SOURCE)]
    source: Option<String>,
    /// Only files in this state
    #[arg(long, value_enum, value_name = "STATE", env = names::FILES_STATE)]
    state: Option<StateWord>,
    /// At most so many
    #[arg(long, value_name = "FILES", env = names::FILES_LIMIT, default_value_t = 20)]
    limit: u32,
}

/// The words of `--state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StateWord {
    Loaded,
    Quarantined,
    Released,
    Held,
}

/// Options of `files show`.
#[derive(Debug, clap::Args)]
pub struct Show {
    /// The file's number, or the beginning of its SHA-256
    #[arg(value_name = "FILE")]
    file: String,
    /// Every line, too
    #[arg(long, env = names::FILES_LINES, value_parser = yes_or_no)]
    lines: bool,
}

/// Runs `files list`.
pub fn list(options: &List, common: &Common) -> Result<Exit, Failure> {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let filter = FileFilter {
        account: given(&options.account),
        source: given(&options.source),
        state: options.state.and_then(|word| match word {
            StateWord::Loaded => Some(FileState::Loaded),
            StateWord::Quarantined => Some(FileState::Quarantined),
            StateWord::Released => Some(FileState::Released),
            StateWord::Held => None,
        }),
        held: options.state == Some(StateWord::Held),
        limit: i64::from(options.limit),
        ..FileFilter::default()
    };
    let config = config::load(common.config(), &[])?;
    database::to_read(&config, async |db| {
        let files = db.files(&filter).await.map_err(|error| Failure::store(&error))?;
        if files.is_empty() {
            is_configured(&filter, &config)?;
        }
        if files.is_empty() && !common.json && !common.quiet {
            out::stdout("no files");
        }
        for file in &files {
            match common.json {
                true => out::stdout(&line("settlement_file", body(file))),
                false => say(&row(file)),
            }
        }
        Ok(Exit::Ok)
    })
}

/// Whether what a list without files was narrowed to is there at all; what was configured once may
/// still have files.
pub(super) fn is_configured(filter: &FileFilter, config: &Config) -> Result<(), Failure> {
    if let Some(name) = &filter.account {
        let names = config.accounts.keys().map(String::as_str);
        known("--account", name, "account", names)?;
    }
    if let Some(name) = filter.source.as_ref().filter(|name| *name != LOCAL) {
        let names = config.sources.iter().map(|source| source.name.as_str());
        known("--source", name, "source", names)?;
    }
    Ok(())
}

fn known<'a>(
    flag: &str,
    name: &str,
    what: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> Result<(), Failure> {
    if names.clone().any(|known| known == name) {
        return Ok(());
    }
    let help = match nearest(name, names.clone()) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => format!("; configured: {}", names.collect::<Vec<_>>().join(", ")),
    };
    Err(Failure::usage(format!("{flag} {name}: there is no such {what}, and no file of it{help}")))
}

/// Runs `files show`.
pub fn show(options: &Show, common: &Common) -> Result<Exit, Failure> {
    let config = config::load(common.config(), &[])?;
    database::to_read(&config, async |db| {
        let mut file = find(&options.file, db).await?;
        let now = db.now().await.map_err(|error| Failure::store(&error))?;
        let lacking = lacking(db, &file.account, now).await;
        let lacking = lacking.map_err(|error| Failure::run(&error))?;
        let id = file.id;
        for page in lacking.iter().filter(|page| page.file == id) {
            file.problems.push(page.problem());
            file.problems_total = file.problems_total.saturating_add(1);
        }
        if common.json {
            out::stdout(&line("settlement_file", body(&file)));
        } else {
            head(&file).iter().for_each(|text| say(text));
            release::waiting(&file, db).await?.iter().for_each(|text| say(text));
        }
        statements(&file, common, db).await?;
        payouts::print(&file, common.json, db).await?;
        if options.lines {
            lines(&file, common, db).await?;
        }
        Ok(Exit::Ok)
    })
}

/// A file by its number or the beginning of its hash.
pub(super) async fn find(named: &str, db: &Database) -> Result<FileRow, Failure> {
    let unknown = |text: String| {
        let text = format!("{text}; nothing was done");
        Failure::new(Exit::Usage, text, "`tieout files list` shows the files there are")
    };
    let limit = 2;
    let filter = match number_of(named) {
        Some(id) => FileFilter { id: Some(id), limit, ..FileFilter::default() },
        _other if named.len() >= 6 => {
            let sha256 = Some(named.to_ascii_lowercase());
            FileFilter { sha256, limit, ..FileFilter::default() }
        }
        _other => {
            let what = "the first digits of its SHA-256, six or more";
            return Err(unknown(format!("`{named}` is no number of a file, nor {what}")));
        }
    };
    let mut found = db.files(&filter).await.map_err(|error| Failure::store(&error))?;
    // No hash begins so: `F123456` is that number.
    if let Some(id) = number_of(&format!("{named}:0")).filter(|_| found.is_empty()) {
        let filter = FileFilter { id: Some(id), limit, ..FileFilter::default() };
        found = db.files(&filter).await.map_err(|error| Failure::store(&error))?;
    }
    match (found.pop(), found.is_empty()) {
        (Some(file), true) => Ok(file),
        (Some(_), false) => Err(unknown(format!("several files begin with {named}"))),
        (None, _) => Err(unknown(format!("there is no file {named}"))),
    }
}

/// A file's number, also as reports and records write it: `17`, `F17`, and with a line's place
/// `F17:42`. What may be the beginning of a hash is one.
fn number_of(named: &str) -> Option<i64> {
    let (file, place) = named.split_once(':').map_or((named, None), |(file, at)| (file, Some(at)));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if place.is_some_and(|place| !is_number(place)) {
        return None;
    }
    let short = file.strip_prefix(['F', 'f']).filter(|_| place.is_some() || file.len() < 6);
    let digits = short.unwrap_or(file);
    if !is_number(digits) || digits.len() >= 12 {
        return None;
    }
    digits.parse().ok()
}

/// One line of a list.
pub(super) fn row(file: &FileRow) -> String {
    let held = if file.held > 0 { format!(", {} held", file.held) } else { String::new() };
    format!(
        "{:>5}  {:<11} {}  {:<12} {:>8} lines  {}{held}",
        file.id,
        file.state.as_str(),
        to_short_text(file.received_at),
        file.format,
        file.lines,
        file.name,
    )
}

fn head(file: &FileRow) -> Vec<String> {
    let version = if file.version.is_empty() { "" } else { " " };
    let mut rows = vec![
        format!("file {}: {}", file.id, file.state.as_str()),
        format!("name        {}", file.name),
        format!("from        {} for {}", file.source, file.account),
        format!("came        {}", to_short_text(file.received_at)),
        format!("run         {}", file.run_id),
        format!("sha256      {}", file.sha256),
        format!("format      {}{version}{}", file.format, file.version),
        format!("entries     {}", file.entries),
        format!("lines       {}", file.lines),
    ];
    if let Some((at, by, why)) = &file.changed {
        // What a person said begins no line of its own.
        let said = one_line(&format!("by {by}: {why}"));
        rows.push(format!("changed     {} {said}", to_short_text(*at)));
    }
    for problem in &file.problems {
        let lead = format!("{:<12}", problem.severity.as_str());
        rows.extend(folded(&lead, &problem.to_string()));
    }
    let listed = i64::try_from(file.problems.len()).unwrap_or(i64::MAX);
    if file.problems_total > listed {
        rows.push(format!("{:<12}{listed} of {} are listed", "", file.problems_total));
    }
    rows
}

async fn statements(file: &FileRow, common: &Common, db: &Database) -> Result<(), Failure> {
    let mut after = 0;
    loop {
        let page = db.statements(file.id, after, PAGE).await;
        let page = page.map_err(|error| Failure::store(&error))?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.number;
        for statement in &page {
            match common.json {
                true => {
                    out::stdout(&line("settlement_statement", statement_body(file, statement)));
                }
                false => statement_rows(statement).iter().for_each(|text| say(text)),
            }
        }
    }
}

fn statement_rows(statement: &StatementRow) -> Vec<String> {
    let text = |name: &str, text: &str| match text.is_empty() {
        true => String::new(),
        false => format!(" {name} {text}"),
    };
    let period = match (statement.from, statement.to) {
        (Some(from), Some(to)) if from != to => format!(" {from} to {to}"),
        (Some(day), _) | (None, Some(day)) => format!(" {day}"),
        (None, None) => String::new(),
    };
    let mut rows = vec![format!(
        "statement {}: {} {}{}{}{}{period}, {} lines",
        statement.number,
        statement.state.as_str(),
        statement.finality.as_str(),
        text("of", &statement.bank_account),
        text("id", &statement.statement_id),
        text("sequence", &statement.sequence),
        statement.lines,
    )];
    let currency = Currency::parse_any(&statement.currency).ok();
    let balance = |minor: Option<i64>| {
        let (minor, currency) = (minor?, currency?);
        Some(format!("{} {currency}", Money::new(minor, currency).to_decimal()))
    };
    if let (Some(from), Some(to)) =
        (balance(statement.opening_minor), balance(statement.closing_minor))
    {
        let ties = if statement.ties == Some(true) { "ties" } else { "does not tie" };
        rows.push(format!("            {from} to {to}, {ties}"));
    }
    if let Some(held) = statement.held_for {
        rows.push(format!("            {}", held_text(statement, held)));
    }
    rows
}

/// Why a statement is held, or was, and what stands beside it or took its place.
fn held_text(statement: &StatementRow, held: Held) -> String {
    let other = statement.rival.map(|(file, number)| format!("statement {number} of file {file}"));
    let beside = other.as_ref().map(|other| format!(", beside {other}")).unwrap_or_default();
    let why = held.as_str();
    match (statement.state, other) {
        (StatementState::Held, _) => format!("held as {why}{beside}"),
        (StatementState::Superseded, Some(other)) if held != Held::Deletion => {
            format!("was held as {why}; {other} took its place")
        }
        (StatementState::Live | StatementState::Superseded, _) => {
            format!("was held as {why}{beside}, until it was released")
        }
    }
}

/// By whose word the lines of a file count that does not tie.
fn untied(file: &FileRow) -> Vec<String> {
    let Some((_, by, why)) = file.changed.as_ref().filter(|_| file.state == FileState::Released)
    else {
        return Vec::new();
    };
    let said = one_line(&format!("{by}: {why}"));
    let text = format!("released untied by {said}; the file itself does not prove these lines");
    folded("untied      ", &text)
}

async fn lines(file: &FileRow, common: &Common, db: &Database) -> Result<(), Failure> {
    let mut after = LinePlace { file: file.id, position: 0 };
    if !common.json {
        untied(file).iter().for_each(|text| say(text));
    }
    loop {
        let page = db.lines_of_file(after, PAGE).await;
        let page = page.map_err(|error| Failure::store(&error))?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.place;
        for stored in &page {
            match common.json {
                true => out::stdout(&line("settlement_line", line_body(stored))),
                false => say(&line_row(stored)),
            }
        }
    }
}

pub(super) fn line_row(stored: &StoredLine) -> String {
    let amount = stored.amount.map_or_else(|| "-".to_owned(), |amount| amount.to_decimal());
    let row = match (&stored.row, &stored.reason) {
        (Some((table, key)), _) if stored.state == LineState::Superseded => {
            format!("{table} {key} (superseded: counts no more)")
        }
        (Some((table, key)), _) => format!("{table} {key}"),
        (None, Some(reason)) => format!("{} ({reason})", stored.state.as_str()),
        (None, None) => stored.state.as_str().to_owned(),
    };
    let bank = stored.bank_reference.as_ref().map(|own| format!("  bank {own}"));
    format!(
        "{:>9}  {:<6} {amount:>14} {}  {}  {}{}",
        stored.place.to_string(),
        stored.booked_way().as_str(),
        stored.currency,
        stored.tag.as_deref().unwrap_or("-"),
        row,
        bank.unwrap_or_default(),
    )
}

pub(super) fn body(file: &FileRow) -> Value {
    let problems = file.problems.iter().map(|problem| {
        json!({
            "line": problem.line,
            "field": problem.field,
            "expected": problem.expected,
            "found": problem.found,
            "severity": problem.severity.as_str(),
        })
    });
    json!({
        "id": file.id,
        "sha256": file.sha256,
        "source": file.source,
        "name": file.name,
        "account": file.account,
        "format": file.format,
        "version": file.version,
        "state": file.state.as_str(),
        "received_at": to_text(file.received_at),
        "run_id": file.run_id,
        "statements": file.statements,
        "held_statements": file.held,
        "entries": file.entries,
        "lines": file.lines,
        "problems": problems.collect::<Vec<_>>(),
        "problems_total": file.problems_total,
        "changed_at": file.changed.as_ref().map(|(at, ..)| to_text(*at)),
        "changed_by": file.changed.as_ref().map(|(_, by, _)| by),
        "changed_why": file.changed.as_ref().map(|(.., why)| why),
    })
}

fn statement_body(file: &FileRow, statement: &StatementRow) -> Value {
    let day = |day: Option<chrono::NaiveDate>| day.map(|day| day.to_string());
    json!({
        "file": file.id,
        "number": statement.number,
        "account": statement.account,
        "bank_account": statement.bank_account,
        "currency": statement.currency,
        "id": statement.statement_id,
        "sequence": statement.sequence,
        "from": day(statement.from),
        "to": day(statement.to),
        "finality": statement.finality.as_str(),
        "covers_attempts": statement.covers_attempts,
        "opening_minor": statement.opening_minor,
        "closing_minor": statement.closing_minor,
        "entries": statement.entries,
        "lines": statement.lines,
        "ties": statement.ties,
        "state": statement.state.as_str(),
        "held_for": statement.held_for.map(crate::store::files::Held::as_str),
        "rival_file": statement.rival.map(|(file, _)| file),
        "rival_number": statement.rival.map(|(_, number)| number),
    })
}

pub(in crate::cli) fn line_body(stored: &StoredLine) -> Value {
    let references =
        stored.refs.iter().map(|tag| json!({ "kind": tag.kind.as_str(), "text": tag.text }));
    json!({
        "file": stored.place.file,
        "position": stored.place.position,
        "statement": stored.statement,
        "file_line": stored.file_line,
        "kind": stored.kind.as_str(),
        "direction": stored.booked_way().as_str(),
        "currency": stored.currency.code(),
        "amount_minor": stored.amount.map(|amount| amount.minor),
        "status": stored.status.as_str(),
        "decides": stored.decides,
        "tag": stored.tag,
        "psp_reference": stored.psp_reference,
        "bank_reference": stored.bank_reference,
        "references": references.collect::<Vec<_>>(),
        "return_reason": stored.return_reason,
        "booked_on": stored.booked_on.map(|day| day.to_string()),
        "value_on": stored.value_on.map(|day| day.to_string()),
        "state": stored.state.as_str(),
        "reason": stored.reason,
        "table": stored.row.as_ref().map(|(table, _)| table),
        "key": stored.row.as_ref().map(|(_, key)| key),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_goes_by_its_number_however_it_is_written() {
        for (named, number) in [
            ("17", Some(17)),
            ("F17", Some(17)),
            ("f17", Some(17)),
            ("17:42", Some(17)),
            ("F17:42", Some(17)),
            ("F123456:1", Some(123_456)),
            ("123456789012", None),
            ("F12345", None),
            ("F17:x", None),
            ("F", None),
            (":1", None),
            ("", None),
        ] {
            assert_eq!(number_of(named), number, "{named}");
        }
    }
}
