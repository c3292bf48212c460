//! Decisions read back with what they were made from.

use sqlx::postgres::PgPool;

use crate::model::reason::{Outcome, Reason};
use crate::model::time::Instant;
use crate::store::error::StoreError;
use crate::store::postgres::errors::failed;
use crate::store::postgres::sql::{Cells, Sql};
use crate::store::replay::{Decided, RecordPlace, RuleCount};

const READING: &str = "reading what was decided";

pub(super) async fn decided(
    pool: &PgPool,
    since: Instant,
    after: Option<RecordPlace>,
    limit: i64,
) -> Result<Vec<(RecordPlace, Decided)>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::new(
        "select j.run_id, j.writer, j.seq, j.at, j.table_name, j.key, j.currency, \
         j.amount_minor, j.outcome, j.reason, j.rule, e.body from tieout_journal j \
         left join tieout_evidence e on e.sha256 = j.evidence_sha256 where j.at >= ",
    );
    let since = sql.bind(since);
    sql.push(&since);
    if let Some(place) = after {
        let (run, writer) = (sql.bind(place.run_id), sql.bind(place.writer));
        let seq = sql.bind(place.seq);
        sql.push(&format!(" and (j.run_id, j.writer, j.seq) > ({run}, {writer}, {seq})"));
    }
    let limit = sql.bind(limit);
    sql.push(&format!(
        " and j.applied <> 'superseded' and not exists (select from tieout_cases c \
         where c.number = j.case_number and c.state = 'open' \
         and c.evidence_sha256 = j.evidence_sha256) \
         order by j.run_id, j.writer, j.seq limit {limit}"
    ));
    let rows = sql.fetch(&mut connection).await.map_err(failed(READING))?;
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

pub(super) async fn open_cases(
    pool: &PgPool,
    after: i64,
    limit: i64,
) -> Result<Vec<(i64, Decided)>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::new(
        "select c.number, c.last_seen_at, c.table_name, c.subject, c.currency, c.amount_minor, \
         c.reason, c.rule, e.body from tieout_cases c \
         left join tieout_evidence e on e.sha256 = c.evidence_sha256 \
         where c.state = 'open' and c.subject_kind = 'row'",
    );
    let (after, limit) = (sql.bind(after), sql.bind(limit));
    sql.push(&format!(" and c.number > {after} order by c.number limit {limit}"));
    let rows = sql.fetch(&mut connection).await.map_err(failed(READING))?;
    rows.iter()
        .map(|row| {
            let cells = Cells::new(row, READING);
            let decided = Decided {
                at: cells.at(1)?,
                table: cells.text(2)?,
                key: cells.text(3)?,
                currency: cells.text(4)?,
                amount_minor: cells.big(5)?,
                outcome: Outcome::Review,
                reason: cells.word(6, Reason::parse)?,
                rule: cells.maybe_text(7)?,
                evidence: cells.maybe_text(8)?,
            };
            Ok((cells.big(0)?, decided))
        })
        .collect()
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
        " and at >= {since} group by rule, outcome, reason \
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
