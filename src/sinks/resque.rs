//! A queue of Resque's: its documented payload, a class and its arguments, of which the event is
//! the only one.

use std::time::Duration;

use serde_json::{Value, json};

use crate::secret::EnvLookup;
use crate::sinks::resp::{Redis, look};
use crate::sinks::settings::QueuePlace;
use crate::sinks::sidekiq::{key, push};
use crate::sinks::{Down, Event, Sent, Until};

/// The key of the set of queues.
const QUEUES: &str = "queues";

/// Pushes jobs, in their order.
pub async fn send(redis: &mut Redis, to: &QueuePlace, events: &[Event], until: &Until) -> Sent {
    let jobs: Vec<String> = events.iter().map(|event| job(to, event)).collect();
    let queue = key(&to.namespace, &format!("queue:{}", to.queue));
    let names = key(&to.namespace, QUEUES);
    push(redis, &["SADD", &names, &to.queue], &["RPUSH", &queue], &jobs, until).await
}

fn job(to: &QueuePlace, event: &Event) -> String {
    let payload: Value = serde_json::from_str(&event.payload).unwrap_or(Value::Null);
    json!({ "class": to.class, "args": [payload] }).to_string()
}

/// Connects, and looks.
///
/// # Errors
/// As [`Redis::open`].
pub async fn probe(to: &QueuePlace, most: Duration, env: &EnvLookup) -> Result<String, Down> {
    look(&to.place, &key(&to.namespace, QUEUES), most, env).await
}
