//! The configuration reference, in Markdown: every setting with its type, its default and what it
//! means, from the schema that the reading types give and from the file of defaults.
//!
//! `docs/configuration.md` is what this prints; a test holds it so.

use serde_json::{Map, Value};

use crate::config::DEFAULT;
use crate::config::schema::schema;
use crate::model::time::parse_span;

const HEAD: &str = "\
# Configuration

One file, `tieout.toml`: named by `--config`, else by `TIEOUT_CONFIG`, else in the current folder,
in the user's or in the system's configuration folder. A flag wins over `TIEOUT_…` in the
environment, and that over the file; `tieout config show --origin` says of each setting where its
value comes from. An unknown setting is an error that names its line and the nearest known one.

Paths are relative to the file. A span is a number and a unit: `90s`, `15min`, `24h`, `7d`. This
page is printed by `tieout config reference`; `tieout config default` prints a commented file to
begin with, `tieout config schema` a JSON schema for editors.
";

/// Stands for the section of its name wherever else it is met.
const POLICY: &str = "#/$defs/PolicySettings";

/// The whole page.
pub fn reference() -> String {
    let root = schema();
    let mut page = Page { root: &root, text: HEAD.to_owned() };
    let sections = ["database", "account", "table", "policy", "rules", "report", "limits"];
    page.table("", &root);
    let others = ["cases", "monitoring", "web", "format", "source", "files", "sink", "delivery"];
    for name in sections.into_iter().chain(others) {
        page.section(name, &root["properties"][name]);
    }
    page.text
}

struct Page<'a> {
    root: &'a Value,
    text: String,
}

impl Page<'_> {
    /// One section and those within it.
    fn section(&mut self, path: &str, property: &Value) {
        let Some(object) = self.object(property) else { return };
        let brackets = if is_list(property) { ("[[", "]]") } else { ("[", "]") };
        let level = if path.contains('.') { "###" } else { "##" };
        let says = text_of(property).or_else(|| text_of(&object)).unwrap_or_default();
        let (open, close) = brackets;
        self.text.push_str(&format!("\n{level} `{open}{path}{close}`\n\n{says}\n"));
        self.table(path, &object);
        let inner = object["properties"].as_object().cloned().unwrap_or_default();
        for (name, property) in &inner {
            // Settings that stand for another section are described there.
            if self.object(property).is_some() && property["$ref"] != POLICY {
                self.section(&format!("{path}.{name}"), property);
            }
        }
    }

    fn table(&mut self, path: &str, object: &Value) {
        self.text.push_str("\n| setting | type | default | |\n| --- | --- | --- | --- |\n");
        let none = Map::new();
        let properties = object["properties"].as_object().unwrap_or(&none);
        let required = object["required"].as_array().cloned().unwrap_or_default();
        for (name, property) in properties {
            let is_required = required.iter().any(|one| one == name);
            if path.is_empty() && self.object(property).is_some() {
                continue;
            }
            let default = match self.default(path, name, property) {
                Some(value) => value,
                None if is_required => "required".to_owned(),
                None => "–".to_owned(),
            };
            let kind = match self.object(property) {
                _ if property["$ref"] == POLICY => "as `[policy]`".to_owned(),
                Some(_) if is_list(property) => "sections, below".to_owned(),
                Some(_) => "section, below".to_owned(),
                None => self.kind(property),
            };
            let says = text_of(property).unwrap_or_default();
            self.text.push_str(&format!("| `{name}` | {kind} | {default} | {says} |\n"));
        }
    }

    /// The object that a property is, or a list of; none where it is a plain value, or may be
    /// something else too.
    fn object(&self, property: &Value) -> Option<Value> {
        let [form]: [Value; 1] = forms(property).try_into().ok()?;
        let form = if form["type"] == "array" { &form["items"] } else { &form };
        let form = self.followed(form);
        form["properties"].is_object().then(|| form.clone())
    }

    fn followed<'b>(&'b self, at: &'b Value) -> &'b Value {
        let place = at["$ref"].as_str().map(|place| place.trim_start_matches('#'));
        place.and_then(|place| self.root.pointer(place)).unwrap_or(at)
    }

    /// The type in words.
    fn kind(&self, property: &Value) -> String {
        let words: Vec<String> = forms(property).iter().map(|form| self.word(form)).collect();
        words.join(" or ")
    }

    fn word(&self, form: &Value) -> String {
        if form["$ref"] == "#/$defs/Span" || is_span(form) {
            return "span".to_owned();
        }
        let form = self.followed(form);
        let inner = forms(form);
        if inner.len() > 1 && form["oneOf"].is_null() {
            return self.kind(form);
        }
        let words = |list: &Value, name: Option<&str>| {
            let list = list.as_array().cloned().unwrap_or_default();
            let of = |one: &Value| name.map_or(one.clone(), |name| one[name].clone());
            let quoted = list.iter().filter_map(|one| of(one).as_str().map(|w| format!("`{w}`")));
            quoted.collect::<Vec<_>>().join(", ")
        };
        match (&form["enum"], &form["oneOf"], form["type"].as_str()) {
            (Value::Array(_), _, _) => words(&form["enum"], None),
            (_, Value::Array(_), _) => words(&form["oneOf"], Some("const")),
            (_, _, Some("array")) => format!("list of {}", self.kind(&form["items"])),
            (_, _, Some("object")) if form["properties"].is_object() => {
                let names = form["properties"].as_object().cloned().unwrap_or_default();
                let names: Vec<&str> = names.keys().map(String::as_str).collect();
                format!("table of {}", names.join(", "))
            }
            (_, _, Some("object")) => {
                format!("table of {}", self.kind(&form["additionalProperties"]))
            }
            (_, _, Some(word)) => word.to_owned(),
            (_, _, None) => "value".to_owned(),
        }
    }

    /// The default as it would be written; none where there is none.
    fn default(&self, path: &str, name: &str, property: &Value) -> Option<String> {
        if matches!(path, "policy" | "limits" | "report" | "cases" | "files") {
            return written(path, name);
        }
        match &property["default"] {
            Value::Null => None,
            Value::Array(items) if items.is_empty() => None,
            Value::Object(fields) if fields.is_empty() => None,
            Value::Object(_) => None,
            value => Some(format!("`{value}`")),
        }
    }
}

/// What stands commented in the file of defaults: the value, or what its comment says of it.
fn written(section: &str, name: &str) -> Option<String> {
    let (_, rest) = DEFAULT.split_once(&format!("\n[{section}]\n"))?;
    let begin = format!("# {name} = ");
    let mut lines = rest.lines().take_while(|line| !line.starts_with('['));
    let line = lines.find_map(|line| line.strip_prefix(&begin))?;
    let (value, says) = line.split_once(" # ").unwrap_or((line, ""));
    match says.trim().strip_prefix("default: ") {
        Some("none") => None,
        Some(words) => Some(words.split(';').next().unwrap_or(words).to_owned()),
        None => Some(format!("`{}`", value.trim())),
    }
}

/// The alternatives of a property, without "or nothing".
fn forms(property: &Value) -> Vec<Value> {
    if let Some(any) = property["anyOf"].as_array() {
        return any.iter().filter(|form| form["type"] != "null").cloned().collect();
    }
    if let Some(types) = property["type"].as_array() {
        let one = |kind: &Value| {
            let mut form = property.clone();
            form["type"] = kind.clone();
            form
        };
        return types.iter().filter(|kind| *kind != "null").map(one).collect();
    }
    vec![property.clone()]
}

fn is_list(property: &Value) -> bool {
    property["type"] == "array"
}

/// Some spans are read from a plain string, and show it by their default.
fn is_span(form: &Value) -> bool {
    form["type"] == "string" && form["default"].as_str().is_some_and(|t| parse_span(t).is_some())
}

/// A description on one line.
fn text_of(property: &Value) -> Option<String> {
    let text = property["description"].as_str()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|"))
}
