//! When the next request of an account may go out: even spacing that gives way to 429.
//!
//! The configured rate is a ceiling that the operator promised to somebody; the lane goes below it
//! when the PSP says so and climbs back slowly. It never goes above. No random numbers: jitter is
//! a hash of what is being asked, so that a rehearsal repeats.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Requests that may catch up after a pause of the caller's own, so that a late timer costs none.
const BURST: u32 = 3;

/// After a refusal the rate falls to this many percent of itself …
const SLOWER_PERCENT: u32 = 70;

/// … to this many, where the one before it was not followed by as many answers as there are here:
/// the rate is far off, and a search in small steps would be refused all the way …
const FAR_OFF_PERCENT: u32 = 40;
const FAR_OFF_ANSWERS: u32 = 3;

/// … and after this many answers in a row without one it climbs again.
const CLIMB_AFTER: u32 = 20;

/// The slowest that refusals can make the lane: one request in four seconds.
const INTERVAL_MAX: Duration = Duration::from_secs(4);

/// The first and the longest wait before asking again.
const BACKOFF_FIRST: Duration = Duration::from_millis(500);
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// The pace of one account.
#[derive(Debug)]
pub(super) struct Pace {
    fastest: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    interval: Duration,
    next: Instant,
    held_until: Instant,
    slowed_at: Option<Instant>,
    smooth: u32,
    /// Answers since the last refusal.
    answers: u32,
}

impl Pace {
    pub(super) fn new(requests_per_second: u32, now: Instant) -> Self {
        let fastest = Duration::from_secs(1).checked_div(requests_per_second.max(1));
        let fastest = fastest.unwrap_or(INTERVAL_MAX);
        let state = State {
            interval: fastest,
            next: now,
            held_until: now,
            slowed_at: None,
            smooth: 0,
            answers: FAR_OFF_ANSWERS,
        };
        Self { fastest, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here can panic halfway: the state of a poisoned lock is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the next slot and says when it is.
    pub(super) fn slot(&self, now: Instant) -> Instant {
        let mut state = self.state();
        let lag = state.interval.saturating_mul(BURST);
        let earliest = now.checked_sub(lag).unwrap_or(now);
        let base = state.next.max(earliest);
        let slot = base.max(state.held_until);
        state.next = slot.checked_add(state.interval).unwrap_or(slot);
        slot.max(now)
    }

    /// A 429 came: go slower, and nobody goes before `hold` has passed.
    pub(super) fn refused(&self, now: Instant, hold: Duration) {
        let mut state = self.state();
        state.smooth = 0;
        let until = now.checked_add(hold).unwrap_or(now);
        state.held_until = state.held_until.max(until);
        // Requests already in flight are refused together: they count as one refusal.
        let is_new = state.slowed_at.is_none_or(|at| now.duration_since(at) > state.interval);
        if is_new {
            let is_far = state.answers < FAR_OFF_ANSWERS;
            let percent = if is_far { FAR_OFF_PERCENT } else { SLOWER_PERCENT };
            let slower = state.interval.saturating_mul(100).checked_div(percent);
            state.interval = slower.unwrap_or(INTERVAL_MAX).min(INTERVAL_MAX);
            state.slowed_at = Some(now);
        }
        state.answers = 0;
    }

    /// Nobody goes before `hold` has passed: the server said so without a 429.
    pub(super) fn hold(&self, now: Instant, hold: Duration) {
        let mut state = self.state();
        let until = now.checked_add(hold).unwrap_or(now);
        state.held_until = state.held_until.max(until);
    }

    /// An answer came.
    pub(super) fn answered(&self) {
        let mut state = self.state();
        state.answers = state.answers.saturating_add(1);
        state.smooth = state.smooth.saturating_add(1);
        if state.smooth >= CLIMB_AFTER && state.interval > self.fastest {
            state.smooth = 0;
            let faster = state.interval.saturating_mul(9).checked_div(10);
            state.interval = faster.unwrap_or(self.fastest).max(self.fastest);
        }
    }

    /// Requests a second at the present pace, for the log.
    pub(super) fn per_second(&self) -> u128 {
        1_000_000_000_u128.checked_div(self.state().interval.as_nanos()).unwrap_or(0)
    }
}

/// How long to wait before attempt number `attempt` (from 1) of the question named `what`.
pub(super) fn backoff(what: &str, attempt: u32) -> Duration {
    let doublings = 2_u32.saturating_pow(attempt.saturating_sub(1));
    let full = BACKOFF_FIRST.saturating_mul(doublings).min(BACKOFF_MAX);
    let mut hasher = DefaultHasher::new();
    (what, attempt).hash(&mut hasher);
    let permille = u32::try_from(hasher.finish().checked_rem(500).unwrap_or(0)).unwrap_or(0);
    full.saturating_mul(permille.saturating_add(500)).checked_div(1_000).unwrap_or(full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_spaced_and_a_pause_allows_a_small_burst() {
        let start = Instant::now();
        let pace = Pace::new(100, start);
        let at = |ms: u64| (pace.slot(start + Duration::from_millis(ms)) - start).as_millis();
        assert_eq!([at(0), at(0), at(0)], [0, 10, 20]);
        // Three catch up, then the spacing holds again.
        assert_eq!([0; 5].map(|_| at(1_000)), [1_000, 1_000, 1_000, 1_000, 1_010]);
    }

    #[test]
    fn a_refusal_holds_everyone_and_slows_once() {
        let now = Instant::now();
        let pace = Pace::new(100, now);
        pace.refused(now, Duration::from_secs(2));
        pace.refused(now, Duration::from_secs(2));
        assert_eq!(pace.per_second(), 70);
        assert_eq!(pace.slot(now) - now, Duration::from_secs(2));
        for _ in 0..1_000 {
            pace.answered();
        }
        assert_eq!(pace.per_second(), 100, "it climbs back to the ceiling and not above");
    }

    #[test]
    fn a_rate_that_is_far_off_is_left_quickly() {
        let start = Instant::now();
        let pace = Pace::new(100, start);
        let refused_at = |ms: u64| {
            pace.refused(start + Duration::from_millis(ms), Duration::ZERO);
            pace.per_second()
        };
        assert_eq!([refused_at(0), refused_at(1_000), refused_at(2_000)], [70, 28, 11]);
        for _ in 0..FAR_OFF_ANSWERS {
            pace.answered();
        }
        assert_eq!(refused_at(3_000), 7, "a small step where answers came in between");
    }

    #[test]
    fn backoff_doubles_under_its_cap() {
        for (attempt, least, most) in
            [(1, 250, 500), (2, 500, 1_000), (3, 1_000, 2_000), (9, 2_500, 5_000)]
        {
            let wait = backoff("/v1/charges", attempt).as_millis();
            assert!((least..=most).contains(&wait), "{attempt}: {wait}");
            assert_eq!(backoff("/v1/charges", attempt).as_millis(), wait, "it repeats");
        }
    }
}
