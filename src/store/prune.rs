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

/// SQL of a journal record: it ended its row.
macro_rules! is_end {
    ($record:literal) => {
        concat!(
            $record,
            ".applied = 'yes' and ",
            $record,
            ".outcome in ('succeeded', 'retryable', 'failed')"
        )
    };
}

/// SQL of a check `c`: tieout ended its row, and looks at it once more. The first words are the
/// index's own, without which SQLite does not take it.
macro_rules! is_watched {
    () => {
        "c.state in ('open', 'watch') and c.state = 'watch' and c.ended_as is not null"
    };
}

/// SQL of the run that ended the row of a check `c` last; empty where its record is gone: of a
/// list with a null in it nobody could say that a run is outside it.
macro_rules! last_end {
    () => {
        concat!(
            "coalesce((select j.run_id from tieout_journal j where j.table_name = c.table_name \
             and j.key = c.key and ",
            $crate::store::prune::is_end!("j"),
            " order by j.at desc, j.run_id desc, j.seq desc limit 1), '')"
        )
    };
}

/// SQL of runs: those that ended a row which is still watched, each row's last end alone. By that
/// record the later looks know what people saw who decided (without it, money that they knew of
/// would be a second case), and by which tag files may list what was handed back.
macro_rules! watched_runs {
    () => {
        concat!(
            "(select distinct ",
            $crate::store::prune::last_end!(),
            " from tieout_checks c where ",
            $crate::store::prune::is_watched!(),
            ")"
        )
    };
}

/// SQL of one of `tieout_runs`: it ended no row that is still watched. It begins at the run's own
/// records, since each run is asked for apart.
macro_rules! ended_none_watched {
    () => {
        concat!(
            "not exists (select 1 from tieout_journal e join tieout_checks c \
             on c.table_name = e.table_name and c.key = e.key where e.run_id = tieout_runs.id and ",
            $crate::store::prune::is_end!("e"),
            " and ",
            $crate::store::prune::is_watched!(),
            " and ",
            $crate::store::prune::last_end!(),
            " = e.run_id)"
        )
    };
}

/// SQL of a run's id: the run stays, since somebody waits for a case or its row is watched.
macro_rules! is_needed {
    ($($run:literal),+) => {
        concat!(
            "(",
            $($run,)+
            " in ",
            $crate::store::prune::needed_runs!(),
            " or ",
            $($run,)+
            " in ",
            $crate::store::prune::watched_runs!(),
            ")"
        )
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

/// SQL of such a case whose run is pruned, too.
macro_rules! run_goes {
    ($case:literal, $before:literal) => {
        concat!(
            $crate::store::prune::is_old!($case, $before),
            " and not ",
            $crate::store::prune::is_needed!($case, ".opened_run")
        )
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
/// stays. A part has no parts of its own; `$part` holds of one that goes, where that is not `$old`.
macro_rules! goes {
    ($old:ident, $before:literal) => {
        $crate::store::prune::goes!($old, $old, $before)
    };
    ($old:ident, $part:ident, $before:literal) => {
        concat!(
            $old!("k", $before),
            " and ",
            unproposed!("k"),
            " and not exists (select 1 from tieout_cases m where m.merged_into = k.number \
             and not (",
            $part!("m", $before),
            " and ",
            unproposed!("m"),
            "))"
        )
    };
}

pub(in crate::store) use {
    closed_before, ended_none_watched, goes, is_end, is_needed, is_old, is_unnamed, is_watched,
    last_end, needed_runs, run_goes, unproposed, watched_runs,
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
    /// How many runs are as old and stay.
    pub runs_kept: KeptRuns,
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

/// Runs that are old enough, and stay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeptRuns {
    /// They tell of a row whose closed case somebody waits for.
    pub waited_for: u64,
    /// Of the others: they ended a row that is still watched.
    pub watched: u64,
}

impl KeptRuns {
    /// Whatever they stay for.
    pub fn all(self) -> u64 {
        self.waited_for.saturating_add(self.watched)
    }
}

/// Cases that old runs opened and that were closed long enough ago.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OldCases {
    /// Those that go with them.
    pub gone: u64,
    /// Those that stay since a decision of them waits.
    pub waiting: u64,
    /// Of the others: those whose run stays.
    pub with_run: u64,
    /// Of the others: those of which a part stays.
    pub with_part: u64,
    /// Those that were to go, and that somebody needed before they did.
    pub meanwhile: u64,
}

impl OldCases {
    /// As a driver counted them.
    pub fn of((all, gone, waiting, with_run): (i64, i64, i64, i64)) -> Self {
        let count = |cases: i64| u64::try_from(cases).unwrap_or(0);
        let with_part = [gone, waiting, with_run].into_iter().fold(all, i64::saturating_sub);
        Self {
            gone: count(gone),
            waiting: count(waiting),
            with_run: count(with_run),
            with_part: count(with_part),
            meanwhile: 0,
        }
    }

    /// How many stay.
    pub fn kept(self) -> u64 {
        let Self { waiting, with_run, with_part, meanwhile, gone: _ } = self;
        [waiting, with_run, with_part, meanwhile].into_iter().fold(0, u64::saturating_add)
    }

    /// Once as many are gone. Where those are more, what waited was decided meanwhile.
    pub fn after(self, gone: u64) -> Self {
        let more = gone.saturating_sub(self.gone);
        let waiting = self.waiting.saturating_sub(more);
        Self { gone, waiting, meanwhile: self.gone.saturating_sub(gone), ..self }
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

/// An old run, how many records it wrote, whether it tells of a row whose closed case somebody
/// waits for, and whether it ended a row that is still watched.
pub(in crate::store) type OldRun = (String, i64, bool, bool);

/// Old runs: those to prune, and how many are kept.
pub(in crate::store) fn apart(old: Vec<OldRun>) -> (Vec<(String, i64)>, KeptRuns) {
    let (mut runs, mut kept) = (Vec::new(), KeptRuns::default());
    for (run, records, is_waited_for, is_watched) in old {
        match (is_waited_for, is_watched) {
            (true, _) => kept.waited_for = kept.waited_for.saturating_add(1),
            (false, true) => kept.watched = kept.watched.saturating_add(1),
            (false, false) => runs.push((run, records)),
        }
    }
    (runs, kept)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kept_run_is_counted_once() {
        let run =
            |id: &str, is_waited_for, is_watched| (id.to_owned(), 7, is_waited_for, is_watched);
        let old = vec![
            run("a", true, true),
            run("b", false, true),
            run("c", false, false),
            run("d", true, false),
        ];
        let (runs, kept) = apart(old);
        assert_eq!(runs, [("c".to_owned(), 7)]);
        assert_eq!(kept, KeptRuns { waited_for: 2, watched: 1 });
        assert_eq!(kept.all(), 3);
    }

    #[test]
    fn each_kept_case_is_counted_once_whatever_came_meanwhile() {
        let planned = OldCases::of((10, 4, 3, 2));
        assert_eq!((planned.with_part, planned.kept()), (1, 6));
        for (gone, waiting, meanwhile, kept) in [(4, 3, 0, 6), (3, 3, 1, 7), (5, 2, 0, 5)] {
            let after = planned.after(gone);
            assert_eq!((after.gone, after.waiting), (gone, waiting), "{gone}");
            assert_eq!((after.meanwhile, after.kept()), (meanwhile, kept), "{gone}");
        }
    }
}
