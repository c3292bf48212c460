//! What the words of PSPs' reports mean: a payment, a refund, a fee.
//!
//! As data, one table a PSP, each from its own reference: Adyen "Settlement details: journal
//! types", Stripe "Reporting categories", PayPal "Transaction event codes", Checkout.com "Financial
//! actions: breakdown types". The longest beginning that fits wins; a word that no table knows is
//! an adjustment, which never decides a row. A bank's booking is told by its marks alone.

use crate::model::settlement::{Direction, Line, LineKind};

use LineKind::{
    Adjustment, Attempt, Chargeback, ChargebackReversed, Fee, Payment, Payout, Refund, Return,
};

type Words = &'static [(&'static str, LineKind)];

const ADYEN: Words = &[
    ("settled", Payment),
    ("settledreversed", Return),
    ("refunded", Refund),
    ("refundedreversed", Return),
    ("capturefailed", Return),
    ("refundfailed", Return),
    ("chargeback", Chargeback),
    ("secondchargeback", Chargeback),
    ("chargebackreversed", ChargebackReversed),
    ("chargebackreversedexternallywithinfo", ChargebackReversed),
    ("fee", Fee),
    ("paymentcost", Fee),
    ("invoicededuction", Fee),
    ("misccosts", Fee),
    ("merchantpayout", Payout),
    ("internalcompanypayout", Payout),
    ("merchantpayin", Adjustment),
    ("received", Attempt),
    ("authorised", Attempt),
    ("authorized", Attempt),
    ("sentforsettle", Attempt),
    ("sentforrefund", Attempt),
    ("refused", Attempt),
    ("error", Attempt),
    ("cancelled", Attempt),
    ("canceled", Attempt),
    ("expired", Attempt),
    ("retried", Attempt),
];

const STRIPE: Words = &[
    ("charge", Payment),
    ("payment", Payment),
    ("charge_failure", Return),
    ("payment_failure", Return),
    ("refund", Refund),
    ("payment_refund", Refund),
    // Money out of a payment: that much less was captured, and no refund was made.
    ("partial_capture_reversal", Payment),
    ("refund_failure", Return),
    ("payment_failure_refund", Return),
    ("dispute", Chargeback),
    ("dispute_reversal", ChargebackReversed),
    ("fee", Fee),
    ("stripe_fee", Fee),
    ("network_cost", Fee),
    ("tax", Fee),
    ("payout", Payout),
];

/// What else Stripe calls a row, as a reporting category or as the type of the dashboard's export:
/// nobody's payment by itself.
const STRIPE_OTHERS: &[&str] = &[
    "adjustment",
    "advance",
    "advance_funding",
    "anticipation_repayment",
    "application_fee",
    "application_fee_refund",
    "climate_order_purchase",
    "climate_order_refund",
    "connect_collection_transfer",
    "connect_reserved_funds",
    "contribution",
    "currency_conversion",
    "customer_balance_funding_reversal",
    "fx",
    "inbound_transfer",
    "inbound_transfer_reversal",
    "minimum_balance",
    "obligation",
    "other_adjustment",
    "payment_network_reserve_hold",
    "payment_network_reserve_release",
    "payment_reversal",
    "payment_unreconciled",
    "platform_earning",
    "platform_earning_refund",
    "reserve_transaction",
    "reserved_funds",
    "risk_reserved_funds",
    "stripe_balance_payment_debit",
    "stripe_balance_payment_debit_reversal",
    "stripe_fx_fee",
    "tax_fee",
    "topup",
    "topup_reversal",
    "transfer",
    "transfer_cancel",
    "transfer_failure",
    "transfer_refund",
    "transfer_reversal",
    "unreconciled_customer_funds",
];

/// How more of its words begin.
const STRIPE_BEGINNINGS: [&str; 5] =
    ["financing_", "issuing_", "obligation_", "outbound_", "payout_"];

const PAYPAL: Words = &[
    ("T00", Payment),
    ("T01", Fee),
    ("T04", Payout),
    ("T11", Return),
    ("T1107", Refund),
    ("T1108", Fee),
    // Held while a dispute is looked into, and let go.
    ("T1110", Chargeback),
    ("T1111", ChargebackReversed),
    ("T12", Adjustment),
    ("T1201", Chargeback),
    ("T1202", ChargebackReversed),
];

const CHECKOUT: Words = &[
    ("capture", Payment),
    ("charge", Payment),
    ("partial charge", Payment),
    ("partial chargeback", Chargeback),
    ("payment capture", Payment),
    ("partial capture", Payment),
    ("refund", Refund),
    ("partial refund", Refund),
    ("payment refund", Refund),
    ("chargeback", Chargeback),
    ("chargeback reversal", ChargebackReversed),
    ("chargeback reversed", ChargebackReversed),
    // Its own codes; by others a chargeback went either way.
    ("chargeback (", Adjustment),
    ("chargeback (adjm)", Chargeback),
    ("chargeback (arws)", Chargeback),
    ("chargeback (cbrv)", ChargebackReversed),
    ("chargeback (rpdw)", ChargebackReversed),
    ("chargeback (arbw)", ChargebackReversed),
    ("payout", Adjustment),
    // What paying out costs: the payout itself has no row.
    ("merchant payout", Fee),
];

/// What Checkout.com calls what moves no money, but for the fees of it.
const CHECKOUT_ASKED: [&str; 4] = ["authorization", "authorisation", "card verification", "void"];

/// Words within the names of what else Checkout.com books.
const CHECKOUT_OTHERS: [&str; 15] = [
    "fee",
    "adjustment",
    "advance",
    "arbitration",
    "balance",
    "dispute",
    "interest",
    "invoice",
    "network",
    "payout",
    "reserve",
    "reversal",
    "tax",
    "transfer",
    "verification",
];

const TRUSTLY: Words =
    &[("capture", Payment), ("charge", Payment), ("deposit", Payment), ("refund", Refund)];

const PAYPAL_ACTIVITY: Words = &[
    ("Express Checkout Payment", Payment),
    ("Website Payment", Payment),
    ("General Payment", Payment),
    ("Subscription Payment", Payment),
    ("Mobile Payment", Payment),
    ("Payment Refund", Refund),
    ("Payment Reversal", Return),
    ("Chargeback", Chargeback),
    ("General Withdrawal", Payout),
    ("General Withdrawal - Bank Account", Payout),
    ("User Initiated Withdrawal", Payout),
];

const SHOPIFY: Words = &[
    ("charge", Payment),
    ("refund", Refund),
    ("chargeback", Chargeback),
    ("dispute", Chargeback),
    ("chargeback_won", ChargebackReversed),
    ("dispute_reversal", ChargebackReversed),
    ("payout", Payout),
];

/// What else Shopify books, by its enumeration of transaction types: nobody's payment by itself.
const SHOPIFY_OTHERS: &[&str] = &[
    "ach_bank_failure_debit_fee",
    "ach_bank_failure_debit_reversal_fee",
    "adjustment",
    "advance",
    "advance_funding",
    "application_fee_refund",
    "balance_transfer_inbound",
    "balance_transfer_outbound",
    "charge_adjustment",
    "chargeback_fee",
    "chargeback_fee_refund",
    "chargeback_hold",
    "chargeback_hold_release",
    "credit",
    "customs_duty",
    "customs_duty_adjustment",
    "debit",
    "dispute_withdrawal",
    "import_tax",
    "import_tax_adjustment",
    "import_tax_refund",
    "lending_capital_refund",
    "lending_capital_refund_reversal",
    "lending_capital_remittance",
    "lending_capital_remittance_reversal",
    "lending_credit_refund",
    "lending_credit_refund_reversal",
    "lending_credit_remittance",
    "lending_credit_remittance_reversal",
    "payout_cancellation",
    "payout_failure",
    "referral_fee",
    "referral_fee_tax",
    "refund_adjustment",
    "refund_failure",
    "reserve",
    "reserved_funds",
    "reserved_funds_reversal",
    "reserved_funds_withdrawal",
    "risk_reversal",
    "risk_withdrawal",
    "shipping_label",
    "shipping_label_adjustment",
    "shipping_label_adjustment_base",
    "shipping_label_adjustment_surcharge",
    "shipping_other_carrier_charge_adjustment",
    "shipping_return_to_origin_adjustment",
    "stripe_fee",
    "transfer",
    "transfer_cancel",
    "transfer_failure",
    "transfer_refund",
];

/// What most of its other types end in: `shop_cash_credit`, `billing_debit_reversal`.
const SHOPIFY_ENDINGS: [&str; 4] = ["_credit", "_debit", "_credit_reversal", "_debit_reversal"];

/// Of both reports, in either case.
const MERCADOPAGO: Words = &[
    ("payment", Payment),
    ("settlement", Payment),
    ("refund", Refund),
    ("chargeback", Chargeback),
    ("dispute", Chargeback),
    // What was paid to the buyer of a claim, and what of that came again.
    ("mediation", Chargeback),
    ("mediation_cancel", ChargebackReversed),
    ("payout", Payout),
    ("payouts", Payout),
    ("payouts_cash", Payout),
    ("withdrawal", Payout),
];

/// What else moves an account of Mercado Pago's: nobody's payment by itself.
const MERCADOPAGO_OTHERS: [&str; 6] =
    ["cashback", "credit_payment", "fee", "money_transfer", "shipping", "tax"];

/// The last of ISO 20022's three codes of a booking, where it is the bank's own.
const CHARGES: [&str; 4] = ["CHRG", "COMM", "FEES", "INTR"];

/// The last of ISO 20022's three codes of a booking that undoes an earlier one: a payment that was
/// returned or cancelled, a direct debit or a cheque that was not paid.
const UNDONE: [&str; 6] = ["RRTN", "RPCR", "UPDD", "PRDD", "RCDD", "UPCQ"];

/// Those of them that are a shop's own refund as well: a direct debit that the creditor reversed, a
/// transfer that its receiver gave back.
const GIVEN_BACK: [&str; 4] = ["RRTN", "RPCR", "PRDD", "RCDD"];

/// Transaction codes of German banks for what came back: direct debits (108, 109) and credit
/// transfers (159).
pub const RETURNS: [&str; 3] = ["108", "109", "159"];

fn look_up(words: Words, word: &str) -> LineKind {
    let fitting = words.iter().filter(|(known, _)| {
        word.get(..known.len()).is_some_and(|head| head.eq_ignore_ascii_case(known))
    });
    fitting.max_by_key(|(known, _)| known.len()).map_or(Adjustment, |(_, kind)| *kind)
}

/// What a word of Adyen's is.
pub fn adyen(word: &str) -> LineKind {
    look_up(ADYEN, word)
}

/// What a word of Stripe's is; its words end where an underscore does not go on.
pub fn stripe(word: &str) -> LineKind {
    let known = STRIPE.iter().find(|(known, _)| word.eq_ignore_ascii_case(known));
    match known {
        Some((_, kind)) => *kind,
        None if word.to_ascii_lowercase().starts_with("payout") => Payout,
        None => Adjustment,
    }
}

/// Whether a word is one that Stripe is known to write.
pub fn is_known_to_stripe(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let is = |known: &&str| *known == lower;
    STRIPE.iter().any(|(known, _)| is(known))
        || STRIPE_OTHERS.iter().any(is)
        || STRIPE_BEGINNINGS.iter().any(|begin| lower.starts_with(begin))
}

/// What an event code of PayPal's is. Money that the merchant sent under a payment's code is
/// nobody's payment to the merchant.
pub fn paypal(code: &str, direction: Direction) -> LineKind {
    match look_up(PAYPAL, code) {
        Payment if direction == Direction::Debit => Adjustment,
        kind => kind,
    }
}

/// What a word of Checkout.com's is.
pub fn checkout(word: &str) -> LineKind {
    let lower = word.to_ascii_lowercase();
    if lower.contains("fee") {
        return Fee;
    }
    look_up(CHECKOUT, &lower)
}

/// What a part of an action of Checkout.com's is: the money of the action by its whole word, or a
/// fee; what goes on otherwise (`Capture Tax`) is neither.
pub fn checkout_part(word: &str) -> LineKind {
    let known = CHECKOUT.iter().find(|(known, _)| word.eq_ignore_ascii_case(known));
    match known {
        Some((_, kind)) => *kind,
        None if word.to_ascii_lowercase().contains("fee") => Fee,
        None => Adjustment,
    }
}

/// Whether a word for an action, or for a part of one, is one that Checkout.com is known to write.
pub fn is_known_to_checkout(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    CHECKOUT.iter().any(|(known, _)| lower.starts_with(known))
        || CHECKOUT_ASKED.iter().any(|asked| lower.starts_with(asked))
        || CHECKOUT_OTHERS.iter().any(|own| lower.contains(own))
}

/// Whether an action of Checkout.com's, or a part of one, moves no money but fees.
pub fn checkout_moves_nothing(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    !lower.contains("fee") && CHECKOUT_ASKED.iter().any(|asked| lower.starts_with(asked))
}

/// What a word of Trustly's is.
pub fn trustly(word: &str, is_return: bool) -> LineKind {
    if is_return { Return } else { look_up(TRUSTLY, word) }
}

/// What a row of Mollie's is, by its id and the word where its method of payment stands.
pub fn mollie(id: &str, method: &str) -> Option<LineKind> {
    let is = |start: &str, word: &str| id.starts_with(start) || method.eq_ignore_ascii_case(word);
    if is("chb_", "chargeback") {
        Some(Chargeback)
    } else if is("re_", "refund") {
        Some(Refund)
    } else {
        (id.starts_with("tr_") || id.starts_with("cpt_")).then_some(Payment)
    }
}

/// What the words of a row in PayPal's activity download are, in English: the same payments are
/// money that the merchant got, or sent.
pub fn paypal_activity(words: &str, direction: Direction) -> LineKind {
    let is_out = direction == Direction::Debit;
    let known = PAYPAL_ACTIVITY.iter().find(|(known, _)| words.eq_ignore_ascii_case(known));
    let kind = known.map(|(_, kind)| *kind).filter(|kind| is_out == (*kind != Payment));
    kind.unwrap_or(Adjustment)
}

/// What a word of Shopify's is; none where it is not one of its types.
pub fn shopify(word: &str) -> Option<LineKind> {
    let word = word.to_ascii_lowercase().replace(' ', "_");
    let known = SHOPIFY.iter().find(|(known, _)| word == *known);
    let is_other = SHOPIFY_OTHERS.contains(&word.as_str())
        || SHOPIFY_ENDINGS.iter().any(|ending| word.ends_with(ending));
    known.map(|(_, kind)| *kind).or(is_other.then_some(Adjustment))
}

/// What a word of Mercado Pago's is: the same payments and refunds are money that the merchant got,
/// or sent.
pub fn mercadopago(word: &str, direction: Direction) -> LineKind {
    let is_in = direction == Direction::Credit;
    let comes_in = |kind: &LineKind| matches!(kind, Payment | ChargebackReversed);
    let kind = named_by_mercadopago(word).filter(|kind| is_in == comes_in(kind));
    kind.unwrap_or(Adjustment)
}

fn named_by_mercadopago(word: &str) -> Option<LineKind> {
    let known = MERCADOPAGO.iter().find(|(known, _)| word.eq_ignore_ascii_case(known));
    known.map(|(_, kind)| *kind)
}

/// Whether a word is one that Mercado Pago is known to write, alone or before an underscore.
pub fn is_known_to_mercadopago(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let named = MERCADOPAGO.iter().map(|(known, _)| *known).chain(MERCADOPAGO_OTHERS);
    let mut rests = named.filter_map(|known| lower.strip_prefix(known));
    rests.any(|rest| rest.is_empty() || rest.starts_with('_'))
}

/// [`other_sign`] of a word of Mercado Pago's account: what was paid out has one as well, and a
/// payment may be one that the merchant made.
pub fn mercadopago_other_sign(word: &str, minor: i64) -> Option<&'static str> {
    match named_by_mercadopago(word)? {
        Payment => None,
        Payout if minor > 0 => Some("money out, with a minus: it was paid out"),
        kind => other_sign(kind, minor),
    }
}

/// [`other_sign`] of a word of Stripe's: what was not captured is money out of a payment.
pub fn stripe_other_sign(word: &str, minor: i64) -> Option<&'static str> {
    match stripe(word) {
        Payment if word.eq_ignore_ascii_case("partial_capture_reversal") => {
            (minor > 0).then_some("money out, with a minus: it was not captured")
        }
        kind => other_sign(kind, minor),
    }
}

/// What the sign of an amount is by the kind of its row, in words, where it has the other one: what
/// a PSP writes without a minus for money out would be counted the wrong way.
pub fn other_sign(kind: LineKind, minor: i64) -> Option<&'static str> {
    match kind {
        Payment if minor < 0 => Some("money in: it is a payment"),
        Refund if minor > 0 => Some("money out, with a minus: it is a refund"),
        Chargeback if minor > 0 => Some("money out, with a minus: it was charged back"),
        ChargebackReversed if minor < 0 => Some("money in: a chargeback was taken back"),
        _other => None,
    }
}

/// What a row of Amazon's is, by the word for its amount: a fee, or else a part of what was paid
/// or given back, which is nobody's payment by itself.
pub fn amazon(word: &str, direction: Direction) -> LineKind {
    let is_fee = direction == Direction::Debit && word.eq_ignore_ascii_case("ItemFees");
    if is_fee { Fee } else { Adjustment }
}

/// What the sign of a price is by its row's words (type of the transaction, of the amount, and its
/// description), where it has the other one.
pub fn amazon_other_sign(words: [&str; 3], minor: i64) -> Option<&'static str> {
    match words {
        ["Order", "ItemPrice", "Principal"] => other_sign(Payment, minor),
        ["Refund", "ItemPrice", "Principal"] => other_sign(Refund, minor),
        _other => None,
    }
}

/// What a bank's booking is: it came back where the file says so, and is the bank's own where its
/// codes say so. A notice of change (NACHA `C…`) says that money did move.
pub fn booking(line: &Line) -> LineKind {
    let is_change =
        line.return_reason.as_deref().is_some_and(|code| code.starts_with('C') && code.len() == 3);
    let has = |is: fn(&str) -> bool| line.type_code.as_deref().is_some_and(is);
    let came_back = line.reversal || line.return_reason.is_some() || has(is_undone);
    let is_own = line.direction == Direction::Debit && has(is_charge);
    match came_back && !is_change {
        true => Return,
        false if is_own => Fee,
        false => LineKind::Movement,
    }
}

/// A bank's code of a booking, in its parts; those that it does not have are empty.
struct Code<'a> {
    /// The last of three codes of ISO 20022: `RRTN` of `PMNT/ICDT/RRTN`.
    sub_family: &'a str,
    /// That of MT940: `NRTI`.
    swift: &'a str,
    /// The business code that German banks put behind it in camt: `159` of `NRTI+159+9310`.
    business: &'a str,
}

impl<'a> Code<'a> {
    fn of(code: &'a str) -> Self {
        let mut parts = code.split('+');
        let (first, business) = (parts.next().unwrap_or_default(), parts.next());
        let business = business.unwrap_or_default();
        let mut codes = first.split('/');
        match (codes.next(), codes.next(), codes.next(), codes.next()) {
            (Some(_), Some(_), Some(sub_family), None) => Self { sub_family, swift: "", business },
            (Some(swift), None, ..) => Self { sub_family: "", swift, business },
            _other => Self { sub_family: "", swift: "", business },
        }
    }
}

/// Whether a bank's code of a booking says that an earlier one is undone.
fn is_undone(code: &str) -> bool {
    let Code { sub_family, swift, business } = Code::of(code);
    UNDONE.contains(&sub_family) || matches!(swift, "NRTI" | "FRTI") || RETURNS.contains(&business)
}

/// Whether a bank undid an earlier booking by its mark alone (`RvslInd`, `RC`): neither a code nor
/// a reason says so. The shop made no such booking.
pub fn is_undone_by_mark(kind: LineKind, code: Option<&str>, reason: Option<&str>) -> bool {
    kind == Return && reason.is_none() && !code.is_some_and(is_undone)
}

/// Whether money out that a bank calls undone may as well be a refund that the shop made, by its
/// code: not where a `reason` or a German bank says that another one sent it back.
pub fn may_be_given_back(code: Option<&str>, reason: Option<&str>) -> bool {
    let is_so = |code: &str| {
        let Code { sub_family, business, .. } = Code::of(code);
        GIVEN_BACK.contains(&sub_family) && !RETURNS.contains(&business)
    };
    reason.is_none() && code.is_some_and(is_so)
}

/// Whether a bank's code of a booking is that of its charges, its commission or its interest.
pub fn is_charge(code: &str) -> bool {
    let Code { sub_family, swift, business } = Code::of(code);
    CHARGES.contains(&sub_family) || is_swift_charge(swift) || is_business_charge(business)
}

/// `NCHG`, `NCOM`, `NINT`: the first letter says where the code is from.
fn is_swift_charge(code: &str) -> bool {
    let rest = code.strip_prefix('N').or_else(|| code.strip_prefix('F'));
    matches!(rest, Some("CHG" | "COM" | "INT"))
}

/// The business codes of German banks for what they take for themselves, from closing the account
/// (805) over charges (808) to interest (814 to 817). Others of the eight hundreds are transfers.
pub fn is_business_charge(code: &str) -> bool {
    code.len() == 3 && code.parse::<u16>().is_ok_and(|code| (805..=817).contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::money::Currency;

    #[test]
    fn the_longest_beginning_that_fits_says_what_a_word_is() {
        for (word, kind) in [
            ("Settled", Payment),
            ("SettledInInstallments", Payment),
            ("SettledReversed", Return),
            ("Refunded", Refund),
            ("RefundedReversed", Return),
            ("Chargeback", Chargeback),
            ("ChargebackExternallyWithInfo", Chargeback),
            ("ChargebackReversed", ChargebackReversed),
            ("SecondChargeback", Chargeback),
            ("MerchantPayout", Payout),
            ("Fee", Fee),
            ("SentForSettle", Attempt),
            ("Refused", Attempt),
            ("ReserveAdjustment", Adjustment),
            ("", Adjustment),
            ("Ünknown", Adjustment),
        ] {
            assert_eq!(adyen(word), kind, "{word}");
        }
    }

    #[test]
    fn a_word_of_stripe_is_known_whole() {
        for (word, kind) in [
            ("charge", Payment),
            ("charge_failure", Return),
            ("refund", Refund),
            ("refund_failure", Return),
            ("dispute", Chargeback),
            ("dispute_reversal", ChargebackReversed),
            ("payout", Payout),
            ("payout_reversal", Payout),
            ("payment", Payment),
            ("payment_method_update", Adjustment),
            ("other_adjustment", Adjustment),
        ] {
            assert_eq!(stripe(word), kind, "{word}");
        }
    }

    #[test]
    fn a_part_of_an_action_is_its_money_only_by_its_whole_word() {
        for (word, kind) in [
            ("Capture", Payment),
            ("Charge", Payment),
            ("Partial Charge", Payment),
            ("Partial Chargeback", Chargeback),
            ("refund", Refund),
            ("Chargeback", Chargeback),
            ("Capture Fixed Fee", Fee),
            ("Scheme Variable Fee", Fee),
            ("Merchant Payout", Fee),
            ("Payout", Adjustment),
            ("Capture Tax", Adjustment),
            ("Rolling Reserve", Adjustment),
        ] {
            assert_eq!(checkout_part(word), kind, "{word}");
        }
    }

    #[test]
    fn money_that_goes_the_other_way_than_its_kind_is_told() {
        for (kind, own) in [(Payment, 1), (Refund, -1), (Chargeback, -1), (ChargebackReversed, 1)] {
            assert_eq!(other_sign(kind, own), None);
            assert_eq!(other_sign(kind, 0), None);
            assert!(other_sign(kind, -own).is_some());
        }
        assert_eq!([other_sign(Payout, 1), other_sign(Adjustment, -1)], [None, None]);
    }

    #[test]
    fn a_row_of_mollies_is_known_by_its_id_or_its_method() {
        for (id, method, kind) in [
            ("tr_a", "ideal", Some(Payment)),
            ("cpt_a", "", Some(Payment)),
            ("re_a", "refund", Some(Refund)),
            ("tr_a", "refund", Some(Refund)),
            ("tr_a", "chargeback", Some(Chargeback)),
            ("chb_a", "", Some(Chargeback)),
            ("", "", None),
        ] {
            assert_eq!(mollie(id, method), kind, "{id} {method}");
        }
        let [debit, credit] = [Direction::Debit, Direction::Credit];
        assert_eq!([amazon("ItemFees", debit), amazon("ItemFees", credit)], [Fee, Adjustment]);
        assert_eq!([amazon("ItemPrice", debit), amazon("ItemPrice", credit)], [Adjustment; 2]);
    }

    #[test]
    fn a_word_of_shopifys_is_known_whole() {
        for (word, kind) in [
            ("charge", Some(Payment)),
            ("Chargeback Won", Some(ChargebackReversed)),
            ("reserved_funds", Some(Adjustment)),
            ("shop_cash_credit", Some(Adjustment)),
            ("billing_debit_reversal", Some(Adjustment)),
            ("charges", None),
            ("reserve_payout", None),
            ("", None),
        ] {
            assert_eq!(shopify(word), kind, "{word}");
        }
    }

    #[test]
    fn what_mercado_pago_pays_out_goes_out() {
        for word in [
            "REFUND",
            "chargeback",
            "mediation",
            "dispute",
            "withdrawal",
            "PAYOUTS",
            "payouts_cash",
        ] {
            assert!(mercadopago_other_sign(word, 1).is_some(), "{word}");
            assert_eq!(mercadopago_other_sign(word, -1), None, "{word}");
        }
        assert!(mercadopago_other_sign("mediation_cancel", -1).is_some());
        assert_eq!(mercadopago("mediation", Direction::Debit), Chargeback);
        assert_eq!(mercadopago("mediation_cancel", Direction::Credit), ChargebackReversed);
        for word in ["settlement", "withdrawal_cancel", "shipping"] {
            assert_eq!([1, -1].map(|minor| mercadopago_other_sign(word, minor)), [None; 2]);
        }
    }

    #[test]
    fn an_authorization_moves_nothing_but_its_fee() {
        for (word, moves_nothing) in [
            ("Authorization", true),
            ("Card Verification", true),
            ("Void", true),
            ("Authorization Fixed Fee", false),
            ("Capture", false),
            ("", false),
        ] {
            assert_eq!(checkout_moves_nothing(word), moves_nothing, "{word}");
        }
        assert_eq!(checkout("Chargeback (CBRV)"), ChargebackReversed);
        assert_eq!(checkout("Chargeback (ADJM)"), Chargeback);
        assert_eq!(checkout("Chargeback (AUTO)"), Adjustment);
    }

    #[test]
    fn a_payment_that_the_merchant_sent_is_an_adjustment() {
        for (words, direction, kind) in [
            ("Website Payment", Direction::Credit, Payment),
            ("Website Payment", Direction::Debit, Adjustment),
            ("Payment Refund", Direction::Debit, Refund),
            ("Payment Refund", Direction::Credit, Adjustment),
            ("General Withdrawal", Direction::Debit, Payout),
            ("Pago estándar", Direction::Credit, Adjustment),
        ] {
            assert_eq!(paypal_activity(words, direction), kind, "{words}");
        }
    }

    #[test]
    fn money_sent_under_a_payments_code_is_no_payment() {
        assert_eq!(paypal("T0006", Direction::Credit), Payment);
        assert_eq!(paypal("T0006", Direction::Debit), Adjustment);
        assert_eq!(paypal("T1107", Direction::Debit), Refund);
        assert_eq!(paypal("T1106", Direction::Debit), Return);
        assert_eq!(paypal("T1201", Direction::Debit), Chargeback);
        assert_eq!(paypal("T1110", Direction::Debit), Chargeback);
        assert_eq!(paypal("T1111", Direction::Credit), ChargebackReversed);
        assert_eq!(paypal("T0400", Direction::Debit), Payout);
        assert_eq!(paypal("T0102", Direction::Debit), Fee);
    }

    #[test]
    fn what_a_bank_takes_for_itself_is_known_by_its_codes() {
        for code in [
            "PMNT/MDOP/CHRG",
            "PMNT/ICDT/COMM",
            "ACMT/MDOP/FEES",
            "CAMT/ACCB/INTR",
            "NCHG",
            "NCOM",
            "NINT",
            "NCHG+808+9310",
            "NTRF+809",
        ] {
            assert!(is_charge(code), "{code}");
        }
        for code in [
            "",
            "N",
            "PMNT/ICDT/ESCT",
            "PMNT/RCDT/OTHR",
            "CHRG",
            "PMNT/CHRG",
            "CHRG/MDOP/OTHR",
            "NTRF",
            "NCHK",
            "NMSC",
            "NTRF+166+9310",
            "NTRF+820",
            "808",
            "698",
        ] {
            assert!(!is_charge(code), "{code}");
        }
        assert!(is_business_charge("808"));
        for code in ["166", "820", "833", "80", "8080", "+808", "80a"] {
            assert!(!is_business_charge(code), "{code}");
        }
    }

    #[test]
    fn what_undoes_a_booking_is_known_by_its_codes() {
        for code in ["PMNT/ICDT/RRTN", "PMNT/IDDT/UPDD", "NRTI", "NRTI+159+9310", "NMSC+109"] {
            assert!(is_undone(code), "{code}");
        }
        for code in ["", "PMNT/ICDT/ESCT", "RRTN", "PMNT/RRTN/OTHR", "NTRF", "NTRF+166", "159"] {
            assert!(!is_undone(code), "{code}");
        }
    }

    #[test]
    fn what_a_shop_gave_back_itself_has_a_code_of_what_was_undone() {
        for code in ["PMNT/IDDT/PRDD", "PMNT/RCDT/RRTN", "PMNT/ICDT/RPCR"] {
            assert!(may_be_given_back(Some(code), None), "{code}");
            assert!(!may_be_given_back(Some(code), Some("AC04")), "{code}");
        }
        for code in ["PMNT/IDDT/UPDD", "NRTI", "PMNT/RDDT/PRDD+109", "PMNT/ICDT/ESCT"] {
            assert!(!may_be_given_back(Some(code), None), "{code}");
        }
    }

    #[test]
    fn what_was_undone_by_a_mark_has_neither_a_code_nor_a_reason() {
        let is_marked = |code, reason| is_undone_by_mark(Return, code, reason);
        assert!(is_marked(None, None) && is_marked(Some("PMNT/RCDT/ESCT"), None));
        assert!(!is_marked(Some("PMNT/ICDT/RRTN"), None) && !is_marked(None, Some("AC04")));
        assert!(!is_undone_by_mark(LineKind::Movement, None, None));
    }

    #[test]
    fn a_notice_of_change_is_no_return() {
        let entry = crate::model::settlement::Entry {
            number: 1,
            line: 1,
            minor: 100,
            currency: Currency::parse("USD").unwrap(),
            direction: Direction::Debit,
            reversal: false,
            status: crate::model::settlement::EntryStatus::Booked,
            booked_on: None,
            value_on: None,
            bank_reference: None,
            type_code: None,
            batch: None,
        };
        let with = |code: Option<&str>, reversal| {
            let return_reason = code.map(str::to_owned);
            booking(&Line { return_reason, reversal, ..Line::of(&entry) })
        };
        assert_eq!(with(None, false), LineKind::Movement);
        assert_eq!(with(None, true), Return);
        assert_eq!(with(Some("R01"), false), Return);
        assert_eq!(with(Some("AC04"), false), Return);
        assert_eq!(with(Some("C01"), false), LineKind::Movement);
        assert_eq!(with(Some("CUST"), false), Return);
        let charged = |direction, reversal| {
            let type_code = Some("PMNT/MDOP/CHRG".to_owned());
            booking(&Line { type_code, direction, reversal, ..Line::of(&entry) })
        };
        assert_eq!(charged(Direction::Debit, false), Fee);
        assert_eq!(charged(Direction::Credit, false), LineKind::Movement, "a payer's money");
        assert_eq!(charged(Direction::Debit, true), Return);
    }
}
