//! Adds up what a parser tells and holds it against what the file declares.
//!
//! Sums are i128 per currency, so that no file can overflow them. Memory is flat: counts, and
//! lists that are cut at a limit and say so.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Read};

use crate::model::money::Currency;
use crate::model::settlement::{
    Balance, Control, Direction, Entry, EntryStatus, Finality, Found, Line, Measure, Problem,
    Severity, Statement, StatementEnd, TagKind, Tie,
};
use crate::settlement::amount::shown;
use crate::settlement::table::Table;
use crate::settlement::text::{Notes, Source};
use crate::settlement::{Format, Item, Parse, bank_csv, open, recognise, table_rows};

/// So many problems are listed; all are counted.
pub const PROBLEMS_LISTED: usize = 200;

/// So many statements are listed; all are counted.
pub const STATEMENTS_LISTED: usize = 10_000;

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Read to its end, and everything that it declares is so.
    Ok,
    /// Something is wrong: no line of it may be used before a person has looked.
    Quarantined,
    /// No format was recognised; nothing was read.
    UnknownFormat,
}

impl State {
    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Quarantined => "quarantined",
            Self::UnknownFormat => "unknown_format",
        }
    }
}

/// Entries of one currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// How many credits.
    pub credits: u64,
    /// How many debits.
    pub debits: u64,
    /// Their sum.
    pub credit_minor: i128,
    /// Their sum, positive.
    pub debit_minor: i128,
}

impl Totals {
    fn add(&mut self, direction: Direction, minor: i64) {
        let (count, sum) = match direction {
            Direction::Credit => (&mut self.credits, &mut self.credit_minor),
            Direction::Debit => (&mut self.debits, &mut self.debit_minor),
        };
        *count = count.saturating_add(1);
        *sum = sum.saturating_add(i128::from(minor));
    }

    /// Credits less debits.
    pub fn net_minor(&self) -> i128 {
        self.credit_minor.saturating_sub(self.debit_minor)
    }

    fn measure(&self, measure: Measure) -> i128 {
        let all = self.credits.saturating_add(self.debits);
        match measure {
            Measure::Entries => i128::from(all),
            Measure::Credits => i128::from(self.credits),
            Measure::Debits => i128::from(self.debits),
            Measure::CreditMinor => self.credit_minor,
            Measure::DebitMinor => self.debit_minor,
            Measure::NetMinor => self.net_minor(),
        }
    }
}

/// A statement, added up.
#[derive(Debug, Clone)]
pub struct StatementSum {
    /// As it began; the currency and period as they were known at its end.
    pub head: Statement,
    /// Its balance before.
    pub opening: Option<Balance>,
    /// Its balance after.
    pub closing: Option<Balance>,
    /// All its entries, whatever their status.
    pub entries: u64,
    /// Whether opening + booked entries = closing; none where a balance is missing.
    pub ties: Option<bool>,
}

/// Everything that was added up.
#[derive(Debug, Clone, Default)]
pub struct Sums {
    /// Booked entries, as the format counts them.
    pub entries: u64,
    /// Payments, after batches are expanded.
    pub lines: u64,
    /// Lines that stand for several payments.
    pub not_itemised: u64,
    /// Entries by currency, whatever their status.
    pub totals: BTreeMap<Currency, Totals>,
    /// Booked entries alone by currency.
    pub booked: BTreeMap<Currency, Totals>,
    /// Entries by status.
    pub statuses: BTreeMap<EntryStatus, u64>,
    /// The first [`STATEMENTS_LISTED`] statements.
    pub statements: Vec<StatementSum>,
    /// How many statements there are.
    pub statements_total: u64,
    /// How many sums and counts the file declared of itself, balances aside.
    pub controls: u64,
    /// How many lines carry which kind of reference.
    pub references: BTreeMap<TagKind, u64>,
    /// The first [`PROBLEMS_LISTED`] problems, errors before warnings where it comes to a choice.
    pub problems: Vec<Problem>,
    /// How many problems there are.
    pub problems_total: u64,
    /// The words by which the rows name the zone of their days, where they do.
    pub zones: BTreeSet<String>,
    /// Whether one of them quarantines the file.
    pub failed: bool,
}

/// The running sums of a file.
#[derive(Debug, Default)]
pub struct Ledger {
    sums: Sums,
    open: Option<StatementSum>,
    open_all: Totals,
    open_booked: Vec<(Currency, i128)>,
    /// Where the last statement of an account began, and where it ended.
    last_closing: HashMap<(String, Currency), (i64, i64)>,
    last: Option<StatementSum>,
}

impl Ledger {
    /// Takes in an item.
    pub fn absorb(&mut self, item: &Item) {
        match item {
            Item::Statement(statement) => self.begin(statement),
            Item::Entry(entry) => self.entry(entry),
            Item::Line(line) => self.line(line),
            Item::Control(control) => self.control(control),
            Item::Problem(problem) => self.problem(problem.as_ref().clone()),
            Item::StatementEnd(end) => self.end(end),
        }
    }

    /// The statement that ended last, added up.
    pub fn last_ended(&self) -> Option<&StatementSum> {
        self.last.as_ref()
    }

    /// What was added up. A statement that did not end is listed as it stands.
    pub fn close(mut self) -> Sums {
        self.list_open();
        self.sums
    }

    /// Notes how the bytes had to be read.
    pub fn encoding(&mut self, notes: &Notes) {
        if notes.replaced() > 0 {
            let found = format!("{} other bytes, read as cp1252", notes.replaced());
            self.problem(Problem::warning(0, "encoding", "UTF-8", found));
        }
    }

    /// Notes a problem.
    pub fn problem(&mut self, problem: Problem) {
        self.sums.problems_total = self.sums.problems_total.saturating_add(1);
        let is_error = problem.severity == Severity::Error;
        self.sums.failed |= is_error;
        if self.sums.problems.len() < PROBLEMS_LISTED {
            self.sums.problems.push(problem);
        } else if is_error {
            let warning = |p: &Problem| p.severity == Severity::Warning;
            if let Some(at) = self.sums.problems.iter().rposition(warning) {
                self.sums.problems.remove(at);
                self.sums.problems.push(problem);
            }
        }
    }

    fn list_open(&mut self) {
        if let Some(open) = self.open.take() {
            self.sums.statements_total = self.sums.statements_total.saturating_add(1);
            self.last = Some(open.clone());
            if self.sums.statements.len() < STATEMENTS_LISTED {
                self.sums.statements.push(open);
            }
        }
    }

    fn begin(&mut self, statement: &Statement) {
        self.list_open();
        self.open_all = Totals::default();
        self.open_booked.clear();
        self.open = Some(StatementSum {
            head: statement.clone(),
            opening: None,
            closing: None,
            entries: 0,
            ties: None,
        });
    }

    fn entry(&mut self, entry: &Entry) {
        let sums = &mut self.sums;
        sums.entries = sums.entries.saturating_add(1);
        // What moves no money (a status of an order, a message of BAI2) is in no sum.
        let is_message = entry.status == EntryStatus::Info && entry.minor == 0;
        if entry.currency != Currency::NONE && !is_message {
            let is_booked = entry.status == EntryStatus::Booked;
            let booked = is_booked.then(|| sums.booked.entry(entry.currency).or_default());
            let totals = sums.totals.entry(entry.currency).or_default();
            for own in booked.into_iter().chain([totals]) {
                own.add(entry.direction, entry.minor);
            }
        }
        let count = sums.statuses.entry(entry.status).or_default();
        *count = count.saturating_add(1);
        let Some(open) = &mut self.open else { return };
        open.entries = open.entries.saturating_add(1);
        self.open_all.add(entry.direction, entry.minor);
        if entry.status == EntryStatus::Booked {
            let signed = entry.direction.signed(entry.minor);
            match self.open_booked.iter_mut().find(|(currency, _)| *currency == entry.currency) {
                Some((_, net)) => *net = net.saturating_add(signed),
                None => self.open_booked.push((entry.currency, signed)),
            }
        }
    }

    fn line(&mut self, line: &Line) {
        let sums = &mut self.sums;
        sums.lines = sums.lines.saturating_add(1);
        if !line.itemised {
            sums.not_itemised = sums.not_itemised.saturating_add(1);
        }
        for (at, tag) in line.tags.iter().enumerate() {
            let before = line.tags.iter().take(at).any(|earlier| earlier.kind == tag.kind);
            if !before {
                let count = sums.references.entry(tag.kind).or_default();
                *count = count.saturating_add(1);
            }
        }
    }

    fn control(&mut self, control: &Control) {
        self.sums.controls = self.sums.controls.saturating_add(1);
        let found = match control.found {
            Found::Is(found) => found,
            Found::Statement(measure) => self.open_all.measure(measure),
            Found::File(measure) => self.of_file(measure, control.currency),
        };
        if found != control.expected {
            self.problem(Problem {
                line: control.line,
                field: control.field.clone(),
                expected: shown(control.expected, control.currency),
                found: shown(found, control.currency),
                severity: control.severity,
            });
        }
    }

    fn of_file(&self, measure: Measure, currency: Option<Currency>) -> i128 {
        let of = self.sums.totals.iter().filter(|(c, _)| currency.is_none_or(|want| want == **c));
        of.fold(0, |sum, (_, totals)| sum.saturating_add(totals.measure(measure)))
    }

    fn end(&mut self, end: &StatementEnd) {
        let Some(mut open) = self.open.take() else { return };
        open.opening = end.opening;
        open.closing = end.closing;
        open.head.currency = end.currency.or(open.head.currency);
        open.head.from = open.head.from.or(end.from);
        open.head.to = open.head.to.or(end.to);
        self.sums.zones.extend(end.zones.iter().cloned());
        if let Tie::Declared(holds) = end.tie {
            open.ties = Some(holds);
        } else if let (Some(opening), Some(closing)) = (end.opening, end.closing) {
            let ties = self.ties(&opening, &closing);
            let is_final = open.head.finality == Finality::Final;
            let follows = is_final && self.follows(&open, [&opening, &closing]);
            for problem in ties.iter().chain(follows.then(|| self.gap(&open, &opening)).iter()) {
                self.problem(problem.clone());
            }
            open.ties = Some(ties.is_empty());
            self.remember(&open, [&opening, &closing]);
        }
        self.open = Some(open);
        self.list_open();
    }

    /// What keeps opening + booked entries from being closing.
    fn ties(&self, opening: &Balance, closing: &Balance) -> Vec<Problem> {
        let mut problems = Vec::new();
        if opening.currency != closing.currency {
            problems.push(Problem::error(
                closing.line,
                "closing balance",
                format!("in {}, as the opening balance", opening.currency),
                closing.currency.code(),
            ));
            return problems;
        }
        for (currency, _) in self.open_booked.iter().filter(|(c, _)| *c != closing.currency) {
            problems.push(Problem::error(
                closing.line,
                "entries",
                format!("all in {}, as the balances", closing.currency),
                format!("entries in {currency}"),
            ));
        }
        let net = self.open_booked.iter().find(|(c, _)| *c == closing.currency);
        let after = i128::from(opening.minor).saturating_add(net.map_or(0, |(_, net)| *net));
        if after != i128::from(closing.minor) {
            let found = format!(
                "{} (opening {} and entries {})",
                shown(after, Some(closing.currency)),
                shown(opening.minor.into(), Some(closing.currency)),
                shown(net.map_or(0, |(_, net)| *net), Some(closing.currency)),
            );
            let expected = shown(closing.minor.into(), Some(closing.currency));
            problems.push(Problem::error(closing.line, "closing balance", expected, found));
        }
        problems
    }

    fn key(open: &StatementSum, currency: Currency) -> (String, Currency) {
        (open.head.account.clone().unwrap_or_default(), currency)
    }

    /// Whether an earlier statement of this account ended elsewhere than this one begins. Rows that
    /// no bank put into statements may come the newest first: then this one ends where that began.
    fn follows(&self, open: &StatementSum, [opening, closing]: [&Balance; 2]) -> bool {
        let is_named = open.head.id.is_some() || open.head.sequence.is_some();
        let last = self.last_closing.get(&Self::key(open, opening.currency));
        let goes_back = |began: i64| !is_named && began == closing.minor;
        last.is_some_and(|(began, ended)| *ended != opening.minor && !goes_back(*began))
    }

    fn gap(&self, open: &StatementSum, opening: &Balance) -> Problem {
        let last = self.last_closing.get(&Self::key(open, opening.currency));
        let expected = last.map_or(0, |(_, ended)| i128::from(*ended));
        Problem::warning(
            opening.line,
            "opening balance",
            format!("{}, where the account stood", shown(expected, Some(opening.currency))),
            shown(opening.minor.into(), Some(opening.currency)),
        )
    }

    fn remember(&mut self, open: &StatementSum, [opening, closing]: [&Balance; 2]) {
        let key = Self::key(open, closing.currency);
        if open.head.finality == Finality::Final
            && (self.last_closing.len() < STATEMENTS_LISTED || self.last_closing.contains_key(&key))
        {
            self.last_closing.insert(key, (opening.minor, closing.minor));
        }
    }
}

/// What a file is and whether it ties.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// The format; none where it was not recognised.
    pub format: Option<Format>,
    /// Its version, where it says one.
    pub version: String,
    /// The encoding it was read as.
    pub encoding: &'static str,
    /// What became of it.
    pub state: State,
    /// What it adds up to.
    pub sums: Sums,
}

/// What a person says of a file, where its content does not.
#[derive(Debug, Clone, Copy, Default)]
pub struct Said<'a> {
    /// How it is encoded.
    pub encoding: Option<&'a str>,
    /// What its amounts are in.
    pub currency: Option<Currency>,
}

/// Reads a whole file (unwrapped, see [`crate::settlement::unwrap`]) and checks it. Without
/// `format` the content tells which it is.
///
/// # Errors
/// Where the bytes cannot be read at all; what is wrong with the text is in the answer.
pub fn inspect(
    input: Box<dyn Read + Send>,
    format: Option<Format>,
    said: Option<Said<'_>>,
) -> io::Result<Inspection> {
    let Said { encoding, currency } = said.unwrap_or_default();
    let mut source = Source::open(input, encoding)?.in_currency(currency);
    let encoding = source.encoding();
    let notes = source.notes();
    let head = source.head()?;
    let recognised = recognise(head, currency);
    let seen = match (&recognised, format) {
        (None, None) => bank_csv::seen(&String::from_utf8_lossy(head), currency),
        _known => None,
    };
    let version = recognised.as_ref().filter(|found| format.is_none_or(|f| f == found.format));
    let version = version.map(|found| found.version.clone()).unwrap_or_default();
    let format = format.or(recognised.map(|found| found.format));
    let Some(parser) = format.and_then(|format| open(format, source)) else {
        let mut ledger = Ledger::default();
        if let Some(problem) = seen {
            ledger.problem(problem);
        }
        let (state, sums) = (State::UnknownFormat, ledger.close());
        return Ok(Inspection { format: None, version, encoding, state, sums });
    };
    let sums = drain(parser, &notes);
    let state = if sums.failed { State::Quarantined } else { State::Ok };
    Ok(Inspection { format, version, encoding, state, sums })
}

/// As [`inspect`], by a format that the user described.
///
/// # Errors
/// As [`inspect`].
pub fn inspect_table(
    input: Box<dyn Read + Send>,
    table: &Table,
    said: Option<Said<'_>>,
) -> io::Result<Inspection> {
    let encoding = said.and_then(|said| said.encoding);
    let source = Source::open(input, encoding.or(table.encoding.as_deref()))?;
    let (encoding, notes) = (source.encoding(), source.notes());
    let sums = drain(table_rows::open(table, source), &notes);
    let state = if sums.failed { State::Quarantined } else { State::Ok };
    let (format, version) = (Some(Format::Table), table.name.clone());
    Ok(Inspection { format, version, encoding, state, sums })
}

fn drain(mut parser: Box<dyn Parse>, notes: &Notes) -> Sums {
    let mut ledger = Ledger::default();
    loop {
        match parser.next() {
            Ok(Some(item)) => ledger.absorb(&item),
            Ok(None) => break,
            Err(problem) => {
                ledger.problem(Problem { severity: Severity::Error, ..problem });
                break;
            }
        }
    }
    ledger.encoding(notes);
    ledger.close()
}
