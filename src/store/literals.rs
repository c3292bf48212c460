//! What a mapping writes of its own words: status values, literals of `set` and `history`. The
//! catalogue alone does not say whether a type of the user's own takes them: the database is asked.

use std::collections::BTreeMap;

use crate::store::error::{MappingError, Mend};
use crate::store::source_table::{Column, SourceTable, Target, TypeClass};
use crate::store::template::{Piece, Template};

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

/// Every literal of a mapping, in the order of its fields.
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
    for (field, template, target) in templates(table) {
        let Ok(parsed) = Template::parse(template) else { continue };
        let is_step = template.strip_prefix('+').is_some_and(|step| step.parse::<i64>().is_ok());
        if is_step {
            continue;
        }
        if let Ok(text) = parsed.render(|_column| None) {
            found.push(Literal { field, text, column: &target.column });
        }
    }
    found
}

/// Templates that put the row's key into a column of another type, which no row's key fits.
pub fn unfit_keys(table: &SourceTable) -> Vec<MappingError> {
    let mut unfit = Vec::new();
    for (field, template, target) in templates(table) {
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

/// What `set` and `history` write: the field, the template, the column.
fn templates(table: &SourceTable) -> Vec<(String, &String, &Target)> {
    let set = &table.settings.set;
    let parts: [(&str, &BTreeMap<String, String>); 5] = [
        ("always", &set.always),
        ("succeeded", &set.succeeded),
        ("failed", &set.failed),
        ("retryable", &set.retryable),
        ("review", &set.review),
    ];
    let mut found = Vec::new();
    for (part, columns) in parts {
        for (name, template) in columns {
            let target = table.sets.get(name);
            found.extend(target.map(|it| (format!("set.{part}.{name}"), template, it)));
        }
    }
    if let (Some(settings), Some(history)) = (&table.settings.history, &table.history) {
        for (name, template) in &settings.columns {
            let target = history.columns.get(name);
            found.extend(target.map(|it| (format!("history.columns.{name}"), template, it)));
        }
    }
    found
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
