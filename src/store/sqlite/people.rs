//! Decisions by people, and the history of cases.
//!
//! SQLite knows no users: who speaks is what the caller says. Whoever needs a second pair of eyes
//! needs another face than the command line.

use std::collections::{HashMap, HashSet};

use sqlx::sqlite::{SqliteConnection, SqliteRow};

use crate::model::reason::Reason;
use crate::model::time::{Instant, to_text};
use crate::store::driver::CaseFilter;
use crate::store::error::StoreError;
use crate::store::people::{
    Approved, BY_RUN, CaseLinks, CaseNote, CaseSum, NewProposal, Proposal, ProposalState,
    SIMILAR_AMONG, UNPROPOSED, What, assigned_text, linked, outrun_text, proposed_text,
    reasons_sql,
};
use crate::store::prune::{goes, is_unnamed, unproposed};
use crate::store::records::CaseRow;
use crate::store::sqlite::cases::{COLUMNS, case_of, summing, summing_first};
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::line_cases;
use crate::store::sqlite::sql::{execute, fetch, json_set, rendered};
use crate::store::sqlite::statements::Statement;

const READING: &str = "reading what people said of cases";
const WRITING: &str = "noting what people say of cases";

const PROPOSAL: &str = "p.number, p.case_number, p.what, p.psp_reference, p.undoes, p.why, \
     p.evidence_sha256, p.four_eyes, p.proposed_by, p.proposed_at, p.state, p.approved_by, \
     p.approved_at, p.approved_why, p.ended_at, p.ended_why, p.ended_run";

/// How many columns a proposal has.
const PROPOSAL_COLUMNS: usize = 17;

fn proposal_of(cells: Cells<'_>) -> Result<Proposal, StoreError> {
    Ok(Proposal {
        number: cells.int(0)?,
        case_number: cells.int(1)?,
        what: cells.word(2, What::parse)?,
        psp_reference: cells.opt_text(3)?,
        undoes: cells.int(4)? != 0,
        why: cells.text(5)?,
        evidence_sha256: cells.opt_text(6)?,
        four_eyes: cells.int(7)? != 0,
        proposed_by: cells.text(8)?,
        proposed_at: cells.at(9)?,
        state: cells.word(10, ProposalState::parse)?,
        approved_by: cells.opt_text(11)?,
        approved_at: cells.opt_at(12)?,
        approved_why: cells.opt_text(13)?,
        ended_at: cells.opt_at(14)?,
        ended_why: cells.opt_text(15)?,
        ended_run: cells.opt_text(16)?,
    })
}

pub(super) async fn sums(
    connection: &mut SqliteConnection,
    filter: &CaseFilter,
) -> Result<Vec<CaseSum>, StoreError> {
    summed(connection, summing(filter)).await
}

pub(super) async fn sums_of_first(
    connection: &mut SqliteConnection,
    filter: &CaseFilter,
    most: i64,
) -> Result<Vec<CaseSum>, StoreError> {
    summed(connection, summing_first(filter, most)).await
}

async fn summed(
    connection: &mut SqliteConnection,
    statement: Statement,
) -> Result<Vec<CaseSum>, StoreError> {
    let rows = fetch(connection, READING, statement.query()).await?;
    let sum_of = |row: &SqliteRow| {
        let cells = Cells::new(row, READING);
        let millions = i128::from(cells.int(2)?).saturating_mul(1_000_000);
        Ok(CaseSum {
            currency: cells.text(0)?,
            cases: cells.int(1)?,
            amount_minor: millions.saturating_add(i128::from(cells.int(3)?)),
        })
    };
    rows.iter().map(sum_of).collect()
}

pub(super) async fn notes(
    connection: &mut SqliteConnection,
    case: i64,
) -> Result<Vec<CaseNote>, StoreError> {
    let query = sqlx::query(
        "select at, kind, by_whom, text, proposal, run_id from tieout_case_notes \
         where case_number = ?1 order by id",
    )
    .bind(case);
    let rows = fetch(connection, READING, query).await?;
    let note_of = |row: &SqliteRow| {
        let cells = Cells::new(row, READING);
        Ok(CaseNote {
            at: cells.at(0)?,
            kind: cells.text(1)?,
            by: cells.text(2)?,
            text: cells.text(3)?,
            proposal: cells.opt_int(4)?,
            run_id: cells.opt_text(5)?,
        })
    };
    rows.iter().map(note_of).collect()
}

pub(super) async fn links(
    connection: &mut SqliteConnection,
    case: i64,
) -> Result<CaseLinks, StoreError> {
    let query = sqlx::query(
        "select number, merged_into from tieout_cases where number = ?1 or merged_into = ?1 \
         order by number",
    )
    .bind(case);
    let mut links = CaseLinks::default();
    for row in &fetch(connection, READING, query).await? {
        let cells = Cells::new(row, READING);
        let (number, part_of) = (cells.int(0)?, cells.opt_int(1)?);
        if number == case {
            links.part_of = part_of;
        } else {
            links.parts.push(number);
        }
    }
    Ok(links)
}

pub(super) async fn links_of(
    connection: &mut SqliteConnection,
    cases: &[i64],
) -> Result<HashMap<i64, CaseLinks>, StoreError> {
    // Each half by an index of its own.
    let query = sqlx::query(
        "select k.number, k.merged_into from json_each(?1) j cross join tieout_cases k \
         on k.number = j.value where k.merged_into is not null \
         union select k.number, k.merged_into from json_each(?1) j cross join tieout_cases k \
         on k.merged_into = j.value order by 1",
    )
    .bind(json_set(cases));
    let mut pairs = Vec::new();
    for row in &fetch(connection, READING, query).await? {
        let cells = Cells::new(row, READING);
        pairs.push((cells.int(0)?, cells.int(1)?));
    }
    Ok(linked(cases, pairs))
}

pub(super) async fn similar(
    connection: &mut SqliteConnection,
    case: &CaseRow,
    limit: i64,
) -> Result<Vec<CaseRow>, StoreError> {
    let sql = format!(
        "select {COLUMNS} from tieout_cases where number <> ?2 and number in \
         (select number from tieout_cases where state = 'closed' and reason = ?1 \
         order by number desc limit {SIMILAR_AMONG}) \
         order by account is not ?3, number desc limit ?4"
    );
    let query = rendered(&sql)
        .bind(case.reason.as_str())
        .bind(case.number)
        .bind(case.account.clone())
        .bind(limit);
    fetch(connection, READING, query).await?.iter().map(case_of).collect()
}

pub(super) async fn proposals(
    connection: &mut SqliteConnection,
    cases: &[i64],
) -> Result<Vec<Proposal>, StoreError> {
    let sql = format!(
        "select {PROPOSAL} from json_each(?1) j cross join tieout_proposals p \
         on p.case_number = j.value order by p.number"
    );
    let rows = fetch(connection, READING, rendered(&sql).bind(json_set(cases))).await?;
    rows.iter().map(|row| proposal_of(Cells::new(row, READING))).collect()
}

pub(super) async fn approved(
    connection: &mut SqliteConnection,
    cases: Option<&[i64]>,
    after: i64,
    limit: i64,
) -> Result<Vec<Approved>, StoreError> {
    let sql = format!(
        "select {PROPOSAL}, k.subject_kind, k.table_name, k.subject, k.state, k.evidence_sha256, \
         k.currency, k.amount_minor \
         from tieout_proposals p join tieout_cases k on k.number = p.case_number \
         where p.state = 'approved' and p.number > ?1 \
         and (?3 is null or p.case_number in (select value from json_each(?3))) \
         order by p.number limit ?2"
    );
    let query = rendered(&sql).bind(after).bind(limit).bind(cases.map(json_set));
    let rows = fetch(connection, READING, query).await?;
    let approved_of = |row: &SqliteRow| {
        let cells = Cells::new(row, READING);
        let at = |more: usize| PROPOSAL_COLUMNS.saturating_add(more);
        Ok(Approved {
            proposal: proposal_of(cells)?,
            subject_kind: cells.text(at(0))?,
            table: cells.text(at(1))?,
            subject: cells.text(at(2))?,
            is_open: cells.str(at(3))? == "open",
            evidence_sha256: cells.opt_text(at(4))?,
            currency: cells.text(at(5))?,
            amount_minor: cells.int(at(6))?,
        })
    };
    rows.iter().map(approved_of).collect()
}

/// One entry of a history on its way: case, kind, text, proposal.
type NewNote<'a> = (i64, &'a str, String, Option<i64>);

async fn note(
    connection: &mut SqliteConnection,
    notes: &[NewNote<'_>],
    by: &str,
    run_id: Option<&str>,
    now: Instant,
) -> Result<(), StoreError> {
    if notes.is_empty() {
        return Ok(());
    }
    let query = sqlx::query(
        "insert into tieout_case_notes (case_number, at, kind, by_whom, text, proposal, run_id) \
         select j.value ->> 0, ?2, j.value ->> 1, ?3, j.value ->> 2, j.value ->> 3, ?4 \
         from json_each(?1) j where true order by j.key",
    )
    .bind(json_set(notes))
    .bind(to_text(now))
    .bind(by.to_owned())
    .bind(run_id.map(str::to_owned));
    execute(connection, WRITING, query).await.map(|_| ())
}

/// The numbers that a statement returned, in order.
async fn numbers(
    connection: &mut SqliteConnection,
    query: crate::store::sqlite::sql::SqliteQuery,
) -> Result<Vec<i64>, StoreError> {
    let rows = fetch(connection, WRITING, query).await?;
    let found: Result<Vec<i64>, StoreError> =
        rows.iter().map(|row| Cells::new(row, WRITING).int(0)).collect();
    let mut found = found?;
    found.sort_unstable();
    Ok(found)
}

pub(super) async fn assign(
    connection: &mut SqliteConnection,
    cases: &[i64],
    owner: Option<&str>,
    by: &str,
    now: Instant,
) -> Result<u64, StoreError> {
    let query = sqlx::query(
        "update tieout_cases set owner = ?2 where state = 'open' and owner is not ?2 \
         and number in (select value from json_each(?1)) returning number",
    )
    .bind(json_set(cases))
    .bind(owner.map(str::to_owned));
    let changed = numbers(connection, query).await?;
    let text = assigned_text(owner);
    let notes: Vec<NewNote<'_>> =
        changed.iter().map(|case| (*case, "assigned", text.clone(), None)).collect();
    note(connection, &notes, by, None, now).await?;
    Ok(u64::try_from(changed.len()).unwrap_or(u64::MAX))
}

pub(super) async fn comment(
    connection: &mut SqliteConnection,
    cases: &[i64],
    text: &str,
    by: &str,
    now: Instant,
) -> Result<u64, StoreError> {
    let query = sqlx::query(
        "select number from tieout_cases where number in (select value from json_each(?1))",
    )
    .bind(json_set(cases));
    let found = numbers(connection, query).await?;
    let notes: Vec<NewNote<'_>> =
        found.iter().map(|case| (*case, "comment", text.to_owned(), None)).collect();
    note(connection, &notes, by, None, now).await?;
    Ok(u64::try_from(found.len()).unwrap_or(u64::MAX))
}

pub(super) async fn propose(
    connection: &mut SqliteConnection,
    proposals: &[NewProposal],
    by: &str,
    now: Instant,
) -> Result<Vec<i64>, StoreError> {
    let mut stand = Vec::new();
    for proposal in proposals {
        let query = sqlx::query(
            "insert into tieout_proposals (case_number, what, psp_reference, undoes, why, \
             evidence_sha256, four_eyes, proposed_by, proposed_at, state) \
             select k.number, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'open' from tieout_cases k \
             where k.number = ?1 and (k.state = 'open') <> ?4 and k.evidence_sha256 is ?6 \
             and not exists (select 1 from tieout_proposals o where o.case_number = k.number \
             and o.state in ('open', 'approved')) returning number",
        )
        .bind(proposal.case_number)
        .bind(proposal.what.as_str())
        .bind(proposal.psp_reference.clone())
        .bind(proposal.undoes)
        .bind(proposal.why.clone())
        .bind(proposal.evidence_sha256.clone())
        .bind(proposal.four_eyes)
        .bind(by.to_owned())
        .bind(to_text(now));
        if let Some(number) = numbers(connection, query).await?.first() {
            let text = proposed_text(proposal);
            let entry = (proposal.case_number, "proposed", text, Some(*number));
            note(connection, &[entry], by, None, now).await?;
            stand.push(proposal.case_number);
        }
    }
    Ok(stand)
}

pub(super) async fn approve(
    connection: &mut SqliteConnection,
    proposals: &[(i64, Option<String>)],
    why: &str,
    by: &str,
    now: Instant,
) -> Result<Vec<i64>, StoreError> {
    let query = sqlx::query(
        "update tieout_proposals as p set state = 'approved', approved_by = ?2, \
         approved_at = ?3, approved_why = ?4, approved_evidence = p.evidence_sha256 \
         from json_each(?1) j, tieout_cases k where p.number = j.value ->> 0 \
         and k.number = p.case_number and p.state = 'open' \
         and p.evidence_sha256 is (j.value ->> 1) and k.evidence_sha256 is p.evidence_sha256 \
         and (k.state = 'open') <> p.undoes and (p.four_eyes = 0 or p.proposed_by <> ?2) \
         returning number",
    )
    .bind(json_set(proposals))
    .bind(by.to_owned())
    .bind(to_text(now))
    .bind(why.to_owned());
    let approved = numbers(connection, query).await?;
    note_proposals(connection, &approved, "approved", why, by, None, now).await?;
    Ok(approved)
}

/// Notes the same of several proposals, each in its case's history.
async fn note_proposals(
    connection: &mut SqliteConnection,
    proposals: &[i64],
    kind: &str,
    text: &str,
    by: &str,
    run_id: Option<&str>,
    now: Instant,
) -> Result<(), StoreError> {
    if proposals.is_empty() {
        return Ok(());
    }
    let query = sqlx::query(
        "insert into tieout_case_notes (case_number, at, kind, by_whom, text, proposal, run_id) \
         select p.case_number, ?2, ?3, ?4, ?5, p.number, ?6 from json_each(?1) j \
         cross join tieout_proposals p on p.number = j.value where true order by j.key",
    )
    .bind(json_set(proposals))
    .bind(to_text(now))
    .bind(kind.to_owned())
    .bind(by.to_owned())
    .bind(text.to_owned())
    .bind(run_id.map(str::to_owned));
    execute(connection, WRITING, query).await.map(|_| ())
}

pub(super) async fn turn_down(
    connection: &mut SqliteConnection,
    proposals: &[i64],
    why: &str,
    by: &str,
    now: Instant,
) -> Result<Vec<i64>, StoreError> {
    let mut ended = Vec::new();
    for (state, whose) in [("withdrawn", "proposed_by = ?4"), ("rejected", "proposed_by <> ?4")] {
        let sql = format!(
            "update tieout_proposals set state = '{state}', ended_at = ?2, ended_why = ?3, \
             ended_by = ?4 where state in ('open', 'approved') and {whose} \
             and number in (select value from json_each(?1)) returning number"
        );
        let query = rendered(&sql)
            .bind(json_set(proposals))
            .bind(to_text(now))
            .bind(why.to_owned())
            .bind(by.to_owned());
        // The file notes it by itself.
        ended.extend(numbers(connection, query).await?);
    }
    ended.sort_unstable();
    Ok(ended)
}

/// Ends approved proposals; those that had not ended before come back.
pub(super) async fn end_approved(
    connection: &mut SqliteConnection,
    run_id: &str,
    proposals: &[i64],
    state: ProposalState,
    why: &str,
    now: Instant,
) -> Result<Vec<i64>, StoreError> {
    let query = sqlx::query(
        "update tieout_proposals set state = ?2, ended_at = ?3, ended_why = ?4, ended_run = ?5 \
         where state = 'approved' and number in (select value from json_each(?1)) \
         returning number",
    )
    .bind(json_set(proposals))
    .bind(state.as_str())
    .bind(to_text(now))
    .bind(why.to_owned())
    .bind(run_id.to_owned());
    let ended = numbers(connection, query).await?;
    note_proposals(connection, &ended, state.as_str(), why, BY_RUN, Some(run_id), now).await?;
    Ok(ended)
}

/// Ends, within the transaction of a run that closes these cases, what is proposed of them and was
/// approved by nobody. What is approved is refused as it would be carried out.
pub(super) async fn end_outrun(
    connection: &mut SqliteConnection,
    run_id: &str,
    cases: &[i64],
    now: Instant,
) -> Result<(), StoreError> {
    // The file notes it by itself.
    let query = sqlx::query(
        "update tieout_proposals set state = 'rejected', ended_at = ?2, ended_why = ?3, \
         ended_by = ?4 where number in (select p.number from json_each(?1) j \
         cross join tieout_proposals p on p.case_number = j.value \
         where p.state = 'open' and p.undoes = 0)",
    )
    .bind(json_set(cases))
    .bind(to_text(now))
    .bind(outrun_text(run_id))
    .bind(BY_RUN);
    execute(connection, WRITING, query).await.map(|_| ())
}

/// Of these approved proposals those that may be carried out: they stand, and their cases show
/// what was approved.
pub(super) async fn still_approved(
    connection: &mut SqliteConnection,
    proposals: &[i64],
) -> Result<Vec<i64>, StoreError> {
    let query = sqlx::query(
        "select p.number from json_each(?1) j cross join tieout_proposals p on p.number = j.value \
         join tieout_cases k on k.number = p.case_number where p.state = 'approved' \
         and k.evidence_sha256 is p.evidence_sha256 and (k.state = 'open') <> p.undoes",
    )
    .bind(json_set(proposals));
    numbers(connection, query).await
}

/// Those of these rows of a table of whose open case something is approved that may be carried out.
pub(super) async fn spoken_for(
    connection: &mut SqliteConnection,
    table: &str,
    keys: &[&str],
) -> Result<HashSet<String>, StoreError> {
    let query = sqlx::query(
        "select k.subject from json_each(?2) j cross join tieout_cases k \
         on k.subject_kind = 'row' and k.table_name = ?1 and k.subject = j.value \
         and k.state = 'open' join tieout_proposals p on p.case_number = k.number \
         where p.state = 'approved' and p.undoes = 0 \
         and k.evidence_sha256 is p.evidence_sha256",
    )
    .bind(table.to_owned())
    .bind(json_set(keys));
    let rows = fetch(connection, WRITING, query).await?;
    rows.iter().map(|row| Cells::new(row, WRITING).text(0)).collect()
}

pub(super) async fn leave(
    connection: &mut SqliteConnection,
    run_id: &str,
    proposal: i64,
    now: Instant,
) -> Result<bool, StoreError> {
    let query = sqlx::query(
        "select p.number from tieout_proposals p join tieout_cases k on k.number = p.case_number \
         where p.number = ?1 and p.state = 'approved' and p.what = 'left' and k.state = 'open' \
         and k.evidence_sha256 is p.evidence_sha256 and not exists (select 1 \
         from tieout_checks c where k.subject_kind = 'row' and c.table_name = k.table_name \
         and c.key = k.subject and c.lease_until > ?2)",
    )
    .bind(proposal)
    .bind(to_text(now));
    if numbers(connection, query).await?.is_empty() {
        return Ok(false);
    }
    let query = sqlx::query(
        "update tieout_checks as c set state = 'parked', next_check_at = null \
         from tieout_proposals p, tieout_cases k where p.number = ?1 \
         and k.number = p.case_number and k.subject_kind = 'row' \
         and c.table_name = k.table_name and c.key = k.subject and c.state in ('case', 'open')",
    )
    .bind(proposal);
    execute(connection, WRITING, query).await?;
    let query = sqlx::query(
        "update tieout_cases as k set state = 'closed', closed_at = ?2, closed_run = ?3, \
         resolution = 'left as it is by ' || p.approved_by || ', proposed by ' \
         || p.proposed_by || ': ' || p.why \
         from tieout_proposals p where p.number = ?1 and k.number = p.case_number",
    )
    .bind(proposal)
    .bind(to_text(now))
    .bind(run_id.to_owned());
    execute(connection, WRITING, query).await?;
    line_cases::leave(connection, WRITING, proposal).await?;
    let (state, why) = (ProposalState::CarriedOut, "left as it is");
    end_approved(connection, run_id, &[proposal], state, why, now).await?;
    Ok(true)
}

pub(super) async fn merge(
    connection: &mut SqliteConnection,
    into: Option<i64>,
    cases: &[i64],
    why: &str,
    by: &str,
    now: Instant,
) -> Result<u64, StoreError> {
    // What is a part has no parts of its own, so that a whole is one step deep.
    let query = sqlx::query(
        "update tieout_cases as k set merged_into = ?2 where k.state = 'open' \
         and k.merged_into is not ?2 and k.number is not ?2 \
         and k.number in (select value from json_each(?1)) \
         and (?2 is null or (exists (select 1 from tieout_cases l where l.number = ?2 \
         and l.state = 'open' and l.merged_into is null) \
         and not exists (select 1 from tieout_cases m where m.merged_into = k.number))) \
         returning number",
    )
    .bind(json_set(cases))
    .bind(into);
    let changed = numbers(connection, query).await?;
    let kind = if into.is_some() { "merged" } else { "parted" };
    let text = into.map_or_else(|| why.to_owned(), |into| format!("into C-{into}: {why}"));
    let notes: Vec<NewNote<'_>> =
        changed.iter().map(|case| (*case, kind, text.clone(), None)).collect();
    note(connection, &notes, by, None, now).await?;
    if let Some(into) = into.filter(|_| !changed.is_empty()) {
        let names: Vec<String> = changed.iter().map(|case| format!("C-{case}")).collect();
        let text = format!("with {}: {why}", names.join(", "));
        note(connection, &[(into, "merged", text, None)], by, None, now).await?;
    }
    Ok(u64::try_from(changed.len()).unwrap_or(u64::MAX))
}

pub(super) async fn purgeable(
    connection: &mut SqliteConnection,
    cases: &[i64],
    before: Instant,
) -> Result<Vec<i64>, StoreError> {
    let query = sqlx::query(concat!(
        "select k.number from json_each(?1) i cross join tieout_cases k where k.number = i.value ",
        "and ",
        goes!(is_unnamed, "?2"),
        " order by k.number",
    ))
    .bind(json_set(cases))
    .bind(to_text(before));
    let rows = fetch(connection, READING, query).await?;
    rows.iter().map(|row| Cells::new(row, READING).int(0)).collect()
}

pub(super) async fn purge(
    connection: &mut SqliteConnection,
    cases: &[i64],
    before: Instant,
) -> Result<u64, StoreError> {
    let query = sqlx::query(concat!(
        "delete from tieout_cases as k where k.number in (select value from json_each(?1)) and ",
        goes!(is_unnamed, "?2"),
    ))
    .bind(json_set(cases))
    .bind(to_text(before));
    execute(connection, "purging closed cases", query).await
}

pub(super) async fn rows_to_look_at(
    connection: &mut SqliteConnection,
    table: &str,
    reasons: &[Reason],
    (before, limit): (Instant, i64),
    proposed: bool,
) -> Result<Vec<String>, StoreError> {
    let reasons = reasons_sql(reasons);
    let unproposed = if proposed { "" } else { UNPROPOSED };
    let sql = format!(
        "select k.subject from tieout_cases k cross join tieout_checks c \
         on c.table_name = k.table_name and c.key = k.subject and c.state = 'case' \
         where k.state = 'open' and k.subject_kind = 'row' and k.reason in ({reasons}) \
         and k.table_name = ?1 and coalesce(k.looked_at, k.last_seen_at) < ?2 \
         {unproposed} order by coalesce(k.looked_at, k.last_seen_at), k.number limit ?3"
    );
    let query = rendered(&sql).bind(table.to_owned()).bind(to_text(before)).bind(limit);
    let rows = fetch(connection, READING, query).await?;
    rows.iter().map(|row| Cells::new(row, READING).text(0)).collect()
}

pub(super) async fn note_looked_at(
    connection: &mut SqliteConnection,
    table: &str,
    keys: &[String],
    now: Instant,
) -> Result<(), StoreError> {
    let query = sqlx::query(
        "update tieout_cases set looked_at = ?3 where state = 'open' and subject_kind = 'row' \
         and table_name = ?1 and subject in (select value from json_each(?2))",
    )
    .bind(table.to_owned())
    .bind(json_set(keys))
    .bind(to_text(now));
    execute(connection, WRITING, query).await.map(|_| ())
}
