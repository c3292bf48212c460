//! Carrying decisions out: all of a batch in one transaction, or nothing of it.
//!
//! The order is the contract's: the run, the leases, the user's rows, and then, for what came
//! back unchanged, everything that the decision means.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use sqlx::sqlite::SqliteConnection;

use crate::decide::permit::Retry;
use crate::model::reason::{Outcome, Reason};
use crate::model::time::{Instant, to_text};
use crate::model::transaction::Transaction;
use crate::store::driver::Writer;
use crate::store::effects::{RowEffects, line_marks, refused_alike};
use crate::store::error::StoreError;
use crate::store::people::ProposalState;
use crate::store::records::{Applied, ApplyEnd, JournalRow, LAST_LOOK, NotApplied, UNLEASED};
use crate::store::sibling;
use crate::store::source_table::SourceTable;
use crate::store::sqlite::cases::{close_rows, put_rows};
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::claim::give_back;
use crate::store::sqlite::journal;
use crate::store::sqlite::lines::mark_in;
use crate::store::sqlite::lookup::siblings;
use crate::store::sqlite::people;
use crate::store::sqlite::runs::{Buckets, add_to, count, is_running, take_back_released};
use crate::store::sqlite::sql::{Value, execute, execute_rows, fetch, json_set, rendered};
use crate::store::sqlite::write::{Written, write};

const APPLYING: &str = "applying decisions";

/// What a row forgets that is proved afresh; ?3 is the time.
const AFRESH: &str = ", aged_from = ?3, unanswered_since = null, unanswered = 0, misses = '[]'";

/// How many rows one statement's JSON carries, where it carries much for each.
const CHUNK: usize = 5_000;

/// A decision on its way, and how it fared.
struct Applying<'a> {
    /// As it was decided, until something forbids it.
    effect: Cow<'a, RowEffects>,
    /// The row's image after the write; `None`: superseded.
    image: Option<String>,
    /// The lease was lost before, and this run's claim of it was counted as released.
    lost: bool,
    /// The person's word that it is does not stand any more, or a row with its natural key goes
    /// first.
    stopped: bool,
}

impl Applying<'_> {
    /// The row stays as it was decided from, as its change was refused in these words. What is left
    /// to the next run was not carried out.
    fn keep(&mut self, why: &str, of_any_row: bool) {
        self.effect.to_mut().turn_away(why, of_any_row);
        if self.effect.refused.is_none() {
            self.image = Some(self.effect.image.clone());
        }
    }
}

/// One batch, or a part of one.
#[derive(Clone, Copy)]
pub(super) struct Batch<'a> {
    pub(super) run_id: &'a str,
    pub(super) table: &'a SourceTable,
    pub(super) rows: &'a [RowEffects],
    pub(super) now: Instant,
    /// The user's database refused to commit the change of this one row, in these words.
    pub(super) refused: Option<&'a str>,
}

/// How many rows were carried out, withheld, superseded, given back by account; and which not as
/// they were decided.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    pub(super) applied: usize,
    pub(super) withheld: usize,
    pub(super) superseded: usize,
    elsewhere: Vec<JournalRow>,
    paused: BTreeMap<String, usize>,
    not_applied: Vec<NotApplied>,
}

/// What follows the commit: the counts, and the writer's new place.
pub(super) struct Carried {
    pub(super) counts: Counts,
    pub(super) writer: Writer,
}

/// Carries out one batch; `None`: the run is closed, and nothing was written.
pub(super) async fn apply(
    connection: &mut SqliteConnection,
    writer: &Writer,
    batch: &Batch<'_>,
) -> Result<Option<Carried>, StoreError> {
    if !is_running(connection, batch.run_id).await? {
        return Ok(None);
    }
    let lost = lost(connection, batch).await?;
    let decided = decided(connection, batch, &lost).await?;
    let paused = paused(connection, batch).await?;
    let (elsewhere, ours): (Vec<&RowEffects>, Vec<&RowEffects>) = batch
        .rows
        .iter()
        .filter(|effect| !decided.contains(&effect.journal.key))
        .partition(|effect| effect.is_new() && lost.contains(&effect.journal.key));
    let (held, fresh): (Vec<&RowEffects>, Vec<&RowEffects>) =
        ours.into_iter().partition(|effect| paused.contains(&effect.journal.account));
    hold_back(connection, batch, &held).await?;
    let contested = contested(connection, &fresh, &lost).await?;
    let unapproved = unapproved(connection, &fresh).await?;
    let spoken_for = spoken_for(connection, batch, &fresh).await?;
    let is_left =
        |effect: &RowEffects| effect.yields_to_people && spoken_for.contains(&effect.journal.key);
    let is_stopped = |effect: &RowEffects| {
        effect.proposal.is_some_and(|word| unapproved.contains(&word)) || is_left(effect)
    };
    let live = fresh.iter().copied();
    let live = live.filter(|row| !lost.contains(&row.journal.key) && !is_stopped(row));
    let mut beside = beside(connection, batch.table, live.collect()).await?;
    let mut rows: Vec<Applying<'_>> = fresh
        .into_iter()
        .map(|effect| {
            let lost = lost.contains(&effect.journal.key);
            let mut effect = Cow::Borrowed(effect);
            if let Some(other) = contested.get(&effect.journal.key).filter(|_| !lost) {
                effect.to_mut().send_to_review(Reason::ReferenceClaimed, other.clone());
            }
            if is_left(&effect) && !lost {
                effect.to_mut().spoken_for = true;
            }
            let stopped = is_stopped(&effect) || beside.overtaken.contains(&effect.journal.key);
            if let Some(others) = beside.handed_back.remove(&effect.journal.key) {
                effect.to_mut().handed_back_beside = others;
            }
            Applying { effect, image: None, lost, stopped }
        })
        .collect();
    carry_out(connection, batch, &mut rows).await?;
    settle(connection, batch, &rows).await?;
    let mut carried = record(connection, batch, writer, rows).await?;
    carried.counts.hold(&held);
    carried.counts.leave(&elsewhere);
    Ok(Some(carried))
}

/// Nothing is decided of a paused account's rows: they are given back.
async fn hold_back(
    connection: &mut SqliteConnection,
    batch: &Batch<'_>,
    held: &[&RowEffects],
) -> Result<(), StoreError> {
    if held.is_empty() {
        return Ok(());
    }
    let held: Vec<(&str, &str, i64)> = held
        .iter()
        .map(|row| (row.journal.table.as_str(), row.journal.key.as_str(), row.token))
        .collect();
    give_back(connection, batch.run_id, &held, batch.now).await
}

/// The keys whose lease this run does not hold any more by the token of the claim, and those of new
/// rows that somebody took in.
async fn lost(
    connection: &mut SqliteConnection,
    batch: &Batch<'_>,
) -> Result<HashSet<String>, StoreError> {
    let tokens: Vec<(&str, i64)> =
        batch.rows.iter().map(|effect| (effect.journal.key.as_str(), effect.token)).collect();
    // The few that are lost are answered and not the many that are held.
    let query = sqlx::query(
        "select j.value ->> 0 from json_each(?1) j left join tieout_checks c \
         on c.table_name = ?2 and c.key = j.value ->> 0 \
         where case j.value ->> 1 when ?4 then c.key is not null \
         else c.lease_token is not (j.value ->> 1) or c.lease_run is not ?3 end",
    )
    .bind(json_set(&tokens))
    .bind(batch.table.settings.name.clone())
    .bind(batch.run_id.to_owned())
    .bind(UNLEASED);
    let rows = fetch(connection, APPLYING, query).await?;
    rows.iter().map(|row| Cells::new(row, APPLYING).text(0)).collect()
}

/// The accounts of a batch that are paused now: the switch holds up to the commit.
async fn paused(
    connection: &mut SqliteConnection,
    batch: &Batch<'_>,
) -> Result<HashSet<String>, StoreError> {
    let accounts: HashSet<&str> =
        batch.rows.iter().map(|effect| effect.journal.account.as_str()).collect();
    let query = sqlx::query(
        "select account from tieout_accounts where paused_at is not null \
         and account in (select value from json_each(?1))",
    )
    .bind(json_set(&accounts.into_iter().collect::<Vec<_>>()));
    let rows = fetch(connection, APPLYING, query).await?;
    rows.iter().map(|row| Cells::new(row, APPLYING).text(0)).collect()
}

/// People's words that do not stand any more, or not of what their cases show now.
async fn unapproved(
    connection: &mut SqliteConnection,
    batch: &[&RowEffects],
) -> Result<HashSet<i64>, StoreError> {
    let words: HashSet<i64> = batch.iter().filter_map(|effect| effect.proposal).collect();
    if words.is_empty() {
        return Ok(words);
    }
    let asked: Vec<i64> = words.iter().copied().collect();
    let stand = people::still_approved(connection, &asked).await?;
    Ok(words.into_iter().filter(|word| !stand.contains(word)).collect())
}

/// The keys of rows of whose case people approved something while they were asked about again.
async fn spoken_for(
    connection: &mut SqliteConnection,
    batch: &Batch<'_>,
    rows: &[&RowEffects],
) -> Result<HashSet<String>, StoreError> {
    let yielding = rows.iter().filter(|row| row.yields_to_people);
    let keys: Vec<&str> = yielding.map(|row| row.journal.key.as_str()).collect();
    match keys.is_empty() {
        true => Ok(HashSet::new()),
        false => people::spoken_for(connection, &batch.table.settings.name, &keys).await,
    }
}

/// How a batch's rows stand to those with their natural keys.
#[derive(Default)]
struct Siblings {
    /// The keys of rows that come second.
    overtaken: HashSet<String>,
    /// Rows that nobody may be charged beside, with those of their siblings that were handed back.
    handed_back: HashMap<String, Vec<String>>,
}

/// What rows were decided from is read once more, within the transaction that nobody writes beside.
async fn beside(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    live: Vec<&RowEffects>,
) -> Result<Siblings, StoreError> {
    let rows: Vec<(usize, &RowEffects)> =
        live.into_iter().filter(|row| row.beside.is_some()).enumerate().collect();
    if rows.is_empty() {
        return Ok(Siblings::default());
    }
    let of_keys = rows.iter().filter_map(|(_, row)| row.beside.as_deref());
    let keyed: Vec<&Transaction> = of_keys.map(|beside| &beside.row).collect();
    let now = siblings(connection, table, &keyed).await?;
    let late = sibling::overtaken(&rows, &now);
    let mut handed_back = sibling::handed_back_beside(&rows, &now);
    let mut found = Siblings::default();
    for (index, row) in rows {
        if late.contains(&index) {
            found.overtaken.insert(row.journal.key.clone());
        }
        if let Some(others) = handed_back.remove(&index) {
            found.handed_back.insert(row.journal.key.clone(), others);
        }
    }
    Ok(found)
}

/// What this run decided before is left out: no row has two decisions in one run, and a batch
/// that is carried out again after a commit that nobody heard of must change nothing.
async fn decided(
    connection: &mut SqliteConnection,
    batch: &Batch<'_>,
    lost: &HashSet<String>,
) -> Result<HashSet<String>, StoreError> {
    if lost.is_empty() {
        return Ok(HashSet::new());
    }
    let query = sqlx::query(
        "select j.key from tieout_journal j where j.table_name = ?2 and j.run_id = ?3 \
         and j.key in (select value from json_each(?1))",
    )
    .bind(json_set(&lost.iter().collect::<Vec<_>>()))
    .bind(batch.table.settings.name.clone())
    .bind(batch.run_id.to_owned());
    let rows = fetch(connection, APPLYING, query).await?;
    rows.iter().map(|row| Cells::new(row, APPLYING).text(0)).collect()
}

/// Successes whose PSP object explains another row already, in the store or in this batch: what
/// to tell the person, by key.
async fn contested(
    connection: &mut SqliteConnection,
    batch: &[&RowEffects],
    lost: &HashSet<String>,
) -> Result<HashMap<String, String>, StoreError> {
    let claims: Vec<(&str, &str, &RowEffects)> = batch
        .iter()
        .filter(|effect| !lost.contains(&effect.journal.key))
        .filter_map(|effect| {
            let reference = effect.claims_reference.as_deref()?;
            Some((effect.journal.account.as_str(), reference, *effect))
        })
        .collect();
    if claims.is_empty() {
        return Ok(HashMap::new());
    }
    let asked: Vec<(&str, &str)> = claims.iter().map(|(a, r, _)| (*a, *r)).collect();
    let query = sqlx::query(
        "select r.account, r.psp_reference, r.table_name, r.key from json_each(?1) j \
         cross join tieout_references r on r.account = j.value ->> 0 \
         and r.psp_reference = j.value ->> 1",
    )
    .bind(json_set(&asked));
    let mut owners: HashMap<(String, String), (String, String)> = HashMap::new();
    for row in &fetch(connection, APPLYING, query).await? {
        let cells = Cells::new(row, APPLYING);
        owners.insert((cells.text(0)?, cells.text(1)?), (cells.text(2)?, cells.text(3)?));
    }
    let mut contested = HashMap::new();
    for (account, reference, effect) in claims {
        let object = (account.to_owned(), reference.to_owned());
        let claimant = (effect.journal.table.clone(), effect.journal.key.clone());
        let (table, key) = owners.entry(object).or_insert_with(|| claimant.clone());
        if (&*table, &*key) != (&claimant.0, &claimant.1) {
            contested.insert(effect.journal.key.clone(), effect.explains_another(table, key));
        }
    }
    Ok(contested)
}

/// Writes or compares the user's rows; what did not come back is superseded, what was refused
/// becomes a case, or is left to the next run where the table refuses it. What is a person's anyway
/// goes to them without its status.
async fn carry_out(
    connection: &mut SqliteConnection,
    batch: &Batch<'_>,
    rows: &mut [Applying<'_>],
) -> Result<(), StoreError> {
    let effects: Vec<&RowEffects> =
        rows.iter().filter(|row| !row.lost && !row.stopped).map(|row| &*row.effect).collect();
    let mut written = match effects.as_slice() {
        [] => HashMap::new(),
        some => write(connection, batch.table, some, batch.refused).await?,
    };
    let writes = effects.iter().filter(|effect| effect.status_to.is_some());
    let is_done = |key: &str| matches!(written.get(key), Some(Written::Done(_)));
    let done = writes.clone().filter(|effect| is_done(&effect.journal.key)).count();
    let writes = writes.count();
    let refusals = written.values().filter_map(|written| match written {
        Written::Refused(why) => Some(why.as_str()),
        Written::Done(_) | Written::Changed | Written::TableRefused(_) => None,
    });
    let alike = refused_alike(refusals, writes, done);
    for row in rows {
        match written.remove(&row.effect.journal.key).filter(|_| !row.lost) {
            Some(Written::Done(image)) => row.image = Some(image),
            Some(Written::TableRefused(why)) => row.keep(&why, done == 0),
            Some(Written::Refused(why)) => row.keep(&why, alike.contains(&why)),
            Some(Written::Changed) | None => row.effect.to_mut().supersede(),
        }
    }
    Ok(())
}

/// Everything that a decision means besides the row and the record.
async fn settle(
    connection: &mut SqliteConnection,
    batch: &Batch<'_>,
    rows: &[Applying<'_>],
) -> Result<(), StoreError> {
    let Batch { run_id, table, now, .. } = *batch;
    let name = &table.settings.name;
    let bodies: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| (row.effect.journal.evidence_sha256.as_str(), row.effect.evidence.as_str()))
        .collect();
    journal::insert_evidence(connection, &bodies, now).await?;
    let mut taken_back = Buckets::new();
    for row in rows.iter().filter(|row| row.lost) {
        add_to(&mut taken_back, &row.effect.journal.currency, row.effect.journal.amount_minor);
    }
    take_back_released(connection, run_id, name, &taken_back).await?;
    let done: Vec<&Applying<'_>> = rows.iter().filter(|row| row.image.is_some()).collect();
    references(connection, run_id, &done, now).await?;
    let marks = line_marks(done.iter().map(|row| &*row.effect));
    if !marks.is_empty() {
        mark_in(connection, run_id, &marks, now).await?;
    }
    end_handbacks(connection, name, &done, now).await?;
    handbacks(connection, run_id, &done, now).await?;
    outbox(connection, run_id, &done, now).await?;
    let words: Vec<i64> = done
        .iter()
        .filter(|row| row.effect.journal.applied == Applied::Yes)
        .filter_map(|row| row.effect.proposal)
        .collect();
    if !words.is_empty() {
        let state = ProposalState::CarriedOut;
        people::end_approved(connection, run_id, &words, state, "carried out", now).await?;
    }
    let (new, known): (Vec<&Applying<'_>>, Vec<&Applying<'_>>) =
        done.into_iter().partition(|row| row.effect.is_new());
    remember(connection, name, &known, now).await?;
    take_in(connection, (run_id, name), &new, now).await?;
    let changed: Vec<&RowEffects> = rows
        .iter()
        .filter(|row| row.image.is_none() && !row.lost)
        .map(|row| &*row.effect)
        .collect();
    let (new, known): (Vec<&RowEffects>, Vec<&RowEffects>) =
        changed.into_iter().partition(|effect| effect.is_new());
    due_again(connection, name, &known, now).await?;
    take_in_changed(connection, (run_id, name), &new, now).await?;
    let new = rows.iter().filter(|row| row.effect.is_new()).map(|row| &row.effect.journal);
    count_taken_in(connection, run_id, name, new).await?;
    // After the memory of this batch's own rows: one of them may have to be looked at anew.
    end_handbacks_beside(connection, name, rows, now).await
}

async fn references(
    connection: &mut SqliteConnection,
    run_id: &str,
    done: &[&Applying<'_>],
    now: Instant,
) -> Result<(), StoreError> {
    let (run_id, now) = (Arc::from(run_id), Arc::from(to_text(now)));
    let rows = done.iter().filter_map(|row| {
        let record = &row.effect.journal;
        let reference = row.effect.claims_reference.as_ref()?;
        Some(vec![
            Value::from(&record.account),
            Value::from(reference),
            Value::from(&record.table),
            Value::from(&record.key),
            Value::from(&run_id),
            Value::from(&now),
        ])
    });
    let sql = |rows: &str| {
        format!(
            "insert into tieout_references (account, psp_reference, table_name, key, run_id, at) \
             values {rows} on conflict (account, psp_reference) do nothing"
        )
    };
    execute_rows(connection, APPLYING, rows, sql).await
}

async fn end_handbacks(
    connection: &mut SqliteConnection,
    table: &str,
    done: &[&Applying<'_>],
    now: Instant,
) -> Result<(), StoreError> {
    let ended: Vec<(&str, &str, &str)> = done
        .iter()
        .filter_map(|row| {
            let why = row.effect.ends_handback.as_deref()?;
            Some((table, row.effect.journal.key.as_str(), why))
        })
        .collect();
    if ended.is_empty() {
        return Ok(());
    }
    let query = sqlx::query(
        "update tieout_handbacks as h set ended_at = ?2, end_reason = j.value ->> 2 \
         from json_each(?1) j where h.table_name = j.value ->> 0 and h.key = j.value ->> 1 \
         and h.ended_at is null and h.taken_at is null",
    )
    .bind(json_set(&ended))
    .bind(to_text(now));
    execute(connection, APPLYING, query).await.map(|_| ())
}

/// Nobody charges beside a row that something stands at the PSP for: the open hand-backs of its
/// siblings end, and those rows are looked at anew. Who waits for such a row is proved afresh, as
/// where a hand-back lapsed.
async fn end_handbacks_beside(
    connection: &mut SqliteConnection,
    table: &str,
    rows: &[Applying<'_>],
    now: Instant,
) -> Result<(), StoreError> {
    for (reason, afresh) in [(Reason::SiblingRow, ""), (Reason::SiblingPending, AFRESH)] {
        let ending = rows.iter().filter(|row| row.effect.ends_beside == Some(reason));
        let others: Vec<&str> =
            ending.flat_map(|row| &row.effect.handed_back_beside).map(String::as_str).collect();
        if others.is_empty() {
            continue;
        }
        let why = (now, reason.as_str());
        let ended = end_untaken(connection, APPLYING, table, &others, why).await?;
        let sql = format!(
            "update tieout_checks as c set state = 'watch', next_check_at = ?3, \
             watch_from = coalesce(c.watch_from, ?3){afresh} where c.table_name = ?2 \
             and c.key in (select value from json_each(?1)) and (c.state = 'watch' \
             or (c.state <> 'open' and c.ended_as = 'retryable' and c.handbacks = (select \
             max(h.number) from tieout_handbacks h where h.table_name = ?2 and h.key = c.key)))"
        );
        let query = rendered(&sql).bind(json_set(&ended)).bind(table.to_owned()).bind(to_text(now));
        execute(connection, APPLYING, query).await?;
    }
    Ok(())
}

/// Ends the hand-backs of rows that nobody took yet; the rows that had one.
pub(super) async fn end_untaken<K: serde::Serialize>(
    connection: &mut SqliteConnection,
    doing: &'static str,
    table: &str,
    keys: &[K],
    (now, reason): (Instant, &'static str),
) -> Result<Vec<String>, StoreError> {
    let query = sqlx::query(
        "update tieout_handbacks set ended_at = ?3, end_reason = ?4 where table_name = ?2 \
         and key in (select value from json_each(?1)) and ended_at is null and taken_at is null \
         returning key",
    )
    .bind(json_set(keys))
    .bind(table.to_owned())
    .bind(to_text(now))
    .bind(reason);
    let ended = fetch(connection, doing, query).await?;
    ended.iter().map(|row| Cells::new(row, doing).text(0)).collect()
}

async fn handbacks(
    connection: &mut SqliteConnection,
    run_id: &str,
    done: &[&Applying<'_>],
    now: Instant,
) -> Result<(), StoreError> {
    let values = done.iter().filter_map(|row| {
        let record = &row.effect.journal;
        let handback = row.effect.handback.as_ref()?;
        let (object, until) = match &handback.retry {
            Retry::SameObject(reference) => (Some(reference.clone()), None),
            Retry::SameKey { until } => (None, Some(to_text(*until))),
            Retry::NewAttempt | Retry::Never => (None, None),
        };
        Some(serde_json::json!([
            record.table,
            record.key,
            handback.number,
            record.account,
            record.fingerprint,
            handback.permit,
            handback.retry.as_str(),
            object,
            until,
            handback.not_before.map(to_text),
            to_text(handback.charge_before),
            record.evidence_sha256,
        ]))
    });
    insert_all(
        connection,
        "insert into tieout_handbacks (table_name, key, number, account, fingerprint, permit, \
         retry, psp_reference, same_key_until, not_before, charge_before, evidence_sha256, \
         run_id, at) \
         select j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3, j.value ->> 4, \
         j.value ->> 5, j.value ->> 6, j.value ->> 7, j.value ->> 8, j.value ->> 9, \
         j.value ->> 10, j.value ->> 11, ?2, ?3 from json_each(?1) j",
        values,
        run_id,
        now,
    )
    .await
}

async fn outbox(
    connection: &mut SqliteConnection,
    run_id: &str,
    done: &[&Applying<'_>],
    now: Instant,
) -> Result<(), StoreError> {
    let (run_id, now) = (Arc::from(run_id), Arc::from(to_text(now)));
    let rows = done.iter().filter_map(|row| {
        let record = &row.effect.journal;
        let event = row.effect.event.as_ref()?;
        Some(vec![
            Value::from(&event.id),
            Value::from(&record.table),
            Value::from(&record.key),
            Value::from(event.version),
            Value::from(event.kind),
            Value::from(record.handback_number),
            Value::from(&event.payload),
            Value::from(&run_id),
            Value::from(&now),
        ])
    });
    let sql = |rows: &str| {
        format!(
            "insert into tieout_outbox (event_id, table_name, key, version, kind, \
             handback_number, payload, run_id, staged_at) values {rows}"
        )
    };
    execute_rows(connection, APPLYING, rows, sql).await
}

/// One statement that reads its rows from JSON in ?1; ?2 is the run and ?3 the time.
async fn insert_all(
    connection: &mut SqliteConnection,
    sql: &'static str,
    values: impl Iterator<Item = serde_json::Value>,
    run_id: &str,
    now: Instant,
) -> Result<(), StoreError> {
    let values: Vec<serde_json::Value> = values.collect();
    for chunk in values.chunks(CHUNK) {
        let query =
            sqlx::query(sql).bind(json_set(chunk)).bind(run_id.to_owned()).bind(to_text(now));
        execute(connection, APPLYING, query).await?;
    }
    Ok(())
}

/// The memory of rows that were decided; the lease ends.
async fn remember(
    connection: &mut SqliteConnection,
    table: &str,
    done: &[&Applying<'_>],
    now: Instant,
) -> Result<(), StoreError> {
    let table = Arc::from(table);
    let rows = done.iter().map(|row| memory_after(row, &table, now));
    let sql = |rows: &str| {
        format!(
            "update tieout_checks as c set state = j.column3, next_check_at = j.column4, \
             image = coalesce(j.column5, c.image), \
             fingerprint_seen_at = coalesce(j.column6, c.fingerprint_seen_at), \
             account = j.column7, aged_from = j.column8, unanswered_since = j.column9, \
             unanswered = j.column10, checks = j.column11, misses = j.column12, \
             handbacks = j.column13, watch_from = j.column14, watch_step = j.column15, \
             events = j.column16, last_outcome = j.column17, last_reason = j.column18, \
             ended_as = j.column19, lease_run = null, lease_until = null \
             from (values {rows}) j where c.table_name = +j.column1 and c.key = +j.column2"
        )
    };
    execute_rows(connection, APPLYING, rows, sql).await
}

/// What is remembered of a row that was decided; column1 to column19 of the statements that write
/// it.
fn memory_after(row: &Applying<'_>, table: &Arc<str>, now: Instant) -> Vec<Value> {
    let (effect, history) = (&row.effect, &row.effect.check.history);
    let image = row.image.as_deref().unwrap_or(&effect.image);
    let seen_at = if image == effect.image { history.fingerprint_seen_at } else { now };
    // A watch begins with the row as tieout left it.
    let watch_from = history.watch_from.map(|from| match image == effect.image {
        true => from,
        false => from.max(seen_at),
    });
    let keeps = effect.check.keeps_image;
    vec![
        Value::from(table),
        Value::from(&effect.journal.key),
        Value::from(effect.check.state),
        Value::from(effect.check.next_check_at.map(to_text)),
        Value::from((!keeps).then_some(image)),
        Value::from((!keeps).then(|| to_text(seen_at))),
        Value::from(&history.first_account),
        Value::from(to_text(history.aged_from)),
        Value::from(history.unanswered_since.map(to_text)),
        Value::from(history.unanswered),
        Value::from(history.checks),
        Value::from(serde_json::json!(history.misses).to_string()),
        Value::from(history.handbacks),
        Value::from(watch_from.map(to_text)),
        Value::from(history.watch_step),
        Value::from(effect.check.events),
        Value::from(effect.journal.outcome.as_str()),
        Value::from(effect.journal.reason.as_str()),
        Value::from(history.ended_as.map(Outcome::as_str)),
    ]
}

/// The memory of new rows, which begins with their decision.
async fn take_in(
    connection: &mut SqliteConnection,
    (run_id, table): (&str, &str),
    new: &[&Applying<'_>],
    now: Instant,
) -> Result<(), StoreError> {
    let (run_id, table) = (Arc::from(run_id), Arc::from(table));
    let rows = new.iter().map(|row| {
        let record = &row.effect.journal;
        let mut values = memory_after(row, &table, now);
        values.push(Value::from(&record.currency));
        values.push(Value::from(record.amount_minor));
        values.push(Value::from(record.row_created_at.map(to_text)));
        values.push(Value::from(to_text(row.effect.check.history.first_seen_at)));
        values.push(Value::from(&run_id));
        values
    });
    let sql = |rows: &str| {
        format!(
            "insert into tieout_checks (table_name, key, state, next_check_at, image, \
             fingerprint_seen_at, account, aged_from, unanswered_since, unanswered, checks, \
             misses, handbacks, watch_from, watch_step, events, last_outcome, last_reason, \
             ended_as, currency, amount_minor, row_created_at, first_seen_at, last_run, \
             lease_token) select j.*, 1 from (values {rows}) j"
        )
    };
    execute_rows(connection, APPLYING, rows, sql).await
}

/// The memory of new rows that had changed before their decision was written: due at once, for
/// another run.
async fn take_in_changed(
    connection: &mut SqliteConnection,
    (run_id, table): (&str, &str),
    changed: &[&RowEffects],
    now: Instant,
) -> Result<(), StoreError> {
    let (run_id, table): (Arc<str>, Arc<str>) = (Arc::from(run_id), Arc::from(table));
    let now: Arc<str> = Arc::from(to_text(now));
    let rows = changed.iter().map(|row| {
        let record = &row.journal;
        vec![
            Value::from(&table),
            Value::from(&record.key),
            Value::from(&record.currency),
            Value::from(record.amount_minor),
            Value::from(record.row_created_at.map(to_text)),
            Value::from(&row.image),
            Value::from(to_text(row.check.history.first_seen_at)),
            Value::from(row.money_seen.then(|| now.to_string())),
            Value::from(if row.money_seen { LAST_LOOK } else { 0 }),
            Value::from(&now),
            Value::from(&run_id),
        ]
    });
    let sql = |rows: &str| {
        format!(
            "insert into tieout_checks (table_name, key, state, currency, amount_minor, \
             row_created_at, image, first_seen_at, fingerprint_seen_at, aged_from, watch_from, \
             watch_step, next_check_at, last_run, lease_token) \
             select j.column1, j.column2, 'open', j.column3, j.column4, j.column5, j.column6, \
             j.column7, j.column7, j.column7, j.column8, j.column9, j.column10, j.column11, 1 \
             from (values {rows}) j"
        )
    };
    execute_rows(connection, APPLYING, rows, sql).await
}

/// Counts new rows as claimed, as a lease does.
async fn count_taken_in<'r>(
    connection: &mut SqliteConnection,
    run_id: &str,
    table: &str,
    new: impl Iterator<Item = &'r JournalRow>,
) -> Result<(), StoreError> {
    let mut totals = Buckets::new();
    new.for_each(|record| add_to(&mut totals, &record.currency, record.amount_minor));
    count(connection, run_id, table, "claimed", &totals).await
}

/// Rows that had changed are looked at again at once, by another run, behind what is due by now;
/// that money was seen for a row that was to be decided is kept with it.
async fn due_again(
    connection: &mut SqliteConnection,
    table: &str,
    changed: &[&RowEffects],
    now: Instant,
) -> Result<(), StoreError> {
    if changed.is_empty() {
        return Ok(());
    }
    let keys: Vec<&str> = changed.iter().map(|row| row.journal.key.as_str()).collect();
    let seen = changed.iter().filter(|row| row.money_seen);
    let seen: Vec<&str> = seen.map(|row| row.journal.key.as_str()).collect();
    let query = sqlx::query(
        "update tieout_checks set lease_run = null, lease_until = null, \
         next_check_at = case when next_check_at is not null then ?3 end, \
         watch_from = case when state = 'open' and key in (select value from json_each(?4)) \
         then ?3 else watch_from end, \
         watch_step = case when state = 'open' and key in (select value from json_each(?4)) \
         then ?5 else watch_step end \
         where table_name = ?2 and key in (select value from json_each(?1))",
    )
    .bind(json_set(&keys))
    .bind(table.to_owned())
    .bind(to_text(now))
    .bind(json_set(&seen))
    .bind(i64::from(LAST_LOOK));
    execute(connection, APPLYING, query).await.map(|_| ())
}

/// Cases first, for their numbers; then the records, chained.
async fn record(
    connection: &mut SqliteConnection,
    batch: &Batch<'_>,
    writer: &Writer,
    rows: Vec<Applying<'_>>,
) -> Result<Carried, StoreError> {
    let Batch { run_id, table, now, .. } = *batch;
    let name = &table.settings.name;
    let done = || rows.iter().filter(|row| row.image.is_some()).map(|row| &*row.effect);
    let opening: Vec<&RowEffects> = done().filter(|effect| effect.opens_case).collect();
    let numbers = put_rows(connection, run_id, &opening, now).await?;
    let closings: Vec<(&str, &str)> = done()
        .filter_map(|effect| Some((effect.journal.key.as_str(), effect.closes_case.as_deref()?)))
        .collect();
    close_rows(connection, run_id, name, &closings, now).await?;
    let not_applied = rows.iter().filter_map(|row| row.effect.not_applied()).collect();
    let mut records: Vec<JournalRow> = rows
        .into_iter()
        .map(|row| match row.effect {
            Cow::Borrowed(effect) => effect.journal.clone(),
            Cow::Owned(effect) => effect.journal,
        })
        .collect();
    let mut writer = writer.clone();
    journal::append(connection, &mut records, &numbers, &mut writer).await?;
    let query =
        sqlx::query("update tieout_runs set journal_count = journal_count + ?2 where id = ?1")
            .bind(run_id.to_owned())
            .bind(i64::try_from(records.len()).unwrap_or(i64::MAX));
    execute(connection, APPLYING, query).await?;
    Ok(Carried { counts: Counts::of(&records, not_applied), writer })
}

impl Counts {
    fn of(records: &[JournalRow], not_applied: Vec<NotApplied>) -> Self {
        let count = |applied| records.iter().filter(|record| record.applied == applied).count();
        Self {
            applied: count(Applied::Yes),
            withheld: count(Applied::Withheld),
            superseded: count(Applied::Superseded),
            elsewhere: Vec::new(),
            paused: BTreeMap::new(),
            not_applied,
        }
    }

    /// Adds the rows that were given back, as their account is paused.
    fn hold(&mut self, held: &[&RowEffects]) {
        for row in held {
            let rows = self.paused.entry(row.journal.account.clone()).or_default();
            *rows = rows.saturating_add(1);
        }
        self.not_applied.extend(held.iter().map(|row| row.given_back()));
    }

    /// Adds the new rows that somebody else took in.
    fn leave(&mut self, elsewhere: &[&RowEffects]) {
        self.elsewhere.extend(elsewhere.iter().map(|row| row.journal.clone()));
        self.not_applied.extend(elsewhere.iter().map(|row| row.taken_elsewhere()));
    }

    /// The sum of two parts of a batch.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.not_applied.extend(other.not_applied);
        self.elsewhere.extend(other.elsewhere);
        for (account, more) in other.paused {
            let rows = self.paused.entry(account).or_default();
            *rows = rows.saturating_add(more);
        }
        Self {
            applied: self.applied.saturating_add(other.applied),
            withheld: self.withheld.saturating_add(other.withheld),
            superseded: self.superseded.saturating_add(other.superseded),
            elsewhere: self.elsewhere,
            paused: self.paused,
            not_applied: self.not_applied,
        }
    }

    pub(super) fn done(self) -> ApplyEnd {
        let Self { applied, withheld, superseded, elsewhere, paused, not_applied } = self;
        ApplyEnd::Done { applied, withheld, superseded, elsewhere, paused, not_applied }
    }
}
