//! Ends by absence (hand-backs, and rows abandoned for good) wait here until their account's part
//! of the run is done: the brake looks at all of them together, and then all go or none. So do paid
//! rows, for what becomes of the others with their natural key.

use std::collections::{BTreeMap, HashMap};

use crate::decide::backoff;
use crate::decide::brake::{Brake, BrakeFigures, brake, handbacks_allowed};
use crate::decide::decision::{Asked, Decision, Verdict, Want};
use crate::decide::permit::Retry;
use crate::decide::policy::{BrakePolicy, Timing};
use crate::model::reason::Reason;
use crate::model::transaction::SiblingState;
use crate::run::gather::Weighed;
use crate::run::siblings::{Paid, is_paid};

/// How many rows that absence ends as abandoned one run keeps for the brake: they are not limited
/// as hand-backs are, and memory is.
const ABANDONED_AT_ONCE: u64 = 2_000;

/// How many paid rows wait at most for older ones with their natural key: those are mostly among
/// them, and memory is limited.
const PAID_AT_ONCE: usize = 2_000;

/// The ends by absence of one account that wait for the brake.
#[derive(Default)]
pub struct Held {
    /// By the table's place in the setup.
    rows: Vec<(usize, Weighed)>,
    /// Rows that wait for what the run decides of their siblings.
    undecided: Vec<(usize, Weighed)>,
    /// Paid rows that wait for others with their natural key.
    paid: Vec<(usize, Weighed)>,
    /// Of the rows kept, those that would be charged again …
    handbacks: u64,
    /// … and those that nobody is to charge again.
    abandoned: u64,
    /// Hand-backs beyond what could ever go, already told to wait.
    turned_away: u64,
    nearest: HashMap<String, bool>,
    listed: u64,
}

/// All accounts' held hand-backs.
#[derive(Default)]
pub struct Hold {
    accounts: BTreeMap<String, Held>,
}

impl Hold {
    /// Counts what the run listed at the account.
    pub fn note_listed(&mut self, account: &str, listed: u64) {
        let held = self.accounts.entry(account.to_owned()).or_default();
        held.listed = held.listed.saturating_add(listed);
    }

    /// Keeps rows back whose siblings this run may still decide, paid ones included; gives all
    /// others through.
    pub fn keep_undecided(
        &mut self,
        account: &str,
        table: usize,
        mut rows: Vec<Weighed>,
    ) -> Vec<Weighed> {
        let is_undecided = |row: &mut Weighed| row.decision.wants == Some(Want::Siblings);
        let undecided: Vec<Weighed> = rows.extract_if(.., is_undecided).collect();
        if !undecided.is_empty() {
            let held = self.accounts.entry(account.to_owned()).or_default();
            held.undecided.extend(undecided.into_iter().map(|row| (table, row)));
        }
        self.keep_paid(account, table, rows)
    }

    /// Keeps paid rows back where another one with their natural key may turn out to be paid in
    /// this run; gives all others through.
    pub fn keep_paid(
        &mut self,
        account: &str,
        table: usize,
        mut rows: Vec<Weighed>,
    ) -> Vec<Weighed> {
        let paid: Vec<Weighed> = rows.extract_if(.., |row| is_paid_beside_others(row)).collect();
        if !paid.is_empty() {
            let held = self.accounts.entry(account.to_owned()).or_default();
            held.paid.extend(paid.into_iter().map(|row| (table, row)));
        }
        rows
    }

    /// Whether so many paid rows wait for older ones that they are not to wait for the run's end.
    pub fn is_full_of_paid(&self) -> bool {
        self.accounts.values().map(|held| held.paid.len()).sum::<usize>() >= PAID_AT_ONCE
    }

    /// Takes out the paid rows that wait for older ones.
    pub fn take_paid(&mut self) -> Vec<Paid> {
        let mut taken = Vec::new();
        for (account, held) in &mut self.accounts {
            let paid = std::mem::take(&mut held.paid).into_iter();
            taken.extend(paid.map(|(table, row)| Paid { account: account.clone(), table, row }));
        }
        taken
    }

    /// Takes out every row of an account, to be judged again.
    pub fn recall(&mut self, account: &str) -> Vec<(usize, Weighed)> {
        let Some(held) = self.accounts.get_mut(account) else { return Vec::new() };
        let mut rows = std::mem::take(&mut held.rows);
        rows.append(&mut held.undecided);
        (held.handbacks, held.abandoned) = (0, 0);
        rows
    }

    /// Keeps an end by absence back; gives every other decision through at once. Beyond the count
    /// that the brake could ever let go, the rows are not kept but told to wait.
    pub fn pass(
        &mut self,
        account: &str,
        table: usize,
        rows: Vec<Weighed>,
        policy: &BrakePolicy,
        timing: &Timing,
    ) -> Vec<Weighed> {
        let held = self.accounts.entry(account.to_owned()).or_default();
        // Most batches hand nothing back: thousands of rows are not moved for nothing.
        if rows.iter().all(|row| ends_by_absence(&row.decision).is_none()) {
            return rows;
        }
        // u64::MAX listed gives the most that any account may hand back in a run.
        let most = handbacks_allowed(u64::MAX, policy);
        let mut through = Vec::with_capacity(rows.len());
        for mut row in rows {
            let Some(is_charged_again) = ends_by_absence(&row.decision) else {
                through.push(row);
                continue;
            };
            held.nearest.extend(row.nearest.drain(..));
            match held.too_many(is_charged_again, most) {
                Some(why) => {
                    stop(&mut row, why, timing);
                    through.push(row);
                }
                None => held.rows.push((table, row)),
            }
        }
        through
    }

    /// The accounts with anything held.
    pub fn accounts(&self) -> Vec<String> {
        let busy =
            self.accounts.iter().filter(|(_, h)| !h.rows.is_empty() || !h.undecided.is_empty());
        busy.map(|(name, _)| name.clone()).collect()
    }

    /// Takes an account's rows out, with the brake's word on them.
    pub fn release(
        &mut self,
        account: &str,
        policy: &BrakePolicy,
        usual_permille: u32,
    ) -> (Vec<(usize, Weighed)>, BrakeFigures, Brake) {
        let held = self.accounts.remove(account).unwrap_or_default();
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let figures = BrakeFigures {
            handbacks: held.handbacks.saturating_add(held.turned_away),
            abandoned: held.abandoned,
            listed: held.listed,
            nearest: count(held.nearest.len()),
            resolved: count(held.nearest.values().filter(|resolved| **resolved).count()),
            usual_permille,
        };
        let word = brake(&figures, policy);
        (held.rows, figures, word)
    }

    /// Everything still held, for giving back undecided.
    pub fn take_all(&mut self) -> Vec<(usize, Weighed)> {
        let accounts = std::mem::take(&mut self.accounts).into_values();
        let rows = |held: Held| held.rows.into_iter().chain(held.undecided).chain(held.paid);
        accounts.flat_map(rows).collect()
    }
}

impl Held {
    /// Counts a row in. Says why it cannot be kept, where it cannot.
    fn too_many(&mut self, is_charged_again: bool, most: u64) -> Option<&'static str> {
        if is_charged_again && self.handbacks > most {
            self.turned_away = self.turned_away.saturating_add(1);
            return Some("more rows would be handed back at once than are allowed");
        }
        if !is_charged_again && self.abandoned >= ABANDONED_AT_ONCE {
            return Some("a run ends 2000 rows as abandoned, and the others are left to the next");
        }
        let kept = if is_charged_again { &mut self.handbacks } else { &mut self.abandoned };
        *kept = kept.saturating_add(1);
        None
    }
}

/// Whether money was captured for a row, and another one with its natural key may turn out to be
/// paid in this run, too: then the oldest goes first, in whatever order they were claimed and
/// answered, and the others are judged by it.
fn is_paid_beside_others(row: &Weighed) -> bool {
    let is_open = |state: SiblingState| {
        matches!(state, SiblingState::Processing | SiblingState::Pending | SiblingState::Waiting)
    };
    is_paid(&row.decision) && row.inputs.siblings.iter().any(|other| is_open(other.state))
}

/// Whether a row that ends by absence is charged again; `None`: it does not end so.
fn ends_by_absence(decision: &Decision) -> Option<bool> {
    match &decision.verdict {
        Verdict::Retryable(hand_back) if decision.reason == Reason::Absent => {
            Some(*hand_back.retry() != Retry::Never)
        }
        Verdict::Retryable(_)
        | Verdict::Succeeded
        | Verdict::Failed
        | Verdict::Wait
        | Verdict::Review => None,
    }
}

/// Turns an end by absence into a wait under the brake.
pub fn stop(row: &mut Weighed, why: &str, timing: &Timing) {
    let history = &row.claimed.history;
    let next = backoff::next_check_at(&row.claimed.row.key, history.checks, timing, row.now);
    // A row under watch, whose hand-back lapsed, stays under watch.
    let watch_at = (row.claimed.asked == Asked::Watch).then_some(next);
    row.decision = Decision {
        verdict: Verdict::Wait,
        reason: Reason::AbsenceBrake,
        text: format!("the brake is on: {why}; {}", row.decision.text),
        next_check_at: Some(next),
        watch_at,
        wants: None,
        ..row.decision.clone()
    };
}
