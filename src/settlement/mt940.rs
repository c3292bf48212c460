//! MT940 and MT942: SWIFT customer statements and interim reports, as banks write them.
//!
//! Source: SWIFT standards MT, category 9, and the German banks' "DFÜ-Abkommen, Anlage 3",
//! chapter 8.2. `:61:` marks: `C` in, `D` out, `RC` a credit taken back (money out), `RD` a debit
//! taken back (money in), `EC` and `ED` expected. The entry date has no year and takes the one
//! nearest to the value date. Pages of a statement (`:62M:` followed by `:60M:` of the same account
//! and number) are one statement: each begins where the one before it ended, and a last one that
//! ends in `:62M:` was to go on; a file may be one page. A message needs no envelope, and its end
//! needs no mark, but one that has an envelope needs its end, and a statement needs its closing
//! balance: without it the file may have been cut. MT941, the balance report, lists no movements:
//! it is named, and not read.

use std::borrow::Cow;
use std::collections::VecDeque;

use chrono::NaiveDate;

use crate::model::money::Currency;
use crate::model::settlement::{
    Balance, Control, Direction, Entry, EntryStatus, Finality, Found, Line, LineKind, Problem,
    RAW_MAX, Severity, Statement, StatementEnd, TagKind, Tie,
};
use crate::settlement::amount::{Refused, mmdd, shown, signed, unsigned, yymmdd};
use crate::settlement::kinds;
use crate::settlement::mt940_frame::{self, Frame};
use crate::settlement::mt940_text;
use crate::settlement::sheet;
use crate::settlement::tags::is_blank_in_mt940;
use crate::settlement::text::{Lines, Source};
use crate::settlement::twice::Twice;
use crate::settlement::{Item, Parse};

/// The fields of both messages; anything else that begins with a colon is text.
const TAGS: [&str; 24] = [
    "20", "21", "25", "25P", "28", "28C", "13", "13D", "60", "60F", "60M", "61", "86", "62", "62F",
    "62M", "64", "65", "34F", "90D", "90C", "NS", "940", "942",
];

/// The fields that hold a figure and nothing behind it.
const FIGURES: [&str; 7] = ["62", "62F", "62M", "64", "65", "90D", "90C"];

/// What stands in place of the hyphen of `-}` where a message went through a word processor or a
/// PDF. ING's own sample has the first, a soft hyphen, and is copied widely.
const DASHES: [char; 8] =
    ['\u{ad}', '\u{2010}', '\u{2011}', '\u{2012}', '\u{2013}', '\u{2014}', '\u{2015}', '\u{2212}'];

/// Lines after a lone `-`, kept until it is known whether they are text or an envelope.
const AFTER_DASH: usize = 50;

/// No `:86:` is nearly so long; the rest of a longer one is left out of its text.
const FIELD_LINES: usize = 500;

/// So many unreadable sums of one statement wait for its balances.
const UNREAD: usize = 50;

/// What stands for a line end in messages as FinTS (HBCI) carries them.
const BREAK: &str = "@@";

/// MT940: balances, or entries of an account without a floor limit.
pub fn recognise_statement(head: &str) -> Option<String> {
    let has = |tag: &str| has_tag(head, tag);
    let booked = ["60", "60F", "60M", "62", "62F", "62M"].into_iter().any(has);
    let bare = has("61") && has("25") && !has("34F") && !has("13D");
    (booked || bare || run_on(head, &[":60F:", ":60M:"])).then(String::new)
}

/// MT942: a floor limit or a time, and no balances.
pub fn recognise_report(head: &str) -> Option<String> {
    let has = |tag: &str| has_tag(head, tag);
    let interim = has("34F") || has("13D") || has("90D") || has("90C");
    let named = interim && (has("20") || has("25") || has("61"));
    (named || run_on(head, &[":34F:", ":13D:"])).then(String::new)
}

/// Whether a message stands on one row, with one of these fields in it.
fn run_on(head: &str, fields: &[&str]) -> bool {
    let is_one = |row: &&str| mt940_frame::is_run_on(row);
    let begun = head.trim_start().starts_with([':', '{', '\u{1}']);
    let row = head.lines().find(is_one).filter(|_| begun);
    row.is_some_and(|row| fields.iter().any(|field| row.contains(field)))
}

/// MT941: balances, and the sums of what it does not list.
fn is_balance_report(head: &str) -> bool {
    let has = |tag: &str| has_tag(head, tag);
    if has("61") || has("34F") {
        return false;
    }
    let counts = |field: &str| {
        head.match_indices(field).any(|(at, _)| {
            let behind = head.get(at.saturating_add(field.len())..).unwrap_or_default();
            behind.bytes().take_while(u8::is_ascii_digit).any(|digit| digit != b'0')
        })
    };
    let has_balance = ["60", "60F", "62", "62F"].into_iter().any(has);
    let is_named = head.contains("{2:I941") || head.contains("{2:O941");
    is_named || (has_balance && (counts(":90D:") || counts(":90C:")))
}

fn has_tag(head: &str, tag: &str) -> bool {
    let field = format!(":{tag}:");
    head.match_indices(&field).any(|(at, _)| {
        let before = head.get(..at).unwrap_or_default().trim_end_matches([' ', '\t']);
        before.is_empty()
            || before.ends_with(['\n', '\r', '{', '\u{1}'])
            || before.ends_with("{4:")
            || before.ends_with(BREAK)
    })
}

/// Begins to read.
pub fn open(mut source: Source) -> Box<dyn Parse> {
    let head = source.head().map(|head| String::from_utf8_lossy(head).into_owned());
    if head.as_ref().is_ok_and(|head| is_balance_report(head)) {
        let expected = "a message that lists movements (MT940, MT942)";
        let found = "MT941, a balance report: it lists none";
        return sheet::refused(Problem::error(1, "message", expected, found));
    }
    let fallback = head.ok().and_then(|head| only_currency(&head));
    Box::new(Mt940 {
        fallback,
        lines: source.into_lines(),
        items: VecDeque::new(),
        field: None,
        after_dash: None,
        statements: 0,
        entries: 0,
        head: Head::default(),
        open: None,
        paused: None,
        entry: None,
        block: None,
        frame: Frame::default(),
        heading: String::new(),
        twice: Twice::default(),
        ended: false,
        is_cut: false,
    })
}

/// A field with its continuation lines.
struct Field {
    tag: String,
    line: u64,
    byte: u64,
    rows: Vec<String>,
}

impl Field {
    fn first(&self) -> &str {
        self.rows.first().map_or("", |row| row.trim())
    }
}

/// What stands before a statement's balances.
#[derive(Debug, Clone, Default)]
struct Head {
    line: u64,
    id: Option<String>,
    account: Option<String>,
    number: Option<String>,
    currency: Option<Currency>,
    day: Option<NaiveDate>,
    interim: bool,
    /// Whether there is a limit below which credits are not listed, and one of debits.
    floor: [bool; 2],
    /// The currency of the limits.
    of_floor: Option<Currency>,
    has_floor: bool,
    has_time: bool,
    seen: bool,
}

impl Head {
    /// The fields of an interim report that it lacks.
    fn missing(&self) -> Option<String> {
        let fields = [
            (":20:", self.id.is_some()),
            (":25:", self.account.is_some()),
            (":28C:", self.number.is_some()),
            (":34F:", self.has_floor),
            (":13D:", self.has_time),
        ];
        let missing = fields.into_iter().filter(|(_, is_there)| !is_there).map(|(name, _)| name);
        let missing: Vec<&str> = missing.collect();
        (!missing.is_empty()).then(|| missing.join(", "))
    }
}

/// A statement that is being read.
struct Open {
    head: Head,
    told: bool,
    currency: Option<Currency>,
    opening: Option<Balance>,
    closing: Option<Balance>,
    /// Whether the last closing balance was that of a page.
    page: bool,
    /// A further page went on with it.
    resumed: bool,
    /// The number with the last page's.
    last_number: Option<String>,
    sums: Sums,
    declared: Declared,
    /// Where a declared sum holds only by the marks' letters.
    by_letter: Option<u64>,
    /// Declared sums that cannot be read: errors, unless balances prove what they would.
    unread: Vec<Problem>,
    texts: Texts,
    failed: bool,
}

/// Where the texts of a statement stand (`:86:`): each belongs to the entry before it.
#[derive(Debug, Clone, Copy, Default)]
struct Texts {
    /// Those that stand before the first entry: the last one's line, and how many.
    stray: Option<(u64, u32)>,
    /// A first `:61:` came, whether it can be read or not.
    begun: bool,
    entries: u64,
    with_text: u64,
    last_has_one: bool,
}

impl Texts {
    /// An entry ended that has so many.
    fn add(&mut self, texts: u32) {
        self.last_has_one = texts > 0;
        self.entries = self.entries.saturating_add(1);
        self.with_text = self.with_text.saturating_add(u64::from(self.last_has_one));
    }

    /// One before the first entry, one behind each, and none behind the last: each may be of the
    /// entry behind it, and would be read as another's. Several before the first are a heading.
    fn shifted(&self) -> Option<Problem> {
        let (line, _) = self.stray.filter(|(_, count)| *count == 1)?;
        if self.entries < 2 || self.last_has_one {
            return None;
        }
        let is_each = self.with_text.saturating_add(1) == self.entries;
        let expected = "each text behind the :61: that it is of";
        let found = "one before the first, and none behind the last: whose they are is open";
        is_each.then(|| Problem::error(line, ":86:", expected, found))
    }
}

/// Whether what `:90C:` and `:90D:` say holds, one after the other.
type Declared = [Option<bool>; 2];

/// `:90D:` and `:90C:` of some banks count by the mark's letter, of others by where money went.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    by_way: [(i128, i128); 2],
    by_letter: [(i128, i128); 2],
    /// What the booked ones come to.
    net: i128,
}

struct OpenEntry {
    entry: Entry,
    line: Line,
    /// What the bank adds on the row behind `:61:`.
    further: String,
    text: Vec<String>,
    texts: u32,
}

struct Mt940 {
    /// The one currency that the balances of the file's head are in.
    fallback: Option<Currency>,
    lines: Lines,
    items: VecDeque<Item>,
    field: Option<Field>,
    after_dash: Option<Vec<String>>,
    statements: u64,
    entries: u64,
    head: Head,
    open: Option<Open>,
    /// A statement whose last page ended; the next may go on with it.
    paused: Option<Open>,
    entry: Option<OpenEntry>,
    /// The line on which a message's envelope began that has not ended yet.
    block: Option<u64>,
    frame: Frame,
    /// The first row above the first message, as [`shape`] tells it.
    heading: String,
    twice: Twice,
    ended: bool,
    /// The last line of the file has no end, and its message has none.
    is_cut: bool,
}

impl Parse for Mt940 {
    fn next(&mut self) -> Result<Option<Item>, Problem> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Ok(Some(item));
            }
            if self.ended {
                return Ok(None);
            }
            if self.lines.advance()? {
                let text = self.lines.text().trim_end().to_owned();
                if text.contains("@@:") {
                    text.split(BREAK).for_each(|row| self.row(row.trim_end()));
                } else if mt940_frame::is_run_on(&text) {
                    let rows = mt940_frame::rows_of(&text, |name| TAGS.contains(&name));
                    rows.into_iter().for_each(|row| self.row(row.trim_end()));
                } else {
                    self.row(&text);
                }
            } else {
                self.finish();
            }
        }
    }
}

/// The tag that a row begins with, and the rest.
fn split_tag(row: &str) -> Option<(&str, &str)> {
    let (tag, rest) = row.strip_prefix(':')?.split_once(':')?;
    TAGS.contains(&tag).then_some((tag, rest))
}

/// A row of a bank's own heading, in which messages are counted: a zero for each figure.
fn shape(row: &str) -> String {
    let figure = |c: char| if c.is_ascii_digit() { '0' } else { c };
    row.trim().chars().map(figure).collect()
}

/// What stands behind an end of a message that has another dash, or none.
fn behind_odd_end(row: &str) -> Option<&str> {
    let row = row.trim();
    let rest = row.strip_prefix(DASHES).unwrap_or(row).strip_prefix('}')?;
    (rest.is_empty() || rest.starts_with('{')).then_some(rest)
}

impl Mt940 {
    fn problem(&mut self, problem: Problem) {
        self.items.push_back(problem.into());
    }

    fn row(&mut self, row: &str) {
        let row = row.trim_start_matches(['\u{1}', '\u{2}', '\u{3}', '\u{1a}', '\0']);
        // The end of a message may stand behind any row of it.
        if row.contains("-}") {
            self.block = None;
        }
        if let Some(rest) = behind_odd_end(row).filter(|_| self.is_closed()) {
            self.block = None;
            self.envelope(&format!("-}}{rest}"));
            return;
        }
        let row = row.strip_prefix('-').filter(|rest| self.is_head(rest)).unwrap_or(row);
        let field = split_tag(row.trim_start()).filter(|(tag, rest)| !self.is_time(tag, rest));
        if let Some((tag, rest)) = field {
            // The end of a message may stand behind its last figure.
            let end = rest.find("-}").filter(|_| FIGURES.contains(&tag));
            let (rest, end) = rest.split_at(end.unwrap_or(rest.len()));
            let (tag, rest) = (tag.to_owned(), rest.to_owned());
            self.begin_field(tag, rest);
            if !end.is_empty() {
                self.envelope(end);
            }
            return;
        }
        if row.starts_with("-}") || (row.starts_with('{') && !self.in_text(row)) {
            self.envelope(row);
            return;
        }
        if row == "-" || row == "--" {
            self.after_dash.get_or_insert_default();
            return;
        }
        if let Some(kept) = &mut self.after_dash {
            if kept.len() < AFTER_DASH {
                kept.push(row.to_owned());
            }
            return;
        }
        // Rows before the first field are a bank's own heading, or blocks behind a blank.
        if self.heading.is_empty() && self.field.is_none() && self.statements == 0 {
            self.heading = shape(row);
        }
        if self.field.is_none() {
            self.frame.row(row, self.lines.number());
        }
        if let Some(field) = self.field.as_mut().filter(|field| field.rows.len() < FIELD_LINES) {
            field.rows.push(row.to_owned());
        }
    }

    /// Whether a dash stands before a field of a message's head, as one bank writes it between the
    /// first two.
    fn is_head(&self, rest: &str) -> bool {
        let is_first = self.field.as_ref().is_some_and(|field| field.tag == "20");
        is_first && split_tag(rest).is_some_and(|(tag, _)| tag == "25")
    }

    /// Whether a message with an envelope has told its last figures: only its end is to come.
    fn is_closed(&self) -> bool {
        let is_figure = |field: &Field| FIGURES.contains(&field.tag.as_str());
        let has_figure = self.field.as_ref().is_some_and(is_figure);
        let is_told = self.open.as_ref().is_some_and(|open| open.closing.is_some());
        // A page that goes on has the balance of the one before it, and entries.
        let in_entry = self.entry.is_some() || self.field.as_ref().is_some_and(|f| f.tag == "61");
        self.block.is_some() && (has_figure || is_told && !in_entry)
    }

    /// `2026-11-19T16` ends a row of text and `:20:37` begins the next: a time, and no field.
    fn is_time(&self, tag: &str, rest: &str) -> bool {
        let text = self.field.as_ref().filter(|field| self.entry.is_some() && field.tag == "86");
        let Some(last) = text.and_then(|field| field.rows.last()) else { return false };
        let is_two = |text: &str| text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit());
        let hour = last.rsplit_once('T').map_or("", |(_, hour)| hour);
        let seconds = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        is_two(hour) && is_two(tag) && is_two(seconds)
    }

    /// A brace may begin a row of text; an envelope's has a digit and a colon.
    fn in_text(&self, row: &str) -> bool {
        let is_block = row.get(1..3).is_some_and(|block| {
            block.ends_with(':') && block.starts_with(|c: char| c.is_ascii_digit())
        });
        self.field.is_some() && !is_block
    }

    /// `{1:…}{2:…}{4:` begins a message, `-}` ends one; fields may stand on the same row.
    fn envelope(&mut self, row: &str) {
        if let Some(rest) = row.strip_prefix("-}") {
            self.end_field();
            self.end_message();
            self.envelope(rest);
            return;
        }
        if row.contains("{4:") {
            self.end_field();
            self.end_message();
        }
        let line = self.lines.number();
        if let Some(rest) = self.frame.row(row, line) {
            self.block = Some(line);
            if let Some((tag, rest)) = split_tag(rest.trim_start()) {
                let (tag, rest) = (tag.to_owned(), rest.to_owned());
                self.begin_field(tag, rest);
            }
        }
    }

    fn begin_field(&mut self, tag: String, rest: String) {
        self.frame.field();
        if let Some(kept) = self.after_dash.take() {
            let starts = matches!(tag.as_str(), "20" | "25" | "25P" | "940" | "942");
            if starts {
                self.end_field();
                self.end_message();
            } else if let Some(field) = &mut self.field {
                // The dash was a row of text after all.
                field.rows.push("-".to_owned());
                field.rows.extend(kept);
            }
        }
        self.end_field();
        let (line, byte) = (self.lines.number(), self.lines.byte());
        self.field = Some(Field { tag, line, byte, rows: vec![rest] });
    }

    fn end_field(&mut self) {
        let Some(field) = self.field.take() else { return };
        match field.tag.as_str() {
            "61" => self.movement(&field),
            "86" | "NS" => self.text(&field),
            // Without the letter, a balance is that of the whole statement.
            "60" | "60F" | "60M" => self.opening(&field),
            "62" | "62F" | "62M" => self.closing(&field),
            "90D" | "90C" => self.declared(&field),
            "64" | "65" => self.flush_entry(),
            _head => self.heading(&field),
        }
    }

    fn heading(&mut self, field: &Field) {
        self.flush_entry();
        let has_begun = self.open.is_some();
        let starts = matches!(field.tag.as_str(), "20" | "25" | "25P" | "940" | "942");
        if has_begun && starts {
            self.end_message();
        }
        if !self.head.seen {
            self.head.line = field.line;
            self.head.seen = true;
        }
        let text = Some(field.first().to_owned()).filter(|text| !text.is_empty());
        match field.tag.as_str() {
            "20" => self.head.id = text,
            "25" | "25P" => {
                if TAGS.iter().any(|tag| field.first().contains(&format!(":{tag}:"))) {
                    let expected = "an account, and the next field on a line of its own";
                    self.problem(Problem::error(field.line, ":25:", expected, field.first()));
                }
                let account = text.map(|text| text.trim_start_matches('/').to_owned());
                let named = account.as_deref().and_then(currency_of_account);
                self.head.currency = named.or(self.head.currency);
                self.head.account = account;
            }
            "28" | "28C" => self.head.number = text,
            "34F" => self.floor(field),
            "13" | "13D" => {
                self.head.interim = true;
                self.head.has_time = true;
                self.head.day = field.first().get(..6).and_then(yymmdd);
            }
            "942" => self.head.interim = true,
            _other => {}
        }
    }

    /// The statement that entries and balances belong to.
    fn statement(&mut self, line: u64) -> &mut Open {
        if self.open.is_none() {
            self.end_paused();
            let head = std::mem::take(&mut self.head);
            let head = if head.seen { head } else { Head { line, ..head } };
            self.open = Some(Open::new(head));
        }
        self.open.get_or_insert_with(|| Open::new(Head::default()))
    }

    fn opening(&mut self, field: &Field) {
        self.flush_entry();
        if self.open.as_ref().is_some_and(|open| open.opening.is_some()) {
            // A second opening balance without a head of its own.
            self.end_message();
        }
        let balance = self.balance(field);
        if field.tag == "60M" && self.resume(field.line, balance) {
            return;
        }
        let failed = balance.is_none();
        let open = self.statement(field.line);
        open.opening = balance;
        let named = balance.map(|balance| balance.currency).or_else(|| currency_in(field.first()));
        open.currency = named.or(open.currency);
        open.failed |= failed;
        self.tell_statement();
    }

    /// The next page of the statement that was paused: of the same account and number, as far as
    /// it says them. It begins where the page before it ended, or one between them is missing.
    fn resume(&mut self, line: u64, balance: Option<Balance>) -> bool {
        let Some(paused) = &mut self.paused else { return false };
        let is_same = |own: &Option<String>, other: &Option<String>| {
            own.is_none() || own.as_deref().map(number) == other.as_deref().map(number)
        };
        let has_account = self.head.account.is_none() || self.head.account == paused.head.account;
        let goes_on = match (paused.closing, balance) {
            (Some(closing), Some(balance)) => {
                (closing.minor, closing.currency) == (balance.minor, balance.currency)
            }
            _unread => false,
        };
        if !has_account {
            return false;
        }
        if !is_same(&self.head.number, &paused.head.number) {
            // Where pages have numbers of their own, the balances show that none is missing.
            paused.page &= !goes_on;
            return false;
        }
        let problems = [
            (!goes_on).then(|| another_balance(line, paused.closing, balance)).flatten(),
            page_missing(self.head.line, &paused.last_number, &self.head.number),
        ];
        if let Some(number) = self.head.number.take() {
            paused.last_number = Some(number);
        }
        paused.resumed = true;
        self.open = self.paused.take();
        self.head = Head::default();
        self.items.extend(problems.into_iter().flatten().map(Item::from));
        true
    }

    fn closing(&mut self, field: &Field) {
        self.flush_entry();
        let balance = self.balance(field);
        let failed = balance.is_none();
        let open = self.statement(field.line);
        let again = open.closing.is_some() && !open.page;
        open.closing = balance;
        open.page = field.tag == "62M";
        open.failed |= failed;
        open.currency = open.currency.or(balance.map(|balance| balance.currency));
        self.tell_statement();
        if again {
            let expected = "one for a statement; the last was taken";
            self.problem(Problem::error(field.line, ":62F:", expected, "another"));
        }
    }

    fn balance(&mut self, field: &Field) -> Option<Balance> {
        let known = self.open.as_ref().and_then(|open| open.currency);
        match balance(field, known) {
            Ok((balance, problem)) => {
                self.items.extend(problem.map(Item::from));
                Some(balance)
            }
            Err(problem) => {
                self.problem(problem);
                None
            }
        }
    }

    fn tell_statement(&mut self) {
        let Some(open) = self.open.as_mut().filter(|open| !open.told) else { return };
        open.told = true;
        self.statements = self.statements.saturating_add(1);
        let finality = if open.opening.is_none() && open.head.interim && open.closing.is_none() {
            Finality::Interim
        } else {
            Finality::Final
        };
        let mut statement = Statement::at(self.statements, open.head.line, finality);
        statement.account.clone_from(&open.head.account);
        statement.currency = open.currency.or(open.head.currency);
        statement.id.clone_from(&open.head.id);
        statement.sequence.clone_from(&open.head.number);
        statement.from = open.head.day;
        self.items.push_back(statement.into());
    }

    fn end_message(&mut self) {
        self.flush_entry();
        let is_head = self.open.is_none() && self.head.seen;
        if let Some(found) = is_head.then(|| self.frame.end()).flatten() {
            // Queues deliver such messages among statements.
            let line = std::mem::take(&mut self.head).line;
            let expected = "a statement; another message is passed over";
            self.problem(Problem::warning(line, "message", expected, found));
        }
        // A head whose statement has nothing in it: a report without movements.
        if self.open.is_none() && self.head.seen {
            let line = self.head.line;
            self.statement(line);
        }
        if self.open.is_some() {
            self.tell_statement();
        }
        if let Some(open) = self.open.take() {
            if open.page {
                self.paused = Some(open);
            } else {
                self.end_statement(&open);
            }
        }
    }

    fn end_paused(&mut self) {
        if let Some(open) = self.paused.take() {
            self.end_statement(&open);
        }
    }

    fn end_statement(&mut self, open: &Open) {
        let line = open.closing.map_or(self.lines.number(), |closing| closing.line);
        if open.page {
            let expected = "the page that goes on from here (:60M:), or :62F:";
            self.problem(match self.ended && self.statements == 1 && !open.resumed {
                // By SWIFT a page is a message, and some banks make a file of each.
                true => Problem::warning(line, ":62M:", expected, "the end of the file's one page"),
                false => Problem::error(line, ":62M:", expected, "none: the last page is missing"),
            });
        }
        let interim = open.head.interim && open.opening.is_none() && open.closing.is_none();
        if interim {
            self.items.extend(open.open_sums(line).into_iter().map(Item::from));
            self.items.extend(self.open_end(open, line).map(Item::from));
        } else {
            if open.head.account.is_none() {
                let expected = "the account of each statement";
                self.problem(Problem::warning(open.head.line, ":25:", expected, "none"));
            }
            for (balance, field) in [(open.opening, ":60F:"), (open.closing, ":62F:")] {
                if balance.is_none() && !open.failed {
                    let expected = "a balance in every statement";
                    self.problem(Problem::error(line, field, expected, "none"));
                }
            }
        }
        self.items.extend(open.unread().map(Item::from));
        self.items.extend(open.texts.shifted().map(Item::from));
        let (opening, closing) = (open.opening, open.closing);
        let unread = !interim && (opening.is_none() || closing.is_none());
        let name = [&open.head.account, &open.head.id, &open.head.number];
        let name = name.map(|text| text.as_deref().unwrap_or_default()).join("\n");
        let (begun, balances, sums) = (open.head.line, [opening, closing], open.sums.by_way);
        let names = (Some(name), open.head.account.as_deref());
        let problem = self.twice.statement(begun, names, balances, sums, interim);
        self.items.extend(problem.map(Item::from));
        let end = StatementEnd {
            line,
            opening,
            closing,
            currency: open.currency,
            from: opening.and_then(|balance| balance.date),
            to: closing.and_then(|balance| balance.date),
            zones: Vec::new(),
            tie: match open.declared_tie() {
                _any if unread => Tie::Declared(false),
                Some(holds) if interim => Tie::Declared(holds),
                _balances => Tie::Balances,
            },
        };
        self.items.push_back(end.into());
    }

    /// What an interim report lacks that each has. Where its message does not end, and the last
    /// line of the file does not either, it was cut. One that has all, and no sums, may have been.
    fn open_end(&self, open: &Open, line: u64) -> Option<Problem> {
        if let Some(missing) = open.head.missing() {
            let expected = "the fields that each interim report has";
            return Some(match self.is_cut {
                true => Problem::error(line, missing, expected, "none: the file was cut"),
                false => Problem::warning(line, missing, expected, "none"),
            });
        }
        let has_sums = open.declared.iter().any(Option::is_some);
        let expected = "the end of the message (`-`), or its sums (:90D:, :90C:)";
        let found = "neither: nothing shows that the file is whole";
        (self.is_cut && !has_sums).then(|| Problem::warning(line, "-", expected, found))
    }

    /// What shows that the last row, which has no line end, is not whole: it is the beginning of a
    /// field's name, or a movement without its type.
    fn cut_row(&self, field: &Field) -> Option<Problem> {
        let (line, found) = (self.lines.number(), "the end of the file: it was cut");
        let row = self.lines.text().trim();
        let is_name = |name: &str| TAGS.iter().any(|tag| tag.starts_with(name));
        if line > field.line && row.strip_prefix(':').is_some_and(is_name) {
            return Some(Problem::error(line, row, "a field of the message", found));
        }
        let is_first = self.after_dash.is_none() && line == field.line && field.tag == "61";
        let is_whole = movement(field.first()).is_some_and(|found| found.has_type());
        let problem = || Problem::error(line, ":61:", "type and reference", found);
        (is_first && !is_whole).then(problem)
    }

    /// Whether the heading that stands above the first message stands behind the last one as well,
    /// or as much of it as the file has: a further message was to come.
    fn begun_again(&self) -> bool {
        let rows = self.after_dash.iter().flatten().map(|row| shape(row));
        let mut rows = rows.filter(|row| !row.is_empty()).peekable();
        let first = rows.next().unwrap_or_default();
        let is_whole = rows.peek().is_some() && first == self.heading;
        let is_begun = rows.peek().is_none() && self.heading.starts_with(&first);
        !first.is_empty() && (is_whole || is_begun)
    }

    fn finish(&mut self) {
        self.ended = true;
        let is_blank = |c: char| c.is_whitespace() || c.is_control();
        let has_end = self.lines.is_ended() || self.lines.text().trim_matches(is_blank).is_empty();
        // The end of a message may stand behind its last row.
        let is_open = !has_end && self.block.is_none() && !self.lines.text().contains("-}");
        if let Some(field) = self.field.as_ref().filter(|_| is_open) {
            let problem = self.cut_row(field);
            self.is_cut = self.after_dash.is_none() && problem.is_none();
            self.items.extend(problem.map(Item::from));
        }
        let begun = self.begun_again().then(|| {
            let expected = "the message of the heading behind the last one";
            Problem::error(self.lines.number(), ":20:", expected, "none: the file was cut")
        });
        self.items.extend(begun.map(Item::from));
        self.end_field();
        self.end_message();
        self.end_paused();
        // Of `-}` the brace alone may be missing.
        if let (Some(begun), None) = (self.block, &self.after_dash) {
            let expected = format!("the end (`-}}`) of the message that begins on line {begun}");
            let found = "none: the file was cut";
            self.problem(Problem::error(self.lines.number(), "{4:", expected, found));
        } else {
            self.items.extend(self.frame.cut(has_end).map(Item::from));
        }
        if self.statements == 0 {
            let line = self.lines.number();
            self.problem(Problem::error(line, ":20:", "a statement", "none"));
        }
    }
}

impl Open {
    fn new(head: Head) -> Self {
        Self {
            currency: head.currency,
            last_number: head.number.clone(),
            head,
            told: false,
            opening: None,
            closing: None,
            page: false,
            resumed: false,
            sums: Sums::default(),
            declared: Declared::default(),
            by_letter: None,
            unread: Vec::new(),
            texts: Texts::default(),
            failed: false,
        }
    }

    /// Whether `:90C:` and `:90D:` hold; none where one is lacking that has entries, or where they
    /// hold by the marks' letters alone: a mark that was turned from `C` to `RC` looks so. Below a
    /// floor limit they may count more than is listed.
    fn declared_tie(&self) -> Option<bool> {
        let ways = self.sums.by_way.iter().zip(&self.sums.by_letter);
        let mut holds = None;
        for (declared, (way, letter)) in self.declared.iter().zip(ways) {
            match declared {
                Some(own) => holds = Some(holds.unwrap_or(true) && *own),
                None if way.0 != 0 && letter.0 != 0 => return None,
                None => {}
            }
        }
        holds.filter(|holds| {
            if *holds { self.by_letter.is_none() } else { !self.head.floor.contains(&true) }
        })
    }

    /// Whether its balances prove its booked entries.
    fn is_tied(&self) -> bool {
        self.opening.zip(self.closing).is_some_and(|(opening, closing)| {
            let after = i128::from(opening.minor).saturating_add(self.sums.net);
            opening.currency == closing.currency && after == i128::from(closing.minor)
        })
    }

    /// What is said of `:90D:` and `:90C:` that cannot be read.
    fn unread(&self) -> impl Iterator<Item = Problem> {
        let severity = if self.is_tied() { Severity::Warning } else { Severity::Error };
        self.unread.clone().into_iter().map(move |problem| Problem { severity, ..problem })
    }

    /// What `:90D:` and `:90C:` leave open of an interim report.
    fn open_sums(&self, line: u64) -> Vec<Problem> {
        let mut open = Vec::new();
        if let Some(line) = self.by_letter {
            let expected = "sums of where money went, that show that a mark was not turned";
            let found = "sums of the marks' letters, with reversals";
            open.push(Problem::warning(line, ":90D: and :90C:", expected, found));
        }
        let is_lacking = |at: usize| {
            let count = self.sums.by_way.get(at).map_or(0, |(count, _)| *count);
            count != 0 && self.declared.get(at).is_some_and(Option::is_none)
        };
        let is_one_said = self.declared.iter().any(Option::is_some);
        for (at, name) in [":90C:", ":90D:"].into_iter().enumerate() {
            if is_one_said && is_lacking(at) {
                let found = "none: nothing proves these entries";
                open.push(Problem::warning(line, name, "one beside the other", found));
            }
        }
        open
    }
}

/// The number of a statement, without that of the page.
fn number(text: &str) -> &str {
    text.split('/').next().unwrap_or_default()
}

/// A page that begins with another balance than the one before it ended with.
fn another_balance(
    line: u64,
    closing: Option<Balance>,
    opening: Option<Balance>,
) -> Option<Problem> {
    let text = |balance: Balance| shown(balance.minor.into(), Some(balance.currency));
    let expected = format!("{}, where the page before it ended", text(closing?));
    let found = format!("{}: a page between them is missing, or was changed", text(opening?));
    Some(Problem::error(line, ":60M:", expected, found))
}

/// Pages that are counted, and one that was left out. Some banks give all of them one number.
fn page_missing(line: u64, before: &Option<String>, own: &Option<String>) -> Option<Problem> {
    let page = |number: &Option<String>| {
        let (_, page) = number.as_ref()?.split_once('/')?;
        page.trim().parse::<u64>().ok()
    };
    let (before, own) = (page(before)?, page(own)?);
    let next = before.saturating_add(1);
    let found = format!("page {own}: one between them is missing");
    (own > next).then(|| Problem::error(line, ":28C:", format!("page {next}"), found))
}

/// Reads an amount with its comma; old files have a point.
fn money(text: &str, currency: Currency) -> Result<i64, Refused> {
    let minor = unsigned(text, mark_of(text), currency)?;
    no_thousands(text, currency).map(|()| minor)
}

fn mark_of(amount: &str) -> u8 {
    if amount.contains('.') && !amount.contains(',') { b'.' } else { b',' }
}

/// `1.000` and `1,000` may be a thousand, but where the currency has three decimals; `1000,00` of
/// yen and `0,000` may not.
fn no_thousands(amount: &str, currency: Currency) -> Result<(), Refused> {
    let amount = amount.trim_start_matches(['-', '+']);
    let Some((whole, behind)) = amount.split_once([',', '.']) else { return Ok(()) };
    let is_group = (1..=3).contains(&whole.len()) && whole.bytes().any(|digit| digit != b'0');
    let is_ambiguous = is_group && behind.len() == 3 && currency.exponent() < 3;
    if is_ambiguous { Err(Refused::Ambiguous) } else { Ok(()) }
}

/// The currency behind an account's number: `12345678/123456EUR`, `NL91ABNA0417164300 EUR`.
fn currency_of_account(account: &str) -> Option<Currency> {
    let (number, code) = account.split_at_checked(account.len().saturating_sub(3))?;
    let is_code = code.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_apart = number.ends_with(|c: char| c.is_ascii_digit() || c == ' ' || c == '/');
    Currency::parse_any(code).ok().filter(|_| is_code && is_apart)
}

/// The three letters behind a balance's mark and day.
fn currency_in(balance: &str) -> Option<Currency> {
    let rest = balance.trim_start().strip_prefix(['C', 'D', 'c', 'd'])?.trim_start();
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    Currency::parse_any(rest.get(..3)?).ok()
}

/// The currency of all balances of a head, where it is one. Entries of a statement that lacks its
/// opening balance are added up by it: the file does not count, but what it holds is shown.
fn only_currency(head: &str) -> Option<Currency> {
    let fields = [":60F:", ":60M:", ":62F:", ":62M:"];
    let places = fields.into_iter().flat_map(|name| head.match_indices(name));
    let mut found = places.filter_map(|(at, name)| {
        currency_in(head.get(at.saturating_add(name.len())..).unwrap_or_default())
    });
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

/// `C261119EUR1234,56`. Where the currency is left out it is the statement's, `known`.
fn balance(field: &Field, known: Option<Currency>) -> Result<(Balance, Option<Problem>), Problem> {
    let text: String = field.first().chars().filter(|c| *c != ' ').collect();
    let name = format!(":{}:", field.tag);
    let wrong = |found: &str| {
        Problem::error(field.line, name.as_str(), "C or D, YYMMDD, currency, amount", found)
    };
    let debit = match text.get(..1) {
        Some("C" | "c") => false,
        Some("D" | "d") => true,
        _other => return Err(wrong(&text)),
    };
    let rest = text.get(1..).unwrap_or_default();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let has_code = rest.get(digits..).is_some_and(|rest| rest.starts_with(char::is_alphabetic));
    let (day, currency, amount) = match known {
        Some(known) if digits > 6 && !has_code => {
            let (day, amount) = rest.split_at(6);
            (day, known, amount)
        }
        _written => {
            let (day, rest) = rest.split_at(digits);
            let code = rest.get(..3).ok_or_else(|| wrong(&text))?;
            let currency = Currency::parse_any(code).map_err(|_unknown| {
                let expected = "an ISO 4217 currency";
                Problem::error(field.line, format!("{name} currency"), expected, code)
            })?;
            (day, currency, rest.get(3..).unwrap_or_default())
        }
    };
    // Some banks write a balance of theirs with a minus after the mark: it turns the sign.
    let minor = signed(amount, mark_of(amount), currency)
        .and_then(|minor| no_thousands(amount, currency).map(|()| minor))
        .map_err(|refused| refused_at(refused, (field.line, &name), amount, currency))?;
    let date = yymmdd(day).filter(|_| day.len() == 6);
    let problem = date
        .is_none()
        .then(|| Problem::warning(field.line, format!("{name} date"), "a day as YYMMDD", day));
    let minor = if debit { minor.saturating_neg() } else { minor };
    Ok((Balance { minor, currency, date, line: field.line }, problem))
}

// ----------------------------------------------------------------------------------- movements

/// The parts of a `:61:`.
struct Movement<'a> {
    value: &'a str,
    booked: &'a str,
    mark: &'a str,
    /// A minus stands before the amount: some write so what is taken back.
    minus: bool,
    amount: &'a str,
    /// A blank stands behind the amount.
    is_apart: bool,
    code: &'a str,
    reference: &'a str,
    bank_reference: &'a str,
}

/// Takes a `:61:` apart: dates, mark, an optional funds letter, amount, type, references.
fn movement(text: &str) -> Option<Movement<'_>> {
    let count = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    if !matches!(count(text), 6 | 10 | 12) {
        return None;
    }
    let (value, rest) = text.split_at(6);
    // Blanks may stand around the entry date; one that is not told is four of them at some banks.
    let rest = rest.trim_start();
    let (booked, rest) = match count(rest) {
        digits @ (4 | 6) => rest.split_at(digits),
        _none => ("", rest),
    };
    let rest = rest.trim_start();
    let is_next = |mark: &&str| {
        rest.get(..mark.len()).is_some_and(|written| written.eq_ignore_ascii_case(mark))
    };
    let mark = ["RC", "RD", "EC", "ED", "C", "D"].into_iter().find(is_next)?;
    let rest = rest.get(mark.len()..)?;
    let rest = rest.strip_prefix(|c: char| c.is_ascii_uppercase()).unwrap_or(rest).trim_start();
    let unsigned = rest.strip_prefix('-');
    let (minus, rest) = (unsigned.is_some(), unsigned.unwrap_or(rest));
    let length =
        rest.bytes().take_while(|b| b.is_ascii_digit() || *b == b',' || *b == b'.').count();
    let (amount, behind) = rest.split_at(length);
    let rest = behind.trim_start();
    let is_apart = rest.len() < behind.len();
    let typed = rest.starts_with(|c: char| c.is_ascii_alphabetic());
    let code = if typed { rest.get(..4).unwrap_or(rest) } else { "" };
    let rest = rest.get(code.len()..).unwrap_or_default();
    let (reference, bank_reference) = rest.split_once("//").unwrap_or((rest, ""));
    (!amount.is_empty()).then_some(Movement {
        value,
        booked,
        mark,
        minus,
        amount,
        is_apart,
        code,
        reference,
        bank_reference,
    })
}

/// The codes of a booking that SWIFT lists, each behind the letter of where it is from.
const TYPES: [&str; 62] = [
    "BNK", "BOE", "BRF", "CAR", "CAS", "CHG", "CHK", "CLR", "CMI", "CMN", "CMP", "CMS", "CMT",
    "CMZ", "COL", "COM", "CPN", "DCR", "DDT", "DIS", "DIV", "DUD", "ECK", "EQA", "EXT", "FEX",
    "FRX", "INT", "LBX", "LDP", "MAR", "MAT", "MGT", "MSC", "NWI", "ODC", "OPT", "PCH", "POP",
    "PRN", "REC", "RED", "RIG", "RTI", "SAL", "SEC", "SLE", "STO", "STP", "SUB", "SWP", "TAX",
    "TCK", "TCM", "TRA", "TRF", "TRN", "TRU", "UWC", "VDA", "VDI", "WAR",
];

impl Movement<'_> {
    /// Whether the row ends with the amount, and `next` may go on with it.
    fn goes_on(&self, next: &str, currency: Option<Currency>) -> bool {
        let is_short = self.decimals().is_none_or(|n| n == 0 || n < most(currency));
        self.is_bare()
            && is_short
            && next.starts_with(|c: char| c.is_ascii_digit() || ",.".contains(c))
    }

    /// Whether nothing stands behind the amount.
    fn is_bare(&self) -> bool {
        [self.code, self.reference, self.bank_reference].iter().all(|part| part.is_empty())
    }

    fn decimals(&self) -> Option<usize> {
        self.amount.split_once([',', '.']).map(|(_, decimals)| decimals.len())
    }

    /// Whether this, of two rows, is surely one that was cut within its amount: a type stands right
    /// behind it. Of a code that SWIFT does not list only its letter and its figures are sure.
    fn is_one_row(&self) -> bool {
        let rest = self.code.strip_prefix(['N', 'F', 'S']).unwrap_or_default();
        let is_code = rest.len() == 3 && rest.bytes().all(|byte| byte.is_ascii_digit());
        self.has_mark() && !self.is_apart && (is_code || TYPES.contains(&rest))
    }

    /// Whether this, of two rows, may be one that was cut: the amount then has no more decimals
    /// than its currency, and a type behind it, or nothing.
    fn may_be_one_row(&self, currency: Option<Currency>) -> bool {
        let has_type = self.has_type() && self.code.starts_with(['N', 'F', 'S']);
        let is_fine = self.decimals().is_none_or(|decimals| decimals <= most(currency));
        is_fine && (has_type || self.is_bare())
    }

    /// Whether the amount may go on behind a blank or an apostrophe: `1 000,00`.
    fn is_parted(&self) -> bool {
        let goes_on = |c: char| c.is_ascii_digit() || "'’`".contains(c);
        self.code.is_empty() && !self.has_mark() && self.reference.starts_with(goes_on)
    }

    fn has_mark(&self) -> bool {
        self.amount.contains([',', '.'])
    }

    fn has_type(&self) -> bool {
        let is_part = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
        self.code.len() == 4 && self.code.bytes().all(is_part)
    }
}

/// The most decimals of an amount; of two where its currency is not known.
fn most(currency: Option<Currency>) -> usize {
    let most = currency.map_or(2, |currency| currency.exponent());
    usize::try_from(most).unwrap_or(usize::MAX)
}

/// The row of a movement, with the one behind it where it was cut: before the amount, or within.
/// Behind an amount with its comma the next row may as well be the bank's text (`15 JUNE RENT`):
/// it belongs to the amount only where a type follows that. None where it cannot be told what the
/// amount is.
fn row_of(field: &Field, currency: Option<Currency>) -> Option<Cow<'_, str>> {
    let (first, next) = (field.first(), field.rows.get(1).map_or("", |row| row.trim()));
    let joined = format!("{first}{next}");
    let all = movement(&joined);
    let is_one_row = match movement(first) {
        Some(found) if found.goes_on(next, currency) => {
            let is_one_row = all.as_ref().is_some_and(Movement::is_one_row);
            let may_be = all.is_some_and(|all| all.may_be_one_row(currency));
            if !is_one_row && (may_be || found.decimals() != Some(0)) {
                return None;
            }
            is_one_row
        }
        Some(found) if found.is_parted() => return None,
        Some(_) => false,
        None if all.is_some_and(|all| all.has_mark() || !all.is_apart && all.has_type()) => true,
        None => return None,
    };
    Some(if is_one_row { Cow::Owned(joined) } else { Cow::Borrowed(first) })
}

/// The row behind that of a movement, `text`, which is the bank's words (SWIFT's subfield 9); not
/// where it goes on with the movement, or is the bank's reference.
fn further(field: &Field, text: Option<&str>) -> String {
    let next = field.rows.get(1).map_or("", |row| row.trim_end());
    let is_words = text == Some(field.first()) && !next.trim_start().starts_with("//");
    if is_words { next.to_owned() } else { String::new() }
}

/// Whether a row of a movement holds another one, whose line begin was lost.
fn holds_another(row: &str) -> bool {
    let mut behind = row.split(":61:").skip(1);
    behind.any(|rest| movement(rest).is_some())
}

/// What is wrong with an amount. Of one with two marks that is the one of thousands.
fn refused_at(
    refused: Refused,
    (line, field): (u64, &str),
    amount: &str,
    currency: Currency,
) -> Problem {
    if amount.matches([',', '.']).count() > 1 {
        let expected = "a decimal comma, and no mark of thousands";
        return Problem::error(line, field, expected, amount);
    }
    refused.at(line, field, amount, currency)
}

impl Mt940 {
    fn movement(&mut self, field: &Field) {
        self.flush_entry();
        self.statement(field.line).texts.begun = true;
        self.tell_statement();
        match self.entry_of(field) {
            Ok((open, problem)) => {
                if let Some(row) = field.rows.iter().find(|row| holds_another(row)) {
                    let expected = "each movement on a line of its own";
                    self.problem(Problem::error(field.line, ":61:", expected, row.as_str()));
                }
                self.entries = open.entry.number;
                if let Some(statement) = &mut self.open {
                    statement.sums.add(&open.entry);
                }
                self.entry = Some(open);
                self.items.extend(problem.map(Item::from));
            }
            Err(problem) => self.problem(problem),
        }
    }

    /// The currency of the open statement's entries.
    fn currency(&self) -> Option<Currency> {
        let open = self.open.as_ref()?;
        let fallback = self.fallback.filter(|_| !open.head.interim);
        open.currency.or(open.head.currency).or(fallback)
    }

    /// Only balances show that a minus is the amount's, and that an amount without its comma, and
    /// with nothing behind it, is whole.
    fn provable(&self, found: &Movement<'_>) -> Result<(), &'static str> {
        let has_balance = self.open.as_ref().is_some_and(|open| open.opening.is_some());
        if found.minus && !has_balance {
            return Err("an amount without a sign");
        }
        if found.is_bare() && !found.has_mark() && !has_balance {
            return Err("an amount with its comma, type and reference");
        }
        Ok(())
    }

    fn entry_of(&mut self, field: &Field) -> Result<(OpenEntry, Option<Problem>), Problem> {
        let currency = self.currency();
        let text = row_of(field, currency);
        let further = further(field, text.as_deref());
        let found = text.as_deref().and_then(movement).ok_or_else(|| {
            let expected = "date, mark, amount, type and reference";
            Problem::error(field.line, ":61:", expected, field.first())
        })?;
        self.provable(&found)
            .map_err(|expected| Problem::error(field.line, ":61:", expected, field.first()))?;
        let currency = currency.ok_or_else(|| {
            let expected = "that of the opening balance or the floor limit";
            Problem::error(field.line, ":61: currency", expected, "none")
        })?;
        let place = (field.line, ":61: amount");
        let minor = money(found.amount, currency)
            .map_err(|refused| refused_at(refused, place, found.amount, currency))?;
        let (direction, reversal, status) = match found.mark {
            "C" => (Direction::Credit, false, EntryStatus::Booked),
            "D" => (Direction::Debit, false, EntryStatus::Booked),
            "RC" => (Direction::Debit, true, EntryStatus::Booked),
            "RD" => (Direction::Credit, true, EntryStatus::Booked),
            "EC" => (Direction::Credit, false, EntryStatus::Future),
            _expected => (Direction::Debit, false, EntryStatus::Future),
        };
        let (direction, reversal) =
            if found.minus { (direction.opposite(), !reversal) } else { (direction, reversal) };
        let value_on = yymmdd(found.value);
        let booked_on = match found.booked.len() {
            6 => yymmdd(found.booked),
            _month_and_day => value_on.and_then(|value| mmdd(found.booked, value)),
        };
        let odd = value_on.is_none() || (booked_on.is_none() && !found.booked.is_empty());
        let problem = odd.then(|| {
            let dates = format!("{}{}", found.value, found.booked);
            Problem::warning(field.line, ":61: dates", "days of the calendar", dates)
        });
        // Where the row is full, the bank's reference begins the next one.
        let behind = || field.rows.get(1).and_then(|row| row.trim().strip_prefix("//"));
        let own = Some(found.bank_reference.trim()).filter(|own| !own.is_empty());
        let bank_reference = own.or_else(behind).unwrap_or_default();
        let entry = Entry {
            number: self.entries.saturating_add(1),
            line: field.line,
            minor,
            currency,
            direction,
            reversal,
            status,
            booked_on: booked_on.or(value_on),
            value_on,
            bank_reference: Some(bank_reference.to_owned()).filter(|text| !is_blank_in_mt940(text)),
            type_code: Some(found.code.to_owned()).filter(|code| !code.is_empty()),
            batch: None,
        };
        let mut line = Line { byte: field.byte, ..Line::of(&entry) };
        line.booked_on = entry.booked_on;
        line.type_code.clone_from(&entry.type_code);
        if !is_blank_in_mt940(found.reference) {
            line.tag(TagKind::CustomerReference, found.reference);
        }
        line.tag(TagKind::BankReference, entry.bank_reference.as_deref().unwrap_or_default());
        line.raw = format!(":61:{}", field.rows.join("\n"));
        Ok((OpenEntry { entry, line, further, text: Vec::new(), texts: 0 }, problem))
    }

    /// `:86:` of an entry; after a closing balance it speaks of the statement.
    fn text(&mut self, field: &Field) {
        let Some(open) = &mut self.entry else {
            self.stray(field);
            return;
        };
        if field.tag == "86" {
            open.texts = open.texts.saturating_add(1);
            open.text.extend(field.rows.iter().cloned());
        }
        if open.line.raw.len() < RAW_MAX {
            open.line.raw.push_str(&format!("\n:{}:{}", field.tag, field.rows.join("\n")));
        }
    }

    /// A text that follows no entry. Behind the balances it is the statement's own; one bank's says
    /// what both sides come to.
    fn stray(&mut self, field: &Field) {
        let Some(open) = &mut self.open else { return };
        let is_told = !open.page && field.tag == "86";
        if let Some(closing) = open.closing.filter(|_| is_told)
            && let Some(sides) = mt940_text::sums(&field.rows.concat())
        {
            let sums = sides.map(|(count, sum)| Some((count, money(&sum, closing.currency).ok()?)));
            for (at, wanted) in sums.into_iter().enumerate() {
                let name = [":86: credits", ":86: debits"].get(at).copied().unwrap_or_default();
                if let Some((count, sum)) = wanted {
                    self.hold((field.line, name), at, (count, sum.into()), closing.currency);
                }
            }
            return;
        }
        let is_before = !open.texts.begun && open.opening.is_some() && open.closing.is_none();
        if field.tag == "86" && is_before {
            let before = open.texts.stray.map_or(0, |(_, count)| count);
            open.texts.stray = Some((field.line, before.saturating_add(1)));
            let expected = "a :61: before it";
            let found = "none: the text belongs to no entry, and is not read";
            self.problem(Problem::warning(field.line, ":86:", expected, found));
        }
    }

    fn flush_entry(&mut self) {
        let Some(mut open) = self.entry.take() else { return };
        if let Some(statement) = &mut self.open {
            statement.texts.add(open.texts);
        }
        mt940_text::read(&open.further, &open.text, &mut open.line);
        open.line.kind = kinds::booking(&open.line);
        let business = mt940_text::business_code(&open.text);
        let is_debit = open.line.direction == Direction::Debit;
        if kinds::RETURNS.contains(&business.as_str()) {
            open.line.kind = LineKind::Return;
        } else if open.line.kind == LineKind::Movement
            && is_debit
            && kinds::is_business_charge(&business)
        {
            open.line.kind = LineKind::Fee;
        }
        self.items.push_back(open.entry.into());
        self.items.push_back(open.line.into());
    }

    /// `:34F:EURD100,`: the limit below which debits are not listed; without a mark of both.
    fn floor(&mut self, field: &Field) {
        self.head.interim = true;
        self.head.has_floor = true;
        let (code, limit) = field.first().split_at_checked(3).unwrap_or_default();
        if limit.bytes().any(|byte| (b'1'..=b'9').contains(&byte)) {
            let [credits, debits] = &mut self.head.floor;
            *credits |= !limit.starts_with('D');
            *debits |= !limit.starts_with('C');
        }
        let name = ":34F: currency";
        match (Currency::parse_any(code), self.head.of_floor) {
            (Err(_unknown), _) => {
                self.problem(Problem::error(field.line, name, "an ISO 4217 currency", code));
            }
            (Ok(currency), Some(other)) if currency != other => {
                self.problem(Problem::error(field.line, name, other.code(), code));
            }
            (Ok(currency), _) => {
                self.head.of_floor = Some(currency);
                self.head.currency = Some(currency);
            }
        }
    }

    /// A sum in another currency than the statement's: nobody knows which of them the entries have,
    /// but by balances. Some banks write one code where there is nothing to sum up.
    fn other_currency(&self, field: &Field, code: Currency, is_nothing: bool) -> Option<Problem> {
        let own = self.currency().filter(|own| *own != code)?;
        let is_shown = self.open.as_ref().is_some_and(|open| open.opening.is_some());
        let severity = if is_shown || is_nothing { Severity::Warning } else { Severity::Error };
        let name = format!(":{}: currency", field.tag);
        let problem = Problem::error(field.line, name, own.code(), code.code());
        Some(Problem { severity, ..problem })
    }

    /// `:90D:12EUR3456,78`: how many debits, and their sum.
    fn declared(&mut self, field: &Field) {
        self.flush_entry();
        let name = format!(":{}:", field.tag);
        let text: String = field.first().chars().filter(|c| *c != ' ').collect();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        // Some banks leave the count of nothing out.
        let count: Option<i128> = match text.get(..digits).unwrap_or_default() {
            "" => Some(0),
            digits => digits.parse().ok(),
        };
        let code = text.get(digits..digits.saturating_add(3)).unwrap_or_default();
        let amount = text.get(digits.saturating_add(3)..).unwrap_or_default();
        let currency = Currency::parse_any(code).ok();
        let sum = currency.and_then(|currency| money(amount, currency).ok());
        let (Some(count), Some(currency), Some(sum)) = (count, currency, sum) else {
            let expected = "count, currency and sum";
            let problem = Problem::error(field.line, name, expected, text);
            let unread = &mut self.statement(field.line).unread;
            if unread.len() < UNREAD {
                unread.push(problem);
            } else {
                self.problem(problem);
            }
            return;
        };
        self.statement(field.line);
        let is_nothing = count == 0 && sum == 0;
        if let Some(problem) = self.other_currency(field, currency, is_nothing) {
            self.problem(problem);
            if !is_nothing {
                return;
            }
        }
        let at = usize::from(field.tag == "90D");
        self.hold((field.line, &name), at, (count, i128::from(sum)), currency);
    }

    /// Holds one side of a statement, 0 being credits, against what is declared of it.
    fn hold(
        &mut self,
        (line, name): (u64, &str),
        at: usize,
        wanted: (i128, i128),
        currency: Currency,
    ) {
        let open = self.statement(line);
        let sums = [open.sums.by_way, open.sums.by_letter].map(|by| by.get(at).copied());
        let sums: Vec<(i128, i128)> = sums.into_iter().flatten().collect();
        let found = sums.iter().find(|found| **found == wanted).or(sums.first());
        if found == sums.last() && found != sums.first() {
            open.by_letter = open.by_letter.or(Some(line));
        }
        let (entries, minor) = found.copied().unwrap_or_default();
        // Below a floor limit entries are counted and not listed.
        let floor = open.head.floor.get(at).is_some_and(|floor| *floor);
        if let Some(declared) = open.declared.get_mut(at) {
            *declared = Some(wanted == (entries, minor));
        }
        self.tell_statement();
        let control = |what: &str, expected, found, currency| Control {
            line,
            field: format!("{name} {what}"),
            expected,
            found: Found::Is(found),
            currency,
            severity: if floor && expected > found { Severity::Warning } else { Severity::Error },
        };
        let (count, sum) = wanted;
        self.items.push_back(control("count", count, entries, None).into());
        self.items.push_back(control("sum", sum, minor, Some(currency)).into());
    }
}

impl Sums {
    fn add(&mut self, entry: &Entry) {
        if entry.status == EntryStatus::Booked {
            self.net = self.net.saturating_add(entry.direction.signed(entry.minor));
        }
        let way = usize::from(entry.direction == Direction::Debit);
        let letter = if entry.reversal { 1_usize.saturating_sub(way) } else { way };
        for (sums, at) in [(&mut self.by_way, way), (&mut self.by_letter, letter)] {
            if let Some((count, sum)) = sums.get_mut(at) {
                *count = count.saturating_add(1);
                *sum = sum.saturating_add(i128::from(entry.minor));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::settlement::ledger::{State, inspect};

    fn look(rows: &str, closing: &str) -> (State, Vec<(u64, Severity)>) {
        let head = ":20:X\n:25:123456789\n:28C:1/1\n:60F:C260101EUR100,00\n";
        let text = format!("{head}{rows}:62F:C260102EUR{closing}\n");
        let found = inspect(Box::new(Cursor::new(text.into_bytes())), None, None).unwrap();
        let problems = &found.sums.problems;
        let problems = problems.iter().filter(|problem| problem.field == ":86:");
        (found.state, problems.map(|problem| (problem.line, problem.severity)).collect())
    }

    const OUT: &str = ":61:2601020102D40,00NTRFNONREF\n";
    const TEXT: &str = ":86:A PAYMENT\n";

    #[test]
    fn a_text_before_the_first_entry_is_told() {
        let warned = (State::Ok, vec![(5, Severity::Warning)]);
        assert_eq!(look(&format!("{TEXT}{OUT}"), "60,00"), warned);
        assert_eq!(look(&format!("{TEXT}{OUT}{TEXT}{OUT}{TEXT}"), "20,00"), warned);
        let good = (State::Ok, Vec::new());
        assert_eq!(look(&format!("{OUT}{TEXT}{OUT}"), "20,00"), good);
        assert_eq!(look(OUT, format!("60,00\n{TEXT}").trim_end()), good, "the statement's own");
    }

    #[test]
    fn texts_that_may_be_of_the_entry_behind_them_are_not_believed() {
        let problems = vec![(5, Severity::Warning), (5, Severity::Error)];
        let found = look(&format!("{TEXT}{OUT}{TEXT}{OUT}"), "20,00");
        assert_eq!(found, (State::Quarantined, problems));
        let heading = vec![(5, Severity::Warning), (6, Severity::Warning)];
        let found = look(&format!("{TEXT}{TEXT}{OUT}{TEXT}{OUT}"), "20,00");
        assert_eq!(found, (State::Ok, heading), "several are a heading");
    }

    /// A payment and its return leave the balance as it is: the bank's sums show one that lacks.
    #[test]
    fn sums_behind_the_balances_are_held_against_the_entries() {
        let state = |moved: &str, sums: &str| {
            let text = format!(
                ":20:X\n:25:NL32INGB0000012345EUR\n:28C:1\n:60F:C140219EUR1,00\n\
                 :61:1402200220D0,40NTRFA\n:86:/EREF/A/\n{moved}:62F:C140220EUR0,60\n\
                 :64:C140220EUR0,60\n:86:{sums}\n-\n"
            );
            inspect(Box::new(Cursor::new(text.into_bytes())), None, None).unwrap().state
        };
        let pair = ":61:1402200220C0,20NTRFB\n:61:1402200220D0,20NTRFB\n";
        for sums in ["/SUM/2/1/0,60/0,20/", "D000002C000001D0,60C0,20"] {
            assert_eq!(state(pair, sums), State::Ok, "{sums}");
            assert_eq!(state("", sums), State::Quarantined, "{sums}: the pair lacks");
            assert_eq!(state(&pair.repeat(2), sums), State::Quarantined, "{sums}: twice");
        }
        assert_eq!(state("", "/SUM/1/0/0,40/0,00/"), State::Ok);
        assert_eq!(state("", "thank you"), State::Ok);
    }

    #[test]
    fn the_currency_of_an_interim_report_is_one() {
        let state = |floors: &str, sums: &str| {
            let text = format!(
                ":20:X\n:25:123456789\n:28C:1\n{floors}\n:13D:2601021200+0100\n\
                 :61:2601020102C25,00NTRFNONREF\n:86:A\n{sums}\n"
            );
            let found = inspect(Box::new(Cursor::new(text.into_bytes())), None, None).unwrap();
            let booked = found.sums.booked.keys().map(|of| of.code().to_owned()).collect();
            (found.state, found.sums.problems.len(), booked)
        };
        let euros = |problems| (State::Ok, problems, vec!["EUR".to_owned()]);
        let one = ":34F:EURD0,\n:34F:EURC0,";
        assert_eq!(state(one, ":90D:0EUR0,\n:90C:1EUR25,"), euros(0));
        assert_eq!(state(one, ":90D:0USD0,\n:90C:1EUR25,"), euros(1), "nothing has a currency");
        for (floors, sums) in [
            (":34F:DKKD1,00", ":90D:0EUR0,\n:90C:1EUR25,"),
            (":34F:EURD0,\n:34F:USDC0,", ":90D:0EUR0,\n:90C:1EUR25,"),
            (one, ":90D:0EUR0,\n:90C:1USD25,"),
            // Below the limit of the other side.
            (":34F:EURD0,\n:34F:EURC100,", ":90D:2EUR50,\n:90C:1EUR25,"),
        ] {
            assert_eq!(state(floors, sums).0, State::Quarantined, "{floors} {sums}");
        }
        assert_eq!(state(":34F:EURC100,", ":90D:0EUR0,\n:90C:3EUR50,").0, State::Ok);
    }

    #[test]
    fn a_sum_that_cannot_be_read_is_told_where_balances_prove_the_entries() {
        let look = |closing: &str| {
            let text = format!(
                ":20:X\n:25:123456789\n:28C:1\n:34F:EURD0,\n:34F:EURC0,\n\
                 :13D:2601021200+0100\n:60F:C260101EUR100,00\n{OUT}{TEXT}\
                 :90D:one EUR40,00\n:90C:0EUR0,\n{closing}"
            );
            let found = inspect(Box::new(Cursor::new(text.into_bytes())), None, None).unwrap();
            let problems = found.sums.problems.iter().filter(|problem| problem.field == ":90D:");
            (found.state, problems.map(|problem| problem.severity).collect::<Vec<_>>())
        };
        let told = (State::Ok, vec![Severity::Warning]);
        assert_eq!(look(":62F:C260102EUR60,00\n"), told);
        let refused = (State::Quarantined, vec![Severity::Error]);
        assert_eq!(look(":62F:C260102EUR70,00\n"), refused);
        assert_eq!(look(""), refused);
    }

    /// Messages in envelopes, of an in and of an out, each with this end.
    fn in_envelopes(end: &str) -> (State, i128, Vec<String>) {
        let head = "{1:F01X}{2:I940X}{4:\n:20:X\n:25:NL69INGB0123456789EUR\n";
        let text = format!(
            "{head}:28C:1\n:60F:C140219EUR10,00\n:61:1402200220C1,56NTRFEREF\n\
             :86:/REMI/A }} B/\n}}\n:62F:C140220EUR11,56\n{end}\n\
             {head}:28C:2\n:60F:C140220EUR11,56\n:61:1402210221C2,00NTRFEREF\n\
             :62F:C140221EUR13,56\n:86:/SUM/0/1/\n{end}\n"
        );
        let found = inspect(Box::new(Cursor::new(text.into_bytes())), None, None).unwrap();
        let booked = found.sums.booked.values().next().unwrap();
        let fields = found.sums.problems.iter().map(|problem| problem.field.clone());
        (found.state, booked.credit_minor, fields.collect())
    }

    #[test]
    fn a_message_ends_in_any_dash_or_none_behind_its_closing_balance() {
        let good = (State::Ok, 356, Vec::new());
        for end in
            ["-}", "}", "\u{ad}}", "\u{2013}}", "\u{2212}}", " \u{ad}}", "\u{ad}}{5:{CHK:1}}"]
        {
            assert_eq!(in_envelopes(end), good, "{end:?}");
        }
        let cut = (State::Quarantined, 356, vec!["{4:".to_owned()]);
        for end in ["", "\u{ad}", "x}", "}x"] {
            assert_eq!(in_envelopes(end), cut, "{end:?}");
        }
    }

    #[test]
    fn a_brace_before_the_closing_balance_ends_nothing() {
        let text = "{1:F01X}{2:I940X}{4:\n:20:X\n:25:123456789\n:28C:1\n\
                    :60F:C260101EUR100,00\n:61:2601020102D40,00NTRFNONREF\n:86:A\n}\n";
        let found = inspect(Box::new(Cursor::new(text.as_bytes().to_vec())), None, None).unwrap();
        assert_eq!(found.state, State::Quarantined);
        assert!(found.sums.problems.iter().any(|problem| problem.field == "{4:"));
    }

    #[test]
    fn a_brace_in_a_text_of_the_next_page_ends_nothing() {
        let head = "{1:F01X}{2:I940X}{4:\n:20:X\n:25:123456789\n:28C:1";
        let text = format!(
            "{head}/1\n:60F:C260101EUR100,00\n{OUT}{TEXT}:62M:C260102EUR60,00\n\u{ad}}}\n\
             {head}/2\n:60M:C260102EUR60,00\n{OUT}{TEXT}}}\n{OUT}{TEXT}\
             :62F:D260102EUR20,00\n\u{ad}}}\n"
        );
        let found = inspect(Box::new(Cursor::new(text.into_bytes())), None, None).unwrap();
        assert_eq!(found.state, State::Ok, "{:?}", found.sums.problems);
        assert_eq!((found.sums.entries, found.sums.statements.len()), (3, 1));
    }
}
