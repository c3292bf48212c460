//! Answers changed on their way out: objects, pages, schema. The books stay as they are.

use serde_json::{Map, Value, json};

use super::faults::{Change, NearMiss, SchemaFault, Which};
use super::views::lay_over;

const AMOUNTS: &[&str] =
    &["amount", "amount_capturable", "amount_captured", "amount_received", "amount_refunded"];

/// Changes the chosen objects of an answer, with the objects inside them.
pub(super) fn change(tree: &mut Value, only: &Which, change: &Change) {
    for (place, object) in objects(tree).into_iter().enumerate() {
        if chosen(object, place, only) {
            change_object(object, change);
        }
    }
}

/// Leaves the chosen objects out of a page. For a single object: says whether it is one of them.
pub(super) fn hide(tree: &mut Value, only: &Which) -> bool {
    match tree.get_mut("data").and_then(Value::as_array_mut) {
        Some(data) => {
            let mut place = 0;
            data.retain(|object| {
                place += 1;
                !chosen(object, place - 1, only)
            });
            false
        }
        None => chosen(tree, 0, only),
    }
}

/// Lists the chosen objects twice, one after the other.
pub(super) fn duplicate(tree: &mut Value, only: &Which) {
    let Some(data) = tree.get_mut("data").and_then(Value::as_array_mut) else { return };
    let copied = std::mem::take(data).into_iter().enumerate().flat_map(|(place, object)| {
        let copies = if chosen(&object, place, only) { 2 } else { 1 };
        std::iter::repeat_n(object, copies)
    });
    *data = copied.collect();
}

/// Sets members of the page itself.
pub(super) fn page(tree: &mut Value, members: &Value) {
    lay_over(tree, members);
}

/// Keeps so many objects of a page, and says that there is more if some were cut.
pub(super) fn shrink(tree: &mut Value, to: usize) {
    let Some(data) = tree.get_mut("data").and_then(Value::as_array_mut) else { return };
    if data.len() > to {
        data.truncate(to);
        lay_over(tree, &json!({ "has_more": true }));
    }
}

/// The answer in another shape.
pub(super) fn schema(mut tree: Value, fault: SchemaFault) -> Value {
    let drop = |tree: &mut Value, name: &str| {
        each_object(tree, &mut |object| {
            object.remove(name);
        });
    };
    match fault {
        SchemaFault::TopLevelArray => return json!([tree]),
        SchemaFault::TopLevelNull => return Value::Null,
        SchemaFault::DataIsObject => lay_over(&mut tree, &json!({ "data": {} })),
        SchemaFault::NoData => remove(&mut tree, "data"),
        SchemaFault::NoHasMore => remove(&mut tree, "has_more"),
        SchemaFault::NoId => drop(&mut tree, "id"),
        SchemaFault::NoStatus => drop(&mut tree, "status"),
        SchemaFault::AmountIsText => each_amount(&mut tree, &|amount| json!(amount.to_string())),
        SchemaFault::AmountIsFraction => {
            each_amount(&mut tree, &|amount| {
                // Written as text first: the house has no floats, JSON has.
                serde_json::from_str(&format!("{amount}.5")).unwrap_or(Value::Null)
            });
        }
        SchemaFault::CreatedIsText => each_object(&mut tree, &mut |object| {
            object.insert("created".to_owned(), json!("2026-01-02 03:04:05"));
        }),
        SchemaFault::OtherObject => each_object(&mut tree, &mut |object| {
            object.insert("object".to_owned(), json!("setup_intent"));
        }),
    }
    tree
}

fn remove(tree: &mut Value, name: &str) {
    if let Some(members) = tree.as_object_mut() {
        members.remove(name);
    }
}

/// The objects of a page, or the one object that the answer is.
fn objects(tree: &mut Value) -> Vec<&mut Value> {
    if tree.get("data").is_some_and(Value::is_array) {
        let data = tree.get_mut("data").and_then(Value::as_array_mut);
        return data.into_iter().flatten().collect();
    }
    vec![tree]
}

fn chosen(object: &Value, place: usize, only: &Which) -> bool {
    match only {
        Which::All => true,
        Which::Id(id) => object.get("id").and_then(Value::as_str) == Some(id),
        Which::Place(wanted) => place == *wanted,
        Which::Tagged(text) => object
            .get("metadata")
            .and_then(Value::as_object)
            .is_some_and(|tags| tags.values().any(|value| value.as_str() == Some(text))),
    }
}

fn change_object(object: &mut Value, change: &Change) {
    match change {
        Change::Amount(amount) => each_amount(object, &|_| json!(amount)),
        Change::AmountBy(more) => each_amount(object, &|amount| json!(amount + more)),
        Change::AmountTimes(times) => each_amount(object, &|amount| json!(amount * times)),
        Change::AmountPer(per) => {
            each_amount(object, &|amount| json!(amount.checked_div(*per).unwrap_or(amount)));
        }
        Change::Currency(code) => set_each(object, "currency", &json!(code)),
        Change::Status(status) => lay_over(object, &json!({ "status": status })),
        Change::FlipLivemode => each_object(object, &mut |members| {
            let live = members.get("livemode").and_then(Value::as_bool).unwrap_or(false);
            members.insert("livemode".to_owned(), json!(!live));
        }),
        Change::Created(second) => set_each(object, "created", &json!(second)),
        Change::CreatedBy(secs) => each_object(object, &mut |members| {
            let created = members.get("created").and_then(Value::as_i64).unwrap_or(0);
            members.insert("created".to_owned(), json!(created + secs));
        }),
        Change::NearMiss(miss) => each_object(object, &mut |members| near_miss(members, miss)),
        Change::DropTag => set_each(object, "metadata", &json!({})),
        Change::Set { path, value } => {
            let nested = path.rsplit('.').fold(value.clone(), |inner, name| json!({ name: inner }));
            lay_over(object, &nested);
        }
    }
}

fn near_miss(members: &mut Map<String, Value>, miss: &NearMiss) {
    let Some(tags) = members.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    match miss {
        NearMiss::UnderKey(other) => {
            let values: Vec<Value> = std::mem::take(tags).into_values().collect();
            tags.extend(values.into_iter().map(|value| (other.clone(), value)));
        }
        NearMiss::InDescription => {
            let values = std::mem::take(tags).into_values();
            if let Some(first) = values.into_iter().next() {
                members.insert("description".to_owned(), first);
            }
        }
        NearMiss::UpperCase
        | NearMiss::LowerCase
        | NearMiss::Truncated(_)
        | NearMiss::Padded
        | NearMiss::ZeroBefore => {
            for value in tags.values_mut() {
                let text = value.as_str().unwrap_or_default();
                *value = json!(nearly(text, miss));
            }
        }
    }
}

fn nearly(text: &str, miss: &NearMiss) -> String {
    match miss {
        NearMiss::UpperCase => text.to_uppercase(),
        NearMiss::LowerCase => text.to_lowercase(),
        NearMiss::Truncated(length) => text.chars().take(*length).collect(),
        NearMiss::Padded => format!(" {text} "),
        NearMiss::ZeroBefore => format!("0{text}"),
        NearMiss::UnderKey(_) | NearMiss::InDescription => text.to_owned(),
    }
}

fn set_each(tree: &mut Value, name: &str, value: &Value) {
    each_object(tree, &mut |members| {
        members.insert(name.to_owned(), value.clone());
    });
}

fn each_amount(tree: &mut Value, change: &dyn Fn(i64) -> Value) {
    each_object(tree, &mut |members| {
        for name in AMOUNTS {
            if let Some(value) = members.get_mut(*name)
                && let Some(amount) = value.as_i64()
            {
                *value = change(amount);
            }
        }
    });
}

/// Visits every payment, charge, refund and dispute in a tree, those inside others too.
fn each_object(tree: &mut Value, visit: &mut dyn FnMut(&mut Map<String, Value>)) {
    match tree {
        Value::Array(items) => items.iter_mut().for_each(|item| each_object(item, visit)),
        Value::Object(members) => {
            for value in members.values_mut() {
                each_object(value, visit);
            }
            let kind = members.get("object").and_then(Value::as_str).unwrap_or_default();
            if matches!(kind, "payment_intent" | "charge" | "refund" | "dispute") {
                visit(members);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
