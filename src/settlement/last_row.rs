//! The last row of a file whose last line does not end: was the file cut within it? The rows
//! before it tell what such a row looks like. What cannot be told is taken for cut, where it would
//! be another amount, another day, or another status.

use crate::model::money::Currency;
use crate::model::settlement::Problem;
use crate::settlement::numeral::is_day;
use crate::settlement::sheet::{Row, normal};

/// What the last column is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Last {
    /// An amount, whose decimals follow this mark; none: minor units.
    Money(Option<u8>),
    /// A day.
    Day,
    /// A word for what was booked.
    Status,
    /// A word that another may begin with, or an amount or code that is not there.
    Unsure,
    /// Something else.
    Other,
}

/// What the rows so far have at both their ends.
#[derive(Debug, Default)]
pub struct Ends {
    rows: u64,
    width: usize,
    /// Rows with a text in the last column; of these texts, the fewest characters, the most digits
    /// at their ends, the decimals of all of them.
    filled: u64,
    shortest: usize,
    digits: usize,
    decimals: Option<usize>,
    /// One ended in something else than a digit.
    is_marked: bool,
    is_coded: bool,
    /// One of the first fields has a letter: words below the rows look like any of them.
    is_worded: bool,
    /// The bank's disclaimer began below the rows.
    is_disclaimed: bool,
    /// What the first fields have in common, and the last of them.
    common: String,
    first: String,
}

fn digits_at_end(text: &str) -> usize {
    text.bytes().rev().take_while(u8::is_ascii_digit).count()
}

fn decimals_of(text: &str, mark: Option<u8>) -> usize {
    let Some((_, fraction)) = mark.and_then(|mark| text.rsplit_once(char::from(mark))) else {
        return 0;
    };
    fraction.bytes().take_while(u8::is_ascii_digit).count()
}

fn ends_in_digit(text: &str) -> bool {
    text.ends_with(|c: char| c.is_ascii_digit())
}

/// Whether a text may be the begin of one that is written as `whole`, which has digits.
fn is_begin(text: &str, whole: &str) -> bool {
    let alike = |(a, b): (char, char)| {
        a == b || a.is_ascii_digit() && b.is_ascii_digit() || a.is_alphabetic() && b.is_alphabetic()
    };
    whole.contains(|c: char| c.is_ascii_digit())
        && text.chars().count() <= whole.chars().count()
        && text.chars().zip(whole.chars()).all(alike)
}

impl Ends {
    /// How many fields the widest row has.
    pub fn width(&self) -> usize {
        self.width
    }

    /// A whole row; `at` is its last column.
    pub fn add(&mut self, row: &Row<'_>, at: usize, last: Last) {
        let text = row.get(at);
        if !text.is_empty() {
            let count = text.chars().count();
            let decimals = match last {
                Last::Money(mark) => decimals_of(text, mark),
                _other => 0,
            };
            let is_first = self.filled == 0;
            self.shortest = if is_first { count } else { self.shortest.min(count) };
            self.digits = self.digits.max(digits_at_end(text));
            // Of rows that differ none is alike.
            let same = is_first || self.decimals == Some(decimals);
            self.decimals = Some(decimals).filter(|_| same);
            self.is_marked |= !ends_in_digit(text);
            self.is_coded = (is_first || self.is_coded) && Currency::parse_any(text).is_ok();
            self.filled = self.filled.saturating_add(1);
        }
        let first = row.get(0);
        self.is_worded |= first.contains(char::is_alphabetic);
        if self.rows == 0 {
            first.clone_into(&mut self.common);
        } else {
            let same = self.common.chars().zip(first.chars()).take_while(|(a, b)| a == b);
            let length: usize = same.map(|(c, _)| c.len_utf8()).sum();
            self.common.truncate(length);
        }
        first.clone_into(&mut self.first);
        self.width = self.width.max(row.width());
        self.rows = self.rows.saturating_add(1);
    }

    /// Takes in a row below the others that moves nothing: what one bank says below its word for
    /// that, in a sentence, ends its file without the end of a line.
    pub fn note_below(&mut self, row: &Row<'_>) {
        self.is_disclaimed |= normal(row.get(0)) == "disclaimer";
    }

    /// What is wrong with the last row, whose line does not end, where it may have been cut in its
    /// last column `at`; `name` is that column's, `places` the most decimals of an amount.
    pub fn cut(
        &self,
        row: &Row<'_>,
        at: usize,
        last: Last,
        places: u32,
        name: &str,
    ) -> Option<Problem> {
        if !row.is_open() || row.width() > at.saturating_add(1) {
            return None;
        }
        let text = row.get(at);
        let is_cut = match last {
            // Where no header says how many fields a row has, all others do.
            _any if row.width() <= at => true,
            Last::Status => text.is_empty() && self.filled > 0,
            Last::Unsure => !text.is_empty() || self.filled > 0 || self.rows == 0,
            _any if text.is_empty() => false,
            Last::Money(mark) => !self.is_whole_amount(text, mark, places),
            Last::Day => !self.is_whole_day(text),
            Last::Other => self.filled > 0 && self.is_coded && text.chars().count() < 3,
        };
        let expected = format!(
            "a whole row, and the end of its line: nothing shows whether {name} is whole here"
        );
        is_cut.then(|| Problem::error(row.line, "last row", expected, format!("{name}: {text}")))
    }

    /// A figure more would be too many decimals, or all others have as many.
    pub fn is_whole_amount(&self, text: &str, mark: Option<u8>, places: u32) -> bool {
        let decimals = decimals_of(text, mark);
        let most = usize::try_from(places).unwrap_or(0);
        let is_full = decimals >= most || self.filled > 0 && self.decimals == Some(decimals);
        decimals > 0 && is_full && !(self.is_marked && ends_in_digit(text))
    }

    /// `2026-11-1`, `13.11.20`: as long as the others, with as many figures at the end.
    fn is_whole_day(&self, text: &str) -> bool {
        if !text.contains(|c: char| c.is_ascii_digit()) {
            return true;
        }
        if self.filled > 0 {
            return text.chars().count() >= self.shortest && digits_at_end(text) >= self.digits;
        }
        let year_first = text.bytes().take_while(u8::is_ascii_digit).count() >= 4;
        digits_at_end(text) >= if year_first { 2 } else { 4 }
    }

    /// Whether a last row in fewer fields, which has no amount, is the begin of one, and no words
    /// below the rows. Where its last field ends with its own quote, words may stand in several;
    /// where rows begin with words, nothing tells those of a row from others, and a reference in
    /// quotes is none of those below.
    pub fn is_begun(&self, row: &Row<'_>) -> bool {
        if self.is_disclaimed {
            return false;
        }
        let first = row.get(0);
        let is_sentence = (1..row.width()).all(|at| row.field(at).starts_with(' '));
        if row.width() > 1 && !is_sentence && row.is_open() {
            return true;
        }
        if first.is_empty() {
            return false;
        }
        let has_digit = first.contains(|c: char| c.is_ascii_digit());
        let is_reference = has_digit && !first.contains(char::is_whitespace);
        if self.is_worded && (row.is_open() || row.is_last() && is_reference) {
            return true;
        }
        if self.rows == 0 {
            return is_reference;
        }
        let common = self.common.as_str();
        let goes_on = common.chars().count() > 2 && first.starts_with(common);
        let is_alike = goes_on || common.starts_with(first);
        // Of a day that begins with its year, the first figure is known.
        let year_first = digits_at_end(self.first.get(..4).unwrap_or_default()) == 4;
        let is_other = year_first && is_day(&self.first) && first.get(..1) != self.first.get(..1);
        is_alike || is_begin(first, &self.first) && !is_other
    }
}
