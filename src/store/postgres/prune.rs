//! Taking old runs out of the journal, each whole and in a transaction of its own.
//!
//! The run's row stays as the chain's link, and its chains' heads stay beside it. The triggers of
//! the journal and the evidence let a deletion through only while the run's prune is open, which
//! it is inside this transaction alone.

use std::collections::HashSet;

use sqlx::postgres::{PgConnection, PgPool};

use crate::model::time::Instant;
use crate::store::error::StoreError;
use crate::store::postgres::errors::{failed, unexpected};
use crate::store::postgres::runs::heads;
use crate::store::postgres::transactions::begin;
use crate::store::prune::{
    OldCases, OldRun, Prunable, Pruned, Pruning, apart, ended_none_watched, goes, heads_text,
    is_needed, is_old, needed_runs, run_goes, unproposed, watched_runs,
};

const PRUNING: &str = "pruning the journal";

pub(super) async fn prunable(pool: &PgPool, before: Instant) -> Result<Prunable, StoreError> {
    let doing = "looking for runs to prune";
    let old: Vec<OldRun> = sqlx::query_as(concat!(
        "select r.id, r.journal_count, r.id in ",
        needed_runs!(),
        ", r.id in ",
        watched_runs!(),
        " from tieout_runs r where r.close_number is not null \
         and r.ended_at < $1 and r.journal_count > 0 \
         and not exists (select from tieout_prunes p where p.run_id = r.id) \
         order by r.close_number",
    ))
    .bind(before)
    .fetch_all(pool)
    .await
    .map_err(failed(doing))?;
    let (runs, runs_kept) = apart(old);
    // Only now: what a run that goes on writes from here is looked at again for each run.
    let looked_at = sqlx::query_scalar("select clock_timestamp()")
        .fetch_one(pool)
        .await
        .map_err(failed(doing))?;
    let kept: Vec<String> = sqlx::query_scalar(concat!(
        "select distinct j.evidence_sha256 from tieout_journal j \
         join tieout_evidence e on e.sha256 = j.evidence_sha256 and e.created_at < $1 \
         where not exists (select from tieout_runs r where r.id = j.run_id \
         and r.close_number is not null and r.ended_at < $1) or ",
        is_needed!("j.run_id"),
    ))
    .bind(before)
    .fetch_all(pool)
    .await
    .map_err(failed(doing))?;
    let cases: (i64, i64, i64, i64) = sqlx::query_as(concat!(
        "select count(*), count(*) filter (where ",
        goes!(run_goes, "$1"),
        "), count(*) filter (where not (",
        unproposed!("k"),
        ")), count(*) filter (where ",
        unproposed!("k"),
        " and ",
        is_needed!("k", ".opened_run"),
        ") from tieout_cases k where ",
        is_old!("k", "$1"),
    ))
    .bind(before)
    .fetch_one(pool)
    .await
    .map_err(failed(doing))?;
    let cases = OldCases::of(cases);
    Ok(Prunable { before, looked_at, runs, runs_kept, cases, kept: kept.into_iter().collect() })
}

pub(super) async fn prune(
    pool: &PgPool,
    pruning: &Pruning<'_>,
    now: Instant,
) -> Result<Option<Pruned>, StoreError> {
    let mut tx = begin(pool).await.map_err(failed(PRUNING))?;
    if !open(&mut tx, pruning, now).await.map_err(failed(PRUNING))? {
        return Ok(None);
    }
    let (cases, shown) = delete_cases(&mut tx, pruning).await.map_err(failed(PRUNING))?;
    let evidence = candidates(&mut tx, pruning, shown).await.map_err(failed(PRUNING))?;
    let records = delete_records(&mut tx, pruning).await.map_err(failed(PRUNING))?;
    let evidence = evidence.into_iter().filter(|hash| !pruning.kept.contains(hash)).collect();
    let evidence = delete_evidence(&mut tx, pruning, evidence).await.map_err(failed(PRUNING))?;
    let expected: i64 = sqlx::query_scalar(
        "update tieout_prunes set state = 'done' where run_id = $1 returning records",
    )
    .bind(pruning.run_id)
    .fetch_one(&mut *tx)
    .await
    .map_err(failed(PRUNING))?;
    if i64::try_from(records).ok() != Some(expected) {
        let problem = format!(
            "run {} wrote {expected} records, and {records} are there: nothing of it was pruned",
            pruning.run_id
        );
        return Err(unexpected(PRUNING, problem));
    }
    tx.commit().await.map_err(failed(PRUNING))?;
    Ok(Some(Pruned { records, evidence, cases }))
}

/// Opens the run's prune; false where another was quicker, or somebody needs it by now.
async fn open(
    connection: &mut PgConnection,
    pruning: &Pruning<'_>,
    now: Instant,
) -> sqlx::Result<bool> {
    let heads = heads(connection, pruning.run_id).await?;
    let opened = sqlx::query(concat!(
        "insert into tieout_prunes (run_id, state, pruned_at, pruned_by, records, heads) \
         select id, 'open', $3, $4 || ' (database user ' || session_user || ')', \
         journal_count, $5 from tieout_runs \
         where id = $1 and close_number is not null and ended_at < $2 and id not in ",
        needed_runs!(),
        " and ",
        ended_none_watched!(),
        " on conflict (run_id) do nothing",
    ))
    .bind(pruning.run_id)
    .bind(pruning.before)
    .bind(now)
    .bind(pruning.by)
    .bind(heads_text(&heads))
    .execute(connection)
    .await?;
    Ok(opened.rows_affected() > 0)
}

/// Deletes the run's old cases but for those that somebody waits for or that have a part which
/// stays; returns how many, and what they showed. One that stays is left to `cases purge`.
async fn delete_cases(
    connection: &mut PgConnection,
    pruning: &Pruning<'_>,
) -> sqlx::Result<(u64, Vec<String>)> {
    // Who proposes something just now is waited for: the next statement sees the proposal.
    let old: Vec<i64> = sqlx::query_scalar(
        "select number from tieout_cases where opened_run = $1 and state = 'closed' \
         and closed_at < $2 order by number for update",
    )
    .bind(pruning.run_id)
    .bind(pruning.before)
    .fetch_all(&mut *connection)
    .await?;
    let gone: Vec<Option<String>> = sqlx::query_scalar(concat!(
        "delete from tieout_cases k where k.number = any($1) and ",
        goes!(is_old, run_goes, "$2"),
        " returning k.evidence_sha256",
    ))
    .bind(&old)
    .bind(pruning.before)
    .fetch_all(connection)
    .await?;
    let cases = u64::try_from(gone.len()).unwrap_or(u64::MAX);
    Ok((cases, gone.into_iter().flatten().collect()))
}

/// The evidence of the run's records, beside that of the cases that went with it.
async fn candidates(
    connection: &mut PgConnection,
    pruning: &Pruning<'_>,
    shown: Vec<String>,
) -> sqlx::Result<HashSet<String>> {
    let hashes: Vec<String> =
        sqlx::query_scalar("select evidence_sha256 from tieout_journal where run_id = $1")
            .bind(pruning.run_id)
            .fetch_all(connection)
            .await?;
    Ok(hashes.into_iter().chain(shown).collect())
}

/// Everything of the run that nobody waits for; returns how many records.
async fn delete_records(connection: &mut PgConnection, pruning: &Pruning<'_>) -> sqlx::Result<u64> {
    for sql in [
        "delete from tieout_outbox where run_id = $1 \
         and (delivered_at is not null or suppressed_at is not null)",
        // A row's last hand-back is what its siblings are held against: it stays. So do those that
        // nobody took in time: without them they would count as attempts.
        "delete from tieout_handbacks h where h.run_id = $1 \
         and (h.ended_at is not null or h.taken_at is not null) \
         and coalesce(h.end_reason, '') not in ('lapsed', 'sibling_pending') \
         and exists (select from tieout_handbacks n where n.table_name = h.table_name \
         and n.key = h.key and n.number > h.number)",
        "delete from tieout_run_totals where run_id = $1",
        "delete from tieout_compared where run_id = $1",
    ] {
        sqlx::query(sql).bind(pruning.run_id).execute(&mut *connection).await?;
    }
    let deleted = sqlx::query("delete from tieout_journal where run_id = $1")
        .bind(pruning.run_id)
        .execute(connection)
        .await?;
    Ok(deleted.rows_affected())
}

/// The lock keeps new records from leaning on what is deleted: who stores evidence waits, and
/// finds it gone. Records since the look are those of runs that ended after it, or go on.
async fn delete_evidence(
    connection: &mut PgConnection,
    pruning: &Pruning<'_>,
    hashes: Vec<String>,
) -> sqlx::Result<u64> {
    if hashes.is_empty() {
        return Ok(0);
    }
    sqlx::query("lock table tieout_evidence in share row exclusive mode")
        .execute(&mut *connection)
        .await?;
    let deleted = sqlx::query(
        "with recent as materialized (select j.evidence_sha256 from tieout_runs r \
         join tieout_journal j on j.run_id = r.id where r.ended_at is null or r.ended_at >= $3) \
         delete from tieout_evidence e using unnest($1::text[]) as u(sha256) \
         where e.sha256 = u.sha256 and e.created_at < $2 \
         and not exists (select from recent where recent.evidence_sha256 = e.sha256) \
         and not exists (select from tieout_cases c where c.evidence_sha256 = e.sha256) \
         and not exists (select from tieout_handbacks h where h.evidence_sha256 = e.sha256)",
    )
    .bind(hashes)
    .bind(pruning.before)
    .bind(pruning.looked_at)
    .execute(connection)
    .await?;
    Ok(deleted.rows_affected())
}

/// Every prune, for verifying: run, whether it ended, when, and the heads.
pub(super) async fn all(
    connection: &mut PgConnection,
) -> sqlx::Result<Vec<(String, bool, String)>> {
    sqlx::query_as("select run_id, state = 'done', heads from tieout_prunes order by run_id")
        .fetch_all(connection)
        .await
}

pub(super) async fn pruned_at(pool: &PgPool, run_id: &str) -> Result<Option<Instant>, StoreError> {
    sqlx::query_scalar("select pruned_at from tieout_prunes where run_id = $1")
        .bind(run_id)
        .fetch_optional(pool)
        .await
        .map_err(failed("reading whether the run was pruned"))
}
