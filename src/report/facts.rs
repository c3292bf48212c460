//! What a run wrote of itself: its scope and its notes, read back from the run's row.
//!
//! Nothing here looks at the configuration of today or at a clock: a report that is built again
//! next year must be the same. Fields that a run did not write are simply not known.

use chrono::{NaiveDate, TimeDelta};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

use crate::model::reason::Reason;
use crate::model::time::{Instant, earlier, from_text};
use crate::report::aging::AgingLine;
use crate::report::error::ReportError;
use crate::store::records::{RunRow, RunState};

/// The commit that this program was built from; a release knows it where git was at hand.
pub const COMMIT: Option<&str> = option_env!("TIEOUT_BUILT_FROM");

/// A closed run, read.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Its row.
    pub run: RunRow,
    /// When it ended.
    pub ended_at: Instant,
    /// The zone of business days.
    pub zone: Tz,
    /// The day it ran on, in that zone: ages count to it.
    pub run_date: NaiveDate,
    /// The day it is filed under: the window's, where the window is one whole day, else the day
    /// it ran on.
    pub business_date: NaiveDate,
    /// What it was told to look at.
    pub scope: serde_json::Value,
    /// What it noted at its end.
    pub notes: Notes,
}

/// The notes that reports read.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Notes {
    /// What each account was asked.
    #[serde(default)]
    pub accounts: Vec<AccountNote>,
    /// The cases by age as they stood at the run's end.
    #[serde(default)]
    pub aging: Option<Vec<AgingLine>>,
    /// The cases about accounts that the run opened or saw again, in the order of its doing.
    #[serde(default)]
    pub account_cases: Option<Vec<AccountCaseNote>>,
    /// The commit that the run's program was built from, where that is known.
    #[serde(default)]
    pub git_commit: Option<String>,
    /// One line for each thing that was not examined.
    #[serde(default)]
    pub not_examined: Vec<String>,
}

/// A case about an account, as the run left it. The case itself may say something else by the
/// time a report is built again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountCaseNote {
    /// Its number.
    pub number: i64,
    /// The account.
    pub account: String,
    /// Why.
    pub reason: Reason,
    /// One sentence with the figures.
    pub text: String,
    /// The figures, by their hash.
    #[serde(default)]
    pub evidence_sha256: Option<String>,
}

/// What asking one account took.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct AccountNote {
    /// The account.
    pub account: String,
    /// Its PSP's name.
    #[serde(default)]
    pub psp: Option<String>,
    /// Rows asked about.
    #[serde(default)]
    pub rows: u64,
    /// Rows that got an answer.
    #[serde(default)]
    pub answered: u64,
    /// Requests sent.
    #[serde(default)]
    pub requests: u64,
    /// Requests repeated.
    #[serde(default)]
    pub retries: u64,
    /// Objects listed.
    #[serde(default)]
    pub listed: u64,
    /// Milliseconds spent.
    #[serde(default)]
    pub duration_ms: u64,
    /// The brake's text, where it was on.
    #[serde(default)]
    pub brake: Option<String>,
    /// Why it was stopped, where it was.
    #[serde(default)]
    pub stopped: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Scope {
    #[serde(default)]
    timezone: Option<String>,
    #[serde(default)]
    window: Option<WindowScope>,
}

#[derive(Debug, Deserialize)]
struct WindowScope {
    #[serde(default)]
    from: Option<String>,
    #[serde(default)]
    to: Option<String>,
}

impl Facts {
    /// Reads a run's row; `zone` holds where the run wrote none.
    pub fn read(run: RunRow, zone: Tz) -> Result<Self, ReportError> {
        let still_running = || ReportError::StillRunning { run_id: run.id.clone() };
        if run.state == RunState::Running {
            return Err(still_running());
        }
        let ended_at = run.ended_at.ok_or_else(still_running)?;
        let unreadable = |field| {
            let run_id = run.id.clone();
            move |source| ReportError::Unreadable { run_id, field, source }
        };
        let scope_json = if run.scope.trim().is_empty() { "{}" } else { &run.scope };
        let notes_json = if run.notes.trim().is_empty() { "{}" } else { &run.notes };
        let scope: Scope = serde_json::from_str(scope_json).map_err(unreadable("scope"))?;
        let told = serde_json::from_str(scope_json).map_err(unreadable("scope"))?;
        let notes: Notes = serde_json::from_str(notes_json).map_err(unreadable("notes"))?;
        let zone = scope.timezone.and_then(|name| name.parse().ok()).unwrap_or(zone);
        let run_date = local_date(run.started_at, zone);
        let window_date = scope.window.and_then(|window| whole_day(&window, zone));
        Ok(Self {
            ended_at,
            zone,
            run_date,
            business_date: window_date.unwrap_or(run_date),
            scope: told,
            notes,
            run,
        })
    }

    /// Whole days from the local date of `from` to the day the run ran on; never negative.
    pub fn age_days(&self, from: Instant) -> i64 {
        days_between(local_date(from, self.zone), self.run_date)
    }

    /// An account's PSP, where the run wrote it down.
    pub fn psp_of(&self, account: &str) -> Option<&str> {
        self.notes.accounts.iter().find(|note| note.account == account)?.psp.as_deref()
    }
}

/// The date of an instant in a zone.
pub fn local_date(at: Instant, zone: Tz) -> NaiveDate {
    at.with_timezone(&zone).date_naive()
}

/// Whole days from one date to a later one; zero where it is not later.
pub fn days_between(from: NaiveDate, to: NaiveDate) -> i64 {
    to.signed_duration_since(from).num_days().max(0)
}

/// The date, where the window is exactly that day of the zone, 23 and 25 hours included.
fn whole_day(window: &WindowScope, zone: Tz) -> Option<NaiveDate> {
    let from = from_text(window.from.as_deref()?)?;
    let to = from_text(window.to.as_deref()?)?;
    let instant_before = |at| local_date(earlier(at, TimeDelta::microseconds(1)), zone);
    let date = local_date(from, zone);
    let begins = instant_before(from) < date;
    let ends = instant_before(to) == date && local_date(to, zone) > date;
    (begins && ends).then_some(date)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day_of(from: &str, to: &str) -> Option<String> {
        let window = WindowScope { from: Some(from.into()), to: Some(to.into()) };
        whole_day(&window, chrono_tz::Europe::Berlin).map(|date| date.to_string())
    }

    #[test]
    fn a_window_of_one_whole_day_names_the_report() {
        for (from, to, want) in [
            ("2026-11-18T23:00:00Z", "2026-11-19T23:00:00Z", Some("2026-11-19")),
            ("2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z", Some("2026-10-25")),
            ("2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z", Some("2026-03-29")),
            ("2026-11-18T23:00:00Z", "2026-11-20T23:00:00Z", None),
            ("2026-11-18T23:00:01Z", "2026-11-19T23:00:00Z", None),
            ("2026-11-18T23:00:00Z", "2026-11-19T22:59:59Z", None),
            ("2026-11-19T00:00:00Z", "2026-11-20T00:00:00Z", None),
        ] {
            assert_eq!(day_of(from, to).as_deref(), want, "{from} {to}");
        }
    }
}
