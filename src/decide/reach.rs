//! How far back and forth the files of an account that list every attempt reach without a gap.
//!
//! The name of a file tells the business day that it is for; days that are none belong to the
//! business day after them. A row that no file of an unbroken stretch names was never attempted in
//! it. A name without a date tells no day, and proves nothing.

use std::collections::BTreeSet;

use chrono::{Days, NaiveDate};

use crate::decide::expected::Expected;
use crate::model::time::{Instant, later};
use crate::model::wildcard::fits;

/// How many missing files a sentence names.
const NAMED: usize = 3;

/// A file of attempts that is here, whole and tied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Came {
    /// A name that it came by.
    pub name: String,
    /// The period that it tells of itself, where it tells one.
    pub period: Option<(NaiveDate, NaiveDate)>,
}

/// What files say of a span of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// From here (inclusive) …
    pub from: Instant,
    /// … to here (exclusive) every attempt is listed.
    pub to: Instant,
    /// Which files the whole span lacks, in words; none: it lacks none.
    pub lacks: Option<String>,
}

/// A business day of a series.
#[derive(Debug, Clone)]
struct Day {
    from: Instant,
    to: Instant,
    name: String,
    is_here: bool,
}

/// The files of one account that list attempts, day by day.
#[derive(Debug, Clone, Default)]
pub struct AttemptFiles {
    /// Of each `[[source.expected]]` that such files came for.
    series: Vec<Vec<Day>>,
    any_came: bool,
}

impl AttemptFiles {
    /// Lays the files that came out over the days from `since` to `until`.
    pub fn of(expected: &[Expected], came: &[Came], since: Instant, until: Instant) -> Self {
        let first = since.date_naive().checked_sub_days(Days::new(2)).unwrap_or(NaiveDate::MIN);
        let last = until.date_naive().checked_add_days(Days::new(8)).unwrap_or(NaiveDate::MAX);
        let own = expected.iter().filter(|one| one.is_dated());
        let own = own.filter(|one| {
            let name = one.name_for_any_day();
            came.iter().any(|file| fits(&name, &file.name))
        });
        let series = own.map(|one| days(one, came, first, last)).collect();
        Self { series, any_came: !came.is_empty() }
    }

    /// Whether the account has files that list attempts at all.
    pub fn exist(&self) -> bool {
        self.any_came
    }

    /// How far the files reach around a span that must be covered.
    pub fn reach(&self, from: Instant, to: Instant) -> Reach {
        if self.series.is_empty() {
            let lacks =
                "no [[source.expected]] with a date in its name says for which days they come";
            return Reach { from, to: from, lacks: Some(lacks.to_owned()) };
        }
        let mut reach: Option<(Instant, Instant)> = None;
        let mut lacking: BTreeSet<&str> = BTreeSet::new();
        for days in &self.series {
            let (own_from, own_to) = stretch(days, from);
            // Every series is needed: each lists attempts that the others do not.
            reach = Some(match reach {
                Some((a, b)) => (a.max(own_from), b.min(own_to)),
                None => (own_from, own_to),
            });
            let wanted = days.iter().filter(|day| day.to > from && day.from < to);
            lacking.extend(wanted.filter(|day| !day.is_here).map(|day| day.name.as_str()));
        }
        let (own_from, own_to) = reach.unwrap_or((from, from));
        let lacks = (own_from > from || own_to < to).then(|| words(&lacking));
        Reach { from: own_from, to: own_to.max(own_from), lacks }
    }
}

fn words(lacking: &BTreeSet<&str>) -> String {
    let named: Vec<&str> = lacking.iter().take(NAMED).copied().collect();
    let more = match lacking.len().saturating_sub(named.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more} did not come whole yet", named.join(", "))
}

/// Every business day, and whether its file is here.
fn days(expected: &Expected, came: &[Came], first: NaiveDate, last: NaiveDate) -> Vec<Day> {
    let mut days: Vec<Day> = Vec::new();
    for day in first.iter_days().take_while(|day| *day <= last) {
        let next = day.checked_add_days(Days::new(1));
        let (Some(start), Some(end)) =
            (expected.midnight(day), next.and_then(|d| expected.midnight(d)))
        else {
            continue;
        };
        if !expected.calendar.has(day) {
            continue;
        }
        let Some(name) = expected.name_for(day) else { continue };
        let start_of_name = name.split(['*', '?']).next().unwrap_or_default();
        let is_here = came.iter().any(|file| {
            let within = |(from, to): (NaiveDate, NaiveDate)| from <= day && day <= to;
            file.name.starts_with(start_of_name)
                && fits(&name, &file.name)
                && file.period.is_none_or(within)
        });
        // Days before it that are no business days are told of in its file.
        let from = days.last().map_or(start, |before| before.to);
        days.push(Day { from, to: end, name, is_here });
    }
    days
}

/// The unbroken stretch that holds an instant; where none does, nothing from there on.
fn stretch(days: &[Day], at: Instant) -> (Instant, Instant) {
    let Some(own) = days.iter().position(|day| day.from <= at && at < day.to && day.is_here) else {
        let nothing = later(at, chrono::TimeDelta::nanoseconds(1));
        return (nothing, nothing);
    };
    let (before, after) = days.split_at(own);
    let earlier = before.iter().rev().take_while(|day| day.is_here).last();
    let from = earlier.or(after.first());
    let to = after.iter().take_while(|day| day.is_here).last();
    (from.map_or(at, |day| day.from), to.map_or(at, |day| day.to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::expected::Calendar;
    use crate::model::time::{from_text, to_short_text};

    fn at(text: &str) -> Instant {
        from_text(text).unwrap()
    }

    fn daily(name: &str, calendar: Calendar) -> Expected {
        let by = chrono::NaiveTime::from_hms_opt(7, 30, 0).unwrap();
        Expected {
            name: name.to_owned(),
            by,
            zone: chrono_tz::Europe::Berlin,
            lag_days: 1,
            calendar,
        }
    }

    fn came(days: &[&str]) -> Vec<Came> {
        let one = |day: &&str| Came { name: format!("acc_{day}.csv"), period: None };
        days.iter().map(one).collect()
    }

    /// `from to` of the reach, and what it lacks.
    fn told(files: &AttemptFiles, from: &str, to: &str) -> (String, Option<String>) {
        let reach = files.reach(at(from), at(to));
        let span = format!("{} to {}", to_short_text(reach.from), to_short_text(reach.to));
        (span, reach.lacks)
    }

    const ATTEMPT: &str = "2026-11-18T10:00:00Z";

    #[test]
    fn days_without_a_gap_reach_from_midnight_to_midnight_of_their_zone() {
        let week = Calendar::of([
            chrono::Weekday::Mon,
            chrono::Weekday::Tue,
            chrono::Weekday::Wed,
            chrono::Weekday::Thu,
            chrono::Weekday::Fri,
            chrono::Weekday::Sat,
            chrono::Weekday::Sun,
        ]);
        let expected = [daily("acc_%Y%m%d.csv", week)];
        let files = came(&["20261116", "20261117", "20261118", "20261119"]);
        let of = |files: &[Came]| AttemptFiles::of(&expected, files, at(ATTEMPT), at(ATTEMPT));
        let whole = of(&files);
        assert!(whole.exist());
        let (span, lacks) = told(&whole, ATTEMPT, "2026-11-19T12:00:00Z");
        assert_eq!(span, "2026-11-15T23:00:00Z to 2026-11-19T23:00:00Z");
        assert_eq!(lacks, None);
        // To the instant: what is needed after the last file's day is lacking.
        assert_eq!(told(&whole, ATTEMPT, "2026-11-19T23:00:00Z").1, None);
        let lacks = told(&whole, ATTEMPT, "2026-11-19T23:00:01Z").1;
        assert_eq!(lacks.as_deref(), Some("acc_20261120.csv did not come whole yet"));
        // A gap before the attempt is none of its business; one after it is.
        let gap = of(&came(&["20261116", "20261118", "20261119"]));
        let (span, lacks) = told(&gap, ATTEMPT, "2026-11-19T12:00:00Z");
        assert_eq!(span, "2026-11-17T23:00:00Z to 2026-11-19T23:00:00Z");
        assert_eq!(lacks, None);
        let gap = of(&came(&["20261117", "20261119"]));
        let lacks = told(&gap, ATTEMPT, "2026-11-19T12:00:00Z").1;
        assert_eq!(lacks.as_deref(), Some("acc_20261118.csv did not come whole yet"));
        // No file at all, and files that nobody expects.
        assert!(!of(&[]).exist());
        let other = AttemptFiles::of(&[], &files, at(ATTEMPT), at(ATTEMPT));
        assert!(other.exist());
        assert!(told(&other, ATTEMPT, ATTEMPT).1.unwrap().starts_with("no [[source.expected]]"));
    }

    #[test]
    fn a_weekend_is_told_of_by_monday() {
        let expected = [daily("acc_%Y%m%d.csv", Calendar::weekdays())];
        let saturday = "2026-11-21T10:00:00Z";
        let of =
            |days: &[&str]| AttemptFiles::of(&expected, &came(days), at(saturday), at(saturday));
        let lacks = told(&of(&["20261119", "20261120"]), saturday, "2026-11-22T10:00:00Z").1;
        assert_eq!(lacks.as_deref(), Some("acc_20261123.csv did not come whole yet"));
        let whole = of(&["20261120", "20261123"]);
        assert_eq!(told(&whole, saturday, "2026-11-22T10:00:00Z").1, None);
    }

    #[test]
    fn a_file_that_tells_of_other_days_and_one_of_two_series_count_for_nothing() {
        let expected = [
            daily("acc_%Y%m%d.csv", Calendar::weekdays()),
            daily("b_%Y%m%d.csv", Calendar::weekdays()),
        ];
        let day = |text: &str| text.parse::<NaiveDate>().unwrap();
        let mut files = came(&["20261118", "20261119"]);
        let of = |files: &[Came]| AttemptFiles::of(&expected, files, at(ATTEMPT), at(ATTEMPT));
        let to = "2026-11-19T12:00:00Z";
        assert_eq!(told(&of(&files), ATTEMPT, to).1, None, "the other is no series of attempts");
        files[1].period = Some((day("2026-11-18"), day("2026-11-18")));
        let lacks = told(&of(&files), ATTEMPT, to).1;
        assert_eq!(lacks.as_deref(), Some("acc_20261119.csv did not come whole yet"));
        files[1].period = Some((day("2026-11-18"), day("2026-11-19")));
        assert_eq!(told(&of(&files), ATTEMPT, to).1, None);
        files.push(Came { name: "b_20261118.csv".to_owned(), period: None });
        let lacks = told(&of(&files), ATTEMPT, to).1;
        assert_eq!(lacks.as_deref(), Some("b_20261119.csv did not come whole yet"));
        files.push(Came { name: "b_20261119.csv".to_owned(), period: None });
        assert_eq!(told(&of(&files), ATTEMPT, to).1, None);
    }
}
