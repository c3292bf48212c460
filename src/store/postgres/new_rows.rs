//! Stuck rows that tieout does not know yet and that are decided as they are met: they have no
//! lease, and are taken into `tieout_checks` by the transaction that carries their decision out,
//! as they are afterwards. Whoever takes one in first has it.

use sqlx::postgres::{PgConnection, PgPool};

use crate::model::time::Instant;
use crate::store::effects::RowEffects;
use crate::store::error::StoreError;
use crate::store::postgres::claim::stuck_among;
use crate::store::postgres::copy::{CopyRow, copy};
use crate::store::postgres::errors::{failed, is_taken};
use crate::store::postgres::ledger::{Ledger, WRITING};
use crate::store::postgres::runs::{Sums, add_totals, count_row};
use crate::store::postgres::sql::{Cells, Sql, small};
use crate::store::records::{ClaimFilter, LAST_LOOK, only_once};
use crate::store::source_table::SourceTable;

const READING: &str = "reading new rows";

/// Those of these rows that are stuck and unknown, in the order of their keys.
pub(super) async fn new_among(
    pool: &PgPool,
    table: &SourceTable,
    filter: &ClaimFilter,
    keys: &[String],
) -> Result<Vec<String>, StoreError> {
    let mut sql = Sql::default();
    let name = sql.bind(table.settings.name.clone());
    let rows = stuck_among(table, filter, keys, &mut sql);
    sql.push(&format!(
        "select s.key from ({rows}) s where not exists (select from tieout_checks c \
         where c.table_name = {name} and c.key = s.key)"
    ));
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let found = sql.fetch(&mut connection).await.map_err(failed(READING))?;
    let keys = found.iter().map(|row| Cells::new(row, READING).text(0));
    Ok(only_once(keys.collect::<Result<_, StoreError>>()?))
}

/// About what a row takes, in bytes, with its image.
const ROW: usize = 500;

const TAKEN_IN: &str = "\
copy tieout_checks (table_name, key, state, account, currency, amount_minor, row_created_at, \
 image, first_seen_at, fingerprint_seen_at, aged_from, unanswered_since, unanswered, checks, \
 misses, handbacks, next_check_at, watch_from, watch_step, ended_as, events, last_outcome, \
 last_reason, last_run, lease_token) from stdin";

/// What a batch's new rows come to, in the transaction of their decisions.
pub(super) struct TakeIn<'l, 'a> {
    pub(super) ledger: &'l Ledger<'a>,
}

impl TakeIn<'_, '_> {
    /// Takes decided rows in as they are afterwards. False: somebody took one of them in before.
    pub(super) async fn decided(
        &self,
        connection: &mut PgConnection,
        rows: &[(&RowEffects, Option<&str>)],
    ) -> Result<bool, StoreError> {
        let mut text = String::with_capacity(rows.len().saturating_mul(ROW));
        for (row, image) in rows {
            self.row(&mut CopyRow(&mut text), row, *image)?;
        }
        match copy(connection, TAKEN_IN, text).await {
            Err(error) if is_taken(&error, "tieout_checks_pkey") => Ok(false),
            written => written.map(|()| true).map_err(failed(WRITING)),
        }
    }

    /// The columns of [`TAKEN_IN`].
    fn row(
        &self,
        to: &mut CopyRow<'_>,
        row: &RowEffects,
        image: Option<&str>,
    ) -> Result<(), StoreError> {
        let (of, record) = (self.ledger.memory_of(row, image)?, &row.journal);
        to.text(self.ledger.table).text(of.key).word(of.state).maybe(of.account);
        to.text(&record.currency).number(record.amount_minor).maybe_at(record.row_created_at);
        to.maybe(of.image).at(row.check.history.first_seen_at).maybe_at(of.seen).at(of.aged);
        to.maybe_at(of.since).number(of.unanswered.into()).number(of.checks.into());
        to.text(&of.misses).number(of.handbacks.into()).maybe_at(of.next);
        to.maybe_at(of.watch_from).number(of.step.into()).maybe(of.ended);
        to.number(of.events.into()).word(of.outcome).word(of.reason).text(self.ledger.run_id);
        to.number(of.token.saturating_add(1)).end();
        Ok(())
    }

    /// Takes rows in that had changed before their decision was written: they are due at once, for
    /// another run; how many nobody had taken in before.
    pub(super) async fn changed(
        &self,
        connection: &mut PgConnection,
        rows: &[&RowEffects],
    ) -> sqlx::Result<u64> {
        if rows.is_empty() {
            return Ok(0);
        }
        let mut sql = Sql::default();
        let run = sql.bind(self.ledger.run_id.to_owned());
        let table = sql.bind(self.ledger.table.to_owned());
        let now = sql.bind(self.ledger.now);
        let step = sql.bind(small(LAST_LOOK));
        let keys = sql.bind(rows.iter().map(|r| r.journal.key.clone()).collect::<Vec<_>>());
        let images = sql.bind(rows.iter().map(|r| r.image.clone()).collect::<Vec<_>>());
        let first = sql.bind(first_seen(rows));
        let currencies = sql.bind(currencies(rows));
        let amounts = sql.bind(amounts(rows));
        let created = sql.bind(created(rows));
        let seen = sql.bind(rows.iter().map(|r| r.money_seen).collect::<Vec<_>>());
        sql.push(&format!(
            "insert into tieout_checks (table_name, key, state, currency, amount_minor, \
             row_created_at, image, first_seen_at, fingerprint_seen_at, aged_from, next_check_at, \
             watch_from, watch_step, last_run, lease_token) \
             select {table}, u.key, 'open', u.currency, u.amount, u.created, u.image, u.first, \
             u.first, u.first, {now}, case when u.seen then {now} end, \
             case when u.seen then {step} else 0 end, {run}, 1 \
             from unnest({keys}::text[], {images}::text[], {first}::timestamptz[], \
             {currencies}::text[], {amounts}::bigint[], {created}::timestamptz[], \
             {seen}::boolean[]) as u(key, image, first, currency, amount, created, seen) \
             on conflict do nothing"
        ));
        sql.run(connection).await
    }

    /// Counts rows as claimed, as a lease does.
    pub(super) async fn count<'r>(
        &self,
        connection: &mut PgConnection,
        rows: impl Iterator<Item = &'r RowEffects>,
    ) -> sqlx::Result<()> {
        let mut sums = Sums::new();
        for record in rows.map(|row| &row.journal) {
            count_row(&mut sums, self.ledger.table, &record.currency, record.amount_minor);
        }
        add_totals(connection, self.ledger.run_id, "claimed", &sums).await
    }
}

fn currencies(rows: &[&RowEffects]) -> Vec<String> {
    rows.iter().map(|row| row.journal.currency.clone()).collect()
}

fn amounts(rows: &[&RowEffects]) -> Vec<i64> {
    rows.iter().map(|row| row.journal.amount_minor).collect()
}

fn created(rows: &[&RowEffects]) -> Vec<Option<Instant>> {
    rows.iter().map(|row| row.journal.row_created_at).collect()
}

fn first_seen(rows: &[&RowEffects]) -> Vec<Instant> {
    rows.iter().map(|row| row.check.history.first_seen_at).collect()
}
