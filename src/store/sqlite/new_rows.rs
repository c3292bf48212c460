//! Stuck rows that tieout does not know yet and that are decided as they are met: they have no
//! lease, and [`apply`](crate::store::sqlite::apply) takes them in with their decision.

use sqlx::sqlite::SqliteConnection;

use crate::store::error::StoreError;
use crate::store::records::{ClaimFilter, only_once};
use crate::store::source_table::SourceTable;
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::claim;
use crate::store::sqlite::sql::fetch;

pub(super) const READING: &str = "reading new rows";

/// Those of the rows that the filter names that are stuck and unknown, in the order of their keys.
pub(super) async fn new_among(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    filter: &ClaimFilter,
) -> Result<Vec<String>, StoreError> {
    let found = fetch(connection, READING, claim::new_among(table, filter).query()).await?;
    let keys = found.iter().map(|row| Cells::new(row, READING).text(0));
    Ok(only_once(keys.collect::<Result<_, _>>()?))
}
