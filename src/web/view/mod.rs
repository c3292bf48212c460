//! The pages: what is known, as elements. Nothing here writes.

pub mod beside;
pub mod case;
pub mod chart;
pub mod decide;
pub mod login;
pub mod preview;
pub mod queue;
pub mod reports;
pub mod runs;
pub mod said;
