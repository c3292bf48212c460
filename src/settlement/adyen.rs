//! Adyen's reports: Settlement details, Payment accounting, Received payments.
//!
//! Columns: docs.adyen.com, "Settlement details report", "Payment accounting report" and "Received
//! payment details report". They are bound by name: merchants add and reorder columns.
//!
//! Settlement details closes with a control of its own: within a batch and currency the net
//! credits less the net debits are zero, the payout included. So they are where all rows stand
//! twice: a batch is told once, and no payout of it is again. So they are where all sides were
//! turned: the types of the rows show it. The other two list what happened to payments and declare
//! no sum; they cover attempts, not only what settled, and prove none where their last line does
//! not end. `SentForSettle` is not `Settled`, so those rows are no booked money.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use chrono::NaiveDate;

use crate::model::money::Currency;
use crate::model::settlement::{
    Control, EntryStatus, Finality, Found, Line, LineKind, Problem, Severity, SignedMoney,
    StatementEnd, TagKind, Tie,
};
use crate::model::zone_words::are_seasons_of_one;
use crate::settlement::Parse;
use crate::settlement::amount::shown;
use crate::settlement::kinds;
use crate::settlement::last_row::Last;
use crate::settlement::numeral::{Numerals, Order};
use crate::settlement::once::Once;
use crate::settlement::sheet::{self, Layout, Out, Report, Row, currency, money, some};
use crate::settlement::text::Source;

/// A report of more batches, accounts and currencies is not one of Adyen's.
const BATCHES: usize = 100_000;

const SETTLEMENT: &[&str] =
    &["psp reference", "type", "net currency", "net debit nc", "net credit nc", "batch number"];

const ACCOUNTING: &[&str] = &[
    "psp reference",
    "merchant reference",
    "record type",
    "main currency",
    "main amount",
    "settlement currency",
    "payable sc",
];

const RECEIVED: &[&str] = &[
    "merchant account",
    "psp reference",
    "merchant reference",
    "creation date",
    "timezone",
    "currency",
    "amount",
];

/// Settlement details.
pub fn recognise_settlement(head: &str) -> Option<String> {
    sheet::find(head, |names| sheet::has(names, SETTLEMENT)).map(|_| String::new())
}

/// Payment accounting.
pub fn recognise_accounting(head: &str) -> Option<String> {
    sheet::find(head, |names| sheet::has(names, ACCOUNTING)).map(|_| String::new())
}

/// Received payments.
pub fn recognise_received(head: &str) -> Option<String> {
    sheet::find(head, |names| sheet::has(names, RECEIVED)).map(|_| String::new())
}

/// Begins to read settlement details.
pub fn open_settlement(source: Source) -> Box<dyn Parse> {
    sheet::read_below(source, |names| sheet::has(names, SETTLEMENT), Settlement::new)
}

/// Begins to read payment accounting.
pub fn open_accounting(source: Source) -> Box<dyn Parse> {
    sheet::read_below(source, |names| sheet::has(names, ACCOUNTING), Accounting::new)
}

/// Begins to read received payments.
pub fn open_received(source: Source) -> Box<dyn Parse> {
    sheet::read_below(source, |names| sheet::has(names, RECEIVED), Received::new)
}

/// The columns that all three have.
struct Common {
    company: Option<usize>,
    merchant: Option<usize>,
    psp_reference: usize,
    merchant_reference: Option<usize>,
    own_reference: Option<usize>,
    order: Option<usize>,
    arn: Option<usize>,
    modification: Option<usize>,
    booked: Option<usize>,
    zone: Option<usize>,
}

impl Common {
    fn new(layout: &Layout) -> Result<Self, Problem> {
        Ok(Self {
            company: layout.column(&["company account"]),
            merchant: layout.column(&["merchant account"]),
            psp_reference: layout.need("psp reference")?,
            merchant_reference: layout.one(&["merchant reference"])?,
            own_reference: layout.one(&["modification merchant reference"])?,
            order: layout.one(&["merchant order reference"])?,
            arn: layout.column(&["arn"]),
            modification: layout.one(&["modification reference", "modification psp reference"])?,
            booked: layout.one(&["booking date", "creation date"])?,
            zone: layout.column(&["timezone", "time zone"]),
        })
    }

    fn tag(&self, row: &Row<'_>, kind: &str, line: &mut Line) -> Result<(), Problem> {
        let arn = row.maybe(self.arn);
        if went_through_a_spreadsheet(arn) {
            let expected = "23 digits: this file went through a spreadsheet";
            return Err(Problem::error(row.line, "ARN", expected, arn));
        }
        for (name, at) in [
            ("Psp Reference", Some(self.psp_reference)),
            ("Merchant Reference", self.merchant_reference),
            ("Modification Merchant Reference", self.own_reference),
            ("Merchant Order Reference", self.order),
            ("Modification Reference", self.modification),
        ] {
            if went_through_a_spreadsheet(row.maybe(at)) {
                let expected = "a reference: this file went through a spreadsheet";
                return Err(Problem::error(row.line, name, expected, row.maybe(at)));
            }
        }
        line.psp_reference = some(row.get(self.psp_reference));
        line.tag(TagKind::MerchantReference, row.maybe(self.merchant_reference));
        if row.maybe(self.own_reference) != row.maybe(self.merchant_reference) {
            // Of no payment it is words: `Balancetransfer from batch 237`.
            let is_payout = kind.to_ascii_lowercase().contains("payout");
            let is_own = is_payout || !row.get(self.psp_reference).is_empty();
            let tag = if is_own { TagKind::MerchantReference } else { TagKind::Text };
            line.tag(tag, row.maybe(self.own_reference));
        }
        line.tag(TagKind::PaymentId, row.get(self.psp_reference));
        line.tag(TagKind::OrderId, row.maybe(self.order));
        line.tag(TagKind::BankReference, arn);
        Ok(())
    }

    /// Whose payments a row is of: the merchant account, where it tells it.
    fn account<'a>(&self, row: &Row<'a>) -> &'a str {
        match row.maybe(self.merchant) {
            "" => row.maybe(self.company),
            merchant => merchant,
        }
    }

    fn day(&self, row: &Row<'_>, out: &mut Out) -> Option<NaiveDate> {
        out.day(row.line, "date", row.maybe(self.booked), Order::Unknown)
    }

    /// What one of these columns says, where it is the last.
    fn last(&self, at: usize) -> Option<Last> {
        let references =
            [Some(self.psp_reference), self.merchant_reference, self.own_reference, self.order];
        match Some(at) {
            booked if booked == self.booked => Some(Last::Day),
            arn if arn == self.arn || references.contains(&arn) => Some(Last::Other),
            _other => None,
        }
    }
}

/// What an amount of the currency in column `of` shows, where it is the last.
fn last_money(row: &Row<'_>, at: usize, of: Option<usize>) -> (Last, u32) {
    let places = Currency::parse_any(row.maybe(of)).map_or(u32::MAX, |of| of.exponent());
    let last = if row.get(at).is_empty() { Last::Unsure } else { Last::Money(Some(b'.')) };
    (last, places)
}

/// `1.2302025304E+022`: what a spreadsheet makes of many digits.
fn went_through_a_spreadsheet(arn: &str) -> bool {
    let (mantissa, exponent) = match arn.split_once(['E', 'e']) {
        Some(parts) => parts,
        None => return false,
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let Some((whole, fraction)) = mantissa.split_once(['.', ',']) else { return false };
    digits(whole) && digits(fraction) && digits(exponent.trim_start_matches(['+', '-']))
}

/// What a modification is, by the type of its row; where it is of no payment it is words.
fn modification(kind: &str, psp_reference: &str) -> TagKind {
    let kind = kind.to_ascii_lowercase();
    if psp_reference.is_empty() {
        return if kind.contains("payout") { TagKind::PayoutId } else { TagKind::Text };
    }
    if kind.contains("chargeback") {
        TagKind::DisputeId
    } else if kind.contains("refund") {
        TagKind::RefundId
    } else {
        TagKind::TransactionId
    }
}

/// It takes back what an earlier row did.
fn is_reversal(kind: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    kind.contains("chargeback") || kind.contains("reversed") || kind == "capturefailed"
}

/// A report of more zones is not one of Adyen's.
const ZONES: usize = 50;

/// The zones that the rows name: a day is one of them, and a period is one of a single zone.
#[derive(Default)]
struct Zones {
    words: BTreeSet<String>,
    is_told: bool,
}

impl Zones {
    fn add(&mut self, line: u64, word: &str, out: &mut Out) {
        let is_known = self.words.iter().any(|own| own.eq_ignore_ascii_case(word));
        if word.is_empty() || is_known || self.words.len() >= ZONES {
            return;
        }
        let word = word.to_owned();
        let other = self.words.iter().find(|own| !are_seasons_of_one(own, &word)).cloned();
        self.words.insert(word.clone());
        let Some(other) = other.filter(|_| !self.is_told) else { return };
        self.is_told = true;
        let expected = format!("{other} alone, as the zone of its days");
        out.push(Problem::warning(line, "TimeZone", expected, word));
    }
}

/// First and last day of the rows.
#[derive(Default, Clone, Copy)]
struct Period {
    from: Option<NaiveDate>,
    to: Option<NaiveDate>,
}

impl Period {
    fn add(&mut self, day: Option<NaiveDate>) {
        let Some(day) = day else { return };
        self.from = Some(self.from.map_or(day, |from| from.min(day)));
        self.to = Some(self.to.map_or(day, |to| to.max(day)));
    }

    fn end(&mut self, line: u64, zones: &Zones, tie: Tie) -> StatementEnd {
        let Self { from, to } = std::mem::take(self);
        let zones = zones.words.iter().cloned().collect();
        StatementEnd { line, from, to, zones, tie, ..StatementEnd::default() }
    }
}

/// What a row says in money: of what was paid, and what is payable by it.
struct Amounts {
    gross: Option<SignedMoney>,
    payable: Option<SignedMoney>,
}

impl Amounts {
    /// Why the payable amount is none of its kind. Fees may take more than what was paid.
    fn other_sign(&self, kind: LineKind) -> Option<&'static str> {
        let SignedMoney { minor, currency } = self.payable?;
        let gross = self.gross.filter(|gross| gross.currency == currency);
        let is_eaten = gross.is_some_and(|gross| gross.minor.unsigned_abs() < minor.unsigned_abs());
        let expected = kinds::other_sign(kind, minor);
        let has_fees = matches!(kind, LineKind::Payment | LineKind::ChargebackReversed);
        expected.filter(|_| !(has_fees && is_eaten))
    }
}

/// The sum of a batch in a currency.
#[derive(Default)]
struct Batch {
    net: i128,
    line: u64,
    paid_out: bool,
    /// Nil where each row stands an even number of times.
    odd: u64,
}

/// What was taken of a row, by whoever took it.
const FEES: [&str; 4] = ["commission nc", "markup nc", "scheme fees nc", "interchange nc"];

struct Settlement {
    layout: Layout,
    common: Common,
    kind: usize,
    modification: Option<usize>,
    gross: [Option<usize>; 3],
    net: [usize; 3],
    fees: Vec<usize>,
    batch: usize,
    batches: BTreeMap<(String, String, Currency), Batch>,
    open: Option<(String, String)>,
    /// How many statements came of a merchant account and batch.
    opened: BTreeMap<(String, String), u64>,
    payouts: Once,
    period: Period,
    zones: Zones,
}

impl Settlement {
    fn new(layout: Layout) -> Result<Self, Problem> {
        Ok(Self {
            common: Common::new(&layout)?,
            kind: layout.need("type")?,
            modification: layout.one(&["modification reference", "modification psp reference"])?,
            gross: [
                layout.one(&["gross currency"])?,
                layout.one(&["gross debit gc"])?,
                layout.one(&["gross credit gc"])?,
            ],
            net: [
                layout.need("net currency")?,
                layout.need("net debit nc")?,
                layout.need("net credit nc")?,
            ],
            fees: layout.each(&FEES)?,
            batch: layout.need("batch number")?,
            batches: BTreeMap::new(),
            open: None,
            opened: BTreeMap::new(),
            payouts: Once::default(),
            period: Period::default(),
            zones: Zones::default(),
            layout,
        })
    }

    fn statement(&mut self, row: &Row<'_>, out: &mut Out) {
        let key = (row.maybe(self.common.merchant).to_owned(), row.get(self.batch).to_owned());
        if self.open.as_ref() == Some(&key) {
            return;
        }
        // Of a batch that goes on below, nothing is told before the end of the file.
        let tie = match self.tie() {
            Tie::Declared(false) => Tie::Balances,
            tie => tie,
        };
        out.end(self.period.end(row.line, &self.zones, tie));
        let opened = self.opened.entry(key.clone()).or_default();
        *opened = opened.saturating_add(1);
        // Rows by their time: each part stands beside the others, and is no other issue of them.
        let id = if *opened == 1 { key.1.clone() } else { format!("{} ({opened})", key.1) };
        out.begin(row.line, Finality::Final, |statement| {
            statement.account = some(self.common.account(row));
            statement.id = some(&id);
        });
        self.open = Some(key);
    }

    /// The gross amount is what a row of the user's is compared with, and no sum of the file holds
    /// it: where all fees are told in its currency, it is what they left and themselves.
    fn gross_holds(&self, row: &Row<'_>, line: &mut Line, out: &mut Out) {
        let (Some(gross), Some(net)) = (line.gross, line.net) else { return };
        let [_code, debit, credit] = self.net;
        // What the scheme pays out itself has no net here.
        let is_elsewhere = row.get(debit).is_empty() && row.get(credit).is_empty();
        if is_elsewhere || self.fees.len() < FEES.len() || gross.currency != net.currency {
            return;
        }
        let fee = line.fee.map_or(0, |fee| fee.minor);
        let whole = net.minor.checked_add(fee);
        if whole != Some(gross.minor) {
            let expected = whole.map(|minor| shown(minor.into(), Some(net.currency)));
            let expected = expected.unwrap_or_default();
            let expected = format!("{expected}, what is left and the fees; it is passed over");
            let found = shown(gross.minor.into(), Some(gross.currency));
            out.push(Problem::warning(row.line, "Gross", expected, found));
            line.gross = None;
        }
    }

    /// Whether the open batch is zero in every currency, so far.
    fn tie(&self) -> Tie {
        let Some((account, batch)) = &self.open else { return Tie::Balances };
        let own = self.batches.iter().filter(|((a, b, _), _)| a == account && b == batch);
        Tie::Declared(own.map(|(_, batch)| batch.net).all(|net| net == 0))
    }

    /// The signed net amount and its currency.
    fn net(&self, row: &Row<'_>) -> Result<(i64, Currency), Problem> {
        let [code, debit, credit] = self.net.map(|at| row.get(at));
        let gross = row.maybe(self.gross.first().copied().flatten());
        let code =
            if code.is_empty() && debit.is_empty() && credit.is_empty() { gross } else { code };
        let currency = currency(row, "Net Currency", code)?;
        let signed =
            two_sided(row, ("Net Debit (NC)", debit), ("Net Credit (NC)", credit), currency)?;
        Ok((signed, currency))
    }

    /// A batch comes to nothing with all its sides turned as well: the type of a row must agree.
    fn goes_its_way(
        &self,
        row: &Row<'_>,
        kind: LineKind,
        net: SignedMoney,
        line: &Line,
    ) -> Result<(), Problem> {
        let gross = line.gross.map_or(0, |gross| gross.minor);
        let amounts = Amounts { gross: line.gross, payable: Some(net) };
        let expected = kinds::other_sign(kind, gross).or_else(|| amounts.other_sign(kind));
        expected.map_or(Ok(()), |expected| {
            Err(Problem::error(row.line, row.get(self.kind), expected, "the other side"))
        })
    }

    fn gross(&self, row: &Row<'_>, line: &mut Line, out: &mut Out) -> Result<(), Problem> {
        let [code, debit, credit] = self.gross.map(|at| row.maybe(at));
        if code.is_empty() || debit.is_empty() && credit.is_empty() {
            return Ok(());
        }
        let currency = currency(row, "Gross Currency", code)?;
        match two_sided(row, ("Gross Debit (GC)", debit), ("Gross Credit (GC)", credit), currency) {
            Ok(signed) => line.gross = money(signed, currency),
            // The net amount alone is money here; a gross that cannot be told is not told.
            Err(problem) => out.push(Problem { severity: Severity::Warning, ..problem }),
        }
        Ok(())
    }

    fn fee(&self, row: &Row<'_>, currency: Currency) -> Option<i64> {
        let mut sum: Option<i64> = None;
        for text in self.fees.iter().map(|at| row.get(*at)).filter(|text| !text.is_empty()) {
            let fee = Numerals::PLAIN.read_sure(text, currency).ok()?;
            sum = Some(sum.unwrap_or(0).saturating_add(fee));
        }
        sum
    }

    fn add(
        &mut self,
        row: &Row<'_>,
        signed: i64,
        currency: Currency,
        out: &mut Out,
    ) -> Result<(), Problem> {
        let (account, batch) = self.open.clone().unwrap_or_default();
        if self.batches.len() >= BATCHES {
            let found = format!("more than {BATCHES}");
            return Err(Problem::error(row.line, "Batch Number", "fewer batches", found));
        }
        let sum = self.batches.entry((account, batch, currency)).or_default();
        sum.net = sum.net.saturating_add(i128::from(signed));
        sum.line = row.line;
        let is_payout = row.get(self.kind).to_ascii_lowercase().contains("payout");
        sum.paid_out |= is_payout;
        let mut hasher = DefaultHasher::new();
        (0..row.width()).for_each(|at| row.get(at).hash(&mut hasher));
        sum.odd ^= hasher.finish();
        if is_payout && signed != 0 {
            let id = format!("the payout of batch {}", row.get(self.batch));
            out.extend(self.payouts.note(row.line, "row", &id, &[&row.raw()]));
        }
        Ok(())
    }
}

/// A debit or a credit, never both; neither is nothing.
fn two_sided(
    row: &Row<'_>,
    (debit_name, debit): (&str, &str),
    (credit_name, credit): (&str, &str),
    currency: Currency,
) -> Result<i64, Problem> {
    let read = |name: &str, text: &str| match text {
        "" => Ok(0),
        text => {
            let minor = Numerals::PLAIN.read_unsigned(text, currency);
            minor.map_err(|refused| refused.at(row.line, name, text, currency))
        }
    };
    let (out, into) = (read(debit_name, debit)?, read(credit_name, credit)?);
    if out != 0 && into != 0 {
        let name = format!("{debit_name} and {credit_name}");
        return Err(Problem::error(row.line, name, "one of the two", format!("{debit}, {credit}")));
    }
    Ok(into.saturating_sub(out))
}

impl Report for Settlement {
    fn row(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        row.fits(&self.layout)?;
        self.statement(row, out);
        self.zones.add(row.line, row.maybe(self.common.zone), out);
        let (signed, currency) = self.net(row)?;
        let (mut entry, mut line) = out.entry(row, signed, currency);
        self.gross(row, &mut line, out)?;
        if signed == 0 && line.gross.is_some_and(|gross| gross.minor < 0) {
            entry.direction = entry.direction.opposite();
        }
        let kind = row.get(self.kind);
        line.kind = kinds::adyen(kind);
        self.goes_its_way(row, line.kind, SignedMoney { minor: signed, currency }, &line)?;
        self.common.tag(row, kind, &mut line)?;
        self.add(row, signed, currency, out)?;
        let psp_reference = row.get(self.common.psp_reference);
        line.tag(modification(kind, psp_reference), row.maybe(self.modification));
        line.net = money(signed, currency);
        line.fee = self.fee(row, currency).and_then(|fee| money(fee, currency));
        self.gross_holds(row, &mut line, out);
        line.batch_id = some(row.get(self.batch));
        entry.type_code = some(kind);
        entry.reversal = is_reversal(kind);
        entry.booked_on = self.common.day(row, out);
        if entry.reversal {
            line.original_reference = some(row.get(self.common.psp_reference));
        }
        self.period.add(entry.booked_on);
        out.tell(entry, line);
        Ok(())
    }

    fn last(&self, row: &Row<'_>, at: usize) -> Option<(Last, u32)> {
        let [of_gross, debit, credit] = self.gross;
        let is = |column: Option<usize>| column == Some(at);
        // The batch comes to nothing only with its whole net amounts, and under its whole number.
        if is(debit) || is(credit) {
            return Some(last_money(row, at, of_gross));
        }
        if self.fees.contains(&at) {
            return Some(last_money(row, at, self.net.first().copied()));
        }
        let own = match at {
            kind if kind == self.kind => Some(Last::Unsure),
            _own if is(self.modification) => Some(Last::Other),
            other => self.common.last(other),
        };
        own.map(|last| (last, 0))
    }

    fn end(&mut self, line: u64, out: &mut Out) {
        let tie = self.tie();
        out.end(self.period.end(line, &self.zones, tie));
        for ((account, batch, currency), sum) in &self.batches {
            let payout = if sum.paid_out { "payout included" } else { "which has no payout row" };
            let account = if account.is_empty() { "" } else { &format!(" of {account}") };
            out.push(Control {
                line: sum.line,
                field: format!("net of batch {batch}{account} in {currency}, {payout}"),
                expected: 0,
                found: Found::Is(sum.net),
                currency: Some(*currency),
                severity: Severity::Error,
            });
            if sum.odd == 0 {
                let field = format!("batch {batch}{account} in {currency}");
                out.push(Problem::error(sum.line, field, "each row once", "every row twice"));
            }
        }
    }
}

/// The merchant accounts of a report that is one statement: it is called by the first of them.
#[derive(Default)]
struct Accounts {
    first: Option<String>,
    is_told: bool,
}

impl Accounts {
    fn add(&mut self, line: u64, account: &str, out: &mut Out) {
        let first = self.first.get_or_insert_with(|| account.to_owned());
        if first != account && !std::mem::replace(&mut self.is_told, true) {
            let expected = format!("{first} alone, as the account of what is told here");
            out.push(Problem::warning(line, "Merchant Account", expected, account));
        }
    }
}

struct Accounting {
    layout: Layout,
    common: Common,
    kind: usize,
    modification: Option<usize>,
    main: [usize; 2],
    payable: [usize; 2],
    /// The column of the settlement's currency, which some merchants have once more at the end.
    currencies: Vec<usize>,
    batch: Option<usize>,
    period: Period,
    zones: Zones,
    accounts: Accounts,
    once: Once,
}

impl Accounting {
    fn new(layout: Layout) -> Result<Self, Problem> {
        Ok(Self {
            common: Common::new(&layout)?,
            kind: layout.need("record type")?,
            modification: layout.one(&["modification psp reference", "modification reference"])?,
            main: [layout.need("main currency")?, layout.need("main amount")?],
            payable: [
                layout.column(&["settlement currency"]).unwrap_or_default(),
                layout.need("payable sc")?,
            ],
            currencies: layout.all("settlement currency"),
            batch: layout.one(&["payable batch", "batch number"])?,
            period: Period::default(),
            zones: Zones::default(),
            accounts: Accounts::default(),
            once: Once::default(),
            layout,
        })
    }

    /// What the record is of, and what became payable by it, in the currency of settlement.
    fn amounts(&self, row: &Row<'_>) -> Result<Amounts, Problem> {
        let read = |name: &str, [of, at]: [usize; 2]| match (row.get(of), row.get(at)) {
            (_, "") => Ok(None),
            (code, text) => {
                let currency = currency(row, &format!("{name} Currency"), code)?;
                let minor = Numerals::PLAIN.read_sure(text, currency);
                let field = if name == "Main" { "Main Amount" } else { "Payable (SC)" };
                minor
                    .map(|minor| Some(SignedMoney { minor, currency }))
                    .map_err(|refused| refused.at(row.line, field, text, currency))
            }
        };
        let [of, _] = self.payable.map(|at| row.get(at));
        let mut others = self.currencies.iter().map(|at| row.get(*at));
        if let Some(found) = others.find(|other| !other.is_empty() && *other != of) {
            let expected = format!("{of}, as the other column of this name");
            return Err(Problem::error(row.line, "Settlement Currency", expected, found));
        }
        let [code, main] = self.main.map(|at| row.get(at));
        if main.is_empty() && !code.is_empty() {
            return Err(Problem::error(row.line, "Main Amount", "an amount in digits", main));
        }
        let (gross, payable) = (read("Main", self.main)?, read("Settlement", self.payable)?);
        Ok(Amounts { gross, payable })
    }
}

/// Whether a record says that money moved, or what may follow, and so what it is of. One of what
/// failed is a return where something became payable by it, as in settlement details; else what
/// failed had moved nothing yet.
fn status(kind: &str, payable: i64) -> (EntryStatus, LineKind) {
    let status = match kind.to_ascii_lowercase().as_str() {
        "sentforsettle" | "sentforrefund" => EntryStatus::Pending,
        "received" | "authorised" | "authorized" | "refused" | "error" | "cancelled"
        | "canceled" | "expired" | "retried" => EntryStatus::Info,
        "capturefailed" | "refundfailed" if payable == 0 => {
            return (EntryStatus::Info, LineKind::Attempt);
        }
        _money => EntryStatus::Booked,
    };
    (status, kinds::adyen(kind))
}

impl Report for Accounting {
    fn row(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        row.fits(&self.layout)?;
        let account = self.common.account(row);
        if !out.is_open() {
            out.begin(row.line, Finality::Final, |statement| statement.account = some(account));
        }
        self.accounts.add(row.line, account, out);
        self.zones.add(row.line, row.maybe(self.common.zone), out);
        let kind = row.get(self.kind);
        let amounts = self.amounts(row)?;
        if let Some(expected) = amounts.other_sign(kinds::adyen(kind)) {
            let [_, payable] = self.payable;
            return Err(Problem::error(row.line, "Payable (SC)", expected, row.get(payable)));
        }
        let Some(SignedMoney { currency, .. }) = amounts.payable.or(amounts.gross) else {
            let found = "neither";
            return Err(Problem::error(row.line, "Main Amount", "it, or Payable (SC)", found));
        };
        let signed = amounts.payable.map_or(0, |payable| payable.minor);
        if signed != 0 {
            let id = row.get(self.common.psp_reference);
            out.extend(self.once.note(row.line, "Psp Reference", id, &[&row.raw()]));
        }
        let (mut entry, mut line) = out.entry(row, signed, currency);
        self.common.tag(row, kind, &mut line)?;
        let psp_reference = row.get(self.common.psp_reference);
        line.tag(modification(kind, psp_reference), row.maybe(self.modification));
        line.gross = amounts.gross;
        line.net = amounts.payable;
        line.batch_id = some(row.maybe(self.batch));
        entry.type_code = some(kind);
        (entry.status, line.kind) = status(kind, signed);
        entry.reversal = is_reversal(kind) && line.kind != LineKind::Attempt;
        entry.booked_on = self.common.day(row, out);
        self.period.add(entry.booked_on);
        out.tell(entry, line);
        Ok(())
    }

    fn last(&self, row: &Row<'_>, at: usize) -> Option<(Last, u32)> {
        for [of, amount] in [self.main, self.payable] {
            if at == amount {
                return Some(last_money(row, at, Some(of)));
            }
        }
        let own = match at {
            kind if kind == self.kind => Some(Last::Unsure),
            other if [self.modification, self.batch].contains(&Some(other)) => Some(Last::Other),
            other => self.common.last(other),
        };
        own.map(|last| (last, 0))
    }

    fn end(&mut self, line: u64, out: &mut Out) {
        end_of_attempts((&mut self.period, &self.zones), line, Finality::Final, out);
    }
}

/// A report of attempts declares nothing that would show that it was cut at a row's end. What can
/// show it is the end of its last line, and then it says nothing of what it does not list.
fn end_of_attempts(
    (period, zones): (&mut Period, &Zones),
    line: u64,
    finality: Finality,
    out: &mut Out,
) {
    let mut tie = Tie::Balances;
    if out.is_cut() {
        if !out.is_open() {
            out.begin(line.max(1), finality, |_statement| {});
        }
        let found = "none: it may have been cut, and proves no absence";
        out.push(Problem::warning(line, "last row", "the end of its line", found));
        tie = Tie::Declared(false);
    }
    out.end(period.end(line, zones, tie));
}

struct Received {
    layout: Layout,
    common: Common,
    currency: usize,
    amount: usize,
    kind: Option<usize>,
    period: Period,
    zones: Zones,
    accounts: Accounts,
}

impl Received {
    fn new(layout: Layout) -> Result<Self, Problem> {
        Ok(Self {
            common: Common::new(&layout)?,
            currency: layout.need("currency")?,
            amount: layout.need("amount")?,
            kind: layout.one(&["type", "acquirer response", "status"])?,
            period: Period::default(),
            zones: Zones::default(),
            accounts: Accounts::default(),
            layout,
        })
    }
}

impl Report for Received {
    fn row(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        row.fits(&self.layout)?;
        let account = self.common.account(row);
        if !out.is_open() {
            out.begin(row.line, Finality::Notice, |statement| statement.account = some(account));
        }
        self.accounts.add(row.line, account, out);
        self.zones.add(row.line, row.maybe(self.common.zone), out);
        let currency = currency(row, "Currency", row.get(self.currency))?;
        let text = row.get(self.amount);
        let minor = Numerals::PLAIN.read_unsigned(text, currency);
        let minor = minor.map_err(|r| r.at(row.line, "Amount", text, currency))?;
        let (mut entry, mut line) = out.entry(row, minor, currency);
        self.common.tag(row, row.maybe(self.kind), &mut line)?;
        line.gross = money(minor, currency);
        entry.status = EntryStatus::Info;
        entry.type_code = some(row.maybe(self.kind));
        line.kind = LineKind::Attempt;
        entry.booked_on = self.common.day(row, out);
        self.period.add(entry.booked_on);
        out.tell(entry, line);
        Ok(())
    }

    fn last(&self, row: &Row<'_>, at: usize) -> Option<(Last, u32)> {
        if at == self.amount {
            return Some(last_money(row, at, Some(self.currency)));
        }
        self.common.last(at).map(|last| (last, 0))
    }

    fn end(&mut self, line: u64, out: &mut Out) {
        end_of_attempts((&mut self.period, &self.zones), line, Finality::Notice, out);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::settlement::Item;
    use crate::settlement::ledger::{State, inspect};

    fn items(text: &str, open: fn(Source) -> Box<dyn Parse>) -> Vec<Item> {
        let input = Box::new(Cursor::new(text.as_bytes().to_vec()));
        let mut parser = open(Source::open(input, None).unwrap());
        std::iter::from_fn(|| parser.next().unwrap()).collect()
    }

    fn account(items: &[Item]) -> Option<String> {
        items.iter().find_map(|item| match item {
            Item::Statement(statement) => statement.account.clone(),
            _other => None,
        })
    }

    #[test]
    fn a_report_is_of_its_merchant_account() {
        let header = "Company Account,Merchant Account,Psp Reference,Merchant Reference,\
                      Creation Date,TimeZone,Currency,Amount,Type";
        let of = |accounts: [&str; 2]| {
            let [first, second] = accounts;
            let row = "PSP,ref,2026-06-01 09:15:02,CET,EUR,1.00,Received";
            items(&format!("{header}\nCo,{first},{row}\nCo,{second},{row}\n"), open_received)
        };
        let warned = |items: &[Item]| items.iter().any(|item| matches!(item, Item::Problem(_)));
        let one = of(["Shop", "Shop"]);
        assert_eq!((account(&one).as_deref(), warned(&one)), (Some("Shop"), false));
        let two = of(["Shop", "Other"]);
        assert_eq!((account(&two).as_deref(), warned(&two)), (Some("Shop"), true));
        let none = of(["", ""]);
        assert_eq!((account(&none).as_deref(), warned(&none)), (Some("Co"), false));
    }

    fn state(text: &str) -> State {
        inspect(Box::new(Cursor::new(text.as_bytes().to_vec())), None, None).unwrap().state
    }

    #[test]
    fn amounts_of_thousands_and_sides_that_were_turned_are_refused() {
        let header = "Psp Reference,Type,Gross Currency,Gross Debit (GC),Gross Credit (GC),\
                      Net Currency,Net Debit (NC),Net Credit (NC),Batch Number";
        let of = |first: &str, payout: &str| {
            let rows = format!("P1,{first},1\n,MerchantPayout,,,,{payout},1\n");
            state(&format!("{header}\n{rows}"))
        };
        for (first, payout) in [
            ("Settled,EUR,,10.00,EUR,,9.00", "EUR,9.00,"),
            ("Settled,KWD,,1.000,KWD,,1.000", "KWD,1.000,"),
            ("Settled,JPY,,1000,JPY,,1000", "JPY,1000,"),
            ("Settled,EUR,,0.05,EUR,0.10,", "EUR,,0.10"),
            ("SettledReversed,EUR,10.00,,EUR,10.00,", "EUR,,10.00"),
        ] {
            assert_eq!(of(first, payout), State::Ok, "{first}");
        }
        for (first, payout) in [
            ("Settled,EUR,,1.000,EUR,,1.000", "EUR,1.000,"),
            ("Settled,EUR,,9.00,EUR,,-9.00", "EUR,-9.00,"),
            ("Settled,EUR,10.00,,EUR,9.00,", "EUR,,9.00"),
            ("Refunded,EUR,,10.00,EUR,,11.00", "EUR,11.00,"),
            ("Refunded,,,,EUR,,11.00", "EUR,11.00,"),
            ("Refunded,EUR,10.00,,EUR,,11.00", "EUR,11.00,"),
            ("Settled,EUR,,10.00,EUR,9.00,", "EUR,,9.00"),
            ("Settled,,,,EUR,0.10,", "EUR,,0.10"),
            ("Chargeback,EUR,,10.00,EUR,,11.00", "EUR,11.00,"),
        ] {
            assert_eq!(of(first, payout), State::Quarantined, "{first}");
        }
    }

    const WHOLE: &str = "Merchant Account,Psp Reference,Type,Gross Currency,Gross Debit (GC),\
                         Gross Credit (GC),Net Currency,Net Debit (NC),Net Credit (NC),\
                         Commission (NC),Markup (NC),Scheme Fees (NC),Interchange (NC),\
                         Batch Number";

    #[test]
    fn parts_of_a_batch_stand_beside_each_other() {
        let row = |account: &str, batch: u8| {
            format!("{account},P{batch},Settled,EUR,,10.00,EUR,,9.00,1.00,,,,{batch}\n")
        };
        let paid = |account: &str, batch: u8| {
            format!("{account},,MerchantPayout,,,,EUR,18.00,,,,,,{batch}\n")
        };
        for (one, other) in [(("A", 7), ("B", 7)), (("A", 7), ("A", 8))] {
            let rows = [one, other, one, other].map(|(account, batch)| row(account, batch));
            let paid = [one, other].map(|(account, batch)| paid(account, batch));
            let text = format!("{WHOLE}\n{}{}", rows.concat(), paid.concat());
            let found = inspect(Box::new(Cursor::new(text.into_bytes())), None, None).unwrap();
            assert_eq!(found.state, State::Ok, "{:?}", found.sums.problems);
            let mut known = std::collections::BTreeSet::new();
            for sum in &found.sums.statements {
                let own = (sum.head.account.clone(), sum.head.id.clone());
                assert!(known.insert(own), "no part is another issue of another one");
                assert_ne!(sum.ties, Some(false));
            }
        }
    }

    #[test]
    fn a_gross_amount_that_is_not_the_rest_and_its_fees_is_passed_over() {
        let of = |row: &str| {
            let text = format!("{WHOLE}\nA,P1,{row},7\n");
            let lines = items(&text, open_settlement).into_iter();
            let mut lines = lines.filter_map(|item| match item {
                Item::Line(line) => Some(line.gross.map(|gross| gross.minor)),
                _other => None,
            });
            lines.next().unwrap()
        };
        assert_eq!(of("Settled,EUR,,100.00,EUR,,98.50,1.00,.20,0.10,.20"), Some(10_000));
        assert_eq!(of("Settled,EUR,,900.00,EUR,,98.50,1.00,.20,0.10,.20"), None);
        assert_eq!(of("Settled,USD,,900.00,EUR,,98.50,1.00,.20,0.10,.20"), Some(90_000));
        assert_eq!(of("Refunded,EUR,20.00,,EUR,20.10,,.10,,,"), Some(-2_000));
        assert_eq!(of("SettledExternally,EUR,,40.00,EUR,,,,,,"), Some(4_000));
    }

    #[test]
    fn a_payable_amount_goes_the_way_of_its_record_and_stands_once() {
        let header = "Psp Reference,Merchant Reference,Record Type,Main Currency,Main Amount,\
                      Settlement Currency,Payable (SC),Booking Date";
        let of = |rows: &str| state(&format!("{header}\n{rows}\n"));
        for row in [
            "P1,r,Authorised,EUR,10.00,,,2026-06-02",
            "P1,r,Settled,EUR,10.00,EUR,9.00,2026-06-02",
            "P1,r,Settled,EUR,0.05,EUR,-0.10,2026-06-02",
            "P1,r,Refunded,EUR,10.00,EUR,-11.00,2026-06-02",
            "P1,r,Authorised,EUR,10.00,,,2026-06-02\nP1,r,Authorised,EUR,10.00,,,2026-06-02",
        ] {
            assert_eq!(of(row), State::Ok, "{row}");
        }
        for row in [
            "P1,r,Settled,EUR,10.00,EUR,-9.00,2026-06-02",
            "P1,r,Settled,EUR,10.00,USD,-9.00,2026-06-02",
            "P1,r,Refunded,EUR,10.00,EUR,11.00,2026-06-02",
            "P1,r,Settled,EUR,1.000,EUR,1.000,2026-06-02",
            "P1,r,Settled,EUR,,EUR,9.00,2026-06-02",
            "P1,r,Settled,,,,,2026-06-02",
            "P1,r,Settled,EUR,9.00,EUR,9.00,2026-06-02\n\
             P1,r,Settled,EUR,9.00,EUR,9.00,2026-06-02",
        ] {
            assert_eq!(of(row), State::Quarantined, "{row}");
        }
        let received = "Merchant Account,Psp Reference,Merchant Reference,Creation Date,TimeZone,\
                        Currency,Amount";
        let refused = ["1.000", "-1.00"].map(|amount| (amount, State::Quarantined));
        for (amount, want) in [("1.00", State::Ok)].into_iter().chain(refused) {
            let row = format!("Shop,P1,r,2026-06-01 09:15:02,CET,EUR,{amount}");
            assert_eq!(state(&format!("{received}\n{row}\n")), want, "{amount}");
        }
    }

    const RECORDS: &str = "Psp Reference,Merchant Reference,Record Type,Main Currency,Main Amount,\
                           Settlement Currency,Payable (SC),Booking Date,TimeZone";

    #[test]
    fn a_capture_that_failed_takes_back_what_it_made_payable() {
        let of = |record: &str, payable: &str| {
            let row = format!("P1,r,{record},EUR,10.00,{payable},2026-06-02,CET");
            let items = items(&format!("{RECORDS}\n{row}\n"), open_accounting);
            let mut told = items.into_iter().filter_map(|item| match item {
                Item::Line(line) => Some((line.kind, line.direction)),
                _other => None,
            });
            told.next().unwrap()
        };
        use crate::model::settlement::Direction::{Credit, Debit};
        for (record, payable, want) in [
            ("CaptureFailed", "EUR,-9.85", (LineKind::Return, Debit)),
            ("RefundFailed", "EUR,3.00", (LineKind::Return, Credit)),
            ("CaptureFailed", "EUR,0.00", (LineKind::Attempt, Credit)),
            ("CaptureFailed", ",", (LineKind::Attempt, Credit)),
            ("RefundFailed", ",", (LineKind::Attempt, Credit)),
        ] {
            assert_eq!(of(record, payable), want, "{record} {payable}");
        }
    }

    #[test]
    fn zones_that_are_no_seasons_of_one_are_told() {
        let of = |zones: [&str; 3]| {
            let rows = zones.map(|zone| format!("P1,r,Received,EUR,10.00,,,2026-06-02,{zone}\n"));
            let text = format!("{RECORDS}\n{}", rows.concat());
            let problems =
                items(&text, open_accounting).into_iter().filter_map(|item| match item {
                    Item::Problem(problem) => Some(problem.to_string()),
                    _other => None,
                });
            problems.collect::<Vec<_>>()
        };
        for zones in [["CET", "CEST", "CET"], ["PST", "", "pdt"], ["UTC", "UTC", "UTC"]] {
            assert!(of(zones).is_empty(), "{zones:?}");
        }
        let told = of(["CET", "PST", "UTC"]);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("TimeZone: expected CET alone"), "{told:?}");
    }

    #[test]
    fn words_of_no_payment_are_no_merchant_reference() {
        let header = "Merchant Account,Psp Reference,Type,Modification Reference,Net Currency,\
                      Net Debit (NC),Net Credit (NC),Modification Merchant Reference,Batch Number";
        let items = items(
            &format!(
                "{header}\nShop,,Balancetransfer,,USD,,5.00,Balancetransfer from batch 237,238\n\
                 Shop,,MerchantPayout,,USD,6.00,,payout 238,238\n\
                 Shop,PSP1,Refunded,MOD1,USD,1.00,,refund-1,238\n"
            ),
            open_settlement,
        );
        let of = |kind: TagKind| -> Vec<String> {
            let lines = items.iter().filter_map(|item| match item {
                Item::Line(line) => Some(line),
                _other => None,
            });
            let tags = lines.flat_map(|line| line.tags.iter().filter(move |tag| tag.kind == kind));
            tags.map(|tag| tag.text.clone()).collect()
        };
        assert_eq!(of(TagKind::MerchantReference), ["payout 238", "refund-1"]);
        assert_eq!(of(TagKind::Text), ["Balancetransfer from batch 237"]);
    }
}
