//! Which of a line's references may be a row's tag, and what must not be kept of any of them.
//!
//! A bank's line carries half a dozen references, and one of them is the merchant's own. They are
//! tried in an order; free text is searched only by patterns that the configuration gives. A card
//! number never belongs into a reference: its digits are masked before anything is kept.

use std::borrow::Cow;

use regex::{Captures, Regex};

use crate::model::card::masked;
use crate::model::settlement::{Line, Tag, TagKind};

/// The order in which references are taken for tags, where the configuration says no other.
pub const ORDER: [TagKind; 11] = [
    TagKind::MerchantReference,
    TagKind::EndToEndId,
    TagKind::OrderId,
    TagKind::InstructionId,
    TagKind::CustomerReference,
    TagKind::Custom,
    TagKind::CreditorReference,
    TagKind::PaymentId,
    TagKind::ChargeId,
    TagKind::RefundId,
    TagKind::Trace,
];

/// A kind of reference by its word, where it is one of these.
///
/// # Errors
/// With the words that there are.
pub fn tag_kind(word: &str, known: &[TagKind]) -> Result<TagKind, String> {
    let kind = TagKind::parse(word).filter(|kind| known.contains(kind));
    kind.ok_or_else(|| {
        let words: Vec<&str> = known.iter().map(|kind| kind.as_str()).collect();
        format!("`{word}`: expected one of {}", words.join(", "))
    })
}

/// What banks write where there is no reference, in letters and digits alone.
const BLANK: [&str; 3] = ["", "NOTPROVIDED", "NONREF"];

/// What MT940's texts say besides: `EREF` and its like stand in `:61:` where the reference itself
/// is in `:86:`.
const BLANK_IN_MT940: [&str; 7] =
    ["KREF", "EREF", "PREF", "MARF", "MREF", "NICHTANGEGEBEN", "NOREF"];

/// What people write besides who fill in what is no reference.
const NO_TAG: [&str; 2] = ["NONE", "NICHTANGEGEBEN"];

/// Whether a text stands for no reference.
pub fn is_blank(reference: &str) -> bool {
    BLANK.iter().any(|word| is_word(reference, word))
}

/// The same, of a text of MT940.
pub fn is_blank_in_mt940(reference: &str) -> bool {
    is_blank(reference) || BLANK_IN_MT940.iter().any(|word| is_word(reference, word))
}

/// Whether a text may be the id of anything: not what stands for none, nor noughts alone.
pub fn names_something(text: &str) -> bool {
    !is_no_tag(text) && text.chars().any(|c| c.is_alphanumeric() && c != '0')
}

/// Whether no row can be known by a text.
fn is_no_tag(text: &str) -> bool {
    is_blank(text) || NO_TAG.iter().any(|word| is_word(text, word))
}

/// The same letters and digits, in whatever case and whatever marks and blanks stand between.
fn is_word(text: &str, word: &str) -> bool {
    let mut plain = text.bytes().filter(|b| !b.is_ascii() || b.is_ascii_alphanumeric());
    let same = word.bytes().all(|b| plain.next().is_some_and(|a| a.to_ascii_uppercase() == b));
    same && plain.next().is_none()
}

/// Which references may be a tag. Two that hold the same words are the same.
#[derive(Debug, Clone)]
pub struct TagRules {
    /// Kinds, the likeliest first.
    pub order: Vec<TagKind>,
    /// Where a tag stands within a longer text: the kind of reference, and a pattern with one
    /// capture group. They come after the kinds.
    pub patterns: Vec<(TagKind, Regex)>,
}

impl PartialEq for TagRules {
    fn eq(&self, other: &Self) -> bool {
        let words = |rules: &Self| -> Vec<(TagKind, String)> {
            rules.patterns.iter().map(|(kind, regex)| (*kind, regex.to_string())).collect()
        };
        self.order == other.order && words(self) == words(other)
    }
}

impl Eq for TagRules {}

impl Default for TagRules {
    fn default() -> Self {
        Self { order: ORDER.to_vec(), patterns: Vec::new() }
    }
}

impl TagRules {
    /// The texts of a line that may be a tag, the likeliest first, each once.
    pub fn tags(&self, line: &Line) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        let mut add = |text: &str| {
            if !is_no_tag(text) && !found.iter().any(|known| known == text) {
                found.push(text.to_owned());
            }
        };
        for kind in &self.order {
            line.tags.iter().filter(|tag| tag.kind == *kind).for_each(|tag| add(tag.text.trim()));
        }
        for (kind, pattern) in &self.patterns {
            for tag in line.tags.iter().filter(|tag| tag.kind == *kind) {
                for captures in pattern.captures_iter(&tag.text) {
                    let group = captures.get(1).filter(|_| !is_cut_out(&tag.text, &captures));
                    group.iter().for_each(|group| add(group.as_str().trim()));
                }
            }
        }
        found
    }
}

/// Whether a pattern ended, or began, in the middle of a number or of a word: `pay_1` out of
/// `pay_12` would be another row's tag. What the pattern itself reads beyond its group it knows of.
pub(super) fn is_cut_out(text: &str, captures: &Captures<'_>) -> bool {
    let (Some(whole), Some(group)) = (captures.get(0), captures.get(1)) else { return false };
    let goes_on = |one: Option<char>, next: Option<char>| {
        let both = one.zip(next);
        both.is_some_and(|(a, b)| {
            a.is_numeric() && b.is_numeric() || a.is_alphabetic() && b.is_alphabetic()
        })
    };
    let before = text.get(..group.start()).and_then(|text| text.chars().next_back());
    let after = text.get(group.end()..).and_then(|text| text.chars().next());
    let own = group.as_str();
    whole.start() == group.start() && goes_on(before, own.chars().next())
        || whole.end() == group.end() && goes_on(own.chars().next_back(), after)
}

/// Masks card numbers in everything that is kept of a line; says whether there was one.
pub fn mask_line(line: &mut Line) -> bool {
    let mut found = false;
    let mut mask = |text: &mut String| {
        if let Cow::Owned(masked) = masked(text) {
            *text = masked;
            found = true;
        }
    };
    line.tags.iter_mut().for_each(|Tag { text, .. }| mask(text));
    let more = [&mut line.psp_reference, &mut line.original_reference, &mut line.batch_id];
    more.into_iter().flatten().for_each(&mut mask);
    mask(&mut line.raw);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::money::Currency;
    use crate::model::settlement::{Direction, Entry, EntryStatus};

    fn line(tags: &[(TagKind, &str)]) -> Line {
        let mut line = Line::of(&Entry {
            number: 1,
            line: 1,
            minor: 1,
            currency: Currency::NONE,
            direction: Direction::Credit,
            reversal: false,
            status: EntryStatus::Booked,
            booked_on: None,
            value_on: None,
            bank_reference: None,
            type_code: None,
            batch: None,
        });
        tags.iter().for_each(|(kind, text)| line.tag(*kind, text));
        line
    }

    #[test]
    fn tags_come_in_the_order_of_the_rules() {
        let line = line(&[
            (TagKind::Text, "paid INV-0042, and INV-7 too"),
            (TagKind::CustomerReference, "NONREF"),
            (TagKind::EndToEndId, "e2e"),
            (TagKind::MerchantReference, "mine"),
            (TagKind::OrderId, "e2e"),
        ]);
        assert_eq!(TagRules::default().tags(&line), ["mine", "e2e"], "never out of free text");
        let patterns = vec![(TagKind::Text, Regex::new(r"INV-(\d+)").unwrap())];
        let rules = TagRules { order: vec![TagKind::OrderId], patterns };
        assert_eq!(rules.tags(&line), ["e2e", "0042", "7"]);
    }

    #[test]
    fn a_tag_stands_in_a_text_only_by_itself() {
        let rules = |pattern: &str| TagRules {
            order: Vec::new(),
            patterns: vec![(TagKind::Text, Regex::new(pattern).unwrap())],
        };
        for (text, want) in [
            ("Order pay_1 thanks", true),
            ("pay_1", true),
            ("ref:pay_1/x", true),
            ("EREF+pay_1KREF+2", true),
            ("Order pay_12 thanks", false),
            ("xpay_1", false),
            ("pay_12 and pay_1", true),
            ("ßpay_1ß", false),
            ("anything", false),
        ] {
            let line = line(&[(TagKind::Text, text)]);
            for pattern in ["(pay_1)", r"(pay_\d)"] {
                assert_eq!(rules(pattern).tags(&line) == ["pay_1"], want, "{text} {pattern}");
            }
        }
        let line = line(&[(TagKind::Text, "ORDER00421119")]);
        assert_eq!(rules(r"ORDER(\d{4})\d{4}").tags(&line), ["0042"], "it knows of the rest");
        assert!(rules(r"ORDER(\d{4})").tags(&line).is_empty());
    }

    #[test]
    fn what_stands_for_no_reference_is_none() {
        for blank in ["", " - ", "NOTPROVIDED", "Not Provided", "nonref", "NON-REF"] {
            assert!(is_blank(blank) && is_blank_in_mt940(blank) && is_no_tag(blank), "{blank}");
        }
        for reference in ["EREF", "K-REF", "Nicht angegeben", "NOREF"] {
            assert!(is_blank_in_mt940(reference) && !is_blank(reference), "{reference}");
        }
        for reference in ["NONREF1", "XNONREF", "заказ", "É", "0", "NOTPROVIDEDNOTPROVIDED"] {
            let is_any = is_blank(reference) || is_blank_in_mt940(reference);
            assert!(!is_any && !is_no_tag(reference), "{reference}");
        }
        assert!(is_no_tag("none") && !is_no_tag("EREF") && !is_blank("none"));
    }

    #[test]
    fn card_numbers_of_a_line_are_masked() {
        let mut line = line(&[(TagKind::OrderId, "4111111111111111")]);
        line.raw = "x;4111111111111111;y".to_owned();
        assert!(mask_line(&mut line));
        assert_eq!(
            (line.tags[0].text.as_str(), line.raw.as_str()),
            ("************1111", "x;************1111;y",)
        );
        assert!(!mask_line(&mut line), "a masked one is none");
    }
}
