//! A PSP that misbehaves on purpose: stateful, seeded, speaking Stripe's API over HTTP.
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
//! In reading order: `settings` and this file (the outside); `server`, `exchange`, `staging` (one
//! request's way in and out); `api*`, `lists`, `search` (what the API may do); `books`, `shelf`,
//! `objects`, `seeds`, `outcomes` (what is kept); `faults`, `alter`, `bodies`, `wire`, `scenarios`
//! (what goes wrong); `control` (the same by HTTP).

pub mod settings;
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
pub mod routes;
mod idempotency;
mod limiter;
pub mod log;
mod core;
mod books;
mod shelf;
mod objects;
pub mod situations;
mod views;
pub mod seeds;
mod outcomes;
mod mint;
pub mod faults;
mod alter;
mod bodies;
mod wire;
mod tls;
pub mod scenarios;
mod control;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::DropGuard;

use self::books::Books;
use self::core::{AccountRef, Core};
use self::faults::FaultRule;
use self::log::{Received, RouteCount};
use self::routes::Route;
use self::seeds::{DEFAULT_ACCOUNT, Seed, SeedKind};
use self::server::Shared;
use self::settings::Door;
use self::settings::{Behaviour, SandboxError, Settings};
use self::situations::{Move, Situation};

/// A PSP that misbehaves on purpose.
#[derive(Debug)]
pub struct Sandbox;

impl Sandbox {
    /// Starts one; it serves until its last handle is dropped or `shutdown` is called.
    ///
    /// # Errors
    /// When the address cannot be listened on, or the identity for TLS cannot be used.
    pub async fn start(settings: Settings) -> Result<Handle, SandboxError> {
        let asked = SocketAddr::new(settings.host, settings.port);
        let failed = |source| SandboxError::Listen { address: asked, source };
        let listener = server::listen(asked).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let shared = Arc::new(Shared::new(settings)?);
        shared.tasks.spawn(server::serve(Arc::clone(&shared), listener, address));
        let guard = Arc::new(shared.stop.clone().drop_guard());
        Ok(Handle { shared, address, _guard: guard })
    }
}

/// A running sandbox. Clones are the same sandbox; dropping the last one stops it.
#[derive(Debug, Clone)]
pub struct Handle {
    shared: Arc<Shared>,
    address: SocketAddr,
    _guard: Arc<DropGuard>,
}

impl Handle {
    /// Where it listens, as `http://127.0.0.1:PORT`, without a slash at the end.
    #[must_use]
    pub fn base_url(&self) -> String {
        let scheme = if self.shared.speaks_tls() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops it and waits for its tasks. Late calls that have not landed never will.
    pub async fn shutdown(self) {
        self.shared.stop.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }

    /// Puts objects in and gives their ids, in order.
    ///
    /// # Errors
    /// When one of them cannot stand as described, or the sandbox is full; then none is put in.
    pub fn seed(&self, seeds: impl IntoIterator<Item = Seed>) -> Result<Vec<String>, SandboxError> {
        let seeds: Vec<Seed> = seeds.into_iter().collect();
        self.shared.with(|core| core.plant(seeds))
    }

    /// Moves an intent or charge of the default account's test objects to another situation.
    ///
    /// # Errors
    /// When there is no such object.
    pub fn move_to(&self, id: &str, to: Situation) -> Result<(), SandboxError> {
        let account = default_account();
        self.shared.with(|core| core.move_object(&account, id, &Move::to(to)))
    }

    /// Takes an object away, as if it had never been.
    pub fn forget(&self, id: &str) {
        self.shared.with(|core| core.books(&default_account()).forget(id));
    }

    /// All objects of a kind of the default account, as the API shows them, newest first. This is
    /// the truth of the books, whatever faults and lags are set.
    #[must_use]
    pub fn objects(&self, kind: SeedKind) -> Vec<Value> {
        self.objects_of(kind, DEFAULT_ACCOUNT, false)
    }

    /// The same for any account, its test or its live objects.
    #[must_use]
    pub fn objects_of(&self, kind: SeedKind, account: &str, live: bool) -> Vec<Value> {
        let account = AccountRef { name: account.to_owned(), live };
        self.shared.with(|core| {
            let books: &Books = core.books(&account);
            control::shown(books, kind)
        })
    }

    /// How it behaves now.
    #[must_use]
    pub fn behaviour(&self) -> Behaviour {
        self.shared.with(|core| core.behaviour.clone())
    }

    /// Changes how it behaves from now on.
    pub fn behave(&self, change: impl FnOnce(&mut Behaviour)) {
        self.shared.with(|core| {
            let mut behaviour = core.behaviour.clone();
            change(&mut behaviour);
            core.set_behaviour(behaviour);
        });
    }

    /// From now on new objects lose their metadata, or no longer do.
    pub fn drop_tag(&self, on: bool) {
        self.behave(|behaviour| behaviour.dropped_tags_per_mille = if on { 1000 } else { 0 });
    }

    /// Moves the sandbox's clock on.
    pub fn advance(&self, secs: i64) {
        self.behave(|behaviour| {
            behaviour.clock_offset_secs = behaviour.clock_offset_secs.saturating_add(secs);
        });
    }

    /// The sandbox's clock, in Unix seconds.
    #[must_use]
    pub fn now(&self) -> i64 {
        self.shared.with(|core| core.now())
    }

    /// Adds a fault behind those in force.
    pub fn fault(&self, rule: FaultRule) {
        self.shared.with(|core| core.faults.add(rule));
    }

    /// Takes all faults away.
    pub fn clear_faults(&self) {
        self.shared.with(|core| core.faults.clear());
    }

    /// The faults in force, with how often each has happened.
    #[must_use]
    pub fn faults(&self) -> Vec<(FaultRule, u64)> {
        self.shared.with(|core| core.faults.standing())
    }

    /// Switches a named scenario on; it replaces behaviour and faults.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn scenario(&self, name: &str) -> Result<(), SandboxError> {
        let scenario = scenarios::find(name)?;
        self.shared.with(|core| core.play(scenario));
        Ok(())
    }

    /// Opens or shuts the door; `for_time` opens it again by itself.
    pub fn door(&self, door: Door, for_time: Option<Duration>) {
        self.shared.set_door(door, for_time);
    }

    /// The latest requests, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<Received> {
        self.shared.with(|core| core.log.latest().cloned().collect())
    }

    /// How many requests a route got.
    #[must_use]
    pub fn count(&self, route: Route) -> RouteCount {
        self.shared.with(|core| core.log.counts().get(&route).copied().unwrap_or_default())
    }

    /// How many requests came in all.
    #[must_use]
    pub fn total_requests(&self) -> u64 {
        self.shared.with(|core| core.log.counts().values().map(|count| count.received).sum())
    }

    /// Forgets the requests and counters, and nothing else.
    pub fn clear_requests(&self) {
        self.shared.with(|core| core.log.clear());
    }

    /// Forgets objects, keys, faults, requests; behaviour and seed stay.
    pub fn reset(&self) {
        self.shared.with(Core::reset);
    }
}

fn default_account() -> AccountRef {
    AccountRef { name: DEFAULT_ACCOUNT.to_owned(), live: false }
}
