//! A token bucket for each account and, where asked, for each of its routes.
//!
//! Counted in whole millionths of a request, so that no rounding lets more through than allowed.

use std::collections::HashMap;
use std::time::Instant;

use super::core::AccountRef;
use super::routes::Route;
use super::settings::RateLimit;

const ONE: u128 = 1_000_000;

#[derive(Debug)]
pub(super) struct Limiter {
    started: Instant,
    buckets: HashMap<(AccountRef, Option<Route>), Bucket>,
}

#[derive(Debug)]
struct Bucket {
    millionths: u128,
    at_micros: u128,
}

impl Limiter {
    pub(super) fn new(started: Instant) -> Self {
        Self { started, buckets: HashMap::new() }
    }

    /// Forgets what was taken, as when the limit changes.
    pub(super) fn clear(&mut self) {
        self.buckets.clear();
    }

    /// Takes one request out of the buckets; or says in Stripe's word which one is empty.
    pub(super) fn take(
        &mut self,
        limit: &RateLimit,
        account: &AccountRef,
        route: Route,
        now: Instant,
    ) -> Result<(), &'static str> {
        let micros = now.saturating_duration_since(self.started).as_micros();
        let burst = if limit.burst == 0 { limit.per_second } else { limit.burst };
        if !self.has_room((account.clone(), None), limit.per_second, burst, micros) {
            return Err("global-rate");
        }
        if let Some(per_route) = limit.per_route {
            let key = (account.clone(), Some(route));
            if !self.has_room(key.clone(), per_route, per_route, micros) {
                return Err("endpoint-rate");
            }
            self.spend(&key);
        }
        self.spend(&(account.clone(), None));
        Ok(())
    }

    fn has_room(
        &mut self,
        key: (AccountRef, Option<Route>),
        per_second: u32,
        burst: u32,
        micros: u128,
    ) -> bool {
        let full = u128::from(burst) * ONE;
        let bucket =
            self.buckets.entry(key).or_insert(Bucket { millionths: full, at_micros: micros });
        // One a second is one millionth of a request a microsecond.
        let grown = micros.saturating_sub(bucket.at_micros) * u128::from(per_second);
        bucket.millionths = (bucket.millionths + grown).min(full);
        bucket.at_micros = micros;
        bucket.millionths >= ONE
    }

    fn spend(&mut self, key: &(AccountRef, Option<Route>)) {
        if let Some(bucket) = self.buckets.get_mut(key) {
            bucket.millionths = bucket.millionths.saturating_sub(ONE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::settings::RetryAfter;
    use std::time::Duration;

    #[test]
    fn lets_the_burst_through_and_then_the_rate() {
        let start = Instant::now();
        let mut limiter = Limiter::new(start);
        let account = AccountRef { name: "a".to_owned(), live: false };
        let limit = RateLimit {
            per_second: 10,
            burst: 2,
            per_route: None,
            retry_after: RetryAfter::Absent,
        };
        let mut take = |ms: u64| {
            let now = start + Duration::from_millis(ms);
            limiter.take(&limit, &account, Route::ListIntents, now).is_ok()
        };
        let given: Vec<bool> = [0, 0, 0, 99, 100, 150, 200].into_iter().map(&mut take).collect();
        assert_eq!(given, [true, true, false, false, true, false, true]);
    }

    #[test]
    fn says_which_bucket_is_empty() {
        let start = Instant::now();
        let mut limiter = Limiter::new(start);
        let account = AccountRef { name: "a".to_owned(), live: false };
        let limit = RateLimit {
            per_second: 3,
            burst: 3,
            per_route: Some(1),
            retry_after: RetryAfter::Absent,
        };
        let mut take = |route| limiter.take(&limit, &account, route, start);
        assert_eq!(take(Route::ListIntents), Ok(()));
        assert_eq!(take(Route::ListIntents), Err("endpoint-rate"));
        assert_eq!(take(Route::ListCharges), Ok(()));
        assert_eq!(take(Route::ListRefunds), Ok(()));
        assert_eq!(take(Route::GetIntent), Err("global-rate"));
    }
}
