//! A terminal that a test sits in front of.

use std::fs::File;
use std::io::{Read as _, Write as _};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// A terminal: the person's end, and the program's.
pub fn terminal() -> (File, File) {
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&person).unwrap();
    unlockpt(&person).unwrap();
    let name = ptsname(&person, Vec::new()).unwrap();
    let program = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    (File::from(person), program)
}

/// Waits until the program shows these words, then types.
pub fn answer(terminal: &mut File, words: &str, keys: &str) -> String {
    let mut shown = Vec::new();
    let mut some = [0_u8; 4_096];
    while !String::from_utf8_lossy(&shown).contains(words) {
        let count = terminal.read(&mut some).unwrap_or(0);
        assert!(count > 0, "it ended before `{words}`: {}", String::from_utf8_lossy(&shown));
        shown.extend_from_slice(&some[..count]);
    }
    terminal.write_all(keys.as_bytes()).unwrap();
    String::from_utf8_lossy(&shown).into_owned()
}
