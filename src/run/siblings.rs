//! Rows with one natural key within one run: who is handed back last, and who was paid beside
//! another, is judged once more by what the run made of the others.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::decide::decision::{Decision, Verdict, Want};
use crate::decide::judge::decide;
use crate::decide::policy::Mode;
use crate::model::reason::{Outcome, Reason};
use crate::model::transaction::{SiblingFact, SiblingState, Transaction};
use crate::run::error::{Doing, RunError};
use crate::run::gather::Weighed;
use crate::run::scene::{OpenAccount, Scene, policy_of_row};
use crate::store::driver::Driver;
use crate::store::records::{Applied, JournalRow};

/// What a run made of rows that have siblings and did not write, because it is a dry run or its
/// mode withholds it: the database does not show it.
#[derive(Default)]
pub struct Rehearsed {
    states: HashMap<(String, String), SiblingState>,
}

impl Rehearsed {
    /// Notes what would have been written.
    pub fn note(&mut self, record: &JournalRow) {
        let state = match (record.outcome, record.applied) {
            (Outcome::Wait, _) if record.reason == Reason::SiblingPending => SiblingState::Waiting,
            (Outcome::Succeeded, Applied::Yes) => SiblingState::Succeeded,
            (Outcome::Retryable, Applied::Yes) => SiblingState::HandedBack,
            (Outcome::Review, Applied::Yes) if record.reason.says_captured(&record.text) => {
                SiblingState::PaidCase
            }
            (Outcome::Review, Applied::Yes) if record.reason.stands_back(&record.text) => {
                SiblingState::StandsBack
            }
            (Outcome::Failed, Applied::Yes) => SiblingState::Other,
            (_, _) => return,
        };
        self.states.insert((record.table.clone(), record.key.clone()), state);
    }

    /// Notes the successes that the mode withholds.
    pub fn note_withheld(&mut self, mode: Mode, table: &str, rows: &[Weighed]) {
        if mode != Mode::Observe {
            return;
        }
        let is_paid = |row: &&Weighed| {
            matches!(row.decision.verdict, Verdict::Succeeded) && !row.inputs.siblings.is_empty()
        };
        for row in rows.iter().filter(is_paid) {
            let key = (table.to_owned(), row.claimed.row.key.id.clone());
            self.states.insert(key, SiblingState::Succeeded);
        }
    }

    fn lay_over(&self, table: &str, siblings: &mut [SiblingFact]) {
        for sibling in siblings {
            let key = (table.to_owned(), sibling.id.clone());
            sibling.state = self.states.get(&key).copied().unwrap_or(sibling.state);
        }
    }
}

/// A paid row that waits for older ones with its natural key.
pub struct Paid {
    /// Its account.
    pub account: String,
    /// Its table's place in the setup.
    pub table: usize,
    /// The row.
    pub row: Weighed,
}

/// Whether money was captured for a row: it succeeds by it, or a person is to look at it.
pub fn is_paid(decision: &Decision) -> bool {
    match decision.verdict {
        Verdict::Succeeded => true,
        Verdict::Review => decision.reason.says_captured(&decision.text),
        Verdict::Retryable(_) | Verdict::Failed | Verdict::Wait => false,
    }
}

/// Sets those apart that come after another one that is paid, too: of each natural key the oldest
/// goes first, by creation and then by key.
pub fn oldest_first(mut paid: Vec<Paid>) -> (Vec<Paid>, Vec<Paid>) {
    paid.sort_by(|one, other| {
        let (one, other) = (&one.row.claimed.row, &other.row.claimed.row);
        (one.created_at, &one.key.id).cmp(&(other.created_at, &other.key.id))
    });
    let mut gone = HashSet::new();
    paid.into_iter().partition(|one| {
        let row = &one.row.claimed.row;
        !is_paid(&one.row.decision) || gone.insert((one.table, row.natural_key.clone(), row.kind))
    })
}

/// Judges paid rows again by how their siblings stand now.
pub async fn look_at_paid(
    scene: &Scene<'_>,
    rehearsed: &Rehearsed,
    paid: Vec<Paid>,
) -> Result<Vec<Paid>, RunError> {
    let mut by_account: BTreeMap<String, Vec<(usize, Weighed)>> = BTreeMap::new();
    for Paid { account, table, row } in paid {
        by_account.entry(account).or_default().push((table, row));
    }
    let mut judged = Vec::new();
    for (account, rows) in by_account {
        let Some(open) = scene.accounts.get(&account) else { continue };
        for (table, row) in look_again(scene, open, rehearsed, rows).await? {
            judged.push(Paid { account: account.clone(), table, row });
        }
    }
    Ok(judged)
}

/// What the PSP said of siblings whose status says that they ended unpaid. One that was given up
/// since was not asked about.
pub fn keep_asked(before: &[SiblingFact], now: &mut [SiblingFact]) {
    let is_asked = |state| {
        use SiblingState::{Other, PaidAfterAll, Pending};
        matches!(state, PaidAfterAll | Pending | Other)
    };
    let is_ended = |state| matches!(state, SiblingState::GivenUp | SiblingState::Other);
    for fact in now.iter_mut().filter(|fact| is_ended(fact.state)) {
        let known = before.iter().find(|known| known.id == fact.id && is_asked(known.state));
        if let Some(known) = known {
            (fact.state, fact.lacks) = (known.state, known.lacks.clone());
        }
    }
}

/// Judges rows again by how their siblings stand now. Rows come with their table's place in the
/// setup; those without a natural key stay as they are.
pub async fn look_again(
    scene: &Scene<'_>,
    open: &OpenAccount,
    rehearsed: &Rehearsed,
    rows: Vec<(usize, Weighed)>,
) -> Result<Vec<(usize, Weighed)>, RunError> {
    let mut by_table: BTreeMap<usize, Vec<Weighed>> = BTreeMap::new();
    for (table, row) in rows {
        by_table.entry(table).or_default().push(row);
    }
    let mut judged = Vec::new();
    for (index, mut rows) in by_table {
        let Some(table) = scene.tables.get(index) else { continue };
        let keyed: Vec<&Transaction> = rows
            .iter()
            .map(|row| &row.claimed.row)
            .filter(|row| row.natural_key.is_some())
            .collect();
        let mut siblings = if keyed.is_empty() {
            HashMap::new()
        } else {
            scene.db.siblings(table, &keyed).await.doing("reading sibling rows again")?
        };
        for row in &mut rows {
            let mut now = siblings.remove(&row.claimed.row.key.id).unwrap_or_default();
            keep_asked(&row.inputs.siblings, &mut now);
            rehearsed.lay_over(&table.settings.name, &mut now);
            if now != row.inputs.siblings || row.decision.wants == Some(Want::Siblings) {
                row.inputs.siblings = now;
                row.now = scene.clock.now();
                let policy = policy_of_row(&open.policies, table, row.mapped_status());
                row.decision = decide(&row.inputs(), policy, row.now);
            }
            row.decision = Decision { wants: None, ..row.decision.clone() };
        }
        judged.extend(rows.into_iter().map(|row| (index, row)));
    }
    Ok(judged)
}
