//! `/v1/payment_intents`.

use super::answer::Answer;
use super::api::{
    Reply, at_least_one, checked_metadata, currency, new_metadata, path_id, positive_amount,
};
use super::api_error::ApiError;
use super::books::Books;
use super::call::Call;
use super::core::{Core, Later, LaterWhat};
use super::form::Params;
use super::lists::ListAsk;
use super::objects::{Head, Intent, Record, Word};
use super::outcomes::{Outcome, outcome_of};
use super::search::SearchAsk;
use super::situations::{Decline, Move, Situation};
use super::views::{self, Expand, INTENT_EXPANDS};

const CREATE: &[&str] = &[
    "amount",
    "application_fee_amount",
    "automatic_payment_methods",
    "capture_method",
    "confirm",
    "confirmation_method",
    "currency",
    "customer",
    "description",
    "error_on_requires_action",
    "expand",
    "mandate",
    "mandate_data",
    "metadata",
    "off_session",
    "on_behalf_of",
    "payment_method",
    "payment_method_data",
    "payment_method_options",
    "payment_method_types",
    "radar_options",
    "receipt_email",
    "return_url",
    "setup_future_usage",
    "shipping",
    "statement_descriptor",
    "statement_descriptor_suffix",
    "transfer_data",
    "transfer_group",
    "use_stripe_sdk",
];

pub(super) fn create(core: &mut Core, call: &Call) -> Result<Reply, ApiError> {
    let params = &call.params;
    params.only(CREATE)?;
    let amount = positive_amount(params, "amount")?;
    let currency = currency(params)?;
    let manual_capture = manual_capture(params)?;
    let confirm = params.flag("confirm")?.unwrap_or(false);
    let expand = Expand::read(&params.list("expand"), "", INTENT_EXPANDS)?;
    let payment_method = payment_method(params);
    if confirm && payment_method.is_none() {
        let message = "You cannot confirm this PaymentIntent because it's missing a payment \
                       method.";
        let code = Some("payment_intent_unexpected_state");
        return Err(ApiError::request(400, code, message.to_owned()));
    }
    let metadata = new_metadata(core, params)?;
    let status =
        if payment_method.is_some() { "requires_confirmation" } else { "requires_payment_method" };
    let at = core.moment();
    let id = core.mint.object_id("pi");
    let intent = Intent {
        head: Head {
            id: id.clone(),
            created: at.created,
            landed_ms: at.landed_ms,
            amount,
            currency,
            customer: params.text("customer").map(str::to_owned),
            description: params.text("description").map(str::to_owned),
            metadata,
            status: Word::from(status),
            livemode: call.account.live,
            overlay: None,
        },
        manual_capture,
        payment_method,
        method_type: Word::from("card"),
        ..Intent::default()
    };
    core.books(&call.account).intents.put(intent);
    if confirm {
        return attempt(core, call, &id, expand);
    }
    Ok(Reply::plain(show(core, call, &id, expand)?))
}

pub(super) fn get(core: &mut Core, call: &Call) -> Result<Reply, ApiError> {
    call.params.only(&["expand", "client_secret"])?;
    let expand = Expand::read(&call.params.list("expand"), "", INTENT_EXPANDS)?;
    Ok(Reply::plain(show(core, call, path_id(call), expand)?))
}

pub(super) fn list(core: &mut Core, call: &Call) -> Result<Reply, ApiError> {
    let filters = ["created", "customer", "customer_account"];
    let ask = ListAsk::read(call, &filters, INTENT_EXPANDS)?;
    let seen_until = core.listed_until();
    let customer = call.params.text("customer");
    let books: &Books = core.books(&call.account);
    ask.answer(
        &books.intents,
        "payment_intent",
        None,
        |intent| {
            intent.landed_ms() <= seen_until
                && customer.is_none_or(|asked| intent.customer() == Some(asked))
        },
        |intent| views::intent(books, intent, ask.expand),
    )
}

pub(super) fn search(core: &mut Core, call: &Call) -> Result<Reply, ApiError> {
    let ask = SearchAsk::read(call, INTENT_EXPANDS)?;
    let seen_until = core.indexed_until();
    core.books(&call.account).intents.index_tags();
    let books: &Books = core.books(&call.account);
    Ok(ask.answer(
        &books.intents,
        |intent| intent.landed_ms() <= seen_until,
        |intent| views::intent(books, intent, ask.expand),
    ))
}

pub(super) fn update(core: &mut Core, call: &Call) -> Result<Reply, ApiError> {
    let params = &call.params;
    params.only(&["metadata", "description", "amount", "payment_method", "customer", "expand"])?;
    let expand = Expand::read(&params.list("expand"), "", INTENT_EXPANDS)?;
    let pairs = checked_metadata(params)?;
    let amount = params.integer("amount")?.map(|amount| at_least_one(amount, "amount"));
    let amount = amount.transpose()?;
    let status = status_of(core, call)?;
    let open = matches!(status.as_str(), "requires_payment_method" | "requires_confirmation");
    if (amount.is_some() || params.text("payment_method").is_some()) && !open {
        return Err(unexpected(core, call, &status, "update"));
    }
    core.books(&call.account).intents.change_metadata(path_id(call), |intent| {
        for (key, value) in &pairs {
            intent.head.metadata.set(key, value);
        }
        for (name, place) in [
            ("description", &mut intent.head.description),
            ("customer", &mut intent.head.customer),
            ("payment_method", &mut intent.payment_method),
        ] {
            if let Some(text) = params.text(name) {
                *place = Some(text.to_owned());
            }
        }
        intent.head.amount = amount.unwrap_or(intent.head.amount);
        if intent.payment_method.is_some() && open {
            intent.head.status = Word::from("requires_confirmation");
        }
    });
    Ok(Reply::plain(show(core, call, path_id(call), expand)?))
}

pub(super) fn confirm(core: &mut Core, call: &Call) -> Result<Reply, ApiError> {
    let params = &call.params;
    params.only(&[
        "capture_method",
        "client_secret",
        "error_on_requires_action",
        "expand",
        "mandate",
        "mandate_data",
        "off_session",
        "payment_method",
        "payment_method_data",
        "payment_method_options",
        "payment_method_types",
        "receipt_email",
        "return_url",
        "setup_future_usage",
        "use_stripe_sdk",
    ])?;
    let expand = Expand::read(&params.list("expand"), "", INTENT_EXPANDS)?;
    let given = payment_method(params);
    let manual = params.text("capture_method").map(|_| manual_capture(params)).transpose()?;
    let status = status_of(core, call)?;
    let ready = matches!(
        status.as_str(),
        "requires_payment_method" | "requires_confirmation" | "requires_action"
    );
    let id = path_id(call);
    let intent = core.books(&call.account).intents.get_mut(id);
    let has_method = intent.is_some_and(|intent| {
        intent.payment_method = given.or_else(|| intent.payment_method.take());
        intent.manual_capture = manual.unwrap_or(intent.manual_capture);
        intent.payment_method.is_some()
    });
    if !ready || !has_method {
        return Err(unexpected(core, call, &status, "confirm"));
    }
    attempt(core, call, id, expand)
}

pub(super) fn capture(core: &mut Core, call: &Call) -> Result<Reply, ApiError> {
    let params = &call.params;
    params.only(&[
        "amount_to_capture",
        "application_fee_amount",
        "expand",
        "final_capture",
        "metadata",
        "statement_descriptor",
        "statement_descriptor_suffix",
        "transfer_data",
    ])?;
    let expand = Expand::read(&params.list("expand"), "", INTENT_EXPANDS)?;
    let status = status_of(core, call)?;
    if status != "requires_capture" {
        return Err(unexpected(core, call, &status, "capture"));
    }
    let asked = params.integer("amount_to_capture")?;
    let asked = asked.map(|amount| at_least_one(amount, "amount_to_capture")).transpose()?;
    let id = path_id(call);
    let open = core.books(&call.account).intents.get(id).map_or(0, |kept| kept.amount_capturable);
    if asked.is_some_and(|amount| amount > open) {
        let message = format!("The amount to capture is greater than the {open} that is open.");
        return Err(ApiError::invalid("amount_to_capture", message));
    }
    let step = Move { amount: asked, ..Move::to(Situation::Succeeded) };
    core.move_intent(&call.account, id, &step);
    Ok(Reply::plain(show(core, call, id, expand)?))
}

pub(super) fn cancel(core: &mut Core, call: &Call) -> Result<Reply, ApiError> {
    let params = &call.params;
    params.only(&["cancellation_reason", "expand"])?;
    let expand = Expand::read(&params.list("expand"), "", INTENT_EXPANDS)?;
    let reason = params.text("cancellation_reason");
    let known = ["abandoned", "duplicate", "fraudulent", "requested_by_customer"];
    if let Some(reason) = reason
        && !known.contains(&reason)
    {
        let message = format!("Invalid cancellation_reason: {reason}");
        return Err(ApiError::invalid("cancellation_reason", message));
    }
    let status = status_of(core, call)?;
    if matches!(status.as_str(), "succeeded" | "canceled") {
        return Err(unexpected(core, call, &status, "cancel"));
    }
    let step = Move { reason: reason.map(str::to_owned), ..Move::to(Situation::Canceled) };
    core.move_intent(&call.account, path_id(call), &step);
    Ok(Reply::plain(show(core, call, path_id(call), expand)?))
}

/// One attempt to pay an intent with the method that it has.
fn attempt(core: &mut Core, call: &Call, id: &str, expand: Expand) -> Result<Reply, ApiError> {
    let intent = core.books(&call.account).intents.get(id);
    let method = intent.and_then(|intent| intent.payment_method.clone()).unwrap_or_default();
    let manual = intent.is_some_and(|intent| intent.manual_capture);
    let Outcome { mut now, later, blocked } = outcome_of(&method);
    if manual && now.to == Situation::Succeeded {
        now.to = Situation::RequiresCapture;
    }
    let alone = matches!(call.params.text("off_session"), Some("true" | "one_off" | "recurring"))
        || call.params.flag("error_on_requires_action")? == Some(true);
    if now.to == Situation::RequiresAction && alone {
        now = Move {
            decline: Some(Decline {
                code: "authentication_required".to_owned(),
                decline_code: Some("authentication_required".to_owned()),
                advice_code: None,
            }),
            ..Move::to(Situation::Declined)
        };
    }
    core.move_intent(&call.account, id, &now);
    if now.to == Situation::Declined {
        return Err(declined(core, call, id, blocked));
    }
    let later = later.map(|(after_ms, step)| {
        let what = LaterWhat::MoveIntent { account: call.account.clone(), id: id.to_owned(), step };
        Later { after_ms, what }
    });
    let answer = show(core, call, id, expand)?;
    Ok(Reply { later: later.into_iter().collect(), ..Reply::plain(answer) })
}

fn declined(core: &mut Core, call: &Call, id: &str, blocked: bool) -> ApiError {
    let books = core.books(&call.account);
    if blocked
        && let Some(charge) = books.intents.get(id).and_then(|kept| kept.charges.last().cloned())
        && let Some(charge) = books.charges.get_mut(&charge)
    {
        charge.blocked = true;
    }
    let intent = books.intents.get(id);
    let failure = intent.and_then(|kept| kept.failure.clone()).unwrap_or_default();
    let more = views::decline_members(books, &failure, intent);
    ApiError::card(&failure.code, failure.message.clone(), more)
}

fn show(core: &mut Core, call: &Call, id: &str, expand: Expand) -> Result<Answer, ApiError> {
    let books: &Books = core.books(&call.account);
    let intent = books
        .intents
        .get(id)
        .ok_or_else(|| ApiError::no_such(404, "payment_intent", id, "intent"))?;
    Ok(Answer::json(200, &views::intent(books, intent, expand)))
}

fn status_of(core: &mut Core, call: &Call) -> Result<String, ApiError> {
    let id = path_id(call);
    let found = core.books(&call.account).intents.get(id);
    found
        .map(|intent| intent.head.status.to_string())
        .ok_or_else(|| ApiError::no_such(404, "payment_intent", id, "intent"))
}

fn unexpected(core: &mut Core, call: &Call, status: &str, verb: &str) -> ApiError {
    let books: &Books = core.books(&call.account);
    let shown = books.intents.get(path_id(call)).map_or(serde_json::Value::Null, |intent| {
        views::value(&views::intent(books, intent, Expand::default()))
    });
    ApiError::unexpected_state(status, verb, shown)
}

fn payment_method(params: &Params) -> Option<String> {
    let given = params.text("payment_method").filter(|text| !text.is_empty());
    let inline = params.entry("payment_method_data", "type").map(|_| "pm_card_visa");
    given.or(inline).map(str::to_owned)
}

fn manual_capture(params: &Params) -> Result<bool, ApiError> {
    match params.text("capture_method") {
        None | Some("automatic" | "automatic_async") => Ok(false),
        Some("manual") => Ok(true),
        Some(other) => {
            let message = format!("Invalid capture_method: {other}");
            Err(ApiError::invalid("capture_method", message))
        }
    }
}
