//! Bytes that nobody meant: every parser ends, in an answer, on each of them.
//!
//! Seeded changes of every fixture, for `TIEOUT_FUZZ_SECS` seconds a fixture (default: a number
//! of rounds that takes about five seconds in all). A failure names its seed.

use std::time::{Duration, Instant};

use super::{FIXTURES, fixture, inspected};
use crate::breaking::chance::Chance;

/// Without the variable.
const ROUNDS: u64 = 300;

/// What breaks parsers: frames, signs, digits, line ends, bytes of other encodings.
const PIECES: [&[u8]; 24] = [
    b"\n",
    b"\r",
    b"\r\n-\r\n",
    b"-}",
    b"{4:",
    b":61:",
    b":86:",
    b":62F:",
    b":60M:",
    b":20:",
    b",",
    b"/",
    b"88,",
    b"\n16,",
    b"<Ntry>",
    b"</TxDtls>",
    b"<![CDATA[",
    b"&",
    b"&#x0;",
    b"\xff\xfe",
    b"\xc3",
    b"99999999999999999999",
    b"-",
    b"?20",
];

fn changed(seed: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _change in 0..=chance.index(6) {
        let at = chance.index(bytes.len());
        match chance.index(7) {
            0 if !bytes.is_empty() => bytes[at] = chance.next() as u8,
            1 => bytes.truncate(at),
            2 => {
                let piece = PIECES[chance.index(PIECES.len())];
                bytes.splice(at..at, piece.iter().copied());
            }
            3 => {
                let end = (at + chance.index(40)).min(bytes.len());
                bytes.drain(at..end);
            }
            4 => {
                let end = (at + chance.index(200)).min(bytes.len());
                let copy = bytes[at..end].to_vec();
                let to = chance.index(bytes.len());
                bytes.splice(to..to, copy);
            }
            5 if !bytes.is_empty() => bytes[at] ^= 1 << chance.index(8),
            _ => bytes.rotate_left(at),
        }
    }
    bytes
}

fn fuzz(names: &[&str]) {
    let span = std::env::var("TIEOUT_FUZZ_SECS").ok().and_then(|text| text.parse().ok());
    for name in names {
        let good = fixture(name);
        let until = span.map(|secs| Instant::now() + Duration::from_secs(secs));
        let mut round = 0;
        while until.map_or(round < ROUNDS, |until| Instant::now() < until) {
            let seed = round ^ (good.len() as u64) << 32;
            let bytes = changed(&good, &mut Chance::of(seed));
            let ended = std::panic::catch_unwind(|| inspected(&bytes));
            let found = ended.unwrap_or_else(|_| panic!("{name}: seed {seed} panics: {bytes:?}"));
            let lines = found.sums.lines;
            assert!(lines <= bytes.len() as u64, "{name}: seed {seed} makes lines of nothing");
            round += 1;
        }
    }
}

#[test]
fn no_bytes_break_the_parsers_of_xml() {
    fuzz(&FIXTURES.into_iter().filter(|name| name.ends_with(".xml")).collect::<Vec<_>>());
}

#[test]
fn no_bytes_break_the_parsers_of_lines() {
    fuzz(&FIXTURES.into_iter().filter(|name| !name.ends_with(".xml")).collect::<Vec<_>>());
}
