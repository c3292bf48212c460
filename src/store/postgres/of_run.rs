//! What a run found out about files and their lines, read back for its report.

use sqlx::postgres::{PgPool, PgRow};

use crate::model::money::Money;
use crate::model::time::Instant;
use crate::store::error::StoreError;
use crate::store::files::{
    FILE, FileOfRun, LINE, LineBucket, LineOfRun, LinePlace, LineTally, LinesOfRun, StoredLine,
    booked_minor,
};
use crate::store::payouts::stood_sql;
use crate::store::postgres::errors::failed;
use crate::store::postgres::lines::{line_of, money};
use crate::store::postgres::shelf::file_of;
use crate::store::postgres::sql::{Cells, Sql};

const READING: &str = "reading what a run found out about lines";

/// Columns of [`LINE`] and of [`FILE`]: what follows them is read by place.
const AFTER_LINE: usize = 39;
const AFTER_FILE: usize = 22;

pub(super) async fn lines(
    pool: &PgPool,
    run_id: &str,
    which: LinesOfRun,
    after: Option<LinePlace>,
    limit: i64,
) -> Result<Vec<LineOfRun>, StoreError> {
    let after = after.unwrap_or(LinePlace { file: 0, position: 0 });
    let mut sql = Sql::default();
    let (run, limit) = (sql.bind(run_id.to_owned()), sql.bind(limit));
    let (file, position) = (sql.bind(after.file), sql.bind(after.position));
    let own = match which {
        LinesOfRun::Matched => format!("l.run_id = {run}"),
        LinesOfRun::Noted => format!("l.seen_run = {run} and l.run_id is distinct from {run}"),
    };
    sql.push(&format!(
        "select {LINE}, l.row_currency, l.row_minor, l.seen_reason from tieout_lines l \
         join tieout_files f on f.id = l.file_id where {own} \
         and (l.file_id, l.position) > ({file}, {position}) \
         order by l.file_id, l.position limit {limit}"
    ));
    sql.fetch_page(pool, READING, |row| own_line(row, which)).await
}

pub(super) async fn beside(
    pool: &PgPool,
    run_id: &str,
    rows: &[(String, String)],
    until: Instant,
) -> Result<Vec<StoredLine>, StoreError> {
    let mut sql = Sql::default();
    let tables: Vec<String> = rows.iter().map(|(table, _)| table.clone()).collect();
    let keys: Vec<String> = rows.iter().map(|(_, key)| key.clone()).collect();
    let (tables, keys) = (sql.bind(tables), sql.bind(keys));
    let (run, at) = (sql.bind(run_id.to_owned()), sql.bind(until));
    sql.push(&format!(
        "select {LINE} from unnest({tables}::text[], {keys}::text[]) as k(name, key) \
         cross join lateral (select l.* from tieout_lines l where l.table_name = k.name \
         and l.key = k.key offset 0) l join tieout_files f on f.id = l.file_id \
         where l.run_id <> {run} and l.matched_at <= {at} and {}",
        stood_sql(&format!("{at}::timestamptz"))
    ));
    sql.fetch_page(pool, READING, line_of).await
}

fn own_line(row: &PgRow, which: LinesOfRun) -> Result<LineOfRun, StoreError> {
    let cells = Cells::new(row, READING);
    let worth: Option<Money> = money(&cells, AFTER_LINE)?;
    let noted = cells.maybe_text(AFTER_LINE.saturating_add(2))?;
    let is_noted = which == LinesOfRun::Noted;
    Ok(LineOfRun {
        line: line_of(row)?,
        worth: worth.filter(|_| !is_noted),
        noted: noted.filter(|_| is_noted),
    })
}

pub(super) async fn files(
    pool: &PgPool,
    run_id: &str,
    after: i64,
    limit: i64,
) -> Result<Vec<FileOfRun>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::default();
    let (run, after, limit) = (sql.bind(run_id.to_owned()), sql.bind(after), sql.bind(limit));
    sql.push(&format!(
        "with own as (select id from tieout_files where run_id = {run} \
         union select file_id from tieout_lines where run_id = {run} \
         union select file_id from tieout_lines where seen_run = {run}) \
         select {FILE}, f.raw_bytes, s.from_on, s.to_on, \
         case when s.count = 1 then s.opening end, case when s.count = 1 then s.closing end, \
         f.tried_run \
         from own join tieout_files f on f.id = own.id \
         cross join lateral (select count(*) as count, min(from_on) as from_on, \
         max(to_on) as to_on, min(opening_minor) as opening, min(closing_minor) as closing \
         from tieout_statements where file_id = f.id) s \
         where f.id > {after} order by f.id limit {limit}"
    ));
    let rows = sql.fetch(&mut connection).await.map_err(failed(READING))?;
    let mut files = Vec::with_capacity(rows.len());
    for row in &rows {
        let cells = Cells::new(row, READING);
        let at = |more: usize| AFTER_FILE.saturating_add(more);
        let file = file_of(row)?;
        let mut sql = Sql::default();
        let (run, id) = (sql.bind(run_id.to_owned()), sql.bind(file.id));
        sql.push(&tally_sql(&run, &id));
        let found = sql.fetch(&mut connection).await.map_err(failed(READING))?;
        files.push(FileOfRun {
            file,
            raw_bytes: cells.big(at(0))?,
            period: (cells.maybe_day(at(1))?, cells.maybe_day(at(2))?),
            balances: (cells.maybe_big(at(3))?, cells.maybe_big(at(4))?),
            tallies: found.iter().map(tally_of).collect::<Result<_, _>>()?,
            tried_run: cells.maybe_text(at(5))?,
        });
    }
    Ok(files)
}

/// Nothing of it changes once the run has ended: whose a line is beyond that, is elsewhere.
fn tally_sql(run: &str, file: &str) -> String {
    format!(
        "select l.currency, case when l.run_id = {run} then 'matched' \
         when l.seen_run = {run} then 'noted' \
         when l.kind in ('fee', 'payout', 'attempt') then 'no_row' else 'elsewhere' end as bucket, \
         count(*), coalesce(sum({}), 0)::text \
         from tieout_lines l where l.file_id = {file} group by 1, 2 order by 1, 2",
        booked_minor()
    )
}

fn tally_of(row: &PgRow) -> Result<LineTally, StoreError> {
    let cells = Cells::new(row, READING);
    Ok(LineTally {
        currency: cells.text(0)?,
        bucket: cells.word(1, LineBucket::parse)?,
        lines: cells.big(2)?,
        minor: cells.sum(3)?,
    })
}
