//! What `exceptions.csv` says beside a reason: which side is wrong, how grave it is, what to try.
//!
//! Advice only: nothing in tieout acts on it. What every reason has knows no wildcard, so that a
//! new reason cannot be added without a thought for the person who will read it.

use std::collections::BTreeMap;

use crate::decide::settled::{is_booking, may_be_one, may_be_refund};
use crate::model::evidence::{ObjectState, PspObject};
use crate::model::money::Money;
use crate::model::reason::Reason;
use crate::report::back::{is_given_back, is_same};
use crate::report::duplicates::is_equal;

/// Where the lone or wrong record is.
pub fn side(reason: Reason) -> &'static str {
    use Reason as R;
    match reason {
        R::RowUnreadable
        | R::TagUnusable
        | R::UnknownAccount
        | R::AccountChanged
        | R::UnsupportedKind
        | R::LateContradiction
        | R::ReferenceClaimed
        | R::ReferenceMismatch
        | R::SiblingRow
        | R::SiblingPending
        | R::ReferenceUnknown
        | R::GaveUp
        | R::Rule
        | R::ByPerson
        | R::WriteRefused
        | R::HandbackNotTaken
        | R::NotAtPsp
        | R::NotInFile
        | R::Absent
        | R::AbsenceUnproven
        | R::Unprovable
        | R::WithinGrace
        | R::Watched => "local",
        R::EvidenceConflict
        | R::DuplicateCapture
        | R::DuplicateLive
        | R::TimeMismatch
        | R::CurrencyMismatch
        | R::AmountMismatch
        | R::Disputed
        | R::Refunded
        | R::Voided
        | R::Captured
        | R::PspUnavailable
        | R::PspPending
        | R::PendingTooLong
        | R::DeclineUnknown
        | R::PspStatusUnknown
        | R::FailureNotFinal
        | R::DeclinedRetryable
        | R::DeclinedFinal
        | R::Unattempted
        | R::AuthorizedUncaptured
        | R::ActionRequired
        | R::Expired
        | R::Canceled
        | R::TagNearMiss
        | R::PossibleUntaggedMatch
        | R::AbsenceBrake
        | R::AccountUnavailable
        | R::ClockSkew => "psp",
        R::Settled
        | R::Orphan
        | R::Returned
        | R::Chargeback
        | R::FeeVariance
        | R::FxVariance
        | R::ToleranceDelta
        | R::ReferenceMissing
        | R::ReferenceTruncated
        | R::DateOutOfWindow
        | R::FileMissing
        | R::FileQuarantined
        | R::FileLineRejected
        | R::StatementCorrected
        | R::PanDetected => "bank",
    }
}

/// `high`: money may have moved twice, or is at stake in every row; `low`: nobody lost anything.
pub fn severity(reason: Reason) -> &'static str {
    use Reason as R;
    match reason {
        R::LateContradiction
        | R::EvidenceConflict
        | R::DuplicateCapture
        | R::DuplicateLive
        | R::ReferenceClaimed
        | R::SiblingRow
        | R::CurrencyMismatch
        | R::AmountMismatch
        | R::Disputed
        | R::AbsenceBrake
        | R::Returned
        | R::Chargeback
        | R::FileQuarantined
        | R::StatementCorrected
        | R::PanDetected => "high",
        R::RowUnreadable
        | R::TagUnusable
        | R::UnknownAccount
        | R::AccountChanged
        | R::UnsupportedKind
        | R::ReferenceMismatch
        | R::TimeMismatch
        | R::Refunded
        | R::Voided
        | R::PendingTooLong
        | R::DeclineUnknown
        | R::PspStatusUnknown
        | R::AuthorizedUncaptured
        | R::ReferenceUnknown
        | R::TagNearMiss
        | R::Unprovable
        | R::PossibleUntaggedMatch
        | R::GaveUp
        | R::Rule
        | R::WriteRefused
        | R::AccountUnavailable
        | R::HandbackNotTaken
        | R::ClockSkew
        | R::Orphan
        | R::FxVariance
        | R::NotInFile
        | R::NotAtPsp
        | R::FileMissing
        | R::FileLineRejected => "medium",
        R::Captured
        | R::Settled
        | R::ByPerson
        | R::PspUnavailable
        | R::PspPending
        | R::FailureNotFinal
        | R::DeclinedRetryable
        | R::DeclinedFinal
        | R::Unattempted
        | R::ActionRequired
        | R::Expired
        | R::Canceled
        | R::WithinGrace
        | R::AbsenceUnproven
        | R::SiblingPending
        | R::Absent
        | R::Watched
        | R::FeeVariance
        | R::ToleranceDelta
        | R::ReferenceMissing
        | R::ReferenceTruncated
        | R::DateOutOfWindow => "low",
    }
}

/// Whether a rule would settle it, and everything like it, as far as the reason tells.
fn wants_rule(reason: Reason) -> bool {
    matches!(reason, Reason::DeclineUnknown | Reason::PspStatusUnknown)
}

/// Whether it would, by what was `shown` of the objects: none ends what can still be captured.
pub fn rule_settles<'a>(reason: Reason, mut shown: impl Iterator<Item = &'a PspObject>) -> bool {
    wants_rule(reason) && !shown.any(|object| object.capturable_minor > 0)
}

/// What really helps where the PSP has already said what became of it; none: ask it.
pub fn remedy(reason: Reason) -> Option<&'static str> {
    match reason {
        Reason::AmountMismatch => {
            Some("find out which amount is right; correct the row, or give the difference back")
        }
        Reason::CurrencyMismatch => {
            Some("find out what the customer was charged; correct the row, or refund it")
        }
        Reason::DuplicateLive => Some("cancel at the PSP what can still capture"),
        Reason::AuthorizedUncaptured => {
            Some("capture or cancel it at the PSP before the authorisation ends")
        }
        Reason::Disputed => Some("answer the dispute at the PSP; decide the row when it is over"),
        Reason::ReferenceUnknown => {
            Some("check that the account's key is of the account that charged the row")
        }
        _ask => None,
    }
}

/// The same, by what every look `shown` of the objects: what captured nothing gives nothing back,
/// and what no rule knows and can still be captured is an authorisation like any other.
pub fn remedy_after<'a>(
    reason: Reason,
    mut shown: impl Iterator<Item = &'a PspObject>,
) -> Option<&'static str> {
    match reason {
        Reason::AmountMismatch if !shown.any(PspObject::has_captured) => {
            Some("find out which amount is right, and correct the row")
        }
        other if wants_rule(other) && shown.any(|object| object.capturable_minor > 0) => {
            remedy(Reason::AuthorizedUncaptured)
        }
        other => remedy(other),
    }
}

/// What is known of a file that has a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// A format knows it.
    Known,
    /// None does.
    Unknown,
    /// It does not open: it was cut or damaged, or is packed in another way.
    Shut,
    /// No key opens it.
    Sealed,
}

/// What ends the case of a file, for the person who reads it: `file` is what commands know it by.
/// Nothing can be released of one that no format knows, or that is not even opened.
pub fn next_of_file(reason: Reason, (file, content): (&str, Content), case: i64) -> String {
    let release = format!("tieout files release {file} --reason TEXT");
    let leave = format!("tieout cases propose C-{case} --as left --why TEXT");
    match reason {
        Reason::FileQuarantined if content == Content::Shut => format!(
            "`tieout files show {file}` says why it does not open. Fetch it again, or ask whoever \
             sends it for one that opens: it is brought in beside this one, which can never be let \
             count; then {leave}"
        ),
        Reason::FileQuarantined if content == Content::Sealed => format!(
            "ask the sender for it again, or look at [source.decrypt] where the key is what is \
             wrong: with other keys it is fetched again. One that opens is brought in beside it; \
             then {leave}"
        ),
        Reason::FileQuarantined if content == Content::Unknown => format!(
            "`tieout files show {file}` says what it is taken for. No line of it can be read, so \
             that it cannot be released: describe it as a [[format]] and name that in its \
             [[source]], and it is read again; or bring the right file in, then {leave}"
        ),
        Reason::FileQuarantined => format!(
            "`tieout files quarantine` says what is wrong with it. Ask for the file again: one \
             that comes right is brought in beside it; then {leave}. Where the sender confirms it \
             as it is: {release}"
        ),
        Reason::StatementCorrected => format!(
            "{release} --dry-run shows the difference; without --dry-run it begins to count with \
             the next run. Where the earlier one is right: {leave}"
        ),
        Reason::FileMissing => "`tieout files expected` says which days. Ask whoever sends the \
             file; the case closes by itself when every file is there"
            .to_owned(),
        Reason::PanDetected => {
            format!("remove the file, and tell whoever sends it; then {leave}")
        }
        _other => format!("`tieout files list` shows the file; once that is looked into: {leave}"),
    }
}

/// Whether the row is to be looked at again once that is done.
pub fn wants_look(reason: Reason) -> bool {
    remedy(reason).is_some() && reason != Reason::Disputed
}

/// What a person would usually try first; `saw_object`: the PSP showed an object for the row.
pub fn suggested_action(reason: Reason, saw_object: bool) -> &'static str {
    use Reason as R;
    match reason {
        R::LateContradiction | R::Captured | R::Settled => "confirm_success",
        R::SiblingRow if saw_object => "refund_duplicate",
        R::DuplicateCapture => "refund_duplicate",
        R::Expired
        | R::Canceled
        | R::HandbackNotTaken
        | R::DeclinedRetryable
        | R::Unattempted
        | R::Absent => "retry_at_original_psp",
        R::ActionRequired
        | R::PspUnavailable
        | R::PspPending
        | R::FailureNotFinal
        | R::WithinGrace
        | R::AbsenceUnproven
        | R::SiblingPending
        | R::Watched
        | R::ClockSkew => "wait_until",
        R::EvidenceConflict
        | R::DuplicateLive
        | R::CurrencyMismatch
        | R::AmountMismatch
        | R::Disputed
        | R::PendingTooLong
        | R::DeclineUnknown
        | R::PspStatusUnknown
        | R::AuthorizedUncaptured
        | R::ReferenceUnknown
        | R::Unprovable
        | R::AccountUnavailable
        | R::FeeVariance
        | R::FxVariance
        | R::NotAtPsp
        | R::PanDetected => "contact_psp",
        R::Returned
        | R::Chargeback
        | R::NotInFile
        | R::FileMissing
        | R::FileQuarantined
        | R::FileLineRejected
        | R::StatementCorrected => "contact_bank",
        R::TagUnusable
        | R::AccountChanged
        | R::ReferenceClaimed
        | R::ReferenceMismatch
        | R::TimeMismatch
        | R::TagNearMiss
        | R::PossibleUntaggedMatch
        | R::AbsenceBrake
        | R::Orphan
        | R::ReferenceMissing
        | R::ReferenceTruncated => "fix_reference",
        R::GaveUp | R::ToleranceDelta => "write_off",
        R::RowUnreadable
        | R::UnknownAccount
        | R::UnsupportedKind
        | R::SiblingRow
        | R::Refunded
        | R::Voided
        | R::DeclinedFinal
        | R::Rule
        | R::ByPerson
        | R::WriteRefused
        | R::DateOutOfWindow => "none",
    }
}

/// What a person would try first, by what every look showed of the objects. Money that went back
/// is neither confirmed nor given back once more: whoever took it says first what became of it.
/// Of several captures those that the shop gave back whole are over, and one that is left stands.
/// Payments that together are what the row `wants` were not paid twice, either, and those that may
/// be one booking of two files are the bank's to tell apart.
pub fn action_after<'a>(
    reason: Reason,
    saw_object: bool,
    wanted: Option<Money>,
    shown: impl Iterator<Item = &'a PspObject>,
) -> &'static str {
    let action = suggested_action(reason, saw_object);
    if !matches!(action, "confirm_success" | "refund_duplicate") {
        return action;
    }
    let all: Vec<&PspObject> = shown.collect();
    let is_duplicate = reason == Reason::DuplicateCapture;
    let shown = if is_duplicate { not_given_back(&all) } else { all.clone() };
    let gave_back = |object: &&PspObject| {
        let is_voided = object.state == ObjectState::Voided;
        object.returned.is_some() || object.disputed || object.refunded_minor != 0 || is_voided
    };
    let gone = shown.iter().copied().filter(gave_back);
    match gone.map(|object| object.returned.is_some()).max() {
        Some(true) => "contact_bank",
        Some(false) => "contact_psp",
        None if shown.len() < all.len() && is_one(&shown) => match fits(&shown, wanted) {
            true => "confirm_success",
            false => "contact_psp",
        },
        None if action == "refund_duplicate" && are_parts(&shown, wanted) => "contact_psp",
        None if action == "refund_duplicate" && may_be_one(shown.iter().copied()) => "contact_bank",
        None if action == "refund_duplicate" && went_out(&shown) => match shown.first() {
            Some(object) if is_booking(object) => "contact_bank",
            _by_api => "contact_psp",
        },
        None => action,
    }
}

/// What the bank is to be asked, where [`action_after`] says so.
pub fn bank_question<'a>(
    reason: Reason,
    shown: impl Iterator<Item = &'a PspObject>,
) -> &'static str {
    let shown: Vec<&PspObject> = shown.collect();
    let is_back = shown.iter().any(|object| object.returned.is_some());
    let is_unsaid = shown.iter().any(|object| may_be_refund(object));
    match suggested_action(reason, true) {
        "refund_duplicate" if !is_back && may_be_one(shown.iter().copied()) => {
            "ask the bank how often it was booked: it may be one booking that two files tell"
        }
        "refund_duplicate" if !is_back && went_out(&shown) => {
            "it was paid out twice: ask for it back"
        }
        _became if reason == Reason::LateContradiction && is_unsaid => {
            "ask the bank what became of it, or it is a refund of yours that no mapped table has"
        }
        _became => "ask the bank what became of it",
    }
}

/// Of several captures those that the shop did not give back whole; all, where none is left.
fn not_given_back<'a>(all: &[&'a PspObject]) -> Vec<&'a PspObject> {
    let is_left = |object: &&PspObject| !is_given_back(object, all);
    let left: Vec<&PspObject> = all.iter().copied().filter(is_left).collect();
    match left.iter().any(|object| object.has_captured()) {
        true => left,
        false => all.to_vec(),
    }
}

/// Whether one object alone captured, by whichever of its ids.
fn is_one(shown: &[&PspObject]) -> bool {
    let mut captured = shown.iter().filter(|object| object.has_captured());
    let first = captured.next();
    first.is_some_and(|first| captured.all(|other| is_same(first, other)))
}

/// Whether what captured did so exactly as the row `wanted`.
fn fits(shown: &[&PspObject], wanted: Option<Money>) -> bool {
    let mut captured = shown.iter().filter(|object| object.has_captured());
    captured.all(|object| is_equal(object, wanted))
}

/// Whether the payments went out, as refunds and payouts do: there is nothing to refund.
fn went_out(shown: &[&PspObject]) -> bool {
    let is_out = |object: &&PspObject| matches!(object.kind.as_str(), "refund" | "payout");
    !shown.is_empty() && shown.iter().all(is_out)
}

/// Whether several payments together are one amount.
fn are_parts(shown: &[&PspObject], wanted: Option<Money>) -> bool {
    let captured = |object: &&PspObject| Some((object.reference.clone(), object.captured?));
    let parts: BTreeMap<String, Money> = shown.iter().filter_map(captured).collect();
    let sum = parts.values().try_fold(0_i64, |sum, part| sum.checked_add(part.minor));
    let is_whole = |wanted: Money| {
        let is_one = parts.values().all(|part| part.currency == wanted.currency);
        parts.len() > 1 && is_one && sum == Some(wanted.minor)
    };
    wanted.is_some_and(is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::money::Currency;
    use crate::model::time::from_text;

    fn object() -> PspObject {
        PspObject::plain("charge", ObjectState::Captured)
    }

    #[test]
    fn what_captured_nothing_gives_nothing_back() {
        let money = Money::new(1_000, Currency::parse("EUR").unwrap());
        let paid = PspObject { captured: Some(money), ..object() };
        let declined = PspObject { state: ObjectState::Canceled, ..object() };
        let after = |objects: &[PspObject]| {
            remedy_after(Reason::AmountMismatch, objects.iter()).unwrap().to_owned()
        };
        assert!(after(&[declined.clone(), paid]).contains("give the difference back"));
        assert!(!after(std::slice::from_ref(&declined)).contains("back"));
        let other = remedy_after(Reason::CurrencyMismatch, [declined].iter());
        assert_eq!(other, remedy(Reason::CurrencyMismatch));
    }

    #[test]
    fn no_rule_is_suggested_for_what_can_still_be_captured() {
        let strange = PspObject { state: ObjectState::Unknown, ..object() };
        let held = PspObject { capturable_minor: 1, ..strange.clone() };
        let reason = Reason::PspStatusUnknown;
        assert!(rule_settles(reason, [&strange].into_iter()));
        assert_eq!(remedy_after(reason, [&strange].into_iter()), None);
        assert!(!rule_settles(reason, [&strange, &held].into_iter()));
        let helps = remedy_after(reason, [&strange, &held].into_iter());
        assert_eq!(helps, remedy(Reason::AuthorizedUncaptured));
        assert!(!rule_settles(Reason::AmountMismatch, [&strange].into_iter()));
    }

    #[test]
    fn a_files_case_says_by_which_command_it_ends() {
        for (reason, command) in [
            (Reason::FileQuarantined, "tieout files release 12 --reason TEXT"),
            (Reason::StatementCorrected, "tieout files release 12 --reason TEXT --dry-run"),
            (Reason::FileMissing, "tieout files expected"),
            (Reason::PanDetected, "tieout cases propose C-7 --as left --why TEXT"),
            (Reason::FileLineRejected, "tieout cases propose C-7 --as left --why TEXT"),
        ] {
            let next = next_of_file(reason, ("12", Content::Known), 7);
            assert!(next.contains(command), "{next}");
        }
        for (content, says) in [
            (Content::Unknown, "[[format]]"),
            (Content::Shut, "ask whoever sends it for one that opens"),
            (Content::Sealed, "[source.decrypt]"),
        ] {
            let next = next_of_file(Reason::FileQuarantined, ("12", content), 7);
            assert!(next.contains(says) && !next.contains("files release"), "{next}");
            assert_eq!(next.contains("[[format]]"), content == Content::Unknown, "{next}");
        }
    }

    #[test]
    fn what_went_back_is_not_confirmed_and_not_given_back_again() {
        let kept = object;
        let returned = || PspObject { returned: Some("AC04".to_owned()), ..object() };
        let disputed = || PspObject { disputed: true, ..object() };
        let refunded = || PspObject { refunded_minor: 1, ..object() };
        let voided = || PspObject { state: ObjectState::Voided, ..object() };
        for reason in [Reason::LateContradiction, Reason::DuplicateCapture, Reason::SiblingRow] {
            let after = |objects: &[PspObject]| action_after(reason, true, None, objects.iter());
            let plain = suggested_action(reason, true);
            assert_eq!(after(&[]), plain, "{reason:?}");
            assert_eq!(after(&[kept(), kept()]), plain, "{reason:?}");
            assert_eq!(after(&[returned(), kept()]), "contact_bank", "{reason:?}");
            assert_eq!(after(&[returned(), refunded()]), "contact_bank", "{reason:?}");
            for gone in [disputed(), refunded(), voided()] {
                assert_eq!(after(&[kept(), gone]), "contact_psp", "{reason:?}");
            }
        }
        let objects = [returned()];
        let after = action_after(Reason::TagUnusable, true, None, objects.iter());
        assert_eq!(after, "fix_reference");
    }

    #[test]
    fn the_one_that_stands_beside_what_was_refunded_whole_is_confirmed() {
        let money = |minor| Some(Money::new(minor, Currency::parse("EUR").unwrap()));
        let paid = |name: &str, refunded_minor| PspObject {
            reference: name.to_owned(),
            captured: money(1_000),
            refunded_minor,
            ..object()
        };
        let after = |wanted, objects: &[PspObject]| {
            action_after(Reason::DuplicateCapture, true, money(wanted), objects.iter())
        };
        let (kept, gone) = (|| paid("pi_1", 0), || paid("pi_2", 1_000));
        assert_eq!(after(1_000, &[kept(), gone()]), "confirm_success");
        // A look from before the refund takes nothing of it away.
        assert_eq!(after(1_000, &[kept(), gone(), paid("pi_2", 0)]), "confirm_success");
        let open = PspObject { state: ObjectState::Unattempted, captured: None, ..paid("pi_3", 0) };
        assert_eq!(after(1_000, &[kept(), gone(), open]), "confirm_success");
        assert_eq!(after(900, &[kept(), gone()]), "contact_psp", "it fits the row no more");
        assert_eq!(after(1_000, &[kept(), gone(), paid("pi_3", 0)]), "refund_duplicate");
        assert_eq!(after(1_000, &[kept(), paid("pi_2", 999)]), "contact_psp");
        assert_eq!(after(1_000, &[paid("pi_1", 1_000), gone()]), "contact_psp");
        let disputed = PspObject { disputed: true, ..gone() };
        assert_eq!(after(1_000, &[kept(), disputed]), "contact_psp");
        let both = [kept(), gone()];
        let action = action_after(Reason::LateContradiction, true, money(1_000), both.iter());
        assert_eq!(action, "contact_psp", "a row that was given up was no duplicate");
    }

    #[test]
    fn what_was_paid_in_parts_was_not_paid_twice() {
        let money = |minor| Some(Money::new(minor, Currency::parse("EUR").unwrap()));
        let part = |name: &str, minor| PspObject {
            reference: name.to_owned(),
            captured: money(minor),
            ..object()
        };
        let after = |wanted: Option<Money>, objects: &[PspObject]| {
            action_after(Reason::DuplicateCapture, true, wanted, objects.iter())
        };
        let parts = [part("1:1", 600), part("1:2", 400)];
        assert_eq!(after(money(1_000), &parts), "contact_psp");
        assert_eq!(after(money(600), &parts), "refund_duplicate");
        assert_eq!(after(None, &parts), "refund_duplicate");
        let twice = [part("1:1", 1_000), part("1:2", 1_000)];
        assert_eq!(after(money(1_000), &twice), "refund_duplicate");
        for (places, wanted) in
            [(["1:1", "1:2"], "contact_bank"), (["re_1", "re_2"], "contact_psp")]
        {
            let out = |name: &str| PspObject { kind: "refund".to_owned(), ..part(name, 1_000) };
            let twice = places.map(out);
            assert_eq!(after(money(1_000), &twice), wanted, "what went out cannot be refunded");
        }
        let out = [PspObject { kind: "payout".to_owned(), ..part("1:1", 1_000) }];
        let question = bank_question(Reason::DuplicateCapture, out.iter());
        assert_eq!(question, "it was paid out twice: ask for it back");
    }

    #[test]
    fn what_may_be_one_booking_of_two_files_is_not_given_back() {
        let money = |minor| Some(Money::new(minor, Currency::parse("EUR").unwrap()));
        let booked = |place: &str, minor, day: &str| PspObject {
            reference: place.to_owned(),
            captured: money(minor),
            created_at: from_text(&format!("{day}T23:59:59Z")).unwrap(),
            ..object()
        };
        let day = "2026-11-18";
        let twice = |other: PspObject| {
            let both = [booked("1:1", 1_000, day), other];
            let action = action_after(Reason::DuplicateCapture, true, money(1_000), both.iter());
            let question = bank_question(Reason::DuplicateCapture, both.iter());
            assert_eq!(question.contains("two files"), action == "contact_bank", "{both:?}");
            action
        };
        assert_eq!(twice(booked("2:1", 1_000, day)), "contact_bank");
        assert_eq!(twice(booked("1:2", 1_000, day)), "refund_duplicate", "of one file");
        assert_eq!(twice(booked("2:1", 1_000, "2026-11-19")), "refund_duplicate");
        assert_eq!(twice(booked("2:1", 1_001, day)), "refund_duplicate");
        assert_eq!(twice(booked("pi_2", 1_000, day)), "refund_duplicate", "known by an id");
        let both = [PspObject { returned: Some("AC04".to_owned()), ..object() }];
        let question = bank_question(Reason::DuplicateCapture, both.iter());
        assert_eq!(question, "ask the bank what became of it");
        for (place, code, is_unsaid) in
            [("1:1", "", true), ("1:1", "AC04", false), ("pi_1", "", false)]
        {
            let back = PspObject { returned: Some(code.to_owned()), ..booked(place, 1_000, day) };
            let question = bank_question(Reason::LateContradiction, [back].iter());
            assert_eq!(question.contains("a refund of yours"), is_unsaid, "{place} {code}");
        }
    }

    #[test]
    fn what_helps_stands_for_asking_the_psp() {
        for reason in Reason::ALL.iter().copied() {
            let is_asked = suggested_action(reason, true) == "contact_psp";
            assert!(remedy(reason).is_none() || is_asked, "{reason:?}");
            assert!(!wants_look(reason) || remedy(reason).is_some(), "{reason:?}");
        }
        for (reason, look) in [
            (Reason::AmountMismatch, true),
            (Reason::DuplicateLive, true),
            (Reason::AuthorizedUncaptured, true),
            (Reason::Disputed, false),
        ] {
            assert_eq!((remedy(reason).is_some(), wants_look(reason)), (true, look), "{reason:?}");
        }
        assert_eq!(remedy(Reason::PendingTooLong), None);
    }
}
