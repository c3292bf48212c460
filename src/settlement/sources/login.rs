//! Logging in to an SFTP server, by a key, an agent or a password: and where it fails, what a
//! person can do about it, in words.

use std::io::Read as _;
use std::path::Path;

use ssh2::{ErrorCode, KeyboardInteractivePrompt, Prompt};

use crate::exit::Exit;
use crate::settlement::sources::SourceError;
use crate::settlement::sources::settings::{Secrets, Server};
use crate::settlement::sources::wire::{Line, told};

/// Servers hang up after six tries.
const TRIES_MAX: usize = 6;

/// libssh2's code for a key file that it cannot read, or cannot open with this passphrase.
const BAD_KEY: i32 = -16;

/// Within so many bytes a key file says that it is encrypted.
const KEY_HEAD: u64 = 4_096;

/// Its codes for "no": a method, a key or a password that the server, or the agent, does not take.
const REFUSED: [i32; 6] = [-18, -19, -33, -42, -48, -51];

/// Logs in. A server may want two ways, one after the other; each that is configured is tried.
pub(super) fn log_in(line: &Line, server: &Server, secrets: &Secrets) -> Result<(), SourceError> {
    let doing = format!("logging in to {} as {}", server.address(), server.user);
    let session = &line.session;
    let offered = match session.auth_methods(&server.user) {
        Ok(offered) => offered.to_owned(),
        // Some let everybody in whom the network lets through.
        Err(_none_wanted) if session.authenticated() => return Ok(()),
        Err(error) => return Err(told(doing, &error)),
    };
    let mut tried = Vec::new();
    for way in [by_key, by_agent, by_password] {
        way(&Attempt { line, server, secrets, offered: &offered, doing: &doing }, &mut tried)?;
        if session.authenticated() {
            return Ok(());
        }
    }
    let tried = tried.join("; ");
    let problem = format!("{tried}; the server takes {}", offered.replace(',', ", "));
    Err(SourceError::Refused { doing, problem })
}

struct Attempt<'a> {
    line: &'a Line,
    server: &'a Server,
    secrets: &'a Secrets,
    offered: &'a str,
    doing: &'a str,
}

impl Attempt<'_> {
    /// A refusal is noted; a line that was cut ends the login.
    fn note(
        &self,
        ended: Result<(), ssh2::Error>,
        refused: impl FnOnce(&ssh2::Error) -> String,
        tried: &mut Vec<String>,
    ) -> Result<(), SourceError> {
        let Err(error) = ended else { return Ok(()) };
        match error.code() {
            ErrorCode::Session(code) if REFUSED.contains(&code) || code == BAD_KEY => {
                tried.push(refused(&error));
                Ok(())
            }
            _cut => Err(told(self.doing.to_owned(), &error)),
        }
    }
}

fn by_key(attempt: &Attempt<'_>, tried: &mut Vec<String>) -> Result<(), SourceError> {
    let Some(file) = &attempt.server.key_file else { return Ok(()) };
    let shown = file.display();
    // libssh2 says the same of a file that is missing as of one that is damaged.
    let unread = |why: &dyn std::fmt::Display| {
        let problem = format!("the key file {shown} cannot be read: {why}");
        SourceError::Secret { field: "key_file", problem, exit: Exit::Config }
    };
    // libssh2 reads it by its name, more than once, and would wait for a pipe for ever.
    if std::fs::metadata(file).is_ok_and(|it| !it.is_file()) {
        return Err(unread(&"it is no regular file"));
    }
    let is_locked = is_encrypted(file).map_err(|error| unread(&error))?;
    let passphrase = attempt.secrets.passphrase.as_ref().map(|secret| secret.expose());
    if is_locked && passphrase.is_none() {
        let text = "it is encrypted, and no passphrase is configured";
        tried.push(format!("the key file {shown} cannot be opened: {text}"));
        return Ok(());
    }
    let user = &attempt.server.user;
    let ended = attempt.line.session.userauth_pubkey_file(user, None, file, passphrase);
    let refused = |error: &ssh2::Error| match (error.code(), passphrase) {
        (ErrorCode::Session(BAD_KEY), Some(_)) => format!(
            "the key file {shown} cannot be opened: the passphrase is wrong, or it is no private \
             key (OpenSSH, PEM or PKCS#8)"
        ),
        (ErrorCode::Session(BAD_KEY), None) => format!(
            "the key file {shown} cannot be opened: it wants a passphrase and none is configured, \
             or it is no private key (OpenSSH, PEM or PKCS#8)"
        ),
        // libssh2 may say of such a file what it says of a key that the server refused.
        _refused if is_locked => format!(
            "the key {shown} is not taken: the passphrase does not open it, or the server does not \
             take it for this user"
        ),
        _refused => format!("the server does not take the key {shown} for this user"),
    };
    attempt.note(ended, refused, tried)
}

/// Whether a key file says that it is encrypted, as PEM and PKCS#8 do in plain words.
fn is_encrypted(file: &Path) -> std::io::Result<bool> {
    let mut head = Vec::new();
    std::fs::File::open(file)?.take(KEY_HEAD).read_to_end(&mut head)?;
    Ok(says_encrypted(&String::from_utf8_lossy(&head)))
}

fn says_encrypted(head: &str) -> bool {
    head.contains("-----BEGIN ENCRYPTED PRIVATE KEY-----")
        || head.contains("Proc-Type: 4,ENCRYPTED")
}

fn by_agent(attempt: &Attempt<'_>, tried: &mut Vec<String>) -> Result<(), SourceError> {
    if !attempt.server.agent {
        return Ok(());
    }
    let identities = attempt.line.session.agent().and_then(|mut agent| {
        agent.connect()?;
        agent.list_identities()?;
        let keys = agent.identities()?;
        Ok((agent, keys))
    });
    let Ok((agent, keys)) = identities else {
        tried.push("no SSH agent answers (SSH_AUTH_SOCK)".to_owned());
        return Ok(());
    };
    if keys.is_empty() {
        tried.push("the SSH agent holds no key (ssh-add)".to_owned());
    }
    let most = agent_keys_max(attempt.server.key_file.is_some());
    for key in keys.iter().take(most) {
        let ended = agent.userauth(&attempt.server.user, key);
        let refused =
            |_: &ssh2::Error| format!("the server does not take the agent's key {}", key.comment());
        attempt.note(ended, refused, tried)?;
        if attempt.line.session.authenticated() {
            return Ok(());
        }
    }
    if keys.len() > most {
        tried.push(format!(
            "the agent holds {} keys, of which {most} were tried: name the right one as \
             `key_file`, or let the agent hold fewer",
            keys.len()
        ));
    }
    Ok(())
}

/// How many keys of the agent are tried: a password wants a try of its own, and so does a key.
fn agent_keys_max(has_key: bool) -> usize {
    TRIES_MAX.saturating_sub(1).saturating_sub(usize::from(has_key))
}

fn by_password(attempt: &Attempt<'_>, tried: &mut Vec<String>) -> Result<(), SourceError> {
    let Some(password) = &attempt.secrets.password else { return Ok(()) };
    let (session, user) = (&attempt.line.session, &attempt.server.user);
    let way = match way_of(attempt.offered) {
        Some(way) => way,
        // A server that wants a key first says only then what it wants next.
        None => {
            let next = session.auth_methods(user).ok().and_then(way_of);
            if session.authenticated() {
                return Ok(());
            }
            next.unwrap_or(Way::Password)
        }
    };
    let ended = match way {
        Way::Password => session.userauth_password(user, password.expose()),
        Way::Questions => {
            session.userauth_keyboard_interactive(user, &mut Answer(password.expose()))
        }
    };
    let refused = |_: &ssh2::Error| "the server does not take the password".to_owned();
    attempt.note(ended, refused, tried)
}

/// How a password is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// As it is.
    Password,
    /// As the answer to a question of the server.
    Questions,
}

/// How a server that offers these methods takes a password; none: not at all, as far as it says.
fn way_of(offered: &str) -> Option<Way> {
    let takes = |way: &str| offered.split(',').any(|offered| offered == way);
    match () {
        () if takes("password") => Some(Way::Password),
        () if takes("keyboard-interactive") => Some(Way::Questions),
        () => None,
    }
}

/// Answers a hidden question with the password, and nothing else with anything.
struct Answer<'a>(&'a str);

impl KeyboardInteractivePrompt for Answer<'_> {
    fn prompt<'a>(
        &mut self,
        _username: &str,
        _instructions: &str,
        prompts: &[Prompt<'a>],
    ) -> Vec<String> {
        let hidden = prompts.iter().filter(|prompt| !prompt.echo).count();
        let answer = |prompt: &Prompt<'_>| {
            // Two hidden questions would be a password and a code that only a person has.
            if prompt.echo || hidden > 1 { String::new() } else { self.0.to_owned() }
        };
        prompts.iter().map(answer).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// libssh2 says of such a key, opened by no passphrase or a wrong one, what it says of one that
    /// the server does not take.
    #[test]
    fn a_key_that_is_encrypted_says_so() {
        for (head, want) in [
            ("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIFNTBf\n", true),
            ("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES\n", true),
            ("-----BEGIN RSA PRIVATE KEY-----\nMIIEowIB\n", false),
            ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\n", false),
        ] {
            assert_eq!(says_encrypted(head), want, "{head}");
        }
    }

    #[test]
    fn a_password_is_given_as_the_server_takes_it() {
        for (offered, way) in [
            ("publickey,password", Some(Way::Password)),
            ("password,keyboard-interactive", Some(Way::Password)),
            ("publickey,keyboard-interactive", Some(Way::Questions)),
            ("keyboard-interactive", Some(Way::Questions)),
            ("publickey", None),
            ("publickey,gssapi-with-mic,hostbased", None),
            ("", None),
        ] {
            assert_eq!(way_of(offered), way, "{offered}");
        }
    }

    #[test]
    fn only_one_hidden_question_is_answered_and_with_the_password() {
        let asked = |questions: &[(&'static str, bool)]| -> Vec<String> {
            let prompts: Vec<Prompt<'_>> = questions
                .iter()
                .map(|(text, echo)| Prompt { text: (*text).into(), echo: *echo })
                .collect();
            Answer("s3 cret").prompt("bank", "", &prompts)
        };
        assert_eq!(asked(&[("Password: ", false)]), ["s3 cret"]);
        // What is shown while it is typed is no password.
        assert_eq!(asked(&[("Branch: ", true), ("PIN: ", false)]), ["", "s3 cret"]);
        assert_eq!(asked(&[("Password: ", false), ("Code: ", false)]), ["", ""]);
        assert_eq!(asked(&[("Branch: ", true)]), [""]);
        // Servers greet with no question at all.
        assert_eq!(asked(&[]), [""; 0]);
    }
}
