//! What the blocks of details of a camt entry say that they come to.

use crate::model::money::Currency;
use crate::model::settlement::{Direction, Entry, Problem, Severity};
use crate::settlement::amount::shown;
use crate::settlement::camt::{Written, read};

/// The blocks (`NtryDtls`) of one entry, as they go by.
#[derive(Debug, Default)]
pub struct Blocks {
    /// Where the block began that is being read.
    line: u64,
    /// What it declares, and which way that went.
    declared: Option<Written>,
    way: Option<Direction>,
    /// What its details come to; unknown where one of them is in another currency, or tells only
    /// what was instructed.
    sum: i128,
    details: u64,
    unknown: bool,
    /// What all blocks declare, in one currency.
    total: i128,
    currency: Option<Currency>,
    mixed: bool,
    /// The first that is not what its details come to.
    odd: Option<Odd>,
}

#[derive(Debug)]
struct Odd {
    line: u64,
    minor: i64,
    found: Option<i128>,
    is_sure: bool,
}

impl Blocks {
    /// A block begins. What stands before the first one (`Ntry/Btch`) is of that one.
    pub fn begin(&mut self, line: u64) {
        self.line = line;
        self.sum = 0;
        self.details = 0;
        self.unknown = false;
    }

    /// Where the block began.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// `TtlAmt`.
    pub fn declare(&mut self, written: Written) {
        self.declared = Some(written).filter(|written| !written.text.is_empty());
    }

    /// `CdtDbtInd` of the batch.
    pub fn way(&mut self, way: Option<Direction>) {
        self.way = way;
    }

    /// A detail with its sign, in the currency of its entry; none where that is not known.
    pub fn add(&mut self, signed: Option<i128>) {
        self.details = self.details.saturating_add(1);
        self.sum = self.sum.saturating_add(signed.unwrap_or(0));
        self.unknown |= signed.is_none();
    }

    /// A block ended, of an entry that went the way `entry`; `is_known` says whether all details
    /// were added. What cannot be read is told, and proves nothing.
    pub fn end(
        &mut self,
        account: Option<Currency>,
        entry: Option<Direction>,
        is_known: bool,
    ) -> Option<Problem> {
        let way = self.way.take().or(entry).unwrap_or(Direction::Credit);
        let written = self.declared.take()?;
        let (minor, currency) = match read(&written, "NtryDtls/Btch/TtlAmt", account) {
            Ok(found) => found,
            Err(problem) => {
                self.mixed = true;
                return Some(Problem { severity: Severity::Warning, ..problem });
            }
        };
        self.mixed |= self.currency.is_some_and(|known| known != currency);
        self.currency = Some(currency);
        self.total = self.total.saturating_add(way.signed(minor));
        let is_sure = is_known && !self.unknown;
        let found = (is_sure && self.details > 0).then(|| self.sum.saturating_abs());
        if found != Some(i128::from(minor)) && self.odd.is_none() {
            self.odd = Some(Odd { line: written.line, minor, found, is_sure });
        }
        None
    }

    /// The entry ended: each block must be what it lists, or all of them what was booked. Charges
    /// may stand between the two, and where the details tell no amount nothing is sure.
    pub fn check(&self, entry: &Entry, charges: bool) -> Option<Problem> {
        let odd = self.odd.as_ref()?;
        let is_own = !self.mixed && self.currency == Some(entry.currency);
        let booked = i128::from(entry.minor);
        if !is_own || self.total.saturating_abs() == booked {
            return None;
        }
        let money = |minor| shown(minor, Some(entry.currency));
        let listed = match odd.found {
            Some(found) => format!(", and its TxDtls come to {}", money(found)),
            None => String::new(),
        };
        let expected = format!("what the entry or the sum of its TxDtls is, {}", money(booked));
        let found = format!("{}{listed}", money(odd.minor.into()));
        let problem = Problem::error(odd.line, "NtryDtls/Btch/TtlAmt", expected, found);
        let severity = if odd.is_sure && !charges { Severity::Error } else { Severity::Warning };
        Some(Problem { severity, ..problem })
    }
}
