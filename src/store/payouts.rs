//! Payouts of a PSP: what its report says that each is made of, and the bank's booking of it.
//!
//! A payout is no row of the user's. A bank's line that is a payout's belongs to [`TABLE`], under
//! the payout's key, so that every line is still some one thing's.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::time::Instant;
use crate::store::error::StoreError;
use crate::store::files::{LinePlace, StoredLine, booked_minor};

/// What stands for a mapped table where a line is a payout's.
pub const TABLE: &str = "tieout_payouts";

/// Reports that list payouts, and not what they are made of: a payout that no other report tells
/// of is what they say that was paid.
const LISTS: [&str; 1] = ["checkout_payouts"];

/// Reports that may leave out some of what a payout is made of.
const PARTIAL: [&str; 3] = ["checkout_actions", "adyen_accounting", "adyen_received"];

/// Reports that may have no line of the payout itself: the first row of each payout carries its id.
/// Checkout.com's calls its statement by the first payout, and the fee of paying out by its own.
pub(in crate::store) const BY_NAME: &str =
    "f.format in ('amazon', 'checkout_breakdown', 'mollie', 'shopify', 'stripe')";

/// Whose a payout of a statement `s` of a file `f` is: Adyen numbers each merchant account's
/// batches alone, and tells of several accounts in one report. Empty: the id says all.
pub(in crate::store) const WHOSE: &str =
    "case f.format when 'adyen_settlement' then s.bank_account else '' end";

/// A line `l` of a file `f` that is a payout of its own. What Stripe calls by a longer word (one
/// that failed, say) is a part of the payout that it stands in, unless it is of just that one.
const OWN: &str = "(l.kind = 'payout' and (f.format <> 'stripe' \
     or substr(lower(coalesce(l.type_code, '')), 1, 7) <> 'payout_' \
     or coalesce(l.psp_reference, '') = l.batch))";

/// What says which payout a line `l` of a file `f` is of: the payout's own, or the fee of it.
pub(in crate::store) fn says_which() -> String {
    format!(
        "l.batch is not null and ({OWN} \
         or (l.kind = 'fee' and l.psp_reference = l.batch and f.format = 'checkout_breakdown'))"
    )
}

/// A line `l` that may be the bank's booking of a payout, or of what came back of it.
pub(in crate::store) const BANKS: &str = "l.decides and (l.kind = 'movement' \
     or (l.kind = 'return' and l.psp_reference is null))";

/// The verbs about payouts. A payout is one, however many files and reports tell of it. `until`
/// leaves out what came later, so that a report which is built again is the same.
#[expect(async_fn_in_trait, reason = "called on concrete types only, never as dyn")]
pub trait PayoutDriver {
    /// The payouts that carry one of these texts: as the PSP's id of the payout, or among the
    /// references of the line that says it was paid out. Only such lines that were not taken out.
    /// A payout that several files tell of goes by the first of them.
    async fn payouts_named(
        &self,
        texts: &[String],
        until: Option<Instant>,
    ) -> Result<Vec<NamedPayout>, StoreError>;

    /// What a payout is made of; none where its file has no such line.
    async fn payout(
        &self,
        key: &PayoutKey,
        until: Option<Instant>,
    ) -> Result<Option<Payout>, StoreError>;

    /// The payouts that these lines are parts of, or were bookings of by then; a payout may be
    /// there under several of its files.
    async fn payouts_at(
        &self,
        places: &[LinePlace],
        until: Instant,
    ) -> Result<BTreeSet<PayoutKey>, StoreError>;

    /// The payouts that a file tells of, by id and currency; none of those that it only tells
    /// again.
    async fn payouts_of_file(
        &self,
        file: i64,
        until: Option<Instant>,
    ) -> Result<Vec<Payout>, StoreError>;

    /// The bank's lines that carry the id of a payout, or a reference of the line that says it was
    /// paid out and of no other payout, and what it took back of it, by their place.
    async fn payout_bookings(
        &self,
        payout: &PayoutKey,
        until: Option<Instant>,
    ) -> Result<Vec<Booking>, StoreError>;
}

/// A bank's line that names a payout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Booking {
    /// The line.
    pub line: StoredLine,
    /// When it became what it belongs to.
    pub matched_at: Option<Instant>,
}

/// Which payout, and the first file that tells of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PayoutKey {
    /// The PSP account.
    pub account: String,
    /// The PSP's id of the payout or batch.
    pub payout: String,
    /// Its currency.
    pub currency: String,
    /// The file.
    pub file: i64,
    /// The merchant account whose payout it is, where the id is one of its own; else empty.
    pub merchant: String,
}

impl PayoutKey {
    /// As a composite key: a JSON array, whose last part is left out where it is empty.
    pub fn text(&self) -> String {
        let Self { account, payout, currency, file, merchant } = self;
        match merchant.as_str() {
            "" => serde_json::json!([account, payout, currency, file]),
            merchant => serde_json::json!([account, payout, currency, file, merchant]),
        }
        .to_string()
    }

    /// Reads [`PayoutKey::text`].
    pub fn parse(text: &str) -> Option<Self> {
        let of_account = || {
            let (account, payout, currency, file, merchant) = serde_json::from_str(text).ok()?;
            Some(Self { account, payout, currency, file, merchant })
        };
        let (account, payout, currency, file) = match serde_json::from_str(text) {
            Ok(parts) => parts,
            Err(_more) => return of_account(),
        };
        Some(Self { account, payout, currency, file, merchant: String::new() })
    }

    /// Of the payout that a bank's line is the booking of.
    pub fn of_booking(line: &StoredLine) -> Option<Self> {
        let row = line.row.as_ref().filter(|(table, _)| table == TABLE);
        row.and_then(|(_, key)| Self::parse(key))
    }

    /// The PSP's id, and whose it is, in words.
    pub fn name(&self) -> String {
        match self.merchant.as_str() {
            "" => self.payout.clone(),
            merchant => format!("{} of {merchant}", self.payout),
        }
    }

    /// The same id as that of a merchant account.
    fn of(&self, merchant: &str) -> Self {
        Self { merchant: merchant.to_owned(), ..self.clone() }
    }

    /// Whether two are one id of one merchant account, in whatever currency and file.
    pub fn is_one_id(&self, other: &Self) -> bool {
        (&self.account, &self.payout) == (&other.account, &other.payout)
            && is_one(&self.merchant, &other.merchant)
    }

    /// Whether two are one payout, whichever files tell of it.
    pub fn is_one_payout(&self, other: &Self) -> bool {
        self.is_one_id(other) && self.currency == other.currency
    }
}

/// A payout and the text that it was found by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPayout {
    /// The text.
    pub text: String,
    /// The payout.
    pub key: PayoutKey,
}

/// What a payout is made of, in minor units, + being money to the merchant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payout {
    /// Which.
    pub key: PayoutKey,
    /// How many lines it is made of, the payout's own not counted.
    pub lines: i64,
    /// Payments, before fees.
    pub gross: i128,
    /// What the PSP took.
    pub fees: i128,
    /// Refunds, and what came back.
    pub refunds: i128,
    /// Chargebacks, less those that were undone.
    pub chargebacks: i128,
    /// Reserves, corrections and whatever else.
    pub adjustments: i128,
    /// What the PSP says that it paid out, + being money to the merchant; none: it does not say.
    pub paid: Option<i128>,
    /// Bank lines that are this payout's already.
    pub booked: i64,
    /// What a list of payouts says that it is, where no report tells all that it is made of.
    pub declared: Option<i128>,
}

impl Payout {
    /// What all its lines come to.
    pub fn net(&self) -> i128 {
        let parts = [self.fees, self.refunds, self.chargebacks, self.adjustments];
        let sum = parts.into_iter().fold(self.gross, i128::saturating_add);
        self.declared.filter(|_| self.is_only_listed()).unwrap_or(sum)
    }

    /// Whether nothing tells what it is made of.
    pub fn is_only_listed(&self) -> bool {
        self.declared.is_some() && self.lines == 0
    }

    /// What the bank books of it, where that is known: where its lines may lack some of it, what
    /// the list of payouts says, as if nothing told of them.
    pub fn booked_as(&self) -> Option<i128> {
        self.declared.or_else(|| Some(self.net()).filter(|_| self.adds_up()))
    }

    /// Whether it comes to nothing, as the PSP says as well: no bank books that.
    pub fn is_nil(&self) -> bool {
        self.paid == Some(0) && self.net() == 0
    }

    /// Whether it adds up to what the PSP says that it paid out, where it says so.
    pub fn adds_up(&self) -> bool {
        self.paid.is_none_or(|paid| paid == self.net())
    }
}

/// The sums of one payout as the databases add them up.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::store) struct Sums {
    pub lines: i64,
    pub gross: i128,
    pub fees: i128,
    pub refunds: i128,
    pub chargebacks: i128,
    pub adjustments: i128,
    /// Of the payout's own lines: how many, and what they come to.
    pub payouts: i64,
    pub paid: i128,
}

impl Sums {
    fn add(&mut self, more: &Self) {
        let parts = [
            (&mut self.gross, more.gross),
            (&mut self.fees, more.fees),
            (&mut self.refunds, more.refunds),
            (&mut self.chargebacks, more.chargebacks),
            (&mut self.adjustments, more.adjustments),
            (&mut self.paid, more.paid),
        ];
        for (sum, more) in parts {
            *sum = sum.saturating_add(more);
        }
        self.lines = self.lines.saturating_add(more.lines);
        self.payouts = self.payouts.saturating_add(more.payouts);
    }

    fn net(&self) -> i128 {
        let parts = [self.fees, self.refunds, self.chargebacks, self.adjustments];
        parts.into_iter().fold(self.gross, i128::saturating_add)
    }

    /// What a report of this format says that was paid, of a payout that comes to this. A payout
    /// leaves the PSP's balance, and comes to the merchant; some exports write it as what came.
    fn paid(&self, format: &str, net: i128) -> Option<i128> {
        let is_as_it_came = self.paid == net || LISTS.contains(&format);
        let paid = if is_as_it_came { self.paid } else { self.paid.saturating_neg() };
        (self.payouts > 0).then_some(paid)
    }
}

/// A payout as one file tells of it.
#[derive(Debug, Clone)]
pub(in crate::store) struct Told {
    pub key: PayoutKey,
    pub format: String,
    pub version: String,
    /// The account at the PSP, as the file writes it.
    pub bank_account: String,
    /// Lines that another file of the kind told before.
    pub again: bool,
    pub sums: Sums,
}

/// A payout's id and its currency.
type Name = (String, String);

/// Payouts that are looked for, and the files that tell of them.
#[derive(Debug, Default)]
pub(in crate::store) struct Sought {
    /// The accounts at the PSP that they are of: numbers of batches are each account's own.
    accounts: BTreeMap<Name, BTreeSet<String>>,
    files: BTreeMap<Name, BTreeSet<i64>>,
}

impl Sought {
    /// Payouts, each with an account at the PSP.
    pub(in crate::store) fn of(asked: Vec<(String, String, String)>) -> Self {
        let mut accounts: BTreeMap<Name, BTreeSet<String>> = BTreeMap::new();
        for (payout, currency, account) in asked {
            accounts.entry((payout, currency)).or_default().insert(account);
        }
        Self { accounts, files: BTreeMap::new() }
    }

    pub(in crate::store) fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    /// Ids and currencies.
    pub(in crate::store) fn names(&self) -> Vec<(&str, &str)> {
        self.accounts.keys().map(|(payout, currency)| (&**payout, &**currency)).collect()
    }

    /// Ids and currencies, each with every file that is known to tell of it.
    pub(in crate::store) fn places(&self) -> Vec<(&str, &str, i64)> {
        let mut places = Vec::new();
        for ((payout, currency), files) in &self.files {
            places.extend(files.iter().map(|file| (payout.as_str(), currency.as_str(), *file)));
        }
        places
    }

    /// Takes files in that tell of payouts; whether one is new.
    pub(in crate::store) fn add(&mut self, found: Vec<(String, String, i64)>) -> bool {
        let mut is_new = false;
        for (payout, currency, file) in found {
            is_new |= self.files.entry((payout, currency)).or_default().insert(file);
        }
        is_new
    }

    /// Payouts of which no line counts are told by the file that they were asked of.
    pub(in crate::store) fn begin_at(&mut self, file: i64) {
        for name in self.accounts.keys() {
            self.files.entry(name.clone()).or_insert_with(|| BTreeSet::from([file]));
        }
    }

    /// What was sought, by id, currency and merchant account, each with the keys that bookings may
    /// have it under.
    pub(in crate::store) fn payouts(&self, told: Vec<Told>) -> Vec<(Payout, Vec<String>)> {
        let mut by_name: BTreeMap<Name, Vec<Told>> = BTreeMap::new();
        for one in told {
            let name = (one.key.payout.clone(), one.key.currency.clone());
            let own = self.accounts.get(&name);
            let is_own = own.is_some_and(|own| own.iter().any(|o| is_one(o, &one.bank_account)));
            if is_own {
                by_name.entry(name).or_default().push(one);
            }
        }
        let each = by_name.into_values().flat_map(by_merchant);
        let found = each.filter_map(|(merchant, told)| {
            let mut payout = assembled(&told)?;
            payout.key.merchant.clone_from(&merchant);
            // Under the file's own words, too, as long as none told whose it is.
            let both = |one: &Told| ["", &merchant].map(|own| one.key.of(own).text());
            let keys: BTreeSet<String> = told.iter().flat_map(both).collect();
            Some((payout, keys.into_iter().collect()))
        });
        found.collect()
    }
}

/// What files tell of one id, by the merchant account that it is an id of. A report that does not
/// say whose it is tells of each.
fn by_merchant(told: Vec<Told>) -> Vec<(String, Vec<Told>)> {
    let own = told.iter().map(|one| one.key.merchant.clone()).filter(|own| !own.is_empty());
    let merchants: BTreeSet<String> = own.collect();
    if merchants.is_empty() {
        return vec![(String::new(), told)];
    }
    let of = |merchant: String| {
        let own = told.iter().filter(|one| is_one(&merchant, &one.bank_account)).cloned().collect();
        (merchant, own)
    };
    merchants.into_iter().map(of).collect()
}

/// Whether two accounts at the PSP may be one: some reports do not say whose they are.
fn is_one(own: &str, other: &str) -> bool {
    own == other || own.is_empty() || other.is_empty()
}

/// The texts by which a bank's line names a payout: its id, and those references of its own lines
/// that no other payout has. What is paid out under its id in another currency is no other.
pub(in crate::store) fn names_of(
    key: &PayoutKey,
    references: Vec<String>,
    named: &[NamedPayout],
) -> Vec<String> {
    let is_others = |text: &String| named.iter().any(|n| n.text == *text && !n.key.is_one_id(key));
    let mut names = vec![key.payout.clone()];
    names.extend(references.into_iter().filter(|text| *text != key.payout && !is_others(text)));
    names
}

/// Of payouts that lines name, each with its account at the PSP: those that are one go by the
/// first file that names it.
pub(in crate::store) fn one_each(mut found: Vec<(NamedPayout, String)>) -> Vec<NamedPayout> {
    found.sort_by(|(one, _), (next, _)| (&one.key, &one.text).cmp(&(&next.key, &next.text)));
    let mut firsts: BTreeMap<[String; 3], Vec<(String, PayoutKey)>> = BTreeMap::new();
    let mut named: Vec<NamedPayout> = Vec::with_capacity(found.len());
    for (one, account) in found {
        let NamedPayout { text, key } = one;
        let name = [key.account.clone(), key.payout.clone(), key.currency.clone()];
        let known = firsts.entry(name).or_default();
        let first = known.iter().find(|(other, _)| is_one(other, &account));
        let first = first.map(|(_, first)| first.clone());
        if first.is_none() {
            known.push((account, key.clone()));
        }
        named.push(NamedPayout { text, key: first.unwrap_or(key) });
    }
    named.sort_by(|one, next| (&one.text, &one.key).cmp(&(&next.text, &next.key)));
    named.dedup();
    named
}

/// One telling of what a payout is made of: the lines of all reports of a kind, each once; or all
/// lines of one file.
struct Telling<'a> {
    format: &'a str,
    is_of_kind: bool,
    sums: Sums,
}

/// One payout of what files tell of it. Several reports of the PSP tell the same money: it is made
/// of what one of them says, one that comes to what was paid before any other.
fn assembled(told: &[Told]) -> Option<Payout> {
    let mut kinds: BTreeMap<(&str, &str), Sums> = BTreeMap::new();
    let mut files: BTreeMap<(&str, i64), Sums> = BTreeMap::new();
    for one in told {
        let (format, version) = (one.format.as_str(), one.version.as_str());
        files.entry((format, one.key.file)).or_default().add(&one.sums);
        if !one.again {
            kinds.entry((format, version)).or_default().add(&one.sums);
        }
    }
    let paids = |net: i128| -> Vec<i128> {
        kinds.iter().filter_map(|((format, _), sums)| sums.paid(format, net)).collect()
    };
    let of_kinds = kinds.iter().map(|((format, _), sums)| (*format, true, *sums));
    let of_files = files.iter().map(|((format, _), sums)| (*format, false, *sums));
    let tellings = of_kinds.chain(of_files);
    let tellings = tellings.map(|(format, is_of_kind, sums)| Telling { format, is_of_kind, sums });
    let best = tellings.filter(|telling| telling.sums.lines > 0).max_by_key(|telling| {
        let Telling { format, is_of_kind, sums } = telling;
        let fits = paids(sums.net()).iter().all(|paid| *paid == sums.net());
        (fits, !PARTIAL.contains(format), *is_of_kind, sums.payouts > 0, sums.lines)
    });
    let listed = || {
        let list = kinds.iter().find(|((format, _), _)| LISTS.contains(format));
        list.and_then(|((format, _), sums)| sums.paid(format, 0))
    };
    let is_all = best.as_ref().is_some_and(|telling| !PARTIAL.contains(&telling.format));
    let declared = if is_all { None } else { listed() };
    let is_told = best.is_some();
    let sums = best.map(|telling| telling.sums).unwrap_or_default();
    let net = declared.filter(|_| !is_told).unwrap_or_else(|| sums.net());
    let paids = paids(net);
    let naming = told.iter().filter(|one| one.sums.payouts > 0 && !one.again).map(|one| &one.key);
    let key = naming.min().or_else(|| told.iter().map(|one| &one.key).min())?.clone();
    Some(Payout {
        key,
        lines: sums.lines,
        gross: sums.gross,
        fees: sums.fees,
        refunds: sums.refunds,
        chargebacks: sums.chargebacks,
        adjustments: sums.adjustments,
        // Where two reports say two things, the one that does not come to the rest is shown.
        paid: paids.iter().find(|paid| **paid != net).or_else(|| paids.first()).copied(),
        booked: 0,
        declared,
    })
}

/// What makes a line `l` of a file `f` one that stood at a time, in SQL; all that is there does
/// where `until` is null. What a person let count later did not count then, and what that took out
/// did.
pub(in crate::store) fn stood_sql(until: &str) -> String {
    let released = |file: &str| {
        format!(
            "exists (select 1 from tieout_releases w where w.file_id = {file} \
             and w.state = 'carried_out' and w.ended_at > {until})"
        )
    };
    format!(
        "l.status = 'booked' and coalesce(l.reason, '') <> 'statement_corrected' \
         and ({until} is null or (f.received_at <= {until} and not {})) \
         and (l.state <> 'superseded' or exists (select 1 from tieout_statements o \
         where o.file_id = l.file_id and o.number = l.statement and {}))",
        released("f.id"),
        released("o.rival_file")
    )
}

/// The columns of a line `l` by which it is a payout's part, and then the key of one that it was
/// the booking of by then.
pub(in crate::store) fn of_payout(until: &str) -> String {
    format!(
        "l.account, l.batch, l.currency, l.file_id, {WHOSE}, case when l.table_name = '{TABLE}' \
         and l.matched_at <= {until} then l.key end"
    )
}

/// Of the columns of [`of_payout`].
pub(in crate::store) fn key_of(
    account: String,
    batch: Option<String>,
    (currency, file, merchant): (String, i64, String),
    booking: Option<String>,
) -> Option<PayoutKey> {
    let part = batch.map(|payout| PayoutKey { account, payout, currency, file, merchant });
    booking.as_deref().and_then(PayoutKey::parse).or(part)
}

/// The sums in SQL, in the order of [`Sums`], of lines `l` of files `f`. An amount that a fee was
/// taken from is told before it and with the fee; `{sum}` makes a sum of what stands in it.
pub(in crate::store) fn sums_sql(sum: impl Fn(&str) -> String) -> String {
    // A report that tells what was paid and what of it is the merchant's tells the fee by both.
    const FEE: &str = "(case when l.fee_currency = l.currency then coalesce(l.fee_minor, 0) \
         when l.fee_minor is null and l.gross_currency = l.currency \
         and l.net_currency = l.currency and l.amount_minor <> 0 \
         then case l.direction when 'credit' then abs(l.gross_minor) - l.amount_minor \
         else l.amount_minor - abs(l.gross_minor) end else 0 end)";
    let moved = booked_minor();
    let of = |kinds: &str, what: &str| {
        sum(&format!("case when l.kind in ({kinds}) then {what} else 0 end"))
    };
    let before = format!("{moved} + {FEE}");
    let taken = format!(
        "case when l.kind = 'fee' then {moved} when {OWN} then 0 \
         else -{FEE} end"
    );
    let adjusted = format!(
        "case when l.kind = 'adjustment' or (l.kind = 'payout' and not {OWN}) then {before} \
         else 0 end"
    );
    [
        format!("count(*) - count(case when {OWN} then 1 end)"),
        of("'payment', 'movement'", &before),
        sum(&taken),
        of("'refund', 'return'", &before),
        of("'chargeback', 'chargeback_reversed'", &before),
        sum(&adjusted),
        format!("count(case when {OWN} then 1 end)"),
        sum(&format!("case when {OWN} then {moved} else 0 end")),
    ]
    .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_back() {
        let key = PayoutKey {
            account: "stripe, \"live\"".into(),
            payout: "po_1".into(),
            currency: "EUR".into(),
            file: 7,
            merchant: String::new(),
        };
        let text = r#"["stripe, \"live\"","po_1","EUR",7]"#;
        assert_eq!((key.text().as_str(), PayoutKey::parse(text)), (text, Some(key.clone())));
        let own = key.of("Shop \"EU\"");
        assert_eq!(PayoutKey::parse(&own.text()), Some(own.clone()));
        assert!(own.is_one_payout(&key) && !own.is_one_payout(&key.of("Shop US")));
        assert_eq!(PayoutKey::parse("7"), None);
    }

    fn told(format: &str, file: i64, sums: Sums) -> Told {
        let (account, payout, currency) = ("a".into(), "p".into(), "EUR".into());
        Told {
            key: PayoutKey { account, payout, currency, file, merchant: String::new() },
            format: format.into(),
            version: String::new(),
            bank_account: String::new(),
            again: false,
            sums,
        }
    }

    #[test]
    fn a_payout_is_money_to_the_merchant_however_the_file_signs_it() {
        let of = |sums| assembled(&[told("stripe", 1, sums)]).unwrap();
        let sums = Sums { lines: 1, gross: 1_000, fees: -30, payouts: 1, ..Sums::default() };
        assert_eq!(of(Sums { paid: -970, ..sums }).paid, Some(970));
        assert_eq!(of(Sums { paid: 970, ..sums }).paid, Some(970));
        let wrong = of(Sums { paid: -900, ..sums });
        assert_eq!((wrong.paid, wrong.adds_up()), (Some(900), false));
        assert!(of(Sums { payouts: 0, ..sums }).adds_up(), "it does not say");
    }

    #[test]
    fn what_several_reports_tell_of_a_payout_counts_once() {
        let whole =
            Sums { lines: 1, gross: 1_000, fees: -30, payouts: 1, paid: -970, ..Sums::default() };
        let lacking = Sums { gross: 900, ..whole };
        let paid = Sums { payouts: 1, paid: 970, ..Sums::default() };
        let made = Sums { payouts: 0, paid: 0, ..whole };
        for (told, net, says, adds_up) in [
            // Two reports that say the same, and one of them that lacks a line.
            (vec![told("stripe", 1, whole), told("other", 2, whole)], 970, Some(970), true),
            (vec![told("stripe", 1, lacking), told("other", 2, whole)], 970, Some(970), true),
            (vec![told("stripe", 1, lacking)], 870, Some(970), false),
            // Parts of it in two files of one kind.
            (
                vec![
                    told("stripe", 1, Sums { gross: 400, ..made }),
                    told("stripe", 2, Sums { gross: 600, fees: 0, ..whole }),
                ],
                970,
                Some(970),
                true,
            ),
            // What it is made of, what was paid, and both.
            (vec![told("checkout_breakdown", 1, made)], 970, None, true),
            (vec![told("checkout_payouts", 1, paid)], 970, Some(970), true),
            (
                vec![told("checkout_payouts", 1, paid), told("checkout_breakdown", 2, made)],
                970,
                Some(970),
                true,
            ),
            (
                vec![
                    told("checkout_payouts", 1, paid),
                    told("checkout_breakdown", 2, Sums { gross: 999, ..made }),
                ],
                969,
                Some(970),
                false,
            ),
            // A report that only says that it was paid, and should say what of.
            (vec![told("stripe", 1, paid)], 0, Some(-970), false),
        ] {
            let payout = assembled(&told).unwrap();
            let found = (payout.net(), payout.paid, payout.adds_up());
            assert_eq!(found, (net, says, adds_up), "{told:?}");
        }
    }

    #[test]
    fn the_same_number_of_two_merchants_is_two_payouts() {
        let named = |file: i64, account: &str| {
            let key = told("adyen_settlement", file, Sums::default()).key;
            (NamedPayout { text: "7".into(), key }, account.to_owned())
        };
        let files = |found| -> Vec<i64> {
            one_each(found).into_iter().map(|named| named.key.file).collect()
        };
        assert_eq!(files(vec![named(2, "one"), named(1, "one")]), [1]);
        assert_eq!(files(vec![named(2, "one"), named(1, "")]), [1]);
        assert_eq!(files(vec![named(2, "one"), named(1, "other")]), [1, 2]);
    }
}
