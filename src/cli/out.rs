//! The two streams. Data goes to stdout, what went wrong to stderr.
//!
//! A stream that is closed is nobody's mistake: a reader that has seen enough (`| head`) ends
//! nothing that was decided. One that takes nothing (a full disk) is told at the end.

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

/// Writes a line of data.
pub fn stdout(line: &str) {
    let mut stream = std::io::stdout().lock();
    let written = stream.write_all(line.as_bytes()).and_then(|()| stream.write_all(b"\n"));
    note(written.and_then(|()| stream.flush()));
}

/// Writes a line for whoever looks after the machine.
pub fn stderr(line: &str) {
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
