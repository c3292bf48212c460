//! Which column has the PSP's own ids, and of which of its objects: Stripe has ids for refunds,
//! sessions and customers as well, and a charge's is another than its payment's.

use crate::config::init::choose::Choosing;
use crate::config::init::words;
use crate::store::source_table::Column;
use crate::store::tellers::plain;

/// What ids begin with whose objects are no payments, but stand beside one.
const NO_PAYMENTS: [&str; 7] = ["cs_", "cus_", "pm_", "seti_", "evt_", "tok_", "dp_"];

/// What ids of charges begin with.
const CHARGES: [&str; 2] = ["ch_", "py_"];

/// So many values of a column show what it has. Fewer may be what somebody tried by hand.
const ENOUGH: usize = 3;

/// What stands inside of a secret with which an application opens a payment; before it, its id.
const SECRET: &str = "_secret";

impl<'a> Choosing<'a> {
    /// The column that has ids of payments, by its values.
    pub(super) fn shown_reference(&self) -> Option<&'a Column> {
        let of = self.of;
        let is_shown = |column: &&'a Column| {
            words::is_text(&column.class)
                && !words::is_of_no_payment(of, column)
                && !self.ids(column).is_empty()
        };
        let shown = of.relation.columns.iter().filter(is_shown);
        shown.min_by_key(|column| self.rank(column))
    }

    /// The column that may have them by its name, where no value says otherwise: so many values
    /// none of which is an id of a payment do.
    pub(super) fn named_reference(&self) -> Option<&'a Column> {
        let of = self.of;
        let is_else = |value: &&String| {
            NO_PAYMENTS.iter().any(|prefix| value.starts_with(prefix)) || value.contains(SECRET)
        };
        let found = words::picks(of, &words::REFERENCE, words::is_text);
        let mut found = found.into_iter().filter(|column| !words::is_of_no_payment(of, column));
        found.find(|column| {
            let filled = self.filled(column);
            !filled.iter().any(is_else) && filled.len() < ENOUGH
        })
    }

    /// The less, the likelier: the payment's own id goes before that of a charge, which is one of
    /// its tries.
    fn rank(&self, column: &Column) -> u8 {
        let ids = self.ids(column);
        let has = |prefix: &str| ids.iter().any(|id| id.starts_with(prefix));
        let own = if self.own_kind() == Some("refund") { "re_" } else { "pi_" };
        match () {
            () if has(own) => 0,
            () if plain(&column.name).contains("payment_intent") => 1,
            () if CHARGES.into_iter().any(has) => 2,
            () => 3,
        }
    }

    /// The looked-at ids of Stripe's in a column.
    fn ids(&self, column: &Column) -> Vec<&'a String> {
        let mut ids = self.filled(column);
        ids.retain(|value| is_stripe_id(value));
        ids
    }

    /// Whether a column has ids of charges, by its values, or else by its name.
    pub(super) fn has_charges(&self, column: &Column) -> bool {
        let is_charge = |id: &&String| CHARGES.iter().any(|prefix| id.starts_with(prefix));
        match self.ids(column).as_slice() {
            [] => words::says_charge(&column.name),
            ids => ids.iter().all(is_charge),
        }
    }
}

/// Whether a text is an id of an object of Stripe's.
fn is_stripe_id(value: &str) -> bool {
    let is_id = ["pi_", "ch_", "re_", "py_"].iter().any(|prefix| {
        value.strip_prefix(prefix).is_some_and(|id| {
            !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        })
    });
    is_id && !value.contains(SECRET)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_payments_are_told_from_secrets_and_other_ids() {
        for value in ["pi_3N", "ch_1", "re_1", "py_1"] {
            assert!(is_stripe_id(value), "{value}");
        }
        for value in ["", "pi_", "pi_3N_secret_x", "cs_test_1", "pm_1", "pi 1"] {
            assert!(!is_stripe_id(value), "{value}");
        }
    }
}
