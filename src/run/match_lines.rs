//! From lines that no row has yet to rows: what agrees with a row that ended becomes its own, and
//! a row that a line contradicts is looked at again by the run's one loop.
//!
//! A row that is still processing is decided from its lines when it is due: once for each file that
//! came or was released since somebody looked at it, that is now, and one that is new and plainly
//! paid is decided [at once](crate::run::at_once). A line that
//! several rows could have is nobody's; one that none has is matched again by every run. So is one
//! of a day that is far ahead, which is held against no row that ended until then.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::slice::Chunks;

use chrono::TimeDelta;

use crate::decide::policy::Tolerance;
use crate::decide::settled::{
    AfterEnd, after_end, counts, gives_again, is_ahead, is_anothers, moves, objects, runs_back,
    takes_back,
};
use crate::model::evidence::PspObject;
use crate::model::money::Money;
use crate::model::reason::Reason;
use crate::model::settlement::{Direction, LineKind, SettledLine, Tag, TagKind};
use crate::model::time::{Instant, earlier};
use crate::model::transaction::{Kind, RowKey, Transaction};
use crate::report::said::is_failed_refund;
use crate::run::at_once::{AtOnce, Ready};
use crate::run::batches::{Refused, explain_batches};
use crate::run::books::{Books, Tell};
use crate::run::by_files::{
    Names, Shelf, by_instruction_alone, gives_charge_back, is_coded, is_whole_of, less_if_ahead,
    runs_among, stored_id,
};
use crate::run::error::{Doing, RunError};
use crate::run::events::Event;
use crate::run::line_cases;
use crate::run::named_payments::{Failed, NamedPayments, Placed, RowsByPayment};
use crate::run::people::{self, RowsByTable};
use crate::run::scene::Scene;
use crate::run::taken_alone;
use crate::store::decode::kind_of;
use crate::store::driver::Driver;
use crate::store::files::{FileDriver, LineMark, LinePlace, OpenLine, StoredLine};
use crate::store::payouts::{NamedPayout, Payout, PayoutDriver, PayoutKey, TABLE as PAYOUTS};
use crate::store::records::ClaimFilter;
use crate::store::source_table::SourceTable;

/// Lines that are matched and written together.
const AT_ONCE: usize = 5_000;

/// Rows whose line was taken out and that are read together.
const GONE_AT_ONCE: i64 = 5_000;

/// Lines that are read together, and whose texts are looked for together among what rows store of
/// the PSP: where the table has no index for that, each such question reads it whole.
const READ_AT_ONCE: i64 = 100_000;

/// Files list attempts within days. A hand-back of longer ago is not looked for among them.
const LISTED_WITHIN: TimeDelta = TimeDelta::days(92);

/// What the lines came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct LinesNote {
    /// Lines that had no row yet and were looked at.
    pub looked_at: u64,
    /// Lines that agree with a row that had ended, and became its own.
    pub matched: u64,
    /// Lines that no row was found for.
    pub open: u64,
    /// Of those: lines that no run had looked at before.
    pub new: u64,
    /// Rows that had ended and that lines contradict: they are looked at again.
    pub contradicted: u64,
    /// Cases that were opened of lines which still have no row.
    pub cases: u64,
}

/// Rows to be looked at again, by table.
pub type Again = BTreeMap<usize, Vec<String>>;

/// Rows by table: keys, each with a line that names it.
pub(super) type Named = BTreeMap<usize, Vec<(String, LinePlace)>>;

/// Rows by table and key.
pub(super) type Rows = BTreeMap<usize, HashMap<String, Transaction>>;

/// Rows by table that lines contradicted which are other rows' by now, or are back.
type Freed = RowsByTable;

/// Matches the open lines of every account that has files, until a stop is asked for. A dry run
/// writes nothing: it tells which lines would become a row's, and gives back the rows that would be
/// looked at again.
pub async fn match_lines(
    scene: &Scene<'_>,
    books: &mut Books,
    at_once: &mut AtOnce,
    tell: Tell<'_>,
) -> Result<Again, RunError> {
    let mut all = Again::new();
    let asked_ids = scene.options.ids.as_ref();
    let asked = scene.options.accounts.as_ref();
    let is_asked = |name: &String| asked.is_none_or(|names| names.contains(name));
    let accounts = scene.accounts.iter().filter(|(name, open)| open.has_files && is_asked(name));
    for (account, _) in accounts {
        let refused = explain_batches(scene, account, books, tell).await?;
        let (mut after, mut freed) = (None, Freed::new());
        loop {
            let lines = scene.db.open_lines(account, after, READ_AT_ONCE).await;
            let lines = lines.doing("reading lines that have no row yet")?;
            let Some(last) = lines.last() else { break };
            after = Some(last.place);
            let texts = texts_of(lines.iter().map(Names::from));
            let storing = Storing::of(scene, account, &texts).await?;
            let matching = Matching { scene, account, storing: &storing, refused: &refused };
            let mut chunks = lines.chunks(AT_ONCE);
            let mut found = matching.next(&mut chunks, at_once).await?;
            while let Some(chunk) = found {
                if scene.stop.requested().is_some() {
                    // Nothing of these lines is written: they are the next run's.
                    return Ok(all);
                }
                // What is written does not keep the next lines waiting.
                let (next, written) = tokio::join!(
                    matching.next(&mut chunks, at_once),
                    matching.write(chunk, (&mut freed, &mut all), books, tell),
                );
                written?;
                found = next?;
            }
        }
        look_at_freed(scene, account, &freed, books, tell).await?;
        if may_look_at_cases(scene, account) {
            taken_alone::look_beside(scene, account, books, tell).await?;
        }
        if asked_ids.is_none() {
            look_again(scene, account, books, &mut all, tell).await?;
            look_at_listed(scene, account, books, &mut all).await?;
        }
    }
    Ok(all)
}

/// Lines of an account that are matched and written together, with the rows that they pay.
struct Chunk<'s> {
    lines: &'s [OpenLine],
    found: FoundOut<'s>,
    ready: Vec<Ready<'s>>,
}

/// How the lines of an account are matched, some after the others.
struct Matching<'s> {
    scene: &'s Scene<'s>,
    account: &'s str,
    storing: &'s Storing,
    refused: &'s Refused,
}

impl<'s> Matching<'s> {
    /// What the next lines come to; nothing of it is written.
    async fn next(
        &self,
        chunks: &mut Chunks<'s, OpenLine>,
        at_once: &mut AtOnce,
    ) -> Result<Option<Chunk<'s>>, RunError> {
        let Some(lines) = chunks.next() else { return Ok(None) };
        let Self { scene, account, storing, refused } = *self;
        let mut found = Box::pin(match_some(scene, account, lines, storing, refused)).await?;
        let rows = std::mem::take(&mut found.rows);
        let ready = Box::pin(at_once.decide(scene, account, &found.named, rows)).await?;
        at_once.leave_out(&mut found.named);
        found.alone.extend(left_alone(scene, &found.named, lines).await?);
        Ok(Some(Chunk { lines, found, ready }))
    }

    /// Writes it.
    async fn write(
        &self,
        chunk: Chunk<'s>,
        (freed, all): (&mut Freed, &mut Again),
        books: &mut Books,
        tell: Tell<'_>,
    ) -> Result<(), RunError> {
        let Self { scene, account, .. } = *self;
        let Chunk { lines, mut found, ready } = chunk;
        // Not before the lines that came first are written: a payout has one booking.
        let misbooked = Box::pin(found.mark_alone(scene, account)).await?;
        write(scene, books, lines.len(), &found, tell).await?;
        if !scene.options.dry_run && scene.options.ids.is_none() {
            let found = (&*found.marks, &misbooked);
            line_cases::open(scene, account, lines, found, books).await?;
        }
        let woken = wake(scene, account, &found.named).await?;
        look_at_cases(scene, account, &found, books, tell).await?;
        for ready in ready {
            Box::pin(ready.carry(scene, books, tell)).await?;
        }
        for (table, ids) in found.freed {
            freed.entry(table).or_default().extend(ids);
        }
        if scene.options.dry_run {
            for (table, ids) in found.again.into_iter().chain(woken) {
                all.entry(table).or_default().extend(ids);
            }
        }
        Ok(())
    }
}

/// Makes the rows due that lines name and that nobody looked at since: what is known of them is
/// not to wait for their next look. A paused account's rows would only be given back.
async fn wake(scene: &Scene<'_>, account: &str, named: &Named) -> Result<Again, RunError> {
    let mut woken = Again::new();
    if scene.accounts.get(account).is_some_and(|open| open.paused.is_some()) {
        return Ok(woken);
    }
    let now = scene.clock.now();
    for (index, rows) in named {
        let Some(table) = scene.tables.get(*index) else { continue };
        let name = table.settings.name.as_str();
        let keys = scene.db.asleep(name, rows, now).await;
        let keys = keys.doing("looking for rows that new files name")?;
        if keys.is_empty() {
            continue;
        }
        if !scene.options.dry_run {
            let done = scene.db.wake(name, &keys, now).await;
            done.doing("making rows due that new files name")?;
        }
        woken.insert(*index, keys);
    }
    Ok(woken)
}

/// Whether cases of an account may be looked at by what its files tell.
fn may_look_at_cases(scene: &Scene<'_>, account: &str) -> bool {
    let is_paused = scene.accounts.get(account).is_some_and(|open| open.paused.is_some());
    !is_paused && scene.options.ids.is_none()
}

/// Looks again at rows with an open case that new lines name: whoever decides it is to see the
/// newest money, and the lines are to be told. A paused account's rows are left alone.
async fn look_at_cases(
    scene: &Scene<'_>,
    account: &str,
    found: &FoundOut<'_>,
    books: &mut Books,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    if !may_look_at_cases(scene, account) {
        return Ok(());
    }
    for (index, rows) in found.named.iter().chain(&found.differing) {
        let Some(table) = scene.tables.get(*index) else { continue };
        let keys = scene.db.cased(&table.settings.name, rows).await;
        let keys = keys.doing("looking for cases that new files tell of")?;
        Box::pin(people::look_at_cases(scene, books, table, keys, tell)).await?;
    }
    Ok(())
}

/// Looks again at cases about a booking that is another row's by now: a refund's that was written
/// after the bank's file came; and at those of a line that was gone, and that a later file brought
/// back, or of money that was. Nothing contradicts the payment any more.
async fn look_at_freed(
    scene: &Scene<'_>,
    account: &str,
    freed: &Freed,
    books: &mut Books,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    if !may_look_at_cases(scene, account) {
        return Ok(());
    }
    people::look_at_cases_of(scene, books, freed, &people::CLEARED, tell).await
}

/// Rows that were handed back and that a file lists after all are looked at again: what was proven
/// of them is not so, and whoever may charge again is to be stopped now, not at the next look.
async fn look_at_listed(
    scene: &Scene<'_>,
    account: &str,
    books: &mut Books,
    all: &mut Again,
) -> Result<(), RunError> {
    let Some(open) = scene.accounts.get(account) else { return Ok(()) };
    if open.account.api().is_some() || open.paused.is_some() {
        return Ok(());
    }
    let now = scene.clock.now();
    let listed = scene.db.listed_after_all(account, earlier(now, LISTED_WITHIN)).await;
    let mut again = Again::new();
    for (table, id) in listed.doing("looking for rows that files list after all")? {
        let mut tables = scene.tables.iter();
        if let Some(index) = tables.position(|own| own.settings.name == table) {
            again.entry(index).or_default().push(id);
        }
    }
    for (index, ids) in again {
        let Some(table) = scene.tables.get(index) else { continue };
        let count = u64::try_from(ids.len()).unwrap_or(u64::MAX);
        books.lines.contradicted = books.lines.contradicted.saturating_add(count);
        if scene.options.dry_run {
            all.entry(index).or_default().extend(ids);
            continue;
        }
        // One whose hand-back wrote no status is watched still, and only to be due.
        let due = scene.db.wake(&table.settings.name, &ids, now).await;
        due.doing("making rows due that files list after all")?;
        let enrolled = scene.db.enrol(table, &contradicted(ids), now).await;
        enrolled.doing("taking rows that files list after all into the work list")?;
    }
    Ok(())
}

/// Rows of which a correction took a line out are looked at again, and nobody else would say so:
/// those that succeeded by it, whose money is gone, and those with a case, which may be about it. A
/// line by which money was told to have come back is nobody's: its names say whose case that is.
async fn look_again(
    scene: &Scene<'_>,
    account: &str,
    books: &mut Books,
    all: &mut Again,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    if scene.accounts.get(account).is_some_and(|open| open.paused.is_some()) {
        return Ok(());
    }
    look_at_told(scene, account, books, all, tell).await?;
    let mut after = None;
    loop {
        let gone = scene.db.taken_out(account, after, GONE_AT_ONCE).await;
        let gone = gone.doing("looking for rows whose line was taken out")?;
        let Some(last) = gone.last() else { return Ok(()) };
        after = Some(last.place);
        let recorded = recorded(scene, account, &gone).await?;
        let paid_by = |line: &&StoredLine| {
            let of = |reason: Reason| line.reason.as_deref() == Some(reason.as_str());
            let is_recorded = || line.row.as_ref().is_some_and(|row| recorded.contains(row));
            of(Reason::Settled) || of(Reason::ToleranceDelta) || is_recorded()
        };
        let its_row = |line: &StoredLine| line.row.clone();
        let paid = by_table(scene, gone.iter().filter(paid_by).filter_map(its_row));
        contradict(scene, &paid, books, all).await?;
        let alone: Vec<StoredLine> =
            gone.iter().filter(|line| line.row.is_none()).cloned().collect();
        let named = match alone.as_slice() {
            [] => HashMap::new(),
            some => Box::pin(owners(scene, account, some)).await?,
        };
        let named = named.into_values().map(|Owner { key, .. }| (key.table, key.id));
        let rows = by_table(scene, gone.iter().filter_map(its_row).chain(named));
        people::look_at_cases_of(scene, books, &rows, Reason::ALL, tell).await?;
        if !scene.options.dry_run {
            let places: Vec<LinePlace> = gone.iter().map(|line| line.place).collect();
            let noted = scene.db.note_looked_again(scene.run_id, &places).await;
            noted.doing("noting which rows are looked at again")?;
        }
    }
}

/// Takes rows, by their tables, that are proven no more into the work list; a dry run only says
/// which.
async fn contradict(
    scene: &Scene<'_>,
    rows: &RowsByTable,
    books: &mut Books,
    all: &mut Again,
) -> Result<(), RunError> {
    for (index, ids) in rows {
        let Some(table) = scene.tables.get(*index) else { continue };
        let ids: Vec<String> = ids.iter().cloned().collect();
        let count = u64::try_from(ids.len()).unwrap_or(u64::MAX);
        books.lines.contradicted = books.lines.contradicted.saturating_add(count);
        if scene.options.dry_run {
            all.entry(*index).or_default().extend(ids);
            continue;
        }
        let enrolled = scene.db.enrol(table, &contradicted(ids), scene.clock.now()).await;
        enrolled.doing("taking rows whose line was taken out into the work list")?;
    }
    Ok(())
}

/// The same of rows whose line tells what a correction took out of another file: it has them still,
/// and is no proof any more.
async fn look_at_told(
    scene: &Scene<'_>,
    account: &str,
    books: &mut Books,
    all: &mut Again,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    let now = scene.clock.now();
    let told = scene.db.told_of_rows(account, earlier(now, LISTED_WITHIN)).await;
    let told = told.doing("looking for rows whose line was taken out elsewhere")?;
    let rows = by_table(scene, told.iter().map(|(_, row)| row.clone()));
    contradict(scene, &rows, books, all).await?;
    people::look_at_cases_of(scene, books, &rows, Reason::ALL, tell).await?;
    if !scene.options.dry_run && !told.is_empty() {
        let places: Vec<LinePlace> = told.iter().map(|(place, _)| *place).collect();
        let noted = scene.db.note_looked_again(scene.run_id, &places).await;
        noted.doing("noting which rows are looked at again")?;
    }
    Ok(())
}

/// The rows of these lines that succeeded, as tieout's own record says: be it by a line that had a
/// case first, and keeps the reason of that, or by one that was gone before and came back.
async fn recorded(
    scene: &Scene<'_>,
    account: &str,
    lines: &[StoredLine],
) -> Result<HashSet<(String, String)>, RunError> {
    let mut recorded = HashSet::new();
    for (index, keys) in by_table(scene, lines.iter().filter_map(|line| line.row.clone())) {
        let Some(table) = scene.tables.get(index) else { continue };
        let (name, keys) = (&table.settings.name, Vec::from_iter(keys));
        let found = scene.db.references_of(account, name, &keys).await;
        let found = found.doing("looking for what rows succeeded by")?;
        recorded.extend(found.into_iter().map(|(key, _id)| (name.clone(), key)));
    }
    Ok(recorded)
}

/// Rows by the place of their table, whose names stand before their keys.
fn by_table(scene: &Scene<'_>, keys: impl IntoIterator<Item = (String, String)>) -> RowsByTable {
    let mut rows = RowsByTable::new();
    for (table, id) in keys {
        let mut tables = scene.tables.iter();
        if let Some(index) = tables.position(|own| own.settings.name == table) {
            rows.entry(index).or_default().insert(id);
        }
    }
    rows
}

/// What some lines came to.
struct FoundOut<'l> {
    marks: Vec<LineMark>,
    /// Lines that no row has, each with why.
    alone: Vec<(&'l OpenLine, Reason)>,
    /// Lines that no run had looked at before.
    unseen: HashSet<LinePlace>,
    /// Lines without a row that no run had looked at before.
    new: u64,
    again: Again,
    /// Rows in processing that lines name.
    named: Named,
    /// They themselves, by their table and key.
    rows: Rows,
    /// Rows that ended and that lines contradict, each with those lines.
    differing: Named,
    /// Rows that lines contradicted which are other rows' by now, and paid rows that lines agree
    /// with: nothing may contradict them any more.
    freed: Freed,
    /// Lines that are what the bank took for itself.
    fees: Vec<LinePlace>,
}

impl FoundOut<'_> {
    /// Notes what becomes of lines that no row has: a payout's booking, or why each is open. Those
    /// that name a payout and are not its one booking are told with it.
    async fn mark_alone(
        &mut self,
        scene: &Scene<'_>,
        account: &str,
    ) -> Result<HashMap<LinePlace, PayoutKey>, RunError> {
        let cleared = leave_told(scene, account, &mut self.alone).await?;
        let (marks, misbooked) = book_payouts(scene, &self.alone).await?;
        self.marks.extend(marks);
        // Those of a row that agrees otherwise are told, too.
        let is_new = |mark: &&LineMark| mark.row.is_none() && self.unseen.contains(&mark.place);
        self.new = u64::try_from(self.marks.iter().filter(is_new).count()).unwrap_or(u64::MAX);
        // Their cases end: nothing is open of them any more.
        let cleared = cleared.into_iter().map(|place| LineMark {
            place,
            row: None,
            reason: None,
            worth: None,
        });
        self.marks.extend(cleared);
        Ok(misbooked)
    }
}

async fn write(
    scene: &Scene<'_>,
    books: &mut Books,
    lines: usize,
    found: &FoundOut<'_>,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let (matched, open): (Vec<&LineMark>, Vec<&LineMark>) =
        found.marks.iter().partition(|mark| mark.row.is_some());
    let note = &mut books.lines;
    note.looked_at = note.looked_at.saturating_add(count(lines));
    note.new = note.new.saturating_add(found.new);
    let open = open.iter().filter(|mark| mark.reason.is_some()).count();
    note.open = note.open.saturating_add(count(open));
    let again = found.again.values().map(|ids| count(ids.len()));
    note.contradicted = again.fold(note.contradicted, u64::saturating_add);
    if scene.options.dry_run {
        note.matched = note.matched.saturating_add(count(matched.len()));
        for mark in matched {
            let Some((table, id)) = mark.row.clone() else { continue };
            tell(Event::LineMatched { place: mark.place, table, id });
        }
        return Ok(());
    }
    let now = scene.clock.now();
    if !found.fees.is_empty() && scene.options.ids.is_none() {
        let excluded = scene.db.exclude_lines(&found.fees).await;
        excluded.doing("noting which lines are the bank's own")?;
    }
    // What another run took meanwhile is that run's.
    let left = scene.db.mark_lines(scene.run_id, &found.marks, now).await;
    let left = left.doing("noting whose lines these are")?;
    let matched = matched.len().saturating_sub(left.len());
    note.matched = note.matched.saturating_add(count(matched));
    for (table, ids) in &found.again {
        let Some(table) = scene.tables.get(*table) else { continue };
        let filter = contradicted(ids.clone());
        let enrolled = scene.db.enrol(table, &filter, now).await;
        enrolled.doing("taking rows that lines contradict into the work list")?;
    }
    Ok(())
}

/// These rows, however they ended.
pub fn contradicted(ids: Vec<String>) -> ClaimFilter {
    ClaimFilter { ids: Some(ids), given_up: true, ended: true, ..ClaimFilter::default() }
}

/// Which of a table's rows a line may be.
pub(super) struct Candidate<'a> {
    table: usize,
    row: &'a Transaction,
}

/// Which rows store texts of lines as the PSP's reference.
pub(super) struct Storing {
    /// By the table's place, and the text: keys.
    keys: Vec<HashMap<String, Vec<String>>>,
}

impl Storing {
    /// One question to each table, for many lines.
    pub(super) async fn of(
        scene: &Scene<'_>,
        account: &str,
        texts: &[String],
    ) -> Result<Self, RunError> {
        let mut keys = Vec::with_capacity(scene.tables.len());
        for table in &scene.tables {
            let mut by_text: HashMap<String, Vec<String>> = HashMap::new();
            if is_of(table, account) {
                let found = scene.db.keys_storing(table, account, texts).await;
                for (text, key) in found.doing("looking for the rows of lines")? {
                    by_text.entry(text).or_default().push(key);
                }
            }
            keys.push(by_text);
        }
        Ok(Self { keys })
    }

    /// Of the ids that these lines have between banks: those of whole payment runs that some row
    /// stores. They name no row, but for what a line's tag says.
    pub(super) async fn runs<'a>(
        &self,
        scene: &Scene<'_>,
        account: &str,
        lines: impl Iterator<Item = Names<'a>>,
    ) -> Result<HashSet<String>, RunError> {
        let is_stored = |id: &&str| self.keys.iter().any(|by_text| by_text.contains_key(*id));
        let ids: HashSet<&str> = lines.flat_map(Names::banks_ids).filter(is_stored).collect();
        if ids.is_empty() {
            return Ok(HashSet::new());
        }
        let ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
        let carrying = scene.db.lines_of(account, &ids, &[]).await;
        let carrying = carrying.doing("looking for payments that carry one id")?;
        Ok(runs_among(carrying.iter()))
    }

    /// The keys of a table's rows that store one of these.
    fn keys(&self, table: usize, texts: &[String]) -> Vec<String> {
        let Some(by_text) = self.keys.get(table) else { return Vec::new() };
        let keys: HashSet<&String> =
            texts.iter().filter_map(|text| by_text.get(text)).flatten().collect();
        keys.into_iter().cloned().collect()
    }
}

/// Whether rows of a table may be of this account.
pub(super) fn is_of(table: &SourceTable, account: &str) -> bool {
    table.settings.accounts.values().any(|own| own == account)
}

/// Whether rows of a table may be refunds of this account.
pub(super) fn may_refund(table: &SourceTable, account: &str) -> bool {
    is_of(table, account) && kind_of(table, None).is_none_or(|kind| kind == Kind::Refund)
}

/// Every text that rows may know one of these lines by, each once.
pub(super) fn texts_of<'a>(lines: impl Iterator<Item = Names<'a>>) -> Vec<String> {
    let texts: HashSet<&str> = lines.flat_map(Names::all).collect();
    texts.into_iter().map(str::to_owned).collect()
}

/// Rows that ended, by their table's place and key, and the lines that are theirs by name.
type Ended<'a> = BTreeMap<(usize, &'a str), (&'a Transaction, Vec<LinePlace>)>;

/// The rows that lines contradict, each with those lines; noted beside: paid rows that theirs agree
/// with, which nothing may contradict any more.
fn differing(
    ended: &Ended<'_>,
    (again, agreed): (&Again, &HashSet<(usize, &str)>),
    freed: &mut Freed,
) -> Named {
    let mut differing = Named::new();
    for ((table, id), (row, places)) in ended {
        if again.get(table).is_some_and(|ids| ids.iter().any(|own| own == id)) {
            let rows = places.iter().map(|place| ((*id).to_owned(), *place));
            differing.entry(*table).or_default().extend(rows);
        } else if row.succeeded && agreed.contains(&(*table, *id)) {
            freed.entry(*table).or_default().insert((*id).to_owned());
        }
    }
    differing
}

async fn match_some<'l>(
    scene: &Scene<'_>,
    account: &str,
    lines: &'l [OpenLine],
    storing: &Storing,
    refused: &Refused,
) -> Result<FoundOut<'l>, RunError> {
    let texts = texts_of(lines.iter().map(Names::from));
    let known = rows_of(scene, account, &texts, storing).await?;
    let runs = storing.runs(scene, account, lines.iter().map(Names::from)).await?;
    let by_name = by_name(&known, &runs);
    let naming = lines.iter().filter_map(|line| {
        let names = Names::from(line);
        names_payment(names, way_of(line, &by_name), &by_name).then_some(names)
    });
    let paid = Box::pin(NamedPayments::of(scene, account, naming)).await?;
    let payments = paid.rows();
    let mut marks: Vec<LineMark> = Vec::new();
    let mut alone: Vec<(&OpenLine, Reason)> = Vec::new();
    let mut ended = Ended::new();
    let (mut named, mut fees) = (Named::new(), Vec::new());
    let now = scene.clock.now();
    let asked = scene.options.ids.as_ref().map(|ids| ids.iter().collect::<HashSet<_>>());
    let is_asked = |row: &Transaction| asked.as_ref().is_none_or(|ids| ids.contains(&row.key.id));
    for line in lines {
        let (kind, way) = way_of(line, &by_name);
        if kind == LineKind::Fee {
            fees.push(line.place);
            continue;
        }
        let said = (line.type_code.as_deref(), line.amount);
        let names = Names::from(line);
        let named_row = row_of(names, (kind, way), &by_name);
        let (found, beside) = owner_of(named_row, (names, (kind, way), line.place), &payments);
        if let Some(row) = beside.filter(|(_, row)| is_asked(row)) {
            name(&mut named, row, line.place);
        }
        match found {
            Ok((_, row)) if !is_asked(row) || is_early(line, (kind, way), row, now) => {}
            Ok((_, row)) if gives_charge_back((kind, way), said, row) => {
                alone.push((line, Reason::Returned));
            }
            Ok((table, row)) if row.processing => {
                name(&mut named, (table, row), line.place);
                if runs_back(kind, way, row.kind) || gives_again(kind, way, row.kind) {
                    // The row's only where its own movement was booked before.
                    alone.push((line, Reason::Returned));
                } else if named_row.is_ok() && !Names::from(line).tell_of(row) {
                    alone.push((line, Reason::Orphan));
                }
            }
            Ok((table, row)) => {
                let of_row = ended.entry((table, &row.key.id)).or_insert((row, Vec::new()));
                of_row.1.push(line.place);
            }
            Err(_) if asked.is_some() => {}
            Err(reason) => {
                let reason = refused.get(&line.place).copied().unwrap_or(reason);
                alone.push((line, reason));
            }
        }
    }
    let (again, agreed) = agree(scene, account, &ended, &mut marks).await?;
    let mut freed = freed(lines, &by_name);
    let differing = differing(&ended, (&again, &agreed), &mut freed);
    let unseen: HashSet<LinePlace> =
        lines.iter().filter(|line| line.reason.is_none()).map(|line| line.place).collect();
    let rows = taken_out(&named, [known, paid.into_rows()]);
    Ok(FoundOut { marks, alone, unseen, new: 0, again, named, rows, differing, freed, fees })
}

/// A line names a row in processing.
fn name(named: &mut Named, (table, row): Placed<'_>, place: LinePlace) {
    named.entry(table).or_default().push((row.key.id.clone(), place));
}

/// The rows that lines name, out of those that were `read`, each time by table.
fn taken_out(named: &Named, read: [Vec<Vec<Transaction>>; 2]) -> Rows {
    let keys = |(table, lines): (&usize, &Vec<(String, LinePlace)>)| {
        let keys: HashSet<String> = lines.iter().map(|(key, _)| key.clone()).collect();
        (*table, keys)
    };
    let mut wanted: HashMap<usize, HashSet<String>> = named.iter().map(keys).collect();
    let mut rows = Rows::new();
    for (table, own) in read.into_iter().flat_map(|tables| tables.into_iter().enumerate()) {
        let Some(wanted) = wanted.get_mut(&table) else { continue };
        for row in own {
            if let Some(key) = wanted.take(&row.key.id) {
                rows.entry(table).or_default().insert(key, row);
            }
        }
    }
    rows
}

/// Whether a line would be the movement of a row that ended, and was not booked yet.
fn is_early(
    line: &OpenLine,
    (kind, way): (LineKind, Direction),
    row: &Transaction,
    now: Instant,
) -> bool {
    !row.processing && moves(kind, way, row.kind) && is_ahead(line.booked_on, now)
}

/// What an open line is, and where its money went. What a bank calls undone may be a refund that
/// the shop made, and what it calls its charge all of a payment: it is as without a code.
fn way_of(line: &OpenLine, by_name: &HashMap<&str, Vec<Candidate<'_>>>) -> (LineKind, Direction) {
    let names = Names::from(line);
    let said = (line.type_code.as_deref(), line.return_reason.as_deref());
    let mut rows = names.all().filter_map(|name| by_name.get(name)).flatten();
    let is_its = |one: &Candidate<'_>| is_whole_of(names, (line.kind, line.amount), one.row);
    let is_rows = is_coded((line.kind, line.direction), said) && rows.any(is_its);
    (if is_rows { LineKind::Movement } else { line.kind }, line.direction)
}

/// Rows that a line was noted to contradict, where it is another row's by now: one whose money it
/// moves was written since.
fn freed(lines: &[OpenLine], by_name: &HashMap<&str, Vec<Candidate<'_>>>) -> Freed {
    let mut freed = Freed::new();
    let noted = Some(Reason::LateContradiction.as_str());
    for line in lines.iter().filter(|line| line.reason.as_deref() == noted) {
        let names = Names::from(line);
        let (kind, way) = way_of(line, by_name);
        let Ok((_, own)) = row_of(names, (kind, way), by_name) else { continue };
        // Of another amount, or given up, it may explain the booking or not: the case stays.
        let is_live = (own.processing || own.succeeded) && own.money == line.amount;
        if runs_back(kind, way, own.kind) || !is_live {
            continue;
        }
        let others = names.all().filter_map(|name| by_name.get(name)).flatten();
        for other in others.filter(|one| runs_back(kind, way, one.row.kind)) {
            freed.entry(other.table).or_default().insert(other.row.key.id.clone());
        }
    }
    freed
}

/// Whether a line tells of what came back and may name the payment, whatever tag it carries: where
/// no row has a name of it, and where it has one of a payment's row, of a PSP's line.
fn names_payment(
    names: Names<'_>,
    (kind, way): (LineKind, Direction),
    by_name: &HashMap<&str, Vec<Candidate<'_>>>,
) -> bool {
    let is_back = [Kind::Charge, Kind::Refund].iter().any(|own| takes_back(kind, way, *own));
    let is_open = || match row_of(names, (kind, way), by_name) {
        Ok(_) => kind != LineKind::Movement,
        Err(reason) => reason == Reason::Orphan,
    };
    let is_failed = is_failed_refund((kind, way), names.is_banks());
    is_back && names.ids().next().is_some() && (is_failed || is_open())
}

/// Whose a line is by its names and by the payment that it names, be it by that one's refund or
/// chargeback alone; and, of what a refund's row has, the payment's row beside it.
fn owner_of<'a>(
    named: Result<Placed<'a>, Reason>,
    (names, way, place): (Names<'_>, (LineKind, Direction), LinePlace),
    payments: &RowsByPayment<'a>,
) -> (Result<Placed<'a>, Reason>, Option<Placed<'a>>) {
    let is_failed = is_failed_refund(way, names.is_banks());
    let undoes = names.itemised && (is_failed || way.0 == LineKind::ChargebackReversed);
    let before = || payments.paid_before(names).filter(|_| undoes);
    let paid = payments.row_of(names, way, Kind::Charge).or_else(before);
    let own = named.ok();
    let of = |kind: Kind| own.filter(|(_, row)| row.kind == kind);
    if is_failed {
        let refund = match of(Kind::Refund) {
            Some(row) => Failed::Of(row),
            None => payments.failed_refund(names, way, place),
        };
        let payment = paid.or_else(|| of(Kind::Charge));
        return match refund {
            Failed::Of(refund) => (Ok(refund), payment),
            Failed::Unclear => (Err(Reason::TagUnusable), payment),
            Failed::Nobodys => (payment.map_or(named, Ok), None),
        };
    }
    match named {
        Ok((_, row)) if way.0 == LineKind::Refund && row.kind == Kind::Refund => (named, paid),
        Ok((_, row)) if row.kind == Kind::Charge && way.0 != LineKind::Movement => {
            (paid.map_or(named, Ok), None)
        }
        Err(Reason::Orphan) => {
            let own = paid.or_else(|| payments.row_of(names, way, Kind::Refund));
            (own.ok_or(Reason::Orphan), None)
        }
        known => (known, None),
    }
}

/// Lines of rows that a person left as they are, and that nobody looks at any more: what came since
/// is told, unless it was not booked yet, and nothing else becomes of it.
async fn left_alone<'l>(
    scene: &Scene<'_>,
    named: &Named,
    lines: &'l [OpenLine],
) -> Result<Vec<(&'l OpenLine, Reason)>, RunError> {
    let mut alone = Vec::new();
    for (index, rows) in named {
        let Some(table) = scene.tables.get(*index) else { continue };
        let keys = scene.db.parked(&table.settings.name, rows).await;
        let keys = keys.doing("looking for rows that were left as they are")?;
        let left = rows.iter().filter(|(key, _)| keys.contains(key));
        let places: HashSet<LinePlace> = left.map(|(_, place)| *place).collect();
        let is_told = |line: &&OpenLine| !is_ahead(line.booked_on, scene.clock.now());
        let own = lines.iter().filter(|line| places.contains(&line.place)).filter(is_told);
        alone.extend(own.map(|line| (line, Reason::LateContradiction)));
    }
    Ok(alone)
}

/// Leaves out what no row has and another report of the PSP tells as the same transaction: that
/// line is a row's, or the one that waits for it. Says which of those have a case as orphans.
async fn leave_told(
    scene: &Scene<'_>,
    account: &str,
    alone: &mut Vec<(&OpenLine, Reason)>,
) -> Result<Vec<LinePlace>, RunError> {
    let orphans = alone.iter().filter(|(_, reason)| *reason == Reason::Orphan);
    let orphans: Vec<Twin<'_>> = orphans.map(|(line, _)| Twin::from(*line)).collect();
    let told = told_besides(scene, account, &orphans).await?;
    let is_told = |(line, reason): &(&OpenLine, Reason)| {
        *reason == Reason::Orphan && told.contains_key(&line.place)
    };
    let is_cased = |line: &OpenLine| line.cased.as_deref() == Some(Reason::Orphan.as_str());
    let cased = alone.iter().filter(|own| is_told(own) && is_cased(own.0));
    let cased = cased.map(|(line, _)| line.place).collect();
    alone.retain(|own| !is_told(own));
    Ok(cased)
}

/// A line that no row has, as another report of the PSP may tell it.
pub(super) struct Twin<'l> {
    place: LinePlace,
    kind: LineKind,
    direction: Direction,
    amount: Option<Money>,
    refs: &'l [Tag],
    names: Names<'l>,
}

impl<'l> From<&'l OpenLine> for Twin<'l> {
    fn from(line: &'l OpenLine) -> Self {
        let OpenLine { place, kind, direction, amount, .. } = *line;
        Self { place, kind, direction, amount, refs: &line.refs, names: Names::from(line) }
    }
}

impl<'l> From<&'l StoredLine> for Twin<'l> {
    fn from(line: &'l StoredLine) -> Self {
        let StoredLine { place, kind, direction, amount, .. } = *line;
        Self { place, kind, direction, amount, refs: &line.refs, names: Names::from(line) }
    }
}

/// Which of these lines another report of the PSP tells as the same transaction, each with that
/// line.
pub(super) async fn told_besides(
    scene: &Scene<'_>,
    account: &str,
    lines: &[Twin<'_>],
) -> Result<HashMap<LinePlace, LinePlace>, RunError> {
    let is_psps = |line: &&Twin<'_>| {
        let is_banks = matches!(line.kind, LineKind::Movement | LineKind::Return);
        !is_banks && transaction(line.refs).is_some()
    };
    let lines: Vec<&Twin<'_>> = lines.iter().filter(is_psps).collect();
    let texts = texts_of(lines.iter().map(|line| line.names));
    if texts.is_empty() {
        return Ok(HashMap::new());
    }
    let found = scene.db.lines_of(account, &texts, &[]).await;
    let found = found.doing("looking for what several reports tell")?;
    let mut by_transaction: HashMap<&str, Vec<&StoredLine>> = HashMap::new();
    for line in &found {
        if let Some(id) = transaction(&line.refs).filter(|_| line.decides) {
            by_transaction.entry(id).or_default().push(line);
        }
    }
    let other_of = |line: &&Twin<'_>| {
        let others = transaction(line.refs).and_then(|id| by_transaction.get(id));
        let other = others.into_iter().flatten().find(|other| tells_more(other, line))?;
        Some((line.place, other.place))
    };
    Ok(lines.iter().filter_map(other_of).collect())
}

/// The PSP's id of what moved its balance.
fn transaction(refs: &[Tag]) -> Option<&str> {
    let own = refs.iter().find(|tag| tag.kind == TagKind::TransactionId);
    own.map(|tag| tag.text.as_str())
}

/// Whether the line of another file is the same money, and the better known one: a row has it, it
/// has all names and one besides, or it came first.
fn tells_more(other: &StoredLine, line: &Twin<'_>) -> bool {
    let is_same = other.place.file != line.place.file
        && (other.kind, other.direction) == (line.kind, line.direction)
        && other.amount == line.amount;
    let names = |line: Names<'_>| line.all().map(str::to_owned).collect::<HashSet<String>>();
    let (more, own) = (names(Names::from(other)), names(line.names));
    let is_more = own.is_subset(&more) && own.len() < more.len();
    is_same && (other.row.is_some() || is_more || (own == more && other.place < line.place))
}

/// The rows of each table by their names; the id of a whole payment run is none.
pub(super) fn by_name<'a>(
    rows: &'a [Vec<Transaction>],
    runs: &HashSet<String>,
) -> HashMap<&'a str, Vec<Candidate<'a>>> {
    let mut by_name: HashMap<&str, Vec<Candidate<'a>>> = HashMap::new();
    for (table, row) in rows.iter().enumerate().flat_map(|(t, r)| r.iter().map(move |r| (t, r))) {
        let stored = stored_id(row).filter(|id| !runs.contains(*id));
        for name in [row.tag.usable(), stored].into_iter().flatten() {
            by_name.entry(name).or_default().push(Candidate { table, row });
        }
    }
    by_name
}

/// The row that a line is of by its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    pub key: RowKey,
    pub created_at: Instant,
    pub attempted_at: Option<Instant>,
}

impl From<&Transaction> for Owner {
    fn from(row: &Transaction) -> Self {
        let Transaction { created_at, attempted_at, .. } = *row;
        Self { key: row.key.clone(), created_at, attempted_at }
    }
}

/// Whose these lines are by all of their names, be it that they do not agree; none of those that
/// are no row's, or that several rows could have.
pub(super) async fn owners(
    scene: &Scene<'_>,
    account: &str,
    lines: &[StoredLine],
) -> Result<HashMap<LinePlace, Owner>, RunError> {
    let texts = texts_of(lines.iter().map(Names::from));
    let storing = Storing::of(scene, account, &texts).await?;
    let rows = rows_of(scene, account, &texts, &storing).await?;
    let runs = storing.runs(scene, account, lines.iter().map(Names::from)).await?;
    let by_name = by_name(&rows, &runs);
    let way = |line: &StoredLine| (line.kind, line.direction);
    let naming = lines.iter().map(|line| (Names::from(line), way(line)));
    let naming = naming.filter(|(names, way)| names_payment(*names, *way, &by_name));
    let names = naming.map(|(names, _)| names);
    let payments = Box::pin(NamedPayments::of(scene, account, names)).await?;
    let payments = payments.rows();
    let owned = lines.iter().filter_map(|line| {
        let (names, way) = (Names::from(line), way(line));
        let named = row_of(names, way, &by_name);
        let (_table, row) = owner_of(named, (names, way, line.place), &payments).0.ok()?;
        Some((line.place, Owner::from(row)))
    });
    Ok(owned.collect())
}

/// Why a bank's line that names a payout is none of what was paid.
const NOT_AS_PAID: [Reason; 5] = [
    Reason::AmountMismatch,
    Reason::CurrencyMismatch,
    Reason::DuplicateCapture,
    Reason::Returned,
    Reason::TagUnusable,
];

/// Whether a bank moved money by a line, be it with the code of a return: what it took back of a
/// payout is that one's either way.
fn is_banks_money(line: &OpenLine) -> bool {
    let came_back = line.kind == LineKind::Return && Names::from(line).is_banks();
    line.itemised && (line.kind == LineKind::Movement || came_back)
}

/// Lines that no row has may be a bank's bookings of a PSP's payouts: exactly one that names a
/// payout, and comes to what the payout's own lines come to. Anything else is for a person.
async fn book_payouts(
    scene: &Scene<'_>,
    alone: &[(&OpenLine, Reason)],
) -> Result<(Vec<LineMark>, HashMap<LinePlace, PayoutKey>), RunError> {
    let now = scene.clock.now();
    let may_be = |line: &OpenLine| is_banks_money(line) && !is_ahead(line.booked_on, now);
    let has_no_row = |reason: Reason| matches!(reason, Reason::Orphan | Reason::ReferenceMissing);
    let texts: HashSet<&str> = alone
        .iter()
        .filter(|(line, reason)| has_no_row(*reason) && may_be(line))
        .flat_map(|(line, _)| Names::from(*line).all())
        .collect();
    let texts: Vec<String> = texts.into_iter().map(str::to_owned).collect();
    let named = scene.db.payouts_named(&texts, None).await.doing("looking for payouts")?;
    let mut by_text: HashMap<&str, Vec<&PayoutKey>> = HashMap::new();
    for NamedPayout { text, key } in &named {
        by_text.entry(text).or_default().push(key);
    }
    let mut found: Vec<(&OpenLine, Result<PayoutKey, Reason>)> = Vec::new();
    for (line, reason) in alone {
        let mut keys: Vec<&PayoutKey> = match may_be(line) && has_no_row(*reason) {
            true => {
                let names = Names::from(*line).all();
                names.filter_map(|name| by_text.get(name)).flatten().copied().collect()
            }
            false => Vec::new(),
        };
        keys.sort_unstable();
        keys.dedup();
        only_in_currency(&mut keys, line);
        found.push((
            line,
            match keys.as_slice() {
                [] => Err(*reason),
                [only] => Ok((*only).clone()),
                _several => Err(Reason::TagUnusable),
            },
        ));
    }
    let mut marks = Vec::with_capacity(found.len());
    let mut misbooked = HashMap::new();
    for (line, key) in found {
        let booked = match key {
            Ok(key) => {
                let booked = booked(scene, line, &key, &named).await?;
                if booked.as_ref().is_err_and(|reason| NOT_AS_PAID.contains(reason)) {
                    misbooked.insert(line.place, key);
                }
                booked
            }
            Err(reason) => Err(reason),
        };
        marks.push(match booked {
            Ok(payout) => LineMark {
                place: line.place,
                row: Some((PAYOUTS.to_owned(), payout.key.text())),
                reason: None,
                worth: line.amount.map(|money| Money {
                    minor: i64::try_from(payout.net()).unwrap_or(money.minor),
                    ..money
                }),
            },
            Err(reason) => open_because(line.place, reason),
        });
    }
    Ok((marks, misbooked))
}

/// Of an id that a PSP paid out under in several currencies, a line names the payout in its own.
fn only_in_currency(keys: &mut Vec<&PayoutKey>, line: &OpenLine) {
    let (Some(first), Some(money)) = (keys.first().copied(), line.amount) else { return };
    let is_own = |key: &PayoutKey| key.currency == money.currency.code();
    let is_one = keys.iter().all(|key| key.is_one_id(first));
    if is_one && keys.iter().any(|key| is_own(key)) {
        keys.retain(|key| is_own(key));
    }
}

/// Whether a line is the one booking of a payout, to the cent: no other line of any file carries a
/// text that names it, not even as what came back, but what is paid out under its id in another
/// currency. What takes it back is none.
async fn booked(
    scene: &Scene<'_>,
    line: &OpenLine,
    key: &PayoutKey,
    named: &[NamedPayout],
) -> Result<Result<Payout, Reason>, RunError> {
    let own = named.iter().filter(|named| named.key == *key);
    let texts: Vec<String> = own.map(|named| named.text.clone()).collect();
    let beside = named.iter().map(|named| &named.key).filter(|other| other.is_one_id(key));
    let beside: HashSet<&str> = beside
        .map(|other| other.currency.as_str())
        .filter(|currency| *currency != key.currency)
        .collect();
    let payout = scene.db.payout(key, None).await.doing("adding a payout up")?;
    let Some(payout) = payout else { return Ok(Err(Reason::Orphan)) };
    let Some(money) = line.amount else { return Ok(Err(Reason::ReferenceMissing)) };
    let moved = line.direction.signed(money.minor);
    let runs_back = payout.booked_as().is_some_and(|own| (own < 0) != (moved < 0));
    if line.kind == LineKind::Return || payout.booked > 0 && runs_back {
        return Ok(Err(Reason::Returned));
    }
    if payout.booked > 0 {
        return Ok(Err(Reason::DuplicateCapture));
    }
    for (account, _) in scene.accounts.iter().filter(|(_, open)| open.has_files) {
        let lines = scene.db.lines_of(account, &texts, &[]).await;
        let mut lines = lines.doing("looking for other bookings of a payout")?.into_iter();
        let is_another = |other: &StoredLine| {
            let came_back = other.kind == LineKind::Return && Names::from(other).is_banks();
            let is_booking = other.kind == LineKind::Movement || came_back;
            is_booking
                && other.decides
                && other.place != line.place
                && !beside.contains(other.currency.code())
        };
        if lines.any(|other| is_another(&other)) {
            return Ok(Err(Reason::TagUnusable));
        }
    }
    let is_same = payout.booked_as() == Some(moved);
    Ok(match () {
        () if money.currency.code() != key.currency => Err(Reason::CurrencyMismatch),
        () if !is_same => Err(Reason::AmountMismatch),
        () => Ok(payout),
    })
}

fn open_because(place: LinePlace, reason: Reason) -> LineMark {
    LineMark { place, row: None, reason: Some(reason.as_str().to_owned()), worth: None }
}

/// The rows of each table that lines of these texts may be, in any status.
pub(super) async fn rows_of(
    scene: &Scene<'_>,
    account: &str,
    texts: &[String],
    storing: &Storing,
) -> Result<Vec<Vec<Transaction>>, RunError> {
    let mut rows = Vec::with_capacity(scene.tables.len());
    for (index, table) in scene.tables.iter().enumerate() {
        rows.push(match is_of(table, account) {
            true => {
                let keys = storing.keys(index, texts);
                let found = scene.db.rows_known_by(table, account, texts, texts, &keys).await;
                found.doing("looking for the rows of lines")?
            }
            false => Vec::new(),
        });
    }
    Ok(rows)
}

/// The one row that a line is known by. A tag comes before any other name: a line may carry its
/// batch's name, too, and that of what it takes back. What patterns found in its text is one
/// name, however many they found: a text that tells of two rows is no row's alone. A payment and
/// its refund may share a tag: what moves the one is not the other's. A booking that runs the other
/// way than a row moves money is that row's only where no other row moves it by any of its names.
/// What undoes a bank's return is the row's of what came back, where it is nobody else's.
pub(super) fn row_of<'a>(
    line: Names<'_>,
    (kind, direction): (LineKind, Direction),
    by_name: &HashMap<&str, Vec<Candidate<'a>>>,
) -> Result<(usize, &'a Transaction), Reason> {
    if !line.itemised {
        return Err(Reason::ReferenceMissing);
    }
    let own = |row: Kind| !is_anothers(kind, direction, row);
    let again = |row: Kind| gives_again(kind, direction, row);
    let found = match row_by(line, (kind, direction), by_name, &own)? {
        None => row_by(line, (kind, direction), by_name, &again)?,
        found => found,
    };
    let is_named = line.has_name();
    found.ok_or(if is_named { Reason::Orphan } else { Reason::ReferenceMissing })
}

/// As [`row_of`], among rows of these kinds.
fn row_by<'a>(
    line: Names<'_>,
    (kind, direction): (LineKind, Direction),
    by_name: &HashMap<&str, Vec<Candidate<'a>>>,
    may_be: &dyn Fn(Kind) -> bool,
) -> Result<Option<(usize, &'a Transaction)>, Reason> {
    let mover = || mover_of(line, (kind, direction), by_name);
    if let Some(found) = mover().filter(|_| kind == LineKind::Refund) {
        return Ok(Some(found));
    }
    let within = line.within();
    for name in line.all() {
        let own = [name];
        let names: &[&str] = if within.contains(&name) { &within } else { &own };
        let found = names.iter().filter_map(|name| by_name.get(*name)).flatten();
        let mut found: Vec<_> = found.filter(|one| may_be(one.row.kind)).collect();
        let is_moved = |one: &&Candidate<'_>| moves(kind, direction, one.row.kind);
        if found.iter().any(is_moved) {
            found.retain(is_moved);
        }
        let found: BTreeMap<(usize, &str), &'a Transaction> =
            found.into_iter().map(|one| ((one.table, one.row.key.id.as_str()), one.row)).collect();
        let mut found = found.into_iter();
        match (found.next(), found.next()) {
            (None, _) => {}
            (Some(((table, _), row)), None) => {
                let is_its = kind != LineKind::Movement || moves(kind, direction, row.kind);
                return Ok(Some(mover().filter(|_| !is_its).unwrap_or((table, row))));
            }
            (Some(_), Some(_)) => return Err(Reason::TagUnusable),
        }
    }
    Ok(None)
}

/// The row whose money a line moves, where just one has a name of it: a refund names the payment
/// that it gives back, too.
fn mover_of<'a>(
    line: Names<'_>,
    (kind, direction): (LineKind, Direction),
    by_name: &HashMap<&str, Vec<Candidate<'a>>>,
) -> Option<(usize, &'a Transaction)> {
    let within = line.within();
    // Of several that stand in one text none is better than the others.
    let names = line.all().filter(|name| within.len() < 2 || !within.contains(name));
    for name in names {
        let found = by_name.get(name).into_iter().flatten();
        let found = found.filter(|one| moves(kind, direction, one.row.kind));
        let found: BTreeMap<(usize, &str), &'a Transaction> =
            found.map(|one| ((one.table, one.row.key.id.as_str()), one.row)).collect();
        if let (Some(((table, _), row)), 1) = (found.first_key_value(), found.len()) {
            return Some((*table, *row));
        }
    }
    None
}

/// That a line is of a row that ended, and agrees with it.
fn its_mark(place: LinePlace, row: &Transaction, own: &[SettledLine]) -> LineMark {
    LineMark {
        place,
        row: Some((row.key.table.clone(), row.key.id.clone())),
        reason: differs(row, own).then(|| Reason::ToleranceDelta.as_str().to_owned()),
        worth: row.money.map(|money| Money { minor: row.kind.signed(money.minor), ..money }),
    }
}

/// Whether lines that agree with a row do so within the tolerance alone.
fn differs(row: &Transaction, lines: &[SettledLine]) -> bool {
    let found = objects(lines, row.kind, row.tag.usable());
    found.iter().any(|object| object.captured.is_some() && object.captured != row.money)
}

/// Whether a row that succeeded stores the PSP's id of another payment than the one that its lines
/// tell of, as far as they tell an id of the same kind.
fn stores_another(
    row: &Transaction,
    (known, own): (&[&StoredLine], &[SettledLine]),
    found: &[PspObject],
) -> bool {
    let Some(stored) = row.psp_reference.as_deref().filter(|_| row.succeeded) else { return false };
    let is_another = |object: &PspObject| {
        let of_it = |(_, said): &(&&StoredLine, &SettledLine)| {
            said.payment.as_deref() == Some(object.reference.as_str())
        };
        let mut own = known.iter().zip(own).filter(of_it).peekable();
        let has_id = own.peek().is_some();
        let is_its = own.any(|(line, _)| Names::from(*line).all().any(|name| name == stored));
        has_id && !is_its && are_alike(stored, &object.reference)
    };
    found.iter().any(|object| object.captured.is_some() && is_another(object))
}

/// Whether two ids may be of the same kind: many begin with a word that says which it is.
fn are_alike(one: &str, other: &str) -> bool {
    let word = |id: &str| id.split_once('_').map(|(begin, _)| begin.to_owned());
    word(one) == word(other)
}

/// Holds the lines of rows that ended, all of each, against those rows: the marks of what agrees,
/// and by table the rows to be looked at again; the rows with which all agrees.
async fn agree<'a>(
    scene: &Scene<'_>,
    account: &str,
    ended: &Ended<'a>,
    marks: &mut Vec<LineMark>,
) -> Result<(Again, HashSet<(usize, &'a str)>), RunError> {
    let (mut again, mut agreed) = (Again::new(), HashSet::new());
    if ended.is_empty() {
        return Ok((again, agreed));
    }
    let (exact, now) = (Tolerance::default(), scene.clock.now());
    let tolerance = scene.accounts.get(account).map_or(&exact, |open| &open.setup.tolerance);
    let rows: Vec<&Transaction> = ended.values().map(|(row, _)| *row).collect();
    let mut shelf = Shelf::about(scene.db, account, &rows).await?;
    shelf.find_coded(scene.db, &scene.tables, account).await?;
    shelf.note_runs(&[]);
    shelf.find_owners(scene.db, &scene.tables, account, &rows).await?;
    for ((table, id), (row, places)) in ended {
        let mut known = shelf.told_of_row(row);
        known.retain(|line| !shelf.is_behind_another(line, row));
        let say = |line: &&StoredLine| less_if_ahead(line, shelf.said_of(line, row), row, now);
        let own: Vec<SettledLine> = known.iter().map(say).collect();
        let found = objects(&own, row.kind, row.tag.usable());
        let after = match stores_another(row, (&known, &own), &found) {
            true => AfterEnd::Differs,
            false => after_end(row, &found, tolerance),
        };
        if matches!(after, AfterEnd::Agrees) {
            agreed.insert((*table, *id));
        }
        match after {
            AfterEnd::Agrees => marks.extend(places.iter().map(|place| {
                let of_place = |line: &&SettledLine| line.place == place.to_string();
                let is_of_run = |line: &&StoredLine| {
                    line.place == *place && by_instruction_alone(line, row).is_some()
                };
                match own.iter().find(of_place) {
                    // It may be another payment's of the row's run.
                    _ if known.iter().any(is_of_run) => open_because(*place, Reason::Orphan),
                    Some(line) if !(line.decides && counts(line, &own, row.kind)) => {
                        open_because(*place, Reason::Returned)
                    }
                    Some(_) => its_mark(*place, row, &own),
                    // Its names say so, and what it tells does not.
                    None => open_because(*place, Reason::Orphan),
                }
            })),
            AfterEnd::Differs => {
                if leave_back(row, places, (known.as_slice(), own.as_slice()), marks) {
                    again.entry(*table).or_default().push(row.key.id.clone());
                }
            }
        }
    }
    Ok((again, agreed))
}

/// Leaves bookings open that run the other way than a row which they contradict moves money: they
/// are another row's where one that they move is written yet, and the case tells of them meanwhile.
/// Whether any line is news for the row.
fn leave_back(
    row: &Transaction,
    places: &[LinePlace],
    (known, own): (&[&StoredLine], &[SettledLine]),
    marks: &mut Vec<LineMark>,
) -> bool {
    let mut is_news = false;
    for place in places {
        let mut lines = known.iter().zip(own).filter(|(line, _)| line.place == *place);
        let is_back = |line: &StoredLine| runs_back(line.kind, line.direction, row.kind);
        let is_again = |line: &StoredLine| gives_again(line.kind, line.direction, row.kind);
        let back = lines
            .find(|(line, its)| is_back(line) || is_again(line) && !counts(its, own, row.kind));
        let Some((line, its)) = back else {
            is_news = true;
            if !known.iter().any(|line| line.place == *place) {
                // Its names say that it is the row's, and what it tells does not.
                marks.push(open_because(*place, Reason::Orphan));
            }
            continue;
        };
        let reason = match counts(its, own, row.kind) {
            true => Reason::LateContradiction,
            false => Reason::Returned,
        };
        if line.reason.as_deref() != Some(reason.as_str()) {
            is_news = true;
            marks.push(open_because(*place, reason));
        }
    }
    is_news
}
