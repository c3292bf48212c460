//! An answer before it is put on the wire.

use hyper::body::Bytes;
use serde::Serialize;
use serde_json::Value;

/// Status, headers and a whole body.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Bytes,
}

impl Answer {
    pub(super) fn json<V: Serialize>(status: u16, view: &V) -> Self {
        let body = serde_json::to_vec(view).unwrap_or_else(|error| {
            format!("{{\"error\":{{\"type\":\"api_error\",\"message\":\"{error}\"}}}}").into_bytes()
        });
        let headers = vec![("content-type", "application/json".to_owned())];
        Self { status, headers, body: Bytes::from(body) }
    }

    pub(super) fn text(status: u16, kind: &str, body: impl Into<Bytes>) -> Self {
        Self { status, headers: vec![("content-type", kind.to_owned())], body: body.into() }
    }

    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.into()));
        self
    }

    /// The body as a tree; null where it is no JSON.
    pub(super) fn tree(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    pub(super) fn with_tree(self, tree: &Value) -> Self {
        let body = serde_json::to_vec(tree).unwrap_or_default();
        Self { body: Bytes::from(body), ..self }
    }
}
