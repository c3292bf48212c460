//! A running balance: a column that says what the account holds after each row. It proves the
//! signs, and that no row is missing, in whichever order the rows stand.

use std::cmp::Ordering;

use chrono::NaiveDate;

use crate::model::money::Currency;
use crate::model::settlement::{Balance, Problem, StatementEnd, Tie};
use crate::settlement::amount::shown;

/// Balances and amounts of one account, as the rows go by.
#[derive(Debug, Clone)]
pub struct Chain {
    currency: Currency,
    first: Option<Known>,
    last: Option<Known>,
    /// Amounts before the first balance; with its own row's.
    before_first: i128,
    /// Amounts since the last balance, without its own row's.
    since_last: i128,
    rows: u64,
    /// Where each order of the rows fails first.
    oldest_first: Option<Break>,
    newest_first: Option<Break>,
    balances: u64,
    /// Whether amounts other than nil stand between balances, in each order of the rows.
    moved: [bool; 2],
    first_day: Option<NaiveDate>,
    last_day: Option<NaiveDate>,
    alone: Alone,
    fees: Fees,
    bare: Bare,
}

/// Rows that moved the account and have no balance: the first before all balances, the first behind
/// the last of them, how many, and whether balances stand around one.
#[derive(Debug, Clone, Copy, Default)]
struct Bare {
    before: Option<u64>,
    behind: Option<u64>,
    rows: u64,
    is_between: bool,
}

impl Bare {
    fn add(&mut self, line: u64, is_before: bool) {
        let slot = if is_before { &mut self.before } else { &mut self.behind };
        slot.get_or_insert(line);
        self.rows = self.rows.saturating_add(1);
    }

    fn balance(&mut self) {
        self.is_between |= self.behind.take().is_some();
    }
}

/// A row whose amount would move the account: its line, and of which kind it is.
pub type OfKind = (u64, u64);

/// The first row of each place at the ends of a chain where an equation may not reach, where a kind
/// of its own stands beside it that does not tell its sign.
#[derive(Debug, Clone, Copy, Default)]
struct Alone {
    before_first: Option<OfKind>,
    first: Option<OfKind>,
    last: Option<OfKind>,
    since_last: Option<OfKind>,
}

/// Rows with a fee beside their amount: all of them, and those of each place at the ends of a chain
/// where an equation may not reach.
#[derive(Debug, Clone, Copy, Default)]
struct Fees {
    rows: u64,
    before_first: u64,
    first: u64,
    last: u64,
    since_last: u64,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    line: u64,
    balance: i128,
    amount: i128,
}

#[derive(Debug, Clone, Copy)]
struct Break {
    line: u64,
    expected: i128,
    found: i128,
}

impl Chain {
    /// Of an account that holds `currency`.
    pub fn new(currency: Currency) -> Self {
        Self {
            currency,
            first: None,
            last: None,
            before_first: 0,
            since_last: 0,
            rows: 0,
            oldest_first: None,
            newest_first: None,
            balances: 0,
            moved: [false; 2],
            first_day: None,
            last_day: None,
            alone: Alone::default(),
            fees: Fees::default(),
            bare: Bare::default(),
        }
    }

    /// As [`Self::add`]; `kind`: of which kind the row is, where that does not tell which way its
    /// money went.
    pub fn add_of(&mut self, line: u64, amount: i64, balance: Option<i64>, kind: Option<u64>) {
        let own = kind.filter(|_| amount != 0).map(|kind| (line, kind));
        let is_first = self.first.is_none();
        let alone = &mut self.alone;
        if balance.is_none() {
            let slot = if is_first { &mut alone.before_first } else { &mut alone.since_last };
            *slot = slot.or(own);
        } else {
            alone.first = if is_first { own } else { alone.first };
            (alone.last, alone.since_last) = (own, None);
        }
        self.add(line, amount, balance);
    }

    /// The row that was added last has a fee that is not taken off its amount, or none.
    pub fn fee(&mut self, has_balance: bool, has_fee: bool) {
        let own = u64::from(has_fee);
        let Fees { rows, before_first, first, last, since_last } = &mut self.fees;
        *rows = rows.saturating_add(own);
        if has_balance {
            *first = if self.balances == 1 { own } else { *first };
            (*last, *since_last) = (own, 0);
        } else {
            let slot = if self.first.is_none() { before_first } else { since_last };
            *slot = slot.saturating_add(own);
        }
    }

    /// How many rows with a fee are in equations of balances that hold without it, and how many
    /// are in none.
    pub fn fees(&self) -> (u64, u64) {
        let Fees { rows, before_first, first, last, since_last } = self.fees;
        let (older, newer) = (before_first.saturating_add(first), last.saturating_add(since_last));
        let is_new = self.begins_at_nil();
        let open = match self.orders() {
            (false, false) => return (0, 0),
            (true, false) if is_new => since_last,
            (false, true) if is_new => before_first,
            (true, true) if is_new => 0,
            (true, false) => older.saturating_add(since_last),
            (false, true) => newer.saturating_add(before_first),
            (true, true) => older.saturating_add(newer).min(rows),
        };
        (rows.saturating_sub(open), open)
    }

    /// Whether the account held nothing before the oldest row, as a new one does.
    pub fn begins_at_nil(&self) -> bool {
        let nil = |known: Option<Known>, beside: i128| {
            known.is_some_and(|known| known.balance == known.amount.saturating_add(beside))
        };
        let (older, newer) = (nil(self.first, self.before_first), nil(self.last, self.since_last));
        let orders = self.orders();
        orders.0 && older || orders.1 && newer
    }

    /// The lines of rows with a balance whose amount may be in no equation: the oldest, and where
    /// the order of the rows is open, the first and the last. None where the account held nothing
    /// before it, as a new one does.
    pub fn open_ends(&self) -> [Option<u64>; 2] {
        if self.begins_at_nil() {
            return [None; 2];
        }
        let line = |known: Option<Known>| known.map(|known| known.line);
        match self.orders() {
            (true, false) => [line(self.first), None],
            (false, true) => [None, line(self.last)],
            _both => [line(self.first), line(self.last)],
        }
    }

    /// A row whose amount is in no equation of balances: before the first of them in time, or after
    /// the last. None where the account held nothing before it, as a new one does.
    pub fn unproven(&self) -> Option<OfKind> {
        let Alone { before_first, first, last, since_last } = self.alone;
        if self.begins_at_nil() {
            return None;
        }
        match self.orders() {
            (true, false) => before_first.or(first).or(since_last),
            (false, true) => before_first.or(last).or(since_last),
            // Both hold where nothing moved between them, or there is one.
            _both => before_first.or(first).or(last).or(since_last),
        }
    }

    /// The next row: its signed amount, and the balance that it says.
    pub fn add(&mut self, line: u64, amount: i64, balance: Option<i64>) {
        self.rows = self.rows.saturating_add(1);
        let amount = i128::from(amount);
        let Some(balance) = balance.map(i128::from) else {
            let sum = match self.last {
                Some(_) => &mut self.since_last,
                None => &mut self.before_first,
            };
            *sum = sum.saturating_add(amount);
            if amount != 0 {
                self.bare.add(line, self.last.is_none());
            }
            return;
        };
        self.bare.balance();
        self.balances = self.balances.saturating_add(1);
        if let Some(last) = self.last {
            let between = self.since_last;
            let older = last.balance.saturating_add(between).saturating_add(amount);
            let newer = last.balance.saturating_sub(last.amount).saturating_sub(between);
            for (slot, expected) in
                [(&mut self.oldest_first, older), (&mut self.newest_first, newer)]
            {
                if expected != balance && slot.is_none() {
                    *slot = Some(Break { line, expected, found: balance });
                }
            }
            let [older, newer] = &mut self.moved;
            *older |= between != 0 || amount != 0;
            *newer |= between != 0 || last.amount != 0;
        }
        let known = Known { line, balance, amount };
        self.first = self.first.or(Some(known));
        self.last = Some(known);
        self.since_last = 0;
    }

    /// The row's day, where it is known: rows that go on in time cannot tie backwards.
    pub fn day(&mut self, day: Option<NaiveDate>) {
        self.first_day = self.first_day.or(day);
        self.last_day = day.or(self.last_day);
    }

    /// The newest row, or the first of those, that has no balance where all others have one: what
    /// is not booked yet has none. Where more rows have none, balances stand behind the days alone.
    pub fn newest_open(&self) -> Option<u64> {
        let Bare { before, behind, rows, is_between } = self.bare;
        if is_between || self.balances < 2 || rows > self.balances {
            return None;
        }
        match self.orders() {
            (true, false) => behind,
            (false, true) => before,
            _open => None,
        }
    }

    /// Which of the orders hold: oldest first, newest first.
    fn orders(&self) -> (bool, bool) {
        let (first, last) = (self.first_day, self.last_day);
        (self.oldest_first.is_none() && first <= last, self.newest_first.is_none() && first >= last)
    }

    /// Whether the balances follow from the amounts, in one of the orders.
    pub fn ties(&self) -> bool {
        let (oldest, newest) = self.orders();
        oldest || newest
    }

    /// Whether amounts stand between balances, so that their signs were proven.
    pub fn proves(&self) -> bool {
        let (oldest, newest) = self.orders();
        let [older, newer] = self.moved;
        oldest && older || newest && newer
    }

    /// Whether nothing yet says what the account held: the next balance is in no equation.
    pub fn is_new(&self) -> bool {
        self.balances == 0
    }

    /// What the next row moves, if it says this balance; none unless the rows surely go on in time.
    pub fn moved_to(&self, balance: i64) -> Option<i128> {
        let last = self.last?;
        let balance = i128::from(balance);
        let newer = last.balance.saturating_sub(last.amount).saturating_sub(self.since_last);
        let may_go_back =
            self.newest_first.is_none() && newer == balance && self.first_day >= self.last_day;
        if may_go_back || self.oldest_first.is_some() {
            return None;
        }
        Some(balance.saturating_sub(last.balance).saturating_sub(self.since_last))
    }

    /// Whether the last row's amount follows from its balance and the one before.
    pub fn proves_last(&self) -> bool {
        self.balances > 1 && self.since_last == 0 && self.orders().0
    }

    /// Whether balances can tell amounts with the opposite sign from balances that stand before
    /// their rows: only where there are several, and the rows go on in time.
    pub fn shows_signs(&self) -> bool {
        self.balances > 2 && self.proves() && self.first_day != self.last_day
    }

    /// Where it breaks, in the order that holds longer.
    pub fn problem(&self) -> Option<Problem> {
        if self.ties() {
            return None;
        }
        let both = (self.oldest_first, self.newest_first);
        let at = match (self.first_day.cmp(&self.last_day), both) {
            (Ordering::Less, (Some(at), _)) | (Ordering::Greater, (_, Some(at))) => at,
            (_, (Some(older), Some(newer))) if older.line >= newer.line => older,
            (_, (_, Some(at)) | (Some(at), None)) => at,
            (_, (None, None)) => return None,
        };
        let amount = |minor| shown(minor, Some(self.currency));
        let expected = format!("{}, by the row before and the amounts", amount(at.expected));
        Some(Problem::error(at.line, "balance", expected, amount(at.found)))
    }

    /// Opening and closing, where the order of the rows tells which is which.
    pub fn end(&self, line: u64) -> StatementEnd {
        let end = StatementEnd { line, currency: Some(self.currency), ..StatementEnd::default() };
        let (Some(first), Some(last)) = (self.first, self.last) else { return end };
        if !self.ties() {
            return StatementEnd { tie: Tie::Declared(false), ..end };
        }
        let older = (
            first.balance.saturating_sub(first.amount).saturating_sub(self.before_first),
            last.balance.saturating_add(self.since_last),
        );
        let newer = (
            last.balance.saturating_sub(last.amount).saturating_sub(self.since_last),
            first.balance.saturating_add(self.before_first),
        );
        let known = match self.orders() {
            (true, false) => Some(older),
            (false, true) => Some(newer),
            _both => Some(older).filter(|_| older == newer),
        };
        let Some((opening, closing)) = known else {
            let tie = if self.balances > 1 { Tie::Declared(true) } else { Tie::Balances };
            return StatementEnd { tie, ..end };
        };
        let balance = |minor: i128, line| {
            let minor = i64::try_from(minor).ok()?;
            Some(Balance { minor, currency: self.currency, date: None, line })
        };
        // What is reckoned of rows that no balance stands beside, none of the file says.
        let is_open = self.newest_open().is_some();
        let own = if self.orders().1 { first.balance } else { last.balance };
        let closing = if is_open { own } else { closing };
        // One balance is in no equation: what is reckoned from it would tie whatever it says.
        let is_shown = self.balances > 1 && !is_open;
        let opening = balance(opening, first.line).filter(|_| is_shown);
        StatementEnd { opening, closing: balance(closing, last.line), ..end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(rows: &[(i64, Option<i64>)]) -> Chain {
        let mut chain = Chain::new(Currency::parse("EUR").unwrap());
        for (line, (amount, balance)) in (1_u64..).zip(rows) {
            chain.add(line, *amount, *balance);
        }
        chain
    }

    fn ends(chain: &Chain) -> Option<(i64, i64)> {
        let end = chain.end(9);
        Some((end.opening?.minor, end.closing?.minor))
    }

    #[test]
    fn either_order_ties_and_tells_opening_and_closing() {
        let oldest = [(5, Some(105)), (-20, Some(85)), (1, Some(86))];
        let newest = [(1, Some(86)), (-20, Some(85)), (5, Some(105))];
        let sparse = [(5, None), (-20, Some(85)), (3, None), (-2, Some(86))];
        for rows in [oldest.as_slice(), newest.as_slice(), sparse.as_slice()] {
            let chain = chain(rows);
            assert!(chain.proves(), "{rows:?}");
            assert_eq!(ends(&chain), Some((100, 86)), "{rows:?}");
        }
        assert_eq!(ends(&chain(&[(5, None)])), None);
    }

    #[test]
    fn one_balance_proves_nothing() {
        let between = [(1, None), (5, Some(105)), (2, None)];
        for rows in [&[(5, Some(105))], &between[1..], between.as_slice()] {
            let chain = chain(rows);
            let end = chain.end(9);
            assert!(!chain.proves() && end.opening.is_none(), "{rows:?}");
            assert_eq!(end.tie, Tie::Balances, "{rows:?}");
        }
        // Nor do two between which nothing moved.
        let still = chain(&[(5, Some(105)), (0, Some(105))]);
        assert!(!still.proves() && still.ties());
        assert_eq!(ends(&still), Some((100, 105)));
    }

    #[test]
    fn the_newest_row_without_a_balance_is_reckoned_into_none() {
        let rows = [(5, Some(105)), (-20, Some(85)), (-9, None)];
        let turned = [rows[2], rows[1], rows[0]];
        for (rows, line) in [(rows, 3), (turned, 1)] {
            let chain = chain(&rows);
            assert_eq!(chain.newest_open(), Some(line), "{rows:?}");
            let end = chain.end(9);
            assert!(end.opening.is_none(), "{rows:?}");
            assert_eq!(end.closing.map(|balance| balance.minor), Some(85), "{rows:?}");
        }
        let oldest = [(-9, None), rows[0], rows[1]];
        let sparse = [(5, Some(105)), (1, None), (-20, Some(86)), (-9, None)];
        assert_eq!(chain(&oldest).newest_open(), None);
        assert_eq!(chain(&sparse).newest_open(), None, "by day");
    }

    #[test]
    fn the_oldest_row_is_in_no_equation() {
        let unproven = |rows: &[(i64, Option<i64>, bool)]| {
            let mut chain = Chain::new(Currency::parse("EUR").unwrap());
            for (line, (amount, balance, is_told)) in (1_u64..).zip(rows) {
                chain.add_of(line, *amount, *balance, (!is_told).then_some(7));
            }
            chain.unproven().map(|(line, _)| line)
        };
        let oldest = [(5, Some(105), false), (20, Some(125), false), (1, Some(126), false)];
        assert_eq!(unproven(&oldest), Some(1));
        let newest = [oldest[2], oldest[1], oldest[0]];
        assert_eq!(unproven(&newest), Some(3));
        let told = [(5, Some(105), true), oldest[1], oldest[2]];
        assert_eq!(unproven(&told), None);
        let still = [(0, Some(100), false), oldest[0], oldest[1]];
        assert_eq!(unproven(&still), None);
        let behind = [still[0], oldest[0], (2, None, false)];
        assert_eq!(unproven(&behind), Some(3));
        assert_eq!(unproven(&oldest[..1]), Some(1));
        let new = [(5, Some(5), false), (20, Some(25), false)];
        assert_eq!(unproven(&new), None);
        assert_eq!(unproven(&new[..1]), None);
        assert_eq!(unproven(&[new[1], new[0]]), None);
    }

    #[test]
    fn a_row_that_is_missing_doubled_or_changed_breaks_it() {
        for rows in [
            [(5, Some(105)), (1, Some(86)), (2, Some(88))].as_slice(),
            [(5, Some(105)), (-20, Some(85)), (-20, Some(85)), (1, Some(86))].as_slice(),
            [(5, Some(105)), (20, Some(85)), (1, Some(86))].as_slice(),
        ] {
            let chain = chain(rows);
            assert!(chain.problem().is_some(), "{rows:?}");
            assert_eq!(chain.end(9).tie, Tie::Declared(false));
        }
    }
}
