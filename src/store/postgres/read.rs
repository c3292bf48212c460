//! Reading tieout's own tables back: runs, records, cases, hand-backs, evidence, the whole chain.

use sqlx::postgres::{PgConnection, PgPool, PgRow};

use crate::decide::decision::Asked;
use crate::model::reason::{Outcome, Reason};
use crate::store::chain::Verifier;
use crate::store::driver::{AuditFinding, CaseCounts, CaseFilter, CheckRow};
use crate::store::effects::asked_text;
use crate::store::error::StoreError;
use crate::store::people::{CaseRuns, KICKS_READ};
use crate::store::postgres::checks::{self, Remembered, last_handbacks};
use crate::store::postgres::errors::failed;
use crate::store::postgres::prune;
use crate::store::postgres::sql::{Cells, Sql};
use crate::store::postgres::transactions::begin_with;
use crate::store::records::{Applied, CaseRow, HandbackRow, JournalRow, RunRow, RunState};

const RUN: &str = "\
select id, command, state, started_at, heartbeat_at, ended_at, host, pid, version, config_sha256, \
policy_version, scope, exit_code, exit_class, notes, journal_count, close_number, close_hash \
from tieout_runs";

const JOURNAL: &str = "\
select run_id, writer, seq, at, table_name, key, account, tag, kind, currency, amount_minor, \
asked, outcome, reason, rule, text, applied, status_before, status_after, psp_reference, \
psp_status, psp_currency, psp_amount_minor, fingerprint, evidence_sha256, row_created_at, \
row_attempted_at, checks, next_check_at, handback_number, case_number, policy_version, prev_hash, \
hash from tieout_journal";

pub(super) const CASE: &str = "\
select number, subject_kind, table_name, subject, reason, text, state = 'open', account, currency, \
amount_minor, rule, policy_version, evidence_sha256, opened_at, opened_run, last_seen_at, \
last_run, times_seen, owner, closed_at, resolution from tieout_cases";

const READING_JOURNAL: &str = "reading the journal";

/// Records of one page when the chain is read whole.
const PAGE: i64 = 5_000;

pub(super) async fn run(pool: &PgPool, run_id: &str) -> Result<Option<RunRow>, StoreError> {
    let mut sql = Sql::new(RUN);
    let id = sql.bind(run_id.to_owned());
    sql.push(&format!(" where id = {id}"));
    let rows = fetch(pool, sql, "reading the run").await?;
    rows.first().map(run_row).transpose()
}

pub(super) async fn runs(pool: &PgPool, limit: i64) -> Result<Vec<RunRow>, StoreError> {
    let mut sql = Sql::new(RUN);
    let limit = sql.bind(limit);
    sql.push(&format!(" order by started_at desc, id desc limit {limit}"));
    fetch(pool, sql, "reading the runs").await?.iter().map(run_row).collect()
}

/// The runs that a case's history names: kicks from its opening to its end, and what closed it.
pub(super) async fn case_runs(pool: &PgPool, case: &CaseRow) -> Result<CaseRuns, StoreError> {
    let doing = "reading the runs of a case";
    let mut sql = Sql::new(RUN);
    let from = sql.bind(case.opened_at);
    let named = sql.bind(format!("%\"C-{}\"%", case.number));
    let until = match case.closed_at {
        Some(at) => format!(" and started_at <= {}", sql.bind(at)),
        None => String::new(),
    };
    let limit = sql.bind(KICKS_READ);
    sql.push(&format!(
        " where command = 'kick' and started_at >= {from}{until} and scope like {named} \
         order by started_at desc, id desc limit {limit}"
    ));
    let rows = fetch(pool, sql, doing).await?;
    let kicks: Result<Vec<RunRow>, StoreError> = rows.iter().rev().map(run_row).collect();
    let mut sql = Sql::new(RUN);
    let number = sql.bind(case.number);
    sql.push(&format!(" where id = (select closed_run from tieout_cases where number = {number})"));
    let closed = fetch(pool, sql, doing).await?.first().map(run_row).transpose()?;
    Ok(CaseRuns { kicks: kicks?, closed })
}

fn run_row(row: &PgRow) -> Result<RunRow, StoreError> {
    let cells = Cells::new(row, "reading the run");
    Ok(RunRow {
        id: cells.text(0)?,
        command: cells.text(1)?,
        state: cells.word(2, RunState::parse)?,
        started_at: cells.at(3)?,
        heartbeat_at: cells.at(4)?,
        ended_at: cells.maybe_at(5)?,
        host: cells.text(6)?,
        pid: cells.big(7)?,
        version: cells.text(8)?,
        config_sha256: cells.text(9)?,
        policy_version: cells.text(10)?,
        scope: cells.text(11)?,
        exit_code: cells.maybe_int(12)?,
        exit_class: cells.maybe_text(13)?,
        notes: cells.text(14)?,
        journal_count: cells.big(15)?,
        close_number: cells.maybe_big(16)?,
        close_hash: cells.maybe_text(17)?,
    })
}

pub(super) async fn journal_of_run(
    pool: &PgPool,
    run_id: &str,
    after: Option<(String, i64)>,
    limit: i64,
) -> Result<Vec<JournalRow>, StoreError> {
    let mut sql = Sql::new(JOURNAL);
    let run = sql.bind(run_id.to_owned());
    sql.push(&format!(" where run_id = {run}"));
    if let Some((writer, seq)) = after {
        let (writer, seq) = (sql.bind(writer), sql.bind(seq));
        sql.push(&format!(" and (writer, seq) > ({writer}, {seq})"));
    }
    let limit = sql.bind(limit);
    sql.push(&format!(" order by writer, seq limit {limit}"));
    sql.fetch_page(pool, READING_JOURNAL, journal_row).await
}

pub(super) async fn journal_of_row(
    pool: &PgPool,
    table: &str,
    key: &str,
) -> Result<Vec<JournalRow>, StoreError> {
    let mut sql = Sql::new(JOURNAL);
    let (table, key) = (sql.bind(table.to_owned()), sql.bind(key.to_owned()));
    sql.push(&format!(" where table_name = {table} and key = {key} order by at, run_id, seq"));
    journal(pool, sql).await
}

async fn journal(pool: &PgPool, sql: Sql) -> Result<Vec<JournalRow>, StoreError> {
    fetch(pool, sql, READING_JOURNAL).await?.iter().map(journal_row).collect()
}

fn journal_row(row: &PgRow) -> Result<JournalRow, StoreError> {
    let cells = Cells::new(row, READING_JOURNAL);
    Ok(JournalRow {
        run_id: cells.text(0)?,
        writer: cells.text(1)?,
        seq: cells.big(2)?,
        at: cells.at(3)?,
        table: cells.text(4)?,
        key: cells.text(5)?,
        account: cells.text(6)?,
        tag: cells.text(7)?,
        kind: cells.text(8)?,
        currency: cells.text(9)?,
        amount_minor: cells.big(10)?,
        asked: cells.word(11, asked)?,
        outcome: cells.word(12, Outcome::parse)?,
        reason: cells.word(13, Reason::parse)?,
        rule: cells.maybe_text(14)?,
        text: cells.text(15)?,
        applied: cells.word(16, Applied::parse)?,
        status_before: cells.text(17)?,
        status_after: cells.text(18)?,
        psp_reference: cells.maybe_text(19)?,
        psp_status: cells.maybe_text(20)?,
        psp_currency: cells.maybe_text(21)?,
        psp_amount_minor: cells.maybe_big(22)?,
        fingerprint: cells.text(23)?,
        evidence_sha256: cells.text(24)?,
        row_created_at: cells.maybe_at(25)?,
        row_attempted_at: cells.maybe_at(26)?,
        checks: cells.count(27)?,
        next_check_at: cells.maybe_at(28)?,
        handback_number: cells.maybe_int(29)?.and_then(|number| u32::try_from(number).ok()),
        case_number: cells.maybe_big(30)?,
        policy_version: cells.text(31)?,
        prev_hash: cells.text(32)?,
        hash: cells.text(33)?,
    })
}

fn asked(word: &str) -> Option<Asked> {
    [Asked::Run, Asked::Kick, Asked::Watch].into_iter().find(|asked| asked_text(*asked) == word)
}

pub(super) async fn check(
    pool: &PgPool,
    table: &str,
    key: &str,
) -> Result<Option<CheckRow>, StoreError> {
    let doing = "reading what is remembered of the row";
    let mut sql = Sql::default();
    let (table_place, key_place) = (sql.bind(table.to_owned()), sql.bind(key.to_owned()));
    sql.push(&format!(
        "select {} from tieout_checks c \
         where c.table_name = {table_place} and c.key = {key_place}",
        checks::COLUMNS,
    ));
    let rows = fetch(pool, sql, doing).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let known = Remembered::read(&Cells::new(row, doing), doing)?;
    let mut connection = pool.acquire().await.map_err(failed(doing))?;
    let mut past = last_handbacks(&mut connection, table, &[key.to_owned()]).await?;
    let mut history = known.history;
    history.last_handback = past.remove(key).map(|(handback, _)| handback);
    Ok(Some(CheckRow {
        state: known.state,
        history,
        next_check_at: known.next_check_at,
        lease: known.lease_run.zip(known.lease_until),
        image: known.image,
        open_case: known.open_case,
    }))
}

pub(super) async fn handbacks(
    pool: &PgPool,
    table: &str,
    key: &str,
) -> Result<Vec<HandbackRow>, StoreError> {
    let doing = "reading the hand-backs";
    let mut sql = Sql::new(
        "select table_name, key, number, run_id, at, account, fingerprint, permit, retry, \
         psp_reference, same_key_until, not_before, charge_before, evidence_sha256, taken_at, \
         ended_at, end_reason from tieout_handbacks where table_name = $1 and key = $2 \
         order by number",
    );
    sql.bind(table.to_owned());
    sql.bind(key.to_owned());
    let rows = fetch(pool, sql, doing).await?;
    rows.iter()
        .map(|row| {
            let cells = Cells::new(row, doing);
            Ok(HandbackRow {
                table: cells.text(0)?,
                key: cells.text(1)?,
                number: cells.count(2)?,
                run_id: cells.text(3)?,
                at: cells.at(4)?,
                account: cells.text(5)?,
                fingerprint: cells.text(6)?,
                permit: cells.text(7)?,
                retry: cells.text(8)?,
                psp_reference: cells.maybe_text(9)?,
                same_key_until: cells.maybe_at(10)?,
                not_before: cells.maybe_at(11)?,
                charge_before: cells.at(12)?,
                evidence_sha256: cells.text(13)?,
                taken_at: cells.maybe_at(14)?,
                ended_at: cells.maybe_at(15)?,
                end_reason: cells.maybe_text(16)?,
            })
        })
        .collect()
}

pub(super) async fn evidence(pool: &PgPool, sha256: &str) -> Result<Option<String>, StoreError> {
    sqlx::query_scalar("select body from tieout_evidence where sha256 = $1")
        .bind(sha256)
        .fetch_optional(pool)
        .await
        .map_err(failed("reading the evidence"))
}

/// What a case must fulfil; pages are left aside.
pub(super) fn case_conditions(sql: &mut Sql, filter: &CaseFilter) -> String {
    let mut all = vec!["true".to_owned()];
    if filter.open_only {
        all.push("state = 'open'".to_owned());
    }
    let texts = [
        ("reason =", &filter.reason),
        ("opened_run =", &filter.opened_run),
        ("account =", &filter.account),
        ("table_name =", &filter.table),
        ("coalesce(owner, '') =", &filter.owner),
        ("currency =", &filter.currency),
        ("rule =", &filter.rule),
        ("policy_version =", &filter.policy_version),
    ];
    for (column, value) in texts {
        all.extend(value.clone().map(|text| format!("{column} {}", sql.bind(text))));
    }
    let times = [("opened_at >=", filter.opened_from), ("opened_at <", filter.opened_to)];
    for (column, at) in times {
        all.extend(at.map(|at| format!("{column} {}", sql.bind(at))));
    }
    for (column, amount) in
        [("abs(amount_minor) >=", filter.amount_from), ("abs(amount_minor) <=", filter.amount_to)]
    {
        all.extend(amount.map(|amount| format!("{column} {}", sql.bind(amount))));
    }
    if let Some(since) = filter.closed_since {
        let since = sql.bind(since);
        all.push(format!("(closed_at is null or closed_at >= {since})"));
    }
    if let Some(numbers) = &filter.numbers {
        all.push(format!("number = any({})", sql.bind(numbers.clone())));
    }
    if let Some(whole) = filter.whole {
        let whole = sql.bind(whole);
        all.push(format!("(number = {whole} or merged_into = {whole})"));
    }
    if let Some(state) = filter.proposed {
        let state = sql.bind(state.as_str().to_owned());
        all.push(format!(
            "number in (select case_number from tieout_proposals where state = {state})"
        ));
    }
    all.join(" and ")
}

pub(super) fn case_listing(filter: &CaseFilter) -> Sql {
    let mut sql = Sql::new(CASE);
    let wanted = case_conditions(&mut sql, filter);
    let after = sql.bind(filter.after.unwrap_or(0));
    let limit = sql.bind(filter.limit);
    let by = if filter.longest_unseen { "greatest(looked_at, last_seen_at), " } else { "" };
    sql.push(&format!(" where {wanted} and number > {after} order by {by}number limit {limit}"));
    sql
}

pub(super) async fn cases(pool: &PgPool, filter: &CaseFilter) -> Result<Vec<CaseRow>, StoreError> {
    let rows = fetch(pool, case_listing(filter), "reading the cases").await?;
    rows.iter().map(case_row).collect()
}

pub(super) async fn case_counts(pool: &PgPool, run_id: &str) -> Result<CaseCounts, StoreError> {
    let doing = "counting the cases";
    let (opened, closed, open): (i64, i64, i64) = sqlx::query_as(
        "select (select count(*) from tieout_cases where opened_run = $1), \
         (select count(*) from tieout_cases where state = 'closed' and closed_run = $1), \
         (select count(*) from tieout_cases where state = 'open')",
    )
    .bind(run_id)
    .fetch_one(pool)
    .await
    .map_err(failed(doing))?;
    let count = |number: i64| u64::try_from(number).unwrap_or_default();
    Ok(CaseCounts { opened: count(opened), closed: count(closed), open: count(open) })
}

pub(super) async fn case(pool: &PgPool, number: i64) -> Result<Option<CaseRow>, StoreError> {
    let mut sql = Sql::new(CASE);
    let number = sql.bind(number);
    sql.push(&format!(" where number = {number}"));
    fetch(pool, sql, "reading the case").await?.first().map(case_row).transpose()
}

pub(super) fn case_row(row: &PgRow) -> Result<CaseRow, StoreError> {
    let cells = Cells::new(row, "reading the cases");
    Ok(CaseRow {
        number: cells.big(0)?,
        subject_kind: cells.text(1)?,
        table: cells.text(2)?,
        subject: cells.text(3)?,
        reason: cells.word(4, Reason::parse)?,
        text: cells.text(5)?,
        open: cells.flag(6)?,
        account: cells.maybe_text(7)?,
        currency: cells.text(8)?,
        amount_minor: cells.big(9)?,
        rule: cells.maybe_text(10)?,
        policy_version: cells.text(11)?,
        evidence_sha256: cells.maybe_text(12)?,
        opened_at: cells.at(13)?,
        opened_run: cells.text(14)?,
        last_seen_at: cells.at(15)?,
        last_run: cells.text(16)?,
        times_seen: i64::from(cells.int(17)?),
        owner: cells.maybe_text(18)?,
        closed_at: cells.maybe_at(19)?,
        resolution: cells.maybe_text(20)?,
    })
}

/// Reads everything once, in one snapshot, page by page.
pub(super) async fn verify_audit(pool: &PgPool) -> Result<AuditFinding, StoreError> {
    let doing = "verifying the chain";
    let mut tx = begin_with(pool, "begin isolation level repeatable read, read only")
        .await
        .map_err(failed(doing))?;
    let mut verifier = Verifier::default();
    verify_evidence(&mut tx, &mut verifier, doing).await?;
    let mut after = (String::new(), String::new(), 0);
    loop {
        let mut sql = Sql::new(JOURNAL);
        let (run, writer, seq) = (sql.bind(after.0), sql.bind(after.1), sql.bind(after.2));
        let limit = sql.bind(PAGE);
        sql.push(&format!(
            " where (run_id, writer, seq) > ({run}, {writer}, {seq}) \
             order by run_id, writer, seq limit {limit}"
        ));
        let page = sql.fetch(&mut tx).await.map_err(failed(doing))?;
        let Some(last) = page.last().map(|row| Cells::new(row, doing)) else { break };
        after = (last.text(0)?, last.text(1)?, last.big(2)?);
        for row in &page {
            match journal_row(row) {
                Ok(record) => verifier.record(&record),
                Err(error) => {
                    let cells = Cells::new(row, doing);
                    let (run_id, writer) = (cells.text(0)?, cells.text(1)?);
                    let (seq, hash) = (cells.big(2)?, cells.text(33)?);
                    verifier.unreadable(&run_id, &writer, seq, &hash, &error.to_string());
                }
            }
        }
    }
    for (run_id, is_done, heads) in prune::all(&mut tx).await.map_err(failed(doing))? {
        verifier.pruned_run(&run_id, is_done, &heads);
    }
    let mut sql = Sql::new(RUN);
    sql.push(" order by close_number nulls last, id");
    let runs = sql.fetch(&mut tx).await.map_err(failed(doing))?;
    for row in &runs {
        let run = run_row(row)?;
        match run.close_number {
            Some(_) => verifier.closed_run(&run),
            None => verifier.running_run(&run),
        }
    }
    tx.rollback().await.map_err(failed(doing))?;
    Ok(verifier.finish())
}

/// What the evidence is, by its hash, and which records lost theirs.
async fn verify_evidence(
    tx: &mut PgConnection,
    verifier: &mut Verifier,
    doing: &'static str,
) -> Result<(), StoreError> {
    let mut after = String::new();
    loop {
        let page: Vec<(String, String)> = sqlx::query_as(
            "select sha256, body from tieout_evidence where sha256 > $1 order by sha256 limit $2",
        )
        .bind(&after)
        .bind(PAGE)
        .fetch_all(&mut *tx)
        .await
        .map_err(failed(doing))?;
        let Some((last, _)) = page.last() else { break };
        after.clone_from(last);
        for (sha256, body) in &page {
            verifier.evidence(sha256, body);
        }
    }
    let missing: Vec<(String, String, i64)> = sqlx::query_as(
        "select j.run_id, j.writer, j.seq from tieout_journal j where not exists \
         (select from tieout_evidence e where e.sha256 = j.evidence_sha256) limit $1",
    )
    .bind(PAGE)
    .fetch_all(&mut *tx)
    .await
    .map_err(failed(doing))?;
    for (run_id, writer, seq) in &missing {
        verifier.evidence_missing(run_id, writer, *seq);
    }
    Ok(())
}

async fn fetch(pool: &PgPool, sql: Sql, doing: &'static str) -> Result<Vec<PgRow>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(doing))?;
    sql.fetch(&mut connection).await.map_err(failed(doing))
}
