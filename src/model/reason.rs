//! The closed list of reasons, ordered by precedence, each with the outcome it leads to.
//!
//! Adding one: a line here, a row in the decision table of `tests/it/decisions.rs`, a line in
//! `docs`/README where reasons are explained. There are no wildcard matches over reasons.

use serde::{Deserialize, Serialize};

/// What becomes of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The money moved.
    Succeeded,
    /// Safe to charge again.
    Retryable,
    /// It failed for good.
    Failed,
    /// Look again later.
    Wait,
    /// A person decides.
    Review,
}

impl Outcome {
    /// All, in the order of reports.
    pub const ALL: [Self; 5] =
        [Self::Succeeded, Self::Retryable, Self::Failed, Self::Wait, Self::Review];

    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Retryable => "retryable",
            Self::Failed => "failed",
            Self::Wait => "wait",
            Self::Review => "review",
        }
    }

    /// The words of screens.
    pub fn screen(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Retryable => "retryable",
            Self::Failed => "failed",
            Self::Wait => "still processing",
            Self::Review => "needs a person",
        }
    }

    /// Reads the stable word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == text)
    }
}

/// Where a reason's outcome comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leads {
    /// Always to this outcome.
    To(Outcome),
    /// A rule or a setting says which.
    ByPolicy,
}

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $variant:ident $code:literal $leads:expr;)+) => {
        /// Why a decision fell as it did; the code is stable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Reason {
            $($(#[doc = $doc])+ #[serde(rename = $code)] $variant,)+
        }

        impl Reason {
            /// All, by descending precedence.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stable snake_case code.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)+ }
            }

            /// What the reason means, in a sentence or two.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+).trim_ascii(),)+ }
            }

            /// The outcome it leads to.
            pub fn leads(self) -> Leads {
                match self { $(Self::$variant => $leads,)+ }
            }
        }
    };
}

use Leads::{ByPolicy, To};
use Outcome::{Failed, Retryable, Review, Succeeded, Wait};

reasons! {
    /// Amount, currency or time of the row cannot be read exactly.
    RowUnreadable "row_unreadable" To(Review);
    /// There is no PSP reference, and no tag that a PSP could be asked by.
    TagUnusable "tag_unusable" To(Review);
    /// The row's account value has no account in the mapping.
    UnknownAccount "unknown_account" To(Review);
    /// The row names another account than when it was first seen.
    AccountChanged "account_changed" To(Review);
    /// The account's adapter cannot look up this kind of movement.
    UnsupportedKind "unsupported_kind" To(Review);
    /// Money was found for a row that was retryable or failed by then, or came back of one that had
    /// succeeded; or a report lists an attempt that may still be paid, of a row that was handed
    /// back since no report had listed it; or something turned up at the PSP beside a hand-back for
    /// a new attempt that nobody had taken yet: a debit under way, an authorisation, anything that
    /// could be paid beside it.
    LateContradiction "late_contradiction" To(Review);
    /// Two sources say things that exclude each other.
    EvidenceConflict "evidence_conflict" To(Review);
    /// Two or more captured objects carry this row's tag.
    DuplicateCapture "duplicate_capture" To(Review);
    /// One object captured, and another can still capture by itself.
    DuplicateLive "duplicate_live" To(Review);
    /// Another row already has this PSP reference.
    ReferenceClaimed "reference_claimed" To(Review);
    /// The row stores another PSP reference than the captured object's.
    ReferenceMismatch "reference_mismatch" To(Review);
    /// The captured object is older than the row's window; or one that can still be paid is.
    TimeMismatch "time_mismatch" To(Review);
    /// Another row with the same natural key already succeeded, or was handed back.
    SiblingRow "sibling_row" To(Review);
    /// The captured currency is another; or that of an object which can still be paid.
    CurrencyMismatch "currency_mismatch" To(Review);
    /// The captured amount is another; or that of an object which can still be paid.
    AmountMismatch "amount_mismatch" To(Review);
    /// The payment is disputed.
    Disputed "disputed" To(Review);
    /// The payment was refunded while the row was stuck.
    Refunded "refunded" To(Review);
    /// The payment was voided while the row was stuck.
    Voided "voided" To(Review);
    /// The PSP captured exactly this row's money.
    Captured "captured" To(Succeeded);
    /// A final settlement file holds exactly this row's money.
    Settled "settled" To(Succeeded);
    /// A route that the verdict needs gave no answer.
    PspUnavailable "psp_unavailable" To(Wait);
    /// The PSP still works on it.
    PspPending "psp_pending" To(Wait);
    /// The PSP has worked on it for longer than `max_age`.
    PendingTooLong "pending_too_long" To(Review);
    /// The PSP states a failure that no rule knows.
    DeclineUnknown "decline_unknown" To(Review);
    /// The PSP states a status that no rule knows.
    PspStatusUnknown "psp_status_unknown" To(Review);
    /// The PSP states a failure that may still turn, or the call may still arrive.
    FailureNotFinal "failure_not_final" To(Wait);
    /// The PSP states a failure after which charging again is allowed.
    DeclinedRetryable "declined_retryable" To(Retryable);
    /// The PSP states a failure after which charging again is pointless or forbidden.
    DeclinedFinal "declined_final" To(Failed);
    /// The object exists at the PSP and was never attempted.
    Unattempted "unattempted" To(Retryable);
    /// Authorised, and nobody captured it.
    AuthorizedUncaptured "authorized_uncaptured" To(Review);
    /// The PSP waits for the customer.
    ActionRequired "action_required" To(Review);
    /// The object expired uncaptured.
    Expired "expired" To(Review);
    /// The object was cancelled uncaptured.
    Canceled "canceled" To(Review);
    /// The row stores a PSP reference, or its case showed one, that the PSP does not know.
    ReferenceUnknown "reference_unknown" To(Review);
    /// An object's tag is nearly this row's: other case or marks, cut short, padded. Or it is this
    /// row's, and the object is of another kind: a refund under a payment's tag that is no refund
    /// row's. Or a line of a file carries this row's tag behind a likelier one, which is another
    /// row's, or has become another row's already.
    TagNearMiss "tag_near_miss" To(Review);
    /// Nothing found yet, and the original call could still arrive.
    WithinGrace "within_grace" To(Wait);
    /// Nothing found, and the proof of absence still lacks something.
    AbsenceUnproven "absence_unproven" To(Wait);
    /// Nothing found, and absence cannot be proven by the routes there are.
    Unprovable "unprovable" To(Review);
    /// A captured object of equal amount, near in time, belongs to no row. For a refund this may be
    /// one that carries the tag of the payment's row and no refund row's.
    PossibleUntaggedMatch "possible_untagged_match" To(Review);
    /// Absent, but another row with the same natural key is still processing, or was given up and
    /// may still be paid.
    SiblingPending "sibling_pending" To(Wait);
    /// Proven: the PSP never got the call, and can no longer get it.
    Absent "absent" To(Retryable);
    /// Handed back `max_retries` times without an end.
    GaveUp "gave_up" ByPolicy;
    /// A rule of the configuration decided; the record names it.
    Rule "rule" ByPolicy;
    /// A person decided; the record names who proposed it, who approved it and why.
    ByPerson "by_person" ByPolicy;
    /// Looked at again after a hand-back or an end: nothing new under the tag.
    Watched "watched" To(Wait);
    /// The user's database refused the change of this row (a constraint or a trigger).
    WriteRefused "write_refused" To(Review);
    /// The account's hand-backs were stopped: they are too many, or the tag seems not to arrive.
    AbsenceBrake "absence_brake" ByPolicy;
    /// The account gave no answer for longer than `unavailable_for`.
    AccountUnavailable "account_unavailable" To(Review);
    /// A hand-back was not taken within `take_within`, or seven of one row lapsed untaken.
    HandbackNotTaken "handback_not_taken" To(Review);
    /// The clocks of the database and the PSP differ by more than two minutes.
    ClockSkew "clock_skew" To(Wait);
    /// Money that no local row explains.
    Orphan "orphan" To(Review);
    /// A booked payment came back.
    Returned "returned" To(Review);
    /// The customer's bank took the payment back.
    Chargeback "chargeback" To(Review);
    /// The fee differs from what was expected.
    FeeVariance "fee_variance" To(Review);
    /// The exchange rate differs from what was expected.
    FxVariance "fx_variance" To(Review);
    /// Accepted within a configured tolerance; the difference is an item of its own.
    ToleranceDelta "tolerance_delta" To(Succeeded);
    /// A line carries no reference.
    ReferenceMissing "reference_missing" To(Review);
    /// A line's reference is cut short.
    ReferenceTruncated "reference_truncated" To(Review);
    /// A row should be in a file, and is not.
    NotInFile "not_in_file" To(Review);
    /// A row should be at the PSP, and is not.
    NotAtPsp "not_at_psp" To(Review);
    /// A line's date is outside the window.
    DateOutOfWindow "date_out_of_window" To(Review);
    /// An expected file did not come by its cut-off.
    FileMissing "file_missing" To(Review);
    /// A file failed its own control totals, or no format knows it.
    FileQuarantined "file_quarantined" To(Review);
    /// A line of a file could not be read.
    FileLineRejected "file_line_rejected" To(Review);
    /// The same statement came again with other bytes.
    StatementCorrected "statement_corrected" To(Review);
    /// A card number stands where none belongs.
    PanDetected "pan_detected" To(Review);
}

/// What the sentence of a `sibling_row` has where money was found for the row itself, beside a
/// sibling that was paid. Of a row that is absent, or was declined, it says something else.
pub const PAID_BESIDE: &str = " captured, and row ";

/// What it begins with where nothing was found for the row itself. Beside something that could
/// still be paid under the row's own tag it says something else.
pub const ABSENT_BESIDE: &str = "absent, but row ";

/// What the sentence of a `refunded` has where the customer has a part of the money back.
pub const PARTLY_REFUNDED: &str = " of it was refunded";

impl Reason {
    /// Whether a row is decided for it; the others are of cases of files, lines and accounts alone.
    pub fn is_of_rows(self) -> bool {
        !matches!(
            self,
            Self::Orphan
                | Self::FeeVariance
                | Self::FxVariance
                | Self::ReferenceMissing
                | Self::ReferenceTruncated
                | Self::NotInFile
                | Self::NotAtPsp
                | Self::FileMissing
                | Self::FileQuarantined
                | Self::FileLineRejected
                | Self::PanDetected
        )
    }

    /// Whether a case of this reason and sentence says that the PSP captured money under the row's
    /// own tag, or could, and that the customer may not have it back: beside it no other row of the
    /// payment just succeeds. Not so `sibling_row`: what it stands beside says that already.
    pub fn says_captured(self, text: &str) -> bool {
        let is_part = self == Self::Refunded && text.contains(PARTLY_REFUNDED);
        is_part || Self::SAYS_CAPTURED.contains(&self)
    }

    /// The reasons for which that holds.
    pub const SAYS_CAPTURED: [Self; 7] = [
        Self::DuplicateCapture,
        Self::DuplicateLive,
        Self::CurrencyMismatch,
        Self::AmountMismatch,
        Self::Disputed,
        Self::ReferenceMismatch,
        Self::LateContradiction,
    ];

    /// Whether a decision of this reason and sentence says that nothing was found for a row, whose
    /// sibling has the payment: it stands back, and holds up nobody.
    pub fn stands_back(self, text: &str) -> bool {
        self == Self::SiblingRow && text.starts_with(ABSENT_BESIDE)
    }

    /// Whether a decision of this reason and sentence says that one payment was paid by two rows.
    pub fn is_paid_beside(self, text: &str) -> bool {
        self == Self::SiblingRow && text.contains(PAID_BESIDE)
    }

    /// Reads the stable code.
    pub fn parse(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|reason| reason.as_str() == code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_snake_case_and_explained() {
        for (index, reason) in Reason::ALL.iter().enumerate() {
            let code = reason.as_str();
            assert!(code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{code}");
            assert_eq!(Reason::parse(code), Some(*reason));
            assert!(reason.meaning().ends_with('.'), "{code}: {}", reason.meaning());
            assert!(Reason::ALL.iter().skip(index + 1).all(|r| r.as_str() != code), "{code}");
        }
    }

    #[test]
    fn only_three_reasons_lead_to_a_hand_back_by_themselves() {
        let retryable: Vec<_> =
            Reason::ALL.iter().filter(|r| r.leads() == To(Retryable)).map(|r| r.as_str()).collect();
        assert_eq!(retryable, ["declined_retryable", "unattempted", "absent"]);
    }
}
