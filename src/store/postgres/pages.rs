//! Finding the statements that one goes on from: within the caller's transaction.

use sqlx::postgres::{PgConnection, PgRow};

use crate::store::error::StoreError;
use crate::store::files::{Ended, NewStatement, STATEMENT};
use crate::store::pages::{Fellow, Issue, Own, fellows};
use crate::store::postgres::errors::failed;
use crate::store::postgres::shelf::statement_of;
use crate::store::postgres::sql::{Cells, Sql};

const DOING: &str = "looking for statements that go on from each other";

/// The statement under the id that it stands under among those that count.
pub(super) async fn named(
    connection: &mut PgConnection,
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
    connection: &mut PgConnection,
    file: i64,
    number: i64,
) -> Result<Issue, StoreError> {
    let mut sql = Sql::new(format!(
        "select {STATEMENT} from tieout_statements where file_id = $1 and number = $2"
    ));
    sql.bind(file);
    sql.bind(number);
    let rows = sql.fetch(connection).await.map_err(failed(DOING))?;
    let row = rows.first().map(statement_of).transpose()?;
    let id = match row.as_ref().and_then(|row| Own::of_row(file, row)) {
        Some(own) => id_of(connection, &own).await?,
        None => row.map(|row| row.statement_id).unwrap_or_default(),
    };
    Ok(Issue { file, number, id })
}

async fn id_of(connection: &mut PgConnection, own: &Own) -> Result<String, StoreError> {
    let mut sql = Sql::new(fellows("is not distinct from"));
    sql.bind(own.file);
    sql.bind(own.below);
    sql.bind(own.account.clone());
    sql.bind(own.bank_account.clone());
    sql.bind(own.currency.clone());
    sql.bind(own.sequence.clone());
    sql.bind(own.from);
    sql.bind(own.to);
    sql.bind(own.id.clone());
    sql.bind(own.start());
    let rows = sql.fetch(connection).await.map_err(failed(DOING))?;
    let fellow = |row: &PgRow| {
        let cells = Cells::new(row, DOING);
        Ok(Fellow {
            id: cells.text(0)?,
            opening_minor: cells.big(1)?,
            closing_minor: cells.big(2)?,
            is_live: cells.flag(3)?,
        })
    };
    let found = rows.iter().map(fellow).collect::<Result<Vec<_>, StoreError>>()?;
    Ok(own.id_among(&found))
}
