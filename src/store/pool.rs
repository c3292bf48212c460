//! How every pool of connections begins: without a task of the driver's beside it.

use sqlx::Database;
use sqlx::pool::PoolOptions;

/// A pool of up to so many connections. It keeps them for as long as it stands.
///
/// The driver ends old connections from a task of its own, and counts them for it by a number that
/// can fall below nothing for an instant. A task that reads it just then counts down from 2^64 on
/// one of the runtime's threads, and the program, which waits for its threads, never ends
/// (github.com/transact-rs/sqlx/issues/3645; in 0.9.0, mended after it). Where no connection can
/// grow too old there is no such task.
#[expect(clippy::disallowed_methods, reason = "this is the one place that begins pools")]
pub(super) fn lasting<DB: Database>(most: u32) -> PoolOptions<DB> {
    PoolOptions::new().max_connections(most).idle_timeout(None).max_lifetime(None)
}

#[cfg(test)]
mod tests {
    use super::lasting;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_pool_has_no_task_of_its_own() {
        let pool = lasting::<sqlx::Sqlite>(1).connect_lazy("sqlite::memory:").unwrap();
        assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
        drop(pool);
    }
}
