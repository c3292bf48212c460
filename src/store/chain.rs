//! The audit chain: how a run's records are bound to the run before it, and how all is verified.
//!
//! Pure and the same for both databases. Each writer's records hash the one before; closing a run
//! hashes its writers' heads and counts, its control totals and the last closed run's hash. This
//! file never reads a database: a driver feeds it, in the order of [`Audit`]'s verbs.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::model::time::{Instant, to_text};
use crate::model::transaction::hex;
use crate::store::driver::AuditFinding;
use crate::store::records::{JournalRow, RunRow, TotalLine};

/// How many breaks are named one by one; a chain that was rewritten has as many as records.
const BREAKS_NAMED: usize = 100;

/// One writer's end within a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriterHead {
    /// The writer's name.
    pub name: String,
    /// How many records it wrote.
    pub count: i64,
    /// Its last record's hash.
    pub head: String,
}

/// Everything that closing a run binds.
#[derive(Debug, Clone)]
pub struct RunClose<'a> {
    /// The run.
    pub run_id: &'a str,
    /// Its place among closed runs, from 1.
    pub number: i64,
    /// The hash of the run closed before; `None` for the first.
    pub prev: Option<&'a str>,
    /// How it ended.
    pub state: &'a str,
    /// When it began.
    pub started_at: Instant,
    /// When it was closed.
    pub ended_at: Instant,
    /// Its exit code; `None` for an abandoned one.
    pub exit_code: Option<i32>,
    /// Its writers, in any order.
    pub writers: &'a [WriterHead],
    /// Its control totals (`claimed`, `released`), in any order.
    pub totals: &'a [TotalLine],
}

impl RunClose<'_> {
    /// The hash that the closed run must carry.
    pub fn hash(&self) -> String {
        let mut writers: Vec<&WriterHead> = self.writers.iter().collect();
        writers.sort_by(|a, b| a.name.cmp(&b.name));
        let mut totals: Vec<&TotalLine> = self.totals.iter().filter(|t| t.rows > 0).collect();
        totals.sort_by(|a, b| {
            (&a.table, &a.currency, &a.bucket).cmp(&(&b.table, &b.currency, &b.bucket))
        });
        let text = serde_json::json!([
            1,
            self.run_id,
            self.number,
            self.prev.unwrap_or_default(),
            self.state,
            to_text(self.started_at),
            to_text(self.ended_at),
            self.exit_code,
            writers.iter().map(|w| (&w.name, w.count, &w.head)).collect::<Vec<_>>(),
            totals
                .iter()
                .map(|t| (&t.table, &t.currency, &t.bucket, t.rows, t.amount_minor.to_string()))
                .collect::<Vec<_>>(),
        ])
        .to_string();
        hex(&Sha256::digest(text.as_bytes()))
    }
}

/// Verifies the chain as it is fed: for each run [`Audit::run`], its records in the order
/// (writer, seq), then [`Audit::end_run`]. Closed runs come by number, running ones after them.
#[derive(Debug, Default)]
pub struct Audit {
    finding: AuditFinding,
    unnamed: i64,
    last_number: i64,
    heads: BTreeMap<String, WriterHead>,
    current: Option<(RunRow, Option<String>, Vec<TotalLine>)>,
}

impl Audit {
    /// Begins a run: its row, the `prev_close_hash` that it stores, its control totals.
    pub fn run(&mut self, run: RunRow, prev: Option<String>, totals: Vec<TotalLine>) {
        self.finding.runs = self.finding.runs.saturating_add(1);
        self.heads.clear();
        self.current = Some((run, prev, totals));
    }

    /// One record of the run.
    pub fn record(&mut self, row: &JournalRow) {
        self.place(&row.run_id, &row.writer, row.seq, &row.prev_hash, &row.hash);
        if row.hash != row.expected_hash() {
            self.broken(format!(
                "run {}: record {} of writer {} is not the one that was written: its hash is {}, \
                 and its content hashes to {}",
                row.run_id,
                row.seq,
                row.writer,
                row.hash,
                row.expected_hash()
            ));
        }
    }

    /// A record that this version cannot even read: it counts in its place, and as a break.
    pub fn unreadable(&mut self, stored: &StoredPlace, problem: &str) {
        let StoredPlace { run_id, writer, seq, prev_hash, hash } = stored;
        self.place(run_id, writer, *seq, prev_hash, hash);
        self.broken(format!(
            "run {run_id}: record {seq} of writer {writer} is unreadable: {problem}"
        ));
    }

    fn place(&mut self, run_id: &str, writer: &str, seq: i64, prev_hash: &str, hash: &str) {
        self.finding.records = self.finding.records.saturating_add(1);
        let (count, head) = match self.heads.get(writer) {
            Some(before) => (before.count, before.head.clone()),
            None => (0, run_id.to_owned()),
        };
        if seq != count.saturating_add(1) {
            self.broken(format!(
                "run {run_id}: writer {writer} goes from record {count} to {seq}: \
                 records are missing or out of order"
            ));
        }
        if prev_hash != head {
            self.broken(format!(
                "run {run_id}: record {seq} of writer {writer} follows {prev_hash}, \
                 and the record before it is {head}"
            ));
        }
        let head = WriterHead { name: writer.to_owned(), count: seq, head: hash.to_owned() };
        self.heads.insert(writer.to_owned(), head);
    }

    /// Ends the run: its counts, and for a closed one its place and its hash.
    pub fn end_run(&mut self) {
        let Some((run, prev, totals)) = self.current.take() else { return };
        let heads: Vec<WriterHead> = std::mem::take(&mut self.heads).into_values().collect();
        let counted = heads.iter().fold(0_i64, |sum, head| sum.saturating_add(head.count));
        if counted != run.journal_count {
            self.broken(format!(
                "run {}: {counted} records are there, and {} were written",
                run.id, run.journal_count
            ));
        }
        let (Some(number), Some(stored)) = (run.close_number, run.close_hash.clone()) else {
            return;
        };
        if number != self.last_number.saturating_add(1) {
            self.broken(format!(
                "closed run {number} ({}) follows closed run {}: runs are missing",
                run.id, self.last_number
            ));
        }
        if prev != self.finding.head {
            self.broken(format!(
                "run {}: it was closed after {}, and the run closed before it is {}",
                run.id,
                prev.as_deref().unwrap_or("none"),
                self.finding.head.as_deref().unwrap_or("none")
            ));
        }
        let expected = RunClose {
            run_id: &run.id,
            number,
            prev: prev.as_deref(),
            state: run.state.as_str(),
            started_at: run.started_at,
            ended_at: run.ended_at.unwrap_or(run.started_at),
            exit_code: run.exit_code,
            writers: &heads,
            totals: &totals,
        }
        .hash();
        if stored != expected {
            self.broken(format!(
                "run {}: it was closed as {stored}, and what is there hashes to {expected}",
                run.id
            ));
        }
        self.last_number = number;
        self.finding.head = Some(stored);
    }

    /// One piece of evidence with the hash that it is stored under.
    pub fn evidence(&mut self, sha256: &str, body: &str) {
        let actual = hex(&Sha256::digest(body.as_bytes()));
        if actual != sha256 {
            self.broken(format!("evidence {sha256} was changed: it hashes to {actual}"));
        }
    }

    /// Notes a break that the driver found by itself: a record whose evidence or run is gone.
    pub fn broken(&mut self, text: String) {
        if self.finding.breaks.len() < BREAKS_NAMED {
            self.finding.breaks.push(text);
        } else {
            self.unnamed = self.unnamed.saturating_add(1);
        }
    }

    /// What was found.
    pub fn finish(mut self) -> AuditFinding {
        if self.unnamed > 0 {
            self.finding.breaks.push(format!("… and {} breaks more", self.unnamed));
        }
        self.finding
    }
}

/// Where an unreadable record stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredPlace {
    /// The run.
    pub run_id: String,
    /// The writer.
    pub writer: String,
    /// Its number.
    pub seq: i64,
    /// The stored hash of the record before.
    pub prev_hash: String,
    /// The stored hash.
    pub hash: String,
}
