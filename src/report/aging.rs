//! Aging: the open cases by currency, reason, owner and age, with what came and went.
//!
//! Cases live on after a run: people close them, later runs refresh them. So a run takes the
//! [`snapshot`] itself, at its end, and writes it into its notes under `aging`; building the
//! report again reads that. A run that could not (it was killed) gets what can still be told
//! from the instants of opening and closing, without owners, and the manifest says so.

use std::collections::BTreeMap;

use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

use crate::model::time::Instant;
use crate::report::cells::Cell;
use crate::report::facts::{Facts, days_between, local_date};
use crate::report::source::Source;
use crate::store::driver::CaseFilter;
use crate::store::error::StoreError;
use crate::store::records::CaseRow;

const PAGE: i64 = 1_000;

/// The bucket of an age in days.
pub fn bucket(days: i64) -> &'static str {
    match days {
        i64::MIN..=1 => "0-1",
        2..=3 => "2-3",
        4..=7 => "4-7",
        8..=30 => "8-30",
        31..=60 => "31-60",
        61..=90 => "61-90",
        91.. => "90+",
    }
}

/// One line of `aging.csv`, as it also stands in a run's notes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgingLine {
    /// Code, or empty.
    pub currency: String,
    /// The reason's code.
    pub reason: String,
    /// Who has the cases; empty for nobody.
    pub owner: String,
    /// By days since the case was opened.
    pub bucket: String,
    /// Their sum in minor units; as text, for it may be larger than a JSON number holds.
    pub amount_minor: String,
    /// The lowest number among those open at the end.
    pub oldest_case: Option<i64>,
    /// Open when the run began.
    pub opening: u64,
    /// Opened since.
    pub new: u64,
    /// Of both, closed since.
    pub closed: u64,
}

#[derive(Default)]
struct Tally {
    amount_minor: i128,
    oldest_case: Option<i64>,
    opening: u64,
    new: u64,
    closed: u64,
}

type Group = (String, String, String, &'static str);

/// The cases as they stand for a run that began at `began` and ends at `ended`.
///
/// # Errors
/// Where the database gives no answer.
pub async fn snapshot<S: Source>(
    source: &S,
    began: Instant,
    ended: Instant,
    zone: Tz,
) -> Result<Vec<AgingLine>, StoreError> {
    let mut groups: BTreeMap<Group, Tally> = BTreeMap::new();
    let mut filter = CaseFilter { closed_since: Some(began), limit: PAGE, ..CaseFilter::default() };
    loop {
        let page = source.cases(&filter).await?;
        let Some(last) = page.last() else { break };
        filter.after = Some(last.number);
        for case in &page {
            count(&mut groups, case, began, ended, zone);
        }
        if i64::try_from(page.len()).is_ok_and(|read| read < PAGE) {
            break;
        }
    }
    Ok(groups.into_iter().map(line).collect())
}

fn count(
    groups: &mut BTreeMap<Group, Tally>,
    case: &CaseRow,
    began: Instant,
    ended: Instant,
    zone: Tz,
) {
    let closed_at = case.closed_at.filter(|at| *at <= ended);
    if case.opened_at > ended || closed_at.is_some_and(|at| at < began) {
        return;
    }
    let days = days_between(local_date(case.opened_at, zone), local_date(ended, zone));
    let owner = case.owner.clone().unwrap_or_default();
    let key = (case.currency.clone(), case.reason.as_str().to_owned(), owner, bucket(days));
    let tally = groups.entry(key).or_default();
    let side = if case.opened_at < began { &mut tally.opening } else { &mut tally.new };
    *side = side.saturating_add(1);
    if closed_at.is_some() {
        tally.closed = tally.closed.saturating_add(1);
    } else {
        tally.amount_minor = tally.amount_minor.saturating_add(i128::from(case.amount_minor));
        let oldest = tally.oldest_case.map_or(case.number, |known| known.min(case.number));
        tally.oldest_case = Some(oldest);
    }
}

fn line((key, tally): (Group, Tally)) -> AgingLine {
    let (currency, reason, owner, bucket) = key;
    AgingLine {
        currency,
        reason,
        owner,
        bucket: bucket.to_owned(),
        amount_minor: tally.amount_minor.to_string(),
        oldest_case: tally.oldest_case,
        opening: tally.opening,
        new: tally.new,
        closed: tally.closed,
    }
}

/// What can still be told later: the same, with the owners of today left out.
pub fn without_owners(lines: Vec<AgingLine>) -> Vec<AgingLine> {
    let mut merged: BTreeMap<(String, String, String), AgingLine> = BTreeMap::new();
    for mut line in lines {
        line.owner.clear();
        let key = (line.currency.clone(), line.reason.clone(), line.bucket.clone());
        match merged.get_mut(&key) {
            None => {
                merged.insert(key, line);
            }
            Some(known) => {
                let sum = minor(known).saturating_add(minor(&line));
                known.amount_minor = sum.to_string();
                known.oldest_case = known.oldest_case.into_iter().chain(line.oldest_case).min();
                known.opening = known.opening.saturating_add(line.opening);
                known.new = known.new.saturating_add(line.new);
                known.closed = known.closed.saturating_add(line.closed);
            }
        }
    }
    merged.into_values().collect()
}

fn minor(line: &AgingLine) -> i128 {
    line.amount_minor.parse().unwrap_or(0)
}

/// The record of a line.
pub fn cells(line: &AgingLine, facts: &Facts) -> Vec<Cell> {
    let came = line.opening.saturating_add(line.new);
    let closing = came.saturating_sub(line.closed);
    let [amount, amount_minor] = Cell::sum(&line.currency, minor(line));
    vec![
        Cell::word(&local_date(facts.ended_at, facts.zone).to_string()),
        Cell::word(&line.currency),
        Cell::word(&line.reason),
        Cell::text(&line.owner),
        Cell::word(&line.bucket),
        Cell::int(closing),
        amount,
        amount_minor,
        Cell::case(line.oldest_case),
        Cell::int(line.opening),
        Cell::int(line.new),
        Cell::int(line.closed),
        Cell::int(closing),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::reason::Reason;
    use crate::model::time::from_text;

    #[test]
    fn buckets_leave_no_gap() {
        let of: Vec<&str> =
            [-1, 0, 1, 2, 3, 4, 7, 8, 30, 31, 60, 61, 90, 91, 9_999].map(bucket).to_vec();
        assert_eq!(
            of,
            [
                "0-1", "0-1", "0-1", "2-3", "2-3", "4-7", "4-7", "8-30", "8-30", "31-60", "31-60",
                "61-90", "61-90", "90+", "90+"
            ]
        );
    }

    fn at(text: &str) -> Instant {
        from_text(text).unwrap()
    }

    fn case(number: i64, opened: &str, closed: Option<&str>, owner: Option<&str>) -> CaseRow {
        CaseRow {
            number,
            subject_kind: "row".into(),
            table: "t".into(),
            subject: number.to_string(),
            reason: Reason::AmountMismatch,
            text: String::new(),
            open: closed.is_none(),
            account: None,
            currency: "EUR".into(),
            amount_minor: 10,
            rule: None,
            policy_version: "p".into(),
            evidence_sha256: None,
            opened_at: at(opened),
            opened_run: "r".into(),
            last_seen_at: at(opened),
            last_run: "r".into(),
            times_seen: 1,
            owner: owner.map(str::to_owned),
            closed_at: closed.map(at),
            resolution: closed.map(|_| "done".to_owned()),
        }
    }

    #[test]
    fn cases_count_as_they_stood_at_the_end() {
        let (began, ended) = (at("2026-11-19T08:00:00Z"), at("2026-11-19T09:00:00Z"));
        let mut groups = BTreeMap::new();
        for case in [
            case(1, "2026-11-10T08:00:00Z", None, Some("mara")),
            case(2, "2026-11-10T09:00:00Z", Some("2026-11-19T08:30:00Z"), None),
            case(3, "2026-11-10T09:00:00Z", Some("2026-11-19T07:00:00Z"), None),
            case(4, "2026-11-10T09:00:00Z", Some("2026-11-19T10:00:00Z"), None),
            case(5, "2026-11-19T08:30:00Z", None, None),
            case(6, "2026-11-19T08:30:00Z", Some("2026-11-19T08:40:00Z"), None),
            case(7, "2026-11-19T09:30:00Z", None, None),
        ] {
            count(&mut groups, &case, began, ended, chrono_tz::UTC);
        }
        let lines: Vec<AgingLine> = groups.into_iter().map(line).collect();
        let facts: Vec<_> = lines
            .iter()
            .map(|l| {
                (&*l.owner, &*l.bucket, &*l.amount_minor, l.oldest_case, l.opening, l.new, l.closed)
            })
            .collect();
        assert_eq!(
            facts,
            [
                ("", "0-1", "10", Some(5), 0, 2, 1),
                ("", "8-30", "10", Some(4), 2, 0, 1),
                ("mara", "8-30", "10", Some(1), 1, 0, 0),
            ]
        );
        let later = without_owners(lines);
        assert_eq!(later.len(), 2);
        assert_eq!((later[1].opening, later[1].oldest_case), (3, Some(1)));
        assert_eq!(later[1].amount_minor, "20");
    }
}
