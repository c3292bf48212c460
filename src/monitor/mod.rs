//! Tells the world outside how a run ended: a dead-man's switch, metrics, alerts.
//!
//! Nothing here can fail or delay a run. It begins when the run's end stands in the database, it
//! has a few seconds in all, and what it could not do is a warning and a note, never an exit code.
//! What leaves the house is counts, reasons, account names and run ids: no row, no amount of one,
//! no customer.
//!
//! [`conditions`], [`metrics`] and [`words`] are pure; [`send`] and its senders are thin. Adding a
//! receiver: a kind in [`settings`], a sender in [`alerts`], a line in `config/default.toml`.

pub mod settings;
pub mod tally;
pub mod facts;
pub mod conditions;
pub mod metrics;
pub mod words;
pub mod send;
pub mod healthcheck;
pub mod prometheus;
pub mod alerts;
pub mod watch;
pub mod receivers;
