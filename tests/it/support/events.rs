//! Every line of `--json` that a test reads is held against `schema/events.json`, and so strictly
//! that a field which the schema does not know fails: additions are written down.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Value, json};

/// The published schema.
pub const PUBLISHED: &str = include_str!("../../../schema/events.json");

static STRICT: LazyLock<(BTreeSet<String>, Validator)> = LazyLock::new(|| {
    let mut schema: Value = serde_json::from_str(PUBLISHED).unwrap();
    let definitions = schema["$defs"].as_object_mut().unwrap();
    let types = definitions.keys().cloned().collect();
    for definition in definitions.values_mut() {
        close(definition);
        let event = match definition.get_mut("anyOf") {
            Some(forms) => forms.as_array_mut().unwrap().iter_mut().collect(),
            None => vec![definition],
        };
        for form in event {
            form["properties"]["schema"] = json!({ "type": "string" });
            form["properties"]["type"] = json!({ "type": "string" });
        }
    }
    (types, jsonschema::validator_for(&schema).expect("a schema"))
});

/// An object whose fields are listed has no others.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.values_mut().for_each(close);
            if fields.get("properties").is_some_and(Value::is_object)
                && fields.get("type") == Some(&json!("object"))
            {
                fields.insert("additionalProperties".to_owned(), json!(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _scalar => {}
    }
}

/// What is wrong with an event; nothing where it is as published.
pub fn complaints(event: &Value) -> Vec<String> {
    let (types, strict) = &*STRICT;
    let kind = event["type"].as_str().unwrap_or("");
    if !types.contains(kind) {
        return vec![format!("the type `{kind}` is not in schema/events.json: {event}")];
    }
    strict.iter_errors(event).map(|error| format!("{kind}: {error}: {event}")).collect()
}

/// Holds every line against the schema.
#[track_caller]
pub fn check(stdout: &str) {
    for line in stdout.lines() {
        let event: Value = serde_json::from_str(line).expect(line);
        let complaints = complaints(&event);
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    }
}

#[test]
fn what_is_not_as_published_is_seen() {
    let good = json!({ "schema": "tieout/1", "type": "schema", "found": 0, "wanted": 2,
                       "text": "older" });
    assert_eq!(complaints(&good), Vec::<String>::new());
    for (field, value) in [
        ("found", json!("0")),
        ("text", Value::Null),
        ("schema", json!("tieout/2")),
        ("type", json!("unheard_of")),
        ("more", json!(1)),
    ] {
        let mut bad = good.clone();
        bad[field] = value;
        assert!(!complaints(&bad).is_empty(), "{bad}");
    }
    let mut short = good;
    short.as_object_mut().unwrap().remove("wanted");
    assert!(!complaints(&short).is_empty(), "{short}");
}

/// Every type that the program can print is published.
#[test]
fn no_event_is_printed_that_is_not_published() {
    let (types, _) = &*STRICT;
    let word = regex::Regex::new(r#"\bline\(\s*"([a-z_]+)""#).unwrap();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/cli");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        for found in word.captures_iter(&std::fs::read_to_string(&path).unwrap()) {
            assert!(types.contains(&found[1]), "{}: {}", path.display(), &found[1]);
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
}

/// Types and fields are only ever added: what was published once stays, and stays required.
#[test]
fn what_was_published_stays() {
    let schema: Value = serde_json::from_str(PUBLISHED).unwrap();
    let mut fields = BTreeSet::new();
    for (kind, definition) in schema["$defs"].as_object().unwrap() {
        collect(definition, kind, &mut fields);
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/events/published.txt");
    let read = || std::fs::read_to_string(path).unwrap();
    let known = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<String>>();
    // What is new is written down where that is meant; what is gone never is.
    if std::env::var_os("TIEOUT_BLESS").is_some_and(|word| !word.is_empty()) {
        let all: Vec<String> = known(&read()).union(&fields).cloned().collect();
        std::fs::write(path, all.join("\n") + "\n").unwrap();
    }
    let known = known(&read());
    assert!(known.len() > 150);
    let gone: Vec<&String> = known.difference(&fields).collect();
    assert!(gone.is_empty(), "readers rely on {gone:#?}");
    let new: Vec<&String> = fields.difference(&known).collect();
    assert!(new.is_empty(), "add to fixtures/events/published.txt: {new:#?}");
}

fn collect(schema: &Value, path: &str, fields: &mut BTreeSet<String>) {
    for form in ["anyOf", "items"] {
        match &schema[form] {
            Value::Array(forms) => forms.iter().for_each(|form| collect(form, path, fields)),
            Value::Object(_) => collect(&schema[form], path, fields),
            _none => {}
        }
    }
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let always = if required.contains(&json!(name)) { "always" } else { "sometimes" };
        let path = format!("{path}.{name}");
        let kind = field["type"].as_str().unwrap_or("any");
        fields.insert(format!("{path} {kind} {always}"));
        collect(field, &path, fields);
    }
}
