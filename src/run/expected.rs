//! Which files a source owes: held against the names that came, for a run, for `files expected`
//! and for `explain`.

use std::collections::HashSet;

use chrono::{DateTime, NaiveDate};

use crate::decide::expected::{Arrived, Missing, Outlook, Told, missing, outlook, resent};
use crate::model::time::{Instant, to_short_text};
use crate::model::wildcard::fits;
use crate::run::error::{Doing, RunError};
use crate::run::ingest::LOCAL;
use crate::settlement::sources::fetch::Settled;
use crate::settlement::sources::settings::{ExpectedFile, Source};
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::files::{AbsentCase, FileDriver, FileState, KnownName};
use crate::store::watch::{Change, Mark};

/// What one source owes of one kind of file.
#[derive(Debug, Clone)]
pub struct Awaited<'a> {
    /// The source.
    pub source: &'a Source,
    /// What is expected of it.
    pub expected: &'a ExpectedFile,
    /// The first business day that is looked at; none: nothing came yet, and none is configured.
    pub since: Option<NaiveDate>,
    /// Past their time, the oldest first.
    pub missing: Vec<Missing>,
    /// Every business day's file, up to the next one that is due.
    pub outlook: Vec<Outlook>,
    /// Names that came, with the numbers of their files, and why those do not count.
    pub came: Vec<(String, i64, Option<Uncounted>)>,
}

/// Why a file that came is none that did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uncounted {
    /// It is quarantined.
    Quarantined,
    /// Every statement of it is held.
    Held,
}

impl Uncounted {
    fn of(name: &KnownName) -> Option<Self> {
        match name.state {
            FileState::Quarantined => Some(Self::Quarantined),
            FileState::Loaded | FileState::Released => name.is_held.then_some(Self::Held),
        }
    }

    /// In a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Quarantined => "quarantined",
            Self::Held => "held",
        }
    }
}

/// What a source owes, by every kind of file that is expected of it.
pub async fn awaited<'a>(
    db: &Database,
    source: &'a Source,
    now: Instant,
) -> Result<Vec<Awaited<'a>>, RunError> {
    if source.expected.is_empty() {
        return Ok(Vec::new());
    }
    let known = db.known_names(&source.name).await.doing("reading which files came")?;
    // What a person brought in is there, too: no source shows it.
    let brought = match &source.account {
        Some(account) => db.names_of_account(LOCAL, account).await,
        None => Ok(Vec::new()),
    };
    let brought = brought.doing("reading which files were brought in")?;
    let marks = db.marks(&scope(source)).await.doing("reading when files came")?;
    let noted: Vec<Arrived> = marks.iter().filter_map(|mark| arrived_of(mark, &known)).collect();
    let shown = Shown { known: &known, brought: &brought, noted: &noted };
    let one = |expected| Awaited::of(source, expected, shown, now);
    Ok(source.expected.iter().map(one).collect())
}

/// Opens a case for each kind of file that did not come, and closes those of files that are there
/// now; what is to be said of the missing ones.
pub(super) async fn note_missing(
    db: &Database,
    run_id: &str,
    source: &Source,
    now: Instant,
) -> Result<Vec<String>, RunError> {
    let mut open: Vec<String> = Vec::new();
    let mut texts: Vec<String> = Vec::new();
    for awaited in awaited(db, source, now).await? {
        let Some(text) = awaited.text() else { continue };
        let case = AbsentCase {
            source: source.name.clone(),
            expected: awaited.expected.file.name.clone(),
            account: source.account.clone().unwrap_or_default(),
            text: text.clone(),
        };
        let put = db.put_absent_case(run_id, &case, now).await;
        put.doing("opening a case about missing files")?;
        open.push(case.subject());
        texts.push(text);
    }
    let closed = db.close_absent_cases(run_id, &source.name, &open, now).await;
    closed.doing("closing cases about missing files")?;
    Ok(texts)
}

/// Notes when files came whose names tell no day: what a listing shows of such a name tells of the
/// last one alone, and the same bytes may be every day's.
pub(super) async fn note_arrivals(
    db: &Database,
    source: &Source,
    settled: &[Settled],
) -> Result<(), RunError> {
    let undated: Vec<&ExpectedFile> =
        source.expected.iter().filter(|expected| !expected.file.is_dated()).collect();
    let is_asked = |name: &str| undated.iter().any(|one| one.file.is_for_some_day(name));
    let files = settled.iter().filter(|file| is_asked(&file.seen.name));
    let changes: Vec<(String, Change)> = files
        .filter_map(|Settled { seen, sha256, .. }| {
            // Without a time, one that still lies there is not told from a new one.
            let secs = seen.written()?.timestamp();
            Some((format!("{secs} {sha256} {}", seen.name), Change::Keep(secs)))
        })
        .collect();
    if changes.is_empty() {
        return Ok(());
    }
    db.move_marks(&scope(source), &changes).await.doing("noting when files came").map(|_all| ())
}

/// Where it is remembered when a source's files came. No schedule is called so.
fn scope(source: &Source) -> String {
    format!("files of {}", source.name)
}

/// A file that came, unless its bytes count no more.
fn arrived_of(mark: &Mark, known: &[KnownName]) -> Option<Arrived> {
    let (_secs, rest) = mark.name.split_once(' ')?;
    let (sha256, name) = rest.split_once(' ')?;
    let at = DateTime::from_timestamp(mark.value, 0)?;
    let is_it = |own: &&KnownName| own.name == name && own.raw_sha256 == sha256 && !is_bad(own);
    known.iter().find(is_it).map(|own| Arrived { name: own.name.clone(), at })
}

/// What is known of a source's files.
#[derive(Clone, Copy)]
struct Shown<'a> {
    /// The names that it showed.
    known: &'a [KnownName],
    /// Those that a person brought in.
    brought: &'a [KnownName],
    /// When files came whose names tell no day.
    noted: &'a [Arrived],
}

impl<'a> Awaited<'a> {
    fn of(
        source: &'a Source,
        expected: &'a ExpectedFile,
        Shown { known, brought, noted }: Shown<'_>,
        now: Instant,
    ) -> Self {
        let at = |name: &KnownName| name.modified_at.unwrap_or(name.first_seen_at);
        let is_named = |name: &&KnownName| expected.file.is_for_some_day(&name.name);
        // A file of an archive came by the archive's name.
        let is_whole = |name: &&KnownName| !name.name.contains('/');
        let shown: Vec<&KnownName> = known.iter().filter(is_whole).collect();
        let brought = brought.iter().filter(is_whole).filter(is_named);
        let came: Vec<&KnownName> = shown.iter().copied().chain(brought).collect();
        let named: Vec<&KnownName> = came.iter().copied().filter(is_named).collect();
        let resent = match expected.file.is_dated() {
            true => resent(named.iter().filter(|name| !is_bad(name)).map(|name| Told {
                name: &name.name,
                file: name.file,
                at: name.first_seen_at,
                has_lines: name.lines > 0,
            })),
            false => HashSet::new(),
        };
        let mut arrived: Vec<Arrived> = came
            .iter()
            .filter(|name| !is_bad(name) && !resent.contains(name.name.as_str()))
            .map(|name| Arrived { name: name.name.clone(), at: at(name) })
            .collect();
        let noted: &[Arrived] = if expected.file.is_dated() { &[] } else { noted };
        for one in noted.iter().filter(|one| expected.file.is_for_some_day(&one.name)) {
            if !arrived.contains(one) {
                arrived.push(one.clone());
            }
        }
        // A file of long ago, brought in by hand, does not say that all since then are owed.
        let earliest = noted.iter().map(|one| one.at);
        let first = shown.iter().map(|name| at(name)).chain(earliest).min();
        let zone = expected.file.zone;
        let since = expected.since.or(first.map(|at| at.with_timezone(&zone).date_naive()));
        let by = &expected.file;
        Self {
            source,
            expected,
            since,
            missing: since.map(|day| missing(by, &arrived, day, now)).unwrap_or_default(),
            outlook: since.map(|day| outlook(by, &arrived, day, now)).unwrap_or_default(),
            came: came
                .iter()
                .map(|name| (name.name.clone(), name.file, Uncounted::of(name)))
                .collect(),
        }
    }

    /// What a run says of what is missing; none where nothing is.
    pub fn text(&self) -> Option<String> {
        let first = self.missing.first()?;
        let zone = self.expected.file.zone;
        let due = first.due.with_timezone(&zone).format("%Y-%m-%d %H:%M");
        let what = match self.missing.len() {
            1 => format!("{} was not there by {due} {zone}", first.name),
            many => format!(
                "{many} files of {} are missing, the first {}, due {due} {zone}",
                self.expected.file.name, first.name
            ),
        };
        let bad = self.uncounted(first);
        let bad = bad
            .map(|(name, id, why)| format!(" ({name} came and is {} as file {id})", why.as_str()));
        Some(format!(
            "source {}: {what}{}; rows that only it settles stay as they are; next: ask whoever \
             sends it; `tieout files expected` shows all",
            self.source.name,
            bad.unwrap_or_default()
        ))
    }

    /// The file of a business day that came and does not count.
    pub fn uncounted(&self, file: &Missing) -> Option<(&str, i64, Uncounted)> {
        let own = self.came.iter().filter(|(name, ..)| fits(&file.name, name));
        own.filter_map(|(name, id, why)| Some((name.as_str(), *id, (*why)?))).next()
    }

    /// Of `explain`: what is missing, a line each.
    pub fn missing_lines(&self) -> Vec<String> {
        let line = |file: &Missing| {
            let due = to_short_text(file.due);
            format!("{} of source {} is missing since {due}", file.name, self.source.name)
        };
        self.missing.iter().map(line).collect()
    }
}

fn is_bad(name: &KnownName) -> bool {
    Uncounted::of(name).is_some()
}
