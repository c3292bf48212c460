//! Tags that are nearly a row's: another case, cut short, padded.
//!
//! A near miss is no find. It stops a hand-back, since the object may well be the row's. Whether
//! the near tag belongs to another row of the table is the caller's to say.

use std::collections::{BTreeMap, HashMap};

/// A shorter piece of a tag is no truncation: short ids are pieces of each other all the time.
const TRUNCATED_MIN: usize = 8;

/// The tags asked for, ready to be compared with those that arrive.
#[derive(Debug, Default)]
pub struct NearTags {
    /// By plain form.
    plain: HashMap<String, Vec<u32>>,
    /// The same, in order: a truncated tag stands right before the whole one.
    sorted: BTreeMap<String, Vec<u32>>,
}

impl NearTags {
    /// Adds the tag of a question.
    pub fn add(&mut self, tag: &str, question: u32) {
        let plain = plain_form(tag);
        self.plain.entry(plain.clone()).or_default().push(question);
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
        questions.sort_unstable();
        questions.dedup();
        questions
    }
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
