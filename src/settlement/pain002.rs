//! pain.002: what a bank says of orders that were sent to it. No money moves by it.
//!
//! Status stands at three levels (`GrpSts`, `PmtInfSts`, `TxSts`); the lowest that is there wins.
//! `RJCT` alone is decisive; ACTC, ACCP and ACSP say that an order was taken, and codes not known
//! here (RCVC, RVMC of payee verification) are no failures: a line keeps the code as its type.
//! Each status is an entry without an amount, so that sums stay those of money.

use std::collections::VecDeque;

use crate::model::money::Currency;
use crate::model::settlement::{
    Direction, Entry, EntryStatus, Finality, Line, LineKind, Problem, Statement, StatementEnd,
    TagKind,
};
use crate::settlement::amount::{iso_day, unsigned};
use crate::settlement::camt;
use crate::settlement::tags::is_blank;
use crate::settlement::text::Source;
use crate::settlement::xml::{Node, Xml};
use crate::settlement::{Item, Parse};

/// The message element, or in its first versions an element named as the version.
pub fn recognise(head: &str) -> Option<String> {
    let found = camt::recognise(head, "CstmrPmtStsRpt", "pain.002");
    found.or_else(|| {
        let is_old = head.contains("<pain.002.001.0") || head.contains(":pain.002.001.0");
        (is_old && head.contains("OrgnlGrpInfAndSts")).then(|| camt::version(head, "pain.002"))
    })
}

/// Begins to read.
pub fn open(source: Source) -> Box<dyn Parse> {
    Box::new(Pain {
        xml: Xml::new(source.into_text()),
        items: VecDeque::new(),
        entries: 0,
        statements: 0,
        group: Level::default(),
        batch: None,
        order: None,
        direction: Direction::Debit,
        told: false,
        ended: false,
    })
}

/// What is said at one level.
#[derive(Debug, Clone, Default)]
struct Level {
    line: u64,
    byte: u64,
    status: Option<String>,
    reason: Option<String>,
    tags: Vec<(TagKind, String)>,
    amount: Option<(String, String, u64)>,
    orders: u64,
}

struct Pain {
    xml: Xml,
    items: VecDeque<Item>,
    entries: u64,
    statements: u64,
    group: Level,
    batch: Option<Level>,
    order: Option<Level>,
    direction: Direction,
    told: bool,
    ended: bool,
}

impl Parse for Pain {
    fn next(&mut self) -> Result<Option<Item>, Problem> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Ok(Some(item));
            }
            if self.ended {
                return Ok(None);
            }
            match self.xml.advance()? {
                Node::Open => self.opened(),
                Node::Close => {
                    let path = self.xml.take_path();
                    self.closed(&path);
                    self.xml.put_path(path);
                }
                Node::End => self.finish(),
            }
        }
    }
}

/// The path below the last element of this name.
fn below<'a>(path: &'a str, name: &str) -> Option<&'a str> {
    let mut names = path.split('/');
    let mut at = 0_usize;
    names.by_ref().find(|found| {
        at = at.saturating_add(found.len()).saturating_add(1);
        *found == name
    })?;
    Some(path.get(at..).unwrap_or_default())
}

impl Pain {
    fn opened(&mut self) {
        let level = Level { line: self.xml.line(), byte: self.xml.byte(), ..Level::default() };
        match self.xml.path().rsplit('/').next() {
            Some("OrgnlGrpInfAndSts") => self.group.line = level.line,
            Some("OrgnlPmtInfAndSts") => {
                self.batch = Some(level);
                self.begin_statement();
            }
            Some("TxInfAndSts") if self.order.is_none() => {
                self.order = Some(level);
                self.begin_statement();
                self.xml.record();
            }
            _other => {}
        }
    }

    fn closed(&mut self, path: &str) {
        let line = self.xml.line();
        if let Some(leaf) = below(path, "TxInfAndSts") {
            if leaf.is_empty() {
                self.end_order();
            } else if let Some(order) = &mut self.order {
                order.order_leaf(leaf, &self.xml, line);
            }
        } else if let Some(leaf) = below(path, "OrgnlPmtInfAndSts") {
            if leaf.is_empty() {
                self.end_batch();
            } else if let Some(batch) = &mut self.batch {
                let (text, kind) = (self.xml.text(), TagKind::PaymentInfoId);
                batch.leaf(leaf, text, "PmtInfSts", &[("OrgnlPmtInfId", kind)]);
            }
        } else if let Some(leaf) = below(path, "OrgnlGrpInfAndSts") {
            if leaf == "OrgnlMsgNmId" && self.xml.text().starts_with("pain.008") {
                self.direction = Direction::Credit;
            }
            let tags = [("OrgnlMsgId", TagKind::MessageId)];
            self.group.leaf(leaf, self.xml.text(), "GrpSts", &tags);
        } else if path.ends_with("GrpHdr/CreDtTm") {
            let day = iso_day(self.xml.text());
            self.group.tags.retain(|(kind, _)| *kind != TagKind::Custom);
            let day = day.map(|day| (TagKind::Custom, day.to_string()));
            self.group.tags.extend(day);
        }
    }

    fn begin_statement(&mut self) {
        if self.told {
            return;
        }
        self.told = true;
        self.statements = self.statements.saturating_add(1);
        let mut statement = Statement::at(self.statements, self.group.line, Finality::Notice);
        let of = |kind| self.group.tags.iter().find(|(of, _)| *of == kind).map(|(_, text)| text);
        statement.id = of(TagKind::MessageId).cloned();
        statement.from = of(TagKind::Custom).and_then(|text| iso_day(text));
        statement.to = statement.from;
        self.items.push_back(statement.into());
    }

    fn end_order(&mut self) {
        let Some(order) = self.order.take() else { return };
        let raw = self.xml.take_raw();
        if let Some(batch) = &mut self.batch {
            batch.orders = batch.orders.saturating_add(1);
        }
        self.group.orders = self.group.orders.saturating_add(1);
        let levels: Vec<Level> = [Some(order), self.batch.clone(), Some(self.group.clone())]
            .into_iter()
            .flatten()
            .collect();
        self.tell(&levels, true, raw);
    }

    fn end_batch(&mut self) {
        let Some(batch) = self.batch.take() else { return };
        if batch.orders == 0 {
            self.group.orders = self.group.orders.saturating_add(1);
            let levels = [batch, self.group.clone()];
            self.tell(&levels, false, String::new());
        }
    }

    fn finish(&mut self) {
        self.ended = true;
        self.begin_statement();
        let line = self.xml.line();
        if self.group.orders == 0 && self.group.line == 0 {
            let problem = Problem::error(line, "OrgnlGrpInfAndSts", "a group of orders", "none");
            self.items.push_back(problem.into());
        } else if self.group.orders == 0 {
            let levels = [self.group.clone()];
            self.tell(&levels, false, String::new());
        }
        self.items.push_back(StatementEnd { line, ..StatementEnd::default() }.into());
        self.items.extend(self.xml.take_beside().map(Item::from));
    }

    /// `levels` from the lowest up: the first status is the order's.
    fn tell(&mut self, levels: &[Level], itemised: bool, raw: String) {
        let Some(lowest) = levels.first() else { return };
        let said = levels.iter().find(|level| level.status.is_some());
        if said.is_none() {
            let expected = "TxSts, PmtInfSts or GrpSts";
            self.items
                .push_back(Problem::error(lowest.line, "status", expected, "none of them").into());
        }
        self.entries = self.entries.saturating_add(1);
        let status = said.and_then(|level| level.status.clone());
        let entry = Entry {
            number: self.entries,
            line: lowest.line,
            minor: 0,
            currency: Currency::NONE,
            direction: self.direction,
            reversal: false,
            status: EntryStatus::Info,
            booked_on: None,
            value_on: None,
            bank_reference: None,
            type_code: status.clone(),
            batch: None,
        };
        let mut line = Line { byte: lowest.byte, itemised, raw, ..Line::of(&entry) };
        line.kind = LineKind::Attempt;
        line.minor = None;
        line.type_code = status;
        line.return_reason = levels.iter().find_map(|level| level.reason.clone());
        for (kind, text) in levels.iter().flat_map(|level| &level.tags) {
            let is_known = line.tags.iter().any(|tag| tag.kind == *kind);
            if *kind != TagKind::Custom && !is_known && !is_blank(text) {
                line.tag(*kind, text);
            }
        }
        let own = line.tags.iter().find(|tag| tag.kind == TagKind::EndToEndId);
        line.original_reference = own.map(|tag| tag.text.clone());
        let problem = lowest.money(&mut line);
        self.items.push_back(entry.into());
        self.items.push_back(line.into());
        self.items.extend(problem.map(Item::from));
    }
}

impl Level {
    fn leaf(&mut self, leaf: &str, text: &str, status: &str, tags: &[(&str, TagKind)]) {
        if text.is_empty() {
            return;
        }
        if leaf == status {
            self.status = Some(text.to_owned());
        } else if matches!(
            leaf,
            "StsRsnInf/Rsn/Cd"
                | "StsRsnInf/Rsn/Prtry"
                | "StsRsnInf/StsRsn/Cd"
                | "StsRsnInf/StsRsn/Prtry"
        ) {
            self.reason.get_or_insert_with(|| text.to_owned());
        } else if let Some((_, kind)) = tags.iter().find(|(name, _)| *name == leaf) {
            self.tags.push((*kind, text.to_owned()));
        }
    }

    fn order_leaf(&mut self, leaf: &str, xml: &Xml, line: u64) {
        if leaf == "OrgnlTxRef/Amt/InstdAmt" {
            self.amount = Some((xml.text().to_owned(), xml.currency().to_owned(), line));
            return;
        }
        let tags = [
            ("OrgnlEndToEndId", TagKind::EndToEndId),
            ("OrgnlInstrId", TagKind::InstructionId),
            ("OrgnlUETR", TagKind::Uetr),
            ("OrgnlTxRef/MndtRltdInf/MndtId", TagKind::Mandate),
        ];
        self.leaf(leaf, xml.text(), "TxSts", &tags);
    }

    fn money(&self, line: &mut Line) -> Option<Problem> {
        let (text, code, at) = self.amount.as_ref()?;
        let field = "OrgnlTxRef/Amt/InstdAmt";
        let Ok(currency) = Currency::parse_any(code) else {
            return Some(Problem::warning(*at, field, "an ISO 4217 currency", code.as_str()));
        };
        match unsigned(text, b'.', currency) {
            Ok(minor) => {
                line.minor = Some(minor);
                line.currency = currency;
                None
            }
            Err(refused) => Some(refused.at(*at, field, text, currency)),
        }
    }
}
