//! Settlement files: what each format tells, what a change does to it, and that nothing breaks it.
//!
//! The fixtures are made here, small, one dialect beside another. Adding one: the file under
//! `fixtures/settlement`, its name in [`FIXTURES`], `TIEOUT_BLESS=1`, and read what it tells.

mod bank_csv;
mod command;
mod formats;
mod fuzz;
mod mutations;
mod properties;
mod traps;

use std::io::Cursor;
use std::path::Path;

use tieout::model::settlement::Severity;
use tieout::settlement::ledger::{Inspection, inspect};
use tieout::settlement::text::Source;
use tieout::settlement::{Item, open, recognise};

/// Every fixture; all of them tie.
pub const FIXTURES: [&str; 12] = [
    "bai2_dialects.txt",
    "bai2_spec.txt",
    "camt052.xml",
    "camt053_v02.xml",
    "camt053_v08.xml",
    "camt054.xml",
    "mt940_de.sta",
    "mt940_nl.sta",
    "mt942.sta",
    "nacha.ach",
    "nacha_returns.ach",
    "pain002.xml",
];

/// A fixture's bytes.
pub fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/settlement");
    std::fs::read(folder.join(name)).unwrap()
}

/// What becomes of these bytes.
pub fn inspected(bytes: &[u8]) -> Inspection {
    inspect(Box::new(Cursor::new(bytes.to_vec())), None, None).unwrap()
}

/// What a parser tells, item by item.
pub fn items(bytes: &[u8]) -> Vec<Item> {
    let mut source = Source::open(Box::new(Cursor::new(bytes.to_vec())), None).unwrap();
    let found = recognise(source.head().unwrap(), None).expect("a format");
    let mut parser = open(found.format, source).expect("a parser");
    let mut items = Vec::new();
    loop {
        match parser.next() {
            Ok(Some(item)) => items.push(item),
            Ok(None) => return items,
            Err(problem) => {
                items.push(problem.into());
                return items;
            }
        }
    }
}

/// The problems that quarantine, in short.
pub fn errors(inspection: &Inspection) -> Vec<String> {
    let errors = inspection.sums.problems.iter().filter(|p| p.severity == Severity::Error);
    errors.map(ToString::to_string).collect()
}
