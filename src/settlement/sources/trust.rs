//! Whether a server is the one that is trusted: by fingerprints of the configuration, else by a
//! known_hosts file. Nobody is trusted on first sight; a person does that, by `sources trust`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use crate::model::settlement::Problem;
use crate::settlement::sources::known_hosts::{KnownHosts, Verdict, fingerprint, key_type, line};
use crate::settlement::sources::settings::Server;
use crate::settlement::sources::wire::{FAMILIES, Line, algorithms_of};
use crate::settlement::sources::{Next, SourceError};

/// A public key that a server shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostKey {
    /// Its wire form.
    pub key: Vec<u8>,
    /// Its type: `ssh-ed25519`.
    pub kind: String,
    /// As OpenSSH shows it: `SHA256:…`.
    pub fingerprint: String,
    /// What is known of it here.
    pub standing: Standing,
}

/// How a key stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is trusted.
    Trusted,
    /// Nothing is known of the server.
    Unknown,
    /// Other keys are trusted.
    Changed,
    /// It is marked as revoked.
    Revoked,
}

/// What is trusted of a server.
pub struct Trusted<'a> {
    server: &'a Server,
    known: KnownHosts,
    /// Lines of the file that cannot be read; they trust nobody.
    pub problems: Vec<Problem>,
}

impl<'a> Trusted<'a> {
    /// Reads what is trusted. A file that is not there trusts nobody.
    ///
    /// # Errors
    /// Where the file is there and cannot be read.
    pub fn of(server: &'a Server) -> Result<Self, SourceError> {
        let text = read_if_there(&server.known_hosts)?;
        let (known, problems) = KnownHosts::parse(&text);
        Ok(Self { server, known, problems })
    }

    /// How a key of the server stands.
    pub fn standing(&self, key: &[u8]) -> Standing {
        let verdict = self.known.verdict(&self.server.host, self.server.port, key);
        let pins = &self.server.host_keys;
        match verdict {
            Verdict::Revoked => Standing::Revoked,
            // Fingerprints in the configuration are the whole truth where there are any.
            _any if pins.contains(&fingerprint(key)) => Standing::Trusted,
            _any if !pins.is_empty() => Standing::Changed,
            Verdict::Match => Standing::Trusted,
            Verdict::Unknown => Standing::Unknown,
            Verdict::Mismatch => Standing::Changed,
        }
    }

    /// The fingerprints that are trusted.
    pub fn fingerprints(&self) -> Vec<String> {
        if !self.server.host_keys.is_empty() {
            return self.server.host_keys.clone();
        }
        self.known.fingerprints(&self.server.host, self.server.port)
    }

    /// Keys that the file trusts and that the server does not show, by the file's lines: whoever
    /// holds one of them is still taken for the server. None where the configuration says which.
    pub fn stale(&self, shown: &[HostKey]) -> Vec<(u64, String)> {
        if !self.server.host_keys.is_empty() {
            return Vec::new();
        }
        let keys: Vec<&[u8]> = shown.iter().map(|key| key.key.as_slice()).collect();
        self.known.besides(&self.server.host, self.server.port, &keys)
    }

    /// Algorithms of the keys that are trusted first: the server may have others, just as right.
    fn algorithms(&self) -> Vec<&'static str> {
        let types = self.known.key_types(&self.server.host, self.server.port);
        let mut wanted: Vec<&'static str> = Vec::new();
        let known = types.iter().flat_map(|kind| algorithms_of(kind));
        for name in known.chain(FAMILIES.iter().flat_map(|family| family.iter())) {
            if !wanted.contains(name) {
                wanted.push(name);
            }
        }
        wanted
    }

    /// Connects to the server, if it is the trusted one.
    pub(super) fn connect(&self) -> Result<Line, SourceError> {
        let first = Line::open(self.server, &self.algorithms())?;
        let standing = self.standing(&first.key);
        if standing == Standing::Trusted {
            return Ok(first);
        }
        // A fingerprint does not tell its key's type: the server may have that key too.
        if !self.server.host_keys.is_empty() && standing == Standing::Changed {
            let shown = key_type(&first.key);
            for family in FAMILIES
                .iter()
                .filter(|family| !algorithms_of(&shown).iter().any(|shown| family.contains(shown)))
            {
                match Line::open(self.server, family) {
                    Ok(line) if self.standing(&line.key) == Standing::Trusted => return Ok(line),
                    Ok(_) | Err(SourceError::Trust { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Err(self.refused(&first.key, standing))
    }

    fn refused(&self, key: &[u8], standing: Standing) -> SourceError {
        let address = self.server.address();
        let shown = format!("{} ({})", fingerprint(key), key_type(key));
        let (problem, next) = match standing {
            Standing::Trusted | Standing::Unknown => {
                (format!("nothing is known yet of {address}; its host key is {shown}"), Next::Learn)
            }
            Standing::Changed => {
                let trusted = self.fingerprints().join(", ");
                let problem = format!(
                    "the host key of {address} is {shown}, and trusted is another: {trusted}; \
                     either it was changed, or somebody stands in between"
                );
                (problem, Next::Ask)
            }
            Standing::Revoked => {
                (format!("the host key of {address} is {shown}, which is revoked"), Next::Replace)
            }
        };
        SourceError::Trust { problem, next }
    }

    /// Every key that the server shows, one of each family that it has.
    ///
    /// # Errors
    /// Where it does not answer, or shows none.
    pub fn shown(&self) -> Result<Vec<HostKey>, SourceError> {
        let mut keys: Vec<HostKey> = Vec::new();
        let mut none = None;
        for family in FAMILIES {
            match Line::open(self.server, family) {
                Ok(line) => keys.push(HostKey {
                    kind: key_type(&line.key),
                    fingerprint: fingerprint(&line.key),
                    standing: self.standing(&line.key),
                    key: line.key.clone(),
                }),
                // It has no key of this family.
                Err(error @ SourceError::Trust { .. }) => none = Some(error),
                Err(error) => return Err(error),
            }
        }
        match none {
            Some(error) if keys.is_empty() => Err(error),
            _some_or_all => Ok(keys),
        }
    }
}

/// Writes down that a key is the server's: a line at the end of its known_hosts file. The file is
/// replaced as a whole, so that no run ever reads half of it.
///
/// # Errors
/// Where the file cannot be written; it is as it was then.
pub fn remember(server: &Server, key: &[u8], comment: &str) -> Result<(), SourceError> {
    // Where it is a link, what it leads to is written.
    let path = fs::canonicalize(&server.known_hosts).unwrap_or(server.known_hosts.clone());
    // A device is not replaced by a file.
    if path.metadata().is_ok_and(|there| !there.is_file()) {
        let no_file = io::Error::new(io::ErrorKind::InvalidInput, "it is no file");
        return Err(SourceError::local("writing", &path)(no_file));
    }
    let mut text = read_if_there(&path)?;
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&format!("{} {comment}\n", line(&server.host, server.port, key)));
    let mut part = path.clone().into_os_string();
    part.push(format!(".{}.part", std::process::id()));
    let part = Path::new(&part);
    let written = write(part, &path, &text);
    if written.is_err() {
        // The error that stopped it is the one to tell.
        let _gone = fs::remove_file(part);
    }
    written
}

fn write(part: &Path, path: &Path, text: &str) -> Result<(), SourceError> {
    let mut file = File::create(part).map_err(SourceError::local("making", part))?;
    if let Ok(metadata) = fs::metadata(path) {
        let same = fs::set_permissions(part, metadata.permissions());
        same.map_err(SourceError::local("setting the rights of", part))?;
    }
    file.write_all(text.as_bytes()).map_err(SourceError::local("writing", part))?;
    file.sync_all().map_err(SourceError::local("bringing to the disk", part))?;
    fs::rename(part, path).map_err(SourceError::local("naming", path))
}

fn read_if_there(path: &Path) -> Result<String, SourceError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(SourceError::local("reading", path)(error)),
    }
}
