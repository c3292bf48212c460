//! A file of NDJSON: one line an event, on the disk before it counts as taken.
//!
//! It is opened anew for each delivery, so that it may be rotated at any time. A line that a crash
//! cut short is ended, and stands there as half a line: whoever reads skips what is no JSON.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::sinks::{Answer, Down, Event, Sent};

/// What is written holds amounts: this user's alone, where the file is made here.
const MODE: u32 = 0o600;

/// An open file.
pub struct EventFile {
    file: File,
    path: PathBuf,
}

impl EventFile {
    /// Opens it to write at its end; makes it where there is none.
    ///
    /// # Errors
    /// Where it cannot be.
    pub fn open(path: &Path) -> Result<Self, Down> {
        let failed = |error| refused(path, &error);
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(MODE);
        let mut file = options.open(path).map_err(failed)?;
        if !ends_whole(&mut file).map_err(failed)? {
            file.write_all(b"\n").map_err(failed)?;
        }
        Ok(Self { file, path: path.to_owned() })
    }

    /// Writes lines: all are on the disk, or none counts.
    pub fn send(&mut self, events: &[Event]) -> Sent {
        let mut sent = Sent::nothing(events.len());
        let lines: String = events.iter().map(|event| format!("{}\n", event.payload)).collect();
        let before = self.file.metadata().map(|metadata| metadata.len());
        let written = self.file.write_all(lines.as_bytes()).and_then(|()| self.file.sync_data());
        match written {
            Ok(()) => {
                for index in 0..events.len() {
                    sent.note(index, Answer::Taken);
                }
            }
            Err(error) => {
                // A full disk: half of the lines would be there, and come again.
                if let Ok(before) = before {
                    let _kept = self.file.set_len(before);
                }
                sent.down = Some(refused(&self.path, &error));
            }
        }
        sent
    }
}

fn refused(path: &Path, error: &std::io::Error) -> Down {
    Down::partial(format!("{}: {error}", path.display()))
}

/// Whether its last line is whole.
fn ends_whole(file: &mut File) -> std::io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0_u8; 1];
    file.read_exact(&mut last)?;
    Ok(last == [b'\n'])
}

/// Looks whether it could be written; makes and writes nothing.
///
/// # Errors
/// Where it could not.
pub fn probe(path: &Path) -> Result<String, Down> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let place = if path.exists() { path } else { folder.unwrap_or(Path::new(".")) };
    match rustix::fs::access(place, rustix::fs::Access::WRITE_OK) {
        Ok(()) => Ok(format!("{} can be written", path.display())),
        Err(error) => Err(Down::config(format!("{}: {error}", place.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::from_text;

    fn event(payload: &str) -> Event {
        Event {
            id: "evt_1".to_owned(),
            kind: "transaction.failed".to_owned(),
            table: "t".to_owned(),
            key: "1".to_owned(),
            version: 1,
            staged_at: from_text("2026-11-19T12:00:00Z").unwrap(),
            payload: payload.to_owned(),
        }
    }

    #[test]
    fn a_line_that_was_cut_short_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.ndjson");
        let sent = EventFile::open(&path).unwrap().send(&[event("{\"a\":1}"), event("{\"a\":2}")]);
        assert_eq!(sent.answers, [Some(Answer::Taken), Some(Answer::Taken)]);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"a\":").unwrap();
        EventFile::open(&path).unwrap().send(&[event("{\"a\":3}")]);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "{\"a\":1}\n{\"a\":2}\n{\"a\":\n{\"a\":3}\n");
    }

    #[test]
    fn a_disk_that_is_full_takes_nothing() {
        let full = Path::new("/dev/full");
        let mut file = EventFile {
            file: File::options().write(true).open(full).unwrap(),
            path: full.to_owned(),
        };
        let sent = file.send(&[event("{}")]);
        assert_eq!(sent.answers, [None::<Answer>]);
        assert!(sent.down.is_some());
    }
}
