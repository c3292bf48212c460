//! Numbers with their nouns, as people say them.

use std::fmt::Display;

/// `1 case`, `2 cases`, `0 cases`; with verbs too: `1 event waits`, `2 events wait`. A number that
/// was written already (`10,000`) is taken as it stands.
pub fn counted(count: impl Display, one: &str, many: &str) -> String {
    let count = count.to_string();
    let noun = if count == "1" { one } else { many };
    format!("{count} {noun}")
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
}
