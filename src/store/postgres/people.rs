//! Decisions by people, and the history of cases. Who speaks is the session's user, and triggers
//! hold it so: `session_user` is not changed by `set role`, and no statement can name another.

use std::collections::{HashMap, HashSet};

use sqlx::postgres::{PgConnection, PgPool, PgRow};

use crate::model::reason::Reason;
use crate::model::time::Instant;
use crate::store::driver::CaseFilter;
use crate::store::error::StoreError;
use crate::store::people::{
    Approved, BY_RUN, CaseLinks, CaseNote, CaseSum, NewProposal, Proposal, ProposalState,
    SIMILAR_AMONG, UNPROPOSED, What, assigned_text, buckets_of, linked, outrun_text, proposed_text,
    reasons_sql,
};
use crate::store::postgres::errors::failed;
use crate::store::postgres::line_cases;
use crate::store::postgres::read::{CASE, case_conditions, case_listing, case_row};
use crate::store::postgres::sql::{Cells, Sql};
use crate::store::postgres::transactions::begin;
use crate::store::prune::{goes, is_unnamed, unproposed};
use crate::store::records::CaseRow;

const READING: &str = "reading what people said of cases";
const WRITING: &str = "noting what people say of cases";

const PROPOSAL: &str = "p.number, p.case_number, p.what, p.psp_reference, p.undoes, p.why, \
     p.evidence_sha256, p.four_eyes, p.proposed_by, p.proposed_at, p.state, p.approved_by, \
     p.approved_at, p.approved_why, p.ended_at, p.ended_why, p.ended_run";

/// How many columns a proposal has.
const PROPOSAL_COLUMNS: usize = 17;

fn proposal_of(cells: &Cells<'_>) -> Result<Proposal, StoreError> {
    Ok(Proposal {
        number: cells.big(0)?,
        case_number: cells.big(1)?,
        what: cells.word(2, What::parse)?,
        psp_reference: cells.maybe_text(3)?,
        undoes: cells.flag(4)?,
        why: cells.text(5)?,
        evidence_sha256: cells.maybe_text(6)?,
        four_eyes: cells.flag(7)?,
        proposed_by: cells.text(8)?,
        proposed_at: cells.at(9)?,
        state: cells.word(10, ProposalState::parse)?,
        approved_by: cells.maybe_text(11)?,
        approved_at: cells.maybe_at(12)?,
        approved_why: cells.maybe_text(13)?,
        ended_at: cells.maybe_at(14)?,
        ended_why: cells.maybe_text(15)?,
        ended_run: cells.maybe_text(16)?,
    })
}

async fn read(pool: &PgPool, sql: Sql) -> Result<Vec<PgRow>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    sql.fetch(&mut connection).await.map_err(failed(READING))
}

pub(super) async fn identity(pool: &PgPool) -> Result<String, StoreError> {
    let name = sqlx::query_scalar("select session_user::text").fetch_one(pool).await;
    name.map_err(failed("asking who the session's user is"))
}

/// How the server would list these cases, step by step.
pub(super) async fn plan(pool: &PgPool, filter: &CaseFilter) -> Result<Vec<String>, StoreError> {
    let rows = read(pool, case_listing(filter).explained()).await?;
    rows.iter().map(|row| Cells::new(row, READING).text(0)).collect()
}

pub(super) async fn sums(pool: &PgPool, filter: &CaseFilter) -> Result<Vec<CaseSum>, StoreError> {
    let mut sql = Sql::default();
    let wanted = case_conditions(&mut sql, filter);
    sql.push(&format!(
        "select currency, count(*), sum(amount_minor)::text from tieout_cases where {wanted} \
         group by currency order by currency collate \"C\""
    ));
    summed(pool, sql).await
}

/// The same of the first by number: as many are read as are counted.
pub(super) async fn sums_of_first(
    pool: &PgPool,
    filter: &CaseFilter,
    most: i64,
) -> Result<Vec<CaseSum>, StoreError> {
    let mut sql = Sql::default();
    let wanted = case_conditions(&mut sql, filter);
    let most = sql.bind(most);
    sql.push(&format!(
        "select currency, count(*), sum(amount_minor)::text from (select currency, amount_minor \
         from tieout_cases where {wanted} order by number limit {most}) f \
         group by currency order by currency collate \"C\""
    ));
    summed(pool, sql).await
}

/// The ages of the first open cases by number.
pub(super) async fn ages_of_first(
    pool: &PgPool,
    edges: &[Instant],
    most: i64,
) -> Result<Vec<(usize, i64)>, StoreError> {
    let mut sql = Sql::default();
    let mut counts = vec!["count(*)".to_owned()];
    for edge in edges {
        counts.push(format!("count(*) filter (where opened_at < {})", sql.bind(*edge)));
    }
    let (counts, most) = (counts.join(", "), sql.bind(most));
    sql.push(&format!(
        "select {counts} from (select opened_at from tieout_cases where state = 'open' \
         order by number limit {most}) f"
    ));
    let rows = read(pool, sql).await?;
    let Some(row) = rows.first() else { return Ok(Vec::new()) };
    let cells = Cells::new(row, READING);
    let older: Result<Vec<i64>, StoreError> =
        (0..=edges.len()).map(|column| cells.big(column)).collect();
    Ok(buckets_of(&older?))
}

async fn summed(pool: &PgPool, sql: Sql) -> Result<Vec<CaseSum>, StoreError> {
    let rows = read(pool, sql).await?;
    let sum_of = |row: &PgRow| {
        let cells = Cells::new(row, READING);
        Ok(CaseSum { currency: cells.text(0)?, cases: cells.big(1)?, amount_minor: cells.sum(2)? })
    };
    rows.iter().map(sum_of).collect()
}

pub(super) async fn notes(pool: &PgPool, case: i64) -> Result<Vec<CaseNote>, StoreError> {
    let mut sql = Sql::new(
        "select at, kind, by_whom, text, proposal, run_id from tieout_case_notes \
         where case_number = $1 order by id",
    );
    sql.bind(case);
    let rows = read(pool, sql).await?;
    let note_of = |row: &PgRow| {
        let cells = Cells::new(row, READING);
        Ok(CaseNote {
            at: cells.at(0)?,
            kind: cells.text(1)?,
            by: cells.text(2)?,
            text: cells.text(3)?,
            proposal: cells.maybe_big(4)?,
            run_id: cells.maybe_text(5)?,
        })
    };
    rows.iter().map(note_of).collect()
}

pub(super) async fn links(pool: &PgPool, case: i64) -> Result<CaseLinks, StoreError> {
    let mut sql = Sql::new(
        "select number, merged_into from tieout_cases where number = $1 or merged_into = $1 \
         order by number",
    );
    sql.bind(case);
    let mut links = CaseLinks::default();
    for row in &read(pool, sql).await? {
        let cells = Cells::new(row, READING);
        let (number, part_of) = (cells.big(0)?, cells.maybe_big(1)?);
        if number == case {
            links.part_of = part_of;
        } else {
            links.parts.push(number);
        }
    }
    Ok(links)
}

pub(super) async fn links_of(
    pool: &PgPool,
    cases: &[i64],
) -> Result<HashMap<i64, CaseLinks>, StoreError> {
    // Each half by an index of its own.
    let mut sql = Sql::new(
        "select number, merged_into from tieout_cases \
         where number = any($1) and merged_into is not null \
         union select number, merged_into from tieout_cases where merged_into = any($1) \
         order by number",
    );
    sql.bind(cases.to_vec());
    let pair_of = |row: &PgRow| {
        let cells = Cells::new(row, READING);
        Ok((cells.big(0)?, cells.big(1)?))
    };
    let rows = read(pool, sql).await?;
    let pairs: Result<Vec<(i64, i64)>, StoreError> = rows.iter().map(pair_of).collect();
    Ok(linked(cases, pairs?))
}

pub(super) async fn similar(
    pool: &PgPool,
    case: &CaseRow,
    limit: i64,
) -> Result<Vec<CaseRow>, StoreError> {
    let mut sql = Sql::new(CASE);
    let reason = sql.bind(case.reason.as_str().to_owned());
    let number = sql.bind(case.number);
    let account = sql.bind(case.account.clone());
    let limit = sql.bind(limit);
    sql.push(&format!(
        " where number <> {number} and number in \
         (select number from tieout_cases where state = 'closed' and reason = {reason} \
         order by number desc limit {SIMILAR_AMONG}) \
         order by account is distinct from {account}, number desc limit {limit}"
    ));
    read(pool, sql).await?.iter().map(case_row).collect()
}

pub(super) async fn proposals(pool: &PgPool, cases: &[i64]) -> Result<Vec<Proposal>, StoreError> {
    let mut sql = Sql::default();
    let cases = sql.bind(cases.to_vec());
    sql.push(&format!(
        "select {PROPOSAL} from tieout_proposals p where p.case_number = any({cases}) \
         order by p.number"
    ));
    let rows = read(pool, sql).await?;
    rows.iter().map(|row| proposal_of(&Cells::new(row, READING))).collect()
}

pub(super) async fn approved(
    pool: &PgPool,
    cases: Option<&[i64]>,
    after: i64,
    limit: i64,
) -> Result<Vec<Approved>, StoreError> {
    let mut sql = Sql::default();
    let after = sql.bind(after);
    let limit = sql.bind(limit);
    let only = match cases {
        Some(cases) => format!("and p.case_number = any({})", sql.bind(cases.to_vec())),
        None => String::new(),
    };
    sql.push(&format!(
        "select {PROPOSAL}, k.subject_kind, k.table_name, k.subject, k.state = 'open', \
         k.evidence_sha256, k.currency, k.amount_minor \
         from tieout_proposals p join tieout_cases k on k.number = p.case_number \
         where p.state = 'approved' and p.number > {after} {only} order by p.number limit {limit}"
    ));
    let rows = read(pool, sql).await?;
    let approved_of = |row: &PgRow| {
        let cells = Cells::new(row, READING);
        let at = |more: usize| PROPOSAL_COLUMNS.saturating_add(more);
        Ok(Approved {
            proposal: proposal_of(&cells)?,
            subject_kind: cells.text(at(0))?,
            table: cells.text(at(1))?,
            subject: cells.text(at(2))?,
            is_open: cells.flag(at(3))?,
            evidence_sha256: cells.maybe_text(at(4))?,
            currency: cells.text(at(5))?,
            amount_minor: cells.big(at(6))?,
        })
    };
    rows.iter().map(approved_of).collect()
}

/// The numbers that a statement returned, in order.
async fn numbers(connection: &mut PgConnection, sql: Sql) -> Result<Vec<i64>, StoreError> {
    let rows = sql.fetch(connection).await.map_err(failed(WRITING))?;
    let found: Result<Vec<i64>, StoreError> =
        rows.iter().map(|row| Cells::new(row, WRITING).big(0)).collect();
    let mut found = found?;
    found.sort_unstable();
    Ok(found)
}

/// Notes the same of several cases.
async fn note_cases(
    connection: &mut PgConnection,
    cases: &[i64],
    kind: &str,
    text: &str,
    now: Instant,
) -> Result<(), StoreError> {
    if cases.is_empty() {
        return Ok(());
    }
    let mut sql = Sql::new(
        "insert into tieout_case_notes (case_number, at, kind, by_whom, text) \
         select u.number, $2, $3, session_user, $4 from unnest($1::bigint[]) as u(number) \
         order by u.number",
    );
    sql.bind(cases.to_vec());
    sql.bind(now);
    sql.bind(kind.to_owned());
    sql.bind(text.to_owned());
    sql.run(connection).await.map_err(failed(WRITING)).map(|_| ())
}

/// Notes the same of several proposals, each in its case's history; a run's note names the run.
async fn note_proposals(
    connection: &mut PgConnection,
    proposals: &[i64],
    kind: &str,
    text: &str,
    run_id: Option<&str>,
    now: Instant,
) -> Result<(), StoreError> {
    if proposals.is_empty() {
        return Ok(());
    }
    // A person may not even name the column of the run.
    let (column, by, run) = match run_id {
        Some(_run) => (", run_id", format!("'{BY_RUN}'"), ", $5"),
        None => ("", "session_user".to_owned(), ""),
    };
    let mut sql = Sql::new(format!(
        "insert into tieout_case_notes (case_number, at, kind, by_whom, text, proposal{column}) \
         select p.case_number, $2, $3, {by}, $4, p.number{run} from tieout_proposals p \
         where p.number = any($1) order by p.number"
    ));
    sql.bind(proposals.to_vec());
    sql.bind(now);
    sql.bind(kind.to_owned());
    sql.bind(text.to_owned());
    if let Some(run_id) = run_id {
        sql.bind(run_id.to_owned());
    }
    sql.run(connection).await.map_err(failed(WRITING)).map(|_| ())
}

pub(super) async fn assign(
    pool: &PgPool,
    cases: &[i64],
    owner: Option<&str>,
    now: Instant,
) -> Result<u64, StoreError> {
    let mut tx = begin(pool).await.map_err(failed(WRITING))?;
    let mut sql = Sql::new(
        "update tieout_cases set owner = $2 where state = 'open' \
         and owner is distinct from $2 and number = any($1) returning number",
    );
    sql.bind(cases.to_vec());
    sql.bind(owner.map(str::to_owned));
    let changed = numbers(&mut tx, sql).await?;
    note_cases(&mut tx, &changed, "assigned", &assigned_text(owner), now).await?;
    tx.commit().await.map_err(failed(WRITING))?;
    Ok(u64::try_from(changed.len()).unwrap_or(u64::MAX))
}

pub(super) async fn comment(
    pool: &PgPool,
    cases: &[i64],
    text: &str,
    now: Instant,
) -> Result<u64, StoreError> {
    let mut tx = begin(pool).await.map_err(failed(WRITING))?;
    let mut sql = Sql::new("select number from tieout_cases where number = any($1)");
    sql.bind(cases.to_vec());
    let found = numbers(&mut tx, sql).await?;
    note_cases(&mut tx, &found, "comment", text, now).await?;
    tx.commit().await.map_err(failed(WRITING))?;
    Ok(u64::try_from(found.len()).unwrap_or(u64::MAX))
}

pub(super) async fn propose(
    pool: &PgPool,
    proposals: &[NewProposal],
    now: Instant,
) -> Result<Vec<i64>, StoreError> {
    let mut tx = begin(pool).await.map_err(failed(WRITING))?;
    let mut stand = Vec::new();
    for proposal in proposals {
        // Two people who propose at once: the index lets one through, and the other is left out.
        let mut sql = Sql::new(
            "insert into tieout_proposals (case_number, what, psp_reference, undoes, why, \
             evidence_sha256, four_eyes, proposed_by, proposed_at, state) \
             select k.number, $2, $3, $4, $5, $6, $7, session_user, $8, 'open' \
             from tieout_cases k where k.number = $1 and (k.state = 'open') <> $4 \
             and k.evidence_sha256 is not distinct from $6 \
             on conflict (case_number) where state in ('open', 'approved') do nothing \
             returning number",
        );
        sql.bind(proposal.case_number);
        sql.bind(proposal.what.as_str().to_owned());
        sql.bind(proposal.psp_reference.clone());
        sql.bind(proposal.undoes);
        sql.bind(proposal.why.clone());
        sql.bind(proposal.evidence_sha256.clone());
        sql.bind(proposal.four_eyes);
        sql.bind(now);
        let made = numbers(&mut tx, sql).await?;
        if !made.is_empty() {
            let text = proposed_text(proposal);
            note_proposals(&mut tx, &made, "proposed", &text, None, now).await?;
            stand.push(proposal.case_number);
        }
    }
    tx.commit().await.map_err(failed(WRITING))?;
    Ok(stand)
}

pub(super) async fn approve(
    pool: &PgPool,
    proposals: &[(i64, Option<String>)],
    why: &str,
    now: Instant,
) -> Result<Vec<i64>, StoreError> {
    let mut tx = begin(pool).await.map_err(failed(WRITING))?;
    let mut sql = Sql::default();
    let numbers_seen = sql.bind(proposals.iter().map(|seen| seen.0).collect::<Vec<i64>>());
    let evidence =
        sql.bind(proposals.iter().map(|seen| seen.1.clone()).collect::<Vec<Option<String>>>());
    let now_place = sql.bind(now);
    let why_place = sql.bind(why.to_owned());
    // Whoever comes second waits for the first, and then finds it approved.
    sql.push(&format!(
        "update tieout_proposals p set state = 'approved', approved_by = session_user, \
         approved_at = {now_place}, approved_why = {why_place}, approved_evidence = u.evidence \
         from unnest({numbers_seen}::bigint[], {evidence}::text[]) as u(number, evidence), \
         tieout_cases k where p.number = u.number and k.number = p.case_number \
         and p.state = 'open' and p.evidence_sha256 is not distinct from u.evidence \
         and k.evidence_sha256 is not distinct from p.evidence_sha256 \
         and (k.state = 'open') <> p.undoes \
         and not (p.four_eyes and p.proposed_by = session_user) returning p.number"
    ));
    let approved = numbers(&mut tx, sql).await?;
    note_proposals(&mut tx, &approved, "approved", why, None, now).await?;
    tx.commit().await.map_err(failed(WRITING))?;
    Ok(approved)
}

pub(super) async fn turn_down(
    pool: &PgPool,
    proposals: &[i64],
    why: &str,
    now: Instant,
) -> Result<Vec<i64>, StoreError> {
    let mut tx = begin(pool).await.map_err(failed(WRITING))?;
    let mut ended = Vec::new();
    for (state, whose) in
        [("withdrawn", "proposed_by = session_user"), ("rejected", "proposed_by <> session_user")]
    {
        let mut sql = Sql::new(format!(
            "update tieout_proposals set state = '{state}', ended_at = $2, ended_why = $3 \
             where state in ('open', 'approved') and {whose} and number = any($1) \
             returning number"
        ));
        sql.bind(proposals.to_vec());
        sql.bind(now);
        sql.bind(why.to_owned());
        // By whom it is, and the note of it, are the server's to write.
        ended.extend(numbers(&mut tx, sql).await?);
    }
    tx.commit().await.map_err(failed(WRITING))?;
    ended.sort_unstable();
    Ok(ended)
}

/// Ends approved proposals within a run's transaction; those that had not ended before come back.
pub(super) async fn end_approved(
    connection: &mut PgConnection,
    run_id: &str,
    proposals: &[i64],
    state: ProposalState,
    why: &str,
    now: Instant,
) -> Result<Vec<i64>, StoreError> {
    if proposals.is_empty() {
        return Ok(Vec::new());
    }
    let mut sql = Sql::new(
        "update tieout_proposals set state = $2, ended_at = $3, ended_why = $4, ended_run = $5 \
         where state = 'approved' and number = any($1) returning number",
    );
    sql.bind(proposals.to_vec());
    sql.bind(state.as_str().to_owned());
    sql.bind(now);
    sql.bind(why.to_owned());
    sql.bind(run_id.to_owned());
    let ended = numbers(&mut *connection, sql).await?;
    note_proposals(connection, &ended, state.as_str(), why, Some(run_id), now).await?;
    Ok(ended)
}

/// Ends, within the transaction of a run that closes these cases, what is proposed of them and was
/// approved by nobody. What is approved is refused as it would be carried out.
pub(super) async fn end_outrun(
    connection: &mut PgConnection,
    run_id: &str,
    cases: &[i64],
    now: Instant,
) -> sqlx::Result<()> {
    if cases.is_empty() {
        return Ok(());
    }
    // By whom it is, and the note of it, are the server's to write.
    let mut sql = Sql::new(
        "update tieout_proposals set state = 'rejected', ended_at = $2, ended_why = $3 \
         where state = 'open' and not undoes and case_number = any($1)",
    );
    sql.bind(cases.to_vec());
    sql.bind(now);
    sql.bind(outrun_text(run_id));
    sql.run(connection).await.map(|_| ())
}

/// Of these approved proposals those that may be carried out: they stand, and their cases show
/// what was approved. They are held so to the end of the transaction.
pub(super) async fn still_approved(
    connection: &mut PgConnection,
    proposals: &[i64],
) -> Result<Vec<i64>, StoreError> {
    if proposals.is_empty() {
        return Ok(Vec::new());
    }
    let mut sql = Sql::new(
        "select p.number from tieout_proposals p join tieout_cases k on k.number = p.case_number \
         where p.number = any($1) and p.state = 'approved' \
         and k.evidence_sha256 is not distinct from p.evidence_sha256 \
         and (k.state = 'open') <> p.undoes order by p.number for update of p",
    );
    sql.bind(proposals.to_vec());
    numbers(connection, sql).await
}

/// Those of these rows of a table of whose open case something is approved that may be carried out.
/// Nobody approves anything of them from here to the end of the transaction.
pub(super) async fn spoken_for(
    connection: &mut PgConnection,
    table: &str,
    keys: Vec<String>,
) -> Result<HashSet<String>, StoreError> {
    let mut sql = Sql::new(
        "select k.subject, p.state = 'approved' \
         and k.evidence_sha256 is not distinct from p.evidence_sha256 from tieout_cases k \
         join tieout_proposals p on p.case_number = k.number where k.subject_kind = 'row' \
         and k.table_name = $1 and k.subject = any($2) and k.state = 'open' \
         and p.state in ('open', 'approved') and not p.undoes order by p.number for update of p",
    );
    sql.bind(table.to_owned());
    sql.bind(keys);
    let mut found = HashSet::new();
    for row in &sql.fetch(connection).await.map_err(failed(WRITING))? {
        let cells = Cells::new(row, WRITING);
        if cells.flag(1)? {
            found.insert(cells.text(0)?);
        }
    }
    Ok(found)
}

pub(super) async fn refuse(
    pool: &PgPool,
    run_id: &str,
    proposal: i64,
    why: &str,
    now: Instant,
) -> Result<bool, StoreError> {
    let mut tx = begin(pool).await.map_err(failed(WRITING))?;
    let state = ProposalState::Refused;
    let ended = end_approved(&mut tx, run_id, &[proposal], state, why, now).await?;
    tx.commit().await.map_err(failed(WRITING))?;
    Ok(!ended.is_empty())
}

/// Holds the run's row, the proposal and the row's check, so that nobody decides the row meanwhile.
const HOLD_TO_LEAVE: &str = "\
select p.number from tieout_proposals p join tieout_cases k on k.number = p.case_number \
left join tieout_checks c on k.subject_kind = 'row' and c.table_name = k.table_name \
and c.key = k.subject where p.number = $1 and p.state = 'approved' and p.what = 'left' \
and k.state = 'open' and k.evidence_sha256 is not distinct from p.evidence_sha256 \
and (c.lease_until is null or c.lease_until <= $2) \
and exists (select from tieout_runs where id = $3 and state = 'running') for update of p, k";

pub(super) async fn leave(
    pool: &PgPool,
    run_id: &str,
    proposal: i64,
    now: Instant,
) -> Result<bool, StoreError> {
    let mut tx = begin(pool).await.map_err(failed(WRITING))?;
    let mut sql = Sql::new(HOLD_TO_LEAVE);
    sql.bind(proposal);
    sql.bind(now);
    sql.bind(run_id.to_owned());
    if numbers(&mut tx, sql).await?.is_empty() {
        return Ok(false);
    }
    // A run that leases the row just now has the check: then nothing moves, and it is tried again.
    let mut sql = Sql::new(
        "update tieout_checks c set state = 'parked', next_check_at = null \
         from tieout_proposals p, tieout_cases k where p.number = $1 \
         and k.number = p.case_number and k.subject_kind = 'row' \
         and c.table_name = k.table_name and c.key = k.subject and c.state in ('case', 'open') \
         and (c.lease_until is null or c.lease_until <= $2)",
    );
    sql.bind(proposal);
    sql.bind(now);
    sql.run(&mut tx).await.map_err(failed(WRITING))?;
    let mut sql = Sql::new(
        "select 1::bigint from tieout_proposals p join tieout_cases k on k.number = p.case_number \
         join tieout_checks c on k.subject_kind = 'row' and c.table_name = k.table_name \
         and c.key = k.subject where p.number = $1 and c.lease_until > $2",
    );
    sql.bind(proposal);
    sql.bind(now);
    if !numbers(&mut tx, sql).await?.is_empty() {
        tx.rollback().await.map_err(failed(WRITING))?;
        return Ok(false);
    }
    let mut sql = Sql::new(
        "update tieout_cases k set state = 'closed', closed_at = $2, closed_run = $3, \
         resolution = 'left as it is by ' || p.approved_by || ', proposed by ' \
         || p.proposed_by || ': ' || p.why \
         from tieout_proposals p where p.number = $1 and k.number = p.case_number",
    );
    sql.bind(proposal);
    sql.bind(now);
    sql.bind(run_id.to_owned());
    sql.run(&mut tx).await.map_err(failed(WRITING))?;
    line_cases::leaving(proposal).run(&mut tx).await.map_err(failed(WRITING))?;
    let (state, why) = (ProposalState::CarriedOut, "left as it is");
    end_approved(&mut tx, run_id, &[proposal], state, why, now).await?;
    tx.commit().await.map_err(failed(WRITING))?;
    Ok(true)
}

pub(super) async fn merge(
    pool: &PgPool,
    into: Option<i64>,
    cases: &[i64],
    why: &str,
    now: Instant,
) -> Result<u64, StoreError> {
    let mut tx = begin(pool).await.map_err(failed(WRITING))?;
    // What is a part has no parts of its own, so that a whole is one step deep.
    let mut sql = Sql::new(
        "update tieout_cases k set merged_into = $2 where k.state = 'open' \
         and k.merged_into is distinct from $2 and k.number is distinct from $2 \
         and k.number = any($1) and ($2::bigint is null or (exists (select from tieout_cases l \
         where l.number = $2 and l.state = 'open' and l.merged_into is null) \
         and not exists (select from tieout_cases m where m.merged_into = k.number))) \
         returning k.number",
    );
    sql.bind(cases.to_vec());
    sql.bind(into);
    let changed = numbers(&mut tx, sql).await?;
    let kind = if into.is_some() { "merged" } else { "parted" };
    let text = into.map_or_else(|| why.to_owned(), |into| format!("into C-{into}: {why}"));
    note_cases(&mut tx, &changed, kind, &text, now).await?;
    if let Some(into) = into.filter(|_| !changed.is_empty()) {
        let names: Vec<String> = changed.iter().map(|case| format!("C-{case}")).collect();
        let text = format!("with {}: {why}", names.join(", "));
        note_cases(&mut tx, &[into], "merged", &text, now).await?;
    }
    tx.commit().await.map_err(failed(WRITING))?;
    Ok(u64::try_from(changed.len()).unwrap_or(u64::MAX))
}

pub(super) async fn purgeable(
    pool: &PgPool,
    cases: &[i64],
    before: Instant,
) -> Result<Vec<i64>, StoreError> {
    let mut sql = Sql::new(concat!(
        "select k.number from tieout_cases k where k.number = any($1) and ",
        goes!(is_unnamed, "$2"),
        " order by k.number",
    ));
    sql.bind(cases.to_vec());
    sql.bind(before);
    let rows = read(pool, sql).await?;
    rows.iter().map(|row| Cells::new(row, READING).big(0)).collect()
}

pub(super) async fn purge(
    pool: &PgPool,
    cases: &[i64],
    before: Instant,
) -> Result<u64, StoreError> {
    let doing = "purging closed cases";
    let mut tx = begin(pool).await.map_err(failed(doing))?;
    // Who proposes something just now is waited for: the next statement sees the proposal.
    let mut sql = Sql::new(
        "select number from tieout_cases where number = any($1) order by number for update",
    );
    sql.bind(cases.to_vec());
    sql.run(&mut tx).await.map_err(failed(doing))?;
    let mut sql = Sql::new(concat!(
        "delete from tieout_cases k where k.number = any($1) and ",
        goes!(is_unnamed, "$2"),
    ));
    sql.bind(cases.to_vec());
    sql.bind(before);
    let gone = sql.run(&mut tx).await.map_err(failed(doing))?;
    tx.commit().await.map_err(failed(doing))?;
    Ok(gone)
}

pub(super) async fn rows_to_look_at(
    pool: &PgPool,
    table: &str,
    reasons: &[Reason],
    (before, limit): (Instant, i64),
    proposed: bool,
) -> Result<Vec<String>, StoreError> {
    let mut sql = Sql::default();
    let table = sql.bind(table.to_owned());
    let before = sql.bind(before);
    let limit = sql.bind(limit);
    let unproposed = if proposed { "" } else { UNPROPOSED };
    sql.push(&format!(
        "select k.subject from tieout_cases k join tieout_checks c \
         on c.table_name = k.table_name and c.key = k.subject and c.state = 'case' \
         where k.state = 'open' and k.subject_kind = 'row' and k.reason in ({}) \
         and k.table_name = {table} and coalesce(k.looked_at, k.last_seen_at) < {before} \
         {unproposed} order by coalesce(k.looked_at, k.last_seen_at), k.number limit {limit}",
        reasons_sql(reasons),
    ));
    let rows = read(pool, sql).await?;
    rows.iter().map(|row| Cells::new(row, READING).text(0)).collect()
}

pub(super) async fn note_looked_at(
    pool: &PgPool,
    table: &str,
    keys: &[String],
    now: Instant,
) -> Result<(), StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(WRITING))?;
    let mut sql = Sql::new(
        "update tieout_cases set looked_at = $3 where state = 'open' and subject_kind = 'row' \
         and table_name = $1 and subject = any($2)",
    );
    sql.bind(table.to_owned());
    sql.bind(keys.to_vec());
    sql.bind(now);
    sql.run(&mut connection).await.map_err(failed(WRITING)).map(|_| ())
}
