//! What a report is read from: the few verbs of the store that it needs.
//!
//! Every driver is one. A test can be one too, so that files, order and sums are tried on plain
//! vectors. It reads only: a report never writes to the database.

use std::collections::BTreeSet;

use crate::model::time::Instant;
use crate::store::compare::{CompareDriver, Compared};
use crate::store::driver::{CaseFilter, Driver};
use crate::store::error::StoreError;
use crate::store::files::{FileDriver, FileOfRun, LineOfRun, LinePlace, LinesOfRun, StoredLine};
use crate::store::payouts::{Booking, NamedPayout, Payout, PayoutDriver, PayoutKey};
use crate::store::records::{CaseRow, JournalRow, RunRow, TotalLine};

/// The reading verbs, as [`Driver`] describes them.
#[expect(async_fn_in_trait, reason = "called on concrete types only, never as dyn")]
pub trait Source {
    /// One run.
    async fn run(&self, run_id: &str) -> Result<Option<RunRow>, StoreError>;

    /// When its records were pruned, where they were.
    async fn pruned_at(&self, run_id: &str) -> Result<Option<Instant>, StoreError>;

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

    /// A page of the lines of files that it matched or noted, by their place.
    async fn lines_of_run(
        &self,
        run_id: &str,
        which: LinesOfRun,
        after: Option<LinePlace>,
        limit: i64,
    ) -> Result<Vec<LineOfRun>, StoreError>;

    /// The lines that other runs had matched by then to these rows, by table and key.
    async fn lines_of_rows(
        &self,
        run_id: &str,
        rows: &[(String, String)],
        until: Instant,
    ) -> Result<Vec<StoredLine>, StoreError>;

    /// A payout, added up from what had come by then.
    async fn payout(&self, key: &PayoutKey, until: Instant) -> Result<Option<Payout>, StoreError>;

    /// The payouts that these texts name, by then.
    async fn payouts_named(
        &self,
        texts: &[String],
        until: Instant,
    ) -> Result<Vec<NamedPayout>, StoreError>;

    /// The payouts that these lines are parts of, or were bookings of by then.
    async fn payouts_at(
        &self,
        places: &[LinePlace],
        until: Instant,
    ) -> Result<BTreeSet<PayoutKey>, StoreError>;

    /// The payouts that a file tells of, by then.
    async fn payouts_of_file(&self, file: i64, until: Instant) -> Result<Vec<Payout>, StoreError>;

    /// The bank's lines that had come by then and name a payout.
    async fn payout_bookings(
        &self,
        payout: &PayoutKey,
        until: Instant,
    ) -> Result<Vec<Booking>, StoreError>;

    /// A page of what a comparison of its window found, by number.
    async fn compared_of_run(
        &self,
        run_id: &str,
        after: i64,
        limit: i64,
    ) -> Result<Vec<Compared>, StoreError>;

    /// A page of the files that it had to do with, by number.
    async fn files_of_run(
        &self,
        run_id: &str,
        after: i64,
        limit: i64,
    ) -> Result<Vec<FileOfRun>, StoreError>;
}

impl<D: Driver + FileDriver + CompareDriver + PayoutDriver> Source for D {
    async fn run(&self, run_id: &str) -> Result<Option<RunRow>, StoreError> {
        Driver::run(self, run_id).await
    }

    async fn pruned_at(&self, run_id: &str) -> Result<Option<Instant>, StoreError> {
        Driver::pruned_at(self, run_id).await
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
    async fn lines_of_run(
        &self,
        run_id: &str,
        which: LinesOfRun,
        after: Option<LinePlace>,
        limit: i64,
    ) -> Result<Vec<LineOfRun>, StoreError> {
        FileDriver::lines_of_run(self, run_id, which, after, limit).await
    }

    async fn lines_of_rows(
        &self,
        run_id: &str,
        rows: &[(String, String)],
        until: Instant,
    ) -> Result<Vec<StoredLine>, StoreError> {
        FileDriver::lines_of_rows(self, run_id, rows, until).await
    }

    async fn payout(&self, key: &PayoutKey, until: Instant) -> Result<Option<Payout>, StoreError> {
        PayoutDriver::payout(self, key, Some(until)).await
    }

    async fn payouts_named(
        &self,
        texts: &[String],
        until: Instant,
    ) -> Result<Vec<NamedPayout>, StoreError> {
        PayoutDriver::payouts_named(self, texts, Some(until)).await
    }

    async fn payouts_at(
        &self,
        places: &[LinePlace],
        until: Instant,
    ) -> Result<BTreeSet<PayoutKey>, StoreError> {
        PayoutDriver::payouts_at(self, places, until).await
    }

    async fn payouts_of_file(&self, file: i64, until: Instant) -> Result<Vec<Payout>, StoreError> {
        PayoutDriver::payouts_of_file(self, file, Some(until)).await
    }

    async fn payout_bookings(
        &self,
        payout: &PayoutKey,
        until: Instant,
    ) -> Result<Vec<Booking>, StoreError> {
        PayoutDriver::payout_bookings(self, payout, Some(until)).await
    }

    async fn compared_of_run(
        &self,
        run_id: &str,
        after: i64,
        limit: i64,
    ) -> Result<Vec<Compared>, StoreError> {
        CompareDriver::compared_of_run(self, run_id, after, limit).await
    }

    async fn files_of_run(
        &self,
        run_id: &str,
        after: i64,
        limit: i64,
    ) -> Result<Vec<FileOfRun>, StoreError> {
        FileDriver::files_of_run(self, run_id, after, limit).await
    }
}
