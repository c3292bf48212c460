//! A queue of Sidekiq's: the job as its own client would push it, with the event as the one
//! argument, and a `jid` that stays the same however often the event is sent.

use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::model::time::Instant;
use crate::secret::EnvLookup;
use crate::sinks::resp::{Redis, Reply, look, trouble};
use crate::sinks::settings::QueuePlace;
use crate::sinks::{Answer, Down, Event, Sent, Until};

/// The key of the set of queues.
const QUEUES: &str = "queues";

/// A key as a namespace has it.
pub(super) fn key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}:{name}") }
}

/// Pushes jobs, in their order.
pub async fn send(redis: &mut Redis, to: &QueuePlace, events: &[Event], until: &Until) -> Sent {
    let now = crate::clock::now();
    let jobs: Vec<String> = events.iter().map(|event| job(to, event, now)).collect();
    let queue = key(&to.namespace, &format!("queue:{}", to.queue));
    let names = key(&to.namespace, QUEUES);
    push(redis, &["SADD", &names, &to.queue], &["LPUSH", &queue], &jobs, until).await
}

/// Adds the queue's name to the queues, then each job to the queue: one trip there and back.
pub(super) async fn push(
    redis: &mut Redis,
    named: &[&str],
    pushed: &[&str],
    jobs: &[String],
    until: &Until,
) -> Sent {
    let mut sent = Sent::nothing(jobs.len());
    let mut commands = vec![named.to_vec()];
    commands.extend(jobs.iter().map(|job| {
        let mut words = pushed.to_vec();
        words.push(job);
        words
    }));
    if let Err(down) = redis.tell(&commands).await {
        sent.down = Some(down);
        return sent;
    }
    for index in 0..commands.len() {
        if until.is_late() {
            sent.down = Some(Down::partial("no answer in time"));
            return sent;
        }
        let reply = match redis.heard().await {
            Ok(reply) => reply,
            Err(down) => {
                sent.down = Some(down);
                return sent;
            }
        };
        match (reply, index.checked_sub(1)) {
            (Reply::Error(text), _) => sent.down = sent.down.or(Some(trouble(&text))),
            (Reply::Text(_) | Reply::Nothing, Some(job)) => sent.note(job, Answer::Taken),
            (Reply::Text(_) | Reply::Nothing, None) => {}
        }
    }
    sent
}

/// The job's JSON. Its times are seconds with a fraction, which every version of Sidekiq reads.
fn job(to: &QueuePlace, event: &Event, now: Instant) -> String {
    let payload: Value = serde_json::from_str(&event.payload).unwrap_or(Value::Null);
    let retry = to.retry.map_or(json!(true), |times| json!(times));
    let text = json!({
        "retry": retry,
        "queue": to.queue,
        "class": to.class,
        "args": [payload],
        "jid": jid(&event.id),
    })
    .to_string();
    let body = text.strip_suffix('}').unwrap_or(&text);
    format!("{body},\"created_at\":{},\"enqueued_at\":{}}}", seconds(event.staged_at), seconds(now))
}

/// Sidekiq's ids are 24 hex digits; this one belongs to the event for ever.
fn jid(event_id: &str) -> String {
    let digest = crate::model::transaction::hex(&Sha256::digest(event_id.as_bytes()));
    digest.chars().take(24).collect()
}

fn seconds(at: Instant) -> String {
    format!("{}.{:06}", at.timestamp(), at.timestamp_subsec_micros())
}

/// Connects, and looks.
///
/// # Errors
/// As [`Redis::open`].
pub async fn probe(to: &QueuePlace, most: Duration, env: &EnvLookup) -> Result<String, Down> {
    look(&to.place, &key(&to.namespace, QUEUES), most, env).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::from_text;
    use crate::sinks::settings::{How, SinkSettings};

    fn place(more: &str) -> QueuePlace {
        let text = format!(
            "name = \"s\"\nkind = \"sidekiq\"\nurl = \"redis://h\"\nqueue = \"billing\"\n\
             class = \"ChargeJob\"\n{more}"
        );
        let settings: SinkSettings = toml::from_str(&text).unwrap();
        match settings.check().unwrap().how {
            How::Sidekiq(place) => place,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_job_is_as_sidekiqs_own() {
        let at = from_text("2026-11-19T12:00:00.25Z").unwrap();
        let event = Event {
            id: "evt_1".to_owned(),
            kind: "transaction.retryable".to_owned(),
            table: "payments".to_owned(),
            key: "7".to_owned(),
            version: 1,
            staged_at: at,
            payload: "{\"id\":\"evt_1\"}".to_owned(),
        };
        let text = job(&place(""), &event, at);
        assert!(text.contains("\"created_at\":1795089600.250000,"), "{text}");
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["args"], json!([{ "id": "evt_1" }]));
        assert_eq!((&value["queue"], &value["class"]), (&json!("billing"), &json!("ChargeJob")));
        assert_eq!(value["retry"], json!(true));
        assert_eq!(value["jid"].as_str().unwrap().len(), 24);
        let again: Value = serde_json::from_str(&job(&place("retry = 3"), &event, at)).unwrap();
        assert_eq!(again["retry"], json!(3));
        assert_eq!(again["jid"], value["jid"], "the same job, however often it is sent");
    }

    #[test]
    fn a_namespace_stands_before_every_key() {
        assert_eq!(key("", "queues"), "queues");
        assert_eq!(key("app", "queues"), "app:queues");
    }
}
