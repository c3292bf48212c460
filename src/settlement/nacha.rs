//! NACHA files: batches of ACH entries, returns, notifications of change, dishonoured and contested
//! returns, IAT and ADV batches.
//!
//! Layouts: Nacha Operating Rules, appendix three ("ACH Record Format Specifications") and four
//! (returns). Records have 94 characters; their first is the type. A batch is a statement here:
//! it has no balances, and its control record ties it. Credit and debit are those of the file,
//! that is of the receiver's account; the second digit of the transaction code tells (0 to 4
//! credit, 5 to 9 debit), on returns too, as the control totals count them.

use std::collections::VecDeque;

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
    /// A batch of the file is one of ADV, whose totals have twenty digits.
    adv: bool,
    closed: bool,
}

struct Batch {
    class: String,
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

    fn count(&mut self, mut add: impl FnMut(&mut Sums)) {
        if let Some(file) = &mut self.file {
            add(file);
        }
    }

    fn begin_file(&mut self, record: &Record) {
        self.close_file(record.line);
        self.file = Some(Sums { records: 1, ..Sums::default() });
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
        statement.from = yymmdd(record.at(70, 75));
        statement.to = statement.from;
        self.items.push_back(statement.into());
        self.batch = Some(Batch { class, number, sums: Sums::default() });
    }

    fn entry(&mut self, record: &Record) {
        self.flush_entry();
        let Some(dollar) = self.dollar else { return };
        let class = self.batch.as_ref().map(|batch| batch.class.clone());
        let Some(class) = class else {
            self.problem(Problem::error(record.line, "6 entry", "within a batch", "none is open"));
            return;
        };
        let is_adv = class == "ADV";
        let code = record.at(2, 3);
        let direction = match direction(code, is_adv) {
            Some(direction) => direction,
            None => {
                let expected = "two digits that tell credit from debit";
                self.problem(Problem::error(record.line, "6 transaction code", expected, code));
                return;
            }
        };
        let text = if is_adv { record.at(28, 39) } else { record.at(30, 39) };
        let minor = match amount::minor(text.trim()) {
            Ok(minor) => minor,
            Err(refused) => {
                self.problem(refused.at(record.line, "6 amount", text, dollar));
                return;
            }
        };
        self.add(record, direction, minor);
        self.entries = self.entries.saturating_add(1);
        let entry = Entry {
            number: self.entries,
            line: record.line,
            minor,
            currency: dollar,
            direction,
            reversal: matches!(code.get(1..2), Some("1" | "6")) && !is_adv,
            status: EntryStatus::Booked,
            booked_on: None,
            value_on: None,
            bank_reference: None,
            type_code: Some(format!("{class}/{code}")),
            batch: None,
        };
        let mut line = Line { byte: record.byte, ..Line::of(&entry) };
        line.raw.push_str(record.text.trim_end());
        line.type_code.clone_from(&entry.type_code);
        references(&mut line, record, &class);
        self.entry = Some((entry, line));
    }

    /// Into the sums that the batch's and the file's controls are held against.
    fn add(&mut self, record: &Record, direction: Direction, minor: i64) {
        let bank: i128 = record.at(4, 11).trim().parse().unwrap_or(0);
        let minor = i128::from(minor);
        let add = |sums: &mut Sums| {
            sums.entries = sums.entries.saturating_add(1);
            sums.hash = sums.hash.saturating_add(bank);
            let sum = match direction {
                Direction::Credit => &mut sums.credit,
                Direction::Debit => &mut sums.debit,
            };
            *sum = sum.saturating_add(minor);
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
            self.problem(Problem::error(record.line, "7 addenda", "after an entry", "none"));
            return;
        };
        line.raw.push('\n');
        line.raw.push_str(record.text.trim_end());
        let filled = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        match record.at(2, 3) {
            // Dishonoured (R61, R67 to R70) and contested (R71 to R77) returns have layouts of
            // their own from column 39 on; reason and original trace stand where all have them.
            "99" => {
                entry.reversal = true;
                line.reversal = true;
                line.return_reason = filled(record.at(4, 6));
                line.original_reference = filled(record.at(7, 21));
            }
            // A notification of change: the money did move, and the amount is nil.
            "98" => {
                line.return_reason = filled(record.at(4, 6));
                line.original_reference = filled(record.at(7, 21));
                entry.reversal = false;
                line.reversal = false;
                line.tag(TagKind::Text, record.at(36, 64));
            }
            "05" => line.tag(TagKind::Text, record.at(4, 83)),
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
        let hash = sums.hash.rem_euclid(HASH);
        let holds = [
            self.control(record, "8 entry and addenda count", (5, 10), sums.entries, None),
            self.control(record, "8 entry hash", (11, 20), hash, None),
            self.control(record, "8 total debit", debit, sums.debit, self.dollar),
            self.control(record, "8 total credit", credit, sums.credit, self.dollar),
        ];
        let number = record.at(88, 94).trim();
        if number != batch.number {
            let found = number.to_owned();
            self.problem(Problem::warning(record.line, "8 batch number", batch.number, found));
        }
        self.end_statement(record.line, holds.iter().all(|holds| *holds));
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
                let wanted = amount::shown(found, currency);
                let problem = Problem::error(record.line, field, wanted, text);
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
        self.control(record, "9 entry and addenda count", (14, 21), file.entries, None);
        self.control(record, "9 entry hash", (22, 31), file.hash.rem_euclid(HASH), None);
        let (debit, credit) = if file.adv { ((32, 51), (52, 71)) } else { ((32, 43), (44, 55)) };
        self.control(record, "9 total debit", debit, file.debit, self.dollar);
        self.control(record, "9 total credit", credit, file.credit, self.dollar);
        self.file = Some(Sums { closed: true, ..file });
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

/// The individual's identification, which is the merchant's own, and the trace number.
fn references(line: &mut Line, record: &Record, class: &str) {
    match class {
        "ADV" => return,
        "IAT" => {}
        // The payer's number stands where the name is elsewhere, and the other way round.
        "CIE" => line.tag(TagKind::CustomerReference, record.at(55, 76)),
        "SHR" => line.tag(TagKind::CustomerReference, record.at(44, 54)),
        _other => line.tag(TagKind::CustomerReference, record.at(40, 54)),
    }
    line.tag(TagKind::Trace, record.at(80, 94));
}
