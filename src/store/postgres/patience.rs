//! A transaction that only came second is done again.
//!
//! Two runs that take the same rows from two ends (one leases what a dead run held, the other
//! closes that run) can wait for each other: the server ends one of them, and nothing was wrong
//! with it.

use std::time::Duration;

use crate::store::error::StoreError;

/// So often a transaction is tried before it is said that it came second.
const TRIES: u32 = 5;

/// Does a transaction from its beginning until another one does not come in its way.
pub(super) async fn patiently<T>(
    mut transaction: impl AsyncFnMut() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let mut tries = 0;
    loop {
        match transaction().await {
            Err(error) if came_second(&error) && tries < TRIES => {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(5 << tries)).await;
            }
            ended => return ended,
        }
    }
}

/// A deadlock, or a serialization failure.
fn came_second(error: &StoreError) -> bool {
    matches!(error, StoreError::Query { code: Some(code), .. }
        if matches!(code.as_str(), "40001" | "40P01"))
}
