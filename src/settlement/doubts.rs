//! What rows of a file that nobody described leave open where no balance proves them: a sum among
//! the rows, a flag against a sign, sides of debits with either sign, signs of a card's issuer; and
//! rows below a payment to many that say what it was made of.

use std::collections::BTreeMap;

use crate::model::money::Currency;
use crate::model::settlement::{Problem, Severity};
use crate::settlement::amount::shown;
use crate::settlement::bank_words::Deed;
use crate::settlement::sheet::Out;

/// Booked amounts of one currency, as the rows go by: a line and an amount of both ends.
#[derive(Debug, Clone, Copy)]
struct Tally {
    rows: u64,
    total: i128,
    first: (u64, i64),
    second: (u64, i64),
    before: (u64, i64),
    last: (u64, i64),
    credits: i128,
    debits: i128,
}

fn sides(minor: i64) -> (i128, i128) {
    let minor = i128::from(minor);
    (minor.max(0), minor.min(0))
}

impl Tally {
    fn new(line: u64, minor: i64) -> Self {
        let (total, at, (credits, debits)) = (i128::from(minor), (line, minor), sides(minor));
        Self { rows: 1, total, first: at, second: at, before: at, last: at, credits, debits }
    }

    fn add(&mut self, line: u64, minor: i64) {
        self.rows = self.rows.saturating_add(1);
        self.total = self.total.saturating_add(i128::from(minor));
        let (credits, debits) = sides(minor);
        self.credits = self.credits.saturating_add(credits);
        self.debits = self.debits.saturating_add(debits);
        if self.rows == 2 {
            self.second = (line, minor);
        }
        self.before = self.last;
        self.last = (line, minor);
    }

    /// The two rows at an end that are what all other debits and all other credits come to, with
    /// either sign. Of so few that two payments and two more look so, nothing is said.
    fn sums(&self) -> Option<(u64, i64)> {
        let are_sums = |one: i64, other: i64| {
            let ((in_one, out_one), (in_other, out_other)) = (sides(one), sides(other));
            let credits = self.credits.saturating_sub(in_one).saturating_sub(in_other);
            let debits = self.debits.saturating_sub(out_one).saturating_sub(out_other);
            let both = credits != 0 && debits != 0;
            both && i128::from(one.saturating_abs()) == debits.saturating_abs()
                && i128::from(other) == credits
        };
        let ends = [(self.before, self.last), (self.first, self.second)];
        let found = ends.into_iter().find(|(one, other)| {
            self.rows > 4 && (are_sums(one.1, other.1) || are_sums(other.1, one.1))
        });
        found.map(|(one, _)| one)
    }

    /// The row at an end that is what all others come to. A closing balance is that of the opening
    /// one and the movements; of two rows with one amount nothing is said.
    fn sum(&self) -> Option<(u64, i64)> {
        let is_sum = |minor: i64| {
            let own = i128::from(minor);
            own != 0 && own == self.total.saturating_sub(own)
        };
        let ends = [self.last, self.first];
        ends.into_iter().find(|(_, minor)| self.rows > 2 && is_sum(*minor))
    }
}

/// Amounts by currency.
type Tallies = BTreeMap<Currency, Tally>;

fn add(tallies: &mut Tallies, line: u64, minor: i64, of: Currency) {
    let known = tallies.entry(of).and_modify(|tally| tally.add(line, minor));
    known.or_insert_with(|| Tally::new(line, minor));
}

fn tell(tallies: &Tallies, out: &mut Out) {
    for (of, tally) in tallies {
        let expected = "a movement; where it is one, describe this file as a [[format]]";
        let amount = |minor: i64| shown(i128::from(minor), Some(*of));
        let found = match (tally.sum(), tally.sums()) {
            (Some((line, minor)), _) => {
                let amount = amount(minor);
                (line, format!("{amount}, what all other rows come to: is it a sum or a balance?"))
            }
            (None, Some((line, minor))) => {
                let amount = amount(minor);
                let all = "what all other debits and all other credits come to: are they sums?";
                (line, format!("{amount} and the row beside it, {all}"))
            }
            (None, None) => continue,
        };
        out.push(Problem::error(found.0, "amount", expected, found.1));
    }
}

/// The first row of each kind whose sign is that of a card's issuer: what was bought without a
/// minus, what was paid or came back with one.
#[derive(Debug, Default)]
struct Issuer {
    bought: bool,
    sold: bool,
    paid: Option<Problem>,
    returned: Option<Problem>,
}

impl Issuer {
    /// What says that signs are the issuer's. A shop sells without a minus, too, and gives back.
    fn told(self) -> Option<Problem> {
        let paid = self.paid.filter(|_| self.bought || self.sold);
        paid.or_else(|| self.returned.filter(|_| self.bought))
    }
}

/// Rows without and with a minus, and those of the latter that may have paid a card's bill. An
/// account that pays one moves out more often than in; a card's issuer writes it the other way
/// round. So does whoever receives payouts and pays a direct debit, and such an account moves money
/// out by other rows as well: where it does it is only said. Thanks are more than that: a card's
/// issuer writes them of a bill that was paid, and a shop of what the holder of an account bought,
/// who moves out more often than in.
#[derive(Debug, Default)]
struct Bill {
    into: u64,
    out: u64,
    bills: u64,
    is_thanked: bool,
    paid: Option<Problem>,
}

impl Bill {
    fn row(&mut self, minor: i64) {
        let count = if minor < 0 { &mut self.out } else { &mut self.into };
        *count = count.saturating_add(u64::from(minor != 0));
    }

    fn told(self) -> Option<Problem> {
        let is_all = self.bills >= self.out && self.into > self.out;
        let is_wrong = is_all || self.is_thanked;
        let severity = if is_wrong { Severity::Error } else { Severity::Warning };
        let told = self.paid.filter(|_| self.out <= self.into)?;
        Some(Problem { severity, ..told })
    }
}

/// What is open, of the statement that is read and of the whole file.
#[derive(Debug, Default)]
pub struct Doubts {
    own: Tallies,
    all: Tallies,
    statements: u64,
    /// Whether the first debit had a minus.
    minus: Option<bool>,
    mixed: Option<Problem>,
    against: Option<Problem>,
    issuer: Issuer,
    bill: Bill,
    /// Rows with a day of their value, those without one, and the first of these.
    valued: u64,
    unvalued: u64,
    first_unvalued: u64,
}

/// From so many rows with a day of their value on, the only one without is none of them.
const VALUED: u64 = 4;

impl Doubts {
    /// A row that was booked, with its sign.
    pub fn row(&mut self, line: u64, minor: i64, of: Currency) {
        add(&mut self.own, line, minor, of);
        add(&mut self.all, line, minor, of);
        self.bill.row(minor);
    }

    /// A row that was booked, with the day of its value or without.
    pub fn value_day(&mut self, line: u64, is_there: bool) {
        if is_there {
            self.valued = self.valued.saturating_add(1);
            return;
        }
        if self.unvalued == 0 {
            self.first_unvalued = line;
        }
        self.unvalued = self.unvalued.saturating_add(1);
    }

    /// A text, in the column `name` and beside a minus, that may be of a card's bill that was paid.
    pub fn bill(&mut self, line: u64, name: &str, found: String) {
        self.bill.bills = self.bill.bills.saturating_add(1);
        if self.bill.paid.is_none() {
            let expected = "more rows with a minus than without one, as of an account that pays a \
                            card's bill, or a balance; describe this file as a [[format]]";
            self.bill.paid = Some(Problem::warning(line, name, expected, found));
        }
    }

    /// The same, of a text that thanks.
    pub fn thanks(&mut self, line: u64, name: &str, found: String) {
        self.bill.is_thanked = true;
        self.bill(line, name, found);
    }

    /// A flag, in the column `name`, that says another way than the sign beside it.
    pub fn against(&mut self, line: u64, name: &str, found: String) {
        if self.against.is_none() {
            let expected = "the way that the sign of the amount says, or a balance; describe this \
                            file as a [[format]]";
            self.against = Some(Problem::error(line, name, expected, found));
        }
    }

    /// What a row did by its kind, in the column `name`, and the sign that it has.
    pub fn deed(&mut self, line: u64, name: &str, deed: Deed, is_out: bool, found: String) {
        let issuer = &mut self.issuer;
        let expected = "signs of whoever holds the account, or a balance; describe this file as a \
                        [[format]]";
        let problem = || Problem::error(line, name, expected, found);
        match deed {
            Deed::Bought => issuer.bought |= !is_out,
            Deed::Sold => issuer.sold |= !is_out,
            Deed::Paid if is_out && issuer.paid.is_none() => issuer.paid = Some(problem()),
            Deed::Returned if is_out && issuer.returned.is_none() => {
                issuer.returned = Some(problem());
            }
            Deed::Paid | Deed::Returned => {}
        }
    }

    /// An amount of the column of debits.
    pub fn debit(&mut self, line: u64, name: &str, text: &str, is_minus: bool) {
        let first = *self.minus.get_or_insert(is_minus);
        if first != is_minus && self.mixed.is_none() {
            let expected = "one sign in all rows, or a balance; describe this file as a [[format]]";
            self.mixed = Some(Problem::error(line, name, expected, text));
        }
    }

    /// The statement ended: what no balance proves of it is told.
    pub fn end_statement(&mut self, is_proven: bool, out: &mut Out) {
        let (own, mixed, against) =
            (std::mem::take(&mut self.own), self.mixed.take(), self.against.take());
        let issuer = std::mem::take(&mut self.issuer).told();
        let bill = std::mem::take(&mut self.bill).told();
        self.minus = None;
        self.statements = self.statements.saturating_add(u64::from(!own.is_empty()));
        if is_proven {
            return;
        }
        tell(&own, out);
        out.extend(mixed.into_iter().chain(against).chain(issuer).chain(bill));
    }

    /// The file ended: a sum of all its accounts may stand below them.
    pub fn end(&self, is_proven: bool, out: &mut Out) {
        if is_proven {
            return;
        }
        if self.statements > 1 {
            tell(&self.all, out);
        }
        if self.unvalued == 1 && self.valued >= VALUED {
            let expected = "a day, as all other rows have: one without it may be a balance, or not \
                            booked yet; describe this file as a [[format]]";
            out.push(Problem::error(self.first_unvalued, "value date", expected, "none"));
        }
    }
}

/// So many parts of one payment are held.
const PARTS: usize = 100_000;

/// A payment to many, and the rows with a day below it that say what it was made of. They move
/// nothing where they come to just what it moved; else what they are is open.
#[derive(Debug, Default)]
pub struct Parts {
    whole: Option<(i64, Currency, String)>,
    sum: i128,
    held: Vec<u64>,
    counted: u64,
}

impl Parts {
    /// A row that moved, with the bank's reference of it, or none that was booked: the one before
    /// it has no more parts.
    pub fn begin(&mut self, whole: Option<(i64, Currency, String)>, out: &mut Out) {
        self.settle(out);
        self.whole = whole;
    }

    /// The currency of the payment that rows may be parts of.
    pub fn currency(&self) -> Option<Currency> {
        self.whole.as_ref().map(|(_, of, _)| *of)
    }

    /// A part by the bank's reference beside it, and whether it is held for it has a day.
    pub fn add(&mut self, line: u64, minor: i64, reference: &str, is_dated: bool) -> bool {
        let Some((_, _, own)) = &self.whole else { return false };
        let is_own = reference.is_empty() || reference == own;
        if !is_own || self.held.len() >= PARTS {
            return false;
        }
        self.sum = self.sum.saturating_add(i128::from(minor));
        self.counted = self.counted.saturating_add(1);
        if is_dated {
            self.held.push(line);
        }
        is_dated
    }

    /// How many parts there were.
    pub fn counted(&self) -> u64 {
        self.counted
    }

    /// All parts are there. Some write them without the sign of the whole.
    pub fn settle(&mut self, out: &mut Out) {
        let whole = self.whole.take().map_or(0, |(minor, ..)| i128::from(minor));
        let sum = std::mem::take(&mut self.sum);
        let is_whole = sum != 0 && sum.saturating_abs() == whole.saturating_abs();
        let told = std::mem::take(&mut self.held).into_iter();
        out.extend(told.map(if is_whole { nothing_moved } else { no_amount }));
    }
}

/// A row without an amount that moved nothing.
pub fn nothing_moved(line: u64) -> Problem {
    Problem::warning(line, "amount", "an amount", "none: the row was passed over")
}

/// A row with a day of which nothing shows that it moved nothing.
pub fn no_amount(line: u64) -> Problem {
    let expected = "an amount in a known column; describe this file as a [[format]]";
    Problem::error(line, "amount", expected, "a day, and no amount")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told of the parts of 150.00 that went out under `T2`, as (line, severity).
    fn told(parts: &[(u64, i64, &str, bool)]) -> (Vec<(u64, Severity)>, Vec<bool>) {
        let mut out = Out::default();
        let mut own = Parts::default();
        let whole = (-15_000, Currency::parse("CHF").unwrap(), "T2".to_owned());
        own.begin(Some(whole), &mut out);
        let held = parts
            .iter()
            .map(|(line, minor, reference, is_dated)| own.add(*line, *minor, reference, *is_dated));
        let held = held.collect();
        own.begin(None, &mut out);
        let told = out.problems().into_iter().map(|problem| (problem.line, problem.severity));
        (told.collect(), held)
    }

    #[test]
    fn parts_that_come_to_the_whole_moved_nothing() {
        use Severity::{Error, Warning};
        for (first, second) in [(-10_000, -5_000), (10_000, 5_000)] {
            let (told, held) = told(&[(3, first, "T2", true), (4, second, "", true)]);
            assert_eq!((told, held), (vec![(3, Warning), (4, Warning)], vec![true, true]));
        }
        let (other, _) = told(&[(3, -10_000, "T2", true), (4, -5_001, "T2", true)]);
        assert_eq!(other, [(3, Error), (4, Error)]);
        let (alone, held) = told(&[(3, -10_000, "T2", true), (4, -5_000, "T3", true)]);
        assert_eq!((alone, held), (vec![(3, Error)], vec![true, false]), "of another payment");
        // Without a day they are told elsewhere.
        let (mixed, held) = told(&[(3, -10_000, "T2", true), (4, -5_000, "T2", false)]);
        assert_eq!((mixed, held), (vec![(3, Warning)], vec![true, false]));
        let mut none = Parts::default();
        assert!(!none.add(2, -5_000, "", true), "of no payment");
    }

    #[test]
    fn an_end_that_is_what_all_others_come_to_is_a_sum() {
        let euro = Currency::parse("EUR").unwrap();
        let sum = |rows: &[i64]| {
            let mut tallies = Tallies::new();
            for (line, minor) in (1_u64..).zip(rows) {
                add(&mut tallies, line, *minor, euro);
            }
            tallies.get(&euro).and_then(Tally::sum)
        };
        assert_eq!(sum(&[-1250, 10_000, 8_750]), Some((3, 8_750)));
        assert_eq!(sum(&[8_750, 10_000, -1250]), Some((1, 8_750)));
        assert_eq!(sum(&[500, -100, 200, 600]), Some((4, 600)), "opening, rows, closing");
        assert_eq!(sum(&[-1250, 10_000, -8_750]), None, "a sweep");
        let sums = |rows: &[i64]| {
            let mut tallies = Tallies::new();
            for (line, minor) in (1_u64..).zip(rows) {
                add(&mut tallies, line, *minor, euro);
            }
            tallies.get(&euro).and_then(Tally::sums)
        };
        assert_eq!(sums(&[-150, 1_050, 725, -150, 1_775]), Some((4, -150)));
        assert_eq!(sums(&[-150, 1_050, 725, 1_775, 150]), Some((4, 1_775)), "without a sign");
        assert_eq!(sums(&[-150, 1_775, -150, 1_050, 725]), Some((1, -150)), "above");
        for rows in [vec![-150, 1_050, -150, 1_050], vec![1, 2, 3, 4, 6], vec![-1, 2, 3, -1, 6]] {
            assert_eq!(sums(&rows), None, "{rows:?}");
        }
        for rows in [vec![5, 5], vec![5], vec![5, -5, 0], vec![0, 0, 0], vec![1, 2, 4]] {
            assert_eq!(sum(&rows), None, "{rows:?}");
        }
    }
}
