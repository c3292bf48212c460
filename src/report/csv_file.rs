//! One CSV file on its way to the disk: written once, hashed and summed as it is written.
//!
//! It never holds more than a buffer, and it is on the disk before anything names it as done.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::model::transaction::hex;
use crate::report::cells::{Cell, Dialect, encode};
use crate::report::columns::Sheet;
use crate::report::error::ReportError;

/// About what a cell takes, in bytes.
const WIDTH: usize = 24;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// What the manifest says of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileEntry {
    /// Its name.
    pub name: String,
    /// SHA-256 of its bytes.
    pub sha256: String,
    /// Records, the header not counted.
    pub rows: u64,
    /// By column of minor units, by currency. Texts: a sum may be too large for a JSON number.
    pub sums: BTreeMap<String, BTreeMap<String, String>>,
}

/// A file being written.
pub struct CsvFile {
    sheet: &'static Sheet,
    dialect: Dialect,
    path: PathBuf,
    out: BufWriter<File>,
    hash: Sha256,
    rows: u64,
    escaped: u64,
    sums: Vec<SumOfColumn>,
}

/// One summed column: where it and its currency stand, and the sums so far.
struct SumOfColumn {
    column: &'static str,
    amount_at: usize,
    currency_at: usize,
    by_currency: BTreeMap<String, i128>,
}

impl CsvFile {
    /// Opens the file and writes its header.
    pub fn create(
        folder: &Path,
        sheet: &'static Sheet,
        dialect: Dialect,
    ) -> Result<Self, ReportError> {
        let path = folder.join(sheet.file);
        let file = File::create_new(&path).map_err(ReportError::file("creating", &path))?;
        let place = |column: &str| sheet.columns.iter().position(|c| *c == column);
        let sums = sheet.sums.iter().filter_map(|(column, currency)| {
            Some(SumOfColumn {
                column,
                amount_at: place(column)?,
                currency_at: place(currency)?,
                by_currency: BTreeMap::new(),
            })
        });
        let sums = sums.collect();
        let out = BufWriter::new(file);
        let hash = Sha256::new();
        let mut file = Self { sheet, dialect, path, out, hash, rows: 0, escaped: 0, sums };
        if dialect.is_for_spreadsheets() {
            file.put(BYTE_ORDER_MARK)?;
        }
        let header: Vec<Cell> = sheet.columns.iter().map(|name| Cell::word(name)).collect();
        let mut line = Vec::new();
        encode(&header, dialect, &mut line);
        file.put(&line)?;
        Ok(file)
    }

    /// Renders a record and counts it, for [`CsvFile::put`] in whatever order.
    pub fn render(&mut self, cells: &[Cell]) -> Vec<u8> {
        debug_assert_eq!(cells.len(), self.sheet.columns.len(), "{}", self.sheet.file);
        let mut line = Vec::with_capacity(cells.len().saturating_mul(WIDTH));
        self.escaped = self.escaped.saturating_add(encode(cells, self.dialect, &mut line));
        self.rows = self.rows.saturating_add(1);
        for sum in &mut self.sums {
            if let (Some(Cell::Int(minor)), Some(Cell::Word(currency))) =
                (cells.get(sum.amount_at), cells.get(sum.currency_at))
            {
                match sum.by_currency.get_mut(currency) {
                    Some(total) => *total = total.saturating_add(*minor),
                    None => drop(sum.by_currency.insert(currency.clone(), *minor)),
                }
            }
        }
        line
    }

    /// Writes rendered bytes.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), ReportError> {
        self.hash.update(bytes);
        self.out.write_all(bytes).map_err(ReportError::file("writing", &self.path))
    }

    /// Renders and writes a record.
    pub fn write(&mut self, cells: &[Cell]) -> Result<(), ReportError> {
        let line = self.render(cells);
        self.put(&line)
    }

    /// Brings it to the disk; returns its entry and how many cells were escaped.
    pub fn finish(self) -> Result<(FileEntry, u64), ReportError> {
        let failed =
            |source| ReportError::File { doing: "writing", path: self.path.clone(), source };
        let file = self.out.into_inner().map_err(|e| failed(e.into_error()))?;
        file.sync_all().map_err(failed)?;
        let texts = |sums: BTreeMap<String, i128>| {
            sums.into_iter().map(|(code, sum)| (code, sum.to_string())).collect()
        };
        let entry = FileEntry {
            name: self.sheet.file.to_owned(),
            sha256: hex(&self.hash.finalize()),
            rows: self.rows,
            sums: self
                .sums
                .into_iter()
                .map(|sum| (sum.column.to_owned(), texts(sum.by_currency)))
                .collect(),
        };
        Ok((entry, self.escaped))
    }
}
