//! What the rows of `reconciliation.csv` add up to, worked out once more from their cells.

use std::collections::BTreeMap;

use crate::model::count::counted;
use crate::report::verify::database::JOURNALLED;
use crate::report::verify::table::{Record, SetDigest};

/// Rows and minor units.
pub type Pair = (i128, i128);

/// `3 rows of 5400 minor units`.
pub fn pair_text((rows, minor): Pair) -> String {
    format!("{} of {minor} minor units", counted(rows, "row", "rows"))
}

/// The same of what a file may lack.
pub fn told_text(pair: Option<Pair>) -> String {
    pair.map_or_else(|| "nothing".to_owned(), pair_text)
}

/// Adds to a group.
pub fn add<K: Ord>(groups: &mut BTreeMap<K, Pair>, key: K, rows: i128, minor: i128) {
    let group = groups.entry(key).or_default();
    group.0 = group.0.saturating_add(rows);
    group.1 = group.1.saturating_add(minor);
}

/// Takes out the groups that came to nothing, so that two sides compare.
pub fn without_zeros<K: Ord>(mut groups: BTreeMap<K, Pair>) -> BTreeMap<K, Pair> {
    groups.retain(|_, pair| *pair != (0, 0));
    groups
}

/// (side, source, counterparty, currency, bucket, reason): a line of `summary.csv`.
pub type SummaryKey = [String; 6];

/// Everything that other files must agree with.
#[derive(Debug, Default)]
pub struct Rows {
    /// By line of the summary.
    pub summary: BTreeMap<SummaryKey, Pair>,
    /// What the bridge must take out or put in, by currency and reason.
    pub items: BTreeMap<(String, String), Pair>,
    /// What the PSPs say moved, by currency.
    pub external: BTreeMap<String, Pair>,
    /// Claimed and decided, by currency.
    pub local: BTreeMap<String, Pair>,
    /// By table, currency and outcome (or `superseded`): as the database sums them.
    pub outcomes: BTreeMap<(String, String, String), Pair>,
    /// What `exceptions.csv` must hold, by reason and currency.
    pub exceptions: BTreeMap<(String, String), Pair>,
    /// What `transitions.csv` must hold.
    pub transitions: SetDigest,
    /// The cells that stand in the journal as they stand here.
    pub journalled: SetDigest,
    last: Option<(String, String, String, i128)>,
}

impl Rows {
    /// Takes a record; returns what is wrong with it.
    pub fn take(&mut self, record: &Record<'_>, run_id: &str) -> Vec<String> {
        let mut problems = Vec::new();
        if record.text("run_id") != run_id {
            problems.push(format!("it is of run {:?}", record.text("run_id")));
        }
        problems.extend(self.out_of_order(record).err());
        problems.extend(age_problem(record));
        match Row::read(record) {
            Ok(row) => self.count(record, &row),
            Err(problem) => problems.push(problem),
        }
        self.journalled.add(JOURNALLED.into_iter().map(|column| record.text(column)));
        let columns = ["writer", "audit_seq", "table", "key", "status_before", "status_after"];
        let more = ["reason", "evidence_sha256", "applied"];
        self.transitions.add(columns.into_iter().chain(more).map(|name| record.text(name)));
        problems
    }

    fn out_of_order(&mut self, record: &Record<'_>) -> Result<(), String> {
        let seq = record.int("audit_seq")?.unwrap_or(0);
        let text = |column| record.text(column).to_owned();
        let place = Some((text("table"), text("key"), text("writer"), seq));
        let is_after = self.last < place;
        self.last = place;
        if is_after { Ok(()) } else { Err("it is out of order, or there twice".to_owned()) }
    }

    fn count(&mut self, record: &Record<'_>, row: &Row) {
        let text = |column| record.text(column).to_owned();
        let local = row.local.unwrap_or(0);
        add(&mut self.local, row.currency.clone(), 1, local);
        let outcome = if row.superseded { "superseded".to_owned() } else { text("outcome") };
        let by_outcome = (text("table"), row.currency.clone(), outcome);
        add(&mut self.outcomes, by_outcome, 1, local);
        let (bucket, reason) = row.bucket(record);
        let key = |side: &str, currency: &str| {
            let [side, currency] = [side, currency].map(str::to_owned);
            [side, text("table"), text("account"), currency, bucket.clone(), reason.clone()]
        };
        add(&mut self.summary, key("local", &row.currency), 1, local);
        if let Some(psp) = row.psp {
            let named = record.text("psp_reference").split(' ').count();
            let objects = i128::try_from(named).unwrap_or(i128::MAX);
            add(&mut self.summary, key("psp", &row.psp_currency), objects, psp);
        }
        for (code, (objects, minor)) in &row.captured {
            add(&mut self.summary, key("psp", code), *objects, *minor);
        }
        if bucket == "exception" {
            let key = (text("reason"), row.currency.clone());
            add(&mut self.exceptions, key, 1, local);
        }
        self.bridge(row, bucket == "matched", text("reason"));
    }

    /// What this row does to the bridges of its currencies.
    fn bridge(&mut self, row: &Row, matched: bool, reason: String) {
        let here = row.currency.clone();
        let out = row.local.unwrap_or(0).saturating_neg();
        let Some(psp) = row.psp.filter(|_| matched) else {
            return add(&mut self.items, (here, reason), -1, out);
        };
        let there = row.psp_currency.clone();
        if here == there {
            let tolerated = (here, "tolerance_delta".to_owned());
            add(&mut self.items, tolerated, 0, psp.saturating_add(out));
        } else {
            add(&mut self.items, (here, reason.clone()), -1, out);
            add(&mut self.items, (there.clone(), reason), 1, psp);
        }
        add(&mut self.external, there, 1, psp);
    }
}

struct Row {
    currency: String,
    local: Option<i128>,
    psp_currency: String,
    psp: Option<i128>,
    /// Several captures that no one amount shows, by currency.
    captured: BTreeMap<String, Pair>,
    superseded: bool,
}

/// `1 EUR 1999; 1 USD 2500`.
fn captured(text: &str) -> Result<BTreeMap<String, Pair>, String> {
    let mut sums = BTreeMap::new();
    for part in text.split("; ").filter(|part| !part.is_empty()) {
        let mut words = part.split(' ');
        let (rows, code, minor) = (words.next(), words.next(), words.next());
        let number = |word: Option<&str>| word.and_then(|word| word.parse::<i128>().ok());
        match (number(rows), code, number(minor)) {
            (Some(rows), Some(code), Some(minor)) => {
                add(&mut sums, code.to_owned(), rows, minor);
            }
            _other => return Err(format!("psp_captured {text:?} cannot be read")),
        }
    }
    Ok(sums)
}

impl Row {
    fn read(record: &Record<'_>) -> Result<Self, String> {
        let currency = record.text("currency");
        let psp_currency = record.text("psp_currency");
        let local = record.money("amount", currency)?;
        let psp = record.money("psp_amount", psp_currency)?;
        let difference = record.money("difference", currency)?;
        let wanted = match (local, psp) {
            (Some(local), Some(psp)) if currency == psp_currency => psp.checked_sub(local),
            (Some(_) | None, Some(_) | None) => None,
        };
        if difference != wanted {
            return Err(format!("its difference is {difference:?} and should be {wanted:?}"));
        }
        Ok(Self {
            currency: currency.to_owned(),
            local,
            psp_currency: psp_currency.to_owned(),
            psp,
            captured: captured(record.text("psp_captured"))?,
            superseded: record.text("applied") == "superseded",
        })
    }

    fn bucket(&self, record: &Record<'_>) -> (String, String) {
        let bucket = match record.text("outcome") {
            _any if self.superseded => return ("excluded".to_owned(), "superseded".to_owned()),
            "succeeded" => "matched",
            "review" => "exception",
            "wait" if record.text("reason") == "watched" => "watched",
            "wait" => "pending",
            "retryable" | "failed" => "excluded",
            _unknown => "unknown",
        };
        (bucket.to_owned(), record.text("reason").to_owned())
    }
}

/// The bucket must be that of the days.
pub fn age_problem(record: &Record<'_>) -> Option<String> {
    let bucket = record.text("age_bucket");
    let days = match record.int("age_days") {
        Ok(days) => days,
        Err(problem) => return Some(problem),
    };
    let fits = match days {
        None => bucket.is_empty(),
        Some(days) => {
            let (from, to) = match bucket.split_once('-') {
                Some((from, to)) => (from.parse().ok(), to.parse().ok()),
                None => (bucket.strip_suffix('+').and_then(|d| d.parse().ok()), Some(i128::MAX)),
            };
            // "90+" begins after 90, which "61-90" still holds.
            let from: Option<i128> =
                if bucket.ends_with('+') { from.map(|d: i128| d.saturating_add(1)) } else { from };
            from.zip(to).is_some_and(|(from, to): (i128, i128)| (from..=to).contains(&days))
        }
    };
    (!fits).then(|| format!("{days:?} days are not in the bucket {bucket:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_told_in_words() {
        assert_eq!(pair_text((2, -540)), "2 rows of -540 minor units");
        assert_eq!(told_text(Some((1, 0))), "1 row of 0 minor units");
        assert_eq!(told_text(None), "nothing");
    }
}
