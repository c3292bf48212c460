//! Rows of a report that stand in it twice, told by the id that each has of its own.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::model::settlement::Problem;

/// Ids of more rows are not held in memory.
const IDS: usize = 1_000_000;

/// The ids that came, each with its line. Of an id its hash is kept.
#[derive(Debug, Default)]
pub struct Once {
    lines: HashMap<u64, u64>,
    is_over: bool,
}

impl Once {
    /// Notes an id, with what a row may share it by; says what is wrong where it came before.
    pub fn note(&mut self, line: u64, field: &str, id: &str, more: &[&str]) -> Option<Problem> {
        if id.is_empty() {
            return None;
        }
        if self.lines.len() >= IDS {
            let is_first = !std::mem::replace(&mut self.is_over, true);
            let expected = format!("at most {IDS} ids, to tell a row that stands twice");
            return is_first.then(|| Problem::warning(line, field, expected, "more"));
        }
        let mut hasher = DefaultHasher::new();
        (id, more).hash(&mut hasher);
        match self.lines.entry(hasher.finish()) {
            Entry::Vacant(free) => {
                free.insert(line);
                None
            }
            Entry::Occupied(taken) => {
                let found = format!("{id} again, as on line {}", taken.get());
                Some(Problem::error(line, field, "each id once", found))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_stands_once() {
        let mut once = Once::default();
        assert_eq!(once.note(2, "id", "t1", &["sale"]), None);
        assert_eq!(once.note(3, "id", "t1", &["credit"]), None, "another row of it");
        assert_eq!(once.note(4, "id", "", &[]), None);
        assert_eq!(once.note(5, "id", "", &[]), None, "no id is not one");
        let problem = once.note(6, "id", "t1", &["sale"]).unwrap();
        assert_eq!((problem.line, problem.field.as_str()), (6, "id"));
        assert_eq!(problem.found, "t1 again, as on line 2");
    }
}
