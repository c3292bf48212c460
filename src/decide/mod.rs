//! The verbs: from a row, its evidence and its history to one decision.
//!
//! Pure and total: no clock, no I/O, no float; the same inputs give the same decision, and what
//! no rule foresees is sent to a person. The order of the checks is the precedence of
//! [`crate::model::reason::Reason`]; `tests/it/decisions.rs` holds the table.

pub mod policy;
pub mod rules;
pub mod permit;
pub mod absence;
pub mod backoff;
pub mod decision;
mod view;
mod nothing;
mod uncaptured;
pub mod given_up;
pub mod person;
pub mod since;
pub mod judge;
pub mod replay;
mod reports;
pub mod settled;
pub mod brake;
pub mod expected;
pub mod reach;
pub mod compare;
