//! Instants and durations as data. Nothing here reads a clock: `now` always comes in as a value.

use chrono::{DateTime, SecondsFormat, TimeDelta, Timelike, Utc};

/// A point in time, UTC, to the microsecond (the precision that PostgreSQL stores).
pub type Instant = DateTime<Utc>;

/// Cuts an instant to whole microseconds, so that a value read back equals the one written.
pub fn to_micros(at: Instant) -> Instant {
    let nanos = at.nanosecond() % 1_000;
    at.checked_sub_signed(TimeDelta::nanoseconds(i64::from(nanos))).unwrap_or(at)
}

/// RFC 3339 with `Z` and six digits: sorts as text in the order of time.
pub fn to_text(at: Instant) -> String {
    at.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// RFC 3339 with `Z` and whole seconds, for people.
pub fn to_short_text(at: Instant) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Reads what [`to_text`] wrote, or any RFC 3339 instant.
pub fn from_text(text: &str) -> Option<Instant> {
    DateTime::parse_from_rfc3339(text).ok().map(|at| at.with_timezone(&Utc))
}

/// `at + span`, held at the end of representable time instead of overflowing.
pub fn later(at: Instant, span: TimeDelta) -> Instant {
    at.checked_add_signed(span).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// `at - span`, held at the beginning of representable time.
pub fn earlier(at: Instant, span: TimeDelta) -> Instant {
    at.checked_sub_signed(span).unwrap_or(DateTime::<Utc>::MIN_UTC)
}

/// The longest span that anything is asked of so long ago: what databases tell of years ends
/// before a span may.
pub const LONGEST_AGO: TimeDelta = TimeDelta::days(36_500);

/// The instant so long ago as a span says, such as `3d`; none of a span beyond [`LONGEST_AGO`].
pub fn parse_ago(text: &str, now: Instant) -> Option<Instant> {
    let span = parse_span(text).filter(|span| *span <= LONGEST_AGO)?;
    Some(earlier(now, span))
}

/// A span for which something is kept: from `least` to [`LONGEST_AGO`].
pub fn parse_keep(text: &str, least: TimeDelta) -> Option<TimeDelta> {
    parse_span(text).filter(|span| (least..=LONGEST_AGO).contains(span))
}

/// A span in the words of the configuration: `90s`, `15min`, `24h`, `7d`.
pub fn span_text(span: TimeDelta) -> String {
    let secs = span.num_seconds();
    let (sign, secs) =
        if secs < 0 { ("-", secs.unsigned_abs()) } else { ("", secs.unsigned_abs()) };
    match secs {
        0 => "0s".to_owned(),
        s if s % 86_400 == 0 => format!("{sign}{}d", s / 86_400),
        s if s % 3_600 == 0 => format!("{sign}{}h", s / 3_600),
        s if s % 60 == 0 => format!("{sign}{}min", s / 60),
        s => format!("{sign}{s}s"),
    }
}

/// Reads `90s`, `15m` or `15min`, `24h`, `7d`, `2w`; whole numbers only.
pub fn parse_span(text: &str) -> Option<TimeDelta> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: i64 = number.parse().ok()?;
    let unit_secs = match unit.trim() {
        "s" | "sec" | "secs" => 1,
        "m" | "min" | "mins" => 60,
        "h" | "hour" | "hours" => 3_600,
        "d" | "day" | "days" => 86_400,
        "w" | "week" | "weeks" => 604_800,
        _ => return None,
    };
    TimeDelta::try_seconds(number.checked_mul(unit_secs)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_asked_of_the_year_minus_273_million() {
        let now = from_text("2026-11-20T00:00:00Z").unwrap();
        assert_eq!(parse_ago("3d", now), from_text("2026-11-17T00:00:00Z"));
        assert!(parse_ago("36500d", now).is_some());
        for bad in ["36501d", "99999999999d", "soon"] {
            assert_eq!(parse_ago(bad, now), None, "{bad}");
        }
    }

    #[test]
    fn spans_read_back_as_they_print() {
        for text in ["1s", "90s", "15min", "24h", "7d"] {
            let span = parse_span(text).unwrap();
            assert_eq!(parse_span(&span_text(span)), Some(span), "{text}");
        }
        for bad in ["", "5", "m", "1.5h", "-3d", "99999999999999999999s", "9223372036854775807w"] {
            assert_eq!(parse_span(bad), None, "{bad}");
        }
    }

    #[test]
    fn instants_survive_their_text() {
        let at = from_text("2026-11-19T08:14:03.123456Z").unwrap();
        assert_eq!(from_text(&to_text(at)), Some(at));
        assert_eq!(to_text(at), "2026-11-19T08:14:03.123456Z");
    }
}
