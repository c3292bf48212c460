//! Whether the triggers that guard tieout's tables are those that the migrations made.

use std::collections::BTreeMap;

use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

use crate::store::error::StoreError;
use crate::store::inspect::{Altered, Rights};
use crate::store::sqlite::inspect::texts;
use crate::store::sqlite::migrate::{migrate, state};
use crate::store::sqlite::sql::failed;

const COMPARING: &str = "comparing the guards of tieout's tables";

/// Name and statement of each trigger of tieout's.
const TRIGGERS: &str = "\
select name || char(0) || sql from sqlite_master
where type = 'trigger' and name like 'tieout\\_%' escape '\\'";

async fn triggers(
    connection: &mut SqliteConnection,
) -> Result<BTreeMap<String, String>, StoreError> {
    let texts = texts(connection, TRIGGERS).await?;
    let pairs = texts.iter().filter_map(|text| text.split_once('\0'));
    Ok(pairs.map(|(name, sql)| (name.to_owned(), sql.to_owned())).collect())
}

/// Those that this tieout makes: SQLite rewrites a statement where a table is renamed, and so the
/// migrations are carried out in memory rather than read.
async fn made() -> Result<BTreeMap<String, String>, StoreError> {
    let options = SqliteConnectOptions::new().in_memory(true);
    let mut connection =
        SqliteConnection::connect_with(&options).await.map_err(failed(COMPARING))?;
    migrate(&mut connection).await?;
    let made = triggers(&mut connection).await?;
    connection.close().await.map_err(failed(COMPARING))?;
    Ok(made)
}

/// Versions of SQLite quote names in another way.
fn plain(sql: &str) -> String {
    sql.replace('"', "").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The table that a trigger is on.
fn table_of(sql: &str) -> String {
    let text = plain(sql);
    let (_, rest) = text.split_once(" on ").unwrap_or(("", ""));
    rest.split(' ').next().unwrap_or_default().to_owned()
}

/// Adds what is gone, and what is not as the migrations made it.
pub(super) async fn look(
    connection: &mut SqliteConnection,
    rights: &mut Rights,
) -> Result<(), StoreError> {
    let (found, wanted) = state(connection).await?;
    // What another version made is not known here.
    if found != wanted {
        return Ok(());
    }
    let there = triggers(connection).await?;
    for (name, sql) in made().await? {
        match there.get(&name) {
            None => {
                rights.unguarded.push((table_of(&sql), name));
                rights.gone.push(format!("{sql};"));
            }
            Some(own) if plain(own) != plain(&sql) => {
                let remade = format!("drop trigger {name}; {sql};");
                rights.altered.push(Altered { what: name, remade });
            }
            Some(_same) => {}
        }
    }
    Ok(())
}
