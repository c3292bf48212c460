//! What the cases of rows show: a miss never contradicts a find.
//!
//! A list ends where a row's call is over, and a case may show what was made later and was found
//! by a search. Where a look finds less than the case shows, the rest is asked for by its own ids.
//! What gives no answer then is lost to this look, and the case stays as it was.

use std::collections::{BTreeSet, HashMap};

use crate::decide::backoff;
use crate::decide::decision::{Asked as Why, Decision, Verdict, Want};
use crate::decide::policy::Policy;
use crate::model::evidence::{Answer, Cause, CauseKind, Evidence, Route};
use crate::model::reason::Reason;
use crate::model::time::Instant;
use crate::model::transaction::SiblingFact;
use crate::psp::account::{Need, Question};
use crate::run::error::{Doing, RunError};
use crate::run::gather::{Decided, Facts, Gather, can_be_asked};
use crate::store::records::{Claimed, StoredInputs};
use crate::store::replay::{ReplayDriver, SHOWN_AT_ONCE};

impl Gather<'_> {
    /// Asks by their ids for the objects that the rows' open cases show, and that were not found.
    /// What only files tell of is not asked for: they are read whole each time.
    pub(super) async fn ask_for_shown(
        &self,
        rows: &[Claimed],
        siblings: &HashMap<String, Vec<SiblingFact>>,
        facts: &mut [Facts],
        decisions: &mut [Decided],
    ) -> Result<(), RunError> {
        let Some(account) = self.account.api() else { return Ok(()) };
        let mut cases: HashMap<i64, usize> = HashMap::new();
        for (index, (claimed, decided)) in rows.iter().zip(decisions.iter()).enumerate() {
            let is_asked = claimed.asked != Why::Watch && can_be_asked(&claimed.row);
            if let Some(number) = claimed.open_case.filter(|_| is_asked) {
                // Where some route gave no answer, the case stays as it was in any case.
                if decided.decision.answered {
                    cases.insert(number, index);
                }
            }
        }
        let questions = self.not_found(rows, facts, &cases).await?;
        if questions.is_empty() {
            return Ok(());
        }
        let looked = account.look(&questions, Need::Fetch).await;
        for (question, evidence) in questions.iter().zip(looked.evidence) {
            if let Some(fact) = facts.get_mut(question.row) {
                let reference = question.reference.as_deref().unwrap_or_default();
                evidence.into_iter().for_each(|item| fact.take_shown(reference, item, self.whole));
            }
        }
        let again: BTreeSet<usize> = questions.iter().map(|question| question.row).collect();
        let again: Vec<usize> = again.into_iter().collect();
        self.decide_again(rows, facts, siblings, &again, decisions);
        Ok(())
    }

    /// A question for each object that a case shows under its row's tag, and that was not found.
    async fn not_found(
        &self,
        rows: &[Claimed],
        facts: &[Facts],
        cases: &HashMap<i64, usize>,
    ) -> Result<Vec<Question>, RunError> {
        let mut questions = Vec::new();
        let mut numbers: Vec<i64> = cases.keys().copied().collect();
        numbers.sort_unstable();
        for numbers in numbers.chunks(SHOWN_AT_ONCE) {
            let shown = self.db.shown_by_cases(numbers).await;
            for (number, text) in shown.doing("reading what cases show")? {
                let Some(index) = cases.get(&number).copied() else { continue };
                let (Some(claimed), Some(fact)) = (rows.get(index), facts.get(index)) else {
                    continue;
                };
                let found = fact.found_references();
                let shown = self.shown_of(claimed, &text).into_iter();
                questions.extend(shown.filter(|name| !found.contains(name)).map(|name| {
                    let question = self.question(index, claimed);
                    Question { reference: Some(name), tag: None, ..question }
                }));
            }
        }
        Ok(questions)
    }

    /// The ids of the row's own objects in what its case shows of this account.
    fn shown_of(&self, claimed: &Claimed, text: &str) -> BTreeSet<String> {
        // What this version cannot read tells of nothing.
        let stored = serde_json::from_str::<StoredInputs>(text).ok();
        let is_ours =
            |item: &&Evidence| item.account == self.account_name && item.route != Route::File;
        let tag = claimed.row.tag.usable();
        let told = stored.iter().flat_map(|stored| &stored.evidence);
        told.filter(is_ours)
            .filter_map(|item| match &item.answer {
                Answer::Found { objects, .. } => Some(objects),
                Answer::Nothing(_) | Answer::UnknownReference(_) | Answer::NoAnswer(_) => None,
            })
            .flatten()
            .filter(|object| tag.is_some() && object.tag.as_deref() == tag)
            .map(|object| object.reference.clone())
            .collect()
    }
}

impl Facts {
    /// Takes the answer about an object that the row's case shows. That the PSP forgot it is for a
    /// person to judge, where one does.
    fn take_shown(&mut self, reference: &str, item: Evidence, by_person: bool) {
        let answer = match item.answer {
            Answer::Nothing(_) => return,
            Answer::UnknownReference(_) if by_person => item.answer,
            Answer::Found { objects, .. } => Answer::Found { objects, search: None },
            Answer::NoAnswer(cause) => {
                self.unanswered.push(reference.to_owned());
                Answer::NoAnswer(cause)
            }
            Answer::UnknownReference(_) => {
                self.unanswered.push(reference.to_owned());
                let detail = format!("the case shows {reference}, and the PSP knows none such now");
                Answer::NoAnswer(Cause { kind: CauseKind::Unreadable, detail })
            }
        };
        self.evidence.push(Evidence { answer, ..item });
    }

    /// An object that the row's case shows, and that nothing found and nobody could ask for.
    pub(super) fn lost(&self) -> Option<&str> {
        if self.unanswered.is_empty() {
            return None;
        }
        let found = self.found_references();
        let mut unanswered = self.unanswered.iter().map(String::as_str);
        unanswered.find(|reference| !found.contains(*reference))
    }
}

/// Without that object nothing is decided: the row waits, and its case stays as it was.
pub(super) fn stays(
    claimed: &Claimed,
    wants: Option<Want>,
    lost: &str,
    policy: &Policy,
    now: Instant,
) -> Decision {
    let Claimed { row, history, .. } = claimed;
    let next = backoff::next_check_at(&row.key, history.unanswered, &policy.timing, now);
    Decision {
        verdict: Verdict::Wait,
        reason: Reason::PspUnavailable,
        rule: None,
        text: format!("no answer about {lost}, which the case shows: it stays as it was"),
        seen: None,
        next_check_at: Some(next),
        watch_at: None,
        miss: None,
        answered: false,
        // The search may find it still; whoever shares the row's natural key is of no matter.
        wants: wants.filter(|want| *want == Want::Search),
    }
}
