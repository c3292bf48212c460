//! Braintree's export of a transaction search, and of settlements, and its transaction-level fee
//! report: a row for each transaction. Columns: developer.paypal.com/braintree, "Transaction
//! search", the Control Panel's download, and "Transaction-level fee report".
//!
//! The type of the row says the way: a sale is money in, a credit money out. Amounts are unsigned,
//! but for a credit, which some exports write with a minus. Only what was settled is booked, in the
//! currency of settlement; what a payment is compared by is in the currency that the customer paid
//! in. The file declares no sum. A fee report lists what was settled, with no status of its own;
//! one without its day of settlement is not taken as booked.

use crate::model::money::Currency;
use crate::model::settlement::{
    Direction, EntryStatus, Finality, LineKind, Problem, SignedMoney, StatementEnd, TagKind,
};
use crate::settlement::Parse;
use crate::settlement::last_row::Last;
use crate::settlement::numeral::{Numerals, Order};
use crate::settlement::once::Once;
use crate::settlement::sheet::{self, Layout, Out, Report, Row, currency, money, some};
use crate::settlement::text::Source;

const NAMES: &[&str] = &[
    "transaction id",
    "transaction type",
    "transaction status",
    "amount submitted for settlement",
];

/// The transaction-level fee report, with and without interchange.
const FEES: &[&str] = &[
    "transaction id",
    "original transaction id",
    "transaction type",
    "settlement currency",
    "settlement amount",
    "settlement date",
];

/// Columns of an amount, of a currency, of a day, and of what is in no sum.
const AMOUNTS: &[&str] =
    &["settlement amount", "amount submitted for settlement", "presentment amount"];
const CURRENCIES: &[&str] = &[
    "settlement currency",
    "settlement currency iso code",
    "currency iso code",
    "presentment currency iso code",
    "presentment currency",
];

/// Columns of what the customer paid, and of its currency.
const PAID: [&str; 2] = ["amount submitted for settlement", "presentment amount"];
const PAID_IN: &[&str] =
    &["currency iso code", "presentment currency iso code", "presentment currency"];
const DAYS: &[&str] = &["disbursement date", "settlement date", "created datetime"];
const BESIDE: &[&str] = &[
    "total fee amount",
    "est total fee amount",
    "order id",
    "transaction id",
    "purchase order number",
    "refunded transaction id",
    "original transaction id",
    "settlement batch id",
];

/// What takes back a transaction, before or after it was settled.
const UNDONE: [&str; 2] = ["voided", "settlement_declined"];

/// The words for what moved nothing, or nothing that stayed.
const MOVED_NOTHING: [&str; 8] = [
    "authorization_expired",
    "authorized",
    "authorizing",
    "failed",
    "gateway_rejected",
    "processor_declined",
    "settlement_declined",
    "voided",
];

fn is_either(names: &[String]) -> bool {
    sheet::has(names, NAMES) || sheet::has(names, FEES)
}

/// By its columns.
pub fn recognise(head: &str) -> Option<String> {
    let layout = sheet::find(head, is_either)?;
    Some(if layout.has(NAMES) { String::new() } else { "transaction_level_fees".to_owned() })
}

/// Begins to read.
pub fn open(source: Source) -> Box<dyn Parse> {
    sheet::read_below(source, is_either, Braintree::new)
}

struct Braintree {
    layout: Layout,
    id: usize,
    kind: usize,
    /// Where status and submitted amount stand; none in a fee report.
    search: Option<(usize, usize)>,
    once: Once,
}

impl Braintree {
    fn new(layout: Layout) -> Result<Self, Problem> {
        for names in [NAMES, FEES, AMOUNTS, CURRENCIES, DAYS, BESIDE] {
            layout.each(names)?;
        }
        let status = layout.column(&["transaction status"]);
        Ok(Self {
            id: layout.need("transaction id")?,
            kind: layout.need("transaction type")?,
            search: status.zip(layout.column(&["amount submitted for settlement"])),
            once: Once::default(),
            layout,
        })
    }

    fn of<'a>(&self, row: &Row<'a>, names: &[&str]) -> &'a str {
        row.maybe(self.layout.column(names))
    }

    /// The settled amount in the currency of settlement; else what was submitted.
    fn amount<'a>(&self, row: &Row<'a>) -> (&'static str, &'a str, &'a str) {
        let settled = self.of(row, &["settlement amount"]);
        let Some((_, submitted)) = self.search else {
            return ("Settlement Amount", settled, self.of(row, &["settlement currency"]));
        };
        let code = self.of(row, &["settlement currency iso code"]);
        if !settled.is_empty() && !code.is_empty() {
            return ("Settlement Amount", settled, code);
        }
        if !settled.is_empty() && settled != row.get(submitted) {
            // In whichever currency: it is not the one that was submitted.
            return ("Settlement Amount", settled, code);
        }
        let code = self.of(row, PAID_IN);
        match row.get(submitted) {
            // Declined before it was submitted: nothing moved.
            "" if self.status(row) == EntryStatus::Info => {
                ("Amount Submitted For Settlement", "0", code)
            }
            text => ("Amount Submitted For Settlement", text, code),
        }
    }

    /// What the customer paid, where that is in another currency than the amount `signed`. What is
    /// not told is not what it is in the currency of settlement.
    fn gross(
        &self,
        row: &Row<'_>,
        (signed, settled): (i64, Currency),
    ) -> Result<Option<SignedMoney>, Problem> {
        let code = self.of(row, PAID_IN);
        let own = if code.is_empty() { settled } else { currency(row, "Currency ISO Code", code)? };
        if own == settled {
            return Ok(money(signed, settled));
        }
        let (field, text) = match self.search {
            Some((_, submitted)) => ("Amount Submitted For Settlement", row.get(submitted)),
            None => ("Presentment Amount", self.of(row, &["presentment amount"])),
        };
        if text.is_empty() {
            return Ok(None);
        }
        Ok(money(self.signed(row, (field, text), own)?, own))
    }

    /// An amount with the sign of the row's type.
    fn signed(
        &self,
        row: &Row<'_>,
        (field, text): (&str, &str),
        currency: Currency,
    ) -> Result<i64, Problem> {
        let kind = row.get(self.kind);
        let signed = match kind.to_ascii_lowercase().as_str() {
            "sale" => Numerals::PLAIN.read_unsigned(text, currency),
            "credit" => Numerals::PLAIN
                .read_unsigned(text.strip_prefix('-').unwrap_or(text), currency)
                .map(i64::saturating_neg),
            _other => {
                let field = "Transaction Type";
                return Err(Problem::error(row.line, field, "sale or credit", kind));
            }
        };
        signed.map_err(|refused| refused.at(row.line, field, text, currency))
    }

    fn status(&self, row: &Row<'_>) -> EntryStatus {
        match self.search {
            Some((at, _)) => status(row.get(at)).unwrap_or(EntryStatus::Info),
            None if self.of(row, &["settlement date"]).is_empty() => EntryStatus::Pending,
            None => EntryStatus::Booked,
        }
    }

    /// What a fee report says was taken, estimated or not; the sums do not hold it.
    fn fee(&self, row: &Row<'_>, currency: Currency, out: &mut Out) -> Option<SignedMoney> {
        let text = self.of(row, &["total fee amount", "est total fee amount"]);
        if self.search.is_some() || text.is_empty() {
            return None;
        }
        match Numerals::PLAIN.read_sure(text, currency) {
            Ok(minor) => money(minor, currency),
            Err(refused) => {
                let expected = refused.expected(currency);
                out.push(Problem::warning(row.line, "Total Fee Amount", expected, text));
                None
            }
        }
    }
}

/// What a status says; none where the word is not known.
fn status(word: &str) -> Option<EntryStatus> {
    match word.to_ascii_lowercase().replace(' ', "_").as_str() {
        "settled" => Some(EntryStatus::Booked),
        "settling" | "submitted_for_settlement" | "settlement_pending" | "settlement_confirmed" => {
            Some(EntryStatus::Pending)
        }
        word => MOVED_NOTHING.contains(&word).then_some(EntryStatus::Info),
    }
}

impl Report for Braintree {
    fn row(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        row.fits(&self.layout)?;
        if !out.is_open() {
            out.begin(row.line, Finality::Final, |_statement| {});
        }
        let kind_of = [row.get(self.kind)];
        let twice = self.once.note(row.line, "Transaction ID", row.get(self.id), &kind_of);
        twice.into_iter().for_each(|problem| out.push(problem));
        if let Some((at, _)) = self.search
            && status(row.get(at)).is_none()
        {
            let expected = "a status of a transaction that is known";
            return Err(Problem::error(row.line, "Transaction Status", expected, row.get(at)));
        }
        let (field, text, code) = self.amount(row);
        let currency = currency(row, "Currency ISO Code", code)?;
        let signed = self.signed(row, (field, text), currency)?;
        let gross = self.gross(row, (signed, currency))?;
        let fee = self.fee(row, currency, out);
        let (mut entry, mut line) = out.entry(row, signed, currency);
        line.fee = fee;
        line.gross = gross;
        line.tag(TagKind::OrderId, self.of(row, &["order id"]));
        let own = if signed < 0 { TagKind::RefundId } else { TagKind::PaymentId };
        line.tag(own, row.get(self.id));
        line.tag(TagKind::MerchantReference, self.of(row, &["purchase order number"]));
        line.psp_reference = some(row.get(self.id));
        let original = ["refunded transaction id", "original transaction id"];
        line.original_reference = some(self.of(row, &original));
        line.batch_id = some(self.of(row, &["settlement batch id"]));
        entry.type_code = some(row.get(self.kind));
        entry.status = self.status(row);
        // What was settled before and is void now is not what the other file says.
        let word = self.search.map_or("", |(at, _)| row.get(at)).to_ascii_lowercase();
        let word = word.replace(' ', "_");
        line.return_reason = some(&word).filter(|word| UNDONE.contains(&word.as_str()));
        line.kind = match (entry.status, entry.direction) {
            (EntryStatus::Info, _) => LineKind::Attempt,
            (_, Direction::Credit) => LineKind::Payment,
            (_, Direction::Debit) => LineKind::Refund,
        };
        // Month first, as Braintree writes all its dates.
        let mut days = DAYS.iter().map(|name| (*name, self.of(row, &[*name])));
        entry.booked_on = days
            .find(|(_, text)| !text.is_empty())
            .and_then(|(name, text)| out.day(row.line, name, text, Order::MonthFirst));
        out.tell(entry, line);
        Ok(())
    }

    fn last(&self, row: &Row<'_>, at: usize) -> Option<(Last, u32)> {
        let name = self.layout.names.get(at).map(String::as_str)?;
        let is = |names: &[&str]| names.contains(&name);
        let text = row.get(at);
        let of = if is(&PAID) { self.of(row, PAID_IN) } else { self.amount(row).2 };
        let places = Currency::parse_any(of).map_or(u32::MAX, |c| c.exponent());
        let last = if is(AMOUNTS) && !text.is_empty() {
            Last::Money(Some(b'.'))
        } else if is(AMOUNTS) || self.search.is_some_and(|(status, _)| status == at) {
            Last::Unsure
        } else if is(CURRENCIES) {
            // One that is not there leaves the amount to another column.
            Some(Last::Unsure).filter(|_| Currency::parse_any(text).is_err())?
        } else if is(DAYS) {
            Last::Day
        } else {
            Some(Last::Other).filter(|_| is(BESIDE))?
        };
        Some((last, places))
    }

    fn end(&mut self, line: u64, out: &mut Out) {
        out.end(StatementEnd { line, ..StatementEnd::default() });
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::settlement::ledger::{State, inspect};

    /// What the customer paid is compared; what was settled is what is booked.
    #[test]
    fn money_of_another_currency_is_compared_in_the_one_that_was_paid_in() {
        let search = "Transaction ID,Transaction Type,Transaction Status,Currency ISO Code,\
                      Amount Submitted For Settlement,Settlement Amount,\
                      Settlement Currency ISO Code";
        let fees = "Transaction ID,Original Transaction ID,Settlement Date,Transaction Type,\
                    Presentment Currency,Presentment Amount,Settlement Currency,Settlement Amount";
        for (header, row, want) in [
            (search, "b1,sale,settled,EUR,100.00,108.00,USD", "of 10800 USD: 10000 EUR"),
            (search, "b1,credit,settled,EUR,100.00,108.00,USD", "of 10800 USD: -10000 EUR"),
            (search, "b1,sale,settled,EUR,100.00,100.00,EUR", "of 10000 EUR: 10000 EUR"),
            (search, "b1,sale,settled,EUR,,108.00,USD", "of 10800 USD: -"),
            (search, "b1,sale,settled,EUR,-1.00,108.00,USD", ""),
            (search, "b1,sale,settled,,108.00,108.00,USD", "of 10800 USD: 10800 USD"),
            (fees, "b1,,2026-06-02,sale,JPY,1200,EUR,10.00", "of 1000 EUR: 1200 JPY"),
            (fees, "b1,,2026-06-02,credit,JPY,-1200,EUR,-10.00", "of 1000 EUR: -1200 JPY"),
            (fees, "b1,,2026-06-02,sale,EUR,10.00,EUR,9.00", "of 900 EUR: 900 EUR"),
            (fees, "b1,,2026-06-02,sale,JPY,,EUR,9.00", "of 900 EUR: -"),
        ] {
            let text = format!("{header}\n{row}\n");
            let source = Source::open(Box::new(Cursor::new(text.into_bytes())), None).unwrap();
            assert_eq!(sheet::compared_by(open(source)), want, "{row}");
        }
    }

    #[test]
    fn what_was_settled_has_an_amount_and_its_currency() {
        let header = "Transaction ID,Transaction Type,Transaction Status,Currency ISO Code,\
                      Amount Submitted For Settlement,Settlement Amount,\
                      Settlement Currency ISO Code";
        for (row, want) in [
            ("settled,USD,10.00,9.00,EUR", State::Ok),
            ("settled,USD,10.00,10.00,", State::Ok),
            ("settled,USD,10.00,,", State::Ok),
            ("processor_declined,USD,,,", State::Ok),
            ("gateway rejected,USD,10.00,,", State::Ok),
            ("weird,USD,10.00,,", State::Quarantined),
            (",USD,10.00,,", State::Quarantined),
            ("settled,USD,10.00,9.00,", State::Quarantined),
            ("settled,USD,,,", State::Quarantined),
            ("submitted_for_settlement,USD,,,", State::Quarantined),
        ] {
            let text = format!("{header}\nbt1,sale,{row}\n");
            let found = inspect(Box::new(Cursor::new(text.into_bytes())), None, None).unwrap();
            assert_eq!(found.state, want, "{row}");
        }
    }

    #[test]
    fn an_amount_of_thousands_or_with_a_sign_of_its_own_is_refused() {
        let header = "Transaction ID,Transaction Type,Transaction Status,Currency ISO Code,\
                      Amount Submitted For Settlement";
        for (kind, code, amount, want) in [
            ("sale", "EUR", "1.00", State::Ok),
            ("sale", "KWD", "1.000", State::Ok),
            ("sale", "JPY", "1000", State::Ok),
            ("credit", "EUR", "-1.00", State::Ok),
            ("sale", "EUR", "1.000", State::Quarantined),
            ("sale", "JPY", "1.000", State::Quarantined),
            ("credit", "EUR", "-1.000", State::Quarantined),
            ("sale", "EUR", "-1.00", State::Quarantined),
            ("credit", "EUR", "--1.00", State::Quarantined),
        ] {
            let text = format!("{header}\nbt1,{kind},settled,{code},{amount}\n");
            let found = inspect(Box::new(Cursor::new(text.into_bytes())), None, None).unwrap();
            assert_eq!(found.state, want, "{kind} {code} {amount}");
        }
    }
}
