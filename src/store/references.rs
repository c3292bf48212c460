//! Can the columns that a PSP's id is written to hold it? What the catalogue alone cannot say:
//! ids of files may be short numbers, those of an API are of one form.

use std::collections::BTreeMap;

use crate::store::error::{MappingError, Mend};
use crate::store::source_table::{SourceTable, Target, TypeClass};

/// The template of a PSP's id.
const REFERENCE: &str = "{psp_reference}";

/// Columns that can hold none of the ids of one of the table's accounts. `chars` says how many
/// characters the ids of an account have at least, where they are words and that is known.
pub fn unwritable(table: &SourceTable, chars: impl Fn(&str) -> Option<usize>) -> Vec<MappingError> {
    let known = table.settings.accounts.values().filter_map(|name| Some((name, chars(name)?)));
    let Some((account, least)) = known.max_by_key(|(_, least)| *least) else {
        return Vec::new();
    };
    let unfit = targets(table).into_iter().filter(|(_, target)| !holds(target, least));
    unfit
        .map(|(field, target)| {
            let column = &target.column;
            MappingError {
                table: table.settings.name.clone(),
                field,
                problem: format!(
                    "column `{}` ({}) cannot hold an id of account {account}",
                    column.name, column.type_name
                ),
                expected: format!("a column of text, of at least {least} characters"),
                mend: Mend::Mapping,
            }
        })
        .collect()
}

/// The columns that a PSP's id is written to, by the field of the mapping that says so.
fn targets(table: &SourceTable) -> Vec<(String, &Target)> {
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
        for name in references(columns) {
            let target = table.sets.get(name);
            found.extend(target.map(|target| (format!("set.{part}.{name}"), target)));
        }
    }
    if let (Some(settings), Some(history)) = (&table.settings.history, &table.history) {
        for name in references(&settings.columns) {
            let target = history.columns.get(name);
            found.extend(target.map(|target| (format!("history.columns.{name}"), target)));
        }
    }
    found
}

fn references(columns: &BTreeMap<String, String>) -> impl Iterator<Item = &String> {
    columns.iter().filter(|(_, template)| *template == REFERENCE).map(|(name, _)| name)
}

fn holds(target: &Target, least: usize) -> bool {
    match target.column.class {
        TypeClass::Text | TypeClass::Padded => {
            target.column.max_chars.is_none_or(|most| most >= least)
        }
        TypeClass::Integer
        | TypeClass::Decimal
        | TypeClass::Float
        | TypeClass::Uuid
        | TypeClass::Boolean
        | TypeClass::Enum(_)
        | TypeClass::TimestampTz
        | TypeClass::Timestamp
        | TypeClass::Date
        | TypeClass::Bytes
        | TypeClass::Other => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sample;

    fn unfit(column: &str, least: Option<usize>) -> Vec<String> {
        let more = format!("set = {{ succeeded = {{ {column} = \"{{psp_reference}}\" }} }}");
        let mut table = sample::table(&more);
        if let Some(target) = table.sets.get_mut("tenant") {
            target.column.max_chars = Some(20);
        }
        unwritable(&table, |_account| least).iter().map(|e| e.field.clone()).collect()
    }

    #[test]
    fn an_id_needs_room() {
        assert_eq!(unfit("psp_id", Some(27)), Vec::<String>::new());
        assert_eq!(unfit("tenant", Some(27)), ["set.succeeded.tenant"]);
        assert_eq!(unfit("tenant", Some(20)), Vec::<String>::new());
        assert_eq!(unfit("order_id", Some(27)), ["set.succeeded.order_id"]);
        // Of files nothing is known.
        assert_eq!(unfit("order_id", None), Vec::<String>::new());
        assert_eq!(unfit("tenant", None), Vec::<String>::new());
    }
}
