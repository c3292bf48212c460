//! The two streams. Data goes to stdout, what went wrong to stderr.
//!
//! A stream that is closed is nobody's mistake: a reader that has seen enough (`| head`) ends
//! nothing that was decided. One that takes nothing (a full disk) is told at the end.
//!
//! What is shown holds rows, tags, names of files and lines of banks: words of strangers. None of
//! them steers the terminal or turns the order of letters: see [`seen`].

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{ErrorKind, Write};
use std::sync::OnceLock;

/// Why data could not be written, the first time.
static LOST: OnceLock<String> = OnceLock::new();

/// Why some of the data never reached its reader, if so.
pub fn lost() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}

fn note(written: std::io::Result<()>) {
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        let _first = LOST.get_or_init(|| error.to_string());
    }
}

/// A text as it may be shown: letters that nobody sees, that steer a terminal, or that turn others
/// around are written as JSON escapes them. Within JSON that is the same text, so that people and
/// programs are served by one rule.
pub fn seen(line: &str) -> Cow<'_, str> {
    if !line.chars().any(is_hidden) {
        return Cow::Borrowed(line);
    }
    let mut shown = String::with_capacity(line.len().saturating_add(32));
    for letter in line.chars() {
        match is_hidden(letter) {
            true => {
                let _ = write!(shown, "\\u{:04x}", u32::from(letter));
            }
            false => shown.push(letter),
        }
    }
    Cow::Owned(shown)
}

/// All of them have four hexadecimal digits. Texts of several lines are ours, and tabs harmless.
fn is_hidden(letter: char) -> bool {
    let is_space = matches!(letter, '\n' | '\t');
    let turns = matches!(letter, '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}' | '\u{feff}');
    (letter.is_control() && !is_space) || turns
}

/// Writes a line of data.
pub fn stdout(line: &str) {
    let line = seen(line);
    let mut stream = std::io::stdout().lock();
    let written = stream.write_all(line.as_bytes()).and_then(|()| stream.write_all(b"\n"));
    note(written.and_then(|()| stream.flush()));
}

/// Writes a line for whoever looks after the machine.
pub fn stderr(line: &str) {
    let line = seen(line);
    let mut stream = std::io::stderr().lock();
    let _closed = stream.write_all(line.as_bytes()).and_then(|()| stream.write_all(b"\n"));
}

/// Many lines of data, written in pieces.
pub struct Lines {
    buffer: String,
}

/// A piece is written when it is this long.
const PIECE: usize = 32 * 1024;

impl Lines {
    /// Nothing yet.
    pub fn new() -> Self {
        Self { buffer: String::new() }
    }

    /// One more line.
    pub fn put(&mut self, line: &str) {
        self.put_raw(&seen(line));
    }

    /// One more line of a file for programs, to the letter.
    pub fn put_raw(&mut self, line: &str) {
        self.buffer.push_str(line);
        self.buffer.push('\n');
        if self.buffer.len() >= PIECE {
            self.flush();
        }
    }

    /// Writes what is there.
    pub fn flush(&mut self) {
        let mut stream = std::io::stdout().lock();
        note(stream.write_all(self.buffer.as_bytes()).and_then(|()| stream.flush()));
        self.buffer.clear();
    }
}

impl Default for Lines {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_shown_and_not_sent() {
        let hostile = "a\u{1b}[2Jb\u{202e}c\rd\u{7f}\u{9b}e\u{feff}f\u{2028}";
        let shown = "a\\u001b[2Jb\\u202ec\\u000dd\\u007f\\u009be\\ufefff\\u2028";
        assert_eq!(seen(hostile), shown);
        for plain in ["", "Zürich 中文 → ✓ \\u001b", "two\nlines\tand a tab"] {
            assert!(matches!(seen(plain), Cow::Borrowed(same) if same == plain));
        }
    }

    #[test]
    fn within_json_it_is_the_same_text() {
        let text = "\u{1b}[31m \u{202e} \u{9b} \" \\ \u{feff}";
        let line = serde_json::json!({ "id": text }).to_string();
        let shown = seen(&line);
        assert!(!shown.chars().any(is_hidden));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap()["id"], text);
    }
}
