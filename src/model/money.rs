//! Exact money: integer minor units with the currency's ISO 4217 exponent.
//!
//! Never a float and never rounded: an amount finer than its currency is refused, not cut.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

/// An ISO 4217 currency. Source of codes and exponents: the ISO list in the `iso_currency` crate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Currency([u8; 3]);

/// Currencies that ISO 4217 list three has withdrawn, with the decimals they had; statements of
/// their time are still read.
const WITHDRAWN: [(&str, u32); 33] = [
    ("ATS", 2),
    ("BEF", 0),
    ("BYR", 0),
    ("CYP", 2),
    ("DEM", 2),
    ("EEK", 2),
    ("ESP", 0),
    ("FIM", 2),
    ("FRF", 2),
    ("GRD", 0),
    ("HRK", 2),
    ("IEP", 2),
    ("ITL", 0),
    ("LTL", 2),
    ("LUF", 0),
    ("LVL", 2),
    ("MRO", 2),
    ("MTL", 2),
    ("MZM", 2),
    ("NLG", 2),
    ("PTE", 0),
    ("ROL", 2),
    ("RUR", 2),
    ("SIT", 2),
    ("SKK", 2),
    ("STD", 2),
    ("TMM", 2),
    ("TRL", 0),
    ("VEF", 2),
    ("YUM", 2),
    ("ZMK", 2),
    ("ZWD", 2),
    ("BGL", 2),
];

/// Codes that were looked up last, each with its exponent: the list is a long chain of comparisons,
/// and a file of a million amounts asks it two million times of the same one or two.
static LOOKED_UP: [AtomicU32; 8] = [const { AtomicU32::new(0) }; 8];

/// A code and a number of decimals, as [`LOOKED_UP`] keeps them.
fn packed([a, b, c]: [u8; 3], exponent: u8) -> u32 {
    u32::from_be_bytes([exponent, a, b, c])
}

fn slot([a, b, c]: [u8; 3]) -> Option<&'static AtomicU32> {
    LOOKED_UP.get(usize::from((a ^ b ^ c) & 7))
}

/// The exponent of an upper-case code of ISO 4217's list that has one.
fn listed(code: [u8; 3]) -> Option<u32> {
    if !code.iter().all(u8::is_ascii_uppercase) {
        return None;
    }
    let kept = slot(code).map_or(0, |slot| slot.load(Ordering::Relaxed));
    let [exponent, ..] = kept.to_be_bytes();
    if kept == packed(code, exponent) {
        return Some(u32::from(exponent));
    }
    let text = std::str::from_utf8(&code).ok()?;
    let exponent = u8::try_from(iso_currency::Currency::from_code(text)?.exponent()?).ok()?;
    if let Some(slot) = slot(code) {
        slot.store(packed(code, exponent), Ordering::Relaxed);
    }
    Some(u32::from(exponent))
}

/// The text is not a code of the ISO 4217 list that has an exponent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an ISO 4217 currency code")]
pub struct UnknownCurrency(pub String);

impl Currency {
    /// ISO 4217's `XXX`: no currency is involved. It is read from nowhere.
    pub const NONE: Self = Self(*b"XXX");

    /// Reads a code in either case; surrounding blanks (char(n) columns) are ignored.
    pub fn parse(text: &str) -> Result<Self, UnknownCurrency> {
        let code = <[u8; 3]>::try_from(text.trim().as_bytes()).ok();
        let code = code.map(|code| code.map(|byte| byte.to_ascii_uppercase()));
        let known = code.filter(|code| listed(*code).is_some());
        known.map(Self).ok_or_else(|| UnknownCurrency(text.to_owned()))
    }

    /// As [`Self::parse`], and also the currencies of old statements that ISO 4217 has withdrawn,
    /// and the euro by its name or its sign.
    ///
    /// # Errors
    /// Where the text is neither.
    pub fn parse_any(text: &str) -> Result<Self, UnknownCurrency> {
        Self::parse(text).or_else(|unknown| {
            let upper = text.trim().to_ascii_uppercase();
            if matches!(upper.as_str(), "EURO" | "EUROS" | "€") {
                return Ok(Self(*b"EUR"));
            }
            let withdrawn = WITHDRAWN.iter().find(|(code, _)| *code == upper);
            let code = withdrawn.and_then(|(code, _)| <[u8; 3]>::try_from(code.as_bytes()).ok());
            code.map(Self).ok_or(unknown)
        })
    }

    /// The code in upper case.
    pub fn code(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("???")
    }

    /// How many decimals a minor unit is: JPY 0, EUR 2, BHD 3.
    pub fn exponent(&self) -> u32 {
        listed(self.0)
            .or_else(|| WITHDRAWN.iter().find(|(code, _)| *code == self.code()).map(|(_, n)| *n))
            .unwrap_or(2)
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl TryFrom<String> for Currency {
    type Error = UnknownCurrency;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<Currency> for String {
    fn from(currency: Currency) -> Self {
        currency.code().to_owned()
    }
}

/// An amount of one currency.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Money {
    /// Minor units of `currency`.
    pub minor: i64,
    /// The currency that gives `minor` its meaning.
    pub currency: Currency,
}

impl Money {
    /// `minor` minor units of `currency`.
    pub fn new(minor: i64, currency: Currency) -> Self {
        Self { minor, currency }
    }

    /// The amount in major units, as exact text: `84310.22`, `310000`, `-0.05`.
    pub fn to_decimal(&self) -> String {
        decimal_text(i128::from(self.minor), self.currency.exponent())
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.to_decimal(), self.currency)
    }
}

impl fmt::Debug for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.to_decimal(), self.currency)
    }
}

/// `minor` at `exponent` decimals, exact, with a point and no grouping.
pub fn decimal_text(minor: i128, exponent: u32) -> String {
    let sign = if minor < 0 { "-" } else { "" };
    let digits = minor.unsigned_abs().to_string();
    let places = usize::try_from(exponent).unwrap_or(0);
    if places == 0 {
        return format!("{sign}{digits}");
    }
    let padded = format!("{digits:0>width$}", width = places.saturating_add(1));
    let (whole, fraction) = padded.split_at(padded.len().saturating_sub(places));
    format!("{sign}{whole}.{fraction}")
}

/// [`decimal_text`] with a comma every three digits of the whole part, for screens.
pub fn grouped_text(minor: i128, exponent: u32) -> String {
    let plain = decimal_text(minor, exponent);
    let (sign, plain) = plain.strip_prefix('-').map_or(("", plain.as_str()), |rest| ("-", rest));
    let (whole, fraction) = plain.split_once('.').map_or((plain, None), |(w, f)| (w, Some(f)));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len().saturating_sub(index)) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    match fraction {
        Some(fraction) => format!("{sign}{grouped}.{fraction}"),
        None => format!("{sign}{grouped}"),
    }
}

/// In which unit a column holds its amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AmountUnit {
    /// Minor units of the ISO exponent: cents, whole yen.
    Minor,
    /// Major units: `19.90`.
    Major,
    /// An integer scaled by a power of ten of its own: minor units where the application's
    /// exponent is not ISO's.
    Scaled(u32),
}

/// Why a text is no amount of its currency.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    /// Not a decimal number (NaN and Infinity are none either).
    #[error("`{0}` is not a decimal number")]
    NotANumber(String),
    /// More decimals than the currency has.
    #[error("`{text}` is finer than {currency} allows ({exponent} decimals)")]
    TooFine {
        /// The column's text.
        text: String,
        /// The row's currency.
        currency: Currency,
        /// That currency's decimals.
        exponent: u32,
    },
    /// Does not fit 64 bits of minor units.
    #[error("`{0}` is too large")]
    TooLarge(String),
}

/// How exact a column's numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exactness {
    /// Integers, decimals, text: every digit counts.
    Exact,
    /// Binary floats (SQLite REAL): a value within a millionth of a minor unit passes as it.
    Float,
}

/// Reads an amount out of a column's text, without rounding.
///
/// # Errors
/// Where the text is no number, is finer than the currency, or does not fit.
pub fn parse_amount(
    text: &str,
    unit: AmountUnit,
    exactness: Exactness,
    currency: Currency,
) -> Result<Money, AmountError> {
    let (mantissa, scale) = parse_decimal(text)?;
    let exponent = i64::from(currency.exponent());
    let shift = match unit {
        AmountUnit::Minor => 0,
        AmountUnit::Major => exponent,
        AmountUnit::Scaled(places) => exponent.saturating_sub(i64::from(places)),
    };
    let too_fine =
        || AmountError::TooFine { text: text.to_owned(), currency, exponent: currency.exponent() };
    let power = shift.saturating_sub(scale);
    let minor = if power >= 0 {
        let factor = power_of_ten(power).filter(|_| mantissa != 0).unwrap_or(i128::MAX);
        if mantissa == 0 { Some(0) } else { mantissa.checked_mul(factor) }
    } else {
        Some(divide_exactly(mantissa, power.saturating_neg(), exactness).ok_or_else(too_fine)?)
    };
    let minor = minor.and_then(|m| i64::try_from(m).ok());
    minor
        .map(|minor| Money::new(minor, currency))
        .ok_or_else(|| AmountError::TooLarge(text.to_owned()))
}

/// `mantissa / 10^places` where that is whole, or so near to whole that only a float's noise
/// is between them.
fn divide_exactly(mantissa: i128, places: i64, exactness: Exactness) -> Option<i128> {
    if mantissa == 0 {
        return Some(0);
    }
    let divisor = power_of_ten(places)?;
    let (whole, rest) = (mantissa.checked_div(divisor)?, mantissa.checked_rem(divisor)?);
    if rest == 0 {
        return Some(whole);
    }
    let noise = divisor.checked_div(1_000_000).filter(|_| exactness == Exactness::Float)?;
    let distance = rest.checked_abs()?;
    if distance <= noise {
        Some(whole)
    } else if divisor.checked_sub(distance)? <= noise {
        whole.checked_add(rest.signum())
    } else {
        None
    }
}

fn power_of_ten(places: i64) -> Option<i128> {
    10_i128.checked_pow(u32::try_from(places).ok()?)
}

/// `-12.50e3` as (mantissa, scale): the value is mantissa / 10^scale.
fn parse_decimal(text: &str) -> Result<(i128, i64), AmountError> {
    let not_a_number = || AmountError::NotANumber(text.to_owned());
    let trimmed = text.trim();
    let (number, power) = match trimmed.split_once(['e', 'E']) {
        Some((number, power)) => (number, power.parse::<i32>().map_err(|_| not_a_number())?),
        None => (trimmed, 0),
    };
    let (negative, digits) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit());
    if !all_digits || (whole.is_empty() && fraction.is_empty()) {
        return Err(not_a_number());
    }
    // Trailing zeros of a wide numeric (1500.000000000) carry nothing and could overflow.
    let fraction = fraction.trim_end_matches('0');
    let joined = format!("{whole}{fraction}");
    let significant = joined.trim_start_matches('0');
    let magnitude: i128 = if significant.is_empty() {
        0
    } else {
        significant.parse().map_err(|_| AmountError::TooLarge(text.to_owned()))?
    };
    let places = i64::try_from(fraction.len()).map_err(|_| not_a_number())?;
    let scale = places.saturating_sub(i64::from(power));
    Ok((if negative { magnitude.saturating_neg() } else { magnitude }, scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, unit: AmountUnit, code: &str, want: Result<i64, &str>) {
        for exactness in [Exactness::Exact, Exactness::Float] {
            let got = parse_amount(text, unit, exactness, Currency::parse(code).unwrap());
            match (&got, want) {
                (Ok(money), Ok(minor)) => assert_eq!(money.minor, minor, "{text} {code}"),
                (Err(error), Err(part)) => {
                    assert!(error.to_string().contains(part), "{text} {code}: {error}");
                }
                _ => panic!("{text} {code}: {got:?}, wanted {want:?}"),
            }
        }
    }

    /// Whatever was looked up before: the codes that are kept are those of the list alone.
    #[test]
    fn a_code_is_one_of_the_list_however_often_it_is_asked() {
        for _again in 0..2 {
            for (text, decimals) in
                [("EUR", 2), (" eur ", 2), ("JPY", 0), ("BHD", 3), ("USD", 2), ("SEK", 2)]
            {
                let currency = Currency::parse(text).unwrap();
                assert_eq!(currency.code(), text.trim().to_ascii_uppercase());
                assert_eq!(currency.exponent(), decimals, "{text}");
            }
            for text in ["", "XXX", "EURO", "EU", "E1R", "\0\0\0", "\u{1}\u{2}\u{3}", "Ää", "DEM"]
            {
                assert_eq!(
                    Currency::parse(text),
                    Err(UnknownCurrency(text.to_owned())),
                    "{text:?}"
                );
            }
            assert_eq!(Currency::parse_any("DEM").unwrap().exponent(), 2);
        }
    }

    #[test]
    fn amounts_are_read_exactly_or_refused() {
        use AmountUnit::{Major, Minor, Scaled};
        check("1999", Minor, "EUR", Ok(1999));
        check("19.99", Major, "eur", Ok(1999));
        check("1500.00", Major, "JPY", Ok(1500));
        check("1500.000000000", Major, "JPY", Ok(1500));
        check("1.234", Major, "BHD", Ok(1234));
        check("0", Major, "EUR", Ok(0));
        check("-0.05", Major, "EUR", Ok(-5));
        check("1e3", Major, "EUR", Ok(100_000));
        check("1.5E1", Minor, "JPY", Ok(15));
        check("150000", Scaled(2), "JPY", Ok(1500));
        check("12345", Scaled(5), "BHD", Err("finer"));
        check("19.995", Major, "EUR", Err("finer"));
        check("0.5", Minor, "EUR", Err("finer"));
        check("1.01", Major, "JPY", Err("finer"));
        check("NaN", Major, "EUR", Err("not a decimal"));
        check("Infinity", Major, "EUR", Err("not a decimal"));
        check("12,50", Major, "EUR", Err("not a decimal"));
        check("", Minor, "EUR", Err("not a decimal"));
        check(".", Minor, "EUR", Err("not a decimal"));
        check("1e99", Major, "EUR", Err("too large"));
        check("92233720368547758.08", Major, "EUR", Err("too large"));
        check("92233720368547758.07", Major, "EUR", Ok(i64::MAX));
    }

    #[test]
    fn a_float_passes_only_within_a_millionth_of_a_minor_unit() {
        let eur = Currency::parse("EUR").unwrap();
        let read = |text, exactness| parse_amount(text, AmountUnit::Major, exactness, eur);
        assert_eq!(read("19.989999999999998", Exactness::Float).unwrap().minor, 1999);
        assert_eq!(read("20.000000000000004", Exactness::Float).unwrap().minor, 2000);
        assert_eq!(read("-19.989999999999998", Exactness::Float).unwrap().minor, -1999);
        assert!(read("19.989999999999998", Exactness::Exact).is_err());
        assert!(read("19.9899", Exactness::Float).is_err());
        assert!(read("19.995", Exactness::Float).is_err());
    }

    #[test]
    fn texts_group_and_scale() {
        assert_eq!(grouped_text(8_431_022, 2), "84,310.22");
        assert_eq!(grouped_text(-100, 2), "-1.00");
        assert_eq!(grouped_text(310_000, 0), "310,000");
        assert_eq!(decimal_text(5, 3), "0.005");
        assert_eq!(decimal_text(-5, 2), "-0.05");
    }

    #[test]
    fn only_codes_with_an_exponent_are_currencies() {
        assert_eq!(Currency::parse(" usd ").unwrap().code(), "USD");
        assert_eq!(Currency::parse("BHD").unwrap().exponent(), 3);
        for bad in ["", "EU", "EURO", "XAU", "ZZZ", "€"] {
            assert!(Currency::parse(bad).is_err(), "{bad}");
        }
    }
}
