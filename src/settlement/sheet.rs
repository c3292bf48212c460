//! Files of rows: what every CSV report shares. Delimiters, header rows, widths, and the queue
//! that turns rows into items.
//!
//! Columns are bound by name, in any order and any case; a missing one is a problem and an unknown
//! one is passed over. A quote that is never closed would swallow rows, so a field that looks like
//! several rows ends the reading.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};
use std::ops::Range;

use chrono::NaiveDate;
use csv::{ReaderBuilder, StringRecord};
use memchr::{memchr, memchr2};

use crate::model::money::Currency;
use crate::model::near::nearest;
use crate::model::settlement::{
    Direction, Entry, EntryStatus, Finality, Line, Problem, RAW_MAX, Severity, SignedMoney,
    Statement, StatementEnd,
};
use crate::settlement::amount::unread_day;
use crate::settlement::last_row::{Ends, Last};
use crate::settlement::numeral::{Order, day};
use crate::settlement::text::{Decoded, Lines, Source, unreadable};
use crate::settlement::{Item, Parse};

/// A header row stands within so many rows: some banks put a page of words above it.
const HEADER_WITHIN: usize = 60;

/// No row is longer; a longer one is a quote that was never closed.
const ROW_MAX: usize = 4 * 1024 * 1024;

/// In the order of how rarely they stand in text.
const DELIMITERS: [u8; 4] = [b'\t', b';', b'|', b','];

/// How a file's rows are cut, and what its columns are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Between fields.
    pub delimiter: u8,
    /// How many rows stand above the header row.
    pub above: usize,
    /// The header row, each name as [`normal`] makes it.
    pub names: Vec<String>,
    /// The header row as it stands.
    pub shown: Vec<String>,
}

impl Layout {
    /// Where the first of these names stands that is there.
    pub fn column(&self, names: &[&str]) -> Option<usize> {
        names.iter().find_map(|name| self.names.iter().position(|own| own == name))
    }

    /// Whether all of these names are there.
    pub fn has(&self, names: &[&str]) -> bool {
        has(&self.names, names)
    }

    /// The same, where what is read of it decides: nothing tells which of two columns of one name
    /// is meant, and the first of them could be anybody's.
    ///
    /// # Errors
    /// Where the name stands more than once.
    pub fn one(&self, names: &[&str]) -> Result<Option<usize>, Problem> {
        let Some(first) = self.column(names) else { return Ok(None) };
        let is_same = |at: &usize| self.names.get(*at) == self.names.get(first);
        let places: Vec<usize> = (first..self.names.len()).filter(is_same).collect();
        if places.len() > 1 {
            let numbers = places.iter().map(|at| at.saturating_add(1).to_string());
            let numbers = numbers.collect::<Vec<_>>().join(" and ");
            let found = format!("{} of them, columns {numbers}", places.len());
            let name = self.shown.get(first).map_or("", String::as_str);
            return Err(Problem::error(1, name, "one column of this name", found));
        }
        Ok(Some(first))
    }

    /// Everywhere that a name stands.
    pub fn all(&self, name: &str) -> Vec<usize> {
        let named = self.names.iter().enumerate().filter(|(_, own)| *own == name);
        named.map(|(at, _)| at).collect()
    }

    /// Where each of these names stands that is there, in their order.
    ///
    /// # Errors
    /// Where one of them stands more than once.
    pub fn each(&self, names: &[&str]) -> Result<Vec<usize>, Problem> {
        let places = names.iter().filter_map(|name| self.one(&[name]).transpose());
        places.collect()
    }

    /// Where a name stands that must be there.
    ///
    /// # Errors
    /// Where it does not, or more than once.
    pub fn need(&self, name: &str) -> Result<usize, Problem> {
        let lacks = || {
            let shown = self.shown.join(" | ");
            let found = match self.near(name) {
                Some(near) => format!("none; `{near}` is near to it, in {shown}"),
                None => format!("none in {shown}"),
            };
            Problem::error(1, name, "a column of this name", found)
        };
        self.one(&[name])?.ok_or_else(lacks)
    }

    /// The column, as it stands, that a name was probably meant to be.
    pub fn near(&self, name: &str) -> Option<&str> {
        let named = || self.names.iter().map(String::as_str).filter(|own| !own.is_empty());
        let holds = |own: &&str| {
            let mut words = own.split(' ').filter(|word| word.len() > 2);
            words.any(|own| name.split(' ').any(|word| word == own))
        };
        let near = nearest(name, named()).or_else(|| named().find(holds))?;
        let at = self.names.iter().position(|own| own == near)?;
        self.shown.get(at).map(String::as_str)
    }
}

/// Whether all of `wanted` are among `names`.
pub fn has(names: &[String], wanted: &[&str]) -> bool {
    wanted.iter().all(|name| names.iter().any(|own| own == name))
}

/// A header's name without case, punctuation and repeated blanks: `Gross Debit (GC)` and
/// `gross_debit_gc` are one.
pub fn normal(name: &str) -> String {
    let mut normal = String::with_capacity(name.len());
    if name.is_ascii() {
        for byte in name.bytes() {
            if byte.is_ascii_alphanumeric() {
                normal.push(char::from(byte.to_ascii_lowercase()));
            } else if !normal.is_empty() && !normal.ends_with(' ') {
                normal.push(' ');
            }
        }
        normal.truncate(normal.trim_end().len());
        return normal;
    }
    for c in name.chars().flat_map(char::to_lowercase) {
        if c == '\u{307}' {
            // The dot of a capital İ.
            continue;
        }
        if c.is_alphanumeric() {
            normal.push(c);
        } else if !normal.is_empty() && !normal.ends_with(' ') {
            normal.push(' ');
        }
    }
    normal.truncate(normal.trim_end().len());
    normal
}

/// The same of a column's name, in which the real's sign, `Saldo (R$)`, stands for its code:
/// without punctuation it would be a letter, and that is the rand's.
pub fn column(name: &str) -> String {
    match name.contains("R$") {
        true => normal(&name.replace("R$", "BRL")),
        false => normal(name),
    }
}

/// The header row that `accept` takes, cut by whichever delimiter shows it.
pub fn find(head: &str, accept: impl Fn(&[String]) -> bool) -> Option<Layout> {
    DELIMITERS.into_iter().find_map(|delimiter| find_by(head, delimiter, &accept))
}

/// [`find`] by one delimiter.
pub fn find_by(head: &str, delimiter: u8, accept: impl Fn(&[String]) -> bool) -> Option<Layout> {
    rows_of(head, delimiter, HEADER_WITHIN).into_iter().enumerate().find_map(|(above, row)| {
        let names: Vec<String> = row.iter().map(|name| column(name)).collect();
        let filled = names.iter().filter(|name| !name.is_empty()).count();
        (filled >= 2 && accept(&names)).then_some(Layout { delimiter, above, names, shown: row })
    })
}

/// The first rows of a head. The last of them may be cut.
pub fn rows_of(head: &str, delimiter: u8, most: usize) -> Vec<Vec<String>> {
    let mut reader = reader_of(head.as_bytes(), delimiter, 4 * 1024);
    let mut record = StringRecord::new();
    let mut rows = Vec::new();
    while rows.len() < most && reader.read_record(&mut record).unwrap_or(false) {
        rows.push(record.iter().map(|field| field.trim().to_owned()).collect());
    }
    rows
}

fn reader_of<R: Read>(input: R, delimiter: u8, buffer: usize) -> csv::Reader<R> {
    let mut builder = ReaderBuilder::new();
    builder.has_headers(false).flexible(true).delimiter(delimiter).buffer_capacity(buffer);
    builder.from_reader(input)
}

/// Where in its quotes a text is, as the reader of rows takes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quote {
    None,
    Open,
    /// Behind one that ends the field, or is the first of two.
    Ended,
}

/// Follows the quotes of a text: the reader says nothing of one that is open at the end.
struct Quotes {
    delimiter: u8,
    before: u8,
    at: Quote,
}

impl Quotes {
    fn follow(&mut self, text: &[u8]) {
        let mut rest = text;
        while let Some(next) = self.step(rest) {
            rest = next;
        }
        self.before = text.last().copied().unwrap_or(self.before);
    }

    /// Goes on behind the next quote; none at the end.
    fn step<'a>(&mut self, rest: &'a [u8]) -> Option<&'a [u8]> {
        let first = *rest.first()?;
        if self.at == Quote::Ended {
            let is_second = first == b'"';
            self.at = if is_second { Quote::Open } else { Quote::None };
            self.before = first;
            return rest.get(1..);
        }
        let at = memchr(b'"', rest)?;
        let before = at.checked_sub(1).and_then(|at| rest.get(at)).copied();
        let before = before.unwrap_or(self.before);
        // One within a field that has none at its begin is text.
        let begins = before == self.delimiter || matches!(before, b'\n' | b'\r');
        self.at = match self.at {
            Quote::Open => Quote::Ended,
            _other if begins => Quote::Open,
            other => other,
        };
        self.before = b'"';
        rest.get(at.saturating_add(1)..)
    }
}

/// Where the lines of a text begin that are not blank: the reader counts a CRLF's LF, and blank
/// lines, only once it reads the row behind them.
struct Begins {
    /// The byte and the number of each line that no row was told of yet.
    known: VecDeque<(u64, u64)>,
    byte: u64,
    line: u64,
    is_within: bool,
    after_cr: bool,
}

impl Begins {
    fn new() -> Self {
        Self { known: VecDeque::new(), byte: 0, line: 1, is_within: false, after_cr: false }
    }

    /// LF, CRLF or CR end a line.
    fn follow(&mut self, text: &[u8]) {
        let mut rest = text;
        while !rest.is_empty() {
            let end = memchr2(b'\n', b'\r', rest);
            let length = end.unwrap_or(rest.len());
            if length > 0 && !self.is_within {
                self.known.push_back((self.byte, self.line));
            }
            if length > 0 {
                self.is_within = true;
                self.after_cr = false;
            }
            self.byte = self.byte.saturating_add(u64::try_from(length).unwrap_or(0));
            let Some(ended) = end.and_then(|at| rest.get(at)) else { return };
            let is_second = self.after_cr && *ended == b'\n';
            self.line = self.line.saturating_add(u64::from(!is_second));
            self.byte = self.byte.saturating_add(1);
            self.after_cr = *ended == b'\r';
            self.is_within = false;
            rest = rest.get(length.saturating_add(1)..).unwrap_or_default();
        }
    }

    /// The line of the row that the reader read from this byte on.
    fn line_from(&mut self, byte: u64) -> Option<u64> {
        while self.known.front().is_some_and(|(begin, _)| *begin < byte) {
            self.known.pop_front();
        }
        self.known.front().map(|(_, line)| *line)
    }
}

/// Ends in an error where a row is longer than any.
struct Metered {
    text: Decoded,
    since: usize,
    /// What came last: where it was the end of a line, nothing shows that a file was cut there.
    last: u8,
    quotes: Quotes,
    begins: Begins,
    /// All was read.
    is_over: bool,
}

impl Metered {
    fn ended(&self) -> bool {
        matches!(self.last, b'\n' | b'\r')
    }
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut rest = self.text.fill_buf()?;
        let read = rest.read(buffer)?;
        self.text.consume(read);
        self.since = self.since.saturating_add(read);
        // Blanks and the marks of an end that old systems write are no part of a row.
        let is_text = |byte: &&u8| !matches!(byte, b' ' | b'\t' | 0 | 0x1a);
        let text = buffer.get(..read).unwrap_or_default();
        if let Some(last) = text.iter().rev().find(is_text) {
            self.last = *last;
        }
        self.quotes.follow(text);
        self.begins.follow(text);
        self.is_over |= read == 0 && !buffer.is_empty();
        if self.since > ROW_MAX {
            return Err(io::Error::other("a row of more than 4 MiB: is a quote not closed?"));
        }
        Ok(read)
    }
}

/// How rows are cut out of the text.
enum Rows {
    Delimited(Box<csv::Reader<Metered>>),
    /// Each line is a row, and each field stands in these columns of it, from 0.
    Fixed(Box<Lines>, Vec<Range<usize>>),
}

/// A file's rows, one after the other.
pub struct Sheet {
    rows: Rows,
    record: StringRecord,
    delimiter: u8,
    line: u64,
    byte: u64,
}

/// A row.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    /// The line that it begins on.
    pub line: u64,
    /// Where it begins, in bytes of the decoded text.
    pub byte: u64,
    record: &'a StringRecord,
    delimiter: u8,
    is_open: bool,
    is_last: bool,
    /// A field that is not believed.
    hidden: Option<usize>,
}

impl Sheet {
    /// Begins to read at the first row.
    pub fn new(source: Source, delimiter: u8) -> Self {
        let quotes = Quotes { delimiter, before: b'\n', at: Quote::None };
        let text = source.into_text();
        let text =
            Metered { text, since: 0, last: 0, quotes, begins: Begins::new(), is_over: false };
        let reader = reader_of(text, delimiter, 64 * 1024);
        let rows = Rows::Delimited(Box::new(reader));
        Self { rows, record: StringRecord::new(), delimiter, line: 0, byte: 0 }
    }

    /// Begins to read rows whose fields stand in fixed columns of the line.
    pub fn fixed(source: Source, fields: Vec<Range<usize>>) -> Self {
        let rows = Rows::Fixed(Box::new(source.into_lines()), fields);
        Self { rows, record: StringRecord::new(), delimiter: b'|', line: 0, byte: 0 }
    }

    /// Reads one more row that is not blank; false at the end.
    ///
    /// # Errors
    /// Where the input breaks off, or a quote is not closed.
    pub fn advance(&mut self) -> Result<bool, Problem> {
        loop {
            if !self.read()? {
                return Ok(false);
            }
            if !self.row().is_blank() {
                return Ok(true);
            }
        }
    }

    /// Reads one more row, blank or not; false at the end.
    fn read(&mut self) -> Result<bool, Problem> {
        match &mut self.rows {
            Rows::Delimited(reader) => {
                reader.get_mut().since = 0;
                let from = reader.position().clone();
                let read = reader.read_record(&mut self.record);
                let line = reader.get_mut().begins.line_from(from.byte());
                let line = line.unwrap_or_else(|| from.line());
                if read.map_err(|error| broken(line, error))? {
                    (self.line, self.byte) = (line, from.byte());
                    self.no_open_quote()?;
                    return Ok(true);
                }
                self.no_open_quote()?;
                Ok(false)
            }
            Rows::Fixed(lines, fields) => {
                let more = lines.advance()?;
                if more {
                    self.line = lines.number();
                    self.byte = lines.byte();
                    cut(lines.text(), fields, &mut self.record);
                }
                Ok(more)
            }
        }
    }

    /// Whether the last row lacks the end of its line, once all of them were read.
    fn is_cut(&self) -> bool {
        match &self.rows {
            Rows::Delimited(reader) => !reader.get_ref().ended(),
            Rows::Fixed(..) => false,
        }
    }

    /// The row that was read.
    pub fn row(&self) -> Row<'_> {
        let (line, byte) = (self.line, self.byte);
        let (record, delimiter) = (&self.record, self.delimiter);
        let (is_open, is_last) = (self.is_open(), self.is_last());
        Row { line, byte, record, delimiter, is_open, is_last, hidden: None }
    }

    /// Whether the row that was read ends with the file, and not with its line. A last field that
    /// ends with its own quote is whole.
    fn is_open(&self) -> bool {
        let Rows::Delimited(reader) = &self.rows else { return false };
        let text = reader.get_ref();
        let is_closed = text.last == b'"' && text.quotes.at == Quote::Ended;
        self.is_last() && !is_closed
    }

    /// The same, whether its last field is whole or not.
    fn is_last(&self) -> bool {
        let Rows::Delimited(reader) = &self.rows else { return false };
        let text = reader.get_ref();
        text.is_over && !text.ended()
    }

    /// Whether a quote is open at the end of the file.
    fn ends_in_quotes(&self) -> bool {
        let Rows::Delimited(reader) = &self.rows else { return false };
        let text = reader.get_ref();
        text.is_over && text.quotes.at == Quote::Open
    }

    fn no_open_quote(&self) -> Result<(), Problem> {
        let has_lines = memchr::memchr2(b'\n', b'\r', self.record.as_slice().as_bytes()).is_some();
        if !has_lines && !self.ends_in_quotes() {
            return Ok(());
        }
        if self.ends_in_quotes() {
            let found = "one that is open at the end of the file";
            return Err(Problem::error(self.line, "row", "each quote closed", found));
        }
        let width = self.record.len();
        let delimiters = |line: &str| line.bytes().filter(|b| *b == self.delimiter).count();
        let swallowed = |field: &str| {
            let within = field.contains('\n') || field.contains('\r');
            within && field.lines().skip(1).any(|line| delimiters(line) >= 3.max(width / 2))
        };
        if self.record.iter().any(swallowed) {
            let found = "a field that holds rows";
            return Err(Problem::error(self.line, "row", "each quote closed", found));
        }
        Ok(())
    }
}

fn broken(line: u64, error: csv::Error) -> Problem {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => unreadable(line, &error),
        _other => Problem::error(line, "row", "text", "bytes that are none"),
    }
}

/// Counts characters, as the descriptions of such files do.
fn cut(line: &str, fields: &[Range<usize>], record: &mut StringRecord) {
    record.clear();
    let characters: Vec<char> = line.chars().collect();
    for field in fields {
        let end = field.end.min(characters.len());
        let text = characters.get(field.start.min(end)..end).unwrap_or_default();
        record.push_field(&text.iter().collect::<String>());
    }
}

impl<'a> Row<'a> {
    /// A field without the blanks around it; empty where there is none.
    pub fn get(&self, at: usize) -> &'a str {
        self.field(at).trim()
    }

    /// A field as it stands.
    pub fn field(&self, at: usize) -> &'a str {
        let field = self.record.get(at).filter(|_| self.hidden != Some(at));
        field.unwrap_or_default()
    }

    /// The same row without what one of its fields says.
    pub fn without(self, at: usize) -> Self {
        Self { hidden: Some(at), ..self }
    }

    /// Whether it is the last row and its line does not end: the file may be cut within its last
    /// field.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether it is the last row and its line does not end, though its last field may be whole:
    /// the file may be cut between two of its fields.
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// Whether this field may be cut.
    pub fn may_be_cut(&self, at: usize) -> bool {
        self.is_open && at.saturating_add(1) == self.width()
    }

    /// [`Self::get`] of a column that need not be there.
    pub fn maybe(&self, at: Option<usize>) -> &'a str {
        at.map_or("", |at| self.get(at))
    }

    /// How many fields it has.
    pub fn width(&self) -> usize {
        self.record.len()
    }

    /// Whether every field is blank; so is the mark of an end that old systems write, and the
    /// zeros that fill a block behind it.
    pub fn is_blank(&self) -> bool {
        let is_blank = |c: char| c.is_whitespace() || matches!(c, '\u{1a}' | '\0');
        self.record.iter().all(|field| field.chars().all(is_blank))
    }

    /// The row as text again, cut at [`RAW_MAX`].
    pub fn raw(&self) -> String {
        let mut raw =
            String::with_capacity(self.record.as_slice().len().saturating_add(self.record.len()));
        let delimiter = char::from(self.delimiter);
        let is_plain = |byte: u8| !matches!(byte, b'"' | b'\n' | b'\r') && byte != self.delimiter;
        let is_plain = self.record.as_slice().bytes().all(is_plain);
        for (at, field) in self.record.iter().enumerate() {
            if at > 0 {
                raw.push(delimiter);
            }
            if !is_plain && field.contains(['"', '\n', '\r', delimiter]) {
                raw.push('"');
                raw.push_str(&field.replace('"', "\"\""));
                raw.push('"');
            } else {
                raw.push_str(field);
            }
        }
        while raw.len() > RAW_MAX {
            let cut = (0..=RAW_MAX).rev().find(|at| raw.is_char_boundary(*at));
            raw.truncate(cut.unwrap_or(0));
        }
        raw
    }

    /// Holds the width against the header's: blanks beyond it are passed over, fields are not;
    /// fewer fields are a row that was cut.
    pub fn fits(&self, layout: &Layout) -> Result<(), Problem> {
        let width = layout.names.len();
        let beyond = (width..self.width()).any(|at| !self.get(at).is_empty());
        // A delimiter at the end of the header row alone is no column.
        let named = layout.names.iter().rposition(|name| !name.is_empty());
        let least = named.map_or(0, |last| last.saturating_add(1));
        if beyond || self.width() < least {
            let (expected, found) = (format!("{width} fields"), self.width().to_string());
            return Err(Problem::error(self.line, "row", expected, found));
        }
        Ok(())
    }
}

/// Where a report puts what it says.
#[derive(Debug, Default)]
pub struct Out {
    items: VecDeque<Item>,
    entries: u64,
    statements: u64,
    open: bool,
    cut: bool,
}

impl Out {
    /// One more item.
    pub fn push(&mut self, item: impl Into<Item>) {
        self.items.push_back(item.into());
    }

    /// More items, or none.
    pub fn extend(&mut self, items: impl IntoIterator<Item = Problem>) {
        self.items.extend(items.into_iter().map(Item::from));
    }

    /// The day that a field of a report tells; what cannot be read, or could be two, is a warning.
    pub fn day(&mut self, line: u64, field: &str, text: &str, order: Order) -> Option<NaiveDate> {
        let found = day(text, order);
        let expected = "a date, as 2026-12-31";
        self.extend(unread_day(line, field, text, expected, found));
        found
    }

    /// The problems among what waits to be told.
    #[cfg(test)]
    pub fn problems(&self) -> Vec<Problem> {
        let problems = self.items.iter().filter_map(|item| match item {
            Item::Problem(problem) => Some(problem.as_ref().clone()),
            _other => None,
        });
        problems.collect()
    }

    /// Begins a statement.
    pub fn begin(&mut self, line: u64, finality: Finality, fill: impl FnOnce(&mut Statement)) {
        self.statements = self.statements.saturating_add(1);
        let mut statement = Statement::at(self.statements, line, finality);
        fill(&mut statement);
        self.open = true;
        self.push(statement);
    }

    /// Ends the statement that is open.
    pub fn end(&mut self, end: StatementEnd) {
        if self.open {
            self.open = false;
            self.push(end);
        }
    }

    /// Whether a statement is open.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Whether the file ended without the end of its last line: known at the end of its rows.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// An entry of one line that stands for `row`; `signed` says the direction.
    pub fn entry(&mut self, row: &Row<'_>, signed: i64, currency: Currency) -> (Entry, Line) {
        self.entries = self.entries.saturating_add(1);
        let direction = if signed < 0 { Direction::Debit } else { Direction::Credit };
        let entry = Entry {
            number: self.entries,
            line: row.line,
            minor: signed.saturating_abs(),
            currency,
            direction,
            reversal: false,
            status: EntryStatus::Booked,
            booked_on: None,
            value_on: None,
            bank_reference: None,
            type_code: None,
            batch: None,
        };
        let line = Line { byte: row.byte, raw: row.raw(), ..Line::of(&entry) };
        (entry, line)
    }

    /// Tells an entry and its line; what the entry says of kind and day holds for the line.
    pub fn tell(&mut self, entry: Entry, line: Line) {
        let way = entry.direction;
        self.tell_the_way(entry, line, way);
    }

    /// The same, of a line that went another way than its entry is booked.
    pub fn tell_the_way(&mut self, entry: Entry, mut line: Line, way: Direction) {
        line.direction = way;
        line.reversal = entry.reversal;
        line.booked_on = line.booked_on.or(entry.booked_on);
        if line.type_code.is_none() {
            line.type_code.clone_from(&entry.type_code);
        }
        self.push(entry);
        self.push(line);
    }
}

/// An amount of a currency.
pub fn money(minor: i64, currency: Currency) -> Option<SignedMoney> {
    Some(SignedMoney { minor, currency })
}

/// A text, unless it is empty.
pub fn some(text: &str) -> Option<String> {
    Some(text).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Reads a currency of a field.
///
/// # Errors
/// Where it is none.
pub fn currency(row: &Row<'_>, field: &str, text: &str) -> Result<Currency, Problem> {
    Currency::parse_any(text)
        .map_err(|_unknown| Problem::error(row.line, field, "an ISO 4217 currency", text))
}

/// What a report makes of its rows.
pub trait Report: Send {
    /// A row of the body.
    ///
    /// # Errors
    /// Where this row cannot be read; the rows after it still are.
    fn row(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem>;

    /// The file ended; `line` is the last row's.
    fn end(&mut self, line: u64, out: &mut Out);

    /// What the last column says, and how many decimals an amount there may have, for a row whose
    /// line does not end; none where that decides nothing, or where other figures prove it.
    fn last(&self, _row: &Row<'_>, _at: usize) -> Option<(Last, u32)> {
        None
    }
}

/// A report being read.
struct Reading<R> {
    sheet: Sheet,
    report: R,
    out: Out,
    ended: bool,
    /// The columns as the header row names them, and what it means where that row ends the file
    /// and not its line.
    header: Option<(Vec<String>, Severity)>,
    rows: u64,
    ends: Ends,
}

impl<R: Report> Reading<R> {
    fn new(sheet: Sheet, report: R, header: Option<(Vec<String>, Severity)>) -> Self {
        let (out, ends) = (Out::default(), Ends::default());
        Self { sheet, report, out, ended: false, header, rows: 0, ends }
    }

    fn row(&mut self) -> Result<(), Problem> {
        self.rows = self.rows.saturating_add(1);
        let row = self.sheet.row();
        let at = row.width().saturating_sub(1);
        let Some((last, places)) = self.report.last(&row, at) else {
            return self.report.row(&row, &mut self.out);
        };
        if !row.is_open() {
            self.ends.add(&row, at, last);
            return self.report.row(&row, &mut self.out);
        }
        let names = self.header.as_ref().and_then(|(names, _)| names.get(at));
        let name = names.map_or("", String::as_str);
        if let Some(problem) = self.ends.cut(&row, at, last, places, name) {
            self.out.push(problem);
        }
        if last != Last::Other {
            return self.report.row(&row, &mut self.out);
        }
        self.out.extend(unbelieved(&row, at, name));
        self.report.row(&row.without(at), &mut self.out)
    }

    /// Where the header row is all there is, and its line does not end, columns and rows may lack.
    fn cut_header(&mut self) {
        let Some((names, severity)) = self.header.as_ref().filter(|_| self.rows == 0) else {
            return;
        };
        if self.sheet.is_cut() {
            let (expected, found) =
                ("the end of its line", names.last().map_or("", String::as_str));
            let problem = Problem::error(self.sheet.line, "header row", expected, found);
            self.out.push(Problem { severity: *severity, ..problem });
        }
    }
}

/// Of a reference that was cut another one may be left: it is not believed, and that is said.
pub fn unbelieved(row: &Row<'_>, at: usize, name: &str) -> Option<Problem> {
    let expected = "the end of the last line: nothing shows that this is whole, and it is not \
                    believed";
    let text = Some(row.get(at)).filter(|text| !text.is_empty() && row.may_be_cut(at))?;
    Some(Problem::warning(row.line, name, expected, text))
}

impl<R: Report> Parse for Reading<R> {
    fn next(&mut self) -> Result<Option<Item>, Problem> {
        loop {
            if let Some(item) = self.out.items.pop_front() {
                return Ok(Some(item));
            }
            if self.ended {
                return Ok(None);
            }
            if self.sheet.advance()? {
                if let Err(problem) = self.row() {
                    self.out.push(problem);
                }
            } else {
                self.ended = true;
                self.out.cut = self.sheet.is_cut();
                self.cut_header();
                self.report.end(self.sheet.line, &mut self.out);
            }
        }
    }
}

/// Says one problem, and nothing else.
struct Refused(Option<Problem>);

impl Parse for Refused {
    fn next(&mut self) -> Result<Option<Item>, Problem> {
        self.0.take().map_or(Ok(None), Err)
    }
}

/// A file that cannot be read at all.
pub fn refused(problem: Problem) -> Box<dyn Parse> {
    Box::new(Refused(Some(problem)))
}

/// Whether a cell is empty, as some write it beside amounts: a dash and nothing else.
pub fn is_dash(text: &str) -> bool {
    matches!(text.trim(), "-" | "–" | "—")
}

/// Reads rows from the first one on.
pub fn read<R: Report + 'static>(source: Source, delimiter: u8, report: R) -> Box<dyn Parse> {
    let sheet = Sheet::new(source, delimiter);
    Box::new(Reading::new(sheet, report, None))
}

/// Reads rows whose fields stand in fixed columns of the line.
pub fn read_fixed<R: Report + 'static>(
    source: Source,
    fields: Vec<Range<usize>>,
    report: R,
) -> Box<dyn Parse> {
    let sheet = Sheet::fixed(source, fields);
    Box::new(Reading::new(sheet, report, None))
}

/// Reads rows below the header row that `accept` takes, by the report that `build` makes of it.
pub fn read_below<R: Report + 'static>(
    mut source: Source,
    accept: impl Fn(&[String]) -> bool,
    build: impl FnOnce(Layout) -> Result<R, Problem>,
) -> Box<dyn Parse> {
    let layout = match source.head() {
        Ok(head) => find(&String::from_utf8_lossy(head), accept),
        Err(error) => return refused(unreadable(1, &error)),
    };
    let Some(layout) = layout else {
        let expected = "a header row with the columns of this format";
        return refused(Problem::error(1, "header row", expected, "none"));
    };
    read_layout(source, layout, Severity::Error, build)
}

/// [`read_below`] a header row that was found; `cut` is what it means where nothing but that row is
/// there, and no end of its line.
pub fn read_layout<R: Report + 'static>(
    source: Source,
    layout: Layout,
    cut: Severity,
    build: impl FnOnce(Layout) -> Result<R, Problem>,
) -> Box<dyn Parse> {
    let (delimiter, above) = (layout.delimiter, layout.above);
    let mut sheet = Sheet::new(source, delimiter);
    // Blank rows above the header were counted when it was found.
    for _row in 0..=above {
        if let Err(problem) = sheet.read() {
            return refused(problem);
        }
    }
    let header = Some((layout.shown.clone(), cut));
    match build(layout) {
        Ok(report) => Box::new(Reading::new(sheet, report, header)),
        Err(problem) => refused(problem),
    }
}

/// What a report tells of its last entry: its amount, and what its line is compared by.
#[cfg(test)]
pub fn compared_by(mut parser: Box<dyn Parse>) -> String {
    let mut told = String::new();
    while let Some(item) = parser.next().unwrap() {
        match item {
            Item::Entry(entry) => told = format!("of {} {}: ", entry.minor, entry.currency),
            Item::Line(line) => match line.gross {
                Some(gross) => told += &format!("{} {}", gross.minor, gross.currency),
                None => told.push('-'),
            },
            _other => {}
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_however_they_are_written() {
        for (name, want) in [
            ("Gross Debit (GC)", "gross debit gc"),
            ("gross_debit_gc", "gross debit gc"),
            (" GROSS  DEBIT-(GC) ", "gross debit gc"),
            ("payment_metadata[order]", "payment metadata order"),
            ("Währung", "währung"),
            ("İşlem Tarihi", "işlem tarihi"),
            ("", ""),
        ] {
            assert_eq!(normal(name), want);
        }
    }

    #[test]
    fn a_column_that_stands_twice_or_lacks_is_named_with_its_places() {
        let text = "Payable (SC),Day,Fee,payable_sc,Day\n1,2,3,4,5\n";
        let layout = find(text, |names| has(names, &["fee"])).unwrap();
        let said = |found: Result<usize, Problem>| found.unwrap_err().to_string();
        let want = "line 1: Payable (SC): expected one column of this name, found 2 of them, \
                    columns 1 and 4";
        assert_eq!(said(layout.need("payable sc")), want);
        assert!(layout.one(&["none", "day"]).is_err() && layout.each(&["fee", "day"]).is_err());
        assert_eq!((layout.one(&["fee"]), layout.one(&["none"])), (Ok(Some(2)), Ok(None)));
        assert!(said(layout.need("fees")).contains("`Fee` is near to it"));
        assert!(said(layout.need("payable")).contains("`Payable (SC)` is near to it"));
    }

    #[test]
    fn a_header_is_found_under_words_and_by_any_delimiter() {
        for (delimiter, text) in [
            (b',', "Report of June,,\n\nA,B,C\n1,2,3\n".to_owned()),
            (b';', "sep=;\nA;B;C\n1;2;3\n".to_owned()),
            (b'\t', "A\tB\tC\n1\t2\t3\n".to_owned()),
        ] {
            let layout = find(&text, |names| has(names, &["a", "c"])).unwrap();
            assert_eq!(layout.delimiter, delimiter, "{text:?}");
            assert_eq!(layout.column(&["x", "c"]), Some(2));
        }
        assert_eq!(find("A,B\n1,2\n", |names| has(names, &["a", "c"])), None);
    }

    fn rows(text: &str) -> Result<Vec<Vec<String>>, Problem> {
        let input = Box::new(io::Cursor::new(text.as_bytes().to_vec()));
        let mut sheet = Sheet::new(Source::open(input, None).unwrap(), b',');
        let mut rows = Vec::new();
        while sheet.advance()? {
            let row = sheet.row();
            rows.push((0..row.width()).map(|at| row.get(at).to_owned()).collect());
        }
        Ok(rows)
    }

    #[test]
    fn a_row_is_told_by_the_line_that_it_begins_on() {
        let lines = |text: &str| {
            let input = Box::new(io::Cursor::new(text.as_bytes().to_vec()));
            let mut sheet = Sheet::new(Source::open(input, None).unwrap(), b',');
            let mut lines = Vec::new();
            while sheet.advance().unwrap() {
                lines.push(sheet.row().line);
            }
            lines
        };
        for (text, want) in [
            ("a,b\nc,d\ne,f\n", [1, 2, 3]),
            ("a,b\n\n\nc,d\n\ne,f", [1, 4, 6]),
            ("\na,\"b\nb\"\nc,\"\n\nd\"\ne,f\n", [2, 4, 7]),
        ] {
            for end in ["\n", "\r\n", "\r"] {
                let text = text.replace('\n', end);
                assert_eq!(lines(&text), want, "{text:?}");
                assert_eq!(lines(&format!("\u{feff}{text}")), want, "{text:?}");
            }
        }
        // Rows are told of that the reader's buffer ends within.
        let many = "some,words\r\n".repeat(20_000);
        assert_eq!(lines(&many).last(), Some(&20_000));
    }

    #[test]
    fn rows_are_not_swallowed_by_an_open_quote() {
        let good = "a,\"b\nb\",c,d\n\n,,,\n1,2,3,4\n";
        assert_eq!(rows(good).unwrap().len(), 2);
        let open = "a,\"b,c,d\n1,2,3,4\n5,6,7,8\n";
        assert_eq!(rows(open).unwrap_err().expected, "each quote closed");
        let endless = format!("a,\"{}", "x".repeat(ROW_MAX + 1024 * 1024));
        assert!(rows(&endless).unwrap_err().found.contains("quote"));
    }
}
