//! The report of a run: read back from the journal, written as files that anyone can check.
//!
//! It never trusts the memory of the run: everything comes from the database, so that a report
//! can be built again, byte for byte, by another process years later. It never hides that a run
//! does not tie out. It never adds one currency to another. [`verify`](verify()) reads the files
//! alone and recomputes every total by code that shares nothing with the building; with the
//! database at hand [`verify_against`] also builds the report anew and compares byte by byte.
//!
//! How to add a column: append it in [`columns`], render it where its file is made, explain it in
//! `docs/reports.md`, and raise the schema's version.

pub mod columns;
pub mod tie;
pub mod cells;
pub mod csv_file;
pub mod sorter;
pub mod source;
pub mod facts;
pub mod rows;
pub mod captured;
pub mod compared;
pub mod said;
pub mod lines;
pub mod line_case;
pub mod payouts;
pub mod totals;
pub mod advice;
pub mod around;
pub mod back;
pub mod exceptions;
pub mod duplicates;
pub mod inputs;
pub mod aging;
pub mod manifest;
pub mod place;
pub mod queue;
pub mod past;
pub mod error;
pub mod aside;
pub mod build;
pub mod verify;

use std::path::Path;

use crate::report::build::{BuildOptions, Built};
use crate::report::error::ReportError;
use crate::report::place::Listed;
use crate::report::source::Source;
use crate::report::tie::TieOut;
use crate::report::verify::Verified;
use crate::store::records::TotalLine;

/// Builds the report of a closed run under `root`: `DIR/<business date>/<run id>/`.
///
/// # Errors
/// Where the run is unknown or still running, or the database or the disk fails; then nothing new
/// stands in the report's place.
pub async fn build<S: Source>(
    source: &S,
    run_id: &str,
    root: &Path,
    options: &BuildOptions,
) -> Result<Built, ReportError> {
    build::build(source, run_id, root, options).await
}

/// Recomputes hashes, counts, sums and identities of a report from its files alone.
///
/// # Errors
/// Where there is no report, or it cannot be read. A report that is wrong is an answer.
pub fn verify(dir: &Path) -> Result<Verified, ReportError> {
    verify::files(dir)
}

/// [`verify`](verify()), holds the report against the database it was read from, and builds it
/// anew beside it where the run's records are still there.
///
/// # Errors
/// As [`verify`](verify()), where the database fails, and where there is no room to build it anew.
pub async fn verify_against<S: Source>(source: &S, dir: &Path) -> Result<Verified, ReportError> {
    verify::against(source, dir).await
}

/// The reports under `root`, newest first.
///
/// # Errors
/// Where the root cannot be read.
pub fn list(root: &Path) -> Result<Vec<Listed>, ReportError> {
    place::list(root)
}

/// Holds what was claimed against what became of it.
pub fn tie_out(totals: &[TotalLine]) -> TieOut {
    tie::tie_out(totals)
}
