//! Redis, as far as queues need it: a login, a database, and commands with short answers.
//!
//! Its protocol is a dozen lines and four kinds of answers; a client crate would bring a pool, a
//! cluster and its own ideas of trying again, none of which may decide here.

use std::time::Duration;

use crate::exit::Exit;
use crate::secret::EnvLookup;
use crate::sinks::Down;
use crate::sinks::settings::{Place, REDIS};
use crate::sinks::wire::{Wire, decoded};

/// Redis' own port.
const PORT: u16 = 6_379;

/// How words of Redis' begin here.
const REFUSES: &str = "Redis refuses";

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// `+OK`, `:3`, or a bulk text.
    Text(String),
    /// A bulk that is not there.
    Nothing,
    /// `-ERR …`.
    Error(String),
}

/// An open connection to Redis.
pub struct Redis {
    wire: Wire,
}

impl Redis {
    /// Connects, logs in and chooses the database that the address names.
    ///
    /// # Errors
    /// Where it cannot be reached or lets nobody in.
    pub async fn open(place: &Place, most: Duration, env: &EnvLookup) -> Result<Self, Down> {
        let url = place.resolve(env, &REDIS).await?;
        let tls = (url.scheme() == "rediss").then_some(&place.ca_file);
        let mut redis = Self { wire: Wire::open(&url, PORT, tls, most).await? };
        if let Some(password) = url.password() {
            let password = decoded(password);
            let user = decoded(url.username());
            let login = if user.is_empty() {
                vec!["AUTH", password.as_str()]
            } else {
                vec!["AUTH", user.as_str(), password.as_str()]
            };
            redis.one(&login).await.map_err(login_refused)?;
        }
        let is_socket = url.scheme() == "unix";
        let number = if is_socket { None } else { url.path().strip_prefix('/') };
        if let Some(number) = number.filter(|number| !number.is_empty()) {
            redis.one(&["SELECT", number]).await?;
        }
        Ok(redis)
    }

    /// One command, whose answer must be no error.
    ///
    /// # Errors
    /// With Redis' own words, which hold no secret.
    pub async fn one(&mut self, words: &[&str]) -> Result<Reply, Down> {
        self.tell(&[words.to_vec()]).await?;
        match self.heard().await? {
            Reply::Error(text) => Err(trouble(&text)),
            reply => Ok(reply),
        }
    }

    /// Sends commands, without waiting for an answer.
    ///
    /// # Errors
    /// Where the connection broke.
    pub async fn tell(&mut self, commands: &[Vec<&str>]) -> Result<(), Down> {
        let mut bytes = Vec::new();
        for words in commands {
            bytes.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
            for word in words {
                bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
                bytes.extend_from_slice(word.as_bytes());
                bytes.extend_from_slice(b"\r\n");
            }
        }
        self.wire.send(&bytes).await
    }

    /// The next answer.
    ///
    /// # Errors
    /// Where the connection broke, or what came is no answer of Redis'.
    pub async fn heard(&mut self) -> Result<Reply, Down> {
        let line = self.wire.line().await?;
        let Some(kind) = line.chars().next() else { return Err(strange()) };
        let rest = line.get(1..).unwrap_or("");
        match kind {
            '+' | ':' => Ok(Reply::Text(rest.to_owned())),
            '-' => Ok(Reply::Error(rest.to_owned())),
            '$' => match rest.parse::<i64>() {
                Ok(-1) => Ok(Reply::Nothing),
                Ok(length) => {
                    let length = usize::try_from(length).map_err(|_bad| strange())?;
                    let mut bytes = self.wire.exact(length.saturating_add(2)).await?;
                    bytes.truncate(length);
                    Ok(Reply::Text(String::from_utf8_lossy(&bytes).into_owned()))
                }
                Err(_bad) => Err(strange()),
            },
            _other => Err(strange()),
        }
    }
}

/// Whatever words Redis has for it, a login that it refuses is one.
fn login_refused(down: Down) -> Down {
    let exit = if down.text.starts_with(REFUSES) { Exit::Auth } else { down.exit };
    Down { exit, ..down }
}

fn strange() -> Down {
    Down::partial("what answers there is no Redis")
}

/// What an error of Redis' means for the sink. It never is the event's own fault.
pub(super) fn trouble(text: &str) -> Down {
    let word = text.split_whitespace().next().unwrap_or("");
    let short: String = text.chars().filter(|c| !c.is_control()).take(120).collect();
    match word {
        "NOAUTH" | "WRONGPASS" | "NOPERM" => Down::auth(format!("{REFUSES}: {short}")),
        "WRONGTYPE" | "MOVED" | "CROSSSLOT" => Down::config(format!("{REFUSES}: {short}")),
        _other => Down::partial(format!("{REFUSES}: {short}")),
    }
}

/// Looks whether the names of the queues are a set, as they must be, or not there yet.
pub(super) async fn look(
    place: &Place,
    names: &str,
    most: Duration,
    env: &EnvLookup,
) -> Result<String, Down> {
    let mut redis = Redis::open(place, most, env).await?;
    redis.one(&["PING"]).await?;
    match redis.one(&["TYPE", names]).await? {
        Reply::Text(kind) if kind == "set" || kind == "none" => {}
        _other => return Err(Down::config(format!("its key `{names}` is no set of queues"))),
    }
    Ok("Redis answers and lets us in".to_owned())
}
