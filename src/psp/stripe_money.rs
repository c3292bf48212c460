//! Stripe's amounts in ISO 4217 minor units.
//!
//! Stripe counts some currencies differently from ISO: the króna and the Ugandan shilling with two
//! decimals, the ariary with none. A wrong exponent is a hundredfold amount, so a currency that
//! Stripe's list does not explain gives no amount at all. Never rounds.
//! Source: docs.stripe.com/currencies, "Zero-decimal", "Special cases", "Three-decimal".

use crate::model::money::{Currency, Money};

/// Counted by Stripe in whole units.
const WHOLE: &[&str] = &[
    "BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "MGA", "PYG", "RWF", "VND", "VUV", "XAF",
    "XOF", "XPF",
];

/// Counted by Stripe in thousandths (the last digit is always 0).
const THOUSANDTHS: &[&str] = &["BHD", "JOD", "KWD", "OMR", "TND"];

/// ISO says no decimals, Stripe still counts hundredths (always whole ones).
const HUNDREDTHS_OF_WHOLE: &[&str] = &["ISK", "UGX"];

/// `amount` as Stripe states it, in ISO minor units; `None` where ISO or this list does not know
/// the currency, or where the amount is finer than ISO's unit.
pub(super) fn money(amount: i64, currency: &str) -> Option<Money> {
    let currency = Currency::parse(currency).ok()?;
    let theirs = stripe_exponent(currency)?;
    let ours = currency.exponent();
    let minor = if ours >= theirs {
        let factor = 10_i64.checked_pow(ours.checked_sub(theirs)?)?;
        amount.checked_mul(factor)?
    } else {
        let factor = 10_i64.checked_pow(theirs.checked_sub(ours)?)?;
        (amount.checked_rem(factor)? == 0).then(|| amount.checked_div(factor)).flatten()?
    };
    Some(Money::new(minor, currency))
}

/// How many decimals Stripe gives a currency.
fn stripe_exponent(currency: Currency) -> Option<u32> {
    let code = currency.code();
    if WHOLE.contains(&code) {
        return Some(0);
    }
    if THOUSANDTHS.contains(&code) {
        return Some(3);
    }
    // An exponent of ISO's that no list explains is a currency Stripe does not charge in.
    (HUNDREDTHS_OF_WHOLE.contains(&code) || currency.exponent() == 2).then_some(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stripes_units_become_isos() {
        for (amount, currency, iso) in [
            (1999, "usd", Some("19.99 USD")),
            (1999, "EUR", Some("19.99 EUR")),
            (500, "jpy", Some("500 JPY")),
            (500, "krw", Some("500 KRW")),
            // Two decimals at Stripe, none at ISO; a fraction of a króna cannot be.
            (50_000, "isk", Some("500 ISK")),
            (50_001, "isk", None),
            (120_000, "ugx", Some("1200 UGX")),
            // None at Stripe, two at ISO.
            (5, "mga", Some("5.00 MGA")),
            // Two decimals in charges, whatever payouts do.
            (1_000, "huf", Some("10.00 HUF")),
            (1_000, "twd", Some("10.00 TWD")),
            (12_340, "kwd", Some("12.340 KWD")),
            (12_340, "bhd", Some("12.340 BHD")),
            // Three decimals at ISO, and Stripe's list is silent: no guess.
            (1_000, "iqd", None),
            (1_000, "lyd", None),
            (1_000, "xyz", None),
            (1_000, "", None),
            (i64::MAX, "mga", None),
            (-300, "usd", Some("-3.00 USD")),
            (0, "usd", Some("0.00 USD")),
        ] {
            let got = money(amount, currency).map(|m| m.to_string());
            assert_eq!(got.as_deref(), iso, "{amount} {currency}");
        }
    }
}
