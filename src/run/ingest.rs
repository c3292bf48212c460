//! Bringing settlement files in without deciding anything: a run of its own. Deciding rows by
//! their lines is the next run's work.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::model::time::later;
use crate::run::bring::{BroughtIn, Carrier, Parcel, What};
use crate::run::error::{Doing, RunError};
use crate::run::expected::note_missing;
use crate::run::fetch::{Fetching, SourceNote, Tell, Told};
use crate::run::finish::state_of;
use crate::run::pages::note_pages;
use crate::run::parts::Reading;
use crate::run::release::{ReleasedNote, Releasing};
use crate::run::setup::Setup;
use crate::run::shutdown::Stop;
use crate::run::{DEAD_AFTER, HEARTBEAT, LEASE, host_name, spool};
use crate::settlement::sources::settings::Source;
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::files::FileDriver;
use crate::store::records::{RunEnd, RunStart};

/// Where files come from that a person names.
pub const LOCAL: &str = "local";

/// How many files a run's notes name.
const NOTED: usize = 200;

/// What is brought in.
#[derive(Debug, Clone)]
pub enum Goods {
    /// Files that a person has.
    Paths {
        /// Where they are said to come from.
        source: String,
        /// The files.
        paths: Vec<PathBuf>,
        /// How they are read.
        reading: Reading,
    },
    /// What is new at these sources.
    Sources(Vec<Source>),
}

/// What is brought in, by which run.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// What.
    pub goods: Goods,
    /// The run's id.
    pub run_id: String,
}

/// What a run tells of itself once it is over.
#[derive(Default)]
struct Notes {
    exit: Option<Exit>,
    missed: Vec<String>,
    sources: Vec<SourceNote>,
    releases: Vec<ReleasedNote>,
}

impl Notes {
    fn worse(&mut self, exit: Exit) {
        self.exit = Some(self.exit.unwrap_or(Exit::Ok).or_stronger(exit));
    }

    fn take(&mut self, told: &Told) {
        let line = match told {
            Told::Coming { .. } => return,
            Told::Done(note) => return self.sources.push((**note).clone()),
            Told::Released(note) => return self.releases.push((**note).clone()),
            Told::BroughtIn(brought) => {
                let exit = brought.what.exit();
                self.worse(exit);
                if exit == Exit::Ok {
                    return;
                }
                format!("{}: {}", brought.shown(), brought.what.as_str())
            }
            Told::Missed(exit, text) => {
                self.worse(*exit);
                text.clone()
            }
        };
        if self.missed.len() < NOTED {
            self.missed.push(line);
        }
    }
}

/// Brings files in, and tells what became of each.
///
/// # Errors
/// Where the database could not go on; each file before it is there or not, whole.
pub async fn ingest(
    setup: &Setup,
    delivery: &Delivery,
    db: &Database,
    stop: &Stop,
    tell: Tell<'_>,
) -> Result<Exit, RunError> {
    let now = db.now().await.doing("reading the database's clock")?;
    db.close_abandoned(now, DEAD_AFTER).await.doing("closing runs that stopped without a word")?;
    db.start_run(&start_of(setup, delivery), now).await.doing("opening the run")?;
    let done = CancellationToken::new();
    let mut notes = Notes::default();
    let work = async {
        let mut heard = |told: Told| {
            notes.take(&told);
            tell(told);
        };
        let end = bring_all(setup, delivery, db, stop, &mut heard).await;
        done.cancel();
        end
    };
    let (worked, ()) = tokio::join!(work, show_life(db, &delivery.run_id, &done));
    let now = db.now().await.doing("reading the database's clock")?;
    let found = notes.exit.unwrap_or(Exit::Ok);
    let (exit, error) = match &worked {
        Ok(()) => (stop.exit().map_or(found, |stopped| found.or_stronger(stopped)), None),
        Err(error) => (error.exit(), Some(error.to_string())),
    };
    let Notes { missed, sources, releases, .. } = notes;
    let noted = serde_json::json!({
        "not_examined": missed,
        "releases": releases,
        "sources": sources,
        "error": error,
    });
    let end = RunEnd {
        state: state_of(exit),
        exit_code: i32::from(exit.code()),
        exit_class: exit.class().to_owned(),
        notes: noted.to_string(),
    };
    let closed = db.close_run(&delivery.run_id, &end, now).await;
    worked?;
    if closed.doing("closing the run")?.is_none() {
        return Err(RunError::Closed { run_id: delivery.run_id.clone() });
    }
    Ok(exit)
}

fn start_of(setup: &Setup, delivery: &Delivery) -> RunStart {
    let scope = match &delivery.goods {
        Goods::Paths { source, paths, reading } => serde_json::json!({
            "source": source,
            "accounts": [reading.account],
            "files": paths.len(),
        }),
        Goods::Sources(sources) => serde_json::json!({
            "sources": sources.iter().map(|source| source.name.as_str()).collect::<Vec<_>>(),
        }),
    };
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
    setup: &Setup,
    delivery: &Delivery,
    db: &Database,
    stop: &Stop,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    let run_id = delivery.run_id.as_str();
    // What people said of files is carried out by whoever comes first, a run or this.
    let releasing = Releasing { setup, db, run_id, stop };
    let changed = Box::pin(releasing.all(|_any: &str| true, tell)).await?;
    match &delivery.goods {
        Goods::Sources(sources) => {
            let fetching = Fetching { setup, db, run_id, stop, at_most: None };
            fetching.all(&sources.iter().collect::<Vec<_>>(), tell).await?;
            tell_missing(db, run_id, sources, stop, tell).await?;
            let own = sources.iter().filter_map(|source| source.account.as_deref());
            look_at_pages(db, run_id, own, &changed, stop).await
        }
        Goods::Paths { source, paths, reading } => {
            spool::sweep(setup, db, run_id).await?;
            let carrier = Carrier { db, run_id, stop, source, reading };
            for path in paths {
                let parcel = Parcel { path: path.clone(), origin: None };
                for mut brought in carrier.bring(&parcel).await? {
                    brought.path = Some(path_of(path, &brought.name));
                    let kept = keep(setup, db, run_id, &parcel, &brought).await?;
                    tell(Told::BroughtIn(Box::new(brought)));
                    kept.into_iter().for_each(|text| tell(Told::Missed(Exit::Partial, text)));
                }
                if stop.requested().is_some() {
                    break;
                }
            }
            let own = [reading.account.as_str()];
            look_at_pages(db, run_id, own.into_iter(), &changed, stop).await
        }
    }
}

/// What a person calls a file, or one of an archive: by the path that they gave.
fn path_of(path: &Path, name: &str) -> String {
    let whole =
        if path.file_name().is_some() { path.with_file_name(name) } else { path.to_owned() };
    whole.to_string_lossy().into_owned()
}

async fn look_at_pages<'a>(
    db: &Database,
    run_id: &str,
    own: impl Iterator<Item = &'a str>,
    changed: &'a BTreeSet<String>,
    stop: &Stop,
) -> Result<(), RunError> {
    let own: BTreeSet<&str> = own.chain(changed.iter().map(String::as_str)).collect();
    for account in own {
        if stop.requested().is_some() {
            return Ok(());
        }
        let now = db.now().await.doing("reading the database's clock")?;
        note_pages(db, run_id, account, now, changed.contains(account)).await?;
    }
    Ok(())
}

/// Says which files of these sources did not come, as a run does.
async fn tell_missing(
    db: &Database,
    run_id: &str,
    sources: &[Source],
    stop: &Stop,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    if stop.requested().is_some() {
        return Ok(());
    }
    let now = db.now().await.doing("reading the database's clock")?;
    for source in sources.iter().filter(|source| source.account.is_some()) {
        for text in note_missing(db, run_id, source, now).await? {
            tell(Told::Missed(Exit::Partial, text));
        }
    }
    Ok(())
}

/// Keeps the bytes of a quarantined file: a person may let it count when the path is long gone.
/// What to say where that fails.
async fn keep(
    setup: &Setup,
    db: &Database,
    run_id: &str,
    parcel: &Parcel,
    brought: &BroughtIn,
) -> Result<Option<String>, RunError> {
    let What::Quarantined { id, .. } = brought.what else { return Ok(None) };
    match spool::keep(setup, run_id, &parcel.path, &brought.sha256).await {
        Ok(place) => {
            let noted = db.note_spooled(id, &place).await;
            noted.doing("noting where a file is kept").map(|()| None)
        }
        Err(error) => {
            let path = parcel.path.display();
            let text = format!(
                "{path}: its bytes could not be kept for a release: {error}; next: make room for \
                 {}, and bring it in again",
                setup.spool_dir.display()
            );
            tracing::warn!(file = %path, error = %error, "A quarantined file was not kept");
            Ok(Some(text))
        }
    }
}
