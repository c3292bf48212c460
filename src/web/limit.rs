//! How often somebody may try to sign in.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// Tries are counted over this long.
pub const WITHIN: Duration = Duration::from_secs(60);

/// Names and addresses that are remembered; beyond this many everybody waits.
const KNOWN: usize = 10_000;

/// Tries of the last minute, by whom.
#[derive(Debug, Default)]
pub struct Limiter {
    tries: HashMap<String, VecDeque<Instant>>,
}

impl Limiter {
    /// Counts a try of somebody; false where it is one too many.
    pub fn may(&mut self, who: &str, most: usize, now: Instant) -> bool {
        let is_fresh = |at: &Instant| now.saturating_duration_since(*at) < WITHIN;
        if self.tries.len() >= KNOWN {
            self.tries.retain(|_, tries| tries.back().is_some_and(is_fresh));
        }
        if self.tries.len() >= KNOWN && !self.tries.contains_key(who) {
            return false;
        }
        let tries = self.tries.entry(who.to_owned()).or_default();
        while tries.front().is_some_and(|at| !is_fresh(at)) {
            tries.pop_front();
        }
        if tries.len() >= most {
            return false;
        }
        tries.push_back(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_has_so_many_tries_for_each() {
        let start = Instant::now();
        let mut limiter = Limiter::default();
        let after = |secs: u64| start + Duration::from_secs(secs);
        assert!(limiter.may("a", 2, after(0)));
        assert!(limiter.may("a", 2, after(30)));
        assert!(!limiter.may("a", 2, after(59)));
        assert!(limiter.may("b", 2, after(59)));
        assert!(limiter.may("a", 2, after(61)), "the first try is over a minute ago");
        assert!(!limiter.may("a", 2, after(62)));
    }

    #[test]
    fn names_that_nobody_has_fill_no_memory() {
        let start = Instant::now();
        let mut limiter = Limiter::default();
        for name in 0..KNOWN {
            assert!(limiter.may(&name.to_string(), 1, start));
        }
        assert!(!limiter.may("one more", 1, start));
        assert!(limiter.may("one more", 1, start + WITHIN));
        assert_eq!(limiter.tries.len(), 1);
    }
}
