//! `decide`: the decision table, top to bottom; the first line that holds wins.
//!
//! It never does I/O and never fails. Adding a reason: a step here at its precedence, and a row
//! in the table of `tests/it/decisions.rs`.

use chrono::TimeDelta;

use crate::decide::absence::{self, Unproven};
use crate::decide::backoff;
use crate::decide::decision::{Asked, Decision, History, Inputs, Seen, Verdict, Want};
use crate::decide::permit::{DefiniteFailure, HandBack, UnattemptedObject, stated_failure};
use crate::decide::policy::{AbsentMeans, GaveUp, Policy};
use crate::decide::rules::{Effect, Question, Rule, Subject};
use crate::model::evidence::{
    Answer, Cause, CompleteSearch, Evidence, Miss, ObjectState, PspObject, Route,
};
use crate::model::reason::{Outcome, Reason};
use crate::model::time::{Instant, earlier, later, span_text, to_short_text};
use crate::model::transaction::{AccountRef, SiblingState, TagState};

/// Decides one row.
pub fn decide(inputs: &Inputs<'_>, policy: &Policy, now: Instant) -> Decision {
    let view = View::of(inputs, policy, now);
    let steps: [fn(&View<'_>) -> Option<Decision>; 14] = [
        row_is_readable,
        account_is_known,
        contradiction,
        several_movements,
        captured_elsewhere,
        captured_otherwise,
        taken_back,
        captured,
        unavailable,
        watched,
        in_flight,
        ended_uncaptured,
        reference_unknown,
        nearly_tagged,
    ];
    steps.iter().find_map(|step| step(&view)).unwrap_or_else(|| nothing_found(&view))
}

/// The inputs, sorted for judging: objects merged by reference, the newest observation wins.
struct View<'a> {
    inputs: &'a Inputs<'a>,
    policy: &'a Policy,
    now: Instant,
    objects: Vec<&'a PspObject>,
    conflict: Option<String>,
    list: Option<&'a CompleteSearch>,
    searched: bool,
    no_answer: Option<&'a Cause>,
    unknown_reference: Option<&'a str>,
}

impl<'a> View<'a> {
    fn of(inputs: &'a Inputs<'a>, policy: &'a Policy, now: Instant) -> Self {
        let mut evidence: Vec<&'a Evidence> = inputs.evidence.iter().collect();
        evidence.sort_by_key(|e| (e.asked_at, e.route));
        let mut view = Self {
            inputs,
            policy,
            now,
            objects: Vec::new(),
            conflict: None,
            list: None,
            searched: false,
            no_answer: None,
            unknown_reference: None,
        };
        for item in evidence {
            view.take(item);
        }
        view.objects
            .sort_by(|a, b| (a.created_at, &a.reference).cmp(&(b.created_at, &b.reference)));
        view
    }

    fn take(&mut self, item: &'a Evidence) {
        match &item.answer {
            Answer::Found { objects, search } => {
                for object in objects {
                    self.merge(object);
                }
                self.note_search(search.as_ref(), item.route);
            }
            Answer::Nothing(search) => self.note_search(Some(search), item.route),
            Answer::UnknownReference(reference) => self.unknown_reference = Some(reference),
            Answer::NoAnswer(cause) => self.no_answer = self.no_answer.or(Some(cause)),
        }
    }

    fn note_search(&mut self, search: Option<&'a CompleteSearch>, route: Route) {
        self.searched |= route == Route::Search && search.is_some();
        if let Some(search) = search.filter(|s| s.route == Route::List) {
            self.list = Some(search);
        }
    }

    /// Money seen once does not vanish: a later answer that denies it is a conflict.
    fn merge(&mut self, object: &'a PspObject) {
        let known = self.objects.iter_mut().find(|known| known.is_named(&object.reference));
        let Some(known) = known else {
            self.objects.push(object);
            return;
        };
        let had_money = known.captured.is_some_and(|m| m.minor > 0);
        let denies = object.state.is_dead() || object.state == ObjectState::Unattempted;
        if had_money && denies {
            self.conflict = Some(format!(
                "{} was {} and is said to be {} now",
                known.reference, known.status, object.status
            ));
            return;
        }
        *known = object;
    }

    fn row(&self) -> &'a crate::model::transaction::Transaction {
        self.inputs.row
    }

    fn history(&self) -> &'a History {
        self.inputs.history
    }

    fn captured(&self) -> Vec<&'a PspObject> {
        self.objects.iter().copied().filter(|o| has_captured(o)).collect()
    }

    fn live(&self) -> Vec<&'a PspObject> {
        self.objects.iter().copied().filter(|o| o.state.can_still_capture()).collect()
    }

    /// Whether every object under the tag is known: a complete list, or a table that has no tag
    /// and knows its one object by its reference.
    fn all_known(&self) -> bool {
        self.list.is_some() || self.row().tag == TagState::Unmapped
    }

    fn too_old(&self) -> bool {
        let age = self.now.signed_duration_since(self.history().aged_from);
        age > self.policy.timing.max_age
    }

    fn decision(&self, verdict: Verdict, reason: Reason, text: String) -> Decision {
        Decision {
            verdict,
            reason,
            rule: None,
            text,
            seen: self.objects.first().map(|o| seen(o)),
            next_check_at: None,
            watch_at: None,
            miss: None,
            answered: self.no_answer.is_none(),
            wants: None,
        }
    }

    fn review(&self, reason: Reason, text: String) -> Decision {
        self.decision(Verdict::Review, reason, text)
    }

    fn review_of(&self, object: &PspObject, reason: Reason, text: String) -> Decision {
        Decision { seen: Some(seen(object)), ..self.review(reason, text) }
    }

    /// A wait; without a better instant the back-off says when.
    fn wait(&self, reason: Reason, text: String, at: Option<Instant>) -> Decision {
        let key = &self.row().key;
        let timing = &self.policy.timing;
        let checks = self.history().checks;
        let next = match at {
            // One second past, since a search must be *after* the instant; spread over a minute.
            Some(at) => later(
                at.max(self.now),
                TimeDelta::seconds(1)
                    .checked_add(&backoff::spread(key, checks, 30))
                    .unwrap_or_default(),
            ),
            None => backoff::next_check_at(key, checks, timing, self.now),
        };
        Decision { next_check_at: Some(next), ..self.decision(Verdict::Wait, reason, text) }
    }

    fn first_watch(&self) -> Option<Instant> {
        self.policy.timing.watch.first().map(|span| later(self.now, *span))
    }

    fn rule_for(&self, subject: Subject, object: &PspObject) -> Option<&'a Rule> {
        self.policy.rules.find(&Question {
            psp: &self.policy.psp.psp,
            subject,
            object,
            kind: self.row().kind,
            money: self.row().money,
            handbacks: self.history().handbacks,
        })
    }
}

fn seen(object: &PspObject) -> Seen {
    Seen {
        reference: object.reference.clone(),
        status: object.status.clone(),
        amount: object.captured.filter(|_| has_captured(object)).or(object.amount),
        created_at: object.created_at,
    }
}

fn has_captured(object: &PspObject) -> bool {
    matches!(object.state, ObjectState::Captured | ObjectState::Voided)
        || object.captured.is_some_and(|money| money.minor > 0)
}

fn row_is_readable(view: &View<'_>) -> Option<Decision> {
    let row = view.row();
    if let Some(defect) = row.defects.first() {
        let text = format!("{}: {}", defect.field, defect.problem);
        return Some(view.review(Reason::RowUnreadable, text));
    }
    let Some(money) = row.money else {
        return Some(view.review(Reason::RowUnreadable, "amount: missing".to_owned()));
    };
    if money.minor < 0 {
        let text = format!("amount: {money} is negative");
        return Some(view.review(Reason::RowUnreadable, text));
    }
    if row.psp_reference.is_some() {
        return None;
    }
    let text = match &row.tag {
        TagState::Usable(_) => return None,
        TagState::Unmapped => {
            "the mapping has no tag, and the row stores no PSP reference".to_owned()
        }
        TagState::Null(column) => format!("the tag is NULL (column {column})"),
        TagState::Empty => "the tag is empty".to_owned(),
        TagState::Shared(tag) => format!("the tag `{tag}` is shared by several rows"),
        TagState::TooLong { tag, max } => {
            format!("the tag `{tag}` is longer than the {max} characters of its place")
        }
    };
    Some(view.review(Reason::TagUnusable, text))
}

fn account_is_known(view: &View<'_>) -> Option<Decision> {
    let row = view.row();
    let name = match &row.account {
        AccountRef::Unmapped(value) => {
            let text = format!("no account is configured for `{value}`");
            return Some(view.review(Reason::UnknownAccount, text));
        }
        AccountRef::Known(name) => name,
    };
    if let Some(first) = view.history().first_account.as_ref().filter(|first| *first != name) {
        let text = format!("the row names {name}, and named {first} when it was first seen");
        return Some(view.review(Reason::AccountChanged, text));
    }
    if !view.policy.psp.kinds.contains(&row.kind) {
        let text = format!("{} cannot look up a {}", view.policy.psp.psp, row.kind.as_str());
        return Some(view.review(Reason::UnsupportedKind, text));
    }
    None
}

fn contradiction(view: &View<'_>) -> Option<Decision> {
    if let Some(conflict) = &view.conflict {
        return Some(view.review(Reason::EvidenceConflict, conflict.clone()));
    }
    let captured = view.captured();
    let first = captured.first()?;
    // A row that is processing again was taken by its worker: money found is its own answer.
    let ended = view.inputs.asked == Asked::Watch && !view.row().processing;
    let is_success = view.row().psp_reference.as_deref().is_some_and(|r| first.is_named(r));
    if !ended || (captured.len() == 1 && is_success) {
        return None;
    }
    let text = format!(
        "{} captured {} for a row that is `{}`",
        first.reference,
        amount_text(first),
        view.row().status
    );
    Some(view.review_of(first, Reason::LateContradiction, text))
}

fn amount_text(object: &PspObject) -> String {
    object
        .captured
        .or(object.amount)
        .map_or_else(|| "an amount of an unknown currency".to_owned(), |m| m.to_string())
}

fn several_movements(view: &View<'_>) -> Option<Decision> {
    let captured = view.captured();
    let (first, rest) = captured.split_first()?;
    if !rest.is_empty() {
        let all: Vec<String> =
            captured.iter().map(|o| format!("{} {}", o.reference, amount_text(o))).collect();
        let text = format!("{} captures for one tag: {}", captured.len(), all.join(", "));
        return Some(view.review_of(first, Reason::DuplicateCapture, text));
    }
    let live = view.live();
    let other = live.iter().find(|o| o.reference != first.reference)?;
    let text = format!(
        "{} captured, and {} ({}) can still capture",
        first.reference, other.reference, other.status
    );
    Some(view.review_of(first, Reason::DuplicateLive, text))
}

fn captured_elsewhere(view: &View<'_>) -> Option<Decision> {
    let captured = view.captured();
    let object = captured.first()?;
    let claim = view.inputs.claimed_references.iter().find(|(r, _)| object.is_named(r));
    if let Some((reference, other)) = claim {
        let text = format!("{reference} already belongs to row {other}");
        return Some(view.review_of(object, Reason::ReferenceClaimed, text));
    }
    let stored = view.row().psp_reference.as_deref();
    if let Some(stored) = stored.filter(|stored| !object.is_named(stored)) {
        let text = format!("the row stores {stored}, and {} captured", object.reference);
        return Some(view.review_of(object, Reason::ReferenceMismatch, text));
    }
    let from = earlier(view.row().created_at, view.policy.timing.object_before_row);
    if object.created_at < from {
        let text = format!(
            "{} was created {}, before the row's window begins ({})",
            object.reference,
            to_short_text(object.created_at),
            to_short_text(from)
        );
        return Some(view.review_of(object, Reason::TimeMismatch, text));
    }
    let sibling = view.inputs.siblings.iter().find(|s| s.state == SiblingState::Succeeded)?;
    let text = format!(
        "{} captured, and row {} with the same natural key already succeeded",
        object.reference, sibling.id
    );
    Some(view.review_of(object, Reason::SiblingRow, text))
}

fn captured_otherwise(view: &View<'_>) -> Option<Decision> {
    let captured = view.captured();
    let object = captured.first()?;
    let wanted = view.row().money?;
    let got = object.captured.or(object.amount);
    match got {
        Some(got) if got.currency != wanted.currency => {
            let text = format!("{} captured {got}; the row says {wanted}", object.reference);
            Some(view.review_of(object, Reason::CurrencyMismatch, text))
        }
        Some(got) if got.minor != wanted.minor => {
            let text = format!("{} captured {got}; the row says {wanted}", object.reference);
            Some(view.review_of(object, Reason::AmountMismatch, text))
        }
        Some(_) => None,
        None => {
            let text = format!("{} captured in a currency ISO does not know", object.reference);
            Some(view.review_of(object, Reason::CurrencyMismatch, text))
        }
    }
}

fn taken_back(view: &View<'_>) -> Option<Decision> {
    let captured = view.captured();
    let object = captured.first()?;
    let (subject, reason, what) = if object.disputed {
        (Subject::Disputed, Reason::Disputed, "is disputed")
    } else if object.state == ObjectState::Voided {
        (Subject::Voided, Reason::Voided, "was voided")
    } else if object.refunded_minor != 0 {
        (Subject::Refunded, Reason::Refunded, "was refunded")
    } else {
        return None;
    };
    let text = format!("{} captured {} and {what}", object.reference, amount_text(object));
    if let Some(rule) = view.rule_for(subject, object) {
        return Some(by_rule(view, rule, object, text));
    }
    Some(view.review_of(object, reason, text))
}

fn captured(view: &View<'_>) -> Option<Decision> {
    let captured = view.captured();
    let object = captured.first()?;
    let text = format!("{} captured {} (exact)", object.reference, amount_text(object));
    // An object that waits for the customer could still be paid beside this one.
    let payable = view.objects.iter().any(|o| {
        o.reference != object.reference && !o.state.is_dead() && o.state != ObjectState::Captured
    });
    let watch_at = if view.inputs.asked == Asked::Watch {
        next_watch(view)
    } else {
        view.first_watch().filter(|_| payable)
    };
    Some(Decision {
        watch_at,
        seen: Some(seen(object)),
        ..view.decision(Verdict::Succeeded, Reason::Captured, text)
    })
}

fn unavailable(view: &View<'_>) -> Option<Decision> {
    let cause = view.no_answer;
    if cause.is_none() && !view.inputs.evidence.is_empty() {
        return None;
    }
    let (kind, detail) = cause.map_or(("not_asked", "no route was asked"), |cause| {
        (cause.kind.as_str(), cause.detail.as_str())
    });
    let text = format!("no answer ({kind}): {detail}");
    let key = &view.row().key;
    let unanswered = view.history().unanswered;
    let next = backoff::next_check_at(key, unanswered, &view.policy.timing, view.now);
    Some(Decision {
        next_check_at: Some(next),
        answered: false,
        watch_at: view.inputs.history.watch_from.map(|_| next),
        ..view.decision(Verdict::Wait, Reason::PspUnavailable, text)
    })
}

/// After a hand-back or an end: what is not money is no news, and is looked at again.
fn watched(view: &View<'_>) -> Option<Decision> {
    if view.inputs.asked != Asked::Watch {
        return None;
    }
    let next = next_watch(view);
    let text = match (view.objects.len(), next) {
        (0, Some(at)) => format!("nothing under the tag; next look {}", to_short_text(at)),
        (0, None) => "nothing under the tag; the watch ends".to_owned(),
        (n, Some(at)) => format!("{n} objects, none captured; next look {}", to_short_text(at)),
        (n, None) => format!("{n} objects, none captured; the watch ends"),
    };
    Some(Decision {
        watch_at: next,
        next_check_at: next.or(Some(view.now)),
        ..view.decision(Verdict::Wait, Reason::Watched, text)
    })
}

fn next_watch(view: &View<'_>) -> Option<Instant> {
    let step = usize::try_from(view.history().watch_step).ok()?.checked_add(1)?;
    let span = view.policy.timing.watch.get(step)?;
    let from = view.history().watch_from.unwrap_or(view.now);
    Some(later(from, *span).max(later(view.now, TimeDelta::minutes(1))))
}

fn in_flight(view: &View<'_>) -> Option<Decision> {
    let object = view.objects.iter().find(|o| o.state == ObjectState::InFlight)?;
    let text = format!("{} is `{}` at the PSP", object.reference, object.status);
    if view.too_old() {
        let text = format!("{text} since longer than {}", span_text(view.policy.timing.max_age));
        return Some(view.review_of(object, Reason::PendingTooLong, text));
    }
    Some(Decision { seen: Some(seen(object)), ..view.wait(Reason::PspPending, text, None) })
}

/// Objects were found, and none captured anything nor is in flight.
fn ended_uncaptured(view: &View<'_>) -> Option<Decision> {
    let newest = view.objects.last()?;
    if let Some(decision) = unknown_to_rules(view) {
        return Some(decision);
    }
    if !view.all_known() {
        let text =
            format!("{} is `{}`; the window was not listed yet", newest.reference, newest.status);
        return Some(Decision {
            wants: Some(Want::List),
            ..view.wait(Reason::FailureNotFinal, text, None)
        });
    }
    // An open object decides before a dead one: charging again must use it or wait for it.
    let pick = |wanted: fn(&ObjectState) -> bool| {
        view.objects.iter().rev().copied().find(|o| wanted(&o.state))
    };
    let open = pick(|s| *s == ObjectState::Authorized)
        .or_else(|| pick(|s| *s == ObjectState::ActionRequired))
        .or_else(|| pick(|s| matches!(s, ObjectState::Failed(f) if f.still_payable)))
        .or_else(|| pick(|s| *s == ObjectState::Unattempted))
        .or_else(|| pick(|s| matches!(s, ObjectState::Failed(_))))
        .unwrap_or(newest);
    Some(match &open.state {
        ObjectState::Failed(_) => failed(view, open),
        ObjectState::Unattempted => unattempted(view, open),
        ObjectState::Authorized
        | ObjectState::ActionRequired
        | ObjectState::Canceled
        | ObjectState::Expired
        | ObjectState::Captured
        | ObjectState::Voided
        | ObjectState::InFlight
        | ObjectState::Unknown => uncaptured(view, open),
    })
}

fn unknown_to_rules(view: &View<'_>) -> Option<Decision> {
    for object in view.objects.iter().rev() {
        let failure = stated_failure(object);
        let subject = match (&object.state, failure) {
            (ObjectState::Unknown, _) => Subject::UnknownStatus,
            (_, Some(_)) => Subject::Failure,
            (_, None) => continue,
        };
        if view.rule_for(subject, object).is_some() {
            continue;
        }
        let (reason, text) = match failure {
            Some(failure) => (
                Reason::DeclineUnknown,
                format!("{} failed with `{}`, which no rule knows", object.reference, failure.code),
            ),
            None => (
                Reason::PspStatusUnknown,
                format!("{} is `{}`, which no rule knows", object.reference, object.status),
            ),
        };
        return Some(view.review_of(object, reason, text));
    }
    None
}

fn failed(view: &View<'_>, object: &PspObject) -> Decision {
    let Some(rule) = view.rule_for(Subject::Failure, object) else {
        // `unknown_to_rules` came first; a person decides should that ever change.
        let text = format!("{} failed, and no rule knows how", object.reference);
        return view.review_of(object, Reason::DeclineUnknown, text);
    };
    let code = stated_failure(object).map_or("", |f| f.code.as_str());
    let text = format!("{} failed: {code} (rule {})", object.reference, rule.id);
    by_rule(view, rule, object, text)
}

fn unattempted(view: &View<'_>, object: &PspObject) -> Decision {
    let until = absence::call_over_at(view.row(), view.history(), view.policy);
    let text = format!("{} exists and was never attempted", object.reference);
    if view.now <= until {
        let text = format!("{text}; the call can still arrive until {}", to_short_text(until));
        return Decision {
            seen: Some(seen(object)),
            ..view.wait(Reason::WithinGrace, text, Some(until))
        };
    }
    let Some(proof) = UnattemptedObject::of(object) else {
        return view.review_of(object, Reason::PspStatusUnknown, text);
    };
    let hand_back = HandBack::unattempted(proof, view.now, view.policy.timing.charge_before);
    retryable(view, object, Reason::Unattempted, hand_back, text)
}

fn uncaptured(view: &View<'_>, object: &PspObject) -> Decision {
    let reason = match object.state {
        ObjectState::Authorized => Reason::AuthorizedUncaptured,
        ObjectState::ActionRequired => Reason::ActionRequired,
        ObjectState::Expired => Reason::Expired,
        ObjectState::Canceled => Reason::Canceled,
        ObjectState::Unknown
        | ObjectState::Captured
        | ObjectState::Voided
        | ObjectState::InFlight
        | ObjectState::Unattempted
        | ObjectState::Failed(_) => Reason::PspStatusUnknown,
    };
    let text = format!("{} is `{}`", object.reference, object.status);
    let rule = Subject::of(object).and_then(|subject| view.rule_for(subject, object));
    match rule {
        Some(rule) => by_rule(view, rule, object, format!("{text} (rule {})", rule.id)),
        None => view.review_of(object, reason, text),
    }
}

/// Carries out what a rule says. A rule never overrides the table's own gates: a hand-back still
/// needs its permit, a success its money.
fn by_rule(view: &View<'_>, rule: &Rule, object: &PspObject, text: String) -> Decision {
    let decision = match &rule.effect {
        Effect::Review => {
            let reason = natural_reason(object, Outcome::Review);
            view.review_of(object, reason, text)
        }
        Effect::Wait if view.too_old() => view.review_of(object, Reason::PendingTooLong, text),
        Effect::Wait => {
            Decision { seen: Some(seen(object)), ..view.wait(Reason::Rule, text, None) }
        }
        Effect::Succeeded if has_captured(object) => Decision {
            seen: Some(seen(object)),
            ..view.decision(Verdict::Succeeded, Reason::Rule, text)
        },
        Effect::Succeeded => view.review_of(object, Reason::Rule, text),
        Effect::Failed => final_failure(view, object, text),
        Effect::Retryable { not_before } => declined(view, object, *not_before, text),
    };
    Decision { rule: Some(rule.id.clone()), ..decision }
}

fn natural_reason(object: &PspObject, outcome: Outcome) -> Reason {
    match (stated_failure(object), outcome) {
        (Some(_), Outcome::Failed) => Reason::DeclinedFinal,
        (Some(_), Outcome::Retryable) => Reason::DeclinedRetryable,
        (Some(_), Outcome::Review | Outcome::Wait | Outcome::Succeeded) | (None, _) => Reason::Rule,
    }
}

/// When the failure may be believed: the call is over and the PSP calls it final.
fn not_final_until(view: &View<'_>, object: &PspObject) -> Result<(), Option<Instant>> {
    let call_over = absence::call_over_at(view.row(), view.history(), view.policy);
    if view.now <= call_over {
        return Err(Some(call_over));
    }
    match stated_failure(object).map(|failure| failure.final_from) {
        Some(Some(from)) if from > view.now => Err(Some(from)),
        Some(None) => Err(None),
        Some(Some(_)) | None => Ok(()),
    }
}

fn not_final(view: &View<'_>, object: &PspObject, until: Option<Instant>, text: &str) -> Decision {
    let text = match until {
        Some(at) => format!("{text}; not final before {}", to_short_text(at)),
        None => format!("{text}; this PSP never calls it final"),
    };
    if until.is_none() && view.too_old() {
        return view.review_of(object, Reason::PendingTooLong, text);
    }
    Decision { seen: Some(seen(object)), ..view.wait(Reason::FailureNotFinal, text, until) }
}

fn final_failure(view: &View<'_>, object: &PspObject, text: String) -> Decision {
    if has_captured(object) {
        return view.review_of(object, Reason::Rule, text);
    }
    if let Err(until) = not_final_until(view, object) {
        return not_final(view, object, until, &text);
    }
    Decision {
        watch_at: view.first_watch(),
        seen: Some(seen(object)),
        ..view.decision(Verdict::Failed, natural_reason(object, Outcome::Failed), text)
    }
}

fn declined(
    view: &View<'_>,
    object: &PspObject,
    not_before: Option<TimeDelta>,
    text: String,
) -> Decision {
    if let Err(until) = not_final_until(view, object) {
        return not_final(view, object, until, &text);
    }
    let Some(proof) = DefiniteFailure::of(object, view.now) else {
        // Cancelled and expired objects state no failure: a rule cannot make one of them.
        return view.review_of(object, Reason::Rule, text);
    };
    let payable = match &object.state {
        ObjectState::Failed(failure) if failure.still_payable => Some(object.reference.clone()),
        _dead => None,
    };
    if payable.is_none() && !view.objects.iter().all(|o| o.state.is_dead()) {
        return view.review_of(object, Reason::DuplicateLive, text);
    }
    let not_before = not_before.map(|span| later(view.now, span));
    let charge_within = view.policy.timing.charge_before;
    let hand_back = HandBack::declined(proof, payable, not_before, view.now, charge_within);
    retryable(view, object, Reason::DeclinedRetryable, hand_back, text)
}

fn retryable(
    view: &View<'_>,
    object: &PspObject,
    reason: Reason,
    hand_back: HandBack,
    text: String,
) -> Decision {
    let decision = gave_up(view, &text).unwrap_or_else(|| Decision {
        watch_at: view.first_watch(),
        ..view.decision(Verdict::Retryable(Box::new(hand_back)), reason, text)
    });
    Decision { seen: Some(seen(object)), ..decision }
}

fn gave_up(view: &View<'_>, text: &str) -> Option<Decision> {
    if view.history().handbacks < view.policy.max_retries {
        return None;
    }
    let text = format!("handed back {} times without an end; {text}", view.history().handbacks);
    Some(match view.policy.gave_up {
        GaveUp::Review => view.review(Reason::GaveUp, text),
        GaveUp::Failed => Decision {
            watch_at: view.first_watch(),
            ..view.decision(Verdict::Failed, Reason::GaveUp, text)
        },
    })
}

fn reference_unknown(view: &View<'_>) -> Option<Decision> {
    let reference = view.unknown_reference?;
    let text = format!("the row stores {reference}, which the PSP does not know");
    Some(view.review(Reason::ReferenceUnknown, text))
}

fn nearly_tagged(view: &View<'_>) -> Option<Decision> {
    let (reference, tag) = view.inputs.near_misses.first()?;
    let own = view.row().tag.text();
    let text = format!("{reference} carries the tag `{tag}`, nearly this row's `{own}`");
    Some(view.review(Reason::TagNearMiss, text))
}

fn nothing_found(view: &View<'_>) -> Decision {
    let AccountRef::Known(account) = &view.row().account else {
        return view.review(Reason::UnknownAccount, "no account".to_owned());
    };
    let (row, history, policy) = (view.row(), view.history(), view.policy);
    let Some(list) = view.list else { return not_listed(view) };
    let miss = absence::counts(list, row, history, policy).is_ok().then(|| Miss {
        account: account.clone(),
        fingerprint: row.fingerprint(),
        search: list.clone(),
    });
    let proof = absence::prove(list, row, account, history, policy, view.searched, view.now);
    let decision = match proof {
        Ok(absence) => proven_absent(view, absence),
        Err(unproven) => unproven_yet(view, &unproven),
    };
    Decision { miss, ..decision }
}

/// A list is asked for only once a miss could count: before that it would be work for nothing.
fn not_listed(view: &View<'_>) -> Decision {
    let until = absence::call_over_at(view.row(), view.history(), view.policy);
    if view.now <= until {
        return unproven_yet(view, &Unproven::CallMayArrive { until });
    }
    let text = "nothing found; the window was not listed completely".to_owned();
    Decision {
        wants: Some(Want::List),
        ..unproven_or_too_old(view, Reason::AbsenceUnproven, text, None)
    }
}

fn unproven_yet(view: &View<'_>, unproven: &Unproven) -> Decision {
    let text = format!("nothing found; {}", unproven.text());
    if unproven.is_for_ever() {
        return view.review(Reason::Unprovable, text);
    }
    let reason = match unproven {
        Unproven::CallMayArrive { .. } => Reason::WithinGrace,
        Unproven::ClockSkew { .. } | Unproven::FutureAttempt { .. } => Reason::ClockSkew,
        Unproven::RouteDoesNotCount
        | Unproven::TooNarrow { .. }
        | Unproven::NoWitness
        | Unproven::NeedsMiss { .. }
        | Unproven::NeedsSearch
        | Unproven::BeyondReach
        | Unproven::AttemptsUnknown => Reason::AbsenceUnproven,
    };
    let wants = match unproven {
        Unproven::NeedsSearch => Some(Want::Search),
        Unproven::TooNarrow { .. } | Unproven::RouteDoesNotCount => Some(Want::List),
        Unproven::ClockSkew { .. }
        | Unproven::FutureAttempt { .. }
        | Unproven::CallMayArrive { .. }
        | Unproven::BeyondReach
        | Unproven::NoWitness
        | Unproven::NeedsMiss { .. }
        | Unproven::AttemptsUnknown => None,
    };
    let at = unproven.look_again_at();
    Decision { wants, ..unproven_or_too_old(view, reason, text, at) }
}

fn unproven_or_too_old(
    view: &View<'_>,
    reason: Reason,
    text: String,
    at: Option<Instant>,
) -> Decision {
    if view.too_old() {
        let limit = span_text(view.policy.timing.max_age);
        return view.review(Reason::Unprovable, format!("{text}; still unproven after {limit}"));
    }
    view.wait(reason, text, at)
}

fn proven_absent(view: &View<'_>, absence: absence::Absence) -> Decision {
    let taken = |s: &SiblingState| matches!(s, SiblingState::Succeeded | SiblingState::HandedBack);
    if let Some(sibling) = view.inputs.siblings.iter().find(|s| taken(&s.state)) {
        let text = format!(
            "absent, but row {} with the same natural key succeeded or was handed back",
            sibling.id
        );
        return view.review(Reason::SiblingRow, text);
    }
    if let Some(other) = view.inputs.untagged.first() {
        let text = format!(
            "absent, but {} captured {} at {} and belongs to no row",
            other.reference,
            other.captured,
            to_short_text(other.created_at)
        );
        return view.review(Reason::PossibleUntaggedMatch, text);
    }
    let waits_for = |s: &SiblingState| *s == SiblingState::Processing;
    let older = view.inputs.siblings.iter().find(|s| waits_for(&s.state) && s.older);
    if let Some(sibling) = older {
        let text = format!(
            "absent, but row {} with the same natural key is older and still processing",
            sibling.id
        );
        return view.wait(Reason::SiblingPending, text, None);
    }
    let text = absence::proof_text(&absence);
    if let Some(decision) = gave_up(view, &text) {
        return decision;
    }
    let text = match view.policy.absent_means {
        AbsentMeans::HandBack => text,
        AbsentMeans::Abandoned => format!("{text}; absent means abandoned here"),
    };
    let hand_back = HandBack::absent(absence, view.now, view.policy.timing.charge_before);
    Decision {
        watch_at: view.first_watch(),
        ..view.decision(Verdict::Retryable(Box::new(hand_back)), Reason::Absent, text)
    }
}
