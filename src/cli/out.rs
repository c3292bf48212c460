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
