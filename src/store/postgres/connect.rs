//! Opening PostgreSQL, and refusing at start what would make every later answer doubtful: a
//! replica, a read-only session, a pooler that hands statements to other sessions.

use std::str::FromStr;
use std::time::Duration;

use chrono::TimeDelta;
use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions, PgSslMode};
use sqlx::{Executor as _, Row as _};

use crate::store::error::StoreError;
use crate::store::postgres::errors::{answered, failed};
use crate::store::settings::{DatabaseSettings, shown_address};

/// A transaction of tieout's is never idle: a process that was stopped in the middle of one must
/// not hold the user's rows for longer.
pub(super) const IDLE_IN_TRANSACTION: TimeDelta = TimeDelta::seconds(60);

/// Opens the pool and probes the session.
pub(super) async fn open(settings: &DatabaseSettings) -> Result<(PgPool, String), StoreError> {
    let url = settings.address()?;
    let address = shown_address(url);
    let nonce = uuid::Uuid::now_v7().simple().to_string();
    let options = options(settings, url, &nonce)?;
    let pool = PgPoolOptions::new()
        .max_connections(settings.connections.max(2))
        .acquire_timeout(duration(settings.connect_timeout))
        // Connections are checked as they come back, and broken ones show at once.
        .test_before_acquire(false)
        .after_release(|connection, _| Box::pin(is_clean(connection)))
        .connect_with(options)
        .await
        .map_err(|error| refused(error, &address))?;
    probe(&pool, &nonce).await?;
    Ok((pool, address))
}

/// A connection that is given back within a transaction is closed: its open transaction would
/// swallow the next caller's writes.
async fn is_clean(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    // Outside of a transaction both are the time of this very statement. A ROLLBACK would do as
    // well, and would write a warning into the server's log every time. A simple query: an
    // extended one begins its transaction when it is bound, and its statement when it is executed,
    // so that the two would always differ and no connection would be used twice.
    let clean = sqlx::raw_sql("select transaction_timestamp() = statement_timestamp()");
    connection.fetch_one(clean).await?.try_get(0)
}

fn options(
    settings: &DatabaseSettings,
    url: &str,
    nonce: &str,
) -> Result<PgConnectOptions, StoreError> {
    let parsed = PgConnectOptions::from_str(url).map_err(|_| StoreError::Setting {
        field: "url".to_owned(),
        problem: format!("`{}` is no PostgreSQL address", shown_address(url)),
    })?;
    let millis = |span: TimeDelta| span.num_milliseconds().to_string();
    let mut session = vec![
        ("statement_timeout", millis(settings.statement_timeout)),
        ("lock_timeout", millis(settings.lock_timeout)),
        ("idle_in_transaction_session_timeout", millis(IDLE_IN_TRANSACTION)),
        // What texts look like must not depend on the role's or the database's settings.
        ("bytea_output", "hex".to_owned()),
        ("standard_conforming_strings", "on".to_owned()),
        ("IntervalStyle", "postgres".to_owned()),
        ("default_transaction_isolation", "read committed".to_owned()),
        ("tieout.session", nonce.to_owned()),
    ];
    if let Some(path) = &settings.search_path {
        session.push(("search_path", path.clone()));
    }
    let is_local = parsed.get_socket().is_some()
        || parsed.get_host().starts_with('/')
        || matches!(parsed.get_host(), "localhost" | "127.0.0.1" | "::1" | "[::1]");
    let names_mode = url.contains("sslmode=") || url.contains("ssl-mode=");
    let parsed = match is_local || names_mode {
        true => parsed,
        false => parsed.ssl_mode(PgSslMode::VerifyFull),
    };
    // A slow statement is no news to whoever reads cron's mail.
    Ok(parsed.application_name("tieout").options(session).disable_statement_logging())
}

async fn probe(pool: &PgPool, nonce: &str) -> Result<(), StoreError> {
    let (seen, is_replica, is_read_only): (Option<String>, bool, bool) = sqlx::query_as(
        "select current_setting('tieout.session', true), pg_is_in_recovery(), \
         current_setting('transaction_read_only')::boolean",
    )
    .fetch_one(pool)
    .await
    .map_err(failed("asking the server what it is"))?;
    if seen.as_deref() != Some(nonce) {
        return Err(StoreError::Pooler {
            detail: "the session does not keep the settings it was opened with".to_owned(),
        });
    }
    if is_replica {
        return Err(StoreError::ReadOnly { detail: "the server is a replica".to_owned() });
    }
    if is_read_only {
        let detail = "sessions of this role or database are read-only".to_owned();
        return Err(StoreError::ReadOnly { detail });
    }
    Ok(())
}

fn refused(error: sqlx::Error, address: &str) -> StoreError {
    let address = address.to_owned();
    let Some((code, message)) =
        answered(&error).map(|pg| (pg.code().to_owned(), pg.message().to_owned()))
    else {
        return StoreError::Unreachable { address, source: error };
    };
    match code.as_str() {
        // What PgBouncer says to a session's own settings.
        "08P01" if message.contains("startup parameter") => StoreError::Pooler { detail: message },
        code if code.starts_with("28") => StoreError::Refused { address, message },
        "3D000" => StoreError::Setting { field: "url".to_owned(), problem: message },
        _other => StoreError::Unreachable { address, source: error },
    }
}

fn duration(span: TimeDelta) -> Duration {
    span.to_std().unwrap_or(Duration::from_secs(15))
}
