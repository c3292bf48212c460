//! How the configuration describes a user's table: the typed words of `[[table]]`.
//!
//! Plain data as the file says it. What it means for one database is worked out against the
//! catalogue (`source_table`), which refuses what does not fit with the column and its type.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::decide::policy::Mode;
use crate::model::reason::Outcome;

/// One `[[table]]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableSettings {
    /// tieout's rows are keyed by (name, key).
    pub name: String,
    /// Table or view that is read: `schema.name` or `name`.
    pub read: String,
    /// Table whose status is written, by key; default: `read`.
    pub write: Option<String>,
    /// The key's columns: together a unique index of the written table, none of them NULL.
    pub key: Vec<String>,
    /// Only rows for which all of these hold belong to tieout.
    #[serde(default, rename = "where")]
    pub filter: Vec<FilterSettings>,
    /// Columns that name the intended movement: rows that share them are siblings.
    #[serde(default)]
    pub natural_key: Vec<String>,
    /// Template of the tag: `{id}`, `pay_{external_id}`. Absent: rows are asked for by reference.
    pub tag: Option<String>,
    /// Templates that differ by account.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// False: several rows may share a tag, and none is settled by it alone.
    #[serde(default = "yes")]
    pub tag_unique: bool,
    /// Template of the application's own idempotency key. Absent: none is claimed.
    pub idempotency_key: Option<String>,
    /// What kind of movement the rows are; default: a charge.
    #[serde(default)]
    pub kind: KindSettings,
    /// Where the amount stands.
    pub amount: AmountSettings,
    /// Where the currency stands.
    pub currency: CurrencySettings,
    /// Columns whose values name the account, joined by `/`. Empty with exactly one account in
    /// `accounts` under the key `*`, which the file may also say as `account = { const = … }`.
    #[serde(default)]
    pub account: Vec<String>,
    /// From the joined value to the configured account's name. `*` stands for every value.
    #[serde(default)]
    pub accounts: BTreeMap<String, String>,
    /// The status column.
    pub status: String,
    /// The column of creation times.
    pub created: String,
    /// The column that the application writes before every send.
    pub attempted: Option<String>,
    /// `once`: the application sends once, when it makes the row.
    pub attempts: Option<AttemptsSetting>,
    /// The column of the PSP's own reference.
    pub psp_reference: Option<String>,
    /// What columns without a zone mean: `utc`, a zone name, `epoch_s`, `epoch_ms`.
    pub time: Option<String>,
    /// How far tieout may go.
    pub mode: Mode,
    /// How a hand-back reaches the worker.
    #[serde(default)]
    pub channel: Channel,
    /// From processing values to the values of each outcome.
    pub map: Vec<MapSettings>,
    /// Status values that tieout has nothing to do with.
    #[serde(default)]
    pub ignore: Vec<FilterValue>,
    /// Status values by which the application itself says that a row's movement took place.
    #[serde(default)]
    pub succeeded: Vec<FilterValue>,
    /// Status values of rows that were not paid and that nobody charges any more (`canceled`,
    /// `void`), besides the mapping's `failed`. A row with such a value holds up no other with its
    /// natural key; any other value does, and a person decides.
    #[serde(default)]
    pub unpaid: Vec<FilterValue>,
    /// Other columns written with the status: column → template.
    ///
    /// A template is a literal, `+1` (counts the column up), or text with words in braces: `{now}`
    /// (the time of the write), `{psp_time}` (when it happened at the PSP), `{psp_reference}` (the
    /// PSP's id of what was found), `{status}` (the new status), `{status_before}` (the old one),
    /// `{outcome}` (`succeeded`, `failed`, `retryable`, …), `{reason}` (why, one of the words of
    /// reasons.md), and each key column by its name. Whole templates `{psp_reference}` and
    /// `{psp_time}` are written only where the column is NULL, or text without a character. A line
    /// of a file tells no more than its day: the whole template `{psp_time}` is then the last
    /// second of that day in the zone of `time`, and among other words that of the day in UTC.
    #[serde(default)]
    pub set: SetSettings,
    /// One INSERT for every change of a status.
    pub history: Option<HistorySettings>,
}

impl TableSettings {
    /// Every status value that it names, ignored ones too; some more than once.
    pub fn named_values(&self) -> impl Iterator<Item = &FilterValue> {
        let others = [&self.succeeded, &self.ignore, &self.unpaid].into_iter().flatten();
        self.map.iter().flat_map(MapSettings::named_values).chain(others)
    }
}

fn yes() -> bool {
    true
}

/// One condition of `where`: exactly one of the operators.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilterSettings {
    /// The column of `read`.
    pub column: String,
    /// `null` or `not_null`.
    pub is: Option<NullTest>,
    /// One of these values; NULL does not pass.
    #[serde(rename = "in")]
    pub one_of: Option<Vec<FilterValue>>,
    /// None of these values; NULL passes.
    pub not_in: Option<Vec<FilterValue>>,
}

/// A literal of a filter, kept as the text that the column's type reads.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "toml::Value")]
#[schemars(extend("type" = ["string", "integer", "boolean"]), with = "serde_json::Value")]
pub struct FilterValue(pub String);

impl TryFrom<toml::Value> for FilterValue {
    type Error = String;
    fn try_from(value: toml::Value) -> Result<Self, Self::Error> {
        match value {
            toml::Value::String(text) => Ok(Self(text)),
            toml::Value::Integer(number) => Ok(Self(number.to_string())),
            toml::Value::Boolean(flag) => Ok(Self(flag.to_string())),
            other => Err(format!(
                "expected a text, a whole number or true/false, and found {}",
                other.type_str()
            )),
        }
    }
}

/// Whether a column is NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NullTest {
    /// It is NULL.
    Null,
    /// It is not NULL.
    NotNull,
}

/// What kind of movement: one for the table, or by a column's values.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KindSettings {
    /// `charge`, `refund` or `payout`.
    #[serde(rename = "const")]
    pub constant: Option<String>,
    /// The column that tells.
    pub column: Option<String>,
    /// From its values to `charge`, `refund`, `payout`.
    #[serde(default)]
    pub values: BTreeMap<String, String>,
}

impl Default for KindSettings {
    fn default() -> Self {
        Self { constant: Some("charge".to_owned()), column: None, values: BTreeMap::new() }
    }
}

/// Where the amount stands.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AmountSettings {
    /// The column.
    pub column: String,
    /// `minor`, `major`, or `{ exponent = "column" }`.
    pub unit: UnitSetting,
}

/// The unit of the amount column.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "toml::Value")]
#[schemars(with = "UnitWords")]
pub enum UnitSetting {
    /// Minor units of the ISO exponent.
    Minor,
    /// Major units.
    Major,
    /// Integers scaled by the power of ten in this column.
    ExponentColumn(String),
}

impl TryFrom<toml::Value> for UnitSetting {
    type Error = String;
    fn try_from(value: toml::Value) -> Result<Self, Self::Error> {
        let wanted = "expected \"minor\", \"major\" or { exponent = \"column\" }";
        match &value {
            toml::Value::String(text) if text == "minor" => Ok(Self::Minor),
            toml::Value::String(text) if text == "major" => Ok(Self::Major),
            toml::Value::Table(table) if table.len() == 1 => table
                .get("exponent")
                .and_then(toml::Value::as_str)
                .map(|column| Self::ExponentColumn(column.to_owned()))
                .ok_or_else(|| wanted.to_owned()),
            _other => Err(wanted.to_owned()),
        }
    }
}

/// The words of [`UnitSetting`], for the schema of the file.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it is only described")]
enum UnitWords {
    /// `minor` or `major`.
    Named(UnitName),
    /// The column of the power of ten.
    Exponent(ExponentColumn),
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "it is only described")]
enum UnitName {
    Minor,
    Major,
}

#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "it is only described")]
struct ExponentColumn {
    /// The column with the power of ten that the amount is scaled by.
    exponent: String,
}

/// Where the currency stands: exactly one of the three.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CurrencySettings {
    /// A column of codes; case ignored.
    pub column: Option<String>,
    /// One currency for the table.
    #[serde(rename = "const")]
    pub constant: Option<String>,
    /// From account names to codes.
    pub by_account: Option<BTreeMap<String, String>>,
}

/// Declares how often the application sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttemptsSetting {
    /// Once, when it makes the row.
    Once,
}

/// How a hand-back reaches the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// By the status column: the worker polls the retryable value.
    #[default]
    Status,
    /// By the outbox: the worker takes the hand-back there.
    Outbox,
}

/// From processing values to the values of each outcome. An outcome left out keeps the status.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MapSettings {
    /// Processing values.
    pub from: Vec<FilterValue>,
    /// Value of succeeded.
    pub succeeded: Option<FilterValue>,
    /// Value of failed.
    pub failed: Option<FilterValue>,
    /// Value of retryable. Left out, a declined row keeps its status, and a worker that reads the
    /// status never sees the hand-back: name one, or take hand-backs by `channel = "outbox"`.
    pub retryable: Option<FilterValue>,
    /// Value of proven absence, where it is not "safe to charge again".
    pub absent: Option<FilterValue>,
    /// Value of "needs a person".
    pub review: Option<FilterValue>,
}

impl MapSettings {
    fn named_values(&self) -> impl Iterator<Item = &FilterValue> {
        let Self { from, succeeded, failed, retryable, absent, review, .. } = self;
        let ends = [succeeded, failed, retryable, absent, review].into_iter().flatten();
        from.iter().chain(ends)
    }
}

/// Other columns written with the status: column → template.
///
/// Templates: `{now}`, `{psp_reference}`, `{psp_time}`, `{status}`, `{id}` and other key columns,
/// `{reason}`, `+1`, or a literal. `{psp_reference}` and `{psp_time}` are written only where the
/// column is NULL, or text without a character.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetSettings {
    /// With every change of the status.
    #[serde(default)]
    pub always: BTreeMap<String, String>,
    /// With succeeded.
    #[serde(default)]
    pub succeeded: BTreeMap<String, String>,
    /// With failed.
    #[serde(default)]
    pub failed: BTreeMap<String, String>,
    /// With retryable.
    #[serde(default)]
    pub retryable: BTreeMap<String, String>,
    /// With review.
    #[serde(default)]
    pub review: BTreeMap<String, String>,
}

impl SetSettings {
    /// What is written with one outcome, instead of what is written always to the same columns.
    pub fn with(&self, outcome: Outcome) -> Option<&BTreeMap<String, String>> {
        match outcome {
            Outcome::Succeeded => Some(&self.succeeded),
            Outcome::Failed => Some(&self.failed),
            Outcome::Retryable => Some(&self.retryable),
            Outcome::Review => Some(&self.review),
            Outcome::Wait => None,
        }
    }

    /// Whether the reference of what was found is written with a success alone, if at all: then no
    /// row has one by tieout's hand that does not stand in tieout's own record of successes.
    pub fn writes_reference_with_success_alone(&self) -> bool {
        let others = [&self.always, &self.failed, &self.retryable, &self.review];
        let mut templates = others.into_iter().flat_map(BTreeMap::values);
        !templates.any(|template| template.contains("{psp_reference}"))
    }
}

/// One INSERT for every change of a status.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HistorySettings {
    /// The history table.
    pub table: String,
    /// Column → template, with the words that `set` has (`{now}`, `{psp_time}`, `{psp_reference}`,
    /// `{status}`, `{status_before}`, `{outcome}`, `{reason}`, key columns), or a literal.
    pub columns: BTreeMap<String, String>,
}
