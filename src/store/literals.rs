//! What a mapping writes of its own words: status values, literals of `set` and `history`, and what
//! their templates become that name tieout's words alone. The catalogue does not say whether a type
//! that is none of the common ones takes them: the database is asked.

use std::collections::{BTreeMap, BTreeSet};

use crate::decide::policy::Mode;
use crate::model::reason::{Leads, Outcome, Reason};
use crate::store::effects::target_of;
use crate::store::error::{MappingError, Mend};
use crate::store::mapping::{FilterValue, SetSettings, TableSettings};
use crate::store::source_table::{Column, SourceTable, Target, TypeClass};
use crate::store::template::{Piece, Template, step_of};

/// A text that is written to a column as it stands, or compared with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Literal<'t> {
    /// The mapping's field: `map.succeeded`, `set.always.source`.
    pub field: String,
    /// The text.
    pub text: String,
    /// The column.
    pub column: &'t Column,
}

impl Literal<'_> {
    /// What to say where the database refuses it, in its words.
    pub fn refused(&self, table: &SourceTable, words: &str) -> MappingError {
        let Column { name, type_name, .. } = self.column;
        MappingError {
            table: table.settings.name.clone(),
            field: self.field.clone(),
            problem: format!("`{}` is no value of column `{name}` ({type_name})", self.text),
            expected: format!("what the database takes, which says: {words}"),
            mend: Mend::Mapping,
        }
    }
}

/// Every literal of a mapping, and what may stand in its place, in the order of its fields.
pub fn literals(table: &SourceTable) -> Vec<Literal<'_>> {
    let mut found = Vec::new();
    let status = &table.write_status;
    for map in &table.settings.map {
        let targets = [
            ("map.succeeded", &map.succeeded),
            ("map.failed", &map.failed),
            ("map.retryable", &map.retryable),
            ("map.absent", &map.absent),
            ("map.review", &map.review),
        ];
        let from = map.from.iter().map(|value| ("map.from", value));
        let targets = targets.into_iter().filter_map(|(field, it)| Some((field, it.as_ref()?)));
        for (field, value) in from.chain(targets) {
            let (field, text) = (field.to_owned(), value.0.clone());
            found.push(Literal { field, text, column: status });
        }
    }
    for (field, template, target, outcomes) in templates(table) {
        let Ok(parsed) = Template::parse(template) else { continue };
        if step_of(template).is_some() {
            continue;
        }
        let column = &target.column;
        if parsed.columns().next().is_some() && parsed.columns().all(is_own) {
            let texts = fillings(&table.settings, &parsed, &outcomes);
            let literal = |text| Literal { field: field.clone(), text, column };
            found.extend(texts.into_iter().map(literal));
        } else if let Ok(text) = parsed.render(|_column| None) {
            found.push(Literal { field, text, column });
        }
    }
    found
}

/// Templates that put the row's key into a column of another type, which no row's key fits.
pub fn unfit_keys(table: &SourceTable) -> Vec<MappingError> {
    let mut unfit = Vec::new();
    for (field, template, target, _outcomes) in templates(table) {
        let Ok(parsed) = Template::parse(template) else { continue };
        let pieces: Vec<Piece<'_>> = parsed.pieces().collect();
        let [Piece::Column(name)] = pieces.as_slice() else { continue };
        let Some(key) = table.write_key.iter().find(|key| key.name == *name) else { continue };
        if takes(&target.column.class, &key.class) {
            continue;
        }
        let Column { name: column, type_name, .. } = &target.column;
        unfit.push(MappingError {
            table: table.settings.name.clone(),
            field,
            problem: format!("column `{column}` is {type_name}, and `{name}` is {}", key.type_name),
            expected: "a column of text, or of the key's own type".to_owned(),
            mend: Mend::Mapping,
        });
    }
    unfit
}

/// Whether a column takes the text of a key of that class. Of a type of the user's own only its
/// database knows.
fn takes(column: &TypeClass, key: &TypeClass) -> bool {
    match column {
        TypeClass::Integer | TypeClass::Uuid | TypeClass::Boolean => column == key,
        TypeClass::Decimal | TypeClass::Float => {
            matches!(key, TypeClass::Integer | TypeClass::Decimal | TypeClass::Float)
        }
        TypeClass::Date | TypeClass::Timestamp | TypeClass::TimestampTz => {
            matches!(key, TypeClass::Date | TypeClass::Timestamp | TypeClass::TimestampTz)
        }
        TypeClass::Text
        | TypeClass::Padded
        | TypeClass::Enum(_)
        | TypeClass::Bytes
        | TypeClass::Other => true,
    }
}

/// What `set` and `history` write: the field, the template, the column, and with which outcomes.
fn templates(table: &SourceTable) -> Vec<(String, &String, &Target, Vec<Outcome>)> {
    let mut found = Vec::new();
    for (part, columns) in parts(&table.settings.set) {
        for (name, template) in columns {
            let Some(target) = table.sets.get(name) else { continue };
            let outcomes = ends_written(&table.settings, part, name);
            found.push((format!("set.{part}.{name}"), template, target, outcomes));
        }
    }
    if let (Some(settings), Some(history)) = (&table.settings.history, &table.history) {
        for (name, template) in &settings.columns {
            let Some(target) = history.columns.get(name) else { continue };
            let outcomes = ends(table.settings.mode);
            found.push((format!("history.columns.{name}"), template, target, outcomes));
        }
    }
    found
}

/// The parts of `set`, by their names.
pub(super) fn parts(set: &SetSettings) -> [(&'static str, &BTreeMap<String, String>); 5] {
    let SetSettings { always, succeeded, failed, retryable, review } = set;
    [
        ("always", always),
        ("succeeded", succeeded),
        ("failed", failed),
        ("retryable", retryable),
        ("review", review),
    ]
}

/// The ends that a mode writes.
pub fn ends(mode: Mode) -> Vec<Outcome> {
    match mode {
        Mode::Full => {
            vec![Outcome::Succeeded, Outcome::Failed, Outcome::Retryable, Outcome::Review]
        }
        Mode::SucceedOnly => vec![Outcome::Succeeded, Outcome::Review],
        Mode::Observe => Vec::new(),
    }
}

/// The ends with which the mode writes a column that a part of `set` names. What a part of an
/// outcome's own writes to it stands instead of what is written always.
pub(super) fn ends_written(settings: &TableSettings, part: &str, name: &str) -> Vec<Outcome> {
    let has_own = |outcome: Outcome| {
        let own = parts(&settings.set).into_iter().find(|(part, _)| *part == outcome.as_str());
        own.is_some_and(|(_, columns)| columns.contains_key(name))
    };
    let is_in_part = |outcome: &Outcome| match part {
        "always" => !has_own(*outcome),
        part => part == outcome.as_str(),
    };
    ends(settings.mode).into_iter().filter(is_in_part).collect()
}

/// Every text that a template can become with these outcomes, as far as it is tieout's.
pub(super) fn fillings(
    settings: &TableSettings,
    template: &Template,
    outcomes: &[Outcome],
) -> BTreeSet<String> {
    let mut texts = BTreeSet::new();
    for map in &settings.map {
        for (outcome, reason) in outcomes.iter().flat_map(|it| reasons_of(*it)) {
            let Some(FilterValue(status)) = target_of(map, outcome, reason) else { continue };
            for FilterValue(before) in &map.from {
                let text = template.render(|name| match name {
                    "status" => Some(status.as_str()),
                    "status_before" => Some(before.as_str()),
                    "reason" => Some(reason.as_str()),
                    "outcome" => Some(outcome.as_str()),
                    _rows => Some(""),
                });
                texts.extend(text);
            }
        }
    }
    texts
}

/// Whether what a template names is one of a few words of tieout's or of the mapping's.
pub(super) fn is_own(name: &str) -> bool {
    matches!(name, "status" | "status_before" | "reason" | "outcome")
}

/// Reasons for which a row comes to an outcome: those that lead to it, and those that lead where a
/// rule, a setting or a person says.
fn reasons_of(outcome: Outcome) -> impl Iterator<Item = (Outcome, Reason)> {
    let of_rows = Reason::ALL.iter().copied().filter(|reason| reason.is_of_rows());
    of_rows
        .filter(move |reason| match reason.leads() {
            Leads::To(end) => end == outcome,
            Leads::ByPolicy => true,
        })
        .map(move |reason| (outcome, reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sample;

    #[test]
    fn what_is_written_as_it_stands_is_known_with_its_field() {
        let more = "set = { always = { places = \"7\", order_id = \"+1\", sent_at = \"{now}\" }, \
                    succeeded = { notes = \"{{}}\" } }\ntime = \"utc\"";
        let table = sample::table(more);
        let told: Vec<String> = literals(&table)
            .iter()
            .map(|it| format!("{} {} {}", it.field, it.text, it.column.name))
            .collect();
        assert_eq!(
            told,
            [
                "map.from sending status",
                "map.succeeded paid status",
                "map.failed failed status",
                "map.retryable retry status",
                "set.always.places 7 places",
                "set.succeeded.notes {} notes",
            ]
        );
    }

    #[test]
    fn a_key_needs_a_column_that_takes_it() {
        let unfit = |more: &str| -> Vec<String> {
            unfit_keys(&sample::table(more)).iter().map(|it| it.field.clone()).collect()
        };
        let none: [&str; 0] = [];
        assert_eq!(unfit("set = { always = { order_id = \"{id}\", notes = \"{id}\" } }"), none);
        let refused = unfit("set = { always = { refund = \"{id}\", tenant = \"{id}\" } }");
        assert_eq!(refused, ["set.always.refund"]);
    }
}
