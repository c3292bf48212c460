//! What monitoring asks of the database, and what it remembers there between runs.
//!
//! Plain data and one pure function: which alerts a run is to tell. Nothing here decides a row.

use crate::model::time::Instant;

/// What stands before a sum in a sentence: one that never falls.
pub const SO_FAR: &str = "so far: ";

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
    /// The highest.
    pub last: i64,
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
    /// Conditions that need not hold any more, each with one sentence and its sum: told where the
    /// receiver was not told of so many while they held.
    pub late: Vec<(String, String)>,
    /// Kinds that are of cases which nobody may miss: told anew when more of them are open than
    /// were told of.
    pub growing: Vec<&'static str>,
    /// The database's clock.
    pub now: Instant,
    /// Until when no other run tells the same.
    pub lease_until: Instant,
}

impl AlertAsk {
    fn is_mine(&self, alert: &StoredAlert) -> bool {
        alert.scope == self.scope || self.shared.contains(&kind_of(&alert.condition))
    }

    /// Whether the receiver knows of it, as far as it is to be told.
    fn is_known(&self, alert: &StoredAlert, text: &str) -> bool {
        let grows = self.growing.contains(&kind_of(&alert.condition));
        alert.is_told && !(grows && has_grown(&alert.text, text))
    }

    /// What the receiver is still to be told of a condition that is over.
    fn owed(&self, alert: &StoredAlert) -> Option<&String> {
        let (_, text) = self.late.iter().find(|(condition, _)| *condition == alert.condition)?;
        let told = so_far(&alert.text);
        let is_owed = if alert.is_told { so_far(text) > told } else { told.is_some() };
        is_owed.then_some(text)
    }
}

/// One row of `tieout_alerts`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAlert {
    /// The schedule that raised it.
    pub scope: String,
    /// The condition.
    pub condition: String,
    /// The sentence it was told with last.
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
        if known.clone().any(|known| ask.is_known(known, text) || !is_free(known, ask.now)) {
            continue;
        }
        // What was told is told anew under the name that it was told by.
        match known.clone().find(|known| known.is_told).or_else(|| known.next()) {
            None => turns.new.push(alert(&ask.scope, ask.now)),
            Some(known) => turns.stored.push(alert(&known.scope, known.raised_at)),
        }
    }
    for alert in stored.iter().filter(|alert| is_over(alert, ask) && is_free(alert, ask.now)) {
        let owed = ask.owed(alert);
        if owed.is_some() || alert.is_told {
            turns.stored.push(Alert {
                scope: alert.scope.clone(),
                condition: alert.condition.clone(),
                turn: if owed.is_some() { Turn::Raised } else { Turn::Resolved },
                text: owed.unwrap_or(&alert.text).clone(),
                raised_at: alert.raised_at,
            });
        } else {
            turns.forget.push((alert.scope.clone(), alert.condition.clone()));
        }
    }
    turns
}

/// Whether a sentence about cases tells of more than an earlier one: by how many they are, with
/// which it begins, of one that was opened since, or by its sum.
fn has_grown(told: &str, now: &str) -> bool {
    let count = |text: &str| text.split(' ').next().and_then(|word| word.parse::<i64>().ok());
    count(now) > count(told) || highest_case(now) > highest_case(told) || so_far(now) > so_far(told)
}

/// The sum in a sentence.
fn so_far(text: &str) -> Option<i64> {
    let (_, after) = text.rsplit_once(SO_FAR)?;
    after.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

/// The highest number of a case in a sentence.
fn highest_case(text: &str) -> Option<i64> {
    let after = text.split("C-").skip(1);
    let numbers = after.filter_map(|rest| {
        let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next();
        digits.and_then(|digits| digits.parse().ok())
    });
    numbers.max()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_grown_by_its_count_or_by_a_newer_case() {
        let one = "1 case of money; the first: C-1";
        let two = "2 cases of money; the first: C-1, the newest: C-2";
        let three = "3 cases of money; the first: C-1, the newest: C-10";
        for (told, now, want) in [
            (one, one, false),
            (one, two, true),
            (two, three, true),
            (three, two, false),
            (three, one, false),
            // The first was closed, and another was opened since.
            (two, "2 cases of money; the first: C-2, the newest: C-3", true),
            // Of an older version, which named the first alone.
            ("2 cases of money; the first: C-1", two, true),
            ("no figures", "no figures", false),
            ("1 row by r1 (so far: 1)", "1 row by r2 (so far: 2)", true),
            (one, "1 case of money; the first: C-1; 1 row by r2 (so far: 1)", true),
            ("1 case; C-1; 1 row by r2 (so far: 9)", "1 case; C-1; so far: 9", false),
            ("1 case; C-1; so far: 9", "1 case; C-1; 1 row by r3 (so far: 10)", true),
        ] {
            assert_eq!(has_grown(told, now), want, "{told} -> {now}");
        }
    }
}
