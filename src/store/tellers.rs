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

/// Parts of names of columns that hold secrets, or whole messages: they are not read.
const UNREAD: [&str; 9] =
    ["secret", "token", "email", "url", "ip", "agent", "payload", "response", "metadata"];

/// Parts of names of columns that hold sentences, people, or how a row stands. They are looked at
/// last, and tell PSPs apart where half of their values are names of PSPs.
const UNCODED: [&str; 17] = [
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
    "data",
    "event",
    "currency",
    "status",
    "state",
    "country",
    "locale",
];

/// What a column that tells kinds of movement ends with.
const OF_KIND: [&str; 12] = [
    "type",
    "kind",
    "operation",
    "direction",
    "flow",
    "dc",
    "drcr",
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

/// Letters for debit and credit, in and out. Which of them is a charge only a person can say.
const LETTERS: [&str; 6] = ["c", "d", "cr", "dr", "i", "o"];

/// What a flag is called that may say that a row is one, or that there is one of it. `refunded` and
/// `voided` say what became of a charge.
const BARE: [&str; 4] = ["refund", "payout", "withdrawal", "disbursement"];

/// Values of a flag.
const FLAGS: [&str; 10] = ["0", "1", "true", "false", "t", "f", "y", "n", "yes", "no"];
/// Those that say yes.
const YES: [&str; 5] = ["1", "true", "t", "y", "yes"];

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

/// Values of a status that say: the payment was refused.
pub const FAILED: [&str; 7] =
    ["failed", "failure", "declined", "refused", "error", "errored", "rejected"];

/// Values of a status that say: charge it again.
pub const RETRYABLE: [&str; 7] =
    ["retryable", "retry", "to_retry", "again", "retrying", "requeued", "pending_retry"];

/// Whether a value of a status says by itself this outcome, as `[[table.map]]` calls it.
pub fn says_outcome(outcome: &str, value: &str) -> bool {
    let words = match outcome {
        "succeeded" => &SUCCEEDED[..],
        "failed" => &FAILED[..],
        "retryable" => &RETRYABLE[..],
        _other => &[],
    };
    words.contains(&plain(value).as_str())
}

/// Whether a value of a status says by itself that the payment was made.
pub fn says_success(value: &str) -> bool {
    SUCCEEDED.contains(&plain(value).as_str())
}

/// Whether a value of a status is a word of payments that failed.
pub fn says_failure(value: &str) -> bool {
    FAILED.contains(&plain(value).as_str())
}

/// Whether a value of a status may say that a call is on its way, by a part of it, and that nothing
/// failed yet.
pub fn is_on_its_way(value: &str) -> bool {
    let says_failure = plain(value).split('_').any(|part| FAILED.contains(&part));
    may_be_on_its_way(value) && !says_failure
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

/// Columns of words, which may be words of a short list: the likeliest first.
pub fn coded(columns: &[Column]) -> Vec<&Column> {
    let is_coded = |column: &&Column| {
        let is_word =
            matches!(column.class, TypeClass::Text | TypeClass::Padded | TypeClass::Enum(_));
        is_word && !has_part(&column.name, &UNREAD)
    };
    let mut found: Vec<&Column> = columns.iter().filter(is_coded).collect();
    found.sort_by_key(|column| is_uncoded(&column.name));
    found.truncate(CODED_MAX);
    found
}

/// Whether a column's name says that its values are hardly words of a short list.
pub fn is_uncoded(name: &str) -> bool {
    has_part(name, &UNCODED)
}

fn has_part(name: &str, parts: &[&str]) -> bool {
    plain(name).split('_').any(|part| parts.contains(&part))
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

/// Whether a value is the name of a PSP, with no more than a region or a version: `stripe_eu`.
fn is_psp(value: &str) -> bool {
    let value = plain(value);
    let is_name = |word: &str| PSPS.contains(&word);
    let words: Vec<&str> = value.split('_').collect();
    let is_apt = |word: &&str| is_name(word) || word.chars().count() <= 3;
    let has_name = words.iter().any(|word| is_name(word));
    is_name(&value.replace('_', "")) || (words.len() == 2 && has_name && words.iter().all(is_apt))
}

/// Whether words of a column of this name name PSPs, so that they tell accounts apart: one of them
/// does, and where the name says otherwise half of several are nothing else.
pub fn tells_psps(name: &str, values: &[String]) -> bool {
    if !are_codes(values) {
        return false;
    }
    let psps = values.iter().filter(|value| is_psp(value)).count();
    match is_uncoded(name) {
        true => values.len() > 1 && psps.saturating_mul(2) >= values.len(),
        false => values.iter().any(|value| names_psp(value)),
    }
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

/// What a value says under a name of kinds, among these values: abbreviations too.
pub fn movement_in(name: &str, values: &[String], value: &str) -> Option<Movement> {
    movement(value).or_else(|| abbreviated(name, values, value))
}

/// Abbreviations say something under a name of kinds alone, and letters where all of several values
/// are such.
fn abbreviated(name: &str, values: &[String], value: &str) -> Option<Movement> {
    if !is_of_kinds(name) {
        return None;
    }
    let is_letter = |value: &String| {
        let value = plain(value);
        value.is_empty() || LETTERS.contains(&value.as_str())
    };
    match plain(value).as_str() {
        "in" | "pay" | "pmt" | "chg" => Some(Movement::Charge),
        "ref" | "rfd" | "rfnd" => Some(Movement::Refund),
        "out" => Some(Movement::Unsure),
        letter if LETTERS.contains(&letter) && values.len() > 1 => {
            values.iter().all(is_letter).then_some(Movement::Unsure)
        }
        _other => None,
    }
}

/// What a flag of this name says of rows that have it, where these may be all its values;
/// [`Movement::Unsure`]: that a row has a refund does not say that it is one.
pub fn flag_of(name: &str, values: &[String]) -> Option<Movement> {
    let is_flag = |value: &String| FLAGS.contains(&value.trim().to_ascii_lowercase().as_str());
    let name = plain(name);
    let Some((prefix, rest)) = name.split_once('_') else {
        let is_bare = BARE.contains(&name.as_str()) && values.iter().all(is_flag);
        return is_bare.then_some(Movement::Unsure);
    };
    let last = rest.rsplit('_').next().unwrap_or_default();
    let said = if REFUNDS.contains(&last) {
        Movement::Refund
    } else if PAYOUTS.contains(&last) {
        Movement::Payout
    } else if NO_KIND.contains(&last) || matches!(last, "reversal" | "reversals") {
        Movement::Other
    } else {
        return None;
    };
    match prefix {
        "is" | "was" if values.iter().all(is_flag) => Some(said),
        "has" if values.iter().all(is_flag) => Some(Movement::Unsure),
        _other => None,
    }
}

/// Whether a value of a flag says yes.
pub fn says_yes(value: &str) -> bool {
    YES.contains(&value.trim().to_ascii_lowercase().as_str())
}

/// Columns that may be flags of refunds, payouts and the like, by their names.
pub fn flags(columns: &[Column]) -> Vec<&Column> {
    let is_flag = |column: &&Column| {
        let may_be = match &column.class {
            TypeClass::Boolean => true,
            // A number or a text that is called `refund` is an amount or an id.
            TypeClass::Integer | TypeClass::Text | TypeClass::Padded | TypeClass::Enum(_) => {
                !BARE.contains(&plain(&column.name).as_str())
            }
            _other => false,
        };
        may_be && flag_of(&column.name, &[]).is_some()
    };
    columns.iter().filter(is_flag).collect()
}

/// Whether a flag of this name, with these values, is set in rows of another kind than `own`.
pub fn flags_kinds(name: &str, values: &[String], own: &str) -> bool {
    let said = flag_of(name, values).filter(|said| *said != Movement::Unsure);
    said.is_some_and(|said| said.word() != Some(own)) && values.iter().any(|value| says_yes(value))
}

/// Whether a column of this name, with these values, tells rows of another kind than `own` (as
/// [`Movement::word`] spells it). `credit` says so under a name of kinds alone: cards have it too.
pub fn tells_kinds(name: &str, values: &[String], own: &str) -> bool {
    if is_uncoded(name) {
        return false;
    }
    let said = |of: &[&String]| -> Vec<Movement> {
        of.iter().filter_map(|value| movement_in(name, values, value)).collect()
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
            ("direction", &["IN", "OUT"], "charge", true),
            ("direction", &["in"], "charge", false),
            ("flow", &["incoming", "outgoing"], "charge", true),
            ("type", &["C", "D"], "charge", true),
            ("type", &["A", "B", "C"], "charge", false),
            ("card_type", &["C", "D"], "charge", false),
            ("dc", &["debit", "credit"], "charge", true),
            ("tx_type", &["PAY", "REF"], "charge", true),
            ("cancel_reason", &["refund", "late"], "charge", false),
        ] {
            assert_eq!(tells_kinds(name, &values(words), own), tells, "{name} {words:?}");
        }
    }

    #[test]
    fn flags_say_a_kind_by_their_names_and_are_known_by_their_values() {
        let values = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        for (name, words, said) in [
            ("is_refund", &["0", "1"][..], Some(Movement::Refund)),
            ("IsRefund", &["N", "Y"], Some(Movement::Refund)),
            ("is_payout", &[], Some(Movement::Payout)),
            ("is_void", &["false"], Some(Movement::Other)),
            ("is_reversal", &["true"], Some(Movement::Other)),
            ("has_refund", &["0", "1"], Some(Movement::Unsure)),
            ("is_refund", &["no", "partial"], None),
            ("is_refunded", &["0", "1"], None),
            ("refunded", &["false", "true"], None),
            ("voided", &["false", "true"], None),
            ("refund", &["false", "true"], Some(Movement::Unsure)),
            ("Payout", &["false", "true"], Some(Movement::Unsure)),
            ("refund", &["0", "1900"], None),
        ] {
            assert_eq!(flag_of(name, &values(words)), said, "{name} {words:?}");
        }
        for (name, words, own, tells) in [
            ("is_refund", &["0", "1"][..], "charge", true),
            ("is_refund", &["0"], "charge", false),
            ("is_refund", &["1"], "refund", false),
            ("has_refund", &["0", "1"], "charge", false),
            ("refund", &["false", "true"], "charge", false),
            ("refunded", &["false", "true"], "charge", false),
        ] {
            assert_eq!(flags_kinds(name, &values(words), own), tells, "{name} {words:?}");
        }
    }

    #[test]
    fn a_name_that_says_otherwise_needs_values_that_are_names_of_psps() {
        let values = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        for (name, words, tells) in [
            ("paid_by", &["stripe", "paypal"][..], true),
            ("gateway_message", &["Stripe EU", "Adyen"], true),
            ("event_source", &["stripe", "cash"], true),
            ("cancelled_by", &["stripe", "customer", "merchant"], false),
            ("error_message", &["Stripe refused it", "Adyen refused it"], false),
            ("paid_by", &["stripe"], false),
            ("via", &["stripe"], true),
            ("via", &["pp_stripe_stripe", "web"], true),
        ] {
            assert_eq!(tells_psps(name, &values(words)), tells, "{name} {words:?}");
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
