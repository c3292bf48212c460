//! Transactions begin here: one whose beginning nobody waits for any more is rolled back as every
//! other.
//!
//! A `begin` of sqlx 0.9 that is dropped halfway leaves its connection within a transaction of
//! which the connection does not know, and whatever is written by it next is never committed. To
//! ask each connection on its way back costs every statement another round trip; here the
//! beginning goes on to its end by itself, and what nobody took is dropped as a whole.

use sqlx::postgres::PgPool;
use sqlx::{Postgres, Transaction};

/// A transaction to write in.
pub(super) async fn begin(pool: &PgPool) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    begin_with(pool, "begin").await
}

/// The next page of a walk lies in an index that has the walk's order. A table that a run has just
/// filled has no statistics yet, or those of its beginning: guided by them, a server reads all that
/// is left, sorts it, and throws it away for each page.
const PAGE: &str = "begin read only; set local enable_sort = off; set local enable_seqscan = off; \
                    set local enable_bitmapscan = off";

/// A transaction to read one page of a walk in.
pub(super) async fn page(pool: &PgPool) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    begin_with(pool, PAGE).await
}

/// A transaction that this statement begins.
#[expect(clippy::disallowed_methods, reason = "the one place where nothing drops it halfway")]
pub(super) async fn begin_with(
    pool: &PgPool,
    statement: &'static str,
) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    let pool = pool.clone();
    let begun = tokio::spawn(async move { pool.begin_with(statement).await });
    // It ends early only where the runtime does, as a connection's task would.
    begun.await.unwrap_or(Err(sqlx::Error::WorkerCrashed))
}
