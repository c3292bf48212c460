//! One cell of a CSV file, and how each dialect writes it.
//!
//! What is stored stays as it is: escaping happens here, at output, and only in the dialects for
//! spreadsheets, where it is counted. Amounts are exact decimals and are never escaped.

use std::borrow::Cow;

use chrono::SecondsFormat;
use chrono_tz::Tz;

use crate::model::money::{Currency, decimal_text};
use crate::model::time::{Instant, to_text};

/// How CSV is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Dialect {
    /// RFC 4180: comma, no byte order mark, every cell as it is.
    #[default]
    Plain,
    /// For a spreadsheet that reads commas and decimal points: byte order mark, escaped.
    Excel,
    /// For a spreadsheet that reads semicolons and decimal commas.
    ExcelEu,
}

impl Dialect {
    /// All.
    pub const ALL: [Self; 3] = [Self::Plain, Self::Excel, Self::ExcelEu];

    /// The word of `--dialect` and of the manifest.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "rfc4180",
            Self::Excel => "excel",
            Self::ExcelEu => "excel-eu",
        }
    }

    /// Reads the word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.as_str() == text)
    }

    /// Between cells.
    pub fn delimiter(self) -> u8 {
        match self {
            Self::Plain | Self::Excel => b',',
            Self::ExcelEu => b';',
        }
    }

    /// Between whole and fraction.
    pub fn decimal_mark(self) -> char {
        match self {
            Self::Plain | Self::Excel => '.',
            Self::ExcelEu => ',',
        }
    }

    /// Whether spreadsheets read it: with byte order mark and escaping.
    pub fn is_for_spreadsheets(self) -> bool {
        match self {
            Self::Plain => false,
            Self::Excel | Self::ExcelEu => true,
        }
    }
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// Nothing known: an empty cell.
    Null,
    /// Text from outside: escaped where the dialect escapes.
    Text(String),
    /// A word of tieout's own, a hash or a time: never escaped.
    Word(String),
    /// A whole number.
    Int(i128),
    /// Minor units, written as a decimal of this many places.
    Amount(i128, u32),
}

impl Cell {
    /// Text from outside.
    pub fn text(text: &str) -> Self {
        if text.is_empty() { Self::Null } else { Self::Text(text.to_owned()) }
    }

    /// Text from outside, where there is one.
    pub fn text_of(text: Option<&str>) -> Self {
        text.map_or(Self::Null, Self::text)
    }

    /// A word of tieout's own.
    pub fn word(word: &str) -> Self {
        if word.is_empty() { Self::Null } else { Self::Word(word.to_owned()) }
    }

    /// A whole number.
    pub fn int(number: impl Into<i128>) -> Self {
        Self::Int(number.into())
    }

    /// A whole number, where there is one.
    pub fn int_of(number: Option<impl Into<i128>>) -> Self {
        number.map_or(Self::Null, Self::int)
    }

    /// An instant: RFC 3339, `Z`, six digits.
    pub fn at(at: Option<Instant>) -> Self {
        at.map_or(Self::Null, |at| Self::Word(to_text(at)))
    }

    /// The instant on the clock of the business, with its offset.
    pub fn local(at: Option<Instant>, zone: Tz) -> Self {
        at.map_or(Self::Null, |at| {
            Self::Word(at.with_timezone(&zone).to_rfc3339_opts(SecondsFormat::Secs, false))
        })
    }

    /// A case's number on screens: never numeric-looking.
    pub fn case(number: Option<i64>) -> Self {
        number.map_or(Self::Null, |number| Self::Word(format!("C-{number}")))
    }

    /// An amount twice: as a decimal of the currency's scale, and in minor units. Both are empty
    /// where there is no currency: an amount that could not be read is not zero.
    pub fn money(currency: &str, minor: Option<i128>) -> [Self; 2] {
        match (minor, Currency::parse(currency)) {
            (Some(minor), Ok(known)) => [Self::Amount(minor, known.exponent()), Self::Int(minor)],
            (Some(_) | None, Ok(_) | Err(_)) => [Self::Null, Self::Null],
        }
    }

    /// [`Cell::money`] of a sum, which is zero where nothing could be read.
    pub fn sum(currency: &str, minor: i128) -> [Self; 2] {
        let exponent = Currency::parse(currency).map_or(0, |known| known.exponent());
        [Self::Amount(minor, exponent), Self::Int(minor)]
    }

    /// The text of the cell before quoting, and whether it had to be escaped.
    pub fn render(&self, dialect: Dialect) -> (Cow<'_, str>, bool) {
        match self {
            Self::Null => (Cow::Borrowed(""), false),
            Self::Word(word) => (Cow::Borrowed(word), false),
            Self::Int(number) => (Cow::Owned(number.to_string()), false),
            Self::Amount(minor, exponent) => {
                let text = decimal_text(*minor, *exponent);
                let text = match dialect.decimal_mark() {
                    '.' => text,
                    mark => text.replace('.', mark.encode_utf8(&mut [0; 4])),
                };
                (Cow::Owned(text), false)
            }
            Self::Text(text) if dialect.is_for_spreadsheets() && would_change(text) => {
                (Cow::Owned(format!("'{text}")), true)
            }
            Self::Text(text) => (Cow::Borrowed(text), false),
        }
    }
}

/// Writes one record with CRLF; returns how many cells had to be escaped.
pub fn encode(cells: &[Cell], dialect: Dialect, out: &mut Vec<u8>) -> u64 {
    let mut escaped = 0_u64;
    for (index, cell) in cells.iter().enumerate() {
        if index > 0 {
            out.push(dialect.delimiter());
        }
        let (text, was_escaped) = cell.render(dialect);
        escaped = escaped.saturating_add(u64::from(was_escaped));
        quote(&text, dialect.delimiter(), out);
    }
    out.extend_from_slice(b"\r\n");
    escaped
}

fn quote(text: &str, delimiter: u8, out: &mut Vec<u8>) {
    let is_special = |byte: u8| byte == delimiter || matches!(byte, b'"' | b'\r' | b'\n');
    if !text.bytes().any(is_special) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    for byte in text.bytes() {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// Whether a spreadsheet would run the text, or show another one than it was given. A text that
/// begins with the mark of escaping itself counts too, so that one mark can always be taken off.
fn would_change(text: &str) -> bool {
    text.starts_with('\'') || would_run(text) || reads_as_number(text) || reads_as_month(text)
}

/// Whether a spreadsheet takes the text for a formula: by its first letter, or by the first one
/// behind blanks and letters without width, which some of them cut off.
pub(super) fn would_run(text: &str) -> bool {
    let behind_blanks = text.trim_start_matches(['\u{feff}', ' ']);
    behind_blanks.starts_with(['\t', '\r', '\n', '\0'])
        || text.trim_start_matches(is_unseen).starts_with(begins_formula)
        || text.contains('\0')
}

/// Where East Asian text is typed, the wide and the small forms of the signs begin one, too; so
/// does the minus sign of mathematics.
fn begins_formula(letter: char) -> bool {
    matches!(
        letter,
        '=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠' | '﹦' | '﹢' | '﹣' | '﹫' | '\u{2212}'
    )
}

/// Blanks of all scripts, what takes no room (soft hyphens, joiners, marks of direction, of byte
/// order and of variation, tags), letters that are drawn as blanks, and those that nobody but a
/// private font draws.
fn is_unseen(letter: char) -> bool {
    letter.is_whitespace() || takes_no_room(letter) || is_drawn_blank(letter)
}

fn takes_no_room(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Fillers of Hangul, the blank of Braille, private use.
fn is_drawn_blank(letter: char) -> bool {
    matches!(
        letter,
        '\u{115f}'..='\u{1160}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{ffa0}'
            | '\u{e000}'..='\u{f8ff}'
            | '\u{f0000}'..='\u{10ffff}'
    )
}

/// Leading zeros, more digits than a double holds, and all that looks like a decimal, a date, a
/// time or a power: a spreadsheet keeps the value and loses the text.
fn reads_as_number(text: &str) -> bool {
    let text = text.trim();
    if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
        return true;
    }
    let is_digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if is_digits {
        return text.len() > 15 || (text.len() > 1 && text.starts_with('0'));
    }
    text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '('))
        && text.contains(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || " .,:/-+eE%()".contains(c))
}

/// `MAR1`, `1-Mar`, `3 mai 2026`: months in the languages of the dialects.
fn reads_as_month(text: &str) -> bool {
    const MONTHS: [&str; 25] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "mai",
        "mrz", "okt", "dez", "fev", "avr", "juin", "juil", "aou", "janv", "fevr", "mars", "sept",
    ];
    let lower = text.to_lowercase().replace(['é', 'è'], "e").replace(['û', 'ü'], "u");
    let letters: String = lower.chars().filter(|c| c.is_alphabetic()).collect();
    let is_plain = lower.chars().all(|c| c.is_alphanumeric() || " .-/".contains(c));
    let has_digit = lower.bytes().any(|b| b.is_ascii_digit());
    let is_month = MONTHS.iter().any(|m| letters == *m) || letters.starts_with("märz");
    is_plain && has_digit && lower.chars().count() <= 16 && is_month
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(cells: &[Cell], dialect: Dialect) -> String {
        let mut out = Vec::new();
        encode(cells, dialect, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn cells_are_quoted_only_where_they_must_be() {
        for (text, want) in [
            ("plain", "plain\r\n"),
            ("a,b", "\"a,b\"\r\n"),
            ("a;b", "a;b\r\n"),
            ("say \"hi\"", "\"say \"\"hi\"\"\"\r\n"),
            ("two\r\nlines", "\"two\r\nlines\"\r\n"),
            ("one\nmore", "\"one\nmore\"\r\n"),
            (" blanks ", " blanks \r\n"),
            ("Ünïcødé €", "Ünïcødé €\r\n"),
            ("", "\r\n"),
        ] {
            assert_eq!(line(&[Cell::text(text)], Dialect::Plain), want, "{text:?}");
        }
        assert_eq!(line(&[Cell::text("a;b")], Dialect::ExcelEu), "\"a;b\"\r\n");
    }

    #[test]
    fn amounts_have_their_currencys_scale_and_the_dialects_mark() {
        for (currency, minor, dialect, want) in [
            ("EUR", 1999, Dialect::Plain, "19.99,1999\r\n"),
            ("EUR", -5, Dialect::Excel, "-0.05,-5\r\n"),
            ("EUR", 1999, Dialect::ExcelEu, "19,99;1999\r\n"),
            ("JPY", 310_000, Dialect::ExcelEu, "310000;310000\r\n"),
            ("BHD", 5, Dialect::Plain, "0.005,5\r\n"),
            ("", 0, Dialect::Plain, ",\r\n"),
        ] {
            assert_eq!(line(&Cell::money(currency, Some(minor)), dialect), want, "{currency}");
        }
    }

    #[test]
    fn spreadsheets_get_what_they_would_run_or_change_as_text() {
        for text in [
            "=cmd|' /C calc'!A0",
            "+1",
            "-5",
            "@SUM(A1)",
            "\tx",
            "\rx",
            "\nx",
            " =1",
            "\u{feff}=1",
            "＝1+1",
            "＋1",
            "－5",
            "＠SUM(A1)",
            "﹦1",
            "\u{a0}=1",
            "\u{3000}＝1",
            " \u{2009}\u{a0}+1",
            "\u{200b}@x",
            "\u{2028}-x",
            "\u{feff}\u{a0}\t=1",
            "\u{34f}=1",
            "\u{fe0f}+1",
            "\u{115f}-1",
            "\u{3164}@x",
            "\u{ffa0}=1",
            "\u{2800}=1",
            "\u{e000}=1",
            "\u{f8ff}＝1",
            "\u{10fffd}=1",
            "\u{e0001}\u{e0041}=1",
            "\u{2800} \u{200b}\u{fe0f}=1",
            "\u{2212}5",
            "\u{3164}\u{2212}5",
            "'quoted",
            "00123",
            "1234567890123456",
            "1E5",
            "3-4",
            "2026-11-19",
            "12:30",
            "1.5",
            "1,5",
            ".5",
            "5 %",
            "(5)",
            "TRUE",
            "false",
            "MAR1",
            "1-Mrz",
            "3 mai 2026",
        ] {
            let cell = Cell::text(text);
            let (rendered, escaped) = cell.render(Dialect::Excel);
            assert!(escaped, "{text:?}");
            assert_eq!(rendered, format!("'{text}"), "{text:?}");
            assert_eq!(Cell::text(text).render(Dialect::Plain), (text.into(), false));
        }
    }

    #[test]
    fn spreadsheets_get_other_text_as_it_is() {
        for text in ["8812", "0", "pi_3Q", "pay_8812", "a=b", "x-1", "May", "C-12", "acme/7", "é"]
        {
            assert_eq!(Cell::text(text).render(Dialect::Excel), (text.into(), false));
        }
        for text in [
            "\u{a0}pay",
            "\u{3000}山田",
            "a＝b",
            "全角－x",
            "\u{200b}8812",
            "\u{e000}pay",
            "\u{115f}\u{1161}",
            "❤\u{fe0f} =1",
            "⠓⠑⠇⠇⠕\u{2800}-x",
            "한글=1",
            "x\u{2212}1",
            "☎\u{fe0f}+49",
        ] {
            assert_eq!(Cell::text(text).render(Dialect::Excel), (text.into(), false), "{text:?}");
        }
        assert!(!Cell::Amount(-5, 2).render(Dialect::Excel).1, "amounts are never escaped");
    }

    #[test]
    fn instants_have_a_twin_on_the_clock_of_the_business() {
        let at = crate::model::time::from_text("2026-10-25T00:30:00.123456Z");
        let zone = chrono_tz::Europe::Berlin;
        assert_eq!(Cell::at(at), Cell::Word("2026-10-25T00:30:00.123456Z".into()));
        assert_eq!(Cell::local(at, zone), Cell::Word("2026-10-25T02:30:00+02:00".into()));
        let later = crate::model::time::from_text("2026-10-25T01:30:00Z");
        assert_eq!(Cell::local(later, zone), Cell::Word("2026-10-25T02:30:00+01:00".into()));
    }

    #[test]
    fn dialects_read_back() {
        for dialect in Dialect::ALL {
            assert_eq!(Dialect::parse(dialect.as_str()), Some(dialect));
        }
        assert_eq!(Dialect::parse("tsv"), None);
    }
}
