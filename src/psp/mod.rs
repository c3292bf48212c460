//! Asking a PSP so that its answer is evidence.
//!
//! Read-only: tieout moves no money. An error is never an answer, a page that is not provably the
//! last is never the end, and one account that is down never holds up another.
//! In reading order: `account` (the questions and answers), `settings`; `stripe*` (the adapter);
//! `listing` and `book` (a window read to its end, folded); `lane` and `pace` (limits, deadlines,
//! the breaker); `rules` (statuses and codes as data); `redact`.
//!
//! Adding a PSP: one adapter file with its wire types, a variant of `settings::PspKind`, its facts
//! in `account`, its `NAME.rules.toml` with sources and examples, its fixtures and tests.

pub mod settings;
pub mod account;
pub mod rules;
pub mod lane;
mod pace;
mod redact;
mod stripe;
mod stripe_objects;
mod stripe_money;
mod near;
pub mod book;
mod listing;
