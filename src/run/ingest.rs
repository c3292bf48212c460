//! Bringing settlement files in: from a path to lines in the database, a run of its own.
//!
//! A file is hashed without its wrapping, parsed and checked on a thread of its own while the
//! store writes, and counts only if it ties. Deciding rows by its lines is the next run's work.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::model::settlement::{Problem, Severity};
use crate::model::time::{Instant, later, to_micros};
use crate::model::transaction::hex;
use crate::run::error::{Doing, RunError};
use crate::run::finish::state_of;
use crate::run::parts::{Begun, Reading};
use crate::run::setup::Setup;
use crate::run::shutdown::Stop;
use crate::run::{DEAD_AFTER, HEARTBEAT, LEASE, host_name};
use crate::settlement::ledger::Sums;
use crate::settlement::unwrap::{Member, members};
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::files::{FileDriver, FileEnd, FileHead, Sighting};
use crate::store::records::{RunEnd, RunStart};

/// Parts between the parser and the database: a few thousand lines.
const AHEAD: usize = 4;

/// How many files a run's notes name.
const NOTED: usize = 200;

/// Which files are brought in, and how.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The source's name; `local` for paths that a person gave.
    pub source: String,
    /// The files.
    pub paths: Vec<PathBuf>,
    /// How they are read.
    pub reading: Reading,
    /// The run's id.
    pub run_id: String,
}

/// What became of one file.
#[derive(Debug, Clone)]
pub struct BroughtIn {
    /// Its name; within an archive, that of the archive before it.
    pub name: String,
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
    },
    /// It is kept, and none of its lines counts.
    Quarantined {
        /// Its number.
        id: i64,
    },
    /// It could not be read; nothing is kept.
    Unreadable(String),
    /// It was asked to stop, or the file changed meanwhile; nothing is kept.
    Stopped,
}

impl What {
    /// The exit that it leads to.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Loaded { held: 0, .. } | Self::Known { .. } => Exit::Ok,
            Self::Loaded { .. }
            | Self::Quarantined { .. }
            | Self::Unreadable(_)
            | Self::Stopped => Exit::Partial,
        }
    }

    /// The stable word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Loaded { .. } => "loaded",
            Self::Known { .. } => "known",
            Self::Quarantined { .. } => "quarantined",
            Self::Unreadable(_) => "unreadable",
            Self::Stopped => "stopped",
        }
    }

    /// Its number, where it is kept.
    pub fn id(&self) -> Option<i64> {
        match self {
            Self::Loaded { id, .. } | Self::Known { id } | Self::Quarantined { id } => Some(*id),
            Self::Unreadable(_) | Self::Stopped => None,
        }
    }
}

impl BroughtIn {
    /// The worst of what is wrong with it, where something is.
    pub fn problem(&self) -> Option<&Problem> {
        let problems = self.sums.iter().flat_map(|sums| &sums.problems);
        let worst = problems.clone().find(|problem| problem.severity == Severity::Error);
        worst.or_else(|| problems.into_iter().next())
    }
}

/// Brings files in, one after the other, and tells what became of each.
///
/// # Errors
/// Where the database could not go on; each file before it is there or not, whole.
pub async fn ingest(
    setup: &Setup,
    delivery: &Delivery,
    db: &Database,
    stop: &Stop,
    tell: &mut (dyn FnMut(&BroughtIn) + Send),
) -> Result<Exit, RunError> {
    let now = db.now().await.doing("reading the database's clock")?;
    db.close_abandoned(now, DEAD_AFTER).await.doing("closing runs that stopped without a word")?;
    db.start_run(&start_of(setup, delivery), now).await.doing("opening the run")?;
    let done = CancellationToken::new();
    let mut notes = Vec::new();
    let work = async {
        let end = bring_all(delivery, db, stop, tell, &mut notes).await;
        done.cancel();
        end
    };
    let (worked, ()) = tokio::join!(work, show_life(db, &delivery.run_id, &done));
    let now = db.now().await.doing("reading the database's clock")?;
    let (exit, error) = match &worked {
        Ok(exit) => (stop.exit().map_or(*exit, |stopped| exit.or_stronger(stopped)), None),
        Err(error) => (error.exit(), Some(error.to_string())),
    };
    let noted = serde_json::json!({ "not_examined": notes, "error": error });
    let end = RunEnd {
        state: state_of(exit),
        exit_code: i32::from(exit.code()),
        exit_class: exit.class().to_owned(),
        notes: noted.to_string(),
    };
    let closed = db.close_run(&delivery.run_id, &end, now).await;
    worked?;
    if !closed.doing("closing the run")? {
        return Err(RunError::Closed { run_id: delivery.run_id.clone() });
    }
    Ok(exit)
}

fn start_of(setup: &Setup, delivery: &Delivery) -> RunStart {
    let scope = serde_json::json!({
        "source": delivery.source,
        "accounts": [delivery.reading.account],
        "files": delivery.paths.len(),
    });
    RunStart {
        id: delivery.run_id.clone(),
        command: "ingest".to_owned(),
        host: host_name(),
        pid: i64::from(std::process::id()),
        version: setup.version.clone(),
        config_sha256: setup.config_sha256.clone(),
        policy_version: setup.policy_version.clone(),
        scope: scope.to_string(),
    }
}

/// Shows life until `done`: a large file takes minutes. A missed beat ends nothing by itself.
async fn show_life(db: &Database, run_id: &str, done: &CancellationToken) {
    loop {
        tokio::select! {
            () = done.cancelled() => return,
            () = tokio::time::sleep(HEARTBEAT) => {}
        }
        let shown = async {
            let now = db.now().await?;
            db.heartbeat(run_id, now, later(now, LEASE)).await
        };
        if let Err(error) = shown.await {
            tracing::warn!(run.id = run_id, error = %error, "A sign of life was not written");
        }
    }
}

async fn bring_all(
    delivery: &Delivery,
    db: &Database,
    stop: &Stop,
    tell: &mut (dyn FnMut(&BroughtIn) + Send),
    notes: &mut Vec<String>,
) -> Result<Exit, RunError> {
    let mut exit = Exit::Ok;
    for path in &delivery.paths {
        let parcel = Parcel { delivery, db, stop };
        for brought in parcel.open(path).await? {
            exit = exit.or_stronger(brought.what.exit());
            if brought.what.exit() != Exit::Ok && notes.len() < NOTED {
                notes.push(format!("{}: {}", brought.name, brought.what.as_str()));
            }
            tell(&brought);
        }
        if stop.requested().is_some() {
            break;
        }
    }
    Ok(exit)
}

/// A path on its way in.
struct Parcel<'a> {
    delivery: &'a Delivery,
    db: &'a Database,
    stop: &'a Stop,
}

/// A file, or one of an archive, about to be read.
struct Ready {
    name: String,
    member: Member,
    stamp: Stamp,
    raw_sha256: String,
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

impl Parcel<'_> {
    /// Brings in what is at a path: a file, or each of an archive.
    async fn open(&self, path: &Path) -> Result<Vec<BroughtIn>, RunError> {
        let at = path.to_owned();
        let found = blocking(move || {
            let stamp = Stamp::of(&at)?;
            let found = members(&at)?;
            let raw = hash(&mut File::open(&at)?)?;
            Ok((stamp, found, raw))
        });
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let (stamp, found, raw_sha256) = match found.await {
            Ok(found) => found,
            Err(error) => return Ok(vec![unreadable(name, &error)]),
        };
        let mut brought = Vec::new();
        for member in found {
            if self.stop.requested().is_some() {
                break;
            }
            let name = match &member.name {
                Some(within) => format!("{name}/{within}"),
                None => name.clone(),
            };
            let reading = self.delivery.reading.clone();
            let (stamp, raw_sha256, title) = (stamp.clone(), raw_sha256.clone(), name.clone());
            let ready = blocking(move || {
                let sha256 = hash(&mut *member.open()?)?;
                let begun = Begun::open(member.open()?, &reading)?;
                Ok(Ready { name: title, member, stamp, raw_sha256, sha256, begun })
            });
            brought.push(match ready.await {
                Ok(ready) => self.bring(ready).await?,
                Err(error) => unreadable(name, &error),
            });
        }
        Ok(brought)
    }

    async fn bring(&self, ready: Ready) -> Result<BroughtIn, RunError> {
        let Ready { name, member, stamp, raw_sha256, sha256, begun } = ready;
        drop(member);
        let (format, version) = (begun.format, begun.version.clone());
        let head = FileHead {
            account: self.delivery.reading.account.clone(),
            sha256: sha256.clone(),
            sighting: Sighting {
                source: self.delivery.source.clone(),
                name: name.clone(),
                raw_sha256,
                raw_bytes: stamp.bytes,
                modified_at: stamp.modified_at(),
            },
            spooled_as: None,
            format: format.to_owned(),
            version: version.clone(),
        };
        let (sender, receiver) = mpsc::channel(AHEAD);
        let (reading, stop) = (self.delivery.reading.clone(), self.stop.clone());
        let read = tokio::task::spawn_blocking(move || {
            begun.read(&reading, &sender, &stop, || stamp.holds())
        });
        let now = self.db.now().await.doing("reading the database's clock")?;
        let end = self.db.put_file(&self.delivery.run_id, &head, receiver, now).await;
        // A parser that ended by a panic closed the channel: nothing of the file was kept.
        let sums = read.await.ok().flatten();
        let what = match end.doing("bringing a file in")? {
            FileEnd::Loaded { id, held } => What::Loaded { id, held },
            FileEnd::Known { id } => What::Known { id },
            FileEnd::Quarantined { id } => What::Quarantined { id },
            FileEnd::Dropped => What::Stopped,
        };
        Ok(BroughtIn { name, sha256, format, version, what, sums })
    }
}

fn unreadable(name: String, error: &io::Error) -> BroughtIn {
    BroughtIn {
        name,
        sha256: String::new(),
        format: "unknown",
        version: String::new(),
        what: What::Unreadable(error.to_string()),
        sums: None,
    }
}

/// Work with files on a thread that may wait for the disk.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(io::Error::other(error)))
}

fn hash(input: &mut dyn Read) -> io::Result<String> {
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
