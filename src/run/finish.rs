//! The end of a run: the held hand-backs, the tie-out from the database, the close, the report.

use std::collections::BTreeMap;

use crate::decide::compare::Bucket;
use crate::exit::Exit;
use crate::model::reason::Reason;
use crate::model::time::Instant;
use crate::report::aging::{AgingLine, snapshot};
use crate::report::build::{BuildOptions, Built};
use crate::report::error::ReportError;
use crate::report::tie::tie_out;
use crate::run::books::{Books, Tell};
use crate::run::drive::give_back;
use crate::run::error::{Doing, RunError, chain, store_exit};
use crate::run::events::{Event, Summary};
use crate::run::people::give_lines_back;
use crate::run::read_clock;
use crate::run::scene::Scene;
use crate::run::setup::FailOn;
use crate::store::driver::{CaseFilter, Driver};
use crate::store::records::{CaseRow, Claimed, RunEnd, RunState, TotalLine};

/// Carries out what waited for older rows of its natural key, and hands back what the brake lets
/// go. A run that was asked to stop gives the latter back undecided: the brake has not seen the
/// whole account.
pub async fn settle_held(
    scene: &Scene<'_>,
    books: &mut Books,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    Box::pin(books.settle_paid(scene, tell)).await?;
    if scene.stop.requested().is_none() {
        return books.brake(scene, tell).await;
    }
    let held: Vec<Claimed> =
        books.hold.take_all().into_iter().map(|(_, row)| row.claimed).collect();
    give_back(scene, &held).await
}

/// Closes the run, whatever became of it, and says how it ended.
pub async fn finish(
    scene: &Scene<'_>,
    mut books: Books,
    result: Result<(), RunError>,
    started_at: Instant,
    tell: Tell<'_>,
) -> Result<Summary, RunError> {
    if books.closed {
        return Err(RunError::Closed { run_id: scene.run_id.to_owned() });
    }
    books.tell_counted(scene, tell);
    if scene.options.dry_run {
        // Where it is not, neither a plan nor an error says anything.
        scene.db.is_as_it_was().doing("reading without a lock")?;
    }
    if let Err(error) = result {
        if !scene.options.dry_run && !matches!(error, RunError::Closed { .. }) {
            close_failed(scene, &books, &error).await;
        }
        return Err(error);
    }
    give_lines_back(scene, &books).await?;
    let exit = scene.stop.exit();
    if let Some(exit) = exit {
        books.exit = books.exit.or_stronger(exit);
    }
    let mut summary = if scene.options.dry_run {
        dry_summary(scene, &books, started_at)
    } else {
        close(scene, &mut books, started_at).await?
    };
    // An interrupted run has no time for a report; `report build` makes it later.
    let is_whole = exit.is_none() && !scene.options.dry_run;
    let has_news = summary.decided > 0 || summary.lines.matched > 0 || summary.lines.new > 0;
    let has_news = has_news || !summary.compared.is_empty();
    if has_news && scene.options.report && is_whole {
        match report(scene).await {
            Ok(built) => {
                if !built.untied.is_empty() {
                    summary.exit = summary.exit.or_stronger(Exit::Untied);
                    summary.untied = built.untied;
                }
                summary.report = Some(built.dir);
                if !summary.compared.is_empty() {
                    summary.payouts = built.payouts;
                }
            }
            Err(error) => without_report(&mut summary, error, tell),
        }
    }
    if summary.decided == 0 && scene.options.tells_waiting {
        let tables: Vec<String> =
            scene.tables.iter().map(|table| table.settings.name.clone()).collect();
        let waiting = scene.db.waiting(&tables, scene.clock.now()).await;
        summary.waiting = Some(waiting.doing("counting the rows that wait")?);
    }
    tell(Event::Ended(Box::new(summary.clone())));
    Ok(summary)
}

/// The run is closed, and ends as every other does: whoever hears of it hears all that it did, and
/// that its report is missing.
fn without_report(summary: &mut Summary, error: ReportError, tell: Tell<'_>) {
    let exit = missing_exit(&error);
    summary.hint = Some(error.hint_of(&summary.run_id));
    let text = chain(&NoReport { source: error });
    summary.exit = summary.exit.or_stronger(exit);
    summary.not_examined.push(text.clone());
    tell(Event::NotExamined { exit, text });
}

/// Every decision stands; what is missing is the report.
#[derive(Debug, thiserror::Error)]
#[error("the run is complete and journalled, and its report could not be written")]
struct NoReport {
    source: ReportError,
}

fn missing_exit(error: &ReportError) -> Exit {
    match error {
        ReportError::File { .. } => Exit::Partial,
        ReportError::Store { source, .. } => store_exit(source),
        _ours => Exit::Internal,
    }
}

async fn close_failed(scene: &Scene<'_>, books: &Books, error: &RunError) {
    let exit = books.exit.or_stronger(error.exit());
    let end = RunEnd {
        state: RunState::Failed,
        exit_code: i32::from(exit.code()),
        exit_class: exit.class().to_owned(),
        notes: notes(books, None, Some(&chain(error))),
    };
    // The error that ended the run is the one to report; a run that cannot even be closed is
    // closed as abandoned by the next.
    if let Err(close_error) = scene.db.close_run(scene.run_id, &end, scene.clock.now()).await {
        tracing::warn!(
            run.id = scene.run_id,
            error = %close_error,
            "The run could not be closed; the next run closes it as abandoned"
        );
    }
}

async fn close(
    scene: &Scene<'_>,
    books: &mut Books,
    started_at: Instant,
) -> Result<Summary, RunError> {
    let totals = scene.db.run_totals(scene.run_id).await.doing("reading the totals back")?;
    let untied = tie_out(&totals).untied();
    if !untied.is_empty() {
        books.exit = books.exit.or_stronger(Exit::Untied);
    }
    let counts = scene.db.case_counts(scene.run_id).await.doing("counting cases")?;
    let attention = attention(scene, books, counts.opened).await?;
    if !attention.is_empty() {
        books.exit = books.exit.or_stronger(Exit::Attention);
    }
    let now = read_clock(scene.db, scene.options).await.doing("reading the database's clock")?;
    // Cases go on living: how they stand by age is noted now, or never known again.
    let zone = scene.setup.business_timezone;
    let aging = snapshot(scene.db, started_at, now, zone).await.doing("counting cases by age")?;
    let end = RunEnd {
        state: state_of(books.exit),
        exit_code: i32::from(books.exit.code()),
        exit_class: books.exit.class().to_owned(),
        notes: notes(books, Some((&aging, &totals)), None),
    };
    let audit_head = scene.db.close_run(scene.run_id, &end, now).await.doing("closing the run")?;
    if audit_head.is_none() {
        return Err(RunError::Closed { run_id: scene.run_id.to_owned() });
    }
    let cases = (counts.opened, counts.closed, counts.open);
    let rest = summary(scene, books, totals, started_at, now);
    Ok(Summary { audit_head, cases, untied, attention, ..rest })
}

fn dry_summary(scene: &Scene<'_>, books: &Books, started_at: Instant) -> Summary {
    summary(scene, books, Vec::new(), started_at, scene.clock.now())
}

fn summary(
    scene: &Scene<'_>,
    books: &Books,
    totals: Vec<TotalLine>,
    started_at: Instant,
    ended_at: Instant,
) -> Summary {
    Summary {
        run_id: scene.run_id.to_owned(),
        exit: books.exit,
        totals,
        untied: Vec::new(),
        waits: books.counted.waits.iter().map(|(code, n)| ((*code).to_owned(), *n)).collect(),
        watched: books.counted.watched.values().cloned().collect(),
        waiting: None,
        compared: books.compared.clone(),
        payouts: BTreeMap::new(),
        lines: books.lines,
        decided: books.counted.rows(),
        by_account: books.counted.decided.clone(),
        by_reason: books.counted.reasons.clone(),
        withheld: books.applied.1,
        cases: (0, 0, 0),
        attention: Vec::new(),
        approvals_refused: books.refused,
        kept: books.kept.clone(),
        report: None,
        hint: None,
        audit_head: None,
        accounts: books.notes.values().cloned().collect(),
        not_examined: books.not_examined.clone(),
        started_at,
        ended_at,
        dry_run: scene.options.dry_run,
    }
}

/// The state that a run ends in by its exit.
pub(super) fn state_of(exit: Exit) -> RunState {
    match exit {
        Exit::Ok | Exit::Attention => RunState::Complete,
        Exit::Interrupted | Exit::Terminated => RunState::Interrupted,
        Exit::Internal | Exit::Integrity | Exit::Untied => RunState::Failed,
        Exit::Usage
        | Exit::Partial
        | Exit::Config
        | Exit::Locked
        | Exit::Auth
        | Exit::Trust
        | Exit::Database
        | Exit::Schema => RunState::Partial,
    }
}

/// Money that was taken twice, or may be before anybody looks; of two rows with one natural key the
/// books count apart.
const MONEY_TWICE: [Reason; 3] =
    [Reason::DuplicateCapture, Reason::DuplicateLive, Reason::LateContradiction];

/// What is still open long after it should have ended.
const AGED: [Reason; 2] = [Reason::Unprovable, Reason::PendingTooLong];

/// So many cases are named at most for each word of `--fail-on`.
const NAMED: usize = 5;

/// The new cases that are read for it.
const NEW_CASES: i64 = 1_000;

/// The words of `--fail-on` that hold, each with what it counted and its new cases.
async fn attention(
    scene: &Scene<'_>,
    books: &Books,
    new_cases: u64,
) -> Result<Vec<String>, RunError> {
    let wanted = scene.options.fail_on.iter();
    let held: Vec<(FailOn, u64)> =
        wanted.filter_map(|word| Some((*word, held_by(*word, books, new_cases)?))).collect();
    if held.is_empty() {
        return Ok(Vec::new());
    }
    let filter = CaseFilter {
        opened_run: Some(scene.run_id.to_owned()),
        limit: NEW_CASES,
        ..CaseFilter::default()
    };
    let opened = scene.db.cases(&filter).await.doing("reading the new cases")?;
    Ok(held.into_iter().map(|(word, count)| held_words(word, count, &opened)).collect())
}

/// How many hold up a word of `--fail-on`; `None`: it does not hold.
fn held_by(word: FailOn, books: &Books, new_cases: u64) -> Option<u64> {
    let sum = |reasons: &[Reason]| {
        let counts = reasons.iter().filter_map(|reason| books.counted.reasons.get(reason));
        counts.sum::<u64>()
    };
    let count = match word {
        FailOn::Cases => new_cases,
        FailOn::Aged => sum(&AGED),
        FailOn::Empty => return (books.counted.rows() == 0).then_some(0),
        FailOn::Duplicates => books.counted.paid_beside.saturating_add(sum(&MONEY_TWICE)),
        FailOn::Differs => {
            let standing = |bucket: &Bucket| books.compared.get(bucket.as_str()).copied();
            Bucket::DIFFERENCES.iter().filter_map(standing).sum::<u64>()
        }
    };
    (count > 0).then_some(count)
}

/// `duplicates (2: C-4, C-6)`.
fn held_words(word: FailOn, count: u64, opened: &[CaseRow]) -> String {
    let is_its = |case: &&CaseRow| match word {
        FailOn::Cases => true,
        FailOn::Aged => AGED.contains(&case.reason),
        FailOn::Duplicates => {
            MONEY_TWICE.contains(&case.reason) || case.reason.is_paid_beside(&case.text)
        }
        FailOn::Empty | FailOn::Differs => false,
    };
    let numbers = opened.iter().filter(is_its).map(|case| format!("C-{}", case.number));
    let mut named: Vec<String> = numbers.take(NAMED.saturating_add(1)).collect();
    if named.len() > NAMED {
        named.truncate(NAMED);
        named.push("…".to_owned());
    }
    match (word, named.is_empty()) {
        (FailOn::Empty, _) => word.as_str().to_owned(),
        (_, true) => format!("{} ({count})", word.as_str()),
        (_, false) => format!("{} ({count}: {})", word.as_str(), named.join(", ")),
    }
}

/// A sum as notes have it.
fn noted(line: &TotalLine) -> serde_json::Value {
    serde_json::json!({
        "table": line.table,
        "currency": line.currency,
        "bucket": line.bucket,
        "rows": line.rows,
        // Beyond 64 bits a JSON number would lose its last digits.
        "amount_minor_text": line.amount_minor.to_string(),
    })
}

/// What reports say of the run's asking, and what was counted at its end: pages show it without
/// counting a large journal anew. The report room reads it back as JSON.
fn notes(
    books: &Books,
    counted: Option<(&[AgingLine], &[TotalLine])>,
    error: Option<&str>,
) -> String {
    let brakes: Vec<serde_json::Value> = books
        .brakes
        .iter()
        .map(|(account, (figures, text))| {
            serde_json::json!({
                "account": account,
                "handbacks": figures.handbacks,
                "abandoned": figures.abandoned,
                "listed": figures.listed,
                "nearest": figures.nearest,
                "resolved": figures.resolved,
                "usual_permille": figures.usual_permille,
                "on": text,
            })
        })
        .collect();
    let watched: Vec<serde_json::Value> = books.counted.watched.values().map(noted).collect();
    let totals: Option<Vec<serde_json::Value>> =
        counted.map(|(_, totals)| totals.iter().map(noted).collect());
    serde_json::json!({
        "accounts": books.notes.values().collect::<Vec<_>>(),
        "account_cases": books.account_cases,
        "aging": counted.map(|(aging, _)| aging),
        "brakes": brakes,
        "error": error,
        "git_commit": crate::run::COMMIT,
        "not_examined": books.not_examined,
        "releases": books.releases,
        "sources": books.sources,
        "totals": totals,
        "waits": books.counted.waits,
        "watched": watched,
        "withheld": books.applied.1,
    })
    .to_string()
}

async fn report(scene: &Scene<'_>) -> Result<Built, ReportError> {
    let options = BuildOptions::in_zone(scene.setup.business_timezone);
    let built = crate::report::build(scene.db, scene.run_id, &scene.setup.report_dir, &options);
    // Nothing more is written after this: the file is tidied while it is read.
    let (built, ()) = tokio::join!(built, scene.db.fold_log());
    built
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::path::Path;

    use super::*;

    #[test]
    fn what_hinders_a_report_is_said_by_it() {
        for (kind, part) in [
            (ErrorKind::StorageFull, "make room on that disk"),
            (ErrorKind::PermissionDenied, "let this user write there"),
        ] {
            let source = ReportError::file("writing", Path::new("a.csv"))(kind.into());
            assert_eq!(missing_exit(&source), Exit::Partial);
            let hint = source.hint_of("r1");
            assert!(
                hint.starts_with(part) && hint.ends_with("; then `tieout report build r1`"),
                "{hint}"
            );
            let text = chain(&NoReport { source });
            let why = std::io::Error::from(kind).to_string();
            assert!(text.ends_with(&format!("writing a.csv failed: {why}")), "{text}");
        }
    }
}
