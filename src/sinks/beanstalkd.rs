//! A tube of beanstalkd's: the event's JSON is the job's body.
//!
//! Its protocol is two commands here, sent together and answered line by line.

use std::time::Duration;

use crate::secret::EnvLookup;
use crate::sinks::settings::{BEANSTALK, TubePlace};
use crate::sinks::wire::Wire;
use crate::sinks::{Answer, Down, Event, Sent, Until};

/// beanstalkd's own port.
const PORT: u16 = 11_300;

/// An open connection, with the tube chosen.
pub struct Beanstalkd {
    wire: Wire,
    /// `put` with its priority, delay and time to run.
    put: String,
}

impl Beanstalkd {
    /// Connects and chooses the tube.
    ///
    /// # Errors
    /// Where it cannot be reached.
    pub async fn open(to: &TubePlace, most: Duration, env: &EnvLookup) -> Result<Self, Down> {
        let url = to.place.resolve(env, &BEANSTALK).await?;
        let mut wire = Wire::open(&url, PORT, None, most).await?;
        wire.send(format!("use {}\r\n", to.tube).as_bytes()).await?;
        let answer = wire.line().await?;
        if answer != format!("USING {}", to.tube) {
            return Err(Down::partial("what answers there is no beanstalkd"));
        }
        Ok(Self { wire, put: format!("put {} 0 {}", to.priority, to.ttr_secs) })
    }

    /// Puts jobs, in their order.
    pub async fn send(&mut self, events: &[Event], until: &Until) -> Sent {
        let mut sent = Sent::nothing(events.len());
        let mut bytes = Vec::new();
        for event in events {
            let body = event.payload.as_bytes();
            bytes.extend_from_slice(format!("{} {}\r\n", self.put, body.len()).as_bytes());
            bytes.extend_from_slice(body);
            bytes.extend_from_slice(b"\r\n");
        }
        if let Err(down) = self.wire.send(&bytes).await {
            sent.down = Some(down);
            return sent;
        }
        for index in 0..events.len() {
            if until.is_late() {
                sent.down = Some(Down::partial("no answer in time"));
                return sent;
            }
            match self.answer().await {
                Ok(answer) => sent.note(index, answer),
                Err(down) => {
                    sent.down = Some(down);
                    return sent;
                }
            }
        }
        sent
    }

    async fn answer(&mut self) -> Result<Answer, Down> {
        let line = self.wire.line().await?;
        match line.split(' ').next().unwrap_or("") {
            "INSERTED" => Ok(Answer::Taken),
            "JOB_TOO_BIG" => Ok(Answer::Refused("it is too big for this beanstalkd".to_owned())),
            // The job is there, out of every worker's reach: a person kicks it or not.
            "BURIED" => Err(Down::partial("beanstalkd is out of memory, and buried a job")),
            "DRAINING" => Err(Down::partial("beanstalkd takes no new jobs (drain mode)")),
            _other => Err(Down::partial("beanstalkd answers what no `put` is answered")),
        }
    }
}

/// Connects and chooses the tube; puts nothing.
///
/// # Errors
/// As [`Beanstalkd::open`].
pub async fn probe(to: &TubePlace, most: Duration, env: &EnvLookup) -> Result<String, Down> {
    Beanstalkd::open(to, most, env).await?;
    Ok(format!("beanstalkd answers for tube `{}`", to.tube))
}
