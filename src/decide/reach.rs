//! How far back and forth the files of an account that list every attempt reach without a gap.
//!
//! The name of a file tells the business day that it is for; days that are none belong to the
//! business day after them. A row that no file of an unbroken stretch names was never attempted in
//! it. A later file may still name it, as a PSP that listed it late: while one is lacking whose
//! time has passed, nothing is proven. A name without a date tells no day, and proves nothing.
//!
//! A file without a row, and without a count that says so, may be all that was left of one: on a
//! day when the row's call may have been made it proves nothing. A later one is believed where the
//! tables have no row of that day, either: a shop that was closed has nothing to list.
//!
//! A file that was written before its day was over cannot list what was attempted after that: it
//! proves nothing of that day.
//!
//! What came for a day and is not whole may name the row, whatever else came for it: a day that
//! several files tell of, and one that came again, prove something only where all are whole. So it
//! is with what comes on days that the calendar calls closed, and with a series of which nothing
//! came yet: nobody knows what it would have told.
//!
//! Where a name has a wildcard, and one word stands there on several days (a merchant account's),
//! the files of that word are a series of their own: those of another account say nothing of it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{Datelike, Days, NaiveDate, Weekday};

use crate::decide::expected::{Expected, Told, resent};
use crate::model::time::{Instant, later};
use crate::model::wildcard::fits;
use crate::model::zone_words::may_be;

/// How many missing files a sentence names.
const NAMED: usize = 3;

/// So many days in a row are closed at most.
const CLOSED: usize = 31;

/// How long before a span it is looked whether files come on closed days of the week.
const WEEKS_BEFORE: u64 = 4;

/// What a file that came says of attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worth {
    /// It lists every attempt, whole and tied.
    Whole,
    /// It may list attempts, and is not whole: quarantined, cut, or let count by a person although
    /// it does not tie.
    Doubtful,
    /// It lists attempts, and another issue counts in its place, or a person has to say.
    Aside,
    /// It tells what settled.
    Other,
}

impl Worth {
    /// Reads the stable word.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "whole" => Some(Self::Whole),
            "doubtful" => Some(Self::Doubtful),
            "aside" => Some(Self::Aside),
            "other" => Some(Self::Other),
            _unknown => None,
        }
    }
}

/// A file of the account that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Came {
    /// Its number.
    pub number: i64,
    /// A name that it came by; of an archive's file, the archive's with its own behind it.
    pub name: String,
    /// When it came by that name.
    pub at: Instant,
    /// When it was written, as its source says, or else came; what was attempted later it cannot
    /// list.
    pub written: Option<Instant>,
    /// What it says of attempts.
    pub worth: Worth,
    /// The period that it tells of itself, where it tells one.
    pub period: Option<(NaiveDate, NaiveDate)>,
    /// It has no row, and nothing in it says that there was none.
    pub is_empty: bool,
    /// The words by which its rows name the zone of their days.
    pub zones: Vec<String>,
    /// It has lines.
    pub has_lines: bool,
}

impl Came {
    /// Whether a name stands for this file: its own, or that of the archive that it came in.
    fn is_called(&self, name: &str) -> bool {
        let archive = self.name.split('/').next().unwrap_or_default();
        fits(name, &self.name) || fits(name, archive)
    }

    /// What stands for the one wildcard of a name, where that is a word: no number or time.
    fn word_for<'a>(&'a self, name: &str) -> Option<&'a str> {
        let (before, behind) = name.split_once('*').filter(|(_, behind)| !behind.contains('*'))?;
        let archive = self.name.split('/').next().unwrap_or_default();
        let between = |text: &'a str| text.strip_prefix(before)?.strip_suffix(behind);
        let word = between(&self.name).or_else(|| between(archive))?;
        let has_word = word.split(|c: char| !c.is_alphabetic()).any(|part| part.len() > 1);
        has_word.then_some(word)
    }

    /// What stands for the one wildcard of a name, where that numbers the parts of a day: a letter
    /// or one or two figures.
    fn part_for<'a>(&'a self, name: &str) -> Option<&'a str> {
        let (before, behind) = name.split_once('*').filter(|(_, behind)| !behind.contains('*'))?;
        let part = self.name.strip_prefix(before)?.strip_suffix(behind)?;
        let own = part.trim_matches(['_', '-', '.']);
        let is_number = own.len() <= 2 && own.bytes().all(|byte| byte.is_ascii_digit());
        let is_letter = own.len() == 1 && own.bytes().all(|byte| byte.is_ascii_alphabetic());
        (!own.is_empty() && (is_number || is_letter)).then_some(part)
    }

    /// What its rows say of the zone of their days, where that is another one than a series is
    /// told by.
    fn elsewhere(&self, expected: &Expected, day: NaiveDate) -> Option<String> {
        let other = self.zones.iter().find(|word| !may_be(word, expected.zone, day))?;
        let (name, zone) = (&self.name, expected.zone);
        Some(format!("{name} tells days of {other}, and the `zone` of its source is {zone}"))
    }

    /// Its name, where it was written before its day ended, and none came under it that was not.
    fn before(&self, end: Instant, own: &[&Self]) -> Option<String> {
        let is_early = |file: &Self| file.written.is_some_and(|at| at < end);
        let is_right = |other: &&Self| {
            let is_whole = other.worth == Worth::Whole && !other.is_empty;
            is_whole && !is_early(other) && other.name == self.name && other.is_after(self)
        };
        let is_open = self.worth == Worth::Whole && is_early(self) && !own.iter().any(is_right);
        is_open.then(|| self.name.clone())
    }

    /// Whether it came after another.
    fn is_after(&self, other: &Self) -> bool {
        (self.at, self.number) > (other.at, other.number)
    }
}

/// What files say of a span of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// From here (inclusive) …
    pub from: Instant,
    /// … to here (exclusive) every attempt is listed.
    pub to: Instant,
    /// Which files the whole span lacks, and the days after it whose file is past its time, in
    /// words; none: it lacks none.
    pub lacks: Option<String>,
}

/// A business day of a series.
#[derive(Debug, Clone)]
struct Day {
    from: Instant,
    to: Instant,
    name: String,
    /// The name that something came by which is not whole: its own, or a closed day's before it.
    in_doubt: Option<String>,
    /// The name of what came of it before it was over.
    early: Option<String>,
    /// What of it came with days of another zone, in words.
    elsewhere: Option<String>,
    is_here: bool,
    /// What is here of it has no row.
    is_empty: bool,
    /// The tables have rows that were made in it.
    has_rows: bool,
    /// Its time has passed.
    is_due: bool,
}

/// The files of one account that list attempts, day by day.
#[derive(Debug, Clone, Default)]
pub struct AttemptFiles {
    /// Of each `[[source.expected]]` that such files came for, or nothing yet.
    series: Vec<Series>,
    /// Those of them whose names tell no day.
    undated: Vec<String>,
    any_came: bool,
}

/// The files of one name.
#[derive(Debug, Clone)]
struct Series {
    days: Vec<Day>,
    /// The first day that something came for: nothing is to be had of what was before. Where it
    /// began long before the days that it is laid out over, it is some day before them.
    begun: Option<Instant>,
}

impl AttemptFiles {
    /// Lays the files that came by `now` out over the days from `since` to `until`.
    pub fn of(
        expected: &[Expected],
        came: &[Came],
        (since, until): (Instant, Instant),
        now: Instant,
    ) -> Self {
        let first = since.date_naive().checked_sub_days(Days::new(2)).unwrap_or(NaiveDate::MIN);
        let last = until.date_naive().checked_add_days(Days::new(8)).unwrap_or(NaiveDate::MAX);
        let (mut series, mut undated) = (Vec::new(), Vec::new());
        for one in expected {
            let name = one.name_for_any_day();
            let own: Vec<&Came> = came.iter().filter(|file| file.is_called(&name)).collect();
            let own = if one.is_dated() { not_again(own) } else { own };
            let lists = |file: &&Came| matches!(file.worth, Worth::Whole | Worth::Aside);
            let tells_what_settled = own.iter().any(|file| file.worth == Worth::Other);
            if tells_what_settled && !own.iter().any(lists) {
                continue;
            }
            if one.is_dated() {
                let first = open_before(one, first);
                let begun = first_day(one, &own, (first, last));
                series.push(Series { days: days(one, &own, (first, last), now), begun });
            } else {
                undated.push(one.name.clone());
            }
        }
        let any_came = came.iter().any(|file| file.worth == Worth::Whole);
        Self { series, undated, any_came }
    }

    /// Whether the account has files that list attempts at all.
    pub fn exist(&self) -> bool {
        self.any_came
    }

    /// The days of which nothing came but files without a row: from when to when.
    pub fn empty_days(&self) -> Vec<(Instant, Instant)> {
        let mut days: Vec<(Instant, Instant)> =
            self.all_days().filter(|day| day.is_empty).map(Day::span).collect();
        days.sort_unstable();
        days.dedup();
        days
    }

    /// Takes in on which of [`Self::empty_days`] the tables have rows that were made then.
    pub fn doubt(&mut self, with_rows: &[(Instant, Instant)]) {
        let days = self.series.iter_mut().flat_map(|series| &mut series.days);
        for day in days.filter(|day| day.is_empty) {
            day.has_rows = with_rows.contains(&day.span());
        }
    }

    /// How far the files reach around a span that must be covered.
    pub fn reach(&self, from: Instant, to: Instant) -> Reach {
        if self.series.is_empty() {
            let lacks =
                "no [[source.expected]] with a date in its name says for which days they come";
            return Reach { from, to: from, lacks: Some(lacks.to_owned()) };
        }
        let mut reach: Option<(Instant, Instant)> = None;
        let mut lacking = Lacking::default();
        for Series { days, .. } in &self.series {
            let (own_from, own_to) = stretch(days, from);
            // Every series is needed: each lists attempts that the others do not.
            reach = Some(match reach {
                Some((a, b)) => (a.max(own_from), b.min(own_to)),
                None => (own_from, own_to),
            });
            lacking.take(days, from, to);
        }
        let (own_from, own_to) = reach.unwrap_or((from, from));
        let is_short = own_from > from || own_to < to;
        let lacks = if is_short || lacking.is_any() {
            Some(lacking.words())
        } else {
            self.undated.first().map(|name| {
                format!("{name} is expected too, and has no date in its name that says which came")
            })
        };
        Reach { from: own_from, to: own_to.max(own_from), lacks }
    }

    /// What the files lack that may list an attempt of this span, in words. Of a day before the
    /// first of a series nobody can tell.
    pub fn lacks_since_begun(&self, from: Instant, to: Instant) -> Option<String> {
        let mut lacking = Lacking::default();
        let mut is_short = false;
        for Series { days, begun } in &self.series {
            let Some(begun) = begun.filter(|begun| *begun < to) else { continue };
            let from = from.max(begun);
            let (own_from, own_to) = stretch(days, from);
            is_short |= own_from > from || own_to < to;
            lacking.take(days, from, to);
        }
        (is_short || lacking.is_any()).then(|| lacking.words())
    }

    fn all_days(&self) -> impl Iterator<Item = &Day> {
        self.series.iter().flat_map(|series| &series.days)
    }
}

/// The files that a span lacks.
#[derive(Default)]
struct Lacking<'f> {
    /// Those that did not come whole.
    missing: BTreeSet<&'f str>,
    /// Those that came without a row.
    empty: BTreeSet<&'f str>,
    /// Those that were written before their day was over.
    early: BTreeSet<&'f str>,
    /// Those that came with days of another zone, in words.
    elsewhere: BTreeSet<&'f str>,
}

impl<'f> Lacking<'f> {
    /// Takes what a series lacks of a span, and of the days after it that are past their time.
    fn take(&mut self, days: &'f [Day], from: Instant, to: Instant) {
        let wanted = days.iter().filter(|day| day.to > from && (day.from < to || day.is_due));
        for day in wanted {
            if let Some(words) = &day.elsewhere {
                self.elsewhere.insert(words);
            } else if let Some(name) = day.early.as_deref().filter(|_| day.in_doubt.is_none()) {
                self.early.insert(name);
            } else if !day.is_here {
                self.missing.insert(day.in_doubt.as_deref().unwrap_or(&day.name));
            }
            if day.is_empty && (day.from < to || day.has_rows) {
                self.empty.insert(day.name.as_str());
            }
        }
    }

    fn is_any(&self) -> bool {
        !(self.missing.is_empty() && self.are_all_whole())
    }

    /// Nothing came that proves nothing for another reason than that it is not whole.
    fn are_all_whole(&self) -> bool {
        self.empty.is_empty() && self.early.is_empty() && self.elsewhere.is_empty()
    }

    fn words(&self) -> String {
        let missing = (self.are_all_whole() || !self.missing.is_empty())
            .then(|| format!("{} did not come whole yet", named(&self.missing)));
        let empty = (!self.empty.is_empty()).then(|| {
            let why = "which proves nothing of a day on which rows were made or sent";
            format!("{} came without a row, {why}", named(&self.empty))
        });
        let early = (!self.early.is_empty())
            .then(|| format!("{} was written before the day was over", named(&self.early)));
        let elsewhere = (!self.elsewhere.is_empty()).then(|| named(&self.elsewhere));
        [missing, empty, early, elsewhere].into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}

fn named(files: &BTreeSet<&str>) -> String {
    let named: Vec<&str> = files.iter().take(NAMED).copied().collect();
    let more = match files.len().saturating_sub(named.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", named.join(", "))
}

impl Day {
    fn span(&self) -> (Instant, Instant) {
        (self.from, self.to)
    }

    /// Its attempts are listed.
    fn is_listed(&self) -> bool {
        self.is_here && !self.is_empty
    }
}

/// Without those whose bytes came under another day's name before: they are that day's.
fn not_again(own: Vec<&Came>) -> Vec<&Came> {
    let whole = own.iter().filter(|file| file.worth != Worth::Doubtful);
    let again = resent(whole.map(|file| Told {
        name: &file.name,
        file: file.number,
        at: file.at,
        has_lines: file.has_lines,
    }));
    let is_its = |file: &&Came| file.worth == Worth::Doubtful || !again.contains(&*file.name);
    own.iter().copied().filter(is_its).collect()
}

/// Every business day, and whether its file is here. A day of the week on which none is expected
/// and files come all the same is one, too.
fn days(
    expected: &Expected,
    came: &[&Came],
    (first, last): (NaiveDate, NaiveDate),
    now: Instant,
) -> Vec<Day> {
    let open_all_the_same = weekdays_besides(expected, came, (first, last));
    let words = words_of(expected, came, (first, last));
    let parts = parts_of(expected, came, (first, last));
    let members = members_of(expected, came, (first, last));
    let mut days: Vec<Day> = Vec::new();
    let [mut doubt, mut early, mut elsewhere]: [Option<String>; 3] = [None, None, None];
    let mut since: Option<NaiveDate> = None;
    for day in first.iter_days().take_while(|day| *day <= last) {
        let next = day.checked_add_days(Days::new(1));
        let (Some(start), Some(end)) =
            (expected.midnight(day), next.and_then(|d| expected.midnight(d)))
        else {
            continue;
        };
        let Some(name) = expected.name_for(day) else { continue };
        let is_open = expected.calendar.has(day) || open_all_the_same.contains(&day.weekday());
        let begun = if is_open { since.take() } else { None };
        let own = of_day(came, &name, (begun.unwrap_or(day), day));
        if own.iter().any(|file| is_in_doubt(file, &own)) {
            doubt = doubt.or_else(|| Some(name.clone()));
        }
        early = early.or_else(|| own.iter().find_map(|file| file.before(end, &own)));
        elsewhere = elsewhere.or_else(|| own.iter().find_map(|file| file.elsewhere(expected, day)));
        if !is_open {
            since = since.or(Some(day));
            continue;
        }
        let whole: Vec<&Came> = own.into_iter().filter(|file| file.worth == Worth::Whole).collect();
        let is_empty = whole.iter().any(|file| file.is_empty && !has_rows_again(file, &whole));
        let is_of = |word: &&String| whole.iter().any(|file| file.word_for(&name) == Some(word));
        let other = words.iter().find(|word| !whole.is_empty() && !is_of(word));
        let other = other.cloned().or_else(|| lacking_part(&parts, day));
        let other = other.map(|word| name.replacen('*', &word, 1));
        let other = other.or_else(|| lacking_member(&members, day));
        let in_doubt = doubt.take().or(other);
        // Days before it that are no business days are told of in its file, from the first on that
        // it has a row of.
        let from = days.last().map_or(start, |before| before.to);
        let told_from = told_from(expected, &name, &whole).map_or(start, |told| told.min(start));
        let is_due = expected.due(day).is_some_and(|due| due <= now);
        let (early, elsewhere) = (early.take(), elsewhere.take());
        let is_proof = in_doubt.is_none() && early.is_none() && elsewhere.is_none();
        let is_here = !whole.is_empty() && is_proof;
        if is_here && told_from > from {
            days.push(Day {
                from,
                to: told_from,
                name: name.clone(),
                in_doubt: begun.map(|first| format!("a file that tells of {first}")),
                early: None,
                elsewhere: None,
                is_here: false,
                is_empty: false,
                has_rows: false,
                // Nothing more is to come of them, and it says nothing of other days.
                is_due: false,
            });
        }
        let from = from.max(if is_here { told_from } else { from });
        days.push(Day {
            from,
            to: end,
            name,
            in_doubt,
            early,
            elsewhere,
            is_here,
            is_empty,
            has_rows: false,
            is_due,
        });
    }
    days
}

/// From when on the files of a business day tell of what was before it: all of those whose name has
/// one word must, each by the first day that one of them has a row of. None: they do not say.
fn told_from(expected: &Expected, name: &str, whole: &[&Came]) -> Option<Instant> {
    let mut by_word: BTreeMap<Option<&str>, Option<NaiveDate>> = BTreeMap::new();
    for file in whole {
        let first = by_word.entry(file.word_for(name)).or_default();
        let own = file.period.map(|(from, _)| from);
        *first = first.iter().copied().chain(own).min();
    }
    let firsts: Option<Vec<NaiveDate>> = by_word.into_values().collect();
    expected.midnight(firsts?.into_iter().max()?)
}

/// The words that stand for a name's wildcard on several days, from some weeks before.
fn words_of(
    expected: &Expected,
    came: &[&Came],
    (first, last): (NaiveDate, NaiveDate),
) -> BTreeSet<String> {
    if !expected.name.contains('*') {
        return BTreeSet::new();
    }
    let before = first.checked_sub_days(Days::new(7 * WEEKS_BEFORE)).unwrap_or(NaiveDate::MIN);
    let (mut once, mut again) = (BTreeSet::new(), BTreeSet::new());
    for day in before.iter_days().take_while(|day| *day <= last) {
        let Some(name) = expected.name_for(day) else { continue };
        let own = of_day(came, &name, (closed_before(expected, day), day));
        let words = own.iter().filter_map(|file| file.word_for(&name));
        for word in words.collect::<BTreeSet<&str>>() {
            if !once.insert(word) {
                again.insert(word.to_owned());
            }
        }
    }
    again
}

/// The numbered parts of each day that has any, from some weeks before.
fn parts_of<'a>(
    expected: &Expected,
    came: &[&'a Came],
    (first, last): (NaiveDate, NaiveDate),
) -> BTreeMap<NaiveDate, BTreeSet<&'a str>> {
    let mut parts: BTreeMap<NaiveDate, BTreeSet<&str>> = BTreeMap::new();
    if !expected.name.contains('*') {
        return parts;
    }
    let before = first.checked_sub_days(Days::new(7 * WEEKS_BEFORE)).unwrap_or(NaiveDate::MIN);
    for day in before.iter_days().take_while(|day| *day <= last) {
        let Some(name) = expected.name_for(day) else { continue };
        let own = of_day(came, &name, (closed_before(expected, day), day));
        let mut of_day: BTreeSet<&str> =
            own.iter().filter_map(|file| file.part_for(&name)).collect();
        if of_day.is_empty() {
            continue;
        }
        // The first part may stand without a number.
        if own.iter().any(|file| file.name == name.replacen('*', "", 1)) {
            of_day.insert("");
        }
        parts.insert(day, of_day);
    }
    parts
}

/// A part that a day has not: each of several others has it; or it stands before one that the day
/// has, as parts are numbered without a gap. Hours of the day are, too, figures, and leave the same
/// gaps on other days. Where the number of parts changes, nothing shows that the last one lacks.
fn lacking_part(parts: &BTreeMap<NaiveDate, BTreeSet<&str>>, day: NaiveDate) -> Option<String> {
    let own = parts.get(&day)?;
    let others = || parts.iter().filter(|(other, _)| **other != day).map(|(_, parts)| parts);
    let is_everywhere = |part: &&str| others().all(|other| other.contains(part));
    let is_lacking =
        |part: &&&str| !part.is_empty() && !own.contains(**part) && is_everywhere(part);
    let elsewhere = others().nth(1).and_then(|some| some.iter().find(is_lacking));
    let elsewhere = elsewhere.map(|part| (*part).to_owned());
    elsewhere.or_else(|| own.iter().find_map(|part| gap_before(part, own, others())))
}

/// The part that lacks before one of a day's, unless other days have the same gap.
fn gap_before<'o, 'p: 'o>(
    part: &str,
    own: &BTreeSet<&'p str>,
    mut others: impl Iterator<Item = &'o BTreeSet<&'p str>>,
) -> Option<String> {
    let before = place_of(part)?.checked_sub(1).filter(|place| *place > 0)?;
    let has = |of: &BTreeSet<&str>, place: u8| of.iter().any(|one| place_of(one) == Some(place));
    let has_gap = |of: &BTreeSet<&'p str>| of.contains(part) && !has(of, before);
    if has(own, before) || others.any(has_gap) {
        return None;
    }
    let own = part.trim_matches(['_', '-', '.']);
    let word = match own.bytes().next().filter(u8::is_ascii_alphabetic) {
        Some(letter) => char::from(letter.saturating_sub(1)).to_string(),
        None => format!("{before:0width$}", width = own.len()),
    };
    Some(part.replacen(own, &word, 1))
}

/// Which part of a day it is: `_b` and `_02` are the second, and one without either is the first.
fn place_of(part: &str) -> Option<u8> {
    let own = part.trim_matches(['_', '-', '.']);
    match own.bytes().next() {
        None => Some(1),
        Some(letter) if letter.is_ascii_alphabetic() => {
            Some(letter.to_ascii_lowercase().saturating_sub(b'a').saturating_add(1))
        }
        Some(_figure) => own.parse().ok(),
    }
}

/// Of each day that archives came for: how many files they hold under one name, and one of them.
/// Figures are of days and numbers, and all alike.
type Members<'a> = BTreeMap<String, (usize, &'a str)>;

/// What the archives of each day hold of attempts, from some weeks before.
fn members_of<'a>(
    expected: &Expected,
    came: &[&'a Came],
    (first, last): (NaiveDate, NaiveDate),
) -> BTreeMap<NaiveDate, Members<'a>> {
    let mut members = BTreeMap::new();
    if !came.iter().any(|file| file.name.contains('/')) {
        return members;
    }
    let before = first.checked_sub_days(Days::new(7 * WEEKS_BEFORE)).unwrap_or(NaiveDate::MIN);
    for day in before.iter_days().take_while(|day| *day <= last) {
        let Some(name) = expected.name_for(day) else { continue };
        let own = of_day(came, &name, (closed_before(expected, day), day));
        let own = own.iter().filter(|file| file.worth != Worth::Other);
        let names: BTreeSet<&str> =
            own.filter_map(|file| Some(file.name.split_once('/')?.1)).collect();
        let mut of_day = Members::new();
        for name in names {
            let alike = name.split(|c: char| c.is_ascii_digit()).filter(|word| !word.is_empty());
            let alike = alike.collect::<Vec<_>>().join("#");
            let (count, _) = of_day.entry(alike).or_insert((0, name));
            *count = count.saturating_add(1);
        }
        if !of_day.is_empty() {
            members.insert(day, of_day);
        }
    }
    members
}

/// A file that a day's archive has not, and that of each of several other days has, in words.
fn lacking_member(members: &BTreeMap<NaiveDate, Members<'_>>, day: NaiveDate) -> Option<String> {
    let own = members.get(&day)?;
    let others = || members.iter().filter(|(other, _)| **other != day).map(|(_, of)| of);
    let count = |of: &Members<'_>, name: &String| of.get(name).map_or(0, |(count, _)| *count);
    let is_lacking = |(name, _): &(&String, &(usize, &str))| {
        others().all(|other| count(other, name) > count(own, name))
    };
    let (_, (_, like)) = others().nth(1)?.iter().find(is_lacking)?;
    Some(format!("a file of {day}'s archive as {like} is of another one's"))
}

/// The first day that something came for, from some weeks before those that it is laid out over.
fn first_day(
    expected: &Expected,
    came: &[&Came],
    (first, last): (NaiveDate, NaiveDate),
) -> Option<Instant> {
    let before = first.checked_sub_days(Days::new(7 * WEEKS_BEFORE)).unwrap_or(NaiveDate::MIN);
    let has_come = |day: &NaiveDate| {
        let own = (closed_before(expected, *day), *day);
        expected.name_for(*day).is_some_and(|name| !of_day(came, &name, own).is_empty())
    };
    let day = before.iter_days().take_while(|day| *day <= last).find(has_come)?;
    expected.midnight(day)
}

/// The day itself, or where it is closed, the business day before it: the file of the one after
/// tells of all days between.
fn open_before(expected: &Expected, day: NaiveDate) -> NaiveDate {
    let mut days = std::iter::successors(Some(day), NaiveDate::pred_opt).take(CLOSED);
    days.find(|day| expected.calendar.has(*day)).unwrap_or(day)
}

/// The first of the days that a business day's file tells of: those before it that are none, too.
fn closed_before(expected: &Expected, day: NaiveDate) -> NaiveDate {
    let before = |day: &NaiveDate| day.pred_opt().filter(|day| !expected.calendar.has(*day));
    let is_open = expected.calendar.has(day);
    let days = std::iter::successors(Some(day), before).take(CLOSED);
    if is_open { days.last().unwrap_or(day) } else { day }
}

/// What came for a day and those before it that it tells of, by its name.
fn of_day<'a>(
    came: &[&'a Came],
    name: &str,
    (since, day): (NaiveDate, NaiveDate),
) -> Vec<&'a Came> {
    let start_of_name = name.split(['*', '?']).next().unwrap_or_default();
    let is_its = |file: &&Came| {
        let within = |(from, to): (NaiveDate, NaiveDate)| from <= day && since <= to;
        file.name.starts_with(start_of_name)
            && file.is_called(name)
            && file.period.is_none_or(within)
    };
    came.iter().copied().filter(is_its).collect()
}

/// Whether a file is not whole, and no right one came since under its name.
fn is_in_doubt(file: &Came, own: &[&Came]) -> bool {
    let is_right = |other: &&Came| {
        other.worth == Worth::Whole
            && !other.is_empty
            && other.name == file.name
            && other.is_after(file)
    };
    file.worth == Worth::Doubtful && !own.iter().any(is_right)
}

/// Whether one with rows came under the name of a file that has none.
fn has_rows_again(file: &Came, own: &[&Came]) -> bool {
    own.iter().any(|other| !other.is_empty && other.name == file.name)
}

/// The days of the week that the calendar calls closed, and that files come for all the same.
fn weekdays_besides(
    expected: &Expected,
    came: &[&Came],
    (first, last): (NaiveDate, NaiveDate),
) -> Vec<Weekday> {
    let before = first.checked_sub_days(Days::new(7 * WEEKS_BEFORE)).unwrap_or(NaiveDate::MIN);
    let mut besides: Vec<Weekday> = Vec::new();
    for day in before.iter_days().take_while(|day| *day <= last) {
        let weekday = day.weekday();
        if expected.calendar.has_weekday(day) || besides.contains(&weekday) {
            continue;
        }
        let Some(name) = expected.name_for(day) else { continue };
        if !of_day(came, &name, (day, day)).is_empty() {
            besides.push(weekday);
        }
    }
    besides
}

/// The unbroken stretch of files with rows that holds an instant; where none does, nothing from
/// there on.
fn stretch(days: &[Day], at: Instant) -> (Instant, Instant) {
    let Some(own) = days.iter().position(|day| day.from <= at && at < day.to && day.is_listed())
    else {
        let nothing = later(at, chrono::TimeDelta::nanoseconds(1));
        return (nothing, nothing);
    };
    let (before, after) = days.split_at(own);
    let earlier = before.iter().rev().take_while(|day| day.is_listed()).last();
    let from = earlier.or(after.first());
    let to = after.iter().take_while(|day| day.is_listed()).last();
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
        days.iter().map(|day| one_came(&format!("acc_{day}.csv"), Worth::Whole)).collect()
    }

    /// One that came after all that are numbered lower; its bytes may be another one's.
    fn one_came(name: &str, worth: Worth) -> Came {
        let (name, at) = (name.to_owned(), at(ATTEMPT));
        Came {
            number: 1,
            name,
            at,
            written: None,
            worth,
            period: None,
            is_empty: false,
            zones: Vec::new(),
            has_lines: false,
        }
    }

    fn laid_out(expected: &[Expected], came: &[Came], since: &str, now: &str) -> AttemptFiles {
        AttemptFiles::of(expected, came, (at(since), at(now)), at(now))
    }

    /// `from to` of the reach, and what it lacks.
    fn told(files: &AttemptFiles, from: &str, to: &str) -> (String, Option<String>) {
        let reach = files.reach(at(from), at(to));
        let span = format!("{} to {}", to_short_text(reach.from), to_short_text(reach.to));
        (span, reach.lacks)
    }

    const ATTEMPT: &str = "2026-11-18T10:00:00Z";

    #[test]
    fn the_bytes_of_another_day_are_not_this_ones_file() {
        let week = Calendar::of([Weekday::Mon, Weekday::Tue, Weekday::Wed, Weekday::Thu]);
        let expected = [daily("acc_%Y%m%d.csv", week)];
        let lacks = |day: &str, number: i64, has_lines: bool, bad: bool| {
            let mut files = came(&["20261117", day, "20261119"]);
            for (file, number) in files.iter_mut().zip([1, number, 3]) {
                (file.number, file.has_lines) = (number, has_lines);
            }
            files[1].at = at("2026-11-20T08:00:00Z");
            if bad {
                let bad = one_came("acc_20261118.csv", Worth::Doubtful);
                files.push(Came { number: 4, has_lines: false, ..bad });
            }
            let now = "2026-11-20T12:00:00Z";
            let files = laid_out(&expected, &files, "2026-11-17T10:00:00Z", now);
            told(&files, ATTEMPT, "2026-11-18T11:00:00Z").1
        };
        let missing = Some("acc_20261118.csv did not come whole yet".to_owned());
        assert_eq!(lacks("20261118", 2, true, false), None);
        assert_eq!(lacks("20261118", 2, true, true), None, "it was mended");
        assert_eq!(lacks("20261118", 3, true, false), missing, "the 19th's once more");
        assert_eq!(lacks("20261118", 3, true, true), missing, "that does not mend it");
        assert_eq!(lacks("20261118", 3, false, false), None, "nothing is alike on all days");
    }

    #[test]
    fn days_of_another_zone_are_not_those_of_the_series() {
        let week =
            Calendar::of([Weekday::Mon, Weekday::Tue, Weekday::Wed, Weekday::Thu, Weekday::Fri]);
        let expected = [daily("acc_%Y%m%d.csv", week)];
        let lacks = |zones: &[&str]| {
            let mut files = came(&["20261117", "20261118", "20261119"]);
            files[1].zones = zones.iter().map(|word| (*word).to_owned()).collect();
            let now = "2026-11-20T12:00:00Z";
            let files = laid_out(&expected, &files, "2026-11-17T10:00:00Z", now);
            told(&files, ATTEMPT, "2026-11-18T11:00:00Z").1
        };
        for same in [&[][..], &["CET"], &["CET", "CEST"], &["Mars"]] {
            assert_eq!(lacks(same), None, "{same:?}");
        }
        let words = "acc_20261118.csv tells days of PST, and the `zone` of its source is \
                     Europe/Berlin";
        assert_eq!(lacks(&["PST"]).as_deref(), Some(words));
        assert_eq!(lacks(&["CET", "PST"]).as_deref(), Some(words));
    }

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
        let of = |files: &[Came]| laid_out(&expected, files, ATTEMPT, ATTEMPT);
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
        let other = laid_out(&[], &files, ATTEMPT, ATTEMPT);
        assert!(other.exist());
        assert!(told(&other, ATTEMPT, ATTEMPT).1.unwrap().starts_with("no [[source.expected]]"));
    }

    #[test]
    fn a_later_file_that_is_past_its_time_is_lacking_and_one_to_come_is_not() {
        let expected = [daily("acc_%Y%m%d.csv", Calendar::weekdays())];
        let of = |days: &[&str], now: &str| {
            let files = laid_out(&expected, &came(days), ATTEMPT, now);
            told(&files, ATTEMPT, "2026-11-18T10:15:00Z").1
        };
        // Thursday's file is there by half past seven of Friday, in Berlin.
        assert_eq!(of(&["20261118"], "2026-11-20T06:29:59Z"), None);
        let lacks = of(&["20261118"], "2026-11-20T06:30:00Z");
        assert_eq!(lacks.as_deref(), Some("acc_20261119.csv did not come whole yet"));
        let lacks = of(&["20261118", "20261120"], "2026-11-21T10:00:00Z");
        assert_eq!(lacks.as_deref(), Some("acc_20261119.csv did not come whole yet"));
        assert_eq!(of(&["20261118", "20261119"], "2026-11-21T10:00:00Z"), None);
    }

    #[test]
    fn a_file_without_a_row_is_believed_of_a_later_day_on_which_the_shop_was_closed() {
        let expected = [daily("acc_%Y%m%d.csv", Calendar::weekdays())];
        let of = |empty: &[&str]| {
            let mut files = came(&["20261117", "20261118", "20261119", "20261120"]);
            for file in &mut files {
                file.is_empty = empty.iter().any(|day| file.name.contains(day));
            }
            laid_out(&expected, &files, ATTEMPT, "2026-11-23T10:00:00Z")
        };
        let lacks = |files: &AttemptFiles| told(files, ATTEMPT, "2026-11-18T10:15:00Z").1;
        assert_eq!(lacks(&of(&[])), None);
        // Before the attempt it is none of its business.
        assert_eq!(lacks(&of(&["20261117"])), None);
        let says = |file: &str| {
            format!(
                "{file} came without a row, which proves nothing of a day on which rows were made \
                 or sent"
            )
        };
        assert_eq!(lacks(&of(&["20261118"])), Some(says("acc_20261118.csv")));
        let mut later = of(&["20261120"]);
        assert_eq!(lacks(&later), None);
        let friday = (at("2026-11-19T23:00:00Z"), at("2026-11-20T23:00:00Z"));
        assert_eq!(later.empty_days(), [friday]);
        later.doubt(&[friday]);
        assert_eq!(lacks(&later), Some(says("acc_20261120.csv")));
        later.doubt(&[]);
        assert_eq!(lacks(&later), None);
        // A right one that came under the same name is what counts.
        let mut files = came(&["20261118", "20261118", "20261119", "20261120"]);
        files[0].is_empty = true;
        let files = laid_out(&expected, &files, ATTEMPT, "2026-11-23T10:00:00Z");
        assert_eq!(lacks(&files), None);
    }

    #[test]
    fn a_weekend_is_told_of_by_monday() {
        let expected = [daily("acc_%Y%m%d.csv", Calendar::weekdays())];
        let saturday = "2026-11-21T10:00:00Z";
        let of = |days: &[&str]| laid_out(&expected, &came(days), saturday, saturday);
        let lacks = told(&of(&["20261119", "20261120"]), saturday, "2026-11-22T10:00:00Z").1;
        assert_eq!(lacks.as_deref(), Some("acc_20261123.csv did not come whole yet"));
        let silent = of(&["20261120", "20261123"]);
        let missing = "a file that tells of 2026-11-21 did not come whole yet";
        let lacks = told(&silent, saturday, "2026-11-22T10:00:00Z").1;
        assert_eq!(lacks.as_deref(), Some(missing), "it has no row that tells of it");
        // Also where it lists the week-end's attempts alone; one that begins later says nothing of
        // Saturday, and one that lists Friday's is not its.
        let lacks = |day: &str| {
            let mut files = came(&["20261120", "20261123"]);
            let day = day.parse::<NaiveDate>().unwrap();
            files[1].period = Some((day, day));
            let files = laid_out(&expected, &files, saturday, saturday);
            told(&files, saturday, "2026-11-22T10:00:00Z").1
        };
        assert_eq!(lacks("2026-11-21"), None);
        for day in ["2026-11-22", "2026-11-23"] {
            assert_eq!(lacks(day).as_deref(), Some(missing), "{day}");
        }
        for day in ["2026-11-20", "2026-11-24"] {
            let missing = "acc_20261123.csv did not come whole yet";
            assert_eq!(lacks(day).as_deref(), Some(missing), "{day}");
        }
    }

    #[test]
    fn four_closed_days_in_a_row_are_told_of_by_the_day_after() {
        let target = Calendar { target: true, ..Calendar::weekdays() };
        let expected = [daily("acc_%Y%m%d.csv", target)];
        for day in ["03", "04", "05", "06"] {
            let (from, to) =
                (format!("2026-04-{day}T10:00:00Z"), format!("2026-04-{day}T11:00:00Z"));
            let mut files = came(&["20260402", "20260407"]);
            files[1].period = NaiveDate::from_ymd_opt(2026, 4, 3).map(|first| (first, first));
            let whole = laid_out(&expected, &files, &from, &from);
            assert_eq!(told(&whole, &from, &to).1, None, "{day}");
            let without = laid_out(&expected, &came(&["20260402"]), &from, &from);
            let lacks = told(&without, &from, &to).1;
            assert_eq!(lacks.as_deref(), Some("acc_20260407.csv did not come whole yet"), "{day}");
        }
    }

    #[test]
    fn a_file_that_tells_of_other_days_and_one_of_two_series_count_for_nothing() {
        let expected = [
            daily("acc_%Y%m%d.csv", Calendar::weekdays()),
            daily("b_%Y%m%d.csv", Calendar::weekdays()),
        ];
        let day = |text: &str| text.parse::<NaiveDate>().unwrap();
        let mut files = came(&["20261118", "20261119"]);
        let of = |files: &[Came]| laid_out(&expected, files, ATTEMPT, ATTEMPT);
        let to = "2026-11-19T12:00:00Z";
        let lacks = told(&of(&files), ATTEMPT, to).1;
        let says = "b_20261118.csv, b_20261119.csv did not come whole yet";
        assert_eq!(lacks.as_deref(), Some(says), "nobody knows what it would have told");
        files.push(one_came("b_20261001.csv", Worth::Doubtful));
        assert_eq!(told(&of(&files), ATTEMPT, to).1, lacks);
        files.push(one_came("b_20261002.csv", Worth::Other));
        assert_eq!(told(&of(&files), ATTEMPT, to).1, None, "the other is no series of attempts");
        files[1].period = Some((day("2026-11-18"), day("2026-11-18")));
        let lacks = told(&of(&files), ATTEMPT, to).1;
        assert_eq!(lacks.as_deref(), Some("acc_20261119.csv did not come whole yet"));
        files[1].period = Some((day("2026-11-18"), day("2026-11-19")));
        assert_eq!(told(&of(&files), ATTEMPT, to).1, None);
        let b = |day: &str| one_came(&format!("b_{day}.csv"), Worth::Whole);
        files.push(b("20261118"));
        let lacks = told(&of(&files), ATTEMPT, to).1;
        assert_eq!(lacks.as_deref(), Some("b_20261119.csv did not come whole yet"));
        files.push(b("20261119"));
        assert_eq!(told(&of(&files), ATTEMPT, to).1, None);
    }

    #[test]
    fn what_came_for_a_day_and_is_not_whole_leaves_it_open() {
        let expected = [daily("acc_%Y%m%d*.csv", Calendar::weekdays())];
        let of = |files: &[Came]| {
            let files = laid_out(&expected, files, ATTEMPT, "2026-11-20T06:30:00Z");
            told(&files, ATTEMPT, "2026-11-18T10:15:00Z").1
        };
        let lacks = |day: &str| Some(format!("acc_{day}*.csv did not come whole yet"));
        let mut files = came(&["20261117", "20261118", "20261119"]);
        assert_eq!(of(&files), None);
        // Of an earlier day it is none of its business; a part of its own or a later day's is.
        files.push(one_came("acc_20261117_b.csv", Worth::Doubtful));
        assert_eq!(of(&files), None);
        files.push(one_came("acc_20261119_b.csv", Worth::Doubtful));
        assert_eq!(of(&files), lacks("20261119"));
        files.push(Came { number: 7, ..one_came("acc_20261118.csv", Worth::Doubtful) });
        assert!(of(&files).is_some_and(|lacks| lacks.starts_with("acc_20261118*.csv, ")));
        // A right one under the same name, later, takes its place; one without a row does not.
        let again = Came { number: 8, ..one_came("acc_20261118.csv", Worth::Whole) };
        files.push(Came { is_empty: true, ..again.clone() });
        assert!(of(&files).is_some_and(|lacks| lacks.starts_with("acc_20261118*.csv, ")));
        files.push(again);
        assert_eq!(of(&files), lacks("20261119"));
        files.push(Came { number: 9, ..one_came("acc_20261119_b.csv", Worth::Whole) });
        assert_eq!(of(&files), None);
        // One that another issue took the place of is nothing to wait for.
        files.push(Came { number: 10, ..one_came("acc_20261118.csv", Worth::Aside) });
        assert_eq!(of(&files), None);
        // What an archive holds came by its name, too.
        let packed = daily("acc_%Y%m%d.zip", Calendar::weekdays());
        let mut zips =
            ["17", "18", "19"].map(|day| one_came(&format!("acc_202611{day}.zip"), Worth::Whole));
        let of_zips = |files: &[Came]| {
            let files = laid_out(std::slice::from_ref(&packed), files, ATTEMPT, ATTEMPT);
            told(&files, ATTEMPT, "2026-11-18T10:15:00Z").1
        };
        assert_eq!(of_zips(&zips), None);
        zips[0] = one_came("acc_20261118.zip/b.csv", Worth::Doubtful);
        let lacks_zip = "acc_20261118.zip did not come whole yet";
        assert_eq!(of_zips(&zips).as_deref(), Some(lacks_zip));
        // A part without a row may be what was left of one.
        files.push(Came { is_empty: true, ..one_came("acc_20261118_b.csv", Worth::Whole) });
        assert!(of(&files).is_some_and(|lacks| lacks.contains("came without a row")));
    }

    #[test]
    fn each_word_s_file_must_tell_of_the_weekend() {
        let expected = [daily("acc_%Y%m%d*.csv", Calendar::weekdays())];
        let day = |text: &str| text.parse::<NaiveDate>().unwrap();
        let (saturday, monday) = (day("2026-11-21"), day("2026-11-23"));
        let of = |second: &str, of_second: Option<(NaiveDate, NaiveDate)>| {
            let mut files = came(&["20261119_EU", "20261120_EU", "20261123_EU"]);
            let more = ["20261119", "20261120", "20261123"].map(|day| format!("{day}{second}"));
            files.extend(came(&more.each_ref().map(String::as_str)));
            files[2].period = Some((saturday, monday));
            files[5].period = of_second;
            let asked = "2026-11-21T10:00:00Z";
            let files = laid_out(&expected, &files, asked, "2026-11-23T23:00:00Z");
            told(&files, asked, "2026-11-21T10:15:00Z").1
        };
        let missing = "a file that tells of 2026-11-21 did not come whole yet";
        assert_eq!(of("_US", Some((saturday, monday))), None);
        for own in [Some((monday, monday)), None] {
            assert_eq!(of("_US", own).as_deref(), Some(missing), "{own:?}");
        }
    }

    #[test]
    fn a_part_that_each_other_day_has_is_lacking() {
        let expected = [daily("acc_%Y%m%d*.csv", Calendar::weekdays())];
        let of = |parts: &[&str]| {
            let files: Vec<Came> = parts
                .iter()
                .map(|part| one_came(&format!("acc_202611{part}.csv"), Worth::Whole))
                .collect();
            let files = laid_out(&expected, &files, ATTEMPT, ATTEMPT);
            told(&files, ATTEMPT, "2026-11-18T10:15:00Z").1
        };
        for (a, b) in [("_1", "_2"), ("-01", "-02"), ("a", "b")] {
            let all = ["17", "18", "19"].map(|day| [format!("{day}{a}"), format!("{day}{b}")]);
            let all: Vec<&str> = all.as_flattened().iter().map(String::as_str).collect();
            assert_eq!(of(&all), None);
            let lacks = [&all[..3], &all[4..]].concat();
            let wanted = format!("acc_20261118{b}.csv did not come whole yet");
            assert_eq!(of(&lacks), Some(wanted));
            // Another day has one part, too: nothing shows that there are always two.
            let fewer = [&all[..3], &all[4..5]].concat();
            assert_eq!(of(&fewer), None);
        }
        assert_eq!(of(&["17_0930", "17_1730", "18_0930", "19_0930", "19_1730"]), None);
        // Their number changes, and a later part shows that one before it lacks.
        for own in [["18_1", "18_3"], ["18_01", "18_03"], ["18a", "18c"], ["18_3", "18_1"]] {
            let middle = own[0].replace('1', "2").replace("18", "").replace("28", "");
            let middle = if own[0] == "18a" { "b" } else { middle.as_str() };
            let middle = middle.replace('3', "2");
            let wanted = format!("acc_20261118{middle}.csv did not come whole yet");
            assert_eq!(of(&["17", own[0], own[1], "19"]), Some(wanted.clone()), "{own:?}");
            let more = format!("18{middle}");
            assert_eq!(of(&["17", own[0], own[1], &more, "19"]), None, "{own:?}");
        }
        assert!(of(&["17_1", "18_2", "19_1"]).is_some(), "the first lacks");
        assert_eq!(of(&["17_0", "18_0", "18_1", "19_0"]), None, "counted from nought");
        // Hours are no numbers of parts.
        assert_eq!(of(&["17_06", "17_12", "18_06", "18_12", "19_06", "19_12"]), None);
    }

    #[test]
    fn a_file_that_each_other_day_s_archive_has_is_lacking() {
        let expected = [daily("acc_%Y%m%d.zip", Calendar::weekdays())];
        let of = |names: &[&str], others: Worth| {
            let file = |name: &&str| {
                let worth = if name.contains("sum") { others } else { Worth::Whole };
                one_came(&format!("acc_202611{name}.csv"), worth)
            };
            let files: Vec<Came> = names.iter().map(file).collect();
            let files = laid_out(&expected, &files, ATTEMPT, ATTEMPT);
            told(&files, ATTEMPT, "2026-11-18T10:15:00Z").1
        };
        let two = |day: &str| ["eu", "us"].map(|word| format!("{day}.zip/{word}_{day}"));
        let all = ["17", "18", "19"].map(two);
        let all: Vec<&str> = all.as_flattened().iter().map(String::as_str).collect();
        assert_eq!(of(&all, Worth::Whole), None);
        let lacks = [&all[..3], &all[4..]].concat();
        let wanted = "a file of 2026-11-18's archive as us_19.csv is of another one's did not \
                      come whole yet";
        assert_eq!(of(&lacks, Worth::Whole).as_deref(), Some(wanted));
        // Another day has one, too: nothing shows that there are always two.
        assert_eq!(of(&[&all[..3], &all[4..5]].concat(), Worth::Whole), None);
        // Names that are told apart by figures alone are counted.
        let parts = ["17.zip/p1", "17.zip/p2", "18.zip/p1", "19.zip/p1", "19.zip/p2"];
        assert!(of(&parts, Worth::Whole).is_some());
        // What tells of no attempt is nothing that lacks.
        let sums = ["17.zip/a", "17.zip/sum", "18.zip/a", "19.zip/a", "19.zip/sum"];
        assert!(of(&sums, Worth::Whole).is_some());
        assert_eq!(of(&sums, Worth::Other), None);
    }

    #[test]
    fn a_file_that_was_written_before_its_day_ended_says_nothing_of_it() {
        let expected = [daily("acc_%Y%m%d*.csv", Calendar::weekdays())];
        let of = |files: &[Came]| {
            let files = laid_out(&expected, files, ATTEMPT, ATTEMPT);
            told(&files, ATTEMPT, "2026-11-18T10:15:00Z").1
        };
        let mut files = came(&["20261117", "20261118", "20261119"]);
        files[1].written = Some(at("2026-11-18T22:59:59Z"));
        let lacks = "acc_20261118.csv was written before the day was over";
        assert_eq!(of(&files).as_deref(), Some(lacks));
        // One beside it under another name may be the rest, or another part.
        let rest = one_came("acc_20261118_b.csv", Worth::Whole);
        let written = Some(at("2026-11-18T23:00:00Z"));
        files.push(Came { number: 7, written, ..rest });
        assert_eq!(of(&files).as_deref(), Some(lacks));
        let again = one_came("acc_20261118.csv", Worth::Whole);
        files.push(Came { number: 8, written, ..again });
        assert_eq!(of(&files), None);
    }

    #[test]
    fn a_closed_day_is_told_of_by_a_file_that_begins_by_then() {
        let expected = [daily("acc_%Y%m%d.csv", Calendar::weekdays())];
        let day = |text: &str| text.parse::<NaiveDate>().unwrap();
        let mut files = came(&["20261119", "20261120", "20261123", "20261124"]);
        let of = |files: &[Came], at: &str| {
            let files = laid_out(&expected, files, at, "2026-11-25T10:00:00Z");
            told(&files, at, &at.replace("10:00", "10:15")).1
        };
        let (saturday, sunday) = ("2026-11-21T10:00:00Z", "2026-11-22T10:00:00Z");
        files[2].period = Some((day("2026-11-22"), day("2026-11-23")));
        let lacks = of(&files, saturday);
        let says = "a file that tells of 2026-11-21 did not come whole yet";
        assert_eq!(lacks.as_deref(), Some(says));
        assert_eq!(of(&files, sunday), None);
        assert_eq!(of(&files, "2026-11-20T10:00:00Z"), None, "a quiet week-end is no gap");
        files[2].period = Some((day("2026-11-21"), day("2026-11-23")));
        assert_eq!(of(&files, saturday), None);
    }

    #[test]
    fn files_of_one_account_say_nothing_of_another_ones() {
        let expected = [daily("acc_%Y%m%d_*.csv", Calendar::weekdays())];
        let of = |names: &[&str]| {
            let files: Vec<Came> = names.iter().map(|name| one_came(name, Worth::Whole)).collect();
            let files = laid_out(&expected, &files, ATTEMPT, "2026-11-20T06:29:00Z");
            told(&files, ATTEMPT, "2026-11-18T10:15:00Z").1
        };
        let both = [
            "acc_20261116_AcmeEU.csv",
            "acc_20261116_AcmeUS.csv",
            "acc_20261117_AcmeEU.csv",
            "acc_20261117_AcmeUS.csv",
            "acc_20261118_AcmeUS.csv",
        ];
        let lacks = of(&both);
        assert_eq!(lacks.as_deref(), Some("acc_20261118_AcmeEU.csv did not come whole yet"));
        assert_eq!(of(&[&both[..], &["acc_20261118_AcmeEU.csv"]].concat()), None);
        // Parts of a day, and times, are no words that come again.
        let parts = ["acc_20261117_01.csv", "acc_20261117_02.csv", "acc_20261118_01.csv"];
        assert_eq!(of(&parts), None);
    }

    #[test]
    fn a_closed_day_that_files_come_for_all_the_same_needs_its_own() {
        let expected = [daily("acc_%Y%m%d.csv", Calendar::weekdays())];
        let (saturday, now) = ("2026-11-21T10:00:00Z", "2026-11-25T10:00:00Z");
        let of = |files: &[Came]| {
            let files = laid_out(&expected, files, saturday, now);
            told(&files, saturday, "2026-11-21T10:15:00Z").1
        };
        let mut files = came(&["20261119", "20261120", "20261123", "20261124"]);
        files[2].period = Some((at(saturday).date_naive(), at(now).date_naive()));
        assert_eq!(of(&files), None, "Monday's tells of it");
        // Something came for it, and is not whole.
        let own = "acc_20261121.csv did not come whole yet";
        files.push(one_came("acc_20261121.csv", Worth::Doubtful));
        assert_eq!(of(&files).as_deref(), Some(own));
        files.pop();
        files.push(one_came("acc_20261114.csv", Worth::Whole));
        assert_eq!(of(&files).as_deref(), Some(own), "the Saturday before had one");
        files.push(one_came("acc_20261121.csv", Worth::Whole));
        assert_eq!(of(&files), None);
    }

    #[test]
    fn a_series_without_a_date_says_nothing_and_may_have_named_it() {
        let expected = [
            daily("acc_%Y%m%d.csv", Calendar::weekdays()),
            daily("last.csv", Calendar::weekdays()),
        ];
        let mut files = came(&["20261118", "20261119"]);
        let of = |files: &[Came]| {
            told(&laid_out(&expected, files, ATTEMPT, ATTEMPT), ATTEMPT, ATTEMPT).1
        };
        let says = "last.csv is expected too, and has no date in its name that says which came";
        assert_eq!(of(&files).as_deref(), Some(says));
        files.push(one_came("last.csv", Worth::Other));
        assert_eq!(of(&files), None, "it tells what settled");
    }
}
