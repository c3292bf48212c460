//! Where fetched files lie until their lines are in the database: by the hash of their bytes.
//!
//! A file is written under an unfinished name, checked against what the source says of its size
//! before and after, brought to the disk, and only then gets its own. Whatever stops half-way
//! leaves an unfinished name, which the next fetch of that source removes.

use std::fs::{self, DirBuilder, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::model::transaction::hex;
use crate::settlement::sources::pick::{Kind, Seen};
use crate::settlement::sources::{BUFFER, Going, Shelf, SourceError};

/// How often a folder is made that is gone again at once.
const MAKING_MAX: u32 = 100;

/// A folder of fetched files.
#[derive(Debug, Clone)]
pub struct Spool {
    root: PathBuf,
}

/// A file that was fetched whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// As the source showed it, before and after alike; its name is the remote one.
    pub seen: Seen,
    /// The file beside it that said that it is whole.
    pub marker: Option<String>,
    /// SHA-256 of its bytes as they came, in hex.
    pub sha256: String,
    /// How many.
    pub bytes: u64,
    /// Where they lie.
    pub path: PathBuf,
    /// Where they lie decrypted, where the source's files are encrypted.
    pub plain: Option<PathBuf>,
}

impl Fetched {
    /// The file to parse: it may still be compressed.
    pub fn readable(&self) -> &Path {
        self.plain.as_deref().unwrap_or(&self.path)
    }
}

impl Spool {
    /// A spool under `root`, which is made when it is first needed.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Where files are written while they are not whole. One process at a time fetches from a
    /// source; two that do it anyway do not write over each other.
    pub(super) fn part(&self, source: &str) -> PathBuf {
        self.root.join(format!("{source}.{}.part", std::process::id()))
    }

    /// Where a file's decrypted bytes lie.
    pub(super) fn plain(&self, sha256: &str) -> PathBuf {
        self.root.join(format!("{sha256}.plain"))
    }

    /// Removes what an earlier fetch of this source left half-way.
    pub(super) fn sweep(&self, source: &str) {
        let prefix = format!("{source}.");
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let process = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(".part"));
            let Some(process) = process.filter(|p| p.bytes().all(|b| b.is_ascii_digit())) else {
                continue;
            };
            // One that still runs may be writing it.
            if !Path::new("/proc").join(process).exists() {
                // What cannot be removed is in nobody's way: it is never read.
                let _kept = fs::remove_file(entry.path());
            }
        }
    }

    /// Fetches one file of `source`.
    ///
    /// # Errors
    /// Where it did not come whole, or changed meanwhile; nothing of it is kept.
    pub fn fetch(
        &self,
        source: &str,
        shelf: &mut dyn Shelf,
        name: &str,
        going: Going<'_>,
    ) -> Result<Fetched, SourceError> {
        self.make().map_err(SourceError::local("making", &self.root))?;
        let before = shelf.stat(name)?;
        if before.kind != Kind::File {
            let problem = "it is no regular file any more".to_owned();
            return Err(SourceError::Changed { name: name.to_owned(), problem });
        }
        let part = self.part(source);
        let fetched = self.take(shelf, &before, &part, going);
        if fetched.is_err() {
            // The error that stopped it is the one to tell.
            let _gone = fs::remove_file(&part);
        }
        fetched
    }

    /// Makes the folder. Who is done with another source clears the one around both away while it
    /// is empty, which may be right between the two steps of making them.
    fn make(&self) -> io::Result<()> {
        // What banks write of customers is for this user alone.
        let make = || DirBuilder::new().recursive(true).mode(0o700).create(&self.root);
        let is_gone = |made: &io::Result<()>| {
            made.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        };
        let again = (1..MAKING_MAX).map(|_| make()).find(|made| !is_gone(made));
        again.unwrap_or_else(make)
    }

    fn take(
        &self,
        shelf: &mut dyn Shelf,
        before: &Seen,
        part: &Path,
        going: Going<'_>,
    ) -> Result<Fetched, SourceError> {
        let file = File::create(part).map_err(SourceError::local("making", part))?;
        let mut hashed = Hashed { to: BufWriter::with_capacity(BUFFER, file), hash: Sha256::new() };
        let bytes = shelf.copy(&before.name, &mut hashed, going)?;
        let after = shelf.stat(&before.name)?;
        same(before, &after, bytes)?;
        let Hashed { to, hash } = hashed;
        let file = to.into_inner().map_err(io::IntoInnerError::into_error);
        let file = file.map_err(SourceError::local("writing", part))?;
        file.sync_all().map_err(SourceError::local("bringing to the disk", part))?;
        let sha256 = hex(&hash.finalize());
        let path = self.root.join(&sha256);
        self.give_name(part, &path)?;
        let seen = before.clone();
        Ok(Fetched { seen, marker: None, sha256, bytes, path, plain: None })
    }

    /// Gives a whole file its name, so that it is there after a power cut too.
    pub(super) fn give_name(&self, part: &Path, path: &Path) -> Result<(), SourceError> {
        fs::rename(part, path).map_err(SourceError::local("naming", path))?;
        let folder = File::open(&self.root).and_then(|folder| folder.sync_all());
        folder.map_err(SourceError::local("bringing to the disk", &self.root))
    }

    /// Takes a file out, once its lines are committed or nobody wants them.
    ///
    /// # Errors
    /// Where the disk does not let go of it; a file that is not there is gone already.
    pub fn forget(&self, sha256: &str) -> Result<(), SourceError> {
        for path in [self.plain(sha256), self.root.join(sha256)] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(SourceError::local("removing", path)(error));
                }
                _gone => {}
            }
        }
        Ok(())
    }
}

impl Spool {
    /// Takes the folder itself away, and the one above it, where nothing is left in them.
    pub fn leave(&self) {
        for folder in [Some(self.root.as_path()), self.root.parent()].into_iter().flatten() {
            // One that holds something stays.
            let _left = fs::remove_dir(folder);
        }
    }
}

/// A reader sees the end of a file that was cut short as any other end: only the sizes tell.
fn same(before: &Seen, after: &Seen, bytes: u64) -> Result<(), SourceError> {
    let changed =
        |problem: String| Err(SourceError::Changed { name: before.name.clone(), problem });
    if before.size != after.size {
        return changed(format!("{} bytes before and {} after", before.size, after.size));
    }
    if before != after {
        return changed("it was written again".to_owned());
    }
    if bytes != before.size {
        return changed(format!("{bytes} of {} bytes came", before.size));
    }
    Ok(())
}

/// Hashes what it writes.
struct Hashed {
    to: BufWriter<File>,
    hash: Sha256,
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write_all(bytes)?;
        self.hash.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
