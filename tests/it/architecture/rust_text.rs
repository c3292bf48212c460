//! Rust source as words and paths, as far as the wall needs it: no parser, a careful reader.
//!
//! Comments, strings and character literals are blanked first, so that prose about `async` is not
//! taken for code; line numbers stay.

/// A word or a sign of the code, with its line (from 1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub text: String,
    pub line: usize,
}

/// A path such as `crate::model::Money`, groups written out, with its line and the number of
/// inline modules around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodePath {
    pub segments: Vec<String>,
    pub line: usize,
    pub inline_depth: usize,
}

/// The text with everything that is not code replaced by spaces.
pub fn code_only(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = end_of_prose(&chars, at);
        if end == at {
            code.push(chars[at]);
            at += 1;
            continue;
        }
        code.extend(chars[at..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
        at = end;
    }
    code
}

/// Where the comment or literal that begins here ends; `at` itself when none begins.
fn end_of_prose(chars: &[char], at: usize) -> usize {
    let next = chars.get(at + 1).copied();
    match chars[at] {
        '/' if next == Some('/') => position(chars, at, |rest| rest[0] == '\n'),
        '/' if next == Some('*') => end_of_block_comment(chars, at),
        '"' => end_of_quoted(chars, at + 1, '"'),
        'r' if !inside_word(chars, at) && matches!(next, Some('"' | '#')) => end_of_raw(chars, at),
        '\'' if next == Some('\\') => end_of_quoted(chars, at + 1, '\''),
        '\'' if chars.get(at + 2) == Some(&'\'') => at + 3,
        _ => at,
    }
}

fn position(chars: &[char], from: usize, found: impl Fn(&[char]) -> bool) -> usize {
    (from..chars.len()).find(|&at| found(&chars[at..])).unwrap_or(chars.len())
}

fn inside_word(chars: &[char], at: usize) -> bool {
    // `br"…"` is a raw string too, and its `b` may stay.
    let before = at.checked_sub(1).map(|before| chars[before]);
    before.is_some_and(|c| (c.is_alphanumeric() || c == '_') && c != 'b')
}

fn end_of_block_comment(chars: &[char], at: usize) -> usize {
    let mut depth = 0_usize;
    let mut here = at;
    while here < chars.len() {
        match (chars[here], chars.get(here + 1)) {
            ('/', Some('*')) => (depth, here) = (depth + 1, here + 2),
            ('*', Some('/')) if depth == 1 => return here + 2,
            ('*', Some('/')) => (depth, here) = (depth - 1, here + 2),
            _ => here += 1,
        }
    }
    chars.len()
}

fn end_of_quoted(chars: &[char], from: usize, quote: char) -> usize {
    let mut here = from;
    while here < chars.len() {
        match chars[here] {
            '\\' => here += 2,
            c if c == quote => return here + 1,
            _ => here += 1,
        }
    }
    chars.len()
}

fn end_of_raw(chars: &[char], at: usize) -> usize {
    let hashes = chars[at + 1..].iter().take_while(|&&c| c == '#').count();
    if chars.get(at + 1 + hashes) != Some(&'"') {
        return at; // a raw identifier
    }
    let close: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    let body = at + 2 + hashes;
    (position(chars, body, |rest| rest.starts_with(&close)) + close.len()).min(chars.len())
}

/// The words and signs of code that `code_only` has cleaned; `::` is one sign.
pub fn tokens(code: &str) -> Vec<Token> {
    let mut found: Vec<Token> = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            let word = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').count();
            let length = if word > 0 { word } else { 1 + usize::from(rest.starts_with("::")) };
            let text: String = rest.chars().take(length).collect();
            rest = &rest[text.len()..];
            if !first.is_whitespace() {
                found.push(Token { text, line: index + 1 });
            }
        }
    }
    found
}

/// Every path in the code, with the groups of `use` written out.
pub fn paths(tokens: &[Token]) -> Vec<CodePath> {
    let mut found = Vec::new();
    let mut inline_modules: Vec<usize> = Vec::new(); // the brace depth at which each opened
    let (mut depth, mut at) = (0_usize, 0);
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            "{" => {
                depth += 1;
                if at >= 2 && tokens[at - 2].text == "mod" {
                    inline_modules.push(depth);
                }
            }
            "}" => {
                if inline_modules.last() == Some(&depth) {
                    inline_modules.pop();
                }
                depth = depth.saturating_sub(1);
            }
            text if is_word(text) => {
                at = path_at(tokens, at, &[], inline_modules.len(), &mut found);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Reads the path at `at`, and returns where reading goes on.
fn path_at(
    tokens: &[Token],
    mut at: usize,
    before: &[String],
    inline_depth: usize,
    found: &mut Vec<CodePath>,
) -> usize {
    let line = tokens[at].line;
    let mut segments = before.to_vec();
    segments.push(tokens[at].text.clone());
    at += 1;
    while text(tokens, at) == "::" {
        let next = text(tokens, at + 1);
        if next == "{" {
            return group_at(tokens, at + 2, &segments, inline_depth, found);
        }
        if !is_word(next) && next != "*" {
            break; // a turbofish: what is inside is read as paths of its own
        }
        segments.push(next.to_owned());
        at += 2;
    }
    found.push(CodePath { segments, line, inline_depth });
    at
}

fn group_at(
    tokens: &[Token],
    mut at: usize,
    before: &[String],
    inline_depth: usize,
    found: &mut Vec<CodePath>,
) -> usize {
    while at < tokens.len() && text(tokens, at) != "}" {
        if is_word(text(tokens, at)) {
            at = path_at(tokens, at, before, inline_depth, found);
            if text(tokens, at) == "as" {
                at += 2;
            }
        } else {
            at += 1;
        }
    }
    at + 1
}

fn text(tokens: &[Token], at: usize) -> &str {
    tokens.get(at).map_or("", |token| token.text.as_str())
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

#[test]
fn prose_is_not_code() {
    for (text, code) in [
        ("a // async\nb", "a         \nb"),
        ("a /* x /* y */ z */ b", "a                   b"),
        (r#"f("as\"ync", 'x', '\'')"#, "f(         ,    ,     )"),
        (r##"br#"say "rand""# c"##, "b                c"),
        ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
        ("r#type", "r#type"),
        ("\"unclosed", "         "),
    ] {
        assert_eq!(code_only(text), code, "{text}");
    }
}

#[test]
fn groups_are_written_out() {
    let text =
        "use crate::{model::{Money, evidence as e}, store};\nlet x = super::y::<crate::z>();";
    let read: Vec<(String, usize)> =
        paths(&tokens(text)).into_iter().map(|p| (p.segments.join("::"), p.line)).collect();
    for path in [("crate::model::Money", 1), ("crate::model::evidence", 1), ("crate::store", 1)]
        .into_iter()
        .chain([("super::y", 2), ("crate::z", 2)])
    {
        assert!(read.contains(&(path.0.to_owned(), path.1)), "{path:?} in {read:?}");
    }
    assert!(!read.iter().any(|(path, _)| path == "e"), "a new name is no path: {read:?}");
}

#[test]
fn inline_modules_are_counted() {
    let read = paths(&tokens("mod tests { fn f() { super::a } }\nsuper::b"));
    let depth =
        |last: &str| read.iter().find(|p| p.segments.ends_with(&[last.to_owned()])).unwrap();
    assert_eq!((depth("a").inline_depth, depth("b").inline_depth), (1, 0));
}
