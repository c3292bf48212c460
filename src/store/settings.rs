//! `[database]`: where the user's tables and tieout's own are.

use std::fmt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use chrono::TimeDelta;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use crate::model::time::parse_span;
use crate::secret;
use crate::store::error::StoreError;

/// The typed words of `[database]`. The address may hold a password: it never shows in Debug.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DatabaseSettings {
    /// `postgres://user@host/name` or `sqlite:path`. Exactly one of the three.
    pub url: Option<String>,
    /// The environment variable that holds it.
    pub url_env: Option<String>,
    /// The file that holds it, on one line.
    pub url_file: Option<PathBuf>,
    /// PostgreSQL: the password, where the address has none: by the name of an environment
    /// variable …
    pub password_env: Option<String>,
    /// … by a file that holds it on one line …
    pub password_file: Option<PathBuf>,
    /// … or by the command that prints it: program and arguments, no shell.
    pub password_command: Option<Vec<String>>,
    /// What `password_env` held, once resolved.
    #[serde(skip)]
    pub password: Option<String>,
    /// PostgreSQL: the schemas to look in, in order; tieout's tables are made in the first. One
    /// that is not there is refused.
    pub search_path: Option<String>,
    /// PostgreSQL: the most connections at a time.
    #[serde(default = "connections")]
    pub connections: u32,
    /// The longest that one statement may take.
    #[serde(default = "statement_timeout", deserialize_with = "span")]
    #[schemars(with = "String")]
    pub statement_timeout: TimeDelta,
    /// How long a statement waits for a row that somebody else holds, on PostgreSQL. A file of
    /// SQLite that another process is writing is waited for 30 s.
    #[serde(default = "lock_timeout", deserialize_with = "span")]
    #[schemars(with = "String")]
    pub lock_timeout: TimeDelta,
    /// How long to wait for a connection.
    #[serde(default = "connect_timeout", deserialize_with = "span")]
    #[schemars(with = "String")]
    pub connect_timeout: TimeDelta,
}

/// One run claims, applies and shows life side by side, and reads its report.
fn connections() -> u32 {
    4
}

/// A batch of thousands of rows on a slow disk takes seconds; minutes mean trouble.
fn statement_timeout() -> TimeDelta {
    TimeDelta::minutes(5)
}

/// Applications hold a row for milliseconds; a row held longer is left for the next run.
fn lock_timeout() -> TimeDelta {
    TimeDelta::seconds(5)
}

fn connect_timeout() -> TimeDelta {
    TimeDelta::seconds(15)
}

fn span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TimeDelta, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_span(&text).filter(|span| *span > TimeDelta::zero()).ok_or_else(|| {
        serde::de::Error::custom(format!("`{text}` is no span of time such as 30s or 5min"))
    })
}

impl DatabaseSettings {
    /// Settings of this address, everything else by default.
    pub fn of_url(url: &str) -> Self {
        Self {
            url: Some(url.to_owned()),
            url_env: None,
            url_file: None,
            password_env: None,
            password_file: None,
            password_command: None,
            password: None,
            search_path: None,
            connections: connections(),
            statement_timeout: statement_timeout(),
            lock_timeout: lock_timeout(),
            connect_timeout: connect_timeout(),
        }
    }

    /// Reads the address from where the settings say; `env` reads an environment variable.
    pub fn resolve(mut self, env: impl Fn(&str) -> Option<String>) -> Result<Self, StoreError> {
        let url = match (&self.url, &self.url_env, &self.url_file) {
            (Some(url), None, None) => url.clone(),
            (None, Some(name), None) => env(name).ok_or_else(|| {
                setting("url_env", format!("the environment variable {name} is not set"))
            })?,
            (None, None, Some(path)) => secret::read_text_now(path).map_err(|error| {
                setting("url_file", format!("{} cannot be read: {error}", path.display()))
            })?,
            _none_or_several => {
                let problem = "exactly one of url, url_env and url_file is needed";
                return Err(setting("url", problem.to_owned()));
            }
        };
        self.url = Some(url.trim().to_owned());
        self.url_env = None;
        self.url_file = None;
        self.check_password()?;
        if let Some(name) = self.password_env.take() {
            let held = env(&name).ok_or_else(|| {
                setting("password_env", format!("the environment variable {name} is not set"))
            })?;
            self.password = Some(one_line(&held, "password_env")?);
        }
        Ok(self)
    }

    fn check_password(&self) -> Result<(), StoreError> {
        let named = [
            ("password_env", self.password_env.is_some()),
            ("password_file", self.password_file.is_some()),
            ("password_command", self.password_command.is_some()),
        ];
        let named: Vec<&str> =
            named.iter().filter(|(_, is_set)| *is_set).map(|(field, _)| *field).collect();
        match named.as_slice() {
            [] => Ok(()),
            [field] if self.url.as_deref().is_some_and(|url| url.starts_with("sqlite:")) => {
                Err(setting(field, "an SQLite file has no password".to_owned()))
            }
            [_one] if self.password_command.as_ref().is_some_and(Vec::is_empty) => {
                let problem = "a program and its arguments are expected".to_owned();
                Err(setting("password_command", problem))
            }
            [_one] => Ok(()),
            [_first, second, ..] => {
                let problem = format!("only one of {} may be set", named.join(", "));
                Err(setting(second, problem))
            }
        }
    }

    /// The password that is named beside the address. Read when it is needed: a command may ask
    /// a person's key or a vault.
    ///
    /// # Errors
    /// Where what is named holds no one line. The password is never part of the text.
    pub async fn read_password(&self) -> Result<Option<String>, StoreError> {
        if let Some(path) = &self.password_file {
            let text = secret::read_text(path).await.map_err(|error| {
                setting("password_file", format!("{} cannot be read: {error}", path.display()))
            })?;
            return one_line(&text, "password_file").map(Some);
        }
        match &self.password_command {
            Some(command) => printed(command).await.map(Some),
            None => Ok(self.password.clone()),
        }
    }

    /// The address, once resolved.
    pub fn address(&self) -> Result<&str, StoreError> {
        let url = self.url.as_deref().filter(|url| !url.is_empty());
        url.ok_or_else(|| setting("url", "there is no address".to_owned()))
    }
}

/// How long a password command may take.
const COMMAND_MAX: Duration = Duration::from_secs(10);

async fn printed(command: &[String]) -> Result<String, StoreError> {
    let field = "password_command";
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| setting(field, "a program and its arguments are expected".to_owned()))?;
    let output = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    // The arguments may name what is secret: only the program is told.
    let failed = |how: String| setting(field, format!("`{program}` {how}"));
    let output = match tokio::time::timeout(COMMAND_MAX, output).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => return Err(failed(format!("could not be run: {error}"))),
        Err(_elapsed) => return Err(failed("took longer than 10 s".to_owned())),
    };
    if !output.status.success() {
        return Err(failed(format!("failed ({})", output.status)));
    }
    one_line(&String::from_utf8_lossy(&output.stdout), field)
}

fn one_line(text: &str, field: &str) -> Result<String, StoreError> {
    let line = text.trim_end_matches(['\n', '\r']);
    if line.is_empty() || line.contains(char::is_control) {
        return Err(setting(field, "one line of text is expected".to_owned()));
    }
    Ok(line.to_owned())
}

fn setting(field: &str, problem: String) -> StoreError {
    StoreError::Setting { field: field.to_owned(), problem }
}

/// The address without its password and parameters, for messages: nothing up to the last `@`, and
/// `***` where nobody can tell whether what is left is of a password.
pub fn shown_address(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        let path = url.split(['?', '#']).next().unwrap_or_default();
        let is_file = path.starts_with("sqlite:");
        return if is_file { path.to_owned() } else { "***".to_owned() };
    };
    let (login, place) = rest.rsplit_once('@').unwrap_or(("", rest));
    let bare = place.split(['?', '#']).next().unwrap_or_default();
    // A password may hold what ends an address: then what stands behind is no place.
    let is_split = login.contains(['?', '#']) || (login.is_empty() && place.contains('#'));
    let is_known = ["postgres", "postgresql", "sqlite"].contains(&scheme);
    match is_split || !is_known || has_odd_port(bare) {
        true => format!("{scheme}://***"),
        false => format!("{scheme}://{bare}"),
    }
}

/// Whether what stands where a port does is no number: it may be a password without its `@`.
fn has_odd_port(place: &str) -> bool {
    let host = place.split('/').next().unwrap_or_default();
    let after = host.rsplit_once(']').map_or(host, |(_v6, after)| after);
    // Several hosts, each with its port.
    let mut ports = after.split(',').filter_map(|one| one.split_once(':'));
    ports.any(|(_host, port)| !port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What is wrong with an address whose password was written as it is: the parser would take what
/// stands before the sign for host and port, and ask the network for them.
pub fn odd_address(url: &str) -> Option<&'static str> {
    let (place, parameters) = url.split_once('?').unwrap_or((url, ""));
    let is_odd = |one: &str| !one.is_empty() && !one.contains('=');
    let is_split = place.contains('#') || parameters.contains('#');
    if holds_key_password(url) {
        return Some(
            "sslpassword is a secret, and none is read: name by sslkey a key without a password, \
             in a file that this user alone may read",
        );
    }
    (is_split || parameters.split('&').any(is_odd)).then_some(
        "an address has no `#`, and behind `?` only name=value: write # ? @ / of a password as \
         %23 %3F %40 %2F, or name the password by password_env",
    )
}

/// Whether an address has a password in it: before an `@`, or among its parameters.
pub fn holds_password(url: &str) -> bool {
    if url.starts_with("sqlite:") {
        return false;
    }
    let rest = url.split_once("://").map_or(url, |(_scheme, rest)| rest);
    let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let login = place.rsplit_once('@').and_then(|(login, _host)| login.split_once(':'));
    // The port of an address with an `@` further on is no password.
    let is_port = |word: &str| {
        let (port, path) = word.split_once('/').unwrap_or((word, ""));
        !path.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_without = !place.contains('@') && url.contains("://") && has_odd_port(place);
    let in_login =
        is_without || login.is_some_and(|(_user, word)| !word.is_empty() && !is_port(word));
    // The rest of a password that has a `?` in it.
    if parameters.split('&').any(|one| !one.contains('=') && one.contains('@')) {
        return true;
    }
    let mut parameters = parameters.split('&').chain(rest.split_whitespace());
    let is_password = |one: &str| {
        let word = one.strip_prefix("password=");
        word.is_some_and(|it| !it.is_empty())
    };
    in_login || parameters.any(is_password) || holds_key_password(url)
}

/// Whether an address has the password of a client's key among its parameters.
fn holds_key_password(url: &str) -> bool {
    let (_, parameters) = url.split_once('?').unwrap_or(("", ""));
    !url.starts_with("sqlite:") && parameters.split('&').any(|one| one.starts_with("sslpassword="))
}

impl fmt::Debug for DatabaseSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseSettings")
            .field("url", &self.url.as_deref().map(shown_address))
            .field("url_env", &self.url_env)
            .field("url_file", &self.url_file)
            .field("search_path", &self.search_path)
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_its_scheme_shows_nothing() {
        for text in ["u:hunter2@db/shop", "host=db password=hunter2", "postgres:u:hunter2@db"] {
            assert_eq!(shown_address(text), "***");
        }
        assert_eq!(shown_address("sqlite:shop.db"), "sqlite:shop.db");
    }

    #[test]
    fn the_password_never_shows() {
        for (url, shown) in [
            (
                "postgres://me:s3cret@db.example:5432/pay?sslmode=require",
                "postgres://db.example:5432/pay",
            ),
            ("postgres://me:p@ss@db/pay", "postgres://db/pay"),
            ("sqlite:tieout.db", "sqlite:tieout.db"),
            ("postgres://db/pay?password=s3cret", "postgres://db/pay"),
            ("postgres://me:s3cret#1@db:5432/pay", "postgres://***"),
            ("postgres://me:s3cret?1@db:5432/pay", "postgres://***"),
            ("postgres://me:12#s3cret@db/pay", "postgres://***"),
            ("postgres://me:12?s3cret@db/pay", "postgres://***"),
            ("postgres://me:p@s3cret#x@db/pay", "postgres://***"),
            ("postgres://me:s3cret/1@db/pay", "postgres://db/pay"),
            ("postgres://me:s3cret", "postgres://***"),
            ("postgres://me:12#s3cret", "postgres://***"),
            ("postgres://me:s3@db/pay?options=x@s3cret", "postgres://***"),
            ("sqlite://postgres:s3cret@h/err", "sqlite://h/err"),
            ("sqlite:///srv/a.db?mode=ro", "sqlite:///srv/a.db"),
            ("postgres://[::1]:5432/pay", "postgres://[::1]:5432/pay"),
        ] {
            assert_eq!(shown_address(url), shown);
            let debug = format!("{:?}", DatabaseSettings::of_url(url));
            assert!(!debug.contains("s3cret") && !debug.contains("p@ss"), "{debug}");
        }
    }

    #[test]
    fn an_address_that_a_password_splits_is_odd() {
        for url in ["postgres://u:pw#1@db/pay", "postgres://u:12?x@db/pay", "postgres://db/pay#x"] {
            assert!(odd_address(url).is_some(), "{url}");
        }
        for url in [
            "postgres://u:pw@db/pay?sslmode=require&options=-c%20x=1",
            "postgres://db:5432/pay?user=u@tenant",
            "postgres:///pay?host=/run/postgresql",
            "postgres://db/pay?",
        ] {
            assert!(odd_address(url).is_none(), "{url}");
        }
    }

    #[test]
    fn a_password_in_an_address_is_seen() {
        for url in [
            "postgres://u:hunter2@db/pay",
            "postgres://u:p@ss@db:5432/pay?sslmode=require",
            "postgres://u:p/w@db/pay",
            "postgres://u@db/pay?sslmode=require&password=hunter2",
            "postgres://u:hunter2#1@db/pay",
            "postgres://u:hunter2?1@db/pay",
            "postgres://u:12?hunter2@db/pay",
            "u:hunter2@db/pay",
            "host=db password=hunter2",
            "postgres://u@db/pay?sslkey=k.pem&sslpassword=hunter2",
        ] {
            assert!(holds_password(url), "{url}");
        }
        let how = odd_address("postgres://u@db/pay?sslpassword=hunter2").unwrap();
        assert!(how.contains("sslkey") && !how.contains("hunter2"), "{how}");
        for url in [
            "postgres://u@db:5432/pay",
            "postgres://db:5432/pay",
            "postgres://db:5432/pay@home",
            "postgres://db:5432/pay?user=u@tenant",
            "postgres://[::1]:5432/pay",
            "postgres://db:5432",
            "postgres://u:@db/pay?password=",
            "postgres:///pay?host=/run/postgresql",
            "sqlite:a:b@c.db",
            "sqlite:///srv/a.db",
        ] {
            assert!(!holds_password(url), "{url}");
        }
    }

    #[tokio::test]
    async fn a_password_is_named_in_one_of_three_ways_and_never_shows() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        std::fs::write(&file, "s3 cret\n").unwrap();
        let env = |name: &str| (name == "PW").then(|| "s3 cret".to_owned());
        let read = |text: &str| {
            let settings: DatabaseSettings =
                toml::from_str(&format!("url = 'postgres://me@db/pay'\n{text}")).unwrap();
            settings.resolve(env)
        };
        let named_file = format!("password_file = '{}'", file.display());
        for text in
            ["password_env = 'PW'", &named_file, "password_command = ['printf', 's3 cret\\n']"]
        {
            let settings = read(text).unwrap();
            assert!(!format!("{settings:?}").contains("s3"), "{text}");
            let password = settings.read_password().await.unwrap();
            assert_eq!(password.as_deref(), Some("s3 cret"), "{text}");
        }
        assert_eq!(read("").unwrap().read_password().await.unwrap(), None);
        for (text, part) in [
            ("password_env = 'NONE'", "NONE is not set"),
            ("password_command = []", "a program"),
            ("password_env = 'PW'\npassword_command = ['x']", "only one of"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        for (text, part) in [
            ("password_file = '/nowhere'", "cannot be read"),
            ("password_command = ['false', 's3']", "`false` failed"),
            ("password_command = ['/no/such', 's3']", "could not be run"),
            ("password_command = ['printf', 's3\\ns3']", "one line"),
            ("password_command = ['true']", "one line"),
        ] {
            let error = read(text).unwrap().read_password().await.unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains("s3"), "{text}: {error}");
        }
        let file = toml::from_str::<DatabaseSettings>("url = 'sqlite:x'\npassword_env = 'PW'");
        assert!(file.unwrap().resolve(env).unwrap_err().to_string().contains("no password"));
    }

    #[test]
    fn the_address_comes_from_exactly_one_place() {
        let read = |text: &str| toml::from_str::<DatabaseSettings>(text).unwrap();
        let env = |name: &str| (name == "DB").then(|| "postgres://env\n".to_owned());
        let resolved = read("url_env = 'DB'").resolve(env).unwrap();
        assert_eq!(resolved.address().unwrap(), "postgres://env");
        for (text, part) in [
            ("url_env = 'NONE'", "NONE is not set"),
            ("", "exactly one"),
            ("url = 'sqlite:x'\nurl_env = 'DB'", "exactly one"),
            ("url_file = '/nowhere/at/all'", "cannot be read"),
        ] {
            let error = read(text).resolve(env).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert_eq!(read("url = 'x'\nlock_timeout = '2s'").lock_timeout, TimeDelta::seconds(2));
        for bad in ["lock_timeout = '0s'", "lock_timeout = 'soon'", "pool = 3"] {
            assert!(toml::from_str::<DatabaseSettings>(bad).is_err(), "{bad}");
        }
    }
}
