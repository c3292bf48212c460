//! Seeded chance: a test that failed is replayed by the seed that it printed.

use std::time::Duration;

/// A stream of numbers (SplitMix64).
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// By `TIEOUT_TEST_SEED`, or by a seed of the moment; either is printed.
    pub fn from_environment() -> Self {
        let given = std::env::var("TIEOUT_TEST_SEED").ok().and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| uuid::Uuid::now_v7().as_u64_pair().1 >> 16);
        eprintln!("TIEOUT_TEST_SEED={seed}");
        Self::of(seed)
    }

    /// By this seed.
    pub fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn number(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// A place within so many, or 0 where there is none.
    pub fn index(&mut self, end: usize) -> usize {
        usize::try_from(self.number(end as u64)).unwrap()
    }

    /// A span below this one.
    pub fn below(&mut self, span: Duration) -> Duration {
        let micros = u64::try_from(span.as_micros()).unwrap();
        Duration::from_micros(self.number(micros))
    }
}

#[test]
fn the_same_seed_gives_the_same_chances() {
    let numbers = |seed| {
        let mut chance = Chance::of(seed);
        (0..5).map(|_| chance.number(1_000)).collect::<Vec<_>>()
    };
    assert_eq!(numbers(7), numbers(7));
    assert_ne!(numbers(7), numbers(8));
}
