//! How many pages a window has, told from a few of them.
//!
//! The newest page says how dense a window is at its newest end, and nothing of the rest: an hour
//! of many payments in an empty week would count as a week of many, and an empty hour over years
//! of them as nothing. So a page is read about the middle and one in the oldest eighth, and then
//! where most is open. Each stretch between two pages is judged by these two: by what the upper one
//! ended with, and by what the lower one began with, quiet seconds above its objects included.
//! Where the two are far apart a burst stands beside quiet hours; how long it goes on nobody knows,
//! and the geometric mean is as often too much as too little.
//!
//! Nothing but what these pages showed counts: the same data is judged alike each time, whatever
//! was read besides and however fast.

use std::cmp::Reverse;

use crate::psp::stripe::PAGE;

/// So often more pages are asked for, each time by what the ones before showed.
pub(super) const ROUNDS: u32 = 4;

/// Below so many requests more than a list takes at least, looking around costs what it may save.
const OPEN_MIN: u64 = 32;

/// One page is looked at for so many requests that asking one by one takes …
const LOOK_SHARE: u64 = 32;

/// … and at most so many for one plan, but always as many as this in each of its windows.
const LOOKS_MAX: u64 = 16;
const LOOKS_MIN: u64 = 3;

/// In the middle and in the oldest eighth, as parts of a window: not where a day or an hour that
/// comes back would put each of them into a burst.
const FIRST_LOOKS: [(i64, i64); 2] = [(6, 13), (3, 29)];

/// A stretch is looked into only where it may have this many pages.
const LOOK_PAGES_MIN: u64 = 3;

/// Ends of a stretch that are denser than each other by no more than this are about even.
const ABOUT_EVEN: u128 = 64;

/// Densities are told in such parts of an object a second.
const PARTS: u128 = 1 << 32;

/// What a page showed of the seconds below where it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spot {
    /// The newest second that it was asked for.
    pub(super) top: i64,
    /// The second of the object with which its lower half begins; the window's oldest where there
    /// is none.
    pub(super) middle: i64,
    /// The second of its last object; the window's oldest where there is none.
    pub(super) oldest: i64,
    /// Objects on it.
    pub(super) objects: u64,
    /// Nothing stands below it.
    pub(super) is_end: bool,
}

impl Spot {
    /// Of a page that would be empty, down to the window's oldest second.
    pub(super) fn empty(top: i64, from: i64) -> Self {
        Self { top, middle: from, oldest: from, objects: 0, is_end: true }
    }

    /// Density from the top to its last object, and the seconds that this is told from. The last
    /// page of a list is taken for a whole one: it has less than that.
    fn begun(self) -> (u128, u64) {
        let secs = span(self.top, self.oldest);
        let page = u64::try_from(PAGE).unwrap_or(1);
        (density(if self.is_end { page } else { self.objects }, secs), secs)
    }

    /// The same of its lower half: a few objects of quiet days above a burst say nothing of it.
    fn ended(self) -> (u128, u64) {
        let secs = span(self.middle, self.oldest);
        (density(self.objects.div_ceil(2), secs), secs)
    }
}

/// One window, as far as pages that were read to tell showed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    /// Both inclusive.
    pub(super) from: i64,
    pub(super) to: i64,
    /// Without any, there is nothing to list.
    pub(super) spots: Vec<Spot>,
}

/// Unread seconds between a page and the next one below it, or the end of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    /// The last page's own last second: more may stand in it.
    newest: i64,
    oldest: i64,
    /// Density, and the seconds that it was told from.
    above: (u128, u64),
    below: (u128, u64),
}

impl Stretch {
    fn secs(self) -> u64 {
        span(self.newest, self.oldest)
    }

    fn pages_at(self, density: u128) -> u64 {
        let per_page = u128::try_from(PAGE).unwrap_or(1).saturating_mul(PARTS);
        let parts = u128::from(self.secs()).saturating_mul(density);
        u64::try_from(parts.checked_div(per_page).unwrap_or(0)).unwrap_or(u64::MAX)
    }

    /// Pages that it probably has: as dense as the geometric mean of both ends.
    fn pages(self) -> u64 {
        self.pages_at(self.above.0.saturating_mul(self.below.0).isqrt())
    }

    /// Pages that it has if it is as dense all over as at its denser end.
    fn pages_most(self) -> u64 {
        self.pages_at(self.above.0.max(self.below.0))
    }

    /// Where one more page tells most: near the denser end, as many times its page away as that is
    /// in the whole; and somewhere inside where both ends are about as dense.
    fn best_look(self) -> Option<i64> {
        let (above, below) = (self.above.0, self.below.0);
        let root = |secs: u64| {
            let root = u128::from(self.secs()).saturating_mul(u128::from(secs)).isqrt();
            i64::try_from(root).unwrap_or(i64::MAX)
        };
        let is_even = above.max(below) <= above.min(below).saturating_mul(ABOUT_EVEN);
        let second = if is_even {
            let part = self.newest.saturating_sub(self.oldest).saturating_mul(3).checked_div(5)?;
            self.oldest.saturating_add(part)
        } else if above > below {
            self.newest.saturating_sub(root(self.above.1)).saturating_sub(1)
        } else {
            self.oldest.saturating_add(root(self.below.1))
        };
        self.holds(second).then_some(second)
    }

    /// Whether a page asked for from this second down shows something new.
    fn holds(self, second: i64) -> bool {
        self.oldest <= second && second < self.newest
    }
}

impl Known {
    fn stretches(&self) -> Vec<Stretch> {
        let mut spots: Vec<Spot> = self.spots.clone();
        spots.sort_by_key(|spot| Reverse(spot.top));
        let mut stretches = Vec::new();
        for (place, spot) in spots.iter().enumerate() {
            if spot.is_end {
                break;
            }
            let next = spots.get(place.saturating_add(1));
            let oldest = next.map_or(self.from, |next| next.top.saturating_add(1));
            if spot.oldest < oldest {
                continue;
            }
            // Where nothing was read below, what the page showed on the whole is all there is.
            let (above, below) = (spot.ended(), next.unwrap_or(spot).begun());
            stretches.push(Stretch { newest: spot.oldest, oldest, above, below });
        }
        stretches
    }

    /// Pages still to come, those that were read to tell not counted: each stretch has one that
    /// goes past its end, and the end of the list is asked for once more.
    pub(super) fn pages_left(&self) -> u64 {
        let end = u64::from(self.spots.iter().any(|spot| spot.is_end));
        let add = |sum: u64, s: Stretch| sum.saturating_add(s.pages()).saturating_add(1);
        self.stretches().into_iter().fold(end, add)
    }

    fn pages_most(&self) -> u64 {
        let add = |sum: u64, s: Stretch| sum.saturating_add(s.pages_most()).saturating_add(1);
        self.stretches().into_iter().fold(0, add)
    }

    /// The middle and the oldest eighth, where they are not read.
    fn first_looks(&self) -> Vec<i64> {
        let stretches = self.stretches();
        let length = self.to.saturating_sub(self.from);
        let seconds = FIRST_LOOKS.iter().filter_map(|(part, of)| {
            let part = length.saturating_mul(*part).checked_div(*of)?;
            Some(self.from.saturating_add(part))
        });
        seconds.filter(|second| stretches.iter().any(|s| s.holds(*second))).collect()
    }
}

/// From which seconds of which windows of one plan a page is read next, to tell whether listing
/// them all is cheaper than `cost` requests one by one. `looked`: how many were asked for before.
pub(super) fn looks(windows: &[&Known], cost: u64, round: u32, looked: usize) -> Vec<(usize, i64)> {
    let count = u64::try_from(windows.len()).unwrap_or(u64::MAX);
    // A page of each window, and the end of its list once more.
    let list_min = count.saturating_mul(2);
    if cost <= list_min.saturating_add(OPEN_MIN) {
        return Vec::new();
    }
    let windows = windows.iter().enumerate();
    if round == 0 {
        // A list that looks cheap is no surer than one that looks dear.
        return windows
            .flat_map(|(index, known)| known.first_looks().into_iter().map(move |s| (index, s)))
            .collect();
    }
    let add = |sum: u64, known: &&Known| sum.saturating_add(known.pages_most());
    if windows.clone().map(|(_, known)| known).fold(0, add) <= cost {
        return Vec::new();
    }
    let mut open: Vec<(usize, Stretch)> = windows
        .flat_map(|(index, known)| known.stretches().into_iter().map(move |s| (index, s)))
        .filter(|(_, stretch)| stretch.pages_most() >= LOOK_PAGES_MIN)
        .collect();
    open.sort_by_key(|(_, stretch)| Reverse(stretch.pages_most()));
    let may = cost.checked_div(LOOK_SHARE).unwrap_or(0).min(LOOKS_MAX);
    let may = may.max(count.saturating_mul(LOOKS_MIN));
    let may = usize::try_from(may).unwrap_or(usize::MAX).saturating_sub(looked);
    open.into_iter().filter_map(|(index, s)| Some((index, s.best_look()?))).take(may).collect()
}

/// Parts of an object a second.
fn density(objects: u64, secs: u64) -> u128 {
    let parts = u128::from(objects).saturating_mul(PARTS);
    parts.checked_div(u128::from(secs.max(1))).unwrap_or(0)
}

/// Seconds from one to another, both included.
pub(super) fn span(newest: i64, oldest: i64) -> u64 {
    u64::try_from(newest.saturating_sub(oldest).saturating_add(1)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;
    const WEEK: i64 = 7 * DAY;

    /// Objects made every so many seconds up to a second, the newest first.
    fn made(count: i64, every: i64, newest: i64) -> Vec<i64> {
        (0..count).map(|n| newest - n * every).collect()
    }

    /// As many each night at the same hour.
    fn nights(count: i64, secs: i64, newest: i64) -> Vec<i64> {
        let night = |n: i64| (0..count).map(move |m| newest - n * DAY - m * secs / count);
        (0..7).flat_map(night).collect()
    }

    /// What a page of these objects shows from a second down.
    fn spot(made: &[i64], top: i64) -> Spot {
        let below: Vec<i64> = made.iter().copied().filter(|at| *at <= top).collect();
        let page = &below[..below.len().min(PAGE)];
        Spot {
            top,
            middle: page.get(page.len() / 2).copied().unwrap_or(1),
            oldest: page.last().copied().unwrap_or(1),
            objects: u64::try_from(page.len()).unwrap(),
            is_end: page.len() == below.len(),
        }
    }

    /// Looks around in a week of these objects of one kind: how many more pages were read than the
    /// first, and how many are said to be left.
    fn told(made: impl Fn(u32) -> Vec<i64>, cost: u64) -> (usize, u64) {
        let mut known = Known { from: 1, to: WEEK, spots: vec![spot(&made(0), WEEK)] };
        let mut looked = 0;
        for round in 0..ROUNDS {
            let next = looks(&[&known], cost, round, looked);
            looked += next.len();
            let made = made(round + 1);
            known.spots.extend(next.into_iter().map(|(_, second)| spot(&made, second)));
        }
        (looked, known.pages_left())
    }

    /// What stands where in a week, what its rows cost one by one, and whether listing is cheaper.
    #[test]
    fn the_cheaper_way_is_told_wherever_the_objects_stand() {
        let all = |made: &[&[i64]]| made.concat();
        let is_day = |at: &i64| (6..18).contains(&(at % DAY / 3_600));
        let days: Vec<i64> = made(40_320, 15, WEEK).into_iter().filter(is_day).collect();
        let billed = nights(1_500, 600, WEEK - 7_200);
        let old = made(30_000, 2, DAY);
        let few_and_old = all(&[&made(9, 3_600, WEEK), &old]);
        for (what, made, cost, pages, is_list) in [
            ("nothing", vec![], 100, 1..=1, true),
            ("one page", made(60, 600, WEEK), 100, 1..=1, true),
            ("even", made(20_160, 30, WEEK), 300, 190..=220, true),
            ("even, of few rows", made(20_160, 30, WEEK), 100, 190..=220, false),
            ("even, and dense", made(201_600, 3, WEEK), 1_000, 1_900..=2_200, false),
            ("days and nights", days, 1_000, 150..=260, true),
            ("a burst just now", made(800, 4, WEEK - 100), 50, 1..=16, true),
            ("the only ones of the week", made(300, 1, WEEK - 7_200), 900, 1..=10, true),
            ("the only ones, days ago", made(300, 1, WEEK / 2), 900, 1..=20, true),
            ("bursts each night", billed.clone(), 300, 50..=210, true),
            ("bursts each night, of many rows", billed.clone(), 1_000, 50..=210, true),
            ("bursts each night, of few rows", billed, 40, 41..=500, false),
            ("a dense old end", old.clone(), 100, 200..=600, false),
            ("a dense old end, of many rows", old, 1_000, 200..=600, true),
            ("a dense old end below a few", few_and_old, 100, 200..=600, false),
            ("all in one second", made(250, 0, WEEK - 10), 100, 1..=5, true),
        ] {
            let (looked, left) = told(|_| made.clone(), cost);
            assert!(pages.contains(&left), "{what}: {left} pages, {looked} looks");
            assert_eq!(left <= cost, is_list, "{what}: {left} pages, {looked} looks");
            assert!(looked <= 16, "{what}: {looked} looks");
            assert_eq!(told(|_| made.clone(), cost), (looked, left), "{what}: the same each time");
        }
    }

    /// Whatever the hour at which the bursts come: some look always meets one.
    #[test]
    fn no_hour_of_nightly_bursts_makes_a_list_look_dear() {
        for hour in 0..24 {
            let made = nights(1_500, 600, WEEK - hour * 3_600);
            let (looked, left) = told(|_| made.clone(), 900);
            assert!(left <= 900, "{hour}: {left} pages, {looked} looks");
        }
    }

    #[test]
    fn what_is_made_or_goes_while_looking_around_confuses_nobody() {
        let base = made(20_160, 30, WEEK);
        let grows = |round: u32| {
            let new = made(i64::from(round) * 150, 2, WEEK - 1);
            let mut all = [new, base.clone()].concat();
            all.sort_unstable_by_key(|at| Reverse(*at));
            all
        };
        let (_, left) = told(grows, 100);
        assert!((190..=230).contains(&left), "{left}");
        // Pages that contradict each other: an end above others, and one that is within another.
        let even = |top: i64| spot(&base, top);
        let spots = vec![even(WEEK), even(WEEK - 60), Spot::empty(WEEK / 2, 1), even(WEEK / 4)];
        let mut known = Known { from: 1, to: WEEK, spots };
        let left = known.pages_left();
        assert!(left < 120, "{left}");
        known.spots.reverse();
        assert_eq!(known.pages_left(), left, "in whichever order they came");
        known.spots.clear();
        assert_eq!(known.pages_left(), 0, "of what failed nothing is left");
    }

    #[test]
    fn where_little_is_to_be_saved_nobody_looks_around() {
        let base = made(20_160, 30, WEEK);
        let known = Known { from: 1, to: WEEK, spots: vec![spot(&base, WEEK)] };
        let count = |windows: &[&Known], cost: u64, round: u32, looked: usize| {
            looks(windows, cost, round, looked).len()
        };
        assert_eq!(count(&[&known], 34, 0, 0), 0);
        assert_eq!(looks(&[&known], 35, 0, 0), [(0, 279_139), (0, 62_566)]);
        assert_eq!(count(&[&known, &known], 36, 0, 0), 0);
        assert_eq!(count(&[&known, &known], 37, 0, 0), 4);
        // About 200 pages: a cost of 100 leaves it open, and one of 1,000 does not.
        assert_eq!(count(&[&known], 100, 1, 2), 1);
        assert_eq!(count(&[&known], 100, 1, 3), 0);
        assert_eq!(count(&[&known], 1_000, 1, 2), 0);
        assert_eq!(count(&[], 1_000, 0, 0), 0);
    }

    #[test]
    fn between_two_pages_a_stretch_is_judged_by_both() {
        let page = |top: i64, secs: i64| Spot {
            top,
            middle: top - secs / 2,
            oldest: top - secs,
            objects: 100,
            is_end: false,
        };
        for (spots, left) in [
            (vec![page(100_000, 100)], 970..=1_000),
            (vec![page(100_000, 100), page(50_000, 100)], 970..=1_000),
            (vec![page(100_000, 100), page(50_000, 10_000)], 50..=60),
            (vec![page(100_000, 10_000), page(50_000, 100)], 520..=545),
            (vec![page(100_000, 60_000), page(50_000, 100)], 480..=505),
            (vec![page(100_000, 100), Spot::empty(50_000, 1)], 20..=26),
        ] {
            let known = Known { from: 1, to: 100_000, spots };
            let told = known.pages_left();
            assert!(left.contains(&told), "{told}: {known:?}");
        }
        let far = Spot { top: i64::MAX, middle: 1, oldest: 1, objects: u64::MAX, is_end: false };
        let known = Known { from: i64::MIN, to: i64::MAX, spots: vec![far, page(0, 1)] };
        assert!(known.pages_left() > 0 && looks(&[&known], u64::MAX, 1, 0).len() <= 16);
    }
}
