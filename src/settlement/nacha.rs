//! NACHA files: batches of ACH entries, returns, notifications of change, dishonoured and contested
//! returns, IAT and ADV batches.
//!
//! Layouts: Nacha Operating Rules, appendix three ("ACH Record Format Specifications") and four
//! (returns). Records have 94 characters; their first is the type. A batch is a statement here:
//! it has no balances, and its control record ties it. Credit and debit are those of the file,
//! that is of the receiver's account; the second digit of the transaction code tells (0 to 4
//! credit, 5 to 9 debit), on returns too, as the control totals count them.
//!
//! An international entry (IAT, and in notices of change a COR whose batch says IATCOR) has the
//! foreign account where others have the individual's identification; that one is in its addenda
//! 715, and what it is for in 717. An account number is never a tag.
//!
//! A bank may send the file that it was given back, as a confirmation of batches without their
//! entries, or with `REJ` and a code in the trace number of what it did not take.

use std::collections::{HashSet, VecDeque};

use sha2::{Digest, Sha256};

use crate::model::money::Currency;
use crate::model::settlement::{
    Control, Direction, Entry, EntryStatus, Finality, Found, Line, Problem, Severity, Statement,
    StatementEnd, TagKind, Tie,
};
use crate::settlement::amount::{self, yymmdd};
use crate::settlement::kinds;
use crate::settlement::text::{Lines, Source};
use crate::settlement::{Item, Parse};

/// The length of a record.
const WIDTH: usize = 94;

/// So many records of another length are named.
const OF_OTHER_LENGTH: u8 = 10;

/// So many files of one are remembered.
const FILES: usize = 10_000;

/// How the trace number of an entry begins that the bank did not take (Wells Fargo).
const REJECTED: &str = "REJ";

/// Entry hashes keep ten digits.
const HASH: i128 = 10_000_000_000;

/// A file header, or a batch header where the file header is missing.
pub fn recognise(head: &str) -> Option<String> {
    let line = head.lines().find(|line| !line.trim().is_empty())?;
    let record = Record::new(line.to_owned(), 0);
    let is_header = record.at(1, 1) == "1" && record.at(35, 37) == "094";
    let service = ["200", "220", "225", "280"].contains(&record.at(2, 4));
    let long = record.text.trim_end().chars().count();
    let is_batch = record.at(1, 1) == "5" && service && (85..=WIDTH).contains(&long);
    (is_header || is_batch).then(String::new)
}

/// Begins to read.
pub fn open(source: Source) -> Box<dyn Parse> {
    Box::new(Nacha {
        lines: source.into_lines(),
        pieces: VecDeque::new(),
        items: VecDeque::new(),
        dollar: Currency::parse("USD").ok(),
        entries: 0,
        batches: 0,
        file: None,
        batch: None,
        entry: None,
        made: None,
        passed_over: false,
        has_rejected: false,
        has_unlisted: false,
        of_other_length: 0,
        records: Sha256::new(),
        files: HashSet::new(),
        ended: false,
    })
}

struct Nacha {
    lines: Lines,
    pieces: VecDeque<Record>,
    items: VecDeque<Item>,
    dollar: Option<Currency>,
    entries: u64,
    batches: u64,
    file: Option<Sums>,
    batch: Option<Batch>,
    entry: Option<(Entry, Line)>,
    /// The day that the file was made on, and which of that day's it is.
    made: Option<String>,
    /// The last entry could not be read, which was said.
    passed_over: bool,
    /// An entry was rejected, which was said.
    has_rejected: bool,
    /// A batch lists none of the entries that its control counts, which was said.
    has_unlisted: bool,
    of_other_length: u8,
    /// The records of the file that is being read.
    records: Sha256,
    /// Those of the files before it.
    files: HashSet<[u8; 32]>,
    ended: bool,
}

/// What controls declare.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    records: i128,
    batches: i128,
    entries: i128,
    hash: i128,
    debit: i128,
    credit: i128,
    /// An amount that belongs to either could not be read: nothing can be held against them.
    unread: bool,
    /// A batch of the file is one of ADV, whose totals have twenty digits.
    adv: bool,
    closed: bool,
}

struct Batch {
    class: String,
    /// Its entries are laid out as international ones.
    is_iat: bool,
    number: String,
    sums: Sums,
}

/// A record; columns are counted from 1, as the rules do, and in characters.
struct Record {
    text: String,
    line: u64,
    byte: u64,
    is_ascii: bool,
}

impl Record {
    fn new(text: String, line: u64) -> Self {
        let is_ascii = text.is_ascii();
        Self { text, line, byte: 0, is_ascii }
    }

    /// From one column to another, both included. What a shorter record lacks is blank.
    fn at(&self, from: usize, to: usize) -> &str {
        let start = from.saturating_sub(1);
        if self.is_ascii {
            let end = to.min(self.text.len());
            return self.text.get(start..end).unwrap_or_default();
        }
        let place = |at: usize| {
            self.text.char_indices().nth(at).map_or(self.text.len(), |(place, _)| place)
        };
        self.text.get(place(start)..place(to)).unwrap_or_default()
    }
}

impl Parse for Nacha {
    fn next(&mut self) -> Result<Option<Item>, Problem> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Ok(Some(item));
            }
            if self.ended {
                return Ok(None);
            }
            match self.record()? {
                Some(record) => self.read(&record),
                None => self.finish(),
            }
        }
    }
}

impl Nacha {
    /// The next record. Files without line ends hold them back to back.
    fn record(&mut self) -> Result<Option<Record>, Problem> {
        while self.pieces.is_empty() {
            if !self.lines.advance()? {
                return Ok(None);
            }
            let text = self.lines.text().trim_end_matches(['\u{1a}', '\0']);
            if text.trim().is_empty() {
                continue;
            }
            let (line, byte) = (self.lines.number(), self.lines.byte());
            let characters: Vec<char> =
                if text.len() > WIDTH { text.chars().collect() } else { Vec::new() };
            if characters.len() >= WIDTH.saturating_mul(2) {
                let chunks = characters.chunks(WIDTH).map(|chunk| chunk.iter().collect::<String>());
                let chunks = chunks.filter(|chunk: &String| !chunk.trim().is_empty());
                self.pieces.extend(chunks.map(|text| Record { byte, ..Record::new(text, line) }));
            } else {
                self.pieces.push_back(Record { byte, ..Record::new(text.to_owned(), line) });
            }
        }
        Ok(self.pieces.pop_front())
    }

    fn problem(&mut self, problem: Problem) {
        self.items.push_back(problem.into());
    }

    fn read(&mut self, record: &Record) {
        let kind = record.at(1, 1);
        self.measure(record);
        let fill = record.text.trim_end().bytes().all(|byte| byte == b'9');
        if kind == "1" {
            self.begin_file(record);
            return;
        }
        if fill {
            self.count(|sums| sums.records = sums.records.saturating_add(1));
            return;
        }
        if self.file.is_none_or(|file| file.closed) {
            self.problem(Problem::error(record.line, "1 file header", "one before this", kind));
            self.file = Some(Sums::default());
        }
        self.count(|sums| sums.records = sums.records.saturating_add(1));
        self.note(record);
        match kind {
            "5" => self.begin_batch(record),
            "6" => self.entry(record),
            "7" => self.addenda(record),
            "8" => self.end_batch(record),
            "9" => self.end_file(record),
            other => {
                self.problem(Problem::error(record.line, "record type", "1, 5 to 9", other));
            }
        }
    }

    fn note(&mut self, record: &Record) {
        self.records.update(record.text.trim_end());
        self.records.update("\n");
    }

    /// A file that stands in this one already, record by record: all of it would count twice.
    fn is_again(&mut self) -> bool {
        let records = std::mem::take(&mut self.records).finalize().into();
        self.files.len() < FILES && !self.files.insert(records)
    }

    /// Characters too many or too few may have moved every column behind them.
    fn measure(&mut self, record: &Record) {
        let long = record.text.trim_end().chars().count();
        // These end in digits; what others end in is blank, and may be left out.
        let ends_in_digits = matches!(record.at(1, 1), "5" | "6" | "7" | "8");
        let is_short = ends_in_digits && record.text.chars().count() < WIDTH;
        if (long > WIDTH || is_short) && self.of_other_length < OF_OTHER_LENGTH {
            self.of_other_length = self.of_other_length.saturating_add(1);
            let (expected, found) = (format!("{WIDTH} characters"), long.to_string());
            self.problem(Problem::warning(record.line, "record length", expected, found));
        }
    }

    fn count(&mut self, mut add: impl FnMut(&mut Sums)) {
        if let Some(file) = &mut self.file {
            add(file);
        }
    }

    fn begin_file(&mut self, record: &Record) {
        self.close_file(record.line);
        self.has_unlisted = false;
        self.records = Sha256::new();
        self.note(record);
        self.file = Some(Sums { records: 1, ..Sums::default() });
        let made = [record.at(24, 29).trim(), record.at(34, 34).trim()].join(" ");
        self.made = Some(made.trim().to_owned()).filter(|text| !text.is_empty());
    }

    fn begin_batch(&mut self, record: &Record) {
        self.close_batch(record.line);
        self.batches = self.batches.saturating_add(1);
        let class = record.at(51, 53).to_ascii_uppercase();
        self.count(|sums| {
            sums.batches = sums.batches.saturating_add(1);
            sums.adv |= class == "ADV";
        });
        let number = record.at(88, 94).trim().to_owned();
        let mut statement = Statement::at(self.batches, record.line, Finality::Notice);
        statement.account =
            Some(record.at(41, 50).trim().to_owned()).filter(|text| !text.is_empty());
        statement.currency = self.dollar;
        statement.id = Some(number.clone()).filter(|text| !text.is_empty());
        // Batches are numbered anew in every file, and a return has the day of what it returns.
        statement.sequence = self.made.clone();
        let day = record.at(70, 75);
        statement.from = yymmdd(day);
        let field = "5 effective entry date";
        let unread =
            amount::unread_day(record.line, field, day, "a date as YYMMDD", statement.from);
        self.items.extend(unread.map(Item::from));
        statement.to = statement.from;
        self.items.push_back(statement.into());
        let is_iat = class == "IAT" || (class == "COR" && record.at(5, 20).trim() == "IATCOR");
        self.batch = Some(Batch { class, is_iat, number, sums: Sums::default() });
    }

    fn entry(&mut self, record: &Record) {
        self.flush_entry();
        self.passed_over = false;
        let Some(dollar) = self.dollar else { return };
        let of = self.batch.as_ref().map(|batch| (batch.class.clone(), batch.is_iat));
        let Some((class, is_iat)) = of else {
            self.problem(Problem::error(record.line, "6 entry", "within a batch", "none is open"));
            return;
        };
        let is_adv = class == "ADV";
        let code = record.at(2, 3);
        let Some(direction) = direction(code, is_adv) else {
            let expected = "two digits that tell credit from debit";
            self.pass_over(record, "6 transaction code", expected, code);
            return;
        };
        let text = if is_adv { record.at(28, 39) } else { record.at(30, 39) };
        let minor = match amount::minor(text.trim()) {
            Ok(minor) => minor,
            Err(refused) => {
                self.pass_over(record, "6 amount", &refused.expected(dollar), text);
                return;
            }
        };
        self.add(record, Some((direction, minor)));
        self.entries = self.entries.saturating_add(1);
        let is_rejected = record.at(80, 82) == REJECTED;
        let entry = Entry {
            number: self.entries,
            line: record.line,
            minor,
            currency: dollar,
            direction,
            reversal: matches!(code.get(1..2), Some("1" | "6")) && !is_adv,
            status: if is_rejected { EntryStatus::Info } else { EntryStatus::Booked },
            booked_on: None,
            value_on: None,
            bank_reference: None,
            type_code: Some(format!("{class}/{code}")),
            batch: None,
        };
        let mut line = Line { byte: record.byte, ..Line::of(&entry) };
        line.raw.push_str(record.text.trim_end());
        line.type_code.clone_from(&entry.type_code);
        references(&mut line, record, if is_iat { "IAT" } else { class.as_str() });
        if is_rejected {
            self.rejected(record);
        } else if !is_adv {
            line.tag(TagKind::Trace, record.at(80, 94));
        }
        self.entry = Some((entry, line));
    }

    /// Said once: a file may hold nothing else.
    fn rejected(&mut self, record: &Record) {
        if self.has_rejected {
            return;
        }
        self.has_rejected = true;
        let expected = "the number of an entry that the bank took";
        let found = format!(
            "{}, a reject by the bank: it moved nothing, nor does any that is so marked",
            record.at(80, 94).trim()
        );
        self.problem(Problem::warning(record.line, "6 trace number", expected, found));
    }

    /// An entry that cannot be read is said once: it is counted, and no sum is held against what is
    /// left.
    fn pass_over(&mut self, record: &Record, field: &str, expected: &str, found: &str) {
        self.problem(Problem::error(record.line, field, expected, found));
        self.passed_over = true;
        self.add(record, None);
    }

    /// Into the sums that the batch's and the file's controls are held against.
    fn add(&mut self, record: &Record, moved: Option<(Direction, i64)>) {
        let bank: i128 = record.at(4, 11).trim().parse().unwrap_or(0);
        let add = |sums: &mut Sums| {
            sums.entries = sums.entries.saturating_add(1);
            sums.hash = sums.hash.saturating_add(bank);
            let (sum, minor) = match moved {
                Some((Direction::Credit, minor)) => (&mut sums.credit, minor),
                Some((Direction::Debit, minor)) => (&mut sums.debit, minor),
                None => {
                    sums.unread = true;
                    return;
                }
            };
            *sum = sum.saturating_add(i128::from(minor));
        };
        self.count(add);
        if let Some(batch) = &mut self.batch {
            add(&mut batch.sums);
        }
    }

    fn addenda(&mut self, record: &Record) {
        let add = |sums: &mut Sums| sums.entries = sums.entries.saturating_add(1);
        self.count(add);
        if let Some(batch) = &mut self.batch {
            add(&mut batch.sums);
        }
        let Some((entry, line)) = &mut self.entry else {
            if !self.passed_over {
                self.problem(Problem::error(record.line, "7 addenda", "after an entry", "none"));
            }
            return;
        };
        line.raw.push('\n');
        line.raw.push_str(record.text.trim_end());
        let of = self.batch.as_ref().map(|batch| (batch.class.as_str(), batch.is_iat));
        let (class, is_iat) = of.unwrap_or_default();
        // Some banks write a notification of change as they do a return: its code tells them apart.
        let is_change = record.at(4, 4) == "C";
        match record.at(2, 3) {
            "98" => change(entry, line, record, is_iat),
            "99" if is_change => change(entry, line, record, is_iat),
            // Dishonoured (R61, R67 to R70) and contested (R71 to R77) returns have layouts of
            // their own from column 39 on; reason and original trace stand where all have them.
            "99" => {
                came_back(line, record);
                entry.reversal = true;
                line.reversal = true;
            }
            "05" => line.tag(TagKind::Text, record.at(4, 83)),
            "15" if is_iat => line.tag(TagKind::CustomerReference, record.at(4, 18)),
            "17" if is_iat => line.tag(TagKind::Text, record.at(4, 83)),
            "02" if matches!(class, "POS" | "SHR" | "MTE") => terminal(line, record),
            _other => {}
        }
    }

    fn flush_entry(&mut self) {
        if let Some((entry, mut line)) = self.entry.take() {
            line.kind = kinds::booking(&line);
            self.items.push_back(entry.into());
            self.items.push_back(line.into());
        }
    }

    fn end_batch(&mut self, record: &Record) {
        self.flush_entry();
        let Some(batch) = self.batch.take() else {
            self.problem(Problem::error(record.line, "8 batch control", "within a batch", "none"));
            return;
        };
        let is_adv = batch.class == "ADV";
        let (debit, credit) = if is_adv { ((21, 40), (41, 60)) } else { ((21, 32), (33, 44)) };
        let sums = batch.sums;
        if self.is_unlisted(record, sums) {
            self.end_statement(record.line, false);
            return;
        }
        let hash = sums.hash.rem_euclid(HASH);
        let mut holds = vec![
            self.control(record, "8 entry and addenda count", (5, 10), sums.entries, None),
            self.control(record, "8 entry hash", (11, 20), hash, None),
            !sums.unread,
        ];
        if !sums.unread {
            holds.push(self.control(record, "8 total debit", debit, sums.debit, self.dollar));
            holds.push(self.control(record, "8 total credit", credit, sums.credit, self.dollar));
        }
        let number = record.at(88, 94).trim();
        if number != batch.number {
            let found = number.to_owned();
            self.problem(Problem::warning(record.line, "8 batch number", batch.number, found));
        }
        self.end_statement(record.line, holds.iter().all(|holds| *holds));
    }

    /// Whether a batch lists none of the entries that its control counts: a bank confirms so that
    /// it got a file. What of it is wrong is one thing, and is said of the first.
    fn is_unlisted(&mut self, record: &Record, sums: Sums) -> bool {
        let counted: u32 = record.at(5, 10).trim().parse().unwrap_or(0);
        if counted == 0 || sums.entries != 0 {
            return false;
        }
        if !self.has_unlisted {
            self.has_unlisted = true;
            let expected = format!("the {counted} entries and addenda that the control counts");
            let found = "none: a confirmation of batches, which lists no entries";
            self.problem(Problem::error(record.line, "6 entry", expected, found));
        }
        true
    }

    fn end_statement(&mut self, line: u64, is_tied: bool) {
        let tie = Tie::Declared(is_tied);
        self.items.push_back(StatementEnd { line, tie, ..StatementEnd::default() }.into());
    }

    fn control(
        &mut self,
        record: &Record,
        field: &str,
        (from, to): (usize, usize),
        found: i128,
        currency: Option<Currency>,
    ) -> bool {
        let severity = if field == "9 block count" { Severity::Warning } else { Severity::Error };
        let text = record.at(from, to).trim();
        match text.parse::<i128>().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit())) {
            Some(expected) => {
                let (line, field) = (record.line, field.to_owned());
                let is = Found::Is(found);
                let control = Control { line, field, expected, found: is, currency, severity };
                self.items.push_back(control.into());
                expected == found
            }
            None => {
                let text = if text.is_empty() { "none" } else { text };
                let found = format!("{text}, where it is {}", amount::shown(found, currency));
                let problem = Problem::error(record.line, field, "a number in digits", found);
                self.problem(Problem { severity, ..problem });
                false
            }
        }
    }

    fn end_file(&mut self, record: &Record) {
        self.close_batch(record.line);
        let Some(file) = self.file else { return };
        self.control(record, "9 batch count", (2, 7), file.batches, None);
        let blocks = file.records.saturating_add(9).checked_div(10).unwrap_or(0);
        self.control(record, "9 block count", (8, 13), blocks, None);
        // What the entries come to that the file does not list can be held against nothing.
        if !self.has_unlisted {
            self.hold_sums(record, file);
        }
        self.file = Some(Sums { closed: true, ..file });
        if self.is_again() && file.entries != 0 {
            let found = "one that is in this file already: its entries would count twice";
            self.problem(Problem::error(record.line, "1 file header", "each file once", found));
        }
    }

    fn hold_sums(&mut self, record: &Record, file: Sums) {
        self.control(record, "9 entry and addenda count", (14, 21), file.entries, None);
        self.control(record, "9 entry hash", (22, 31), file.hash.rem_euclid(HASH), None);
        let (debit, credit) = if file.adv { ((32, 51), (52, 71)) } else { ((32, 43), (44, 55)) };
        if !file.unread {
            self.control(record, "9 total debit", debit, file.debit, self.dollar);
            self.control(record, "9 total credit", credit, file.credit, self.dollar);
        }
    }

    fn close_batch(&mut self, line: u64) {
        self.flush_entry();
        if let Some(batch) = self.batch.take() {
            let what = format!("the control of batch {}", batch.number);
            self.problem(Problem::error(line, "8 batch control", what, "none before this"));
            self.end_statement(line, false);
        }
    }

    fn close_file(&mut self, line: u64) {
        self.close_batch(line);
        if self.file.take().is_some_and(|file| !file.closed) {
            self.problem(Problem::error(line, "9 file control", "one at the end", "none"));
        }
    }

    fn finish(&mut self) {
        let line = self.lines.number();
        if self.file.is_none() {
            self.problem(Problem::error(line, "1 file header", "one", "nothing"));
        }
        self.close_file(line);
        self.ended = true;
    }
}

/// By the second digit. In ADV batches 81, 83, 85, 87 are credits and 82, 84, 86, 88 debits.
fn direction(code: &str, is_adv: bool) -> Option<Direction> {
    let number: u8 = code.parse().ok()?;
    let second = number.checked_rem(10)?;
    let credit = if is_adv { second.checked_rem(2)? == 1 } else { second < 5 };
    (20..=89).contains(&number).then_some(if credit { Direction::Credit } else { Direction::Debit })
}

/// The individual's identification, which is the merchant's own.
fn references(line: &mut Line, record: &Record, class: &str) {
    match class {
        "ADV" | "IAT" => {}
        // The payer's number stands where the name is elsewhere, and the other way round.
        "CIE" => line.tag(TagKind::CustomerReference, record.at(55, 76)),
        "SHR" => line.tag(TagKind::CustomerReference, record.at(44, 54)),
        // The check's serial number; the terminal's city and state stand behind it.
        "POP" => line.tag(TagKind::CustomerReference, record.at(40, 48)),
        _other => line.tag(TagKind::CustomerReference, record.at(40, 54)),
    }
}

/// What a return and a notice of change have in common: why, and which payment it was.
fn came_back(line: &mut Line, record: &Record) {
    let filled = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    line.return_reason = filled(record.at(4, 6));
    line.original_reference = filled(record.at(7, 21));
}

/// A notification of change: the money did move, and the amount is nil.
fn change(entry: &mut Entry, line: &mut Line, record: &Record, is_iat: bool) {
    came_back(line, record);
    entry.reversal = false;
    line.reversal = false;
    line.tag(TagKind::Text, if is_iat { record.at(36, 70) } else { record.at(36, 64) });
}

/// A card's terminal (702): the two references, the terminal and its serial number. Neither the
/// authorisation nor a date of expiry is kept as a text to search in.
fn terminal(line: &mut Line, record: &Record) {
    let parts =
        [(4, 10), (11, 13), (14, 19), (20, 25)].map(|(from, to)| record.at(from, to).trim());
    let filled: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    line.tag(TagKind::Text, &filled.join(" "));
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::settlement::ledger::{Inspection, State, inspect};

    const TRACE: &str = "031001230000001";

    /// A record, of what stands from which column on.
    fn record(parts: &[(usize, &str)]) -> String {
        let mut text = " ".repeat(WIDTH);
        for (at, part) in parts {
            text.replace_range(at - 1..at - 1 + part.len(), part);
        }
        text
    }

    fn entry(code: &str, more: &[(usize, &str)]) -> String {
        let own = [(1, "6"), (2, code), (4, "03100123"), (30, "0000012550"), (80, TRACE)];
        record(&[&own[..], more].concat())
    }

    fn addenda(kind: &str, more: &[(usize, &str)]) -> String {
        record(&[&[(1, "7"), (2, kind), (88, "0000001")][..], more].concat())
    }

    /// A file of one batch of debits, whose controls hold.
    fn file(name: &str, class: &str, rows: &[String]) -> String {
        let entries = rows.iter().filter(|row| row.starts_with('6')).count();
        let hash = format!("{:010}", 3_100_123 * entries);
        let debit = format!("{:012}", 12_550 * entries);
        let (short, long) = (format!("{:06}", rows.len()), format!("{:08}", rows.len()));
        let blocks = format!("{:06}", (rows.len() + 13) / 10);
        let (hash, debit) = (hash.as_str(), debit.as_str());
        let nil = "000000000000";
        let own = (88, "0000001");
        let mut text = vec![
            record(&[(1, "101"), (35, "094101")]),
            record(&[(1, "5200"), (5, name), (41, "1234567890"), (51, class), (70, "261119"), own]),
        ];
        text.extend(rows.iter().cloned());
        let batch = [(1, "8200"), (5, short.as_str()), (11, hash), (21, debit), (33, nil), own];
        text.push(record(&batch));
        let all = [
            (1, "9000001"),
            (8, blocks.as_str()),
            (14, long.as_str()),
            (22, hash),
            (32, debit),
            (44, nil),
        ];
        text.push(record(&all));
        text.join("\n")
    }

    fn inspected(text: &str) -> Inspection {
        inspect(Box::new(Cursor::new(text.as_bytes().to_vec())), None, None).unwrap()
    }

    fn problems(found: &Inspection) -> Vec<String> {
        found.sums.problems.iter().map(ToString::to_string).collect()
    }

    /// The references of every line, in short. The file ties.
    fn tags(text: &str) -> Vec<String> {
        let found = inspected(text);
        assert_eq!((found.state, found.sums.problems_total), (State::Ok, 0), "{text}");
        let source = Source::open(Box::new(Cursor::new(text.as_bytes().to_vec())), None).unwrap();
        let mut parser = open(source);
        let mut tags = Vec::new();
        while let Some(item) = parser.next().unwrap() {
            if let Item::Line(line) = item {
                tags.extend(
                    line.tags.iter().map(|tag| format!("{}={}", tag.kind.as_str(), tag.text)),
                );
            }
        }
        tags
    }

    #[test]
    fn a_file_that_stands_twice_in_one_counts_once() {
        let one = file("", "PPD", &[entry("27", &[])]);
        let other = file("", "PPD", &[entry("27", &[(55, "ERIKA")])]);
        let state = |texts: [&str; 2]| inspected(&texts.join("\n")).state;
        assert_eq!(state([&one, &other]), State::Ok);
        assert_eq!(state([&one, &one]), State::Quarantined);
        let empty = file("", "PPD", &[]);
        assert_eq!(state([&empty, &empty]), State::Ok, "nothing counts twice");
    }

    /// The foreign account stands where others have the individual's identification.
    #[test]
    fn an_international_entry_has_its_reference_in_its_addenda() {
        let rows = [
            entry("27", &[(13, "0007"), (40, "DE75512108001245126199")]),
            addenda("10", &[(4, "ANN"), (47, "ACME")]),
            addenda("15", &[(4, "ORDER-1"), (19, "2121 Front Street")]),
            addenda("17", &[(4, "invoice 7"), (84, "0001")]),
            addenda("18", &[(4, "Bank of France"), (41, "456456456987987")]),
        ];
        let trace = format!("trace={TRACE}");
        let want = [trace.as_str(), "customer_reference=ORDER-1", "text=invoice 7"];
        assert_eq!(tags(&file("", "IAT", &rows)), want);
        // Elsewhere these are other records.
        let want = ["customer_reference=DE7551210800124", trace.as_str()];
        assert_eq!(tags(&file("", "PPD", &rows)), want);
    }

    #[test]
    fn a_change_of_an_international_entry_tells_no_account_as_a_tag() {
        let change = [(4, "C01"), (7, TRACE), (36, "722-C3"), (65, "TAIL"), (80, TRACE)];
        let rows = [
            entry("26", &[(40, "DE75512108001245126199")]),
            addenda("15", &[(4, "ORDER-1")]),
            addenda("98", &change),
        ];
        let trace = format!("trace={TRACE}");
        let text = format!("text=722-C3{}TAIL", " ".repeat(23));
        let want = [trace.as_str(), "customer_reference=ORDER-1", text.as_str()];
        assert_eq!(tags(&file("IATCOR", "COR", &rows)), want);
        let want = ["customer_reference=DE7551210800124", trace.as_str(), "text=722-C3"];
        assert_eq!(tags(&file("ACME", "COR", &rows)), want);
    }

    /// A return says that the payment came back, a change that it stands, under either number.
    #[test]
    fn a_change_under_the_number_of_returns_takes_nothing_back() {
        let is_reversal = |kind: &str, code: &str| {
            let row = addenda(kind, &[(4, code), (7, TRACE), (36, "0653054337"), (80, TRACE)]);
            let text = file("", "COR", &[entry("26", &[]), row]);
            let source = Source::open(Box::new(Cursor::new(text.into_bytes())), None).unwrap();
            let mut parser = open(source);
            let items = std::iter::from_fn(|| parser.next().unwrap());
            let lines = items
                .filter_map(|item| if let Item::Line(line) = item { Some(line) } else { None });
            lines.map(|line| (line.reversal, line.return_reason.clone())).collect::<Vec<_>>()
        };
        for (kind, code, want) in [("98", "C05", false), ("99", "C05", false), ("99", "R01", true)]
        {
            assert_eq!(is_reversal(kind, code), [(want, Some(code.to_owned()))], "{kind} {code}");
        }
    }

    /// A bank sends back what it did not take, in a file whose controls hold.
    #[test]
    fn an_entry_that_the_bank_rejected_moved_nothing() {
        let rejected = entry("27", &[(40, "A-1"), (80, "REJ060300000002")]);
        let text = file("", "PPD", &[entry("27", &[(40, "A-2")]), rejected.clone(), rejected]);
        let found = inspected(&text);
        assert_eq!(found.state, State::Ok, "{:?}", problems(&found));
        let want = "line 4: 6 trace number: expected the number of an entry that the bank took, \
                    found REJ060300000002, a reject by the bank: it moved nothing, nor does any \
                    that is so marked";
        assert_eq!(problems(&found), [want], "said once");
        let booked = found.sums.booked.values().map(|sums| (sums.debit_minor, sums.debits));
        assert_eq!(booked.collect::<Vec<_>>(), [(12_550, 1)]);
    }

    #[test]
    fn a_confirmation_without_entries_is_said_to_be_one() {
        let whole = file("", "PPD", &[entry("27", &[]), entry("27", &[])]);
        let kept: Vec<&str> = whole.lines().filter(|line| !line.starts_with('6')).collect();
        let found = inspected(&kept.join("\n"));
        assert_eq!(found.state, State::Quarantined);
        let want = "line 3: 6 entry: expected the 2 entries and addenda that the control counts, \
                    found none: a confirmation of batches, which lists no entries";
        assert_eq!(problems(&found), [want]);
        // One batch of it listed, or none: nothing of it counts, and it is said once.
        let batch = kept.get(1..3).unwrap().join("\n");
        let text = whole.replacen("\n9", &format!("\n{batch}\n9"), 1);
        let text = text.replacen("9000001", "9000002", 1);
        let found = inspected(&text);
        assert_eq!(found.state, State::Quarantined);
        assert_eq!(problems(&found).first(), Some(&want.replace("line 3", "line 7")));
    }

    #[test]
    fn what_terminals_write_is_read_by_its_columns() {
        let check = [entry("27", &[(40, "123456789"), (49, "PHIL"), (53, "PA")])];
        let trace = format!("trace={TRACE}");
        assert_eq!(
            tags(&file("", "POP", &check)),
            ["customer_reference=123456789", trace.as_str()]
        );
        let card = [
            entry("27", &[(44, "10000123456")]),
            addenda("02", &[(4, "REFONEAREFTERM02100049061412345612345")]),
        ];
        let want =
            ["customer_reference=10000123456", trace.as_str(), "text=REFONEA REF TERM02 100049"];
        assert_eq!(tags(&file("", "SHR", &card)), want);
    }

    #[test]
    fn a_record_of_another_length_is_said_first() {
        let long = format!("{:<90}0000000000000000000X", addenda("05", &[(4, "TXP")]).trim_end());
        let text = file("", "CCD", &[entry("27", &[(40, "A-1")]), long]);
        let found = inspected(&text);
        assert_eq!((found.state, found.sums.problems_total), (State::Ok, 1), "{text}");
        assert_eq!(problems(&found)[0], "line 4: record length: expected 94 characters, found 114");
        let short = entry("27", &[(40, "A-1")]).replacen("   ", "  ", 1);
        let found = inspected(&file("", "CCD", &[short]));
        assert!(problems(&found)[0].contains("line 3: record length"), "{:?}", problems(&found));
        // Blanks behind a record, and those left out at its end, move nothing.
        let text = file("", "CCD", &[entry("27", &[(40, "A-1")])]);
        let padded: Vec<String> = text.lines().map(|line| format!("{line}  ")).collect();
        let cut: Vec<&str> = text.lines().map(str::trim_end).collect();
        for text in [padded.join("\n"), cut.join("\n")] {
            assert_eq!(inspected(&text).sums.problems_total, 0, "{text}");
        }
    }

    #[test]
    fn an_entry_that_cannot_be_read_is_said_once() {
        let good = [entry("27", &[]), addenda("05", &[(4, "one")])];
        let broken = [good[0].replace("0000012550", "00000CC550"), good[1].clone()];
        let unknown = [good[0].replacen("627", "6X7", 1), good[1].clone()];
        for (rows, part) in [(broken, "6 amount"), (unknown, "6 transaction code")] {
            let text = file("", "PPD", &[&good[..], &rows[..]].concat());
            let found = inspected(&text);
            assert_eq!((found.state, found.sums.problems_total), (State::Quarantined, 1), "{text}");
            assert!(problems(&found)[0].contains(part), "{:?}", problems(&found));
            assert_eq!((found.sums.entries, found.sums.statements[0].ties), (1, Some(false)));
        }
        let text = file("", "PPD", &good).replace("000000012550", "0000000Y2550");
        let said = "8 total debit: expected a number in digits, found 0000000Y2550, where it is \
                    125.50 USD";
        assert!(problems(&inspected(&text))[0].contains(said), "{:?}", problems(&inspected(&text)));
    }
}
