//! Files and statements as they are kept, read for people.

use chrono::NaiveDate;
use sqlx::postgres::{PgPool, PgRow};

use crate::decide::reach::Worth;
use crate::model::settlement::Finality;
use crate::store::error::StoreError;
use crate::store::files::{
    ATTEMPT_FILES, AttemptFile, FILE, FileFilter, FileRow, FileState, Held, STANDINGS, STATEMENT,
    Standing, StatementRow, StatementState, problems_of, zones_of,
};
use crate::store::postgres::errors::failed;
use crate::store::postgres::sql::{Cells, Sql};

const READING: &str = "reading settlement files";

pub(super) fn file_of(row: &PgRow) -> Result<FileRow, StoreError> {
    let cells = Cells::new(row, READING);
    let (by, why) = (cells.maybe_text(19)?, cells.maybe_text(20)?);
    let changed = cells.maybe_at(18)?.zip(by).zip(why).map(|((at, by), why)| (at, by, why));
    Ok(FileRow {
        id: cells.big(0)?,
        sha256: cells.text(1)?,
        source: cells.text(2)?,
        name: cells.text(3)?,
        account: cells.text(4)?,
        spooled_as: cells.maybe_text(5)?,
        format: cells.text(6)?,
        version: cells.text(7)?,
        state: cells.word(8, FileState::parse)?,
        received_at: cells.at(9)?,
        run_id: cells.text(10)?,
        statements: cells.big(11)?,
        held: cells.big(12)?,
        entries: cells.big(13)?,
        lines: cells.big(14)?,
        totals: cells.text(15)?,
        problems: cells.word(16, problems_of)?,
        problems_total: cells.big(17)?,
        changed,
        encoding: cells.maybe_text(21)?.filter(|name| !name.is_empty()),
    })
}

pub(super) fn statement_of(row: &PgRow) -> Result<StatementRow, StoreError> {
    let cells = Cells::new(row, READING);
    Ok(StatementRow {
        number: cells.big(0)?,
        account: cells.text(1)?,
        bank_account: cells.text(2)?,
        currency: cells.text(3)?,
        statement_id: cells.text(4)?,
        sequence: cells.text(5)?,
        from: cells.maybe_day(6)?,
        to: cells.maybe_day(7)?,
        finality: cells.word(8, Finality::parse)?,
        covers_attempts: cells.flag(9)?,
        opening_minor: cells.maybe_big(10)?,
        closing_minor: cells.maybe_big(11)?,
        entries: cells.big(12)?,
        lines: cells.big(13)?,
        ties: cells.maybe_flag(14)?,
        state: cells.word(15, StatementState::parse)?,
        held_for: cells.maybe_text(16)?.as_deref().and_then(Held::parse),
        rival: cells.maybe_big(17)?.zip(cells.maybe_big(18)?),
    })
}

pub(super) async fn files(pool: &PgPool, filter: &FileFilter) -> Result<Vec<FileRow>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::new(format!("select {FILE} from tieout_files f where true"));
    let equal = [
        ("account", filter.account.clone()),
        ("source", filter.source.clone()),
        ("state", filter.state.map(|state| state.as_str().to_owned())),
    ];
    for (column, value) in equal {
        if let Some(value) = value {
            let value = sql.bind(value);
            sql.push(&format!(" and f.{column} = {value}"));
        }
    }
    for (condition, number) in [("f.id =", filter.id), ("f.id <", filter.before)] {
        if let Some(number) = number {
            let number = sql.bind(number);
            sql.push(&format!(" and {condition} {number}"));
        }
    }
    if let Some(start) = &filter.sha256 {
        let start = sql.bind(start.clone());
        sql.push(&format!(" and starts_with(f.sha256, {start})"));
    }
    if filter.held {
        sql.push(
            " and exists (select from tieout_statements s where s.file_id = f.id \
             and s.state = 'held')",
        );
    }
    let limit = sql.bind(filter.limit);
    sql.push(&format!(" order by f.id desc limit {limit}"));
    let rows = sql.fetch(&mut connection).await.map_err(failed(READING))?;
    rows.iter().map(file_of).collect()
}

pub(super) async fn statements(
    pool: &PgPool,
    file: i64,
    after: i64,
    limit: i64,
) -> Result<Vec<StatementRow>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(READING))?;
    let mut sql = Sql::default();
    let (file, after, limit) = (sql.bind(file), sql.bind(after), sql.bind(limit));
    sql.push(&format!(
        "select {STATEMENT} from tieout_statements where file_id = {file} \
         and number > {after} order by number limit {limit}"
    ));
    let rows = sql.fetch(&mut connection).await.map_err(failed(READING))?;
    rows.iter().map(statement_of).collect()
}

pub(super) async fn attempt_files(
    pool: &PgPool,
    account: &str,
) -> Result<Vec<AttemptFile>, StoreError> {
    let query = sqlx::query(ATTEMPT_FILES).bind(account.to_owned());
    let rows = query.fetch_all(pool).await.map_err(failed(READING))?;
    let file = |row: &PgRow| {
        let cells = Cells::new(row, READING);
        Ok(AttemptFile {
            id: cells.big(0)?,
            name: cells.text(1)?,
            from: cells.maybe_day(2)?,
            to: cells.maybe_day(3)?,
            received_at: cells.at(4)?,
            is_empty: cells.big(5)? == 0,
            worth: cells.word(6, Worth::parse)?,
            named_at: cells.at(7)?,
            written_at: cells.at(11)?,
            format: cells.text(8)?,
            zones: zones_of(&cells.text(9)?),
            has_lines: cells.big(10)? == 1,
        })
    };
    rows.iter().map(file).collect()
}

pub(super) async fn standings(
    pool: &PgPool,
    account: &str,
    since: NaiveDate,
) -> Result<Vec<Standing>, StoreError> {
    let query = sqlx::query(STANDINGS).bind(account.to_owned()).bind(since);
    let rows = query.fetch_all(pool).await.map_err(failed(READING))?;
    let one = |row: &PgRow| {
        let cells = Cells::new(row, READING);
        Ok(Standing {
            file: cells.big(0)?,
            number: cells.big(1)?,
            name: cells.text(2)?,
            bank_account: cells.text(3)?,
            currency: cells.text(4)?,
            statement_id: cells.text(5)?,
            sequence: cells.text(6)?,
            from: cells.maybe_day(7)?,
            to: cells.maybe_day(8)?.unwrap_or(since),
            opening_minor: cells.big(9)?,
            closing_minor: cells.big(10)?,
        })
    };
    rows.iter().map(one).collect()
}
