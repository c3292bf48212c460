//! The nouns: what a transaction, a piece of evidence, a reason and an amount of money are.
//!
//! Pure data. This room never reads a clock, a file, a network or a database, and holds no float.
//! Types that go into stored evidence derive serde: their JSON is versioned by
//! [`evidence::EVIDENCE_SCHEMA`], and a field is only ever added; what is empty is left out
//! ([`lean`]).

pub mod card;
pub mod count;
pub mod lean;
pub mod money;
pub mod near;
pub mod time;
pub mod transaction;
pub mod evidence;
pub mod fill;
pub mod reason;
pub mod settlement;
pub mod wildcard;
pub mod zone_words;
