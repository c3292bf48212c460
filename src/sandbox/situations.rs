//! Where a payment can stand, and a step from one place to another.
//!
//! The words are ours: they name what a payment's parts look like together, not a status of the
//! API. `books` makes the parts follow.

use serde::{Deserialize, Serialize};

/// Where a payment, a charge or a refund stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Situation {
    /// The money moved.
    #[default]
    Succeeded,
    /// A bank debit is under way; the charge is pending.
    Processing,
    /// The customer has to authenticate; nothing was attempted yet.
    RequiresAction,
    /// Authorised, not captured.
    RequiresCapture,
    /// Has a payment method, was never confirmed.
    RequiresConfirmation,
    /// Has no payment method, was never attempted.
    RequiresPaymentMethod,
    /// The last attempt failed; the intent can still be paid.
    Declined,
    /// Closed without money.
    Canceled,
    /// Captured, then given back, wholly unless an amount says otherwise.
    Refunded,
    /// Captured, then disputed by the customer; the dispute needs a response.
    Disputed,
    /// Captured, disputed, and the dispute was lost.
    DisputeLost,
    /// Captured, disputed, and the dispute was won.
    DisputeWon,
}

/// A decline: Stripe's codes for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Decline {
    /// The error code; `card_declined` where the issuer gives a reason of its own.
    pub code: String,
    /// The issuer's reason.
    pub decline_code: Option<String>,
    /// What Stripe advises: `try_again_later`, `do_not_try_again` or `confirm_card_data`.
    pub advice_code: Option<String>,
}

/// One move of a payment.
#[derive(Debug, Clone, Default)]
pub(super) struct Move {
    pub(super) to: Situation,
    /// How much is captured or refunded; all of it when none.
    pub(super) amount: Option<i64>,
    pub(super) decline: Option<Decline>,
    pub(super) reason: Option<String>,
}

impl Move {
    pub(super) fn to(situation: Situation) -> Self {
        Self { to: situation, ..Self::default() }
    }
}

/// When something happens: as the API dates it, and as the sandbox got it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) created: i64,
    pub(super) landed_ms: i64,
}
