//! What an account of BAI2 says of its credits and debits, held against what it lists.

use std::collections::HashSet;

use crate::model::money::Currency;
use crate::model::settlement::{Control, Direction, Found, Severity};

/// So many amounts of one account are remembered.
const REMEMBERED: usize = 10_000;

/// What an account says of its credits (100, and 105 for those that it does not list) and debits
/// (400, 405), and what it lists. Details may be a part of the day's movements, so what is lacking
/// is only said; more than there is cannot be listed: a credit was read as a debit, or a debit as
/// a credit.
#[derive(Debug, Default)]
pub struct Listed {
    /// Credits and debits.
    pub sides: [Side; 2],
    /// A detail that goes against its code: it may be in either sum.
    turned: bool,
    /// The same of a detail that is in neither.
    beside: bool,
    /// The sum of debits has a minus: so have the debits.
    pub signed: bool,
    /// What details moved, with its sign; of very many the first.
    moved: HashSet<i64>,
}

/// One of the two.
#[derive(Debug, Default, Clone, Copy)]
pub struct Side {
    total: Option<i128>,
    items: Option<i128>,
    /// Said more than once, of different funds.
    several: bool,
    apart: i128,
    plain: Details,
    /// Of the bank's own codes, which may be in the total or not.
    own: Details,
}

/// Details, added up.
#[derive(Debug, Default, Clone, Copy)]
pub struct Details {
    /// Their amounts.
    pub sum: i128,
    /// How many have one.
    pub count: i128,
}

impl Details {
    /// One more.
    pub fn add(&mut self, minor: i64) {
        self.sum = self.sum.saturating_add(i128::from(minor));
        self.count = self.count.saturating_add(i128::from(minor != 0));
    }

    /// Both together.
    pub fn and(self, other: Self) -> Self {
        Self {
            sum: self.sum.saturating_add(other.sum),
            count: self.count.saturating_add(other.count),
        }
    }
}

impl Listed {
    /// An amount of a 03.
    pub fn declare(&mut self, code: &str, minor: i64, items: Option<i64>) {
        let [credits, debits] = &mut self.sides;
        self.signed |= code == "400" && minor < 0;
        let minor = i128::from(minor).saturating_abs();
        match code {
            "100" => credits.declare(minor, items),
            "400" => debits.declare(minor, items),
            "105" => credits.apart = credits.apart.saturating_add(minor),
            "405" => debits.apart = debits.apart.saturating_add(minor),
            _other => {}
        }
    }

    /// What the account `moved` by its balances may show that debits came back: the sum of debits
    /// is less than nothing then, and not one that the bank writes with a minus.
    pub fn hold_against(&mut self, moved: i128) {
        let [credits, debits] = &mut self.sides;
        let is_back = |credits: i128, debits: i128| credits.saturating_add(debits) == moved;
        let both = credits.total.zip(debits.total);
        let is_one = !credits.several && !debits.several;
        if self.signed && is_one && both.is_some_and(|(one, other)| is_back(one, other)) {
            self.signed = false;
            debits.total = debits.total.map(i128::saturating_neg);
        }
    }

    /// Whether the account's own sums come to what it `moved` by its balances.
    pub fn comes_to(&self, moved: i128) -> bool {
        let [credits, debits] = self.sides.map(|side| side.said());
        let both = credits.zip(debits);
        both.is_some_and(|(credits, debits)| credits.saturating_sub(debits) == moved)
    }

    /// A 16, by a code that is not the bank's own.
    pub fn add(&mut self, code: u16, way: Option<Direction>, minor: i64) {
        let Some(way) = way else { return };
        if !matches!(code, 101..=399 | 401..=699) {
            self.beside |= minor < 0;
            return;
        }
        self.remember(way, minor);
        self.side(way).plain.add(minor);
    }

    /// Details of one of the bank's own codes, once it is known which way they went.
    pub fn add_own(&mut self, way: Direction, details: Details) {
        let side = self.side(way);
        side.own = side.own.and(details);
    }

    /// What a detail moved by its code.
    pub fn remember(&mut self, way: Direction, minor: i64) {
        self.turned |= minor < 0;
        if self.moved.len() < REMEMBERED {
            self.moved.insert(match way {
                Direction::Credit => minor,
                Direction::Debit => minor.saturating_neg(),
            });
        }
    }

    fn side(&mut self, way: Direction) -> &mut Side {
        let [credits, debits] = &mut self.sides;
        match way {
            Direction::Credit => credits,
            Direction::Debit => debits,
        }
    }

    /// Whether what is listed is just what is said of both sides.
    fn holds(&self, with_own: bool) -> bool {
        self.sides.iter().all(|side| {
            let Details { sum, count } = side.listed(with_own);
            side.total.map_or(count == 0, |total| total == sum)
        })
    }

    /// Whether the sums show which way details went that have a minus.
    pub fn shows_signs(&self) -> bool {
        self.holds(true) && !self.beside
    }

    /// Whether the sums count details of the bank's own codes: not where they hold without them
    /// alone.
    fn counts_own(&self) -> bool {
        let comes_to = |with_own: bool| {
            let mut said = self.sides.iter().filter(|side| side.said().is_some());
            said.all(|side| side.comes_to(with_own))
        };
        comes_to(true) || !comes_to(false)
    }

    /// Whether a difference between the balances is one detail read the wrong way round: it is
    /// twice what that one moved. Sums of the account's own that hold, or that come to what it
    /// `moved` by its balances, say that none is.
    pub fn has_turned(&self, off: i128, moved: i128) -> bool {
        if self.comes_to(moved) {
            return false;
        }
        let half = off.checked_div(2).and_then(|half| i64::try_from(half).ok());
        let is_twice = off != 0 && off.checked_rem(2) == Some(0);
        let is_one = half.is_some_and(|half| self.moved.contains(&half));
        is_twice && is_one && !self.turned && !self.holds(true) && !self.holds(false)
    }

    /// Whether just what the details lack of both sums is what the balances are `off` by: a part of
    /// the day is listed.
    pub fn lacks(&self, off: i128) -> bool {
        let lacks = |side: Side| {
            let total = side.said()?;
            Some(total.saturating_sub(side.listed(true).sum)).filter(|lacks| *lacks >= 0)
        };
        let [credits, debits] = self.sides.map(lacks);
        let both = credits.zip(debits).filter(|_| !self.turned);
        both.is_some_and(|(credits, debits)| debits.saturating_sub(credits) == off)
    }

    /// Whether a sum says something else than the details of its side.
    pub fn is_contradicted(&self) -> bool {
        let mut said = self.sides.iter().filter(|side| side.said().is_some());
        said.any(|side| !side.comes_to(true) && !side.comes_to(false))
    }

    /// Whether both sums are there, and hold.
    pub fn proves(&self) -> bool {
        let is_said = self.sides.iter().all(|side| side.said().is_some());
        is_said && (self.holds(true) || self.holds(false))
    }

    /// Where what is listed is not what is said. `is_tied`: the balances prove the details.
    /// `is_open`: nothing shows which way those of the bank's own codes went.
    pub fn controls(
        &self,
        (line, currency): (u64, Option<Currency>),
        is_tied: bool,
        is_open: bool,
    ) -> Vec<Control> {
        // Many write the summary of a day and none of its movements.
        let lists = self.sides.iter().any(|side| side.listed(true).count > 0);
        let with_own = !is_tied || self.counts_own();
        let [credits, debits] = self.sides;
        let sides = [("03 total credits (100)", credits), ("03 total debits (400)", debits)];
        let mut controls = Vec::new();
        for (name, side) in sides {
            let Some(total) = side.said().filter(|_| lists) else { continue };
            let Details { sum, count } = side.listed(with_own);
            let (is_more, found) = (sum > total, sum.saturating_add(side.apart));
            let is_sure = match is_more {
                true => !self.turned && (side.plain.sum > total || !is_tied),
                false => is_open,
            };
            let severity = if is_sure { Severity::Error } else { Severity::Warning };
            if is_more || found < total {
                let (field, found) = (name.to_owned(), Found::Is(found));
                let control = Control { line, field, expected: total, found, currency, severity };
                controls.push(control);
                continue;
            }
            // A detail may stand for several items, and no item for several details.
            if let Some(expected) = side.items.filter(|items| count > *items) {
                controls.push(Control {
                    line,
                    field: format!("{name}, items"),
                    expected,
                    found: Found::Is(count),
                    currency: None,
                    severity: Severity::Warning,
                });
            }
        }
        controls
    }
}

impl Side {
    fn declare(&mut self, minor: i128, items: Option<i64>) {
        self.several |= self.total.is_some();
        self.total = Some(minor);
        self.items = items.map(i128::from);
    }

    /// Its total, where there is one.
    pub fn said(&self) -> Option<i128> {
        self.total.filter(|_| !self.several)
    }

    /// What is listed, with the bank's own codes or without them.
    fn listed(&self, with_own: bool) -> Details {
        if with_own { self.plain.and(self.own) } else { self.plain }
    }

    /// Whether that is the total, or lacks only what is said to be listed nowhere.
    fn comes_to(&self, with_own: bool) -> bool {
        self.is_total(self.listed(with_own).sum)
    }

    fn is_total(&self, sum: i128) -> bool {
        self.total.is_some_and(|total| total == sum || total == sum.saturating_add(self.apart))
    }

    /// Whether its total holds with these details of the bank's own codes; none where it has none.
    pub fn holds_with(&self, own: Details) -> Option<bool> {
        self.said().map(|_| self.is_total(self.plain.and(own).sum))
    }

    /// Whether just so many items are said of it, where a number is.
    pub fn counts_with(&self, own: Details) -> bool {
        let items = self.items.filter(|_| self.said().is_some());
        items.is_none_or(|items| items == self.plain.and(own).count)
    }
}
