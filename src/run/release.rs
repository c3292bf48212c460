//! Letting a file count that does not by itself, by a person's word: a quarantined one is read
//! once more from the bytes that were kept, a held one is there already.

use std::io;
use std::path::Path;

use tokio::sync::mpsc;

use crate::run::bring::{blocking, hash};
use crate::run::error::{Doing, RunError};
use crate::run::fetch::reading_of;
use crate::run::parts::{Begun, By, Reading};
use crate::run::setup::Setup;
use crate::run::shutdown::Stop;
use crate::run::spool::sweep;
use crate::settlement::Format;
use crate::settlement::tags::TagRules;
use crate::settlement::unwrap::members;
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::files::{FileDriver, FileRow, FileState};
use crate::store::release::{Release, Word};

/// Parts between the parser and the database.
const AHEAD: usize = 4;

/// Why a file's bytes cannot be read once more.
#[derive(Debug)]
pub enum Unread {
    /// No format knows them.
    Unknown,
    /// They are not kept.
    NotKept,
    /// They cannot be read.
    Unreadable(String),
    /// It does not tie, and so many lines of a statement that does would count no more.
    Untied(usize),
}

/// Lets a file count.
///
/// # Errors
/// Where the database could not go on; nothing was changed.
pub async fn release(
    setup: &Setup,
    db: &Database,
    file: &FileRow,
    word: &Word,
    stop: &Stop,
) -> Result<Result<Release, Unread>, RunError> {
    let now = db.now().await.doing("reading the database's clock")?;
    if file.state != FileState::Quarantined {
        if let Some(lost) = ousted(db, file).await? {
            return Ok(Err(Unread::Untied(lost)));
        }
        let done = db.release_held(file.id, word, now).await;
        return done.doing("letting a file's statements count").map(Ok);
    }
    let reading = reading(setup, file);
    let Some(reading) = reading else { return Ok(Err(Unread::Unknown)) };
    let Some(place) = &file.spooled_as else { return Ok(Err(Unread::NotKept)) };
    let (path, sha256, how) = (setup.spool_dir.join(place), file.sha256.clone(), reading.clone());
    let begun = match blocking(move || begin(&path, &sha256, &how)).await {
        Ok(Some(begun)) => begun,
        Ok(None) => return Ok(Err(Unread::NotKept)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Err(Unread::NotKept));
        }
        Err(error) => return Ok(Err(Unread::Unreadable(error.to_string()))),
    };
    let (sender, receiver) = mpsc::channel(AHEAD);
    let stop = stop.clone();
    let read = tokio::task::spawn_blocking(move || begun.read(&reading, &sender, &stop, || true));
    let done = db.release_quarantined(file.id, word, receiver, now).await;
    // A parser that ended by a panic closed the channel: nothing was changed.
    let _sums = read.await;
    let done = done.doing("letting a quarantined file count")?;
    if matches!(done, Release::Done { .. }) {
        // Another file of the same archive may still need those bytes: what none needs goes.
        sweep(setup, db, "").await?;
    }
    Ok(Ok(done))
}

/// How many lines of statements that tie an untied file would take out: it may stand beside them,
/// and never in their place.
async fn ousted(db: &Database, file: &FileRow) -> Result<Option<usize>, RunError> {
    if file.state != FileState::Released {
        return Ok(None);
    }
    let differences = db.differences(file.id).await;
    let differences = differences.doing("comparing a statement with its earlier issues")?;
    let removed = differences.iter().flat_map(|difference| &difference.removed);
    let lost = removed.filter(|line| !line.untied).count();
    Ok((lost > 0).then_some(lost))
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
    let (encoding, tags) = match own {
        Some(own) => (own.encoding, own.tags),
        None => (None, TagRules::default()),
    };
    Some(Reading { account: file.account.clone(), by, encoding, tags })
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
