//! The run from end to end: the built program, a database, a PSP over HTTP.

pub mod shop;
mod absence;
mod situations;
mod ways;
mod dry_run;
mod signals;
mod faults;
mod files;
mod attempts;
