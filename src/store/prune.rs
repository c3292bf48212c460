//! What the two databases share of pruning: which runs, what is kept, how heads are written.

use std::collections::HashSet;

use crate::model::time::Instant;
use crate::store::chain::Head;

/// Runs that may be pruned, and what they may not take along.
#[derive(Debug, Clone)]
pub struct Prunable {
    /// Only runs that ended before this.
    pub before: Instant,
    /// When it was looked: records of later runs are looked at again.
    pub looked_at: Instant,
    /// The runs, the first closed first, each with how many records it wrote.
    pub runs: Vec<(String, i64)>,
    /// Evidence that is old enough, and that a kept run leans on.
    pub kept: HashSet<String>,
}

impl Prunable {
    /// How many records all of them wrote.
    pub fn records(&self) -> i64 {
        self.runs.iter().map(|(_, records)| *records).fold(0, i64::saturating_add)
    }

    /// One of the runs, to be pruned by a person.
    pub fn one<'a>(&'a self, run_id: &'a str, by: &'a str) -> Pruning<'a> {
        let Self { before, looked_at, kept, .. } = self;
        Pruning { run_id, by, before: *before, looked_at: *looked_at, kept }
    }
}

/// One run that is about to be pruned.
#[derive(Debug, Clone, Copy)]
pub struct Pruning<'a> {
    /// The run.
    pub run_id: &'a str,
    /// Who prunes.
    pub by: &'a str,
    /// As in [`Prunable`].
    pub before: Instant,
    /// As in [`Prunable`].
    pub looked_at: Instant,
    /// As in [`Prunable`].
    pub kept: &'a HashSet<String>,
}

/// What was deleted of one run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Journal records.
    pub records: u64,
    /// Bodies of evidence.
    pub evidence: u64,
}

/// The heads of a run's chains as text.
pub fn heads_text(heads: &[Head]) -> String {
    let heads: Vec<(&str, i64, &str)> =
        heads.iter().map(|h| (h.writer.as_str(), h.count, h.hash.as_str())).collect();
    serde_json::json!(heads).to_string()
}

/// The heads from their text; none where it is not one.
pub fn heads_of(text: &str) -> Option<Vec<Head>> {
    let heads: Vec<(String, i64, String)> = serde_json::from_str(text).ok()?;
    Some(heads.into_iter().map(|(writer, count, hash)| Head { writer, count, hash }).collect())
}
