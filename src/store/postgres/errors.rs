//! The server's errors: in which words they are shown, and what each one calls for.
//!
//! sqlx's own Display prints the server's C source line, and DETAIL shows values of the row: both
//! stay out of messages.

use sqlx::postgres::{PgDatabaseError, PgSeverity};

use crate::model::card::masked;
use crate::store::error::StoreError;

/// What a failed statement calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Calls {
    /// Nothing was wrong with it: a deadlock or a serialization failure. The whole again.
    Again,
    /// Somebody holds a row for long: leave such rows out.
    SkipLocked,
    /// One of the rows is refused: a constraint, a trigger, a value that does not fit.
    FindGuilty,
    /// It was stopped on its way, or its triggers went too deep: of one row, or of all together.
    /// Each row alone tells which.
    Apart,
    /// In the words of the server's own trouble (a full disk, a lost connection), on a connection
    /// that is alive. Each row alone tells whether it is one row's; where it is every row's, the
    /// step cannot be done.
    Server,
    /// The step cannot be done.
    Stop,
}

/// The server's error, where it answered with one.
pub(super) fn answered(error: &sqlx::Error) -> Option<&PgDatabaseError> {
    match error {
        sqlx::Error::Database(error) => error.try_downcast_ref::<PgDatabaseError>(),
        _other => None,
    }
}

/// What to do about a statement on the user's rows that failed.
pub(super) fn calls_for(error: &sqlx::Error) -> Calls {
    let Some(error) = answered(error) else { return Calls::Stop };
    let code = error.code();
    let is_raised = error.r#where().is_some_and(|place| place.contains("PL/pgSQL function"));
    match code.get(..2).unwrap_or_default() {
        _any if matches!(code, "40001" | "40P01") => Calls::Again,
        _any if code == "55P03" => Calls::SkipLocked,
        // Cancelled, by a limit of time as well; a limit of the server's.
        "57" if code == "57014" => Calls::Apart,
        "54" => Calls::Apart,
        // Data exceptions, integrity, triggers that change what is being changed, raised
        // exceptions, external routines, check options.
        "22" | "23" | "27" | "P0" | "38" | "39" | "44" | "2F" => Calls::FindGuilty,
        // Resources, operators and the server itself. What ends the connection is no row's.
        "53" | "55" | "57" | "58" | "08" | "25" | "XX" => match error.severity() {
            PgSeverity::Error => Calls::Server,
            _fatal => Calls::Stop,
        },
        _other if is_raised => Calls::FindGuilty,
        _other => Calls::Stop,
    }
}

/// Whether code of the user's database said so itself, and no lock or snapshot of the server's.
pub(super) fn is_raised(error: &sqlx::Error) -> bool {
    answered(error).is_some_and(|error| error.routine() == Some("exec_stmt_raise"))
}

/// Whether a limit of the server's refused it: where a row is tried alone, the row meets it.
pub(super) fn is_limit(error: &sqlx::Error) -> bool {
    answered(error).is_some_and(|error| error.code().starts_with("54"))
}

/// Whether the machine or an operator may be the cause (no room, no memory, a shutdown), and pass;
/// not what a row's trigger or an extension that it calls met.
pub(super) fn is_of_machine(error: &sqlx::Error) -> bool {
    let is_it = |code: &str| ["53", "57", "58"].iter().any(|class| code.starts_with(class));
    answered(error).is_some_and(|error| is_it(error.code()))
}

/// Whether the unique constraint of this name refused it.
pub(super) fn is_taken(error: &sqlx::Error, constraint: &str) -> bool {
    answered(error).is_some_and(|e| e.code() == "23505" && e.constraint() == Some(constraint))
}

/// One line for people: message, SQLSTATE, constraint.
pub(super) fn shown(error: &sqlx::Error) -> String {
    let Some(error) = answered(error) else { return plain(error) };
    let constraint = error.constraint().map_or_else(String::new, |name| format!(", {name}"));
    // What is cut off could be half of a card number.
    format!("{} ({}{constraint})", cut(&masked(error.message()), 300), error.code())
}

/// A statement's failure as the store's error.
pub(super) fn failed(doing: &'static str) -> impl Fn(sqlx::Error) -> StoreError {
    move |error| failure(doing, &error)
}

/// The same, of an error that is looked at further. A trigger may say anything in its words.
pub(super) fn failure(doing: &'static str, error: &sqlx::Error) -> StoreError {
    match answered(error) {
        Some(pg) => StoreError::Query {
            doing,
            message: cut(&masked(pg.message()), 500),
            code: Some(pg.code().to_owned()),
            detail: place(pg),
            asker: None,
        },
        None => {
            let message = plain(error);
            StoreError::Query { doing, message, code: None, detail: None, asker: None }
        }
    }
}

/// A result that cannot be: the text says what was found.
pub(super) fn unexpected(doing: &'static str, problem: impl Into<String>) -> StoreError {
    StoreError::Unexpected { doing, problem: problem.into() }
}

fn place(error: &PgDatabaseError) -> Option<String> {
    let constraint = error.constraint().map(|name| format!("constraint {name}"));
    let parts: Vec<String> = [
        constraint,
        error.r#where().map(|text| cut(&masked(text), 200)),
        error.hint().map(|text| cut(&masked(text), 200)),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The connection's own failures have no SQLSTATE.
fn plain(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Io(error) => format!("the connection broke: {error}"),
        sqlx::Error::PoolTimedOut => "no connection became free in time".to_owned(),
        sqlx::Error::PoolClosed => "the connections are closed".to_owned(),
        other => other.to_string(),
    }
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}
