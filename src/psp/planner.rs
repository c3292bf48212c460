//! By which route an account is asked, and how the answers become each row's evidence.
//!
//! One list may settle a thousand rows, and one row is settled faster by itself: where both ways
//! are open, a few pages are read to see how many there would be, and the cheaper way is taken.
//! Evidence is put together here and nowhere else, so that "nothing" can come from a window read
//! to its end alone, with everything found in it read whole.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::DateTime;

use crate::model::evidence::{
    Answer, Cause, CauseKind, CompleteSearch, Evidence, PspObject, Route,
};
use crate::model::time::Instant;
use crate::psp::account::{Account, ListedWindow, Looked, Need, Question};
use crate::psp::ask_one::{self, side_by_side};
use crate::psp::book::{Book, Neighbour, Wanted};
use crate::psp::lane::cause;
use crate::psp::listing::{Listing, Tally, Window};
use crate::psp::stripe::{ObjectKind, wider_skew};
use crate::psp::stripe_objects::{Parts, at};

/// The PSP's clock may be ahead of the database's: what it just made stands in its future.
const AHEAD_SECS: i64 = 120;

/// Windows of rows that touch are one window.
#[derive(Debug, Clone)]
struct Plan {
    kinds: Vec<ObjectKind>,
    from: i64,
    /// Exclusive.
    to: i64,
    rows: Vec<usize>,
}

impl Plan {
    /// What asking its rows one by one costs; `None`: it cannot be done.
    fn singles_cost(&self, account: &Account, questions: &[Question]) -> Option<u64> {
        let mut sum = 0_u64;
        for question in self.rows.iter().filter_map(|row| questions.get(*row)) {
            let searches = ask_one::search_kinds(account, question).len();
            let cost = match (&question.reference, searches) {
                (Some(_), _) => 1,
                (None, 0) => return None,
                // Each kind, and the object once more by its id: an index may be behind.
                (None, searches) => u64::try_from(searches).ok()?.checked_add(1)?,
            };
            sum = sum.saturating_add(cost);
        }
        Some(sum)
    }

    /// The least that listing can cost: one page and the second look at its end, for each kind.
    fn list_cost_min(&self) -> u64 {
        u64::try_from(self.kinds.len()).unwrap_or(1).saturating_mul(2)
    }

    fn windows(&self, now: i64) -> Vec<Window> {
        let to = if self.to >= now { now.saturating_add(AHEAD_SECS) } else { self.to };
        let to = to.saturating_sub(1);
        self.kinds.iter().map(|kind| Window { kind: *kind, from: self.from, to }).collect()
    }
}

/// Asks about rows.
pub(super) async fn look(account: &Account, questions: &[Question], need: Need) -> Looked {
    let mut looked = empty(questions);
    let askable = |q: &Question| (q.tag.is_some() || q.reference.is_some()) && !kinds(q).is_empty();
    let rows: Vec<usize> =
        (0..questions.len()).filter(|row| questions.get(*row).is_some_and(askable)).collect();
    match need {
        Need::Search => {
            ask_one::search_rows(account, questions, &rows, &mut looked).await;
            looked.why = format!("search: {} rows, one by one", rows.len());
        }
        Need::Complete => {
            let plans = plan(account, questions, &rows);
            looked.why = format!("list: {} windows, complete", plans.len());
            list(account, questions, plans, &mut looked, u64::MAX, |_, _| true).await;
        }
        Need::Find => find(account, questions, &rows, &mut looked).await,
    }
    compose(account, &mut looked);
    looked.stop = account.stopped();
    tracing::info!(
        psp.account = %account.name(), plan.rows = rows.len(), plan.pages = looked.pages,
        plan.listed = looked.listed, "asked {}: {}", account.name(), looked.why
    );
    looked
}

fn empty(questions: &[Question]) -> Looked {
    let mut wanted = Wanted::default();
    for question in questions {
        wanted.add(question.tag.as_deref(), question.reference.as_deref(), kinds(question));
    }
    let count = questions.len();
    Looked {
        evidence: vec![Vec::new(); count],
        near: vec![Vec::new(); count],
        windows: Vec::new(),
        window_of: vec![None; count],
        listed: 0,
        pages: 0,
        why: String::new(),
        stop: None,
        answers: vec![Vec::new(); count],
        unread: vec![None; count],
        book: Book::default(),
        wanted: Arc::new(wanted),
    }
}

fn kinds(question: &Question) -> Vec<ObjectKind> {
    let mut kinds: Vec<_> =
        question.kinds.iter().filter_map(|kind| ObjectKind::parse(kind)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// Merges the windows of rows that ask for the same kinds.
fn plan(account: &Account, questions: &[Question], rows: &[usize]) -> Vec<Plan> {
    let now = account.stripe.lane.db_now().timestamp();
    let mut single: Vec<Plan> = Vec::new();
    for row in rows {
        let Some(question) = questions.get(*row) else { continue };
        let to = ceil(question.window.1).min(now);
        let from = question.window.0.timestamp().min(to.saturating_sub(1));
        single.push(Plan { kinds: kinds(question), from, to, rows: vec![*row] });
    }
    single.sort_by(|a, b| (&a.kinds, a.from).cmp(&(&b.kinds, b.from)));
    let mut merged: Vec<Plan> = Vec::new();
    for next in single {
        match merged.last_mut() {
            Some(last) if last.kinds == next.kinds && next.from <= last.to => {
                last.to = last.to.max(next.to);
                last.rows.extend(next.rows);
            }
            Some(_) | None => merged.push(next),
        }
    }
    merged
}

fn ceil(at: Instant) -> i64 {
    let secs = at.timestamp();
    if at.timestamp_subsec_nanos() > 0 { secs.saturating_add(1) } else { secs }
}

/// The cheapest way that can find each row.
async fn find(account: &Account, questions: &[Question], rows: &[usize], looked: &mut Looked) {
    let plans = plan(account, questions, rows);
    let cost = |plan: &Plan| plan.singles_cost(account, questions);
    let is_small = |plan: &Plan| cost(plan).is_some_and(|cost| cost <= plan.list_cost_min());
    let (small, open): (Vec<Plan>, Vec<Plan>) = plans.into_iter().partition(is_small);
    let costs: Vec<Option<u64>> = open.iter().map(cost).collect();
    let open_rows: Vec<Vec<usize>> = open.iter().map(|plan| plan.rows.clone()).collect();
    let is_cheaper = |index: usize, pages: u64| {
        costs.get(index).copied().flatten().is_none_or(|singles| pages <= singles)
    };
    // Probing must stay small beside what it may save.
    let probe = costs.iter().flatten().fold(0_u64, |sum, cost| sum.saturating_add(*cost));
    let probe = probe.checked_div(8).unwrap_or(0);
    let kept = list(account, questions, open, looked, probe, is_cheaper).await;
    let mut one_by_one: Vec<usize> = small.iter().flat_map(|plan| plan.rows.clone()).collect();
    let mut listed = 0_usize;
    for (rows, is_listed) in open_rows.iter().zip(kept) {
        if is_listed {
            listed = listed.saturating_add(rows.len());
            continue;
        }
        one_by_one.extend(rows);
    }
    let outside = not_in_list(account, questions, looked);
    looked.why = format!(
        "{listed} rows by list ({} pages), {} one by one, {} by reference outside the list",
        looked.pages,
        one_by_one.len(),
        outside.len()
    );
    ask_one::ask_rows(account, questions, &one_by_one, looked).await;
    ask_one::fetch_rows(account, questions, &outside, looked).await;
}

/// Rows of listed windows that store a reference which the list did not show.
fn not_in_list(account: &Account, questions: &[Question], looked: &Looked) -> Vec<usize> {
    if account.stopped().is_some() {
        return Vec::new();
    }
    let mut seen = vec![false; questions.len()];
    for (rows, _, light) in looked.book.of_rows() {
        for row in rows.iter().filter_map(|row| usize::try_from(*row).ok()) {
            let reference = questions.get(row).and_then(|q| q.reference.as_deref());
            let is_it = reference.is_some_and(|reference| is_named(light, reference));
            if let Some(seen) = seen.get_mut(row).filter(|_| is_it) {
                *seen = true;
            }
        }
    }
    let listed = looked.window_of.iter().zip(questions).zip(seen).enumerate();
    listed
        .filter(|(_, ((window, question), seen))| {
            window.is_some() && question.reference.is_some() && !seen
        })
        .map(|(row, _)| row)
        .collect()
}

fn is_named(light: &Neighbour, reference: &str) -> bool {
    *light.reference == *reference || light.aliases.iter().any(|alias| **alias == *reference)
}

/// Lists windows; `is_worth` may drop one once a few pages told how many there would be. Says
/// which were kept.
async fn list(
    account: &Account,
    questions: &[Question],
    plans: Vec<Plan>,
    looked: &mut Looked,
    probe: u64,
    is_worth: impl Fn(usize, u64) -> bool,
) -> Vec<bool> {
    if plans.is_empty() {
        return Vec::new();
    }
    let now = account.stripe.lane.db_now().timestamp();
    let windows: Vec<(usize, Window)> = plans
        .iter()
        .enumerate()
        .flat_map(|(plan, p)| p.windows(now).into_iter().map(move |w| (plan, w)))
        .collect();
    let owners: Vec<usize> = windows.iter().map(|(plan, _)| *plan).collect();
    let listing = listing(account, looked, windows.into_iter().map(|(_, w)| w).collect());
    listing.probe(probe).await;
    let mut pages = vec![0_u64; plans.len()];
    for (owner, left) in owners.iter().zip(listing.estimate()) {
        if let Some(sum) = pages.get_mut(*owner) {
            *sum = sum.saturating_add(left);
        }
    }
    let kept: Vec<bool> = pages.iter().enumerate().map(|(i, left)| is_worth(i, *left)).collect();
    log_plan(account, &plans, &pages, &kept);
    let is_kept = |plan: usize| kept.get(plan).copied().unwrap_or(false);
    listing.drop_windows(|window| owners.get(window).is_some_and(|plan| !is_kept(*plan)));
    listing.run().await;
    let (book, tallies) = listing.finish();
    looked.book = book;
    looked.pages = tallies.iter().fold(looked.pages, |sum, t| sum.saturating_add(t.pages));
    for (index, plan) in plans.iter().enumerate().filter(|(index, _)| is_kept(*index)) {
        let own = owners.iter().zip(&tallies).filter(|(owner, _)| **owner == index);
        let tallies: Vec<&Tally> = own.map(|(_, tally)| tally).collect();
        for row in &plan.rows {
            if let Some(window) = looked.window_of.get_mut(*row) {
                *window = Some(looked.windows.len());
            }
        }
        looked.windows.push(listed_window(plan.from, plan.to, &plan.kinds, &tallies));
    }
    read_whole(account, questions.len(), looked).await;
    kept
}

fn listing(account: &Account, looked: &mut Looked, windows: Vec<Window>) -> Listing {
    Listing::new(
        Arc::clone(&account.stripe),
        Arc::clone(&looked.wanted),
        std::mem::take(&mut looked.book),
        windows,
        account.settings.concurrency,
        account.settings.pages_max,
    )
}

fn log_plan(account: &Account, plans: &[Plan], pages: &[u64], kept: &[bool]) {
    for ((plan, pages), kept) in plans.iter().zip(pages).zip(kept) {
        let route = if *kept { "list" } else { "one_by_one" };
        tracing::info!(
            psp.account = %account.name(), plan.route = route, plan.rows = plan.rows.len(),
            plan.pages_left = *pages, plan.from = plan.from, plan.to = plan.to,
            plan.requests_per_second = %account.stripe.lane.per_second(),
            "{} rows at {}: {route}, since about {pages} pages are left to list",
            plan.rows.len(),
            account.name()
        );
    }
}

fn listed_window(from: i64, to: i64, kinds: &[ObjectKind], tallies: &[&Tally]) -> ListedWindow {
    let unfinished =
        || cause(CauseKind::Incomplete, "the window was not listed to its end".to_owned());
    let failed = tallies.iter().find(|t| !t.is_done);
    ListedWindow {
        kinds: kinds.iter().map(|kind| kind.as_str().to_owned()).collect(),
        from: at(from).unwrap_or(DateTime::<chrono::Utc>::MIN_UTC),
        to: at(to).unwrap_or(DateTime::<chrono::Utc>::MIN_UTC),
        asked_at: tallies.iter().filter_map(|tally| tally.asked_at).min(),
        skew_secs: tallies.iter().fold(None, |skew, t| wider_skew(skew, t.skew_secs)),
        listed: tallies.iter().fold(0, |sum, tally| sum.saturating_add(tally.listed)),
        failed: failed.map(|tally| tally.failed.clone().unwrap_or_else(unfinished)),
    }
}

/// Reads what a list did not show whole: parents of stray children, details of rows' objects.
async fn read_whole(account: &Account, questions: usize, looked: &mut Looked) {
    let parentless = looked.book.parentless();
    let stray = parentless.clone();
    let fetched = side_by_side(account, parentless, |stripe, reference| async move {
        stripe.fetch(&reference).await
    })
    .await;
    let mut failed = None;
    for (reference, fetched) in stray.iter().zip(fetched) {
        match fetched.unwrap_or_else(|| Err(left_halfway())) {
            Ok(crate::psp::stripe::Fetched::Found { piece, .. }) => {
                looked.book.add(*piece, &looked.wanted);
            }
            Ok(crate::psp::stripe::Fetched::Unknown { .. }) => {}
            Err(cause) => failed = Some(cause),
        }
        looked.book.settle_parentless(reference);
    }
    if let Some(cause) = failed {
        // Whose payments the stray children are stayed unknown: no window is complete.
        for window in &mut looked.windows {
            window.failed.get_or_insert_with(|| cause.clone());
        }
    }
    let mut known: HashMap<String, Parts> = looked
        .book
        .of_rows()
        .map(|(_, parts, light)| (light.reference.to_string(), parts.clone()))
        .collect();
    let unread = looked.book.unread();
    let asked: Vec<(String, Parts)> = unread
        .iter()
        .map(|u| (u.reference.clone(), known.remove(&u.reference).unwrap_or_default()))
        .collect();
    let read = side_by_side(account, asked, |stripe, (reference, parts)| async move {
        ask_one::whole(&stripe, &reference, parts).await
    })
    .await;
    looked.unread.resize(questions, None);
    for (unread, read) in unread.into_iter().zip(read) {
        match read.unwrap_or_else(|| Err(left_halfway())) {
            Ok(parts) => looked.book.replace(&unread.reference, parts),
            Err(cause) => note_unread(looked, &unread.rows, &cause),
        }
    }
}

fn note_unread(looked: &mut Looked, rows: &[u32], cause: &Cause) {
    for row in rows.iter().filter_map(|row| usize::try_from(*row).ok()) {
        if let Some(unread) = looked.unread.get_mut(row) {
            *unread = Some(cause.clone());
        }
    }
}

/// A task that ended without a result.
pub(super) fn left_halfway() -> Cause {
    cause(CauseKind::Incomplete, "a question was left halfway".to_owned())
}

/// Lists one window of a look further.
pub(super) async fn extend(
    account: &Account,
    questions: &[Question],
    looked: &mut Looked,
    window: usize,
    to: Instant,
) -> Result<(), Cause> {
    let missing = || cause(CauseKind::Incomplete, "there is no such window".to_owned());
    let Some(own) = looked.windows.get(window).cloned() else { return Err(missing()) };
    if let Some(failed) = own.failed {
        return Err(failed);
    }
    let now = account.stripe.lane.db_now().timestamp();
    let goal = ceil(to).min(now);
    let kinds: Vec<ObjectKind> = own.kinds.iter().filter_map(|k| ObjectKind::parse(k)).collect();
    let mut reached = own.to.timestamp();
    while reached < goal {
        let (asked_at, end, skew, listed) = match neighbour_at(looked, window, reached) {
            // Another window of this look covers what follows.
            Some(next) => (next.asked_at, next.to.timestamp(), next.skew_secs, next.listed),
            None => {
                let end = next_start(looked, window, reached).map_or(goal, |next| next.min(goal));
                let more = list_more(account, questions, looked, &kinds, (reached, end)).await;
                if let Some(failed) = more.failed {
                    compose(account, looked);
                    return Err(failed);
                }
                (more.asked_at, end, more.skew_secs, more.listed)
            }
        };
        reached = end;
        let Some(own) = looked.windows.get_mut(window) else { return Err(missing()) };
        own.to = at(end).unwrap_or(own.to);
        own.asked_at = own.asked_at.into_iter().chain(asked_at).min();
        own.skew_secs = wider_skew(own.skew_secs, skew);
        own.listed = own.listed.saturating_add(listed);
    }
    compose(account, looked);
    Ok(())
}

/// The complete window of the same kinds that covers the second `reached`.
fn neighbour_at(looked: &Looked, window: usize, reached: i64) -> Option<ListedWindow> {
    let mut others = same_kinds(looked, window);
    others.find(|w| w.from.timestamp() <= reached && w.to.timestamp() > reached).cloned()
}

fn next_start(looked: &Looked, window: usize, reached: i64) -> Option<i64> {
    same_kinds(looked, window).map(|w| w.from.timestamp()).filter(|from| *from > reached).min()
}

fn same_kinds(looked: &Looked, window: usize) -> impl Iterator<Item = &ListedWindow> {
    let kinds = looked.windows.get(window).map(|own| &own.kinds);
    let others = looked.windows.iter().enumerate().filter(move |(index, _)| *index != window);
    others.map(|(_, w)| w).filter(move |w| w.failed.is_none() && Some(&w.kinds) == kinds)
}

async fn list_more(
    account: &Account,
    questions: &[Question],
    looked: &mut Looked,
    kinds: &[ObjectKind],
    (from, to): (i64, i64),
) -> ListedWindow {
    let now = account.stripe.lane.db_now().timestamp();
    let plan = Plan { kinds: kinds.to_vec(), from, to, rows: Vec::new() };
    let listing = listing(account, looked, plan.windows(now));
    listing.run().await;
    let (book, tallies) = listing.finish();
    looked.book = book;
    looked.pages = tallies.iter().fold(looked.pages, |sum, t| sum.saturating_add(t.pages));
    let before: Vec<Option<Cause>> = looked.windows.iter().map(|w| w.failed.clone()).collect();
    read_whole(account, questions.len(), looked).await;
    let tallies: Vec<&Tally> = tallies.iter().collect();
    let mut more = listed_window(from, to, kinds, &tallies);
    // What could not be read of the new part is no fault of the windows read before it.
    for (window, before) in looked.windows.iter_mut().zip(before) {
        if window.failed != before {
            more.failed = more.failed.or(window.failed.take());
            window.failed = before;
        }
    }
    more
}

/// Puts each row's evidence together from what was seen and answered.
fn compose(account: &Account, looked: &mut Looked) {
    let count = looked.answers.len();
    let mut objects: Vec<Vec<PspObject>> = vec![Vec::new(); count];
    let mut unread = looked.unread.clone();
    let now = account.stripe.lane.db_now();
    for (rows, parts, light) in looked.book.of_rows() {
        let object = parts.object(&account.stripe.tag_key).map(|mut object| {
            let known: Vec<String> = object.aliases.clone();
            let more = light.aliases.iter().map(|alias| alias.to_string());
            object.aliases.extend(more.filter(|a| !known.contains(a) && *a != object.reference));
            object
        });
        for row in rows.iter().filter_map(|row| usize::try_from(*row).ok()) {
            match (&object, objects.get_mut(row), unread.get_mut(row)) {
                (Some(object), Some(own), Some(None)) => own.push(object.clone()),
                (None, _, Some(unread)) => {
                    let detail = format!("{} has no readable time", light.reference);
                    unread.get_or_insert(cause(CauseKind::Unreadable, detail));
                }
                (_, _, _) => {}
            }
        }
    }
    for row in 0..count {
        let window = looked.window_of.get(row).copied().flatten();
        let window = window.and_then(|window| looked.windows.get(window));
        let unread = unread.get(row).cloned().flatten();
        let objects = objects.get_mut(row).map(std::mem::take).unwrap_or_default();
        let mut evidence = from_list(account.name(), window, unread, objects, now);
        evidence.extend(looked.answers.get(row).cloned().unwrap_or_default());
        if let Some(slot) = looked.evidence.get_mut(row) {
            *slot = evidence;
        }
    }
    note_near(looked);
    looked.listed = looked.book.ours_count();
}

fn note_near(looked: &mut Looked) {
    for (row, light) in looked.book.near() {
        let Ok(row) = usize::try_from(row) else { continue };
        let tag = light.tag.as_ref().map_or(String::new(), |tag| tag.to_string());
        let near = (light.reference.to_string(), tag);
        if let Some(slot) = looked.near.get_mut(row).filter(|slot| !slot.contains(&near)) {
            slot.push(near);
        }
    }
}

/// The evidence that a listed window is for one row.
fn from_list(
    account: &str,
    window: Option<&ListedWindow>,
    unread: Option<Cause>,
    objects: Vec<PspObject>,
    now: Instant,
) -> Vec<Evidence> {
    let search = window.and_then(|window| window.search(Route::List));
    let asked_at = window.and_then(|window| window.asked_at).unwrap_or(now);
    let evidence =
        |answer| Evidence { account: account.to_owned(), route: Route::List, asked_at, answer };
    let failed = window.and_then(|window| window.failed.clone());
    match (search, unread, failed) {
        (Some(search), None, None) if window.is_some() => vec![evidence(whole(objects, search))],
        (_, unread, failed) => {
            let found =
                (!objects.is_empty()).then(|| evidence(Answer::Found { objects, search: None }));
            let why = unread.or(failed).filter(|_| window.is_some());
            let lost = why.or_else(|| window.map(|_| left_halfway()));
            found.into_iter().chain(lost.map(|cause| evidence(Answer::NoAnswer(cause)))).collect()
        }
    }
}

fn whole(objects: Vec<PspObject>, search: CompleteSearch) -> Answer {
    if objects.is_empty() {
        Answer::Nothing(search)
    } else {
        Answer::Found { objects, search: Some(search) }
    }
}
