//! Rows that an account gave no answer about, over all batches of a run: an outage is one thing,
//! and told once.

use std::collections::BTreeMap;

use crate::model::count::counted;

/// Rows without an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unanswered {
    /// Rows asked about.
    pub rows: usize,
    /// Those that wait for an answer.
    pub missing: usize,
    /// Why they have none, where that is known: how many by each word.
    pub causes: BTreeMap<&'static str, usize>,
}

impl Unanswered {
    /// Both together.
    pub fn add(&mut self, other: &Self) {
        self.rows = self.rows.saturating_add(other.rows);
        self.missing = self.missing.saturating_add(other.missing);
        for (cause, rows) in &other.causes {
            let known = self.causes.entry(cause).or_default();
            *known = known.saturating_add(*rows);
        }
    }

    /// What to say of it; `broken`: what could not be read whole, where other rows were found all
    /// the same.
    pub fn words(&self, account: &str, broken: Option<&'static str>) -> String {
        let (missing, why) = (self.missing, self.commonest_cause());
        match broken {
            Some(of) => {
                let wait = counted(missing, "row without a find waits", "rows without a find wait");
                format!("account {account}: the list of {of} could not be read whole: {wait}{why}")
            }
            None => format!(
                "account {account}: no answer for {missing} of {}{why}; {}",
                counted(self.rows, "row", "rows"),
                if missing == 1 { "it stays as it is" } else { "they stay as they are" }
            ),
        }
    }

    /// Why most of them have none, in brackets; empty where that is not known.
    fn commonest_cause(&self) -> String {
        let most = self.causes.iter().max_by_key(|(_, rows)| **rows).map(|(cause, _)| *cause);
        let mostly = if self.causes.len() > 1 { "mostly " } else { "" };
        most.map_or(String::new(), |cause| format!(" ({mostly}{})", cause.replace('_', " ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_of_one_outage_are_one_line() {
        let batch = |missing, cause| Unanswered {
            rows: 10,
            missing,
            causes: BTreeMap::from([(cause, missing)]),
        };
        let mut all = batch(10, "server_error");
        all.add(&batch(1, "timed_out"));
        let said = all.words("a", None);
        let want = "account a: no answer for 11 of 20 rows (mostly server error); they stay";
        assert!(said.starts_with(want), "{said}");
        let said = batch(1, "unreadable").words("a", Some("charges"));
        assert!(said.ends_with("read whole: 1 row without a find waits (unreadable)"), "{said}");
        let one = Unanswered { rows: 1, missing: 1, causes: BTreeMap::new() };
        assert_eq!(one.words("a", None), "account a: no answer for 1 of 1 row; it stays as it is");
    }
}
