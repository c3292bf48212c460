//! Which columns may tell PSP accounts apart, or kinds of movement, by their names and values; and
//! which values of a status may say that a call is on its way.
//!
//! A row of another PSP that is taken for one of Stripe's is not found there, and neither is a
//! refund among charges. What is never found is charged again, or refunded again, in the end: such
//! a column is never passed over in silence.

use crate::store::source_table::{Column, TypeClass};

/// More values than this are hardly accounts.
pub const ACCOUNTS_MAX: usize = 20;

/// What such a column may be of, whatever its type: a word, or a key of another table. The
/// likeliest first.
const PROVIDERS: [&str; 20] = [
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
    "merchant_connector",
    "connector",
    "plugin",
    "service",
    "channel",
    "tenant",
];

/// What stands behind such a word.
const OF_PROVIDER: [&str; 8] = ["id", "uuid", "name", "code", "type", "key", "slug", "record"];

/// Names of PSPs as they stand in values, whatever the column is called. Those that are common
/// words too (checkout, cash) are none.
const PSPS: [&str; 20] = [
    "stripe",
    "adyen",
    "paypal",
    "braintree",
    "mollie",
    "worldpay",
    "gocardless",
    "square",
    "klarna",
    "razorpay",
    "checkoutcom",
    "authorizenet",
    "cybersource",
    "paystack",
    "flutterwave",
    "mercadopago",
    "xendit",
    "dlocal",
    "nuvei",
    "bluesnap",
];

/// Columns that are looked at for what their values say; a wider table has such a one among the
/// first.
const CODED_MAX: usize = 40;

/// A longer text is no word of a list.
const CODE_CHARS: usize = 64;

/// Parts of names of columns that hold sentences, people, secrets, or how a row stands.
const UNCODED: [&str; 26] = [
    "by",
    "error",
    "message",
    "reason",
    "note",
    "notes",
    "memo",
    "comment",
    "description",
    "title",
    "secret",
    "token",
    "email",
    "url",
    "ip",
    "agent",
    "payload",
    "response",
    "data",
    "metadata",
    "event",
    "currency",
    "status",
    "state",
    "country",
    "locale",
];

/// What a column that tells kinds of movement ends with.
const OF_KIND: [&str; 9] = [
    "type",
    "kind",
    "operation",
    "direction",
    "action",
    "category",
    "movement",
    "entry",
    "purpose",
];

/// Where these are in the name, the type is one of cards or of ways to pay.
const OF_CARDS: [&str; 5] = ["card", "funding", "method", "source", "instrument"];

const REFUNDS: [&str; 2] = ["refund", "refunds"];
const PAYOUTS: [&str; 4] = ["payout", "payouts", "withdrawal", "disbursement"];
const NO_KIND: [&str; 6] = ["void", "voids", "chargeback", "chargebacks", "dispute", "disputes"];
const CREDITS: [&str; 3] = ["credit", "credits", "credit_note"];
const TRANSFERS: [&str; 2] = ["transfer", "transfers"];
/// Money that goes out: back to a customer, or to a bank account.
const OUT: [&str; 3] = ["outward", "outbound", "outgoing"];
const IN: [&str; 3] = ["inward", "inbound", "incoming"];
const CHARGES: [&str; 9] =
    ["charge", "charges", "payment", "payments", "purchase", "sale", "donation", "topup", "top_up"];

/// What an id begins with that Stripe made: of a payment, a saved card, a customer.
const IDS: [&str; 11] =
    ["pi_", "ch_", "re_", "py_", "pm_", "card_", "src_", "ba_", "cus_", "seti_", "mandate_"];

/// Values of a status that say: the call is on its way.
pub const PROCESSING: [&str; 13] = [
    "processing",
    "in_flight",
    "inflight",
    "in_progress",
    "sending",
    "sent",
    "submitted",
    "submitting",
    "capturing",
    "charging",
    "executing",
    "authorizing",
    "requested",
];

/// Values that may say the same, or that nobody has paid yet.
pub const PENDING: [&str; 4] = ["pending", "initiated", "started", "open"];

/// Values of a status that say: the payment was made. The likeliest first.
pub const SUCCEEDED: [&str; 11] = [
    "succeeded",
    "success",
    "successful",
    "paid",
    "captured",
    "completed",
    "complete",
    "settled",
    "done",
    "charged",
    "confirmed",
];

/// Whether a value of a status says by itself that the payment was made.
pub fn says_success(value: &str) -> bool {
    SUCCEEDED.contains(&plain(value).as_str())
}

/// Whether a value of a status may say that a call is on its way, by a part of it.
pub fn may_be_on_its_way(value: &str) -> bool {
    let value = plain(value);
    let parts = ["pending", "processing", "submit", "authorizing", "authorising", "progress"];
    let is_like = parts.iter().any(|part| value.contains(part));
    let last = value.rsplit('_').next().unwrap_or_default();
    is_like
        || last == "initiated"
        || PENDING.contains(&value.as_str())
        || PROCESSING.contains(&value.as_str())
}

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
    let mut found: Vec<&Column> = Vec::new();
    for word in PROVIDERS {
        for column in columns.iter().filter(is_apt).filter(|column| is_of(&column.name, word)) {
            if !found.iter().any(|known| known.name == column.name) {
                found.push(column);
            }
        }
    }
    found
}

/// Whether a column of this name may tell accounts apart, whatever its values are.
pub fn is_teller(name: &str) -> bool {
    PROVIDERS.iter().any(|word| is_of(name, word))
}

/// Whether a name is this word, or ends with it: `tenant_record_id` is of `tenant`.
fn is_of(name: &str, word: &str) -> bool {
    let name = plain(name);
    let mut bare = name.as_str();
    while let Some((before, last)) = bare.rsplit_once('_')
        && OF_PROVIDER.contains(&last)
    {
        bare = before;
    }
    bare == word || bare.strip_suffix(word).is_some_and(|before| before.ends_with('_'))
}

/// Columns of words, which may be words of a short list.
pub fn coded(columns: &[Column]) -> Vec<&Column> {
    let is_coded = |column: &&Column| {
        let is_word =
            matches!(column.class, TypeClass::Text | TypeClass::Padded | TypeClass::Enum(_));
        is_word && !plain(&column.name).split('_').any(|part| UNCODED.contains(&part))
    };
    columns.iter().filter(is_coded).take(CODED_MAX).collect()
}

/// Whether these may be all the words of a short list.
pub fn are_codes(values: &[String]) -> bool {
    let is_short = |value: &String| value.chars().count() <= CODE_CHARS;
    (1..=ACCOUNTS_MAX).contains(&values.len()) && values.iter().all(is_short)
}

/// Whether a value names a PSP.
pub fn names_psp(value: &str) -> bool {
    let value = plain(value).replace('_', "");
    PSPS.iter().any(|psp| value.contains(psp))
}

/// Whether one of these words names a PSP, so that they tell accounts apart.
pub fn tells_psps(values: &[String]) -> bool {
    are_codes(values) && values.iter().any(|value| names_psp(value))
}

/// What a value says of the kind of its row's movement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Movement {
    /// Money that came in.
    Charge,
    /// Money that went back.
    Refund,
    /// Money that went out.
    Payout,
    /// No movement that is looked up: a void, a chargeback.
    Other,
    /// It is none of a charge, and which it is only a person can say: a credit.
    Unsure,
}

impl Movement {
    /// As `kind` of a mapping names it.
    pub fn word(self) -> Option<&'static str> {
        match self {
            Self::Charge => Some("charge"),
            Self::Refund => Some("refund"),
            Self::Payout => Some("payout"),
            Self::Other | Self::Unsure => None,
        }
    }
}

/// What a value says of the kind of movement, by its words; ids, which have digits, say nothing.
pub fn movement(value: &str) -> Option<Movement> {
    let value = plain(value);
    if value.chars().any(char::is_numeric) {
        return None;
    }
    let has = |words: &[&str]| value.split('_').any(|part| words.contains(&part));
    let last = value.rsplit('_').next().unwrap_or_default();
    if has(&NO_KIND) || value.contains("charge_back") {
        Some(Movement::Other)
    } else if has(&REFUNDS) {
        Some(Movement::Refund)
    } else if has(&PAYOUTS) || value.contains("pay_out") {
        Some(Movement::Payout)
    } else if CREDITS.contains(&value.as_str()) || is_transfer(&value) || has(&OUT) {
        Some(Movement::Unsure)
    } else if has(&IN) || CHARGES.contains(&value.as_str()) || CHARGES.contains(&last) {
        Some(Movement::Charge)
    } else {
        None
    }
}

fn is_transfer(value: &str) -> bool {
    TRANSFERS.contains(&value)
}

/// Whether a column of this name, with these values, tells rows of another kind than `own` (as
/// [`Movement::word`] spells it). `credit` says so under a name of kinds alone: cards have it too.
pub fn tells_kinds(name: &str, values: &[String], own: &str) -> bool {
    let said = |of: &[&String]| -> Vec<Movement> {
        of.iter().filter_map(|value| movement(value)).collect()
    };
    // Among ways to pay a transfer is one of them.
    let others: Vec<&String> = values.iter().filter(|value| !is_transfer(&plain(value))).collect();
    let is_way = said(&others).is_empty();
    let all: Vec<&String> = values.iter().collect();
    let said = if is_way { Vec::new() } else { said(&all) };
    let tells = said.iter().any(|movement| match movement {
        Movement::Charge => false,
        Movement::Unsure => is_of_kinds(name),
        Movement::Refund | Movement::Payout | Movement::Other => true,
    });
    tells && are_codes(values) && said.iter().any(|movement| movement.word() != Some(own))
}

/// Whether a column's name says that it tells kinds.
pub fn is_of_kinds(name: &str) -> bool {
    let name = plain(name);
    let last = name.rsplit('_').next().unwrap_or_default();
    OF_KIND.contains(&last) && !name.split('_').any(|part| OF_CARDS.contains(&part))
}

/// Whether all of these are ids that Stripe made: they name payments and cards, no accounts.
pub fn are_ids_at_stripe(values: &[String]) -> bool {
    let is_id = |value: &String| IDS.iter().any(|prefix| value.starts_with(prefix));
    values.iter().all(is_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_may_tell_accounts_are_known_with_what_stands_behind_them() {
        for name in [
            "connector",
            "merchant_connector_id",
            "PluginName",
            "tenant_record_id",
            "sales_channel",
            "payment_service",
            "gatewayType",
            "provider_code",
        ] {
            assert!(is_teller(name), "{name}");
        }
        for name in ["connector_metadata", "tenants_seen", "id", "record_id", "amount"] {
            assert!(!is_teller(name), "{name}");
        }
    }

    #[test]
    fn values_say_which_kind_of_movement_a_row_is() {
        for (value, said) in [
            ("PURCHASE", Some(Movement::Charge)),
            ("card_payment", Some(Movement::Charge)),
            ("Top Up", Some(Movement::Charge)),
            ("REFUND", Some(Movement::Refund)),
            ("PartialRefund", Some(Movement::Refund)),
            ("payment_refund", Some(Movement::Refund)),
            ("payout", Some(Movement::Payout)),
            ("VOID", Some(Movement::Other)),
            ("ChargeBack", Some(Movement::Other)),
            ("credit", Some(Movement::Unsure)),
            ("Inward", Some(Movement::Charge)),
            ("inbound", Some(Movement::Charge)),
            ("incoming_payment", Some(Movement::Charge)),
            ("Outward", Some(Movement::Unsure)),
            ("outbound", Some(Movement::Unsure)),
            ("OUTGOING", Some(Movement::Unsure)),
            ("transfer", Some(Movement::Unsure)),
            ("bank_transfer", None),
            ("credit_card", None),
            ("AUTHORIZE", None),
            ("refund-17", None),
        ] {
            assert_eq!(movement(value), said, "{value}");
        }
    }

    #[test]
    fn columns_tell_kinds_by_their_values_and_cards_do_not() {
        let values = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        for (name, words, own, tells) in [
            ("transaction_type", &["PURCHASE", "REFUND"][..], "charge", true),
            ("what", &["sale", "void"], "charge", true),
            ("entry_type", &["debit", "credit"], "charge", true),
            ("payment_request_type", &["Inward", "Outward"], "charge", true),
            ("payment_type", &["inbound", "outbound"], "charge", true),
            ("payment_type", &["inbound"], "charge", false),
            ("payment_type", &["card", "transfer"], "charge", false),
            ("payment_type", &["inbound", "transfer"], "charge", true),
            ("card_type", &["debit", "credit", "prepaid"], "charge", false),
            ("type", &["refund", "partial_refund"], "refund", false),
            ("type", &["refund", "payout"], "refund", true),
            ("type", &["charge", "payment"], "charge", false),
        ] {
            assert_eq!(tells_kinds(name, &values(words), own), tells, "{name} {words:?}");
        }
    }

    #[test]
    fn psps_are_known_by_their_names_in_values() {
        for value in ["stripe", "PayPal", "pp_stripe_stripe", "Go Cardless", "checkout.com"] {
            assert!(names_psp(value), "{value}");
        }
        for value in ["checkout", "web", "card", "cash", "acct_1"] {
            assert!(!names_psp(value), "{value}");
        }
    }
}
