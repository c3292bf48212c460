//! What other rules would make of a decision whose inputs were stored: said, and never done.
//!
//! It is decided by the one function that decides, at the time of the stored decision, and what
//! comes back holds no permit: nothing can be handed back, ended or applied by it.

use chrono::TimeDelta;

use crate::decide::absence::call_over_at;
use crate::decide::decision::{Inputs, Verdict, Want};
use crate::decide::judge::decide;
use crate::decide::policy::Policy;
use crate::model::evidence::{Answer, Evidence, Route};
use crate::model::reason::{Outcome, Reason};
use crate::model::time::{Instant, later};

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
    /// Where it would wait: its end, should the same be shown when it is asked afresh, after the
    /// call was over. None where something else is lacking, too.
    pub afresh: Option<Box<WouldBe>>,
}

/// Decides again, by the rules and settings of `policy`, at the time of the stored decision.
pub fn replay(inputs: &Inputs<'_>, policy: &Policy, then: Instant) -> WouldBe {
    let said = once(inputs, policy, then);
    let afresh = (said.outcome == Outcome::Wait).then(|| afresh(inputs, policy, then)).flatten();
    WouldBe { afresh, ..said }
}

/// The same answers, given so much later that no call can be under way any more. What files show is
/// no answer to a question, and stays as it is.
fn afresh(inputs: &Inputs<'_>, policy: &Policy, then: Instant) -> Option<Box<WouldBe>> {
    let asked = inputs.evidence.iter().filter(|one| one.route != Route::File);
    let first = asked.map(|one| one.asked_at).min()?;
    let from = later(call_over_at(inputs.row, inputs.history, policy), TimeDelta::seconds(1));
    let by = from.signed_duration_since(first).max(TimeDelta::zero());
    let mut evidence: Vec<Evidence> = inputs.evidence.iter().map(|one| put_off(one, by)).collect();
    if !evidence.iter().any(|one| one.route == Route::Search) {
        let searched: Vec<Evidence> = evidence.iter().filter_map(as_search).collect();
        evidence.extend(searched);
    }
    let said = once(&Inputs { evidence: &evidence, ..*inputs }, policy, later(then, by));
    let is_end = matches!(said.outcome, Outcome::Succeeded | Outcome::Retryable | Outcome::Failed);
    is_end.then(|| Box::new(said))
}

/// An answer to the same question, put so much later.
fn put_off(one: &Evidence, by: TimeDelta) -> Evidence {
    let mut again = one.clone();
    if again.route == Route::File {
        return again;
    }
    again.asked_at = later(again.asked_at, by);
    if let Answer::Nothing(search) | Answer::Found { search: Some(search), .. } = &mut again.answer
    {
        search.asked_at = later(search.asked_at, by);
        search.to = later(search.to, by);
    }
    again
}

/// What a search by the tag would show that sees what the list saw.
fn as_search(list: &Evidence) -> Option<Evidence> {
    let mut again = list.clone();
    again.route = Route::Search;
    match &mut again.answer {
        Answer::Found { search: Some(search), .. } if list.route == Route::List => {
            search.route = Route::Search;
            Some(again)
        }
        Answer::Found { .. }
        | Answer::Nothing(_)
        | Answer::UnknownReference(_)
        | Answer::NoAnswer(_) => None,
    }
}

fn once(inputs: &Inputs<'_>, policy: &Policy, then: Instant) -> WouldBe {
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
        afresh: None,
    }
}
