//! The same statement twice in one file: what it holds would count twice.

use std::collections::HashSet;

use chrono::NaiveDate;

use crate::model::money::Currency;
use crate::model::settlement::{Balance, Problem};

/// So many statements of a file are remembered.
const STATEMENTS: usize = 10_000;

/// A balance without the line that it stands on.
type Stand = Option<(i64, Currency, Option<NaiveDate>)>;

/// Credits and debits: how many, and what they come to.
pub type Sides = [(i128, i128); 2];

/// The statements that ended.
#[derive(Debug, Default)]
pub struct Twice {
    known: HashSet<(String, [Stand; 2], Sides)>,
}

impl Twice {
    /// A statement that begins on `line` ended: what it calls itself (account, id, number, period),
    /// its balances and what its entries come to. A problem where one before it was the same in
    /// all of that. Pages and later statements have other balances; one without entries counts
    /// nothing.
    pub fn end(
        &mut self,
        line: u64,
        name: String,
        balances: [Option<Balance>; 2],
        sides: Sides,
    ) -> Option<Problem> {
        let is_empty = sides.iter().all(|(count, _)| *count == 0);
        if is_empty || self.known.len() >= STATEMENTS {
            return None;
        }
        let stands = balances.map(|own| own.map(|own| (own.minor, own.currency, own.date)));
        let is_new = self.known.insert((name, stands, sides));
        let expected = "each statement once";
        let found = "one that is in this file already: its entries would count twice";
        (!is_new).then(|| Problem::error(line, "statement", expected, found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_said_and_what_differs_in_anything_is_another() {
        let euro = Currency::parse("EUR").unwrap();
        let stand = |minor, line| Some(Balance { minor, currency: euro, date: None, line });
        let mut twice = Twice::default();
        let mut end = |name: &str, opening: i64, sides: Sides| {
            let line = u64::try_from(opening).unwrap();
            let balances = [stand(opening, line), stand(500, 9)];
            twice.end(line, name.to_owned(), balances, sides).is_some()
        };
        let one = [(1, 500), (0, 0)];
        assert!(!end("A", 0, one));
        assert!(end("A", 0, one), "the same");
        assert!(!end("B", 0, one) && !end("A", 7, one) && !end("A", 0, [(2, 500), (0, 0)]));
        let none = [(0, 0), (0, 0)];
        assert!(!end("A", 0, none) && !end("A", 0, none), "nothing counts twice");
    }
}
