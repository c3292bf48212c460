//! What several reports of one PSP tell of one payment, each event once.
//!
//! A PSP leaves reports of several kinds, and most of what happened stands in each of them: it
//! moved once. What only one of them tells did happen as well: a dispute that fell into a payout
//! made by hand stands in no payout's report. So what moved is read from the report that tells of
//! most, and of what came back every event counts, be it in any of them.

use std::collections::BTreeMap;

use chrono::TimeDelta;

use crate::model::settlement::{LineKind, SettledLine};

/// Reports book one event on days of their own: as it was done, or as it was settled.
const BOOKED_WITHIN: TimeDelta = TimeDelta::days(2);

/// The deciding lines of each format, the one that tells of most first.
fn by_format<'a>(lines: &[&'a SettledLine]) -> Vec<Vec<&'a SettledLine>> {
    let mut by_format: BTreeMap<&str, Vec<&'a SettledLine>> = BTreeMap::new();
    for line in lines.iter().copied().filter(|line| line.decides) {
        by_format.entry(&line.format).or_default().push(line);
    }
    let mut told: Vec<Vec<&'a SettledLine>> = by_format.into_values().rev().collect();
    told.sort_by_key(|lines| std::cmp::Reverse(lines.len()));
    told
}

/// The deciding lines of one format, the one that tells of most: a payment stands in each of a
/// PSP's reports, and it moved once.
pub(super) fn told_best<'a>(lines: &[&'a SettledLine]) -> Vec<&'a SettledLine> {
    by_format(lines).into_iter().next().unwrap_or_default()
}

/// The deciding lines of the format that tells of most, and what only others tell. A bank's
/// statement tells all that there is, in amounts of its own: of what names no payment, nothing is
/// added.
pub(super) fn told_by_any<'a>(lines: &[&'a SettledLine]) -> Vec<&'a SettledLine> {
    let mut told: Vec<&'a SettledLine> = Vec::new();
    for of_format in by_format(lines) {
        if told.is_empty() {
            told = of_format;
            continue;
        }
        let more = unmatched(&told, &of_format);
        told.extend(more.into_iter().filter(|line| names_payment(line)));
    }
    told
}

fn names_payment(line: &SettledLine) -> bool {
    line.payment.is_some() || line.original.is_some()
}

/// Those lines of one format that tell of nothing that is told. Each line that is told stands for
/// one of them: by the event's id first, and by its sum where either has no id.
fn unmatched<'a>(told: &[&'a SettledLine], lines: &[&'a SettledLine]) -> Vec<&'a SettledLine> {
    let mut free = told.to_vec();
    let mut left = lines.to_vec();
    for is_same in [is_same_event, may_be_same_event] {
        left.retain(|line| {
            let at = free.iter().position(|other| is_same(other, line));
            at.map(|at| free.swap_remove(at)).is_none()
        });
    }
    left
}

fn is_same_event(one: &SettledLine, other: &SettledLine) -> bool {
    is_alike(one.kind, other.kind) && one.event.is_some() && one.event == other.event
}

fn may_be_same_event(one: &SettledLine, other: &SettledLine) -> bool {
    let has_ids = one.event.is_some() && other.event.is_some();
    is_alike(one.kind, other.kind) && !has_ids && may_be_told_twice(one, other)
}

/// Whether two reports may tell of one event in these lines, for all that is known besides ids:
/// its sum, whose tag it carries, what it was paid out with, and its day.
pub(super) fn may_be_told_twice(one: &SettledLine, other: &SettledLine) -> bool {
    let differ = |one: &Option<String>, other: &Option<String>| {
        one.as_ref().zip(other.as_ref()).is_some_and(|(one, other)| one != other)
    };
    let apart = one.at.signed_duration_since(other.at).abs();
    one.money == other.money
        && !differ(&one.anothers, &other.anothers)
        && !differ(&one.payout, &other.payout)
        && apart <= BOOKED_WITHIN
}

fn is_alike(one: LineKind, other: LineKind) -> bool {
    one == other || is_return(one) && is_return(other)
}

/// Of what takes back: a return, or a payment or a booking with its money the other way.
pub(super) fn is_return(kind: LineKind) -> bool {
    matches!(kind, LineKind::Return | LineKind::Payment | LineKind::Movement)
}
