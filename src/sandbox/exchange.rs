//! One request: read, let in or refused, made to wait, carried out, answered.
//!
//! A request that is let in is carried out even when its client hangs up meanwhile, as at any PSP:
//! that is how answers get lost. So it runs as a task of its own, and the connection only waits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::body::{Bytes, Incoming};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Request, Response};
use tokio::sync::oneshot;

use super::answer::Answer;
use super::api_error::ApiError;
use super::call::{Call, Lens};
use super::control;
use super::core::{AccountRef, Core, Later, LaterWhat};
use super::form::Params;
use super::idempotency::KeyState;
use super::log::Received;
use super::routes::route_of;
use super::seeds::DEFAULT_ACCOUNT;
use super::server::Shared;
use super::settings::Door;
use super::staging::{self, Dark, Delivery, Staged, http_date};
use super::wire::{Cut, Script, Wire};

/// No API body is longer than this; a control body may be.
const LONGEST_API_BODY: usize = 1024 * 1024;
/// The log keeps no more of a body than this.
const LONGEST_KEPT_BODY: usize = 4096;
const LONGEST_CONTROL_BODY: usize = 512 * 1024 * 1024;
/// The version that answers name when the request names none.
const USUAL_VERSION: &str = "2026-10-28.endive";

/// Answers one request, or tells the connection to end.
pub(super) async fn respond(
    shared: Arc<Shared>,
    request: Request<Incoming>,
    wire: Arc<Wire>,
) -> Result<Response<Script>, Cut> {
    let (parts, body) = request.into_parts();
    let is_control = shared.control && parts.uri.path().starts_with("/_sandbox");
    let longest = if is_control { LONGEST_CONTROL_BODY } else { LONGEST_API_BODY };
    let body = axum::body::to_bytes(axum::body::Body::new(body), longest).await;
    let Ok(body) = body else { return Err(Cut) };
    if is_control {
        let answer = control::answer(&shared, &parts, &body);
        return build(Delivery::Plain(answer), &wire).ok_or(Cut);
    }
    let (sender, receiver) = oneshot::channel();
    let task = Arc::clone(&shared);
    shared.tasks.spawn(async move {
        let stop = task.stop.clone();
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            delivery = carry(&task, &parts, &body) => {
                // A client that hung up misses its answer; what it asked for has happened.
                let _ = sender.send(delivery);
            }
        }
    });
    match receiver.await {
        Ok(Delivery::Cut) => {
            wire.reset();
            Err(Cut)
        }
        Ok(Delivery::GoAway) => {
            wire.go_away.notify_one();
            std::future::pending().await
        }
        Ok(Delivery::Silence) => std::future::pending().await,
        Ok(delivery) => build(delivery, &wire).ok_or(Cut),
        Err(_) => Err(Cut),
    }
}

/// From a request to its delivery, with all waiting.
async fn carry(shared: &Arc<Shared>, parts: &Parts, body: &Bytes) -> Delivery {
    let admission = shared.with(|core| admit(core, shared, parts, body));
    let Admission { call, ready, wait } = admission;
    let _seat = Seat { shared, account: call.account.clone() };
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
    let staged = match ready {
        Ready::Answer(answer) => Staged::plain(answer),
        Ready::Replay(answer) => shared.with(|core| staging::stage(core, &call, Some(answer))),
        Ready::No => shared.with(|core| staging::stage(core, &call, None)),
    };
    let Staged { delivery, delay, later, dark } = staged;
    happen_later(shared, later);
    if let Some((how, time)) = dark {
        let door = match how {
            Dark::Refusing => Door::Refusing,
            Dark::Hanging => Door::Hanging,
        };
        shared.set_door(door, Some(time).filter(|time| !time.is_zero()));
    }
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    shared.with(|core| sign(core, &call, delivery))
}

/// Lets things happen after the answer, for as long as the sandbox runs.
fn happen_later(shared: &Arc<Shared>, later: Vec<Later>) {
    for Later { after_ms, what } in later {
        let task = Arc::clone(shared);
        shared.tasks.spawn(async move {
            tokio::select! {
                () = task.stop.cancelled() => {}
                () = tokio::time::sleep(Duration::from_millis(after_ms)) => {
                    let more = task.with(|core| happen(core, what));
                    happen_later(&task, more);
                }
            }
        });
    }
}

fn happen(core: &mut Core, what: LaterWhat) -> Vec<Later> {
    match what {
        LaterWhat::MoveIntent { account, id, step } => {
            core.move_intent(&account, &id, &step);
            Vec::new()
        }
        LaterWhat::Land(call) => staging::land(core, &call),
    }
}

/// A request's place among those that are served at once.
struct Seat<'a> {
    shared: &'a Shared,
    account: AccountRef,
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.shared.with(|core| {
            if let Some(taken) = core.at_once.get_mut(&self.account) {
                *taken = taken.saturating_sub(1);
            }
        });
    }
}

struct Admission {
    call: Call,
    ready: Ready,
    wait: Duration,
}

enum Ready {
    /// Refused: this is the answer.
    Answer(Answer),
    /// Answered before, under its key.
    Replay(Answer),
    No,
}

/// Notes a request and lets it in, or says why not.
fn admit(core: &mut Core, shared: &Shared, parts: &Parts, body: &Bytes) -> Admission {
    let (mut call, key) = read_call(core, parts, body);
    let who = account_of(shared, key.as_deref(), header(&parts.headers, "stripe-account"));
    if let Ok(account) = &who {
        call.account = account.clone();
    }
    call.number = core.log.note(received(core, &call, body));
    let seats = core.at_once.entry(call.account.clone()).or_default();
    *seats += 1;
    let seats = *seats;
    let refused = |core: &Core, call: Call, error: &ApiError| {
        let answer = Answer::json(error.status, &error.body(&call.request_id));
        let wait = Duration::from_millis(core.behaviour.latency_ms);
        Admission { call, ready: Ready::Answer(answer), wait }
    };
    // A client that takes the sandbox for its proxy has no key to show to it.
    if let Err(error) = who
        && call.method != "CONNECT"
    {
        return refused(core, call, &error);
    }
    if let Some(answer) = over_limit(core, &call, seats) {
        return Admission { call, ready: Ready::Answer(answer), wait: Duration::ZERO };
    }
    let jitter = match core.behaviour.jitter_ms {
        0 => 0,
        most => core.mint.draw(most + 1),
    };
    let wait = Duration::from_millis(core.behaviour.latency_ms.saturating_add(jitter));
    let ready = match take_key(core, &call) {
        Ok(ready) => ready,
        Err(error) => return refused(core, call, &error),
    };
    Admission { call, ready, wait }
}

/// The saved answer of a request's key, if it has one; takes the key if it is new.
fn take_key(core: &mut Core, call: &Call) -> Result<Ready, ApiError> {
    let Some(key) = &call.idempotency_key else { return Ok(Ready::No) };
    if key.chars().count() > 255 {
        let message = "An idempotency key has at most 255 characters.".to_owned();
        return Err(ApiError::request(400, None, message));
    }
    let ttl_ms = i64::from(core.behaviour.idempotency_ttl_secs) * 1000;
    let now_ms = core.now_ms();
    let state = core.saved.begin(&call.account, key, &call.fingerprint(), now_ms, ttl_ms);
    match state {
        KeyState::Begun => Ok(Ready::No),
        KeyState::Replay(answer) => Ok(Ready::Replay(answer.with("idempotent-replayed", "true"))),
        KeyState::OtherRequest => Err(ApiError::key_reused(key)),
        KeyState::InProgress => Err(ApiError::key_in_use(key)),
    }
}

fn over_limit(core: &mut Core, call: &Call, seats: u32) -> Option<Answer> {
    if core.behaviour.max_at_once.is_some_and(|most| seats > most) {
        let retry_after = core.behaviour.rate_limit.as_ref().map(|limit| limit.retry_after.clone());
        let reason = Some("global-concurrency");
        return Some(staging::status(core, call, 429, &retry_after.unwrap_or_default(), reason));
    }
    let limit = core.behaviour.rate_limit.clone()?;
    let now = Instant::now();
    let reason = core.limiter.take(&limit, &call.account, call.route, now).err()?;
    Some(staging::status(core, call, 429, &limit.retry_after, Some(reason)))
}

fn read_call(core: &mut Core, parts: &Parts, body: &Bytes) -> (Call, Option<String>) {
    let method = parts.method.as_str().to_owned();
    let path = parts.uri.path().to_owned();
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let (route, id) = route_of(&method, &path);
    let text = String::from_utf8_lossy(body);
    let idempotency_key = header(&parts.headers, "idempotency-key").filter(|_| method == "POST");
    let call = Call {
        number: 0,
        request_id: core.mint.request_id(),
        route,
        params: Params::read(&query, &text),
        method,
        path,
        query,
        id,
        account: AccountRef { name: DEFAULT_ACCOUNT.to_owned(), live: false },
        idempotency_key,
        version: header(&parts.headers, "stripe-version"),
        lens: Lens::True,
    };
    (call, header(&parts.headers, "authorization").and_then(|text| key_of(&text)))
}

fn received(core: &Core, call: &Call, body: &Bytes) -> Received {
    Received {
        number: 0,
        at_ms: core.now_ms(),
        method: call.method.clone(),
        path: call.path.clone(),
        query: call.query.clone(),
        route: call.route,
        account: call.account.name.clone(),
        idempotency_key: call.idempotency_key.clone(),
        version: call.version.clone(),
        body: String::from_utf8_lossy(body).chars().take(LONGEST_KEPT_BODY).collect(),
        status: None,
        fault: None,
    }
}

/// The account that a key opens.
fn account_of(
    shared: &Shared,
    key: Option<&str>,
    connected: Option<String>,
) -> Result<AccountRef, ApiError> {
    let key = key.filter(|key| !key.is_empty()).ok_or_else(ApiError::no_key)?;
    let known = shared.keys.iter().find(|known| known.secret == key);
    let own = match known {
        Some(known) => known.account.clone(),
        None if shared.keys.is_empty() && is_secret_key(key) => DEFAULT_ACCOUNT.to_owned(),
        None => return Err(ApiError::bad_key(key)),
    };
    let live = key.starts_with("sk_live_") || key.starts_with("rk_live_");
    Ok(AccountRef { name: connected.unwrap_or(own), live })
}

fn is_secret_key(key: &str) -> bool {
    ["sk_test_", "sk_live_", "rk_test_", "rk_live_"].iter().any(|start| key.starts_with(start))
}

/// The key in an `Authorization` header: the user of Basic, or the Bearer token.
fn key_of(header: &str) -> Option<String> {
    let (scheme, rest) = header.split_once(' ')?;
    match scheme.to_ascii_lowercase().as_str() {
        "bearer" => Some(rest.trim().to_owned()),
        "basic" => {
            let pair = String::from_utf8(from_base64(rest.trim())?).ok()?;
            Some(pair.split_once(':').map_or(pair.as_str(), |(user, _)| user).to_owned())
        }
        _ => None,
    }
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let (mut bits, mut held) = (0_u32, 0_u32);
    for letter in text.trim_end_matches('=').bytes() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = ((bits << 6) | u32::from(value)) & 0xffff;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from((bits >> held) & 0xff).ok()?);
        }
    }
    Some(bytes)
}

/// Adds what every answer of the API carries, and notes how the request ended.
fn sign(core: &mut Core, call: &Call, delivery: Delivery) -> Delivery {
    let answer = match &delivery {
        Delivery::Plain(answer) | Delivery::Steps { head: answer, .. } => answer.clone(),
        Delivery::Cut | Delivery::GoAway | Delivery::Silence => return delivery,
    };
    core.log.note_status(call.number, call.route, answer.status);
    let date = http_date(core.now().saturating_add(core.behaviour.date_skew_secs));
    let version = call.version.as_deref().unwrap_or(USUAL_VERSION);
    let mut answer = answer
        .with("date", date)
        .with("request-id", call.request_id.clone())
        .with("stripe-version", version);
    if let Some(key) = &call.idempotency_key {
        answer = answer.with("idempotency-key", key.clone());
    }
    if answer.status == 401 {
        answer = answer.with("www-authenticate", "Basic realm=\"Stripe\"");
    }
    match delivery {
        Delivery::Steps { steps, length, .. } => Delivery::Steps { head: answer, steps, length },
        _ => Delivery::Plain(answer),
    }
}

fn build(delivery: Delivery, wire: &Arc<Wire>) -> Option<Response<Script>> {
    let (head, script, length) = match delivery {
        Delivery::Plain(mut answer) => {
            let body = std::mem::take(&mut answer.body);
            (answer, Script::whole(body, Arc::clone(wire)), None)
        }
        Delivery::Steps { head, steps, length } => {
            (head, Script::new(steps, Arc::clone(wire)), length)
        }
        Delivery::Cut | Delivery::GoAway | Delivery::Silence => return None,
    };
    let mut response = Response::builder().status(head.status);
    for (name, value) in &head.headers {
        response = response.header(*name, value.as_str());
    }
    if let Some(length) = length {
        response = response.header("content-length", length);
    }
    response.body(script).ok()
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_from_both_schemes() {
        let cases = [
            ("Bearer sk_test_1", Some("sk_test_1")),
            ("bearer  sk_test_1", Some("sk_test_1")),
            ("Basic c2tfdGVzdF8xOg==", Some("sk_test_1")),
            ("Basic c2tfdGVzdF8xOnB3", Some("sk_test_1")),
            ("Basic !!", None),
            ("Digest x", None),
            ("sk_test_1", None),
        ];
        for (header, key) in cases {
            assert_eq!(key_of(header).as_deref(), key, "{header}");
        }
    }
}
