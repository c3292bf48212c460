//! What to say of stuck rows that a mapping's `where` leaves out. Pure: the store looked at them.

use crate::model::card::masked;
use crate::model::money::grouped_text;
use crate::store::inspect::{Barrier, LEFT_OUT_MAX, LeftOut, Passing};
use crate::store::mapping::{FilterValue, NullTest, TableSettings};
use crate::store::source_table::SourceTable;
use crate::store::tellers::plain;

/// Values of one column that are named.
const VALUES: usize = 3;

/// Characters of a value that are shown.
const CHARS: usize = 40;

/// The other mappings of the relation that a mapping reads.
pub fn beside<'t>(
    own: &TableSettings,
    all: impl IntoIterator<Item = &'t TableSettings>,
) -> Vec<&'t TableSettings> {
    let is_beside = |other: &&TableSettings| other.read == own.read && other.name != own.name;
    all.into_iter().filter(is_beside).collect()
}

/// Whether rows of a status that a mapping does not name may be left out by its `where` altogether:
/// another mapping of the same relation names it.
pub fn is_left_to(own: &TableSettings, beside: &[&TableSettings], value: &str) -> bool {
    let names = |other: &&TableSettings| other.named_values().any(|known| known.0 == value);
    let shared = beside.iter().filter(|other| other.status == own.status);
    !own.filter.is_empty() && shared.into_iter().any(names)
}

/// Whether each looked-at stuck row is left out.
pub fn is_whole(left: &LeftOut) -> bool {
    left.stuck > 0 && left.rows == left.stuck
}

/// Whether rows are left out by a list of values because they have NULL.
pub fn is_by_null(left: &LeftOut) -> bool {
    left.by.iter().any(has_null)
}

/// Whether every stuck row is left out by what can hardly be meant: another spelling of the value
/// that they have, where no row has the one that is wanted, or a flag that nobody set. What may be
/// meant, a row of another PSP, one that was deleted, a value that is to come, is none of it.
pub fn is_mistake(left: &LeftOut) -> bool {
    let is_seen_whole = left.stuck < LEFT_OUT_MAX;
    let is_it = |barrier: &Barrier| {
        let is_unset = flag_to_exclude(barrier) == Some("true")
            && barrier.values.iter().all(|(value, _)| value.is_none());
        barrier.rows == left.stuck
            && barrier.filter.one_of.is_some()
            && match barrier.passing {
                Passing::NoRow | Passing::NoneSeen if other_spelling(barrier).is_some() => true,
                Passing::NoRow => is_unset,
                Passing::NoneSeen | Passing::Rows => is_unset && is_seen_whole,
            }
    };
    is_whole(left) && left.by.iter().any(is_it)
}

/// How many rows are left out, and by which conditions.
pub fn words(table: &SourceTable, left: &LeftOut) -> String {
    let clauses: Vec<String> = left.by.iter().map(clause).collect();
    let number = |rows: i64| grouped_text(i128::from(rows), 0);
    format!(
        "where leaves out {} of {} looked-at rows with a value of from in {}: {}",
        number(left.rows),
        number(left.stuck),
        table.settings.status,
        clauses.join("; ")
    )
}

/// What to do about the first of the conditions that can hardly be meant, else about any.
pub fn advice(table: &SourceTable, left: &LeftOut) -> String {
    let meant = "nothing to do, where such rows are not to be looked at";
    let name = &table.settings.name;
    if let Some((column, there)) = left.by.iter().find_map(other_spelling) {
        return format!(
            "spell the value as the rows do: where = [{{ column = \"{column}\", in = [\"{there}\"] \
             }}] in [[table]] {name}"
        );
    }
    if let Some(barrier) = left.by.iter().find(|barrier| has_null(barrier)) {
        let column = &barrier.filter.column;
        return match flag_to_exclude(barrier) {
            Some(flag) => format!(
                "where = [{{ column = \"{column}\", not_in = [{flag}] }}] in [[table]] {name} lets \
                 rows pass that have NULL there; {meant}"
            ),
            None => format!(
                "in lets no NULL pass: fill {column}, or name in not_in what is to be left out, \
                 which lets NULL pass; {meant}"
            ),
        };
    }
    match left.by.iter().find(|barrier| barrier.passing != Passing::Rows) {
        Some(barrier) => format!(
            "compare what where of [[table]] {name} wants with the values of {}; {meant}",
            barrier.filter.column
        ),
        None => meant.to_owned(),
    }
}

/// What one condition wants, and what the rows have that it leaves out.
fn clause(barrier: &Barrier) -> String {
    let Barrier { filter, rows, passing, .. } = barrier;
    let wants = match (filter.is, &filter.one_of, &filter.not_in) {
        (Some(NullTest::Null), ..) => "NULL".to_owned(),
        (Some(NullTest::NotNull), ..) => "not NULL".to_owned(),
        (None, Some(values), _) => listed(values, " or "),
        (None, None, values) => {
            format!("none of {}", listed(values.as_deref().unwrap_or_default(), ", "))
        }
    };
    let which = match passing {
        Passing::Rows => "",
        Passing::NoneSeen => ", which holds for no looked-at row of the table",
        Passing::NoRow => ", which holds for no row of the table",
    };
    let has = match filter.is {
        Some(NullTest::Null) => format!("not NULL ({rows})"),
        Some(NullTest::NotNull) => format!("NULL ({rows})"),
        None => values_of(barrier),
    };
    format!("{} is to be {wants}{which}; in them it is {has}", filter.column)
}

fn listed(values: &[FilterValue], between: &str) -> String {
    let shown: Vec<String> = values.iter().take(VALUES).map(|value| word(&value.0)).collect();
    let more = if values.len() > VALUES { ", …" } else { "" };
    format!("{}{more}", shown.join(between))
}

fn values_of(barrier: &Barrier) -> String {
    let shown = barrier.values.iter().take(VALUES).map(|(value, rows)| match value {
        Some(value) => format!("{} ({rows})", word(value)),
        None => format!("NULL ({rows})"),
    });
    let more = if barrier.values.len() > VALUES { ", …" } else { "" };
    format!("{}{more}", shown.collect::<Vec<_>>().join(", "))
}

fn word(value: &str) -> String {
    let shown: String = masked(value).chars().take(CHARS).collect();
    format!("`{shown}`")
}

fn has_null(barrier: &Barrier) -> bool {
    barrier.filter.one_of.is_some() && barrier.values.iter().any(|(value, _)| value.is_none())
}

/// The other value of a flag, where one alone is wanted.
fn flag_to_exclude(barrier: &Barrier) -> Option<&'static str> {
    match barrier.filter.one_of.as_deref()? {
        [only] if only.0 == "false" => Some("true"),
        [only] if only.0 == "true" => Some("false"),
        _other => None,
    }
}

/// The column, and how the rows spell a value that the condition wants in another spelling.
fn other_spelling(barrier: &Barrier) -> Option<(&str, &str)> {
    let wanted = barrier.filter.one_of.as_deref()?;
    let is_alike = |there: &&str| {
        let there = plain(there);
        !there.is_empty() && wanted.iter().any(|value| plain(&value.0) == there)
    };
    let mut values = barrier.values.iter().filter_map(|(value, _)| value.as_deref());
    let there = values.find(is_alike)?;
    Some((barrier.filter.column.as_str(), there))
}
