//! What an undo by a success leaves in the row. tieout writes a reference only where there is none:
//! what an undone decision wrote stays, and whoever decides by another object is told so wherever
//! the undo is proposed, approved, carried out and shown.
//!
//! It reads what people decided and, where that does not tell, the journal; it writes nothing.

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
use crate::store::records::Applied;

/// The row of a case: its table and its key.
type Row<'a> = (&'a str, &'a str);

/// What an undo that is proposed now would leave in the row. `proposals` are the case's.
///
/// # Errors
/// Where the database cannot be read.
pub async fn kept_if(
    db: &Database,
    tables: &[TableSettings],
    row: Row<'_>,
    asked: (What, Option<&str>),
    proposals: &[Proposal],
) -> Result<Option<String>, StoreError> {
    let done: Vec<&Proposal> = proposals.iter().filter(is_done).collect();
    kept(db, tables, row, asked, &done).await
}

/// What this undo leaves, or left, in the row. `proposals` are the case's.
///
/// # Errors
/// Where the database cannot be read.
pub async fn kept_by(
    db: &Database,
    tables: &[TableSettings],
    row: Row<'_>,
    undo: &Proposal,
    proposals: &[Proposal],
) -> Result<Option<String>, StoreError> {
    if !undo.undoes {
        return Ok(None);
    }
    let is_earlier = |one: &&Proposal| is_done(one) && one.number < undo.number;
    let earlier: Vec<&Proposal> = proposals.iter().filter(is_earlier).collect();
    kept(db, tables, row, (undo.what, undo.psp_reference.as_deref()), &earlier).await
}

/// The same of the case's last decision, where that was an undo.
///
/// # Errors
/// Where the database cannot be read.
pub async fn kept_by_last(
    db: &Database,
    tables: &[TableSettings],
    row: Row<'_>,
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

/// Notes for the summary what undos that were to be carried out left in their rows.
pub(super) async fn note_kept(
    scene: &Scene<'_>,
    books: &mut Books,
    undos: &[Approved],
) -> Result<(), RunError> {
    if undos.is_empty() {
        return Ok(());
    }
    let (doing, tables) = ("reading what an undo left in its row", &scene.setup.tables);
    for undo in undos {
        let number = undo.proposal.case_number;
        let proposals = scene.db.proposals(&[number]).await.doing(doing)?;
        let is_it = |one: &&Proposal| one.number == undo.proposal.number && is_done(one);
        let Some(done) = proposals.iter().find(is_it) else { continue };
        let row = (undo.table.as_str(), undo.subject.as_str());
        let kept = kept_by(scene.db, tables, row, done, &proposals).await.doing(doing)?;
        books.kept.extend(kept.map(|kept| format!("C-{number}: {kept}")));
    }
    Ok(())
}

/// `earlier`: the decisions of the case that were carried out before.
async fn kept(
    db: &Database,
    tables: &[TableSettings],
    row: Row<'_>,
    (what, reference): (What, Option<&str>),
    earlier: &[&Proposal],
) -> Result<Option<String>, StoreError> {
    let table = tables.iter().find(|known| known.name == row.0);
    let Some(table) = table.filter(|_| what == What::Succeeded) else { return Ok(None) };
    let wanted = references_of(&table.set, Outcome::Succeeded);
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
         reference only where there is none); where it shall name {object} and does not, write \
         that into the row yourself",
        names.join(" and ")
    )))
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
async fn wrote_one(db: &Database, row: Row<'_>, proposal: &Proposal) -> Result<bool, StoreError> {
    if proposal.what == What::Succeeded {
        return Ok(true);
    }
    let records = db.journal_of_row(row.0, row.1).await?;
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
