//! Rows whose present status tieout itself wrote: they are decided by the mapping's line for the
//! status that they had before.
//!
//! What a person or a program wrote is theirs. A row in its mapping's `review` value is open only
//! as tieout left it: that status came from a decision to ask a person, and nothing that a
//! decision reads was changed since.

use std::collections::HashMap;

use crate::decide::decision::Asked as Why;
use crate::model::reason::Outcome;
use crate::model::transaction::Transaction;
use crate::run::error::{Doing, RunError};
use crate::run::scene::Scene;
use crate::store::effects::map_of;
use crate::store::mapping::FilterValue;
use crate::store::records::Claimed;
use crate::store::replay::{ReplayDriver, Written};
use crate::store::source_table::SourceTable;

/// By a row's key: the status before the one that tieout wrote.
pub type Mapped = HashMap<String, String>;

/// Whether a row has its mapping's `review` value.
pub fn is_in_review(table: &SourceTable, row: &Transaction) -> bool {
    let mut reviews = table.settings.map.iter().filter_map(|map| map.review.as_ref());
    reviews.any(|FilterValue(text)| *text == row.status)
}

/// Of rows whose status the mapping does not begin from: those that tieout left so.
pub async fn as_left(
    scene: &Scene<'_>,
    table: &SourceTable,
    claimed: &[Claimed],
) -> Result<Mapped, RunError> {
    let last = last_written(scene, table, keys_of(table, claimed, |_one| true)).await?;
    let ours = claimed.iter().filter_map(|one| {
        let written = last.get(&one.row.key.id).filter(|written| is_as_left(one, written))?;
        Some((one.row.key.id.clone(), began_as(table, written)?))
    });
    Ok(ours.collect())
}

/// The status that the mapping begins from. Where a person undid what tieout had written, the
/// status before was its own word, too: that of the one line that has both.
fn began_as(table: &SourceTable, written: &Written) -> Option<String> {
    let (before, after) = (&written.status_before, &written.status_after);
    if map_of(&table.settings, before).is_some() {
        return Some(before.clone());
    }
    let mut lines = table.settings.map.iter().filter(|map| {
        let ends = [&map.succeeded, &map.failed, &map.retryable, &map.review];
        let writes =
            |status: &String| ends.into_iter().flatten().any(|FilterValue(text)| text == status);
        writes(before) && writes(after)
    });
    let line = lines.next().filter(|_| lines.next().is_none())?;
    line.from.first().map(|FilterValue(text)| text.clone())
}

/// Opens rows that tieout sent to review and that nobody touched since, so that they are decided
/// again as they were; any other row that has left processing stays one that ended.
pub async fn reopen(
    scene: &Scene<'_>,
    table: &SourceTable,
    claimed: &mut [Claimed],
) -> Result<Mapped, RunError> {
    let is_sent = |one: &Claimed| {
        one.asked == Why::Watch
            && one.open_case.is_some()
            && one.history.ended_as.is_none()
            && is_in_review(table, &one.row)
    };
    let last = last_written(scene, table, keys_of(table, claimed, is_sent)).await?;
    let mut mapped = Mapped::new();
    for one in claimed.iter_mut() {
        let written = last.get(&one.row.key.id).filter(|written| {
            written.outcome == Outcome::Review
                && one.history.fingerprint_seen_at <= written.at
                && is_as_left(one, written)
                && map_of(&table.settings, &written.status_before).is_some()
        });
        if let Some(written) = written {
            one.asked = Why::Kick;
            mapped.insert(one.row.key.id.clone(), written.status_before.clone());
        }
    }
    Ok(mapped)
}

/// The wanted ones whose status the mapping does not begin from.
fn keys_of(
    table: &SourceTable,
    claimed: &[Claimed],
    wanted: impl Fn(&Claimed) -> bool,
) -> Vec<String> {
    let is_mapped = |one: &Claimed| map_of(&table.settings, &one.row.status).is_some();
    let unmapped = claimed.iter().filter(|one| !is_mapped(one) && wanted(one));
    unmapped.map(|one| one.row.key.id.clone()).collect()
}

async fn last_written(
    scene: &Scene<'_>,
    table: &SourceTable,
    keys: Vec<String>,
) -> Result<HashMap<String, Written>, RunError> {
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let last = scene.db.last_written(&table.settings.name, &keys).await;
    last.doing("reading what was written to rows")
}

/// Whether the row's status is the one that tieout wrote last, and the row is as it was then. A
/// row under watch is remembered as it ended, and its worker may have changed it since: there the
/// status alone tells.
fn is_as_left(one: &Claimed, written: &Written) -> bool {
    let history = &one.history;
    written.status_after == one.row.status
        && (history.watch_from.is_some() || history.fingerprint_seen_at <= written.at)
}
