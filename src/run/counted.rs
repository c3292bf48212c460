//! What a run counts of its decisions. A row counts once it is written, in a dry run once it is
//! decided: of what was given back in between nobody examined anything.

use std::collections::BTreeMap;

use crate::model::reason::{Outcome, Reason};
use crate::store::records::{JournalRow, TotalLine};

/// Counts of decisions.
#[derive(Debug, Clone, Default)]
pub struct Counted {
    /// Rows decided, by account and by what was decided.
    pub decided: BTreeMap<(String, Outcome), u64>,
    /// The same, by reason.
    pub reasons: BTreeMap<Reason, u64>,
    /// Of those: rows that money was found for, beside a sibling that was paid.
    pub paid_beside: u64,
    /// Waits by reason.
    pub waits: BTreeMap<&'static str, u64>,
    /// Of those: rows under watch, which ended before, by table and currency.
    pub watched: BTreeMap<(String, String), TotalLine>,
}

impl Counted {
    /// Each account's own, of a batch.
    pub fn by_account<'r>(records: impl Iterator<Item = &'r JournalRow>) -> BTreeMap<String, Self> {
        let mut counted: BTreeMap<String, Self> = BTreeMap::new();
        for record in records {
            counted.entry(record.account.clone()).or_default().count(record);
        }
        counted
    }

    /// How many rows.
    pub fn rows(&self) -> u64 {
        self.decided.values().sum()
    }

    /// One more row.
    pub fn count(&mut self, record: &JournalRow) {
        let bump = |n: &mut u64| add(n, 1);
        bump(self.decided.entry((record.account.clone(), record.outcome)).or_default());
        bump(self.reasons.entry(record.reason).or_default());
        if record.reason.is_paid_beside(&record.text) {
            bump(&mut self.paid_beside);
        }
        if record.outcome == Outcome::Wait {
            bump(self.waits.entry(record.reason.as_str()).or_default());
            self.count_watched(record);
        }
    }

    fn count_watched(&mut self, record: &JournalRow) {
        if record.reason != Reason::Watched {
            return;
        }
        let key = (record.table.clone(), record.currency.clone());
        let line = self.watched.entry(key).or_insert_with(|| TotalLine {
            table: record.table.clone(),
            currency: record.currency.clone(),
            bucket: "watched".to_owned(),
            rows: 0,
            amount_minor: 0,
        });
        line.rows = line.rows.saturating_add(1);
        line.amount_minor = line.amount_minor.saturating_add(i128::from(record.amount_minor));
    }

    /// Both together.
    pub fn add(&mut self, other: Self) {
        let Self { decided, reasons, paid_beside, waits, watched } = other;
        decided.into_iter().for_each(|(of, rows)| add(self.decided.entry(of).or_default(), rows));
        reasons.into_iter().for_each(|(of, rows)| add(self.reasons.entry(of).or_default(), rows));
        waits.into_iter().for_each(|(of, rows)| add(self.waits.entry(of).or_default(), rows));
        add(&mut self.paid_beside, paid_beside);
        for (of, more) in watched {
            let empty = TotalLine { rows: 0, amount_minor: 0, ..more.clone() };
            let line = self.watched.entry(of).or_insert(empty);
            line.rows = line.rows.saturating_add(more.rows);
            line.amount_minor = line.amount_minor.saturating_add(more.amount_minor);
        }
    }

    /// Without what was counted of rows in which the run had no part.
    pub fn take_off(&mut self, left: &Self) {
        let less = |n: Option<&mut u64>, rows: u64| {
            if let Some(n) = n {
                *n = n.saturating_sub(rows);
            }
        };
        left.decided.iter().for_each(|(of, rows)| less(self.decided.get_mut(of), *rows));
        left.reasons.iter().for_each(|(of, rows)| less(self.reasons.get_mut(of), *rows));
        left.waits.iter().for_each(|(of, rows)| less(self.waits.get_mut(of), *rows));
        less(Some(&mut self.paid_beside), left.paid_beside);
        for (of, left) in &left.watched {
            if let Some(line) = self.watched.get_mut(of) {
                line.rows = line.rows.saturating_sub(left.rows);
                line.amount_minor = line.amount_minor.saturating_sub(left.amount_minor);
            }
        }
        // As if they had never been counted.
        self.decided.retain(|_, rows| *rows > 0);
        self.reasons.retain(|_, rows| *rows > 0);
        self.waits.retain(|_, rows| *rows > 0);
        self.watched.retain(|_, line| line.rows > 0);
    }
}

fn add(count: &mut u64, more: u64) {
    *count = count.saturating_add(more);
}
