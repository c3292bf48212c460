//! Amounts and dates as files write them: exact, and refused where they are not.

use chrono::{Datelike, NaiveDate};

use crate::model::money::{Currency, decimal_text};
use crate::model::settlement::Problem;

/// Why a text is no amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Not digits with at most one decimal mark.
    NotANumber,
    /// A digit other than zero beyond the currency's decimals.
    TooFine,
    /// Does not fit 64 bits of minor units.
    TooLarge,
    /// Its only mark may be that of thousands.
    Ambiguous,
}

impl Refused {
    /// What was expected instead, in words.
    pub fn expected(self, currency: Currency) -> String {
        match self {
            Self::NotANumber => "an amount in digits".to_owned(),
            Self::TooFine => format!("at most {} decimals of {currency}", currency.exponent()),
            Self::TooLarge => "an amount that fits 64 bits".to_owned(),
            Self::Ambiguous => "an amount whose mark cannot be one of thousands".to_owned(),
        }
    }

    /// As a problem of `field`.
    pub fn at(self, line: u64, field: &str, text: &str, currency: Currency) -> Problem {
        Problem::error(line, field, self.expected(currency), text)
    }
}

/// Reads an unsigned amount of major units whose decimals follow `mark`. No sign, no grouping, no
/// exponent (`1.23E+5` is what a spreadsheet made of a reference or an amount).
///
/// # Errors
/// Where the text is not exactly that.
pub fn unsigned(text: &str, mark: u8, currency: Currency) -> Result<i64, Refused> {
    let mut minor: i64 = 0;
    let mut digits = 0_u32;
    let mut decimals: Option<u32> = None;
    let exponent = currency.exponent();
    for byte in text.bytes() {
        if byte == mark && decimals.is_none() {
            decimals = Some(0);
            continue;
        }
        if !byte.is_ascii_digit() {
            return Err(Refused::NotANumber);
        }
        digits = digits.saturating_add(1);
        if let Some(seen) = &mut decimals {
            *seen = seen.saturating_add(1);
            if *seen > exponent {
                if byte != b'0' {
                    return Err(Refused::TooFine);
                }
                continue;
            }
        }
        minor = push_digit(minor, byte).ok_or(Refused::TooLarge)?;
    }
    if digits == 0 {
        return Err(Refused::NotANumber);
    }
    let missing = exponent.saturating_sub(decimals.unwrap_or(0));
    for _place in 0..missing {
        minor = minor.checked_mul(10).ok_or(Refused::TooLarge)?;
    }
    Ok(minor)
}

/// [`unsigned`], or with one sign before it.
///
/// # Errors
/// As [`unsigned`].
pub fn signed(text: &str, mark: u8, currency: Currency) -> Result<i64, Refused> {
    match text.strip_prefix('-') {
        Some(rest) => unsigned(rest, mark, currency).map(i64::saturating_neg),
        None => unsigned(text.strip_prefix('+').unwrap_or(text), mark, currency),
    }
}

/// Reads an unsigned amount of major units with a point at `places` decimals, whatever those of
/// its currency are: some reports reckon in fractions of a minor unit.
///
/// # Errors
/// Where the text is not exactly that.
pub fn unsigned_at(text: &str, places: u32) -> Result<i128, Refused> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !is_digits(whole) || !is_digits(fraction) {
        return Err(Refused::NotANumber);
    }
    let width = usize::try_from(places).unwrap_or(usize::MAX).min(18);
    let (kept, beyond) = fraction.split_at(fraction.len().min(width));
    if beyond.bytes().any(|byte| byte != b'0') {
        return Err(Refused::TooFine);
    }
    format!("0{whole}{kept:0<width$}").parse().map_err(|_too_long| Refused::TooLarge)
}

/// Digits alone, as minor units.
///
/// # Errors
/// Where there is anything else, or nothing.
pub fn minor(text: &str) -> Result<i64, Refused> {
    if text.is_empty() {
        return Err(Refused::NotANumber);
    }
    let mut minor = 0_i64;
    for byte in text.bytes() {
        if !byte.is_ascii_digit() {
            return Err(Refused::NotANumber);
        }
        minor = push_digit(minor, byte).ok_or(Refused::TooLarge)?;
    }
    Ok(minor)
}

fn push_digit(minor: i64, byte: u8) -> Option<i64> {
    minor.checked_mul(10)?.checked_add(i64::from(byte.saturating_sub(b'0')))
}

/// An amount for a problem: `1050.00 EUR`; a count where there is no currency.
pub fn shown(figure: i128, currency: Option<Currency>) -> String {
    match currency {
        Some(currency) => format!("{} {currency}", decimal_text(figure, currency.exponent())),
        None => figure.to_string(),
    }
}

/// `YYMMDD`. Years from 80 are of the last century, as in ISO 20022's mapping of SWIFT dates.
pub fn yymmdd(text: &str) -> Option<NaiveDate> {
    let (year, month, day) = (number(text, 0, 2)?, number(text, 2, 4)?, number(text, 4, 6)?);
    let century = if year >= 80 { 1900 } else { 2000 };
    NaiveDate::from_ymd_opt(i32::try_from(year).ok()?.saturating_add(century), month, day)
}

/// A day in a year that every store can hold.
pub fn dated(day: NaiveDate) -> Option<NaiveDate> {
    (1..=9_999).contains(&day.year()).then_some(day)
}

/// That a field says something where a day stands, and no day was `found`: whatever goes by days
/// does not see its row. Blanks, dashes and noughts are words for none.
pub fn unread_day(
    line: u64,
    field: &str,
    text: &str,
    expected: &str,
    found: Option<NaiveDate>,
) -> Option<Problem> {
    let is_told = text.chars().any(|c| c.is_alphanumeric() && c != '0');
    (found.is_none() && is_told).then(|| Problem::warning(line, field, expected, text))
}

/// `MMDD` in the year that brings it nearest to `near`.
pub fn mmdd(text: &str, near: NaiveDate) -> Option<NaiveDate> {
    let (month, day) = (number(text, 0, 2)?, number(text, 2, 4)?);
    (-1..=1)
        .filter_map(|years| NaiveDate::from_ymd_opt(near.year().saturating_add(years), month, day))
        .min_by_key(|date| date.signed_duration_since(near).num_days().unsigned_abs())
}

/// The day of an ISO 8601 date or instant: what stands before the `T`.
pub fn iso_day(text: &str) -> Option<NaiveDate> {
    let text = text.trim();
    let bytes = text.as_bytes();
    if bytes.get(4) != Some(&b'-') || bytes.get(7) != Some(&b'-') {
        return None;
    }
    let year = i32::try_from(number(text, 0, 4)?).ok()?;
    NaiveDate::from_ymd_opt(year, number(text, 5, 7)?, number(text, 8, 10)?).and_then(dated)
}

/// As [`unread_day`], of an ISO 8601 date or instant.
pub fn unread_iso(line: u64, field: &str, text: &str) -> Option<Problem> {
    unread_day(line, field, text, "a date as YYYY-MM-DD", iso_day(text))
}

fn number(text: &str, from: usize, to: usize) -> Option<u32> {
    let digits = text.get(from..to)?;
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_that_cannot_be_read_is_told_and_a_word_for_none_is_not() {
        for text in ["", " ", "-", "000000", "0000-00-00", "2026-11-14", "2026-11-14T08:00:00Z"] {
            assert_eq!(unread_iso(7, "Dt", text), None, "{text}");
        }
        for text in ["2026-02-30", "20261114", "14.11.2026", "garbage", "0000-01-01"] {
            let problem = unread_iso(7, "Dt", text).unwrap();
            assert_eq!((problem.line, problem.field.as_str()), (7, "Dt"));
            assert_eq!(problem.found, text);
        }
        let last = NaiveDate::from_ymd_opt(9_999, 12, 31);
        assert_eq!(last.and_then(dated), last);
        assert_eq!(NaiveDate::from_ymd_opt(0, 12, 31).and_then(dated), None);
    }

    #[test]
    fn amounts_are_exact_or_refused() {
        use Refused::{NotANumber, TooFine, TooLarge};
        for (text, mark, code, want) in [
            ("149.87", b'.', "EUR", Ok(14_987)),
            ("000000000000149.87", b'.', "EUR", Ok(14_987)),
            ("149", b'.', "EUR", Ok(14_900)),
            ("149.", b'.', "EUR", Ok(14_900)),
            (".5", b'.', "EUR", Ok(50)),
            ("500,", b',', "EUR", Ok(50_000)),
            ("1,5", b',', "KWD", Ok(1_500)),
            ("1500", b'.', "JPY", Ok(1_500)),
            ("1500.00000", b'.', "JPY", Ok(1_500)),
            ("1500.5", b'.', "JPY", Err(TooFine)),
            ("1.005", b'.', "EUR", Err(TooFine)),
            ("1.2340", b'.', "KWD", Ok(1_234)),
            ("1,234.50", b'.', "EUR", Err(NotANumber)),
            ("1.2.3", b'.', "EUR", Err(NotANumber)),
            ("1.23E+5", b'.', "EUR", Err(NotANumber)),
            ("-1.00", b'.', "EUR", Err(NotANumber)),
            ("", b'.', "EUR", Err(NotANumber)),
            (".", b'.', "EUR", Err(NotANumber)),
            ("92233720368547758.07", b'.', "EUR", Ok(i64::MAX)),
            ("92233720368547758.08", b'.', "EUR", Err(TooLarge)),
        ] {
            let currency = Currency::parse(code).unwrap();
            assert_eq!(unsigned(text, mark, currency), want, "{text} {code}");
        }
        for (text, want) in [
            ("97.0865", Ok(9_708_650_000)),
            ("86.98650000", Ok(8_698_650_000)),
            ("1", Ok(100_000_000)),
            (".5", Ok(50_000_000)),
            ("0.000000010", Ok(1)),
            ("0.000000001", Err(TooFine)),
            ("1.2.3", Err(NotANumber)),
            ("-1", Err(NotANumber)),
            ("", Err(NotANumber)),
            (".", Err(NotANumber)),
        ] {
            assert_eq!(unsigned_at(text, 8), want, "{text}");
        }
        assert_eq!(unsigned_at(&"9".repeat(40), 8), Err(TooLarge));
        let euro = Currency::parse("EUR").unwrap();
        assert_eq!(signed("-1.05", b'.', euro), Ok(-105));
        assert_eq!(signed("+1.05", b'.', euro), Ok(105));
        assert_eq!(signed("--1.05", b'.', euro), Err(NotANumber));
    }

    #[test]
    fn days_without_a_year_are_the_nearest() {
        let day = |text: &str| iso_day(text).unwrap();
        assert_eq!(mmdd("0102", day("2025-12-31")), Some(day("2026-01-02")));
        assert_eq!(mmdd("1231", day("2026-01-02")), Some(day("2025-12-31")));
        assert_eq!(mmdd("0229", day("2024-03-01")), Some(day("2024-02-29")));
        assert_eq!(mmdd("0230", day("2024-03-01")), None);
        assert_eq!(yymmdd("990101"), Some(day("1999-01-01")));
        assert_eq!(yymmdd("260230"), None);
        assert_eq!(iso_day("2026-11-19T08:00:00+01:00"), Some(day("2026-11-19")));
    }
}
