//! Why a run could not go on. What it could do was done and stands in the database.

use crate::exit::Exit;
use crate::psp::account::OpenError;
use crate::report::error::ReportError;
use crate::store::error::{StoreError, StoreErrorClass};

/// A run that ended early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The database.
    #[error("{doing}")]
    Store {
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        #[source]
        source: StoreError,
    },
    /// An account's settings do not work.
    #[error("account `{account}` cannot be used; no row was looked at")]
    Account {
        /// Its name.
        account: String,
        /// What is wrong.
        #[source]
        source: OpenError,
    },
    /// A mapped column holds nothing of what its field needs.
    #[error("{table}: {text}; nothing was done")]
    Unreadable {
        /// The mapping's name.
        table: String,
        /// The column, how many values were looked at, and one of them.
        text: String,
        /// What to correct.
        next: String,
    },
    /// Another run found this one without a sign of life and closed it.
    #[error("run {run_id} was closed by another run while it was paused; nothing more was written")]
    Closed {
        /// This run.
        run_id: String,
    },
    /// The id that was asked for is another run's.
    #[error("run {run_id} exists already ({state}, begun {begun}); nothing was done")]
    RunIdTaken {
        /// The id.
        run_id: String,
        /// How that run stands.
        state: &'static str,
        /// When it began.
        begun: String,
    },
    /// Rows that were named are in none of the tables.
    #[error("{} in none of the mapped tables{}; nothing was done", are(.ids), as_written(.written))]
    NoSuchRow {
        /// Their ids.
        ids: Vec<String>,
        /// As the database writes the keys of those that are there.
        written: Vec<String>,
    },
    /// The window could not be compared; every decision stands in the database.
    #[error("the run's decisions stand, and its window could not be compared")]
    Compare {
        /// Why.
        #[source]
        source: ReportError,
    },
    /// The evidence could not be written down.
    #[error("the evidence of row {key} could not be put into JSON")]
    Evidence {
        /// The row.
        key: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

/// `row a is`, `rows a, b, c and 4 more are`.
fn as_written(written: &[String]) -> String {
    match written {
        [] => String::new(),
        [first, ..] => format!(" by that text: such a key is written {first}"),
    }
}

fn are(ids: &[String]) -> String {
    let shown: Vec<&str> = ids.iter().take(3).map(String::as_str).collect();
    let more = match ids.len().saturating_sub(shown.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    match ids.len() {
        1 => format!("row {} is", shown.join(", ")),
        _several => format!("rows {}{more} are", shown.join(", ")),
    }
}

impl RunError {
    /// The process's end.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Store { source, .. } => store_exit(source),
            Self::Account { .. } | Self::Unreadable { .. } => Exit::Config,
            Self::NoSuchRow { .. } | Self::RunIdTaken { .. } => Exit::Usage,
            // Every decision stands; a comparison is missing, as a row is that nobody asked.
            Self::Compare { .. } => Exit::Partial,
            Self::Evidence { .. } | Self::Closed { .. } => Exit::Internal,
        }
    }

    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Store { source, .. } => source.hint(),
            Self::Compare { .. } => {
                Some("free the folder for temporary files, then run again with --all".to_owned())
            }
            Self::NoSuchRow { .. } => {
                let text = "--id is the key, in the parts and the order of `key` in [[table]]; \
                            `tieout explain` finds the row of a tag or a reference";
                Some(text.to_owned())
            }
            Self::RunIdTaken { .. } => {
                Some("leave --run-id out, or give each run an id of its own".to_owned())
            }
            Self::Unreadable { next, .. } => Some(next.clone()),
            Self::Account { .. } => Some("correct [[account]] in tieout.toml".to_owned()),
            Self::Closed { .. } => {
                Some("run again: the rows are free, and the other run has taken them".to_owned())
            }
            Self::Evidence { .. } => None,
        }
    }
}

/// The exit that a store failure leads to.
pub fn store_exit(error: &StoreError) -> Exit {
    match error.class() {
        StoreErrorClass::Config => Exit::Config,
        StoreErrorClass::Auth => Exit::Auth,
        StoreErrorClass::Database => Exit::Database,
        StoreErrorClass::Schema => Exit::Schema,
        StoreErrorClass::Internal => Exit::Internal,
    }
}

/// An error with its causes, on one line. Some say their cause in their own words already.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.ends_with(&said) {
            text.push_str(&format!(": {said}"));
        }
        next = cause.source();
    }
    text
}

/// Names the step that a store failure stopped.
pub trait Doing<T> {
    /// Adds the step.
    fn doing(self, doing: &'static str) -> Result<T, RunError>;
}

impl<T> Doing<T> for Result<T, StoreError> {
    fn doing(self, doing: &'static str) -> Result<T, RunError> {
        self.map_err(|source| RunError::Store { doing, source })
    }
}

impl From<ReportError> for RunError {
    fn from(source: ReportError) -> Self {
        Self::Compare { source }
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn a_cause_that_was_said_is_not_said_again() {
        let refused = || std::io::Error::from(ErrorKind::ConnectionRefused);
        let source = StoreError::Unreachable {
            address: "h/d".to_owned(),
            source: sqlx::Error::Io(refused()),
        };
        let text = chain(&RunError::Store { doing: "opening the database", source });
        let why = refused().to_string();
        assert_eq!(text.matches(&why).count(), 1, "{text}");
        assert!(text.starts_with("opening the database: the database at h/d"), "{text}");
        // A cause of other words is said.
        let source = ReportError::file("writing", std::path::Path::new("a.csv"))(refused());
        let text = chain(&RunError::Compare { source });
        assert!(text.ends_with(&format!("writing a.csv failed: {why}")), "{text}");
    }
}
