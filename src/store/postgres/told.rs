//! Finding bookings that another file told before: within the caller's transaction.

use sqlx::postgres::{PgConnection, PgRow};

use crate::model::settlement::Problem;
use crate::store::error::StoreError;
use crate::store::files::{Ended, big, clean};
use crate::store::mirrored::{by_sums, pairs};
use crate::store::postgres::errors::failed;
use crate::store::postgres::files::DOING;
use crate::store::postgres::sql::{Cells, Sql};
use crate::store::told::{
    Dialect, OURS, Overlap, Side, Way, by_bank, by_psp, by_text, elsewhere, found_again,
    lost_files, may_overlap, otherwise, otherwise_problem, overlaps, reversed, sides, statements,
    undone, undone_problem, way,
};

// `offset 0` keeps each look-up one of its own, by the index.
const DIALECT: Dialect = Dialect {
    join: "join",
    first,
    sides: "ours as materialized (select * from unnest($2::bigint[], $3::bigint[]) \
            as u(number, g)), theirs as materialized (select * \
            from unnest($4::bigint[], $5::bigint[], $6::bigint[]) as u(file_id, number, g))",
    hit: "hit as materialized (select p.position as own, h.file_id, h.position \
          from tieout_lines p cross join lateral (select x.file_id, x.position \
          from tieout_line_tags x where x.account = p.account and x.text = p.psp_reference \
          and x.file_id <> $1 offset 0) h where p.file_id = $1 and p.psp_reference is not null \
          union select p.position, h.file_id, h.position from tieout_lines p \
          cross join lateral (select o.file_id, o.position from tieout_lines o \
          where o.account = p.account and o.tag = p.psp_reference and o.file_id <> $1 offset 0) h \
          where p.file_id = $1 and p.psp_reference is not null)",
    near: "near as materialized (select p.position as own, h.file_id, h.position \
           from tieout_lines p cross join lateral (select x.file_id, x.position \
           from tieout_line_tags x where x.account = p.account and x.text = p.original offset 0) h \
           where p.file_id = $1 and p.kind = 'return' and p.original is not null)",
    array: "jsonb_build_array",
    as_text: "::text",
    day: "to_char(t.day, 'YYYY-MM-DD')",
};

/// A text with the one character that no text of the server can hold names nothing.
fn first(kinds: &str) -> String {
    format!(
        "(case when strpos(l.refs, '\\u0000') = 0 then (select r.value ->> 1 \
         from json_array_elements(l.refs::json) with ordinality as r(value, place) \
         where r.value ->> 0 in ({kinds}) order by r.place limit 1) end)"
    )
}

/// Marks the lines of a file that another one told before; how many they are. Files that come at
/// once wait for each other, so that one of them is the one that was told before.
pub(super) async fn mark(connection: &mut PgConnection, file: i64) -> Result<u64, StoreError> {
    let found: Option<(String, String)> =
        sqlx::query_as("select format, account from tieout_files where id = $1")
            .bind(file)
            .fetch_optional(&mut *connection)
            .await
            .map_err(failed(DOING))?;
    let Some((format, account)) = found else { return Ok(0) };
    let Some(way) = way(&format) else { return Ok(0) };
    sqlx::query("select pg_advisory_xact_lock(hashtextextended('tieout files told', 0))")
        .execute(&mut *connection)
        .await
        .map_err(failed(DOING))?;
    match way {
        Way::Bank | Way::Rows => mark_bank(connection, file, &account).await,
        Way::Psp => mark_psp(connection, file, &format).await,
        Way::Text => mark_text(connection, file).await,
        Way::Described => {
            let told = mark_psp(connection, file, &format).await?;
            let told = told.saturating_add(mark_text(connection, file).await?);
            Ok(told.saturating_add(mark_bank(connection, file, &account).await?))
        }
    }
}

async fn mark_psp(
    connection: &mut PgConnection,
    file: i64,
    format: &str,
) -> Result<u64, StoreError> {
    let mut sql = Sql::new(by_psp(&DIALECT));
    sql.bind(file);
    let told = sql.run(&mut *connection).await.map_err(failed(DOING))?;
    if format != "paypal_trr" {
        return Ok(told);
    }
    let mut sql = Sql::new(reversed(&DIALECT));
    sql.bind(file);
    Ok(told.saturating_add(sql.run(connection).await.map_err(failed(DOING))?))
}

async fn mark_text(connection: &mut PgConnection, file: i64) -> Result<u64, StoreError> {
    let mut sql = Sql::new(by_text(&DIALECT));
    sql.bind(file);
    sql.run(connection).await.map_err(failed(DOING))
}

async fn mark_bank(
    connection: &mut PgConnection,
    file: i64,
    account: &str,
) -> Result<u64, StoreError> {
    let mut sql = Sql::new(OURS);
    sql.bind(file);
    let mine = sql.fetch_each(connection, DOING, side_of).await?;
    let from = mine.iter().map(|side| side.from).min().flatten();
    let to = mine.iter().map(|side| side.to).collect::<Option<Vec<_>>>();
    let to = to.and_then(|days| days.into_iter().max());
    // One that says no period is looked at for so long after it came.
    let mut sql = Sql::new(format!(
        "select o.file_id, o.number, o.bank_account, o.currency, o.from_on, o.to_on, f.format, \
         o.opening_minor, o.closing_minor \
         from tieout_statements o join tieout_files f on f.id = o.file_id \
         where o.account = $2 and o.file_id <> $1 and o.finality = 'final' and o.state <> 'held' \
         and (o.to_on is not null or f.received_at >= (select x.received_at - interval '92 days' \
         from tieout_files x where x.id = $1)) \
         and ($3::date is null or o.to_on is null or o.to_on >= $3) \
         and ($4::date is null or o.from_on is null or o.from_on <= $4) and f.format in ({})",
        statements()
    ));
    sql.bind(file);
    sql.bind(account.to_owned());
    sql.bind(from);
    sql.bind(to);
    let others = sql.fetch_each(connection, DOING, side_of).await?;
    let found = sides(&mine, &others);
    let mut told = 0_u64;
    for (theirs, refs) in found.looks() {
        let sql = sided(by_bank(&DIALECT, refs), file, &found.ours, theirs);
        let marked = sql.run(&mut *connection).await.map_err(failed(DOING))?;
        told = told.saturating_add(marked);
    }
    let pairs = pairs(&mine, &others);
    if !pairs.ours.is_empty() {
        let sql = sided(by_sums(&DIALECT), file, &pairs.ours, &pairs.theirs);
        let marked = sql.run(&mut *connection).await.map_err(failed(DOING))?;
        told = told.saturating_add(marked);
    }
    Ok(told)
}

/// A question of the file's own statements and those of others that they are held against.
fn sided(text: String, file: i64, ours: &[(i64, i64)], theirs: &[(i64, i64, i64)]) -> Sql {
    let mut sql = Sql::new(text);
    sql.bind(file);
    sql.bind(ours.iter().map(|(number, _)| *number).collect::<Vec<i64>>());
    sql.bind(ours.iter().map(|(_, group)| *group).collect::<Vec<i64>>());
    sql.bind(theirs.iter().map(|(file, _, _)| *file).collect::<Vec<i64>>());
    sql.bind(theirs.iter().map(|(_, number, _)| *number).collect::<Vec<i64>>());
    sql.bind(theirs.iter().map(|(_, _, group)| *group).collect::<Vec<i64>>());
    sql
}

/// What a report, whose lines are there and marked, says otherwise of what another one told.
pub(super) async fn clashes(
    connection: &mut PgConnection,
    file: i64,
) -> Result<Vec<Problem>, StoreError> {
    let sql = "select format from tieout_files where id = $1";
    let format: Option<String> = sqlx::query_scalar(sql)
        .bind(file)
        .fetch_optional(&mut *connection)
        .await
        .map_err(failed(DOING))?;
    let format = format.unwrap_or_default();
    if way(&format) != Some(Way::Psp) {
        return Ok(Vec::new());
    }
    let problem = |row: &PgRow| {
        let cells = Cells::new(row, DOING);
        let own = (cells.text(3)?, cells.maybe_big(4)?, cells.maybe_big(5)?);
        let before = (cells.text(6)?, cells.maybe_big(7)?, cells.maybe_big(8)?);
        let other = (cells.big(1)?, cells.big(2)?);
        Ok(otherwise_problem(cells.big(0)?, other, [&own, &before]))
    };
    let mut found = Vec::new();
    let kinds = (format == "stripe").then(|| elsewhere(&DIALECT));
    for query in [Some(otherwise()), kinds].into_iter().flatten() {
        let mut sql = Sql::new(query);
        sql.bind(file);
        found.extend(sql.fetch_each(&mut *connection, DOING, problem).await?);
    }
    if format == "braintree" {
        let mut sql = Sql::new(undone(&DIALECT));
        sql.bind(file);
        let problem = |row: &PgRow| {
            let cells = Cells::new(row, DOING);
            let other = (cells.big(1)?, cells.big(2)?);
            Ok(undone_problem(cells.big(0)?, other, &cells.text(3)?))
        };
        found.extend(sql.fetch_each(&mut *connection, DOING, problem).await?);
    }
    Ok(found)
}

fn side_of(row: &PgRow) -> Result<Side, StoreError> {
    let cells = Cells::new(row, DOING);
    Ok(Side {
        file: cells.big(0)?,
        number: cells.big(1)?,
        bank_account: cells.text(2)?,
        currency: cells.text(3)?,
        from: cells.maybe_day(4)?,
        to: cells.maybe_day(5)?,
        format: cells.text(6)?,
        opening: cells.maybe_big(7)?,
        closing: cells.maybe_big(8)?,
    })
}

/// A correction changed which lines of a file count: what it tells again counts no more, and what
/// was told again of lines that are gone counts.
pub(super) async fn again(connection: &mut PgConnection, file: i64) -> Result<(), StoreError> {
    mark(connection, file).await?;
    let rows = Sql::new(lost_files()).fetch(connection).await.map_err(failed(DOING))?;
    let files = rows.iter().map(|row| Cells::new(row, DOING).big(0));
    let files = files.collect::<Result<Vec<i64>, _>>()?;
    if files.is_empty() {
        return Ok(());
    }
    Sql::new(found_again()).run(connection).await.map_err(failed(DOING))?;
    for file in files {
        mark(connection, file).await?;
    }
    Ok(())
}

/// The days of other files of rows that a statement, whose lines are there, holds whole.
pub(super) async fn overlapped(
    connection: &mut PgConnection,
    file: i64,
    ended: &Ended,
) -> Result<Vec<Overlap>, StoreError> {
    if !may_overlap(ended) {
        return Ok(Vec::new());
    }
    let Ended { head, close } = ended;
    let mut sql = Sql::new(overlaps(&DIALECT));
    sql.bind(file);
    sql.bind(big(head.number));
    sql.bind(head.account.clone());
    sql.bind(clean(&head.bank_account).into_owned());
    sql.bind(close.currency.map(|currency| currency.code().to_owned()).unwrap_or_default());
    sql.bind(close.from);
    sql.bind(close.to);
    let overlap = |row: &PgRow| {
        let cells = Cells::new(row, DOING);
        Ok(Overlap {
            rival: (cells.big(0)?, cells.big(1)?),
            name: cells.text(2)?,
            day: cells.text(3)?,
        })
    };
    sql.fetch_each(connection, DOING, overlap).await
}
