//! Stripe's balance reports: Payout reconciliation, Balance change from activity and Payouts,
//! itemised, and the dashboard's export of the balance history.
//!
//! Columns: docs.stripe.com, "Payout reconciliation report" and "Balance report". Amounts are major
//! units with a sign, not the minor units of the API. On every row gross less fee is net; and where
//! a file lists the payout itself, the rows that it paid out add up to it. The currency is written
//! in either case, also within one file.

use std::collections::BTreeMap;

use crate::model::money::Currency;
use crate::model::settlement::{
    Control, Finality, Found, Line, Problem, Severity, StatementEnd, TagKind, Tie,
};
use crate::settlement::Parse;
use crate::settlement::amount::shown;
use crate::settlement::kinds;
use crate::settlement::last_row::Last;
use crate::settlement::numeral::{Numerals, Order, decimal_of};
use crate::settlement::once::{Once, Unknown, is_no_row};
use crate::settlement::proven::Proven;
use crate::settlement::sheet::{self, Layout, Out, Report, Row, currency, money, some};
use crate::settlement::text::Source;

/// A file of more payouts is not held in memory.
const PAYOUTS: usize = 200_000;

const ITEMISED: &[&str] =
    &["balance transaction id", "currency", "gross", "fee", "net", "reporting category"];

/// By the last of these it is no dump of the API's objects, whose amounts are minor units.
const HISTORY: &[&str] =
    &["id", "type", "source", "amount", "fee", "net", "currency", "created utc"];

/// The dashboard's list of payouts: each is money that leaves the balance, and its sign and its fee
/// are those of what it paid out.
const LIST: &[&str] = &["id", "amount", "currency", "created utc", "arrival date utc"];

/// Payouts have such ids, and rows of the balance have others.
const PAYOUT: &str = "po_";

/// What is read in place of a list of payouts.
const NO_LIST: &str = "a report of the balance: payout reconciliation, or the balance history";

/// Of the report that lists the payouts and not what they paid out.
const OF_PAYOUTS: &[&str] = &["payout id", "payout status"];

fn is_stripe(names: &[String]) -> bool {
    sheet::has(names, ITEMISED) || sheet::has(names, HISTORY) || sheet::has(names, LIST)
}

/// Known so that it is refused: a bank's export would take its payouts for money in.
fn is_list(layout: &Layout) -> bool {
    !layout.has(ITEMISED) && layout.has(LIST)
}

/// Which of the exports it is.
pub fn recognise(head: &str) -> Option<String> {
    let layout = sheet::find(head, is_stripe)?;
    let version = match (layout.has(ITEMISED), layout.has(&["automatic payout id"])) {
        (true, true) => "payout_reconciliation.itemized",
        (true, false) if is_of_payouts(&layout) => "payouts.itemized",
        (true, false) => "balance_change_from_activity.itemized",
        (false, _) if is_list(&layout) => "payouts",
        (false, _) => "balance_history",
    };
    Some(version.to_owned())
}

fn is_of_payouts(layout: &Layout) -> bool {
    layout.has(OF_PAYOUTS) && !layout.has(&["automatic payout id"])
}

/// Begins to read.
pub fn open(source: Source) -> Box<dyn Parse> {
    sheet::read_below(source, is_stripe, Stripe::new)
}

/// What a payout pays out, and what it says of itself.
#[derive(Default)]
struct Payout {
    items: i128,
    paid: i128,
    line: u64,
    listed: bool,
}

impl Payout {
    /// A payout is money out of the balance; some exports write it as what was paid.
    fn expected(&self) -> i128 {
        if self.paid == self.items { self.paid } else { self.paid.saturating_neg() }
    }
}

struct Stripe {
    layout: Layout,
    itemised: bool,
    /// The decimal mark that an amount showed: some spreadsheets write a comma.
    decimal: Option<u8>,
    amounts: [usize; 3],
    currency: usize,
    kind: usize,
    payout: Option<usize>,
    created: Option<usize>,
    available: Option<usize>,
    source: Option<usize>,
    charge: Option<usize>,
    intent: Option<usize>,
    ids: Vec<(usize, TagKind)>,
    payouts: BTreeMap<(String, Currency), Payout>,
    transaction: Option<usize>,
    once: Once,
    unknown: Unknown,
    proven: Proven,
}

impl Stripe {
    fn new(layout: Layout) -> Result<Self, Problem> {
        if is_list(&layout) {
            return Err(Problem::error(1, "header row", NO_LIST, "a list of payouts"));
        }
        let itemised = layout.has(ITEMISED);
        let gross = layout.need(if itemised { "gross" } else { "amount" })?;
        let named: &[(&str, TagKind)] = &[
            ("charge id", TagKind::ChargeId),
            ("payment intent id", TagKind::PaymentId),
            ("balance transaction id", TagKind::TransactionId),
            ("id", TagKind::TransactionId),
            ("invoice id", TagKind::OrderId),
            ("order id", TagKind::OrderId),
            ("trace id", TagKind::Trace),
        ];
        let own = layout.names.iter().enumerate().filter(|(_, name)| is_own(name));
        let mut ids: Vec<_> = own.map(|(at, _)| (at, TagKind::MerchantReference)).collect();
        for (name, kind) in named {
            ids.extend(layout.one(&[name])?.map(|at| (at, *kind)));
        }
        Ok(Self {
            itemised,
            decimal: None,
            amounts: [gross, layout.need("fee")?, layout.need("net")?],
            currency: layout.need("currency")?,
            kind: layout.need(if itemised { "reporting category" } else { "type" })?,
            payout: layout.one(&["automatic payout id", "payout id", "transfer"])?,
            created: layout.one(&["created utc", "created", "effective at utc", "effective at"])?,
            available: layout.one(&["available on utc", "available on"])?,
            source: layout.one(&["source id", "source"])?,
            charge: layout.one(&["charge id"])?,
            intent: layout.one(&["payment intent id"])?,
            ids,
            payouts: BTreeMap::new(),
            transaction: layout.one(&["balance transaction id", "id"])?,
            once: Once::default(),
            unknown: Unknown::default(),
            proven: Proven::default(),
            layout,
        })
    }

    fn amounts(
        &mut self,
        row: &Row<'_>,
        currency: Currency,
        out: &mut Out,
    ) -> Result<[i64; 3], Problem> {
        let mut minor = [0; 3];
        let names = if self.itemised { ["gross", "fee", "net"] } else { ["Amount", "Fee", "Net"] };
        // The dashboard groups in threes.
        let grouped = !self.itemised;
        for ((slot, at), name) in minor.iter_mut().zip(self.amounts).zip(names) {
            let text = row.get(at);
            self.decimal = self.decimal.or_else(|| decimal_of(text));
            let numerals = Numerals { decimal: self.decimal.unwrap_or(b'.'), grouped };
            let read = numerals.read_sure(text, currency);
            *slot = read.map_err(|refused| refused.at(row.line, name, text, currency))?;
        }
        let [gross, fee, net] = minor;
        let expected = i128::from(gross).saturating_sub(i128::from(fee));
        self.proven.row(expected == i128::from(net));
        if expected != i128::from(net) {
            let expected = format!("gross less fee, {}", shown(expected, Some(currency)));
            let found = shown(net.into(), Some(currency));
            out.push(Problem::error(row.line, "net", expected, found));
        }
        Ok(minor)
    }

    fn source(&self, row: &Row<'_>, line: &mut Line) {
        let id = row.maybe(self.source);
        let kind = match id.split('_').next().unwrap_or_default().to_ascii_lowercase().as_str() {
            "ch" | "py" => TagKind::ChargeId,
            "re" | "pyr" => TagKind::RefundId,
            "dp" | "du" => TagKind::DisputeId,
            "po" | "tr" => TagKind::PayoutId,
            _other => TagKind::Custom,
        };
        if !line.tags.iter().any(|tag| tag.text == id) {
            line.tag(kind, id);
        }
        if matches!(kind, TagKind::RefundId | TagKind::DisputeId) {
            line.original_reference = some(row.maybe(self.charge));
        }
        let intent = row.maybe(self.intent);
        line.psp_reference = some(intent).or_else(|| some(id));
    }

    /// Gross less fee is net in a row of totals as well: it has no id, no day or no kind.
    fn is_own_row(&self, row: &Row<'_>) -> Result<(), Problem> {
        let name = |at: usize| self.layout.shown.get(at).map_or("", String::as_str);
        let columns = [self.transaction, self.created, Some(self.kind)].into_iter().flatten();
        let needed: Vec<(&str, &str)> = columns.map(|at| (name(at), row.get(at))).collect();
        is_no_row(row.line, &needed).map_or(Ok(()), Err)
    }

    /// The word for what a row is, where it is not known.
    fn note_kind(&mut self, row: &Row<'_>, out: &mut Out) {
        let word = row.get(self.kind);
        if !kinds::is_known_to_stripe(word) {
            let name = self.layout.shown.get(self.kind).map_or("", String::as_str);
            out.extend(self.unknown.note(row.line, name, word));
        }
    }

    fn add(&mut self, row: &Row<'_>, net: i64, currency: Currency) -> Result<(), Problem> {
        let id = row.maybe(self.payout);
        if id.is_empty() {
            return Ok(());
        }
        if self.payouts.len() >= PAYOUTS {
            let found = format!("more than {PAYOUTS}");
            return Err(Problem::error(row.line, "automatic_payout_id", "fewer payouts", found));
        }
        let payout = self.payouts.entry((id.to_owned(), currency)).or_default();
        let sum = if row.get(self.kind).eq_ignore_ascii_case("payout") {
            payout.listed = true;
            payout.line = row.line;
            &mut payout.paid
        } else {
            &mut payout.items
        };
        *sum = sum.saturating_add(i128::from(net));
        Ok(())
    }

    /// Whether each row holds, and each payout that is listed. The dashboard's export may lack rows
    /// of a payout, which proves nothing.
    fn tie(&self) -> Tie {
        let rows = self.proven.tie();
        let mut listed = self.payouts.values().filter(|payout| payout.listed);
        let is_whole = is_of_payouts(&self.layout) || listed.all(|p| p.expected() == p.items);
        match rows {
            rows if is_whole || rows == Tie::Declared(false) => rows,
            _else if self.itemised => Tie::Declared(false),
            _window => Tie::Balances,
        }
    }
}

/// Columns of the merchant's own: `payment_metadata[order]`.
fn is_own(name: &str) -> bool {
    let kinds = ["payment metadata ", "refund metadata ", "transfer metadata "];
    kinds.iter().any(|kind| name.starts_with(kind))
}

fn is_reversal(kind: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    kind.starts_with("dispute") || kind.contains("reversal") || kind.contains("failure")
}

impl Report for Stripe {
    fn row(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        self.proven.begin();
        row.fits(&self.layout)?;
        if !out.is_open() {
            out.begin(row.line, Finality::Final, |_statement| {});
        }
        let transaction = row.maybe(self.transaction);
        if !self.itemised && transaction.starts_with(PAYOUT) {
            return Err(Problem::error(row.line, "id", NO_LIST, format!("payout {transaction}")));
        }
        self.is_own_row(row)?;
        let twice = self.once.note(row.line, "balance transaction id", transaction, &[]);
        twice.into_iter().for_each(|problem| out.push(problem));
        let currency = currency(row, "currency", row.get(self.currency))?;
        let [gross, fee, net] = self.amounts(row, currency, out)?;
        let kind = kinds::stripe(row.get(self.kind));
        // The equation holds with all signs turned as well.
        if let Some(expected) = kinds::stripe_other_sign(row.get(self.kind), gross) {
            let [at, ..] = self.amounts;
            return Err(Problem::error(row.line, "gross", expected, row.get(at)));
        }
        self.note_kind(row, out);
        let payout = row.maybe(self.payout);
        let is_first = !self.payouts.contains_key(&(payout.to_owned(), currency));
        self.add(row, net, currency)?;
        let (mut entry, mut line) = out.entry(row, net, currency);
        line.gross = money(gross, currency);
        line.fee = money(fee, currency);
        line.net = money(net, currency);
        for (at, kind) in &self.ids {
            line.tag(*kind, row.get(*at));
        }
        self.source(row, &mut line);
        // A window of days may lack the payout's own row.
        if is_first && !line.tags.iter().any(|tag| tag.text == payout) {
            line.tag(TagKind::PayoutId, payout);
        }
        line.batch_id = some(payout);
        entry.type_code = some(row.get(self.kind));
        line.kind = kind;
        entry.reversal = is_reversal(row.get(self.kind));
        entry.booked_on = out.day(row.line, "created", row.maybe(self.created), Order::Unknown);
        let available = row.maybe(self.available);
        entry.value_on = out.day(row.line, "available on", available, Order::Unknown);
        out.tell(entry, line);
        Ok(())
    }

    fn last(&self, _row: &Row<'_>, at: usize) -> Option<(Last, u32)> {
        // Gross less fee proves the net, and a currency that was cut is none.
        let is = |column: Option<usize>| column == Some(at);
        let is_id = self.ids.iter().any(|(own, _)| *own == at);
        let last = if at == self.kind {
            Last::Unsure
        } else if is(self.created) || is(self.available) {
            Last::Day
        } else if is_id || [self.source, self.charge, self.intent, self.payout].contains(&Some(at))
        {
            Last::Other
        } else {
            return None;
        };
        Some((last, 0))
    }

    fn end(&mut self, line: u64, out: &mut Out) {
        let tie = self.tie();
        out.end(StatementEnd { line, tie, ..StatementEnd::default() });
        if is_of_payouts(&self.layout) {
            return;
        }
        // The dashboard's export ends where a person said, also between a payout and its rows.
        let severity = if self.itemised { Severity::Error } else { Severity::Warning };
        for ((id, currency), payout) in self.payouts.iter().filter(|(_, payout)| payout.listed) {
            out.push(Control {
                line: payout.line,
                field: format!("net of the rows of payout {id}"),
                expected: payout.expected(),
                found: Found::Is(payout.items),
                currency: Some(*currency),
                severity,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::NO_LIST;
    use crate::settlement::Format;
    use crate::settlement::ledger::{State, inspect};

    const HEADER: &str = "automatic_payout_id,balance_transaction_id,created_utc,currency,gross,\
                          fee,net,reporting_category,source_id";

    fn look(text: &str) -> (State, Option<bool>) {
        let input = Box::new(Cursor::new(text.as_bytes().to_vec()));
        let found = inspect(input, None, None).unwrap();
        (found.state, found.sums.statements.first().unwrap().ties)
    }

    #[test]
    fn a_payout_ties_by_what_it_pays_out() {
        let of = |paid: &str| {
            look(&format!(
                "{HEADER}\npo_1,txn_1,2026-11-18,gbp,40.00,0.80,39.20,charge,ch_1\n\
                 po_1,txn_2,2026-11-18,gbp,-2.00,0.00,-2.00,fee,\n\
                 po_1,txn_3,2026-11-20,gbp,{paid},0.00,{paid},payout,po_1\n"
            ))
        };
        assert_eq!(of("-37.20"), (State::Ok, Some(true)));
        assert_eq!(of("-37.10"), (State::Quarantined, Some(false)));
    }

    #[test]
    fn rows_tie_by_gross_fee_and_net() {
        let of = |net: &str| {
            look(&format!(
                "balance_transaction_id,created_utc,currency,gross,fee,net,reporting_category\n\
                 txn_1,2026-11-18,usd,12.00,0.50,11.50,charge\n\
                 txn_2,2026-11-18,usd,-0.77,0.00,{net},refund\n"
            ))
        };
        assert_eq!(of("-0.77"), (State::Ok, Some(true)));
        assert_eq!(of("0.77"), (State::Quarantined, Some(false)));
    }

    #[test]
    fn a_side_or_a_mark_that_is_open_is_refused() {
        let head = "id,Type,Source,Amount,Fee,Net,Currency,Created (UTC)\n";
        for (row, state) in [
            ("t1,refund,s,-10.00,0,-10.00,usd,2026-10-01", State::Ok),
            ("t1,refund,s,10.00,0,10.00,usd,2026-10-01", State::Quarantined),
            ("t1,charge,s,-10.00,0,-10.00,usd,2026-10-01", State::Quarantined),
            ("t1,charge,s,\"1,000\",0,1000.00,usd,2026-10-01", State::Ok),
            ("t1,charge,s,1.000,0,1.000,usd,2026-10-01", State::Quarantined),
            ("t1,charge,s,\"12,34\",\"0,34\",\"12,00\",usd,2026-10-01", State::Ok),
            ("t1,charge,s,\"12,34\",0.34,\"12,00\",usd,2026-10-01", State::Quarantined),
        ] {
            assert_eq!(look(&format!("{head}{row}\n")).0, state, "{row}");
        }
    }

    #[test]
    fn a_row_of_totals_is_no_row_and_an_unknown_kind_is_told() {
        let head = "balance_transaction_id,created_utc,currency,gross,fee,net,reporting_category\n\
                    txn_1,2026-11-18,usd,12.00,0.50,11.50,charge\n";
        for (row, state) in [
            ("Total,,usd,12.00,0.50,11.50,", State::Quarantined),
            (",,usd,12.00,0.50,11.50,", State::Quarantined),
            (",2026-11-18,usd,12.00,0.50,11.50,Total", State::Quarantined),
            ("txn_2,2026-11-18,usd,12.00,0.50,11.50,", State::Quarantined),
            ("txn_2,2026-11-18,usd,12.00,0.50,11.50,charge", State::Ok),
            ("txn_2,2026-11-18,usd,12.00,0.50,11.50,foobar", State::Ok),
        ] {
            let text = format!("{head}{row}\n");
            let input = Box::new(Cursor::new(text.into_bytes()));
            let found = inspect(input, None, None).unwrap();
            let said = found.sums.problems.iter().any(|one| one.found == "foobar");
            assert_eq!((found.state, said), (state, row.ends_with("foobar")), "{row}");
        }
    }

    #[test]
    fn a_window_of_days_that_lacks_rows_of_a_payout_is_not_tied() {
        let of = |paid: &str| {
            look(&format!(
                "id,Type,Source,Amount,Fee,Net,Currency,Created (UTC),Transfer\n\
                 txn_1,charge,ch_1,20.00,1.00,19.00,eur,2026-11-18 10:00,po_1\n\
                 txn_2,payout,po_1,{paid},0.00,{paid},eur,2026-11-19 10:00,po_1\n"
            ))
        };
        assert_eq!(of("-19.00"), (State::Ok, Some(true)));
        assert_eq!(of("-119.00"), (State::Ok, None));
    }

    #[test]
    fn a_list_of_payouts_is_refused() {
        let fields = "Source,Amount,Fee,Net,Currency,Created (UTC)";
        let history = format!("id,Type,{fields}");
        let dashboard =
            "id,Amount,Created (UTC),Currency,Arrival Date (UTC),Source Type,Status,Description";
        for (names, row) in [
            (
                format!("{history},Arrival Date (UTC),Status"),
                "po_1,payout,card,20.00,1.00,19.00,usd,2026-02-27 10:00,2026-03-01,in_transit",
            ),
            (history, "po_1,payout,card,20.00,1.00,19.00,usd,2026-02-27 10:00"),
            (dashboard.to_owned(), "po_1,19.00,2026-02-27 10:00,usd,2026-03-01,card,paid,X"),
        ] {
            let text = format!("{names}\n{row}\n");
            let found = inspect(Box::new(Cursor::new(text.into_bytes())), None, None).unwrap();
            assert_eq!(found.format, Some(Format::Stripe), "{names}");
            assert_eq!((found.state, found.sums.entries), (State::Quarantined, 0), "{names}");
            assert!(found.sums.problems.iter().all(|one| one.expected == NO_LIST), "{names}");
        }
    }
}
