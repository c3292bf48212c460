//! Tags that are nearly a row's: another case, cut short, padded, or masked as a card number.
//!
//! A near miss is no find. It stops a hand-back, since the object may well be the row's. Whether
//! the near tag belongs to another row of the table is the caller's to say.

use std::collections::{BTreeMap, HashMap};

/// A shorter piece of a tag is no truncation: short ids are pieces of each other all the time.
const TRUNCATED_MIN: usize = 8;

/// What stands for the digits of a card number.
const MASK: char = '*';

/// So many characters at a masked text's end are its own.
const UNMASKED: usize = 4;

/// The tags asked for, ready to be compared with those that arrive.
#[derive(Debug, Default)]
pub struct NearTags {
    /// By plain form.
    plain: HashMap<String, Vec<u32>>,
    /// The same, in order: a truncated tag stands right before the whole one.
    sorted: BTreeMap<String, Vec<u32>>,
    /// By what a mask leaves of it, with the plain form.
    left: HashMap<(usize, String), Vec<(String, u32)>>,
}

impl NearTags {
    /// Adds the tag of a question.
    pub fn add(&mut self, tag: &str, question: u32) {
        let plain = plain_form(tag);
        self.plain.entry(plain.clone()).or_default().push(question);
        self.left.entry(left_of(&plain)).or_default().push((plain.clone(), question));
        self.sorted.entry(plain).or_default().push(question);
    }

    /// The questions whose tag is nearly `seen`. Exact equals are not looked for here.
    pub fn near(&self, seen: &str) -> Vec<u32> {
        let plain = plain_form(seen);
        if plain.is_empty() {
            return Vec::new();
        }
        let mut questions = self.plain.get(&plain).cloned().unwrap_or_default();
        if plain.chars().count() >= TRUNCATED_MIN {
            let longer = self.sorted.range(plain.clone()..);
            let cut = longer.take_while(|(whole, _)| whole.starts_with(&plain));
            questions.extend(cut.filter(|(whole, _)| **whole != plain).flat_map(|(_, q)| q));
        }
        if plain.contains(MASK) {
            let alike = self.left.get(&left_of(&plain)).into_iter().flatten();
            let hidden = alike.filter(|(tag, _)| may_hide(&plain, tag));
            questions.extend(hidden.map(|(_, question)| *question));
        }
        questions.sort_unstable();
        questions.dedup();
        questions
    }
}

/// The length and the end of a text.
fn left_of(plain: &str) -> (usize, String) {
    (plain.chars().count(), plain.chars().rev().take(UNMASKED).collect())
}

/// Whether a masked text may have been this tag of the same length.
fn may_hide(masked: &str, tag: &str) -> bool {
    let mut both = masked.chars().zip(tag.chars());
    both.all(|(seen, own)| seen == own || (seen == MASK && own.is_ascii_digit()))
}

/// Lower case, without blanks, quotes and control characters around it, and without the leading
/// zeros of a number.
fn plain_form(tag: &str) -> String {
    let is_padding = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | '\'');
    let lower = tag.trim_matches(is_padding).to_lowercase();
    let is_number = !lower.is_empty() && lower.bytes().all(|b| b.is_ascii_digit());
    if is_number { lower.trim_start_matches('0').to_owned() } else { lower }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_mask_hides_is_near() {
        let mut tags = NearTags::default();
        for (index, tag) in ["pay_4111111111111111", "4111111111111111"].iter().enumerate() {
            tags.add(tag, u32::try_from(index).unwrap());
        }
        for (seen, rows) in [
            ("pay_************1111", vec![0]),
            ("PAY_************1111", vec![0]),
            ("************1111", vec![1]),
            ("************1112", vec![]),
            ("***********1111", vec![]),
            ("ord_************1111", vec![]),
        ] {
            assert_eq!(tags.near(seen), rows, "{seen:?}");
        }
    }

    #[test]
    fn case_truncation_and_padding_are_near() {
        let mut tags = NearTags::default();
        for (index, tag) in ["Row-ABC-123", "42", "pay_0192f0c4-7a0b", "0007"].iter().enumerate() {
            tags.add(tag, u32::try_from(index).unwrap());
        }
        for (seen, rows) in [
            ("row-abc-123", vec![0]),
            (" Row-ABC-123\n", vec![0]),
            ("\"Row-ABC-123\"", vec![0]),
            ("Row-ABC-12", vec![0]),
            ("Row-AB", vec![]),
            ("Row-ABC-1234", vec![]),
            ("00042", vec![1]),
            ("4", vec![]),
            ("7", vec![3]),
            ("pay_0192f0c4", vec![2]),
            ("", vec![]),
            ("  ", vec![]),
        ] {
            assert_eq!(tags.near(seen), rows, "{seen:?}");
        }
    }
}
