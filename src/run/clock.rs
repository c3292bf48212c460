//! The database's clock between two questions to it.
//!
//! Evidence is stamped with the database's time. It is read live for every batch, and carried on
//! in between by the monotonic clock, which no operator and no time server can turn.

use std::sync::{Arc, Mutex, PoisonError};

use chrono::TimeDelta;

use crate::model::time::{Instant, later, to_micros};

/// A reading is as old as its way back took. One that seems to turn the clock back by less than
/// this was only slow.
const SLOW_ANSWER: TimeDelta = TimeDelta::seconds(30);

/// A reading of the database's clock that goes on.
#[derive(Debug, Clone)]
pub struct DatabaseClock {
    reading: Arc<Mutex<(Instant, tokio::time::Instant)>>,
}

impl DatabaseClock {
    /// From a fresh reading.
    pub fn new(now: Instant) -> Self {
        Self { reading: Arc::new(Mutex::new((now, tokio::time::Instant::now()))) }
    }

    /// Takes a fresh reading over. Every reading lies in the past of the database, the more so
    /// the slower its answer was: the latest is the truest, and time never runs back.
    pub fn set(&self, now: Instant) {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let known = carried_on(*reading);
        let was_slow = now < known && known.signed_duration_since(now) < SLOW_ANSWER;
        *reading = (if was_slow { known } else { now }, tokio::time::Instant::now());
    }

    /// The database's time now.
    pub fn now(&self) -> Instant {
        to_micros(carried_on(*self.reading.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn carried_on((base, at): (Instant, tokio::time::Instant)) -> Instant {
    later(base, TimeDelta::from_std(at.elapsed()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_slow_reading_never_turns_time_back() {
        let noon = crate::model::time::from_text("2026-03-02T12:00:00Z").unwrap();
        let at = |seconds| later(noon, TimeDelta::seconds(seconds));
        let clock = DatabaseClock::new(noon);
        tokio::time::advance(std::time::Duration::from_secs(10)).await;
        assert_eq!(clock.now(), at(10));
        clock.set(at(8));
        assert_eq!(clock.now(), at(10), "two seconds on the way");
        clock.set(at(11));
        assert_eq!(clock.now(), at(11));
        clock.set(at(-3_600));
        assert_eq!(clock.now(), at(-3_600), "an hour is no way: somebody set the clock");
    }
}
