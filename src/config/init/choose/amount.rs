//! Which column has the amount: what is charged, and no part of it. By another sum a payment that
//! lost its tag is not known again, and its row would be charged twice.

use crate::config::document::quoted;
use crate::config::init::OPEN;
use crate::config::init::choose::near::asked_amount;
use crate::config::init::choose::{Choosing, NAMED};
use crate::config::init::words::{self, pick};
use crate::store::source_table::{Column, TypeClass};

impl<'a> Choosing<'a> {
    /// The column of the amount: the one that was named, else the likeliest.
    pub(super) fn amount_column(&self) -> Option<&'a Column> {
        match &self.answers.amount {
            Some(name) => self.column(name),
            None => self.amounts().first().copied(),
        }
    }

    /// Columns that may have it, the likeliest first: no part of it, and none that is always 0.
    fn amounts(&self) -> Vec<&'a Column> {
        let of = self.of;
        let mut found = words::amounts(of);
        found.retain(|column| !words::is_part(of, column) && !self.has_no_sum(column));
        found
    }

    /// Whether a column is 0 or NULL in all looked-at rows, where some were looked at.
    pub(super) fn has_no_sum(&self, column: &Column) -> bool {
        let Some(values) = self.seen.examples.get(&column.name) else { return false };
        let is_any = self.seen.examples.values().any(|values| !values.is_empty());
        is_any && values.iter().all(|value| is_zero(value))
    }

    /// Tells of columns besides the one that was taken that may be what is charged.
    pub(super) fn other_amounts(&mut self, taken: &Column) {
        let is_other = |column: &&Column| {
            let is_number =
                matches!(column.class, TypeClass::Integer | TypeClass::Decimal | TypeClass::Float);
            is_number && column.name != taken.name
        };
        let others = names(self.amounts().into_iter().filter(is_other));
        if !others.is_empty() {
            self.untold(format!(
                "amount: `{}` is taken for what is charged (or is it {others}?)",
                taken.name
            ));
        }
    }

    /// No column is taken for the amount: those that may be it by a word of their names, may be a
    /// part of it, or hold nothing.
    pub(super) fn amount_untold(&mut self) {
        let (of, found) = (self.of, words::amounts(self.of));
        let near = self.near_amounts();
        let is_found = |column: &Column| found.iter().any(|known| known.name == column.name);
        let is_likely = near.iter().any(|column| !is_found(column) && !words::is_part(of, column));
        let (unused, parts): (Vec<&Column>, Vec<&Column>) =
            found.into_iter().partition(|column| self.has_no_sum(column));
        let (unused, parts) = (names(unused.into_iter()), names(parts.into_iter()));
        let why = if !parts.is_empty() && !is_likely {
            format!("{parts} may be a part of it: is it what is charged?")
        } else if !unused.is_empty() && near.is_empty() {
            format!(
                "{unused} is 0 or NULL in all looked-at rows: name the column of what is charged"
            )
        } else {
            format!("no column looks like an amount{}", asked_amount(&near))
        };
        let value = format!("{{ column = {}, unit = \"minor\" }}", quoted(OPEN));
        self.open("amount", value, &why);
    }
}

impl Choosing<'_> {
    /// An amount beside a rate of exchange may be in another currency than the one beside it.
    pub(super) fn exchange_rate(&mut self, amount: &Column) {
        let rates = words::exchange_rates(self.of).into_iter();
        let rates = names(rates.filter(|column| column.name != amount.name));
        if rates.is_empty() {
            return;
        }
        let currency = match &self.answers.currency {
            Some(word) => self.column(word),
            None => pick(self.of, &words::CURRENCY, words::is_word),
        };
        let said = match currency {
            Some(currency) => format!("`{}` says", currency.name),
            None => "is named here".to_owned(),
        };
        self.untold(format!(
            "currency: {rates} may be a rate of exchange, so that `{0}` may be in another currency \
             than {said}: by the wrong one each paid row goes to a person; where `{0}` is what is \
             charged, and in your own currency, name that for the table (--currency EUR), and \
             where `{0}` times the rate is charged, read a view that has it as a column",
            amount.name
        ));
    }
}

/// `` `a` or `b` ``.
pub(super) fn names<'c>(columns: impl Iterator<Item = &'c Column>) -> String {
    let names: Vec<String> =
        columns.take(NAMED).map(|column| format!("`{}`", column.name)).collect();
    names.join(" or ")
}

/// Whether a value is a number, and 0: `0`, `0.00`.
fn is_zero(value: &str) -> bool {
    value.contains('0') && !value.contains(|c: char| c.is_alphabetic() || matches!(c, '1'..='9'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_number_that_is_0_is_zero() {
        for value in ["0", "0.00", "-0", " 0 ", "0,00"] {
            assert!(is_zero(value), "{value}");
        }
        for value in ["", "10", "0.01", "NaN", "x0", "-"] {
            assert!(!is_zero(value), "{value}");
        }
    }
}
