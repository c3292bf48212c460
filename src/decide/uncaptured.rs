//! Objects were found, and none captured anything: failures, open and dead objects.
//!
//! What a failure, a cancellation or an open object means is a rule's to say; a rule never opens
//! a gate of this file: no hand-back without its permit, no end while something could still
//! capture (by its state, or by a sum that the PSP names), none before the original call is over
//! and everything under the tag is known.

use chrono::TimeDelta;

use crate::decide::absence::{self, Unproven};
use crate::decide::decision::{Decision, Verdict, Want};
use crate::decide::judge::made_before;
use crate::decide::nothing::{
    gave_up, nearly_tagged, reference_unknown, sibling_goes_first, sibling_has_it, sibling_unknown,
};
use crate::decide::permit::{DefiniteFailure, HandBack, UnattemptedObject, stated_failure};
use crate::decide::rules::{Effect, Rule, Subject};
use crate::decide::view::{Item, View, seen};
use crate::model::evidence::ObjectState;
use crate::model::reason::Reason;
use crate::model::time::{Instant, earlier, later, span_text, to_short_text};
use crate::model::transaction::Attempts;

pub(super) fn in_flight(view: &View<'_>) -> Option<Decision> {
    let mut flying = view.items.iter().filter(|item| *item.state() == ObjectState::InFlight);
    let item = flying.next()?;
    let text = format!("{} is `{}` at the PSP", item.reference(), item.object.status);
    if view.too_old(Some(item.object.created_at)) {
        let text = format!("{text} since longer than {}", span_text(view.policy.timing.max_age));
        let claimed = claimed_by_another(view, item);
        return claimed.or_else(|| Some(view.review_of(item, Reason::PendingTooLong, text)));
    }
    Some(view.wait_for(item, Reason::PspPending, text, None))
}

/// Another row stores this object's reference, or succeeded by it: it speaks for that row.
pub(super) fn claimed_by_another(view: &View<'_>, item: &Item<'_>) -> Option<Decision> {
    let claims = view.inputs.claimed_references.iter().filter(|(r, _)| item.is_named(r));
    let (reference, other) = claims.min()?;
    let text = format!("{reference} already belongs to row {other}");
    Some(view.review_of(item, Reason::ReferenceClaimed, text))
}

pub(super) fn ended_uncaptured(view: &View<'_>) -> Option<Decision> {
    let newest = view.items.last()?;
    let decision = unknown_to_rules(view).unwrap_or_else(|| by_state(view, deciding(view, newest)));
    // A wait decides nothing; anything else would be judged by what is another row's.
    let claimed = || view.items.iter().rev().find_map(|item| claimed_by_another(view, item));
    let decision = match decision.verdict {
        Verdict::Wait => decision,
        Verdict::Succeeded | Verdict::Retryable(_) | Verdict::Failed | Verdict::Review => {
            claimed().unwrap_or(decision)
        }
    };
    Some(Decision { wants: decision.wants.or_else(|| wants_list(view, &decision)), ..decision })
}

/// Before a person is asked, or a wait is chosen that is not for the call itself, the whole window
/// is read: money that another object captured would change everything.
fn wants_list(view: &View<'_>, decision: &Decision) -> Option<Want> {
    let over_at = absence::call_over_at(view.row(), view.history(), view.policy);
    let is_of_use = decision.verdict == Verdict::Review || view.now > over_at;
    let is_missing = view.row().tag.usable().is_some() && view.list(|_| true).is_none();
    (is_missing && is_of_use).then_some(Want::List)
}

fn by_state(view: &View<'_>, item: &Item<'_>) -> Decision {
    match item.state() {
        ObjectState::Failed(_) => failed(view, item),
        ObjectState::Unattempted => unattempted(view, item),
        ObjectState::Authorized
        | ObjectState::ActionRequired
        | ObjectState::Canceled
        | ObjectState::Expired
        | ObjectState::Captured
        | ObjectState::Voided
        | ObjectState::InFlight
        | ObjectState::Unknown => uncaptured(view, item),
    }
}

/// The object that the row's end depends on: what could still move money by itself or by the
/// customer comes first, whatever its age; else the newest, which is the last that was tried.
fn deciding<'a, 'b>(view: &'b View<'a>, newest: &'b Item<'a>) -> &'b Item<'a> {
    let last = |wanted: ObjectState| view.items.iter().rev().find(|i| *i.state() == wanted);
    last(ObjectState::Unknown)
        .or_else(|| last(ObjectState::Authorized))
        .or_else(|| view.items.iter().rev().find(|item| item.holds_a_sum()))
        .or_else(|| last(ObjectState::ActionRequired))
        .unwrap_or(newest)
}

/// A failure or status that no rule knows is a person's, wherever it stands among the objects.
fn unknown_to_rules(view: &View<'_>) -> Option<Decision> {
    let newest_first = || view.items.iter().rev();
    let unknown = |item: &&Item<'_>, subject| view.rule_for(subject, item.object).is_none();
    let failures = newest_first().filter_map(|i| stated_failure(i.object).map(|f| (i, f)));
    let mut unknown_failures = failures.filter(|(item, _)| unknown(item, Subject::Failure));
    if let Some((item, failure)) = unknown_failures.next() {
        let (name, code) = (item.reference(), &failure.code);
        let text = format!("{name} failed with `{code}`, which no rule knows");
        return Some(view.review_of(item, Reason::DeclineUnknown, text));
    }
    let item = newest_first()
        .filter(|item| *item.state() == ObjectState::Unknown)
        .find(|item| unknown(item, Subject::UnknownStatus))?;
    let text = format!("{} is `{}`, which no rule knows", item.reference(), item.object.status);
    Some(view.review_of(item, Reason::PspStatusUnknown, with_sum(item, text)))
}

fn not_listed(view: &View<'_>, item: &Item<'_>) -> Decision {
    let (name, status) = (item.reference(), &item.object.status);
    let text = format!("{name} is `{status}`; the window was not listed yet");
    Decision { wants: Some(Want::List), ..wait_or_person(view, item, text, None) }
}

/// Waits for what a failure still lacks; where that never comes, a person decides.
fn wait_or_person(view: &View<'_>, item: &Item<'_>, text: String, at: Option<Instant>) -> Decision {
    if view.too_old(None) && at.is_none_or(|at| at <= view.now) {
        let limit = span_text(view.policy.timing.max_age);
        let text = format!("{text}; so since longer than {limit}");
        return view.review_of(item, Reason::PendingTooLong, text);
    }
    view.wait_for(item, Reason::FailureNotFinal, text, at)
}

fn failed(view: &View<'_>, item: &Item<'_>) -> Decision {
    let Some(rule) = view.rule_for(Subject::Failure, item.object) else {
        // `unknown_to_rules` came first; a person decides should that ever change.
        let text = format!("{} failed, and no rule knows how", item.reference());
        return view.review_of(item, Reason::DeclineUnknown, text);
    };
    let code = stated_failure(item.object).map_or("", |f| f.code.as_str());
    let text = format!("{} failed: {code} ({})", item.reference(), rule.words());
    by_rule(view, rule, item, text)
}

fn unattempted(view: &View<'_>, item: &Item<'_>) -> Decision {
    let text = format!("{} exists and was never attempted", item.reference());
    if let Some(decision) = not_yet(view, item, &text).or_else(|| must_not_charge(view, item)) {
        return decision;
    }
    let Some(proof) = UnattemptedObject::of(item.object) else {
        return view.review_of(item, Reason::PspStatusUnknown, text);
    };
    let hand_back = HandBack::unattempted(proof, view.now, view.policy.timing.charge_before);
    retryable(view, item, Reason::Unattempted, hand_back, text)
}

fn uncaptured(view: &View<'_>, item: &Item<'_>) -> Decision {
    // A charge without an intent calls itself succeeded as soon as it is authorised.
    let is_held = matches!(item.state(), ObjectState::Authorized);
    let more = match item.object.status.as_str() {
        "succeeded" | "paid" if is_held => ", and its money is authorized and not captured",
        _other => "",
    };
    let text = format!("{} is `{}`{more}", item.reference(), item.object.status);
    let rule = Subject::of(item.object).and_then(|subject| view.rule_for(subject, item.object));
    match rule {
        Some(rule) => by_rule(view, rule, item, format!("{text} ({})", rule.words())),
        None if is_held => view.review_of(item, reason_of(item), text),
        None => view.review_of(item, reason_of(item), with_sum(item, text)),
    }
}

/// What is said of an object, and how much of it can still be captured where its state does not
/// say that by itself.
fn with_sum(item: &Item<'_>, text: String) -> String {
    match item.holds_a_sum() {
        true => format!("{text}, and {}", item.open_text()),
        false => text,
    }
}

/// A sum that can still be captured is authorised, whatever the status is called.
fn reason_of(item: &Item<'_>) -> Reason {
    match item.holds_a_sum() {
        true => Reason::AuthorizedUncaptured,
        false => reason_of_state(item.state()),
    }
}

fn reason_of_state(state: &ObjectState) -> Reason {
    match state {
        ObjectState::Authorized => Reason::AuthorizedUncaptured,
        ObjectState::ActionRequired => Reason::ActionRequired,
        ObjectState::Expired => Reason::Expired,
        ObjectState::Canceled => Reason::Canceled,
        ObjectState::Voided => Reason::Voided,
        ObjectState::Unknown
        | ObjectState::Captured
        | ObjectState::InFlight
        | ObjectState::Unattempted
        | ObjectState::Failed(_) => Reason::PspStatusUnknown,
    }
}

/// Carries out what a rule says, within the table's own gates: a hand-back still needs its
/// permit, a success its money, an end that nothing can capture any more.
pub(super) fn by_rule(view: &View<'_>, rule: &Rule, item: &Item<'_>, text: String) -> Decision {
    let decision = match &rule.effect {
        Effect::Review => view.review_of(item, review_reason(rule, item), text),
        Effect::Wait if view.too_old(None) => view.review_of(item, Reason::PendingTooLong, text),
        Effect::Wait => view.wait_for(item, Reason::Rule, text, None),
        Effect::Succeeded if item.has_captured() && item.returned().is_none() => Decision {
            seen: Some(seen(item.object)),
            ..view.decision(Verdict::Succeeded, Reason::Rule, text)
        },
        Effect::Succeeded => view.review_of(item, Reason::Rule, text),
        Effect::Failed => final_failure(view, item, text),
        Effect::Retryable { not_before } => declined(view, item, *not_before, text),
    };
    Decision { rule: Some(rule.id.clone()), ..decision }
}

/// A shipped rule that sends to a person says no more than the table does; the user's own does.
fn review_reason(rule: &Rule, item: &Item<'_>) -> Reason {
    let is_named_by_state = !matches!(item.state(), ObjectState::Failed(_) | ObjectState::Unknown);
    if rule.own || !is_named_by_state {
        return Reason::Rule;
    }
    match rule.matches.subject {
        Subject::Disputed => Reason::Disputed,
        Subject::Refunded => Reason::Refunded,
        Subject::Returned => Reason::Returned,
        Subject::Failure
        | Subject::Voided
        | Subject::Authorized
        | Subject::ActionRequired
        | Subject::Canceled
        | Subject::Expired
        | Subject::UnknownStatus => reason_of(item),
    }
}

fn final_failure(view: &View<'_>, item: &Item<'_>, text: String) -> Decision {
    if item.has_captured() {
        return view.review_of(item, Reason::Rule, text);
    }
    if let Some(decision) = not_yet(view, item, &text) {
        return decision;
    }
    // What a decline left payable was tried; beside what was cancelled, another may be paid yet.
    let payable = view.items.iter().rev().find(|item| is_payable(item.state()));
    if let Some(other) = payable.filter(|_| stated_failure(item.object).is_none()) {
        let text = format!("{text}, and {} can still be paid", other.reference());
        return view.review_of(item, reason_of(item), text);
    }
    let reason = match stated_failure(item.object) {
        Some(_) => Reason::DeclinedFinal,
        None => Reason::Rule,
    };
    Decision {
        watch_at: view.first_watch(),
        seen: Some(seen(item.object)),
        ..view.decision(Verdict::Failed, reason, text)
    }
}

fn declined(
    view: &View<'_>,
    item: &Item<'_>,
    not_before: Option<TimeDelta>,
    text: String,
) -> Decision {
    if item.has_captured() || stated_failure(item.object).is_none() {
        // Money moved, or nothing failed (cancelled, expired): no rule makes a failure of that.
        return view.review_of(item, Reason::Rule, text);
    }
    if let Some(decision) = not_yet(view, item, &text).or_else(|| must_not_charge(view, item)) {
        return decision;
    }
    let Some(proof) = DefiniteFailure::of(item.object, view.now) else {
        return view.review_of(item, Reason::Rule, text);
    };
    // Whatever can still be paid must be used, or it could be paid beside a new one.
    let payable = view.items.iter().rev().find(|item| is_payable(item.state()));
    if payable.is_none() && !view.items.iter().all(Item::is_dead) {
        return view.review_of(item, Reason::DuplicateLive, text);
    }
    let payable = payable.map(|item| item.reference().to_owned());
    let not_before = not_before.map(|span| later(view.now, span));
    let charge_within = view.policy.timing.charge_before;
    let hand_back = HandBack::declined(proof, payable, not_before, view.now, charge_within);
    retryable(view, item, Reason::DeclinedRetryable, hand_back, text)
}

/// Waits for a call that somebody makes with it, and only for that.
pub(super) fn is_payable(state: &ObjectState) -> bool {
    match state {
        ObjectState::Failed(failure) => failure.still_payable,
        ObjectState::Unattempted => true,
        ObjectState::Captured
        | ObjectState::Voided
        | ObjectState::InFlight
        | ObjectState::Authorized
        | ObjectState::ActionRequired
        | ObjectState::Canceled
        | ObjectState::Expired
        | ObjectState::Unknown => false,
    }
}

fn retryable(
    view: &View<'_>,
    item: &Item<'_>,
    reason: Reason,
    hand_back: HandBack,
    text: String,
) -> Decision {
    let decision = gave_up(view, &text).unwrap_or_else(|| Decision {
        watch_at: view.first_watch(),
        ..view.decision(Verdict::Retryable(Box::new(hand_back)), reason, text)
    });
    Decision { seen: Some(seen(item.object)), ..decision }
}

/// What must hold before an object is believed to have ended or never begun: nothing under the tag
/// can still capture, its own reference is known, the original call is over, everything under the
/// tag is known, and every failure is final.
fn not_yet(view: &View<'_>, item: &Item<'_>, text: &str) -> Option<Decision> {
    let open = || still_open(view, text).or_else(|| reference_unknown(view));
    if let Some(decision) = open().or_else(|| other_tag(view)) {
        return Some(decision);
    }
    if let Some(unproven) = absence::future_attempt(view.row(), view.now) {
        return Some(skewed(view, item, &unproven, text));
    }
    let over_at = absence::call_over_at(view.row(), view.history(), view.policy);
    if view.now <= over_at {
        return Some(call_may_arrive(view, item, over_at, text));
    }
    everything_known(view, item, text).or_else(|| not_final(view, item, text))
}

/// No row ends, and none is charged anew, while something under its tag can still capture.
fn still_open(view: &View<'_>, text: &str) -> Option<Decision> {
    let live = view.live().next()?;
    let text = format!("{text}, and {} {}", live.reference(), live.open_text());
    Some(view.review_of(live, reason_of(live), text))
}

/// Clocks that differ too much: no negative verdict.
fn skewed(view: &View<'_>, item: &Item<'_>, unproven: &Unproven, text: &str) -> Decision {
    let text = format!("{text}; {}", unproven.text());
    if view.too_old(None) {
        return view.review_of(item, Reason::PendingTooLong, text);
    }
    view.wait_for(item, Reason::ClockSkew, text, None)
}

fn call_may_arrive(view: &View<'_>, item: &Item<'_>, until: Instant, text: &str) -> Decision {
    let reason = match item.state() {
        ObjectState::Unattempted => Reason::WithinGrace,
        ObjectState::Failed(_)
        | ObjectState::Captured
        | ObjectState::Voided
        | ObjectState::InFlight
        | ObjectState::Authorized
        | ObjectState::ActionRequired
        | ObjectState::Canceled
        | ObjectState::Expired
        | ObjectState::Unknown => Reason::FailureNotFinal,
    };
    let text = format!("{text}; the call can still arrive until {}", to_short_text(until));
    view.wait_for(item, reason, text, Some(until))
}

/// The row stores the reference of an object that carries another row's tag.
fn other_tag(view: &View<'_>) -> Option<Decision> {
    let item = view.items.iter().find(|item| item.has_other_tag)?;
    let tag = item.object.tag.as_deref().unwrap_or_default();
    let (name, own) = (item.reference(), view.row().tag.text());
    let text = format!("the row stores {name}, whose tag is `{tag}` and not `{own}`");
    Some(view.review_of(item, Reason::ReferenceMismatch, text))
}

fn everything_known(view: &View<'_>, item: &Item<'_>, text: &str) -> Option<Decision> {
    let stored = view.row().psp_reference.as_deref();
    if let Some(stored) = stored.filter(|s| !view.items.iter().any(|item| item.is_named(s))) {
        let text = format!("{text}; the stored {stored} was not asked for");
        return Some(wait_or_person(view, item, text, None));
    }
    if view.row().tag.usable().is_none() {
        return only_by_reference(view, item, text);
    }
    let covers =
        |list: &_| absence::covers(list, view.row(), view.history(), view.policy, view.now);
    let Some(list) = view.list(|list| covers(list).is_ok()) else {
        return Some(not_listed(view, item));
    };
    let Err(unproven) = covers(list) else { return None };
    if matches!(unproven, Unproven::ClockSkew { .. } | Unproven::FutureAttempt { .. }) {
        return Some(skewed(view, item, &unproven, text));
    }
    let text = format!("{text}; {}", unproven.text());
    Some(match unproven {
        // The call is over by now; the list was asked for before that.
        Unproven::CallMayArrive { .. } => {
            view.wait_for(item, Reason::FailureNotFinal, text, Some(view.now))
        }
        Unproven::BeyondReach => view.review_of(item, Reason::Unprovable, text),
        Unproven::ClockSkew { .. }
        | Unproven::FutureAttempt { .. }
        | Unproven::RouteDoesNotCount
        | Unproven::OnlySettled
        | Unproven::FilesLacking { .. }
        | Unproven::TooNarrow { .. }
        | Unproven::NoWitness
        | Unproven::NeedsMiss { .. }
        | Unproven::HasReference { .. }
        | Unproven::AttemptsUnknown
        | Unproven::NeedsSearch => {
            Decision { wants: Some(Want::List), ..wait_or_person(view, item, text, None) }
        }
    })
}

/// A row that can be asked for by its reference alone: nothing shows what else was made for it.
/// The stored object speaks for the row only where the last attempt made it.
fn only_by_reference(view: &View<'_>, item: &Item<'_>, text: &str) -> Option<Decision> {
    let over_at = absence::call_over_at(view.row(), view.history(), view.policy);
    if view.found_at() <= over_at {
        let text = format!("{text}; it was asked for before the call was over");
        return Some(view.wait_for(item, Reason::FailureNotFinal, text, Some(view.now)));
    }
    let last_attempt = absence::last_attempt(view.row(), view.history());
    let knows_attempts = view.row().attempts != Attempts::Unknown;
    let made_by_it = item.object.created_at >= earlier(last_attempt, absence::SKEW_MAX);
    if knows_attempts && made_by_it {
        return None;
    }
    let text = format!(
        "{text}; the row has no tag to search by, and its last attempt may have made another object"
    );
    Some(view.review_of(item, Reason::Unprovable, text))
}

/// A failure that may still turn, of any object under the tag.
fn not_final(view: &View<'_>, item: &Item<'_>, text: &str) -> Option<Decision> {
    let finals = || view.items.iter().flat_map(|item| item.final_from.iter().copied());
    if finals().any(|from| from.is_none()) {
        let text = format!("{text}; this PSP never calls it final");
        return Some(wait_or_person(view, item, text, None));
    }
    let from = finals().flatten().max().filter(|from| *from > view.now)?;
    let text = format!("{text}; not final before {}", to_short_text(from));
    Some(wait_or_person(view, item, text, Some(from)))
}

/// What stands against charging again although nothing of this row's own does.
fn must_not_charge(view: &View<'_>, item: &Item<'_>) -> Option<Decision> {
    let what = format!("{} is `{}`", item.reference(), item.object.status);
    // Before any wait for a sibling: that one would be charged beside the other row.
    let claimed = view.items.iter().rev().find_map(|item| claimed_by_another(view, item));
    claimed
        .or_else(|| anothers_payable(view))
        .or_else(|| nearly_tagged(view))
        .or_else(|| sibling_has_it(view, &what))
        .or_else(|| sibling_goes_first(view, &what))
        .or_else(|| not_searched(view, item, &what))
        .or_else(|| sibling_unknown(view, &what))
}

/// What can still be paid is of other money than the row, and charged by it would move that; or it
/// is so old that it was made for another.
fn anothers_payable(view: &View<'_>) -> Option<Decision> {
    let payable = || view.items.iter().rev().filter(|item| is_payable(item.state()));
    if let Some(decision) = payable().find_map(|item| made_before(view, item)) {
        return Some(decision);
    }
    let wanted = view.row().money?;
    let item = payable().find(|item| item.object.amount != Some(wanted))?;
    let is_currency = item.object.amount.is_none_or(|own| own.currency != wanted.currency);
    let reason = if is_currency { Reason::CurrencyMismatch } else { Reason::AmountMismatch };
    let text = format!(
        "{} can still be paid, and is of {}; the row says {wanted}",
        item.reference(),
        item.amount_text()
    );
    Some(view.review_of(item, reason, text))
}

/// The search by tag sees past every window: before a row is handed back it is asked, too.
fn not_searched(view: &View<'_>, item: &Item<'_>, what: &str) -> Option<Decision> {
    if view.row().tag.usable().is_none() || view.is_searched() {
        return None;
    }
    let text = format!("{what}; the search by tag was not asked yet");
    Some(Decision { wants: Some(Want::Search), ..wait_or_person(view, item, text, None) })
}
