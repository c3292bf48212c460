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

/// Whether any text is like both patterns.
pub fn meet(one: &str, other: &str) -> bool {
    let one: Vec<char> = one.chars().collect();
    let mut other: Vec<char> = other.chars().collect();
    other.push('\0');
    // Which rests of the other pattern are left once so much of the first is taken.
    let mut rests = vec![true];
    rests.resize(other.len(), false);
    skip_stars(&other, &mut rests);
    for letter in one {
        let mut next = if letter == '*' { rests.clone() } else { vec![false; other.len()] };
        for (at, own) in other.iter().enumerate() {
            let can_be = rests.get(at).copied().unwrap_or(false)
                || (letter == '*' && next.get(at).copied().unwrap_or(false));
            let is_alike = *own == '?' || letter == '?' || *own == letter;
            let behind = at.saturating_add(1);
            let (stays, goes) = match (letter, own) {
                (_any, '\0') => (false, false),
                ('*', _own) => (false, true),
                (_letter, '*') => (true, false),
                _both => (false, is_alike),
            };
            for (to, takes) in [(at, stays), (behind, goes)] {
                if let Some(rest) = next.get_mut(to).filter(|_| can_be && takes) {
                    *rest = true;
                }
            }
        }
        skip_stars(&other, &mut next);
        rests = next;
    }
    rests.last().copied().unwrap_or(false)
}

/// A star stands for nothing, too.
fn skip_stars(pattern: &[char], rests: &mut [bool]) {
    for (at, letter) in pattern.iter().enumerate() {
        let is_there = *letter == '*' && rests.get(at).copied().unwrap_or(false);
        if let Some(rest) = rests.get_mut(at.saturating_add(1)).filter(|_| is_there) {
            *rest = true;
        }
    }
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

    #[test]
    fn patterns_meet_where_a_text_is_like_both() {
        for (one, other, want) in [
            ("*.csv", "STMT_*.xml", false),
            ("*.xml", "STMT_*.xml", true),
            ("*.xml", "STMT_*", true),
            ("STMT_2026*", "STMT_*.xml", true),
            ("STMT_??.xml", "STMT_*1.xml", true),
            ("STMT_?.xml", "STMT_12.xml", false),
            ("*", "", true),
            ("?", "", false),
            ("", "", true),
            ("a*b*c", "*cb?", true),
            ("a*b", "*a", false),
            ("a.xml", "A.xml", false),
        ] {
            assert_eq!(meet(one, other), want, "{one} {other}");
            assert_eq!(meet(other, one), want, "{other} {one}");
        }
    }
}
