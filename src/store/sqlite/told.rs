//! Finding bookings that another file told before: within the caller's transaction.

use sqlx::sqlite::{SqliteConnection, SqliteRow};

use crate::model::settlement::Problem;
use crate::store::error::StoreError;
use crate::store::files::{Ended, big, clean, date_text};
use crate::store::mirrored::{by_sums, pairs};
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::files::DOING;
use crate::store::sqlite::sql::{execute, fetch, json_set, rendered};
use crate::store::told::{
    Dialect, OURS, Overlap, Side, Way, by_bank, by_psp, by_text, elsewhere, found_again,
    lost_files, may_overlap, otherwise, otherwise_problem, overlaps, reversed, sides, statements,
    undone, undone_problem, way,
};

const DIALECT: Dialect = Dialect {
    join: "cross join",
    first,
    sides: "ours as materialized (select j.value ->> 0 as number, j.value ->> 1 as g \
            from json_each($2) j), theirs as materialized (select j.value ->> 0 as file_id, \
            j.value ->> 1 as number, j.value ->> 2 as g from json_each($3) j)",
    hit: "hit as materialized (select p.position as own, x.file_id as file_id, \
          x.position as position from tieout_lines p cross join tieout_line_tags x \
          on x.account = p.account and x.text = p.psp_reference and x.file_id <> $1 \
          where p.file_id = $1 and p.psp_reference is not null \
          union select p.position, o.file_id, o.position from tieout_lines p \
          cross join tieout_lines o on o.account = p.account and o.tag = p.psp_reference \
          and o.tag is not null and +o.file_id <> $1 \
          where p.file_id = $1 and p.psp_reference is not null)",
    near: "near as materialized (select p.position as own, x.file_id as file_id, \
           x.position as position from tieout_lines p cross join tieout_line_tags x \
           on x.account = p.account and x.text = p.original \
           where p.file_id = $1 and p.kind = 'return' and p.original is not null)",
    array: "json_array",
    as_text: "",
    day: "t.day",
};

fn first(kinds: &str) -> String {
    format!(
        "(select r.value ->> 1 from json_each(l.refs) r where r.value ->> 0 in ({kinds}) \
         order by r.key limit 1)"
    )
}

/// Marks the lines of a file that another one told before; how many they are.
pub(super) async fn mark(connection: &mut SqliteConnection, file: i64) -> Result<u64, StoreError> {
    let query = sqlx::query("select format, account from tieout_files where id = ?1").bind(file);
    let rows = fetch(connection, DOING, query).await?;
    let Some(row) = rows.first() else { return Ok(0) };
    let cells = Cells::new(row, DOING);
    let (format, account) = (cells.text(0)?, cells.text(1)?);
    match way(&format) {
        Some(Way::Bank | Way::Rows) => mark_bank(connection, file, &account).await,
        Some(Way::Psp) => mark_psp(connection, file, &format).await,
        Some(Way::Text) => mark_text(connection, file).await,
        Some(Way::Described) => {
            let told = mark_psp(connection, file, &format).await?;
            let told = told.saturating_add(mark_text(connection, file).await?);
            Ok(told.saturating_add(mark_bank(connection, file, &account).await?))
        }
        None => Ok(0),
    }
}

async fn mark_psp(
    connection: &mut SqliteConnection,
    file: i64,
    format: &str,
) -> Result<u64, StoreError> {
    let told = execute(connection, DOING, rendered(&by_psp(&DIALECT)).bind(file)).await?;
    if format != "paypal_trr" {
        return Ok(told);
    }
    let query = rendered(&reversed(&DIALECT)).bind(file);
    Ok(told.saturating_add(execute(connection, DOING, query).await?))
}

async fn mark_text(connection: &mut SqliteConnection, file: i64) -> Result<u64, StoreError> {
    execute(connection, DOING, rendered(&by_text(&DIALECT)).bind(file)).await
}

async fn mark_bank(
    connection: &mut SqliteConnection,
    file: i64,
    account: &str,
) -> Result<u64, StoreError> {
    let mine = fetch(connection, DOING, sqlx::query(OURS).bind(file)).await?;
    let mine = mine.iter().map(side_of).collect::<Result<Vec<_>, _>>()?;
    let from = mine.iter().map(|side| side.from).min().flatten();
    let to = mine.iter().map(|side| side.to).collect::<Option<Vec<_>>>();
    let to = to.and_then(|days| days.into_iter().max());
    // One that says no period is looked at for so long after it came.
    let sql = format!(
        "select o.file_id, o.number, o.bank_account, o.currency, o.from_on, o.to_on, f.format, \
         o.opening_minor, o.closing_minor \
         from tieout_statements o cross join tieout_files f on f.id = o.file_id \
         where o.account = ?2 and o.file_id <> ?1 and o.finality = 'final' and o.state <> 'held' \
         and (o.to_on is not null or f.received_at >= (select date(substr(x.received_at, 1, 10), \
         '-92 days') from tieout_files x where x.id = ?1)) \
         and (?3 is null or o.to_on is null or o.to_on >= ?3) \
         and (?4 is null or o.from_on is null or o.from_on <= ?4) and f.format in ({})",
        statements()
    );
    let query = rendered(&sql).bind(file).bind(account.to_owned());
    let query = query.bind(from.map(date_text)).bind(to.map(date_text));
    let others = fetch(connection, DOING, query).await?;
    let others = others.iter().map(side_of).collect::<Result<Vec<_>, _>>()?;
    let found = sides(&mine, &others);
    let mut told = 0_u64;
    for (theirs, refs) in found.looks() {
        let query = rendered(&by_bank(&DIALECT, refs)).bind(file);
        let query = query.bind(json_set(&found.ours)).bind(json_set(theirs));
        told = told.saturating_add(execute(connection, DOING, query).await?);
    }
    let pairs = pairs(&mine, &others);
    if !pairs.ours.is_empty() {
        let query = rendered(&by_sums(&DIALECT)).bind(file);
        let query = query.bind(json_set(&pairs.ours)).bind(json_set(&pairs.theirs));
        told = told.saturating_add(execute(connection, DOING, query).await?);
    }
    Ok(told)
}

/// What a report, whose lines are there and marked, says otherwise of what another one told.
pub(super) async fn clashes(
    connection: &mut SqliteConnection,
    file: i64,
) -> Result<Vec<Problem>, StoreError> {
    let query = sqlx::query("select format from tieout_files where id = ?1").bind(file);
    let rows = fetch(connection, DOING, query).await?;
    let Some(row) = rows.first() else { return Ok(Vec::new()) };
    let format = Cells::new(row, DOING).text(0)?;
    if way(&format) != Some(Way::Psp) {
        return Ok(Vec::new());
    }
    let problem = |row: &SqliteRow| {
        let cells = Cells::new(row, DOING);
        let own = (cells.text(3)?, cells.opt_int(4)?, cells.opt_int(5)?);
        let before = (cells.text(6)?, cells.opt_int(7)?, cells.opt_int(8)?);
        let other = (cells.int(1)?, cells.int(2)?);
        Ok(otherwise_problem(cells.int(0)?, other, [&own, &before]))
    };
    let mut found = Vec::new();
    let kinds = (format == "stripe").then(|| elsewhere(&DIALECT));
    for query in [Some(otherwise()), kinds].into_iter().flatten() {
        let rows = fetch(connection, DOING, rendered(&query).bind(file)).await?;
        found.extend(rows.iter().map(problem).collect::<Result<Vec<_>, StoreError>>()?);
    }
    if format == "braintree" {
        let rows = fetch(connection, DOING, rendered(&undone(&DIALECT)).bind(file)).await?;
        let problem = |row: &SqliteRow| {
            let cells = Cells::new(row, DOING);
            let other = (cells.int(1)?, cells.int(2)?);
            Ok(undone_problem(cells.int(0)?, other, &cells.text(3)?))
        };
        found.extend(rows.iter().map(problem).collect::<Result<Vec<_>, StoreError>>()?);
    }
    Ok(found)
}

fn side_of(row: &SqliteRow) -> Result<Side, StoreError> {
    let cells = Cells::new(row, DOING);
    Ok(Side {
        file: cells.int(0)?,
        number: cells.int(1)?,
        bank_account: cells.text(2)?,
        currency: cells.text(3)?,
        from: cells.opt_day(4)?,
        to: cells.opt_day(5)?,
        format: cells.text(6)?,
        opening: cells.opt_int(7)?,
        closing: cells.opt_int(8)?,
    })
}

/// A correction changed which lines of a file count: what it tells again counts no more, and what
/// was told again of lines that are gone counts.
pub(super) async fn again(connection: &mut SqliteConnection, file: i64) -> Result<(), StoreError> {
    mark(connection, file).await?;
    let rows = fetch(connection, DOING, rendered(&lost_files())).await?;
    let files = rows.iter().map(|row| Cells::new(row, DOING).int(0));
    let files = files.collect::<Result<Vec<i64>, _>>()?;
    if files.is_empty() {
        return Ok(());
    }
    execute(connection, DOING, rendered(&found_again())).await?;
    for file in files {
        mark(connection, file).await?;
    }
    Ok(())
}

/// The days of other files of rows that a statement, whose lines are there, holds whole.
pub(super) async fn overlapped(
    connection: &mut SqliteConnection,
    file: i64,
    ended: &Ended,
) -> Result<Vec<Overlap>, StoreError> {
    if !may_overlap(ended) {
        return Ok(Vec::new());
    }
    let Ended { head, close } = ended;
    let query = rendered(&overlaps(&DIALECT))
        .bind(file)
        .bind(big(head.number))
        .bind(head.account.clone())
        .bind(clean(&head.bank_account).into_owned())
        .bind(close.currency.map(|currency| currency.code().to_owned()).unwrap_or_default())
        .bind(close.from.map(date_text))
        .bind(close.to.map(date_text));
    let rows = fetch(connection, DOING, query).await?;
    let overlap = |row: &SqliteRow| {
        let cells = Cells::new(row, DOING);
        Ok(Overlap {
            rival: (cells.int(0)?, cells.int(1)?),
            name: cells.text(2)?,
            day: cells.text(3)?,
        })
    };
    rows.iter().map(overlap).collect()
}
