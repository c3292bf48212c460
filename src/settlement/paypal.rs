//! PayPal's Settlement report (STL) and Transaction detail report (TRR).
//!
//! Specification: developer.paypal.com, "Settlement Report" and "Transaction Detail Report". Rows
//! begin with their kind: RH and FH (report, file), SH (an account and its period), CH (the names
//! of the columns), SB (the body), SF (an account's sums of a currency), SC (its count of rows), RF
//! and RC (the same of the report), FF. The columns of SB are bound by the names in CH.
//!
//! Amounts are unsigned and without a decimal mark; `CR` or `DR` stands beside them, for the gross
//! and for the fee. An entry here is the gross. The footers are the control: a file without any was
//! cut, and so was one that has a header (RH, FH) and not its last footer. A currency that no
//! footer sums up must come to nothing, as where PayPal converted it all.
//!
//! The detail report says of each row what became of it: a payment or refund that was reversed (V)
//! came back. Its entry and its sums are the file's own, as the footers count them; its line is
//! told the way that the money went back ([`booked_way`]), since it settles nothing. Another row
//! takes the money back, in this or in another file.
//!
//! [`booked_way`]: crate::model::settlement::booked_way
//!
//! What the specification says of currencies without decimals can be read two ways (a hundred times
//! apart), so a file that moves JPY, HUF or TWD is only read where its amounts show which.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::money::Currency;
use crate::model::settlement::{
    Control, Direction, EntryStatus, Finality, Found, Line, LineKind, Problem, Severity,
    StatementEnd, TagKind, Tie, UNDONE,
};
use crate::settlement::Parse;
use crate::settlement::amount::{minor, shown};
use crate::settlement::kinds;
use crate::settlement::numeral::Order;
use crate::settlement::once::Once;
use crate::settlement::sheet::{self, Layout, Out, Report, Row, currency, money, normal, some};
use crate::settlement::text::Source;

/// The kinds of rows.
const KINDS: [&str; 10] = ["RH", "FH", "SH", "CH", "SB", "SF", "SC", "RF", "RC", "FF"];

/// The names in CH that the body cannot be read without.
const NEEDED: &[&str] = &[
    "transaction id",
    "transaction event code",
    "transaction debit or credit",
    "gross transaction amount",
    "gross transaction currency",
];

/// Where CH stands, at the latest.
const HEAD_ROWS: usize = 20;

/// Settlement report.
pub fn recognise_stl(head: &str) -> Option<String> {
    let (layout, version) = head_of(head)?;
    (!is_detail(&layout)).then_some(version)
}

/// Transaction detail report.
pub fn recognise_trr(head: &str) -> Option<String> {
    let (layout, version) = head_of(head)?;
    is_detail(&layout).then_some(version)
}

/// Begins to read either.
pub fn open(mut source: Source) -> Box<dyn Parse> {
    let head = match source.head() {
        Ok(head) => String::from_utf8_lossy(head).into_owned(),
        Err(error) => return sheet::refused(crate::settlement::text::unreadable(1, &error)),
    };
    match head_of(&head) {
        Some((layout, _)) => sheet::read(source, layout.delimiter, PayPal::default()),
        None => {
            let expected = "rows of the kinds RH, SH, CH, SB";
            sheet::refused(Problem::error(1, "row", expected, "others"))
        }
    }
}

fn is_detail(layout: &Layout) -> bool {
    layout.has(&["transactional status"])
}

/// The columns as CH names them, and the version that RH tells.
fn head_of(head: &str) -> Option<(Layout, String)> {
    let layout = sheet::find(head, |names| {
        names.first().is_some_and(|kind| kind == "ch") && sheet::has(names, NEEDED)
    })?;
    let rows = sheet::rows_of(head, layout.delimiter, HEAD_ROWS);
    let known = |row: &Vec<String>| row.first().is_some_and(|kind| KINDS.contains(&kind.as_str()));
    let first = rows.first()?;
    if layout.above >= HEAD_ROWS || !rows.iter().take(layout.above).all(known) {
        return None;
    }
    let version = first.get(4).filter(|_| first.first().is_some_and(|kind| kind == "RH"));
    Some((layout, version.cloned().unwrap_or_default()))
}

/// Credits and debits.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Sides {
    credit: i128,
    debit: i128,
}

impl Sides {
    fn add(&mut self, direction: Direction, minor: i64) {
        let side = match direction {
            Direction::Credit => &mut self.credit,
            Direction::Debit => &mut self.debit,
        };
        *side = side.saturating_add(i128::from(minor));
    }

    fn net(self) -> i128 {
        self.credit.saturating_sub(self.debit)
    }
}

/// What the body holds of a currency.
#[derive(Debug, Default, Clone, Copy)]
struct Sum {
    gross: Sides,
    fee: Sides,
    rows: i128,
}

type Sums = BTreeMap<Currency, Sum>;

/// Side, amount and currency.
type Place = [Option<usize>; 3];

/// Where the columns of the body stand.
#[derive(Debug, Clone, Default)]
struct Columns {
    width: usize,
    gross: Place,
    fee: Place,
    event: Option<usize>,
    status: Option<usize>,
    completed: Option<usize>,
    initiated: Option<usize>,
    transaction: Option<usize>,
    reference: Option<usize>,
    reference_kind: Option<usize>,
    tags: Vec<(usize, TagKind)>,
}

impl Columns {
    fn of(layout: &Layout) -> Self {
        let at = |name: &str| layout.column(&[name]);
        let tags = [
            ("invoice id", TagKind::OrderId),
            ("custom field", TagKind::Custom),
            ("transaction id", TagKind::TransactionId),
            ("payment tracking id", TagKind::MerchantReference),
            ("bank reference id", TagKind::BankReference),
        ];
        Self {
            width: layout.names.len(),
            gross: GROSS.map(at),
            fee: FEE.map(at),
            event: at("transaction event code"),
            status: at("transactional status"),
            completed: at("transaction completion date"),
            initiated: at("transaction initiation date"),
            transaction: at("transaction id"),
            reference: at("paypal reference id"),
            reference_kind: at("paypal reference id type"),
            tags: tags.into_iter().filter_map(|(name, kind)| Some((at(name)?, kind))).collect(),
        }
    }
}

/// Whether the amounts of a currency show what they count.
#[derive(Debug, Default, Clone, Copy)]
struct Scale {
    moved: bool,
    shown: bool,
}

#[derive(Default)]
struct PayPal {
    columns: Option<Columns>,
    section: Sums,
    report: Sums,
    section_rows: i128,
    rows: i128,
    /// Currencies that a section left without a footer, and those that the report sums up.
    unsummed: BTreeSet<Currency>,
    in_section: BTreeSet<Currency>,
    in_report: BTreeSet<Currency>,
    footers: bool,
    /// The last kind of row that a file ends with: FF where it has an FH, else RC.
    whole: bool,
    /// There was an FH, and its number.
    in_file: bool,
    number: Option<String>,
    begun: bool,
    holds: bool,
    scales: BTreeMap<Currency, Scale>,
    once: Once,
}

impl PayPal {
    fn section(&mut self, row: &Row<'_>, out: &mut Out) {
        self.end_section(row.line, out);
        // A report of more rows than a file holds is in several, which FH numbers.
        let page = self.number.clone().filter(|number| number != "1");
        let from = out.day(row.line, "SH first day", row.get(1), Order::Unknown);
        let to = out.day(row.line, "SH last day", row.get(2), Order::Unknown);
        out.begin(row.line, Finality::Final, |statement| {
            (statement.from, statement.to) = (from, to);
            statement.account = some(row.get(3));
            statement.id = statement.to.map(|day| day.to_string());
            statement.page = page;
        });
        self.holds = true;
    }

    fn end_section(&mut self, line: u64, out: &mut Out) {
        let sums = std::mem::take(&mut self.section);
        let summed = std::mem::take(&mut self.in_section);
        self.unsummed.extend(sums.keys().filter(|currency| !summed.contains(currency)));
        self.section_rows = 0;
        let tie = if self.footers { Tie::Declared(self.holds) } else { Tie::Balances };
        out.end(StatementEnd { line, tie, ..StatementEnd::default() });
    }

    fn columns(&mut self, row: &Row<'_>) -> Result<(), Problem> {
        let shown: Vec<String> = (0..row.width()).map(|at| row.get(at).to_owned()).collect();
        let names = shown.iter().map(|name| normal(name)).collect();
        let layout = Layout { delimiter: b',', above: 0, names, shown };
        for name in NEEDED {
            layout.need(name).map_err(|problem| Problem { line: row.line, ..problem })?;
        }
        self.columns = Some(Columns::of(&layout));
        Ok(())
    }

    fn body(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        let Some(columns) = &self.columns else {
            return Err(Problem::error(row.line, "SB", "names of columns (CH) before it", "none"));
        };
        if row.width() != columns.width {
            let (expected, found) = (format!("{} fields", columns.width), row.width());
            return Err(Problem::error(row.line, "SB", expected, found.to_string()));
        }
        // The two sides of a conversion may share an id.
        let [side, _, code] = columns.gross.map(|at| row.maybe(at));
        let own = [row.maybe(columns.event), row.maybe(columns.status), side, code];
        let transaction = row.maybe(columns.transaction);
        let twice = self.once.note(row.line, "Transaction ID", transaction, &own);
        twice.into_iter().for_each(|problem| out.push(problem));
        let gross = amount(row, columns.gross, GROSS)?;
        let fee = amount(row, columns.fee, FEE)?;
        let Some((direction, gross_minor, gross_currency)) = gross else {
            let expected = "an amount, its currency, and CR or DR";
            return Err(Problem::error(row.line, "Gross Transaction Amount", expected, "nothing"));
        };
        let kind = kinds::paypal(row.maybe(columns.event), direction);
        let came_back = matches!(kind, LineKind::Payment | LineKind::Refund)
            && row.maybe(columns.status).eq_ignore_ascii_case(UNDONE);
        let signed = match direction {
            Direction::Credit => gross_minor,
            Direction::Debit => gross_minor.saturating_neg(),
        };
        let (mut entry, mut line) = out.entry(row, signed, gross_currency);
        entry.direction = direction;
        entry.type_code = some(row.maybe(columns.event));
        line.kind = if came_back { LineKind::Return } else { kind };
        entry.reversal = is_reversal(row.maybe(columns.event));
        entry.status = status(row, columns)?;
        let booked = match row.maybe(columns.completed) {
            "" => row.maybe(columns.initiated),
            completed => completed,
        };
        entry.booked_on = out.day(row.line, "completion date", booked, Order::Unknown);
        line.gross = money(signed, gross_currency);
        if let Some((side, minor, currency)) = fee {
            let is_taken = side == Direction::Debit;
            let taken = if is_taken { minor } else { minor.saturating_neg() };
            line.fee = money(taken, currency);
            let net = signed.checked_sub(taken).filter(|_| currency == gross_currency);
            line.net = net.and_then(|net| money(net, currency));
        }
        tags(row, columns, &mut line);
        if came_back {
            line.original_reference = some(transaction);
            line.return_reason = some(UNDONE);
        }
        out.tell_the_way(entry, line, if came_back { direction.opposite() } else { direction });
        for (sides, part) in [(true, gross), (false, fee)] {
            let Some((direction, minor, currency)) = part else { continue };
            self.add(sides, direction, minor, currency);
        }
        self.rows = self.rows.saturating_add(1);
        self.section_rows = self.section_rows.saturating_add(1);
        for sums in [&mut self.section, &mut self.report] {
            let sum = sums.entry(gross_currency).or_default();
            sum.rows = sum.rows.saturating_add(1);
        }
        Ok(())
    }

    fn add(&mut self, is_gross: bool, direction: Direction, minor: i64, currency: Currency) {
        for sums in [&mut self.section, &mut self.report] {
            let sum = sums.entry(currency).or_default();
            let sides = if is_gross { &mut sum.gross } else { &mut sum.fee };
            sides.add(direction, minor);
        }
        let scale = self.scales.entry(currency).or_default();
        scale.moved |= minor != 0;
        scale.shown |= minor % 100 != 0;
    }

    /// SF or RF: the sums of a currency.
    fn footer(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        self.footers = true;
        let kind = row.get(0);
        let of_report = kind == "RF";
        let currency = currency(row, &format!("{kind} currency"), row.get(1))?;
        let (sums, summed) = match of_report {
            true => (&self.report, &mut self.in_report),
            false => (&self.section, &mut self.in_section),
        };
        summed.insert(currency);
        let sum = sums.get(&currency).copied().unwrap_or_default();
        for (at, name, found) in [
            (2, "gross credits", sum.gross.credit),
            (3, "gross debits", sum.gross.debit),
            (4, "fee credits", sum.fee.credit),
            (5, "fee debits", sum.fee.debit),
        ] {
            let field = format!("{kind} {name}");
            let expected = i128::from(digits(row, &field, row.get(at))?);
            self.holds &= expected == found;
            let (line, found) = (row.line, Found::Is(found));
            let (currency, severity) = (Some(currency), Severity::Error);
            out.push(Control { line, field, expected, found, currency, severity });
        }
        let last = (6..row.width()).rev().map(|at| row.get(at)).find(|text| !text.is_empty());
        // Other rows than SB are counted by some; the sums above are what proves.
        if let Some(count) = last.and_then(|text| text.parse::<i128>().ok()) {
            out.push(Control {
                line: row.line,
                field: format!("{kind} rows in {currency}"),
                expected: count,
                found: Found::Is(sum.rows),
                currency: None,
                severity: Severity::Warning,
            });
        }
        Ok(())
    }

    /// SC, RC or FF: how many rows there are.
    fn count(&mut self, row: &Row<'_>, found: i128, out: &mut Out) -> Result<(), Problem> {
        self.footers = true;
        let (line, field) = (row.line, format!("{} count of rows", row.get(0)));
        let expected = i128::from(digits(row, &field, row.get(1))?);
        self.holds &= expected == found;
        let (found, severity) = (Found::Is(found), Severity::Error);
        out.push(Control { line, field, expected, found, currency: None, severity });
        Ok(())
    }

    fn cut(&self, line: u64, out: &mut Out) {
        if !self.footers || self.begun && !self.whole {
            let expected = "the sums and counts that end a report (SF, SC, RF, RC, FF)";
            let found = match (self.footers, self.in_file) {
                (false, _) => "none: the file was cut",
                (true, true) => "no FF: the file was cut",
                (true, false) => "no RC: the file was cut",
            };
            out.push(Problem::error(line, "footer", expected, found));
        }
        for currency in self.unsummed.difference(&self.in_report) {
            let sum = self.report.get(currency).copied().unwrap_or_default();
            let net = sum.gross.net().saturating_add(sum.fee.net());
            if net != 0 && self.footers {
                let expected = format!("a footer that sums up {currency}, or nothing left of it");
                let found = shown(net, Some(*currency));
                out.push(Problem::error(line, "footer", expected, found));
            }
        }
    }

    fn scaled(&self, line: u64, out: &mut Out) {
        for (currency, scale) in self.scales.iter().filter(|(_, scale)| scale.moved) {
            let known = match (currency.code(), currency.exponent()) {
                ("HUF" | "TWD", _) => false,
                (_, 2) => true,
                // A hundredth of a yen does not exist.
                (_, 0) => scale.shown,
                _unknown => false,
            };
            if !known {
                let expected = format!(
                    "amounts that show whether {currency} is written with decimals; describe \
                     this file as a [[format]] that says it"
                );
                let found = "amounts that could be either, a hundred times apart";
                out.push(Problem::error(line, "Gross Transaction Amount", expected, found));
            }
        }
    }
}

impl Report for PayPal {
    fn row(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        match row.get(0) {
            kind @ ("RH" | "FH") => {
                self.begun = true;
                self.in_file |= kind == "FH";
                if kind == "FH" {
                    self.number = some(row.get(1));
                }
                Ok(())
            }
            "SH" => {
                self.section(row, out);
                Ok(())
            }
            "CH" => {
                if !out.is_open() {
                    self.holds = true;
                    out.begin(row.line, Finality::Final, |_statement| {});
                }
                self.columns(row)
            }
            "SB" => self.body(row, out),
            "SF" => self.footer(row, out),
            "SC" => self.count(row, self.section_rows, out),
            "RF" => self.footer(row, out),
            kind @ ("RC" | "FF") => {
                // Of a report in several files only the last has RF and RC.
                self.whole |= kind == "FF" || !self.in_file;
                self.count(row, self.rows, out)
            }
            other => Err(Problem::error(row.line, "row", KINDS.join(", "), other)),
        }
    }

    fn end(&mut self, line: u64, out: &mut Out) {
        self.end_section(line, out);
        self.cut(line, out);
        self.scaled(line, out);
    }
}

const GROSS: [&str; 3] =
    ["transaction debit or credit", "gross transaction amount", "gross transaction currency"];

const FEE: [&str; 3] = ["fee debit or credit", "fee amount", "fee currency"];

type Part = Option<(Direction, i64, Currency)>;

/// What became of a row; the settlement report lists what was done alone.
fn status(row: &Row<'_>, columns: &Columns) -> Result<EntryStatus, Problem> {
    if columns.status.is_none() {
        return Ok(EntryStatus::Booked);
    }
    match row.maybe(columns.status) {
        "P" | "p" => Ok(EntryStatus::Pending),
        "D" | "d" => Ok(EntryStatus::Info),
        // Done; given back in part; done, and reversed later.
        "S" | "s" | "F" | "f" | "V" | "v" => Ok(EntryStatus::Booked),
        other => Err(Problem::error(row.line, "Transactional Status", "S, P, D, V or F", other)),
    }
}

/// An amount with its side and currency; nothing where the amount is left out.
fn amount(row: &Row<'_>, at: Place, names: [&str; 3]) -> Result<Part, Problem> {
    let [side_name, amount_name, currency_name] = names;
    let [side, text, code] = at.map(|at| row.maybe(at));
    if text.is_empty() {
        return Ok(None);
    }
    let minor = digits(row, amount_name, text)?;
    let direction = match side {
        "CR" | "cr" => Direction::Credit,
        "DR" | "dr" => Direction::Debit,
        "" if minor == 0 => Direction::Credit,
        other => return Err(Problem::error(row.line, side_name, "CR or DR", other)),
    };
    if code.is_empty() && minor == 0 {
        return Ok(None);
    }
    Ok(Some((direction, minor, currency(row, currency_name, code)?)))
}

/// Minor units; some versions write nothing as `0.00`.
fn digits(row: &Row<'_>, field: &str, text: &str) -> Result<i64, Problem> {
    if text.is_empty() || text == "0.00" {
        return Ok(0);
    }
    minor(text).map_err(|_refused| {
        Problem::error(row.line, field, "digits without a sign or a decimal mark", text)
    })
}

fn tags(row: &Row<'_>, columns: &Columns, line: &mut Line) {
    for (at, kind) in &columns.tags {
        line.tag(*kind, row.get(*at));
    }
    line.psp_reference = some(row.maybe(columns.transaction));
    if row.maybe(columns.reference_kind) == "TXN" {
        line.original_reference = some(row.maybe(columns.reference));
    }
}

/// T-codes of reversals, chargebacks and what takes those back (T11xx, T12xx), but for refunds
/// that the merchant made (T1107) and holds.
fn is_reversal(code: &str) -> bool {
    let code = code.to_ascii_uppercase();
    matches!(code.as_str(), "T1101" | "T1102" | "T1103" | "T1106" | "T1108" | "T1109")
        || code.starts_with("T12")
}
