//! Breaking it on purpose: processes killed, paused, started over each other, and a charging
//! worker that races with them. Money must not notice.

pub mod chance;
mod kill;
mod overlap;
mod pause;
mod worker;
