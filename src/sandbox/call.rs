//! One request to the API, read: whose it is, what it asks for, and under which key.

use super::core::AccountRef;
use super::faults::Mentions;
use super::form::Params;
use super::routes::Route;

/// A request, read and let in.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) number: u64,
    pub(super) request_id: String,
    pub(super) route: Route,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: String,
    /// The id that the path names.
    pub(super) id: Option<String>,
    pub(super) params: Params,
    pub(super) account: AccountRef,
    pub(super) idempotency_key: Option<String>,
    pub(super) version: Option<String>,
    pub(super) lens: Lens,
}

/// How a faulty list reads its question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Lens {
    #[default]
    True,
    /// As if no `created` filter had been sent.
    NoCreated,
    /// The first page, whatever the cursor.
    FirstPage,
    /// The page that ends at the cursor.
    EndAtCursor,
}

impl Call {
    /// What must be equal in two requests that use one key.
    pub(super) fn fingerprint(&self) -> String {
        format!("{} {} {}", self.method, self.path, self.params.canonical())
    }

    pub(super) fn is_read(&self) -> bool {
        self.method == "GET"
    }
}

impl Mentions for Params {
    fn mention(&self, text: &str) -> bool {
        Params::mention(self, text)
    }
}
