//! Words in lines that a screen shows whole.

/// Lines of at most `width` characters, broken between words alone: a word that is longer has a
/// line of its own. The first line begins with `first`, the others with `lead`.
pub fn filled<'a>(
    words: impl IntoIterator<Item = &'a str>,
    width: usize,
    (first, lead): (&str, &str),
) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_full) => lines.push(format!("{lead}{word}")),
            None => lines.push(format!("{first}{word}")),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        for (text, width, leads, lines) in [
            ("", 5, ("", ""), &[][..]),
            ("ab cd ef", 5, ("", ""), &["ab cd", "ef"]),
            ("abcdefgh ij", 5, ("", ""), &["abcdefgh", "ij"]),
            ("ab cd ef", 6, ("# ", "# "), &["# ab", "# cd", "# ef"]),
            ("ab cd ef", 7, ("# ", "# "), &["# ab cd", "# ef"]),
            ("ab cd ef", 6, ("", "  "), &["ab cd", "  ef"]),
            ("äb çd", 5, ("", ""), &["äb çd"]),
        ] {
            assert_eq!(filled(text.split_whitespace(), width, leads), lines, "{text} {width}");
        }
    }
}
