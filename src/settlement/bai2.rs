//! BAI2 cash management files, and BTR3 files in the same record form.
//!
//! Specification: "Cash Management Balance Reporting Specifications Version 2" (BAI). The sign is
//! in the type code: 100 to 399 are credits, 400 to 699 debits, 700 to 799 loans, 890 no money, the
//! others status; 900 to 999 are the bank's own (see `own`). Details are unsigned, statuses signed;
//! no detail has the code of a balance (001 to 099), and one of no side that has no amount is a
//! message, which moves nothing. A detail may be one of many: those that are listed come to at most
//! what the account says of its credits (100) and debits (400). A minus before a detail took it
//! back, or the bank writes its debits and their sum so: where neither balances nor sums show
//! which, nobody knows. Where there are balances, a sum of debits with a minus is believed only as
//! they hold with it. A code that has no side, or that the specification does not know, moves
//! nothing unproven: one digit more makes a loan (795) or nothing (895) of a credit (195).
//!
//! Continuations are written in more ways than the specification knows, also within one file. What
//! reads them all: the fields of a record and its 88s are one list; where a type code is due, empty
//! fields are passed over; a funds type of three digits is the next type code. The account's
//! control total then proves the reading, so it is an error where it fails; record counts fail in
//! files that tie in every sum, so they are a warning. Days are written in more ways, too; a group
//! that says none may be told again, and decides nothing. A file without line ends is cut by the
//! length of its records, where its 01 says one.
//!
//! NAI, the older form of Australian and New Zealand banks, looks alike and is another: no item
//! counts, no funds types, two totals in each trailer. It is named, and not read.

mod listed;
mod own;

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use chrono::NaiveDate;

use crate::model::money::Currency;
use crate::model::settlement::{
    Balance, Control, Direction, Entry, EntryStatus, Finality, Flags, Found, Line, Problem,
    RAW_MAX, Severity, Statement, StatementEnd, TagKind, Tie,
};
use crate::settlement::amount::{dated, unread_day, yymmdd};
use crate::settlement::kinds;
use crate::settlement::numeral::{Order, day};
use crate::settlement::sheet;
use crate::settlement::text::{Lines, Source};
use crate::settlement::twice::{Sides, Twice};
use crate::settlement::{Item, Parse};

use listed::{Details, Listed};
use own::{OWN_CODES, Own, Proof, Sided};

/// The record codes.
const CODES: [&str; 8] = ["01", "02", "03", "16", "49", "88", "98", "99"];

/// What mailboxes write above a file that they hand out.
const MAILBOX: &str = "$$ADD";

/// A record with its continuations is at most so large, and each field of it counts so much more:
/// it is held whole.
const RECORD_MAX: usize = 8 << 20;
const FIELD_COST: usize = 32;

/// What is expected where a day stands.
const DAY: &str = "a date as YYMMDD";

/// Type codes of what came back (specification, appendix A): returned and reversed items.
const RETURNS: [u16; 12] = [252, 255, 257, 258, 261, 266, 452, 555, 557, 558, 561, 566];

/// The header's version field.
pub fn recognise(head: &str) -> Option<String> {
    let mut rows = head.split(['\n', '\r']).map(str::trim);
    let record = rows.find(|row| !row.is_empty() && !row.starts_with(MAILBOX))?;
    // Its date may have slashes.
    let record = cut(record).into_iter().next()?;
    let fields: Vec<&str> = record.split(',').collect();
    let is_header = fields.first() == Some(&"01") && fields.len() >= 6;
    let version = fields.get(8).and_then(|field| field.split(['/', '\\']).next());
    is_header.then(|| version.map(|version| version.trim().to_owned()).unwrap_or_default())
}

/// Begins to read.
pub fn open(mut source: Source) -> Box<dyn Parse> {
    let head = source.head().map(|head| String::from_utf8_lossy(head).into_owned());
    if let Some(line) = head.ok().and_then(|head| nai(&head)) {
        let expected = "BAI2: of each sum its code, amount, item count and funds type";
        let found = "NAI, pairs of a code and an amount, which is not read; ask the bank for BAI2";
        return sheet::refused(Problem::error(line, "03 account", expected, found));
    }
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

/// The line of the first account, where a file is NAI: its header has no version, and behind the
/// account and its currency stand pairs of a code and an amount, where BAI2 has four fields.
fn nai(head: &str) -> Option<u64> {
    let mut rows = (1_u64..).zip(head.lines().map(str::trim)).filter(|(_, row)| !row.is_empty());
    let (_, header) = rows.next()?;
    if !header.starts_with("01,") || header.split(',').count() != 8 {
        return None;
    }
    let (line, account) = rows.find(|(_, row)| row.starts_with("03,"))?;
    let fields: Vec<&str> = account.split([',', '/']).map(str::trim).skip(3).collect();
    let is_number = |text: &&str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_code = |at: &usize| fields.get(*at).filter(|text| is_number(text) && text.len() == 3);
    let are_codes = [0, 2, 4].iter().all(|at| is_code(at).is_some());
    let are_amounts = [1, 3].iter().all(|at| fields.get(*at).is_some_and(is_number));
    (are_codes && are_amounts).then_some(line)
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
    size: usize,
}

#[derive(Debug, Default)]
struct File {
    /// When it was made.
    made: Option<NaiveDate>,
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

#[derive(Debug, Default)]
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
    /// What could be drawn before and after (040, 045).
    available: [Option<i64>; 2],
    net: i128,
    /// It says sums of movements, be it of all or of a kind of them: what is not listed may be told
    /// so.
    sums: bool,
    listed: Listed,
    own: Own,
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
    /// Counts a detail. Which way it went, as far as its code tells, and what is wrong with a sign.
    fn take(
        &mut self,
        record: &Record,
        code: u16,
        minor: i64,
    ) -> (Option<Direction>, Option<Problem>) {
        self.total = self.total.saturating_add(i128::from(minor));
        self.moved |= minor != 0;
        let way = direction(code);
        let as_coded = self.listed.signed && way == Some(Direction::Debit);
        let counted = if as_coded { minor.saturating_abs() } else { minor };
        if way.is_some() && minor < 0 {
            self.minus = self.minus.or(Some(record.line));
        }
        if minor != 0 && !has_side(code) && self.unsided.is_none() {
            let expected = "the code of a credit or a debit, or balances that hold with it";
            let found = format!("{}, with an amount", record.field(0));
            let problem = Problem::error(record.line, "16 type code", expected, found);
            self.unsided = Some((problem, way.is_some()));
        }
        // The sum takes it as it stands; so does the direction, where the account proves it.
        let is_turned = minor < 0 && !as_coded;
        let went = way.map(|way| if is_turned { way.opposite() } else { way });
        let warning = (went != way)
            .then(|| Problem::warning(record.line, "16 amount", "no sign", record.field(1)));
        if is_own(code) && minor != 0 {
            self.own.add(code, counted, record.line, minor < 0);
            if let Some(way) = way {
                self.listed.remember(way, counted);
            }
            return (went, warning);
        }
        self.listed.add(code, way, counted);
        if let Some(went) = went.filter(|_| minor != 0) {
            self.note(went, Details { sum: i128::from(minor).saturating_abs(), count: 1 });
        }
        (went, warning)
    }

    /// Counts the details of the bank's own codes, by their sides.
    fn count_own(&mut self, sides: &[Sided]) {
        let [credits, debits] = self.own.sums(sides);
        for (way, details) in [(Direction::Credit, credits), (Direction::Debit, debits)] {
            self.listed.add_own(way, details);
            self.note(way, details);
        }
    }

    /// Notes what moved, also to know an account that is told twice.
    fn note(&mut self, way: Direction, details: Details) {
        let [credits, debits] = &mut self.moves;
        let Details { sum, count } = details;
        let (side, net) = match way {
            Direction::Credit => (credits, sum),
            Direction::Debit => (debits, sum.saturating_neg()),
        };
        side.0 = side.0.saturating_add(count);
        side.1 = side.1.saturating_add(sum);
        self.net = self.net.saturating_add(net);
    }

    /// Notes all that a detail says, to know an account that is told twice.
    fn tell(&mut self, record: &Record) {
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

    /// What may show the sides of the bank's own codes. What can be drawn may lack what is not
    /// there yet: it is asked only where there is nothing else.
    fn proof(&self) -> Proof {
        let sides = self.listed.sides;
        let has_sums = sides.iter().all(|side| side.said().is_some());
        let [from, to] = self.available.map(|own| own.map(i128::from));
        let drawn = from.zip(to).filter(|_| !has_sums).map(|(from, to)| to.saturating_sub(from));
        Proof { sides, moved: self.moved_by_balances().or(drawn), net: self.net }
    }

    /// Whether the sums show which way details went that have a minus: where there are balances,
    /// only together with them, if the sum of debits has one, too.
    fn shows_signs(&self) -> bool {
        let is_so = |moved: i128| !self.listed.signed || self.listed.comes_to(moved);
        self.listed.shows_signs() && self.moved_by_balances().is_none_or(is_so)
    }
}

/// A 16 as it was read.
#[derive(Debug)]
struct Detail {
    entry: Entry,
    line: Line,
    warning: Option<Problem>,
    /// Of the bank's own codes: which, and the amount.
    own: Option<(u16, i64)>,
}

impl Detail {
    fn items(self) -> impl Iterator<Item = Item> {
        let Self { entry, line, warning, .. } = self;
        [Some(entry.into()), Some(line.into()), warning.map(Item::from)].into_iter().flatten()
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
                Some(piece) => self.take(piece)?,
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

/// The records of a file that has no line ends: each is as long as its header says (01, field 7),
/// and begins with its code.
fn blocked(text: &str) -> Option<Vec<String>> {
    let header = text.split('/').next().filter(|header| header.starts_with("01,"))?;
    let width: usize = header.split(',').nth(6)?.trim().parse().ok()?;
    if width <= header.len() || text.chars().nth(width).is_none() {
        return None;
    }
    let characters: Vec<char> = text.chars().collect();
    let records = characters.chunks(width).map(|record| record.iter().collect::<String>());
    let records: Vec<String> = records.map(|record| record.trim_end().to_owned()).collect();
    records.iter().all(|record| split_code(record).is_some()).then_some(records)
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
            let records =
                blocked(text).unwrap_or_else(|| cut(text).into_iter().map(str::to_owned).collect());
            self.pieces.extend(records.into_iter().map(|text| Piece { line, byte, text }));
        }
        Ok(self.pieces.pop_front())
    }

    fn problem(&mut self, problem: Problem) {
        self.items.push_back(problem.into());
    }

    /// A day that a field may say; one that cannot be read is told.
    fn day(&mut self, record: &Record, at: usize, field: &str) -> Option<NaiveDate> {
        let text = record.field(at);
        let day = day_of(text);
        let unread = unread_day(record.line, field, text, DAY, day);
        self.items.extend(unread.map(Item::from));
        day
    }

    /// A new record ends the one before; an 88, or a line that is no record, continues it.
    fn take(&mut self, piece: Piece) -> Result<(), Problem> {
        let text = piece.text.trim_end();
        match split_code(text) {
            Some(("88", rest)) => {
                self.count_record();
                match &mut self.current {
                    Some(record) => record.extend(rest, piece.line)?,
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
                    size: 0,
                };
                record.extend(rest, piece.line)?;
                self.current = Some(record);
            }
            None => match &mut self.current {
                Some(record) if record.code == "16" => record.extend(text, piece.line)?,
                _other => self.problem(Problem::error(
                    piece.line,
                    "record code",
                    "01, 02, 03, 16, 49, 88, 98 or 99",
                    text.chars().take(20).collect::<String>(),
                )),
            },
        }
        Ok(())
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
        let made = self.day(record, 2, "01 file creation date");
        self.file = Some(File { made, records: pieces(record), ..File::default() });
    }

    fn begin_group(&mut self, record: &Record) {
        self.close_group(record.line);
        let currency = record.field(5);
        let currency = if currency.is_empty() { "USD" } else { currency };
        let made = self.file.as_ref().and_then(|file| file.made);
        let day = as_of(record);
        let (finality, undecided) = match &day {
            Ok(day) => finality(record, *day, made),
            // Told again it would count again: nothing says which day it is.
            Err(problem) => (Finality::Interim, Some(problem.clone())),
        };
        self.items.extend(undecided.map(Item::from));
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
            day: day.ok(),
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
            records: pieces(record),
            ..Account::default()
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
        if matches!(record.field(2), "V" | "v") {
            self.day(record, 3, "16 value date");
        }
        let Some(account) = &mut self.account else {
            self.problem(Problem::error(record.line, "16 detail", "within an account", "none"));
            return;
        };
        match detail(record, account, self.entries.saturating_add(1)) {
            Ok(detail) => {
                self.entries = self.entries.saturating_add(1);
                let told = account.own.hold(detail);
                let details = account.own.overflow().into_iter().chain(told);
                self.items.extend(details.flat_map(Detail::items));
            }
            Err(problem) => {
                account.failed = true;
                self.problem(problem);
            }
        }
    }

    /// Tells the details that waited for the sides of the bank's own codes, and whether nothing
    /// shows these.
    fn settle_own(&mut self, account: &mut Account) -> Option<Problem> {
        if account.own.is_empty() {
            return None;
        }
        let (sides, problem) = match account.own.sides(&account.proof()) {
            Ok(sides) => (sides, None),
            Err(why) => (account.own.usual(), Some(account.own.problem(why))),
        };
        account.count_own(&sides);
        let details = account.own.release(&sides);
        self.items.extend(details.into_iter().flat_map(Detail::items));
        problem
    }

    fn end_account(&mut self, record: &Record) {
        self.add_records(true, true);
        let Some(mut account) = self.account.take() else {
            self.problem(Problem::error(record.line, "49 account trailer", "after a 03", "none"));
            return;
        };
        let unshown = self.settle_own(&mut account);
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
        let is_open = unshown.is_some();
        let sums = account.listed.controls((record.line, currency), is_proven, is_open);
        self.items.extend(sums.into_iter().map(Item::from).chain(unshown.map(Item::from)));
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
        let is_read = !account.failed && !is_open;
        let is_tied = declared.map(i128::from) == Some(total) && is_read && holds;
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
    /// lacking; nor where it says no sums at all, so that nothing tells a part of the day from what
    /// is wrong or there twice.
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
            let is_part =
                account.sums && (!account.listed.is_contradicted() || account.listed.lacks(off));
            let is_wrong = is_closed && is_listed && !is_part;
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
        // CBA's CommBiz says the total and the records alone: it does not count accounts. Nor does
        // ASB, which writes the comma of a third field.
        let only = signed(record.field(1)).filter(|_| record.field(2).trim().is_empty());
        let only = only.map(i128::from).filter(|_| record.fields.len() > 2);
        let counts_accounts = record.fields.len() != 2 && only != Some(group.records);
        match only.filter(|only| counts_accounts && *only != group.accounts) {
            Some(only) => {
                let (accounts, records) = (group.accounts, group.records);
                let expected = format!("{accounts} accounts, or {records} records alone");
                let found = format!("{only}, and no other count");
                self.problem(Problem::error(record.line, "98 counts", expected, found));
            }
            None => {
                if counts_accounts {
                    self.count(record, "98 account count", 1, group.accounts, Severity::Error);
                }
                let at = if counts_accounts { 2 } else { 1 };
                self.count(record, "98 record count", at, group.records, Severity::Warning);
            }
        }
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
            None => {
                let text = if text.is_empty() { "none" } else { text };
                let said = format!("{text}, where there are {found}");
                self.problem(Problem { severity, ..Problem::error(line, field, "a number", said) });
            }
        }
    }

    fn close_account(&mut self, line: u64) {
        if let Some(mut account) = self.account.take() {
            self.settle_own(&mut account);
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
    /// One more part of it, which stands on `line`.
    fn extend(&mut self, text: &str, line: u64) -> Result<(), Problem> {
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
        let marks = text.bytes().filter(|byte| *byte == b',').count().saturating_add(1);
        let size = text.len().saturating_add(marks.saturating_mul(FIELD_COST));
        self.size = self.size.saturating_add(size);
        if self.size > RECORD_MAX {
            let field = format!("{} with its 88s", self.code);
            let expected = format!("at most {} MiB", RECORD_MAX >> 20);
            let found = format!("more, from line {} on", self.line);
            return Err(Problem::error(line, field, expected, found));
        }
        self.fields.extend(text.split(',').map(|field| (piece, field.to_owned())));
        self.pieces = self.pieces.saturating_add(1);
        Ok(())
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
    // The codes of balances begin with a nought.
    account.sums |= !code.starts_with('0');
    let Some(currency) = account.currency else { return };
    let balance = Some(Balance { minor, currency, date: None, line });
    let [before, after] = &mut account.available;
    match code {
        "010" => account.opening = balance,
        "015" => account.closing = balance,
        "040" => *before = Some(minor),
        "045" => *after = Some(minor),
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

/// Whether a bank gives a code a meaning of its own.
fn is_own(code: u16) -> bool {
    OWN_CODES.contains(&code)
}

/// Whether a code says which way money went, or waits for what does; those of sums of all credits
/// (100) and debits (400) are of no detail.
fn has_side(code: u16) -> bool {
    is_own(code) || matches!(code, 101..=399 | 401..=699 | 720..=728 | 760)
}

/// A day: `YYMMDD`, as the specification has it; or as some banks write it, `YYYYMMDD`,
/// `YYYY-MM-DD`, `YYYY/MM/DD`, and as in America `MM/DD/YY` and `MM/DD/YYYY`.
fn day_of(text: &str) -> Option<NaiveDate> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return match text.len() {
            6 => yymmdd(text),
            8 => day(text, Order::Unknown).and_then(dated),
            _other => None,
        };
    }
    let is_of = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'/' | b'-');
    let is_american = text.bytes().filter(|byte| *byte == b'/').count() == 2;
    let is_iso = text.len() == 10 && matches!(text.as_bytes().get(4), Some(b'-' | b'/'));
    let is_day = text.bytes().all(is_of) && (is_american || is_iso);
    is_day.then(|| day(text, Order::MonthFirst)).flatten().and_then(dated)
}

/// The day that a group is of. Where it says none, its lines are told, and decide nothing; what
/// cannot be read may be a day that another file tells as well.
fn as_of(record: &Record) -> Result<NaiveDate, Problem> {
    let text = record.field(3);
    let field = "02 as-of date";
    let problem = match text.bytes().all(|byte| byte == b'0') {
        true => {
            let found =
                "none: the group is taken for one of the running day, which decides nothing";
            Problem::warning(record.line, field, DAY, found)
        }
        false => Problem::error(record.line, field, DAY, text),
    };
    day_of(text).ok_or(problem)
}

/// Whether a group's day is over, and what is to be said where its time does not tell.
fn finality(
    record: &Record,
    day: NaiveDate,
    made: Option<NaiveDate>,
) -> (Finality, Option<Problem>) {
    let time = record.field(4);
    match (record.field(6), time) {
        ("1" | "3", _) => (Finality::Interim, None),
        ("2" | "4", _) | (_, "" | "2400" | "9999" | "2359") => (Finality::Final, None),
        // Midnight may begin the day or end it: it is over where the file is of a later one.
        (_, "0000") => {
            if made.is_some_and(|made| made > day) {
                return (Finality::Final, None);
            }
            let expected = "2400, an as-of-date modifier, or a file that was made on a later day";
            let found = "0000, which may begin the day: taken for the running day, which decides \
                         nothing";
            let problem = Problem::warning(record.line, "02 as-of time", expected, found);
            (Finality::Interim, Some(problem))
        }
        _running => (Finality::Interim, None),
    }
}

/// The type code of a 16, and its amount.
fn figures(record: &Record) -> Result<(u16, i64), Problem> {
    let text = record.field(0);
    let code: Option<u16> = text.parse().ok().filter(|_| text.len() == 3);
    let code =
        code.ok_or_else(|| Problem::error(record.line, "16 type code", "three digits", text))?;
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
    Ok((code, minor))
}

/// A 16. A message moves nothing.
fn detail(record: &Record, account: &mut Account, number: u64) -> Result<Detail, Problem> {
    let (code, minor) = figures(record)?;
    let currency = account.currency.ok_or_else(|| {
        Problem::error(record.line, "16 currency", "one of its account or group", "none")
    })?;
    account.tell(record);
    let is_message = minor == 0 && (is_own(code) || direction(code).is_none());
    let (way, warning) = match is_message {
        true => (None, None),
        false => account.take(record, code, minor),
    };
    let at = after_funds(record, 2)?;
    let value_on = matches!(record.field(2), "V" | "v").then(|| day_of(record.field(3))).flatten();
    // Banks write a nought where they have none.
    let bank_reference = record.field(at);
    let bank_reference =
        if bank_reference.bytes().all(|b| b == b'0') { "" } else { bank_reference };
    let entry = Entry {
        number,
        line: record.line,
        minor: if way.is_some() { minor.saturating_abs() } else { 0 },
        currency,
        direction: way.unwrap_or(Direction::Credit),
        reversal: RETURNS.contains(&code),
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
    let own = Some((code, minor)).filter(|_| is_own(code) && !is_message);
    Ok(Detail { entry, line, warning, own })
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

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::settlement::ledger::{Inspection, State, inspect};

    fn inspected(text: &str) -> Inspection {
        inspect(Box::new(Cursor::new(text.as_bytes().to_vec())), None, None).unwrap()
    }

    fn entries(text: &str) -> Vec<Entry> {
        let source = Source::open(Box::new(Cursor::new(text.as_bytes().to_vec())), None).unwrap();
        let mut parser = open(source);
        let mut entries = Vec::new();
        while let Some(item) = parser.next().unwrap() {
            if let Item::Entry(entry) = item {
                entries.push(*entry);
            }
        }
        entries
    }

    fn problems(found: &Inspection) -> Vec<String> {
        found.sums.problems.iter().map(ToString::to_string).collect()
    }

    /// Credits and debits of the one currency.
    fn moved(found: &Inspection) -> (i128, i128) {
        let mut totals = found.sums.totals.values();
        totals.next().map_or((0, 0), |totals| (totals.credit_minor, totals.debit_minor))
    }

    /// A file of one account, whose trailers hold: what its 03 says (code, amount, items), and its
    /// details.
    fn file(said: &[(&str, i64, &str)], rows: &[(&str, i64)]) -> String {
        let sums: String =
            said.iter().map(|(code, minor, items)| format!(",{code},{minor},{items},")).collect();
        let details: String = (1..)
            .zip(rows)
            .map(|(at, (code, minor))| format!("16,{code},{minor},Z,0,R{at},x\n"))
            .collect();
        let minor = said.iter().map(|(_, minor, _)| minor);
        let total = minor.chain(rows.iter().map(|(_, minor)| minor)).sum::<i64>();
        let count = rows.len();
        format!(
            "01,A,B,261119,0400,1,,,2/\n02,B,A,1,261118,2400,AUD,2/\n03,1,{sums}/\n{details}\
             49,{total},{}/\n98,{total},1,{}/\n99,{total},1,{}/\n",
            count + 2,
            count + 4,
            count + 6
        )
    }

    #[track_caller]
    fn refused(text: &str, part: &str) {
        let found = inspected(text);
        assert_eq!(found.state, State::Quarantined, "{part}");
        assert!(problems(&found).iter().any(|one| one.contains(part)), "{:?}", problems(&found));
    }

    /// A group whose day could not be read was final, and counted again when it came again.
    #[test]
    fn a_group_is_of_its_day_however_that_is_written_and_of_none_decides_nothing() {
        let of = |day: &str| inspected(&file(&[], &[("195", 1_000)]).replace("261118", day));
        for day in ["261118", "20261118", "2026-11-18", "2026/11/18", "11/18/26", "11/18/2026"] {
            let found = of(day);
            assert_eq!(found.state, State::Ok, "{day}: {:?}", problems(&found));
            assert_eq!(found.sums.problems_total, 0, "{day}: {:?}", problems(&found));
            let head = &found.sums.statements[0].head;
            assert_eq!(head.finality, Finality::Final, "{day}");
            assert_eq!(head.from.unwrap().to_string(), "2026-11-18", "{day}");
        }
        for day in ["269918", "18.11.2026", "18/11/2026", "2026118", "0000-11-18", "today"] {
            refused(&file(&[], &[("195", 1_000)]).replace("261118", day), "02 as-of date");
        }
        for day in ["", "000000"] {
            let found = of(day);
            assert_eq!(found.state, State::Ok, "{day}: {:?}", problems(&found));
            assert!(problems(&found)[0].contains("02 as-of date"), "{day}: {:?}", problems(&found));
            let head = &found.sums.statements[0].head;
            assert_eq!((head.finality, head.from), (Finality::Interim, None), "{day}");
        }
    }

    #[test]
    fn other_days_that_cannot_be_read_are_told() {
        let text = file(&[], &[("195", 1_000)]);
        for (from, to, field) in [
            ("261119", "11/19/26", None),
            ("261119", "269919", Some("01 file creation date")),
            ("261119", "", None),
            (",Z,", ",V,261121,,", None),
            (",Z,", ",V,11/21/26,,", None),
            (",Z,", ",V,,,", None),
            (",Z,", ",V,269921,,", Some("16 value date")),
        ] {
            let found = inspected(&text.replace(from, to));
            let said = found.sums.problems.first();
            assert_eq!(found.state, State::Ok, "{to}: {:?}", problems(&found));
            assert_eq!(said.map(|one| one.field.as_str()), field, "{to}: {:?}", problems(&found));
        }
    }

    #[test]
    fn a_record_with_its_continuations_has_a_bound() {
        let text = file(&[], &[("195", 1_000)]);
        let with = |lines: usize| {
            let more = format!("88,{}\n", "x".repeat(60)).repeat(lines);
            text.replace("49,", &format!("{more}49,"))
        };
        assert_eq!(inspected(&with(1_000)).state, State::Ok);
        refused(&with(100_000), "16 with its 88s");
        let commas = format!("88{}\n", ",".repeat(60_000)).repeat(10);
        refused(&text.replace("49,", &format!("{commas}49,")), "at most 8 MiB");
    }

    /// NAB's 951 is a fee and its 905 interest, CBA's 990 and 992 came in.
    #[test]
    fn a_bank_s_own_code_has_the_side_that_both_sums_show() {
        for (said, rows, want) in [
            (
                vec![("100", 1_000, ""), ("400", 300, "")],
                vec![("195", 1_000), ("495", 200), ("951", 100)],
                (1_000, 300),
            ),
            (vec![("100", 0, ""), ("400", 100, "")], vec![("951", 100)], (0, 100)),
            (
                vec![("100", 1_000, ""), ("400", 0, "")],
                vec![("905", 700), ("195", 300)],
                (1_000, 0),
            ),
            (
                vec![("100", 700, ""), ("400", 300, "")],
                vec![("910", 700), ("495", 300)],
                (700, 300),
            ),
            (
                vec![("100", 1_249, "3"), ("400", 1_200, "2")],
                vec![("257", 449), ("990", 400), ("992", 400), ("988", 500), ("988", 700)],
                (1_249, 1_200),
            ),
            // As the specification says, and a status that moved nothing.
            (vec![("100", 700, ""), ("400", 40, "")], vec![("930", 700), ("980", 40)], (700, 40)),
            (vec![("100", 300, ""), ("400", 0, "")], vec![("195", 300), ("905", 7)], (300, 0)),
            // One sum, and the specification's sides hold with it.
            (vec![("100", 700, "1")], vec![("948", 700), ("988", 40)], (700, 40)),
        ] {
            let text = file(&said, &rows);
            let found = inspected(&text);
            assert_eq!(found.state, State::Ok, "{rows:?}: {:?}", problems(&found));
            assert_eq!(found.sums.problems_total, 0, "{rows:?}: {:?}", problems(&found));
            assert_eq!(moved(&found), want, "{rows:?}");
            assert_eq!(found.sums.statements[0].ties, Some(true), "{rows:?}");
            let places = entries(&text).into_iter().map(|entry| entry.number);
            assert_eq!(places.collect::<Vec<_>>(), (1..=found.sums.entries).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_bank_s_own_code_has_the_side_that_the_balances_show() {
        let fee = [("195", 1_000), ("495", 200), ("951", 100)];
        let ledger = |closing: i64| vec![("015", closing, ""), ("010", 5_000, "")];
        let drawn = |closing: i64| vec![("040", 5_000, ""), ("045", closing, "")];
        for (said, want) in [
            (ledger(5_700), (1_000, 300)),
            (ledger(5_900), (1_100, 200)),
            (drawn(5_700), (1_000, 300)),
            ([ledger(5_700), vec![("100", 1_000, "1"), ("400", 300, "2")]].concat(), (1_000, 300)),
            // What can be drawn may lack what both sums show.
            ([drawn(5_200), vec![("100", 1_000, ""), ("400", 300, "")]].concat(), (1_000, 300)),
        ] {
            let found = inspected(&file(&said, &fee));
            assert_eq!(found.state, State::Ok, "{said:?}: {:?}", problems(&found));
            assert_eq!(moved(&found), want, "{said:?}");
        }
        let unshown = "16 type code: expected the code of a credit or a debit, or sums of both";
        refused(&file(&ledger(5_800), &fee), unshown);
        // One shows this side, and the other that; and balances beside sums that leave it out.
        let and = |sums: [i64; 2]| {
            let [credits, debits] = sums;
            [ledger(5_900), vec![("100", credits, ""), ("400", debits, "")]].concat()
        };
        refused(&file(&and([1_000, 300]), &fee), unshown);
        let found = inspected(&file(&and([1_000, 200]), &fee));
        assert_eq!(
            (found.state, moved(&found)),
            (State::Ok, (1_100, 200)),
            "{:?}",
            problems(&found)
        );
    }

    #[test]
    fn a_bank_s_own_code_whose_side_nothing_shows_is_not_counted_on() {
        let said = "codes of the bank's own";
        let fee = [("195", 1_000), ("495", 200), ("951", 100)];
        refused(&file(&[("015", 5_000, "")], &fee), "line 6: 16 type code");
        refused(&file(&[("015", 5_000, "")], &fee), "found 951 (line 6): codes of the bank's own");
        let three = [("990", 400), ("948", 700), ("990", 300)];
        refused(&file(&[], &three), "found 990 (lines 4, 6), 948 (line 5): codes");
        // A single sum that holds with no reading of the specification's.
        let text = file(&[("100", 1_100, "2")], &[("990", 400), ("948", 700)]);
        refused(&text, said);
        refused(&text, "03 total credits (100): expected 11.00 AUD, found 7.00 AUD");
        let found = inspected(&text);
        assert!(found.sums.problems.iter().all(|one| one.severity == Severity::Error));
        // A part of the day, and a bank that leaves its codes out of its sums.
        let sums = [("100", 700, ""), ("400", 200, "")];
        refused(&file(&sums, &[("195", 400), ("475", 200), ("970", 20)]), said);
        refused(&file(&sums, &[("195", 700), ("475", 200), ("999", 20)]), said);
        // Either one of two is the fee.
        let alike = [("195", 700), ("951", 100), ("952", 100)];
        let either = file(&[("100", 800, ""), ("400", 100, "")], &alike);
        refused(&either, "they hold with more than one choice of sides");
        // The items tell them apart.
        let counted = [("195", 700), ("951", 50), ("951", 50), ("952", 100)];
        let found = inspected(&file(&[("100", 800, "3"), ("400", 100, "1")], &counted));
        assert_eq!((found.state, moved(&found)), (State::Ok, (800, 100)), "{:?}", problems(&found));
        let found = inspected(&file(&[("100", 800, "2"), ("400", 100, "2")], &counted));
        assert_eq!((found.state, moved(&found)), (State::Ok, (800, 100)), "{:?}", problems(&found));
    }

    /// The specification's sides are told, and the file is refused, where too much would wait.
    #[test]
    fn details_do_not_wait_without_bound() {
        let fee = [("951", 100)];
        let rest = std::iter::repeat_n(("195", 10), 60_000);
        let rows: Vec<(&str, i64)> = fee.into_iter().chain(rest).collect();
        let text = file(&[("100", 600_000, ""), ("400", 100, "")], &rows);
        let found = inspected(&text);
        assert_eq!(found.state, State::Quarantined);
        assert_eq!((found.sums.entries, moved(&found)), (60_001, (600_100, 0)));
        let places = entries(&text).into_iter().map(|entry| entry.number);
        assert!(places.eq(1..=60_001), "in the order of the file");
    }

    #[test]
    fn a_group_trailer_may_count_records_alone() {
        let text = file(&[("100", 500, "1")], &[("399", 500)]);
        let (three, two) = ("98,1000,1,5/", "98,1000,5/");
        assert!(text.contains(three), "{text}");
        for text in [text.clone(), text.replace(three, two), text.replace(three, "98,1000,5,/")] {
            let found = inspected(&text);
            assert_eq!((found.state, found.sums.problems_total), (State::Ok, 0), "{text}");
        }
        let other = inspected(&text.replace(three, "98,1000,6/"));
        assert_eq!(other.state, State::Ok, "record counts only warn");
        assert!(problems(&other)[0].contains("98 record count: expected 6, found 5"));
        refused(&text.replace(three, "98,1000,2,5/"), "98 account count: expected 2, found 1");
        let part =
            "98 counts: expected 1 accounts, or 5 records alone, found 6, and no other count";
        refused(&text.replace(three, "98,1000,6,/"), part);
        let unread = inspected(&text.replace(three, "98,1000,1,/"));
        let said = "98 record count: expected a number, found none, where there are 5";
        assert!(problems(&unread)[0].contains(said), "{:?}", problems(&unread));
        refused(
            &text.replace(three, "98,1000,x,5/"),
            "expected a number, found x, where there are 1",
        );
    }

    #[test]
    fn midnight_is_the_end_of_a_day_that_is_over() {
        let of = |made: &str, time: &str, modifier: &str| {
            let text = file(&[], &[("399", 500)]);
            let text = text.replace("261119", made).replace(",2400,AUD,2/", time);
            let found = inspected(&text.replace("MOD", modifier));
            assert_eq!(found.state, State::Ok, "{:?}", problems(&found));
            (found.sums.statements[0].head.finality, found.sums.problems_total)
        };
        let midnight = ",0000,AUD,MOD/";
        assert_eq!(of("261119", midnight, ""), (Finality::Final, 0));
        assert_eq!(of("261118", midnight, ""), (Finality::Interim, 1));
        assert_eq!(of("", midnight, ""), (Finality::Interim, 1));
        assert_eq!(of("261119", midnight, "3"), (Finality::Interim, 0));
        assert_eq!(of("261118", midnight, "2"), (Finality::Final, 0));
        assert_eq!(of("261119", ",0945,AUD,/", ""), (Finality::Interim, 0));
        // As Oracle's manual has it, with blanks.
        assert_eq!(of("261119", ", 0000, AUD, /", ""), (Finality::Final, 0));
    }

    #[test]
    fn a_message_moves_nothing_and_a_nought_is_no_reference() {
        for message in ["16,890,,,,,closed/", "16,890,0,,,,closed/", "16,910,,Z,,,rates/"] {
            let text = file(&[], &[("399", 500)]);
            let text = text.replace("49,500,3/", &format!("{message}\n49,500,4/"));
            let text = text.replace("1,5/", "1,6/").replace("1,7/", "1,8/");
            let found = inspected(&text);
            assert_eq!((found.state, found.sums.problems_total), (State::Ok, 0), "{message}");
            assert_eq!((found.sums.entries, found.sums.lines), (2, 2), "{message}");
            let dollar = found.sums.totals.values().next().unwrap();
            assert_eq!((dollar.credit_minor, dollar.debit_minor), (500, 0), "{message}");
        }
        let text = file(&[], &[("399", 500)]);
        assert_eq!(inspected(&text).sums.references.get(&TagKind::BankReference), None);
        assert_eq!(entries(&text)[0].bank_reference, None);
        let named = text.replace(",Z,0,", ",Z,070,");
        assert_eq!(entries(&named)[0].bank_reference.as_deref(), Some("070"));
    }

    #[test]
    fn nai_is_named_and_not_read() {
        let text = "01,,B,261119,0400,1,78,78/\n02,B,A,1,261118,0000/\n\
                    03,1,AUD,015,1000,100,000,102,000,400/\n88,300,402,100/\n\
                    16,495,300,0,0,PAYMENT/\n49,1700,1300/\n98,1700,1,1300/\n99,1700,1,7,1300/\n";
        let found = inspected(text);
        assert_eq!((found.state, found.sums.problems_total), (State::Quarantined, 1));
        assert!(problems(&found)[0].contains("found NAI"), "{:?}", problems(&found));
        // BAI2 whose header lacks a field.
        let short = file(&[("015", 1_000, ""), ("100", 500, "1")], &[("399", 500)]);
        let short = short.replace("01,A,B,261119,0400,1,,,2/", "01,A,B,261119,0400,1,,2/");
        let found = inspected(&short);
        assert_eq!(
            (found.state, found.sums.problems_total),
            (State::Ok, 0),
            "{:?}",
            problems(&found)
        );
    }

    #[test]
    fn records_without_line_ends_are_as_long_as_the_header_says() {
        let text = file(&[("010", 500, "")], &[("399", 500), ("475", 70)]);
        let text = text.replace("0400,1,,,2/", "0400,1,80,,2/").replace(",x\n", ",a/b 49,1\n");
        let lines = inspected(&text);
        assert_eq!((lines.state, lines.sums.problems_total), (State::Ok, 0));
        let joined: String = text.lines().map(|line| format!("{line:<80}")).collect();
        for joined in [joined.clone(), joined.trim_end().to_owned(), format!("{joined}\n")] {
            let found = inspected(&joined);
            assert_eq!(found.state, State::Ok, "{:?}", problems(&found));
            assert_eq!(found.sums.totals, lines.sums.totals);
        }
        refused(&joined.replace("1,80,,2/", "1,81,,2/"), "49");
    }
}
