//! What a person's success leaves in the row. tieout writes a reference only where there is none:
//! the row's own, or what an undone decision wrote, stays, and whoever decides by another object is
//! told so wherever the decision is proposed, approved, carried out and shown. Where nobody names
//! an object, it is the one that the case shows as captured.
//!
//! It reads what the case shows, what people decided and, where that does not tell, the journal; it
//! writes nothing.

use std::collections::BTreeSet;

use crate::model::evidence::{Answer, PspObject};
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

/// The same of the case's last decision that was carried out.
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

/// The same of the one that waits, to be approved or to be carried out, or else of the last.
///
/// # Errors
/// Where the database cannot be read.
pub async fn kept_by_newest(
    db: &Database,
    tables: &[TableSettings],
    row: OfCase<'_>,
    proposals: &[Proposal],
) -> Result<Option<String>, StoreError> {
    let waits =
        |one: &&Proposal| matches!(one.state, ProposalState::Open | ProposalState::Approved);
    match proposals.iter().rfind(waits) {
        Some(waiting) => kept_by(db, tables, row, waiting, proposals).await,
        None => kept_by_last(db, tables, row, proposals).await,
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
    let shown = shown_of(db, row).await?;
    let reference = reference.or_else(|| the_captured(shown.as_ref()?));
    let own = shown.as_ref().and_then(|shown| shown.row.psp_reference.as_deref());
    let own = table.psp_reference.as_deref().zip(own);
    if let (Some((column, own)), Some(object)) = (own, reference)
        && !is_one_object(shown.as_ref(), own, object)
    {
        let why = match wanted.contains(column) {
            true => "tieout writes a reference only where there is none",
            false => "the mapping has tieout write none there",
        };
        return Ok(Some(format!(
            "the row has {own} in `{column}`, and keeps it ({why}); where it shall name {object}, \
             write that into the row yourself"
        )));
    }
    let mut kept: BTreeSet<&str> = BTreeSet::new();
    for proposal in earlier {
        let Some(outcome) = outcome_of(proposal.what) else { continue };
        let written = references_of(&table.set, outcome);
        let both = wanted.intersection(&written).copied();
        // Where the row had its own, nothing was written.
        let both = both.filter(|column| own.is_none_or(|(of_row, _)| of_row != *column));
        let both: Vec<&str> = both.collect();
        if !both.is_empty() && wrote_another(db, row, proposal, reference).await? {
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

/// What the case shows.
async fn shown_of(db: &Database, row: OfCase<'_>) -> Result<Option<StoredInputs>, StoreError> {
    let Some(hash) = row.evidence else { return Ok(None) };
    let text = db.evidence(hash).await?;
    Ok(text.and_then(|text| serde_json::from_str::<StoredInputs>(&text).ok()))
}

fn objects(shown: &StoredInputs) -> impl Iterator<Item = &PspObject> {
    shown.evidence.iter().flat_map(|item| match &item.answer {
        Answer::Found { objects, .. } => objects.as_slice(),
        Answer::Nothing(_) | Answer::UnknownReference(_) | Answer::NoAnswer(_) => &[],
    })
}

/// The one object of the row's tag that holds money; none where there are several.
fn the_captured(shown: &StoredInputs) -> Option<&str> {
    let tag = shown.row.tag.usable();
    let is_own = |object: &&PspObject| tag.is_none() || object.tag.as_deref() == tag;
    let captured = objects(shown).filter(|object| object.captured.is_some()).filter(is_own);
    let found: BTreeSet<&str> = captured.map(|object| object.reference.as_str()).collect();
    found.first().copied().filter(|_| found.len() == 1)
}

/// Whether two ids are names of one object: of a payment, and of its charge.
fn is_one_object(shown: Option<&StoredInputs>, one: &str, other: &str) -> bool {
    let is_both = |object: &PspObject| object.is_named(one) && object.is_named(other);
    one == other || shown.into_iter().flat_map(objects).any(is_both)
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

/// Whether a decision had a reference to write, and another one than this. A success always has
/// one; the record tells which, and whether the PSP showed any for another end.
async fn wrote_another(
    db: &Database,
    row: OfCase<'_>,
    proposal: &Proposal,
    reference: Option<&str>,
) -> Result<bool, StoreError> {
    let records = db.journal_of_row(row.table, row.key).await?;
    let record = records.iter().find(|record| {
        proposal.ended_run.as_ref() == Some(&record.run_id)
            && record.reason == Reason::ByPerson
            && record.applied == Applied::Yes
    });
    // What changed no status wrote nothing; of one whose record is gone nobody knows.
    if record.is_some_and(|record| record.status_before == record.status_after) {
        return Ok(false);
    }
    let shown = record.and_then(|record| record.psp_reference.as_deref());
    Ok(match shown.or(proposal.psp_reference.as_deref()) {
        Some(written) => reference != Some(written),
        None => proposal.what == What::Succeeded,
    })
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
