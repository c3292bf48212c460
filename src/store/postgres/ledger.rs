//! tieout's own rows of a batch: evidence, references, cases, hand-backs, events, records, memory.
//!
//! One statement a kind and chunk. Everything is written in the transaction of the user's rows.

use std::collections::HashMap;

use sqlx::postgres::PgConnection;

use crate::decide::decision::Asked;
use crate::decide::permit::Retry;
use crate::model::reason::{Outcome, Reason};
use crate::model::time::Instant;
use crate::store::effects::{HandbackEffect, RowEffects, asked_text};
use crate::store::error::StoreError;
use crate::store::postgres::copy::{CopyRow, copy};
use crate::store::postgres::errors::{failed, is_taken};
use crate::store::postgres::people::end_outrun;
use crate::store::postgres::sql::{Cells, Sql, small};
use crate::store::records::{JournalRow, LAST_LOOK, UNLEASED};

pub(super) const WRITING: &str = "writing the records of the decisions";

/// What every statement of a batch is about.
pub(super) struct Ledger<'a> {
    pub(super) run_id: &'a str,
    pub(super) table: &'a str,
    pub(super) now: Instant,
}

/// About what a record takes, in bytes, besides what was decided from.
const RECORD: usize = 800;

/// About what a reference takes, in bytes.
const REFERENCE: usize = 160;

/// An array that is bound, its element's type, and its name in [`unnested`].
type Column = (String, &'static str, &'static str);

/// Arrays of one length as the rows `u`.
fn unnested(columns: &[Column]) -> String {
    let arrays: Vec<String> =
        columns.iter().map(|(place, of, _)| format!("{place}::{of}[]")).collect();
    let names: Vec<&str> = columns.iter().map(|(_, _, name)| *name).collect();
    format!("unnest({}) as u({})", arrays.join(", "), names.join(", "))
}

fn all<T>(rows: &[&RowEffects], pick: impl Fn(&RowEffects) -> T) -> Vec<T> {
    rows.iter().map(|row| pick(row)).collect()
}

impl Ledger<'_> {
    /// A statement whose first parameters are the run, the table and the time.
    fn sql(&self) -> Sql {
        let mut sql = Sql::default();
        sql.bind(self.run_id.to_owned());
        sql.bind(self.table.to_owned());
        sql.bind(self.now);
        sql
    }

    /// Stores what was decided from. It is new nearly always, as the time stands in it: where some
    /// of it `may_be_stored`, what is there stays.
    pub(super) async fn evidence(
        &self,
        connection: &mut PgConnection,
        rows: &[&RowEffects],
        may_be_stored: bool,
    ) -> sqlx::Result<()> {
        if !may_be_stored {
            let bytes = rows.iter().map(|row| row.evidence.len().saturating_add(RECORD));
            let mut text = String::with_capacity(bytes.sum());
            for row in rows {
                let mut to = CopyRow(&mut text);
                to.word(&row.journal.evidence_sha256).text(&row.evidence).at(self.now).end();
            }
            return copy(connection, EVIDENCE, text).await;
        }
        let mut sql = Sql::default();
        let hashes = sql.bind(all(rows, |row| row.journal.evidence_sha256.clone()));
        let bodies = sql.bind(all(rows, |row| row.evidence.clone()));
        let now = sql.bind(self.now);
        sql.push(&format!(
            "insert into tieout_evidence (sha256, body, created_at) \
             select u.sha256, u.body, {now} from unnest({hashes}::text[], {bodies}::text[]) \
             as u(sha256, body) on conflict do nothing"
        ));
        sql.run(connection).await?;
        Ok(())
    }

    /// Which of these rows' references another row has already: row → that row's table and key;
    /// and whether one of them has its own already. Where the database is not asked, another row
    /// is one of these alone.
    pub(super) async fn taken_references(
        &self,
        connection: &mut PgConnection,
        rows: &[(usize, &RowEffects)],
        asks: bool,
    ) -> Result<(HashMap<usize, (String, String)>, bool), StoreError> {
        let claims: Vec<(usize, &str, &RowEffects)> = rows
            .iter()
            .filter_map(|(index, row)| {
                row.claims_reference.as_deref().map(|reference| (*index, reference, *row))
            })
            .collect();
        let stored = match asks && !claims.is_empty() {
            true => stored_references(connection, &claims).await?,
            false => Vec::new(),
        };
        let is_stored = !stored.is_empty();
        let mut owners: HashMap<(&str, &str), (&str, &str)> = HashMap::new();
        for [account, reference, table, key] in &stored {
            owners.insert((account, reference), (table, key));
        }
        let mut taken = HashMap::new();
        for (index, reference, row) in claims {
            let mine = (row.journal.table.as_str(), row.journal.key.as_str());
            // Two rows of one batch may claim one object as well: the first has it.
            let owner = owners.entry((&row.journal.account, reference)).or_insert(mine);
            if *owner != mine {
                taken.insert(index, (owner.0.to_owned(), owner.1.to_owned()));
            }
        }
        Ok((taken, is_stored))
    }

    /// Records which row explains which object. False: another transaction was quicker. Where some
    /// of it `may_be_stored`, a row's own stays.
    pub(super) async fn references(
        &self,
        connection: &mut PgConnection,
        rows: &[&RowEffects],
        may_be_stored: bool,
    ) -> sqlx::Result<bool> {
        let rows: Vec<&RowEffects> =
            rows.iter().filter(|row| row.claims_reference.is_some()).copied().collect();
        if rows.is_empty() {
            return Ok(true);
        }
        if !may_be_stored {
            let mut text = String::with_capacity(rows.len().saturating_mul(REFERENCE));
            for row in rows {
                let mut to = CopyRow(&mut text);
                to.text(&row.journal.account).maybe(row.claims_reference.as_deref());
                to.text(self.table).text(&row.journal.key).text(self.run_id).at(self.now).end();
            }
            return match copy(connection, REFERENCES, text).await {
                Err(error) if is_taken(&error, "tieout_references_pkey") => Ok(false),
                written => written.map(|()| true),
            };
        }
        let mut sql = self.sql();
        let accounts = sql.bind(all(&rows, |row| row.journal.account.clone()));
        let references = sql.bind(all(&rows, |row| row.claims_reference.clone()));
        let keys = sql.bind(all(&rows, |row| row.journal.key.clone()));
        sql.push(&format!(
            "with mine as (insert into tieout_references as r \
             (account, psp_reference, table_name, key, run_id, at) \
             select u.account, u.reference, $2, u.key, $1, $3 \
             from unnest({accounts}::text[], {references}::text[], {keys}::text[]) \
             as u(account, reference, key) \
             on conflict (account, psp_reference) do update set key = r.key \
             where r.table_name = $2 and r.key = excluded.key returning 1) \
             select count(*) from mine"
        ));
        let rows_now = sql.fetch(connection).await?;
        let count: i64 = match rows_now.first() {
            Some(row) => sqlx::Row::try_get(row, 0)?,
            None => 0,
        };
        Ok(usize::try_from(count).is_ok_and(|count| count == rows.len()))
    }

    /// Opens or refreshes cases; returns each row's number by its key.
    pub(super) async fn open_cases(
        &self,
        connection: &mut PgConnection,
        rows: &[&RowEffects],
    ) -> Result<HashMap<String, i64>, StoreError> {
        let rows: Vec<&RowEffects> = rows.iter().filter(|row| row.opens_case).copied().collect();
        if rows.is_empty() {
            return Ok(HashMap::new());
        }
        let mut sql = self.sql();
        let subjects = sql.bind(all(&rows, |row| row.journal.key.clone()));
        let reasons = sql.bind(all(&rows, |row| row.journal.reason.as_str().to_owned()));
        let texts = sql.bind(all(&rows, |row| row.journal.text.clone()));
        let accounts = sql.bind(all(&rows, |row| row.journal.account.clone()));
        let currencies = sql.bind(all(&rows, |row| row.journal.currency.clone()));
        let amounts = sql.bind(all(&rows, |row| row.journal.amount_minor));
        let rules = sql.bind(all(&rows, |row| row.journal.rule.clone()));
        let policies = sql.bind(all(&rows, |row| row.journal.policy_version.clone()));
        let evidence = sql.bind(all(&rows, |row| row.journal.evidence_sha256.clone()));
        sql.push(&format!(
            "insert into tieout_cases as k (subject_kind, table_name, subject, reason, text, \
             state, account, currency, amount_minor, rule, policy_version, evidence_sha256, \
             opened_at, opened_run, last_seen_at, last_run) \
             select 'row', $2, u.subject, u.reason, u.text, 'open', u.account, u.currency, \
             u.amount, u.rule, u.policy, u.evidence, $3, $1, $3, $1 \
             from unnest({subjects}::text[], {reasons}::text[], {texts}::text[], \
             {accounts}::text[], {currencies}::text[], {amounts}::bigint[], {rules}::text[], \
             {policies}::text[], {evidence}::text[]) \
             as u(subject, reason, text, account, currency, amount, rule, policy, evidence) \
             on conflict (subject_kind, table_name, subject) where state = 'open' \
             do update set reason = excluded.reason, text = excluded.text, \
             account = excluded.account, currency = excluded.currency, \
             amount_minor = excluded.amount_minor, rule = excluded.rule, \
             policy_version = excluded.policy_version, evidence_sha256 = excluded.evidence_sha256, \
             last_seen_at = excluded.last_seen_at, last_run = excluded.last_run, \
             times_seen = k.times_seen + 1 \
             returning k.subject, k.number"
        ));
        let found = sql.fetch(connection).await.map_err(failed(WRITING))?;
        found
            .iter()
            .map(|row| {
                let cells = Cells::new(row, WRITING);
                Ok((cells.text(0)?, cells.big(1)?))
            })
            .collect()
    }

    pub(super) async fn close_cases(
        &self,
        connection: &mut PgConnection,
        rows: &[&RowEffects],
    ) -> sqlx::Result<()> {
        let rows: Vec<&RowEffects> =
            rows.iter().filter(|row| row.closes_case.is_some()).copied().collect();
        if rows.is_empty() {
            return Ok(());
        }
        let mut sql = self.sql();
        let subjects = sql.bind(all(&rows, |row| row.journal.key.clone()));
        let resolutions = sql.bind(all(&rows, |row| row.closes_case.clone()));
        sql.push(&format!(
            "update tieout_cases k set state = 'closed', closed_at = $3, closed_run = $1, \
             resolution = u.resolution from unnest({subjects}::text[], {resolutions}::text[]) \
             as u(subject, resolution) where k.state = 'open' and k.subject_kind = 'row' \
             and k.table_name = $2 and k.subject = u.subject returning k.number"
        ));
        let closed = sql.fetch(&mut *connection).await?;
        let number = |row| sqlx::Row::try_get(row, 0);
        let closed: sqlx::Result<Vec<i64>> = closed.iter().map(number).collect();
        end_outrun(connection, self.run_id, &closed?, self.now).await
    }

    /// Ends hand-backs that a new decision takes the place of.
    pub(super) async fn end_handbacks(
        &self,
        connection: &mut PgConnection,
        rows: &[&RowEffects],
    ) -> sqlx::Result<()> {
        let rows: Vec<&RowEffects> =
            rows.iter().filter(|row| row.ends_handback.is_some()).copied().collect();
        if rows.is_empty() {
            return Ok(());
        }
        let mut sql = Sql::default();
        let table = sql.bind(self.table.to_owned());
        let now = sql.bind(self.now);
        let keys = sql.bind(all(&rows, |row| row.journal.key.clone()));
        let reasons = sql.bind(all(&rows, |row| row.ends_handback.clone()));
        sql.push(&format!(
            "update tieout_handbacks h set ended_at = {now}, end_reason = u.reason \
             from unnest({keys}::text[], {reasons}::text[]) as u(key, reason) \
             where h.table_name = {table} and h.key = u.key and h.ended_at is null \
             and h.taken_at is null"
        ));
        sql.run(connection).await?;
        Ok(())
    }

    /// Nobody charges beside a row that something stands at the PSP for: the open hand-backs of
    /// its siblings end, and those rows are looked at anew. Who waits for such a row is proved
    /// afresh, as where a hand-back lapsed.
    pub(super) async fn end_handbacks_beside(
        &self,
        connection: &mut PgConnection,
        rows: &[&RowEffects],
    ) -> sqlx::Result<()> {
        for reason in [Reason::SiblingRow, Reason::SiblingPending] {
            let ending = rows.iter().filter(|row| row.ends_beside == Some(reason));
            let others: Vec<String> =
                ending.flat_map(|row| row.handed_back_beside.iter().cloned()).collect();
            self.end_untaken(connection, others, reason).await?;
        }
        Ok(())
    }

    /// Ends the hand-backs of rows that nobody took yet, for this reason.
    async fn end_untaken(
        &self,
        connection: &mut PgConnection,
        keys: Vec<String>,
        reason: Reason,
    ) -> sqlx::Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        let afresh = match reason {
            Reason::SiblingPending => {
                ", aged_from = $2, unanswered_since = null, unanswered = 0, misses = '[]'"
            }
            _other => "",
        };
        let mut sql = Sql::default();
        sql.bind(self.table.to_owned());
        sql.bind(self.now);
        sql.bind(reason.as_str().to_owned());
        sql.bind(keys);
        // Whoever ends several at once does so in one order.
        sql.push(&format!(
            "with open as (select key, number from tieout_handbacks where table_name = $1 \
             and key = any($4) and taken_at is null and ended_at is null \
             order by key, number for update), \
             ended as (update tieout_handbacks h set ended_at = $2, end_reason = $3 \
             from open o where h.table_name = $1 and h.key = o.key and h.number = o.number \
             returning h.key, h.number) \
             update tieout_checks c set state = 'watch', next_check_at = $2, \
             watch_from = coalesce(c.watch_from, $2){afresh} from ended e \
             where c.table_name = $1 and c.key = e.key and (c.state = 'watch' \
             or (c.state <> 'open' and c.ended_as = 'retryable' and c.handbacks = e.number))"
        ));
        sql.run(connection).await?;
        Ok(())
    }

    pub(super) async fn handbacks(
        &self,
        connection: &mut PgConnection,
        rows: &[&RowEffects],
    ) -> sqlx::Result<()> {
        let rows: Vec<(&RowEffects, &HandbackEffect)> = rows
            .iter()
            .filter_map(|row| row.handback.as_ref().map(|handback| (*row, handback)))
            .collect();
        if rows.is_empty() {
            return Ok(());
        }
        let retry = |handback: &HandbackEffect| match &handback.retry {
            Retry::SameObject(reference) => (Some(reference.clone()), None),
            Retry::SameKey { until } => (None, Some(*until)),
            Retry::NewAttempt | Retry::Never => (None, None),
        };
        let mut sql = self.sql();
        let keys = sql.bind(rows.iter().map(|r| r.0.journal.key.clone()).collect::<Vec<_>>());
        let numbers = sql.bind(rows.iter().map(|r| small(r.1.number)).collect::<Vec<_>>());
        let accounts =
            sql.bind(rows.iter().map(|r| r.0.journal.account.clone()).collect::<Vec<_>>());
        let prints =
            sql.bind(rows.iter().map(|r| r.0.journal.fingerprint.clone()).collect::<Vec<_>>());
        let permits = sql.bind(rows.iter().map(|r| r.1.permit.to_owned()).collect::<Vec<_>>());
        let retries =
            sql.bind(rows.iter().map(|r| r.1.retry.as_str().to_owned()).collect::<Vec<_>>());
        let objects = sql.bind(rows.iter().map(|r| retry(r.1).0).collect::<Vec<_>>());
        let untils = sql.bind(rows.iter().map(|r| retry(r.1).1).collect::<Vec<_>>());
        let not_before = sql.bind(rows.iter().map(|r| r.1.not_before).collect::<Vec<_>>());
        let before = sql.bind(rows.iter().map(|r| r.1.charge_before).collect::<Vec<_>>());
        let evidence =
            sql.bind(rows.iter().map(|r| r.0.journal.evidence_sha256.clone()).collect::<Vec<_>>());
        sql.push(&format!(
            "insert into tieout_handbacks (table_name, key, number, run_id, at, account, \
             fingerprint, permit, retry, psp_reference, same_key_until, not_before, \
             charge_before, evidence_sha256) \
             select $2, u.key, u.number, $1, $3, u.account, u.print, u.permit, u.retry, u.object, \
             u.until, u.not_before, u.before, u.evidence \
             from unnest({keys}::text[], {numbers}::integer[], {accounts}::text[], \
             {prints}::text[], {permits}::text[], {retries}::text[], {objects}::text[], \
             {untils}::timestamptz[], {not_before}::timestamptz[], {before}::timestamptz[], \
             {evidence}::text[]) as u(key, number, account, print, permit, retry, object, until, \
             not_before, before, evidence)"
        ));
        sql.run(connection).await?;
        Ok(())
    }

    pub(super) async fn events(
        &self,
        connection: &mut PgConnection,
        rows: &[&RowEffects],
    ) -> sqlx::Result<()> {
        let rows = rows.iter().filter_map(|row| row.event.as_ref().map(|event| (*row, event)));
        let mut text = String::new();
        for (row, event) in rows {
            let number = row.handback.as_ref().map(|handback| small(handback.number));
            let mut to = CopyRow(&mut text);
            to.text(&event.id).text(self.table).text(&row.journal.key);
            to.number(small(event.version).into()).word(event.kind);
            to.maybe_number(number.map(i64::from)).text(self.run_id).at(self.now);
            to.text(&event.payload).end();
        }
        copy(connection, EVENTS, text).await
    }

    /// Moves the memory of rows on, where the token still is ours; returns how many moved.
    pub(super) async fn checks(
        &self,
        connection: &mut PgConnection,
        rows: &[(&RowEffects, Option<&str>)],
    ) -> Result<u64, StoreError> {
        if rows.is_empty() {
            return Ok(0);
        }
        let mut sql = Sql::default();
        let run = sql.bind(self.run_id.to_owned());
        let table = sql.bind(self.table.to_owned());
        let memory = unnested(&self.memory(&mut sql, rows)?);
        sql.push(&format!(
            "update tieout_checks c set state = u.state, account = u.account, \
             image = coalesce(u.image, c.image), \
             fingerprint_seen_at = coalesce(u.seen, c.fingerprint_seen_at), \
             aged_from = u.aged, unanswered_since = u.since, unanswered = u.unanswered, \
             checks = u.checks, misses = u.misses, handbacks = u.handbacks, \
             next_check_at = u.next, watch_from = u.watch_from, watch_step = u.step, \
             ended_as = u.ended, events = u.events, last_outcome = u.outcome, \
             last_reason = u.reason, lease_run = null, lease_until = null \
             from {memory} where c.table_name = {table} and c.key = u.key \
             and c.lease_token = u.token and {}",
            is_leased_by(&run),
        ));
        sql.run(connection).await.map_err(failed(WRITING))
    }

    /// The memory of rows, as [`unnested`] reads it.
    fn memory(
        &self,
        sql: &mut Sql,
        rows: &[(&RowEffects, Option<&str>)],
    ) -> Result<Vec<Column>, StoreError> {
        let of = rows.iter().map(|(row, image)| self.memory_of(row, *image));
        let of: Vec<Memory<'_>> = of.collect::<Result<_, _>>()?;
        let mut arrays = Vec::new();
        let mut put = |place: String, of, name| arrays.push((place, of, name));
        let all = |pick: fn(&Memory<'_>) -> i32| of.iter().map(pick).collect::<Vec<i32>>();
        let texts = |pick: for<'m> fn(&'m Memory<'_>) -> Option<&'m str>| -> Vec<Option<String>> {
            of.iter().map(|memory| pick(memory).map(str::to_owned)).collect()
        };
        let times = |pick: fn(&Memory<'_>) -> Option<Instant>| -> Vec<Option<Instant>> {
            of.iter().map(pick).collect()
        };
        put(sql.bind(texts(|m| Some(m.key))), "text", "key");
        put(sql.bind(of.iter().map(|m| m.token).collect::<Vec<i64>>()), "bigint", "token");
        put(sql.bind(texts(|m| Some(m.state))), "text", "state");
        put(sql.bind(texts(|m| m.account)), "text", "account");
        put(sql.bind(texts(|m| m.image)), "text", "image");
        put(sql.bind(times(|m| m.seen)), "timestamptz", "seen");
        put(sql.bind(times(|m| Some(m.aged))), "timestamptz", "aged");
        put(sql.bind(times(|m| m.since)), "timestamptz", "since");
        put(sql.bind(all(|m| m.unanswered)), "integer", "unanswered");
        put(sql.bind(all(|m| m.checks)), "integer", "checks");
        put(sql.bind(texts(|m| Some(&m.misses))), "text", "misses");
        put(sql.bind(all(|m| m.handbacks)), "integer", "handbacks");
        put(sql.bind(times(|m| m.next)), "timestamptz", "next");
        put(sql.bind(times(|m| m.watch_from)), "timestamptz", "watch_from");
        put(sql.bind(all(|m| m.step)), "integer", "step");
        put(sql.bind(texts(|m| m.ended)), "text", "ended");
        put(sql.bind(all(|m| m.events)), "integer", "events");
        put(sql.bind(texts(|m| Some(m.outcome))), "text", "outcome");
        put(sql.bind(texts(|m| Some(m.reason))), "text", "reason");
        Ok(arrays)
    }

    /// What is remembered of a row after its decision. `image`: as it was written.
    pub(super) fn memory_of<'m>(
        &self,
        row: &'m RowEffects,
        image: Option<&'m str>,
    ) -> Result<Memory<'m>, StoreError> {
        let history = &row.check.history;
        // A row that tieout itself changed was first seen so now.
        let seen = match image {
            Some(_) => Some(self.now),
            None if row.check.keeps_image => None,
            None => Some(history.fingerprint_seen_at),
        };
        // A watch begins with the row as tieout left it.
        let watch_from =
            history.watch_from.map(|from| if image.is_some() { from.max(self.now) } else { from });
        Ok(Memory {
            key: &row.journal.key,
            token: row.token,
            state: row.check.state,
            account: history.first_account.as_deref(),
            image: image_after(row, image),
            seen,
            aged: history.aged_from,
            since: history.unanswered_since,
            unanswered: small(history.unanswered),
            checks: small(history.checks),
            misses: misses_text(row)?,
            handbacks: small(history.handbacks),
            next: row.check.next_check_at,
            watch_from,
            step: small(history.watch_step),
            ended: history.ended_as.map(Outcome::as_str),
            events: small(row.check.events),
            outcome: row.journal.outcome.as_str(),
            reason: row.journal.reason.as_str(),
        })
    }

    /// The run's row counts the records too, so that a tail that is cut off shows at once.
    pub(super) async fn count_records(
        &self,
        connection: &mut PgConnection,
        records: usize,
    ) -> sqlx::Result<()> {
        sqlx::query("update tieout_runs set journal_count = journal_count + $2 where id = $1")
            .bind(self.run_id)
            .bind(i64::try_from(records).unwrap_or(i64::MAX))
            .execute(connection)
            .await?;
        Ok(())
    }

    /// Gives superseded rows back with the memory that they had, due at once; that money was seen
    /// for a row that was to be decided is kept with it.
    pub(super) async fn superseded(
        &self,
        connection: &mut PgConnection,
        rows: &[&RowEffects],
    ) -> sqlx::Result<u64> {
        if rows.is_empty() {
            return Ok(0);
        }
        let mut sql = self.sql();
        let keys = sql.bind(all(rows, |row| row.journal.key.clone()));
        let tokens = sql.bind(all(rows, |row| row.token));
        let seen = sql.bind(all(rows, |row| row.money_seen));
        let step = sql.bind(small(LAST_LOOK));
        sql.push(&format!(
            "update tieout_checks c set lease_run = null, lease_until = null, \
             next_check_at = case when c.state in ('open', 'watch') then $3 end, \
             watch_from = case when c.state = 'open' and u.seen then $3 else c.watch_from end, \
             watch_step = case when c.state = 'open' and u.seen then {step} \
             else c.watch_step end \
             from unnest({keys}::text[], {tokens}::bigint[], {seen}::boolean[]) \
             as u(key, token, seen) \
             where c.table_name = $2 and c.key = u.key and c.lease_token = u.token and {}",
            is_leased_by("$1"),
        ));
        sql.run(connection).await
    }

    /// Gives rows back undecided, counted as released. One whose lease is no longer ours was
    /// counted by whoever took it.
    pub(super) async fn give_back(
        &self,
        connection: &mut PgConnection,
        rows: &[RowEffects],
    ) -> sqlx::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut sql = self.sql();
        let keys = sql.bind(rows.iter().map(|row| row.journal.key.clone()).collect::<Vec<_>>());
        let tokens = sql.bind(rows.iter().map(|row| row.token).collect::<Vec<_>>());
        sql.push(&format!(
            "with given_back as (\
             update tieout_checks c set lease_run = null, lease_until = null, \
             next_check_at = case when c.next_check_at is not null then $3 end \
             from unnest({keys}::text[], {tokens}::bigint[]) as u(key, token) \
             where c.table_name = $2 and c.key = u.key and c.lease_token = u.token and {} \
             returning c.currency, c.amount_minor) \
             insert into tieout_run_totals as t \
             (run_id, table_name, currency, side, rows, amount_minor) \
             select $1, $2, currency, 'released', count(*), sum(amount_minor) \
             from given_back group by currency \
             on conflict (run_id, table_name, currency, side) do update \
             set rows = t.rows + excluded.rows, \
             amount_minor = t.amount_minor + excluded.amount_minor",
            is_leased_by("$1"),
        ));
        sql.run(connection).await.map(|_| ())
    }

    /// Which of these rows' leases are no longer ours, and why. Asked outside of the attempt that
    /// found it, which moved the others.
    pub(super) async fn lost(
        &self,
        connection: &mut PgConnection,
        rows: &[(usize, &RowEffects)],
    ) -> Result<HashMap<usize, Loss>, StoreError> {
        let mut sql = Sql::default();
        let run = sql.bind(self.run_id.to_owned());
        let table = sql.bind(self.table.to_owned());
        let keys = sql.bind(rows.iter().map(|r| r.1.journal.key.clone()).collect::<Vec<_>>());
        let tokens = sql.bind(rows.iter().map(|r| r.1.token).collect::<Vec<_>>());
        sql.push(&format!(
            "select u.key, coalesce(c.lease_token > u.token, false), \
             exists (select from tieout_journal j where j.table_name = {table} \
             and j.key = u.key and j.run_id = {run}) \
             from unnest({keys}::text[], {tokens}::bigint[]) as u(key, token) \
             left join tieout_checks c on c.table_name = {table} and c.key = u.key \
             where case u.token when {UNLEASED} then c.key is not null \
             else c.key is null or c.lease_token <> u.token \
             or c.lease_run is distinct from {run} end"
        ));
        let found = sql.fetch(connection).await.map_err(failed(WRITING))?;
        let by_key: HashMap<&str, (usize, bool)> = rows
            .iter()
            .map(|(index, row)| (row.journal.key.as_str(), (*index, row.is_new())))
            .collect();
        let mut lost = HashMap::new();
        for row in &found {
            let cells = Cells::new(row, WRITING);
            let Some((index, is_new)) = by_key.get(cells.text(0)?.as_str()) else { continue };
            let loss = match (cells.flag(1)?, cells.flag(2)?) {
                (_, true) => Loss::Decided,
                _any if *is_new => Loss::Elsewhere,
                (true, false) => Loss::Taken,
                (false, false) => Loss::Ended,
            };
            lost.insert(*index, loss);
        }
        Ok(lost)
    }
}

/// The lease is this run's, in words that no index serves. A plan for any set of keys reckons with
/// few keys and few leases; by the index of leases it would compare each of a batch's keys with
/// each lease of the run: 5 s where 30 ms do.
pub(super) fn is_leased_by(run: &str) -> String {
    format!("case c.lease_run when {run} then true else false end")
}

/// A row of `tieout_checks` after a decision.
pub(super) struct Memory<'m> {
    pub(super) key: &'m str,
    /// The lease's.
    pub(super) token: i64,
    pub(super) state: &'m str,
    pub(super) account: Option<&'m str>,
    /// `None`: as it is remembered.
    pub(super) image: Option<&'m str>,
    /// `None`: as it is remembered.
    pub(super) seen: Option<Instant>,
    pub(super) aged: Instant,
    pub(super) since: Option<Instant>,
    pub(super) unanswered: i32,
    pub(super) checks: i32,
    pub(super) misses: String,
    pub(super) handbacks: i32,
    pub(super) next: Option<Instant>,
    pub(super) watch_from: Option<Instant>,
    pub(super) step: i32,
    pub(super) ended: Option<&'static str>,
    pub(super) events: i32,
    pub(super) outcome: &'static str,
    pub(super) reason: &'static str,
}

/// Why a lease is no longer ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    /// Another run took it, and counted the row as released by this one.
    Taken,
    /// This run decided the row before.
    Decided,
    /// There was none, and somebody else took the row in.
    Elsewhere,
    /// It ended otherwise.
    Ended,
}

/// The image to remember where it is another than the claim left: what was written, or what a
/// watch that decided something, or a look at a new row, looked at.
fn image_after<'m>(row: &'m RowEffects, written: Option<&'m str>) -> Option<&'m str> {
    let was_watch = row.journal.asked == Asked::Watch && !row.check.keeps_image;
    let is_unknown = was_watch || row.is_new();
    written.or_else(|| is_unknown.then_some(row.image.as_str()))
}

fn misses_text(row: &RowEffects) -> Result<String, StoreError> {
    serde_json::to_string(&row.check.history.misses)
        .map_err(|error| StoreError::Unexpected { doing: WRITING, problem: error.to_string() })
}

const EVIDENCE: &str = "copy tieout_evidence (sha256, body, created_at) from stdin";

const REFERENCES: &str =
    "copy tieout_references (account, psp_reference, table_name, key, run_id, at) from stdin";

const EVENTS: &str = "\
copy tieout_outbox (event_id, table_name, key, version, kind, handback_number, run_id, staged_at, \
 payload) from stdin";

const JOURNAL: &str = "\
copy tieout_journal (run_id, writer, seq, at, table_name, key, account, tag, kind, \
 currency, amount_minor, asked, outcome, reason, rule, text, applied, status_before, \
status_after, psp_reference, psp_status, psp_currency, psp_amount_minor, fingerprint, \
evidence_sha256, row_created_at, row_attempted_at, checks, next_check_at, handback_number, \
case_number, policy_version, prev_hash, hash) from stdin";

/// Account, reference, table and key of those claimed references that rows have already. Each by
/// its key (`offset 0`): as a join, a plan that reads all references is always near.
async fn stored_references(
    connection: &mut PgConnection,
    claims: &[(usize, &str, &RowEffects)],
) -> Result<Vec<[String; 4]>, StoreError> {
    let mut sql = Sql::default();
    let accounts = claims.iter().map(|claim| claim.2.journal.account.clone());
    let accounts = sql.bind(accounts.collect::<Vec<_>>());
    let references = sql.bind(claims.iter().map(|claim| claim.1.to_owned()).collect::<Vec<_>>());
    sql.push(&format!(
        "select r.* from unnest({accounts}::text[], {references}::text[]) as u(a, r) \
         cross join lateral (select r.account, r.psp_reference, r.table_name, r.key \
         from tieout_references r where r.account = u.a and r.psp_reference = u.r offset 0) r"
    ));
    let found = sql.fetch(connection).await.map_err(failed(WRITING))?;
    let reference = |row| {
        let cells = Cells::new(row, WRITING);
        Ok([cells.text(0)?, cells.text(1)?, cells.text(2)?, cells.text(3)?])
    };
    found.iter().map(reference).collect()
}

/// Appends chained records.
pub(super) async fn journal<'r>(
    connection: &mut PgConnection,
    rows: impl Iterator<Item = &'r JournalRow>,
) -> sqlx::Result<()> {
    let mut text = String::with_capacity(rows.size_hint().0.saturating_mul(RECORD));
    for row in rows {
        record(&mut CopyRow(&mut text), row);
    }
    copy(connection, JOURNAL, text).await
}

/// The columns of [`JOURNAL`].
fn record(row: &mut CopyRow<'_>, of: &JournalRow) {
    row.text(&of.run_id).text(&of.writer).number(of.seq).at(of.at);
    for text in [&of.table, &of.key, &of.account, &of.tag, &of.kind, &of.currency] {
        row.text(text);
    }
    row.number(of.amount_minor).word(asked_text(of.asked));
    row.word(of.outcome.as_str()).word(of.reason.as_str());
    row.maybe(of.rule.as_deref()).text(&of.text).word(of.applied.as_str());
    row.text(&of.status_before).text(&of.status_after);
    row.maybe(of.psp_reference.as_deref()).maybe(of.psp_status.as_deref());
    row.maybe(of.psp_currency.as_deref()).maybe_number(of.psp_amount_minor);
    row.text(&of.fingerprint).text(&of.evidence_sha256);
    row.maybe_at(of.row_created_at).maybe_at(of.row_attempted_at);
    row.number(i64::from(of.checks)).maybe_at(of.next_check_at);
    row.maybe_number(of.handback_number.map(i64::from)).maybe_number(of.case_number);
    row.text(&of.policy_version).text(&of.prev_hash).text(&of.hash).end();
}
