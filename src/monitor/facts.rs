//! Everything that conditions and metrics are worked out from: the run's end, its counts, and
//! what the database knows beyond it.

use std::collections::BTreeMap;

use chrono::{NaiveTime, TimeDelta};
use chrono_tz::Tz;

use crate::exit::Exit;
use crate::model::time::Instant;
use crate::monitor::tally::Tally;
use crate::report::aging::bucket;
use crate::report::tie::tie_out;
use crate::run::events::Summary;
use crate::store::outbox::SinkState;
use crate::store::watch::{CaseLine, Change, FileFigures, Mark, StuckLine};

/// Whole days: a case older than one of these stands in the next bucket of `aging.csv`.
const BUCKET_DAYS: [i64; 6] = [1, 3, 7, 30, 60, 90];

/// The number, for all schedules, of rows that runs gave up and ended as failed.
pub const GIVEN_UP: &str = "given_up";

/// As many of them as alerts were taken for: more by runs that could not tell any more.
pub const GIVEN_UP_TOLD: &str = "given_up_told";

/// The end of a run, however it ended.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// The schedule.
    pub scope: &'a str,
    /// The run.
    pub run_id: &'a str,
    /// The process's end.
    pub exit: Exit,
    /// When it ended.
    pub ended_at: Instant,
    /// The configured accounts.
    pub accounts: Vec<String>,
    /// The configured sources of settlement files.
    pub sources: Vec<String>,
    /// What it counted.
    pub tally: &'a Tally,
    /// How it closed, where it did.
    pub summary: Option<&'a Summary>,
    /// Accounts that gave no answer when this schedule asked them last.
    pub silent: Vec<String>,
    /// What the database knows, where it answered.
    pub known: Option<Known>,
}

/// What the database knows.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// Rows that wait, by account.
    pub stuck: Vec<StuckLine>,
    /// Open cases.
    pub cases: Vec<CaseLine>,
    /// The scope's numbers, this run's included.
    pub marks: BTreeMap<String, i64>,
    /// How the sinks of events stand.
    pub sinks: Vec<SinkState>,
    /// How settlement files stand, where metrics are told.
    pub files: FileFigures,
}

impl Known {
    /// From what was read.
    pub fn new(stuck: Vec<StuckLine>, cases: Vec<CaseLine>, marks: Vec<Mark>) -> Self {
        let marks = marks.into_iter().map(|mark| (mark.name, mark.value)).collect();
        Self { stuck, cases, marks, sinks: Vec::new(), files: FileFigures::default() }
    }

    /// A number, where it is known.
    pub fn mark(&self, name: &str) -> Option<i64> {
        self.marks.get(name).copied()
    }

    /// Rows that were given up as failed, over all runs, and those of them that no run had told of
    /// before.
    pub fn given_up(&self) -> (i64, i64) {
        let sum = self.mark(GIVEN_UP).unwrap_or(0);
        (sum, sum.saturating_sub(self.mark(GIVEN_UP_TOLD).unwrap_or(0)).max(0))
    }

    /// The numbers below a prefix, the prefix cut off.
    pub fn marks_of<'m>(&'m self, prefix: &'m str) -> impl Iterator<Item = (&'m str, i64)> {
        self.marks
            .iter()
            .filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, *value)))
    }

    /// Open cases of a reason, by account: how many, and the lowest number.
    pub fn cases_of(&self, reason: &str) -> BTreeMap<&str, (i64, i64)> {
        let mut found: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
        for line in self.cases.iter().filter(|line| line.reason == reason) {
            let (cases, first) = found.entry(&line.account).or_insert((0, line.first));
            *cases = cases.saturating_add(line.cases);
            *first = (*first).min(line.first);
        }
        found
    }
}

/// Whether everything was examined and ties out: a condition of `--fail-on` changes nothing.
pub fn is_success(exit: Exit) -> bool {
    matches!(exit, Exit::Ok | Exit::Attention)
}

/// Whether a signal ended it: neither a success nor a failure.
pub fn is_interrupted(exit: Exit) -> bool {
    matches!(exit, Exit::Interrupted | Exit::Terminated)
}

impl Facts<'_> {
    /// The exit that receivers are told: a run with nothing due, since everything waits for an
    /// account that gave no answer, is no all-clear.
    pub fn told_exit(&self) -> Exit {
        if is_success(self.exit) && !self.silent.is_empty() { Exit::Partial } else { self.exit }
    }

    /// How its end changes what its scope remembers of ends, once it is known who is silent.
    pub fn changes_of_end(&self) -> Vec<(String, Change)> {
        let at = self.ended_at.timestamp();
        if is_success(self.told_exit()) {
            vec![
                ("last_success".to_owned(), Change::Set(at)),
                ("failed_in_a_row".to_owned(), Change::Set(0)),
                ("integrity".to_owned(), Change::Set(0)),
            ]
        } else if is_interrupted(self.exit) || is_success(self.exit) {
            Vec::new()
        } else {
            vec![("failed_in_a_row".to_owned(), Change::Add(1))]
        }
    }

    /// How this run changes what else its scope remembers.
    pub fn changes(&self) -> Vec<(String, Change)> {
        let at = self.ended_at.timestamp();
        let mut changes = vec![("since".to_owned(), Change::Keep(at))];
        if matches!(self.exit, Exit::Integrity | Exit::Internal) {
            changes.push(("integrity".to_owned(), Change::Set(1)));
        }
        if let Some(summary) = self.summary.filter(|summary| !summary.totals.is_empty()) {
            changes.extend(residuals(summary));
        }
        for note in self.tally.accounts.values() {
            let name = &note.account;
            for (class, requests) in &note.by_status {
                let more = i64::try_from(*requests).unwrap_or(i64::MAX);
                changes.push((format!("requests/{name}/{class}"), Change::Add(more)));
            }
            if note.rows > 0 {
                let change = if note.answered == 0 { Change::Add(1) } else { Change::Set(0) };
                changes.push((format!("unreachable/{name}"), change));
            }
        }
        changes
    }

    /// How it changes what is remembered of rows that were given up as failed: no case of theirs is
    /// there to be seen by a later run.
    pub fn changes_of_given_up(&self) -> Vec<(String, Change)> {
        let rows = i64::try_from(self.tally.given_up.len()).unwrap_or(i64::MAX);
        let more = (rows > 0).then(|| (GIVEN_UP.to_owned(), Change::Add(rows)));
        more.into_iter().collect()
    }

    /// How it changes what is remembered of sources, for all schedules: who fetches next, knows.
    pub fn changes_of_sources(&self) -> Vec<(String, Change)> {
        let change = |(name, failed): (&String, &bool)| {
            (format!("source/{name}"), Change::Set(i64::from(*failed)))
        };
        self.tally.sources.iter().map(change).collect()
    }
}

/// A run with rows says how its currencies tie out; one without has nothing to say.
fn residuals(summary: &Summary) -> Vec<(String, Change)> {
    let tie = tie_out(&summary.totals);
    let mut by_currency: BTreeMap<&str, i128> = BTreeMap::new();
    for line in &tie.lines {
        let sum = by_currency.entry(&line.currency).or_default();
        *sum = sum.saturating_add(line.residual().amount_minor);
    }
    let untied = i64::try_from(tie.untied().len()).unwrap_or(i64::MAX);
    let mut changes = vec![("untied".to_owned(), Change::Set(untied))];
    for (currency, minor) in by_currency {
        let minor = i64::try_from(minor).unwrap_or(i64::MAX);
        changes.push((format!("residual/{currency}"), Change::Set(minor)));
    }
    changes
}

/// The instants between the age buckets of `aging.csv`, the latest first.
pub fn bucket_edges(now: Instant, zone: Tz) -> Vec<Instant> {
    let today = now.with_timezone(&zone).date_naive();
    let edge = |days: &i64| {
        let day = today.checked_sub_signed(TimeDelta::days(*days))?;
        // Where a day begins without a midnight, the first hour that there is.
        let hours = (0..4).filter_map(|hour| NaiveTime::from_hms_opt(hour, 0, 0));
        let mut starts =
            hours.filter_map(|hour| day.and_time(hour).and_local_timezone(zone).earliest());
        starts.next().map(|at| at.to_utc())
    };
    BUCKET_DAYS.iter().filter_map(edge).collect()
}

/// The word of the bucket after so many edges.
pub fn bucket_word(edges: usize) -> &'static str {
    let day = edges.checked_sub(1).and_then(|at| BUCKET_DAYS.get(at));
    bucket(day.map_or(0, |days| days.saturating_add(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::from_text;
    use crate::report::facts::{days_between, local_date};

    /// The edges cut as `aging.csv` does, in a zone that changes its clock on the way.
    #[test]
    fn ages_fall_into_the_buckets_of_the_report() {
        let zone = chrono_tz::Europe::Berlin;
        let now = from_text("2026-11-19T12:00:00Z").unwrap();
        let edges = bucket_edges(now, zone);
        assert_eq!(edges.len(), BUCKET_DAYS.len());
        for hours in 0..24 * 100 {
            let opened = now - TimeDelta::hours(hours);
            let days = days_between(local_date(opened, zone), local_date(now, zone));
            let older = edges.iter().filter(|edge| **edge > opened).count();
            assert_eq!(bucket_word(older), bucket(days), "{opened}");
        }
    }
}
