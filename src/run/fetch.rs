//! Fetching from sources, and bringing in what came: for `run` and for `ingest` alike.
//!
//! All sources are fetched from side by side, each on a thread of its own; what came of one is
//! brought in as soon as that one is done. One that cannot be reached keeps nobody else waiting
//! and is only told. Nothing is put away at a source before its lines are committed, and what a
//! crash left there is put away by the next run. A file is known by its name, size and time, so
//! that it is not fetched twice; and by its hash, so that it never counts twice.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant as Clock};

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::exit::Exit;
use crate::model::time::to_micros;
use crate::run::bring::{BroughtIn, Carrier, Origin, Parcel, What};
use crate::run::error::{Doing, RunError};
use crate::run::expected::note_arrivals;
use crate::run::parts::{By, Reading};
use crate::run::release::ReleasedNote;
use crate::run::setup::Setup;
use crate::run::shutdown::Stop;
use crate::run::spool::sweep;
use crate::settlement::Format;
use crate::settlement::sources::SourceError;
use crate::settlement::sources::decrypt::keys_stamp;
use crate::settlement::sources::fetch::{Haul, Outcome, Progress, Settled, archive, fetch};
use crate::settlement::sources::pick::{Ready, Seen};
use crate::settlement::sources::settings::{Secrets, Source};
use crate::settlement::sources::spool::{Fetched, Spool};
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::files::{FileDriver, FileState, KnownName};

/// Signs of progress that wait to be shown; more are left out.
const SHOWN_AHEAD: usize = 16;

/// What became of one source.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct SourceNote {
    /// The source.
    pub source: String,
    /// The account that its files belong to.
    pub account: String,
    /// Files that it shows.
    pub visible: u64,
    /// Of those: known from before.
    pub known: u64,
    /// Not whole yet.
    pub waiting: u64,
    /// Never read, or not to be had.
    pub refused: u64,
    /// Fetched.
    pub fetched: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Brought in: their lines are there.
    pub loaded: u64,
    /// Lines of those.
    pub lines: u64,
    /// Quarantined.
    pub quarantined: u64,
    /// Statements that are held.
    pub held_statements: u64,
    /// Put away at the source.
    pub archived: u64,
    /// Committed, and still where they lay.
    pub not_archived: u64,
    /// Why the first of those could not be put away.
    pub archive_problem: Option<String>,
    /// Why it could not be fetched from, or not to the end.
    pub failed: Option<String>,
}

/// What fetching tells while it goes on.
#[derive(Debug)]
pub enum Told {
    /// Bytes came.
    Coming {
        /// The source.
        source: String,
        /// The file.
        name: String,
        /// Bytes that have come of it.
        bytes: u64,
        /// All its bytes.
        size: u64,
    },
    /// A file was brought in.
    BroughtIn(Box<BroughtIn>),
    /// A person's word that a file may count was carried out, or refused.
    Released(Box<ReleasedNote>),
    /// A source is done.
    Done(Box<SourceNote>),
    /// Something was not examined: what it leads to, and one line.
    Missed(Exit, String),
}

/// Who is told.
pub type Tell<'a> = &'a mut (dyn FnMut(Told) + Send);

/// Fetching of one run.
pub struct Fetching<'a> {
    /// The configuration.
    pub setup: &'a Setup,
    /// The database.
    pub db: &'a Database,
    /// The run.
    pub run_id: &'a str,
    /// The request to stop.
    pub stop: &'a Stop,
    /// How long it may take altogether.
    pub at_most: Option<Duration>,
}

/// A source that is being fetched from.
struct Sent {
    index: usize,
    known: Vec<KnownName>,
    /// What tells the keys that its files are opened with from others.
    keys: Option<String>,
    secrets: Secrets,
    haul: Haul,
}

/// Ends the threads when nobody waits for them any more.
struct Leash(Arc<AtomicBool>);

impl Drop for Leash {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

type Sign = (usize, String, u64, u64);

impl Fetching<'_> {
    /// Fetches from these sources and brings in what came.
    ///
    /// # Errors
    /// Where the database could not go on; each file before it is there or not, whole.
    pub async fn all(&self, sources: &[&Source], tell: Tell<'_>) -> Result<(), RunError> {
        if sources.is_empty() {
            return Ok(());
        }
        sweep(self.setup, self.db, self.run_id).await?;
        let over = Leash(Arc::new(AtomicBool::new(false)));
        let (signs, mut shown) = mpsc::channel::<Sign>(SHOWN_AHEAD);
        let mut threads: JoinSet<Sent> = JoinSet::new();
        for (index, source) in sources.iter().enumerate() {
            let known = self.db.known_names(&source.name).await;
            let known = known.doing("reading which files are known")?;
            let secrets = match source.secrets(&self.setup.env).await {
                Ok(secrets) => secrets,
                Err(error) => {
                    let haul = Haul { ended: Some(error), ..Haul::default() };
                    let (keys, secrets) = (None, Secrets::default());
                    self.take(source, Sent { index, known, keys, secrets, haul }, tell).await?;
                    continue;
                }
            };
            let thread = self.thread(index, source, known, secrets, &over.0, signs.clone());
            threads.spawn_blocking(thread);
        }
        drop(signs);
        let stopped = self.stop.token();
        loop {
            let done = tokio::select! {
                biased;
                // A thread that waits for a server is left alone; the next run fetches anew.
                () = stopped.cancelled() => return Ok(()),
                done = threads.join_next() => done,
                Some((index, name, bytes, size)) = shown.recv() => {
                    if let Some(source) = sources.get(index) {
                        tell(Told::Coming { source: source.name.clone(), name, bytes, size });
                    }
                    continue;
                }
            };
            let Some(done) = done else { return Ok(()) };
            match done {
                Ok(sent) => {
                    if let Some(source) = sources.get(sent.index) {
                        self.take(source, sent, tell).await?;
                    }
                }
                Err(error) => {
                    let text = format!("fetching from a source ended by a bug: {error}");
                    tell(Told::Missed(Exit::Internal, text));
                }
            }
        }
    }

    /// The work of one thread.
    fn thread(
        &self,
        index: usize,
        source: &Source,
        known: Vec<KnownName>,
        secrets: Secrets,
        over: &Arc<AtomicBool>,
        signs: mpsc::Sender<Sign>,
    ) -> impl FnOnce() -> Sent + Send + 'static {
        let (source, spool, stop) = (source.clone(), self.spool(&source.name), self.stop.clone());
        let (over, began, at_most) = (Arc::clone(over), Clock::now(), self.at_most);
        let by = (self.setup.version.clone(), self.setup.config_sha256.clone());
        move || {
            // Before they are used: keys that are changed meanwhile are tried by the next run.
            let keys = source.decrypt.as_ref().and_then(keys_stamp);
            let names = Names::of(&known, &by, keys.as_deref());
            let mut watching = |progress: Progress<'_>| {
                // Who shows it may be slower than the line.
                let sign = (index, progress.name.to_owned(), progress.bytes, progress.size);
                let _shown_or_not = signs.try_send(sign);
                stop.requested().is_none()
                    && !over.load(Ordering::SeqCst)
                    && at_most.is_none_or(|most| began.elapsed() < most)
            };
            let is_known = |seen: &Seen| names.of_seen(seen).is_some();
            let haul = fetch(&source, &secrets, &spool, &is_known, &mut watching);
            Sent { index, known, keys, secrets, haul }
        }
    }

    /// Where a source's files lie until their lines are in the database: a place of this run, so
    /// that two runs never take each other's.
    fn spool(&self, source: &str) -> Spool {
        Spool::new(self.setup.spool_dir.join(self.run_id).join(source))
    }

    /// Brings in what came of one source.
    async fn take(&self, source: &Source, sent: Sent, tell: Tell<'_>) -> Result<(), RunError> {
        let Sent { known, keys, secrets, haul, .. } = sent;
        let mut note = SourceNote {
            source: source.name.clone(),
            account: source.account.clone().unwrap_or_default(),
            visible: count(haul.visible.len()),
            ..SourceNote::default()
        };
        let by = (self.setup.version.clone(), self.setup.config_sha256.clone());
        let names = Names::of(&known, &by, keys.as_deref());
        let mut settled: Vec<Settled> = Vec::new();
        let mut came: Vec<Fetched> = Vec::new();
        let mut sealed: Vec<(Fetched, SourceError)> = Vec::new();
        let mut failed: Vec<(String, SourceError)> = Vec::new();
        let mut refused: Vec<(String, &'static str)> = Vec::new();
        for outcome in haul.files {
            match outcome {
                Outcome::Fetched(fetched) => came.push(*fetched),
                Outcome::Sealed { fetched, error } => sealed.push((*fetched, error)),
                Outcome::Known(ready) => {
                    note.known = note.known.saturating_add(1);
                    settled.extend(names.settled(ready));
                }
                Outcome::Waiting { .. } => note.waiting = note.waiting.saturating_add(1),
                Outcome::Refused { name, why } => refused.push((name, why)),
                Outcome::Failed { name, error } => failed.push((name, error)),
            }
        }
        note.refused = count(refused.len());
        refused_text(source, &refused)
            .into_iter()
            .for_each(|text| tell(Told::Missed(Exit::Partial, text)));
        self.tell_failed(source, failed, &mut note, tell).await?;
        let opened = Opened { known: &known, keys: keys.as_deref().unwrap_or_default() };
        self.keep_sealed(source, sealed, &opened, &mut note, tell).await?;
        self.load(source, &came, &mut settled, &mut note, tell).await?;
        note_arrivals(self.db, source, &settled).await?;
        if let Some(error) = haul.ended.filter(|_| self.stop.requested().is_none()) {
            tell(Told::Missed(error.exit(), ended_text(source, &error, note.fetched)));
            note.failed = Some(error.to_string());
        }
        self.put_away(source, secrets, settled, &mut note, tell).await?;
        tell(Told::Done(Box::new(note)));
        Ok(())
    }

    /// Files that could not be had. One that is known by now was taken by somebody else.
    async fn tell_failed(
        &self,
        source: &Source,
        failed: Vec<(String, SourceError)>,
        note: &mut SourceNote,
        tell: Tell<'_>,
    ) -> Result<(), RunError> {
        if failed.is_empty() {
            return Ok(());
        }
        let known = self.db.known_names(&source.name).await;
        let known = known.doing("reading which files are known")?;
        let known: BTreeSet<&str> = known.iter().map(|known| known.name.as_str()).collect();
        for (name, error) in failed {
            if matches!(error, SourceError::Gone { .. }) && known.contains(name.as_str()) {
                note.known = note.known.saturating_add(1);
                continue;
            }
            note.refused = note.refused.saturating_add(1);
            let next = match &error {
                // It was listed: the path is right.
                SourceError::Gone { .. } => {
                    "it was moved or taken out since it was listed, or this login may not read \
                     it; the next run looks again"
                        .to_owned()
                }
                other => other.hint(&source.name),
            };
            let text = format!("source {}: {error}; next: {next}", source.name);
            tell(Told::Missed(error.exit(), text));
        }
        Ok(())
    }

    /// Files that no key opens: each is kept as it came, so that it is fetched again only where
    /// it, the keys or the configuration are others.
    async fn keep_sealed(
        &self,
        source: &Source,
        sealed: Vec<(Fetched, SourceError)>,
        opened: &Opened<'_>,
        note: &mut SourceNote,
        tell: Tell<'_>,
    ) -> Result<(), RunError> {
        let reading = reading_of(source, self.setup);
        let (db, run_id, stop) = (self.db, self.run_id, self.stop);
        let carrier = Carrier { db, run_id, stop, source: &source.name, reading: &reading };
        let spool = self.spool(&source.name);
        for (fetched, error) in sealed {
            note.fetched = note.fetched.saturating_add(1);
            note.bytes = note.bytes.saturating_add(fetched.bytes);
            let mut is_kept = false;
            if self.stop.requested().is_none() {
                let why = match &error {
                    SourceError::Sealed { problem, .. } => problem.clone(),
                    other => other.to_string(),
                };
                let (origin, before) = (self.origin(source, &fetched), opened.before(&fetched));
                let brought = carrier.sealed(&origin, opened.keys, &why, before).await?;
                is_kept = matches!(brought.what, What::Quarantined { .. });
                count_in(note, &brought);
                tell(Told::BroughtIn(Box::new(brought)));
            }
            if !is_kept {
                // What stays is in nobody's way: the next run sweeps it out.
                let _left = spool.forget(&fetched.sha256);
            }
        }
        Ok(())
    }

    async fn load(
        &self,
        source: &Source,
        came: &[Fetched],
        settled: &mut Vec<Settled>,
        note: &mut SourceNote,
        tell: Tell<'_>,
    ) -> Result<(), RunError> {
        let reading = reading_of(source, self.setup);
        let (db, run_id, stop) = (self.db, self.run_id, self.stop);
        let carrier = Carrier { db, run_id, stop, source: &source.name, reading: &reading };
        let mut kept: HashSet<&str> = HashSet::new();
        for fetched in came {
            if stop.requested().is_some() {
                break;
            }
            note.fetched = note.fetched.saturating_add(1);
            note.bytes = note.bytes.saturating_add(fetched.bytes);
            let brought = carrier.bring(&self.parcel(source, fetched)).await?;
            let all_count = brought
                .iter()
                .all(|one| matches!(one.what, What::Loaded { .. } | What::Known { .. }));
            if brought.iter().any(|one| matches!(one.what, What::Quarantined { .. })) {
                kept.insert(&fetched.sha256);
            }
            if all_count && stop.requested().is_none() {
                settled.push(Settled::from(fetched));
            }
            for one in brought {
                count_in(note, &one);
                tell(Told::BroughtIn(Box::new(one)));
            }
        }
        let spool = self.spool(&source.name);
        for fetched in came.iter().filter(|fetched| !kept.contains(fetched.sha256.as_str())) {
            // What stays is in nobody's way: the next run sweeps it out.
            let _left = spool.forget(&fetched.sha256);
        }
        spool.leave();
        Ok(())
    }

    fn parcel(&self, source: &Source, fetched: &Fetched) -> Parcel {
        let path = fetched.readable().to_owned();
        Parcel { origin: Some(self.origin(source, fetched)), path }
    }

    fn origin(&self, source: &Source, fetched: &Fetched) -> Origin {
        let file = fetched.readable().file_name().unwrap_or_default();
        let place: PathBuf = [self.run_id, &source.name].iter().collect();
        Origin {
            name: fetched.seen.name.clone(),
            raw_sha256: fetched.sha256.clone(),
            raw_bytes: fetched.bytes,
            modified_at: fetched.seen.written().map(to_micros),
            spooled_as: place.join(file).to_string_lossy().into_owned(),
        }
    }

    /// Puts away what is committed, now or by a run before that did not come so far.
    async fn put_away(
        &self,
        source: &Source,
        secrets: Secrets,
        settled: Vec<Settled>,
        note: &mut SourceNote,
        tell: Tell<'_>,
    ) -> Result<(), RunError> {
        let is_over = note.failed.is_some() || self.stop.requested().is_some();
        if source.archive.is_none() || settled.is_empty() || is_over {
            return Ok(());
        }
        let (at, files) = (source.clone(), settled.clone());
        let moved = tokio::task::spawn_blocking(move || archive(&at, &secrets, &files)).await;
        let failed = match moved {
            Ok(Ok(failed)) => failed,
            Ok(Err(error)) => vec![(String::new(), error)],
            Err(error) => {
                let text = format!("archiving at source {} ended by a bug: {error}", source.name);
                tell(Told::Missed(Exit::Internal, text));
                return Ok(());
            }
        };
        let is_none = failed.iter().any(|(name, _)| name.is_empty());
        let left: HashSet<String> = failed.iter().map(|(name, _)| name.clone()).collect();
        let now = self.db.now().await.doing("reading the database's clock")?;
        for file in settled.iter().filter(|file| !is_none && !left.contains(&file.seen.name)) {
            let noted =
                self.db.note_archived(&source.name, &file.seen.name, &file.sha256, now).await;
            noted.doing("noting that a file was put away")?;
            note.archived = note.archived.saturating_add(1);
        }
        let all = if is_none { settled.len() } else { 0 };
        tell_left(source, &failed, count(all), note, tell);
        Ok(())
    }
}

/// What to say of names that are never read, in one line: each run tells of them.
fn refused_text(source: &Source, refused: &[(String, &'static str)]) -> Option<String> {
    let ((name, why), own) = (refused.first()?, &source.name);
    let name = name.escape_debug();
    Some(match refused.len() {
        1 => format!(
            "source {own}: {name} is not read: {why}; remove it there, or let `glob` leave it out"
        ),
        many => format!(
            "source {own}: {many} names are not read, as {name}: {why}; remove them there, or let \
             `glob` leave them out; all of them: tieout sources test {own} --json"
        ),
    })
}

/// Tells of files that could not be put away, in one line: each run would tell of each of them.
/// None of `all` was tried where the source itself could not be opened.
fn tell_left(
    source: &Source,
    failed: &[(String, SourceError)],
    all: u64,
    note: &mut SourceNote,
    tell: Tell<'_>,
) {
    // Another file has the name now: it is new, and the next run's.
    let is_left =
        |(_, error): &&(String, SourceError)| !matches!(error, SourceError::Changed { .. });
    let mut left = failed.iter().filter(is_left);
    let Some((name, error)) = left.next() else { return };
    note.not_archived = all.max(count(left.count()).saturating_add(1));
    note.archive_problem = Some(error.to_string());
    let first = if name.is_empty() { String::new() } else { format!("{}: ", name.escape_debug()) };
    let what = match note.not_archived {
        1 => format!("1 file was not put away: {first}{error}; its lines count, and it lies"),
        many => format!(
            "{many} files were not put away: {first}{error}; their lines count, and they lie"
        ),
    };
    let lay = if note.not_archived == 1 { "it was" } else { "they were" };
    let next = match error {
        SourceError::Gone { .. } => {
            "let the login make and fill that folder, or leave `archive` out".to_owned()
        }
        other => other.hint(&source.name),
    };
    let text = format!("source {}: {what} where {lay}; next: {next}", source.name);
    tell(Told::Missed(error.exit(), text));
}

fn ended_text(source: &Source, error: &SourceError, fetched: u64) -> String {
    let before = match fetched {
        0 => "no file of it was read".to_owned(),
        1 => "1 file before it was read".to_owned(),
        many => format!("{many} files before it were read"),
    };
    let next = error.hint(&source.name);
    format!("source {}: {error}; {before}; next: {next}", source.name)
        .replace("; nothing was read; no file of it was read;", "; nothing was read;")
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn count_in(note: &mut SourceNote, one: &BroughtIn) {
    match &one.what {
        What::Loaded { held, .. } => {
            note.loaded = note.loaded.saturating_add(1);
            note.held_statements = note.held_statements.saturating_add(*held);
            let lines = one.sums.as_ref().map_or(0, |sums| sums.lines);
            note.lines = note.lines.saturating_add(lines);
        }
        What::Known { .. } => note.known = note.known.saturating_add(1),
        What::Quarantined { .. } => note.quarantined = note.quarantined.saturating_add(1),
        What::Unreadable { .. } | What::Stopped => note.refused = note.refused.saturating_add(1),
    }
}

/// How a source's files are read.
pub fn reading_of(source: &Source, setup: &Setup) -> Reading {
    let by = source.format.as_deref().and_then(|name| {
        let described = setup.formats.iter().find(|table| table.name == name);
        let own = || Format::parse(name).map(By::Format);
        own().or_else(|| described.map(|table| By::Table(Box::new(table.clone()))))
    });
    Reading {
        account: source.account.clone().unwrap_or_default(),
        by: by.unwrap_or(By::Content),
        encoding: None,
        currency: source.currency,
        tags: source.tags.clone(),
    }
}

/// What is known of a source's files that may be encrypted.
struct Opened<'a> {
    known: &'a [KnownName],
    /// The stamp of the keys that they are opened with; empty where none could be read.
    keys: &'a str,
}

impl Opened<'_> {
    /// The file that these bytes are, opened with keys that are not here any more.
    fn before(&self, fetched: &Fetched) -> Option<i64> {
        let is_it = |known: &&KnownName| {
            known.raw_sha256 == fetched.sha256 && known.state != FileState::Quarantined
        };
        self.known.iter().find(is_it).map(|known| known.file)
    }
}

/// What is known of a source's names.
struct Names<'a> {
    by_name: BTreeMap<&'a str, Vec<&'a KnownName>>,
}

impl<'a> Names<'a> {
    /// A file that is quarantined is no known one where another version or configuration read it;
    /// nor one that no key opened, where the keys are others.
    fn of(known: &'a [KnownName], by: &(String, String), keys: Option<&str>) -> Self {
        let mut by_name: BTreeMap<&str, Vec<&KnownName>> = BTreeMap::new();
        for one in known {
            let is_open = one.state == FileState::Quarantined && !one.is_settled;
            let tried = one.tried_keys.as_deref();
            let is_tried = tried.is_none_or(|tried| keys == Some(tried));
            if !is_open || (one.read_by == *by && is_tried) {
                by_name.entry(&one.name).or_default().push(one);
            }
        }
        Self { by_name }
    }

    fn of_seen(&self, seen: &Seen) -> Option<&'a KnownName> {
        let size = i64::try_from(seen.size).ok()?;
        let written = seen.written().map(to_micros);
        let mut known = self.by_name.get(seen.name.as_str())?.iter().copied();
        known.find(|known| known.raw_bytes == size && known.modified_at == written)
    }

    /// A known file whose lines are committed.
    fn settled(&self, ready: Ready) -> Option<Settled> {
        let known = self.of_seen(&ready.seen)?;
        let Ready { seen, marker } = ready;
        (known.state != FileState::Quarantined).then(|| Settled {
            seen,
            marker,
            sha256: known.raw_sha256.clone(),
        })
    }
}
