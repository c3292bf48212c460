//! The objects that were listed around a batch's rows and are nobody's in it: what witnesses that
//! tags arrive, what the brake looks at, and money that no row explains.

use std::collections::{HashMap, HashSet};

use crate::decide::absence;
use crate::decide::policy::Policy;
use crate::model::evidence::{Answer, Evidence, UntaggedMatch, Witness};
use crate::model::time::{Instant, later};
use crate::psp::book::Neighbour;
use crate::store::records::Claimed;

/// How many captured objects around a row the brake looks at.
const NEAREST: usize = 20;

/// The captured objects around the rows, compact, and what is known of their tags.
#[derive(Default)]
pub(super) struct Neighbours {
    /// Captured or not, in no order; each reference once.
    all: Vec<Near>,
    /// Whether a row has this tag, as far as was asked.
    pub(super) resolved: HashMap<String, bool>,
    /// The newest object so far whose tag a row has.
    pub(super) witness: Option<Witness>,
}

/// One of them.
pub(super) struct Near {
    pub(super) reference: Box<str>,
    pub(super) aliases: Vec<Box<str>>,
    pub(super) tag: Option<Box<str>>,
    captured: Option<crate::model::money::Money>,
    created_at: Instant,
    /// It answers one of the batch's own rows.
    pub(super) own: bool,
}

impl Near {
    pub(super) fn untagged(&self) -> Option<UntaggedMatch> {
        Some(UntaggedMatch {
            reference: self.reference.to_string(),
            captured: self.captured?,
            created_at: self.created_at,
            tag: self.tag.as_deref().map(str::to_owned),
        })
    }

    pub(super) fn references(&self) -> impl Iterator<Item = String> {
        std::iter::once(&self.reference).chain(&self.aliases).map(|reference| reference.to_string())
    }

    pub(super) fn is_owned(&self, owned: &HashMap<String, Vec<(String, String)>>) -> bool {
        std::iter::once(&self.reference)
            .chain(&self.aliases)
            .any(|reference| owned.get(&**reference).is_some_and(|rows| !rows.is_empty()))
    }
}

impl Neighbours {
    /// Takes what one look showed: objects of nobody's, and those found for the batch's own rows,
    /// whose tags resolve by themselves.
    pub(super) fn take(&mut self, others: Vec<Neighbour>, found: &[Vec<Evidence>]) {
        // One look has each of the others once, and none of them among what it found; files may
        // list one twice.
        let is_first = self.all.is_empty() && !found.is_empty();
        let mut seen: HashSet<Box<str>> = if is_first {
            HashSet::new()
        } else {
            self.all.iter().map(|near| near.reference.clone()).collect()
        };
        for Neighbour { reference, aliases, tag, captured, created_at, .. } in others {
            if is_first || seen.insert(reference.clone()) {
                self.all.push(Near { reference, aliases, tag, captured, created_at, own: false });
            }
        }
        let found = found.iter().flatten().filter_map(|item| match &item.answer {
            Answer::Found { objects, search: Some(_) } => Some(objects),
            Answer::Found { .. }
            | Answer::Nothing(_)
            | Answer::UnknownReference(_)
            | Answer::NoAnswer(_) => None,
        });
        for object in found.flatten() {
            let Some(tag) = &object.tag else { continue };
            self.offer_witness(&object.reference, tag, object.created_at);
            let reference: Box<str> = object.reference.as_str().into();
            if seen.insert(reference.clone()) {
                let aliases = object.aliases.iter();
                self.all.push(Near {
                    reference,
                    aliases: aliases.map(|alias| alias.as_str().into()).collect(),
                    tag: Some(tag.as_str().into()),
                    captured: object.captured,
                    created_at: object.created_at,
                    own: true,
                });
            }
        }
    }

    pub(super) fn offer_witness(&mut self, reference: &str, tag: &str, created_at: Instant) {
        if self.witness.as_ref().is_none_or(|known| known.created_at < created_at) {
            self.witness =
                Some(Witness { reference: reference.to_owned(), tag: tag.to_owned(), created_at });
        }
    }

    /// Tags of objects newer than the best witness so far, newest first, each once.
    pub(super) fn newest_tags_above_witness(&self) -> Vec<String> {
        let floor = self.witness.as_ref().map(|witness| witness.created_at);
        let is_open = |near: &&Near| {
            floor.is_none_or(|floor| near.created_at > floor)
                && near.tag.as_deref().is_some_and(|tag| self.resolved.get(tag) != Some(&false))
        };
        let mut above: Vec<&Near> = self.all.iter().filter(is_open).collect();
        above.sort_by(|a, b| {
            b.created_at.cmp(&a.created_at).then_with(|| a.reference.cmp(&b.reference))
        });
        let mut known = HashSet::new();
        let tags = above.into_iter().filter_map(|near| near.tag.as_deref());
        tags.filter(|tag| known.insert(*tag)).map(str::to_owned).collect()
    }

    /// Takes the newest object of the first of these tags that resolves as the witness.
    pub(super) fn settle_witness(&mut self, tags: &[String]) -> bool {
        let Some(tag) = tags.iter().find(|tag| self.resolved.get(*tag) == Some(&true)) else {
            return false;
        };
        let own = self.all.iter().filter(|near| near.tag.as_deref() == Some(tag));
        let best = own.max_by(|a, b| {
            a.created_at.cmp(&b.created_at).then_with(|| b.reference.cmp(&a.reference))
        });
        let Some(best) = best else { return false };
        let (reference, at) = (best.reference.clone(), best.created_at);
        self.offer_witness(&reference, tag, at);
        true
    }

    /// The captured objects, sorted by time once for all rows that ask.
    pub(super) fn captured(&self) -> Around<'_> {
        let mut by_time: Vec<&Near> = self.all.iter().filter(|n| n.captured.is_some()).collect();
        by_time.sort_by(|a, b| {
            a.created_at.cmp(&b.created_at).then_with(|| a.reference.cmp(&b.reference))
        });
        Around { by_time }
    }
}

/// Captured objects in the order of time.
pub(super) struct Around<'a> {
    by_time: Vec<&'a Near>,
}

impl<'a> Around<'a> {
    /// Those nearest in time to the row's last attempt.
    pub(super) fn nearest(&self, claimed: &Claimed) -> Vec<&'a Near> {
        let at = last_attempt(claimed);
        let middle = self.by_time.partition_point(|near| near.created_at < at);
        let (before, after) = self.by_time.split_at(middle);
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

    /// Those of the row's own money, created while its call could have made them.
    pub(super) fn equal_money(&self, claimed: &Claimed, policy: &Policy) -> Vec<&'a Near> {
        let row = &claimed.row;
        let from = row.created_at;
        let to = later(last_attempt(claimed), policy.timing.in_flight_max);
        let start = self.by_time.partition_point(|near| near.created_at < from);
        let window = self.by_time.iter().skip(start).take_while(|near| near.created_at <= to);
        window.filter(|near| !near.own && near.captured == row.money).copied().collect()
    }
}

/// When the row's last call may have been sent.
pub(super) fn last_attempt(claimed: &Claimed) -> Instant {
    absence::last_attempt(&claimed.row, &claimed.history)
}
