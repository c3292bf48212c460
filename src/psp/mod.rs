//! How a PSP is asked so that its answer is evidence.
//!
//! An [`account::Account`] takes questions about rows and gives [`Evidence`] for each: objects
//! found, a complete search that saw nothing, a reference that the PSP does not know, or no answer
//! and why. It reads only: no request of this room can move money. It never turns an error, a
//! partial list or a lagging index into "nothing", never asks another account than the one
//! configured, and reads no clock of its own as evidence: the database's time is handed in.
//!
//! Reading order: `settings`, `account` (the questions and the answers), `planner` (by which
//! route), `look` (each row's evidence), `listing` (windows to a provable end), `stripe` and
//! `stripe_objects` (one API), `lane` (one account's requests), `rules` (what codes mean, as data).
//!
//! Adding a PSP:
//! 1. `settings::PspKind` and what its account needs to be told;
//! 2. an adapter beside `stripe`: one page of a list with the checks of its paging, one object by
//!    its reference, one search by tag, each through the [`lane`](self), and each as a `Piece`;
//! 3. its objects' states and amounts, with a table of every status that its reference names;
//! 4. what it declares in [`crate::decide::policy::PspFacts`]: a route's misses count only where
//!    its documentation says that it does not lag;
//! 5. `NAME.rules.toml` with a source and an example for every code;
//! 6. its faults in the sandbox, and its rows in `tests/it/psp.rs`.
//!
//! [`Evidence`]: crate::model::evidence::Evidence

pub mod settings;
pub mod account;
pub mod rules;
pub mod lane;
mod look;
mod planner;
mod listing;
mod later;
mod estimate;
mod ask_one;
pub mod book;
pub mod near;
pub mod probe;
mod stripe;
mod stripe_objects;
mod stripe_money;
mod pace;
mod redact;
