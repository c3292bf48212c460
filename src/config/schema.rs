//! The JSON schema of tieout.toml, for editors: made from the very types that read the file, with
//! their comments as descriptions.
//!
//! It says what the file may look like. Whether names in it refer to each other is `config
//! check`'s to say, and whether a mapping fits its database `config check --connect`'s.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use crate::config::policy::PolicySettings;
use crate::config::sections::{
    CasesSettings, FilesSettings, LimitsSettings, ReportSettings, RulesSettings,
};
use crate::config::web::WebSettings;
use crate::model::time::span_text;
use crate::monitor::settings::MonitoringSettings;
use crate::psp::settings::AccountSettings;
use crate::settlement::sources::settings::SourceSettings;
use crate::settlement::table::FormatSettings;
use crate::sinks::settings::{DeliverySettings, SinkSettings};
use crate::store::mapping::TableSettings;
use crate::store::settings::DatabaseSettings;

/// The whole file, as it is described.
#[derive(JsonSchema)]
#[schemars(title = "tieout.toml")]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "it is only described")]
struct File {
    /// The zone that finance closes its days in: a name of the IANA database.
    business_timezone: String,
    /// Where your tables are, and tieout's own beside them.
    database: DatabaseSettings,
    /// The PSP accounts to ask.
    #[schemars(length(min = 1))]
    account: Vec<AccountSettings>,
    /// Your tables to look after.
    #[schemars(length(min = 1))]
    table: Vec<TableSettings>,
    /// What deciding depends on.
    #[serde(default)]
    policy: PolicySettings,
    /// Your own rules.
    #[serde(default)]
    rules: RulesSettings,
    /// Reports.
    #[serde(default)]
    report: ReportSettings,
    /// Limits of a run.
    #[serde(default)]
    limits: LimitsSettings,
    /// Decisions by people.
    #[serde(default)]
    cases: CasesSettings,
    /// Who is told how runs end.
    #[serde(default)]
    monitoring: MonitoringSettings,
    /// The review page.
    #[serde(default)]
    web: WebSettings,
    /// Formats of files of your banks and PSPs that are described here.
    #[serde(default)]
    format: Vec<FormatSettings>,
    /// Where settlement files come from.
    #[serde(default)]
    source: Vec<SourceSettings>,
    /// Files on their way.
    #[serde(default)]
    files: FilesSettings,
    /// Where events are delivered: what was decided, for your workers and whoever else.
    #[serde(default)]
    sink: Vec<SinkSettings>,
    /// How events are delivered.
    #[serde(default)]
    delivery: DeliverySettings,
}

/// The schema, in draft 2020-12.
pub fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema: Schema = generator.into_root_schema_for::<File>();
    // What the reading takes out of a section before its type reads the rest.
    add(
        &mut schema,
        "/$defs/AccountSettings/properties",
        "policy",
        json!({
            "description": "Settings of [policy] for this account alone.",
            "$ref": "#/$defs/PolicySettings",
        }),
    );
    add(
        &mut schema,
        "/$defs/TableSettings/properties",
        "account",
        json!({
            "description": "Columns whose values name the account, joined by `/`; or one account \
                            for the whole table.",
            "anyOf": [
                { "type": "array", "items": { "type": "string" } },
                {
                    "type": "object",
                    "properties": {
                    "const": { "type": "string", "description": "The account's name." },
                },
                    "required": ["const"],
                    "additionalProperties": false,
                },
            ],
        }),
    );
    let mut schema = schema.to_value();
    spans(&mut schema);
    schema
}

/// Defaults of spans as they would be written: `"15s"`.
fn spans(at: &mut Value) {
    match at {
        Value::Object(fields) => {
            let seconds = match fields.get("default").and_then(Value::as_array).map(Vec::as_slice) {
                Some([seconds, nanos]) if nanos.is_u64() => seconds.as_i64(),
                _no_span => None,
            };
            let span = seconds
                .and_then(TimeDelta::try_seconds)
                .filter(|_| fields.get("type").is_some_and(|kind| kind == "string"));
            if let Some(span) = span {
                fields.insert("default".to_owned(), json!(span_text(span)));
            }
            fields.values_mut().for_each(spans);
        }
        Value::Array(items) => items.iter_mut().for_each(spans),
        _plain => {}
    }
}

fn add(schema: &mut Schema, place: &str, name: &str, value: Value) {
    if let Some(Value::Object(properties)) = schema.pointer_mut(place) {
        properties.insert(name.to_owned(), value);
    }
}

/// Every setting by its path, with its description: `account.mode` → what it says.
pub fn described() -> BTreeMap<String, String> {
    let schema = schema();
    let mut found = BTreeMap::new();
    walk(&schema, &schema, "", &mut found);
    found
}

fn walk(root: &Value, at: &Value, path: &str, found: &mut BTreeMap<String, String>) {
    let at = at
        .get("$ref")
        .and_then(Value::as_str)
        .map_or(Some(at), |place| root.pointer(place.trim_start_matches('#')));
    let Some(at) = at else { return };
    for inner in ["anyOf", "oneOf"].iter().filter_map(|word| at.get(word)?.as_array()).flatten() {
        walk(root, inner, path, found);
    }
    if let Some(items) = at.get("items") {
        walk(root, items, path, found);
    }
    let Some(properties) = at.get("properties").and_then(Value::as_object) else { return };
    for (name, property) in properties {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let text = property.get("description").and_then(Value::as_str).unwrap_or_default();
        found.entry(path.clone()).or_insert_with(|| text.to_owned());
        walk(root, property, &path, found);
    }
}
