//! How a column writes a point in time: with a zone, without one, as seconds, as milliseconds.
//!
//! Reading never rounds up or guesses a zone: what cannot be read exactly is an error, which makes
//! the row `row_unreadable`. Sub-microseconds are cut, as both databases do.

use chrono::{DateTime, Datelike, LocalResult, NaiveDate, NaiveDateTime, Offset, TimeDelta};
use chrono::{TimeZone, Utc};
use chrono_tz::Tz;

use crate::model::time::{Instant, to_micros, to_text};

/// How a column writes a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// With its zone: `timestamptz`, ISO text with an offset.
    Zoned,
    /// Without a zone, meant in this one.
    Local(Tz),
    /// Text: with an offset, or else meant in this zone.
    Text(Option<Tz>),
    /// Whole seconds since 1970; 0 is never.
    EpochSecs,
    /// Whole milliseconds since 1970; 0 is never.
    EpochMillis,
    /// A day in this zone; only ever written.
    Day(Tz),
    /// Text of UTC with a blank before the clock and this behind it (`Z`, `+00:00`); only ever
    /// written.
    Behind(&'static str),
}

impl Notation {
    /// Reads a column's text. `None`: an epoch column that says "never" by 0.
    pub fn read(self, text: &str) -> Result<Option<Instant>, String> {
        let text = text.trim();
        match self {
            Self::Zoned | Self::Behind(_) => with_zone(text, None).map(Some),
            Self::Local(zone) => with_zone(text, Some(zone)).map(Some),
            Self::Text(zone) => with_zone(text, zone).map(Some),
            Self::EpochSecs => epoch(text, 1_000_000),
            Self::EpochMillis => epoch(text, 1_000),
            Self::Day(_) => Err(format!("`{text}` is a day, not a point in time")),
        }
    }

    /// Writes a point in time as the column has it.
    pub fn write(self, at: Instant) -> String {
        const LOCAL: &str = "%Y-%m-%d %H:%M:%S%.6f";
        match self {
            Self::Zoned | Self::Text(None) => to_text(at),
            Self::Local(zone) | Self::Text(Some(zone)) => {
                at.with_timezone(&zone).naive_local().format(LOCAL).to_string()
            }
            Self::EpochSecs => at.timestamp().to_string(),
            Self::EpochMillis => at.timestamp_millis().to_string(),
            Self::Day(zone) => at.with_timezone(&zone).date_naive().to_string(),
            Self::Behind(zone) => format!("{}{zone}", at.format(LOCAL)),
        }
    }

    /// The zone that a database must convert by, for columns without one.
    pub fn zone(self) -> Option<Tz> {
        match self {
            Self::Local(zone) | Self::Day(zone) => Some(zone),
            Self::Text(zone) => zone,
            Self::Zoned | Self::EpochSecs | Self::EpochMillis | Self::Behind(_) => None,
        }
    }
}

fn epoch(text: &str, micros: i64) -> Result<Option<Instant>, String> {
    let number: i64 =
        text.parse().map_err(|_| format!("`{text}` is not a whole number of the epoch"))?;
    if number == 0 {
        return Ok(None);
    }
    number
        .checked_mul(micros)
        .and_then(DateTime::<Utc>::from_timestamp_micros)
        .filter(|at| in_range(*at))
        .map(Some)
        .ok_or_else(|| format!("`{text}` is out of the range of times"))
}

fn in_range(at: Instant) -> bool {
    (1..=9999).contains(&at.year())
}

/// `2026-11-19 08:14:03.123456+00`, with `T` or a blank, with or without fraction and offset.
fn with_zone(text: &str, zone: Option<Tz>) -> Result<Instant, String> {
    let unreadable = || format!("`{text}` is not a time that can be read");
    let (clock, offset) = split_offset(text);
    let naive = naive(clock).ok_or_else(unreadable)?;
    let at = match (offset, zone) {
        (Some(offset), _) => {
            let secs = offset_secs(offset).ok_or_else(unreadable)?;
            naive.and_utc().checked_sub_signed(TimeDelta::seconds(secs)).ok_or_else(unreadable)?
        }
        (None, Some(zone)) => in_zone(naive, zone).ok_or_else(unreadable)?,
        (None, None) => return Err(format!("`{text}` has no zone, and `time` is not set")),
    };
    if !in_range(at) {
        return Err(format!("`{text}` is out of the range of times"));
    }
    Ok(to_micros(at))
}

/// The later reading of an hour that happens twice: a last attempt must never look older than it
/// is. An hour that does not happen is read by the offset before it.
fn in_zone(naive: NaiveDateTime, zone: Tz) -> Option<Instant> {
    match zone.from_local_datetime(&naive) {
        LocalResult::Single(at) => Some(at.with_timezone(&Utc)),
        LocalResult::Ambiguous(one, other) => Some(one.max(other).with_timezone(&Utc)),
        LocalResult::None => {
            let before = naive.checked_sub_signed(TimeDelta::hours(26))?;
            let offset = zone.offset_from_local_datetime(&before).latest()?.fix();
            naive
                .and_utc()
                .checked_sub_signed(TimeDelta::seconds(i64::from(offset.local_minus_utc())))
        }
    }
}

fn split_offset(text: &str) -> (&str, Option<&str>) {
    if let Some(clock) = text.strip_suffix(['Z', 'z']) {
        return (clock, Some("+00"));
    }
    let Some((day, _)) = text.split_once([' ', 'T', 't']) else { return (text, None) };
    let start = day.len();
    let sign = text
        .char_indices()
        .skip(1)
        .find(|(at, c)| *at > start && matches!(c, '+' | '-'))
        .map(|(at, _)| at);
    match sign.and_then(|at| text.split_at_checked(at)) {
        Some((clock, offset)) => (clock.trim_end(), Some(offset)),
        None => (text, None),
    }
}

/// `+00`, `-03:30`, `+0530`, `+05:53:28`.
fn offset_secs(offset: &str) -> Option<i64> {
    let (sign, digits) = match offset.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, offset.strip_prefix('+')?),
    };
    let digits: String = digits.chars().filter(|c| *c != ':').collect();
    let number = |range: std::ops::Range<usize>| -> Option<i64> {
        match digits.get(range) {
            Some(part) => part.parse::<u8>().ok().map(i64::from),
            None => Some(0),
        }
    };
    if !matches!(digits.len(), 2 | 4 | 6) {
        return None;
    }
    Some(sign * (number(0..2)? * 3_600 + number(2..4)? * 60 + number(4..6)?))
}

fn naive(clock: &str) -> Option<NaiveDateTime> {
    let clock = clock.replacen(['T', 't'], " ", 1);
    ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M"]
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(&clock, format).ok())
        .or_else(|| {
            NaiveDate::parse_from_str(&clock, "%Y-%m-%d").ok().and_then(|d| d.and_hms_opt(0, 0, 0))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW_YORK: Notation = Notation::Local(Tz::America__New_York);

    #[test]
    fn times_read_as_the_column_means_them() {
        for (notation, text, expected) in [
            (Notation::Zoned, "2026-11-19 08:14:03.123456+00", "2026-11-19T08:14:03.123456Z"),
            (Notation::Zoned, "2026-11-19 08:14:03+05:30", "2026-11-19T02:44:03.000000Z"),
            (Notation::Zoned, "2026-11-19T08:14:03.5Z", "2026-11-19T08:14:03.500000Z"),
            (Notation::Local(Tz::UTC), "2026-11-19 08:14:03", "2026-11-19T08:14:03.000000Z"),
            (NEW_YORK, "2026-07-01 12:00:00", "2026-07-01T16:00:00.000000Z"),
            // Twice: the later one.
            (NEW_YORK, "2026-11-01 01:30:00", "2026-11-01T06:30:00.000000Z"),
            // Never: by the offset before the clock moved.
            (NEW_YORK, "2026-03-08 02:30:00", "2026-03-08T07:30:00.000000Z"),
            (Notation::Text(None), "2026-11-19T08:14:03-0330", "2026-11-19T11:44:03.000000Z"),
            (Notation::Text(Some(Tz::UTC)), "2026-11-19", "2026-11-19T00:00:00.000000Z"),
            (Notation::Text(Some(Tz::UTC)), "2026-11-19 08:14", "2026-11-19T08:14:00.000000Z"),
            (Notation::EpochSecs, "1763540043", "2025-11-19T08:14:03.000000Z"),
            (Notation::EpochMillis, "1763540043001", "2025-11-19T08:14:03.001000Z"),
            // Nanoseconds are cut.
            (Notation::Zoned, "2026-11-19 08:14:03.123456999+00", "2026-11-19T08:14:03.123456Z"),
        ] {
            let at = notation.read(text).unwrap().unwrap();
            assert_eq!(to_text(at), expected, "{notation:?} of {text}");
        }
        assert_eq!(Notation::EpochSecs.read("0"), Ok(None));
        assert_eq!(Notation::EpochMillis.read("0"), Ok(None));
    }

    #[test]
    fn what_is_no_time_is_said() {
        for (notation, text, part) in [
            (Notation::Zoned, "infinity", "not a time"),
            (Notation::Zoned, "0044-03-15 00:00:00+00 BC", "not a time"),
            (Notation::Zoned, "294276-12-31 23:59:59+00", "not a time"),
            (Notation::Zoned, "2026-11-19 08:14:03", "no zone"),
            (Notation::Text(None), "2026-11-19 08:14:03", "no zone"),
            (Notation::Local(Tz::UTC), "yesterday", "not a time"),
            (Notation::EpochSecs, "1.5", "whole number"),
            (Notation::EpochSecs, "99999999999999", "range"),
            (Notation::EpochMillis, "9223372036854775807", "range"),
        ] {
            let error = notation.read(text).unwrap_err();
            assert!(error.contains(part), "{notation:?} of {text}: {error}");
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        let at = Notation::Zoned.read("2026-07-01 16:00:00.25+00").unwrap().unwrap();
        for notation in
            [Notation::Zoned, NEW_YORK, Notation::Text(None), Notation::Text(Some(Tz::UTC))]
        {
            assert_eq!(notation.read(&notation.write(at)), Ok(Some(at)), "{notation:?}");
        }
        assert_eq!(NEW_YORK.write(at), "2026-07-01 12:00:00.250000");
        assert_eq!(Notation::EpochSecs.write(at), "1782921600");
        assert_eq!(Notation::EpochMillis.write(at), "1782921600250");
        assert_eq!(Notation::Day(Tz::Asia__Tokyo).write(at), "2026-07-02");
        for zone in ["Z", "+00:00", " +00:00", "+00"] {
            let behind = Notation::Behind(zone);
            assert_eq!(behind.write(at), format!("2026-07-01 16:00:00.250000{zone}"));
            assert_eq!(behind.read(&behind.write(at)), Ok(Some(at)));
        }
    }
}
