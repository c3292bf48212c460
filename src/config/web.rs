//! `[web]`: where the review page listens, and who may sign in.
//!
//! A token never stands here: of each person's token the SHA-256 is named, which nobody can turn
//! back. With PostgreSQL nobody is named here at all: people sign in with logins of the server.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use chrono::TimeDelta;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use crate::config::place;
use crate::model::time::parse_span;
use crate::secret::KeySource;

/// The port of the default.
const PORT: u16 = 8042;

/// Digits of a SHA-256.
const HASH_DIGITS: usize = 64;

/// The longest name of a person, in characters.
const NAME_MAX: usize = 100;

/// The typed words of `[web]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebSettings {
    /// The address to listen on; one that other machines reach needs `--beyond-loopback` as well.
    #[serde(default = "listen")]
    #[schemars(with = "String")]
    pub listen: SocketAddr,
    /// What browsers see, where a proxy stands before the page: `https://tieout.example.com`.
    #[serde(default)]
    pub origin: Option<String>,
    /// How long a person stays signed in at most.
    #[serde(default = "session", deserialize_with = "span")]
    #[schemars(with = "String")]
    pub session: TimeDelta,
    /// How long a person stays signed in who does nothing.
    #[serde(default = "idle", deserialize_with = "span")]
    #[schemars(with = "String")]
    pub idle: TimeDelta,
    /// Whether what is approved is carried out at once, by the login of `[database]`; else the next
    /// `tieout run` does it.
    #[serde(default = "carry_out")]
    pub carry_out: bool,
    /// SQLite: the people who may sign in. PostgreSQL: none; logins of the server do.
    #[serde(default)]
    pub person: Vec<PersonSettings>,
}

/// One `[[web.person]]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PersonSettings {
    /// The name in histories and records, and at the sign-in.
    pub name: String,
    /// The SHA-256 of the token, in hex, as `tieout serve --new-token NAME` prints it; or …
    #[serde(default)]
    pub token_sha256: Option<String>,
    /// … the environment variable that holds this hash, …
    #[serde(default)]
    pub key_env: Option<String>,
    /// … the file that holds it, …
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// … or the command that prints it: program and arguments, no shell.
    #[serde(default)]
    pub key_command: Option<Vec<String>>,
}

fn listen() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))
}

/// A working day.
fn session() -> TimeDelta {
    TimeDelta::hours(8)
}

/// A telephone call about a case takes less.
fn idle() -> TimeDelta {
    TimeDelta::minutes(30)
}

fn carry_out() -> bool {
    true
}

fn span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TimeDelta, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_span(&text).filter(|span| *span > TimeDelta::zero()).ok_or_else(|| {
        serde::de::Error::custom(format!("`{text}` is no span of time such as 30min or 8h"))
    })
}

impl Default for WebSettings {
    fn default() -> Self {
        Self {
            listen: listen(),
            origin: None,
            session: session(),
            idle: idle(),
            carry_out: carry_out(),
            person: Vec::new(),
        }
    }
}

impl WebSettings {
    /// Files that are named stand beside the configuration.
    pub fn beside(&mut self, folder: &Path) {
        for person in &mut self.person {
            person.key_file = person.key_file.take().map(|file| place(folder, &file));
        }
    }

    /// What cannot be meant: (path below `web`, sentence).
    pub fn misfits(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        if self.origin.as_deref().is_some_and(|origin| host_of(origin).is_none()) {
            let text = "`origin`: expected an address such as https://tieout.example.com, \
                        without a path";
            found.push(("origin".to_owned(), text.to_owned()));
        }
        let mut names = BTreeSet::new();
        let mut tokens: BTreeMap<String, &str> = BTreeMap::new();
        for (at, person) in self.person.iter().enumerate() {
            let mut wrong = |field: &str, text: String| {
                found.push((format!("person.{at}.{field}"), text));
            };
            if !is_name(&person.name) {
                wrong("name", format!("`name`: expected a name of 1 to {NAME_MAX} characters"));
            }
            if !names.insert(person.name.as_str()) {
                wrong("name", format!("a second [[web.person]] is called `{}`", person.name));
            }
            if let Some(text) = person.misfit() {
                wrong("token_sha256", text.to_owned());
                continue;
            }
            let (field, token) = person.token();
            let other = *tokens.entry(token).or_insert(&person.name);
            if other != person.name {
                wrong(field, one_token(field, &person.name, other));
            }
        }
        found
    }
}

impl PersonSettings {
    fn misfit(&self) -> Option<&'static str> {
        let named = [
            self.token_sha256.is_some(),
            self.key_env.is_some(),
            self.key_file.is_some(),
            self.key_command.is_some(),
        ];
        if named.into_iter().filter(|is_named| *is_named).count() != 1 {
            return Some("exactly one of token_sha256, key_env, key_file, key_command is expected");
        }
        let is_bad = self.token_sha256.as_deref().is_some_and(|hash| !is_hash(hash));
        is_bad.then_some("`token_sha256`: expected 64 hex digits; `tieout serve --new-token NAME`")
    }

    /// The setting that tells of the token, and its words in one spelling.
    fn token(&self) -> (&'static str, String) {
        let source = self.source();
        match &self.token_sha256 {
            Some(hash) => ("token_sha256", hash.to_ascii_lowercase()),
            None => (source.field(), format!("{source:?}")),
        }
    }

    /// Where the hash is to be read, where it does not stand here.
    pub fn source(&self) -> KeySource {
        match (&self.key_env, &self.key_file, &self.key_command) {
            (Some(name), _, _) => KeySource::Env(name.clone()),
            (None, Some(path), _) => KeySource::File(path.clone()),
            (None, None, Some(command)) => KeySource::Command(command.clone()),
            (None, None, None) => KeySource::Missing,
        }
    }
}

/// Whoever could sign in as two people could be maker and checker of one decision.
fn one_token(field: &str, name: &str, other: &str) -> String {
    format!(
        "`{field}`: {name} and {other} have one token, and who has it could sign in as either; \
         `tieout serve --new-token {name}` makes another"
    )
}

/// Whether this can be the hash of a token.
pub fn is_hash(text: &str) -> bool {
    text.len() == HASH_DIGITS && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Whether somebody can be called so: what stands in histories, on one line.
pub fn is_name(text: &str) -> bool {
    let is_fit = (1..=NAME_MAX).contains(&text.chars().count());
    text == text.trim() && is_fit && !text.contains(char::is_control)
}

/// The host and port of an origin, where it is one.
pub fn host_of(origin: &str) -> Option<&str> {
    let (scheme, host) = origin.split_once("://")?;
    let is_host = !host.is_empty()
        && host
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b':' | b'[' | b']'));
    (matches!(scheme, "http" | "https") && is_host).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> WebSettings {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn it_listens_to_this_machine_alone_unless_told() {
        let settings = read("");
        assert_eq!(settings, WebSettings::default());
        assert!(settings.listen.ip().is_loopback());
        assert!(settings.misfits().is_empty());
    }

    #[test]
    fn what_cannot_be_meant_is_said() {
        let hash = "a".repeat(64);
        let fine = format!("[[person]]\nname = 'mara'\ntoken_sha256 = '{hash}'");
        assert!(read(&fine).misfits().is_empty());
        assert!(read("origin = 'https://tieout.example.com'").misfits().is_empty());
        for (text, at) in [
            ("origin = 'tieout.example.com'".to_owned(), "origin"),
            ("origin = 'https://a/b'".to_owned(), "origin"),
            ("[[person]]\nname = 'mara'".to_owned(), "person.0.token_sha256"),
            ("[[person]]\nname = 'mara'\ntoken_sha256 = 'x'".to_owned(), "person.0.token_sha256"),
            ("[[person]]\nname = ' '\nkey_env = 'A'".to_owned(), "person.0.name"),
            (format!("{fine}\nkey_env = 'A'"), "person.0.token_sha256"),
            (format!("{fine}\n{fine}"), "person.1.name"),
        ] {
            let found = read(&text).misfits();
            assert_eq!(found.len(), 1, "{text}: {found:?}");
            assert_eq!(found[0].0, at, "{text}");
        }
        assert!(toml::from_str::<WebSettings>("idle = '0s'").is_err());
    }

    #[test]
    fn two_people_have_two_tokens() {
        let person = |name: &str, token: &str| format!("[[person]]\nname = '{name}'\n{token}\n");
        let hash = |digit: &str| format!("token_sha256 = '{}'", digit.repeat(64));
        for (field, first, second, is_one) in [
            ("token_sha256", hash("a"), hash("a"), true),
            ("token_sha256", hash("a"), hash("A"), true),
            ("token_sha256", hash("a"), hash("b"), false),
            ("key_env", "key_env = 'A'".to_owned(), "key_env = 'A'".to_owned(), true),
            ("key_env", "key_env = 'A'".to_owned(), "key_env = 'B'".to_owned(), false),
            ("key_env", "key_env = 'A'".to_owned(), "key_file = 'A'".to_owned(), false),
            (
                "key_command",
                "key_command = ['a', 'b']".into(),
                "key_command = ['a b']".into(),
                false,
            ),
        ] {
            let found = read(&(person("mara", &first) + &person("jonas", &second))).misfits();
            assert_eq!(found.len(), usize::from(is_one), "{first} {second}: {found:?}");
            if let Some((at, text)) = found.first() {
                assert_eq!(*at, format!("person.1.{field}"));
                assert!(text.contains("jonas and mara have one token"), "{text}");
            }
        }
    }

    #[test]
    fn a_name_is_counted_in_characters() {
        assert!(is_name(&"ü".repeat(NAME_MAX)));
        assert!(!is_name(&"ü".repeat(NAME_MAX + 1)));
    }
}
