//! One account, and how it is asked about many rows at once.
//!
//! [`Account::look`] picks the cheaper complete route: references are fetched, tags are searched
//! one by one or found by listing whole windows side by side, whichever takes fewer requests.
//! What comes back is aligned with the questions; what nobody asked for comes along in a few
//! words, for the witness, the brake and the search for untagged money.

use std::sync::Arc;

use chrono::TimeDelta;
use futures_util::StreamExt;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::decide::policy::{PspFacts, RouteFacts};
use crate::model::evidence::{Answer, Cause, CauseKind, CompleteSearch, Evidence, Route};
use crate::model::time::Instant;
use crate::model::transaction::Kind;
use crate::psp::book::{Book, Neighbour, Wanted};
use crate::psp::lane::{AccountStop, Counts, DbClock, Lane, StopKind, cause};
use crate::psp::listing::{Listing, Tally, Window};
use crate::psp::settings::{AccountSettings, EnvLookup, SettingsError};
use crate::psp::stripe::{Fetched, ObjectKind, Stripe, wider_skew};
use crate::psp::stripe_objects::Parts;

/// The longest tag that Stripe's metadata holds (docs.stripe.com/api/metadata: 500 characters).
const STRIPE_TAG_MAX: usize = 500;

/// Stripe's search is "less than a minute" behind in normal times (docs.stripe.com/search).
const STRIPE_SEARCH_LAG: TimeDelta = TimeDelta::minutes(1);

/// Windows nearer to each other than this are read as one: a page holds that much anyway.
const MERGE_GAP_SECS: i64 = 3_600;

/// A question about one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The asker's own number.
    pub row: usize,
    /// The PSP's id that the row stores.
    pub reference: Option<String>,
    /// The row's tag.
    pub tag: Option<String>,
    /// The object kinds that a complete search must cover.
    pub kinds: Vec<String>,
    /// The creation times that it must cover, half-open.
    pub window: (Instant, Instant),
}

/// What an answer must be good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Finding: the cheapest route.
    Find,
    /// Proving: a complete list of the window.
    Complete,
    /// The search index, one call a row.
    Search,
}

/// What came back.
#[derive(Debug, Default)]
pub struct Looked {
    /// For each question, in order.
    pub evidence: Vec<Vec<Evidence>>,
    /// For each question: objects whose tag is nearly its own, as (reference, tag).
    pub near: Vec<Vec<(String, String)>>,
    /// Objects of ours that were listed and belong to none of the questions.
    pub others: Vec<Neighbour>,
    /// How many objects were listed.
    pub listed: u64,
    /// How many pages that took.
    pub pages: u64,
    /// The route and why, in a sentence for the log.
    pub plan: String,
}

/// One PSP account.
pub struct Account {
    settings: AccountSettings,
    tag_key: String,
    facts: PspFacts,
    env: EnvLookup,
    db_now: DbClock,
    stop: CancellationToken,
    /// Made at the first question: a run with nothing due never builds a client.
    stripe: OnceCell<Result<Arc<Stripe>, AccountStop>>,
}

impl Account {
    /// Checks the settings; nothing is asked and no secret is read yet.
    ///
    /// # Errors
    /// Where a setting cannot work.
    pub fn open(
        settings: AccountSettings,
        env: EnvLookup,
        db_now: DbClock,
        stop: CancellationToken,
    ) -> Result<Self, SettingsError> {
        settings.check()?;
        let tag_key = settings.tag_key()?.to_owned();
        let facts = facts(&settings);
        Ok(Self { settings, tag_key, facts, env, db_now, stop, stripe: OnceCell::new() })
    }

    /// What the adapter declares.
    pub fn facts(&self) -> &PspFacts {
        &self.facts
    }

    /// Requests so far.
    pub fn counts(&self) -> Counts {
        self.made().map(|stripe| stripe.lane.counts()).unwrap_or_default()
    }

    /// Why the account is not asked any more in this run.
    pub fn stopped(&self) -> Option<AccountStop> {
        match self.stripe.get()? {
            Ok(stripe) => stripe.lane.stopped(),
            Err(stop) => Some(stop.clone()),
        }
    }

    fn made(&self) -> Option<&Arc<Stripe>> {
        self.stripe.get().and_then(|made| made.as_ref().ok())
    }

    async fn stripe(&self) -> Result<&Arc<Stripe>, Cause> {
        let make = || async {
            let (settings, env) = (&self.settings, Arc::clone(&self.env));
            match Lane::open(settings, Arc::clone(&self.db_now), self.stop.clone()) {
                Ok(lane) => Ok(Arc::new(Stripe::new(settings, &self.tag_key, lane, env))),
                Err(error) => {
                    Err(AccountStop { kind: StopKind::Misconfigured, text: error.to_string() })
                }
            }
        };
        let made = self.stripe.get_or_init(make).await;
        made.as_ref().map_err(|stop| cause(CauseKind::AccountStopped, stop.text.clone()))
    }

    /// Asks about all rows at once.
    pub async fn look(&self, questions: &[Question], need: Need) -> Looked {
        let mut looked = Looked {
            evidence: vec![Vec::new(); questions.len()],
            near: vec![Vec::new(); questions.len()],
            ..Looked::default()
        };
        let stripe = match self.stripe().await {
            Ok(stripe) => Arc::clone(stripe),
            Err(cause) => {
                for evidence in &mut looked.evidence {
                    evidence.push(self.no_answer(Route::List, (self.db_now)(), cause.clone()));
                }
                return looked;
            }
        };
        match need {
            Need::Find => self.find(&stripe, questions, &mut looked).await,
            Need::Complete => {
                let (listing, wanted) = self.listing(&stripe, questions);
                listing.run().await;
                self.take_listing(&stripe, questions, &listing, &wanted, &mut looked).await;
                "every row needs a complete list".clone_into(&mut looked.plan);
            }
            Need::Search => {
                self.search_all(&stripe, questions, &mut looked).await;
                "one search a row".clone_into(&mut looked.plan);
            }
        }
        tracing::info!(
            psp.account = %self.settings.name,
            rows = questions.len(),
            psp.listed = looked.listed,
            psp.pages = looked.pages,
            "account {}: asked about {} rows: {}",
            self.settings.name, questions.len(), looked.plan
        );
        looked
    }

    async fn find(&self, stripe: &Arc<Stripe>, questions: &[Question], looked: &mut Looked) {
        self.fetch_all(stripe, questions, looked).await;
        let tagged = questions.iter().filter(|question| question.tag.is_some());
        let searches = tagged.map(|question| self.searches(question)).sum::<Option<u64>>();
        let rows = questions.iter().filter(|question| question.tag.is_some()).count();
        if rows == 0 {
            "references alone".clone_into(&mut looked.plan);
            return;
        }
        let probe = u64::from(self.settings.concurrency).saturating_add(2);
        if searches.is_some_and(|searches| searches <= probe) {
            self.search_all(stripe, questions, looked).await;
            looked.plan = format!("{rows} rows by search: fewer calls than a look at the list");
            return;
        }
        let (listing, wanted) = self.listing(stripe, questions);
        listing.probe().await;
        let pages = listing.estimate().iter().fold(0_u64, |sum, pages| sum.saturating_add(*pages));
        if let Some(searches) = searches.filter(|searches| *searches < pages) {
            listing.drop_windows(|_every| true);
            self.search_all(stripe, questions, looked).await;
            looked.plan =
                format!("{rows} rows by {searches} searches: the list has about {pages} pages");
            return;
        }
        listing.run().await;
        self.take_listing(stripe, questions, &listing, &wanted, looked).await;
        let searches = searches.map_or_else(|| "no search".to_owned(), |n| format!("{n} searches"));
        looked.plan = format!("{rows} rows by list: about {pages} pages against {searches}");
    }

    /// How many searches a row takes; `None` where search cannot cover its kinds.
    fn searches(&self, question: &Question) -> Option<u64> {
        if !self.settings.search {
            return None;
        }
        let kinds = kinds_of(question);
        let covered = !kinds.is_empty() && kinds.iter().all(|kind| kind.is_searchable());
        covered.then(|| u64::try_from(kinds.len()).unwrap_or(u64::MAX))
    }

    /// The windows of all questions, merged for each kind.
    fn listing(&self, stripe: &Arc<Stripe>, questions: &[Question]) -> (Listing, Arc<Wanted>) {
        let mut wanted = Wanted::default();
        let mut spans: Vec<Window> = Vec::new();
        for question in questions {
            let kinds = kinds_of(question);
            wanted.add(question.tag.as_deref(), question.reference.as_deref(), kinds.clone());
            let (from, to) = seconds(question);
            spans.extend(kinds.into_iter().map(|kind| Window { kind, from, to }));
        }
        let wanted = Arc::new(wanted);
        let listing = Listing::new(
            Arc::clone(stripe),
            Arc::clone(&wanted),
            Book::default(),
            merged(spans),
            self.settings.concurrency,
            self.settings.pages_max,
        );
        (listing, wanted)
    }

    /// Turns what was listed into each question's evidence.
    async fn take_listing(
        &self,
        stripe: &Arc<Stripe>,
        questions: &[Question],
        listing: &Listing,
        wanted: &Arc<Wanted>,
        looked: &mut Looked,
    ) {
        let (mut book, tallies) = listing.finish();
        self.adopt_children(stripe, &mut book, wanted).await;
        let failures = self.read_whole(stripe, &mut book).await;
        let objects = self.objects(&book, questions.len());
        for (index, question) in questions.iter().enumerate() {
            let Some(evidence) = looked.evidence.get_mut(index) else { continue };
            let failure = failures.get(index).cloned().flatten();
            let found = objects.get(index).cloned().unwrap_or_default();
            evidence.extend(self.listed_evidence(question, &tallies, found, failure));
        }
        for (question, neighbour) in book.near() {
            let near = usize::try_from(question).ok().and_then(|i| looked.near.get_mut(i));
            if let (Some(near), Some(tag)) = (near, &neighbour.tag) {
                near.push((neighbour.reference.to_string(), tag.to_string()));
            }
        }
        looked.others.extend(book.others().cloned());
        looked.listed = looked.listed.saturating_add(book.ours_count());
        let pages = tallies.iter().fold(0_u64, |sum, tally| sum.saturating_add(tally.pages));
        looked.pages = looked.pages.saturating_add(pages);
    }

    fn listed_evidence(
        &self,
        question: &Question,
        tallies: &[Tally],
        objects: Vec<crate::model::evidence::PspObject>,
        failure: Option<Cause>,
    ) -> Vec<Evidence> {
        let covered = self.covered(question, tallies);
        let now = (self.db_now)();
        let mut evidence = Vec::new();
        let (search, trouble) = match covered {
            Ok(search) => (Some(search), failure),
            Err(cause) => (None, Some(cause)),
        };
        let asked_at = search.as_ref().map_or(now, |search| search.asked_at);
        match (objects.is_empty(), search) {
            (false, search) => evidence.push(Evidence {
                account: self.settings.name.clone(),
                route: Route::List,
                asked_at,
                answer: Answer::Found { objects, search: search.filter(|_| trouble.is_none()) },
            }),
            (true, Some(search)) if trouble.is_none() => evidence.push(Evidence {
                account: self.settings.name.clone(),
                route: Route::List,
                asked_at,
                answer: Answer::Nothing(search),
            }),
            (true, _) => {}
        }
        evidence.extend(trouble.map(|cause| self.no_answer(Route::List, asked_at, cause)));
        evidence
    }

    /// What the finished windows cover of a question, or why they do not.
    fn covered(&self, question: &Question, tallies: &[Tally]) -> Result<CompleteSearch, Cause> {
        let incomplete =
            || cause(CauseKind::Incomplete, "the window was not listed to its end".to_owned());
        let (from, to) = seconds(question);
        let mut search: Option<CompleteSearch> = None;
        for kind in kinds_of(question) {
            let tally = tallies
                .iter()
                .find(|t| t.window.kind == kind && t.window.from <= from && t.window.to >= to)
                .ok_or_else(incomplete)?;
            if !tally.is_done {
                return Err(tally.failed.clone().unwrap_or_else(incomplete));
            }
            let asked_at = tally.asked_at.ok_or_else(incomplete)?;
            let so_far = search.get_or_insert_with(|| CompleteSearch {
                route: Route::List,
                kinds: Vec::new(),
                from: question.window.0,
                to: question.window.1,
                asked_at,
                counts_as_miss: true,
                lag_secs: 0,
                psp_skew_secs: None,
                listed: 0,
                witness: None,
            });
            so_far.kinds.push(kind.as_str().to_owned());
            so_far.asked_at = so_far.asked_at.min(asked_at);
            so_far.psp_skew_secs = wider_skew(so_far.psp_skew_secs, tally.skew_secs);
            so_far.listed = so_far.listed.saturating_add(tally.listed);
        }
        search.ok_or_else(incomplete)
    }

    /// Charges whose intent was not in the window: whose they are stands on the intent.
    async fn adopt_children(&self, stripe: &Arc<Stripe>, book: &mut Book, wanted: &Wanted) {
        let parents = book.parentless();
        let fetches = parents.into_iter().map(|parent| async move {
            let fetched = stripe.fetch(&parent).await;
            (parent, fetched)
        });
        let mut fetches = futures_util::stream::iter(fetches).buffer_unordered(self.width());
        while let Some((parent, fetched)) = fetches.next().await {
            match fetched {
                Ok(Fetched::Found { piece, .. }) => book.add(*piece, wanted),
                Ok(Fetched::Unknown { .. }) => book.settle_parentless(&parent),
                // Without its intent the charge stays nobody's: it can only raise suspicion.
                Err(_no_answer) => {}
            }
        }
    }

    /// Payments of rows of which a part is missing are fetched whole; why not, by question.
    async fn read_whole(&self, stripe: &Arc<Stripe>, book: &mut Book) -> Vec<Option<Cause>> {
        let unread = book.unread();
        let reads = unread.into_iter().map(|unread| async move {
            let parts = self.whole(stripe, &unread.reference).await;
            (unread, parts)
        });
        let mut reads = futures_util::stream::iter(reads).buffer_unordered(self.width());
        let mut failures: Vec<Option<Cause>> = Vec::new();
        while let Some((unread, parts)) = reads.next().await {
            match parts {
                Ok(Some(parts)) => book.replace(&unread.reference, parts),
                Ok(None) => {}
                Err(cause) => {
                    for row in unread.rows.iter().filter_map(|row| usize::try_from(*row).ok()) {
                        if failures.len() <= row {
                            failures.resize(row.saturating_add(1), None);
                        }
                        if let Some(slot) = failures.get_mut(row) {
                            *slot = Some(cause.clone());
                        }
                    }
                }
            }
        }
        failures
    }

    /// One payment with all that its verdict reads; `None` where the PSP does not know it.
    async fn whole(&self, stripe: &Arc<Stripe>, reference: &str) -> Result<Option<Parts>, Cause> {
        let Fetched::Found { piece, .. } = stripe.fetch(reference).await? else { return Ok(None) };
        let mut parts = piece.parts;
        if let Some(charge) = parts.missing_charge().map(str::to_owned)
            && let Fetched::Found { piece, .. } = stripe.fetch(&charge).await?
        {
            parts.merge(piece.parts);
        }
        if parts.is_whole() {
            return Ok(Some(parts));
        }
        let detail = format!("{reference} moved while it was read");
        Err(cause(CauseKind::Incomplete, detail))
    }

    /// The payments of each question.
    fn objects(
        &self,
        book: &Book,
        questions: usize,
    ) -> Vec<Vec<crate::model::evidence::PspObject>> {
        let mut objects = vec![Vec::new(); questions];
        for (rows, parts, light) in book.of_rows() {
            let Some(mut object) = parts.object(&self.tag_key) else { continue };
            for alias in &light.aliases {
                if !object.is_named(alias) {
                    object.aliases.push(alias.to_string());
                }
            }
            for row in rows.iter().filter_map(|row| usize::try_from(*row).ok()) {
                if let Some(own) = objects.get_mut(row) {
                    own.push(object.clone());
                }
            }
        }
        objects
    }

    async fn fetch_all(&self, stripe: &Arc<Stripe>, questions: &[Question], looked: &mut Looked) {
        let with_reference = questions.iter().enumerate().filter_map(|(index, question)| {
            question.reference.as_ref().map(|reference| (index, reference))
        });
        let fetches = with_reference.map(|(index, reference)| async move {
            (index, self.fetch_one(stripe, reference).await)
        });
        let mut fetches = futures_util::stream::iter(fetches).buffer_unordered(self.width());
        while let Some((index, evidence)) = fetches.next().await {
            if let Some(own) = looked.evidence.get_mut(index) {
                own.push(evidence);
            }
        }
    }

    async fn fetch_one(&self, stripe: &Arc<Stripe>, reference: &str) -> Evidence {
        let before = (self.db_now)();
        let (asked_at, answer) = match stripe.fetch(reference).await {
            Ok(Fetched::Unknown { asked_at }) => {
                (asked_at, Answer::UnknownReference(reference.to_owned()))
            }
            Ok(Fetched::Found { asked_at, piece, .. }) => {
                let parts = piece.parts;
                let whole = if parts.is_whole() {
                    Ok(Some(parts))
                } else {
                    self.whole(stripe, &piece.parent).await
                };
                match whole {
                    Ok(parts) => (asked_at, self.fetched(reference, parts)),
                    Err(cause) => (asked_at, Answer::NoAnswer(cause)),
                }
            }
            Err(cause) => (before, Answer::NoAnswer(cause)),
        };
        Evidence { account: self.settings.name.clone(), route: Route::Fetch, asked_at, answer }
    }

    fn fetched(&self, reference: &str, parts: Option<Parts>) -> Answer {
        let object = parts.and_then(|parts| parts.object(&self.tag_key));
        match object {
            Some(mut object) => {
                if !object.is_named(reference) {
                    object.aliases.push(reference.to_owned());
                }
                Answer::Found { objects: vec![object], search: None }
            }
            None => Answer::UnknownReference(reference.to_owned()),
        }
    }

    async fn search_all(&self, stripe: &Arc<Stripe>, questions: &[Question], looked: &mut Looked) {
        let tagged = questions.iter().enumerate().filter(|(_, question)| question.tag.is_some());
        let searches = tagged.map(|(index, question)| async move {
            (index, self.search_one(stripe, question).await)
        });
        let mut searches = futures_util::stream::iter(searches).buffer_unordered(self.width());
        while let Some((index, (evidence, near))) = searches.next().await {
            if let Some(own) = looked.evidence.get_mut(index) {
                own.push(evidence);
            }
            if let Some(own) = looked.near.get_mut(index) {
                own.extend(near);
            }
        }
    }

    async fn search_one(
        &self,
        stripe: &Arc<Stripe>,
        question: &Question,
    ) -> (Evidence, Vec<(String, String)>) {
        let asked_at = (self.db_now)();
        let (answer, near) = match self.searched(stripe, question).await {
            Ok(found) => found,
            Err(cause) => (Answer::NoAnswer(cause), Vec::new()),
        };
        let account = self.settings.name.clone();
        (Evidence { account, route: Route::Search, asked_at, answer }, near)
    }

    async fn searched(
        &self,
        stripe: &Arc<Stripe>,
        question: &Question,
    ) -> Result<(Answer, Vec<(String, String)>), Cause> {
        let tag = question.tag.as_deref().unwrap_or_default();
        let mut wanted = Wanted::default();
        let kinds = kinds_of(question);
        wanted.add(Some(tag), None, kinds.clone());
        let mut book = Book::default();
        let mut search = CompleteSearch {
            route: Route::Search,
            kinds: Vec::new(),
            from: question.window.0,
            to: question.window.1,
            asked_at: (self.db_now)(),
            counts_as_miss: false,
            lag_secs: STRIPE_SEARCH_LAG.num_seconds(),
            psp_skew_secs: None,
            listed: 0,
            witness: None,
        };
        for kind in kinds.into_iter().filter(|kind| kind.is_searchable()) {
            let result = stripe.search(kind, tag).await?;
            if search.kinds.is_empty() {
                search.asked_at = result.asked_at;
            }
            search.kinds.push(kind.as_str().to_owned());
            search.psp_skew_secs = wider_skew(search.psp_skew_secs, result.skew_secs);
            for piece in result.pieces {
                book.add(piece, &wanted);
            }
        }
        if let Some(cause) = self.read_whole(stripe, &mut book).await.into_iter().flatten().next() {
            return Err(cause);
        }
        search.listed = book.ours_count();
        let near = book
            .near()
            .filter_map(|(_, light)| {
                light.tag.as_ref().map(|tag| (light.reference.to_string(), tag.to_string()))
            })
            .collect();
        let objects = self.objects(&book, 1).pop().unwrap_or_default();
        let answer = if objects.is_empty() {
            Answer::Nothing(search)
        } else {
            Answer::Found { objects, search: Some(search) }
        };
        Ok((answer, near))
    }

    fn no_answer(&self, route: Route, asked_at: Instant, cause: Cause) -> Evidence {
        Evidence {
            account: self.settings.name.clone(),
            route,
            asked_at,
            answer: Answer::NoAnswer(cause),
        }
    }

    /// How many calls are offered to the lane at once; it lets through what the account bears.
    fn width(&self) -> usize {
        usize::try_from(self.settings.concurrency.saturating_mul(2)).unwrap_or(8).max(1)
    }
}

/// What this adapter declares of Stripe for an account so configured.
fn facts(settings: &AccountSettings) -> PspFacts {
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
    if settings.search {
        let kinds = ["payment_intent", "charge"];
        routes.push(route(Route::Search, &kinds, false, STRIPE_SEARCH_LAG));
    }
    PspFacts {
        psp: settings.psp.as_str().to_owned(),
        kinds: vec![Kind::Charge, Kind::Refund],
        tag_max: STRIPE_TAG_MAX,
        routes,
        charges_by: settings.charges_by.clone(),
        key_life: Some(settings.key_life),
    }
}

fn kinds_of(question: &Question) -> Vec<ObjectKind> {
    question.kinds.iter().filter_map(|kind| ObjectKind::parse(kind)).collect()
}

/// A question's window in whole seconds, both inclusive: never narrower than asked.
fn seconds(question: &Question) -> (i64, i64) {
    let (from, to) = question.window;
    let up = i64::from(to.timestamp_subsec_nanos() > 0);
    (from.timestamp(), to.timestamp().saturating_add(up))
}

/// Windows of one kind that touch, or nearly touch, become one.
fn merged(mut spans: Vec<Window>) -> Vec<Window> {
    spans.sort_by_key(|window| (window.kind, window.from, window.to));
    let mut merged: Vec<Window> = Vec::new();
    for span in spans {
        match merged.last_mut() {
            Some(last)
                if last.kind == span.kind
                    && span.from <= last.to.saturating_add(MERGE_GAP_SECS) =>
            {
                last.to = last.to.max(span.to);
            }
            Some(_) | None => merged.push(span),
        }
    }
    merged
}
