//! `TtlNtriesPerBkTxCd`: what a camt statement says of its entries of each bank transaction code.
//!
//! A code has a domain, a family of it and a part of that family, or only the first of them; or it
//! is the bank's own. What is said of a code is held against every entry whose code begins so. It
//! stands before the entries: what stands behind them is held against none, nor is what is
//! forecast, nor a code of a kind that no entry has. Where entries have codes of which nothing is
//! said, a code that none has may be theirs by another name: that is only told.

use crate::model::money::Currency;
use crate::model::settlement::{Control, Entry, EntryStatus, Found, Measure, Problem, Severity};
use crate::settlement::Item;
use crate::settlement::camt_totals::{Figure, Totals, Whole, held, written};

/// Codes of one statement that are held against its entries. Each entry is looked up in all.
const CODES: usize = 200;

/// The codes of an entry: the parts of ISO 20022's, and the bank's own.
pub type Codes<'a> = (&'a [String], &'a str);

/// What is said of each code.
#[derive(Debug, Default)]
pub struct Groups {
    all: Vec<Group>,
    open: Group,
    has_entries: bool,
    /// An entry is of none of them.
    has_others: bool,
    /// Whether an entry has a code of ISO 20022, and one of the bank's own.
    seen: [bool; 2],
}

#[derive(Debug, Default)]
struct Group {
    domain: Vec<String>,
    own: String,
    is_forecast: bool,
    count: Option<Figure>,
    /// The sums of credits and of debits.
    sides: [Option<Figure>; 2],
    whole: Whole,
    all: Totals,
    booked: Totals,
}

impl Groups {
    /// A leaf below one; empty where that ends.
    pub fn leaf(&mut self, leaf: &str, text: &str, line: u64) {
        let [credit, debit] = &mut self.open.sides;
        match leaf {
            "" => self.end(),
            "NbOfNtries" => self.open.count = written(text, line),
            "CdtNtries/Sum" => *credit = written(text, line),
            "DbtNtries/Sum" => *debit = written(text, line),
            "FcstInd" => self.open.is_forecast = text == "true" || text == "1",
            "BkTxCd/Domn/Cd" | "BkTxCd/Domn/Fmly/Cd" | "BkTxCd/Domn/Fmly/SubFmlyCd" => {
                self.open.domain.push(text.to_owned());
            }
            "BkTxCd/Prtry/Cd" => text.clone_into(&mut self.open.own),
            other => self.open.whole.leaf(other, text, line),
        }
    }

    fn end(&mut self) {
        let group = std::mem::take(&mut self.open);
        let is_held = !self.has_entries && !group.is_forecast;
        if is_held && group.has_code() && self.all.len() < CODES {
            self.all.push(group);
        }
    }

    /// An entry of the statement.
    pub fn add(&mut self, entry: &Entry, codes: Codes<'_>) {
        self.has_entries = true;
        let (domain, own) = codes;
        let [by_domain, by_own] = &mut self.seen;
        *by_domain |= !domain.is_empty();
        *by_own |= !own.is_empty();
        let mut is_other = true;
        for group in self.all.iter_mut().filter(|group| group.is_of(codes)) {
            is_other = false;
            group.all.add(entry);
            if entry.status == EntryStatus::Booked {
                group.booked.add(entry);
            }
        }
        self.has_others |= is_other;
    }

    /// All of them as controls. Counts are warnings: some banks count the payments of batches.
    pub fn controls(&self, currency: Option<Currency>, severity: Severity) -> Vec<Item> {
        let held = self.all.iter().filter(|group| self.is_seen(group));
        let of = |group: &Group| {
            let is_empty = group.all.measure(Measure::Entries) == 0;
            if is_empty && self.has_others { Severity::Warning } else { severity }
        };
        held.flat_map(|group| group.controls(currency, of(group))).collect()
    }

    fn is_seen(&self, group: &Group) -> bool {
        let [by_domain, by_own] = self.seen;
        let is_so = (group.domain.is_empty() || by_domain) && (group.own.is_empty() || by_own);
        !self.has_entries || is_so
    }
}

impl Group {
    fn has_code(&self) -> bool {
        !self.domain.is_empty() || !self.own.is_empty()
    }

    fn is_of(&self, (domain, own): Codes<'_>) -> bool {
        domain.starts_with(&self.domain) && (self.own.is_empty() || self.own == own)
    }

    fn controls(&self, currency: Option<Currency>, severity: Severity) -> Vec<Item> {
        let code = [self.domain.join("/"), self.own.clone()].join(" ");
        let field = format!("TxsSummry/TtlNtriesPerBkTxCd[{}]", code.trim());
        let both = [&self.all, &self.booked];
        let mut items: Vec<Item> = self.whole.controls(&field, both, currency, severity).collect();
        let sides = [("CdtNtries", Measure::CreditMinor), ("DbtNtries", Measure::DebitMinor)];
        for ((name, side), sum) in sides.into_iter().zip(&self.sides) {
            let sum = (sum.as_ref(), format!("{field}/{name}/Sum"));
            items.extend(held(sum, currency, severity, |(_, minor)| {
                let is_there = both.iter().any(|of| of.measure(side) == minor);
                let found = if is_there { minor } else { self.all.measure(side) };
                (minor, found, severity)
            }));
        }
        items.extend(self.count.as_ref().map(|count| self.counted(count, &field)));
        items
    }

    fn counted(&self, (text, line): &Figure, field: &str) -> Item {
        let (line, field) = (*line, format!("{field}/NbOfNtries"));
        let severity = Severity::Warning;
        let Ok(expected) = text.parse::<i128>() else {
            return Problem::warning(line, field, "a figure in digits", text.as_str()).into();
        };
        let [all, booked] = [self.all, self.booked].map(|of| of.measure(Measure::Entries));
        let found = Found::Is(if expected == booked { booked } else { all });
        Control { line, field, expected, found, currency: None, severity }.into()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use crate::settlement::ledger::{Inspection, State, inspect};

    /// Balances of entries that come to 6.50.
    const TIED: &str = "<Bal><Tp><CdOrPrtry><Cd>OPBD</Cd></CdOrPrtry></Tp><Amt Ccy=\"EUR\">0</Amt>\
                        <CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>2026-11-18</Dt></Dt></Bal>\
                        <Bal><Tp><CdOrPrtry><Cd>CLBD</Cd></CdOrPrtry></Tp><Amt Ccy=\"EUR\">6.50\
                        </Amt><CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>2026-11-18</Dt></Dt></Bal>";

    fn look(balances: &str, sums: &str, entries: &str) -> Inspection {
        let text = format!(
            "<Document><BkToCstmrDbtCdtNtfctn><Ntfctn><Id>1</Id>{balances}\
             <TxsSummry>{sums}</TxsSummry>{entries}</Ntfctn></BkToCstmrDbtCdtNtfctn></Document>"
        );
        inspect(Box::new(Cursor::new(text.into_bytes())), None, None).unwrap()
    }

    fn entry(amount: &str, sign: &str, more: &str) -> String {
        format!("<Ntry><Amt Ccy=\"EUR\">{amount}</Amt><CdtDbtInd>{sign}</CdtDbtInd>{more}</Ntry>")
    }

    #[track_caller]
    fn refused(found: &Inspection, part: &str) {
        assert_eq!(found.state, State::Quarantined, "{part}");
        let told = found.sums.problems.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(told.iter().any(|problem| problem.contains(part)), "{part}: {told:?}");
    }

    /// What is said of the entries of each code is held against them; where balances or sums of all
    /// prove them, a difference is only said.
    #[test]
    fn the_sums_of_each_code_are_held_against_its_entries() {
        let code = |family: &str| {
            format!("<BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>{family}</Cd></Fmly></Domn></BkTxCd>")
        };
        let said = |family: &str, figures: &str| {
            format!("<TtlNtriesPerBkTxCd>{figures}{}</TtlNtriesPerBkTxCd>", code(family))
        };
        let net = |amount: &str, way: &str| {
            let net = format!("<Amt>{amount}</Amt><CdtDbtInd>{way}</CdtDbtInd>");
            format!("<NbOfNtries>1</NbOfNtries><Sum>{amount}</Sum><TtlNetNtry>{net}</TtlNetNtry>")
        };
        let coded = |amount: &str, way: &str, family: &str| {
            entry(amount, way, &format!("<Sts>BOOK</Sts>{}", code(family)))
        };
        let notice = |sums: &str, entries: &str| look("", sums, entries);
        let entries = [coded("4", "CRDT", "RCDT"), coded("2.50", "DBIT", "ICDT")].concat();
        let sums =
            [said("RCDT", &net("4.00", "CRDT")), said("ICDT", &net("2.50", "DBIT"))].concat();
        let sides = "<CdtNtries><Sum>4</Sum></CdtNtries><DbtNtries><Sum>0</Sum></DbtNtries>";
        let forecast = said("RCDT", &format!("{}<FcstInd>true</FcstInd>", net("9", "CRDT")));
        let own = "<TtlNtriesPerBkTxCd><Sum>9</Sum><BkTxCd><Prtry><Cd>X</Cd></Prtry></BkTxCd>\
                   </TtlNtriesPerBkTxCd>";
        let by_sides = said("RCDT", sides);
        for sums in [sums.as_str(), by_sides.as_str(), forecast.as_str(), own] {
            let found = notice(sums, &entries);
            assert_eq!((found.state, found.sums.problems_total), (State::Ok, 0), "{sums}");
        }
        let turned = [coded("4", "CRDT", "RCDT"), coded("2.50", "CRDT", "ICDT")].concat();
        let expected = "[PMNT/ICDT]/TtlNetNtry: expected -2.50 EUR, found 2.50 EUR";
        refused(&notice(&sums, &turned), expected);
        let by_all = format!("<TtlNtries><Sum>6.50</Sum></TtlNtries>{sums}");
        refused(&notice(&by_all, &turned), expected);
        let lacking = coded("4", "CRDT", "RCDT");
        refused(&notice(&sums, &lacking), "[PMNT/ICDT]/Sum: expected 2.50 EUR, found 0.00 EUR");
        refused(&notice(&sums, ""), "[PMNT/RCDT]/Sum: expected 4.00, found no entry is listed");
        refused(&notice(&said("RCDT", sides).replace(">4<", ">5<"), &entries), "CdtNtries/Sum");
        let tied = look(TIED, &sums, &turned);
        assert_eq!((tied.state, tied.sums.problems_total), (State::Ok, 1), "by its balances");
        let renamed = entries.replace("ICDT", "IDDT");
        let other = notice(&sums, &renamed);
        assert_eq!((other.state, other.sums.problems_total), (State::Ok, 3), "by another name");
        let count = sums.replace(">1<", ">7<");
        let counted = notice(&count, &entries);
        assert_eq!((counted.state, counted.sums.problems_total), (State::Ok, 2), "counts are told");
    }
}
