//! The spool: where fetched bytes lie until their lines are in the database, and where those of
//! quarantined files stay.
//!
//! Each run has a folder of its own in it. What a run that died left there is taken out by the
//! next, but for the bytes that a quarantined file's record names.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::run::bring::blocking;
use crate::run::error::{Doing, RunError};
use crate::run::setup::Setup;
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::files::{FileDriver, FileFilter, FileState};
use crate::store::records::RunState;

/// Where more files are quarantined, nothing is swept: too much would have to be looked at.
const QUARANTINED_MAX: i64 = 1_000;

/// Takes out what dead runs left.
pub(super) async fn sweep(setup: &Setup, db: &Database, run_id: &str) -> Result<(), RunError> {
    let mut dead: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(&setup.spool_dir).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == run_id || uuid::Uuid::try_parse(&name).is_err() {
            continue;
        }
        let run = db.run(&name).await.doing("looking whose files lie in the spool")?;
        if run.is_some_and(|run| run.state != RunState::Running) {
            dead.push(entry.path());
        }
    }
    if dead.is_empty() {
        return Ok(());
    }
    let state = Some(FileState::Quarantined);
    let filter = FileFilter { state, limit: QUARANTINED_MAX, ..FileFilter::default() };
    let kept = db.files(&filter).await.doing("looking whose files lie in the spool")?;
    if i64::try_from(kept.len()).unwrap_or(QUARANTINED_MAX) >= QUARANTINED_MAX {
        return Ok(());
    }
    let kept = kept.into_iter().filter_map(|file| file.spooled_as);
    let kept: HashSet<PathBuf> = kept.map(|place| setup.spool_dir.join(place)).collect();
    let swept = blocking(move || {
        dead.iter().for_each(|folder| sweep_folder(folder, &kept));
        Ok(())
    });
    // What stays is in nobody's way: it is looked at again.
    let _left: io::Result<()> = swept.await;
    Ok(())
}

/// Takes out a run's folder: its sources' folders and their files.
fn sweep_folder(run: &Path, kept: &HashSet<PathBuf>) {
    for source in fs::read_dir(run).into_iter().flatten().flatten() {
        for file in fs::read_dir(source.path()).into_iter().flatten().flatten() {
            let path = file.path();
            let plain = path.with_extension("plain");
            if !kept.contains(&path) && !kept.contains(&plain) {
                let _left = fs::remove_file(path);
            }
        }
        // One that holds something stays.
        let _left = fs::remove_dir(source.path());
    }
    let _left = fs::remove_dir(run);
}

/// Keeps a copy of a quarantined file that a person brought in; where, relative to the spool.
pub(super) async fn keep(
    setup: &Setup,
    run_id: &str,
    path: &Path,
    sha256: &str,
) -> io::Result<String> {
    let place: PathBuf = [run_id, crate::run::ingest::LOCAL, sha256].iter().collect();
    let (from, to) = (path.to_owned(), setup.spool_dir.join(&place));
    blocking(move || {
        if let Some(folder) = to.parent() {
            make(folder)?;
        }
        fs::copy(&from, &to).map(|_bytes| ())
    })
    .await?;
    Ok(place.to_string_lossy().into_owned())
}

/// What banks write of customers is for this user alone.
fn make(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}
