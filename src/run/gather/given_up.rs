//! Siblings that ended unpaid by their status alone: an application that took a time-out for a
//! failure wrote `failed`, and the money moved. Before a row is handed back, the PSP is asked about
//! those of its siblings, too: who is charged again may have paid by one of them.

use std::collections::{HashMap, HashSet};

use crate::decide::absence::{SKEW_MAX, mapped_last_attempt};
use crate::decide::decision::{Verdict, Want};
use crate::model::evidence::{Answer, Cause, Evidence, ObjectState, PspObject, Route};
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
            let own = siblings.get_mut(&claimed.row.key.id).into_iter().flatten();
            for fact in own.filter(|fact| is_ended(fact)) {
                let told = states.get(fact.id.as_str());
                fact.state = match told {
                    Some(Told::Paid) => SiblingState::PaidAfterAll,
                    Some(Told::UnderWay) => SiblingState::Pending,
                    Some(Told::Silence(_)) => fact.state,
                    None => SiblingState::Other,
                };
                // An error is no answer, about this row as little as about that one.
                if let (Some(Told::Silence(item)), Some(facts)) = (told, facts.get_mut(index)) {
                    facts.evidence.push(about(&fact.id, item));
                }
            }
        }
        self.decide_again(rows, facts, siblings, &again, decisions);
        Ok(())
    }

    /// Asks about rows that ended, by their keys; those of which there is something to tell.
    async fn ask_about(&self, keys: &[String]) -> Result<HashMap<String, Told>, RunError> {
        let found = self.db.rows_known_by(self.table, self.account_name, &[], &[], keys).await;
        let found = found.doing("reading siblings that ended")?;
        let mut answers = self.in_files(&found).await?;
        self.at_the_psp(&found, &mut answers).await;
        let mut states = HashMap::new();
        for (row, answers) in found.iter().zip(answers) {
            // Its call may still arrive, whatever the PSP knows of it by now.
            let may_arrive = self.clock.now() <= self.over_at(row);
            let told = match told_of(row, answers) {
                Some(Told::Paid) => Some(Told::Paid),
                _less if may_arrive => Some(Told::UnderWay),
                told => told,
            };
            states.extend(told.map(|told| (row.key.id.clone(), told)));
        }
        Ok(states)
    }

    /// What settlement files tell of such rows. That they tell nothing says nothing here.
    async fn in_files(&self, rows: &[Transaction]) -> Result<Vec<Vec<Evidence>>, RunError> {
        let mut answers = vec![Vec::new(); rows.len()];
        if !self.has_files {
            return Ok(answers);
        }
        let asking = rows.iter().enumerate().filter(|(_, row)| can_be_asked(row));
        let (places, asking): (Vec<usize>, Vec<&Transaction>) = asking.unzip();
        let told = self.by_files(false).ask(&asking, self.clock.now()).await?;
        for (place, told) in places.into_iter().zip(told) {
            let is_found = |item: &Evidence| matches!(item.answer, Answer::Found { .. });
            if let Some(answers) = answers.get_mut(place) {
                answers.extend(told.evidence.filter(is_found));
            }
        }
        Ok(answers)
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

/// What the PSP says of a sibling beyond its status.
#[derive(PartialEq)]
enum Told {
    Paid,
    /// Something of it may still be paid, or a call for it may still arrive.
    UnderWay,
    /// A route gave no answer.
    Silence(Box<Evidence>),
}

/// What the PSP says of a sibling; `None`: as its status says.
fn told_of(row: &Transaction, told: Vec<Evidence>) -> Option<Told> {
    let is_its = |(route, object): &(Route, &PspObject)| {
        let is_tagged = object.tag.is_some() && object.tag.as_deref() == row.tag.usable();
        let is_stored = || row.psp_reference.as_deref().is_some_and(|name| object.is_named(name));
        // What files tell of a row is its own.
        *route == Route::File || is_tagged || is_stored()
    };
    let objects = told.iter().flat_map(|item| {
        let objects = match &item.answer {
            Answer::Found { objects, .. } => objects.as_slice(),
            Answer::Nothing(_) | Answer::UnknownReference(_) | Answer::NoAnswer(_) => &[],
        };
        objects.iter().map(|object| (item.route, object))
    });
    let own = objects.filter(is_its).map(|(_, object)| object);
    if own.clone().any(keeps_money) {
        return Some(Told::Paid);
    }
    if own.clone().any(|object| is_under_way(&object.state)) {
        return Some(Told::UnderWay);
    }
    let is_unanswered = |item: &Evidence| matches!(item.answer, Answer::NoAnswer(_));
    told.into_iter().find(is_unanswered).map(Box::new).map(Told::Silence)
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

/// Whether it captured more than was given back.
fn keeps_money(object: &PspObject) -> bool {
    let captured = object.captured.map_or(0, |money| money.minor);
    // A return that tells no sum took all.
    let is_returned = object.returned.is_some() && object.refunded_minor == 0;
    let is_back = is_returned || (captured > 0 && object.refunded_minor >= captured);
    object.has_captured() && object.state != ObjectState::Voided && !is_back
}

/// Whether it may be paid without a new call of the shop. What waits for one is what a failure
/// leaves behind.
fn is_under_way(state: &ObjectState) -> bool {
    match state {
        ObjectState::InFlight
        | ObjectState::Authorized
        | ObjectState::ActionRequired
        | ObjectState::Unknown => true,
        ObjectState::Captured
        | ObjectState::Voided
        | ObjectState::Unattempted
        | ObjectState::Failed(_)
        | ObjectState::Canceled
        | ObjectState::Expired => false,
    }
}
