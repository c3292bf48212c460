//! When "not found" is an answer: the proof that the PSP never got the call and no longer can.
//!
//! The four conditions of DESIGN section 5 are (a) the call is over, (b) complete misses apart in
//! time for the row as it is now, (c) a search wide enough, (d) a witness that shows that the tag
//! still arrives. Dropping any one turns a hand-back into a wait; the property tests show it.

use chrono::TimeDelta;

use crate::decide::decision::History;
use crate::decide::policy::Policy;
use crate::model::evidence::{CompleteSearch, Route};
use crate::model::time::{Instant, earlier, later, span_text, to_short_text};
use crate::model::transaction::{Attempts, Transaction};

/// A difference of clocks above which no negative verdict is given.
pub const SKEW_MAX: TimeDelta = TimeDelta::minutes(2);

/// Absence, proven. Only [`prove`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absence {
    account: String,
    fingerprint: String,
    asked: Vec<Instant>,
    witness: String,
    same_key_until: Option<Instant>,
    /// By files: from when to when they list every attempt.
    files: Option<(Instant, Instant)>,
}

impl Absence {
    /// When each search of the proof sent its first request.
    pub fn asked(&self) -> &[Instant] {
        &self.asked
    }

    /// The object that showed that the tag arrives.
    pub fn witness(&self) -> &str {
        &self.witness
    }

    /// The account searched.
    pub fn account(&self) -> &str {
        &self.account
    }

    /// The row's fingerprint that every miss is about.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Until when the application's own key protects.
    pub fn same_key_until(&self) -> Option<Instant> {
        self.same_key_until
    }
}

/// What the proof still lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unproven {
    /// The clocks of the database and the PSP differ too much for any negative verdict.
    ClockSkew {
        /// PSP minus database.
        secs: i64,
    },
    /// The row's last attempt lies in the future.
    FutureAttempt {
        /// The attempt.
        at: Instant,
    },
    /// (a): the original call could still arrive.
    CallMayArrive {
        /// From when it no longer can.
        until: Instant,
    },
    /// (b): this route's misses never count.
    RouteDoesNotCount,
    /// (b): the files tell what settled, and nothing of what was attempted.
    OnlySettled,
    /// (c): the files do not cover every day of the row's attempts yet.
    FilesLacking {
        /// Which days.
        lacks: String,
    },
    /// (c): the search did not cover the window or the object kinds.
    TooNarrow {
        /// What was missing.
        lacks: String,
    },
    /// (c): the window reaches further back than the route does; no search will ever do.
    BeyondReach,
    /// (d): no object newer than the last attempt resolves to a row.
    NoWitness,
    /// (b): more misses are needed.
    NeedsMiss {
        /// Misses that count, this one included.
        have: usize,
        /// Misses that the proof needs.
        need: usize,
        /// When the next one counts.
        at: Instant,
    },
    /// The row stores a PSP reference: that object exists, whatever a list says.
    HasReference {
        /// The stored reference.
        reference: String,
    },
    /// Nothing tells when the last attempt was sent.
    AttemptsUnknown,
    /// The search index was not asked about this row yet, or before the call was over.
    NeedsSearch,
}

impl Unproven {
    /// One sentence for the record and the screen.
    pub fn text(&self) -> String {
        match self {
            Self::ClockSkew { secs } => {
                format!("the PSP's clock and the database's differ by {secs} s (at most 120)")
            }
            Self::FutureAttempt { at } => {
                format!("the last attempt {} lies in the future", to_short_text(*at))
            }
            Self::CallMayArrive { until } => {
                format!("the original call can still arrive until {}", to_short_text(*until))
            }
            Self::RouteDoesNotCount => "a miss of this route does not count".to_owned(),
            Self::OnlySettled => {
                "its files tell what settled and not what was attempted, so that what is not in \
                 them may still come"
                    .to_owned()
            }
            Self::FilesLacking { lacks } => format!("its files do not reach far enough: {lacks}"),
            Self::TooNarrow { lacks } => format!("the search was too narrow: {lacks}"),
            Self::BeyondReach => "the PSP's list does not reach back to this row".to_owned(),
            Self::NoWitness => {
                "no newer object carries a tag that resolves to a row, so that the tag may have \
                 stopped arriving"
                    .to_owned()
            }
            Self::NeedsMiss { have, need, at } => {
                format!("{have} of {need} misses; the next counts from {}", to_short_text(*at))
            }
            Self::HasReference { reference } => {
                format!("the row stores {reference}, and that object was not asked for")
            }
            Self::AttemptsUnknown => {
                "the mapping has no `attempted` column and does not say attempts = \"once\""
                    .to_owned()
            }
            Self::NeedsSearch => "the search by tag was not asked yet".to_owned(),
        }
    }

    /// Whether the proof makes progress by itself: it ends within minutes, however old the row.
    pub fn is_under_way(&self) -> bool {
        matches!(self, Self::CallMayArrive { .. } | Self::NeedsMiss { .. })
    }

    /// Whether waiting cannot help.
    pub fn is_for_ever(&self) -> bool {
        matches!(self, Self::BeyondReach | Self::AttemptsUnknown)
    }

    /// When looking again can help, where that is known.
    pub fn look_again_at(&self) -> Option<Instant> {
        match self {
            Self::CallMayArrive { until } => Some(*until),
            Self::NeedsMiss { at, .. } => Some(*at),
            Self::ClockSkew { .. }
            | Self::FutureAttempt { .. }
            | Self::RouteDoesNotCount
            | Self::OnlySettled
            | Self::FilesLacking { .. }
            | Self::TooNarrow { .. }
            | Self::BeyondReach
            | Self::NoWitness
            | Self::HasReference { .. }
            | Self::AttemptsUnknown
            | Self::NeedsSearch => None,
        }
    }
}

/// The last attempt as the row tells it: the mapped column, else the creation.
pub fn mapped_last_attempt(row: &Transaction) -> Instant {
    row.attempted_at.map_or(row.created_at, |at| at.max(row.created_at))
}

/// From when on files may list an attempt for the row: it may say that it was sent before it was
/// made, as one that was copied in, and clocks differ.
pub fn first_attempt(row: &Transaction) -> Instant {
    earlier(row.attempted_at.map_or(row.created_at, |at| at.min(row.created_at)), SKEW_MAX)
}

/// The last attempt that may have made an object. Without an `attempted` column a row that was
/// handed back tells nothing of its later sends: any of them came before the row was seen as it
/// is now, or when its hand-back was taken.
pub fn last_attempt(row: &Transaction, history: &History) -> Instant {
    let mapped = mapped_last_attempt(row);
    if row.attempts == Attempts::Column || history.handbacks == 0 {
        return mapped;
    }
    let taken_at = history.last_handback.as_ref().and_then(|past| past.taken_at);
    mapped.max(history.fingerprint_seen_at).max(taken_at.unwrap_or(mapped))
}

/// A last attempt that lies in the future of `at`: a wrong clock or zone, and no negative verdict.
pub fn future_attempt(row: &Transaction, at: Instant) -> Option<Unproven> {
    let attempt = mapped_last_attempt(row);
    (attempt > later(at, SKEW_MAX)).then_some(Unproven::FutureAttempt { at: attempt })
}

/// From when no call for this row can arrive any more.
pub fn call_over_at(row: &Transaction, history: &History, policy: &Policy) -> Instant {
    let last = last_attempt(row, history).max(history.fingerprint_seen_at);
    later(last, policy.timing.in_flight_max)
}

/// The creation times that a search must cover, before the search for a witness.
pub fn needed_window(row: &Transaction, history: &History, policy: &Policy) -> (Instant, Instant) {
    (
        earlier(row.created_at, policy.timing.object_before_row),
        later(last_attempt(row, history), policy.timing.in_flight_max),
    )
}

/// What must be left of a key's life for a hand-back by it: what it takes to reach a worker, and
/// that one's call. Of short lives a tenth.
const KEY_NEEDED: TimeDelta = TimeDelta::seconds(60);

/// Until when the application's own key protects, counted from its earliest possible use. In its
/// last moments it is of no use any more: whoever took it would come too late.
pub fn same_key_until(row: &Transaction, policy: &Policy, now: Instant) -> Option<Instant> {
    row.idempotency_key.as_ref()?;
    let life = policy.psp.key_life?;
    let until = later(row.created_at, life);
    let needed = KEY_NEEDED.min(life / 10);
    (later(now, needed) < until).then_some(until)
}

/// Whether this search may be believed about what it did not show: conditions (a) and (c).
///
/// # Errors
/// With what it lacks.
pub fn covers(
    search: &CompleteSearch,
    row: &Transaction,
    history: &History,
    policy: &Policy,
    now: Instant,
) -> Result<(), Unproven> {
    if let Some(secs) = search.psp_skew_secs.filter(|s| s.abs() > SKEW_MAX.num_seconds()) {
        return Err(Unproven::ClockSkew { secs });
    }
    // A question cannot have been put later than now; the earlier of both is the safe one.
    let asked_at = search.asked_at.min(now);
    if let Some(unproven) = future_attempt(row, asked_at) {
        return Err(unproven);
    }
    let until = call_over_at(row, history, policy);
    if asked_at <= until {
        return Err(Unproven::CallMayArrive { until });
    }
    if !search.counts_as_miss {
        let is_file = search.route == Route::File;
        return Err(if is_file { Unproven::OnlySettled } else { Unproven::RouteDoesNotCount });
    }
    wide_enough(search, row, history, policy)
}

/// Whether this search is a miss worth keeping: conditions (a), (c) and (d).
///
/// # Errors
/// With what it lacks.
pub fn counts(
    search: &CompleteSearch,
    row: &Transaction,
    history: &History,
    policy: &Policy,
    now: Instant,
) -> Result<(), Unproven> {
    covers(search, row, history, policy, now)?;
    let last_attempt = last_attempt(row, history);
    match &search.witness {
        Some(witness) if witness.created_at > last_attempt => Ok(()),
        Some(_) | None => Err(Unproven::NoWitness),
    }
}

fn wide_enough(
    search: &CompleteSearch,
    row: &Transaction,
    history: &History,
    policy: &Policy,
) -> Result<(), Unproven> {
    let (from, to) = needed_window(row, history, policy);
    if search.route == Route::File {
        return days_enough(search, first_attempt(row), to);
    }
    let reach = policy.psp.route(search.route).and_then(|facts| facts.reach);
    if reach.is_some_and(|reach| from < earlier(search.asked_at, reach)) {
        return Err(Unproven::BeyondReach);
    }
    if search.from > from || search.to < to {
        let lacks = format!(
            "it covered {} to {}, and {} to {} is needed",
            to_short_text(search.from),
            to_short_text(search.to),
            to_short_text(from),
            to_short_text(to)
        );
        return Err(Unproven::TooNarrow { lacks });
    }
    let wanted = policy.psp.object_kinds(row.kind);
    let unseen: Vec<_> = wanted.iter().filter(|kind| !search.kinds.contains(kind)).collect();
    if wanted.is_empty() || !unseen.is_empty() {
        return Err(Unproven::TooNarrow { lacks: format!("object kinds {unseen:?}") });
    }
    Ok(())
}

/// A file lists attempts on the day that they were made: no earlier object could be this row's. A
/// later one may have been listed late, in a file that should be here and is not.
fn days_enough(search: &CompleteSearch, from: Instant, to: Instant) -> Result<(), Unproven> {
    let reaches = search.from <= from && search.to >= to;
    if reaches && search.lacks.is_none() {
        return Ok(());
    }
    let span = format!("{} to {} is needed", to_short_text(from), to_short_text(to));
    let lacks = match &search.lacks {
        Some(lacks) if reaches => lacks.clone(),
        Some(lacks) => format!("{lacks}; {span}"),
        None => format!(
            "they cover {} to {} without a gap, and {span}",
            to_short_text(search.from),
            to_short_text(search.to)
        ),
    };
    Err(Unproven::FilesLacking { lacks })
}

/// Proves absence from this run's search and the misses kept from earlier ones.
///
/// `confirmed` says whether the search by tag, where the PSP has one, found nothing in this run,
/// asked after the call was over.
///
/// # Errors
/// With what the proof still lacks.
pub fn prove(
    search: &CompleteSearch,
    row: &Transaction,
    account: &str,
    history: &History,
    policy: &Policy,
    confirmed: bool,
    now: Instant,
) -> Result<Absence, Unproven> {
    if let Some(reference) = &row.psp_reference {
        return Err(Unproven::HasReference { reference: reference.clone() });
    }
    counts(search, row, history, policy, now)?;
    let fingerprint = row.fingerprint();
    let key_until = same_key_until(row, policy, now);
    let need = match search.route {
        // Closed days of files do not change any more: one look at all of them is enough.
        Route::File => 1,
        Route::Fetch | Route::Search | Route::List if key_until.is_some() => 2,
        Route::Fetch | Route::Search | Route::List => 3,
    };
    let gap = gap(search, policy);
    // What was kept is held to today's policy again: a longer call, another kind of object.
    let kept = history
        .misses
        .iter()
        .filter(|miss| miss.account == account && miss.fingerprint == fingerprint)
        .filter(|miss| counts(&miss.search, row, history, policy, now).is_ok())
        .map(|miss| miss.search.asked_at);
    let mut times: Vec<Instant> =
        kept.filter(|at| *at < search.asked_at).chain([search.asked_at]).collect();
    times.sort_unstable();
    let asked = apart(times.iter().rev().copied(), gap);
    if asked.len() < need {
        let oldest_first = apart(times.iter().copied(), gap);
        let at = later(oldest_first.last().copied().unwrap_or(search.asked_at), gap);
        return Err(Unproven::NeedsMiss { have: asked.len(), need, at });
    }
    if !confirmed && policy.psp.search_for(row.kind).is_some() {
        return Err(Unproven::NeedsSearch);
    }
    if row.attempts == Attempts::Unknown {
        return Err(Unproven::AttemptsUnknown);
    }
    let Some(witness) = &search.witness else { return Err(Unproven::NoWitness) };
    Ok(Absence {
        account: account.to_owned(),
        fingerprint,
        asked,
        witness: witness.reference.clone(),
        same_key_until: key_until,
        files: (search.route == Route::File).then_some((search.from, search.to)),
    })
}

/// The least time between two misses of this route.
pub fn gap(search: &CompleteSearch, policy: &Policy) -> TimeDelta {
    let lag = TimeDelta::try_seconds(search.lag_secs).unwrap_or(TimeDelta::MAX);
    policy.timing.recheck_after.max(lag)
}

/// Those of `times`, in their order from the first on, that lie at least `gap` apart.
fn apart(times: impl Iterator<Item = Instant>, gap: TimeDelta) -> Vec<Instant> {
    let mut chain: Vec<Instant> = Vec::new();
    for at in times {
        let is_apart = |last: &Instant| later(at.min(*last), gap) <= at.max(*last);
        if chain.last().is_none_or(is_apart) {
            chain.push(at);
        }
    }
    chain
}

/// A sentence for the record of a proven absence.
pub fn proof_text(absence: &Absence) -> String {
    if let Some((from, to)) = absence.files {
        return format!(
            "in no file of {} from {} to {}, which list every attempt; witness {}",
            absence.account,
            to_short_text(from),
            to_short_text(to),
            absence.witness
        );
    }
    let times: Vec<String> = absence.asked.iter().rev().map(|at| to_short_text(*at)).collect();
    let span = absence
        .asked
        .first()
        .zip(absence.asked.last())
        .map_or_else(String::new, |(newest, oldest)| span_text(*newest - *oldest));
    format!(
        "not at {} in {} complete searches over {span} ({}); witness {}",
        absence.account,
        absence.asked.len(),
        times.join(", "),
        absence.witness
    )
}
