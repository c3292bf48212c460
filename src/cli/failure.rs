//! How a failure is told: what happened, what was not done, what to do next; and its exit code.
//!
//! Every room's error is mapped here, exhaustively, so that a new kind cannot be forgotten.

use std::error::Error;

use serde_json::json;

use crate::cli::args::Common;
use crate::cli::{out, page};
use crate::config::problem::ConfigError;
use crate::exit::Exit;
use crate::run::error::{RunError, chain, store_exit};
use crate::store::error::StoreError;

/// The version of `--json`; fields and types of events are only ever added.
pub const SCHEMA: &str = "tieout/1";

/// A command that could not do what it was asked.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The process's end.
    pub exit: Exit,
    /// What happened and what was not done.
    pub text: String,
    /// What to do next.
    pub hint: Option<String>,
}

impl Failure {
    /// From words.
    pub fn new(exit: Exit, text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { exit, text: text.into(), hint: Some(hint.into()) }
    }

    /// Words of the command line that cannot be meant so.
    pub fn usage(text: impl Into<String>) -> Self {
        let mut text = text.into();
        if !text.contains("othing was ") {
            text.push_str("; nothing was done");
        }
        Self { exit: Exit::Usage, text, hint: None }
    }

    /// From the store.
    pub fn store(error: &StoreError) -> Self {
        Self::of(error, store_exit(error), error.hint())
    }

    /// From a run.
    pub fn run(error: &RunError) -> Self {
        Self::of(error, error.exit(), error.hint())
    }

    /// From an error with its causes.
    pub fn of(error: &(dyn Error + 'static), exit: Exit, hint: Option<String>) -> Self {
        Self { exit, text: told(error), hint }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let exit = if error.is_usage() { Exit::Usage } else { Exit::Config };
        Self::of(&error, exit, Some(error.hint()))
    }
}

impl From<crate::cli::window::WindowError> for Failure {
    fn from(error: crate::cli::window::WindowError) -> Self {
        Self::usage(error.to_string())
    }
}

/// An error and its causes on one line; a mapping's misfits and a server's detail below.
fn told(error: &(dyn Error + 'static)) -> String {
    let mut below = Vec::new();
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        match error.downcast_ref::<StoreError>() {
            Some(StoreError::Mapping(misfits)) => {
                below.extend(misfits.iter().map(|misfit| format!("\n  {misfit}")));
            }
            Some(StoreError::Query { detail: Some(detail), .. }) => {
                below.push(format!("\n  {detail}"));
            }
            _plain => {}
        }
        next = error.source();
    }
    format!("{}{}", chain(error), below.concat())
}

/// Tells a failure on stderr, and as an event where events are asked for; its exit comes back.
pub fn tell(failure: &Failure, common: &Common) -> Exit {
    let hint = failure.hint.as_deref().map(|hint| common.copyable(hint).into_owned());
    tell_as(&Failure { hint, ..failure.clone() }, common.json)
}

/// The same, where the command line itself could not be read.
pub fn tell_as(failure: &Failure, json: bool) -> Exit {
    if json {
        let event = json!({
            "schema": SCHEMA,
            "type": "exit",
            "code": failure.exit.code(),
            "class": failure.exit.class(),
            "message": failure.text,
            "hint": failure.hint,
        });
        out::stdout(&event.to_string());
    }
    page::warn(&format!("tieout: {}: {}", failure.exit.class(), failure.text));
    if let Some(hint) = &failure.hint {
        page::warn(&format!("hint: {hint}"));
    }
    failure.exit
}
