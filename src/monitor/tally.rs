//! What a run told while it went on, counted: no row stays in it, but the names of those that were
//! given up for good.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::reason::{Outcome, Reason};
use crate::model::time::Instant;
use crate::run::events::{AccountNote, Event};
use crate::store::records::{Applied, JournalRow};

/// Counts of one run.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// When it began (the database's clock).
    pub started_at: Option<Instant>,
    /// Rows decided, by account and outcome.
    pub decided: BTreeMap<(String, Outcome), u64>,
    /// Rows decided, by reason.
    pub reasons: BTreeMap<&'static str, u64>,
    /// Rows that were given up and ended as failed, by table and key: no case tells of them.
    pub given_up: BTreeSet<(String, String)>,
    /// What each account was asked, as it was told last.
    pub accounts: BTreeMap<String, AccountNote>,
    /// The sources that were fetched from, and whether that failed.
    pub sources: BTreeMap<String, bool>,
    /// How many things were not examined.
    pub not_examined: u64,
}

impl Tally {
    /// One thing that happened.
    pub fn note(&mut self, event: &Event) {
        let bump = |count: &mut u64| *count = count.saturating_add(1);
        match event {
            Event::Started { at, .. } => self.started_at = Some(*at),
            Event::Decided(row) => {
                bump(self.decided.entry((row.account.clone(), row.outcome)).or_default());
                bump(self.reasons.entry(row.reason.as_str()).or_default());
                if is_given_up(row) {
                    self.given_up.insert((row.table.clone(), row.key.clone()));
                }
            }
            Event::NotApplied(row) => {
                self.given_up.remove(&(row.table.clone(), row.key.clone()));
            }
            Event::Asked(note) => {
                self.accounts.insert(note.account.clone(), note.clone());
            }
            // What was given back meanwhile was told as decided.
            Event::Ended(summary) => {
                self.decided.clone_from(&summary.by_account);
                let reasons = summary.by_reason.iter();
                self.reasons = reasons.map(|(reason, rows)| (reason.as_str(), *rows)).collect();
            }
            Event::NotExamined { .. } => bump(&mut self.not_examined),
            Event::Fetched(note) => {
                self.sources.insert(note.source.clone(), note.failed.is_some());
            }
            Event::Abandoned(_)
            | Event::UnmappedStatus { .. }
            | Event::NotLookedAt { .. }
            | Event::Fetching { .. }
            | Event::BroughtIn(_)
            | Event::Released(_)
            | Event::LineMatched { .. }
            | Event::Claimed { .. }
            | Event::Asking { .. } => {}
        }
    }
}

/// Whether the run ends it as failed after its hand-backs: what the mode withholds is not ended.
fn is_given_up(row: &JournalRow) -> bool {
    row.reason == Reason::GaveUp && row.outcome == Outcome::Failed && row.applied == Applied::Yes
}
