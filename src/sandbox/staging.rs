//! From a call to what the client will see: the call carried out or not, faults applied.
//!
//! Pure of the network: a `Staged` says what to send and what to do later; `exchange` does it.

use std::time::Duration;

use hyper::body::Bytes;
use serde_json::json;

use super::alter;
use super::answer::Answer;
use super::api::{self, Reply};
use super::api_error::ApiError;
use super::bodies;
use super::call::{Call, Lens};
use super::core::{Core, Later, LaterWhat};
use super::faults::{Action, Facts, PageFacts, Picked, Removed};
use super::seeds;
use super::settings::RetryAfter;
use super::situations::{Move, Situation};
use super::wire::Step;

/// More first answers than this are not kept for stale replays.
const MOST_FIRST_ANSWERS: usize = 200;

/// What the client will see, and what happens besides.
#[derive(Debug)]
pub(super) struct Staged {
    pub(super) delivery: Delivery,
    pub(super) delay: Duration,
    pub(super) later: Vec<Later>,
    pub(super) dark: Option<(Dark, Duration)>,
}

#[derive(Debug)]
pub(super) enum Delivery {
    /// The whole answer.
    Plain(Answer),
    /// The answer's head, and a body by steps; its length is announced if known.
    Steps { head: Answer, steps: Vec<Step>, length: Option<usize> },
    /// A reset before any byte.
    Cut,
    /// GOAWAY, and nothing more.
    GoAway,
    /// Nothing, ever.
    Silence,
}

/// How the sandbox can be gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dark {
    Refusing,
    Hanging,
}

impl Staged {
    pub(super) fn plain(answer: Answer) -> Self {
        Self::of(Delivery::Plain(answer))
    }

    fn of(delivery: Delivery) -> Self {
        Self { delivery, delay: Duration::ZERO, later: Vec::new(), dark: None }
    }
}

/// Carries a call out as the faults let it. A `replay` is the saved answer of its key: the call
/// is not carried out again, but its answer has to cross the same network.
pub(super) fn stage(core: &mut Core, call: &Call, replay: Option<Answer>) -> Staged {
    let reply = match replay {
        Some(answer) => Some(Reply::plain(answer)),
        None => call.is_read().then(|| read(core, call)),
    };
    let page = reply.as_ref().and_then(|reply| reply.page);
    let picked = pick(core, call, page);
    if let (true, Some(reply)) = (core.faults.wants_replays(), &reply) {
        remember_first(core, call, &reply.answer);
    }
    match (picked, reply) {
        (None, Some(reply)) => finish(reply),
        (None, None) => finish(write(core, call, None)),
        (Some(picked), reply) => {
            core.log.note_fault(call.number, call.route, &picked.name);
            faulty(core, call, &picked, &picked.action, reply)
        }
    }
}

/// Carries a POST out that was accepted earlier; nobody waits for its answer.
pub(super) fn land(core: &mut Core, call: &Call) -> Vec<Later> {
    write(core, call, None).later
}

fn finish(reply: Reply) -> Staged {
    Staged { later: reply.later, ..Staged::plain(reply.answer) }
}

fn pick(core: &mut Core, call: &Call, page: Option<PageFacts>) -> Option<Picked> {
    let facts = Facts {
        route: call.route,
        method: &call.method,
        path: &call.path,
        account: &call.account.name,
        object_id: call.id.as_deref(),
        mentions: &call.params,
        page,
    };
    core.faults.pick(&facts, &mut core.mint)
}

fn read(core: &mut Core, call: &Call) -> Reply {
    match api::execute(core, call) {
        Ok(reply) => reply,
        Err(error) => refused(call, &error),
    }
}

fn refused(call: &Call, error: &ApiError) -> Reply {
    Reply::plain(Answer::json(error.status, &error.body(&call.request_id)))
}

/// Carries a write out and saves its answer, or the one shown instead, under its key.
fn write(core: &mut Core, call: &Call, instead: Option<&Answer>) -> Reply {
    let (reply, began) = match api::execute(core, call) {
        Ok(reply) => (reply, true),
        Err(error) => (refused(call, &error), error.began),
    };
    if let Some(key) = &call.idempotency_key {
        if began {
            let kept = instead.unwrap_or(&reply.answer).clone();
            let kept = kept.with("original-request", call.request_id.clone());
            core.saved.save(&call.account, key, kept);
        } else {
            core.saved.release(&call.account, key);
        }
    }
    reply
}

/// The answer of a call that is carried out under a deforming fault.
fn carried_out(core: &mut Core, call: &Call, reply: Option<Reply>) -> Reply {
    reply.unwrap_or_else(|| write(core, call, None))
}

fn faulty(
    core: &mut Core,
    call: &Call,
    picked: &Picked,
    action: &Action,
    reply: Option<Reply>,
) -> Staged {
    if let Some(staged) = replaced(core, call, action) {
        // The call was not carried out: its key is as free as before.
        if let Some(key) = &call.idempotency_key {
            core.saved.release(&call.account, key);
        }
        return staged;
    }
    match action {
        Action::ActThen(inner) => act_then(core, call, picked, inner, reply),
        Action::ActLate { after_ms, meanwhile } => {
            act_late(core, call, *after_ms, meanwhile, reply.is_some())
        }
        Action::Forget => forget(core, call, reply),
        Action::StaleReplay => stale(core, call, reply),
        Action::Progress { id, steps } => {
            progress(core, call, id, steps, picked.fired);
            finish(read_again(core, call, Lens::True, reply))
        }
        Action::RepeatCursor => finish(read_again(core, call, Lens::EndAtCursor, reply)),
        Action::CursorLoop => finish(read_again(core, call, Lens::FirstPage, reply)),
        Action::IgnoreCreated => finish(read_again(core, call, Lens::NoCreated, reply)),
        Action::InsertBetweenPages(seed) => {
            let reply = carried_out(core, call, reply);
            core.plant_unchecked((**seed).clone());
            finish(reply)
        }
        Action::RemoveBetweenPages(which) => {
            let reply = carried_out(core, call, reply);
            remove(core, call, &reply.answer, which);
            finish(reply)
        }
        other => {
            let reply = carried_out(core, call, reply);
            let mut staged = deformed(other, reply.answer);
            staged.later.extend(reply.later);
            staged
        }
    }
}

/// What is sent instead of carrying the call out; none if the action deforms an answer.
fn replaced(core: &Core, call: &Call, action: &Action) -> Option<Staged> {
    let steps = |kind: &str, steps| {
        let head = Answer::text(200, kind, Bytes::new());
        Staged::of(Delivery::Steps { head, steps, length: None })
    };
    let json = "application/json";
    Some(match action {
        Action::RefuseConnections { for_ms } => dark(Dark::Refusing, *for_ms),
        Action::HangConnections { for_ms } => dark(Dark::Hanging, *for_ms),
        Action::Reset => Staged::of(Delivery::Cut),
        Action::GoAway => Staged::of(Delivery::GoAway),
        Action::NoAnswer => Staged::of(Delivery::Silence),
        Action::Status { code, retry_after, reason } => {
            let answer = status(core, call, *code, retry_after, reason.as_deref());
            Staged::plain(answer)
        }
        Action::Html { code } => Staged::plain(Answer::text(
            *code,
            "text/html; charset=utf-8",
            "<!doctype html><html><head><title>Maintenance</title></head>\
             <body><h1>We will be back soon.</h1></body></html>",
        )),
        Action::EmptyBody => Staged::plain(Answer::text(200, json, Bytes::new())),
        Action::GzipBomb { mib } => {
            let head = Answer::text(200, json, Bytes::new()).with("content-encoding", "gzip");
            Staged::of(Delivery::Steps { head, steps: bodies::gzip_bomb(*mib), length: None })
        }
        Action::HugeBody { mib } => steps(json, bodies::huge(*mib)),
        Action::ManyItems { count } => {
            let object = if call.path.contains("/charges") { "charge" } else { "payment_intent" };
            steps(json, bodies::many_items(*count, object))
        }
        Action::DeepNesting { depth } => steps(json, bodies::deep(*depth)),
        Action::Redirect { code, to } => Staged::plain(
            Answer::text(*code, "text/html", Bytes::new()).with("location", to.clone()),
        ),
        _ => return None,
    })
}

/// What becomes of a whole answer on its way.
fn deformed(action: &Action, answer: Answer) -> Staged {
    let length = Some(answer.body.len());
    let part = |bytes: usize| answer.body.slice(..bytes.min(answer.body.len()));
    match action {
        Action::Delay { ms } => {
            Staged { delay: Duration::from_millis(*ms), ..Staged::plain(answer) }
        }
        Action::ResetAfter { bytes } => {
            // The pause lets the bytes leave: a reset takes what still waits with it.
            let pause = Step::Pause(Duration::from_millis(20));
            let steps = vec![Step::Bytes(part(*bytes)), pause, Step::Reset];
            Staged::of(Delivery::Steps { head: answer, steps, length })
        }
        Action::EndStreamAfter { bytes } => {
            let pause = Step::Pause(Duration::from_millis(20));
            let steps = vec![Step::Bytes(part(*bytes)), pause, Step::End];
            Staged::of(Delivery::Steps { head: answer, steps, length })
        }
        Action::HalfClose { bytes } => {
            let steps = vec![Step::Bytes(part(*bytes)), Step::HalfClose, Step::Hang];
            Staged::of(Delivery::Steps { head: answer, steps, length })
        }
        Action::Drip { bytes, every_ms } => {
            let pause = Duration::from_millis(*every_ms);
            let drops: Vec<Bytes> =
                answer.body.chunks((*bytes).max(1)).map(Bytes::copy_from_slice).collect();
            let steps = drops.into_iter().flat_map(|drop| [Step::Bytes(drop), Step::Pause(pause)]);
            Staged::of(Delivery::Steps { steps: steps.collect(), head: answer, length })
        }
        Action::TruncatedJson { keep_per_mille } => {
            let kept = answer.body.len().saturating_mul(usize::from(*keep_per_mille)) / 1000;
            let body = part(kept);
            Staged::plain(Answer { body, ..answer })
        }
        tree_action => Staged::plain(deformed_tree(tree_action, answer)),
    }
}

fn deformed_tree(action: &Action, answer: Answer) -> Answer {
    let mut tree = answer.tree();
    match action {
        Action::WrongSchema(fault) => tree = alter::schema(tree, *fault),
        Action::EmptyPageWithMore => {
            alter::page(&mut tree, &json!({ "data": [], "has_more": true }));
        }
        Action::EndEarly => alter::page(&mut tree, &json!({ "has_more": false })),
        Action::ShrinkPage { to } => alter::shrink(&mut tree, *to),
        Action::Duplicate(only) => alter::duplicate(&mut tree, only),
        Action::Alter { only, change } => alter::change(&mut tree, only, change),
        Action::Hide(only) if alter::hide(&mut tree, only) => {
            let id = tree.get("id").and_then(|id| id.as_str()).unwrap_or_default();
            let object = tree.get("object").and_then(|kind| kind.as_str());
            let error = ApiError::no_such(404, object.unwrap_or("object"), id, "id");
            return Answer::json(404, &error.body("req_hidden"));
        }
        _ => {}
    }
    answer.with_tree(&tree)
}

fn act_then(
    core: &mut Core,
    call: &Call,
    picked: &Picked,
    inner: &Action,
    reply: Option<Reply>,
) -> Staged {
    let shown = replaced(core, call, inner);
    let instead = match &shown {
        // A 500 of a request that had begun is saved and replayed, as at Stripe.
        Some(Staged { delivery: Delivery::Plain(answer), .. }) if answer.status >= 500 => {
            Some(answer.clone())
        }
        _ => None,
    };
    let reply = reply.unwrap_or_else(|| write(core, call, instead.as_ref()));
    let Reply { answer, later, page } = reply;
    let mut staged = match shown {
        Some(staged) => staged,
        None => faulty(core, call, picked, inner, Some(Reply { answer, page, later: Vec::new() })),
    };
    staged.later.extend(later);
    staged
}

/// Takes the call, keeps its key busy, and lets it land later.
fn act_late(
    core: &mut Core,
    call: &Call,
    after_ms: u64,
    meanwhile: &Action,
    answered: bool,
) -> Staged {
    let shown = replaced(core, call, meanwhile);
    let mut staged = shown.unwrap_or_else(|| Staged::of(Delivery::Silence));
    if !answered {
        let what = LaterWhat::Land(Box::new(call.clone()));
        staged.later.push(Later { after_ms, what });
    }
    staged
}

/// Shows what would have been, and keeps the books as they were.
fn forget(core: &mut Core, call: &Call, reply: Option<Reply>) -> Staged {
    if let Some(reply) = reply {
        return finish(reply);
    }
    let before = call.id.as_deref().and_then(|id| core.books(&call.account).snapshot(id));
    let reply = write(core, call, None);
    let tree = reply.answer.tree();
    let made = tree.get("id").and_then(|id| id.as_str()).unwrap_or_default();
    match before {
        Some(before) => core.books(&call.account).restore(before),
        None => core.books(&call.account).forget(made),
    }
    Staged::plain(reply.answer)
}

fn stale(core: &mut Core, call: &Call, reply: Option<Reply>) -> Staged {
    let reply = carried_out(core, call, reply);
    match core.first_answers.get(&replay_key(call)) {
        Some(first) => {
            let old = Answer { body: first.clone(), ..reply.answer };
            Staged::plain(old.with("age", "3600").with("x-cache", "HIT"))
        }
        None => finish(reply),
    }
}

fn remember_first(core: &mut Core, call: &Call, answer: &Answer) {
    if core.first_answers.len() < MOST_FIRST_ANSWERS {
        let first = core.first_answers.entry(replay_key(call));
        first.or_insert_with(|| answer.body.clone());
    }
}

fn replay_key(call: &Call) -> String {
    format!("{} {} {}?{}", call.account.name, call.account.live, call.path, call.query)
}

fn progress(core: &mut Core, call: &Call, id: &str, steps: &[Situation], fired: u64) {
    let place = usize::try_from(fired.saturating_sub(1)).unwrap_or(usize::MAX);
    let Some(to) = steps.get(place).or(steps.last()) else { return };
    let at = core.moment();
    let step = Move::to(*to);
    let books = core.accounts.entry(call.account.clone()).or_default();
    if books.charges.has(id) {
        books.move_charge(id, &step, at, &mut core.mint);
    } else {
        books.move_intent(id, &step, at, &mut core.mint);
    }
}

/// The same read through a faulty lens; a write has no lens.
fn read_again(core: &mut Core, call: &Call, lens: Lens, reply: Option<Reply>) -> Reply {
    if call.is_read() {
        return read(core, &Call { lens, ..call.clone() });
    }
    carried_out(core, call, reply)
}

fn remove(core: &mut Core, call: &Call, answer: &Answer, which: &Removed) {
    let tree = answer.tree();
    let last = tree.get("data").and_then(|data| data.as_array()).and_then(|data| data.last());
    let last = last.and_then(|object| object.get("id")).and_then(|id| id.as_str());
    let books = core.books(&call.account);
    let id = match (which, last) {
        (Removed::Id(id), _) => Some(id.clone()),
        (Removed::Cursor, last) => last.map(str::to_owned),
        (Removed::Next, last) => last.and_then(|id| books.older_than(id)),
    };
    if let Some(id) = id {
        books.forget(&id);
    }
}

fn dark(how: Dark, for_ms: u64) -> Staged {
    let dark = Some((how, Duration::from_millis(for_ms)));
    Staged { dark, ..Staged::of(Delivery::Cut) }
}

/// An error answer that the sandbox gives without looking at the call.
pub(super) fn status(
    core: &Core,
    call: &Call,
    code: u16,
    retry_after: &RetryAfter,
    reason: Option<&str>,
) -> Answer {
    let error = match code {
        401 => ApiError::request(401, None, "Invalid API Key provided.".to_owned()),
        403 => ApiError::request(
            403,
            None,
            "The provided key does not have the required permissions.".to_owned(),
        ),
        404 => ApiError { status: 404, ..ApiError::unrecognized_url(&call.method, &call.path) },
        429 => ApiError::too_many("Too many requests. Slow down and try again."),
        409 => ApiError::request(409, Some("lock_timeout"), "The object is in use.".to_owned()),
        400..=499 => ApiError::request(code, None, "The request was refused.".to_owned()),
        _ => ApiError::api(code, "Something went wrong on our end."),
    };
    let mut answer = Answer::json(code, &error.body(&call.request_id));
    if let Some(reason) = reason {
        answer = answer.with("stripe-rate-limited-reason", reason);
    }
    match retry_after_text(core, retry_after) {
        Some(text) => answer.with("retry-after", text),
        None => answer,
    }
}

fn retry_after_text(core: &Core, retry_after: &RetryAfter) -> Option<String> {
    match retry_after {
        RetryAfter::Absent => None,
        RetryAfter::Seconds(seconds) => Some(seconds.to_string()),
        RetryAfter::DateIn(seconds) => Some(http_date(core.now().saturating_add(*seconds))),
        RetryAfter::Text(text) => Some(text.clone()),
    }
}

/// A Unix second as HTTP writes it.
pub(super) fn http_date(second: i64) -> String {
    let date = chrono::DateTime::from_timestamp(second, 0).unwrap_or_default();
    date.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

impl Core {
    /// Plants a seed of a fault rule; one that cannot stand is left out.
    fn plant_unchecked(&mut self, seed: seeds::Seed) {
        let now = self.now();
        let account = super::core::AccountRef { name: seed.account.clone(), live: seed.live };
        let books = self.accounts.entry(account).or_default();
        if seeds::check(Some(books), &seed, &mut std::collections::HashSet::new()).is_ok() {
            seeds::plant(books, seed, now, &mut self.mint);
        }
    }
}
