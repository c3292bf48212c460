//! Flags that every command shares, and the words that several commands read alike.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, ValueEnum};

use crate::cli::failure::Failure;
use crate::cli::screen::shell_word;
use crate::config::sections::{Origin, Override};
use crate::config::{self, FILE_NAME, names};
use crate::store::people::{SAID_MAX, one_line};

/// Flags of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Everywhere")]
pub struct Common {
    /// Print help
    #[arg(short, long, global = true, action = clap::ArgAction::HelpShort)]
    help: Option<bool>,
    /// The configuration; default: ./tieout.toml, the user's, the system's
    #[arg(long, global = true, value_name = "FILE", env = names::CONFIG, value_parser = path())]
    config: Option<PathBuf>,
    /// Print events, one JSON object a line, on stdout
    #[arg(long, global = true, env = names::JSON, value_parser = yes_or_no)]
    pub json: bool,
    /// Print nothing but what went wrong
    #[arg(
        short, long, global = true, env = names::QUIET, value_parser = yes_or_no,
        conflicts_with = "verbose"
    )]
    pub quiet: bool,
    /// Print the summary without a terminal too, and log warnings; -vv: log what is planned and
    /// asked; -vvv: log every retry, and what the libraries say
    #[arg(short, long, global = true, action = clap::ArgAction::Count, env = names::VERBOSE)]
    pub verbose: u8,
    /// How logs are written: for people, as JSON, or as key=value
    #[arg(
        long, global = true, value_name = "FORM", env = names::LOG_FORMAT, value_enum,
        default_value_t = LogFormat::Text
    )]
    pub log_format: LogFormat,
    /// Log to this file instead of stderr, as much as -vv at least
    #[arg(long, global = true, value_name = "FILE", env = names::LOG_FILE, value_parser = path())]
    log_file: Option<PathBuf>,
    /// No colours (NO_COLOR is heeded too)
    #[arg(
        long, global = true, env = names::TIEOUT_NO_COLOR, value_parser = yes_or_no
    )]
    pub no_color: bool,
}

impl Common {
    /// `--config`, where it was given.
    pub fn config(&self) -> Option<&Path> {
        self.config.as_deref().filter(|path| !path.as_os_str().is_empty())
    }

    /// A text whose commands are there to be copied: they name the configuration that this one was
    /// told to read, and so does what is to be corrected in it. Whoever copies them has the
    /// variable, where it was told so.
    pub fn copyable<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(path) = self.config() else { return Cow::Borrowed(text) };
        let text = in_file(text, path);
        if config::variable(names::CONFIG).is_some_and(|named| Path::new(&named) == path) {
            return text;
        }
        match naming(&text, path) {
            Cow::Owned(said) => Cow::Owned(said),
            Cow::Borrowed(_as_it_is) => text,
        }
    }

    /// `--log-file`, where it was given.
    pub fn log_file(&self) -> Option<&Path> {
        self.log_file.as_deref().filter(|path| !path.as_os_str().is_empty())
    }
}

/// The commands that read a configuration.
const READ_IT: [&str; 18] = [
    "audit", "cases", "config", "db", "deliver", "doctor", "explain", "files", "ingest", "pause",
    "report", "resume", "rules", "run", "runs", "schedule", "serve", "sources",
];

/// A text whose commands name the configuration at this path.
pub fn naming<'t>(text: &'t str, path: &Path) -> Cow<'t, str> {
    let is_command = |before: &str, after: &str| {
        let word = after.split(|c: char| !c.is_ascii_lowercase()).next().unwrap_or_default();
        let is_begin = !before.ends_with(|c: char| c.is_alphanumeric() || "_-/.".contains(c));
        is_begin && READ_IT.contains(&word) && !after.starts_with("config init")
    };
    let mut parts = text.split("tieout ");
    let mut said = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let flag = match is_command(&said, part) {
            true => format!("--config {} ", shell_word(&path.display().to_string())),
            false => String::new(),
        };
        said.push_str(&format!("tieout {flag}{part}"));
    }
    if said == text { Cow::Borrowed(text) } else { Cow::Owned(said) }
}

/// A text that speaks of the configuration at this path, and not of one by its usual name.
fn in_file<'t>(text: &'t str, path: &Path) -> Cow<'t, str> {
    let is_of_word = |c: char| c.is_alphanumeric() || "_-/".contains(c);
    let mut parts = text.split(FILE_NAME);
    let mut said = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // The end of another path, or the begin of another name.
        let is_other = said.ends_with(|c: char| c == '.' || is_of_word(c))
            || part.starts_with(|c: char| is_of_word(c));
        match is_other {
            true => said.push_str(FILE_NAME),
            false => said.push_str(&path.display().to_string()),
        }
        said.push_str(part);
    }
    if said == text { Cow::Borrowed(text) } else { Cow::Owned(said) }
}

/// Reads a path; clap's own reader takes an empty variable for a mistake.
pub fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// Reads a flag's variable; an empty one counts as not set.
pub fn yes_or_no(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "" | "0" | "false" | "no" | "off" => Ok(false),
        _other => Err("expected true or false".to_owned()),
    }
}

/// An option's word; an empty variable counts as not set.
pub fn word(given: Option<&String>) -> Option<String> {
    given.filter(|text| !text.is_empty()).cloned()
}

/// What a person says with a flag, on one line; `end` is said behind the refusal.
///
/// # Errors
/// A usage error where it is none, or too long.
pub fn sentence<'t>(flag: &str, text: &'t str, end: &str) -> Result<&'t str, Failure> {
    let refused = || {
        format!(
            "{flag}: expected one line of 1 to {SAID_MAX} characters, none of them a control \
             character{end}"
        )
    };
    one_line(text).ok_or_else(|| Failure::usage(refused()))
}

/// The forms of logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
    /// `key=value` pairs.
    Logfmt,
}

/// Whether something is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal.
    Auto,
    /// Not at all.
    Never,
}

/// Which flag (or variable) overrides which setting.
pub struct Overriding {
    /// clap's id of the flag.
    pub id: &'static str,
    /// The flag as it is typed.
    pub flag: &'static str,
    /// Its variable.
    pub env: &'static str,
    /// The setting's path.
    pub path: &'static str,
}

/// The overrides that were given, each with where it came from.
pub fn overrides(matches: &ArgMatches, known: &[Overriding]) -> Vec<Override> {
    known
        .iter()
        .filter_map(|setting| {
            let value = word(matches.get_one::<String>(setting.id))?;
            let origin = match matches.value_source(setting.id)? {
                ValueSource::CommandLine => Origin::Flag(setting.flag),
                ValueSource::EnvVariable => Origin::Env(setting.env),
                _default => return None,
            };
            Some(Override { path: setting.path, value, origin })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_name_the_configuration_and_prose_does_not() {
        let path = Path::new("sub/x.toml");
        for (text, want) in [
            ("tieout db migrate", "tieout --config sub/x.toml db migrate"),
            ("cases 1 new   → tieout cases list", "→ tieout --config sub/x.toml cases list"),
            ("run `tieout doctor`; or", "run `tieout --config sub/x.toml doctor`; or"),
            ("tieout db roles | psql, then tieout run", "then tieout --config sub/x.toml run"),
        ] {
            assert!(naming(text, path).contains(want), "{}", naming(text, path));
        }
        for text in [
            "tieout has never looked at it",
            "of tieout's tables",
            "/usr/bin/tieout run",
            "tieout config init --url sqlite:shop.db",
            "tieout demo",
        ] {
            assert_eq!(naming(text, path), text);
        }
        let odd = naming("tieout run", Path::new("my x.toml"));
        assert_eq!(odd, "tieout --config 'my x.toml' run");
    }

    #[test]
    fn what_is_to_be_corrected_is_the_file_that_was_named() {
        let path = Path::new("sub/x.toml");
        for (text, want) in [
            (
                "correct tieout.toml, then `tieout doctor`",
                "correct sub/x.toml, then `tieout doctor`",
            ),
            ("correct [[account]] in tieout.toml", "correct [[account]] in sub/x.toml"),
            ("tieout.toml: or tieout.toml.", "sub/x.toml: or sub/x.toml."),
            ("in /etc/tieout/tieout.toml", "in /etc/tieout/tieout.toml"),
            ("my.tieout.toml and tieout.tomls", "my.tieout.toml and tieout.tomls"),
        ] {
            assert_eq!(in_file(text, path), want);
        }
    }
}
