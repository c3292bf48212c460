//! What a payment method or source does when it is charged: Stripe's test names, and our own.
//!
//! Stripe's names (`pm_card_visa`, `tok_chargeDeclinedInsufficientFunds`, …) do as at Stripe. Any
//! other case is spelled out after `pm_sandbox_` or `tok_sandbox_`, its words parted by dots:
//!
//! | name | what happens |
//! | --- | --- |
//! | `pm_sandbox_decline.CODE` | declined with that decline code, with the usual advice |
//! | `pm_sandbox_decline.CODE.ADVICE` | the same with that advice code, or `none` |
//! | `pm_sandbox_blocked` | blocked before it reached the bank |
//! | `pm_sandbox_processing` | stays processing |
//! | `pm_sandbox_processing.succeeded.SECS` | processing, and after so many seconds succeeded |
//! | `pm_sandbox_processing.declined.SECS` | processing, and after so many seconds declined |
//! | `pm_sandbox_action` | needs the customer |
//! | `pm_sandbox_dispute` | succeeds and is disputed |
//! | `pm_sandbox_refund` | succeeds and is refunded |
//!
//! Every other name pays, so that a user's own worker can send the ids it has. To add a case, add
//! a line here and in `outcome_of`.

use super::situations::{Decline, Move, Situation};

/// What happens at once, and what later.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub(super) now: Move,
    pub(super) later: Option<(u64, Move)>,
    pub(super) blocked: bool,
}

/// Cards that the issuer refuses: Stripe's test name, error code, decline code.
const DECLINES: &[(&str, &str, &str)] = &[
    ("chargeDeclined", "card_declined", "generic_decline"),
    ("chargeDeclinedInsufficientFunds", "card_declined", "insufficient_funds"),
    ("chargeDeclinedLostCard", "card_declined", "lost_card"),
    ("chargeDeclinedStolenCard", "card_declined", "stolen_card"),
    ("chargeDeclinedFraudulent", "card_declined", "fraudulent"),
    ("chargeDeclinedVelocityLimitExceeded", "card_declined", "card_velocity_exceeded"),
    ("chargeDeclinedExpiredCard", "expired_card", "expired_card"),
    ("chargeDeclinedIncorrectCvc", "incorrect_cvc", "incorrect_cvc"),
    ("chargeDeclinedProcessingError", "processing_error", "processing_error"),
    ("chargeCustomerFail", "card_declined", "generic_decline"),
];

/// Error codes that stand for themselves; every other decline has the code `card_declined`.
const OWN_CODES: &[&str] = &[
    "expired_card",
    "incorrect_cvc",
    "incorrect_number",
    "incorrect_zip",
    "invalid_cvc",
    "invalid_expiry_month",
    "invalid_expiry_year",
    "invalid_number",
    "processing_error",
    "authentication_required",
];

pub(super) fn outcome_of(name: &str) -> Outcome {
    let own = name.strip_prefix("pm_sandbox_").or_else(|| name.strip_prefix("tok_sandbox_"));
    if let Some(words) = own {
        return spelled_out(&words.split('.').collect::<Vec<_>>());
    }
    let bare = name.strip_prefix("pm_card_").or_else(|| name.strip_prefix("tok_")).unwrap_or(name);
    let bare = bare.strip_prefix("visa_").unwrap_or(bare);
    if let Some((_, code, decline)) = DECLINES.iter().find(|(known, _, _)| *known == bare) {
        return declined(code, decline, advice_for(decline));
    }
    match bare {
        "radarBlock" | "chargeBlocked" => blocked(),
        "createDispute" | "createDisputeProductNotReceived" | "createDisputeInquiry" => {
            plain(Situation::Disputed)
        }
        "authenticationRequired"
        | "authenticationRequiredOnSetup"
        | "threeDSecure2Required"
        | "threeDSecureRequired" => plain(Situation::RequiresAction),
        "pm_usBankAccount" | "pm_usBankAccount_processing" | "pm_sepaDebit" => {
            plain(Situation::Processing)
        }
        "pm_usBankAccount_success" => {
            Outcome { later: Some((500, Move::to(Situation::Succeeded))), ..processing() }
        }
        "pm_usBankAccount_insufficientFunds" => {
            Outcome { later: Some((500, bank_decline())), ..processing() }
        }
        _ => plain(Situation::Succeeded),
    }
}

/// A decline as the issuer's reason makes it.
pub(super) fn decline_by(reason: &str, advice: Option<&str>) -> Decline {
    let code = if OWN_CODES.contains(&reason) { reason } else { "card_declined" };
    Decline {
        code: code.to_owned(),
        decline_code: Some(reason.to_owned()),
        advice_code: advice.map(str::to_owned),
    }
}

/// The advice that usually comes with a reason.
pub(super) fn advice_for(reason: &str) -> Option<&'static str> {
    match reason {
        "generic_decline"
        | "insufficient_funds"
        | "processing_error"
        | "try_again_later"
        | "issuer_not_available"
        | "reenter_transaction"
        | "card_velocity_exceeded"
        | "do_not_honor" => Some("try_again_later"),
        "incorrect_cvc"
        | "invalid_cvc"
        | "incorrect_number"
        | "invalid_number"
        | "invalid_expiry_month"
        | "invalid_expiry_year"
        | "incorrect_zip" => Some("confirm_card_data"),
        "lost_card"
        | "stolen_card"
        | "expired_card"
        | "fraudulent"
        | "pickup_card"
        | "restricted_card"
        | "do_not_try_again"
        | "invalid_account"
        | "revocation_of_authorization"
        | "stop_payment_order"
        | "transaction_not_allowed" => Some("do_not_try_again"),
        _ => None,
    }
}

fn spelled_out(words: &[&str]) -> Outcome {
    let seconds = |text: &str| text.parse::<u64>().unwrap_or(0).saturating_mul(1000);
    match words {
        ["decline", reason] => declined_by(reason, advice_for(reason)),
        ["decline", reason, "none"] => declined_by(reason, None),
        ["decline", reason, advice] => declined_by(reason, Some(advice)),
        ["blocked"] => blocked(),
        ["processing"] => processing(),
        ["processing", "succeeded", secs] => {
            Outcome { later: Some((seconds(secs), Move::to(Situation::Succeeded))), ..processing() }
        }
        ["processing", "declined", secs] => {
            Outcome { later: Some((seconds(secs), bank_decline())), ..processing() }
        }
        ["action"] => plain(Situation::RequiresAction),
        ["dispute"] => plain(Situation::Disputed),
        ["refund"] => plain(Situation::Refunded),
        _ => plain(Situation::Succeeded),
    }
}

fn plain(situation: Situation) -> Outcome {
    Outcome { now: Move::to(situation), later: None, blocked: false }
}

fn processing() -> Outcome {
    plain(Situation::Processing)
}

fn blocked() -> Outcome {
    Outcome { blocked: true, ..declined("card_declined", "fraudulent", Some("do_not_try_again")) }
}

fn declined_by(reason: &str, advice: Option<&str>) -> Outcome {
    let decline = Some(decline_by(reason, advice));
    Outcome { now: Move { decline, ..Move::to(Situation::Declined) }, later: None, blocked: false }
}

fn declined(code: &str, reason: &str, advice: Option<&str>) -> Outcome {
    let decline = Decline { code: code.to_owned(), ..decline_by(reason, advice) };
    Outcome {
        now: Move { decline: Some(decline), ..Move::to(Situation::Declined) },
        later: None,
        blocked: false,
    }
}

/// A debit that the bank sends back has its own code and no decline code.
fn bank_decline() -> Move {
    let decline = Decline {
        code: "payment_intent_payment_attempt_failed".to_owned(),
        decline_code: Some("insufficient_funds".to_owned()),
        advice_code: None,
    };
    Move { decline: Some(decline), ..Move::to(Situation::Declined) }
}
