//! Numbers and days as people's spreadsheets and banks' exports write them: which decimal mark a
//! file has, which of day and month stands first. What the file does not show is not assumed.

use chrono::NaiveDate;

use crate::model::money::Currency;
use crate::settlement::amount::{Refused, dated, unsigned, unsigned_at};

/// How a file writes its amounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numerals {
    /// Between whole and fraction.
    pub decimal: u8,
    /// Whether whole parts may be grouped in threes.
    pub grouped: bool,
}

impl Numerals {
    /// `1234.56`: what machines write.
    pub const PLAIN: Self = Self { decimal: b'.', grouped: false };

    /// Reads an amount of major units: a sign before or after, or brackets; groups of three; the
    /// currency's own code or sign around it.
    ///
    /// # Errors
    /// Where it is not exactly that.
    pub fn read(self, text: &str, currency: Currency) -> Result<i64, Refused> {
        let (negative, minor) = match self.bare_figure(text) {
            Some((negative, body)) => (negative, unsigned(body, self.decimal, currency)?),
            None => {
                let (negative, digits) = self.plain(text, currency)?;
                (negative, unsigned(&digits, b'.', currency)?)
            }
        };
        Ok(if negative { minor.saturating_neg() } else { minor })
    }

    /// The sign and the rest of what nearly every amount is: a minus or none, digits, and the
    /// decimal mark at most once. Such a text means the same by either way of reading.
    fn bare_figure(self, text: &str) -> Option<(bool, &str)> {
        let (negative, body) = match text.strip_prefix('-') {
            Some(body) => (true, body),
            None => (false, text),
        };
        let mut marks = 0_u8;
        let is_figure = body.bytes().all(|byte| {
            marks = marks.saturating_add(u8::from(byte == self.decimal));
            byte == self.decimal || byte.is_ascii_digit()
        });
        (is_figure && marks <= 1 && !body.is_empty()).then_some((negative, body))
    }

    /// As [`Self::read`], of a file that nobody described: `1.000` may be a thousand that a
    /// spreadsheet grouped, where the currency has no three decimals.
    ///
    /// # Errors
    /// As [`Self::read`], and there.
    pub fn read_sure(self, text: &str, currency: Currency) -> Result<i64, Refused> {
        let minor = self.read(text, currency)?;
        let decimals = text.bytes().rev().position(|byte| byte == self.decimal);
        let is_marked = decimals.is_some_and(|decimals| decimals >= 3);
        if is_marked && currency.exponent() < 3 && decimal_of(text).is_none() {
            return Err(Refused::Ambiguous);
        }
        Ok(minor)
    }

    /// As [`Self::read_sure`], of digits and the decimal mark alone: which way the money went, the
    /// column or another field says.
    ///
    /// # Errors
    /// As [`Self::read_sure`], and where anything else stands there.
    pub fn read_unsigned(self, text: &str, currency: Currency) -> Result<i64, Refused> {
        let is_bare = text.bytes().all(|byte| byte.is_ascii_digit() || byte == self.decimal);
        if is_bare { self.read_sure(text, currency) } else { Err(Refused::NotANumber) }
    }

    /// As [`Self::read`], at `places` decimals instead of the currency's.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_at(self, text: &str, currency: Currency, places: u32) -> Result<i128, Refused> {
        let (negative, digits) = self.plain(text, currency)?;
        let fine = unsigned_at(&digits, places)?;
        Ok(if negative { fine.saturating_neg() } else { fine })
    }

    /// The sign, and digits with a point.
    fn plain(self, text: &str, currency: Currency) -> Result<(bool, String), Refused> {
        let (negative, body) = unsign(bare(text, currency));
        let body = bare(body, currency);
        // One bank groups what stands before the first figure, `-,77,65,682.30`, too.
        let grouped = body.strip_prefix(',').filter(|rest| negative && rest.contains(','));
        let body = grouped.filter(|_| self.grouped && self.decimal == b'.').unwrap_or(body);
        let mark = char::from(self.decimal);
        let (whole, fraction) = match body.rsplit_once(mark) {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (body, None),
        };
        let mut digits = if self.grouped { ungroup(whole, mark)? } else { whole.to_owned() };
        if digits.contains('.') {
            // It is neither the decimal mark nor one of thousands.
            return Err(Refused::NotANumber);
        }
        if let Some(fraction) = fraction {
            digits.push('.');
            digits.push_str(fraction);
        }
        Ok((negative, digits))
    }
}

/// The decimal mark of a file whose layout leaves it open: all of its amounts show the same, and
/// none has a mark of thousands.
#[derive(Debug, Default)]
pub struct Shown(Option<u8>);

impl Shown {
    /// Reads an amount of major units, as [`Numerals::read`].
    ///
    /// # Errors
    /// Also where its only mark may be one of thousands, or is another than that of one before it.
    pub fn read(&mut self, text: &str, currency: Currency) -> Result<i64, Refused> {
        let shown = decimal_of(text);
        if shown.is_none() && text.contains(['.', ',']) {
            return Err(Refused::Ambiguous);
        }
        let decimal = self.0.or(shown).unwrap_or(b'.');
        let minor = Numerals { decimal, grouped: false }.read(text, currency)?;
        self.0 = self.0.or(shown);
        Ok(minor)
    }
}

/// The text without blanks and the currency's own code or sign around it.
fn bare(text: &str, currency: Currency) -> &str {
    let text = text.trim();
    let sign = match currency.code() {
        "EUR" => '€',
        "GBP" => '£',
        "USD" | "CAD" | "AUD" | "NZD" | "MXN" | "SGD" | "HKD" => '$',
        "JPY" => '¥',
        "INR" => '₹',
        "UAH" => '₴',
        "TRY" => '₺',
        _none => '\0',
    };
    let text = text.trim_start_matches(sign).trim_end_matches(sign).trim();
    let is_of_crowns = matches!(currency.code(), "SEK" | "NOK" | "DKK");
    let crowns = text.strip_suffix("kr").filter(|_| is_of_crowns);
    let text = crowns.unwrap_or(text);
    let reais = text.strip_prefix("R$").filter(|_| currency.code() == "BRL");
    let text = reais.unwrap_or(text).trim();
    let code = |part: Option<&str>| part.is_some_and(|c| c.eq_ignore_ascii_case(currency.code()));
    if code(text.get(..3)) {
        return text.get(3..).unwrap_or_default().trim();
    }
    let cut = text.len().saturating_sub(3);
    if code(text.get(cut..)) {
        return text.get(..cut).unwrap_or_default().trim();
    }
    text
}

fn unsign(text: &str) -> (bool, &str) {
    if let Some(inner) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) {
        return (true, inner.trim());
    }
    for (mark, negative) in [('-', true), ('\u{2212}', true), ('+', false)] {
        let body = text.strip_prefix(mark).or_else(|| text.strip_suffix(mark));
        if let Some(body) = body {
            return (negative, body.trim());
        }
    }
    (false, text)
}

/// A whole part without its grouping, which must be by one mark, in threes; or, as in India, twos
/// before the last three. An apostrophe of another encoding may have been lost before the file
/// came.
fn ungroup(whole: &str, decimal: char) -> Result<String, Refused> {
    let is_group = |c: char| {
        c != decimal && matches!(c, '.' | ',' | '\'' | '’' | '\u{fffd}') || c.is_whitespace()
    };
    let Some(mark) = whole.chars().find(|c| is_group(*c)) else { return Ok(whole.to_owned()) };
    let groups: Vec<&str> = whole.split(mark).collect();
    let widths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    let (first, rest) = widths.split_first().ok_or(Refused::NotANumber)?;
    let (last, middle) = rest.split_last().ok_or(Refused::NotANumber)?;
    let threes = middle.iter().all(|width| *width == 3);
    let twos = mark == ',' && !middle.is_empty() && middle.iter().all(|width| *width == 2);
    let fits = (1..=3).contains(first) && *last == 3 && (threes || twos && *first <= 2);
    let digits = groups.iter().all(|group| group.bytes().all(|byte| byte.is_ascii_digit()));
    if fits && digits { Ok(groups.concat()) } else { Err(Refused::NotANumber) }
}

/// Which decimal mark a text shows, if it shows one.
pub fn decimal_of(text: &str) -> Option<u8> {
    let (_, body) = unsign(text.trim());
    let places = |mark: char| body.match_indices(mark).map(|(at, _)| at).collect::<Vec<_>>();
    let (points, commas) = (places('.'), places(','));
    match (points.as_slice(), commas.as_slice()) {
        ([.., point], [.., comma]) => match (points.len(), commas.len()) {
            (1, _) if point > comma => Some(b'.'),
            (_, 1) if comma > point => Some(b','),
            _neither => None,
        },
        ([_, _, ..], []) => Some(b','),
        ([], [_, _, ..]) => Some(b'.'),
        ([at], []) => single(body, *at, b'.'),
        ([], [at]) => single(body, *at, b','),
        ([], []) => None,
    }
}

/// One mark: three digits after it may be a group, unless what stands before cannot be one.
fn single(body: &str, at: usize, mark: u8) -> Option<u8> {
    let (before, after) = (body.get(..at)?, body.get(at.saturating_add(1)..)?);
    let after = after.bytes().take_while(u8::is_ascii_digit).count();
    let before = before.trim_start_matches(|c: char| !c.is_ascii_digit());
    let group = after == 3 && (1..=3).contains(&before.len()) && before != "0";
    (!group).then_some(mark)
}

/// Which of day and month stands first, where both are numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// `31/12/2026`.
    DayFirst,
    /// `12/31/2026`.
    MonthFirst,
    /// The file does not show it.
    Unknown,
}

/// What a text shows of the order.
pub fn order_of(text: &str) -> Option<Order> {
    let parts = parts(text);
    let [first, second, _year] = parts.as_slice() else { return None };
    if text.trim().as_bytes().get(first.len()) == Some(&b'.') && first.len() <= 2 {
        return Some(Order::DayFirst);
    }
    let (first, second) = (number(first)?, number(second)?);
    match (first, second) {
        (13..=31, 1..=12) => Some(Order::DayFirst),
        (1..=12, 13..=31) => Some(Order::MonthFirst),
        _either => None,
    }
}

/// Whether a text looks like a day, in whichever order.
pub fn is_day(text: &str) -> bool {
    day(text, Order::DayFirst).is_some() || day(text, Order::MonthFirst).is_some()
}

/// Whether a text is written as a day and is none that a calendar has: `2026-02-30`, on which banks
/// that reckon months of thirty days put interest.
pub fn is_no_day(text: &str) -> bool {
    figures(text.trim()).is_some() && !is_day(text)
}

/// The day of a text: `2026-12-31`, `2026/12/31 08:00`, `20261231`, `31.12.26`, `31 Dec 2026`,
/// `Dec 31, 2026`; and `31/12/2026` where the order is known. None where it is no day, or could
/// be two.
pub fn day(text: &str, order: Order) -> Option<NaiveDate> {
    let text = text.trim();
    if let Some([first, second, third]) = figures(text) {
        return if first.len() == 4 {
            date(first, second, third)
        } else {
            date(third, second, first)
        };
    }
    let parts = parts(text);
    let first = *parts.first()?;
    if first.len() == 8 && first.bytes().all(|b| b.is_ascii_digit()) {
        let part = |from, to| first.get(from..to);
        return date(part(0, 4)?, part(4, 6)?, part(6, 8)?);
    }
    let [first, second, third] = parts.as_slice() else { return None };
    if first.len() == 4 {
        return date(first, second, third);
    }
    if let Some(month) = month(second) {
        return date(third, month, first);
    }
    if let Some(month) = month(first) {
        return date(third, month, second);
    }
    let dotted = text.as_bytes().get(first.len()) == Some(&b'.');
    match order {
        _any if dotted => date(third, second, first),
        Order::DayFirst => date(third, second, first),
        Order::MonthFirst => date(third, first, second),
        Order::Unknown if first == second => date(third, first, second),
        Order::Unknown => None,
    }
}

/// The parts of `2026-12-31`, with or without a time behind it, and of `31.12.2026`, as they stand:
/// nearly every day of a file is written so.
fn figures(text: &str) -> Option<[&str; 3]> {
    let part = |from: usize, to: usize| {
        text.get(from..to).filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let mark = |at: usize, byte: u8| text.as_bytes().get(at) == Some(&byte);
    if mark(4, b'-') && mark(7, b'-') && (text.len() == 10 || mark(10, b' ')) {
        return Some([part(0, 4)?, part(5, 7)?, part(8, 10)?]);
    }
    if mark(2, b'.') && mark(5, b'.') && text.len() == 10 {
        return Some([part(0, 2)?, part(3, 5)?, part(6, 10)?]);
    }
    None
}

/// The first three words of digits or letters; a time after them is left out.
fn parts(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let words = words.map(|word| match word.split_once('T') {
        // The `T` of `2026-12-31T08:00`.
        Some((day, time)) if time.starts_with(|c: char| c.is_ascii_digit()) => day,
        _none => word,
    });
    words.take(3).collect()
}

fn number(text: &str) -> Option<u32> {
    (text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

fn date(year: &str, month: &str, day: &str) -> Option<NaiveDate> {
    let number_of = i32::try_from(number(year)?).ok()?;
    let year = match year.len() {
        4 => number_of,
        2 if number_of >= 80 => number_of.saturating_add(1900),
        2 => number_of.saturating_add(2000),
        _other => return None,
    };
    NaiveDate::from_ymd_opt(year, number(month)?, number(day)?).and_then(dated)
}

/// The number of a month's name in English, German, Dutch, French, Spanish or Italian.
fn month(word: &str) -> Option<&'static str> {
    if !word.chars().all(char::is_alphabetic) {
        return None;
    }
    let word = word.to_lowercase();
    let starts = |names: &[&str]| names.iter().any(|name| word.starts_with(name));
    let months: [(&str, &[&str]); 12] = [
        ("1", &["jan", "jän", "ene", "gen"]),
        ("2", &["feb", "fév", "fev"]),
        ("3", &["mar", "mär", "mrz", "maa", "mrt"]),
        ("4", &["apr", "avr", "abr"]),
        ("5", &["may", "mai", "mei", "mag"]),
        ("6", &["jun", "juin", "giu"]),
        ("7", &["jul", "juil", "lug"]),
        ("8", &["aug", "aoû", "aou", "ago"]),
        ("9", &["sep", "set"]),
        ("10", &["oct", "okt", "ott"]),
        ("11", &["nov"]),
        ("12", &["dec", "dez", "déc", "dic"]),
    ];
    let found = months.into_iter().find(|(_, names)| starts(names));
    found.map(|(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_that_one_amount_shows_is_that_of_all() {
        let currency = Currency::parse("EUR").unwrap();
        for (first, second, other) in [("12,5", "-1,25", "1.25"), ("12.5", "-1.25", "1,25")] {
            let mut shown = Shown::default();
            assert_eq!(
                [shown.read("7", currency), shown.read(first, currency)],
                [Ok(700), Ok(1250)]
            );
            assert_eq!(shown.read(second, currency), Ok(-125));
            assert_eq!(shown.read(other, currency), Err(Refused::NotANumber));
        }
        for text in ["1.000", "-1,000", "1.000,00", "1,000.00", ""] {
            assert!(Shown::default().read(text, currency).is_err(), "{text}");
        }
        let dinar = Currency::parse("KWD").unwrap();
        assert_eq!(Numerals::PLAIN.read_sure("1.000", currency), Err(Refused::Ambiguous));
        assert_eq!(Numerals::PLAIN.read_sure("1.00", currency), Ok(100));
        assert_eq!(Numerals::PLAIN.read_sure("1.000", dinar), Ok(1_000));
        let unsigned = |text: &str| Numerals::PLAIN.read_unsigned(text, currency);
        assert_eq!([unsigned("1.00"), unsigned("1000")], [Ok(100), Ok(100_000)]);
        assert_eq!(unsigned("1.000"), Err(Refused::Ambiguous));
        for text in ["-1.00", "+1.00", "(1.00)", "1.00 EUR", "1,00", ""] {
            assert_eq!(unsigned(text), Err(Refused::NotANumber), "{text}");
        }
    }

    #[test]
    fn amounts_read_as_the_files_write_them() {
        use Refused::{NotANumber, TooFine};
        let (comma, point) = (b',', b'.');
        for (text, decimal, code, want) in [
            ("1.234,56", comma, "EUR", Ok(123_456)),
            ("-1.234.567,8", comma, "EUR", Ok(-123_456_780)),
            ("1 234,56", comma, "EUR", Ok(123_456)),
            ("1\u{a0}234,56", comma, "EUR", Ok(123_456)),
            ("1'234.56", point, "CHF", Ok(123_456)),
            ("1,234.56-", point, "USD", Ok(-123_456)),
            ("(12.00)", point, "USD", Ok(-1_200)),
            ("+12.00", point, "USD", Ok(1_200)),
            ("$1,234.50", point, "USD", Ok(123_450)),
            ("-$5.00", point, "USD", Ok(-500)),
            ("-12,50 EUR", comma, "EUR", Ok(-1_250)),
            ("-12,50 €", comma, "EUR", Ok(-1_250)),
            ("1,23,456.50", point, "INR", Ok(12_345_650)),
            ("1,234", point, "JPY", Ok(1_234)),
            ("1.234", comma, "JPY", Ok(1_234)),
            ("1.234", point, "KWD", Ok(1_234)),
            ("1,23", point, "USD", Err(NotANumber)),
            ("12,34.50", point, "USD", Err(NotANumber)),
            ("1,234,56", point, "USD", Err(NotANumber)),
            ("1.234", point, "EUR", Err(TooFine)),
            ("12.00 USD", point, "EUR", Err(NotANumber)),
            ("--5", point, "EUR", Err(NotANumber)),
            ("1E5", point, "EUR", Err(NotANumber)),
            ("", point, "EUR", Err(NotANumber)),
        ] {
            let currency = Currency::parse(code).unwrap();
            let numerals = Numerals { decimal, grouped: true };
            assert_eq!(numerals.read(text, currency), want, "{text} {code}");
        }
        let dollar = Currency::parse("USD").unwrap();
        assert_eq!(Numerals::PLAIN.read("1,234.50", dollar), Err(NotANumber));
    }

    #[test]
    fn the_decimal_mark_is_what_a_text_shows() {
        for (text, want) in [
            ("1.234,56", Some(b',')),
            ("1,234.56", Some(b'.')),
            ("12,5", Some(b',')),
            ("12.50", Some(b'.')),
            ("-1234.567", Some(b'.')),
            ("0.125", Some(b'.')),
            ("1.234.567", Some(b',')),
            ("1,234,567", Some(b'.')),
            ("1.234", None),
            ("1,234", None),
            ("1234", None),
        ] {
            assert_eq!(decimal_of(text), want, "{text}");
        }
    }

    #[test]
    fn days_are_read_and_never_guessed() {
        let want = NaiveDate::from_ymd_opt(2026, 12, 3);
        for text in [
            "2026-12-03",
            "2026/12/03 00:00:00 -0800",
            "2026-12-03T08:00:00Z",
            "20261203",
            "03.12.2026",
            "3.12.26",
            "03 Dec 2026",
            "3-Dez-26",
            "Dec 3, 2026",
        ] {
            assert_eq!(day(text, Order::Unknown), want, "{text}");
        }
        assert_eq!(day("03/12/2026", Order::DayFirst), want);
        assert_eq!(day("12/03/2026", Order::MonthFirst), want);
        assert_eq!(day("03/12/2026", Order::Unknown), None);
        for text in ["", "x", "31.02.2026", "2026-13-01", "Rewe 12", "1", "12345678901"] {
            assert!(!is_day(text), "{text}");
        }
        assert_eq!(order_of("13/02/2026"), Some(Order::DayFirst));
        assert_eq!(order_of("02/13/2026"), Some(Order::MonthFirst));
        assert_eq!(order_of("02/03/2026"), None);
    }
}
