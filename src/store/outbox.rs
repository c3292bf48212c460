//! The other end of the outbox: which sink still has to get which event, and who is sending.
//!
//! Every event is distributed once: one delivery for each sink that wants it. One deliverer at a
//! time holds a sink, by a lease with a fencing token, and marks only while the token is its own;
//! so that events of one transaction never overtake each other. What is sent and not marked is
//! sent again. Nothing ends in silence: a delivery is delivered, suppressed with the reason, or
//! purged by a person; until then it waits, or is dead and waits for a person.

use crate::model::time::Instant;
use crate::store::error::StoreError;

/// Why a hand-back ended that nobody came for in time; its row is proved afresh.
pub const LAPSED: &str = "lapsed";

/// A sink, as distributing needs it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Taker {
    /// Its name.
    pub sink: String,
    /// Only events of these tables; none: of all.
    pub tables: Vec<String>,
    /// Only these kinds; none: all.
    pub kinds: Vec<String>,
}

/// A sink that this process alone may send to, until the lease is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkLease {
    /// Its name.
    pub sink: String,
    /// The fencing token.
    pub token: i64,
    /// Rounds in a row in which it took nothing.
    pub failures: u32,
}

/// What asking for a sink came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// It is ours.
    Ours(SinkLease),
    /// Another process sends to it, at the latest until then.
    Busy(Instant),
    /// It took nothing, and is left alone until then; the last error.
    LeftAlone(Instant, String),
}

/// An event on its way to a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// The event's id, the same for every sink and every try.
    pub event_id: String,
    /// The mapped table.
    pub table: String,
    /// The row's key.
    pub key: String,
    /// The event's number within its row.
    pub version: u32,
    /// `transaction.succeeded`, …
    pub kind: String,
    /// The event's JSON.
    pub payload: String,
    /// Tries that were the event's own fault.
    pub attempts: u32,
    /// When it was staged.
    pub staged_at: Instant,
}

/// Which of the letters that are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Those that never failed.
    New,
    /// Those that failed before.
    Tried,
}

/// What became of one letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LetterEnd {
    /// The sink took it.
    Delivered,
    /// It is tried again.
    Again {
        /// Not before this.
        at: Instant,
        /// How often it failed by its own fault, this time included.
        attempts: u32,
        /// What the sink said.
        error: String,
    },
    /// It cannot be delivered: a person looks at it.
    Dead {
        /// How often it failed.
        attempts: u32,
        /// What the sink said.
        error: String,
    },
}

/// How a sink did in a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It took something, or there was nothing for it.
    Well {
        /// Whether it took something.
        took: bool,
    },
    /// It took nothing, or nothing more.
    Failing {
        /// Whether it took something before: then its back-off begins anew.
        took: bool,
        /// It is left alone until then.
        until: Instant,
        /// Why, without any secret.
        error: String,
    },
}

/// What was found to be no news any more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stale {
    /// Deliveries that were suppressed.
    pub suppressed: u64,
    /// Hand-backs that lapsed: their rows are proved afresh.
    pub lapsed: u64,
}

/// How a sink stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkState {
    /// Its name.
    pub sink: String,
    /// Deliveries that wait.
    pub waiting: i64,
    /// Those of them that were never tried and whose time has not come.
    pub later: i64,
    /// When the oldest of them was staged.
    pub oldest: Option<Instant>,
    /// Deliveries that wait for a person.
    pub dead: i64,
    /// Since when it takes nothing.
    pub failing_since: Option<Instant>,
    /// When it is tried again.
    pub next_attempt_at: Option<Instant>,
    /// What it said last, where it took nothing.
    pub last_error: Option<String>,
    /// When it last took something.
    pub last_delivered_at: Option<Instant>,
}

impl SinkState {
    /// Deliveries that wait for the sink, and not for their time.
    pub fn due(&self) -> i64 {
        self.waiting.saturating_sub(self.later)
    }
}

/// Which deliveries.
#[derive(Debug, Clone, Default)]
pub struct LetterFilter {
    /// `dead`, `waiting`; none: both.
    pub state: Option<&'static str>,
    /// Only to this sink.
    pub sink: Option<String>,
    /// Only of this table.
    pub table: Option<String>,
    /// Only of these keys.
    pub keys: Option<Vec<String>>,
    /// Only of this kind.
    pub kind: Option<String>,
    /// Only those whose last error has this text in it.
    pub error: Option<String>,
    /// Only those staged before this.
    pub staged_before: Option<Instant>,
}

/// A delivery that did not end yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenLetter {
    /// The sink.
    pub sink: String,
    /// `dead` or `waiting`.
    pub state: String,
    /// The event.
    pub letter: Letter,
    /// When it is tried again, where it waits.
    pub next_attempt_at: Instant,
    /// What the sink said last.
    pub last_error: Option<String>,
}

/// What a person does about dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// Tries them again.
    Retry,
    /// Gives them up.
    Purge,
    /// Of each transaction tries the newest again, and gives up the older ones.
    Merge,
}

impl Deed {
    /// The word of screens and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Purge => "purge",
            Self::Merge => "merge",
        }
    }
}

/// Who does it, and why.
#[derive(Debug, Clone, Copy)]
pub struct By<'a> {
    /// The person.
    pub who: &'a str,
    /// Why.
    pub why: &'a str,
}

/// SQL of a delivery `d` of a row `own` of dead letters: it did not end, and a newer one stands for
/// it.
macro_rules! outdated {
    () => {
        "d.sink = own.sink and d.table_name = own.table_name and d.key = own.key \
         and d.state in ('waiting', 'dead') \
         and exists (select 1 from tieout_deliveries n where n.sink = d.sink \
         and n.table_name = d.table_name and n.key = d.key and n.version > d.version \
         and n.state in ('waiting', 'dead'))"
    };
}

pub(in crate::store) use outdated;

/// What [`Deed::Merge`] would come to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Merging {
    /// What it would give up, dead or waiting, oldest event first.
    pub given_up: Vec<OpenLetter>,
    /// How many those are in all.
    pub given_up_total: i64,
    /// Rows, at each sink, whose newest letter would be sent.
    pub again: u64,
}

/// A delivery that waits for a person, or that a person gave up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undelivered {
    /// The sink.
    pub sink: String,
    /// The event's id, …
    pub event_id: String,
    /// … its number within its row, …
    pub version: u32,
    /// … and what it says: `transaction.succeeded`, …
    pub kind: String,
    /// Tries that were the event's own fault.
    pub attempts: u32,
    /// What the sink said last.
    pub last_error: Option<String>,
    /// Since when it is a dead letter, or when it was given up.
    pub at: Instant,
    /// How it was given up, by whom and why; none: it is a dead letter.
    pub given_up: Option<String>,
    /// Who changed it last, by the database's own word where it has one.
    pub changed_by: Option<String>,
}

/// What a deed came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Done {
    /// Letters that are tried again; of [`Deed::Merge`] the rows whose newest is.
    pub again: u64,
    /// Letters that were given up.
    pub given_up: u64,
}

/// The verbs of delivering.
#[expect(async_fn_in_trait, reason = "called on the two concrete drivers only, never as dyn")]
pub trait OutboxDriver {
    /// Whether nothing waits: no event without its deliveries, and no delivery that did not end.
    async fn outbox_is_empty(&self) -> Result<bool, StoreError>;

    /// Gives up to `limit` events that have none yet their deliveries, oldest first: one for each
    /// taker that wants it, not before the hand-back's `not_before`. An event that nobody wants is
    /// delivered by that. Returns how many events.
    async fn distribute(
        &self,
        takers: &[Taker],
        limit: i64,
        now: Instant,
    ) -> Result<u64, StoreError>;

    /// Lets hand-backs lapse that are past `charge_before`, were not taken, and are their row's
    /// last end: such a one ends, and the row is due at once as under watch, to be proved afresh.
    /// It does not where every sink that wants its event has it, or a person gave that up: then
    /// somebody was told and does not come, and `take_within` says when a person hears of it.
    /// Suppresses deliveries of hand-backs that ended, or that are past `charge_before`. A row
    /// that a run holds just now is left, with its delivery, to the next call.
    async fn suppress_stale(&self, now: Instant) -> Result<Stale, StoreError>;

    /// Takes a sink, unless another process has it, or it is left alone (`now_at_all`: even so,
    /// and what was tried and waits for another try is due).
    async fn lease_sink(
        &self,
        sink: &str,
        owner: &str,
        now: Instant,
        until: Instant,
        now_at_all: bool,
    ) -> Result<Turn, StoreError>;

    /// Renews the lease, and reads up to `limit` letters that are due, of these: of each
    /// transaction the first one alone that did not end, by when they were due. None where the
    /// lease is another's by now.
    async fn due_letters(
        &self,
        lease: &SinkLease,
        which: Which,
        limit: i64,
        now: Instant,
        until: Instant,
    ) -> Result<Option<Vec<Letter>>, StoreError>;

    /// How the database finds what is due, line by line; for tests of what grows with a backlog.
    async fn due_plan(
        &self,
        sink: &str,
        which: Which,
        now: Instant,
    ) -> Result<Vec<String>, StoreError>;

    /// Marks what became of letters, in one transaction; false, and nothing is marked, where the
    /// lease is another's by now.
    async fn settle_letters(
        &self,
        lease: &SinkLease,
        ends: &[(String, LetterEnd)],
        now: Instant,
    ) -> Result<bool, StoreError>;

    /// Gives the sink back, with how it did.
    async fn release_sink(
        &self,
        lease: &SinkLease,
        health: &Health,
        now: Instant,
    ) -> Result<(), StoreError>;

    /// How every sink stands that was ever sent to, or that something waits for, by name.
    async fn sink_states(&self, now: Instant) -> Result<Vec<SinkState>, StoreError>;

    /// Deliveries that did not end, oldest event first, at most `limit`; and how many there are.
    async fn open_letters(
        &self,
        filter: &LetterFilter,
        limit: i64,
    ) -> Result<(Vec<OpenLetter>, i64), StoreError>;

    /// What [`Deed::Merge`] would come to by this filter, with at most `limit` of its letters.
    async fn merging(&self, filter: &LetterFilter, limit: i64) -> Result<Merging, StoreError>;

    /// What of a row's events is a dead letter or was given up, oldest event first.
    async fn undelivered_of_row(
        &self,
        table: &str,
        key: &str,
    ) -> Result<Vec<Undelivered>, StoreError>;

    /// What a person does about deliveries: with [`Deed::Purge`] those of the filter's state, else
    /// dead ones alone. One transaction.
    async fn change_letters(
        &self,
        deed: Deed,
        filter: &LetterFilter,
        by: By<'_>,
        now: Instant,
    ) -> Result<Done, StoreError>;

    /// Notifies the listeners of a channel, in order.
    async fn notify(&self, channel: &str, payloads: &[String]) -> Result<(), StoreError>;
}
