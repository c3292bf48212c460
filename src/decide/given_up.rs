//! A row that ended unpaid by its status alone: an application that took a time-out for a failure
//! wrote `failed`, and the money moved. What its PSP says of it is judged as of a row of its own,
//! before another row of its payment is charged.

use crate::decide::decision::{Asked, History, Inputs};
use crate::decide::policy::Policy;
use crate::decide::view::{Item, View};
use crate::model::evidence::{Answer, Evidence, ObjectState};
use crate::model::time::Instant;
use crate::model::transaction::Transaction;

/// What the PSP says of such a row beyond its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// Money was captured for it, and not all of it went back.
    Paid,
    /// Something of it may still be paid.
    UnderWay,
    /// A route gave no answer: this.
    Silence(Box<Evidence>),
    /// Files list every attempt, and not yet all that may list its: what they lack.
    Lacks(String),
    /// Nothing was paid for it.
    Unpaid,
}

/// What was said of it; `not_in_files`: what its account's files lack that list every attempt,
/// where files are all that there is.
pub fn told(
    row: &Transaction,
    evidence: &[Evidence],
    not_in_files: Option<String>,
    policy: &Policy,
    now: Instant,
) -> Told {
    let history = History::first_look(now);
    let inputs = Inputs {
        row,
        siblings: &[],
        evidence,
        claimed_references: &[],
        untagged: &[],
        near_misses: &[],
        history: &history,
        asked: Asked::Run,
    };
    let view = View::of(&inputs, policy, now);
    // A refund under its tag says that something was paid, and not that all of it went back.
    let is_of_another_kind = view.items.is_empty() && view.conflict.is_some();
    if is_of_another_kind || view.captured().iter().any(|item| keeps_money(item)) {
        return Told::Paid;
    }
    if view.items.iter().any(|item| item.can_still_capture() || is_under_way(item.state())) {
        return Told::UnderWay;
    }
    let is_unanswered = |item: &&Evidence| matches!(item.answer, Answer::NoAnswer(_));
    if let Some(item) = evidence.iter().find(is_unanswered) {
        return Told::Silence(Box::new(item.clone()));
    }
    // What is listed of it may be of an earlier call than its last.
    not_in_files.map_or(Told::Unpaid, Told::Lacks)
}

/// Whether it captured more than went back. What the customer disputes may yet be kept, and may not
/// be charged again unasked.
fn keeps_money(item: &Item<'_>) -> bool {
    item.back.disputed || item.left().is_none_or(|left| left.minor > 0)
}

/// Whether it may be paid without a new call of the shop. What waits for one is what a failure
/// leaves behind.
fn is_under_way(state: &ObjectState) -> bool {
    match state {
        ObjectState::InFlight
        | ObjectState::Authorized
        | ObjectState::ActionRequired
        | ObjectState::Unknown => true,
        ObjectState::Captured
        | ObjectState::Voided
        | ObjectState::Unattempted
        | ObjectState::Failed(_)
        | ObjectState::Canceled
        | ObjectState::Expired => false,
    }
}
