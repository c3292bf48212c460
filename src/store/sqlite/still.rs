//! A file that this user may only read, and whose log is not there.
//!
//! SQLite makes its log and the log's index beside the file even to read it. Made by a user who may
//! not write the file they would be that user's, and the application could write neither them nor
//! its own file any more. So nothing is made there. Without a log, all that was ever committed
//! stands in the file: it is read as it lies, without a lock, and looked at again at the end.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{Access, access};

use crate::store::error::StoreError;

/// Bytes of the file's header up to the one that says how it is to be read.
const HEADER: usize = 20;

/// Where that one stands (sqlite.org/fileformat.html).
const READ_VERSION: usize = 19;

/// With a log beside it.
const WITH_LOG: u8 = 2;

/// What is seen of a file from outside: its length, when it was changed, and its log's length.
type Seen = Option<(u64, Option<SystemTime>, u64)>;

/// A file that is read as it lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Still {
    path: PathBuf,
    seen: Seen,
}

impl Still {
    /// The file, where it is to be read so.
    ///
    /// # Errors
    /// Where a log was left over whose index is gone: only who may write the file can read it.
    pub(super) fn of(path: &Path, address: &str) -> Result<Option<Self>, StoreError> {
        // SQLite looks for the log beside the file itself, and not beside a link to it.
        let Ok(path) = fs::canonicalize(path) else { return Ok(None) };
        let has_log = beside(&path, "-wal").exists();
        let is_there = has_log && beside(&path, "-shm").exists();
        if may_make_a_log(&path) || !is_with_log(&path) || is_there {
            return Ok(None);
        }
        let still = Self::at(path);
        match still.seen {
            Some((_, _, 0)) => Ok(Some(still)),
            Some(_) | None => Err(unsettled(address)),
        }
    }

    fn at(path: PathBuf) -> Self {
        let seen = look(&path);
        Self { path, seen }
    }

    /// Whether it lies there as it did.
    pub(super) fn is_as_it_was(&self) -> bool {
        self.seen.is_some() && look(&self.path) == self.seen
    }
}

/// Whether a file has a log with something in it. Whoever may write and is the last to close such a
/// file folds the log in, also where its application died and left it: what only reads opens the
/// file so that it may not. Where the log's index is gone it is folded in all the same: an index
/// made to read the file would stay there, and be of a user whom the application may not be.
pub(super) fn has_log(path: &Path) -> bool {
    let Ok(path) = fs::canonicalize(path) else { return false };
    let log = fs::metadata(beside(&path, "-wal"));
    let has_index = beside(&path, "-shm").exists();
    is_with_log(&path) && has_index && log.is_ok_and(|log| log.len() > 0)
}

/// A file that cannot be read before somebody else has tidied it up.
pub(super) fn unsettled(address: &str) -> StoreError {
    StoreError::File {
        address: address.to_owned(),
        problem: "was left in the middle of a write, which only who may write it can end",
        hint: "let the program that writes it open it once, or look at a copy of it and of the \
               -wal beside it",
    }
}

/// A file that was written while it was read without a lock.
pub(super) fn changed(address: &str) -> StoreError {
    StoreError::File {
        address: address.to_owned(),
        problem: "was written while it was read: what was said of its rows may be wrong",
        hint: "run it again, or as the user that writes the file; nothing was written",
    }
}

/// Whether this user may write the file, and make others beside it.
fn may_make_a_log(path: &Path) -> bool {
    let may_write = |path: &Path| access(path, Access::WRITE_OK).is_ok();
    may_write(path) && path.parent().is_none_or(may_write)
}

/// The same of a file that may be named by a link. One that is not there is told where it is
/// opened.
pub(super) fn may_write(path: &Path) -> bool {
    fs::canonicalize(path).map_or(true, |path| may_make_a_log(&path))
}

/// Whether the file says of itself that it has a log. One that cannot be read says nothing: that
/// is told where it is opened.
fn is_with_log(path: &Path) -> bool {
    let mut header = [0_u8; HEADER];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    read.is_ok() && header.get(READ_VERSION) == Some(&WITH_LOG)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn look(path: &Path) -> Seen {
    let file = fs::metadata(path).ok()?;
    let log = fs::metadata(beside(path, "-wal")).map_or(0, |log| log.len());
    Some((file.len(), file.modified().ok(), log))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_meanwhile_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        fs::write(&path, "one").unwrap();
        let still = Still::at(path.clone());
        assert!(still.is_as_it_was());
        fs::write(beside(&path, "-wal"), "").unwrap();
        assert!(still.is_as_it_was(), "an empty log says nothing");
        fs::write(beside(&path, "-wal"), "x").unwrap();
        assert!(!still.is_as_it_was(), "a log that somebody writes");
        fs::remove_file(beside(&path, "-wal")).unwrap();
        assert!(still.is_as_it_was());
        let later = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1);
        File::options().append(true).open(&path).unwrap().set_modified(later).unwrap();
        assert!(!still.is_as_it_was(), "the same length at another time");
        fs::remove_file(&path).unwrap();
        assert!(!still.is_as_it_was());
    }

    #[test]
    fn only_files_with_a_log_are_read_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        assert!(!is_with_log(&path), "there is none");
        fs::write(&path, "short").unwrap();
        assert!(!is_with_log(&path));
        for (version, is_with) in [(1_u8, false), (2, true)] {
            let mut header = b"SQLite format 3\0".to_vec();
            header.extend([16, 0, version, version]);
            fs::write(&path, header).unwrap();
            assert_eq!(is_with_log(&path), is_with);
        }
        // Who may write here makes a log as SQLite always does.
        assert_eq!(Still::of(&path, "a.db").unwrap(), None);
    }
}
