//! Bytes that nobody meant: reading a file of rows ends, in an answer, on each of them.
//!
//! Seeded changes of every fixture, for `TIEOUT_FUZZ_SECS` seconds a fixture (default: a number of
//! rounds). A failure names its seed.

use std::time::{Duration, Instant};

use super::{CASES, fixture, look};
use crate::breaking::chance::Chance;

/// Without the variable.
const ROUNDS: u64 = 60;

/// What breaks readers of rows: quotes, delimiters, signs, marks, kinds of rows.
const PIECES: [&[u8]; 20] = [
    b"\"",
    b"\"\"",
    b",",
    b";",
    b"\t",
    b"|",
    b"\n",
    b"\r",
    b"\r\n",
    b"-",
    b"+",
    b".",
    b",,,,,,",
    b"9999999999999999999999",
    b"\xff\xfe",
    b"\xc3",
    b"\0",
    b"SB,",
    b"SF,USD,1,1,1,1\n",
    b"EUR",
];

fn changed(good: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for _change in 0..=chance.index(6) {
        let at = chance.index(bytes.len());
        let end = (at + chance.index(120)).min(bytes.len());
        match chance.index(6) {
            0 if !bytes.is_empty() => bytes[at] = chance.next() as u8,
            1 => bytes.truncate(at),
            2 => {
                let piece = PIECES[chance.index(PIECES.len())];
                bytes.splice(at..at, piece.iter().copied());
            }
            3 => drop(bytes.drain(at..end)),
            4 => {
                let copy = bytes[at..end].to_vec();
                let to = chance.index(bytes.len());
                bytes.splice(to..to, copy);
            }
            _turned => bytes.rotate_left(at),
        }
    }
    bytes
}

#[test]
fn no_bytes_break_the_reading_of_rows() {
    let span = std::env::var("TIEOUT_FUZZ_SECS").ok().and_then(|text| text.parse().ok());
    for (name, ..) in CASES {
        let good = fixture(name).into_bytes();
        let until = span.map(|secs| Instant::now() + Duration::from_secs(secs));
        let mut round = 0;
        while until.map_or(round < ROUNDS, |until| Instant::now() < until) {
            let seed = round ^ (good.len() as u64) << 32;
            let bytes = changed(&good, &mut Chance::of(seed));
            let ended = std::panic::catch_unwind(|| look(&bytes));
            let found = ended.unwrap_or_else(|_| panic!("{name}: seed {seed} panics: {bytes:?}"));
            let entries = found.sums.entries;
            assert!(entries <= bytes.len() as u64, "{name}: seed {seed} makes rows of nothing");
            round += 1;
        }
    }
}
