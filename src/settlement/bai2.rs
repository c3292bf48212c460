//! BAI2 cash management files, and BTR3 files in the same record form.
//!
//! Specification: "Cash Management Balance Reporting Specifications Version 2" (BAI). The sign is
//! in the type code: 100 to 399 and 920 to 959 are credits, 400 to 699 and 960 to 999 debits, 700
//! to 799 loans, 890 no money, the others status. Details are unsigned, statuses signed; no detail
//! has the code of a balance (001 to 099). A detail may be one of many: those that are listed come
//! to at most what the account says of its credits (100) and debits (400), with the details of the
//! bank's own codes (920 to 999) or without them. A minus before a detail took it back, or the bank
//! writes its debits and their sum so: where neither balances nor sums show which, nobody knows.
//! Where there are balances, a sum of debits with a minus is believed only as they hold with it.
//! A code that has no side, or that the specification does not know, moves nothing unproven: one
//! digit more makes a loan (795) or nothing (895) of a credit (195).
//!
//! Continuations are written in more ways than the specification knows, also within one file. What
//! reads them all: the fields of a record and its 88s are one list; where a type code is due, empty
//! fields are passed over; a funds type of three digits is the next type code. The account's
//! control total then proves the reading, so it is an error where it fails; record counts fail in
//! files that tie in every sum, so they are a warning.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::RangeInclusive;

use chrono::NaiveDate;

use crate::model::money::Currency;
use crate::model::settlement::{
    Balance, Control, Direction, Entry, EntryStatus, Finality, Flags, Found, Line, Problem,
    RAW_MAX, Severity, Statement, StatementEnd, TagKind, Tie,
};
use crate::settlement::amount::yymmdd;
use crate::settlement::kinds;
use crate::settlement::text::{Lines, Source};
use crate::settlement::twice::{Sides, Twice};
use crate::settlement::{Item, Parse};

/// The record codes.
const CODES: [&str; 8] = ["01", "02", "03", "16", "49", "88", "98", "99"];

/// Type codes that a bank gives a meaning of its own: credits up to 959, and debits.
const OWN_CODES: RangeInclusive<u16> = 920..=999;

/// What mailboxes write above a file that they hand out.
const MAILBOX: &str = "$$ADD";

/// Type codes of what came back (specification, appendix A): returned and reversed items.
const RETURNS: [u16; 12] = [252, 255, 257, 258, 261, 266, 452, 555, 557, 558, 561, 566];

/// The header's version field.
pub fn recognise(head: &str) -> Option<String> {
    let mut rows = head.split(['\n', '\r']).map(str::trim);
    let record = rows.find(|row| !row.is_empty() && !row.starts_with(MAILBOX))?;
    let record = record.split('/').next()?;
    let fields: Vec<&str> = record.split(',').collect();
    let is_header = fields.first() == Some(&"01") && fields.len() >= 6;
    is_header.then(|| fields.get(8).map(|field| field.trim().to_owned()).unwrap_or_default())
}

/// Begins to read.
pub fn open(source: Source) -> Box<dyn Parse> {
    Box::new(Bai2 {
        lines: source.into_lines(),
        pieces: VecDeque::new(),
        current: None,
        items: VecDeque::new(),
        entries: 0,
        statements: 0,
        file: None,
        group: None,
        account: None,
        twice: Twice::default(),
        ended: false,
    })
}

/// A record as it stands on (a part of) a line.
struct Piece {
    line: u64,
    byte: u64,
    text: String,
}

/// A record with its continuations: the fields, and from which piece each comes.
struct Record {
    line: u64,
    byte: u64,
    code: String,
    fields: Vec<(usize, String)>,
    pieces: usize,
    raw: String,
}

#[derive(Debug, Default)]
struct File {
    total: i128,
    groups: i128,
    records: i128,
    closed: bool,
}

#[derive(Debug)]
struct Group {
    total: i128,
    accounts: i128,
    records: i128,
    flags: Flags,
    finality: Finality,
    day: Option<NaiveDate>,
    currency: Option<Currency>,
}

/// What an account says of its credits (100, and 105 for those that it does not list) and debits
/// (400, 405), and what it lists. Details may be a part of the day's movements, so what is lacking
/// is only said; more than there is cannot be listed: a credit was read as a debit, or a debit as
/// a credit.
#[derive(Debug, Default)]
struct Listed {
    sides: [Side; 2],
    /// A detail that goes against its code: it may be in either sum.
    turned: bool,
    /// The same of a detail that is in neither.
    beside: bool,
    /// The sum of debits has a minus: so have the debits.
    signed: bool,
    /// What details moved, with its sign; of very many the first.
    moved: HashSet<i64>,
}

/// So many amounts of one account are remembered.
const REMEMBERED: usize = 10_000;

#[derive(Debug, Default, Clone, Copy)]
struct Side {
    total: Option<i128>,
    items: Option<i128>,
    /// Said more than once, of different funds.
    several: bool,
    apart: i128,
    plain: Details,
    /// Of the bank's own codes, which may be in the total or not.
    own: Details,
}

#[derive(Debug, Default, Clone, Copy)]
struct Details {
    sum: i128,
    count: i128,
}

impl Listed {
    /// An amount of a 03.
    fn declare(&mut self, code: &str, minor: i64, items: Option<i64>) {
        let [credits, debits] = &mut self.sides;
        self.signed |= code == "400" && minor < 0;
        let minor = i128::from(minor).saturating_abs();
        match code {
            "100" => credits.declare(minor, items),
            "400" => debits.declare(minor, items),
            "105" => credits.apart = credits.apart.saturating_add(minor),
            "405" => debits.apart = debits.apart.saturating_add(minor),
            _other => {}
        }
    }

    /// What the account `moved` by its balances may show that debits came back: the sum of debits
    /// is less than nothing then, and not one that the bank writes with a minus.
    fn hold_against(&mut self, moved: i128) {
        let [credits, debits] = &mut self.sides;
        let is_back = |credits: i128, debits: i128| credits.saturating_add(debits) == moved;
        let both = credits.total.zip(debits.total);
        let is_one = !credits.several && !debits.several;
        if self.signed && is_one && both.is_some_and(|(one, other)| is_back(one, other)) {
            self.signed = false;
            debits.total = debits.total.map(i128::saturating_neg);
        }
    }

    /// Whether the account's own sums come to what it `moved` by its balances.
    fn comes_to(&self, moved: i128) -> bool {
        let [credits, debits] = self.sides.map(|side| side.total.filter(|_| !side.several));
        let both = credits.zip(debits);
        both.is_some_and(|(credits, debits)| credits.saturating_sub(debits) == moved)
    }

    /// A 16.
    fn add(&mut self, code: u16, minor: i64) {
        let is_own = OWN_CODES.contains(&code);
        let is_listed = is_own || matches!(code, 101..=399 | 401..=699);
        let Some(way) = direction(code) else { return };
        if !is_listed {
            self.beside |= minor < 0;
            return;
        }
        let [credits, debits] = &mut self.sides;
        let (side, moved) = match way {
            Direction::Credit => (credits, minor),
            Direction::Debit => (debits, minor.saturating_neg()),
        };
        self.turned |= minor < 0;
        let details = if is_own { &mut side.own } else { &mut side.plain };
        details.sum = details.sum.saturating_add(i128::from(minor));
        details.count = details.count.saturating_add(i128::from(minor != 0));
        if self.moved.len() < REMEMBERED {
            self.moved.insert(moved);
        }
    }

    /// Whether what is listed is just what is said of both sides.
    fn holds(&self, with_own: bool) -> bool {
        self.sides.iter().all(|side| {
            let Details { sum, count } = side.listed(with_own);
            side.total.map_or(count == 0, |total| total == sum)
        })
    }

    /// Whether the sums show which way details went that have a minus.
    fn shows_signs(&self) -> bool {
        self.holds(true) && !self.beside
    }

    /// Whether the sums count details of the bank's own codes: not where they hold without them
    /// alone.
    fn counts_own(&self) -> bool {
        let comes_to = |with_own: bool| {
            let mut said = self.sides.iter().filter(|side| side.total.is_some() && !side.several);
            said.all(|side| side.comes_to(with_own))
        };
        comes_to(true) || !comes_to(false)
    }

    /// Whether a difference between the balances is one detail read the wrong way round: it is
    /// twice what that one moved. Sums of the account's own that hold, or that come to what it
    /// `moved` by its balances, say that none is.
    fn has_turned(&self, off: i128, moved: i128) -> bool {
        if self.comes_to(moved) {
            return false;
        }
        let half = off.checked_div(2).and_then(|half| i64::try_from(half).ok());
        let is_twice = off != 0 && off.checked_rem(2) == Some(0);
        let is_one = half.is_some_and(|half| self.moved.contains(&half));
        is_twice && is_one && !self.turned && !self.holds(true) && !self.holds(false)
    }

    /// Whether just what the details lack of both sums is what the balances are `off` by: a part of
    /// the day is listed.
    fn lacks(&self, off: i128) -> bool {
        let lacks = |side: Side| {
            let total = side.total.filter(|_| !side.several)?;
            Some(total.saturating_sub(side.listed(true).sum)).filter(|lacks| *lacks >= 0)
        };
        let [credits, debits] = self.sides.map(lacks);
        let both = credits.zip(debits).filter(|_| !self.turned);
        both.is_some_and(|(credits, debits)| debits.saturating_sub(credits) == off)
    }

    /// Whether a sum says something else than the details of its side.
    fn is_contradicted(&self) -> bool {
        let mut said = self.sides.iter().filter(|side| side.total.is_some() && !side.several);
        said.any(|side| !side.comes_to(true) && !side.comes_to(false))
    }

    /// Whether both sums are there, and hold.
    fn proves(&self) -> bool {
        let is_said = self.sides.iter().all(|side| side.total.is_some() && !side.several);
        is_said && (self.holds(true) || self.holds(false))
    }

    /// Where what is listed is not what is said. `is_tied`: the balances prove the details.
    fn controls(&self, line: u64, currency: Option<Currency>, is_tied: bool) -> Vec<Control> {
        // Many write the summary of a day and none of its movements.
        let lists = self.sides.iter().any(|side| side.listed(true).count > 0);
        let with_own = self.counts_own();
        let [credits, debits] = self.sides;
        let sides = [
            ("03 total credits (100)", credits, debits),
            ("03 total debits (400)", debits, credits),
        ];
        let mut controls = Vec::new();
        for (name, side, other) in sides {
            let Some(total) = side.total.filter(|_| lists && !side.several) else { continue };
            let Details { sum, count } = side.listed(with_own);
            let (is_more, found) = (sum > total, sum.saturating_add(side.apart));
            let is_sure = is_more && !self.turned && side.has_too_much(total, &other, is_tied);
            let severity = if is_sure { Severity::Error } else { Severity::Warning };
            if is_more || found < total {
                let (field, found) = (name.to_owned(), Found::Is(found));
                let control = Control { line, field, expected: total, found, currency, severity };
                controls.push(control);
                continue;
            }
            // A detail may stand for several items, and no item for several details.
            if let Some(expected) = side.items.filter(|items| count > *items) {
                controls.push(Control {
                    line,
                    field: format!("{name}, items"),
                    expected,
                    found: Found::Is(count),
                    currency: None,
                    severity: Severity::Warning,
                });
            }
        }
        controls
    }
}

impl Side {
    fn declare(&mut self, minor: i128, items: Option<i64>) {
        self.several |= self.total.is_some();
        self.total = Some(minor);
        self.items = items.map(i128::from);
    }

    /// What is listed, with the bank's own codes or without them.
    fn listed(&self, with_own: bool) -> Details {
        let Details { sum, count } = self.plain;
        match with_own {
            true => Details {
                sum: sum.saturating_add(self.own.sum),
                count: count.saturating_add(self.own.count),
            },
            false => self.plain,
        }
    }

    /// Whether that is the total, or lacks only what is said to be listed nowhere.
    fn comes_to(&self, with_own: bool) -> bool {
        let sum = self.listed(with_own).sum;
        self.total.is_some_and(|total| total == sum || total == sum.saturating_add(self.apart))
    }

    /// Whether more than its `total` is listed for sure. Where only the bank's own codes are too
    /// much, they may be in no sum: unless it is just what the other side lacks.
    fn has_too_much(&self, total: i128, other: &Self, is_tied: bool) -> bool {
        if self.plain.sum > total {
            return true;
        }
        let more = self.listed(true).sum.saturating_sub(total);
        let lacks = other.total.map(|total| total.saturating_sub(other.listed(true).sum));
        !is_tied && (lacks == Some(more) || !self.comes_to(false))
    }
}

#[derive(Debug)]
struct Account {
    /// Its number, and where it begins.
    number: String,
    line: u64,
    /// The day of its group: a detail says no other day of its booking.
    day: Option<NaiveDate>,
    currency: Option<Currency>,
    total: i128,
    records: i128,
    opening: Option<Balance>,
    closing: Option<Balance>,
    net: i128,
    listed: Listed,
    /// The line of the first detail that has a minus although its code says which way it went.
    minus: Option<u64>,
    /// The first detail with an amount whose code does not say which way it went, or whether it
    /// did; and whether it is taken for a movement.
    unsided: Option<(Problem, bool)>,
    /// What its details moved, and all that they say, in whichever order.
    moves: Sides,
    told: u64,
    /// Whether an amount other than nil was in it.
    moved: bool,
    failed: bool,
}

impl Account {
    /// Notes a detail, to know an account that is told twice.
    fn note(&mut self, record: &Record, direction: Direction, money: i64) {
        let [credits, debits] = &mut self.moves;
        let (count, sum) = if direction == Direction::Credit { credits } else { debits };
        *count = count.saturating_add(i128::from(money != 0));
        *sum = sum.saturating_add(i128::from(money));
        let mut hasher = DefaultHasher::new();
        record.fields.iter().for_each(|(_, text)| text.trim().hash(&mut hasher));
        self.told = self.told.wrapping_add(hasher.finish());
    }

    /// What it moved by its balances, where it has both.
    fn moved_by_balances(&self) -> Option<i128> {
        let both = self.opening.zip(self.closing);
        let both = both.map(|(opening, closing)| (opening.minor, closing.minor));
        both.map(|(from, to)| i128::from(to).saturating_sub(i128::from(from)))
    }

    /// Whether the sums show which way details went that have a minus: where there are balances,
    /// only together with them, if the sum of debits has one, too.
    fn shows_signs(&self) -> bool {
        let is_so = |moved: i128| !self.listed.signed || self.listed.comes_to(moved);
        self.listed.shows_signs() && self.moved_by_balances().is_none_or(is_so)
    }
}

struct Bai2 {
    lines: Lines,
    pieces: VecDeque<Piece>,
    current: Option<Record>,
    items: VecDeque<Item>,
    entries: u64,
    statements: u64,
    file: Option<File>,
    group: Option<Group>,
    account: Option<Account>,
    twice: Twice,
    ended: bool,
}

impl Parse for Bai2 {
    fn next(&mut self) -> Result<Option<Item>, Problem> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Ok(Some(item));
            }
            if self.ended {
                return Ok(None);
            }
            match self.piece()? {
                Some(piece) => self.take(piece),
                None => {
                    self.flush();
                    self.finish();
                }
            }
        }
    }
}

/// The code that a text begins with, and what follows its comma.
fn split_code(text: &str) -> Option<(&'static str, &str)> {
    let code = CODES.into_iter().find(|code| text.starts_with(code))?;
    let rest = text.get(2..)?;
    let rest =
        rest.strip_prefix(',').or_else(|| (code == "88").then(|| rest.strip_prefix(':'))?)?;
    Some((code, rest))
}

/// Several records may share a line. After a record without text the next may follow at once,
/// after one with text only behind a blank: texts hold slashes.
fn cut(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    let mut searched = 0_usize;
    while let Some(found) = rest.get(searched..).and_then(|tail| tail.find('/')) {
        let slash = searched.saturating_add(found);
        let (before, after) = rest.split_at(slash.saturating_add(1));
        let next = after.trim_start();
        let has_text =
            !matches!(split_code(before), Some((code, _)) if code != "16" && code != "88");
        let is_apart = next.len() < after.len() || !has_text;
        if is_apart && split_code(next).is_some() {
            pieces.push(before);
            rest = next;
            searched = 0;
        } else {
            searched = slash.saturating_add(1);
        }
    }
    pieces.push(rest);
    pieces
}

impl Bai2 {
    fn piece(&mut self) -> Result<Option<Piece>, Problem> {
        while self.pieces.is_empty() {
            if !self.lines.advance()? {
                return Ok(None);
            }
            let (line, byte) = (self.lines.number(), self.lines.byte());
            let text = self.lines.text().trim_end_matches(['\u{1a}', '\0']).trim();
            let is_above = self.file.is_none() && self.current.is_none();
            if text.is_empty() || (is_above && text.starts_with(MAILBOX)) {
                continue;
            }
            let cut = cut(text).into_iter();
            self.pieces.extend(cut.map(|text| Piece { line, byte, text: text.to_owned() }));
        }
        Ok(self.pieces.pop_front())
    }

    fn problem(&mut self, problem: Problem) {
        self.items.push_back(problem.into());
    }

    /// A new record ends the one before; an 88, or a line that is no record, continues it.
    fn take(&mut self, piece: Piece) {
        let text = piece.text.trim_end();
        match split_code(text) {
            Some(("88", rest)) => {
                self.count_record();
                match &mut self.current {
                    Some(record) => record.extend(rest),
                    None => self.problem(Problem::error(
                        piece.line,
                        "88 continuation",
                        "after a record",
                        "none before it",
                    )),
                }
            }
            Some((code, rest)) => {
                self.flush();
                let mut record = Record {
                    line: piece.line,
                    byte: piece.byte,
                    code: code.to_owned(),
                    fields: Vec::new(),
                    pieces: 0,
                    raw: String::new(),
                };
                record.extend(rest);
                self.current = Some(record);
            }
            None => match &mut self.current {
                Some(record) if record.code == "16" => record.extend(text),
                _other => self.problem(Problem::error(
                    piece.line,
                    "record code",
                    "01, 02, 03, 16, 49, 88, 98 or 99",
                    text.chars().take(20).collect::<String>(),
                )),
            },
        }
    }

    /// An 88 counts towards what is open.
    fn count_record(&mut self) {
        if let Some(record) = &self.current {
            let (account, group) =
                (matches!(record.code.as_str(), "03" | "16"), record.code == "02");
            self.add_records(account, group || account);
        }
    }

    fn add_records(&mut self, account: bool, group: bool) {
        // The 03 that an 88 continues has not opened its account yet: `begin_account` counts it.
        if let Some(open) = self.account.as_mut().filter(|_| account) {
            open.records = open.records.saturating_add(1);
        }
        if let Some(open) = self.group.as_mut().filter(|_| group) {
            open.records = open.records.saturating_add(1);
        }
        if let Some(open) = &mut self.file {
            open.records = open.records.saturating_add(1);
        }
    }

    fn flush(&mut self) {
        let Some(record) = self.current.take() else { return };
        match record.code.as_str() {
            "01" => self.begin_file(&record),
            "02" => self.begin_group(&record),
            "03" => self.begin_account(&record),
            "16" => self.detail(&record),
            "49" => self.end_account(&record),
            "98" => self.end_group(&record),
            _last => self.end_file(&record),
        }
    }

    fn begin_file(&mut self, record: &Record) {
        self.close_file(record.line);
        self.file = Some(File { records: pieces(record), ..File::default() });
    }

    fn begin_group(&mut self, record: &Record) {
        self.close_group(record.line);
        let currency = record.field(5);
        let currency = if currency.is_empty() { "USD" } else { currency };
        let time = record.field(4);
        let end_of_day = matches!(time, "" | "2400" | "9999" | "2359");
        let finality = match record.field(6) {
            "1" | "3" => Finality::Interim,
            "2" | "4" => Finality::Final,
            _unsaid if end_of_day => Finality::Final,
            _unsaid => Finality::Interim,
        };
        let status = record.field(2);
        let flags = Flags {
            deletion: status == "2",
            correction: status == "3",
            test: status == "4",
            ..Flags::default()
        };
        let parsed = currency_of(currency, record.line, "02 currency");
        let parsed = parsed.map_err(|problem| self.problem(problem)).ok();
        self.group = Some(Group {
            total: 0,
            accounts: 0,
            records: pieces(record),
            flags,
            finality,
            day: yymmdd(record.field(3)),
            currency: parsed,
        });
        let Some(file) = &mut self.file else {
            self.file = Some(File { records: pieces(record), groups: 1, ..File::default() });
            self.problem(Problem::error(record.line, "01 file header", "before this", "none"));
            return;
        };
        file.groups = file.groups.saturating_add(1);
        // Its 88s were counted as they came.
        file.records = file.records.saturating_add(1);
    }

    fn begin_account(&mut self, record: &Record) {
        self.close_account(record.line);
        let Some(group) = &mut self.group else {
            self.problem(Problem::error(record.line, "02 group header", "before this", "none"));
            return;
        };
        group.accounts = group.accounts.saturating_add(1);
        group.records = group.records.saturating_add(1);
        let day = group.day;
        self.statements = self.statements.saturating_add(1);
        let mut statement = Statement::at(self.statements, record.line, group.finality);
        statement.flags = group.flags;
        statement.from = day;
        statement.to = day;
        statement.account = Some(record.field(0).to_owned()).filter(|text| !text.is_empty());
        let mut currency = group.currency;
        let own = record.field(1);
        if !own.is_empty() {
            match currency_of(own, record.line, "03 currency") {
                Ok(own) => currency = Some(own),
                Err(problem) => {
                    currency = None;
                    self.problem(problem);
                }
            }
        }
        statement.currency = currency;
        self.items.push_back(statement.into());
        if let Some(file) = &mut self.file {
            file.records = file.records.saturating_add(1);
        }
        let mut account = Account {
            number: record.field(0).to_owned(),
            line: record.line,
            day,
            currency,
            total: 0,
            records: pieces(record),
            opening: None,
            closing: None,
            net: 0,
            listed: Listed::default(),
            minus: None,
            unsided: None,
            moves: Sides::default(),
            told: 0,
            moved: false,
            failed: false,
        };
        for problem in summaries(record, &mut account) {
            account.failed = true;
            self.problem(problem);
        }
        if let Some(moved) = account.moved_by_balances() {
            account.listed.hold_against(moved);
        }
        self.account = Some(account);
    }

    fn detail(&mut self, record: &Record) {
        self.add_records(true, true);
        let Some(account) = &mut self.account else {
            self.problem(Problem::error(record.line, "16 detail", "within an account", "none"));
            return;
        };
        match detail(record, account, self.entries.saturating_add(1)) {
            Ok((entry, line, warning)) => {
                self.entries = self.entries.saturating_add(1);
                self.items.push_back(entry.into());
                self.items.push_back(line.into());
                self.items.extend(warning.map(Item::from));
            }
            Err(problem) => {
                account.failed = true;
                self.problem(problem);
            }
        }
    }

    fn end_account(&mut self, record: &Record) {
        self.add_records(true, true);
        let Some(account) = self.account.take() else {
            self.problem(Problem::error(record.line, "49 account trailer", "after a 03", "none"));
            return;
        };
        let Account { total, currency, .. } = account;
        let declared = match record.field(0) {
            // An account without any amount; 98 and 99 prove that there was none.
            "" if !account.moved => Some(0),
            text => signed(text),
        };
        self.check(record.line, "49 account total", declared, total, currency);
        self.count(record, "49 record count", 1, account.records, Severity::Warning);
        if let Some(group) = &mut self.group {
            group.total = group.total.saturating_add(total);
        }
        let holds = self.balances_hold(record.line, &account);
        let is_proven = holds && account.opening.is_some() && account.closing.is_some();
        let sums = account.listed.controls(record.line, account.currency, is_proven);
        self.items.extend(sums.into_iter().map(Item::from));
        if let Some(line) = account.minus.filter(|_| !is_proven && !account.shows_signs()) {
            let expected = "no sign, or balances or sums that show which way it went";
            self.problem(Problem::error(line, "16 amount", expected, "a minus"));
        }
        if let Some((problem, is_move)) = &account.unsided
            && !is_proven
            && (*is_move || !account.listed.proves())
        {
            self.problem(problem.clone());
        }
        self.told_before(&account);
        let is_tied = declared.map(i128::from) == Some(total) && !account.failed && holds;
        self.end_statement(record.line, &account, Some(is_tied));
    }

    /// A closed day of an account that is in the file already would count twice: with the same
    /// balances and sums, or with the same details.
    fn told_before(&mut self, account: &Account) {
        // A report of the running day may be told again as it was.
        let group = self.group.as_ref().filter(|group| group.finality == Finality::Final);
        let Some(Group { day, flags, .. }) = group else { return };
        let name = format!("{}\n{:?} {day:?} {flags:?}", account.number, account.currency);
        let of_details = format!("{name} {:x}", account.told);
        let same = self.twice.end(account.line, of_details, [None; 2], account.moves);
        let balances = [account.opening, account.closing];
        let has_both = balances.iter().all(Option::is_some);
        let alike = has_both.then(|| self.twice.end(account.line, name, balances, account.moves));
        self.items.extend(same.or(alike.flatten()).map(Item::from));
    }

    /// Whether opening and closing ledger hold. They are informative: details may be a part of the
    /// day's movements. Where they differ by one detail that was turned they are not; nor where, of
    /// a closed day, the account's own sums fail as well, by something else than a part that is
    /// lacking.
    fn balances_hold(&mut self, line: u64, account: &Account) -> bool {
        let (Some(opening), Some(closing)) = (account.opening, account.closing) else {
            return true;
        };
        let after = i128::from(opening.minor).saturating_add(account.net);
        let off = after.saturating_sub(i128::from(closing.minor));
        if off != 0 {
            let moved = i128::from(closing.minor).saturating_sub(i128::from(opening.minor));
            let is_turned = account.listed.has_turned(off, moved);
            let group = self.group.as_ref();
            let is_closed =
                group.is_some_and(|own| own.finality == Finality::Final && !own.flags.test);
            let is_listed = account.moves.iter().any(|(count, _)| *count > 0);
            let is_wrong = is_closed
                && is_listed
                && account.listed.is_contradicted()
                && !account.listed.lacks(off);
            let is_error = is_turned || is_wrong;
            self.items.push_back(
                Control {
                    line,
                    field: "03 closing ledger (015)".to_owned(),
                    expected: i128::from(closing.minor),
                    found: Found::Is(after),
                    currency: account.currency,
                    severity: if is_error { Severity::Error } else { Severity::Warning },
                }
                .into(),
            );
        }
        off == 0
    }

    fn end_statement(&mut self, line: u64, account: &Account, tie: Option<bool>) {
        let (opening, closing) = (account.opening, account.closing);
        let tie = tie.map_or(Tie::Declared(false), Tie::Declared);
        let end = StatementEnd { line, opening, closing, tie, ..StatementEnd::default() };
        self.items.push_back(end.into());
    }

    fn end_group(&mut self, record: &Record) {
        self.close_account(record.line);
        self.add_records(false, true);
        let Some(group) = self.group.take() else {
            self.problem(Problem::error(record.line, "98 group trailer", "after a 02", "none"));
            return;
        };
        let declared = signed(record.field(0));
        self.check(record.line, "98 group total", declared, group.total, None);
        self.count(record, "98 account count", 1, group.accounts, Severity::Error);
        self.count(record, "98 record count", 2, group.records, Severity::Warning);
        if let Some(file) = &mut self.file {
            file.total = file.total.saturating_add(group.total);
        }
    }

    fn end_file(&mut self, record: &Record) {
        self.close_group(record.line);
        let Some(file) = &mut self.file else {
            self.problem(Problem::error(record.line, "99 file trailer", "after a 01", "none"));
            return;
        };
        file.closed = true;
        file.records = file.records.saturating_add(1);
        let (total, groups, records) = (file.total, file.groups, file.records);
        self.check(record.line, "99 file total", signed(record.field(0)), total, None);
        self.count(record, "99 group count", 1, groups, Severity::Error);
        self.count(record, "99 record count", 2, records, Severity::Warning);
    }

    fn check(
        &mut self,
        line: u64,
        field: &str,
        declared: Option<i64>,
        found: i128,
        currency: Option<Currency>,
    ) {
        match declared {
            Some(expected) => self.items.push_back(
                Control {
                    line,
                    field: field.to_owned(),
                    expected: i128::from(expected),
                    found: Found::Is(found),
                    currency,
                    severity: Severity::Error,
                }
                .into(),
            ),
            None => self.problem(Problem::error(line, field, "an amount", "none")),
        }
    }

    fn count(&mut self, record: &Record, field: &str, at: usize, found: i128, severity: Severity) {
        let text = record.field(at);
        let (line, field) = (record.line, field.to_owned());
        match signed(text) {
            Some(expected) => {
                let (expected, found) = (i128::from(expected), Found::Is(found));
                let control = Control { line, field, expected, found, currency: None, severity };
                self.items.push_back(control.into());
            }
            None => self.problem(Problem {
                severity,
                ..Problem::error(line, field, found.to_string(), text)
            }),
        }
    }

    fn close_account(&mut self, line: u64) {
        if let Some(account) = self.account.take() {
            self.problem(Problem::error(line, "49 account trailer", "before this", "none"));
            self.end_statement(line, &account, None);
        }
    }

    fn close_group(&mut self, line: u64) {
        self.close_account(line);
        if self.group.take().is_some() {
            self.problem(Problem::error(line, "98 group trailer", "before this", "none"));
        }
    }

    fn close_file(&mut self, line: u64) {
        self.close_group(line);
        if self.file.take().is_some_and(|file| !file.closed) {
            self.problem(Problem::error(line, "99 file trailer", "one at the end", "none"));
        }
    }

    fn finish(&mut self) {
        let line = self.lines.number();
        if self.file.is_none() {
            self.problem(Problem::error(line, "01 file header", "one", "none"));
        }
        self.close_file(line);
        self.ended = true;
    }
}

impl Record {
    fn extend(&mut self, text: &str) {
        if self.raw.len() < RAW_MAX {
            if self.pieces > 0 {
                self.raw.push_str("\n88,");
            } else {
                self.raw.push_str(&self.code);
                self.raw.push(',');
            }
            self.raw.push_str(text);
        }
        let text = text.strip_suffix(['/', '\\']).unwrap_or(text);
        let piece = self.pieces;
        self.fields.extend(text.split(',').map(|field| (piece, field.to_owned())));
        self.pieces = self.pieces.saturating_add(1);
    }

    fn field(&self, at: usize) -> &str {
        self.fields.get(at).map_or("", |(_, text)| text.trim())
    }
}

fn pieces(record: &Record) -> i128 {
    i128::try_from(record.pieces).unwrap_or(i128::MAX)
}

fn currency_of(text: &str, line: u64, field: &str) -> Result<Currency, Problem> {
    Currency::parse_any(text)
        .map_err(|_unknown| Problem::error(line, field, "an ISO 4217 currency", text))
}

/// A whole number with at most one sign; blank is none.
fn signed(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    text.strip_prefix('+').unwrap_or(text).parse().ok().filter(|_| is_number)
}

/// The repeating (type, amount, item count, funds) of a 03.
fn summaries(record: &Record, account: &mut Account) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut at = 2_usize;
    while at < record.fields.len() {
        let code = record.field(at);
        if code.is_empty() {
            at = at.saturating_add(1);
            continue;
        }
        if code.len() != 3 || !code.bytes().all(|byte| byte.is_ascii_digit()) {
            problems.push(Problem::error(record.line, "03 type code", "three digits", code));
            return problems;
        }
        let text = record.field(at.saturating_add(1));
        match signed(text) {
            Some(minor) => {
                summary(account, code, minor, record.line);
                account.listed.declare(code, minor, signed(record.field(at.saturating_add(2))));
            }
            None if text.is_empty() => {}
            None => problems.push(Problem::error(
                record.line,
                format!("03 amount of {code}"),
                "a whole number",
                text,
            )),
        }
        let count = record.field(at.saturating_add(2));
        if !count.is_empty() && signed(count).is_none() {
            let field = format!("03 item count of {code}");
            problems.push(Problem::error(record.line, field, "a whole number", count));
            return problems;
        }
        at = match after_funds(record, at.saturating_add(3)) {
            Ok(next) => next,
            Err(problem) => {
                problems.push(problem);
                return problems;
            }
        };
    }
    problems
}

fn summary(account: &mut Account, code: &str, minor: i64, line: u64) {
    account.total = account.total.saturating_add(i128::from(minor));
    account.moved |= minor != 0;
    let Some(currency) = account.currency else { return };
    let balance = Some(Balance { minor, currency, date: None, line });
    match code {
        "010" => account.opening = balance,
        "015" => account.closing = balance,
        _other => {}
    }
}

/// Where the fields go on after a funds type that stands at `at`.
fn after_funds(record: &Record, at: usize) -> Result<usize, Problem> {
    let next = at.saturating_add(1);
    let funds = record.field(at);
    match funds {
        "" | "0" | "1" | "2" | "Z" | "z" => Ok(next),
        "S" | "s" => Ok(next.saturating_add(3)),
        "V" | "v" => Ok(next.saturating_add(2)),
        "D" | "d" => {
            let pairs: Option<usize> = record.field(next).parse().ok().filter(|n| *n <= 1_000);
            let pairs = pairs.ok_or_else(|| {
                let found = record.field(next);
                Problem::error(record.line, "funds type D", "a number of pairs", found)
            })?;
            Ok(next.saturating_add(1).saturating_add(pairs.saturating_mul(2)))
        }
        _code if funds.len() == 3 && funds.bytes().all(|byte| byte.is_ascii_digit()) => Ok(at),
        other => Err(Problem::error(record.line, "funds type", "0, 1, 2, S, V, D or Z", other)),
    }
}

/// What a type code means for the money; none is status or nothing.
fn direction(code: u16) -> Option<Direction> {
    match code {
        100..=399 | 720..=759 | 920..=959 => Some(Direction::Credit),
        400..=699 | 760..=799 | 960..=999 => Some(Direction::Debit),
        _status => None,
    }
}

/// Whether a code is one of the specification that says which way money went; those of sums of all
/// credits (100) and debits (400) are of no detail.
fn has_side(code: u16) -> bool {
    OWN_CODES.contains(&code) || matches!(code, 101..=399 | 401..=699 | 720..=728 | 760)
}

type Detail = (Entry, Line, Option<Problem>);

fn detail(record: &Record, account: &mut Account, number: u64) -> Result<Detail, Problem> {
    let text = record.field(0);
    let code: Option<u16> = text.parse().ok().filter(|_| text.len() == 3);
    let code =
        code.ok_or_else(|| Problem::error(record.line, "16 type code", "three digits", text))?;
    let currency = account.currency.ok_or_else(|| {
        Problem::error(record.line, "16 currency", "one of its account or group", "none")
    })?;
    let text = record.field(1);
    let minor = match signed(text) {
        Some(minor) => minor,
        None if text.is_empty() => 0,
        None => return Err(Problem::error(record.line, "16 amount", "a whole number", text)),
    };
    if (1..=99).contains(&code) && minor != 0 {
        let (expected, found) = ("the code of a credit or a debit", record.field(0));
        let found = format!("{found}, the code of a balance, with an amount");
        return Err(Problem::error(record.line, "16 type code", expected, found));
    }
    account.total = account.total.saturating_add(i128::from(minor));
    account.moved |= minor != 0;
    let mut warning = None;
    let mut way = direction(code);
    let as_coded = account.listed.signed && way == Some(Direction::Debit);
    account.listed.add(code, if as_coded { minor.saturating_abs() } else { minor });
    if way.is_some() && minor < 0 {
        account.minus = account.minus.or(Some(record.line));
    }
    if let (Some(direction), true) = (way, minor < 0 && !as_coded) {
        // The sum takes it as it stands; so does the direction, where the account proves it.
        way = Some(direction.opposite());
        warning = Some(Problem::warning(record.line, "16 amount", "no sign", text));
    }
    let money = if way.is_some() { minor.saturating_abs() } else { 0 };
    let direction = way.unwrap_or(Direction::Credit);
    if minor != 0 && !has_side(code) && account.unsided.is_none() {
        let expected = "the code of a credit or a debit, or balances that hold with it";
        let found = format!("{}, with an amount", record.field(0));
        let problem = Problem::error(record.line, "16 type code", expected, found);
        account.unsided = Some((problem, way.is_some()));
    }
    account.note(record, direction, money);
    account.net = account.net.saturating_add(direction.signed(money));
    let at = after_funds(record, 2)?;
    let value_on = matches!(record.field(2), "V" | "v").then(|| yymmdd(record.field(3))).flatten();
    let reversal = RETURNS.contains(&code);
    let bank_reference = record.field(at);
    let entry = Entry {
        number,
        line: record.line,
        minor: money,
        currency,
        direction,
        reversal,
        status: if way.is_some() { EntryStatus::Booked } else { EntryStatus::Info },
        booked_on: account.day,
        value_on,
        bank_reference: Some(bank_reference.to_owned()).filter(|text| !text.is_empty()),
        type_code: Some(record.field(0).to_owned()),
        batch: None,
    };
    let mut line = Line { byte: record.byte, raw: record.raw.clone(), ..Line::of(&entry) };
    line.booked_on = entry.booked_on;
    line.type_code.clone_from(&entry.type_code);
    line.tag(TagKind::BankReference, bank_reference);
    line.tag(TagKind::CustomerReference, record.field(at.saturating_add(1)));
    texts(&mut line, record, at.saturating_add(2));
    line.kind = kinds::booking(&line);
    Ok((entry, line, warning))
}

/// The text, and the codewords that some banks put into it, one a continuation.
fn texts(line: &mut Line, record: &Record, from: usize) {
    let mut whole: Vec<String> = Vec::new();
    let mut of = usize::MAX;
    for (piece, field) in record.fields.iter().skip(from) {
        match whole.last_mut() {
            Some(last) if of == *piece => {
                last.push(',');
                last.push_str(field);
            }
            _new => whole.push(field.clone()),
        }
        of = *piece;
    }
    for text in &whole {
        let text = text.trim();
        let kind = match text.split_once(':').map(|(word, _)| word) {
            Some("EREF") => TagKind::EndToEndId,
            Some("CREF") => TagKind::TransactionId,
            Some("REMI") => TagKind::Text,
            _none => continue,
        };
        let value = text.split_once(':').map_or("", |(_, value)| value);
        line.tag(kind, value);
    }
    let joined = whole.join("\n");
    if line.reversal {
        line.return_reason = reason(&joined);
    }
    line.tag(TagKind::Text, &joined);
}

/// `Reason: "R02"`, as written in texts of returns.
fn reason(text: &str) -> Option<String> {
    let (_, after) = text.split_once("Reason: \"")?;
    let code = after.split('"').next()?;
    Some(code.to_owned()).filter(|code| !code.is_empty() && code.len() <= 40)
}
