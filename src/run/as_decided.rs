//! Rows that people ended by what they saw: a look under watch that shows just that is no news, and
//! opens no second case about what was decided.

use crate::decide::decision::Asked as Why;
use crate::decide::judge::as_people_decided;
use crate::model::reason::Outcome;
use crate::run::error::{Doing, RunError};
use crate::run::gather::Weighed;
use crate::run::scene::{OpenAccount, Scene, policy_of_row};
use crate::store::records::StoredInputs;
use crate::store::replay::ReplayDriver;
use crate::store::source_table::SourceTable;

/// Lets the watch of such rows go on. What was pruned, or what another version wrote, nobody knows.
pub(super) async fn let_be(
    scene: &Scene<'_>,
    table: &SourceTable,
    open: &OpenAccount,
    rows: &mut [Weighed],
) -> Result<(), RunError> {
    let keys: Vec<String> =
        rows.iter().filter(|row| may_be(row)).map(|row| row.claimed.row.key.id.clone()).collect();
    if keys.is_empty() {
        return Ok(());
    }
    let ended = scene.db.ended_by_people(&table.settings.name, &keys).await;
    let ended = ended.doing("reading what people decided by")?;
    for row in rows.iter_mut().filter(|row| may_be(row)) {
        let Some(text) = ended.get(&row.claimed.row.key.id) else { continue };
        let Ok(known) = serde_json::from_str::<StoredInputs>(text) else { continue };
        let policy = policy_of_row(&open.policies, table, row.mapped_status());
        let both = (&row.inputs(), &known.inputs());
        if let Some(decision) = as_people_decided(both, policy, row.now, &row.decision) {
            row.decision = decision;
        }
    }
    Ok(())
}

/// Whether a row ended, nobody changed it since, and a look at it would open a case.
fn may_be(row: &Weighed) -> bool {
    let (claimed, history) = (&row.claimed, &row.claimed.history);
    let is_looked_after = claimed.asked == Why::Watch && claimed.open_case.is_none();
    let has_ended = matches!(history.ended_as, Some(Outcome::Succeeded | Outcome::Failed));
    let is_review = row.decision.outcome() == Outcome::Review;
    is_review && is_looked_after && has_ended && history.is_as_left()
}
