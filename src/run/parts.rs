//! From a file's bytes to the parts that the store takes in: parsed, added up and masked on a
//! thread of its own, a bounded channel before the database.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::sync::Arc;

use chrono::NaiveDate;
use tokio::sync::mpsc::Sender;

use crate::model::card::masked;
use crate::model::money::{Currency, Money};
use crate::model::settlement::{
    Direction, Entry, EntryStatus, Finality, Flags, Line, LineKind, Problem, Severity, SignedMoney,
    Statement, TagKind,
};
use crate::run::shutdown::Stop;
use crate::settlement::kinds::is_charge;
use crate::settlement::ledger::{Ledger, StatementSum, Sums};
use crate::settlement::table::Table;
use crate::settlement::tags::{TagRules, is_blank, mask_line};
use crate::settlement::text::{Notes, Source};
use crate::settlement::{Format, Item, Parse, bank_csv, open, recognise, table_rows};
use crate::store::files::{
    FileSums, Held, LINES_OF_PART, NewLine, NewStatement, Part, StatementClose, decides,
};

/// How a file is read.
#[derive(Debug, Clone)]
pub enum By {
    /// As what its content is.
    Content,
    /// As this.
    Format(Format),
    /// As the configuration describes.
    Table(Box<Table>),
}

/// What is the same for all files of a source.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The PSP account of the configuration that the lines belong to.
    pub account: String,
    /// How the files are read.
    pub by: By,
    /// How they are encoded, where neither a mark nor the content tells.
    pub encoding: Option<String>,
    /// What amounts are in, where the file names no currency.
    pub currency: Option<Currency>,
    /// Which references may be a row's tag.
    pub tags: TagRules,
}

/// A file that was begun, with what is known before its first line.
pub(super) struct Begun {
    /// The format's word; `unknown` where there is none.
    pub(super) format: &'static str,
    /// The version that it names.
    pub(super) version: String,
    covers_attempts: bool,
    /// What to say where no format was recognised.
    seen: Option<Problem>,
    parser: Option<Box<dyn Parse>>,
    notes: Arc<Notes>,
}

impl Begun {
    /// Opens the text and tells the format.
    ///
    /// # Errors
    /// Where the first bytes cannot be read.
    pub(super) fn open(input: Box<dyn Read + Send>, how: &Reading) -> io::Result<Self> {
        let own = match &how.by {
            By::Table(table) => table.encoding.as_deref(),
            By::Content | By::Format(_) => None,
        };
        let source = Source::open(input, how.encoding.as_deref().or(own))?;
        let mut source = source.in_currency(how.currency);
        let notes = source.notes();
        let head = source.head()?;
        let found = recognise(head, how.currency);
        let seen = match found {
            Some(_) => None,
            None => bank_csv::seen(&String::from_utf8_lossy(head), how.currency),
        };
        let format = match &how.by {
            By::Table(_) => Some(Format::Table),
            By::Format(format) => Some(*format),
            By::Content => found.as_ref().map(|found| found.format),
        };
        let version = match &how.by {
            By::Table(table) => table.name.clone(),
            By::Content | By::Format(_) => {
                let same = found.filter(|found| Some(found.format) == format);
                same.map(|found| found.version).unwrap_or_default()
            }
        };
        let parser = match &how.by {
            By::Table(table) => Some(table_rows::open(table, source)),
            By::Content | By::Format(_) => format.and_then(|format| open(format, source)),
        };
        let covers_attempts = match &how.by {
            By::Table(table) => table.covers_attempts,
            By::Content | By::Format(_) => {
                matches!(format, Some(Format::AdyenAccounting | Format::AdyenReceived))
            }
        };
        let format = format.map_or("unknown", Format::name);
        Ok(Self { format, version, covers_attempts, seen, parser, notes })
    }

    /// Reads to the end and sends what comes. None, with nothing that ends the file sent, where
    /// a stop was asked for or nobody takes the parts any more: the store then keeps nothing.
    /// After the day `last` nothing was booked yet. `unchanged` is asked once all is read.
    pub(super) fn read(
        self,
        how: &Reading,
        parts: &Sender<Part>,
        stop: &Stop,
        last: Option<NaiveDate>,
        unchanged: impl FnOnce() -> bool,
    ) -> Option<Sums> {
        let mut feeder = Feeder {
            how,
            parts,
            last,
            covers_attempts: self.covers_attempts,
            format: self.format,
            days: BTreeMap::new(),
            ledger: Ledger::default(),
            lines: Vec::new(),
            position: 0,
            statements: 0,
            open: None,
            entry: None,
            pans: 0,
            sums: BTreeMap::new(),
        };
        let Some(mut parser) = self.parser else {
            let found = "another; name it, or describe it as a [[format]]";
            let unknown = || Problem::error(0, "file", "a format that is read here", found);
            feeder.ledger.problem(self.seen.unwrap_or_else(unknown));
            return feeder.close(unchanged);
        };
        loop {
            if stop.requested().is_some() {
                return None;
            }
            match parser.next() {
                Ok(Some(item)) => feeder.take(item)?,
                Ok(None) => break,
                Err(problem) => {
                    feeder.ledger.problem(Problem { severity: Severity::Error, ..problem });
                    break;
                }
            }
        }
        feeder.ledger.encoding(&self.notes);
        feeder.close(unchanged)
    }
}

/// A statement whose end did not come yet.
struct OpenStatement {
    number: u64,
    finality: Finality,
    held: bool,
    /// The day that it is of, or begins on.
    day: Option<NaiveDate>,
    /// Its first line of a day on which nothing was booked yet.
    early: Option<Early>,
    entries: u64,
    lines: u64,
}

/// A line that would decide rows, of a day on which nothing was booked yet.
#[derive(Clone, Copy)]
struct Early {
    line: u64,
    day: NaiveDate,
    /// The day may be that of its value, which may lie far ahead: MT940 and camt may tell no other.
    may_be_value: bool,
}

impl OpenStatement {
    /// The day of a line that decides, or does once a person lets it, and tells no day of its
    /// booking, where nothing was booked on it yet: that of its statement, else of its value. The
    /// line then pays nobody before it.
    fn early_day(&self, value_on: Option<NaiveDate>, last: Option<NaiveDate>) -> Option<NaiveDate> {
        let is_early = |day: &NaiveDate| last.is_some_and(|last| *day > last);
        [self.day, value_on].into_iter().flatten().find(is_early)
    }

    /// Notes the day of a line that decides, where nothing was booked on it yet: one line of a
    /// statement tells what is wrong with it. `is_told`: the line tells that it is of its booking.
    fn note_day(
        &mut self,
        (line, day, is_told): (u64, Option<NaiveDate>, bool),
        value_on: Option<NaiveDate>,
        last: Option<NaiveDate>,
    ) {
        let Some((day, last)) = day.zip(last) else { return };
        let may_be_value = value_on == Some(day) && !is_told;
        let is_known = |known: Early| may_be_value || !known.may_be_value;
        if day > last && !self.early.is_some_and(is_known) {
            self.early = Some(Early { line, day, may_be_value });
        }
    }
}

impl Early {
    /// What is wrong with a statement that has it, and that ends on a day, where it says so.
    fn problem(self, to: Option<NaiveDate>, last: NaiveDate) -> Option<Problem> {
        let is_closed = self.may_be_value && to.is_some_and(|to| to <= last);
        let expected = format!("up to {last}, seven days ahead");
        let problem = Problem::error(self.line, "booking date", expected, self.day.to_string());
        (!is_closed).then_some(problem)
    }
}

/// Turns items into parts.
struct Feeder<'a> {
    how: &'a Reading,
    parts: &'a Sender<Part>,
    /// After this day nothing was booked yet.
    last: Option<NaiveDate>,
    covers_attempts: bool,
    format: &'static str,
    /// How many statements of BAI2 came of an account, currency and day.
    days: BTreeMap<(Option<String>, Option<Currency>, NaiveDate), u64>,
    ledger: Ledger,
    lines: Vec<NewLine>,
    position: u64,
    statements: u64,
    open: Option<OpenStatement>,
    entry: Option<Entry>,
    pans: u64,
    /// Lines by currency: how many, and what they come to.
    sums: BTreeMap<Currency, (u64, i128)>,
}

impl Feeder<'_> {
    /// Takes an item in; none where nobody takes the parts any more.
    fn take(&mut self, item: Item) -> Option<()> {
        if matches!(item, Item::Statement(_)) {
            self.end(None)?;
        }
        self.ledger.absorb(&item);
        match item {
            Item::Statement(statement) => self.begin(&statement),
            Item::Entry(entry) => {
                if let Some(open) = &mut self.open {
                    open.entries = open.entries.saturating_add(1);
                }
                self.entry = Some(*entry);
                Some(())
            }
            Item::Line(line) => self.line(*line),
            Item::StatementEnd(_) => {
                let sum = self.ledger.last_ended().cloned();
                self.end(sum.as_ref())
            }
            Item::Control(_) | Item::Problem(_) => Some(()),
        }
    }

    fn send(&self, part: Part) -> Option<()> {
        self.parts.blocking_send(part).ok()
    }

    fn flush(&mut self) -> Option<()> {
        if self.lines.is_empty() {
            return Some(());
        }
        let lines = std::mem::take(&mut self.lines);
        self.send(Part::Lines(lines))
    }

    fn begin(&mut self, statement: &Statement) -> Option<()> {
        self.statements = self.statements.saturating_add(1);
        let held = held(statement.flags);
        let (number, finality) = (self.statements, statement.finality);
        let is_held = held.is_some();
        self.open = Some(OpenStatement {
            number,
            finality,
            held: is_held,
            day: statement.from,
            early: None,
            entries: 0,
            lines: 0,
        });
        let statement_id = masked(&self.id_of(statement)).into_owned();
        let text = |text: &Option<String>| masked(text.as_deref().unwrap_or_default()).into_owned();
        self.send(Part::Statement(Box::new(NewStatement {
            number,
            account: self.how.account.clone(),
            bank_account: text(&statement.account),
            statement_id,
            sequence: text(&statement.sequence),
            finality,
            covers_attempts: self.covers_attempts,
            held,
        })))
    }

    /// The statement's own id, and the page where it is a later one: pages are no issues of each
    /// other, nor are several reports of one payout or day. BAI2 has none: a closed day is the
    /// account's one of that day, whatever file it came in; within a file the second one stands
    /// beside the first.
    fn id_of(&mut self, statement: &Statement) -> String {
        let id = statement.id.as_deref();
        let further = [Format::PayPalDetail, Format::CheckoutActions, Format::CheckoutPayouts];
        let report = further.iter().map(|format| format.name()).find(|name| *name == self.format);
        let own = [id, statement.page.as_deref(), report.filter(|_| id.is_some())];
        let own = own.into_iter().flatten().collect::<Vec<_>>().join(" ");
        let is_day = self.format == Format::Bai2.name() && statement.finality == Finality::Final;
        let Some(day) = statement.from.filter(|_| own.is_empty() && is_day) else { return own };
        let key = (statement.account.clone(), statement.currency, day);
        let came = self.days.entry(key).or_default();
        *came = came.saturating_add(1);
        if *came == 1 { day.to_string() } else { format!("{day} {came}") }
    }

    /// Ends the open statement, with what was added up where its end came.
    fn end(&mut self, sum: Option<&StatementSum>) -> Option<()> {
        self.end_tied(sum, sum.and_then(|sum| sum.ties))
    }

    fn end_tied(&mut self, sum: Option<&StatementSum>, ties: Option<bool>) -> Option<()> {
        self.flush()?;
        let Some(open) = self.open.take() else { return Some(()) };
        let head = sum.map(|sum| &sum.head);
        if let Some((early, last)) = open.early.zip(self.last)
            && let Some(problem) = early.problem(head.and_then(|head| head.to), last)
        {
            self.ledger.problem(problem);
        }
        self.send(Part::StatementEnd(Box::new(StatementClose {
            number: open.number,
            currency: head.and_then(|head| head.currency),
            from: head.and_then(|head| head.from),
            to: head.and_then(|head| head.to),
            opening_minor: sum.and_then(|sum| sum.opening).map(|balance| balance.minor),
            closing_minor: sum.and_then(|sum| sum.closing).map(|balance| balance.minor),
            entries: open.entries,
            lines: open.lines,
            ties,
        })))
    }

    fn line(&mut self, mut line: Line) -> Option<()> {
        if self.open.is_none() {
            // Outside of any statement nothing ties it: it is kept, and decides nothing.
            self.begin(&Statement::at(0, line.line, Finality::Notice))?;
        }
        if mask_line(&mut line) {
            self.pans = self.pans.saturating_add(1);
            let found = "a card number; its digits are masked";
            self.ledger.problem(Problem::warning(line.line, "references", "no card", found));
        }
        let open = self.open.as_mut()?;
        open.lines = open.lines.saturating_add(1);
        self.position = self.position.saturating_add(1);
        let sum = self.sums.entry(line.currency).or_default();
        sum.0 = sum.0.saturating_add(1);
        let way = line.booked_way();
        sum.1 = sum.1.saturating_add(line.minor.map_or(0, |minor| way.signed(minor)));
        let entry = self.entry.as_ref();
        let status = entry.map_or(EntryStatus::Booked, |entry| entry.status);
        let own = |pick: fn(&Entry) -> Option<&String>| entry.and_then(pick).cloned();
        let kept = |text: Option<String>| text.map(|text| masked(&text).into_owned());
        let tags = self.how.tags.tags(&line);
        let type_code = line.type_code.clone();
        let type_code = type_code.or_else(|| own(|entry| entry.type_code.as_ref()));
        let is_doubtful = is_banks_charge(&line, type_code.as_deref()) && !tags.is_empty();
        let kind = if is_doubtful { LineKind::Movement } else { line.kind };
        let may_decide = decides(status, open.finality, kind);
        let decides = may_decide && !open.held;
        let told_on = line.booked_on.or_else(|| entry.and_then(|entry| entry.booked_on));
        let value_on = entry.and_then(|entry| entry.value_on);
        let early_on = || open.early_day(value_on, self.last);
        let booked_on = told_on.or_else(|| early_on().filter(|_| may_decide));
        if decides {
            let is_told = told_on.is_some() && self.format != Format::Mt940.name();
            open.note_day((line.line, booked_on, is_told), value_on, self.last);
        }
        // Only what may be a batch, or a part of one, is looked for by its order.
        let is_of_batch = !line.itemised || open.finality == Finality::Notice;
        let order = order_of(entry, &line).filter(|_| is_of_batch);
        self.lines.push(NewLine {
            position: self.position,
            statement: open.number,
            entry: line.entry,
            file_line: line.line,
            kind: line.kind,
            direction: line.direction,
            minor: line.minor,
            currency: line.currency,
            gross: money(line.gross),
            fee: money(line.fee),
            net: money(line.net),
            status,
            decides,
            itemised: line.itemised,
            tags,
            psp_reference: line.psp_reference,
            original: line.original_reference,
            return_reason: line.return_reason,
            type_code,
            bank_reference: kept(own(|entry| entry.bank_reference.as_ref())),
            batch: line.batch_id,
            order: kept(order),
            booked_on,
            value_on,
            refs: line.tags,
            raw: line.raw,
        });
        if self.lines.len() >= LINES_OF_PART { self.flush() } else { Some(()) }
    }

    /// Sends what the file adds up to, where it is still the one that was hashed.
    fn close(mut self, unchanged: impl FnOnce() -> bool) -> Option<Sums> {
        self.end(None)?;
        let sums = std::mem::take(&mut self.ledger).close();
        if self.covers_attempts && self.statements == 0 && !sums.failed {
            // A day without a row: a trailer that counts none says that nothing was attempted; a
            // header alone may be all that is left of a file.
            self.begin(&Statement::at(0, 1, Finality::Notice))?;
            let is_counted = matches!(self.how.by, By::Table(_));
            self.end_tied(None, is_counted.then_some(true))?;
        }
        if !unchanged() {
            return None;
        }
        let file = Box::new(FileSums {
            statements: self.statements,
            entries: sums.entries,
            lines: self.position,
            totals: totals(&sums, &self.sums),
            problems: sums.problems.clone(),
            problems_total: sums.problems_total,
            card_numbers: self.pans,
            zones: sums.zones.iter().map(|word| masked(word).into_owned()).collect(),
        });
        let end = if sums.failed { Part::Quarantine(file) } else { Part::Whole(file) };
        self.parts.blocking_send(end).ok()?;
        Some(sums)
    }
}

/// Of a bank's charge under a row's tag the row's money says whether it is one.
fn is_banks_charge(line: &Line, type_code: Option<&str>) -> bool {
    line.kind == LineKind::Fee
        && line.psp_reference.is_none()
        && line.direction == Direction::Debit
        && type_code.is_some_and(is_charge)
}

fn held(flags: Flags) -> Option<Held> {
    let Flags { copy, duplicate, deletion, correction, test } = flags;
    let said = [
        (test, Held::Test),
        (deletion, Held::Deletion),
        (correction, Held::Correction),
        (duplicate, Held::Duplicate),
        (copy, Held::Copy),
    ];
    said.into_iter().find_map(|(is_said, held)| is_said.then_some(held))
}

/// The order that a bank's batch was made by: its batch within a file of orders, else that file.
fn order_of(entry: Option<&Entry>, line: &Line) -> Option<String> {
    let named = |kind| line.tags.iter().find(|tag| tag.kind == kind).map(|tag| tag.text.clone());
    let batch = entry.and_then(|entry| entry.batch.as_ref());
    batch
        .and_then(|batch| batch.payment_info_id.clone())
        .or_else(|| named(TagKind::PaymentInfoId))
        .or_else(|| batch.and_then(|batch| batch.message_id.clone()))
        .or_else(|| named(TagKind::MessageId))
        .filter(|order| !is_blank(order))
}

fn money(money: Option<SignedMoney>) -> Option<Money> {
    money.map(|SignedMoney { minor, currency }| Money::new(minor, currency))
}

/// Entries by currency, as JSON, and the lines that they became: what a report holds the kept
/// lines against. Sums are texts: beyond 64 bits a JSON number loses its digits.
fn totals(sums: &Sums, lines: &BTreeMap<Currency, (u64, i128)>) -> String {
    let currencies: BTreeSet<Currency> = sums.totals.keys().chain(lines.keys()).copied().collect();
    let of = |currency: Currency| {
        let totals = sums.totals.get(&currency).copied().unwrap_or_default();
        let (count, minor) = lines.get(&currency).copied().unwrap_or_default();
        let body = serde_json::json!({
            "credits": totals.credits,
            "debits": totals.debits,
            "credit_minor": totals.credit_minor.to_string(),
            "debit_minor": totals.debit_minor.to_string(),
            "lines": count,
            "line_minor": minor.to_string(),
        });
        (currency.code().to_owned(), body)
    };
    serde_json::Value::from_iter(currencies.into_iter().map(of)).to_string()
}
