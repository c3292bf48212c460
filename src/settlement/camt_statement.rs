//! What stands around the entries of a camt statement: its head, its balances, its summary.

use std::collections::HashMap;

use chrono::NaiveDate;

use crate::model::money::{Currency, Money};
use crate::model::settlement::{
    Balance, Control, Entry, EntryStatus, Finality, Found, Measure, Problem, Severity, Statement,
    StatementEnd, Tie, page_from,
};
use crate::settlement::Item;
use crate::settlement::amount::{iso_day, shown, unsigned};
use crate::settlement::camt::without_plus;
use crate::settlement::camt_codes::{Codes, Groups};
use crate::settlement::camt_totals::{Totals, Whole, figure, nearest};
use crate::settlement::twice::Sides;
use crate::settlement::xml::Xml;

/// So many balances are kept: a month with two a day, in several currencies.
const BALANCES: usize = 2_000;

/// So many entries of unknown statuses, and balances that were rounded, are told of a statement.
const TOLD: usize = 50;

/// So many pages of a file wait for the one that goes on from them.
const PAGES: usize = 10_000;

/// The statuses of entries, of all versions.
const STATUSES: [&str; 4] = ["BOOK", "PDNG", "INFO", "FUTR"];

/// The elements that say which statement it is.
pub struct Head {
    statement: Statement,
    currency: String,
    /// The number of the page, where the statement tells it.
    page: Option<u64>,
}

impl Head {
    /// Of a statement that begins.
    pub fn new(statement: Statement) -> Self {
        Self { statement, currency: String::new(), page: None }
    }

    /// A leaf below the statement.
    pub fn leaf(&mut self, leaf: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        let statement = &mut self.statement;
        match leaf {
            "Id" => statement.id = Some(text.to_owned()),
            "ElctrncSeqNb" => statement.sequence = Some(text.to_owned()),
            "StmtPgntn/PgNb" => self.page = text.parse().ok(),
            "LglSeqNb" if statement.sequence.is_none() => {
                statement.sequence = Some(text.to_owned());
            }
            "CpyDplctInd" => {
                statement.flags.copy = text == "CODU" || text == "COPY";
                statement.flags.duplicate = text == "CODU" || text == "DUPL";
            }
            "FrToDt/FrDtTm" | "FrToDt/FrDt" => statement.from = iso_day(text),
            "FrToDt/ToDtTm" | "FrToDt/ToDt" => statement.to = iso_day(text),
            "Acct/Ccy" => text.clone_into(&mut self.currency),
            "Acct/Id/IBAN" => statement.account = Some(text.to_owned()),
            "Acct/Id/Othr/Id" | "Acct/Id/PrtryAcct/Id" | "Acct/Id/BBAN" | "Acct/Id/UPIC"
                if statement.account.is_none() =>
            {
                statement.account = Some(text.to_owned());
            }
            _other => {}
        }
    }

    /// Notes which page of its statement it is: by its own number, or by that of its message where
    /// it goes on from another page's balance; else by that balance. The first page goes on from
    /// none: nearly every message is its own page 1, whatever pages of statements it holds.
    pub fn turn_to_page(&mut self, message: Option<u64>, goes_on_from: Option<Balance>) {
        let number = self.page.or(message.filter(|_| goes_on_from.is_some()));
        let page = match (number, goes_on_from) {
            (Some(0 | 1) | None, None) => None,
            (Some(0 | 1) | None, Some(from)) => {
                Some(page_from(Money::new(from.minor, from.currency)))
            }
            (Some(number), _) => Some(format!("page {number}")),
        };
        self.statement.page = page.filter(|_| self.finality() == Finality::Final);
    }

    /// The account's currency, where it is one.
    pub fn currency(&self) -> Option<Currency> {
        Currency::parse_any(&self.currency).ok()
    }

    /// The account as it is written.
    pub fn account(&self) -> Option<&str> {
        self.statement.account.as_deref()
    }

    /// Where it begins.
    pub fn line(&self) -> u64 {
        self.statement.line
    }

    /// What it calls itself: its account, id, number and period; none where it has no id.
    pub fn name(&self) -> Option<String> {
        let Statement { account, id, sequence, from, to, .. } = &self.statement;
        let id = id.as_ref()?;
        Some(format!("{account:?} {id:?} {sequence:?} {from:?} {to:?}"))
    }

    /// Whether it says its period.
    fn has_period(&self) -> bool {
        self.statement.from.is_some()
    }

    /// What is said of its account: none, or one of another currency than its balances or entries.
    /// A notice or a report of the running day may be of no account that it names.
    pub fn odd_account(&self, found: Option<Currency>) -> Option<Problem> {
        let line = self.line();
        if self.account().is_none() && self.finality() == Finality::Final {
            let expected = "the account of each statement";
            return Some(Problem::warning(line, "Acct/Id", expected, "none"));
        }
        let (own, found) = self.currency().zip(found).filter(|(own, found)| own != found)?;
        let expected = format!("{found}, as its balances and entries");
        Some(Problem::warning(line, "Acct/Ccy", expected, own.code()))
    }

    /// What the statement may decide.
    pub fn finality(&self) -> Finality {
        self.statement.finality
    }

    /// As it is known by now.
    pub fn statement(&self) -> (Statement, Vec<Problem>) {
        let mut statement = self.statement.clone();
        statement.currency = self.currency();
        let mut problems = Vec::new();
        if statement.currency.is_none() && !self.currency.is_empty() {
            let (line, found) = (statement.line, self.currency.as_str());
            problems.push(Problem::error(line, "Acct/Ccy", "an ISO 4217 currency", found));
        }
        (statement, problems)
    }
}

/// The balances as they come. `OPBD`, or `PRCD` (the closing balance of the time before), opens;
/// `CLBD` closes; American banks write BAI's codes of the two instead, `010` and `015`. Pages of
/// one statement are joined by `ITBD`, the interim booked balance. All others (available, forward,
/// expected) are no part of the equation. Where a statement has only the available ones (`OPAV`,
/// `CLAV`), it ties where they do; where they do not, nothing is said, since what is available is
/// not what was booked.
#[derive(Default)]
pub struct Balances {
    all: Vec<Known>,
    /// The available balances: whether it opens, and which.
    available: Vec<(bool, Balance)>,
    /// What was wrong with amounts that were rounded.
    rounded: Vec<Problem>,
    /// Balances that tie, whose elements stand there and are empty.
    absent: Vec<Problem>,
    line: u64,
    kind: String,
    amount: String,
    currency: String,
    amount_line: u64,
    debit: bool,
    /// It says which way it is.
    has_way: bool,
    date: Option<NaiveDate>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    kind: Kind,
    balance: Balance,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Opening,
    Previous,
    Closing,
    Interim,
}

impl Kind {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "OPBD" | "010" => Some(Self::Opening),
            "PRCD" => Some(Self::Previous),
            "CLBD" | "015" => Some(Self::Closing),
            "ITBD" => Some(Self::Interim),
            _other => None,
        }
    }
}

impl Balances {
    /// A `Bal` begins.
    pub fn begin(&mut self, line: u64) {
        let Self { all, available, rounded, absent, .. } = std::mem::take(self);
        *self = Self { all, available, rounded, absent, line, ..Self::default() };
    }

    /// A leaf below it.
    pub fn leaf(&mut self, leaf: &str, xml: &Xml) {
        let text = xml.text();
        match leaf {
            "Tp/CdOrPrtry/Cd" | "Tp/CdOrPrtry/Prtry" | "Tp/Cd" | "Tp/Prtry" => {
                text.clone_into(&mut self.kind);
            }
            "Amt" => {
                text.clone_into(&mut self.amount);
                xml.currency().clone_into(&mut self.currency);
                self.amount_line = xml.line();
            }
            "CdtDbtInd" => {
                self.debit = text == "DBIT";
                self.has_way = !text.is_empty();
            }
            "Dt/Dt" | "Dt/DtTm" | "Dt" => self.date = self.date.or(iso_day(text)),
            _other => {}
        }
    }

    /// It ends. What cannot be read is a problem: an error only where the balance ties something.
    pub fn end(&mut self, account: Option<Currency>) -> Option<Problem> {
        let kind = Kind::parse(&self.kind);
        let name = if self.kind.is_empty() { "of no kind" } else { self.kind.as_str() };
        let field = format!("Bal/Amt {name}");
        let of = |problem: Problem| match kind {
            Some(_ties) => Some(problem),
            None => Some(Problem { severity: Severity::Warning, ..problem }),
        };
        let currency = match (self.currency.as_str(), account) {
            ("", Some(account)) => Ok(account),
            (code, _) => Currency::parse_any(code),
        };
        let Ok(currency) = currency else {
            let found = or_nothing(&self.currency);
            return of(Problem::error(self.amount_line, field, "an ISO 4217 currency", found));
        };
        let minor = match unsigned(without_plus(&self.amount), b'.', currency) {
            Ok(minor) => minor,
            Err(refused) => {
                let line = self.amount_line.max(self.line);
                let problem = refused.at(line, &field, or_nothing(&self.amount), currency);
                if kind.is_some() && self.amount.is_empty() && !self.has_way {
                    // Whether it may be absent, the end of the statement tells.
                    if self.absent.len() < TOLD {
                        self.absent.push(problem);
                    }
                    return None;
                }
                let nearest = nearest(&self.amount, currency).filter(|_| kind.is_some());
                let Some(minor) = nearest else { return of(problem) };
                if self.rounded.len() < TOLD {
                    self.rounded.push(problem);
                }
                minor
            }
        };
        let minor = if self.debit { minor.saturating_neg() } else { minor };
        let balance = Balance { minor, currency, date: self.date, line: self.line };
        if let Some(kind) = kind.filter(|_| self.all.len() < BALANCES) {
            self.all.push(Known { kind, balance });
        }
        let opens = self.kind == "OPAV";
        if (opens || self.kind == "CLAV") && self.available.len() < BALANCES {
            self.available.push((opens, balance));
        }
        None
    }

    /// The interim balance that it begins with, where none opens it: another page goes before it.
    pub fn goes_on_from(&self) -> Option<Balance> {
        let opens = |known: &Known| matches!(known.kind, Kind::Opening | Kind::Previous);
        let interim = self.all.iter().find(|known| known.kind == Kind::Interim);
        interim.filter(|_| !self.all.iter().any(opens)).map(|known| known.balance)
    }

    /// The day that it ends on by what closes it.
    pub fn last_day(&self) -> Option<NaiveDate> {
        let of = |kind: Kind| {
            let own = self.all.iter().filter(move |known| known.kind == kind);
            own.filter_map(|known| known.balance.date).max()
        };
        of(Kind::Closing).or_else(|| of(Kind::Interim))
    }

    /// This end of the statement, where it is interim: a page, and another goes on from it.
    fn interim(&self, end: Option<Balance>) -> Option<Balance> {
        let own = |known: &Known| known.kind == Kind::Interim && Some(known.balance) == end;
        end.filter(|_| self.all.iter().any(own))
    }

    /// A booked balance of this end, in whichever currency.
    fn foreign(&self, opens: bool) -> Option<Balance> {
        let is_end = |kind: Kind| match kind {
            Kind::Opening | Kind::Previous => opens,
            Kind::Closing => !opens,
            Kind::Interim => false,
        };
        self.all.iter().find(|known| is_end(known.kind)).map(|known| known.balance)
    }

    /// The available balances, where they tie.
    fn available_tie(&self, account: Option<Currency>, summary: &Summary) -> bool {
        let currency = account.or_else(|| self.available.first().map(|(_, own)| own.currency));
        let of = |opens: bool| {
            let own = self.available.iter().filter(move |(which, _)| *which == opens);
            own.map(|(_, balance)| balance).filter(|own| Some(own.currency) == currency)
        };
        let opening = of(true).min_by_key(|balance| balance.date);
        let closing = of(false).max_by_key(|balance| balance.date);
        opening.zip(closing).is_some_and(|(opening, closing)| summary.ties(opening, closing))
    }

    /// Opening and closing of the whole: the earliest that opens, the latest that closes. What
    /// only a tie can prove (a status that nobody knows, an amount that was rounded) is an error
    /// without one.
    pub fn close(
        &self,
        line: u64,
        finality: Finality,
        account: Option<Currency>,
        summary: &Summary,
    ) -> (StatementEnd, Vec<Problem>) {
        let currency = account.filter(|own| self.all.iter().any(|b| b.balance.currency == *own));
        let currency = currency.or_else(|| self.all.first().map(|known| known.balance.currency));
        let of = |kind: Kind| {
            let own = self.all.iter().filter(move |known| known.kind == kind);
            own.map(|known| known.balance).filter(|b| Some(b.currency) == currency)
        };
        let first = |kind| of(kind).min_by_key(|balance| balance.date);
        // Of several with one date the last: that is how days follow one another in a file.
        let last = |kind| of(kind).max_by_key(|balance| balance.date);
        let mut opening = first(Kind::Opening).or_else(|| first(Kind::Previous));
        let mut closing = last(Kind::Closing);
        if finality == Finality::Final {
            // One interim balance is one end of a page, not both.
            let spare = usize::from(opening.is_none());
            opening = opening.or_else(|| of(Kind::Interim).next());
            closing = closing.or_else(|| of(Kind::Interim).skip(spare).last());
        }
        let (mut problems, mut tie) = (Vec::new(), Tie::Balances);
        let has_none = opening.is_none() && closing.is_none();
        if has_none && self.available_tie(account, summary) {
            tie = Tie::Declared(true);
            let (field, expected) = ("Bal", "booked balances (OPBD, CLBD)");
            let found = "only available ones (OPAV, CLAV); the entries are tied by them";
            problems.push(Problem::warning(line, field, expected, found));
        } else if finality == Finality::Final {
            for (balance, name, opens) in
                [(&opening, "opening (OPBD)", true), (&closing, "closing (CLBD)", false)]
            {
                if balance.is_some() {
                    continue;
                }
                let field = format!("{name} balance");
                let foreign = self.foreign(opens).zip(currency);
                problems.push(match foreign {
                    Some((foreign, own)) => {
                        let (line, found) = (foreign.line, foreign.currency.code());
                        Problem::error(line, field, format!("one in {own}"), found)
                    }
                    None => {
                        let found = "none: no balances tie the entries";
                        Problem::warning(line, field, "one", found)
                    }
                });
            }
        }
        let both = opening.as_ref().zip(closing.as_ref());
        let is_tied = tie == Tie::Declared(true)
            || both.is_some_and(|(opening, closing)| summary.ties(opening, closing));
        let severity = if is_tied { Severity::Warning } else { Severity::Error };
        let rounded = self.rounded.iter().cloned();
        problems.extend(rounded.map(|problem| Problem { severity, ..problem }));
        problems.extend(self.told_absent(finality));
        if finality == Finality::Final {
            problems.extend(self.contradictory(currency));
        }
        problems.extend(summary.unknown_statuses(is_tied));
        let is_bare = self.all.is_empty() && self.available.is_empty();
        problems.extend(summary.no_status().filter(|_| is_bare && finality == Finality::Final));
        let (from, to) = (opening.and_then(|b| b.date), closing.and_then(|b| b.date));
        let from = from.or(to);
        let zones = Vec::new();
        let end = StatementEnd { line, opening, closing, currency, from, to, zones, tie };
        (end, problems)
    }
}

impl Balances {
    /// What is said of balances that are absent: a report of the running day may have none yet.
    fn told_absent(&self, finality: Finality) -> impl Iterator<Item = Problem> {
        let severity = match finality {
            Finality::Interim => Severity::Warning,
            _other => Severity::Error,
        };
        let absent = self.absent.iter().cloned();
        absent.map(move |problem| Problem { severity, ..problem })
    }
}

impl Balances {
    /// Balances of one day that open, or close, and differ. One that goes on from what closed
    /// before it on that day is no other: the day has parts.
    fn contradictory(&self, currency: Option<Currency>) -> Option<Problem> {
        let of = |kind: Kind, day: Option<NaiveDate>| {
            let own = self.all.iter().filter(move |known| known.kind == kind);
            own.map(|known| known.balance)
                .filter(move |own| own.date == day && Some(own.currency) == currency)
        };
        let pairs = [(Kind::Opening, Kind::Closing), (Kind::Closing, Kind::Opening)];
        pairs.into_iter().find_map(|(kind, other)| {
            let mut days: HashMap<NaiveDate, Balance> = HashMap::new();
            self.all.iter().filter(|known| known.kind == kind).find_map(|known| {
                let own = known.balance;
                let day = own.date.filter(|_| Some(own.currency) == currency)?;
                let first = *days.entry(day).or_insert(own);
                if first.minor == own.minor {
                    return None;
                }
                let goes_on = |one: &Balance| of(other, own.date).any(|end| end.minor == one.minor);
                if goes_on(&first) {
                    days.insert(day, own);
                }
                (!goes_on(&first) && !goes_on(&own)).then(|| another(kind, first, own))
            })
        })
    }
}

/// A balance beside another one of the same day.
fn another(kind: Kind, first: Balance, own: Balance) -> Problem {
    let name = if kind == Kind::Opening { "OPBD" } else { "CLBD" };
    let text = |balance: Balance| shown(balance.minor.into(), Some(balance.currency));
    let expected = format!("{}, as on line {} of the same day", text(first), first.line);
    Problem::error(own.line, format!("Bal/Amt {name}"), expected, text(own))
}

/// What was found, where that may be an empty text.
fn or_nothing(text: &str) -> &str {
    if text.is_empty() { "nothing" } else { text }
}

/// The pages of a file that another one has to go on from: what they call themselves, and where
/// they ended.
#[derive(Debug, Default)]
pub struct Pages {
    ended: HashMap<String, Balance>,
}

impl Pages {
    /// A statement ended. A problem where it goes on from an interim balance, and a page of the
    /// same statement before it ended with another one: a page between them is missing, or one was
    /// changed. Other days of a bank that calls each of its statements the same are no pages.
    pub fn turn(&mut self, head: &Head, all: &Balances, end: &StatementEnd) -> Option<Problem> {
        let name = head.name()?;
        let before = self.ended.remove(&name);
        if let Some(closing) = all.interim(end.closing).filter(|_| self.ended.len() < PAGES) {
            self.ended.insert(name, closing);
        }
        let (before, opening) = before.zip(all.interim(end.opening))?;
        let days = before.date.zip(opening.date);
        let is_next = head.has_period() || days.is_none_or(|(ended, begun)| ended == begun);
        let is_same = (before.minor, before.currency) == (opening.minor, opening.currency);
        let text = |balance: Balance| shown(balance.minor.into(), Some(balance.currency));
        let expected = format!("{}, where the page before it ended", text(before));
        let found = format!("{}: a page between them is missing, or was changed", text(opening));
        let problem = || Problem::error(opening.line, "Bal/Amt ITBD", expected, found);
        (is_next && !is_same).then(problem)
    }
}

/// `TxsSummry`: what a statement says of its entries. Held against all of them, or against the
/// booked ones, since banks count either.
#[derive(Default)]
pub struct Summary {
    declared: Vec<(Measure, &'static str, String, u64)>,
    whole: Whole,
    codes: Groups,
    all: Totals,
    booked: Totals,
    currency: Option<Currency>,
    mixed: bool,
    /// Entries of unknown statuses: the lines and words of the first, and what all come to.
    odd: Vec<(u64, String)>,
    odd_net: i128,
    /// The line of the first entry that says no status.
    bare: Option<u64>,
}

impl Summary {
    /// A leaf below it.
    pub fn leaf(&mut self, leaf: &str, xml: &Xml) {
        let (text, line) = (xml.text(), xml.line());
        let (measure, field) = match leaf {
            "TtlNtries/NbOfNtries" => (Measure::Entries, "TxsSummry/TtlNtries/NbOfNtries"),
            "TtlCdtNtries/NbOfNtries" => (Measure::Credits, "TxsSummry/TtlCdtNtries/NbOfNtries"),
            "TtlCdtNtries/Sum" => (Measure::CreditMinor, "TxsSummry/TtlCdtNtries/Sum"),
            "TtlDbtNtries/NbOfNtries" => (Measure::Debits, "TxsSummry/TtlDbtNtries/NbOfNtries"),
            "TtlDbtNtries/Sum" => (Measure::DebitMinor, "TxsSummry/TtlDbtNtries/Sum"),
            _other => {
                if let Some(leaf) = leaf.strip_prefix("TtlNtriesPerBkTxCd") {
                    self.codes.leaf(leaf.trim_start_matches('/'), text, line);
                } else if let Some(leaf) = leaf.strip_prefix("TtlNtries/") {
                    self.whole.leaf(leaf, text, line);
                }
                return;
            }
        };
        if !text.is_empty() {
            self.declared.push((measure, field, text.to_owned(), line));
        }
    }

    /// An entry of the statement, its status as it is written, and its codes.
    pub fn add(&mut self, entry: &Entry, status: Option<&str>, codes: Codes<'_>) {
        self.codes.add(entry, codes);
        if let Some(status) = status.filter(|status| !STATUSES.contains(status)) {
            let signed = entry.direction.signed(entry.minor);
            self.odd_net = self.odd_net.saturating_add(signed);
            if self.odd.len() < TOLD {
                self.odd.push((entry.line, status.to_owned()));
            }
        }
        if status.is_none() && self.bare.is_none() {
            self.bare = Some(entry.line);
        }
        self.mixed |= self.currency.is_some_and(|currency| currency != entry.currency);
        self.currency = Some(entry.currency);
        self.all.add(entry);
        if entry.status == EntryStatus::Booked {
            self.booked.add(entry);
        }
    }

    /// The currency of all entries, where it is one.
    pub fn currency(&self) -> Option<Currency> {
        self.currency.filter(|_| !self.mixed)
    }

    /// All entries: credits and debits, how many and what they come to.
    pub fn sides(&self) -> Sides {
        let Totals { credits, debits, credit, debit, .. } = self.all;
        [(credits, credit), (debits, debit)]
    }

    /// Whether opening + booked entries = closing.
    fn ties(&self, opening: &Balance, closing: &Balance) -> bool {
        let is_own = self.currency.is_none_or(|currency| currency == closing.currency);
        let net = self.booked.measure(Measure::NetMinor);
        let after = i128::from(opening.minor).saturating_add(net);
        let is_one = is_own && !self.mixed && opening.currency == closing.currency;
        is_one && after == i128::from(closing.minor)
    }

    /// Entries whose status no version knows were taken as booked: a statement that ties with them
    /// and not without proves it; else what did not move would be counted.
    fn unknown_statuses(&self, is_tied: bool) -> Vec<Problem> {
        let is_proven = is_tied && self.odd_net != 0;
        let severity = if is_proven { Severity::Warning } else { Severity::Error };
        let expected = match severity {
            Severity::Warning => "BOOK, PDNG, INFO or FUTR; it was taken as booked",
            Severity::Error => "BOOK, PDNG, INFO or FUTR; no balances prove that it was booked",
        };
        let problem = |(line, found): &(u64, String)| {
            let problem = Problem::error(*line, "Ntry/Sts", expected, found.as_str());
            Problem { severity, ..problem }
        };
        self.odd.iter().map(problem).collect()
    }

    /// An entry without a status is taken as booked: balances tie it. Where a statement has none of
    /// those either, nothing says that its money moved.
    fn no_status(&self) -> Option<Problem> {
        let expected = "BOOK, PDNG, INFO or FUTR; no balances prove that it was booked";
        self.bare.map(|line| Problem::error(line, "Ntry/Sts", expected, "none"))
    }

    /// What it declares against what was there. Sums are errors, counts warnings: some banks count
    /// the payments of batches. A report of the running day may sum up what it does not list.
    pub fn controls(&self, finality: Finality) -> Vec<Item> {
        let mut items = Vec::new();
        let lists = self.all.measure(Measure::Entries) != 0;
        for (measure, field, text, line) in &self.declared {
            let money = matches!(measure, Measure::CreditMinor | Measure::DebitMinor);
            if money && self.mixed {
                continue;
            }
            let sure = money && (lists || finality != Finality::Interim);
            let severity = if sure { Severity::Error } else { Severity::Warning };
            let currency = self.currency.filter(|_| money);
            // One issuer writes the sum of debits with a minus.
            let figure = match measure {
                Measure::DebitMinor => text.strip_prefix('-').unwrap_or(text),
                _other => without_plus(text),
            };
            let expected = match currency {
                Some(currency) => unsigned(figure, b'.', currency).ok().map(i128::from),
                // Without an entry a sum can only be nil.
                None if money => figure.bytes().all(|b| b == b'0' || b == b'.').then_some(0),
                None => figure.parse::<i128>().ok(),
            };
            let Some(expected) = expected else {
                let problem = if money && !lists {
                    Problem::error(*line, *field, text, "no entry is listed")
                } else {
                    Problem::error(*line, *field, "a figure in digits", text)
                };
                items.push(Problem { severity, ..problem }.into());
                continue;
            };
            let (all, booked) = (self.all.measure(*measure), self.booked.measure(*measure));
            let found = Found::Is(if expected == booked { booked } else { all });
            let (line, field) = (*line, (*field).to_owned());
            items.push(Control { line, field, expected, found, currency, severity }.into());
        }
        items
    }

    /// Whether the balances at its end prove its booked entries.
    pub fn is_tied(&self, end: &StatementEnd) -> bool {
        let both = end.opening.as_ref().zip(end.closing.as_ref());
        end.tie == Tie::Declared(true)
            || both.is_some_and(|(opening, closing)| self.ties(opening, closing))
    }

    /// What it declares of all entries together against what was there. Banks reckon it in more
    /// ways than one, so that it is an error only where it is all that could prove the entries.
    pub fn whole_controls(&self, finality: Finality, is_tied: bool) -> Vec<Item> {
        if self.mixed {
            return Vec::new();
        }
        let is_proven = is_tied || self.sides_hold();
        let severity = self.severity(is_proven, finality);
        let both = [&self.all, &self.booked];
        self.whole.controls("TxsSummry/TtlNtries", both, self.currency, severity).collect()
    }

    /// What it declares of the entries of each code, as [`Self::whole_controls`], whose figures
    /// prove the entries as well where the net of all of them holds.
    pub fn code_controls(&self, finality: Finality, is_tied: bool, whole: &[Item]) -> Vec<Item> {
        if self.mixed {
            return Vec::new();
        }
        let is_net = |item: &Item| match item {
            Item::Control(control) => {
                control.field.ends_with("TtlNetNtry")
                    && control.found == Found::Is(control.expected)
            }
            _other => false,
        };
        let is_proven = is_tied || self.sides_hold() || whole.iter().any(is_net);
        self.codes.controls(self.currency, self.severity(is_proven, finality))
    }

    /// What a difference means of sums of more than one side.
    fn severity(&self, is_proven: bool, finality: Finality) -> Severity {
        let lists = self.all.measure(Measure::Entries) != 0;
        match !is_proven && (lists || finality != Finality::Interim) {
            true => Severity::Error,
            false => Severity::Warning,
        }
    }

    /// What ties it where no two balances do: the sums that it declares, of each side that has
    /// entries (`controls`) or of all entries together (`whole`). Those of some codes (`by_code`)
    /// prove nothing of the others.
    pub fn tie(&self, controls: &[Item], whole: &[Item], by_code: &[Item]) -> Tie {
        let holds = |control: &Control| control.found == Found::Is(control.expected);
        let fails = |item: &Item| match item {
            Item::Control(control) => control.severity == Severity::Error && !holds(control),
            Item::Problem(problem) => problem.severity == Severity::Error,
            _other => false,
        };
        let sum = |item: &Item| match item {
            Item::Control(control) => control.currency.is_some() && holds(control),
            _other => false,
        };
        if controls.iter().chain(whole).chain(by_code).any(fails) {
            return Tie::Declared(false);
        }
        let has_sums = controls.iter().any(sum) && self.sides_hold();
        if has_sums || whole.iter().any(sum) { Tie::Declared(true) } else { Tie::Balances }
    }

    /// Whether the sums of credits and debits are there, where there are any, and hold.
    fn sides_hold(&self) -> bool {
        let Some(currency) = self.currency else { return false };
        let both = [&self.all, &self.booked];
        [Measure::CreditMinor, Measure::DebitMinor].into_iter().all(|side| {
            let mut sums = self.declared.iter().filter(|(measure, ..)| *measure == side);
            let is_there = |(_, _, text, _): &(Measure, &str, String, u64)| {
                let sum = figure(text, Some(currency)).map(|(_, minor)| minor);
                both.iter().any(|of| sum == Some(of.measure(side)))
            };
            sums.any(is_there) || self.all.measure(side) == 0
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::settlement::ledger::{State, inspect};

    /// The problems of balances in a report of one kind with this opening amount.
    fn look(document: [&str; 2], amount: &str) -> (State, Vec<(Severity, String)>) {
        let [message, report] = document;
        let balance = |kind: &str, amount: &str| {
            format!(
                "<Bal><Tp><CdOrPrtry><Cd>{kind}</Cd></CdOrPrtry></Tp>{amount}\
                 <Dt><Dt>2026-11-18</Dt></Dt></Bal>"
            )
        };
        let nil = "<Amt Ccy=\"USD\">0.00</Amt><CdtDbtInd>CRDT</CdtDbtInd>";
        let (opening, closing) = (balance("OPBD", amount), balance("CLBD", nil));
        let text = format!(
            "<Document><{message}><GrpHdr><MsgId>M</MsgId></GrpHdr><{report}><Id>S</Id>\
             <Acct><Id><Othr><Id>1</Id></Othr></Id><Ccy>USD</Ccy></Acct>\
             {opening}{closing}</{report}></{message}></Document>"
        );
        let found = inspect(Box::new(Cursor::new(text.into_bytes())), None, None).unwrap();
        let of = found.sums.problems.iter().filter(|one| one.field == "Bal/Amt OPBD");
        (found.state, of.map(|one| (one.severity, one.found.clone())).collect())
    }

    const RUNNING: [&str; 2] = ["BkToCstmrAcctRpt", "Rpt"];
    const BOOKED: [&str; 2] = ["BkToCstmrStmt", "Stmt"];

    #[test]
    fn a_balance_of_nothing_is_absent_from_the_running_day_alone() {
        let empty = "<Amt Ccy=\"USD\"/><CdtDbtInd/>";
        let nothing = |severity| vec![(severity, "nothing".to_owned())];
        assert_eq!(look(RUNNING, empty), (State::Ok, nothing(Severity::Warning)));
        let refused = (State::Quarantined, nothing(Severity::Error));
        assert_eq!(look(BOOKED, empty), refused);
        // One that says which way it went was meant.
        let way = "<Amt Ccy=\"USD\"/><CdtDbtInd>DBIT</CdtDbtInd>";
        assert_eq!(look(RUNNING, way), refused);
        let (state, problems) = look(RUNNING, "<Amt Ccy=\"USD\">x</Amt><CdtDbtInd/>");
        let expected = vec![(Severity::Error, "x".to_owned())];
        assert_eq!((state, problems), (State::Quarantined, expected));
    }
}
