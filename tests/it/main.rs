//! The integration tests: one binary, one module a topic.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::as_conversions,
    clippy::string_slice,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::too_many_lines,
    reason = "a test fails by panicking, reads its services' addresses and the real clock"
)]

mod architecture;
mod build_script;
mod decisions;
mod properties;
mod sandbox;
mod cli;
mod cli_run;
mod doctor;
mod explain;
mod config;
mod config_init;
mod config_schema;
mod report;
mod schemas;
mod settlement;
mod sources;
mod sinks;
mod ingest;
mod support;
mod invariants;
mod monitor;
mod psp;
mod row_files;
mod store;
mod run;
mod roles;
mod kick;
mod rules;
mod prune;
mod schedule;
mod image;
mod docs;
mod emulators;
mod databases;
mod readme;
mod web;
mod breaking;
mod workers;
