//! The small sections of tieout.toml, and the settings that a flag or an environment variable
//! may override: flag over environment over file over default.

use std::collections::BTreeMap;
use std::path::PathBuf;

use chrono::TimeDelta;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::policy::Span;
use crate::decide::person::FourEyes;
use crate::model::money::{AmountUnit, Currency, Exactness, parse_amount};
use crate::model::near::nearest;
use crate::model::time::{parse_span, span_text};
use crate::run::setup::FailOn;

/// How many rows a run takes when nothing else is said.
const ROWS: i64 = 10_000;

/// Rows claimed and decided together when nothing else is said.
const BATCH: i64 = 10_000;

/// Heroku kills ten seconds after the signal.
const GRACE: TimeDelta = TimeDelta::seconds(8);

/// `[report]`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportSettings {
    /// Where reports go, relative to the configuration file.
    pub dir: Option<PathBuf>,
    /// Conditions that turn exit 0 into 4.
    #[schemars(with = "Option<Vec<FailOnWord>>")]
    pub fail_on: Option<Vec<String>>,
}

/// The words of `fail_on`, for the schema of the file; a test holds them to [`FAIL_ON_WORDS`].
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "it is only described")]
enum FailOnWord {
    Cases,
    Aged,
    Empty,
    Duplicates,
    Differs,
}

/// `[files]`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesSettings {
    /// Where fetched files lie until their lines are in the database, relative to this file.
    pub spool: Option<PathBuf>,
}

/// `[rules]`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RulesSettings {
    /// Rule files, relative to the configuration file; the first rule that matches wins.
    #[serde(default)]
    pub files: Vec<PathBuf>,
}

/// `[cases]`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CasesSettings {
    /// From which amount on a person's decision needs a second person, by currency: `"500.00"`, or
    /// `"never"`; under `"*"` that of every other currency.
    #[serde(default)]
    pub four_eyes_from: BTreeMap<String, String>,
}

/// `[limits]`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitsSettings {
    /// The most rows of one run.
    pub rows: Option<i64>,
    /// Rows claimed and decided together.
    pub batch: Option<i64>,
    /// Claims nothing new after this long.
    pub max_duration: Option<Span>,
    /// From the signal to the end.
    pub grace: Option<Span>,
    /// Does not look at younger rows; can only raise `stuck_after`.
    pub min_age: Option<Span>,
}

/// The limits of a run, worked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The most rows of one run.
    pub rows: i64,
    /// Rows claimed and decided together.
    pub batch: i64,
    /// Claims nothing new after this long.
    pub max_duration: Option<TimeDelta>,
    /// From the signal to the end.
    pub grace: TimeDelta,
    /// Does not look at younger rows.
    pub min_age: Option<TimeDelta>,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// The configuration file.
    File,
    /// An environment variable.
    Env(&'static str),
    /// A flag.
    Flag(&'static str),
}

impl Origin {
    /// As `config show --origin` prints it.
    pub fn text(&self) -> String {
        match self {
            Self::Default => "default".to_owned(),
            Self::File => "file".to_owned(),
            Self::Env(name) => format!("env {name}"),
            Self::Flag(name) => format!("flag {name}"),
        }
    }

    /// The flag's or variable's name, for messages.
    pub fn word(&self) -> String {
        match self {
            Self::Default | Self::File => self.text(),
            Self::Env(name) | Self::Flag(name) => (*name).to_owned(),
        }
    }
}

/// One value that a flag or an environment variable gives to a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// The setting's path: `limits.rows`.
    pub path: &'static str,
    /// The value's text.
    pub value: String,
    /// Which flag or variable.
    pub origin: Origin,
}

/// One setting with its value and where that comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The setting's path: `limits.rows`.
    pub path: String,
    /// The value as the file would write it; secrets are left out.
    pub value: String,
    /// Where it comes from.
    pub origin: Origin,
}

/// A value and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given<T> {
    /// The value.
    pub value: T,
    /// Where it comes from.
    pub origin: Origin,
}

/// Resolves settings by precedence, and keeps what it found wrong and what it chose.
#[derive(Debug)]
pub struct Resolver<'a> {
    overrides: &'a [Override],
    /// Mistakes in flags and variables: (word, sentence).
    pub mistakes: Vec<(String, String)>,
    /// Every setting resolved so far.
    pub shown: Vec<Shown>,
}

impl<'a> Resolver<'a> {
    /// Over these overrides.
    pub fn new(overrides: &'a [Override]) -> Self {
        Self { overrides, mistakes: Vec::new(), shown: Vec::new() }
    }

    /// The value of a setting: the override's if there is one, else the file's, else the default.
    /// `read` turns an override's text into a value, or says what was expected; `show` is the
    /// way back.
    pub fn pick<T>(
        &mut self,
        path: &'static str,
        file: Option<T>,
        default: T,
        read: impl Fn(&str) -> Result<T, String>,
        show: impl Fn(&T) -> String,
    ) -> Given<T> {
        let given = self.overridden(path, read).unwrap_or_else(|| match file {
            Some(value) => Given { value, origin: Origin::File },
            None => Given { value: default, origin: Origin::Default },
        });
        self.shown.push(Shown {
            path: path.to_owned(),
            value: show(&given.value),
            origin: given.origin.clone(),
        });
        given
    }

    /// What a flag or a variable says of a setting; nothing where none does, or where it cannot be
    /// read, which is among the mistakes then.
    pub fn overridden<T>(
        &mut self,
        path: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Option<Given<T>> {
        let given = self.overrides.iter().find(|given| given.path == path)?;
        match read(&given.value) {
            Ok(value) => Some(Given { value, origin: given.origin.clone() }),
            Err(expected) => {
                let text = format!("`{}`: expected {expected}", given.value);
                self.mistakes.push((given.origin.word(), text));
                None
            }
        }
    }
}

/// Reads a span of a flag or variable.
pub fn read_span(text: &str) -> Result<TimeDelta, String> {
    let span = parse_span(text).filter(|span| *span > TimeDelta::zero());
    span.ok_or_else(|| "a span above 0 such as 90s, 15min, 6h or 3d".to_owned())
}

fn read_optional_span(text: &str) -> Result<Option<TimeDelta>, String> {
    read_span(text).map(Some)
}

fn read_count(text: &str) -> Result<i64, String> {
    let count = text.parse::<i64>().ok().filter(|count| *count >= 1);
    count.ok_or_else(|| "a whole number, at least 1".to_owned())
}

fn show_optional_span(span: &Option<TimeDelta>) -> String {
    span.map_or("\"none\"".to_owned(), |span| format!("\"{}\"", span_text(span)))
}

impl LimitsSettings {
    /// Works the limits out. Mistakes of the file: (path, sentence).
    pub fn resolve(&self, resolver: &mut Resolver<'_>) -> (Limits, Vec<(&'static str, String)>) {
        let span = |span: Option<Span>| span.map(|span| Some(span.0));
        let show_count = |count: &i64| count.to_string();
        let show_span = |span: &TimeDelta| format!("\"{}\"", span_text(*span));
        let rows = resolver.pick("limits.rows", self.rows, ROWS, read_count, show_count);
        let batch = resolver.pick("limits.batch", self.batch, BATCH, read_count, show_count);
        let max_duration = resolver.pick(
            "limits.max_duration",
            span(self.max_duration),
            None,
            read_optional_span,
            show_optional_span,
        );
        let grace = self.grace.map(|span| span.0);
        let grace = resolver.pick("limits.grace", grace, GRACE, read_span, show_span);
        let min_age = resolver.pick(
            "limits.min_age",
            span(self.min_age),
            None,
            read_optional_span,
            show_optional_span,
        );
        let mut wrong = Vec::new();
        for (path, count) in [("limits.rows", rows.value), ("limits.batch", batch.value)] {
            if count < 1 {
                wrong.push((path, format!("`{path}` is {count}; expected at least 1")));
            }
        }
        if grace.value < TimeDelta::seconds(1) || grace.value > TimeDelta::hours(1) {
            let text = format!("`limits.grace` is {}; expected 1s to 1h", span_text(grace.value));
            wrong.push(("limits.grace", text));
        }
        let limits = Limits {
            rows: rows.value,
            batch: batch.value,
            max_duration: max_duration.value,
            grace: grace.value,
            min_age: min_age.value,
        };
        (limits, wrong)
    }
}

/// The word for "no amount needs a second person".
const NEVER: &str = "never";

/// The name that stands for every currency that is not named.
const OTHERS: &str = "*";

impl CasesSettings {
    /// Works out who needs a second person. Mistakes: (the setting's path, sentence).
    pub fn resolve(&self) -> (FourEyes, Vec<(String, String)>) {
        let mut four_eyes = FourEyes::default();
        let mut wrong = Vec::new();
        for (name, text) in &self.four_eyes_from {
            let path = format!("cases.four_eyes_from.{name}");
            if name == OTHERS {
                four_eyes.others_never = text == NEVER;
                if !four_eyes.others_never {
                    let text = format!(
                        "`{text}`: without a currency expected \"{NEVER}\"; left out, every \
                         amount needs two people"
                    );
                    wrong.push((path, text));
                }
                continue;
            }
            let Ok(currency) = Currency::parse(name) else {
                wrong.push((path, format!("`{name}` is no currency of ISO 4217, and not \"*\"")));
                continue;
            };
            let read = parse_amount(text, AmountUnit::Major, Exactness::Exact, currency);
            let from = match read.map(|money| money.minor) {
                _any if text == NEVER => None,
                Ok(minor) if minor >= 0 => Some(minor),
                Ok(_) | Err(_) => {
                    let text =
                        format!("`{text}`: expected an amount such as \"500.00\", or \"{NEVER}\"");
                    wrong.push((path, text));
                    continue;
                }
            };
            four_eyes.from.insert(currency.code().to_owned(), from);
        }
        (four_eyes, wrong)
    }
}

/// The words of `--fail-on`.
pub const FAIL_ON_WORDS: [(&str, FailOn); 5] = [
    ("cases", FailOn::Cases),
    ("aged", FailOn::Aged),
    ("empty", FailOn::Empty),
    ("duplicates", FailOn::Duplicates),
    ("differs", FailOn::Differs),
];

/// Reads one word of `--fail-on`.
pub fn read_fail_on(word: &str) -> Result<FailOn, String> {
    let found = FAIL_ON_WORDS.iter().find(|(known, _)| *known == word);
    found.map(|(_, condition)| *condition).ok_or_else(|| {
        let known: Vec<&str> = FAIL_ON_WORDS.iter().map(|(word, _)| *word).collect();
        let near = nearest(word, known.iter().copied());
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        format!("a list of {}; found `{word}`{near}", known.join(", "))
    })
}

/// Reads the words of `--fail-on`, separated by commas.
pub fn read_fail_on_list(text: &str) -> Result<Vec<FailOn>, String> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(read_fail_on).collect()
}

/// The words again.
pub fn show_fail_on(conditions: &[FailOn]) -> String {
    let words: Vec<String> = conditions
        .iter()
        .filter_map(|condition| FAIL_ON_WORDS.iter().find(|(_, known)| known == condition))
        .map(|(word, _)| format!("\"{word}\""))
        .collect();
    format!("[{}]", words.join(", "))
}
