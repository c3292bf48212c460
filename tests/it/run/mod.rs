//! The run from end to end: the built program, a database, a PSP over HTTP.

pub mod shop;
mod absence;
mod siblings;
mod situations;
mod ways;
mod dry_run;
mod signals;
mod faults;
pub mod files;
mod line_cases;
mod at_once;
mod given_back;
pub mod payouts;
mod mirrored;
mod twice;
mod twice_told;
mod batches;
mod compared;
mod file_reports;
mod attempts;
pub mod fetching;
mod missing;
mod releasing;
pub mod people;
mod people_and_back;
mod people_and_lines;
