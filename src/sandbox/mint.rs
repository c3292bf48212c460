//! Everything in the sandbox that looks random: ids, request ids, jitter, chances.
//!
//! All of it grows from one seed, and each kind of thing counts for itself, so that the same seed
//! and the same order of requests give the same ids, whatever faults fired in between. It never
//! asks the machine for entropy.

const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A seeded source of ids and draws.
#[derive(Debug, Clone)]
pub(super) struct Mint {
    seed: u64,
    objects: u64,
    requests: u64,
    draws: u64,
}

impl Mint {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, objects: 0, requests: 0, draws: 0 }
    }

    /// The next object id: the prefix, `_` and 24 letters, as Stripe's are.
    pub(super) fn object_id(&mut self, prefix: &str) -> String {
        self.objects += 1;
        format!("{prefix}_3{}", letters(self.seed, self.objects, 23))
    }

    pub(super) fn request_id(&mut self) -> String {
        self.requests += 1;
        format!("req_{}", letters(self.seed ^ 0x5e71_0f5e, self.requests, 14))
    }

    /// A draw from `0..below`; 0 when `below` is 0.
    pub(super) fn draw(&mut self, below: u64) -> u64 {
        self.draws += 1;
        mix(self.seed ^ mix(self.draws) ^ 0x0d12_a35e).checked_rem(below).unwrap_or(0)
    }
}

/// A second secret-looking text that belongs to an id, such as an intent's client secret.
pub(super) fn secret_of(id: &str) -> String {
    let seed = id.bytes().fold(7_u64, |sum, byte| mix(sum ^ u64::from(byte)));
    format!("{id}_secret_{}", letters(seed, 1, 25))
}

fn letters(seed: u64, count: u64, length: u64) -> String {
    let start = mix(seed).wrapping_add(mix(count.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    (0..length)
        .map(|place| {
            let drawn = mix(start.wrapping_add(place)) % 62;
            let index = usize::try_from(drawn).unwrap_or(0);
            char::from(LETTERS.get(index).copied().unwrap_or(b'0'))
        })
        .collect()
}

/// The finalizer of splitmix64: every bit of the input moves every bit of the output.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_same_seed_gives_the_same_ids_and_no_id_comes_twice() {
        let mut one = Mint::new(7);
        let mut two = Mint::new(7);
        let mut seen = HashSet::new();
        for _ in 0..20_000 {
            let id = one.object_id("pi");
            assert_eq!(id, two.object_id("pi"));
            assert_eq!(id.len(), 27);
            assert!(seen.insert(id));
        }
        assert_ne!(Mint::new(8).object_id("pi"), Mint::new(7).object_id("pi"));
    }
}
