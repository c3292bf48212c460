//! The sums of a run, taken while its journal streams by, and the two files that show them.
//!
//! `summary.csv` puts every row of both sides into exactly one bucket. `bridge.csv` leads from
//! what was claimed (control totals, counted by the claims) to what the PSPs say moved (counted
//! here, from the journal), item by item; what is left is the residual. No currency is ever
//! added to another: a row that moved in another currency leaves one bridge and joins the other.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::count::counted;
use crate::model::reason::{Outcome, Reason};
use crate::report::captured::Captured;
use crate::report::cells::Cell;
use crate::report::columns::{EXCEPTIONS, INPUTS, MATCHED, RECONCILIATION};
use crate::report::facts::Facts;
use crate::report::lines::{AGREES, Part, matched_reason, signed};
use crate::report::rows::{difference, objects, psp_money};
use crate::report::tie::{Sum, TieOut, currency_words};
use crate::store::files::{LineBucket, StoredLine};
use crate::store::records::{Applied, JournalRow};

/// What a report shouts where the two sides differ.
pub const UNTIED: &str = "UNTIED";

/// One group of `summary.csv`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct SummaryKey {
    source: String,
    counterparty: String,
    currency: String,
    side: &'static str,
    bucket: &'static str,
    reason: &'static str,
}

/// The reconciling items of `bridge.csv`, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Wait,
    Watched,
    Review,
    HandedBack,
    NotHandedBack,
    NeverCharged,
    Failed,
    Superseded,
    Released,
    AmountUnknown,
    AmountDiffers,
    LeftCurrency,
    JoinedCurrency,
}

impl Item {
    fn label(self) -> &'static str {
        match self {
            Self::Wait => "still processing",
            Self::Watched => "watched: ended before, and looked at again",
            Self::Review => "needs a person",
            Self::HandedBack => "handed back as retryable",
            Self::NotHandedBack => "retryable, and withheld by the mode",
            Self::NeverCharged => "proven absent, and by the mapping not to be charged again",
            Self::Failed => "failed",
            Self::Superseded => "superseded: the row changed meanwhile",
            Self::Released => "released undecided",
            Self::AmountUnknown => "succeeded, and the PSP states no amount",
            Self::AmountDiffers => "succeeded with another amount at the PSP",
            Self::LeftCurrency => "succeeded in another currency: left this one",
            Self::JoinedCurrency => "succeeded in this currency, claimed in another",
        }
    }
}

/// All sums of a run's journal.
#[derive(Debug, Default)]
pub struct Totals {
    summary: BTreeMap<SummaryKey, Sum>,
    items: BTreeMap<(String, Item, &'static str), Sum>,
    external: BTreeMap<String, Sum>,
    withheld: BTreeMap<String, i64>,
    journalled: BTreeMap<(String, String), Sum>,
    outcomes: BTreeMap<&'static str, u64>,
    files: BTreeMap<String, OfFiles>,
}

/// The lines of all files in one currency: counted as they came, and what became of them.
#[derive(Debug, Default, Clone)]
struct OfFiles {
    files: u64,
    counted: Sum,
    items: BTreeMap<(FileItem, &'static str), Sum>,
    matched: Sum,
}

impl OfFiles {
    fn residual(&self) -> Sum {
        let items = self.items.values().fold(self.counted, |sum, more| sum.plus(*more));
        items.minus(self.matched)
    }
}

/// What leads from all lines of the files to those that became a row's by this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FileItem {
    Noted,
    NoRow,
    Elsewhere,
}

impl FileItem {
    fn label(self) -> &'static str {
        match self {
            Self::Noted => "no row was found",
            Self::NoRow => "no row's by their kind: fees, payouts, attempts",
            Self::Elsewhere => "of other runs, or not to be looked at yet",
        }
    }
}

impl Totals {
    /// Takes one record.
    pub fn add(&mut self, record: &JournalRow, captured: &Captured) {
        let local = Sum::of_row(record.amount_minor);
        let line = (record.table.clone(), record.currency.clone());
        grow(&mut self.journalled, line, local);
        let word = match record.applied {
            Applied::Superseded => "superseded",
            Applied::Yes | Applied::Withheld => record.outcome.as_str(),
        };
        let count = self.outcomes.entry(word).or_default();
        *count = count.saturating_add(1);
        self.add_to_summary(record, local, captured);
        self.add_to_bridge(record, local);
    }

    /// Takes the sums of another pass.
    pub fn take_in(&mut self, other: Self) {
        let Self { summary, items, external, withheld, journalled, outcomes, files } = other;
        grow_all(&mut self.summary, summary);
        grow_all(&mut self.items, items);
        grow_all(&mut self.external, external);
        grow_all(&mut self.journalled, journalled);
        for (currency, more) in withheld {
            let count = self.withheld.entry(currency).or_default();
            *count = count.saturating_add(more);
        }
        for (word, more) in outcomes {
            let count = self.outcomes.entry(word).or_default();
            *count = count.saturating_add(more);
        }
        for (currency, more) in files {
            let own = self.files.entry(currency).or_default();
            own.files = own.files.saturating_add(more.files);
            own.counted = own.counted.plus(more.counted);
            own.matched = own.matched.plus(more.matched);
            grow_all(&mut own.items, more.items);
        }
    }

    /// Takes a line that became a row's.
    pub fn add_matched(&mut self, line: &StoredLine) {
        let sum = Sum { rows: 1, amount_minor: signed(line) };
        let reason = matched_reason(line);
        let agrees = [Reason::Settled, Reason::ToleranceDelta, Reason::Captured];
        let is_agreed = reason == AGREES || agrees.iter().any(|own| own.as_str() == reason);
        let bucket = if is_agreed { "matched" } else { "exception" };
        let table = line.row.as_ref().map_or("", |(table, _)| table.as_str());
        self.add_of_file(table, &line.account, line.currency.code(), (bucket, reason), sum);
        let files = self.files.entry(line.currency.code().to_owned()).or_default();
        files.matched = files.matched.plus(sum);
    }

    /// Takes a line that no row was found for.
    pub fn add_noted(&mut self, line: &StoredLine, reason: Reason) {
        let sum = Sum { rows: 1, amount_minor: signed(line) };
        let code = line.currency.code();
        self.add_of_file("", &line.account, code, ("exception", reason.as_str()), sum);
        let files = self.files.entry(code.to_owned()).or_default();
        grow(&mut files.items, (FileItem::Noted, reason.as_str()), sum.negated());
    }

    /// Takes a currency of a file: what was counted, and the lines that nothing else tells of.
    pub fn add_file(&mut self, account: &str, part: &Part) {
        let code = &part.currency;
        for (bucket, item) in
            [(LineBucket::NoRow, FileItem::NoRow), (LineBucket::Elsewhere, FileItem::Elsewhere)]
        {
            let sum = part.found.get(&bucket).copied().unwrap_or_default();
            if !sum.is_zero() {
                let reason = bucket.as_str();
                self.add_of_file("", account, code, ("excluded", reason), sum);
                let files = self.files.entry(code.clone()).or_default();
                grow(&mut files.items, (item, reason), sum.negated());
            }
        }
        let files = self.files.entry(code.clone()).or_default();
        files.files = files.files.saturating_add(1);
        files.counted = files.counted.plus(part.counted.lines().unwrap_or_else(|| part.all()));
    }

    fn add_of_file(
        &mut self,
        table: &str,
        account: &str,
        currency: &str,
        (bucket, reason): (&'static str, &'static str),
        sum: Sum,
    ) {
        let key = SummaryKey {
            source: table.to_owned(),
            counterparty: account.to_owned(),
            currency: currency.to_owned(),
            side: "file",
            bucket,
            reason,
        };
        grow(&mut self.summary, key, sum);
    }

    fn add_to_summary(&mut self, record: &JournalRow, local: Sum, captured: &Captured) {
        let (bucket, reason) = place(record);
        let mut key = SummaryKey {
            source: record.table.clone(),
            counterparty: record.account.clone(),
            currency: record.currency.clone(),
            side: "local",
            bucket,
            reason,
        };
        grow(&mut self.summary, key.clone(), local);
        if let Some((currency, minor)) = psp_money(record) {
            key.side = "psp";
            currency.clone_into(&mut key.currency);
            grow(&mut self.summary, key, Sum { rows: objects(record), amount_minor: minor });
            return;
        }
        for (currency, sum) in captured {
            let key = SummaryKey { side: "psp", currency: currency.clone(), ..key.clone() };
            grow(&mut self.summary, key, *sum);
        }
    }

    fn add_to_bridge(&mut self, record: &JournalRow, local: Sum) {
        let here = record.currency.clone();
        let reason = record.reason.as_str();
        let item = match (record.applied, record.outcome) {
            (Applied::Superseded, _) => Item::Superseded,
            (_, Outcome::Succeeded) => return self.add_success(record, local),
            (_, Outcome::Wait) if record.reason == Reason::Watched => Item::Watched,
            (_, Outcome::Wait) => Item::Wait,
            (_, Outcome::Review) => Item::Review,
            (Applied::Withheld, Outcome::Retryable) => Item::NotHandedBack,
            (Applied::Yes, Outcome::Retryable) if record.handback_number.is_none() => {
                Item::NeverCharged
            }
            (Applied::Yes, Outcome::Retryable) => Item::HandedBack,
            (_, Outcome::Failed) => Item::Failed,
        };
        grow(&mut self.items, (here, item, reason), local.negated());
    }

    fn add_success(&mut self, record: &JournalRow, local: Sum) {
        let here = record.currency.clone();
        let reason = record.reason.as_str();
        let Some((there, minor)) = psp_money(record) else {
            return grow(&mut self.items, (here, Item::AmountUnknown, reason), local.negated());
        };
        let there = there.to_owned();
        let moved = Sum { rows: 1, amount_minor: minor };
        if record.applied == Applied::Withheld {
            let withheld = self.withheld.entry(there.clone()).or_default();
            *withheld = withheld.saturating_add(1);
        }
        match difference(record) {
            Some(0) => {}
            Some(minor) => {
                let more = Sum { rows: 0, amount_minor: minor };
                let key = (here, Item::AmountDiffers, Reason::ToleranceDelta.as_str());
                grow(&mut self.items, key, more);
            }
            None => {
                grow(&mut self.items, (here, Item::LeftCurrency, reason), local.negated());
                let key = (there.clone(), Item::JoinedCurrency, reason);
                grow(&mut self.items, key, moved);
            }
        }
        grow(&mut self.external, there, moved);
    }

    /// Rows by outcome, and superseded ones.
    pub fn outcomes(&self) -> &BTreeMap<&'static str, u64> {
        &self.outcomes
    }

    /// Holds what streamed by against what the database summed, and tells where the two
    /// differ, by currency: two sums of one journal that are not equal are a finding of their own.
    pub fn compare(&self, tie: &TieOut) -> Vec<(String, String)> {
        let mut sums: BTreeMap<(&str, &str), (Sum, Sum)> = BTreeMap::new();
        for ((table, currency), sum) in &self.journalled {
            sums.entry((table, currency)).or_default().0 = *sum;
        }
        for line in &tie.lines {
            sums.entry((&line.table, &line.currency)).or_default().1 = line.journalled;
        }
        let differ = sums.into_iter().filter(|(_, (streamed, summed))| streamed != summed);
        differ
            .map(|((table, currency), (streamed, summed))| {
                let code = currency_words(currency);
                let finding = format!(
                    "{table} {code}: the journal holds {} of {} minor units, and its sum in the \
                     database says {} of {}",
                    counted(streamed.rows, "row", "rows"),
                    streamed.amount_minor,
                    summed.rows,
                    summed.amount_minor
                );
                (code, finding)
            })
            .collect()
    }

    /// The lines of `summary.csv`.
    pub fn summary(&self, tie: &TieOut, facts: &Facts) -> Vec<Vec<Cell>> {
        let mut groups = self.summary.clone();
        for line in tie.lines.iter().filter(|line| !line.released.is_zero()) {
            let key = SummaryKey {
                source: line.table.clone(),
                counterparty: String::new(),
                currency: line.currency.clone(),
                side: "local",
                bucket: "excluded",
                reason: "released",
            };
            grow(&mut groups, key, line.released);
        }
        for line in tie.off() {
            let key = SummaryKey {
                source: line.table.clone(),
                counterparty: String::new(),
                currency: line.currency.clone(),
                side: "control",
                bucket: UNTIED,
                reason: UNTIED,
            };
            grow(&mut groups, key, line.residual());
        }
        groups.iter().map(|(key, sum)| summary_line(key, *sum, facts)).collect()
    }

    /// What is left of each currency: claimed, less released and all that the journal holds.
    pub fn residuals(&self, tie: &TieOut) -> BTreeMap<String, Sum> {
        let currencies = self.currencies(tie);
        let of = |code: String| {
            let residual = self.bridge_of(&code, tie).residual;
            (code, residual)
        };
        currencies.into_iter().map(of).collect()
    }

    /// The lines of `bridge.csv`.
    pub fn bridge(&self, tie: &TieOut, facts: &Facts) -> Vec<Vec<Cell>> {
        let mut lines = Vec::new();
        for code in self.currencies(tie) {
            let bridge = self.bridge_of(&code, tie);
            let mut number = 0_i64;
            let mut push = |kind: &str, label: &str, reason: &str, sum: Sum, file: &str| {
                number = number.saturating_add(1);
                let [amount, minor] = Cell::sum(&code, sum.amount_minor);
                lines.push(vec![
                    Cell::text(&facts.run.id),
                    Cell::word(&code),
                    Cell::int(number),
                    Cell::text(label),
                    Cell::word(kind),
                    Cell::word(reason),
                    Cell::int(sum.rows),
                    amount,
                    minor,
                    Cell::word(file),
                ]);
            };
            for (table, sum) in &bridge.claimed {
                push("local_total", &format!("claimed from {table}"), "", *sum, "");
            }
            let file = RECONCILIATION.file;
            for (item, reason, sum) in &bridge.items {
                let ref_file = if *item == Item::Released { "" } else { file };
                push("item", item.label(), reason, *sum, ref_file);
            }
            let withheld = self.withheld.get(&code).copied().unwrap_or(0);
            push("external_total", &external_label(withheld), "", bridge.external, file);
            if let Some(files) = self.files.get(&code) {
                let label = format!("lines of settlement files, as they came ({})", files.files);
                push("file_total", &label, "", files.counted, INPUTS.file);
                for ((item, reason), sum) in &files.items {
                    let ref_file =
                        if *item == FileItem::Noted { EXCEPTIONS.file } else { INPUTS.file };
                    push("file_item", item.label(), reason, *sum, ref_file);
                }
                push(
                    "file_matched",
                    "lines that became rows' own",
                    "",
                    files.matched,
                    MATCHED.file,
                );
                push("file_residual", file_label(files), "", files.residual(), "");
            }
            push("residual", &residual_label(&code, tie), "", bridge.residual, "");
        }
        lines
    }

    fn currencies(&self, tie: &TieOut) -> BTreeSet<String> {
        let claimed = tie.lines.iter().map(|line| line.currency.clone());
        let items = self.items.keys().map(|(code, _, _)| code.clone());
        let files = self.files.keys().cloned();
        claimed.chain(items).chain(self.external.keys().cloned()).chain(files).collect()
    }

    fn bridge_of(&self, code: &str, tie: &TieOut) -> Bridge {
        let of_currency = || tie.lines.iter().filter(|line| line.currency == code);
        let claimed: Vec<(String, Sum)> = of_currency()
            .filter(|line| !line.claimed.is_zero())
            .map(|line| (line.table.clone(), line.claimed))
            .collect();
        let mut items: Vec<(Item, &'static str, Sum)> = self
            .items
            .iter()
            .filter(|((currency, _, _), _)| currency == code)
            .map(|((_, item, reason), sum)| (*item, *reason, *sum))
            .collect();
        let released = of_currency().fold(Sum::default(), |sum, line| sum.plus(line.released));
        if !released.is_zero() {
            items.push((Item::Released, "released", released.negated()));
            items.sort_by_key(|(item, reason, _)| (*item, *reason));
        }
        let external = self.external.get(code).copied().unwrap_or_default();
        let local = claimed.iter().fold(Sum::default(), |sum, (_, more)| sum.plus(*more));
        let explained = items.iter().fold(local, |sum, (_, _, more)| sum.plus(*more));
        Bridge { claimed, items, external, residual: explained.minus(external) }
    }
}

struct Bridge {
    claimed: Vec<(String, Sum)>,
    items: Vec<(Item, &'static str, Sum)>,
    external: Sum,
    residual: Sum,
}

fn external_label(withheld: i64) -> String {
    let moved = "moved for rows that succeeded, say the PSPs";
    match withheld {
        0 => moved.to_owned(),
        rows => format!("{moved} (withheld by the mode: {rows})"),
    }
}

fn file_label(files: &OfFiles) -> &'static str {
    if files.residual().is_zero() {
        "residual of the files"
    } else {
        "UNTIED residual of the files"
    }
}

/// Loud even where the residuals of two tables cancel out.
fn residual_label(code: &str, tie: &TieOut) -> String {
    let off: Vec<String> = tie
        .off()
        .filter(|line| line.currency == code)
        .map(|line| {
            let residual = line.residual();
            let rows = counted(residual.rows, "row", "rows");
            format!("{} {rows} {}", line.table, residual.amount_minor)
        })
        .collect();
    if off.is_empty() {
        "residual".to_owned()
    } else {
        format!("{UNTIED} residual (by table, in minor units: {})", off.join("; "))
    }
}

/// The bucket and reason of a record: both sides agree that money moved, a person decides, it is
/// too early to say, it ended before and is watched, or there is nothing to match.
fn place(record: &JournalRow) -> (&'static str, &'static str) {
    if record.applied == Applied::Superseded {
        return ("excluded", "superseded");
    }
    let bucket = match record.outcome {
        Outcome::Succeeded => "matched",
        Outcome::Review => "exception",
        Outcome::Wait if record.reason == Reason::Watched => "watched",
        Outcome::Wait => "pending",
        Outcome::Retryable | Outcome::Failed => "excluded",
    };
    (bucket, record.reason.as_str())
}

fn summary_line(key: &SummaryKey, sum: Sum, facts: &Facts) -> Vec<Cell> {
    let [amount, minor] = Cell::sum(&key.currency, sum.amount_minor);
    vec![
        Cell::text(&facts.run.id),
        Cell::text(&key.source),
        Cell::text(&key.counterparty),
        Cell::word(&key.currency),
        Cell::word(key.side),
        Cell::word(key.bucket),
        Cell::word(key.reason),
        Cell::int(sum.rows),
        amount,
        minor,
    ]
}

fn grow_all<K: Ord>(sums: &mut BTreeMap<K, Sum>, more: BTreeMap<K, Sum>) {
    more.into_iter().for_each(|(key, more)| grow(sums, key, more));
}

fn grow<K: Ord>(sums: &mut BTreeMap<K, Sum>, key: K, more: Sum) {
    let sum = sums.entry(key).or_default();
    *sum = sum.plus(more);
}
