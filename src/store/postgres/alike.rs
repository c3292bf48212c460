//! Finding the statement that one is under other words: within the caller's transaction.

use sqlx::postgres::{PgConnection, PgRow};

use crate::store::alike::{Alike, alike, candidates, has_its_lines, may_be_alike};
use crate::store::error::StoreError;
use crate::store::files::{Ended, big, clean};
use crate::store::postgres::errors::failed;
use crate::store::postgres::release::DIALECT;
use crate::store::postgres::sql::{Cells, Sql};

const DOING: &str = "looking for a statement under other words";

/// The statement under the words of the live one that it is.
pub(super) async fn reworded(
    connection: &mut PgConnection,
    file: i64,
    ended: &Ended,
) -> Result<Ended, StoreError> {
    if !may_be_alike(ended) {
        return Ok(ended.clone());
    }
    let Ended { head, close } = ended;
    let mut sql = Sql::new(alike());
    sql.bind(file);
    sql.bind(head.account.clone());
    sql.bind(close.currency.map(|currency| currency.code().to_owned()).unwrap_or_default());
    sql.bind(close.from);
    sql.bind(close.to);
    sql.bind(close.opening_minor);
    sql.bind(close.closing_minor);
    sql.bind(big(close.entries));
    sql.bind(big(close.lines));
    sql.bind(clean(&head.statement_id).into_owned());
    let found = sql.fetch_each(&mut *connection, DOING, alike_of).await?;
    for (other, is_named) in candidates(ended, found) {
        let (their_file, their_number) = other.place;
        let mut sql = Sql::new(has_its_lines(&DIALECT));
        sql.bind(file);
        sql.bind(big(head.number));
        sql.bind(their_file);
        sql.bind(their_number);
        sql.bind(i64::from(is_named));
        let rows = sql.fetch(&mut *connection).await.map_err(failed(DOING))?;
        let is_it = rows.first().map(|row| Cells::new(row, DOING).big(0)).transpose()?;
        if is_it == Some(1) {
            return Ok(other.words_for(ended));
        }
    }
    Ok(ended.clone())
}

fn alike_of(row: &PgRow) -> Result<Alike, StoreError> {
    let cells = Cells::new(row, DOING);
    Ok(Alike {
        place: (cells.big(0)?, cells.big(1)?),
        bank_account: cells.text(2)?,
        statement_id: cells.text(3)?,
        sequence: cells.text(4)?,
        has_sums: cells.big(5)? != 0,
    })
}
