//! Numbers with their nouns, as people say them.

use std::fmt::Display;

/// `1 case`, `2 cases`, `0 cases`; with verbs too: `1 event waits`, `2 events wait`. A number that
/// was written already (`10,000`) is taken as it stands.
pub fn counted(count: impl Display, one: &str, many: &str) -> String {
    let count = count.to_string();
    let noun = if count == "1" { one } else { many };
    format!("{count} {noun}")
}

/// Those that are named of so many: `C-1, C-2, …`.
pub fn some_of(named: impl IntoIterator<Item = impl Display>, all: usize) -> String {
    let named: Vec<String> = named.into_iter().map(|one| one.to_string()).collect();
    let more = if all > named.len() { ", …" } else { "" };
    format!("{}{more}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_one() {
        for (count, text) in [
            ("0", "0 cases"),
            ("1", "1 case"),
            ("2", "2 cases"),
            ("11", "11 cases"),
            ("1,001", "1,001 cases"),
            ("-1", "-1 cases"),
        ] {
            assert_eq!(counted(count, "case", "cases"), text);
        }
        assert_eq!(counted(1_usize, "event waits", "events wait"), "1 event waits");
        assert_eq!(counted(3_u64, "event waits", "events wait"), "3 events wait");
    }

    #[test]
    fn that_there_are_more_is_said() {
        let keys = ["a", "b", "c"];
        assert_eq!(some_of(keys, 3), "a, b, c");
        assert_eq!(some_of(keys.iter().take(2), 3), "a, b, …");
        assert_eq!(some_of([7], 1), "7");
    }
}
