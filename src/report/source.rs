//! What a report is read from: the few verbs of the store that it needs.
//!
//! Every driver is one. A test can be one too, so that files, order and sums are tried on plain
//! vectors. It reads only: a report never writes to the database.

use crate::store::driver::{CaseFilter, Driver};
use crate::store::error::StoreError;
use crate::store::records::{CaseRow, JournalRow, RunRow, TotalLine};

/// The reading verbs, as [`Driver`] describes them.
#[expect(async_fn_in_trait, reason = "called on concrete types only, never as dyn")]
pub trait Source {
    /// One run.
    async fn run(&self, run_id: &str) -> Result<Option<RunRow>, StoreError>;

    /// Both sides of the tie-out.
    async fn run_totals(&self, run_id: &str) -> Result<Vec<TotalLine>, StoreError>;

    /// A page of its journal, by (writer, seq).
    async fn journal_of_run(
        &self,
        run_id: &str,
        after: Option<(String, i64)>,
        limit: i64,
    ) -> Result<Vec<JournalRow>, StoreError>;

    /// A row's records, oldest first.
    async fn journal_of_row(&self, table: &str, key: &str) -> Result<Vec<JournalRow>, StoreError>;

    /// A page of cases, by number.
    async fn cases(&self, filter: &CaseFilter) -> Result<Vec<CaseRow>, StoreError>;

    /// Evidence by its hash.
    async fn evidence(&self, sha256: &str) -> Result<Option<String>, StoreError>;
}

impl<D: Driver> Source for D {
    async fn run(&self, run_id: &str) -> Result<Option<RunRow>, StoreError> {
        Driver::run(self, run_id).await
    }

    async fn run_totals(&self, run_id: &str) -> Result<Vec<TotalLine>, StoreError> {
        Driver::run_totals(self, run_id).await
    }

    async fn journal_of_run(
        &self,
        run_id: &str,
        after: Option<(String, i64)>,
        limit: i64,
    ) -> Result<Vec<JournalRow>, StoreError> {
        Driver::journal_of_run(self, run_id, after, limit).await
    }

    async fn journal_of_row(&self, table: &str, key: &str) -> Result<Vec<JournalRow>, StoreError> {
        Driver::journal_of_row(self, table, key).await
    }

    async fn cases(&self, filter: &CaseFilter) -> Result<Vec<CaseRow>, StoreError> {
        Driver::cases(self, filter).await
    }

    async fn evidence(&self, sha256: &str) -> Result<Option<String>, StoreError> {
        Driver::evidence(self, sha256).await
    }
}
