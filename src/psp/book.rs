//! What a look has seen so far: every listed object folded into its payment, the rows' own whole,
//! all others in a few words.
//!
//! A charge folds into its intent in whichever order they come. Objects that belong to no row keep
//! only what a witness, the brake and the search for untagged money need; pages are never kept.

use std::collections::HashMap;
use std::sync::Arc;

use crate::model::money::Money;
use crate::model::time::Instant;
use crate::model::transaction::{Kind, Kinds};
use crate::psp::later::{Passing, Sightings};
use crate::psp::near::NearTags;
use crate::psp::stripe::{ObjectKind, Piece};
use crate::psp::stripe_objects::{Parts, at};

/// A listed object that belongs to none of the rows asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbour {
    /// The PSP's id of it.
    pub reference: Arc<str>,
    /// Ids of its folded children.
    pub aliases: Vec<Box<str>>,
    /// `payment_intent`, `charge`, `refund`.
    pub kind: &'static str,
    /// Of which kinds the rows are that it may be the movement of.
    pub moves: Kinds,
    /// The tag it carries.
    pub tag: Option<Box<str>>,
    /// The sum that moved, where one did.
    pub captured: Option<Money>,
    /// What was given back of it, in minor units.
    pub refunded_minor: i64,
    /// A dispute exists.
    pub disputed: bool,
    /// When the PSP created it.
    pub created_at: Instant,
}

fn moves_of(kind: ObjectKind) -> Kinds {
    Kinds::only(match kind {
        ObjectKind::PaymentIntent | ObjectKind::Charge => Kind::Charge,
        ObjectKind::Refund => Kind::Refund,
    })
}

/// What is being asked for.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    by_tag: HashMap<String, Vec<u32>>,
    by_reference: HashMap<String, Vec<u32>>,
    near: NearTags,
    kinds: Vec<Vec<ObjectKind>>,
}

impl Wanted {
    /// Adds the next question; they are numbered as they are added.
    pub(super) fn add(
        &mut self,
        tag: Option<&str>,
        reference: Option<&str>,
        kinds: Vec<ObjectKind>,
    ) {
        let Ok(number) = u32::try_from(self.kinds.len()) else { return };
        self.kinds.push(kinds);
        if let Some(tag) = tag {
            self.by_tag.entry(tag.to_owned()).or_default().push(number);
            self.near.add(tag, number);
        }
        if let Some(reference) = reference {
            self.by_reference.entry(reference.to_owned()).or_default().push(number);
        }
    }

    fn is_for(&self, question: u32, kind: ObjectKind) -> bool {
        let kinds = usize::try_from(question).ok().and_then(|index| self.kinds.get(index));
        // An intent is the parent of a charge: whoever asks for the one means the other as well.
        let is_payment = |k: ObjectKind| k != ObjectKind::Refund;
        kinds.is_some_and(|kinds| {
            kinds.iter().any(|k| *k == kind || (is_payment(*k) && is_payment(kind)))
        })
    }

    fn rows_of(&self, piece: &Piece) -> Vec<u32> {
        let by_tag = piece.tag.as_ref().and_then(|tag| self.by_tag.get(tag));
        let names = [&piece.id, &piece.parent];
        let by_name = names.iter().filter_map(|name| self.by_reference.get(*name));
        let all = by_tag.into_iter().chain(by_name).flatten().copied();
        all.filter(|question| self.is_for(*question, piece.kind)).collect()
    }

    fn near_rows(&self, piece: &Piece) -> Vec<u32> {
        let Some(tag) = &piece.tag else { return Vec::new() };
        let near = self.near.near(tag);
        near.into_iter().filter(|question| self.is_for(*question, piece.kind)).collect()
    }
}

/// One payment or refund.
#[derive(Debug)]
struct Group {
    light: Neighbour,
    /// The parent itself was seen, not only children of it.
    has_parent: bool,
    ours: bool,
    /// What it has to do with the rows asked for; most of a list has nothing to do with any.
    own: Option<Box<Own>>,
}

/// What a payment has to do with the rows asked for.
#[derive(Debug, Default)]
struct Own {
    rows: Vec<u32>,
    near: Vec<u32>,
    parts: Option<Parts>,
}

impl Group {
    fn rows(&self) -> &[u32] {
        self.own.as_ref().map_or(&[], |own| &own.rows)
    }

    fn near(&self) -> &[u32] {
        self.own.as_ref().map_or(&[], |own| &own.near)
    }

    /// Ours, and no row's.
    fn is_other(&self) -> bool {
        self.rows().is_empty() && self.ours
    }
}

/// Everything seen in one look.
#[derive(Debug, Default)]
pub(super) struct Book {
    groups: Vec<Group>,
    by_parent: HashMap<Arc<str>, usize>,
    /// Of payments that belong to no row only the tags are kept.
    passing: Option<Passing>,
}

/// A payment of some row that was not read whole yet.
#[derive(Debug, Clone)]
pub(super) struct Unread {
    pub(super) reference: String,
    pub(super) rows: Vec<u32>,
}

impl Book {
    /// Of payments that belong to no row it keeps the tags alone.
    pub(super) fn of_rows_alone() -> Self {
        Self { passing: Some(Passing::default()), ..Self::default() }
    }

    /// The tags that were seen in passing.
    pub(super) fn take_seen(&mut self) -> Option<Sightings> {
        self.passing.as_mut().map(Passing::take_seen)
    }

    /// Folds one object in.
    pub(super) fn add(&mut self, piece: Piece, wanted: &Wanted) {
        let Some(created_at) = at(piece.created) else { return };
        let rows = wanted.rows_of(&piece);
        if let Some(passing) = &mut self.passing {
            passing.see(&piece);
            if rows.is_empty() && !self.by_parent.contains_key(piece.parent.as_str()) {
                return;
            }
        }
        let near = if rows.is_empty() { wanted.near_rows(&piece) } else { Vec::new() };
        let index = self.group_of(&piece, created_at);
        let Some(group) = self.groups.get_mut(index) else { return };
        let is_parent = piece.id == piece.parent;
        if let Some(intent) = &piece.parts.intent {
            // An intent, or a charge that came with its intent in it.
            group.has_parent = true;
            group.light.created_at = at(intent.created).unwrap_or(created_at);
            group.light.captured = intent.captured().or(group.light.captured);
        }
        if is_parent {
            group.has_parent = true;
            group.light.kind = piece.kind.as_str();
            group.light.moves = moves_of(piece.kind);
            group.light.created_at = created_at;
            group.light.captured = piece.captured.or(group.light.captured);
        } else if !group.light.aliases.iter().any(|alias| **alias == *piece.id) {
            // Nearly always the only one: no room for three more.
            group.light.aliases.reserve_exact(1);
            group.light.aliases.push(piece.id.into_boxed_str());
        }
        // An intent that does not say its sum leaves it to its charges.
        group.light.captured = group.light.captured.or(piece.captured);
        group.light.refunded_minor = group.light.refunded_minor.max(piece.parts.given_back());
        group.light.disputed |= piece.parts.is_disputed();
        group.ours |= piece.ours;
        if group.light.tag.is_none() || is_parent {
            group.light.tag = piece.tag.map(String::into_boxed_str).or(group.light.tag.take());
        }
        if group.own.is_none() && rows.is_empty() && near.is_empty() {
            return;
        }
        let own = group.own.get_or_insert_default();
        for row in rows {
            if !own.rows.contains(&row) {
                own.rows.push(row);
            }
        }
        own.near.extend(near);
        // What a case shows of a near miss is read of the same page.
        if !own.rows.is_empty() || !own.near.is_empty() {
            own.parts.get_or_insert_default().merge(piece.parts);
        }
    }

    fn group_of(&mut self, piece: &Piece, created_at: Instant) -> usize {
        if let Some(index) = self.by_parent.get(piece.parent.as_str()) {
            return *index;
        }
        let index = self.groups.len();
        let reference: Arc<str> = piece.parent.as_str().into();
        self.by_parent.insert(Arc::clone(&reference), index);
        // A child seen without its parent stands under the parent's name.
        let kind = if piece.id == piece.parent { piece.kind } else { ObjectKind::PaymentIntent };
        self.groups.push(Group {
            light: Neighbour {
                reference,
                aliases: Vec::new(),
                kind: kind.as_str(),
                moves: moves_of(kind),
                tag: None,
                captured: None,
                refunded_minor: 0,
                disputed: false,
                created_at,
            },
            has_parent: false,
            ours: false,
            own: None,
        });
        index
    }

    /// Payments of which only a child was seen, without any tag: whose they are stands on the
    /// parent alone.
    pub(super) fn parentless(&self) -> Vec<String> {
        let untagged = |g: &&Group| !g.has_parent && g.light.tag.is_none() && g.rows().is_empty();
        let groups = self.groups.iter().filter(untagged).map(|g| g.light.reference.to_string());
        groups.chain(self.passing.iter().flat_map(Passing::parentless)).collect()
    }

    /// A parent that the PSP does not know is not asked for again.
    pub(super) fn settle_parentless(&mut self, reference: &str) {
        if let Some(group) = self.group_mut(reference) {
            group.has_parent = true;
        }
        if let Some(passing) = &mut self.passing {
            passing.settle_parentless(reference);
        }
    }

    /// Payments of rows that were not read whole.
    pub(super) fn unread(&self) -> Vec<Unread> {
        let is_unread = |g: &&Group| {
            let parts = g.own.as_ref().and_then(|own| own.parts.as_ref());
            !g.rows().is_empty() && !parts.is_some_and(Parts::is_whole)
        };
        let unread = |g: &Group| Unread {
            reference: g.light.reference.to_string(),
            rows: g.rows().to_vec(),
        };
        self.groups.iter().filter(is_unread).map(unread).collect()
    }

    /// Puts a fresh, whole reading in place of what was seen.
    pub(super) fn replace(&mut self, reference: &str, parts: Parts) {
        if let Some(group) = self.group_mut(reference) {
            group.own.get_or_insert_default().parts = Some(parts);
        }
    }

    fn group_mut(&mut self, reference: &str) -> Option<&mut Group> {
        let index = *self.by_parent.get(reference)?;
        self.groups.get_mut(index)
    }

    /// The payments of rows: their rows, what was read of them, and every id seen of them.
    pub(super) fn of_rows(&self) -> impl Iterator<Item = (&[u32], &Parts, &Neighbour)> {
        self.groups.iter().filter_map(|group| {
            let own = group.own.as_ref().filter(|own| !own.rows.is_empty())?;
            Some((own.rows.as_slice(), own.parts.as_ref()?, &group.light))
        })
    }

    /// The same, for good: what was read of them is let go of as they are taken.
    pub(super) fn take_rows(&mut self) -> impl Iterator<Item = (&[u32], Parts, &Neighbour)> {
        self.groups.iter_mut().filter_map(|group| {
            let own = group.own.as_mut().filter(|own| !own.rows.is_empty())?;
            Some((own.rows.as_slice(), own.parts.take()?, &group.light))
        })
    }

    /// Our objects that belong to no row.
    pub(super) fn others(&self) -> impl Iterator<Item = &Neighbour> {
        self.groups.iter().filter(|group| group.is_other()).map(|group| &group.light)
    }

    /// The same, for good: nothing more can be asked of the book.
    pub(super) fn take_others(&mut self) -> Vec<Neighbour> {
        self.by_parent = HashMap::new();
        let groups = std::mem::take(&mut self.groups).into_iter();
        groups.filter(Group::is_other).map(|group| group.light).collect()
    }

    /// Near misses by question, each with what was read of it.
    pub(super) fn near(&self) -> impl Iterator<Item = (u32, &Neighbour, Option<&Parts>)> {
        let unmatched = self.groups.iter().filter(|group| group.rows().is_empty());
        unmatched.flat_map(|group| {
            let parts = group.own.as_ref().and_then(|own| own.parts.as_ref());
            group.near().iter().map(move |row| (*row, &group.light, parts))
        })
    }

    /// How many of our payments and refunds were seen.
    pub(super) fn ours_count(&self) -> u64 {
        if let Some(passing) = &self.passing {
            return passing.ours_count();
        }
        let ours = self.groups.iter().filter(|group| group.ours).count();
        u64::try_from(ours).unwrap_or(u64::MAX)
    }
}
