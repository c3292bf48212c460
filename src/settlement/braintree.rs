//! Braintree's export of a transaction search, and of settlements: a row for each transaction.
//! Columns: developer.paypal.com/braintree, "Transaction search" and the Control Panel's download.
//!
//! The type of the row says the way: a sale is money in, a credit money out. Amounts are unsigned,
//! but for a credit, which some exports write with a minus. Only what was settled is booked. The
//! file declares no sum.

use crate::model::settlement::{
    Direction, EntryStatus, Finality, LineKind, Problem, StatementEnd, TagKind,
};
use crate::settlement::Parse;
use crate::settlement::amount::unsigned;
use crate::settlement::numeral::{Order, day};
use crate::settlement::sheet::{self, Layout, Out, Report, Row, currency, money, some};
use crate::settlement::text::Source;

const NAMES: &[&str] = &[
    "transaction id",
    "transaction type",
    "transaction status",
    "amount submitted for settlement",
];

/// By its columns.
pub fn recognise(head: &str) -> Option<String> {
    sheet::find(head, |names| sheet::has(names, NAMES)).map(|_| String::new())
}

/// Begins to read.
pub fn open(source: Source) -> Box<dyn Parse> {
    sheet::read_below(source, |names| sheet::has(names, NAMES), Braintree::new)
}

struct Braintree {
    layout: Layout,
    id: usize,
    kind: usize,
    status: usize,
    submitted: usize,
}

impl Braintree {
    fn new(layout: Layout) -> Result<Self, Problem> {
        Ok(Self {
            id: layout.need("transaction id")?,
            kind: layout.need("transaction type")?,
            status: layout.need("transaction status")?,
            submitted: layout.need("amount submitted for settlement")?,
            layout,
        })
    }

    fn of<'a>(&self, row: &Row<'a>, names: &[&str]) -> &'a str {
        row.maybe(self.layout.column(names))
    }

    /// The settled amount in the currency of settlement; else what was submitted.
    fn amount<'a>(&self, row: &Row<'a>) -> (&'static str, &'a str, &'a str) {
        let settled = self.of(row, &["settlement amount"]);
        let code = self.of(row, &["settlement currency iso code"]);
        if !settled.is_empty() && !code.is_empty() {
            return ("Settlement Amount", settled, code);
        }
        let code = self.of(row, &["currency iso code", "presentment currency iso code"]);
        match row.get(self.submitted) {
            // Declined before it was submitted: nothing moved.
            "" => ("Amount Submitted For Settlement", "0", code),
            text => ("Amount Submitted For Settlement", text, code),
        }
    }
}

fn status(word: &str) -> EntryStatus {
    match word.to_ascii_lowercase().replace(' ', "_").as_str() {
        "settled" => EntryStatus::Booked,
        "settling" | "submitted_for_settlement" | "settlement_pending" | "settlement_confirmed" => {
            EntryStatus::Pending
        }
        _moved_nothing => EntryStatus::Info,
    }
}

impl Report for Braintree {
    fn row(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        row.fits(&self.layout)?;
        if !out.is_open() {
            out.begin(row.line, Finality::Final, |_statement| {});
        }
        let (field, text, code) = self.amount(row);
        let currency = currency(row, "Currency ISO Code", code)?;
        let kind = row.get(self.kind);
        let signed = match kind.to_ascii_lowercase().as_str() {
            "sale" => unsigned(text, b'.', currency),
            "credit" => unsigned(text.strip_prefix('-').unwrap_or(text), b'.', currency)
                .map(i64::saturating_neg),
            _other => {
                let field = "Transaction Type";
                return Err(Problem::error(row.line, field, "sale or credit", kind));
            }
        };
        let signed = signed.map_err(|refused| refused.at(row.line, field, text, currency))?;
        let (mut entry, mut line) = out.entry(row, signed, currency);
        line.gross = money(signed, currency);
        line.tag(TagKind::OrderId, self.of(row, &["order id"]));
        line.tag(TagKind::PaymentId, row.get(self.id));
        line.tag(TagKind::MerchantReference, self.of(row, &["purchase order number"]));
        line.psp_reference = some(row.get(self.id));
        line.original_reference = some(self.of(row, &["refunded transaction id"]));
        line.batch_id = some(self.of(row, &["settlement batch id"]));
        entry.type_code = some(kind);
        entry.status = status(row.get(self.status));
        line.kind = match (entry.status, entry.direction) {
            (EntryStatus::Info, _) => LineKind::Attempt,
            (_, Direction::Credit) => LineKind::Payment,
            (_, Direction::Debit) => LineKind::Refund,
        };
        let dates = ["disbursement date", "settlement date", "created datetime"];
        // Month first, as Braintree writes all its dates.
        entry.booked_on = dates
            .iter()
            .map(|name| self.of(row, &[*name]))
            .find(|text| !text.is_empty())
            .and_then(|text| day(text, Order::MonthFirst));
        out.tell(entry, line);
        Ok(())
    }

    fn end(&mut self, line: u64, out: &mut Out) {
        out.end(StatementEnd { line, ..StatementEnd::default() });
    }
}
