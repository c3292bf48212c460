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
    /// Lines of the file that cannot be read; they trust nobody. None that may revoke a key of the
    /// server: those keep it from being asked.
    pub problems: Vec<Problem>,
}

impl<'a> Trusted<'a> {
    /// Reads what is trusted. A file that is not there trusts nobody.
    ///
    /// # Errors
    /// Where the file is there and cannot be read.
    pub fn of(server: &'a Server) -> Result<Self, SourceError> {
        // Names and comments are in the encoding of whoever wrote them.
        let bytes = read_if_there(&server.known_hosts)?;
        let (known, mut problems) = KnownHosts::parse(&String::from_utf8_lossy(&bytes));
        let doubts: Vec<u64> =
            known.doubts(&server.host, server.port).map(|doubt| doubt.line).collect();
        problems.retain(|problem| !doubts.contains(&problem.line));
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
        let mut wanted: Vec<&'static str> = Vec::new();
        for name in self.known_algorithms().chain(FAMILIES.concat()) {
            if !wanted.contains(&name) {
                wanted.push(name);
            }
        }
        wanted
    }

    /// Algorithms of the keys that the file trusts.
    fn known_algorithms(&self) -> impl Iterator<Item = &'static str> {
        let types = self.known.key_types(&self.server.host, self.server.port);
        types.into_iter().flat_map(|kind| algorithms_of(kind).to_vec())
    }

    /// Of the algorithms that it was asked for, those that another key of it may be trusted by,
    /// once it showed a key of this type. A fingerprint does not tell its key's type.
    fn left(&self, asked: &[&'static str], shown: &str) -> Vec<&'static str> {
        let known: Vec<&str> = self.known_algorithms().collect();
        let is_any = !self.server.host_keys.is_empty();
        let mut left = behind(asked, shown).to_vec();
        left.retain(|name| is_any || known.contains(name));
        left
    }

    /// Connects to the server, if it is the trusted one. Where the key that it shows is not, it is
    /// asked for its others, as long as one of those may be: it must prove to hold a trusted key,
    /// whatever it has beside.
    pub(super) fn connect(&self) -> Result<Line, SourceError> {
        self.without_doubt()?;
        let mut asked = self.algorithms();
        let mut shown: Vec<Vec<u8>> = Vec::new();
        loop {
            let line = match Line::open(self.server, &asked) {
                Ok(line) if self.standing(&line.key) == Standing::Trusted => return Ok(line),
                Ok(line) => line,
                // It has no key of those.
                Err(SourceError::Trust { .. }) if !shown.is_empty() => {
                    return Err(self.refused(&shown));
                }
                Err(error) => return Err(error),
            };
            asked = self.left(&asked, &key_type(&line.key));
            shown.push(line.key.clone());
            if asked.is_empty() {
                return Err(self.refused(&shown));
            }
        }
    }

    /// A line that may revoke the key that the server would show lets nobody in.
    fn without_doubt(&self) -> Result<(), SourceError> {
        let server = self.server;
        let Some(doubt) = self.known.doubts(&server.host, server.port).next() else {
            return Ok(());
        };
        let (file, address) = (server.known_hosts.display(), server.address());
        let problem = format!(
            "{file}:{} may revoke a key of {address}, and cannot be read: {}: expected {}, found \
             {}",
            doubt.line, doubt.field, doubt.expected, doubt.found
        );
        Err(SourceError::Trust { problem, next: Next::Mend })
    }

    /// Why none of the keys that it showed lets it be read.
    fn refused(&self, shown: &[Vec<u8>]) -> SourceError {
        let address = self.server.address();
        let of = |standing: Standing| -> Vec<String> {
            let keys = shown.iter().filter(|key| self.standing(key) == standing);
            keys.map(|key| format!("{} ({})", fingerprint(key), key_type(key))).collect()
        };
        let trusted = self.fingerprints();
        let another = match trusted.as_slice() {
            [] => "none is trusted that is not revoked".to_owned(),
            trusted => format!("trusted is another: {}", trusted.join(", ")),
        };
        let changed = "either it was changed, or somebody stands in between";
        let (problem, next) = match (&*of(Standing::Revoked), &*of(Standing::Changed)) {
            ([], []) => {
                let unknown = of(Standing::Unknown).join(" and ");
                let problem =
                    format!("nothing is known yet of {address}; its host key is {unknown}");
                (problem, Next::Learn)
            }
            ([], [key]) => {
                let problem =
                    format!("the host key of {address} is {key}, and {another}; {changed}");
                (problem, Next::Ask)
            }
            ([], keys) => {
                let keys = keys.join(" and ");
                let problem =
                    format!("the host keys of {address} are {keys}, and {another}; {changed}");
                (problem, Next::Ask)
            }
            (revoked, others) => {
                let revoked = revoked.join(" and ");
                let mut problem =
                    format!("the host key of {address} is {revoked}, which is revoked");
                if !others.is_empty() {
                    let others = others.join(" and ");
                    problem.push_str(&format!("; it also shows {others}, and {another}"));
                }
                (problem, Next::Replace)
            }
        };
        SourceError::Trust { problem, next }
    }

    /// Every key that the server shows, one of each family that it has.
    ///
    /// # Errors
    /// Where it does not answer, or shows none, or where the file may revoke one of them by a line
    /// that cannot be read.
    pub fn shown(&self) -> Result<Vec<HostKey>, SourceError> {
        self.without_doubt()?;
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

/// What follows, of the algorithms that a server was asked for, once it showed a key of this type:
/// of those before it, it has none (RFC 4253, section 7.1).
fn behind<'a>(asked: &'a [&'static str], shown: &str) -> &'a [&'static str] {
    let own = algorithms_of(shown);
    let last = asked.iter().rposition(|name| own.contains(name));
    last.and_then(|at| asked.get(at.saturating_add(1)..)).unwrap_or_default()
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
    if text.last().is_some_and(|last| *last != b'\n') {
        text.push(b'\n');
    }
    let own = format!("{} {comment}\n", line(&server.host, server.port, key));
    text.extend(own.into_bytes());
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

fn write(part: &Path, path: &Path, text: &[u8]) -> Result<(), SourceError> {
    let mut file = File::create(part).map_err(SourceError::local("making", part))?;
    if let Ok(metadata) = fs::metadata(path) {
        let same = fs::set_permissions(part, metadata.permissions());
        same.map_err(SourceError::local("setting the rights of", part))?;
    }
    file.write_all(text).map_err(SourceError::local("writing", part))?;
    file.sync_all().map_err(SourceError::local("bringing to the disk", part))?;
    fs::rename(part, path).map_err(SourceError::local("naming", path))
}

fn read_if_there(path: &Path) -> Result<Vec<u8>, SourceError> {
    match fs::read(path) {
        Ok(bytes) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(SourceError::local("reading", path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_showed_a_key_has_none_of_those_that_were_asked_for_before_it() {
        let all: Vec<&str> = FAMILIES.concat();
        let p384 = ["ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "rsa-sha2-512", "rsa-sha2-256"];
        assert_eq!(behind(&all, "ssh-ed25519"), &all[1..]);
        assert_eq!(behind(&all, "ecdsa-sha2-nistp256"), p384);
        let rsa_first = ["rsa-sha2-512", "rsa-sha2-256", "ssh-ed25519"];
        assert_eq!(behind(&rsa_first, "ssh-rsa"), ["ssh-ed25519"]);
        for none in ["ssh-ed25519", "ssh-dss", ""] {
            assert_eq!(behind(&rsa_first, none), [""; 0], "{none}");
        }
    }
}
