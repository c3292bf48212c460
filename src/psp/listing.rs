//! Listing windows of creation times to a provable end, in time slices side by side.
//!
//! A window starts as one slice, newest first. A worker without work takes the older half of the
//! slice with the most left, as its density says, so that quiet nights and busy noons end
//! together. Each split costs half a page that two slices read, so a slice is split once for each
//! page that told something new of it, and not at all while requests go out as fast as they may.
//! A page counts only if every object lies in the seconds asked for, none comes twice, and the
//! order is newest first. A slice is at its end when a page goes past its border. Where the list
//! itself ends, it is asked once more before that is believed; then nothing may stand below, and
//! slices below need no look of their own.
//! Anything else makes the whole window incomplete, which is no answer. Objects made while paging
//! stand above the cursor and cannot shift what is below it.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant as Tick;

use crate::model::evidence::{Cause, CauseKind};
use crate::model::time::Instant;
use crate::psp::book::{Book, Wanted};
use crate::psp::estimate::{Known, Spot, span};
use crate::psp::lane::cause;
use crate::psp::stripe::{ListPage, ObjectKind, PAGE, PageAsk, Stripe, wider_skew};

/// A slice is split only while this many pages are left in it: a split costs half a page and the
/// second look at its end.
const SPLIT_PAGES_MIN: u64 = 3;

/// Requests looked back at, to tell whether they go out as fast as the account lets them.
const LOOK_BACK: usize = 16;

/// Seconds to list, both inclusive, of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) kind: ObjectKind,
    pub(super) from: i64,
    pub(super) to: i64,
}

/// How the listing of one window went.
#[derive(Debug, Clone)]
pub(super) struct Tally {
    pub(super) window: Window,
    pub(super) listed: u64,
    pub(super) pages: u64,
    pub(super) asked_at: Option<Instant>,
    pub(super) skew_secs: Option<i64>,
    /// Why it is not complete.
    pub(super) failed: Option<Cause>,
    /// Read to its end.
    pub(super) is_done: bool,
}

#[derive(Debug)]
struct Slice {
    window: usize,
    /// The oldest second that is still this slice's; a thief raises it.
    from: i64,
    to: i64,
    cursor: Option<String>,
    /// The second of the last object seen, and the ids seen of that second.
    reached: Option<i64>,
    same_second: HashSet<String>,
    /// Objects of the latest pages and the seconds that they span; older pages count less.
    seen: Seen,
    /// What its first page showed.
    spot: Option<Spot>,
    /// Its first page tells how many there are; a part that a worker took over does not.
    is_told: bool,
    /// A page came since the last split.
    is_fresh: bool,
    state: State,
}

#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    objects: u64,
    secs: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Busy,
    /// The last page said so; to be asked once more.
    Ending,
    Done,
}

/// Where the list of a window ended, by one slice's last page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ListEnd {
    /// Nothing stands in an older second than this one.
    second: i64,
    /// The slice that is asked once more.
    slice: usize,
    is_sure: bool,
}

struct Board {
    slices: Vec<Slice>,
    tallies: Vec<Tally>,
    /// By window.
    ends: Vec<Option<ListEnd>>,
    /// The oldest object of each window.
    oldest: Vec<Option<i64>>,
    /// When the latest questions were handed out.
    handed: VecDeque<Tick>,
    book: Book,
    wanted: Arc<Wanted>,
    pages: u64,
    pages_max: u64,
    /// While it is open whether to list at all: how many pages may be read meanwhile besides the
    /// first ones.
    ahead: Option<u64>,
}

/// A listing under way.
#[derive(Clone)]
pub(super) struct Listing {
    stripe: Arc<Stripe>,
    board: Arc<Mutex<Board>>,
    turned: Arc<Notify>,
    workers: u32,
}

/// Those who read pages; they end with this.
pub(super) struct Workers(JoinSet<()>);

enum Task {
    Page(usize, PageAsk),
    /// The same question below the last object: nothing may come.
    End(usize, PageAsk),
    Wait,
    Stop,
}

impl Listing {
    pub(super) fn new(
        stripe: Arc<Stripe>,
        wanted: Arc<Wanted>,
        book: Book,
        windows: Vec<Window>,
        workers: u32,
        pages_max: u64,
    ) -> Self {
        let board = Board::new(wanted, book, windows, pages_max);
        let board = Arc::new(Mutex::new(board));
        Self { stripe, board, turned: Arc::new(Notify::new()), workers: workers.max(1) }
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        // A holder never leaves the board half changed.
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to list. Where it is told how many pages may be read ahead, no more are, beside those
    /// that tell how many there are, before [`Listing::go_on`].
    pub(super) fn begin(&self, ahead: Option<u64>) -> Workers {
        self.board().ahead = ahead;
        let mut workers = JoinSet::new();
        for _ in 0..self.workers {
            let listing = self.clone();
            workers.spawn(async move { listing.worker().await });
        }
        Workers(workers)
    }

    /// Has pages read from these seconds of windows down, and waits for what they tell.
    pub(super) async fn look_at(&self, places: &[(usize, i64)]) {
        for (window, second) in places {
            self.board().look_at(*window, *second);
        }
        self.turned.notify_waiters();
        self.told().await;
    }

    /// Waits for the pages that tell how many there are: the first one of each window, and those
    /// that [`Listing::look_at`] asked for.
    pub(super) async fn told(&self) {
        loop {
            // Listened for before looking, so that no turn between the two is missed.
            let turned = self.turned.notified();
            tokio::pin!(turned);
            turned.as_mut().enable();
            if !self.board().is_telling() {
                return;
            }
            turned.await;
        }
    }

    /// Lists everything that is left.
    pub(super) async fn go_on(&self, mut workers: Workers) {
        self.board().ahead = None;
        self.turned.notify_waiters();
        while workers.0.join_next().await.is_some() {}
    }

    async fn worker(&self) {
        loop {
            // Listened for before looking, so that no turn between the two is missed.
            let turned = self.turned.notified();
            tokio::pin!(turned);
            turned.as_mut().enable();
            let pace = self.stripe.lane.per_second();
            let task = self.board().next_task(Tick::now(), pace);
            match task {
                Task::Page(slice, ask) => {
                    let mut held = Held { listing: self, slice, is_open: true };
                    let page = self.stripe.list(&ask).await;
                    // Let go under the same lock: from here on the slice may be another's.
                    let mut board = self.board();
                    board.take_page(slice, &ask, page);
                    held.is_open = false;
                    drop(board);
                }
                Task::End(slice, ask) => {
                    let mut held = Held { listing: self, slice, is_open: true };
                    let page = self.stripe.list(&ask).await;
                    // Let go under the same lock: from here on the slice may be another's.
                    let mut board = self.board();
                    board.take_end(slice, page);
                    held.is_open = false;
                    drop(board);
                }
                Task::Wait => turned.await,
                Task::Stop => return,
            }
        }
    }

    /// Each window, as far as the pages that were read to tell show it.
    pub(super) fn known(&self) -> Vec<Known> {
        self.board().known()
    }

    /// Leaves windows unlisted: another way is cheaper.
    pub(super) fn drop_windows(&self, dropped: impl Fn(usize) -> bool) {
        let mut board = self.board();
        for index in 0..board.tallies.len() {
            if dropped(index) {
                board.close(index);
            }
        }
    }

    /// What was seen, and how each window went.
    pub(super) fn finish(&self) -> (Book, Vec<Tally>) {
        let mut board = self.board();
        board.settle();
        (std::mem::take(&mut board.book), board.tallies.clone())
    }
}

/// A worker's hold on a slice: however it ends, the others hear of it, and nobody waits for a
/// slice that its worker left halfway.
struct Held<'a> {
    listing: &'a Listing,
    slice: usize,
    is_open: bool,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.is_open {
            let detail = "the listing of a slice was left halfway".to_owned();
            self.listing.board().fail(self.slice, cause(CauseKind::Incomplete, detail));
        }
        self.listing.turned.notify_waiters();
    }
}

impl Tally {
    fn new(window: Window) -> Self {
        Self {
            window,
            listed: 0,
            pages: 0,
            asked_at: None,
            skew_secs: None,
            failed: None,
            is_done: false,
        }
    }
}

impl Seen {
    /// Adds a page; what came before counts half.
    fn add(&mut self, objects: usize, newest: i64, oldest: i64) {
        let span = span(newest, oldest).max(1);
        let objects = u64::try_from(objects).unwrap_or(0);
        self.objects = self.objects.checked_div(2).unwrap_or(0).saturating_add(objects);
        self.secs = self.secs.checked_div(2).unwrap_or(0).saturating_add(span);
    }
}

impl Slice {
    fn new(window: usize, from: i64, to: i64) -> Self {
        let state = if from > to { State::Done } else { State::Waiting };
        Self {
            window,
            from,
            to,
            cursor: None,
            reached: None,
            same_second: HashSet::new(),
            seen: Seen::default(),
            spot: None,
            is_told: true,
            is_fresh: false,
            state,
        }
    }

    /// Its first page is still to tell how many there are.
    fn is_to_tell(&self) -> bool {
        let is_open = matches!(self.state, State::Waiting | State::Busy);
        is_open && self.is_told && self.spot.is_none()
    }

    /// The newest second that is not wholly read.
    fn top(&self) -> i64 {
        self.reached.unwrap_or(self.to)
    }

    fn seconds_left(&self) -> u64 {
        span(self.top(), self.from)
    }
}

impl Board {
    fn new(wanted: Arc<Wanted>, book: Book, windows: Vec<Window>, pages_max: u64) -> Self {
        let slices = windows.iter().enumerate();
        let slices = slices.map(|(index, window)| Slice::new(index, window.from, window.to));
        let count = windows.len();
        Self {
            slices: slices.collect(),
            tallies: windows.into_iter().map(Tally::new).collect(),
            ends: vec![None; count],
            oldest: vec![None; count],
            handed: VecDeque::with_capacity(LOOK_BACK),
            book,
            wanted,
            pages: 0,
            pages_max,
            ahead: None,
        }
    }

    fn next_task(&mut self, now: Tick, pace: u128) -> Task {
        if let Some(ahead) = self.ahead {
            let to_tell = |index: &usize| self.slices.get(*index).is_some_and(Slice::is_to_tell);
            let next = (0..self.slices.len()).find(|index| to_tell(index) && self.is_ready(*index));
            match next {
                Some(index) => return self.ask(index, now, pace),
                None if ahead == 0 => return Task::Wait,
                None => {}
            }
        }
        let next = (0..self.slices.len()).find(|index| self.is_ready(*index));
        let next = next.or_else(|| if self.is_full(now, pace) { None } else { self.split() });
        let Some(index) = next else {
            let is_open = self.ahead.is_some();
            let is_busy = self.slices.iter().any(|slice| slice.state == State::Busy);
            return if is_open || is_busy { Task::Wait } else { Task::Stop };
        };
        self.ahead = self.ahead.map(|ahead| ahead.saturating_sub(1));
        self.ask(index, now, pace)
    }

    /// Whether a first page is still to come. Below the end of a list none is asked for.
    fn is_telling(&self) -> bool {
        let mut slices = self.slices.iter().enumerate();
        slices.any(|(index, slice)| slice.is_to_tell() && !self.is_below_end(index))
    }

    fn ask(&mut self, index: usize, now: Tick, pace: u128) -> Task {
        self.pages = self.pages.saturating_add(1);
        if self.pages > self.pages_max {
            let detail = format!("the list has no end within {} pages", self.pages_max);
            self.fail(index, cause(CauseKind::Incomplete, detail));
            // Each call fails one more window, so that this ends.
            return self.next_task(now, pace);
        }
        self.hand_out(index, now)
    }

    fn hand_out(&mut self, index: usize, now: Tick) -> Task {
        if self.handed.len() >= LOOK_BACK {
            self.handed.pop_front();
        }
        self.handed.push_back(now);
        let Some(slice) = self.slices.get_mut(index) else { return Task::Stop };
        let Some(tally) = self.tallies.get_mut(slice.window) else { return Task::Stop };
        tally.pages = tally.pages.saturating_add(1);
        let is_end = slice.state == State::Ending;
        slice.state = State::Busy;
        let ask = PageAsk {
            kind: tally.window.kind,
            // Past the slice's own end: a page that goes over the border shows by itself that
            // nothing is missing before it.
            from: tally.window.from,
            to: slice.to,
            cursor: slice.cursor.clone(),
            limit: if is_end { 1 } else { PAGE },
        };
        if is_end { Task::End(index, ask) } else { Task::Page(index, ask) }
    }

    /// What may be asked now. Below the end of a list that is being asked once more nothing is:
    /// should nothing stand there, the answer says so for all of it.
    fn is_ready(&self, index: usize) -> bool {
        let is_due = |slice: &Slice| matches!(slice.state, State::Waiting | State::Ending);
        self.slices.get(index).is_some_and(is_due) && !self.is_below_end(index)
    }

    /// Whether the slice lies wholly below where the window's list ended.
    fn is_below_end(&self, index: usize) -> bool {
        let Some(slice) = self.slices.get(index) else { return false };
        let end = self.ends.get(slice.window).copied().flatten();
        end.is_some_and(|end| end.slice != index && slice.to < end.second)
    }

    /// Whether the latest questions went out as fast as the account lets them: more slices side
    /// by side would only wait for each other.
    fn is_full(&self, now: Tick, pace: u128) -> bool {
        let Some(first) = self.handed.front().filter(|_| self.handed.len() >= LOOK_BACK) else {
            return false;
        };
        let due = u64::try_from(pace).ok().and_then(|pace| {
            let micros = u64::try_from(LOOK_BACK).ok()?.saturating_mul(1_000_000);
            micros.checked_div(pace).map(Duration::from_micros)
        });
        due.is_some_and(|due| now.duration_since(*first) <= due)
    }

    fn pages_left(&self, slice: &Slice) -> u64 {
        let per_page = u128::try_from(PAGE).unwrap_or(1);
        let objects =
            u128::from(slice.seconds_left()).saturating_mul(u128::from(slice.seen.objects));
        let objects = objects.checked_div(u128::from(slice.seen.secs)).unwrap_or(0);
        u64::try_from(objects.checked_div(per_page).unwrap_or(0)).unwrap_or(u64::MAX)
    }

    fn known(&self) -> Vec<Known> {
        let spots = |(index, tally): (usize, &Tally)| {
            let window = &tally.window;
            // What failed is not listed further.
            let is_own = |slice: &&Slice| slice.window == index && tally.failed.is_none();
            let end = self.ends.get(index).copied().flatten();
            let spot = |slice: &Slice| {
                // What was not asked for, as the list had ended above, would have come empty.
                let is_below = end.is_some_and(|end| slice.to < end.second);
                slice.spot.or_else(|| is_below.then(|| Spot::empty(slice.to, window.from)))
            };
            let told = self.slices.iter().filter(is_own).filter(|slice| slice.is_told);
            Known { from: window.from, to: window.to, spots: told.filter_map(spot).collect() }
        };
        self.tallies.iter().enumerate().map(spots).collect()
    }

    /// Has a page read from a second of a window down: the first one of a slice of its own. Where
    /// the second was read already, the page tells and is no part of the list.
    fn look_at(&mut self, window: usize, second: i64) {
        let holds = |slice: &&mut Slice| {
            let is_open = matches!(slice.state, State::Waiting | State::Busy);
            let is_unread = slice.from <= second && second < slice.top();
            slice.window == window && is_open && is_unread
        };
        let above = second.saturating_add(1);
        let held = self.slices.iter_mut().find(holds);
        if let Some(slice) = held {
            let older = Slice::new(window, slice.from, second);
            slice.from = above;
            self.slices.push(older);
            return;
        }
        let mut looked = Slice::new(window, above, second);
        let end = self.ends.get(window).copied().flatten();
        let is_closed = self.tallies.get(window).is_none_or(|tally| tally.failed.is_some());
        if !is_closed && end.is_none_or(|end| second >= end.second) {
            looked.state = State::Waiting;
        }
        self.slices.push(looked);
    }

    /// Takes the older half of the largest slice under way.
    fn split(&mut self) -> Option<usize> {
        let busy = self.slices.iter().enumerate().filter(|(index, slice)| {
            let end = self.ends.get(slice.window).copied().flatten();
            let has_more = end.is_none_or(|end| end.slice != *index && slice.from >= end.second);
            slice.state == State::Busy && slice.is_fresh && has_more
        });
        let largest = busy.max_by_key(|(_, slice)| self.pages_left(slice))?.0;
        let left = self.slices.get(largest).map(|slice| self.pages_left(slice))?;
        let slice = self.slices.get_mut(largest)?;
        if left < SPLIT_PAGES_MIN || slice.top() <= slice.from {
            return None;
        }
        let half = slice.top().saturating_sub(slice.from).checked_div(2)?;
        let middle = slice.from.saturating_add(half);
        let mut older = Slice::new(slice.window, slice.from, middle);
        older.seen = slice.seen;
        older.is_told = false;
        slice.is_fresh = false;
        slice.from = middle.saturating_add(1);
        self.slices.push(older);
        self.slices.len().checked_sub(1)
    }

    fn take_page(&mut self, index: usize, ask: &PageAsk, page: Result<ListPage, Cause>) {
        let page = match page {
            Ok(page) => page,
            Err(cause) => return self.fail(index, cause),
        };
        self.note(index, page.asked_at, page.skew_secs);
        let top = self.slices.get(index).map_or(ask.to, Slice::top);
        if let Err(detail) = self.check(index, ask, &page) {
            let path = ask.kind.as_str();
            let detail = format!("listing {path}s: {detail}");
            return self.fail(index, cause(CauseKind::Incomplete, detail));
        }
        let oldest = page.pieces.last().map(|piece| piece.created);
        if oldest.is_some_and(|oldest| self.note_oldest(index, oldest)) {
            return self.fail(index, ended_too_early());
        }
        let Some(slice) = self.slices.get_mut(index) else { return };
        if slice.state == State::Done {
            return;
        }
        let newest = page.pieces.first().map(|piece| piece.created);
        if let (Some(newest), Some(oldest)) = (newest, oldest) {
            slice.seen.add(page.pieces.len(), top.max(newest), oldest);
        }
        let half = page.pieces.get(page.pieces.len() / 2);
        slice.spot.get_or_insert(Spot {
            top: slice.to,
            middle: half.map_or(ask.from, |piece| piece.created),
            oldest: oldest.unwrap_or(ask.from),
            objects: u64::try_from(page.pieces.len()).unwrap_or(0),
            is_end: !page.has_more,
        });
        slice.is_fresh = true;
        slice.cursor = page.pieces.last().map(|piece| piece.id.clone()).or(slice.cursor.take());
        slice.reached = oldest.or(slice.reached);
        // What is older than the border is another slice's, which lists it again.
        let from = slice.from;
        let is_past = oldest.is_some_and(|oldest| oldest < from);
        slice.state = match (is_past, page.has_more) {
            (true, _) => State::Done,
            (false, true) => State::Waiting,
            (false, false) => State::Ending,
        };
        let window = slice.window;
        if slice.state == State::Ending {
            // Nothing at all came: nothing stands in the slice's own newest second either.
            let second = oldest.or(slice.reached).unwrap_or(slice.to.saturating_add(1));
            self.note_end(index, second);
        }
        let mut listed = 0_u64;
        for piece in page.pieces.into_iter().filter(|piece| piece.created >= from) {
            listed = listed.saturating_add(1);
            self.book.add(piece, &self.wanted);
        }
        if let Some(tally) = self.tallies.get_mut(window) {
            tally.listed = tally.listed.saturating_add(listed);
        }
    }

    /// What a page must fulfil to count; says what it does not.
    fn check(&mut self, index: usize, ask: &PageAsk, page: &ListPage) -> Result<(), String> {
        let Some(slice) = self.slices.get_mut(index) else { return Ok(()) };
        if page.pieces.is_empty() && page.has_more {
            return Err("an empty page says that more follow".to_owned());
        }
        for piece in &page.pieces {
            if piece.created < ask.from || piece.created > ask.to {
                return Err(format!(
                    "the server ignored the window: {} was created at {}, and {} to {} was asked",
                    piece.id, piece.created, ask.from, ask.to
                ));
            }
            match slice.reached {
                Some(reached) if piece.created > reached => {
                    return Err(format!("{} is newer than the object before it", piece.id));
                }
                Some(reached) if piece.created < reached => slice.same_second.clear(),
                Some(_) | None => {}
            }
            slice.reached = Some(piece.created);
            if !slice.same_second.insert(piece.id.clone()) {
                return Err(format!("{} came twice", piece.id));
            }
        }
        Ok(())
    }

    /// Notes the oldest object of a page; whether it stands where nothing was sure to be.
    fn note_oldest(&mut self, index: usize, oldest: i64) -> bool {
        let Some(window) = self.slices.get(index).map(|slice| slice.window) else { return false };
        if let Some(known) = self.oldest.get_mut(window) {
            *known = Some(known.map_or(oldest, |known| known.min(oldest)));
        }
        let end = self.ends.get(window).copied().flatten();
        end.is_some_and(|end| end.is_sure && oldest < end.second)
    }

    /// Notes that a slice saw the end of the list; the newest end is the one to be asked again.
    fn note_end(&mut self, index: usize, second: i64) {
        let window = self.slices.get(index).map(|slice| slice.window);
        let Some(end) = window.and_then(|window| self.ends.get_mut(window)) else { return };
        if end.is_none_or(|known| known.second < second) {
            *end = Some(ListEnd { second, slice: index, is_sure: false });
        }
    }

    fn take_end(&mut self, index: usize, page: Result<ListPage, Cause>) {
        let page = match page {
            Ok(page) => page,
            Err(cause) => return self.fail(index, cause),
        };
        self.note(index, page.asked_at, page.skew_secs);
        if page.has_more || !page.pieces.is_empty() {
            return self.fail(index, ended_too_early());
        }
        let Some(slice) = self.slices.get_mut(index) else { return };
        slice.state = State::Done;
        let window = slice.window;
        let Some(Some(end)) = self.ends.get_mut(window) else { return };
        if end.slice != index {
            // A newer slice saw the end meanwhile and speaks for both.
            return;
        }
        end.is_sure = true;
        let second = end.second;
        if self.oldest.get(window).copied().flatten().is_some_and(|oldest| oldest < second) {
            return self.fail(index, ended_too_early());
        }
        for slice in self.slices.iter_mut().filter(|s| s.window == window && s.to < second) {
            slice.state = State::Done;
        }
    }

    fn note(&mut self, index: usize, asked_at: Instant, skew_secs: Option<i64>) {
        let window = self.slices.get(index).map(|slice| slice.window);
        if let Some(tally) = window.and_then(|window| self.tallies.get_mut(window)) {
            tally.asked_at = Some(tally.asked_at.map_or(asked_at, |first| first.min(asked_at)));
            tally.skew_secs = wider_skew(tally.skew_secs, skew_secs);
        }
    }

    fn fail(&mut self, index: usize, cause: Cause) {
        let Some(window) = self.slices.get(index).map(|slice| slice.window) else { return };
        if let Some(tally) = self.tallies.get_mut(window) {
            tally.failed.get_or_insert(cause);
        }
        self.close(window);
    }

    /// Nothing of this window is asked any more.
    fn close(&mut self, window: usize) {
        for slice in self.slices.iter_mut().filter(|slice| slice.window == window) {
            slice.state = State::Done;
        }
        if let Some(tally) = self.tallies.get_mut(window) {
            tally.failed.get_or_insert_with(|| {
                cause(CauseKind::Incomplete, "the window was not listed".to_owned())
            });
        }
    }

    /// A window is done when all its slices are and none failed.
    fn settle(&mut self) {
        for (index, tally) in self.tallies.iter_mut().enumerate() {
            let mut own = self.slices.iter().filter(|slice| slice.window == index);
            tally.is_done = tally.failed.is_none() && own.all(|slice| slice.state == State::Done);
        }
    }
}

fn ended_too_early() -> Cause {
    let detail = "the list said that it was at its end, and more came when asked again";
    cause(CauseKind::Incomplete, detail.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::psp::estimate::{ROUNDS, looks};
    use crate::psp::stripe::Piece;
    use crate::psp::stripe_objects::Parts;

    const WEEK: i64 = 604_800;

    /// A page of a list whose objects were made at these seconds, the newest first.
    fn page(made: &[i64], ask: &PageAsk) -> ListPage {
        let place = |id: &String| id.parse::<usize>().unwrap() + 1;
        let start = ask.cursor.as_ref().map_or(0, place);
        let fits = |(_, at): &(usize, &i64)| (ask.from..=ask.to).contains(at);
        let mut left = made.iter().enumerate().skip(start).filter(fits);
        let pieces = left.by_ref().take(ask.limit).map(|(place, at)| Piece {
            id: place.to_string(),
            parent: place.to_string(),
            kind: ask.kind,
            created: *at,
            tag: None,
            captured: None,
            ours: true,
            parts: Parts::default(),
        });
        let pieces = pieces.collect();
        let asked_at = crate::clock::now();
        ListPage { asked_at, skew_secs: None, pieces, has_more: left.next().is_some() }
    }

    /// Asks until there is nothing to ask; how many pages that took.
    fn read(board: &mut Board, made: &[i64]) -> u64 {
        let before = board.pages;
        loop {
            match board.next_task(Tick::now(), u128::MAX) {
                Task::Page(slice, ask) => board.take_page(slice, &ask, Ok(page(made, &ask))),
                Task::End(slice, ask) => board.take_end(slice, Ok(page(made, &ask))),
                Task::Wait | Task::Stop => return board.pages - before,
            }
        }
    }

    /// Objects made every so many seconds up to a second.
    fn made(count: i64, every: i64, newest: i64) -> Vec<i64> {
        (0..count).map(|n| newest - n * every).collect()
    }

    /// Looks around where `cost` requests are the other way, with so many pages read ahead at most,
    /// and reads the rest: how many looks there were, how many pages they say that there are left,
    /// and how many were asked for in all.
    #[track_caller]
    fn told_and_read(made: &[i64], cost: u64, ahead: u64) -> (usize, u64, u64) {
        let window = Window { kind: ObjectKind::PaymentIntent, from: 1, to: WEEK };
        let mut board = Board::new(Arc::default(), Book::default(), vec![window], 10_000);
        board.ahead = Some(ahead);
        assert!(read(&mut board, made) <= 1 + ahead, "the first page, and those ahead");
        let mut looked = 0;
        for round in 0..ROUNDS {
            let known = board.known();
            let next = looks(&[&known[0]], cost, round, looked);
            for (_, second) in &next {
                board.look_at(0, *second);
            }
            let most = u64::try_from(next.len()).unwrap() + board.ahead.unwrap();
            assert!(read(&mut board, made) <= most, "no more than it may");
            assert!(!board.is_telling());
            looked += next.len();
        }
        let told = board.known()[0].pages_left();
        board.ahead = None;
        read(&mut board, made);
        board.settle();
        let tally = &board.tallies[0];
        let all = u64::try_from(made.len()).unwrap();
        assert_eq!((tally.is_done, tally.listed), (true, all), "{:?}", tally.failed);
        (looked, told, board.pages)
    }

    /// A page that is read ahead may meet the end of the list, above all that was still to tell.
    #[test]
    fn nobody_waits_for_pages_below_the_end_of_a_list() {
        let window = Window { kind: ObjectKind::PaymentIntent, from: 1, to: WEEK };
        let mut board = Board::new(Arc::default(), Book::default(), vec![window], 10_000);
        board.ahead = Some(1);
        let made = made(150, 24, WEEK);
        let next = |board: &mut Board| match board.next_task(Tick::now(), u128::MAX) {
            Task::Page(slice, ask) => (slice, ask),
            Task::End(..) | Task::Wait | Task::Stop => panic!("no page is asked for"),
        };
        let (slice, ask) = next(&mut board);
        board.take_page(slice, &ask, Ok(page(&made, &ask)));
        let (slice, ask) = next(&mut board);
        board.look_at(0, WEEK / 2);
        board.look_at(0, WEEK / 9);
        assert!(board.is_telling(), "two more are to tell");
        board.take_page(slice, &ask, Ok(page(&made, &ask)));
        assert!(!board.is_telling());
        let spots = board.known()[0].spots.clone();
        assert_eq!(spots[1..], [WEEK / 2, WEEK / 9].map(|top| Spot::empty(top, 1)));
        board.ahead = None;
        assert_eq!(read(&mut board, &made), 1, "the end alone is asked for again");
        board.settle();
        assert_eq!((board.tallies[0].is_done, board.tallies[0].listed), (true, 150));
    }

    /// What stands where in a week, what it costs otherwise, and how many pages are told to be
    /// left. What is read meanwhile changes nothing of that, and what was read to tell is part of
    /// the list: a slice more costs one page that two of them read.
    #[test]
    fn what_tells_of_a_list_is_part_of_it_and_says_the_same_each_time() {
        let all = |made: &[&[i64]]| made.concat();
        let night = |n: i64| (0..1_500).map(move |m| WEEK - 7_200 - n * 86_400 - m * 2 / 5);
        let nights: Vec<i64> = (0..7).flat_map(night).collect();
        let burst = made(800, 4, WEEK - 100);
        let old_burst = made(3_000, 4, WEEK / 7);
        let sparse = made(160, 3_600, WEEK - 7_200);
        for (what, made, cost, told) in [
            ("nothing", vec![], 300, 1..=1),
            ("one page", made(60, 600, WEEK), 300, 1..=1),
            ("steady", made(20_160, 30, WEEK), 300, 190..=220),
            ("steady, beside few rows", made(20_160, 30, WEEK), 40, 190..=220),
            ("steady, and not worth a look", made(20_160, 30, WEEK), 20, 190..=220),
            ("a burst just now", burst.clone(), 300, 1..=20),
            ("a burst over a few", all(&[&burst, &sparse]), 300, 1..=20),
            ("a burst days ago", old_burst.clone(), 50, 8..=60),
            ("a few over a burst days ago", all(&[&made(9, 3_600, WEEK), &old_burst]), 50, 8..=60),
            ("bursts each night", nights.clone(), 1_000, 50..=210),
            ("bursts each night, beside fewer rows", nights, 300, 50..=210),
            ("the only ones", made(300, 1, WEEK - 7_200), 300, 1..=10),
            ("all in one second", made(250, 0, WEEK - 10), 300, 1..=5),
        ] {
            let (looked, left, pages) = told_and_read(&made, cost, 0);
            assert!(told.contains(&left), "{what}: {left} pages, {looked} looks");
            let least = u64::try_from(made.len().div_ceil(PAGE)).unwrap();
            let most = least + u64::try_from(looked).unwrap() + 4;
            assert!(pages <= most, "{what}: {pages} pages, {looked} looks");
            for ahead in [1, 3, 28, 1_000] {
                let (again, told, _) = told_and_read(&made, cost, ahead);
                assert_eq!((again, told), (looked, left), "{what}: {ahead} ahead");
            }
        }
    }
}
