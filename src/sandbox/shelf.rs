//! Objects of one kind, kept in the order in which lists show them.
//!
//! A page out of a hundred thousand is a walk along a tree from where the cursor points, never a
//! scan. Two objects of the same second stand in the order in which they came.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use super::objects::Record;

/// Where an object stands: by its creation, then by its arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    pub(super) created: i64,
    pub(super) arrival: u64,
}

/// The seconds of creation that a list asks for, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: i64,
    pub(super) to: i64,
}

impl Span {
    pub(super) const ALL: Self = Self { from: i64::MIN, to: i64::MAX };
}

/// Which way and from where a page is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cursor {
    Newest,
    OlderThan(Spot),
    NewerThan(Spot),
}

/// One page, newest first.
#[derive(Debug)]
pub(super) struct Page<'a, T> {
    pub(super) items: Vec<&'a T>,
    pub(super) has_more: bool,
}

#[derive(Debug)]
pub(super) struct Shelf<T> {
    /// Boxed, because a tree's nodes are half empty when they grow at one end.
    ordered: BTreeMap<Spot, Box<T>>,
    spots: HashMap<String, Spot>,
    /// By metadata key and lower-case value; built by the first search, kept from then on. It may
    /// name objects that have changed since, so a search looks at each again.
    by_tag: Option<HashMap<(String, String), Vec<Spot>>>,
    arrivals: u64,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self { ordered: BTreeMap::new(), spots: HashMap::new(), by_tag: None, arrivals: 0 }
    }
}

impl<T: Record> Shelf<T> {
    pub(super) fn len(&self) -> usize {
        self.ordered.len()
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.spots.contains_key(id)
    }

    /// Puts an object in its place; one with the same id leaves.
    pub(super) fn put(&mut self, object: T) {
        self.take(object.id());
        self.arrivals += 1;
        let spot = Spot { created: object.created(), arrival: self.arrivals };
        if let Some(index) = &mut self.by_tag {
            enter(index, &object, spot);
        }
        self.spots.insert(object.id().to_owned(), spot);
        self.ordered.insert(spot, Box::new(object));
    }

    pub(super) fn take(&mut self, id: &str) -> Option<T> {
        let spot = self.spots.remove(id)?;
        self.ordered.remove(&spot).map(|object| *object)
    }

    pub(super) fn get(&self, id: &str) -> Option<&T> {
        self.spots.get(id).and_then(|spot| self.at(spot))
    }

    /// For changes that leave id, creation and metadata as they are; see `change_metadata`.
    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut T> {
        self.spots.get(id).and_then(|spot| self.ordered.get_mut(spot)).map(AsMut::as_mut)
    }

    /// Changes an object's metadata and lets searches know.
    pub(super) fn change_metadata(&mut self, id: &str, change: impl FnOnce(&mut T)) {
        let Some(&spot) = self.spots.get(id) else { return };
        let Some(object) = self.ordered.get_mut(&spot) else { return };
        change(object);
        if let Some(index) = &mut self.by_tag {
            enter(index, object.as_ref(), spot);
        }
    }

    fn at(&self, spot: &Spot) -> Option<&T> {
        self.ordered.get(spot).map(AsRef::as_ref)
    }

    pub(super) fn spot(&self, id: &str) -> Option<Spot> {
        self.spots.get(id).copied()
    }

    /// All objects, newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = &T> {
        self.ordered.values().rev().map(AsRef::as_ref)
    }

    pub(super) fn page(
        &self,
        span: Span,
        cursor: Cursor,
        limit: usize,
        wanted: impl Fn(&T) -> bool,
    ) -> Page<'_, T> {
        let first = Bound::Included(Spot { created: span.from, arrival: 0 });
        let last = Bound::Included(Spot { created: span.to, arrival: u64::MAX });
        if span.from > span.to {
            return Page { items: Vec::new(), has_more: false };
        }
        let (mut items, has_more) = match cursor {
            Cursor::Newest => fill(self.between(first, last).rev(), limit, &wanted),
            Cursor::OlderThan(spot) => {
                fill(self.between(first, lower(last, spot)).rev(), limit, &wanted)
            }
            Cursor::NewerThan(spot) => {
                fill(self.between(higher(first, spot), last), limit, &wanted)
            }
        };
        if matches!(cursor, Cursor::NewerThan(_)) {
            items.reverse();
        }
        Page { items, has_more }
    }

    /// A page of these objects only, for filters that name a parent.
    pub(super) fn page_among(
        &self,
        ids: &[String],
        span: Span,
        cursor: Cursor,
        limit: usize,
        wanted: impl Fn(&T) -> bool,
    ) -> Page<'_, T> {
        let mut spots: Vec<Spot> = ids.iter().filter_map(|id| self.spot(id)).collect();
        spots.retain(|spot| {
            (span.from..=span.to).contains(&spot.created)
                && match cursor {
                    Cursor::Newest => true,
                    Cursor::OlderThan(cursor) => *spot < cursor,
                    Cursor::NewerThan(cursor) => *spot > cursor,
                }
        });
        spots.sort_unstable();
        let newer = matches!(cursor, Cursor::NewerThan(_));
        if !newer {
            spots.reverse();
        }
        let objects = spots.iter().filter_map(|spot| self.at(spot));
        let (mut items, has_more) = fill(objects, limit, wanted);
        if newer {
            items.reverse();
        }
        Page { items, has_more }
    }

    /// Makes `tagged` ready; later changes keep it so.
    pub(super) fn index_tags(&mut self) {
        if self.by_tag.is_some() {
            return;
        }
        let mut index = HashMap::new();
        for (spot, object) in &self.ordered {
            enter(&mut index, object.as_ref(), *spot);
        }
        self.by_tag = Some(index);
    }

    /// The objects whose metadata holds this value under this key, whatever its case, newest
    /// first. It finds nothing before `index_tags`.
    pub(super) fn tagged(&self, key: &str, value: &str) -> Vec<&T> {
        let lower_value = value.to_lowercase();
        let mut spots = self
            .by_tag
            .as_ref()
            .and_then(|index| index.get(&(key.to_owned(), lower_value.clone())))
            .cloned()
            .unwrap_or_default();
        spots.sort_unstable();
        spots.dedup();
        let found = spots.iter().rev().filter_map(|spot| self.at(spot));
        found
            .filter(|object| {
                object.metadata().get(key).is_some_and(|text| text.to_lowercase() == lower_value)
            })
            .collect()
    }

    fn between(
        &self,
        first: Bound<Spot>,
        last: Bound<Spot>,
    ) -> impl DoubleEndedIterator<Item = &T> {
        // A tree refuses a range that is upside down, which a cursor outside the span makes.
        let empty = match (first, last) {
            (Bound::Included(low), Bound::Included(high)) => low > high,
            (Bound::Included(low) | Bound::Excluded(low), Bound::Excluded(high))
            | (Bound::Excluded(low), Bound::Included(high)) => low >= high,
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        };
        (!empty)
            .then(|| self.ordered.range((first, last)))
            .into_iter()
            .flatten()
            .map(|(_, t)| t.as_ref())
    }
}

fn lower(last: Bound<Spot>, cursor: Spot) -> Bound<Spot> {
    match last {
        Bound::Included(spot) if spot < cursor => last,
        _ => Bound::Excluded(cursor),
    }
}

fn higher(first: Bound<Spot>, cursor: Spot) -> Bound<Spot> {
    match first {
        Bound::Included(spot) if spot > cursor => first,
        _ => Bound::Excluded(cursor),
    }
}

fn fill<'a, T>(
    objects: impl Iterator<Item = &'a T>,
    limit: usize,
    wanted: impl Fn(&T) -> bool,
) -> (Vec<&'a T>, bool) {
    let mut items: Vec<&T> = objects.filter(|object| wanted(object)).take(limit + 1).collect();
    let has_more = items.len() > limit;
    items.truncate(limit);
    (items, has_more)
}

fn enter<T: Record>(index: &mut HashMap<(String, String), Vec<Spot>>, object: &T, spot: Spot) {
    for (key, value) in object.metadata().iter() {
        index.entry((key.to_owned(), value.to_lowercase())).or_default().push(spot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::objects::{Head, Metadata, Refund};

    fn shelf() -> Shelf<Refund> {
        let mut shelf = Shelf::default();
        for (id, created) in [("c", 30), ("a", 10), ("b1", 20), ("b2", 20), ("d", 40)] {
            let metadata = Metadata::of([("t".to_owned(), id.to_uppercase())]);
            let head = Head { id: id.to_owned(), created, metadata, ..Head::default() };
            shelf.put(Refund { head, ..Refund::default() });
        }
        shelf
    }

    #[test]
    fn pages_are_newest_first_whatever_the_cursor() {
        let shelf = shelf();
        let b2 = shelf.spot("b2").unwrap();
        let a = shelf.spot("a").unwrap();
        let d = shelf.spot("d").unwrap();
        let cases = [
            (Span::ALL, Cursor::Newest, 2, "d c", true),
            (Span::ALL, Cursor::Newest, 5, "d c b2 b1 a", false),
            (Span { from: 20, to: 30 }, Cursor::Newest, 9, "c b2 b1", false),
            (Span { from: 25, to: 20 }, Cursor::Newest, 9, "", false),
            (Span::ALL, Cursor::OlderThan(b2), 9, "b1 a", false),
            (Span::ALL, Cursor::NewerThan(a), 2, "b2 b1", true),
            (Span::ALL, Cursor::NewerThan(b2), 9, "d c", false),
            (Span { from: 20, to: 20 }, Cursor::OlderThan(a), 9, "", false),
            (Span { from: 20, to: 20 }, Cursor::OlderThan(d), 9, "b2 b1", false),
            (Span { from: 20, to: 20 }, Cursor::NewerThan(d), 9, "", false),
        ];
        for (span, cursor, limit, expected, has_more) in cases {
            let page = shelf.page(span, cursor, limit, |_| true);
            let ids: Vec<&str> = page.items.iter().map(|refund| refund.id()).collect();
            assert_eq!(ids.join(" "), expected, "{span:?} {cursor:?} {limit}");
            assert_eq!(page.has_more, has_more, "{span:?} {cursor:?} {limit}");
        }
    }

    #[test]
    fn tags_are_found_whatever_their_case_and_after_a_change() {
        let mut shelf = shelf();
        assert_eq!(shelf.tagged("t", "b1").len(), 0);
        shelf.index_tags();
        assert_eq!(shelf.tagged("t", "b1").len(), 1);
        shelf.change_metadata("b1", |refund| refund.head.metadata.set("t", "new"));
        assert_eq!(shelf.tagged("t", "b1").len(), 0);
        assert_eq!(shelf.tagged("t", "NEW").len(), 1);
        shelf.take("b1");
        assert_eq!(shelf.tagged("t", "new").len(), 0);
    }
}
