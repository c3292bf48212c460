//! PostgreSQL's NOTIFY: a word to whoever listens just now. It is a bell and no letter box: who was
//! away reads `tieout_handbacks` when it comes back.
//!
//! The database that tieout keeps its tables in sends it; here is only what is sent.

use serde_json::{Value, json};

use crate::sinks::Event;

/// PostgreSQL takes less than 8,000 bytes.
const PAYLOAD_MAX: usize = 7_999;

/// What is sent of an event: all of it, or where it is too long what names it.
pub fn payload(event: &Event) -> String {
    if event.payload.len() <= PAYLOAD_MAX {
        return event.payload.clone();
    }
    let named = cut(event, Some(&event.key));
    // One whose key alone is too long would hold up all others: its id names it still.
    if named.len() <= PAYLOAD_MAX { named } else { cut(event, None) }
}

fn cut(event: &Event, key: Option<&str>) -> String {
    let whole: Value = serde_json::from_str(&event.payload).unwrap_or(Value::Null);
    json!({
        "schema": whole["schema"],
        "id": event.id,
        "type": event.kind,
        "table": event.table,
        "key": key,
        "version": event.version,
        "cut": true,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::from_text;

    #[test]
    fn what_is_too_long_is_named() {
        let event = |length: usize| Event {
            id: "evt_1".to_owned(),
            kind: "transaction.failed".to_owned(),
            table: "t".to_owned(),
            key: "1".to_owned(),
            version: 2,
            staged_at: from_text("2026-11-19T12:00:00Z").unwrap(),
            payload: json!({ "schema": "tieout.event/1", "text": "x".repeat(length) }).to_string(),
        };
        let short = event(10);
        assert_eq!(payload(&short), short.payload);
        let cut: Value = serde_json::from_str(&payload(&event(9_000))).unwrap();
        assert_eq!((&cut["cut"], &cut["id"]), (&json!(true), &json!("evt_1")));
        assert_eq!(cut["schema"], json!("tieout.event/1"));
        assert_eq!(cut["key"], json!("1"));
        let endless = Event { key: "k".repeat(9_000), ..event(9_000) };
        let cut = payload(&endless);
        assert!(cut.len() <= PAYLOAD_MAX, "{} bytes", cut.len());
        let cut: Value = serde_json::from_str(&cut).unwrap();
        assert_eq!((&cut["key"], &cut["id"]), (&Value::Null, &json!("evt_1")));
    }
}
