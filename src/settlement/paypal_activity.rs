//! PayPal's activity download and the statement of its account: a row for each transaction, with
//! gross, fee, net and the balance of its currency behind it, in English, Spanish, German, Slovak,
//! Italian, French, Dutch or Polish; in English that of a personal account, too, which calls them
//! amount, fees and total, or has the amount alone.
//!
//! Signs are the file's: gross and fee are net on every row. Whether a row moved money is told by
//! its balance and not by its status: withdrawals that are `Pending` left the account, and holds
//! that are `Completed` did not. So rows come the oldest first, each balance is the one before it
//! of the same currency and the net, and a row without a balance is pending. So is one behind which
//! the balance is as before, where its words say so too: some downloads show both rows of a payment
//! and of the card that paid it with the balance behind the two. A personal download without
//! balances is refused, since its holds look like payments. What a row is, its words say in
//! English alone; in other languages it is an adjustment, which decides nothing.

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

const DATE: Names = &["date", "fecha", "datum", "dátum", "data"];
const ZONE: Names = &[
    "timezone",
    "time zone",
    "zona horaria",
    "zeitzone",
    "časové pásmo",
    "fuso orario",
    "fuseau horaire",
    "tijdzone",
    "strefa czasowa",
];
const CURRENCY: Names = &["currency", "divisa", "währung", "mena", "valuta", "devise", "waluta"];
const GROSS: Names = &["gross", "bruto", "brutto", "lordo", "avant commission"];
const FEE: Names = &[
    "fee",
    "comisión",
    "gebühr",
    "entgelt",
    "poplatok",
    "tariffa",
    "commission",
    "kosten",
    "opłata",
];
const NET: Names = &["net", "neto", "netto"];
const BALANCE: Names = &["balance", "saldo", "guthaben", "zostatok", "solde"];
const ID: Names = &[
    "transaction id",
    "id de transacción",
    "transaktionscode",
    "id transakcie",
    "codice transazione",
    "numéro de transaction",
    "transactiereferentie",
    "transactie id",
    "numer transakcji",
];

/// All of these are there.
const NEEDED: [Names; 8] = [DATE, ZONE, CURRENCY, GROSS, FEE, NET, BALANCE, ID];

/// All of these are there in the download of a personal account, and so are fees and total, or
/// neither of them.
const PERSONAL: &[&str] = &["date", "name", "type", "status", "currency", "amount", "receipt id"];

const AMOUNT: Names = &["amount"];
const FEES: Names = &["fees"];
const TOTAL: Names = &["total"];

const KIND: Names = &[
    "type",
    "description",
    "tipo",
    "descripción",
    "typ",
    "beschreibung",
    "descrizione",
    "omschrijving",
    "opis",
];
const STATUS: Names = &["status", "estado", "stav", "stato", "état"];
const INVOICE: Names =
    &["invoice number", "invoice id", "id de factura", "rechnungsnummer", "číslo faktúry"];
const ORIGINAL: Names =
    &["reference txn id", "id de referencia de trans", "codice transazione di riferimento"];

/// The column that says of a row which way it moved the balance.
const IMPACT: Names = &[
    "balance impact",
    "auswirkung auf guthaben",
    "impact sur le solde",
    "impatto sul saldo",
    "effect op saldo",
    "wpływ na saldo",
];

/// Its words for a row that moved nothing.
const MEMO: [&str; 2] = ["memo", "mémo"];

/// Its words for one that moved money, in or out.
const MOVES: [&str; 10] =
    ["credit", "debit", "haben", "soll", "crédit", "débit", "accredito", "addebito", "bij", "af"];

/// Words for what is done; a statement has no column of them.
const DONE: [&str; 9] = [
    "",
    "completed",
    "completado",
    "completada",
    "completata",
    "abgeschlossen",
    "dokončené",
    "terminé",
    "voltooid",
];

/// Words for what is not done yet. Another word says nothing of a balance that stays.
const PENDING: [&str; 6] =
    ["pending", "en attente", "ausstehend", "pendiente", "in sospeso", "in behandeling"];

/// Words in the kind of a row that keeps money aside, or lets it go.
const HOLDS: [&str; 21] = [
    "hold",
    "authorization",
    "preauthorization",
    "reauthorization",
    "release",
    "void",
    "order",
    "einbehalt",
    "einbehaltung",
    "autorisierung",
    "retenue",
    "suspension",
    "blocage",
    "autorisation",
    "retención",
    "autorización",
    "trattenuta",
    "blocco",
    "autorizzazione",
    "autorisatie",
    "reservering",
];

/// Words in the kind of a row that asks somebody for money.
const REQUESTS: [&str; 12] = [
    "request",
    "invoice",
    "anforderung",
    "geldanforderung",
    "rechnung",
    "demande",
    "solicitud",
    "richiesta",
    "verzoek",
    "betaalverzoek",
    "prośba",
    "žiadosť",
];

/// Words in the kind of a row that may take all that a currency held.
const EMPTIES: [&str; 2] = ["conversion", "withdrawal"];

/// The kinds of a row that asks whether money is there: it is never moved by that.
const AUTHORIZATION: [&str; 2] = ["general authorization", "allgemeine autorisierung"];

/// What a balance is for.
const SHOWN_BY: &str = "a balance behind each row, that shows which of them moved money";

/// So many rows of the head are looked at for marks.
const ROWS: usize = 2_000;

/// A head so long may end within a row.
const LONG: usize = 32 * 1024;

fn is_activity(names: &[String]) -> bool {
    is_long(names) || sheet::has(names, PERSONAL)
}

/// With gross, fee and net.
fn is_long(names: &[String]) -> bool {
    let is_there = |own: &Names| own.iter().any(|name| sheet::has(names, &[*name]));
    NEEDED.iter().all(is_there)
}

/// Where the gross stands, and fee and net, where there are any.
fn amounts_of(layout: &Layout) -> Result<(usize, Option<[usize; 2]>), Problem> {
    if is_long(&layout.names) {
        return Ok((need(layout, GROSS)?, Some([need(layout, FEE)?, need(layout, NET)?])));
    }
    let is_bare = layout.column(FEES).is_none() && layout.column(TOTAL).is_none();
    let rest = match is_bare {
        true => None,
        false => Some([need(layout, FEES)?, need(layout, TOTAL)?]),
    };
    Ok((need(layout, AMOUNT)?, rest))
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
        let Ok((gross, rest)) = amounts_of(&layout) else { return marks };
        let mut amounts = vec![gross];
        amounts.extend(rest.into_iter().flatten().chain(layout.column(BALANCE)));
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
    gross: usize,
    /// Fee and net.
    rest: Option<[usize; 2]>,
    balance: usize,
    impact: Option<usize>,
    /// The short download of a personal account has none.
    id: Option<usize>,
    kind: Option<usize>,
    status: Option<usize>,
    invoice: Option<usize>,
    original: Option<usize>,
    balances: BTreeMap<Currency, i64>,
    /// The line of a row that is done, and shows no balance.
    unshown: Option<u64>,
    /// A balance was another one than what moved makes it.
    broken: bool,
    undated: bool,
    once: Once,
    proven: Proven,
    layout: Layout,
}

fn has_word(kind: &str, words: &[&str]) -> bool {
    kind.split(|c: char| !c.is_alphabetic()).any(|own| is_one_of(own, words))
}

fn is_one_of(text: &str, words: &[&str]) -> bool {
    words.contains(&text.to_lowercase().as_str())
}

/// Whether a row's kind says that money is kept aside, or let go.
fn is_hold(kind: &str) -> bool {
    has_word(kind, &HOLDS)
}

fn need(layout: &Layout, names: Names) -> Result<usize, Problem> {
    let first = names.first().copied().unwrap_or_default();
    layout.one(names)?.map_or_else(|| layout.need(first), Ok)
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
        let (gross, rest) = amounts_of(&layout)?;
        let found = "no column of one";
        let balance = layout.one(BALANCE)?;
        let balance = balance.ok_or_else(|| Problem::error(1, "balance", SHOWN_BY, found))?;
        Ok(Self {
            date: need(&layout, DATE)?,
            order,
            numerals,
            currency: need(&layout, CURRENCY)?,
            gross,
            rest,
            balance,
            impact: layout.one(IMPACT)?,
            id: layout.one(ID)?,
            kind: layout.one(KIND)?,
            status: layout.one(STATUS)?,
            invoice: layout.one(INVOICE)?,
            original: layout.one(ORIGINAL)?,
            balances: BTreeMap::new(),
            unshown: None,
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
        let read = self.numerals.read_sure(text, currency);
        read.map_err(|refused| refused.at(row.line, name, text, currency))
    }

    /// Gross, fee and net. A fee that the file does not tell is none, as its balances show.
    fn amounts(&self, row: &Row<'_>, currency: Currency) -> Result<[i64; 3], Problem> {
        let gross = self.read(row, self.gross, currency)?;
        let Some(rest) = self.rest else { return Ok([gross, 0, gross]) };
        let [fee, net] = rest.map(|at| self.read(row, at, currency));
        Ok([gross, fee?, net?])
    }

    fn check(&mut self, row: &Row<'_>, minor: [i64; 3], currency: Currency, out: &mut Out) {
        if self.rest.is_none() {
            // Its balance alone says something of it; one that does not hold was told.
            if !row.get(self.balance).is_empty() {
                self.proven.row(true);
            }
            return;
        }
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

    fn is_done(&self, row: &Row<'_>) -> bool {
        is_one_of(row.maybe(self.status), &DONE)
    }

    /// Whether the row's words say that it moved nothing, as a balance does that stays: not where
    /// it may have paid another row, and the balance is that behind both.
    fn is_still(&self, row: &Row<'_>, net: i64) -> bool {
        let kind = row.maybe(self.kind);
        let is_pending = is_one_of(row.maybe(self.status), &PENDING);
        let is_payment = kinds::paypal_activity(kind, Direction::Credit) == LineKind::Payment;
        is_hold(kind) || is_pending && (net < 0 || is_payment)
    }

    /// Whether the row moved its net, by the balance behind it.
    fn moved(
        &mut self,
        row: &Row<'_>,
        net: i64,
        currency: Currency,
        out: &mut Out,
    ) -> Result<bool, Problem> {
        let is_memo = is_one_of(row.maybe(self.impact), &MEMO);
        if row.get(self.balance).is_empty() || is_memo {
            let is_done = self.is_done(row) && !is_memo && !is_hold(row.maybe(self.kind));
            self.unshown = self.unshown.or((is_done && net != 0).then_some(row.line));
            return Ok(false);
        }
        let balance = self.read(row, self.balance, currency)?;
        let Some(before) = self.balances.insert(currency, balance) else {
            return self.first_moved(row, [net, balance], currency);
        };
        if net != 0 && balance == before && self.is_still(row, net) {
            return Ok(false);
        }
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

    /// Whether the first row of a currency moved its net. No balance before it shows that, and its
    /// words must; nor what a fee took that is not told, unless the account held nothing. A payment
    /// in a further currency that leaves nothing is one whose conversion is not in the file, or has
    /// the balance behind both. Who only asked for money has moved none.
    fn first_moved(
        &self,
        row: &Row<'_>,
        [net, balance]: [i64; 2],
        currency: Currency,
    ) -> Result<bool, Problem> {
        let kind = row.maybe(self.kind);
        let impact = row.maybe(self.impact);
        let is_told = is_one_of(impact, &MOVES);
        if !impact.is_empty() && !is_told {
            let expected = format!("the way that the first row of {currency} moved it");
            return Err(Problem::error(row.line, "impact on the balance", expected, impact));
        }
        let is_asked = is_one_of(kind, &AUTHORIZATION);
        let is_from_nil = net == balance;
        if is_asked && (net == 0 || !is_from_nil) {
            return Ok(false);
        }
        if !is_asked && !self.is_done(row) {
            let expected = format!("a word for what is done, in the first row of {currency}");
            return Err(Problem::error(row.line, "status", expected, row.maybe(self.status)));
        }
        let is_further = self.balances.len() > 1;
        let is_drained = is_further && net < 0 && balance == 0 && !has_word(kind, &EMPTIES);
        let is_requested = has_word(kind, &REQUESTS) && !is_told;
        let is_open = is_drained || is_requested || is_hold(kind) || self.rest.is_none();
        if is_asked || !is_from_nil && is_open {
            let expected = format!("one that shows what the first row of {currency} moved");
            return Err(Problem::error(row.line, "balance", expected, row.get(self.balance)));
        }
        Ok(true)
    }

    /// The row's id. Without one it is known by its moment and the balance behind it: else rows
    /// that two downloads have would count twice.
    fn id(&self, row: &Row<'_>) -> String {
        if let Some(at) = self.id {
            return row.get(at).to_owned();
        }
        let (time, zone) = (self.layout.column(&["time"]), self.layout.column(ZONE));
        let moment = [row.get(self.date), row.maybe(time), row.maybe(zone)].join(" ");
        let money = [self.gross, self.balance, self.currency].map(|at| row.get(at)).join(" ");
        format!("{moment} {money}")
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
        let (id, booked_on) = (self.id(row), self.day(row, out));
        // A hold is told again, under its id, once it is over.
        let own = row.maybe(self.id.filter(|_| moved || !is_hold(row.maybe(self.kind))));
        out.extend(self.once.note(row.line, "transaction id", own, &[]));
        let (mut entry, mut line) = out.entry(row, net, currency);
        entry.status = if moved { EntryStatus::Booked } else { EntryStatus::Pending };
        entry.type_code = some(row.maybe(self.kind));
        entry.booked_on = booked_on;
        line.kind = kinds::paypal_activity(row.maybe(self.kind), entry.direction);
        entry.reversal = matches!(line.kind, LineKind::Return | LineKind::Chargeback);
        if self.rest.is_some() {
            line.gross = money(gross, currency);
            line.fee = money(fee.saturating_neg(), currency);
        }
        line.net = money(net, currency);
        line.tag(TagKind::OrderId, row.maybe(self.invoice));
        line.tag(TagKind::TransactionId, &id);
        line.psp_reference = self.id.and_then(|_own| some(&id));
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
            let is_reference = is(self.id) || is(self.invoice) || is(self.original);
            Some(Last::Other).filter(|_| is_reference)?
        };
        Some((last, 0))
    }

    fn end(&mut self, line: u64, out: &mut Out) {
        let unshown = self.unshown.filter(|_| self.balances.is_empty());
        if let Some(line) = unshown {
            out.push(Problem::error(line, "balance", SHOWN_BY, "none in the whole file"));
        }
        let is_broken = self.broken || unshown.is_some();
        let tie = if is_broken { Tie::Declared(false) } else { self.proven.tie() };
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

    /// The sums of credits and debits in the one currency of a file that ties and is read.
    fn sums(text: String) -> (i128, i128) {
        let found = look(text);
        let problems = &found.sums.problems;
        assert_eq!(found.format, Some(Format::PayPalActivity));
        assert_eq!(found.state, State::Ok, "{problems:?}");
        assert!(found.sums.statements.iter().all(|one| one.ties == Some(true)));
        let booked = found.sums.booked.values().next().unwrap();
        (booked.credit_minor, booked.debit_minor)
    }

    #[test]
    fn italian_french_dutch_and_polish_are_read() {
        for (names, done) in [
            (
                "Data,Orario,Fuso orario,Nome,Tipo,Stato,Valuta,Lordo,Tariffa,Netto,Saldo,\
                 Codice transazione",
                "Completata",
            ),
            (
                "Date,Heure,Fuseau horaire,Nom,Type,État,Devise,Avant commission,Commission,Net,\
                 Solde,Numéro de transaction",
                "Terminé",
            ),
            (
                "Datum,Tijd,Tijdzone,Naam,Type,Status,Valuta,Bruto,Kosten,Netto,Saldo,\
                 Transactie-ID",
                "Voltooid",
            ),
            (
                "Datum,Tijd,Tijdzone,Naam,Omschrijving,,Valuta,Bruto,Kosten,Netto,Saldo,\
                 Transactiereferentie",
                "",
            ),
            (
                "Data,Godzina,Strefa czasowa,Nazwa,Opis,,Waluta,Brutto,Opłata,Netto,Saldo,\
                 Numer transakcji",
                "",
            ),
        ] {
            let rows = format!(
                "{names}\n13/10/2026,10:02:11,CET,A,x,{done},EUR,\"1.012,00\",\"-0,77\",\
                 \"1.011,23\",\"1.111,23\",T1\n\
                 14/10/2026,09:00:00,CET,B,x,{done},EUR,\"-76,50\",\"0,00\",\"-76,50\",\
                 \"1.034,73\",T2\n"
            );
            assert_eq!(sums(rows), (101_123, 7_650), "{names}");
        }
    }

    const GERMAN: &str = "Datum;Uhrzeit;Zeitzone;Name;Typ;Status;Währung;Brutto;Gebühr;Netto;\
                          Transaktionscode;Guthaben";

    /// A German row: its kind, status, net, balance behind it and impact on the balance.
    fn german(id: u32, [kind, status, net, balance, impact]: [&str; 5]) -> String {
        format!(
            "13.10.2026;10:00:00;CET;A;{kind};{status};EUR;{net};0,00;{net};T{id};{balance}\
             {impact}\n"
        )
    }

    #[test]
    fn a_memo_is_one_in_every_language_wherever_it_stands() {
        let memo = german(1, ["Anforderung gesendet", "Abgeschlossen", "16,67", "1,28", ";Memo"]);
        let paid = german(2, ["Allgemeine Zahlung", "Abgeschlossen", "-1,00", "0,28", ";Soll"]);
        for column in [
            "Auswirkung auf Guthaben",
            "Impact sur le solde",
            "Impatto sul saldo",
            "Effect op saldo",
            "Wpływ na saldo",
            "Balance Impact",
        ] {
            for rows in [[&memo, &paid], [&paid, &memo]] {
                let rows = rows.map(String::as_str).concat();
                assert_eq!(sums(format!("{GERMAN};{column}\n{rows}")), (0, 100), "{column}");
            }
        }
        // A word that is not known shows nothing of a first row.
        let text = format!("{GERMAN};Effect op saldo\n{}", memo.replace("Memo", "Nota"));
        assert_eq!(look(text).state, State::Quarantined);
    }

    #[test]
    fn a_first_row_that_asks_or_holds_shows_nothing_in_any_language() {
        let paid = german(2, ["Allgemeine Zahlung", "Abgeschlossen", "-1,00", "0,28", ""]);
        let after = |kind| {
            let first = german(1, [kind, "Abgeschlossen", "-16,67", "1,28", ""]);
            format!("{GERMAN}\n{first}{paid}")
        };
        for kind in [
            "Anforderung gesendet",
            "Rechnung gesendet",
            "Request Sent",
            "Richiesta di denaro inviata",
            "Einbehaltung für offene Autorisierung",
            "Blocco del conto",
            "Annulation de suspension de compte standard",
            "Payment Release",
            "Account hold, temporary",
        ] {
            assert_eq!(look(after(kind)).state, State::Quarantined, "{kind}");
        }
        assert_eq!(sums(after("Allgemeine Zahlung")), (0, 1_767));
        assert_eq!(sums(after("Allgemeine Autorisierung")), (0, 100), "it never moved any");
    }

    #[test]
    fn holds_and_what_is_pending_leave_a_german_balance_as_it_was() {
        let text = format!(
            "{GERMAN}\n{}{}{}{}",
            german(1, ["Handyzahlung", "Abgeschlossen", "20,00", "20,00", ""]),
            german(2, ["Einbehaltung für Kauf", "Abgeschlossen", "-5,00", "20,00", ""]),
            german(3, ["Handyzahlung", "Ausstehend", "-7,00", "20,00", ""]),
            german(4, ["Handyzahlung", "Abgeschlossen", "-8,00", "12,00", ""]),
        );
        assert_eq!(sums(text), (2_000, 800));
        let done = german(3, ["Handyzahlung", "Abgeschlossen", "-7,00", "20,00", ""]);
        let first = german(1, ["Handyzahlung", "Abgeschlossen", "20,00", "20,00", ""]);
        assert_eq!(look(format!("{GERMAN}\n{first}{done}")).state, State::Quarantined);
    }

    const FULL: &str = "Date,Time,TimeZone,Name,Type,Status,Currency,Amount,Fees,Total,\
                        Exchange Rate,Receipt ID,Balance,Transaction ID,Item Title\n";

    /// A row of a personal account: its kind, status, amount, fee, total and balance.
    fn full(id: u32, what: [&str; 2], of: [&str; 4]) -> String {
        let ([kind, status], [amount, fee, total, balance]) = (what, of);
        format!(
            "04/29/2021,09:23:28,EDT,X,{kind},{status},USD,{amount},{fee},{total},,,{balance},\
             T{id},\n"
        )
    }

    #[test]
    fn amount_fees_and_total_are_gross_fee_and_net() {
        let found = look(format!(
            "{FULL}{}{}",
            full(1, ["Mobile Payment", "Completed"], ["24.00", "-1.00", "23.00", "23.00"]),
            full(2, ["General Withdrawal", "Completed"], ["-20.00", "0.00", "-20.00", "3.00"]),
        ));
        assert_eq!((found.format, found.state), (Some(Format::PayPalActivity), State::Ok));
        let booked = found.sums.booked.values().next().unwrap();
        assert_eq!((booked.credit_minor, booked.debit_minor), (2_300, 2_000));
        let not_net =
            full(1, ["Mobile Payment", "Completed"], ["24.00", "-1.00", "24.00", "24.00"]);
        assert_eq!(look(format!("{FULL}{not_net}")).state, State::Quarantined);
    }

    #[test]
    fn holds_and_what_is_pending_leave_the_balance_as_it_was() {
        let out = |balance| ["-184.30", "0.00", "-184.30", balance];
        let back = |balance| ["184.30", "0.00", "184.30", balance];
        let found = look(format!(
            "{FULL}{}{}{}{}{}{}{}",
            full(1, ["General Authorization", "Pending"], out("0.00")),
            full(2, ["Account Hold for Open Authorization", "Pending"], out("0.00")),
            full(3, ["Express Checkout Payment", "Completed"], out("-184.30")),
            full(4, ["Bank Deposit to PP Account", "Pending"], back("0.00")),
            full(5, ["Reversal of General Account Hold", "Completed"], back("0.00")),
            full(1, ["General Authorization", "Completed"], out("0.00")),
            full(7, ["Mobile Payment", "Pending"], out("0.00")),
        ));
        assert_eq!((found.state, found.sums.problems_total), (State::Ok, 0));
        let booked = found.sums.booked.values().next().unwrap();
        assert_eq!((booked.credit_minor, booked.debit_minor), (18_430, 18_430));
        assert_eq!(found.sums.statuses.get(&EntryStatus::Pending), Some(&5));
    }

    #[test]
    fn a_balance_that_stays_without_a_word_for_it_is_told() {
        // Both rows show the balance behind the two.
        for status in ["Completed", "Pending"] {
            let found = look(format!(
                "{FULL}{}{}",
                full(1, ["Website Payment", "Completed"], ["-10.99", "0.00", "-10.99", "0.00"]),
                full(2, ["General Card Deposit", status], ["10.99", "0.00", "10.99", "0.00"]),
            ));
            assert_eq!(found.state, State::Quarantined, "{status}");
        }
    }

    #[test]
    fn what_a_first_row_moved_must_be_shown() {
        let of = |balance| ["-52.62", "0.00", "-52.62", balance];
        let next = full(2, ["General Withdrawal", "Completed"], ["-5.00", "0.00", "-5.00", "0.00"]);
        let state = |kind, balance| {
            let first = full(1, [kind, "Completed"], of(balance));
            look(format!("{FULL}{first}{next}")).state
        };
        assert_eq!(state("General Authorization", "5.00"), State::Ok);
        assert_eq!(state("Account Hold for Open Authorization", "5.00"), State::Quarantined);
        assert_eq!(state("Website Payment", "5.00"), State::Ok);
        let found = look(format!(
            "{FULL}{}",
            full(1, ["General Authorization", "Completed"], of("-52.62"))
        ));
        assert_eq!((found.state, found.sums.entries), (State::Quarantined, 0));
    }

    #[test]
    fn a_payment_that_leaves_nothing_of_a_further_currency_is_told() {
        let state = |kind: &str, euros: &str| {
            let first = full(1, ["Mobile Payment", "Completed"], ["5.00", "0.00", "5.00", "5.00"]);
            let next = full(2, [kind, "Completed"], ["-10.00", "0.00", "-10.00", euros]);
            look(format!("{FULL}{first}{}", next.replace("USD", "EUR"))).state
        };
        assert_eq!(state("Website Payment", "0.00"), State::Quarantined);
        assert_eq!(state("Website Payment", "-10.00"), State::Ok);
        assert_eq!(state("Website Payment", "1.00"), State::Ok);
        assert_eq!(state("General Currency Conversion", "0.00"), State::Ok);
    }

    const SHORT: &str = "Date,Time,TimeZone,Name,Type,Status,Currency,Amount,Receipt ID,Balance\n";

    fn short(time: &str, kind: &str, amount: &str, balance: &str) -> String {
        format!("01/31/2024,{time},EST,X,{kind},Completed,USD,{amount},,{balance}\n")
    }

    #[test]
    fn an_amount_without_a_fee_is_proven_by_its_balance() {
        let deposit = short("11:24:55", "General Card Deposit", "353.97", "0.00");
        let text = format!(
            "{SHORT}{}{deposit}{}{}",
            short("11:24:54", "Express Checkout Payment", "-353.97", "-353.97"),
            short("12:00:00", "General Authorization", "-9.00", "0.00"),
            short("12:00:00", "Mobile Payment", "20.00", "20.00"),
        );
        assert_eq!(sums(text), (37_397, 35_397));
        // A fee that is not told, in a row and in the first one.
        let fee = short("12:00:00", "Mobile Payment", "20.00", "19.42");
        let first = short("11:24:54", "Express Checkout Payment", "-353.97", "-353.97");
        for rows in [format!("{first}{deposit}{fee}"), fee] {
            assert_eq!(look(format!("{SHORT}{rows}")).state, State::Quarantined, "{rows}");
        }
    }

    #[test]
    fn a_row_without_an_id_is_known_by_its_moment_and_its_balance() {
        let id = |balance| {
            let row = short("11:24:54", "Express Checkout Payment", "-353.97", balance);
            let input = Box::new(Cursor::new(format!("{SHORT}{row}").into_bytes()));
            let mut parse = open(Source::open(input, None).unwrap());
            while let Some(item) = parse.next().unwrap() {
                if let crate::settlement::Item::Line(line) = item {
                    assert!(line.psp_reference.is_none(), "PayPal says none");
                    let own = line.tags.into_iter().find(|of| of.kind == TagKind::TransactionId);
                    return own.map(|of| of.text);
                }
            }
            None
        };
        assert_eq!(id("-353.97").as_deref(), Some("01/31/2024 11:24:54 EST -353.97 -353.97 USD"));
    }

    #[test]
    fn a_personal_download_without_balances_is_refused() {
        let row = |balance: &str| {
            full(1, ["Website Payment", "Completed"], ["-17.99", "0", "-17.99", balance])
        };
        let empty = format!("{FULL}{}", row(""));
        let without = [FULL, &row("")].concat().replace("Balance,", "").replace(",,,,T1", ",,,T1");
        let short = "Date,Name,Type,Status,Currency,Amount,Receipt ID,Transaction ID\n\
                     01/25/2026,X,Mobile Payment,Completed,USD,-4.50,,T1\n";
        for text in [empty, without, short.to_owned()] {
            let found = look(text.clone());
            assert_eq!(found.format, Some(Format::PayPalActivity), "{text}");
            assert_eq!(found.state, State::Quarantined, "{text}");
            assert!(found.sums.booked.values().all(|one| one.debit_minor == 0), "{text}");
            assert!(found.sums.problems.iter().any(|one| one.expected == SHOWN_BY), "{text}");
        }
    }
}
