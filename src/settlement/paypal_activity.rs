//! PayPal's activity download and the statement of its account: a row for each transaction, with
//! gross, fee, net and the balance of its currency behind it, in English, Spanish, German or
//! Slovak.
//!
//! Signs are the file's: gross and fee are net on every row. Whether a row moved money is told by
//! its balance and not by its status: withdrawals that are `Pending` left the account, and holds
//! that are `Completed` did not. So rows come the oldest first, each balance is the one before it
//! of the same currency and the net, and a row without a balance is pending. What a row is, its
//! words say in English alone; in other languages it is an adjustment, which decides nothing.

use std::collections::BTreeMap;

use crate::model::money::Currency;
use crate::model::settlement::{
    Direction, EntryStatus, Finality, LineKind, Problem, StatementEnd, TagKind, Tie,
};
use crate::settlement::Parse;
use crate::settlement::amount::shown;
use crate::settlement::kinds;
use crate::settlement::last_row::Last;
use crate::settlement::numeral::{Numerals, Order, day, decimal_of, order_of};
use crate::settlement::once::Once;
use crate::settlement::proven::Proven;
use crate::settlement::sheet::{self, Layout, Out, Report, Row, currency, money, some};
use crate::settlement::text::Source;

type Names = &'static [&'static str];

const DATE: Names = &["date", "fecha", "datum", "dátum"];
const ZONE: Names = &["timezone", "time zone", "zona horaria", "zeitzone", "časové pásmo"];
const CURRENCY: Names = &["currency", "divisa", "währung", "mena"];
const GROSS: Names = &["gross", "bruto", "brutto"];
const FEE: Names = &["fee", "comisión", "gebühr", "entgelt", "poplatok"];
const NET: Names = &["net", "neto", "netto"];
const BALANCE: Names = &["balance", "saldo", "guthaben", "zostatok"];
const ID: Names = &["transaction id", "id de transacción", "transaktionscode", "id transakcie"];

/// All of these are there.
const NEEDED: [Names; 8] = [DATE, ZONE, CURRENCY, GROSS, FEE, NET, BALANCE, ID];

const KIND: Names = &["type", "description", "tipo", "descripción", "typ", "beschreibung"];
const STATUS: Names = &["status", "estado", "stav"];
const INVOICE: Names =
    &["invoice number", "invoice id", "id de factura", "rechnungsnummer", "číslo faktúry"];
const ORIGINAL: Names = &["reference txn id", "id de referencia de trans"];

/// Words for what is done; a statement has no column of them.
const DONE: [&str; 6] = ["", "completed", "completado", "completada", "abgeschlossen", "dokončené"];

/// So many rows of the head are looked at for marks.
const ROWS: usize = 2_000;

/// A head so long may end within a row.
const LONG: usize = 32 * 1024;

fn is_activity(names: &[String]) -> bool {
    let is_there = |own: &Names| own.iter().any(|name| sheet::has(names, &[*name]));
    NEEDED.iter().all(is_there)
}

/// The download, by its columns.
pub fn recognise(head: &str) -> Option<String> {
    sheet::find(head, is_activity).map(|_| String::new())
}

/// Begins to read.
pub fn open(mut source: Source) -> Box<dyn Parse> {
    let head = source.head().map(|head| String::from_utf8_lossy(head).into_owned());
    let marks = head.map(|head| Marks::of(&head)).unwrap_or_default();
    sheet::read_below(source, is_activity, |layout| Activity::new(layout, marks))
}

/// How numbers and days are written, as the first rows show it.
#[derive(Debug, Clone, Copy, Default)]
struct Marks {
    decimal: Shown<u8>,
    order: Shown<Order>,
}

/// What rows show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Shown<T> {
    #[default]
    Nothing,
    One(T),
    Several,
}

impl<T: Copy + PartialEq> Shown<T> {
    fn add(&mut self, seen: Option<T>) {
        let Some(seen) = seen else { return };
        *self = match *self {
            Self::Nothing => Self::One(seen),
            Self::One(own) if own == seen => Self::One(own),
            _other => Self::Several,
        };
    }
}

impl Marks {
    fn of(head: &str) -> Self {
        let mut marks = Self::default();
        let Some(layout) = sheet::find(head, is_activity) else { return marks };
        let mut rows = sheet::rows_of(head, layout.delimiter, ROWS);
        if head.len() > LONG {
            rows.pop();
        }
        let amounts: Vec<usize> =
            [GROSS, FEE, NET, BALANCE].iter().filter_map(|names| layout.column(names)).collect();
        for row in rows.iter().skip(layout.above.saturating_add(1)) {
            let texts = amounts.iter().filter_map(|at| row.get(*at));
            texts.for_each(|text| marks.decimal.add(decimal_of(text)));
            let date = layout.column(DATE).and_then(|at| row.get(at));
            marks.order.add(date.and_then(|date| order_of(date)));
        }
        marks
    }
}

struct Activity {
    date: usize,
    order: Order,
    numerals: Numerals,
    currency: usize,
    /// Gross, fee, net.
    amounts: [usize; 3],
    balance: usize,
    impact: Option<usize>,
    id: usize,
    kind: Option<usize>,
    status: Option<usize>,
    invoice: Option<usize>,
    original: Option<usize>,
    balances: BTreeMap<Currency, i64>,
    /// A balance was another one than what moved makes it.
    broken: bool,
    undated: bool,
    once: Once,
    proven: Proven,
    layout: Layout,
}

fn need(layout: &Layout, names: Names) -> Result<usize, Problem> {
    let first = names.first().copied().unwrap_or_default();
    layout.column(names).map_or_else(|| layout.need(first), Ok)
}

impl Activity {
    fn new(layout: Layout, marks: Marks) -> Result<Self, Problem> {
        let numerals = match marks.decimal {
            Shown::One(decimal) => Numerals { decimal, grouped: true },
            Shown::Nothing => Numerals::PLAIN,
            Shown::Several => {
                let found = "points and commas before the decimals";
                return Err(Problem::error(1, "amounts", "one decimal mark", found));
            }
        };
        let order = match marks.order {
            Shown::One(order) => order,
            Shown::Nothing | Shown::Several => Order::Unknown,
        };
        Ok(Self {
            date: need(&layout, DATE)?,
            order,
            numerals,
            currency: need(&layout, CURRENCY)?,
            amounts: [need(&layout, GROSS)?, need(&layout, FEE)?, need(&layout, NET)?],
            balance: need(&layout, BALANCE)?,
            impact: layout.column(&["balance impact"]),
            id: need(&layout, ID)?,
            kind: layout.column(KIND),
            status: layout.column(STATUS),
            invoice: layout.column(INVOICE),
            original: layout.column(ORIGINAL),
            balances: BTreeMap::new(),
            broken: false,
            undated: false,
            once: Once::default(),
            proven: Proven::default(),
            layout,
        })
    }

    fn read(&self, row: &Row<'_>, at: usize, currency: Currency) -> Result<i64, Problem> {
        let text = row.get(at);
        let name = self.layout.shown.get(at).map_or("", String::as_str);
        let read = self.numerals.read(text, currency);
        read.map_err(|refused| refused.at(row.line, name, text, currency))
    }

    /// Gross, fee and net.
    fn amounts(&self, row: &Row<'_>, currency: Currency) -> Result<[i64; 3], Problem> {
        let [gross, fee, net] = self.amounts.map(|at| self.read(row, at, currency));
        Ok([gross?, fee?, net?])
    }

    fn check(&mut self, row: &Row<'_>, minor: [i64; 3], currency: Currency, out: &mut Out) {
        let [gross, fee, net] = minor;
        let expected = i128::from(gross).saturating_add(i128::from(fee));
        let holds = expected == i128::from(net);
        self.proven.row(holds);
        if !holds {
            let expected = format!("gross and fee, {}", shown(expected, Some(currency)));
            let found = shown(net.into(), Some(currency));
            out.push(Problem::error(row.line, "net", expected, found));
        }
    }

    /// Whether the row moved its net, by the balance behind it. Of the first row of a currency no
    /// balance shows it, and its status must.
    fn moved(
        &mut self,
        row: &Row<'_>,
        net: i64,
        currency: Currency,
        out: &mut Out,
    ) -> Result<bool, Problem> {
        let is_memo = row.maybe(self.impact).eq_ignore_ascii_case("memo");
        if row.get(self.balance).is_empty() || is_memo {
            return Ok(false);
        }
        let balance = self.read(row, self.balance, currency)?;
        let Some(before) = self.balances.insert(currency, balance) else {
            let status = row.maybe(self.status);
            if DONE.contains(&status.to_lowercase().as_str()) {
                return Ok(true);
            }
            let expected = format!("a word for what is done, in the first row of {currency}");
            return Err(Problem::error(row.line, "status", expected, status));
        };
        let after = i128::from(before).saturating_add(i128::from(net));
        let holds = after == i128::from(balance);
        if !holds && !std::mem::replace(&mut self.broken, true) {
            let expected =
                format!("{}, by the balance before and the net", shown(after, Some(currency)));
            let found = shown(balance.into(), Some(currency));
            out.push(Problem::error(row.line, "balance", expected, found));
        }
        Ok(true)
    }

    /// The day, where it could not be two.
    fn day(&mut self, row: &Row<'_>, out: &mut Out) -> Option<chrono::NaiveDate> {
        let text = row.get(self.date);
        let found = day(text, self.order);
        if found.is_none() && !std::mem::replace(&mut self.undated, true) {
            let expected = "a day that could not be two: those that could are not told";
            out.push(Problem::warning(row.line, "date", expected, text));
        }
        found
    }
}

impl Report for Activity {
    fn row(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        self.proven.begin();
        row.fits(&self.layout)?;
        if !out.is_open() {
            out.begin(row.line, Finality::Final, |_statement| {});
        }
        let currency = currency(row, "currency", row.get(self.currency))?;
        let minor @ [gross, fee, net] = self.amounts(row, currency)?;
        let moved = self.moved(row, net, currency, out)?;
        self.check(row, minor, currency, out);
        let (id, booked_on) = (row.get(self.id), self.day(row, out));
        out.extend(self.once.note(row.line, "transaction id", id, &[]));
        let (mut entry, mut line) = out.entry(row, net, currency);
        entry.status = if moved { EntryStatus::Booked } else { EntryStatus::Pending };
        entry.type_code = some(row.maybe(self.kind));
        entry.booked_on = booked_on;
        line.kind = kinds::paypal_activity(row.maybe(self.kind), entry.direction);
        entry.reversal = matches!(line.kind, LineKind::Return | LineKind::Chargeback);
        line.gross = money(gross, currency);
        line.fee = money(fee.saturating_neg(), currency);
        line.net = money(net, currency);
        line.tag(TagKind::OrderId, row.maybe(self.invoice));
        line.tag(TagKind::TransactionId, id);
        line.psp_reference = some(id);
        if entry.direction == Direction::Debit {
            line.original_reference = some(row.maybe(self.original));
        }
        out.tell(entry, line);
        Ok(())
    }

    fn last(&self, row: &Row<'_>, at: usize) -> Option<(Last, u32)> {
        let is = |column: Option<usize>| column == Some(at);
        if at == self.balance {
            let of = Currency::parse_any(row.get(self.currency));
            let last = match row.get(at) {
                "" => Last::Unsure,
                _amount => Last::Money(Some(self.numerals.decimal)),
            };
            return Some((last, of.map_or(u32::MAX, |of| of.exponent())));
        }
        // Gross and fee prove the net.
        let last = if is(self.kind) || is(self.status) || is(self.impact) {
            Last::Unsure
        } else if at == self.date {
            Last::Day
        } else {
            let is_reference = at == self.id || is(self.invoice) || is(self.original);
            Some(Last::Other).filter(|_| is_reference)?
        };
        Some((last, 0))
    }

    fn end(&mut self, line: u64, out: &mut Out) {
        let tie = if self.broken { Tie::Declared(false) } else { self.proven.tie() };
        out.end(StatementEnd { line, tie, ..StatementEnd::default() });
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::settlement::Format;
    use crate::settlement::ledger::{Inspection, State, inspect};

    const ENGLISH: &str = "Date,Time,TimeZone,Name,Type,Status,Currency,Gross,Fee,Net,\
                           Transaction ID,Balance\n";

    fn look(text: String) -> Inspection {
        inspect(Box::new(Cursor::new(text.into_bytes())), None, None).unwrap()
    }

    fn row(date: &str, status: &str, of: [&str; 3], id: &str, balance: &str) -> String {
        let [gross, fee, net] = of;
        format!(
            "\"{date}\",\"10:00:00\",\"CET\",\"\",\"Website Payment\",\"{status}\",\"EUR\",\
             \"{gross}\",\"{fee}\",\"{net}\",\"{id}\",\"{balance}\"\n"
        )
    }

    const FIRST: [&str; 3] = ["1,250.00", "-43.40", "1,206.60"];
    const OUT: [&str; 3] = ["-1,000.00", "0.00", "-1,000.00"];

    #[test]
    fn what_moved_the_balance_is_booked_whatever_its_status_says() {
        let found = look(format!(
            "{ENGLISH}{}{}{}",
            row("10/01/2026", "Completed", FIRST, "T1", "1,206.60"),
            row("10/13/2026", "Completed", ["-10.00", "0.00", "-10.00"], "T2", ""),
            row("10/14/2026", "Pending", OUT, "T3", "206.60"),
        ));
        assert_eq!((found.format, found.state), (Some(Format::PayPalActivity), State::Ok));
        let booked = found.sums.booked.values().next().unwrap();
        assert_eq!((booked.credit_minor, booked.debit_minor), (120_660, 100_000));
        assert_eq!(found.sums.statuses.get(&EntryStatus::Pending), Some(&1));
        assert_eq!(found.sums.statements.first().unwrap().ties, Some(true));
        assert_eq!(found.sums.problems_total, 0, "{:?}", found.sums.problems);
    }

    #[test]
    fn a_balance_or_a_net_that_does_not_follow_is_told() {
        for (of, balance) in [(OUT, "206.70"), (["-1,000.00", "-1.00", "-1,000.00"], "206.60")] {
            let found = look(format!(
                "{ENGLISH}{}{}",
                row("10/13/2026", "Completed", FIRST, "T1", "1,206.60"),
                row("10/14/2026", "Completed", of, "T2", balance),
            ));
            let ties = found.sums.statements.first().unwrap().ties;
            assert_eq!((found.state, ties), (State::Quarantined, Some(false)), "{balance}");
        }
    }

    #[test]
    fn the_first_row_of_a_currency_must_say_that_it_is_done() {
        let first = row("10/13/2026", "Pending", FIRST, "T1", "1,206.60");
        let found = look(format!("{ENGLISH}{first}"));
        assert_eq!((found.state, found.sums.entries), (State::Quarantined, 0));
    }

    #[test]
    fn other_languages_are_read_and_days_that_could_be_two_are_not() {
        let found = look(
            "\"Fecha\",\"Hora\",\"Zona horaria\",\"Descripción\",\"Divisa\",\"Bruto\",\"Comisión\",\
             \"Neto\",\"Saldo\",\"Id. de transacción\"\n\
             \"2/1/2020\",\"11:05:56\",\"Europe/Berlin\",\"Pago estándar\",\"EUR\",\"49,37\",\
             \"-1,78\",\"47,59\",\"4.626,81\",\"TID1\"\n\
             \"2/1/2020\",\"13:06:07\",\"Europe/Berlin\",\"Pago estándar\",\"EUR\",\"28,82\",\
             \"-1,19\",\"27,63\",\"4.654,44\",\"TID2\"\n"
                .to_owned(),
        );
        assert_eq!((found.format, found.state), (Some(Format::PayPalActivity), State::Ok));
        assert_eq!(found.sums.booked.values().next().unwrap().credit_minor, 7_522);
        assert_eq!(found.sums.problems_total, 1, "the day");
    }

    #[test]
    fn two_decimal_marks_are_refused() {
        let found = look(format!(
            "{ENGLISH}{}{}",
            row("10/13/2026", "Completed", FIRST, "T1", "1,206.60"),
            row("10/14/2026", "Completed", ["1,00", "0,00", "1,00"], "T2", "1207,60"),
        ));
        assert_eq!((found.state, found.sums.entries), (State::Quarantined, 0));
    }
}
