//! Stuck rows are taken in, leased, and given back.
//!
//! One immediate transaction holds the file's write lock from the first look to the commit, so
//! that nobody leases a row that another process is leasing.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use sqlx::sqlite::SqliteConnection;

use crate::decide::decision::{Asked, History};
use crate::model::time::{Instant, to_text};
use crate::store::effects::left_as_money_was_seen;
use crate::store::error::StoreError;
use crate::store::records::{ClaimFilter, Claimed, LAST_LOOK, ROW_GONE};
use crate::store::source_table::SourceTable;
use crate::store::sqlite::apply::end_untaken;
use crate::store::sqlite::cases::close_rows;
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::rows::{
    Found, LastHandback, MEMORY, Memory, last_handbacks, memory_of, read, written,
};
use crate::store::sqlite::runs::{Buckets, add_to, count};
use crate::store::sqlite::sql::{Value, execute, execute_rows, fetch, fetch_each, json_set};
use crate::store::sqlite::statements::{
    Statement, belongs, has_status, image, in_scope, is_named, is_processing, is_stuck, made,
    named, narrows, read_has_key, read_key,
};

const ENROLLING: &str = "taking stuck rows in";
const CLAIMING: &str = "claiming due rows";
const RELEASING: &str = "giving rows back";

/// What to say of a case whose row is gone.
const GONE: &str = "the row is gone from its table";

/// Why a row is due.
#[derive(Clone, Copy)]
pub(super) struct Turn<'a> {
    pub(super) table: &'a SourceTable,
    pub(super) filter: &'a ClaimFilter,
    /// `None`: a preview, which belongs to no run.
    pub(super) run_id: Option<&'a str>,
    pub(super) limit: i64,
    pub(super) now: Instant,
}

impl Turn<'_> {
    fn name(&self) -> &str {
        &self.table.settings.name
    }
}

/// The table's rows as `t`. Those that are named are looked up by their keys, each by itself: the
/// others are not walked through for a few.
fn rows_of(statement: &mut Statement, table: &SourceTable, filter: &ClaimFilter) -> String {
    let Some(ids) = &filter.ids else { return format!("{} as t", table.read) };
    let ids = statement.text(json_set(ids));
    let wanted = read_has_key(table, "t", "i.value");
    format!("json_each({ids}) i cross join {} as t on {wanted}", table.read)
}

/// `from …` of the rows that are stuck and unknown, or changed since they were decided.
fn stuck_rows(statement: &mut Statement, turn: &Turn<'_>) -> String {
    let Turn { table, filter, now, .. } = turn;
    let name = statement.text(turn.name());
    let now = statement.text(to_text(*now));
    let conditions = [
        is_processing(table, "t"),
        belongs(table, "t"),
        is_named(table, "t"),
        in_scope(statement, table, "t", filter),
        is_stuck(statement, table, "t", filter),
        format!(
            "(c.key is null or (c.state <> 'open' and c.image <> {} \
             and (c.lease_until is null or c.lease_until <= {now})))",
            image(table, |column| named("t", column)),
        ),
    ];
    format!(
        "from {} left join tieout_checks c on c.table_name = {name} and c.key = {} where {}",
        rows_of(statement, table, filter),
        read_key(table, "t"),
        conditions.join(" and "),
    )
}

/// Of the rows that are named, those that are stuck for long enough and unknown.
pub(super) fn new_among(table: &SourceTable, filter: &ClaimFilter) -> Statement {
    let mut statement = Statement::default();
    let name = statement.text(&table.settings.name);
    let unnamed = ClaimFilter { ids: None, ..filter.clone() };
    let conditions = [
        is_processing(table, "t"),
        belongs(table, "t"),
        in_scope(&mut statement, table, "t", filter),
        is_stuck(&mut statement, table, "t", &unnamed),
        format!(
            "not exists (select 1 from tieout_checks c where c.table_name = {name} and c.key = {})",
            read_key(table, "t"),
        ),
    ];
    let rows = rows_of(&mut statement, table, filter);
    let key = read_key(table, "t");
    statement.push(&format!("select {key} from {rows} where {}", conditions.join(" and ")));
    statement
}

pub(super) async fn enrol(
    connection: &mut SqliteConnection,
    turn: &Turn<'_>,
) -> Result<u64, StoreError> {
    let stuck = execute(connection, ENROLLING, enrolling(turn).query()).await?;
    if !turn.filter.given_up {
        return Ok(stuck);
    }
    let given_up = execute(connection, ENROLLING, watching(turn).query()).await?;
    Ok(stuck.saturating_add(given_up))
}

/// `from …` of the rows in scope that were given up, whoever did.
fn given_up_rows(statement: &mut Statement, turn: &Turn<'_>) -> String {
    let Turn { table, filter, .. } = turn;
    let name = statement.text(turn.name());
    let is_ended = match filter.ended {
        true => format!("not ({})", is_processing(table, "t")),
        false => has_status(table, "t", &table.given_up_values()),
    };
    let conditions = [
        is_ended,
        belongs(table, "t"),
        is_named(table, "t"),
        in_scope(statement, table, "t", filter),
        "(c.key is null or (c.state in ('closed', 'parked', 'watch') and c.lease_run is null))"
            .to_owned(),
    ];
    format!(
        "from {} left join tieout_checks c on c.table_name = {name} and c.key = {} where {}",
        rows_of(statement, table, filter),
        read_key(table, "t"),
        conditions.join(" and "),
    )
}

/// One look at each row that was given up, which changes no row.
fn watching(turn: &Turn<'_>) -> Statement {
    let mut statement = Statement::default();
    let name = statement.text(turn.name());
    let now = statement.text(to_text(turn.now));
    let step = statement.int(i64::from(LAST_LOOK));
    let due = turn_of(&mut statement, turn);
    let from = given_up_rows(&mut statement, turn);
    statement.push(&format!(
        "insert into tieout_checks as k (table_name, key, state, image, first_seen_at, \
         fingerprint_seen_at, aged_from, next_check_at, watch_from, watch_step) \
         select {name}, {}, 'watch', {}, {now}, {now}, {now}, {due}, {now}, {step} {from} \
         on conflict (table_name, key) do update set state = 'watch', \
         next_check_at = excluded.next_check_at, \
         watch_from = coalesce(k.watch_from, excluded.watch_from), \
         watch_step = case k.state when 'watch' then k.watch_step else excluded.watch_step end",
        read_key(turn.table, "t"),
        image(turn.table, |column| named("t", column)),
    ));
    statement
}

/// How SQLite would take stuck rows in and look for due ones, step by step.
pub(super) async fn plan(
    connection: &mut SqliteConnection,
    turn: &Turn<'_>,
) -> Result<Vec<String>, StoreError> {
    let mut steps = Vec::new();
    for statement in [enrolling(turn), choosing(turn, turn.limit)] {
        let rows = fetch(connection, CLAIMING, statement.explained().query()).await?;
        for row in &rows {
            steps.push(Cells::new(row, CLAIMING).text(3)?);
        }
    }
    Ok(steps)
}

fn enrolling(turn: &Turn<'_>) -> Statement {
    let mut statement = Statement::default();
    let name = statement.text(turn.name());
    let now = statement.text(to_text(turn.now));
    let due = turn_of(&mut statement, turn);
    let from = stuck_rows(&mut statement, turn);
    statement.push(&format!(
        "insert into tieout_checks (table_name, key, state, image, first_seen_at, \
         fingerprint_seen_at, aged_from, next_check_at) \
         select {name}, {}, 'open', {}, {now}, {now}, {now}, {due} {from} \
         on conflict (table_name, key) do update set state = 'open', image = excluded.image, \
         fingerprint_seen_at = excluded.fingerprint_seen_at, aged_from = excluded.aged_from, \
         next_check_at = excluded.next_check_at, unanswered_since = null, unanswered = 0, \
         checks = 0, misses = '[]', watch_from = null, watch_step = 0, ended_as = null",
        read_key(turn.table, "t"),
        image(turn.table, |column| named("t", column)),
    ));
    statement
}

/// When a row that is taken in is due: now, and a microsecond sooner for each row that was made
/// after it. The batches then follow each other in the rows' time, and the transactions of a
/// batch's window are not listed for the next batch again.
fn turn_of(statement: &mut Statement, turn: &Turn<'_>) -> String {
    let micros = statement.int(turn.now.timestamp_micros());
    let (made, key) = (made(turn.table, "t"), read_key(turn.table, "t"));
    let at = format!("({micros} - row_number() over (order by {made} desc, {key} desc))");
    // As `model::time::to_text` writes it.
    format!(
        "strftime('%Y-%m-%dT%H:%M:%S', {at} / 1000000, 'unixepoch') \
         || printf('.%06dZ', {at} % 1000000)"
    )
}

/// Rows whose turn it is, in their order, as far as `tieout_checks` and the filter tell.
async fn candidates(
    connection: &mut SqliteConnection,
    turn: &Turn<'_>,
    limit: i64,
) -> Result<Vec<Memory>, StoreError> {
    let statement = choosing(turn, limit);
    fetch_each(connection, CLAIMING, statement.query(), memory_of).await
}

fn choosing(turn: &Turn<'_>, limit: i64) -> Statement {
    let mut statement = Statement::default();
    let conditions = due(&mut statement, turn);
    let limit = statement.int(limit);
    statement.push(&format!(
        "select {MEMORY} from tieout_checks c where {} \
         order by c.next_check_at, c.key limit {limit}",
        conditions.join(" and "),
    ));
    statement
}

/// Whether a row is due that the run did not take: one that left processing is only closed.
pub(super) async fn is_due(
    connection: &mut SqliteConnection,
    turn: &Turn<'_>,
) -> Result<bool, StoreError> {
    let mut statement = Statement::default();
    let mut conditions = due(&mut statement, turn);
    conditions.push(format!(
        "exists (select 1 from {} as t where {} and (c.state = 'watch' or {}))",
        turn.table.read,
        read_has_key(turn.table, "t", "c.key"),
        is_processing(turn.table, "t"),
    ));
    let conditions = conditions.join(" and ");
    statement.push(&format!("select 1 from tieout_checks c where {conditions} limit 1"));
    let rows = fetch(connection, "looking for rows still due", statement.query()).await?;
    Ok(!rows.is_empty())
}

/// What a check `c` must fulfil to be due.
fn due(statement: &mut Statement, turn: &Turn<'_>) -> Vec<String> {
    let Turn { table, filter, run_id, now, .. } = turn;
    let name = statement.text(turn.name());
    let now = statement.text(to_text(*now));
    let run = statement.text(run_id.unwrap_or_default());
    let mut conditions = vec![
        format!("c.table_name = {name}"),
        format!("(c.lease_until is null or c.lease_until <= {now})"),
        format!("c.last_run is not {run}"),
    ];
    match &filter.ids {
        Some(ids) => {
            let ids = statement.text(json_set(ids));
            conditions.push(format!("c.key in (select value from json_each({ids}))"));
        }
        None => {
            conditions.push(format!("c.state in ('open', 'watch') and c.next_check_at <= {now}"));
        }
    }
    if narrows(filter) || filter.stuck_before.is_some() {
        let is_row = read_has_key(table, "t", "c.key");
        let scope = in_scope(statement, table, "t", filter);
        let stuck = is_stuck(statement, table, "t", filter);
        let fits = format!(
            "exists (select 1 from {} as t where {is_row} and {scope} \
             and (c.state = 'watch' or ({stuck}) or not ({})))",
            table.read,
            is_processing(table, "t"),
        );
        // A row that is gone has no window to be outside of; it is closed by a whole run.
        let gone = format!("not exists (select 1 from {} as t where {is_row})", table.read);
        conditions.push(if narrows(filter) { fits } else { format!("({fits} or {gone})") });
    }
    conditions
}

/// What becomes of a candidate.
enum Fate {
    /// It is claimed.
    Take(Box<Claimed>),
    /// It left processing by itself, for this reason.
    Close(String),
    /// It is gone, with whatever it was handed back for.
    Gone,
    /// It is under watch and there, and its view does not show it: looked for again at this time.
    Unseen(Instant),
    /// It was named, and there is nothing to ask.
    Leave,
}

fn fate(
    memory: &Memory,
    found: Option<Found>,
    handback: Option<LastHandback>,
    kicked: bool,
) -> Fate {
    if kicked && memory.open_case.is_none() {
        return Fate::Leave;
    }
    let Some(Found { row, belongs }) = found else {
        return match memory.state.as_str() {
            "open" | "watch" => Fate::Gone,
            _other => Fate::Leave,
        };
    };
    let is_stuck = row.processing && belongs;
    let asked = match memory.state.as_str() {
        "watch" => Asked::Watch,
        "open" if left_as_money_was_seen(&memory.history, &row) => Asked::Watch,
        // A case whose row ended meanwhile: money found for it would contradict its end.
        "case" if !row.processing => Asked::Watch,
        "case" => Asked::Kick,
        _other if is_stuck && kicked => Asked::Kick,
        _other if is_stuck => Asked::Run,
        "open" if row.processing => {
            return Fate::Close("the row no longer fits the mapping's `where`".to_owned());
        }
        "open" => {
            return Fate::Close(format!("the row's status became `{}` by itself", row.status));
        }
        _other => return Fate::Leave,
    };
    let mut history = memory.history.clone();
    history.first_account = history.first_account.or_else(|| Some(row.account.text().to_owned()));
    history.last_handback = handback.map(|handback| handback.past);
    Fate::Take(Box::new(Claimed {
        row,
        history,
        asked,
        token: memory.lease_token,
        open_case: memory.open_case,
        events: memory.events,
    }))
}

/// Candidates with their fates, each with what is remembered of it.
async fn judged(
    connection: &mut SqliteConnection,
    turn: &Turn<'_>,
    memories: Vec<Memory>,
) -> Result<Vec<(Memory, Fate)>, StoreError> {
    let keys: Vec<&str> = memories.iter().map(|memory| memory.key.as_str()).collect();
    let mut rows = read(connection, turn.table, &keys).await?;
    let handed: Vec<(&str, u32)> = memories
        .iter()
        .filter(|memory| memory.history.handbacks > 0)
        .map(|memory| (memory.key.as_str(), memory.history.handbacks))
        .collect();
    let mut handbacks = last_handbacks(connection, turn.name(), &handed).await?;
    let unseen = unseen(connection, turn, &memories, &rows).await?;
    let judge = |memory: Memory| {
        let found = rows.remove(&memory.key);
        let mut handback = handbacks.remove(&memory.key);
        if let (Some(found), Some(handback)) = (&found, &mut handback)
            && handback.may_be_taken
            && is_taken(turn, &memory, found, handback)
        {
            handback.past = handback.past.clone().taken(turn.now);
        }
        let mut fate = fate(&memory, found, handback, turn.filter.kicked);
        if let Fate::Take(claimed) = &mut fate
            && claimed.row.image != memory.image
        {
            claimed.history.fingerprint_seen_at = turn.now;
        }
        if matches!(fate, Fate::Gone) && unseen.contains(&memory.key) {
            let again = turn.table.looks_again(memory.history.watch_from, turn.now);
            fate = again.map_or_else(|| Fate::Close(GONE.to_owned()), Fate::Unseen);
        }
        (memory, fate)
    };
    Ok(memories.into_iter().map(judge).collect())
}

/// Rows under watch that are gone from what is read and are still in what is written.
async fn unseen(
    connection: &mut SqliteConnection,
    turn: &Turn<'_>,
    memories: &[Memory],
    rows: &HashMap<String, Found>,
) -> Result<HashSet<String>, StoreError> {
    let is_gone = |memory: &&Memory| memory.state == "watch" && !rows.contains_key(&memory.key);
    let gone: Vec<&str> =
        memories.iter().filter(is_gone).map(|memory| memory.key.as_str()).collect();
    match gone.is_empty() || turn.table.write_is_read {
        true => Ok(HashSet::new()),
        false => written(connection, turn.table, &gone).await,
    }
}

/// By the status channel a hand-back is taken when the row is another than it left, and offers it
/// no more.
fn is_taken(turn: &Turn<'_>, memory: &Memory, found: &Found, handback: &LastHandback) -> bool {
    let is_news = found.row.image != memory.image;
    let seen_at = if is_news { turn.now } else { memory.history.fingerprint_seen_at };
    turn.table.is_taken(&found.row.status, handback.past.at, seen_at)
}

pub(super) async fn claim_due(
    connection: &mut SqliteConnection,
    turn: &Turn<'_>,
    run_id: &str,
    lease_until: Instant,
) -> Result<Vec<Claimed>, StoreError> {
    let mut claimed: Vec<Claimed> = Vec::new();
    loop {
        let taken = i64::try_from(claimed.len()).unwrap_or(i64::MAX);
        let room = turn.limit.saturating_sub(taken);
        let is_named = turn.filter.ids.is_some();
        let memories = if room > 0 {
            // Named rows come once: what is left alone would be found again and again.
            let page = if is_named { i64::MAX } else { room };
            candidates(connection, turn, page).await?
        } else {
            Vec::new()
        };
        if memories.is_empty() {
            return Ok(claimed);
        }
        let judged = judged(connection, turn, memories).await?;
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        claimed.extend(take(connection, turn, run_id, lease_until, judged, room).await?);
        if is_named {
            return Ok(claimed);
        }
    }
}

/// Leases what is to be taken, closes what left by itself, counts both sides.
async fn take(
    connection: &mut SqliteConnection,
    turn: &Turn<'_>,
    run_id: &str,
    lease_until: Instant,
    judged: Vec<(Memory, Fate)>,
    room: usize,
) -> Result<Vec<Claimed>, StoreError> {
    let (mut claimed, mut closed, mut unseen) = (Vec::new(), Vec::new(), Vec::new());
    let mut gone = Vec::new();
    let mut totals = Buckets::new();
    let mut lapsed: BTreeMap<String, Buckets> = BTreeMap::new();
    for (memory, fate) in judged {
        match fate {
            Fate::Leave => continue,
            Fate::Take(_) if claimed.len() >= room => continue,
            Fate::Take(mut row) => {
                row.token = memory.lease_token.saturating_add(1);
                let (currency, amount) = row.row.total_bucket();
                add_to(&mut totals, &currency, amount);
                claimed.push(*row);
            }
            Fate::Close(why) => closed.push((memory.key.clone(), why)),
            Fate::Gone => {
                gone.push(memory.key.clone());
                closed.push((memory.key.clone(), GONE.to_owned()));
            }
            Fate::Unseen(again) => unseen.push((memory.key.clone(), to_text(again))),
        }
        if let Some((run, _)) = &memory.lease {
            let buckets = lapsed.entry(run.clone()).or_default();
            add_to(buckets, &memory.currency, memory.amount_minor);
        }
    }
    lease(connection, turn, run_id, lease_until, &claimed).await?;
    mark_taken(connection, turn, &claimed).await?;
    close(connection, turn, run_id, &closed).await?;
    end_handbacks(connection, turn, &gone).await?;
    put_off(connection, turn, &unseen).await?;
    count(connection, run_id, turn.name(), "claimed", &totals).await?;
    for (run, buckets) in &lapsed {
        count(connection, run, turn.name(), "released", buckets).await?;
    }
    Ok(claimed)
}

async fn lease(
    connection: &mut SqliteConnection,
    turn: &Turn<'_>,
    run_id: &str,
    lease_until: Instant,
    claimed: &[Claimed],
) -> Result<(), StoreError> {
    if claimed.is_empty() {
        return Ok(());
    }
    let (table, run) = (Arc::from(turn.name()), Arc::from(run_id));
    let lease_until = Arc::from(to_text(lease_until));
    let rows = claimed.iter().map(|claimed| {
        let (currency, amount) = claimed.row.total_bucket();
        vec![
            Value::from(&table),
            Value::from(&claimed.row.key.id),
            Value::from(claimed.token),
            Value::from(&claimed.history.first_account),
            Value::from(currency),
            Value::from(amount),
            Value::from(to_text(claimed.row.created_at)),
            Value::from(&claimed.row.image),
            Value::from(to_text(claimed.history.fingerprint_seen_at)),
            Value::from(&run),
            Value::from(&lease_until),
        ]
    });
    let sql = |rows: &str| {
        format!(
            "update tieout_checks as c set lease_token = j.column3, account = j.column4, \
             currency = j.column5, amount_minor = j.column6, row_created_at = j.column7, \
             image = case c.state when 'watch' then c.image else j.column8 end, \
             fingerprint_seen_at = \
             case c.state when 'watch' then c.fingerprint_seen_at else j.column9 end, \
             lease_run = j.column10, lease_until = j.column11, last_run = j.column10 \
             from (values {rows}) j where c.table_name = +j.column1 and c.key = +j.column2"
        )
    };
    execute_rows(connection, CLAIMING, rows, sql).await
}

async fn mark_taken(
    connection: &mut SqliteConnection,
    turn: &Turn<'_>,
    claimed: &[Claimed],
) -> Result<(), StoreError> {
    let taken: Vec<(&str, &str, u32)> = claimed
        .iter()
        .filter_map(|claimed| {
            let last = claimed.history.last_handback.as_ref()?;
            let key = claimed.row.key.id.as_str();
            (last.taken_at == Some(turn.now)).then_some((turn.name(), key, last.number))
        })
        .collect();
    if taken.is_empty() {
        return Ok(());
    }
    let query = sqlx::query(
        "update tieout_handbacks as h set taken_at = ?2, ended_at = null, end_reason = null \
         from json_each(?1) j where h.table_name = j.value ->> 0 and h.key = j.value ->> 1 \
         and h.number = j.value ->> 2 and h.taken_at is null \
         and (h.ended_at is null or h.end_reason in ('lapsed', 'sibling_pending'))",
    )
    .bind(json_set(&taken))
    .bind(to_text(turn.now));
    execute(connection, CLAIMING, query).await.map(|_| ())
}

async fn close(
    connection: &mut SqliteConnection,
    turn: &Turn<'_>,
    run_id: &str,
    closed: &[(String, String)],
) -> Result<(), StoreError> {
    if closed.is_empty() {
        return Ok(());
    }
    let keys: Vec<&str> = closed.iter().map(|(key, _)| key.as_str()).collect();
    let query = sqlx::query(
        "update tieout_checks set state = 'closed', next_check_at = null, lease_run = null, \
         lease_until = null where table_name = ?2 \
         and key in (select value from json_each(?1))",
    )
    .bind(json_set(&keys))
    .bind(turn.name().to_owned());
    execute(connection, CLAIMING, query).await?;
    let closings: Vec<(&str, &str)> =
        closed.iter().map(|(key, why)| (key.as_str(), why.as_str())).collect();
    close_rows(connection, run_id, turn.name(), &closings, turn.now).await
}

/// Nobody charges for a row that is gone: its open hand-back ends, and that is told.
async fn end_handbacks(
    connection: &mut SqliteConnection,
    turn: &Turn<'_>,
    gone: &[String],
) -> Result<(), StoreError> {
    if gone.is_empty() {
        return Ok(());
    }
    let why = (turn.now, ROW_GONE);
    let ended = end_untaken(connection, CLAIMING, turn.name(), gone, why).await?;
    turn.table.tell_gone(&ended);
    Ok(())
}

/// Looks for rows again that their view does not show, and tells of them.
async fn put_off(
    connection: &mut SqliteConnection,
    turn: &Turn<'_>,
    unseen: &[(String, String)],
) -> Result<(), StoreError> {
    if unseen.is_empty() {
        return Ok(());
    }
    let query = sqlx::query(
        "update tieout_checks as c set next_check_at = j.value ->> 1, lease_run = null, \
         lease_until = null from json_each(?1) j \
         where c.table_name = ?2 and c.key = j.value ->> 0",
    )
    .bind(json_set(unseen))
    .bind(turn.name().to_owned());
    execute(connection, CLAIMING, query).await?;
    let keys: Vec<&str> = unseen.iter().map(|(key, _)| key.as_str()).collect();
    turn.table.tell_unseen(&keys);
    Ok(())
}

/// What would be taken in and claimed, from reads alone.
pub(super) async fn preview(
    connection: &mut SqliteConnection,
    turn: &Turn<'_>,
) -> Result<Vec<Claimed>, StoreError> {
    let mut memories = candidates(connection, turn, turn.limit).await?;
    for fresh in would_enrol(connection, turn).await? {
        memories.retain(|known| known.key != fresh.key);
        memories.push(fresh);
    }
    if turn.filter.given_up {
        for watched in would_watch(connection, turn).await? {
            memories.retain(|known| known.key != watched.key);
            memories.push(watched);
        }
    }
    memories.sort_by(|a, b| (a.next_check_at, &a.key).cmp(&(b.next_check_at, &b.key)));
    let judged = judged(connection, turn, memories).await?;
    let limit = usize::try_from(turn.limit).unwrap_or(0);
    let taken = judged.into_iter().filter_map(|(_, fate)| match fate {
        Fate::Take(claimed) => Some(*claimed),
        Fate::Close(_) | Fate::Gone | Fate::Unseen(_) | Fate::Leave => None,
    });
    Ok(taken.take(limit).collect())
}

/// The memory that enrolling would leave, without writing it.
async fn would_enrol(
    connection: &mut SqliteConnection,
    turn: &Turn<'_>,
) -> Result<Vec<Memory>, StoreError> {
    let mut statement = Statement::default();
    let due = turn_of(&mut statement, turn);
    let from = stuck_rows(&mut statement, turn);
    let limit = statement.int(turn.limit);
    let (key, image) = (read_key(turn.table, "t"), image(turn.table, |column| named("t", column)));
    statement.push(&format!("select {key}, {image}, {due} {from} order by 3 limit {limit}"));
    let mut fresh = Vec::new();
    for row in &fetch(connection, ENROLLING, statement.query()).await? {
        let cells = super::cells::Cells::new(row, ENROLLING);
        let key = cells.text(0)?;
        let known = super::rows::memory(connection, turn.name(), &key).await?;
        let taken_in = taken_in(key, cells.text(1)?, known, turn.now);
        fresh.push(Memory { next_check_at: cells.opt_at(2)?, ..taken_in });
    }
    Ok(fresh)
}

/// The memory that a look at rows given up would begin with.
async fn would_watch(
    connection: &mut SqliteConnection,
    turn: &Turn<'_>,
) -> Result<Vec<Memory>, StoreError> {
    let mut statement = Statement::default();
    let due = turn_of(&mut statement, turn);
    let from = given_up_rows(&mut statement, turn);
    let limit = statement.int(turn.limit);
    let (key, image) = (read_key(turn.table, "t"), image(turn.table, |column| named("t", column)));
    statement.push(&format!("select {key}, {image}, {due} {from} order by 3 limit {limit}"));
    let mut watched = Vec::new();
    for row in &fetch(connection, ENROLLING, statement.query()).await? {
        let cells = super::cells::Cells::new(row, ENROLLING);
        let key = cells.text(0)?;
        let known = super::rows::memory(connection, turn.name(), &key).await?;
        let mut memory = known.unwrap_or(taken_in(key, cells.text(1)?, None, turn.now));
        let is_watched = memory.state == "watch";
        memory.history.watch_from = memory.history.watch_from.or(Some(turn.now));
        memory.history.watch_step = if is_watched { memory.history.watch_step } else { LAST_LOOK };
        memory.state = "watch".to_owned();
        memory.next_check_at = cells.opt_at(2)?;
        watched.push(memory);
    }
    Ok(watched)
}

fn taken_in(key: String, image: String, known: Option<Memory>, now: Instant) -> Memory {
    let first = History::first_look(now);
    let known = known.unwrap_or_else(|| Memory {
        key,
        state: String::new(),
        image: String::new(),
        history: first.clone(),
        next_check_at: None,
        events: 0,
        lease_token: 0,
        lease: None,
        currency: String::new(),
        amount_minor: 0,
        open_case: None,
    });
    let history = History {
        first_seen_at: known.history.first_seen_at,
        first_account: known.history.first_account.clone(),
        handbacks: known.history.handbacks,
        ..first
    };
    Memory { state: "open".to_owned(), image, history, next_check_at: Some(now), ..known }
}

/// Due at once, behind what is due by now: rows that every run only gives back hold up no other.
pub(super) async fn release(
    connection: &mut SqliteConnection,
    run_id: &str,
    rows: &[Claimed],
    now: Instant,
) -> Result<(), StoreError> {
    let held: Vec<(&str, &str, i64)> = rows
        .iter()
        .map(|claimed| {
            let key = &claimed.row.key;
            (key.table.as_str(), key.id.as_str(), claimed.token)
        })
        .collect();
    give_back(connection, run_id, &held, now).await
}

/// Rows by table, key and token. One whose lease is no longer the run's was counted by whoever
/// took it.
pub(super) async fn give_back(
    connection: &mut SqliteConnection,
    run_id: &str,
    held: &[(&str, &str, i64)],
    now: Instant,
) -> Result<(), StoreError> {
    let query = sqlx::query(
        "update tieout_checks as c set lease_run = null, lease_until = null, \
         next_check_at = case when c.next_check_at is not null then ?3 end \
         from json_each(?1) j where c.table_name = j.value ->> 0 and c.key = j.value ->> 1 \
         and c.lease_token = j.value ->> 2 and +c.lease_run = ?2 \
         returning table_name, currency, amount_minor",
    )
    .bind(json_set(held))
    .bind(run_id.to_owned())
    .bind(to_text(now));
    let mut by_table: BTreeMap<String, Buckets> = BTreeMap::new();
    for row in &fetch(connection, RELEASING, query).await? {
        let cells = super::cells::Cells::new(row, RELEASING);
        let buckets = by_table.entry(cells.text(0)?).or_default();
        add_to(buckets, cells.str(1)?, cells.int(2)?);
    }
    for (table, buckets) in &by_table {
        count(connection, run_id, table, "released", buckets).await?;
    }
    Ok(())
}
