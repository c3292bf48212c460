//! What one source said of one tag, and how completely it was asked.

use serde::{Deserialize, Serialize};

use crate::model::lean::is_default;
use crate::model::money::Money;
use crate::model::time::Instant;

/// Version of the JSON that evidence is stored as. Fields are only ever added.
pub const EVIDENCE_SCHEMA: u32 = 1;

/// By which way a source was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Route {
    /// One object by the PSP's own reference.
    Fetch,
    /// A search index, by the tag.
    Search,
    /// Every object of a window of creation times.
    List,
    /// Settlement or report files.
    File,
}

impl Route {
    /// The word in journals and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fetch => "fetch",
            Self::Search => "search",
            Self::List => "list",
            Self::File => "file",
        }
    }
}

/// One source's answer about one row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The PSP account asked.
    pub account: String,
    /// By which way.
    pub route: Route,
    /// When the first request of this question was sent (the database's clock).
    pub asked_at: Instant,
    /// What came back.
    pub answer: Answer,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Objects under this tag or reference.
    Found {
        /// Folded: a PSP's child objects stand within their parent.
        objects: Vec<PspObject>,
        /// Present where the whole window was read, so that no further object hides in it.
        #[serde(default, skip_serializing_if = "is_default")]
        search: Option<CompleteSearch>,
    },
    /// A search read to its end saw nothing under this tag.
    Nothing(CompleteSearch),
    /// The PSP says that it knows no such reference.
    UnknownReference(String),
    /// No answer: an error is never an answer.
    NoAnswer(Cause),
}

/// Why there is no answer. None of these may ever count against a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// What kind of failure.
    pub kind: CauseKind,
    /// One sentence, redacted.
    pub detail: String,
}

/// The kinds of no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// DNS, refused, reset, connect time-out.
    Unreachable,
    /// The deadline of the whole answer passed.
    TimedOut,
    /// 5xx.
    ServerError,
    /// 429, or a quota.
    RateLimited,
    /// The body could not be read: not JSON, truncated, wrong schema, too large.
    Unreadable,
    /// Paging did not reach a provable end, or the server ignored the window.
    Incomplete,
    /// The account's breaker is open: not asked.
    BreakerOpen,
    /// The account is paused, or was stopped earlier in this run (401, wrong mode).
    AccountStopped,
    /// The run was asked to stop before the question was put.
    Interrupted,
}

impl CauseKind {
    /// The word in journals and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::TimedOut => "timed_out",
            Self::ServerError => "server_error",
            Self::RateLimited => "rate_limited",
            Self::Unreadable => "unreadable",
            Self::Incomplete => "incomplete",
            Self::BreakerOpen => "breaker_open",
            Self::AccountStopped => "account_stopped",
            Self::Interrupted => "interrupted",
        }
    }
}

/// A search that was read to its end, and what it covered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompleteSearch {
    /// By which way.
    pub route: Route,
    /// The object kinds it covered: `payment_intent`, `charge`, `refund`.
    pub kinds: Vec<String>,
    /// Creation times from here (inclusive) …
    pub from: Instant,
    /// … to here (exclusive).
    pub to: Instant,
    /// When its first request was sent (the database's clock).
    pub asked_at: Instant,
    /// Whether the adapter says that a miss of this route counts (a lagging index never does).
    pub counts_as_miss: bool,
    /// How far the route may lag behind, in seconds.
    pub lag_secs: i64,
    /// Clock difference, PSP minus database, in seconds, where a Date header told.
    #[serde(default, skip_serializing_if = "is_default")]
    pub psp_skew_secs: Option<i64>,
    /// How many objects the search listed.
    pub listed: u64,
    /// The newest listed object of the row's kind whose tag resolves to a row of that kind.
    #[serde(default, skip_serializing_if = "is_default")]
    pub witness: Option<Witness>,
    /// By files: which of those that it needs did not come whole, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
}

/// An object in the same search whose tag resolves to a row: it shows that the tag arrives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness {
    /// The PSP's id of it.
    pub reference: String,
    /// Its tag.
    pub tag: String,
    /// When the PSP created it.
    pub created_at: Instant,
}

/// A complete search that saw nothing, as it is kept between runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Miss {
    /// The account that was searched.
    pub account: String,
    /// The row's fingerprint at that time; any change of the row voids the miss.
    pub fingerprint: String,
    /// The search.
    pub search: CompleteSearch,
}

/// One payment, refund or payout at the PSP, its children folded in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PspObject {
    /// The parent's id (`pi_…`).
    pub reference: String,
    /// Ids of folded children (`ch_…`): each is a reference of this object too.
    #[serde(default, skip_serializing_if = "is_default")]
    pub aliases: Vec<String>,
    /// `payment_intent`, `charge`, `refund`.
    pub kind: String,
    /// What it means.
    pub state: ObjectState,
    /// The PSP's own word for its status.
    pub status: String,
    /// The amount asked for, in the presentment currency; `None`: a currency ISO does not know.
    pub amount: Option<Money>,
    /// The sum that really moved within this object.
    #[serde(default, skip_serializing_if = "is_default")]
    pub captured: Option<Money>,
    /// What was given back of it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub refunded_minor: i64,
    /// What can still be captured of it, by the PSP's word: Stripe's `amount_capturable`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub capturable_minor: i64,
    /// A dispute exists.
    #[serde(default, skip_serializing_if = "is_default")]
    pub disputed: bool,
    /// What a file says was charged back of it, less what of that was reversed; 0 where a dispute
    /// tells no sum.
    #[serde(default, skip_serializing_if = "is_default")]
    pub charged_back_minor: i64,
    /// By how much more than moved its lines in files say that it was given back or returned, which
    /// is in no other sum: two of them may tell one return.
    #[serde(default, skip_serializing_if = "is_default")]
    pub beyond_minor: i64,
    /// When the PSP created it (the PSP's clock).
    pub created_at: Instant,
    /// The tag as it arrived.
    pub tag: Option<String>,
    /// The bank took it back, with its code where it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returned: Option<String>,
}

impl PspObject {
    /// Whether `reference` names this object or a child of it.
    pub fn is_named(&self, reference: &str) -> bool {
        self.reference == reference || self.aliases.iter().any(|a| a == reference)
    }

    /// Money moved: the PSP says so by the state, or by a sum.
    pub fn has_captured(&self) -> bool {
        matches!(self.state, ObjectState::Captured | ObjectState::Voided)
            || self.captured.is_some_and(|money| money.minor > 0)
    }

    /// It can capture: its state says so, or the PSP names a sum of it, whatever its state.
    pub fn can_still_capture(&self) -> bool {
        self.capturable_minor > 0 || self.state.can_still_capture()
    }

    /// What can still be captured of it, where the PSP names a sum.
    pub fn capturable(&self) -> Option<Money> {
        let currency = self.amount.or(self.captured)?.currency;
        (self.capturable_minor > 0).then(|| Money::new(self.capturable_minor, currency))
    }

    /// Nothing will ever come of it, and nobody can pay it any more.
    pub fn is_dead(&self) -> bool {
        self.state.is_dead() && !self.can_still_capture()
    }
}

/// What an object's status means for the row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectState {
    /// The PSP says that the movement took place.
    Captured,
    /// It was captured, and taken back whole before anyone shipped.
    Voided,
    /// The PSP still works on it; it can capture with no new call.
    InFlight,
    /// Authorised: a capture call takes the money (some capture by themselves).
    Authorized,
    /// Waits for the customer.
    ActionRequired,
    /// Made, and never attempted.
    Unattempted,
    /// The PSP states a failure.
    Failed(Failure),
    /// Cancelled, nothing captured.
    Canceled,
    /// Expired, nothing captured.
    Expired,
    /// A status that this version of the adapter does not know.
    Unknown,
}

/// A failure that the PSP states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The most telling code: Stripe's `decline_code`, else `code`.
    pub code: String,
    /// The PSP's own verdict, where it gives one: Stripe's `advice_code`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub advice: Option<String>,
    /// The card network's advice, as the PSP hands it on: Stripe's `network_advice_code`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub network_advice: Option<String>,
    /// From when the failure is final; `None`: this adapter never calls it final.
    pub final_from: Option<Instant>,
    /// The object itself could still be paid: a retry must use it, never a new one.
    pub still_payable: bool,
}

impl Failure {
    /// The code, and beside it the PSP's advice and the network's, as far as it states them: people
    /// go by all of them, and rules by the first two.
    pub fn words(&self) -> String {
        let code = Some(self.code.clone()).filter(|code| !code.is_empty());
        let advice = self.advice.as_ref().map(|advice| format!("advice {advice}"));
        let network = self.network_advice.as_ref().map(|code| format!("network advice {code}"));
        let said: Vec<String> = code.into_iter().chain(advice).chain(network).collect();
        said.join(", ")
    }
}

impl ObjectState {
    /// It can capture with no new call from anyone. An object may name a sum besides: ask it.
    fn can_still_capture(&self) -> bool {
        matches!(self, Self::InFlight | Self::Authorized)
    }

    /// Nothing will ever come of it, and nobody can pay it any more.
    pub fn is_dead(&self) -> bool {
        match self {
            Self::Failed(failure) => !failure.still_payable,
            Self::Canceled | Self::Expired => true,
            Self::Captured
            | Self::Voided
            | Self::InFlight
            | Self::Authorized
            | Self::ActionRequired
            | Self::Unattempted
            | Self::Unknown => false,
        }
    }

    /// The word in evidence screens.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Captured => "captured",
            Self::Voided => "voided",
            Self::InFlight => "in_flight",
            Self::Authorized => "authorized",
            Self::ActionRequired => "action_required",
            Self::Unattempted => "unattempted",
            Self::Failed(_) => "failed",
            Self::Canceled => "canceled",
            Self::Expired => "expired",
            Self::Unknown => "unknown",
        }
    }
}

/// A captured object that no row explains and that could be this row's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UntaggedMatch {
    /// The PSP's id of it.
    pub reference: String,
    /// Its amount.
    pub captured: Money,
    /// When the PSP created it.
    pub created_at: Instant,
    /// The tag it carries, if any: one that resolves to no row.
    pub tag: Option<String>,
}

#[cfg(test)]
impl PspObject {
    /// What tests of every room make their objects from: nothing is known of its money.
    pub(crate) fn plain(kind: &str, state: ObjectState) -> Self {
        Self {
            reference: "pi_1".to_owned(),
            aliases: Vec::new(),
            kind: kind.to_owned(),
            state,
            status: "as_the_psp_says".to_owned(),
            amount: None,
            captured: None,
            refunded_minor: 0,
            capturable_minor: 0,
            disputed: false,
            charged_back_minor: 0,
            beyond_minor: 0,
            created_at: crate::model::time::from_text("2026-11-19T08:00:00Z").unwrap(),
            tag: None,
            returned: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::money::Currency;

    fn object(state: ObjectState, capturable_minor: i64) -> PspObject {
        PspObject {
            amount: Some(Money::new(2_000, Currency::parse("EUR").unwrap())),
            capturable_minor,
            ..PspObject::plain("payment_intent", state)
        }
    }

    #[test]
    fn a_sum_that_can_still_be_captured_counts_in_every_state() {
        for (state, by_itself, dead) in [
            (ObjectState::InFlight, true, false),
            (ObjectState::Authorized, true, false),
            (ObjectState::ActionRequired, false, false),
            (ObjectState::Unattempted, false, false),
            (ObjectState::Canceled, false, true),
            (ObjectState::Expired, false, true),
            (ObjectState::Unknown, false, false),
        ] {
            let none = object(state.clone(), 0);
            assert_eq!((none.can_still_capture(), none.is_dead()), (by_itself, dead), "{state:?}");
            let held = object(state.clone(), 700);
            assert_eq!((held.can_still_capture(), held.is_dead()), (true, false), "{state:?}");
            assert_eq!(none.capturable(), None);
            assert_eq!(held.capturable().unwrap().to_string(), "7.00 EUR");
        }
        let unnamed = PspObject { amount: None, ..object(ObjectState::Unknown, 700) };
        assert!(unnamed.can_still_capture(), "a sum of no known currency is one");
        assert_eq!(unnamed.capturable(), None);
    }

    #[test]
    fn what_older_versions_stored_reads_and_stays_as_it_is() {
        let failure = Failure {
            code: "expired_card".to_owned(),
            advice: None,
            network_advice: None,
            final_from: None,
            still_payable: false,
        };
        let old = object(ObjectState::Failed(failure.clone()), 0);
        let text = serde_json::to_string(&old).unwrap();
        assert!(!text.contains("capturable") && !text.contains("network"), "{text}");
        assert_eq!(serde_json::from_str::<PspObject>(&text).unwrap(), old);
        let failure = Failure { network_advice: Some("03".to_owned()), ..failure };
        let new = object(ObjectState::Failed(failure), 700);
        let text = serde_json::to_string(&new).unwrap();
        assert!(text.contains("\"capturable_minor\":700"), "{text}");
        assert!(text.contains("\"network_advice\":\"03\""), "{text}");
        assert_eq!(serde_json::from_str::<PspObject>(&text).unwrap(), new);
    }
}
