//! Stopping: the first signal ends claiming and asking, what is decided is applied, leases go
//! back, and the process is gone within its grace. A second signal ends at once, which is safe:
//! every state that a kill can leave is one that the next run finds and heals.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

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
}

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
