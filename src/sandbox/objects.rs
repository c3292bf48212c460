//! The objects that the sandbox keeps, as facts; how they look over the wire is in `views`.
//!
//! Only what a test, a rehearsal or an adapter can tell apart is a field. Everything else of
//! Stripe's objects is a constant of the view, or laid over a single object by its `overlay`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// A word of Stripe's, nearly always one of those known at compile time.
pub(super) type Word = Cow<'static, str>;

/// Members laid over what the API shows of one object; none for nearly all of them.
pub(super) type Overlay = Option<Box<Map<String, Value>>>;

/// Metadata, small and sorted by key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Metadata(Vec<(String, String)>);

impl Metadata {
    pub(super) fn of(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(pairs.into_iter().collect::<BTreeMap<_, _>>().into_iter().collect())
    }

    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Sets one key; an empty value takes the key away, as at Stripe.
    pub(super) fn set(&mut self, key: &str, value: &str) {
        let mut pairs: BTreeMap<String, String> = std::mem::take(&mut self.0).into_iter().collect();
        if value.is_empty() {
            pairs.remove(key);
        } else {
            pairs.insert(key.to_owned(), value.to_owned());
        }
        self.0 = pairs.into_iter().collect();
    }
}

impl Serialize for Metadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// What lists, searches and fetches need to know of any object.
pub(super) trait Record {
    fn id(&self) -> &str;
    fn created(&self) -> i64;
    /// When the sandbox got it, in milliseconds; search's lag counts from here.
    fn landed_ms(&self) -> i64;
    fn metadata(&self) -> &Metadata;
    fn amount(&self) -> i64;
    fn currency(&self) -> &str;
    fn customer(&self) -> Option<&str>;
    fn status(&self) -> &str;
}

/// Why an attempt failed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) code: String,
    pub(super) decline_code: Option<String>,
    pub(super) advice_code: Option<String>,
    pub(super) message: String,
    pub(super) charge: Option<String>,
    pub(super) payment_method: Option<String>,
}

/// The head that every object has.
#[derive(Debug, Clone, Default)]
pub(super) struct Head {
    pub(super) id: String,
    pub(super) created: i64,
    pub(super) landed_ms: i64,
    pub(super) amount: i64,
    pub(super) currency: String,
    pub(super) customer: Option<String>,
    pub(super) description: Option<String>,
    pub(super) metadata: Metadata,
    pub(super) status: Word,
    pub(super) livemode: bool,
    pub(super) overlay: Overlay,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Intent {
    pub(super) head: Head,
    pub(super) manual_capture: bool,
    pub(super) payment_method: Option<String>,
    pub(super) method_type: Word,
    pub(super) amount_received: i64,
    pub(super) amount_capturable: i64,
    pub(super) failure: Option<Failure>,
    pub(super) canceled_at: Option<i64>,
    pub(super) cancellation_reason: Option<String>,
    /// The ids of its charges, oldest first.
    pub(super) charges: Vec<String>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Charge {
    pub(super) head: Head,
    pub(super) intent: Option<String>,
    pub(super) payment_method: Option<String>,
    pub(super) method_type: Word,
    pub(super) captured: bool,
    pub(super) amount_captured: i64,
    pub(super) amount_refunded: i64,
    pub(super) refunded: bool,
    pub(super) dispute: Option<String>,
    pub(super) blocked: bool,
    pub(super) failure: Option<Failure>,
    /// The ids of its refunds, oldest first.
    pub(super) refunds: Vec<String>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Refund {
    pub(super) head: Head,
    pub(super) charge: Option<String>,
    pub(super) intent: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) failure_reason: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Dispute {
    pub(super) head: Head,
    pub(super) charge: String,
    pub(super) intent: Option<String>,
    pub(super) reason: Word,
}

macro_rules! records {
    ($($kind:ty),+) => {$(
        impl Record for $kind {
            fn id(&self) -> &str { &self.head.id }
            fn created(&self) -> i64 { self.head.created }
            fn landed_ms(&self) -> i64 { self.head.landed_ms }
            fn metadata(&self) -> &Metadata { &self.head.metadata }
            fn amount(&self) -> i64 { self.head.amount }
            fn currency(&self) -> &str { &self.head.currency }
            fn customer(&self) -> Option<&str> { self.head.customer.as_deref() }
            fn status(&self) -> &str { &self.head.status }
        }
    )+};
}
records!(Intent, Charge, Refund, Dispute);
