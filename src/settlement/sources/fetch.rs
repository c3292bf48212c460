//! Fetching: what is new at a source and whole, brought into the spool; and putting it away there
//! once its lines are committed.
//!
//! The contract for whoever ingests: [`fetch`] changes nothing at the source. It asks, of each
//! file that is ready, whether it is known already (by name, size and time, which are what a
//! listing tells; the truth is the hash), and fetches the others, in the order of their names.
//! Whatever it says of a file, no row was touched by it. [`archive`] is for files whose lines are
//! committed, and for those alone; where it fails, the file is still known by its hash, and is
//! not ingested again.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::{Duration, Instant};

use chrono::TimeDelta;

use crate::clock;
use crate::model;
use crate::settlement::sources::decrypt::Opener;
use crate::settlement::sources::pick::{Convention, Picked, Ready, Seen, pick};
use crate::settlement::sources::settings::{Secrets, Source};
use crate::settlement::sources::spool::{Fetched, Spool};
use crate::settlement::sources::{BUFFER, Shelf, SourceError, open};

/// Names of one content that the archive is tried with.
const ARCHIVE_NAMES_MAX: u32 = 20;

/// The most bytes of such a name without its point: a file system takes 255, with what a copy is
/// called while it is made (`.NAME.part`).
const ARCHIVED_MAX: usize = 248;

/// Files that a look opens.
const OPENED_MAX: usize = 50;

/// A file that was not written for so long does not grow, however wrong a clock is.
const UNTOUCHED: TimeDelta = TimeDelta::hours(1);

/// How often a wait looks whether it is to end.
const BLINK: Duration = Duration::from_millis(50);

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress<'a> {
    /// The file.
    pub name: &'a str,
    /// Bytes that have come of it.
    pub bytes: u64,
    /// All its bytes.
    pub size: u64,
}

/// Told how far it is; false: stop.
pub type Watching<'a> = &'a mut (dyn FnMut(Progress<'_>) -> bool + Send);

/// What became of one file.
#[derive(Debug)]
pub enum Outcome {
    /// It lies in the spool.
    Fetched(Box<Fetched>),
    /// It lies in the spool as it came: it cannot be decrypted.
    Sealed {
        /// The file.
        fetched: Box<Fetched>,
        /// Why.
        error: SourceError,
    },
    /// It was fetched before.
    Known(Ready),
    /// It is not whole yet, as far as can be told: the next run looks again.
    Waiting {
        /// The file.
        name: String,
        /// Why.
        why: &'static str,
    },
    /// It is never read.
    Refused {
        /// The file.
        name: String,
        /// Why.
        why: &'static str,
    },
    /// It could not be fetched; nothing of it is kept.
    Failed {
        /// The file.
        name: String,
        /// Why.
        error: SourceError,
    },
}

/// What a source gave.
#[derive(Debug, Default)]
pub struct Haul {
    /// Every wanted file that the source shows, whole or not: for what is expected.
    pub visible: Vec<Seen>,
    /// What became of each.
    pub files: Vec<Outcome>,
    /// What ended it early. Files that are not told of were not looked at then.
    pub ended: Option<SourceError>,
}

/// Fetches what is new at a source.
pub fn fetch(
    source: &Source,
    secrets: &Secrets,
    spool: &Spool,
    is_known: &dyn Fn(&Seen) -> bool,
    watching: Watching<'_>,
) -> Haul {
    let mut haul = Haul::default();
    if let Err(error) = fetch_into(&mut haul, source, secrets, spool, is_known, watching) {
        haul.ended = Some(error);
    }
    haul
}

fn fetch_into(
    haul: &mut Haul,
    source: &Source,
    secrets: &Secrets,
    spool: &Spool,
    is_known: &dyn Fn(&Seen) -> bool,
    watching: Watching<'_>,
) -> Result<(), SourceError> {
    let opener = opener(source, secrets)?;
    spool.sweep(&source.name);
    let mut shelf = open(source, secrets)?;
    // A listing without a time cannot tell a file from a later one of the same name and size.
    let is_known = |seen: &Seen| seen.modified.is_some() && is_known(seen);
    let picked = looked_twice(source, shelf.as_mut(), &is_known, watching)?;
    haul.visible = visible(&picked);
    let waiting = picked.waiting.into_iter();
    haul.files.extend(waiting.map(|(seen, why)| Outcome::Waiting { name: seen.name, why }));
    let refused = picked.refused.into_iter();
    haul.files.extend(refused.map(|(name, why)| Outcome::Refused { name, why }));
    for ready in picked.ready {
        if is_known(&ready.seen) {
            haul.files.push(Outcome::Known(ready));
            continue;
        }
        let fetching = Fetching { source, spool, opener: opener.as_ref() };
        match fetching.one(shelf.as_mut(), &ready, watching) {
            Ok(outcome) => haul.files.push(outcome),
            Err(error) if error.ends_all() => return Err(error),
            Err(error) => haul.files.push(Outcome::Failed { name: ready.seen.name, error }),
        }
    }
    Ok(())
}

fn opener(source: &Source, secrets: &Secrets) -> Result<Option<Opener>, SourceError> {
    let own = source.decrypt.as_ref();
    own.map(|decrypt| Opener::read(decrypt, secrets.decrypt.as_ref())).transpose()
}

fn visible(picked: &Picked) -> Vec<Seen> {
    let ready = picked.ready.iter().map(|ready| &ready.seen);
    ready.chain(picked.waiting.iter().map(|(seen, _)| seen)).cloned().collect()
}

/// Lists; and where nothing says that a file is whole, once more after a while.
fn looked_twice(
    source: &Source,
    shelf: &mut dyn Shelf,
    is_known: &dyn Fn(&Seen) -> bool,
    watching: Watching<'_>,
) -> Result<Picked, SourceError> {
    let first = shelf.list()?;
    let picked = pick(&first, &first, &source.globs, &source.convention);
    let new = picked.ready.iter().find(|ready| !is_known(&ready.seen));
    let Some(new) = new.filter(|_| source.convention == Convention::Stable) else {
        return Ok(picked);
    };
    let since = Instant::now();
    while since.elapsed() < source.stable_for {
        let seen = &new.seen;
        if !watching(Progress { name: &seen.name, bytes: 0, size: seen.size }) {
            return Err(SourceError::Stopped { name: seen.name.clone() });
        }
        std::thread::sleep(BLINK.min(source.stable_for));
    }
    let second = shelf.list()?;
    Ok(pick(&second, &first, &source.globs, &source.convention))
}

struct Fetching<'a> {
    source: &'a Source,
    spool: &'a Spool,
    opener: Option<&'a Opener>,
}

impl Fetching<'_> {
    fn one(
        &self,
        shelf: &mut dyn Shelf,
        ready: &Ready,
        watching: Watching<'_>,
    ) -> Result<Outcome, SourceError> {
        let Seen { name, size, .. } = &ready.seen;
        let mut going = |bytes: u64| watching(Progress { name, bytes, size: *size });
        let mut fetched = self.spool.fetch(&self.source.name, shelf, name, &mut going)?;
        fetched.marker.clone_from(&ready.marker);
        if let Some(opener) = self.opener {
            let part = self.spool.part(&self.source.name);
            let plain = self.spool.plain(&fetched.sha256);
            if let Err(error) = self.opened(opener, &fetched, &part, &mut going) {
                // The error that stopped it is the one to tell.
                let _gone = std::fs::remove_file(&part);
                if matches!(error, SourceError::Sealed { .. }) {
                    return Ok(Outcome::Sealed { fetched: Box::new(fetched), error });
                }
                return Err(error);
            }
            self.spool.give_name(&part, &plain)?;
            fetched.plain = Some(plain);
        }
        Ok(Outcome::Fetched(Box::new(fetched)))
    }

    fn opened(
        &self,
        opener: &Opener,
        fetched: &Fetched,
        part: &std::path::Path,
        going: &mut (dyn FnMut(u64) -> bool + Send),
    ) -> Result<(), SourceError> {
        let file = File::create(part).map_err(SourceError::local("making", part))?;
        let mut to = BufWriter::with_capacity(BUFFER, file);
        opener.open(&fetched.seen.name, &fetched.path, &mut to, going)?;
        to.flush().map_err(SourceError::local("writing", part))?;
        to.get_ref().sync_all().map_err(SourceError::local("bringing to the disk", part))
    }
}

/// A file of a source whose lines are committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// As the source showed it.
    pub seen: Seen,
    /// The file beside it that said that it is whole.
    pub marker: Option<String>,
    /// SHA-256 of its bytes as they came, in hex.
    pub sha256: String,
}

impl From<&Fetched> for Settled {
    fn from(fetched: &Fetched) -> Self {
        let Fetched { seen, marker, sha256, .. } = fetched.clone();
        Self { seen, marker, sha256 }
    }
}

/// Puts files away at the source, where it says where to: each whose lines are committed, and only
/// while it is still the one that was fetched. One that fails is told, and the others go on; one
/// that is there no more was put away by somebody else.
///
/// # Errors
/// Where the source cannot be opened; every file is where it was.
pub fn archive(
    source: &Source,
    secrets: &Secrets,
    files: &[Settled],
) -> Result<Vec<(String, SourceError)>, SourceError> {
    let Some(folder) = source.archive.as_deref().filter(|_| !files.is_empty()) else {
        return Ok(Vec::new());
    };
    let mut shelf = open(source, secrets)?;
    Ok(put_all_away(shelf.as_mut(), folder, files))
}

/// Those that could not be put away; where the source itself is lost, all that come after, too.
fn put_all_away(
    shelf: &mut dyn Shelf,
    folder: &str,
    files: &[Settled],
) -> Vec<(String, SourceError)> {
    let mut failed = Vec::new();
    let mut is_over = false;
    for file in files {
        let name = file.seen.name.clone();
        if is_over {
            let (doing, problem) = (format!("archiving {name}"), "the source was lost".to_owned());
            failed.push((name, SourceError::Unreachable { doing, problem }));
            continue;
        }
        if let Err(error) = put_away(shelf, folder, file) {
            is_over = error.ends_all();
            failed.push((name, error));
        }
    }
    failed
}

fn put_away(shelf: &mut dyn Shelf, folder: &str, file: &Settled) -> Result<(), SourceError> {
    let name = &file.seen.name;
    let there = match shelf.stat(name) {
        Err(SourceError::Gone { .. }) => return Ok(()),
        there => there?,
    };
    if there != file.seen {
        // What lies there now was never read.
        let problem = "another file has its name now".to_owned();
        return Err(SourceError::Changed { name: name.clone(), problem });
    }
    let short: String = file.sha256.chars().take(12).collect();
    let mut last = None;
    for number in 1..=ARCHIVE_NAMES_MAX {
        let more = if number == 1 { String::new() } else { format!("-{number}") };
        match shelf.put_away(name, folder, &archived(name, &format!("{short}{more}"))) {
            Ok(()) => {
                last = None;
                break;
            }
            // The same bytes were put away before: they were sent twice.
            Err(error @ SourceError::Taken { .. }) => last = Some(error),
            Err(error @ SourceError::Gone { .. }) => {
                return match shelf.stat(name) {
                    Err(SourceError::Gone { .. }) => Ok(()),
                    _still_there => Err(error),
                };
            }
            Err(error) => return Err(error),
        }
    }
    if let Some(error) = last {
        return Err(error);
    }
    if let Some(marker) = &file.marker {
        // It says nothing any more, wherever it lies.
        let _left = shelf.put_away(marker, folder, &archived(marker, &short));
    }
    Ok(())
}

/// The name in the archive: its own, cut where no file system would take it with its ending, and
/// with that of a copy that is being made.
fn archived(name: &str, ending: &str) -> String {
    let most = ARCHIVED_MAX.saturating_sub(ending.len());
    let mut start = name;
    while start.len() > most {
        let mut letters = start.chars();
        letters.next_back();
        start = letters.as_str();
    }
    format!("{start}.{ending}")
}

/// What a source shows, without fetching anything: for people.
#[derive(Debug)]
pub struct Look {
    /// The fingerprint by which the server was trusted.
    pub host_key: Option<String>,
    /// Every wanted file; those that wait for a second look count as ready.
    pub picked: Picked,
    /// Of those that are ready: which cannot be opened, each with why. The newest are tried.
    pub unread: Vec<(String, String)>,
    /// Why no file could be put away, where one is to be.
    pub archive: Option<String>,
}

impl Look {
    /// How many wanted files there are, and when the newest was written.
    pub fn newest(&self) -> (usize, Option<model::time::Instant>) {
        let visible = visible(&self.picked);
        let newest = visible.iter().filter_map(Seen::written).max();
        (visible.len(), newest)
    }

    /// What a source that shows no file for tieout holds instead, where that is anything: how many
    /// files no pattern fits, and one of them.
    pub fn fits_none(&self) -> Option<(usize, &str)> {
        let Picked { ready, waiting, refused, unwanted: (count, first) } = &self.picked;
        let is_none = ready.is_empty() && waiting.is_empty() && refused.is_empty();
        Some((*count, first.as_deref().filter(|_| is_none)?))
    }

    /// What would be fetched, as far as a look can tell.
    pub fn ready(&self) -> impl Iterator<Item = &Seen> {
        let unread: HashSet<&str> = self.unread.iter().map(|(name, _)| name.as_str()).collect();
        let ready = self.picked.ready.iter().map(|ready| &ready.seen);
        ready.filter(move |seen| !unread.contains(seen.name.as_str()))
    }

    /// What never is, or cannot be, each with why.
    pub fn refused(&self) -> impl Iterator<Item = (&str, &str)> {
        let refused = self.picked.refused.iter().map(|(name, why)| (name.as_str(), *why));
        refused.chain(self.unread.iter().map(|(name, why)| (name.as_str(), why.as_str())))
    }

    /// In words, on one line.
    pub fn text(&self) -> String {
        let key = self.host_key.as_ref().map(|key| format!("host key {key} pinned, "));
        let key = key.unwrap_or_default();
        let (count, newest) = self.newest();
        let files = if count == 1 { "1 file" } else { &format!("{count} files") };
        let newest = newest.map(|at| format!(", newest {}", model::time::to_short_text(at)));
        format!("{key}{files} visible{}", newest.unwrap_or_default())
    }
}

/// Looks at a source: opens it, with every key that fetching needs, and lists it once.
///
/// # Errors
/// As [`SourceError`] says.
pub fn look(source: &Source, secrets: &Secrets) -> Result<Look, SourceError> {
    looked(source, secrets, None)
}

/// As [`look`]; and where two listings say that a file is whole, and one was written just now, once
/// more after a while: who waits is told how long.
///
/// # Errors
/// As [`SourceError`] says.
pub fn look_again(
    source: &Source,
    secrets: &Secrets,
    waiting: &mut dyn FnMut(Duration),
) -> Result<Look, SourceError> {
    looked(source, secrets, Some(waiting))
}

fn looked(
    source: &Source,
    secrets: &Secrets,
    waiting: Option<&mut dyn FnMut(Duration)>,
) -> Result<Look, SourceError> {
    let _keys_are_good = opener(source, secrets)?;
    let mut shelf = open(source, secrets)?;
    let listing = shelf.list()?;
    let mut picked = pick(&listing, &listing, &source.globs, &source.convention);
    if let (Some(waiting), Convention::Stable) = (waiting, &source.convention)
        && picked.ready.iter().any(|ready| may_grow(&ready.seen))
    {
        waiting(source.stable_for);
        std::thread::sleep(source.stable_for);
        picked = pick(&shelf.list()?, &listing, &source.globs, &source.convention);
    }
    let host_key = shelf.host_key();
    let (mut unread, mut archive) = (Vec::new(), None);
    for name in newest(&picked.ready) {
        match shelf.try_open(name) {
            Ok(()) => {}
            Err(error) if error.ends_all() => return Err(error),
            Err(error) => unread.push((name.to_owned(), error.to_string())),
        }
    }
    if let Some(folder) = &source.archive {
        match shelf.try_archive(folder) {
            Ok(()) => {}
            Err(error) if error.ends_all() => return Err(error),
            Err(error) => archive = Some(error.to_string()),
        }
    }
    Ok(Look { host_key, picked, unread, archive })
}

/// Whether a file was written a short while ago, as its own machine's clock has it: one that nobody
/// has touched for longer does not grow.
fn may_grow(seen: &Seen) -> bool {
    let since = clock::now().checked_sub_signed(UNTOUCHED);
    seen.written().is_none_or(|at| Some(at) > since)
}

/// The names that are tried: the last that were written.
fn newest(ready: &[Ready]) -> impl Iterator<Item = &str> {
    let mut seen: Vec<&Seen> = ready.iter().map(|ready| &ready.seen).collect();
    seen.sort_by_key(|seen| std::cmp::Reverse(seen.modified));
    seen.into_iter().take(OPENED_MAX).map(|seen| seen.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settlement::sources::Going;
    use crate::settlement::sources::pick::Kind;

    /// A source that is lost while its second file is put away.
    struct Lost(u32);

    fn seen(name: &str) -> Seen {
        Seen { name: name.to_owned(), size: 1, modified: Some(7), kind: Kind::File }
    }

    impl Shelf for Lost {
        fn list(&mut self) -> Result<Vec<Seen>, SourceError> {
            Ok(Vec::new())
        }
        fn stat(&mut self, name: &str) -> Result<Seen, SourceError> {
            Ok(seen(name))
        }
        fn copy(
            &mut self,
            _name: &str,
            _to: &mut dyn Write,
            _going: Going<'_>,
        ) -> Result<u64, SourceError> {
            Ok(0)
        }
        fn put_away(&mut self, name: &str, _folder: &str, _to: &str) -> Result<(), SourceError> {
            self.0 += 1;
            let (doing, problem) = (format!("archiving {name}"), "cut".to_owned());
            if self.0 == 2 { Err(SourceError::Unreachable { doing, problem }) } else { Ok(()) }
        }
        fn try_open(&mut self, _name: &str) -> Result<(), SourceError> {
            Ok(())
        }
        fn try_archive(&mut self, _folder: &str) -> Result<(), SourceError> {
            Ok(())
        }
    }

    #[test]
    fn what_was_not_tried_is_not_said_to_be_put_away() {
        let files = ["a", "b", "c", "d"].map(|name| {
            let sha256 = "0".repeat(64);
            Settled { seen: seen(name), marker: None, sha256 }
        });
        let failed = put_all_away(&mut Lost(0), "done", &files);
        let told: Vec<String> =
            failed.iter().map(|(name, error)| format!("{name} {error}")).collect();
        let lost = ["b archiving b: cut", "c archiving c: the source was lost"];
        assert_eq!(told[..2], lost);
        assert_eq!(told.len(), 3);
    }

    #[test]
    fn an_archived_name_is_its_own_as_far_as_a_file_system_takes_it() {
        assert_eq!(archived("a.xml", "3e9ab691963d-2"), "a.xml.3e9ab691963d-2");
        for name in ["a".repeat(255), "ä".repeat(127), "a".to_owned() + &"ä".repeat(127)] {
            let there = archived(&name, "3e9ab691963d-20");
            let start = there.strip_suffix(".3e9ab691963d-20").unwrap();
            assert!(name.starts_with(start) && (247..=249).contains(&there.len()), "{there}");
        }
    }
}
