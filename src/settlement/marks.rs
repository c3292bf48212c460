//! A minus beside a mark of direction (`C`, `D`), in a file that somebody described.
//!
//! Some write one before every debit besides: there it says what the mark says, and is read as
//! none. In a file where one debit has a minus and another has none, or a credit has one, it may
//! take back what the mark says, or be a mistake: only balances show which. Rows are read once, in
//! their order, so that what comes first is read by the rule, and what contradicts it is refused.

/// What stands beside an amount and its mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// Nothing that could prove it.
    Nothing,
    /// A balance, which does not show yet what moved.
    Balance,
    /// A balance by which this moved.
    Moved(i128),
}

/// What the amounts show beside their marks.
#[derive(Debug, Default)]
pub struct Marks {
    /// Not only debits have a minus, or not all of them have one, or it turned a mark round.
    several: bool,
    /// A minus stands where no balance is.
    bare: bool,
}

impl Marks {
    /// The signed amount; none where nothing tells which way a minus means.
    pub fn read(&mut self, minor: i64, is_debit: bool, beside: Beside) -> Option<i64> {
        let size = minor.saturating_abs();
        let marked = if is_debit { size.saturating_neg() } else { size };
        let turned = marked.saturating_neg();
        let own = match beside {
            _any if minor >= 0 => marked,
            Beside::Moved(moved) if moved == i128::from(marked) => marked,
            Beside::Moved(moved) if moved == i128::from(turned) => turned,
            _open if is_debit && !self.several => marked,
            _open => turned,
        };
        self.bare |= minor < 0 && beside == Beside::Nothing;
        self.several |= match is_debit {
            true => minor > 0 || minor < 0 && own == turned,
            false => minor < 0,
        };
        (!(self.bare && self.several)).then_some(own)
    }

    /// Whether a minus has more than one meaning: then each must be proven.
    pub fn are_several(&self) -> bool {
        self.several
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Marked<'a> = &'a [(i64, bool)];

    const C: bool = false;
    const D: bool = true;

    #[test]
    fn a_minus_of_all_debits_and_nothing_else_is_none() {
        let rows: [(Marked<'_>, Option<i64>); 9] = [
            (&[(1000, C), (350, D)], Some(-350)),
            (&[(1000, C), (-350, D)], Some(-350)),
            (&[(-350, D), (-400, D)], Some(-400)),
            (&[(-350, D), (0, D), (1000, C)], Some(1000)),
            (&[(-350, D), (400, D)], None),
            (&[(350, D), (-400, D)], None),
            (&[(-350, D), (-400, C)], None),
            (&[(-400, C)], None),
            (&[(350, D), (-400, C)], None),
        ];
        for (rows, last) in rows {
            let mut marks = Marks::default();
            let read = rows.iter().map(|(minor, way)| marks.read(*minor, *way, Beside::Nothing));
            assert_eq!(read.last().flatten(), last, "{rows:?}");
        }
    }

    #[test]
    fn a_balance_shows_what_a_minus_means() {
        for (minor, way, moved, own) in [
            (-350, D, 350, 350),
            (-350, D, -350, -350),
            (-350, C, -350, -350),
            (-350, C, 350, 350),
            (350, D, 350, -350),
        ] {
            let mut marks = Marks::default();
            assert_eq!(marks.read(minor, way, Beside::Moved(moved)), Some(own), "{minor} {moved}");
        }
        let mut marks = Marks::default();
        assert_eq!(marks.read(350, D, Beside::Balance), Some(-350));
        assert_eq!(marks.read(-350, D, Beside::Balance), Some(350));
        assert!(marks.are_several());
        assert_eq!(marks.read(-350, D, Beside::Nothing), None, "where no balance is");
    }
}
