//! The journal and the evidence: written once, read back, verified.

use std::collections::HashMap;
use std::sync::Arc;

use sqlx::sqlite::{SqliteConnection, SqliteRow};

use crate::decide::decision::Asked;
use crate::model::reason::{Outcome, Reason};
use crate::model::time::{Instant, to_text};
use crate::store::chain::Verifier;
use crate::store::driver::{AuditFinding, Writer};
use crate::store::effects::asked_text;
use crate::store::error::StoreError;
use crate::store::records::{Applied, JournalRow};
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::prune;
use crate::store::sqlite::runs::{RUN_COLUMNS, run_of};
use crate::store::sqlite::sql::{
    SqliteQuery, Value, execute_rows, failed, fetch, fetch_each, rendered,
};

const READING: &str = "reading the journal";
const WRITING: &str = "writing the journal";
const VERIFYING: &str = "verifying the audit chain";

/// How many records are read at once while all are verified.
const PAGE: i64 = 5_000;

/// The columns of the journal, in the order of [`journal_of`] and [`fields`].
const COLUMNS: &str = "run_id, writer, seq, at, table_name, key, account, tag, kind, currency, \
     amount_minor, asked, outcome, reason, rule, text, applied, status_before, status_after, \
     psp_reference, psp_status, psp_currency, psp_amount_minor, fingerprint, evidence_sha256, \
     row_created_at, row_attempted_at, checks, next_check_at, handback_number, case_number, \
     policy_version, prev_hash, hash";

fn asked_of(text: &str) -> Option<Asked> {
    [Asked::Run, Asked::Kick, Asked::Watch].into_iter().find(|asked| asked_text(*asked) == text)
}

fn journal_of(cells: Cells<'_>) -> Result<JournalRow, StoreError> {
    Ok(JournalRow {
        run_id: cells.text(0)?,
        writer: cells.text(1)?,
        seq: cells.int(2)?,
        at: cells.at(3)?,
        table: cells.text(4)?,
        key: cells.text(5)?,
        account: cells.text(6)?,
        tag: cells.text(7)?,
        kind: cells.text(8)?,
        currency: cells.text(9)?,
        amount_minor: cells.int(10)?,
        asked: cells.word(11, asked_of)?,
        outcome: cells.word(12, Outcome::parse)?,
        reason: cells.word(13, Reason::parse)?,
        rule: cells.opt_text(14)?,
        text: cells.text(15)?,
        applied: cells.word(16, Applied::parse)?,
        status_before: cells.text(17)?,
        status_after: cells.text(18)?,
        psp_reference: cells.opt_text(19)?,
        psp_status: cells.opt_text(20)?,
        psp_currency: cells.opt_text(21)?,
        psp_amount_minor: cells.opt_int(22)?,
        fingerprint: cells.text(23)?,
        evidence_sha256: cells.text(24)?,
        row_created_at: cells.opt_at(25)?,
        row_attempted_at: cells.opt_at(26)?,
        checks: cells.count(27)?,
        next_check_at: cells.opt_at(28)?,
        handback_number: cells.opt_small(29)?,
        case_number: cells.opt_int(30)?,
        policy_version: cells.text(31)?,
        prev_hash: cells.text(32)?,
        hash: cells.text(33)?,
    })
}

/// A record's fields in the order of the columns.
fn fields(row: &JournalRow) -> Vec<Value> {
    vec![
        Value::from(&row.run_id),
        Value::from(&row.writer),
        Value::from(row.seq),
        Value::from(to_text(row.at)),
        Value::from(&row.table),
        Value::from(&row.key),
        Value::from(&row.account),
        Value::from(&row.tag),
        Value::from(&row.kind),
        Value::from(&row.currency),
        Value::from(row.amount_minor),
        Value::from(asked_text(row.asked)),
        Value::from(row.outcome.as_str()),
        Value::from(row.reason.as_str()),
        Value::from(&row.rule),
        Value::from(&row.text),
        Value::from(row.applied.as_str()),
        Value::from(&row.status_before),
        Value::from(&row.status_after),
        Value::from(&row.psp_reference),
        Value::from(&row.psp_status),
        Value::from(&row.psp_currency),
        Value::from(row.psp_amount_minor),
        Value::from(&row.fingerprint),
        Value::from(&row.evidence_sha256),
        Value::from(row.row_created_at.map(to_text)),
        Value::from(row.row_attempted_at.map(to_text)),
        Value::from(row.checks),
        Value::from(row.next_check_at.map(to_text)),
        Value::from(row.handback_number),
        Value::from(row.case_number),
        Value::from(&row.policy_version),
        Value::from(&row.prev_hash),
        Value::from(&row.hash),
    ]
}

/// Sets case numbers by the row's key, places each record in its writer's chain and appends it;
/// the writer moves on. A record is hashed while SQLite writes those before it.
pub(super) async fn append(
    connection: &mut SqliteConnection,
    records: &mut [JournalRow],
    cases: &HashMap<String, i64>,
    writer: &mut Writer,
) -> Result<(), StoreError> {
    let rows = records.iter_mut().map(|record| {
        if record.outcome == Outcome::Review && record.applied != Applied::Superseded {
            record.case_number = cases.get(&record.key).copied();
        }
        writer.seq = writer.seq.saturating_add(1);
        record.chain(&writer.name, writer.seq, &writer.head);
        writer.head.clone_from(&record.hash);
        fields(record)
    });
    let sql = |rows: &str| format!("insert into tieout_journal ({COLUMNS}) values {rows}");
    execute_rows(connection, WRITING, rows, sql).await
}

/// Evidence is stored once by its hash, whoever saw it.
pub(super) async fn insert_evidence(
    connection: &mut SqliteConnection,
    bodies: &[(&str, &str)],
    now: Instant,
) -> Result<(), StoreError> {
    let now = Arc::from(to_text(now));
    let row = |(sha256, body): &(&str, &str)| {
        vec![Value::from(*sha256), Value::from(*body), Value::from(&now)]
    };
    let sql = |rows: &str| {
        format!(
            "insert into tieout_evidence (sha256, body, created_at) values {rows} \
             on conflict (sha256) do nothing"
        )
    };
    execute_rows(connection, "storing evidence", bodies.iter().map(row), sql).await
}

pub(super) async fn of_run(
    connection: &mut SqliteConnection,
    run_id: &str,
    after: Option<&(String, i64)>,
    limit: i64,
) -> Result<Vec<JournalRow>, StoreError> {
    let (writer, seq) = after.cloned().unwrap_or_default();
    let sql = format!(
        "select {COLUMNS} from tieout_journal \
         where run_id = ?1 and (writer, seq) > (?2, ?3) order by writer, seq limit ?4"
    );
    let query = rendered(&sql).bind(run_id.to_owned()).bind(writer).bind(seq).bind(limit);
    records(connection, query).await
}

pub(super) async fn of_row(
    connection: &mut SqliteConnection,
    table: &str,
    key: &str,
) -> Result<Vec<JournalRow>, StoreError> {
    let sql = format!(
        "select {COLUMNS} from tieout_journal \
         where table_name = ?1 and key = ?2 order by at, run_id, writer, seq"
    );
    let query = rendered(&sql).bind(table.to_owned()).bind(key.to_owned());
    records(connection, query).await
}

async fn records(
    connection: &mut SqliteConnection,
    query: SqliteQuery,
) -> Result<Vec<JournalRow>, StoreError> {
    let record = |row: &SqliteRow| journal_of(Cells::new(row, READING));
    fetch_each(connection, READING, query, record).await
}

pub(super) async fn evidence(
    connection: &mut SqliteConnection,
    sha256: &str,
) -> Result<Option<String>, StoreError> {
    sqlx::query_scalar("select body from tieout_evidence where sha256 = ?1")
        .bind(sha256.to_owned())
        .fetch_optional(connection)
        .await
        .map_err(failed("reading evidence"))
}

/// Reads everything and recomputes every hash; the caller holds one snapshot.
pub(super) async fn verify(connection: &mut SqliteConnection) -> Result<AuditFinding, StoreError> {
    let mut verifier = Verifier::default();
    verify_evidence(connection, &mut verifier).await?;
    verify_records(connection, &mut verifier).await?;
    lost_evidence(connection, &mut verifier).await?;
    for (run_id, is_done, heads) in prune::all(connection).await? {
        verifier.pruned_run(&run_id, is_done, &heads);
    }
    let sql = format!(
        "select {RUN_COLUMNS} from tieout_runs order by close_number is null, close_number, id"
    );
    for row in fetch(connection, VERIFYING, rendered(&sql)).await? {
        let run = run_of(Cells::new(&row, VERIFYING))?;
        match run.close_number {
            Some(_) => verifier.closed_run(&run),
            None => verifier.running_run(&run),
        }
    }
    Ok(verifier.finish())
}

async fn verify_records(
    connection: &mut SqliteConnection,
    verifier: &mut Verifier,
) -> Result<(), StoreError> {
    let sql = format!(
        "select {COLUMNS} from tieout_journal where (run_id, writer, seq) > (?1, ?2, ?3) \
         order by run_id, writer, seq limit {PAGE}"
    );
    let mut after = (String::new(), String::new(), 0);
    loop {
        let (run_id, writer, seq) = after.clone();
        let query = rendered(&sql).bind(run_id).bind(writer).bind(seq);
        let rows = fetch(connection, VERIFYING, query).await?;
        if rows.is_empty() {
            return Ok(());
        }
        for row in &rows {
            let cells = Cells::new(row, VERIFYING);
            after = (cells.text(0)?, cells.text(1)?, cells.int(2)?);
            match journal_of(cells) {
                Ok(record) => verifier.record(&record),
                Err(error) => {
                    let (run_id, writer, seq) = &after;
                    verifier.unreadable(run_id, writer, *seq, cells.str(33)?, &error.to_string());
                }
            }
        }
    }
}

async fn lost_evidence(
    connection: &mut SqliteConnection,
    verifier: &mut Verifier,
) -> Result<(), StoreError> {
    let query = sqlx::query(
        "select run_id, writer, seq from tieout_journal j where not exists \
         (select 1 from tieout_evidence e where e.sha256 = j.evidence_sha256) order by 1, 2, 3",
    );
    for row in fetch(connection, VERIFYING, query).await? {
        let cells = Cells::new(&row, VERIFYING);
        verifier.evidence_missing(cells.str(0)?, cells.str(1)?, cells.int(2)?);
    }
    Ok(())
}

async fn verify_evidence(
    connection: &mut SqliteConnection,
    verifier: &mut Verifier,
) -> Result<(), StoreError> {
    let mut after = String::new();
    loop {
        let query = sqlx::query(
            "select sha256, body from tieout_evidence where sha256 > ?1 order by sha256 limit 500",
        )
        .bind(after.clone());
        let rows = fetch(connection, VERIFYING, query).await?;
        if rows.is_empty() {
            return Ok(());
        }
        for row in &rows {
            let cells = Cells::new(row, VERIFYING);
            after = cells.text(0)?;
            verifier.evidence(&after, cells.str(1)?);
        }
    }
}
