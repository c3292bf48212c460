//! Checkout.com's settlement breakdown, a row for each action; its financial actions, a row for
//! each part of one; and its payouts, a row for each payout. Columns: checkout.com docs, "Reports".
//!
//! Amounts carry their sign and deductions are negative: gross + deduction = net in the holding
//! currency. The `Merchant Payout` row of a breakdown is the fee of paying out, so the nets of a
//! payout's rows are what it pays.
//!
//! It reckons in fractions of a minor unit, with up to eight decimals. Sums are held and compared
//! exactly. A row is told in whole minor units: those by which the rounded sum of its payout grows
//! with it, so that the rows come to the rounded payout, and none is off by more than one. What a
//! payment is compared by is its own amount, rounded for itself, in the currency that the customer
//! paid in: the processing currency, which may be another one.
//!
//! An authorization, a void and a verification of a card move no money: what stands in their rows
//! is the fee of them, which goes out. The equation holds with all signs turned as well, so that
//! the kind of a row must agree with them.

use std::collections::BTreeMap;

use crate::model::money::{Currency, decimal_text};
use crate::model::settlement::{Finality, LineKind, Problem, SignedMoney, StatementEnd, TagKind};
use crate::settlement::Parse;
use crate::settlement::amount::{Refused, shown};
use crate::settlement::kinds;
use crate::settlement::last_row::Last;
use crate::settlement::numeral::{Numerals, Order};
use crate::settlement::once::{Once, Unknown, is_no_row};
use crate::settlement::proven::Proven;
use crate::settlement::sheet::{self, Layout, Out, Report, Row, currency, money, some};
use crate::settlement::text::Source;

const BREAKDOWN: &[&str] =
    &["type", "payment id", "reference", "holding currency", "net in holding currency"];

const PAYOUTS: &[&str] = &["payout id", "payout date", "payout amount", "holding currency"];

const ACTIONS: &[&str] =
    &["payment id", "action type", "breakdown type", "holding currency", "holding currency amount"];

const NET: &str = "Net In Holding Currency";
const AMOUNT: &str = "Holding Currency Amount";
const PAYOUT: &str = "Payout Amount";

/// What a row of an authorization may hold.
const FEE_ALONE: &str = "the fee of it alone, with a minus: it moves no money";

/// The decimals that it reckons with.
const PLACES: u32 = 8;

/// A file is of one payout, or of those of some days.
const PAYOUTS_MAX: usize = 10_000;

/// The settlement breakdown.
pub fn recognise_breakdown(head: &str) -> Option<String> {
    sheet::find(head, |names| sheet::has(names, BREAKDOWN)).map(|_| String::new())
}

/// The list of payouts.
pub fn recognise_payouts(head: &str) -> Option<String> {
    sheet::find(head, |names| sheet::has(names, PAYOUTS)).map(|_| String::new())
}

/// The financial actions.
pub fn recognise_actions(head: &str) -> Option<String> {
    sheet::find(head, |names| sheet::has(names, ACTIONS)).map(|_| String::new())
}

/// Begins to read a breakdown.
pub fn open_breakdown(source: Source) -> Box<dyn Parse> {
    sheet::read_below(source, |names| sheet::has(names, BREAKDOWN), Breakdown::new)
}

/// Begins to read payouts.
pub fn open_payouts(source: Source) -> Box<dyn Parse> {
    sheet::read_below(source, |names| sheet::has(names, PAYOUTS), Payouts::new)
}

/// Begins to read financial actions.
pub fn open_actions(source: Source) -> Box<dyn Parse> {
    sheet::read_below(source, |names| sheet::has(names, ACTIONS), Actions::new)
}

/// A minor unit, at [`PLACES`] decimals.
fn unit(currency: Currency) -> i128 {
    10_i128.saturating_pow(PLACES.saturating_sub(currency.exponent()))
}

/// An amount at [`PLACES`] decimals.
fn fine(row: &Row<'_>, field: &str, text: &str, currency: Currency) -> Result<i128, Problem> {
    let read = Numerals::PLAIN.read_at(text, currency, PLACES).and_then(|fine| {
        let fits = i64::try_from(fine / unit(currency)).is_ok();
        if fits { Ok(fine) } else { Err(Refused::TooLarge) }
    });
    read.map_err(|refused| match refused {
        Refused::TooFine => {
            Problem::error(row.line, field, format!("at most {PLACES} decimals"), text)
        }
        other => other.at(row.line, field, text, currency),
    })
}

/// In minor units, halves upwards. Whole units beside a fraction never change how it is rounded,
/// so that a row of whole units keeps its own amount.
fn rounded(fine: i128, currency: Currency) -> i128 {
    let unit = unit(currency);
    fine.saturating_add(unit / 2).div_euclid(unit)
}

/// An amount in the last column: one that is not there may have been cut off.
fn last_money(row: &Row<'_>, at: usize) -> Last {
    if row.get(at).is_empty() { Last::Unsure } else { Last::Money(Some(b'.')) }
}

fn sign_of(fine: i128) -> i64 {
    i64::try_from(fine.signum()).unwrap_or(0)
}

fn is_whole(fine: i128, currency: Currency) -> bool {
    fine.rem_euclid(unit(currency)) == 0
}

fn shown_fine(fine: i128, currency: Currency) -> String {
    if is_whole(fine, currency) {
        shown(rounded(fine, currency), Some(currency))
    } else {
        format!("{} {currency}", decimal_text(fine, PLACES))
    }
}

/// One amount in minor units.
fn nearest(row: &Row<'_>, field: &str, fine: i128, currency: Currency) -> Result<i64, Problem> {
    i64::try_from(rounded(fine, currency)).map_err(|_too_large| {
        Refused::TooLarge.at(row.line, field, &decimal_text(fine, PLACES), currency)
    })
}

/// The exact sums of payouts, by their ids and currencies.
#[derive(Default)]
struct Running {
    of: BTreeMap<(String, Currency), Sum>,
}

#[derive(Default)]
struct Sum {
    exact: i128,
    /// Whether a row of it was no whole number of minor units, and the last row's line.
    is_fine: bool,
    line: u64,
}

impl Running {
    /// What a row of a payout is in minor units.
    fn add(
        &mut self,
        row: &Row<'_>,
        payout: &str,
        fine: i128,
        currency: Currency,
    ) -> Result<i64, Problem> {
        let key = (payout.to_owned(), currency);
        if self.of.len() >= PAYOUTS_MAX && !self.of.contains_key(&key) {
            let expected = format!("at most {PAYOUTS_MAX} payouts in a file");
            return Err(Problem::error(row.line, "Payout ID", expected, payout));
        }
        let sum = self.of.entry(key).or_default();
        let after = sum.exact.saturating_add(fine);
        let minor = rounded(after, currency).saturating_sub(rounded(sum.exact, currency));
        let minor = i64::try_from(minor).map_err(|_too_large| {
            let text = decimal_text(fine, PLACES);
            Refused::TooLarge.at(row.line, "Holding Currency", &text, currency)
        })?;
        sum.exact = after;
        sum.is_fine |= !is_whole(fine, currency);
        sum.line = row.line;
        Ok(minor)
    }

    /// Whether no row of a payout came yet.
    fn is_new(&self, payout: &str, currency: Currency) -> bool {
        !self.of.contains_key(&(payout.to_owned(), currency))
    }

    /// Says what was rounded.
    fn tell(&self, field: &str, out: &mut Out) {
        for ((payout, currency), sum) in self.of.iter().filter(|(_, sum)| sum.is_fine) {
            let told = shown(rounded(sum.exact, *currency), Some(*currency));
            let of = if payout.is_empty() { "" } else { &format!(" of payout {payout}") };
            let expected = format!("whole minor units; its rows{of} were rounded, to {told}");
            let found = format!("{} {currency}", decimal_text(sum.exact, PLACES));
            out.push(Problem::warning(sum.line, field, expected, found));
        }
    }
}

/// Where the money stands that the customer paid, or got back.
struct Processing {
    currency: Option<usize>,
    amount: Option<usize>,
}

impl Processing {
    fn new(layout: &Layout, amount: &str) -> Result<Self, Problem> {
        let currency = layout.one(&["processing currency"])?;
        Ok(Self { currency, amount: layout.one(&[amount])? })
    }

    /// That money of a row of this kind, where it is in another currency than what is held of it.
    fn money(
        &self,
        (row, layout): (&Row<'_>, &Layout),
        kind: LineKind,
        (held, holding): (i128, Currency),
    ) -> Result<Option<SignedMoney>, Problem> {
        let (code, text) = (row.maybe(self.currency), row.maybe(self.amount));
        let is_customers = held != 0 && !matches!(kind, LineKind::Fee | LineKind::Adjustment);
        if !is_customers || code.is_empty() || text.is_empty() {
            return Ok(None);
        }
        let own = currency(row, "Processing Currency", code)?;
        if own == holding {
            return Ok(None);
        }
        let name = self.amount.and_then(|at| layout.shown.get(at)).map_or("", String::as_str);
        let exact = fine(row, name, text, own)?;
        if sign_of(exact) != sign_of(held) {
            let expected = format!("the side of what is held, {}", shown_fine(held, holding));
            return Err(Problem::error(row.line, name, expected, text));
        }
        Ok(money(nearest(row, name, exact, own)?, own))
    }

    /// What one of the two columns says, where it is the last.
    fn last(&self, row: &Row<'_>, at: usize) -> Option<Last> {
        let (code, text) = (row.maybe(self.currency), row.maybe(self.amount));
        if self.amount == Some(at) {
            return (!code.is_empty()).then(|| last_money(row, at));
        }
        // A row of fees has none.
        let is_of_money = self.currency == Some(at) && !matches!(text, "" | "0");
        (is_of_money && Currency::parse_any(code).is_err()).then_some(Last::Unsure)
    }
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
    processing: Processing,
    booked: Option<usize>,
    running: Running,
    once: Once,
    unknown: Unknown,
    proven: Proven,
    layout: Layout,
}

impl Breakdown {
    fn new(layout: Layout) -> Result<Self, Problem> {
        Ok(Self {
            entity: layout.one(&["client entity id", "entity id"])?,
            kind: layout.need("type")?,
            ids: [layout.need("payment id")?, layout.need("reference")?],
            payout: layout.one(&["payout id"])?,
            currency: layout.need("holding currency")?,
            gross: layout.one(&["gross in holding currency"])?,
            deduction: layout.one(&["deduction in holding currency"])?,
            net: layout.need("net in holding currency")?,
            processing: Processing::new(&layout, "gross in processing currency")?,
            booked: layout.one(&["processed on"])?,
            running: Running::default(),
            once: Once::default(),
            unknown: Unknown::default(),
            proven: Proven::default(),
            layout,
        })
    }

    /// What a row is, by the exact amounts of it.
    fn kind(&self, row: &Row<'_>, gross: Option<i128>, net: i128) -> Result<LineKind, Problem> {
        let word = row.get(self.kind);
        let kind = kinds::checkout(word);
        let (amount, at) = match gross.zip(self.gross) {
            Some(own) => own,
            None => (net, self.net),
        };
        let sign = sign_of(amount);
        let moves = net > 0 || gross.is_some_and(|gross| gross != 0);
        let is_money = kinds::checkout_moves_nothing(word) && moves;
        let other = kinds::other_sign(kind, sign).or(is_money.then_some(FEE_ALONE));
        let Some(expected) = other else { return Ok(kind) };
        let name = self.layout.shown.get(at).map_or(NET, String::as_str);
        Err(Problem::error(row.line, name, expected, row.get(at)))
    }

    /// Gross and deduction come to the net, where there are both.
    fn check(
        &mut self,
        row: &Row<'_>,
        [gross, deduction]: [Option<i128>; 2],
        net: i128,
        currency: Currency,
        out: &mut Out,
    ) {
        let Some((gross, deduction)) = gross.zip(deduction) else { return };
        let sum = gross.saturating_add(deduction);
        // Each of the three was rounded to its last place for itself.
        let holds = sum.abs_diff(net) <= 1;
        self.proven.row(holds);
        if !holds {
            let expected = format!("gross + deduction, {}", shown_fine(sum, currency));
            out.push(Problem::error(row.line, NET, expected, shown_fine(net, currency)));
        }
    }
}

/// A word for what a row is that is not known: [`Unknown::note`].
fn note_kind(unknown: &mut Unknown, row: &Row<'_>, at: usize, layout: &Layout, out: &mut Out) {
    let (word, name) = (row.get(at), layout.shown.get(at).map_or("", String::as_str));
    if !kinds::is_known_to_checkout(word) {
        out.extend(unknown.note(row.line, name, word));
    }
}

/// That a row lacks what each has, as one of totals does: [`is_no_row`].
fn is_own_row(row: &Row<'_>, columns: &[Option<usize>], layout: &Layout) -> Result<(), Problem> {
    let name = |at: usize| layout.shown.get(at).map_or("", String::as_str);
    let columns = columns.iter().copied().flatten();
    let needed: Vec<(&str, &str)> = columns.map(|at| (name(at), row.get(at))).collect();
    is_no_row(row.line, &needed).map_or(Ok(()), Err)
}

impl Report for Breakdown {
    fn row(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        self.proven.begin();
        row.fits(&self.layout)?;
        if !out.is_open() {
            out.begin(row.line, Finality::Final, |statement| {
                statement.account = some(row.maybe(self.entity));
                statement.id = some(row.maybe(self.payout));
            });
        }
        is_own_row(row, &[Some(self.kind), self.booked], &self.layout)?;
        let currency = currency(row, "Holding Currency", row.get(self.currency))?;
        let maybe = |name: &str, at: Option<usize>| match row.maybe(at) {
            "" => Ok(None),
            text => fine(row, name, text, currency).map(Some),
        };
        let exact = fine(row, NET, row.get(self.net), currency)?;
        let gross = maybe("Gross In Holding Currency", self.gross)?;
        let deduction = maybe("Deduction In Holding Currency", self.deduction)?;
        let kind = self.kind(row, gross, exact)?;
        note_kind(&mut self.unknown, row, self.kind, &self.layout, out);
        self.check(row, [gross, deduction], exact, currency, out);
        let held = (gross.unwrap_or(0), currency);
        let processed = self.processing.money((row, &self.layout), kind, held)?;
        let whole = |exact: i128| nearest(row, NET, exact, currency);
        let (gross, deduction) = (gross.map(whole).transpose()?, deduction.map(whole).transpose()?);
        let payout = row.maybe(self.payout);
        let is_first = self.running.is_new(payout, currency);
        let net = self.running.add(row, payout, exact, currency)?;
        let (mut entry, mut line) = out.entry(row, net, currency);
        let [payment, reference] = self.ids.map(|at| row.get(at));
        out.extend(self.once.note(row.line, "row", row.get(self.kind), &[&row.raw()]));
        line.gross = processed.or_else(|| gross.and_then(|minor| money(minor, currency)));
        let fee = deduction.map(|minor| match gross {
            Some(gross) => gross.saturating_sub(net),
            None => minor.saturating_neg(),
        });
        line.fee = fee.and_then(|minor| money(minor, currency));
        line.net = money(net, currency);
        line.tag(TagKind::MerchantReference, reference);
        line.tag(TagKind::PaymentId, payment);
        // A file may be of several payouts, and only one could be its statement's name.
        if is_first {
            line.tag(TagKind::PayoutId, payout);
        }
        line.batch_id = some(payout);
        entry.type_code = some(row.get(self.kind));
        line.kind = kind;
        // The fee of paying out is no payment's: it goes by the payout.
        let own = || line.batch_id.clone().filter(|_| line.kind == LineKind::Fee);
        line.psp_reference = some(payment).or_else(own);
        entry.reversal = row.get(self.kind).to_ascii_lowercase().contains("chargeback");
        entry.booked_on = out.day(row.line, "date", row.maybe(self.booked), Order::Unknown);
        out.tell(entry, line);
        Ok(())
    }

    fn last(&self, row: &Row<'_>, at: usize) -> Option<(Last, u32)> {
        let amounts = [self.gross, self.deduction, Some(self.net)];
        let is_proven = amounts.iter().all(|at| !row.maybe(*at).is_empty());
        let last = if amounts.contains(&Some(at)) {
            Some(last_money(row, at)).filter(|_| !is_proven)?
        } else if at == self.kind {
            Last::Unsure
        } else if self.booked == Some(at) {
            Last::Day
        } else {
            let is_reference = self.ids.contains(&at) || self.payout == Some(at);
            let other = || Some(Last::Other).filter(|_| is_reference);
            self.processing.last(row, at).or_else(other)?
        };
        Some((last, PLACES))
    }

    fn end(&mut self, line: u64, out: &mut Out) {
        self.running.tell(NET, out);
        let tie = self.proven.tie();
        out.end(StatementEnd { line, tie, ..StatementEnd::default() });
    }
}

struct Actions {
    entity: Option<usize>,
    payment: usize,
    action: Option<usize>,
    action_kind: usize,
    reference: Option<usize>,
    part: usize,
    payout: Option<usize>,
    currency: usize,
    amount: usize,
    processing: Processing,
    booked: Option<usize>,
    running: Running,
    once: Once,
    unknown: Unknown,
    layout: Layout,
}

impl Actions {
    fn new(layout: Layout) -> Result<Self, Problem> {
        Ok(Self {
            entity: layout.one(&["client entity id", "entity id"])?,
            payment: layout.need("payment id")?,
            action: layout.one(&["action id"])?,
            action_kind: layout.need("action type")?,
            reference: layout.one(&["reference"])?,
            part: layout.need("breakdown type")?,
            payout: layout.one(&["payout id"])?,
            currency: layout.need("holding currency")?,
            amount: layout.need("holding currency amount")?,
            processing: Processing::new(&layout, "processing currency amount")?,
            booked: layout.one(&["processed on"])?,
            running: Running::default(),
            once: Once::default(),
            unknown: Unknown::default(),
            layout,
        })
    }

    /// What a part of an action is.
    fn kind(&self, row: &Row<'_>, exact: i128) -> Result<LineKind, Problem> {
        let part = row.get(self.part);
        let kind = kinds::checkout_part(part);
        let asks = |at: usize| kinds::checkout_moves_nothing(row.get(at));
        let is_money = asks(self.part) && exact != 0 || asks(self.action_kind) && exact > 0;
        let sign = sign_of(exact);
        match kinds::other_sign(kind, sign).or(is_money.then_some(FEE_ALONE)) {
            Some(expected) => Err(Problem::error(row.line, AMOUNT, expected, row.get(self.amount))),
            None => Ok(kind),
        }
    }
}

impl Report for Actions {
    fn row(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        row.fits(&self.layout)?;
        if !out.is_open() {
            out.begin(row.line, Finality::Final, |statement| {
                statement.account = some(row.maybe(self.entity));
                statement.id = some(row.maybe(self.payout));
            });
        }
        let needed = [Some(self.action_kind), Some(self.part), self.booked];
        is_own_row(row, &needed, &self.layout)?;
        let currency = currency(row, "Holding Currency", row.get(self.currency))?;
        let exact = fine(row, AMOUNT, row.get(self.amount), currency)?;
        let kind = self.kind(row, exact)?;
        note_kind(&mut self.unknown, row, self.action_kind, &self.layout, out);
        // What decides a payment is its own amount, whatever fractions stand above it.
        let gross = nearest(row, AMOUNT, exact, currency)?;
        let own = (row, &self.layout);
        let processed = self.processing.money(own, kind, (exact, currency))?;
        let minor = self.running.add(row, row.maybe(self.payout), exact, currency)?;
        let (payment, part) = (row.get(self.payment), row.get(self.part));
        // Fees may be alike, and money is not.
        let action = row.maybe(self.action);
        let is_fee = matches!(kind, LineKind::Fee | LineKind::Adjustment);
        if !action.is_empty() && !is_fee {
            out.extend(self.once.note(row.line, "Action ID", action, &[part, &row.raw()]));
        } else if !is_fee {
            out.extend(self.once.note(row.line, "Payment ID", payment, &[&row.raw()]));
        }
        let (mut entry, mut line) = out.entry(row, minor, currency);
        line.kind = kind;
        if line.kind != LineKind::Fee {
            line.gross = processed.or_else(|| money(gross, currency));
        }
        line.net = money(minor, currency);
        line.tag(TagKind::MerchantReference, row.maybe(self.reference));
        line.tag(TagKind::PaymentId, payment);
        if line.kind == LineKind::Refund {
            line.tag(TagKind::RefundId, row.maybe(self.action));
        }
        line.psp_reference = some(payment);
        line.batch_id = some(row.maybe(self.payout));
        entry.type_code = some(part);
        entry.reversal = matches!(line.kind, LineKind::Chargeback | LineKind::ChargebackReversed);
        entry.booked_on = out.day(row.line, "date", row.maybe(self.booked), Order::Unknown);
        out.tell(entry, line);
        Ok(())
    }

    fn last(&self, row: &Row<'_>, at: usize) -> Option<(Last, u32)> {
        let last = if at == self.amount {
            last_money(row, at)
        } else if at == self.part || at == self.action_kind {
            Last::Unsure
        } else if self.booked == Some(at) {
            Last::Day
        } else {
            let ids = [Some(self.payment), self.action, self.reference, self.payout];
            let other = || Some(Last::Other).filter(|_| ids.contains(&Some(at)));
            self.processing.last(row, at).or_else(other)?
        };
        Some((last, PLACES))
    }

    fn end(&mut self, line: u64, out: &mut Out) {
        self.running.tell(AMOUNT, out);
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
    /// What was paid, and what was given back, among the parts.
    sides: [(Option<usize>, LineKind); 2],
    once: Once,
    proven: Proven,
    layout: Layout,
}

impl Payouts {
    fn new(layout: Layout) -> Result<Self, Problem> {
        let amount = layout.need("payout amount")?;
        let parts = amount.saturating_add(1)..layout.names.len();
        Ok(Self {
            entity: layout.one(&["client entity id", "entity id"])?,
            id: layout.need("payout id")?,
            date: layout.need("payout date")?,
            currency: layout.need("holding currency")?,
            parts: parts.collect(),
            sides: [
                (layout.one(&["payments"])?, LineKind::Payment),
                (layout.one(&["refunds"])?, LineKind::Refund),
            ],
            once: Once::default(),
            proven: Proven::default(),
            amount,
            layout,
        })
    }
}

impl Payouts {
    /// The parts come to the amount with all signs turned as well: those must agree whose way is
    /// known.
    fn check_sides(&self, row: &Row<'_>, currency: Currency) -> Result<(), Problem> {
        for (at, kind) in self.sides {
            let Some(at) = at.filter(|at| !row.get(*at).is_empty()) else { continue };
            let name = self.layout.shown.get(at).map_or("", String::as_str);
            let sign = sign_of(fine(row, name, row.get(at), currency)?);
            if let Some(expected) = kinds::other_sign(kind, sign) {
                return Err(Problem::error(row.line, name, expected, row.get(at)));
            }
        }
        Ok(())
    }
}

impl Report for Payouts {
    fn row(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        self.proven.begin();
        row.fits(&self.layout)?;
        if !out.is_open() {
            out.begin(row.line, Finality::Final, |statement| {
                statement.account = some(row.maybe(self.entity));
            });
        }
        is_own_row(row, &[Some(self.id), Some(self.date)], &self.layout)?;
        let currency = currency(row, "Holding Currency", row.get(self.currency))?;
        let exact = fine(row, PAYOUT, row.get(self.amount), currency)?;
        let minor = nearest(row, PAYOUT, exact, currency)?;
        self.check_sides(row, currency)?;
        if !is_whole(exact, currency) {
            let told = shown(minor.into(), Some(currency));
            let expected = format!("whole minor units; it was rounded to {told}");
            out.push(Problem::warning(row.line, PAYOUT, expected, shown_fine(exact, currency)));
        }
        let parts = self.parts.iter().map(|at| fine(row, "", row.get(*at), currency));
        let parts = parts.filter_map(Result::ok).fold(0, i128::saturating_add);
        if parts == exact && !self.parts.is_empty() {
            self.proven.row(true);
        } else if parts != exact {
            // The columns after the amount differ by account and are rounded each for itself.
            let (expected, found) = (shown_fine(exact, currency), shown_fine(parts, currency));
            out.push(Problem::warning(row.line, "sum of the columns", expected, found));
        }
        let (mut entry, mut line) = out.entry(row, minor, currency);
        let id = row.get(self.id);
        out.extend(self.once.note(row.line, "Payout ID", id, &[currency.code()]));
        line.tag(TagKind::PayoutId, id);
        line.psp_reference = some(id);
        line.batch_id = some(id);
        line.net = money(minor, currency);
        entry.type_code = Some("payout".to_owned());
        line.kind = LineKind::Payout;
        entry.booked_on = out.day(row.line, "Payout Date", row.get(self.date), Order::Unknown);
        out.tell(entry, line);
        Ok(())
    }

    fn last(&self, row: &Row<'_>, at: usize) -> Option<(Last, u32)> {
        let last = if at == self.amount {
            last_money(row, at)
        } else if at == self.date {
            Last::Day
        } else {
            Some(Last::Other).filter(|_| at == self.id)?
        };
        Some((last, PLACES))
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
    use crate::settlement::Item;
    use crate::settlement::ledger::{State, inspect};

    fn look(text: &str) -> (State, Option<bool>) {
        let input = Box::new(Cursor::new(text.as_bytes().to_vec()));
        let found = inspect(input, None, None).unwrap();
        (found.state, found.sums.statements.first().unwrap().ties)
    }

    #[test]
    fn a_breakdown_ties_by_its_rows() {
        let of = |more: &str, row: &str| {
            look(&format!(
                "Type,Payment ID,Reference,Holding Currency,Net In Holding Currency{more}\n{row}\n"
            ))
        };
        let more = ",Gross In Holding Currency,Deduction In Holding Currency";
        assert_eq!(of(more, "Charge,pay_1,o-1,USD,48.5,50,-1.5"), (State::Ok, Some(true)));
        assert_eq!(of(more, "Charge,pay_1,o-1,USD,48,50,-1.5"), (State::Quarantined, Some(false)));
        assert_eq!(of("", "Charge,pay_1,o-1,USD,48.50"), (State::Ok, None));
    }

    #[test]
    fn rows_of_a_breakdown_go_the_way_of_their_kind() {
        let head = "Type,Payment ID,Reference,Holding Currency,Gross In Holding Currency,\
                    Deduction In Holding Currency,Net In Holding Currency";
        let of = |rows: &str| look(&format!("{head}\n{rows}\n")).0;
        for row in [
            "Authorization,pay_1,o-1,USD,0,-0.1,-0.1",
            "Void,pay_1,o-1,USD,0,-0.1,-0.1",
            "Charge,pay_1,o-1,USD,0,-0.1,-0.1",
            "Chargeback (CBRV),pay_1,o-1,USD,50,0,50",
        ] {
            assert_eq!(of(row), State::Ok, "{row}");
        }
        for row in [
            "Authorization,pay_1,o-1,USD,50,0,50",
            "Authorization,pay_1,o-1,USD,50,-50,0",
            "Authorization,pay_1,o-1,USD,0,0.1,0.1",
            "Charge,pay_1,o-1,USD,-50,1.5,-48.5",
            "Refund,pay_1,o-1,USD,10,0.1,10.1",
            "Chargeback,pay_1,o-1,USD,10,0,10",
            "Charge,pay_1,o-1,USD,50,0,50\nCharge,pay_1,o-1,USD,50,0,50",
            "Merchant Payout,,,USD,0,-2,-2\nMerchant Payout,,,USD,0,-2,-2",
        ] {
            assert_eq!(of(row), State::Quarantined, "{row}");
        }
    }

    #[test]
    fn parts_of_an_action_go_the_way_of_their_kind() {
        let head = "Payment ID,Action Type,Breakdown Type,Holding Currency,Holding Currency Amount";
        let of = |rows: &str| look(&format!("{head}\n{rows}\n")).0;
        for row in [
            "pay_1,Authorization,Authorization Fixed Fee,USD,-0.1",
            "pay_1,Authorization,Authorization,USD,0",
            "pay_1,Tiered Pricing Adjustment,Authorization Fixed Fee,USD,0.1",
            "pay_1,Capture,Scheme Fixed Fee,USD,-0.1\npay_1,Capture,Scheme Fixed Fee,USD,-0.1",
        ] {
            assert_eq!(of(row), State::Ok, "{row}");
        }
        for row in [
            "pay_1,Authorization,Authorization,USD,100",
            "pay_1,Authorization,Authorization,USD,-100",
            "pay_1,Authorization,Authorization Fixed Fee,USD,0.1",
            "pay_1,Authorization,Capture,USD,100",
            "pay_1,Capture,Capture,USD,-100",
            "pay_1,Capture,Capture,USD,100\npay_1,Capture,Capture,USD,100",
        ] {
            assert_eq!(of(row), State::Quarantined, "{row}");
        }
    }

    #[test]
    fn a_row_of_totals_is_none_of_the_actions_and_one_that_stands_twice_neither() {
        let head = "Payment ID,Action ID,Processed On,Action Type,Breakdown Type,\
                    Holding Currency,Holding Currency Amount";
        let first = "pay_1,act_1,2026-10-01,Capture,Capture,USD,100";
        let fee = "pay_1,act_1,2026-10-01,Capture,Scheme Fixed Fee,USD,-0.1";
        let foobar = "pay_2,act_2,2026-10-01,Foobar,Foobar,USD,100";
        let of = |row: &str| {
            let text = format!("{head}\n{first}\n{row}\n");
            let found = inspect(Box::new(Cursor::new(text.into_bytes())), None, None).unwrap();
            (found.state, found.sums.problems_total)
        };
        assert_eq!(of(fee), (State::Ok, 0));
        assert_eq!(of(&format!("{fee}\n{fee}")).0, State::Ok, "fees of an action may be alike");
        assert_eq!(of(foobar), (State::Ok, 1), "it is told");
        for row in [",,,,,USD,99.9", "Total,,,,,USD,99.9", "pay_1,,,,Total,USD,99.9", first] {
            assert_eq!(of(row).0, State::Quarantined, "{row}");
        }
    }

    /// What the customer paid is compared; what it is in the holding currency is what is paid out.
    #[test]
    fn money_of_another_currency_is_compared_in_the_one_that_was_paid_in() {
        let breakdown = "Type,Payment ID,Reference,Holding Currency,Gross In Holding Currency,\
                         Deduction In Holding Currency,Net In Holding Currency,Payout ID,\
                         Processing Currency,Gross In Processing Currency";
        let actions = "Payment ID,Action Type,Breakdown Type,Holding Currency,\
                       Holding Currency Amount,Processing Currency,Processing Currency Amount";
        for (header, row, want) in [
            (breakdown, "Charge,p1,o,USD,33.33,-1,32.33,P,JPY,5000", "of 3233 USD: 5000 JPY"),
            (breakdown, "Refund,p1,o,USD,-33.33,0,-33.33,P,JPY,-5000", "of 3333 USD: -5000 JPY"),
            (breakdown, "Charge,p1,o,USD,33.33,-1,32.33,P,USD,33.33", "of 3233 USD: 3333 USD"),
            (breakdown, "Charge,p1,o,USD,33.33,-1,32.33,P,,", "of 3233 USD: 3333 USD"),
            (breakdown, "Charge,p1,o,USD,33.33,-1,32.33,P,JPY,-5000", ""),
            (breakdown, "Charge,p1,o,USD,33.33,-1,32.33,P,XYZW,5000", ""),
            (breakdown, "Dispute fee,p1,o,USD,0,-1,-1,P,JPY,0", "of 100 USD: 0 USD"),
            (actions, "p1,Capture,Capture,USD,33.33,JPY,5000", "of 3333 USD: 5000 JPY"),
            (actions, "p1,Capture,Capture,USD,33.33,USD,33.33", "of 3333 USD: 3333 USD"),
            (actions, "p1,Capture,Capture,USD,33.33,JPY,-5000", ""),
            (actions, "p1,Capture,Scheme Fixed Fee,USD,-0.1,JPY,0", "of 10 USD: -"),
        ] {
            let text = format!("{header}\n{row}\n");
            let source = Source::open(Box::new(Cursor::new(text.into_bytes())), None).unwrap();
            let open = if header == actions { open_actions } else { open_breakdown };
            assert_eq!(sheet::compared_by(open(source)), want, "{row}");
        }
    }

    /// The fractions above a payment, and its own, are not the payment's money.
    #[test]
    fn an_action_is_compared_by_its_own_amount() {
        let head = "Payment ID,Action Type,Breakdown Type,Holding Currency,Holding Currency Amount";
        for (fee, capture, want) in
            [("-0.496", "49.991", 4_999), ("-0.005", "49.996", 5_000), ("-0.50", "50", 5_000)]
        {
            let text = format!(
                "{head}\np1,Capture,Scheme Fixed Fee,USD,{fee}\np1,Capture,Capture,USD,{capture}\n"
            );
            let source = Source::open(Box::new(Cursor::new(text.into_bytes())), None).unwrap();
            let mut parser = open_actions(source);
            let mut told = Vec::new();
            while let Some(item) = parser.next().unwrap() {
                if let Item::Line(line) = item {
                    told.extend(line.gross.map(|gross| gross.minor));
                }
            }
            assert_eq!(told, [want], "{capture}");
        }
    }

    #[test]
    fn a_payout_stands_once() {
        let head = "Holding Currency,Payout ID,Payout Date,Payout Amount";
        let row = "USD,p1,2026-06-02,48.3\n";
        assert_eq!(look(&format!("{head}\n{row}{row}")).0, State::Quarantined);
    }

    #[test]
    fn a_payout_ties_by_its_columns_and_other_columns_prove_nothing() {
        let of = |amount: &str| {
            look(&format!(
                "Holding Currency,Payout ID,Payout Date,Payout Amount,Payments,Fees\n\
                 USD,p1,2026-06-02,{amount},50,-1.7\n"
            ))
        };
        assert_eq!(of("48.3"), (State::Ok, Some(true)));
        assert_eq!(of("48.4"), (State::Ok, None));
        let turned = "Holding Currency,Payout ID,Payout Date,Payout Amount,Payments,Refunds\n\
                      USD,p1,2026-06-02,-40,-50,10\n";
        assert_eq!(look(turned).0, State::Quarantined);
    }
}
