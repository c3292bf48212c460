//! A person's decision of a row: it passes the same gate as a rule's.
//!
//! It is judged by fresh evidence, gathered as for any other decision. A person may decide what
//! the table leaves open; nobody decides against what the PSP shows. Where no API can answer, two
//! people decide, and the record says so. This is the gate of one row: how many hand-backs go out
//! at once is bounded by the run.

use std::collections::BTreeMap;

use crate::decide::absence::{self, Unproven};
use crate::decide::decision::{Decision, Inputs, Seen, Verdict};
use crate::decide::nothing::{MAY_BE_PAID, has_it, nearly_tagged};
use crate::decide::permit::{Approval, HandBack};
use crate::decide::policy::Policy;
use crate::decide::uncaptured::is_payable;
use crate::decide::view::{Item, View, seen};
use crate::model::evidence::ObjectState;
use crate::model::reason::Reason;
use crate::model::time::Instant;
use crate::model::transaction::{AccountRef, SiblingFact, SiblingState, TagState};

/// What a person wants to become of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// The money moved.
    Succeeded,
    /// Charge again.
    Retryable,
    /// It failed for good.
    Failed,
}

/// A decision that was proposed and approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The proposal's number.
    pub proposal: i64,
    /// What shall become of the row.
    pub wish: Wish,
    /// The object that succeeded, or the one to charge by.
    pub reference: Option<String>,
    /// Why.
    pub why: String,
    /// Who proposed it.
    pub proposed_by: String,
    /// Who approved it.
    pub approved_by: String,
}

/// From which amount on a decision needs two people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FourEyes {
    /// By currency's code: from so many minor units on; none: never.
    pub from: BTreeMap<String, Option<i64>>,
    /// Of currencies that are not named, none needs a second person.
    pub others_never: bool,
}

impl FourEyes {
    /// Whether this decision needs two people. Without a word about its currency it does.
    pub fn needed(&self, currency: &str, amount_minor: i64) -> bool {
        match self.from.get(currency) {
            Some(Some(from)) => amount_minor.unsigned_abs() >= from.unsigned_abs(),
            Some(None) => false,
            None => !self.others_never,
        }
    }
}

/// Why a person's decision is not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// A route gave no answer, or the call can still arrive: it is tried again.
    NotNow(String),
    /// What is known of the row stands against it.
    Stands(String),
    /// No API can answer, for this reason, and one person alone decided.
    NeedsSecond(String),
}

impl Refusal {
    /// One sentence, to whoever approved it.
    pub fn text(&self, approved_by: &str) -> String {
        match self {
            Self::NotNow(text) | Self::Stands(text) => text.clone(),
            Self::NeedsSecond(why) => only_two(why, approved_by),
        }
    }
}

/// Why nobody decides this alone, to who would.
pub fn only_two(why: &str, by: &str) -> String {
    format!("{why}: only two people decide that, and {by} alone proposes and approves it")
}

/// What the PSP's answers are worth for this decision.
enum Ground {
    /// They show it.
    Shown,
    /// They cannot show it, for this reason: people answer for it.
    People(String),
}

/// Decides a row as a person wants it, or says why not.
///
/// # Errors
/// With what stands against it.
pub fn decide_by_person(
    inputs: &Inputs<'_>,
    policy: &Policy,
    now: Instant,
    word: &Word,
) -> Result<Decision, Refusal> {
    let view = View::of(inputs, policy, now);
    if let Some(conflict) = &view.conflict {
        return Err(Refusal::Stands(conflict.clone()));
    }
    match word.wish {
        Wish::Succeeded => succeeded(&view, word),
        Wish::Retryable => retryable(&view, word),
        Wish::Failed => failed(&view, word),
    }
}

fn stands(text: impl Into<String>) -> Refusal {
    Refusal::Stands(text.into())
}

fn succeeded(view: &View<'_>, word: &Word) -> Result<Decision, Refusal> {
    let Some(wanted) = view.row().money else {
        return Err(stands("the row's amount cannot be read; mend the row first"));
    };
    let is_equal = |item: &&Item<'_>| {
        item.object.captured == Some(wanted)
            && *item.state() == ObjectState::Captured
            && !item.has_other_tag
            && item.returned().is_none()
            && !is_claimed(view, item)
    };
    let named = |item: &&Item<'_>| {
        word.reference.as_deref().is_none_or(|reference| item.is_named(reference))
    };
    let equal: Vec<&Item<'_>> = view.items.iter().filter(is_equal).filter(named).collect();
    let item = match equal.as_slice() {
        [only] => match standing_beside(view, only) {
            None => *only,
            Some(other) => {
                return Err(stands(format!(
                    "nothing is left of {}: it went back, and {other} stands; name that one by \
                     --object",
                    only.reference()
                )));
            }
        },
        [] => {
            if let Some(refusal) = no_answer(view) {
                return Err(refusal);
            }
            let which = word.reference.as_deref().unwrap_or("no object of the row");
            let text = format!("{which}: nothing that captured exactly {wanted} for this row");
            return Err(Refusal::Stands(text));
        }
        [_, _, ..] => {
            let names: Vec<&str> = equal.iter().map(|item| item.reference()).collect();
            let text = format!(
                "{} each captured {wanted}; propose it anew and name one by --object",
                names.join(", ")
            );
            return Err(Refusal::Stands(text));
        }
    };
    let is_open = |other: &Item<'_>| other.reference() != item.reference() && !other.is_dead();
    let watch_at = view.first_watch().filter(|_| view.items.iter().any(is_open));
    let what = format!("marked succeeded with {}", item.reference());
    let seen = Some(seen(item.object));
    Ok(Decision { watch_at, ..decision(view, Verdict::Succeeded, word, &what, seen) })
}

/// Of an object that went back whole: another one of the row's that is as good, and did not.
fn standing_beside<'a>(view: &View<'a>, item: &Item<'a>) -> Option<&'a str> {
    let is_as_good = |other: &&Item<'_>| {
        other.object.captured == item.object.captured && other.has_left() && !other.has_other_tag
    };
    let other = view.items.iter().find(is_as_good).filter(|_| !item.has_left())?;
    Some(other.object.reference.as_str())
}

fn retryable(view: &View<'_>, word: &Word) -> Result<Decision, Refusal> {
    account_holds(view)?;
    // First: money that moved is not waited out, as a call that can still arrive is.
    if let Some(item) = view.items.iter().find(|item| item.has_captured()) {
        return Err(captured_text(item));
    }
    let ground = nothing_moves(view)?;
    if let Some(refusal) = view.inputs.siblings.iter().find_map(beside) {
        return Err(refusal);
    }
    let payable = match &word.reference {
        Some(reference) => Some(payable(view, reference)?),
        None => {
            if let Some(item) = view.items.iter().find(|item| !item.is_dead()) {
                return Err(stands(format!(
                    "{} is `{}` and could still be paid: a new attempt could be paid beside it",
                    item.reference(),
                    item.object.status
                )));
            }
            None
        }
    };
    let ground = with_strangers(view, ground);
    let what = match &payable {
        Some(reference) => format!("handed back to be charged by {reference}"),
        None => "handed back for a new attempt".to_owned(),
    };
    let what = needs_two(&ground, word, what)?;
    // A PSP replays the answer that it saved for a failure: the old key is of use only where
    // nothing was ever made.
    let same_key = absence::same_key_until(view.row(), view.policy, view.now);
    let same_key = same_key.filter(|_| view.items.is_empty());
    let approval = Approval::of(word.proposal, &word.approved_by);
    let charge_within = view.policy.timing.charge_before;
    let hand_back = HandBack::by_person(approval, payable, same_key, view.now, charge_within);
    let seen = view.items.last().map(|item| seen(item.object));
    let verdict = Verdict::Retryable(Box::new(hand_back));
    Ok(Decision { watch_at: view.first_watch(), ..decision(view, verdict, word, &what, seen) })
}

/// How it is said of a sibling that no other row of its payment is to be charged.
const TAKEN: &str = "succeeded, was handed back or is processing";

/// Why nobody may be charged beside this sibling.
fn beside(sibling: &SiblingFact) -> Option<Refusal> {
    let how = match sibling.state {
        SiblingState::Other => return None,
        SiblingState::GivenUp => {
            let text = "was given up meanwhile, and the PSP was not asked about it";
            return Some(Refusal::NotNow(format!(
                "row {} with the same natural key {text}",
                sibling.id
            )));
        }
        SiblingState::Pending => MAY_BE_PAID,
        SiblingState::PaidAfterAll
        | SiblingState::PaidCase
        | SiblingState::SaysPaid
        | SiblingState::Unclear => has_it(sibling.state).unwrap_or(TAKEN),
        SiblingState::Succeeded
        | SiblingState::HandedBack
        | SiblingState::Processing
        | SiblingState::Waiting
        | SiblingState::StandsBack => TAKEN,
    };
    Some(stands(format!("row {} with the same natural key {how}", sibling.id)))
}

/// The object to charge by: this row's own, uncaptured, waiting for a call, and alone in that.
fn payable(view: &View<'_>, reference: &str) -> Result<String, Refusal> {
    let own = |item: &&Item<'_>| {
        item.is_named(reference) && !item.has_other_tag && !is_claimed(view, item)
    };
    let Some(item) = view.items.iter().find(own) else {
        return Err(stands(format!("{reference} is no object of this row")));
    };
    if !is_payable(item.state()) {
        let text = format!("{reference} is `{}`: it cannot be charged again", item.object.status);
        return Err(Refusal::Stands(text));
    }
    let wanted = view.row().money;
    if wanted.is_none() || item.object.amount != wanted {
        let row = wanted.map_or_else(|| "no amount that can be read".to_owned(), |m| m.to_string());
        return Err(stands(format!(
            "{reference} is of {}, and the row says {row}: charged by, it would move that",
            item.amount_text()
        )));
    }
    Ok(item.reference().to_owned())
}

fn failed(view: &View<'_>, word: &Word) -> Result<Decision, Refusal> {
    if let Some(refusal) = no_answer(view) {
        return Err(refusal);
    }
    let given_back = |item: &Item<'_>| {
        let captured = item.object.captured.map_or(0, |money| money.minor);
        *item.state() == ObjectState::Voided
            || (item.returned().is_some() && item.back.minor == 0)
            || (captured > 0 && item.back.minor >= captured)
    };
    let kept = |item: &&Item<'_>| item.has_captured() && !given_back(item);
    if let Some(item) = view.items.iter().find(kept) {
        return Err(captured_text(item));
    }
    let ground = with_strangers(view, nothing_moves(view)?);
    let what = needs_two(&ground, word, "marked failed".to_owned())?;
    let seen = view.items.last().map(|item| seen(item.object));
    Ok(Decision {
        watch_at: view.first_watch(),
        ..decision(view, Verdict::Failed, word, &what, seen)
    })
}

/// Nothing under the tag can still take money by itself, and no call can make anything more.
fn nothing_moves(view: &View<'_>) -> Result<Ground, Refusal> {
    if let Some(refusal) = no_answer(view) {
        return Err(refusal);
    }
    if let Some(live) = view.live().next() {
        return Err(stands(format!(
            "{} is `{}` and {}",
            live.reference(),
            live.object.status,
            live.open_text()
        )));
    }
    if let Some(item) = view.items.iter().find(|item| *item.state() == ObjectState::Unknown) {
        return Err(stands(format!(
            "{} is `{}`, which nobody knows: it may still capture",
            item.reference(),
            item.object.status
        )));
    }
    if let Some(unproven) = absence::future_attempt(view.row(), view.now) {
        return Err(Refusal::Stands(unproven.text()));
    }
    let until = absence::call_over_at(view.row(), view.history(), view.policy);
    if view.now <= until {
        return Err(Refusal::NotNow(Unproven::CallMayArrive { until }.text()));
    }
    shown(view)
}

/// Why the PSP was not asked about a row, though it knows by what: there may be money under that,
/// and no two people's word stands against it. The row is mended first, and then it is asked about.
fn not_asked(view: &View<'_>) -> Option<String> {
    let row = view.row();
    let facts = &view.policy.psp;
    if !facts.has_api() || !facts.kinds.contains(&row.kind) {
        return None;
    }
    let unread = |name| (!view.was_asked).then_some((name, "the row cannot be read"));
    let (name, why) = match (&row.psp_reference, &row.tag) {
        // By its reference it was asked about: what else stands under the tag, nobody knows.
        (_, TagState::Shared(name)) => Some((name, "several rows carry it")),
        (Some(name), _) | (None, TagState::Usable(name)) => unread(name),
        (None, _nothing_to_ask_by) => None,
    }?;
    Some(format!(
        "the PSP was not asked about `{name}`, since {why}: there may be money under it; mend the \
         row or the mapping, and it is asked"
    ))
}

/// Whether a complete search after the call's end stands behind what was not found.
fn shown(view: &View<'_>) -> Result<Ground, Refusal> {
    if let Some(why) = not_asked(view) {
        return Err(Refusal::Stands(why));
    }
    if !view.was_asked {
        return Ok(Ground::People("no API can answer for this row".to_owned()));
    }
    if let Some(reference) = view.unknown_reference() {
        let is_stored = view.row().psp_reference.as_deref() == Some(reference);
        let of = if is_stored { "the stored" } else { "what the case shows:" };
        return Ok(Ground::People(format!("the PSP does not know {of} {reference}")));
    }
    // Where nothing was found, the list must also show that the tag still arrives.
    let holds = |list: &_| match view.items.is_empty() {
        true => absence::counts(list, view.row(), view.history(), view.policy, view.now),
        false => absence::covers(list, view.row(), view.history(), view.policy, view.now),
    };
    let Some(list) = view.list(|list| holds(list).is_ok()) else {
        return Ok(Ground::People("no complete list could be asked for".to_owned()));
    };
    match holds(list) {
        Ok(()) if view.is_searched() => Ok(Ground::Shown),
        Ok(()) => Ok(Ground::People("the search by tag was not asked".to_owned())),
        Err(unproven @ Unproven::CallMayArrive { .. }) => Err(Refusal::NotNow(unproven.text())),
        Err(unproven @ (Unproven::ClockSkew { .. } | Unproven::FutureAttempt { .. })) => {
            Err(Refusal::Stands(unproven.text()))
        }
        Err(unproven) => Ok(Ground::People(unproven.text())),
    }
}

/// What lies beside a row and may be its own, so that one person alone gives no row up.
pub fn may_be_its_own(inputs: &Inputs<'_>, policy: &Policy, now: Instant) -> Option<String> {
    let view = View::of(inputs, policy, now);
    match with_strangers(&view, Ground::Shown) {
        Ground::People(text) => Some(text),
        Ground::Shown => {
            view.unknown_reference().map(|reference| format!("the PSP does not know {reference}"))
        }
    }
}

/// Money or tags nearby that may be the row's own: no API can tell.
fn with_strangers(view: &View<'_>, ground: Ground) -> Ground {
    let near = nearly_tagged(view).map(|decision| decision.text);
    let untagged = view.inputs.untagged.first().map(|other| {
        format!("{} captured {} and belongs to no row", other.reference, other.captured)
    });
    match near.or(untagged) {
        Some(text) => Ground::People(text),
        None => ground,
    }
}

fn needs_two(ground: &Ground, word: &Word, what: String) -> Result<String, Refusal> {
    match ground {
        Ground::Shown => Ok(what),
        Ground::People(why) if word.proposed_by != word.approved_by => {
            Ok(format!("{what}, by two people's word alone ({why})"))
        }
        Ground::People(why) => Err(Refusal::NeedsSecond(why.clone())),
    }
}

fn no_answer(view: &View<'_>) -> Option<Refusal> {
    let cause = view.no_answer?;
    Some(Refusal::NotNow(format!("no answer ({}): {}", cause.kind.as_str(), cause.detail)))
}

/// A hand-back goes to the original account and to no other.
fn account_holds(view: &View<'_>) -> Result<(), Refusal> {
    let name = match &view.row().account {
        AccountRef::Known(name) => name,
        AccountRef::Unmapped(value) => {
            return Err(stands(format!("no account is configured for `{value}`")));
        }
    };
    match view.history().first_account.as_ref().filter(|first| *first != name) {
        Some(first) => {
            Err(stands(format!("the row names {name}, and named {first} when it was first seen")))
        }
        None => Ok(()),
    }
}

fn captured_text(item: &Item<'_>) -> Refusal {
    stands(format!("{} captured {}", item.reference(), item.amount_text()))
}

fn is_claimed(view: &View<'_>, item: &Item<'_>) -> bool {
    view.inputs.claimed_references.iter().any(|(reference, _)| item.is_named(reference))
}

fn decision(
    view: &View<'_>,
    verdict: Verdict,
    word: &Word,
    what: &str,
    seen: Option<Seen>,
) -> Decision {
    let Word { proposal, why, proposed_by, approved_by, .. } = word;
    let text = format!(
        "{what}: {why} (proposed by {proposed_by}, approved by {approved_by}; proposal {proposal})"
    );
    Decision { seen, ..view.decision(verdict, Reason::ByPerson, text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_people_decide_from_an_amount_on_and_wherever_nothing_is_said() {
        let from = [("EUR".to_owned(), Some(50_000)), ("USD".to_owned(), None)];
        let named = FourEyes { from: from.into_iter().collect(), others_never: false };
        for (currency, minor, needed) in [
            ("EUR", 49_999, false),
            ("EUR", 50_000, true),
            ("EUR", -50_000, true),
            ("EUR", i64::MIN, true),
            ("USD", 1_000_000, false),
            ("JPY", 1, true),
            ("", 0, true),
        ] {
            assert_eq!(named.needed(currency, minor), needed, "{currency} {minor}");
        }
        assert!(FourEyes::default().needed("EUR", 0));
        let never = FourEyes { others_never: true, ..FourEyes::default() };
        assert!(!never.needed("EUR", i64::MAX));
    }
}
