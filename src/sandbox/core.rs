//! Everything that the sandbox remembers, behind one lock: books, faults, keys, log, clock.
//!
//! The lock is held for the microseconds that an answer takes and never across an await.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Instant;

use hyper::body::Bytes;

use super::books::Books;
use super::call::Call;
use super::faults::FaultBook;
use super::idempotency::SavedAnswers;
use super::limiter::Limiter;
use super::log::RequestLog;
use super::mint::Mint;
use super::scenarios::{self, Scenario};
use super::seeds::{self, Seed};
use super::settings::{Behaviour, SandboxError, Settings};
use super::situations::{Moment, Move};

/// Whose objects: an account, with its test and its live objects apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct AccountRef {
    pub(super) name: String,
    pub(super) live: bool,
}

/// Something that happens after the answer.
#[derive(Debug, Clone)]
pub(super) struct Later {
    pub(super) after_ms: u64,
    pub(super) what: LaterWhat,
}

#[derive(Debug, Clone)]
pub(super) enum LaterWhat {
    /// A bank debit that settles or fails.
    MoveIntent { account: AccountRef, id: String, step: Move },
    /// A request that was taken and lands only now.
    Land(Box<Call>),
}

#[derive(Debug)]
pub(super) struct Core {
    pub(super) behaviour: Behaviour,
    pub(super) accounts: BTreeMap<AccountRef, Books>,
    pub(super) mint: Mint,
    pub(super) faults: FaultBook,
    pub(super) saved: SavedAnswers,
    pub(super) limiter: Limiter,
    pub(super) log: RequestLog,
    /// The first answer of each GET, for stale replays.
    pub(super) first_answers: HashMap<String, Bytes>,
    pub(super) at_once: BTreeMap<AccountRef, u32>,
    pub(super) max_objects: usize,
    frozen_at: Option<i64>,
    seed: u64,
}

impl Core {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            behaviour: settings.behaviour.clone(),
            accounts: BTreeMap::new(),
            mint: Mint::new(settings.seed),
            faults: FaultBook::new(settings.faults.clone()),
            saved: SavedAnswers::default(),
            limiter: Limiter::new(Instant::now()),
            log: RequestLog::new(settings.max_requests_kept),
            first_answers: HashMap::new(),
            at_once: BTreeMap::new(),
            max_objects: settings.max_objects,
            frozen_at: settings.frozen_at,
            seed: settings.seed,
        }
    }

    /// The sandbox's clock, in milliseconds since 1970.
    pub(super) fn now_ms(&self) -> i64 {
        let base = self.frozen_at.map_or_else(
            || crate::clock::now().timestamp_millis(),
            |frozen| frozen.saturating_mul(1000),
        );
        base.saturating_add(self.behaviour.clock_offset_secs.saturating_mul(1000))
    }

    pub(super) fn now(&self) -> i64 {
        self.now_ms().div_euclid(1000)
    }

    /// The moment of what happens now, dated with the skew that is set.
    pub(super) fn moment(&self) -> Moment {
        let landed_ms = self.now_ms();
        let created = landed_ms.div_euclid(1000) + self.behaviour.created_skew_secs;
        Moment { created, landed_ms }
    }

    /// Lists show what landed until then.
    pub(super) fn listed_until(&self) -> i64 {
        lag_before(self.now_ms(), self.behaviour.list_lag_secs)
    }

    /// Search sees what landed until then.
    pub(super) fn indexed_until(&self) -> i64 {
        lag_before(self.now_ms(), self.behaviour.search_lag_secs)
    }

    pub(super) fn books(&mut self, account: &AccountRef) -> &mut Books {
        self.accounts.entry(account.clone()).or_default()
    }

    pub(super) fn object_count(&self) -> usize {
        self.accounts.values().map(Books::len).sum()
    }

    /// Puts checked seeds into the books, all or none, and gives their ids in order.
    pub(super) fn plant(&mut self, seeds: Vec<Seed>) -> Result<Vec<String>, SandboxError> {
        if self.object_count().saturating_add(seeds.len()) > self.max_objects {
            return Err(SandboxError::Full { limit: self.max_objects });
        }
        let mut planned: HashMap<AccountRef, HashSet<String>> = HashMap::new();
        for (place, seed) in seeds.iter().enumerate() {
            let account = AccountRef { name: seed.account.clone(), live: seed.live };
            let books = self.accounts.get(&account);
            seeds::check(books, seed, planned.entry(account).or_default())
                .map_err(|why| SandboxError::Seed { number: place + 1, why })?;
        }
        let now = self.now();
        let planted = seeds.into_iter().map(|seed| {
            let account = AccountRef { name: seed.account.clone(), live: seed.live };
            let books = self.accounts.entry(account).or_default();
            seeds::plant(books, seed, now, &mut self.mint)
        });
        Ok(planted.collect())
    }

    /// Moves an intent or a charge now.
    pub(super) fn move_object(
        &mut self,
        account: &AccountRef,
        id: &str,
        step: &Move,
    ) -> Result<(), SandboxError> {
        let at = self.moment();
        let books = self.accounts.entry(account.clone()).or_default();
        if books.intents.has(id) {
            books.move_intent(id, step, at, &mut self.mint);
        } else if books.charges.has(id) {
            books.move_charge(id, step, at, &mut self.mint);
        } else {
            let account = account.name.clone();
            return Err(SandboxError::NoSuchObject { id: id.to_owned(), account });
        }
        Ok(())
    }

    /// Sets how the sandbox behaves; a changed limit starts with full buckets.
    pub(super) fn set_behaviour(&mut self, behaviour: Behaviour) {
        if behaviour.rate_limit != self.behaviour.rate_limit {
            self.limiter.clear();
        }
        self.behaviour = behaviour;
    }

    /// Switches a scenario on, in place of what is set.
    pub(super) fn play(&mut self, scenario: &Scenario) {
        let offset = self.behaviour.clock_offset_secs;
        let (behaviour, rules) = scenarios::staging_of(scenario, offset);
        self.set_behaviour(behaviour);
        self.faults = FaultBook::new(rules);
    }

    /// Forgets objects, keys, faults and requests; behaviour and seed stay.
    pub(super) fn reset(&mut self) {
        self.accounts.clear();
        self.saved.clear();
        self.faults.clear();
        self.limiter.clear();
        self.log.clear();
        self.first_answers.clear();
        self.mint = Mint::new(self.seed);
    }

    /// Moves an intent now.
    pub(super) fn move_intent(&mut self, account: &AccountRef, id: &str, step: &Move) {
        let at = self.moment();
        let books = self.accounts.entry(account.clone()).or_default();
        books.move_intent(id, step, at, &mut self.mint);
    }
}

/// Without a lag everything is seen, what is dated in the future too.
fn lag_before(now_ms: i64, lag_secs: u32) -> i64 {
    if lag_secs == 0 { i64::MAX } else { now_ms - i64::from(lag_secs) * 1000 }
}
