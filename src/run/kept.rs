//! What a person's success leaves in the row. tieout writes a reference only where there is none:
//! the row's own, or what an undone decision wrote, stays, and whoever decides by another object is
//! told so wherever the decision is proposed, approved, carried out and shown.
//!
//! It reads what the case shows, what people decided and, where that does not tell, the journal; it
//! writes nothing.

use std::collections::BTreeSet;

use crate::model::reason::{Outcome, Reason};
use crate::run::books::Books;
use crate::run::error::{Doing, RunError};
use crate::run::scene::Scene;
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::error::StoreError;
use crate::store::mapping::{SetSettings, TableSettings};
use crate::store::people::{Approved, PeopleDriver, Proposal, ProposalState, What};
use crate::store::records::{Applied, CaseRow, StoredInputs};

/// The row of a case.
#[derive(Debug, Clone, Copy)]
pub struct OfCase<'a> {
    /// Its table.
    pub table: &'a str,
    /// Its key.
    pub key: &'a str,
    /// What the case shows of it.
    pub evidence: Option<&'a str>,
}

impl<'a> From<&'a CaseRow> for OfCase<'a> {
    fn from(case: &'a CaseRow) -> Self {
        Self { table: &case.table, key: &case.subject, evidence: case.evidence_sha256.as_deref() }
    }
}

/// What a decision that is proposed now would leave in the row. `proposals`: the case's, where it
/// is to undo what they ended as.
///
/// # Errors
/// Where the database cannot be read.
pub async fn kept_if(
    db: &Database,
    tables: &[TableSettings],
    row: OfCase<'_>,
    asked: (What, Option<&str>),
    proposals: &[Proposal],
) -> Result<Option<String>, StoreError> {
    let done: Vec<&Proposal> = proposals.iter().filter(is_done).collect();
    kept(db, tables, row, asked, &done).await
}

/// What this decision leaves, or left, in the row. `proposals` are the case's.
///
/// # Errors
/// Where the database cannot be read.
pub async fn kept_by(
    db: &Database,
    tables: &[TableSettings],
    row: OfCase<'_>,
    decision: &Proposal,
    proposals: &[Proposal],
) -> Result<Option<String>, StoreError> {
    let is_earlier =
        |one: &&Proposal| decision.undoes && is_done(one) && one.number < decision.number;
    let earlier: Vec<&Proposal> = proposals.iter().filter(is_earlier).collect();
    let asked = (decision.what, decision.psp_reference.as_deref());
    kept(db, tables, row, asked, &earlier).await
}

/// The same of the case's last decision.
///
/// # Errors
/// Where the database cannot be read.
pub async fn kept_by_last(
    db: &Database,
    tables: &[TableSettings],
    row: OfCase<'_>,
    proposals: &[Proposal],
) -> Result<Option<String>, StoreError> {
    match proposals.iter().rfind(is_done) {
        Some(last) => kept_by(db, tables, row, last, proposals).await,
        None => Ok(None),
    }
}

fn is_done(proposal: &&Proposal) -> bool {
    proposal.state == ProposalState::CarriedOut
}

/// Notes for the summary what decisions that were to be carried out left in their rows.
pub(super) async fn note_kept(
    scene: &Scene<'_>,
    books: &mut Books,
    approved: &[Approved],
) -> Result<(), RunError> {
    let (doing, tables) = ("reading what a decision left in its row", &scene.setup.tables);
    for one in approved {
        let number = one.proposal.case_number;
        let proposals = scene.db.proposals(&[number]).await.doing(doing)?;
        let is_it = |own: &&Proposal| own.number == one.proposal.number && is_done(own);
        let Some(done) = proposals.iter().find(is_it) else { continue };
        let (table, key) = (one.table.as_str(), one.subject.as_str());
        let row = OfCase { table, key, evidence: one.evidence_sha256.as_deref() };
        let kept = kept_by(scene.db, tables, row, done, &proposals).await.doing(doing)?;
        books.kept.extend(kept.map(|kept| format!("C-{number}: {kept}")));
    }
    Ok(())
}

/// `earlier`: the decisions of the case that were carried out before.
async fn kept(
    db: &Database,
    tables: &[TableSettings],
    row: OfCase<'_>,
    (what, reference): (What, Option<&str>),
    earlier: &[&Proposal],
) -> Result<Option<String>, StoreError> {
    let table = tables.iter().find(|known| known.name == row.table);
    let Some(table) = table.filter(|_| what == What::Succeeded) else { return Ok(None) };
    let wanted = references_of(&table.set, Outcome::Succeeded);
    let own = table.psp_reference.as_deref().filter(|column| wanted.contains(column));
    if let (Some(column), Some(object)) = (own, reference)
        && let Some(other) = own_reference(db, row).await?.filter(|other| other != object)
    {
        return Ok(Some(format!(
            "the row has {other} in `{column}`, and keeps it (tieout writes a reference only \
             where there is none); where it shall name {object}, write that into the row yourself"
        )));
    }
    let mut kept: BTreeSet<&str> = BTreeSet::new();
    for proposal in earlier {
        let Some(outcome) = outcome_of(proposal.what) else { continue };
        let written = references_of(&table.set, outcome);
        let both: Vec<&str> = wanted.intersection(&written).copied().collect();
        if !both.is_empty() && wrote_one(db, row, proposal).await? {
            kept.extend(both);
        }
    }
    if kept.is_empty() {
        return Ok(None);
    }
    let names: Vec<String> = kept.iter().map(|column| format!("`{column}`")).collect();
    let object = reference.unwrap_or("the object that it is marked with");
    Ok(Some(format!(
        "where the row has a reference in {} already, it keeps that one (tieout writes a \
         reference only where there is none, and with another status alone); where it shall name \
         {object} and does not, write that into the row yourself",
        names.join(" and ")
    )))
}

/// The row's own reference, as its case shows it.
async fn own_reference(db: &Database, row: OfCase<'_>) -> Result<Option<String>, StoreError> {
    let Some(hash) = row.evidence else { return Ok(None) };
    let text = db.evidence(hash).await?;
    let inputs = text.and_then(|text| serde_json::from_str::<StoredInputs>(&text).ok());
    Ok(inputs.and_then(|inputs| inputs.row.psp_reference))
}

/// The columns that get a PSP's reference with this outcome.
fn references_of(set: &SetSettings, outcome: Outcome) -> BTreeSet<&str> {
    let (always, with) = (&set.always, set.with(outcome));
    let is_replaced = |column: &String| with.is_some_and(|with| with.contains_key(column));
    let always = always.iter().filter(|(column, _)| !is_replaced(column));
    let all = always.chain(with.into_iter().flatten());
    let whole = all.filter(|(_, template)| template.as_str() == "{psp_reference}");
    whole.map(|(column, _)| column.as_str()).collect()
}

fn outcome_of(what: What) -> Option<Outcome> {
    match what {
        What::Succeeded => Some(Outcome::Succeeded),
        What::Retryable => Some(Outcome::Retryable),
        What::Failed => Some(Outcome::Failed),
        What::Left => None,
    }
}

/// Whether a decision had a reference to write. A success always has one; of another end the record
/// tells whether the PSP showed anything.
async fn wrote_one(
    db: &Database,
    row: OfCase<'_>,
    proposal: &Proposal,
) -> Result<bool, StoreError> {
    if proposal.what == What::Succeeded {
        return Ok(true);
    }
    let records = db.journal_of_row(row.table, row.key).await?;
    Ok(records.iter().any(|record| {
        proposal.ended_run.as_ref() == Some(&record.run_id)
            && record.reason == Reason::ByPerson
            && record.applied == Applied::Yes
            && record.status_before != record.status_after
            && record.psp_reference.is_some()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_with_an_outcome_takes_the_place_of_what_is_always_written() {
        let of = |pairs: &[(&str, &str)]| {
            let owned = |text: &str| text.to_owned();
            pairs.iter().map(|(column, template)| (owned(column), owned(template))).collect()
        };
        let set = SetSettings {
            always: of(&[("ref", "{psp_reference}"), ("seen", "{now}"), ("b", "{psp_reference}")]),
            succeeded: of(&[("b", "{reason}"), ("paid_by", "{psp_reference}")]),
            ..SetSettings::default()
        };
        let names = |outcome| Vec::from_iter(references_of(&set, outcome));
        assert_eq!(names(Outcome::Succeeded), ["paid_by", "ref"]);
        assert_eq!(names(Outcome::Failed), ["b", "ref"]);
    }
}
