//! The configured database, opened for one command and closed after it.

use crate::cli::failure::Failure;
use crate::cli::runtime;
use crate::config::Config;
use crate::exit::Exit;
use crate::store::database::Database;
use crate::store::error::StoreError;

/// Works on a database whose tieout tables are this version's; refuses any other.
pub fn with(
    config: &Config,
    work: impl AsyncFnOnce(&Database) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    with_as(config, false, work)
}

/// The same for work that only reads: an SQLite file is left as it is.
pub fn to_read(
    config: &Config,
    work: impl AsyncFnOnce(&Database) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    with_as(config, true, work)
}

/// As [`to_read`] where it `only_reads`, else as [`with`].
pub fn with_as(
    config: &Config,
    only_reads: bool,
    work: impl AsyncFnOnce(&Database) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    with_any(config, only_reads, async |db| {
        db.require_schema().await.map_err(|error| Failure::store(&error))?;
        work(db).await
    })
}

/// Opens a database whose tieout tables are this version's, within a runtime.
pub async fn open(config: &Config) -> Result<Database, Failure> {
    of_this_version(Database::connect(&config.database).await).await
}

/// The same for a dry run: nothing can be written, and a login that may only read will do.
pub async fn rehearse(config: &Config) -> Result<Database, Failure> {
    of_this_version(Database::rehearse(&config.database).await).await
}

async fn of_this_version(opened: Result<Database, StoreError>) -> Result<Database, Failure> {
    let db = opened.map_err(|error| Failure::store(&error))?;
    if let Err(error) = db.require_schema().await {
        db.close().await;
        return Err(Failure::store(&error));
    }
    Ok(db)
}

/// As [`with`], and where it `is_dry` as [`rehearse`] opens it.
pub fn with_dry(
    config: &Config,
    is_dry: bool,
    work: impl AsyncFnOnce(&Database) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    if !is_dry {
        return with(config, work);
    }
    runtime::block_on(Box::pin(async {
        let db = rehearse(config).await?;
        let ended = work(&db).await;
        let kept = db.is_as_it_was();
        db.close().await;
        kept.map_err(|error| Failure::store(&error)).and(ended)
    }))?
}

/// Works on a database, whatever tieout's tables are like; on an SQLite file as it is where the
/// work `only_reads`.
pub fn with_any(
    config: &Config,
    only_reads: bool,
    work: impl AsyncFnOnce(&Database) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    runtime::block_on(Box::pin(async {
        let db = match only_reads {
            true => Database::connect_as_is(&config.database).await,
            false => Database::connect(&config.database).await,
        };
        let db = db.map_err(|error| Failure::store(&error))?;
        let ended = work(&db).await;
        let kept = db.is_as_it_was();
        db.close().await;
        kept.map_err(|error| Failure::store(&error)).and(ended)
    }))?
}
