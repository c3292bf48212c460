//! The documentation against the program: what it lists is what there is, in the same order; what
//! it names exists; what it shows was run.

mod configuration;
mod exit_codes;
mod getting_started;
mod reasons;
mod references;
mod sandbox;
mod worker;

use std::path::{Path, PathBuf};

/// The repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    let path = root().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every page: docs/*.md and README.md.
fn pages() -> Vec<PathBuf> {
    let folder = std::fs::read_dir(root().join("docs")).unwrap();
    let mut pages: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
    pages.retain(|path| path.extension().is_some_and(|ext| ext == "md"));
    pages.push(root().join("README.md"));
    pages.sort();
    pages
}

/// The sections under headings of one level: (heading, text up to the next heading of any level
/// that is not deeper).
fn sections(text: &str, level: usize) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut open = false;
    for (line, in_code) in lines(text) {
        let depth = line.chars().take_while(|c| *c == '#').count();
        if !in_code && depth > 0 && depth <= level {
            open = depth == level;
            if open {
                found.push((line.trim_start_matches('#').trim().to_owned(), String::new()));
            }
            continue;
        }
        if let Some((_, body)) = found.last_mut().filter(|_| open) {
            body.push_str(line);
            body.push('\n');
        }
    }
    found
}

/// Each line, and whether it stands in a fenced block (its fences included).
fn lines(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut in_code = false;
    text.lines().map(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        let was = in_code;
        in_code ^= is_fence;
        (line, was || is_fence)
    })
}

/// The fenced blocks of one language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let parts = text.split(&fence).skip(1);
    parts.map(|part| part.split("```").next().unwrap_or_default().to_owned()).collect()
}

/// The only fenced block of one language.
fn block(text: &str, language: &str) -> String {
    let mut own = blocks(text, language).into_iter();
    let only = own.next().unwrap_or_else(|| panic!("no {language} block"));
    assert!(own.next().is_none(), "a second {language} block");
    only
}

/// One text without its line breaks.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn sections_end_at_the_next_heading_and_code_has_none() {
    let text = "# a\nx\n## b\ny\n```sh\n## no heading\n```\n### c\nz\n# d\nw\n## e\n";
    let want = [("b", "y\n```sh\n## no heading\n```\n### c\nz\n"), ("e", "")];
    let got = sections(text, 2);
    let got: Vec<(&str, &str)> = got.iter().map(|(h, b)| (h.as_str(), b.as_str())).collect();
    assert_eq!(got, want);
}
