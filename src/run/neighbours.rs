//! The objects that were listed around a batch's rows and are nobody's in it: what witnesses that
//! tags arrive, what the brake looks at, and money that no row explains.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crate::decide::absence;
use crate::decide::policy::Policy;
use crate::model::evidence::{Answer, Evidence, UntaggedMatch, Witness};
use crate::model::money::Money;
use crate::model::time::{Instant, earlier, later};
use crate::model::transaction::{Kind, Kinds};
use crate::psp::book::Neighbour;
use crate::run::tagged::{RowsOfTag, Seen};
use crate::store::records::Claimed;

/// How many captured objects around a row the brake looks at.
const NEAREST: usize = 20;

/// Whom a question was about.
#[derive(Debug, Clone, Copy)]
pub(super) struct About<'q> {
    /// The row's kind.
    pub(super) kind: Kind,
    /// The tag that was asked by.
    pub(super) tag: Option<&'q str>,
    /// What the row is to move.
    pub(super) money: Option<Money>,
}

/// The captured objects around the rows, compact, and what is known of their tags.
#[derive(Default)]
pub(super) struct Neighbours {
    /// Captured or not, in no order; each reference once.
    all: Vec<Near>,
    /// The rows that have this tag, none as well, as far as was asked.
    pub(super) resolved: HashMap<String, RowsOfTag>,
    /// The kinds of the rows that were asked about.
    asked: BTreeSet<Kind>,
    /// Of each kind the newest object so far whose tag a row of that kind has.
    witnesses: HashMap<Kind, Witness>,
}

/// One of them.
pub(super) struct Near {
    pub(super) reference: Arc<str>,
    pub(super) aliases: Vec<Box<str>>,
    pub(super) tag: Option<Box<str>>,
    /// Of which kinds the rows are that it may be the movement of.
    moves: Kinds,
    captured: Option<Money>,
    created_at: Instant,
    /// It answers one of the batch's own rows.
    pub(super) own: bool,
}

impl Near {
    fn of(other: Neighbour) -> Self {
        let Neighbour { reference, aliases, tag, moves, captured, created_at, .. } = other;
        Self { reference, aliases, tag, moves, captured, created_at, own: false }
    }

    pub(super) fn untagged(&self) -> Option<UntaggedMatch> {
        Some(UntaggedMatch {
            reference: self.reference.to_string(),
            captured: self.captured?,
            created_at: self.created_at,
            tag: self.tag.as_deref().map(str::to_owned),
        })
    }

    /// Its reference and its tag.
    pub(super) fn named(&self) -> Option<(String, String)> {
        Some((self.reference.to_string(), self.tag.as_deref()?.to_owned()))
    }

    fn seen(&self) -> Seen<'_> {
        Seen { money: self.captured, reference: &self.reference, aliases: &self.aliases }
    }

    fn rows<'r>(&self, resolved: &'r HashMap<String, RowsOfTag>) -> Option<&'r RowsOfTag> {
        self.tag.as_deref().and_then(|tag| resolved.get(tag))
    }

    /// Whether a row that its tag resolves to is of its kind: one of another kind has a movement of
    /// its own.
    pub(super) fn has_row(&self, resolved: &HashMap<String, RowsOfTag>) -> bool {
        self.rows(resolved).is_some_and(|rows| rows.are_of(self.moves))
    }

    /// Whether it is a row's that its tag resolves to.
    pub(super) fn is_resolved(&self, resolved: &HashMap<String, RowsOfTag>) -> bool {
        self.rows(resolved).is_some_and(|rows| rows.resolve(self.moves, self.seen()))
    }

    /// Whether a row that its tag resolves to explains it, so that it cannot be another's of this
    /// kind.
    pub(super) fn is_explained(&self, kind: Kind, resolved: &HashMap<String, RowsOfTag>) -> bool {
        let rows = self.rows(resolved);
        rows.is_some_and(|rows| rows.explain(self.moves, kind, self.seen()))
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&*self.reference).chain(self.aliases.iter().map(|alias| &**alias))
    }

    pub(super) fn references(&self) -> impl Iterator<Item = String> {
        self.names().map(str::to_owned)
    }

    pub(super) fn is_owned(&self, owned: &HashMap<String, Vec<(String, String)>>) -> bool {
        self.names().any(|name| owned.get(name).is_some_and(|rows| !rows.is_empty()))
    }
}

impl Neighbours {
    /// Takes what one look showed: objects of nobody's, and those found for the batch's own rows.
    /// `asked` says of each row in `found` what it is: its own tag on its own money resolves by
    /// itself. With other money the tag may have been another row's, of another kind.
    pub(super) fn take(
        &mut self,
        others: Vec<Neighbour>,
        asked: &[About<'_>],
        found: &[Vec<Evidence>],
    ) {
        // One look has each of the others once, and none of them among what it found; files may
        // list one twice.
        let is_first = self.all.is_empty() && !found.is_empty();
        let mut seen: HashSet<Arc<str>> = HashSet::new();
        if is_first {
            self.all = others.into_iter().map(Near::of).collect();
        } else {
            seen.extend(self.all.iter().map(|near| Arc::clone(&near.reference)));
            let new = others.into_iter().filter(|other| seen.insert(Arc::clone(&other.reference)));
            self.all.extend(new.map(Near::of));
        }
        let found = asked.iter().zip(found).flat_map(|(asked, evidence)| {
            let objects = evidence.iter().filter_map(|item| match &item.answer {
                Answer::Found { objects, search: Some(_) } => Some(objects),
                Answer::Found { .. }
                | Answer::Nothing(_)
                | Answer::UnknownReference(_)
                | Answer::NoAnswer(_) => None,
            });
            objects.flatten().map(move |object| (*asked, object))
        });
        self.asked.extend(asked.iter().map(|about| about.kind));
        for (About { kind, tag: own, money }, object) in found {
            let Some(tag) = &object.tag else { continue };
            // What was found by its reference may carry any tag: that one is looked up.
            let is_by_tag = own == Some(tag.as_str());
            if is_by_tag && object.captured.is_some() && object.captured == money {
                self.offer_witness(kind, &object.reference, tag, object.created_at);
            }
            let reference: Arc<str> = object.reference.as_str().into();
            if seen.insert(Arc::clone(&reference)) {
                let aliases = object.aliases.iter();
                self.all.push(Near {
                    reference,
                    aliases: aliases.map(|alias| alias.as_str().into()).collect(),
                    tag: Some(tag.as_str().into()),
                    moves: Kinds::only(kind),
                    captured: object.captured,
                    created_at: object.created_at,
                    own: !is_by_tag || object.captured.is_none() || object.captured == money,
                });
            }
        }
    }

    /// The kinds of the rows that were asked about: each needs a witness of its own.
    pub(super) fn asked(&self) -> Vec<Kind> {
        self.asked.iter().copied().collect()
    }

    /// The witness of rows of this kind.
    pub(super) fn witness(&self, kind: Kind) -> Option<&Witness> {
        self.witnesses.get(&kind)
    }

    /// Whether a row of this kind has the tag of what has this reference, or one that may be of
    /// it, as far as was asked.
    pub(super) fn is_row(&self, reference: &str, tag: &str, kind: Kind) -> bool {
        let Some(rows) = self.resolved.get(tag) else { return false };
        let is_by = |seen: Seen<'_>| rows.explain(Kinds::only(kind), kind, seen);
        let mut listed = self.all.iter().filter(|near| *near.reference == *reference);
        is_by(Seen { money: None, reference, aliases: &[] })
            || listed.any(|near| is_by(near.seen()))
    }

    fn offer_witness(&mut self, kind: Kind, reference: &str, tag: &str, created_at: Instant) {
        if self.witness(kind).is_none_or(|known| known.created_at < created_at) {
            let (reference, tag) = (reference.to_owned(), tag.to_owned());
            self.witnesses.insert(kind, Witness { reference, tag, created_at });
        }
    }

    /// Tags of objects of this kind that are newer than its best witness so far, newest first,
    /// each once.
    pub(super) fn newest_tags_above_witness(&self, kind: Kind) -> Vec<String> {
        let floor = self.witness(kind).map(|witness| witness.created_at);
        let may_be_row = |near: &Near, tag: &str| {
            self.resolved.get(tag).is_none_or(|rows| rows.has(kind, near.seen()))
        };
        let is_open = |near: &&Near| {
            near.moves.has(kind)
                && floor.is_none_or(|floor| near.created_at > floor)
                && near.tag.as_deref().is_some_and(|tag| may_be_row(near, tag))
        };
        let mut above: Vec<&Near> = self.all.iter().filter(is_open).collect();
        above.sort_by(|a, b| {
            b.created_at.cmp(&a.created_at).then_with(|| a.reference.cmp(&b.reference))
        });
        let mut known = HashSet::new();
        let tags = above.into_iter().filter_map(|near| near.tag.as_deref());
        tags.filter(|tag| known.insert(*tag)).map(str::to_owned).collect()
    }

    /// Takes the newest object of this kind, of those of these tags that are a row's of this kind,
    /// as the witness.
    pub(super) fn settle_witness(&mut self, kind: Kind, tags: &[String]) -> bool {
        let tags: HashSet<&str> = tags.iter().map(String::as_str).collect();
        let is_its = |near: &&Near| {
            let is_asked = near.tag.as_deref().is_some_and(|tag| tags.contains(tag));
            let rows = near.rows(&self.resolved).filter(|_| is_asked && near.moves.has(kind));
            rows.is_some_and(|rows| rows.has(kind, near.seen()))
        };
        let own = self.all.iter().filter(is_its);
        let best = own.max_by(|a, b| {
            a.created_at.cmp(&b.created_at).then_with(|| b.reference.cmp(&a.reference))
        });
        let Some((best, tag)) = best.and_then(|best| Some((best, best.tag.clone()?))) else {
            return false;
        };
        let (reference, at) = (best.reference.clone(), best.created_at);
        self.offer_witness(kind, &reference, &tag, at);
        true
    }

    /// Captured objects of this kind that are newer than `since` and carry no tag of a row; none,
    /// where one of them does, as far as was asked.
    pub(super) fn untagged_since(&self, kind: Kind, since: Instant) -> Vec<&Near> {
        let is_newer = |near: &&Near| {
            near.captured.is_some() && near.moves.has(kind) && near.created_at > since
        };
        let newer = || self.all.iter().filter(is_newer).filter(|near| !near.own);
        if newer().any(|near| near.has_row(&self.resolved)) {
            return Vec::new();
        }
        newer().collect()
    }

    /// The captured objects that rows of these kinds may be explained by, sorted by time once for
    /// all rows that ask.
    pub(super) fn captured(&self, kinds: impl IntoIterator<Item = Kind>) -> Around<'_> {
        let mut by_kind: HashMap<Kind, Vec<&Near>> = HashMap::new();
        for kind in kinds {
            by_kind.entry(kind).or_insert_with(|| {
                let is_one = |near: &&Near| near.captured.is_some() && near.moves.has(kind);
                let mut by_time: Vec<&Near> = self.all.iter().filter(is_one).collect();
                by_time.sort_by(|a, b| {
                    a.created_at.cmp(&b.created_at).then_with(|| a.reference.cmp(&b.reference))
                });
                by_time
            });
        }
        Around { by_kind }
    }

    /// Objects that carry this very tag and move what rows of this kind do not.
    pub(super) fn of_another_kind(&self, kind: Kind) -> HashMap<&str, Vec<&Near>> {
        let mut by_tag: HashMap<&str, Vec<&Near>> = HashMap::new();
        for near in self.all.iter().filter(|near| !near.moves.has(kind)) {
            if let Some(tag) = near.tag.as_deref() {
                by_tag.entry(tag).or_default().push(near);
            }
        }
        by_tag
    }
}

/// Captured objects in the order of time, by the kind of row that they may be the movement of.
pub(super) struct Around<'a> {
    by_kind: HashMap<Kind, Vec<&'a Near>>,
}

impl<'a> Around<'a> {
    fn by_time(&self, claimed: &Claimed) -> &[&'a Near] {
        self.by_kind.get(&claimed.row.kind).map_or(&[], Vec::as_slice)
    }

    /// Those nearest in time to the row's last attempt.
    pub(super) fn nearest(&self, claimed: &Claimed) -> Vec<&'a Near> {
        let at = last_attempt(claimed);
        let by_time = self.by_time(claimed);
        let middle = by_time.partition_point(|near| near.created_at < at);
        let (before, after) = by_time.split_at(middle);
        let (mut before, mut after) = (before.iter().rev().peekable(), after.iter().peekable());
        let mut picked = Vec::new();
        while picked.len() < NEAREST {
            let next = match (before.peek(), after.peek()) {
                (Some(old), Some(new)) if at - old.created_at <= new.created_at - at => {
                    before.next()
                }
                (_, Some(_)) => after.next(),
                (Some(_), None) => before.next(),
                (None, None) => break,
            };
            picked.extend(next.copied());
        }
        picked
    }

    /// Those of the row's own money, created while its call could have made them, by a clock that
    /// may be ahead or behind.
    pub(super) fn equal_money(&self, claimed: &Claimed, policy: &Policy) -> Vec<&'a Near> {
        let row = &claimed.row;
        let from = earlier(row.created_at, absence::SKEW_MAX);
        let over_at = later(last_attempt(claimed), policy.timing.in_flight_max);
        let to = later(over_at, absence::SKEW_MAX);
        let by_time = self.by_time(claimed);
        let start = by_time.partition_point(|near| near.created_at < from);
        let window = by_time.iter().skip(start).take_while(|near| near.created_at <= to);
        window.filter(|near| !near.own && near.captured == row.money).copied().collect()
    }
}

/// When the row's last call may have been sent.
pub(super) fn last_attempt(claimed: &Claimed) -> Instant {
    absence::last_attempt(&claimed.row, &claimed.history)
}
