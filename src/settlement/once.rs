//! Rows of a report that stand in it twice, told by the id that each has of its own; words of its
//! rows that nobody knows, each told once; and rows that are none of it.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
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

/// So many unknown words are told.
const WORDS: usize = 20;

/// Words for what a row is that are not known here. New ones come, and the sign of the row says
/// which way its money went: it stays booked, and the word is told for whoever looks.
#[derive(Debug, Default)]
pub struct Unknown {
    told: BTreeSet<String>,
}

impl Unknown {
    /// Notes the word of a row; says it where it is the first of it.
    pub fn note(&mut self, line: u64, field: &str, word: &str) -> Option<Problem> {
        if self.told.len() >= WORDS || self.told.contains(word) {
            return None;
        }
        self.told.insert(word.to_owned());
        let expected = "a word that is known here; the row is booked by its sign";
        Some(Problem::warning(line, field, expected, word))
    }
}

/// That a row lacks what each row of its report has: it says what others come to, or lost fields.
/// `needed`: what each column of these is called, and what the row says there.
pub fn is_no_row(line: u64, needed: &[(&str, &str)]) -> Option<Problem> {
    let (field, _) = needed.iter().find(|(_, said)| said.is_empty())?;
    let expected = "what each row of this report has";
    Some(Problem::error(line, *field, expected, "none: is it a sum?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_word_is_told_once() {
        let mut unknown = Unknown::default();
        let found = unknown.note(2, "type", "foo").unwrap();
        assert_eq!((found.line, found.found.as_str()), (2, "foo"));
        assert_eq!(unknown.note(3, "type", "foo"), None);
        assert!(unknown.note(4, "type", "bar").is_some());
    }

    #[test]
    fn a_row_that_lacks_what_each_has_is_told_by_its_column() {
        assert_eq!(is_no_row(2, &[("id", "t1"), ("day", "2026-10-01")]), None);
        let found = is_no_row(3, &[("id", "Total"), ("day", "")]).unwrap();
        assert_eq!((found.line, found.field.as_str()), (3, "day"));
    }

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
