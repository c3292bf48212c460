//! `/v1/refunds` and, for reading, `/v1/disputes`.

use super::answer::Answer;
use super::api::{Reply, at_least_one, new_metadata, path_id};
use super::api_error::ApiError;
use super::books::Books;
use super::call::Call;
use super::core::Core;
use super::lists::ListAsk;
use super::objects::{Charge, Record};
use super::views::{self, Expand, REFUND_EXPANDS};

pub(super) fn create(core: &mut Core, call: &Call) -> Result<Reply, ApiError> {
    let params = &call.params;
    params.only(&[
        "amount",
        "charge",
        "expand",
        "instructions_email",
        "metadata",
        "payment_intent",
        "reason",
        "refund_application_fee",
        "reverse_transfer",
    ])?;
    let expand = Expand::read(&params.list("expand"), "", REFUND_EXPANDS)?;
    let asked = params.integer("amount")?;
    let asked = asked.map(|amount| at_least_one(amount, "amount")).transpose()?;
    let mut charge = charge_to_refund(core, call)?;
    let left = charge.head.amount - charge.amount_refunded;
    if !charge.captured || left <= 0 {
        let message = format!("Charge {} has already been refunded.", charge.head.id);
        let mut error = ApiError::request(400, Some("charge_already_refunded"), message);
        error.began = true;
        return Err(error);
    }
    let amount = asked.unwrap_or(left);
    if amount > left {
        let message = format!("Refund amount ({amount}) is greater than the unrefunded {left}.");
        return Err(ApiError::invalid("amount", message));
    }
    let metadata = new_metadata(core, params)?;
    let at = core.moment();
    let books = core.accounts.entry(call.account.clone()).or_default();
    let mut refund = books.refund(&mut charge, amount, at, &mut core.mint);
    refund.head.metadata = metadata;
    refund.reason = params.text("reason").map(str::to_owned);
    let id = refund.head.id.clone();
    books.refunds.put(refund);
    if let Some(kept) = books.charges.get_mut(&charge.head.id) {
        *kept = charge;
    }
    Ok(Reply::plain(show(core, call, &id, expand)?))
}

pub(super) fn get(core: &mut Core, call: &Call) -> Result<Reply, ApiError> {
    call.params.only(&["expand"])?;
    let expand = Expand::read(&call.params.list("expand"), "", REFUND_EXPANDS)?;
    Ok(Reply::plain(show(core, call, path_id(call), expand)?))
}

pub(super) fn list(core: &mut Core, call: &Call) -> Result<Reply, ApiError> {
    let ask = ListAsk::read(call, &["charge", "created", "payment_intent"], REFUND_EXPANDS)?;
    let seen_until = core.listed_until();
    let params = &call.params;
    let books: &Books = core.books(&call.account);
    let of_charge =
        |id: &str| books.charges.get(id).map(|charge| charge.refunds.clone()).unwrap_or_default();
    let by_charge = params.text("charge").map(of_charge);
    let by_intent = params.text("payment_intent").map(|id| {
        let charges = books.intents.get(id).map(|intent| intent.charges.clone());
        charges.unwrap_or_default().iter().flat_map(|id| of_charge(id)).collect::<Vec<_>>()
    });
    let among = by_charge.or(by_intent);
    ask.answer(
        &books.refunds,
        "refund",
        among.as_deref(),
        |refund| refund.landed_ms() <= seen_until,
        |refund| views::refund(books, refund, ask.expand),
    )
}

pub(super) fn list_disputes(core: &mut Core, call: &Call) -> Result<Reply, ApiError> {
    let ask = ListAsk::read(call, &["charge", "created", "payment_intent"], REFUND_EXPANDS)?;
    let seen_until = core.listed_until();
    let charge = call.params.text("charge");
    let intent = call.params.text("payment_intent");
    let books: &Books = core.books(&call.account);
    ask.answer(
        &books.disputes,
        "dispute",
        None,
        |dispute| {
            dispute.landed_ms() <= seen_until
                && charge.is_none_or(|asked| dispute.charge == asked)
                && intent.is_none_or(|asked| dispute.intent.as_deref() == Some(asked))
        },
        views::dispute,
    )
}

pub(super) fn get_dispute(core: &mut Core, call: &Call) -> Result<Reply, ApiError> {
    call.params.only(&["expand"])?;
    let id = path_id(call);
    let found = core.books(&call.account).disputes.get(id);
    let dispute = found.ok_or_else(|| ApiError::no_such(404, "dispute", id, "dispute"))?;
    Ok(Reply::plain(Answer::json(200, &views::dispute(dispute))))
}

/// The charge that a refund names, itself or by its intent.
fn charge_to_refund(core: &mut Core, call: &Call) -> Result<Charge, ApiError> {
    let params = &call.params;
    let books: &Books = core.books(&call.account);
    let (id, param) = match (params.text("charge"), params.text("payment_intent")) {
        (Some(id), _) => (id.to_owned(), "charge"),
        (None, Some(id)) => {
            let intent = books.intents.get(id);
            let intent = intent
                .ok_or_else(|| ApiError::no_such(400, "payment_intent", id, "payment_intent"))?;
            let last = intent.charges.last().cloned().ok_or_else(|| {
                let message = "This PaymentIntent has no successful charge to refund.".to_owned();
                ApiError::request(400, Some("payment_intent_unexpected_state"), message)
            })?;
            (last, "payment_intent")
        }
        (None, None) => return Err(ApiError::missing("charge")),
    };
    let found = books.charges.get(&id).cloned();
    found.ok_or_else(|| ApiError::no_such(400, "charge", &id, param))
}

fn show(core: &mut Core, call: &Call, id: &str, expand: Expand) -> Result<Answer, ApiError> {
    let books: &Books = core.books(&call.account);
    let found = books.refunds.get(id);
    let refund = found.ok_or_else(|| ApiError::no_such(404, "refund", id, "refund"))?;
    Ok(Answer::json(200, &views::refund(books, refund, expand)))
}
