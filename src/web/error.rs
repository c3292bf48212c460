//! What keeps the page from being served, and what a request is refused for.

use std::error::Error;
use std::net::SocketAddr;

use axum::http::StatusCode;

use crate::exit::Exit;
use crate::run::error::store_exit;
use crate::secret::SecretError;
use crate::store::error::StoreError;

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Other machines would reach it.
    #[error("{address} is an address that other machines reach; nothing was served")]
    Beyond {
        /// The address.
        address: SocketAddr,
    },
    /// Other machines would reach it without TLS.
    #[error("{address}: signing in would cross the network unencrypted; nothing was served")]
    Plain {
        /// The address.
        address: SocketAddr,
    },
    /// The address cannot be had.
    #[error("{address} cannot be listened on; nothing was served")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// SQLite, and no person is configured.
    #[error("nobody may sign in: the configuration names no person; nothing was served")]
    Nobody,
    /// PostgreSQL, and persons are configured.
    #[error(
        "[[web.person]] has no say with PostgreSQL, whose logins the people are; nothing was served"
    )]
    Persons,
    /// A person's hash cannot be had.
    #[error("the token's hash of {name} could not be read; nothing was served")]
    Token {
        /// The person.
        name: String,
        /// Why.
        #[source]
        source: SecretError,
    },
    /// What was read is no hash.
    #[error("what is named for {name} is no SHA-256 of a token; nothing was served")]
    NoHash {
        /// The person.
        name: String,
    },
    /// Who has the token of one could sign in as the other.
    #[error("{name} and {other} have one token, and would be one person; nothing was served")]
    OneToken {
        /// The person.
        name: String,
        /// Who has it, too.
        other: String,
    },
    /// The database does not answer, or not as it must.
    #[error("the review page needs the database; nothing was served")]
    Store {
        /// Why.
        #[source]
        source: StoreError,
    },
}

impl ServeError {
    /// How the command ends.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Beyond { .. } => Exit::Usage,
            Self::Plain { .. }
            | Self::Listen { .. }
            | Self::Nobody
            | Self::Persons
            | Self::Token { .. }
            | Self::NoHash { .. }
            | Self::OneToken { .. } => Exit::Config,
            Self::Store { source } => store_exit(source),
        }
    }

    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Beyond { .. } => {
                "listen on 127.0.0.1 behind a proxy or an SSH tunnel, or add --beyond-loopback"
            }
            Self::Plain { .. } => {
                "put a proxy with TLS before it, and say in [web] origin what browsers see: \
                 origin = \"https://…\""
            }
            Self::Listen { .. } => "another --listen address or port",
            Self::Nobody | Self::NoHash { .. } | Self::OneToken { .. } => {
                "`tieout serve --new-token NAME` makes a token and prints the lines for [web]"
            }
            Self::Persons => "take [[web.person]] out; docs/web.md tells how people sign in",
            Self::Token { .. } => {
                "`tieout config check` reads the file; docs/web.md tells of [web]"
            }
            Self::Store { source } => return source.hint(),
        };
        Some(text.to_owned())
    }
}

/// Why a request is not done: what happened, what was not done, what to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The answer's status.
    pub status: StatusCode,
    /// What happened and what was not done.
    pub text: String,
    /// What to do next.
    pub hint: String,
}

impl Refused {
    /// From words.
    pub fn new(status: StatusCode, text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { status, text: text.into(), hint: hint.into() }
    }

    /// Words that cannot be meant so.
    pub fn words(text: impl Into<String>) -> Self {
        let text = format!("{}; nothing was done", text.into());
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, text, "go back and correct it")
    }

    /// What was shown is not what is any more.
    pub fn stale(text: impl Into<String>) -> Self {
        let text = format!("{}; nothing was done", text.into());
        Self::new(StatusCode::CONFLICT, text, "look at the case again, and decide anew")
    }

    /// Not this person.
    pub fn forbidden(text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, format!("{}; nothing was done", text.into()), hint)
    }

    /// No such page.
    pub fn no_page() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "There is no such page.",
            "the queue leads to all there is",
        )
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        let hint = error.hint().unwrap_or_else(|| "try it again".to_owned());
        // 42501: the login may not do this. The server said so, and nothing was done.
        if let StoreError::Query { code: Some(code), .. } = &error
            && code == "42501"
        {
            let text = format!("{}; nothing was done", chain(&error));
            return Self::new(
                StatusCode::FORBIDDEN,
                text,
                "your login lacks a right; `tieout db roles` prints what people need",
            );
        }
        tracing::error!(error = chain(&error), "A page could not be made");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, chain(&error), hint)
    }
}

/// An error with its causes, on one line.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
        next = cause.source();
    }
    text
}
