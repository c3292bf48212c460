//! What monitoring asks of the database, and what it remembers there between runs.
//!
//! Plain data and one pure function: which alerts a run is to tell. Nothing here decides a row.

use crate::model::time::Instant;

/// Rows of one account that wait for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StuckLine {
    /// The configured account; empty where the row's has none.
    pub account: String,
    /// How many.
    pub rows: i64,
    /// When the oldest was created.
    pub oldest: Instant,
}

/// Open cases of one reason, account and age: of a `sibling_row`, those whose row was paid as well
/// apart from others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseLine {
    /// The reason's code.
    pub reason: String,
    /// The account; empty where there is none.
    pub account: String,
    /// How many edges the case is older than: 0 is the youngest bucket.
    pub bucket: usize,
    /// Money was found for the row itself, beside a sibling that was paid.
    pub is_paid_beside: bool,
    /// How many.
    pub cases: i64,
    /// The lowest number among them.
    pub first: i64,
}

/// How settlement files stand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileFigures {
    /// When the newest file of a source came in that is not quarantined.
    pub newest: Vec<(String, Instant)>,
    /// Money of final statements that no row has yet: `credit` or `debit`, currency, minor units.
    pub unmatched: Vec<(String, String, i64)>,
}

/// One remembered number of a scope: a schedule, or a source's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// `last_success`, `requests/stripe_live/2xx`, …
    pub name: String,
    /// Its value.
    pub value: i64,
}

/// How a number changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// To this.
    Set(i64),
    /// By this.
    Add(i64),
    /// To this, where there is none yet.
    Keep(i64),
}

/// One receiver's turn: what holds now, and what was looked at.
#[derive(Debug, Clone)]
pub struct AlertAsk {
    /// The schedule.
    pub scope: String,
    /// The receiver's name.
    pub receiver: String,
    /// The run that tells.
    pub run_id: String,
    /// Conditions that hold, each with one sentence.
    pub holding: Vec<(String, String)>,
    /// Kinds of conditions (the part before a slash) that this run could judge: what is told and
    /// of such a kind, and does not hold any more, is over.
    pub judged: Vec<&'static str>,
    /// Kinds that are the database's and no schedule's: they are told once, and their end once,
    /// whichever schedule sees it.
    pub shared: Vec<&'static str>,
    /// The database's clock.
    pub now: Instant,
    /// Until when no other run tells the same.
    pub lease_until: Instant,
}

impl AlertAsk {
    fn is_mine(&self, alert: &StoredAlert) -> bool {
        alert.scope == self.scope || self.shared.contains(&kind_of(&alert.condition))
    }
}

/// One row of `tieout_alerts`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAlert {
    /// The schedule that raised it.
    pub scope: String,
    /// The condition.
    pub condition: String,
    /// The sentence it was raised with.
    pub text: String,
    /// Since when it holds.
    pub raised_at: Instant,
    /// Whether the receiver was told.
    pub is_told: bool,
    /// Until when another run may be telling it.
    pub lease_until: Option<Instant>,
}

/// What is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// The condition holds.
    Raised,
    /// It holds no more.
    Resolved,
}

/// One thing to tell a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// The schedule that raised it: another may tell its end.
    pub scope: String,
    /// The condition.
    pub condition: String,
    /// Whether it begins or ends.
    pub turn: Turn,
    /// One sentence with the figures.
    pub text: String,
    /// Since when it holds.
    pub raised_at: Instant,
}

/// What is to be done about a receiver's alerts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Turns {
    /// Not stored yet: stored and leased by whoever is first, and told by it.
    pub(super) new: Vec<Alert>,
    /// Stored, and free to be told: leased.
    pub(super) stored: Vec<Alert>,
    /// Over before anyone was told: forgotten, by schedule and condition.
    pub(super) forget: Vec<(String, String)>,
}

/// Works out what this run is to tell, from what holds and what is stored.
pub(super) fn turns(ask: &AlertAsk, stored: &[StoredAlert]) -> Turns {
    let stored: Vec<&StoredAlert> = stored.iter().filter(|alert| ask.is_mine(alert)).collect();
    let mut turns = Turns::default();
    for (condition, text) in &ask.holding {
        let mut known = stored.iter().filter(|alert| alert.condition == *condition);
        let alert = |scope: &str, raised_at| Alert {
            scope: scope.to_owned(),
            condition: condition.clone(),
            turn: Turn::Raised,
            text: text.clone(),
            raised_at,
        };
        // Two schedules may have stored one before it was told once for all.
        if known.clone().any(|known| known.is_told || !is_free(known, ask.now)) {
            continue;
        }
        match known.next() {
            None => turns.new.push(alert(&ask.scope, ask.now)),
            Some(known) => turns.stored.push(alert(&known.scope, known.raised_at)),
        }
    }
    for alert in stored.iter().filter(|alert| is_over(alert, ask) && is_free(alert, ask.now)) {
        if alert.is_told {
            turns.stored.push(Alert {
                scope: alert.scope.clone(),
                condition: alert.condition.clone(),
                turn: Turn::Resolved,
                text: alert.text.clone(),
                raised_at: alert.raised_at,
            });
        } else {
            turns.forget.push((alert.scope.clone(), alert.condition.clone()));
        }
    }
    turns
}

/// The part before the slash.
fn kind_of(condition: &str) -> &str {
    condition.split('/').next().unwrap_or("")
}

fn is_free(alert: &StoredAlert, now: Instant) -> bool {
    alert.lease_until.is_none_or(|until| until <= now)
}

fn is_over(alert: &StoredAlert, ask: &AlertAsk) -> bool {
    let holds = ask.holding.iter().any(|(condition, _)| *condition == alert.condition);
    ask.judged.contains(&kind_of(&alert.condition)) && !holds
}
