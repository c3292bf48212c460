//! What other rules would make of a decision whose inputs were stored: said, and never done.
//!
//! It is decided by the one function that decides, at the time of the stored decision, and what
//! comes back holds no permit: nothing can be handed back, ended or applied by it.

use crate::decide::decision::{Inputs, Verdict, Want};
use crate::decide::judge::decide;
use crate::decide::policy::Policy;
use crate::model::reason::{Outcome, Reason};
use crate::model::time::Instant;

/// What would become of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WouldBe {
    /// The outcome's word.
    pub outcome: Outcome,
    /// Why.
    pub reason: Reason,
    /// The rule that decides, or that a gate of the table still holds back.
    pub rule: Option<String>,
    /// One sentence with the numbers.
    pub text: String,
    /// How a worker would charge: `same_object`, `same_key`, `new_attempt`, `never`.
    pub retry: Option<&'static str>,
    /// Not earlier than this.
    pub not_before: Option<Instant>,
    /// What a run would ask for first: the stored evidence lacks it.
    pub wants: Option<Want>,
}

/// Decides again, by the rules and settings of `policy`, at the time of the stored decision.
pub fn replay(inputs: &Inputs<'_>, policy: &Policy, then: Instant) -> WouldBe {
    let decision = decide(inputs, policy, then);
    let (retry, not_before) = match &decision.verdict {
        Verdict::Retryable(hand_back) => (Some(hand_back.retry().as_str()), hand_back.not_before()),
        Verdict::Succeeded | Verdict::Failed | Verdict::Wait | Verdict::Review => (None, None),
    };
    WouldBe {
        outcome: decision.outcome(),
        reason: decision.reason,
        rule: decision.rule,
        text: decision.text,
        retry,
        not_before,
        wants: decision.wants,
    }
}
