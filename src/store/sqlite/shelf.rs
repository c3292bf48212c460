//! Files and statements as they are kept, read for people.

use chrono::NaiveDate;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use crate::decide::reach::Worth;
use crate::model::settlement::Finality;
use crate::store::error::StoreError;
use crate::store::files::{
    ATTEMPT_FILES, AttemptFile, FILE, FileFilter, FileRow, FileState, Held, STANDINGS, STATEMENT,
    Standing, StatementRow, StatementState, date_text, problems_of, zones_of,
};
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::sql::{fetch, rendered};

pub(super) const READING: &str = "reading settlement files";

pub(super) fn file_of(row: &SqliteRow) -> Result<FileRow, StoreError> {
    let cells = Cells::new(row, READING);
    let (by, why) = (cells.opt_text(19)?, cells.opt_text(20)?);
    let changed = cells.opt_at(18)?.zip(by).zip(why).map(|((at, by), why)| (at, by, why));
    Ok(FileRow {
        id: cells.int(0)?,
        sha256: cells.text(1)?,
        source: cells.text(2)?,
        name: cells.text(3)?,
        account: cells.text(4)?,
        spooled_as: cells.opt_text(5)?,
        format: cells.text(6)?,
        version: cells.text(7)?,
        state: cells.word(8, FileState::parse)?,
        received_at: cells.at(9)?,
        run_id: cells.text(10)?,
        statements: cells.int(11)?,
        held: cells.int(12)?,
        entries: cells.int(13)?,
        lines: cells.int(14)?,
        totals: cells.text(15)?,
        problems: cells.word(16, problems_of)?,
        problems_total: cells.int(17)?,
        changed,
        encoding: cells.opt_text(21)?.filter(|name| !name.is_empty()),
    })
}

pub(super) fn statement_of(row: &SqliteRow) -> Result<StatementRow, StoreError> {
    let cells = Cells::new(row, READING);
    Ok(StatementRow {
        number: cells.int(0)?,
        account: cells.text(1)?,
        bank_account: cells.text(2)?,
        currency: cells.text(3)?,
        statement_id: cells.text(4)?,
        sequence: cells.text(5)?,
        from: cells.opt_day(6)?,
        to: cells.opt_day(7)?,
        finality: cells.word(8, Finality::parse)?,
        covers_attempts: cells.int(9)? != 0,
        opening_minor: cells.opt_int(10)?,
        closing_minor: cells.opt_int(11)?,
        entries: cells.int(12)?,
        lines: cells.int(13)?,
        ties: cells.opt_int(14)?.map(|ties| ties != 0),
        state: cells.word(15, StatementState::parse)?,
        held_for: cells.opt_word(16, Held::parse)?,
        rival: cells.opt_int(17)?.zip(cells.opt_int(18)?),
    })
}

pub(super) async fn files(
    connection: &mut SqliteConnection,
    filter: &FileFilter,
) -> Result<Vec<FileRow>, StoreError> {
    let sql = format!(
        "select {FILE} from tieout_files f where (?1 is null or f.id = ?1) \
         and (?2 is null or substr(f.sha256, 1, length(?2)) = ?2) \
         and (?3 is null or f.account = ?3) and (?4 is null or f.source = ?4) \
         and (?5 is null or f.state = ?5) and (?6 is null or f.id < ?6) \
         and (not ?7 or exists (select 1 from tieout_statements s where s.file_id = f.id \
         and s.state = 'held')) order by f.id desc limit ?8"
    );
    let query = rendered(&sql)
        .bind(filter.id)
        .bind(filter.sha256.clone())
        .bind(filter.account.clone())
        .bind(filter.source.clone())
        .bind(filter.state.map(FileState::as_str))
        .bind(filter.before)
        .bind(filter.held)
        .bind(filter.limit);
    fetch(connection, READING, query).await?.iter().map(file_of).collect()
}

pub(super) async fn statements(
    connection: &mut SqliteConnection,
    file: i64,
    after: i64,
    limit: i64,
) -> Result<Vec<StatementRow>, StoreError> {
    let sql = format!(
        "select {STATEMENT} from tieout_statements where file_id = ?1 and number > ?2 \
         order by number limit ?3"
    );
    let query = rendered(&sql).bind(file).bind(after).bind(limit);
    fetch(connection, READING, query).await?.iter().map(statement_of).collect()
}

pub(super) async fn attempt_files(
    connection: &mut SqliteConnection,
    account: &str,
) -> Result<Vec<AttemptFile>, StoreError> {
    let query = sqlx::query(ATTEMPT_FILES).bind(account.to_owned());
    let rows = fetch(connection, READING, query).await?;
    let file = |row: &SqliteRow| {
        let cells = Cells::new(row, READING);
        Ok(AttemptFile {
            id: cells.int(0)?,
            name: cells.text(1)?,
            from: cells.opt_day(2)?,
            to: cells.opt_day(3)?,
            received_at: cells.at(4)?,
            is_empty: cells.int(5)? == 0,
            worth: cells.word(6, Worth::parse)?,
            named_at: cells.at(7)?,
            written_at: cells.at(11)?,
            format: cells.text(8)?,
            zones: zones_of(&cells.text(9)?),
            has_lines: cells.int(10)? == 1,
        })
    };
    rows.iter().map(file).collect()
}

pub(super) async fn standings(
    connection: &mut SqliteConnection,
    account: &str,
    since: NaiveDate,
) -> Result<Vec<Standing>, StoreError> {
    let query = sqlx::query(STANDINGS).bind(account.to_owned()).bind(date_text(since));
    let rows = fetch(connection, READING, query).await?;
    let one = |row: &SqliteRow| {
        let cells = Cells::new(row, READING);
        Ok(Standing {
            file: cells.int(0)?,
            number: cells.int(1)?,
            name: cells.text(2)?,
            bank_account: cells.text(3)?,
            currency: cells.text(4)?,
            statement_id: cells.text(5)?,
            sequence: cells.text(6)?,
            from: cells.opt_day(7)?,
            to: cells.opt_day(8)?.unwrap_or(since),
            opening_minor: cells.int(9)?,
            closing_minor: cells.int(10)?,
        })
    };
    rows.iter().map(one).collect()
}
