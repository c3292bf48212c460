//! Rows with one natural key within one run: who is handed back last is judged once more by what
//! the run made of the others.

use std::collections::{BTreeMap, HashMap};

use crate::decide::decision::{Decision, Want};
use crate::decide::judge::decide;
use crate::model::reason::{Outcome, Reason};
use crate::model::transaction::{SiblingFact, SiblingState, Transaction};
use crate::run::error::{Doing, RunError};
use crate::run::gather::Weighed;
use crate::run::scene::{OpenAccount, Scene, policy_of_row};
use crate::store::driver::Driver;
use crate::store::records::{Applied, JournalRow};

/// What a dry run would have made of rows that have siblings: the database does not show it.
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
            (_, _) => return,
        };
        self.states.insert((record.table.clone(), record.key.clone()), state);
    }

    fn lay_over(&self, table: &str, siblings: &mut [SiblingFact]) {
        for sibling in siblings {
            let key = (table.to_owned(), sibling.id.clone());
            sibling.state = self.states.get(&key).copied().unwrap_or(sibling.state);
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
