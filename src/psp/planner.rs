//! By which route an account is asked.
//!
//! One list may settle a thousand rows, and one row is settled faster by itself: where both ways
//! are open, a few pages are read here and there to see how many there would be, and the cheaper
//! way is taken. What these pages show decides, and not what was read meanwhile: the same data is
//! asked for by the same way each time.
//! A plan changes what is asked, never what an answer means.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, MutexGuard, PoisonError};

use crate::model::count::counted;
use crate::model::evidence::CauseKind;
use crate::model::time::{Instant, to_text};
use crate::psp::account::{Account, Looked, Need, Question};
use crate::psp::ask_one::{self, side_by_side};
use crate::psp::book::Book;
use crate::psp::estimate::{Known, ROUNDS, looks};
use crate::psp::lane::cause;
use crate::psp::later::Later;
use crate::psp::listing::{Listing, Tally, Window};
use crate::psp::look::{ListedWindow, Look, kinds_of, left_halfway};
use crate::psp::stripe::{Fetched, ObjectKind, wider_skew};
use crate::psp::stripe_objects::{Parts, at};

/// The PSP's clock may be ahead of the database's: what it just made stands in its future.
const AHEAD_SECS: i64 = 120;

/// Windows nearer to each other than this are read as one: each end costs a page and a second
/// look at it for every kind.
const MERGE_GAP_SECS: i64 = 600;

/// One page is read ahead, besides those that tell, for so many requests that a list may save.
const PROBE_SHARE: u64 = 32;

/// Windows of rows that touch, and that ask for the same kinds.
#[derive(Debug, Clone)]
struct Plan {
    kinds: Vec<ObjectKind>,
    from: i64,
    to: Instant,
    rows: Vec<usize>,
    /// Only a list is sure to show what was seen there.
    must_list: bool,
}

impl Plan {
    fn of(question: &Question, row: usize, now: Instant) -> Self {
        let (from, to) = question.window;
        // A window that begins in the future is no reason to ask backwards.
        let from = from.timestamp().min(now.timestamp()).min(ceil(to).saturating_sub(1));
        Self { kinds: kinds_of(question), from, to, rows: vec![row], must_list: false }
    }

    /// What asking its rows one by one costs; `None`: it cannot be done.
    fn singles_cost(&self, account: &Account, questions: &[Question]) -> Option<u64> {
        if self.must_list {
            return None;
        }
        let mut sum = 0_u64;
        for question in self.rows.iter().filter_map(|row| questions.get(*row)) {
            let searches = ask_one::search_kinds(account, question).len();
            // Each kind is searched, and the object is read by its id: an index may be behind.
            let cost = match (&question.reference, searches) {
                (None, 0) => return None,
                // Beside the refund, those of its payment are listed.
                (Some(_), 0) if ask_one::is_of_refunds(question) => 2,
                // Only a list shows what else stands under the tag.
                (Some(_), 0) if question.tag.is_some() => return None,
                (Some(_) | None, searches) => u64::try_from(searches).ok()?.checked_add(1)?,
            };
            sum = sum.saturating_add(cost);
        }
        Some(sum)
    }

    /// The least that listing can cost: one page and the second look at its end, for each kind.
    fn list_cost_min(&self) -> u64 {
        u64::try_from(self.kinds.len()).unwrap_or(1).saturating_mul(2)
    }

    fn windows(&self, now: Instant) -> Vec<Window> {
        let end = ceil(self.to);
        let to = if self.to >= now { now.timestamp().saturating_add(AHEAD_SECS) } else { end };
        let to = to.saturating_sub(1);
        self.kinds.iter().map(|kind| Window { kind: *kind, from: self.from, to }).collect()
    }

    fn begin(&self) -> Instant {
        at(self.from).unwrap_or(self.to)
    }

    fn listed(&self, tallies: &[&Tally]) -> ListedWindow {
        let unfinished =
            || cause(CauseKind::Incomplete, "the window was not listed to its end".to_owned());
        let failed = tallies.iter().find(|tally| !tally.is_done);
        // What was asked reaches this far, also where the plan was made before.
        let asked_to = tallies.iter().map(|tally| tally.window.to.saturating_add(1)).min();
        ListedWindow {
            kinds: self.kinds.clone(),
            from: self.begin(),
            to: asked_to.and_then(at).map_or(self.to, |asked_to| self.to.min(asked_to)),
            asked_at: tallies.iter().filter_map(|tally| tally.asked_at).min(),
            skew_secs: tallies.iter().fold(None, |skew, t| wider_skew(skew, t.skew_secs)),
            listed: tallies.iter().fold(0, |sum, tally| sum.saturating_add(tally.listed)),
            failed: failed.map(|tally| tally.failed.clone().unwrap_or_else(unfinished)),
        }
    }
}

/// Asks about rows.
pub(super) async fn look(account: &Account, questions: &[Question], need: Need) -> Looked {
    let mut look = Look::at(questions);
    let has_name = |q: &Question| q.tag.is_some() || q.reference.is_some();
    let is_askable = |q: &Question| has_name(q) || need == Need::Complete;
    let rows: Vec<usize> = questions
        .iter()
        .enumerate()
        .filter(|(_, question)| is_askable(question) && !kinds_of(question).is_empty())
        .map(|(row, _)| row)
        .collect();
    match need {
        Need::Search => {
            let rows_text = counted(rows.len(), "row", "rows");
            look.plan = format!("{rows_text} by search: it sees past every window");
            ask_one::search_rows(account, questions, &rows, &mut look).await;
        }
        Need::Complete => {
            complete(account, plan(account, questions, &rows), rows.len(), &mut look).await;
        }
        Need::Find => find(account, questions, plan(account, questions, &rows), &mut look).await,
        Need::Fetch => {
            look.plan = format!("{} by reference", counted(rows.len(), "object", "objects"));
            ask_one::fetch_rows(account, questions, &rows, &mut look).await;
        }
    }
    told(account, look.finish(account), rows.len())
}

/// Asks about rows in windows that end now, and lists what the account was not asked for yet.
pub(super) async fn look_later(account: &Account, questions: &[Question], need: Need) -> Looked {
    let mut look = Look { book: Book::of_rows_alone(), ..Look::at(questions) };
    let rows = (0..).zip(questions).filter(|(_, question)| !kinds_of(question).is_empty());
    let plans: Vec<Plan> = rows.flat_map(|(row, question)| left(account, question, row)).collect();
    let count = questions.len();
    let plans = merged(plans);
    match need {
        Need::Find => find(account, questions, plans, &mut look).await,
        Need::Complete | Need::Search | Need::Fetch => {
            complete(account, plans, count, &mut look).await;
        }
    }
    if let Some(seen) = look.book.take_seen() {
        let listed = look.windows.iter().filter_map(ListedWindow::seconds);
        later(account).add(listed, seen);
    }
    told(account, look.finish(account), count)
}

fn later(account: &Account) -> MutexGuard<'_, Later> {
    account.later.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is left to list for a question: where its tag was seen, and since the list of all.
fn left(account: &Account, question: &Question, row: usize) -> Vec<Plan> {
    let all = Plan::of(question, row, account.now());
    let left = later(account).left(&all.kinds, all.from, question.tag.as_deref());
    let seen = left.seen.and_then(|(from, last)| {
        let to = at(last.saturating_add(1))?;
        Some(Plan { from, to, must_list: true, ..all.clone() })
    });
    // What the PSP made after it was asked may be stamped earlier, by a clock that is behind.
    let from = left.from.saturating_sub(AHEAD_SECS).max(all.from);
    seen.into_iter().chain([Plan { from, ..all }]).collect()
}

fn told(account: &Account, looked: Looked, rows: usize) -> Looked {
    tracing::info!(
        psp.account = %account.name(), plan.rows = rows, plan.pages = looked.pages,
        plan.listed = looked.listed,
        plan.requests_per_second = %account.stripe.lane.per_second(),
        "asked {}: {}", account.name(), looked.why
    );
    looked
}

/// The windows of rows, merged.
fn plan(account: &Account, questions: &[Question], rows: &[usize]) -> Vec<Plan> {
    let now = account.now();
    let asked = rows.iter().filter_map(|row| Some((*row, questions.get(*row)?)));
    merged(asked.map(|(row, question)| Plan::of(question, row, now)).collect())
}

/// Merges windows that ask for the same kinds.
fn merged(mut single: Vec<Plan>) -> Vec<Plan> {
    single.sort_by(|a, b| (&a.kinds, a.from).cmp(&(&b.kinds, b.from)));
    let mut merged: Vec<Plan> = Vec::new();
    for next in single {
        match merged.last_mut() {
            Some(last)
                if last.kinds == next.kinds
                    && next.from <= ceil(last.to).saturating_add(MERGE_GAP_SECS) =>
            {
                last.to = last.to.max(next.to);
                last.must_list |= next.must_list;
                last.rows.extend(next.rows);
            }
            Some(_) | None => merged.push(next),
        }
    }
    merged
}

/// A list of the windows, and nothing else.
async fn complete(account: &Account, plans: Vec<Plan>, rows: usize, look: &mut Look) {
    let rows_text = counted(rows, "row", "rows");
    look.plan = format!("{rows_text} by list: it must be complete");
    list(account, plans, look, None).await;
}

fn ceil(at: Instant) -> i64 {
    at.timestamp().saturating_add(i64::from(at.timestamp_subsec_nanos() > 0))
}

/// The cheapest way that can find each row.
async fn find(account: &Account, questions: &[Question], plans: Vec<Plan>, look: &mut Look) {
    let cost = |plan: &Plan| plan.singles_cost(account, questions);
    let is_small = |plan: &Plan| cost(plan).is_some_and(|cost| cost <= plan.list_cost_min());
    let (small, open): (Vec<Plan>, Vec<Plan>) = plans.into_iter().partition(is_small);
    let costs: Vec<Option<u64>> = open.iter().map(cost).collect();
    let dropped = list(account, open, look, Some(&costs)).await;
    let one_by_one: Vec<usize> =
        small.into_iter().flat_map(|plan| plan.rows).chain(dropped).collect();
    ask_one::ask_rows(account, questions, &one_by_one, look).await;
    let outside = match account.stripe.lane.stopped() {
        Some(_) => Vec::new(),
        None => look.not_in_list(questions),
    };
    ask_one::fetch_rows(account, questions, &outside, look).await;
    look.plan = format!(
        "{} by list, {} one by one, {} by a reference that the list did not show",
        counted(look.window_of.iter().flatten().count(), "row", "rows"),
        one_by_one.len(),
        outside.len()
    );
}

/// Lists windows. Where it is told what each would cost otherwise, a few pages are read first, and
/// what is cheaper otherwise is dropped. Returns the rows of those dropped.
async fn list(
    account: &Account,
    plans: Vec<Plan>,
    look: &mut Look,
    otherwise: Option<&[Option<u64>]>,
) -> Vec<usize> {
    if plans.is_empty() {
        return Vec::new();
    }
    let now = account.now();
    let windows: Vec<(usize, Window)> = plans
        .iter()
        .enumerate()
        .flat_map(|(plan, p)| p.windows(now).into_iter().map(move |window| (plan, window)))
        .collect();
    let owners: Vec<usize> = windows.iter().map(|(plan, _)| *plan).collect();
    let listing = Listing::new(
        Arc::clone(&account.stripe),
        Arc::clone(&look.wanted),
        std::mem::take(&mut look.book),
        windows.into_iter().map(|(_, window)| window).collect(),
        account.settings.concurrency,
        account.settings.pages_max,
    );
    let mut kept = vec![true; plans.len()];
    let workers = listing.begin(otherwise.map(ahead));
    if let Some(costs) = otherwise {
        let pages = survey(&listing, &owners, costs).await;
        for ((kept, cost), left) in kept.iter_mut().zip(costs).zip(&pages) {
            *kept = cost.is_none_or(|cost| *left <= cost);
        }
        log_plans(account, &plans, costs, &pages, &kept);
    }
    let is_kept = |plan: usize| kept.get(plan).copied().unwrap_or(false);
    listing.drop_windows(|window| owners.get(window).is_some_and(|plan| !is_kept(*plan)));
    listing.go_on(workers).await;
    let (book, tallies) = listing.finish();
    look.book = book;
    look.pages = tallies.iter().fold(look.pages, |sum, t| sum.saturating_add(t.pages));
    let mut dropped = Vec::new();
    for (index, plan) in plans.into_iter().enumerate() {
        if !is_kept(index) {
            dropped.extend(plan.rows);
            continue;
        }
        let own = owners.iter().zip(&tallies).filter(|(owner, _)| **owner == index);
        let own: Vec<&Tally> = own.map(|(_, tally)| tally).collect();
        for row in &plan.rows {
            if let Some(window) = look.window_of.get_mut(*row) {
                // Of two windows of one row the one that failed is its answer.
                let known = window.and_then(|known| look.windows.get(known));
                if known.is_none_or(|known| known.failed.is_none()) {
                    *window = Some(look.windows.len());
                }
            }
        }
        look.windows.push(plan.listed(&own));
    }
    read_strays(account, look).await;
    read_whole(account, look).await;
    dropped
}

/// How many pages may be read while it is open which way is the cheaper: few beside what all the
/// rows cost otherwise, and no time is lost where the list is.
fn ahead(costs: &[Option<u64>]) -> u64 {
    let sum = costs.iter().flatten().fold(0_u64, |sum, cost| sum.saturating_add(*cost));
    sum.checked_div(PROBE_SHARE).unwrap_or(0)
}

/// Reads the first page of each window and a few further down, to tell how many pages each plan
/// has left to list.
async fn survey(listing: &Listing, owners: &[usize], costs: &[Option<u64>]) -> Vec<u64> {
    listing.told().await;
    let mut looked = vec![0_usize; costs.len()];
    for round in 0..ROUNDS {
        let known = listing.known();
        let mut places: Vec<(usize, i64)> = Vec::new();
        for ((plan, cost), looked) in costs.iter().enumerate().zip(&mut looked) {
            let Some(cost) = cost else { continue };
            let own = owners.iter().zip(&known).enumerate();
            let own = own.filter(|(_, (owner, _))| **owner == plan);
            let (windows, own): (Vec<usize>, Vec<&Known>) =
                own.map(|(window, (_, known))| (window, known)).unzip();
            for (place, second) in looks(&own, *cost, round, *looked) {
                *looked = looked.saturating_add(1);
                places.extend(windows.get(place).map(|window| (*window, second)));
            }
        }
        if !places.is_empty() {
            listing.look_at(&places).await;
        }
    }
    let mut pages = vec![0_u64; costs.len()];
    for (owner, known) in owners.iter().zip(listing.known()) {
        if let Some(sum) = pages.get_mut(*owner) {
            *sum = sum.saturating_add(known.pages_left());
        }
    }
    pages
}

fn log_plans(
    account: &Account,
    plans: &[Plan],
    costs: &[Option<u64>],
    pages: &[u64],
    kept: &[bool],
) {
    for (((plan, cost), pages), kept) in plans.iter().zip(costs).zip(pages).zip(kept) {
        let route = if *kept { "list" } else { "one_by_one" };
        let otherwise = cost.map_or_else(
            || "they cannot be asked for one by one".to_owned(),
            |cost| format!("one by one takes about {cost} requests"),
        );
        tracing::info!(
            psp.account = %account.name(), plan.route = route, plan.rows = plan.rows.len(),
            plan.pages_left = *pages, plan.from = %to_text(plan.begin()),
            plan.to = %to_text(plan.to),
            "{} rows at {}: {route}, since about {pages} pages are left to list and {otherwise}",
            plan.rows.len(),
            account.name()
        );
    }
}

/// Fetches the parents of children that came without them and without a tag: whose they are
/// stands on the parent alone.
async fn read_strays(account: &Account, look: &mut Look) {
    let strays = look.book.parentless();
    let fetched = side_by_side(account, strays.clone(), |stripe, reference| async move {
        stripe.fetch(&reference).await
    })
    .await;
    let mut failed = None;
    for (reference, fetched) in strays.iter().zip(fetched) {
        match fetched.unwrap_or_else(|| Err(left_halfway())) {
            Ok(Fetched::Found { piece, .. }) => look.book.add(*piece, &look.wanted),
            Ok(Fetched::Unknown { .. }) => look.book.settle_parentless(reference),
            Err(cause) => failed = Some(cause),
        }
    }
    if let Some(cause) = failed {
        // Any of them could be any row's: no window is complete.
        for window in &mut look.windows {
            window.failed.get_or_insert_with(|| cause.clone());
        }
    }
}

/// Reads anew what was not seen whole of the rows' own payments.
async fn read_whole(account: &Account, look: &mut Look) {
    let unread = look.book.unread();
    if unread.is_empty() {
        return;
    }
    let names: HashSet<&str> = unread.iter().map(|u| u.reference.as_str()).collect();
    let mut known: HashMap<String, Parts> = look
        .book
        .of_rows()
        .filter(|(_, _, light)| names.contains(&*light.reference))
        .map(|(_, parts, light)| (light.reference.to_string(), parts.clone()))
        .collect();
    let asks: Vec<(String, Parts)> = unread
        .iter()
        .map(|u| (u.reference.clone(), known.remove(&u.reference).unwrap_or_default()))
        .collect();
    let read = side_by_side(account, asks, |stripe, (reference, parts)| async move {
        ask_one::whole(&stripe, &reference, parts).await
    })
    .await;
    for (unread, read) in unread.into_iter().zip(read) {
        match read.unwrap_or_else(|| Err(left_halfway())) {
            Ok(parts) => look.book.replace(&unread.reference, parts),
            Err(cause) => look.note_unread(&unread.rows, &cause),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_covers_every_second_that_it_touches() {
        let at = |text: &str| crate::model::time::from_text(text).unwrap();
        let plan = |to: &str| Plan {
            kinds: vec![ObjectKind::Charge],
            from: 100,
            to: at(to),
            rows: Vec::new(),
            must_list: false,
        };
        let now = at("1970-01-01T01:00:00Z");
        for (to, last) in [
            ("1970-01-01T00:10:00Z", 599),
            ("1970-01-01T00:10:00.000001Z", 600),
            ("1970-01-01T01:00:00Z", 3_719),
            ("1970-01-02T00:00:00Z", 3_719),
        ] {
            assert_eq!(plan(to).windows(now)[0].to, last, "{to}");
        }
    }
}
