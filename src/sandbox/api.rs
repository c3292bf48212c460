//! The API: one call, carried out on the books of its account.
//!
//! What a client may do and how it is refused stands here and in the files beside it; faults do
//! not. A call that is refused changes nothing.

use super::answer::Answer;
use super::api_error::ApiError;
use super::call::Call;
use super::core::{Core, Later};
use super::faults::PageFacts;
use super::form::Params;
use super::objects::Metadata;
use super::routes::Route;
use super::{api_charges, api_intents, api_refunds};

/// What a call brought about.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) answer: Answer,
    pub(super) page: Option<PageFacts>,
    pub(super) later: Vec<Later>,
}

impl Reply {
    pub(super) fn plain(answer: Answer) -> Self {
        Self { answer, page: None, later: Vec::new() }
    }
}

/// Carries a call out.
pub(super) fn execute(core: &mut Core, call: &Call) -> Result<Reply, ApiError> {
    if call.method == "POST" && core.object_count() >= core.max_objects {
        return Err(ApiError::api(503, "The sandbox is full; reset it."));
    }
    match call.route {
        Route::CreateIntent => api_intents::create(core, call),
        Route::ListIntents => api_intents::list(core, call),
        Route::SearchIntents => api_intents::search(core, call),
        Route::GetIntent => api_intents::get(core, call),
        Route::UpdateIntent => api_intents::update(core, call),
        Route::ConfirmIntent => api_intents::confirm(core, call),
        Route::CaptureIntent => api_intents::capture(core, call),
        Route::CancelIntent => api_intents::cancel(core, call),
        Route::CreateCharge => api_charges::create(core, call),
        Route::ListCharges => api_charges::list(core, call),
        Route::SearchCharges => api_charges::search(core, call),
        Route::GetCharge => api_charges::get(core, call),
        Route::CaptureCharge => api_charges::capture(core, call),
        Route::CreateRefund => api_refunds::create(core, call),
        Route::ListRefunds => api_refunds::list(core, call),
        Route::GetRefund => api_refunds::get(core, call),
        Route::ListDisputes => api_refunds::list_disputes(core, call),
        Route::GetDispute => api_refunds::get_dispute(core, call),
        Route::GetAccount => Ok(Reply::plain(account(call))),
        Route::GetBalance => Ok(Reply::plain(balance(call))),
        Route::Unknown => Err(ApiError::unrecognized_url(&call.method, &call.path)),
    }
}

/// The id in the path; a route without one never asks.
pub(super) fn path_id(call: &Call) -> &str {
    call.id.as_deref().unwrap_or_default()
}

/// A currency code, in small letters.
pub(super) fn currency(params: &Params) -> Result<String, ApiError> {
    let text = params.required("currency")?;
    if text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return Ok(text.to_ascii_lowercase());
    }
    Err(ApiError::invalid("currency", format!("Invalid currency: {text}")))
}

pub(super) fn positive_amount(params: &Params, name: &str) -> Result<i64, ApiError> {
    at_least_one(params.required_integer(name)?, name)
}

pub(super) fn at_least_one(amount: i64, name: &str) -> Result<i64, ApiError> {
    if amount >= 1 {
        return Ok(amount);
    }
    let mut error = ApiError::invalid(name, "This value must be greater than 0.".to_owned());
    error.code = Some("parameter_invalid_integer".to_owned());
    Err(error)
}

/// The metadata of a new object, within Stripe's limits; lost if tags are being dropped.
pub(super) fn new_metadata(core: &mut Core, params: &Params) -> Result<Metadata, ApiError> {
    let pairs = checked_metadata(params)?;
    let share = u64::from(core.behaviour.dropped_tags_per_mille);
    if share > 0 && core.mint.draw(1000) < share {
        return Ok(Metadata::default());
    }
    let kept = pairs.into_iter().filter(|(_, value)| !value.is_empty());
    Ok(Metadata::of(kept.map(|(key, value)| (key.to_owned(), value.to_owned()))))
}

pub(super) fn checked_metadata(params: &Params) -> Result<Vec<(&str, &str)>, ApiError> {
    let pairs = params.entries("metadata");
    let refuse = |key: &str, why: &str| {
        Err(ApiError::invalid(&format!("metadata[{key}]"), format!("Invalid metadata: {why}")))
    };
    if pairs.len() > 50 {
        return refuse("", "more than 50 keys");
    }
    for (key, value) in &pairs {
        if key.is_empty() || key.chars().count() > 40 {
            return refuse(key, "a key has 1 to 40 characters");
        }
        if value.chars().count() > 500 {
            return refuse(key, "a value has at most 500 characters");
        }
    }
    Ok(pairs)
}

fn account(call: &Call) -> Answer {
    let view = serde_json::json!({
        "id": call.account.name, "object": "account", "country": "US",
        "charges_enabled": true, "payouts_enabled": true, "default_currency": "usd",
    });
    Answer::json(200, &view)
}

fn balance(call: &Call) -> Answer {
    let view = serde_json::json!({
        "object": "balance", "livemode": call.account.live,
        "available": [{ "amount": 0, "currency": "usd" }],
        "pending": [{ "amount": 0, "currency": "usd" }],
    });
    Answer::json(200, &view)
}
