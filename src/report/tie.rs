//! The tie-out: what was claimed against what became of it, by count and by amount.
//!
//! Pure arithmetic over control totals. It never adds one currency to another, and it never
//! forgives: a bucket that it does not know, or one row too many, makes a currency untied.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::reason::Outcome;
use crate::store::records::TotalLine;

/// How rows that could not be read are called where a currency's code would stand.
const NO_CURRENCY: &str = "no currency";

/// A count of rows and the sum of their amounts, in one currency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Sum {
    /// How many rows.
    pub rows: i64,
    /// Minor units; + is money to the merchant.
    pub amount_minor: i128,
}

impl Sum {
    /// One row.
    pub fn of_row(amount_minor: i64) -> Self {
        Self { rows: 1, amount_minor: i128::from(amount_minor) }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            rows: self.rows.saturating_add(other.rows),
            amount_minor: self.amount_minor.saturating_add(other.amount_minor),
        }
    }

    /// This without the other.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            rows: self.rows.saturating_sub(other.rows),
            amount_minor: self.amount_minor.saturating_sub(other.amount_minor),
        }
    }

    /// The same with the other sign.
    #[must_use]
    pub fn negated(self) -> Self {
        Self::default().minus(self)
    }

    /// Neither a row nor money.
    pub fn is_zero(self) -> bool {
        self == Self::default()
    }
}

/// One table's rows of one currency, from both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TieLine {
    /// The mapped table.
    pub table: String,
    /// Code, or empty for rows that could not be read.
    pub currency: String,
    /// Counted in the transactions that claimed.
    pub claimed: Sum,
    /// Counted in the transactions that gave rows back undecided.
    pub released: Sum,
    /// Counted in the journal: what was decided, and what had changed meanwhile.
    pub journalled: Sum,
    /// Totals of buckets that this version does not know.
    pub unknown: Sum,
}

impl TieLine {
    /// Claimed, less all that became of it: zero when tied.
    pub fn residual(&self) -> Sum {
        self.claimed.minus(self.released).minus(self.journalled).minus(self.unknown)
    }

    /// Whether both sides agree.
    pub fn is_tied(&self) -> bool {
        self.residual().is_zero() && self.unknown.is_zero()
    }
}

/// A run's tie-out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TieOut {
    /// By table and currency.
    pub lines: Vec<TieLine>,
}

impl TieOut {
    /// The lines whose two sides differ.
    pub fn off(&self) -> impl Iterator<Item = &TieLine> {
        self.lines.iter().filter(|line| !line.is_tied())
    }

    /// The currencies whose two sides differ in some table; empty when the run ties out.
    pub fn untied(&self) -> Vec<String> {
        let mut codes: Vec<String> =
            self.off().map(|line| currency_words(&line.currency)).collect();
        codes.sort_unstable();
        codes.dedup();
        codes
    }

    /// Whether everything agrees.
    pub fn is_tied(&self) -> bool {
        self.off().next().is_none()
    }
}

/// The lines of one currency of a file, counted when the file came and found kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileTie {
    /// The file's name.
    pub file: String,
    /// The currency; empty for lines of the whole file.
    pub currency: String,
    /// By the parser.
    pub counted: Sum,
    /// By the database, all that became of them.
    pub found: Sum,
}

impl FileTie {
    /// Whether every line that came is there, once.
    pub fn is_tied(&self) -> bool {
        self.counted == self.found
    }

    /// One sentence with the figures.
    pub fn words(&self) -> String {
        let Self { file, counted, found, .. } = self;
        format!(
            "{file} {}: {} lines of {} minor units came, and {} of {} are kept",
            currency_words(&self.currency),
            counted.rows,
            counted.amount_minor,
            found.rows,
            found.amount_minor
        )
    }
}

/// A currency as people read it: rows that could not be read have none.
pub fn currency_words(code: &str) -> String {
    if code.is_empty() { NO_CURRENCY.to_owned() } else { code.to_owned() }
}

/// Per table and currency: claimed = succeeded + retryable + failed + wait + review + superseded
/// + released, by count and by amount.
pub fn tie_out(totals: &[TotalLine]) -> TieOut {
    let mut lines: BTreeMap<(&str, &str), TieLine> = BTreeMap::new();
    for total in totals {
        let key = (total.table.as_str(), total.currency.as_str());
        let line = lines.entry(key).or_insert_with(|| TieLine {
            table: total.table.clone(),
            currency: total.currency.clone(),
            claimed: Sum::default(),
            released: Sum::default(),
            journalled: Sum::default(),
            unknown: Sum::default(),
        });
        let bucket = match total.bucket.as_str() {
            "claimed" => &mut line.claimed,
            "released" => &mut line.released,
            "superseded" => &mut line.journalled,
            word if Outcome::parse(word).is_some() => &mut line.journalled,
            _unknown => &mut line.unknown,
        };
        *bucket = bucket.plus(Sum { rows: total.rows, amount_minor: total.amount_minor });
    }
    TieOut { lines: lines.into_values().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(table: &str, currency: &str, bucket: &str, rows: i64, minor: i128) -> TotalLine {
        TotalLine {
            table: table.into(),
            currency: currency.into(),
            bucket: bucket.into(),
            rows,
            amount_minor: minor,
        }
    }

    fn untied(totals: &[TotalLine]) -> Vec<String> {
        tie_out(totals).untied()
    }

    #[test]
    fn every_bucket_counts_once() {
        let mut totals = vec![total("t", "EUR", "claimed", 7, 700)];
        for bucket in
            ["succeeded", "retryable", "failed", "wait", "review", "superseded", "released"]
        {
            totals.push(total("t", "EUR", bucket, 1, 100));
        }
        assert_eq!(untied(&totals), Vec::<String>::new());
        for index in 1..totals.len() {
            let mut without = totals.clone();
            let gone = without.remove(index);
            assert_eq!(untied(&without), ["EUR"], "without {}", gone.bucket);
        }
    }

    #[test]
    fn a_run_is_untied_by_what_does_not_agree() {
        let tied = [total("t", "EUR", "claimed", 1, 5), total("t", "EUR", "wait", 1, 5)];
        let cases: [(&str, Vec<TotalLine>, &[&str]); 7] = [
            ("nothing at all", vec![], &[]),
            ("amount off by one", vec![total("t", "EUR", "succeeded", 0, 1)], &["EUR"]),
            ("count off by one", vec![total("t", "EUR", "succeeded", 1, 0)], &["EUR"]),
            (
                "the other currency does not help",
                vec![total("t", "USD", "claimed", 1, 5)],
                &["USD"],
            ),
            (
                "two tables that cancel out are both off",
                vec![total("a", "JPY", "claimed", 1, 5), total("b", "JPY", "wait", 1, 5)],
                &["JPY"],
            ),
            ("a bucket nobody knows", vec![total("t", "EUR", "mislaid", 1, 0)], &["EUR"]),
            (
                "rows that could not be read",
                vec![total("t", "", "claimed", 1, 0)],
                &["no currency"],
            ),
        ];
        for (name, more, want) in cases {
            let totals: Vec<TotalLine> = tied.iter().cloned().chain(more).collect();
            assert_eq!(untied(&totals), want, "{name}");
        }
    }

    #[test]
    fn an_unknown_bucket_is_loud_even_where_it_cancels() {
        let totals = [total("t", "EUR", "claimed", 1, 5), total("t", "EUR", "mislaid", 1, 5)];
        let tie = tie_out(&totals);
        assert!(tie.lines[0].residual().is_zero());
        assert_eq!(tie.untied(), ["EUR"]);
    }
}
