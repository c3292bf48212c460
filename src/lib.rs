//! tieout finds out what really happened to every payment that got stuck.
//!
//! Modules in reading order; imports go one way:
//! `model < decide < {store, psp, settlement, sinks} < report < run < monitor < {cli, web} < main`,
//! and `sandbox` stands apart. Rooms in braces never import each other. `model` and `decide` know
//! no async, clock, file, network, log or float. `tests/it/architecture.rs` reads the source and
//! holds this wall.

#![forbid(unsafe_code)]
// Unit tests may cast and compute ratios; the same files are linted without them as the library.
#![cfg_attr(
    test,
    allow(
        clippy::as_conversions,
        clippy::string_slice,
        reason = "tests cast sample numbers and cut sample texts that they know"
    )
)]

pub mod model;
pub mod decide;
pub mod store;
pub mod psp;
pub mod settlement;
pub mod sinks;
pub mod report;
pub mod run;
pub mod monitor;
pub mod sandbox;
pub mod config;
pub mod cli;
pub mod web;
pub mod secret;
pub mod clock;
pub mod exit;
