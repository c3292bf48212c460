//! What the rows of a report prove, where each has an equation of its own: gross less fee is net.

use crate::model::settlement::Tie;

/// The rows that came, and those whose equation held.
#[derive(Debug, Default)]
pub struct Proven {
    rows: u64,
    held: u64,
    failed: bool,
}

impl Proven {
    /// A row begins. One that cannot be read, or has no equation, stays unproven.
    pub fn begin(&mut self) {
        self.rows = self.rows.saturating_add(1);
    }

    /// Whether the equation of the row that began last holds.
    pub fn row(&mut self, holds: bool) {
        self.failed |= !holds;
        self.held = self.held.saturating_add(u64::from(holds));
    }

    /// Whether every row holds; where one is unproven and none fails, nothing is said.
    pub fn tie(&self) -> Tie {
        match self.rows {
            _any if self.failed => Tie::Declared(false),
            1.. if self.held == self.rows => Tie::Declared(true),
            _unproven => Tie::Balances,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_tie_only_all_together() {
        let tie = |rows: &[Option<bool>]| {
            let mut proven = Proven::default();
            for row in rows {
                proven.begin();
                row.iter().for_each(|holds| proven.row(*holds));
            }
            proven.tie()
        };
        assert_eq!(tie(&[]), Tie::Balances);
        assert_eq!(tie(&[Some(true), Some(true)]), Tie::Declared(true));
        assert_eq!(tie(&[Some(true), None]), Tie::Balances);
        assert_eq!(tie(&[Some(true), None, Some(false)]), Tie::Declared(false));
    }
}
