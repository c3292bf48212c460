//! Secrets: read where the configuration says, and shown nowhere.
//!
//! A secret never stands in the configuration itself: it is named by an environment variable (or a
//! systemd credential of that name), a file or a command, and read when it is needed. Every room
//! that talks to somebody may use this one; it knows none of them.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// Looks up an environment variable. The configuration's room hands it in.
pub type EnvLookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// How long a command may take that prints a secret.
const COMMAND_MAX: Duration = Duration::from_secs(10);

/// How long whoever writes a secret into a pipe may take.
const PIPE_MAX: Duration = Duration::from_secs(10);

/// Bytes of the longest file that holds a secret: a ring of keys is the longest there is.
const BYTES_MAX: u64 = 1 << 20;

/// A secret. It is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The secret itself, for the one request that carries it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// Where a secret is to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// An environment variable.
    Env(String),
    /// A file.
    File(PathBuf),
    /// A program and its arguments.
    Command(Vec<String>),
    /// The configuration names none.
    Missing,
}

/// Why a secret could not be had.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The variable is not set.
    #[error("the environment variable {0}, which should hold the secret key, is not set")]
    NotSet(String),
    /// The file could not be read.
    #[error("the key file {path} could not be read: {why}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// The command could not be run.
    #[error("the key command `{program}` could not be run")]
    Run {
        /// The program.
        program: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The command failed.
    #[error("the key command `{program}` failed ({status})")]
    Failed {
        /// The program.
        program: String,
        /// How it ended.
        status: String,
    },
    /// What was read cannot be a key.
    #[error("{0} holds no usable key: one line of visible ASCII is expected")]
    Unusable(String),
    /// What was read cannot be a password.
    #[error("{0} holds no password or passphrase: one line of text is expected")]
    NoLine(String),
    /// The configuration names no source.
    #[error("no key_env, key_file or key_command is configured")]
    NoSource,
}

impl KeySource {
    /// The setting that it stands in.
    pub fn field(&self) -> &'static str {
        match self {
            Self::Env(_) | Self::Missing => "key_env",
            Self::File(_) => "key_file",
            Self::Command(_) => "key_command",
        }
    }

    /// Reads a key: one line of visible ASCII.
    ///
    /// # Errors
    /// When the source does not answer with one.
    pub async fn read(&self, env: &EnvLookup) -> Result<Secret, SecretError> {
        let (text, source) = self.text(env).await?;
        let key = text.trim();
        let is_key = !key.is_empty() && key.bytes().all(|b| b.is_ascii_graphic());
        if is_key { Ok(Secret(key.to_owned())) } else { Err(SecretError::Unusable(source)) }
    }

    /// Reads what people chose, a password or a passphrase: one line of any text.
    ///
    /// # Errors
    /// When the source does not answer with one.
    pub async fn read_phrase(&self, env: &EnvLookup) -> Result<Secret, SecretError> {
        let (text, source) = self.text(env).await?;
        let line = text.trim_end_matches(['\n', '\r']);
        let is_phrase = !line.is_empty() && !line.contains(char::is_control);
        if is_phrase { Ok(Secret(line.to_owned())) } else { Err(SecretError::NoLine(source)) }
    }

    /// What the source holds, and its name for messages.
    async fn text(&self, env: &EnvLookup) -> Result<(String, String), SecretError> {
        match self {
            Self::Env(name) => {
                let text = env(name).ok_or_else(|| SecretError::NotSet(name.clone()))?;
                Ok((text, name.clone()))
            }
            Self::File(path) => {
                let text = read_text(path).await;
                let text = text.map_err(|why| SecretError::File { path: path.clone(), why })?;
                Ok((text, path.display().to_string()))
            }
            Self::Command(command) => printed(command).await,
            Self::Missing => Err(SecretError::NoSource),
        }
    }
}

/// Reads a file that holds a secret. What is no regular file is one that somebody writes to, such
/// as the pipe of `<(…)` or `/dev/stdin`: it is waited for, and not for ever.
///
/// # Errors
/// Where it cannot be read, is too long, or nobody wrote it to its end in time.
pub fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    read_within(path, PIPE_MAX)
}

fn read_within(path: &Path, most: Duration) -> io::Result<Vec<u8>> {
    if std::fs::metadata(path)?.is_file() {
        return read_short(path);
    }
    // Nothing ends a thread that waits for a pipe: it is left alone, and ends with the process.
    let (put, taken) = mpsc::channel();
    let of_thread = path.to_owned();
    thread::Builder::new().spawn(move || put.send(read_short(&of_thread)))?;
    taken.recv_timeout(most).unwrap_or_else(|_late| {
        let why = "it is no regular file, and nobody wrote it to its end in time";
        Err(io::Error::new(ErrorKind::TimedOut, why))
    })
}

fn read_short(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(BYTES_MAX.saturating_add(1)).read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= BYTES_MAX => Ok(bytes),
        _longer => Err(io::Error::new(ErrorKind::InvalidData, "it is longer than 1 MiB")),
    }
}

/// As [`read_bytes`], of text.
///
/// # Errors
/// Its, and where it is no UTF-8.
pub fn read_text_now(path: &Path) -> io::Result<String> {
    let text = String::from_utf8(read_bytes(path)?);
    // What the error holds are the bytes themselves.
    text.map_err(|_bytes| io::Error::new(ErrorKind::InvalidData, "it is no UTF-8 text"))
}

/// As [`read_text_now`], beside what else is done.
///
/// # Errors
/// Its.
pub async fn read_text(path: &Path) -> io::Result<String> {
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || read_text_now(&path)).await.map_err(io::Error::other)?
}

async fn printed(command: &[String]) -> Result<(String, String), SecretError> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(SecretError::NoSource);
    };
    let failed = |status: String| SecretError::Failed { program: program.clone(), status };
    let output = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = match tokio::time::timeout(COMMAND_MAX, output).await {
        Ok(output) => {
            output.map_err(|source| SecretError::Run { program: program.clone(), source })?
        }
        Err(_elapsed) => return Err(failed("it took longer than 10 s".to_owned())),
    };
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    Ok((String::from_utf8_lossy(&output.stdout).into_owned(), program.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_pipe_is_read_and_an_endless_file_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let to = pipe.clone();
        let writing = thread::spawn(move || std::fs::write(to, "sk_test_p\n"));
        assert_eq!(read_text(&pipe).await.unwrap(), "sk_test_p\n");
        writing.join().unwrap().unwrap();
        let endless = read_text(Path::new("/dev/zero")).await.unwrap_err();
        assert_eq!(endless.kind(), ErrorKind::InvalidData);
        assert!(read_text(folder.path()).await.is_err());
        // Nobody writes to it.
        let late = read_within(&pipe, Duration::from_millis(50)).unwrap_err();
        assert!(late.to_string().contains("no regular file"), "{late}");
    }

    #[tokio::test]
    async fn secrets_come_from_three_places_and_never_show() {
        let env: EnvLookup = Arc::new(|name| (name == "A").then(|| " sk_test_a\n".to_owned()));
        let a = KeySource::Env("A".to_owned()).read(&env).await.unwrap();
        assert_eq!(a.expose(), "sk_test_a");
        assert_eq!(format!("{a:?}"), "[redacted]");
        let missing = KeySource::Env("B".to_owned()).read(&env).await.unwrap_err();
        assert!(missing.to_string().contains('B'));
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let c = KeySource::Command(words("echo sk_test_c")).read(&env).await.unwrap();
        assert_eq!(c.expose(), "sk_test_c");
        assert!(KeySource::Command(words("false")).read(&env).await.is_err());
        assert!(KeySource::Command(words("printf a\\nb")).read(&env).await.is_err());
        assert!(KeySource::File("/nonexistent".into()).read(&env).await.is_err());
        let phrase = KeySource::Command(["printf", " \u{fc} 2 \\n"].map(str::to_owned).to_vec());
        assert_eq!(phrase.read_phrase(&env).await.unwrap().expose(), " \u{fc} 2 ");
        assert!(phrase.read(&env).await.is_err());
        for bad in ["printf a\\nb", "true", "printf a\\tb"] {
            assert!(KeySource::Command(words(bad)).read_phrase(&env).await.is_err(), "{bad}");
        }
    }
}
