//! A mapped table as the catalogue confirms it: what is read, in which order, as which types.
//!
//! The drivers ask their catalogue and describe what they found as [`Relation`]s; `fit` checks the
//! mapping against them and makes a [`SourceTable`]. SQL is rendered by each driver from it, and
//! the only thing ever spliced into SQL is a [`QuotedIdent`], which only a catalogue's answer
//! becomes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use chrono::TimeDelta;

use crate::model::money::Exactness;
use crate::model::time::{Instant, later};
use crate::store::effects::SetValue;
use crate::store::mapping::{Channel, FilterSettings, MapSettings, NullTest, TableSettings};
use crate::store::notation::Notation;
use crate::store::template::Template;

/// How often a row under watch is looked for that its view does not show.
const LOOKS_EVERY: TimeDelta = TimeDelta::hours(1);

/// For how long: past the last look that a watch has by itself.
const LOOKS_FOR: TimeDelta = TimeDelta::days(7);

/// An identifier as the catalogue spells it, quoted for SQL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct QuotedIdent(String);

impl QuotedIdent {
    /// From a name that a catalogue query answered; never from configuration.
    pub(in crate::store) fn of_catalogue(name: &str) -> Self {
        Self(format!("\"{}\"", name.replace('"', "\"\"")))
    }

    /// `schema.name`, both as a catalogue query answered them.
    pub(in crate::store) fn qualified(schema: &str, name: &str) -> Self {
        let (schema, name) = (Self::of_catalogue(schema), Self::of_catalogue(name));
        Self(format!("{schema}.{name}"))
    }
}

impl fmt::Display for QuotedIdent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a column's type is to tieout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeClass {
    /// Whole numbers.
    Integer,
    /// Exact decimals.
    Decimal,
    /// Binary floats, and columns that may really hold one (SQLite's NUMERIC and DECIMAL).
    Float,
    /// Text of any length.
    Text,
    /// `char(n)`: read without its padding, compared by the database's own rule.
    Padded,
    /// UUIDs.
    Uuid,
    /// True and false.
    Boolean,
    /// A native enum, with its labels.
    Enum(Vec<String>),
    /// A point in time with its zone.
    TimestampTz,
    /// A point in time whose zone must be declared.
    Timestamp,
    /// A day.
    Date,
    /// Bytes.
    Bytes,
    /// Anything else: arrays, JSON, intervals.
    Other,
}

/// A column as the catalogue describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its name in SQL.
    pub ident: QuotedIdent,
    /// Its type as the database spells it: quoted, qualified, ready for a cast.
    pub type_name: String,
    /// What that is.
    pub class: TypeClass,
    /// How many characters it holds, where that is limited.
    pub max_chars: Option<usize>,
    /// SQLite: one of the texts that its first rows have among whole numbers, where `time` says
    /// epoch.
    pub odd_text: Option<String>,
    /// How many decimal places its type has; 0: none, or as many as there are.
    pub decimals: usize,
    /// NOT NULL and without a default: an INSERT must name it.
    pub required: bool,
    /// Computed by the database: never written.
    pub generated: bool,
    /// The role may write it.
    pub may_write: bool,
}

impl Column {
    /// How exact its numbers are.
    pub fn exactness(&self) -> Exactness {
        match self.class {
            TypeClass::Float => Exactness::Float,
            TypeClass::Integer
            | TypeClass::Decimal
            | TypeClass::Text
            | TypeClass::Padded
            | TypeClass::Uuid
            | TypeClass::Boolean
            | TypeClass::Enum(_)
            | TypeClass::TimestampTz
            | TypeClass::Timestamp
            | TypeClass::Date
            | TypeClass::Bytes
            | TypeClass::Other => Exactness::Exact,
        }
    }
}

/// A table of which row-level security hides rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hidden {
    /// Its name in SQL.
    pub table: QuotedIdent,
    /// The view that reads it, where it is one below what a mapping names.
    pub view: Option<QuotedIdent>,
    /// The role that its rows are hidden from: the view's owner, where the view reads it as that
    /// one; none: the role that asks.
    pub owner: Option<QuotedIdent>,
}

/// A table or view as the catalogue describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// Its name in SQL.
    pub name: QuotedIdent,
    /// Whether it is a view.
    pub is_view: bool,
    /// Rows of it can be written: a table, or a view that the database can write through.
    pub updatable: bool,
    /// Tables of which row-level security hides rows: itself, or some that a view reads.
    pub hidden: Vec<Hidden>,
    /// The role may read it.
    pub may_read: bool,
    /// Its schema, where the role may not look into that, whatever it may do with what is there.
    pub closed: Option<QuotedIdent>,
    /// Its columns in their order.
    pub columns: Vec<Column>,
    /// Column sets of its unique indexes without a condition (for a view: of its base table).
    pub unique_keys: Vec<Vec<String>>,
    /// Names of columns that may be NULL; of a view only those of `unique_keys`, as the catalogue
    /// tells it of no view's column.
    pub nullable: Vec<String>,
    /// Columns that lead a usable index.
    pub indexed: Vec<String>,
    /// What a write of one of its rows touches is that row alone: no trigger, no rule, and no
    /// other table writes besides.
    pub writes_alone: bool,
}

impl Relation {
    /// The column of this very name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Unique keys that every row has: no column of theirs may be NULL.
    pub fn filled_keys(&self) -> impl Iterator<Item = &Vec<String>> {
        let nullable = &self.nullable;
        self.unique_keys.iter().filter(move |key| !key.iter().any(|name| nullable.contains(name)))
    }
}

/// A mapping that fits its database.
#[derive(Debug, Clone)]
pub struct SourceTable {
    /// The mapping, its status, kind and filter values spelled as the database spells them.
    /// Effects must be worked out from these settings, not from the file's.
    pub settings: TableSettings,
    /// What is read.
    pub read: QuotedIdent,
    /// What is written.
    pub write: QuotedIdent,
    /// The read and the written relation are one.
    pub write_is_read: bool,
    /// What is read is a view, which may show a row by its status.
    pub read_is_view: bool,
    /// No trigger and no rule of the written table does anything besides; false where the catalogue
    /// does not tell it.
    pub writes_alone: bool,
    /// Where values of the status that nobody mapped are looked for: in what is written, and in
    /// what is read where a dry run may not read that.
    pub statuses_in: QuotedIdent,
    /// Every mapped column of `read`, each once: the columns that are selected, in this order,
    /// and that the image is made of.
    pub cells: Vec<Column>,
    /// Which cell is what.
    pub layout: Layout,
    /// The key's columns as `write` has them.
    pub write_key: Vec<Column>,
    /// The status column as `write` has it.
    pub write_status: Column,
    /// Columns of `write` that are set with the status.
    pub sets: BTreeMap<String, Target>,
    /// Where a change of status is recorded by one INSERT.
    pub history: Option<HistoryTable>,
    /// An index leads with the status, and tells its spellings apart.
    pub status_indexed: bool,
    /// An index leads with the written status, which takes several spellings for one value: it
    /// shows values, and not spellings.
    pub status_folded: bool,
    /// The catalogue does not rule out that a row has no status.
    pub status_nullable: bool,
    /// Mapped columns that are looked up and that no index leads with: for `doctor`.
    pub unindexed: Vec<String>,
    /// Several transactions may write decisions at a time: the database has room for them, and no
    /// trigger writes anything besides that one of them would have to wait for.
    pub side_by_side: bool,
}

/// Which cell is what: indexes into [`SourceTable::cells`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The key's columns.
    pub key: Vec<usize>,
    /// The status.
    pub status: usize,
    /// The amount.
    pub amount: usize,
    /// The power of ten that scales the amount.
    pub exponent: Option<usize>,
    /// The currency.
    pub currency: Option<usize>,
    /// The account's columns.
    pub account: Vec<usize>,
    /// The kind of movement.
    pub kind: Option<usize>,
    /// The PSP's reference.
    pub psp_reference: Option<usize>,
    /// The creation, and how it is written.
    pub created: (usize, Notation),
    /// The last attempt, and how it is written.
    pub attempted: Option<(usize, Notation)>,
    /// The natural key's columns.
    pub natural_key: Vec<usize>,
    /// The tag's template.
    pub tag: Option<Template>,
    /// Templates of accounts that differ.
    pub tags: BTreeMap<String, Template>,
    /// The template of the idempotency key.
    pub idempotency_key: Option<Template>,
}

/// A column that is written with a status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The column.
    pub column: Column,
    /// How it writes a point in time.
    pub notation: Notation,
}

/// How a column changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Change {
    /// To the value.
    Assign,
    /// By the value.
    Plus,
    /// To the value, where it is NULL, or text without a character.
    IfNull,
}

impl Target {
    /// Whether it holds text, which may be empty where another column would be NULL.
    pub fn is_text(&self) -> bool {
        matches!(self.column.class, TypeClass::Text | TypeClass::Padded)
    }

    /// How the column changes, and by which text (cast to the column's type; `None` is NULL).
    pub fn change(&self, value: &SetValue) -> (Change, Option<String>) {
        let at = |at: &Instant| Some(self.notation.write(*at));
        match value {
            SetValue::Text(text) => (Change::Assign, Some(text.clone())),
            SetValue::At(instant) => (Change::Assign, at(instant)),
            SetValue::Plus(step) => (Change::Plus, Some(step.to_string())),
            SetValue::TextIfNull(text) => (Change::IfNull, Some(text.clone())),
            SetValue::AtIfNull(instant) => (Change::IfNull, at(instant)),
            SetValue::Null => (Change::Assign, None),
        }
    }
}

/// The table that a change of status is recorded in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryTable {
    /// The table.
    pub name: QuotedIdent,
    /// Its columns that are written.
    pub columns: BTreeMap<String, Target>,
}

impl SourceTable {
    /// The column that is the whole key, so that an index leads with it.
    pub fn sole_key(&self) -> Option<&Column> {
        match self.write_key.as_slice() {
            [one] => Some(one),
            _several => None,
        }
    }

    /// The tag's template at an account.
    pub fn tag_template(&self, account: &str) -> Option<&Template> {
        self.layout.tags.get(account).or(self.layout.tag.as_ref())
    }

    /// The cells of the tag's template at an account, each once, in the order of the table's.
    pub fn tag_cells(&self, account: &str) -> Vec<usize> {
        let Some(template) = self.tag_template(account) else { return Vec::new() };
        let mut cells: Vec<usize> =
            template.columns().filter_map(|column| self.cell(column)).collect();
        cells.sort_unstable();
        cells.dedup();
        cells
    }

    /// The cells of the tag's template at an account, each once, where two rows can have one tag:
    /// a template with the whole key in it gives each row its own.
    pub fn sharable_tag(&self, account: &str) -> Option<Vec<usize>> {
        let cells = self.tag_cells(account);
        let has_key = self.layout.key.iter().all(|part| cells.contains(part));
        (!cells.is_empty() && !has_key).then_some(cells)
    }

    /// Which cell a column of `read` is.
    pub fn cell(&self, column: &str) -> Option<usize> {
        self.cells.iter().position(|cell| cell.name == column)
    }

    /// The cells at these indexes.
    pub fn cells_at<'a>(&'a self, indexes: &'a [usize]) -> impl Iterator<Item = &'a Column> {
        indexes.iter().filter_map(|index| self.cells.get(*index))
    }

    /// What to say of a row that was written and that the view shows unchanged.
    pub fn elsewhere(&self) -> String {
        let (read, write) = (&self.read, &self.write);
        format!(
            "the row of {write} with this key is not the one that {read} shows: it was written, \
             {read} showed the old status, and the write was undone; name in `write` the table \
             that the view's status is of"
        )
    }

    /// What to say of a row that the view shows no more once it was written.
    pub fn unseen(&self) -> String {
        format!(
            "the row is not in {} after the write, and the write was undone; a view must show a \
             row whatever its status: leave rows out by `where`, which only says what is taken",
            self.read
        )
    }

    /// What to say of a row that has another key once it was written, or none.
    pub fn rekeyed(&self) -> String {
        format!(
            "the row is not in {} under its key ({}) after the write, and the write was undone: a \
             trigger changes the key or takes the row away; name in `key` columns that stay",
            self.write,
            self.settings.key.join(", ")
        )
    }

    /// What to say of a row that is as it was, though the write was refused in no words.
    pub fn skipped(&self) -> String {
        format!("a trigger of {} kept the row from being written", self.write)
    }

    /// When to look again for a row under watch that the view does not show any more, though the
    /// written table has it; none where it was looked for long enough.
    pub fn looks_again(&self, watch_from: Option<Instant>, now: Instant) -> Option<Instant> {
        let may_hide = !self.write_is_read && self.statuses_in == self.write;
        let is_new = watch_from.is_some_and(|from| now < later(from, LOOKS_FOR));
        (may_hide && is_new).then(|| later(now, LOOKS_EVERY))
    }

    /// Tells of such rows: what happens to them at the PSP is seen by nobody.
    pub fn tell_unseen(&self, keys: &[&str]) {
        let Some(first) = keys.first() else { return };
        tracing::warn!(
            table = %self.settings.name,
            rows = keys.len(),
            row = *first,
            "Rows under watch are gone from {} and still in {}: a payment of theirs that comes \
             late goes unseen until the view shows them again, whatever their status",
            self.read,
            self.write,
        );
    }

    /// Tells of rows that are gone and whose hand-backs ended with them.
    pub fn tell_gone(&self, keys: &[String]) {
        let Some(first) = keys.first() else { return };
        tracing::warn!(
            table = %self.settings.name,
            rows = keys.len(),
            row = %first,
            "Rows that were handed back are gone from {}, or have another key: their hand-backs \
             ended (row_gone), and a payment of theirs that comes late goes unseen",
            self.write,
        );
    }

    /// What to say of a row that the view shows and the written table does not have.
    pub fn not_there(&self) -> String {
        let (read, write) = (&self.read, &self.write);
        format!(
            "{write} has no row of the key that {read} shows; name in `write` the table that the \
             view's status is of"
        )
    }

    /// Every processing value of the mapping.
    pub fn processing_values(&self) -> Vec<String> {
        self.settings.map.iter().flat_map(|map| &map.from).map(|value| value.0.clone()).collect()
    }

    /// Every status value that the mapping names, ignored ones too.
    pub fn known_values(&self) -> Vec<String> {
        let named = self.settings.named_values().map(|value| value.0.clone());
        named.collect::<BTreeSet<String>>().into_iter().collect()
    }

    /// Whether rows may have no status at all, and `where` does not leave them out: no value of a
    /// mapping names what they are.
    pub fn may_lack_status(&self) -> bool {
        let of_status = |filter: &&FilterSettings| filter.column == self.settings.status;
        let leaves_out = |filter: &FilterSettings| {
            filter.is == Some(NullTest::NotNull) || filter.one_of.is_some()
        };
        let is_left_out = self.settings.filter.iter().filter(of_status).any(leaves_out);
        self.status_nullable && !is_left_out
    }

    /// Whether the application alone writes that a row was paid: by an outbox it is told, and
    /// `succeeded` names the words that it has for it.
    pub fn says_success_itself(&self) -> bool {
        let mut maps = self.settings.map.iter();
        self.settings.channel == Channel::Outbox && maps.all(|map| map.succeeded.is_none())
    }

    /// Whether the status is of a type that has no other values than those that the mapping knows.
    pub fn knows_all_labels(&self) -> bool {
        let known = self.known_values();
        match &self.write_status.class {
            TypeClass::Enum(labels) => labels.iter().all(|label| known.contains(label)),
            _other => false,
        }
    }

    /// Values of rows that are over, or given back: what the mapping writes, and what it calls a
    /// success, whether or not `ignore` names it as well.
    pub fn ended_values(&self) -> Vec<String> {
        let processing = self.processing_values();
        let targets = self.settings.map.iter().flat_map(|map| {
            [&map.succeeded, &map.failed, &map.retryable, &map.absent, &map.review]
                .into_iter()
                .flatten()
        });
        let said = targets.chain(&self.settings.succeeded).map(|value| value.0.clone());
        let mut values: Vec<String> = said.filter(|value| !processing.contains(value)).collect();
        values.sort();
        values.dedup();
        values
    }

    /// Whether this status says that the row was not paid and is charged by nobody: what tieout
    /// writes for a failure, and what the mapping calls so. Only where success has a word, too:
    /// else what failed here may have been paid there.
    pub fn is_unpaid(&self, status: &str) -> bool {
        let maps = || self.settings.map.iter();
        let is_success_known =
            !self.settings.succeeded.is_empty() || maps().any(|map| map.succeeded.is_some());
        let failed = maps().filter_map(|map| map.failed.as_ref());
        let mut unpaid = failed.chain(&self.settings.unpaid);
        is_success_known && unpaid.any(|value| value.0 == status)
    }

    /// Values by which a hand-back waits to be taken.
    pub fn handed_back_values(&self) -> Vec<String> {
        let values = self.settings.map.iter().flat_map(|map| [&map.retryable, &map.absent]);
        values.flatten().map(|value| value.0.clone()).collect()
    }

    /// Whether somebody came for a hand-back, as far as the row tells it: in the status channel,
    /// where the row is another than the hand-back left, and its status does not offer it. A
    /// hand-back that wrote no status left the row in processing: there a change alone tells.
    /// `seen_at` is since when the row was seen as it is.
    pub fn is_taken(&self, status: &str, handed_back_at: Instant, seen_at: Instant) -> bool {
        let mut offers = self.settings.map.iter().filter_map(|map| map.retryable.as_ref());
        let is_another = seen_at > handed_back_at;
        self.settings.channel == Channel::Status
            && is_another
            && !offers.any(|value| value.0 == status)
    }

    /// Processing values from which a hand-back writes no status, though its worker is told by the
    /// status: nobody sees it there.
    pub fn unoffered_values(&self) -> Vec<&str> {
        let is_silent = |map: &&MapSettings| map.retryable.is_none();
        let maps = self.settings.map.iter().filter(is_silent);
        let maps = maps.filter(|_| self.settings.channel == Channel::Status);
        maps.flat_map(|map| &map.from).map(|value| value.0.as_str()).collect()
    }

    /// Values of rows that nobody expects money for any more, or not yet again: the mapping's
    /// targets for failed, retryable and absent.
    pub fn given_up_values(&self) -> Vec<String> {
        let targets =
            |map: &MapSettings| [&map.failed, &map.retryable, &map.absent].map(Clone::clone);
        let values = self.settings.map.iter().flat_map(targets).flatten().map(|value| value.0);
        let processing = self.processing_values();
        let mut values: Vec<String> = values.filter(|value| !processing.contains(value)).collect();
        values.sort();
        values.dedup();
        values
    }

    /// The joined account values that belong to one of these accounts, and whether every value
    /// that the mapping does not name belongs to one of them too (`*`).
    pub fn account_values(&self, accounts: &[String]) -> (Vec<String>, bool) {
        let named = self
            .settings
            .accounts
            .iter()
            .filter(|(value, account)| value.as_str() != "*" && accounts.contains(account));
        let rest =
            self.settings.accounts.get("*").is_some_and(|account| accounts.contains(account));
        (named.map(|(value, _)| value.clone()).collect(), rest)
    }
}
