//! The door to SQLite's statements: errors in the store's words, literals quoted, sets as JSON.
//!
//! A set is one JSON text in ?1, read as `json_each(?1) j`. It must be the outer loop: a select
//! says `cross join`, which SQLite never turns round, and an update compares every column of the
//! key with the set, the table's name too; with a bound name it would walk the whole table for
//! each row of the set. A plus before a column keeps an index of few values out of the choice.
//!
//! This is the one file of the driver that vouches for SQL made at run time: what is spliced into
//! it is a quoted name, a quoted literal of the configuration, or text of this room.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::TryStreamExt as _;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Sqlite};

use crate::model::card::masked;
use crate::store::error::StoreError;

pub(super) type SqliteQuery = Query<'static, Sqlite, SqliteArguments>;

/// A statement that was rendered from a mapping.
pub(super) fn rendered(sql: &str) -> SqliteQuery {
    sqlx::query(AssertSqlSafe(sql.to_owned()))
}

/// Says what was being done when a statement failed.
pub(super) fn failed(doing: &'static str) -> impl Fn(sqlx::Error) -> StoreError + Copy {
    move |error| failure(doing, &error)
}

fn failure(doing: &'static str, error: &sqlx::Error) -> StoreError {
    let Some(database) = error.as_database_error() else {
        let message = error.to_string();
        return StoreError::Query { doing, message, code: None, detail: None, asker: None };
    };
    let code = database.code().map(std::borrow::Cow::into_owned);
    if primary_code(error) == Some(8) {
        let detail = format!("{doing}: {}", masked(database.message()));
        return StoreError::ReadOnly { detail };
    }
    let detail = match primary_code(error) {
        Some(5 | 6) => Some("another process kept the file locked for 30 s".to_owned()),
        Some(13) => Some("the disk that the file is on is full".to_owned()),
        Some(_) | None => None,
    };
    // A trigger may say anything in its words.
    let message = masked(database.message()).into_owned();
    StoreError::Query { doing, message, code, detail, asker: None }
}

/// SQLite's result code without its extension.
pub(super) fn primary_code(error: &sqlx::Error) -> Option<i64> {
    let code: i64 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}

/// SQLITE_CONSTRAINT: a constraint, a STRICT type, a trigger that raised.
pub(super) const REFUSED: i64 = 19;

/// SQLITE_ERROR: a statement that cannot be read, among others.
const BROKEN: i64 = 1;

/// The user's database refused what was to be committed: a deferred foreign key, a trigger that
/// rolled everything back.
pub(super) fn refused_whole(error: &StoreError) -> Option<String> {
    match error {
        StoreError::Query { message, code: Some(code), .. } => {
            let code: i64 = code.parse().ok()?;
            (code & 0xff == REFUSED).then(|| message.clone())
        }
        _other => None,
    }
}

/// The user's database refused a change: a constraint, a STRICT type, a trigger that raised.
pub(super) fn refusal(error: &sqlx::Error) -> Option<String> {
    (primary_code(error) == Some(REFUSED))
        .then(|| error.as_database_error().map(|e| e.message().to_owned()))
        .flatten()
}

/// How SQLite says that what a statement sets off names what is not there. It says so as it reads
/// the statement, before it looks at any row.
const NOT_THERE: [&str; 4] =
    ["no such ", " has no column named ", " values were supplied", "foreign key mismatch"];

/// No row of the user's table can be changed: a trigger or a foreign key of it names a table, a
/// column or a function that is not there. A trigger that raises such words is a refusal.
pub(super) fn refusal_of_table(error: &sqlx::Error) -> Option<String> {
    let words = error.as_database_error()?.message();
    let is_of_table = primary_code(error) == Some(BROKEN)
        && NOT_THERE.iter().any(|not_there| words.contains(not_there));
    is_of_table.then(|| words.to_owned())
}

/// A text literal, quoted.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A set as the one JSON text that `json_each` reads.
pub(super) fn json_set<T: serde::Serialize>(items: &[T]) -> String {
    serde_json::Value::from_iter(items.iter().map(|item| serde_json::json!(item))).to_string()
}

/// One value of a row that is bound where it stands. A text is shared, so that what all rows have
/// in common is kept once.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Text(Option<Arc<str>>),
    Int(Option<i64>),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.into()))
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&Arc<str>> for Value {
    fn from(text: &Arc<str>) -> Self {
        Self::Text(Some(Arc::clone(text)))
    }
}

impl From<Option<String>> for Value {
    fn from(text: Option<String>) -> Self {
        Self::Text(text.map(Into::into))
    }
}

impl From<&Option<String>> for Value {
    fn from(text: &Option<String>) -> Self {
        Self::from(text.as_deref())
    }
}

impl From<Option<&str>> for Value {
    fn from(text: Option<&str>) -> Self {
        Self::Text(text.map(Into::into))
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(Some(number))
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Int(Some(i64::from(number)))
    }
}

impl From<Option<i64>> for Value {
    fn from(number: Option<i64>) -> Self {
        Self::Int(number)
    }
}

impl From<Option<u32>> for Value {
    fn from(number: Option<u32>) -> Self {
        Self::Int(number.map(i64::from))
    }
}

/// How many rows one statement binds: its text is the same for all full ones, so that SQLite
/// reads it once. What joins such rows to a table says `+` before their columns, so that SQLite
/// builds no index of them to walk the whole table by.
pub(super) const BOUND_ROWS: usize = 128;

/// How many rows the statements for what is left over bind, the most first. A statement of every
/// number would be read anew each time, and a hundred of them kept: some 40 MiB.
const BOUND_SIZES: [usize; 3] = [BOUND_ROWS, 16, 1];

/// Rows of the same width on their way into statements that bind so many at a time; `sql` takes
/// the rows' `(?, …), (?, …)`. Where a set is read once and has many or long columns this is
/// several times as fast as one JSON text, which SQLite takes apart again for every column.
struct Bound<I, F> {
    rows: I,
    sql: F,
    /// The next of them.
    ahead: VecDeque<Vec<Value>>,
    /// The texts of the statements, by [`BOUND_SIZES`].
    texts: [Option<String>; 3],
}

impl<I: Iterator<Item = Vec<Value>>, F: Fn(&str) -> String> Bound<I, F> {
    fn of(rows: I, sql: F) -> Self {
        Self { rows, sql, ahead: VecDeque::with_capacity(BOUND_ROWS), texts: [None, None, None] }
    }

    fn next(&mut self) -> Option<SqliteQuery> {
        let room = BOUND_ROWS.saturating_sub(self.ahead.len());
        self.ahead.extend(self.rows.by_ref().take(room));
        let width = self.ahead.front()?.len();
        let mut sizes = BOUND_SIZES.into_iter().zip(&mut self.texts);
        let (size, text) = sizes.find(|(size, _)| *size <= self.ahead.len())?;
        let text = text.get_or_insert_with(|| {
            let row = format!("({})", vec!["?"; width].join(", "));
            (self.sql)(&vec![row.as_str(); size].join(", "))
        });
        let mut query = rendered(text);
        for value in self.ahead.drain(..size).flatten() {
            query = match value {
                Value::Text(text) => query.bind(text),
                Value::Int(number) => query.bind(number),
            };
        }
        Some(query)
    }
}

/// Runs a statement for many rows; see [`Bound`].
pub(super) async fn execute_rows(
    connection: &mut SqliteConnection,
    doing: &'static str,
    rows: impl Iterator<Item = Vec<Value>>,
    sql: impl Fn(&str) -> String,
) -> Result<(), StoreError> {
    let mut bound = Bound::of(rows, sql);
    let mut next = bound.next();
    while let Some(query) = next {
        // SQLite works in a thread of its own: the next values are made ready meanwhile.
        let executed = execute(connection, doing, query);
        let (executed, following) = tokio::join!(biased; executed, async { bound.next() });
        executed?;
        next = following;
    }
    Ok(())
}

/// Runs a statement that answers for many rows; see [`Bound`]. The first failure ends it, as the
/// driver said it.
pub(super) async fn fetch_rows(
    connection: &mut SqliteConnection,
    rows: impl Iterator<Item = Vec<Value>>,
    sql: impl Fn(&str) -> String,
) -> sqlx::Result<Vec<SqliteRow>> {
    let mut bound = Bound::of(rows, sql);
    let mut found = Vec::new();
    let mut next = bound.next();
    while let Some(query) = next {
        let fetched = query.fetch_all(&mut *connection);
        let (fetched, following) = tokio::join!(biased; fetched, async { bound.next() });
        found.extend(fetched?);
        next = following;
    }
    Ok(found)
}

/// Runs a statement and collects its rows.
pub(super) async fn fetch(
    connection: &mut SqliteConnection,
    doing: &'static str,
    query: SqliteQuery,
) -> Result<Vec<SqliteRow>, StoreError> {
    query.fetch_all(connection).await.map_err(failed(doing))
}

/// Runs a statement and collects what is read of each row, as the rows come. Every cell of a row
/// is a copy of its own that SQLite made, several times as large as what is read of it: thousands
/// of rows are not to be held as they came.
pub(super) async fn fetch_each<T>(
    connection: &mut SqliteConnection,
    doing: &'static str,
    query: SqliteQuery,
    read: impl Fn(&SqliteRow) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut rows = query.fetch(connection);
    let mut found = Vec::new();
    while let Some(row) = rows.try_next().await.map_err(failed(doing))? {
        found.push(read(&row)?);
    }
    Ok(found)
}

/// Runs a statement and says how many rows it changed.
pub(super) async fn execute(
    connection: &mut SqliteConnection,
    doing: &'static str,
    query: SqliteQuery,
) -> Result<u64, StoreError> {
    query.execute(connection).await.map(|done| done.rows_affected()).map_err(failed(doing))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use sqlx::Execute as _;

    use super::*;

    #[test]
    fn any_number_of_rows_takes_three_texts() {
        let mut texts = BTreeSet::new();
        for rows in [0, 1, 2, 15, 16, 17, 127, 128, 129, 300] {
            let values = (0..rows).map(|number: i64| vec![Value::from(number), Value::from("x")]);
            let mut bound = Bound::of(values, |rows: &str| format!("values {rows}"));
            let mut found = 0;
            while let Some(query) = bound.next() {
                let text = query.sql().as_str().to_owned();
                found += text.matches("(?, ?)").count();
                texts.insert(text);
            }
            assert_eq!(i64::try_from(found).unwrap(), rows);
        }
        assert_eq!(texts.len(), 3, "{texts:?}");
    }
}
