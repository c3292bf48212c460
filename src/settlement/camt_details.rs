//! What the details of a camt entry come to, beside what was booked.
//!
//! A detail decides a row by its own amount only where the details of its entry add up to what was
//! booked: by themselves, or by the charges that the file tells of, to the cent. What was
//! instructed is what moved before charges only where charges are the difference. Everything else
//! is the entry's: what was booked holds, and no single payment is matched to it.

use std::collections::VecDeque;

use crate::model::money::Currency;
use crate::model::settlement::{
    Control, Direction, Entry, Found, Line, LineKind, Severity, SignedMoney,
};
use crate::settlement::kinds;

/// So many details of one entry wait for its end. Of more, the first are told before it is known
/// whether all add up, and then a sum that does not is an error.
const HELD: usize = 10_000;

/// The charges that an entry or a detail tells of.
#[derive(Debug, Clone, Default)]
pub struct Charges {
    total: Option<i64>,
    parts: i64,
    /// One of them is of another currency than the entry, or cannot be read.
    is_odd: bool,
}

impl Charges {
    /// Takes an amount that stands at `leaf`, below `Chrgs/`.
    pub fn take(&mut self, leaf: &str, read: Option<(i64, Currency)>, own: Currency) {
        match read {
            Some((minor, currency)) if currency == own => match leaf {
                "TtlChrgsAndTaxAmt" => self.total = Some(minor),
                _part => self.parts = self.parts.saturating_add(minor),
            },
            Some(_) | None => self.is_odd = true,
        }
    }

    /// What they come to, where it is something.
    pub fn minor(&self) -> Option<i64> {
        let minor = self.total.unwrap_or(self.parts);
        (!self.is_odd && minor > 0).then_some(minor)
    }

    /// Whether they say anything that could stand between two amounts.
    pub fn are_told(&self) -> bool {
        self.is_odd || self.total.unwrap_or(self.parts) > 0
    }
}

/// The details of one entry, as they come.
#[derive(Debug, Default)]
pub struct Details {
    held: VecDeque<Line>,
    count: u64,
    sum: i128,
    /// The charges of each, signed as it is.
    charged: i128,
    /// How many have no amount, or one of another currency.
    unsummed: u64,
    /// One of them has one of another currency.
    is_mixed: bool,
    /// Details went both ways.
    is_netted: bool,
    /// A detail tells only what was instructed.
    is_instructed: bool,
    /// A detail tells of charges.
    has_charges: bool,
}

/// What an entry says of its details.
pub struct Said<'a> {
    /// The entry.
    pub entry: &'a Entry,
    /// Its own charges.
    pub charges: &'a Charges,
    /// As many payments are listed as it declares.
    pub is_whole: bool,
}

impl Details {
    /// How many came.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether any of them tells of charges.
    pub fn has_charges(&self) -> bool {
        self.has_charges
    }

    /// The last one that came.
    pub fn last(&mut self) -> Option<&mut Line> {
        self.held.back_mut()
    }

    /// Takes one; gives back the first of too many.
    pub fn take(
        &mut self,
        line: Line,
        entry: &Entry,
        charges: &Charges,
        instructed: bool,
    ) -> Option<Line> {
        self.count = self.count.saturating_add(1);
        self.is_instructed |= instructed;
        self.has_charges |= charges.are_told();
        match line.minor {
            Some(minor) if line.currency == entry.currency => {
                self.sum = self.sum.saturating_add(line.direction.signed(minor));
                let charge = charges.minor().unwrap_or(0);
                self.charged = self.charged.saturating_add(line.direction.signed(charge));
            }
            other => {
                self.unsummed = self.unsummed.saturating_add(1);
                self.is_mixed |= other.is_some();
            }
        }
        self.is_netted |= self.held.back().is_some_and(|last| last.direction != line.direction);
        self.held.push_back(line);
        // The first of many are told as they come; the last is never one of them.
        let mut first = (self.held.len() > HELD).then(|| self.held.pop_front())??;
        let charge = fee_of(&first);
        instructed_before_charges(&mut first, charge);
        Some(first)
    }

    /// The entry is over: its lines as they count, and what is wrong with their sum.
    pub fn end(mut self, said: &Said<'_>) -> (VecDeque<Line>, Option<Control>) {
        let control = match (self.count, self.held.back_mut()) {
            (0, _) | (_, None) => None,
            (1, Some(line)) => {
                let is_sure = the_only(line, said, self.is_instructed);
                (!is_sure).then(|| self.differs(said.entry, Severity::Warning))
            }
            (_several, Some(_)) => self.several(said),
        };
        (self.held, control)
    }

    fn several(&mut self, said: &Said<'_>) -> Option<Control> {
        let entry = said.entry;
        let wanted = entry.direction.signed(entry.minor);
        let is_told_early = u64::try_from(self.held.len()) != Ok(self.count);
        if self.unsummed == self.count || (!self.is_mixed && self.sum == wanted) {
            self.each(|line| instructed_before_charges(line, fee_of(line)));
            return None;
        }
        let off = self.sum.saturating_sub(wanted);
        let own_charge = said.charges.minor().map(i128::from);
        if is_told_early {
            return Some(self.differs(entry, Severity::Error));
        }
        if self.unsummed == 0 && !self.is_netted && self.sum == wanted.saturating_neg() {
            // Each tells the way that the original went.
            let control = self.differs(entry, Severity::Warning);
            self.each(|line| {
                line.direction = line.direction.opposite();
                line.kind = kinds::booking(line);
                instructed_before_charges(line, fee_of(line));
            });
            return Some(control);
        }
        let is_summed = self.unsummed == 0;
        if is_summed
            && self.charged != 0
            && (off == self.charged || off == self.charged.saturating_neg())
        {
            let is_less = off == self.charged;
            self.each(|line| less_its_charge(line, is_less));
            return None;
        }
        if is_summed && own_charge == Some(off.saturating_abs()) {
            self.each(|line| instructed_before_charges(line, fee_of(line)));
            self.held.push_back(charge_line(entry, self.count, off));
            return None;
        }
        let has_charges = said.charges.are_told() || self.has_charges;
        let is_part = !is_summed || self.is_instructed || !said.is_whole;
        let is_turned = self.sum == wanted.saturating_neg();
        let may_stand_between = has_charges || is_part || is_turned;
        let severity = if may_stand_between { Severity::Warning } else { Severity::Error };
        let control = self.differs(entry, severity);
        self.as_booked(entry);
        Some(control)
    }

    fn each(&mut self, change: impl FnMut(&mut Line)) {
        self.held.iter_mut().for_each(change);
    }

    /// The first has all that was booked, and the others are named beside it.
    fn as_booked(&mut self, entry: &Entry) {
        for (at, line) in self.held.iter_mut().enumerate() {
            (line.gross, line.fee) = (None, None);
            line.itemised = false;
            line.minor = (at == 0).then_some(entry.minor);
            line.currency = entry.currency;
            line.direction = entry.direction;
        }
    }

    fn differs(&self, entry: &Entry, severity: Severity) -> Control {
        Control {
            line: entry.line,
            field: "Ntry/Amt against the sum of its TxDtls".to_owned(),
            expected: entry.direction.signed(entry.minor),
            found: Found::Is(self.sum),
            currency: Some(entry.currency),
            severity,
        }
    }
}

/// One detail is the entry itself: where it has no amount it has the entry's, and where it has the
/// same amount it went the same way, whatever its own indicator says of the original. Where it has
/// another, and charges do not tell why, what was booked holds, and no single payment is matched to
/// it. In another currency it is what was paid, and the entry what came of it. False: that is to be
/// said.
fn the_only(line: &mut Line, said: &Said<'_>, instructed: bool) -> bool {
    let entry = said.entry;
    let charge = fee_of(line).or_else(|| said.charges.minor());
    let own = SignedMoney { minor: line.minor.unwrap_or(entry.minor), currency: line.currency };
    let is_other = line.minor.is_some() && line.currency != entry.currency;
    line.minor = Some(entry.minor);
    line.currency = entry.currency;
    line.direction = entry.direction;
    line.kind = kinds::booking(line);
    if is_other {
        line.gross = Some(own);
        return true;
    }
    let own = own.minor;
    if own == entry.minor {
        instructed_before_charges(line, charge);
        return true;
    }
    (line.gross, line.fee) = (None, None);
    if charge == own.checked_sub(entry.minor).map(i64::saturating_abs) {
        let money = |minor| Some(SignedMoney { minor, currency: entry.currency });
        (line.gross, line.fee) = (money(own), charge.and_then(money));
        return true;
    }
    if !line.itemised || instructed {
        return true;
    }
    line.itemised = false;
    false
}

/// What was instructed is what moved before charges only where those are the difference; in another
/// currency it is what the payer sent. Charges that are in no amount say nothing of it.
fn instructed_before_charges(line: &mut Line, charge: Option<i64>) {
    let (Some(gross), Some(minor)) = (line.gross, line.minor) else {
        line.fee = None;
        return;
    };
    if gross.currency != line.currency {
        return;
    }
    let off = gross.minor.checked_sub(minor).map(i64::saturating_abs);
    if off == Some(0) {
        line.fee = None;
    } else if charge.is_none() || off != charge {
        (line.gross, line.fee) = (None, None);
    }
}

fn fee_of(line: &Line) -> Option<i64> {
    line.fee.filter(|fee| fee.currency == line.currency).map(|fee| fee.minor)
}

/// Where the details tell what moved before charges, each was booked without its own.
fn less_its_charge(line: &mut Line, is_less: bool) {
    let (Some(minor), Some(charge)) = (line.minor, fee_of(line)) else {
        instructed_before_charges(line, None);
        return;
    };
    let booked = if is_less { minor.checked_sub(charge) } else { minor.checked_add(charge) };
    line.gross = Some(SignedMoney { minor, currency: line.currency });
    line.minor = booked;
}

/// What an entry's own charges took of its details' sum, as a line beside them.
fn charge_line(entry: &Entry, count: u64, off: i128) -> Line {
    let direction = if off > 0 { Direction::Debit } else { Direction::Credit };
    Line {
        number: count.saturating_add(1),
        kind: LineKind::Fee,
        minor: i64::try_from(off.saturating_abs()).ok(),
        direction,
        booked_on: entry.booked_on,
        ..Line::of(entry)
    }
}
