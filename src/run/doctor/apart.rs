//! Whether the conditions of two mappings of one table ever let the same row through.
//!
//! Pure: whatever the rows are today, the next one may meet both.

use crate::store::mapping::{FilterSettings, FilterValue, NullTest};

/// Whether no row can meet all conditions of both: one of each is over the same column, and they
/// have no value in common.
pub(super) fn exclude_each_other(one: &[FilterSettings], other: &[FilterSettings]) -> bool {
    let excludes = |a: &FilterSettings, b: &FilterSettings| a.column == b.column && differ(a, b);
    one.iter().any(|a| other.iter().any(|b| excludes(a, b)))
}

/// What passes a condition.
struct Passing<'f> {
    null: bool,
    values: Values<'f>,
}

enum Values<'f> {
    Only(&'f [FilterValue]),
    AllBut(&'f [FilterValue]),
}

impl<'f> Passing<'f> {
    fn of(filter: &'f FilterSettings) -> Self {
        let (null, values) = match (filter.is, &filter.one_of, &filter.not_in) {
            (Some(NullTest::Null), ..) => (true, Values::Only(&[])),
            (Some(NullTest::NotNull), ..) => (false, Values::AllBut(&[])),
            (None, Some(values), _) => (false, Values::Only(values)),
            (None, None, Some(values)) => (true, Values::AllBut(values)),
            // No condition; the mapping is refused for it.
            (None, None, None) => (true, Values::AllBut(&[])),
        };
        Self { null, values }
    }
}

fn differ(one: &FilterSettings, other: &FilterSettings) -> bool {
    let (one, other) = (Passing::of(one), Passing::of(other));
    if one.null && other.null {
        return false;
    }
    match (one.values, other.values) {
        (Values::Only(one), Values::Only(other)) => !one.iter().any(|value| other.contains(value)),
        (Values::Only(only), Values::AllBut(but)) | (Values::AllBut(but), Values::Only(only)) => {
            only.iter().all(|value| but.contains(value))
        }
        (Values::AllBut(_), Values::AllBut(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filters(text: &str) -> Vec<FilterSettings> {
        #[derive(serde::Deserialize)]
        struct File {
            filters: Vec<FilterSettings>,
        }
        toml::from_str::<File>(&format!("filters = [{text}]")).unwrap().filters
    }

    #[test]
    fn mappings_are_told_apart_by_values_of_one_column() {
        for (one, other, want) in [
            ("{ column = 'k', in = ['a'] }", "{ column = 'k', in = ['b', 'c'] }", true),
            ("{ column = 'k', in = ['a', 'b'] }", "{ column = 'k', in = ['b'] }", false),
            ("{ column = 'k', in = ['eur'] }", "{ column = 'k', in = ['EUR'] }", true),
            ("{ column = 'k', in = ['a'] }", "{ column = 'j', in = ['b'] }", false),
            ("{ column = 'k', in = ['a'] }", "{ column = 'k', not_in = ['a', 'b'] }", true),
            ("{ column = 'k', not_in = ['a'] }", "{ column = 'k', in = ['a', 'b'] }", false),
            ("{ column = 'k', not_in = ['a'] }", "{ column = 'k', not_in = ['b'] }", false),
            ("{ column = 'k', is = 'null' }", "{ column = 'k', is = 'not_null' }", true),
            ("{ column = 'k', is = 'null' }", "{ column = 'k', in = ['a'] }", true),
            ("{ column = 'k', is = 'null' }", "{ column = 'k', not_in = ['a'] }", false),
            ("{ column = 'k', is = 'not_null' }", "{ column = 'k', in = ['a'] }", false),
            ("{ column = 'k', in = [true] }", "{ column = 'k', in = [false] }", true),
            (
                "{ column = 'j', in = [1] }, { column = 'k', in = ['a'] }",
                "{ column = 'k', in = ['b'] }",
                true,
            ),
            ("{ column = 'k', in = ['a'] }", "", false),
        ] {
            let (a, b) = (filters(one), filters(other));
            assert_eq!(exclude_each_other(&a, &b), want, "{one} / {other}");
            assert_eq!(exclude_each_other(&b, &a), want, "{other} / {one}");
        }
    }
}
