//! Payouts whose rows stand in one report: each is named by its first row.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// More are not held in memory.
const PAYOUTS: usize = 200_000;

/// The payouts that came. Of an id its hash is kept.
#[derive(Debug, Default)]
pub struct Named {
    seen: HashSet<u64>,
}

impl Named {
    /// Whether this one came for the first time. Beyond as many as are held none is named.
    pub fn is_first(&mut self, id: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        self.seen.len() < PAYOUTS && self.seen.insert(hasher.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payout_is_named_once() {
        let mut named = Named::default();
        assert_eq!(["p1", "p2", "p1"].map(|id| named.is_first(id)), [true, true, false]);
    }
}
