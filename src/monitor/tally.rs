//! What a run told while it went on, counted: no row stays in it.

use std::collections::BTreeMap;

use crate::model::reason::Outcome;
use crate::model::time::Instant;
use crate::run::events::{AccountNote, Event};

/// Counts of one run.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// When it began (the database's clock).
    pub started_at: Option<Instant>,
    /// Rows decided, by account and outcome.
    pub decided: BTreeMap<(String, Outcome), u64>,
    /// Rows decided, by reason.
    pub reasons: BTreeMap<&'static str, u64>,
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
            | Event::NotApplied(_)
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
