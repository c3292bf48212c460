//! The database's clock between two questions to it.
//!
//! Evidence is stamped with the database's time. It is read live for every batch, and carried on
//! in between by the monotonic clock, which no operator and no time server can turn.

use std::sync::{Arc, Mutex, PoisonError};

use crate::model::time::{Instant, later, to_micros};

/// A reading of the database's clock that goes on.
#[derive(Debug, Clone)]
pub struct DatabaseClock {
    reading: Arc<Mutex<(Instant, tokio::time::Instant)>>,
}

impl DatabaseClock {
    /// From a fresh reading.
    pub fn new(now: Instant) -> Self {
        Self { reading: Arc::new(Mutex::new((now, tokio::time::Instant::now()))) }
    }

    /// Takes a fresh reading over.
    pub fn set(&self, now: Instant) {
        *self.reading.lock().unwrap_or_else(PoisonError::into_inner) =
            (now, tokio::time::Instant::now());
    }

    /// The database's time now.
    pub fn now(&self) -> Instant {
        let (base, at) = *self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = chrono::TimeDelta::from_std(at.elapsed()).unwrap_or_default();
        to_micros(later(base, passed))
    }
}
