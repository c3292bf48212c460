//! Tags that are nearly a row's: another case, other marks, cut short, padded, or masked as a card
//! number.
//!
//! A near miss is no find. It stops a hand-back, since the object may well be the row's. Whether
//! the near tag belongs to another row of the table is the caller's to say.

use std::collections::{BTreeMap, HashMap};

/// A shorter piece of a tag is no truncation: short ids are pieces of each other all the time.
const TRUNCATED_MIN: usize = 8;

/// What stands for the digits of a card number.
const MASK: char = '*';

/// A single one is a mark like any other: a card number has at least nine digits hidden.
const MASKED: &str = "**";

/// So many characters at a masked text's end are its own.
const UNMASKED: usize = 4;

/// The tags asked for, ready to be compared with those that arrive.
#[derive(Debug, Default)]
pub struct NearTags {
    /// By each of its forms.
    plain: HashMap<String, Vec<u32>>,
    /// The same, in order: a truncated tag stands right before the whole one.
    sorted: BTreeMap<String, Vec<u32>>,
    /// By what a mask leaves of it, with the form.
    left: HashMap<(usize, String), Vec<(String, u32)>>,
}

impl NearTags {
    /// Adds the tag of a question.
    pub fn add(&mut self, tag: &str, question: u32) {
        for form in forms(tag) {
            self.plain.entry(form.clone()).or_default().push(question);
            self.left.entry(left_of(&form)).or_default().push((form.clone(), question));
            self.sorted.entry(form).or_default().push(question);
        }
    }

    /// The questions whose tag is nearly `seen`. Exact equals are not looked for here.
    pub fn near(&self, seen: &str) -> Vec<u32> {
        let mut questions = Vec::new();
        for form in forms(seen).into_iter().filter(|form| !form.is_empty()) {
            self.near_form(&form, &mut questions);
        }
        questions.sort_unstable();
        questions.dedup();
        questions
    }

    fn near_form(&self, seen: &str, questions: &mut Vec<u32>) {
        questions.extend(self.plain.get(seen).into_iter().flatten());
        if seen.chars().count() >= TRUNCATED_MIN {
            let longer = self.sorted.range(seen.to_owned()..);
            let cut = longer.take_while(|(whole, _)| whole.starts_with(seen));
            questions.extend(cut.filter(|(whole, _)| **whole != seen).flat_map(|(_, q)| q));
        }
        if seen.contains(MASK) {
            let alike = self.left.get(&left_of(seen)).into_iter().flatten();
            let hidden = alike.filter(|(tag, _)| may_hide(seen, tag));
            questions.extend(hidden.map(|(_, question)| *question));
        }
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

/// What is compared of a tag: its plain form, and where it has marks, that without them; each also
/// without the zeros that fill up the numbers within it.
fn forms(tag: &str) -> Vec<String> {
    let plain = plain_form(tag);
    let bare = without_marks(&plain);
    let short = unpadded(&plain);
    let bare_short = without_marks(&short);
    let mut forms = vec![plain];
    for form in [bare, short, bare_short] {
        if !form.is_empty() && !forms.contains(&form) {
            forms.push(form);
        }
    }
    forms
}

/// Every number in it without leading zeros: of `order-0012` it is `order-12`.
fn unpadded(plain: &str) -> String {
    let mut short = String::with_capacity(plain.len());
    let mut letters = plain.chars().peekable();
    let mut is_within = false;
    while let Some(letter) = letters.next() {
        let goes_on = letters.peek().is_some_and(char::is_ascii_digit);
        if letter == '0' && !is_within && goes_on {
            continue;
        }
        is_within = letter.is_ascii_digit();
        short.push(letter);
    }
    short
}

/// Lower case, without blanks, quotes and control characters around it, and without the leading
/// zeros of a number.
fn plain_form(tag: &str) -> String {
    let is_padding = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | '\'');
    without_zeros(tag.trim_matches(is_padding).to_lowercase())
}

/// Letters and digits alone, as those leave them who take no others, or put others in their place;
/// what hides digits stays.
fn without_marks(plain: &str) -> String {
    let is_masked = plain.contains(MASKED);
    let is_kept = |c: &char| c.is_alphanumeric() || (is_masked && *c == MASK);
    without_zeros(plain.chars().filter(is_kept).collect())
}

fn without_zeros(text: String) -> String {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if is_number { text.trim_start_matches('0').to_owned() } else { text }
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
    fn zeros_that_fill_up_a_number_are_near_wherever_it_stands() {
        let mut tags = NearTags::default();
        for (index, tag) in ["ORDER-12", "ord0012", "X-1", "a00b-10-07"].iter().enumerate() {
            tags.add(tag, u32::try_from(index).unwrap());
        }
        for (seen, rows) in [
            ("ORDER-0012", vec![0]),
            ("order0012", vec![0]),
            ("ORD12", vec![1]),
            ("x-01", vec![2]),
            ("X01", vec![2]),
            ("a0b-10-7", vec![3]),
            ("ORDER-120", vec![]),
            ("ORDER-102", vec![]),
            ("X-10", vec![]),
            ("a0b-1-7", vec![]),
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
    #[test]
    fn other_marks_are_near() {
        let mut tags = NearTags::default();
        let own = ["ee-5", "AB-77", "order-100045", "INV-2026-77", "00-42", "---", "-*-", "5001"];
        for (index, tag) in own.iter().enumerate() {
            tags.add(tag, u32::try_from(index).unwrap());
        }
        for (seen, rows) in [
            ("ee5", vec![0]),
            ("EE_5", vec![0]),
            ("ee 5", vec![0]),
            ("ee*5", vec![0]),
            ("ee-50", vec![]),
            ("e5", vec![]),
            ("ab77", vec![1]),
            ("AB/77", vec![1]),
            ("order_100045", vec![2]),
            ("order100045", vec![2]),
            ("order_1000", vec![2]),
            ("order_100046", vec![]),
            ("INV 2026/77", vec![3]),
            ("inv202677", vec![3]),
            ("42", vec![4]),
            // Nothing is left of it, and a mark is no tag.
            ("---", vec![5]),
            ("-", vec![]),
            ("*", vec![]),
            // What hides digits is no mark: these four may be those of any number.
            ("************5001", vec![]),
        ] {
            assert_eq!(tags.near(seen), rows, "{seen:?}");
        }
    }
}
