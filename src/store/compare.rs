//! A window compared whole: reading all its rows, and keeping what was found of each.

use tokio::sync::mpsc::Sender;

use chrono::NaiveDate;

use crate::decide::compare::Bucket;
use crate::model::money::Money;
use crate::model::time::Instant;
use crate::model::transaction::Transaction;
use crate::store::error::StoreError;
use crate::store::files::LinePlace;
use crate::store::records::ClaimFilter;
use crate::store::source_table::SourceTable;

/// How many rows are handed on at once.
pub const ROWS_AT_ONCE: usize = 2_000;

/// Statements whose lines may count. Where a correction took the place of one, what both have
/// stays where it counted first: each line says of itself whether it still does.
pub(in crate::store) const COUNTED: &str = "state in ('live', 'superseded')";

/// The verbs of a comparison.
#[expect(async_fn_in_trait, reason = "called on concrete types only, never as dyn")]
pub trait CompareDriver {
    /// Every row of the mapping that lies in the filter's window and accounts, in whatever status
    /// and in no promised order, some at a time, in flat memory. Ends early where nobody takes
    /// them any more.
    async fn stream_rows(
        &self,
        table: &SourceTable,
        filter: &ClaimFilter,
        rows: Sender<Vec<Transaction>>,
    ) -> Result<(), StoreError>;

    /// The numbers of an account's files with a statement that touches these days, both included,
    /// or that tells no period, and that counts or did before it was corrected; after a number.
    async fn files_of_days(
        &self,
        account: &str,
        days: (NaiveDate, NaiveDate),
        after: i64,
        limit: i64,
    ) -> Result<Vec<i64>, StoreError>;

    /// Keeps what was found; nothing where the run is closed.
    async fn put_compared(&self, run_id: &str, found: &[Compared]) -> Result<(), StoreError>;

    /// A page of what a run found, by number.
    async fn compared_of_run(
        &self,
        run_id: &str,
        after: i64,
        limit: i64,
    ) -> Result<Vec<Compared>, StoreError>;
}

/// A row, an object at the PSP, a line of a file, or what belongs together of them; each once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Compared {
    /// From 1 within the run.
    pub number: i64,
    /// Where it stands.
    pub bucket: Bucket,
    /// The account.
    pub account: String,
    /// The row: table and key.
    pub row: Option<(String, String)>,
    /// The tag; may be empty.
    pub tag: String,
    /// The row's status.
    pub local_status: Option<String>,
    /// The row's amount, + being money to the merchant.
    pub local: Option<Money>,
    /// The object at the PSP.
    pub psp_reference: Option<String>,
    /// Whether money moved there: `captured`, `uncaptured`.
    pub psp_status: Option<String>,
    /// What moved there, + being money to the merchant.
    pub psp: Option<Money>,
    /// The line of a file.
    pub line: Option<LinePlace>,
    /// Its amount, + being money to the merchant.
    pub file: Option<Money>,
    /// When the row or object was made.
    pub at: Option<Instant>,
    /// One sentence, where there is more to say.
    pub note: String,
}
