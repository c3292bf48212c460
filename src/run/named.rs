//! Rows that somebody named by `--id`: each is looked at, or it is said why it was not.

use std::collections::BTreeSet;

use crate::model::time::to_short_text;
use crate::model::transaction::RowKey;
use crate::run::books::{Books, Tell};
use crate::run::error::{Doing, RunError};
use crate::run::events::Event;
use crate::run::scene::Scene;
use crate::run::setup::RunOptions;
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::inspect::{Inspect, NamedRow};
use crate::store::source_table::SourceTable;

/// What the named rows are, by their table; nothing where none was named.
///
/// # Errors
/// Where a named row is in none of the tables.
pub async fn find(
    db: &Database,
    tables: &[SourceTable],
    options: &RunOptions,
) -> Result<Vec<(String, NamedRow)>, RunError> {
    let Some(ids) = &options.ids else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for table in tables {
        let rows = db.named_rows(table, ids).await.doing("looking for the named rows")?;
        found.extend(rows.into_iter().map(|row| (table.settings.name.clone(), row)));
    }
    let known: BTreeSet<&str> = found.iter().map(|(_, row)| row.id.as_str()).collect();
    let missing: Vec<String> =
        ids.iter().filter(|id| !known.contains(id.as_str())).cloned().collect();
    if missing.is_empty() {
        return Ok(found);
    }
    // A uuid in capitals, a time in another zone: rows are known by what the database writes.
    let written = found.into_iter().map(|(_, row)| row.id).filter(|id| !ids.contains(id));
    Err(RunError::NoSuchRow { ids: missing, written: written.collect() })
}

/// Says of each named row that was not looked at why not.
pub async fn tell_rest(
    scene: &Scene<'_>,
    books: &Books,
    named: &[(String, NamedRow)],
    tell: Tell<'_>,
) -> Result<(), RunError> {
    for (table, row) in named {
        let key = RowKey { table: table.clone(), id: row.id.clone() };
        if books.looked_at.contains(&key) {
            continue;
        }
        let why = why_not(scene, &key, row).await?;
        tell(Event::NotLookedAt { table: table.clone(), id: row.id.clone(), why });
    }
    Ok(())
}

async fn why_not(scene: &Scene<'_>, key: &RowKey, row: &NamedRow) -> Result<String, RunError> {
    if !row.belongs {
        return Ok("the mapping's where leaves it out".to_owned());
    }
    let table = scene.tables.iter().find(|table| table.settings.name == key.table);
    let status = row.status.as_deref().unwrap_or("NULL");
    if table.is_none_or(|table| !table.processing_values().iter().any(|value| value == status)) {
        return Ok(format!("its status is `{status}`, which is not stuck, and it is not watched"));
    }
    let check = scene.db.check(&key.table, &key.id).await.doing("reading a row's check")?;
    Ok(match check.and_then(|check| check.lease) {
        Some((run, until)) if run != scene.run_id => {
            format!("run {run} has it until {}", to_short_text(until))
        }
        _free => "it is outside of the window, of the accounts or of the limit that were asked \
                  for, or the run stopped before it"
            .to_owned(),
    })
}
