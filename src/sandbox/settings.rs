//! What a sandbox is started with, and the part of it that may change while it runs.
//!
//! Plain fields only, so that a command line, a test and `/_sandbox/behaviour` fill the same ones.
//! Nothing here is read from the environment or a file.

use std::net::{IpAddr, Ipv4Addr};

use serde::{Deserialize, Serialize};

use super::faults::FaultRule;

/// What a sandbox is started with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address to listen on; loopback unless told otherwise.
    pub host: IpAddr,
    /// The port; 0 takes a free one.
    pub port: u16,
    /// The seed of every id, jitter and chance.
    pub seed: u64,
    /// The keys that are let in, each with its account. Empty: every `sk_…` or `rk_…` key is let
    /// in, and all of them see the account `default`.
    pub keys: Vec<ApiKey>,
    /// A clock that stands still at this Unix second, for answers that repeat to the byte.
    /// None: the machine's clock.
    pub frozen_at: Option<i64>,
    /// How it behaves from the first request on.
    pub behaviour: Behaviour,
    /// The faults from the first request on.
    pub faults: Vec<FaultRule>,
    /// No more objects than this are kept, over all accounts.
    pub max_objects: usize,
    /// No more received requests than this are remembered in full; the counters count on.
    pub max_requests_kept: usize,
    /// No more connections than this are served at once; others wait in the backlog.
    pub max_connections: usize,
    /// TLS instead of plain HTTP, with any certificate, good or bad.
    pub tls: Option<Tls>,
    /// Whether `/_sandbox/*` answers. Without it only the `Handle` controls the sandbox.
    pub control: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 0,
            seed: 1,
            keys: Vec::new(),
            frozen_at: None,
            behaviour: Behaviour::default(),
            faults: Vec::new(),
            max_objects: 3_000_000,
            max_requests_kept: 20_000,
            max_connections: 4_096,
            tls: None,
            control: true,
        }
    }
}

/// A key that is let in. Its prefix says whether it is a live one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiKey {
    /// The key as a client sends it.
    pub secret: String,
    /// The account whose objects it sees, unless the request names another by `Stripe-Account`.
    pub account: String,
}

/// Who the sandbox says it is over TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// Its certificates, its own first, and its private key, in PEM. Never a key of real use.
    pub identity_pem: String,
    /// Whether it speaks HTTP/2 with clients that can.
    pub http2: bool,
}

/// How the sandbox behaves; may be changed at any time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Behaviour {
    /// Every request takes at least this long, before it is executed.
    pub latency_ms: u64,
    /// And up to this much longer, drawn from the seed.
    pub jitter_ms: u64,
    /// The rate limit of each account; none: no limit.
    pub rate_limit: Option<RateLimit>,
    /// No more requests of an account than this at once; others get 429 `global-concurrency`.
    pub max_at_once: Option<u32>,
    /// Of a thousand new objects, so many lose their metadata without a word. 1000: all of them.
    pub dropped_tags_per_mille: u16,
    /// Search does not see objects that landed less than this ago.
    pub search_lag_secs: u32,
    /// Lists do not see objects that landed less than this ago. Stripe's have no such lag.
    pub list_lag_secs: u32,
    /// How far the `Date` header is from the sandbox's clock.
    pub date_skew_secs: i64,
    /// How far `created` of new objects is from the sandbox's clock.
    pub created_skew_secs: i64,
    /// How far the sandbox's clock is from its base, the machine's clock or `frozen_at`.
    pub clock_offset_secs: i64,
    /// How long an idempotency key is remembered.
    pub idempotency_ttl_secs: u32,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            latency_ms: 0,
            jitter_ms: 0,
            rate_limit: None,
            max_at_once: None,
            dropped_tags_per_mille: 0,
            search_lag_secs: 0,
            list_lag_secs: 0,
            date_skew_secs: 0,
            created_skew_secs: 0,
            clock_offset_secs: 0,
            idempotency_ttl_secs: 24 * 60 * 60,
        }
    }
}

/// A token bucket for each account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// Requests that are let through in a second, steadily.
    pub per_second: u32,
    /// Requests that are let through at once after a pause; 0 means as `per_second`.
    #[serde(default)]
    pub burst: u32,
    /// The same for each route by itself.
    #[serde(default)]
    pub per_route: Option<u32>,
    /// What a refused request is told about when to come back.
    #[serde(default)]
    pub retry_after: RetryAfter,
}

/// The `Retry-After` header of a refusal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryAfter {
    /// No such header, as at Stripe.
    #[default]
    Absent,
    /// A number of seconds; 1000000000 is the absurd one.
    Seconds(u64),
    /// An HTTP date so many seconds from the sandbox's now.
    DateIn(i64),
    /// Any text, for what is neither.
    Text(String),
}

/// Whether the sandbox takes connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Door {
    /// It does.
    Open,
    /// They are refused.
    Refusing,
    /// They are neither taken nor refused, until the client gives up.
    Hanging,
}

/// Why a sandbox could not be started or told something.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The address could not be listened on.
    #[error(
        "the sandbox cannot listen on {address}, so it was not started; \
         choose another port, or 0 for a free one"
    )]
    Listen {
        /// What was asked for.
        address: std::net::SocketAddr,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The identity for TLS cannot be used.
    #[error(
        "the certificate and key for TLS cannot be used, so the sandbox was not started: {why}; \
         give both in PEM, the sandbox's own certificate first"
    )]
    Identity {
        /// What is wrong with it.
        why: String,
    },
    /// A seeded object cannot stand as described.
    #[error("object {number} of the seed cannot be made: {why}; none of the seed was inserted")]
    Seed {
        /// Its place in the seed, from 1.
        number: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The store is full.
    #[error("the sandbox holds {limit} objects and takes no more; reset it, or raise max_objects")]
    Full {
        /// The limit that was reached.
        limit: usize,
    },
    /// A scenario of that name does not exist.
    #[error("no scenario is called {name:?}, so nothing was changed; there are: {known}")]
    UnknownScenario {
        /// What was asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// An object to be changed does not exist.
    #[error("the sandbox has no object {id:?} in account {account:?}, so nothing was changed")]
    NoSuchObject {
        /// The id that was asked for.
        id: String,
        /// The account that was searched.
        account: String,
    },
}
