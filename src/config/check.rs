//! What must hold across sections: names that refer to each other, words that exclude each other.
//!
//! Only what the file itself shows. Whether a mapping fits its database is `store`'s to say.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::money::Currency;
use crate::model::near::nearest;
use crate::model::transaction::Kind;
use crate::store::mapping::{FilterValue, MapSettings, SetSettings, TableSettings};

/// A mistake: the path to mark below the table, and the sentence.
pub type Misfit = (String, String);

/// Names that `set` and `history` know besides the key's columns.
const SET_NAMES: [&str; 7] =
    ["now", "psp_reference", "psp_time", "status", "status_before", "reason", "outcome"];

/// Everything about one `[[table]]` that the file itself shows to be wrong.
pub fn table_misfits(table: &TableSettings, accounts: &BTreeSet<&str>) -> Vec<Misfit> {
    let mut found = Vec::new();
    for (field, text) in [
        ("name", &table.name),
        ("read", &table.read),
        ("status", &table.status),
        ("created", &table.created),
        ("amount.column", &table.amount.column),
    ] {
        if text.trim().is_empty() {
            found.push((field.to_owned(), format!("`{field}` is empty")));
        }
    }
    key_misfits(table, &mut found);
    account_misfits(table, accounts, &mut found);
    currency_misfits(table, accounts, &mut found);
    kind_misfits(table, &mut found);
    filter_misfits(table, &mut found);
    time_misfits(table, &mut found);
    template_misfits(table, accounts, &mut found);
    map_misfits(table, &mut found);
    found
}

fn key_misfits(table: &TableSettings, found: &mut Vec<Misfit>) {
    if table.key.is_empty() {
        found.push(("key".to_owned(), "`key` names no column".to_owned()));
    }
    for (field, columns) in [("key", &table.key), ("natural_key", &table.natural_key)] {
        let distinct: BTreeSet<&String> = columns.iter().collect();
        if distinct.len() != columns.len() {
            found.push((field.to_owned(), format!("`{field}` names a column twice")));
        }
    }
}

fn unknown_account(name: &str, accounts: &BTreeSet<&str>) -> String {
    match nearest(name, accounts.iter().copied()) {
        Some(near) => format!("there is no [[account]] `{name}`; did you mean `{near}`?"),
        None => {
            let known: Vec<&str> = accounts.iter().copied().collect();
            format!("there is no [[account]] `{name}`; configured: {}", known.join(", "))
        }
    }
}

fn account_misfits(table: &TableSettings, accounts: &BTreeSet<&str>, found: &mut Vec<Misfit>) {
    for (value, name) in &table.accounts {
        if !accounts.contains(name.as_str()) {
            found.push((format!("accounts.{value}"), unknown_account(name, accounts)));
        }
    }
    let stars = table.accounts.contains_key("*");
    if table.accounts.is_empty() {
        let text = "`accounts` maps nothing; expected \"VALUE\" = \"ACCOUNT\" for the values of \
                    `account`, or account = { const = \"ACCOUNT\" } for the whole table";
        found.push(("accounts".to_owned(), text.to_owned()));
    } else if table.account.is_empty() && !(stars && table.accounts.len() == 1) {
        let text = "no `account` column has these values; expected account = [\"COLUMN\"], or \
                    account = { const = \"ACCOUNT\" } for the whole table";
        found.push(("accounts".to_owned(), text.to_owned()));
    }
}

fn currency_misfits(table: &TableSettings, accounts: &BTreeSet<&str>, found: &mut Vec<Misfit>) {
    let currency = &table.currency;
    let given =
        [currency.column.is_some(), currency.constant.is_some(), currency.by_account.is_some()];
    if given.iter().filter(|given| **given).count() != 1 {
        let text = "`currency` expects exactly one of column, const, by_account";
        found.push(("currency".to_owned(), text.to_owned()));
    }
    let by_account = currency.by_account.iter().flatten();
    let codes = by_account.map(|(name, code)| (format!("currency.by_account.{name}"), code));
    let codes = codes.chain(currency.constant.iter().map(|code| ("currency.const".into(), code)));
    for (path, code) in codes {
        if Currency::parse(code).is_err() {
            found.push((path, format!("`{code}` is no currency of ISO 4217")));
        }
    }
    for name in currency.by_account.iter().flat_map(BTreeMap::keys) {
        if !accounts.contains(name.as_str()) {
            let path = format!("currency.by_account.{name}");
            found.push((path, unknown_account(name, accounts)));
        }
    }
}

fn kind_misfits(table: &TableSettings, found: &mut Vec<Misfit>) {
    let kind = &table.kind;
    if kind.constant.is_some() == kind.column.is_some() {
        let text = "`kind` expects either const, or column and values";
        found.push(("kind".to_owned(), text.to_owned()));
    }
    if kind.column.is_some() && kind.values.is_empty() {
        let text =
            "`kind.column` needs `values`: from the column's values to charge, refund, payout";
        found.push(("kind".to_owned(), text.to_owned()));
    }
    let words = kind.values.iter().map(|(value, word)| (format!("kind.values.{value}"), word));
    let words = words.chain(kind.constant.iter().map(|word| ("kind.const".to_owned(), word)));
    for (path, word) in words {
        if Kind::parse(word).is_none() {
            found.push((path, format!("`{word}` is no kind; expected charge, refund or payout")));
        }
    }
}

fn filter_misfits(table: &TableSettings, found: &mut Vec<Misfit>) {
    for (at, filter) in table.filter.iter().enumerate() {
        let given = [filter.is.is_some(), filter.one_of.is_some(), filter.not_in.is_some()];
        if given.iter().filter(|given| **given).count() != 1 {
            let text = format!(
                "the condition on `{}` expects exactly one of is, in, not_in",
                filter.column
            );
            found.push((format!("where.{at}"), text));
        }
        let lists = [("in", &filter.one_of), ("not_in", &filter.not_in)];
        for (word, _) in lists.iter().filter(|(_, list)| list.as_ref().is_some_and(Vec::is_empty)) {
            found.push((format!("where.{at}.{word}"), format!("`{word}` lists nothing")));
        }
    }
}

fn time_misfits(table: &TableSettings, found: &mut Vec<Misfit>) {
    if let Some(time) = &table.time {
        let known = matches!(time.as_str(), "utc" | "epoch_s" | "epoch_ms");
        if !known && time.parse::<chrono_tz::Tz>().is_err() {
            let text = format!(
                "`time` is `{time}`; expected utc, epoch_s, epoch_ms or a zone such as \
                 Europe/Berlin"
            );
            found.push(("time".to_owned(), text));
        }
    }
    if table.attempted.is_some() && table.attempts.is_some() {
        let text = "`attempts = \"once\"` and `attempted` exclude each other: keep the column, \
                    where the application writes it before every send";
        found.push(("attempts".to_owned(), text.to_owned()));
    }
}

/// The names between braces; `Err` says what is wrong with them. `{{` and `}}` stand for the
/// braces themselves.
pub fn placeholders(template: &str) -> Result<Vec<&str>, String> {
    let mut names = Vec::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from_brace) = rest.split_at(at);
        if let Some(after) = from_brace.strip_prefix("{{").or_else(|| from_brace.strip_prefix("}}"))
        {
            rest = after;
            continue;
        }
        let Some(inner) = from_brace.strip_prefix('{') else {
            return Err(format!("a `}}` without `{{` after `{before}`"));
        };
        let Some((name, after)) = inner.split_once('}') else {
            return Err("a `{` without `}`".to_owned());
        };
        if name.is_empty() || name.contains('{') {
            return Err(format!("`{{{name}}}` names no column"));
        }
        names.push(name);
        rest = after;
    }
    Ok(names)
}

fn template_misfits(table: &TableSettings, accounts: &BTreeSet<&str>, found: &mut Vec<Misfit>) {
    let own = [("tag", &table.tag), ("idempotency_key", &table.idempotency_key)];
    let own = own.iter().filter_map(|(field, template)| {
        template.as_ref().map(|template| ((*field).to_owned(), template))
    });
    let by_account = table.tags.iter().map(|(name, text)| (format!("tags.{name}"), text));
    for (path, template) in own.chain(by_account) {
        match placeholders(template) {
            Err(problem) => found.push((path, format!("template `{template}`: {problem}"))),
            Ok(names) if names.is_empty() => {
                let text = format!(
                    "template `{template}` has no {{column}}: every row would \
                                    have the same"
                );
                found.push((path, text));
            }
            Ok(_columns) => {}
        }
    }
    for name in table.tags.keys().filter(|name| !accounts.contains(name.as_str())) {
        found.push((format!("tags.{name}"), unknown_account(name, accounts)));
    }
    let SetSettings { always, succeeded, failed, retryable, review } = &table.set;
    let sets = [
        ("set.always", always),
        ("set.succeeded", succeeded),
        ("set.failed", failed),
        ("set.retryable", retryable),
        ("set.review", review),
    ];
    let history = table.history.iter().map(|history| ("history.columns", &history.columns));
    for (section, columns) in sets.into_iter().chain(history) {
        for (column, template) in columns {
            if let Some(problem) = set_misfit(table, template) {
                found.push((format!("{section}.{column}"), problem));
            }
        }
    }
    for column in sets_status(table) {
        let text = format!("`{column}` is the status column: [[table.map]] says what it becomes");
        found.push((column, text));
    }
}

fn set_misfit(table: &TableSettings, template: &str) -> Option<String> {
    let names = match placeholders(template) {
        Ok(names) => names,
        Err(problem) => return Some(format!("template `{template}`: {problem}")),
    };
    let known =
        |name: &&&str| SET_NAMES.contains(*name) || table.key.iter().any(|column| column == **name);
    let unknown = names.iter().find(|name| !known(name))?;
    let all = SET_NAMES.into_iter().chain(table.key.iter().map(String::as_str));
    let help = match nearest(unknown, all.clone()) {
        Some(near) => format!("did you mean `{{{near}}}`?"),
        None => format!("known: {}", all.collect::<Vec<_>>().join(", ")),
    };
    Some(format!("template `{template}`: unknown `{{{unknown}}}`; {help}"))
}

fn sets_status(table: &TableSettings) -> Vec<String> {
    let SetSettings { always, succeeded, failed, retryable, review } = &table.set;
    [
        ("set.always", always),
        ("set.succeeded", succeeded),
        ("set.failed", failed),
        ("set.retryable", retryable),
        ("set.review", review),
    ]
    .into_iter()
    .filter(|(_, columns)| columns.contains_key(&table.status))
    .map(|(section, _)| format!("{section}.{}", table.status))
    .collect()
}

fn map_misfits(table: &TableSettings, found: &mut Vec<Misfit>) {
    if table.map.is_empty() {
        let text = "`map` is empty; expected [[table.map]] with `from`: the processing values";
        found.push(("map".to_owned(), text.to_owned()));
    }
    let mut processing: BTreeSet<&str> = BTreeSet::new();
    for (at, map) in table.map.iter().enumerate() {
        if map.from.is_empty() {
            found.push((format!("map.{at}.from"), "`from` lists no value".to_owned()));
        }
        for (index, FilterValue(value)) in map.from.iter().enumerate() {
            let path = format!("map.{at}.from.{index}");
            if !processing.insert(value) {
                found.push((path, format!("`{value}` stands in `from` twice")));
            } else if table.ignore.iter().any(|ignored| ignored.0 == *value) {
                found.push((path, format!("`{value}` is in `ignore` too")));
            } else if table.succeeded.iter().any(|word| word.0 == *value) {
                found.push((path, format!("`{value}` is in `succeeded` too")));
            } else if table.unpaid.iter().any(|word| word.0 == *value) {
                found.push((path, format!("`{value}` is in `unpaid` too")));
            }
        }
    }
    for (at, map) in table.map.iter().enumerate() {
        for (outcome, value) in targets(map) {
            if processing.contains(value) {
                let text = format!(
                    "`{outcome}` is `{value}`, which `from` calls processing: the row would stay \
                     stuck"
                );
                found.push((format!("map.{at}.{outcome}"), text));
            }
        }
    }
    two_meanings(table, found);
}

/// A status that says "paid" and something else too: whoever reads it charges again what was paid,
/// or delivers what was not.
fn two_meanings(table: &TableSettings, found: &mut Vec<Misfit>) {
    let mapped = table.map.iter().filter_map(|map| map.succeeded.as_ref());
    let paid: BTreeSet<&str> =
        mapped.chain(&table.succeeded).map(|FilterValue(value)| value.as_str()).collect();
    for (at, FilterValue(value)) in table.unpaid.iter().enumerate() {
        let is_offered =
            || table.map.iter().any(|map| map.retryable.as_ref().is_some_and(|v| v.0 == *value));
        if paid.contains(value.as_str()) {
            found.push((format!("unpaid.{at}"), format!("`{value}` says succeeded too")));
        } else if is_offered() {
            let text = format!("`{value}` is `retryable` too: a row with it is charged again");
            found.push((format!("unpaid.{at}"), text));
        }
    }
    for (at, map) in table.map.iter().enumerate() {
        for (outcome, value) in targets(map) {
            if outcome != "succeeded" && paid.contains(value) {
                let text = format!(
                    "`{outcome}` is `{value}`, which says succeeded too: nobody could tell paid \
                     rows from others"
                );
                found.push((format!("map.{at}.{outcome}"), text));
            }
        }
    }
}

fn targets(map: &MapSettings) -> Vec<(&'static str, &str)> {
    let all = [
        ("succeeded", &map.succeeded),
        ("failed", &map.failed),
        ("retryable", &map.retryable),
        ("absent", &map.absent),
        ("review", &map.review),
    ];
    all.into_iter()
        .filter_map(|(outcome, value)| value.as_ref().map(|value| (outcome, value.0.as_str())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_must_close_and_name_something() {
        assert_eq!(placeholders("charge-{id}-{attempt}"), Ok(vec!["id", "attempt"]));
        assert_eq!(placeholders("plain"), Ok(vec![]));
        assert_eq!(placeholders("{{\"by\":\"{id}\"}}"), Ok(vec!["id"]));
        for bad in ["{id", "id}", "{}", "{a{b}}", "x{"] {
            assert!(placeholders(bad).is_err(), "{bad}");
        }
    }
}
