//! Shopify Payments: the export of transactions. Columns: help.shopify.com, "Exporting payouts and
//! transactions".
//!
//! Amounts are those of the payout's currency and carry their sign; a fee has none. On every row
//! amount less fee is net. What was paid out is booked, everything else is on its way. No row has
//! an id of its own: it goes by its order.

use crate::model::money::Currency;
use crate::model::settlement::{EntryStatus, Finality, LineKind, Problem, StatementEnd, TagKind};
use crate::settlement::Parse;
use crate::settlement::amount::shown;
use crate::settlement::kinds;
use crate::settlement::last_row::Last;
use crate::settlement::named::Named;
use crate::settlement::numeral::{Numerals, Order};
use crate::settlement::once::Once;
use crate::settlement::proven::Proven;
use crate::settlement::sheet::{self, Layout, Out, Report, Row, currency, money, some};
use crate::settlement::text::Source;

const COLUMNS: &[&str] =
    &["transaction date", "type", "order", "payout date", "amount", "fee", "net", "currency"];

/// One of these tells whether it was paid out.
const STATES: [&str; 2] = ["payout status", "payout id"];

fn is_shopify(names: &[String]) -> bool {
    sheet::has(names, COLUMNS) && STATES.iter().any(|name| sheet::has(names, &[*name]))
}

/// The export, by its columns.
pub fn recognise(head: &str) -> Option<String> {
    sheet::find(head, is_shopify).map(|_| String::new())
}

/// Begins to read.
pub fn open(source: Source) -> Box<dyn Parse> {
    sheet::read_below(source, is_shopify, Shopify::new)
}

struct Shopify {
    date: usize,
    available: Option<usize>,
    kind: usize,
    order: usize,
    checkout: Option<usize>,
    status: Option<usize>,
    payout: Option<usize>,
    amounts: [usize; 3],
    currency: usize,
    named: Named,
    once: Once,
    proven: Proven,
    layout: Layout,
}

const NAMES: [&str; 3] = ["Amount", "Fee", "Net"];

impl Shopify {
    fn new(layout: Layout) -> Result<Self, Problem> {
        Ok(Self {
            date: layout.need("transaction date")?,
            available: layout.one(&["available on"])?,
            kind: layout.need("type")?,
            order: layout.need("order")?,
            checkout: layout.one(&["checkout"])?,
            status: layout.one(&["payout status"])?,
            payout: layout.one(&["payout id"])?,
            amounts: [layout.need("amount")?, layout.need("fee")?, layout.need("net")?],
            currency: layout.need("currency")?,
            named: Named::default(),
            once: Once::default(),
            proven: Proven::default(),
            layout,
        })
    }

    fn amounts(&self, row: &Row<'_>, currency: Currency) -> Result<[i64; 3], Problem> {
        let mut minor = [0; 3];
        for ((slot, at), name) in minor.iter_mut().zip(self.amounts).zip(NAMES) {
            let text = row.get(at);
            let read = Numerals::PLAIN.read_sure(text, currency);
            *slot = read.map_err(|refused| refused.at(row.line, name, text, currency))?;
        }
        Ok(minor)
    }

    fn check(&mut self, row: &Row<'_>, minor: [i64; 3], currency: Currency, out: &mut Out) {
        let [amount, fee, net] = minor;
        let expected = i128::from(amount).saturating_sub(i128::from(fee));
        let holds = expected == i128::from(net);
        self.proven.row(holds);
        if !holds {
            let expected = format!("amount less fee, {}", shown(expected, Some(currency)));
            let found = shown(net.into(), Some(currency));
            out.push(Problem::error(row.line, "Net", expected, found));
        }
    }

    /// What a row is. The equation holds with all signs turned as well: its kind must agree.
    fn kind(&self, row: &Row<'_>, amount: i64) -> Result<LineKind, Problem> {
        let word = row.get(self.kind);
        let Some(kind) = kinds::shopify(word) else {
            let expected = "one of Shopify's types of transactions";
            return Err(Problem::error(row.line, "Type", expected, word));
        };
        let Some(expected) = kinds::other_sign(kind, amount) else { return Ok(kind) };
        let [at, ..] = self.amounts;
        Err(Problem::error(row.line, "Amount", expected, row.get(at)))
    }

    fn status(&self, row: &Row<'_>) -> Result<EntryStatus, Problem> {
        let Some(at) = self.status else {
            let is_paid_out = !row.maybe(self.payout).is_empty();
            return Ok(if is_paid_out { EntryStatus::Booked } else { EntryStatus::Pending });
        };
        let word = row.get(at);
        match word.to_ascii_lowercase().replace(' ', "_").as_str() {
            "paid" => Ok(EntryStatus::Booked),
            "pending" | "scheduled" | "in_transit" | "failed" | "canceled" | "cancelled" => {
                Ok(EntryStatus::Pending)
            }
            _other => {
                let expected = "paid, pending, scheduled, in_transit, failed or canceled";
                Err(Problem::error(row.line, "Payout Status", expected, word))
            }
        }
    }
}

impl Report for Shopify {
    fn row(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        self.proven.begin();
        row.fits(&self.layout)?;
        if !out.is_open() {
            out.begin(row.line, Finality::Final, |_statement| {});
        }
        let currency = currency(row, "Currency", row.get(self.currency))?;
        let minor @ [amount, fee, net] = self.amounts(row, currency)?;
        let (kind, status) = (self.kind(row, amount)?, self.status(row)?);
        self.check(row, minor, currency, out);
        let date = row.get(self.date);
        out.extend(self.once.note(row.line, "row", date, &[&row.raw()]));
        let (mut entry, mut line) = out.entry(row, net, currency);
        line.kind = kind;
        line.gross = money(amount, currency);
        line.fee = money(fee, currency);
        line.net = money(net, currency);
        line.tag(TagKind::OrderId, row.get(self.order));
        line.tag(TagKind::Custom, row.maybe(self.checkout));
        let payout = row.maybe(self.payout);
        if self.named.is_first(payout) {
            line.tag(TagKind::PayoutId, payout);
        }
        line.batch_id = some(payout);
        entry.type_code = some(row.get(self.kind));
        entry.status = status;
        entry.reversal = kind == LineKind::Chargeback;
        entry.booked_on = out.day(row.line, "Transaction Date", date, Order::Unknown);
        let available = row.maybe(self.available);
        entry.value_on = out.day(row.line, "Available On", available, Order::Unknown);
        out.tell(entry, line);
        Ok(())
    }

    fn last(&self, _row: &Row<'_>, at: usize) -> Option<(Last, u32)> {
        // Amount less fee proves the net, and a currency that was cut is none.
        let is = |column: Option<usize>| column == Some(at);
        let last = if at == self.kind || is(self.status) {
            Last::Unsure
        } else if at == self.date || is(self.available) {
            Last::Day
        } else {
            let is_reference = at == self.order || is(self.checkout) || is(self.payout);
            Some(Last::Other).filter(|_| is_reference)?
        };
        Some((last, 0))
    }

    fn end(&mut self, line: u64, out: &mut Out) {
        let tie = self.proven.tie();
        out.end(StatementEnd { line, tie, ..StatementEnd::default() });
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::settlement::Format;
    use crate::settlement::ledger::{Inspection, State, inspect};

    const HEADER: &str = "Transaction Date,Type,Order,Payout Status,Payout Date,Payout ID,\
                          Available On,Amount,Fee,Net,Currency";

    fn look(header: &str, rows: &str) -> Inspection {
        let text = format!("{header}\n{rows}");
        inspect(Box::new(Cursor::new(text.into_bytes())), None, None).unwrap()
    }

    /// What was booked, and what is on its way.
    fn sums(found: &Inspection) -> [(i128, i128); 2] {
        let of = |(_, totals): (_, &crate::settlement::ledger::Totals)| {
            (totals.credit_minor, totals.debit_minor)
        };
        let booked = found.sums.booked.iter().next().map(of).unwrap_or_default();
        let all = found.sums.totals.iter().next().map(of).unwrap_or_default();
        [booked, (all.0 - booked.0, all.1 - booked.1)]
    }

    #[test]
    fn what_was_paid_out_is_booked_and_ties_by_its_rows() {
        let rows = "2026-09-03,charge,#1,paid,2026-09-05,9,2026-09-05,50.00,1.75,48.25,USD\n\
                    2026-09-04,refund,#1,paid,2026-09-05,9,2026-09-05,-10.00,0.00,-10.00,USD\n\
                    2026-09-05,charge,#2,pending,2026-09-08,,,20.00,1.00,19.00,USD\n";
        let found = look(HEADER, rows);
        assert_eq!((found.format, found.state), (Some(Format::Shopify), State::Ok));
        assert_eq!(sums(&found), [(4_825, 1_000), (1_900, 0)]);
        assert_eq!(found.sums.statements.first().unwrap().ties, Some(true));
        assert_eq!(found.sums.references.get(&TagKind::PayoutId), Some(&1));
    }

    #[test]
    fn without_a_status_a_payouts_id_says_that_it_was_paid_out() {
        let header = "Transaction Date,Type,Order,Payout Date,Payout ID,Amount,Fee,Net,Currency";
        let rows = "2026-04-24 08:27:25 -0500,charge,#1,2026-04-29,1082,65.45,2.77,62.68,USD\n\
                    2026-04-25 08:27:25 -0500,charge,#2,2026-04-30,,10.00,1.00,9.00,USD\n";
        assert_eq!(sums(&look(header, rows)), [(6_268, 0), (900, 0)]);
        let without = header.replace(",Payout ID", "");
        assert_eq!(look(&without, "").state, State::UnknownFormat);
    }

    #[test]
    fn what_leaves_a_side_or_a_state_open_is_refused() {
        let at = "2026-09-03 10:15:00 -0400";
        for (row, ties) in [
            (format!("{at},charge,#1,paid,,9,,50.00,1.75,48.52,USD"), Some(false)),
            (format!("{at},refund,#1,paid,,9,,10.00,0.00,10.00,USD"), None),
            (format!("{at},charge,#1,paid,,9,,-10.00,0.00,-10.00,USD"), None),
            (format!("{at},charge,#1,paid,,9,,2.000,0.00,2.000,USD"), None),
            (format!("{at},charge,#1,held,,9,,10.00,0.00,10.00,USD"), None),
            (format!("{at},authorization,#1,paid,,9,,10.00,0.00,10.00,USD"), None),
            (format!("{at},,#1,paid,,9,,10.00,0.00,10.00,USD"), None),
            (format!("{at},charge,#1,paid,,9,,10.00,0.00,10.00,"), None),
        ] {
            let found = look(HEADER, &format!("{row}\n"));
            assert_eq!(found.state, State::Quarantined, "{row}");
            assert_eq!(found.sums.statements.first().unwrap().ties, ties, "{row}");
        }
        let row = format!("{at},charge,#1,paid,,9,,10.00,0.00,10.00,USD\n");
        assert_eq!(look(HEADER, &format!("{row}{row}")).state, State::Quarantined);
    }
}
