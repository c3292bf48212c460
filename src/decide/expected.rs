//! Which files should have come by now, and did not.
//!
//! A file is expected for a business day: a name made from the day's date, due by a time of day in
//! the sender's zone, so many business days later. The calendar is data; a day that is no business
//! day expects nothing. A missing file is never taken for an empty one.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;
use std::ops::Bound;

use chrono::format::{Item, Numeric, StrftimeItems};
use chrono::{
    Datelike, Days, LocalResult, NaiveDate, NaiveTime, TimeDelta, TimeZone, Utc, Weekday,
};
use chrono_tz::Tz;

use crate::model::time::{Instant, earlier};
use crate::model::wildcard::{fits, meet};

/// No calendar has so many days in a row without a business day.
const CLOSED_MAX: u32 = 60;

/// Clocks were never moved by more than a day; looked for in quarters of an hour.
const GAP_QUARTERS: u32 = 100;

/// From which year on names of days are held against each other, and how many days: a leap year,
/// and years of each kind of week.
const NAMED_FROM: i32 = 2024;
const NAMED_DAYS: usize = 4_400;

/// A file that is to come for every business day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// Its name: `*` and `?`, and the business day's date by strftime (`STMT_%Y%m%d*.xml`).
    pub name: String,
    /// The time of day by which it is due.
    pub by: NaiveTime,
    /// The zone of that time.
    pub zone: Tz,
    /// How many business days after its own it is due.
    pub lag_days: u32,
    /// The days that it is for.
    pub calendar: Calendar,
}

/// Which days are business days; by default none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Calendar {
    /// Days of the week.
    pub days: BTreeSet<u8>,
    /// Days that are none, whatever day of the week.
    pub holidays: BTreeSet<NaiveDate>,
    /// Whether those of TARGET, the euro's settlement system, are none either.
    pub target: bool,
}

/// A file that has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrived {
    /// Its name at the source.
    pub name: String,
    /// When it was written there; where the source does not say, when it was first seen.
    pub at: Instant,
}

/// A file that is past its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Its name, with the date filled in.
    pub name: String,
    /// The business day that it is for.
    pub day: NaiveDate,
    /// When it was due.
    pub due: Instant,
}

/// A business day's file, as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlook {
    /// Its name, day and time.
    pub file: Missing,
    /// How it stands.
    pub stands: Stands,
}

/// How a business day's file stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stands {
    /// It came.
    Came,
    /// It is past its time.
    Missing,
    /// Its time is not over.
    Coming,
}

impl Calendar {
    /// Monday to Friday.
    pub fn weekdays() -> Self {
        let days = [Weekday::Mon, Weekday::Tue, Weekday::Wed, Weekday::Thu, Weekday::Fri];
        Self::of(days)
    }

    /// These days of every week.
    pub fn of(days: impl IntoIterator<Item = Weekday>) -> Self {
        Self { days: days.into_iter().map(number).collect(), ..Self::default() }
    }

    /// Whether a day is one.
    pub fn has(&self, day: NaiveDate) -> bool {
        self.has_weekday(day)
            && !self.holidays.contains(&day)
            && !(self.target && is_target_holiday(day))
    }

    /// Whether a day's day of the week is one, holiday or not.
    pub fn has_weekday(&self, day: NaiveDate) -> bool {
        self.days.contains(&number(day.weekday()))
    }

    /// The business day that is so many business days later.
    fn after(&self, day: NaiveDate, count: u32) -> Option<NaiveDate> {
        let mut day = day;
        for _one in 0..count {
            day = (1..=CLOSED_MAX)
                .filter_map(|more| day.checked_add_days(Days::new(u64::from(more))))
                .find(|later| self.has(*later))?;
        }
        Some(day)
    }
}

fn number(day: Weekday) -> u8 {
    u8::try_from(day.number_from_monday()).unwrap_or(0)
}

impl Expected {
    /// Whether a name's pattern can be filled in for a day: it holds dates alone, no times.
    pub fn is_name(name: &str) -> bool {
        NaiveDate::from_ymd_opt(2026, 11, 19).is_some_and(|day| filled(name, day).is_some())
    }

    /// Two days that a name's pattern calls alike, with a day between them that it calls
    /// otherwise: by such a name nobody tells the file of one from that of the other. Days beside
    /// each other may share a file, as those of a month do.
    pub fn days_of_one_name(pattern: &str) -> Option<(NaiveDate, NaiveDate)> {
        let items: Vec<Item<'_>> = StrftimeItems::new(pattern).collect();
        let has = |numeric: &Numeric| items.iter().any(|item| is_numeric(item, numeric));
        let has_year = has(&Numeric::Year) || has(&Numeric::YearMod100);
        let has_day = has(&Numeric::Ordinal) || (has(&Numeric::Month) && has(&Numeric::Day));
        if has_year && has_day {
            return None;
        }
        let first = NaiveDate::from_ymd_opt(NAMED_FROM, 1, 1)?;
        let mut last_of: HashMap<String, (NaiveDate, NaiveDate)> = HashMap::new();
        for day in first.iter_days().take(NAMED_DAYS) {
            let name = filled(pattern, day)?;
            let (began, last) = last_of.entry(name).or_insert((day, day));
            if last.succ_opt().is_some_and(|next| next < day) {
                return Some((*began, day));
            }
            *last = day;
        }
        None
    }

    /// Whether names tell the day; else the time at which a file came must.
    pub fn is_dated(&self) -> bool {
        StrftimeItems::new(&self.name)
            .any(|item| matches!(item, Item::Numeric(..) | Item::Fixed(_)))
    }

    /// The name of a day's file: `*` and `?` stand in it as in the pattern.
    pub(super) fn name_for(&self, day: NaiveDate) -> Option<String> {
        filled(&self.name, day)
    }

    /// The name of any day's file: `*` stands for the date, too.
    pub(super) fn name_for_any_day(&self) -> String {
        StrftimeItems::new(&self.name)
            .map(|item| match item {
                Item::Literal(text) | Item::Space(text) => text.to_owned(),
                Item::OwnedLiteral(text) | Item::OwnedSpace(text) => text.into_string(),
                Item::Numeric(..) | Item::Fixed(_) | Item::Error => "*".to_owned(),
            })
            .collect()
    }

    /// Whether a file of this name may be one of these, of whatever day.
    pub fn is_for_some_day(&self, name: &str) -> bool {
        fits(&self.name_for_any_day(), name)
    }

    /// Whether a file of one of these names, of whatever day, may be like a pattern.
    pub fn may_fit(&self, pattern: &str) -> bool {
        meet(pattern, &self.name_for_any_day())
    }

    /// When a day begins in the zone.
    pub fn midnight(&self, day: NaiveDate) -> Option<Instant> {
        instant(self.zone, day, NaiveTime::MIN)
    }

    /// The last second of a day in the zone.
    pub fn last_second(&self, day: NaiveDate) -> Option<Instant> {
        let next = day.checked_add_days(Days::new(1))?;
        self.midnight(next).map(|at| earlier(at, TimeDelta::seconds(1)))
    }

    /// When the file of a business day is due.
    pub fn due(&self, day: NaiveDate) -> Option<Instant> {
        let day = self.calendar.after(day, self.lag_days)?;
        instant(self.zone, day, self.by)
    }

    /// Every file that is due by `now`, from business day `since` on: day, due, name.
    fn all_due(&self, since: NaiveDate, now: Instant) -> Vec<Missing> {
        // No zone is further from UTC than a day.
        let last = now.date_naive().checked_add_days(Days::new(1)).unwrap_or(NaiveDate::MAX);
        let days = since.iter_days().take_while(|day| *day <= last);
        let due = days.filter(|day| self.calendar.has(*day)).map_while(|day| {
            let due = self.due(day).filter(|due| *due <= now)?;
            Some(Missing { name: filled(&self.name, day)?, day, due })
        });
        due.collect()
    }
}

/// The files past their time that have not come, from business day `since` on.
pub fn missing(
    expected: &Expected,
    arrived: &[Arrived],
    since: NaiveDate,
    now: Instant,
) -> Vec<Missing> {
    let mut due = expected.all_due(since, now);
    if expected.is_dated() {
        let names: BTreeSet<&str> = arrived.iter().map(|file| file.name.as_str()).collect();
        due.retain(|file| !has_come(&file.name, &names));
        return due;
    }
    without_undated(expected, due, arrived)
}

/// How the file of every business day stands, from `since` on and up to the next one that is due.
pub fn outlook(
    expected: &Expected,
    arrived: &[Arrived],
    since: NaiveDate,
    now: Instant,
) -> Vec<Outlook> {
    let gone: BTreeSet<NaiveDate> =
        missing(expected, arrived, since, now).into_iter().map(|file| file.day).collect();
    let stands = |day| if gone.contains(&day) { Stands::Missing } else { Stands::Came };
    let due = expected.all_due(since, now).into_iter();
    let mut all: Vec<Outlook> =
        due.map(|file| Outlook { stands: stands(file.day), file }).collect();
    let names: BTreeSet<&str> = arrived.iter().map(|file| file.name.as_str()).collect();
    let first = all.last().and_then(|last| last.file.day.succ_opt()).unwrap_or(since);
    let today = now.with_timezone(&expected.zone).date_naive();
    // A calendar of many holidays in a row ends somewhere; one without days does not.
    let days = first.iter_days().take(usize::try_from(CLOSED_MAX).unwrap_or(0));
    for day in days.filter(|day| expected.calendar.has(*day)) {
        let (Some(name), Some(due)) = (filled(&expected.name, day), expected.due(day)) else {
            break;
        };
        let has_come = expected.is_dated() && has_come(&name, &names);
        let stands = if has_come { Stands::Came } else { Stands::Coming };
        all.push(Outlook { file: Missing { name, day, due }, stands });
        if day >= today {
            break;
        }
    }
    all
}

fn has_come(pattern: &str, names: &BTreeSet<&str>) -> bool {
    let start = pattern.split(['*', '?']).next().unwrap_or_default();
    names
        .range::<str, _>((Bound::Included(start), Bound::Unbounded))
        .take_while(|name| name.starts_with(start))
        .any(|name| fits(pattern, name))
}

/// Where every day's file has the same name, each is of the day that it came for: after the time
/// of the day before it and up to its own; what is left over is a late one of an earlier day.
fn without_undated(expected: &Expected, due: Vec<Missing>, arrived: &[Arrived]) -> Vec<Missing> {
    let mut times: Vec<Instant> = arrived
        .iter()
        .filter(|file| fits(&expected.name, &file.name))
        .map(|file| file.at)
        .collect();
    times.sort_unstable();
    let mut came: BTreeMap<Instant, u32> = BTreeMap::new();
    for at in times {
        let count = came.entry(at).or_default();
        *count = count.saturating_add(1);
    }
    let mut take = |after: Option<Instant>, until: Option<Instant>| -> bool {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let to = until.map_or(Bound::Unbounded, Bound::Included);
        let found = came.range((from, to)).next_back().map(|(at, count)| (*at, *count));
        if let Some((at, count)) = found {
            match count.checked_sub(1).filter(|left| *left > 0) {
                Some(left) => came.insert(at, left),
                None => came.remove(&at),
            };
        }
        found.is_some()
    };
    let ends: Vec<Instant> = due.iter().map(|file| file.due).collect();
    let before = |at: usize| at.checked_sub(1).and_then(|at| ends.get(at)).copied();
    let after = |at: usize| at.checked_add(1).and_then(|at| ends.get(at)).copied();
    // The day before the first: its file is no sign of the first's.
    let first = |at: usize| before(at).or_else(|| expected.due_before(due.first()?.day));
    let timely: Vec<bool> =
        ends.iter().enumerate().map(|(at, end)| take(first(at), Some(*end))).collect();
    let late: Vec<bool> = ends
        .iter()
        .zip(&timely)
        .enumerate()
        .map(|(at, (end, timely))| *timely || take(Some(*end), after(at)))
        .collect();
    due.iter().zip(late).filter(|(_, came)| !came).map(|(file, _)| file.clone()).collect()
}

impl Expected {
    /// When the file of the business day before was due.
    fn due_before(&self, day: NaiveDate) -> Option<Instant> {
        (1..=CLOSED_MAX)
            .filter_map(|less| day.checked_sub_days(Days::new(u64::from(less))))
            .find(|earlier| self.calendar.has(*earlier))
            .and_then(|earlier| self.due(earlier))
    }
}

fn is_numeric(item: &Item<'_>, numeric: &Numeric) -> bool {
    matches!(item, Item::Numeric(own, _pad) if own == numeric)
}

fn filled(pattern: &str, day: NaiveDate) -> Option<String> {
    let mut name = String::new();
    write!(name, "{}", day.format(pattern)).ok()?;
    Some(name)
}

/// A name that a file came by.
#[derive(Debug, Clone, Copy)]
pub struct Told<'a> {
    /// The name.
    pub name: &'a str,
    /// The file's number: the same bytes are one file.
    pub file: i64,
    /// When it came by that name.
    pub at: Instant,
    /// It has lines.
    pub has_lines: bool,
}

/// Names of a day under which nothing came but bytes that another day's name had before, and that
/// hold lines: the file of that day sent once more. What came first under a wrong name, and then
/// under its own, did come, once another file has the wrong one; without a line, days are alike.
pub fn resent<'a>(came: impl Iterator<Item = Told<'a>> + Clone) -> HashSet<&'a str> {
    let mut first: HashMap<i64, Told<'a>> = HashMap::new();
    let mut files: HashMap<&str, HashSet<i64>> = HashMap::new();
    for told in came.clone() {
        let own = first.entry(told.file).or_insert(told);
        if told.at < own.at {
            *own = told;
        }
        files.entry(told.name).or_default().insert(told.file);
    }
    let has_one = |name: &str| files.get(name).is_some_and(|files| files.len() == 1);
    let is_again = |told: &Told<'_>| {
        let first = first.get(&told.file).map(|first| first.name);
        let is_anothers = first.is_some_and(|first| first != told.name && has_one(first));
        told.has_lines && has_one(told.name) && is_anothers
    };
    came.filter(is_again).map(|told| told.name).collect()
}

/// The instant of a local time. Where clocks are set back it comes twice, and the later one
/// counts; where they are set forward it may not come at all, and the first that does, counts.
fn instant(zone: Tz, day: NaiveDate, time: NaiveTime) -> Option<Instant> {
    let wanted = day.and_time(time);
    (0..GAP_QUARTERS).find_map(|quarters| {
        let more = TimeDelta::minutes(i64::from(quarters).saturating_mul(15));
        match zone.from_local_datetime(&wanted.checked_add_signed(more)?) {
            LocalResult::Single(at) | LocalResult::Ambiguous(_, at) => Some(at.with_timezone(&Utc)),
            LocalResult::None => None,
        }
    })
}

/// The days beside the weekends on which TARGET is closed.
fn is_target_holiday(day: NaiveDate) -> bool {
    let fixed = [(1, 1), (5, 1), (12, 25), (12, 26)];
    if fixed.contains(&(day.month(), day.day())) {
        return true;
    }
    let Some(easter) = easter(day.year()) else { return false };
    let good_friday = easter.checked_sub_days(Days::new(2));
    let easter_monday = easter.checked_add_days(Days::new(1));
    [good_friday, easter_monday].contains(&Some(day))
}

/// Easter Sunday of the Gregorian calendar (the anonymous algorithm of 1876).
fn easter(year: i32) -> Option<NaiveDate> {
    let rem = |a: i32, b: i32| a.checked_rem(b);
    let div = |a: i32, b: i32| a.checked_div(b);
    let golden = rem(year, 19)?;
    let (century, rest) = (div(year, 100)?, rem(year, 100)?);
    let leaps = div(century, 4)?;
    let moved = div(century.checked_sub(div(century.checked_add(8)?, 25)?)?.checked_add(1)?, 3)?;
    let sum = golden.checked_mul(19)?.checked_add(century)?.checked_sub(leaps)?;
    let moon = rem(sum.checked_sub(moved)?.checked_add(15)?, 30)?;
    let weeks = rem(century, 4)?.checked_add(div(rest, 4)?)?.checked_mul(2)?.checked_add(32)?;
    let sunday = rem(weeks.checked_sub(moon)?.checked_sub(rem(rest, 4)?)?, 7)?;
    let late = moon.checked_mul(11)?.checked_add(sunday.checked_mul(22)?)?.checked_add(golden)?;
    let late = div(late, 451)?.checked_mul(7)?;
    let days = moon.checked_add(sunday)?.checked_sub(late)?.checked_add(114)?;
    let month = u32::try_from(div(days, 31)?).ok()?;
    let day = u32::try_from(rem(days, 31)?.checked_add(1)?).ok()?;
    NaiveDate::from_ymd_opt(year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::{from_text, to_short_text};

    fn day(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    fn at(text: &str) -> Instant {
        from_text(text).unwrap()
    }

    fn statement() -> Expected {
        Expected {
            name: "STMT_%Y%m%d*.xml".to_owned(),
            by: NaiveTime::from_hms_opt(7, 30, 0).unwrap(),
            zone: chrono_tz::Europe::Berlin,
            lag_days: 1,
            calendar: Calendar::weekdays(),
        }
    }

    #[test]
    fn a_name_that_comes_again_is_told_and_one_of_days_side_by_side_is_not() {
        let again = |pattern: &str| {
            let days = Expected::days_of_one_name(pattern);
            days.map(|(first, again)| format!("{first} {again}"))
        };
        for pattern in [
            "T.xml",
            "T_*.xml",
            "T_%Y%m%d.xml",
            "T_%y%m%d.xml",
            "T_%F*.xml",
            "T_%y%j",
            "T_%Y%m.xml",
            "T_%Y.xml",
            "T_%G-W%V.xml",
            "T_%d%b%Y",
            "T_%D",
        ] {
            assert_eq!(again(pattern), None, "{pattern}");
        }
        for (pattern, days) in [
            ("T_%d.xml", "2024-01-01 2024-02-01"),
            ("T_%m%d.xml", "2024-01-01 2025-01-01"),
            ("T_%m.xml", "2024-01-01 2025-01-01"),
            ("T_%j.xml", "2024-01-01 2025-01-01"),
            ("T_%a.xml", "2024-01-01 2024-01-08"),
            ("T_%Y_%d.xml", "2024-01-01 2024-02-01"),
            // The last days of December are of the first week of the next year.
            ("T_%Y-W%V.xml", "2024-01-01 2024-12-30"),
        ] {
            assert_eq!(again(pattern).as_deref(), Some(days), "{pattern}");
        }
    }

    fn arrived(files: &[(&str, &str)]) -> Vec<Arrived> {
        let one = |(name, when): &(&str, &str)| Arrived { name: (*name).to_owned(), at: at(when) };
        files.iter().map(one).collect()
    }

    /// Days whose file is missing, by their own dates.
    fn days(expected: &Expected, files: &[(&str, &str)], since: &str, now: &str) -> Vec<String> {
        let found = missing(expected, &arrived(files), day(since), at(now));
        found.into_iter().map(|file| file.day.to_string()).collect()
    }

    #[test]
    fn a_file_is_missing_from_its_time_on() {
        let expected = statement();
        let since = "2026-11-19";
        // Thursday's is due on Friday at 07:30, which is 06:30Z.
        assert_eq!(days(&expected, &[], since, "2026-11-20T06:29:59Z"), [""; 0]);
        assert_eq!(days(&expected, &[], since, "2026-11-20T06:30:00Z"), ["2026-11-19"]);
        let whole = missing(&expected, &[], day(since), at("2026-11-20T06:30:00Z"));
        assert_eq!(whole[0].name, "STMT_20261119*.xml");
        assert_eq!(whole[0].due, at("2026-11-20T06:30:00Z"));
        let came = [("STMT_20261119_01.xml", "2026-11-20T05:00:00Z")];
        assert_eq!(days(&expected, &came, since, "2026-11-20T06:30:00Z"), [""; 0]);
        let late = [("STMT_20261119_01.xml", "2026-11-25T05:00:00Z")];
        assert_eq!(days(&expected, &late, since, "2026-11-20T06:30:00Z"), [""; 0]);
        for other in ["STMT_20261118_01.xml", "STMT_20261119_01.xml.part", "stmt_20261119.xml"] {
            let files = [(other, "2026-11-20T05:00:00Z")];
            let found = days(&expected, &files, since, "2026-11-20T06:30:00Z");
            assert_eq!(found, ["2026-11-19"], "{other}");
        }
    }

    #[test]
    fn weekends_and_holidays_expect_nothing_and_do_not_count_as_lag() {
        let mut expected = statement();
        // Friday's is due on Monday.
        let friday = "2026-11-20";
        assert_eq!(days(&expected, &[], friday, "2026-11-22T23:00:00Z"), [""; 0]);
        assert_eq!(days(&expected, &[], friday, "2026-11-23T06:30:00Z"), [friday]);
        expected.calendar.holidays.insert(day("2026-11-23"));
        assert_eq!(days(&expected, &[], friday, "2026-11-23T06:30:00Z"), [""; 0]);
        assert_eq!(days(&expected, &[], friday, "2026-11-24T06:30:00Z"), [friday]);
        assert_eq!(
            days(&expected, &[], friday, "2026-11-25T06:30:00Z"),
            [friday, "2026-11-24"],
            "nothing for the holiday itself"
        );
        let daily = Expected { calendar: Calendar::of(every_day()), ..statement() };
        assert_eq!(
            days(&daily, &[], friday, "2026-11-23T06:30:00Z"),
            [friday, "2026-11-21", "2026-11-22"]
        );
        let same_day = Expected { lag_days: 0, ..statement() };
        assert_eq!(days(&same_day, &[], friday, "2026-11-20T06:30:00Z"), [friday]);
        let two = Expected { lag_days: 2, ..statement() };
        assert_eq!(days(&two, &[], friday, "2026-11-23T12:00:00Z"), [""; 0]);
        assert_eq!(days(&two, &[], friday, "2026-11-24T06:30:00Z"), [friday]);
        let never = Expected { calendar: Calendar::default(), ..statement() };
        assert_eq!(days(&never, &[], friday, "2036-11-24T06:30:00Z"), [""; 0]);
        assert_eq!(days(&daily, &[], "9999-01-01", "2026-11-24T06:30:00Z"), [""; 0]);
    }

    fn every_day() -> [Weekday; 7] {
        use Weekday::{Fri, Mon, Sat, Sun, Thu, Tue, Wed};
        [Mon, Tue, Wed, Thu, Fri, Sat, Sun]
    }

    #[test]
    fn clocks_that_are_moved_move_the_time_with_them() {
        let daily = |hour: u32, zone: Tz| Expected {
            by: NaiveTime::from_hms_opt(hour, 30, 0).unwrap(),
            zone,
            lag_days: 0,
            calendar: Calendar::of(every_day()),
            ..statement()
        };
        let berlin = chrono_tz::Europe::Berlin;
        for (hour, zone, date, want) in [
            // Before, on and after the day when clocks are set forward at 02:00 to 03:00.
            (7, berlin, "2026-03-28", "2026-03-28T06:30:00Z"),
            (7, berlin, "2026-03-29", "2026-03-29T05:30:00Z"),
            (1, berlin, "2026-03-29", "2026-03-29T00:30:00Z"),
            // 02:30 does not come; 03:00 is the first that does.
            (2, berlin, "2026-03-29", "2026-03-29T01:00:00Z"),
            (3, berlin, "2026-03-29", "2026-03-29T01:30:00Z"),
            // 02:30 comes twice when they are set back at 03:00 to 02:00.
            (2, berlin, "2026-10-25", "2026-10-25T01:30:00Z"),
            (1, berlin, "2026-10-25", "2026-10-24T23:30:00Z"),
            (7, berlin, "2026-10-25", "2026-10-25T06:30:00Z"),
            (7, chrono_tz::Asia::Tokyo, "2026-10-25", "2026-10-24T22:30:00Z"),
            // Samoa had no 30 December 2011 at all.
            (7, chrono_tz::Pacific::Apia, "2011-12-30", "2011-12-30T10:00:00Z"),
        ] {
            let due = daily(hour, zone).due(day(date)).unwrap();
            assert_eq!(to_short_text(due), want, "{hour}:30 {zone} {date}");
        }
    }

    #[test]
    fn target_is_closed_on_its_own_days() {
        let calendar = Calendar { target: true, ..Calendar::weekdays() };
        for closed in [
            "2026-01-01",
            "2026-04-03",
            "2026-04-06",
            "2026-05-01",
            "2026-12-25",
            "2027-03-26",
            "2027-03-29",
            "2024-03-29",
            "2024-04-01",
            "2038-04-23",
            "2038-04-26",
        ] {
            assert!(!calendar.has(day(closed)), "{closed}");
            assert!(Calendar::weekdays().has(day(closed)), "{closed}");
        }
        for open in ["2026-04-02", "2026-04-07", "2026-05-14", "2026-12-24", "2026-12-31"] {
            assert!(calendar.has(day(open)), "{open}");
        }
    }

    #[test]
    fn files_of_one_name_are_told_apart_by_when_they_came() {
        let expected = Expected { name: "statement.xml".to_owned(), ..statement() };
        let name = "statement.xml";
        let since = "2026-11-17"; // a Tuesday
        let now = "2026-11-20T08:00:00Z";
        let all = ["2026-11-17", "2026-11-18", "2026-11-19"];
        assert_eq!(days(&expected, &[], since, now), all);
        let (first, second, third) =
            ("2026-11-18T05:00:00Z", "2026-11-19T05:00:00Z", "2026-11-20T05:00:00Z");
        let every = [(name, first), (name, second), (name, third)];
        assert_eq!(days(&expected, &every, since, now), [""; 0]);
        assert_eq!(days(&expected, &[(name, first), (name, third)], since, now), all[1..2]);
        assert_eq!(days(&expected, &[(name, third)], since, now), all[..2]);
        // Monday's does not do for Tuesday.
        assert_eq!(days(&expected, &[(name, "2026-11-17T05:00:00Z")], since, now), all);
        // Tuesday's came late, before Wednesday's, which came in time.
        let late = [(name, "2026-11-18T20:00:00Z"), (name, second), (name, third)];
        assert_eq!(days(&expected, &late, since, now), [""; 0]);
        // The last is late, and there.
        let last = [(name, first), (name, second), (name, "2026-11-20T07:00:00Z")];
        assert_eq!(days(&expected, &last, since, now), [""; 0]);
        assert_eq!(days(&expected, &[("other.xml", first)], since, now), all);
    }

    #[test]
    fn the_outlook_ends_with_what_is_to_come() {
        let told = |expected: &Expected, files: &[(&str, &str)], now: &str| -> Vec<String> {
            let all = outlook(expected, &arrived(files), day("2026-11-18"), at(now));
            all.iter().map(|one| format!("{} {:?}", one.file.day, one.stands)).collect()
        };
        let came = [("STMT_20261118.xml", "2026-11-19T05:00:00Z")];
        // Friday noon: Wednesday's came, Thursday's did not, Friday's is due on Monday.
        assert_eq!(
            told(&statement(), &came, "2026-11-20T12:00:00Z"),
            ["2026-11-18 Came", "2026-11-19 Missing", "2026-11-20 Coming"]
        );
        // On a Sunday the next is Friday's still, then Monday's.
        assert_eq!(
            told(&statement(), &came, "2026-11-22T12:00:00Z")[2..],
            ["2026-11-20 Coming", "2026-11-23 Coming"]
        );
        let early = [("STMT_20261118.xml", "x"), ("STMT_20261119.xml", "x")];
        let early = early.map(|(name, _)| (name, "2026-11-19T05:00:00Z"));
        assert_eq!(told(&statement(), &early, "2026-11-19T12:00:00Z")[1..], ["2026-11-19 Came"]);
        let undated = Expected { name: "a.xml".to_owned(), ..statement() };
        let one = [("a.xml", "2026-11-19T05:00:00Z")];
        assert_eq!(
            told(&undated, &one, "2026-11-19T12:00:00Z"),
            ["2026-11-18 Came", "2026-11-19 Coming"]
        );
        let never = Expected { calendar: Calendar::default(), ..statement() };
        assert_eq!(told(&never, &[], "2026-11-19T12:00:00Z"), [""; 0]);
    }

    #[test]
    fn a_name_holds_a_date_and_no_time() {
        for good in ["a.xml", "a_%Y%m%d.xml", "%y%j*.sta", "100%%_%F"] {
            assert!(Expected::is_name(good), "{good}");
        }
        for bad in ["a_%H.xml", "a_%Q", "a_%s", "%Y%m%dT%H%M%S", "50%"] {
            assert!(!Expected::is_name(bad), "{bad}");
        }
    }
}
