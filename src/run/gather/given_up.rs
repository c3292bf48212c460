//! Siblings that ended unpaid by their status alone: an application that took a time-out for a
//! failure wrote `failed`, and the money moved. Before a row is handed back, the PSP is asked about
//! those of its siblings, too: who is charged again may have paid by one of them.

use std::collections::{HashMap, HashSet};

use chrono::TimeDelta;

use crate::decide::absence::{SKEW_MAX, first_attempt, mapped_last_attempt};
use crate::decide::decision::{Verdict, Want};
use crate::decide::given_up::{Told, told};
use crate::model::evidence::{Answer, Cause, Evidence};
use crate::model::time::{Instant, earlier, later};
use crate::model::transaction::{Kind, SiblingFact, SiblingState, Transaction};
use crate::psp::account::{Need, Question};
use crate::run::attempts::Unnamed;
use crate::run::error::{Doing, RunError};
use crate::run::gather::{Decided, Facts, Gather, RECENT, can_be_asked};
use crate::store::driver::Driver;
use crate::store::records::Claimed;

/// How much older a sibling may be than the oldest row, to be looked for among its files' lines.
const A_DAY: TimeDelta = TimeDelta::days(1);

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
        let made =
            again.iter().filter_map(|at| rows.get(*at).map(|claimed| claimed.row.created_at));
        let states = self.ask_about(&keys, made.min()).await?;
        for (index, claimed) in again.iter().filter_map(|at| Some((*at, rows.get(*at)?))) {
            let handed_back_at = claimed.history.untaken().map(|past| past.at);
            let own = siblings.get_mut(&claimed.row.key.id).into_iter().flatten();
            for fact in own.filter(|fact| is_ended(fact)) {
                let Some((over_at, told)) = states.get(fact.id.as_str()) else {
                    fact.state = SiblingState::Other;
                    continue;
                };
                // Beside one whose calls were over by then the hand-back was proved: a file of them
                // that is late since is no news.
                let waits_for_files = !self.whole && handed_back_at.is_none_or(|at| *over_at > at);
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

    /// Asks about rows that ended, by their keys, and says of each that is there from when its
    /// calls are over and how it stands. The rows that they are siblings of were made since then.
    async fn ask_about(
        &self,
        keys: &[String],
        since: Option<Instant>,
    ) -> Result<HashMap<String, (Instant, Told)>, RunError> {
        let found = self.db.rows_known_by(self.table, self.account_name, &[], &[], keys).await;
        let found = found.doing("reading siblings that ended")?;
        let mut in_files = self.in_files(&found).await?;
        let lacking = self.lacking(&found).await?;
        self.note_near(&found, since, &mut in_files).await?;
        self.at_the_psp(&found, &mut in_files).await;
        let mut states = HashMap::new();
        for ((row, said), lacks) in found.iter().zip(in_files).zip(lacking) {
            let now = self.clock.now();
            // Its call may still arrive, whatever the PSP knows of it by now; and a line that is
            // nearly its own may be its payment.
            let over_at = self.over_at(row);
            let may_be_paid = now <= over_at || said.is_near;
            let told = match told(row, &said.evidence, lacks, self.policy(row), now) {
                Told::Paid => Told::Paid,
                _less if may_be_paid => Told::UnderWay,
                told => told,
            };
            states.insert(row.key.id.clone(), (over_at, told));
        }
        Ok(states)
    }

    /// What settlement files tell of such rows.
    async fn in_files(&self, rows: &[Transaction]) -> Result<Vec<Said>, RunError> {
        let mut said: Vec<Said> = rows.iter().map(|_| Said::default()).collect();
        if !self.has_files {
            return Ok(said);
        }
        let asking = rows.iter().enumerate().filter(|(_, row)| can_be_asked(row));
        let (places, asking): (Vec<usize>, Vec<&Transaction>) = asking.unzip();
        let alone = self.account.api().is_none();
        let told = self.by_files(alone).ask(&asking, self.clock.now()).await?;
        for (place, told) in places.into_iter().zip(told) {
            if let Some(said) = said.get_mut(place) {
                said.is_near = !told.near.is_empty();
                said.evidence.extend(told.evidence);
            }
        }
        Ok(said)
    }

    /// Notes those that a line of a file with every attempt may be about although its tag did not
    /// come through as it was sent. The files of the days before the rows' own are not read for it.
    async fn note_near(
        &self,
        rows: &[Transaction],
        since: Option<Instant>,
        said: &mut [Said],
    ) -> Result<(), RunError> {
        if self.account.api().is_some() {
            return Ok(());
        }
        let is_of_those_days =
            |row: &Transaction| since.is_none_or(|since| row.created_at >= earlier(since, A_DAY));
        let places: Vec<usize> = rows
            .iter()
            .zip(said.iter())
            .enumerate()
            .filter(|(_, (row, said))| said.is_unnamed() && is_of_those_days(row))
            .map(|(place, _)| place)
            .collect();
        let unnamed = places.iter().filter_map(|place| rows.get(*place)).map(|row| Unnamed {
            row,
            from: first_attempt(row),
            to: self.over_at(row),
            last_attempt: mapped_last_attempt(row),
        });
        let unnamed: Vec<Unnamed<'_>> = unnamed.collect();
        let listed = self.attempts().ask(&unnamed, self.clock.now()).await?;
        for (place, told) in places.into_iter().zip(listed.rows) {
            if let Some(said) = said.get_mut(place) {
                said.is_near |= !told.near.is_empty();
            }
        }
        Ok(())
    }

    /// What files lack that list every attempt, and may list theirs, where files are all there is.
    async fn lacking(&self, rows: &[Transaction]) -> Result<Vec<Option<String>>, RunError> {
        if self.account.api().is_some() {
            return Ok(vec![None; rows.len()]);
        }
        let span = |row: &Transaction| (row.kind, first_attempt(row), self.over_at(row));
        let spans: Vec<(Kind, Instant, Instant)> = rows.iter().map(span).collect();
        self.attempts().lacking(&spans, self.clock.now()).await
    }

    /// What the PSP's API says of such rows, by their place.
    async fn at_the_psp(&self, rows: &[Transaction], said: &mut [Said]) {
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
                if let Some(said) = said.get_mut(question.row) {
                    said.evidence.extend(told);
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

/// What was said of a row.
#[derive(Default)]
struct Said {
    evidence: Vec<Evidence>,
    /// A line that no row has is of its money and under nearly its tag.
    is_near: bool,
}

impl Said {
    /// Files say nothing of it.
    fn is_unnamed(&self) -> bool {
        self.evidence.iter().any(|item| matches!(item.answer, Answer::Nothing(_)))
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
