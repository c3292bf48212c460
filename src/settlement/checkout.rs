//! Checkout.com's settlement breakdown, a row for each action, and its payouts, a row for each
//! payout. Columns: checkout.com docs, "Reports".
//!
//! Amounts carry their sign and deductions are negative: gross + deduction = net in the holding
//! currency. The `Merchant Payout` row of a breakdown is the fee of paying out, so the nets of a
//! payout's rows are what it pays.

use crate::model::settlement::{Finality, LineKind, Problem, StatementEnd, TagKind};
use crate::settlement::Parse;
use crate::settlement::amount::shown;
use crate::settlement::kinds;
use crate::settlement::numeral::{Numerals, Order, day};
use crate::settlement::sheet::{self, Layout, Out, Report, Row, currency, money, some};
use crate::settlement::text::Source;

const BREAKDOWN: &[&str] =
    &["type", "payment id", "reference", "holding currency", "net in holding currency"];

const PAYOUTS: &[&str] = &["payout id", "payout date", "payout amount", "holding currency"];

/// The settlement breakdown.
pub fn recognise_breakdown(head: &str) -> Option<String> {
    sheet::find(head, |names| sheet::has(names, BREAKDOWN)).map(|_| String::new())
}

/// The list of payouts.
pub fn recognise_payouts(head: &str) -> Option<String> {
    sheet::find(head, |names| sheet::has(names, PAYOUTS)).map(|_| String::new())
}

/// Begins to read a breakdown.
pub fn open_breakdown(source: Source) -> Box<dyn Parse> {
    sheet::read_below(source, |names| sheet::has(names, BREAKDOWN), Breakdown::new)
}

/// Begins to read payouts.
pub fn open_payouts(source: Source) -> Box<dyn Parse> {
    sheet::read_below(source, |names| sheet::has(names, PAYOUTS), Payouts::new)
}

struct Breakdown {
    entity: Option<usize>,
    kind: usize,
    ids: [usize; 2],
    payout: Option<usize>,
    currency: usize,
    gross: Option<usize>,
    deduction: Option<usize>,
    net: usize,
    booked: Option<usize>,
    layout: Layout,
}

impl Breakdown {
    fn new(layout: Layout) -> Result<Self, Problem> {
        Ok(Self {
            entity: layout.column(&["client entity id", "entity id"]),
            kind: layout.need("type")?,
            ids: [layout.need("payment id")?, layout.need("reference")?],
            payout: layout.column(&["payout id"]),
            currency: layout.need("holding currency")?,
            gross: layout.column(&["gross in holding currency"]),
            deduction: layout.column(&["deduction in holding currency"]),
            net: layout.need("net in holding currency")?,
            booked: layout.column(&["processed on"]),
            layout,
        })
    }
}

impl Report for Breakdown {
    fn row(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        row.fits(&self.layout)?;
        if !out.is_open() {
            out.begin(row.line, Finality::Final, |statement| {
                statement.account = some(row.maybe(self.entity));
                statement.id = some(row.maybe(self.payout));
            });
        }
        let currency = currency(row, "Holding Currency", row.get(self.currency))?;
        let read = |name: &str, text: &str| {
            let read = Numerals::PLAIN.read(text, currency);
            read.map_err(|refused| refused.at(row.line, name, text, currency))
        };
        let maybe = |name: &str, at: Option<usize>| match row.maybe(at) {
            "" => Ok(None),
            text => read(name, text).map(Some),
        };
        let net = read("Net In Holding Currency", row.get(self.net))?;
        let gross = maybe("Gross In Holding Currency", self.gross)?;
        let deduction = maybe("Deduction In Holding Currency", self.deduction)?;
        if let (Some(gross), Some(deduction)) = (gross, deduction) {
            let sum = i128::from(gross).saturating_add(i128::from(deduction));
            if sum != i128::from(net) {
                let expected = format!("gross + deduction, {}", shown(sum, Some(currency)));
                let found = shown(net.into(), Some(currency));
                let name = "Net In Holding Currency";
                out.push(Problem::error(row.line, name, expected, found));
            }
        }
        let (mut entry, mut line) = out.entry(row, net, currency);
        let [payment, reference] = self.ids.map(|at| row.get(at));
        line.gross = gross.and_then(|minor| money(minor, currency));
        line.fee = deduction.and_then(|minor| money(minor.saturating_neg(), currency));
        line.net = money(net, currency);
        line.tag(TagKind::MerchantReference, reference);
        line.tag(TagKind::PaymentId, payment);
        line.psp_reference = some(payment);
        line.batch_id = some(row.maybe(self.payout));
        entry.type_code = some(row.get(self.kind));
        line.kind = kinds::checkout(row.get(self.kind));
        entry.reversal = row.get(self.kind).to_ascii_lowercase().contains("chargeback");
        entry.booked_on = day(row.maybe(self.booked), Order::Unknown);
        out.tell(entry, line);
        Ok(())
    }

    fn end(&mut self, line: u64, out: &mut Out) {
        out.end(StatementEnd { line, ..StatementEnd::default() });
    }
}

struct Payouts {
    entity: Option<usize>,
    id: usize,
    date: usize,
    currency: usize,
    amount: usize,
    parts: Vec<usize>,
    layout: Layout,
}

impl Payouts {
    fn new(layout: Layout) -> Result<Self, Problem> {
        let amount = layout.need("payout amount")?;
        let parts = amount.saturating_add(1)..layout.names.len();
        Ok(Self {
            entity: layout.column(&["client entity id", "entity id"]),
            id: layout.need("payout id")?,
            date: layout.need("payout date")?,
            currency: layout.need("holding currency")?,
            parts: parts.collect(),
            amount,
            layout,
        })
    }
}

impl Report for Payouts {
    fn row(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        row.fits(&self.layout)?;
        if !out.is_open() {
            out.begin(row.line, Finality::Final, |statement| {
                statement.account = some(row.maybe(self.entity));
            });
        }
        let currency = currency(row, "Holding Currency", row.get(self.currency))?;
        let text = row.get(self.amount);
        let minor = Numerals::PLAIN.read(text, currency);
        let minor = minor.map_err(|r| r.at(row.line, "Payout Amount", text, currency))?;
        let parts = self.parts.iter().map(|at| Numerals::PLAIN.read(row.get(*at), currency));
        let parts: i128 = parts.filter_map(Result::ok).map(i128::from).sum();
        if parts != i128::from(minor) {
            // The columns after the amount differ by account and are rounded each for itself.
            let found = shown(parts, Some(currency));
            let expected = shown(minor.into(), Some(currency));
            out.push(Problem::warning(row.line, "sum of the columns", expected, found));
        }
        let (mut entry, mut line) = out.entry(row, minor, currency);
        let id = row.get(self.id);
        line.tag(TagKind::PayoutId, id);
        line.psp_reference = some(id);
        line.batch_id = some(id);
        line.net = money(minor, currency);
        entry.type_code = Some("payout".to_owned());
        line.kind = LineKind::Payout;
        entry.booked_on = day(row.get(self.date), Order::Unknown);
        out.tell(entry, line);
        Ok(())
    }

    fn end(&mut self, line: u64, out: &mut Out) {
        out.end(StatementEnd { line, ..StatementEnd::default() });
    }
}
