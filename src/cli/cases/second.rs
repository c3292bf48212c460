//! Where one person is not enough: why, and where the second one is.

use std::collections::HashMap;

use crate::cli::cases::select::identity;
use crate::cli::failure::Failure;
use crate::config::Config;
use crate::exit::Exit;
use crate::run::people::{Second, second_needed_for};
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::people::{Proposal, What};
use crate::store::records::CaseRow;

/// Where two people are told apart whatever the database knows of them.
const ON_PAGE: &str = "decide it on the page of `tieout serve`, where each person signs in";

/// Why nobody approves here what another person proposed, or is to approve.
const NOT_APART: &str = "and an SQLite file knows no users: who proposes and who approves cannot \
                         be told apart on the command line";

/// Of cases that one person is about to decide so: which need a second one, and why.
pub async fn needs_two(
    cases: &[CaseRow],
    asked: (What, Option<&str>),
    config: &Config,
    db: &Database,
) -> Result<HashMap<i64, Second>, Failure> {
    let now = db.now().await.map_err(|e| Failure::store(&e))?;
    let needs = second_needed_for(db, &config.setup(), cases, asked, now).await;
    needs.map_err(|e| Failure::store(&e))
}

/// Who proposes something of these cases; nobody where two people are needed and could not be told
/// apart: neither here nor on the page could anybody approve it.
pub async fn maker(
    cases: &[CaseRow],
    needs: &HashMap<i64, Second>,
    db: &Database,
) -> Result<String, Failure> {
    let (by, is_told_apart) = identity(db).await?;
    let needing = |case: &CaseRow| Some((case.number, needs.get(&case.number)?));
    match cases.iter().find_map(needing).filter(|_| !is_told_apart) {
        Some((number, second)) => Err(nobody_tells_apart(number, second)),
        None => Ok(by),
    }
}

/// SQLite knows no users.
fn nobody_tells_apart(case: i64, second: &Second) -> Failure {
    let why = second.why().map(|why| format!(", since {why}")).unwrap_or_default();
    let text = format!("case C-{case} needs two people{why}; {NOT_APART}; nothing was done");
    let hint = match second {
        Second::ByAmount => format!(
            "{ON_PAGE}; or say in [cases] four_eyes_from from which amount on two people are needed"
        ),
        Second::ByEvidence(_) => ON_PAGE.to_owned(),
    };
    Failure::new(Exit::Usage, text, hint)
}

/// Why this person may not approve it; none where they may. Where the database tells nobody apart,
/// two names are no two people, and must not look like them in the records.
pub fn not_by(proposal: &Proposal, by: &str, is_told_apart: bool) -> Option<String> {
    let is_other = proposal.proposed_by != by;
    match (is_told_apart, proposal.four_eyes) {
        (true, true) if !is_other => {
            Some(format!("it needs another person than {by}, who cannot approve it"))
        }
        (true, _) => None,
        (false, true) => Some(format!("it needs two people, {NOT_APART}")),
        (false, false) => {
            is_other.then(|| format!("{} proposed it, {NOT_APART}", proposal.proposed_by))
        }
    }
}

/// Who approves what one person may not, or where.
pub fn who_may(is_told_apart: bool) -> &'static str {
    if is_told_apart { "another person with a login of their own" } else { ON_PAGE }
}
