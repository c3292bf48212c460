//! The mapped tables, held against the database and against what is known of the accounts.

use std::collections::BTreeMap;

use crate::run::doctor::{Finding, unread_values};
use crate::run::error::{Doing, RunError};
use crate::run::setup::{AccountSetup, Setup};
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::error::StoreError;
use crate::store::inspect::{Inspect, hides};
use crate::store::mapping::TableSettings;
use crate::store::references::unwritable;
use crate::store::source_table::SourceTable;

/// The mappings as the catalogue has them.
///
/// # Errors
/// Where one does not fit, with every misfit; or the database could not be read.
pub async fn map_tables(
    db: &Database,
    tables: &[TableSettings],
    accounts: &BTreeMap<String, AccountSetup>,
) -> Result<Vec<SourceTable>, StoreError> {
    let names: Vec<String> = accounts.keys().cloned().collect();
    let mapped = db.map_tables(tables, &names).await?;
    let chars = |name: &str| accounts.get(name)?.settings.psp.id_chars();
    let mut unfit: Vec<_> = mapped.iter().flat_map(|table| unwritable(table, chars)).collect();
    for table in &mapped {
        match db.hides_by_status(table).await {
            Ok(true) => unfit.push(hides(table)),
            Ok(false) => {}
            // A row that is hidden once it is written is refused then, one by one.
            Err(error) => {
                let name = table.settings.name.as_str();
                tracing::debug!(table = name, error = %error, "What `read` hides was not told");
            }
        }
    }
    if unfit.is_empty() { Ok(mapped) } else { Err(StoreError::Mapping(unfit)) }
}

/// The mappings as a run goes by them. A column that holds nothing of what its field needs would
/// make a case of each row: it is refused as `config check --connect` and the doctor refuse it.
///
/// # Errors
/// As [`map_tables`], and for such a column.
pub async fn fit_tables(db: &Database, setup: &Setup) -> Result<Vec<SourceTable>, RunError> {
    let tables = map_tables(db, &setup.tables, &setup.accounts).await;
    let tables = tables.doing("checking the mapping against the database")?;
    match unread_values(db, &tables).await.into_iter().next() {
        None => Ok(tables),
        Some(Finding { what, text, next, .. }) => {
            Err(RunError::Unreadable { table: what, text, next: next.unwrap_or_default() })
        }
    }
}
