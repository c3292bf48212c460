//! From lines that no row has yet to rows: what agrees with a row that ended becomes its own, and
//! a row that a line contradicts is looked at again by the run's one loop.
//!
//! A row that is still processing is decided from its lines when it is due, and not here. A line
//! that several rows could have is nobody's; one that none has is matched again by every run.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::decide::policy::Tolerance;
use crate::decide::settled::{AfterEnd, after_end, objects};
use crate::model::money::Money;
use crate::model::reason::Reason;
use crate::model::settlement::{LineKind, SettledLine};
use crate::model::transaction::Transaction;
use crate::run::batches::{Refused, explain_batches};
use crate::run::books::{Books, Tell};
use crate::run::by_files::{Shelf, found_within, names_of, settled};
use crate::run::error::{Doing, RunError};
use crate::run::events::Event;
use crate::run::scene::Scene;
use crate::store::driver::Driver;
use crate::store::files::{FileDriver, LineMark, LinePlace, StoredLine};
use crate::store::payouts::{NamedPayout, Payout, PayoutDriver, PayoutKey, TABLE as PAYOUTS};
use crate::store::records::ClaimFilter;
use crate::store::source_table::SourceTable;

/// Lines that are looked up together.
const AT_ONCE: i64 = 5_000;

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
}

/// Rows to be looked at again, by table.
pub type Again = BTreeMap<usize, Vec<String>>;

/// Matches the open lines of every account that has files. A dry run writes nothing: it tells
/// which lines would become a row's, and gives back the rows that would be looked at again.
pub async fn match_lines(
    scene: &Scene<'_>,
    books: &mut Books,
    tell: Tell<'_>,
) -> Result<Again, RunError> {
    let mut all = Again::new();
    let asked_ids = scene.options.ids.as_ref();
    let asked = scene.options.accounts.as_ref();
    let is_asked = |name: &String| asked.is_none_or(|names| names.contains(name));
    let accounts = scene.accounts.iter().filter(|(name, open)| open.has_files && is_asked(name));
    for (account, _) in accounts {
        let refused = explain_batches(scene, account, books, tell).await?;
        let mut after = None;
        loop {
            let lines = scene.db.open_lines(account, after, AT_ONCE).await;
            let lines = lines.doing("reading lines that have no row yet")?;
            let Some(last) = lines.last() else { break };
            after = Some(last.place);
            let found = match_some(scene, account, &lines, &refused).await?;
            write(scene, books, lines.len(), &found, tell).await?;
            if scene.options.dry_run {
                for (table, ids) in found.again {
                    all.entry(table).or_default().extend(ids);
                }
            }
        }
        if asked_ids.is_none() {
            look_again(scene, account, books, &mut all).await?;
        }
    }
    Ok(all)
}

/// Rows that succeeded by a line which a correction took out are looked at again: what they were
/// paid by is gone, and nobody else would say so.
async fn look_again(
    scene: &Scene<'_>,
    account: &str,
    books: &mut Books,
    all: &mut Again,
) -> Result<(), RunError> {
    let mut after = None;
    loop {
        let gone = scene.db.taken_out(account, after, AT_ONCE).await;
        let gone = gone.doing("looking for rows whose line was taken out")?;
        let Some(last) = gone.last() else { return Ok(()) };
        after = Some(last.place);
        let mut again: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        for (table, id) in gone.iter().filter_map(|line| line.row.as_ref()) {
            let mut tables = scene.tables.iter();
            if let Some(index) = tables.position(|own| own.settings.name == *table) {
                again.entry(index).or_default().insert(id.clone());
            }
        }
        let now = scene.clock.now();
        for (index, ids) in again {
            let Some(table) = scene.tables.get(index) else { continue };
            let ids: Vec<String> = ids.into_iter().collect();
            let count = u64::try_from(ids.len()).unwrap_or(u64::MAX);
            books.lines.contradicted = books.lines.contradicted.saturating_add(count);
            if scene.options.dry_run {
                all.entry(index).or_default().extend(ids);
                continue;
            }
            let enrolled = scene.db.enrol(table, &contradicted(ids), now).await;
            enrolled.doing("taking rows whose line was taken out into the work list")?;
        }
        if !scene.options.dry_run {
            let places: Vec<LinePlace> = gone.iter().map(|line| line.place).collect();
            let noted = scene.db.note_looked_again(scene.run_id, &places).await;
            noted.doing("noting which rows are looked at again")?;
        }
    }
}

/// What some lines came to.
struct FoundOut {
    marks: Vec<LineMark>,
    /// Lines without a row that no run had looked at before.
    new: u64,
    again: Again,
}

async fn write(
    scene: &Scene<'_>,
    books: &mut Books,
    lines: usize,
    found: &FoundOut,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let (matched, open): (Vec<&LineMark>, Vec<&LineMark>) =
        found.marks.iter().partition(|mark| mark.row.is_some());
    let note = &mut books.lines;
    note.looked_at = note.looked_at.saturating_add(count(lines));
    note.new = note.new.saturating_add(found.new);
    note.open = note.open.saturating_add(count(open.len()));
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
struct Candidate<'a> {
    table: usize,
    row: &'a Transaction,
}

async fn match_some(
    scene: &Scene<'_>,
    account: &str,
    lines: &[StoredLine],
    refused: &Refused,
) -> Result<FoundOut, RunError> {
    let mut rows: Vec<Vec<Transaction>> = Vec::new();
    for table in &scene.tables {
        rows.push(rows_of(scene, table, account, lines).await?);
    }
    let mut by_name: HashMap<&str, Vec<Candidate<'_>>> = HashMap::new();
    for (table, row) in rows.iter().enumerate().flat_map(|(t, r)| r.iter().map(move |r| (t, r))) {
        let names = [row.tag.usable(), row.psp_reference.as_deref()];
        for name in names.into_iter().flatten() {
            by_name.entry(name).or_default().push(Candidate { table, row });
        }
    }
    let mut marks: Vec<LineMark> = Vec::new();
    let mut alone: Vec<(&StoredLine, Reason)> = Vec::new();
    let mut ended: BTreeMap<(usize, &str), (&Transaction, Vec<LinePlace>)> = BTreeMap::new();
    let asked = scene.options.ids.as_ref().map(|ids| ids.iter().collect::<HashSet<_>>());
    let is_asked = |row: &Transaction| asked.as_ref().is_none_or(|ids| ids.contains(&row.key.id));
    for line in lines {
        match row_of(line, &by_name) {
            Ok((_, row)) if row.processing || !is_asked(row) => {}
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
    let again = agree(scene, account, &ended, &mut marks).await?;
    let unseen: HashSet<LinePlace> =
        lines.iter().filter(|line| line.reason.is_none()).map(|line| line.place).collect();
    let told = book_payouts(scene, &alone).await?;
    let new = told.iter().filter(|mark| mark.row.is_none() && unseen.contains(&mark.place));
    let new = u64::try_from(new.count()).unwrap_or(u64::MAX);
    marks.extend(told);
    Ok(FoundOut { marks, new, again })
}

/// Lines that no row has may be a bank's bookings of a PSP's payouts: exactly one that names a
/// payout, and comes to what the payout's own lines come to. Anything else is for a person.
async fn book_payouts(
    scene: &Scene<'_>,
    alone: &[(&StoredLine, Reason)],
) -> Result<Vec<LineMark>, RunError> {
    let may_be = |line: &StoredLine| line.kind == LineKind::Movement && line.itemised;
    let texts: HashSet<&str> = alone
        .iter()
        .filter(|(line, reason)| *reason == Reason::Orphan && may_be(line))
        .flat_map(|(line, _)| names_of(line))
        .collect();
    let texts: Vec<String> = texts.into_iter().map(str::to_owned).collect();
    let named = scene.db.payouts_named(&texts).await.doing("looking for payouts")?;
    let mut by_text: HashMap<&str, Vec<&PayoutKey>> = HashMap::new();
    for NamedPayout { text, key } in &named {
        by_text.entry(text).or_default().push(key);
    }
    let mut found: Vec<(&StoredLine, Result<PayoutKey, Reason>)> = Vec::new();
    for (line, reason) in alone {
        let mut keys: Vec<&PayoutKey> = match may_be(line) && *reason == Reason::Orphan {
            true => {
                names_of(line).filter_map(|name| by_text.get(name)).flatten().copied().collect()
            }
            false => Vec::new(),
        };
        keys.sort_unstable();
        keys.dedup();
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
    for (line, key) in found {
        let booked = match key {
            Ok(key) => {
                let own = named.iter().filter(|named| named.key == key);
                let texts: Vec<String> = own.map(|named| named.text.clone()).collect();
                booked(scene, line, &key, &texts).await?
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
    Ok(marks)
}

/// Whether a line is the one booking of a payout, to the cent: no other line of any file carries
/// these texts of it.
async fn booked(
    scene: &Scene<'_>,
    line: &StoredLine,
    key: &PayoutKey,
    texts: &[String],
) -> Result<Result<Payout, Reason>, RunError> {
    let payout = scene.db.payout(key).await.doing("adding a payout up")?;
    let Some(payout) = payout else { return Ok(Err(Reason::Orphan)) };
    let Some(money) = line.amount else { return Ok(Err(Reason::ReferenceMissing)) };
    if payout.booked > 0 {
        return Ok(Err(Reason::DuplicateCapture));
    }
    for (account, _) in scene.accounts.iter().filter(|(_, open)| open.has_files) {
        let lines = scene.db.lines_of(account, texts, &[]).await;
        let mut lines = lines.doing("looking for other bookings of a payout")?.into_iter();
        let is_another = |other: &StoredLine| {
            other.kind == LineKind::Movement && other.decides && other.place != line.place
        };
        if lines.any(|other| is_another(&other)) {
            return Ok(Err(Reason::TagUnusable));
        }
    }
    let is_same = line.direction.signed(money.minor) == payout.net();
    Ok(match () {
        () if money.currency.code() != key.currency => Err(Reason::CurrencyMismatch),
        () if !is_same || !payout.adds_up() => Err(Reason::AmountMismatch),
        () => Ok(payout),
    })
}

fn open_because(place: LinePlace, reason: Reason) -> LineMark {
    LineMark { place, row: None, reason: Some(reason.as_str().to_owned()), worth: None }
}

/// The rows of a table that these lines may be, in any status.
async fn rows_of(
    scene: &Scene<'_>,
    table: &SourceTable,
    account: &str,
    lines: &[StoredLine],
) -> Result<Vec<Transaction>, RunError> {
    if !table.settings.accounts.values().any(|own| own == account) {
        return Ok(Vec::new());
    }
    let texts: HashSet<&str> = lines.iter().flat_map(names_of).collect();
    let texts: Vec<String> = texts.into_iter().map(str::to_owned).collect();
    let rows = scene.db.rows_known_by(table, account, &texts, &texts).await;
    rows.doing("looking for the rows of lines")
}

/// The one row that a line is known by. A tag comes before any other name: a line may carry its
/// batch's name, too, and that of what it takes back. What patterns found in its text is one
/// name, however many they found: a text that tells of two rows is no row's alone.
fn row_of<'a>(
    line: &StoredLine,
    by_name: &HashMap<&str, Vec<Candidate<'a>>>,
) -> Result<(usize, &'a Transaction), Reason> {
    if !line.itemised {
        return Err(Reason::ReferenceMissing);
    }
    let within = found_within(line);
    let mut has_name = false;
    for name in names_of(line) {
        has_name = true;
        let own = [name];
        let names: &[&str] = if within.contains(&name) { &within } else { &own };
        let found = names.iter().filter_map(|name| by_name.get(*name)).flatten();
        let found: BTreeMap<(usize, &str), &'a Transaction> =
            found.map(|one| ((one.table, one.row.key.id.as_str()), one.row)).collect();
        let mut found = found.into_iter();
        match (found.next(), found.next()) {
            (None, _) => {}
            (Some(((table, _), row)), None) => return Ok((table, row)),
            (Some(_), Some(_)) => return Err(Reason::TagUnusable),
        }
    }
    Err(if has_name { Reason::Orphan } else { Reason::ReferenceMissing })
}

/// Whether lines that agree with a row do so within the tolerance alone.
fn differs(row: &Transaction, lines: &[SettledLine]) -> bool {
    let found = objects(lines, row.kind, row.tag.usable());
    found.iter().any(|object| object.captured.is_some() && object.captured != row.money)
}

/// Holds the lines of rows that ended, all of each, against those rows: the marks of what agrees,
/// and by table the rows to be looked at again.
async fn agree(
    scene: &Scene<'_>,
    account: &str,
    ended: &BTreeMap<(usize, &str), (&Transaction, Vec<LinePlace>)>,
    marks: &mut Vec<LineMark>,
) -> Result<Again, RunError> {
    let mut again = Again::new();
    if ended.is_empty() {
        return Ok(again);
    }
    let exact = Tolerance::default();
    let tolerance = scene.accounts.get(account).map_or(&exact, |open| &open.setup.tolerance);
    let rows: Vec<&Transaction> = ended.values().map(|(row, _)| *row).collect();
    let shelf = Shelf::about(scene.db, account, &rows).await?;
    for ((table, _), (row, places)) in ended {
        let own: Vec<SettledLine> = shelf.of_row(row).into_iter().map(settled).collect();
        match after_end(row, &objects(&own, row.kind, row.tag.usable()), tolerance) {
            AfterEnd::Agrees => marks.extend(places.iter().map(|place| LineMark {
                place: *place,
                row: Some((row.key.table.clone(), row.key.id.clone())),
                reason: differs(row, &own).then(|| Reason::ToleranceDelta.as_str().to_owned()),
                worth:
                    row.money.map(|money| Money { minor: row.kind.signed(money.minor), ..money }),
            })),
            AfterEnd::Differs => again.entry(*table).or_default().push(row.key.id.clone()),
        }
    }
    Ok(again)
}
