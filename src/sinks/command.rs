//! A program of the user's: called once an event, which stands on its standard input as one line
//! of JSON. Nothing of what it prints is kept.
//!
//! Exit 0: taken. 65 (EX_DATAERR): not this one, however often. Anything else: another time.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt;

use crate::sinks::{Answer, Down, Event, Sent, Streak, Until};

/// `EX_DATAERR` of sysexits.h.
const DATA_ERROR: i32 = 65;

/// A program.
pub struct Command {
    words: Vec<String>,
    most: Duration,
}

impl Command {
    /// Nothing is started yet.
    pub fn open(words: &[String], most: Duration) -> Self {
        Self { words: words.to_vec(), most }
    }

    /// Calls it for one event after the other.
    pub async fn send(&self, events: &[Event], until: &Until) -> Sent {
        let mut sent = Sent::nothing(events.len());
        let mut streak = Streak::default();
        for (index, event) in events.iter().enumerate() {
            if until.is_over() {
                break;
            }
            let answer = match tokio::time::timeout(self.most, self.call(event)).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(down)) => {
                    sent.down = Some(down);
                    break;
                }
                Err(_elapsed) => Answer::Failed("it took too long and was ended".to_owned()),
            };
            sent.down = streak.note(&answer);
            sent.note(index, answer);
            if sent.down.is_some() {
                break;
            }
        }
        sent
    }

    async fn call(&self, event: &Event) -> Result<Answer, Down> {
        let (program, arguments) =
            self.words.split_first().ok_or_else(|| Down::config("its command is empty"))?;
        let failed = |error: std::io::Error| Down::config(format!("`{program}`: {error}"));
        let mut child = tokio::process::Command::new(program)
            .args(arguments)
            .env("TIEOUT_EVENT_ID", &event.id)
            .env("TIEOUT_EVENT_TYPE", &event.kind)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let mut group = Group::of(&child);
        if let Some(mut stdin) = child.stdin.take() {
            // One that does not read says so by how it ends.
            let _closed = stdin.write_all(format!("{}\n", event.payload).as_bytes()).await;
        }
        let status = child.wait().await.map_err(failed)?;
        group.let_go();
        Ok(match status.code() {
            Some(0) => Answer::Taken,
            Some(DATA_ERROR) => Answer::Refused(format!("`{program}` refused it (exit 65)")),
            _other => Answer::Failed(format!("`{program}` failed ({status})")),
        })
    }
}

/// The program and what it called: a script that is ended must not leave its worker behind, beside
/// the one that the next try calls.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &tokio::process::Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }

    /// It ended by itself: what it left running on purpose goes on.
    fn let_go(&mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // The program was not waited for yet, so that its id is nobody else's.
            let _gone = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// Looks whether the program is there; calls nothing.
///
/// # Errors
/// Where it is not, or cannot be called.
pub fn probe(words: &[String]) -> Result<String, Down> {
    let Some(program) = words.first() else { return Err(Down::config("its command is empty")) };
    if !program.contains('/') {
        return Ok(format!("`{program}` is looked for in PATH, when it is called"));
    }
    let path = Path::new(program);
    let may = rustix::fs::access(path, rustix::fs::Access::EXEC_OK);
    match may {
        Ok(()) if path.is_file() => Ok(format!("`{program}` can be called")),
        Ok(()) => Err(Down::config(format!("`{program}` is no program"))),
        Err(error) => Err(Down::config(format!("`{program}` cannot be called: {error}"))),
    }
}
