//! Trustly's funding file: H, an I for each transaction, an F for each funding, L. It has no header
//! row; fields stand by position. Layout: Trustly, "Merchant reports: funding file" 1.0.0, and the
//! reader of it in the open-source parsers of a large merchant.
//!
//! Amounts carry their sign, fees too. The control: the amounts and fees of all I in a currency are
//! what its F say was funded; L repeats the sums and counts.

use std::collections::BTreeMap;

use crate::model::money::Currency;
use crate::model::settlement::{
    Control, EntryStatus, Finality, Found, Problem, Severity, StatementEnd, TagKind, Tie,
};
use crate::settlement::Parse;
use crate::settlement::kinds;
use crate::settlement::numeral::{Numerals, Order};
use crate::settlement::sheet::{self, Out, Report, Row, currency, money, some};
use crate::settlement::text::Source;

/// Fields of an I: its fee is the last.
const FIELDS: usize = 23;

/// H tells the version, and that it is one of how many files.
pub fn recognise(head: &str) -> Option<String> {
    let rows = sheet::rows_of(head, b',', 2);
    let header = rows.first().filter(|row| row.first().is_some_and(|kind| kind == "H"))?;
    let next = rows.get(1)?.first()?;
    let parts = header.get(6)?;
    let is_part = parts.len() == 10 && parts.get(4..6) == Some("of");
    (is_part && matches!(next.as_str(), "I" | "F" | "L")).then(|| header.get(2).cloned())?
}

/// Begins to read.
pub fn open(source: Source) -> Box<dyn Parse> {
    sheet::read(source, b',', Trustly::default())
}

#[derive(Default)]
struct Sum {
    amounts: i128,
    fees: i128,
    funded: i128,
}

/// The words of what was done.
const DONE: [&str; 4] = ["Processed", "Completed", "Settled", "Reversed"];

#[derive(Default)]
struct Trustly {
    sums: BTreeMap<Currency, Sum>,
    items: i128,
    fundings: i128,
    ended: bool,
    many: bool,
}

impl Trustly {
    fn header(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        let from = out.day(row.line, "H first day", row.get(3), Order::Unknown);
        let to = out.day(row.line, "H last day", row.get(4), Order::Unknown);
        out.begin(row.line, Finality::Final, |statement| {
            statement.id = some(row.get(1)).map(|name| format!("{name} {}", row.get(5)));
            statement.account = some(row.get(5));
            (statement.from, statement.to) = (from, to);
        });
        if row.get(6) != "0001of0001" {
            let expected = "0001of0001: the sums are over all parts, and each is read alone";
            return Err(Problem::error(row.line, "H part", expected, row.get(6)));
        }
        Ok(())
    }

    fn item(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        if row.width() < FIELDS {
            let (expected, found) = (format!("{FIELDS} fields"), row.width().to_string());
            return Err(Problem::error(row.line, "I", expected, found));
        }
        let currency = currency(row, "I currency", row.get(14))?;
        let minor = amount(row, "I amount", 15, currency)?;
        let fee = if row.get(22).is_empty() { 0 } else { amount(row, "I fee", 22, currency)? };
        let kind = kinds::trustly(row.get(10), row.get(19) == "Return");
        // The sums hold with all signs turned as well.
        if let Some(expected) = kinds::other_sign(kind, minor) {
            return Err(Problem::error(row.line, "I amount", expected, row.get(15)));
        }
        if !DONE.contains(&row.get(11)) {
            let expected =
                format!("one of {}: of another nobody knows what moved", DONE.join(", "));
            return Err(Problem::error(row.line, "I status", expected, row.get(11)));
        }
        let sum = self.sums.entry(currency).or_default();
        sum.amounts = sum.amounts.saturating_add(i128::from(minor));
        sum.fees = sum.fees.saturating_add(i128::from(fee));
        self.items = self.items.saturating_add(1);
        let (mut entry, mut line) = out.entry(row, minor, currency);
        line.gross = money(minor, currency);
        line.fee = money(fee.saturating_neg(), currency);
        line.net = minor.checked_add(fee).and_then(|net| money(net, currency));
        line.tag(TagKind::MerchantReference, row.get(20));
        line.tag(TagKind::TransactionId, row.get(1));
        line.tag(TagKind::PaymentId, row.get(3));
        line.psp_reference = some(row.get(1));
        line.original_reference = some(row.get(3));
        entry.reversal = row.get(19) == "Return";
        if entry.reversal {
            line.return_reason = some(row.get(17));
        }
        entry.type_code = some(row.get(10));
        line.kind = kind;
        entry.status = EntryStatus::Booked;
        entry.booked_on = out.day(row.line, "I day", row.get(12), Order::Unknown);
        out.tell(entry, line);
        Ok(())
    }

    fn funding(&mut self, row: &Row<'_>) -> Result<(), Problem> {
        let currency = currency(row, "F currency", row.get(4))?;
        let minor = amount(row, "F amount", 5, currency)?;
        let sum = self.sums.entry(currency).or_default();
        sum.funded = sum.funded.saturating_add(i128::from(minor));
        self.fundings = self.fundings.saturating_add(1);
        self.many = self.sums.len() > 1;
        Ok(())
    }

    fn last(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        self.ended = true;
        for (at, field, found) in
            [(1, "L count of I", self.items), (3, "L count of F", self.fundings)]
        {
            let text = row.get(at);
            let expected = text.parse::<i128>();
            let expected =
                expected.map_err(|_| Problem::error(row.line, field, "a count", text))?;
            // Files were seen whose sums hold and whose counts do not.
            out.push(control(row.line, field, expected, found, None, Severity::Warning));
        }
        // Over several currencies a sum means nothing.
        let Some((currency, sum)) = self.sums.iter().next().filter(|_| !self.many) else {
            return Ok(());
        };
        for (at, field, found) in [(2, "L sum of I", sum.amounts), (4, "L sum of F", sum.funded)] {
            let expected = i128::from(amount(row, field, at, *currency)?);
            out.push(control(row.line, field, expected, found, Some(*currency), Severity::Error));
        }
        Ok(())
    }
}

fn amount(row: &Row<'_>, field: &str, at: usize, currency: Currency) -> Result<i64, Problem> {
    let text = row.get(at);
    let minor = Numerals::PLAIN.read_sure(text, currency);
    minor.map_err(|refused| refused.at(row.line, field, text, currency))
}

fn control(
    line: u64,
    field: &str,
    expected: i128,
    found: i128,
    currency: Option<Currency>,
    severity: Severity,
) -> Control {
    Control { line, field: field.to_owned(), expected, found: Found::Is(found), currency, severity }
}

impl Report for Trustly {
    fn row(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        match row.get(0) {
            "H" => self.header(row, out),
            "I" => self.item(row, out),
            "F" => self.funding(row),
            "L" => self.last(row, out),
            other => Err(Problem::error(row.line, "row", "H, I, F or L", other)),
        }
    }

    fn end(&mut self, line: u64, out: &mut Out) {
        let net = |sum: &Sum| sum.amounts.saturating_add(sum.fees);
        let holds = self.sums.values().all(|sum| net(sum) == sum.funded);
        let tie = Tie::Declared(holds && self.ended);
        out.end(StatementEnd { line, tie, ..StatementEnd::default() });
        if !self.ended {
            out.push(Problem::error(line, "row L", "at the end", "none: the file was cut"));
        }
        for (currency, sum) in &self.sums {
            let (field, currency) = ("F amounts and fees of I", Some(*currency));
            out.push(control(line, field, sum.funded, net(sum), currency, Severity::Error));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use crate::settlement::ledger::{State, inspect};

    #[test]
    fn what_was_paid_goes_in_and_shows_its_decimals() {
        let in_status = |word: &str, amount: &str, status: &str| {
            let day = "2026-06-02T05:00:00.000Z";
            let text = format!(
                "H,ACMEFUN,1.0.0,{day},{day},1234,0001of0001\n\
                 I,8,{day},7,1234,Deferred,1,1,1,a,{word},{status},{day},{day},USD,{amount},\
                 ABC,AC118,999,,order-1,ptx-1,\n\
                 F,Acme,,ABC,USD,{amount},3,{day}\nL,1,{amount},1,{amount}\n"
            );
            inspect(Box::new(Cursor::new(text.into_bytes())), None, None).unwrap().state
        };
        let of = |word: &str, amount: &str| in_status(word, amount, "Processed");
        for (word, amount) in [("Capture", "8.60"), ("Capture", "860"), ("Refund", "-8.60")] {
            assert_eq!(of(word, amount), State::Ok, "{word} {amount}");
        }
        for (word, amount) in [("Capture", "-8.60"), ("Refund", "8.60"), ("Capture", "8.600")] {
            assert_eq!(of(word, amount), State::Quarantined, "{word} {amount}");
        }
        for status in ["Failed", "Pending", ""] {
            let found = in_status("Capture", "8.60", status);
            assert_eq!(found, State::Quarantined, "nobody knows what moved: {status}");
        }
    }
}
