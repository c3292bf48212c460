//! Settings that nobody gave: what `config show` adds to what the file, a variable or a flag says.
//!
//! The defaults are those of the schema, and so of the very types that read the file. They are no
//! part of the configuration's hash: a new setting with a default changes no configuration.

use serde_json::Value;

use crate::config::Config;
use crate::config::schema::schema;
use crate::config::sections::{Origin, Shown};
use crate::psp::settings::PspKind;
use crate::settlement::sources::settings::Place;

/// Sections that stand once. Those whose defaults are resolved with them are shown by themselves.
const SINGLE: [&str; 4] = ["database", "monitoring", "web", "delivery"];

/// From which amount on a decision needs two people: from any.
const FOUR_EYES: (&str, &str) = ("cases.four_eyes_from", "{}");

/// One section of the file.
struct Entry {
    /// Its place in the schema: `source.expected`.
    section: &'static str,
    /// Its path: `source.bank.expected.STMT_*.xml`.
    path: String,
    /// Its kind, where it has one: `sftp`.
    kind: &'static str,
}

impl Config {
    /// Every setting in force, in the order of paths: what was given, and the defaults of what was
    /// not.
    pub fn in_force(&self) -> Vec<Shown> {
        let root = schema();
        let mut all = self.shown.clone();
        for entry in self.entries() {
            for (name, value) in defaults(&root, &entry) {
                put(&mut all, format!("{}.{name}", entry.path), value);
            }
        }
        let (path, value) = FOUR_EYES;
        put(&mut all, path.to_owned(), value.to_owned());
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all
    }

    fn entries(&self) -> Vec<Entry> {
        let single = |section: &'static str| Entry { section, path: section.to_owned(), kind: "" };
        let mut entries: Vec<Entry> = SINGLE.into_iter().map(single).collect();
        let mut add = |section: &'static str, name: &str, kind: &'static str| {
            entries.push(Entry { section, path: format!("{section}.{name}"), kind });
        };
        // Of an account that has no API nothing is asked.
        let asked = self.accounts.iter().filter(|(_, one)| one.settings.psp != PspKind::Files);
        asked.for_each(|(name, one)| add("account", name, one.settings.psp.as_str()));
        self.tables.iter().for_each(|table| add("table", &table.name, ""));
        self.formats.iter().for_each(|format| add("format", &format.name, ""));
        self.sinks.iter().for_each(|sink| add("sink", &sink.name, sink.kind.as_str()));
        for source in &self.sources {
            let kind = match source.place {
                Place::Folder(_) => "folder",
                Place::Sftp(_) => "sftp",
            };
            add("source", &source.name, kind);
        }
        entries.extend(self.sources.iter().flat_map(|source| self.expected(&source.name)));
        entries
    }

    /// The files that are expected of a source; each is named.
    fn expected(&self, source: &str) -> Vec<Entry> {
        let begin = format!("source.{source}.expected.");
        let own = self.shown.iter().filter(|shown| shown.path.starts_with(&begin));
        let paths = own.filter_map(|shown| shown.path.strip_suffix(".name"));
        let entry =
            |path: &str| Entry { section: "source.expected", path: path.to_owned(), kind: "" };
        paths.map(entry).collect()
    }
}

/// Adds a default where nothing else gave the setting, or a part of it.
fn put(all: &mut Vec<Shown>, path: String, value: String) {
    let within = format!("{path}.");
    if !all.iter().any(|shown| shown.path == path || shown.path.starts_with(&within)) {
        all.push(Shown { path, value, origin: Origin::Default });
    }
}

/// The settings of a section that have a default, as the file would write it.
fn defaults(root: &Value, entry: &Entry) -> Vec<(String, String)> {
    let mut at = root;
    for step in entry.section.split('.') {
        at = followed(root, &at["properties"][step]);
    }
    let properties = at["properties"].as_object().into_iter().flatten();
    properties
        .filter(|(_name, property)| is_of(property, entry.kind))
        .filter_map(|(name, property)| Some((name.clone(), written(&property["default"])?)))
        .collect()
}

/// The object that a property is, or a list of.
fn followed<'a>(root: &'a Value, property: &'a Value) -> &'a Value {
    let form = if property["items"].is_null() { property } else { &property["items"] };
    let place = form["$ref"].as_str().map(|place| place.trim_start_matches('#'));
    place.and_then(|place| root.pointer(place)).unwrap_or(form)
}

/// Whether a setting is one of this kind's: others begin with the kinds that they are for, as in
/// `webhook, command: …`.
fn is_of(property: &Value, kind: &str) -> bool {
    let text = property["description"].as_str().unwrap_or_default();
    let Some((kinds, _says)) = text.split_once(": ") else { return true };
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase());
    let mut words = kinds.split(", ");
    !words.clone().all(is_word) || words.any(|word| word == kind)
}

/// A default as the file would write it; none where nothing is the default.
fn written(default: &Value) -> Option<String> {
    match default {
        Value::Null | Value::Object(_) => None,
        Value::Array(items) if items.is_empty() => None,
        Value::Array(items) => {
            let texts: Vec<String> = items.iter().map(Value::to_string).collect();
            Some(format!("[{}]", texts.join(", ")))
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(default.to_string()),
    }
}
