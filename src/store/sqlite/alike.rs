//! Finding the statement that one is under other words: within the caller's transaction.

use sqlx::sqlite::{SqliteConnection, SqliteRow};

use crate::store::alike::{Alike, alike, candidates, has_its_lines, may_be_alike};
use crate::store::error::StoreError;
use crate::store::files::{Ended, big, clean, date_text};
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::release::DIALECT;
use crate::store::sqlite::sql::{fetch, rendered};

const DOING: &str = "looking for a statement under other words";

/// The statement under the words of the live one that it is.
pub(super) async fn reworded(
    connection: &mut SqliteConnection,
    file: i64,
    ended: &Ended,
) -> Result<Ended, StoreError> {
    if !may_be_alike(ended) {
        return Ok(ended.clone());
    }
    let Ended { head, close } = ended;
    let query = rendered(&alike())
        .bind(file)
        .bind(head.account.clone())
        .bind(close.currency.map(|currency| currency.code().to_owned()).unwrap_or_default())
        .bind(close.from.map(date_text))
        .bind(close.to.map(date_text))
        .bind(close.opening_minor)
        .bind(close.closing_minor)
        .bind(big(close.entries))
        .bind(big(close.lines))
        .bind(clean(&head.statement_id).into_owned());
    let rows = fetch(connection, DOING, query).await?;
    let found = rows.iter().map(alike_of).collect::<Result<Vec<_>, _>>()?;
    for (other, is_named) in candidates(ended, found) {
        let (their_file, their_number) = other.place;
        let query = rendered(&has_its_lines(&DIALECT))
            .bind(file)
            .bind(big(head.number))
            .bind(their_file)
            .bind(their_number)
            .bind(i64::from(is_named));
        let rows = fetch(connection, DOING, query).await?;
        let is_it = rows.first().map(|row| Cells::new(row, DOING).int(0)).transpose()?;
        if is_it == Some(1) {
            return Ok(other.words_for(ended));
        }
    }
    Ok(ended.clone())
}

fn alike_of(row: &SqliteRow) -> Result<Alike, StoreError> {
    let cells = Cells::new(row, DOING);
    Ok(Alike {
        place: (cells.int(0)?, cells.int(1)?),
        bank_account: cells.text(2)?,
        statement_id: cells.text(3)?,
        sequence: cells.text(4)?,
        has_sums: cells.int(5)? != 0,
    })
}
