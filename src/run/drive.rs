//! The loop of a run: claim a batch of each table in turn, ask every account of the batch side
//! by side, decide, hold or apply; until nothing is due, a limit is reached or a stop requested.

use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::decide::decision::{Asked as Why, Inputs};
use crate::decide::judge::decide;
use crate::exit::Exit;
use crate::model::count::counted;
use crate::model::evidence::{Answer, Cause, CauseKind, EVIDENCE_SCHEMA, Route};
use crate::model::reason::{Outcome, Reason};
use crate::model::time::{Instant, earlier, later, span_text};
use crate::model::transaction::{AccountRef, Kind, RowKey};
use crate::psp::lane::{AccountStop, Counts, StopKind};
use crate::run::as_decided;
use crate::run::at_once::AtOnce;
use crate::run::books::{Books, Tell};
use crate::run::error::{Doing, RunError};
use crate::run::events::Event;
use crate::run::gather::{Asked, Early, Gather, Gathered, Weighed, check_tag_length};
use crate::run::left_out;
use crate::run::line_cases;
use crate::run::mapped::{Mapped, is_in_review, reopen};
use crate::run::match_lines::{Again, match_lines};
use crate::run::scene::{OpenAccount, Scene, ahead_max};
use crate::run::setup::On;
use crate::run::unanswered::Unanswered;
use crate::run::{LEASE, read_clock};
use crate::store::driver::Driver;
use crate::store::inspect::{AHEAD_MAX, Ahead, Inspect, LeftOut};
use crate::store::records::{ClaimFilter, Claimed};
use crate::store::source_table::SourceTable;

/// Takes every due row of every table through the run. Where its time is limited, no question is
/// begun after it.
pub async fn drive(scene: &Scene<'_>, books: &mut Books, tell: Tell<'_>) -> Result<(), RunError> {
    let work = Box::pin(in_turn(scene, books, tell));
    let Some(limit) = scene.options.max_duration else { return work.await };
    let over = async {
        tokio::time::sleep(limit.to_std().unwrap_or_default()).await;
        scene.over.cancel();
        std::future::pending::<Infallible>().await
    };
    tokio::select! {
        ended = work => ended,
        never = over => match never {},
    }
}

/// A table whose rows are taken, batch by batch.
struct Turn<'s> {
    index: usize,
    table: &'s SourceTable,
    filter: ClaimFilter,
    /// Nothing of it was due any more.
    is_done: bool,
}

/// In batches, table by table in turn.
async fn in_turn(scene: &Scene<'_>, books: &mut Books, tell: Tell<'_>) -> Result<(), RunError> {
    let started = scene.clock.now();
    let mut remaining = scene.options.limit;
    let is_kick = scene.options.kick.is_some();
    // A kick is of its cases alone.
    let mut at_once = AtOnce::of(scene, started);
    let again = match is_kick {
        true => Again::new(),
        false => match_lines(scene, books, &mut at_once, tell).await?,
    };
    remaining = remaining.saturating_sub(at_once.taken);
    let mut seen = rehearse_again(scene, books, again, &mut remaining, tell).await?;
    let mut turns = begin(scene, books, started, tell).await?;
    while turns.iter().any(|turn| !turn.is_done) && !must_end(scene, books, remaining, started) {
        let share = share_of(remaining, turns.iter().filter(|turn| !turn.is_done).count());
        for turn in turns.iter_mut().filter(|turn| !turn.is_done) {
            if must_end(scene, books, remaining, started) {
                break;
            }
            let want = share.min(remaining);
            let taken = take_next(scene, books, turn, want, &mut seen, tell).await?;
            remaining = remaining.saturating_sub(taken);
        }
    }
    if !scene.options.dry_run {
        line_cases::open_gone(scene, books).await?;
        line_cases::close(scene).await?;
    }
    tell_left(scene, books, &turns, (remaining, started), &seen, tell).await
}

/// Takes stuck rows of every table into the work list.
async fn begin<'s>(
    scene: &'s Scene<'_>,
    books: &mut Books,
    started: Instant,
    tell: Tell<'_>,
) -> Result<Vec<Turn<'s>>, RunError> {
    let mut turns = Vec::new();
    for (index, table) in scene.tables.iter().enumerate() {
        let Some(filter) = filter_of(scene, table, started) else { continue };
        if scene.options.kick.is_none() {
            warn_of_unmapped(scene, books, table, tell).await?;
            warn_of_future(scene, books, table, &filter, tell).await;
            warn_of_left_out(scene, books, table, tell).await;
        }
        if !scene.options.dry_run {
            let taken = scene.db.enrol(table, &filter, started).await;
            taken.doing("taking stuck rows into the work list")?;
        }
        turns.push(Turn { index, table, filter, is_done: false });
    }
    Ok(turns)
}

/// Takes a table's next rows through the run; how many they were.
async fn take_next(
    scene: &Scene<'_>,
    books: &mut Books,
    turn: &mut Turn<'_>,
    want: i64,
    seen: &mut HashSet<RowKey>,
    tell: Tell<'_>,
) -> Result<i64, RunError> {
    let dry_run = scene.options.dry_run;
    // Nothing is written between the batches of a dry run, which could make room for the next.
    let want = if dry_run { want } else { want.min(scene.options.batch) };
    let claimed = next(scene, turn, want, seen).await?;
    let count = i64::try_from(claimed.len()).unwrap_or(i64::MAX);
    turn.is_done = count == 0 || (dry_run && count < want);
    if count == 0 {
        return Ok(0);
    }
    if dry_run {
        seen.extend(claimed.iter().map(|one| one.row.key.clone()));
    }
    if scene.options.ids.is_some() || scene.options.kick.is_some() {
        books.looked_at.extend(claimed.iter().map(|one| one.row.key.clone()));
    }
    tell(Event::Claimed { table: turn.table.settings.name.clone(), rows: claimed.len() });
    Box::pin(take(scene, books, turn.index, turn.table, claimed, tell)).await?;
    if books.hold.is_full_of_paid() {
        Box::pin(books.settle_paid(scene, tell)).await?;
    }
    Ok(count)
}

/// A table's next rows. A dry run takes none, and sees those that it saw before again.
async fn next(
    scene: &Scene<'_>,
    turn: &Turn<'_>,
    want: i64,
    seen: &HashSet<RowKey>,
) -> Result<Vec<Claimed>, RunError> {
    if !scene.options.dry_run {
        return claim(scene, turn.table, &turn.filter, want).await;
    }
    let known = i64::try_from(seen.len()).unwrap_or(i64::MAX);
    let limit = want.saturating_add(known);
    let mut due = claim(scene, turn.table, &turn.filter, limit).await?;
    due.retain(|one| !seen.contains(&one.row.key));
    due.truncate(usize::try_from(want).unwrap_or(usize::MAX));
    Ok(due)
}

/// Whether no further batch may be claimed.
fn must_end(scene: &Scene<'_>, books: &Books, remaining: i64, started: Instant) -> bool {
    let is_stopped = scene.stop.requested().is_some() || books.closed;
    is_stopped || remaining <= 0 || is_over(scene, started)
}

fn is_over(scene: &Scene<'_>, started: Instant) -> bool {
    let limit = scene.options.max_duration;
    let is_late = |limit| scene.over.is_cancelled() || scene.clock.now() >= later(started, limit);
    limit.is_some_and(is_late)
}

/// Says that due rows were left: by the limit, where nobody asked for so few, and by the time.
async fn tell_left(
    scene: &Scene<'_>,
    books: &mut Books,
    turns: &[Turn<'_>],
    (remaining, started): (i64, Instant),
    seen: &HashSet<RowKey>,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    let options = scene.options;
    if scene.stop.requested().is_some() || books.closed {
        return Ok(());
    }
    let is_full = remaining <= 0 && !options.is_limit_asked && options.kick.is_none();
    let is_late = remaining > 0 && books.given_back_late == 0 && is_over(scene, started);
    let is_left = (is_full || is_late) && is_one_due(scene, turns, seen).await?;
    if is_full && is_left {
        let rows = counted(options.limit, "row was taken", "rows were taken");
        let text = format!("limit: {rows} (limits.rows); rows still due were left");
        books.miss(Exit::Partial, text, tell);
    }
    let is_cut_off = books.given_back_late > 0 || (is_late && is_left);
    if let Some(limit) = options.max_duration.filter(|_| is_cut_off) {
        let text = format!("deadline: {} are over; rows still due were left", span_text(limit));
        books.miss(Exit::Partial, text, tell);
    }
    Ok(())
}

/// Whether a row is due that this run did not take.
async fn is_one_due(
    scene: &Scene<'_>,
    turns: &[Turn<'_>],
    seen: &HashSet<RowKey>,
) -> Result<bool, RunError> {
    for turn in turns.iter().filter(|turn| !turn.is_done) {
        let is_due = if scene.options.dry_run {
            !next(scene, turn, 1, seen).await?.is_empty()
        } else {
            let now = read_clock(scene.db, scene.options).await;
            let now = now.doing("reading the database's clock")?;
            let is_due = scene.db.is_due(scene.run_id, turn.table, &turn.filter, now).await;
            is_due.doing("looking for rows that are still due")?
        };
        if is_due {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Of a dry run, which takes nothing into the work list: the rows that lines contradict, as far as
/// the run would take them.
async fn rehearse_again(
    scene: &Scene<'_>,
    books: &mut Books,
    again: Again,
    remaining: &mut i64,
    tell: Tell<'_>,
) -> Result<HashSet<RowKey>, RunError> {
    let mut seen = HashSet::new();
    let window = ClaimFilter { stuck_before: None, ..claim_filter(scene, scene.clock.now()) };
    let asked = window.ids.clone();
    for (index, mut ids) in again {
        let Some(table) = scene.tables.get(index) else { continue };
        ids.retain(|id| !books.rehearsed_cases.contains(&(Some(index), id.clone())));
        ids.retain(|id| asked.as_ref().is_none_or(|asked| asked.contains(id)));
        let limit = i64::try_from(ids.len()).unwrap_or(i64::MAX).min(*remaining);
        if limit <= 0 {
            continue;
        }
        let filter = ClaimFilter { ids: Some(ids), given_up: true, ended: true, ..window.clone() };
        let claimed = claim(scene, table, &filter, limit).await?;
        *remaining = remaining.saturating_sub(i64::try_from(claimed.len()).unwrap_or(i64::MAX));
        seen.extend(claimed.iter().map(|one| one.row.key.clone()));
        tell(Event::Claimed { table: table.settings.name.clone(), rows: claimed.len() });
        take(scene, books, index, table, claimed, tell).await?;
    }
    Ok(seen)
}

/// What each table may claim next, so that the first does not starve the others.
fn share_of(remaining: i64, tables: usize) -> i64 {
    let tables = i64::try_from(tables).unwrap_or(i64::MAX).max(1);
    remaining.checked_add(tables.saturating_sub(1)).unwrap_or(remaining) / tables
}

/// What is claimed of a table; nothing of one that a kick has no case of.
fn filter_of(scene: &Scene<'_>, table: &SourceTable, now: Instant) -> Option<ClaimFilter> {
    let filter = claim_filter(scene, now);
    let Some(kick) = &scene.options.kick else { return Some(filter) };
    let ids = kick.ids_of(&table.settings.name);
    (!ids.is_empty()).then_some(ClaimFilter { ids: Some(ids), kicked: true, ..filter })
}

pub(super) fn claim_filter(scene: &Scene<'_>, now: Instant) -> ClaimFilter {
    let options = scene.options;
    let mut filter = ClaimFilter {
        ids: options.ids.clone(),
        accounts: options.accounts.clone(),
        stuck_before: Some(earlier(now, scene.stuck_after())),
        given_up: options.given_up,
        ..ClaimFilter::default()
    };
    if let Some(window) = &options.window {
        match window.on {
            On::Created => (filter.created_from, filter.created_to) = (window.from, window.to),
            On::Attempted => {
                (filter.attempted_from, filter.attempted_to) = (window.from, window.to);
            }
        }
    }
    filter
}

async fn warn_of_unmapped(
    scene: &Scene<'_>,
    books: &mut Books,
    table: &SourceTable,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    let values = scene.db.unmapped_statuses(table).await;
    let mut values = values.doing("looking for status values that nobody mapped")?;
    let beside =
        left_out::beside(&table.settings, scene.tables.iter().map(|other| &other.settings));
    values.retain(|value| !left_out::is_left_to(&table.settings, &beside, value));
    for value in values {
        let name = table.settings.name.clone();
        let text = format!(
            "table {name}: status `{value}` is neither mapped nor ignored; its rows were not \
             looked at; add it to [[table.map]] or to ignore{}",
            if table.says_success_itself() { ", or to succeeded where it says paid" } else { "" }
        );
        tell(Event::UnmappedStatus { table: name, value });
        books.miss(Exit::Partial, text, tell);
    }
    // Most tables cannot have such rows, and are not asked; and where some rows are left out, these
    // may be among them: the doctor tells.
    if table.may_lack_status()
        && table.settings.filter.is_empty()
        && scene.db.lacks_status(table).await.doing("looking for rows without a status")?
    {
        let name = table.settings.name.clone();
        let text = format!("table {name}: {}", unset_words(table));
        tell(Event::UnmappedStatus { table: name, value: "NULL".to_owned() });
        books.miss(Exit::Partial, text, tell);
    }
    Ok(())
}

/// What to say of rows without a status: no value of the mapping can name them.
fn unset_words(table: &SourceTable) -> String {
    let status = &table.settings.status;
    format!(
        "{status} is NULL in some rows, which no map and no ignore can name; they were not looked \
         at; set it, or leave them out by where = [{{ column = \"{status}\", is = \"not_null\" }}]"
    )
}

/// Stuck rows whose times lie ahead of the clock are never due: their unit or zone is read wrong,
/// and "nothing is due" would be true of them for ever.
async fn warn_of_future(
    scene: &Scene<'_>,
    books: &mut Books,
    table: &SourceTable,
    filter: &ClaimFilter,
    tell: Tell<'_>,
) {
    if scene.options.ids.is_some() {
        return;
    }
    let after = later(scene.clock.now(), ahead_max(&scene.setup.accounts));
    match scene.db.stuck_ahead(table, filter, after).await {
        Ok(ahead) => {
            if let Some(words) = ahead_words(&ahead) {
                let text = format!("table {}: {words}", table.settings.name);
                books.miss(Exit::Partial, text, tell);
            }
        }
        // Nothing depends on it; what is wrong with the database is met by the claim.
        Err(error) => {
            let table = table.settings.name.as_str();
            tracing::warn!(table, error = %error, "Times in the future were not looked for");
        }
    }
}

/// Stuck rows of a table of which no row was ever taken, all left out by a `where` that can hardly
/// be meant so: "nothing is due" would be true of them for ever. Where another mapping takes rows
/// of the same table, they may be its rows, and the doctor alone tells.
async fn warn_of_left_out(
    scene: &Scene<'_>,
    books: &mut Books,
    table: &SourceTable,
    tell: Tell<'_>,
) {
    let readers = scene.tables.iter().filter(|other| other.read == table.read).count();
    if scene.options.ids.is_some() || table.settings.filter.is_empty() || readers > 1 {
        return;
    }
    let looked = match scene.db.knows_a_row(table).await {
        Ok(true) => Ok(LeftOut::default()),
        Ok(false) => scene.db.left_out(table).await,
        Err(error) => Err(error),
    };
    match looked {
        Ok(left) if left_out::is_mistake(&left) => {
            let name = &table.settings.name;
            let text = format!(
                "table {name}: {}; no run looks at them; see tieout doctor",
                left_out::words(table, &left)
            );
            books.miss(Exit::Partial, text, tell);
        }
        Ok(_) => {}
        // Nothing depends on it; what is wrong with the database is met by the claim.
        Err(error) => {
            let table = table.settings.name.as_str();
            tracing::warn!(table, error = %error, "What `where` leaves out was not told");
        }
    }
}

/// What to say of stuck rows with times in the future, where there are some.
pub fn ahead_words(ahead: &Ahead) -> Option<String> {
    let newest = ahead.newest.as_ref()?;
    let rows = match ahead.rows {
        AHEAD_MAX.. => format!("{AHEAD_MAX} or more stuck rows have times"),
        rows => counted(rows, "stuck row has times", "stuck rows have times"),
    };
    Some(format!("{rows} in the future (the newest {newest}): is `time` right?"))
}

pub(super) async fn claim(
    scene: &Scene<'_>,
    table: &SourceTable,
    filter: &ClaimFilter,
    limit: i64,
) -> Result<Vec<Claimed>, RunError> {
    let now = read_clock(scene.db, scene.options).await.doing("reading the database's clock")?;
    scene.clock.set(now);
    if scene.options.dry_run {
        let due = scene.db.preview_due(table, filter, limit, now).await;
        return due.doing("looking for due rows");
    }
    let lease_until = later(now, LEASE);
    let claimed = scene.db.claim_due(scene.run_id, table, filter, limit, now, lease_until).await;
    claimed.doing("claiming due rows")
}

/// One batch: every account is asked side by side, and each is carried on as soon as it is done;
/// what is paid for sure while the others are still searched for.
async fn take(
    scene: &Scene<'_>,
    books: &mut Books,
    index: usize,
    table: &SourceTable,
    mut claimed: Vec<Claimed>,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    let is_named = scene.options.kick.is_some() || scene.options.ids.is_some();
    let mapped = match is_named {
        true => reopen(scene, table, &mut claimed).await?,
        false => Mapped::new(),
    };
    let mut groups = by_account(scene, claimed);
    if let Some(unknown) = groups.remove(&None) {
        let rows = unknown.into_iter().map(|row| without_account(scene, row)).collect();
        books.carry(scene, table, None, rows, tell).await?;
    }
    // An account may be paused between two batches: what was not asked about yet is left.
    let paused = match scene.db.pauses().await {
        Ok(paused) => paused,
        // A connection that the server ended meanwhile is made anew.
        Err(_ended) => scene.db.pauses().await.doing("reading the paused accounts")?,
    };
    let (steps, mut taken) = unbounded_channel();
    let mut asking = FuturesUnordered::new();
    for (name, mut rows) in groups {
        let known = name.as_deref().and_then(|name| scene.accounts.get_key_value(name));
        let Some((name, open)) = known else { continue };
        let meanwhile = paused.iter().find(|pause| pause.account == *name).map(|pause| &pause.why);
        if let Some(why) = open.paused.as_ref().map(|(_, why)| why).or(meanwhile) {
            let (_, held) = books.paused.entry(name.clone()).or_insert_with(|| (why.clone(), 0));
            *held = held.saturating_add(rows.len());
            give_back(scene, &rows).await?;
            continue;
        }
        tell(Event::Asking { account: name.clone(), rows: rows.len() });
        let tag_max = open.account.facts().tag_max;
        rows.iter_mut().for_each(|row| check_tag_length(row, tag_max));
        let at = (name.as_str(), open);
        asking.push(ask_in_steps(scene, table, at, rows, &mapped, steps.clone()));
    }
    drop(steps);
    let asking = async {
        while asking.next().await.is_some() {}
        Ok(())
    };
    let taking = async {
        while let Some(step) = taken.recv().await {
            match step {
                Step::Paid(name, open, rows) => {
                    let rows = books.hold.keep_paid(name, index, rows);
                    books.carry(scene, table, Some(open), rows, tell).await?;
                }
                Step::Done(name, open, result) => {
                    let (rows, asked) = result?;
                    settle(scene, books, index, table, (name, open), rows, asked, tell).await?;
                }
            }
        }
        Ok(())
    };
    // What is written does not keep the next request waiting.
    tokio::try_join!(asking, taking).map(|((), ())| ())
}

/// What asking an account brings, in this order.
enum Step<'s> {
    /// Rows that are paid, while others are still asked about.
    Paid(&'s str, &'s OpenAccount, Vec<Weighed>),
    /// The others, at the end.
    Done(&'s str, &'s OpenAccount, Result<(Vec<Weighed>, Asked), RunError>),
}

/// Nobody takes the steps where the run has failed meanwhile: its leases end by themselves.
async fn ask_in_steps<'s>(
    scene: &'s Scene<'_>,
    table: &'s SourceTable,
    (name, open): (&'s str, &'s OpenAccount),
    rows: Vec<Claimed>,
    mapped: &'s Mapped,
    steps: UnboundedSender<Step<'s>>,
) {
    let early = |rows| drop(steps.send(Step::Paid(name, open, rows)));
    let early: Option<Early<'_>> = if scene.options.dry_run { None } else { Some(&early) };
    let (_, _, result) = ask(scene, table, (name, open), rows, mapped, false, early).await;
    drop(steps.send(Step::Done(name, open, result)));
}

/// Rows by their configured account; by none where it is not configured.
pub fn by_account(
    scene: &Scene<'_>,
    claimed: Vec<Claimed>,
) -> BTreeMap<Option<String>, Vec<Claimed>> {
    let mut by_account: BTreeMap<Option<String>, Vec<Claimed>> = BTreeMap::new();
    for one in claimed {
        let name = match &one.row.account {
            AccountRef::Known(name) if scene.accounts.contains_key(name) => Some(name.clone()),
            AccountRef::Known(_) | AccountRef::Unmapped(_) => None,
        };
        by_account.entry(name).or_default().push(one);
    }
    by_account
}

/// Asks one account about rows, and decides them; `whole`: by every route, for a person.
pub async fn ask<'s>(
    scene: &'s Scene<'_>,
    table: &'s SourceTable,
    (name, open): (&'s str, &'s OpenAccount),
    rows: Vec<Claimed>,
    mapped: &'s Mapped,
    whole: bool,
    early: Option<Early<'s>>,
) -> (&'s str, &'s OpenAccount, Result<(Vec<Weighed>, Asked), RunError>) {
    let gather = Gather {
        db: scene.db,
        table,
        tables: &scene.tables,
        account: &open.account,
        has_files: open.has_files,
        expected: &open.expected,
        account_name: name,
        policies: &open.policies,
        clock: &scene.clock,
        mapped,
        whole,
        early,
    };
    (name, open, gather.weigh(rows).await)
}

/// Rows of no configured account: the judge says so.
pub fn without_account(scene: &Scene<'_>, claimed: Claimed) -> Weighed {
    let now = scene.clock.now();
    let inputs = Inputs {
        row: &claimed.row,
        siblings: &[],
        evidence: &[],
        claimed_references: &[],
        untagged: &[],
        near_misses: &[],
        history: &claimed.history,
        asked: claimed.asked,
    };
    let decision = decide(&inputs, &scene.nobody, now);
    Weighed {
        claimed,
        decision,
        now,
        inputs: Gathered::default(),
        nearest: Vec::new(),
        lines: Vec::new(),
        person: None,
        mapped_from: None,
        clears_case: false,
    }
}

/// Gives rows back undecided.
pub async fn give_back(scene: &Scene<'_>, rows: &[Claimed]) -> Result<(), RunError> {
    if rows.is_empty() || scene.options.dry_run {
        return Ok(());
    }
    let now = scene.clock.now();
    scene.db.release(scene.run_id, rows, now).await.doing("giving rows back undecided")
}

/// What one account's rows came to: notes, the account's own case, hold or apply.
#[expect(clippy::too_many_arguments, reason = "one step of the loop, called from one place")]
async fn settle(
    scene: &Scene<'_>,
    books: &mut Books,
    index: usize,
    table: &SourceTable,
    (name, open): (&str, &OpenAccount),
    mut rows: Vec<Weighed>,
    asked: Asked,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    as_decided::let_be(scene, table, open, &mut rows).await?;
    let count = rows.len().saturating_add(asked.paid);
    note(books, name, open, count, &asked, tell);
    books.note_arrivals(name, &asked.arrivals);
    if let Some(stop) = open.account.stopped() {
        report_stop(books, name, &stop, tell);
    }
    let is_over = scene.over.is_cancelled();
    let is_late = |row: &Weighed| is_over && is_unasked(row);
    let silence = Silence::of(open, &rows, asked.paid, is_late);
    note_outage(scene, books, name, open, &silence).await?;
    let late = rows.iter().filter(|row| is_late(row)).count();
    books.given_back_late = books.given_back_late.saturating_add(late);
    // A stop or the end of the run's time cut these off in the middle of asking: they are given
    // back, not made to wait. So is a kicked row that nothing was said of: its case stays as it
    // was.
    let is_kick = scene.options.kick.is_some();
    let interrupted = scene.stop.requested().is_some();
    let is_stopped = open.account.stopped().is_some();
    let is_cut = |row: &Weighed| {
        let known = is_stopped && row.claimed.history.unanswered_since.is_some();
        let is_silent = row.decision.reason == Reason::PspUnavailable;
        let is_left = interrupted || known || is_kick || is_late(row);
        (is_silent && is_left) || has_nothing_new(scene, row)
    };
    let cut: Vec<Weighed> = rows.extract_if(.., |row| is_cut(row)).collect();
    if is_stopped {
        rows.iter_mut().for_each(due_at_once);
    }
    let silent = cut.iter().filter(|row| has_nothing_new(scene, row));
    silent.for_each(|row| tell(nothing_new(table, row)));
    let cut: Vec<Claimed> = cut.into_iter().map(|row| row.claimed).collect();
    give_back(scene, &cut).await?;
    books.hold.note_listed(name, asked.listed);
    let rows = books.hold.keep_undecided(name, index, rows);
    let (brake, timing) = (&open.setup.brake, &open.setup.timing);
    let through = if scene.mode(table, Some(open)) == crate::decide::policy::Mode::Full {
        books.hold.pass(name, index, rows, brake, timing)
    } else {
        rows
    };
    books.carry(scene, table, Some(open), through, tell).await
}

/// A kicked row that has left processing, and not as tieout left it in its mapping's `review`
/// value, is looked at as one that ended: only money found for it is news, and its case is not to
/// lose its place. So is one that was named by its key and waits for a person: nobody watches it.
fn has_nothing_new(scene: &Scene<'_>, row: &Weighed) -> bool {
    let claimed = &row.claimed;
    let is_case = claimed.open_case.is_some() && claimed.history.watch_from.is_none();
    let is_asked = match (&scene.options.kick, &scene.options.ids) {
        (Some(_), _) => true,
        (None, Some(_)) => is_case,
        (None, None) => false,
    };
    let is_wait = row.decision.outcome() == Outcome::Wait;
    is_asked && claimed.asked == Why::Watch && is_wait && row.decision.answered
}

fn nothing_new(table: &SourceTable, row: &Weighed) -> Event {
    let Claimed { row, history, .. } = &row.claimed;
    // What was found beside its hand-back ended that, and would end it again.
    let is_over = history.untaken().is_some_and(|past| past.anew);
    let status = &row.status;
    let why = match is_in_review(table, row) {
        true => format!(
            "its status is `{status}`, and somebody else wrote that or changed the row since: set \
             it back to its processing value to have it decided"
        ),
        false if is_over => format!(
            "its status is `{status}`, and nothing at the PSP could be paid beside a new attempt \
             any more; `tieout cases propose CASE --as retryable` has it charged again"
        ),
        false => format!("its status is `{status}`, and the PSP shows nothing new of it"),
    };
    Event::NotLookedAt { table: row.key.table.clone(), id: row.key.id.clone(), why }
}

/// A key, a certificate or a setting is wrong: as soon as a person mended it the rows are to be
/// looked at, and until then the account costs one request a run. The first time is recorded, so
/// that the outage costs the row no age; after that the rows are given back.
fn due_at_once(row: &mut Weighed) {
    if row.decision.reason == Reason::PspUnavailable {
        let soon = later(row.now, chrono::TimeDelta::seconds(1));
        row.decision.next_check_at = Some(soon);
        row.decision.watch_at = row.decision.watch_at.map(|_| soon);
    }
}

pub(super) fn note(
    books: &mut Books,
    name: &str,
    open: &OpenAccount,
    rows: usize,
    asked: &Asked,
    tell: Tell<'_>,
) {
    let note = books.notes.entry(name.to_owned()).or_default();
    let counts = open.account.counts();
    note.account = name.to_owned();
    note.psp = open.setup.settings.psp.as_str().to_owned();
    note.rows = note.rows.saturating_add(u64::try_from(rows).unwrap_or(u64::MAX));
    note.answered = note.answered.saturating_add(asked.answered);
    note.listed = note.listed.saturating_add(asked.listed);
    note.duration_ms = note.duration_ms.saturating_add(asked.duration_ms);
    note.requests = counts.requests;
    note.retries = counts.requests.saturating_sub(counts.ok.saturating_add(counts.refused));
    note.by_status = by_status(counts);
    note.stopped = open.account.stopped().map(|stop| stop.text);
    tell(Event::Asked(note.clone()));
}

fn by_status(counts: Counts) -> BTreeMap<String, u64> {
    let all = [
        ("2xx", counts.ok),
        ("3xx", counts.redirected),
        ("4xx", counts.refused),
        ("429", counts.rate_limited),
        ("5xx", counts.server_errors),
        ("none", counts.unanswered),
    ];
    all.into_iter().map(|(class, requests)| (class.to_owned(), requests)).collect()
}

fn report_stop(books: &mut Books, name: &str, stop: &AccountStop, tell: Tell<'_>) {
    let exit = match stop.kind {
        StopKind::Auth | StopKind::WrongEnvironment => Exit::Auth,
        StopKind::Misconfigured | StopKind::NoKey => Exit::Config,
        StopKind::Tls => Exit::Trust,
    };
    let text = format!(
        "account {name}: {}; it is not asked any more, and rows without an answer stay as they are",
        stop.text
    );
    books.miss(exit, text, tell);
}

/// Whether a question about the row was not put any more.
fn is_unasked(row: &Weighed) -> bool {
    let is_cut = |cause: &Cause| cause.kind == CauseKind::Interrupted;
    row.decision.reason == Reason::PspUnavailable && no_answers(row).any(|(_, cause)| is_cut(cause))
}

/// The routes that gave no answer about a row, each with why.
fn no_answers(row: &Weighed) -> impl Iterator<Item = (Route, &Cause)> {
    row.inputs.evidence.iter().filter_map(|item| match &item.answer {
        Answer::NoAnswer(cause) => Some((item.route, cause)),
        Answer::Found { .. } | Answer::Nothing(_) | Answer::UnknownReference(_) => None,
    })
}

/// How an account answered a batch.
struct Silence {
    /// The rows that wait for an answer; what was decided was answered.
    unanswered: Unanswered,
    /// Some question was answered.
    is_heard: bool,
    /// What could not be read whole, where other rows were found all the same.
    broken: Option<&'static str>,
}

impl Silence {
    fn of(
        open: &OpenAccount,
        rows: &[Weighed],
        paid: usize,
        is_late: impl Fn(&Weighed) -> bool,
    ) -> Self {
        let is_missing =
            |row: &&Weighed| row.decision.reason == Reason::PspUnavailable && !is_late(row);
        let missing: Vec<&Weighed> = rows.iter().filter(is_missing).collect();
        let is_api = open.account.api().is_some();
        let answers = || {
            let items = rows.iter().flat_map(|row| &row.inputs.evidence);
            // What files say is no word of the API's.
            items.filter(move |item| !is_api || item.route != Route::File).map(|item| &item.answer)
        };
        let is_found = paid > 0 || answers().any(|answer| matches!(answer, Answer::Found { .. }));
        let is_list = |row: &&Weighed| no_answers(row).any(|(route, _)| route == Route::List);
        let broken = missing.iter().copied().find(is_list).filter(|_| is_found);
        Self {
            unanswered: Unanswered {
                rows: rows.len().saturating_add(paid),
                missing: missing.len(),
                causes: causes(&missing),
            },
            is_heard: is_found || answers().any(|answer| !matches!(answer, Answer::NoAnswer(_))),
            broken: broken.map(|row| match row.claimed.row.kind {
                Kind::Charge => "charges",
                Kind::Refund => "refunds",
                Kind::Payout => "payouts",
            }),
        }
    }
}

/// Why rows without an answer have none, each by its first question.
fn causes(silent: &[&Weighed]) -> BTreeMap<&'static str, usize> {
    let mut causes: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, cause) in silent.iter().filter_map(|row| no_answers(row).next()) {
        let rows = causes.entry(cause.kind.as_str()).or_default();
        *rows = rows.saturating_add(1);
    }
    causes
}

/// An account that gives no answer costs no row anything; after `unavailable_for` a person is
/// told, once.
async fn note_outage(
    scene: &Scene<'_>,
    books: &mut Books,
    name: &str,
    open: &OpenAccount,
    silence: &Silence,
) -> Result<(), RunError> {
    if scene.stop.requested().is_some() {
        return Ok(());
    }
    let now = scene.clock.now();
    let Silence { unanswered, broken, .. } = silence;
    books.unanswered.entry((name.to_owned(), *broken)).or_default().add(unanswered);
    if silence.is_heard {
        if open.unanswered_since.is_some() && !scene.options.dry_run {
            let put = scene.db.put_account_state(name, None, None).await;
            put.doing("noting that the account answers again")?;
            let why = "the account answers again";
            books.close_case(scene, name, Reason::AccountUnavailable, why).await?;
        }
        return Ok(());
    }
    if unanswered.missing == 0 {
        return Ok(());
    }
    let since = open.unanswered_since.unwrap_or(now);
    if open.unanswered_since.is_none() && !scene.options.dry_run {
        let put = scene.db.put_account_state(name, Some(since), None).await;
        put.doing("noting that the account gives no answer")?;
    }
    if now >= later(since, open.setup.timing.unavailable_for) {
        let text = format!(
            "no answer since {}, longer than {}",
            crate::model::time::to_short_text(since),
            span_text(open.setup.timing.unavailable_for)
        );
        let evidence = serde_json::json!({
            "schema": EVIDENCE_SCHEMA,
            "run": scene.run_id,
            "unanswered_since": crate::model::time::to_text(since),
            "rows": unanswered.rows,
        });
        let reason = Reason::AccountUnavailable;
        books.put_case(scene, name, reason, &text, evidence.to_string()).await?;
    }
    Ok(())
}
