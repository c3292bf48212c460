//! Stuck rows that tieout does not know yet and that a settlement file pays are decided as their
//! lines are matched: what only files tell of needs no lease between the question and the answer.
//!
//! Nothing else differs: the same evidence, the same judge, the same transaction. What is not
//! plainly paid is left to the run's loop, which takes the rows into the work list first.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::decide::decision::Verdict;
use crate::model::evidence::Answer;
use crate::model::time::{Instant, later};
use crate::model::transaction::{AccountRef, Transaction};
use crate::run::books::{Books, Tell};
use crate::run::drive::{ask, claim_filter, note};
use crate::run::error::{Doing, RunError};
use crate::run::events::Event;
use crate::run::gather::{Asked, Weighed, check_tag_length};
use crate::run::mapped::Mapped;
use crate::run::match_lines::{Named, Rows};
use crate::run::read_clock;
use crate::run::scene::{OpenAccount, Scene};
use crate::store::driver::Driver;
use crate::store::files::LinePlace;
use crate::store::records::Claimed;
use crate::store::source_table::SourceTable;

/// How many rows may be decided so, and until when: half of what the run may do, so that rows of
/// new files never take the turn of those that wait for theirs.
pub struct AtOnce {
    /// When the run began.
    started: Instant,
    /// Rows that may still be taken.
    left: i64,
    /// Rows that were taken.
    pub taken: i64,
    /// Those of the lines before, by table: they are written while the next lines are matched, and
    /// another line of theirs may be among these.
    last: BTreeMap<usize, BTreeSet<String>>,
}

impl AtOnce {
    /// Of a run that takes so many rows.
    pub fn of(scene: &Scene<'_>, started: Instant) -> Self {
        let options = scene.options;
        let is_whole = options.ids.is_none() && options.kick.is_none() && !options.dry_run;
        let left = if is_whole { options.limit / 2 } else { 0 };
        Self { started, left, taken: 0, last: BTreeMap::new() }
    }

    /// Decides the new ones of the rows that lines of an account name.
    pub(super) async fn decide<'s>(
        &mut self,
        scene: &'s Scene<'_>,
        account: &str,
        named: &Named,
        mut named_rows: Rows,
    ) -> Result<Vec<Ready<'s>>, RunError> {
        let (mut all, mut shown) = (Vec::new(), HashSet::new());
        let before = std::mem::take(&mut self.last);
        let Some((name, open)) = scene.accounts.get_key_value(account) else {
            return Ok(Vec::new());
        };
        if open.account.api().is_some() || open.paused.is_some() || open.unanswered_since.is_some()
        {
            return Ok(Vec::new());
        }
        let mut room = usize::try_from(self.left).unwrap_or_default();
        for (index, rows) in named {
            let Some(table) = scene.tables.get(*index) else { continue };
            if self.must_end(scene) {
                break;
            }
            let keys = keys_of(rows, before.get(index), room);
            room = room.saturating_sub(keys.len());
            let own = named_rows.remove(index).unwrap_or_default();
            let (ready, others) = decide_those(scene, table, (name, open), &keys, own).await?;
            shown.extend(others);
            all.push((*index, ready));
        }
        Ok(all.into_iter().map(|(index, ready)| self.keep(index, ready, &shown)).collect())
    }

    /// Those of a table's rows that are decided now: what others were shown, too, waits for them.
    fn keep<'s>(
        &mut self,
        index: usize,
        mut ready: Ready<'s>,
        shown: &HashSet<String>,
    ) -> Ready<'s> {
        ready.rows.retain(|row| !names_of(row).any(|name| shown.contains(name)));
        let taken = i64::try_from(ready.rows.len()).unwrap_or(i64::MAX);
        self.left = self.left.saturating_sub(taken);
        self.taken = self.taken.saturating_add(taken);
        let keys = ready.rows.iter().map(|row| row.claimed.row.key.id.clone());
        self.last.insert(index, keys.collect());
        ready.asked.answered = u64::try_from(ready.rows.len()).unwrap_or(u64::MAX);
        ready
    }

    /// Leaves out of rows that lines name those that are decided now: nobody looked at them before,
    /// so that none waits for a look, has a case or was left as it is.
    pub(super) fn leave_out(&self, named: &mut Named) {
        for (index, rows) in named {
            if let Some(taken) = self.last.get(index) {
                rows.retain(|(key, _)| !taken.contains(key));
            }
        }
    }

    fn must_end(&self, scene: &Scene<'_>) -> bool {
        let half = scene.options.max_duration.map(|limit| later(self.started, limit / 2));
        let is_late = half.is_some_and(|half| scene.clock.now() >= half);
        self.left <= 0 || is_late || scene.stop.requested().is_some()
    }
}

/// The keys of rows that lines name, each once, without those that are being written.
fn keys_of(
    rows: &[(String, LinePlace)],
    written: Option<&BTreeSet<String>>,
    most: usize,
) -> Vec<String> {
    let keys: BTreeSet<&String> = rows.iter().map(|(key, _)| key).collect();
    let is_written = |key: &&String| written.is_some_and(|own| own.contains(*key));
    keys.into_iter().filter(|key| !is_written(key)).take(most).cloned().collect()
}

/// Rows of one table that are decided and not written yet.
pub(super) struct Ready<'s> {
    table: &'s SourceTable,
    name: &'s str,
    open: &'s OpenAccount,
    rows: Vec<Weighed>,
    asked: Asked,
}

impl Ready<'_> {
    /// Writes them, as the run's loop does.
    pub(super) async fn carry(
        self,
        scene: &Scene<'_>,
        books: &mut Books,
        tell: Tell<'_>,
    ) -> Result<(), RunError> {
        let Self { table, name, open, rows, asked } = self;
        if rows.is_empty() || books.closed {
            return Ok(());
        }
        tell(Event::Claimed { table: table.settings.name.clone(), rows: rows.len() });
        tell(Event::Asking { account: name.to_owned(), rows: rows.len() });
        note(books, name, open, rows.len(), &asked, tell);
        books.carry(scene, table, Some(open), rows, tell).await
    }
}

/// The rows that are plainly paid, and every name of what the others were shown.
async fn decide_those<'s>(
    scene: &'s Scene<'_>,
    table: &'s SourceTable,
    (name, open): (&'s str, &'s OpenAccount),
    keys: &[String],
    mut named: HashMap<String, Transaction>,
) -> Result<(Ready<'s>, HashSet<String>), RunError> {
    let now = read_clock(scene.db, scene.options).await.doing("reading the database's clock")?;
    scene.clock.set(now);
    let new = scene.db.new_among(table, &claim_filter(scene, now), keys).await;
    let new = new.doing("reading new rows that files name")?;
    let is_its = |row: &Transaction| {
        row.processing && matches!(&row.account, AccountRef::Known(own) if own == name)
    };
    let rows = new.iter().filter_map(|key| named.remove(key)).filter(is_its);
    let mut rows: Vec<Claimed> = rows.map(|row| Claimed::unleased(row, now)).collect();
    let tag_max = open.account.facts().tag_max;
    rows.iter_mut().for_each(|row| check_tag_length(row, tag_max));
    let nothing = Mapped::new();
    let (mut rows, asked) = match rows.is_empty() {
        true => (Vec::new(), Asked::default()),
        false => ask(scene, table, (name, open), rows, &nothing, false, None).await.2?,
    };
    // The others are asked about again, and counted then.
    let others = rows.extract_if(.., |row| !is_plainly_paid(row));
    let shown = others.flat_map(|row| names_of(&row).map(str::to_owned).collect::<Vec<_>>());
    let shown = shown.collect();
    Ok((Ready { table, name, open, rows, asked }, shown))
}

/// Whether money was found for a row, and nothing that the run may still decide of others changes
/// what is to become of it.
fn is_plainly_paid(row: &Weighed) -> bool {
    let is_paid = matches!(row.decision.verdict, Verdict::Succeeded);
    is_paid && row.decision.wants.is_none() && row.inputs.siblings.is_empty()
}

/// Every name of what was found for a row. Where another row, which is not plainly paid, was shown
/// the same, both are judged together: an id that several payments have names none of them.
fn names_of(row: &Weighed) -> impl Iterator<Item = &str> {
    let found = row.inputs.evidence.iter().filter_map(|item| match &item.answer {
        Answer::Found { objects, .. } => Some(objects),
        Answer::Nothing(_) | Answer::UnknownReference(_) | Answer::NoAnswer(_) => None,
    });
    found.flatten().flat_map(|object| {
        std::iter::once(&*object.reference).chain(object.aliases.iter().map(String::as_str))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two reports may tell of one payment, some thousand lines apart: it is decided once.
    #[test]
    fn rows_that_are_being_written_are_not_taken_again() {
        let named = |keys: &[&str]| -> Vec<(String, LinePlace)> {
            let place = |position| LinePlace { file: 1, position };
            (1..).zip(keys).map(|(at, key)| ((*key).to_owned(), place(at))).collect()
        };
        let rows = named(&["3", "1", "2", "1"]);
        assert_eq!(keys_of(&rows, None, 9), ["1", "2", "3"]);
        assert_eq!(keys_of(&rows, None, 2), ["1", "2"]);
        let written: BTreeSet<String> = ["1", "4"].map(str::to_owned).into();
        assert_eq!(keys_of(&rows, Some(&written), 9), ["2", "3"]);
        assert_eq!(keys_of(&rows, Some(&written), 1), ["2"]);
    }
}
