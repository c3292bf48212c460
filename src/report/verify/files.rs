//! Lines of settlement files, added up once more from the cells: each line of each file is in
//! exactly one bucket, and every file of the report that sums lines up says the same.

use std::collections::{BTreeMap, BTreeSet};

use crate::report::verify::checks::differences;
use crate::report::verify::sums::{Pair, SummaryKey, add, pair_text, told_text};
use crate::report::verify::table::Record;

/// (SHA-256 of the file, currency).
type Part = (String, String);

/// A file's currency and what became of its lines.
pub type Bucket = (Part, &'static str);

/// All that the report says of lines.
#[derive(Debug, Default)]
pub struct Files {
    /// By what `inputs.csv` says became of them: `matched`, `open`, `no_row`, `elsewhere`.
    pub inputs: BTreeMap<Bucket, Pair>,
    /// What came, by currency.
    came: BTreeMap<String, Pair>,
    /// Lines of `matched.csv` and of `exceptions.csv`, by file.
    told: BTreeMap<Bucket, Pair>,
    /// What the summary must say, from the other files.
    wanted: BTreeMap<SummaryKey, Pair>,
    summary: BTreeMap<SummaryKey, Pair>,
    bridge: BTreeMap<String, Span>,
    last: Option<(String, String)>,
}

/// The files' part of one currency's bridge.
#[derive(Debug, Default)]
struct Span {
    total: Pair,
    items: BTreeMap<String, Pair>,
    matched: Pair,
    residual: Option<Pair>,
}

fn plus(a: Pair, b: Pair) -> Pair {
    (a.0.saturating_add(b.0), a.1.saturating_add(b.1))
}

fn minus(a: Pair, b: Pair) -> Pair {
    (a.0.saturating_sub(b.0), a.1.saturating_sub(b.1))
}

impl Files {
    /// Takes a record of `matched.csv`.
    pub fn take_matched(&mut self, record: &Record<'_>, run_id: &str) -> Vec<String> {
        let mut problems = Vec::new();
        if record.text("run_id") != run_id {
            problems.push(format!("it is of run {:?}", record.text("run_id")));
        }
        let place = (record.text("table").to_owned(), record.text("internal_id").to_owned());
        if self.last.as_ref().is_some_and(|last| *last > place) {
            problems.push("it is out of order".to_owned());
        }
        self.last = Some(place);
        let code = record.text("currency").to_owned();
        let read = || {
            record.money("local_amount", record.text("local_currency"))?;
            record.money("psp_gross", record.text("gross_currency"))?;
            record.money("psp_fee", record.text("fee_currency"))?;
            record.money("psp_net", record.text("net_currency"))?;
            record.money("difference", record.text("local_currency"))?;
            record.money("bank_amount", &code)
        };
        match read() {
            Ok(minor) => {
                let minor = minor.unwrap_or(0);
                let reason = record.text("reason");
                let agreed = ["agrees", "settled", "tolerance_delta", "captured"];
                let bucket = if agreed.contains(&reason) { "matched" } else { "exception" };
                self.tell(record, "matched", &code, minor);
                let source = record.text("table");
                self.want(source, record.text("account"), &code, (bucket, reason), (1, minor));
            }
            Err(problem) => problems.push(problem),
        }
        problems
    }

    /// Takes a record of `exceptions.csv` that is a line's.
    pub fn take_exception(&mut self, record: &Record<'_>) -> Vec<String> {
        let code = record.text("currency").to_owned();
        match record.money("bank_amount", &code) {
            Ok(minor) => {
                let minor = minor.unwrap_or(0);
                self.tell(record, "open", &code, minor);
                let reason = record.text("reason");
                let account = record.text("psp_account");
                self.want("", account, &code, ("exception", reason), (1, minor));
                Vec::new()
            }
            Err(problem) => vec![problem],
        }
    }

    fn tell(&mut self, record: &Record<'_>, bucket: &'static str, code: &str, minor: i128) {
        let part = (record.text("file_sha256").to_owned(), code.to_owned());
        add(&mut self.told, (part, bucket), 1, minor);
    }

    fn want(
        &mut self,
        source: &str,
        account: &str,
        code: &str,
        (bucket, reason): (&str, &str),
        pair: Pair,
    ) {
        let key = ["file", source, account, code, bucket, reason].map(str::to_owned);
        add(&mut self.wanted, key, pair.0, pair.1);
    }

    /// Takes a record of `inputs.csv` that is a file's: all its lines are in its four buckets.
    pub fn take_input(&mut self, record: &Record<'_>) -> Vec<String> {
        if record.text("state") == "quarantined" {
            return Vec::new();
        }
        let code = record.text("currency").to_owned();
        let part = (record.text("sha256").to_owned(), code.clone());
        let account = record.text("account").to_owned();
        let mut read = || {
            for balance in ["declared_sum", "opening_balance", "closing_balance"] {
                record.money(balance, &code)?;
            }
            let pair = |count: &str, amount: &str| {
                let minor = record.money(amount, &code)?.unwrap_or(0);
                Ok::<Pair, String>((record.int(count)?.unwrap_or(0), minor))
            };
            let all = pair("parsed_count", "parsed_sum")?;
            let mut sum = (0, 0);
            for (bucket, count, amount) in [
                ("matched", "lines_matched", "matched_amount"),
                ("open", "lines_open", "open_amount"),
                ("no_row", "lines_no_row", "no_row_amount"),
                ("elsewhere", "lines_elsewhere", "elsewhere_amount"),
            ] {
                let found = pair(count, amount)?;
                sum = plus(sum, found);
                add(&mut self.inputs, (part.clone(), bucket), found.0, found.1);
                if matches!(bucket, "no_row" | "elsewhere") {
                    self.want("", &account, &code, ("excluded", bucket), found);
                }
            }
            // A file of a day without a booking has lines of no currency at all.
            if all != (0, 0) || !code.is_empty() {
                add(&mut self.came, code.clone(), all.0, all.1);
            }
            if sum == all {
                Ok(())
            } else {
                Err(format!("its buckets hold {sum:?}, and {all:?} are kept"))
            }
        };
        read().err().into_iter().collect()
    }

    /// Takes a record of `summary.csv`, side `file`.
    pub fn take_summary(&mut self, key: SummaryKey, pair: Pair) {
        add(&mut self.summary, key, pair.0, pair.1);
    }

    /// Takes a record of `bridge.csv` that is the files'; false where it is none.
    pub fn take_bridge(&mut self, kind: &str, code: &str, reason: &str, pair: Pair) -> bool {
        let is_files = kind.starts_with("file_");
        if !is_files {
            return false;
        }
        let span = self.bridge.entry(code.to_owned()).or_default();
        match kind {
            "file_total" => span.total = plus(span.total, pair),
            "file_item" => add(&mut span.items, reason.to_owned(), pair.0, pair.1),
            "file_matched" => span.matched = plus(span.matched, pair),
            "file_residual" => span.residual = Some(pair),
            _other => return false,
        }
        true
    }

    /// Currencies whose files do not tie out.
    pub fn untied(&self) -> impl Iterator<Item = &String> {
        let off = self.bridge.iter().filter(|(_, span)| span.residual != Some((0, 0)));
        off.map(|(code, _)| code)
    }

    /// Everything that sums lines up must say the same.
    pub fn against(&self) -> Vec<String> {
        let is_told = |(key, _): &(&Bucket, &Pair)| matches!(key.1, "matched" | "open");
        let own = self.inputs.iter().filter(is_told);
        let inputs: BTreeMap<Bucket, Pair> = own.map(|(key, pair)| (key.clone(), *pair)).collect();
        let words = |((sha256, code), bucket): &Bucket| format!("{bucket} {code} of file {sha256}");
        let mut problems = differences("inputs.csv", &inputs, &self.told, words);
        problems
            .extend(differences("summary.csv", &self.summary, &self.wanted, |key| key.join(" ")));
        let codes: BTreeSet<&String> = self.bridge.keys().chain(self.came.keys()).collect();
        problems.extend(codes.into_iter().flat_map(|code| self.bridge_of(code)));
        problems
    }

    fn bridge_of(&self, code: &String) -> Vec<String> {
        let Some(span) = self.bridge.get(code) else {
            return vec![format!("bridge.csv: the files of {code} are missing")];
        };
        let mut items: BTreeMap<String, Pair> = BTreeMap::new();
        let mut matched = (0, 0);
        for ([_side, source, _account, currency, _bucket, reason], pair) in &self.wanted {
            if currency != code {
                continue;
            }
            if source.is_empty() {
                let out = minus((0, 0), *pair);
                add(&mut items, reason.clone(), out.0, out.1);
            } else {
                matched = plus(matched, *pair);
            }
        }
        let name = format!("bridge.csv, files of {code}");
        let mut problems = differences(&name, &span.items, &items, Clone::clone);
        if span.matched != matched {
            let (found, matched) = (pair_text(span.matched), pair_text(matched));
            problems.push(format!("{name}: matched is {found}; matched.csv says {matched}"));
        }
        let all = span.items.values().fold(span.total, |sum, item| plus(sum, *item));
        let left = minus(all, span.matched);
        if span.residual != Some(left) {
            let (left, found) = (pair_text(left), told_text(span.residual));
            problems.push(format!("{name}: left are {left}, and its residual says {found}"));
        }
        problems
    }
}
