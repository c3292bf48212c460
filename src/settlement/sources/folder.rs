//! A folder of this machine, or one that is mounted.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use rustix::fs::{Access, Mode, OFlags, access};

use crate::settlement::sources::pick::{Kind, Seen};
use crate::settlement::sources::{BUFFER, Going, Shelf, SourceError, note, pour};

/// A folder.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder at a path; it is looked at when it is listed.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Shelf for Folder {
    fn list(&mut self) -> Result<Vec<Seen>, SourceError> {
        let entries = std::fs::read_dir(&self.path).map_err(|e| gone("listing", &self.path, &e))?;
        let mut listing = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|e| gone("listing", &self.path, &e))?;
            // Of the name itself, never of what a link leads to.
            match entry.metadata() {
                Ok(metadata) => {
                    note(&mut listing, seen(&entry.file_name(), &metadata), &self.path)?;
                }
                // It went while the folder was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(gone("looking at", &entry.path(), &error)),
            }
        }
        Ok(listing)
    }

    fn stat(&mut self, name: &str) -> Result<Seen, SourceError> {
        let path = self.at(name);
        let metadata = std::fs::symlink_metadata(&path);
        let metadata = metadata.map_err(|e| gone("looking at", &path, &e))?;
        Ok(seen(OsStr::new(name), &metadata))
    }

    fn copy(
        &mut self,
        name: &str,
        to: &mut dyn Write,
        going: Going<'_>,
    ) -> Result<u64, SourceError> {
        let path = self.at(name);
        let mut file = opened(&path)?;
        let metadata = file.metadata().map_err(|e| gone("looking at", &path, &e))?;
        if !metadata.is_file() {
            let problem = "it is no regular file".to_owned();
            return Err(SourceError::Changed { name: name.to_owned(), problem });
        }
        pour(name, &mut file, to, going, &|e| gone("reading", &path, &e))
    }

    fn put_away(&mut self, name: &str, folder: &str, to: &str) -> Result<(), SourceError> {
        let folder = self.path.join(folder);
        std::fs::create_dir_all(&folder).map_err(|e| gone("making", &folder, &e))?;
        let from = self.at(name);
        let to = folder.join(to);
        match renamed(&from, &to) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                carry(name, &from, &folder, &to)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(taken(&to)),
            Err(error) => Err(gone("archiving", &from, &error)),
            Ok(()) => Ok(()),
        }
    }

    fn try_open(&mut self, name: &str) -> Result<(), SourceError> {
        opened(&self.at(name)).map(|_file| ())
    }

    fn try_archive(&mut self, folder: &str) -> Result<(), SourceError> {
        let folder = self.path.join(folder);
        let there = existing(&folder);
        if !there.is_dir() {
            let problem = format!("{} is no folder", there.display());
            return Err(SourceError::Gone { doing: doing("archiving to", &folder), problem });
        }
        // A file leaves its own folder, too.
        for path in [there, self.path.as_path()] {
            may_change(path).map_err(|error| gone("writing to", path, &error))?;
        }
        Ok(())
    }
}

/// The folder itself, or the one above it that it would be made in. A link to nothing is there.
fn existing(folder: &Path) -> &Path {
    let mut above = folder.ancestors();
    above.find(|path| path.symlink_metadata().is_ok()).unwrap_or(folder)
}

fn may_change(folder: &Path) -> io::Result<()> {
    access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(io::Error::from)
}

/// A link or a pipe that took the file's place since the listing must not be followed, or waited
/// for.
fn opened(path: &Path) -> Result<File, SourceError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty()).map_err(io::Error::from);
    Ok(File::from(opened.map_err(|e| gone("opening", path, &e))?))
}

/// Never over another file, nor in between a look and a rename.
fn renamed(from: &Path, to: &Path) -> io::Result<()> {
    let here = rustix::fs::CWD;
    let flags = rustix::fs::RenameFlags::NOREPLACE;
    rustix::fs::renameat_with(here, from, here, to, flags).map_err(io::Error::from)
}

fn taken(to: &Path) -> SourceError {
    SourceError::Taken { to: to.display().to_string() }
}

/// Moves a file to another file system: a copy that is whole and on the disk has its name before
/// the file itself goes. Whoever dies in between leaves both, and the next one finds the copy, or
/// what there is of it, and goes on from there.
fn carry(name: &str, from: &Path, folder: &Path, to: &Path) -> Result<(), SourceError> {
    let mut file = opened(from)?;
    let before = file.metadata().map_err(|e| gone("looking at", from, &e))?;
    let changed =
        |problem: &str| SourceError::Changed { name: name.to_owned(), problem: problem.to_owned() };
    if !before.is_file() {
        return Err(changed("it is no regular file"));
    }
    let copying = |error: io::Error| gone("copying into the archive", from, &error);
    if to.symlink_metadata().is_ok() {
        // Another one, or the copy of a move that ended early.
        if !is_alike(&mut file, to).map_err(copying)? {
            return Err(taken(to));
        }
    } else {
        let end = to.file_name().unwrap_or_default().to_string_lossy();
        let part = folder.join(format!(".{end}.part"));
        let there = copied(&mut file, &before, &part).map_err(copying);
        let named = there
            .and_then(|()| renamed(&part, to).map_err(|error| gone("archiving", from, &error)));
        if named.is_err() {
            // A full disk has no room for pieces that nobody takes out.
            let _left = std::fs::remove_file(&part);
        }
        named?;
    }
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(copying)?;
    let now = from.symlink_metadata().map_err(|e| gone("looking at", from, &e))?;
    if !is_still(&before, &now) {
        return Err(changed("another file has its name now"));
    }
    std::fs::remove_file(from).map_err(|e| gone("taking out what was archived,", from, &e))
}

/// With its time and its rights, as a file that is renamed keeps them.
fn copied(file: &mut File, of: &Metadata, part: &Path) -> io::Result<()> {
    match std::fs::remove_file(part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _gone => {}
    }
    let mut copy = File::create_new(part)?;
    io::copy(file, &mut copy)?;
    copy.set_permissions(of.permissions())?;
    copy.set_modified(of.modified()?)?;
    copy.sync_all()
}

/// Whether a file's bytes are another one's, too.
fn is_alike(file: &mut File, other: &Path) -> io::Result<bool> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let other = File::from(rustix::fs::open(other, flags, Mode::empty())?);
    let metadata = other.metadata()?;
    if !metadata.is_file() || metadata.len() != file.metadata()?.len() {
        return Ok(false);
    }
    let mut own = BufReader::with_capacity(BUFFER, file);
    let mut other = BufReader::with_capacity(BUFFER, other);
    loop {
        let (left, right) = (own.fill_buf()?, other.fill_buf()?);
        let count = left.len().min(right.len());
        if count == 0 {
            return Ok(left.len() == right.len());
        }
        if left.get(..count) != right.get(..count) {
            return Ok(false);
        }
        own.consume(count);
        other.consume(count);
    }
}

fn is_still(before: &Metadata, now: &Metadata) -> bool {
    let of = |one: &Metadata| (one.dev(), one.ino(), one.len(), one.mtime(), one.mtime_nsec());
    of(before) == of(now)
}

fn seen(name: &OsStr, metadata: &Metadata) -> Seen {
    let modified = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    Seen {
        name: name.to_string_lossy().into_owned(),
        size: metadata.len(),
        modified: modified.and_then(|since| u64::try_from(since.as_micros()).ok()),
        kind: kind(metadata),
    }
}

fn kind(metadata: &Metadata) -> Kind {
    match (metadata.is_file(), metadata.is_dir()) {
        (true, _) => Kind::File,
        (_, true) => Kind::Folder,
        (false, false) => Kind::Other,
    }
}

fn gone(what: &str, path: &Path, error: &io::Error) -> SourceError {
    SourceError::Gone { doing: doing(what, path), problem: error.to_string() }
}

fn doing(what: &str, path: &Path) -> String {
    format!("{what} {}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Moves `a.xml` to `done/a.xml.1`, as onto another file system.
    fn moved(at: &Path) -> Result<(), SourceError> {
        let done = at.join("done");
        carry("a.xml", &at.join("a.xml"), &done, &done.join("a.xml.1"))
    }

    fn inbox() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("done")).unwrap();
        std::fs::write(folder.path().join("a.xml"), "some bytes").unwrap();
        folder
    }

    fn archived(at: &Path) -> Vec<(String, String)> {
        let files = std::fs::read_dir(at.join("done")).unwrap().map(|file| file.unwrap().path());
        let told = |path: PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).unwrap())
        };
        let mut all: Vec<_> = files.map(told).collect();
        all.sort();
        all
    }

    fn whole() -> Vec<(String, String)> {
        vec![("a.xml.1".to_owned(), "some bytes".to_owned())]
    }

    #[test]
    fn a_file_is_carried_over_with_its_time() {
        let folder = inbox();
        let from = folder.path().join("a.xml");
        let before = from.metadata().unwrap();
        moved(folder.path()).unwrap();
        assert!(!from.exists());
        assert_eq!(archived(folder.path()), whole());
        let after = folder.path().join("done/a.xml.1").metadata().unwrap();
        assert_eq!(after.modified().unwrap(), before.modified().unwrap());
        assert_eq!(after.permissions(), before.permissions());
    }

    #[test]
    fn a_move_that_ended_early_is_gone_on_with() {
        let folder = inbox();
        let from = folder.path().join("a.xml");
        std::fs::write(folder.path().join("done/.a.xml.1.part"), "some").unwrap();
        moved(folder.path()).unwrap();
        assert_eq!(archived(folder.path()), whole());
        // The copy had its name, and the file was not taken out yet.
        std::fs::write(&from, "some bytes").unwrap();
        moved(folder.path()).unwrap();
        assert!(!from.exists());
        assert_eq!(archived(folder.path()), whole());
    }

    #[test]
    fn a_move_that_fails_leaves_no_piece() {
        let folder = inbox();
        let done = folder.path().join("done");
        // A regular file whose bytes cannot be read.
        let moved = carry("mem", Path::new("/proc/self/mem"), &done, &done.join("mem.1"));
        assert!(matches!(moved, Err(SourceError::Gone { .. })), "{moved:?}");
        assert_eq!(archived(folder.path()), []);
    }

    #[test]
    fn another_file_of_the_name_is_never_written_over() {
        for other in ["other bytes", "some bytez"] {
            let folder = inbox();
            std::fs::write(folder.path().join("done/a.xml.1"), other).unwrap();
            assert!(matches!(moved(folder.path()), Err(SourceError::Taken { .. })));
            assert!(folder.path().join("a.xml").exists());
            assert_eq!(archived(folder.path()), [("a.xml.1".to_owned(), other.to_owned())]);
        }
    }
}
