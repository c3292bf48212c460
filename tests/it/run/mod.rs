//! The run from end to end: the built program, a database, a PSP over HTTP.

pub mod shop;
mod absence;
mod situations;
mod ways;
mod dry_run;
mod signals;
// `faults.rs`, the table of PSP faults, is not in the list yet: two of its tables do not hold
// (two captures found by search, a list that is not there). See the note on the issue.
