//! Decisions read back with what they were made from, for whoever asks what other rules would
//! make of them. Nothing here writes.

use std::collections::HashMap;

use crate::model::reason::{Outcome, Reason};
use crate::model::time::Instant;
use crate::store::error::StoreError;

/// Cases whose stored inputs are read at once.
pub const SHOWN_AT_ONCE: usize = 200;

/// Read-only verbs about what was decided.
#[expect(async_fn_in_trait, reason = "called on concrete types only, never as dyn")]
pub trait ReplayDriver {
    /// Decisions since then that were carried out or withheld, by the order of the chain, after
    /// the given place. What an open case was last decided from is left out: see
    /// [`ReplayDriver::open_row_cases`].
    async fn decided_since(
        &self,
        since: Instant,
        after: Option<RecordPlace>,
        limit: i64,
    ) -> Result<Vec<(RecordPlace, Decided)>, StoreError>;

    /// Open cases of rows with a number above `after`, by number.
    async fn open_row_cases(
        &self,
        after: i64,
        limit: i64,
    ) -> Result<Vec<(i64, Decided)>, StoreError>;

    /// The same of those that were last looked at after the given place, the longest ago first.
    async fn unseen_row_cases(
        &self,
        after: Option<UnseenPlace>,
        limit: i64,
    ) -> Result<Vec<(UnseenPlace, Decided)>, StoreError>;

    /// What these cases show, by number: the JSON of the stored inputs of each that has some.
    /// Whoever has many asks for [`SHOWN_AT_ONCE`] at a time.
    async fn shown_by_cases(&self, cases: &[i64]) -> Result<Vec<(i64, String)>, StoreError>;

    /// The last change of each of these rows' status that tieout made, where it made one.
    async fn last_written(
        &self,
        table: &str,
        keys: &[String],
    ) -> Result<HashMap<String, Written>, StoreError>;

    /// What people saw who ended these rows: the JSON of the stored inputs of each row's last end,
    /// where that was by people's word and is kept.
    async fn ended_by_people(
        &self,
        table: &str,
        keys: &[String],
    ) -> Result<HashMap<String, String>, StoreError>;

    /// How often each rule decided since then, by outcome and reason; where none knew what was
    /// found, the rule is none.
    async fn rule_counts(&self, since: Instant) -> Result<Vec<RuleCount>, StoreError>;
}

/// Where a record stands in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordPlace {
    /// The run.
    pub run_id: String,
    /// Which of the run's writers.
    pub writer: String,
    /// From 1.
    pub seq: i64,
}

/// Where an open case stands among those that wait to be looked at again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnseenPlace {
    /// When it was looked at last, or decided.
    pub since: Instant,
    /// Its number.
    pub number: i64,
}

/// One decision of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// When.
    pub at: Instant,
    /// The table's name.
    pub table: String,
    /// The row's key.
    pub key: String,
    /// Code, or empty.
    pub currency: String,
    /// Minor units.
    pub amount_minor: i64,
    /// What was decided.
    pub outcome: Outcome,
    /// Why.
    pub reason: Reason,
    /// The rule.
    pub rule: Option<String>,
    /// The JSON of the stored inputs; none where it was lost or the case has none.
    pub evidence: Option<String>,
}

/// A change of a row's status that tieout made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The status before.
    pub status_before: String,
    /// What was written.
    pub status_after: String,
    /// What was decided.
    pub outcome: Outcome,
    /// When it was written: the row as it then was is remembered from that very instant on.
    pub at: Instant,
}

/// How often a rule decided so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleCount {
    /// The rule; none knew.
    pub rule: Option<String>,
    /// What was decided.
    pub outcome: Outcome,
    /// Why.
    pub reason: Reason,
    /// How often.
    pub decisions: i64,
    /// Of how many rows.
    pub rows: i64,
    /// The last time.
    pub last_at: Instant,
}
