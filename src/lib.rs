//! tieout finds out what really happened to every payment that got stuck.
//!
//! Modules in reading order; imports go one way:
//! `model < decide < {store, psp} < report < run < {cli} < main`, and `sandbox` stands apart.
//! Rooms in braces never import each other. `model` and `decide` know no async, clock, file,
//! network, log or float. `tests/it/architecture.rs` reads the source and holds this wall.

#![forbid(unsafe_code)]

pub mod model;
pub mod decide;
pub mod store;
pub mod psp;
pub mod report;
pub mod run;
pub mod sandbox;
pub mod config;
pub mod cli;
pub mod exit;
