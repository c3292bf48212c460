//! The only room with SQL: the user's mapped tables and tieout's own `tieout_*` tables.
//!
//! It decides nothing: [`effects`] turns a decision into changes, a [`driver`] carries them out.
//! It never opens a connection on its own clock and never holds a row lock across a PSP call.

pub mod error;
pub mod settings;
pub mod mapping;
pub mod records;
pub mod effects;
pub mod chain;
pub mod prune;
pub mod tellers;
pub mod template;
mod mirrored;
pub mod notation;
pub mod source_table;
pub mod fit;
pub mod references;
pub mod literals;
pub mod layout;
pub mod decode;
mod sibling;
pub mod watch;
pub mod driver;
pub mod files;
mod alike;
mod pages;
pub mod release;
mod told;
pub mod still_told;
pub mod outbox;
pub mod compare;
pub mod payouts;
pub mod replay;
pub mod batches;
pub mod people;
pub mod sqlite;
pub mod postgres;
mod pool;
pub mod database;
pub mod inspect;
pub mod demo;
#[cfg(test)]
mod sample;
