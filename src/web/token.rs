//! What nobody guesses: tokens, session ids, and the comparing of them.

use sha2::{Digest, Sha256};

use crate::model::transaction::hex;

/// Bytes of a token: more than anybody tries.
const BYTES: usize = 32;

/// A fresh token of the system's randomness, in hex; none where the system has none.
pub fn fresh() -> Option<String> {
    let mut bytes = [0_u8; BYTES];
    let provider = rustls::crypto::ring::default_provider();
    provider.secure_random.fill(&mut bytes).ok()?;
    Some(hex(&bytes))
}

/// What is kept of a token.
pub fn hash_of(token: &str) -> String {
    hex(&Sha256::digest(token.as_bytes()))
}

/// Whether two texts are the same, in a time that does not tell where they differ.
pub fn is_same(a: &str, b: &str) -> bool {
    let differing = a.bytes().zip(b.bytes()).fold(0_u8, |all, (x, y)| all | (x ^ y));
    a.len() == b.len() && differing == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_and_never_the_same() {
        let (a, b) = (fresh().unwrap(), fresh().unwrap());
        assert_eq!(a.len(), 64);
        assert_ne!(a, b);
        assert_eq!(hash_of("").get(..8), Some("e3b0c442"));
        for (x, y, same) in [("a", "a", true), ("a", "b", false), ("a", "aa", false)] {
            assert_eq!(is_same(x, y), same, "{x} {y}");
        }
    }
}
