//! Refusals in the shape of Stripe's error object.
//!
//! These are answers of the API that the sandbox plays. They are never errors of the sandbox.

use serde_json::{Map, Value, json};

/// One refusal: an HTTP status and the `error` object.
#[derive(Debug, Clone)]
pub(super) struct ApiError {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    pub(super) code: Option<String>,
    pub(super) message: String,
    pub(super) param: Option<String>,
    /// Further members, such as `decline_code` or the whole `payment_intent`.
    pub(super) more: Map<String, Value>,
    /// Whether the request had begun to execute: only then is it saved under its key.
    pub(super) began: bool,
}

impl ApiError {
    fn new(status: u16, kind: &'static str, message: String) -> Self {
        Self { status, kind, code: None, message, param: None, more: Map::new(), began: false }
    }

    pub(super) fn request(status: u16, code: Option<&str>, message: String) -> Self {
        let mut error = Self::new(status, "invalid_request_error", message);
        error.code = code.map(str::to_owned);
        error
    }

    pub(super) fn invalid(param: &str, message: String) -> Self {
        let mut error = Self::new(400, "invalid_request_error", message);
        error.param = Some(param.to_owned());
        error
    }

    pub(super) fn missing(param: &str) -> Self {
        let mut error = Self::invalid(param, format!("Missing required param: {param}."));
        error.code = Some("parameter_missing".to_owned());
        error
    }

    pub(super) fn unknown_parameter(name: &str) -> Self {
        let mut error = Self::invalid(name, format!("Received unknown parameter: {name}"));
        error.code = Some("parameter_unknown".to_owned());
        error
    }

    /// 404 where the object is named by the path, 400 where a parameter names it.
    pub(super) fn no_such(status: u16, object: &str, id: &str, param: &str) -> Self {
        let mut error = Self::invalid(param, format!("No such {object}: '{id}'"));
        error.status = status;
        error.code = Some("resource_missing".to_owned());
        error
    }

    pub(super) fn unexpected_state(status: &str, verb: &str, intent: Value) -> Self {
        let mut error = Self::request(
            400,
            Some("payment_intent_unexpected_state"),
            format!("You cannot {verb} this PaymentIntent because it has a status of {status}."),
        );
        error.more.insert("payment_intent".to_owned(), intent);
        error.began = true;
        error
    }

    pub(super) fn card(code: &str, message: String, more: Map<String, Value>) -> Self {
        let mut error = Self::new(402, "card_error", message);
        error.code = Some(code.to_owned());
        error.more = more;
        error.began = true;
        error
    }

    pub(super) fn unrecognized_url(method: &str, path: &str) -> Self {
        Self::request(404, None, format!("Unrecognized request URL ({method}: {path})."))
    }

    pub(super) fn no_key() -> Self {
        Self::request(
            401,
            None,
            "You did not provide an API key. Send it by Basic or Bearer authentication.".to_owned(),
        )
    }

    /// The key itself is never repeated, only its kind and last four characters.
    pub(super) fn bad_key(key: &str) -> Self {
        let tail: String = key.chars().skip(key.chars().count().saturating_sub(4)).collect();
        let kind: String = key.chars().take(8).filter(|c| key.len() > 12 || *c == '_').collect();
        Self::request(401, None, format!("Invalid API Key provided: {kind}****{tail}"))
    }

    pub(super) fn key_reused(key: &str) -> Self {
        Self::new(
            400,
            "idempotency_error",
            format!(
                "Keys for idempotent requests can only be used with the same parameters they \
                 were first used with. The key was '{key}'."
            ),
        )
    }

    pub(super) fn key_in_use(key: &str) -> Self {
        let mut error = Self::new(
            409,
            "idempotency_error",
            format!("There is currently another in-progress request using this key: {key}."),
        );
        error.code = Some("idempotency_key_in_use".to_owned());
        error
    }

    pub(super) fn too_many(message: &str) -> Self {
        Self::request(429, Some("rate_limit"), message.to_owned())
    }

    pub(super) fn api(status: u16, message: &str) -> Self {
        let mut error = Self::new(status, "api_error", message.to_owned());
        error.began = true;
        error
    }

    /// The body that goes over the wire.
    pub(super) fn body(&self, request_id: &str) -> Value {
        let mut error = self.more.clone();
        let log = format!("https://dashboard.stripe.com/logs/{request_id}");
        error.insert("message".to_owned(), json!(self.message));
        error.insert("type".to_owned(), json!(self.kind));
        error.insert("request_log_url".to_owned(), json!(log));
        if let Some(code) = &self.code {
            let page = code.replace('_', "-");
            error.insert("code".to_owned(), json!(code));
            let doc = format!("https://stripe.com/docs/error-codes/{page}");
            error.insert("doc_url".to_owned(), json!(doc));
        }
        if let Some(param) = &self.param {
            error.insert("param".to_owned(), json!(param));
        }
        json!({ "error": error })
    }
}
