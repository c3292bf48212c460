//! The type codes that a bank gives a meaning of its own (900 to 999), and which way they went.
//!
//! The specification calls 920 to 959 credits, 960 to 999 debits and the others statuses. Banks do
//! not hold to it: of NAB's codes 905 and 910 are credits and 951 is a fee, of CBA's 990 came in.
//! So a code alone moves nothing: the account's sums of both sides (100 and 400) with their items,
//! or its balances, show its side. The specification's sides go first; where they do not hold, a
//! code has the side with which everything does, if only one choice is such, one side a code. A
//! single sum shows no more than that the specification's sides are right. Details wait for that
//! from the first one of such a code on; of very many, none but the specification's sides are
//! tried.

use std::ops::RangeInclusive;

use super::listed::{Details, Side};
use super::{Detail, direction};
use crate::model::settlement::{Direction, EntryStatus, Problem};
use crate::settlement::kinds;

/// Which they are.
pub const OWN_CODES: RangeInclusive<u16> = 900..=999;

/// So many choices of sides are tried: those of twelve codes that have two.
const CHOICES: usize = 4_096;

/// So many bytes of details wait.
const WAITING: usize = 16 * 1024 * 1024;

/// So many lines of a code are named, and so many codes.
const NAMED: usize = 5;

/// A code and its side; one without any moved nothing.
pub type Sided = (u16, Option<Direction>);

/// An account's details of such codes, and the details that wait for their sides.
#[derive(Debug, Default)]
pub struct Own {
    codes: Vec<Code>,
    waiting: Vec<Detail>,
    bytes: usize,
    /// Only the specification's sides are tried.
    is_fixed: bool,
    /// Nothing waits any more.
    is_released: bool,
}

#[derive(Debug)]
struct Code {
    code: u16,
    details: Details,
    lines: Vec<u64>,
}

/// What the account says that may show the sides.
#[derive(Debug)]
pub struct Proof {
    /// Its sums, and its other details.
    pub sides: [Side; 2],
    /// What it moved by its balances.
    pub moved: Option<i128>,
    /// What its other details come to.
    pub net: i128,
}

/// What of it holds with one choice.
#[derive(Debug)]
struct Fit {
    /// Every sum that is said, if one is.
    sums: Option<bool>,
    /// The same without any detail of the bank's own codes.
    sums_beside: bool,
    has_both: bool,
    items: bool,
    moved: Option<bool>,
}

#[derive(Debug, Default)]
struct Found {
    /// A choice with which everything holds.
    whole: Option<Vec<Sided>>,
    several: bool,
    /// Both sums and their items hold with some choice.
    by_sums: bool,
}

/// The sides that a code may have, the specification's first.
fn ways(code: u16) -> &'static [Option<Direction>] {
    match direction(code) {
        Some(Direction::Credit) => &[Some(Direction::Credit), Some(Direction::Debit)],
        Some(Direction::Debit) => &[Some(Direction::Debit), Some(Direction::Credit)],
        None => &[None, Some(Direction::Credit), Some(Direction::Debit)],
    }
}

impl Own {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// A detail of such a code, as the sums take it. A minus may be a side as well: where one has
    /// it, only the specification's sides are tried.
    pub fn add(&mut self, code: u16, minor: i64, line: u64, has_minus: bool) {
        self.is_fixed |= has_minus;
        match self.codes.iter_mut().find(|known| known.code == code) {
            Some(known) => {
                known.details.add(minor);
                if known.lines.len() < NAMED {
                    known.lines.push(line);
                }
            }
            None => {
                let mut details = Details::default();
                details.add(minor);
                self.codes.push(Code { code, details, lines: vec![line] });
            }
        }
    }

    /// Lets a detail wait, or gives it back where none does.
    pub fn hold(&mut self, detail: Detail) -> Option<Detail> {
        if self.codes.is_empty() || self.is_released {
            return Some(detail);
        }
        let bytes = detail.line.raw.len().saturating_add(size_of::<Detail>());
        self.bytes = self.bytes.saturating_add(bytes);
        self.waiting.push(detail);
        None
    }

    /// What waits, where it is too much to wait any longer.
    pub fn overflow(&mut self) -> Vec<Detail> {
        if self.bytes <= WAITING {
            return Vec::new();
        }
        self.bytes = 0;
        self.is_fixed = true;
        self.is_released = true;
        std::mem::take(&mut self.waiting)
    }

    /// What waited, with the side that it has.
    pub fn release(&mut self, sides: &[Sided]) -> Vec<Detail> {
        let mut waited = std::mem::take(&mut self.waiting);
        for detail in &mut waited {
            let own = detail.own.map(|(code, _)| code);
            let known = sides.iter().find(|(code, _)| Some(*code) == own);
            if let Some((_, Some(way))) = known {
                detail.turn(*way);
            }
        }
        waited
    }

    /// The specification's sides.
    pub fn usual(&self) -> Vec<Sided> {
        self.codes.iter().map(|own| (own.code, direction(own.code))).collect()
    }

    /// What there is of each side.
    pub fn sums(&self, sides: &[Sided]) -> [Details; 2] {
        let mut sums = [Details::default(); 2];
        let [credits, debits] = &mut sums;
        for (own, (_, way)) in self.codes.iter().zip(sides) {
            match way {
                Some(Direction::Credit) => *credits = credits.and(own.details),
                Some(Direction::Debit) => *debits = debits.and(own.details),
                None => {}
            }
        }
        sums
    }

    /// The side of each code.
    ///
    /// # Errors
    /// In words, where nothing shows them.
    pub fn sides(&self, proof: &Proof) -> Result<Vec<Sided>, &'static str> {
        let usual = self.usual();
        let fit = proof.fit(self.sums(&usual));
        if fit.is_whole() {
            return Ok(usual);
        }
        let may_find = (fit.has_both || fit.moved.is_some()) && self.may_be_searched();
        let found = if may_find { self.search(proof) } else { Found::default() };
        match found.whole {
            Some(_) if found.several => Err("they hold with more than one choice of sides"),
            Some(sides) => Ok(sides),
            None if fit.shows_usual(&found) => Ok(usual),
            None => Err("nothing shows which way they went"),
        }
    }

    fn may_be_searched(&self) -> bool {
        let choices = self.codes.iter().try_fold(1_usize, |all, own| {
            all.checked_mul(ways(own.code).len()).filter(|all| *all <= CHOICES)
        });
        choices.is_some() && !self.is_fixed
    }

    fn search(&self, proof: &Proof) -> Found {
        let mut found = Found::default();
        let mut places = vec![0_usize; self.codes.len()];
        loop {
            let choice = self.codes.iter().zip(&places);
            let side =
                |(own, at): (&Code, &usize)| (own.code, ways(own.code).get(*at).copied().flatten());
            let sides: Vec<Sided> = choice.map(side).collect();
            let fit = proof.fit(self.sums(&sides));
            found.by_sums |= fit.has_both && fit.sums == Some(true) && fit.items;
            if fit.is_whole() {
                found.several = found.whole.is_some();
                found.whole.get_or_insert(sides);
            }
            if found.several || !self.step(&mut places) {
                return found;
            }
        }
    }

    /// The next choice; false behind the last.
    fn step(&self, places: &mut [usize]) -> bool {
        for (own, place) in self.codes.iter().zip(places) {
            *place = place.saturating_add(1);
            if *place < ways(own.code).len() {
                return true;
            }
            *place = 0;
        }
        false
    }

    /// That the sides are not known, with the lines.
    pub fn problem(&self, why: &str) -> Problem {
        let line = self.codes.iter().flat_map(|own| &own.lines).min().copied().unwrap_or(0);
        let mut named: Vec<String> = self.codes.iter().take(NAMED).map(Code::named).collect();
        if self.codes.len() > NAMED {
            named.push("others".to_owned());
        }
        let found = format!("{}: codes of the bank's own; {why}", named.join(", "));
        let expected = "the code of a credit or a debit, or sums of both sides (100 and 400) or \
                        two balances that show the side of a bank's own code";
        Problem::error(line, "16 type code", expected, found)
    }
}

impl Code {
    /// `951 (lines 6, 9)`.
    fn named(&self) -> String {
        let lines: Vec<String> = self.lines.iter().map(ToString::to_string).collect();
        let word = if lines.len() == 1 { "line" } else { "lines" };
        let named = i128::try_from(lines.len()).unwrap_or(i128::MAX);
        let more = if self.details.count > named { ", …" } else { "" };
        format!("{} ({word} {}{more})", self.code, lines.join(", "))
    }
}

impl Proof {
    fn fit(&self, own: [Details; 2]) -> Fit {
        let [credits, debits] = own;
        let [of_credits, of_debits] = &self.sides;
        let said = [of_credits.holds_with(credits), of_debits.holds_with(debits)];
        let is_said = said.iter().any(Option::is_some);
        let hold = |said: &[Option<bool>]| said.iter().all(|holds| *holds != Some(false));
        let none = Details::default();
        let after = self.net.saturating_add(credits.sum).saturating_sub(debits.sum);
        Fit {
            sums: is_said.then(|| hold(&said)),
            sums_beside: hold(&[of_credits.holds_with(none), of_debits.holds_with(none)]),
            has_both: said.iter().all(Option::is_some),
            items: of_credits.counts_with(credits) && of_debits.counts_with(debits),
            moved: self.moved.map(|moved| moved == after),
        }
    }
}

impl Fit {
    /// Whether both sums or the balances hold, and nothing that is said does not.
    fn is_whole(&self) -> bool {
        let is_shown = (self.has_both && self.sums == Some(true)) || self.moved == Some(true);
        is_shown && self.sums != Some(false) && self.moved != Some(false) && self.items
    }

    /// Whether the specification's sides may be believed where something does not hold with any:
    /// balances may be of more than is listed, items of fewer details, and sums of the
    /// specification's own codes alone.
    fn shows_usual(&self, found: &Found) -> bool {
        let by_balances = self.moved == Some(true) && (self.sums == Some(true) || self.sums_beside);
        let by_sums = self.sums == Some(true) && (self.items || !found.by_sums);
        by_balances || by_sums
    }
}

impl Detail {
    /// It went this way, whatever its code says.
    fn turn(&mut self, way: Direction) {
        let other = self.own.filter(|(code, _)| direction(*code) != Some(way));
        let Some((_, minor)) = other else { return };
        self.entry.minor = minor;
        self.entry.direction = way;
        self.entry.status = EntryStatus::Booked;
        self.line.minor = Some(minor);
        self.line.direction = way;
        self.line.kind = kinds::booking(&self.line);
    }
}
