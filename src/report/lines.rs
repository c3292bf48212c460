//! Lines of settlement files: `matched.csv`, the lines of `exceptions.csv` that found no row, and
//! the files of `inputs.csv`.
//!
//! Lines live on after a run: later runs match what this one could not, and people take files
//! out. So each is told by what can no longer change: the run that matched it, and the run that
//! looked for its row first and found none. Whatever else became of a file's lines is one sum,
//! `elsewhere`, so that all of a file is always told.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::decide::settled;
use crate::model::money::{Currency, Money};
use crate::model::reason::Reason;
use crate::model::settlement::{SettledLine, Severity, Tag, TagKind};
use crate::model::transaction::Kind;
use crate::report::advice::{severity, suggested_action};
use crate::report::aging::bucket;
use crate::report::cells::Cell;
use crate::report::columns::{EXCEPTIONS, INPUTS, Sheet};
use crate::report::facts::{Facts, days_between, local_date};
use crate::report::said;
use crate::report::sorter::tuple_key;
use crate::report::tie::{FileTie, Sum};
use crate::store::batches::TABLE as BATCHES;
use crate::store::files::{FileOfRun, FileState, LineBucket, LineOfRun, StoredLine};
use crate::store::payouts::TABLE as PAYOUTS;

/// What stands for a reason where a line agrees with a row that had ended without it.
pub const AGREES: &str = "agrees";

/// A line's amount, + being money to the merchant; 0 where it has none of its own.
pub fn signed(line: &StoredLine) -> i128 {
    line.amount.map_or(0, |money| line.booked_way().signed(money.minor))
}

/// The stable word of why a line belongs to its row.
pub fn matched_reason(line: &StoredLine) -> &'static str {
    match line.reason.as_deref() {
        None => AGREES,
        Some(code) => Reason::parse(code).map_or("other", Reason::as_str),
    }
}

/// What `matched.csv` needs of a line, kept small while the lines are sorted by their rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    table: String,
    key: String,
    /// False: another run matched it before, and it only counts in what moved by the row's lines.
    is_own: bool,
    place: (i64, i64),
    account: String,
    reason: String,
    kind: String,
    tag: Option<String>,
    psp_reference: Option<String>,
    bank_reference: Option<String>,
    currency: String,
    minor: Option<i128>,
    gross: Option<(String, i64)>,
    fee: Option<(String, i64)>,
    net: Option<(String, i64)>,
    worth: Option<(String, i64)>,
    said: SettledLine,
    booked_on: Option<String>,
    value_on: Option<String>,
    payout: Option<String>,
    file_name: String,
    file_sha256: String,
    file_line: i64,
}

impl Draft {
    /// Takes what is needed of a matched line.
    pub fn of(own: &LineOfRun) -> Self {
        let line = &own.line;
        let money = |money: Option<Money>| money.map(|m| (m.currency.code().to_owned(), m.minor));
        let (table, key) = line.row.clone().unwrap_or_default();
        Self {
            table,
            key,
            is_own: true,
            place: (line.place.file, line.place.position),
            account: line.account.clone(),
            reason: matched_reason(line).to_owned(),
            kind: line.kind.as_str().to_owned(),
            tag: line.tag.clone(),
            psp_reference: line.psp_reference.clone(),
            bank_reference: line.bank_reference.clone(),
            currency: line.currency.code().to_owned(),
            minor: line.amount.map(|money| line.booked_way().signed(money.minor)),
            gross: money(line.gross),
            fee: money(line.fee),
            net: money(line.net),
            worth: money(own.worth),
            said: said::settled(line),
            booked_on: line.booked_on.map(|day| day.to_string()),
            value_on: line.value_on.map(|day| day.to_string()),
            payout: line.batch.clone(),
            file_name: line.file_name.clone(),
            file_sha256: line.file_sha256.clone(),
            file_line: line.file_line,
        }
    }

    /// A line of the row that an earlier run matched.
    pub fn beside(line: StoredLine) -> Self {
        let own = LineOfRun { line, worth: None, noted: None };
        Self { is_own: false, ..Self::of(&own) }
    }

    /// By row, what earlier runs matched first, then by place.
    pub fn order(&self) -> Vec<u8> {
        let mut order = tuple_key(&[&self.table, &self.key], i64::from(self.is_own));
        order.extend(tuple_key(&[], self.place.0));
        order.extend(tuple_key(&[], self.place.1));
        order
    }
}

/// The rows of mapped tables that lines became.
pub fn rows_of(page: &[LineOfRun]) -> BTreeSet<(String, String)> {
    let rows = page.iter().filter_map(|own| own.line.row.as_ref());
    rows.filter(|(table, _)| is_mapped(table)).cloned().collect()
}

/// Whether a table is one of the user's: a payout and a batch are none's rows.
fn is_mapped(table: &str) -> bool {
    ![PAYOUTS, BATCHES].contains(&table)
}

/// Writes the lines of each row under one name; the row's amount and the difference stand with
/// its last line, so that columns add up.
#[derive(Default)]
pub struct Grouper {
    held: Option<Draft>,
    /// The row that the lines are of.
    row: (String, String),
    /// Its first line that is the run's own.
    first: (i64, i64),
    /// What its lines say, those of earlier runs as well.
    said: Vec<SettledLine>,
}

impl Grouper {
    /// Takes the next line in order; the cells of the one before it come back.
    pub fn push(&mut self, draft: Draft, facts: &Facts) -> Option<Vec<Cell>> {
        let goes_on = (&draft.table, &draft.key) == (&self.row.0, &self.row.1);
        let before = self.held.take();
        let is_first = before.is_none() || !goes_on;
        let cells = before.map(|before| self.cells(&before, !goes_on, facts));
        if !goes_on {
            self.row = (draft.table.clone(), draft.key.clone());
            self.said.clear();
        }
        // An earlier run's line comes once with each page that has a line of its row.
        if self.said.last().is_none_or(|last| last.place != draft.said.place) {
            self.said.push(draft.said.clone());
        }
        if draft.is_own {
            if is_first {
                self.first = draft.place;
            }
            self.held = Some(draft);
        }
        cells
    }

    /// The cells of the last line.
    pub fn finish(mut self, facts: &Facts) -> Option<Vec<Cell>> {
        let last = self.held.take();
        last.map(|last| self.cells(&last, true, facts))
    }

    /// What moved by the row's lines, less the row; none where they do not tell it, or in other
    /// currencies.
    fn difference(&self, (code, worth): &(String, i64)) -> Option<i128> {
        let kind = if *worth < 0 { Kind::Refund } else { Kind::Charge };
        let sums = match is_mapped(&self.row.0) {
            true => settled::moved(&self.said, kind)?,
            false => self.booked()?,
        };
        let is_other = |currency: &Currency| currency.code() != code;
        if sums.keys().any(is_other) {
            return None;
        }
        let moved = sums.values().fold(0_i128, |sum, more| sum.saturating_add(*more));
        Some(moved.saturating_sub(i128::from(*worth)))
    }

    /// What bookings of a payout or a batch come to: each is one.
    fn booked(&self) -> Option<BTreeMap<Currency, i128>> {
        let mut sums: BTreeMap<Currency, i128> = BTreeMap::new();
        for line in &self.said {
            let money = line.money?;
            let sum = sums.entry(money.currency).or_default();
            *sum = sum.saturating_add(line.direction.signed(money.minor));
        }
        Some(sums)
    }

    fn cells(&self, draft: &Draft, is_last: bool, facts: &Facts) -> Vec<Cell> {
        let local = draft.worth.as_ref().filter(|_| is_last);
        let difference = local.and_then(|worth| self.difference(worth));
        let local_code = local.map_or("", |(code, _)| code.as_str());
        let [local_amount, local_minor] = money(local);
        let [gross, gross_minor] = money(draft.gross.as_ref());
        let [fee, fee_minor] = money(draft.fee.as_ref());
        let [net, net_minor] = money(draft.net.as_ref());
        let [bank, bank_minor] = match draft.minor {
            Some(minor) => Cell::sum(&draft.currency, minor),
            None => [Cell::Null, Cell::Null],
        };
        let [differs, differs_minor] = match difference {
            Some(minor) => Cell::sum(local_code, minor),
            None => [Cell::Null, Cell::Null],
        };
        let code = |money: &Option<(String, i64)>| {
            Cell::word(money.as_ref().map_or("", |(code, _)| code.as_str()))
        };
        vec![
            Cell::text(&facts.run.id),
            Cell::word(&format!("M-{}-{}", self.first.0, self.first.1)),
            Cell::word(method(&draft.table)),
            Cell::word("exact"),
            Cell::text(&draft.key),
            Cell::text_of(draft.psp_reference.as_deref()),
            Cell::text_of(draft.bank_reference.as_deref()),
            Cell::word(&draft.currency),
            local_amount,
            local_minor,
            gross,
            gross_minor,
            fee,
            fee_minor,
            net,
            net_minor,
            bank,
            bank_minor,
            Cell::Null, // created_at: the row's own, in reconciliation.csv
            Cell::Null, // psp_at: as above
            day(draft.booked_on.as_deref()),
            Cell::text_of(draft.payout.as_deref()),
            Cell::word("tieout"),
            Cell::text(&facts.run.policy_version),
            Cell::text(&draft.table),
            Cell::text(&draft.account),
            Cell::word(&draft.reason),
            Cell::word(&draft.kind),
            Cell::text_of(draft.tag.as_deref()),
            Cell::word(local_code),
            code(&draft.gross),
            code(&draft.fee),
            code(&draft.net),
            differs,
            differs_minor,
            day(draft.value_on.as_deref()),
            Cell::text(&draft.file_name),
            Cell::word(&draft.file_sha256),
            Cell::word(&format!("F{}:{}", draft.place.0, draft.place.1)),
            Cell::int(draft.file_line),
        ]
    }
}

/// How a line was matched to what it belongs to.
fn method(table: &str) -> &'static str {
    match table {
        PAYOUTS => "payout",
        BATCHES => "batch",
        _mapped => "exact_id",
    }
}

fn money(money: Option<&(String, i64)>) -> [Cell; 2] {
    match money {
        Some((code, minor)) => Cell::sum(code, i128::from(*minor)),
        None => [Cell::Null, Cell::Null],
    }
}

fn day(day: Option<&str>) -> Cell {
    day.map_or(Cell::Null, Cell::word)
}

/// A record of a sheet from the cells that are not empty, by their columns' names.
fn record(sheet: &Sheet, cells: Vec<(&str, Cell)>) -> Vec<Cell> {
    let mut by_name: BTreeMap<&str, Cell> = cells.into_iter().collect();
    sheet.columns.iter().map(|column| by_name.remove(column).unwrap_or(Cell::Null)).collect()
}

/// Why no row was found, when it was looked for first.
pub fn noted_reason(own: &LineOfRun) -> Reason {
    own.noted.as_deref().and_then(Reason::parse).unwrap_or(Reason::Orphan)
}

/// The line of `exceptions.csv` of a line that found no row.
pub fn exception(own: &LineOfRun, facts: &Facts) -> Vec<Cell> {
    let line = &own.line;
    let reason = noted_reason(own);
    let code = line.currency.code();
    let age = line.booked_on.map(|booked| days_between(booked, facts.run_date));
    let [bank, bank_minor] = match line.amount {
        Some(money) => Cell::sum(code, line.booked_way().signed(money.minor)),
        None => [Cell::Null, Cell::Null],
    };
    let date = |day: Option<chrono::NaiveDate>| day.map(|day| day.to_string());
    record(
        &EXCEPTIONS,
        vec![
            ("run_id", Cell::text(&facts.run.id)),
            ("side", Cell::word("bank")),
            ("reason", Cell::word(reason.as_str())),
            ("reason_text", Cell::text(&sentence(line, reason))),
            ("suggested_action", Cell::word(action(reason))),
            ("psp_name", Cell::text_of(facts.psp_of(&line.account))),
            ("psp_account", Cell::text(&line.account)),
            ("psp_txn_id", Cell::text_of(line.psp_reference.as_deref())),
            ("bank_ref", Cell::text_of(line.bank_reference.as_deref())),
            ("file_name", Cell::text(&line.file_name)),
            ("file_sha256", Cell::word(&line.file_sha256)),
            ("line_no", Cell::int(line.file_line)),
            ("psp_status", Cell::text_of(line.type_code.as_deref())),
            ("currency", Cell::word(code)),
            ("bank_amount", bank),
            ("bank_amount_minor", bank_minor),
            ("booked_on", day(date(line.booked_on).as_deref())),
            ("value_date", day(date(line.value_on).as_deref())),
            ("age_days", Cell::int_of(age)),
            ("age_bucket", age.map_or(Cell::Null, |days| Cell::word(bucket(days)))),
            ("severity", Cell::word(severity(reason))),
            ("first_seen_run", Cell::text(&facts.run.id)),
            ("status", Cell::word("open")),
            ("tag", Cell::text_of(line.tag.as_deref())),
            ("kind", Cell::word("line")),
        ],
    )
}

/// What a person would try first of a line: the case of a row that it contradicts is the row's.
fn action(reason: Reason) -> &'static str {
    match reason {
        Reason::LateContradiction => suggested_action(Reason::Returned, false),
        other => suggested_action(other, false),
    }
}

fn sentence(line: &StoredLine, reason: Reason) -> String {
    let what = line.kind.as_str().replace('_', " ");
    let names = [&line.tag, &line.psp_reference, &line.original, &line.bank_reference];
    let name = names.into_iter().flatten().map(String::as_str).find(|name| !name.is_empty());
    let name = name.unwrap_or("what it carries");
    // A file that is one line has all its entries there.
    let place = format!("line {} of {}, F{} ({what})", line.file_line, line.file_name, line.place);
    match reason {
        Reason::Orphan => format!("{place}: no row is known by {name}"),
        Reason::TagUnusable => {
            let names = with_banks_ids(line, name);
            format!("{place}: several rows, or several bookings of one payout, go by {names}")
        }
        Reason::AmountMismatch => {
            let amount = line.amount.map_or("an amount".to_owned(), |money| money.to_string());
            format!("{place}: {amount} is not what the payout or the batch that it books comes to")
        }
        Reason::ReferenceMissing if !line.itemised => {
            format!("{place}: it stands for several payments, which the file does not list")
        }
        Reason::ReferenceMissing => format!("{place}: it names no payment"),
        Reason::LateContradiction => {
            let refund = "or is a refund of yours that no mapped table has";
            format!("{place}: it took back the payment of {name}, {refund}")
        }
        _other => format!("{place}: {}", reason.meaning()),
    }
}

/// A name of a line, and the ids that it has between banks: any of them may be what several have.
fn with_banks_ids(line: &StoredLine, name: &str) -> String {
    let is_id = |tag: &&Tag| {
        matches!(tag.kind, TagKind::InstructionId | TagKind::TransactionId | TagKind::Uetr)
    };
    let ids = line.refs.iter().filter(is_id).map(|tag| tag.text.as_str());
    let mut names = vec![name];
    for id in ids {
        if !names.contains(&id) {
            names.push(id);
        }
    }
    names.join(" or ")
}

/// What the parser counted of one currency of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct Counted {
    #[serde(default)]
    credits: i64,
    #[serde(default)]
    debits: i64,
    #[serde(default, deserialize_with = "minor")]
    credit_minor: i128,
    #[serde(default, deserialize_with = "minor")]
    debit_minor: i128,
    /// None: the file came before lines were counted by currency.
    #[serde(default)]
    lines: Option<i64>,
    #[serde(default, deserialize_with = "minor")]
    line_minor: i128,
}

impl Counted {
    /// The lines, where they were counted.
    pub fn lines(self) -> Option<Sum> {
        self.lines.map(|rows| Sum { rows, amount_minor: self.line_minor })
    }
}

fn minor<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<i128, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(serde::de::Error::custom)
}

/// A file as it was for the run: it may have been let through or taken out since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateThen {
    /// It tied.
    Ok,
    /// It did not, and a person let its lines count.
    Released,
    /// It did not, and none of its lines counted.
    Quarantined,
}

impl StateThen {
    /// By what no longer changes: what is wrong with it, and whether this run brought it in.
    pub fn of(own: &FileOfRun, run_id: &str) -> Self {
        let file = &own.file;
        let is_wrong = file.problems.iter().any(|problem| problem.severity == Severity::Error);
        let is_out = file.state == FileState::Quarantined && file.changed.is_none();
        // What came of it when it was read again is the later run's to tell.
        let is_wrong = is_wrong || is_out || own.came_again_after(run_id);
        match (is_wrong, file.run_id == run_id) {
            (false, _) => Self::Ok,
            (true, true) => Self::Quarantined,
            (true, false) => Self::Released,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Released => "released",
            Self::Quarantined => "quarantined",
        }
    }
}

/// One currency of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The currency; empty for a file of which nothing counted.
    pub currency: String,
    /// What the parser counted.
    pub counted: Counted,
    /// The kept lines, by what became of them.
    pub found: BTreeMap<LineBucket, Sum>,
}

impl Part {
    /// All kept lines.
    pub fn all(&self) -> Sum {
        self.found.values().fold(Sum::default(), |sum, more| sum.plus(*more))
    }

    fn of(&self, bucket: LineBucket) -> Sum {
        self.found.get(&bucket).copied().unwrap_or_default()
    }
}

/// The currencies of a file; none of a file that did not count.
pub fn parts(own: &FileOfRun, run_id: &str) -> Vec<Part> {
    if StateThen::of(own, run_id) == StateThen::Quarantined {
        return Vec::new();
    }
    let counted: BTreeMap<String, Counted> =
        serde_json::from_str(&own.file.totals).unwrap_or_default();
    let mut parts: BTreeMap<String, Part> = BTreeMap::new();
    let codes = counted.keys().chain(own.tallies.iter().map(|tally| &tally.currency));
    for code in codes {
        parts.entry(code.clone()).or_insert_with(|| Part {
            currency: code.clone(),
            counted: counted.get(code).copied().unwrap_or_default(),
            found: BTreeMap::new(),
        });
    }
    for tally in &own.tallies {
        if let Some(part) = parts.get_mut(&tally.currency) {
            let sum = part.found.entry(tally.bucket).or_default();
            *sum = sum.plus(Sum { rows: tally.lines, amount_minor: tally.minor });
        }
    }
    parts.into_values().collect()
}

/// Each currency of a file, and the file as a whole: what came against what is kept.
pub fn ties(own: &FileOfRun, run_id: &str) -> Vec<FileTie> {
    if StateThen::of(own, run_id) == StateThen::Quarantined {
        return Vec::new();
    }
    let parts = parts(own, run_id);
    let tie = |currency: &str, counted: Sum, found: Sum| FileTie {
        file: own.file.name.clone(),
        currency: currency.to_owned(),
        counted,
        found,
    };
    let rows = parts.iter().fold(0_i64, |sum, part| sum.saturating_add(part.all().rows));
    let whole = |rows| Sum { rows, amount_minor: 0 };
    let mut ties = vec![tie("", whole(own.file.lines), whole(rows))];
    ties.extend(parts.iter().filter_map(|part| {
        let counted = part.counted.lines()?;
        Some(tie(&part.currency, counted, part.all()))
    }));
    ties
}

/// The lines of `inputs.csv` of a file: one for each of its currencies.
pub fn inputs(own: &FileOfRun, facts: &Facts) -> Vec<Vec<Cell>> {
    let parts = parts(own, &facts.run.id);
    if parts.is_empty() {
        return vec![record(&INPUTS, head(own, facts))];
    }
    // Balances are of one statement, and so of one currency.
    let balances = if parts.len() == 1 { own.balances } else { (None, None) };
    parts.iter().map(|part| input(own, part, balances, facts)).collect()
}

fn head<'a>(own: &FileOfRun, facts: &Facts) -> Vec<(&'a str, Cell)> {
    let file = &own.file;
    let state = StateThen::of(own, &facts.run.id);
    let date = |day: Option<chrono::NaiveDate>| day.map(|day| day.to_string());
    // Of a quarantined file no statement is kept; those that it has now came with its release.
    let (first, last) = if state == StateThen::Quarantined { (None, None) } else { own.period };
    let business_day = last.unwrap_or_else(|| local_date(file.received_at, facts.zone));
    let worst = file.problems.iter().find(|problem| problem.severity == Severity::Error);
    vec![
        ("source", Cell::text(&file.source)),
        ("kind", Cell::word("file")),
        ("name", Cell::text(&file.name)),
        ("sha256", Cell::word(&file.sha256)),
        ("bytes", Cell::int(own.raw_bytes)),
        ("first_at", day(date(first).as_deref())),
        ("last_at", day(date(last).as_deref())),
        ("state", Cell::word(state.as_str())),
        ("note", Cell::text(&worst.map(ToString::to_string).unwrap_or_default())),
        ("account", Cell::text(&file.account)),
        ("format", Cell::word(&file.format)),
        ("received_at", Cell::at(Some(file.received_at))),
        ("business_day", Cell::word(&business_day.to_string())),
    ]
}

fn input(
    own: &FileOfRun,
    part: &Part,
    (opening, closing): (Option<i64>, Option<i64>),
    facts: &Facts,
) -> Vec<Cell> {
    let code = &part.currency;
    let counted = part.counted;
    let (matched, noted) = (part.of(LineBucket::Matched), part.of(LineBucket::Noted));
    let (no_row, elsewhere) = (part.of(LineBucket::NoRow), part.of(LineBucket::Elsewhere));
    let all = part.all();
    let mut cells = head(own, facts);
    let mut put = |name: &'static str, minor_name: &'static str, minor: Option<i128>| {
        let [amount, minor] = match minor {
            Some(minor) => Cell::sum(code, minor),
            None => [Cell::Null, Cell::Null],
        };
        cells.push((name, amount));
        cells.push((minor_name, minor));
    };
    let declared = counted.credit_minor.saturating_sub(counted.debit_minor);
    put("declared_sum", "declared_sum_minor", Some(declared));
    put("parsed_sum", "parsed_sum_minor", Some(all.amount_minor));
    put("opening_balance", "opening_balance_minor", opening.map(i128::from));
    put("closing_balance", "closing_balance_minor", closing.map(i128::from));
    put("matched_amount", "matched_amount_minor", Some(matched.amount_minor));
    put("open_amount", "open_amount_minor", Some(noted.amount_minor));
    put("no_row_amount", "no_row_amount_minor", Some(no_row.amount_minor));
    put("elsewhere_amount", "elsewhere_amount_minor", Some(elsewhere.amount_minor));
    let entries = counted.credits.saturating_add(counted.debits);
    cells.extend([
        ("pages_or_lines_read", Cell::int(all.rows)),
        ("declared_count", Cell::int(entries)),
        ("parsed_count", Cell::int(all.rows)),
        ("currency", Cell::word(code)),
        ("lines_counted", Cell::int_of(counted.lines)),
        ("lines_matched", Cell::int(matched.rows)),
        ("lines_open", Cell::int(noted.rows)),
        ("lines_no_row", Cell::int(no_row.rows)),
        ("lines_elsewhere", Cell::int(elsewhere.rows)),
    ]);
    record(&INPUTS, cells)
}
