//! What rows with one natural key are to each other: the drivers read them, this says where each
//! of them stands.

use crate::model::transaction::{SiblingFact, SiblingState, Transaction};
use crate::store::source_table::SourceTable;

/// A row with some natural key, and what tieout remembers of it.
#[derive(Debug, Clone)]
pub(super) struct Sibling {
    pub(super) row: Transaction,
    /// tieout recorded a PSP reference as its success.
    pub(super) has_success: bool,
    /// It has a hand-back that is neither taken nor ended.
    pub(super) is_offered: bool,
    /// Its last decision, made on the row as it is now, was to wait for its siblings.
    pub(super) is_waiting: bool,
}

impl Sibling {
    fn state(&self, table: &SourceTable) -> SiblingState {
        let row = &self.row;
        let is_retryable = || !row.processing && table.handed_back_values().contains(&row.status);
        match () {
            () if self.has_success || row.succeeded => SiblingState::Succeeded,
            () if self.is_offered || is_retryable() => SiblingState::HandedBack,
            () if row.processing && self.is_waiting => SiblingState::Waiting,
            () if row.processing => SiblingState::Processing,
            () => SiblingState::Other,
        }
    }
}

/// The others of the same kind, by their keys: a refund is no sibling of its charge.
pub(super) fn facts(
    table: &SourceTable,
    row: &Transaction,
    same_key: &[Sibling],
) -> Vec<SiblingFact> {
    let is_other = |other: &Transaction| other.key.id != row.key.id && other.kind == row.kind;
    let mut facts: Vec<SiblingFact> = same_key
        .iter()
        .filter(|sibling| is_other(&sibling.row))
        .map(|sibling| SiblingFact {
            id: sibling.row.key.id.clone(),
            state: sibling.state(table),
            older: (sibling.row.created_at, &sibling.row.key.id) < (row.created_at, &row.key.id),
        })
        .collect();
    facts.sort_by(|one, other| one.id.cmp(&other.id));
    facts
}
