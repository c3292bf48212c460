//! Bytes that nobody meant: every parser ends, in an answer, on each of them.
//!
//! Seeded changes of every fixture, five seconds a parser or `TIEOUT_FUZZ_SECS`. A failure names
//! its seed. `./test --fuzz` goes on where this ends, guided by which code is reached.

use std::io::{Cursor, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use tieout::settlement::ledger::{Inspection, State, inspect, inspect_table};
use tieout::settlement::unwrap::members;
use tieout::settlement::{FORMATS, Format, recognise};

use crate::breaking::chance::Chance;
use crate::row_files::described::samples;

/// Each parser's, without the variable.
const SECONDS: u64 = 5;

/// What breaks parsers: frames, signs, digits, quotes, line ends, bytes of other encodings.
const PIECES: [&[u8]; 40] = [
    b"\n",
    b"\r",
    b"\r\n",
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
    b"\"",
    b"\"\"",
    b";",
    b"\t",
    b"|",
    b"+",
    b".",
    b",,,,,,",
    b"\0",
    b"SB,",
    b"SF,USD,1,1,1,1\n",
    b"EUR",
    b"PK\x05\x06",
    b"\x1f\x8b\x08",
    b"0.005",
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
                let end = (at + chance.index(120)).min(bytes.len());
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

/// Fixtures of settlement files, with their names.
fn fixtures() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/settlement"));
    let mut found = Vec::new();
    for folder in [folder.to_owned(), folder.join("psp"), folder.join("bank_csv")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                found.push((name, std::fs::read(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// Changes of these files, turn by turn, until the time is over; `look` answers with its lines.
fn fuzz(files: &[(String, Vec<u8>)], look: impl Fn(&[u8]) -> u64 + std::panic::RefUnwindSafe) {
    assert!(!files.is_empty(), "a parser without a fixture is not fuzzed");
    let given = std::env::var("TIEOUT_FUZZ_SECS").ok().and_then(|text| text.parse().ok());
    let until = Instant::now() + Duration::from_secs(given.unwrap_or(SECONDS));
    let mut round = 0;
    while Instant::now() < until {
        for (name, good) in files {
            let seed = round ^ (good.len() as u64) << 32;
            let bytes = changed(good, &mut Chance::of(seed));
            let ended = std::panic::catch_unwind(|| look(&bytes));
            let lines = ended.unwrap_or_else(|_| panic!("{name}: seed {seed} panics: {bytes:?}"));
            assert!(lines <= bytes.len() as u64, "{name}: seed {seed} makes lines of nothing");
        }
        round += 1;
    }
    eprintln!("{round} rounds of {} files", files.len());
}

/// What is refused before it is read (an archive within) makes none.
fn lines_of(found: std::io::Result<Inspection>) -> u64 {
    found.map_or(0, |found| found.sums.lines.max(found.sums.entries))
}

/// A test for each format, so that they share the machine's cores.
macro_rules! fuzzed {
    ($($test:ident $format:literal;)*) => {
        const FUZZED: &[&str] = &[$($format),*];
        $(#[test]
        fn $test() {
            let mut own = fixtures();
            own.retain(|(_, bytes)| {
                recognise(bytes, None).is_some_and(|found| found.format.name() == $format)
            });
            fuzz(&own, |bytes| {
                lines_of(inspect(Box::new(Cursor::new(bytes.to_vec())), None, None))
            });
        })*
    };
}

fuzzed! {
    camt_052 "camt.052";
    camt_053 "camt.053";
    camt_054 "camt.054";
    pain_002 "pain.002";
    mt940 "mt940";
    mt942 "mt942";
    bai2 "bai2";
    nacha "nacha";
    adyen_settlement "adyen_settlement";
    adyen_accounting "adyen_accounting";
    adyen_received "adyen_received";
    stripe "stripe";
    paypal_stl "paypal_stl";
    paypal_trr "paypal_trr";
    braintree "braintree";
    checkout_breakdown "checkout_breakdown";
    checkout_payouts "checkout_payouts";
    checkout_actions "checkout_actions";
    trustly "trustly";
    mollie "mollie";
    shopify "shopify";
    amazon "amazon";
    mercadopago "mercadopago";
    mercadopago_release "mercadopago_release";
    paypal_activity "paypal_activity";
    bank_csv "bank_csv";
}

/// Nor where somebody says what it is.
#[test]
fn nothing_is_made_of_nothing() {
    for known in FORMATS {
        let format = Format::parse(known.name);
        for bytes in ["", "\n", "<Document/>"] {
            let found = inspect(Box::new(Cursor::new(bytes.as_bytes().to_vec())), format, None);
            let found = found.unwrap();
            assert_eq!(found.sums.lines.max(found.sums.entries), 0, "{}: {bytes:?}", known.name);
            assert_eq!(found.state, State::Quarantined, "{}: {bytes:?}", known.name);
        }
    }
}

#[test]
fn every_format_is_fuzzed() {
    let formats: Vec<&str> = FORMATS.iter().map(|known| known.name).collect();
    assert_eq!(FUZZED, formats, "each has a line above, in their order");
}

#[test]
fn described_tables() {
    let mut files = fixtures();
    files.retain(|(name, _)| name.ends_with(".csv"));
    let tables = samples();
    let own = tables.iter().map(|(_, text)| ("described".to_owned(), text.as_bytes().to_vec()));
    files.extend(own);
    fuzz(&files, |bytes| {
        let sums = tables.iter().map(|(table, _)| {
            lines_of(inspect_table(Box::new(Cursor::new(bytes.to_vec())), table, None))
        });
        sums.max().unwrap_or(0)
    });
}

/// Archives, whole and broken: what is in them is bounded, and read to its end or refused.
#[test]
fn archives() {
    let gz = |bytes: &[u8]| {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        writer.write_all(bytes).unwrap();
        writer.finish().unwrap()
    };
    let zip = |files: &[(String, Vec<u8>)]| {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in files {
            writer.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap().into_inner()
    };
    let some = &fixtures()[..4];
    let mut files: Vec<(String, Vec<u8>)> =
        some.iter().map(|(name, bytes)| (format!("{name}.gz"), gz(bytes))).collect();
    files.push(("all.zip".to_owned(), zip(some)));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fuzz(&files, |bytes| {
        std::fs::write(&path, bytes).unwrap();
        for member in members(&path).unwrap_or_default() {
            if let Ok(mut file) = member.open() {
                let mut seen = std::io::sink();
                drop(std::io::copy(&mut file, &mut seen));
            }
        }
        0
    });
}
