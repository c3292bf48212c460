//! The spool: where fetched bytes lie until their lines are in the database, and where those of
//! quarantined files stay.
//!
//! Each run has a folder of its own in it. What a run that died left there is taken out by the
//! next, but for the bytes that a quarantined file's record names, however many those are.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use chrono::TimeDelta;

use crate::model::time::Instant;
use crate::run::bring::blocking;
use crate::run::error::{Doing, RunError};
use crate::run::setup::Setup;
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::files::{FileDriver, FileFilter, FileState};
use crate::store::records::RunState;

/// Quarantined files that are read at once.
const AT_ONCE: i64 = 1_000;

/// What is younger may be a run's that another database knows.
const UNKNOWN_FOR: TimeDelta = TimeDelta::days(1);

/// Takes out what dead runs left. Of a run that this database does not know only what is
/// unfinished goes, after a day: what is whole may be kept for the files of another one.
pub(super) async fn sweep(setup: &Setup, db: &Database, run_id: &str) -> Result<(), RunError> {
    let (mut dead, mut unknown): (Vec<PathBuf>, Vec<PathBuf>) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(&setup.spool_dir).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == run_id || uuid::Uuid::try_parse(&name).is_err() {
            continue;
        }
        match db.run(&name).await.doing("looking whose files lie in the spool")? {
            Some(run) if run.state != RunState::Running => dead.push(entry.path()),
            Some(_running) => {}
            None => unknown.push(entry.path()),
        }
    }
    if dead.is_empty() && unknown.is_empty() {
        return Ok(());
    }
    let kept = kept(setup, db).await?;
    let swept = blocking(move || {
        dead.iter().for_each(|folder| sweep_folder(folder, &|file| !kept.contains(file)));
        unknown.iter().for_each(|folder| sweep_folder(folder, &is_given_up));
        Ok(())
    });
    // What stays is in nobody's way: it is looked at again.
    let _left: io::Result<()> = swept.await;
    Ok(())
}

/// The files that quarantined files' records name.
async fn kept(setup: &Setup, db: &Database) -> Result<HashSet<PathBuf>, RunError> {
    let (state, limit) = (Some(FileState::Quarantined), AT_ONCE);
    let mut kept = HashSet::new();
    let mut before = None;
    loop {
        let filter = FileFilter { state, before, limit, ..FileFilter::default() };
        let files = db.files(&filter).await.doing("looking whose files lie in the spool")?;
        let Some(last) = files.last() else { return Ok(kept) };
        before = Some(last.id);
        for place in files.iter().filter_map(|file| file.spooled_as.as_ref()) {
            let path = setup.spool_dir.join(place);
            // A decrypted file's message lies beside it.
            kept.extend([path.with_extension(""), path]);
        }
    }
}

/// Whether a file was not whole when whoever fetched it ended, and long ago.
fn is_given_up(file: &Path) -> bool {
    let written = fs::metadata(file).and_then(|found| found.modified()).map(Instant::from);
    let is_old = written.is_ok_and(|at| crate::clock::now() - at > UNKNOWN_FOR);
    is_old && file.extension().is_some_and(|end| end == "part")
}

/// Takes out of a run's folder the files that may go: those of its sources' folders.
fn sweep_folder(run: &Path, may_go: &dyn Fn(&Path) -> bool) {
    for source in fs::read_dir(run).into_iter().flatten().flatten() {
        for file in fs::read_dir(source.path()).into_iter().flatten().flatten() {
            let path = file.path();
            if may_go(&path) {
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
        let copied = fs::copy(&from, &to);
        if copied.is_err() {
            // A full disk has no room for a piece that nobody reads.
            let _left = fs::remove_file(&to);
        }
        copied.map(|_bytes| ())
    })
    .await?;
    Ok(place.to_string_lossy().into_owned())
}

/// What banks write of customers is for this user alone.
fn make(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}
