//! Taking old runs out of the journal, each whole and in a transaction of its own.
//!
//! The run's row stays as the chain's link, and its chains' heads stay beside it. The triggers of
//! the journal and the evidence let a deletion through only while the run's prune is open, which
//! it is inside this transaction alone.

use std::collections::HashSet;

use sqlx::sqlite::SqliteConnection;

use crate::model::time::{Instant, to_text};
use crate::store::error::StoreError;
use crate::store::prune::{
    OldCases, Prunable, Pruned, Pruning, apart, ended_none_watched, goes, heads_text, is_needed,
    is_old, needed_runs, run_goes, unproposed, watched_runs,
};
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::runs::heads;
use crate::store::sqlite::sql::{execute, fetch, json_set};

pub(super) const PRUNING: &str = "pruning the journal";

/// How many hashes one statement takes.
const CHUNK: usize = 5_000;

pub(super) async fn prunable(
    connection: &mut SqliteConnection,
    before: Instant,
    looked_at: Instant,
) -> Result<Prunable, StoreError> {
    let doing = "looking for runs to prune";
    let query = sqlx::query(concat!(
        "select r.id, r.journal_count, r.id in ",
        needed_runs!(),
        ", r.id in ",
        watched_runs!(),
        " from tieout_runs r where r.close_number is not null \
         and r.ended_at < ?1 and r.journal_count > 0 \
         and not exists (select 1 from tieout_prunes p where p.run_id = r.id) \
         order by r.close_number",
    ))
    .bind(to_text(before));
    let mut old = Vec::new();
    for row in fetch(connection, doing, query).await? {
        let cells = Cells::new(&row, doing);
        old.push((cells.text(0)?, cells.int(1)?, cells.int(2)? != 0, cells.int(3)? != 0));
    }
    let (runs, runs_kept) = apart(old);
    let query = sqlx::query(concat!(
        "select distinct j.evidence_sha256 from tieout_journal j \
         join tieout_evidence e on e.sha256 = j.evidence_sha256 and e.created_at < ?1 \
         where not exists (select 1 from tieout_runs r where r.id = j.run_id \
         and r.close_number is not null and r.ended_at < ?1) or ",
        is_needed!("j.run_id"),
    ))
    .bind(to_text(before));
    let kept = hashes(connection, doing, query).await?;
    let query = sqlx::query(concat!(
        "select count(*), count(*) filter (where ",
        goes!(run_goes, "?1"),
        "), count(*) filter (where not (",
        unproposed!("k"),
        ")), count(*) filter (where ",
        unproposed!("k"),
        " and ",
        is_needed!("k", ".opened_run"),
        ") from tieout_cases k where ",
        is_old!("k", "?1"),
    ))
    .bind(to_text(before));
    let mut cases = OldCases::default();
    for row in fetch(connection, doing, query).await? {
        let cells = Cells::new(&row, doing);
        cases = OldCases::of((cells.int(0)?, cells.int(1)?, cells.int(2)?, cells.int(3)?));
    }
    Ok(Prunable { before, looked_at, runs, runs_kept, cases, kept })
}

async fn hashes(
    connection: &mut SqliteConnection,
    doing: &'static str,
    query: crate::store::sqlite::sql::SqliteQuery,
) -> Result<HashSet<String>, StoreError> {
    let rows = fetch(connection, doing, query).await?;
    rows.iter().map(|row| Cells::new(row, doing).text(0)).collect()
}

pub(super) async fn prune(
    connection: &mut SqliteConnection,
    pruning: &Pruning<'_>,
    now: Instant,
) -> Result<Option<Pruned>, StoreError> {
    let run = pruning.run_id.to_owned();
    let before = to_text(pruning.before);
    let heads = heads_text(&heads(connection, pruning.run_id).await?);
    let open = sqlx::query(concat!(
        "insert into tieout_prunes (run_id, state, pruned_at, pruned_by, records, heads) \
         select id, 'open', ?3, ?4, journal_count, ?5 from tieout_runs \
         where id = ?1 and close_number is not null and ended_at < ?2 and id not in ",
        needed_runs!(),
        " and ",
        ended_none_watched!(),
        " on conflict (run_id) do nothing",
    ))
    .bind(run.clone())
    .bind(before.clone())
    .bind(to_text(now))
    .bind(pruning.by.to_owned())
    .bind(heads);
    if execute(connection, PRUNING, open).await? == 0 {
        return Ok(None);
    }
    let (cases, shown) = delete_cases(connection, &run, &before).await?;
    let query = sqlx::query("select evidence_sha256 from tieout_journal where run_id = ?1")
        .bind(run.clone());
    let mut candidates = hashes(connection, PRUNING, query).await?;
    candidates.extend(shown);
    let records = delete_records(connection, &run).await?;
    let candidates: Vec<String> =
        candidates.into_iter().filter(|hash| !pruning.kept.contains(hash)).collect();
    let evidence = delete_evidence(connection, pruning, &candidates).await?;
    let done =
        sqlx::query("update tieout_prunes set state = 'done' where run_id = ?1 and records = ?2")
            .bind(run.clone())
            .bind(i64::try_from(records).unwrap_or(i64::MAX));
    if execute(connection, PRUNING, done).await? == 0 {
        let problem = format!(
            "run {run}: {records} records are there, and it wrote another number: nothing of it \
             was pruned"
        );
        return Err(StoreError::Unexpected { doing: PRUNING, problem });
    }
    Ok(Some(Pruned { records, evidence, cases }))
}

/// Deletes the run's old cases but for those that somebody waits for or that have a part which
/// stays; returns how many, and what they showed. One that stays is left to `cases purge`.
async fn delete_cases(
    connection: &mut SqliteConnection,
    run: &str,
    before: &str,
) -> Result<(u64, Vec<String>), StoreError> {
    let query = sqlx::query(concat!(
        "delete from tieout_cases as k where k.opened_run = ?1 and ",
        goes!(is_old, run_goes, "?2"),
        " returning evidence_sha256",
    ))
    .bind(run.to_owned())
    .bind(before.to_owned());
    let gone = fetch(connection, PRUNING, query).await?;
    let shown = gone.iter().map(|row| Cells::new(row, PRUNING).opt_text(0));
    let shown: Vec<Option<String>> = shown.collect::<Result<_, _>>()?;
    let cases = u64::try_from(gone.len()).unwrap_or(u64::MAX);
    Ok((cases, shown.into_iter().flatten().collect()))
}

/// Everything of the run that nobody waits for; returns how many records.
async fn delete_records(connection: &mut SqliteConnection, run: &str) -> Result<u64, StoreError> {
    for sql in [
        "delete from tieout_outbox where run_id = ?1 \
         and (delivered_at is not null or suppressed_at is not null)",
        // A row's last hand-back is what its siblings are held against: it stays. So do those that
        // nobody took in time: without them they would count as attempts.
        "delete from tieout_handbacks where run_id = ?1 \
         and (ended_at is not null or taken_at is not null) \
         and ifnull(end_reason, '') not in ('lapsed', 'sibling_pending') \
         and exists (select 1 from tieout_handbacks n where n.table_name = \
         tieout_handbacks.table_name and n.key = tieout_handbacks.key \
         and n.number > tieout_handbacks.number)",
        "delete from tieout_run_totals where run_id = ?1",
        "delete from tieout_compared where run_id = ?1",
    ] {
        execute(connection, PRUNING, sqlx::query(sql).bind(run.to_owned())).await?;
    }
    let records = sqlx::query("delete from tieout_journal where run_id = ?1");
    execute(connection, PRUNING, records.bind(run.to_owned())).await
}

/// Records since the look are those of runs that ended after it, or go on.
async fn delete_evidence(
    connection: &mut SqliteConnection,
    pruning: &Pruning<'_>,
    candidates: &[String],
) -> Result<u64, StoreError> {
    let mut deleted = 0_u64;
    for chunk in candidates.chunks(CHUNK) {
        let query = sqlx::query(
            "with recent as materialized (select j.evidence_sha256 from tieout_runs r \
             cross join tieout_journal j on j.run_id = r.id \
             where r.ended_at is null or r.ended_at >= ?3) \
             delete from tieout_evidence where sha256 in (select j.value from json_each(?1) j) \
             and created_at < ?2 \
             and sha256 not in (select evidence_sha256 from recent) \
             and sha256 not in (select evidence_sha256 from tieout_cases \
             where evidence_sha256 is not null) \
             and sha256 not in (select evidence_sha256 from tieout_handbacks)",
        )
        .bind(json_set(chunk))
        .bind(to_text(pruning.before))
        .bind(to_text(pruning.looked_at));
        deleted = deleted.saturating_add(execute(connection, PRUNING, query).await?);
    }
    Ok(deleted)
}

/// Every prune, for verifying: run, whether it ended, and the heads.
pub(super) async fn all(
    connection: &mut SqliteConnection,
) -> Result<Vec<(String, bool, String)>, StoreError> {
    let doing = "reading the prunes";
    let query = sqlx::query("select run_id, state, heads from tieout_prunes order by run_id");
    let rows = fetch(connection, doing, query).await?;
    let prunes = rows.iter().map(|row| {
        let cells = Cells::new(row, doing);
        Ok((cells.text(0)?, cells.str(1)? == "done", cells.text(2)?))
    });
    prunes.collect()
}

pub(super) async fn pruned_at(
    connection: &mut SqliteConnection,
    run_id: &str,
) -> Result<Option<Instant>, StoreError> {
    let doing = "reading whether the run was pruned";
    let query = sqlx::query("select pruned_at from tieout_prunes where run_id = ?1")
        .bind(run_id.to_owned());
    let rows = fetch(connection, doing, query).await?;
    rows.first().map(|row| Cells::new(row, doing).at(0)).transpose()
}
