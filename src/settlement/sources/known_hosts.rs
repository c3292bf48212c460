//! Which host keys are trusted: an OpenSSH `known_hosts` file, read as OpenSSH reads it (sshd(8),
//! "SSH_KNOWN_HOSTS FILE FORMAT").
//!
//! libssh2's own reader takes a key that is marked `@revoked` for trusted, and calls a host whose
//! key of another type is known a changed one; so it is never asked.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::model::settlement::Problem;
use crate::model::wildcard::fits;

/// The port that a host without one stands for.
const SSH: u16 = 22;

/// What a file says of the key that a server showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is the host's.
    Match,
    /// The file does not know the host.
    Unknown,
    /// The host is known by other keys.
    Mismatch,
    /// The key is marked as revoked; nothing else counts.
    Revoked,
}

/// The lines of a file that say something.
#[derive(Debug, Clone, Default)]
pub struct KnownHosts {
    lines: Vec<Known>,
    doubts: Vec<Doubt>,
}

/// A line that may mark a key as revoked, and cannot be read.
#[derive(Debug, Clone)]
struct Doubt {
    /// Whose key it may be; none: anybody's.
    hosts: Option<Hosts>,
    problem: Problem,
}

#[derive(Debug, Clone)]
struct Known {
    /// The line of the file.
    number: u64,
    hosts: Hosts,
    revoked: bool,
    kind: String,
    key: Vec<u8>,
}

#[derive(Debug, Clone)]
enum Hosts {
    /// `name,[name]:port,*.example.com,!bad`.
    Patterns(Vec<String>),
    /// `|1|salt|hash`: HMAC-SHA1 of the name.
    Hashed { salt: Vec<u8>, hash: Vec<u8> },
}

impl KnownHosts {
    /// Reads a file's text. What cannot be read is told and trusts nobody, and [`Self::doubts`] has
    /// what of it may revoke a key; certificate authorities are passed over, since certificates are
    /// not asked for.
    pub fn parse(text: &str) -> (Self, Vec<Problem>) {
        let mut known = Self::default();
        let mut problems = Vec::new();
        for (number, line) in (1_u64..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let read = entry(line);
            let misread = match &read {
                Err(misread) => Some(*misread),
                Ok(Some(known)) if !is_whole(known) => Some(("key", "a key that is not cut")),
                Ok(_) => None,
            };
            if let Some((field, expected)) = misread {
                let problem = Problem::warning(number, field, expected, cut(line));
                if may_revoke(line) {
                    let hosts = doubtful_hosts(line);
                    known.doubts.push(Doubt { hosts, problem: problem.clone() });
                }
                problems.push(problem);
            }
            // A key that was cut is nobody's, and its host is a known one nevertheless.
            if let Ok(Some(entry)) = read {
                known.lines.push(Known { number, ..entry });
            }
        }
        (known, problems)
    }

    /// The lines that may mark a key of a server as revoked, and cannot be read.
    pub fn doubts(&self, host: &str, port: u16) -> impl Iterator<Item = &Problem> {
        let (host, named) = names(host, port);
        let is_of = move |hosts: &Hosts| hosts.are(&named) || hosts.are(&host);
        let doubts = self.doubts.iter();
        let doubts = doubts.filter(move |doubt| doubt.hosts.as_ref().is_none_or(&is_of));
        doubts.map(|doubt| &doubt.problem)
    }

    /// What the file says of `key` (the public key's wire form) of a server.
    pub fn verdict(&self, host: &str, port: u16, key: &[u8]) -> Verdict {
        if self.of(host, port).any(|line| line.revoked && line.key == key) {
            return Verdict::Revoked;
        }
        let mut lines = self.of(host, port).filter(|line| !line.revoked).peekable();
        if lines.peek().is_none() {
            return Verdict::Unknown;
        }
        if lines.any(|line| line.key == key) { Verdict::Match } else { Verdict::Mismatch }
    }

    /// The types of the keys that are known of a server, to ask it for one of those: it may have
    /// others that are just as right.
    pub fn key_types(&self, host: &str, port: u16) -> Vec<&str> {
        let mut types: Vec<&str> = Vec::new();
        for line in self.trusted(host, port) {
            if !types.contains(&line.kind.as_str()) {
                types.push(&line.kind);
            }
        }
        types
    }

    /// The fingerprints that are trusted of a server, each with its key's type.
    pub fn fingerprints(&self, host: &str, port: u16) -> Vec<String> {
        let lines = self.trusted(host, port);
        lines.map(|line| format!("{} ({})", fingerprint(&line.key), line.kind)).collect()
    }

    /// The keys that are trusted of a server besides these: the line of each, and its fingerprint
    /// with its type.
    pub fn besides(&self, host: &str, port: u16, keys: &[&[u8]]) -> Vec<(u64, String)> {
        let is_other = |line: &&Known| !keys.contains(&line.key.as_slice());
        let others = self.trusted(host, port).filter(is_other);
        let shown = |line: &Known| format!("{} ({})", fingerprint(&line.key), line.kind);
        others.map(|line| (line.number, shown(line))).collect()
    }

    /// The lines of a server that trust a key: none whose key is revoked by another line.
    fn trusted(&self, host: &str, port: u16) -> impl Iterator<Item = &Known> {
        let revoked = self.of(host, port).filter(|line| line.revoked);
        let revoked: Vec<&[u8]> = revoked.map(|line| line.key.as_slice()).collect();
        let lines = self.of(host, port).filter(|line| !line.revoked);
        lines.filter(move |line| !revoked.contains(&line.key.as_slice()))
    }

    /// The lines of a server: by its name and port, and where none has that, by its name alone.
    fn of(&self, host: &str, port: u16) -> impl Iterator<Item = &Known> {
        let (host, named) = names(host, port);
        let is_named = self.lines.iter().any(|line| !line.revoked && line.hosts.are(&named));
        self.lines.iter().filter(move |line| {
            line.hosts.are(&named) || ((!is_named || line.revoked) && line.hosts.are(&host))
        })
    }
}

/// A server's name alone, and with its port as the file writes it.
fn names(host: &str, port: u16) -> (String, String) {
    let host = host.to_ascii_lowercase();
    let named = if port == SSH { host.clone() } else { format!("[{host}]:{port}") };
    (host, named)
}

impl Hosts {
    fn are(&self, name: &str) -> bool {
        match self {
            Self::Patterns(patterns) => {
                let denied = patterns.iter().filter_map(|one| one.strip_prefix('!'));
                let mut denied = denied.filter(|pattern| fits(pattern, name));
                let mut named = patterns.iter().filter(|one| !one.starts_with('!'));
                denied.next().is_none() && named.any(|pattern| fits(pattern, name))
            }
            Self::Hashed { salt, hash } => Hmac::<Sha1>::new_from_slice(salt)
                .is_ok_and(|mac| mac.chain_update(name).verify_slice(hash).is_ok()),
        }
    }
}

type Misread = (&'static str, &'static str);

/// One line; none where it is a certificate authority's.
fn entry(line: &str) -> Result<Option<Known>, Misread> {
    let mut words = line.split_ascii_whitespace().peekable();
    let marker = words.next_if(|word| word.starts_with('@'));
    let revoked = match marker {
        None => false,
        Some("@revoked") => true,
        Some("@cert-authority") => return Ok(None),
        Some(_) => return Err(("marker", "@revoked or @cert-authority")),
    };
    let hosts = hosts(words.next().unwrap_or_default())?;
    let kind = words.next().ok_or(("key type", "as ssh-ed25519"))?;
    let key = words.next().ok_or(("key", "base64"))?;
    let key = STANDARD.decode(key).map_err(|_bad| ("key", "base64"))?;
    // The key's own first field is its type: RFC 4253, section 6.6.
    let own = key.get(4..).and_then(|rest| rest.get(..kind.len()));
    if own != Some(kind.as_bytes()) {
        return Err(("key", "a key of the type that stands before it"));
    }
    Ok(Some(Known { number: 0, hosts, revoked, kind: kind.to_owned(), key }))
}

fn hosts(word: &str) -> Result<Hosts, Misread> {
    let Some(hashed) = word.strip_prefix('|') else {
        let patterns = word.split(',').map(str::to_ascii_lowercase);
        return Ok(Hosts::Patterns(patterns.filter(|pattern| !pattern.is_empty()).collect()));
    };
    let bad = ("hosts", "|1|salt|hash");
    let (salt, hash) =
        hashed.strip_prefix("1|").and_then(|rest| rest.split_once('|')).ok_or(bad)?;
    let decode = |text: &str| STANDARD.decode(text).map_err(|_bad| bad);
    Ok(Hosts::Hashed { salt: decode(salt)?, hash: decode(hash)? })
}

/// Whether a key has the fields of its type to their ends (RFC 4253, section 6.6; RFC 5656, section
/// 3.1): one that was cut is as good base64 as before.
fn is_whole(known: &Known) -> bool {
    let wanted = match known.kind.as_str() {
        // Numbers stand between their fields, and none of them is asked for.
        kind if kind.contains("-cert-") => return true,
        "ssh-dss" => 5,
        "ssh-ed25519" => 2,
        "ssh-rsa" => 3,
        kind if kind.starts_with("ecdsa-") || kind.starts_with("sk-") => 3,
        _other => 2,
    };
    let (mut fields, mut rest) = (0, known.key.as_slice());
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        let Some(next) = after.get(length..) else { return false };
        (fields, rest) = (u8::saturating_add(fields, 1), next);
    }
    rest.is_empty() && fields >= wanted
}

/// Whether a line that cannot be read may have been one that revokes a key.
fn may_revoke(line: &str) -> bool {
    let marker = line.split_ascii_whitespace().next().unwrap_or_default();
    // As a mark of the encoding stands before it, or a byte of it was changed.
    marker.trim_start_matches(['\u{feff}', char::REPLACEMENT_CHARACTER]).starts_with('@')
        || marker.to_ascii_lowercase().contains("revoked")
}

/// Whose line it may be; none: anybody's.
fn doubtful_hosts(line: &str) -> Option<Hosts> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    // Where a word is missing, or two are one, it may be the hosts.
    let [marker, word, _kind, _key, ..] = words.as_slice() else { return None };
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    let is_other = |word: &str| word.bytes().all(is_plain) && !word.starts_with("revoked");
    let is_marker = *marker == "@revoked" || marker.strip_prefix('@').is_some_and(is_other);
    let is_read = is_marker && !word.contains(char::REPLACEMENT_CHARACTER);
    hosts(word).ok().filter(|_| is_read)
}

fn cut(line: &str) -> String {
    line.chars().take(40).collect()
}

/// The line that says that a key (the public key's wire form) is a server's.
pub fn line(host: &str, port: u16, key: &[u8]) -> String {
    let (_, named) = names(host, port);
    format!("{named} {} {}", key_type(key), STANDARD.encode(key))
}

/// The type of a public key in its wire form: its first field (RFC 4253, section 6.6).
pub fn key_type(key: &[u8]) -> String {
    let length = key.first_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes));
    let end = usize::try_from(length).unwrap_or(0).saturating_add(4);
    let kind = key.get(4..end).unwrap_or_default();
    if kind.iter().all(u8::is_ascii_graphic) {
        String::from_utf8_lossy(kind).into_owned()
    } else {
        String::new()
    }
}

/// A key's fingerprint as OpenSSH shows it: `SHA256:` and unpadded base64.
pub fn fingerprint(key: &[u8]) -> String {
    format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key of a type, whose bytes differ by a letter.
    fn key(kind: &str, letter: char) -> Vec<u8> {
        let mut key = u32::try_from(kind.len()).unwrap().to_be_bytes().to_vec();
        key.extend(kind.bytes());
        let more = if kind == "ssh-ed25519" { 1 } else { 2 };
        key.extend([0, 0, 0, 1, letter as u8].repeat(more));
        key
    }

    fn line(hosts: &str, kind: &str, letter: char) -> String {
        format!("{hosts} {kind} {}\n", STANDARD.encode(key(kind, letter)))
    }

    fn hashed(name: &str) -> String {
        let salt = [7_u8; 20];
        let mac = Hmac::<Sha1>::new_from_slice(&salt).unwrap().chain_update(name).finalize();
        format!("|1|{}|{}", STANDARD.encode(salt), STANDARD.encode(mac.into_bytes()))
    }

    #[test]
    fn a_key_is_trusted_as_openssh_trusts_it() {
        let ed = "ssh-ed25519";
        let right = |hosts: &str| line(hosts, ed, 'a');
        let wrong = |hosts: &str| line(hosts, ed, 'b');
        let revoked = |hosts: &str| format!("@revoked {}", line(hosts, ed, 'a'));
        let named = "[bank.example]:2222";
        for (text, want) in [
            (String::new(), Verdict::Unknown),
            (right(named), Verdict::Match),
            (right("[BANK.example]:2222"), Verdict::Match),
            (wrong(named), Verdict::Mismatch),
            (wrong(named) + &right(named), Verdict::Match),
            (right(&hashed(named)), Verdict::Match),
            (wrong(&hashed(named)), Verdict::Mismatch),
            (right(&hashed("[other.example]:2222")), Verdict::Unknown),
            // By its name alone, where nothing names the port.
            (right("bank.example"), Verdict::Match),
            (wrong(named) + &right("bank.example"), Verdict::Mismatch),
            (right("[bank.example]:22"), Verdict::Unknown),
            (right("[*.example]:2222"), Verdict::Match),
            (right("[bank.exampl?]:2222"), Verdict::Match),
            (right("[*.example]:2222,![bank.example]:2222"), Verdict::Unknown),
            (line(named, "ssh-rsa", 'a'), Verdict::Mismatch),
            (revoked(named), Verdict::Revoked),
            (revoked("*") + &right(named), Verdict::Revoked),
            (right(named) + &revoked("bank.example"), Verdict::Revoked),
            (right(named) + &format!("@revoked {}", wrong(named)), Verdict::Match),
            (format!("@cert-authority {}", right(named)), Verdict::Unknown),
            (format!("@cert-authority {}", wrong(named)) + &right(named), Verdict::Match),
            (format!("# {}", right(named)), Verdict::Unknown),
        ] {
            let (known, problems) = KnownHosts::parse(&text);
            assert_eq!(problems, [], "{text}");
            assert_eq!(known.verdict("Bank.Example", 2222, &key(ed, 'a')), want, "{text}");
        }
        let (known, _) = KnownHosts::parse(&right("bank.example"));
        assert_eq!(known.verdict("bank.example", 22, &key(ed, 'a')), Verdict::Match);
    }

    #[test]
    fn the_types_that_are_known_are_asked_for() {
        let text = line("h", "ssh-rsa", 'a')
            + &line("h", "ssh-ed25519", 'a')
            + &line("h", "ssh-rsa", 'b')
            + &line("other", "ecdsa-sha2-nistp256", 'a')
            + &format!("@revoked {}", line("h", "ecdsa-sha2-nistp256", 'a'));
        let (known, _) = KnownHosts::parse(&text);
        assert_eq!(known.key_types("h", 22), ["ssh-rsa", "ssh-ed25519"]);
        assert_eq!(known.key_types("nobody", 22), [""; 0]);
        // What is trusted besides the keys that the server shows: never what is revoked.
        let (rsa, ed) = (key("ssh-rsa", 'a'), key("ssh-ed25519", 'a'));
        let besides = |keys: &[&[u8]]| -> Vec<u64> {
            known.besides("h", 22, keys).into_iter().map(|(line, _)| line).collect()
        };
        assert_eq!(besides(&[&rsa, &ed]), [3]);
        assert_eq!(besides(&[&ed]), [1, 3]);
        assert_eq!(besides(&[]), [1, 2, 3]);
    }

    #[test]
    fn what_cannot_be_read_is_told_by_its_line_and_trusts_nobody() {
        let good = line("h", "ssh-ed25519", 'a');
        for (bad, field) in [
            ("h ssh-ed25519", "key"),
            ("h", "key type"),
            ("h ssh-ed25519 !!!", "key"),
            ("@trusted h ssh-ed25519 AAAA", "marker"),
            ("|1|x ssh-ed25519 AAAA", "hosts"),
            ("|2|AAAA|AAAA ssh-ed25519 AAAA", "hosts"),
            (&good.replace("ssh-ed25519 ", "ssh-rsa "), "key"),
        ] {
            let (known, problems) = KnownHosts::parse(&format!("# mine\n{bad}\n"));
            assert_eq!(problems.len(), 1, "{bad}");
            assert_eq!((problems[0].line, problems[0].field.as_str()), (2, field), "{bad}");
            assert_eq!(known.verdict("h", 22, &key("ssh-ed25519", 'a')), Verdict::Unknown);
        }
    }

    /// A revocation that got lost would let a stolen key in.
    #[test]
    fn a_line_that_may_revoke_a_key_and_cannot_be_read_is_never_passed_over() {
        let ed = line("h", "ssh-ed25519", 'a');
        let ed = ed.trim_end();
        let cut = &ed[..ed.len() - 4];
        for (bad, of_h, of_other) in [
            (format!("@revoked {cut}"), true, false),
            (format!("@revoked {}", &ed[..ed.len() - 1]), true, false),
            ("@revoked h ssh-ed25519".to_owned(), true, true),
            ("@revoked ssh-ed25519 AAAA".to_owned(), true, true),
            ("@revoked".to_owned(), true, true),
            (format!("@revokd {ed}"), true, false),
            (format!("@revoked{ed} x"), true, true),
            (format!("@revoked\u{a0}{ed} x"), true, true),
            (format!("\u{feff}@revoked {ed}"), true, true),
            (format!("\u{fffd}revoked {ed}"), true, true),
            ("@revoked |1|x ssh-ed25519 AAAA".to_owned(), true, true),
            (format!("@revoked \u{fffd}{cut}"), true, true),
            (format!("@revoked {} ssh-ed25519 !", hashed("h")), true, false),
            ("@revoked * ssh-ed25519 !".to_owned(), true, true),
            ("@revoked other ssh-ed25519 !".to_owned(), false, true),
            (format!("@revoked {ed}"), false, false),
            (format!("@cert-authority {cut}"), false, false),
            (cut.to_owned(), false, false),
        ] {
            let (known, problems) = KnownHosts::parse(&format!("# mine\n{bad}\n{ed}\n"));
            for (host, want) in [("H", of_h), ("other", of_other)] {
                let lines: Vec<u64> = known.doubts(host, 22).map(|doubt| doubt.line).collect();
                assert_eq!(lines, [2].repeat(usize::from(want)), "{host}: {bad}");
            }
            let is_whole = bad.ends_with(ed) && bad.starts_with("@revoked ");
            let is_told = !is_whole && !bad.starts_with("@cert");
            assert_eq!(problems.len(), usize::from(is_told), "{bad}");
        }
        let (known, _) = KnownHosts::parse("@revoked h ssh-ed25519 !\n");
        assert_eq!(known.doubts("h", 2222).count(), 1, "by its name alone");
        // A key that was cut leaves its host a known one.
        let (known, _) = KnownHosts::parse(cut);
        assert_eq!(known.verdict("h", 22, &key("ssh-ed25519", 'a')), Verdict::Mismatch);
    }

    #[test]
    fn what_is_revoked_is_not_among_what_is_trusted() {
        let ed = line("h", "ssh-ed25519", 'a');
        let text = format!("{ed}@revoked {ed}{}", line("h", "ssh-rsa", 'a'));
        let (known, _) = KnownHosts::parse(&text);
        assert_eq!(known.key_types("h", 22), ["ssh-rsa"]);
        assert_eq!(known.fingerprints("h", 22).len(), 1);
        assert_eq!(known.besides("h", 22, &[]).len(), 1);
    }

    #[test]
    fn a_fingerprint_is_the_one_that_ssh_keygen_prints() {
        // ssh-keygen -lf on the key of RFC 8709's form with 32 zero bytes.
        let mut key = vec![0, 0, 0, 11];
        key.extend(b"ssh-ed25519");
        key.extend([0, 0, 0, 32]);
        key.extend([0; 32]);
        let shown = "SHA256:kmYcvdi2GkPeWxB6XLjrZB8JHsy2Hm8luHMFp9GMvqk";
        assert_eq!(fingerprint(&key), shown);
        for (port, named) in [(22, "bank.example"), (2222, "[bank.example]:2222")] {
            let line = super::line("Bank.Example", port, &key);
            assert!(line.starts_with(&format!("{named} ssh-ed25519 ")), "{line}");
            let (known, problems) = KnownHosts::parse(&line);
            assert_eq!(problems, []);
            assert_eq!(known.verdict("bank.example", port, &key), Verdict::Match);
            let trusted = known.fingerprints("bank.example", port);
            assert_eq!(trusted, [format!("{shown} (ssh-ed25519)")]);
        }
        for bad in [&[][..], &[0, 0, 0, 9], &[0xff; 8], &[0, 0, 0, 1, 7]] {
            assert_eq!(key_type(bad), "");
        }
    }
}
