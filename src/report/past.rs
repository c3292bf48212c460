//! What runs did with a case, for whoever reads its history: when it was kicked, by whom and what
//! came of that, and what closed it. All of it stands in the runs, the journal and the case.

use serde_json::Value;

use crate::model::reason::Reason;
use crate::model::time::{Instant, to_short_text};
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::error::StoreError;
use crate::store::people::{CaseRuns, KICKS_READ, PeopleDriver, Proposal, ProposalState};
use crate::store::records::{Applied, CaseRow, JournalRow, RunRow, RunState};

/// One entry of a history: a sentence with a run's id in it, where there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Past {
    /// When.
    pub at: Instant,
    /// What stands before the run's id, …
    pub before: String,
    /// … the run, …
    pub run_id: Option<String>,
    /// … and what stands after it.
    pub after: String,
}

impl Past {
    /// The whole sentence.
    pub fn words(&self) -> String {
        let Self { before, run_id, after, .. } = self;
        format!("{before}{}{after}", run_id.as_deref().unwrap_or_default())
    }
}

/// Whose word a kick was.
struct Word {
    by: String,
    why: Option<String>,
}

/// The word that a run stands on, where it is a kick of this case.
fn word_of(run: &RunRow, case: i64) -> Option<Word> {
    let scope: Value = serde_json::from_str(&run.scope).ok()?;
    let kick = &scope["kick"];
    let name = format!("C-{case}");
    let cases = kick["cases"].as_array()?;
    if !cases.iter().any(|one| one.as_str() == Some(name.as_str())) {
        return None;
    }
    let asked = kick["asked"].as_str();
    let why = kick["why"].as_str().filter(|why| Some(*why) != asked);
    let by = kick["by"].as_str().unwrap_or("somebody").to_owned();
    Some(Word { by, why: why.map(str::to_owned) })
}

/// The kicks of a case, and its end. `proposals` are the case's.
///
/// # Errors
/// Where the database cannot be read.
pub async fn past_of(
    db: &Database,
    case: &CaseRow,
    proposals: &[Proposal],
) -> Result<Vec<Past>, StoreError> {
    let runs = db.case_runs(case).await?;
    let records = match runs.kicks.is_empty() {
        true => Vec::new(),
        false => db.journal_of_row(&case.table, &case.subject).await?,
    };
    let mut past: Vec<Past> = earlier_kicks(&runs).into_iter().collect();
    for run in &runs.kicks {
        let Some(word) = word_of(run, case.number) else { continue };
        let why = word.why.map(|why| format!(" ({why})")).unwrap_or_default();
        let came_of_it = match records.iter().rev().find(|record| record.run_id == run.id) {
            Some(record) => decided(record),
            None => undecided(db, run).await?,
        };
        past.push(Past {
            at: run.started_at,
            before: format!("kicked by {}{why} with run ", word.by),
            run_id: Some(run.id.clone()),
            after: format!(": {came_of_it}"),
        });
    }
    past.extend(end_of(case, &runs, proposals));
    Ok(past)
}

/// The cases with what was decided in the place of their end, where somebody undid that. What was
/// decided stays as it is in the records: the proposals say what took its place.
///
/// # Errors
/// Where the database cannot be read.
pub async fn with_undone(
    db: &Database,
    mut cases: Vec<CaseRow>,
) -> Result<Vec<CaseRow>, StoreError> {
    let ended = cases.iter().filter(|case| case.resolution.is_some());
    let ended: Vec<i64> = ended.map(|case| case.number).collect();
    if ended.is_empty() {
        return Ok(cases);
    }
    let proposals = db.proposals(&ended).await?;
    for case in &mut cases {
        case.resolution = ended_as(case, &proposals);
    }
    Ok(cases)
}

/// How a case ended, and what took the place of that since. `proposals` may be other cases', too.
pub fn ended_as(case: &CaseRow, proposals: &[Proposal]) -> Option<String> {
    let resolution = case.resolution.clone()?;
    let Some(at) = case.closed_at else { return Some(resolution) };
    // One that came before is of an earlier end.
    let takes_its_place = |proposal: &&Proposal| {
        proposal.case_number == case.number
            && proposal.undoes
            && proposal.state == ProposalState::CarriedOut
            && proposal.ended_at.is_some_and(|ended| ended > at)
    };
    let undone = proposals.iter().filter(takes_its_place).map(undone_text);
    Some([resolution].into_iter().chain(undone).collect::<Vec<_>>().join("; "))
}

fn undone_text(proposal: &Proposal) -> String {
    let other = proposal.approved_by.as_ref().filter(|by| **by != proposal.proposed_by);
    let approved = other.map(|by| format!(", approved by {by}")).unwrap_or_default();
    let at = proposal.ended_at.map(|at| format!(" at {}", to_short_text(at))).unwrap_or_default();
    let object = proposal.psp_reference.as_ref().map(|object| format!(" with {object}"));
    format!(
        "undone by {}{approved}{at} (proposal {}): {}{}: {}",
        proposal.proposed_by,
        proposal.number,
        proposal.what.as_str(),
        object.unwrap_or_default(),
        proposal.why
    )
}

/// Says that not all of them are told.
fn earlier_kicks(runs: &CaseRuns) -> Option<Past> {
    let is_cut = i64::try_from(runs.kicks.len()).is_ok_and(|kicks| kicks >= KICKS_READ);
    let first = runs.kicks.first().filter(|_| is_cut)?;
    Some(Past {
        at: first.started_at,
        before: format!("of all its kicks the newest {KICKS_READ} are shown"),
        run_id: None,
        after: String::new(),
    })
}

fn decided(record: &JournalRow) -> String {
    let said = match record.reason {
        Reason::Watched => record.reason.as_str().to_owned(),
        reason => format!("{} ({})", record.outcome.screen(), reason.as_str()),
    };
    match record.applied {
        Applied::Yes => said,
        Applied::Withheld => format!("{said}; the mode withheld it"),
        Applied::Superseded => format!("{said}; not written, the row or its case had changed"),
    }
}

/// A kick that left no record of the row.
async fn undecided(db: &Database, run: &RunRow) -> Result<String, StoreError> {
    if run.state == RunState::Running {
        return Ok("not decided yet".to_owned());
    }
    if db.pruned_at(&run.id).await?.is_some() {
        return Ok("its records were pruned".to_owned());
    }
    let notes: Value = serde_json::from_str(&run.notes).unwrap_or_default();
    let noted = notes["not_examined"].as_array().and_then(|texts| texts.first());
    let why = notes["error"].as_str().or_else(|| noted.and_then(Value::as_str));
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    Ok(format!("nothing was decided, and the case stayed as it was{why}"))
}

/// What closed the case: a run, by its own decision, by a kick or by what people approved.
fn end_of(case: &CaseRow, runs: &CaseRuns, proposals: &[Proposal]) -> Option<Past> {
    let (at, resolution) = (case.closed_at?, case.resolution.as_deref()?);
    let Some(run) = &runs.closed else {
        let after = format!(": {resolution}");
        return Some(Past { at, before: "closed".to_owned(), run_id: None, after });
    };
    let carried_out = proposals.iter().find(|proposal| {
        proposal.state == ProposalState::CarriedOut
            && proposal.ended_run.as_deref() == Some(run.id.as_str())
    });
    let how = match (word_of(run, case.number), carried_out) {
        (Some(word), _) => format!(", kicked by {}", word.by),
        (None, Some(proposal)) => {
            let by = proposal.approved_by.as_deref().unwrap_or_default();
            format!(", approved by {by}")
        }
        (None, None) if run.command == "run" => String::new(),
        (None, None) => format!(" ({})", run.command),
    };
    Some(Past {
        at,
        before: "closed by run ".to_owned(),
        run_id: Some(run.id.clone()),
        after: format!("{how}: {resolution}"),
    })
}
