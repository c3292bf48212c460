//! Names for configurations: one hash of everything, and one of what decisions depend on.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::config::policy::{Resolved, amount_texts, listed};
use crate::config::sections::Shown;
use crate::decide::rules::RuleSet;
use crate::model::transaction::hex;
use crate::run::setup::AccountSetup;

/// How many hex digits name a policy.
const SHORT: usize = 12;

/// Settings of an account that say how it is asked, and never what an answer means.
const HOW_IT_IS_ASKED: [&str; 15] = [
    "base_url",
    "key_env",
    "key_file",
    "key_command",
    "requests_per_second",
    "concurrency",
    "deadline",
    "connect_timeout",
    "retries",
    "retry_after_max",
    "breaker_after",
    "breaker_pause",
    "proxy",
    "ca_file",
    "line_cases",
];

/// SHA-256 of the effective settings. Secrets are not among them.
pub fn config_sha256(shown: &[Shown]) -> String {
    let mut hash = Sha256::new();
    for setting in shown {
        hash.update(format!("{} = {}\n", setting.path, setting.value));
    }
    hex(&hash.finalize())
}

/// A short hash of the rules and of every setting that a decision depends on: two runs with the
/// same name decide the same rows alike.
pub fn policy_version(
    rules: &RuleSet,
    accounts: &BTreeMap<String, AccountSetup>,
    shown: &[Shown],
) -> String {
    let mut hash = Sha256::new();
    hash.update(format!("rules {}\n", rules.version));
    for (name, account) in accounts {
        let resolved = Resolved {
            timing: account.timing.clone(),
            max_retries: account.max_retries,
            gave_up: account.gave_up,
            brake: account.brake.clone(),
            amount_tolerance: amount_texts(&account.tolerance),
            date_window: account.tolerance.date_window,
        };
        for (field, value) in listed(&resolved) {
            hash.update(format!("account.{name}.policy.{field} = {value}\n"));
        }
    }
    for setting in shown.iter().filter(|setting| decides(&setting.path)) {
        hash.update(format!("{} = {}\n", setting.path, setting.value));
    }
    hex(&hash.finalize()).chars().take(SHORT).collect()
}

fn decides(path: &str) -> bool {
    let last = path.rsplit('.').next().unwrap_or(path);
    path.starts_with("table.") || (path.starts_with("account.") && !HOW_IT_IS_ASKED.contains(&last))
}

/// The value of a setting without the secret that may have slipped into it: a password in an
/// address, the arguments of a command.
pub fn without_secret(path: &str, value: String) -> String {
    let last = path.rsplit('.').next().unwrap_or(path);
    if last.contains("password") && !last.contains('_') {
        return "\"***\"".to_owned();
    }
    // The path of a hook's address is its password.
    let is_hook = path.starts_with("monitoring.") || path.starts_with("sink.");
    if is_hook && matches!(last, "url" | "push") {
        let host = value.split_once("://").map(|(scheme, rest)| {
            let host = rest.split(['/', '"']).next().unwrap_or("");
            let host = host.rsplit_once('@').map_or(host, |(_login, host)| host);
            format!("{scheme}://{host}/…\"")
        });
        return host.unwrap_or_else(|| "\"***\"".to_owned());
    }
    if last.ends_with("_command") {
        let program = value.split(',').next().unwrap_or("").trim_end_matches(']');
        return format!("{program}, …]");
    }
    let Some((scheme, rest)) = value.split_once("://") else {
        // Nobody can tell which part of another notation is a password.
        let is_odd = path == "database.url" && !value.starts_with("\"sqlite:");
        return if is_odd { "\"***\"".to_owned() } else { value };
    };
    // An `@` in a password that was not encoded is still no reason to show the half after it.
    let (user, rest) =
        rest.rsplit_once('@').map_or((None, rest), |(user, rest)| (Some(user), rest));
    let user = user.map(|user| match user.split_once(':') {
        Some((name, _password)) => format!("{name}:***@"),
        None => format!("{user}@"),
    });
    let rest = match rest.split_once("password=") {
        Some((before, after)) => {
            let end = after.find(['&', '"']).unwrap_or(after.len());
            format!("{before}password=***{}", after.split_at(end).1)
        }
        None => rest.to_owned(),
    };
    format!("{scheme}://{}{rest}", user.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_holds_no_secret() {
        for (path, value, want) in [
            ("database.url", "\"postgres://u:pw@h/db\"", "\"postgres://u:***@h/db\""),
            ("database.url", "\"postgres://h/db\"", "\"postgres://h/db\""),
            ("database.url", "\"postgres://u:p@w/x@h/db\"", "\"postgres://u:***@h/db\""),
            ("database.url", "\"postgres://u@h/db\"", "\"postgres://u@h/db\""),
            ("database.url", "\"pg://h/d?password=x&b=1\"", "\"pg://h/d?password=***&b=1\""),
            ("database.url", "\"Server=h;User Id=u;Password=pw;\"", "\"***\""),
            ("database.url", "\"postgres:/u:pw@h/d\"", "\"***\""),
            ("database.url", "\"sqlite:shop.db\"", "\"sqlite:shop.db\""),
            ("account.s.key_command", "[\"op\", \"read\", \"x\"]", "[\"op\", …]"),
            ("account.s.key_env", "\"STRIPE_KEY\"", "\"STRIPE_KEY\""),
            ("database.password", "\"pw\"", "\"***\""),
            ("monitoring.alert.ops.url", "\"https://h.example/s/x\"", "\"https://h.example/…\""),
            ("monitoring.healthcheck.url", "\"https://u:p@h/s\"", "\"https://h/…\""),
            ("monitoring.prometheus.push", "\"nonsense\"", "\"***\""),
            ("sink.worker.url", "\"https://h.example/s/x\"", "\"https://h.example/…\""),
        ] {
            assert_eq!(without_secret(path, value.to_owned()), want);
        }
    }
}
