//! Stopping: the first signal ends claiming and asking, what is decided is applied, leases go
//! back, and the process is gone within its grace. A second signal, a second later or more, ends at
//! once, which is safe: every state that a kill can leave is one that the next run finds and heals.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::exit::Exit;

/// Which signal asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

/// A request to stop that everyone in the run can see. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    signal: Arc<AtomicU8>,
    token: CancellationToken,
    /// From the request to the end of the process.
    grace: Arc<OnceLock<Duration>>,
}

/// What of the grace is for what is decided, and for the leases.
const FOR_THE_DATABASE: Duration = Duration::from_secs(2);

/// The longest that calls in flight may take once a stop was asked for.
const FOR_CALLS: Duration = Duration::from_secs(6);

impl Stop {
    /// Nothing requested yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks everyone to stop. The first signal stays the reason.
    pub fn request(&self, signal: Signal) {
        let number = match signal {
            Signal::Interrupt => 1,
            Signal::Terminate => 2,
        };
        // Only the first request sets the reason; losing this race is fine.
        let _first = self.signal.compare_exchange(0, number, Ordering::SeqCst, Ordering::SeqCst);
        self.token.cancel();
    }

    /// Notes how long the process stays once it is asked to stop. The first word counts.
    pub fn ends_within(&self, grace: Duration) {
        let _first = self.grace.set(grace);
    }

    /// How long calls in flight may take once a stop was asked for: of a short grace the half. A
    /// process that ends before it gave its rows back keeps them from others for a lease's time.
    pub fn calls_may_take(&self) -> Duration {
        let Some(grace) = self.grace.get() else { return FOR_CALLS };
        let half = grace.checked_div(2).unwrap_or_default();
        grace.saturating_sub(FOR_THE_DATABASE).max(half).min(FOR_CALLS)
    }

    /// The signal that asked, if one did.
    pub fn requested(&self) -> Option<Signal> {
        match self.signal.load(Ordering::SeqCst) {
            1 => Some(Signal::Interrupt),
            2 => Some(Signal::Terminate),
            _ => None,
        }
    }

    /// For those who wait on the network: cancelled with the request.
    pub fn token(&self) -> CancellationToken {
        self.token.clone()
    }

    /// The exit that the request leads to.
    pub fn exit(&self) -> Option<Exit> {
        self.requested().map(|signal| match signal {
            Signal::Interrupt => Exit::Interrupted,
            Signal::Terminate => Exit::Terminated,
        })
    }
}
