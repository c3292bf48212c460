//! Cases decided again: which ones, by whose word, and why one was not looked at.
//!
//! A kick is a run of the rows of chosen open cases. It asks afresh and decides, brakes and
//! applies as every run does; nothing is decided from what was stored, and no case is closed but
//! by a decision. What is still a person's goes back into the same case. A row that the
//! PSP says nothing about is released undecided: its case stays as it was.

use std::collections::HashSet;

use chrono::TimeDelta;

use crate::model::reason::{Outcome, Reason};
use crate::model::time::to_short_text;
use crate::model::transaction::RowKey;
use crate::run::books::{Books, Tell};
use crate::run::error::{Doing, RunError};
use crate::run::events::Event;
use crate::run::people::ONLY_TIME;
use crate::run::replay::{Replayed, Replays};
use crate::run::scene::Scene;
use crate::run::setup::{RunOptions, Setup};
use crate::store::database::Database;
use crate::store::driver::{CaseFilter, Driver};
use crate::store::error::StoreError;
use crate::store::inspect::{Inspect, NamedRow};
use crate::store::people::PeopleDriver;
use crate::store::records::{CaseRow, KickedBy, StoredInputs};
use crate::store::replay::{ReplayDriver, UnseenPlace};
use crate::store::source_table::SourceTable;

/// Cases read at once.
const PAGE: i64 = 200;

/// The word for the run in the list of runs.
pub const COMMAND: &str = "kick";

/// A person's word that cases be decided again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kick {
    /// Who.
    pub by: String,
    /// Why, in the person's words.
    pub why: String,
    /// Which were asked for: `--fixed-by-rules`, `--reason decline_unknown`, `C-7`.
    pub asked: String,
    /// The cases.
    pub cases: Vec<Kicked>,
}

/// An open case of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kicked {
    /// Its number.
    pub number: i64,
    /// Its row.
    pub key: RowKey,
    /// Why it is a case.
    pub reason: Reason,
    /// The row's currency, or empty.
    pub currency: String,
    /// Minor units.
    pub amount_minor: i64,
}

impl Kick {
    /// The keys of one table's rows.
    pub fn ids_of(&self, table: &str) -> Vec<String> {
        let of_table = self.cases.iter().filter(|case| case.key.table == table);
        of_table.map(|case| case.key.id.clone()).collect()
    }

    /// The run that it is.
    pub fn options(
        &self,
        setup: &Setup,
        max_duration: Option<TimeDelta>,
        dry_run: bool,
    ) -> RunOptions {
        let tables = i64::try_from(setup.tables.len()).unwrap_or(1).max(1);
        let cases = i64::try_from(self.cases.len()).unwrap_or(i64::MAX);
        RunOptions {
            run_id: Some(uuid::Uuid::now_v7().to_string()),
            // The cases are the limit; each table may need its whole share of it.
            limit: cases.saturating_mul(tables),
            // Named rows that are left alone would stand in the way of the next batch.
            batch: cases,
            max_duration,
            dry_run,
            kick: Some(self.clone()),
            ..RunOptions::default()
        }
    }

    /// What each decision's evidence says of it.
    pub fn provenance(&self, rules: &str) -> KickedBy {
        KickedBy { by: self.by.clone(), why: self.why.clone(), rules: rules.to_owned() }
    }

    /// What the run's row says of it.
    pub fn scope(&self, rules: &str) -> serde_json::Value {
        let cases: Vec<String> = self.cases.iter().map(|c| format!("C-{}", c.number)).collect();
        serde_json::json!({
            "by": self.by,
            "why": self.why,
            "asked": self.asked,
            "rules": rules,
            "cases": cases,
        })
    }
}

/// Which cases are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// These.
    Numbers(Vec<i64>),
    /// Every open one of this reason.
    Reason(Reason),
    /// Every open one whose stored evidence today's rules make something else of.
    FixedByRules,
    /// Every open one.
    All,
}

/// What was found for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Open cases of rows; at most as many as were asked for.
    pub cases: Vec<Kicked>,
    /// There are more.
    pub more: bool,
    /// Open cases of what is no row: accounts, files and lines, which no rule decides.
    pub others: u64,
    /// Cases whose stored evidence cannot be read any more, so that nobody knows whether rules
    /// made something else of them.
    pub unreadable: u64,
    /// Of the numbers asked for: cases that are closed, and those that there are not.
    pub closed: Vec<CaseRow>,
    /// See above.
    pub unknown: Vec<i64>,
    /// Cases of which people approved what the next run is to carry out: a rule that decided them
    /// first would undo what two may have had to say.
    pub spoken_for: Vec<i64>,
}

impl Chosen {
    fn take(&mut self, case: Kicked, limit: usize) -> bool {
        self.more = self.cases.len() >= limit;
        if !self.more {
            self.cases.push(case);
        }
        !self.more
    }
}

/// Finds the cases that are meant; reads alone.
///
/// # Errors
/// Where the database cannot be read.
pub async fn choose(
    db: &Database,
    setup: &Setup,
    which: &Which,
    limit: usize,
) -> Result<Chosen, StoreError> {
    let mut chosen = match which {
        Which::Numbers(numbers) => named(db, numbers, limit).await,
        Which::Reason(reason) => listed(db, Some(*reason), limit).await,
        Which::All => listed(db, None, limit).await,
        Which::FixedByRules => fixed(db, setup, limit).await,
    }?;
    leave_to_people(db, &mut chosen).await?;
    Ok(chosen)
}

/// Takes out the cases of which something is approved that the next run can carry out.
async fn leave_to_people(db: &Database, chosen: &mut Chosen) -> Result<(), StoreError> {
    let numbers: Vec<i64> = chosen.cases.iter().map(|case| case.number).collect();
    let mut after = 0;
    let mut spoken_for = HashSet::new();
    while !numbers.is_empty() {
        let page = db.approved(Some(&numbers), after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.proposal.number;
        let standing = page.iter().filter(|approved| approved.is_stale().is_none());
        spoken_for.extend(standing.map(|approved| approved.proposal.case_number));
    }
    let taken = chosen.cases.extract_if(.., |case| spoken_for.contains(&case.number));
    chosen.spoken_for = taken.map(|case| case.number).collect();
    Ok(())
}

async fn named(db: &Database, numbers: &[i64], limit: usize) -> Result<Chosen, StoreError> {
    let mut chosen = Chosen::default();
    for number in numbers {
        match db.case(*number).await? {
            None => chosen.unknown.push(*number),
            Some(case) if !case.open => chosen.closed.push(case),
            Some(case) => match of_row(&case) {
                None => chosen.others = chosen.others.saturating_add(1),
                Some(kicked) if chosen.cases.contains(&kicked) => {}
                Some(kicked) => {
                    chosen.take(kicked, limit);
                }
            },
        }
    }
    Ok(chosen)
}

async fn listed(db: &Database, reason: Option<Reason>, limit: usize) -> Result<Chosen, StoreError> {
    let mut filter = CaseFilter {
        open_only: true,
        reason: reason.map(|reason| reason.as_str().to_owned()),
        // A kick goes on where the last one stopped.
        longest_unseen: true,
        limit: i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1),
        ..CaseFilter::default()
    };
    loop {
        let page = db.cases(&filter).await?;
        let is_all = i64::try_from(page.len()).is_ok_and(|count| count < filter.limit);
        let mut chosen = Chosen::default();
        for case in &page {
            let Some(kicked) = of_row(case) else {
                chosen.others = chosen.others.saturating_add(1);
                continue;
            };
            if !chosen.take(kicked, limit) {
                break;
            }
        }
        if is_all || chosen.more {
            return Ok(chosen);
        }
        // Cases of no row stood among them: as many again may be behind.
        filter.limit = filter.limit.saturating_mul(4);
    }
}

fn of_row(case: &CaseRow) -> Option<Kicked> {
    (case.subject_kind == "row").then(|| Kicked {
        number: case.number,
        key: RowKey { table: case.table.clone(), id: case.subject.clone() },
        reason: case.reason,
        currency: case.currency.clone(),
        amount_minor: case.amount_minor,
    })
}

/// Those first that were looked at longest ago: else the first few that nothing can be done for
/// would be taken by every kick, and the others by none.
async fn fixed(db: &Database, setup: &Setup, limit: usize) -> Result<Chosen, StoreError> {
    let mut chosen = Chosen::default();
    let mut replays = Replays::by(setup, &setup.rules);
    // What a run looks at meanwhile comes once more, behind the others.
    let mut taken = HashSet::new();
    // A kick goes on where the last one stopped.
    let mut after = None;
    loop {
        let page = db.unseen_row_cases(after, PAGE).await?;
        let Some((last, _)) = page.last() else { return Ok(chosen) };
        after = Some(*last);
        for (UnseenPlace { number, .. }, decided) in page {
            let stored = decided.evidence.as_deref();
            let stored = stored.and_then(|text| serde_json::from_str::<StoredInputs>(text).ok());
            let Some(stored) = stored else {
                chosen.unreadable = chosen.unreadable.saturating_add(1);
                continue;
            };
            if !is_fixed(decided.reason, &replays.would_be(&stored)) || !taken.insert(number) {
                continue;
            }
            let kicked = Kicked {
                number,
                key: RowKey { table: decided.table, id: decided.key },
                reason: decided.reason,
                currency: decided.currency,
                amount_minor: decided.amount_minor,
            };
            if !chosen.take(kicked, limit) {
                return Ok(chosen);
            }
        }
    }
}

/// A rule would not leave it to a person any more. What writing ran into is not a rule's to mend:
/// that the database refused the change, or that another row has the reference.
fn is_fixed(recorded: Reason, replayed: &Replayed) -> bool {
    let Replayed::Said(would_be) = replayed else { return false };
    let is_of_writing = matches!(recorded, Reason::WriteRefused | Reason::ReferenceClaimed);
    would_be.rule.is_some() && would_be.outcome != Outcome::Review && !is_of_writing
}

/// The kicked rows that the tables have.
pub(super) async fn rows(
    db: &Database,
    tables: &[SourceTable],
    kick: &Kick,
) -> Result<Vec<(String, NamedRow)>, RunError> {
    let mut found = Vec::new();
    for table in tables {
        let name = &table.settings.name;
        let ids = kick.ids_of(name);
        if ids.is_empty() {
            continue;
        }
        let rows = db.named_rows(table, &ids).await.doing("looking for the rows of the cases")?;
        found.extend(rows.into_iter().map(|row| (name.clone(), row)));
    }
    Ok(found)
}

/// Says of each case that was not looked at why not, and lets the others have their turn next.
pub(super) async fn tell_rest(
    scene: &Scene<'_>,
    books: &Books,
    kick: &Kick,
    named: &[(String, NamedRow)],
    tell: Tell<'_>,
) -> Result<(), RunError> {
    note_turns(scene, books, kick).await?;
    for case in kick.cases.iter().filter(|case| !books.looked_at.contains(&case.key)) {
        let why = why_not(scene, case, named).await?;
        let RowKey { table, id } = case.key.clone();
        tell(Event::NotLookedAt { table, id, why });
    }
    Ok(())
}

/// A case that this kick could do nothing for would be the first of the next one again. What only
/// time opened has a look of its own once a day, which is not put off.
async fn note_turns(scene: &Scene<'_>, books: &Books, kick: &Kick) -> Result<(), RunError> {
    if scene.options.dry_run {
        return Ok(());
    }
    let is_cut = scene.stop.requested().is_some() || scene.over.is_cancelled();
    for table in &scene.tables {
        let name = &table.settings.name;
        let had_turn = |case: &&Kicked| {
            case.key.table == *name
                && !ONLY_TIME.contains(&case.reason)
                && (!is_cut || books.looked_at.contains(&case.key))
        };
        let cases = kick.cases.iter().filter(had_turn);
        let keys: Vec<String> = cases.map(|case| case.key.id.clone()).collect();
        if !keys.is_empty() {
            let noted = scene.db.note_looked_at(name, &keys, scene.clock.now()).await;
            noted.doing("noting that cases were kicked")?;
        }
    }
    Ok(())
}

async fn why_not(
    scene: &Scene<'_>,
    case: &Kicked,
    named: &[(String, NamedRow)],
) -> Result<String, RunError> {
    let number = case.number;
    let stored = scene.db.case(number).await.doing("reading a case")?;
    if let Some(resolution) = stored.and_then(|case| case.resolution) {
        return Ok(format!("case C-{number} was closed meanwhile: {resolution}"));
    }
    if !scene.tables.iter().any(|table| table.settings.name == case.key.table) {
        return Ok(format!("its table is not mapped any more; case C-{number} stays open"));
    }
    let is_its =
        |(table, row): &&(String, NamedRow)| *table == case.key.table && row.id == case.key.id;
    let Some((_, row)) = named.iter().find(is_its) else {
        return Ok(format!("it is gone from its table; case C-{number} stays open"));
    };
    let check = scene.db.check(&case.key.table, &case.key.id).await;
    Ok(match check.doing("reading a row's check")?.and_then(|check| check.lease) {
        Some((run, until)) if run != scene.run_id => {
            format!("run {run} has it until {}", to_short_text(until))
        }
        _free if !row.belongs => "the mapping's where leaves it out".to_owned(),
        _free => "it left its status meanwhile, or the run stopped before it".to_owned(),
    })
}
