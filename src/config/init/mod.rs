//! A mapping proposed from what a catalogue shows: candidates, one reason for each choice, and
//! what could not be told.
//!
//! Pure: the database was asked before. It never guesses where a wrong guess could do harm: such
//! a line is left open ([`OPEN`]), and a configuration with an open line is refused. Adding a
//! thing to look for: its names in `words`, its choice in `choose`, its line in `write`.

pub mod choose;
pub mod words;
pub mod write;

use std::collections::{BTreeMap, BTreeSet};

use crate::config::document::quoted;
use crate::store::inspect::{Surveyed, Tally};
use crate::store::source_table::{Column, TypeClass};
use crate::store::tellers::{coded, flags, pointers, says_outcome, tell_accounts};

/// What stands where only a person can answer. `config check` refuses it.
pub const OPEN: &str = "???";

/// What a person said, by flag or at a prompt; what is left out is chosen.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    /// Whether the table was named, and not found by what it looks like.
    pub names_table: bool,
    /// Columns of the key.
    pub key: Vec<String>,
    /// The status column.
    pub status: Option<String>,
    /// Processing values.
    pub processing: Vec<String>,
    /// The value of succeeded.
    pub succeeded: Option<String>,
    /// The value of failed.
    pub failed: Option<String>,
    /// The value of retryable.
    pub retryable: Option<String>,
    /// The amount's column.
    pub amount: Option<String>,
    /// `minor` or `major`.
    pub unit: Option<String>,
    /// A column, or a code.
    pub currency: Option<String>,
    /// The column of creation times.
    pub created: Option<String>,
    /// The column of the last attempt, or `once`.
    pub attempted: Option<String>,
    /// The column of the PSP's reference.
    pub reference: Option<String>,
    /// The tag's template.
    pub tag: Option<String>,
    /// Where the tag sits at the PSP: `metadata[order_id]`.
    pub tag_at: Option<String>,
    /// The account's name.
    pub account: String,
    /// The environment variable of the account's key.
    pub key_env: String,
    /// Whether the account holds live money.
    pub live: bool,
    /// What times without a zone mean.
    pub time: Option<String>,
    /// The zone of business days.
    pub timezone: Option<String>,
}

/// What the database said of the chosen table.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Distinct values of a column, where they were asked for.
    pub values: BTreeMap<String, Vec<String>>,
    /// Columns whose values could not be read.
    pub unread: Vec<String>,
    /// Distinct values of the status in the table that is written, where a view above it is read.
    pub written: Vec<String>,
    /// A few values of a column.
    pub examples: BTreeMap<String, Vec<String>>,
    /// Looked-at rows by what a column has by which rows may be left out, and by their status.
    pub tallies: BTreeMap<String, Vec<Tally>>,
    /// The database compares times that are kept as text.
    pub text_times: bool,
    /// Tables that hold the currency for this one.
    pub currency_at: Vec<String>,
    /// Tables that point here and look like a history.
    pub histories: Vec<String>,
}

/// One choice: the text of the TOML value, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// As it is written: `"status"`, `["id"]`, `{ column = "amount", unit = "minor" }`.
    pub value: String,
    /// One line.
    pub why: String,
}

impl Choice {
    fn new(value: impl Into<String>, why: impl Into<String>) -> Self {
        Self { value: value.into(), why: why.into() }
    }

    fn open(value: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(value, why)
    }

    /// Only a person can answer it.
    pub fn is_open(&self) -> bool {
        self.value.contains(OPEN)
    }
}

/// A proposed mapping.
#[derive(Debug, Clone, Default)]
pub struct Proposal {
    /// The mapping's name.
    pub name: String,
    /// Its lines in the order of the file: (setting, choice).
    pub lines: Vec<(&'static str, Choice)>,
    /// Lines that are written as comments: a person takes the `#` away where they hold.
    pub offers: Vec<(&'static str, Choice)>,
    /// `[[table.map]]`: (from or outcome, choice).
    pub map: Vec<(&'static str, Choice)>,
    /// `[table.set]`: (`always` or an outcome, column, template).
    pub set: Vec<(&'static str, String, String)>,
    /// What could not be told, one sentence each.
    pub untold: Vec<String>,
    /// Values that the written status was seen to have.
    pub statuses: Vec<String>,
}

impl Proposal {
    /// The choice for a setting.
    pub fn choice(&self, name: &str) -> Option<&Choice> {
        self.lines.iter().chain(&self.map).find(|(known, _)| *known == name).map(|(_, c)| c)
    }
}

/// Whether a value that is named for an outcome is none that the status was seen to have, and may
/// be misspelt: a word that says the outcome may well come to be the first that does.
pub fn is_stray(outcome: &str, value: &str, known: &[String]) -> bool {
    let is_new = says_outcome(outcome, value) && !known.iter().any(|it| says_outcome(outcome, it));
    !known.is_empty() && !is_new && !known.iter().any(|it| it == value)
}

/// Tables that may hold payments, the likeliest first, each with its score.
pub fn ranked(survey: &[Surveyed]) -> Vec<(&Surveyed, u32)> {
    let mut ranked: Vec<(&Surveyed, u32)> =
        survey.iter().map(|one| (one, words::score(one))).filter(|(_, score)| *score > 0).collect();
    ranked.sort_by(|(a, one), (b, other)| other.cmp(one).then_with(|| a.name.cmp(&b.name)));
    ranked
}

/// Columns whose distinct values a proposal wants to see.
pub fn wants_values(of: &Surveyed, answers: &Answers) -> Vec<String> {
    let status = words::status(of, answers.status.as_deref());
    let account = words::pick(of, &words::ACCOUNT, words::is_word);
    let mut wanted: Vec<&Column> = [status, account].into_iter().flatten().collect();
    wanted.extend(tell_accounts(&of.relation.columns));
    wanted.extend(words::picks(of, &words::ENVIRONMENT, words::is_word));
    wanted.extend(status.into_iter().flat_map(|status| words::other_statuses(of, status)));
    wanted.extend(coded(&of.relation.columns));
    wanted.extend(flags(&of.relation.columns));
    wanted.extend(pointers(&of.relation.columns));
    let mut names = BTreeSet::new();
    wanted.retain(|column| names.insert(column.name.as_str()));
    wanted.into_iter().map(|column| column.name.clone()).collect()
}

/// Columns of which a proposal wants a few values: whatever may be a reference, a time or an
/// amount.
pub fn wants_examples(of: &Surveyed) -> Vec<String> {
    let may_tell = |column: &&Column| {
        matches!(
            column.class,
            TypeClass::Text
                | TypeClass::Padded
                | TypeClass::Integer
                | TypeClass::Decimal
                | TypeClass::Float
        ) || words::is_valid_to(column)
    };
    of.relation.columns.iter().filter(may_tell).take(60).map(|c| c.name.clone()).collect()
}

/// The tables below a view that have a column of this name which can be written. Of several no
/// catalogue tells whose the view shows, and the rows of another must never be written.
fn tables_below<'s>(of: &Surveyed, survey: &'s [Surveyed], name: &str) -> Vec<&'s Surveyed> {
    let is_below = |one: &&Surveyed| {
        of.bases.iter().any(|base| base.trim_matches('"') == one.name.trim_matches('"'))
    };
    let has_it = |one: &&Surveyed| {
        let column = one.relation.column(name);
        !one.relation.is_view && column.is_some_and(|column| !column.generated)
    };
    survey.iter().filter(is_below).filter(has_it).collect()
}

/// The table below a view that is written, with its status: the only one that has such a column.
pub fn written_below<'s>(
    of: &Surveyed,
    survey: &'s [Surveyed],
    answers: &Answers,
) -> Option<(&'s Surveyed, &'s Column)> {
    let status = words::status(of, answers.status.as_deref())?;
    let [only]: [&Surveyed; 1] = tables_below(of, survey, &status.name).try_into().ok()?;
    only.relation.column(&status.name).map(|column| (only, column))
}

/// A list of texts as TOML.
fn list(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|item| quoted(item)).collect();
    format!("[{}]", items.join(", "))
}

/// A status value as TOML, by the column's type.
fn literal(class: &TypeClass, value: &str) -> String {
    match class {
        TypeClass::Integer if value.parse::<i64>().is_ok() => value.to_owned(),
        TypeClass::Boolean if matches!(value, "true" | "false") => value.to_owned(),
        _text => quoted(value),
    }
}
