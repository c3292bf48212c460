//! The configured database, opened for one command and closed after it.

use crate::cli::failure::Failure;
use crate::cli::runtime;
use crate::config::Config;
use crate::exit::Exit;
use crate::store::database::Database;

/// Works on a database whose tieout tables are this version's; refuses any other.
pub fn with(
    config: &Config,
    work: impl AsyncFnOnce(&Database) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    with_any(config, async |db| {
        db.require_schema().await.map_err(|error| Failure::store(&error))?;
        work(db).await
    })
}

/// Opens a database whose tieout tables are this version's, within a runtime.
pub async fn open(config: &Config) -> Result<Database, Failure> {
    let db = Database::connect(&config.database).await;
    let db = db.map_err(|error| Failure::store(&error))?;
    if let Err(error) = db.require_schema().await {
        db.close().await;
        return Err(Failure::store(&error));
    }
    Ok(db)
}

/// Works on a database, whatever tieout's tables are like.
pub fn with_any(
    config: &Config,
    work: impl AsyncFnOnce(&Database) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    runtime::block_on(Box::pin(async {
        let db = Database::connect(&config.database).await;
        let db = db.map_err(|error| Failure::store(&error))?;
        let ended = work(&db).await;
        db.close().await;
        ended
    }))?
}
