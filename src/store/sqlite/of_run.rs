//! What a run found out about files and their lines, read back for its report.

use sqlx::sqlite::{SqliteConnection, SqliteRow};

use crate::model::money::Money;
use crate::model::time::{Instant, to_text};
use crate::store::error::StoreError;
use crate::store::files::{
    FILE, FileOfRun, LINE, LineBucket, LineOfRun, LinePlace, LineTally, LinesOfRun, StoredLine,
    booked_minor,
};
use crate::store::payouts::stood_sql;
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::lines::{line_of, money};
use crate::store::sqlite::shelf::file_of;
use crate::store::sqlite::sql::{fetch, fetch_each, json_set, rendered};

const READING: &str = "reading what a run found out about lines";

/// Columns of [`LINE`] and of [`FILE`]: what follows them is read by place.
const AFTER_LINE: usize = 39;
const AFTER_FILE: usize = 22;

/// SQLite adds up in 64 bits: the sum is taken in two parts.
const PART: i128 = 1_000_000_000;

pub(super) async fn lines(
    connection: &mut SqliteConnection,
    run_id: &str,
    which: LinesOfRun,
    after: Option<LinePlace>,
    limit: i64,
) -> Result<Vec<LineOfRun>, StoreError> {
    let after = after.unwrap_or(LinePlace { file: 0, position: 0 });
    let own = match which {
        LinesOfRun::Matched => "l.run_id = ?1",
        LinesOfRun::Noted => "l.seen_run = ?1 and l.run_id is not ?1",
    };
    let sql = format!(
        "select {LINE}, l.row_currency, l.row_minor, l.seen_reason from tieout_lines l \
         cross join tieout_files f on f.id = l.file_id where {own} \
         and (l.file_id, l.position) > (?2, ?3) order by l.file_id, l.position limit ?4"
    );
    let query =
        rendered(&sql).bind(run_id.to_owned()).bind(after.file).bind(after.position).bind(limit);
    fetch_each(connection, READING, query, |row| own_line(row, which)).await
}

pub(super) async fn beside(
    connection: &mut SqliteConnection,
    run_id: &str,
    rows: &[(String, String)],
    until: Instant,
) -> Result<Vec<StoredLine>, StoreError> {
    let sql = format!(
        "select {LINE} from json_each(?1) j cross join tieout_lines l \
         on l.table_name = j.value ->> 0 and l.key = j.value ->> 1 \
         cross join tieout_files f on f.id = l.file_id \
         where l.run_id <> ?2 and l.matched_at <= ?3 and {}",
        stood_sql("?3")
    );
    let query = rendered(&sql).bind(json_set(rows)).bind(run_id.to_owned()).bind(to_text(until));
    fetch_each(connection, READING, query, line_of).await
}

fn own_line(row: &SqliteRow, which: LinesOfRun) -> Result<LineOfRun, StoreError> {
    let cells = Cells::new(row, READING);
    let worth: Option<Money> = money(&cells, AFTER_LINE)?;
    let noted = cells.opt_text(AFTER_LINE.saturating_add(2))?;
    let is_noted = which == LinesOfRun::Noted;
    Ok(LineOfRun {
        line: line_of(row)?,
        worth: worth.filter(|_| !is_noted),
        noted: noted.filter(|_| is_noted),
    })
}

pub(super) async fn files(
    connection: &mut SqliteConnection,
    run_id: &str,
    after: i64,
    limit: i64,
) -> Result<Vec<FileOfRun>, StoreError> {
    let sql = format!(
        "select {FILE}, f.raw_bytes, s.from_on, s.to_on, \
         case when s.count = 1 then s.opening end, case when s.count = 1 then s.closing end, \
         f.tried_run \
         from (select id from tieout_files where run_id = ?1 \
         union select file_id from tieout_lines where run_id = ?1 \
         union select file_id from tieout_lines where seen_run = ?1) own \
         join tieout_files f on f.id = own.id \
         left join (select file_id, count(*) as count, min(from_on) as from_on, \
         max(to_on) as to_on, min(opening_minor) as opening, min(closing_minor) as closing \
         from tieout_statements group by file_id) s on s.file_id = f.id \
         where f.id > ?2 order by f.id limit ?3"
    );
    let query = rendered(&sql).bind(run_id.to_owned()).bind(after).bind(limit);
    let rows = fetch(connection, READING, query).await?;
    let mut files = Vec::with_capacity(rows.len());
    let tallies = tallies();
    for row in &rows {
        let cells = Cells::new(row, READING);
        let at = |more: usize| AFTER_FILE.saturating_add(more);
        let file = file_of(row)?;
        let query = rendered(&tallies).bind(run_id.to_owned()).bind(file.id);
        let found = fetch(connection, READING, query).await?;
        files.push(FileOfRun {
            file,
            raw_bytes: cells.int(at(0))?,
            period: (cells.opt_day(at(1))?, cells.opt_day(at(2))?),
            balances: (cells.opt_int(at(3))?, cells.opt_int(at(4))?),
            tallies: found.iter().map(tally_of).collect::<Result<_, _>>()?,
            tried_run: cells.opt_text(at(5))?,
        });
    }
    Ok(files)
}

/// Nothing of it changes once the run has ended: whose a line is beyond that, is elsewhere.
fn tallies() -> String {
    format!(
        "select currency, bucket, count(*), \
         coalesce(sum(minor / 1000000000), 0), coalesce(sum(minor % 1000000000), 0) from (\
         select l.currency, case when l.run_id = ?1 then 'matched' \
         when l.seen_run = ?1 then 'noted' \
         when l.kind in ('fee', 'payout', 'attempt') then 'no_row' else 'elsewhere' end as bucket, \
         {} as minor from tieout_lines l where l.file_id = ?2) \
         group by currency, bucket order by currency, bucket",
        booked_minor()
    )
}

fn tally_of(row: &SqliteRow) -> Result<LineTally, StoreError> {
    let cells = Cells::new(row, READING);
    let (high, low) = (i128::from(cells.int(3)?), i128::from(cells.int(4)?));
    Ok(LineTally {
        currency: cells.text(0)?,
        bucket: cells.word(1, LineBucket::parse)?,
        lines: cells.int(2)?,
        minor: high.saturating_mul(PART).saturating_add(low),
    })
}
