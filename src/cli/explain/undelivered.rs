//! A row's events that no sink got: dead letters, and what a person gave up.

use serde_json::{Value, json};

use crate::model::count::counted;
use crate::model::time::{to_short_text, to_text};
use crate::store::outbox::Undelivered;

/// What became of each, by the outbox.
pub(super) fn lines(all: &[Undelivered]) -> Vec<String> {
    let text = |one: &Undelivered| {
        let Undelivered { sink, kind, version, .. } = one;
        let at = to_short_text(one.at);
        let error = one.last_error.as_deref();
        let tries = counted(one.attempts, "try", "tries");
        match &one.given_up {
            // It begins with the deed and who did it.
            Some(how) => {
                let said = error.map(|error| format!(" (the sink said last: {error})"));
                let said = said.unwrap_or_default();
                format!("v{version} {kind} for {sink}: given up at {at}, {how}{said}")
            }
            None => format!(
                "v{version} {kind} for {sink}: a dead letter since {at}, after {tries}: {}",
                error.unwrap_or("–")
            ),
        }
    };
    all.iter().map(text).collect()
}

/// The same for programs.
pub(super) fn body(all: &[Undelivered]) -> Vec<Value> {
    let value = |one: &Undelivered| {
        json!({
            "sink": one.sink,
            "event_id": one.event_id,
            "event": one.kind,
            "version": one.version,
            "state": if one.given_up.is_some() { "purged" } else { "dead" },
            "at": to_text(one.at),
            "attempts": one.attempts,
            "error": one.last_error,
            "why": one.given_up,
            "by": one.changed_by.as_ref().filter(|_| one.given_up.is_some()),
        })
    };
    all.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::from_text;

    #[test]
    fn what_died_and_what_was_given_up_say_when_and_why() {
        let dead = Undelivered {
            sink: "hook".to_owned(),
            event_id: "evt_1".to_owned(),
            version: 2,
            kind: "transaction.failed".to_owned(),
            attempts: 1,
            last_error: Some("answered 422".to_owned()),
            at: from_text("2026-11-19T08:00:00Z").unwrap(),
            given_up: None,
            changed_by: Some("mara".to_owned()),
        };
        let how = "purge by mara: booked by hand";
        let purged = Undelivered { given_up: Some(how.to_owned()), ..dead.clone() };
        assert_eq!(
            lines(&[dead.clone(), purged.clone()]),
            [
                "v2 transaction.failed for hook: a dead letter since 2026-11-19T08:00:00Z, \
                 after 1 try: answered 422",
                "v2 transaction.failed for hook: given up at 2026-11-19T08:00:00Z, purge by \
                 mara: booked by hand (the sink said last: answered 422)",
            ]
        );
        let [dead, purged] = [body(&[dead]).remove(0), body(&[purged]).remove(0)];
        // Whoever tried it again before it died anew did not give it up.
        assert_eq!((&dead["state"], &dead["by"]), (&"dead".into(), &Value::Null));
        assert_eq!((&purged["state"], &purged["by"]), (&"purged".into(), &"mara".into()));
    }
}
