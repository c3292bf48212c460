//! The proof objects without which nothing is ever handed back.
//!
//! "Retryable" says "safe to charge again". It holds a [`Permit`], whose fields are private and
//! whose constructors are the pure functions of this room: a time-out, a partial page or a young
//! row cannot become one by any path.

use serde::{Deserialize, Serialize};

use crate::decide::absence::Absence;
use crate::model::evidence::{Failure, ObjectState, PspObject};
use crate::model::time::{Instant, later};

/// Why it is safe to charge again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permit {
    /// The PSP never got the call, and can no longer get it.
    Absent(Absence),
    /// The PSP states a failure that is final.
    Declined(DefiniteFailure),
    /// The object exists and was never attempted.
    Unattempted(UnattemptedObject),
    /// A person decided so, and nothing that the PSP shows stands against it.
    Person(Approval),
}

impl Permit {
    /// The word in journals.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Absent(_) => "absent",
            Self::Declined(_) => "declined",
            Self::Unattempted(_) => "unattempted",
            Self::Person(_) => "person",
        }
    }
}

/// A person's word that passed the gate of [`super::person`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    proposal: i64,
    approved_by: String,
}

impl Approval {
    /// Only the gate makes one.
    pub(super) fn of(proposal: i64, approved_by: &str) -> Self {
        Self { proposal, approved_by: approved_by.to_owned() }
    }

    /// The proposal's number.
    pub fn proposal(&self) -> i64 {
        self.proposal
    }

    /// Who said yes.
    pub fn approved_by(&self) -> &str {
        &self.approved_by
    }
}

/// A failure that the PSP stated and that is final by now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefiniteFailure {
    reference: String,
    code: String,
}

impl DefiniteFailure {
    /// Only a stated failure whose `final_from` has passed is definite, and only where no sum of
    /// the object can still be captured.
    pub fn of(object: &PspObject, now: Instant) -> Option<Self> {
        let failure = stated_failure(object).filter(|_| !object.can_still_capture())?;
        let is_final = failure.final_from.is_some_and(|from| from <= now);
        is_final.then(|| Self { reference: object.reference.clone(), code: failure.code.clone() })
    }

    /// The failed object.
    pub fn reference(&self) -> &str {
        &self.reference
    }

    /// The PSP's code.
    pub fn code(&self) -> &str {
        &self.code
    }
}

/// The failure that an object states, if it states one.
pub fn stated_failure(object: &PspObject) -> Option<&Failure> {
    match &object.state {
        ObjectState::Failed(failure) => Some(failure),
        ObjectState::Captured
        | ObjectState::Voided
        | ObjectState::InFlight
        | ObjectState::Authorized
        | ObjectState::ActionRequired
        | ObjectState::Unattempted
        | ObjectState::Canceled
        | ObjectState::Expired
        | ObjectState::Unknown => None,
    }
}

/// An object that nobody ever tried to pay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnattemptedObject {
    reference: String,
}

impl UnattemptedObject {
    /// Only an object in the state `Unattempted` is one, and only where no sum of it can still be
    /// captured.
    pub fn of(object: &PspObject) -> Option<Self> {
        (object.state == ObjectState::Unattempted && !object.can_still_capture())
            .then(|| Self { reference: object.reference.clone() })
    }

    /// The object to charge by.
    pub fn reference(&self) -> &str {
        &self.reference
    }
}

/// How the worker must charge again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retry {
    /// By the object that exists, with a new key; a new object could be paid beside it.
    SameObject(String),
    /// With the original idempotency key, until it no longer protects.
    SameKey {
        /// Until when.
        until: Instant,
    },
    /// A new attempt with a new key: PSPs replay the answer saved under the old one.
    NewAttempt,
    /// Nobody charges: the row only ends as abandoned. No hand-back is ever made of it.
    Never,
}

impl Retry {
    /// The word in events and reports.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::SameObject(_) => "same_object",
            Self::SameKey { .. } => "same_key",
            Self::NewAttempt => "new_attempt",
            Self::Never => "never",
        }
    }
}

/// A row given back to the worker: why it is safe, how, and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandBack {
    permit: Permit,
    retry: Retry,
    not_before: Option<Instant>,
    charge_before: Instant,
}

impl HandBack {
    /// A hand-back by absence: with the original key while it protects, else a new attempt.
    pub(super) fn absent(absence: Absence, now: Instant, charge_within: chrono::TimeDelta) -> Self {
        let limit = later(now, charge_within);
        let (retry, charge_before) = match absence.same_key_until() {
            Some(until) if until > now => (Retry::SameKey { until }, limit.min(until)),
            Some(_) | None => (Retry::NewAttempt, limit),
        };
        Self { permit: Permit::Absent(absence), retry, not_before: None, charge_before }
    }

    /// The end of a row whose absence means that the customer never paid: nobody charges, and
    /// should anyone ever take it for a hand-back, it has lapsed already.
    pub(super) fn abandoned(absence: Absence, now: Instant) -> Self {
        let permit = Permit::Absent(absence);
        Self { permit, retry: Retry::Never, not_before: None, charge_before: now }
    }

    /// A hand-back after a stated failure: the object itself where it can still be paid.
    pub(super) fn declined(
        failure: DefiniteFailure,
        payable: Option<String>,
        not_before: Option<Instant>,
        now: Instant,
        charge_within: chrono::TimeDelta,
    ) -> Self {
        let retry = payable.map_or(Retry::NewAttempt, Retry::SameObject);
        let from = not_before.unwrap_or(now).max(now);
        Self {
            permit: Permit::Declined(failure),
            retry,
            not_before,
            charge_before: later(from, charge_within),
        }
    }

    /// A hand-back of an object that was never attempted.
    pub(super) fn unattempted(
        object: UnattemptedObject,
        now: Instant,
        charge_within: chrono::TimeDelta,
    ) -> Self {
        let retry = Retry::SameObject(object.reference.clone());
        let charge_before = later(now, charge_within);
        Self { permit: Permit::Unattempted(object), retry, not_before: None, charge_before }
    }

    /// A hand-back by a person's word: by the object that is there, else with the original key
    /// while it protects, else as a new attempt.
    pub(super) fn by_person(
        approval: Approval,
        payable: Option<String>,
        same_key_until: Option<Instant>,
        now: Instant,
        charge_within: chrono::TimeDelta,
    ) -> Self {
        let limit = later(now, charge_within);
        let (retry, charge_before) = match (payable, same_key_until) {
            (Some(reference), _) => (Retry::SameObject(reference), limit),
            (None, Some(until)) if until > now => (Retry::SameKey { until }, limit.min(until)),
            (None, Some(_) | None) => (Retry::NewAttempt, limit),
        };
        Self { permit: Permit::Person(approval), retry, not_before: None, charge_before }
    }

    /// Why it is safe.
    pub fn permit(&self) -> &Permit {
        &self.permit
    }

    /// How to charge.
    pub fn retry(&self) -> &Retry {
        &self.retry
    }

    /// Not earlier than this.
    pub fn not_before(&self) -> Option<Instant> {
        self.not_before
    }

    /// A charge after this instant is no longer safe.
    pub fn charge_before(&self) -> Instant {
        self.charge_before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::from_text;

    fn object(state: ObjectState, capturable_minor: i64) -> PspObject {
        PspObject { capturable_minor, ..PspObject::plain("payment_intent", state) }
    }

    #[test]
    fn what_can_still_capture_proves_neither_a_failure_nor_that_nobody_tried() {
        let now = from_text("2026-11-19T09:00:00Z").unwrap();
        let failed = || {
            ObjectState::Failed(Failure {
                code: "expired_card".to_owned(),
                advice: None,
                network_advice: None,
                final_from: Some(now),
                still_payable: true,
            })
        };
        assert!(DefiniteFailure::of(&object(failed(), 0), now).is_some());
        assert_eq!(DefiniteFailure::of(&object(failed(), 1), now), None);
        assert!(UnattemptedObject::of(&object(ObjectState::Unattempted, 0)).is_some());
        assert_eq!(UnattemptedObject::of(&object(ObjectState::Unattempted, 1)), None);
    }
}
