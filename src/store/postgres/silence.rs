//! A server that says nothing any more is told as what it is, and not waited for.
//!
//! The limits of a statement are the server's own, and a connection whose other end went away
//! without a word looks like one whose statement takes long. So whoever has waited for long asks
//! the server, on a connection of its own, whether it is there at all; what it is busy with is
//! waited for as before.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::Connection as _;
use sqlx::postgres::PgConnection;

use crate::store::error::StoreError;
use crate::store::postgres::PgStore;
use crate::store::postgres::errors::answered;

/// So often in a row the server is asked in vain before it is held for gone: a moment without a
/// connection to spare, or a short break of the network, is none.
const IN_VAIN: u32 = 2;

/// Whether the last step met a connection that did not serve.
pub(super) type Doubt = Arc<AtomicBool>;

impl PgStore {
    /// The answer of a step, or the end of waiting for it: a server that was asked in vain for as
    /// long as connections may take four times (a minute by default) ends it, and what it did is
    /// unknown then, as where the connection breaks. After a step that found no connection the
    /// next begins only where the server is there: it would wait as long, and for the same.
    pub(in crate::store) async fn answer<T>(
        &self,
        step: Pin<&mut impl Future<Output = Result<T, StoreError>>>,
    ) -> Result<T, StoreError> {
        if self.doubt.load(Ordering::Relaxed) {
            self.ask().await?;
            self.doubt.store(false, Ordering::Relaxed);
        }
        let answer = tokio::select! {
            biased;
            answer = step => answer,
            gone = self.silence() => Err(gone),
        };
        match answer {
            Err(error @ StoreError::Unreachable { .. }) => {
                self.doubt.store(true, Ordering::Relaxed);
                Err(error)
            }
            Err(error @ StoreError::Query { code: None, .. }) => {
                self.doubt.store(true, Ordering::Relaxed);
                // Where the server is gone, that is worth more than how one step came to notice:
                // its connection broke, or no other came.
                self.ask().await?;
                Err(error)
            }
            answer => self.with_asker(answer).await,
        }
    }

    /// How long the end of the connections is worth waiting for, where the server may be gone.
    pub(in crate::store) fn worth_waiting(&self) -> Option<Duration> {
        self.doubt.load(Ordering::Relaxed).then(|| self.patience())
    }

    /// Ends once the server was asked in vain so often in a row.
    async fn silence(&self) -> StoreError {
        let mut in_vain = 0;
        loop {
            tokio::time::sleep(self.patience()).await;
            match self.ask().await {
                Ok(()) => in_vain = 0,
                Err(error) => {
                    in_vain += 1;
                    if in_vain == IN_VAIN {
                        return error;
                    }
                }
            }
        }
    }

    /// Asks the server whether it is there. A refusal is an answer as well.
    async fn ask(&self) -> Result<(), StoreError> {
        let options = self.pool.connect_options();
        // No statement: a pooler may let one wait for a session of the server's.
        // Apart: it is large, and every step's future would be as large by it.
        let asked = Box::pin(async { PgConnection::connect_with(&options).await?.close().await });
        match in_time(self.patience(), &self.address, asked).await? {
            Err(source) if answered(&source).is_none() => {
                Err(StoreError::Unreachable { address: self.address.clone(), source })
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// How long a connection may take.
    fn patience(&self) -> Duration {
        self.pool.options().get_acquire_timeout()
    }
}

/// What was asked of the server, or that it said nothing for so long.
pub(super) async fn in_time<T>(
    patience: Duration,
    address: &str,
    asked: impl Future<Output = T>,
) -> Result<T, StoreError> {
    tokio::time::timeout(patience, asked).await.map_err(|_elapsed| {
        let text = format!("it says nothing, {} s after it was asked", patience.as_secs());
        let source = sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, text));
        StoreError::Unreachable { address: address.to_owned(), source }
    })
}
