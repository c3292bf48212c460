//! Decisions read back with what they were made from.

use std::collections::HashMap;

use sqlx::sqlite::SqliteConnection;

use crate::model::reason::{Outcome, Reason};
use crate::model::time::{Instant, to_text};
use crate::store::error::StoreError;
use crate::store::replay::{Decided, RecordPlace, RuleCount, UnseenPlace, Written};
use crate::store::sqlite::cases::UNSEEN_SINCE;
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::sql::{fetch, json_set, rendered};

pub(super) const READING: &str = "reading what was decided";

/// Run by run: only those that may have decided since then are looked into, each by its own part
/// of the journal's key.
pub(super) async fn decided(
    connection: &mut SqliteConnection,
    since: Instant,
    after: Option<RecordPlace>,
    limit: i64,
) -> Result<Vec<(RecordPlace, Decided)>, StoreError> {
    let mut found = Vec::new();
    let mut place = after;
    loop {
        if let Some(from) = &place {
            let taken = i64::try_from(found.len()).unwrap_or(i64::MAX);
            let room = limit.saturating_sub(taken);
            found.extend(decided_by(connection, since, from, room).await?);
        }
        if i64::try_from(found.len()).unwrap_or(i64::MAX) >= limit {
            return Ok(found);
        }
        let last = place.map(|place| place.run_id).unwrap_or_default();
        let Some(run_id) = next_run(connection, since, last).await? else { return Ok(found) };
        place = Some(RecordPlace { run_id, writer: String::new(), seq: 0 });
    }
}

/// The next run that may have decided since then: no record is later than its run's end.
async fn next_run(
    connection: &mut SqliteConnection,
    since: Instant,
    after: String,
) -> Result<Option<String>, StoreError> {
    let query = sqlx::query(
        "select id from tieout_runs where id > ?1 and journal_count > 0 \
         and (ended_at is null or ended_at >= ?2) order by id limit 1",
    )
    .bind(after)
    .bind(to_text(since));
    let rows = fetch(connection, READING, query).await?;
    rows.first().map(|row| Cells::new(row, READING).text(0)).transpose()
}

async fn decided_by(
    connection: &mut SqliteConnection,
    since: Instant,
    after: &RecordPlace,
    limit: i64,
) -> Result<Vec<(RecordPlace, Decided)>, StoreError> {
    let query = sqlx::query(
        "select j.run_id, j.writer, j.seq, j.at, j.table_name, j.key, j.currency, \
         j.amount_minor, j.outcome, j.reason, j.rule, e.body from tieout_journal j \
         left join tieout_evidence e on e.sha256 = j.evidence_sha256 \
         where j.run_id = ?1 and (j.writer, j.seq) > (?2, ?3) and j.at >= ?4 \
         and j.applied <> 'superseded' and not exists (select 1 from tieout_cases c \
         where c.number = j.case_number and c.state = 'open' \
         and c.evidence_sha256 = j.evidence_sha256) \
         order by j.writer, j.seq limit ?5",
    )
    .bind(after.run_id.clone())
    .bind(after.writer.clone())
    .bind(after.seq)
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

/// Open cases of rows, by the named index, with what they were last decided from.
fn open_cases_by(index: &str) -> String {
    format!(
        "select c.number, c.last_seen_at, c.table_name, c.subject, c.currency, c.amount_minor, \
         c.reason, c.rule, e.body, {UNSEEN_SINCE} as since from tieout_cases c indexed by {index} \
         left join tieout_evidence e on e.sha256 = c.evidence_sha256 \
         where c.state = 'open' and c.subject_kind = 'row'"
    )
}

fn case_decided(cells: Cells<'_>) -> Result<Decided, StoreError> {
    Ok(Decided {
        at: cells.at(1)?,
        table: cells.text(2)?,
        key: cells.text(3)?,
        currency: cells.text(4)?,
        amount_minor: cells.int(5)?,
        outcome: Outcome::Review,
        reason: cells.word(6, Reason::parse)?,
        rule: cells.opt_text(7)?,
        evidence: cells.opt_text(8)?,
    })
}

pub(super) async fn open_cases(
    connection: &mut SqliteConnection,
    after: i64,
    limit: i64,
) -> Result<Vec<(i64, Decided)>, StoreError> {
    // Without the name of the index each page would sort all open cases.
    let cases = open_cases_by("tieout_cases_waiting");
    let sql = format!("{cases} and c.number > ?1 order by c.number limit ?2");
    let rows = fetch(connection, READING, rendered(&sql).bind(after).bind(limit)).await?;
    rows.iter()
        .map(|row| {
            let cells = Cells::new(row, READING);
            Ok((cells.int(0)?, case_decided(cells)?))
        })
        .collect()
}

/// Those of the place's own instant first, and then the later ones: by one condition, SQLite would
/// sort or read all of an instant once more for each page, and a batch is of one.
pub(super) async fn unseen_cases(
    connection: &mut SqliteConnection,
    after: Option<UnseenPlace>,
    limit: i64,
) -> Result<Vec<(UnseenPlace, Decided)>, StoreError> {
    let cases = open_cases_by("tieout_cases_unseen");
    let (since, number) = after.map_or_else(Default::default, |at| (to_text(at.since), at.number));
    let mut found = Vec::new();
    for wanted in [
        format!("{UNSEEN_SINCE} = ?1 and c.number > ?2 order by c.number"),
        format!("{UNSEEN_SINCE} > ?1 order by {UNSEEN_SINCE}, c.number"),
    ] {
        let taken = i64::try_from(found.len()).unwrap_or(i64::MAX);
        let sql = format!("{cases} and {wanted} limit ?3");
        let query = rendered(&sql).bind(since.clone()).bind(number);
        let rows = fetch(connection, READING, query.bind(limit.saturating_sub(taken))).await?;
        for row in &rows {
            let cells = Cells::new(row, READING);
            let place = UnseenPlace { since: cells.at(9)?, number: cells.int(0)? };
            found.push((place, case_decided(cells)?));
        }
    }
    Ok(found)
}

pub(super) async fn shown_by(
    connection: &mut SqliteConnection,
    cases: &[i64],
) -> Result<Vec<(i64, String)>, StoreError> {
    let query = sqlx::query(
        "select c.number, e.body from json_each(?1) i \
         cross join tieout_cases c on c.number = i.value \
         join tieout_evidence e on e.sha256 = c.evidence_sha256",
    )
    .bind(json_set(cases));
    let rows = fetch(connection, READING, query).await?;
    rows.iter()
        .map(|row| {
            let cells = Cells::new(row, READING);
            Ok((cells.int(0)?, cells.text(1)?))
        })
        .collect()
}

/// The evidence of a decision is kept at the instant at which its row is written: by the record's
/// own time alone it could not be told from a change that came after it.
pub(super) async fn last_written(
    connection: &mut SqliteConnection,
    table: &str,
    keys: &[String],
) -> Result<HashMap<String, Written>, StoreError> {
    let query = sqlx::query(
        "select j.key, j.status_before, j.status_after, j.outcome, e.created_at \
         from json_each(?2) i cross join tieout_journal j \
         on j.table_name = ?1 and j.key = i.value \
         join tieout_evidence e on e.sha256 = j.evidence_sha256 \
         where j.applied = 'yes' and j.status_after <> j.status_before order by j.at",
    )
    .bind(table.to_owned())
    .bind(json_set(keys));
    let mut last = HashMap::new();
    for row in &fetch(connection, READING, query).await? {
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
    connection: &mut SqliteConnection,
    table: &str,
    keys: &[String],
) -> Result<HashMap<String, String>, StoreError> {
    let query = sqlx::query(
        "select j.key, case j.reason when 'by_person' then e.body end \
         from json_each(?2) i cross join tieout_journal j \
         on j.table_name = ?1 and j.key = i.value \
         left join tieout_evidence e on e.sha256 = j.evidence_sha256 \
         where j.applied = 'yes' and j.outcome in ('succeeded', 'retryable', 'failed') \
         order by j.at, j.run_id, j.seq",
    )
    .bind(table.to_owned())
    .bind(json_set(keys));
    let mut last = HashMap::new();
    for row in &fetch(connection, READING, query).await? {
        let cells = Cells::new(row, READING);
        last.insert(cells.text(0)?, cells.opt_text(1)?);
    }
    Ok(last.into_iter().filter_map(|(key, body)| Some((key, body?))).collect())
}

pub(super) async fn counts(
    connection: &mut SqliteConnection,
    since: Instant,
) -> Result<Vec<RuleCount>, StoreError> {
    // A row's table and key, as one text that no other row has.
    let query = sqlx::query(
        "select rule, outcome, reason, count(*), count(distinct json_array(table_name, key)), \
         max(at) from tieout_runs r cross join tieout_journal j on j.run_id = r.id \
         where (r.ended_at is null or r.ended_at >= ?1) and at >= ?1 and applied <> 'superseded' \
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
