//! Siblings that ended unpaid by their status alone: an application that took a time-out for a
//! failure wrote `failed`, and the money moved. Before a row is handed back, the PSP is asked about
//! those of its siblings, too: who is charged again may have paid by one of them.

use std::collections::{HashMap, HashSet};

use crate::decide::absence::{SKEW_MAX, mapped_last_attempt};
use crate::decide::decision::{Asked as Why, Verdict, Want};
use crate::model::evidence::{Answer, Evidence, ObjectState, PspObject};
use crate::model::reason::{Outcome, Reason};
use crate::model::time::{earlier, later};
use crate::model::transaction::{SiblingFact, SiblingState, Transaction};
use crate::psp::account::{Need, Question};
use crate::run::error::{Doing, RunError};
use crate::run::gather::{Decided, Facts, Gather, RECENT};
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
        facts: &[Facts],
        decisions: &mut [Decided],
    ) -> Result<(), RunError> {
        let Some(account) = self.account.api() else { return Ok(()) };
        // A wait for siblings is still turned into a hand-back by the run.
        let is_wanted = |(claimed, decided): (&Claimed, &Decided)| {
            let decision = &decided.decision;
            self.whole
                || matches!(decision.verdict, Verdict::Retryable(_))
                || decision.wants == Some(Want::Siblings)
                || decision.reason == Reason::Watched && is_offered(claimed)
        };
        let each = rows.iter().zip(decisions.iter()).enumerate();
        let again = each.filter_map(|(index, one)| is_wanted(one).then_some(index));
        let again: Vec<usize> = again.collect();
        let given_up = |fact: &&SiblingFact| fact.state == SiblingState::Other;
        let of_row = |index: &usize| {
            let row = rows.get(*index).map(|claimed| &claimed.row)?;
            siblings.get(&row.key.id).map(Vec::as_slice)
        };
        let keys: HashSet<&str> = again
            .iter()
            .filter_map(of_row)
            .flat_map(|facts| facts.iter().filter(given_up))
            .map(|fact| fact.id.as_str())
            .collect();
        if keys.is_empty() {
            return Ok(());
        }
        let keys: Vec<String> = keys.into_iter().map(str::to_owned).collect();
        let found = self.db.rows_known_by(self.table, self.account_name, &[], &[], &keys).await;
        let found = found.doing("reading siblings that ended")?;
        let asked: Vec<(&Transaction, Question)> = found
            .iter()
            .enumerate()
            .filter_map(|(place, row)| Some((row, self.question_of_ended(place, row)?)))
            .collect();
        // Of what is recent the search may not know yet.
        let since = earlier(self.clock.now(), RECENT);
        let (recent, old): (Vec<_>, Vec<_>) =
            asked.into_iter().partition(|(_, question)| question.window.1 >= since);
        let mut states: HashMap<&str, Told> = HashMap::new();
        for (asked, need) in [(recent, Need::Complete), (old, Need::Find)] {
            if asked.is_empty() {
                continue;
            }
            let questions: Vec<Question> = asked.iter().map(|(_, one)| one.clone()).collect();
            let looked = account.look(&questions, need).await;
            for ((row, _), told) in asked.iter().zip(looked.evidence) {
                states.extend(told_of(row, &told).map(|told| (row.key.id.as_str(), told)));
            }
        }
        for claimed in again.iter().filter_map(|index| rows.get(*index)) {
            let own = siblings.get_mut(&claimed.row.key.id).into_iter().flatten();
            for fact in own.filter(|fact| given_up(&&**fact)) {
                fact.state = match states.get(fact.id.as_str()) {
                    Some(Told::Paid) => SiblingState::PaidAfterAll,
                    Some(Told::UnderWay) => SiblingState::Pending,
                    Some(Told::Nothing) if claimed.asked != Why::Watch => SiblingState::Pending,
                    Some(Told::Nothing) | None => SiblingState::Other,
                };
            }
        }
        self.decide_again(rows, facts, siblings, &again, decisions);
        Ok(())
    }

    /// What is asked about a row that is no more stuck: what its calls may have made. Nothing where
    /// it has nothing to ask by.
    fn question_of_ended(&self, place: usize, row: &Transaction) -> Option<Question> {
        let tag = row.tag.usable().map(str::to_owned);
        let policy = self.policy(row);
        let over_at = later(mapped_last_attempt(row), policy.timing.in_flight_max);
        (tag.is_some() || row.psp_reference.is_some()).then(|| Question {
            row: place,
            reference: row.psp_reference.clone(),
            tag,
            kinds: policy.psp.object_kinds(row.kind),
            window: (earlier(row.created_at, SKEW_MAX), later(over_at, SKEW_MAX)),
        })
    }
}

/// What the PSP says of a sibling beyond its status.
enum Told {
    Paid,
    UnderWay,
    /// A route gave no answer.
    Nothing,
}

/// What the PSP says of a sibling; `None`: as its status says.
fn told_of(row: &Transaction, told: &[Evidence]) -> Option<Told> {
    let is_its = |object: &&PspObject| {
        let is_tagged = object.tag.is_some() && object.tag.as_deref() == row.tag.usable();
        is_tagged || row.psp_reference.as_deref().is_some_and(|stored| object.is_named(stored))
    };
    let objects = told.iter().flat_map(|item| match &item.answer {
        Answer::Found { objects, .. } => objects.as_slice(),
        Answer::Nothing(_) | Answer::UnknownReference(_) | Answer::NoAnswer(_) => &[],
    });
    let own = objects.filter(is_its);
    if own.clone().any(keeps_money) {
        return Some(Told::Paid);
    }
    if own.clone().any(|object| is_under_way(&object.state)) {
        return Some(Told::UnderWay);
    }
    let is_unanswered = |item: &Evidence| matches!(item.answer, Answer::NoAnswer(_));
    told.iter().any(is_unanswered).then_some(Told::Nothing)
}

/// Whether it was handed back and nobody came for it yet.
fn is_offered(claimed: &Claimed) -> bool {
    let last = claimed.history.last_handback.as_ref();
    let is_last = claimed.history.ended_as == Some(Outcome::Retryable);
    is_last && last.is_some_and(|past| past.taken_at.is_none() && !past.lapsed)
}

/// Whether it captured more than was given back.
fn keeps_money(object: &PspObject) -> bool {
    let captured = object.captured.map_or(0, |money| money.minor);
    let is_back = captured > 0 && object.refunded_minor >= captured;
    object.has_captured() && object.state != ObjectState::Voided && !is_back
}

/// Whether it may capture without a new call. What waits for one is what a failure leaves behind.
fn is_under_way(state: &ObjectState) -> bool {
    matches!(state, ObjectState::InFlight | ObjectState::Authorized)
}
