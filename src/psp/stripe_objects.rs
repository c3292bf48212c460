//! Stripe's JSON as objects of evidence: what each status, failure and amount means.
//!
//! Reads only the fields that a verdict needs and ignores the rest; a field of another type than
//! expected fails the whole page, which is then no answer. A status that this file does not name
//! becomes [`ObjectState::Unknown`], never a guess. Every status that Stripe's reference names
//! stands in the table of the tests below.

use std::collections::HashMap;
use std::fmt;

use chrono::{DateTime, TimeDelta};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};

use crate::model::evidence::{Failure, ObjectState, PspObject};
use crate::model::money::Money;
use crate::model::time::{Instant, later};
use crate::psp::settings::OursField;
use crate::psp::stripe_money::money;

/// From when a failure of a payment method that does not answer at once is believed: bank debits
/// and vouchers report for days, and a bank may present a debit again by itself.
const SLOW_FAILURE_FINAL_AFTER: TimeDelta = TimeDelta::days(7);

/// Payment methods whose failure is final when stated. Source: docs.stripe.com/payments/
/// payment-methods, "immediate notification". What is missing here counts as slow.
const IMMEDIATE_METHODS: &[&str] = &[
    "affirm",
    "afterpay_clearpay",
    "alipay",
    "amazon_pay",
    "bancontact",
    "blik",
    "card",
    "card_present",
    "cashapp",
    "eps",
    "fpx",
    "giropay",
    "grabpay",
    "ideal",
    "interac_present",
    "klarna",
    "link",
    "mobilepay",
    "p24",
    "paypal",
    "revolut_pay",
    "swish",
    "twint",
    "wechat_pay",
    "zip",
];

/// A page of a list.
#[derive(Debug, Deserialize)]
pub(super) struct Page<T> {
    pub(super) object: String,
    pub(super) data: Vec<T>,
    pub(super) has_more: bool,
}

/// A page of search results.
#[derive(Debug, Deserialize)]
pub(super) struct SearchPage<T> {
    pub(super) object: String,
    pub(super) data: Vec<T>,
    pub(super) has_more: bool,
    #[serde(default)]
    pub(super) next_page: Option<String>,
}

/// A reference that may have been expanded into its object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Link<T> {
    Id(String),
    Whole(Box<T>),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Link<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = Link<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an id or an expanded object")
            }
            fn visit_str<E>(self, id: &str) -> Result<Self::Value, E> {
                Ok(Link::Id(id.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|o| Link::Whole(Box::new(o)))
            }
        }
        deserializer.deserialize_any(Either(std::marker::PhantomData))
    }
}

/// A PaymentIntent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Intent {
    pub(super) id: String,
    pub(super) object: String,
    pub(super) created: i64,
    pub(super) livemode: Option<bool>,
    pub(super) amount: i64,
    pub(super) amount_received: Option<i64>,
    pub(super) amount_capturable: Option<i64>,
    pub(super) currency: String,
    pub(super) status: String,
    pub(super) metadata: Option<HashMap<String, String>>,
    pub(super) latest_charge: Option<Link<Charge>>,
    pub(super) last_payment_error: Option<PaymentError>,
    pub(super) cancellation_reason: Option<String>,
    pub(super) description: Option<String>,
    pub(super) application: Option<Link<Named>>,
    pub(super) transfer_group: Option<String>,
    pub(super) statement_descriptor: Option<String>,
}

/// A Charge.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Charge {
    pub(super) id: String,
    pub(super) object: String,
    pub(super) created: i64,
    pub(super) livemode: Option<bool>,
    pub(super) amount: i64,
    pub(super) amount_captured: Option<i64>,
    pub(super) amount_refunded: Option<i64>,
    pub(super) refunded: Option<bool>,
    pub(super) captured: Option<bool>,
    pub(super) paid: Option<bool>,
    pub(super) disputed: Option<bool>,
    pub(super) currency: String,
    pub(super) status: String,
    pub(super) metadata: Option<HashMap<String, String>>,
    pub(super) payment_intent: Option<Link<Intent>>,
    pub(super) failure_code: Option<String>,
    pub(super) failure_balance_transaction: Option<Link<Named>>,
    pub(super) outcome: Option<ChargeOutcome>,
    pub(super) payment_method_details: Option<MethodType>,
    pub(super) description: Option<String>,
    pub(super) application: Option<Link<Named>>,
    pub(super) transfer_group: Option<String>,
    pub(super) statement_descriptor: Option<String>,
}

/// A Refund.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Refund {
    pub(super) id: String,
    pub(super) object: String,
    pub(super) created: i64,
    pub(super) amount: i64,
    pub(super) currency: String,
    pub(super) status: Option<String>,
    pub(super) metadata: Option<HashMap<String, String>>,
    pub(super) charge: Option<Link<Named>>,
    pub(super) payment_intent: Option<Link<Named>>,
    pub(super) failure_reason: Option<String>,
    pub(super) description: Option<String>,
}

/// An object of which only the id matters.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Named {
    pub(super) id: String,
}

/// The last failed attempt of an intent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct PaymentError {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) code: Option<String>,
    pub(super) decline_code: Option<String>,
    pub(super) advice_code: Option<String>,
    pub(super) network_advice_code: Option<String>,
    pub(super) payment_method: Option<MethodType>,
}

/// How the network and Stripe's own checks judged a charge.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct ChargeOutcome {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) advice_code: Option<String>,
    pub(super) network_advice_code: Option<String>,
}

/// A payment method, of which only the type matters.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct MethodType {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
}

/// A Unix second as an instant.
pub(super) fn at(secs: i64) -> Option<Instant> {
    DateTime::from_timestamp(secs, 0)
}

/// The wholly read objects of one payment or refund.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) intent: Option<Intent>,
    pub(super) charges: Vec<Charge>,
    pub(super) refund: Option<Refund>,
    /// Two readings of the intent differ: it moved while it was read, and is to be read again.
    pub(super) moved: bool,
}

impl Parts {
    /// Adds another reading of the same payment.
    pub(super) fn merge(&mut self, other: Parts) {
        self.moved |= other.moved;
        self.refund = other.refund.or(self.refund.take());
        for charge in other.charges {
            self.charges.retain(|known| known.id != charge.id);
            // Nearly always the only one: no room for three more.
            self.charges.reserve_exact(1);
            self.charges.push(charge);
        }
        self.intent = match (self.intent.take(), other.intent) {
            (Some(known), Some(new)) => {
                self.moved |= known.standing() != new.standing();
                let keep_known = known.has_whole_charge() && !new.has_whole_charge();
                Some(if keep_known { known } else { new })
            }
            (known, new) => new.or(known),
        };
    }

    /// Whether everything that the verdict reads is here: the intent of a charge, and the charge
    /// of an intent (refunds and disputes stand on it), in one consistent reading.
    pub(super) fn is_whole(&self) -> bool {
        if self.refund.is_some() {
            return true;
        }
        let Some(intent) = &self.intent else {
            return self.charges.iter().all(|charge| charge.payment_intent.is_none());
        };
        let took = !intent.took_money() && self.charges.iter().any(Charge::took_money);
        !self.moved && !took && self.missing_charge().is_none()
    }

    /// Everything is here and agrees, but for the latest charge.
    pub(super) fn lacks_charge_only(&self) -> bool {
        self.intent.is_some() && !self.moved && self.missing_charge().is_some()
    }

    /// Puts a reading of this moment over what was read before.
    pub(super) fn take_fresh(&mut self, fresh: Parts) {
        self.intent = fresh.intent.or(self.intent.take());
        for charge in fresh.charges {
            self.charges.retain(|known| known.id != charge.id);
            self.charges.push(charge);
        }
        self.moved = false;
    }

    /// The intent's latest charge, where only its id is known.
    pub(super) fn missing_charge(&self) -> Option<&str> {
        match self.intent.as_ref()?.latest_charge.as_ref()? {
            Link::Id(id) if self.charges.iter().all(|charge| charge.id != *id) => Some(id),
            Link::Id(_) | Link::Whole(_) => None,
        }
    }

    /// The charges that are here, one as often as it was read.
    fn all_charges(&self) -> impl Iterator<Item = &Charge> {
        let latest = self.intent.as_ref().and_then(|intent| intent.latest_charge.as_ref());
        let latest = latest.and_then(|link| match link {
            Link::Id(_) => None,
            Link::Whole(charge) => Some(charge.as_ref()),
        });
        self.charges.iter().chain(latest)
    }

    /// The most that one of the charges says was given back: of one payment just one takes money.
    pub(super) fn given_back(&self) -> i64 {
        self.all_charges().map(Charge::given_back).max().unwrap_or(0)
    }

    /// Whether one of the charges was disputed.
    pub(super) fn is_disputed(&self) -> bool {
        self.all_charges().any(|charge| charge.disputed == Some(true))
    }

    /// Every id that this payment is known by: its intent's and its charges'.
    pub(super) fn ids(&self) -> Vec<String> {
        let intents = self.intent.iter().map(|intent| intent.id.clone());
        let latest = self.intent.as_ref().and_then(|intent| intent.latest_charge.as_ref());
        let latest = latest.map(|link| match link {
            Link::Id(id) => id.clone(),
            Link::Whole(charge) => charge.id.clone(),
        });
        let charges = self.charges.iter().map(|charge| charge.id.clone());
        let parents = self.charges.iter().filter_map(Charge::intent_id).map(str::to_owned);
        intents.chain(latest).chain(charges).chain(parents).collect()
    }

    /// The object of evidence; `None` for a time that no calendar has.
    pub(super) fn object(&self, tag_key: &str) -> Option<PspObject> {
        if let Some(refund) = &self.refund {
            return refund_object(refund, tag_key);
        }
        match &self.intent {
            Some(intent) => intent_object(intent, &self.charges, tag_key),
            None => self.charges.last().and_then(|charge| charge_object(charge, tag_key)),
        }
    }
}

fn own_tag(metadata: Option<&HashMap<String, String>>, key: &str) -> Option<String> {
    metadata.and_then(|metadata| metadata.get(key)).cloned()
}

impl Intent {
    /// What must agree between two readings of one moment.
    fn standing(&self) -> (&str, i64, i64, Option<&str>) {
        let charge = self.latest_charge.as_ref().map(|link| match link {
            Link::Id(id) => id.as_str(),
            Link::Whole(charge) => charge.id.as_str(),
        });
        let (received, open) = (self.amount_received, self.amount_capturable);
        (&self.status, received.unwrap_or(0), open.unwrap_or(0), charge)
    }

    fn has_whole_charge(&self) -> bool {
        matches!(self.latest_charge, Some(Link::Whole(_)))
    }

    pub(super) fn tag(&self, key: &str) -> Option<String> {
        own_tag(self.metadata.as_ref(), key)
    }

    pub(super) fn field(&self, field: &OursField) -> Option<String> {
        match field {
            OursField::Metadata(key) => own_tag(self.metadata.as_ref(), key),
            OursField::Description => self.description.clone(),
            OursField::Application => self.application.as_ref().map(link_id),
            OursField::TransferGroup => self.transfer_group.clone(),
            OursField::StatementDescriptor => self.statement_descriptor.clone(),
        }
    }

    fn took_money(&self) -> bool {
        self.amount_received.unwrap_or(0) > 0 || self.status == "succeeded"
    }

    /// What came in, where the intent says it. Stripe always does; servers that speak its API may
    /// leave it to the charges, and a sum that nobody stated is not zero.
    pub(super) fn captured(&self) -> Option<Money> {
        let received = self.amount_received?;
        self.took_money().then(|| money(received, &self.currency)).flatten()
    }

    /// What can still be captured, in ISO minor units. Stripe always says it; servers that speak
    /// its API may leave it to the charges, and those of an intent that ended hold nothing.
    fn capturable(&self, charges: &[&Charge]) -> i64 {
        let is_over = self.took_money() || self.status == "canceled";
        match self.amount_capturable {
            Some(open) => iso_minor(open, &self.currency).max(0),
            None if is_over => 0,
            None => charges.iter().map(|charge| charge.capturable()).max().unwrap_or(0),
        }
    }
}

impl Charge {
    pub(super) fn tag(&self, key: &str) -> Option<String> {
        let intents = || match &self.payment_intent {
            Some(Link::Whole(intent)) => intent.tag(key),
            Some(Link::Id(_)) | None => None,
        };
        own_tag(self.metadata.as_ref(), key).or_else(intents)
    }

    pub(super) fn field(&self, field: &OursField) -> Option<String> {
        let own = match field {
            OursField::Metadata(key) => own_tag(self.metadata.as_ref(), key),
            OursField::Description => self.description.clone(),
            OursField::Application => self.application.as_ref().map(link_id),
            OursField::TransferGroup => self.transfer_group.clone(),
            OursField::StatementDescriptor => self.statement_descriptor.clone(),
        };
        match &self.payment_intent {
            Some(Link::Whole(intent)) => own.or_else(|| intent.field(field)),
            Some(Link::Id(_)) | None => own,
        }
    }

    pub(super) fn intent_id(&self) -> Option<&str> {
        self.payment_intent.as_ref().map(|link| match link {
            Link::Id(id) => id.as_str(),
            Link::Whole(intent) => intent.id.as_str(),
        })
    }

    fn took_money(&self) -> bool {
        self.status == "succeeded" && self.captured != Some(false)
    }

    pub(super) fn captured_money(&self) -> Option<Money> {
        // Before API version 2020-03-02 a captured charge had no amount_captured.
        let amount = self.amount_captured.unwrap_or(self.amount);
        self.took_money().then(|| money(amount, &self.currency)).flatten()
    }

    /// What was given back, in ISO minor units; a debit that bounced was given back whole.
    fn given_back(&self) -> i64 {
        if !self.took_money() {
            return 0;
        }
        let bounced = self.failure_balance_transaction.is_some() || self.refunded == Some(true);
        let amount = match self.amount_refunded {
            Some(refunded) if refunded != 0 => refunded,
            Some(_) | None if bounced => self.amount,
            Some(_) | None => 0,
        };
        iso_minor(amount, &self.currency)
    }

    /// What can still be captured, in ISO minor units: of an authorisation that stands, what was
    /// neither captured nor released. A status that nobody knows may be one, unless `paid` says
    /// that it is not.
    fn capturable(&self) -> i64 {
        let holds_none = matches!(self.status.as_str(), "failed" | "pending");
        let is_denied = self.paid == Some(false) && self.status != "succeeded";
        let is_held = self.captured == Some(false) && self.refunded != Some(true);
        if holds_none || is_denied || !is_held {
            return 0;
        }
        let gone = self.amount_captured.unwrap_or(0).max(0);
        let gone = gone.saturating_add(self.amount_refunded.unwrap_or(0).max(0));
        iso_minor(self.amount.saturating_sub(gone), &self.currency).max(0)
    }

    fn failure(&self) -> Failure {
        let outcome = self.outcome.as_ref();
        let blocked = outcome.and_then(|o| o.kind.as_deref()) == Some("blocked");
        let reason = outcome.and_then(|o| o.reason.clone());
        let code = match (&self.failure_code, reason) {
            _ if blocked => "blocked".to_owned(),
            (Some(code), Some(reason)) if code == "card_declined" => reason,
            (Some(code), _) => code.clone(),
            (None, Some(reason)) => reason,
            (None, None) => "unstated".to_owned(),
        };
        let method = self.payment_method_details.as_ref().and_then(|m| m.kind.as_deref());
        let is_card = method.is_none() && self.failure_code.as_deref() == Some("card_declined");
        Failure {
            code,
            advice: outcome.and_then(|o| o.advice_code.clone()),
            network_advice: outcome.and_then(|o| o.network_advice_code.clone()),
            final_from: final_from(self.created, if is_card { Some("card") } else { method }),
            still_payable: false,
        }
    }
}

impl Refund {
    pub(super) fn tag(&self, key: &str) -> Option<String> {
        own_tag(self.metadata.as_ref(), key)
    }

    pub(super) fn field(&self, field: &OursField) -> Option<String> {
        match field {
            OursField::Metadata(key) => own_tag(self.metadata.as_ref(), key),
            OursField::Description => self.description.clone(),
            OursField::Application | OursField::TransferGroup | OursField::StatementDescriptor => {
                None
            }
        }
    }

    /// The payment that it gives back: its intent, or a charge without one.
    pub(super) fn payment(&self) -> Option<String> {
        self.payment_intent.as_ref().or(self.charge.as_ref()).map(link_id)
    }

    pub(super) fn captured_money(&self) -> Option<Money> {
        (self.status.as_deref() == Some("succeeded"))
            .then(|| money(self.amount, &self.currency))
            .flatten()
    }
}

fn link_id(link: &Link<Named>) -> String {
    match link {
        Link::Id(id) => id.clone(),
        Link::Whole(named) => named.id.clone(),
    }
}

/// In ISO minor units. An amount that ISO cannot hold still is one: it must not read as "none".
fn iso_minor(amount: i64, currency: &str) -> i64 {
    money(amount, currency).map_or(amount, |money| money.minor)
}

fn final_from(created: i64, method: Option<&str>) -> Option<Instant> {
    let created = at(created)?;
    let at_once = method.is_some_and(|method| IMMEDIATE_METHODS.contains(&method));
    Some(if at_once { created } else { later(created, SLOW_FAILURE_FINAL_AFTER) })
}

/// An intent with the charges that were seen of it.
fn intent_object(intent: &Intent, seen: &[Charge], tag_key: &str) -> Option<PspObject> {
    let latest = match &intent.latest_charge {
        Some(Link::Whole(charge)) => Some(charge.as_ref()),
        Some(Link::Id(id)) => seen.iter().find(|charge| charge.id == *id),
        None => None,
    };
    let mut charges: Vec<&Charge> = seen.iter().collect();
    charges.extend(latest.filter(|charge| seen.iter().all(|known| known.id != charge.id)));
    let mut aliases: Vec<String> = charges.iter().map(|charge| charge.id.clone()).collect();
    if let Some(Link::Id(id)) = intent.latest_charge.as_ref().filter(|_| latest.is_none()) {
        aliases.push(id.clone());
    }
    // The latest charge may have been read twice: money given back in either reading counts.
    let given_back = |charge: &&Charge| {
        let again = latest.filter(|latest| latest.id == charge.id).map_or(0, Charge::given_back);
        charge.given_back().max(again)
    };
    let disputed = charges.iter().copied().chain(latest).any(|c| c.disputed == Some(true));
    let tag = intent.tag(tag_key).or_else(|| charges.iter().find_map(|c| c.tag(tag_key)));
    Some(PspObject {
        reference: intent.id.clone(),
        aliases,
        kind: "payment_intent".to_owned(),
        state: intent_state(intent, latest),
        status: intent_status(intent),
        amount: money(intent.amount, &intent.currency),
        captured: intent.captured().or_else(|| captured_by(intent, &charges)),
        refunded_minor: charges.iter().fold(0, |sum, c| given_back(c).saturating_add(sum)),
        capturable_minor: intent.capturable(&charges),
        disputed,
        charged_back_minor: 0,
        beyond_minor: 0,
        created_at: at(intent.created)?,
        tag,
        returned: None,
    })
}

/// What the charges of an intent captured, where the intent itself does not say it.
fn captured_by(intent: &Intent, charges: &[&Charge]) -> Option<Money> {
    if intent.amount_received.is_some() || !intent.took_money() {
        return None;
    }
    let mut sums = charges.iter().filter_map(|charge| charge.captured_money());
    let first = sums.next()?;
    sums.try_fold(first, |sum, next| {
        let minor = sum.minor.checked_add(next.minor)?;
        (sum.currency == next.currency).then_some(Money { minor, ..sum })
    })
}

/// The PSP's own word, with the reason of a cancellation: `canceled:duplicate`.
fn intent_status(intent: &Intent) -> String {
    match &intent.cancellation_reason {
        Some(reason) if intent.status == "canceled" => format!("canceled:{reason}"),
        Some(_) | None => intent.status.clone(),
    }
}

fn intent_state(intent: &Intent, latest: Option<&Charge>) -> ObjectState {
    match intent.status.as_str() {
        "succeeded" => ObjectState::Captured,
        "processing" => ObjectState::InFlight,
        "requires_capture" => ObjectState::Authorized,
        "requires_action" => ObjectState::ActionRequired,
        "requires_payment_method" | "requires_confirmation" => open_state(intent, latest),
        "canceled" if intent.cancellation_reason.as_deref() == Some("automatic") => {
            ObjectState::Expired
        }
        "canceled" => ObjectState::Canceled,
        _unknown => ObjectState::Unknown,
    }
}

/// An intent that can still be paid: after a failed attempt, or never attempted.
fn open_state(intent: &Intent, latest: Option<&Charge>) -> ObjectState {
    let Some(error) = &intent.last_payment_error else {
        return match latest {
            Some(charge) => {
                ObjectState::Failed(Failure { still_payable: true, ..charge.failure() })
            }
            // Known by its id alone: an attempt was made, and what became of it is not known.
            None if intent.latest_charge.is_some() => ObjectState::Unknown,
            None => ObjectState::Unattempted,
        };
    };
    let code = error.decline_code.as_ref().or(error.code.as_ref());
    let method = error.payment_method.as_ref().and_then(|m| m.kind.as_deref()).or_else(|| {
        latest.and_then(|c| c.payment_method_details.as_ref()).and_then(|m| m.kind.as_deref())
    });
    let is_card = method.is_none() && error.kind.as_deref() == Some("card_error");
    let attempted = latest.map_or(intent.created, |charge| charge.created);
    ObjectState::Failed(Failure {
        code: code.cloned().unwrap_or_else(|| "unstated".to_owned()),
        advice: error.advice_code.clone(),
        network_advice: error.network_advice_code.clone(),
        final_from: final_from(attempted, if is_card { Some("card") } else { method }),
        still_payable: true,
    })
}

/// A charge that belongs to no intent, or whose intent could not be had.
fn charge_object(charge: &Charge, tag_key: &str) -> Option<PspObject> {
    let state = match (charge.status.as_str(), charge.captured) {
        ("succeeded", Some(false)) if charge.refunded == Some(true) => ObjectState::Canceled,
        ("succeeded", Some(false)) => ObjectState::Authorized,
        ("succeeded", Some(true) | None) => ObjectState::Captured,
        ("pending", _) => ObjectState::InFlight,
        ("failed", _) => ObjectState::Failed(charge.failure()),
        _unknown => ObjectState::Unknown,
    };
    let (reference, aliases) = match charge.intent_id() {
        Some(intent) => (intent.to_owned(), vec![charge.id.clone()]),
        None => (charge.id.clone(), Vec::new()),
    };
    Some(PspObject {
        reference,
        aliases,
        kind: "charge".to_owned(),
        state,
        status: charge.status.clone(),
        amount: money(charge.amount, &charge.currency),
        captured: charge.captured_money(),
        refunded_minor: charge.given_back(),
        capturable_minor: charge.capturable(),
        disputed: charge.disputed == Some(true),
        charged_back_minor: 0,
        beyond_minor: 0,
        created_at: at(charge.created)?,
        tag: charge.tag(tag_key),
        returned: None,
    })
}

fn refund_object(refund: &Refund, tag_key: &str) -> Option<PspObject> {
    let status = refund.status.as_deref().unwrap_or("none");
    let state = match status {
        "succeeded" => ObjectState::Captured,
        "pending" => ObjectState::InFlight,
        "requires_action" => ObjectState::ActionRequired,
        "failed" => ObjectState::Failed(Failure {
            code: refund.failure_reason.clone().unwrap_or_else(|| "unstated".to_owned()),
            advice: None,
            network_advice: None,
            final_from: at(refund.created),
            still_payable: false,
        }),
        "canceled" => ObjectState::Canceled,
        _unknown => ObjectState::Unknown,
    };
    Some(PspObject {
        reference: refund.id.clone(),
        aliases: Vec::new(),
        kind: "refund".to_owned(),
        state,
        status: status.to_owned(),
        amount: money(refund.amount, &refund.currency),
        captured: refund.captured_money(),
        refunded_minor: 0,
        capturable_minor: 0,
        disputed: false,
        charged_back_minor: 0,
        beyond_minor: 0,
        created_at: at(refund.created)?,
        tag: refund.tag(tag_key),
        returned: None,
    })
}

#[cfg(test)]
mod tests;
