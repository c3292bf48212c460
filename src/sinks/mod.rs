//! Where events are delivered: one file a kind of sink.
//!
//! A sink sends what it is handed and says of each event what became of it. It decides nothing,
//! remembers nothing and never waits for better times: whether, when and in which order something
//! is tried again is `run`'s to say, from data. Secrets are read when a sink is opened, and no
//! answer quotes one, an address or a body.
//!
//! Adding one: a kind in [`settings`], a file with `open`, `send` and `probe`, an arm of each of
//! [`Line`]'s functions, a line in `config/default.toml`, a section in `docs/delivery.md`, and a
//! test against the real server in `tests/it/sinks`.

pub mod settings;
pub mod wire;
pub mod webhook;
pub mod resp;
pub mod sidekiq;
pub mod resque;
pub mod beanstalkd;
pub mod command;
pub mod file;
pub mod notify;

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::model::time::Instant;
use crate::secret::{EnvLookup, SecretError};
use crate::sinks::beanstalkd::Beanstalkd;
use crate::sinks::command::Command;
use crate::sinks::file::EventFile;
use crate::sinks::resp::Redis;
use crate::sinks::settings::{How, Sink};
use crate::sinks::webhook::Webhook;

/// So many events in a row that a sink fails at are the sink's fault, and not theirs.
const STREAK: u32 = 3;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its id: the same at every try, and at every sink.
    pub id: String,
    /// `transaction.succeeded`, …
    pub kind: String,
    /// The mapped table.
    pub table: String,
    /// The row's key.
    pub key: String,
    /// Its number within its row.
    pub version: u32,
    /// When it was staged.
    pub staged_at: Instant,
    /// Its JSON.
    pub payload: String,
}

/// What a sink said of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It has it.
    Taken,
    /// It failed at it; another time it may not.
    Failed(String),
    /// It will not have this one, however often it is sent.
    Refused(String),
}

/// A sink that takes nothing just now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Down {
    /// The class of the trouble.
    pub exit: Exit,
    /// Why, in a few words without any secret.
    pub text: String,
    /// It asks to be left alone for so long.
    pub pause: Option<Duration>,
    /// It answered, and failed at several in a row: its fault, unless only those were sent that
    /// failed before.
    pub streak: bool,
}

impl Down {
    /// Of a class.
    pub fn of(exit: Exit, text: impl Into<String>) -> Self {
        Self { exit, text: text.into(), pause: None, streak: false }
    }

    /// Unreachable, out of order: what another time may do.
    pub fn partial(text: impl Into<String>) -> Self {
        Self::of(Exit::Partial, text)
    }

    /// Credentials refused.
    pub fn auth(text: impl Into<String>) -> Self {
        Self::of(Exit::Auth, text)
    }

    /// A setting that cannot work.
    pub fn config(text: impl Into<String>) -> Self {
        Self::of(Exit::Config, text)
    }
}

impl From<SecretError> for Down {
    fn from(error: SecretError) -> Self {
        Self::config(error.to_string())
    }
}

/// What sending several events came to.
#[derive(Debug, Default)]
pub struct Sent {
    /// What was said of each, in their order; `None`: nothing that is known.
    pub answers: Vec<Option<Answer>>,
    /// The sink takes nothing more.
    pub down: Option<Down>,
}

impl Sent {
    /// Nothing known of so many events.
    pub fn nothing(count: usize) -> Self {
        Self { answers: vec![None; count], down: None }
    }

    /// Notes one answer.
    pub fn note(&mut self, index: usize, answer: Answer) {
        if let Some(place) = self.answers.get_mut(index) {
            *place = Some(answer);
        }
    }
}

/// Until when something new may be begun.
#[derive(Debug, Clone)]
pub struct Until {
    /// Not after this.
    pub deadline: Option<tokio::time::Instant>,
    /// Answers to what was begun are waited for no longer than this.
    pub answers: tokio::time::Instant,
    /// The process shall end.
    pub stop: CancellationToken,
}

impl Until {
    /// Whether nothing new may be begun.
    pub fn is_over(&self) -> bool {
        let is_past = self.deadline.is_some_and(|at| tokio::time::Instant::now() >= at);
        is_past || self.is_late() || self.stop.is_cancelled()
    }

    /// Whether answers are waited for no longer.
    pub fn is_late(&self) -> bool {
        tokio::time::Instant::now() >= self.answers
    }
}

/// Failures one after the other.
#[derive(Debug, Default)]
pub(crate) struct Streak {
    failed: u32,
    last: String,
}

impl Streak {
    /// Notes an answer; the sink's trouble, once it is one.
    pub(crate) fn note(&mut self, answer: &Answer) -> Option<Down> {
        let Answer::Failed(text) = answer else {
            self.failed = 0;
            return None;
        };
        self.failed = self.failed.saturating_add(1);
        self.last.clone_from(text);
        (self.failed >= STREAK).then(|| {
            let text = format!("{STREAK} in a row failed: {}", self.last);
            Down { streak: true, ..Down::partial(text) }
        })
    }
}

/// An opened sink.
pub enum Line {
    /// HTTP, signed.
    Webhook(Box<Webhook>),
    /// A queue in Redis.
    Redis(Box<Redis>),
    /// A tube.
    Beanstalkd(Box<Beanstalkd>),
    /// A program, one call an event.
    Command(Command),
    /// A file, one line an event.
    File(EventFile),
}

impl Line {
    /// Opens a sink; none where the database itself sends ([`How::Notify`]).
    ///
    /// # Errors
    /// Where it cannot be reached, lets nobody in, or its settings cannot work.
    pub async fn open(sink: &Sink, env: &EnvLookup) -> Result<Option<Self>, Down> {
        Ok(Some(match &sink.how {
            How::Webhook(to) => {
                Self::Webhook(Box::new(Webhook::open(to, sink.timeout, env).await?))
            }
            How::Sidekiq(to) | How::Resque(to) => {
                Self::Redis(Box::new(Redis::open(&to.place, sink.timeout, env).await?))
            }
            How::Beanstalkd(to) => {
                Self::Beanstalkd(Box::new(Beanstalkd::open(to, sink.timeout, env).await?))
            }
            How::Command(words) => Self::Command(Command::open(words, sink.timeout)),
            How::File(path) => Self::File(EventFile::open(path)?),
            How::Notify(_channel) => return Ok(None),
        }))
    }

    /// Sends events. They belong to different rows, so that they may go side by side.
    pub async fn send(&mut self, sink: &Sink, events: &[Event], until: &Until) -> Sent {
        match (self, &sink.how) {
            (Self::Webhook(line), _) => line.send(events, until).await,
            (Self::Redis(line), How::Resque(to)) => resque::send(line, to, events, until).await,
            (Self::Redis(line), How::Sidekiq(to)) => sidekiq::send(line, to, events, until).await,
            (Self::Beanstalkd(line), _) => line.send(events, until).await,
            (Self::Command(line), _) => line.send(events, until).await,
            (Self::File(line), _) => line.send(events),
            (Self::Redis(_), _) => Sent::nothing(events.len()),
        }
    }
}

/// Looks whether a sink could take something, and sends nothing; what was seen comes back.
///
/// # Errors
/// As [`Line::open`].
pub async fn probe(sink: &Sink, env: &EnvLookup) -> Result<String, Down> {
    match &sink.how {
        How::Webhook(to) => webhook::probe(to, sink.timeout, env).await,
        How::Sidekiq(to) => sidekiq::probe(to, sink.timeout, env).await,
        How::Resque(to) => resque::probe(to, sink.timeout, env).await,
        How::Beanstalkd(to) => beanstalkd::probe(to, sink.timeout, env).await,
        How::Command(words) => command::probe(words),
        How::File(path) => file::probe(path),
        How::Notify(channel) => Ok(format!("notifies `{channel}` of tieout's own database")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_in_a_row_are_the_sinks() {
        let failed = || Answer::Failed("answered 500".to_owned());
        let mut streak = Streak::default();
        assert_eq!(streak.note(&failed()), None);
        assert_eq!(streak.note(&failed()), None);
        assert_eq!(streak.note(&Answer::Taken), None);
        assert_eq!(streak.note(&failed()), None);
        assert_eq!(streak.note(&Answer::Refused("answered 422".to_owned())), None);
        assert_eq!(streak.note(&failed()), None);
        assert_eq!(streak.note(&failed()), None);
        let down = streak.note(&failed()).unwrap();
        let text = "3 in a row failed: answered 500";
        assert_eq!(down, Down { streak: true, ..Down::partial(text) });
    }
}
