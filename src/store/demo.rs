//! The demo's own database: a billing team's table, made and filled for `tieout demo` alone.
//!
//! It writes no `tieout_*` table: what the demo remembers was written by real runs.

use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode};
use sqlx::{ConnectOptions, Connection};

use crate::store::error::StoreError;

/// The table as a Rails application might have made it.
const SCHEMA: &str = "
create table charges (
    id                  integer primary key,
    subscription_id     integer not null,
    period              text not null,
    provider            text not null,
    kind                text not null,
    external_id         text,
    amount_cents        integer,
    currency            text not null,
    status              text not null,
    idempotency_key     text not null,
    provider_payment_id text,
    last_attempted_at   text,
    captured_at         text,
    created_at          text not null,
    updated_at          text not null,
    lock_version        integer not null default 0
);
create index charges_status on charges (status, created_at);
create index charges_natural on charges (subscription_id, period);
create index charges_reference on charges (provider_payment_id);
create index charges_external on charges (external_id);
";

const INSERT: &str = "
insert into charges (id, subscription_id, period, provider, kind, external_id, amount_cents,
    currency, status, idempotency_key, provider_payment_id, last_attempted_at, captured_at,
    created_at, updated_at)
select j.value ->> 'id', j.value ->> 'subscription_id', j.value ->> 'period',
    j.value ->> 'provider', j.value ->> 'kind', j.value ->> 'external_id',
    j.value ->> 'amount', j.value ->> 'currency', j.value ->> 'status',
    'charge-' || (j.value ->> 'id'), j.value ->> 'reference', j.value ->> 'attempted', null,
    j.value ->> 'created', j.value ->> 'attempted'
from json_each(?1) j
";

const CHANGE: &str = "
update charges set provider = coalesce(j.value ->> 'provider', charges.provider),
    status = coalesce(j.value ->> 'status', charges.status),
    last_attempted_at = coalesce(j.value ->> 'attempted', charges.last_attempted_at),
    updated_at = j.value ->> 'at', lock_version = charges.lock_version + 1
from json_each(?1) j where charges.id = j.value ->> 'id'
";

/// Makes the demo's database with these rows (a JSON array of objects).
///
/// # Errors
/// Where the file cannot be made or written.
pub async fn create(path: &Path, rows_json: &str) -> Result<(), StoreError> {
    let mut connection = open(path).await?;
    let mut tx = connection.begin().await.map_err(|e| failed("opening a transaction", &e))?;
    sqlx::raw_sql(SCHEMA)
        .execute(&mut *tx)
        .await
        .map_err(|e| failed("making the demo's table", &e))?;
    sqlx::query(INSERT)
        .bind(rows_json)
        .execute(&mut *tx)
        .await
        .map_err(|e| failed("filling the demo's table", &e))?;
    tx.commit().await.map_err(|e| failed("filling the demo's table", &e))?;
    connection.close().await.map_err(|e| failed("closing the demo's database", &e))
}

/// Changes rows as the demo's application would (a JSON array of objects; what is null stays).
///
/// # Errors
/// Where the file cannot be written.
pub async fn change(path: &Path, changes_json: &str) -> Result<(), StoreError> {
    let mut connection = open(path).await?;
    sqlx::query(CHANGE)
        .bind(changes_json)
        .execute(&mut connection)
        .await
        .map_err(|e| failed("changing the demo's table", &e))?;
    connection.close().await.map_err(|e| failed("closing the demo's database", &e))
}

/// How many rows stand in each status.
///
/// # Errors
/// Where the file cannot be read.
pub async fn statuses(path: &Path) -> Result<Vec<(String, i64)>, StoreError> {
    let mut connection = open(path).await?;
    sqlx::query_as("select status, count(*) from charges group by status order by status")
        .fetch_all(&mut connection)
        .await
        .map_err(|e| failed("reading the demo's table", &e))
}

/// How many rows of the bank are paid.
///
/// # Errors
/// Where the file cannot be read.
pub async fn paid_by_bank(path: &Path) -> Result<i64, StoreError> {
    let mut connection = open(path).await?;
    let sql = "select count(*) from charges where provider = 'bank' and status = 'succeeded'";
    let counted = sqlx::query_scalar(sql).fetch_one(&mut connection).await;
    counted.map_err(|e| failed("reading the demo's table", &e))
}

async fn open(path: &Path) -> Result<SqliteConnection, StoreError> {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .busy_timeout(Duration::from_secs(5))
        .connect()
        .await
        .map_err(|source| StoreError::Unreachable { address: path.display().to_string(), source })
}

fn failed(doing: &'static str, error: &sqlx::Error) -> StoreError {
    let database = error.as_database_error();
    StoreError::Query {
        doing,
        message: database.map_or_else(|| error.to_string(), |e| e.message().to_owned()),
        code: database.and_then(|e| e.code()).map(|code| code.into_owned()),
        detail: None,
        asker: None,
    }
}
