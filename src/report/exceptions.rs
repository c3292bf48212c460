//! `exceptions.csv`: every row that this run gave to a person, and every account.
//!
//! A case goes on living after the run, so a line takes from it only what never changes (its
//! number, the run that opened it), and the rest from the journal and the evidence, which are
//! append-only. It shows the case as this run left it: open. Owner and resolution are what
//! people do later; `tieout cases` shows them, and here they stay empty.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::evidence::{Answer, PspObject};
use crate::model::reason::{Outcome, Reason};
use crate::model::time::Instant;
use crate::report::advice::{action_after, severity, side, suggested_action};
use crate::report::aging::bucket;
use crate::report::cells::Cell;
use crate::report::error::ReportError;
use crate::report::facts::{AccountCaseNote, Facts};
use crate::report::rows::{difference, local_minor, psp_money};
use crate::report::sorter::tuple_key;
use crate::report::source::Source;
use crate::store::driver::CaseFilter;
use crate::store::records::{Applied, CaseRow, JournalRow, StoredInputs};

/// Cases read at once: those of one run mostly have neighbouring numbers.
const PAGE: i64 = 500;

/// What a line needs of its journal record, kept small while the lines are sorted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    case_number: Option<i64>,
    table: String,
    key: String,
    account: String,
    tag: String,
    kind: String,
    currency: String,
    local_minor: Option<i128>,
    psp_currency: Option<String>,
    psp_minor: Option<i128>,
    difference: Option<i128>,
    reason: Reason,
    text: String,
    status: String,
    psp_reference: Option<String>,
    psp_status: Option<String>,
    created_at: Option<Instant>,
    decided_at: Instant,
    next_check_at: Option<Instant>,
    checks: u32,
    evidence_sha256: String,
}

/// Whether a record is one: a person was asked, and the row had not changed meanwhile.
pub fn is_exception(record: &JournalRow) -> bool {
    record.outcome == Outcome::Review && record.applied != Applied::Superseded
}

/// The order of the file: by case; accounts, which have no row, after all rows.
pub fn order(record: &JournalRow) -> Vec<u8> {
    let mut order = tuple_key(&[], record.case_number.unwrap_or(i64::MAX));
    order.extend(tuple_key(&[&record.table, &record.key, &record.writer], record.seq));
    order
}

impl Draft {
    /// Takes what a line needs.
    pub fn of(record: &JournalRow) -> Self {
        let psp = psp_money(record);
        Self {
            case_number: record.case_number,
            table: record.table.clone(),
            key: record.key.clone(),
            account: record.account.clone(),
            tag: record.tag.clone(),
            kind: record.kind.clone(),
            currency: record.currency.clone(),
            local_minor: local_minor(record),
            psp_currency: psp.map(|(currency, _)| currency.to_owned()),
            psp_minor: psp.map(|(_, minor)| minor),
            difference: difference(record),
            reason: record.reason,
            text: record.text.clone(),
            status: record.status_after.clone(),
            psp_reference: record.psp_reference.clone(),
            psp_status: record.psp_status.clone(),
            created_at: record.row_created_at,
            decided_at: record.at,
            next_check_at: record.next_check_at,
            checks: record.checks,
            evidence_sha256: record.evidence_sha256.clone(),
        }
    }

    /// To bytes, for the sorter.
    pub fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    /// Back from the sorter.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }
}

/// Finishes drafts with what the store knows of their cases.
pub struct Finisher<'a, S> {
    source: &'a S,
    facts: &'a Facts,
    cases: BTreeMap<i64, CaseRow>,
    read_to: i64,
}

impl<'a, S: Source> Finisher<'a, S> {
    /// Reads from `source`.
    pub fn new(source: &'a S, facts: &'a Facts) -> Self {
        Self { source, facts, cases: BTreeMap::new(), read_to: 0 }
    }

    /// The line of a draft. Drafts come by ascending case number.
    pub async fn line(&mut self, draft: &Draft) -> Result<Vec<Cell>, ReportError> {
        let case = match draft.case_number {
            Some(number) => self.case(number).await?,
            None => None,
        };
        let times_seen = match &case {
            Some(case) => Some(self.times_seen(case, draft).await?),
            None => None,
        };
        let inputs = self.inputs(draft).await?;
        let psp_at = draft.psp_reference.as_ref().zip(inputs.as_ref());
        let psp_at = psp_at.and_then(|(reference, inputs)| created_at(inputs, reference));
        let case_run = case.map(|case| case.opened_run);
        let shown = inputs.iter().flat_map(shown);
        let wanted = inputs.as_ref().and_then(|inputs| inputs.row.money);
        let action = action_after(draft.reason, draft.psp_reference.is_some(), wanted, shown);
        let first_seen_run = case_run.as_deref();
        Ok(row_cells(draft, self.facts, first_seen_run, times_seen, (psp_at, action)))
    }

    /// The case, out of a page that begins at it where it was not read yet.
    async fn case(&mut self, number: i64) -> Result<Option<CaseRow>, ReportError> {
        if number > self.read_to {
            let after = Some(number.saturating_sub(1));
            let filter = CaseFilter { after, limit: PAGE, ..CaseFilter::default() };
            let read = self.source.cases(&filter).await;
            let page = read.map_err(ReportError::store(&self.facts.run.id))?;
            self.read_to = page.last().map_or(number, |last| last.number.max(number));
            self.cases = page.into_iter().map(|case| (case.number, case)).collect();
        }
        Ok(self.cases.get(&number).cloned())
    }

    /// How many decisions had led to the case when this run made its own. The case itself says,
    /// unless a later run went on; then the journal is counted up to this run.
    async fn times_seen(&self, case: &CaseRow, draft: &Draft) -> Result<i64, ReportError> {
        if case.last_run == self.facts.run.id {
            return Ok(case.times_seen);
        }
        let read = self.source.journal_of_row(&draft.table, &draft.key).await;
        let records = read.map_err(ReportError::store(&self.facts.run.id))?;
        let led_here = records.iter().filter(|record| {
            record.case_number == draft.case_number && record.at <= draft.decided_at
        });
        Ok(i64::try_from(led_here.count()).unwrap_or(i64::MAX))
    }

    /// What a decision that names an object was made from: when the PSP created it, and whether its
    /// money went back, stands in the evidence.
    async fn inputs(&self, draft: &Draft) -> Result<Option<StoredInputs>, ReportError> {
        if draft.psp_reference.is_none() {
            return Ok(None);
        }
        let read = self.source.evidence(&draft.evidence_sha256).await;
        let stored = read.map_err(ReportError::store(&self.facts.run.id))?;
        Ok(stored.and_then(|text| serde_json::from_str::<StoredInputs>(&text).ok()))
    }
}

/// Every look at every object that a decision was made from.
pub fn shown(inputs: &StoredInputs) -> impl Iterator<Item = &PspObject> {
    inputs.evidence.iter().flat_map(|evidence| match &evidence.answer {
        Answer::Found { objects, .. } => objects.as_slice(),
        Answer::Nothing(_) | Answer::UnknownReference(_) | Answer::NoAnswer(_) => &[],
    })
}

fn created_at(inputs: &StoredInputs, reference: &str) -> Option<Instant> {
    let is_named = |object: &&PspObject| reference.split(' ').any(|name| object.is_named(name));
    let mut named = shown(inputs).filter(is_named);
    named.next().map(|object| object.created_at)
}

fn row_cells(
    draft: &Draft,
    facts: &Facts,
    first_seen_run: Option<&str>,
    times_seen: Option<i64>,
    (psp_at, action): (Option<Instant>, &'static str),
) -> Vec<Cell> {
    let psp_currency = draft.psp_currency.as_deref().unwrap_or("");
    Line {
        case_number: draft.case_number,
        reason: draft.reason,
        text: &draft.text,
        action,
        key: Cell::text(&draft.key),
        account: &draft.account,
        reference: Cell::text_of(draft.psp_reference.as_deref()),
        local_status: Cell::text(&draft.status),
        psp_status: Cell::text_of(draft.psp_status.as_deref()),
        currency: &draft.currency,
        money: [
            Cell::money(&draft.currency, draft.local_minor),
            Cell::money(psp_currency, draft.psp_minor),
            Cell::money(&draft.currency, draft.difference),
        ],
        created_at: draft.created_at,
        psp_at,
        first_seen_run,
        times_seen,
        last_checked_at: Some(draft.decided_at),
        next_check_at: draft.next_check_at,
        attempts: Some(draft.checks),
        evidence: &draft.evidence_sha256,
        table: Cell::text(&draft.table),
        tag: Cell::text(&draft.tag),
        kind: &draft.kind,
        psp_currency,
    }
    .cells(facts)
}

/// The lines of accounts.
pub async fn account_lines<S: Source>(
    source: &S,
    facts: &Facts,
) -> Result<Vec<Vec<Cell>>, ReportError> {
    let mut lines = Vec::new();
    for note in account_cases(source, facts).await? {
        let after = Some(note.number.saturating_sub(1));
        let filter = CaseFilter { after, limit: 1, ..CaseFilter::default() };
        let read = source.cases(&filter).await.map_err(ReportError::store(&facts.run.id))?;
        let case = read.first().filter(|case| case.number == note.number);
        lines.push(account_cells(&note, facts, case.map(|case| case.opened_run.as_str())));
    }
    Ok(lines)
}

fn account_cells(note: &AccountCaseNote, facts: &Facts, first_seen_run: Option<&str>) -> Vec<Cell> {
    Line {
        case_number: Some(note.number),
        reason: note.reason,
        text: &note.text,
        action: suggested_action(note.reason, false),
        key: Cell::Null,
        account: &note.account,
        reference: Cell::Null,
        local_status: Cell::Null,
        psp_status: Cell::Null,
        currency: "",
        money: [[Cell::Null, Cell::Null], [Cell::Null, Cell::Null], [Cell::Null, Cell::Null]],
        created_at: None,
        psp_at: None,
        first_seen_run,
        times_seen: None,
        last_checked_at: None,
        next_check_at: None,
        attempts: None,
        evidence: note.evidence_sha256.as_deref().unwrap_or(""),
        table: Cell::Null,
        tag: Cell::Null,
        kind: "account",
        psp_currency: "",
    }
    .cells(facts)
}

/// What the run noted of accounts' cases, each once, by number. For a run that noted none (it was
/// killed): those that it opened, with what cannot have changed since.
async fn account_cases<S: Source>(
    source: &S,
    facts: &Facts,
) -> Result<Vec<AccountCaseNote>, ReportError> {
    if let Some(noted) = &facts.notes.account_cases {
        let by_number: BTreeMap<i64, &AccountCaseNote> =
            noted.iter().map(|note| (note.number, note)).collect();
        return Ok(by_number.into_values().cloned().collect());
    }
    let mut found = Vec::new();
    let mut filter =
        CaseFilter { opened_run: Some(facts.run.id.clone()), limit: PAGE, ..CaseFilter::default() };
    loop {
        let read = source.cases(&filter).await;
        let page = read.map_err(ReportError::store(&facts.run.id))?;
        let Some(last) = page.last() else { return Ok(found) };
        filter.after = Some(last.number);
        let accounts = page.into_iter().filter(|case| case.subject_kind == "account");
        found.extend(accounts.map(|case| AccountCaseNote {
            number: case.number,
            text: case.reason.meaning().to_owned(),
            reason: case.reason,
            account: case.subject,
            evidence_sha256: None,
        }));
    }
}

struct Line<'a> {
    case_number: Option<i64>,
    reason: Reason,
    text: &'a str,
    action: &'static str,
    key: Cell,
    account: &'a str,
    reference: Cell,
    local_status: Cell,
    psp_status: Cell,
    currency: &'a str,
    /// Local, PSP, difference.
    money: [[Cell; 2]; 3],
    created_at: Option<Instant>,
    psp_at: Option<Instant>,
    first_seen_run: Option<&'a str>,
    times_seen: Option<i64>,
    last_checked_at: Option<Instant>,
    next_check_at: Option<Instant>,
    attempts: Option<u32>,
    evidence: &'a str,
    table: Cell,
    tag: Cell,
    kind: &'a str,
    psp_currency: &'a str,
}

impl Line<'_> {
    fn cells(self, facts: &Facts) -> Vec<Cell> {
        let age = self.created_at.map(|created| facts.age_days(created));
        let [local, psp, difference] = self.money;
        let mut cells = vec![
            Cell::text(&facts.run.id),
            Cell::case(self.case_number),
            Cell::word(side(self.reason)),
            Cell::word(self.reason.as_str()),
            Cell::text(self.text),
            Cell::word(self.action),
            self.key,
            Cell::text_of(facts.psp_of(self.account)),
            Cell::text(self.account),
            self.reference,
        ];
        // bank_ref, file_name, file_sha256, line_no: no settlement file takes part yet.
        cells.extend([Cell::Null, Cell::Null, Cell::Null, Cell::Null]);
        cells.extend([self.local_status, self.psp_status, Cell::word(self.currency)]);
        cells.extend(local);
        cells.extend(psp);
        cells.extend([Cell::Null, Cell::Null]); // bank_amount
        cells.extend(difference);
        cells.extend([Cell::at(self.created_at), Cell::at(self.psp_at)]);
        cells.extend([Cell::Null, Cell::Null]); // booked_on, value_date
        cells.extend([
            Cell::int_of(age),
            age.map_or(Cell::Null, |days| Cell::word(bucket(days))),
            Cell::Null, // due_at: cases have no due date yet
            Cell::word(severity(self.reason)),
            Cell::text_of(self.first_seen_run),
            Cell::int_of(self.times_seen),
            Cell::at(self.last_checked_at),
            Cell::at(self.next_check_at),
            Cell::int_of(self.attempts),
            Cell::Null, // owner
            Cell::word("open"),
        ]);
        // comment_count, resolved_by, approved_by, resolved_at, resolution: later than the run.
        cells.extend([Cell::Null, Cell::Null, Cell::Null, Cell::Null, Cell::Null]);
        cells.extend([
            Cell::word(self.evidence),
            self.table,
            self.tag,
            Cell::word(self.kind),
            Cell::word(self.psp_currency),
            Cell::local(self.created_at, facts.zone),
            Cell::local(self.psp_at, facts.zone),
        ]);
        cells
    }
}
