//! What people read of a run: pure text from what the run told.
//!
//! No signal by colour alone, no line wider than 80 columns where it can be helped, every id
//! whole so that it can be copied. Amounts are exact, and no currency is added to another.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use chrono_tz::Tz;

use crate::cli::window::length_text;
use crate::model::count::counted;
use crate::model::money::{Currency, grouped_text};
use crate::model::reason::{Outcome, Reason};
use crate::model::time::{Instant, later, to_short_text};
use crate::report::tie::Sum;
use crate::run::events::{AccountNote, Summary};
use crate::run::match_lines::LinesNote;
use crate::run::setup::Window;
use crate::store::files::LinePlace;
use crate::store::records::{JournalRow, TotalLine, Waiting};

/// What terminals have had for fifty years.
const WIDTH: usize = 80;

/// How long a bar is.
const BAR: usize = 15;

/// The word of buckets that rows can end in, in the order of the table.
const BUCKETS: [(&str, &str); 8] = [
    ("succeeded", "succeeded"),
    ("retryable", "retryable"),
    ("failed", "failed"),
    ("review", "needs a person"),
    ("wait", "still processing"),
    ("watched", "watched"),
    ("superseded", "changed meanwhile"),
    ("released", "released"),
];

/// Shown even where they are empty.
const ALWAYS: [&str; 4] = ["succeeded", "retryable", "review", "wait"];

/// The first lines of a run that was not narrowed to rows or accounts.
pub fn head(run_id: &str, window: Option<&Window>, zone: Tz, dry_run: bool) -> Vec<String> {
    narrowed_head(run_id, window, zone, "", dry_run)
}

/// The first lines: the run, its window, and which rows it was narrowed to.
pub fn narrowed_head(
    run_id: &str,
    window: Option<&Window>,
    zone: Tz,
    narrowed: &str,
    dry_run: bool,
) -> Vec<String> {
    let which = match (window, narrowed) {
        (None, "") => " · every due row".to_owned(),
        (Some(_), "") => String::new(),
        (_, narrowed) => format!(" · {narrowed}"),
    };
    let mut lines = vec![format!("run {run_id}{which}")];
    if dry_run {
        lines.push("dry run: nothing is written anywhere".to_owned());
    }
    if let Some(window) = window {
        let ends = instants(window.from, window.to, None);
        lines.extend(window_lines(&window.words, zone.name(), window.on.as_str(), &ends));
    }
    lines
}

/// A window as it was asked for, and the instants that it means.
pub fn window_lines(words: &str, zone: &str, on: &str, ends: &str) -> [String; 2] {
    [format!("window   {words} {zone} · on {on}"), format!("         = {ends}")]
}

/// Both ends of a window and its length. What has no end goes up to now; of a run that is told
/// later, now was when it started.
pub fn instants(from: Option<Instant>, to: Option<Instant>, started_at: Option<Instant>) -> String {
    match (from, to, started_at) {
        (Some(from), Some(to), _) => {
            format!("{} … {} ({})", to_short_text(from), to_short_text(to), length_text(to - from))
        }
        (Some(from), None, Some(start)) => {
            // The words were read a moment before the start, maybe by another clock.
            let length = later(start, TimeDelta::seconds(30)) - from;
            format!(
                "{} … now, at its start {} ({})",
                to_short_text(from),
                to_short_text(start),
                length_text(length.max(TimeDelta::zero()))
            )
        }
        (Some(from), None, None) => format!("{} … now", to_short_text(from)),
        (None, Some(to), _) => format!("the beginning … {}", to_short_text(to)),
        (None, None, _) => "everything".to_owned(),
    }
}

/// A line for each account that was asked.
pub fn accounts(notes: &[AccountNote]) -> Vec<String> {
    let width = notes.iter().map(|note| note.account.chars().count()).max().unwrap_or(0).max(12);
    notes
        .iter()
        .flat_map(|note| {
            let rows = format!("{}/{}", count(note.answered), count(note.rows));
            let line = format!(
                "{:<width$} {} {rows} rows  {}  {}  {}",
                note.account,
                bar(note.answered, note.rows),
                counted(count(note.requests), "look-up", "look-ups"),
                counted(count(note.retries), "retry", "retries"),
                seconds(note.duration_ms),
            );
            let stopped = note.stopped.iter().map(|why| format!("  stopped: {why}"));
            let brake = note.brake.iter().map(|why| format!("  absence brake: {why}"));
            [line].into_iter().chain(stopped).chain(brake).collect::<Vec<_>>()
        })
        .collect()
}

/// How much of it is done.
pub fn bar(done: u64, all: u64) -> String {
    let length = u64::try_from(BAR).unwrap_or(0);
    let filled = match done.saturating_mul(length).checked_div(all) {
        Some(filled) => usize::try_from(filled.min(length)).unwrap_or(0),
        None => BAR,
    };
    format!("▕{}{}▏", "█".repeat(filled), " ".repeat(BAR.saturating_sub(filled)))
}

/// So many rows, in words.
pub fn rows(number: impl Into<i128>) -> String {
    counted(count(number), "row", "rows")
}

fn count(number: impl Into<i128>) -> String {
    grouped_text(number.into(), 0)
}

fn seconds(ms: u64) -> String {
    if ms < 10_000 {
        format!("{}.{} s", ms / 1_000, ms % 1_000 / 100)
    } else {
        format!("{} s", count(ms / 1_000))
    }
}

/// A bucket's rows and sums, over all tables.
type Sums = BTreeMap<String, BTreeMap<String, (i64, i128)>>;

fn sums(totals: &[TotalLine]) -> Sums {
    let mut sums = Sums::new();
    for line in totals {
        let bucket = sums.entry(line.bucket.clone()).or_default();
        let (rows, minor) = bucket.entry(line.currency.clone()).or_default();
        *rows = rows.saturating_add(line.rows);
        *minor = minor.saturating_add(line.amount_minor);
    }
    sums
}

fn rows_of(sums: &Sums, bucket: &str) -> i64 {
    sums.get(bucket).map_or(0, |by_currency| by_currency.values().map(|(rows, _)| rows).sum())
}

fn amount(currency: &str, minor: i128) -> String {
    let exponent = Currency::parse(currency).map_or(0, |currency| currency.exponent());
    grouped_text(minor, exponent)
}

/// Rows that could not be read have no currency.
fn currency_word(currency: &str) -> &str {
    if currency.is_empty() { "unreadable" } else { currency }
}

/// The table of outcomes: rows × currencies; in several pieces where it would be too wide.
pub fn table(summary: &Summary) -> Vec<String> {
    parted(&summary.totals, &summary.waits, &summary.watched)
}

/// The table with watched rows apart from what still processes, and what waits by reason.
fn parted(totals: &[TotalLine], reasons: &[(String, u64)], watched: &[TotalLine]) -> Vec<String> {
    let Some(apart) = apart(totals, reasons, watched) else {
        let sums = sums(totals);
        let wait = rows_of(&sums, "wait");
        // What was decided is known, and not which of it came to be written.
        let mut lines = outcomes(totals);
        let lead = match rows_of(&sums, "superseded") {
            0 => "found to wait, unwritten ones included",
            _some => "found to wait, changed ones included",
        };
        if wait != 0 {
            lines.extend(waits(lead, reasons, &[]));
        }
        return lines;
    };
    let mut lines = outcomes(&apart);
    // Where they have no line of their own, they are among those that wait.
    let told = [Reason::Watched.as_str()];
    let told = if watched.is_empty() { &told[..0] } else { &told[..] };
    lines.extend(waits("of those still processing", reasons, told));
    lines
}

/// The totals with watched rows apart from what still processes; none where it is not known which
/// of what was found to wait came to be written.
pub fn apart(
    totals: &[TotalLine],
    reasons: &[(String, u64)],
    watched: &[TotalLine],
) -> Option<Vec<TotalLine>> {
    let wait = rows_of(&sums(totals), "wait");
    let found: u64 = reasons.iter().map(|(_, rows)| *rows).sum();
    if u64::try_from(wait).ok() != Some(found) {
        return None;
    }
    let mut apart = totals.to_vec();
    for line in watched {
        let is_its_wait = |one: &&mut TotalLine| {
            one.bucket == "wait" && one.table == line.table && one.currency == line.currency
        };
        if let Some(one) = apart.iter_mut().find(is_its_wait) {
            one.rows = one.rows.saturating_sub(line.rows);
            one.amount_minor = one.amount_minor.saturating_sub(line.amount_minor);
        }
        apart.push(line.clone());
    }
    Some(apart)
}

fn outcomes(totals: &[TotalLine]) -> Vec<String> {
    let sums = sums(totals);
    let currencies: BTreeSet<&str> = totals
        .iter()
        .filter(|line| line.bucket != "claimed" && !line.currency.is_empty())
        .map(|line| line.currency.as_str())
        .collect();
    let mut buckets: Vec<(&str, &str)> = BUCKETS
        .into_iter()
        .filter(|(bucket, _)| ALWAYS.contains(bucket) || rows_of(&sums, bucket) != 0)
        .collect();
    let known = |bucket: &str| bucket == "claimed" || BUCKETS.iter().any(|(b, _)| *b == bucket);
    // A bucket that this version does not know is shown by its own name, never dropped.
    buckets.extend(sums.keys().filter(|b| !known(b)).map(|b| (b.as_str(), b.as_str())));
    let mut columns = vec![Column::rows(&sums, &buckets)];
    columns.extend(currencies.into_iter().map(|code| Column::amounts(&sums, &buckets, code)));
    let labels: Vec<&str> = buckets.iter().map(|(_, label)| *label).collect();
    render(&labels, &columns)
}

/// The control totals of a stored run: what was claimed, what became of it, what is left; with
/// what its notes know of the rows that wait.
pub fn totals(totals: &[TotalLine], waits: &[(String, u64)], watched: &[TotalLine]) -> Vec<String> {
    if totals.iter().all(|line| line.rows == 0) {
        return vec!["nothing was due".to_owned()];
    }
    let mut lines = parted(totals, waits, watched);
    lines.extend(tie_out(totals));
    lines
}

struct Column {
    head: String,
    cells: Vec<String>,
}

impl Column {
    fn rows(sums: &Sums, buckets: &[(&str, &str)]) -> Self {
        let cells = buckets.iter().map(|(bucket, _)| count(rows_of(sums, bucket))).collect();
        Self { head: "rows".to_owned(), cells }
    }

    fn amounts(sums: &Sums, buckets: &[(&str, &str)], code: &str) -> Self {
        let cell = |bucket: &str| match sums.get(bucket).and_then(|by| by.get(code)) {
            Some((rows, minor)) if *rows != 0 || *minor != 0 => amount(code, *minor),
            _none => "–".to_owned(),
        };
        let cells = buckets.iter().map(|(bucket, _)| cell(bucket)).collect();
        Self { head: code.to_owned(), cells }
    }

    fn width(&self) -> usize {
        let cells = self.cells.iter().chain([&self.head]).map(|cell| cell.chars().count());
        cells.max().unwrap_or(0).saturating_add(3)
    }
}

fn render(labels: &[&str], columns: &[Column]) -> Vec<String> {
    let label_width = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let indent = label_width.saturating_add(2);
    let mut lines = Vec::new();
    let mut rest = columns;
    while !rest.is_empty() {
        let mut used = indent;
        let mut taken = 0_usize;
        for column in rest {
            used = used.saturating_add(column.width());
            if taken > 0 && used > WIDTH {
                break;
            }
            taken = taken.saturating_add(1);
        }
        let (piece, later) = rest.split_at(taken);
        let head: String =
            piece.iter().map(|c| format!("{:>width$}", c.head, width = c.width())).collect();
        lines.push(format!("{:indent$}{head}", ""));
        for (at, label) in labels.iter().enumerate() {
            let cells: String = piece
                .iter()
                .filter_map(|c| c.cells.get(at).map(|cell| format!("{cell:>w$}", w = c.width())))
                .collect();
            lines.push(format!("  {label:<label_width$}{cells}"));
        }
        rest = later;
    }
    lines
}

fn waits(lead: &str, waits: &[(String, u64)], but: &[&str]) -> Vec<String> {
    let told = waits.iter().filter(|(reason, _)| !but.contains(&reason.as_str()));
    let texts: Vec<String> =
        told.map(|(reason, rows)| format!("{} {reason}", count(*rows))).collect();
    if texts.is_empty() { Vec::new() } else { wrapped(&format!("  {lead}: "), &texts, ", ") }
}

/// Joins words into lines that fit.
fn wrapped(lead: &str, words: &[String], separator: &str) -> Vec<String> {
    let indent = lead.chars().count();
    let mut lines = vec![lead.to_owned()];
    for (at, word) in words.iter().enumerate() {
        let last = at.saturating_add(1) == words.len();
        let word = if last { word.clone() } else { format!("{word}{separator}") };
        let fits = lines.last().is_some_and(|line| {
            let used = line.chars().count() + word.trim_end().chars().count();
            used <= WIDTH || line.trim().is_empty()
        });
        match lines.last_mut().filter(|_| fits) {
            Some(line) => line.push_str(&word),
            None => lines.push(format!("{:indent$}{word}", "")),
        }
    }
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

/// The two sides of a currency, over all tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sides {
    /// Code, or empty.
    pub currency: String,
    /// What the claims counted.
    pub claimed: Sum,
    /// What became of it.
    pub accounted: Sum,
    /// Whether both sides agree in every table: two differences never make one another good.
    pub tied: bool,
}

impl Sides {
    /// Claimed without accounted.
    pub fn residual(&self) -> Sum {
        self.claimed.minus(self.accounted)
    }
}

/// Both sides by currency.
pub fn sides(totals: &[TotalLine]) -> Vec<Sides> {
    let mut by_currency: BTreeMap<String, Sides> = BTreeMap::new();
    for line in crate::report::tie_out(totals).lines {
        let currency = line.currency.clone();
        let entry = by_currency.entry(line.currency.clone());
        let sides = entry.or_insert_with(|| Sides { currency, tied: true, ..Sides::default() });
        sides.claimed = sides.claimed.plus(line.claimed);
        sides.accounted = sides.accounted.plus(line.claimed.minus(line.residual()));
        sides.tied &= line.is_tied();
    }
    by_currency.into_values().collect()
}

/// The tie-out, one word a currency; an untied one says by how much, loudest of all.
pub fn tie_out(totals: &[TotalLine]) -> Vec<String> {
    let words: Vec<String> = sides(totals)
        .iter()
        .map(|sides| {
            let word = currency_word(&sides.currency);
            let residual = sides.residual();
            let minor = amount(&sides.currency, residual.amount_minor);
            if sides.tied && sides.currency.is_empty() {
                // Rows that could not be read have no amount to leave over.
                format!("{word} residual 0 rows ✓")
            } else if sides.tied {
                format!("{word} residual {minor} ✓")
            } else {
                format!("{word} residual {minor}, {} UNTIED", rows(residual.rows))
            }
        })
        .collect();
    if words.is_empty() { Vec::new() } else { wrapped("tie-out  ", &words, "   ") }
}

/// For who sees no summary: one line for each currency that does not tie out, and by how much.
pub fn untied(summary: &Summary) -> Vec<String> {
    let sides = sides(&summary.totals);
    let of = |currency: &String| {
        let sides = sides.iter().find(|sides| sides.currency == *currency && !sides.tied);
        let by = match sides.map(Sides::residual) {
            Some(left) => {
                format!("{} and {}", amount(currency, left.amount_minor), rows(left.rows))
            }
            None => "what its report counts".to_owned(),
        };
        let word = currency_word(currency);
        format!("tieout: untied: {word}: claimed and accounted for differ by {by}")
    };
    summary.untied.iter().map(of).collect()
}

/// What open lines of settlement files came to, where there were any.
fn of_lines(lines: &LinesNote) -> Option<String> {
    if lines.looked_at == 0 {
        return None;
    }
    let mut words = vec![
        format!("{} looked at", count(lines.looked_at)),
        counted(
            count(lines.matched),
            "agrees with a row that had ended",
            "agree with rows that had ended",
        ),
        format!("{} without a row", count(lines.open)),
    ];
    if lines.contradicted > 0 {
        words.push(format!("{} contradicted", rows(lines.contradicted)));
    }
    if lines.cases > 0 {
        words.push(format!("{} of a line opened", counted(lines.cases, "case", "cases")));
    }
    Some(format!("lines    {}", words.join(" · ")))
}

/// A window compared whole, where one was, and its payouts.
fn compared(summary: &Summary) -> Vec<String> {
    let told = [("compared", &summary.compared), ("payouts ", &summary.payouts)];
    let told = told.into_iter().filter(|(_, counts)| !counts.is_empty());
    let line = |(what, counts): (&str, &BTreeMap<&'static str, u64>)| {
        let all = counts.values().fold(0_u64, |sum, more| sum.saturating_add(*more));
        let word =
            |(word, times): (&&str, &u64)| format!("{} {}", count(*times), word.replace('_', " "));
        let words: Vec<String> = counts.iter().map(word).collect();
        format!("{what} {}: {}", count(all), words.join(" · "))
    };
    told.map(line).collect()
}

/// The last lines: cases, report, exit.
pub fn tail(summary: &Summary) -> Vec<String> {
    let mut lines: Vec<String> = of_lines(&summary.lines).into_iter().collect();
    lines.extend(compared(summary));
    let (new, closed, open) = summary.cases;
    if summary.cases != (0, 0, 0) {
        let list = if new > 0 { "   → tieout cases list" } else { "" };
        let (new, closed, open) = (count(new), count(closed), count(open));
        lines.push(format!("cases    {new} new · {closed} closed · {open} open{list}"));
    }
    if summary.approvals_refused > 0 {
        let refused = counted(count(summary.approvals_refused), "approval", "approvals");
        lines.push(format!("refused  {refused}   → tieout cases list --all --proposed refused"));
    }
    lines.extend(kept(summary));
    if let Some(dir) = &summary.report {
        lines.push(format!("report   {}", dir.display()));
    }
    if let Some(head) = summary.audit_head.as_ref().filter(|_| summary.report.is_some()) {
        lines.push(format!("audit    head {head}"));
    }
    let took = summary.ended_at - summary.started_at;
    let took = seconds(u64::try_from(took.num_milliseconds()).unwrap_or(0));
    lines.push(format!("exit {} ({}) in {took}", summary.exit.code(), summary.exit.class()));
    lines
}

/// So many rows are told of one by one.
const KEPT_TOLD: usize = 5;

/// What people's decisions that were carried out left in their rows.
fn kept(summary: &Summary) -> Vec<String> {
    let label = |at: usize| if at == 0 { "kept" } else { "" };
    let told = summary.kept.iter().take(KEPT_TOLD).enumerate();
    let mut lines: Vec<String> = told.map(|(at, kept)| format!("{:<9}{kept}", label(at))).collect();
    let more = summary.kept.len().saturating_sub(lines.len());
    if more > 0 {
        let more = counted(count(i128::try_from(more).unwrap_or(i128::MAX)), "other", "others");
        lines.push(format!("         and {more} → tieout cases show"));
    }
    lines
}

/// Everything after the head.
pub fn summary(summary: &Summary) -> Vec<String> {
    if summary.decided == 0 && summary.totals.iter().all(|line| line.rows == 0) {
        let mut lines = vec![nothing_due(summary)];
        lines.extend(held(summary));
        lines.extend(tail(summary));
        lines.extend(attention(summary));
        return lines;
    }
    let mut lines = accounts(&summary.accounts);
    lines.extend(table(summary));
    lines.extend(withheld(summary));
    lines.extend(tie_out(&summary.totals));
    lines.extend(tail(summary));
    lines.extend(attention(summary));
    lines
}

/// That the table tells of what was decided, where the mode kept some of it from the rows.
fn withheld(summary: &Summary) -> Option<String> {
    let some = Some(summary.withheld).filter(|rows| *rows > 0)?;
    Some(format!("withheld {}", withheld_words(some)))
}

/// How many rows the mode kept a decision from.
pub fn withheld_words(some: u64) -> String {
    format!("{} by the mode: nothing was written or handed back", rows(some))
}

/// That nothing is due, and what waits for later, where that was asked for.
fn nothing_due(summary: &Summary) -> String {
    match summary.waiting.as_ref().filter(|waiting| waiting.rows > 0) {
        Some(Waiting { rows: waiting, next, .. }) => {
            let wait = if *waiting == 1 { "waits" } else { "wait" };
            format!("nothing is due; {} {wait}, the next at {}", rows(*waiting), at(*next))
        }
        None => "nothing is due".to_owned(),
    }
}

/// That nothing is due because another run, at work or dead, has the rows.
fn held(summary: &Summary) -> Option<String> {
    let (run, number) = summary.waiting.as_ref()?.held.as_ref()?;
    Some(format!("held     {} by run {run}", rows(*number)))
}

/// A dry run lists at most so many rows; `--json` lists every one.
const PLAN_LISTED: usize = 200;

/// What a dry run would do, counted as it goes on; its size does not grow with the rows.
#[derive(Debug, Default)]
pub struct Plan {
    /// Whether a key alone does not name a row.
    names_tables: bool,
    outcomes: BTreeMap<Outcome, u64>,
    changed: u64,
    listed: Vec<String>,
    lines: Vec<String>,
    lines_more: u64,
}

impl Plan {
    /// Of rows of so many tables.
    pub fn of(tables: usize) -> Self {
        Self { names_tables: tables > 1, ..Self::default() }
    }

    /// One more line of a file that would become the own of a row that had ended.
    pub fn put_line(&mut self, place: LinePlace, table: &str, id: &str) {
        if self.lines.len() < PLAN_LISTED {
            self.lines.push(format!("  line F{place} would be row {id}'s of {table}"));
        } else {
            self.lines_more = self.lines_more.saturating_add(1);
        }
    }

    /// One more row.
    pub fn put(&mut self, row: &JournalRow) {
        let times = self.outcomes.entry(row.outcome).or_default();
        *times = times.saturating_add(1);
        if row.status_before != row.status_after {
            self.changed = self.changed.saturating_add(1);
        }
        if self.listed.len() < PLAN_LISTED {
            self.listed.push(planned(row, self.names_tables));
        }
    }

    /// The plan, in words.
    pub fn lines(&self, summary: &Summary) -> Vec<String> {
        let decided: u64 = self.outcomes.values().sum();
        let words: Vec<String> = self
            .outcomes
            .iter()
            .map(|(outcome, rows)| format!("{} → {}", count(*rows), outcome.screen()))
            .collect();
        let mut lines = match decided {
            0 => {
                let first = format!("{}. Nothing was written.", nothing_due(summary));
                std::iter::once(first).chain(held(summary)).collect()
            }
            _some => vec![
                format!("would decide {} ({})", rows(decided), words.join(", ")),
                format!("and change the status of {}. Nothing was written.", rows(self.changed)),
            ],
        };
        lines.extend(self.listed.iter().cloned());
        let listed = u64::try_from(self.listed.len()).unwrap_or(u64::MAX);
        if decided > listed {
            let more = count(decided.saturating_sub(listed));
            lines.push(format!("  … and {more} more: --json lists every one"));
        }
        lines.extend(of_lines(&summary.lines));
        lines.extend(compared(summary));
        lines.extend(self.lines.iter().cloned());
        if self.lines_more > 0 {
            let more = count(self.lines_more);
            lines.push(format!("  … and {more} more: --json lists every one"));
        }
        lines.extend(tail(summary).pop());
        lines
    }
}

fn planned(row: &JournalRow, names_tables: bool) -> String {
    let change = match row.outcome {
        _changed if row.status_after != row.status_before => {
            format!("{} → {}", row.status_before, row.status_after)
        }
        Outcome::Wait => format!("{}, waits", row.status_before),
        outcome => format!("{} → {}", row.status_before, outcome.screen()),
    };
    let of = if names_tables { format!(" of {}", row.table) } else { String::new() };
    let why = row.reason.as_str();
    format!("  {}{of}  {change}  {}: {} ({why})", row.key, row.account, row.text)
}

/// A run that another one found dead.
pub fn abandoned(run: &crate::store::records::AbandonedRun) -> String {
    format!(
        "run {} stopped without finishing at {} (no sign of life for 2 min). Closed as \
         abandoned: {} done, {} untouched. Continuing.",
        run.id,
        to_short_text(run.heartbeat_at),
        rows(run.decided),
        count(run.released)
    )
}

/// The words of `--fail-on` that hold, and what to look at next.
pub fn attention(summary: &Summary) -> Option<String> {
    let held = &summary.attention;
    let (first, is_of_cases) = (held.first()?, held.iter().any(|word| word.contains("C-")));
    let next = match () {
        () if is_of_cases => "tieout cases list".to_owned(),
        () if held.len() == 1 && first == "empty" => "tieout doctor".to_owned(),
        () => format!("tieout runs show {}", summary.run_id),
    };
    Some(format!("tieout: attention: {} → {next}", held.join(", ")))
}

/// The line that ends everything on stderr where a run did not end well.
pub fn last_line(summary: &Summary) -> String {
    let report = summary.report.as_ref().map(|dir| format!(" report={}", dir.display()));
    format!(
        "tieout: run {} exit={} class={} examined={} cases_new={}{}",
        summary.run_id,
        summary.exit.code(),
        summary.exit.class(),
        summary.decided,
        summary.cases.0,
        report.unwrap_or_default()
    )
}

/// A word as a shell takes it: keys of several columns hold brackets and quotes.
pub fn shell_word(text: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./:@%+=,".contains(letter);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// An instant for people, or a dash.
pub fn at(at: Option<Instant>) -> String {
    at.map_or("–".to_owned(), to_short_text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use crate::model::time::from_text;

    fn line(currency: &str, bucket: &str, rows: i64, minor: i128) -> TotalLine {
        TotalLine {
            table: "charges".to_owned(),
            currency: currency.to_owned(),
            bucket: bucket.to_owned(),
            rows,
            amount_minor: minor,
        }
    }

    #[test]
    fn a_key_is_quoted_where_a_shell_needs_it() {
        for (key, want) in [
            ("pay_9044", "pay_9044"),
            (r#"["acme","7"]"#, r#"'["acme","7"]'"#),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(key), want);
        }
    }

    fn sample() -> Summary {
        Summary {
            run_id: "01990000-0000-7000-8000-000000000001".to_owned(),
            exit: Exit::Ok,
            totals: vec![
                line("EUR", "claimed", 1_275, 8_891_577),
                line("JPY", "claimed", 9, 322_000),
                line("EUR", "succeeded", 1_213, 8_431_022),
                line("JPY", "succeeded", 6, 310_000),
                line("EUR", "retryable", 31, 200_400),
                line("EUR", "review", 6, 87_155),
                line("JPY", "review", 3, 12_000),
                line("EUR", "wait", 25, 173_000),
            ],
            untied: Vec::new(),
            waits: vec![("within_grace".to_owned(), 22), ("psp_pending".to_owned(), 3)],
            watched: Vec::new(),
            waiting: None,
            compared: BTreeMap::new(),
            payouts: BTreeMap::new(),
            lines: LinesNote::default(),
            decided: 1_284,
            by_account: BTreeMap::new(),
            by_reason: BTreeMap::new(),
            withheld: 0,
            cases: (9, 4, 17),
            attention: Vec::new(),
            approvals_refused: 0,
            kept: Vec::new(),
            report: Some("reports/2026-11-19/x".into()),
            hint: None,
            audit_head: Some("7f3a".to_owned()),
            accounts: vec![AccountNote {
                account: "stripe-eu".to_owned(),
                rows: 1_284,
                answered: 1_284,
                requests: 312,
                duration_ms: 41_000,
                ..AccountNote::default()
            }],
            not_examined: Vec::new(),
            started_at: from_text("2026-11-19T08:00:00Z").unwrap(),
            ended_at: from_text("2026-11-19T08:00:44Z").unwrap(),
            dry_run: false,
        }
    }

    #[test]
    fn the_summary_reads_like_the_specification() {
        let want = "\
stripe-eu    ▕███████████████▏ 1,284/1,284 rows  312 look-ups  0 retries  41 s
                      rows         EUR       JPY
  succeeded          1,219   84,310.22   310,000
  retryable             31    2,004.00         –
  needs a person         9      871.55    12,000
  still processing      25    1,730.00         –
  of those still processing: 22 within_grace, 3 psp_pending
tie-out  EUR residual 0.00 ✓   JPY residual 0 ✓
cases    9 new · 4 closed · 17 open   → tieout cases list
report   reports/2026-11-19/x
audit    head 7f3a
exit 0 (ok) in 44 s";
        assert_eq!(summary(&sample()).join("\n"), want);
    }

    #[test]
    fn what_the_mode_withheld_is_told() {
        let told = |withheld| {
            let some = Summary { withheld, ..sample() };
            summary(&some).into_iter().find(|line| line.starts_with("withheld"))
        };
        assert_eq!(told(0), None);
        let line = told(1_234).unwrap();
        let want = "withheld 1,234 rows by the mode: nothing was written or handed back";
        assert_eq!(line, want);
        assert!(line.chars().count() <= WIDTH);
    }

    #[test]
    fn approvals_that_were_refused_are_told() {
        let told = |approvals_refused| {
            let some = Summary { approvals_refused, ..sample() };
            summary(&some).into_iter().find(|line| line.starts_with("refused"))
        };
        assert_eq!(told(0), None);
        let list = "   → tieout cases list --all --proposed refused";
        assert_eq!(told(1).unwrap(), format!("refused  1 approval{list}"));
        assert_eq!(told(4_000).unwrap(), format!("refused  4,000 approvals{list}"));
        assert!(told(4_000).unwrap().chars().count() <= WIDTH);
    }

    #[test]
    fn what_undos_left_is_told_of_the_first() {
        let told = |undos: u64| {
            let kept = (1..=undos).map(|case| format!("C-{case}: it keeps that one")).collect();
            let lines = summary(&Summary { kept, ..sample() });
            let begin = lines.iter().position(|line| line.starts_with("kept"));
            begin.map(|begin| lines[begin..].to_vec()).unwrap_or_default()
        };
        assert!(told(0).is_empty());
        let lines = told(7);
        assert_eq!(lines[0], "kept     C-1: it keeps that one");
        assert_eq!(lines[4], "         C-5: it keeps that one");
        assert_eq!(lines[5], "         and 2 others → tieout cases show");
        assert!(lines[6].starts_with("report"), "{lines:?}");
    }

    #[test]
    fn an_untied_run_says_by_how_much() {
        let mut untied = sample();
        untied.totals.push(line("EUR", "claimed", 1, 500));
        let text = tie_out(&untied.totals).join("\n");
        assert!(text.contains("EUR residual 5.00, 1 row UNTIED"), "{text}");
        assert!(text.contains("JPY residual 0 ✓"), "{text}");
        untied.untied = vec!["EUR".to_owned(), "USD".to_owned()];
        let told = super::untied(&untied);
        let differ = "claimed and accounted for differ by";
        let want = [
            format!("tieout: untied: EUR: {differ} 5.00 and 1 row"),
            format!("tieout: untied: USD: {differ} what its report counts"),
        ];
        assert_eq!(told, want);
    }

    #[test]
    fn many_currencies_stay_within_eighty_columns() {
        let mut wide = sample();
        for code in ["AUD", "BHD", "CAD", "CHF", "CZK", "DKK", "GBP", "NOK", "SEK", "USD"] {
            wide.totals.push(line(code, "claimed", 1, 1_234_567_890));
            wide.totals.push(line(code, "wait", 1, 1_234_567_890));
        }
        let lines = summary(&wide);
        for line in &lines {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
        let text = lines.join("\n");
        assert!(text.contains("1,234,567.890"), "three decimals of BHD: {text}");
    }

    #[test]
    fn a_run_with_nothing_due_says_so() {
        let mut nothing = Summary { totals: vec![], decided: 0, report: None, ..sample() };
        assert!(summary(&nothing).join("\n").starts_with("nothing is due\n"));
        nothing.waiting = Some(Waiting { rows: 0, next: None, held: None });
        assert!(summary(&nothing).join("\n").starts_with("nothing is due\n"));
        let next = Some(from_text("2026-11-19T09:12:00Z").unwrap());
        nothing.waiting = Some(Waiting { rows: 28, next, held: Some(("r7".to_owned(), 200)) });
        assert_eq!(summary(&nothing)[1], "held     200 rows by run r7");
        let told = "nothing is due; 28 rows wait, the next at 2026-11-19T09:12:00Z";
        assert_eq!(summary(&nothing)[0], told);
        let planned = Plan::default().lines(&nothing);
        assert_eq!(planned[0], format!("{told}. Nothing was written."));
    }

    #[test]
    fn watched_rows_have_a_word_of_their_own() {
        let mut some = sample();
        some.watched = vec![line("EUR", "watched", 5, 50_000)];
        some.waits[0].1 = 17;
        some.waits.push(("watched".to_owned(), 5));
        let text = table(&some).join("\n");
        assert!(text.contains("still processing      20    1,230.00"), "{text}");
        assert!(text.contains("watched                5      500.00"), "{text}");
        assert!(text.ends_with("of those still processing: 17 within_grace, 3 psp_pending"));
        assert!(tie_out(&some.totals).join("").contains("EUR residual 0.00 ✓"));
        // A stored run reads the same; one of an older version has no sums of watched rows.
        let stored = totals(&some.totals, &some.waits, &some.watched).join("\n");
        assert_eq!(stored, [text, tie_out(&some.totals).join("\n")].join("\n"));
        let older = totals(&some.totals, &some.waits, &[]).join("\n");
        assert!(older.contains("still processing      25    1,730.00"), "{older}");
        assert!(older.contains("17 within_grace, 3 psp_pending, 5 watched"), "{older}");
        let silent = totals(&some.totals, &[], &[]).join("\n");
        assert!(silent.contains("processing      25") && !silent.contains("to wait"), "{silent}");
        // Which rows had changed meanwhile is not known by reason.
        some.totals.push(line("EUR", "superseded", 2, 20_000));
        some.waits[0].1 = 19;
        let text = table(&some).join("\n");
        let lead = "found to wait, changed ones included: 19 within_grace";
        assert!(text.contains("still processing       25") && text.contains(lead), "{text}");
        some.totals.retain(|line| line.bucket != "wait");
        let text = table(&some).join("\n");
        assert!(!text.contains("within_grace"), "{text}");
    }
}
