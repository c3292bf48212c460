//! A folder of this machine, or one that is mounted.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use rustix::fs::{Mode, OFlags};

use crate::settlement::sources::pick::{Kind, Seen};
use crate::settlement::sources::{Going, Shelf, SourceError, note, pour};

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
        // A link or a pipe that took the file's place since the listing must not be followed, or
        // waited for.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&path, flags, Mode::empty()).map_err(io::Error::from);
        let mut file = File::from(opened.map_err(|e| gone("opening", &path, &e))?);
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
        // Never over another file, nor in between a look and a rename.
        let renamed = rustix::fs::renameat_with(
            rustix::fs::CWD,
            &from,
            rustix::fs::CWD,
            &to,
            rustix::fs::RenameFlags::NOREPLACE,
        );
        renamed.map_err(|error| match io::Error::from(error) {
            error if error.kind() == io::ErrorKind::AlreadyExists => SourceError::Gone {
                doing: format!("archiving to {}", to.display()),
                problem: "a file of this name is there".to_owned(),
            },
            error => gone("archiving", &from, &error),
        })
    }
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

fn gone(doing: &str, path: &Path, error: &io::Error) -> SourceError {
    SourceError::Gone { doing: format!("{doing} {}", path.display()), problem: error.to_string() }
}
