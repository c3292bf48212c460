//! Building a report: one pass over the run's journal, then the files that sum it up.
//!
//! Memory stays flat: records go to the disk as they come, those that must be sorted through
//! [`Sorter`], and only sums by group are held.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono_tz::Tz;

use crate::model::count::counted;
use crate::report::aging;
use crate::report::aside::side_by_side;
use crate::report::captured::{Captured, captured};
use crate::report::cells::{Cell, Dialect};
use crate::report::columns::{
    AGING, BRIDGE, COMPARED, EXCEPTIONS, INPUTS, MATCHED, PAYOUTS, RECONCILIATION, SUMMARY, Sheet,
    TRANSITIONS,
};
use crate::report::compared;
use crate::report::csv_file::{CsvFile, FileEntry};
use crate::report::error::ReportError;
use crate::report::exceptions::{self, Draft, Finisher};
use crate::report::facts::Facts;
use crate::report::inputs;
use crate::report::lines::{self, StateThen};
use crate::report::manifest::{Findings, Manifest};
use crate::report::payouts;
use crate::report::place::Place;
use crate::report::rows;
use crate::report::sorter::{BUDGET, Sorter};
use crate::report::source::Source;
use crate::report::tie::{FileTie, TieOut, currency_words, tie_out};
use crate::report::totals::Totals;
use crate::store::files::{LineOfRun, LinePlace, LinesOfRun, StoredLine};
use crate::store::payouts::{Payout, PayoutKey};
use crate::store::records::JournalRow;

/// Journal records read at once.
const PAGE: i64 = 2_000;

/// The bank's lines that this run matched to payouts.
type Booked = BTreeMap<PayoutKey, StoredLine>;

/// Files read at once, each with its lines added up.
const FILES: i64 = 100;

/// How a report is written.
#[derive(Debug, Clone, Copy)]
pub struct BuildOptions {
    /// How CSV is written.
    pub dialect: Dialect,
    /// The zone of business days, for runs that wrote none into their scope.
    pub timezone: Tz,
    /// Bytes of records held in memory while they are sorted.
    pub sort_budget: usize,
}

impl BuildOptions {
    /// RFC 4180, in this zone.
    pub fn in_zone(timezone: Tz) -> Self {
        Self { dialect: Dialect::Plain, timezone, sort_budget: BUDGET }
    }
}

/// A report that stands in its place.
#[derive(Debug, Clone)]
pub struct Built {
    /// Where.
    pub dir: PathBuf,
    /// Rows in `reconciliation.csv`.
    pub rows: u64,
    /// Currencies whose two sides differ; empty when it ties out. The report says so too.
    pub untied: Vec<String>,
    /// One sentence for each difference.
    pub findings: Vec<String>,
    /// Its files.
    pub files: Vec<FileEntry>,
    /// The audit chain's head at the run's end.
    pub audit_head: Option<String>,
    /// Cells that the dialect had to escape.
    pub escaped_cells: u64,
    /// Whether an older report of the run stood there.
    pub replaced: bool,
    /// How many payouts stand in each state.
    pub payouts: BTreeMap<&'static str, u64>,
}

/// The files written so far.
struct Written {
    files: Vec<FileEntry>,
    escaped_cells: u64,
}

impl Written {
    fn take(&mut self, file: CsvFile) -> Result<(), ReportError> {
        let (entry, escaped) = file.finish()?;
        self.files.push(entry);
        self.escaped_cells = self.escaped_cells.saturating_add(escaped);
        Ok(())
    }
}

/// Builds the report of a closed run.
///
/// # Errors
/// Where the run is unknown or still running, or the database or the disk fails; nothing then
/// stands in the report's place but an older report of the same run.
pub async fn build<S: Source>(
    source: &S,
    run_id: &str,
    root: &Path,
    options: &BuildOptions,
) -> Result<Built, ReportError> {
    let run = source.run(run_id).await.map_err(ReportError::store(run_id))?;
    let run = run.ok_or_else(|| ReportError::NoRun { run_id: run_id.to_owned() })?;
    let facts = Arc::new(Facts::read(run, options.timezone)?);
    let totals = source.run_totals(run_id).await.map_err(ReportError::store(run_id))?;
    let tie = tie_out(&totals);
    let place = Place::begin(root, facts.business_date, run_id)?;
    let mut written = Written { files: Vec::new(), escaped_cells: 0 };

    let shelf = Shelf { source, facts: &facts, folder: place.folder(), options };
    // The two long passes side by side: each reads, renders and sorts. Each goes to its end, so
    // that nothing is written any more where the other fails.
    let (totals, matched) = tokio::join!(
        Box::pin(stream(source, &facts, place.folder(), options, &mut written)),
        Box::pin(shelf.matched()),
    );
    let ((mut totals, named), (file, booked, sums)) = (totals?, matched?);
    written.take(file)?;
    totals.take_in(sums);
    let (ties, files) = shelf.write_inputs(&mut totals, &mut written).await?;
    let window = shelf.write_compared(&mut written).await?;
    let payouts = shelf.write_payouts((&booked, &named, &window), &files, &mut written).await?;
    for (sheet, lines) in
        [(&SUMMARY, totals.summary(&tie, &facts)), (&BRIDGE, totals.bridge(&tie, &facts))]
    {
        write_lines(place.folder(), sheet, options.dialect, &lines, &mut written)?;
    }
    let aging_at_end = write_aging(source, &facts, place.folder(), options, &mut written).await?;
    in_order(&mut written.files);

    let (untied, findings) = differences(&totals, &tie, &ties);
    let found = Findings {
        tie: &tie,
        untied: &untied,
        findings: &findings,
        outcomes: totals.outcomes(),
        residuals: &totals.residuals(&tie),
        files: &written.files,
        escaped_cells: written.escaped_cells,
        dialect: options.dialect.as_str(),
        aging_at_end,
    };
    Manifest::new(&facts, &found).write(place.folder())?;
    let (dir, replaced) = place.finish()?;
    Ok(Built {
        dir,
        rows: written.files.first().map_or(0, |file| file.rows),
        untied,
        findings,
        files: written.files,
        audit_head: facts.run.close_hash.clone(),
        escaped_cells: written.escaped_cells,
        replaced,
        payouts,
    })
}

/// The pass over the journal: `transitions.csv` as it comes, the two sorted files after it.
async fn stream<S: Source>(
    source: &S,
    facts: &Arc<Facts>,
    folder: &Path,
    options: &BuildOptions,
    written: &mut Written,
) -> Result<(Totals, BTreeSet<PayoutKey>), ReportError> {
    let pass = Pass {
        facts: Arc::clone(facts),
        folder: folder.to_path_buf(),
        transitions: CsvFile::create(folder, &TRANSITIONS, options.dialect)?,
        reconciliation: CsvFile::create(folder, &RECONCILIATION, options.dialect)?,
        by_row: Sorter::new(folder, "reconciliation", options.sort_budget),
        by_case: Sorter::new(folder, "exceptions", options.sort_budget),
        totals: Totals::default(),
    };
    let run_id = &facts.run.id;
    let passed = side_by_side(
        folder,
        move |pages| pass.take_all(pages),
        async |to| {
            let mut after = None;
            loop {
                let page = source.journal_of_run(run_id, after, PAGE).await;
                let page = page.map_err(ReportError::store(run_id))?;
                let Some(last) = page.last() else { return Ok(()) };
                after = Some((last.writer.clone(), last.seq));
                let mut records = Vec::with_capacity(page.len());
                for record in page {
                    let several = captured(source, &record).await?;
                    records.push((record, several));
                }
                // Where nobody takes it, whoever should have says why.
                if to.send(records).await.is_err() {
                    return Ok(());
                }
            }
        },
    );
    let Passed { files, by_case, mut totals } = passed.await?;
    files.into_iter().try_for_each(|file| written.take(file))?;
    let shelf = Shelf { source, facts, folder, options };
    let named = shelf.write_exceptions(by_case, &mut totals, written).await?;
    Ok((totals, named))
}

/// What the journal's records go into.
struct Pass {
    facts: Arc<Facts>,
    folder: PathBuf,
    transitions: CsvFile,
    reconciliation: CsvFile,
    by_row: Sorter,
    by_case: Sorter,
    totals: Totals,
}

/// What they came to.
struct Passed {
    files: Vec<CsvFile>,
    by_case: Sorter,
    totals: Totals,
}

impl Pass {
    fn take_all(
        mut self,
        pages: impl Iterator<Item = Vec<(JournalRow, Captured)>>,
    ) -> Result<Passed, ReportError> {
        for (record, several) in pages.flatten() {
            self.take(&record, &several)?;
        }
        let Self { transitions, mut reconciliation, by_row, by_case, totals, .. } = self;
        for pair in by_row.finish()? {
            reconciliation.put(&pair?.1)?;
        }
        Ok(Passed { files: vec![transitions, reconciliation], by_case, totals })
    }

    fn take(&mut self, record: &JournalRow, several: &Captured) -> Result<(), ReportError> {
        self.totals.add(record, several);
        self.transitions.write(&rows::transition(record, &self.facts))?;
        let cells = rows::reconciliation(record, several, &self.facts);
        let line = self.reconciliation.render(&cells);
        self.by_row.push(rows::order(record), line)?;
        if exceptions::is_exception(record) {
            self.by_case.push(exceptions::order(record), draft(record, &self.folder)?)?;
        }
        Ok(())
    }
}

/// What the lines that became rows' own go into.
struct Matched {
    facts: Arc<Facts>,
    folder: PathBuf,
    file: CsvFile,
    booked: Booked,
    by_row: Sorter,
    totals: Totals,
}

impl Matched {
    fn take_all(
        mut self,
        pages: impl Iterator<Item = (Vec<LineOfRun>, Vec<StoredLine>)>,
    ) -> Result<(CsvFile, Booked, Totals), ReportError> {
        for (page, beside) in pages {
            for own in page {
                self.take(&own)?;
            }
            for line in beside {
                self.put(&lines::Draft::beside(line))?;
            }
        }
        let Self { facts, folder, mut file, booked, by_row, totals } = self;
        let mut grouper = lines::Grouper::default();
        for pair in by_row.finish()? {
            let draft = serde_json::from_slice(&pair?.1);
            let draft = draft.map_err(json_failed("reading", &folder))?;
            if let Some(cells) = grouper.push(draft, &facts) {
                file.write(&cells)?;
            }
        }
        if let Some(cells) = grouper.finish(&facts) {
            file.write(&cells)?;
        }
        Ok((file, booked, totals))
    }

    fn take(&mut self, own: &LineOfRun) -> Result<(), ReportError> {
        self.totals.add_matched(&own.line);
        if let Some(key) = PayoutKey::of_booking(&own.line) {
            self.booked.insert(key, own.line.clone());
        }
        self.put(&lines::Draft::of(own))
    }

    fn put(&mut self, draft: &lines::Draft) -> Result<(), ReportError> {
        let bytes = serde_json::to_vec(draft).map_err(json_failed("writing", &self.folder))?;
        self.by_row.push(draft.order(), bytes)
    }
}

/// What the files about lines and files are written from.
struct Shelf<'a, S> {
    source: &'a S,
    facts: &'a Arc<Facts>,
    folder: &'a Path,
    options: &'a BuildOptions,
}

impl<S: Source> Shelf<'_, S> {
    /// Rows by case, then accounts, then lines of files that found no row; the payouts that such a
    /// line names and is not the booking of.
    async fn write_exceptions(
        &self,
        by_case: Sorter,
        totals: &mut Totals,
        written: &mut Written,
    ) -> Result<BTreeSet<PayoutKey>, ReportError> {
        let mut named = BTreeSet::new();
        let mut file = CsvFile::create(self.folder, &EXCEPTIONS, self.options.dialect)?;
        let mut finisher = Finisher::new(self.source, self.facts);
        for pair in by_case.finish()? {
            let draft = Draft::from_bytes(&pair?.1).map_err(json_failed("reading", self.folder))?;
            file.write(&finisher.line(&draft).await?)?;
        }
        for line in exceptions::account_lines(self.source, self.facts).await? {
            file.write(&line)?;
        }
        let mut after = None;
        loop {
            let page = self.lines(LinesOfRun::Noted, after).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.line.place);
            for own in &page {
                totals.add_noted(&own.line, lines::noted_reason(own));
                file.write(&lines::exception(own, self.facts))?;
            }
            let texts: BTreeSet<String> = page.iter().flat_map(payouts::names_of).collect();
            if !texts.is_empty() {
                let texts: Vec<String> = texts.into_iter().collect();
                let found = self.source.payouts_named(&texts, self.facts.ended_at).await;
                let found = found.map_err(ReportError::store(&self.facts.run.id))?;
                named.extend(found.into_iter().map(|one| one.key));
            }
        }
        written.take(file)?;
        Ok(named)
    }

    /// The lines that became rows' own, by row; the payouts' bookings among them, and their sums.
    async fn matched(&self) -> Result<(CsvFile, Booked, Totals), ReportError> {
        let matched = Matched {
            facts: Arc::clone(self.facts),
            folder: self.folder.to_path_buf(),
            file: CsvFile::create(self.folder, &MATCHED, self.options.dialect)?,
            booked: Booked::new(),
            by_row: Sorter::new(self.folder, "matched", self.options.sort_budget),
            totals: Totals::default(),
        };
        side_by_side(
            self.folder,
            move |pages| matched.take_all(pages),
            async |to| {
                let mut after = None;
                loop {
                    let page = self.lines(LinesOfRun::Matched, after).await?;
                    let Some(last) = page.last() else { return Ok(()) };
                    after = Some(last.line.place);
                    let beside = self.beside(&page).await?;
                    // Where nobody takes it, whoever should have says why.
                    if to.send((page, beside)).await.is_err() {
                        return Ok(());
                    }
                }
            },
        )
        .await
    }

    /// What other runs had matched by then to the rows of these lines.
    async fn beside(&self, page: &[LineOfRun]) -> Result<Vec<StoredLine>, ReportError> {
        let rows: Vec<(String, String)> = lines::rows_of(page).into_iter().collect();
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let run_id = &self.facts.run.id;
        let found = self.source.lines_of_rows(run_id, &rows, self.facts.ended_at).await;
        found.map_err(ReportError::store(run_id))
    }

    /// The payouts of the run's files, those that it matched a booking of, those that a line of
    /// its bank's names otherwise, and those of a window that it compared whole; how many stand in
    /// each state.
    async fn write_payouts(
        &self,
        (booked, named, window): (&Booked, &BTreeSet<PayoutKey>, &BTreeSet<PayoutKey>),
        files: &BTreeSet<i64>,
        written: &mut Written,
    ) -> Result<BTreeMap<&'static str, u64>, ReportError> {
        let mut states = BTreeMap::new();
        let mut put = |csv: &mut CsvFile, (state, cells): (&'static str, Vec<Cell>)| {
            let count: &mut u64 = states.entry(state).or_default();
            *count = count.saturating_add(1);
            csv.write(&cells)
        };
        let failed = || ReportError::store(&self.facts.run.id);
        let mut csv = CsvFile::create(self.folder, &PAYOUTS, self.options.dialect)?;
        let until = self.facts.ended_at;
        let mut of_run: BTreeMap<PayoutKey, (Payout, &StoredLine)> = BTreeMap::new();
        for (key, line) in booked {
            if let Some(payout) = self.source.payout(key, until).await.map_err(failed())? {
                of_run.insert(payout.key.clone(), (payout, line));
            }
        }
        // Several files may tell of a payout: it stands here once.
        let mut seen = BTreeSet::new();
        for file in files {
            let found = self.source.payouts_of_file(*file, until).await.map_err(failed())?;
            for payout in found {
                if seen.insert(payout.key.clone()) {
                    let bank = of_run.get(&payout.key).map(|(_, line)| *line);
                    put(&mut csv, self.payout(&payout, bank).await?)?;
                }
            }
        }
        for (payout, line) in of_run.values() {
            if seen.contains(&payout.key) {
                continue;
            }
            put(&mut csv, self.payout(payout, Some(*line)).await?)?;
            seen.insert(payout.key.clone());
        }
        for key in named.iter().chain(window) {
            if seen.contains(key) {
                continue;
            }
            let found = self.source.payout(key, until).await.map_err(failed())?;
            let Some(payout) = found.filter(|payout| seen.insert(payout.key.clone())) else {
                continue;
            };
            put(&mut csv, self.payout(&payout, None).await?)?;
        }
        written.take(csv)?;
        Ok(states)
    }

    /// A payout with the bank's line that was matched by then; or with the one that names it and is
    /// not its booking, where there is one and no run matched another, or that took it back.
    async fn payout(
        &self,
        payout: &Payout,
        bank: Option<&StoredLine>,
    ) -> Result<(&'static str, Vec<Cell>), ReportError> {
        let until = self.facts.ended_at;
        let found = self.source.payout_bookings(&payout.key, until).await;
        let found = found.map_err(ReportError::store(&self.facts.run.id))?;
        let bank = bank.or_else(|| payouts::booked(payout, &found, until));
        Ok(payouts::cells(payout, bank, payouts::beside(payout, &found, until), self.facts))
    }

    /// A window compared whole; no line where none was. The payouts that its lines are of.
    async fn write_compared(
        &self,
        written: &mut Written,
    ) -> Result<BTreeSet<PayoutKey>, ReportError> {
        let mut payouts = BTreeSet::new();
        let mut file = CsvFile::create(self.folder, &COMPARED, self.options.dialect)?;
        let mut after = 0;
        loop {
            let run_id = &self.facts.run.id;
            let page = self.source.compared_of_run(run_id, after, PAGE).await;
            let page = page.map_err(ReportError::store(run_id))?;
            let Some(last) = page.last() else { break };
            after = last.number;
            for one in &page {
                file.write(&compared::cells(one, self.facts))?;
            }
            let places: Vec<LinePlace> = page.iter().filter_map(|one| one.line).collect();
            if !places.is_empty() {
                let found = self.source.payouts_at(&places, self.facts.ended_at).await;
                payouts.extend(found.map_err(ReportError::store(run_id))?);
            }
        }
        written.take(file)?;
        Ok(payouts)
    }

    /// What was asked of accounts, then each file; returns how the files' lines tie out.
    async fn write_inputs(
        &self,
        totals: &mut Totals,
        written: &mut Written,
    ) -> Result<(Vec<FileTie>, BTreeSet<i64>), ReportError> {
        let mut files = BTreeSet::new();
        let mut csv = CsvFile::create(self.folder, &INPUTS, self.options.dialect)?;
        for line in inputs::lines(self.facts) {
            csv.write(&line)?;
        }
        let mut ties = Vec::new();
        let mut after = 0;
        loop {
            let run_id = &self.facts.run.id;
            let read = self.source.files_of_run(run_id, after, FILES).await;
            let page = read.map_err(ReportError::store(run_id))?;
            let Some(last) = page.last() else { break };
            after = last.file.id;
            for own in &page {
                if StateThen::of(own, run_id) != StateThen::Quarantined {
                    files.insert(own.file.id);
                }
                for part in lines::parts(own, run_id) {
                    totals.add_file(&own.file.account, &part);
                }
                ties.extend(lines::ties(own, run_id).into_iter().filter(|tie| !tie.is_tied()));
                for line in lines::inputs(own, self.facts) {
                    csv.write(&line)?;
                }
            }
        }
        written.take(csv)?;
        Ok((ties, files))
    }

    async fn lines(
        &self,
        which: LinesOfRun,
        after: Option<LinePlace>,
    ) -> Result<Vec<LineOfRun>, ReportError> {
        let run_id = &self.facts.run.id;
        let page = self.source.lines_of_run(run_id, which, after, PAGE).await;
        page.map_err(ReportError::store(run_id))
    }
}

async fn write_aging<S: Source>(
    source: &S,
    facts: &Facts,
    folder: &Path,
    options: &BuildOptions,
    written: &mut Written,
) -> Result<bool, ReportError> {
    let (lines, at_end) = match &facts.notes.aging {
        Some(lines) => (lines.clone(), true),
        None => {
            let began = facts.run.started_at;
            let taken = aging::snapshot(source, began, facts.ended_at, facts.zone).await;
            let lines = taken.map_err(ReportError::store(&facts.run.id))?;
            (aging::without_owners(lines), false)
        }
    };
    let lines: Vec<Vec<Cell>> = lines.iter().map(|line| aging::cells(line, facts)).collect();
    write_lines(folder, &AGING, options.dialect, &lines, written)?;
    Ok(at_end)
}

fn write_lines(
    folder: &Path,
    sheet: &'static Sheet,
    dialect: Dialect,
    lines: &[Vec<Cell>],
    written: &mut Written,
) -> Result<(), ReportError> {
    let mut file = CsvFile::create(folder, sheet, dialect)?;
    for line in lines {
        file.write(line)?;
    }
    written.take(file)
}

/// Where the sides differ: the control totals from the journal, and the journal's two sums.
fn differences(totals: &Totals, tie: &TieOut, ties: &[FileTie]) -> (Vec<String>, Vec<String>) {
    let off = tie.off().map(|line| {
        let residual = line.residual();
        format!(
            "{} {}: claimed less all that became of it leaves {} and {} minor units",
            line.table,
            currency_words(&line.currency),
            counted(residual.rows, "row", "rows"),
            residual.amount_minor
        )
    });
    let mut findings: Vec<String> = off.collect();
    let mut untied = tie.untied();
    for (currency, finding) in totals.compare(tie) {
        untied.push(currency);
        findings.push(finding);
    }
    for tie in ties {
        untied.push(currency_words(&tie.currency));
        findings.push(tie.words());
    }
    untied.sort_unstable();
    untied.dedup();
    (untied, findings)
}

/// The order of the manifest is that of the documentation, not that of writing.
fn in_order(files: &mut [FileEntry]) {
    let place = |file: &FileEntry| {
        crate::report::columns::SHEETS.iter().position(|sheet| sheet.file == file.name)
    };
    files.sort_by_key(place);
}

fn draft(record: &JournalRow, folder: &Path) -> Result<Vec<u8>, ReportError> {
    Draft::of(record).to_bytes().map_err(json_failed("writing", folder))
}

fn json_failed(
    doing: &'static str,
    folder: &Path,
) -> impl FnOnce(serde_json::Error) -> ReportError {
    let failed = ReportError::file(doing, folder);
    move |error| failed(error.into())
}
