//! Decisions read back with what they were made from.

use std::collections::HashMap;

use sqlx::postgres::{PgConnection, PgPool, PgRow};

use crate::model::reason::{Outcome, Reason};
use crate::model::time::Instant;
use crate::store::error::StoreError;
use crate::store::postgres::errors::failed;
use crate::store::postgres::sql::{Cells, Sql};
use crate::store::replay::{Decided, RecordPlace, RuleCount, UnseenPlace, Written};

const READING: &str = "reading what was decided";

/// Run by run: only those that may have decided since then are looked into, each by its own part
/// of the journal's key.
pub(super) async fn decided(
    pool: &PgPool,
    since: Instant,
    after: Option<RecordPlace>,
    limit: i64,
) -> Result<Vec<(RecordPlace, Decided)>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut found = Vec::new();
    let mut place = after;
    loop {
        if let Some(from) = &place {
            let taken = i64::try_from(found.len()).unwrap_or(i64::MAX);
            let room = limit.saturating_sub(taken);
            found.extend(decided_by(&mut connection, since, from, room).await?);
        }
        if i64::try_from(found.len()).unwrap_or(i64::MAX) >= limit {
            return Ok(found);
        }
        let last = place.map(|place| place.run_id).unwrap_or_default();
        let Some(run_id) = next_run(&mut connection, since, last).await? else { return Ok(found) };
        place = Some(RecordPlace { run_id, writer: String::new(), seq: 0 });
    }
}

/// The next run that may have decided since then: no record is later than its run's end.
async fn next_run(
    connection: &mut PgConnection,
    since: Instant,
    after: String,
) -> Result<Option<String>, StoreError> {
    let mut sql = Sql::default();
    let (after, since) = (sql.bind(after), sql.bind(since));
    sql.push(&format!(
        "select id from tieout_runs where id > {after} and journal_count > 0 \
         and (ended_at is null or ended_at >= {since}) order by id limit 1"
    ));
    let rows = sql.fetch(connection).await.map_err(failed(READING))?;
    rows.first().map(|row| Cells::new(row, READING).text(0)).transpose()
}

async fn decided_by(
    connection: &mut PgConnection,
    since: Instant,
    after: &RecordPlace,
    limit: i64,
) -> Result<Vec<(RecordPlace, Decided)>, StoreError> {
    let mut sql = Sql::default();
    let (since, run) = (sql.bind(since), sql.bind(after.run_id.clone()));
    let (writer, seq) = (sql.bind(after.writer.clone()), sql.bind(after.seq));
    let limit = sql.bind(limit);
    sql.push(&format!(
        "select j.run_id, j.writer, j.seq, j.at, j.table_name, j.key, j.currency, \
         j.amount_minor, j.outcome, j.reason, j.rule, e.body from tieout_journal j \
         left join tieout_evidence e on e.sha256 = j.evidence_sha256 \
         where j.run_id = {run} and (j.writer, j.seq) > ({writer}, {seq}) and j.at >= {since} \
         and j.applied <> 'superseded' and not exists (select from tieout_cases c \
         where c.number = j.case_number and c.state = 'open' \
         and c.evidence_sha256 = j.evidence_sha256) order by j.writer, j.seq limit {limit}"
    ));
    let rows = sql.fetch(connection).await.map_err(failed(READING))?;
    rows.iter()
        .map(|row| {
            let cells = Cells::new(row, READING);
            let place =
                RecordPlace { run_id: cells.text(0)?, writer: cells.text(1)?, seq: cells.big(2)? };
            let decided = Decided {
                at: cells.at(3)?,
                table: cells.text(4)?,
                key: cells.text(5)?,
                currency: cells.text(6)?,
                amount_minor: cells.big(7)?,
                outcome: cells.word(8, Outcome::parse)?,
                reason: cells.word(9, Reason::parse)?,
                rule: cells.maybe_text(10)?,
                evidence: cells.maybe_text(11)?,
            };
            Ok((place, decided))
        })
        .collect()
}

/// Open cases of rows with what they were last decided from.
const OPEN_CASES: &str = "\
select c.number, c.last_seen_at, c.table_name, c.subject, c.currency, c.amount_minor, c.reason, \
c.rule, e.body, greatest(c.looked_at, c.last_seen_at) from tieout_cases c \
left join tieout_evidence e on e.sha256 = c.evidence_sha256 \
where c.state = 'open' and c.subject_kind = 'row'";

fn case_decided(cells: &Cells<'_>) -> Result<Decided, StoreError> {
    Ok(Decided {
        at: cells.at(1)?,
        table: cells.text(2)?,
        key: cells.text(3)?,
        currency: cells.text(4)?,
        amount_minor: cells.big(5)?,
        outcome: Outcome::Review,
        reason: cells.word(6, Reason::parse)?,
        rule: cells.maybe_text(7)?,
        evidence: cells.maybe_text(8)?,
    })
}

pub(super) async fn open_cases(
    pool: &PgPool,
    after: i64,
    limit: i64,
) -> Result<Vec<(i64, Decided)>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::new(OPEN_CASES);
    let (after, limit) = (sql.bind(after), sql.bind(limit));
    sql.push(&format!(" and c.number > {after} order by c.number limit {limit}"));
    let rows = sql.fetch(&mut connection).await.map_err(failed(READING))?;
    rows.iter()
        .map(|row| {
            let cells = Cells::new(row, READING);
            Ok((cells.big(0)?, case_decided(&cells)?))
        })
        .collect()
}

pub(super) async fn unseen_cases(
    pool: &PgPool,
    after: Option<UnseenPlace>,
    limit: i64,
) -> Result<Vec<(UnseenPlace, Decided)>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::new(OPEN_CASES);
    if let Some(UnseenPlace { since, number }) = after {
        let (since, number) = (sql.bind(since), sql.bind(number));
        sql.push(&format!(
            " and (greatest(c.looked_at, c.last_seen_at), c.number) > ({since}, {number})"
        ));
    }
    let limit = sql.bind(limit);
    sql.push(&format!(" order by greatest(c.looked_at, c.last_seen_at), c.number limit {limit}"));
    let rows = sql.fetch(&mut connection).await.map_err(failed(READING))?;
    rows.iter()
        .map(|row| {
            let cells = Cells::new(row, READING);
            let place = UnseenPlace { since: cells.at(9)?, number: cells.big(0)? };
            Ok((place, case_decided(&cells)?))
        })
        .collect()
}

pub(super) async fn shown_by(
    pool: &PgPool,
    cases: &[i64],
) -> Result<Vec<(i64, String)>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::default();
    let cases = sql.bind(cases.to_vec());
    sql.push(&format!(
        "select c.number, e.body from tieout_cases c \
         join tieout_evidence e on e.sha256 = c.evidence_sha256 where c.number = any({cases})"
    ));
    let rows = sql.fetch(&mut connection).await.map_err(failed(READING))?;
    rows.iter()
        .map(|row| {
            let cells = Cells::new(row, READING);
            Ok((cells.big(0)?, cells.text(1)?))
        })
        .collect()
}

/// The evidence of a decision is kept at the instant at which its row is written: by the record's
/// own time alone it could not be told from a change that came after it.
pub(super) async fn last_written(
    pool: &PgPool,
    table: &str,
    keys: &[String],
) -> Result<HashMap<String, Written>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::default();
    let (table, keys) = (sql.bind(table.to_owned()), sql.bind(keys.to_vec()));
    sql.push(&format!(
        "select j.key, j.status_before, j.status_after, j.outcome, e.created_at \
         from tieout_journal j join tieout_evidence e on e.sha256 = j.evidence_sha256 \
         where j.table_name = {table} and j.key = any({keys}) and j.applied = 'yes' \
         and j.status_after <> j.status_before order by j.at"
    ));
    let rows = sql.fetch(&mut connection).await.map_err(failed(READING))?;
    let mut last = HashMap::new();
    for row in &rows {
        let cells = Cells::new(row, READING);
        let written = Written {
            status_before: cells.text(1)?,
            status_after: cells.text(2)?,
            outcome: cells.word(3, Outcome::parse)?,
            at: cells.at(4)?,
        };
        last.insert(cells.text(0)?, written);
    }
    Ok(last)
}

pub(super) async fn ended_by_people(
    pool: &PgPool,
    table: &str,
    keys: &[String],
) -> Result<HashMap<String, String>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::default();
    let (table, keys) = (sql.bind(table.to_owned()), sql.bind(keys.to_vec()));
    sql.push(&format!(
        "select u.key, e.body from unnest({keys}::text[]) as u(key) cross join lateral \
         (select j.reason, j.evidence_sha256 from tieout_journal j where j.table_name = {table} \
         and j.key = u.key and j.applied = 'yes' \
         and j.outcome in ('succeeded', 'retryable', 'failed') \
         order by j.at desc, j.run_id desc, j.seq desc limit 1) l \
         join tieout_evidence e on e.sha256 = l.evidence_sha256 where l.reason = 'by_person'"
    ));
    let rows = sql.fetch(&mut connection).await.map_err(failed(READING))?;
    let read = |row: &PgRow| {
        let cells = Cells::new(row, READING);
        Ok((cells.text(0)?, cells.text(1)?))
    };
    rows.iter().map(read).collect()
}

pub(super) async fn counts(pool: &PgPool, since: Instant) -> Result<Vec<RuleCount>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::new(
        "select rule, outcome, reason, count(*), count(distinct (table_name, key)), max(at) \
         from tieout_journal where applied <> 'superseded' \
         and (rule is not null or reason in ('decline_unknown', 'psp_status_unknown'))",
    );
    let since = sql.bind(since);
    sql.push(&format!(
        " and at >= {since} and run_id in (select id from tieout_runs \
         where ended_at is null or ended_at >= {since}) group by rule, outcome, reason \
         order by rule collate \"C\" nulls first, outcome, reason"
    ));
    let rows = sql.fetch(&mut connection).await.map_err(failed(READING))?;
    rows.iter()
        .map(|row| {
            let cells = Cells::new(row, READING);
            Ok(RuleCount {
                rule: cells.maybe_text(0)?,
                outcome: cells.word(1, Outcome::parse)?,
                reason: cells.word(2, Reason::parse)?,
                decisions: cells.big(3)?,
                rows: cells.big(4)?,
                last_at: cells.at(5)?,
            })
        })
        .collect()
}
