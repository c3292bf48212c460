//! Mollie's settlement report: a row for each payment, refund and chargeback, and for what was
//! withheld. Columns: docs.mollie.com, "Settlement report".
//!
//! Amounts carry their sign. A row with a settlement is booked, by what it is in the currency of
//! the settlement; the export of payments, which has the same columns, lists others too, which were
//! not paid out. Fees are rows of their own. The report has no sum and no row of the payout, so
//! that nothing ties it.

use std::collections::HashMap;

use crate::model::money::Currency;
use crate::model::settlement::{EntryStatus, Finality, LineKind, Problem, StatementEnd, TagKind};
use crate::settlement::Parse;
use crate::settlement::kinds;
use crate::settlement::last_row::Last;
use crate::settlement::named::Named;
use crate::settlement::numeral::{Numerals, Order};
use crate::settlement::once::Once;
use crate::settlement::sheet::{self, Layout, Out, Report, Row, currency, money, some};
use crate::settlement::text::Source;

const COLUMNS: &[&str] = &[
    "date",
    "payment method",
    "currency",
    "amount",
    "status",
    "id",
    "settlement currency",
    "settlement amount",
    "settlement reference",
];

/// Settlements of one file whose currency is held against all of their rows.
const SETTLEMENTS: usize = 10_000;

/// The report, by its columns.
pub fn recognise(head: &str) -> Option<String> {
    sheet::find(head, |names| sheet::has(names, COLUMNS)).map(|_| String::new())
}

/// Begins to read.
pub fn open(source: Source) -> Box<dyn Parse> {
    sheet::read_below(source, |names| sheet::has(names, COLUMNS), Mollie::new)
}

struct Mollie {
    date: usize,
    method: usize,
    /// Currency and amount of the row, and of it in its settlement.
    own: [usize; 2],
    settled: [usize; 2],
    status: usize,
    id: usize,
    settlement: usize,
    text: Option<usize>,
    named: Named,
    currencies: HashMap<String, Currency>,
    once: Once,
    layout: Layout,
}

impl Mollie {
    fn new(layout: Layout) -> Result<Self, Problem> {
        Ok(Self {
            date: layout.need("date")?,
            method: layout.need("payment method")?,
            own: [layout.need("currency")?, layout.need("amount")?],
            settled: [layout.need("settlement currency")?, layout.need("settlement amount")?],
            status: layout.need("status")?,
            id: layout.need("id")?,
            settlement: layout.need("settlement reference")?,
            text: layout.one(&["description"])?,
            named: Named::default(),
            currencies: HashMap::new(),
            once: Once::default(),
            layout,
        })
    }

    fn amount(
        &self,
        row: &Row<'_>,
        [of, at]: [usize; 2],
        [of_name, name]: [&str; 2],
    ) -> Result<(i64, Currency), Problem> {
        let currency = currency(row, of_name, row.get(of))?;
        let text = row.get(at);
        let minor = Numerals::PLAIN.read_sure(text, currency);
        Ok((minor.map_err(|refused| refused.at(row.line, name, text, currency))?, currency))
    }

    /// What the row says, what it is in its settlement, and whether it was booked there.
    fn money(&self, row: &Row<'_>) -> Result<(Moved, EntryStatus), Problem> {
        let (gross, of) = self.amount(row, self.own, ["Currency", "Amount"])?;
        if row.get(self.settlement).is_empty() {
            return Ok((Moved { gross, of, net: gross, currency: of }, self.status(row)?));
        }
        let names = ["Settlement currency", "Settlement amount"];
        let (net, currency) = self.amount(row, self.settled, names)?;
        if gross.signum() != net.signum() {
            let expected = format!("the side of the amount, {}", row.get(self.own_amount()));
            let [_, at] = self.settled;
            return Err(Problem::error(row.line, "Settlement amount", expected, row.get(at)));
        }
        // What Mollie does not settle itself is left out of it, and nothing is added.
        if of == currency && net.unsigned_abs() > gross.unsigned_abs() {
            let expected = format!("at most the amount, {}", row.get(self.own_amount()));
            let [_, at] = self.settled;
            return Err(Problem::error(row.line, "Settlement amount", expected, row.get(at)));
        }
        let gives_back = kinds::mollie(row.get(self.id), row.get(self.method))
            .is_some_and(|kind| matches!(kind, LineKind::Refund | LineKind::Chargeback));
        if (gives_back || self.is_withheld(row)) && net > 0 {
            let found = row.get(self.own_amount());
            let expected = "money out, with a minus: it gives something back, or was withheld";
            return Err(Problem::error(row.line, "Amount", expected, found));
        }
        Ok((Moved { gross, of, net, currency }, EntryStatus::Booked))
    }

    /// A settlement is paid out in one currency.
    fn one_currency(&mut self, row: &Row<'_>, id: &str, moved: &Moved) -> Option<Problem> {
        let is_known = self.currencies.contains_key(id);
        if id.is_empty() || !is_known && self.currencies.len() >= SETTLEMENTS {
            return None;
        }
        let own = *self.currencies.entry(id.to_owned()).or_insert(moved.currency);
        let (expected, found) = (format!("{own}, as all of {id}"), moved.currency.code());
        let problem = || Problem::error(row.line, "Settlement currency", expected, found);
        (own != moved.currency).then(problem)
    }

    /// Whether the row is of fees.
    fn is_withheld(&self, row: &Row<'_>) -> bool {
        let text = row.maybe(self.text).to_ascii_lowercase();
        row.get(self.id).is_empty() && text.starts_with("withheld")
    }

    fn own_amount(&self) -> usize {
        let [_, at] = self.own;
        at
    }

    /// Of a row that is in no settlement.
    fn status(&self, row: &Row<'_>) -> Result<EntryStatus, Problem> {
        let word = row.get(self.status);
        match word.to_ascii_lowercase().as_str() {
            "paid" | "pending" | "authorized" => Ok(EntryStatus::Pending),
            "open" | "failed" | "expired" | "canceled" | "cancelled" => Ok(EntryStatus::Info),
            _other => {
                let expected = "a settlement, or a word for what was not paid out";
                Err(Problem::error(row.line, "Status", expected, word))
            }
        }
    }

    fn kind(&self, row: &Row<'_>, net: i64, status: EntryStatus) -> LineKind {
        if status == EntryStatus::Info {
            return LineKind::Attempt;
        }
        match kinds::mollie(row.get(self.id), row.get(self.method)) {
            Some(LineKind::Payment) if net < 0 => LineKind::Adjustment,
            Some(kind) => kind,
            None if self.is_withheld(row) && net < 0 => LineKind::Fee,
            None => LineKind::Adjustment,
        }
    }
}

/// What moved.
struct Moved {
    gross: i64,
    of: Currency,
    net: i64,
    currency: Currency,
}

impl Report for Mollie {
    fn row(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        row.fits(&self.layout)?;
        if !out.is_open() {
            out.begin(row.line, Finality::Final, |_statement| {});
        }
        let (id, settlement) = (row.get(self.id), row.get(self.settlement));
        let (moved, status) = self.money(row)?;
        let [_, settled] = self.settled;
        let more = [self.date, self.method, self.own_amount(), settled].map(|at| row.get(at));
        // What was withheld has no id, and goes by its whole row.
        out.extend(match id {
            "" => self.once.note(row.line, "row", "withheld", &[&row.raw()]),
            id => self.once.note(row.line, "ID", id, &more),
        });
        out.extend(self.one_currency(row, settlement, &moved));
        let (mut entry, mut line) = out.entry(row, moved.net, moved.currency);
        entry.status = status;
        line.kind = self.kind(row, moved.net, status);
        line.gross = money(moved.gross, moved.of);
        if status == EntryStatus::Booked {
            line.net = money(moved.net, moved.currency);
        }
        let tag = match line.kind {
            LineKind::Refund => TagKind::RefundId,
            LineKind::Chargeback => TagKind::DisputeId,
            LineKind::Payment | LineKind::Attempt => TagKind::PaymentId,
            _other => TagKind::TransactionId,
        };
        line.tag(tag, id);
        line.tag(TagKind::Text, row.maybe(self.text));
        // A file may be of several settlements; each is named once.
        if self.named.is_first(settlement) {
            line.tag(TagKind::PayoutId, settlement);
        }
        line.psp_reference = some(id);
        line.batch_id = some(settlement);
        entry.type_code = some(row.get(self.method));
        entry.reversal = line.kind == LineKind::Chargeback;
        entry.booked_on = out.day(row.line, "Date", row.get(self.date), Order::Unknown);
        out.tell(entry, line);
        Ok(())
    }

    fn last(&self, row: &Row<'_>, at: usize) -> Option<(Last, u32)> {
        let of = [self.own, self.settled].into_iter().find(|[_, amount]| *amount == at);
        if let Some([of, _]) = of {
            let places = Currency::parse_any(row.get(of)).map_or(u32::MAX, |of| of.exponent());
            let last = if row.get(at).is_empty() { Last::Unsure } else { Last::Money(Some(b'.')) };
            return Some((last, places));
        }
        let last = if at == self.status {
            Last::Unsure
        } else if at == self.date {
            Last::Day
        } else {
            let is_text = [self.id, self.settlement].contains(&at) || self.text == Some(at);
            Some(Last::Other).filter(|_| is_text)?
        };
        Some((last, 0))
    }

    fn end(&mut self, line: u64, out: &mut Out) {
        out.end(StatementEnd { line, ..StatementEnd::default() });
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::model::settlement::{Entry, Line};
    use crate::settlement::ledger::{State, inspect};
    use crate::settlement::{Format, Item};

    const HEADER: &str = "Date,Payment method,Currency,Amount,Status,ID,Description,\
                          Settlement currency,Settlement amount,Settlement reference";

    fn source(rows: &str) -> Box<Cursor<Vec<u8>>> {
        Box::new(Cursor::new(format!("{HEADER}\n{rows}").into_bytes()))
    }

    fn told(rows: &str) -> Vec<(Entry, Line)> {
        let mut parser = open(Source::open(source(rows), None).unwrap());
        let mut told = Vec::new();
        let mut last = None;
        while let Some(item) = parser.next().unwrap() {
            match item {
                Item::Entry(entry) => last = Some(*entry),
                Item::Line(line) => told.push((last.take().unwrap(), *line)),
                _other => {}
            }
        }
        told
    }

    #[test]
    fn a_row_is_what_it_is_in_its_settlement() {
        let rows = "2026-10-01 10:12:00,ideal,EUR,100.00,paidout,tr_a,Order 1,EUR,100.00,12.2610\n\
                    2026-10-02 11:00:00,applepay,USD,60.00,paidout,tr_b,Order 2,EUR,50.00,12.2610\n\
                    2026-10-03 09:00:00,refund,EUR,-20.00,refunded,re_c,Refund,EUR,-20.00,12.2610\n\
                    2026-10-04 00:00:00,,EUR,-2.88,,,Withheld fees M-1,EUR,-2.88,12.2610\n\
                    2026-10-04 10:00:00,ideal,EUR,9.00,expired,tr_d,Order 4,,,\n";
        let found = inspect(source(rows), None, None).unwrap();
        assert_eq!((found.format, found.state), (Some(Format::Mollie), State::Ok));
        let booked: Vec<_> = found.sums.booked.iter().collect();
        let [(currency, totals)] = booked.as_slice() else { panic!("one currency: {booked:?}") };
        assert_eq!(currency.code(), "EUR");
        assert_eq!((totals.credit_minor, totals.debit_minor), (15_000, 2_288));
        assert_eq!(found.sums.statements.first().unwrap().ties, None);
        let kinds: Vec<_> = told(rows).into_iter().map(|(_, line)| line.kind).collect();
        use LineKind::{Attempt, Fee, Payment, Refund};
        assert_eq!(kinds, [Payment, Payment, Refund, Fee, Attempt]);
    }

    #[test]
    fn what_leaves_a_side_or_a_state_open_is_refused() {
        for row in [
            "2026-10-03,refund,EUR,20.00,refunded,re_c,Refund,EUR,20.00,12.2610",
            "2026-10-03,ideal,EUR,20.00,paidout,tr_c,Order,EUR,-20.00,12.2610",
            "2026-10-03,ideal,EUR,20.00,paidout,tr_c,Order,,,",
            "2026-10-03,ideal,EUR,20.00,paidout,tr_c,Order,EUR,\"20,00\",12.2610",
            "2026-10-03,ideal,EUR,20.00,paidout,tr_c,Order,,20.00,12.2610",
            "2026-10-03,ideal,EUR,20.00,paidout,tr_c,Order,EUR,99.00,12.2610",
            "2026-10-04,,EUR,2.88,,,Withheld fees M-1,EUR,2.88,12.2610",
            "2026-10-03,ideal,EUR,2.000,paidout,tr_c,Order,EUR,2.000,12.2610",
        ] {
            let found = inspect(source(&format!("{row}\n")), None, None).unwrap();
            assert_eq!((found.state, found.sums.entries), (State::Quarantined, 0), "{row}");
        }
    }

    #[test]
    fn a_row_stands_once_and_a_settlement_is_named_once() {
        let row = "2026-10-01 10:12:00,ideal,EUR,10.00,paidout,tr_a,Order 1,EUR,10.00,12.2610\n";
        let twice = inspect(source(&format!("{row}{row}")), None, None).unwrap();
        assert_eq!(twice.state, State::Quarantined);
        let fee = "2026-10-04,,EUR,-2.88,,,Withheld fees,EUR,-2.88,12.2610\n";
        let twice = inspect(source(&format!("{fee}{fee}")), None, None).unwrap();
        assert_eq!(twice.state, State::Quarantined, "a fee");
        let dollars = row.replace("tr_a", "tr_b").replace("Order 1,EUR", "Order 1,USD");
        let mixed = inspect(source(&format!("{row}{dollars}")), None, None).unwrap();
        assert_eq!(mixed.state, State::Quarantined, "two currencies");
        let other = row.replace("tr_a", "tr_b").replace("12.2610", "12.2611");
        let lines = told(&format!("{row}{other}{}", row.replace("tr_a", "tr_c")));
        let named = lines.iter().flat_map(|(_, line)| &line.tags);
        assert_eq!(named.filter(|tag| tag.kind == TagKind::PayoutId).count(), 2);
    }
}
