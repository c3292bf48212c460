//! The program's one look at the machine's clock.
//!
//! A batch is decided at the database's time, read live and bound to its statements. This clock
//! serves what happens where no database is asked: the age of an answer, a limiter, the sandbox.
//! It never decides a row. `model` and `decide` do not know it: time reaches them as data.

use chrono::{DateTime, Utc};

/// The machine's time, in UTC.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one place that may ask")]
pub fn now() -> DateTime<Utc> {
    Utc::now()
}
