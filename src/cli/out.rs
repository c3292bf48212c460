//! The two streams. Data goes to stdout, what went wrong to stderr.
//!
//! A stream that is closed is nobody's mistake: a reader that has seen enough (`| head`) ends
//! nothing that was decided.

use std::io::Write;

/// Writes a line of data.
pub fn stdout(line: &str) {
    let mut stream = std::io::stdout().lock();
    let _closed = stream.write_all(line.as_bytes()).and_then(|()| stream.write_all(b"\n"));
    let _closed = stream.flush();
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
        let _closed = stream.write_all(self.buffer.as_bytes()).and_then(|()| stream.flush());
        self.buffer.clear();
    }
}

impl Default for Lines {
    fn default() -> Self {
        Self::new()
    }
}
