//! A folder of an SFTP server.
//!
//! A reader of libssh2 is as fast as its caller's buffer is large; see [`BUFFER`]. What follows an
//! error of the line is told at once: a handle of a dead session would wait for its time-out.
//!
//! [`BUFFER`]: super::BUFFER

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ssh2::{ErrorCode, FileStat};

use crate::settlement::sources::known_hosts::fingerprint;
use crate::settlement::sources::login::log_in;
use crate::settlement::sources::pick::{Kind, Seen};
use crate::settlement::sources::settings::{Secrets, Server};
use crate::settlement::sources::trust::Trusted;
use crate::settlement::sources::wire::{Line, NO_SUCH_FILE, told};
use crate::settlement::sources::{Going, Shelf, SourceError, note, pour};

/// libssh2 ends a listing by this error.
const END_OF_LIST: i32 = -16;

/// The bits of a mode that say what a file is, and two of their values.
const KIND_BITS: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;

/// The rights of anybody to write.
const WRITTEN_BY_ANY: u32 = 0o222;

/// Rights of a folder that is made for the archive.
const FOLDER_MODE: i32 = 0o755;

/// A folder of a server.
pub struct Sftp {
    // Dropped first: it cuts the line, so that what follows does not wait for an answer.
    line: Line,
    sftp: ssh2::Sftp,
    path: PathBuf,
    address: String,
    /// Folders that were made, or found, to put files away into.
    archives: HashSet<PathBuf>,
}

impl Sftp {
    /// Connects to a trusted server and logs in.
    ///
    /// # Errors
    /// As [`SourceError`] says.
    pub fn open(server: &Server, secrets: &Secrets) -> Result<Self, SourceError> {
        let line = Trusted::of(server)?.connect()?;
        log_in(&line, server, secrets)?;
        let address = server.address();
        let opened = line.session.sftp();
        let sftp = opened.map_err(|e| told(format!("asking {address} for its files"), &e))?;
        let archives = HashSet::new();
        Ok(Self { line, sftp, path: PathBuf::from(&server.path), address, archives })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn doing(&self, what: &str, path: &Path) -> String {
        format!("{what} {} at {}", path.display(), self.address)
    }

    /// The error in words; a line that was cut stays cut.
    fn failed(&self, what: &str, path: &Path, error: &ssh2::Error) -> SourceError {
        let error = told(self.doing(what, path), error);
        if error.ends_all() {
            self.line.cut();
        }
        error
    }

    /// Why a folder cannot be listed; servers say nothing good of one that is a file.
    fn unlisted(&self, path: &Path, error: &ssh2::Error) -> SourceError {
        let failed = self.failed("listing", path, error);
        let is_file = |stat: FileStat| stat.perm.is_some_and(|mode| mode & KIND_BITS == REGULAR);
        match failed {
            SourceError::Gone { doing, .. } if self.sftp.stat(path).is_ok_and(is_file) => {
                SourceError::Gone { doing, problem: "it is a file, and no folder".to_owned() }
            }
            failed => failed,
        }
    }

    fn misread(&self, path: &Path, error: &io::Error) -> SourceError {
        let doing = self.doing("reading", path);
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => {
                SourceError::Gone { doing, problem: error.to_string() }
            }
            // The code of what the server said is lost; a line that goes on answering was not cut,
            // and then it said something of this file, which keeps no other one.
            kind if kind != io::ErrorKind::TimedOut && self.answers(path) => {
                SourceError::Gone { doing, problem: format!("the server says: {error}") }
            }
            kind => {
                self.line.cut();
                let late = kind == io::ErrorKind::TimedOut;
                let problem = if late { "it did not answer in time" } else { "the line was cut" };
                SourceError::Unreachable { doing, problem: format!("{problem}: {error}") }
            }
        }
    }

    /// Whether the server answers a question about a path, whatever it says.
    fn answers(&self, path: &Path) -> bool {
        self.sftp.lstat(path).map_or_else(|error| !told(String::new(), &error).ends_all(), |_| true)
    }

    /// Refuses the source's own folder by another name, a link or its whole path: each run would
    /// give every file of it a longer name.
    fn is_elsewhere(&self, folder: &Path) -> Result<(), SourceError> {
        let real = |path: &Path| self.sftp.realpath(path).ok();
        if real(folder).is_some_and(|at| Some(at) == real(&self.path)) {
            let problem = "it is the source's own folder".to_owned();
            return Err(SourceError::Gone { doing: self.doing("archiving to", folder), problem });
        }
        Ok(())
    }

    /// Makes a folder, with each above it that is missing.
    fn make(&self, folder: &Path) -> Result<(), SourceError> {
        if folder.as_os_str().is_empty() || self.is_there(folder)? {
            return Ok(());
        }
        if let Some(above) = folder.parent() {
            self.make(above)?;
        }
        let made = self.sftp.mkdir(folder, FOLDER_MODE);
        made.map_err(|error| self.failed("making", folder, &error))
    }

    fn is_there(&self, path: &Path) -> Result<bool, SourceError> {
        match self.sftp.lstat(path) {
            Ok(_stat) => Ok(true),
            Err(error) if error.code() == ErrorCode::SFTP(NO_SUCH_FILE) => Ok(false),
            Err(error) => Err(self.failed("looking at", path, &error)),
        }
    }
}

impl Shelf for Sftp {
    fn list(&mut self) -> Result<Vec<Seen>, SourceError> {
        let path = &self.path;
        let mut folder = self.sftp.opendir(path).map_err(|error| self.unlisted(path, &error))?;
        let mut listing = Vec::new();
        loop {
            match folder.readdir() {
                Ok((name, stat)) => {
                    // A server of another kind of machine may send what is no UTF-8.
                    let name = name.to_string_lossy();
                    if name != "." && name != ".." {
                        note(&mut listing, seen(&name, &stat), path)?;
                    }
                }
                Err(error) if error.code() == ErrorCode::Session(END_OF_LIST) => {
                    return Ok(listing);
                }
                Err(error) => return Err(self.failed("listing", path, &error)),
            }
        }
    }

    fn stat(&mut self, name: &str) -> Result<Seen, SourceError> {
        let path = self.at(name);
        let stat = self.sftp.lstat(&path);
        stat.map(|stat| seen(name, &stat)).map_err(|e| self.failed("looking at", &path, &e))
    }

    fn copy(
        &mut self,
        name: &str,
        to: &mut dyn Write,
        going: Going<'_>,
    ) -> Result<u64, SourceError> {
        let path = self.at(name);
        let opened = self.sftp.open(&path);
        let mut file = opened.map_err(|error| self.failed("opening", &path, &error))?;
        let ended = pour(name, &mut file, to, going, &|e| self.misread(&path, &e));
        if matches!(ended, Err(SourceError::Stopped { .. })) {
            // Requests for what follows are under way; nobody waits for their answers.
            self.line.cut();
        }
        ended
    }

    fn put_away(&mut self, name: &str, folder: &str, to: &str) -> Result<(), SourceError> {
        let folder = self.path.join(folder);
        if !self.archives.contains(&folder) {
            self.make(&folder)?;
            self.is_elsewhere(&folder)?;
            self.archives.insert(folder.clone());
        }
        let (from, to) = (self.at(name), folder.join(to));
        if self.is_there(&to)? {
            return Err(SourceError::Taken { to: to.display().to_string() });
        }
        let moved = self.sftp.rename(&from, &to, None);
        moved.map_err(|error| self.failed("archiving", &from, &error))
    }

    fn try_open(&mut self, name: &str) -> Result<(), SourceError> {
        let path = self.at(name);
        let opened = self.sftp.open(&path);
        opened.map(|_file| ()).map_err(|error| self.failed("opening", &path, &error))
    }

    fn try_archive(&mut self, folder: &str) -> Result<(), SourceError> {
        let folder = self.path.join(folder);
        let mut there = folder.as_path();
        // Where nothing is yet, each folder that is missing is made.
        while !self.is_there(there)? {
            let Some(above) = there.parent().filter(|above| !above.as_os_str().is_empty()) else {
                return Ok(());
            };
            there = above;
        }
        // What a link leads to is what counts.
        let stat = self.sftp.stat(there);
        let stat = stat.map_err(|error| self.failed("looking at", there, &error))?;
        let refused = |problem: String| {
            Err(SourceError::Gone { doing: self.doing("archiving to", &folder), problem })
        };
        if stat.perm.is_some_and(|mode| ![0, FOLDER].contains(&(mode & KIND_BITS))) {
            return refused(format!("{} is no folder", there.display()));
        }
        if stat.perm.is_some_and(|mode| mode & KIND_BITS != 0 && mode & WRITTEN_BY_ANY == 0) {
            return refused(format!("nobody may write to {}", there.display()));
        }
        if there == folder { self.is_elsewhere(&folder) } else { Ok(()) }
    }

    fn host_key(&self) -> Option<String> {
        Some(fingerprint(&self.line.key))
    }
}

fn seen(name: &str, stat: &FileStat) -> Seen {
    // A server that does not say what a name is, will say so when it is opened.
    let kind = match stat.perm.map(|mode| mode & KIND_BITS) {
        None | Some(0 | REGULAR) => Kind::File,
        Some(FOLDER) => Kind::Folder,
        Some(_other) => Kind::Other,
    };
    // Without a size nothing proves that a file came whole: it is read as one that changed.
    let modified = stat.mtime.and_then(|secs| secs.checked_mul(1_000_000));
    Seen { name: name.to_owned(), size: stat.size.unwrap_or(0), modified, kind }
}
