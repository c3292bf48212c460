//! What a decision leaves in its row, said to whoever proposes, approves and carries it out.

use std::collections::HashMap;

use crate::cli::cases::decide::proposals_of;
use crate::cli::cases::select::SAMPLES;
use crate::cli::failure::Failure;
use crate::cli::page;
use crate::config::Config;
use crate::run::kept::{kept_by, kept_if};
use crate::store::database::Database;
use crate::store::people::{Proposal, What};
use crate::store::records::CaseRow;

/// Of cases that are about to be decided so, or whose decisions are to be undone: what that leaves,
/// by the case.
pub async fn kept_of(
    cases: &[CaseRow],
    (asked, undoes): ((What, Option<&str>), bool),
    config: &Config,
    db: &Database,
) -> Result<HashMap<i64, String>, Failure> {
    if asked.0 != What::Succeeded {
        return Ok(HashMap::new());
    }
    // Of many it is said of those that are shown.
    let is_of_each = undoes || asked.1.is_some();
    let cases = if is_of_each { cases } else { cases.get(..SAMPLES).unwrap_or(cases) };
    let all = match undoes {
        true => by_case(proposals_of(cases, db).await?),
        false => HashMap::new(),
    };
    let mut told = HashMap::new();
    for case in cases {
        let proposals = all.get(&case.number).map(Vec::as_slice).unwrap_or_default();
        let kept = kept_if(db, &config.tables, case.into(), asked, proposals).await;
        told.extend(kept.map_err(|e| Failure::store(&e))?.map(|kept| (case.number, kept)));
    }
    Ok(told)
}

/// Says of decisions what they leave. `cases`: theirs.
pub async fn tell_kept(
    decisions: &[&Proposal],
    cases: &[CaseRow],
    config: &Config,
    db: &Database,
) -> Result<(), Failure> {
    let is_decided = |case: &&CaseRow| decisions.iter().any(|one| is_its(one, case));
    let cases: Vec<CaseRow> = cases.iter().filter(is_decided).cloned().collect();
    if cases.is_empty() {
        return Ok(());
    }
    let all = by_case(proposals_of(&cases, db).await?);
    for case in &cases {
        let proposals = all.get(&case.number).map(Vec::as_slice).unwrap_or_default();
        for decision in decisions.iter().filter(|one| is_its(one, case)) {
            let kept = kept_by(db, &config.tables, case.into(), decision, proposals).await;
            if let Some(kept) = kept.map_err(|e| Failure::store(&e))? {
                page::warn(&format!("tieout: case C-{}: {kept}", case.number));
            }
        }
    }
    Ok(())
}

fn is_its(decision: &Proposal, case: &CaseRow) -> bool {
    decision.what == What::Succeeded && decision.case_number == case.number
}

fn by_case(proposals: Vec<Proposal>) -> HashMap<i64, Vec<Proposal>> {
    let mut cases: HashMap<i64, Vec<Proposal>> = HashMap::new();
    for proposal in proposals {
        cases.entry(proposal.case_number).or_default().push(proposal);
    }
    cases
}
