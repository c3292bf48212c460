//! What the looks of one run listed after the windows of their rows, so that a later batch does
//! not list the same again.
//!
//! A row that ends is asked about once more, from the end of its window to now. With many batches
//! that is the same list over and over. Of everything listed only the tags are kept, as hashes,
//! with when they were seen: whose tag was seen is asked about there, and of the rest only what
//! came since is listed. Two tags of one hash cost a question and no answer.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::psp::stripe::{ObjectKind, Piece};

/// The first and the last second, both inclusive.
type Seconds = (i64, i64);

/// Which tags were seen, each with when its objects were created.
#[derive(Debug, Default)]
pub(super) struct Sightings(HashMap<u64, Seconds>);

impl Sightings {
    fn note(&mut self, tag: u64, (first, last): Seconds) {
        let seen = self.0.entry(tag).or_insert((first, last));
        *seen = (seen.0.min(first), seen.1.max(last));
    }

    fn take(&mut self, other: Self) {
        if self.0.is_empty() {
            *self = other;
            return;
        }
        for (tag, seconds) in other.0 {
            self.note(tag, seconds);
        }
    }
}

/// Listed objects that are nobody's, of which nothing but their tags is kept.
#[derive(Debug, Default)]
pub(super) struct Passing {
    seen: Sightings,
    /// Each payment or refund with its tag, for children that come without one.
    parents: HashMap<u64, Option<u64>>,
    /// Children without a tag whose parent was not seen yet: its id, and when they were created.
    orphans: HashMap<Box<str>, Seconds>,
    ours: u64,
}

impl Passing {
    /// Notes an object, be it a row's or not.
    pub(super) fn see(&mut self, piece: &Piece) {
        let (parent, tag) = (hash(&piece.parent), piece.tag.as_deref().map(hash));
        let mut seconds = (piece.created, piece.created);
        if piece.id == piece.parent {
            if let Some((first, last)) = self.orphans.remove(piece.parent.as_str()) {
                seconds = (seconds.0.min(first), seconds.1.max(last));
            }
            if self.parents.insert(parent, tag).is_none() && piece.ours {
                self.ours = self.ours.saturating_add(1);
            }
        }
        match tag.or_else(|| self.parents.get(&parent).copied().flatten()) {
            Some(tag) => self.seen.note(tag, seconds),
            None if self.parents.contains_key(&parent) => {}
            None => {
                let orphan = self.orphans.entry(piece.parent.as_str().into()).or_insert(seconds);
                *orphan = (orphan.0.min(seconds.0), orphan.1.max(seconds.1));
            }
        }
    }

    /// Payments of which only children without a tag were seen.
    pub(super) fn parentless(&self) -> impl Iterator<Item = String> {
        self.orphans.keys().map(|reference| reference.to_string())
    }

    /// The PSP does not know this parent.
    pub(super) fn settle_parentless(&mut self, reference: &str) {
        self.orphans.remove(reference);
    }

    /// How many of our payments and refunds were seen.
    pub(super) fn ours_count(&self) -> u64 {
        self.ours
    }

    pub(super) fn take_seen(&mut self) -> Sightings {
        std::mem::take(&mut self.seen)
    }
}

/// What was listed of some kinds, from a second on up to another, both inclusive.
#[derive(Debug)]
struct Span {
    kinds: Vec<ObjectKind>,
    seconds: Seconds,
}

/// Everything that was listed so.
#[derive(Debug, Default)]
pub(super) struct Later {
    spans: Vec<Span>,
    seen: Sightings,
}

/// Which seconds are still to be listed for a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Left {
    /// From this one on.
    pub(super) from: i64,
    /// Objects of its tag stand here.
    pub(super) seen: Option<Seconds>,
}

impl Later {
    /// What is left to list of these kinds, from this second on, for whoever has this tag.
    pub(super) fn left(&self, kinds: &[ObjectKind], from: i64, tag: Option<&str>) -> Left {
        let covers =
            |span: &&Span| span.kinds == kinds && span.seconds.0 <= from && from <= span.seconds.1;
        let (Some(span), Some(tag)) = (self.spans.iter().find(covers), tag) else {
            return Left { from, seen: None };
        };
        let seen = self.seen.0.get(&hash(tag)).filter(|(_, last)| *last >= from);
        Left { from: span.seconds.1, seen: seen.map(|(first, last)| ((*first).max(from), *last)) }
    }

    /// Adds what was listed to its end, and the tags seen there.
    pub(super) fn add(
        &mut self,
        listed: impl IntoIterator<Item = (Vec<ObjectKind>, Seconds)>,
        seen: Sightings,
    ) {
        self.seen.take(seen);
        for (kinds, (from, to)) in listed {
            match self.spans.iter_mut().find(|span| span.kinds == kinds) {
                // What lies between two spans was not listed: it goes on from the later one.
                Some(span) if from > span.seconds.1 => span.seconds = (from, to),
                Some(span) if to >= span.seconds.1 => {
                    span.seconds = (span.seconds.0.min(from), to);
                }
                Some(_) => {}
                None => self.spans.push(Span { kinds, seconds: (from, to) }),
            }
        }
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [ObjectKind; 2] = [ObjectKind::PaymentIntent, ObjectKind::Charge];

    fn seen(tags: &[(&str, Seconds)]) -> Sightings {
        let mut seen = Sightings::default();
        for (tag, seconds) in tags {
            seen.note(hash(tag), *seconds);
        }
        seen
    }

    fn left(later: &Later, from: i64, tag: &str) -> (i64, Option<Seconds>) {
        let left = later.left(&BOTH, from, Some(tag));
        (left.from, left.seen)
    }

    #[test]
    fn only_what_was_listed_to_its_end_is_left_out() {
        let mut later = Later::default();
        let span = |from, to| [(BOTH.to_vec(), (from, to))];
        assert_eq!(left(&later, 100, "a"), (100, None));
        // Its list had no end: what was seen is told all the same.
        later.add([], seen(&[("a", (150, 150))]));
        assert_eq!(left(&later, 100, "a"), (100, None));
        later.add(span(100, 500), seen(&[("a", (120, 120)), ("b", (130, 480))]));
        for (from, tag, expected) in [
            (100, "a", (500, Some((120, 150)))),
            (140, "a", (500, Some((140, 150)))),
            (151, "a", (500, None)),
            (300, "b", (500, Some((300, 480)))),
            (300, "c", (500, None)),
            (99, "c", (99, None)),
            (501, "c", (501, None)),
        ] {
            assert_eq!(left(&later, from, tag), expected, "{from} {tag}");
        }
        let charges = later.left(&[ObjectKind::Charge], 300, Some("c"));
        assert_eq!(charges, Left { from: 300, seen: None }, "others were listed");
        assert_eq!(later.left(&BOTH, 300, None), Left { from: 300, seen: None });
        // Carried on, and then again after a gap.
        later.add(span(480, 700), Sightings::default());
        assert_eq!(left(&later, 100, "c"), (700, None));
        later.add(span(200, 600), Sightings::default());
        assert_eq!(left(&later, 100, "c"), (700, None));
        later.add(span(800, 900), seen(&[("c", (820, 820))]));
        assert_eq!(left(&later, 300, "c"), (300, None));
        assert_eq!(left(&later, 810, "c"), (900, Some((820, 820))));
    }
}
