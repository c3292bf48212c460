//! Finding the statements that one goes on from: within the caller's transaction.

use sqlx::sqlite::{SqliteConnection, SqliteRow};

use crate::store::error::StoreError;
use crate::store::files::{Ended, NewStatement, STATEMENT, date_text};
use crate::store::pages::{Fellow, Issue, Own, fellows};
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::shelf::statement_of;
use crate::store::sqlite::sql::{fetch, rendered};

const DOING: &str = "looking for statements that go on from each other";

/// The statement under the id that it stands under among those that count.
pub(super) async fn named(
    connection: &mut SqliteConnection,
    file: i64,
    ended: &Ended,
) -> Result<Ended, StoreError> {
    let Some(own) = Own::of(file, ended) else { return Ok(ended.clone()) };
    let statement_id = id_of(connection, &own).await?;
    let head = NewStatement { statement_id, ..ended.head.clone() };
    Ok(Ended { head, close: ended.close.clone() })
}

/// A statement that is held, under the id that its earlier issues have.
pub(super) async fn issue(
    connection: &mut SqliteConnection,
    file: i64,
    number: i64,
) -> Result<Issue, StoreError> {
    let sql =
        format!("select {STATEMENT} from tieout_statements where file_id = $1 and number = $2");
    let rows = fetch(connection, DOING, rendered(&sql).bind(file).bind(number)).await?;
    let row = rows.first().map(statement_of).transpose()?;
    let id = match row.as_ref().and_then(|row| Own::of_row(file, row)) {
        Some(own) => id_of(connection, &own).await?,
        None => row.map(|row| row.statement_id).unwrap_or_default(),
    };
    Ok(Issue { file, number, id })
}

async fn id_of(connection: &mut SqliteConnection, own: &Own) -> Result<String, StoreError> {
    let query = rendered(&fellows("is"))
        .bind(own.file)
        .bind(own.below)
        .bind(own.account.clone())
        .bind(own.bank_account.clone())
        .bind(own.currency.clone())
        .bind(own.sequence.clone())
        .bind(own.from.map(date_text))
        .bind(own.to.map(date_text))
        .bind(own.id.clone())
        .bind(own.start());
    let rows = fetch(connection, DOING, query).await?;
    let fellow = |row: &SqliteRow| {
        let cells = Cells::new(row, DOING);
        Ok(Fellow {
            id: cells.text(0)?,
            opening_minor: cells.int(1)?,
            closing_minor: cells.int(2)?,
            is_live: cells.int(3)? != 0,
        })
    };
    let found = rows.iter().map(fellow).collect::<Result<Vec<_>, StoreError>>()?;
    Ok(own.id_among(&found))
}
