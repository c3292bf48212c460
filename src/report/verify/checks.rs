//! The files that sum up, held against the sums of the rows.

use std::collections::{BTreeMap, BTreeSet};

use crate::report::verify::files::Files;
use crate::report::verify::sums::{
    Pair, Rows, SummaryKey, add, age_problem, pair_text, told_text, without_zeros,
};
use crate::report::verify::table::{Record, SetDigest};

/// The word that marks what does not tie out.
const UNTIED: &str = "UNTIED";

/// `summary.csv`.
#[derive(Debug, Default)]
pub struct Summary {
    groups: BTreeMap<SummaryKey, Pair>,
    /// Rows released undecided, by table and currency.
    pub released: BTreeMap<(String, String), Pair>,
    /// Currencies that it marks as untied.
    pub untied: BTreeSet<String>,
}

impl Summary {
    /// Takes a record; returns what is wrong with it.
    pub fn take(&mut self, record: &Record<'_>, files: &mut Files) -> Vec<String> {
        let text = |column| record.text(column).to_owned();
        let read = || {
            let rows = record.int("count")?.ok_or("its count is empty")?;
            let minor = record.money("amount", record.text("currency"))?;
            Ok::<Pair, String>((rows, minor.ok_or("its amount is empty")?))
        };
        let (rows, minor) = match read() {
            Ok(pair) => pair,
            Err(problem) => return vec![problem],
        };
        if record.text("bucket") == UNTIED {
            self.untied.insert(text("currency"));
        } else if record.text("reason") == "released" {
            add(&mut self.released, (text("source"), text("currency")), rows, minor);
        } else {
            let columns = ["side", "source", "counterparty", "currency", "bucket", "reason"];
            if record.text("side") == "file" {
                files.take_summary(columns.map(text), (rows, minor));
            } else {
                add(&mut self.groups, columns.map(text), rows, minor);
            }
        }
        Vec::new()
    }

    /// Every group must be what the rows add up to.
    pub fn against(&self, rows: &Rows) -> Vec<String> {
        differences("summary.csv", &self.groups, &rows.summary, |key| key.join(" "))
    }

    fn released_of(&self, currency: &str) -> Pair {
        let of = self.released.iter().filter(|((_, code), _)| code == currency);
        of.fold((0, 0), |sum, (_, more)| {
            (sum.0.saturating_add(more.0), sum.1.saturating_add(more.1))
        })
    }
}

/// One currency of `bridge.csv`.
#[derive(Debug, Default)]
struct Span {
    lines: i128,
    local: Pair,
    items: BTreeMap<String, Pair>,
    external: Option<Pair>,
    residual: Option<Pair>,
}

/// `bridge.csv`.
#[derive(Debug, Default)]
pub struct Bridge {
    spans: BTreeMap<String, Span>,
}

impl Bridge {
    /// Takes a record; returns what is wrong with it.
    pub fn take(&mut self, record: &Record<'_>, files: &mut Files) -> Vec<String> {
        self.place(record, files).err().into_iter().collect()
    }

    fn place(&mut self, record: &Record<'_>, files: &mut Files) -> Result<(), String> {
        let currency = record.text("currency");
        let rows = record.int("count")?.ok_or("its count is empty")?;
        let minor = record.money("amount", currency)?.ok_or("its amount is empty")?;
        let line_no = record.int("line_no")?;
        let span = self.spans.entry(currency.to_owned()).or_default();
        span.lines = span.lines.saturating_add(1);
        if line_no != Some(span.lines) {
            let line = line_no.map_or_else(
                || "a line without a number".to_owned(),
                |number| format!("line {number}"),
            );
            return Err(format!("{line} of {currency} stands at {}", span.lines));
        }
        if span.residual.is_some() {
            return Err("a line follows the residual".to_owned());
        }
        match record.text("kind") {
            kind if files.take_bridge(kind, currency, record.text("reason"), (rows, minor)) => {}
            "local_total" => {
                span.local.0 = span.local.0.saturating_add(rows);
                span.local.1 = span.local.1.saturating_add(minor);
            }
            "item" => add(&mut span.items, record.text("reason").to_owned(), rows, minor),
            "external_total" if span.external.is_none() => span.external = Some((rows, minor)),
            "residual" => span.residual = Some((rows, minor)),
            other => return Err(format!("its kind {other:?} has no place here")),
        }
        Ok(())
    }

    /// Claimed, by currency.
    pub fn claimed(&self) -> BTreeMap<String, Pair> {
        self.spans.iter().map(|(code, span)| (code.clone(), span.local)).collect()
    }

    /// What each currency is left with.
    pub fn residuals(&self) -> BTreeMap<String, Pair> {
        let told = |(code, span): (&String, &Span)| Some((code.clone(), span.residual?));
        self.spans.iter().filter_map(told).collect()
    }

    /// Currencies whose residual is not zero.
    pub fn untied(&self) -> impl Iterator<Item = &String> {
        let off = self.spans.iter().filter(|(_, span)| span.residual != Some((0, 0)));
        off.map(|(code, _)| code)
    }

    /// Every bridge must add up, and every item be what the rows say.
    pub fn against(&self, rows: &Rows, summary: &Summary) -> Vec<String> {
        let mut problems = Vec::new();
        for (code, span) in &self.spans {
            problems.extend(span.adds_up(code));
            let external = rows.external.get(code).copied().unwrap_or_default();
            if span.external.unwrap_or_default() != external {
                problems.push(format!(
                    "bridge.csv: external total of {code} is {}; the rows say {}",
                    told_text(span.external),
                    pair_text(external)
                ));
            }
            let mut items = span.items.clone();
            let released = items.remove("released").unwrap_or_default();
            let given_back = summary.released_of(code);
            if (released.0.saturating_neg(), released.1.saturating_neg()) != given_back {
                problems.push(format!(
                    "bridge.csv: released of {code} is {}; summary.csv says {}",
                    pair_text(released),
                    pair_text(given_back)
                ));
            }
            let of_code = |((currency, reason), pair): (&(String, String), &Pair)| {
                (currency == code).then(|| (reason.clone(), *pair))
            };
            let wanted = rows.items.iter().filter_map(of_code).collect();
            problems.extend(differences(
                &format!("bridge.csv {code}"),
                &items,
                &wanted,
                Clone::clone,
            ));
        }
        let in_rows = rows.local.keys().chain(rows.external.keys());
        let missing: BTreeSet<&String> =
            in_rows.filter(|code| !self.spans.contains_key(*code)).collect();
        problems.extend(missing.into_iter().map(|code| format!("bridge.csv: {code:?} is missing")));
        problems
    }
}

impl Span {
    fn adds_up(&self, code: &str) -> Option<String> {
        let (Some(external), Some(residual)) = (self.external, self.residual) else {
            return Some(format!("bridge.csv: {code} has no external total, or no residual"));
        };
        let explained = self.items.values().fold(self.local, |sum, item| {
            (sum.0.saturating_add(item.0), sum.1.saturating_add(item.1))
        });
        let left = (explained.0.saturating_sub(external.0), explained.1.saturating_sub(external.1));
        (left != residual).then(|| {
            let (left, residual) = (pair_text(left), pair_text(residual));
            format!("bridge.csv: {code} leaves {left}, and its residual says {residual}")
        })
    }
}

/// `exceptions.csv`.
#[derive(Debug, Default)]
pub struct Exceptions {
    groups: BTreeMap<(String, String), Pair>,
}

impl Exceptions {
    /// Takes a record; returns what is wrong with it.
    pub fn take(&mut self, record: &Record<'_>, run_id: &str, files: &mut Files) -> Vec<String> {
        let mut problems: Vec<String> = age_problem(record).into_iter().collect();
        if record.text("run_id") != run_id {
            problems.push(format!("it is of run {:?}", record.text("run_id")));
        }
        let currency = record.text("currency");
        let other = record.text("psp_currency");
        let money = || {
            record.money("psp_amount", other)?;
            record.money("difference", currency)?;
            record.money("local_amount", currency)
        };
        match money() {
            Ok(_) if record.text("kind") == "account" => {}
            Ok(_) if record.text("kind") == "line" => problems.extend(files.take_exception(record)),
            Ok(local) => {
                let key = (record.text("reason").to_owned(), currency.to_owned());
                add(&mut self.groups, key, 1, local.unwrap_or(0));
            }
            Err(problem) => problems.push(problem),
        }
        problems
    }

    /// As many, and as much, as the rows that need a person.
    pub fn against(&self, rows: &Rows) -> Vec<String> {
        let name = |key: &(String, String)| format!("{} {}", key.0, key.1);
        differences("exceptions.csv", &self.groups, &rows.exceptions, name)
    }
}

/// `transitions.csv`: the run's stretch of the audit chain.
#[derive(Debug, Default)]
pub struct Transitions {
    set: SetDigest,
    last: Option<(String, i128, String)>,
}

impl Transitions {
    /// Takes a record; returns what is wrong with it.
    pub fn take(&mut self, record: &Record<'_>, run_id: &str) -> Vec<String> {
        let columns = ["writer", "audit_seq", "table", "txn_id", "from_status", "to_status"];
        let more = ["reason", "evidence_sha256", "applied"];
        self.set.add(columns.into_iter().chain(more).map(|name| record.text(name)));
        let writer = record.text("writer").to_owned();
        let seq = match record.int("audit_seq") {
            Ok(seq) => seq.unwrap_or(0),
            Err(problem) => return vec![problem],
        };
        let (wanted_seq, wanted_hash) = match &self.last {
            Some((last, seq, hash)) if *last == writer => (seq.saturating_add(1), hash.as_str()),
            Some(_) | None => (1, run_id),
        };
        let mut problems = Vec::new();
        if self.last.as_ref().is_some_and(|(last, _, _)| *last > writer) {
            problems.push(format!("writer {writer} is out of order"));
        }
        if seq != wanted_seq {
            problems.push(format!("its number is {seq}; the chain goes on with {wanted_seq}"));
        }
        if record.text("prev_hash") != wanted_hash {
            problems.push(format!("its prev_hash does not follow: expected {wanted_hash}"));
        }
        self.last = Some((writer, seq, record.text("hash").to_owned()));
        problems
    }

    /// The same rows, whatever their order.
    pub fn against(&self, rows: &Rows) -> Option<String> {
        (self.set != rows.transitions)
            .then(|| "transitions.csv and reconciliation.csv are not of the same rows".to_owned())
    }
}

/// `aging.csv`: what was open, came and went must leave what is open.
pub fn aging(record: &Record<'_>) -> Vec<String> {
    let read = || {
        record.money("amount", record.text("currency"))?;
        let number = |column: &str| record.int(column).map(Option::unwrap_or_default);
        let came = number("opening")?.saturating_add(number("new")?);
        let left = came.saturating_sub(number("closed")?);
        if left == number("closing")? && left == number("count")? {
            Ok(())
        } else {
            Err(format!("opening, new and closed leave {left}, not its closing and count"))
        }
    };
    read().err().into_iter().collect()
}

/// `inputs.csv`: numbers must be numbers, and an API that answered for less is not `ok`.
pub fn inputs(record: &Record<'_>, files: &mut Files) -> Vec<String> {
    if record.text("kind") == "file" {
        return files.take_input(record);
    }
    let read = || {
        record.int("pages_or_lines_read")?;
        record.int("parsed_count")?;
        let is_whole = record.int("rows_asked")? == record.int("rows_answered")?;
        if record.text("state") == "ok" && !is_whole {
            Err("it is ok, and not every row was answered".to_owned())
        } else {
            Ok::<(), String>(())
        }
    };
    read().err().into_iter().collect()
}

/// `compared.csv`: each row, object and line once, numbered without a gap; what agrees with the
/// PSP has its amount.
#[derive(Debug, Default)]
pub struct ComparedFile {
    last: i128,
}

impl ComparedFile {
    /// Takes a record; returns what is wrong with it.
    pub fn take(&mut self, record: &Record<'_>, run_id: &str) -> Vec<String> {
        let mut read = || {
            let money = |column: &str, code: &str| record.money(column, record.text(code));
            let local = money("local_amount", "currency")?;
            let psp = money("psp_amount", "psp_currency")?;
            money("file_amount", "file_currency")?;
            let number = record.int("number")?.unwrap_or(0);
            let follows = self.last.saturating_add(1);
            self.last = number;
            let is_same = local == psp && record.text("currency") == record.text("psp_currency");
            if number != follows {
                Err(format!("its number is {number}, and {follows} follows"))
            } else if record.text("run_id") != run_id {
                Err(format!("it is of run {:?}", record.text("run_id")))
            } else if record.text("bucket") == "agrees" && local.and(psp).is_some() && !is_same {
                Err("it agrees, and its amounts differ".to_owned())
            } else {
                Ok(())
            }
        };
        read().err().into_iter().collect()
    }
}

/// `payouts.csv`: the parts must come to the net, and what is explained to the bank's booking.
pub fn payouts(record: &Record<'_>) -> Vec<String> {
    let code = record.text("currency");
    let read = || {
        let mut parts = None;
        for part in ["gross", "fees", "refunds", "chargebacks", "adjustments"] {
            if let Some(minor) = record.money(part, code)? {
                parts = Some(parts.unwrap_or(0_i128).saturating_add(minor));
            }
        }
        let net = record.money("net", code)?;
        let paid = record.money("paid_out", code)?;
        // Of a payout that is only listed there are no parts.
        let sum = parts.or(paid).unwrap_or(0);
        let difference = record.money("difference", code)?;
        let bank = record.money("bank_amount", code)?;
        let wanted = paid.map(|paid| paid.saturating_sub(sum));
        let is_explained = record.text("state") == "explained";
        if net != Some(sum) {
            Err(format!("its parts come to {sum}, and its net is {net:?}"))
        } else if difference != wanted {
            Err(format!("its difference is {difference:?} and should be {wanted:?}"))
        } else if is_explained
            && (bank != net && (bank, net) != (None, Some(0)) || difference.unwrap_or(0) != 0)
        {
            Err(format!("it is explained, and the bank booked {bank:?} of {net:?}"))
        } else {
            Ok(())
        }
    };
    read().err().into_iter().collect()
}

/// Where two sides of a grouping differ.
pub fn differences<K: Ord + Clone>(
    name: &str,
    found: &BTreeMap<K, Pair>,
    wanted: &BTreeMap<K, Pair>,
    words: impl Fn(&K) -> String,
) -> Vec<String> {
    let (found, wanted) = (without_zeros(found.clone()), without_zeros(wanted.clone()));
    let keys: BTreeSet<&K> = found.keys().chain(wanted.keys()).collect();
    let of = |groups: &BTreeMap<K, Pair>, key: &K| groups.get(key).copied().unwrap_or_default();
    keys.into_iter()
        .filter(|key| of(&found, key) != of(&wanted, key))
        .map(|key| {
            let ((rows, minor), (more, most)) = (of(&found, key), of(&wanted, key));
            format!(
                "{name}: {} holds {rows} rows and {minor} minor units; recomputed: {more} and \
                 {most}",
                words(key)
            )
        })
        .collect()
}
