//! Words that reports name their zone by, such as `PST`: which clock a day of theirs is a day of.
//!
//! A word stands for the offset of a season, and its zone has one or two of them. Which offsets a
//! word has is the time zone database's (<https://www.iana.org/time-zones>); several countries use
//! some of the words, each for its own clock.

use chrono::{NaiveDate, NaiveTime, Offset, TimeZone};
use chrono_tz::Tz;

/// Standard time and summer time with their offsets in minutes. A zone without a summer time has
/// its one offset twice.
struct Clock(&'static str, &'static str, [i32; 2]);

const CLOCKS: &[Clock] = &[
    Clock("GMT", "BST", [0, 60]),
    Clock("GMT", "IST", [0, 60]),
    Clock("UTC", "UTC", [0, 0]),
    Clock("WET", "WEST", [0, 60]),
    Clock("CET", "CEST", [60, 120]),
    Clock("MET", "MEST", [60, 120]),
    Clock("EET", "EEST", [120, 180]),
    Clock("WAT", "WAT", [60, 60]),
    Clock("CAT", "CAT", [120, 120]),
    Clock("SAST", "SAST", [120, 120]),
    Clock("EAT", "EAT", [180, 180]),
    Clock("MSK", "MSK", [180, 180]),
    Clock("TRT", "TRT", [180, 180]),
    Clock("AST", "AST", [180, 180]),
    Clock("IST", "IDT", [120, 180]),
    Clock("GST", "GST", [240, 240]),
    Clock("PKT", "PKT", [300, 300]),
    Clock("IST", "IST", [330, 330]),
    Clock("BST", "BST", [360, 360]),
    Clock("WIB", "WIB", [420, 420]),
    Clock("ICT", "ICT", [420, 420]),
    Clock("CST", "CST", [480, 480]),
    Clock("HKT", "HKT", [480, 480]),
    Clock("SGT", "SGT", [480, 480]),
    Clock("MYT", "MYT", [480, 480]),
    Clock("PHT", "PHT", [480, 480]),
    Clock("PST", "PST", [480, 480]),
    Clock("AWST", "AWST", [480, 480]),
    Clock("JST", "JST", [540, 540]),
    Clock("KST", "KST", [540, 540]),
    Clock("ACST", "ACDT", [570, 630]),
    Clock("AEST", "AEDT", [600, 660]),
    Clock("NZST", "NZDT", [720, 780]),
    Clock("SST", "SST", [-660, -660]),
    Clock("HST", "HST", [-600, -600]),
    Clock("AKST", "AKDT", [-540, -480]),
    Clock("PST", "PDT", [-480, -420]),
    Clock("MST", "MDT", [-420, -360]),
    Clock("CST", "CDT", [-360, -300]),
    Clock("COT", "COT", [-300, -300]),
    Clock("PET", "PET", [-300, -300]),
    Clock("EST", "EDT", [-300, -240]),
    Clock("AST", "ADT", [-240, -180]),
    Clock("CLT", "CLST", [-240, -180]),
    Clock("ART", "ART", [-180, -180]),
    Clock("BRT", "BRT", [-180, -180]),
];

impl Clock {
    fn has(&self, word: &str) -> bool {
        self.0.eq_ignore_ascii_case(word) || self.1.eq_ignore_ascii_case(word)
    }

    /// Whether a zone has these offsets in a year. One that keeps standard time the whole year may
    /// be what the word of standard time means.
    fn may_be(&self, word: &str, mut offsets: [i32; 2]) -> bool {
        offsets.sort_unstable();
        let [standard, _summer] = self.2;
        offsets == self.2 || (self.0.eq_ignore_ascii_case(word) && offsets == [standard, standard])
    }
}

/// Whether two words are the winter's and the summer's of one clock: of both, no day is another
/// one's.
pub fn are_seasons_of_one(one: &str, other: &str) -> bool {
    CLOCKS.iter().any(|clock| clock.has(one) && clock.has(other))
}

/// Whether the days of a report that names its zone by a word may be a zone's days, in the year of
/// a day. A word that nobody knows contradicts nothing.
pub fn may_be(word: &str, zone: Tz, day: NaiveDate) -> bool {
    let offsets = [1, 7].map(|month| offset(zone, day, month));
    let mut own = CLOCKS.iter().filter(|clock| clock.has(word)).peekable();
    if own.peek().is_some() {
        return own.any(|clock| clock.may_be(word, offsets));
    }
    word.parse::<Tz>().ok().is_none_or(|named| [1, 7].map(|m| offset(named, day, m)) == offsets)
}

/// The zone's offset on the first of a month of a day's year, in minutes.
fn offset(zone: Tz, day: NaiveDate, month: u32) -> i32 {
    use chrono::Datelike;
    let first = NaiveDate::from_ymd_opt(day.year(), month, 1).unwrap_or(day);
    let seconds = zone.offset_from_utc_datetime(&first.and_time(NaiveTime::MIN));
    seconds.fix().local_minus_utc().div_euclid(60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_may_be_the_zones_that_keep_its_clock() {
        let day = NaiveDate::from_ymd_opt(2026, 6, 2).unwrap();
        for (word, zone, want) in [
            ("CET", "Europe/Amsterdam", true),
            ("CEST", "Europe/Berlin", true),
            ("cest", "Europe/Madrid", true),
            ("CET", "Africa/Algiers", true),
            ("CEST", "Africa/Algiers", false),
            ("CET", "UTC", false),
            ("CET", "Europe/London", false),
            ("GMT", "Europe/London", true),
            ("GMT", "UTC", true),
            ("BST", "UTC", false),
            ("BST", "Europe/London", true),
            ("PST", "America/Los_Angeles", true),
            ("PDT", "America/Los_Angeles", true),
            ("PST", "Europe/Berlin", false),
            ("PST", "Asia/Manila", true),
            ("MST", "America/Phoenix", true),
            ("AEDT", "Australia/Sydney", true),
            ("AEST", "Australia/Brisbane", true),
            ("AEDT", "Australia/Brisbane", false),
            ("SGT", "Asia/Singapore", true),
            ("SGT", "Asia/Tokyo", false),
            ("IST", "Asia/Kolkata", true),
            ("UTC", "Europe/Berlin", false),
            ("Europe/Paris", "Europe/Berlin", true),
            ("America/New_York", "Europe/Berlin", false),
            ("Mars", "Europe/Berlin", true),
            ("", "Europe/Berlin", true),
        ] {
            assert_eq!(may_be(word, zone.parse().unwrap(), day), want, "{word} {zone}");
        }
    }

    #[test]
    fn winter_and_summer_of_one_clock_are_told_from_two_clocks() {
        for (one, other, want) in [
            ("CET", "CEST", true),
            ("PST", "pdt", true),
            ("EST", "EDT", true),
            ("CET", "EET", false),
            ("PST", "CET", false),
            ("UTC", "GMT", false),
        ] {
            assert_eq!(are_seasons_of_one(one, other), want, "{one} {other}");
        }
    }
}
