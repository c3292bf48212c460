//! Whatever bytes a bank leaves: reading them ends, in an answer, without a line made of nothing.
//!
//! `TIEOUT_FUZZ_FORMAT` pins the format; without it the content tells, as for a user. With `table`
//! it is each of `fixtures/formats`, with `archive` the bytes are unpacked first.
#![no_main]

use std::io::{Cursor, Read, Write};
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tieout::settlement::Format;
use tieout::settlement::ledger::{Inspection, inspect, inspect_table};
use tieout::settlement::table::{FormatSettings, Table};
use tieout::settlement::unwrap::members;

static WORD: LazyLock<String> =
    LazyLock::new(|| std::env::var("TIEOUT_FUZZ_FORMAT").unwrap_or_default());

/// Formats that a configuration describes.
static TABLES: LazyLock<Vec<Table>> = LazyLock::new(|| {
    let described = [
        include_str!("../../../fixtures/formats/named.toml"),
        include_str!("../../../fixtures/formats/fixed.toml"),
        include_str!("../../../fixtures/formats/batched.toml"),
    ];
    let settings = described.map(|text| toml::from_str::<FormatSettings>(text).unwrap());
    settings.iter().map(|settings| settings.check().unwrap()).collect()
});

fuzz_target!(|bytes: &[u8]| {
    if *WORD == "archive" {
        return unpack(bytes);
    }
    if *WORD == "table" {
        for table in TABLES.iter() {
            let read = inspect_table(Box::new(Cursor::new(bytes.to_vec())), table, None);
            read.iter().for_each(|found| counts(found, bytes));
        }
        return;
    }
    let format = Format::parse(&WORD);
    assert!(format.is_some() || WORD.is_empty(), "no format `{}`", *WORD);
    // What is refused before it is read (an archive within) is an answer, too.
    let Ok(found) = inspect(Box::new(Cursor::new(bytes.to_vec())), format, None) else { return };
    counts(&found, bytes);
});

fn counts(found: &Inspection, bytes: &[u8]) {
    let lines = found.sums.lines.max(found.sums.entries);
    assert!(lines <= u64::try_from(bytes.len()).unwrap(), "lines of nothing");
}

fn unpack(bytes: &[u8]) {
    let mut file = tempfile();
    file.1.write_all(bytes).unwrap();
    for member in members(&file.0).unwrap_or_default() {
        let Ok(mut input) = member.open() else { continue };
        let mut most = vec![0; 1 << 16];
        while input.read(&mut most).is_ok_and(|read| read > 0) {}
    }
}

/// One a process, written anew each time.
fn tempfile() -> (std::path::PathBuf, std::fs::File) {
    let path = std::env::temp_dir().join(format!("tieout-fuzz-{}", std::process::id()));
    let file = std::fs::File::create(&path).unwrap();
    (path, file)
}
