//! Letting a file count that does not by itself. A person's word is only noted; the next run
//! carries it out, whoever said it: a quarantined file is read once more from the bytes that were
//! kept, a held one is there already. There is one way for every database and login, so that what
//! decides rows is written by runs alone, and a run's record says when it began to count.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use tokio::sync::mpsc;

use crate::decide::settled::last_booked;
use crate::exit::Exit;
use crate::model::count::counted;
use crate::model::money::Currency;
use crate::model::settlement::{Direction, Problem};
use crate::model::time::Instant;
use crate::report::advice::Content;
use crate::run::bring::{OPEN_NEXT, OPENS, UNKNOWN, blocking, hash};
use crate::run::error::{Doing, RunError};
use crate::run::fetch::{Tell, Told, reading_of};
use crate::run::host_name;
use crate::run::ingest::LOCAL;
use crate::run::parts::{Begun, By, Reading};
use crate::run::setup::Setup;
use crate::run::shutdown::Stop;
use crate::run::spool::sweep;
use crate::settlement::Format;
use crate::settlement::bank_csv::SOMETHING;
use crate::settlement::tags::TagRules;
use crate::settlement::unwrap::members;
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::error::StoreError;
use crate::store::files::{FileDriver, FileFilter, FileRow, FileState, NewLine, Part, SEALED};
use crate::store::release::{About, Difference, Release, Said, Spoken, Word};

/// Parts between the parser and the database.
const AHEAD: usize = 4;

/// Why a file cannot be let count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// No format knows it.
    Unknown,
    /// It does not open: it was cut or damaged, or is an archive that is not read.
    Shut(String),
    /// No key opens it.
    Sealed(String),
    /// Nothing in it shows which way money went.
    NoSides,
    /// It has no line that can be read.
    NoLines,
    /// Its bytes were not kept.
    NotKept,
    /// They were kept on this other machine, and are not on this one.
    Elsewhere(String),
    /// They are not any more where they were kept.
    Gone(String),
    /// Others lie where they were kept.
    Others(String),
    /// They cannot be read.
    Unreadable(String),
    /// The database does not take its lines.
    Unloadable(String),
    /// It does not tie, and so many lines of a statement that does would count no more.
    Untied(usize),
    /// A later issue of all that it holds came by this file, and was let count.
    Later(i64),
    /// It is not any more what it was when the word was said.
    Changed,
}

impl Refused {
    /// Why.
    pub fn text(&self) -> String {
        match self {
            Self::Unknown => "no format knows it, so that no line of it can be read".to_owned(),
            Self::Shut(why) => format!("no line of it can be read: {why}"),
            Self::Sealed(why) => format!("it cannot be decrypted: {why}"),
            Self::NoSides => {
                "nothing in it shows which way money went, so that its lines would be guesses"
                    .to_owned()
            }
            Self::NoLines => "it has no line that can be read".to_owned(),
            Self::NotKept => "its bytes were not kept".to_owned(),
            Self::Elsewhere(host) => format!("its bytes were kept on {host}, and are not here"),
            Self::Gone(place) => format!("its bytes are not at {place} any more"),
            Self::Others(place) => {
                format!("what lies at {place} is another file: its SHA-256 is not this one's")
            }
            Self::Unreadable(why) => format!("its bytes cannot be read: {why}"),
            Self::Unloadable(why) => format!("its lines cannot be kept: {why}"),
            Self::Untied(lines) => {
                let lines = counted(lines, "line", "lines");
                format!("it does not tie, and {lines} of a statement that does would count no more")
            }
            Self::Later(file) => format!("file {file} came later with the same, and counts"),
            Self::Changed => "it is not any more what it was when that was said".to_owned(),
        }
    }

    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unknown => {
                "describe it as a [[format]] and name that in its [[source]]: it is read again then"
            }
            Self::Shut(_) => {
                "fetch it again, or ask whoever sends it for one that opens: it is brought in \
                 beside this one, which can never be let count"
            }
            Self::Sealed(_) => OPEN_NEXT,
            Self::NoSides => {
                "ask whoever sends it for a file that shows it, or describe it as a [[format]] \
                 (debit and credit, or a flag) and name that in its [[source]]: it is read again \
                 then"
            }
            Self::NotKept | Self::Gone(_) | Self::Others(_) => {
                "bring it in again with `tieout ingest FILE`, then release it"
            }
            Self::Elsewhere(_) => {
                "let a run there carry it out, or bring it in here with `tieout ingest FILE`: the \
                 next run carries it out then"
            }
            Self::Unreadable(_) => {
                "look at files.spool, or bring it in again with `tieout ingest FILE`, then release \
                 it"
            }
            Self::NoLines => {
                "ask whoever sends it for a file that can be read; where there is none to come, \
                 end its case with `tieout cases propose CASE --as left`"
            }
            Self::Unloadable(_) | Self::Untied(_) => "ask whoever sends it for a file that ties",
            Self::Later(_) => {
                "leave it held, and end its case with `tieout cases propose CASE --as left`; where \
                 the earlier issue is the right one, ask whoever sends it for a new one"
            }
            Self::Changed => "look at it with `tieout files show FILE`, and say it again",
        }
    }
}

/// What became of a word that waited.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ReleasedNote {
    /// The file.
    pub file: i64,
    /// Its name.
    pub name: String,
    /// Who said it.
    pub by: String,
    /// Why, as they said it.
    pub why: String,
    /// Its lines were loaded; false: they were there already.
    pub loaded: bool,
    /// Lines that count from now on, but for those of statements that are held.
    pub added: u64,
    /// Lines that count no more.
    pub removed: u64,
    /// Its statements that are held now.
    pub held: i64,
    /// Why it was not carried out, where it was not.
    pub refused: Option<String>,
}

/// Why a file cannot be let count, as far as that can be told without its bytes.
///
/// # Errors
/// Where the database could not go on.
pub async fn refusal(
    setup: &Setup,
    db: &Database,
    file: &FileRow,
) -> Result<Option<Refused>, RunError> {
    if file.state == FileState::Quarantined {
        return Ok(match (reading(setup, file), &file.spooled_as) {
            (None, _) => Some(unread(file)),
            _ if file.problems.iter().any(Problem::leaves_sides_open) => Some(Refused::NoSides),
            (Some(_), None) => Some(Refused::NotKept),
            (Some(_), Some(_)) => None,
        });
    }
    let differences = db.differences(file.id).await;
    let differences = differences.doing("comparing a statement with its earlier issues")?;
    let later: Option<Vec<i64>> = differences.iter().map(|difference| difference.later).collect();
    if let Some(later) = later.and_then(|files| files.into_iter().max()) {
        return Ok(Some(Refused::Later(later)));
    }
    Ok(ousted(file, &differences).map(Refused::Untied))
}

/// What is known of a file that has a case.
pub fn content_of(file: &FileRow) -> Content {
    match unread(file) {
        Refused::Shut(_) => Content::Shut,
        Refused::Sealed(_) => Content::Sealed,
        _unknown if file.format == UNKNOWN => Content::Unknown,
        _read => Content::Known,
    }
}

/// Why nothing of a file was read.
fn unread(file: &FileRow) -> Refused {
    let is_shut = |problem: &&Problem| [OPENS, SOMETHING].contains(&problem.expected.as_str());
    let shut = file.problems.iter().find(is_shut);
    match (shut, file.problems.first()) {
        (Some(problem), _) => Refused::Shut(problem.found.clone()),
        (None, Some(problem)) if file.format == SEALED => Refused::Sealed(problem.found.clone()),
        (None, _) => Refused::Unknown,
    }
}

/// What a release of a quarantined file would load.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preview {
    /// Lines.
    pub lines: u64,
    /// By currency: what comes in and what goes out, in minor units.
    pub sums: BTreeMap<Currency, (i128, i128)>,
    /// How many problems the file has.
    pub problems: u64,
}

impl Preview {
    fn add(&mut self, part: Part) {
        match part {
            Part::Lines(lines) => lines.iter().for_each(|line| self.line(line)),
            Part::Whole(sums) | Part::Quarantine(sums) => self.problems = sums.problems_total,
            Part::Statement(_) | Part::StatementEnd(_) => {}
        }
    }

    fn line(&mut self, line: &NewLine) {
        self.lines = self.lines.saturating_add(1);
        let (credit, debit) = self.sums.entry(line.currency).or_default();
        let side = if line.booked_way() == Direction::Credit { credit } else { debit };
        *side = side.saturating_add(line.minor.unwrap_or_default().into());
    }
}

/// Reads a quarantined file once more, and changes nothing: what its release would load. None where
/// it cannot be read here: the run that carries the word out says so.
pub async fn preview(setup: &Setup, file: &FileRow) -> Option<Preview> {
    let reading = reading(setup, file)?;
    let path = setup.spool_dir.join(file.spooled_as.as_deref()?);
    let (sha256, how) = (file.sha256.clone(), reading.clone());
    let begun = blocking(move || begin(&path, &sha256, &how)).await.ok()??;
    let (sender, mut receiver) = mpsc::channel(AHEAD);
    let last = last_booked(crate::clock::now());
    let stop = Stop::new();
    let read =
        tokio::task::spawn_blocking(move || begun.read(&reading, &sender, &stop, last, || true));
    let mut preview = Preview::default();
    while let Some(part) = receiver.recv().await {
        preview.add(part);
    }
    read.await.ok().map(|_sums| preview)
}

/// Notes a person's word, and changes nothing.
///
/// # Errors
/// Where the database could not go on; nothing was noted.
pub async fn ask(db: &Database, file: &FileRow, word: &Word) -> Result<Said, RunError> {
    let now = db.now().await.doing("reading the database's clock")?;
    db.ask_release(file.id, word, now).await.doing("noting that a file may count")
}

/// The words that wait, in their order, each with its file; of these accounts alone.
///
/// # Errors
/// Where the database could not go on.
pub(super) async fn waiting(
    db: &Database,
    is_asked: impl Fn(&str) -> bool,
) -> Result<Vec<(Spoken, FileRow)>, RunError> {
    let mut all = Vec::new();
    for spoken in db.releases_waiting(None).await.doing("reading which files may count")? {
        if let Some(file) = file_by(db, spoken.file).await?.filter(|file| is_asked(&file.account)) {
            all.push((spoken, file));
        }
    }
    Ok(all)
}

async fn file_by(db: &Database, id: i64) -> Result<Option<FileRow>, RunError> {
    let filter = FileFilter { id: Some(id), limit: 1, ..FileFilter::default() };
    Ok(db.files(&filter).await.doing("reading a file that may count")?.pop())
}

/// Who carries words out.
pub(super) struct Releasing<'a> {
    /// The configuration.
    pub(super) setup: &'a Setup,
    /// The database.
    pub(super) db: &'a Database,
    /// The run.
    pub(super) run_id: &'a str,
    /// The request to stop.
    pub(super) stop: &'a Stop,
}

impl Releasing<'_> {
    /// Carries out what people said of files of these accounts, in its order: each in a
    /// transaction of its own, or not at all. What cannot be is refused, and told. The accounts
    /// are told whose statements are others now.
    ///
    /// # Errors
    /// Where the database could not go on; each word before was carried out or refused, whole.
    pub(super) async fn all(
        &self,
        is_asked: impl Fn(&str) -> bool,
        tell: Tell<'_>,
    ) -> Result<BTreeSet<String>, RunError> {
        let mut changed = BTreeSet::new();
        let mut is_loaded = false;
        for (spoken, file) in waiting(self.db, is_asked).await? {
            if self.stop.requested().is_some() {
                break;
            }
            let now = self.db.now().await.doing("reading the database's clock")?;
            match self.one(&spoken, &file, now).await? {
                Ok(Release::Done { added, removed }) => {
                    is_loaded |= spoken.about == About::Quarantined;
                    changed.insert(file.account.clone());
                    let note = self.note(&spoken, &file, (added, removed)).await?;
                    let held = note.held;
                    tell(Told::Released(Box::new(note)));
                    if spoken.about == About::Quarantined && held > 0 {
                        tell_held(file.id, held, tell);
                    }
                }
                Ok(Release::Dropped) => tell_dropped(&file, self.stop, tell),
                Err(why @ Refused::Elsewhere(_)) => tell_left(&file, &why, tell),
                Ok(Release::Nothing) => {
                    self.refuse(&spoken, &file, &Refused::Changed, tell).await?;
                }
                Ok(Release::Empty) => {
                    self.refuse(&spoken, &file, &Refused::NoLines, tell).await?;
                }
                Ok(Release::Later(later)) => {
                    self.refuse(&spoken, &file, &Refused::Later(later), tell).await?;
                }
                Err(why) => self.refuse(&spoken, &file, &why, tell).await?,
            }
        }
        if is_loaded {
            // Another file of the same archive may still need those bytes: what none needs goes.
            sweep(self.setup, self.db, self.run_id).await?;
        }
        Ok(changed)
    }

    async fn one(
        &self,
        spoken: &Spoken,
        file: &FileRow,
        now: Instant,
    ) -> Result<Result<Release, Refused>, RunError> {
        let is_quarantined = file.state == FileState::Quarantined;
        if is_quarantined != (spoken.about == About::Quarantined) {
            return Ok(Err(Refused::Changed));
        }
        if let Some(why) = refusal(self.setup, self.db, file).await? {
            return Ok(Err(why));
        }
        if is_quarantined {
            return self.load(spoken, file, now).await;
        }
        let done = self.db.release_held(self.run_id, spoken, now).await;
        done.doing("letting a file's statements count").map(Ok)
    }

    /// Reads a quarantined file once more, and loads its lines.
    async fn load(
        &self,
        spoken: &Spoken,
        file: &FileRow,
        now: Instant,
    ) -> Result<Result<Release, Refused>, RunError> {
        let Some(reading) = reading(self.setup, file) else { return Ok(Err(unread(file))) };
        let Some(place) = &file.spooled_as else { return Ok(Err(Refused::NotKept)) };
        let path = self.setup.spool_dir.join(place);
        let place = path.display().to_string();
        let (sha256, how) = (file.sha256.clone(), reading.clone());
        let begun = match blocking(move || begin(&path, &sha256, &how)).await {
            Ok(Some(begun)) => begun,
            Ok(None) => return Ok(Err(Refused::Others(place))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Err(self.gone(file, place).await?));
            }
            Err(error) => return Ok(Err(Refused::Unreadable(error.to_string()))),
        };
        let (sender, receiver) = mpsc::channel(AHEAD);
        let stop = self.stop.clone();
        let last = last_booked(now);
        let read = tokio::task::spawn_blocking(move || {
            begun.read(&reading, &sender, &stop, last, || true)
        });
        let done = self.db.release_quarantined(self.run_id, spoken, receiver, now).await;
        // A parser that ended by a panic closed the channel: nothing was changed.
        let _sums = read.await;
        match done {
            Err(error) if is_of_file(&error) => Ok(Err(Refused::Unloadable(error.to_string()))),
            done => done.doing("letting a quarantined file count").map(Ok),
        }
    }

    /// Bytes that are not here: another machine's run may have kept them in a spool of its own.
    async fn gone(&self, file: &FileRow, place: String) -> Result<Refused, RunError> {
        let kept_by = file.spooled_as.as_deref().and_then(|kept| kept.split_once('/'));
        let Some((run_id, _)) = kept_by else { return Ok(Refused::Gone(place)) };
        let run = self.db.run(run_id).await.doing("looking where a file is kept")?;
        let host = run.map(|run| run.host).filter(|host| *host != host_name());
        Ok(host.map_or(Refused::Gone(place), Refused::Elsewhere))
    }

    /// What became of a word that was carried out.
    async fn note(
        &self,
        spoken: &Spoken,
        file: &FileRow,
        (added, removed): (u64, u64),
    ) -> Result<ReleasedNote, RunError> {
        let held = file_by(self.db, file.id).await?.map_or(0, |file| file.held);
        Ok(ReleasedNote {
            file: file.id,
            name: file.name.clone(),
            by: spoken.word.by.clone(),
            why: spoken.word.why.clone(),
            loaded: spoken.about == About::Quarantined,
            added,
            removed,
            held,
            refused: None,
        })
    }

    /// Ends a word that cannot be carried out, and tells, once; none that another run ended.
    async fn refuse(
        &self,
        spoken: &Spoken,
        file: &FileRow,
        refused: &Refused,
        tell: Tell<'_>,
    ) -> Result<(), RunError> {
        let why = refused.text();
        let now = self.db.now().await.doing("reading the database's clock")?;
        let ended = self.db.refuse_release(self.run_id, spoken, &why, now).await;
        if !ended.doing("refusing to let a file count")? {
            return Ok(());
        }
        let (id, by, next) = (file.id, &spoken.word.by, refused.hint());
        let text = format!(
            "file {id} was released by {by}, and that was not carried out: {why}; nothing of it \
             was changed; next: {next}"
        );
        let note = self.note(spoken, file, (0, 0)).await?;
        tell(Told::Released(Box::new(ReleasedNote { refused: Some(why), ..note })));
        tell(Told::Missed(Exit::Partial, text));
        Ok(())
    }
}

/// Statements of a file that was let count which another word has to let count.
fn tell_held(id: i64, held: i64, tell: Tell<'_>) {
    let text = format!(
        "file {id} is released, and {held} of its statements are held: none of those lines counts; \
         next: `tieout files show {id}` says which, and beside what"
    );
    tell(Told::Missed(Exit::Partial, text));
}

/// A file that was not read to its end: the word waits for the next run.
fn tell_dropped(file: &FileRow, stop: &Stop, tell: Tell<'_>) {
    if stop.requested().is_some() {
        return;
    }
    let id = file.id;
    let text = format!(
        "file {id} was not read to its end; nothing of it was changed; next: the next run reads it \
         again"
    );
    tell(Told::Missed(Exit::Partial, text));
}

/// A word that waits for a run of another machine.
fn tell_left(file: &FileRow, why: &Refused, tell: Tell<'_>) {
    let (id, what, next) = (file.id, why.text(), why.hint());
    let text = format!(
        "file {id} is released, and that was not carried out: {what}; nothing of it was changed; \
         next: {next}"
    );
    tell(Told::Missed(Exit::Partial, text));
}

/// Whether an error is the file's own, and would be the next run's too.
fn is_of_file(error: &StoreError) -> bool {
    let is_refused = error.is_of_values() || error.is_of_class("23");
    is_refused || matches!(error, StoreError::Unexpected { .. })
}

/// How many lines of statements that tie an untied file would take out: it may stand beside them,
/// and never in their place.
fn ousted(file: &FileRow, differences: &[Difference]) -> Option<usize> {
    if file.state != FileState::Released {
        return None;
    }
    let counting = differences.iter().filter(|difference| difference.later.is_none());
    let removed = counting.flat_map(|difference| &difference.removed);
    let lost = removed.filter(|line| !line.untied).count();
    (lost > 0).then_some(lost)
}

/// How the file was read; none where no format knew it.
fn reading(setup: &Setup, file: &FileRow) -> Option<Reading> {
    let source = setup.sources.iter().find(|source| source.name == file.source);
    let own = source.map(|source| reading_of(source, setup));
    let described = || setup.formats.iter().find(|table| table.name == file.version);
    let by = match Format::parse(&file.format) {
        Some(Format::Table) => By::Table(Box::new(described()?.clone())),
        Some(format) => By::Format(format),
        None => match file.format.as_str() {
            "table" => By::Table(Box::new(described()?.clone())),
            _unknown => return None,
        },
    };
    let encoding = file.encoding.clone().or_else(|| own.as_ref()?.encoding.clone());
    let tags = match own {
        Some(own) => own.tags,
        None if file.source == LOCAL => tags_of(setup, &file.account),
        None => TagRules::default(),
    };
    // What was said when it came, whatever its source says by now.
    let is_bank_csv = matches!(by, By::Format(Format::BankCsv));
    let currency = Currency::parse_any(&file.version).ok().filter(|_| is_bank_csv);
    Some(Reading { account: file.account.clone(), by, encoding, currency, tags })
}

/// The rules by which a file that no source brought is read: those of the account's only source.
pub fn tags_of(setup: &Setup, account: &str) -> TagRules {
    let mut own = setup.sources.iter().filter(|one| one.account.as_deref() == Some(account));
    let only = own.next().filter(|_| own.next().is_none());
    only.map(|source| source.tags.clone()).unwrap_or_default()
}

/// The file of this hash in what is kept: itself, or one of an archive.
fn begin(path: &Path, sha256: &str, how: &Reading) -> io::Result<Option<Begun>> {
    for member in members(path)? {
        if hash(&mut *member.open()?)? == sha256 {
            return Begun::open(member.open()?, how).map(Some);
        }
    }
    Ok(None)
}
