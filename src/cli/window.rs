//! From the words of `--date`, `--from`, `--to`, `--since` to a half-open span of instants.
//!
//! Pure: the zone and the time come in. A date is a whole business day of its zone, from its
//! first instant to the first instant of the next one, whatever the clocks do in between: 23, 24
//! or 25 hours, days that begin at 01:00, days that never were. So consecutive days tile.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

use crate::model::time::{Instant, earlier, parse_span};
use crate::run::setup::{On, Window};

/// The words of the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    /// `--date`.
    pub date: Option<String>,
    /// `--from`.
    pub from: Option<String>,
    /// `--to`.
    pub to: Option<String>,
    /// `--since`.
    pub since: Option<String>,
}

/// Why the words are no window. Nothing was done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// Neither a date nor an instant.
    #[error(
        "{flag} {found}: expected a date such as 2026-11-19, or an instant with its offset such \
         as 2026-11-19T08:00:00Z"
    )]
    Unreadable {
        /// The flag.
        flag: &'static str,
        /// Its value.
        found: String,
    },
    /// An instant without zone means different money to different people.
    #[error("{flag} {found} has no offset: write {found}Z for UTC, or the offset itself")]
    NoOffset {
        /// The flag.
        flag: &'static str,
        /// Its value.
        found: String,
    },
    /// Not a span.
    #[error("--since {0}: expected a span such as 90min, 6h or 3d")]
    Span(String),
    /// The zone's clocks skipped the whole day.
    #[error("{date} never was in {zone}: its clocks skipped that day")]
    Skipped {
        /// The day.
        date: NaiveDate,
        /// The zone.
        zone: Tz,
    },
    /// Nothing lies between the ends.
    #[error("the window ends ({to}) before or where it begins ({from})")]
    Empty {
        /// Its beginning, as asked for.
        from: String,
        /// Its end, as asked for.
        to: String,
    },
    /// The year is beyond what databases hold.
    #[error("{flag} {found} is outside the years 1970 to 2999")]
    Year {
        /// The flag.
        flag: &'static str,
        /// Its value.
        found: String,
    },
}

/// The window that the words mean, or none where there are no words.
pub fn resolve(
    words: &Words,
    zone: Tz,
    on: On,
    now: Instant,
) -> Result<Option<Window>, WindowError> {
    if let Some(date) = &words.date {
        let day = day_words("--date", date, zone, now)?;
        let (from, to) = day_span(day, zone)?;
        let words = day.to_string();
        return Ok(Some(Window { from: Some(from), to: Some(to), on, words }));
    }
    if let Some(since) = &words.since {
        let span = parse_span(since).filter(|span| *span > TimeDelta::zero());
        let span = span.ok_or_else(|| WindowError::Span(since.clone()))?;
        let words = format!("since {since}");
        let from = earlier(now, span);
        in_range("--since", since, from.date_naive())?;
        return Ok(Some(Window { from: Some(from), to: None, on, words }));
    }
    if words.from.is_none() && words.to.is_none() {
        return Ok(None);
    }
    let from = words.from.as_deref().map(|text| end_of("--from", text, zone, now)).transpose()?;
    let to = words.to.as_deref().map(|text| end_of("--to", text, zone, now)).transpose()?;
    // A date as the end is included whole; an instant is where the window stops.
    let from = from.map(|end| end.first);
    let to = to.map(|end| end.after);
    if let (Some(from), Some(to)) = (from, to)
        && to <= from
    {
        let text = |word: &Option<String>| word.clone().unwrap_or_default();
        return Err(WindowError::Empty { from: text(&words.from), to: text(&words.to) });
    }
    let text = match (&words.from, &words.to) {
        (Some(from), Some(to)) => format!("{from} to {to}"),
        (Some(from), None) => format!("from {from}"),
        (None, Some(to)) => format!("to {to}"),
        (None, None) => String::new(),
    };
    Ok(Some(Window { from, to, on, words: text }))
}

/// What one end's words span: an instant spans nothing.
struct End {
    first: Instant,
    after: Instant,
}

fn end_of(flag: &'static str, text: &str, zone: Tz, now: Instant) -> Result<End, WindowError> {
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        let at = at.with_timezone(&Utc);
        in_range(flag, text, at.date_naive())?;
        return Ok(End { first: at, after: at });
    }
    let looks_like_instant = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M"]
        .iter()
        .any(|form| NaiveDateTime::parse_from_str(text, form).is_ok());
    if looks_like_instant {
        return Err(WindowError::NoOffset { flag, found: text.to_owned() });
    }
    let day = day_words(flag, text, zone, now)?;
    let (first, after) = day_span(day, zone)?;
    Ok(End { first, after })
}

fn day_words(
    flag: &'static str,
    text: &str,
    zone: Tz,
    now: Instant,
) -> Result<NaiveDate, WindowError> {
    let today = now.with_timezone(&zone).date_naive();
    let day = match text {
        "today" => Some(today),
        "yesterday" => today.pred_opt(),
        date if date.len() == 10 => NaiveDate::parse_from_str(date, "%Y-%m-%d").ok(),
        _other => None,
    };
    let day = day.ok_or_else(|| WindowError::Unreadable { flag, found: text.to_owned() })?;
    in_range(flag, text, day)?;
    Ok(day)
}

fn in_range(flag: &'static str, text: &str, day: NaiveDate) -> Result<(), WindowError> {
    use chrono::Datelike;
    if (1970..=2999).contains(&day.year()) {
        return Ok(());
    }
    Err(WindowError::Year { flag, found: text.to_owned() })
}

/// A business day: its first instant, and the first instant after it.
pub fn day_span(day: NaiveDate, zone: Tz) -> Result<(Instant, Instant), WindowError> {
    let next = day.succ_opt().unwrap_or(day);
    let (from, to) = (first_instant(day, zone), first_instant(next, zone));
    if to <= from {
        return Err(WindowError::Skipped { date: day, zone });
    }
    Ok((from, to))
}

/// The first instant at which a zone's calendar shows `day` or a later day.
pub fn first_instant(day: NaiveDate, zone: Tz) -> Instant {
    let midnight = day.and_time(NaiveTime::MIN);
    // Two midnights (the clocks went back over it): the day begins at the first of them.
    if let Some(at) = zone.from_local_datetime(&midnight).earliest() {
        return at.with_timezone(&Utc);
    }
    // No midnight (the clocks went forward over it): the day begins where they did. Offsets lie
    // within 26 hours, and around a jump forward local time only rises.
    let mut before = midnight.and_utc() - TimeDelta::hours(27);
    let mut after = midnight.and_utc() + TimeDelta::hours(27);
    while after - before > TimeDelta::seconds(1) {
        let middle = before + TimeDelta::seconds((after - before).num_seconds() / 2);
        if middle.with_timezone(&zone).naive_local() >= midnight {
            after = middle;
        } else {
            before = middle;
        }
    }
    after
}

/// A window's length in words: `24 h`, `24 h 30 min`.
pub fn length_text(span: TimeDelta) -> String {
    match (span.num_hours(), span.num_minutes() % 60) {
        (hours, 0) => format!("{hours} h"),
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::from_text;

    fn at(text: &str) -> Instant {
        from_text(text).unwrap()
    }

    fn zone(name: &str) -> Tz {
        name.parse().unwrap()
    }

    fn day(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    #[test]
    fn days_are_as_long_as_their_clocks_make_them() {
        for (zone_name, date, from, hours) in [
            ("Europe/Berlin", "2026-11-19", "2026-11-18T23:00:00Z", "24 h"),
            ("Europe/Berlin", "2026-03-29", "2026-03-28T23:00:00Z", "23 h"),
            ("Europe/Berlin", "2026-10-25", "2026-10-24T22:00:00Z", "25 h"),
            ("UTC", "2024-02-29", "2024-02-29T00:00:00Z", "24 h"),
            ("America/New_York", "2026-12-31", "2026-12-31T05:00:00Z", "24 h"),
            // Half an hour of daylight saving.
            ("Australia/Lord_Howe", "2026-10-04", "2026-10-03T13:30:00Z", "23 h 30 min"),
            // Midnight does not exist: the day begins at 01:00.
            ("Africa/Cairo", "2026-04-24", "2026-04-23T22:00:00Z", "23 h"),
            ("America/Santiago", "2026-09-06", "2026-09-06T04:00:00Z", "23 h"),
            // Midnight comes twice: the day begins with the first.
            ("America/Havana", "2026-11-01", "2026-11-01T04:00:00Z", "25 h"),
        ] {
            let (first, after) = day_span(day(date), zone(zone_name)).unwrap();
            let found = (first, length_text(after - first));
            assert_eq!(found, (at(from), hours.to_owned()), "{zone_name} {date}");
        }
    }

    #[test]
    fn a_day_that_never_was_is_refused_and_its_neighbours_still_tile() {
        for (name, date) in [("Pacific/Apia", "2011-12-30"), ("Pacific/Kwajalein", "1993-08-21")] {
            let (zone, date) = (zone(name), day(date));
            assert_eq!(day_span(date, zone), Err(WindowError::Skipped { date, zone }));
            let before = day_span(date.pred_opt().unwrap(), zone).unwrap();
            let after = day_span(date.succ_opt().unwrap(), zone).unwrap();
            assert_eq!(before.1, after.0, "{name}");
        }
    }

    /// I36: by its definition, and by looking at the clock on both sides of each boundary.
    #[test]
    fn consecutive_days_tile_with_no_gap_and_no_overlap() {
        let zones = chrono_tz::TZ_VARIANTS.iter().step_by(13).copied();
        let known = ["Europe/Berlin", "Pacific/Apia", "Africa/Cairo", "Asia/Beirut", "Asia/Gaza"];
        let known = known.into_iter().map(zone).chain([
            zone("America/Havana"),
            zone("America/Asuncion"),
            zone("Africa/Casablanca"),
            zone("Australia/Lord_Howe"),
            zone("America/Scoresbysund"),
        ]);
        for zone in zones.chain(known) {
            let mut date = day("2020-01-01");
            let mut end = None;
            while date <= day("2030-12-31") {
                let (first, after) = day_span(date, zone).unwrap();
                assert!(end.is_none_or(|end| end == first), "{zone} {date}");
                let local = |at: Instant| at.with_timezone(&zone).date_naive();
                assert_eq!(local(first), date, "{zone} {date}: its first second");
                assert!(local(first - TimeDelta::seconds(1)) < date, "{zone} {date}: before it");
                assert_eq!(local(after - TimeDelta::seconds(1)), date, "{zone} {date}: its last");
                end = Some(after);
                date = date.succ_opt().unwrap();
            }
        }
    }

    fn words(date: &str, from: &str, to: &str, since: &str) -> Words {
        let word = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Words { date: word(date), from: word(from), to: word(to), since: word(since) }
    }

    fn ends(words: &Words) -> Result<(Option<Instant>, Option<Instant>), WindowError> {
        let now = at("2026-11-20T01:30:00Z");
        let window = resolve(words, zone("Europe/Berlin"), On::Created, now)?;
        Ok(window.map_or((None, None), |window| (window.from, window.to)))
    }

    #[test]
    fn words_mean_whole_days_or_half_open_instants() {
        let some = |text| Some(at(text));
        for (words, want) in [
            (words("", "", "", ""), (None, None)),
            (
                words("2026-11-19", "", "", ""),
                (some("2026-11-18T23:00:00Z"), some("2026-11-19T23:00:00Z")),
            ),
            (
                words("yesterday", "", "", ""),
                (some("2026-11-18T23:00:00Z"), some("2026-11-19T23:00:00Z")),
            ),
            (
                words("", "2026-11-19", "2026-11-19", ""),
                (some("2026-11-18T23:00:00Z"), some("2026-11-19T23:00:00Z")),
            ),
            (
                words("", "2026-10-24", "2026-10-25", ""),
                (some("2026-10-23T22:00:00Z"), some("2026-10-25T23:00:00Z")),
            ),
            (
                words("", "2026-11-19T08:00:00+01:00", "2026-11-19T08:00:00Z", ""),
                (some("2026-11-19T07:00:00Z"), some("2026-11-19T08:00:00Z")),
            ),
            (words("", "2026-11-19", "", ""), (some("2026-11-18T23:00:00Z"), None)),
            (words("", "", "", "6h"), (some("2026-11-19T19:30:00Z"), None)),
        ] {
            assert_eq!(ends(&words), Ok(want), "{words:?}");
        }
    }

    #[test]
    fn words_that_mean_nothing_are_refused_with_the_way_out() {
        for (words, want) in [
            (words("19.11.2026", "", "", ""), "--date 19.11.2026: expected a date such as"),
            (words("2026-02-30", "", "", ""), "--date 2026-02-30: expected a date"),
            (words("", "2026-11-19T08:00:00", "", ""), "has no offset: write 2026-11-19T08:00:00Z"),
            (words("", "2026-11-20", "2026-11-19", ""), "ends (2026-11-19) before or where"),
            (words("", "2026-11-19T00:00:00Z", "2026-11-19T00:00:00Z", ""), "before or where"),
            (words("", "", "", "6"), "--since 6: expected a span"),
            (words("", "", "", "0h"), "--since 0h: expected a span"),
            (words("", "", "", "99999999d"), "--since 99999999d is outside the years"),
            (words("0026-11-19", "", "", ""), "outside the years"),
        ] {
            let text = ends(&words).unwrap_err().to_string();
            assert!(text.contains(want), "{words:?}: {text}");
        }
    }
}
