//! Vectors in place of a database, and a run that left one of everything.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tieout::decide::decision::Asked;
use tieout::model::reason::{Outcome, Reason};
use tieout::model::time::{Instant, from_text};
use tieout::report;
use tieout::report::build::{BuildOptions, Built};
use tieout::report::cells::Dialect;
use tieout::report::columns::MANIFEST;
use tieout::report::error::ReportError;
use tieout::report::source::Source;
use tieout::store::compare::Compared;
use tieout::store::driver::CaseFilter;
use tieout::store::error::StoreError;
use tieout::store::files::{FileOfRun, LineOfRun, LinePlace, LinesOfRun, StoredLine};
use tieout::store::payouts::{Booking, NamedPayout, Payout, PayoutKey};
use tieout::store::records::{Applied, CaseRow, JournalRow, RunRow, RunState, TotalLine};

pub const RUN: &str = "0193-run";

pub fn at(text: &str) -> Instant {
    from_text(text).unwrap()
}

pub fn run_row() -> RunRow {
    RunRow {
        id: RUN.into(),
        command: "run".into(),
        state: RunState::Complete,
        started_at: at("2026-11-19T23:30:00Z"),
        heartbeat_at: at("2026-11-19T23:31:00Z"),
        ended_at: Some(at("2026-11-19T23:31:00Z")),
        host: "worker-3".into(),
        pid: 811,
        version: env!("CARGO_PKG_VERSION").into(),
        config_sha256: "c0".into(),
        policy_version: "p1".into(),
        scope: r#"{"timezone":"Europe/Berlin","window":null}"#.into(),
        exit_code: Some(0),
        exit_class: Some("ok".into()),
        notes: r#"{"accounts":[{"account":"stripe_live","rows":3,"answered":3,"requests":7}]}"#
            .into(),
        journal_count: 0,
        close_number: Some(4),
        close_hash: Some("7f3a".into()),
    }
}

/// A record with a place of its own; everything else may be overwritten.
pub fn record(number: i64) -> JournalRow {
    JournalRow {
        run_id: RUN.into(),
        writer: "w0".into(),
        seq: number,
        at: at("2026-11-19T23:30:10.5Z"),
        table: "charges".into(),
        key: format!("{number}"),
        account: "stripe_live".into(),
        tag: format!("pay_{number}"),
        kind: "charge".into(),
        currency: "EUR".into(),
        amount_minor: 1_999,
        asked: Asked::Run,
        outcome: Outcome::Succeeded,
        reason: Reason::Captured,
        rule: None,
        text: "captured 19.99 EUR".into(),
        applied: Applied::Yes,
        status_before: "CAPTURE SUBMITTED".into(),
        status_after: "CAPTURED".into(),
        psp_reference: Some(format!("pi_{number}")),
        psp_status: Some("succeeded".into()),
        psp_currency: Some("EUR".into()),
        psp_amount_minor: Some(1_999),
        fingerprint: "f".into(),
        evidence_sha256: "e0".into(),
        row_created_at: Some(at("2026-11-17T08:00:00Z")),
        row_attempted_at: None,
        checks: 1,
        next_check_at: None,
        handback_number: None,
        case_number: None,
        policy_version: "p1".into(),
        prev_hash: String::new(),
        hash: String::new(),
    }
}

pub fn review(number: i64, case: i64, reason: Reason) -> JournalRow {
    JournalRow {
        outcome: Outcome::Review,
        reason,
        case_number: Some(case),
        status_after: "CAPTURE SUBMITTED".into(),
        ..record(number)
    }
}

pub fn case_of(record: &JournalRow, number: i64) -> CaseRow {
    CaseRow {
        number,
        subject_kind: "row".into(),
        table: record.table.clone(),
        subject: record.key.clone(),
        reason: record.reason,
        text: record.text.clone(),
        open: true,
        account: Some(record.account.clone()),
        currency: record.currency.clone(),
        amount_minor: record.amount_minor,
        rule: None,
        policy_version: "p1".into(),
        evidence_sha256: Some(record.evidence_sha256.clone()),
        opened_at: record.at,
        opened_run: RUN.into(),
        last_seen_at: record.at,
        last_run: RUN.into(),
        times_seen: 1,
        owner: None,
        closed_at: None,
        resolution: None,
    }
}

/// In place of a database.
#[derive(Debug, Clone)]
pub struct Vectors {
    pub run: RunRow,
    pub journal: Vec<JournalRow>,
    /// Records of other runs, for the history of a row.
    pub elsewhere: Vec<JournalRow>,
    pub totals: Vec<TotalLine>,
    pub cases: Vec<CaseRow>,
    pub evidence: BTreeMap<String, String>,
    /// Lines of files that the run matched, and that it noted.
    pub lines: [Vec<LineOfRun>; 2],
    pub files: Vec<FileOfRun>,
    /// What a comparison of the run's window found.
    pub compared: Vec<Compared>,
    pub payouts: Vec<Payout>,
    /// When the records of runs were pruned.
    pub pruned: BTreeMap<String, Instant>,
    /// Fails at this call, counted from 0.
    pub fails_at: Option<usize>,
    pub calls: RefCell<Vec<&'static str>>,
    /// No manifest may stand here while anything is still being read.
    pub watched: Option<PathBuf>,
}

impl Vectors {
    /// Chains the records, and counts what a claim would have counted.
    pub fn of(mut journal: Vec<JournalRow>) -> Self {
        journal.sort_by(|a, b| (&a.writer, a.seq).cmp(&(&b.writer, b.seq)));
        let mut heads: BTreeMap<String, (i64, String)> = BTreeMap::new();
        for record in &mut journal {
            let writer = record.writer.clone();
            let (seq, hash) = heads.remove(&writer).unwrap_or((0, RUN.to_owned()));
            record.chain(&writer, seq + 1, &hash);
            heads.insert(writer, (seq + 1, record.hash.clone()));
        }
        let cases = journal
            .iter()
            .filter(|r| r.applied != Applied::Superseded)
            .filter_map(|r| r.case_number.map(|number| case_of(r, number)))
            .collect();
        let mut run = run_row();
        run.journal_count = journal.len() as i64;
        Self {
            run,
            totals: totals_of(&journal),
            journal,
            elsewhere: Vec::new(),
            cases,
            evidence: BTreeMap::new(),
            lines: [Vec::new(), Vec::new()],
            files: Vec::new(),
            compared: Vec::new(),
            payouts: Vec::new(),
            pruned: BTreeMap::new(),
            fails_at: None,
            calls: RefCell::new(Vec::new()),
            watched: None,
        }
    }

    fn call(&self, name: &'static str) -> Result<(), StoreError> {
        let number = self.calls.borrow().len();
        self.calls.borrow_mut().push(name);
        if let Some(root) = &self.watched {
            assert!(!has_manifest(root), "a manifest stands there at {name}, call {number}");
        }
        if self.fails_at == Some(number) {
            return Err(StoreError::Unexpected { doing: "reading", problem: "gone".into() });
        }
        Ok(())
    }
}

/// Both sides of the tie-out, as a database would sum them.
pub fn totals_of(journal: &[JournalRow]) -> Vec<TotalLine> {
    let mut sums: BTreeMap<(String, String, String), (i64, i128)> = BTreeMap::new();
    for record in journal {
        let word = match record.applied {
            Applied::Superseded => "superseded",
            Applied::Yes | Applied::Withheld => record.outcome.as_str(),
        };
        for bucket in ["claimed", word] {
            let key = (record.table.clone(), record.currency.clone(), bucket.to_owned());
            let sum = sums.entry(key).or_default();
            sum.0 += 1;
            sum.1 += i128::from(record.amount_minor);
        }
    }
    sums.into_iter()
        .map(|((table, currency, bucket), (rows, amount_minor))| TotalLine {
            table,
            currency,
            bucket,
            rows,
            amount_minor,
        })
        .collect()
}

pub fn has_manifest(root: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(root) else { return false };
    entries
        .flatten()
        .map(|entry| entry.path())
        .any(|path| path.file_name().is_some_and(|name| name == MANIFEST) || has_manifest(&path))
}

impl Source for Vectors {
    async fn run(&self, run_id: &str) -> Result<Option<RunRow>, StoreError> {
        self.call("run")?;
        Ok(Some(self.run.clone()).filter(|run| run.id == run_id))
    }

    async fn pruned_at(&self, run_id: &str) -> Result<Option<Instant>, StoreError> {
        self.call("pruned_at")?;
        Ok(self.pruned.get(run_id).copied())
    }

    async fn run_totals(&self, _run_id: &str) -> Result<Vec<TotalLine>, StoreError> {
        self.call("run_totals")?;
        Ok(self.totals.clone())
    }

    async fn journal_of_run(
        &self,
        _run_id: &str,
        after: Option<(String, i64)>,
        limit: i64,
    ) -> Result<Vec<JournalRow>, StoreError> {
        self.call("journal_of_run")?;
        let is_after = |r: &&JournalRow| {
            after.as_ref().is_none_or(|(writer, seq)| (&r.writer, r.seq) > (writer, *seq))
        };
        Ok(self.journal.iter().filter(is_after).take(limit as usize).cloned().collect())
    }

    async fn journal_of_row(&self, table: &str, key: &str) -> Result<Vec<JournalRow>, StoreError> {
        self.call("journal_of_row")?;
        let all = self.journal.iter().chain(&self.elsewhere);
        let mut found: Vec<JournalRow> =
            all.filter(|r| r.table == table && r.key == key).cloned().collect();
        found.sort_by_key(|r| r.at);
        Ok(found)
    }

    async fn cases(&self, filter: &CaseFilter) -> Result<Vec<CaseRow>, StoreError> {
        self.call("cases")?;
        let fits = |c: &&CaseRow| {
            filter.after.is_none_or(|after| c.number > after)
                && filter.opened_run.as_ref().is_none_or(|run| c.opened_run == *run)
                && filter
                    .closed_since
                    .is_none_or(|since| c.closed_at.is_none_or(|closed| closed >= since))
        };
        let mut found: Vec<CaseRow> = self.cases.iter().filter(fits).cloned().collect();
        found.sort_by_key(|case| case.number);
        found.truncate(filter.limit as usize);
        Ok(found)
    }

    async fn evidence(&self, sha256: &str) -> Result<Option<String>, StoreError> {
        self.call("evidence")?;
        Ok(self.evidence.get(sha256).cloned())
    }

    async fn lines_of_run(
        &self,
        _run_id: &str,
        which: LinesOfRun,
        after: Option<LinePlace>,
        limit: i64,
    ) -> Result<Vec<LineOfRun>, StoreError> {
        self.call("lines_of_run")?;
        let [matched, noted] = &self.lines;
        let own = if which == LinesOfRun::Matched { matched } else { noted };
        let is_after = |own: &&LineOfRun| {
            let place = |place: LinePlace| (place.file, place.position);
            after.is_none_or(|after| place(own.line.place) > place(after))
        };
        Ok(own.iter().filter(is_after).take(limit as usize).cloned().collect())
    }

    async fn lines_of_rows(
        &self,
        _run_id: &str,
        _rows: &[(String, String)],
        _until: Instant,
    ) -> Result<Vec<StoredLine>, StoreError> {
        self.call("lines_of_rows")?;
        Ok(Vec::new())
    }

    async fn payout(&self, key: &PayoutKey, _until: Instant) -> Result<Option<Payout>, StoreError> {
        self.call("payout")?;
        Ok(self.payouts.iter().find(|payout| payout.key == *key).cloned())
    }

    async fn payouts_named(
        &self,
        texts: &[String],
        _until: Instant,
    ) -> Result<Vec<NamedPayout>, StoreError> {
        self.call("payouts_named")?;
        let own = self.payouts.iter().filter(|payout| texts.contains(&payout.key.payout));
        let named = |payout: &Payout| NamedPayout {
            text: payout.key.payout.clone(),
            key: payout.key.clone(),
        };
        Ok(own.map(named).collect())
    }

    async fn payouts_at(
        &self,
        places: &[LinePlace],
        _until: Instant,
    ) -> Result<BTreeSet<PayoutKey>, StoreError> {
        self.call("payouts_at")?;
        let files: BTreeSet<i64> = places.iter().map(|place| place.file).collect();
        let own = self.payouts.iter().filter(|payout| files.contains(&payout.key.file));
        Ok(own.map(|payout| payout.key.clone()).collect())
    }

    async fn payouts_of_file(&self, file: i64, _until: Instant) -> Result<Vec<Payout>, StoreError> {
        self.call("payouts_of_file")?;
        Ok(self.payouts.iter().filter(|payout| payout.key.file == file).cloned().collect())
    }

    async fn payout_bookings(
        &self,
        _payout: &PayoutKey,
        _until: Instant,
    ) -> Result<Vec<Booking>, StoreError> {
        self.call("payout_bookings")?;
        Ok(Vec::new())
    }

    async fn compared_of_run(
        &self,
        _run_id: &str,
        after: i64,
        limit: i64,
    ) -> Result<Vec<Compared>, StoreError> {
        self.call("compared_of_run")?;
        let own = self.compared.iter().filter(|one| one.number > after);
        Ok(own.take(limit as usize).cloned().collect())
    }

    async fn files_of_run(
        &self,
        _run_id: &str,
        after: i64,
        limit: i64,
    ) -> Result<Vec<FileOfRun>, StoreError> {
        self.call("files_of_run")?;
        let is_after = |own: &&FileOfRun| own.file.id > after;
        Ok(self.files.iter().filter(is_after).take(limit as usize).cloned().collect())
    }
}

pub fn options(dialect: Dialect) -> BuildOptions {
    BuildOptions { dialect, ..BuildOptions::in_zone(chrono_tz::UTC) }
}

pub fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

pub fn build(source: &Vectors, root: &Path, dialect: Dialect) -> Result<Built, ReportError> {
    block(report::build(source, RUN, root, &options(dialect)))
}

pub fn built(source: &Vectors, dialect: Dialect) -> (tempfile::TempDir, Built) {
    let root = tempfile::tempdir().unwrap();
    let built = build(source, root.path(), dialect).unwrap();
    (root, built)
}

pub fn bytes_of(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(dir).unwrap().flatten();
    entries
        .map(|e| (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap()))
        .collect()
}

/// A file as maps from column to cell, by the csv crate.
pub fn table(dir: &Path, file: &str, dialect: Dialect) -> Vec<BTreeMap<String, String>> {
    let mut reader =
        csv::ReaderBuilder::new().delimiter(dialect.delimiter()).from_path(dir.join(file)).unwrap();
    reader.deserialize().map(Result::unwrap).collect()
}

pub fn manifest(dir: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(dir.join(MANIFEST)).unwrap()).unwrap()
}

pub fn sound(source: &Vectors, dir: &Path) {
    let found = report::verify(dir).unwrap();
    assert_eq!(found.findings, Vec::<String>::new(), "from the files alone");
    let found = block(report::verify_against(source, dir)).unwrap();
    assert_eq!(found.findings, Vec::<String>::new(), "against the database");
}

/// One of everything that a run can leave.
pub fn mixed() -> Vectors {
    let wait = |n, reason| JournalRow {
        outcome: Outcome::Wait,
        reason,
        psp_reference: None,
        psp_status: None,
        psp_currency: None,
        psp_amount_minor: None,
        next_check_at: Some(at("2026-11-20T00:00:00Z")),
        status_after: "CAPTURE SUBMITTED".into(),
        ..record(n)
    };
    let mut journal = vec![
        record(1),
        record(2),
        wait(3, Reason::PspPending),
        wait(4, Reason::WithinGrace),
        review(5, 7, Reason::DuplicateCapture),
        JournalRow { amount_minor: 500, ..review(6, 3, Reason::AmountMismatch) },
        JournalRow {
            outcome: Outcome::Retryable,
            reason: Reason::Absent,
            handback_number: Some(1),
            ..wait(7, Reason::Absent)
        },
        JournalRow {
            outcome: Outcome::Retryable,
            reason: Reason::Absent,
            applied: Applied::Withheld,
            ..wait(8, Reason::Absent)
        },
        JournalRow {
            outcome: Outcome::Retryable,
            reason: Reason::Absent,
            amount_minor: 111,
            ..wait(20, Reason::Absent)
        },
        JournalRow {
            outcome: Outcome::Failed,
            reason: Reason::DeclinedFinal,
            ..wait(9, Reason::DeclinedFinal)
        },
        JournalRow { applied: Applied::Superseded, ..wait(10, Reason::PspPending) },
        JournalRow {
            currency: String::new(),
            amount_minor: 0,
            psp_reference: None,
            psp_currency: None,
            psp_amount_minor: None,
            ..review(11, 9, Reason::RowUnreadable)
        },
        JournalRow {
            table: "refunds".into(),
            kind: "refund".into(),
            amount_minor: -700,
            psp_amount_minor: Some(-700),
            ..record(12)
        },
        JournalRow {
            currency: "JPY".into(),
            amount_minor: 310_000,
            psp_currency: Some("JPY".into()),
            psp_amount_minor: Some(310_000),
            applied: Applied::Withheld,
            ..record(13)
        },
        JournalRow {
            currency: "USD".into(),
            psp_currency: Some("EUR".into()),
            ..review(14, 8, Reason::CurrencyMismatch)
        },
        JournalRow { writer: "w1".into(), psp_amount_minor: Some(1_998), ..record(1) },
        JournalRow { writer: "w1".into(), key: "x".into(), psp_amount_minor: None, ..record(2) },
        JournalRow {
            writer: "w1".into(),
            key: "y".into(),
            psp_currency: Some("CHF".into()),
            ..record(3)
        },
    ];
    journal[15].key = "0".into();
    Vectors::of(journal)
}
