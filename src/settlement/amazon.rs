//! Amazon's settlement report, flat file V2: a row that says what a settlement comes to, and a row
//! for each part of each order, refund and fee behind it. Columns: developer-docs.amazon.com,
//! "Settlement Reports". V1, the older one, has a column for each kind of amount: what a row moved
//! is all of them together.
//!
//! The decimal mark is the marketplace's; the currency stands in the row of the settlement alone.
//! Rows carry their sign and come to the total, which proves both. What was paid out has no row.

use crate::model::money::Currency;
use crate::model::settlement::{
    Control, EntryStatus, Finality, Found, Problem, Severity, StatementEnd, TagKind, Tie,
};
use crate::settlement::Parse;
use crate::settlement::doubts::nothing_moved;
use crate::settlement::kinds;
use crate::settlement::last_row::Last;
use crate::settlement::numeral::{Order, Shown};
use crate::settlement::once::Once;
use crate::settlement::sheet::{self, Layout, Out, Report, Row, currency, money, some};
use crate::settlement::text::Source;

const COLUMNS: &[&str] = &[
    "settlement id",
    "settlement start date",
    "settlement end date",
    "deposit date",
    "total amount",
    "currency",
    "transaction type",
    "order id",
    "amount type",
    "amount description",
    "amount",
    "posted date",
];

/// Those of V1, of which the amounts are not all.
const COLUMNS_V1: &[&str] = &[
    "settlement id",
    "settlement start date",
    "settlement end date",
    "deposit date",
    "total amount",
    "currency",
    "transaction type",
    "order id",
    "posted date",
    "price type",
    "price amount",
    "item related fee type",
    "item related fee amount",
    "other amount",
];

/// The report, by its columns.
pub fn recognise(head: &str) -> Option<String> {
    let version = |columns: &[&str], name: &str| {
        sheet::find(head, |names| sheet::has(names, columns)).map(|_| name.to_owned())
    };
    version(COLUMNS, "V2").or_else(|| version(COLUMNS_V1, "V1"))
}

/// Begins to read.
pub fn open(source: Source) -> Box<dyn Parse> {
    let is_own = |names: &[String]| sheet::has(names, COLUMNS) || sheet::has(names, COLUMNS_V1);
    sheet::read_below(source, is_own, Amazon::new)
}

/// Where a row says what moved.
enum Parts {
    /// What it is, in two columns, and the amount.
    One { kind: usize, text: usize, amount: usize },
    /// A column for each kind of amount, and whether that is a fee; what they are, each in its own
    /// column; and of these those of the price.
    Each { amounts: Vec<(usize, bool)>, texts: Vec<usize>, price: [usize; 2] },
}

impl Parts {
    fn new(layout: &Layout) -> Result<Self, Problem> {
        if sheet::has(&layout.names, COLUMNS) {
            let (kind, text) = (layout.need("amount type")?, layout.need("amount description")?);
            return Ok(Self::One { kind, text, amount: layout.need("amount")? });
        }
        let names = || layout.names.iter().enumerate();
        let amounts = names().filter(|(_, name)| *name != "total amount");
        let amounts = amounts.filter(|(_, name)| name.ends_with(" amount"));
        let is_text = |name: &str| {
            name.ends_with(" type") && name != "transaction type" || name.ends_with(" description")
        };
        let texts = names().filter(|(_, name)| is_text(name)).map(|(at, _)| at);
        Ok(Self::Each {
            amounts: amounts.map(|(at, name)| (at, name.ends_with("fee amount"))).collect(),
            texts: texts.collect(),
            price: [layout.need("price type")?, layout.need("price amount")?],
        })
    }

    /// The columns of the amounts.
    fn amounts(&self) -> Vec<usize> {
        match self {
            Self::One { amount, .. } => vec![*amount],
            Self::Each { amounts, .. } => amounts.iter().map(|(at, _)| *at).collect(),
        }
    }

    /// What the row is in Amazon's words of V2: the kind of its amount, and what the amount is.
    fn words<'a>(&self, row: &Row<'a>) -> [&'a str; 2] {
        match self {
            Self::One { kind, text, .. } => [row.get(*kind), row.get(*text)],
            Self::Each { amounts, texts, price } => {
                let has = |of_fee: bool| {
                    let own = amounts.iter().filter(|(_, is_fee)| *is_fee == of_fee);
                    own.map(|(at, _)| row.get(*at)).any(|text| !text.is_empty())
                };
                let kind = match (has(true), row.get(price[1])) {
                    (true, _) if !has(false) => "ItemFees",
                    (false, price) if !price.is_empty() => "ItemPrice",
                    _several => "",
                };
                let text = texts.iter().map(|at| row.get(*at)).find(|text| !text.is_empty());
                [kind, text.unwrap_or_default()]
            }
        }
    }

    /// The price of a row and what it is, where it has one.
    fn price<'a>(&self, row: &Row<'a>) -> Option<(usize, [&'a str; 2])> {
        let (at, words) = match self {
            Self::One { amount, .. } => (*amount, self.words(row)),
            Self::Each { price: [kind, amount], .. } => (*amount, ["ItemPrice", row.get(*kind)]),
        };
        (!row.get(at).is_empty()).then_some((at, words))
    }

    /// Whether a column says what an amount is.
    fn is_kind(&self, at: usize) -> bool {
        matches!(self, Self::One { kind, .. } if *kind == at)
    }

    fn is_text(&self, at: usize) -> bool {
        match self {
            Self::One { text, .. } => *text == at,
            Self::Each { texts, .. } => texts.contains(&at),
        }
    }
}

struct Amazon {
    settlement: usize,
    /// Start, end, and when the money left.
    days: [usize; 3],
    total: usize,
    currency: usize,
    transaction: usize,
    order: usize,
    merchant_order: Option<usize>,
    adjustment: Option<usize>,
    parts: Parts,
    posted: usize,
    shown: Shown,
    /// The settlement whose rows come.
    of: Option<Settlement>,
    once: Once,
    layout: Layout,
}

struct Settlement {
    id: String,
    line: u64,
    currency: Currency,
    total: i64,
    /// What its rows come to.
    sum: i128,
    rows: u64,
}

impl Amazon {
    fn new(layout: Layout) -> Result<Self, Problem> {
        let day = |name| layout.need(name);
        Ok(Self {
            settlement: layout.need("settlement id")?,
            days: [
                day("settlement start date")?,
                day("settlement end date")?,
                day("deposit date")?,
            ],
            total: layout.need("total amount")?,
            currency: layout.need("currency")?,
            transaction: layout.need("transaction type")?,
            order: layout.need("order id")?,
            merchant_order: layout.one(&["merchant order id"])?,
            adjustment: layout.one(&["adjustment id"])?,
            parts: Parts::new(&layout)?,
            posted: layout.need("posted date")?,
            shown: Shown::default(),
            of: None,
            once: Once::default(),
            layout,
        })
    }

    fn read(&mut self, row: &Row<'_>, name: &str, at: usize, of: Currency) -> Result<i64, Problem> {
        let text = row.get(at);
        self.shown.read(text, of).map_err(|refused| refused.at(row.line, name, text, of))
    }

    /// The row that says what a settlement comes to.
    fn begin(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        let id = row.get(self.settlement);
        let [from, to, deposit] = self.days.map(|at| row.get(at));
        for (field, text) in [("settlement-id", id), ("deposit-date", deposit)] {
            if text.is_empty() {
                return Err(Problem::error(row.line, field, "one beside a total", "none"));
            }
        }
        let mut parts = [self.transaction].into_iter().chain(self.parts.amounts());
        if let Some(at) = parts.find(|at| !row.get(*at).is_empty()) {
            let expected = "none beside the total: it is no part of it";
            return Err(Problem::error(row.line, "amount", expected, row.get(at)));
        }
        let currency = currency(row, "currency", row.get(self.currency))?;
        let total = self.read(row, "total-amount", self.total, currency)?;
        out.extend(self.once.note(row.line, "settlement-id", id, &[]));
        let from = out.day(row.line, "settlement-start-date", from, Order::Unknown);
        let to = out.day(row.line, "settlement-end-date", to, Order::Unknown);
        out.begin(row.line, Finality::Final, |statement| {
            statement.id = some(id);
            statement.currency = Some(currency);
            (statement.from, statement.to) = (from, to);
        });
        let (id, line) = (id.to_owned(), row.line);
        self.of = Some(Settlement { id, line, currency, total, sum: 0, rows: 0 });
        Ok(())
    }

    fn finish(&mut self, line: u64, out: &mut Out) {
        let Some(of) = self.of.take() else { return };
        out.push(Control {
            line: of.line,
            field: "total-amount".to_owned(),
            expected: of.total.into(),
            found: Found::Is(of.sum),
            currency: Some(of.currency),
            severity: Severity::Error,
        });
        let tie = Tie::Declared(of.sum == i128::from(of.total));
        out.end(StatementEnd { line, tie, ..StatementEnd::default() });
    }

    /// What a row moved: its amount, or all of them. The total proves what is left out.
    fn moved(&mut self, row: &Row<'_>, own: Currency) -> Result<Option<i64>, Problem> {
        // The total holds with all signs turned as well.
        if let Some((at, [kind, text])) = self.parts.price(row) {
            let minor = self.read(row, &self.name(at), at, own)?;
            let words = [row.get(self.transaction), kind, text];
            if let Some(expected) = kinds::amazon_other_sign(words, minor) {
                return Err(Problem::error(row.line, self.name(at), expected, row.get(at)));
            }
        }
        let is_one = matches!(self.parts, Parts::One { .. });
        let mut filled = self.parts.amounts();
        filled.retain(|at| is_one || !row.get(*at).is_empty());
        let mut all = 0_i64;
        for at in &filled {
            let minor = self.read(row, &self.name(*at), *at, own)?;
            all = all.checked_add(minor).ok_or_else(|| {
                Problem::error(row.line, self.name(*at), "an amount that can be", row.get(*at))
            })?;
        }
        Ok((!filled.is_empty()).then_some(all))
    }

    /// A column as Amazon writes it.
    fn name(&self, at: usize) -> String {
        self.layout.shown.get(at).cloned().unwrap_or_default()
    }

    fn part(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        let id = row.get(self.settlement);
        let own = self.of.as_ref().filter(|of| of.id == id).map(|of| of.currency);
        let Some(own) = own else {
            let expected = "the settlement above, whose total and currency are known";
            return Err(Problem::error(row.line, "settlement-id", expected, id));
        };
        let code = row.get(self.currency);
        if !code.is_empty() && currency(row, "currency", code)? != own {
            return Err(Problem::error(row.line, "currency", own.code(), code));
        }
        let Some(minor) = self.moved(row, own)? else {
            out.push(nothing_moved(row.line));
            return Ok(());
        };
        let [kind, text] = self.parts.words(row);
        let (mut entry, mut line) = out.entry(row, minor, own);
        if let Some(of) = &mut self.of {
            of.sum = of.sum.saturating_add(minor.into());
            of.rows = of.rows.saturating_add(1);
            // A file may be of several settlements; each is named once.
            if of.rows == 1 {
                line.tag(TagKind::PayoutId, id);
            }
        }
        line.kind = kinds::amazon(kind, entry.direction);
        line.net = money(minor, own);
        line.tag(TagKind::OrderId, row.get(self.order));
        line.tag(TagKind::MerchantReference, row.maybe(self.merchant_order));
        line.tag(TagKind::TransactionId, row.maybe(self.adjustment));
        line.tag(TagKind::Text, text);
        line.batch_id = some(id);
        entry.type_code = some(row.get(self.transaction));
        entry.status = EntryStatus::Booked;
        entry.booked_on = out.day(row.line, "posted-date", row.get(self.posted), Order::Unknown);
        out.tell(entry, line);
        Ok(())
    }
}

impl Report for Amazon {
    fn row(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        row.fits(&self.layout)?;
        if row.get(self.total).is_empty() {
            return self.part(row, out);
        }
        self.finish(row.line, out);
        self.begin(row, out)
    }

    fn last(&self, _row: &Row<'_>, at: usize) -> Option<(Last, u32)> {
        // The rows come to the total, which proves each amount.
        let is = |column: Option<usize>| column == Some(at);
        let last = if at == self.transaction || self.parts.is_kind(at) {
            Last::Unsure
        } else if at == self.posted || self.days.contains(&at) {
            Last::Day
        } else {
            let is_text = self.parts.is_text(at);
            let is_reference = at == self.order || is_text || at == self.settlement;
            let is_reference = is_reference || is(self.merchant_order) || is(self.adjustment);
            Some(Last::Other).filter(|_| is_reference)?
        };
        Some((last, 0))
    }

    fn end(&mut self, line: u64, out: &mut Out) {
        self.finish(line, out);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::settlement::Format;
    use crate::settlement::ledger::{Inspection, State, inspect};

    const HEADER: &str = "settlement-id;settlement-start-date;settlement-end-date;deposit-date;\
                          total-amount;currency;transaction-type;order-id;amount-type;\
                          amount-description;amount;posted-date;sku";

    /// The rows, their fields by semicolons: the report has tabs.
    fn look(rows: &str) -> Inspection {
        let text = format!("{HEADER}\n{rows}").replace(';', "\t");
        inspect(Box::new(Cursor::new(text.into_bytes())), None, None).unwrap()
    }

    fn total(id: &str, total: &str, currency: &str) -> String {
        format!("{id};2026-10-01;2026-10-14;2026-10-16;{total};{currency};;;;;;;\n")
    }

    fn part(id: &str, kind: &str, amount: &str) -> String {
        format!("{id};;;;;;Order;302-7;{kind};Principal;{amount};02.10.2026;S\n")
    }

    fn sums(found: &Inspection) -> Vec<(String, i128, i128)> {
        let of = found.sums.booked.iter();
        of.map(|(of, sum)| (of.code().to_owned(), sum.credit_minor, sum.debit_minor)).collect()
    }

    #[test]
    fn the_parts_of_a_settlement_come_to_its_total() {
        for (sum, price, fee) in [("17.50", "20.00", "-2.5"), ("17,50", "20", "-2,5")] {
            let rows = [total("7", sum, "EUR"), part("7", "ItemPrice", price)];
            let found = look(&format!("{}{}", rows.concat(), part("7", "ItemFees", fee)));
            assert_eq!((found.format, found.state), (Some(Format::Amazon), State::Ok));
            assert_eq!(sums(&found), [("EUR".to_owned(), 2_000, 250)]);
            assert_eq!(found.sums.statements.first().unwrap().ties, Some(true));
            assert_eq!(found.sums.references.get(&TagKind::PayoutId), Some(&1));
        }
    }

    #[test]
    fn each_settlement_of_a_file_has_its_own_currency_and_total() {
        let first = [total("7", "20.00", "GBP"), part("7", "ItemPrice", "20.00")].concat();
        let second = [total("8", "-1.00", "EUR"), part("8", "ItemFees", "-1.00")].concat();
        let found = look(&format!("{first}{second}"));
        assert_eq!(found.state, State::Ok);
        let expected = [("EUR".to_owned(), 0, 100), ("GBP".to_owned(), 2_000, 0)];
        assert_eq!(sums(&found), expected);
        assert_eq!(look(&format!("{first}{first}")).state, State::Quarantined, "twice");
        let mixed = format!("{first}{}", part("8", "ItemPrice", "0.00"));
        assert_eq!(look(&mixed).state, State::Quarantined, "of another settlement");
    }

    const OLDER: &str = "settlement-id;settlement-start-date;settlement-end-date;deposit-date;\
                         total-amount;currency;transaction-type;order-id;merchant-order-id;\
                         shipment-fee-type;shipment-fee-amount;posted-date;sku;price-type;\
                         price-amount;item-related-fee-type;item-related-fee-amount;\
                         promotion-amount;other-amount";

    fn older(rows: &str) -> Inspection {
        let text = format!("{OLDER}\n{rows}").replace(';', "\t");
        inspect(Box::new(Cursor::new(text.into_bytes())), None, None).unwrap()
    }

    #[test]
    fn the_older_report_has_a_column_for_each_kind_of_amount() {
        let total = "7;2026-10-01;2026-10-14;2026-10-16;15.50;EUR;;;;;;;;;;;;;\n";
        let rows = "7;;;;;;Order;302-7;;;;02.10.2026;S;Principal;20.00;Commission;-2.50;-1.00;\n\
                    7;;;;;;Order;302-7;;FBA;-0.50;02.10.2026;S;;;;;;\n\
                    7;;;;;;Fee;;;;;02.10.2026;;;;;;;-0.50\n";
        let found = older(&format!("{total}{rows}"));
        assert_eq!((found.state, found.version.as_str()), (State::Ok, "V1"));
        assert_eq!(sums(&found), [("EUR".to_owned(), 1_650, 100)]);
        assert_eq!(found.sums.statements.first().unwrap().ties, Some(true));
        // A row without any amount moves nothing, which the total proves.
        let empty = "7;;;;;;Order;302-8;;;;02.10.2026;S;;;;;;\n";
        assert_eq!(older(&format!("{total}{rows}{empty}")).state, State::Ok);
        for (from, to) in [
            ("20.00", "20.01"),
            ("-1.00", ""),
            ("Principal;20.00;Commission;-2.50;-1.00;", "Principal;-20.00;;37.50;-1.00;"),
            (";Order;302-7;;;;", ";Refund;302-7;;;;"),
            ("-2.50", "-2,50"),
        ] {
            let changed = rows.replacen(from, to, 1);
            assert_eq!(older(&format!("{total}{changed}")).state, State::Quarantined, "{to}");
        }
    }

    #[test]
    fn what_leaves_an_amount_or_a_total_open_is_refused() {
        let with = |sum: &str, of: &str, amount: &str| {
            [total("7", sum, of), part("7", "ItemPrice", amount)].concat()
        };
        for rows in [
            with("20.01", "EUR", "20.00"),
            with("20,00", "EUR", "20.00"),
            with("1.000", "EUR", "1.000"),
            with("1,000", "JPY", "1,000"),
            with("1,000.00", "USD", "1,000.00"),
            with("20.00", "", "20.00"),
            with("20.00", "EUR", ""),
            part("7", "ItemPrice", "20.00"),
            with("20.00", "EUR", "20.00").replace("2026-10-16", ""),
            with("-20.00", "EUR", "-20.00"),
            with("20.00", "EUR", "20.00").replace(";Order;", ";Refund;"),
            total("7", "0.00", "EUR").replace(";;;;;;;", ";Order;;;;20.00;;"),
            with("20.00", "EUR", "20.00").replace(";;;;;;Order", ";;;;;USD;Order"),
        ] {
            assert_eq!(look(&rows).state, State::Quarantined, "{rows}");
        }
    }
}
