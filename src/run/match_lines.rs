//! From lines that no row has yet to rows: what agrees with a row that ended becomes its own, and
//! a row that a line contradicts is looked at again by the run's one loop.
//!
//! A row that is still processing is decided from its lines when it is due, and not here. A line
//! that several rows could have is nobody's; one that none has is matched again by every run.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::decide::settled::{AfterEnd, after_end, objects};
use crate::model::reason::Reason;
use crate::model::settlement::SettledLine;
use crate::model::transaction::Transaction;
use crate::run::by_files::{Shelf, names_of, settled};
use crate::run::error::{Doing, RunError};
use crate::run::scene::Scene;
use crate::store::driver::Driver;
use crate::store::files::{FileDriver, LineMark, LinePlace, StoredLine};
use crate::store::records::ClaimFilter;
use crate::store::source_table::SourceTable;

/// Lines that are looked up together.
const AT_ONCE: i64 = 5_000;

/// Matches the open lines of every account that has files.
pub async fn match_lines(scene: &Scene<'_>) -> Result<(), RunError> {
    let accounts = scene.accounts.iter().filter(|(_, open)| open.has_files);
    for (account, _) in accounts.filter(|_| !scene.options.dry_run) {
        let mut after = None;
        loop {
            let lines = scene.db.open_lines(account, after, AT_ONCE).await;
            let lines = lines.doing("reading lines that have no row yet")?;
            let Some(last) = lines.last() else { break };
            after = Some(last.place);
            match_some(scene, account, &lines).await?;
        }
    }
    Ok(())
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
) -> Result<(), RunError> {
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
    let mut ended: BTreeMap<(usize, &str), (&Transaction, Vec<LinePlace>)> = BTreeMap::new();
    for line in lines {
        match row_of(line, &by_name) {
            Ok((_, row)) if row.processing => {}
            Ok((table, row)) => {
                let of_row = ended.entry((table, &row.key.id)).or_insert((row, Vec::new()));
                of_row.1.push(line.place);
            }
            Err(reason) => marks.push(open_because(line.place, reason)),
        }
    }
    let again = agree(scene, account, &ended, &mut marks).await?;
    let now = scene.clock.now();
    // What another run took meanwhile is that run's.
    let _taken = scene
        .db
        .mark_lines(scene.run_id, &marks, now)
        .await
        .doing("noting whose lines these are")?;
    for (table, ids) in again {
        let Some(table) = scene.tables.get(table) else { continue };
        let filter =
            ClaimFilter { ids: Some(ids), given_up: true, ended: true, ..Default::default() };
        let enrolled = scene.db.enrol(table, &filter, now).await;
        enrolled.doing("taking rows that lines contradict into the work list")?;
    }
    Ok(())
}

fn open_because(place: LinePlace, reason: Reason) -> LineMark {
    LineMark { place, row: None, reason: Some(reason.as_str().to_owned()) }
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
/// batch's name, too, and that of what it takes back.
fn row_of<'a>(
    line: &StoredLine,
    by_name: &HashMap<&str, Vec<Candidate<'a>>>,
) -> Result<(usize, &'a Transaction), Reason> {
    if !line.itemised {
        return Err(Reason::ReferenceMissing);
    }
    let mut has_name = false;
    for name in names_of(line) {
        has_name = true;
        let Some(candidates) = by_name.get(name) else { continue };
        return match candidates.as_slice() {
            [only] => Ok((only.table, only.row)),
            _several => Err(Reason::TagUnusable),
        };
    }
    Err(if has_name { Reason::Orphan } else { Reason::ReferenceMissing })
}

/// Holds the lines of rows that ended, all of each, against those rows: the marks of what agrees,
/// and by table the rows to be looked at again.
async fn agree(
    scene: &Scene<'_>,
    account: &str,
    ended: &BTreeMap<(usize, &str), (&Transaction, Vec<LinePlace>)>,
    marks: &mut Vec<LineMark>,
) -> Result<BTreeMap<usize, Vec<String>>, RunError> {
    let mut again: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    if ended.is_empty() {
        return Ok(again);
    }
    let rows: Vec<&Transaction> = ended.values().map(|(row, _)| *row).collect();
    let shelf = Shelf::about(scene.db, account, &rows).await?;
    for ((table, _), (row, places)) in ended {
        let own: Vec<SettledLine> = shelf.of_row(row).into_iter().map(settled).collect();
        match after_end(row, &objects(&own, row.kind, row.tag.usable())) {
            AfterEnd::Agrees => marks.extend(places.iter().map(|place| LineMark {
                place: *place,
                row: Some((row.key.table.clone(), row.key.id.clone())),
                reason: None,
            })),
            AfterEnd::Differs => again.entry(*table).or_default().push(row.key.id.clone()),
        }
    }
    Ok(again)
}
