//! Decisions read back with what they were made from.

use sqlx::sqlite::SqliteConnection;

use crate::model::reason::{Outcome, Reason};
use crate::model::time::{Instant, to_text};
use crate::store::error::StoreError;
use crate::store::replay::{Decided, RecordPlace, RuleCount};
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::sql::fetch;

pub(super) const READING: &str = "reading what was decided";

pub(super) async fn decided(
    connection: &mut SqliteConnection,
    since: Instant,
    after: Option<RecordPlace>,
    limit: i64,
) -> Result<Vec<(RecordPlace, Decided)>, StoreError> {
    let (run_id, writer, seq) =
        after.map_or_else(Default::default, |place| (place.run_id, place.writer, place.seq));
    let query = sqlx::query(
        "select j.run_id, j.writer, j.seq, j.at, j.table_name, j.key, j.currency, \
         j.amount_minor, j.outcome, j.reason, j.rule, e.body from tieout_journal j \
         left join tieout_evidence e on e.sha256 = j.evidence_sha256 \
         where (j.run_id, j.writer, j.seq) > (?1, ?2, ?3) and j.at >= ?4 \
         and j.applied <> 'superseded' and not exists (select 1 from tieout_cases c \
         where c.number = j.case_number and c.state = 'open' \
         and c.evidence_sha256 = j.evidence_sha256) \
         order by j.run_id, j.writer, j.seq limit ?5",
    )
    .bind(run_id)
    .bind(writer)
    .bind(seq)
    .bind(to_text(since))
    .bind(limit);
    let rows = fetch(connection, READING, query).await?;
    rows.iter()
        .map(|row| {
            let cells = Cells::new(row, READING);
            let place =
                RecordPlace { run_id: cells.text(0)?, writer: cells.text(1)?, seq: cells.int(2)? };
            let decided = Decided {
                at: cells.at(3)?,
                table: cells.text(4)?,
                key: cells.text(5)?,
                currency: cells.text(6)?,
                amount_minor: cells.int(7)?,
                outcome: cells.word(8, Outcome::parse)?,
                reason: cells.word(9, Reason::parse)?,
                rule: cells.opt_text(10)?,
                evidence: cells.opt_text(11)?,
            };
            Ok((place, decided))
        })
        .collect()
}

pub(super) async fn open_cases(
    connection: &mut SqliteConnection,
    after: i64,
    limit: i64,
) -> Result<Vec<(i64, Decided)>, StoreError> {
    let query = sqlx::query(
        "select c.number, c.last_seen_at, c.table_name, c.subject, c.currency, c.amount_minor, \
         c.reason, c.rule, e.body from tieout_cases c \
         left join tieout_evidence e on e.sha256 = c.evidence_sha256 \
         where c.state = 'open' and c.subject_kind = 'row' and c.number > ?1 \
         order by c.number limit ?2",
    )
    .bind(after)
    .bind(limit);
    let rows = fetch(connection, READING, query).await?;
    rows.iter()
        .map(|row| {
            let cells = Cells::new(row, READING);
            let decided = Decided {
                at: cells.at(1)?,
                table: cells.text(2)?,
                key: cells.text(3)?,
                currency: cells.text(4)?,
                amount_minor: cells.int(5)?,
                outcome: Outcome::Review,
                reason: cells.word(6, Reason::parse)?,
                rule: cells.opt_text(7)?,
                evidence: cells.opt_text(8)?,
            };
            Ok((cells.int(0)?, decided))
        })
        .collect()
}

pub(super) async fn counts(
    connection: &mut SqliteConnection,
    since: Instant,
) -> Result<Vec<RuleCount>, StoreError> {
    // A row's table and key, as one text that no other row has.
    let query = sqlx::query(
        "select rule, outcome, reason, count(*), count(distinct json_array(table_name, key)), \
         max(at) from tieout_journal where at >= ?1 and applied <> 'superseded' \
         and (rule is not null or reason in ('decline_unknown', 'psp_status_unknown')) \
         group by rule, outcome, reason order by rule, outcome, reason",
    )
    .bind(to_text(since));
    let rows = fetch(connection, READING, query).await?;
    rows.iter()
        .map(|row| {
            let cells = Cells::new(row, READING);
            Ok(RuleCount {
                rule: cells.opt_text(0)?,
                outcome: cells.word(1, Outcome::parse)?,
                reason: cells.word(2, Reason::parse)?,
                decisions: cells.int(3)?,
                rows: cells.int(4)?,
                last_at: cells.at(5)?,
            })
        })
        .collect()
}
