//! `/v1/charges`.

use super::answer::Answer;
use super::api::{Reply, at_least_one, currency, new_metadata, path_id, positive_amount};
use super::api_error::ApiError;
use super::books::Books;
use super::call::Call;
use super::core::Core;
use super::lists::ListAsk;
use super::objects::{Charge, Head, Record, Word};
use super::outcomes::outcome_of;
use super::search::SearchAsk;
use super::situations::{Move, Situation};
use super::views::{self, CHARGE_EXPANDS, Expand};

pub(super) fn create(core: &mut Core, call: &Call) -> Result<Reply, ApiError> {
    let params = &call.params;
    params.only(&[
        "amount",
        "application_fee_amount",
        "capture",
        "currency",
        "customer",
        "description",
        "expand",
        "metadata",
        "on_behalf_of",
        "receipt_email",
        "shipping",
        "source",
        "statement_descriptor",
        "statement_descriptor_suffix",
        "transfer_data",
        "transfer_group",
    ])?;
    let amount = positive_amount(params, "amount")?;
    let currency = currency(params)?;
    let capture = params.flag("capture")?.unwrap_or(true);
    let expand = Expand::read(&params.list("expand"), "", CHARGE_EXPANDS)?;
    let customer = params.text("customer").map(str::to_owned);
    let source = params.text("source").map(str::to_owned);
    if source.is_none() && customer.is_none() {
        return Err(ApiError::missing("source"));
    }
    let metadata = new_metadata(core, params)?;
    let outcome = outcome_of(source.as_deref().unwrap_or("tok_visa"));
    let to = match outcome.now.to {
        Situation::Succeeded if !capture => Situation::RequiresCapture,
        // A charge of its own cannot wait for the customer; the issuer refuses it.
        Situation::RequiresAction => Situation::Declined,
        other => other,
    };
    let at = core.moment();
    let id = core.mint.object_id("ch");
    let charge = Charge {
        head: Head {
            id: id.clone(),
            created: at.created,
            landed_ms: at.landed_ms,
            amount,
            currency,
            customer,
            description: params.text("description").map(str::to_owned),
            metadata,
            status: Word::from("pending"),
            livemode: call.account.live,
            overlay: None,
        },
        payment_method: source,
        method_type: Word::from("card"),
        blocked: outcome.blocked,
        ..Charge::default()
    };
    let step = Move { to, ..outcome.now };
    move_new(core, call, charge, &step);
    if to == Situation::Declined {
        return Err(declined(core, call, &id));
    }
    Ok(Reply::plain(show(core, call, &id, expand)?))
}

pub(super) fn get(core: &mut Core, call: &Call) -> Result<Reply, ApiError> {
    call.params.only(&["expand"])?;
    let expand = Expand::read(&call.params.list("expand"), "", CHARGE_EXPANDS)?;
    Ok(Reply::plain(show(core, call, path_id(call), expand)?))
}

pub(super) fn list(core: &mut Core, call: &Call) -> Result<Reply, ApiError> {
    let filters = ["created", "customer", "payment_intent", "transfer_group"];
    let ask = ListAsk::read(call, &filters, CHARGE_EXPANDS)?;
    let seen_until = core.listed_until();
    let customer = call.params.text("customer");
    let books: &Books = core.books(&call.account);
    let of_intent = call
        .params
        .text("payment_intent")
        .map(|id| books.intents.get(id).map(|intent| intent.charges.clone()).unwrap_or_default());
    ask.answer(
        &books.charges,
        "charge",
        of_intent.as_deref(),
        |charge| {
            charge.landed_ms() <= seen_until
                && customer.is_none_or(|asked| charge.customer() == Some(asked))
        },
        |charge| views::charge(books, charge, ask.expand),
    )
}

pub(super) fn search(core: &mut Core, call: &Call) -> Result<Reply, ApiError> {
    let ask = SearchAsk::read(call, CHARGE_EXPANDS)?;
    let seen_until = core.indexed_until();
    core.books(&call.account).charges.index_tags();
    let books: &Books = core.books(&call.account);
    Ok(ask.answer(
        &books.charges,
        |charge| charge.landed_ms() <= seen_until,
        |charge| views::charge(books, charge, ask.expand),
    ))
}

pub(super) fn capture(core: &mut Core, call: &Call) -> Result<Reply, ApiError> {
    let params = &call.params;
    params.only(&["amount", "expand", "receipt_email", "statement_descriptor"])?;
    let expand = Expand::read(&params.list("expand"), "", CHARGE_EXPANDS)?;
    let asked = params.integer("amount")?;
    let asked = asked.map(|amount| at_least_one(amount, "amount")).transpose()?;
    let id = path_id(call);
    let at = core.moment();
    let books = core.accounts.entry(call.account.clone()).or_default();
    let charge =
        books.charges.get(id).ok_or_else(|| ApiError::no_such(404, "charge", id, "charge"))?;
    if charge.captured || charge.head.status != "succeeded" || charge.refunded {
        let message = format!("Charge {id} has already been captured, or cannot be.");
        let mut error = ApiError::request(400, Some("charge_already_captured"), message);
        error.began = true;
        return Err(error);
    }
    if asked.is_some_and(|amount| amount > charge.head.amount) {
        let message = "The amount is greater than that of the charge.".to_owned();
        return Err(ApiError::invalid("amount", message));
    }
    let intent = charge.intent.clone();
    let step = Move { amount: asked, ..Move::to(Situation::Succeeded) };
    match intent {
        Some(intent) => books.move_intent(&intent, &step, at, &mut core.mint),
        None => books.move_charge(id, &step, at, &mut core.mint),
    }
    Ok(Reply::plain(show(core, call, id, expand)?))
}

fn move_new(core: &mut Core, call: &Call, charge: Charge, step: &Move) {
    let at = core.moment();
    let id = charge.head.id.clone();
    let books = core.accounts.entry(call.account.clone()).or_default();
    books.charges.put(charge);
    books.move_charge(&id, step, at, &mut core.mint);
}

fn declined(core: &mut Core, call: &Call, id: &str) -> ApiError {
    let books: &Books = core.books(&call.account);
    let found = books.charges.get(id).and_then(|charge| charge.failure.clone());
    let failure = found.unwrap_or_default();
    let more = views::decline_members(books, &failure, None);
    ApiError::card(&failure.code, failure.message.clone(), more)
}

fn show(core: &mut Core, call: &Call, id: &str, expand: Expand) -> Result<Answer, ApiError> {
    let books: &Books = core.books(&call.account);
    let found = books.charges.get(id);
    let charge = found.ok_or_else(|| ApiError::no_such(404, "charge", id, "id"))?;
    Ok(Answer::json(200, &views::charge(books, charge, expand)))
}
