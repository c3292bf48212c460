//! Bringing one settlement file in: from its bytes on this machine to lines in the database.
//!
//! A file is hashed without its wrapping, parsed and checked on a thread of its own while the
//! store writes, and counts only if it ties. Whoever gave the path, a person or a source, it is
//! done here.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use crate::decide::settled::last_booked;
use crate::exit::Exit;
use crate::model::settlement::{Problem, Severity};
use crate::model::time::{Instant, to_micros};
use crate::model::transaction::hex;
use crate::run::error::{Doing, RunError};
use crate::run::parts::{Begun, Reading};
use crate::run::shutdown::Stop;
use crate::settlement::bank_csv;
use crate::settlement::ledger::Sums;
use crate::settlement::unwrap::{Member, members};
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::error::StoreError;
use crate::store::files::{
    FileDriver, FileEnd, FileFilter, FileHead, FileSums, Held, Part, SEALED, Sighting,
    StatementRow, StatementState,
};

/// Parts between the parser and the database: a few thousand lines.
const AHEAD: usize = 4;

/// Statements read at once.
const STATEMENTS: i64 = 1_000;

/// What stands for the format of a file that none knows.
pub(super) const UNKNOWN: &str = "unknown";

/// What a file is expected to be whose content is not even reached.
pub(super) const OPENS: &str = "a file or an archive that opens";

/// What to do about one that no key opens.
pub(super) const OPEN_NEXT: &str = "ask the sender for it again, or look at [source.decrypt] where \
                                    the key is what is wrong; with other keys it is fetched again";

/// What became of one file.
#[derive(Debug, Clone)]
pub struct BroughtIn {
    /// Where it came from; `local` for a path that a person gave.
    pub source: String,
    /// Its name; within an archive, that of the archive before it.
    pub name: String,
    /// The same with its folder, as a person gave it: files of one name in two folders are told
    /// apart by it alone.
    pub path: Option<String>,
    /// SHA-256 of its bytes without any wrapping; empty where they could not be read.
    pub sha256: String,
    /// The format's word.
    pub format: &'static str,
    /// The version that it names.
    pub version: String,
    /// What became of it.
    pub what: What,
    /// What it adds up to, where it was read.
    pub sums: Option<Sums>,
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Its lines are there.
    Loaded {
        /// Its number.
        id: i64,
        /// Statements that are held.
        held: u64,
    },
    /// The same bytes came before.
    Known {
        /// The number that they have.
        id: i64,
        /// The account that they came for, where it is another one.
        account: Option<String>,
        /// The file that corrected a statement of it since.
        corrected_by: Option<i64>,
    },
    /// It is kept, and none of its lines counts.
    Quarantined {
        /// Its number.
        id: i64,
        /// Why, where its content was not even reached.
        why: Option<String>,
    },
    /// It could not be read; nothing is kept.
    Unreadable {
        /// Why.
        why: String,
        /// What to do next.
        next: &'static str,
    },
    /// It was asked to stop, or the file changed meanwhile; nothing is kept.
    Stopped,
}

impl What {
    /// The exit that it leads to.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Loaded { held: 0, .. }
            | Self::Known { account: None, corrected_by: None, .. } => Exit::Ok,
            Self::Loaded { .. }
            | Self::Known { .. }
            | Self::Quarantined { .. }
            | Self::Unreadable { .. }
            | Self::Stopped => Exit::Partial,
        }
    }

    /// The stable word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Loaded { .. } => "loaded",
            Self::Known { .. } => "known",
            Self::Quarantined { .. } => "quarantined",
            Self::Unreadable { .. } => "unreadable",
            Self::Stopped => "stopped",
        }
    }

    /// Its number, where it is kept.
    pub fn id(&self) -> Option<i64> {
        match self {
            Self::Loaded { id, .. } | Self::Known { id, .. } | Self::Quarantined { id, .. } => {
                Some(*id)
            }
            Self::Unreadable { .. } | Self::Stopped => None,
        }
    }
}

impl BroughtIn {
    /// Whether there is nothing in it.
    fn is_nothing(&self) -> bool {
        self.problem().is_some_and(|problem| problem.expected == bank_csv::SOMETHING)
    }

    /// What a person knows it by.
    pub fn shown(&self) -> &str {
        self.path.as_deref().unwrap_or(&self.name)
    }

    /// The worst of what is wrong with it, where something is.
    pub fn problem(&self) -> Option<&Problem> {
        let problems = self.sums.iter().flat_map(|sums| &sums.problems);
        let worst = problems.clone().find(|problem| problem.severity == Severity::Error);
        worst.or_else(|| problems.into_iter().next())
    }

    /// What is wrong with it, in words.
    pub fn problem_text(&self) -> Option<String> {
        match &self.what {
            What::Unreadable { why, .. } | What::Quarantined { why: Some(why), .. } => {
                Some(why.clone())
            }
            What::Loaded { .. }
            | What::Known { .. }
            | What::Quarantined { why: None, .. }
            | What::Stopped => self.problem().map(ToString::to_string),
        }
    }

    /// What a person has to do something about: what happened, and what to do next.
    pub fn trouble(&self) -> Option<(String, String)> {
        match &self.what {
            What::Loaded { held: 0, .. }
            | What::Known { account: None, corrected_by: None, .. } => None,
            What::Known { id, account: None, corrected_by: Some(later) } => Some((
                format!(
                    "the same bytes are file {id} already, and file {later} corrected them since; \
                     nothing was changed"
                ),
                format!(
                    "`tieout files show {id}` and `tieout files show {later}` say what counts; if \
                     the correction was taken back, ask the sender for the statement as a new \
                     message, with an id of its own"
                ),
            )),
            What::Known { id, account: Some(account), .. } => Some((
                format!(
                    "the same bytes are file {id} already, of the account {account}; nothing was \
                     changed"
                ),
                format!(
                    "`tieout files show {id}` shows what became of it: its lines are held against \
                     rows of {account} alone; if that is the wrong account, bring a new export of \
                     it in for the right one"
                ),
            )),
            What::Loaded { id, held } => Some((
                format!("{held} of its statements are held, and none of those lines counts"),
                format!("`tieout files show {id}` says which, and beside what"),
            )),
            What::Quarantined { id, why } => {
                // What other files tell otherwise was found out when its lines were there.
                let is_told = why.is_some()
                    || self.problem().is_some_and(|problem| problem.severity == Severity::Error);
                let what = self.problem_text().filter(|_| is_told);
                let what = what.unwrap_or_else(|| {
                    format!("another file has it otherwise: `tieout files show {id}`")
                });
                let text = format!("quarantined as file {id}, none of its lines counts: {what}");
                let next = match (self.format, why) {
                    (SEALED, _) => OPEN_NEXT,
                    (UNKNOWN, None) if self.is_nothing() => {
                        "ask for the file again: there is nothing in this one"
                    }
                    (UNKNOWN, None) => {
                        "describe it as a [[format]], or name the format that it has as `format` \
                         of its [[source]]: it is read again then; where it is not the file that \
                         was meant, ask for that one"
                    }
                    _read => "ask for the file again; a right one is brought in beside it",
                };
                Some((text, next.to_owned()))
            }
            What::Unreadable { why, next } => {
                let text = format!("it cannot be read: {why}; nothing of it was kept");
                Some((text, (*next).to_owned()))
            }
            What::Stopped => Some((
                "it was not read to its end, or changed meanwhile; nothing of it was kept"
                    .to_owned(),
                "bring it in again".to_owned(),
            )),
        }
    }
}

/// How a source showed a file that was fetched.
#[derive(Debug, Clone)]
pub struct Origin {
    /// Its name there: data, never a path.
    pub name: String,
    /// SHA-256 of the bytes as they came.
    pub raw_sha256: String,
    /// How many bytes came.
    pub raw_bytes: u64,
    /// When they were last changed there.
    pub modified_at: Option<Instant>,
    /// Where the bytes to read lie, relative to the spool.
    pub spooled_as: String,
}

/// A path about to be brought in.
#[derive(Debug, Clone)]
pub struct Parcel {
    /// Where its bytes lie; they may be wrapped.
    pub path: PathBuf,
    /// How a source showed it; none: a person gave the path.
    pub origin: Option<Origin>,
}

/// Who brings files in, and how they are read.
pub struct Carrier<'a> {
    /// The database.
    pub db: &'a Database,
    /// The run that brings them in.
    pub run_id: &'a str,
    /// The request to stop.
    pub stop: &'a Stop,
    /// The source's name; `local` for paths that a person gave.
    pub source: &'a str,
    /// How the files are read.
    pub reading: &'a Reading,
}

/// A file, or one of an archive, about to be read.
struct Ready {
    name: String,
    stamp: Stamp,
    sighting: Sighting,
    shut_sha256: String,
    spooled_as: Option<String>,
    sha256: String,
    begun: Begun,
}

/// What shows that a file is still the one that was hashed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    path: PathBuf,
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(path: &Path) -> io::Result<Self> {
        let found = fs::metadata(path)?;
        Ok(Self { path: path.to_owned(), bytes: found.len(), modified: found.modified().ok() })
    }

    fn holds(&self) -> bool {
        Self::of(&self.path).is_ok_and(|now| now == *self)
    }

    fn modified_at(&self) -> Option<Instant> {
        self.modified.map(|at| to_micros(Instant::from(at)))
    }
}

impl Parcel {
    fn name(&self) -> String {
        match &self.origin {
            Some(origin) => origin.name.clone(),
            None => {
                let name = self.path.file_name().unwrap_or(self.path.as_os_str());
                name.to_string_lossy().into_owned()
            }
        }
    }

    /// How it was seen as a whole.
    fn sighting(&self, source: &str, stamp: &Stamp) -> io::Result<Sighting> {
        let (source, name) = (source.to_owned(), self.name());
        Ok(match &self.origin {
            Some(origin) => origin.sighting(&source),
            None => Sighting {
                source,
                name,
                raw_sha256: hash(&mut File::open(&self.path)?)?,
                raw_bytes: stamp.bytes,
                modified_at: stamp.modified_at(),
            },
        })
    }
}

impl Carrier<'_> {
    /// Brings in what is at a path: a file, or each of an archive.
    ///
    /// # Errors
    /// Where the database could not go on; each file before is there or not, whole.
    pub async fn bring(&self, parcel: &Parcel) -> Result<Vec<BroughtIn>, RunError> {
        let (own, source) = (parcel.clone(), self.source.to_owned());
        let found = blocking(move || {
            let stamp = Stamp::of(&own.path)?;
            let found = members(&own.path)?;
            let sighting = own.sighting(&source, &stamp)?;
            Ok((stamp, found, sighting))
        });
        let (stamp, found, sighting) = match found.await {
            Ok(found) => found,
            Err(error) => return Ok(vec![self.spoilt(parcel, None, &error).await?]),
        };
        let is_archive = found.iter().any(|member| member.name.is_some());
        let mut brought = Vec::new();
        for member in found {
            if self.stop.requested().is_some() {
                break;
            }
            brought.push(self.member(parcel, member, &stamp, &sighting).await?);
        }
        if is_archive && let Some(id) = whole(&brought, self.stop) {
            let now = self.db.now().await.doing("reading the database's clock")?;
            let noted = self.db.note_name(self.run_id, &sighting, id, now).await;
            noted.doing("noting an archive's name")?;
        }
        Ok(brought)
    }

    async fn member(
        &self,
        parcel: &Parcel,
        member: Member,
        stamp: &Stamp,
        whole: &Sighting,
    ) -> Result<BroughtIn, RunError> {
        let within = member.name.clone();
        let name = name_within(&whole.name, within.as_deref());
        let shut_sha256 = shut_sha256(&whole.raw_sha256, within.as_deref());
        let (reading, title) = (self.reading.clone(), name.clone());
        let sighting = Sighting { name: name.clone(), ..whole.clone() };
        let spooled_as = parcel.origin.as_ref().map(|origin| origin.spooled_as.clone());
        let stamp = stamp.clone();
        let ready = blocking(move || {
            let sha256 = hash(&mut *member.open()?)?;
            let begun = Begun::open(member.open()?, &reading)?;
            Ok(Ready { name: title, stamp, sighting, shut_sha256, spooled_as, sha256, begun })
        });
        match ready.await {
            Ok(ready) => self.load(ready).await,
            Err(error) => self.spoilt(parcel, within.as_deref(), &error).await,
        }
    }

    async fn load(&self, ready: Ready) -> Result<BroughtIn, RunError> {
        let Ready { name, stamp, sighting, shut_sha256, spooled_as, sha256, begun } = ready;
        let (format, version) = (begun.format, begun.version.clone());
        let head = FileHead {
            account: self.reading.account.clone(),
            sha256: sha256.clone(),
            shut_sha256,
            sighting,
            spooled_as,
            format: format.to_owned(),
            version: version.clone(),
            encoding: self.reading.encoding.clone(),
        };
        let now = self.db.now().await.doing("reading the database's clock")?;
        let (sender, receiver) = mpsc::channel(AHEAD);
        let (reading, stop) = (self.reading.clone(), self.stop.clone());
        let read = tokio::task::spawn_blocking(move || {
            begun.read(&reading, &sender, &stop, last_booked(now), || stamp.holds())
        });
        let end = self.db.put_file(self.run_id, &head, receiver, now).await;
        // A parser that ended by a panic closed the channel: nothing of the file was kept.
        let sums = read.await.ok().flatten();
        let end = match end {
            Err(error) if error.is_of_values() => {
                return self.unloadable(head, format, &error).await;
            }
            end => end,
        };
        let mut what = what(end.doing("bringing a file in")?, None);
        if let What::Known { id, account, corrected_by } = &mut what {
            *account = self.other_account(*id).await?;
            *corrected_by = self.corrected_by(*id).await?;
        }
        let source = self.source.to_owned();
        Ok(BroughtIn { source, name, path: None, sha256, format, version, what, sums })
    }

    /// Quarantines a file of which the database does not take a value: another time it would not
    /// either, and no other file is to wait for this one.
    async fn unloadable(
        &self,
        head: FileHead,
        format: &'static str,
        error: &StoreError,
    ) -> Result<BroughtIn, RunError> {
        let found = match error {
            StoreError::Query { message, detail: Some(at), .. } => format!("{message} ({at})"),
            StoreError::Query { message, .. } => message.clone(),
            other => other.to_string(),
        };
        let why = format!("the database does not take one of its values: {found}");
        let problem = Problem::error(0, "file", "values that the database can hold", found);
        self.put_aside(head, format, problem, why).await
    }

    /// The account of a file that is known, where it is another than these files are of.
    async fn other_account(&self, id: i64) -> Result<Option<String>, RunError> {
        let filter = FileFilter { id: Some(id), limit: 1, ..FileFilter::default() };
        let files = self.db.files(&filter).await.doing("looking whose file it is")?;
        let account = files.into_iter().next().map(|file| file.account);
        Ok(account.filter(|account| *account != self.reading.account))
    }

    /// The file that corrected a statement of a file that is known.
    async fn corrected_by(&self, id: i64) -> Result<Option<i64>, RunError> {
        let mut after = 0;
        loop {
            let page = self.db.statements(id, after, STATEMENTS).await;
            let page = page.doing("looking what corrected a file")?;
            let Some(last) = page.last() else { return Ok(None) };
            after = last.number;
            // A deletion counts no line itself, and what it deleted corrected nothing.
            let gone = |row: &&StatementRow| {
                row.state == StatementState::Superseded && row.held_for != Some(Held::Deletion)
            };
            let rivals = page.iter().filter(gone).filter_map(|row| row.rival);
            if let Some((later, _)) = rivals.max() {
                return Ok(Some(later));
            }
        }
    }

    /// A file that cannot be opened, or one within an archive. What a source gave whole is
    /// quarantined: fetched again it would be the same.
    async fn spoilt(
        &self,
        parcel: &Parcel,
        within: Option<&str>,
        error: &io::Error,
    ) -> Result<BroughtIn, RunError> {
        use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof, Unsupported};
        let is_its_own = matches!(
            error.kind(),
            InvalidData | InvalidInput | Other | UnexpectedEof | Unsupported
        );
        let why = error.to_string();
        let Some(origin) = parcel.origin.as_ref().filter(|_| is_its_own) else {
            return Ok(BroughtIn {
                source: self.source.to_owned(),
                name: name_within(&parcel.name(), within),
                path: None,
                sha256: String::new(),
                format: UNKNOWN,
                version: String::new(),
                what: What::Unreadable { next: next_of(error, is_its_own), why },
                sums: None,
            });
        };
        let problem = Problem::error(0, "file", OPENS, &why);
        let shut = Shut { format: UNKNOWN, version: String::new(), problem, why };
        self.keep(origin, within, shut).await
    }

    /// A file that no key of its source opens: it is quarantined as it came, and known by its
    /// bytes, so that it is opened again only with other keys. One that was `opened` before, as
    /// another file, stays that.
    pub(super) async fn sealed(
        &self,
        origin: &Origin,
        keys: &str,
        why: &str,
        opened: Option<i64>,
    ) -> Result<BroughtIn, RunError> {
        let version = keys.to_owned();
        if let Some(id) = opened {
            let now = self.db.now().await.doing("reading the database's clock")?;
            let sighting = origin.sighting(self.source);
            let noted = self.db.note_name(self.run_id, &sighting, id, now).await;
            noted.doing("noting a file's name")?;
            return Ok(BroughtIn {
                source: self.source.to_owned(),
                name: origin.name.clone(),
                path: None,
                sha256: origin.raw_sha256.clone(),
                format: SEALED,
                version,
                what: What::Known { id, account: None, corrected_by: None },
                sums: None,
            });
        }
        let problem = Problem::error(0, "encryption", "a message that the source's key opens", why);
        let shut = Shut { format: SEALED, version, problem, why: why.to_owned() };
        self.keep(origin, None, shut).await
    }

    /// Quarantines a file whose content was not even reached.
    async fn keep(
        &self,
        origin: &Origin,
        within: Option<&str>,
        shut: Shut,
    ) -> Result<BroughtIn, RunError> {
        let Shut { format, version, problem, why } = shut;
        let name = name_within(&origin.name, within);
        let shut_sha256 = shut_sha256(&origin.raw_sha256, within);
        let head = FileHead {
            account: self.reading.account.clone(),
            sha256: shut_sha256.clone(),
            shut_sha256,
            sighting: Sighting { name: name.clone(), ..origin.sighting(self.source) },
            spooled_as: Some(origin.spooled_as.clone()),
            format: format.to_owned(),
            version: version.clone(),
            encoding: self.reading.encoding.clone(),
        };
        self.put_aside(head, format, problem, why).await
    }

    /// Keeps a file with what is wrong with it, and none of its lines.
    async fn put_aside(
        &self,
        head: FileHead,
        format: &'static str,
        problem: Problem,
        why: String,
    ) -> Result<BroughtIn, RunError> {
        let sums = FileSums {
            totals: "{}".to_owned(),
            problems: vec![problem],
            problems_total: 1,
            ..FileSums::default()
        };
        let (sender, receiver) = mpsc::channel(1);
        // One place is free: nobody has to wait.
        let _sent = sender.try_send(Part::Quarantine(Box::new(sums)));
        drop(sender);
        let now = self.db.now().await.doing("reading the database's clock")?;
        let end = self.db.put_file(self.run_id, &head, receiver, now).await;
        let what = what(end.doing("bringing a file in")?, Some(why));
        let FileHead { sha256, version, sighting: Sighting { name, .. }, .. } = head;
        let source = self.source.to_owned();
        Ok(BroughtIn { source, name, path: None, sha256, format, version, what, sums: None })
    }
}

/// What to do about a file that cannot be read: a packed one may end too early, or be not what it
/// was packed from.
fn next_of(error: &io::Error, is_its_own: bool) -> &'static str {
    let text = error.to_string().to_lowercase();
    let is_broken = ["corrupt", "checksum"].iter().any(|word| text.contains(word));
    match () {
        () if is_broken || error.kind() == io::ErrorKind::UnexpectedEof => {
            "ask for the file again: this one was cut or changed on its way"
        }
        () if is_its_own => "ask for it again, or for another form of it",
        () => "check the path and the rights; then bring it in again",
    }
}

/// A file whose content was not even reached, and why.
struct Shut {
    format: &'static str,
    version: String,
    problem: Problem,
    why: String,
}

impl Origin {
    /// How a source showed it.
    fn sighting(&self, source: &str) -> Sighting {
        Sighting {
            source: source.to_owned(),
            name: self.name.clone(),
            raw_sha256: self.raw_sha256.clone(),
            raw_bytes: self.raw_bytes,
            modified_at: self.modified_at,
        }
    }
}

/// A file's name, or that of one within an archive.
fn name_within(name: &str, within: Option<&str>) -> String {
    within.map_or_else(|| name.to_owned(), |within| format!("{name}/{within}"))
}

/// See [`FileHead::shut_sha256`].
fn shut_sha256(raw_sha256: &str, within: Option<&str>) -> String {
    match within {
        None => raw_sha256.to_owned(),
        Some(within) => hex(&Sha256::digest(format!("{raw_sha256}/{within}"))),
    }
}

fn what(end: FileEnd, why: Option<String>) -> What {
    match end {
        FileEnd::Loaded { id, held } => What::Loaded { id, held },
        FileEnd::Known { id } => What::Known { id, account: None, corrected_by: None },
        FileEnd::Quarantined { id } => What::Quarantined { id, why },
        FileEnd::Dropped => What::Stopped,
    }
}

/// The number of the file that stands for an archive, all of whose files are kept: one that is
/// quarantined, where there is one.
fn whole(brought: &[BroughtIn], stop: &Stop) -> Option<i64> {
    let ids: Option<Vec<i64>> = brought.iter().map(|one| one.what.id()).collect();
    let ids = ids.filter(|_| stop.requested().is_none())?;
    let bad = brought.iter().position(|one| matches!(one.what, What::Quarantined { .. }));
    ids.get(bad.unwrap_or(0)).copied()
}

/// Work with files on a thread that may wait for the disk.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(io::Error::other(error)))
}

pub(super) fn hash(input: &mut dyn Read) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0_u8; 1 << 18];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return Ok(hex(&hash.finalize())),
            Ok(read) => hash.update(buffer.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quarantined(format: &'static str, why: Option<&str>, problem: Problem) -> BroughtIn {
        let sums = Sums { problems: vec![problem], ..Sums::default() };
        BroughtIn {
            source: "bank-a".to_owned(),
            name: "a.xml".to_owned(),
            path: None,
            sha256: String::new(),
            format,
            version: String::new(),
            what: What::Quarantined { id: 7, why: why.map(str::to_owned) },
            sums: Some(sums),
        }
    }

    #[test]
    fn what_to_do_about_a_file_fits_what_is_wrong_with_it() {
        let problem = Problem::error(0, "file", bank_csv::SOMETHING, "nothing: it is empty");
        let (_, hint) = quarantined(UNKNOWN, None, problem).trouble().unwrap();
        assert_eq!(hint, "ask for the file again: there is nothing in this one");
        for (format, why, line, says, next) in [
            (UNKNOWN, None, 0, ": file: expected x, found y", "describe it as a [[format]]"),
            (UNKNOWN, Some("it was cut"), 0, ": it was cut", "ask for the file again"),
            (SEALED, Some("no key"), 0, ": no key", "look at [source.decrypt]"),
            ("camt.053", None, 0, ": file: expected x, found y", "ask for the file again"),
            ("camt.053", None, 3, ": line 3: file: expected x, found y", "ask for the file again"),
        ] {
            let problem = Problem::error(line, "file", "x", "y");
            let (text, hint) = quarantined(format, why, problem).trouble().unwrap();
            let wanted = format!("quarantined as file 7, none of its lines counts{says}");
            assert_eq!(text, wanted, "{format}");
            assert!(hint.contains(next), "{format}: {hint}");
        }
    }
}
