//! Bookings that two files tell: what both databases share of telling them.
//!
//! Statements overlap, and reports are downloaded twice. A line whose own id already counts in
//! another file, with the same money, is that booking told again: it is kept as `told_before` with
//! the place that counts, and counts nowhere itself. An id that several lines carry tells a booking
//! only together with its tag, the first of them the first, the second the second; so two equal
//! payments of one file stay two. Where what counted is taken out, the lines that were told again
//! are looked at anew, so that none is lost.
//!
//! A file of rows has no ids. One that holds whole days of another is held, and a person decides.

use std::collections::{BTreeSet, HashMap};

use chrono::NaiveDate;

use crate::model::count::counted;
use crate::model::settlement::{Finality, Problem};
use crate::store::files::{Ended, FileSums};
use crate::store::release::{DECIDES, SAME};

/// Banks' formats whose bookings carry an id of the bank's.
const BANKS: [&str; 3] = ["camt.053", "mt940", "bai2"];

/// PSPs' reports whose rows carry an id of the PSP's.
const PSPS: [&str; 9] = [
    "stripe",
    "paypal_stl",
    "paypal_trr",
    "braintree",
    "adyen_settlement",
    "adyen_accounting",
    "checkout_breakdown",
    "checkout_payouts",
    "checkout_actions",
];

/// A bank's id of fewer letters may be a number within its statement.
const LONG: usize = 8;

/// Of two ways to write an account the shorter one has so many letters and digits at least.
const ACCOUNT: usize = 10;

/// How many days of an overlap are named.
const DAYS_NAMED: usize = 5;

/// By what bookings of a format are known again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Way {
    /// By the bank's reference, within one bank account.
    Bank,
    /// By the PSP's ids, within reports of one kind.
    Psp,
}

/// By what bookings of this format are known again; none: they carry no id.
pub(in crate::store) fn way(format: &str) -> Option<Way> {
    match format {
        bank if BANKS.contains(&bank) => Some(Way::Bank),
        psp if PSPS.contains(&psp) => Some(Way::Psp),
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
    /// What makes one text of several values.
    pub array: &'static str,
    /// What makes it a text.
    pub as_text: &'static str,
    /// A day `t.day` as a text.
    pub day: &'static str,
}

/// A statement of a bank, for what overlaps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct Side {
    /// Its file.
    pub file: i64,
    /// Its place in the file.
    pub number: i64,
    /// As the file writes it.
    pub bank_account: String,
    /// Its currency; empty where it has none.
    pub currency: String,
    /// First day of its period.
    pub from: Option<NaiveDate>,
    /// Last day of it.
    pub to: Option<NaiveDate>,
}

/// Statements whose periods overlap: of the same g are those of one bank account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::store) struct Sides {
    /// Of the file: number and g.
    pub ours: Vec<(i64, i64)>,
    /// Of others: file, number and g.
    pub theirs: Vec<(i64, i64, i64)>,
}

/// The letters and digits of an account, without the currency that some write behind it.
fn plain(side: &Side) -> String {
    let text: String = side.bank_account.chars().filter(char::is_ascii_alphanumeric).collect();
    let text = text.to_ascii_uppercase();
    match text.strip_suffix(side.currency.as_str()) {
        Some(own) if !side.currency.is_empty() && !own.is_empty() => own.to_owned(),
        _as_it_is => text,
    }
}

/// What all ways to write one account end with.
fn end_of(account: &str) -> &str {
    let from = account.len().saturating_sub(ACCOUNT);
    account.get(from..).unwrap_or(account)
}

/// The same account: as written, or as a national number that the IBAN ends with.
fn is_same(own: &str, other: &str) -> bool {
    let (short, long) = if own.len() < other.len() { (own, other) } else { (other, own) };
    short == long || (short.len() >= ACCOUNT && long.ends_with(short))
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
    let mut by_end: HashMap<String, Vec<(String, &Side)>> = HashMap::new();
    for other in others {
        let account = plain(other);
        by_end.entry(end_of(&account).to_owned()).or_default().push((account, other));
    }
    let mut groups: HashMap<&str, i64> = HashMap::new();
    let mut ours = Vec::with_capacity(mine.len());
    let mut theirs = BTreeSet::new();
    for own in mine {
        let next = i64::try_from(groups.len()).unwrap_or(i64::MAX);
        let group = *groups.entry(own.bank_account.as_str()).or_insert(next);
        ours.push((own.number, group));
        let account = plain(own);
        for (written, other) in by_end.get(end_of(&account)).into_iter().flatten() {
            if is_same(&account, written) && overlap(own, other) {
                theirs.insert((other.file, other.number, group));
            }
        }
    }
    Sides { ours, theirs: theirs.into_iter().collect() }
}

/// The final statements of the file $1 that count, with their periods: where they say none, that of
/// their lines.
pub(in crate::store) const OURS: &str = "select s.file_id, s.number, s.bank_account, s.currency, \
     coalesce(s.from_on, d.begun), coalesce(s.to_on, d.done) from tieout_statements s \
     left join (select l.statement, min(l.booked_on) as begun, max(l.booked_on) as done \
     from tieout_lines l where l.file_id = $1 group by l.statement) d on d.statement = s.number \
     where s.file_id = $1 and s.state = 'live' and s.finality = 'final' order by s.number";

/// The banks' formats, as a list of SQL.
pub(in crate::store) fn banks() -> String {
    BANKS.map(|word| format!("'{word}'")).join(", ")
}

/// A line `l` of a statement `s` that may turn out to be told before: nobody's yet.
const FRESH: &str = "s.state = 'live' and s.finality = 'final' and l.status = 'booked' \
     and l.amount_minor is not null and l.kind <> 'attempt' and l.key is null \
     and (l.state = 'open' or (l.state = 'excluded' and l.reason is null))";

/// A line `l` of a statement `s` that counts.
const COUNTS: &str = "s.state <> 'held' and s.finality = 'final' and l.status = 'booked' \
     and l.amount_minor is not null and l.kind <> 'attempt' and (l.state in ('open', 'matched') \
     or (l.state = 'excluded' and l.reason is null))";

/// The booking day of a line `l` of a statement `s`; formats without one have statements of a day.
const DAY: &str = "coalesce(l.booked_on, case when s.from_on = s.to_on then s.to_on end)";

/// The lines of both sides in one table, so that what is alike is found by sorting: a join of the
/// two would read each of the others for each of the file's own.
const BOTH: &str = "both_sides as (select 0 as side, m.* from mine m \
     union all select 1, e.* from elder e)";

/// Notes which line counts in place of each of `pick`.
const NOTE: &str = "update tieout_lines as l set decides = (1 = 0), state = 'excluded', \
     reason = 'told_before', of_file = p.by_file, of_position = p.by_position from pick p \
     where l.file_id = $1 and l.position = p.position";

/// Marks the lines of a bank's file $1 that other files told.
pub(in crate::store) fn by_bank(dialect: &Dialect) -> String {
    let Dialect { join, sides, .. } = dialect;
    let id = (dialect.first)("'bank_reference'");
    let lines = |from: &str, condition: &str| {
        format!(
            "select x.*, row_number() over (partition by x.g, x.id, x.kind, x.direction, \
             x.currency, x.amount_minor, x.day, x.tag order by x.file_id, x.position) as n, \
             count(*) over (partition by x.g, x.file_id, x.id) as times from (\
             select p.g, l.file_id, l.position, l.kind, l.direction, l.currency, l.amount_minor, \
             l.tag, {DAY} as day, {id} as id from {from} {join} tieout_statements s \
             on s.file_id = l.file_id and s.number = l.statement where {condition}) x \
             where x.id is not null \
             and upper(x.id) not in ('', 'NONREF', 'NOTPROVIDED', 'NOREF', 'NONE') \
             and replace(x.id, '0', '') <> ''"
        )
    };
    let mine = lines(
        &format!("ours p {join} tieout_lines l on l.file_id = $1 and l.statement = p.number"),
        FRESH,
    );
    // Of other days nothing is read but the day.
    let elder = lines(
        &format!(
            "theirs p {join} tieout_lines l on l.file_id = p.file_id and l.statement = p.number"
        ),
        &format!("{COUNTS} and {DAY} in (select m.day from mine m)"),
    );
    let key = "b.g, b.id, b.kind, b.direction, b.currency, b.amount_minor, b.day";
    format!(
        "with {sides}, mine as materialized ({mine}), elder as materialized ({elder}), \
         {BOTH}, seen as (select b.*, \
         first_value(b.side) over one as one_side, first_value(b.file_id) over one as one_file, \
         first_value(b.position) over one as one_position, \
         first_value(b.side) over any_tag as any_side, \
         first_value(b.file_id) over any_tag as any_file, \
         first_value(b.position) over any_tag as any_position from both_sides b \
         window one as (partition by {key}, b.tag, b.n order by b.side desc, b.file_id, \
         b.position), any_tag as (partition by {key}, b.times = 1 order by b.side desc, \
         b.file_id, b.position)), \
         pick as (select x.position, x.one_file as by_file, x.one_position as by_position \
         from seen x where x.side = 0 and x.one_side = 1 and x.tag is not null \
         union all select x.position, x.any_file, x.any_position \
         from seen x where x.side = 0 and x.any_side = 1 and x.times = 1 \
         and length(x.id) >= {LONG} and (x.one_side = 0 or x.tag is null)) {NOTE}"
    )
}

/// Marks the lines of a PSP's file $1 that other reports of the same kind told.
pub(in crate::store) fn by_psp(dialect: &Dialect) -> String {
    let Dialect { join, hit, .. } = dialect;
    let transaction = (dialect.first)("'transaction_id'");
    let other = (dialect.first)("'refund_id', 'dispute_id'");
    let lines = |from: &str, condition: &str| {
        format!(
            "select x.*, row_number() over (partition by x.bank_account, x.psp_reference, x.id, \
             x.type_code, x.kind, x.direction, x.currency, x.amount_minor, x.day, x.batch \
             order by x.file_id, x.position) as n from (\
             select l.file_id, l.position, s.bank_account, l.psp_reference, l.type_code, l.kind, \
             l.direction, l.currency, l.amount_minor, coalesce({transaction}, {other}, '') as id, \
             case when {transaction} is null then l.booked_on end as day, \
             case when f.format like 'adyen%' then coalesce(l.batch, '') else '' end as batch \
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
    format!(
        "with {hit}, mine as materialized ({mine}), elder as materialized ({elder}), \
         {BOTH}, seen as (select b.side, b.position, \
         first_value(b.side) over one as one_side, first_value(b.file_id) over one as by_file, \
         first_value(b.position) over one as by_position from both_sides b \
         window one as (partition by b.bank_account, b.psp_reference, b.id, b.type_code, b.kind, \
         b.direction, b.currency, b.amount_minor, b.day, b.batch, b.n \
         order by b.side desc, b.file_id, b.position)), \
         pick as (select x.position, x.by_file, x.by_position from seen x \
         where x.side = 0 and x.one_side = 1) {NOTE}"
    )
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

/// The days of live statements of files of rows that the statement $2 of the file $1 holds whole:
/// file, number, name, day. $3 to $7 are its account, bank account, currency, first and last day.
pub(in crate::store) fn overlaps(dialect: &Dialect) -> String {
    let Dialect { array, as_text, day, .. } = dialect;
    let key = format!("{array}({SAME}, l.raw){as_text}");
    format!(
        "with rivals as materialized (select o.file_id, o.number, f.name \
         from tieout_statements o join tieout_files f on f.id = o.file_id \
         where o.state = 'live' and o.account = $3 and o.bank_account = $4 and o.currency = $5 \
         and o.from_on <= $7 and o.to_on >= $6 and o.finality = 'final' \
         and o.statement_id = '' and o.sequence = '' \
         and f.format in ('table', 'bank_csv') and o.file_id <> $1 \
         and exists (select 1 from tieout_files g where g.id = $1 \
         and g.format in ('table', 'bank_csv'))), \
         own as materialized (select l.booked_on as day, {key} as k, count(*) as c \
         from tieout_lines l where exists (select 1 from rivals) and l.file_id = $1 \
         and l.statement = $2 and l.booked_on is not null group by 1, 2), \
         told as (select o.file_id, o.number, o.name, l.booked_on as day, {key} as k, \
         count(*) as c from rivals o \
         join tieout_lines l on l.file_id = o.file_id and l.statement = o.number \
         where l.booked_on is not null and l.state <> 'superseded' \
         and coalesce(l.reason, '') not in ('statement_corrected', 'told_before') \
         group by 1, 2, 3, 4, 5) \
         select t.file_id, t.number, t.name, {day} from told t \
         left join own on own.day = t.day and own.k = t.k \
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
        Side { file: 1, number: 1, bank_account, currency, from, to }
    }

    #[test]
    fn an_account_is_one_however_it_is_written() {
        let iban = side("DE02 1203 0000 0000 2020 51", "EUR", (18, 18));
        let is_one = |account: &str, currency: &str, days| {
            let own = std::slice::from_ref(&iban);
            !sides(own, &[side(account, currency, days)]).theirs.is_empty()
        };
        for account in ["DE02120300000000202051", "12030000/0000202051", "0000202051EUR"] {
            assert!(is_one(account, "EUR", (18, 19)), "{account}");
        }
        for account in ["202051", "DE02120300000000202052", "", "12030001/0000202051"] {
            assert!(!is_one(account, "EUR", (18, 19)), "{account}");
        }
        assert!(!is_one("DE02120300000000202051", "EUR", (19, 20)), "another day's");
        assert!(!is_one("DE02120300000000202051", "USD", (18, 18)), "another currency's");
        let open = Side { to: None, ..side("DE02120300000000202051", "", (1, 1)) };
        assert_eq!(sides(&[iban], &[open]).theirs, [(1, 1, 0)]);
    }
}
