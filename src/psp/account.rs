//! One PSP account: what it can be asked, and what a look at it brings back.
//!
//! The account never decides and never writes. Whether a listed object's tag resolves to a row is
//! the caller's to know: the witness of a search stays `None` here.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::TimeDelta;
use tokio_util::sync::CancellationToken;

use crate::decide::policy::{Mode, PspFacts, RouteFacts};
use crate::model::evidence::{Answer, Evidence, PspObject, Route};
use crate::model::time::Instant;
use crate::model::transaction::Kind;
use crate::psp::book::{Book, Neighbour};
use crate::psp::lane::{AccountStop, Counts, DbClock, Lane, LaneError};
use crate::psp::later::Later;
use crate::psp::planner;
use crate::psp::settings::{AccountSettings, SettingsError};
use crate::psp::stripe::Stripe;
use crate::secret::EnvLookup;

/// Characters that the value of a Stripe metadata key holds.
const STRIPE_TAG_MAX: usize = 500;

/// Stripe: "less than a minute" in normal operation. Its misses never count, whatever the lag.
pub(super) const STRIPE_SEARCH_LAG: TimeDelta = TimeDelta::minutes(1);

/// What surrounds an account: handed in, so that nothing here reads a clock or the environment.
#[derive(Clone)]
pub struct Surroundings {
    /// Looks up environment variables, for `key_env`.
    pub env: EnvLookup,
    /// The database's time.
    pub db_now: DbClock,
    /// Cancelled when the run shall stop: no new call then.
    pub stop: CancellationToken,
    /// How long those in flight may take from then on.
    pub grace: Duration,
    /// Cancelled when the run's time is over: no question is begun then, and what fails is not
    /// asked again. One that is under way may end.
    pub over: CancellationToken,
}

/// What is asked about one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The caller's number of the row; answers stand in the order of the questions.
    pub row: usize,
    /// The PSP's own id, where the row stores it.
    pub reference: Option<String>,
    /// The tag, where it is usable. Neither tag nor reference: only the window is listed.
    pub tag: Option<String>,
    /// The object kinds that count: `PspFacts::object_kinds`.
    pub kinds: Vec<String>,
    /// Creation times to cover: from (inclusive), to (exclusive).
    pub window: (Instant, Instant),
}

/// How thoroughly is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The cheapest way that can find: by reference, by a list, or by search.
    Find,
    /// A list of the questions' windows, read to a provable end.
    Complete,
    /// The search by tag, row by row. Refunds have none and get no evidence.
    Search,
    /// Each by its reference, and in no other way.
    Fetch,
}

/// What a look brought.
#[derive(Debug)]
pub struct Looked {
    /// For each question, what its routes answered. Empty: it could not be asked at all.
    pub evidence: Vec<Vec<Evidence>>,
    /// For each question, objects whose tag is nearly its own: (reference, their tag). Those whose
    /// tag belongs to another row are still among them.
    pub near: Vec<Vec<(String, String)>>,
    /// Of these objects, those that were read whole.
    pub near_objects: Vec<Vec<PspObject>>,
    /// Our payments and refunds seen, children folded in.
    pub listed: u64,
    /// Pages read.
    pub pages: u64,
    /// Which route was taken, and why, in one sentence.
    pub why: String,
    pub(super) book: Book,
}

impl Looked {
    /// Our listed objects that belong to none of the questions.
    pub fn others(&self) -> impl Iterator<Item = &Neighbour> {
        self.book.others()
    }

    /// The same, for good.
    pub fn take_others(&mut self) -> Vec<Neighbour> {
        self.book.take_others()
    }
}

/// Why an account cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A setting cannot be meant so.
    #[error("the account's settings are refused")]
    Settings(#[source] SettingsError),
    /// No requests can be sent.
    #[error("the account's connection cannot be made")]
    Lane(#[source] LaneError),
}

/// One configured account at a PSP.
#[derive(Clone)]
pub struct Account {
    pub(super) settings: Arc<AccountSettings>,
    pub(super) stripe: Arc<Stripe>,
    /// What looks past the rows' windows listed so far.
    pub(super) later: Arc<Mutex<Later>>,
}

impl Account {
    /// Opens an account. Nothing is asked yet, and the secret is not read yet.
    ///
    /// # Errors
    /// When a setting cannot be meant so, or no HTTP client can be made.
    pub fn open(settings: AccountSettings, around: Surroundings) -> Result<Self, OpenError> {
        settings.check().map_err(OpenError::Settings)?;
        let tag_key = settings.tag_key().map_err(OpenError::Settings)?.to_owned();
        let Surroundings { env, db_now, stop, grace, over } = around;
        let lane = Lane::open(&settings, db_now, stop, over, grace).map_err(OpenError::Lane)?;
        let stripe = Stripe::new(&settings, &tag_key, lane, env);
        Ok(Self { settings: Arc::new(settings), stripe: Arc::new(stripe), later: Arc::default() })
    }

    pub(super) fn now(&self) -> Instant {
        self.stripe.lane.db_now()
    }

    pub(super) fn evidence(&self, route: Route, asked_at: Instant, answer: Answer) -> Evidence {
        Evidence { account: self.settings.name.clone(), route, asked_at, answer }
    }

    /// The account's name.
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// How far tieout may go with rows of this account.
    pub fn mode(&self) -> Mode {
        self.settings.mode
    }

    /// What the adapter declares. Stripe's search knows no refunds.
    pub fn facts(&self) -> PspFacts {
        let route = |route, kinds: &[&str], counts_as_miss, lag| RouteFacts {
            route,
            kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
            counts_as_miss,
            lag,
            reach: None,
        };
        let mut routes = vec![
            route(Route::Fetch, &[], false, TimeDelta::zero()),
            route(Route::List, &[], true, TimeDelta::zero()),
        ];
        if self.settings.search {
            let kinds = ["payment_intent", "charge"];
            routes.push(route(Route::Search, &kinds, false, STRIPE_SEARCH_LAG));
        }
        PspFacts {
            psp: self.settings.psp.as_str().to_owned(),
            kinds: vec![Kind::Charge, Kind::Refund],
            tag_max: STRIPE_TAG_MAX,
            routes,
            charges_by: self.settings.charges_by.clone(),
            key_life: Some(self.settings.key_life),
        }
    }

    /// Asks about rows. It always answers: what could not be learnt is `NoAnswer`.
    pub async fn look(&self, questions: &[Question], need: Need) -> Looked {
        planner::look(self, questions, need).await
    }

    /// Asks whether more was made under the rows' tags, in windows that end now. Only what it finds
    /// counts: what it listed once since the account was opened is not listed again, and objects
    /// that belong to none of the questions are not kept.
    pub async fn look_later(&self, questions: &[Question], need: Need) -> Looked {
        planner::look_later(self, questions, need).await
    }

    /// How many requests went out since the account was opened, and how they ended.
    pub fn counts(&self) -> Counts {
        self.stripe.lane.counts()
    }

    /// Why the account is not asked any more, if so.
    pub fn stopped(&self) -> Option<AccountStop> {
        self.stripe.lane.stopped()
    }
}
