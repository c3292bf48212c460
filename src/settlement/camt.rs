//! camt.052, camt.053 and camt.054: bank reports, statements and notifications of ISO 20022.
//!
//! Every version from 001.01 on, by the local names of elements: what moved between versions
//! (`Sts` and `Sts/Cd`, `Dbtr` and `Dbtr/Pty`, `TxDtls` with and without `Amt`) is read in both
//! places. The sign is `CdtDbtInd` of the element itself; `RvslInd` does not turn it: it says that
//! the original went the other way (three banks' samples tie so and not otherwise). A batch is
//! expanded with the sign of each `TxDtls`, and their sum must be the entry's amount. What a block
//! of them says that it comes to (`Btch/TtlAmt`) is what it lists, or what was booked.

use std::collections::VecDeque;

use chrono::NaiveDate;

use crate::model::money::Currency;
use crate::model::settlement::{
    Batch, Direction, Entry, EntryStatus, Finality, Line, Problem, SignedMoney, Statement, TagKind,
    Tie,
};
use crate::settlement::amount::{iso_day, unread_iso, unsigned};
use crate::settlement::camt_batch::Blocks;
use crate::settlement::camt_details::{Charges, Details, Said};
use crate::settlement::camt_statement::{Balances, Head, Pages, Summary};
use crate::settlement::kinds;
use crate::settlement::tags::is_blank;
use crate::settlement::text::Source;
use crate::settlement::twice::Twice;
use crate::settlement::xml::{Node, Xml};
use crate::settlement::{Item, Parse};

/// The messages, and the element that each consists of.
const MESSAGES: [(&str, &str, Finality); 3] = [
    ("BkToCstmrAcctRpt", "Rpt", Finality::Interim),
    ("BkToCstmrStmt", "Stmt", Finality::Final),
    ("BkToCstmrDbtCdtNtfctn", "Ntfctn", Finality::Notice),
];

/// What Italian banks write before the names of messages and their envelopes.
const ITALIAN: &str = "CBI";

/// So many details may stand before the amount of their entry.
const HELD: usize = 10_000;

/// So many charges of one detail are added up.
const CHARGES: usize = 1_000;

/// camt.052, by its message element.
pub fn recognise_report(head: &str) -> Option<String> {
    recognise(head, "BkToCstmrAcctRpt", "camt.052")
}

/// camt.053.
pub fn recognise_statement(head: &str) -> Option<String> {
    recognise(head, "BkToCstmrStmt", "camt.053")
}

/// camt.054.
pub fn recognise_notification(head: &str) -> Option<String> {
    recognise(head, "BkToCstmrDbtCdtNtfctn", "camt.054")
}

/// The version that a namespace says, where the message element is there.
pub fn recognise(head: &str, element: &str, message: &str) -> Option<String> {
    let is_there = head.match_indices(element).any(|(at, _)| {
        let before = head.get(..at).map(|text| text.strip_suffix(ITALIAN).unwrap_or(text));
        let before = before.and_then(|text| text.chars().next_back());
        before.is_some_and(|c| c == '<' || c == ':')
    });
    is_there.then(|| version(head, message))
}

/// `camt.053.001.08`, wherever a namespace has it.
pub fn version(head: &str, message: &str) -> String {
    let found = head.match_indices(message).find_map(|(at, _)| {
        let name = head.get(at..)?;
        let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.'));
        let name = name.get(..end?)?.trim_end_matches('.');
        // The namespaces of one country end as the names of schema files do.
        let name = name.strip_suffix(".xsd").unwrap_or(name);
        (name.len() > message.len()).then(|| name.to_owned())
    });
    found.unwrap_or_default()
}

/// Begins to read.
pub fn open(source: Source) -> Box<dyn Parse> {
    Box::new(Camt {
        xml: Xml::new(source.into_text()),
        items: VecDeque::new(),
        messages: 0,
        statements: 0,
        entries: 0,
        page: None,
        goes_on: None,
        statement: None,
        entry: None,
        detail: None,
        twice: Twice::default(),
        pages: Pages::default(),
        bare: None,
        unread: None,
        ended: false,
    })
}

struct Camt {
    xml: Xml,
    items: VecDeque<Item>,
    messages: u64,
    statements: u64,
    entries: u64,
    /// The number of the message's page.
    page: Option<u64>,
    /// Where the page that was read last says that another one goes on from it.
    goes_on: Option<u64>,
    statement: Option<Open>,
    entry: Option<OpenEntry>,
    detail: Option<Detail>,
    twice: Twice,
    pages: Pages,
    /// How much of the path leads to a message that has nothing in it so far.
    bare: Option<usize>,
    /// How much of it leads to what holds entries, and is not read.
    unread: Option<usize>,
    ended: bool,
}

/// A statement that is being read.
struct Open {
    /// How much of the path leads to it.
    at: usize,
    head: Head,
    told: bool,
    balances: Balances,
    summary: Summary,
}

/// An amount as written, with the currency and the line it stands with.
#[derive(Debug, Clone, Default)]
pub struct Written {
    /// Its digits.
    pub text: String,
    /// The code beside it; may be empty.
    pub currency: String,
    /// The line.
    pub line: u64,
}

#[derive(Default)]
struct OpenEntry {
    at: usize,
    line: u64,
    byte: u64,
    amount: Option<Written>,
    /// Which way it went, as it is written.
    way: Option<String>,
    direction: Option<Direction>,
    /// What it says twice that it may say once.
    again: Option<Problem>,
    reversal: bool,
    status: Option<String>,
    booked_on: Option<NaiveDate>,
    value_on: Option<NaiveDate>,
    reference: String,
    servicer_reference: String,
    code: Vec<String>,
    /// How many parts of the code are ISO 20022's.
    domain: usize,
    own_code: String,
    text: String,
    charges: Charges,
    batch: Batch,
    /// What the block of details that is being read declares.
    payments: Option<u64>,
    raw: String,
    told: Option<Entry>,
    refused: bool,
    held: Vec<Detail>,
    details: Details,
    in_block: u64,
    /// As many payments are listed as are declared.
    itemised: bool,
    blocks: Blocks,
}

/// A `TxDtls` that is being read.
#[derive(Default)]
struct Detail {
    at: usize,
    line: u64,
    byte: u64,
    amount: Option<Written>,
    transaction: Option<Written>,
    counter: Option<Written>,
    instructed: Option<Written>,
    direction: Option<Direction>,
    /// What it says twice that it may say once.
    again: Option<Problem>,
    charges: Vec<(String, Written)>,
    tags: Vec<(TagKind, String)>,
    code: Vec<String>,
    return_reason: Option<String>,
    returned: bool,
    raw: String,
}

impl Parse for Camt {
    fn next(&mut self) -> Result<Option<Item>, Problem> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Ok(Some(item));
            }
            if self.ended {
                return Ok(None);
            }
            match self.xml.advance()? {
                Node::Open if self.is_of_no_use() => self.xml.skip()?,
                Node::Open => self.opened(),
                Node::Close => self.closed(),
                Node::End => self.finish(),
            }
        }
    }
}

fn direction(text: &str) -> Option<Direction> {
    match text {
        "CRDT" => Some(Direction::Credit),
        "DBIT" => Some(Direction::Debit),
        _other => None,
    }
}

/// The path below the element whose path is `at` bytes long; empty for that element itself.
fn below(path: &str, at: usize) -> &str {
    path.get(at..).map_or("", |rest| rest.strip_prefix('/').unwrap_or(rest))
}

impl Camt {
    fn problem(&mut self, problem: Problem) {
        self.items.push_back(problem.into());
    }

    /// Whether a part of a detail has begun of which nothing is read: who is who, with addresses,
    /// is most of what banks write. It is kept as it stands, in the line's raw text.
    fn is_of_no_use(&self) -> bool {
        let part = self.detail.as_ref().map(|detail| below(self.xml.path(), detail.at));
        part.is_some_and(|part| matches!(part, "RltdPties" | "RltdAgts" | "Purp" | "LclInstrm"))
    }

    fn opened(&mut self) {
        let name = self.xml.path().get(self.xml.above()..).unwrap_or_default();
        // Nothing else within an entry is known by its beginning.
        if self.entry.is_some() && !matches!(name, "/TxDtls" | "/NtryDtls") {
            return;
        }
        let path = self.xml.take_path();
        self.open_at(&path);
        self.xml.put_path(path);
        // The recording begins with the element's own start, which the path names.
        let at = self.xml.path().len();
        let starts = self.detail.as_ref().is_some_and(|detail| detail.at == at)
            || self.entry.as_ref().is_some_and(|entry| entry.at == at);
        if starts {
            self.xml.record();
        }
    }

    fn open_at(&mut self, path: &str) {
        let (before, name) = path.split_at_checked(self.xml.above()).unwrap_or(("", path));
        let name = name.strip_prefix('/').unwrap_or(name);
        if let Some(entry) = &mut self.entry {
            match name {
                "TxDtls" if self.detail.is_none() => {
                    if entry.raw.is_empty() {
                        entry.raw = self.xml.take_raw();
                    }
                    let (line, byte) = (self.xml.line(), self.xml.byte());
                    self.detail = Some(Detail { at: path.len(), line, byte, ..Detail::default() });
                }
                "NtryDtls" => {
                    entry.payments = None;
                    entry.in_block = 0;
                    entry.blocks.begin(self.xml.line());
                }
                _other => {}
            }
            return;
        }
        match &mut self.statement {
            Some(open) if before.len() == open.at && name == "Ntry" => {
                self.begin_entry(path.len());
            }
            Some(open) if before.len() == open.at && name == "Bal" => {
                open.balances.begin(self.xml.line());
            }
            Some(_open) => self.pass_over(path, name, "Stmt, Rpt or Ntfctn"),
            None => {
                let message = before.rsplit('/').next().unwrap_or_default();
                let message = message.strip_prefix(ITALIAN).unwrap_or(message);
                let found = MESSAGES.into_iter().find(|(element, ..)| {
                    message.trim_end_matches(version_suffix).starts_with(element)
                });
                if let Some((_, part, finality)) = found {
                    if part == name {
                        self.begin_statement(path.len(), finality);
                    } else {
                        self.pass_over(path, name, part);
                    }
                } else if MESSAGES.iter().any(|(element, _, _)| name.starts_with(element)) {
                    self.messages = self.messages.saturating_add(1);
                    self.page = None;
                    self.bare = Some(path.len());
                } else {
                    self.pass_over(path, name, "Stmt, Rpt or Ntfctn");
                }
            }
        }
    }

    /// What is not known is passed over, but never an entry, by its amount, nor what holds entries
    /// in another message than this. What banks add of their own (`SplmtryData`) may hold anything.
    fn pass_over(&mut self, path: &str, name: &str, part: &str) {
        let entry = path.strip_suffix("/Ntry/Amt");
        let is_part = MESSAGES.iter().any(|(_, part, _)| name.eq_ignore_ascii_case(part));
        let is_lost = entry.is_some() || is_part && self.statement.is_none();
        let is_own = || path.split('/').any(|element| element == "SplmtryData");
        if !is_lost || self.unread.is_some() || is_own() {
            return;
        }
        self.bare = None;
        self.unread = Some(entry.unwrap_or(path).len());
        let line = self.xml.line();
        self.problem(match entry {
            Some(above) => {
                let found = format!("in {above}, which is not read");
                Problem::error(line, "Ntry", format!("in a {part}"), found)
            }
            None => Problem::error(line, name, format!("a {part}"), name),
        });
    }

    fn begin_statement(&mut self, at: usize, finality: Finality) {
        let line = self.xml.line();
        self.bare = None;
        self.statements = self.statements.saturating_add(1);
        self.statement = Some(Open {
            at,
            head: Head::new(Statement::at(self.statements, line, finality)),
            told: false,
            balances: Balances::default(),
            summary: Summary::default(),
        });
    }

    fn begin_entry(&mut self, at: usize) {
        self.tell_statement();
        let (line, byte) = (self.xml.line(), self.xml.byte());
        self.entry = Some(OpenEntry { at, line, byte, itemised: true, ..OpenEntry::default() });
    }

    fn tell_statement(&mut self) {
        let Some(open) = self.statement.as_mut().filter(|open| !open.told) else { return };
        open.told = true;
        open.head.turn_to_page(self.page, open.balances.goes_on_from());
        let (statement, problems) = open.head.statement();
        self.items.push_back(statement.into());
        self.items.extend(problems.into_iter().map(Item::from));
    }

    fn closed(&mut self) {
        // Nearly every element is a leaf of one of these: for it nothing has to be moved.
        if let Some(detail) = &mut self.detail {
            let leaf = below(self.xml.path(), detail.at);
            if !leaf.is_empty() {
                detail.leaf(leaf, &self.xml);
                return;
            }
        } else if let Some(entry) = &mut self.entry {
            let leaf = below(self.xml.path(), entry.at);
            if !leaf.is_empty() && leaf != "NtryDtls" {
                let account = || self.statement.as_ref().and_then(|open| open.head.currency());
                entry.leaf(leaf, &self.xml, account);
                let unread = unread_leaf(leaf, &self.xml);
                self.items.extend(unread.map(Item::from));
                return;
            }
        }
        let path = self.xml.take_path();
        self.close_at(&path);
        self.xml.put_path(path);
    }

    fn close_at(&mut self, path: &str) {
        self.unread = self.unread.filter(|at| path.len() > *at);
        if self.bare == Some(path.len()) {
            self.bare = None;
            let expected = "a report, statement or notification of an account";
            self.problem(Problem::error(self.xml.line(), "document", expected, "none"));
        }
        if let Some(detail) = &mut self.detail {
            detail.raw = self.xml.take_raw();
            self.end_detail();
        } else if let Some(entry) = &mut self.entry {
            if below(path, entry.at).is_empty() {
                if entry.raw.is_empty() {
                    entry.raw = self.xml.take_raw();
                }
                self.end_entry();
            } else {
                self.end_block();
                self.count_block();
            }
        } else if let Some(open) = &mut self.statement {
            let leaf = below(path, open.at);
            let unread = unread_leaf(leaf, &self.xml);
            self.items.extend(unread.map(Item::from));
            if leaf.is_empty() {
                self.end_statement(self.xml.line());
            } else if leaf == "Bal" {
                if let Some(problem) = open.balances.end(open.head.currency()) {
                    self.problem(problem);
                }
            } else if let Some(leaf) = leaf.strip_prefix("Bal/") {
                open.balances.leaf(leaf, &self.xml);
            } else if let Some(leaf) = leaf.strip_prefix("TxsSummry/") {
                open.summary.leaf(leaf, &self.xml);
            } else if leaf.ends_with("Pgntn/LastPgInd") {
                self.note_last_page();
            } else {
                open.head.leaf(leaf, self.xml.text());
            }
        } else if path.ends_with("/GrpHdr/MsgPgntn/LastPgInd") {
            self.note_last_page();
        } else if path.ends_with("/GrpHdr/MsgPgntn/PgNb") {
            self.page = self.xml.text().parse().ok();
        }
    }

    /// Pages of messages, and of statements, reports and notifications.
    fn note_last_page(&mut self) {
        let is_last = matches!(self.xml.text(), "true" | "1");
        self.goes_on = Some(self.xml.line()).filter(|_| !is_last);
    }

    fn finish(&mut self) {
        self.ended = true;
        if let Some(line) = self.goes_on {
            let found = "another page goes on from the last one of this file";
            self.problem(Problem::warning(line, "LastPgInd", "true on the last page", found));
        }
        if self.messages == 0 && self.statements == 0 {
            let expected = "a report, statement or notification of an account";
            self.problem(Problem::error(self.xml.line(), "document", expected, "none"));
        }
        self.items.extend(self.xml.take_beside().map(Item::from));
    }

    fn end_statement(&mut self, line: u64) {
        self.tell_statement();
        let Some(open) = self.statement.take() else { return };
        let finality = open.head.finality();
        let mut controls = open.summary.controls(finality);
        let currency = open.head.currency();
        let (mut end, problems) = open.balances.close(line, finality, currency, &open.summary);
        let is_tied = open.summary.is_tied(&end);
        let whole = open.summary.whole_controls(finality, is_tied);
        let by_code = open.summary.code_controls(finality, is_tied, &whole);
        if end.tie == Tie::Balances && (end.opening.is_none() || end.closing.is_none()) {
            end.tie = open.summary.tie(&controls, &whole, &by_code);
        }
        controls.extend(whole);
        controls.extend(by_code);
        self.items.extend(controls);
        self.items.extend(problems.into_iter().map(Item::from));
        if finality == Finality::Final {
            let problem = self.pages.turn(&open.head, &open.balances, &end);
            self.items.extend(problem.map(Item::from));
        }
        let found = end.currency.or(open.summary.currency());
        self.items.extend(open.head.odd_account(found).map(Item::from));
        let balances = [end.opening, end.closing];
        let (begun, sides) = (open.head.line(), open.summary.sides());
        let names = (open.head.name(), open.head.account());
        let is_interim = finality == Finality::Interim;
        let problem = self.twice.statement(begun, names, balances, sides, is_interim);
        self.items.extend(problem.map(Item::from));
        self.items.push_back(end.into());
    }
}

/// That a leaf of an entry, or of its statement, is a day that cannot be read.
fn unread_leaf(leaf: &str, xml: &Xml) -> Option<Problem> {
    // Asked of every leaf, and nearly none is one.
    if !leaf.ends_with("Dt") && !leaf.ends_with("DtTm") {
        return None;
    }
    let (_, last) = leaf.rsplit_once('/')?;
    let is_day = matches!(last, "Dt" | "DtTm" | "FrDt" | "FrDtTm" | "ToDt" | "ToDtTm")
        && ["BookgDt/", "ValDt/", "FrToDt/", "Bal/Dt"].iter().any(|own| leaf.starts_with(own));
    if is_day { unread_iso(xml.line(), leaf, xml.text()) } else { None }
}

/// `BkToCstmrStmtV01`: version one wrote its number into the name.
fn version_suffix(c: char) -> bool {
    c == 'V' || c.is_ascii_digit()
}

// ------------------------------------------------------------------------------------- entries

impl OpenEntry {
    fn leaf(&mut self, leaf: &str, xml: &Xml, account: impl Fn() -> Option<Currency>) {
        let text = xml.text();
        match leaf {
            "Amt" => {
                self.again = self.again.take().or_else(|| twice(&self.amount, "Ntry/Amt", xml));
                self.amount = Some(written(xml));
            }
            "CdtDbtInd" => {
                let again = || twice(&self.way, "Ntry/CdtDbtInd", xml);
                self.again = self.again.take().or_else(again);
                self.way = Some(text.to_owned());
                self.direction = direction(text);
            }
            "RvslInd" => self.reversal = text == "true" || text == "1",
            "Sts" | "Sts/Cd" | "Sts/Prtry" if !text.is_empty() => {
                self.status = Some(text.to_owned());
            }
            "BookgDt/Dt" | "BookgDt/DtTm" => self.booked_on = iso_day(text),
            "ValDt/Dt" | "ValDt/DtTm" => self.value_on = iso_day(text),
            "NtryRef" => text.clone_into(&mut self.reference),
            "AcctSvcrRef" => text.clone_into(&mut self.servicer_reference),
            "BkTxCd/Domn/Cd" | "BkTxCd/Domn/Fmly/Cd" | "BkTxCd/Domn/Fmly/SubFmlyCd" => {
                self.code.push(text.to_owned());
                self.domain = self.code.len();
            }
            "BkTxCd/Prtry/Cd" => {
                text.clone_into(&mut self.own_code);
                if self.code.is_empty() {
                    self.code.push(text.to_owned());
                }
            }
            "AddtlNtryInf" => text.clone_into(&mut self.text),
            "NtryDtls/Btch/MsgId" | "Btch/MsgId" => {
                self.batch.message_id = Some(text.to_owned());
            }
            "NtryDtls/Btch/PmtInfId" | "Btch/PmtInfId" => {
                self.batch.payment_info_id = Some(text.to_owned());
            }
            "NtryDtls/Btch/NbOfTxs" | "Btch/NbOfTxs" => {
                self.payments = text.parse().ok();
                let sum = self.batch.payments.unwrap_or(0);
                self.batch.payments = self.payments.map(|n: u64| n.saturating_add(sum));
            }
            "NtryDtls/Btch/TtlAmt" | "Btch/TtlAmt" => self.blocks.declare(written(xml)),
            "NtryDtls/Btch/CdtDbtInd" | "Btch/CdtDbtInd" => self.blocks.way(direction(text)),
            _other => {
                if let Some(leaf) = charge_leaf(leaf)
                    && let Some(amount) = &self.amount
                    && let Ok((_, own)) = read(amount, "", account())
                {
                    self.charges.take(leaf, read(&written(xml), "", Some(own)).ok(), own);
                }
            }
        }
    }

    /// The proprietary code, where it is the entry's own id: a reference, as the account servicer's
    /// would be, and never the payer's.
    fn code_that_is_an_id(&self) -> Option<&str> {
        match self.code.as_slice() {
            [code] => Some(code.as_str()).filter(|code| is_id(code)),
            _codes => None,
        }
    }

    /// The entry as it is known by now: once its amount and sign are.
    fn entry(&self, number: u64, account: Option<Currency>) -> Result<Entry, Problem> {
        let nothing = Written { line: self.line, ..Written::default() };
        let written = self.amount.as_ref().unwrap_or(&nothing);
        let (minor, currency) = read(written, "Ntry/Amt", account)?;
        let direction = self.direction.ok_or_else(|| {
            let found = self.way.as_deref().filter(|way| !way.is_empty()).unwrap_or("none");
            Problem::error(self.line, "Ntry/CdtDbtInd", "CRDT or DBIT", found)
        })?;
        let references = [&self.servicer_reference, &self.reference].into_iter();
        let reference = references.map(String::as_str).find(|text| !text.is_empty());
        let reference = reference.or_else(|| self.code_that_is_an_id()).unwrap_or_default();
        let has_batch = self.batch != Batch::default();
        Ok(Entry {
            number,
            line: self.line,
            minor,
            currency,
            direction,
            reversal: self.reversal,
            status: status(self.status.as_deref()),
            booked_on: self.booked_on,
            value_on: self.value_on,
            bank_reference: Some(reference.to_owned()).filter(|text| !is_blank(text)),
            type_code: Some(self.code.join("/")).filter(|code| !code.is_empty()),
            batch: has_batch.then(|| self.batch.clone()),
        })
    }
}

/// What Wise's ids begin with, which it writes where a bank's code of the booking stands.
const WISE: [&str; 6] =
    ["TRANSFER", "CARD", "CARD_TRANSACTION", "BALANCE", "BALANCE_TRANSACTION", "ACCRUAL_CHARGE"];

/// `TRANSFER-1234567`. A bank's own code has zeros before its number, or fewer figures.
fn is_id(code: &str) -> bool {
    code.split_once('-').is_some_and(|(word, number)| {
        let is_number = number.len() >= 3 && number.bytes().all(|b| b.is_ascii_digit());
        WISE.contains(&word) && is_number && !number.starts_with('0')
    })
}

/// Without a status an entry is booked: so are those of nearly half the statements that are read.
/// One of another status is taken as booked, and its statement must then tie.
fn status(text: Option<&str>) -> EntryStatus {
    match text {
        Some("PDNG") => EntryStatus::Pending,
        Some("INFO") => EntryStatus::Info,
        Some("FUTR") => EntryStatus::Future,
        _booked => EntryStatus::Booked,
    }
}

/// Of two of an element that stands once nobody knows which one holds.
fn twice<T>(known: &Option<T>, field: &str, xml: &Xml) -> Option<Problem> {
    known.as_ref().map(|_| {
        let found = format!("another: {}", xml.text());
        Problem::error(xml.line(), field, "one", found)
    })
}

fn written(xml: &Xml) -> Written {
    let (text, currency) = (xml.text().to_owned(), xml.currency().to_owned());
    Written { text, currency, line: xml.line() }
}

/// Numbers of XML may begin with a plus.
pub fn without_plus(text: &str) -> &str {
    text.strip_prefix('+').unwrap_or(text)
}

/// Reads an amount, of the account's currency where it names none.
///
/// # Errors
/// Where it is no amount of its currency, or of none.
pub fn read(
    written: &Written,
    field: &str,
    account: Option<Currency>,
) -> Result<(i64, Currency), Problem> {
    let currency = match (written.currency.as_str(), account) {
        ("", Some(account)) => account,
        (code, _) => Currency::parse_any(code).map_err(|_unknown| {
            let field = format!("{field}/@Ccy");
            Problem::error(written.line, field, "an ISO 4217 currency", code)
        })?,
    };
    let minor = unsigned(without_plus(&written.text), b'.', currency)
        .map_err(|refused| refused.at(written.line, field, &written.text, currency))?;
    Ok((minor, currency))
}

impl Camt {
    fn account_currency(&self) -> Option<Currency> {
        self.statement.as_ref().and_then(|open| open.head.currency())
    }

    /// Tells the entry, once. False where it cannot be told.
    fn tell_entry(&mut self) -> bool {
        let account = self.account_currency();
        let number = self.entries.saturating_add(1);
        let Some(open) = self.entry.as_mut() else { return false };
        if open.told.is_some() || open.refused {
            return open.told.is_some();
        }
        match open.entry(number, account) {
            Ok(mut entry) => {
                self.entries = number;
                if let Some(statement) = &mut self.statement {
                    entry.booked_on = entry.booked_on.or_else(|| statement.day_of(&entry));
                    let domain = open.code.get(..open.domain).unwrap_or_default();
                    let codes = (domain, open.own_code.as_str());
                    statement.summary.add(&entry, open.status.as_deref(), codes);
                }
                open.told = Some(entry.clone());
                self.items.push_back(entry.into());
                true
            }
            Err(problem) => {
                open.refused = true;
                self.problem(problem);
                false
            }
        }
    }

    fn end_detail(&mut self) {
        let Some(detail) = self.detail.take() else { return };
        let Some(entry) = self.entry.as_mut() else { return };
        let is_known = entry.amount.is_some() && entry.direction.is_some();
        if !is_known && entry.held.len() < HELD {
            entry.held.push(detail);
            return;
        }
        if self.tell_entry() {
            self.release_held();
            self.take_detail(detail);
        }
    }

    fn release_held(&mut self) {
        let held = self.entry.as_mut().map(|entry| std::mem::take(&mut entry.held));
        for detail in held.unwrap_or_default() {
            self.take_detail(detail);
        }
    }

    /// A detail becomes a line, and the line before it is told.
    fn take_detail(&mut self, detail: Detail) {
        let Some(open) = self.entry.as_mut() else { return };
        let Some(entry) = open.told.as_ref() else { return };
        open.in_block = open.in_block.saturating_add(1);
        self.items.extend(detail.again.clone().map(Item::from));
        let charges = detail.charges(entry.currency);
        let number = open.details.count().saturating_add(1);
        let is_instructed = detail.is_instructed_only();
        let (line, problem) = detail.line(entry, number, &charges);
        if let Some(minor) = line.minor {
            let is_known = line.currency == entry.currency && !is_instructed;
            open.blocks.add(is_known.then(|| line.direction.signed(minor)));
        }
        let before = open.details.take(line, entry, &charges, is_instructed);
        self.items.extend(before.map(Item::from));
        self.items.extend(problem.map(Item::from));
    }

    /// A block of details ended: its only detail stands for as many payments as it declares.
    fn end_block(&mut self) {
        let Some(open) = self.entry.as_mut() else { return };
        let several = open.payments.is_some_and(|payments| payments > 1);
        if open.in_block == 1 && several {
            open.itemised = false;
            if let Some(line) = open.details.last() {
                line.itemised = false;
            }
        }
        if open.payments.is_some_and(|payments| payments > open.in_block) {
            open.itemised = false;
        }
    }

    /// A block that says how many payments it stands for, and lists several others: some of what
    /// it lists stands for more than one, or belongs elsewhere.
    fn count_block(&mut self) {
        let account = self.account_currency();
        let Some(open) = self.entry.as_mut() else { return };
        let declared = open.payments.filter(|payments| *payments != open.in_block);
        if let (Some(payments), 2..) = (declared, open.in_block) {
            let (line, field) = (open.blocks.line(), "NtryDtls/Btch/NbOfTxs");
            let found = format!("{} TxDtls", open.in_block);
            let problem = Problem::warning(line, field, payments.to_string(), found);
            self.items.push_back(problem.into());
        }
        // Details that are held were not added yet.
        let is_known = open.held.is_empty();
        let problem = open.blocks.end(account, open.direction, is_known);
        self.items.extend(problem.map(Item::from));
    }

    fn end_entry(&mut self) {
        self.end_block();
        if self.tell_entry() {
            self.release_held();
        }
        let account = self.account_currency();
        let Some(mut open) = self.entry.take() else { return };
        self.items.extend(open.again.take().map(Item::from));
        let Some(entry) = open.told.take() else { return };
        let unread = open.blocks.end(account, Some(entry.direction), true);
        self.items.extend(unread.map(Item::from));
        let has_charges = open.charges.are_told() || open.details.has_charges();
        self.items.extend(open.blocks.check(&entry, has_charges).map(Item::from));
        if open.details.count() == 0 {
            self.items.push_back(open.whole(&entry).into());
            return;
        }
        if open.details.count() == 1
            && let Some(line) = open.details.last()
        {
            batch_tags(line, &open.batch);
            own_tags(line, &entry, &open.text);
        }
        let said = Said { entry: &entry, charges: &open.charges, is_whole: open.itemised };
        let (lines, control) = open.details.end(&said);
        self.items.extend(lines.into_iter().map(Item::from));
        self.items.extend(control.map(Item::from));
    }
}

impl OpenEntry {
    /// An entry without details is one line. Of a batch it says what the bank took: the payments
    /// that it stands for come to so much more.
    fn whole(&mut self, entry: &Entry) -> Line {
        let itemised = self.batch.payments.is_none_or(|payments| payments <= 1);
        let charge = self.charges.minor().filter(|_| !itemised);
        let mut line = Line {
            byte: self.byte,
            itemised,
            fee: charge.map(|minor| SignedMoney { minor, currency: entry.currency }),
            type_code: entry.type_code.clone(),
            booked_on: entry.booked_on,
            raw: std::mem::take(&mut self.raw),
            ..Line::of(entry)
        };
        batch_tags(&mut line, &self.batch);
        own_tags(&mut line, entry, &self.text);
        line.kind = kinds::booking(&line);
        line
    }
}

impl Open {
    /// The day of an entry that was booked and tells none at all: that of the end of its statement.
    /// One of its value may lie elsewhere than that of its booking, which then is not known.
    fn day_of(&self, entry: &Entry) -> Option<NaiveDate> {
        let is_final = self.head.finality() == Finality::Final;
        let is_booked = is_final && entry.status == EntryStatus::Booked;
        self.balances.last_day().filter(|_| is_booked && entry.value_on.is_none())
    }
}

fn batch_tags(line: &mut Line, batch: &Batch) {
    for (kind, text) in
        [(TagKind::MessageId, &batch.message_id), (TagKind::PaymentInfoId, &batch.payment_info_id)]
    {
        let known = line.tags.iter().any(|tag| tag.kind == kind);
        if let Some(text) = text.as_ref().filter(|text| !known && !is_blank(text)) {
            line.tag(kind, text);
        }
    }
}

fn own_tags(line: &mut Line, entry: &Entry, text: &str) {
    if !line.tags.iter().any(|tag| tag.kind == TagKind::BankReference) {
        line.tag(TagKind::BankReference, entry.bank_reference.as_deref().unwrap_or_default());
    }
    line.tag(TagKind::Text, text);
}

// ------------------------------------------------------------------------------------- details

impl Detail {
    fn leaf(&mut self, leaf: &str, xml: &Xml) {
        let text = xml.text();
        match leaf {
            "Amt" => {
                self.again = self.again.take().or_else(|| twice(&self.amount, "TxDtls/Amt", xml));
                self.amount = Some(written(xml));
            }
            "AmtDtls/TxAmt/Amt" => {
                let again = || twice(&self.transaction, "TxDtls/AmtDtls/TxAmt/Amt", xml);
                self.again = self.again.take().or_else(again);
                self.transaction = Some(written(xml));
            }
            "AmtDtls/CntrValAmt/Amt" => self.counter = Some(written(xml)),
            "AmtDtls/InstdAmt/Amt" => self.instructed = Some(written(xml)),
            "CdtDbtInd" => {
                let again = || twice(&self.direction, "TxDtls/CdtDbtInd", xml);
                self.again = self.again.take().or_else(again);
                self.direction = direction(text);
            }
            "BkTxCd/Domn/Cd" | "BkTxCd/Domn/Fmly/Cd" | "BkTxCd/Domn/Fmly/SubFmlyCd" => {
                self.code.push(text.to_owned());
            }
            "BkTxCd/Prtry/Cd" if self.code.is_empty() => self.code.push(text.to_owned()),
            _other if charge_leaf(leaf).is_some() => {
                let leaf = charge_leaf(leaf).unwrap_or_default().to_owned();
                if self.charges.len() < CHARGES {
                    self.charges.push((leaf, written(xml)));
                }
            }
            _other if leaf.starts_with("RtrInf") => self.returned(leaf, text),
            _other => {
                if let Some(kind) = tag_kind(leaf).filter(|_| !is_blank(text)) {
                    self.tags.push((kind, text.to_owned()));
                }
            }
        }
    }

    fn returned(&mut self, leaf: &str, text: &str) {
        self.returned = true;
        let is_reason = matches!(
            leaf,
            "RtrInf/Rsn/Cd" | "RtrInf/Rsn/Prtry" | "RtrInf/RtrRsn/Cd" | "RtrInf/RtrRsn/Prtry"
        );
        if is_reason && !text.is_empty() {
            self.return_reason = Some(text.to_owned());
        }
    }

    /// The charges that it tells of, of the entry's currency.
    fn charges(&self, own: Currency) -> Charges {
        let mut charges = Charges::default();
        for (leaf, written) in &self.charges {
            charges.take(leaf, read(written, "", Some(own)).ok(), own);
        }
        charges
    }

    fn line(mut self, entry: &Entry, number: u64, charges: &Charges) -> (Line, Option<Problem>) {
        let mut line = Line {
            number,
            line: self.line,
            byte: self.byte,
            direction: self.direction.unwrap_or(entry.direction),
            booked_on: entry.booked_on,
            raw: std::mem::take(&mut self.raw),
            ..Line::of(entry)
        };
        let code = Some(self.code.join("/")).filter(|code| !code.is_empty());
        line.type_code = code.or_else(|| entry.type_code.clone());
        let problem = self.money(&mut line, entry.currency);
        let currency = entry.currency;
        line.fee = charges.minor().map(|minor| SignedMoney { minor, currency });
        for (kind, text) in &self.tags {
            line.tag(*kind, text);
        }
        line.return_reason = self.return_reason.take();
        if self.returned {
            let kinds = [TagKind::EndToEndId, TagKind::InstructionId, TagKind::TransactionId];
            let of = |kind| line.tags.iter().find(|tag| tag.kind == kind);
            line.original_reference = kinds.into_iter().find_map(of).map(|tag| tag.text.clone());
        }
        line.kind = kinds::booking(&line);
        (line, problem)
    }

    /// Whether no amount of it is what was booked.
    fn is_instructed_only(&self) -> bool {
        let booked = [&self.amount, &self.transaction, &self.counter];
        self.instructed.is_some() && booked.iter().all(|written| written.is_none())
    }

    /// The amount in the entry's currency, wherever it stands; else the one that is there.
    fn money(&self, line: &mut Line, own: Currency) -> Option<Problem> {
        let places = [
            ("TxDtls/Amt", &self.amount),
            ("TxDtls/AmtDtls/TxAmt/Amt", &self.transaction),
            ("TxDtls/AmtDtls/CntrValAmt/Amt", &self.counter),
            ("TxDtls/AmtDtls/InstdAmt/Amt", &self.instructed),
        ];
        let amounts = || places.iter().filter_map(|(field, w)| Some((*field, w.as_ref()?)));
        let is_own = |w: &Written| w.currency.is_empty() || w.currency == own.code();
        let found = amounts().find(|(_, w)| is_own(w)).or_else(|| amounts().next());
        line.minor = None;
        let mut problem = None;
        if let Some((field, written)) = found {
            match read(written, field, Some(own)) {
                Ok((minor, currency)) => {
                    line.minor = Some(minor);
                    line.currency = currency;
                }
                Err(found) => problem = Some(found),
            }
        }
        let instructed = self.instructed.as_ref();
        let gross = instructed.and_then(|written| read(written, "", Some(own)).ok());
        line.gross = gross.map(|(minor, currency)| SignedMoney { minor, currency });
        problem
    }
}

/// An amount of charges, by its place below `Chrgs`.
fn charge_leaf(leaf: &str) -> Option<&str> {
    let leaf = leaf.strip_prefix("Chrgs/")?;
    matches!(leaf, "TtlChrgsAndTaxAmt" | "Rcrd/Amt" | "Amt").then_some(leaf)
}

/// The references of `TxDtls`.
fn tag_kind(leaf: &str) -> Option<TagKind> {
    Some(match leaf {
        "Refs/EndToEndId" => TagKind::EndToEndId,
        "Refs/InstrId" => TagKind::InstructionId,
        "Refs/PmtInfId" => TagKind::PaymentInfoId,
        "Refs/MsgId" => TagKind::MessageId,
        "Refs/UETR" => TagKind::Uetr,
        "Refs/TxId" => TagKind::TransactionId,
        "Refs/MndtId" => TagKind::Mandate,
        "Refs/AcctSvcrRef" => TagKind::BankReference,
        "Refs/Prtry/Ref" => TagKind::Custom,
        "RmtInf/Strd/CdtrRefInf/Ref" | "RmtInf/Strd/CdtrRefInf/CdtrRef" => {
            TagKind::CreditorReference
        }
        "RmtInf/Ustrd" | "AddtlTxInf" => TagKind::Text,
        _other => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn lines(text: &str) -> Vec<Line> {
        let input = Box::new(Cursor::new(text.as_bytes().to_vec()));
        let mut parser = open(Source::open(input, None).unwrap());
        let mut lines = Vec::new();
        while let Some(item) = parser.next().unwrap() {
            if let Item::Line(line) = item {
                lines.push(*line);
            }
        }
        lines
    }

    #[test]
    fn an_id_in_the_place_of_a_code_is_the_banks_reference() {
        for (code, own, reference) in [
            ("TRANSFER-1234567", "", Some("TRANSFER-1234567")),
            ("TRANSFER-1234567", "<AcctSvcrRef>B1</AcctSvcrRef>", Some("B1")),
            ("CARD-001", "", None),
            ("NTRF+166+9310", "", None),
            ("SEPA-1234567", "", None),
        ] {
            let text = format!(
                "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.053.001.10\">\
                 <BkToCstmrStmt><Stmt><Id>A</Id><Ntry><Amt Ccy=\"GBP\">10.00</Amt>\
                 <CdtDbtInd>CRDT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts>{own}<BkTxCd><Prtry>\
                 <Cd>{code}</Cd></Prtry></BkTxCd></Ntry></Stmt></BkToCstmrStmt></Document>"
            );
            let lines = lines(&text);
            let tags = lines.first().unwrap().tags.iter();
            let tags: Vec<_> = tags.map(|tag| (tag.kind, tag.text.as_str())).collect();
            let wanted: Vec<_> =
                reference.map(|text| (TagKind::BankReference, text)).into_iter().collect();
            assert_eq!(tags, wanted, "{code}");
        }
    }

    #[test]
    fn a_detail_in_another_currency_is_what_was_paid_and_the_entry_what_was_booked() {
        let entry = "<Ntry><Amt Ccy=\"EUR\">90.00</Amt><CdtDbtInd>CRDT</CdtDbtInd>\
                     <Sts>BOOK</Sts><NtryDtls><TxDtls><Amt Ccy=\"USD\">100.00</Amt>\
                     <CdtDbtInd>CRDT</CdtDbtInd></TxDtls></NtryDtls></Ntry>";
        let text = format!(
            "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.053.001.02\">\
             <BkToCstmrStmt><Stmt><Id>A</Id>{entry}</Stmt></BkToCstmrStmt></Document>"
        );
        let lines = lines(&text);
        let line = lines.first().unwrap();
        let gross = line.gross.as_ref().map(|of| (of.minor, of.currency.code()));
        assert_eq!((line.minor, line.currency.code()), (Some(9000), "EUR"));
        assert_eq!(gross, Some((10_000, "USD")));
    }
}
