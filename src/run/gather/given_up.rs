//! Siblings that ended unpaid by their status alone: an application that took a time-out for a
//! failure wrote `failed`, and the money moved. Before a row is handed back, the PSP is asked about
//! those of its siblings, too: who is charged again may have paid by one of them.

use std::collections::{HashMap, HashSet};

use crate::decide::absence::{SKEW_MAX, mapped_last_attempt};
use crate::decide::decision::{Verdict, Want};
use crate::decide::given_up::{Told, told};
use crate::model::evidence::{Answer, Cause, Evidence};
use crate::model::time::{Instant, earlier, later};
use crate::model::transaction::{SiblingFact, SiblingState, Transaction};
use crate::psp::account::{Need, Question};
use crate::run::error::{Doing, RunError};
use crate::run::gather::{Decided, Facts, Gather, RECENT, can_be_asked};
use crate::store::driver::Driver;
use crate::store::records::Claimed;

impl Gather<'_> {
    /// Asks about the given-up siblings of rows that are to be handed back, or were and nobody came
    /// yet, and judges those anew that one of them was paid for. Where there is no answer, it may
    /// have been: that hands nobody back, and takes no hand-back from anybody.
    pub(super) async fn ask_for_given_up(
        &self,
        rows: &[Claimed],
        siblings: &mut HashMap<String, Vec<SiblingFact>>,
        facts: &mut [Facts],
        decisions: &mut [Decided],
    ) -> Result<(), RunError> {
        // A wait for siblings is still turned into a hand-back by the run.
        let is_wanted = |(claimed, decided): (&Claimed, &Decided)| {
            let decision = &decided.decision;
            self.whole
                || matches!(decision.verdict, Verdict::Retryable(_))
                || decision.wants == Some(Want::Siblings)
                || claimed.history.untaken().is_some()
        };
        let each = rows.iter().zip(decisions.iter()).enumerate();
        let again = each.filter_map(|(index, one)| is_wanted(one).then_some(index));
        let again: Vec<usize> = again.collect();
        let facts_of = |index: &usize| {
            let row = rows.get(*index).map(|claimed| &claimed.row)?;
            siblings.get(&row.key.id).map(Vec::as_slice)
        };
        let facts_of_all = again.iter().filter_map(facts_of).flatten();
        let keys: HashSet<&str> =
            facts_of_all.filter(|fact| is_ended(fact)).map(|fact| fact.id.as_str()).collect();
        if keys.is_empty() {
            return Ok(());
        }
        let keys: Vec<String> = keys.into_iter().map(str::to_owned).collect();
        let states = self.ask_about(&keys).await?;
        for (index, claimed) in again.iter().filter_map(|at| Some((*at, rows.get(*at)?))) {
            // Who was handed back was proved beside it then: a file that is late since is no news.
            let waits_for_files = !self.whole && claimed.history.untaken().is_none();
            let own = siblings.get_mut(&claimed.row.key.id).into_iter().flatten();
            for fact in own.filter(|fact| is_ended(fact)) {
                let told = states.get(fact.id.as_str()).unwrap_or(&Told::Unpaid);
                fact.state = match told {
                    Told::Paid => SiblingState::PaidAfterAll,
                    Told::UnderWay => SiblingState::Pending,
                    Told::Lacks(_) if waits_for_files => SiblingState::Pending,
                    Told::Silence(_) => fact.state,
                    Told::Lacks(_) | Told::Unpaid => SiblingState::Other,
                };
                match told {
                    // An error is no answer, about this row as little as about that one.
                    Told::Silence(item) => {
                        let facts = facts.get_mut(index);
                        facts.into_iter().for_each(|own| own.evidence.push(about(&fact.id, item)));
                    }
                    Told::Lacks(lacks) if waits_for_files => fact.lacks = Some(lacks.clone()),
                    Told::Lacks(_) | Told::Paid | Told::UnderWay | Told::Unpaid => {}
                }
            }
        }
        self.decide_again(rows, facts, siblings, &again, decisions);
        Ok(())
    }

    /// Asks about rows that ended, by their keys, and says how each that is there stands.
    async fn ask_about(&self, keys: &[String]) -> Result<HashMap<String, Told>, RunError> {
        let found = self.db.rows_known_by(self.table, self.account_name, &[], &[], keys).await;
        let found = found.doing("reading siblings that ended")?;
        let mut answers = self.in_files(&found).await?;
        let lacking = self.lacking(&found).await?;
        self.at_the_psp(&found, &mut answers).await;
        let mut states = HashMap::new();
        for ((row, answers), lacks) in found.iter().zip(answers).zip(lacking) {
            let now = self.clock.now();
            // Its call may still arrive, whatever the PSP knows of it by now.
            let may_arrive = now <= self.over_at(row);
            let told = match told(row, &answers, lacks, self.policy(row), now) {
                Told::Paid => Told::Paid,
                _less if may_arrive => Told::UnderWay,
                told => told,
            };
            states.insert(row.key.id.clone(), told);
        }
        Ok(states)
    }

    /// What settlement files tell of such rows.
    async fn in_files(&self, rows: &[Transaction]) -> Result<Vec<Vec<Evidence>>, RunError> {
        let mut answers = vec![Vec::new(); rows.len()];
        if !self.has_files {
            return Ok(answers);
        }
        let asking = rows.iter().enumerate().filter(|(_, row)| can_be_asked(row));
        let (places, asking): (Vec<usize>, Vec<&Transaction>) = asking.unzip();
        let told = self.by_files(false).ask(&asking, self.clock.now()).await?;
        for (place, told) in places.into_iter().zip(told) {
            if let Some(answers) = answers.get_mut(place) {
                answers.extend(told.evidence);
            }
        }
        Ok(answers)
    }

    /// What files lack that list every attempt, and may list theirs, where files are all there is.
    async fn lacking(&self, rows: &[Transaction]) -> Result<Vec<Option<String>>, RunError> {
        if self.account.api().is_some() {
            return Ok(vec![None; rows.len()]);
        }
        let spans: Vec<(Instant, Instant)> =
            rows.iter().map(|row| (row.created_at, self.over_at(row))).collect();
        self.attempts().lacking(&spans, self.clock.now()).await
    }

    /// What the PSP's API says of such rows, by their place.
    async fn at_the_psp(&self, rows: &[Transaction], answers: &mut [Vec<Evidence>]) {
        let Some(account) = self.account.api() else { return };
        let now = self.clock.now();
        let asked: Vec<(&Transaction, Question)> = rows
            .iter()
            .enumerate()
            .filter_map(|(place, row)| Some((row, self.question_of_ended(place, row, now)?)))
            .collect();
        // Of what is recent the search may not know yet.
        let since = earlier(now, RECENT);
        let (recent, old): (Vec<_>, Vec<_>) =
            asked.into_iter().partition(|(row, _)| self.over_at(row) >= since);
        for (asked, need) in [(recent, Need::Complete), (old, Need::Find)] {
            if asked.is_empty() {
                continue;
            }
            let questions: Vec<Question> = asked.into_iter().map(|(_, one)| one).collect();
            let looked = account.look(&questions, need).await;
            for (question, told) in questions.iter().zip(looked.evidence) {
                if let Some(answers) = answers.get_mut(question.row) {
                    answers.extend(told);
                }
            }
        }
    }

    /// What is asked about a row that is no more stuck: what its calls may have made. Nothing where
    /// it has nothing to ask by.
    fn question_of_ended(&self, place: usize, row: &Transaction, now: Instant) -> Option<Question> {
        let tag = row.tag.usable().map(str::to_owned);
        let policy = self.policy(row);
        (tag.is_some() || row.psp_reference.is_some()).then(|| Question {
            row: place,
            reference: row.psp_reference.clone(),
            tag,
            kinds: policy.psp.object_kinds(row.kind),
            // An intent may be made long before its row; and a second one long after its call.
            window: (
                earlier(row.created_at, policy.timing.object_before_row.max(SKEW_MAX)),
                later(self.over_at(row).max(now), SKEW_MAX),
            ),
        })
    }

    /// From when no call can arrive any more that was made for it before it was given up.
    fn over_at(&self, row: &Transaction) -> Instant {
        later(mapped_last_attempt(row), self.policy(row).timing.in_flight_max)
    }
}

/// Whether it ended unpaid by its status, whoever wrote that.
fn is_ended(fact: &SiblingFact) -> bool {
    matches!(fact.state, SiblingState::GivenUp | SiblingState::Other)
}

/// That a route gave no answer about a sibling, as it stands beside the row's own answers.
fn about(id: &str, item: &Evidence) -> Evidence {
    let answer = match &item.answer {
        Answer::NoAnswer(cause) => Answer::NoAnswer(Cause {
            kind: cause.kind,
            detail: format!("about row {id} with the same natural key: {}", cause.detail),
        }),
        Answer::Found { .. } | Answer::Nothing(_) | Answer::UnknownReference(_) => {
            item.answer.clone()
        }
    };
    Evidence { answer, ..item.clone() }
}
