//! How objects look over the wire: Stripe's members, written straight from the stored facts.
//!
//! A page of a hundred is serialized without building a tree first; only an object with an overlay
//! takes the long way. Members that the sandbox has no facts for are always null or empty here.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::api_error::ApiError;
use super::books::Books;
use super::mint;
use super::objects::{Charge, Dispute, Failure, Intent, Metadata, Overlay, Refund};

/// A member that Stripe's object has and the sandbox has nothing to say on.
type Null = ();

/// Which of the linked objects are shown whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Expand {
    pub(super) latest_charge: bool,
    pub(super) payment_intent: bool,
    pub(super) charge: bool,
    pub(super) refunds: bool,
}

impl Expand {
    /// Reads `expand[]`; a list's expansions start with `data.`.
    pub(super) fn read(
        asked: &[&str],
        prefix: &str,
        known: &[&'static str],
    ) -> Result<Self, ApiError> {
        let mut expand = Self::default();
        for path in asked {
            let inner = path.strip_prefix(prefix).filter(|inner| known.contains(inner));
            match inner {
                Some("latest_charge") => expand.latest_charge = true,
                Some("payment_intent") => expand.payment_intent = true,
                Some("charge") => expand.charge = true,
                Some("refunds") => expand.refunds = true,
                Some("latest_charge.refunds") => {
                    expand.latest_charge = true;
                    expand.refunds = true;
                }
                // Objects that the sandbox keeps no whole of: their ids stay.
                Some(_) => {}
                None => {
                    let message = format!("This property cannot be expanded ({path}).");
                    return Err(ApiError::invalid("expand", message));
                }
            }
        }
        Ok(expand)
    }
}

/// What of each kind may be expanded.
pub(super) const INTENT_EXPANDS: &[&str] = &[
    "latest_charge",
    "latest_charge.refunds",
    "latest_charge.balance_transaction",
    "customer",
    "payment_method",
];
/// As above, for charges.
pub(super) const CHARGE_EXPANDS: &[&str] =
    &["payment_intent", "refunds", "customer", "balance_transaction"];
/// As above, for refunds and disputes.
pub(super) const REFUND_EXPANDS: &[&str] = &["charge", "payment_intent", "balance_transaction"];

/// An object as shown: as its facts say, or with members laid over.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Shown<V> {
    Plain(V),
    Laid(Value),
}

/// A linked object: its id, or the whole of it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Link<'a, V> {
    Id(Option<&'a str>),
    Whole(Box<Shown<V>>),
}

#[derive(Debug, Serialize)]
pub(super) struct IntentView<'a> {
    id: &'a str,
    object: &'static str,
    amount: i64,
    amount_capturable: i64,
    amount_details: AmountDetails,
    amount_received: i64,
    application: Null,
    application_fee_amount: Null,
    automatic_payment_methods: Null,
    canceled_at: Option<i64>,
    cancellation_reason: Option<&'a str>,
    capture_method: &'static str,
    client_secret: String,
    confirmation_method: &'static str,
    created: i64,
    currency: &'a str,
    customer: Option<&'a str>,
    description: Option<&'a str>,
    last_payment_error: Option<ErrorView<'a>>,
    latest_charge: Link<'a, ChargeView<'a>>,
    livemode: bool,
    metadata: &'a Metadata,
    next_action: Option<NextAction>,
    on_behalf_of: Null,
    payment_method: Option<&'a str>,
    payment_method_options: Empty,
    payment_method_types: [&'a str; 1],
    processing: Null,
    receipt_email: Null,
    review: Null,
    setup_future_usage: Null,
    shipping: Null,
    source: Null,
    statement_descriptor: Null,
    statement_descriptor_suffix: Null,
    status: &'a str,
    transfer_data: Null,
    transfer_group: Null,
}

#[derive(Debug, Serialize)]
struct Empty {}

#[derive(Debug, Serialize)]
struct AmountDetails {
    tip: Empty,
}

#[derive(Debug, Serialize)]
struct NextAction {
    #[serde(rename = "type")]
    kind: &'static str,
    use_stripe_sdk: Empty,
}

#[derive(Debug, Serialize)]
struct ErrorView<'a> {
    charge: Option<&'a str>,
    code: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    decline_code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice_code: Option<&'a str>,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    payment_method: Option<MethodView<'a>>,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Debug, Serialize)]
struct MethodView<'a> {
    id: &'a str,
    object: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct ChargeView<'a> {
    id: &'a str,
    object: &'static str,
    amount: i64,
    amount_captured: i64,
    amount_refunded: i64,
    application: Null,
    application_fee: Null,
    application_fee_amount: Null,
    balance_transaction: Option<String>,
    billing_details: BillingDetails,
    calculated_statement_descriptor: Null,
    captured: bool,
    created: i64,
    currency: &'a str,
    customer: Option<&'a str>,
    description: Option<&'a str>,
    dispute: Option<&'a str>,
    disputed: bool,
    failure_balance_transaction: Null,
    failure_code: Option<&'a str>,
    failure_message: Option<&'a str>,
    fraud_details: Empty,
    livemode: bool,
    metadata: &'a Metadata,
    on_behalf_of: Null,
    outcome: OutcomeView<'a>,
    paid: bool,
    payment_intent: Link<'a, IntentView<'a>>,
    payment_method: Option<&'a str>,
    payment_method_details: MethodDetails<'a>,
    receipt_email: Null,
    receipt_number: Null,
    receipt_url: Null,
    refunded: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    refunds: Option<ListView<Shown<RefundView<'a>>>>,
    review: Null,
    shipping: Null,
    source: Null,
    source_transfer: Null,
    statement_descriptor: Null,
    statement_descriptor_suffix: Null,
    status: &'a str,
    transfer_data: Null,
    transfer_group: Null,
}

#[derive(Debug, Serialize)]
struct BillingDetails {
    address: Null,
    email: Null,
    name: Null,
    phone: Null,
}

#[derive(Debug, Serialize)]
struct OutcomeView<'a> {
    advice_code: Option<&'a str>,
    network_advice_code: Null,
    network_decline_code: Null,
    network_status: &'static str,
    reason: Option<&'a str>,
    risk_level: &'static str,
    risk_score: u8,
    seller_message: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Debug, Serialize)]
struct MethodDetails<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    card: Option<CardView>,
    #[serde(rename = "type")]
    kind: &'a str,
}

#[derive(Debug, Serialize)]
struct CardView {
    brand: &'static str,
    country: &'static str,
    exp_month: u8,
    exp_year: u16,
    funding: &'static str,
    last4: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct RefundView<'a> {
    id: &'a str,
    object: &'static str,
    amount: i64,
    balance_transaction: Option<String>,
    charge: Link<'a, ChargeView<'a>>,
    created: i64,
    currency: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_reason: Option<&'a str>,
    metadata: &'a Metadata,
    payment_intent: Link<'a, IntentView<'a>>,
    reason: Option<&'a str>,
    receipt_number: Null,
    source_transfer_reversal: Null,
    status: &'a str,
    transfer_reversal: Null,
}

#[derive(Debug, Serialize)]
pub(super) struct DisputeView<'a> {
    id: &'a str,
    object: &'static str,
    amount: i64,
    charge: &'a str,
    created: i64,
    currency: &'a str,
    evidence_details: Null,
    is_charge_refundable: bool,
    livemode: bool,
    metadata: &'a Metadata,
    payment_intent: Option<&'a str>,
    reason: &'a str,
    status: &'a str,
}

/// A page of a list.
#[derive(Debug, Serialize)]
pub(super) struct ListView<V> {
    pub(super) object: &'static str,
    pub(super) data: Vec<V>,
    pub(super) has_more: bool,
    pub(super) url: String,
}

/// A page of a search.
#[derive(Debug, Serialize)]
pub(super) struct SearchView<V> {
    pub(super) object: &'static str,
    pub(super) data: Vec<V>,
    pub(super) has_more: bool,
    pub(super) next_page: Option<String>,
    pub(super) url: String,
}

pub(super) fn intent<'a>(
    books: &'a Books,
    intent: &'a Intent,
    expand: Expand,
) -> Shown<IntentView<'a>> {
    let head = &intent.head;
    let last = intent.charges.last().map(String::as_str);
    let whole = last.filter(|_| expand.latest_charge).and_then(|id| books.charges.get(id));
    let latest_charge = match whole {
        // The intent inside its charge would be a circle.
        Some(found) => {
            let inner = Expand { payment_intent: false, ..expand };
            Link::Whole(Box::new(charge(books, found, inner)))
        }
        None => Link::Id(last),
    };
    let needs_action = head.status == "requires_action";
    let view = IntentView {
        id: &head.id,
        object: "payment_intent",
        amount: head.amount,
        amount_capturable: intent.amount_capturable,
        amount_details: AmountDetails { tip: Empty {} },
        amount_received: intent.amount_received,
        application: (),
        application_fee_amount: (),
        automatic_payment_methods: (),
        canceled_at: intent.canceled_at,
        cancellation_reason: intent.cancellation_reason.as_deref(),
        capture_method: if intent.manual_capture { "manual" } else { "automatic" },
        client_secret: mint::secret_of(&head.id),
        confirmation_method: "automatic",
        created: head.created,
        currency: &head.currency,
        customer: head.customer.as_deref(),
        description: head.description.as_deref(),
        last_payment_error: intent.failure.as_ref().map(error_view),
        latest_charge,
        livemode: head.livemode,
        metadata: &head.metadata,
        next_action: needs_action
            .then_some(NextAction { kind: "use_stripe_sdk", use_stripe_sdk: Empty {} }),
        on_behalf_of: (),
        payment_method: intent.payment_method.as_deref(),
        payment_method_options: Empty {},
        payment_method_types: [method_kind(&intent.method_type)],
        processing: (),
        receipt_email: (),
        review: (),
        setup_future_usage: (),
        shipping: (),
        source: (),
        statement_descriptor: (),
        statement_descriptor_suffix: (),
        status: &head.status,
        transfer_data: (),
        transfer_group: (),
    };
    lay(view, &head.overlay)
}

pub(super) fn charge<'a>(
    books: &'a Books,
    charge: &'a Charge,
    expand: Expand,
) -> Shown<ChargeView<'a>> {
    let head = &charge.head;
    let failed = head.status == "failed";
    let view = ChargeView {
        id: &head.id,
        object: "charge",
        amount: head.amount,
        amount_captured: charge.amount_captured,
        amount_refunded: charge.amount_refunded,
        application: (),
        application_fee: (),
        application_fee_amount: (),
        balance_transaction: charge.captured.then(|| booking_of(&head.id)),
        billing_details: BillingDetails { address: (), email: (), name: (), phone: () },
        calculated_statement_descriptor: (),
        captured: charge.captured,
        created: head.created,
        currency: &head.currency,
        customer: head.customer.as_deref(),
        description: head.description.as_deref(),
        dispute: charge.dispute.as_deref(),
        disputed: charge.dispute.is_some(),
        failure_balance_transaction: (),
        failure_code: charge.failure.as_ref().map(|failure| failure.code.as_str()),
        failure_message: charge.failure.as_ref().map(|failure| failure.message.as_str()),
        fraud_details: Empty {},
        livemode: head.livemode,
        metadata: &head.metadata,
        on_behalf_of: (),
        outcome: outcome_view(charge),
        paid: !failed && head.status != "pending",
        payment_intent: intent_link(books, charge.intent.as_deref(), expand),
        payment_method: charge.payment_method.as_deref(),
        payment_method_details: method_details(&charge.method_type),
        receipt_email: (),
        receipt_number: (),
        receipt_url: (),
        refunded: charge.refunded,
        refunds: expand.refunds.then(|| refunds_of(books, charge)),
        review: (),
        shipping: (),
        source: (),
        source_transfer: (),
        statement_descriptor: (),
        statement_descriptor_suffix: (),
        status: &head.status,
        transfer_data: (),
        transfer_group: (),
    };
    lay(view, &head.overlay)
}

pub(super) fn refund<'a>(
    books: &'a Books,
    refund: &'a Refund,
    expand: Expand,
) -> Shown<RefundView<'a>> {
    let head = &refund.head;
    let id = refund.charge.as_deref();
    let charge = match id.filter(|_| expand.charge).and_then(|id| books.charges.get(id)) {
        Some(found) => Link::Whole(Box::new(charge(books, found, Expand::default()))),
        None => Link::Id(id),
    };
    let view = RefundView {
        id: &head.id,
        object: "refund",
        amount: head.amount,
        balance_transaction: (head.status == "succeeded").then(|| booking_of(&head.id)),
        charge,
        created: head.created,
        currency: &head.currency,
        failure_reason: refund.failure_reason.as_deref(),
        metadata: &head.metadata,
        payment_intent: intent_link(books, refund.intent.as_deref(), expand),
        reason: refund.reason.as_deref(),
        receipt_number: (),
        source_transfer_reversal: (),
        status: &head.status,
        transfer_reversal: (),
    };
    lay(view, &head.overlay)
}

pub(super) fn dispute(dispute: &Dispute) -> Shown<DisputeView<'_>> {
    let head = &dispute.head;
    let view = DisputeView {
        id: &head.id,
        object: "dispute",
        amount: head.amount,
        charge: &dispute.charge,
        created: head.created,
        currency: &head.currency,
        evidence_details: (),
        is_charge_refundable: false,
        livemode: head.livemode,
        metadata: &head.metadata,
        payment_intent: dispute.intent.as_deref(),
        reason: &dispute.reason,
        status: &head.status,
    };
    lay(view, &head.overlay)
}

/// The members of a 402's error object, beside its code and message.
pub(super) fn decline_members(
    books: &Books,
    failure: &Failure,
    found: Option<&Intent>,
) -> Map<String, Value> {
    let mut more = Map::new();
    for (name, text) in [
        ("decline_code", &failure.decline_code),
        ("advice_code", &failure.advice_code),
        ("charge", &failure.charge),
    ] {
        if let Some(text) = text {
            more.insert(name.to_owned(), json!(text));
        }
    }
    if let Some(found) = found {
        more.insert("payment_intent".to_owned(), value(&intent(books, found, Expand::default())));
    }
    more
}

/// A view as a tree, for what changes answers.
pub(super) fn value<V: Serialize>(view: &V) -> Value {
    serde_json::to_value(view).unwrap_or(Value::Null)
}

fn lay<V: Serialize>(view: V, overlay: &Overlay) -> Shown<V> {
    let Some(overlay) = overlay else { return Shown::Plain(view) };
    let mut whole = value(&view);
    lay_over(&mut whole, &Value::Object((**overlay).clone()));
    Shown::Laid(whole)
}

/// Lays objects over objects, member by member; anything else replaces what was there.
pub(super) fn lay_over(under: &mut Value, over: &Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                lay_over(under.entry(key.as_str()).or_insert(Value::Null), value);
            }
        }
        (under, over) => *under = over.clone(),
    }
}

fn intent_link<'a>(
    books: &'a Books,
    id: Option<&'a str>,
    expand: Expand,
) -> Link<'a, IntentView<'a>> {
    match id.filter(|_| expand.payment_intent).and_then(|id| books.intents.get(id)) {
        Some(found) => Link::Whole(Box::new(intent(books, found, Expand::default()))),
        None => Link::Id(id),
    }
}

fn refunds_of<'a>(books: &'a Books, charge: &'a Charge) -> ListView<Shown<RefundView<'a>>> {
    let newest = charge.refunds.iter().rev().filter_map(|id| books.refunds.get(id));
    ListView {
        object: "list",
        data: newest.map(|found| refund(books, found, Expand::default())).collect(),
        has_more: false,
        url: format!("/v1/charges/{}/refunds", charge.head.id),
    }
}

fn error_view(failure: &Failure) -> ErrorView<'_> {
    ErrorView {
        charge: failure.charge.as_deref(),
        code: &failure.code,
        decline_code: failure.decline_code.as_deref(),
        advice_code: failure.advice_code.as_deref(),
        message: &failure.message,
        payment_method: failure.payment_method.as_deref().map(|id| MethodView {
            id,
            object: "payment_method",
            kind: "card",
        }),
        kind: "card_error",
    }
}

fn outcome_view(charge: &Charge) -> OutcomeView<'_> {
    let failure = charge.failure.as_ref();
    let (network_status, kind, seller_message) = match (failure, charge.blocked) {
        (_, true) => ("not_sent_to_network", "blocked", "Blocked before it was sent."),
        (Some(_), false) => ("declined_by_network", "issuer_declined", "The bank declined."),
        (None, false) => ("approved_by_network", "authorized", "Payment complete."),
    };
    OutcomeView {
        advice_code: failure.and_then(|failure| failure.advice_code.as_deref()),
        network_advice_code: (),
        network_decline_code: (),
        network_status,
        reason: failure
            .and_then(|failure| failure.decline_code.as_deref().or(Some(failure.code.as_str()))),
        risk_level: if charge.blocked { "highest" } else { "normal" },
        risk_score: if charge.blocked { 90 } else { 12 },
        seller_message,
        kind,
    }
}

fn method_details(kind: &str) -> MethodDetails<'_> {
    let kind = method_kind(kind);
    let card = (kind == "card").then_some(CardView {
        brand: "visa",
        country: "US",
        exp_month: 8,
        exp_year: 2034,
        funding: "credit",
        last4: "4242",
    });
    MethodDetails { card, kind }
}

fn method_kind(kind: &str) -> &str {
    if kind.is_empty() { "card" } else { kind }
}

/// The id of the balance transaction that an object's own id stands for.
fn booking_of(id: &str) -> String {
    let (_, tail) = id.split_once('_').unwrap_or(("", id));
    format!("txn_{tail}")
}
