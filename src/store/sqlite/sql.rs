//! The door to SQLite's statements: errors in the store's words, literals quoted, sets as JSON.
//!
//! A set is one JSON text in ?1, read as `json_each(?1) j`. It must be the outer loop: a select
//! says `cross join`, which SQLite never turns round, and an update compares every column of the
//! key with the set, the table's name too; with a bound name it would walk the whole table for
//! each row of the set. A plus before a column keeps an index of few values out of the choice.
//!
//! This is the one file of the driver that vouches for SQL made at run time: what is spliced into
//! it is a quoted name, a quoted literal of the configuration, or text of this room.

use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Sqlite};

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
        return StoreError::Query { doing, message: error.to_string(), code: None, detail: None };
    };
    let code = database.code().map(std::borrow::Cow::into_owned);
    if primary_code(error) == Some(8) {
        return StoreError::ReadOnly { detail: format!("{doing}: {}", database.message()) };
    }
    let detail = match primary_code(error) {
        Some(5 | 6) => Some("another process kept the file locked for 30 s".to_owned()),
        Some(13) => Some("the disk that the file is on is full".to_owned()),
        Some(_) | None => None,
    };
    StoreError::Query { doing, message: database.message().to_owned(), code, detail }
}

/// SQLite's result code without its extension.
pub(super) fn primary_code(error: &sqlx::Error) -> Option<i64> {
    let code: i64 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}

/// SQLITE_CONSTRAINT: a constraint, a STRICT type, a trigger that raised.
pub(super) const REFUSED: i64 = 19;

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

/// A text literal, quoted.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A set as the one JSON text that `json_each` reads.
pub(super) fn json_set<T: serde::Serialize>(items: &[T]) -> String {
    serde_json::Value::from_iter(items.iter().map(|item| serde_json::json!(item))).to_string()
}

/// One value of a row that is bound where it stands.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Text(Option<String>),
    Int(Option<i64>),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::Text(Some(text.clone()))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<Option<String>> for Value {
    fn from(text: Option<String>) -> Self {
        Self::Text(text)
    }
}

impl From<&Option<String>> for Value {
    fn from(text: &Option<String>) -> Self {
        Self::Text(text.clone())
    }
}

impl From<Option<&str>> for Value {
    fn from(text: Option<&str>) -> Self {
        Self::Text(text.map(str::to_owned))
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
/// reads it once.
const BOUND_ROWS: usize = 128;

/// Runs a statement for many rows of the same width, so many at a time; `sql` takes the rows'
/// `(?, …), (?, …)`. Where a set is read once and has many or long columns this is several times
/// as fast as one JSON text, which SQLite takes apart again for every column.
pub(super) async fn execute_rows(
    connection: &mut SqliteConnection,
    doing: &'static str,
    rows: Vec<Vec<Value>>,
    sql: impl Fn(&str) -> String,
) -> Result<(), StoreError> {
    let mut rows = rows.into_iter().peekable();
    while let Some(width) = rows.peek().map(Vec::len) {
        let chunk: Vec<Vec<Value>> = rows.by_ref().take(BOUND_ROWS).collect();
        let marks = format!("({})", vec!["?"; width].join(", "));
        let mut query = rendered(&sql(&vec![marks.as_str(); chunk.len()].join(", ")));
        for value in chunk.into_iter().flatten() {
            query = match value {
                Value::Text(text) => query.bind(text),
                Value::Int(number) => query.bind(number),
            };
        }
        execute(connection, doing, query).await?;
    }
    Ok(())
}

/// Runs a statement and collects its rows.
pub(super) async fn fetch(
    connection: &mut SqliteConnection,
    doing: &'static str,
    query: SqliteQuery,
) -> Result<Vec<SqliteRow>, StoreError> {
    query.fetch_all(connection).await.map_err(failed(doing))
}

/// Runs a statement and says how many rows it changed.
pub(super) async fn execute(
    connection: &mut SqliteConnection,
    doing: &'static str,
    query: SqliteQuery,
) -> Result<u64, StoreError> {
    query.execute(connection).await.map(|done| done.rows_affected()).map_err(failed(doing))
}
