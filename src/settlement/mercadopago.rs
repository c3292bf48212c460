//! Mercado Pago: the release report, which is a statement of the available balance, and the account
//! money (settlement) report, which lists what moved the account, released or not. Columns:
//! mercadopago.com developers, "Reports".
//!
//! Amounts of the release report stand in a column of credits and one of debits, between a row of
//! the balance before and one of that behind, which prove them. Those of the other carry their
//! sign; on every row amount and fee, and taxes, are the net. Whoever makes a report chooses its
//! columns: one without that of the currency is not read.

use crate::model::money::Currency;
use crate::model::settlement::{
    Balance, Direction, Finality, LineKind, Problem, StatementEnd, TagKind,
};
use crate::settlement::Parse;
use crate::settlement::amount::shown;
use crate::settlement::kinds;
use crate::settlement::last_row::Last;
use crate::settlement::numeral::{Order, Shown, day};
use crate::settlement::once::{Once, Unknown};
use crate::settlement::proven::Proven;
use crate::settlement::sheet::{self, Layout, Out, Report, Row, currency, money, some};
use crate::settlement::text::Source;

const RELEASE: &[&str] = &[
    "date",
    "source id",
    "record type",
    "description",
    "net credit amount",
    "net debit amount",
    "gross amount",
];

const ACCOUNT: &[&str] = &[
    "source id",
    "transaction type",
    "transaction amount",
    "fee amount",
    "settlement net amount",
    "settlement date",
];

/// The release report, by its columns.
pub fn recognise_release(head: &str) -> Option<String> {
    sheet::find(head, |names| sheet::has(names, RELEASE)).map(|_| String::new())
}

/// The account money report, by its columns.
pub fn recognise_account(head: &str) -> Option<String> {
    sheet::find(head, |names| sheet::has(names, ACCOUNT)).map(|_| String::new())
}

/// Begins to read a release report.
pub fn open_release(source: Source) -> Box<dyn Parse> {
    sheet::read_below(source, |names| sheet::has(names, RELEASE), Release::new)
}

/// Begins to read an account money report.
pub fn open_account(source: Source) -> Box<dyn Parse> {
    sheet::read_below(source, |names| sheet::has(names, ACCOUNT), Account::new)
}

/// What both reports have.
struct Common {
    id: usize,
    reference: Option<usize>,
    currency: usize,
    /// The column whose word says what a row is.
    kind: usize,
    date: usize,
    shown: Shown,
    once: Once,
    layout: Layout,
}

impl Common {
    fn new(layout: Layout, [currency, kind, date]: [&str; 3]) -> Result<Self, Problem> {
        Ok(Self {
            id: layout.need("source id")?,
            reference: layout.one(&["external reference"])?,
            currency: layout.need(currency)?,
            kind: layout.need(kind)?,
            date: layout.need(date)?,
            shown: Shown::default(),
            once: Once::default(),
            layout,
        })
    }

    fn name(&self, at: usize) -> &str {
        self.layout.shown.get(at).map_or("", String::as_str)
    }

    fn read(&mut self, row: &Row<'_>, at: usize, of: Currency) -> Result<i64, Problem> {
        let text = row.get(at);
        let read = self.shown.read(text, of);
        read.map_err(|refused| refused.at(row.line, self.name(at), text, of))
    }

    /// As [`Self::read`], of a column that may be empty or lack.
    fn maybe(&mut self, row: &Row<'_>, at: Option<usize>, of: Currency) -> Result<i64, Problem> {
        let filled = at.filter(|at| !row.get(*at).is_empty());
        filled.map_or(Ok(0), |at| self.read(row, at, of))
    }

    fn currency(&self, row: &Row<'_>) -> Result<Currency, Problem> {
        currency(row, self.name(self.currency), row.get(self.currency))
    }

    fn tell(&mut self, row: &Row<'_>, moved: &Moved, kind: LineKind, out: &mut Out) {
        let id = row.get(self.id);
        let name = self.name(self.id).to_owned();
        out.extend(self.once.note(row.line, &name, id, &[&row.raw()]));
        let (mut entry, mut line) = out.entry(row, moved.net, moved.currency);
        line.kind = kind;
        line.net = money(moved.net, moved.currency);
        if let Some(gross) = moved.gross {
            line.gross = money(gross, moved.currency);
            line.fee = money(gross.saturating_sub(moved.net), moved.currency);
        }
        let tag = match kind {
            LineKind::Payment
            | LineKind::Refund
            | LineKind::Chargeback
            | LineKind::ChargebackReversed => TagKind::PaymentId,
            _other => TagKind::TransactionId,
        };
        line.tag(tag, id);
        line.tag(TagKind::MerchantReference, row.maybe(self.reference));
        line.psp_reference = some(id);
        // What was given back goes by the id of its payment.
        let is_back = matches!(kind, LineKind::Refund | LineKind::Chargeback);
        if is_back || kind == LineKind::ChargebackReversed {
            line.original_reference = some(id);
        }
        entry.type_code = some(row.get(self.kind));
        entry.reversal = kind == LineKind::Chargeback;
        let date = row.get(self.date);
        entry.booked_on = out.day(row.line, self.name(self.date), date, Order::Unknown);
        out.tell(entry, line);
    }

    fn last(&self, at: usize) -> Option<(Last, u32)> {
        let last = if at == self.kind {
            Last::Unsure
        } else if at == self.date {
            Last::Day
        } else {
            let is_reference = at == self.id || self.reference == Some(at);
            Some(Last::Other).filter(|_| is_reference)?
        };
        Some((last, 0))
    }
}

/// What moved.
struct Moved {
    net: i64,
    /// Before fees; none where they do not come to the net.
    gross: Option<i64>,
    currency: Currency,
}

/// A row that says a balance: its line, and the sides of it.
type Stand = (u64, [String; 2]);

struct Release {
    common: Common,
    record: usize,
    /// Credit and debit.
    sides: [usize; 2],
    gross: usize,
    fees: Vec<usize>,
    opening: Option<Stand>,
    closing: Option<Stand>,
    currency: Option<Currency>,
}

const FEES: [&str; 5] = [
    "mp fee amount",
    "financing fee amount",
    "shipping fee amount",
    "taxes amount",
    "coupon amount",
];

impl Release {
    fn new(layout: Layout) -> Result<Self, Problem> {
        let code =
            if layout.has(&["settlement currency"]) { "settlement currency" } else { "currency" };
        Ok(Self {
            record: layout.need("record type")?,
            sides: [layout.need("net credit amount")?, layout.need("net debit amount")?],
            gross: layout.need("gross amount")?,
            fees: layout.each(&FEES)?,
            common: Common::new(layout, [code, "description", "date"])?,
            opening: None,
            closing: None,
            currency: None,
        })
    }

    /// A side that is a debit with a minus could be meant either way.
    fn side(&mut self, row: &Row<'_>, at: usize, of: Currency) -> Result<i64, Problem> {
        let minor = self.common.maybe(row, Some(at), of)?;
        if minor < 0 {
            let (name, found) = (self.common.name(at), row.get(at));
            return Err(Problem::error(row.line, name, "an amount without a sign", found));
        }
        Ok(minor)
    }

    fn moved(&mut self, row: &Row<'_>) -> Result<Moved, Problem> {
        let currency = self.common.currency(row)?;
        let own = *self.currency.get_or_insert(currency);
        if own != currency {
            let (name, found) = (self.common.name(self.common.currency), currency.code());
            return Err(Problem::error(row.line, name, own.code(), found));
        }
        let [credit, debit] = self.sides;
        let (credit, debit) = (self.side(row, credit, own)?, self.side(row, debit, own)?);
        if credit != 0 && debit != 0 {
            let found = "a credit and a debit";
            return Err(Problem::error(row.line, "row", "one side of the balance", found));
        }
        let net = credit.saturating_sub(debit);
        let gross = self.common.maybe(row, Some(self.gross), own)?;
        let mut sum = gross;
        for at in self.fees.clone() {
            sum = sum.saturating_add(self.common.maybe(row, Some(at), own)?);
        }
        // The balances hold with all sides turned as well, and the gross with its sign does not.
        if net != 0 && sum == net.saturating_neg() {
            let (name, found) = (self.common.name(self.gross), row.get(self.gross));
            return Err(Problem::error(row.line, name, "the side of the balance", found));
        }
        Ok(Moved { net, gross: Some(gross).filter(|_| sum == net), currency: own })
    }

    /// The balance of a row that has no currency of its own.
    fn balance(&mut self, stand: Option<Stand>, out: &mut Out) -> Option<Balance> {
        let (currency, (line, sides)) = (self.currency?, stand?);
        let mut minor = [0; 2];
        for (slot, text) in minor.iter_mut().zip(&sides) {
            match self.common.shown.read(text, currency) {
                _empty if text.is_empty() => {}
                Ok(read) => *slot = read,
                Err(refused) => out.push(refused.at(line, "balance", text, currency)),
            }
        }
        let [credit, debit] = minor;
        Some(Balance { minor: credit.saturating_sub(debit), currency, date: None, line })
    }
}

impl Report for Release {
    fn row(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        row.fits(&self.common.layout)?;
        let record = row.get(self.record).to_ascii_lowercase();
        let stand = (row.line, self.sides.map(|at| row.get(at).to_owned()));
        if !out.is_open() {
            out.begin(row.line, Finality::Final, |_statement| {});
        }
        let is_between = self.opening.is_some() && self.closing.is_none();
        match record.as_str() {
            "initial_available_balance" if self.opening.is_none() => self.opening = Some(stand),
            "total" if is_between => self.closing = Some(stand),
            // The balance around a withdrawal, which has a row of its own.
            "available_balance" if is_between => {}
            "release" if is_between => {
                let moved = self.moved(row)?;
                let direction = if moved.net < 0 { Direction::Debit } else { Direction::Credit };
                let word = row.get(self.common.kind);
                let known = kinds::mercadopago(word, direction);
                // By what the customer paid a row is decided; fees must show it.
                let kind = if moved.gross.is_some() { known } else { LineKind::Adjustment };
                self.common.tell(row, &moved, kind, out);
            }
            _other => {
                let expected = "initial_available_balance, then release, then total, each balance \
                                once";
                let name = self.common.name(self.record);
                return Err(Problem::error(row.line, name, expected, record));
            }
        }
        Ok(())
    }

    fn last(&self, _row: &Row<'_>, at: usize) -> Option<(Last, u32)> {
        // Balances prove each amount.
        self.common.last(at)
    }

    fn end(&mut self, line: u64, out: &mut Out) {
        let (opening, closing) = (self.opening.take(), self.closing.take());
        if out.is_open() && (opening.is_none() || closing.is_none()) {
            let expected = "the balance before all rows, and the total below them";
            out.push(Problem::error(line, "row", expected, "none: the file was cut"));
        }
        let (opening, closing) = (self.balance(opening, out), self.balance(closing, out));
        let currency = self.currency;
        out.end(StatementEnd { line, opening, closing, currency, ..StatementEnd::default() });
    }
}

struct Account {
    common: Common,
    gross: usize,
    /// The currency of the transaction.
    of: Option<usize>,
    fee: usize,
    taxes: Option<usize>,
    net: usize,
    unknown: Unknown,
    proven: Proven,
}

impl Account {
    fn new(layout: Layout) -> Result<Self, Problem> {
        Ok(Self {
            gross: layout.need("transaction amount")?,
            of: layout.one(&["transaction currency"])?,
            fee: layout.need("fee amount")?,
            taxes: layout.one(&["taxes amount"])?,
            net: layout.need("settlement net amount")?,
            common: Common::new(
                layout,
                ["settlement currency", "transaction type", "settlement date"],
            )?,
            unknown: Unknown::default(),
            proven: Proven::default(),
        })
    }

    /// What moved the account, where the row says it twice.
    fn moved(&mut self, row: &Row<'_>, out: &mut Out) -> Result<Moved, Problem> {
        let currency = self.common.currency(row)?;
        let other = self.of.map(|at| row.get(at)).filter(|code| *code != currency.code());
        if let (Some(at), Some(other)) = (self.of, other) {
            return Err(Problem::error(row.line, self.common.name(at), currency.code(), other));
        }
        if day(row.get(self.common.date), Order::Unknown).is_none() {
            let (name, found) = (self.common.name(self.common.date), row.get(self.common.date));
            return Err(Problem::error(row.line, name, "the day of its settlement", found));
        }
        let [gross, net] = [self.gross, self.net].map(|at| self.common.read(row, at, currency));
        let (gross, net) = (gross?, net?);
        let fee = self.common.maybe(row, Some(self.fee), currency)?;
        let taxes = self.common.maybe(row, self.taxes, currency)?;
        // Taxes may be a part of the fee.
        let less_fee = gross.saturating_add(fee);
        let holds = net == less_fee || net == less_fee.saturating_add(taxes);
        self.proven.row(holds);
        if !holds {
            let expected = shown(less_fee.into(), Some(currency));
            let expected = format!("amount and fee, {expected}, or these and taxes");
            let found = shown(net.into(), Some(currency));
            out.push(Problem::error(row.line, self.common.name(self.net), expected, found));
        }
        // A payment that the merchant made gives no fee back: all signs were turned.
        let is_payment =
            kinds::mercadopago(row.get(self.common.kind), Direction::Credit) == LineKind::Payment;
        if is_payment && gross < 0 && fee > 0 {
            let (name, found) = (self.common.name(self.fee), row.get(self.fee));
            let expected = "no money in, beside a payment that went out";
            return Err(Problem::error(row.line, name, expected, found));
        }
        Ok(Moved { net, gross: Some(gross), currency })
    }

    /// What a row is. The equation holds with all signs turned as well: its kind must agree.
    fn kind(&self, row: &Row<'_>, moved: &Moved) -> Result<LineKind, Problem> {
        let word = row.get(self.common.kind);
        if let Some(expected) = kinds::mercadopago_other_sign(word, moved.net) {
            let (name, found) = (self.common.name(self.net), row.get(self.net));
            return Err(Problem::error(row.line, name, expected, found));
        }
        let direction = if moved.net < 0 { Direction::Debit } else { Direction::Credit };
        Ok(kinds::mercadopago(word, direction))
    }
}

impl Report for Account {
    fn row(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        self.proven.begin();
        row.fits(&self.common.layout)?;
        if !out.is_open() {
            out.begin(row.line, Finality::Final, |_statement| {});
        }
        let moved = self.moved(row, out)?;
        let kind = self.kind(row, &moved)?;
        let word = row.get(self.common.kind);
        if !kinds::is_known_to_mercadopago(word) {
            out.extend(self.unknown.note(row.line, self.common.name(self.common.kind), word));
        }
        self.common.tell(row, &moved, kind, out);
        Ok(())
    }

    fn last(&self, _row: &Row<'_>, at: usize) -> Option<(Last, u32)> {
        // The equation proves each amount, and a currency that was cut is none.
        self.common.last(at)
    }

    fn end(&mut self, line: u64, out: &mut Out) {
        let tie = self.proven.tie();
        out.end(StatementEnd { line, tie, ..StatementEnd::default() });
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use crate::settlement::Format;
    use crate::settlement::ledger::{Inspection, State, inspect};

    const RELEASED: &str = "DATE;SOURCE_ID;EXTERNAL_REFERENCE;RECORD_TYPE;DESCRIPTION;\
                            NET_CREDIT_AMOUNT;NET_DEBIT_AMOUNT;GROSS_AMOUNT;MP_FEE_AMOUNT;CURRENCY";
    const MONEY: &str = "SOURCE_ID,TRANSACTION_TYPE,TRANSACTION_AMOUNT,TRANSACTION_CURRENCY,\
                         FEE_AMOUNT,SETTLEMENT_NET_AMOUNT,SETTLEMENT_CURRENCY,SETTLEMENT_DATE,\
                         TAXES_AMOUNT";

    fn look(header: &str, rows: &str) -> Inspection {
        let text = format!("{header}\n{rows}");
        inspect(Box::new(Cursor::new(text.into_bytes())), None, None).unwrap()
    }

    fn sums(found: &Inspection) -> Vec<(String, i128, i128)> {
        let of = found.sums.booked.iter();
        of.map(|(of, sum)| (of.code().to_owned(), sum.credit_minor, sum.debit_minor)).collect()
    }

    const RELEASES: &str = ";;;initial_available_balance;;50.00;0.00;50.00;0.00;\n\
                            2026-10-01T10:00:00.000-03:00;1;A;release;payment;90.00;0.00;100.00;\
                            -10.00;BRL\n\
                            2026-10-02T10:00:00.000-03:00;1;A;release;refund;0.00;40.00;-40.00;\
                            0.00;BRL\n\
                            ;;;total;;100.00;0.00;100.00;0.00;\n";

    #[test]
    fn what_was_released_lies_between_both_balances() {
        for rows in [RELEASES.to_owned(), RELEASES.replace('.', ",")] {
            let found = look(RELEASED, &rows.replace(",000-", ".000-"));
            let expected = (Some(Format::MercadoPagoRelease), State::Ok);
            assert_eq!((found.format, found.state), expected);
            assert_eq!(sums(&found), [("BRL".to_owned(), 9_000, 4_000)]);
            assert_eq!(found.sums.statements.first().unwrap().ties, Some(true));
        }
    }

    #[test]
    fn a_release_that_leaves_something_open_is_refused() {
        for (from, to) in [
            (";;;total;;100.00;0.00;100.00;0.00;\n", ""),
            (";;;initial_available_balance;;50.00;0.00;50.00;0.00;\n", ""),
            ("total;;100.00", "total;;100.01"),
            ("-10.00;BRL", "-10.00;ARS"),
            ("-10.00;BRL", "-10.00;"),
            ("90.00;0.00;100", "90,00;0.00;100"),
            ("0.00;40.00;-40", "0.00;-40.00;-40"),
            ("90.00;0.00;100", "91.00;1.00;100"),
            ("release;refund", "block;refund"),
            ("0.00;40.00;-40", "0.00;40.00;40"),
        ] {
            assert!(RELEASES.contains(from), "{from}");
            let found = look(RELEASED, &RELEASES.replace(from, to));
            assert_eq!(found.state, State::Quarantined, "{to}");
        }
        let twice = RELEASES.repeat(2);
        assert_eq!(look(RELEASED, &twice).state, State::Quarantined, "twice");
        let without = RELEASED.replace(";CURRENCY", ";INSTALLMENTS");
        assert_eq!(look(&without, RELEASES).state, State::Quarantined, "no currency");
    }

    #[test]
    fn the_account_moved_by_what_the_row_says_twice() {
        let rows = "1,SETTLEMENT,100.00,BRL,-10.00,85.00,BRL,2026-10-01,-5.00\n\
                    1,REFUND,-40.00,BRL,4.00,-36.00,BRL,2026-10-02,0.00\n\
                    2,PAYOUTS,-49.00,BRL,0.00,-49.00,BRL,2026-10-03,0.00\n";
        let found = look(MONEY, rows);
        assert_eq!((found.format, found.state), (Some(Format::MercadoPago), State::Ok));
        assert_eq!(sums(&found), [("BRL".to_owned(), 8_500, 8_500)]);
        assert_eq!(found.sums.statements.first().unwrap().ties, Some(true));
    }

    #[test]
    fn a_row_of_the_account_that_leaves_something_open_is_refused() {
        for row in [
            "1,SETTLEMENT,100.00,BRL,-10.00,91.00,BRL,2026-10-01,0.00",
            "1,REFUND,40.00,BRL,0.00,40.00,BRL,2026-10-01,0.00",
            "1,SETTLEMENT,-100.00,BRL,10.00,-90.00,BRL,2026-10-01,0.00",
            "1,PAYOUTS_CASH,40.00,BRL,0.00,40.00,BRL,2026-10-01,0.00",
            "1,SETTLEMENT,100.00,USD,0.00,100.00,BRL,2026-10-01,0.00",
            "1,SETTLEMENT,100.00,BRL,0.00,100.00,BRL,,0.00",
            "1,SETTLEMENT,1.000,BRL,0.00,1.000,BRL,2026-10-01,0.00",
            "1,SETTLEMENT,100.00,BRL,0.00,100.00,,2026-10-01,0.00",
        ] {
            let found = look(MONEY, &format!("{row}\n"));
            assert_eq!(found.state, State::Quarantined, "{row}");
        }
        let row = "1,SETTLEMENT,100.00,BRL,0.00,100.00,BRL,2026-10-01,0.00\n";
        assert_eq!(look(MONEY, &row.repeat(2)).state, State::Quarantined, "twice");
    }
}
