//! Bookings that two files tell: what both databases share of telling them.
//!
//! Statements overlap, and reports are downloaded twice. A line whose own id already counts in
//! another file, with the same money, is that booking told again: it is kept as `told_before` with
//! the place that counts, and counts nowhere itself. An id that several lines carry tells a booking
//! only together with its tag, the first of them the first, the second the second; so two equal
//! payments of one file stay two. Under tags that differ there are two bookings, whatever the id,
//! but where one tag is the other in capitals, without its marks, or cut. A sum without a tag and
//! the parts that another file lists under its id are one booking.
//! Where what counted is taken out, the lines that were told again are looked at anew, so that none
//! is lost. A PSP's row that another report has with other money counts nowhere either, and its
//! file is for a person.
//!
//! Rows without any id that no file has twice (Shopify's) are one where their whole text is.
//!
//! A file of rows has no ids. One that holds whole days of another is held, and a person decides.

use std::collections::{BTreeSet, HashMap};

use chrono::NaiveDate;

use crate::model::count::counted;
use crate::model::money::{Currency, Money};
use crate::model::settlement::{Finality, Problem};
use crate::store::files::{Ended, FileSums};
use crate::store::release::{DECIDES, SAME};

/// Banks' formats whose bookings carry an id of the bank's.
pub(in crate::store) const BANKS: [&str; 3] = ["camt.053", "mt940", "bai2"];

/// Files of rows whose bookings carry none: of a bank's the balances may show what else tells them.
const ROWS: [&str; 2] = ["bank_csv", "table"];

/// PSPs' reports whose rows carry an id of the PSP's.
const PSPS: [&str; 14] = [
    "stripe",
    "paypal_stl",
    "paypal_trr",
    "paypal_activity",
    "mollie",
    "braintree",
    "adyen_settlement",
    "adyen_accounting",
    "checkout_breakdown",
    "checkout_payouts",
    "checkout_actions",
    "mercadopago",
    "mercadopago_release",
    "trustly",
];

/// PSPs' reports whose rows carry no id, and of which no file has the same text twice.
const TEXTS: [&str; 1] = ["shopify"];

/// A bank's id of fewer letters may be a number within its statement.
const LONG: usize = 8;

/// MT940 has room for so many letters of a bank's id, and cuts the rest off.
const CUT: usize = 16;

/// A national number that stands alone has so many letters and digits at least, where it is not
/// known how many its country's accounts have.
const ACCOUNT: usize = 10;

/// So many digits of an account are compared at least, without the zeros before them.
const LEAST: usize = 5;

/// A bank's code in front of an account has so many letters and digits at least.
const BANK: usize = 4;

/// With how many letters and digits an IBAN's account ends it, by country; before them stands the
/// bank. As the registry of IBANs has them (ISO 13616).
const ACCOUNTS: [(&str, usize); 17] = [
    ("AT", 11),
    ("CH", 12),
    ("CZ", 16),
    ("DE", 10),
    ("DK", 10),
    ("ES", 10),
    ("GB", 8),
    ("HR", 10),
    ("IE", 8),
    ("LI", 12),
    ("LT", 11),
    ("LU", 13),
    ("LV", 13),
    ("NL", 10),
    ("PL", 16),
    ("SE", 17),
    ("SK", 16),
];

/// Banks cut tags to so many letters: MT940's own field, a subfield of its text, ISO 20022.
const TAG_CUTS: &str = "16, 27, 35";

/// Marks that banks take out of tags.
const MARKS: [&str; 9] = ["-", "_", "/", ".", ",", ":", "+", "#", " "];

/// How many days of an overlap are named.
const DAYS_NAMED: usize = 5;

/// How many lines of a file are named that another one told otherwise.
const LINES_NAMED: usize = 20;

/// By what bookings of a format are known again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Way {
    /// By the bank's reference, within one bank account.
    Bank,
    /// By the PSP's ids, within reports of one kind.
    Psp,
    /// By their whole text, within reports of one kind.
    Text,
    /// By the PSP's ids where the configuration names them, else by their whole text where they
    /// list attempts, or by the balances of their statement.
    Described,
    /// By the balances of their statement alone.
    Rows,
}

/// By what bookings of this format are known again; none: they carry no id.
pub(in crate::store) fn way(format: &str) -> Option<Way> {
    match format {
        bank if BANKS.contains(&bank) => Some(Way::Bank),
        psp if PSPS.contains(&psp) => Some(Way::Psp),
        text if TEXTS.contains(&text) => Some(Way::Text),
        "table" => Some(Way::Described),
        "bank_csv" => Some(Way::Rows),
        _without => None,
    }
}

/// The words in which the two databases differ.
pub(in crate::store) struct Dialect {
    /// A join whose left side is read first.
    pub join: &'static str,
    /// The first reference of one of these kinds that a line `l` carries.
    pub first: fn(&str) -> String,
    /// The tables `ours` (number, g) and `theirs` (file_id, number, g) of [`Sides`].
    pub sides: &'static str,
    /// The table `hit`: lines of the file $1 (own) and those of others (file_id, position) that
    /// carry its id at the PSP.
    pub hit: &'static str,
    /// The table `near`: lines of the file $1 (own, m) that came back and lines of its account
    /// (file_id, position) that carry the id of what came back.
    pub near: &'static str,
    /// What makes one text of several values.
    pub array: &'static str,
    /// What makes it a text.
    pub as_text: &'static str,
    /// A day `t.day` as a text.
    pub day: &'static str,
}

impl Dialect {
    /// Where the lines `l` of the file's own statements `s` are read, each beside its side `p`, and
    /// those of others.
    pub fn lines_of_sides(&self) -> [String; 2] {
        let join = self.join;
        [("ours", "$1"), ("theirs", "p.file_id")].map(|(side, file)| {
            format!(
                "{side} p {join} tieout_lines l on l.file_id = {file} \
                 and l.statement = p.number {join} tieout_statements s \
                 on s.file_id = l.file_id and s.number = l.statement"
            )
        })
    }
}

/// A statement of a bank, for what overlaps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct Side {
    /// Its file.
    pub file: i64,
    /// Its place in the file.
    pub number: i64,
    /// The file's format.
    pub format: String,
    /// As the file writes it.
    pub bank_account: String,
    /// Its currency; empty where it has none.
    pub currency: String,
    /// First day of its period.
    pub from: Option<NaiveDate>,
    /// Last day of it.
    pub to: Option<NaiveDate>,
    /// The balance before all of its bookings, in minor units.
    pub opening: Option<i64>,
    /// The balance after them.
    pub closing: Option<i64>,
}

/// Statements whose periods overlap: of the same g are those of one bank account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::store) struct Sides {
    /// Of the file: number and g.
    pub ours: Vec<(i64, i64)>,
    /// Of others: file, number and g.
    pub theirs: Vec<(i64, i64, i64)>,
    /// Those of others, where either the file or they are of a format that cuts references.
    pub cut: Vec<(i64, i64, i64)>,
    /// It is the file's own that are cut.
    pub own_cut: bool,
}

/// Which references of two sides are held against each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Refs {
    /// As they stand.
    Whole,
    /// The file's own were cut, and those of others were not.
    OwnCut,
    /// The other way round.
    TheirsCut,
}

impl Sides {
    /// What is held against what: others' statements, and which references.
    pub fn looks(&self) -> impl Iterator<Item = (&[(i64, i64, i64)], Refs)> {
        let cut = if self.own_cut { Refs::OwnCut } else { Refs::TheirsCut };
        let both = [(self.theirs.as_slice(), Refs::Whole), (self.cut.as_slice(), cut)];
        both.into_iter().filter(|(theirs, _)| !theirs.is_empty())
    }
}

/// Whether statements of a format cut the bank's references.
fn is_cut(side: &Side) -> bool {
    side.format == "mt940"
}

/// A bank account as a file writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Account {
    /// Its letters and digits, without the currency that some write behind it.
    whole: String,
    /// Those before the last stroke: the bank's code.
    bank: String,
    /// Those behind it, else all.
    number: String,
}

impl Account {
    fn of(side: &Side) -> Self {
        Self::written(&side.bank_account, &side.currency)
    }

    /// As a file writes it; an empty currency where there is none.
    fn written(bank_account: &str, currency: &str) -> Self {
        let mark = |letter: char| !letter.is_ascii_alphanumeric();
        let text = bank_account.to_ascii_uppercase();
        let text = text.trim_end_matches(mark);
        let text = match text.strip_suffix(currency) {
            Some(own) if !currency.is_empty() && !own.trim_end_matches(mark).is_empty() => {
                own.trim_end_matches(mark)
            }
            _as_it_is => text,
        };
        let plain =
            |text: &str| -> String { text.chars().filter(char::is_ascii_alphanumeric).collect() };
        let (bank, number) = text.rsplit_once('/').unwrap_or(("", text));
        Self { whole: plain(text), bank: plain(bank), number: plain(number) }
    }

    /// The country of an IBAN, and what stands behind its check digits.
    fn iban(&self) -> Option<(&str, &str)> {
        let (country, own) = (self.number.get(..2)?, self.number.get(4..)?);
        let check = self.number.get(2..4)?;
        let is_iban = country.bytes().all(|byte| byte.is_ascii_uppercase())
            && check.bytes().all(|byte| byte.is_ascii_digit())
            && (11..=30).contains(&own.len());
        is_iban.then_some((country, own))
    }

    /// What all ways to write it end with.
    fn end(&self) -> &str {
        let from = self.whole.len().saturating_sub(LEAST);
        self.whole.get(from..).unwrap_or(&self.whole)
    }
}

/// A number without the zeros that fill it up.
fn bare(number: &str) -> &str {
    number.trim_start_matches('0')
}

/// Whether two numbers are one, however they are filled up.
fn is_one_number(one: &str, other: &str) -> bool {
    bare(one).len() >= LEAST && bare(one) == bare(other)
}

/// Whether two spellings are of one account.
pub(in crate::store) fn is_one_account(one: &str, other: &str, currency: &str) -> bool {
    is_same(&Account::written(one, currency), &Account::written(other, currency))
}

/// The same account: as written, as IBAN and national number, or with zeros or the bank's code
/// before it.
fn is_same(own: &Account, other: &Account) -> bool {
    if own.whole == other.whole {
        return true;
    }
    match (own.iban(), other.iban()) {
        (Some(one), Some(next)) => one == next,
        (Some(iban), None) => is_of_iban(own, iban, other),
        (None, Some(iban)) => is_of_iban(other, iban, own),
        (None, None) => is_one_national(own, other),
    }
}

/// Whether a national number is that of an IBAN.
fn is_of_iban(iban: &Account, (country, own): (&str, &str), national: &Account) -> bool {
    let Account { whole, bank, number } = national;
    let width = ACCOUNTS.iter().find(|(name, _)| *name == country).map(|(_, width)| *width);
    // Written out, be it with the bank's code, or with the check digits, too.
    let least = width.unwrap_or(0).max(ACCOUNT);
    if whole.len() >= least && iban.number.ends_with(whole.as_str()) {
        return true;
    }
    let Some(width) = width else {
        let behind = own.strip_prefix(bank.as_str()).filter(|_| !bank.is_empty());
        return behind.is_some_and(|behind| is_one_number(behind, number));
    };
    let parted = |text: &str| {
        let at = text.len().saturating_sub(width);
        let parts = text.get(..at).zip(text.get(at..));
        parts.map(|(bank, number)| (bank.to_owned(), number.to_owned()))
    };
    let Some((own_bank, account)) = parted(own) else { return false };
    // Without a stroke the bank's code may stand before an account of full length.
    let told = match bank.is_empty() {
        true => parted(whole),
        false => Some((bank.clone(), number.clone())),
    };
    let is_bank = |bank: &str| {
        let is_bic = matches!(bank.len(), 8 | 11) && bank.get(4..6) == Some(country);
        is_bic || own_bank.starts_with(bank) || own_bank.ends_with(bank)
    };
    told.is_some_and(|(bank, number)| is_bank(&bank) && is_one_number(&number, &account))
}

/// Whether two national numbers are one.
fn is_one_national(own: &Account, other: &Account) -> bool {
    if !own.bank.is_empty() && !other.bank.is_empty() {
        return own.bank == other.bank && is_one_number(&own.number, &other.number);
    }
    let is_longer = own.whole.len() > other.whole.len();
    let (short, long) = if is_longer { (other, own) } else { (own, other) };
    // The longer one may have the bank's code before it, and no stroke behind that.
    let is_tail = short.whole.len() >= ACCOUNT
        && long.whole.len() >= short.whole.len().saturating_add(BANK)
        && long.whole.ends_with(&short.whole);
    is_tail || is_one_number(&own.number, &other.number)
}

fn overlap(own: &Side, other: &Side) -> bool {
    let ends_before =
        |one: &Side, next: &Side| one.to.zip(next.from).is_some_and(|(to, from)| to < from);
    let may_be =
        own.currency == other.currency || own.currency.is_empty() || other.currency.is_empty();
    may_be && !ends_before(own, other) && !ends_before(other, own)
}

/// Which statements of others overlap the file's own.
pub(in crate::store) fn sides(mine: &[Side], others: &[Side]) -> Sides {
    let mut by_end: HashMap<String, Vec<(Account, &Side)>> = HashMap::new();
    for other in others.iter().filter(|other| BANKS.contains(&other.format.as_str())) {
        let account = Account::of(other);
        by_end.entry(account.end().to_owned()).or_default().push((account, other));
    }
    let mut groups: HashMap<&str, i64> = HashMap::new();
    let mut ours = Vec::with_capacity(mine.len());
    let (mut theirs, mut cut) = (BTreeSet::new(), BTreeSet::new());
    let is_bank = |side: &Side| BANKS.contains(&side.format.as_str());
    for own in mine.iter().filter(|own| is_bank(own)) {
        let next = i64::try_from(groups.len()).unwrap_or(i64::MAX);
        let group = *groups.entry(own.bank_account.as_str()).or_insert(next);
        ours.push((own.number, group));
        let account = Account::of(own);
        for (written, other) in by_end.get(account.end()).into_iter().flatten() {
            if is_same(&account, written) && overlap(own, other) {
                theirs.insert((other.file, other.number, group));
                if is_cut(own) != is_cut(other) {
                    cut.insert((other.file, other.number, group));
                }
            }
        }
    }
    let own_cut = mine.iter().any(is_cut);
    let (theirs, cut) = (theirs.into_iter().collect(), cut.into_iter().collect());
    Sides { ours, theirs, cut, own_cut }
}

/// The final statements of the file $1 that count, with their periods: where they say none, that of
/// their lines.
pub(in crate::store) const OURS: &str = "select s.file_id, s.number, s.bank_account, s.currency, \
     coalesce(s.from_on, d.begun), coalesce(s.to_on, d.done), f.format, s.opening_minor, \
     s.closing_minor from tieout_statements s \
     join tieout_files f on f.id = s.file_id \
     left join (select l.statement, min(l.booked_on) as begun, max(l.booked_on) as done \
     from tieout_lines l where l.file_id = $1 group by l.statement) d on d.statement = s.number \
     where s.file_id = $1 and s.state <> 'held' and s.finality = 'final' order by s.number";

/// The formats of banks' statements, files of rows among them, as a list of SQL.
pub(in crate::store) fn statements() -> String {
    let all = BANKS.iter().chain(&ROWS).map(|word| format!("'{word}'"));
    all.collect::<Vec<_>>().join(", ")
}

/// The banks' formats, as a list of SQL.
pub(in crate::store) fn banks() -> String {
    BANKS.map(|word| format!("'{word}'")).join(", ")
}

/// A line `l` of a statement `s` that may turn out to be told before: nobody's yet.
pub(in crate::store) const FRESH: &str = "s.state <> 'held' \
     and s.finality = 'final' and l.status = 'booked' \
     and l.amount_minor is not null and l.kind <> 'attempt' and l.key is null \
     and (l.state = 'open' or (l.state = 'excluded' and l.reason is null))";

/// A line `l` of a statement `s` that counts.
pub(in crate::store) const COUNTS: &str = "s.state <> 'held' \
     and s.finality = 'final' and l.status = 'booked' \
     and l.amount_minor is not null and l.kind <> 'attempt' and (l.state in ('open', 'matched') \
     or (l.state = 'excluded' and l.reason is null))";

/// The booking day of a line `l` of a statement `s`; formats without one have statements of a day.
const DAY: &str = "coalesce(l.booked_on, case when s.from_on = s.to_on then s.to_on end)";

/// The lines of both sides in one table, so that what is alike is found by sorting: a join of the
/// two would read each of the others for each of the file's own.
const BOTH: &str = "both_sides as (select 0 as side, m.* from mine m \
     union all select 1, e.* from elder e)";

/// Notes which line counts in place of each of `pick`, but of none that a row has meanwhile.
pub(in crate::store) const NOTE: &str = "update tieout_lines as l \
     set decides = (1 = 0), state = 'excluded', \
     reason = 'told_before', of_file = p.by_file, of_position = p.by_position from pick p \
     where l.file_id = p.file_id and l.position = p.position and l.state <> 'matched'";

/// Whether the tag `own` is `whole` as a bank passes it on: in capitals, without its marks, cut.
pub(in crate::store) fn is_worn(own: &str, whole: &str) -> String {
    let without = |text: String, mark: &&str| format!("replace({text}, '{mark}', '')");
    let bare = MARKS.iter().fold(whole.to_owned(), without);
    let forms = [whole.to_owned(), format!("upper({whole})"), format!("upper({bare})"), bare];
    let is_whole = forms.each_ref().map(|form| format!("{own} = {form}")).join(" or ");
    let begins = |form: &String| {
        format!("(length({form}) > length({own}) and substr({form}, 1, length({own})) = {own})")
    };
    let is_cut = forms.each_ref().map(begins).join(" or ");
    format!("({own} <> {whole} and ({is_whole} or (length({own}) in ({TAG_CUTS}) and ({is_cut}))))")
}

/// Of the lines of both sides as [`by_bank`] has `seen` them: which are told before, and by which.
fn picks() -> String {
    let (own, other) = (is_worn("x.tag", "x.any_text"), is_worn("x.any_text", "x.tag"));
    let is_sole = format!("x.side = 0 and x.times = 1 and length(x.id) >= {LONG}");
    let is_alike = format!(
        "{is_sole} and x.one_side = 0 and x.any_side = 1 \
         and not (x.no_side = 1 and x.no_tag is null)"
    );
    let is_named = format!(
        "{is_sole} and x.one_side = 0 and x.tag is not null and x.no_side = 1 \
         and x.no_tag is null and not exists (select 1 from tieout_lines t \
         where t.of_file = x.no_file and t.of_position = x.no_position \
         and t.reason = 'told_before' and t.tag <> x.tag)"
    );
    // What says that it stands for several payments can be explained by a notice of them.
    let is_batch = "(not x.itemised and x.any_itemised and x.any_text is null \
         and x.any_state = 'open')";
    format!(
        "select x.file_id, x.position, x.one_file as by_file, x.one_position as by_position \
         from seen x where x.side = 0 and x.one_side = 1 and x.tag is not null \
         union all select x.file_id, x.position, x.any_file, x.any_position \
         from seen x where {is_sole} and x.any_side = 1 and x.tag is null and not {is_batch} \
         union all select x.any_file, x.any_position, x.file_id, x.position \
         from seen x where {is_sole} and x.any_side = 1 and x.tag is null and {is_batch} \
         union all select x.file_id, x.position, x.any_file, x.any_position \
         from seen x where {is_alike} and ({own} or (x.any_state <> 'open' and {other})) \
         union all select x.any_file, x.any_position, x.file_id, x.position \
         from seen x where {is_alike} and x.any_state = 'open' and {other} \
         union all select x.file_id, x.position, x.no_file, x.no_position \
         from seen x where {is_named} and x.no_state <> 'open' \
         union all select x.no_file, x.no_position, x.file_id, x.position \
         from seen x where {is_named} and x.no_state = 'open' \
         union all {}",
        sums()
    )
}

/// The same, of bookings that one file tells as a sum and the other with its parts: the parts
/// count, unless a notice has explained the sum already.
fn sums() -> String {
    let is_sum = format!("x.times = 1 and x.tag is null and length(x.id) >= {LONG}");
    let is_part = format!("x.side = 0 and x.times > 1 and length(x.id) >= {LONG}");
    format!(
        "select x.file_id, x.position, x.part_file, x.part_position from seen x where {is_sum} \
         and x.part_times > 1 and x.part_side <> x.side and x.state <> 'matched' \
         union all select x.file_id, x.position, x.sum_file, x.sum_position from seen x \
         where {is_part} and x.one_side = 0 and x.sum_side = 1 and x.sum_times = 1 \
         and x.sum_tag is null and x.sum_table = 'tieout_batches'"
    )
}

/// The lines of both sides, each with the one that it may be told by: under its tag, under any, of
/// those without one; the first part of a sum, and the sum of parts that a notice explained.
fn seen() -> String {
    let key = "b.g, b.id, b.kind, b.direction, b.currency, b.amount_minor, b.day";
    let sum_key = "b.g, b.id, b.kind, b.direction, b.currency, b.day, b.whole";
    format!(
        "select b.*, \
         first_value(b.side) over one as one_side, first_value(b.file_id) over one as one_file, \
         first_value(b.position) over one as one_position, \
         first_value(b.side) over any_tag as any_side, \
         first_value(b.file_id) over any_tag as any_file, \
         first_value(b.position) over any_tag as any_position, \
         first_value(b.tag) over any_tag as any_text, \
         first_value(b.state) over any_tag as any_state, \
         first_value(b.itemised) over any_tag as any_itemised, \
         first_value(b.side) over untagged as no_side, first_value(b.tag) over untagged as no_tag, \
         first_value(b.state) over untagged as no_state, \
         first_value(b.file_id) over untagged as no_file, \
         first_value(b.position) over untagged as no_position, \
         first_value(b.times) over parts as part_times, \
         first_value(b.side) over parts as part_side, \
         first_value(b.file_id) over parts as part_file, \
         first_value(b.position) over parts as part_position, \
         first_value(b.times) over sums as sum_times, first_value(b.side) over sums as sum_side, \
         first_value(b.tag) over sums as sum_tag, \
         first_value(b.table_name) over sums as sum_table, \
         first_value(b.file_id) over sums as sum_file, \
         first_value(b.position) over sums as sum_position from both_sides b \
         window one as (partition by {key}, b.tag, b.n order by b.side desc, b.file_id, \
         b.position), any_tag as (partition by {key}, b.times = 1 order by b.side desc, \
         b.file_id, b.position), untagged as (partition by {key}, b.times = 1 \
         order by case when b.side = 1 and b.tag is null then 0 else 1 end, b.file_id, \
         b.position), parts as (partition by {sum_key} \
         order by case when b.times > 1 then 0 else 1 end, b.side desc, b.file_id, b.position), \
         sums as (partition by {sum_key} order by case when b.times = 1 and b.tag is null \
         and b.table_name is not null then 0 else 1 end, b.side desc, b.file_id, b.position)"
    )
}

/// Marks the lines of a bank's file $1 that other files told. One reference may be that of many
/// bookings: only where their tags agree, or one has none, two lines are one booking. Of those
/// without a tag, one line is not told again by two that differ. Where only one has a tag, or the
/// one tag is the other as a bank passes it on, the line with the whole one counts, as long as no
/// row has the other.
pub(in crate::store) fn by_bank(dialect: &Dialect, refs: Refs) -> String {
    let sides = dialect.sides;
    // The parts of a batch may have none of their own: then it is the booking's.
    let id = format!("coalesce({}, l.bank_reference)", (dialect.first)("'bank_reference'"));
    let lines = |from: &str, condition: &str, of: &str| {
        format!(
            "select x.*, row_number() over (partition by x.g, x.id, x.kind, x.direction, \
             x.currency, x.amount_minor, x.day, x.tag order by x.file_id, x.position) as n, \
             count(*) over (partition by x.g, x.file_id, x.id) as times, \
             sum(x.amount_minor) over (partition by x.g, x.file_id, x.id, x.kind, x.direction, \
             x.currency, x.day) as whole from (\
             select y.*, {of} from (\
             select p.g, l.file_id, l.position, l.kind, l.direction, l.currency, l.amount_minor, \
             l.tag, l.state, l.itemised, l.table_name, {DAY} as day, {id} as own_id \
             from {from} where {condition}) y) x \
             where x.id is not null \
             and upper(x.id) not in ('', 'NONREF', 'NOTPROVIDED', 'NOREF', 'NONE') \
             and replace(x.id, '0', '') <> ''"
        )
    };
    let whole = "y.own_id as id";
    let cut = format!("case when length(y.own_id) = {CUT} then y.own_id end as id");
    let longer = format!("length(y.own_id) > {CUT} then substr(y.own_id, 1, {CUT})");
    let longer = format!("case when {longer} end as id");
    let (own, others) = match refs {
        Refs::Whole => (whole, whole),
        Refs::OwnCut => (cut.as_str(), longer.as_str()),
        Refs::TheirsCut => (longer.as_str(), cut.as_str()),
    };
    let [from_ours, from_theirs] = dialect.lines_of_sides();
    let mine = lines(&from_ours, FRESH, own);
    // Of other days nothing is read but the day.
    let elder =
        lines(&from_theirs, &format!("{COUNTS} and {DAY} in (select m.day from mine m)"), others);
    let (seen, picks) = (seen(), picks());
    format!(
        "with {sides}, mine as materialized ({mine}), elder as materialized ({elder}), \
         {BOTH}, seen as ({seen}), pick as ({picks}) {NOTE}"
    )
}

/// The tag of a line, unless it is one of the PSP's own ids, which stands for a tag where the
/// report has no other: `ids` besides the two that have columns of their own.
fn merchants_tag(line: &str, ids: &[String]) -> String {
    let own = [format!("{line}.psp_reference"), format!("{line}.original")];
    let is_id = own.iter().chain(ids).map(|id| format!("{line}.tag = coalesce({id}, '')"));
    let is_id = is_id.collect::<Vec<_>>().join(" or ");
    format!("(case when {is_id} then null else {line}.tag end)")
}

/// Of the lines of both sides as [`by_psp`] has `seen` them: which are told before, and by which.
/// The line that has the tag counts, where the other one has none and no row has it yet: a report
/// that was asked for once more, with the column of the order, tells the row whose payment it is.
/// One that has other money counts nowhere: its file is for a person.
fn psp_picks() -> String {
    let is_named = |of: &str| {
        format!(
            "(x.tag is not null and x.{of}_tag is null and x.{of}_state = 'open' \
             and x.direction = x.{of}_direction and x.currency = x.{of}_currency \
             and x.amount_minor = x.{of}_minor and x.fee_minor = x.{of}_fee)"
        )
    };
    let pick = |of: &str, from: &str| {
        let named = is_named(of);
        format!(
            "select x.file_id, x.position, x.{of}_file as by_file, x.{of}_position as by_position \
             from seen x where {from} and not coalesce({named}, 1 = 0) \
             union all select x.{of}_file, x.{of}_position, x.file_id, x.position \
             from seen x where {from} and {named}"
        )
    };
    let one = pick("one", "x.side = 0 and x.one_side = 1");
    let sole =
        "x.side = 0 and x.one_side = 0 and x.sole is not null and x.sole_side = 1".to_owned();
    format!("{one} union all {}", pick("sole", &sole))
}

/// What is read of the first line of a window of [`by_psp`], under names that begin with `of`.
fn first_of(of: &str, window: &str) -> String {
    [
        ("side", "side"),
        ("file_id", "file"),
        ("position", "position"),
        ("tag", "tag"),
        ("state", "state"),
        ("direction", "direction"),
        ("currency", "currency"),
        ("amount_minor", "minor"),
        ("fee_minor", "fee"),
    ]
    .map(|(column, name)| format!("first_value(b.{column}) over {window} as {of}_{name}"))
    .join(", ")
}

/// Marks the lines of a PSP's file $1 that other reports of the same kind told.
pub(in crate::store) fn by_psp(dialect: &Dialect) -> String {
    let Dialect { join, hit, .. } = dialect;
    let transaction = (dialect.first)("'transaction_id'");
    let other = (dialect.first)("'refund_id', 'dispute_id'");
    let ids = ["payment_id", "charge_id", "transaction_id", "refund_id", "dispute_id"];
    let ids = ids.map(|kind| (dialect.first)(&format!("'{kind}'")));
    let tag = merchants_tag("l", &ids);
    let row = "' ' || coalesce(l.type_code, '') || ' ' || l.direction || ' ' || l.currency";
    let lines = |from: &str, condition: &str| {
        format!(
            "select x.*, row_number() over (partition by x.bank_account, x.psp_reference, x.id, \
             x.type_code, x.kind, x.direction, x.currency, x.amount_minor, x.day, x.batch \
             order by x.file_id, x.position) as n from (\
             select l.file_id, l.position, s.bank_account, l.psp_reference, l.type_code, l.kind, \
             l.direction, l.currency, l.amount_minor, {tag} as tag, l.state, \
             case when f.format = 'braintree' then 0 else coalesce(l.fee_minor, 0) end \
             as fee_minor, coalesce({transaction}, {other}, '') as id, \
             case when {transaction} is null and f.format <> 'braintree' then l.booked_on end \
             as day, case f.format when 'stripe' then {transaction} \
             when 'braintree' then l.psp_reference || ' ' || coalesce(l.type_code, '') \
             when 'paypal_stl' then {transaction} || {row} when 'paypal_trr' then \
             {transaction} || {row} end as sole, \
             case when f.format like 'adyen%' then coalesce(l.batch, '') \
             when f.format = 'table' then coalesce(l.tag, '') else '' end as batch \
             from {from} {join} tieout_statements s on s.file_id = l.file_id \
             and s.number = l.statement {join} tieout_files f on f.id = l.file_id \
             where {condition}) x"
        )
    };
    let mine = lines(
        &format!(
            "(select distinct own from hit) h {join} tieout_lines l on l.file_id = $1 \
             and l.position = h.own"
        ),
        FRESH,
    );
    let elder = lines(
        &format!(
            "(select distinct file_id, position from hit) h {join} tieout_lines l \
             on l.file_id = h.file_id and l.position = h.position"
        ),
        &format!(
            "{COUNTS} and f.format = (select o.format from tieout_files o where o.id = $1) \
             and f.version = (select o.version from tieout_files o where o.id = $1)"
        ),
    );
    let (of_one, of_sole) = (first_of("one", "one"), first_of("sole", "alone"));
    let picks = psp_picks();
    format!(
        "with {hit}, mine as materialized ({mine}), elder as materialized ({elder}), \
         {BOTH}, seen as (select b.*, {of_one}, {of_sole} from both_sides b \
         window one as (partition by b.bank_account, b.psp_reference, b.id, b.type_code, b.kind, \
         b.direction, b.currency, b.amount_minor, b.day, b.batch, b.n \
         order by b.side desc, b.file_id, b.position), \
         alone as (partition by b.bank_account, b.sole order by b.side desc, b.file_id, \
         b.position)), \
         pick as ({picks}) {NOTE}"
    )
}

/// Marks the lines of a file $1 that others of the same kind told, text for text: of reports
/// without ids, and of days whose attempts are listed, of which a later file takes no other's
/// place. What is alike is looked for under the payout and the tag, by which there are indexes, and
/// in the files that list attempts of the same days.
pub(in crate::store) fn by_text(dialect: &Dialect) -> String {
    let Dialect { join, .. } = dialect;
    let under = |column: &str| {
        format!(
            "select o.file_id, o.position from (select distinct p.account, p.{column} \
             from own w {join} tieout_lines p on p.file_id = $1 and p.statement = w.number \
             and p.{column} is not null) w {join} tieout_lines o on o.account = w.account \
             and o.{column} = w.{column} and o.{column} is not null and o.file_id <> $1"
        )
    };
    let listed = format!(
        "select l.file_id, l.position from tieout_statements w {join} tieout_statements o \
         on o.account = w.account and o.covers_attempts and o.state = 'live' \
         and o.file_id <> $1 and o.from_on <= w.to_on and o.to_on >= w.from_on \
         {join} tieout_lines l on l.file_id = o.file_id and l.statement = o.number \
         where w.file_id = $1 and w.covers_attempts"
    );
    let texts = TEXTS.map(|word| format!("'{word}'")).join(", ");
    // Most files have no such statement, and then nothing of them is read.
    let own = format!(
        "select s.number from tieout_statements s {join} tieout_files f on f.id = s.file_id \
         where s.file_id = $1 and (f.format in ({texts}) or s.covers_attempts)"
    );
    let bare = bare_row("l.raw");
    let lines = |from: &str, condition: &str| {
        format!(
            "select l.file_id, l.position, {bare} as raw, \
             row_number() over (partition by l.file_id, {bare} \
             order by l.position) as n from {from} {join} tieout_statements s \
             on s.file_id = l.file_id and s.number = l.statement {join} tieout_files f \
             on f.id = l.file_id where l.raw <> '' and (f.format in ({texts}) \
             or s.covers_attempts) and {condition}"
        )
    };
    let of_own = "tieout_lines l on l.file_id = $1 and l.statement = w.number";
    let mine = lines(&format!("own w {join} {of_own}"), FRESH);
    let of_hit = "l.file_id = h.file_id and l.position = h.position";
    let elder = lines(
        &format!("hit h {join} tieout_lines l on {of_hit}"),
        &format!(
            "{COUNTS} and f.format = (select o.format from tieout_files o where o.id = $1) \
             and f.version = (select o.version from tieout_files o where o.id = $1)"
        ),
    );
    format!(
        "with own as materialized ({own}), hit as materialized ({} union {} union {listed}), \
         mine as materialized ({mine}), elder as materialized ({elder}), {BOTH}, \
         seen as (select b.*, first_value(b.side) over one as one_side, \
         first_value(b.file_id) over one as by_file, \
         first_value(b.position) over one as by_position from both_sides b window one as \
         (partition by b.raw, b.n order by b.side desc, b.file_id, b.position)), \
         pick as (select x.file_id, x.position, x.by_file, x.by_position from seen x \
         where x.side = 0 and x.one_side = 1) {NOTE}",
        under("batch"),
        under("tag")
    )
}

/// Marks, of a payment of PayPal's that says of itself that it was reversed and of the row by which
/// it was, the one that came later as told before: it is one movement. In one file the payment
/// counts, which says both that it came and that it went back: the row alone would leave a shop
/// short of what it never had.
/// But where one of the two has no tag, and no row has it meanwhile, the one with the tag counts:
/// by the other nobody finds the row that stores no id.
pub(in crate::store) fn reversed(dialect: &Dialect) -> String {
    let Dialect { join, near, .. } = dialect;
    let says = |line: &str| {
        format!("{line}.return_reason = 'V' and {line}.psp_reference = {line}.original")
    };
    let did = |line: &str, of: &str| {
        format!(
            "coalesce({line}.return_reason, '') <> 'V' and {line}.original = {of}.psp_reference \
             and {line}.psp_reference <> {line}.original"
        )
    };
    let (own_tag, other_tag) = (merchants_tag("m", &[]), merchants_tag("l", &[]));
    let (own_says, own_did) = (says("m"), did("m", "l"));
    let (other_says, other_did) = (says("l"), did("l", "m"));
    format!(
        "with {near}, pair as (select m.file_id, m.position, min(l.file_id) as of_file, \
         min(l.position) as of_position, min(case when {own_tag} is not null \
         and {other_tag} is null and l.state = 'open' then 1 else 0 end) as is_named from near n \
         {join} tieout_lines m on m.file_id = $1 and m.position = n.own \
         {join} tieout_lines l on l.file_id = n.file_id and l.position = n.position \
         {join} tieout_files f on f.id = l.file_id \
         {join} tieout_statements s on s.file_id = l.file_id and s.number = l.statement \
         where f.format = 'paypal_trr' and {COUNTS} and l.kind = 'return' \
         and m.kind = 'return' and m.state = 'open' and m.decides \
         and l.direction = m.direction and l.currency = m.currency \
         and l.amount_minor = m.amount_minor \
         and coalesce(l.fee_minor, 0) = -coalesce(m.fee_minor, 0) \
         and ({own_says} and {other_did} and l.file_id <> $1 or {own_did} and {other_says}) \
         group by m.file_id, m.position having count(*) = 1), \
         pick as (select p.file_id, p.position, p.of_file as by_file, \
         p.of_position as by_position from pair p where p.is_named = 0 \
         union all select p.of_file, p.of_position, p.file_id, p.position \
         from pair p where p.is_named = 1) {NOTE}"
    )
}

/// Lines of the file $1 that another one told under the same id, and with other money: where they
/// stand, and what each of the two says. What Braintree settled in another currency than it was
/// sold in is told in that one only once it was paid out, and its fees are estimated before.
/// [`reversed`] pairs rows of two ids, each with the fee as its own side has it.
pub(in crate::store) fn otherwise() -> String {
    format!(
        "select l.file_line, b.file_id, b.file_line, l.currency, \
         case l.direction when 'debit' then -l.amount_minor else l.amount_minor end, l.fee_minor, \
         b.currency, case b.direction when 'debit' then -b.amount_minor else b.amount_minor end, \
         b.fee_minor from tieout_lines l \
         join tieout_lines b on b.file_id = l.of_file and b.position = l.of_position \
         join tieout_files f on f.id = l.file_id \
         where l.file_id = $1 and l.state = 'excluded' and l.reason = 'told_before' \
         and f.format in ('stripe', 'braintree', 'paypal_stl', 'paypal_trr') \
         and not (f.format = 'paypal_trr' and coalesce(l.psp_reference <> b.psp_reference, 1 = 0)) \
         and case when f.format = 'braintree' \
         then l.currency = b.currency and l.amount_minor <> b.amount_minor \
         else l.currency <> b.currency or l.direction <> b.direction \
         or l.amount_minor <> b.amount_minor \
         or coalesce(l.fee_minor, 0) <> coalesce(b.fee_minor, 0) end \
         order by l.position limit {LINES_NAMED}"
    )
}

/// Lines of Stripe's file $1 whose transaction a report of another kind told with other money: as
/// [`otherwise`]. Of one transaction all kinds of reports have the same amount and fee.
pub(in crate::store) fn elsewhere(dialect: &Dialect) -> String {
    let Dialect { join, .. } = dialect;
    let transaction = (dialect.first)("'transaction_id'");
    // Kinds of reports name the payment by other ids, and the payout by its one.
    let under = |column: &str| {
        format!(
            "select x.file_id, x.position from (select distinct p.account, p.{column} \
             from tieout_lines p where p.file_id = $1 and p.{column} is not null) w \
             {join} tieout_line_tags x on x.account = w.account and x.text = w.{column} \
             and x.file_id <> $1"
        )
    };
    let hit = format!("{} union {}", under("psp_reference"), under("batch"));
    let lines = |from: &str, condition: &str| {
        format!(
            "select l.file_id, l.file_line, l.position, l.currency, l.direction, l.amount_minor, \
             l.fee_minor, {transaction} as id from {from} {join} tieout_statements s \
             on s.file_id = l.file_id and s.number = l.statement {join} tieout_files f \
             on f.id = l.file_id where f.format = 'stripe' and s.state <> 'held' \
             and l.status = 'booked' and l.amount_minor is not null and {condition}"
        )
    };
    let mine = lines("tieout_lines l", "l.file_id = $1");
    let elder = lines(
        &format!(
            "hit h {join} tieout_lines l on l.file_id = h.file_id and l.position = h.position"
        ),
        "l.state <> 'superseded' \
         and f.version <> (select o.version from tieout_files o where o.id = $1)",
    );
    let signed = |of: &str| {
        format!(
            "case {of}.direction when 'debit' then -{of}.amount_minor else {of}.amount_minor end"
        )
    };
    format!(
        "with hit as materialized ({hit}), mine as materialized ({mine}), \
         elder as materialized ({elder}) select m.file_line, min(b.file_id), min(b.file_line), \
         m.currency, {}, m.fee_minor, b.currency, {}, b.fee_minor \
         from mine m join elder b on b.id = m.id where m.id is not null \
         and (m.currency <> b.currency or m.direction <> b.direction \
         or m.amount_minor <> b.amount_minor \
         or coalesce(m.fee_minor, 0) <> coalesce(b.fee_minor, 0)) \
         group by m.position, m.file_line, m.currency, m.direction, m.amount_minor, m.fee_minor, \
         b.currency, b.direction, b.amount_minor, b.fee_minor \
         order by m.position limit {LINES_NAMED}",
        signed("m"),
        signed("b")
    )
}

/// Lines of Braintree's file $1 that say of what another one told as settled that it is void or was
/// declined: where they stand, and that word.
pub(in crate::store) fn undone(dialect: &Dialect) -> String {
    let Dialect { join, hit, .. } = dialect;
    format!(
        "with {hit} select m.file_line, l.file_id, l.file_line, m.return_reason from hit h \
         {join} tieout_lines m on m.file_id = $1 and m.position = h.own \
         {join} tieout_lines l on l.file_id = h.file_id and l.position = h.position \
         {join} tieout_statements s on s.file_id = l.file_id and s.number = l.statement \
         {join} tieout_files f on f.id = l.file_id \
         where {COUNTS} and f.format = 'braintree' and l.kind in ('payment', 'refund') \
         and m.kind = 'attempt' and m.state = 'open' and m.return_reason is not null \
         and m.psp_reference = l.psp_reference and m.type_code = l.type_code \
         order by m.position limit {LINES_NAMED}"
    )
}

/// What a line says of money: currency, amount and fee, in minor units.
pub(in crate::store) type Said = (String, Option<i64>, Option<i64>);

/// A line on `line` that says `own`, and what the other file's line says: file, line, words.
pub(in crate::store) fn otherwise_problem(
    line: i64,
    (file, other): (i64, i64),
    [own, before]: [&Said; 2],
) -> Problem {
    let expected = format!("{} as line {other} of file {file} has it", said_text(before));
    Problem::error(u64::try_from(line).unwrap_or(0), "id", expected, said_text(own))
}

/// A line that says of what the other file's line settled what became of it.
pub(in crate::store) fn undone_problem(
    line: i64,
    (file, other): (i64, i64),
    word: &str,
) -> Problem {
    let expected = format!("settled, as line {other} of file {file} has it");
    Problem::error(u64::try_from(line).unwrap_or(0), "Transaction Status", expected, word)
}

fn said_text((currency, minor, fee): &Said) -> String {
    let money = |minor: i64| match Currency::parse(currency) {
        Ok(currency) => Money::new(minor, currency).to_string(),
        Err(_unknown) => format!("{minor} {currency}"),
    };
    let amount = minor.map_or_else(|| "no amount".to_owned(), money);
    match fee {
        Some(fee) => format!("{amount} (fee {})", money(*fee)),
        None => amount,
    }
}

/// A line `l` that was told again of one that was taken out since.
const LOST: &str = "l.of_file is not null and l.state = 'excluded' \
     and l.reason = 'told_before' and exists (select 1 from tieout_lines b \
     where b.file_id = l.of_file and b.position = l.of_position and b.state = 'superseded')";

/// The files that have such lines.
pub(in crate::store) fn lost_files() -> String {
    format!("select distinct l.file_id from tieout_lines l where {LOST} order by 1")
}

/// Lets such lines count.
pub(in crate::store) fn found_again() -> String {
    format!(
        "update tieout_lines as l set decides = {DECIDES}, reason = null, of_file = null, \
         of_position = null, state = case when {DECIDES} then 'open' else 'excluded' end \
         from tieout_statements s where s.file_id = l.file_id and s.number = l.statement \
         and {LOST}"
    )
}

/// What a file says of lines of it that were told before.
pub(in crate::store) fn told_problem(lines: u64) -> Problem {
    let lines = counted(lines, "line", "lines");
    let found = format!("{lines} that another file tells: kept, and not counted twice");
    Problem::warning(0, "lines", "bookings that no other file tells", found)
}

/// A day of another statement all of whose rows a statement holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct Overlap {
    /// The other statement: file and number.
    pub rival: (i64, i64),
    /// Its file's name.
    pub name: String,
    /// The day.
    pub day: String,
}

/// The field of a problem that names overlaps.
const DAYS: &str = "days";

/// Whether a statement is one of a file of rows, which is known by its rows alone. One that lists
/// attempts is left: the day's file once more is how such a file is mended.
pub(in crate::store) fn may_overlap(ended: &Ended) -> bool {
    let Ended { head, close } = ended;
    head.statement_id.is_empty()
        && head.sequence.is_empty()
        && head.finality == Finality::Final
        && !head.covers_attempts
        && head.held.is_none()
        && close.from.is_some()
}

/// The text of a row as every way to write it has it: between whatever delimiters, quoted or not,
/// filled up with blanks or empty columns or not.
fn bare_row(text: &str) -> String {
    const FORMS: [(&str, &str); 7] =
        [("\r", ""), ("\n", ""), (" ", ""), ("\"", ""), ("\t", ","), (";", ","), ("|", ",")];
    let one =
        |text: String, (mark, to): &(&str, &str)| format!("replace({text}, '{mark}', '{to}')");
    format!("rtrim({}, ',')", FORMS.iter().fold(text.to_owned(), one))
}

/// The days of live statements of files of rows that the statement $2 of the file $1 holds whole:
/// file, number, name, day. $3 to $7 are its account, bank account, currency, first and last day.
/// Rows are the same whose text is, however it is written and whatever the configuration of the day
/// read from it: another delimiter, pattern or column makes no other booking of them. Where no text
/// was kept, what was read is held against each other.
pub(in crate::store) fn overlaps(dialect: &Dialect) -> String {
    let Dialect { array, as_text, day, .. } = dialect;
    let bare = bare_row("l.raw");
    let key =
        format!("case when l.raw <> '' then {bare} else {array}(l.booked_on, {SAME}){as_text} end");
    format!(
        "with rivals as materialized (select o.file_id, o.number, f.name \
         from tieout_statements o join tieout_files f on f.id = o.file_id \
         where o.state = 'live' and o.account = $3 and o.bank_account = $4 and o.currency = $5 \
         and o.from_on <= $7 and o.to_on >= $6 and o.finality = 'final' \
         and o.statement_id = '' and o.sequence = '' \
         and f.format in ('table', 'bank_csv') and o.file_id <> $1 \
         and exists (select 1 from tieout_files g where g.id = $1 \
         and g.format in ('table', 'bank_csv'))), \
         own as materialized (select {key} as k, count(distinct l.file_line) as c \
         from tieout_lines l where exists (select 1 from rivals) and l.file_id = $1 \
         and l.statement = $2 and l.booked_on is not null group by 1), \
         told as (select o.file_id, o.number, o.name, l.booked_on as day, {key} as k, \
         count(distinct l.file_line) as c from rivals o \
         join tieout_lines l on l.file_id = o.file_id and l.statement = o.number \
         where l.booked_on is not null and l.state <> 'superseded' \
         and coalesce(l.reason, '') not in ('statement_corrected', 'told_before') \
         group by 1, 2, 3, 4, 5) \
         select t.file_id, t.number, t.name, {day} from told t \
         left join own on own.k = t.k \
         group by t.file_id, t.number, t.name, t.day \
         having min(case when coalesce(own.c, 0) >= t.c then 1 else 0 end) = 1 \
         order by t.file_id, t.number, t.day"
    )
}

/// What a file says of days that another one told whole.
pub(in crate::store) fn overlap_problem(found: &[Overlap]) -> Problem {
    let named = found.iter().take(DAYS_NAMED);
    let named = named.map(|Overlap { rival, name, day }| {
        let (file, _) = rival;
        format!("{day} as in file {file} ({name})")
    });
    let mut text = named.collect::<Vec<_>>().join(", ");
    let more = found.len().saturating_sub(DAYS_NAMED);
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    Problem::warning(0, DAYS, "days that no other file has told", text)
}

/// What the case of a file says that holds days of another one, where it does.
pub(in crate::store) fn overlap_text(name: &str, sums: &FileSums) -> Option<String> {
    let problem = sums.problems.iter().find(|problem| problem.field == DAYS)?;
    Some(format!(
        "{name} is held, and none of its lines counts: it has every row of {}; released, its other \
         rows count, and those that stand in both count once",
        problem.found
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(account: &str, currency: &str, days: (u32, u32)) -> Side {
        let day = |day| NaiveDate::from_ymd_opt(2026, 11, day);
        let (from, to) = (day(days.0), day(days.1));
        let (bank_account, currency) = (account.to_owned(), currency.to_owned());
        let format = "camt.053".to_owned();
        let (opening, closing) = (None, None);
        Side { file: 1, number: 1, format, bank_account, currency, from, to, opening, closing }
    }

    #[test]
    fn an_account_is_one_however_it_is_written() {
        let iban = side("DE02 1203 0000 0000 2020 51", "EUR", (18, 18));
        let is_one = |account: &str, currency: &str, days| {
            let own = std::slice::from_ref(&iban);
            !sides(own, &[side(account, currency, days)]).theirs.is_empty()
        };
        for account in [
            "DE02120300000000202051",
            "DE02120300000000202051EUR",
            "12030000/0000202051",
            "12030000/202051",
            "12030000/202051EUR",
            "12030000/202051/EUR",
            "120300000000202051",
            "0000202051EUR",
            "202051",
            "202051EUR",
            "BYLADEM1/202051",
            "BYLADEM1/DE02120300000000202051",
        ] {
            assert!(is_one(account, "EUR", (18, 19)), "{account}");
        }
        for account in [
            "DE02120300000000202052",
            "DE02120300010000202051",
            "",
            "51",
            "02051",
            "202052",
            "1202051",
            "12030001/0000202051",
            "12030001/202051",
            "120300010000202051",
            "BYLAATM1/202051",
        ] {
            assert!(!is_one(account, "EUR", (18, 19)), "{account}");
        }
        assert!(!is_one("DE02120300000000202051", "EUR", (19, 20)), "another day's");
        assert!(!is_one("DE02120300000000202051", "USD", (18, 18)), "another currency's");
        let open = Side { to: None, ..side("DE02120300000000202051", "", (1, 1)) };
        assert_eq!(sides(&[iban], &[open]).theirs, [(1, 1, 0)]);
    }

    #[test]
    fn two_accounts_are_never_one() {
        let is_one = |one: &str, other: &str| {
            let of = |text: &str| Account::of(&side(text, "EUR", (18, 18)));
            let (one, other) = (of(one), of(other));
            assert_eq!(is_same(&one, &other), is_same(&other, &one), "{one:?} {other:?}");
            is_same(&one, &other) && one.end() == other.end()
        };
        for (one, other) in [
            ("12030000/0000202051", "12030000/202051"),
            ("0000202051", "202051"),
            ("10020030/1234567", "1234567EUR"),
            ("120300000000202051", "0000202051"),
            // A country whose accounts are not known by their length.
            ("FR1420041010050500013M02606", "20041010050500013M02606"),
            ("BE68539007547034", "539007547034"),
            ("BE68539007547034", "539/007547034"),
            ("NL08ABNA0123456789", "123456789"),
            ("NL08ABNA0123456789", "ABNA/0123456789"),
            ("AT611904300234573201", "19043/234573201"),
            ("PL61109010140000071219812874", "61109010140000071219812874"),
            ("PL61109010140000071219812874", "109010140000071219812874"),
            ("GB29NWBK60161331926819", "60-16-13 31926819"),
        ] {
            assert!(is_one(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("12030000/202051", "12030001/202051"),
            ("1234567890", "11234567890"),
            ("202051", "1202051"),
            ("202051", "2020510"),
            ("0051", "51"),
            ("BE68539007547034", "007547034"),
            ("BE68539007547034", "540/007547034"),
            ("NL08ABNA0123456789", "INGB/0123456789"),
            ("AT611904300234573201", "19044/234573201"),
            ("AT611904300234573201", "4573201"),
            ("GB29NWBK60161331926819", "60-16-14 31926819"),
            ("DE02120300000000202051", "AT021203000000202051"),
        ] {
            assert!(!is_one(one, other), "{one} {other}");
        }
    }

    #[test]
    fn what_was_cut_is_held_against_what_was_not() {
        let camt = || side("DE02120300000000202051", "EUR", (18, 18));
        let swift = || Side {
            file: 2,
            format: "mt940".to_owned(),
            ..side("12030000/202051", "EUR", (18, 18))
        };
        let looks = |own: Side, others: &[Side]| {
            let found = sides(&[own], others);
            found.looks().map(|(theirs, refs)| (theirs.len(), refs)).collect::<Vec<_>>()
        };
        assert!(looks(camt(), &[]).is_empty());
        assert_eq!(looks(camt(), &[camt()]), [(1, Refs::Whole)]);
        let both = [camt(), swift()];
        assert_eq!(looks(camt(), &both), [(2, Refs::Whole), (1, Refs::TheirsCut)]);
        assert_eq!(looks(swift(), &both), [(2, Refs::Whole), (1, Refs::OwnCut)]);
    }
}
