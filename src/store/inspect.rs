//! What can be found out about a database without changing anything in it: for `doctor` and for
//! `config init`.
//!
//! Safe in production: each question is a short read-only step with a time-out of its own, and
//! none walks a whole table. Where a table has no index that helps, its first rows are looked at,
//! and what cannot be told in time is said to be untold. Nothing here decides about a row.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::model::reason::Outcome;
use crate::model::time::{Instant, to_short_text};
use crate::store::database::Database;
use crate::store::error::{MappingError, Mend, StoreError};
use crate::store::mapping::FilterSettings;
use crate::store::notation::Notation;
use crate::store::records::ClaimFilter;
use crate::store::source_table::{Column, Relation, SourceTable};
use crate::store::tellers::{
    ACCOUNTS_MAX, EMPTY, FILLED, are_ids_at_stripe, coded, flags, flags_kinds, is_teller,
    is_uncoded, may_flag_kinds, may_tell_kinds, pointers, points_in_some, takes_back,
    tell_accounts, tells_kinds, tells_psps,
};

/// Rows at each end of a table in which a run looks for values of the status that nobody mapped,
/// where no index leads with it: some ten milliseconds, however many rows there are.
pub const STATUS_ROWS: i64 = 10_000;

/// Rows of a table that are looked at where no index tells: a few pages of any table.
pub(in crate::store) const FIRST_ROWS: i64 = 50_000;

/// Rows at each end of a table in which values are looked for that may be long.
const FEW_ROWS: i64 = 2_000;

/// Newest rows of a written table among which rows that are over are looked for.
pub(in crate::store) const NEWEST_ROWS: i64 = 200;

/// Rows that are over, of which what is read must show one.
pub(in crate::store) const ENDED_ROWS: i64 = 20;

/// Values of one column that are told at most; the point is made by then.
pub(in crate::store) const VALUES_MAX: i64 = 200;

/// tieout's tables whose records are never changed.
pub(in crate::store) const APPEND_ONLY: [&str; 2] = ["tieout_journal", "tieout_evidence"];

/// How the connection runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// A file, a socket, or the same machine.
    Local,
    /// Encrypted; the protocol.
    Tls(String),
    /// Over a network, readable by whoever listens.
    Plain,
}

/// What the server, or the file, is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// `PostgreSQL 15.18`, `SQLite 3.50.4`.
    pub product: String,
    /// How it is reached.
    pub link: Link,
    /// Schemas that the search path does not lead to and that have tables of tieout's, as SQL names
    /// them.
    pub elsewhere: Vec<String>,
}

/// What this role may do with tieout's own tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rights {
    /// Who it is; nobody where the database has no roles.
    pub role: Option<String>,
    /// It may do anything.
    pub is_superuser: bool,
    /// It owns the journal, so that it could take the journal's guard away.
    pub owns_journal: bool,
    /// The schema that tieout's tables are in, as SQL names it; none where there are no schemas.
    pub schema: Option<String>,
    /// Rights that a run needs and that are missing: `insert on tieout_journal`.
    pub lacks: Vec<String>,
    /// How many a run needs; 0 where the database has no roles.
    pub needs: usize,
    /// Roles for looking and for people, as `db roles` makes them, that it has.
    pub looks_by: Vec<String>,
    /// Roles for runs, as `db roles` makes them, that are there.
    pub runs_by: Vec<String>,
    /// Rights that nobody who runs tieout needs: `delete on tieout_journal`.
    pub excess: Vec<String>,
    /// The same by the roles that they were granted to, as SQL names them: the login's own, and
    /// those that it is in.
    pub excess_by: BTreeMap<String, Vec<String>>,
    /// Triggers that guard tieout's tables and that are switched off or gone: (table, trigger).
    pub unguarded: Vec<(String, String)>,
    /// The statements that make anew those of them that are gone, each after what it calls.
    pub gone: Vec<String>,
    /// Triggers and functions of tieout's tables that are not as the migrations made them.
    pub altered: Vec<Altered>,
    /// Where this login's sessions fire no trigger: the statements that undo it, each blank where
    /// no role's and no database's setting says so.
    pub silenced: Vec<String>,
}

/// A guard that is not as a migration made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Altered {
    /// Which.
    pub what: String,
    /// The statements that make it as it was.
    pub remade: String,
}

/// What was found out about a mapped table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// About how many rows it has, by the catalogue's statistics.
    pub rows: Option<i64>,
    /// Triggers that a written row fires: (table, trigger).
    pub triggers: Vec<(String, String)>,
    /// Unique indexes that a change of the status can violate: (table, index).
    pub unique: Vec<(String, String)>,
    /// Mapped status values that a CHECK refuses: (value, constraint).
    pub barred: Vec<(String, String)>,
    /// Those that a CHECK over the status and other columns refuses of stuck rows; of PostgreSQL
    /// alone.
    pub refused_rows: Vec<RefusedRows>,
    /// The index to make, where the claim would walk the whole table.
    pub index_wanted: Option<IndexWanted>,
    /// Mapped columns that rows are looked up by and that no index leads with, each with the
    /// statement that makes one; none where the column is not of the written table. Of a natural
    /// key the first, where none of its columns leads an index.
    pub lookups: Vec<(String, Option<String>)>,
    /// Status values that the mapping neither maps nor ignores.
    pub unmapped: Vec<String>,
    /// Rows that have no status were seen, and `where` does not leave them out.
    pub lacks_status: bool,
    /// Joined values of the account columns, as far as looked, of rows that `where` means.
    pub accounts: Vec<String>,
    /// Where the mapping names one account for the whole table: columns that may tell accounts
    /// apart, with their values in rows that `where` means.
    pub tellers: Vec<(String, Vec<String>)>,
    /// Values of the column of kinds, as far as looked, of rows that `where` means; none: NULL,
    /// which no value of `kind` names.
    pub kind_values: Vec<Option<String>>,
    /// Where the mapping names one kind for the whole table: columns of which some values say
    /// another, with their values in rows that `where` means.
    pub kinds: Vec<(String, Vec<String>)>,
    /// The same of columns that are called so, and whose values do not say what they are.
    pub kinds_unsure: Vec<(String, Vec<String>)>,
    /// What could not be found out, and why.
    pub untold: Vec<String>,
}

/// What leads to the payment of a row that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenTag {
    /// Its tag; `None`: a part of it is NULL.
    pub tag: Option<String>,
    /// Whether it stores a PSP reference.
    pub has_reference: bool,
}

impl SeenTag {
    pub(in crate::store) fn of(tag: Option<String>, reference: Option<&str>) -> Self {
        Self { tag, has_reference: reference.is_some_and(|text| !text.trim().is_empty()) }
    }

    /// Whether nothing can be looked for: a person must tell what became of it.
    pub fn leads_nowhere(&self) -> bool {
        !self.has_reference && self.tag.as_deref().is_none_or(str::is_empty)
    }
}

/// A status that a CHECK over it and other columns refuses of stuck rows, as a run would write
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedRows {
    /// The status.
    pub value: String,
    /// The outcome that it is written for.
    pub outcome: Outcome,
    /// The constraint.
    pub check: String,
    /// The other columns that it goes by.
    pub columns: Vec<String>,
    /// Stuck rows that were looked at and would be given that status.
    pub looked_at: i64,
    /// How many of them it refuses.
    pub refused: i64,
    /// Triggers that may change a row before the constraint sees it.
    pub triggers: Vec<String>,
}

/// An index that the claim lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexWanted {
    /// The table that would be walked.
    pub table: String,
    /// The statement that makes it.
    pub create: String,
}

/// A table or view that a mapping could be made for.
#[derive(Debug, Clone)]
pub struct Surveyed {
    /// As a mapping names it.
    pub name: String,
    /// Its columns, keys and indexes.
    pub relation: Relation,
    /// About how many rows it has.
    pub rows: Option<i64>,
    /// The primary key's columns.
    pub primary_key: Vec<String>,
    /// Columns that point at another table: (column, the table as a mapping names it).
    pub parents: Vec<(String, String)>,
    /// What a view reads, as mappings name it.
    pub bases: Vec<String>,
    /// Texts of its CHECK constraints.
    pub checks: Vec<String>,
    /// Where this login may not look into its schema, and so reads nothing of it: the grant.
    pub closed: Option<String>,
}

/// A column whose values are counted together with those of the status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    /// The column.
    pub column: String,
    /// The column of the status.
    pub status: String,
    /// What of its values counts.
    pub by: CountedBy,
}

/// What of a column's values counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedBy {
    /// Each value.
    Value,
    /// Whether it is NULL: where it is not, its value is [`FILLED`].
    Null,
    /// The same, and an empty text is NULL as well.
    NullOrEmpty,
}

/// Looked-at rows that have one value of a column and one status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    /// The value; none: NULL.
    pub value: Option<String>,
    /// The status; none: NULL.
    pub status: Option<String>,
    /// How many rows.
    pub rows: i64,
}

/// A row that somebody named, as it stands in its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedRow {
    /// Its key's text, as in `RowKey::id`.
    pub id: String,
    /// Its status.
    pub status: Option<String>,
    /// Whether the mapping's `where` means it.
    pub belongs: bool,
}

/// A row of `read`, and the row of `write` that its key leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counterpart {
    /// Its key's text, as in `RowKey::id`; none where a part of it is NULL.
    pub id: Option<String>,
    /// Its status in `read`.
    pub read: Option<String>,
    /// The status of the row with this key in `write`; none: there is no such row.
    pub written: Option<Option<String>>,
}

/// Rows with times ahead that are looked for at most; the point is made by then.
pub const AHEAD_MAX: i64 = 1_000;

/// Stuck rows whose times lie ahead of the clock: no claim takes them before their time has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ahead {
    /// How many; [`AHEAD_MAX`]: so many, or more.
    pub rows: i64,
    /// The newest of their times, for people: as the table has it, where it cannot be read.
    pub newest: Option<String>,
}

/// Stuck rows of which it is looked at what `where` makes of them; the point is made by then.
pub const LEFT_OUT_MAX: i64 = 1_000;

/// What `where` makes of rows that are in a processing status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Such rows that were looked at; [`LEFT_OUT_MAX`]: so many, or more.
    pub stuck: i64,
    /// Those of them that `where` leaves out.
    pub rows: i64,
    /// The conditions that leave some of them out.
    pub by: Vec<Barrier>,
}

/// A condition of `where` that leaves stuck rows out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Barrier {
    /// The condition.
    pub filter: FilterSettings,
    /// The stuck rows that it leaves out.
    pub rows: i64,
    /// What they have in its column, each with so many rows, the most frequent first; none is
    /// NULL. Of a condition that tests for NULL alone it says nothing.
    pub values: Vec<(Option<String>, i64)>,
    /// What of the table it lets pass; asked where it leaves out all that was looked at.
    pub passing: Passing,
}

/// What of a table passes a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passing {
    /// Some rows, as far as it was asked.
    Rows,
    /// None of the first and the last rows.
    NoneSeen,
    /// No row at all.
    NoRow,
}

/// A stuck row as each condition of `where` sees it: whether it passes, and what it has there.
pub(in crate::store) type Tried = Vec<(bool, Option<String>)>;

/// What these rows come to.
pub(in crate::store) fn left_out_of(table: &SourceTable, rows: &[Tried]) -> LeftOut {
    let count = |rows: usize| i64::try_from(rows).unwrap_or(i64::MAX);
    let left = rows.iter().filter(|row| row.iter().any(|(passes, _)| !passes));
    let left: Vec<&Tried> = left.collect();
    let mut by = Vec::new();
    for (place, filter) in table.settings.filter.iter().enumerate() {
        let mut values: BTreeMap<Option<&str>, i64> = BTreeMap::new();
        let tried = left.iter().filter_map(|row| row.get(place));
        for (_, value) in tried.filter(|(passes, _)| !passes) {
            let rows = values.entry(value.as_deref()).or_default();
            *rows = rows.saturating_add(1);
        }
        let rows: i64 = values.values().sum();
        let mut values: Vec<(Option<String>, i64)> =
            values.into_iter().map(|(value, rows)| (value.map(str::to_owned), rows)).collect();
        values.sort_by_key(|(_, rows)| std::cmp::Reverse(*rows));
        if rows > 0 {
            by.push(Barrier { filter: filter.clone(), rows, values, passing: Passing::Rows });
        }
    }
    LeftOut { stuck: count(rows.len()), rows: count(left.len()), by }
}

/// The texts of a row's creation and of its last attempt.
pub(in crate::store) type Times = (Option<String>, Option<String>);

/// What rows of these times come to.
pub(in crate::store) fn ahead_of(table: &SourceTable, rows: &[Times]) -> Ahead {
    let created = table.layout.created.1;
    let attempted = table.layout.attempted.map_or(created, |(_, notation)| notation);
    let texts = rows.iter().flat_map(|(made, sent)| {
        let made = made.as_deref().map(|text| (text, created));
        made.into_iter().chain(sent.as_deref().map(|text| (text, attempted)))
    });
    let mut newest: Option<(Instant, String)> = None;
    for (text, notation) in texts {
        let Some((at, words)) = time_words(text, notation) else { continue };
        if newest.as_ref().is_none_or(|(known, _)| at > *known) {
            newest = Some((at, words));
        }
    }
    Ahead {
        rows: i64::try_from(rows.len()).unwrap_or(i64::MAX),
        newest: newest.map(|(_, words)| words),
    }
}

/// A time in words. One that lies beyond what a row may have is told all the same.
fn time_words(text: &str, notation: Notation) -> Option<(Instant, String)> {
    let far = || {
        let number = text.trim().parse::<i64>().ok()?;
        match notation {
            Notation::EpochSecs => DateTime::from_timestamp(number, 0),
            Notation::EpochMillis => DateTime::from_timestamp_millis(number),
            Notation::Zoned
            | Notation::Behind(_)
            | Notation::Local(_)
            | Notation::Text(_)
            | Notation::Day(_) => None,
        }
    };
    let at = match notation.read(text) {
        Ok(at) => at?,
        Err(_unreadable) => match far() {
            Some(at) => at,
            None => return Some((DateTime::<Utc>::MAX_UTC, text.trim().to_owned())),
        },
    };
    Some((at, to_short_text(at).trim_start_matches('+').to_owned()))
}

/// The questions. See each for what it costs.
#[expect(async_fn_in_trait, reason = "called on the two concrete drivers only, never as dyn")]
pub trait Inspect {
    /// What the server is.
    async fn server(&self) -> Result<Server, StoreError>;

    /// What this role may do with tieout's tables; those that are missing are left out.
    async fn rights(&self) -> Result<Rights, StoreError>;

    /// Everything about a mapped table that the catalogue and its first rows show.
    async fn standing(&self, table: &SourceTable) -> Result<Standing, StoreError>;

    /// A few values of a cell of `read` that are not NULL, as decisions read them, in its first
    /// rows.
    async fn sampled(&self, table: &SourceTable, cell: usize) -> Result<Vec<String>, StoreError>;

    /// Mapped status values that a CHECK refuses: (value, constraint).
    async fn barred(&self, table: &SourceTable) -> Result<Vec<(String, String)>, StoreError>;

    /// Which of these values of the status a row has: by an index where one leads with it, else as
    /// far as the first and the last rows show it.
    async fn held(&self, table: &SourceTable, values: &[String])
    -> Result<Vec<String>, StoreError>;

    /// Tags as an account's template makes them: of processing rows where an index leads to
    /// them, else of the first rows.
    async fn tags(
        &self,
        table: &SourceTable,
        account: &str,
        most: i64,
    ) -> Result<Vec<SeenTag>, StoreError>;

    /// Every table and view that this role may read, tieout's own and the system's left out.
    async fn survey(&self) -> Result<Vec<Surveyed>, StoreError>;

    /// The distinct values of a column: an enum's labels, by an index where one leads with it,
    /// else those of the first rows. Of a column that names another row, whether it is NULL.
    async fn distinct(&self, of: &Surveyed, column: &str) -> Result<Vec<String>, StoreError>;

    /// Which of these keys are rows of a mapped table, by its key.
    async fn named_rows(
        &self,
        table: &SourceTable,
        ids: &[String],
    ) -> Result<Vec<NamedRow>, StoreError>;

    /// Keys of the newest rows of `read`, whatever their status and `where`: by the key where one
    /// column is all of it, else of the first rows.
    async fn newest_keys(&self, table: &SourceTable, most: i64) -> Result<Vec<String>, StoreError>;

    /// Rows that are in a processing status, each with its counterpart in the written table: by
    /// an index where one leads to them, else as far as the first rows go.
    async fn counterparts(
        &self,
        table: &SourceTable,
        most: i64,
    ) -> Result<Vec<Counterpart>, StoreError>;

    /// Whether what is read is a view of the written table that leaves rows out by their status:
    /// of the newest rows that are over it shows none, nor any other such row, rows in processing
    /// it shows, and its own text chooses by the status. Where the written table has no row that is
    /// over yet, or this role may not read it, nothing can be told: false. Of a view that is
    /// written itself PostgreSQL tells by its text alone, whatever rows there are.
    async fn hides_by_status(&self, table: &SourceTable) -> Result<bool, StoreError>;

    /// Stuck rows of the filter's window and accounts that were made or sent after `after`, as the
    /// table has it. By the index that the claim walks; where there is none, of the first rows.
    async fn stuck_ahead(
        &self,
        table: &SourceTable,
        filter: &ClaimFilter,
        after: Instant,
    ) -> Result<Ahead, StoreError>;

    /// When the newest of the stuck rows was made; found as [`Inspect::stuck_ahead`] finds them.
    async fn newest_stuck(&self, table: &SourceTable) -> Result<Option<Instant>, StoreError>;

    /// What `where` makes of the rows that are in a processing status: by an index where one leads
    /// to them, else as far as the first and the last rows go.
    async fn left_out(&self, table: &SourceTable) -> Result<LeftOut, StoreError>;

    /// Whether a row of the table was ever taken into the work list.
    async fn knows_a_row(&self, table: &SourceTable) -> Result<bool, StoreError>;

    /// The values of a column that are not NULL, each with its rows among the first ones: the most
    /// frequent first.
    async fn tallied(&self, of: &Surveyed, column: &str) -> Result<Vec<(String, i64)>, StoreError>;

    /// How many rows have which value of a column in which status, NULL included: of the newest
    /// rows by the primary key, else of the first ones; the most frequent pairs first.
    async fn beside(&self, of: &Surveyed, asked: &Beside) -> Result<Vec<Tally>, StoreError>;

    /// A few values of a column that are not NULL, as texts.
    async fn examples(&self, of: &Surveyed, column: &str) -> Result<Vec<String>, StoreError>;
}

/// Hands each question to the driver at hand.
macro_rules! delegate {
    ($($verb:ident($($name:ident: $of:ty),*) -> $answer:ty;)+) => {
        impl Inspect for Database {
            $(async fn $verb(&self, $($name: $of),*) -> Result<$answer, StoreError> {
                match self {
                    Self::Postgres(store) => {
                        store.answer(std::pin::pin!(store.$verb($($name),*))).await
                    }
                    Self::Sqlite(store) => store.$verb($($name),*).await,
                }
            })+
        }
    };
}

delegate! {
    server() -> Server;
    rights() -> Rights;
    standing(table: &SourceTable) -> Standing;
    sampled(table: &SourceTable, cell: usize) -> Vec<String>;
    barred(table: &SourceTable) -> Vec<(String, String)>;
    tags(table: &SourceTable, account: &str, most: i64) -> Vec<SeenTag>;
    held(table: &SourceTable, values: &[String]) -> Vec<String>;
    survey() -> Vec<Surveyed>;
    distinct(of: &Surveyed, column: &str) -> Vec<String>;
    tallied(of: &Surveyed, column: &str) -> Vec<(String, i64)>;
    beside(of: &Surveyed, asked: &Beside) -> Vec<Tally>;
    examples(of: &Surveyed, column: &str) -> Vec<String>;
    named_rows(table: &SourceTable, ids: &[String]) -> Vec<NamedRow>;
    newest_keys(table: &SourceTable, most: i64) -> Vec<String>;
    counterparts(table: &SourceTable, most: i64) -> Vec<Counterpart>;
    hides_by_status(table: &SourceTable) -> bool;
    stuck_ahead(table: &SourceTable, filter: &ClaimFilter, after: Instant) -> Ahead;
    newest_stuck(table: &SourceTable) -> Option<Instant>;
    left_out(table: &SourceTable) -> LeftOut;
    knows_a_row(table: &SourceTable) -> bool;
}

/// Whether the text of a view chooses its rows by a column of this name: it stands behind a WHERE.
/// A view of the last day, or of one PSP's rows, hides rows that are over as well, and others than
/// those.
pub(in crate::store) fn chooses_by(definition: &str, column: &str) -> bool {
    let text = definition.to_lowercase();
    let column = column.to_lowercase();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = text.split(|c: char| !is_word(c));
    words.by_ref().any(|word| word == "where") && words.any(|word| word == column)
}

/// What to say of a mapping whose view leaves rows out by their status.
pub fn hides(table: &SourceTable) -> MappingError {
    let settings = &table.settings;
    let (read, status) = (&settings.read, &settings.status);
    let what = match settings.write.as_ref().filter(|write| *write != read) {
        Some(write) => format!("of the rows of `{write}` that are over it shows none"),
        None => "a row that is paid, or over in another way, vanishes from it".to_owned(),
    };
    MappingError {
        table: settings.name.clone(),
        field: "read".to_owned(),
        problem: format!(
            "`{read}` leaves rows out by their `{status}`: {what}, so that a row is out of sight \
             once it is decided"
        ),
        expected: "a view that shows a row whatever its status: leave rows out by `where`, which \
                   only says what is taken"
            .to_owned(),
        mend: Mend::Mapping,
    }
}

/// A time before which rows may well be stuck; for plans, which depend on the sort of bound alone.
pub(in crate::store) fn an_hour_ago() -> Instant {
    crate::model::time::later(crate::clock::now(), chrono::TimeDelta::hours(-1))
}

/// Columns that rows are looked up by and that no index leads with, the status left out.
pub(in crate::store) fn lookups(
    table: &SourceTable,
    create: impl Fn(&str) -> String,
) -> Vec<(String, Option<String>)> {
    let columns = table.unindexed.iter().filter(|column| **column != table.settings.status);
    let with = |column: &String| {
        let names = index_columns(table, column).into_iter();
        let cells = names.map(|name| table.cells.get(table.cell(name)?));
        let idents: Option<Vec<String>> =
            cells.map(|cell| cell.map(|cell| cell.ident.to_string())).collect();
        let statement = idents.filter(|_| table.write_is_read).map(|it| create(&it.join(", ")));
        (column.clone(), statement)
    };
    columns.map(with).collect()
}

/// The columns of the index that a look-up by this column wants: of the natural key all, as they
/// are compared together, in any order.
pub fn index_columns<'t>(table: &'t SourceTable, column: &'t str) -> Vec<&'t str> {
    let natural_key = &table.settings.natural_key;
    match natural_key.first().is_some_and(|first| first == column) {
        true => natural_key.iter().map(String::as_str).collect(),
        false => vec![column],
    }
}

/// Columns of a table of one account, or of one kind, that may tell rows apart; the row's own id
/// at the PSP, its key and its status do not.
pub(in crate::store) fn may_tell<'r>(
    table: &SourceTable,
    relation: &'r Relation,
) -> Vec<&'r Column> {
    let settings = &table.settings;
    let mut found = match settings.account.is_empty() {
        true => tell_accounts(&relation.columns),
        false => Vec::new(),
    };
    if settings.account.is_empty() || settings.kind.column.is_none() {
        let columns = &relation.columns;
        let kinds = coded(columns).into_iter().chain(flags(columns)).chain(pointers(columns));
        for column in kinds {
            if !found.iter().any(|known| known.name == column.name) {
                found.push(column);
            }
        }
    }
    let is_else = |column: &&Column| {
        settings.psp_reference.as_ref() != Some(&column.name)
            && settings.status != column.name
            && !settings.key.contains(&column.name)
    };
    found.retain(is_else);
    found
}

/// What is read of a column that names another row: its ids say nothing.
pub(in crate::store) fn filled(value: &str) -> String {
    format!("case when {value} is null then '{EMPTY}' else '{FILLED}' end")
}

/// What is read of a column of which only NULL counts, where NULL itself counts as well.
pub(in crate::store) fn filled_or_null(value: &str) -> String {
    format!("case when {value} is not null then '{FILLED}' end")
}

/// In how many rows at an end of the table such a column is looked at.
pub(in crate::store) fn rows_looked_at(column: &Column) -> i64 {
    if is_uncoded(&column.name) { FEW_ROWS } else { FIRST_ROWS }
}

/// Notes those that do tell rows apart.
pub(in crate::store) fn told_apart(
    table: &SourceTable,
    found: Vec<(String, Vec<String>)>,
    standing: &mut Standing,
) {
    let settings = &table.settings;
    let own = settings.kind.constant.as_deref().unwrap_or("charge");
    for (column, values) in found {
        let is_taken_back = own == "charge" && takes_back(&column) && points_in_some(&values);
        let tells = tells_kinds(&column, &values, own)
            || flags_kinds(&column, &values, own)
            || is_taken_back;
        if settings.kind.column.is_none() && tells {
            standing.kinds.push((column.clone(), values.clone()));
        } else if settings.kind.column.is_none()
            && own == "charge"
            && !settings.account.contains(&column)
            && (may_tell_kinds(&column, &values) || may_flag_kinds(&column, &values))
        {
            standing.kinds_unsure.push((column.clone(), values.clone()));
        }
        let is_one_account = settings.account.is_empty();
        let are_accounts =
            (2..=ACCOUNTS_MAX).contains(&values.len()) && !are_ids_at_stripe(&values);
        if is_one_account && are_accounts && (is_teller(&column) || tells_psps(&column, &values)) {
            standing.tellers.push((column, values));
        }
    }
}

/// Keeps what was found out, and notes what could not be.
pub(in crate::store) fn told<T>(
    untold: &mut Vec<String>,
    what: &str,
    result: Result<T, StoreError>,
) -> Option<T> {
    match result {
        Ok(found) => Some(found),
        Err(error) => {
            let mut text = format!("{what}: {error}");
            if let StoreError::Query { code: Some(code), .. } = &error
                && code == "57014"
            {
                text = format!("{what}: no answer within 5 s");
            }
            untold.push(text);
            None
        }
    }
}

/// Every status value that the mapping writes or waits for: what a CHECK must let through.
pub(in crate::store) fn written_values(table: &SourceTable) -> Vec<String> {
    let targets = table.settings.map.iter().flat_map(|map| {
        [&map.succeeded, &map.failed, &map.retryable, &map.absent, &map.review]
            .into_iter()
            .flatten()
    });
    let mut values = table.processing_values();
    values.extend(targets.map(|value| value.0.clone()));
    values.sort();
    values.dedup();
    values
}

/// Account values as the mapping joins them: NULL is empty.
pub(in crate::store) fn joined(parts: &[Option<String>]) -> String {
    let parts: Vec<&str> = parts.iter().map(|part| part.as_deref().unwrap_or("")).collect();
    parts.join("/")
}

/// A status value as a literal of SQL.
pub(in crate::store) fn status_literals(table: &SourceTable) -> String {
    use crate::store::source_table::TypeClass;
    let plain = matches!(table.write_status.class, TypeClass::Integer | TypeClass::Boolean);
    let literal = |value: &String| match plain {
        true => value.clone(),
        false => format!("'{}'", value.replace('\'', "''")),
    };
    let values: Vec<String> = table.processing_values().iter().map(literal).collect();
    match values.as_slice() {
        [only] => format!("= {only}"),
        several => format!("in ({})", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_no_row_may_have_are_told() {
        let told = |text: &str, notation| time_words(text, notation).map(|(_, words)| words);
        for (text, notation, want) in [
            ("2026-11-19 12:00:00+00", Notation::Zoned, Some("2026-11-19T12:00:00Z")),
            ("1795089600", Notation::EpochSecs, Some("2026-11-19T12:00:00Z")),
            ("1795089600000", Notation::EpochMillis, Some("2026-11-19T12:00:00Z")),
            ("0", Notation::EpochSecs, None),
            ("9999999999999999", Notation::EpochSecs, Some("9999999999999999")),
            ("58835-01-01 00:00:00+00", Notation::Zoned, Some("58835-01-01 00:00:00+00")),
        ] {
            assert_eq!(told(text, notation).as_deref(), want, "{text}");
        }
        // Milliseconds that are taken for seconds: a year of five digits.
        let far = told("1795089600000", Notation::EpochSecs).unwrap();
        assert_eq!(far.find('-'), Some(5), "{far}");
    }
}
