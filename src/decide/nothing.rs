//! Nothing was found under the row's tag: what that means so far, and when it is proof enough.
//!
//! It never says "absent" by itself: that takes [`absence::prove`], and then nobody with the same
//! natural key who was paid, and no money around that could be this row's.

use std::borrow::Cow;

use crate::decide::absence::{self, Absence, Unproven};
use crate::decide::decision::{Decision, Verdict, Want};
use crate::decide::permit::HandBack;
use crate::decide::policy::{AbsentMeans, GaveUp};
use crate::decide::view::{Stranger, View};
use crate::model::count::counted;
use crate::model::evidence::{Miss, UntaggedMatch};
use crate::model::reason::Reason;
use crate::model::time::{Instant, span_text, to_short_text};
use crate::model::transaction::{AccountRef, SiblingFact, SiblingState};

pub(super) fn reference_unknown(view: &View<'_>) -> Option<Decision> {
    let reference = view.unknown_reference()?;
    let is_stored = view.row().psp_reference.as_deref() == Some(reference);
    let who = if is_stored { "the row stores" } else { "the case of the row showed" };
    let text = format!("{who} {reference}, which the PSP does not know");
    Some(view.review(Reason::ReferenceUnknown, text))
}

/// An object that carries nearly this row's tag, or came along without being the row's.
pub(super) fn nearly_tagged(view: &View<'_>) -> Option<Decision> {
    let near = view.inputs.near_misses.iter();
    let near = near.map(|(reference, tag)| Stranger { reference, tag, by_files: false });
    let Stranger { reference, tag, by_files } = near.chain(view.strangers.iter().copied()).min()?;
    let own = view.row().tag.text();
    let text = if tag == own {
        format!("{reference} carries this row's tag `{tag}`, and is not of its kind")
    } else if by_files {
        format!("{reference} carries this row's tag `{own}`, and before it another row's, `{tag}`")
    } else {
        format!("{reference} carries the tag `{tag}`, nearly this row's `{own}`")
    };
    Some(view.review(Reason::TagNearMiss, text))
}

pub(super) fn nothing_found(view: &View<'_>) -> Decision {
    let AccountRef::Known(account) = &view.row().account else {
        return view.review(Reason::UnknownAccount, "no account".to_owned());
    };
    let (row, history, policy, now) = (view.row(), view.history(), view.policy, view.now);
    let counts = |list: &_| absence::counts(list, row, history, policy, now).is_ok();
    let Some(list) = view.list(counts) else { return not_listed(view) };
    let miss = counts(list).then(|| Miss {
        account: account.clone(),
        fingerprint: row.fingerprint(),
        search: list.clone(),
    });
    let proof = absence::prove(list, row, account, history, policy, view.is_searched(), now);
    let decision = match proof {
        Ok(absence) => proven_absent(view, absence),
        Err(unproven) => unproven_yet(view, &unproven),
    };
    Decision { miss, ..decision }
}

/// A list is asked for only once a miss could count: before that it would be work for nothing.
fn not_listed(view: &View<'_>) -> Decision {
    if let Some(reference) = &view.row().psp_reference {
        return unproven_yet(view, &Unproven::HasReference { reference: reference.clone() });
    }
    if let Some(unproven) = absence::future_attempt(view.row(), view.now) {
        return unproven_yet(view, &unproven);
    }
    let until = absence::call_over_at(view.row(), view.history(), view.policy);
    if view.now <= until {
        return unproven_yet(view, &Unproven::CallMayArrive { until });
    }
    let text = "nothing found; the window was not listed completely".to_owned();
    Decision { wants: Some(Want::List), ..or_too_old(view, Reason::AbsenceUnproven, text, None) }
}

fn unproven_yet(view: &View<'_>, unproven: &Unproven) -> Decision {
    let text = format!("nothing found; {}", unproven.text());
    if unproven.is_for_ever() {
        // A find would spare a person the case: the search sees past every window.
        let wants = (!view.is_searched()).then_some(Want::Search);
        return Decision { wants, ..view.review(Reason::Unprovable, text) };
    }
    let reason = match unproven {
        Unproven::CallMayArrive { .. } => Reason::WithinGrace,
        Unproven::ClockSkew { .. } | Unproven::FutureAttempt { .. } => Reason::ClockSkew,
        Unproven::RouteDoesNotCount
        | Unproven::OnlySettled
        | Unproven::FilesLacking { .. }
        | Unproven::TooNarrow { .. }
        | Unproven::NoWitness
        | Unproven::NeedsMiss { .. }
        | Unproven::NeedsSearch
        | Unproven::HasReference { .. }
        | Unproven::BeyondReach
        | Unproven::AttemptsUnknown => Reason::AbsenceUnproven,
    };
    let wants = match unproven {
        Unproven::NeedsSearch => Some(Want::Search),
        Unproven::TooNarrow { .. } | Unproven::RouteDoesNotCount => Some(Want::List),
        Unproven::ClockSkew { .. }
        | Unproven::FutureAttempt { .. }
        | Unproven::CallMayArrive { .. }
        | Unproven::OnlySettled
        | Unproven::FilesLacking { .. }
        | Unproven::BeyondReach
        | Unproven::NoWitness
        | Unproven::NeedsMiss { .. }
        | Unproven::HasReference { .. }
        | Unproven::AttemptsUnknown => None,
    };
    let at = unproven.look_again_at();
    if unproven.is_under_way() {
        return Decision { wants, ..view.wait(reason, text, at) };
    }
    Decision { wants, ..or_too_old(view, reason, text, at) }
}

fn or_too_old(view: &View<'_>, reason: Reason, text: String, at: Option<Instant>) -> Decision {
    if view.too_old(None) {
        let limit = span_text(view.policy.timing.max_age);
        return view.review(Reason::Unprovable, format!("{text}; still unproven after {limit}"));
    }
    view.wait(reason, text, at)
}

fn proven_absent(view: &View<'_>, absence: Absence) -> Decision {
    let hands_back = view.policy.absent_means == AbsentMeans::HandBack;
    if let Some(decision) = sibling_has_it(view, "absent").filter(|_| hands_back) {
        return decision;
    }
    let by_age = |m: &&UntaggedMatch| (m.created_at, m.reference.clone());
    if let Some(other) = view.inputs.untagged.iter().min_by_key(by_age) {
        let text = format!(
            "absent, but {} captured {} at {} and belongs to no row",
            other.reference,
            other.captured,
            to_short_text(other.created_at)
        );
        return view.review(Reason::PossibleUntaggedMatch, text);
    }
    let text = absence::proof_text(&absence);
    if !hands_back {
        let text = format!("{text}; absent means abandoned here: nobody charges again");
        return retryable_absent(view, HandBack::abandoned(absence, view.now), text);
    }
    let siblings =
        || sibling_goes_first(view, "absent").or_else(|| sibling_unknown(view, "absent"));
    if let Some(decision) = siblings() {
        return decision;
    }
    if let Some(decision) = gave_up(view, &text) {
        return decision;
    }
    let hand_back = HandBack::absent(absence, view.now, view.policy.timing.charge_before);
    retryable_absent(view, hand_back, text)
}

fn retryable_absent(view: &View<'_>, hand_back: HandBack, text: String) -> Decision {
    Decision {
        watch_at: view.first_watch(),
        ..view.decision(Verdict::Retryable(Box::new(hand_back)), Reason::Absent, text)
    }
}

/// Whoever shares the natural key and was paid, or may be charged: this row must not be, too.
pub(super) fn sibling_has_it(view: &View<'_>, what: &str) -> Option<Decision> {
    let siblings = view.inputs.siblings.iter();
    let (id, how) = siblings.filter_map(|s| Some((&s.id, has_it(s.state)?))).min()?;
    let text = format!("{what}, but row {id} with the same natural key {how}");
    Some(view.review(Reason::SiblingRow, text))
}

/// How it is said that a sibling was paid, or may be charged; none where it is not.
pub(super) fn has_it(state: SiblingState) -> Option<&'static str> {
    match state {
        SiblingState::Succeeded | SiblingState::HandedBack => Some("succeeded or was handed back"),
        SiblingState::SaysPaid | SiblingState::Unclear => {
            Some("has a status of which the mapping does not say whether it was paid")
        }
        SiblingState::PaidCase => Some("is a person's, with money captured for it"),
        SiblingState::PaidAfterAll => Some("was paid at the PSP, whatever its status says"),
        SiblingState::Processing
        | SiblingState::Pending
        | SiblingState::Waiting
        | SiblingState::StandsBack
        | SiblingState::GivenUp
        | SiblingState::Other => None,
    }
}

/// The oldest of several stuck rows with one natural key decides first. One that stands back as a
/// person's case goes before nobody: no run looks at it, and two would wait for each other.
pub(super) fn sibling_goes_first(view: &View<'_>, what: &str) -> Option<Decision> {
    let is_stuck = |s: &SiblingState| {
        matches!(s, SiblingState::Processing | SiblingState::Pending | SiblingState::Waiting)
    };
    let siblings = view.inputs.siblings.iter().filter(|s| is_stuck(&s.state) && s.older);
    let first = siblings.min_by_key(|sibling| &sibling.id)?;
    let (id, how) = (&first.id, as_it_stands(first, "is still processing"));
    let text = format!("{what}, but row {id} with the same natural key is older and {how}");
    sibling_pending(view, text)
}

/// The oldest goes first, but not before every younger one was found unpaid as well: handed back
/// beside one that captured, the same payment would be charged twice. Nor beside one that somebody
/// gave up, before the PSP was asked about it.
pub(super) fn sibling_unknown(view: &View<'_>, what: &str) -> Option<Decision> {
    let first = |is_it: fn(&SiblingState) -> bool| {
        let siblings = view.inputs.siblings.iter().filter(|sibling| is_it(&sibling.state));
        siblings.min_by_key(|sibling| &sibling.id)
    };
    let may_be_paid = first(|s| matches!(s, SiblingState::Processing | SiblingState::Pending));
    let decision = match may_be_paid {
        Some(first) => {
            let how = as_it_stands(first, "is processing and may be paid");
            let id = &first.id;
            sibling_pending(view, format!("{what}, but row {id} with the same natural key {how}"))?
        }
        None => {
            let id = &first(|state| *state == SiblingState::GivenUp)?.id;
            let text = format!(
                "{what}, but row {id} with the same natural key was given up, and the PSP was not \
                 asked about it yet"
            );
            view.wait(Reason::SiblingPending, text, None)
        }
    };
    Some(Decision { wants: Some(Want::Siblings), ..decision })
}

/// How it is said of a sibling that something of it is under way.
pub(super) const MAY_BE_PAID: &str = "may still be paid at the PSP";

/// What is known of a sibling that is waited for, where that is more than its `status`: what ended
/// by its status alone is no more processing.
fn as_it_stands<'a>(sibling: &SiblingFact, status: &'a str) -> Cow<'a, str> {
    match (sibling.state, &sibling.lacks) {
        (SiblingState::Pending, Some(lacks)) => Cow::Owned(format!("{MAY_BE_PAID}: {lacks}")),
        (SiblingState::Pending, None) => Cow::Borrowed(MAY_BE_PAID),
        (_, _) => Cow::Borrowed(status),
    }
}

fn sibling_pending(view: &View<'_>, text: String) -> Option<Decision> {
    if view.too_old(None) {
        let limit = span_text(view.policy.timing.max_age);
        return Some(view.review(Reason::SiblingRow, format!("{text} after {limit}")));
    }
    Some(view.wait(Reason::SiblingPending, text, None))
}

/// After `max_retries` hand-backs the policy says what becomes of the row.
pub(super) fn gave_up(view: &View<'_>, text: &str) -> Option<Decision> {
    let tries = view.history().tries();
    if tries < view.policy.max_retries {
        return None;
    }
    let times = counted(tries, "time", "times");
    let text = format!("handed back {times} without an end; {text}");
    Some(match view.policy.gave_up {
        GaveUp::Review => view.review(Reason::GaveUp, text),
        GaveUp::Failed => Decision {
            watch_at: view.first_watch(),
            ..view.decision(Verdict::Failed, Reason::GaveUp, text)
        },
    })
}
