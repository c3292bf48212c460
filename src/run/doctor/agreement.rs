//! Do rows say of amount and time what the PSP says of the objects that they were paid by? Where
//! nearly all of them differ alike, the mapping reads a column in another unit, or in another
//! zone, than it is written in.
//!
//! The objects are those that were listed anyway, and rows are looked up by indexes alone. What
//! compares is pure.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{Offset as _, TimeZone as _};

use crate::decide::absence::{SKEW_MAX, mapped_last_attempt};
use crate::decide::policy::Timing;
use crate::exit::Exit;
use crate::model::count::counted;
use crate::model::money::{Currency, Money};
use crate::model::time::{Instant, span_text, to_short_text};
use crate::model::transaction::{Attempts, Kind, Kinds, RowDefect, Transaction};
use crate::psp::probe::{CapturedObject, Probe};
use crate::run::doctor::database::{AFTER, unseen};
use crate::run::doctor::tables::without_index;
use crate::run::doctor::{Finding, Known, Say, fail, ok, paid, warn};
use crate::run::error::chain;
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::error::{StoreError, StoreErrorClass};
use crate::store::inspect::Inspect;
use crate::store::mapping::{FilterValue, UnitSetting};
use crate::store::notation::Notation;
use crate::store::records::ClaimFilter;
use crate::store::source_table::SourceTable;

/// So many rows that are off alike are no accident.
pub(super) const ENOUGH: usize = 3;

/// Of fewer rows that were compared, all may be odd for reasons of their own.
const COMPARED: usize = 5;

/// In percent: of many rows some are odd for reasons of their own.
const NEARLY_ALL: usize = 90;

/// In percent: so many rows may have been sent again, where no column tells of sends.
const SENT_AGAIN: usize = 10;

/// Powers of ten that a unit may be wrong by.
const POWERS: [i32; 6] = [1, 2, 3, 4, 5, 6];

/// Zones differ by whole and half hours.
const HALF_HOUR: i64 = 1_800;

/// An hour at least, and from one end of the world to the other at most, in half hours.
const ZONES_APART: std::ops::RangeInclusive<i64> = 2..=52;

/// An object is made within so many seconds after its row's call was sent, mostly.
const SOON_SECS: i64 = 900;

/// Summer time, in half hours: rows of both its sides are off by the same zone.
const SUMMER: u64 = 2;

/// A captured object with the row that it is of.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    /// The row's key.
    pub(super) key: String,
    /// The object.
    pub(super) object: CapturedObject,
    /// What the row is to move, or what of that cannot be read.
    money: Result<Money, String>,
    /// When it was made and sent, where that can be read.
    times: Option<Times>,
    /// How its sends are known.
    attempts: Attempts,
    /// What the mapping's other looks need of the row.
    pub(super) paid: paid::Row,
}

#[derive(Debug, Clone, Copy)]
struct Times {
    created: Instant,
    /// The last send, as the mapping knows it: at the creation, where nothing else is known.
    sent: Instant,
    /// The mapped column of sends says so.
    by_attempt: bool,
}

impl Pair {
    fn of(row: &Transaction, object: &CapturedObject) -> Self {
        let unread = || match defect_of(row, ["amount", "currency"]) {
            Some(RowDefect { field, problem }) => format!("{field}: {problem}"),
            None => "no amount".to_owned(),
        };
        let sent = mapped_last_attempt(row);
        let by_attempt = row.attempted_at.is_some_and(|at| at == sent);
        let times = Times { created: row.created_at, sent, by_attempt };
        Self {
            key: row.key.id.clone(),
            object: object.clone(),
            money: row.money.ok_or_else(unread),
            times: defect_of(row, ["created", "attempted"]).is_none().then_some(times),
            attempts: row.attempts,
            paid: paid::Row::of(row),
        }
    }

    /// How the row's amount differs from what was captured, where it does.
    fn difference(&self) -> Option<Difference> {
        let captured = self.object.captured;
        match &self.money {
            Err(_) => Some(Difference::Unread),
            Ok(money) if money.currency != captured.currency => Some(Difference::Currency),
            Ok(money) if money.minor == captured.minor => None,
            Ok(money) => {
                let power = power_between(money.minor, captured.minor);
                Some(power.map_or(Difference::Other, Difference::Power))
            }
        }
    }

    /// By how many seconds the object is older than its row (below 0), or younger than any object
    /// of its last send is to be; 0 where it is neither.
    fn lag_secs(&self, timing: &Timing) -> Option<i64> {
        let times = self.times?;
        let after = |at: Instant| self.object.created_at.signed_duration_since(at).num_seconds();
        let skew = SKEW_MAX.num_seconds();
        let (made, sent) = (after(times.created), after(times.sent));
        let most = timing.in_flight_max.num_seconds().saturating_add(skew);
        Some(match () {
            () if made < skew.saturating_neg() => made,
            () if sent > most => sent,
            () => 0,
        })
    }
}

fn defect_of<'r>(row: &'r Transaction, fields: [&str; 2]) -> Option<&'r RowDefect> {
    row.defects.iter().find(|defect| fields.contains(&defect.field.as_str()))
}

/// How an amount differs from what was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Difference {
    /// It is what was captured, times ten to this power.
    Power(i32),
    /// It is of another currency.
    Currency,
    /// It cannot be read.
    Unread,
    /// By anything else.
    Other,
}

fn power_between(row: i64, captured: i64) -> Option<i32> {
    let is_times = |large: i64, small: i64, power: i32| {
        let factor = 10_i64.checked_pow(power.unsigned_abs());
        small != 0 && factor.and_then(|factor| small.checked_mul(factor)) == Some(large)
    };
    POWERS.into_iter().find_map(|power| match () {
        () if is_times(row, captured, power) => Some(power),
        () if is_times(captured, row, power) => Some(power.saturating_neg()),
        () => None,
    })
}

/// Rows that are off.
#[derive(Debug, Clone, Copy)]
struct Off<'p, How> {
    how: How,
    /// So many …
    count: usize,
    /// … of so many that were compared.
    all: usize,
    /// One of them.
    first: &'p Pair,
}

/// How amounts are off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AmountsOff {
    /// Nearly all of one currency by one power of ten; so many more cannot be read.
    Power(i32, usize),
    /// Nearly all of one currency cannot be read.
    Unread,
    /// Nearly all are of another currency.
    Currency,
    /// Some, or in several ways.
    Scattered,
}

/// How times are off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimesOff {
    /// Nearly all objects are younger than their rows by so many seconds (older: below 0).
    Zone(i64),
    /// Some objects are younger than a call can have made them.
    Late,
    /// Some objects are older than an object of the row may be.
    Older,
    /// Some refunds or payouts were made before the rows whose tags they have.
    Before,
}

type Told<'p> = (&'p Pair, Option<Difference>);

pub(super) fn is_nearly_all(count: usize, all: usize) -> bool {
    count >= ENOUGH && count.saturating_mul(100) >= all.saturating_mul(NEARLY_ALL)
}

/// How the amounts of these rows are off, where they are.
fn amounts(pairs: &[Pair]) -> Option<Off<'_, AmountsOff>> {
    let told: Vec<Told<'_>> = pairs.iter().map(|pair| (pair, pair.difference())).collect();
    // A unit may be wrong for one currency alone: for those whose minor unit has other places.
    let currencies: BTreeSet<Currency> =
        pairs.iter().map(|pair| pair.object.captured.currency).collect();
    let units = currencies.into_iter().filter_map(|currency| {
        let is_own = |one: &Told<'_>| one.0.object.captured.currency == currency;
        let own: Vec<Told<'_>> = told.iter().copied().filter(is_own).collect();
        by_unit(&own)
    });
    let unit = units.max_by_key(|off| off.count);
    unit.or_else(|| by_currency(&told)).or_else(|| scattered(&told))
}

/// All but a few are off by one power of ten, or cannot be read, and none agrees.
fn by_unit<'p>(told: &[Told<'p>]) -> Option<Off<'p, AmountsOff>> {
    let power = most_common(told.iter().filter_map(|(_, difference)| match difference {
        Some(Difference::Power(power)) => Some(*power),
        Some(Difference::Currency | Difference::Unread | Difference::Other) | None => None,
    }));
    let unread = of_difference(told, Difference::Unread);
    let scaled = power.map(|power| of_difference(told, Difference::Power(power)));
    let scaled = scaled.unwrap_or_default();
    let count = scaled.len().saturating_add(unread.len());
    let agrees = told.iter().any(|(_, difference)| difference.is_none());
    if agrees || !is_nearly_all(count, told.len()) {
        return None;
    }
    let all = told.len();
    if let (Some(power), Some(first)) = (power, scaled.first().copied()) {
        let how = AmountsOff::Power(power, unread.len());
        return Some(Off { how, count: scaled.len(), all, first });
    }
    Some(Off { how: AmountsOff::Unread, count, all, first: unread.first().copied()? })
}

fn of_difference<'p>(told: &[Told<'p>], wanted: Difference) -> Vec<&'p Pair> {
    let alike = told.iter().filter(|(_, difference)| *difference == Some(wanted));
    alike.map(|(pair, _)| *pair).collect()
}

fn by_currency<'p>(told: &[Told<'p>]) -> Option<Off<'p, AmountsOff>> {
    let other = of_difference(told, Difference::Currency);
    let first = other.first().copied().filter(|_| is_nearly_all(other.len(), told.len()))?;
    Some(Off { how: AmountsOff::Currency, count: other.len(), all: told.len(), first })
}

fn scattered<'p>(told: &[Told<'p>]) -> Option<Off<'p, AmountsOff>> {
    let off = told.iter().filter(|(_, difference)| difference.is_some());
    let off: Vec<&'p Pair> = off.map(|(pair, _)| *pair).collect();
    let first = off.first().copied()?;
    Some(Off { how: AmountsOff::Scattered, count: off.len(), all: told.len(), first })
}

fn most_common<T: Ord + Copy>(all: impl Iterator<Item = T>) -> Option<T> {
    let mut counts: BTreeMap<T, usize> = BTreeMap::new();
    for one in all {
        let count = counts.entry(one).or_default();
        *count = count.saturating_add(1);
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(one, _)| one)
}

/// How the times of these rows are off, where they are.
fn times<'p>(pairs: &'p [Pair], timing: &Timing) -> Option<Off<'p, TimesOff>> {
    let lag = |pair: &'p Pair| Some((pair, pair.lag_secs(timing)?));
    let lags: Vec<(&'p Pair, i64)> = pairs.iter().filter_map(lag).collect();
    by_zone(&lags)
        .or_else(|| before(&lags))
        .or_else(|| late(&lags))
        .or_else(|| older(&lags, timing))
}

/// The half hours that a zone may be off by, where this is as good as a number of them.
fn half_hours(lag_secs: i64) -> Option<i64> {
    let skew = SKEW_MAX.num_seconds();
    let since = lag_secs.saturating_add(skew);
    let (half_hours, past) = (since.div_euclid(HALF_HOUR), since.rem_euclid(HALF_HOUR));
    let is_zone = ZONES_APART.contains(&half_hours.saturating_abs());
    (is_zone && past <= skew.saturating_add(SOON_SECS)).then_some(half_hours)
}

fn by_zone<'p>(lags: &[(&'p Pair, i64)]) -> Option<Off<'p, TimesOff>> {
    let steps: Vec<(&'p Pair, i64)> =
        lags.iter().filter_map(|(pair, lag)| Some((*pair, half_hours(*lag)?))).collect();
    let most = most_common(steps.iter().map(|(_, step)| *step))?;
    let is_near = |step: i64| step.abs_diff(most) <= SUMMER && step.signum() == most.signum();
    let count = steps.iter().filter(|(_, step)| is_near(*step)).count();
    let (first, _) = steps.iter().copied().find(|(_, step)| *step == most)?;
    let how = TimesOff::Zone(most.saturating_mul(HALF_HOUR));
    is_nearly_all(count, lags.len()).then_some(Off { how, count, all: lags.len(), first })
}

/// Objects that lie outside of the window in which their row's absence is proven.
fn late<'p>(lags: &[(&'p Pair, i64)]) -> Option<Off<'p, TimesOff>> {
    let off: Vec<&'p Pair> =
        lags.iter().filter(|(_, lag)| *lag > 0).map(|(pair, _)| *pair).collect();
    let first = off.first().copied()?;
    let is_told = match first.attempts {
        Attempts::Column => true,
        Attempts::Once => off.len().saturating_mul(100) > lags.len().saturating_mul(SENT_AGAIN),
        // Absence is proven of none.
        Attempts::Unknown => false,
    };
    is_told.then_some(Off { how: TimesOff::Late, count: off.len(), all: lags.len(), first })
}

/// A refund or a payout is made for its row: an older one that the row does not store has its tag
/// by chance.
fn before<'p>(lags: &[(&'p Pair, i64)]) -> Option<Off<'p, TimesOff>> {
    let older = lags.iter().filter(|(_, lag)| *lag < 0).map(|(pair, _)| *pair);
    let is_by_tag =
        |pair: &&Pair| pair.object.kind != Kind::Charge && !pair.paid.stores(&pair.object.ids);
    let off: Vec<&'p Pair> = older.filter(is_by_tag).collect();
    let first = off.first().copied()?;
    Some(Off { how: TimesOff::Before, count: off.len(), all: lags.len(), first })
}

/// Objects may be older than their rows, as far as `object_before_row` allows.
fn older<'p>(lags: &[(&'p Pair, i64)], timing: &Timing) -> Option<Off<'p, TimesOff>> {
    let most = timing.object_before_row.num_seconds().saturating_add(SKEW_MAX.num_seconds());
    let is_older = |lag: i64| lag < most.saturating_neg();
    let off: Vec<&'p Pair> =
        lags.iter().filter(|(_, lag)| is_older(*lag)).map(|(pair, _)| *pair).collect();
    let first = off.first().copied()?;
    Some(Off { how: TimesOff::Older, count: off.len(), all: lags.len(), first })
}

/// Compares the account's newest captured objects with the rows that they are of.
pub(super) async fn look(known: &Known<'_>, name: &str, probe: &Probe, say: Say<'_>) {
    let Some(db) = known.db else { return };
    let Some(setup) = known.setup.accounts.get(name) else { return };
    let (mut compared, mut is_told) = (0_usize, false);
    let now = db.now().await.ok();
    for table in known.tables {
        if !table.settings.accounts.values().any(|account| account == name) {
            continue;
        }
        let findings: Vec<Finding> = match pairs_of(db, table, name, probe).await {
            Ok(pairs) => {
                compared = compared.saturating_add(pairs.len());
                let amounts = match of_foreign_tags(known, db, name, table, &pairs).await {
                    Some(finding) => Some(finding),
                    None => of_amounts(table, name, &pairs),
                };
                let times = of_times(table, name, &pairs, &setup.timing);
                let more = paid::of_rows(table, name, &pairs, now);
                let values = match of_values(db, table, name, probe).await {
                    Ok(values) => values,
                    Err(error) => vec![uncompared(db, table, name, &error).await],
                };
                amounts.into_iter().chain(times).chain(more).chain(values).collect()
            }
            Err(error) => vec![uncompared(db, table, name, &error).await],
        };
        is_told |= !findings.is_empty();
        for finding in findings {
            say(finding);
        }
    }
    if compared > 0 && !is_told {
        let rows = counted(compared, "row agree", "rows agree");
        say(ok(name, "agreement", format!("amounts and times of {rows} with the PSP's")));
    }
}

async fn uncompared(db: &Database, table: &SourceTable, name: &str, error: &StoreError) -> Finding {
    let why = match error.class() {
        StoreErrorClass::Schema => unseen(db).await.0,
        _other => chain(error),
    };
    let text = format!(
        "the rows of {} could not be compared with what was captured: {why}",
        table.settings.name
    );
    warn(name, "untold", text, AFTER)
}

/// Values that go to one account, of which it knows rows of some and none of another, though that
/// one's rows were paid in the same time: they are of another account at the PSP.
async fn of_values(
    db: &Database,
    table: &SourceTable,
    name: &str,
    probe: &Probe,
) -> Result<Vec<Finding>, StoreError> {
    let accounts = table.settings.accounts.iter();
    let own = accounts.filter(|(value, account)| *account == name && *value != "*");
    let values: Vec<&String> = own.map(|(value, _)| value).collect();
    let kind = &table.settings.kind;
    let mut kinds = kind.constant.iter().chain(kind.values.values());
    // Payouts are not among the objects that were listed.
    if values.len() < 2 || kinds.any(|kind| kind == "payout") {
        return Ok(Vec::new());
    }
    let (mut known, mut unknown) = (0_usize, Vec::new());
    for value in values {
        let of_value = of_value(table, value, name);
        match pairs_of(db, &of_value, name, probe).await?.len() {
            0 => unknown.push((value, of_value)),
            some => known = known.saturating_add(some),
        }
    }
    let oldest = |objects: &[CapturedObject]| objects.iter().map(|one| one.created_at).min();
    let since = oldest(&probe.captured).max(oldest(&probe.refunds));
    let Some(since) = since.filter(|_| known >= ENOUGH) else { return Ok(Vec::new()) };
    let mut findings = Vec::new();
    for (value, of_value) in unknown {
        let Some(paid) = paid_of(of_value) else { continue };
        let filter =
            ClaimFilter { accounts: Some(vec![name.to_owned()]), ..ClaimFilter::default() };
        let rows = usize::try_from(db.stuck_ahead(&paid, &filter, since).await?.rows);
        let rows = rows.unwrap_or(usize::MAX);
        if rows >= ENOUGH {
            findings.push(of_unknown_value(table, name, value, [rows, known], since));
        }
    }
    Ok(findings)
}

/// The table with the rows of this value alone.
fn of_value(table: &SourceTable, value: &str, name: &str) -> SourceTable {
    let mut of_value = table.clone();
    of_value.settings.accounts = BTreeMap::from([(value.to_owned(), name.to_owned())]);
    of_value
}

/// The table as if rows that were paid were the stuck ones, so that they are looked up as those
/// are; none where no value says that a row was paid.
fn paid_of(mut table: SourceTable) -> Option<SourceTable> {
    let targets = table.settings.map.iter().filter_map(|map| map.succeeded.clone());
    let words: Vec<FilterValue> = targets.chain(table.settings.succeeded.clone()).collect();
    table.settings.map.truncate(1);
    table.settings.map.first_mut()?.from.clone_from(&words);
    (!words.is_empty()).then_some(table)
}

fn of_unknown_value(
    table: &SourceTable,
    name: &str,
    value: &str,
    [rows, known]: [usize; 2],
    since: Instant,
) -> Finding {
    let of = &table.settings.name;
    let columns = table.settings.account.join(" and ");
    let text = format!(
        "none of the newest captured objects is a row of {of} with `{value}` in {columns}, though \
         {rows} of them made or sent since {} were paid, and {known} objects are rows of other \
         values: `{value}` may be of another account; its rows are never found at {name}, and mode \
         full hands them back",
        to_short_text(since)
    );
    let next = format!(
        "name an [[account]] of its own for `{value}` in accounts of [[table]] {of}, or leave its \
         rows out by where; where they are at {name} indeed, look at the tags that they are sent \
         with. Until then let no run write"
    );
    fail(name, Exit::Config, "account_value", text, next)
}

/// The rows of one table that the objects are of, where an index leads to them.
async fn pairs_of(
    db: &Database,
    table: &SourceTable,
    name: &str,
    probe: &Probe,
) -> Result<Vec<Pair>, StoreError> {
    let objects: Vec<&CapturedObject> = probe.captured.iter().chain(&probe.refunds).collect();
    let tags: Vec<String> = match without_index(table, name) {
        None => objects.iter().filter_map(|object| object.tag.clone()).collect(),
        Some(_) => Vec::new(),
    };
    let references: Vec<String> = objects.iter().flat_map(|object| object.ids.clone()).collect();
    let settings = &table.settings;
    let is_indexed =
        settings.psp_reference.as_ref().is_some_and(|column| !table.unindexed.contains(column));
    let stored = match is_indexed {
        true => db.keys_storing(table, name, &references).await?,
        false => Vec::new(),
    };
    // A row that a view shows without a key is nobody's to look up.
    let keys = stored.into_iter().map(|(_, key)| key).filter(|key| !key.is_empty());
    let keys: Vec<String> = keys.collect::<BTreeSet<_>>().into_iter().collect();
    if tags.is_empty() && keys.is_empty() {
        return Ok(Vec::new());
    }
    let mut rows = db.rows_known_by(table, name, &tags, &references, &keys).await?;
    if !table.settings.filter.is_empty() {
        // No run looks at what `where` leaves out: such a row needs nobody.
        let ids: Vec<String> = rows.iter().map(|row| row.key.id.clone()).collect();
        let named = db.named_rows(table, &ids).await?;
        let own: BTreeSet<String> =
            named.into_iter().filter(|row| row.belongs).map(|row| row.id).collect();
        rows.retain(|row| own.contains(&row.key.id));
    }
    Ok(paired(&rows, &objects))
}

/// Each object with the one row of its kind that stores its reference, or else has its tag.
fn paired(rows: &[Transaction], objects: &[&CapturedObject]) -> Vec<Pair> {
    let mut named: HashMap<(Kind, &str), Vec<&Transaction>> = HashMap::new();
    let mut tagged: HashMap<(Kind, &str), Vec<&Transaction>> = HashMap::new();
    for row in rows {
        if let Some(reference) = row.psp_reference.as_deref() {
            named.entry((row.kind, reference)).or_default().push(row);
        }
        if let Some(tag) = row.tag.usable() {
            tagged.entry((row.kind, tag)).or_default().push(row);
        }
    }
    let row_of = |object: &CapturedObject| {
        let by_reference = object.ids.iter().find_map(|id| named.get(&(object.kind, id.as_str())));
        let by_tag = object.tag.as_deref().and_then(|tag| tagged.get(&(object.kind, tag)));
        match by_reference.or(by_tag)?.as_slice() {
            [only] => Some(*only),
            // None of several is known to be the one.
            _several => None,
        }
    };
    objects.iter().filter_map(|object| Some(Pair::of(row_of(object)?, object))).collect()
}

fn of_amounts(table: &SourceTable, name: &str, pairs: &[Pair]) -> Option<Finding> {
    let Off { how, count, all, first } = amounts(pairs)?;
    let of = &table.settings.name;
    let currency = first.object.captured.currency;
    let example = example_of(first);
    Some(match how {
        AmountsOff::Power(power, unread) => {
            let more = match unread {
                0 => String::new(),
                unread => format!(", and {unread} cannot be read"),
            };
            let text = format!(
                "the amounts of {count} of {all} {currency} rows of {of} are {} what was \
                 captured{more}: {example}; no such row is settled without a person",
                factor_text(power)
            );
            let is_all = pairs.iter().all(|pair| pair.difference().is_some());
            let next = unit_next(table, is_all.then_some(power), currency);
            fail(name, Exit::Config, "amount_unit", text, next)
        }
        AmountsOff::Unread => {
            let text = format!(
                "the amounts of {count} of {all} {currency} rows of {of} cannot be read: \
                 {example}; no such row is settled without a person"
            );
            let next = match &first.money {
                Err(problem) if problem.starts_with("currency") => correct_currency(of),
                Ok(_) | Err(_) => unit_next(table, None, currency),
            };
            fail(name, Exit::Config, "amount_unit", text, next)
        }
        AmountsOff::Currency => {
            let text = format!(
                "the currency of {count} of {all} rows of {of} is another than what was captured: \
                 {example}; no such row is settled without a person"
            );
            fail(name, Exit::Config, "amount_currency", text, correct_currency(of))
        }
        AmountsOff::Scattered => of_scattered(of, name, [count, all], &example),
    })
}

/// Amounts that differ in no common way: where those of nearly all rows do, they are of another
/// column than what is charged, and no payment is known again by them.
fn of_scattered(of: &str, name: &str, [count, all]: [usize; 2], example: &str) -> Finding {
    let said = format!("the amounts of {count} of {all} rows of {of} are not what was captured");
    let map = format!("map the column that is charged as amount of [[table]] {of}");
    if all >= COMPARED && is_nearly_all(count, all) {
        let text = format!(
            "{said}: {example}; such a row needs a person, and where its payment has no tag, it \
             may be handed back though it is paid"
        );
        let next = format!("{map}: amount.column, or its unit, is wrong");
        return fail(name, Exit::Config, "amounts_differ", text, next);
    }
    let text = format!("{said}: {example}; where it gets stuck, such a row needs a person");
    let next =
        format!("look at them at the PSP; where less or more is charged than amount says, {map}");
    warn(name, "amounts_differ", text, next)
}

/// What a row and its object say of the amount.
fn example_of(pair: &Pair) -> String {
    let CapturedObject { reference, captured, .. } = &pair.object;
    match &pair.money {
        Ok(money) => format!("`{}` says {money}, and {reference} {captured}", pair.key),
        Err(problem) => format!("`{}`, {problem}; {reference} says {captured}", pair.key),
    }
}

/// Amounts that differ in no common way, where the tags that led to the rows are also those of rows
/// of another kind: then the objects carry those rows' tags, and not the tags of their own.
async fn of_foreign_tags(
    known: &Known<'_>,
    db: &Database,
    name: &str,
    table: &SourceTable,
    pairs: &[Pair],
) -> Option<Finding> {
    amounts(pairs).filter(|off| off.how == AmountsOff::Scattered)?;
    let off = pairs.iter().filter(|pair| pair.difference().is_some());
    let tags: BTreeSet<String> = off.filter_map(|pair| pair.object.tag.clone()).collect();
    let tags: Vec<String> = tags.into_iter().collect();
    let mut kinds: HashMap<String, Kinds> = HashMap::new();
    for other in known.tables {
        let is_there = other.settings.accounts.values().any(|account| account == name);
        if !is_there || without_index(other, name).is_some() {
            continue;
        }
        // A table that cannot be asked is told of where its own rows are looked up.
        let Ok(found) = db.rows_tagged(other, name, &tags).await else { continue };
        for (tag, kind) in found.into_iter().filter_map(|one| Some((one.tag, one.kind?))) {
            kinds.entry(tag).or_default().add(kind);
        }
    }
    let mut each = [Kind::Refund, Kind::Payout, Kind::Charge].into_iter();
    each.find_map(|kind| carrying_foreign_tags(table, name, kind, pairs, &kinds))
}

/// The finding of one kind of object; `kinds` are those of the rows that have a tag.
fn carrying_foreign_tags(
    table: &SourceTable,
    name: &str,
    kind: Kind,
    pairs: &[Pair],
    kinds: &HashMap<String, Kinds>,
) -> Option<Finding> {
    let is_foreign = |pair: &Pair| {
        let of_tag = pair.object.tag.as_ref().and_then(|tag| kinds.get(tag));
        of_tag.is_some_and(|kinds| *kinds != Kinds::only(kind))
    };
    let alike: Vec<&Pair> = pairs.iter().filter(|pair| pair.object.kind == kind).collect();
    let off = alike.iter().copied().filter(|pair| pair.difference().is_some() && is_foreign(pair));
    let off: Vec<&Pair> = off.collect();
    let first = off.first().copied().filter(|_| is_nearly_all(off.len(), alike.len()))?;
    let of = &table.settings.name;
    let (what, whose) = match kind {
        Kind::Refund => ("refunds", "their payments' tags"),
        Kind::Payout => ("payouts", "tags of rows of another kind"),
        Kind::Charge => ("payments", "tags of rows of another kind"),
    };
    let text = format!(
        "{what} carry {whose}: of {} of {} the tag is that of a row of {of} only by chance, since \
         rows of another kind have it too, and the amounts differ: {}; what is found by such a tag \
         is another row's, and no row of {of} is proven absent",
        off.len(),
        alike.len(),
        example_of(first)
    );
    let next = format!(
        "let {what} carry the tags of their own rows, or give [[table]] {of} another tag, such as \
         tag = \"{of}-{{…}}\", that they do carry"
    );
    Some(fail(name, Exit::Config, "foreign_tags", text, next))
}

fn correct_currency(of: &str) -> String {
    format!("correct currency in [[table]] {of}")
}

fn factor_text(power: i32) -> String {
    let factor = 10_i64.checked_pow(power.unsigned_abs()).unwrap_or(i64::MAX);
    if power > 0 { format!("{factor} times") } else { format!("1/{factor} of") }
}

/// Which unit it is, where all rows are off by this power; else where to look.
fn unit_next(table: &SourceTable, power: Option<i32>, currency: Currency) -> String {
    let of = &table.settings.name;
    let places = i32::try_from(currency.exponent()).unwrap_or(i32::MAX);
    let unit = match &table.settings.amount.unit {
        UnitSetting::Minor if power == Some(places.saturating_neg()) => Some("major"),
        UnitSetting::Major if power == Some(places) => Some("minor"),
        UnitSetting::Minor | UnitSetting::Major | UnitSetting::ExponentColumn(_) => None,
    };
    match unit {
        Some(unit) => format!("set unit = \"{unit}\" in amount of [[table]] {of}"),
        None => format!(
            "correct unit in amount of [[table]] {of}: \"minor\", \"major\" or \
             {{ exponent = \"column\" }}; or let a view scale it"
        ),
    }
}

fn of_times(table: &SourceTable, name: &str, pairs: &[Pair], timing: &Timing) -> Option<Finding> {
    let Off { how, count, all, first } = times(pairs, timing)?;
    let of = &table.settings.name;
    let (column, notation, at) = column_of(table, first, how)?;
    let CapturedObject { reference, created_at, .. } = &first.object;
    let example = format!(
        "`{}` {column} {}, and {reference} was made {}",
        first.key,
        to_short_text(at),
        to_short_text(*created_at)
    );
    Some(match how {
        TimesOff::Zone(secs) => {
            let hours = hours_text(secs);
            let (sign, age, harm) = match secs {
                ..0 => ("+", "younger", "such a row is looked at so much later"),
                _ => ("-", "older", "such a payment may be missed, and its row charged again"),
            };
            let text = format!(
                "{column} looks {sign}{hours} off: {count} of {all} rows of {of} are {hours} {age} \
                 than their objects: {example}; {harm}"
            );
            let next = zone_next(table, column, notation, secs, *created_at);
            // Where nothing tells of sends, no absence is proven; and rows may be sent by the hour.
            let is_harm = match secs {
                ..0 => notation.zone().is_some(),
                _ => first.attempts != Attempts::Unknown,
            };
            match is_harm {
                true => fail(name, Exit::Config, "time_zone", text, next),
                false => warn(name, "time_zone", text, next),
            }
        }
        TimesOff::Late => {
            let text = format!(
                "{count} of {all} objects were made more than {} after the last send of their rows \
                 of {of}, as {column} tells it: {example}; such a payment may be missed, and its \
                 row charged again",
                span_text(timing.in_flight_max)
            );
            let next = "map attempted to a column that is written before every send, or raise \
                        in_flight_max";
            warn(name, "times_differ", text, next)
        }
        TimesOff::Before => {
            let what = if first.object.kind == Kind::Refund { "refunds" } else { "payouts" };
            let text = format!(
                "{count} of {all} objects, {what}, were made before the rows of {of} whose tags \
                 they have: {example}; such a row needs a person"
            );
            let next = format!(
                "let {what} carry the tags of their own rows; or check created and time of \
                 [[table]] {of}"
            );
            warn(name, "times_differ", text, next)
        }
        TimesOff::Older => {
            let text = format!(
                "{count} of {all} objects are more than {} older than their rows of {of}: \
                 {example}; such a row needs a person",
                span_text(timing.object_before_row)
            );
            let next = format!(
                "check created and time of [[table]] {of}; where objects are rightly made so much \
                 earlier, raise object_before_row"
            );
            warn(name, "times_differ", text, next)
        }
    })
}

/// The column that the finding is about, how it is written, and what it says in this row.
fn column_of<'t>(
    table: &'t SourceTable,
    pair: &Pair,
    how: TimesOff,
) -> Option<(&'t str, Notation, Instant)> {
    let times = pair.times?;
    let is_older = matches!(how, TimesOff::Before | TimesOff::Older | TimesOff::Zone(..0));
    let attempted = table.settings.attempted.as_deref().zip(table.layout.attempted);
    let by_attempt = attempted.filter(|_| times.by_attempt && !is_older);
    Some(match by_attempt {
        Some((column, (_, notation))) => (column, notation, times.sent),
        None => (table.settings.created.as_str(), table.layout.created.1, times.created),
    })
}

/// `2 h`, `5 h 30 min`, whichever its sign is.
fn hours_text(secs: i64) -> String {
    let minutes = secs.unsigned_abs() / 60;
    match (minutes / 60, minutes % 60) {
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

/// What to set, where rows look so many seconds older than their objects.
fn zone_next(
    table: &SourceTable,
    column: &str,
    notation: Notation,
    secs: i64,
    at: Instant,
) -> String {
    let of = &table.settings.name;
    let set = match notation.zone() {
        Some(zone) => {
            let read_as = zone.offset_from_utc_datetime(&at.naive_utc()).fix().local_minus_utc();
            match east_text(i64::from(read_as).saturating_sub(secs)) {
                None => format!("set time = \"utc\" in [[table]] {of}"),
                Some(east) => format!(
                    "set time of [[table]] {of} to the zone that {column} is written in, {east} by \
                     these rows"
                ),
            }
        }
        None => format!("{column} says its zone itself: let the application write true times"),
    };
    match secs {
        ..0 => set,
        _ => format!("{set}; or, where rows are sent so much later, map attempted"),
    }
}

/// `UTC+05:30` for seconds east of it; none is UTC itself.
fn east_text(secs: i64) -> Option<String> {
    let minutes = secs.unsigned_abs() / 60;
    let sign = if secs < 0 { '-' } else { '+' };
    (minutes > 0).then(|| format!("UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::{earlier, from_text};
    use crate::run::doctor::Level;
    use chrono::TimeDelta;

    fn money(minor: i64, code: &str) -> Money {
        Money::new(minor, Currency::parse(code).unwrap())
    }

    /// A payment that was captured by the call of its row, with this amount in the row.
    fn pair(row: Result<Money, String>, captured: Money) -> Pair {
        let created_at = from_text("2026-11-19T12:00:00Z").unwrap();
        let (reference, tag) = ("pi_7".to_owned(), None);
        let ids = vec![reference.clone()];
        let times = Times { created: created_at, sent: created_at, by_attempt: false };
        Pair {
            key: "7".to_owned(),
            object: CapturedObject {
                reference,
                ids,
                tag,
                kind: Kind::Charge,
                captured,
                created_at,
            },
            money: row,
            times: Some(times),
            attempts: Attempts::Once,
            paid: paid::Row::default(),
        }
    }

    fn eur(row: i64, captured: i64) -> Pair {
        pair(Ok(money(row, "EUR")), money(captured, "EUR"))
    }

    fn jpy(row: i64, captured: i64) -> Pair {
        pair(Ok(money(row, "JPY")), money(captured, "JPY"))
    }

    fn usd_for_eur(minor: i64) -> Pair {
        pair(Ok(money(minor, "USD")), money(minor, "EUR"))
    }

    fn unread(captured: i64) -> Pair {
        pair(Err("amount: `19.90` is finer".to_owned()), money(captured, "EUR"))
    }

    #[test]
    fn amounts_that_are_off_alike_are_told_from_others() {
        let hundredth = || vec![eur(5, 500), eur(19, 1_900), eur(1, 100)];
        let with = |mut pairs: Vec<Pair>, more: Pair| {
            pairs.push(more);
            pairs
        };
        let many = with((1..=18).map(|n| eur(n, n * 100)).collect(), eur(3, 4));
        for (pairs, wanted) in [
            (vec![], None),
            (vec![eur(500, 500), eur(7, 7)], None),
            (hundredth(), Some((AmountsOff::Power(-2, 0), 3, 3))),
            (with(hundredth(), eur(7, 7)), Some((AmountsOff::Scattered, 3, 4))),
            (with(hundredth(), eur(7, 8)), Some((AmountsOff::Scattered, 4, 4))),
            (many, Some((AmountsOff::Power(-2, 0), 18, 19))),
            (vec![eur(5, 500), eur(19, 1_900)], Some((AmountsOff::Scattered, 2, 2))),
            (vec![eur(5, 500), eur(5, 5_000), eur(9, 90)], Some((AmountsOff::Scattered, 3, 3))),
            (vec![eur(0, 500), eur(0, 70), eur(0, 8)], Some((AmountsOff::Scattered, 3, 3))),
            // One currency has other places than the others.
            (
                vec![jpy(50_000, 500), eur(7, 7), jpy(900, 9), jpy(10_000, 100)],
                Some((AmountsOff::Power(2, 0), 3, 3)),
            ),
            // What is finer than the currency is off by its unit, too.
            (vec![eur(20, 2_000), unread(1), unread(2)], Some((AmountsOff::Power(-2, 2), 1, 3))),
            (vec![unread(1), unread(2), unread(3)], Some((AmountsOff::Unread, 3, 3))),
            (vec![unread(1), eur(7, 7)], Some((AmountsOff::Scattered, 1, 2))),
            (
                vec![usd_for_eur(1), usd_for_eur(2), usd_for_eur(3)],
                Some((AmountsOff::Currency, 3, 3)),
            ),
            (vec![usd_for_eur(1), eur(7, 7)], Some((AmountsOff::Scattered, 1, 2))),
        ] {
            let off = amounts(&pairs).map(|off| (off.how, off.count, off.all));
            assert_eq!(off, wanted, "{pairs:#?}");
        }
    }

    #[test]
    fn amounts_that_differ_in_nearly_all_rows_are_of_another_column() {
        for (count, all, is_failure) in
            [(5, 5, true), (9, 10, true), (4, 4, false), (8, 10, false), (1, 30, false)]
        {
            let found = of_scattered("payments", "shop", [count, all], "`7` says 1.00 EUR");
            let level = if is_failure { Level::Fail(Exit::Config) } else { Level::Warn };
            assert_eq!(found.level, level, "{count} of {all}");
            assert!(found.text.contains(&format!("{count} of {all} rows of payments")));
        }
    }

    /// A row that was made and sent so many seconds before its object.
    fn sent(secs: i64, attempts: Attempts) -> Pair {
        let pair = eur(7, 7);
        let at = earlier(pair.object.created_at, TimeDelta::seconds(secs));
        let by_attempt = attempts == Attempts::Column;
        Pair { times: Some(Times { created: at, sent: at, by_attempt }), attempts, ..pair }
    }

    #[test]
    fn times_that_are_off_by_a_zone_are_told_from_others() {
        let hour = 3_600;
        let ten: Vec<i64> = [2; 10].into_iter().chain([5_000]).collect();
        for (secs, attempts, wanted) in [
            (vec![], Attempts::Once, None),
            (vec![2, 40, 900], Attempts::Once, None),
            (vec![2 - 2 * hour, 9 - 2 * hour, 60 - 2 * hour], Attempts::Once, Some((-2, 3))),
            (vec![9 * hour, 9 * hour + 600, 9 * hour - 60], Attempts::Once, Some((9, 3))),
            // Both sides of summer time.
            (vec![2 - 2 * hour, 3 - 2 * hour, 2 - hour], Attempts::Once, Some((-2, 3))),
            // Too few; intents that are made at cart time; either way.
            (vec![2 - 2 * hour, 3 - 2 * hour], Attempts::Once, None),
            (vec![-900, -86_000, -40_000], Attempts::Once, None),
            (vec![hour, -hour, hour], Attempts::Unknown, None),
            // Days are no zone's.
            (vec![-72 * hour, -72 * hour, -72 * hour], Attempts::Once, None),
        ] {
            let pairs: Vec<Pair> = secs.iter().map(|secs| sent(*secs, attempts)).collect();
            let off = times(&pairs, &Timing::default()).map(|off| (off.how, off.count));
            let wanted = wanted.map(|(hours, count)| (TimesOff::Zone(hours * hour), count));
            assert_eq!(off, wanted, "{secs:?}");
        }
        for (secs, attempts, wanted) in [
            (vec![2, 2, 5_000], Attempts::Once, Some((TimesOff::Late, 1))),
            (vec![hour, -hour, hour], Attempts::Once, Some((TimesOff::Late, 2))),
            // Some were handed back, and sent again.
            (ten.clone(), Attempts::Once, None),
            (ten.clone(), Attempts::Column, Some((TimesOff::Late, 1))),
            (ten, Attempts::Unknown, None),
            (vec![2, 2, -8 * 24 * hour], Attempts::Unknown, Some((TimesOff::Older, 1))),
        ] {
            let pairs: Vec<Pair> = secs.iter().map(|secs| sent(*secs, attempts)).collect();
            let off = times(&pairs, &Timing::default()).map(|off| (off.how, off.count));
            assert_eq!(off, wanted, "{secs:?} {attempts:?}");
        }
    }

    #[test]
    fn a_row_that_was_sent_long_after_it_was_made_is_no_zones() {
        let late = sent(2, Attempts::Column);
        let made = late
            .times
            .map(|times| Times { created: earlier(times.created, TimeDelta::hours(9)), ..times });
        let pairs: Vec<Pair> = std::iter::repeat_n(Pair { times: made, ..late }, 3).collect();
        assert!(times(&pairs, &Timing::default()).is_none());
    }

    #[test]
    fn spans_and_zones_are_told_in_hours() {
        let told: Vec<String> = [-7_200, 19_800].into_iter().map(hours_text).collect();
        assert_eq!(told, ["2 h", "5 h 30 min"]);
        let zones = [0, 19_800, -12_600].map(east_text);
        assert_eq!(zones, [None, Some("UTC+05:30".to_owned()), Some("UTC-03:30".to_owned())]);
    }
}
