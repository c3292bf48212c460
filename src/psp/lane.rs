//! The lane of one account: every request to its PSP goes through here, and comes back as an
//! answer or as a [`Cause`] why there is none.
//!
//! It holds bounded concurrency, the pace, deadlines over whole answers, size caps, bounded
//! retries, a breaker, and the account's stop. It never follows a redirect (credentials would
//! follow), never uses a proxy that nobody configured, never reads the machine's clock as
//! evidence, and never quotes a body, a query or a header in a text.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use reqwest::header::{HeaderMap, HeaderName};
use reqwest::{Client, Url};
use serde::de::DeserializeOwned;
use tokio::sync::{OnceCell, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::model::evidence::{Cause, CauseKind};
use crate::model::time::Instant;
use crate::psp::pace::{Pace, backoff};
use crate::psp::redact::{plain_word, redact};
use crate::psp::settings::{AccountSettings, is_loopback};

/// The database's time, live.
pub type DbClock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// A refusal's body is read this far: error objects are small.
const REFUSAL_BODY_MAX: u64 = 256 * 1024;

/// Why an account is not asked any more in this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountStop {
    /// What kind of trouble.
    pub kind: StopKind,
    /// One sentence: what happened, and what to do.
    pub text: String,
}

/// What stops an account. Each has its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopKind {
    /// The PSP refused the key (401, 403). Exit 12.
    Auth,
    /// A live key met test objects or the other way round. Exit 12.
    WrongEnvironment,
    /// The address answers, but not as this PSP's API. Exit 10.
    Misconfigured,
    /// There is no key to ask with: it stands nowhere, or whoever hands it out does not. Exit 10.
    NoKey,
    /// The server could not be authenticated. Exit 13.
    Tls,
}

impl StopKind {
    /// The exit code of a run that met this.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Auth | Self::WrongEnvironment => 12,
            Self::Misconfigured | Self::NoKey => 10,
            Self::Tls => 13,
        }
    }

    /// The word in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::WrongEnvironment => "wrong_environment",
            Self::Misconfigured => "misconfigured",
            Self::NoKey => "no_key",
            Self::Tls => "tls",
        }
    }
}

/// Why a lane could not be opened at all.
#[derive(Debug, thiserror::Error)]
pub enum LaneError {
    /// The base address is no address.
    #[error("account `{account}`: base_url `{base_url}` is not an address")]
    Address {
        /// The account.
        account: String,
        /// What stands there.
        base_url: String,
    },
    /// The certificate file could not be read.
    #[error("account `{account}`: the certificates in {path} could not be read")]
    Certificates {
        /// The account.
        account: String,
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The HTTP client could not be made: mostly, the machine has no CA certificates.
    #[error(
        "account `{account}`: no HTTP client could be made, so nothing was asked; \
         install the machine's CA certificates (package ca-certificates) or set ca_file"
    )]
    Client {
        /// The account.
        account: String,
        /// Why.
        #[source]
        source: reqwest::Error,
    },
}

/// How many requests went out, and how they ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests sent, retries included.
    pub requests: u64,
    /// 2xx.
    pub ok: u64,
    /// 3xx.
    pub redirected: u64,
    /// 4xx besides 429.
    pub refused: u64,
    /// 429.
    pub rate_limited: u64,
    /// 5xx.
    pub server_errors: u64,
    /// No status came: connection, TLS, time-out.
    pub unanswered: u64,
}

#[derive(Debug, Default)]
struct Tally {
    requests: AtomicU64,
    ok: AtomicU64,
    redirected: AtomicU64,
    refused: AtomicU64,
    rate_limited: AtomicU64,
    server_errors: AtomicU64,
    unanswered: AtomicU64,
}

impl Tally {
    fn note(&self, status: u16) {
        let counter = match status {
            200..=299 => &self.ok,
            300..=399 => &self.redirected,
            429 => &self.rate_limited,
            400..=499 => &self.refused,
            _other => &self.server_errors,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
struct Breaker {
    failed_in_a_row: u32,
    open_until: Option<tokio::time::Instant>,
}

/// The limits of a lane, from the account's settings.
#[derive(Debug, Clone)]
struct Limits {
    deadline: Duration,
    retries: u32,
    retry_after_max: Duration,
    breaker_after: u32,
    breaker_pause: Duration,
    body_max: u64,
}

/// One request.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    /// The path below the base address.
    pub(super) path: String,
    /// The query.
    pub(super) query: Vec<(String, String)>,
}

/// What came back.
#[derive(Debug)]
pub(super) struct Reply<T> {
    /// When the first request of this question was sent (the database's clock).
    pub(super) asked_at: Instant,
    /// PSP minus database, in seconds, by the Date header.
    pub(super) skew_secs: Option<i64>,
    /// The answer itself.
    pub(super) body: Body<T>,
}

/// The answer itself.
#[derive(Debug)]
pub(super) enum Body<T> {
    /// 200, and the body reads as what was asked for.
    Ok(T),
    /// 4xx that is not about the account as a whole.
    Refused {
        /// The status.
        status: u16,
        /// The body, for the adapter to read its codes from.
        body: Vec<u8>,
    },
}

/// The lane of one account.
pub(super) struct Lane {
    account: String,
    settings: AccountSettings,
    /// Made at the first request: reading the machine's certificates is what a run with nothing
    /// due need not pay for.
    client: OnceCell<Client>,
    base: Url,
    limits: Limits,
    pace: Pace,
    slots: Semaphore,
    tally: Tally,
    breaker: Mutex<Breaker>,
    stopped: Mutex<Option<AccountStop>>,
    db_now: DbClock,
    stop: CancellationToken,
    /// Cancelled when the run's time is over: no question is begun then.
    over: CancellationToken,
    /// How long a call in flight may still take once the run was asked to stop.
    grace: Duration,
}

/// One exchange that gave no answer, and whether asking again can help.
struct Trouble {
    cause: Cause,
    again: Again,
}

enum Again {
    Never,
    Once,
    Backoff,
    After(Duration),
}

struct Exchange {
    status: u16,
    skew_secs: Option<i64>,
    body: Vec<u8>,
}

fn trouble(kind: CauseKind, detail: String, again: Again) -> Trouble {
    Trouble { cause: cause(kind, detail), again }
}

/// A cause with its text redacted.
pub(super) fn cause(kind: CauseKind, detail: String) -> Cause {
    Cause { kind, detail: redact(&detail) }
}

fn too_late() -> Cause {
    cause(CauseKind::Interrupted, "the run's time was over".to_owned())
}

fn to_std(span: TimeDelta) -> Duration {
    span.to_std().unwrap_or(Duration::ZERO)
}

impl Lane {
    pub(super) fn open(
        settings: &AccountSettings,
        db_now: DbClock,
        stop: CancellationToken,
        over: CancellationToken,
        grace: Duration,
    ) -> Result<Self, LaneError> {
        let account = settings.name.clone();
        // With a slash at its end, so that a path of its own (a gateway's) stays when joined.
        let base = format!("{}/", settings.base_url.trim_end_matches('/'));
        let base = Url::parse(&base).map_err(|_bad| LaneError::Address {
            account: account.clone(),
            base_url: settings.base_url.clone(),
        })?;
        let limits = Limits {
            deadline: to_std(settings.deadline),
            retries: settings.retries,
            retry_after_max: to_std(settings.retry_after_max),
            breaker_after: settings.breaker_after,
            breaker_pause: to_std(settings.breaker_pause),
            body_max: settings.body_max_bytes,
        };
        let slots = usize::try_from(settings.concurrency).unwrap_or(1);
        Ok(Self {
            account,
            settings: settings.clone(),
            client: OnceCell::new(),
            base,
            limits,
            pace: Pace::new(settings.requests_per_second, tokio::time::Instant::now()),
            slots: Semaphore::new(slots),
            tally: Tally::default(),
            breaker: Mutex::default(),
            stopped: Mutex::default(),
            db_now,
            stop,
            over,
            grace,
        })
    }

    pub(super) fn account(&self) -> &str {
        &self.account
    }

    pub(super) fn db_now(&self) -> Instant {
        (self.db_now)()
    }

    pub(super) fn per_second(&self) -> u128 {
        self.pace.per_second()
    }

    pub(super) fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            requests: read(&self.tally.requests),
            ok: read(&self.tally.ok),
            redirected: read(&self.tally.redirected),
            refused: read(&self.tally.refused),
            rate_limited: read(&self.tally.rate_limited),
            server_errors: read(&self.tally.server_errors),
            unanswered: read(&self.tally.unanswered),
        }
    }

    pub(super) fn stopped(&self) -> Option<AccountStop> {
        lock(&self.stopped).clone()
    }

    /// Stops the account; the first stop stays. Returns the cause for the question at hand.
    pub(super) fn stop_account(&self, kind: StopKind, text: String) -> Cause {
        let text = redact(&text);
        let mut stopped = lock(&self.stopped);
        if stopped.is_none() {
            tracing::error!(
                psp.account = %self.account, stop.kind = kind.as_str(),
                "account {} is not asked any more in this run: {text}", self.account
            );
            *stopped = Some(AccountStop { kind, text: text.clone() });
        }
        cause(CauseKind::AccountStopped, text)
    }

    /// Asks, again and again where that can help, and reads the answer.
    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        headers: &HeaderMap,
        ask: &Ask,
    ) -> Result<Reply<T>, Cause> {
        let mut asked_at = None;
        let mut attempt = 0_u32;
        loop {
            let exchanged = self.exchange_once(headers, ask, &mut asked_at).await?;
            let exchanged = match exchanged {
                Ok(exchange) => read_body::<T>(ask, exchange)
                    .map_err(|why| trouble(CauseKind::Unreadable, why, Again::Never)),
                Err(trouble) => Err(trouble),
            };
            let trouble = match exchanged {
                Ok((body, skew_secs)) => {
                    *lock(&self.breaker) = Breaker::default();
                    let asked_at = asked_at.unwrap_or_else(|| self.db_now());
                    return Ok(Reply { asked_at, skew_secs, body });
                }
                Err(trouble) => trouble,
            };
            attempt = attempt.saturating_add(1);
            let Some(wait) = self.wait_before(attempt, ask, &trouble) else {
                return Err(self.give_up(trouble.cause));
            };
            tracing::debug!(
                psp.account = %self.account, psp.path = %ask.path, psp.attempt = attempt,
                "asking {} again in {} ms: {}", self.account, wait.as_millis(), trouble.cause.detail
            );
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.stop.cancelled() => return Err(trouble.cause),
                () = self.over.cancelled() => return Err(self.give_up(trouble.cause)),
            }
        }
    }

    fn wait_before(&self, attempt: u32, ask: &Ask, trouble: &Trouble) -> Option<Duration> {
        if attempt > self.limits.retries || self.over.is_cancelled() {
            return None;
        }
        match trouble.again {
            Again::Never => None,
            Again::Once => (attempt == 1).then(|| backoff(&ask.path, attempt)),
            Again::Backoff => Some(backoff(&ask.path, attempt)),
            // The pace holds everyone for that long already.
            Again::After(hold) => Some(hold),
        }
    }

    /// No answer came.
    fn give_up(&self, cause: Cause) -> Cause {
        let mut breaker = lock(&self.breaker);
        breaker.failed_in_a_row = breaker.failed_in_a_row.saturating_add(1);
        if breaker.failed_in_a_row >= self.limits.breaker_after {
            let now = tokio::time::Instant::now();
            if breaker.open_until.is_none_or(|until| until <= now) {
                tracing::warn!(
                    psp.account = %self.account, psp.cause = cause.kind.as_str(),
                    "account {} is left alone for {} s: {}",
                    self.account, self.limits.breaker_pause.as_secs(), cause.detail
                );
            }
            breaker.open_until = now.checked_add(self.limits.breaker_pause);
        }
        cause
    }

    /// One request and its whole answer. `Err` means that it was not even sent.
    async fn exchange_once(
        &self,
        headers: &HeaderMap,
        ask: &Ask,
        asked_at: &mut Option<Instant>,
    ) -> Result<Result<Exchange, Trouble>, Cause> {
        self.may_ask()?;
        let is_trial = self.pass_breaker(false)?;
        let interrupted = || cause(CauseKind::Interrupted, "the run was asked to stop".to_owned());
        let _slot = tokio::select! {
            slot = self.slots.acquire() => slot.map_err(|_closed| interrupted())?,
            () = self.stop.cancelled() => return Err(interrupted()),
            () = self.over.cancelled() => return Err(too_late()),
        };
        let at = self.pace.slot(tokio::time::Instant::now());
        tokio::select! {
            () = tokio::time::sleep_until(at) => {}
            () = self.stop.cancelled() => return Err(interrupted()),
            () = self.over.cancelled() => return Err(too_late()),
        }
        // While this one waited, others may have learnt that asking is no use.
        self.may_ask()?;
        self.pass_breaker(is_trial)?;
        asked_at.get_or_insert_with(|| self.db_now());
        self.tally.requests.fetch_add(1, Ordering::Relaxed);
        let exchange = tokio::time::timeout(self.limits.deadline, self.exchange(headers, ask));
        let outcome = tokio::select! {
            outcome = exchange => outcome,
            () = self.grace_is_over() => {
                self.tally.unanswered.fetch_add(1, Ordering::Relaxed);
                return Err(interrupted());
            }
        };
        Ok(outcome.unwrap_or_else(|_elapsed| {
            self.tally.unanswered.fetch_add(1, Ordering::Relaxed);
            let secs = self.limits.deadline.as_secs();
            let detail = format!("GET {} took longer than {secs} s as a whole", ask.path);
            Err(trouble(CauseKind::TimedOut, detail, Again::Once))
        }))
    }

    async fn grace_is_over(&self) {
        self.stop.cancelled().await;
        tokio::time::sleep(self.grace).await;
    }

    fn may_ask(&self) -> Result<(), Cause> {
        if let Some(stop) = self.stopped() {
            return Err(cause(CauseKind::AccountStopped, stop.text));
        }
        if self.stop.is_cancelled() {
            return Err(cause(CauseKind::Interrupted, "the run was asked to stop".to_owned()));
        }
        if self.over.is_cancelled() {
            return Err(too_late());
        }
        Ok(())
    }

    /// Whether the breaker lets this question through. `is_trial`: it was let through an open
    /// breaker before, to try for all.
    fn pass_breaker(&self, is_trial: bool) -> Result<bool, Cause> {
        let mut breaker = lock(&self.breaker);
        let now = tokio::time::Instant::now();
        match breaker.open_until {
            _ if is_trial => Ok(true),
            Some(until) if until > now => {
                let failed = breaker.failed_in_a_row;
                let detail = format!("not asked: the last {failed} questions got no answer");
                Err(cause(CauseKind::BreakerOpen, detail))
            }
            Some(_) => {
                // This one tries; the others wait for what becomes of it.
                breaker.open_until = now.checked_add(self.limits.breaker_pause);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    async fn exchange(&self, headers: &HeaderMap, ask: &Ask) -> Result<Exchange, Trouble> {
        let url = self.base.join(ask.path.trim_start_matches('/')).map_err(|_bad| {
            let detail = format!("{} is not a path", ask.path);
            trouble(CauseKind::Unreadable, detail, Again::Never)
        })?;
        let client = self.client.get_or_try_init(|| async { client(&self.settings, &self.base) });
        let client = client.await.map_err(|error| Trouble {
            cause: self.stop_account(StopKind::Misconfigured, error.to_string()),
            again: Again::Never,
        })?;
        let request = client.get(url).headers(headers.clone()).query(&ask.query);
        let mut response = request.send().await.map_err(|error| self.unsent(ask, &error))?;
        let status = response.status().as_u16();
        let received_at = self.db_now();
        self.tally.note(status);
        let skew_secs = skew_secs(response.headers(), received_at);
        if response.headers().contains_key(reqwest::header::AGE) {
            let detail = format!("GET {}: a cache answered, and not the PSP", ask.path);
            return Err(trouble(CauseKind::Unreadable, detail, Again::Backoff));
        }
        if status != 200 {
            self.judge_status(ask, status, response.headers(), received_at)?;
        }
        let most = if status == 200 { self.limits.body_max } else { REFUSAL_BODY_MAX };
        let body = read_whole(&mut response, most).await.map_err(|broken| match broken {
            Broken::TooLarge => {
                let detail = format!("GET {}: the answer is larger than {most} bytes", ask.path);
                trouble(CauseKind::Unreadable, detail, Again::Never)
            }
            Broken::Off => {
                let detail = format!("GET {}: the answer broke off", ask.path);
                trouble(CauseKind::Unreachable, detail, Again::Backoff)
            }
        })?;
        self.pace.answered();
        Ok(Exchange { status, skew_secs, body })
    }

    /// A status that is no answer to the question becomes trouble; 400, 402, 404 and their like
    /// are the adapter's to read.
    fn judge_status(
        &self,
        ask: &Ask,
        status: u16,
        headers: &HeaderMap,
        received_at: Instant,
    ) -> Result<(), Trouble> {
        let request_id = word(headers, "request-id").map_or(String::new(), |id| format!(", {id}"));
        let detail = format!("GET {} answered {status}{request_id}", ask.path);
        let hold = retry_after(headers, received_at).map(|h| h.min(self.limits.retry_after_max));
        let again = match word(headers, "stripe-should-retry") {
            Some("false") => Again::Never,
            Some(_) | None => hold.map_or(Again::Backoff, Again::After),
        };
        let now = tokio::time::Instant::now();
        match status {
            401 | 403 => {
                let text = format!(
                    "the PSP refused the key ({status} on {}); check the account's key and its \
                     permissions",
                    ask.path
                );
                let cause = self.stop_account(StopKind::Auth, text);
                Err(Trouble { cause, again: Again::Never })
            }
            429 => {
                self.pace.refused(now, hold.unwrap_or(Duration::ZERO));
                Err(trouble(CauseKind::RateLimited, detail, again))
            }
            409 | 500..=599 => {
                self.pace.hold(now, hold.unwrap_or(Duration::ZERO));
                Err(trouble(CauseKind::ServerError, detail, again))
            }
            400..=499 => match word(headers, "stripe-should-retry") {
                Some("true") => Err(trouble(CauseKind::ServerError, detail, Again::Backoff)),
                Some(_) | None => Ok(()),
            },
            300..=399 => {
                let detail = format!("{detail}: redirects are never followed; check base_url");
                Err(trouble(CauseKind::Unreadable, detail, Again::Never))
            }
            _other => Err(trouble(CauseKind::Unreadable, detail, Again::Never)),
        }
    }

    /// No status came.
    fn unsent(&self, ask: &Ask, error: &reqwest::Error) -> Trouble {
        self.tally.unanswered.fetch_add(1, Ordering::Relaxed);
        if let Some(tls) = tls_error(error) {
            let text = format!(
                "the server at {} could not be authenticated ({tls}); nothing was asked; check \
                 base_url, the server's certificate and the machine's CA certificates",
                self.base.host_str().unwrap_or("?")
            );
            let cause = self.stop_account(StopKind::Tls, text);
            return Trouble { cause, again: Again::Never };
        }
        let host = self.base.host_str().unwrap_or("?");
        if error.is_connect() || error.is_dns() {
            let what = match error.is_timeout() {
                true => format!("connecting to {host} took too long"),
                false => format!("cannot connect to {host}"),
            };
            let detail = format!("GET {}: {what}", ask.path);
            return trouble(CauseKind::Unreachable, detail, Again::Backoff);
        }
        let (kind, what) = if error.is_timeout() {
            (CauseKind::TimedOut, "no answer in time")
        } else if error.is_builder() {
            (CauseKind::Unreadable, "the request could not be built")
        } else {
            (CauseKind::Unreachable, "the connection broke")
        };
        trouble(kind, format!("GET {}: {what}", ask.path), Again::Backoff)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No holder of these locks can panic halfway through a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn client(settings: &AccountSettings, base: &Url) -> Result<Client, LaneError> {
    // Once for the process; a second call changes nothing and says so, which is fine.
    let _already = rustls::crypto::ring::default_provider().install_default();
    let account = settings.name.clone();
    let failed = |source| LaneError::Client { account: account.clone(), source };
    let mut builder = Client::builder()
        .user_agent(concat!("tieout/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .no_proxy()
        .connect_timeout(to_std(settings.connect_timeout))
        .read_timeout(to_std(settings.deadline))
        .pool_idle_timeout(Duration::from_secs(30))
        .https_only(base.scheme() == "https");
    if let Some(proxy) = &settings.proxy {
        builder = builder.proxy(reqwest::Proxy::all(proxy).map_err(failed)?);
    }
    if let Some(path) = &settings.ca_file {
        let unreadable = |source: Box<dyn std::error::Error + Send + Sync>| {
            let path = path.display().to_string();
            LaneError::Certificates { account: account.clone(), path, source }
        };
        let pem = std::fs::read(path).map_err(|e| unreadable(e.into()))?;
        let certificates = reqwest::Certificate::from_pem_bundle(&pem);
        builder = builder.tls_certs_only(certificates.map_err(|e| unreadable(e.into()))?);
    } else if base.scheme() == "http" && is_loopback(base) {
        // No TLS will be spoken, and a bare machine has no CA certificates to load.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(failed)
}

enum Broken {
    TooLarge,
    Off,
}

/// Reads a body, counting the bytes after unpacking.
async fn read_whole(response: &mut reqwest::Response, most: u64) -> Result<Vec<u8>, Broken> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|_error| Broken::Off)? {
        if body.len().saturating_add(chunk.len()) > most {
            return Err(Broken::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn read_body<T: DeserializeOwned>(
    ask: &Ask,
    exchange: Exchange,
) -> Result<(Body<T>, Option<i64>), String> {
    if exchange.status != 200 {
        let Exchange { status, skew_secs, body } = exchange;
        return Ok((Body::Refused { status, body }, skew_secs));
    }
    match serde_json::from_slice(&exchange.body) {
        Ok(value) => Ok((Body::Ok(value), exchange.skew_secs)),
        // Only the place: the message of serde_json may quote the value.
        Err(error) => Err(format!(
            "GET {}: the answer is not what this PSP's API answers ({:?} error at line {}, \
             column {})",
            ask.path,
            error.classify(),
            error.line(),
            error.column()
        )),
    }
}

fn word<'h>(headers: &'h HeaderMap, name: &'static str) -> Option<&'h str> {
    headers.get(HeaderName::from_static(name))?.to_str().ok().and_then(plain_word)
}

/// `Retry-After` in seconds or as a date; absurd values are the caller's to cap.
fn retry_after(headers: &HeaderMap, now: Instant) -> Option<Duration> {
    let text = headers.get(reqwest::header::RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    // Its distance is taken from the server's own clock where it tells it.
    let from = date(headers).unwrap_or(now);
    let at = DateTime::parse_from_rfc2822(text).ok()?;
    Some(at.signed_duration_since(from).to_std().unwrap_or(Duration::ZERO))
}

fn date(headers: &HeaderMap) -> Option<Instant> {
    let text = headers.get(reqwest::header::DATE)?.to_str().ok()?;
    DateTime::parse_from_rfc2822(text).ok().map(|at| at.to_utc())
}

/// PSP minus database. The header has whole seconds, so the database's are cut as well.
fn skew_secs(headers: &HeaderMap, received_at: Instant) -> Option<i64> {
    date(headers).map(|date| date.timestamp().saturating_sub(received_at.timestamp()))
}

/// The TLS error inside an HTTP client's error, where that was the trouble.
fn tls_error(error: &reqwest::Error) -> Option<String> {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return Some(tls.to_string());
        }
        // An io::Error's source is the source of what it wraps, not the wrapped error itself.
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if let Some(wrapped) = wrapped {
            next = Some(wrapped);
        } else {
            next = error.source();
        }
    }
    None
}
