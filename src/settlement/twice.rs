//! The same statement twice in one file: what it holds would count twice.

use std::collections::HashSet;

use chrono::NaiveDate;

use crate::model::money::Currency;
use crate::model::settlement::{Balance, Problem, Severity};

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
    /// The same by their accounts, whatever they call themselves.
    of_accounts: HashSet<(String, [Stand; 2], Sides)>,
}

impl Twice {
    /// A statement of camt or MT940 ended: known by its name, where it has one, or by its account.
    /// Of a report of the running day it is only said: that may be told again as it was.
    pub fn statement(
        &mut self,
        line: u64,
        (name, account): (Option<String>, Option<&str>),
        balances: [Option<Balance>; 2],
        sides: Sides,
        is_interim: bool,
    ) -> Option<Problem> {
        let same = name.and_then(|name| self.end(line, name, balances, sides));
        let again = self.end_of_account(line, account, balances, sides);
        let severity = if is_interim { Severity::Warning } else { Severity::Error };
        same.or(again).map(|problem| Problem { severity, ..problem })
    }

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
        Self::said(line, is_new)
    }

    /// The same of a statement that calls itself otherwise, or a duplicate: it goes from the same
    /// balance on the same day to the same balance, by entries that do not leave it as it was.
    /// None where it does not say its account, or one of its two balances or their days.
    fn end_of_account(
        &mut self,
        line: u64,
        account: Option<&str>,
        balances: [Option<Balance>; 2],
        sides: Sides,
    ) -> Option<Problem> {
        let [Some(opening), Some(closing)] = balances else { return None };
        let is_dated = opening.date.is_some() && closing.date.is_some();
        let stands = balances.map(|own| own.map(|own| (own.minor, own.currency, own.date)));
        if !is_dated || opening.minor == closing.minor || self.of_accounts.len() >= STATEMENTS {
            return None;
        }
        let is_new = self.of_accounts.insert((account?.to_owned(), stands, sides));
        Self::said(line, is_new)
    }

    fn said(line: u64, is_new: bool) -> Option<Problem> {
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

    #[test]
    fn another_name_does_not_make_it_another() {
        let euro = Currency::parse("EUR").unwrap();
        let day = NaiveDate::from_ymd_opt(2026, 11, 19);
        let stand = |minor, date| Some(Balance { minor, currency: euro, date, line: 1 });
        let mut twice = Twice::default();
        let mut end = |account: Option<&str>, balances: [Option<Balance>; 2], count: i128| {
            twice.end_of_account(1, account, balances, [(count, 500), (0, 0)]).is_some()
        };
        let one = [stand(0, day), stand(500, day)];
        assert!(!end(Some("A"), one, 1));
        assert!(end(Some("A"), one, 1), "the same");
        assert!(!end(Some("B"), one, 1) && !end(Some("A"), one, 2));
        for other in [[stand(0, None), stand(500, day)], [stand(5, day); 2], [None, stand(5, day)]]
        {
            assert!(!end(Some("A"), other, 1) && !end(Some("A"), other, 1), "{other:?}");
        }
        assert!(!end(None, one, 1) && !end(None, one, 1), "whose it is is not said");
    }
}
