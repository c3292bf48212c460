//! A PSP that misbehaves on purpose: stateful, seeded, speaking Stripe's API over plain HTTP.
//!
//! It serves `tieout demo`, a user's rehearsal of an outage (`tieout sandbox`), benchmarks and
//! tests. It keeps payment intents, charges, refunds and disputes for each account, test and live
//! apart, lists and searches them as Stripe does, honours idempotency keys, and breaks in every
//! way that an HTTP or TCP server can, as told by rules that are data. The same seed and the same
//! order of requests give the same ids and answers.
//!
//! It never moves money, never keeps a key, never talks to anyone by itself, and listens on
//! loopback unless told otherwise. No other room depends on it but those that start it.
//!
//! In reading order: `settings` and `handle` (the outside); `server`, `exchange`, `staging` (one
//! request's way in and out); `api*`, `lists`, `search` (what the API may do); `books`, `shelf`,
//! `objects`, `seeds`, `outcomes` (what is kept); `faults`, `alter`, `bodies`, `wire`, `scenarios`
//! (what goes wrong); `control` (the same by HTTP).

mod settings;
mod handle;
mod server;
mod exchange;
mod staging;
mod call;
mod answer;
mod api;
mod api_intents;
mod api_charges;
mod api_refunds;
mod api_error;
mod lists;
mod search;
mod form;
mod routes;
mod idempotency;
mod limiter;
mod log;
mod core;
mod books;
mod shelf;
mod objects;
mod views;
mod seeds;
mod outcomes;
mod mint;
mod faults;
mod alter;
mod bodies;
mod wire;
mod scenarios;
mod control;

pub use books::{Decline, Situation};
pub use control::Fill;
pub use faults::{
    Action, Change, FaultRule, Matches, NearMiss, PageSpot, Removed, SchemaFault, Turn, Which,
};
pub use handle::{Handle, Sandbox};
pub use log::{Received, RouteCount};
pub use routes::Route;
pub use scenarios::{Scenario, scenarios};
pub use seeds::{DEFAULT_ACCOUNT, Seed, SeedKind};
pub use server::Door;
pub use settings::{ApiKey, Behaviour, RateLimit, RetryAfter, SandboxError, Settings};
