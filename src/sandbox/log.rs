//! What the sandbox received: counters for each route, and the latest requests in full.
//!
//! Keys are never kept: a request is remembered by its account.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

use super::routes::Route;

/// One received request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Received {
    /// Its number, from 1.
    pub number: u64,
    /// When it came, in milliseconds since 1970, by the sandbox's clock.
    pub at_ms: i64,
    /// The method.
    pub method: String,
    /// The path.
    pub path: String,
    /// The query string as it came.
    pub query: String,
    /// The route.
    pub route: Route,
    /// The account.
    pub account: String,
    /// The idempotency key.
    pub idempotency_key: Option<String>,
    /// The `Stripe-Version` that was asked for.
    pub version: Option<String>,
    /// The beginning of the form body as it came.
    pub body: String,
    /// The status of the answer; none while it is under way and where none was given.
    pub status: Option<u16>,
    /// The name of the fault rule that it took, or `fault` for one without a name.
    pub fault: Option<String>,
}

/// How many requests a route got.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RouteCount {
    /// All.
    pub received: u64,
    /// Those refused with 429.
    pub rate_limited: u64,
    /// Those that took a fault.
    pub faulted: u64,
}

#[derive(Debug)]
pub(super) struct RequestLog {
    keep: usize,
    total: u64,
    latest: VecDeque<Received>,
    counts: BTreeMap<Route, RouteCount>,
}

impl RequestLog {
    pub(super) fn new(keep: usize) -> Self {
        Self { keep, total: 0, latest: VecDeque::new(), counts: BTreeMap::new() }
    }

    /// Notes a request and gives its number.
    pub(super) fn note(&mut self, mut received: Received) -> u64 {
        self.total += 1;
        received.number = self.total;
        self.counts.entry(received.route).or_default().received += 1;
        self.latest.push_back(received);
        while self.latest.len() > self.keep {
            self.latest.pop_front();
        }
        self.total
    }

    pub(super) fn note_status(&mut self, number: u64, route: Route, status: u16) {
        if status == 429 {
            self.counts.entry(route).or_default().rate_limited += 1;
        }
        if let Some(received) = self.find(number) {
            received.status = Some(status);
        }
    }

    pub(super) fn note_fault(&mut self, number: u64, route: Route, name: &str) {
        self.counts.entry(route).or_default().faulted += 1;
        if let Some(received) = self.find(number) {
            let name = if name.is_empty() { "fault" } else { name };
            received.fault = Some(name.to_owned());
        }
    }

    pub(super) fn counts(&self) -> &BTreeMap<Route, RouteCount> {
        &self.counts
    }

    pub(super) fn latest(&self) -> impl Iterator<Item = &Received> {
        self.latest.iter()
    }

    pub(super) fn clear(&mut self) {
        self.latest.clear();
        self.counts.clear();
    }

    fn find(&mut self, number: u64) -> Option<&mut Received> {
        let first = self.latest.front()?.number;
        let place = usize::try_from(number.checked_sub(first)?).ok()?;
        self.latest.get_mut(place)
    }
}
