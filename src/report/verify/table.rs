//! Reading a report's CSV files: another reader than the building's writer, and other sums.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::model::money::Currency;
use crate::model::transaction::hex;
use crate::report::error::ReportError;

/// What the manifest says of the dialect, read by this room's own rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notation {
    delimiter: u8,
    mark: char,
    escapes: bool,
}

impl Notation {
    /// By the manifest's word.
    pub fn of(dialect: &str) -> Option<Self> {
        match dialect {
            "rfc4180" => Some(Self { delimiter: b',', mark: '.', escapes: false }),
            "excel" => Some(Self { delimiter: b',', mark: '.', escapes: true }),
            "excel-eu" => Some(Self { delimiter: b';', mark: ',', escapes: true }),
            _unknown => None,
        }
    }

    /// Between cells.
    pub fn delimiter(self) -> u8 {
        self.delimiter
    }

    /// A cell's text without the mark of escaping.
    pub fn unescaped(self, raw: &str) -> &str {
        if self.escapes { raw.strip_prefix('\'').unwrap_or(raw) } else { raw }
    }
}

/// One record; cells are asked for by the column's name.
pub struct Record<'a> {
    /// Where it stands, from 1, the header not counted.
    pub number: u64,
    columns: &'a BTreeMap<String, usize>,
    cells: &'a csv::StringRecord,
    notation: Notation,
}

impl<'a> Record<'a> {
    /// The cell's text without the mark of escaping; empty where the column is missing.
    pub fn text(&self, column: &str) -> &'a str {
        let raw = self.columns.get(column).and_then(|at| self.cells.get(*at)).unwrap_or("");
        self.notation.unescaped(raw)
    }

    /// A whole number; `None` where the cell is empty.
    pub fn int(&self, column: &str) -> Result<Option<i128>, String> {
        let text = self.text(column);
        if text.is_empty() {
            return Ok(None);
        }
        text.parse().map(Some).map_err(|_| format!("{column} {text:?} is not a whole number"))
    }

    /// An amount that stands twice: the decimal must be the minor units at the currency's scale.
    pub fn money(&self, column: &str, currency: &str) -> Result<Option<i128>, String> {
        let minor = self.int(&format!("{column}_minor"))?;
        let decimal = self.text(column);
        match minor {
            None if decimal.is_empty() => Ok(None),
            None => Err(format!("{column} is {decimal:?}, and {column}_minor is empty")),
            Some(minor) if self.is_scaled(decimal, minor, currency) => Ok(Some(minor)),
            Some(minor) => {
                Err(format!("{column} {decimal:?} is not {minor} minor units of {currency:?}"))
            }
        }
    }

    /// Undoes the decimal: its digits are the minor units, its places the currency's scale.
    fn is_scaled(&self, decimal: &str, minor: i128, currency: &str) -> bool {
        let scale = Currency::parse(currency).map_or(0, |known| known.exponent());
        let (whole, places) = decimal.split_once(self.notation.mark).unwrap_or((decimal, ""));
        let is_plain = places.bytes().all(|b| b.is_ascii_digit());
        let has_scale = u32::try_from(places.len()).is_ok_and(|length| length == scale);
        let digits = format!("{whole}{places}");
        is_plain && has_scale && digits.parse::<i128>().is_ok_and(|read| read == minor)
    }

    /// The raw cells.
    pub fn raw(&self) -> impl Iterator<Item = &'a str> {
        self.cells.iter()
    }
}

/// What one file turned out to be.
#[derive(Debug, Default)]
pub struct Found {
    /// SHA-256 of its bytes.
    pub sha256: String,
    /// Its records.
    pub rows: u64,
    /// Cells that begin with the mark of escaping.
    pub escaped: u64,
    /// By column of minor units, by currency.
    pub sums: BTreeMap<String, BTreeMap<String, i128>>,
    /// What is wrong with it.
    pub problems: Vec<String>,
}

/// Reads a file record by record; `check` says what is wrong with each.
pub fn read(
    path: &Path,
    columns: &[&str],
    summed: &[(&str, &str)],
    notation: Notation,
    mut check: impl FnMut(&Record<'_>) -> Vec<String>,
) -> Result<Found, ReportError> {
    let mut found = Found { sha256: hash(path)?, ..Found::default() };
    let file = File::open(path).map_err(ReportError::file("reading", path))?;
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(notation.delimiter)
        .has_headers(false)
        .flexible(true)
        .from_reader(BufReader::new(file));
    let mut record = csv::StringRecord::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut is_header = true;
    loop {
        match reader.read_record(&mut record) {
            Ok(false) => break,
            Ok(true) if is_header => {
                is_header = false;
                found.problems.extend(header(&record, columns, notation));
                places = columns.iter().map(|c| (*c).to_owned()).zip(0..).collect();
            }
            Ok(true) => {
                found.rows = found.rows.saturating_add(1);
                let record =
                    Record { number: found.rows, columns: &places, cells: &record, notation };
                take(&mut found, &record, columns.len(), summed, &mut check);
            }
            Err(error) => {
                let after = found.rows;
                found.problems.push(format!("not readable after record {after}: {error}"));
                break;
            }
        }
    }
    if is_header {
        found.problems.push("there is no header".to_owned());
    }
    Ok(found)
}

fn take(
    found: &mut Found,
    record: &Record<'_>,
    width: usize,
    summed: &[(&str, &str)],
    check: &mut impl FnMut(&Record<'_>) -> Vec<String>,
) {
    if record.cells.len() != width {
        let cells = record.cells.len();
        found.problems.push(format!("record {}: {cells} cells of {width}", record.number));
        return;
    }
    if record.notation.escapes {
        let marked = record.raw().filter(|cell| cell.starts_with('\'')).count();
        found.escaped = found.escaped.saturating_add(u64::try_from(marked).unwrap_or(u64::MAX));
    }
    for (amount, currency) in summed {
        if let Ok(Some(minor)) = record.int(amount) {
            let sums = found.sums.entry((*amount).to_owned()).or_default();
            // Lines of no currency carry no amount; zeros of theirs are not summed.
            if !record.text(currency).is_empty() {
                let sum = sums.entry(record.text(currency).to_owned()).or_default();
                *sum = sum.saturating_add(minor);
            }
        }
    }
    let number = record.number;
    let problems = check(record).into_iter().map(|problem| format!("record {number}: {problem}"));
    found.problems.extend(problems);
}

fn header(record: &csv::StringRecord, columns: &[&str], notation: Notation) -> Option<String> {
    let read: Vec<&str> = record.iter().collect();
    let first = read.first().copied().unwrap_or("");
    let unmarked =
        if notation.escapes { first.strip_prefix('\u{feff}').unwrap_or(first) } else { first };
    let is_same = read.len() == columns.len()
        && columns.first().is_none_or(|wanted| *wanted == unmarked)
        && read.iter().skip(1).eq(columns.iter().skip(1));
    (!is_same).then(|| format!("the header is {read:?}"))
}

fn hash(path: &Path) -> Result<String, ReportError> {
    let failed = || ReportError::file("reading", path);
    let mut file = File::open(path).map_err(failed())?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = file.read(&mut buffer).map_err(failed())?;
        if read == 0 {
            return Ok(hex(&hash.finalize()));
        }
        hash.update(buffer.get(..read).unwrap_or_default());
    }
}

/// An order-blind digest: equal for equal sets of records, however they are sorted. Adding up
/// hashes needs no memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SetDigest(u128);

impl SetDigest {
    /// Takes one record's cells.
    pub fn add<'a>(&mut self, cells: impl Iterator<Item = &'a str>) {
        let mut hash = Sha256::new();
        for cell in cells {
            hash.update(cell.len().to_string().as_bytes());
            hash.update(b":");
            hash.update(cell.as_bytes());
        }
        let digest = hash.finalize();
        let half = digest.iter().take(16).fold(0_u128, |n, byte| (n << 8) | u128::from(*byte));
        self.0 = self.0.wrapping_add(half);
    }
}
