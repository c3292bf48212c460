//! `decide`: the decision table, top to bottom; the first line that holds wins.
//!
//! It never does I/O and never fails. Adding a reason: a step here (or in [`super::uncaptured`],
//! [`super::nothing`]) at its precedence, and a row in the table of `tests/it/decisions.rs`.

use chrono::TimeDelta;

use crate::decide::absence::{self, SKEW_MAX};
use crate::decide::backoff;
use crate::decide::decision::{Asked, Decision, Inputs, Verdict};
use crate::decide::nothing::{nearly_tagged, nothing_found, reference_unknown};
use crate::decide::policy::Policy;
use crate::decide::rules::Subject;
use crate::decide::settled::{may_be_one, may_be_refund};
use crate::decide::since::is_as_decided;
use crate::decide::uncaptured::{by_rule, claimed_by_another, ended_uncaptured, in_flight};
use crate::decide::view::{Item, Standing, View, seen, seen_left, seen_together, sums_text};
use crate::model::evidence::ObjectState;
use crate::model::money::Money;
use crate::model::reason::{Outcome, PAID_BESIDE, PARTLY_REFUNDED, Reason};
use crate::model::time::{Instant, earlier, later, to_short_text};
use crate::model::transaction::{AccountRef, Attempts, Kind, SiblingState, TagState};

/// A file tells the day alone, by the calendar of its bank.
const DAY_AND_SKEW: TimeDelta = TimeDelta::minutes(24 * 60 + 2);

/// Decides one row.
pub fn decide(inputs: &Inputs<'_>, policy: &Policy, now: Instant) -> Decision {
    let view = View::of(inputs, policy, now);
    let steps: [fn(&View<'_>) -> Option<Decision>; 19] = [
        given_up_unasked,
        row_is_readable,
        account_is_known,
        contradiction,
        several_movements,
        captured_elsewhere,
        captured_otherwise,
        taken_back,
        captured,
        paid_beside,
        pending_beside,
        found_beside_handback,
        unavailable,
        listed_after_all,
        watched,
        in_flight,
        ended_uncaptured,
        reference_unknown,
        nearly_tagged,
    ];
    let decision = steps.iter().find_map(|step| step(&view));
    let decision = decision.unwrap_or_else(|| nothing_found(&view));
    if view.renews() { watched_still(decision) } else { decision }
}

/// While a row under watch is proved afresh, a wait is looked at again as a watch is.
fn watched_still(decision: Decision) -> Decision {
    match decision.verdict {
        Verdict::Wait => {
            let watch_at = decision.watch_at.or(decision.next_check_at);
            Decision { watch_at, ..decision }
        }
        Verdict::Succeeded | Verdict::Retryable(_) | Verdict::Failed | Verdict::Review => decision,
    }
}

/// Whether what a look under watch found contradicts the row's end only as people knew when they
/// decided that: the look goes on then, and the rest is told as it was.
pub fn as_people_decided(
    (found, decided): (&Inputs<'_>, &Inputs<'_>),
    policy: &Policy,
    now: Instant,
    decision: &Decision,
) -> Option<Decision> {
    let is_of_money = matches!(
        decision.reason,
        Reason::LateContradiction
            | Reason::ReferenceMismatch
            | Reason::DuplicateCapture
            | Reason::Refunded
            | Reason::Disputed
            | Reason::Returned
            | Reason::Voided
    );
    let is_news = decision.verdict != Verdict::Review
        || !is_of_money
        || !is_as_decided((found, decided), policy, now);
    if is_news {
        return None;
    }
    let text = format!("{}, as people knew who decided the row", decision.text);
    let view = View::of(found, policy, now);
    Some(Decision { seen: decision.seen.clone(), ..watch_on(&view, &text) })
}

/// A row that cannot be asked about is nobody's case where somebody else gave it up, or where a
/// person did, who saw it as it is still.
fn given_up_unasked(view: &View<'_>) -> Option<Decision> {
    let history = view.history();
    let is_watched = view.inputs.asked == Asked::Watch && view.standing == Standing::GivenUp;
    if !is_watched || view.was_asked || view.renews() {
        return None;
    }
    let trouble = row_is_readable(view).or_else(|| account_is_known(view))?;
    let what = format!("cannot be asked about: {}", trouble.text);
    if history.ended_as.is_none() {
        return Some(watch_on(view, &what));
    }
    if trouble.reason != Reason::TagUnusable || !history.is_as_left() {
        return None;
    }
    let told = paid_beside(view).or_else(|| pending_beside(view)).or_else(|| not_taken(view));
    Some(told.unwrap_or_else(|| watch_on(view, &what)))
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
        TagState::Shared(tag) => format!(
            "several rows have the tag `{tag}`, or may have it (tag_unique = false), and this one \
             stores no reference"
        ),
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
    let captured = view.captured();
    if let Some(first) = captured.first().filter(|_| view.standing == Standing::GivenUp) {
        let each: Vec<String> = captured.iter().map(|item| captured_text(item)).collect();
        let how = match view.row().ignored {
            true => ", a status that tieout has nothing to do with",
            false if view.history().ended_as == Some(Outcome::Retryable) => " and was handed back",
            false => " and was given up",
        };
        let text = format!("{} for a row that is `{}`{how}", each.join(" and "), view.row().status);
        let gone = captured.iter().filter_map(|item| gone_text(item));
        let text = [text].into_iter().chain(gone).collect::<Vec<_>>().join("; ");
        let again = made_again(view, &captured).unwrap_or_default();
        let decision = view.review_of(first, Reason::LateContradiction, format!("{text}{again}"));
        let decision = match captured.len() {
            1 => decision,
            _several => Decision { seen: seen_together(&captured), ..decision },
        };
        return Some(with_left(decision, &captured));
    }
    // What the PSP's own answer shows of it is said below, as that of a stuck row is.
    let is_paid = view.standing == Standing::Settled && !is_paid_twice(view, &captured);
    let back = captured.iter().filter(|item| is_paid && item.back.by_file);
    let back: Vec<&Item<'_>> = back.copied().collect();
    if let Some(first) = back.first() {
        let gone =
            |item: &&Item<'_>| gone_text(item).unwrap_or_else(|| item.reference().to_owned());
        let gone = back.iter().map(gone).collect::<Vec<_>>().join("; ");
        let may_be_own = |item: &&Item<'_>| item.back.returned.is_some_and(may_be_refund);
        let own = match back.iter().any(may_be_own) {
            true => "; without a code it may be a refund of yours that no mapped table has",
            false => "",
        };
        let again = made_again(view, &captured).unwrap_or_default();
        let differs = is_otherwise(view, first).map(|how| format!("; {how}")).unwrap_or_default();
        let text = format!("{gone} after the row was `{}`{own}{again}{differs}", view.row().status);
        let decision = view.review_of(first, Reason::LateContradiction, text);
        return Some(with_left(decision, &captured));
    }
    let conflict = view.conflict.as_ref()?;
    Some(view.review(Reason::EvidenceConflict, conflict.clone()))
}

/// What else does not fit a paid row's one object: that is not over as some of it came back.
fn is_otherwise(view: &View<'_>, item: &Item<'_>) -> Option<String> {
    let got = item.object.captured.filter(|_| item.is_told())?;
    let wanted = view.row().money?;
    let sum = (got != wanted && tolerated(view, item).is_none())
        .then(|| format!("{} captured {got}; the row says {wanted}", item.reference()));
    let texts: Vec<String> = another_reference(view, item).into_iter().chain(sum).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

fn captured_text(item: &Item<'_>) -> String {
    format!("{} captured {}", item.reference(), item.amount_text())
}

/// Several captures of a row of which something is left. Refunds that were made again, in parts,
/// are not too many until they come to more than the row says.
fn is_paid_twice(view: &View<'_>, captured: &[&Item<'_>]) -> bool {
    let own = captured.iter().filter(|item| !item.has_other_tag && item.has_left());
    let own: Vec<&Item<'_>> = own.copied().collect();
    let left = || seen_left(&own).and_then(|seen| seen.amount).zip(view.row().money);
    let is_too_much =
        || left().is_none_or(|(left, row)| left.currency != row.currency || left.minor > row.minor);
    own.len() > 1 && (view.row().kind != Kind::Refund || is_too_much())
}

/// Beside a refund that came back: those that were made under the row's tag as well, of which
/// nothing did. Whoever made a further one would give the money back twice.
fn made_again(view: &View<'_>, captured: &[&Item<'_>]) -> Option<String> {
    if view.row().kind != Kind::Refund || captured.iter().all(|item| item.has_left()) {
        return None;
    }
    let stands = |item: &&&Item<'_>| {
        let is_whole = !item.back.disputed && item.gone().is_some_and(|gone| gone.minor == 0);
        is_whole && !item.has_other_tag
    };
    let standing: Vec<&Item<'_>> = captured.iter().filter(stands).copied().collect();
    let amounts: Vec<String> = standing.iter().map(|item| item.amount_text()).collect();
    let named = |(item, amount): (&&Item<'_>, &String)| format!("{} ({amount})", item.reference());
    let names: Vec<String> = standing.iter().zip(&amounts).map(named).collect();
    let (others, stand) = match names.len() {
        0 => return None,
        1 => ("another refund", "stands"),
        _several => ("other refunds", "stand"),
    };
    let given = seen_left(&standing).and_then(|seen| seen.amount).zip(view.row().money);
    let is_enough = given
        .is_some_and(|(given, row)| given.currency == row.currency && given.minor >= row.minor);
    let further = if is_enough { "; a further one would be given twice" } else { "" };
    Some(format!("; {others} under its tag {stand}: {}{further}", names.join(" and ")))
}

/// What went back of an object, in words.
fn gone_text(item: &Item<'_>) -> Option<String> {
    let name = item.reference();
    let gone = item.gone().map_or_else(|| item.amount_text(), |gone| gone.to_string());
    if let Some(why) = item.returned() {
        let code = Some(why.to_owned()).filter(|code| !code.is_empty());
        let said: Vec<String> = code.into_iter().chain(lines_beyond(item)).collect();
        let why = if said.is_empty() { String::new() } else { format!(" ({})", said.join("; ")) };
        return Some(format!("{gone} of {name} came back{why}"));
    }
    if item.back.charged_back {
        let charged = item.charged().map_or(gone, |charged| charged.to_string());
        return Some(format!("{charged} of {name} came back (charged back){}", refunded_too(item)));
    }
    if item.back.disputed {
        return Some(format!("{name} is disputed{}", refunded_too(item)));
    }
    let is_refunded = item.gone().is_some_and(|gone| gone.minor > 0);
    let beyond = lines_beyond(item).map(|more| format!(" ({more})")).unwrap_or_default();
    is_refunded.then(|| format!("{gone} of {name} was given back{beyond}"))
}

/// Where lines say that more went back than moved: a person sees whether charges are in them, or
/// two of them tell one thing.
fn lines_beyond(item: &Item<'_>) -> Option<String> {
    let more = item.told_beyond()?;
    Some(format!("its lines come to {more} more: charges, or one event told twice"))
}

/// Of what is disputed: what the shop gave back of it beside that, which the customer has as well.
fn refunded_too(item: &Item<'_>) -> String {
    let given = item.given_back().map(|given| format!(", and {given} of it was given back"));
    let beyond = item.gone_beyond().map(|more| match given {
        Some(_) => format!(", together {more} more than it captured"),
        None => format!(", {more} more than it captured"),
    });
    format!("{}{}", given.unwrap_or_default(), beyond.unwrap_or_default())
}

/// Where money went back, the record shows what is left of it.
fn with_left(decision: Decision, captured: &[&Item<'_>]) -> Decision {
    let own: Vec<&Item<'_>> = captured.iter().copied().filter(|item| !item.has_other_tag).collect();
    let own = if own.is_empty() { captured } else { own.as_slice() };
    if own.iter().all(|item| item.gone().is_none_or(|gone| gone.minor == 0)) {
        return decision;
    }
    Decision { seen: seen_left(own), ..decision }
}

/// Only objects under this row's tag are its own movements: one that is known by the stored
/// reference alone and carries another tag is another row's money.
fn several_movements(view: &View<'_>) -> Option<Decision> {
    let captured: Vec<&Item<'_>> =
        view.captured().into_iter().filter(|item| !item.has_other_tag).collect();
    let (first, rest) = captured.split_first()?;
    if !rest.is_empty() {
        let all: Vec<String> =
            captured.iter().map(|o| format!("{} {}", o.reference(), o.amount_text())).collect();
        let sums = sums_text(&captured).map_or(String::new(), |sums| format!("; together {sums}"));
        let text = format!("{} captures for one tag: {}{sums}", captured.len(), all.join(", "));
        let text = match may_be_one(captured.iter().map(|item| item.object)) {
            true => format!("{text}; it may be one booking that two files tell"),
            false => text,
        };
        if captured.iter().any(|item| gone_text(item).is_some()) {
            return Some(several_and_back(view, &captured, text));
        }
        let decision = view.review(Reason::DuplicateCapture, text);
        return Some(Decision { seen: seen_together(&captured), ..decision });
    }
    let is_other = |item: &&Item<'_>| !item.has_other_tag && item.reference() != first.reference();
    let other = view.live().find(is_other)?;
    let text = format!(
        "{} captured, and {} ({}) {}",
        first.reference(),
        other.reference(),
        other.object.status,
        other.open_text()
    );
    Some(view.review_of(first, Reason::DuplicateLive, text))
}

/// Several captures, and money went back: what a bank took back whole is no second payment, and
/// whatever is left is a person's to judge by what the bank says.
fn several_and_back(view: &View<'_>, captured: &[&Item<'_>], text: String) -> Decision {
    let gone = captured.iter().filter_map(|item| gone_text(item));
    let text = [text].into_iter().chain(gone).collect::<Vec<_>>().join("; ");
    let seen = seen_left(captured);
    let left = seen.as_ref().and_then(|seen| seen.amount);
    let text = left.map_or_else(|| text.clone(), |left| format!("{text}; {left} is left"));
    let again = made_again(view, captured).unwrap_or_default();
    let text = format!("{text}{again}");
    let returned = captured.iter().find(|item| item.returned().is_some());
    let is_disputed = captured.iter().any(|item| item.back.charged_back);
    let decision = match (is_paid_twice(view, captured), returned, is_disputed) {
        (false, Some(item), _) => came_back(view, item, text),
        (false, None, true) => view.review(Reason::Disputed, text),
        (true, ..) | (false, None, false) => view.review(Reason::DuplicateCapture, text),
    };
    Decision { seen, ..decision }
}

fn captured_elsewhere(view: &View<'_>) -> Option<Decision> {
    let decision = paid_elsewhere(view)?;
    let gone = view.captured().into_iter().filter_map(|item| gone_text(item));
    let text = std::iter::once(decision.text.clone()).chain(gone).collect::<Vec<_>>().join("; ");
    Some(Decision { text, ..decision })
}

fn paid_elsewhere(view: &View<'_>) -> Option<Decision> {
    let captured = view.captured();
    // A stored reference to another row's money is the trouble, whatever else is there.
    let foreign = captured.iter().find(|item| item.has_other_tag);
    let item = *foreign.or(captured.first())?;
    let name = item.reference();
    if let Some(decision) = claimed_by_another(view, item) {
        return Some(decision);
    }
    if let Some(text) = another_reference(view, item) {
        return Some(view.review_of(item, Reason::ReferenceMismatch, text));
    }
    let out_of_time = made_before(view, item).or_else(|| made_later(view, item));
    if let Some(decision) = out_of_time.or_else(|| out_of_window(view, item)) {
        return Some(decision);
    }
    let (sibling, how) = paid_too(view)?;
    let text = format!("{name}{PAID_BESIDE}{sibling} with the same natural key {how}");
    Some(view.review_of(item, Reason::SiblingRow, text))
}

/// An object that is so old that it was made for another row of its tag.
pub(super) fn made_before(view: &View<'_>, item: &Item<'_>) -> Option<Decision> {
    let from = earlier(view.row().created_at, before_row(view, item));
    if item.object.created_at >= from {
        return None;
    }
    let text = format!(
        "{} was created {}, before the row's window begins ({})",
        item.reference(),
        to_short_text(item.object.created_at),
        to_short_text(from)
    );
    Some(view.review_of(item, Reason::TimeMismatch, text))
}

/// How much older than its row an object may be. A payment may be begun long before; a refund or a
/// payout is made for its row, and an older one that merely carries its tag was made for another.
fn before_row(view: &View<'_>, item: &Item<'_>) -> TimeDelta {
    let most = view.policy.timing.object_before_row;
    let own = match view.row().kind {
        Kind::Charge => most,
        Kind::Refund | Kind::Payout if is_stored(view, item) => most,
        Kind::Refund | Kind::Payout if item.is_settled => DAY_AND_SKEW,
        Kind::Refund | Kind::Payout => SKEW_MAX,
    };
    own.min(most)
}

fn is_stored(view: &View<'_>, item: &Item<'_>) -> bool {
    view.row().psp_reference.as_deref().is_some_and(|stored| item.is_named(stored))
}

/// A refund or a payout that was made when no call of its row could make it any more was made for
/// another. A bank books days later what it did in time: a file is no matter here.
fn made_later(view: &View<'_>, item: &Item<'_>) -> Option<Decision> {
    let row = view.row();
    let is_free = row.kind == Kind::Charge || item.is_settled || is_stored(view, item);
    let knows_attempts = row.attempts != Attempts::Unknown;
    if is_free || !knows_attempts || view.standing != Standing::Open {
        return None;
    }
    let last_attempt = absence::last_attempt(row, view.history());
    let over_at = later(last_attempt, view.policy.timing.in_flight_max);
    if item.object.created_at <= later(over_at, SKEW_MAX) {
        return None;
    }
    let text = format!(
        "{} was created {}, after the row's last call was over ({})",
        item.reference(),
        to_short_text(item.object.created_at),
        to_short_text(over_at)
    );
    Some(view.review_of(item, Reason::TimeMismatch, text))
}

/// Another row with its natural key that was paid as well, and how that is known. What a person
/// looks at already takes no success back.
fn paid_too<'a>(view: &View<'a>) -> Option<(&'a str, &'static str)> {
    let is_open = view.standing == Standing::Open;
    let all = [
        (SiblingState::Succeeded, "already succeeded", true),
        (
            SiblingState::SaysPaid,
            "has a status that says so too, though the mapping does not",
            true,
        ),
        (SiblingState::PaidCase, "is a person's, with money captured for it too", is_open),
        (SiblingState::PaidAfterAll, "was paid at the PSP too, whatever its status says", is_open),
    ];
    let mut told = all.into_iter().filter(|(_, _, counts)| *counts);
    told.find_map(|(state, how, _)| Some((with_state(view, state)?, how)))
}

/// Another row with its natural key that succeeded.
fn paid_sibling<'a>(view: &View<'a>) -> Option<&'a str> {
    with_state(view, SiblingState::Succeeded)
}

fn with_state<'a>(view: &View<'a>, state: SiblingState) -> Option<&'a str> {
    let alike = view.inputs.siblings.iter().filter(|sibling| sibling.state == state);
    alike.map(|sibling| sibling.id.as_str()).min()
}

/// The row stores another reference than the captured object's, or one whose tag is another's.
fn another_reference(view: &View<'_>, item: &Item<'_>) -> Option<String> {
    let name = item.reference();
    if item.has_other_tag {
        let tag = item.object.tag.as_deref().unwrap_or_default();
        let own = view.row().tag.text();
        let stored = view.row().psp_reference.as_deref().filter(|stored| item.is_named(stored));
        let name = stored.unwrap_or(name);
        return Some(format!("the row stores {name}, whose tag is `{tag}` and not `{own}`"));
    }
    let stored = view.row().psp_reference.as_deref().filter(|stored| !item.is_named(stored))?;
    Some(format!("the row stores {stored}, and {name} captured"))
}

fn captured_otherwise(view: &View<'_>) -> Option<Decision> {
    let captured = view.captured();
    let item = *captured.first()?;
    if *item.state() == ObjectState::InFlight {
        // What moved so far is not its last word.
        return None;
    }
    let wanted = view.row().money?;
    let name = item.reference();
    match item.object.captured {
        Some(got) if got.currency != wanted.currency => {
            let text = format!("{name} captured {got}; the row says {wanted}");
            Some(view.review_of(item, Reason::CurrencyMismatch, text))
        }
        Some(got) if got.minor != wanted.minor && tolerated(view, item).is_none() => {
            let text = match (item.is_told(), gone_text(item)) {
                (false, Some(gone)) => {
                    format!("{gone}, and no file tells what {name} captured; the row says {wanted}")
                }
                (true | false, gone) => {
                    let text = format!("{name} captured {got}; the row says {wanted}");
                    [text].into_iter().chain(gone).collect::<Vec<_>>().join("; ")
                }
            };
            Some(view.review_of(item, Reason::AmountMismatch, text))
        }
        Some(got) if *item.state() == ObjectState::Authorized => {
            let text = format!("{name} captured {got} so far, and can still capture more");
            Some(view.review_of(item, Reason::AmountMismatch, text))
        }
        Some(_) => None,
        None if item.object.amount.is_none() && !item.is_settled => {
            let text = format!("{name} captured in a currency ISO does not know");
            Some(view.review_of(item, Reason::CurrencyMismatch, text))
        }
        None => {
            let teller = if item.is_settled { "file" } else { "PSP" };
            let text = format!("{name} captured, and the {teller} does not say how much");
            Some(view.review_of(item, Reason::AmountMismatch, text))
        }
    }
}

/// The difference that the configuration allows between a settled line and its row.
fn tolerated(view: &View<'_>, item: &Item<'_>) -> Option<Money> {
    let (row, line) = view.row().money.zip(item.object.captured).filter(|_| item.is_settled)?;
    view.policy.tolerance.delta(row, line)
}

/// A settled line that was booked so long after the row was sent that it may be another's. What a
/// row that ended as paid by itself was paid by is its own, however late it was booked.
fn out_of_window(view: &View<'_>, item: &Item<'_>) -> Option<Decision> {
    let decides = item.is_settled && view.standing != Standing::Settled;
    let window = view.policy.tolerance.date_window.filter(|_| decides)?;
    let until = later(absence::mapped_last_attempt(view.row()), window);
    if item.object.created_at <= until {
        return None;
    }
    let text = format!(
        "{} was booked {}, after the row's window ended ({})",
        item.reference(),
        to_short_text(item.object.created_at),
        to_short_text(until)
    );
    Some(view.review_of(item, Reason::DateOutOfWindow, text))
}

fn taken_back(view: &View<'_>) -> Option<Decision> {
    let captured = view.captured();
    let item = *captured.first()?;
    let part = || {
        let (gone, left) = item.gone().zip(item.left())?;
        (left.minor > 0).then_some(gone)
    };
    if let Some(code) = item.returned() {
        let part = part().map_or_else(String::new, |gone| format!(" {gone} of it"));
        let text =
            format!("{} settled {} and{part} came back", item.reference(), item.amount_text());
        let text = if code.is_empty() { text } else { format!("{text} ({code})") };
        return Some(with_left(came_back(view, item, text), &[item]));
    }
    let (subject, reason, what) = if item.back.disputed {
        let part = item.charged_part().map(|part| format!("{part} of it is disputed"));
        let what = part.unwrap_or_else(|| "is disputed".to_owned());
        (Subject::Disputed, Reason::Disputed, format!("{what}{}", refunded_too(item)))
    } else if view.standing == Standing::Settled && item.is_settled {
        // Giving a part back later is what a shop does: its own line says so.
        return None;
    } else if item.back.minor != 0 {
        let part = part().map(|gone| format!("{gone}{PARTLY_REFUNDED}"));
        (Subject::Refunded, Reason::Refunded, part.unwrap_or_else(|| "was refunded".to_owned()))
    } else if *item.state() == ObjectState::Voided {
        (Subject::Voided, Reason::Voided, "was voided".to_owned())
    } else {
        return None;
    };
    let text = format!("{} captured {} and {what}", item.reference(), item.amount_text());
    match view.rule_for(subject, item.object) {
        Some(rule) => Some(no_news(view, by_rule(view, rule, item, text))),
        None => Some(view.review_of(item, reason, text)),
    }
}

/// What came back is a person's, whatever a rule says: the rule says what the code means.
fn came_back(view: &View<'_>, item: &Item<'_>, text: String) -> Decision {
    let object = item.back.returned.unwrap_or(item.object);
    let rule = view.rule_for(Subject::Returned, object);
    let said = rule.map(|rule| format!("; {}", rule.words())).unwrap_or_default();
    Decision {
        rule: rule.map(|rule| rule.id.clone()),
        ..view.review_of(item, Reason::Returned, format!("{text}{said}"))
    }
}

fn captured(view: &View<'_>) -> Option<Decision> {
    let captured = view.captured();
    let item = *captured.first()?;
    if *item.state() != ObjectState::Captured {
        return None;
    }
    let delta = tolerated(view, item);
    let (reason, did) = match (item.is_settled, delta) {
        (true, Some(_)) => (Reason::ToleranceDelta, "settled"),
        (true, None) => (Reason::Settled, "settled"),
        (false, _) => (Reason::Captured, "captured"),
    };
    let how = match delta {
        Some(delta) => format!("{delta} besides the row's own, within the tolerance"),
        None => "exact".to_owned(),
    };
    let text = format!("{} {did} {} ({how})", item.reference(), item.amount_text());
    // An object that waits for the customer could still be paid beside this one. So may another
    // have been, where nobody could see past the end of a list.
    let is_open = |other: &Item<'_>| other.reference() != item.reference() && !other.is_dead();
    let watch_at = if view.inputs.asked == Asked::Watch {
        next_watch(view)
    } else {
        view.first_watch().filter(|_| view.items.iter().any(is_open) || view.is_cut_short())
    };
    let decision = Decision {
        watch_at,
        seen: Some(seen(item.object)),
        ..view.decision(Verdict::Succeeded, reason, text)
    };
    Some(no_news(view, decision))
}

/// A success is news only for a row that is to be decided. A row that its worker has again is
/// the worker's until it is stuck again.
fn no_news(view: &View<'_>, decision: Decision) -> Decision {
    match (view.standing, &decision.verdict) {
        (Standing::Taken | Standing::Settled | Standing::GivenUp, Verdict::Succeeded) => {
            let seen = decision.seen.clone();
            Decision { seen, ..watch_on(view, &decision.text) }
        }
        (Standing::Open, _) | (_, _) => decision,
    }
}

/// Another row with its natural key was paid since it was handed back, or went to a person with
/// something at the PSP: what was safe to charge then, is not any more. That takes no answer of
/// the PSP.
fn paid_beside(view: &View<'_>) -> Option<Decision> {
    let (number, _until) = view.untaken()?;
    let paid = with_state(view, SiblingState::PaidAfterAll);
    let what = match (paid_sibling(view), paid, view.was_stopped()) {
        (Some(id), ..) => format!("row {id} with the same natural key succeeded since"),
        (None, Some(id), _) => {
            format!(
                "row {id} with the same natural key was paid at the PSP, whatever its status says"
            )
        }
        (None, None, true) => {
            let is_gone = |s| matches!(s, SiblingState::GivenUp | SiblingState::Other);
            let others = view.inputs.siblings.iter().filter(|s| !is_gone(s.state));
            let id = others.map(|sibling| sibling.id.as_str()).min();
            let row = id.map_or_else(|| "a row".to_owned(), |id| format!("row {id}"));
            format!("{row} with the same natural key has something at the PSP since")
        }
        (None, None, false) => return None,
    };
    let text = format!("handed back (hand-back {number}), and {what}: nobody may charge this one");
    let watch_at = next_watch(view);
    Some(Decision { watch_at, ..view.review(Reason::SiblingRow, text) })
}

/// Something stands at the PSP for another row with its natural key and may still be paid: nobody
/// charges this one meanwhile, and it waits for that one.
fn pending_beside(view: &View<'_>) -> Option<Decision> {
    let (number, _until) = view.untaken()?;
    let pending = view.inputs.siblings.iter().filter(|s| s.state == SiblingState::Pending);
    let id = pending.map(|sibling| sibling.id.as_str()).min()?;
    let text = format!(
        "handed back (hand-back {number}), and row {id} with the same natural key may still be \
         paid at the PSP: nobody may charge this one meanwhile"
    );
    let decision = view.wait(Reason::SiblingPending, text, None);
    Some(Decision { watch_at: decision.next_check_at, ..decision })
}

/// Something turned up under the tag that may be paid beside what the row's hand-back has its
/// worker make: the original call did arrive, or what was dead is not. Nobody may charge anew
/// meanwhile.
fn found_beside_handback(view: &View<'_>) -> Option<Decision> {
    let (number, _until) = view.untaken()?;
    view.history().untaken().filter(|past| past.anew)?;
    let item = view.items.iter().find(|item| !item.has_other_tag && !item.is_dead())?;
    let text = format!(
        "{} is `{}` for a row that is `{}` and was handed back (hand-back {number}) for a new \
         attempt, which could be paid beside it",
        item.reference(),
        item.object.status,
        view.row().status
    );
    Some(view.review_of(item, Reason::LateContradiction, text))
}

fn unavailable(view: &View<'_>) -> Option<Decision> {
    let cause = view.no_answer;
    if cause.is_none() && view.was_asked {
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
        watch_at: (view.inputs.asked == Asked::Watch).then_some(next),
        ..view.decision(Verdict::Wait, Reason::PspUnavailable, text)
    })
}

/// A file lists an attempt of a row that was handed back, one that may still be paid: of before the
/// hand-back, or at any time where nobody took it. What the hand-back was proven by is not so, and
/// where its worker sent it again since, it was sent twice. A hand-back by a decline is proven by
/// what failed: beside that, an earlier attempt is no news.
fn listed_after_all(view: &View<'_>) -> Option<Decision> {
    if view.renews() {
        return None;
    }
    let is_last = view.history().ended_as == Some(Outcome::Retryable);
    let past = view.history().last_handback.as_ref()?;
    let has_failed =
        |item: &Item<'_>| item.is_dead() || matches!(item.state(), ObjectState::Failed(_));
    let is_earlier = |at: Instant| match view.standing {
        Standing::GivenUp if is_last => past.taken_at.is_none() || at <= past.at,
        Standing::Open => at <= past.at && !view.items.iter().any(has_failed),
        Standing::GivenUp | Standing::Taken | Standing::Settled => false,
    };
    let is_its = |item: &&Item<'_>| item.is_settled && is_earlier(item.object.created_at);
    let item = view.live().find(is_its)?;
    let text = format!(
        "{} ({}) is listed for a row that is `{}` and was handed back: its call did arrive",
        item.reference(),
        item.object.status,
        view.row().status
    );
    Some(view.review_of(item, Reason::LateContradiction, text))
}

/// After a hand-back or an end: what is not money is no news, and is looked at again.
fn watched(view: &View<'_>) -> Option<Decision> {
    if view.inputs.asked != Asked::Watch && view.standing == Standing::Open {
        return None;
    }
    if view.renews() {
        return None;
    }
    if let Some(decision) = not_taken(view) {
        return Some(decision);
    }
    Some(watch_on(
        view,
        &match view.items.len() {
            0 => "nothing under the tag".to_owned(),
            1 => "1 object, none captured".to_owned(),
            several => format!("{several} objects, none captured"),
        },
    ))
}

/// Nobody came for the row's hand-back: for the last of several, or for this one in its time.
fn not_taken(view: &View<'_>) -> Option<Decision> {
    if let Some(past) = view.lapsed_too_often() {
        let text = format!(
            "hand-back {} lapsed as {} before it: nobody comes for them, and none is made anew",
            past.number,
            past.lapses.saturating_sub(1)
        );
        let watch_at = next_watch(view);
        return Some(Decision { watch_at, ..view.review(Reason::HandbackNotTaken, text) });
    }
    if let Some((number, until)) = view.untaken().filter(|(_, until)| *until <= view.now) {
        let text = format!(
            "hand-back {number} was not taken by {}; nobody charges again until its worker \
             comes for it",
            to_short_text(until)
        );
        let watch_at = next_watch(view);
        return Some(Decision { watch_at, ..view.review(Reason::HandbackNotTaken, text) });
    }
    None
}

fn watch_on(view: &View<'_>, text: &str) -> Decision {
    let next = next_watch(view);
    let text = match next {
        Some(at) => format!("{text}; next look {}", to_short_text(at)),
        None => format!("{text}; the watch ends"),
    };
    // A wait always has a next look, whether or not anyone still watches.
    let at_last = later(view.now, view.policy.timing.backoff_cap.max(TimeDelta::minutes(1)));
    Decision {
        watch_at: next,
        next_check_at: Some(next.unwrap_or(at_last)),
        ..view.decision(Verdict::Wait, Reason::Watched, text)
    }
}

/// The next of the policy's looks; after the last one the watch goes on at that pace for as long
/// as something under the tag could still capture by itself.
fn next_watch(view: &View<'_>) -> Option<Instant> {
    let step = usize::try_from(view.history().watch_step).ok()?.checked_add(1)?;
    let looks = &view.policy.timing.watch;
    let soonest = later(view.now, TimeDelta::minutes(1));
    match looks.get(step) {
        Some(span) => {
            let from = view.history().watch_from.unwrap_or(view.now);
            Some(later(from, *span).max(soonest))
        }
        None => {
            // Whether the worker came for it is looked at once more, where that is later.
            if let Some((_, until)) = view.untaken().filter(|(_, until)| *until > view.now) {
                return Some(until.max(soonest));
            }
            view.live().next()?;
            Some(later(view.now, *looks.last()?).max(soonest))
        }
    }
}
