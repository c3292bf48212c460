//! `cases merge`, `cases export` and `cases purge`: what keeps the queue readable.

use std::collections::{BTreeMap, BTreeSet};

use clap::ValueEnum;
use serde_json::json;

use crate::cli::args::{Common, yes_or_no};
use crate::cli::cases::select::{
    Confirm, Left, Preview, SAMPLES, Select, done, identity, selected, why,
};
use crate::cli::cases::{PAGE, body, find, number_of};
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::prune::refused;
use crate::cli::{out, page};
use crate::config::names;
use crate::exit::Exit;
use crate::model::count::counted;
use crate::model::time::{Instant, earlier, parse_keep, to_short_text, to_text};
use crate::report::past::with_undone;
use crate::report::queue;
use crate::store::database::Database;
use crate::store::driver::{CaseFilter, Driver};
use crate::store::people::{CaseLinks, PeopleDriver};
use crate::store::records::CaseRow;

/// Options of `cases merge`.
#[derive(Debug, clap::Args)]
pub struct Merge {
    /// The case that the others become parts of
    #[arg(value_name = "CASE")]
    into: String,
    /// The others; none: all open ones that the filters mean. To take out, where neither is given:
    /// all parts of the case, or the case itself where it is one
    #[arg(value_name = "PART")]
    parts: Vec<String>,
    #[command(flatten)]
    select: Select,
    /// Take the parts out of it again
    #[arg(long, env = names::CASES_SPLIT, value_parser = yes_or_no)]
    split: bool,
    /// What they have in common
    #[arg(long, value_name = "TEXT", env = names::CASES_WHY)]
    why: String,
    #[command(flatten)]
    confirm: Confirm,
}

/// The forms of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// RFC 4180
    Csv,
    /// One JSON object a line
    Json,
}

/// Options of `cases export`.
#[derive(Debug, clap::Args)]
pub struct Export {
    #[command(flatten)]
    select: Select,
    /// Closed ones too
    #[arg(long, env = names::CASES_ALL, value_parser = yes_or_no)]
    all: bool,
    /// As what
    #[arg(
        long, value_enum, value_name = "FORM", env = names::CASES_FORMAT,
        default_value_t = Form::Csv
    )]
    format: Form,
}

/// Options of `cases purge`.
#[derive(Debug, clap::Args)]
pub struct Purge {
    /// Keep what was closed within this span, at least 30d
    #[arg(long, value_name = "SPAN", env = names::CASES_KEEP)]
    keep: String,
    #[command(flatten)]
    confirm: Confirm,
}

/// Runs `cases merge`.
pub async fn merge(options: &Merge, common: &Common, db: &Database) -> Result<Exit, Failure> {
    let why = why(&options.why)?;
    let mut lead = find(number_of(&options.into)?, db).await?;
    if !lead.open {
        return Err(Failure::usage(format!("case C-{} is closed", lead.number)));
    }
    let mut names = options.parts.clone();
    if options.split && names.is_empty() && !options.select.narrows() {
        (lead, names) = all_parts(lead, db).await?;
    }
    let is_named = !names.is_empty();
    let mut parts = selected(&names, &options.select, !is_named, db).await?;
    if !is_named {
        // The filters mean it as well as the others: it is no part of itself.
        parts.retain(|case| case.number != lead.number);
    }
    let parts = fitting(parts, &lead, options.split, db).await?;
    let action = match options.split {
        true => format!("take out of C-{}", lead.number),
        false => format!("make parts of C-{}", lead.number),
    };
    let numbers: Vec<i64> = parts.iter().map(|case| case.number).collect();
    let links = db.links_of(&numbers).await.map_err(|e| Failure::store(&e))?;
    let leaves = |case: &CaseRow| {
        let whole = links.get(&case.number)?.part_of.filter(|_| !options.split)?;
        Some(format!("leaves C-{whole}"))
    };
    let preview = Preview { action: &action, cases: &parts, says: &leaves, is_bound: false };
    if !preview.confirmed(&options.confirm, common, db).await? {
        return Ok(Exit::Ok);
    }
    let (by, _) = identity(db).await?;
    let into = (!options.split).then_some(lead.number);
    let now = db.now().await.map_err(|e| Failure::store(&e))?;
    let changed = db.merge_cases(into, &numbers, why, &by, now).await;
    let changed = changed.map_err(|e| Failure::store(&e))?;
    Ok(done(&action, changed, parts.len(), common))
}

/// A case and all its parts; of a part, what it is a part of and it alone.
async fn all_parts(case: CaseRow, db: &Database) -> Result<(CaseRow, Vec<String>), Failure> {
    let links = db.case_links(case.number).await.map_err(|e| Failure::store(&e))?;
    let named = |number: i64| format!("C-{number}");
    match links.part_of {
        Some(whole) => Ok((find(whole, db).await?, vec![named(case.number)])),
        None if links.parts.is_empty() => {
            let text = format!("case C-{} has no parts, and is none", case.number);
            Err(Failure::usage(text))
        }
        None => Ok((case, links.parts.into_iter().map(named).collect())),
    }
}

/// Those that can be made parts of a case, or taken out of it; says of the others why not.
async fn fitting(
    parts: Vec<CaseRow>,
    lead: &CaseRow,
    split: bool,
    db: &Database,
) -> Result<Vec<CaseRow>, Failure> {
    let whole = db.case_links(lead.number).await.map_err(|e| Failure::store(&e))?.part_of;
    if let Some(whole) = whole.filter(|_| !split) {
        let text = format!("case C-{} is a part itself, of C-{whole}", lead.number);
        return Err(Failure::usage(text));
    }
    let (mut fit, mut left) = (Vec::new(), BTreeMap::<&str, Vec<i64>>::new());
    let numbers: Vec<i64> = parts.iter().map(|case| case.number).collect();
    let mut links = db.links_of(&numbers).await.map_err(|e| Failure::store(&e))?;
    for case in parts {
        let links = links.remove(&case.number).unwrap_or_default();
        match unfit(&case, &links, lead, split) {
            None => fit.push(case),
            Some(why) => left.entry(why).or_default().push(case.number),
        }
    }
    left.iter().for_each(|(why, cases)| tell_left(why, cases));
    match fit.is_empty() {
        true => Err(Failure::usage("none of these cases can be; nothing was done")),
        false => Ok(fit),
    }
}

/// Filters may mean thousands that are left out: the first few are named.
fn tell_left(why: &str, cases: &[i64]) {
    for case in cases.iter().take(SAMPLES) {
        page::warn(&format!("tieout: case C-{case}: {why}"));
    }
    let more = cases.len().saturating_sub(SAMPLES);
    if more > 0 {
        page::warn(&format!("tieout: and {}: {why}", counted(more, "other", "others")));
    }
}

fn unfit(case: &CaseRow, links: &CaseLinks, lead: &CaseRow, split: bool) -> Option<&'static str> {
    let is_part = links.part_of == Some(lead.number);
    match () {
        () if case.number == lead.number => Some("it is the case itself"),
        () if !case.open => Some("it is closed"),
        () if split && !is_part => Some("it is no part of it"),
        () if split => None,
        () if is_part => Some("it is a part of it already"),
        () if !links.parts.is_empty() => Some("it has parts itself; take them out of it first"),
        () => None,
    }
}

/// Runs `cases export`.
pub async fn export(options: &Export, db: &Database) -> Result<Exit, Failure> {
    let now = db.now().await.map_err(|e| Failure::store(&e))?;
    let mut filter = options.select.filter(now)?;
    filter.open_only = !options.all;
    filter.limit = PAGE;
    let mut lines = out::Lines::new();
    if options.format == Form::Csv {
        lines.put_raw(&format!("{}\r", queue::header()));
    }
    loop {
        let page = db.cases(&filter).await.map_err(|e| Failure::store(&e))?;
        let Some(last) = page.last() else { break };
        filter.after = Some(last.number);
        let page = with_undone(db, page).await.map_err(|e| Failure::store(&e))?;
        for case in &page {
            match options.format {
                Form::Csv => lines.put_raw(&format!("{}\r", queue::line(case))),
                Form::Json => lines.put(&line("case", body(case))),
            }
        }
    }
    lines.flush();
    Ok(Exit::Ok)
}

/// Younger cases are what open questions are answered from.
const KEEP_MIN_DAYS: i64 = 30;

/// Runs `cases purge`.
pub async fn purge(options: &Purge, common: &Common, db: &Database) -> Result<Exit, Failure> {
    let least = chrono::TimeDelta::days(KEEP_MIN_DAYS);
    let keep = parse_keep(&options.keep, least).ok_or_else(|| {
        let text = format!(
            "--keep {}: expected a span from {KEEP_MIN_DAYS}d to 36500d; nothing was deleted",
            options.keep
        );
        Failure::usage(text)
    })?;
    let now = db.now().await.map_err(|e| Failure::store(&e))?;
    let before = earlier(now, keep);
    let filter = CaseFilter { opened_to: Some(before), limit: PAGE, ..CaseFilter::default() };
    let old = closed_before(filter, before, db).await?;
    let is_said = !common.json && !common.quiet;
    if old.is_empty() {
        if is_said {
            out::stdout(&format!("no case was closed before {}", to_short_text(before)));
        }
        return Ok(Exit::Ok);
    }
    let aged = Aged::of(old, before, db).await?;
    if !aged.confirmed(options, common, db).await? {
        return Ok(Exit::Ok);
    }
    let mut gone = 0_usize;
    for chunk in aged.going.chunks(1_000) {
        let numbers: Vec<i64> = chunk.iter().map(|case| case.number).collect();
        let more = db.purge_cases(&numbers, before).await.map_err(|e| refused(&e, "purge"))?;
        gone = gone.saturating_add(usize::try_from(more).unwrap_or(usize::MAX));
    }
    let left = aged.all.len().saturating_sub(gone);
    if common.json {
        let body = json!({
            "action": "purge", "cases": gone, "left_out": left, "before": to_text(before)
        });
        out::stdout(&line("cases_done", body));
    } else if is_said {
        // Those of the others went with them.
        let waiting = waiting_of(&aged.all, db).await?;
        let cases = counted(aged.all.len(), "closed case", "closed cases");
        page::say(&format!(
            "deleted {gone} of {cases} with all history{}",
            why_left(waiting, left.saturating_sub(waiting))
        ));
    }
    Ok(Exit::Ok)
}

/// Cases that were closed long enough ago.
struct Aged {
    /// Their numbers.
    all: Vec<i64>,
    /// Those that can be deleted.
    going: Vec<CaseRow>,
    /// How many of the others a decision keeps.
    waiting: usize,
}

impl Aged {
    async fn of(old: Vec<CaseRow>, before: Instant, db: &Database) -> Result<Self, Failure> {
        let all: Vec<i64> = old.iter().map(|case| case.number).collect();
        let mut numbers = BTreeSet::new();
        for chunk in all.chunks(1_000) {
            let more = db.purgeable_cases(chunk, before).await;
            numbers.extend(more.map_err(|e| Failure::store(&e))?);
        }
        let waiting = waiting_of(&all, db).await?;
        let going = old.into_iter().filter(|case| numbers.contains(&case.number)).collect();
        Ok(Self { all, going, waiting })
    }

    /// Shows what would be deleted and what stays, and asks; false: nothing is to be done.
    async fn confirmed(
        &self,
        options: &Purge,
        common: &Common,
        db: &Database,
    ) -> Result<bool, Failure> {
        let kept = self.all.len().saturating_sub(self.going.len());
        let others = kept.saturating_sub(self.waiting);
        let all = counted(self.all.len(), "closed case", "closed cases");
        let going = self.going.len();
        let says = format!("would delete {going} of {all}{}", why_left(self.waiting, others));
        if self.going.is_empty() && !options.confirm.dry_run {
            // There is nothing to say yes to.
            return Ok(true);
        }
        let left = Left { cases: kept, says: &says };
        // The line's age is how long it was open.
        let closed = |case: &CaseRow| Some(format!("closed {}", to_short_text(case.closed_at?)));
        let preview =
            Preview { action: "delete", cases: &self.going, says: &closed, is_bound: false };
        preview.confirmed_beside(Some(&left), &options.confirm, common, db).await
    }
}

/// Of how many of these cases a decision waits. A case has one that waits at most.
async fn waiting_of(cases: &[i64], db: &Database) -> Result<usize, Failure> {
    let mut waiting = 0_usize;
    for chunk in cases.chunks(1_000) {
        let proposals = db.proposals(chunk).await.map_err(|e| Failure::store(&e))?;
        let more = proposals.iter().filter(|proposal| proposal.ended_at.is_none()).count();
        waiting = waiting.saturating_add(more);
    }
    Ok(waiting)
}

/// Says of closed cases that are left why they are.
fn why_left(waiting: usize, others: usize) -> String {
    let waits = "to be approved or carried out (`tieout cases list --all --proposed open`, or \
                 `approved`)";
    let takes = "`tieout db prune` takes a closed case together with the run that opened it";
    let (one, many) = ("is left, of which a decision waits", "are left, of which decisions wait");
    let waiting = (waiting > 0).then(|| format!("; {} {waits}", counted(waiting, one, many)));
    let one = "is left, since records name it or a part of it is left";
    let many = "are left, since records name them or parts of them are left";
    let others = (others > 0).then(|| format!("; {}: {takes}", counted(others, one, many)));
    [waiting, others].into_iter().flatten().collect()
}

async fn closed_before(
    mut filter: CaseFilter,
    before: Instant,
    db: &Database,
) -> Result<Vec<CaseRow>, Failure> {
    let mut found = Vec::new();
    loop {
        let page = db.cases(&filter).await.map_err(|e| Failure::store(&e))?;
        let Some(last) = page.last() else { return Ok(found) };
        filter.after = Some(last.number);
        found.extend(page.into_iter().filter(|case| case.closed_at.is_some_and(|at| at < before)));
    }
}
