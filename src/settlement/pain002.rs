//! pain.002: what a bank says of orders that were sent to it. No money moves by it.
//!
//! Status stands at three levels (`GrpSts`, `PmtInfSts`, `TxSts`); the lowest that is there wins,
//! and the reason is that level's own: only what was refused takes the reason of what it was
//! refused with. `RJCT` alone is decisive; ACTC, ACCP and ACSP say that an order was taken, and
//! codes not known here (RCVC, RVMC of payee verification) are no failures: a line keeps the code
//! as its type. Each status is an entry without an amount, so that sums stay those of money.

use std::collections::VecDeque;

use crate::model::money::Currency;
use crate::model::settlement::{
    Direction, Entry, EntryStatus, Finality, Line, LineKind, Problem, Severity, Statement,
    StatementEnd, TagKind,
};
use crate::settlement::amount::{Refused, iso_day, unread_iso, unsigned};
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
        id: None,
        group: Level::default(),
        batch: None,
        order: None,
        direction: Direction::Debit,
        refused: Refusals::default(),
        told: false,
        ended: false,
    })
}

/// The status that alone is decisive.
const REFUSED: &str = "RJCT";

/// Where an order's amount may stand, the likeliest first.
const AMOUNTS: [&str; 3] =
    ["OrgnlTxRef/Amt/InstdAmt", "OrgnlTxRef/IntrBkSttlmAmt", "OrgnlTxRef/Amt/EqvtAmt/Amt"];

/// What is said at one level.
#[derive(Debug, Clone, Default)]
struct Level {
    line: u64,
    byte: u64,
    is_order: bool,
    status: Option<String>,
    /// Codes of reasons, and whether each is one of ISO 20022 by where it stands.
    reasons: Vec<(String, bool)>,
    tags: Vec<(TagKind, String)>,
    amount: Option<Amount>,
    /// How many orders were sent.
    sent: Option<u64>,
    orders: u64,
}

#[derive(Debug, Clone)]
struct Amount {
    field: &'static str,
    text: String,
    currency: String,
    line: u64,
}

struct Pain {
    xml: Xml,
    items: VecDeque<Item>,
    entries: u64,
    statements: u64,
    /// The report's own id: several may tell of one file of orders.
    id: Option<String>,
    group: Level,
    batch: Option<Level>,
    order: Option<Level>,
    direction: Direction,
    refused: Refusals,
    told: bool,
    ended: bool,
}

/// How many orders were refused: as the group and its batches count them, and as they are listed.
#[derive(Debug, Default)]
struct Refusals {
    group: u64,
    batches: u64,
    listed: u64,
    /// `DtldNbOfTxs`, until `DtldSts` behind it says of what.
    count: Option<u64>,
    line: u64,
}

impl Refusals {
    fn leaf(&mut self, leaf: &str, xml: &Xml, is_batch: bool) {
        match leaf {
            "NbOfTxsPerSts/DtldNbOfTxs" => self.count = xml.text().parse().ok(),
            "NbOfTxsPerSts/DtldSts" => {
                let count = self.count.take().filter(|_| xml.text() == REFUSED);
                let sum = if is_batch { &mut self.batches } else { &mut self.group };
                *sum = sum.saturating_add(count.unwrap_or(0));
                if count.is_some() {
                    self.line = xml.line();
                }
            }
            _other => {}
        }
    }

    /// Orders that were refused and that nothing names.
    fn unnamed(&self) -> Option<Problem> {
        let declared = self.group.max(self.batches);
        let expected = format!("each of {declared} refused orders (RJCT) in the list");
        let found = format!("{} of them: the others are not told", self.listed);
        let field = "NbOfTxsPerSts";
        (self.listed < declared).then(|| Problem::warning(self.line, field, expected, found))
    }
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
                self.order = Some(Level { is_order: true, ..level });
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
                self.refused.leaf(leaf, &self.xml, true);
                let (text, kind) = (self.xml.text(), TagKind::PaymentInfoId);
                batch.leaf(leaf, text, "PmtInfSts", &[("OrgnlPmtInfId", kind)]);
            }
        } else if let Some(leaf) = below(path, "OrgnlGrpInfAndSts") {
            if leaf == "OrgnlMsgNmId" && self.xml.text().starts_with("pain.008") {
                self.direction = Direction::Credit;
            }
            self.refused.leaf(leaf, &self.xml, false);
            let tags = [("OrgnlMsgId", TagKind::MessageId)];
            self.group.leaf(leaf, self.xml.text(), "GrpSts", &tags);
        } else if path.ends_with("GrpHdr/MsgId") {
            self.id = Some(self.xml.text().to_owned()).filter(|id| !id.is_empty());
        } else if path.ends_with("GrpHdr/CreDtTm") {
            let day = iso_day(self.xml.text());
            let unread = unread_iso(self.xml.line(), "GrpHdr/CreDtTm", self.xml.text());
            self.items.extend(unread.map(Item::from));
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
        statement.id = self.id.clone().or_else(|| of(TagKind::MessageId).cloned());
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
        // One without any id, of a batch of several, stands for all of them.
        let sent = self.batch.as_ref().unwrap_or(&self.group).sent;
        let itemised = order.is_named() || sent.is_none_or(|sent| sent <= 1);
        let levels: Vec<Level> = [Some(order), self.batch.clone(), Some(self.group.clone())]
            .into_iter()
            .flatten()
            .collect();
        self.tell(&levels, itemised, raw);
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
        self.items.extend(self.refused.unnamed().map(Item::from));
        self.items.push_back(StatementEnd { line, ..StatementEnd::default() }.into());
        self.items.extend(self.xml.take_beside().map(Item::from));
    }

    /// `levels` from the lowest up: the first status is the order's.
    fn tell(&mut self, levels: &[Level], itemised: bool, raw: String) {
        let Some(lowest) = levels.first() else { return };
        let said = levels.iter().find(|level| level.status.is_some());
        if said.is_none() {
            let expected = "TxSts, PmtInfSts or GrpSts";
            let problem = Problem::error(lowest.line, "status", expected, "none of them");
            // An order may lack it, and then says nothing.
            let severity = if lowest.is_order { Severity::Warning } else { Severity::Error };
            self.items.push_back(Problem { severity, ..problem }.into());
        }
        self.entries = self.entries.saturating_add(1);
        let status = said.and_then(|level| level.status.clone());
        if status.as_deref() == Some(REFUSED) {
            // What is refused as a whole is all that was sent.
            let count = if itemised { 1 } else { u64::MAX };
            self.refused.listed = self.refused.listed.saturating_add(count);
        }
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
        let reasons = reasons(levels);
        line.return_reason = best(reasons).map(str::to_owned);
        for (kind, text) in levels.iter().flat_map(|level| &level.tags) {
            let is_known = line.tags.iter().any(|tag| tag.kind == *kind);
            if *kind != TagKind::Custom && !is_known && !is_blank(text) {
                line.tag(*kind, text);
            }
        }
        if reasons.len() > 1 {
            let all: Vec<&str> = reasons.iter().map(|(code, _)| code.as_str()).collect();
            line.tag(TagKind::Text, &all.join(" "));
        }
        let own = line.tags.iter().find(|tag| tag.kind == TagKind::EndToEndId);
        line.original_reference = own.map(|tag| tag.text.clone());
        let problem = lowest.money(&mut line);
        self.items.push_back(entry.into());
        self.items.push_back(line.into());
        self.items.extend(problem.map(Item::from));
    }
}

/// The codes of the level that says the status; of a refusal else those of what it was refused
/// with.
fn reasons(levels: &[Level]) -> &[(String, bool)] {
    let at = levels.iter().position(|level| level.status.is_some()).unwrap_or(levels.len());
    let status = levels.get(at).and_then(|level| level.status.as_deref());
    let is_its = |(place, level): &(usize, &Level)| {
        let is_with = level.status.as_deref().is_none_or(|status| status == REFUSED);
        *place <= at || (status == Some(REFUSED) && is_with)
    };
    let mut its = levels.iter().enumerate().filter(is_its).map(|(_, level)| level);
    its.find(|level| !level.reasons.is_empty()).map_or(&[], |level| &level.reasons)
}

/// The code that tells most: one of ISO 20022, by where it stands or by its form, before one of the
/// bank's own, and one that only points to a text (NARR) last of them.
fn best(reasons: &[(String, bool)]) -> Option<&str> {
    let rank = |(code, is_iso): &&(String, bool)| match *is_iso || has_iso_form(code) {
        true if code == "NARR" => 1,
        true => 0,
        false => 2,
    };
    reasons.iter().min_by_key(rank).map(|(code, _)| code.as_str())
}

/// Two letters and two digits (`AM04`), as nearly all of the code set are.
fn has_iso_form(code: &str) -> bool {
    let (letters, digits) = code.as_bytes().split_at(code.len().min(2));
    code.len() == 4
        && letters.iter().all(u8::is_ascii_uppercase)
        && digits.iter().all(u8::is_ascii_digit)
}

impl Level {
    /// Whether an order has an id of its own.
    fn is_named(&self) -> bool {
        let ids = [TagKind::EndToEndId, TagKind::InstructionId, TagKind::Uetr];
        self.tags.iter().any(|(kind, _)| ids.contains(kind))
    }

    fn leaf(&mut self, leaf: &str, text: &str, status: &str, tags: &[(&str, TagKind)]) {
        if text.is_empty() {
            return;
        }
        if leaf == status {
            self.status = Some(text.to_owned());
        } else if matches!(leaf, "StsRsnInf/Rsn/Cd" | "StsRsnInf/StsRsn/Cd") {
            self.because(text, true);
        } else if matches!(leaf, "StsRsnInf/Rsn/Prtry" | "StsRsnInf/StsRsn/Prtry") {
            self.because(text, false);
        } else if leaf == "OrgnlNbOfTxs" {
            self.sent = text.parse().ok();
        } else if let Some((_, kind)) = tags.iter().find(|(name, _)| *name == leaf) {
            self.tags.push((*kind, text.to_owned()));
        }
    }

    fn because(&mut self, code: &str, is_iso: bool) {
        if !self.reasons.iter().any(|(known, _)| known == code) {
            self.reasons.push((code.to_owned(), is_iso));
        }
    }

    fn order_leaf(&mut self, leaf: &str, xml: &Xml, line: u64) {
        if let Some(field) = AMOUNTS.into_iter().find(|field| *field == leaf) {
            let (text, currency) = (xml.text().to_owned(), xml.currency().to_owned());
            let amount = Amount { field, text, currency, line };
            let rank = |field: &str| AMOUNTS.iter().position(|known| *known == field);
            if self.amount.as_ref().is_none_or(|known| rank(field) < rank(known.field)) {
                self.amount = Some(amount);
            }
            return;
        }
        let tags = [
            ("OrgnlEndToEndId", TagKind::EndToEndId),
            ("OrgnlInstrId", TagKind::InstructionId),
            ("OrgnlUETR", TagKind::Uetr),
            ("OrgnlPmtInfId", TagKind::PaymentInfoId),
            ("OrgnlTxRef/MndtRltdInf/MndtId", TagKind::Mandate),
            ("OrgnlTxRef/MndtRltdInf/DrctDbtMndt/MndtId", TagKind::Mandate),
        ];
        self.leaf(leaf, xml.text(), "TxSts", &tags);
    }

    fn money(&self, line: &mut Line) -> Option<Problem> {
        let Amount { field, text, currency: code, line: at } = self.amount.as_ref()?;
        let Ok(currency) = Currency::parse_any(code) else {
            return Some(Problem::warning(*at, *field, "an ISO 4217 currency", code.as_str()));
        };
        match unsigned(text, b'.', currency) {
            Ok(minor) => {
                line.minor = Some(minor);
                line.currency = currency;
                None
            }
            // The schema allows five decimals, and nothing is summed here.
            Err(refused @ Refused::TooFine) => {
                let problem = refused.at(*at, field, text, currency);
                Some(Problem { severity: Severity::Warning, ..problem })
            }
            Err(refused) => Some(refused.at(*at, field, text, currency)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::settlement::ledger::{Inspection, State, inspect};

    fn file(group: &str, blocks: &str) -> String {
        format!(
            "<Document><CstmrPmtStsRpt><GrpHdr><MsgId>S</MsgId></GrpHdr><OrgnlGrpInfAndSts>\
             <OrgnlMsgId>M</OrgnlMsgId>{group}</OrgnlGrpInfAndSts>{blocks}</CstmrPmtStsRpt>\
             </Document>"
        )
    }

    fn block(own: &str, orders: &[&str]) -> String {
        let orders: String =
            orders.iter().map(|order| format!("<TxInfAndSts>{order}</TxInfAndSts>")).collect();
        format!("<OrgnlPmtInfAndSts>{own}{orders}</OrgnlPmtInfAndSts>")
    }

    fn reason(place: &str, code: &str) -> String {
        format!("<StsRsnInf><Rsn><{place}>{code}</{place}></Rsn></StsRsnInf>")
    }

    fn inspected(text: &str) -> Inspection {
        inspect(Box::new(Cursor::new(text.as_bytes().to_vec())), None, None).unwrap()
    }

    fn lines(text: &str) -> Vec<Line> {
        let source = Source::open(Box::new(Cursor::new(text.as_bytes().to_vec())), None).unwrap();
        let mut parser = open(source);
        let mut lines = Vec::new();
        while let Some(item) = parser.next().unwrap() {
            if let Item::Line(line) = item {
                lines.push(*line);
            }
        }
        lines
    }

    /// Banks list what they took, and count what they refused.
    #[test]
    fn refused_orders_that_are_counted_and_not_listed_are_told() {
        let count = |n: &str| {
            format!(
                "<NbOfTxsPerSts><DtldNbOfTxs>2</DtldNbOfTxs><DtldSts>ACSP</DtldSts></NbOfTxsPerSts>\
                 <NbOfTxsPerSts><DtldNbOfTxs>{n}</DtldNbOfTxs><DtldSts>RJCT</DtldSts>\
                 </NbOfTxsPerSts>"
            )
        };
        let order = |id: &str, status: &str| {
            format!("<OrgnlEndToEndId>{id}</OrgnlEndToEndId><TxSts>{status}</TxSts>")
        };
        let problems = |group: &str, batch: &str, orders: &[&str]| {
            let found = inspected(&file(group, &block(batch, orders)));
            assert_eq!(found.state, State::Ok);
            found.sums.problems.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let (taken, refused) = (order("A", "ACSP"), order("B", "RJCT"));
        for (group, batch) in [(count("1"), String::new()), (String::new(), count("1"))] {
            let found = problems(&group, &batch, &[&taken]);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains("NbOfTxsPerSts: expected each of 1 refused"), "{found:?}");
            assert_eq!(problems(&group, &batch, &[&taken, &refused]), Vec::<String>::new());
        }
        let all = "<PmtInfSts>RJCT</PmtInfSts>";
        assert_eq!(problems(&count("7"), all, &[]), Vec::<String>::new(), "as a whole");
    }

    /// The one line of a file of one order.
    fn line_of(group: &str, batch: &str, order: &str) -> Line {
        let mut lines = lines(&file(group, &block(batch, &[order])));
        assert_eq!(lines.len(), 1);
        lines.remove(0)
    }

    fn tag(line: &Line, kind: TagKind) -> Option<&str> {
        line.tags.iter().find(|tag| tag.kind == kind).map(|tag| tag.text.as_str())
    }

    fn money(line: &Line) -> (Option<i64>, &str) {
        (line.minor, line.currency.code())
    }

    #[test]
    fn a_report_is_known_by_its_own_id() {
        let of = |text: &str| inspected(text).sums.statements[0].head.id.clone();
        let told = file("", &block("", &["<OrgnlEndToEndId>E</OrgnlEndToEndId>"]));
        assert_eq!(of(&told).as_deref(), Some("S"));
        let nameless = told.replace("<MsgId>S</MsgId>", "");
        assert_eq!(of(&nameless).as_deref(), Some("M"));
    }

    /// A bank tells a batch by one order without an id, and the sum of all.
    #[test]
    fn an_order_without_an_id_stands_for_its_batch() {
        let several = "<OrgnlNbOfTxs>2</OrgnlNbOfTxs><PmtInfSts>RJCT</PmtInfSts>";
        let one = several.replace('2', "1");
        let amount = "<OrgnlTxRef><Amt><InstdAmt Ccy=\"EUR\">740.22</InstdAmt></Amt></OrgnlTxRef>";
        let named = format!("<OrgnlEndToEndId>E-1</OrgnlEndToEndId>{amount}");
        for (batch, order, itemised) in
            [(several, amount, false), (&one, amount, true), (several, &named, true)]
        {
            let line = line_of("", batch, order);
            assert_eq!((line.itemised, line.minor), (itemised, Some(74_022)), "{batch} {order}");
        }
        assert!(
            line_of("<OrgnlNbOfTxs>8</OrgnlNbOfTxs>", "", amount).itemised,
            "of its batch alone"
        );
    }

    #[test]
    fn of_several_reasons_the_one_that_tells_most_is_taken_and_none_is_lost() {
        let refused = "<TxSts>RJCT</TxSts>";
        for (codes, want, all) in [
            (vec![("Prtry", "EA178"), ("Prtry", "AM04")], "AM04", Some("EA178 AM04")),
            (vec![("Prtry", "AM04"), ("Cd", "AC01")], "AM04", Some("AM04 AC01")),
            (vec![("Cd", "NARR"), ("Cd", "AC01")], "AC01", Some("NARR AC01")),
            (vec![("Prtry", "X"), ("Cd", "NARR")], "NARR", Some("X NARR")),
            (vec![("Prtry", "EL202")], "EL202", None),
            (vec![("Cd", "AC01"), ("Cd", "AC01")], "AC01", None),
        ] {
            let told: String = codes.iter().map(|(place, code)| reason(place, code)).collect();
            let line = line_of("", "", &format!("{refused}{told}"));
            assert_eq!(line.return_reason.as_deref(), Some(want), "{codes:?}");
            assert_eq!(tag(&line, TagKind::Text), all, "{codes:?}");
        }
    }

    #[test]
    fn only_what_was_refused_takes_the_reason_of_its_batch() {
        let because = reason("Cd", "AM04");
        let with = |name: &str, status: &str| match status {
            "" => because.clone(),
            status => format!("<{name}>{status}</{name}>{because}"),
        };
        for (batch, order, want) in [
            (with("PmtInfSts", "RJCT"), "<TxSts>RJCT</TxSts>", Some("AM04")),
            (with("PmtInfSts", ""), "<TxSts>RJCT</TxSts>", Some("AM04")),
            (with("PmtInfSts", "RJCT"), "", Some("AM04")),
            (with("PmtInfSts", "RJCT"), "<TxSts>ACSC</TxSts>", None),
            (with("PmtInfSts", "PART"), "<TxSts>ACCP</TxSts>", None),
            (with("PmtInfSts", ""), "<TxSts>PDNG</TxSts>", None),
        ] {
            let line = line_of("", &batch, order);
            assert_eq!(line.return_reason.as_deref(), want, "{batch} {order}");
        }
        let group = with("GrpSts", "RJCT");
        assert_eq!(line_of(&group, "", "<TxSts>ACCP</TxSts>").return_reason, None);
        let refused = line_of(&group, "", "<TxSts>RJCT</TxSts>");
        assert_eq!(refused.return_reason.as_deref(), Some("AM04"));
        let own = format!("<TxSts>ACSC</TxSts>{}", reason("Cd", "G000"));
        assert_eq!(line_of(&group, "", &own).return_reason.as_deref(), Some("G000"));
    }

    #[test]
    fn an_order_tells_its_amount_its_mandate_and_its_batch_in_several_places() {
        let of = |reference: &str| {
            let order = format!(
                "<OrgnlPmtInfId>P-1</OrgnlPmtInfId><TxSts>RJCT</TxSts><OrgnlTxRef>{reference}\
                 </OrgnlTxRef>"
            );
            line_of("", "", &order)
        };
        let settled = "<IntrBkSttlmAmt Ccy=\"AZN\">8.00</IntrBkSttlmAmt>";
        let equal =
            "<Amt><EqvtAmt><Amt Ccy=\"CHF\">9</Amt><CcyOfTrf>USD</CcyOfTrf></EqvtAmt></Amt>";
        let ordered = "<Amt><InstdAmt Ccy=\"EUR\">7.5</InstdAmt></Amt>";
        assert_eq!(money(&of(settled)), (Some(800), "AZN"));
        assert_eq!(money(&of(equal)), (Some(900), "CHF"));
        assert_eq!(money(&of(&format!("{settled}{equal}"))), (Some(800), "AZN"));
        assert_eq!(money(&of(&format!("{settled}{ordered}"))), (Some(750), "EUR"));
        assert_eq!(tag(&of(""), TagKind::PaymentInfoId), Some("P-1"));
        for mandate in ["<MndtId>D-1</MndtId>", "<DrctDbtMndt><MndtId>D-1</MndtId></DrctDbtMndt>"] {
            let line = of(&format!("<MndtRltdInf>{mandate}</MndtRltdInf>"));
            assert_eq!(tag(&line, TagKind::Mandate), Some("D-1"), "{mandate}");
        }
    }

    #[test]
    fn what_is_not_summed_and_what_says_nothing_is_only_said() {
        let order = |status: &str, amount: &str| {
            format!(
                "<OrgnlEndToEndId>E-1</OrgnlEndToEndId>{status}<OrgnlTxRef><Amt><InstdAmt \
                 Ccy=\"EUR\">{amount}</InstdAmt></Amt></OrgnlTxRef>"
            )
        };
        let fine = order("<TxSts>ACCP</TxSts>", "12.345");
        let silent = order(&reason("Cd", "AC01"), "12.34");
        for (text, minor, field) in
            [(fine, None, AMOUNTS[0]), (silent.clone(), Some(1_234), "status")]
        {
            let text = file("", &block("", &[&text]));
            let found = inspected(&text);
            assert_eq!((found.state, found.sums.problems_total), (State::Ok, 1), "{text}");
            assert_eq!(found.sums.problems[0].field, field);
            assert_eq!(lines(&text)[0].minor, minor);
        }
        let taken = line_of("", "<PmtInfSts>RJCT</PmtInfSts>", &silent);
        assert_eq!(taken.type_code.as_deref(), Some("RJCT"));
        for text in [
            file("", &block("", &[&order("<TxSts>ACCP</TxSts>", "12,34")])),
            file("", &block("<OrgnlPmtInfId>P-1</OrgnlPmtInfId>", &[])),
        ] {
            assert_eq!(inspected(&text).state, State::Quarantined, "{text}");
        }
    }
}
