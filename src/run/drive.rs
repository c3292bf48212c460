//! The loop of a run: claim a batch of each table in turn, ask every account of the batch side
//! by side, decide, hold or apply; until nothing is due, a limit is reached or a stop requested.

use std::collections::{BTreeMap, HashSet};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::decide::decision::{Asked as Why, Inputs};
use crate::decide::judge::decide;
use crate::exit::Exit;
use crate::model::evidence::EVIDENCE_SCHEMA;
use crate::model::reason::{Outcome, Reason};
use crate::model::time::{Instant, earlier, later, span_text};
use crate::model::transaction::{AccountRef, RowKey};
use crate::psp::lane::{AccountStop, Counts, StopKind};
use crate::run::books::{Books, Tell};
use crate::run::error::{Doing, RunError};
use crate::run::events::Event;
use crate::run::gather::{Asked, Gather, Weighed, check_tag_length};
use crate::run::match_lines::{Again, contradicted, match_lines};
use crate::run::scene::{OpenAccount, Scene};
use crate::run::setup::On;
use crate::run::{LEASE, read_clock};
use crate::store::driver::Driver;
use crate::store::records::{ClaimFilter, Claimed, StoredInputs};
use crate::store::source_table::SourceTable;

/// Takes every due row of every table through the run, in batches, table by table in turn.
pub async fn drive(scene: &Scene<'_>, books: &mut Books, tell: Tell<'_>) -> Result<(), RunError> {
    let started = scene.clock.now();
    let mut remaining = scene.options.limit;
    let mut open: Vec<(usize, ClaimFilter)> = Vec::new();
    let is_kick = scene.options.kick.is_some();
    // A kick is of its cases alone.
    let again = if is_kick { Again::new() } else { match_lines(scene, books, tell).await? };
    let seen = rehearse_again(scene, books, again, tell).await?;
    for (index, table) in scene.tables.iter().enumerate() {
        let Some(filter) = filter_of(scene, table, started) else { continue };
        if !is_kick {
            warn_of_unmapped(scene, books, table, tell).await?;
        }
        if !scene.options.dry_run {
            let taken = scene.db.enrol(table, &filter, started).await;
            taken.doing("taking stuck rows into the work list")?;
        }
        open.push((index, filter));
    }
    while !open.is_empty() {
        let mut still_open = Vec::new();
        let share = share_of(remaining, open.len());
        for (index, filter) in open {
            let Some(table) = scene.tables.get(index) else { continue };
            let want = share.min(remaining).min(scene.options.batch);
            if want <= 0 || must_end(scene, books, started, tell) {
                return Ok(());
            }
            let mut claimed = claim(scene, table, &filter, want).await?;
            claimed.retain(|one| !seen.contains(&one.row.key));
            let count = i64::try_from(claimed.len()).unwrap_or(i64::MAX);
            remaining = remaining.saturating_sub(count);
            if count == 0 {
                continue;
            }
            if scene.options.ids.is_some() || is_kick {
                books.looked_at.extend(claimed.iter().map(|one| one.row.key.clone()));
            }
            tell(Event::Claimed { table: table.settings.name.clone(), rows: claimed.len() });
            take(scene, books, index, table, claimed, tell).await?;
            // A dry run sees its whole work list at once.
            if !scene.options.dry_run {
                still_open.push((index, filter));
            }
        }
        open = still_open;
    }
    Ok(())
}

/// Of a dry run, which takes nothing into the work list: the rows that lines contradict.
async fn rehearse_again(
    scene: &Scene<'_>,
    books: &mut Books,
    again: Again,
    tell: Tell<'_>,
) -> Result<HashSet<RowKey>, RunError> {
    let mut seen = HashSet::new();
    for (index, ids) in again {
        let Some(table) = scene.tables.get(index) else { continue };
        let limit = i64::try_from(ids.len()).unwrap_or(i64::MAX);
        let claimed = claim(scene, table, &contradicted(ids), limit).await?;
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

fn claim_filter(scene: &Scene<'_>, now: Instant) -> ClaimFilter {
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
    for value in values.doing("looking for status values that nobody mapped")? {
        let name = table.settings.name.clone();
        let text = format!(
            "table {name}: status `{value}` is neither mapped nor ignored; its rows were not \
             looked at; add it to [[table.map]] or to ignore"
        );
        tell(Event::UnmappedStatus { table: name, value });
        books.miss(Exit::Partial, text, tell);
    }
    Ok(())
}

/// Whether no further batch may be claimed.
fn must_end(scene: &Scene<'_>, books: &mut Books, started: Instant, tell: Tell<'_>) -> bool {
    if scene.stop.requested().is_some() || books.closed {
        return true;
    }
    let Some(limit) = scene.options.max_duration else { return false };
    let over = scene.clock.now() >= later(started, limit);
    if over {
        let text = format!("deadline: {} are over; rows still due were left", span_text(limit));
        books.miss(Exit::Partial, text, tell);
    }
    over
}

async fn claim(
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

/// One batch: every account is asked side by side, and each is carried on as soon as it is done.
async fn take(
    scene: &Scene<'_>,
    books: &mut Books,
    index: usize,
    table: &SourceTable,
    claimed: Vec<Claimed>,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    let mut known: BTreeMap<&str, Vec<Claimed>> = BTreeMap::new();
    let mut unknown = Vec::new();
    for row in claimed {
        let name = match &row.row.account {
            AccountRef::Known(name) => scene.accounts.get_key_value(name),
            AccountRef::Unmapped(_) => None,
        };
        match name {
            Some((name, _)) => known.entry(name).or_default().push(row),
            None => unknown.push(row),
        }
    }
    if !unknown.is_empty() {
        let rows = unknown.into_iter().map(|row| without_account(scene, row)).collect();
        books.carry(scene, table, None, rows, tell).await?;
    }
    let mut asking = FuturesUnordered::new();
    for (name, mut rows) in known {
        let Some(open) = scene.accounts.get(name) else { continue };
        if let Some((_, why)) = &open.paused {
            let text = format!("account {name} is paused ({why}); {} rows given back", rows.len());
            books.miss(Exit::Partial, text, tell);
            give_back(scene, &rows).await?;
            continue;
        }
        tell(Event::Asking { account: name.to_owned(), rows: rows.len() });
        let tag_max = open.account.facts().tag_max;
        rows.iter_mut().for_each(|row| check_tag_length(row, tag_max));
        asking.push(ask(scene, table, name, open, rows, false));
    }
    while let Some((name, open, result)) = asking.next().await {
        let (rows, asked) = result?;
        settle(scene, books, index, table, (name, open), rows, asked, tell).await?;
    }
    Ok(())
}

/// Asks one account about rows, and decides them; `whole`: by every route, for a person.
pub async fn ask<'s>(
    scene: &'s Scene<'_>,
    table: &'s SourceTable,
    name: &'s str,
    open: &'s OpenAccount,
    rows: Vec<Claimed>,
    whole: bool,
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
        whole,
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
    let inputs = StoredInputs {
        schema: EVIDENCE_SCHEMA,
        now,
        asked: claimed.asked,
        row: claimed.row.clone(),
        siblings: Vec::new(),
        evidence: Vec::new(),
        claimed_references: Vec::new(),
        untagged: Vec::new(),
        near_misses: Vec::new(),
        history: claimed.history.clone(),
        kicked: None,
    };
    Weighed {
        claimed,
        decision,
        now,
        inputs,
        nearest: Vec::new(),
        lines: Vec::new(),
        person: None,
        mapped_from: None,
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
    rows: Vec<Weighed>,
    asked: Asked,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    note(books, name, open, rows.len(), &asked, tell);
    if let Some(stop) = open.account.stopped() {
        report_stop(books, name, &stop, tell);
    }
    note_outage(scene, books, name, open, rows.len(), asked.answered, tell).await?;
    // A stop cut these off in the middle of asking: they are given back, not made to wait. So is
    // a kicked row that nothing was said of: its case stays as it was.
    let is_kick = scene.options.kick.is_some();
    let interrupted = scene.stop.requested().is_some();
    let is_stopped = open.account.stopped().is_some();
    let is_cut = |row: &Weighed| {
        let known = is_stopped && row.claimed.history.unanswered_since.is_some();
        let is_silent = row.decision.reason == Reason::PspUnavailable;
        (is_silent && (interrupted || known || is_kick)) || (is_kick && has_nothing_new(row))
    };
    let (cut, mut rows): (Vec<Weighed>, Vec<Weighed>) = rows.into_iter().partition(is_cut);
    if is_stopped {
        rows.iter_mut().for_each(due_at_once);
    }
    if is_kick {
        cut.iter().filter(|row| has_nothing_new(row)).for_each(|row| tell(nothing_new(row)));
    }
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

/// A kicked row that has left processing, its mapping's `review` value included, is looked at as
/// one that ended: only money found for it is news, and its case is not to lose its place.
fn has_nothing_new(row: &Weighed) -> bool {
    let is_wait = row.decision.outcome() == Outcome::Wait;
    row.claimed.asked == Why::Watch && is_wait && row.decision.answered
}

fn nothing_new(row: &Weighed) -> Event {
    let Claimed { row, .. } = &row.claimed;
    let why = format!("its status is `{}`, and the PSP shows nothing new of it", row.status);
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

fn note(
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

/// An account that gives no answer costs no row anything; after `unavailable_for` a person is
/// told, once.
async fn note_outage(
    scene: &Scene<'_>,
    books: &mut Books,
    name: &str,
    open: &OpenAccount,
    rows: usize,
    answered: u64,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    if rows == 0 || scene.stop.requested().is_some() {
        return Ok(());
    }
    let now = scene.clock.now();
    let missing = u64::try_from(rows).unwrap_or(u64::MAX).saturating_sub(answered);
    if missing > 0 {
        let text = format!(
            "account {name}: no answer for {missing} of {rows} rows; they stay as they are"
        );
        books.miss(Exit::Partial, text, tell);
    }
    if answered > 0 {
        if open.unanswered_since.is_some() && !scene.options.dry_run {
            let put = scene.db.put_account_state(name, None, None).await;
            put.doing("noting that the account answers again")?;
            let why = "the account answers again";
            books.close_case(scene, name, Reason::AccountUnavailable, why).await?;
        }
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
            "rows": rows,
        });
        let reason = Reason::AccountUnavailable;
        books.put_case(scene, name, reason, &text, evidence.to_string()).await?;
    }
    Ok(())
}
