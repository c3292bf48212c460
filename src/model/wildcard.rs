//! Patterns with `*` and `?`, as shells and OpenSSH have them.

/// Whether a whole text is like a pattern: `*` stands for any text, `?` for one character,
/// everything else for itself.
pub fn fits(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut of) = (0_usize, 0_usize);
    let mut star: Option<(usize, usize)> = None;
    while let Some(letter) = text.get(of) {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, of));
                at = at.saturating_add(1);
            }
            Some(one) if *one == '?' || one == letter => {
                at = at.saturating_add(1);
                of = of.saturating_add(1);
            }
            _other => {
                let Some((back, begun)) = star else { return false };
                // The star takes one character more.
                star = Some((back, begun.saturating_add(1)));
                at = back.saturating_add(1);
                of = begun.saturating_add(1);
            }
        }
    }
    pattern.get(at..).is_some_and(|rest| rest.iter().all(|letter| *letter == '*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_matched_whole() {
        for (pattern, text, want) in [
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a*", "abc", true),
            ("a*c", "abcbc", true),
            ("a*b", "abc", false),
            ("?", "", false),
            ("?", "é", true),
            ("a?c", "abc", true),
            ("**a", "xxa", true),
            ("abc", "ab", false),
            ("ab", "abc", false),
            ("a*b*c", "a1b2b3c", true),
        ] {
            assert_eq!(fits(pattern, text), want, "{pattern} {text}");
        }
    }

    #[test]
    fn a_hostile_pattern_takes_no_longer_than_its_lengths_multiplied() {
        let text = "a".repeat(2_000);
        let pattern = format!("{}b", "a*".repeat(500));
        assert!(!fits(&pattern, &text));
    }
}
