//! The only room that orders effects: claim → gather evidence → decide → brake → apply.
//!
//! It holds no rule of its own: what is true of a row is decided in `decide`, what is written is
//! worked out in `store::effects`. It never guesses: what was not examined is reported as such.

pub mod setup;
pub mod shutdown;
pub mod clock;
pub mod events;
