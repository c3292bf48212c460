//! Where settlement files come from: a folder, or an SFTP server. Both are only read, unless the
//! configuration says where to archive.
//!
//! Everything here blocks, and is called from threads that may: libssh2 has no other way, and
//! every one of its calls has a limit of time. A remote name is data and never a path of this
//! machine. Secrets are read before (they may ask a command), so that nothing here waits on them.
//!
//! Who fetches: [`fetch::fetch`] brings what is new and whole into the [`spool::Spool`];
//! [`fetch::archive`] is a call of its own, for after the commit.
//!
//! To add a kind of source: a file here with a [`Shelf`], its settings and its place in [`open`].

use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub mod decrypt;
pub mod fetch;
pub mod folder;
pub mod known_hosts;
mod login;
mod offer;
pub mod pick;
pub mod settings;
pub mod sftp;
pub mod spool;
pub mod trust;
mod wire;

use pick::Seen;
use settings::{Place, Secrets, Source};

use crate::exit::Exit;

/// So many bytes are asked for at once. libssh2 reads ahead as far as the caller's buffer: with
/// 8 KiB a server that is 20 ms away gives 1.4 MiB/s, with this 114.
pub const BUFFER: usize = 1024 * 1024;

/// A folder with more entries is not an inbox: each costs memory here, and a server could send them
/// without an end. None of its files is read then, as the one that is due may be among the rest.
const ENTRIES_MAX: usize = 1_000_000;

/// Told the bytes that have come; false: stop.
pub type Going<'a> = &'a mut (dyn FnMut(u64) -> bool + Send);

/// A place with files.
pub trait Shelf: Send {
    /// Everything in the folder.
    ///
    /// # Errors
    /// As [`SourceError`] says; then nothing is known of the folder.
    fn list(&mut self) -> Result<Vec<Seen>, SourceError>;

    /// One file as it stands now.
    ///
    /// # Errors
    /// [`SourceError::Gone`] where there is none.
    fn stat(&mut self, name: &str) -> Result<Seen, SourceError>;

    /// Copies a file's bytes. Fewer than its size is no error here: a file that was cut short
    /// while it was read ends like a whole one, and [`spool`] compares.
    ///
    /// # Errors
    /// As [`SourceError`] says; what came so far is of no use.
    fn copy(
        &mut self,
        name: &str,
        to: &mut dyn Write,
        going: Going<'_>,
    ) -> Result<u64, SourceError>;

    /// Moves a file into a folder, under `to`, which no file there has; the folder is made.
    ///
    /// # Errors
    /// As [`SourceError`] says; the file is where it was.
    fn put_away(&mut self, name: &str, folder: &str, to: &str) -> Result<(), SourceError>;

    /// Whether a file may be read: it is opened, and nothing is read of it.
    ///
    /// # Errors
    /// As [`SourceError`] says.
    fn try_open(&mut self, name: &str) -> Result<(), SourceError>;

    /// Whether files could be put away into a folder, as far as that can be told without a change.
    ///
    /// # Errors
    /// What would keep them from it.
    fn try_archive(&mut self, folder: &str) -> Result<(), SourceError>;

    /// The fingerprint by which a server was trusted; none of a folder.
    fn host_key(&self) -> Option<String> {
        None
    }
}

/// Opens a source: connects and logs in, where it is a server.
///
/// # Errors
/// As [`SourceError`] says.
pub fn open(source: &Source, secrets: &Secrets) -> Result<Box<dyn Shelf>, SourceError> {
    match &source.place {
        Place::Folder(path) => Ok(Box::new(folder::Folder::new(path))),
        Place::Sftp(server) => Ok(Box::new(sftp::Sftp::open(server, secrets)?)),
    }
}

/// Why a source did not give what was asked of it.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// Nobody answered, or the line was cut: another time.
    #[error("{doing}: {problem}")]
    Unreachable {
        /// What was being done.
        doing: String,
        /// What happened.
        problem: String,
    },
    /// The server did not let us in.
    #[error("{doing}: {problem}")]
    Refused {
        /// What was being done.
        doing: String,
        /// What the server, or the key, says.
        problem: String,
    },
    /// The server is not the one that is trusted, or offers nothing that can be.
    #[error("{problem}; nothing was read")]
    Trust {
        /// What it showed.
        problem: String,
        /// What a person may do about it.
        next: Next,
    },
    /// A key, password or passphrase could not be had.
    #[error("{field}: {problem}; nothing was read")]
    Secret {
        /// The setting.
        field: &'static str,
        /// Why.
        problem: String,
        /// The exit that it leads to.
        exit: Exit,
    },
    /// There is no such file or folder, or it may not be read or moved.
    #[error("{doing}: {problem}")]
    Gone {
        /// What was being done.
        doing: String,
        /// Why.
        problem: String,
    },
    /// Another file has the name in the archive.
    #[error("archiving to {to}: a file of this name is there")]
    Taken {
        /// The name.
        to: String,
    },
    /// There are more names than an inbox has.
    #[error("listing {path}: it holds more than 1,000,000 names; none of its files was read")]
    Crowded {
        /// The folder.
        path: String,
    },
    /// A file changed while it was read.
    #[error("{name} changed while it was read: {problem}; it is fetched again by the next run")]
    Changed {
        /// The file.
        name: String,
        /// What differs.
        problem: String,
    },
    /// A file cannot be decrypted.
    #[error("{name} cannot be decrypted: {problem}; nothing of it was read")]
    Sealed {
        /// The file.
        name: String,
        /// Why.
        problem: String,
    },
    /// It was told to stop.
    #[error("stopped while {name} was read; it is fetched again by the next run")]
    Stopped {
        /// The file.
        name: String,
    },
    /// This machine's own disk.
    #[error("{doing} {}: {source}", path.display())]
    Local {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

/// What a person may do about a server that is not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Its key is not known yet: compare, then `sources trust`.
    Learn,
    /// Another key is known: ask the other side first.
    Ask,
    /// Its key is revoked, and nobody may trust it: another one must come.
    Replace,
    /// A line of the known hosts may revoke it, and cannot be read.
    Mend,
    /// Nothing here: its operator must act.
    Wait,
}

impl SourceError {
    fn local(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Local { doing, path, source }
    }

    /// Whether the source itself is lost, so that its other files cannot be had either.
    pub fn ends_all(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Refused { .. }
            | Self::Trust { .. }
            | Self::Secret { .. }
            | Self::Crowded { .. }
            | Self::Stopped { .. }
            | Self::Local { .. } => true,
            Self::Gone { .. } | Self::Taken { .. } | Self::Changed { .. } | Self::Sealed { .. } => {
                false
            }
        }
    }

    /// The exit that it leads to.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Refused { .. } => Exit::Auth,
            Self::Trust { .. } => Exit::Trust,
            Self::Secret { exit, .. } => *exit,
            Self::Unreachable { .. }
            | Self::Gone { .. }
            | Self::Taken { .. }
            | Self::Crowded { .. }
            | Self::Changed { .. }
            | Self::Sealed { .. }
            | Self::Stopped { .. }
            | Self::Local { .. } => Exit::Partial,
        }
    }

    /// [`Self::hint`] to who has just looked by hand: the same command is no answer.
    pub fn hint_to_person(&self, name: &str) -> String {
        match self {
            Self::Unreachable { .. } | Self::Stopped { .. } | Self::Changed { .. } => {
                "the next run tries again; mend the address, the network or the server, if it \
                 stays so"
                    .to_owned()
            }
            Self::Refused { .. } => format!("mend the login of `{name}`, and try again"),
            Self::Gone { .. } => format!("mend the path of `{name}` or the rights, and try again"),
            other => other.hint(name),
        }
    }

    /// What to do next about source `name`.
    pub fn hint(&self, name: &str) -> String {
        match self {
            Self::Unreachable { .. } | Self::Stopped { .. } | Self::Changed { .. } => {
                format!("the next run tries again; look at it now: tieout sources test {name}")
            }
            Self::Refused { .. } => {
                format!("mend the login of `{name}`, then: tieout sources test {name}")
            }
            Self::Trust { next: Next::Learn, .. } => {
                format!("compare the key with what its operator says: tieout sources trust {name}")
            }
            Self::Trust { next: Next::Ask, .. } => format!(
                "ask its operator, by another way, whether the key was changed; only then: \
                 tieout sources trust {name}"
            ),
            Self::Trust { next: Next::Replace, .. } => {
                "ask its operator for a key that is not revoked; where this one was marked by \
                 mistake, take its `@revoked` line out of the known hosts"
                    .to_owned()
            }
            Self::Trust { next: Next::Mend, .. } => {
                format!("mend that line, or take it out; then: tieout sources test {name}")
            }
            Self::Trust { next: Next::Wait, .. } => {
                "ask its operator for algorithms of this decade".to_owned()
            }
            Self::Secret { .. } => format!("mend the settings of `{name}`: tieout config check"),
            Self::Crowded { .. } => format!(
                "have its old files put elsewhere, or name the folder of the new ones as the \
                 `path` of `{name}`"
            ),
            Self::Taken { .. } => format!("take old files out of the archive of `{name}`"),
            Self::Gone { .. } => format!("mend the path or the rights: tieout sources test {name}"),
            Self::Sealed { .. } => {
                format!("look at [source.decrypt] of `{name}`, and which key the sender uses")
            }
            Self::Local { doing: "reading", .. } => {
                "mend that path, or let this user read it".to_owned()
            }
            Self::Local { source, .. }
                if matches!(
                    source.kind(),
                    io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists
                ) =>
            {
                "a file stands where a folder is needed: move it away, or name another place as \
                 files.spool (TIEOUT_FILES_SPOOL)"
                    .to_owned()
            }
            Self::Local { .. } => "free some space, or let this user write there".to_owned(),
        }
    }
}

/// Notes an entry of a listing, while it is one of an inbox.
fn note(listing: &mut Vec<Seen>, seen: Seen, path: &Path) -> Result<(), SourceError> {
    if listing.len() >= ENTRIES_MAX {
        return Err(SourceError::Crowded { path: path.display().to_string() });
    }
    listing.push(seen);
    Ok(())
}

/// Copies until the end, in large pieces.
fn pour(
    name: &str,
    from: &mut dyn io::Read,
    to: &mut dyn Write,
    going: Going<'_>,
    misread: &dyn Fn(io::Error) -> SourceError,
) -> Result<u64, SourceError> {
    let mut buffer = vec![0_u8; BUFFER];
    let mut copied = 0_u64;
    loop {
        if !going(copied) {
            return Err(SourceError::Stopped { name: name.to_owned() });
        }
        let read = match from.read(&mut buffer) {
            Ok(0) => return Ok(copied),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(misread(error)),
        };
        let bytes = buffer.get(..read).unwrap_or_default();
        to.write_all(bytes).map_err(SourceError::local("writing what came of", name))?;
        copied = copied.saturating_add(u64::try_from(read).unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settlement::sources::pick::Kind;

    #[test]
    fn a_listing_with_more_names_than_an_inbox_has_is_refused_whole() {
        let seen = Seen { name: String::new(), size: 0, modified: None, kind: Kind::File };
        let mut listing = vec![seen.clone(); ENTRIES_MAX - 1];
        let path = Path::new("in");
        note(&mut listing, seen.clone(), path).unwrap();
        let error = note(&mut listing, seen, path).unwrap_err();
        assert!(error.ends_all());
        assert_eq!(error.exit(), Exit::Partial);
        let says = "listing in: it holds more than 1,000,000 names; none of its files was read";
        assert_eq!(error.to_string(), says);
    }
}
