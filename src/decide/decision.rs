//! What goes into a decision besides the policy, and what comes out of it.

use serde::{Deserialize, Serialize};

use crate::decide::permit::HandBack;
use crate::model::evidence::{Evidence, Miss, UntaggedMatch};
use crate::model::lean::is_default;
use crate::model::money::Money;
use crate::model::reason::{Outcome, Reason};
use crate::model::time::Instant;
use crate::model::transaction::{SiblingFact, Transaction};

/// Why a row is being looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// It is stuck and due.
    Run,
    /// Its case was kicked.
    Kick,
    /// Its tag is watched after a hand-back or an end.
    Watch,
}

/// What tieout remembers of a row from earlier looks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// When tieout first saw the row.
    pub first_seen_at: Instant,
    /// When tieout first saw the row as it is now (its fingerprint).
    pub fingerprint_seen_at: Instant,
    /// The account that the row named when first seen.
    pub first_account: Option<String>,
    /// From when its age counts: the first look, moved on by every outage since.
    pub aged_from: Instant,
    /// Since when the source gives no answer; `None` while it answers.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unanswered_since: Option<Instant>,
    /// How many looks in a row got no answer.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unanswered: u32,
    /// How many looks got an answer.
    #[serde(default, skip_serializing_if = "is_default")]
    pub checks: u32,
    /// Misses kept, of any fingerprint.
    #[serde(default, skip_serializing_if = "is_default")]
    pub misses: Vec<Miss>,
    /// How often the row was handed back.
    #[serde(default, skip_serializing_if = "is_default")]
    pub handbacks: u32,
    /// The last hand-back.
    #[serde(default, skip_serializing_if = "is_default")]
    pub last_handback: Option<PastHandBack>,
    /// How many watch looks were done since the last hand-back or end.
    #[serde(default, skip_serializing_if = "is_default")]
    pub watch_step: u32,
    /// When the current watch began.
    #[serde(default, skip_serializing_if = "is_default")]
    pub watch_from: Option<Instant>,
    /// How tieout last ended the row (succeeded, retryable or failed); waits and reviews leave it.
    /// Kept in `tieout_checks.ended_as`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ended_as: Option<Outcome>,
}

impl History {
    /// The history of a row never seen before.
    pub fn first_look(now: Instant) -> Self {
        Self {
            first_seen_at: now,
            fingerprint_seen_at: now,
            first_account: None,
            aged_from: now,
            unanswered_since: None,
            unanswered: 0,
            checks: 0,
            misses: Vec::new(),
            handbacks: 0,
            last_handback: None,
            watch_step: 0,
            watch_from: None,
            ended_as: None,
        }
    }

    /// Whether the row's present image was seen before tieout ended it: nobody changed it since.
    pub fn is_as_left(&self) -> bool {
        self.watch_from.is_some_and(|from| self.fingerprint_seen_at <= from)
    }

    /// The last hand-back, where the row ended by it and nobody came for it yet.
    pub fn untaken(&self) -> Option<&PastHandBack> {
        let is_last = self.ended_as == Some(Outcome::Retryable);
        let past = self.last_handback.as_ref().filter(|_| is_last)?;
        (past.taken_at.is_none() && !past.lapsed).then_some(past)
    }

    /// How often the row was handed back to somebody who could take it.
    pub fn tries(&self) -> u32 {
        let lapses = self.last_handback.as_ref().map_or(0, |past| past.lapses);
        self.handbacks.saturating_sub(lapses)
    }
}

/// A hand-back of the past.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastHandBack {
    /// Its number, from 1.
    pub number: u32,
    /// When.
    pub at: Instant,
    /// Nobody was to come for it before.
    #[serde(default, skip_serializing_if = "is_default")]
    pub not_before: Option<Instant>,
    /// When the worker took it.
    pub taken_at: Option<Instant>,
    /// A charge after this is no longer safe.
    pub charge_before: Instant,
    /// Its worker is to charge by a new object, with a new key: anything else that is under the tag
    /// could be paid beside it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub anew: bool,
    /// It ended because nobody came for it in time, or as a sibling may still be paid, and nothing
    /// took its place.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lapsed: bool,
    /// It ended untaken as a sibling was found paid, or went to a person with something at the PSP.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stopped: bool,
    /// How many hand-backs of the row ended so, this one included: they cost it no attempt.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lapses: u32,
}

impl PastHandBack {
    /// From when on its worker could take it.
    pub fn open_from(&self) -> Instant {
        self.not_before.map_or(self.at, |from| from.max(self.at))
    }

    /// The same, taken: its worker came for it, though nobody had seen so when it lapsed.
    pub fn taken(self, at: Instant) -> Self {
        let lapses = self.lapses.saturating_sub(u32::from(self.lapsed));
        Self { taken_at: Some(at), lapsed: false, stopped: false, lapses, ..self }
    }
}

/// Everything a decision is made from, besides policy and time.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// The row.
    pub row: &'a Transaction,
    /// Rows with the same natural key.
    pub siblings: &'a [SiblingFact],
    /// What the sources said.
    pub evidence: &'a [Evidence],
    /// PSP references among the evidence that another row already has, with that row's key.
    pub claimed_references: &'a [(String, String)],
    /// Captured objects of this money, near in time, that no row explains.
    pub untagged: &'a [UntaggedMatch],
    /// Objects whose tag is nearly this row's: (reference, their tag).
    pub near_misses: &'a [(String, String)],
    /// What is remembered.
    pub history: &'a History,
    /// Why it is asked.
    pub asked: Asked,
}

/// What the decision saw at the PSP, for the record and the reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The PSP's id.
    pub reference: String,
    /// The PSP's own word.
    pub status: String,
    /// What moved, or was asked for where nothing moved.
    pub amount: Option<Money>,
    /// When the PSP created it.
    pub created_at: Instant,
}

/// More evidence that could turn a wait or a review into something better, in the same run: it is
/// asked for, and the row decided again, before anything is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// A complete list over the row's window.
    List,
    /// The search by tag.
    Search,
    /// What this run decides of the row's siblings: it goes first, but only once none of them may
    /// turn out to be paid.
    Siblings,
}

/// What shall become of the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The money moved.
    Succeeded,
    /// Safe to charge again: holds its permit.
    Retryable(Box<HandBack>),
    /// Failed for good.
    Failed,
    /// Look again later.
    Wait,
    /// A person decides.
    Review,
}

impl Verdict {
    /// The outcome's word.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Succeeded => Outcome::Succeeded,
            Self::Retryable(_) => Outcome::Retryable,
            Self::Failed => Outcome::Failed,
            Self::Wait => Outcome::Wait,
            Self::Review => Outcome::Review,
        }
    }
}

/// One decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What shall become of the row.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
    /// The rule that decided or was tried, where one did.
    pub rule: Option<String>,
    /// One sentence with the numbers.
    pub text: String,
    /// What was seen.
    pub seen: Option<Seen>,
    /// When to look again; always set for a wait.
    pub next_check_at: Option<Instant>,
    /// The tag is looked at again from then on, whatever the row's status.
    pub watch_at: Option<Instant>,
    /// A miss to keep.
    pub miss: Option<Miss>,
    /// Whether every source asked gave an answer. Only then does age count.
    pub answered: bool,
    /// What more could be asked at once.
    pub wants: Option<Want>,
}

impl Decision {
    /// The outcome's word.
    pub fn outcome(&self) -> Outcome {
        self.verdict.outcome()
    }
}
