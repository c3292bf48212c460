//! From a decision to what the database shall hold: pure, the same for both databases.
//!
//! This is the only place that says which status a decision writes, what a mode withholds, and
//! how the memory of a row (`tieout_checks`) moves on.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use chrono_tz::Tz;
use serde::ser::{Serialize, SerializeSeq, Serializer};
use sha2::{Digest, Sha256};

use crate::decide::backoff;
use crate::decide::decision::{Asked, Decision, History, Seen, Verdict};
use crate::decide::permit::{HandBack, Retry};
use crate::decide::policy::{AbsentMeans, Mode, Timing};
use crate::decide::settled::moved_at;
use crate::model::card::masked;
use crate::model::evidence::Miss;
use crate::model::money::{Currency, Money};
use crate::model::reason::{Outcome, Reason};
use crate::model::time::{Instant, later, to_text};
use crate::model::transaction::{SiblingFact, SiblingState, Transaction, hex};
use crate::store::files::{LineMark, LinePlace};
use crate::store::mapping::{FilterValue, MapSettings, TableSettings};
use crate::store::records::{Applied, Claimed, JournalRow, NotApplied, Planned, UNLEASED};
use crate::store::template::{Template, step_of};

/// How many misses are kept; the proof needs at most three.
const MISSES_KEPT: usize = 6;

/// Everything that one decision changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowEffects {
    /// The fencing token of the claim.
    pub token: i64,
    /// The image that the row must still have.
    pub image: String,
    /// The status to write; `None`: the row is only locked and compared.
    pub status_to: Option<String>,
    /// Other columns that are written with it: column → rendered value.
    pub sets: Vec<(String, SetValue)>,
    /// The history INSERT, where the mapping has one and a status is written.
    pub history: Vec<(String, SetValue)>,
    /// The record, not yet chained; `applied` is what holds if the row is unchanged.
    pub journal: JournalRow,
    /// The memory of the row afterwards.
    pub check: CheckAfter,
    /// The history after this look alone, as if it had decided nothing.
    pub looked_at: History,
    /// Opens or refreshes the row's case.
    pub opens_case: bool,
    /// Closes the row's open case, with this resolution.
    pub closes_case: Option<String>,
    /// A hand-back.
    pub handback: Option<HandbackEffect>,
    /// Ends the row's open hand-back, with this reason: what was decided now takes its place.
    pub ends_handback: Option<String>,
    /// An event for the outbox.
    pub event: Option<EventEffect>,
    /// The PSP object that this row now explains.
    pub claims_reference: Option<String>,
    /// The evidence's JSON, stored under `journal.evidence_sha256`.
    pub evidence: String,
    /// The lines of settlement files that are this row's from now on.
    pub marks_lines: Vec<LinePlace>,
    /// The proposal of a person that it carries out, and that ends with it.
    pub proposal: Option<i64>,
    /// What it is held against once more as it is written: rows with its natural key.
    pub beside: Option<Box<Beside>>,
    /// Why nobody may charge rows with its natural key beside it: `sibling_row`, as it was paid or
    /// is a person's with something at the PSP, or `sibling_pending`, as what is there may still be
    /// paid. Their open hand-backs end for this reason.
    pub ends_beside: Option<Reason>,
    /// Those rows, where they were handed back: they are looked at anew. They are read once more as
    /// this one is written, with what it is held `beside`.
    pub handed_back_beside: Vec<String>,
    /// What was decided could not be carried out, and the row went to a person instead; or to a
    /// person as decided, without its status.
    pub turned: bool,
    /// The words of the user's database, where it refuses changes of the table and not of this row
    /// alone: the row is left to the next run.
    pub refused: Option<String>,
    /// A kick, or a run of rows by their ids, asks about it: what people approve of its case
    /// meanwhile goes first.
    pub yields_to_people: bool,
    /// That they did.
    pub spoken_for: bool,
    /// Money was seen for the row. Where somebody else ended it before the write, that end is held
    /// against the money once.
    pub money_seen: bool,
}

/// A row that is about to be paid or handed back, or that something stands at the PSP for, and its
/// siblings as it was decided from them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    /// The row, with its natural key.
    pub row: Transaction,
    /// The rows with the same natural key, as they stood.
    pub siblings: Vec<SiblingFact>,
}

/// What became of a row that was superseded.
const SUPERSEDED: &str = "somebody had the row locked, or it, its lease, a person's word or a row \
    with the same natural key changed before the write: nothing was written for it, and it is \
    decided again";

/// What became of a row of which people approved something meanwhile.
const SPOKEN_FOR: &str = "people approved what is to become of its case while the PSP was asked: \
    nothing was written for it, and the next run carries out what they approved";

/// So many rows of a batch that are refused in the same words are each a person's; of more, and of
/// half of what was to be written, it is the table that is wrong, where it took no row at all.
const ALIKE: usize = 5;

/// What became of a row whose account a person paused.
const PAUSED: &str = "its account was paused before the write: nothing was written for it, and it \
    is decided again once the account goes on";

/// A value for another column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetValue {
    /// This text, cast to the column's type.
    Text(String),
    /// This instant, in the column's own notation of time.
    At(Instant),
    /// The column plus this.
    Plus(i64),
    /// This text, only where the column is NULL.
    TextIfNull(String),
    /// This instant, only where the column is NULL.
    AtIfNull(Instant),
    /// SQL NULL.
    Null,
}

/// The memory of a row after a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckAfter {
    /// `open`, `case`, `parked`, `watch`, `closed`.
    pub state: &'static str,
    /// When it is due again; set for `open` and `watch` alone.
    pub next_check_at: Option<Instant>,
    /// The history after this look.
    pub history: History,
    /// The row's image that is remembered is the one of its end, and this was only a look at it
    /// since. It stays: a row that its worker took and left stuck again is told by the change.
    pub keeps_image: bool,
    /// How many events were staged, this one included.
    pub events: u32,
}

/// A hand-back to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandbackEffect {
    /// From 1.
    pub number: u32,
    /// The permit's word.
    pub permit: &'static str,
    /// How to charge.
    pub retry: Retry,
    /// Not earlier.
    pub not_before: Option<Instant>,
    /// Not later.
    pub charge_before: Instant,
}

/// An event to stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventEffect {
    /// Stable: a function of table, key and version.
    pub id: String,
    /// From 1 per row.
    pub version: u32,
    /// `transaction.succeeded`, …
    pub kind: &'static str,
    /// JSON.
    pub payload: String,
}

/// Works out what a decision changes.
pub fn effects(
    planned: Planned,
    table: &TableSettings,
    timing: &Timing,
    run_id: &str,
) -> RowEffects {
    let row = &planned.claimed.row;
    let decision = &planned.decision;
    let withheld = is_withheld(planned.mode, decision);
    let applied = if withheld { Applied::Withheld } else { Applied::Yes };
    let status_to = target(table, &planned)
        .filter(|_| !withheld && planned.mode_writes(decision))
        .filter(|to| *to != row.status);
    let handback = hand_back_of(&planned, table, withheld);
    let event = event_of(&planned, withheld, handback.as_ref());
    let check = check_after(&planned, table, timing, withheld, event.is_some());
    let mut journal = journal_row(&planned, applied, &check, handback.as_ref(), run_id, &status_to);
    if decision.outcome() == Outcome::Wait && check.state == "case" {
        // No run looks at it by itself; from then on another kick may find more.
        journal.next_check_at = Some(next_or_backoff(&planned, timing));
    }
    let is_end =
        matches!(decision.verdict, Verdict::Succeeded | Verdict::Retryable(_) | Verdict::Failed)
            && !withheld;
    // What charges again, and what says that the customer has paid: once for a natural key.
    let goes_alone =
        handback.is_some() || (is_end && matches!(decision.verdict, Verdict::Succeeded));
    let ends_beside = ends_beside(&planned);
    let is_held = goes_alone || ends_beside.is_some();
    RowEffects {
        token: planned.claimed.token,
        image: row.image.clone(),
        sets: status_to.as_ref().map_or_else(Vec::new, |to| sets(table, &planned, to)),
        history: status_to.as_ref().map_or_else(Vec::new, |to| history(table, &planned, to)),
        opens_case: decision.outcome() == Outcome::Review,
        closes_case: ((is_end || planned.clears_case) && planned.claimed.open_case.is_some())
            .then(|| closing(&planned)),
        proposal: planned.person.as_ref().map(|word| word.proposal),
        claims_reference: claimed_reference(decision, withheld),
        ends_handback: ends_handback(&planned, withheld),
        marks_lines: marked(&planned, withheld),
        looked_at: looked_at(&planned),
        status_to,
        journal,
        check,
        handback,
        event,
        money_seen: is_money_seen(decision),
        handed_back_beside: ends_beside.map_or_else(Vec::new, |_| handed_back_beside(&planned)),
        ends_beside,
        beside: beside(is_held, planned.claimed.row, planned.siblings),
        evidence: planned.evidence,
        turned: false,
        refused: None,
        yields_to_people: false,
        spoken_for: false,
    }
}

/// Whether money moved by what was decided, or may have, of what a person is to look at.
fn is_money_seen(decision: &Decision) -> bool {
    match decision.verdict {
        Verdict::Succeeded => true,
        Verdict::Review => decision.seen.is_some(),
        Verdict::Retryable(_) | Verdict::Failed | Verdict::Wait => false,
    }
}

/// Whether a row that was to be decided left processing just as money was seen for it, and its new
/// status does not say that it was paid: the next run looks at it once, whatever that status is.
/// An open row has a `watch_from` for that alone.
pub fn left_as_money_was_seen(history: &History, row: &Transaction) -> bool {
    history.watch_from.is_some() && !row.processing && !row.succeeded
}

/// What a row is held against as it is written, where it has a natural key.
fn beside(
    is_held: bool,
    row: Transaction,
    siblings: Option<Vec<SiblingFact>>,
) -> Option<Box<Beside>> {
    let siblings = siblings.filter(|_| is_held && row.natural_key.is_some())?;
    Some(Box::new(Beside { row, siblings }))
}

/// Why rows with its natural key must not be charged beside it, whatever its mode writes of it.
fn ends_beside(planned: &Planned) -> Option<Reason> {
    let decision = &planned.decision;
    let is_seen = decision.seen.is_some();
    match decision.verdict {
        Verdict::Succeeded => Some(Reason::SiblingRow),
        // What only stands back behind a sibling holds up nobody.
        Verdict::Review => (is_seen && !gives_way(decision)).then_some(Reason::SiblingRow),
        Verdict::Wait => {
            let is_news = match decision.reason {
                Reason::Watched | Reason::SiblingPending | Reason::AbsenceBrake => false,
                // Of a row that was given up, what was there is no news.
                Reason::PspUnavailable => planned.claimed.asked != Asked::Watch,
                _other => true,
            };
            (is_seen && is_news).then_some(Reason::SiblingPending)
        }
        Verdict::Retryable(_) | Verdict::Failed => None,
    }
}

/// Whether it is a person's as a sibling has the payment, and no money was found for itself.
fn gives_way(decision: &Decision) -> bool {
    decision.reason == Reason::SiblingRow && !decision.reason.is_paid_beside(&decision.text)
}

/// Those of its siblings that were handed back, as it was decided.
fn handed_back_beside(planned: &Planned) -> Vec<String> {
    handed_back(planned.siblings.iter().flatten())
}

/// Those of a row's siblings that were handed back.
pub fn handed_back<'s>(siblings: impl Iterator<Item = &'s SiblingFact>) -> Vec<String> {
    let handed_back = siblings.filter(|sibling| sibling.state == SiblingState::HandedBack);
    handed_back.map(|sibling| sibling.id.clone()).collect()
}

/// How a case says that it ended.
fn closing(planned: &Planned) -> String {
    let decision = &planned.decision;
    let outcome = decision.outcome().as_str();
    match &planned.person {
        Some(word) => format!(
            "{outcome} by {}, proposed by {}: {}",
            word.approved_by, word.proposed_by, word.why
        ),
        None if planned.clears_case => {
            format!("nothing contradicts the row any more: {}", decision.text)
        }
        None => format!("decided {outcome}: {}", decision.reason.as_str()),
    }
}

impl Planned {
    /// The status that the mapping goes by.
    fn mapped_status(&self) -> &str {
        self.mapped_from.as_deref().unwrap_or(&self.claimed.row.status)
    }

    /// Whether the mode lets this decision touch the row at all.
    fn mode_writes(&self, decision: &Decision) -> bool {
        match self.mode {
            Mode::Observe => false,
            Mode::SucceedOnly => decision.outcome() == Outcome::Succeeded,
            Mode::Full => true,
        }
    }
}

fn is_withheld(mode: Mode, decision: &Decision) -> bool {
    match decision.outcome() {
        Outcome::Wait | Outcome::Review => false,
        Outcome::Succeeded => mode == Mode::Observe,
        Outcome::Retryable | Outcome::Failed => mode != Mode::Full,
    }
}

/// The status that the mapping has for this decision, if it has one.
fn target(table: &TableSettings, planned: &Planned) -> Option<String> {
    let decision = &planned.decision;
    let map = map_of(table, planned.mapped_status())?;
    let value = target_of(map, decision.outcome(), decision.reason);
    value.map(|FilterValue(text)| text.clone())
}

/// The status that a line of the mapping has for this end, if it has one.
pub fn target_of(map: &MapSettings, outcome: Outcome, reason: Reason) -> Option<&FilterValue> {
    match (outcome, reason) {
        (Outcome::Wait, _) => None,
        // Money that contradicts a row, and a change that its database refuses, leave the
        // status untouched: a person decides.
        (Outcome::Review, Reason::LateContradiction | Reason::EvidenceConflict) => None,
        (Outcome::Review, Reason::WriteRefused | Reason::HandbackNotTaken) => None,
        (Outcome::Review, _) => map.review.as_ref(),
        (Outcome::Succeeded, _) => map.succeeded.as_ref(),
        (Outcome::Failed, _) => map.failed.as_ref(),
        (Outcome::Retryable, Reason::Absent) => map.absent.as_ref().or(map.retryable.as_ref()),
        (Outcome::Retryable, _) => map.retryable.as_ref(),
    }
}

/// The mapping's line for a status value.
pub fn map_of<'a>(table: &'a TableSettings, status: &str) -> Option<&'a MapSettings> {
    table.map.iter().find(|map| map.from.iter().any(|FilterValue(text)| text == status))
}

/// What proven absence means in a row's present status: the mapping's `absent` value, where it
/// is another than `retryable`, says that nobody shall charge again.
pub fn absent_means(table: &TableSettings, status: &str) -> AbsentMeans {
    match map_of(table, status) {
        Some(map) if map.absent.is_some() && map.absent != map.retryable => AbsentMeans::Abandoned,
        Some(_) | None => AbsentMeans::HandBack,
    }
}

fn hand_back_of(
    planned: &Planned,
    table: &TableSettings,
    withheld: bool,
) -> Option<HandbackEffect> {
    let decision = &planned.decision;
    let Verdict::Retryable(hand_back) = &decision.verdict else { return None };
    let abandoned = decision.reason == Reason::Absent
        && absent_means(table, planned.mapped_status()) == AbsentMeans::Abandoned;
    let hand_back: &HandBack = hand_back;
    if withheld || abandoned || *hand_back.retry() == Retry::Never {
        return None;
    }
    Some(HandbackEffect {
        number: planned.claimed.history.handbacks.saturating_add(1),
        permit: hand_back.permit().as_str(),
        retry: hand_back.retry().clone(),
        not_before: hand_back.not_before(),
        charge_before: hand_back.charge_before(),
    })
}

/// An end, and trouble found while watching, take the place of a hand-back that nobody took yet; so
/// does a sibling that may still be paid.
fn ends_handback(planned: &Planned, withheld: bool) -> Option<String> {
    let decision = &planned.decision;
    let replaced = match &decision.verdict {
        Verdict::Succeeded | Verdict::Retryable(_) | Verdict::Failed => !withheld,
        // The worker may still come for it.
        Verdict::Review => decision.reason != Reason::HandbackNotTaken,
        Verdict::Wait => decision.reason == Reason::SiblingPending,
    };
    let was_handed_back = planned.claimed.history.handbacks > 0;
    (replaced && was_handed_back).then(|| decision.reason.as_str().to_owned())
}

/// Those of the words with which rows were refused that tell of the table and not of its rows: a
/// missing right, table or function in a trigger (SQLSTATE class 42), or one and the same refusal
/// of at least half of the `writes` that a batch had. A table that let any row be `written` in the
/// same batch refuses rows, and each is a person's.
pub fn refused_alike<'w>(
    refusals: impl IntoIterator<Item = &'w str>,
    writes: usize,
    written: usize,
) -> BTreeSet<String> {
    if written > 0 {
        return BTreeSet::new();
    }
    let mut rows: BTreeMap<&str, usize> = BTreeMap::new();
    for words in refusals {
        let count = rows.entry(words).or_default();
        *count = count.saturating_add(1);
    }
    let is_alike = |(words, rows): &(&str, usize)| {
        has_class_42(words) || (*rows > ALIKE && rows.saturating_mul(2) >= writes)
    };
    rows.into_iter().filter(is_alike).map(|(words, _)| words.to_owned()).collect()
}

/// Whether a refusal ends in `(42501)`, or another state of that class.
fn has_class_42(words: &str) -> bool {
    let state = words.rsplit_once(" (").and_then(|(_, state)| state.get(..5));
    let is_state = |text: &str| text.chars().all(|letter| letter.is_ascii_alphanumeric());
    state.is_some_and(|state| state.starts_with("42") && is_state(state))
}

impl RowEffects {
    /// Whether it is paid or handed back: of rows with one natural key one is, at a time.
    pub fn goes_alone(&self) -> bool {
        let is_yes = self.journal.applied == Applied::Yes;
        self.handback.is_some() || (is_yes && self.journal.outcome == Outcome::Succeeded)
    }

    /// Whether it is a person's: the case is tieout's own, and is opened whether or not the user's
    /// database takes the status that says so.
    pub fn is_for_a_person(&self) -> bool {
        self.journal.outcome == Outcome::Review
    }

    /// Whether it is a person's, with money captured for it that the customer may not have back.
    pub fn is_paid_case(&self) -> bool {
        let is_yes = self.journal.applied == Applied::Yes;
        is_yes && self.is_for_a_person() && self.journal.reason.says_captured(&self.journal.text)
    }

    /// What becomes of the row where the user's database refuses its change, in these words, be it
    /// of this row or of any row of its table.
    pub fn turn_away(&mut self, words: &str, of_any_row: bool) {
        match (self.is_for_a_person(), of_any_row) {
            (true, _) => self.keep_status(words),
            (false, true) => self.leave(words),
            (false, false) => self.refuse(words),
        }
    }

    /// Goes to a person as it was decided, without the status that the user's database refuses.
    fn keep_status(&mut self, words: &str) {
        let (text, to) = (&self.journal.text, &self.journal.status_after);
        let words = masked(words);
        self.journal.text =
            format!("{text}; the status `{to}` was not written, the database refused it: {words}");
        self.journal.status_after.clone_from(&self.journal.status_before);
        self.status_to = None;
        self.sets.clear();
        self.history.clear();
        self.turned = true;
    }

    /// Leaves the row to the next run: the user's database refuses changes of this table, in these
    /// words, and a person has nothing to decide about the row. Money that was seen for it is there
    /// all the same: nobody charges beside it.
    pub fn leave(&mut self, words: &str) {
        let handed_back = std::mem::take(&mut self.handed_back_beside);
        self.supersede();
        self.handed_back_beside = handed_back;
        let words = masked(words).into_owned();
        self.journal.text =
            format!("{}; not written, the database refused its table: {words}", self.journal.text);
        self.refused = Some(words);
    }

    /// Sends the row to a person instead: the user's database refuses the change, in these words.
    /// A trigger may say anything in them.
    pub fn refuse(&mut self, words: &str) {
        let text = format!("the database refused the change: {}", masked(words));
        self.send_to_review(Reason::WriteRefused, text);
    }

    /// What remains of a decision whose row, lease or account had changed: the record, and the
    /// row is due again at once with the memory that it had, and that money was seen for it.
    pub fn supersede(&mut self) {
        self.journal.applied = Applied::Superseded;
        self.journal.status_after = self.journal.status_before.clone();
        self.journal.handback_number = None;
        self.journal.case_number = None;
        self.journal.next_check_at = None;
        self.status_to = None;
        self.sets.clear();
        self.history.clear();
        self.opens_case = false;
        self.closes_case = None;
        self.handback = None;
        self.ends_handback = None;
        self.event = None;
        self.claims_reference = None;
        self.marks_lines.clear();
        self.proposal = None;
        self.beside = None;
        self.handed_back_beside.clear();
    }

    /// Leaves the row to what people approved of it.
    pub fn leave_to_people(&mut self) {
        self.supersede();
        self.spoken_for = true;
    }

    /// What a person is told where the object that the row claims explains this other row already.
    pub fn explains_another(&self, table: &str, key: &str) -> String {
        let reference = self.claims_reference.as_deref().unwrap_or_default();
        format!("{reference} already explains {table} {key}")
    }

    /// Sends the row to a person instead: what was decided cannot be carried out. Its status
    /// stays as it is.
    pub fn send_to_review(&mut self, reason: Reason, text: String) {
        // A decision that was review already stages its event only with a new case.
        let had_case = self.closes_case.is_some();
        self.journal.outcome = Outcome::Review;
        self.journal.reason = reason;
        self.journal.text = text;
        self.turned = true;
        self.journal.applied = Applied::Yes;
        self.journal.status_after = self.journal.status_before.clone();
        self.journal.handback_number = None;
        self.journal.next_check_at = None;
        self.status_to = None;
        self.sets.clear();
        self.history.clear();
        self.opens_case = true;
        self.closes_case = None;
        self.claims_reference = None;
        self.marks_lines.clear();
        self.proposal = None;
        self.beside = None;
        self.check.state = "case";
        self.check.next_check_at = None;
        self.check.keeps_image = false;
        self.check.history = self.looked_at.clone();
        self.handback = None;
        if had_case && self.event.take().is_some() {
            self.check.events = self.check.events.saturating_sub(1);
        }
        if let Some(event) = &mut self.event {
            event.turn_to_review(reason);
        }
    }

    /// What to tell of a row that was not carried out as it had been decided.
    pub fn not_applied(&self) -> Option<NotApplied> {
        let record = &self.journal;
        let (reason, text, status) = match (record.applied, self.turned) {
            (Applied::Superseded, _) if self.refused.is_some() => {
                (None, record.text.as_str(), None)
            }
            (Applied::Superseded, _) if self.spoken_for => (None, SPOKEN_FOR, None),
            (Applied::Superseded, _) => (None, SUPERSEDED, None),
            (Applied::Yes | Applied::Withheld, true) => {
                (Some(record.reason), record.text.as_str(), Some(record.status_after.clone()))
            }
            (Applied::Yes | Applied::Withheld, false) => return None,
        };
        Some(NotApplied {
            table: record.table.clone(),
            key: record.key.clone(),
            reason,
            paused: false,
            refused: self.refused.clone(),
            text: text.to_owned(),
            status,
        })
    }

    /// Whether tieout knew nothing of the row as it was decided: it is taken in with its decision.
    pub fn is_new(&self) -> bool {
        self.token == UNLEASED
    }

    /// What to tell of a new row that somebody else took in before its decision was written.
    pub fn taken_elsewhere(&self) -> NotApplied {
        NotApplied { paused: false, text: SUPERSEDED.to_owned(), ..self.given_back() }
    }

    /// What to tell of a row that was given back, as its account was paused before the write.
    pub fn given_back(&self) -> NotApplied {
        NotApplied {
            table: self.journal.table.clone(),
            key: self.journal.key.clone(),
            reason: None,
            paused: true,
            refused: None,
            text: PAUSED.to_owned(),
            status: None,
        }
    }
}

/// The lines that become these rows' own.
pub fn line_marks<'a>(rows: impl IntoIterator<Item = &'a RowEffects>) -> Vec<LineMark> {
    let of_row = |row: &'a RowEffects| {
        let own = (row.journal.table.clone(), row.journal.key.clone());
        let currency = Currency::parse(&row.journal.currency).ok();
        let worth = currency.map(|currency| Money::new(row.journal.amount_minor, currency));
        let mark = move |place: &LinePlace| LineMark {
            place: *place,
            row: Some(own.clone()),
            reason: Some(row.journal.reason.as_str().to_owned()),
            worth,
        };
        row.marks_lines.iter().map(mark)
    };
    rows.into_iter().flat_map(of_row).collect()
}

impl EventEffect {
    fn turn_to_review(&mut self, reason: Reason) {
        self.kind = "transaction.review";
        let Ok(mut payload) = serde_json::from_str::<serde_json::Value>(&self.payload) else {
            return;
        };
        if let Some(fields) = payload.as_object_mut() {
            fields.insert("type".to_owned(), self.kind.into());
            fields.insert("reason".to_owned(), reason.as_str().into());
            fields.insert("hand_back".to_owned(), serde_json::Value::Null);
        }
        self.payload = payload.to_string();
    }
}

/// What a wait was told by is told again; what ended the row, sent it to a person or was looked
/// at after its end is its own.
fn marked(planned: &Planned, withheld: bool) -> Vec<LinePlace> {
    let is_wait = planned.decision.outcome() == Outcome::Wait;
    let is_last = !is_wait || planned.claimed.asked == Asked::Watch;
    if is_last && !withheld { planned.lines.clone() } else { Vec::new() }
}

fn claimed_reference(decision: &Decision, withheld: bool) -> Option<String> {
    let is_success = decision.outcome() == Outcome::Succeeded && !withheld;
    decision.seen.as_ref().filter(|_| is_success).map(|seen| seen.reference.clone())
}

fn event_of(
    planned: &Planned,
    withheld: bool,
    handback: Option<&HandbackEffect>,
) -> Option<EventEffect> {
    let decision = &planned.decision;
    let claimed = &planned.claimed;
    if !planned.stages {
        return None;
    }
    let kind = match &decision.verdict {
        Verdict::Wait => return None,
        Verdict::Review if claimed.open_case.is_some() || planned.mode == Mode::Observe => {
            return None;
        }
        Verdict::Review => "transaction.review",
        Verdict::Succeeded | Verdict::Failed | Verdict::Retryable(_) if withheld => return None,
        Verdict::Succeeded => "transaction.succeeded",
        Verdict::Failed => "transaction.failed",
        Verdict::Retryable(_) if handback.is_none() => "transaction.failed",
        Verdict::Retryable(_) => "transaction.retryable",
    };
    let version = claimed.events.saturating_add(1);
    let id = event_id(&claimed.row, version, planned.now);
    let payload = event_payload(planned, kind, &id, version, handback);
    Some(EventEffect { id, version, kind, payload })
}

/// Unique wherever events meet: two databases have a table, a key and a version in common, and so
/// has one before and after it was restored. Whoever keeps the ids would drop the other's event.
fn event_id(row: &Transaction, version: u32, decided_at: Instant) -> String {
    let (table, key, at) = (&row.key.table, &row.key.id, to_text(decided_at));
    let text = format!("{table}\0{key}\0{version}\0{at}");
    let digest = hex(&Sha256::digest(text.as_bytes()));
    format!("evt_{}", digest.chars().take(32).collect::<String>())
}

fn event_payload(
    planned: &Planned,
    kind: &str,
    id: &str,
    version: u32,
    handback: Option<&HandbackEffect>,
) -> String {
    let row = &planned.claimed.row;
    let decision = &planned.decision;
    let retry = handback.map(|h| {
        let (object, until) = match &h.retry {
            Retry::SameObject(reference) => (Some(reference.clone()), None),
            Retry::SameKey { until } => (None, Some(to_text(*until))),
            Retry::NewAttempt | Retry::Never => (None, None),
        };
        serde_json::json!({
            "number": h.number,
            "how": h.retry.as_str(),
            "psp_reference": object,
            "idempotency_key": row.idempotency_key.as_ref().filter(|_| until.is_some()),
            "same_key_until": until,
            "not_before": h.not_before.map(to_text),
            "charge_before": to_text(h.charge_before),
        })
    });
    serde_json::json!({
        "schema": "tieout.event/1",
        "id": id,
        "type": kind,
        "table": row.key.table,
        "key": row.key.id,
        "version": version,
        "account": row.account.text(),
        "amount_minor": row.money.map(|m| m.minor),
        "currency": row.money.map(|m| m.currency.code().to_owned()),
        "reason": decision.reason.as_str(),
        "psp_reference": decision.seen.as_ref().map(|s| s.reference.clone()),
        "decided_at": to_text(planned.now),
        "attempt": attempt(planned, handback),
        "hand_back": retry,
    })
    .to_string()
}

/// Which attempt the event speaks of: the first send is 1, and each hand-back asks for one more.
fn attempt(planned: &Planned, handback: Option<&HandbackEffect>) -> u32 {
    let tries = planned.claimed.history.tries();
    tries.saturating_add(1).saturating_add(u32::from(handback.is_some()))
}

/// How the memory of the row moves on.
fn check_after(
    planned: &Planned,
    table: &TableSettings,
    timing: &Timing,
    withheld: bool,
    staged: bool,
) -> CheckAfter {
    let decision = &planned.decision;
    let claimed = &planned.claimed;
    let mut history = looked_at(planned);
    let events = claimed.events.saturating_add(u32::from(staged));
    let (state, next) = match (&decision.verdict, withheld) {
        // It is paid, and no person has anything to do.
        (Verdict::Wait, _) if planned.clears_case => ("closed", None),
        // It was never handed back or ended here: it waits for its person, and nobody watches it.
        (Verdict::Wait, _)
            if claimed.asked == Asked::Watch
                && claimed.open_case.is_some()
                && history.watch_from.is_none() =>
        {
            ("case", None)
        }
        (Verdict::Wait, _) if claimed.asked == Asked::Watch => watch_on(&mut history, decision),
        // Its status says that it is a person's: no run would find it, and it keeps its case.
        (Verdict::Wait, _)
        | (Verdict::Succeeded | Verdict::Retryable(_) | Verdict::Failed, true)
            if planned.mapped_from.is_some() =>
        {
            ("case", None)
        }
        (Verdict::Wait, _) => ("open", Some(next_or_backoff(planned, timing))),
        // A person is told, and the tag is watched on all the same.
        (Verdict::Review, _) if decision.watch_at.is_some() => watch_on(&mut history, decision),
        (Verdict::Review, _) => ("case", None),
        // Proved afresh under watch, and withheld: it is no row that is to be claimed as stuck.
        (Verdict::Retryable(_) | Verdict::Failed, true) if claimed.asked == Asked::Watch => {
            ("watch", Some(next_or_backoff(planned, timing)))
        }
        (Verdict::Succeeded | Verdict::Retryable(_) | Verdict::Failed, true) => {
            ("open", Some(next_or_backoff(planned, timing)))
        }
        (Verdict::Succeeded | Verdict::Retryable(_) | Verdict::Failed, false) => {
            ended(&mut history, planned, table)
        }
    };
    let goes_on = match &decision.verdict {
        Verdict::Wait => true,
        Verdict::Review => state == "watch",
        Verdict::Succeeded | Verdict::Retryable(_) | Verdict::Failed => false,
    };
    let keeps_image = claimed.asked == Asked::Watch && goes_on;
    CheckAfter { state, next_check_at: next, history, keeps_image, events }
}

/// The history after the look, whatever it decided.
fn looked_at(planned: &Planned) -> History {
    let claimed = &planned.claimed;
    let mut history = answered(&claimed.history, &planned.decision, planned.now);
    if claimed.history.first_account.is_none() {
        history.first_account = Some(claimed.row.account.text().to_owned());
    }
    // That money was seen as the row changed is news until the row is decided as it is now.
    let is_decided = claimed.asked == Asked::Run && planned.decision.answered;
    if is_decided && history.ended_as.is_none() {
        history.watch_from = None;
        history.watch_step = 0;
    }
    history
}

fn next_or_backoff(planned: &Planned, timing: &Timing) -> Instant {
    let claimed = &planned.claimed;
    planned.decision.next_check_at.unwrap_or_else(|| {
        backoff::next_check_at(&claimed.row.key, claimed.history.checks, timing, planned.now)
    })
}

/// Age counts only while the source answers: an outage moves the beginning of age along.
fn answered(before: &History, decision: &Decision, now: Instant) -> History {
    let mut after = before.clone();
    if decision.answered {
        let outage = before.unanswered_since.map_or(TimeDelta::zero(), |since| now - since);
        after.aged_from = later(before.aged_from, outage).min(now);
        after.unanswered_since = None;
        after.unanswered = 0;
        after.checks = before.checks.saturating_add(1);
    } else {
        after.unanswered_since = before.unanswered_since.or(Some(now));
        after.unanswered = before.unanswered.saturating_add(1);
    }
    if let Some(miss) = &decision.miss {
        keep_miss(&mut after.misses, miss);
    }
    after
}

fn keep_miss(misses: &mut Vec<Miss>, miss: &Miss) {
    misses.retain(|kept| kept.fingerprint == miss.fingerprint && kept.account == miss.account);
    misses.push(miss.clone());
    while misses.len() > MISSES_KEPT {
        // The oldest stays (it spans the most time); the one after it goes.
        misses.remove(1);
    }
}

fn watch_on(history: &mut History, decision: &Decision) -> (&'static str, Option<Instant>) {
    if decision.answered {
        history.watch_step = history.watch_step.saturating_add(1);
    }
    match decision.watch_at {
        Some(at) => ("watch", Some(at)),
        None => ("closed", None),
    }
}

fn ended(
    history: &mut History,
    planned: &Planned,
    table: &TableSettings,
) -> (&'static str, Option<Instant>) {
    let decision = &planned.decision;
    history.misses.clear();
    history.ended_as = Some(decision.outcome());
    if hand_back_of(planned, table, false).is_some() {
        history.handbacks = history.handbacks.saturating_add(1);
    }
    if let Some(at) = decision.watch_at {
        // A row that was proved afresh is watched from its new hand-back on.
        let goes_on =
            planned.claimed.asked == Asked::Watch && decision.outcome() != Outcome::Retryable;
        history.watch_from = history.watch_from.filter(|_| goes_on).or(Some(planned.now));
        history.watch_step = if goes_on { history.watch_step.saturating_add(1) } else { 0 };
        return ("watch", Some(at));
    }
    match target(table, planned) {
        Some(_) => ("closed", None),
        None => ("parked", None),
    }
}

fn journal_row(
    planned: &Planned,
    applied: Applied,
    check: &CheckAfter,
    handback: Option<&HandbackEffect>,
    run_id: &str,
    status_to: &Option<String>,
) -> JournalRow {
    let Claimed { row, asked, open_case: _, .. } = &planned.claimed;
    let decision = &planned.decision;
    let (currency, amount_minor) = row.total_bucket();
    let seen = decision.seen.as_ref();
    let psp_amount = seen.and_then(|seen| seen.amount);
    JournalRow {
        run_id: run_id.to_owned(),
        writer: String::new(),
        seq: 0,
        at: planned.now,
        table: row.key.table.clone(),
        key: row.key.id.clone(),
        account: row.account.text().to_owned(),
        tag: row.tag.text().to_owned(),
        kind: row.kind.as_str().to_owned(),
        currency,
        amount_minor,
        asked: *asked,
        outcome: decision.outcome(),
        reason: decision.reason,
        rule: decision.rule.clone(),
        text: decision.text.clone(),
        applied,
        status_before: row.status.clone(),
        status_after: status_to.clone().unwrap_or_else(|| row.status.clone()),
        psp_reference: seen.map(|seen| seen.reference.clone()),
        psp_status: seen.map(|seen| seen.status.clone()),
        psp_currency: psp_amount.map(|money| money.currency.code().to_owned()),
        psp_amount_minor: psp_amount.map(|money| row.kind.signed(money.minor)),
        fingerprint: row.fingerprint(),
        evidence_sha256: hex(&Sha256::digest(planned.evidence.as_bytes())),
        row_created_at: Some(row.created_at),
        row_attempted_at: row.attempted_at,
        checks: check.history.checks,
        next_check_at: check.next_check_at,
        handback_number: handback.map(|h| h.number),
        case_number: None,
        policy_version: planned.policy_version.clone(),
        prev_hash: String::new(),
        hash: String::new(),
    }
}

impl JournalRow {
    /// The text that is hashed: a JSON array of the fields in the order of the table, times as
    /// RFC 3339 with six digits. Version 1; a later version would begin with another number.
    pub fn canonical(&self) -> String {
        // Texts and numbers alone: it never fails.
        serde_json::to_string(&Canonical(self)).unwrap_or_default()
    }

    /// Sets the place in the chain and the hashes.
    pub fn chain(&mut self, writer: &str, seq: i64, prev_hash: &str) {
        self.writer = writer.to_owned();
        self.seq = seq;
        self.prev_hash = prev_hash.to_owned();
        self.hash = self.expected_hash();
    }

    /// The hash that the record must carry.
    pub fn expected_hash(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(self.prev_hash.as_bytes());
        hash.update([b'\n']);
        hash.update(self.canonical().as_bytes());
        hex(&hash.finalize())
    }
}

/// A record as [`JournalRow::canonical`] spells it, written straight into its text.
struct Canonical<'a>(&'a JournalRow);

impl Serialize for Canonical<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = self.0;
        let mut array = serializer.serialize_seq(Some(33))?;
        array.serialize_element(&1)?;
        array.serialize_element(&row.run_id)?;
        array.serialize_element(&row.writer)?;
        array.serialize_element(&row.seq)?;
        array.serialize_element(&to_text(row.at))?;
        array.serialize_element(&row.table)?;
        array.serialize_element(&row.key)?;
        array.serialize_element(&row.account)?;
        array.serialize_element(&row.tag)?;
        array.serialize_element(&row.kind)?;
        array.serialize_element(&row.currency)?;
        array.serialize_element(&row.amount_minor)?;
        array.serialize_element(asked_text(row.asked))?;
        array.serialize_element(row.outcome.as_str())?;
        array.serialize_element(row.reason.as_str())?;
        array.serialize_element(&row.rule)?;
        array.serialize_element(&row.text)?;
        array.serialize_element(row.applied.as_str())?;
        array.serialize_element(&row.status_before)?;
        array.serialize_element(&row.status_after)?;
        array.serialize_element(&row.psp_reference)?;
        array.serialize_element(&row.psp_status)?;
        array.serialize_element(&row.psp_currency)?;
        array.serialize_element(&row.psp_amount_minor)?;
        array.serialize_element(&row.fingerprint)?;
        array.serialize_element(&row.evidence_sha256)?;
        array.serialize_element(&row.row_created_at.map(to_text))?;
        array.serialize_element(&row.row_attempted_at.map(to_text))?;
        array.serialize_element(&row.checks)?;
        array.serialize_element(&row.next_check_at.map(to_text))?;
        array.serialize_element(&row.handback_number)?;
        array.serialize_element(&row.case_number)?;
        array.serialize_element(&row.policy_version)?;
        array.end()
    }
}

/// The stored word of why a row was looked at.
pub fn asked_text(asked: Asked) -> &'static str {
    match asked {
        Asked::Run => "run",
        Asked::Kick => "kick",
        Asked::Watch => "watch",
    }
}

fn sets(table: &TableSettings, planned: &Planned, to: &str) -> Vec<(String, SetValue)> {
    let by_outcome = table.set.with(planned.decision.outcome());
    let mut values: Vec<(String, SetValue)> = Vec::new();
    for (column, template) in table.set.always.iter().chain(by_outcome.into_iter().flatten()) {
        values.retain(|(known, _)| known != column);
        if let Some(value) = render(template, planned, table, to, true) {
            values.push((column.clone(), value));
        }
    }
    values
}

fn history(table: &TableSettings, planned: &Planned, to: &str) -> Vec<(String, SetValue)> {
    let Some(history) = &table.history else { return Vec::new() };
    let render = |(column, template): (&String, &String)| {
        render(template, planned, table, to, false)
            .or(Some(SetValue::Null))
            .map(|value| (column.clone(), value))
    };
    history.columns.iter().filter_map(render).collect()
}

/// When it happened at the PSP. A line of a file tells no more than its day, for which the last
/// second of that stands: a column gets that of the same day in the zone of the table's times.
fn psp_time(planned: &Planned, seen: &Seen, table: &TableSettings) -> Instant {
    let at = seen.created_at;
    let is_of = |place: &LinePlace| seen.status.ends_with(&format!("({place})"));
    let is_day = moved_at(Some(at.date_naive()), at) == at && planned.lines.iter().any(is_of);
    let zone = table.time.as_deref().filter(|_| is_day).and_then(|name| name.parse::<Tz>().ok());
    let end = zone.and_then(|zone| at.naive_utc().and_local_timezone(zone).latest());
    end.map_or(at, |end| end.to_utc())
}

/// Renders one template; `None`: what it speaks of does not exist here, so nothing is written.
fn render(
    template: &str,
    planned: &Planned,
    table: &TableSettings,
    to: &str,
    only_if_null: bool,
) -> Option<SetValue> {
    let row = &planned.claimed.row;
    let seen = planned.decision.seen.as_ref();
    if let Some(step) = step_of(template) {
        return Some(SetValue::Plus(step));
    }
    match template {
        "{now}" => return Some(SetValue::At(planned.now)),
        "{psp_time}" => {
            let at = psp_time(planned, seen?, table);
            return Some(if only_if_null { SetValue::AtIfNull(at) } else { SetValue::At(at) });
        }
        "{psp_reference}" => {
            let text = seen?.reference.clone();
            let if_null = SetValue::TextIfNull(text.clone());
            return Some(if only_if_null { if_null } else { SetValue::Text(text) });
        }
        _other => {}
    }
    let now = to_text(planned.now);
    let psp_time = seen.map(|seen| to_text(seen.created_at));
    let parts = row.key.parts(table.key.len()).unwrap_or_default();
    let rendered = Template::parse(template).ok()?.render(|name| match name {
        "status" => Some(to),
        "status_before" => Some(row.status.as_str()),
        "reason" => Some(planned.decision.reason.as_str()),
        "outcome" => Some(planned.decision.outcome().as_str()),
        "now" => Some(now.as_str()),
        "psp_reference" => seen.map(|seen| seen.reference.as_str()),
        "psp_time" => psp_time.as_deref(),
        column => {
            let at = table.key.iter().position(|key| key == column)?;
            parts.get(at).map(String::as_str)
        }
    });
    rendered.ok().map(SetValue::Text)
}
