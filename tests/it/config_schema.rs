//! The schema that editors get: good files fit it, files of a wrong shape do not, and what only
//! the whole file shows to be wrong is not the schema's to say.
//!
//! A validator of the few words that the schema uses: one that it does not know fails the test.

use serde_json::Value;
use tieout::config::schema::schema;

/// Mistakes of shape among the fixtures; the others are told by what the words mean together.
const SHAPE: [&str; 15] = [
    "no_database",
    "no_mode",
    "no_table",
    "no_timezone",
    "not_a_number",
    "not_a_share",
    "not_a_span",
    "secret_in_file",
    "several_at_once",
    "single_brackets",
    "unknown_fail_on",
    "unknown_key",
    "unknown_mode",
    "unknown_psp",
    "unknown_section",
];

/// Why a value does not fit; nothing where it does.
fn misfits(root: &Value, schema: &Value, value: &Value, path: &str) -> Vec<String> {
    let mut found = Vec::new();
    let Some(schema) = schema.as_object() else {
        assert_eq!(schema, &Value::Bool(true), "a schema is an object");
        return found;
    };
    for (word, what) in schema {
        match word.as_str() {
            "$schema" | "title" | "description" | "default" | "format" | "$defs" => {}
            "$ref" => {
                let place = what.as_str().unwrap().trim_start_matches('#');
                found.extend(misfits(root, root.pointer(place).unwrap(), value, path));
            }
            "anyOf" | "oneOf" => {
                let ways = what.as_array().unwrap();
                if !ways.iter().any(|way| misfits(root, way, value, path).is_empty()) {
                    found.push(format!("{path}: none of the ways"));
                }
            }
            "enum" if !what.as_array().unwrap().contains(value) => {
                found.push(format!("{path}: not one of {what}"));
            }
            "const" if what != value => found.push(format!("{path}: not {what}")),
            "enum" | "const" => {}
            "type" => {
                let kinds = what.as_array().cloned().unwrap_or_else(|| vec![what.clone()]);
                let is_one = kinds.iter().any(|kind| is_a(value, kind.as_str().unwrap()));
                if !is_one {
                    found.push(format!("{path}: not a {what}"));
                }
            }
            "required" => {
                for name in what.as_array().unwrap() {
                    if value.get(name.as_str().unwrap()).is_none() && value.is_object() {
                        found.push(format!("{path}: {name} is missing"));
                    }
                }
            }
            "properties" => {
                for (name, inner) in what.as_object().unwrap() {
                    if let Some(value) = value.get(name) {
                        found.extend(misfits(root, inner, value, &format!("{path}.{name}")));
                    }
                }
            }
            "additionalProperties" => {
                let known = schema.get("properties").and_then(Value::as_object);
                for (name, inner) in value.as_object().into_iter().flatten() {
                    if known.is_some_and(|known| known.contains_key(name)) {
                        continue;
                    }
                    match what {
                        Value::Bool(false) => found.push(format!("{path}: unknown {name}")),
                        what => found.extend(misfits(root, what, inner, path)),
                    }
                }
            }
            "items" => {
                for inner in value.as_array().into_iter().flatten() {
                    found.extend(misfits(root, what, inner, path));
                }
            }
            "minItems" => {
                let count = value.as_array().map_or(0, Vec::len) as u64;
                if count < what.as_u64().unwrap() {
                    found.push(format!("{path}: too few"));
                }
            }
            "minimum" | "maximum" => {
                let both = value.as_f64().zip(what.as_f64());
                let below = word == "minimum";
                if both.is_some_and(|(v, bound)| if below { v < bound } else { v > bound }) {
                    found.push(format!("{path}: beyond {what}"));
                }
            }
            "pattern" => {
                let pattern = regex::Regex::new(what.as_str().unwrap()).unwrap();
                if value.as_str().is_some_and(|text| !pattern.is_match(text)) {
                    found.push(format!("{path}: not like {what}"));
                }
            }
            other => panic!("the test does not know `{other}`"),
        }
    }
    found
}

fn is_a(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("the test does not know the type `{other}`"),
    }
}

fn of_file(text: &str) -> Option<Vec<String>> {
    let value: toml::Value = toml::from_str(text).ok()?;
    let value = serde_json::to_value(value).unwrap();
    let schema = schema();
    Some(misfits(&schema, &schema, &value, ""))
}

#[test]
fn good_files_fit_the_schema() {
    let fine = include_str!("../../fixtures/config/fine.toml");
    for text in [fine, tieout::config::DEFAULT, include_str!("../../src/cli/demo/tieout.toml")] {
        assert_eq!(of_file(text), Some(Vec::new()));
    }
    // Words that stand in a table in more than one way.
    for (from, to) in [
        ("currency = { const = \"EUR\" }", "currency = { by_account = { stripe_live = \"EUR\" } }"),
        ("unit = \"minor\"", "unit = { exponent = \"places\" }"),
        ("accounts = { \"*\" = \"stripe_live\" }", "account = { const = \"stripe_live\" }"),
        ("from = [\"processing\"]", "from = [1, true, \"x\"]"),
    ] {
        assert!(fine.contains(from), "{from}");
        assert_eq!(of_file(&fine.replace(from, to)), Some(Vec::new()), "{to}");
    }
}

#[test]
fn each_mistake_of_shape_does_not_fit_and_each_other_does() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/config");
    let mut seen = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let is_file = path.extension().is_some_and(|ending| ending == "toml") && name != "fine";
        if !is_file {
            continue;
        }
        let Some(found) = of_file(&std::fs::read_to_string(&path).unwrap()) else { continue };
        let is_shape = SHAPE.contains(&name.as_str());
        assert_eq!(!found.is_empty(), is_shape, "{name}: {found:?}");
        seen.push(name);
    }
    let missing: Vec<_> = SHAPE.iter().filter(|name| !seen.iter().any(|s| s == *name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The schema and the commented file are of one mind about which settings there are.
#[test]
fn every_setting_of_the_commented_file_is_described() {
    let described = tieout::config::schema::described();
    for (path, text) in &described {
        assert!(!text.is_empty(), "{path} has no description");
    }
    for path in ["account.livemode", "table.map.from", "policy.watch", "limits.grace"] {
        assert!(described.contains_key(path), "{path}: {:?}", described.keys());
    }
    let words = ["cases", "aged", "empty", "duplicates", "differs"];
    let known = tieout::config::sections::FAIL_ON_WORDS.map(|(word, _)| word);
    assert_eq!(known, words, "FailOnWord describes these");
    let text = schema().to_string();
    assert!(words.iter().all(|word| text.contains(&format!("\"{word}\""))));
}
