//! What the two databases share of pruning: which runs and cases, what is kept, how heads are
//! written.

use std::collections::HashSet;

use crate::model::time::Instant;
use crate::store::chain::Head;

/// SQL of a case: nobody's decision of it waits to be approved or carried out.
macro_rules! unproposed {
    ($case:literal) => {
        concat!(
            "not exists (select 1 from tieout_proposals p where p.case_number = ",
            $case,
            ".number and p.state in ('open', 'approved'))"
        )
    };
}

/// SQL of runs: those that tell of a row whose closed case somebody waits for. Only the records of
/// all its runs say that its status is tieout's own word, and who gave it: without them what was
/// approved could not be carried out.
macro_rules! needed_runs {
    () => {
        "(select j.run_id from tieout_proposals p join tieout_cases w on w.number = p.case_number \
         and w.state = 'closed' and w.subject_kind = 'row' join tieout_journal j \
         on j.table_name = w.table_name and j.key = w.subject \
         where p.state in ('open', 'approved'))"
    };
}

/// SQL of a case that was closed long enough ago.
macro_rules! closed_before {
    ($case:literal, $before:literal) => {
        concat!($case, ".state = 'closed' and ", $case, ".closed_at < ", $before)
    };
}

/// SQL of a case that is closed and old enough, and so is its run, which was not pruned yet.
macro_rules! is_old {
    ($case:literal, $before:literal) => {
        concat!(
            $crate::store::prune::closed_before!($case, $before),
            " and exists (select 1 from tieout_runs r where r.id = ",
            $case,
            ".opened_run and r.close_number is not null and r.ended_at < ",
            $before,
            " and r.journal_count > 0 and not exists (select 1 from tieout_prunes d \
             where d.run_id = r.id and d.state = 'done'))"
        )
    };
}

/// SQL of such a case whose run is pruned, too, or just now.
macro_rules! run_goes {
    ($case:literal, $before:literal) => {
        concat!(is_old!($case, $before), " and ", $case, ".opened_run not in ", needed_runs!())
    };
}

/// SQL of a case that is closed and old enough: no record names it, and none of its run will.
macro_rules! is_unnamed {
    ($case:literal, $before:literal) => {
        concat!(
            $crate::store::prune::closed_before!($case, $before),
            " and not exists (select 1 from tieout_runs r where r.id = ",
            $case,
            ".opened_run and (r.ended_at is null or r.ended_at >= ",
            $before,
            ")) and not exists (select 1 from tieout_journal j where j.table_name = ",
            $case,
            ".table_name and j.key = ",
            $case,
            ".subject and j.case_number = ",
            $case,
            ".number)"
        )
    };
}

/// SQL of a case `k` that is deleted where `$old` holds: no decision of it waits, and no part of it
/// stays. A part has no parts of its own.
macro_rules! goes {
    ($old:ident, $before:literal) => {
        concat!(
            $old!("k", $before),
            " and ",
            unproposed!("k"),
            " and not exists (select 1 from tieout_cases m where m.merged_into = k.number \
             and not (",
            $old!("m", $before),
            " and ",
            unproposed!("m"),
            "))"
        )
    };
}

pub(in crate::store) use {
    closed_before, goes, is_old, is_unnamed, needed_runs, run_goes, unproposed,
};

/// Runs that may be pruned, and what they may not take along.
#[derive(Debug, Clone)]
pub struct Prunable {
    /// Only runs that ended before this.
    pub before: Instant,
    /// When it was looked: records of later runs are looked at again.
    pub looked_at: Instant,
    /// The runs, the first closed first, each with how many records it wrote.
    pub runs: Vec<(String, i64)>,
    /// How many runs are as old and stay: they tell of a row whose closed case somebody waits for.
    pub runs_kept: u64,
    /// Closed cases that they opened.
    pub cases: OldCases,
    /// Evidence that is old enough, and that a kept run leans on.
    pub kept: HashSet<String>,
}

impl Prunable {
    /// How many records all of them wrote.
    pub fn records(&self) -> i64 {
        self.runs.iter().map(|(_, records)| *records).fold(0, i64::saturating_add)
    }

    /// One of the runs, to be pruned by a person.
    pub fn one<'a>(&'a self, run_id: &'a str, by: &'a str) -> Pruning<'a> {
        let Self { before, looked_at, kept, .. } = self;
        Pruning { run_id, by, before: *before, looked_at: *looked_at, kept }
    }
}

/// Cases that old runs opened and that were closed long enough ago.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OldCases {
    /// Those that go with them.
    pub gone: u64,
    /// Those that stay: a decision of them waits, a part of them stays, or their run does.
    pub kept: u64,
}

impl OldCases {
    /// As a driver counted them.
    pub fn of(all: i64, gone: i64) -> Self {
        let count = |cases: i64| u64::try_from(cases).unwrap_or(0);
        Self { gone: count(gone), kept: count(all.saturating_sub(gone)) }
    }

    /// Once as many are gone.
    pub fn after(self, gone: u64) -> Self {
        Self { gone, kept: self.gone.saturating_add(self.kept).saturating_sub(gone) }
    }
}

/// One run that is about to be pruned.
#[derive(Debug, Clone, Copy)]
pub struct Pruning<'a> {
    /// The run.
    pub run_id: &'a str,
    /// Who prunes.
    pub by: &'a str,
    /// As in [`Prunable`].
    pub before: Instant,
    /// As in [`Prunable`].
    pub looked_at: Instant,
    /// As in [`Prunable`].
    pub kept: &'a HashSet<String>,
}

/// What was deleted of one run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Journal records.
    pub records: u64,
    /// Bodies of evidence.
    pub evidence: u64,
    /// Cases, with their proposals and their history.
    pub cases: u64,
}

/// Old runs, each with how many records it wrote and whether it is needed: those to prune, and how
/// many are kept.
pub(in crate::store) fn apart(old: Vec<(String, i64, bool)>) -> (Vec<(String, i64)>, u64) {
    let all = old.len();
    let unneeded = old.into_iter().filter(|(_, _, is_needed)| !is_needed);
    let runs: Vec<(String, i64)> = unneeded.map(|(run, records, _)| (run, records)).collect();
    let kept = all.saturating_sub(runs.len());
    (runs, u64::try_from(kept).unwrap_or(u64::MAX))
}

/// The heads of a run's chains as text.
pub fn heads_text(heads: &[Head]) -> String {
    let heads: Vec<(&str, i64, &str)> =
        heads.iter().map(|h| (h.writer.as_str(), h.count, h.hash.as_str())).collect();
    serde_json::json!(heads).to_string()
}

/// The heads from their text; none where it is not one.
pub fn heads_of(text: &str) -> Option<Vec<Head>> {
    let heads: Vec<(String, i64, String)> = serde_json::from_str(text).ok()?;
    Some(heads.into_iter().map(|(writer, count, hash)| Head { writer, count, hash }).collect())
}
