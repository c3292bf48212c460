//! `/_sandbox/*`: the same control as the `Handle`'s, over HTTP and in JSON.
//!
//! | request | body | does |
//! | --- | --- | --- |
//! | `GET /_sandbox` | | says what is set, and how many objects and requests there are |
//! | `PATCH /_sandbox/behaviour` | members of `Behaviour` | changes those |
//! | `POST /_sandbox/objects` | a list of `Seed` | puts them in, all or none; gives their ids |
//! | `POST /_sandbox/fill` | a `Fill` | puts many like one in |
//! | `GET /_sandbox/objects?kind=intent&account=A&live=true` | | the books as they are |
//! | `POST /_sandbox/move` | `{"id", "to", "account", "live"}` | moves an object on |
//! | `GET`, `POST`, `DELETE /_sandbox/faults` | a list of `FaultRule` | shows, adds, clears |
//! | `GET`, `DELETE /_sandbox/requests` | | counters and the latest requests; forgets them |
//! | `GET /_sandbox/scenarios`, `POST /_sandbox/scenarios/NAME` | | lists, switches on |
//! | `POST /_sandbox/door` | `{"door": "refusing", "for_ms": 1000}` | opens or shuts |
//! | `POST /_sandbox/clock` | `{"advance_secs": 60}` | moves the clock on |
//! | `POST /_sandbox/reset` | | forgets objects, keys, faults, requests |
//!
//! Control has no latency, no limit and no faults, and its requests are not counted. While the
//! door is shut it cannot be reached either.

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use hyper::http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::answer::Answer;
use super::books::Books;
use super::core::{AccountRef, Core};
use super::faults::FaultRule;
use super::form::Params;
use super::scenarios::{self, scenarios};
use super::seeds::{DEFAULT_ACCOUNT, Fill, Seed, SeedKind};
use super::server::Shared;
use super::settings::Door;
use super::settings::{Behaviour, SandboxError};
use super::situations::{Move, Situation};
use super::views::{self, Expand};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MoveAsked {
    id: String,
    to: Situation,
    #[serde(default)]
    account: Option<String>,
    #[serde(default)]
    live: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DoorAsked {
    door: Door,
    #[serde(default)]
    for_ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClockAsked {
    advance_secs: i64,
}

/// A control request that changed nothing, and why.
#[derive(Debug)]
struct Refused(u16, String);

impl From<SandboxError> for Refused {
    fn from(error: SandboxError) -> Self {
        Self(400, error.to_string())
    }
}

/// Answers one control request.
pub(super) fn answer(shared: &Arc<Shared>, parts: &Parts, body: &Bytes) -> Answer {
    let path = parts.uri.path().trim_end_matches('/');
    let word = path.strip_prefix("/_sandbox").unwrap_or_default().trim_start_matches('/');
    let query = Params::read(parts.uri.query().unwrap_or_default(), "");
    match act(shared, parts.method.as_str(), word, &query, body) {
        Ok(value) => Answer::json(200, &value),
        Err(Refused(status, message)) => Answer::json(status, &json!({ "error": message })),
    }
}

fn act(
    shared: &Arc<Shared>,
    method: &str,
    word: &str,
    query: &Params,
    body: &Bytes,
) -> Result<Value, Refused> {
    match (method, word) {
        ("GET", "") => Ok(shared.with(|core| overview(core, shared.door()))),
        ("GET", "behaviour") => Ok(shared.with(|core| json!(core.behaviour))),
        ("PATCH", "behaviour") => patch_behaviour(shared, body),
        ("GET", "objects") => list_objects(shared, query),
        ("GET", "faults") => Ok(shared.with(|core| faults(core))),
        ("DELETE", "faults") => {
            shared.with(|core| core.faults.clear());
            Ok(json!({ "faults": [] }))
        }
        ("GET", "requests") => Ok(shared.with(|core| requests(core))),
        ("DELETE", "requests") => {
            shared.with(|core| core.log.clear());
            Ok(json!({ "total": 0 }))
        }
        ("GET", "scenarios") => Ok(json!({ "scenarios": scenarios() })),
        ("POST", word) => act_on(shared, word, body),
        (method, word) => {
            let message = format!("{method} /_sandbox/{word} is not a control request");
            Err(Refused(404, message))
        }
    }
}

fn act_on(shared: &Arc<Shared>, word: &str, body: &Bytes) -> Result<Value, Refused> {
    match word {
        "objects" => {
            let seeds: Vec<Seed> = parse(body)?;
            let ids = shared.with(|core| core.plant(seeds))?;
            Ok(json!({ "ids": ids }))
        }
        "fill" => {
            let fill: Fill = parse(body)?;
            let made = shared.with(|core| {
                let now = core.now();
                core.plant(fill.seeds(now).collect())
            })?;
            Ok(json!({ "count": made.len() }))
        }
        "move" => {
            let asked: MoveAsked = parse(body)?;
            let name = asked.account.unwrap_or_else(|| DEFAULT_ACCOUNT.to_owned());
            let account = AccountRef { name, live: asked.live };
            let step = Move::to(asked.to);
            shared.with(|core| core.move_object(&account, &asked.id, &step))?;
            Ok(json!({ "moved": asked.id }))
        }
        "faults" => {
            let rules: Vec<FaultRule> = parse(body)?;
            Ok(shared.with(|core| {
                rules.into_iter().for_each(|rule| core.faults.add(rule));
                faults(core)
            }))
        }
        "door" => {
            let asked: DoorAsked = parse(body)?;
            shared.set_door(asked.door, asked.for_ms.map(Duration::from_millis));
            Ok(json!({ "door": asked.door }))
        }
        "clock" => {
            let asked: ClockAsked = parse(body)?;
            Ok(shared.with(|core| {
                let offset = &mut core.behaviour.clock_offset_secs;
                *offset = offset.saturating_add(asked.advance_secs);
                json!({ "now": core.now() })
            }))
        }
        "reset" => {
            shared.with(Core::reset);
            Ok(json!({ "reset": true }))
        }
        other => {
            let Some(name) = other.strip_prefix("scenarios/") else {
                let message = format!("POST /_sandbox/{other} is not a control request");
                return Err(Refused(404, message));
            };
            let scenario = scenarios::find(name)?;
            shared.with(|core| core.play(scenario));
            Ok(json!({ "scenario": name }))
        }
    }
}

fn parse<T: DeserializeOwned>(body: &Bytes) -> Result<T, Refused> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let place = error.path().to_string();
        Refused(400, format!("the body cannot be read at {place}: {}", error.inner()))
    })
}

fn patch_behaviour(shared: &Shared, body: &Bytes) -> Result<Value, Refused> {
    let changes: Value = parse(body)?;
    shared.with(|core| {
        let mut whole = json!(core.behaviour);
        let Some(members) = changes.as_object() else {
            return Err(Refused(400, "the body is not an object".to_owned()));
        };
        for (name, value) in members {
            // Whole members are replaced: a limit is not mixed from an old and a new one.
            if let Some(kept) = whole.as_object_mut() {
                kept.insert(name.clone(), value.clone());
            }
        }
        let changed: Behaviour = serde_json::from_value(whole)
            .map_err(|error| Refused(400, format!("nothing was changed: {error}")))?;
        core.set_behaviour(changed);
        Ok(json!(core.behaviour))
    })
}

fn list_objects(shared: &Shared, query: &Params) -> Result<Value, Refused> {
    let kind: SeedKind = match query.text("kind").unwrap_or("intent") {
        "intent" => SeedKind::Intent,
        "charge" => SeedKind::Charge,
        "refund" => SeedKind::Refund,
        other => {
            return Err(Refused(400, format!("kind is intent, charge or refund, not {other}")));
        }
    };
    let account = AccountRef {
        name: query.text("account").unwrap_or(DEFAULT_ACCOUNT).to_owned(),
        live: query.text("live") == Some("true"),
    };
    Ok(shared.with(|core| {
        let books: &Books = core.books(&account);
        json!({ "objects": shown(books, kind) })
    }))
}

/// All objects of a kind as the API shows them.
pub(super) fn shown(books: &Books, kind: SeedKind) -> Vec<Value> {
    let plain = Expand::default();
    match kind {
        SeedKind::Intent => {
            let all = books.intents.newest_first();
            all.map(|intent| views::value(&views::intent(books, intent, plain))).collect()
        }
        SeedKind::Charge => {
            let all = books.charges.newest_first();
            all.map(|charge| views::value(&views::charge(books, charge, plain))).collect()
        }
        SeedKind::Refund => {
            let all = books.refunds.newest_first();
            all.map(|refund| views::value(&views::refund(books, refund, plain))).collect()
        }
    }
}

fn overview(core: &Core, door: Door) -> Value {
    json!({
        "behaviour": core.behaviour,
        "door": door,
        "faults": core.faults.standing().len(),
        "now": core.now(),
        "objects": core.object_count(),
        "requests": core.log.counts().values().map(|count| count.received).sum::<u64>(),
    })
}

fn faults(core: &Core) -> Value {
    let standing = core.faults.standing();
    let rules: Vec<Value> =
        standing.iter().map(|(rule, fired)| json!({ "rule": rule, "fired": fired })).collect();
    json!({ "faults": rules })
}

fn requests(core: &Core) -> Value {
    json!({
        "total": core.log.counts().values().map(|count| count.received).sum::<u64>(),
        "routes": core.log.counts(),
        "latest": core.log.latest().collect::<Vec<_>>(),
    })
}
