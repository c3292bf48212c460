//! When to look again: doubling delays with jitter that replays the same.

use chrono::TimeDelta;
use sha2::{Digest, Sha256};

use crate::decide::policy::Timing;
use crate::model::time::{Instant, later};
use crate::model::transaction::RowKey;

/// The delay before look number `attempt` (0 is the first repeat): full jitter over the doubled
/// span, seeded from the row's key and the attempt, and never less than a tenth of the first.
pub fn delay(key: &RowKey, attempt: u32, timing: &Timing) -> TimeDelta {
    let first = timing.backoff_first.num_seconds().max(1);
    let cap = timing.backoff_cap.num_seconds().max(first);
    let doublings = 1_i64.checked_shl(attempt.min(40)).unwrap_or(i64::MAX);
    let span = first.saturating_mul(doublings).min(cap).unsigned_abs();
    let floor = first.unsigned_abs().div_ceil(10);
    let room = span.saturating_sub(floor).saturating_add(1);
    let picked = seed(key, attempt).checked_rem(room).unwrap_or(0).saturating_add(floor);
    TimeDelta::try_seconds(i64::try_from(picked).unwrap_or(cap)).unwrap_or(timing.backoff_cap)
}

/// `now` plus [`delay`].
pub fn next_check_at(key: &RowKey, attempt: u32, timing: &Timing, now: Instant) -> Instant {
    later(now, delay(key, attempt, timing))
}

/// A few seconds of spread, so that rows whose grace ends together are not all due in one second.
pub fn spread(key: &RowKey, attempt: u32, at_most_secs: u64) -> TimeDelta {
    let picked = seed(key, attempt).checked_rem(at_most_secs.max(1)).unwrap_or(0);
    TimeDelta::try_seconds(i64::try_from(picked).unwrap_or(0)).unwrap_or_default()
}

fn seed(key: &RowKey, attempt: u32) -> u64 {
    let mut hash = Sha256::new();
    hash.update(key.table.as_bytes());
    hash.update([0]);
    hash.update(key.id.as_bytes());
    hash.update(attempt.to_be_bytes());
    let mut first = [0_u8; 8];
    first.copy_from_slice(hash.finalize().first_chunk::<8>().unwrap_or(&[0; 8]));
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_the_cap_and_replay_the_same() {
        let timing = Timing::default();
        let mut longest = TimeDelta::zero();
        for id in 0..200 {
            let key = RowKey { table: "t".into(), id: id.to_string() };
            for attempt in 0..70 {
                let got = delay(&key, attempt, &timing);
                assert!(got >= TimeDelta::seconds(30) && got <= timing.backoff_cap, "{got}");
                assert_eq!(got, delay(&key, attempt, &timing));
                if attempt == 0 {
                    assert!(got <= timing.backoff_first);
                }
                longest = longest.max(got);
            }
        }
        assert!(longest > TimeDelta::hours(5), "jitter must reach far: {longest}");
    }
}
