//! Stuck rows that tieout does not know yet and that are decided as they are met: they have no
//! lease, and [`apply`](crate::store::sqlite::apply) takes them in with their decision.

use sqlx::sqlite::SqliteConnection;

use crate::store::error::StoreError;
use crate::store::records::{Claimed, only_once};
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::claim::{Turn, new_among};
use crate::store::sqlite::rows::read;
use crate::store::sqlite::sql::fetch;

const READING: &str = "reading new rows";

/// Those of the rows that the turn names that are stuck and unknown.
pub(super) async fn new_rows(
    connection: &mut SqliteConnection,
    turn: &Turn<'_>,
) -> Result<Vec<Claimed>, StoreError> {
    let found = fetch(connection, READING, new_among(turn).query()).await?;
    let keys: Vec<String> =
        found.iter().map(|row| Cells::new(row, READING).text(0)).collect::<Result<_, _>>()?;
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let mut rows = read(connection, turn.table, &keys).await?;
    let known = keys.iter().filter_map(|key| rows.remove(*key));
    let stuck = known.filter(|found| found.belongs && found.row.processing).map(|found| found.row);
    Ok(only_once(stuck.map(|row| Claimed::unleased(row, turn.now)).collect()))
}
