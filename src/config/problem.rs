//! What is wrong with a configuration, in the one form that every such text has: the place
//! (`FILE:LINE:COL`), the line with a mark under it, and what to write instead.
//!
//! A problem never prints the value of a secret: secrets do not stand in the file at all.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::model::near::{fold, nearest};

/// Excerpts longer than this are cut around the mark, so that 80 columns hold them.
const EXCERPT_MAX: usize = 66;

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// No file where one was looked for.
    #[error("no configuration found; nothing was done; looked for {}", list(.looked))]
    NotFound {
        /// Every place, in the order of looking.
        looked: Vec<PathBuf>,
    },
    /// A file could not be read.
    #[error("{} could not be read; nothing was done", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file is no text.
    #[error("{}:{line} is not UTF-8 text; nothing was done", .path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// The first line that cannot be read.
        line: usize,
    },
    /// The file, a flag or an environment variable says something that cannot be meant so.
    #[error("{}; nothing was done{}", count(.problems), blocks(.problems))]
    Invalid {
        /// All that was found, in the file's order.
        problems: Vec<Problem>,
    },
}

impl ConfigError {
    /// Whether nothing but words of the command line is wrong.
    pub fn is_usage(&self) -> bool {
        let is_flag = |problem: &Problem| match &problem.place {
            Place::Word(word) => word.starts_with("--"),
            Place::File(_) | Place::Whole(_) => false,
        };
        match self {
            Self::Invalid { problems } => problems.iter().all(is_flag),
            Self::NotFound { .. } | Self::Unreadable { .. } | Self::NotText { .. } => false,
        }
    }

    /// What to do next.
    pub fn hint(&self) -> String {
        match self {
            Self::Invalid { .. } if self.is_usage() => {
                "correct the words of the command; its --help shows examples".to_owned()
            }
            Self::NotFound { .. } => {
                "name one with --config FILE, or see one run: `tieout demo`".to_owned()
            }
            Self::Unreadable { .. } => "check the path and the file's permissions".to_owned(),
            Self::NotText { .. } => "save the file as UTF-8".to_owned(),
            Self::Invalid { .. } => "correct this, then `tieout config check`".to_owned(),
        }
    }
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn count(problems: &[Problem]) -> String {
    match problems.len() {
        1 => "1 problem in the configuration".to_owned(),
        several => format!("{several} problems in the configuration"),
    }
}

fn blocks(problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("\n{problem}")).collect()
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// What is wrong there and what was expected, in full sentences.
    pub text: String,
}

/// Where a problem is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In a file.
    File(FilePlace),
    /// Something is missing in a file as a whole.
    Whole(String),
    /// In a flag or an environment variable: its name.
    Word(String),
}

/// A place in a text file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePlace {
    /// The file, as it was named.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// The whole line.
    pub excerpt: String,
    /// How many characters are marked.
    pub marked: usize,
}

impl FilePlace {
    /// The place of the bytes `span` in `text`.
    pub fn of(file: &Path, text: &str, span: &Range<usize>) -> Self {
        let start = floor_boundary(text, span.start);
        let before = text.get(..start).unwrap_or("");
        let line_start = before.rfind('\n').map_or(0, |at| at.saturating_add(1));
        let rest = text.get(line_start..).unwrap_or("");
        let excerpt = rest.lines().next().unwrap_or("");
        let column = before.get(line_start..).unwrap_or("").chars().count().saturating_add(1);
        let end = floor_boundary(text, span.end.max(start));
        let wanted = text.get(start..end).unwrap_or("").lines().next().unwrap_or("");
        Self {
            file: file.display().to_string(),
            line: before.matches('\n').count().saturating_add(1),
            column,
            marked: wanted.chars().count().max(1),
            excerpt: without_secrets(excerpt, header_above(before)),
        }
    }
}

/// The line that begins the section which goes on here.
fn header_above(before: &str) -> &str {
    before.lines().rev().map(str::trim).find(|line| line.starts_with('[')).unwrap_or("")
}

/// Names that somebody may give a secret which does not belong in the file.
pub const SECRET_NAMES: [&str; 16] = [
    "key",
    "api_key",
    "secret",
    "secret_key",
    "password",
    "passphrase",
    "token",
    "apikey",
    "webhook_secret",
    "pass",
    "passwd",
    "pwd",
    "routing_key",
    "integration_key",
    "auth_token",
    "access_token",
];

/// Whether a name is one of a secret, also where it is mistyped, or of what is made of one.
fn is_of_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    if ["_env", "_file", "_command"].iter().any(|end| name.ends_with(end)) {
        return false;
    }
    let long = SECRET_NAMES.iter().copied().filter(|known| known.len() > 5);
    SECRET_NAMES.contains(&name.as_str())
        || name == "token_sha256"
        || (name.len() > 5 && nearest(&name, long).is_some())
}

/// Schemes whose addresses have a password nowhere but before an `@`.
const OPEN_SCHEMES: [&str; 6] =
    ["postgres", "postgresql", "sqlite", "redis", "rediss", "beanstalk"];

/// The name that a value stands behind.
fn name_before(before: &str) -> &str {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    let name = before.trim_end_matches(|c: char| !is_of_name(c));
    name.rsplit(|c: char| !is_of_name(c)).next().unwrap_or("")
}

/// Whether a setting of this name may hold a secret, or has one for a mistake.
pub fn may_be_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let ends = ["_env", "_file", "command", "url", "proxy", "push"];
    is_of_secret(&name) || ends.iter().any(|end| name.ends_with(end))
}

/// A line to show, of the section that begins with `header`: what a secret would stand in is
/// starred out, character by character, so that marks still stand under what they mean.
fn without_secrets(line: &str, header: &str) -> String {
    let name = line.split('=').next().unwrap_or("").trim().trim_matches('"');
    // Those of a mapping name columns.
    let names_columns = header.starts_with("[[table") || header.starts_with("[[format");
    let is_column = name == "key" && header.starts_with("[[table]]");
    let is_secret = (is_of_secret(name) && !is_column) || name.ends_with("_command");
    let starts = ["sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"];
    let mut shown = String::new();
    let mut before = "";
    for (piece, is_quoted) in pieces(line) {
        let login = piece.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@'));
        let has_password =
            login.is_some_and(|(login, _)| login.contains(':')) || piece.contains("password=");
        let is_within = !names_columns && is_of_secret(name_before(before));
        let is_named = is_secret || is_within;
        let is_one = is_named || has_password || starts.iter().any(|s| piece.starts_with(s));
        let kept = match (is_quoted, is_one) {
            (false, _) => piece,
            (true, true) => "",
            (true, false) => not_secret(piece, before),
        };
        shown.push_str(kept);
        shown.extend(piece.chars().skip(kept.chars().count()).map(|_| '*'));
        before = if is_quoted { before } else { piece };
    }
    shown
}

/// What of a text may be shown. The path of a hook's address is its password, however it is
/// written: of one that is asked by http its host alone, and nothing where nobody can tell which
/// that is.
fn not_secret<'t>(text: &'t str, before: &str) -> &'t str {
    if text.starts_with("sqlite:") {
        return text.split('?').next().unwrap_or("");
    }
    let Some(at) = text.find("://") else {
        let name = name_before(before);
        let is_login = text.contains('@') && ["url", "proxy"].iter().any(|end| name.ends_with(end));
        let is_whole = matches!(name, "url" | "push") || name.ends_with("_command");
        return if is_login || is_whole { "" } else { text };
    };
    let start = at.saturating_add("://".len());
    let (scheme, rest) = text.split_at(start);
    let own = scheme.to_ascii_lowercase();
    if !own.starts_with("http") {
        // Of a mistyped one nobody can tell what its address holds.
        let is_open = OPEN_SCHEMES.contains(&own.trim_end_matches("://"));
        return if is_open { text } else { scheme };
    }
    let host = rest.split(['/', '?', '#']).next().unwrap_or("");
    let port = host.rsplit_once(']').map_or(host, |(_, port)| port).split_once(':');
    let is_odd = port.is_some_and(|(_, port)| !port.bytes().all(|byte| byte.is_ascii_digit()));
    if rest.contains('@') || is_odd {
        return scheme;
    }
    text.get(..start.saturating_add(host.len())).unwrap_or(scheme)
}

/// What stands between quotes of either kind, and what does not, the quotes among it.
fn pieces(line: &str) -> Vec<(&str, bool)> {
    let mut pieces = Vec::new();
    let (mut from, mut open, mut is_escaped) = (0_usize, None, false);
    for (at, c) in line.char_indices() {
        match open {
            Some(_quote) if is_escaped => is_escaped = false,
            Some('"') if c == '\\' => is_escaped = true,
            Some(quote) if quote == c => {
                pieces.push((line.get(from..at).unwrap_or(""), true));
                (from, open) = (at, None);
            }
            None if matches!(c, '"' | '\'') => {
                // One byte, as both quotes are.
                let end = at.saturating_add(1);
                pieces.push((line.get(from..end).unwrap_or(""), false));
                (from, open) = (end, Some(c));
            }
            _within => {}
        }
    }
    pieces.push((line.get(from..).unwrap_or(""), open.is_some()));
    pieces
}

fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at = at.saturating_sub(1);
    }
    at
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::File(place) => write!(f, "{place}\n{}", self.text),
            Place::Whole(word) | Place::Word(word) => write!(f, "{word}: {}", self.text),
        }
    }
}

impl fmt::Display for FilePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let skipped = self.column.saturating_sub(1);
        // A long line is shown from shortly before the mark.
        let cut = if skipped.saturating_add(self.marked) > EXCERPT_MAX {
            skipped.saturating_sub(20)
        } else {
            0
        };
        let lead = if cut > 0 { "…" } else { "" };
        let shown: String = self.excerpt.chars().skip(cut).take(EXCERPT_MAX).collect();
        let blank: String =
            shown.chars().take(skipped.saturating_sub(cut)).map(tab_or_blank).collect();
        let room = EXCERPT_MAX.saturating_sub(skipped.saturating_sub(cut)).max(1);
        let marks = "^".repeat(self.marked.min(room));
        let gutter = " ".repeat(self.line.to_string().len());
        writeln!(f, "{}:{}:{}", self.file, self.line, self.column)?;
        writeln!(f, "{} | {lead}{shown}", self.line)?;
        write!(f, "{gutter} | {}{blank}{marks}", if cut > 0 { " " } else { "" })
    }
}

fn tab_or_blank(c: char) -> char {
    if c == '\t' { '\t' } else { ' ' }
}

/// Keys that share fewer letters at their begin are not held for one another.
const KEY_BEGINS: usize = 4;

/// As [`nearest`], of a file's keys: else the only one that begins as `word` does to the end of the
/// shorter of the two, `monitor` for `monitoring`.
pub fn nearest_key<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    if let Some(near) = nearest(word, known.clone()) {
        return Some(near);
    }
    let folded = fold(word);
    let begins = |candidate: &&str| {
        let own = fold(candidate);
        let is_word = own.len().min(folded.len()) >= KEY_BEGINS;
        is_word && (own.starts_with(&folded) || folded.starts_with(&own))
    };
    let mut found = known.into_iter().filter(begins);
    let only = found.next()?;
    found.next().is_none().then_some(only)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_words_find_their_neighbour_and_others_none() {
        let known = ["stuck_after", "max_age", "mode", "max_retries"];
        for (word, want) in [
            ("stuck_aftr", Some("stuck_after")),
            ("stuck-after", Some("stuck_after")),
            ("Max_Age", Some("max_age")),
            ("mdoe", Some("mode")),
            ("retries", None),
            ("colour", None),
        ] {
            assert_eq!(nearest(word, known), want, "{word}");
        }
    }

    #[test]
    fn a_key_that_begins_alike_is_meant() {
        let known = ["monitoring", "in_flight_max", "max_age", "max_retries", "mode"];
        for (word, want) in [
            ("monitor", Some("monitoring")),
            ("in_flight_maximum", Some("in_flight_max")),
            ("in-flight", Some("in_flight_max")),
            ("mdoe", Some("mode")),
            ("max_", None),
            ("mon", None),
            ("retries", None),
        ] {
            assert_eq!(nearest_key(word, known), want, "{word}");
        }
    }

    #[test]
    fn an_excerpt_shows_no_secret() {
        for (line, want) in [
            ("key = \"abc\"", "key = \"***\""),
            ("kye = \"sk_live_1\" # x", "kye = \"*********\" # x"),
            ("url = \"postgres://u:p@h/d\"", "url = \"******************\""),
            ("url = \"postgres://u@h/d\"", "url = \"postgres://u@h/d\""),
            ("url = 'postgres://u:p@h/d'", "url = '******************'"),
            ("url = \"pg://h?password=p\"", "url = \"*****************\""),
            ("key = 'a\"b' # c", "key = '***' # c"),
            ("key = \"a\\\"b\"", "key = \"****\""),
            ("key_env = \"STRIPE\"", "key_env = \"STRIPE\""),
            ("url = \"http://hooks.slack.com/s/T\"", "url = \"http://hooks.slack.com****\""),
            ("ping = { url = 'https://h:8/s' } # x", "ping = { url = 'https://h:8**' } # x"),
            ("push = \"HTTP://h?s\"", "push = \"HTTP://h**\""),
            ("url = \"https://s@h/x\"", "url = \"https://*****\""),
            ("url = \"https://h/x@s\"", "url = \"https://*****\""),
            ("base_url = \"https://u:s\"", "base_url = \"https://***\""),
            ("url = \"https://[::1]:8/s\"", "url = \"https://[::1]:8**\""),
            ("url = \"hooks.slack.com/s/T\"", "url = \"*******************\""),
            ("url = \"sqlite:shop.db\"", "url = \"sqlite:shop.db\""),
            ("url = \"sqlite:///a/s.db?k=s\"", "url = \"sqlite:///a/s.db****\""),
            ("ping = { url = 'hc.example/s' }", "ping = { url = '************' }"),
            ("base_url = \"u:s@h\"", "base_url = \"*****\""),
            ("base_url = \"nonsense\"", "base_url = \"nonsense\""),
            ("url_env = \"SHOP\"", "url_env = \"SHOP\""),
            ("url = \"htps://h/s\"", "url = \"htps://***\""),
            ("push = \"ftp://h/s\"", "push = \"ftp://***\""),
            ("pasword = \"abc\"", "pasword = \"***\""),
            ("routing_key = 'abc'", "routing_key = '***'"),
            ("token_sha256 = \"abc\"", "token_sha256 = \"***\""),
            (
                "db = { url = 'sqlite:a', pasword = 'b' }",
                "db = { url = 'sqlite:a', pasword = '*' }",
            ),
            ("mode = \"ful\"", "mode = \"ful\""),
            ("key_command = [\"a\", 'b']", "key_command = [\"*\", '*']"),
            ("x = { key_command = \"a b\" }", "x = { key_command = \"***\" }"),
        ] {
            assert_eq!(without_secrets(line, "[[account]]"), want);
        }
    }

    #[test]
    fn the_key_of_a_mapping_is_no_secret() {
        let text = "[[table]]\nkey = [\"id\"]\n[[account]]\nkey = \"id\"\n";
        let line = |at: usize| FilePlace::of(Path::new("t.toml"), text, &(at..at)).excerpt;
        assert_eq!(line(text.find("[\"id").unwrap()), "key = [\"id\"]");
        assert_eq!(line(text.rfind("\"id").unwrap()), "key = \"**\"");
    }

    #[test]
    fn the_mark_stands_under_what_is_meant() {
        let text = "a = 1\nö = \"x\" # long\n";
        let at = text.find('"').unwrap();
        let place = FilePlace::of(Path::new("t.toml"), text, &(at..at + 3));
        assert_eq!(place.to_string(), "t.toml:2:5\n2 | ö = \"x\" # long\n  |     ^^^");
        let end = FilePlace::of(Path::new("t.toml"), text, &(text.len()..text.len()));
        assert_eq!((end.line, end.column, end.marked), (3, 1, 1));
    }
}
