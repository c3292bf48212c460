//! Enrolling stuck rows, leasing due ones, giving them back.
//!
//! A claim is a lease in `tieout_checks`, never a lock that is held: the user's rows are only
//! read. Control totals are counted in the transactions that lease and give back.

use std::collections::{BTreeMap, HashSet};

use sqlx::postgres::{PgConnection, PgPool, PgRow};

use crate::decide::decision::Asked;
use crate::model::time::Instant;
use crate::model::transaction::{RowDefect, Transaction};
use crate::store::decode::decode;
use crate::store::effects::left_as_money_was_seen;
use crate::store::error::StoreError;
use crate::store::postgres::checks::{self, Remembered, last_handbacks};
use crate::store::postgres::errors::failed;
use crate::store::postgres::ledger::is_leased_by;
use crate::store::postgres::patience::patiently;
use crate::store::postgres::people::end_outrun;
use crate::store::postgres::runs::{Sums, add_totals, count_row};
use crate::store::postgres::sql::{Cells, Sql};
use crate::store::postgres::statements::Statements;
use crate::store::postgres::transactions::begin;
use crate::store::records::{ClaimFilter, Claimed, LAST_LOOK, ROW_GONE};
use crate::store::source_table::SourceTable;

const CLAIMING: &str = "claiming due rows";
const ENROLLING: &str = "enrolling stuck rows";

pub(super) async fn enrol(
    pool: &PgPool,
    table: &SourceTable,
    filter: &ClaimFilter,
    now: Instant,
) -> Result<u64, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(ENROLLING))?;
    let stuck = patiently(async || {
        enrol_sql(table, filter, now).run(&mut connection).await.map_err(failed(ENROLLING))
    })
    .await?;
    if !filter.given_up {
        return Ok(stuck);
    }
    let given_up = patiently(async || {
        watch_sql(table, filter, now).run(&mut connection).await.map_err(failed(ENROLLING))
    })
    .await?;
    Ok(stuck.saturating_add(given_up))
}

/// Rows that were given up, whoever did: one look at each, which changes no row.
fn watch_sql(table: &SourceTable, filter: &ClaimFilter, now: Instant) -> Sql {
    let mut sql = Sql::default();
    let name = sql.bind(table.settings.name.clone());
    let now = sql.bind(now);
    let step = sql.bind(i64::from(LAST_LOOK));
    let rows = given_up_rows(table, filter, &mut sql);
    let due = turn_of("s.made", "s.key", &now);
    sql.push(&format!(
        "insert into tieout_checks as c (table_name, key, state, image, first_seen_at, \
         fingerprint_seen_at, aged_from, next_check_at, watch_from, watch_step) \
         select {name}, s.key, 'watch', s.image, {now}, {now}, {now}, {due}, {now}, {step} \
         from (select distinct on (g.key) g.key, g.image, g.made from ({rows}) g \
         order by g.key) s \
         on conflict (table_name, key) do update set state = 'watch', \
         next_check_at = excluded.next_check_at, \
         watch_from = coalesce(c.watch_from, excluded.watch_from), \
         watch_step = case c.state when 'watch' then c.watch_step else excluded.watch_step end \
         where {MAY_WATCH}"
    ));
    sql
}

/// Of a check `c`: it may be watched once more.
pub(super) const MAY_WATCH: &str =
    "c.state in ('closed', 'parked', 'watch') and c.lease_run is null";

/// Key, image, cells and time of the rows in scope that were given up.
pub(super) fn given_up_rows(table: &SourceTable, filter: &ClaimFilter, sql: &mut Sql) -> String {
    let parts = Statements::of(table);
    let is_ended = match filter.ended {
        true => format!("not ({})", parts.is_processing("t", sql)),
        false => parts.has_status("t", table.given_up_values(), sql),
    };
    let mut conditions = vec![is_ended, parts.filter("t", sql), parts.has_key("t")];
    if let Some(ids) = &filter.ids {
        conditions.push(parts.is_one_of_ids("t", ids, sql));
    }
    conditions.extend(parts.narrow("t", filter, sql));
    key_image_cells(table, &conditions)
}

/// How the server would enrol stuck rows and look for due ones, step by step.
pub(super) async fn plan(
    pool: &PgPool,
    table: &SourceTable,
    filter: &ClaimFilter,
    limit: i64,
    now: Instant,
) -> Result<Vec<String>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(CLAIMING))?;
    let mut steps = Vec::new();
    for sql in [enrol_sql(table, filter, now), due_sql(table, filter, limit, now, Some(""))] {
        let rows = sql.explained().fetch(&mut connection).await.map_err(failed(CLAIMING))?;
        for row in &rows {
            steps.push(Cells::new(row, CLAIMING).text(0)?);
        }
    }
    Ok(steps)
}

/// Rows that are stuck and new, or stuck again with another image than the one decided.
fn enrol_sql(table: &SourceTable, filter: &ClaimFilter, now: Instant) -> Sql {
    let mut sql = Sql::default();
    let name = sql.bind(table.settings.name.clone());
    let now = sql.bind(now);
    let stuck = stuck_rows(table, filter, &mut sql);
    let due = turn_of("s.made", "s.key", &now);
    sql.push(&format!(
        "insert into tieout_checks as c (table_name, key, state, image, first_seen_at, \
         fingerprint_seen_at, aged_from, next_check_at) \
         select {name}, s.key, 'open', s.image, {now}, {now}, {now}, {due} \
         from (select distinct on (g.key) g.key, g.image, g.made from ({stuck}) g \
         left join tieout_checks c on c.table_name = {name} and c.key = g.key \
         where c.key is null \
         or (c.state <> 'open' and c.image <> g.image and c.lease_run is null) \
         order by g.key) s \
         on conflict (table_name, key) do update set state = 'open', image = excluded.image, \
         fingerprint_seen_at = excluded.fingerprint_seen_at, aged_from = excluded.aged_from, \
         unanswered_since = null, unanswered = 0, checks = 0, misses = '[]', \
         next_check_at = excluded.next_check_at, watch_from = null, watch_step = 0, \
         ended_as = null \
         where c.state <> 'open' and c.image <> excluded.image and c.lease_run is null"
    ));
    sql
}

/// When a row that is taken in is due: now, and a microsecond sooner for each row that was made
/// after it. The batches then follow each other in the rows' time, and the transactions of a
/// batch's window are not listed for the next batch again.
pub(super) fn turn_of(made: &str, key: &str, now: &str) -> String {
    format!(
        "{now} - row_number() over (order by {made} desc nulls last, {key} desc) \
         * interval '1 microsecond'"
    )
}

/// Key, image, cells and time of every stuck row in scope: the walk over the user's index on the
/// status.
pub(super) fn stuck_rows(table: &SourceTable, filter: &ClaimFilter, sql: &mut Sql) -> String {
    let parts = Statements::of(table);
    let mut conditions =
        vec![parts.is_processing("t", sql), parts.filter("t", sql), parts.has_key("t")];
    match (&filter.ids, filter.stuck_before) {
        (Some(ids), _) => conditions.push(parts.is_one_of_ids("t", ids, sql)),
        (None, Some(before)) => conditions.push(parts.is_stuck("t", before, sql)),
        (None, None) => {}
    }
    conditions.extend(parts.narrow("t", filter, sql));
    key_image_cells(table, &conditions)
}

/// The same of these rows alone.
pub(super) fn stuck_among(
    table: &SourceTable,
    filter: &ClaimFilter,
    keys: &[String],
    sql: &mut Sql,
) -> String {
    let parts = Statements::of(table);
    let mut conditions = vec![
        parts.is_processing("t", sql),
        parts.filter("t", sql),
        parts.is_one_of_ids("t", keys, sql),
    ];
    conditions.extend(filter.stuck_before.map(|before| parts.is_stuck("t", before, sql)));
    conditions.extend(parts.narrow("t", filter, sql));
    let (key, from) = (parts.key_text("t"), &table.read);
    format!("select {key} as key from {from} t where {}", conditions.join(" and "))
}

/// Key, image, cells and time of every row in scope, whatever its status.
pub(super) fn window_rows(table: &SourceTable, filter: &ClaimFilter, sql: &mut Sql) -> String {
    let parts = Statements::of(table);
    let mut conditions = vec![parts.filter("t", sql)];
    conditions.extend(parts.narrow("t", filter, sql));
    key_image_cells(table, &conditions)
}

fn key_image_cells(table: &SourceTable, conditions: &[String]) -> String {
    let parts = Statements::of(table);
    format!(
        "select {} as key, {} as image, {}, {} as made from {} t where {}",
        parts.key_text("t"),
        parts.image("t"),
        cells_as(table, "t"),
        parts.made("t"),
        table.read,
        conditions.join(" and ")
    )
}

/// The cells under names that no column of the user's has: `x0`, `x1`, …
fn cells_as(table: &SourceTable, alias: &str) -> String {
    let cells = table.cells.iter().enumerate();
    let named: Vec<String> =
        cells.map(|(index, cell)| format!("{alias}.{}::text as x{index}", cell.ident)).collect();
    named.join(", ")
}

/// Those names, for the outer select.
pub(super) fn cell_names(table: &SourceTable, alias: &str) -> String {
    let names: Vec<String> =
        (0..table.cells.len()).map(|index| format!("{alias}.x{index}")).collect();
    names.join(", ")
}

/// Due rows with what is remembered of them and the user's row. `hold`: lock them.
pub(super) fn due_sql(
    table: &SourceTable,
    filter: &ClaimFilter,
    limit: i64,
    now: Instant,
    hold: Option<&str>,
) -> Sql {
    let parts = Statements::of(table);
    let mut sql = Sql::default();
    let name = sql.bind(table.settings.name.clone());
    let now = sql.bind(now);
    let mut due = vec![format!("d.table_name = {name}")];
    due.push(format!("(d.lease_until is null or d.lease_until <= {now})"));
    match &filter.ids {
        Some(ids) => due.push(format!("d.key = any({})", sql.bind(ids.clone()))),
        None => {
            due.push(format!("d.state in ('open', 'watch') and d.next_check_at <= {now}"));
        }
    }
    due.extend(in_scope(table, filter, &mut sql));
    let (mut with, mut locking) = (String::new(), "");
    if let Some(run_id) = hold {
        let run = sql.bind(run_id.to_owned());
        // A run that another one closed never claims again; one row is taken once in a run.
        with = format!(
            "with run as materialized (select from tieout_runs where id = {run} \
             and state = 'running' for key share) "
        );
        due.push(format!("exists (select from run) and d.last_run is distinct from {run}"));
        locking = "for update skip locked";
    }
    let order = if filter.ids.is_some() { "d.key" } else { "d.next_check_at, d.key" };
    let outer = order.replace("d.", "c.");
    let limit = sql.bind(limit);
    let belongs = parts.filter("t", &mut sql);
    sql.push(&format!(
        "{with}select {}, r.belongs, r.image, {} from (\
         select d.* from tieout_checks d where {} order by {order} limit {limit} {locking}) c \
         left join lateral (\
         select ({belongs}) as belongs, {} as image, {} from {} t where {}) r on true \
         order by {outer}",
        checks::COLUMNS,
        cell_names(table, "r"),
        due.join(" and "),
        parts.image("t"),
        cells_as(table, "t"),
        table.read,
        parts.is_keyed("t", "c.key"),
    ));
    sql
}

/// Whether a row is due that the run did not take: one that left processing is only closed.
pub(super) async fn is_due(
    pool: &PgPool,
    run_id: &str,
    table: &SourceTable,
    filter: &ClaimFilter,
    now: Instant,
) -> Result<bool, StoreError> {
    let doing = "looking for rows still due";
    let parts = Statements::of(table);
    let mut sql = Sql::default();
    let name = sql.bind(table.settings.name.clone());
    let now = sql.bind(now);
    let run = sql.bind(run_id.to_owned());
    let mut due = vec![
        format!("d.table_name = {name}"),
        format!("(d.lease_until is null or d.lease_until <= {now})"),
        format!("d.last_run is distinct from {run}"),
        match &filter.ids {
            Some(ids) => format!("d.key = any({})", sql.bind(ids.clone())),
            None => format!("d.state in ('open', 'watch') and d.next_check_at <= {now}"),
        },
    ];
    due.extend(in_scope(table, filter, &mut sql));
    let processing = parts.is_processing("t", &mut sql);
    due.push(format!(
        "exists (select from {} t where {} and (d.state = 'watch' or {processing}) offset 0)",
        table.read,
        parts.is_keyed("t", "d.key"),
    ));
    let due = due.join(" and ");
    sql.push(&format!("select exists (select from tieout_checks d where {due})"));
    let mut connection = pool.acquire().await.map_err(failed(doing))?;
    let rows = sql.fetch(&mut connection).await.map_err(failed(doing))?;
    rows.first().map_or(Ok(false), |row| Cells::new(row, doing).flag(0))
}

/// What the user's row must fulfil for its check to be due in this run: the window and accounts
/// asked for, and still being stuck. A row that was sent again meanwhile is not stuck for now; one
/// under watch comes whatever its status, and one that left processing comes to be closed.
fn in_scope(table: &SourceTable, filter: &ClaimFilter, sql: &mut Sql) -> Option<String> {
    let parts = Statements::of(table);
    let narrowed = parts.narrow("t", filter, sql);
    let stuck = filter.stuck_before.filter(|_| filter.ids.is_none());
    let stuck = stuck.map(|before| {
        let (stuck, processing) = (parts.is_stuck("t", before, sql), parts.is_processing("t", sql));
        (stuck, processing)
    });
    let keyed = parts.is_keyed("t", "d.key");
    let read = &table.read;
    // OFFSET 0 keeps these look-ups by key for each due row, never a walk over the table.
    match (narrowed, stuck) {
        (None, None) => None,
        (Some(narrowed), None) => {
            Some(format!("exists (select from {read} t where {keyed} and {narrowed} offset 0)"))
        }
        (None, Some((stuck, processing))) => Some(format!(
            "(d.state = 'watch' or not exists (select from {read} t where {keyed} \
             and {processing} and not ({stuck}) offset 0))"
        )),
        (Some(narrowed), Some((stuck, processing))) => Some(format!(
            "exists (select from {read} t where {keyed} and {narrowed} \
             and (d.state = 'watch' or ({stuck}) or ({processing}) is not true) offset 0)"
        )),
    }
}

/// A due row: what is remembered, and the row itself where there still is one.
pub(super) struct Due {
    pub(super) remembered: Remembered,
    pub(super) row: Option<Transaction>,
    /// The row fulfils the mapping's `where`.
    belongs: bool,
}

/// What becomes of a due row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is looked at.
    Take(Asked),
    /// It left processing by itself: closed.
    Close,
    /// It was named, and there is nothing to ask.
    Leave,
}

/// Reads what [`due_sql`] selects; a key that the view gives twice becomes a defect.
pub(super) fn read_due(table: &SourceTable, rows: &[PgRow]) -> Result<Vec<Due>, StoreError> {
    let mut due: Vec<Due> = Vec::with_capacity(rows.len());
    for row in rows {
        let cells = Cells::new(row, CLAIMING);
        let remembered = Remembered::read(&cells, CLAIMING)?;
        let last = due.last_mut().filter(|last| last.remembered.key == remembered.key);
        if let Some(last) = last {
            if let Some(row) = &mut last.row {
                let problem = format!("{} has several rows of this key", table.read);
                row.defects.push(RowDefect { field: "read".to_owned(), problem });
            }
            continue;
        }
        // NULL: there is no such row; a condition of `where` that is neither is not fulfilled.
        let is_there = cells.maybe_text(checks::COUNT.saturating_add(1))?.is_some();
        let belongs = cells.maybe_flag(checks::COUNT)?.unwrap_or(false);
        let row = match is_there {
            true => Some(read_row(table, &cells, checks::COUNT.saturating_add(1))?),
            false => None,
        };
        due.push(Due { remembered, row, belongs });
    }
    Ok(due)
}

/// Reads the image and the cells, from this place on.
pub(super) fn read_row(
    table: &SourceTable,
    cells: &Cells<'_>,
    from: usize,
) -> Result<Transaction, StoreError> {
    let image = cells.text(from)?;
    let first = from.saturating_add(1);
    let texts: Vec<Option<String>> = (0..table.cells.len())
        .map(|index| cells.maybe_text(first.saturating_add(index)))
        .collect::<Result<_, _>>()?;
    Ok(decode(table, &texts, image))
}

impl Due {
    pub(super) fn fate(&self, kicked: bool) -> Fate {
        if kicked && self.remembered.open_case.is_none() {
            return Fate::Leave;
        }
        let state = self.remembered.state.as_str();
        let Some(row) = &self.row else {
            return if matches!(state, "open" | "watch") { Fate::Close } else { Fate::Leave };
        };
        match state {
            "watch" => Fate::Take(Asked::Watch),
            "open" if left_as_money_was_seen(&self.remembered.history, row) => {
                Fate::Take(Asked::Watch)
            }
            // A case whose row ended meanwhile: money found for it would contradict its end.
            "case" if !row.processing => Fate::Take(Asked::Watch),
            "case" => Fate::Take(Asked::Kick),
            _other if row.processing && self.belongs && kicked => Fate::Take(Asked::Kick),
            _other if row.processing && self.belongs => Fate::Take(Asked::Run),
            "open" => Fate::Close,
            _ended => Fate::Leave,
        }
    }

    fn why_closed(&self) -> String {
        match &self.row {
            None => "the row is gone from its table".to_owned(),
            Some(row) if row.processing => {
                "the row no longer fits the mapping's `where`".to_owned()
            }
            Some(row) => format!("the row left processing by itself: it is `{}`", row.status),
        }
    }

    /// As a claim, with the memory of the row as it is now.
    pub(super) fn claimed(self, now: Instant, token: i64, kicked: bool) -> Option<Claimed> {
        let Fate::Take(asked) = self.fate(kicked) else { return None };
        let row = self.row?;
        let mut history = self.remembered.history;
        if self.remembered.image != row.image {
            history.fingerprint_seen_at = now;
        }
        Some(Claimed {
            asked,
            history,
            token,
            open_case: self.remembered.open_case,
            events: self.remembered.events,
            row,
        })
    }
}

pub(super) struct Claim<'a> {
    pub(super) run_id: &'a str,
    pub(super) table: &'a SourceTable,
    pub(super) filter: &'a ClaimFilter,
    pub(super) now: Instant,
    pub(super) lease_until: Instant,
}

pub(super) async fn claim_due(
    pool: &PgPool,
    claim: &Claim<'_>,
    limit: i64,
) -> Result<Vec<Claimed>, StoreError> {
    let mut claimed = Vec::new();
    // Rows that left processing by themselves are closed and not counted: look further.
    loop {
        let have = i64::try_from(claimed.len()).unwrap_or(i64::MAX);
        let wanted = limit.saturating_sub(have);
        if wanted <= 0 {
            return Ok(claimed);
        }
        let (taken, seen) = patiently(async || {
            let mut tx = begin(pool).await.map_err(failed(CLAIMING))?;
            let batch = claim_batch(&mut tx, claim, wanted).await?;
            // A commit waits for the disk, and without due rows nothing is to be kept.
            let ended = if batch.1 == 0 { tx.rollback().await } else { tx.commit().await };
            ended.map_err(failed(CLAIMING))?;
            Ok(batch)
        })
        .await?;
        let is_last = i64::try_from(seen).unwrap_or(i64::MAX) < wanted || taken.len() == seen;
        claimed.extend(taken);
        // Named rows come once: what is left alone would be found again and again.
        if is_last || claim.filter.ids.is_some() {
            return Ok(claimed);
        }
    }
}

/// One batch: what was claimed, and how many due rows were seen.
async fn claim_batch(
    connection: &mut PgConnection,
    claim: &Claim<'_>,
    limit: i64,
) -> Result<(Vec<Claimed>, usize), StoreError> {
    let kicked = claim.filter.kicked;
    let sql = due_sql(claim.table, claim.filter, limit, claim.now, Some(claim.run_id));
    let rows = sql.fetch(&mut *connection).await.map_err(failed(CLAIMING))?;
    let due = read_due(claim.table, &rows)?;
    drop(rows);
    let seen = due.len();
    if seen == 0 {
        return Ok((Vec::new(), 0));
    }
    let (left, kept): (Vec<Due>, Vec<Due>) = due
        .into_iter()
        .filter(|due| due.fate(kicked) != Fate::Leave)
        .partition(|due| due.fate(kicked) == Fate::Close);
    let hidden = hidden(connection, claim, &left).await?;
    let is_hidden = |due: &Due| hidden.contains(&due.remembered.key);
    let (unseen, left): (Vec<Due>, Vec<Due>) =
        left.into_iter().partition(|due| is_hidden(due) && looks_again(claim, due).is_some());
    put_off(connection, claim, &unseen).await.map_err(failed(CLAIMING))?;
    close_left(connection, claim, &left).await.map_err(failed(CLAIMING))?;
    let gone = left.iter().filter(|due| due.row.is_none() && !is_hidden(due));
    end_handbacks(connection, claim, gone.map(|due| due.remembered.key.clone()).collect()).await?;
    let ended = left.iter().chain(&unseen).chain(&kept);
    count_lapsed(connection, claim, ended).await.map_err(failed(CLAIMING))?;
    lease(connection, claim, &kept).await.map_err(failed(CLAIMING))?;
    let mut claimed: Vec<Claimed> = kept
        .into_iter()
        .filter_map(|due| {
            let token = due.remembered.token.saturating_add(1);
            due.claimed(claim.now, token, kicked)
        })
        .collect();
    add_handbacks(connection, claim.table, &mut claimed, Some(claim.now)).await?;
    Ok((claimed, seen))
}

/// When a row that its view does not show is looked for again, where it is.
fn looks_again(claim: &Claim<'_>, due: &Due) -> Option<Instant> {
    claim.table.looks_again(due.remembered.history.watch_from, claim.now)
}

/// Rows under watch that are gone from what is read and are still in what is written.
async fn hidden(
    connection: &mut PgConnection,
    claim: &Claim<'_>,
    left: &[Due],
) -> Result<HashSet<String>, StoreError> {
    let table = claim.table;
    let is_gone = |due: &&Due| due.row.is_none() && due.remembered.state == "watch";
    let keys: Vec<&str> =
        left.iter().filter(is_gone).map(|due| due.remembered.key.as_str()).collect();
    if keys.is_empty() || table.write_is_read {
        return Ok(HashSet::new());
    }
    let parts = Statements::of(table);
    let mut sql = Sql::default();
    let (mut arrays, mut names) = parts.bind_keys(&mut sql, keys.iter().copied());
    let keys: Vec<String> = keys.into_iter().map(str::to_owned).collect();
    arrays.push(format!("{}::text[]", sql.bind(keys)));
    names.push("key".to_owned());
    // OFFSET 0 keeps it a look-up by key for each row.
    sql.push(&format!(
        "select u.key from unnest({}) as u({}) \
         where exists (select from {} as w where {} offset 0)",
        arrays.join(", "),
        names.join(", "),
        table.write,
        parts.is_key_of("w", true),
    ));
    let rows = sql.fetch(connection).await.map_err(failed(CLAIMING))?;
    rows.iter().map(|row| Cells::new(row, CLAIMING).text(0)).collect()
}

/// Nobody charges for a row that is gone: its open hand-back ends, and that is told.
async fn end_handbacks(
    connection: &mut PgConnection,
    claim: &Claim<'_>,
    gone: Vec<String>,
) -> Result<(), StoreError> {
    if gone.is_empty() {
        return Ok(());
    }
    let mut sql = Sql::default();
    let name = sql.bind(claim.table.settings.name.clone());
    let now = sql.bind(claim.now);
    let reason = sql.bind(ROW_GONE.to_owned());
    let keys = sql.bind(gone);
    // Whoever ends several at once does so in one order.
    sql.push(&format!(
        "with open as (select key, number from tieout_handbacks where table_name = {name} \
         and key = any({keys}) and taken_at is null and ended_at is null \
         order by key, number for update) \
         update tieout_handbacks h set ended_at = {now}, end_reason = {reason} from open o \
         where h.table_name = {name} and h.key = o.key and h.number = o.number returning h.key"
    ));
    let rows = sql.fetch(connection).await.map_err(failed(CLAIMING))?;
    let ended: Vec<String> =
        rows.iter().map(|row| Cells::new(row, CLAIMING).text(0)).collect::<Result<_, _>>()?;
    claim.table.tell_gone(&ended);
    Ok(())
}

/// Looks for rows again that their view does not show, and tells of them.
async fn put_off(
    connection: &mut PgConnection,
    claim: &Claim<'_>,
    unseen: &[Due],
) -> sqlx::Result<()> {
    let again = |due: &Due| looks_again(claim, due).unwrap_or(claim.now);
    let keys: Vec<&str> = unseen.iter().map(|due| due.remembered.key.as_str()).collect();
    if keys.is_empty() {
        return Ok(());
    }
    claim.table.tell_unseen(&keys);
    let mut sql = Sql::default();
    let name = sql.bind(claim.table.settings.name.clone());
    let run = sql.bind(claim.run_id.to_owned());
    let keys = sql.bind(keys.into_iter().map(str::to_owned).collect::<Vec<_>>());
    let times = sql.bind(unseen.iter().map(again).collect::<Vec<_>>());
    sql.push(&format!(
        "update tieout_checks c set next_check_at = u.again, lease_run = null, \
         lease_until = null, last_run = {run} \
         from unnest({keys}::text[], {times}::timestamptz[]) as u(key, again) \
         where c.table_name = {name} and c.key = u.key"
    ));
    sql.run(connection).await?;
    Ok(())
}

/// Takes the leases and counts the rows as claimed.
async fn lease(connection: &mut PgConnection, claim: &Claim<'_>, kept: &[Due]) -> sqlx::Result<()> {
    let rows: Vec<(&Remembered, &Transaction)> =
        kept.iter().filter_map(|due| due.row.as_ref().map(|row| (&due.remembered, row))).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let mut sums = Sums::new();
    let (mut currencies, mut amounts) = (Vec::new(), Vec::new());
    for (_, row) in &rows {
        let (currency, amount_minor) = row.total_bucket();
        count_row(&mut sums, &claim.table.settings.name, &currency, amount_minor);
        currencies.push(currency);
        amounts.push(amount_minor);
    }
    let mut sql = Sql::default();
    let name = sql.bind(claim.table.settings.name.clone());
    let run = sql.bind(claim.run_id.to_owned());
    let until = sql.bind(claim.lease_until);
    let now = sql.bind(claim.now);
    let keys = sql.bind(rows.iter().map(|(check, _)| check.key.clone()).collect::<Vec<_>>());
    let currencies = sql.bind(currencies);
    let amounts = sql.bind(amounts);
    let created = sql.bind(rows.iter().map(|(_, row)| row.created_at).collect::<Vec<_>>());
    // Only images that changed travel back. A watch keeps the image of the row's end, by which a
    // row that its worker took since is told.
    let is_news =
        |check: &Remembered, row: &Transaction| check.state != "watch" && check.image != row.image;
    let images = sql.bind(
        rows.iter()
            .map(|(check, row)| is_news(check, row).then(|| row.image.clone()))
            .collect::<Vec<_>>(),
    );
    sql.push(&format!(
        "update tieout_checks c set lease_token = c.lease_token + 1, lease_run = {run}, \
         lease_until = {until}, last_run = {run}, currency = u.currency, \
         amount_minor = u.amount, row_created_at = u.created, image = coalesce(u.image, c.image), \
         fingerprint_seen_at = case when u.image is null then c.fingerprint_seen_at else {now} end \
         from unnest({keys}::text[], {currencies}::text[], {amounts}::bigint[], \
         {created}::timestamptz[], {images}::text[]) as u(key, currency, amount, created, image) \
         where c.table_name = {name} and c.key = u.key"
    ));
    sql.run(&mut *connection).await?;
    add_totals(connection, claim.run_id, "claimed", &sums).await
}

/// A lease that ran out unused is counted as released by the run that held it.
async fn count_lapsed(
    connection: &mut PgConnection,
    claim: &Claim<'_>,
    due: impl Iterator<Item = &Due>,
) -> sqlx::Result<()> {
    let mut lapsed: BTreeMap<&str, Sums> = BTreeMap::new();
    for Due { remembered, .. } in due {
        let Some(run) = &remembered.lease_run else { continue };
        let sums = lapsed.entry(run).or_default();
        let name = &claim.table.settings.name;
        count_row(sums, name, &remembered.currency, remembered.amount_minor);
    }
    for (run, sums) in lapsed {
        add_totals(&mut *connection, run, "released", &sums).await?;
    }
    Ok(())
}

/// Closes rows that left processing by themselves, and their open cases.
async fn close_left(
    connection: &mut PgConnection,
    claim: &Claim<'_>,
    left: &[Due],
) -> sqlx::Result<()> {
    if left.is_empty() {
        return Ok(());
    }
    let keys: Vec<String> = left.iter().map(|due| due.remembered.key.clone()).collect();
    let images: Vec<Option<String>> =
        left.iter().map(|due| due.row.as_ref().map(|row| row.image.clone())).collect();
    let mut sql = Sql::default();
    let name = sql.bind(claim.table.settings.name.clone());
    let run = sql.bind(claim.run_id.to_owned());
    let keys_place = sql.bind(keys);
    let images = sql.bind(images);
    sql.push(&format!(
        "update tieout_checks c set state = 'closed', next_check_at = null, lease_run = null, \
         lease_until = null, last_run = {run}, image = coalesce(u.image, c.image) \
         from unnest({keys_place}::text[], {images}::text[]) as u(key, image) \
         where c.table_name = {name} and c.key = u.key"
    ));
    sql.run(&mut *connection).await?;
    let cased: Vec<&Due> = left.iter().filter(|due| due.remembered.open_case.is_some()).collect();
    if cased.is_empty() {
        return Ok(());
    }
    let numbers: Vec<Option<i64>> = cased.iter().map(|due| due.remembered.open_case).collect();
    let resolutions: Vec<String> = cased.iter().map(|due| due.why_closed()).collect();
    let mut sql = Sql::default();
    let run = sql.bind(claim.run_id.to_owned());
    let now = sql.bind(claim.now);
    let numbers = sql.bind(numbers);
    let resolutions = sql.bind(resolutions);
    sql.push(&format!(
        "update tieout_cases k set state = 'closed', closed_at = {now}, closed_run = {run}, \
         resolution = u.resolution from unnest({numbers}::bigint[], {resolutions}::text[]) \
         as u(number, resolution) where k.number = u.number and k.state = 'open'"
    ));
    sql.run(&mut *connection).await?;
    let numbers: Vec<i64> = cased.iter().filter_map(|due| due.remembered.open_case).collect();
    end_outrun(connection, claim.run_id, &numbers, claim.now).await
}

/// Adds each row's last hand-back. Where the worker is told by the status, a row that is another
/// than the hand-back left, and that offers it no more, was taken: `now` notes when that was seen.
pub(super) async fn add_handbacks(
    connection: &mut PgConnection,
    table: &SourceTable,
    claimed: &mut [Claimed],
    now: Option<Instant>,
) -> Result<(), StoreError> {
    let was_handed_back = |claimed: &&Claimed| claimed.history.handbacks > 0;
    let keys: Vec<String> =
        claimed.iter().filter(was_handed_back).map(|claimed| claimed.row.key.id.clone()).collect();
    let name = &table.settings.name;
    let mut past = last_handbacks(&mut *connection, name, &keys).await?;
    let mut taken = Vec::new();
    for claimed in claimed.iter_mut() {
        let Some((mut handback, may_be_taken)) = past.remove(&claimed.row.key.id) else { continue };
        let seen_at = claimed.history.fingerprint_seen_at;
        if may_be_taken && table.is_taken(&claimed.row.status, handback.at, seen_at) {
            if let Some(now) = now {
                handback = handback.taken(now);
            }
            taken.push(claimed.row.key.id.clone());
        }
        claimed.history.last_handback = Some(handback);
    }
    let Some(now) = now.filter(|_| !taken.is_empty()) else { return Ok(()) };
    let mut sql = Sql::new(
        "update tieout_handbacks h set taken_at = $1, ended_at = null, end_reason = null \
         where h.table_name = $2 and h.key = any($3) and h.taken_at is null \
         and (h.ended_at is null or h.end_reason in ('lapsed', 'sibling_pending')) \
         and not exists (select from tieout_handbacks n where n.table_name = h.table_name \
         and n.key = h.key and n.number > h.number)",
    );
    sql.bind(now);
    sql.bind(name.clone());
    sql.bind(taken);
    sql.run(connection).await.map_err(failed(CLAIMING))?;
    Ok(())
}

pub(super) async fn release(
    pool: &PgPool,
    run_id: &str,
    rows: &[Claimed],
    now: Instant,
) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    patiently(async || give_back(pool, run_id, rows, now).await).await
}

/// Due at once, behind what is due by now: rows that every run only gives back hold up no other.
async fn give_back(
    pool: &PgPool,
    run_id: &str,
    rows: &[Claimed],
    now: Instant,
) -> Result<(), StoreError> {
    let doing = "giving rows back";
    let mut tx = begin(pool).await.map_err(failed(doing))?;
    let mut sql = Sql::default();
    let run = sql.bind(run_id.to_owned());
    let now = sql.bind(now);
    let tables = sql.bind(rows.iter().map(|row| row.row.key.table.clone()).collect::<Vec<_>>());
    let keys = sql.bind(rows.iter().map(|row| row.row.key.id.clone()).collect::<Vec<_>>());
    let tokens = sql.bind(rows.iter().map(|row| row.token).collect::<Vec<_>>());
    sql.push(&format!(
        "update tieout_checks c set lease_run = null, lease_until = null, \
         next_check_at = case when c.next_check_at is not null then {now} end \
         from unnest({tables}::text[], {keys}::text[], {tokens}::bigint[]) as u(t, key, token) \
         where c.table_name = u.t and c.key = u.key and c.lease_token = u.token \
         and {} returning c.table_name, c.currency, c.amount_minor",
        is_leased_by(&run),
    ));
    let given_back = sql.fetch(&mut tx).await.map_err(failed(doing))?;
    let mut sums = Sums::new();
    for row in &given_back {
        let cells = Cells::new(row, doing);
        count_row(&mut sums, &cells.text(0)?, &cells.text(1)?, cells.big(2)?);
    }
    add_totals(&mut tx, run_id, "released", &sums).await.map_err(failed(doing))?;
    tx.commit().await.map_err(failed(doing))
}
