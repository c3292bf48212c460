//! Which columns may tell PSP accounts apart, by their names and values.
//!
//! A row of another PSP that is taken for one of Stripe's is not found there, and what is never
//! found is charged again in the end: such a column is never passed over in silence.

use crate::store::source_table::{Column, TypeClass};

/// More values than this are hardly accounts.
pub const ACCOUNTS_MAX: usize = 20;

/// What such a column may be of, whatever its type: a word, or a key of another table. The
/// likeliest first.
const PROVIDERS: [&str; 14] = [
    "payment_provider",
    "payment_gateway",
    "payment_processor",
    "provider",
    "gateway",
    "psp",
    "processor",
    "acquirer",
    "merchant_account",
    "psp_account",
    "stripe_account",
    "provider_account",
    "gateway_account",
    "payment_method",
];

/// What stands behind such a word.
const OF_PROVIDER: [&str; 7] = ["id", "uuid", "name", "code", "type", "key", "slug"];

/// What an id begins with that Stripe made: of a payment, a saved card, a customer.
const IDS: [&str; 11] =
    ["pi_", "ch_", "re_", "py_", "pm_", "card_", "src_", "ba_", "cus_", "seti_", "mandate_"];

/// A name as words: `CreatedAt`, `Created At` and `created-at` are `created_at`.
pub fn plain(name: &str) -> String {
    let mut words = String::new();
    let mut before: Option<char> = None;
    for c in name.chars() {
        let starts = c.is_uppercase() && before.is_some_and(|b| b.is_lowercase() || b.is_numeric());
        if starts {
            words.push('_');
        }
        match c.is_alphanumeric() {
            true => words.extend(c.to_lowercase()),
            false if !words.is_empty() && !words.ends_with('_') => words.push('_'),
            false => {}
        }
        before = Some(c);
    }
    words.trim_end_matches('_').to_owned()
}

/// Columns that may tell accounts or PSPs apart, the likeliest first.
pub fn tell_accounts(columns: &[Column]) -> Vec<&Column> {
    let is_apt = |column: &&Column| {
        matches!(
            column.class,
            TypeClass::Text
                | TypeClass::Padded
                | TypeClass::Enum(_)
                | TypeClass::Integer
                | TypeClass::Uuid
        )
    };
    let is_of = |column: &Column, word: &str| {
        let name = plain(&column.name);
        let bare = name.rsplit_once('_').filter(|(_, last)| OF_PROVIDER.contains(last));
        let bare = bare.map_or(name.as_str(), |(bare, _)| bare);
        bare == word || bare.strip_suffix(word).is_some_and(|before| before.ends_with('_'))
    };
    let mut found: Vec<&Column> = Vec::new();
    for word in PROVIDERS {
        for column in columns.iter().filter(is_apt).filter(|column| is_of(column, word)) {
            if !found.iter().any(|known| known.name == column.name) {
                found.push(column);
            }
        }
    }
    found
}

/// Whether all of these are ids that Stripe made: they name payments and cards, no accounts.
pub fn are_ids_at_stripe(values: &[String]) -> bool {
    let is_id = |value: &String| IDS.iter().any(|prefix| value.starts_with(prefix));
    values.iter().all(is_id)
}
