//! The audit chain: records within a run's writer, and closed runs one after the other.
//!
//! Each record carries the hash of the one before it by the same run and writer, so that workers
//! side by side never queue for one head; closing a run binds its writers' heads and counts to the
//! run that was closed before it. Nothing is taken out of it but the records of whole closed runs,
//! which leave their heads behind: verifying reads whatever is there, and binds all runs.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::model::transaction::hex;
use crate::store::driver::AuditFinding;
use crate::store::prune::heads_of;
use crate::store::records::{JournalRow, RunRow, RunState};

/// How many breaks are spelled out; a chain cut in two breaks once, not a million times.
const BREAKS_SHOWN: usize = 100;

/// Where one writer's chain ended.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Head {
    /// The writer's name within its run.
    pub writer: String,
    /// Records written: the last `seq`.
    pub count: i64,
    /// The last record's hash.
    pub hash: String,
}

/// The hash that closes a run: over the last closed run's hash and the run's heads.
pub fn close_hash(
    previous: Option<&str>,
    number: i64,
    run_id: &str,
    state: RunState,
    heads: &[Head],
) -> String {
    let mut heads: Vec<&Head> = heads.iter().collect();
    heads.sort();
    let heads: Vec<(&str, i64, &str)> =
        heads.iter().map(|h| (h.writer.as_str(), h.count, h.hash.as_str())).collect();
    let text = serde_json::json!([1, number, run_id, state.as_str(), heads]).to_string();
    let mut hash = Sha256::new();
    hash.update(previous.unwrap_or_default().as_bytes());
    hash.update([b'\n']);
    hash.update(text.as_bytes());
    hex(&hash.finalize())
}

/// Reads the chain whole: first every evidence in any order and every record in the order (run,
/// writer, seq), then every run that was closed by its close number, and every
/// run that goes on.
#[derive(Debug, Default)]
pub struct Verifier {
    finding: AuditFinding,
    heads: BTreeMap<String, Vec<Head>>,
    /// The heads of runs whose records were pruned.
    pruned: BTreeMap<String, Vec<Head>>,
    unshown: usize,
}

impl Verifier {
    fn broken(&mut self, text: String) {
        if self.finding.breaks.len() < BREAKS_SHOWN {
            self.finding.breaks.push(text);
        } else {
            self.unshown = self.unshown.saturating_add(1);
        }
    }

    /// One evidence.
    pub fn evidence(&mut self, sha256: &str, body: &str) {
        let found = hex(&Sha256::digest(body.as_bytes()));
        if found != sha256 {
            self.broken(format!("evidence {sha256}: its body hashes to {found}"));
        }
    }

    /// A record whose evidence is not there.
    pub fn evidence_missing(&mut self, run_id: &str, writer: &str, seq: i64) {
        self.broken(format!("record {run_id}/{writer}/{seq}: its evidence is missing"));
    }

    /// The next record.
    pub fn record(&mut self, record: &JournalRow) {
        self.finding.records = self.finding.records.saturating_add(1);
        let place = format!("record {}/{}/{}", record.run_id, record.writer, record.seq);
        let heads = self.heads.entry(record.run_id.clone()).or_default();
        let known = heads.last_mut().filter(|head| head.writer == record.writer);
        let (seq, prev) = match &known {
            Some(head) => (head.count.saturating_add(1), head.hash.clone()),
            None => (1, record.run_id.clone()),
        };
        let head =
            Head { writer: record.writer.clone(), count: record.seq, hash: record.hash.clone() };
        match known {
            Some(known) => *known = head,
            None => heads.push(head),
        }
        if record.seq != seq {
            self.broken(format!("{place}: expected number {seq}; records before it are missing"));
        } else if record.prev_hash != prev {
            self.broken(format!("{place}: it follows {}, not {prev}", record.prev_hash));
        }
        let expected = record.expected_hash();
        if record.hash != expected {
            self.broken(format!("{place}: its content hashes to {expected}, not {}", record.hash));
        }
    }

    /// The next record, where it cannot even be read: it keeps its place, and is a break.
    pub fn unreadable(&mut self, run_id: &str, writer: &str, seq: i64, hash: &str, why: &str) {
        self.finding.records = self.finding.records.saturating_add(1);
        let heads = self.heads.entry(run_id.to_owned()).or_default();
        let head = Head { writer: writer.to_owned(), count: seq, hash: hash.to_owned() };
        match heads.last_mut().filter(|head| head.writer == writer) {
            Some(known) => *known = head,
            None => heads.push(head),
        }
        self.broken(format!("record {run_id}/{writer}/{seq}: it cannot be read: {why}"));
    }

    /// A run whose records were pruned: its heads, as they were left. Before any run.
    pub fn pruned_run(&mut self, run_id: &str, is_done: bool, heads: &str) {
        if !is_done {
            let text = "its prune was left open, so that its records could be deleted";
            self.broken(format!("run {run_id}: {text}"));
        }
        match heads_of(heads) {
            Some(heads) => {
                self.pruned.insert(run_id.to_owned(), heads);
            }
            None => {
                self.broken(format!("run {run_id}: the heads that its prune left are no heads"));
            }
        }
    }

    /// The heads that a run is bound by: those of its records, or those that its prune left.
    fn heads_of_run(&mut self, run: &RunRow) -> Vec<Head> {
        let there = self.heads.remove(&run.id);
        let Some(left) = self.pruned.remove(&run.id) else {
            let start = self.finding.goes_back_to.map_or(run.started_at, |s| s.min(run.started_at));
            self.finding.goes_back_to = there.as_ref().map(|_| start).or(self.finding.goes_back_to);
            return there.unwrap_or_default();
        };
        self.finding.pruned_runs = self.finding.pruned_runs.saturating_add(1);
        if there.is_some() {
            self.broken(format!("run {}: it was pruned, and has records", run.id));
        }
        left
    }

    /// A run that goes on: its records are counted, and bound when it is closed.
    pub fn running_run(&mut self, run: &RunRow) {
        let heads = self.heads_of_run(run);
        let records: i64 = heads.iter().map(|head| head.count).sum();
        if run.journal_count != records {
            self.broken(format!(
                "run {}: it wrote {} records so far, and {records} are there",
                run.id, run.journal_count
            ));
        }
    }

    /// The next closed run, by its close number; runs that go on are not bound yet.
    pub fn closed_run(&mut self, run: &RunRow) {
        self.finding.runs = self.finding.runs.saturating_add(1);
        let heads = self.heads_of_run(run);
        let records: i64 = heads.iter().map(|head| head.count).sum();
        let number = self.finding.runs;
        if run.close_number != Some(number) {
            self.broken(format!("run {}: expected to be closed as number {number}", run.id));
        }
        if run.journal_count != records {
            self.broken(format!(
                "run {}: it wrote {} records, and {records} are there",
                run.id, run.journal_count
            ));
        }
        let previous = self.finding.head.take();
        let close_number = run.close_number.unwrap_or(number);
        let expected = close_hash(previous.as_deref(), close_number, &run.id, run.state, &heads);
        if run.close_hash.as_deref() != Some(expected.as_str()) {
            self.broken(format!(
                "run {}: its end hashes to {expected}, not {}",
                run.id,
                run.close_hash.as_deref().unwrap_or("nothing")
            ));
        }
        self.finding.head = run.close_hash.clone();
    }

    /// What was found.
    pub fn finish(mut self) -> AuditFinding {
        for run_id in std::mem::take(&mut self.heads).into_keys() {
            self.broken(format!("run {run_id}: it has records, and is gone itself"));
        }
        if self.unshown > 0 {
            self.finding.breaks.push(format!("and {} more", self.unshown));
        }
        self.finding
    }
}
