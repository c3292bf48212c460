//! What an undo leaves in its row, said to whoever proposes, approves and carries it out.

use std::collections::HashMap;

use crate::cli::cases::decide::proposals_of;
use crate::cli::failure::Failure;
use crate::cli::out;
use crate::config::Config;
use crate::run::kept::{kept_by, kept_if};
use crate::store::database::Database;
use crate::store::people::{Proposal, What};
use crate::store::records::CaseRow;

/// Of cases whose decisions are about to be undone so, where they are: what each leaves, by the
/// case.
pub async fn kept_of(
    cases: &[CaseRow],
    asked: Option<(What, Option<&str>)>,
    config: &Config,
    db: &Database,
) -> Result<HashMap<i64, String>, Failure> {
    let asked = asked.filter(|(what, _)| *what == What::Succeeded);
    let Some(asked) = asked else { return Ok(HashMap::new()) };
    let all = by_case(proposals_of(cases, db).await?);
    let mut told = HashMap::new();
    for case in cases {
        let proposals = all.get(&case.number).map(Vec::as_slice).unwrap_or_default();
        let kept = kept_if(db, &config.tables, row_of(case), asked, proposals).await;
        told.extend(kept.map_err(|e| Failure::store(&e))?.map(|kept| (case.number, kept)));
    }
    Ok(told)
}

/// Says of undos what they leave. `cases`: theirs.
pub async fn tell_kept(
    undos: &[&Proposal],
    cases: &[CaseRow],
    config: &Config,
    db: &Database,
) -> Result<(), Failure> {
    let undone = |case: &&CaseRow| undos.iter().any(|one| is_its(one, case));
    let cases: Vec<CaseRow> = cases.iter().filter(undone).cloned().collect();
    if cases.is_empty() {
        return Ok(());
    }
    let all = by_case(proposals_of(&cases, db).await?);
    for case in &cases {
        let proposals = all.get(&case.number).map(Vec::as_slice).unwrap_or_default();
        for undo in undos.iter().filter(|one| is_its(one, case)) {
            let kept = kept_by(db, &config.tables, row_of(case), undo, proposals).await;
            if let Some(kept) = kept.map_err(|e| Failure::store(&e))? {
                out::stderr(&format!("tieout: case C-{}: {kept}", case.number));
            }
        }
    }
    Ok(())
}

fn is_its(undo: &Proposal, case: &CaseRow) -> bool {
    undo.undoes && undo.case_number == case.number
}

/// The row of a case: its table and its key.
pub fn row_of(case: &CaseRow) -> (&str, &str) {
    (case.table.as_str(), case.subject.as_str())
}

fn by_case(proposals: Vec<Proposal>) -> HashMap<i64, Vec<Proposal>> {
    let mut cases: HashMap<i64, Vec<Proposal>> = HashMap::new();
    for proposal in proposals {
        cases.entry(proposal.case_number).or_default().push(proposal);
    }
    cases
}
