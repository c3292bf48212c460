//! What the pages name exists: links and their anchors, files, commands and their flags.

use std::collections::BTreeSet;
use std::path::Path;

use clap::error::ErrorKind;

use super::{lines, pages, root};

/// Where a page is, for complaints.
fn name(page: &Path) -> String {
    page.strip_prefix(root()).unwrap_or(page).display().to_string()
}

/// The anchors of a page, as they are made from its headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = lines(text).filter(|(line, in_code)| !in_code && line.starts_with('#'));
    headings
        .map(|(line, _)| {
            let words = line.trim_start_matches('#').trim().to_lowercase();
            let kept = words.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

fn broken_links(page: &Path, text: &str) -> Vec<String> {
    let link = regex::Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    let mut broken = Vec::new();
    for found in link.captures_iter(text) {
        let target = &found[1];
        if target.starts_with("http://") || target.starts_with("https://") {
            continue;
        }
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let path = match file {
            "" => page.to_owned(),
            file => page.parent().unwrap().join(file),
        };
        let missing = !path.exists();
        let is_lost = || {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            !anchor.is_empty() && !anchors(&text).contains(anchor)
        };
        if missing || is_lost() {
            broken.push(format!("{}: {target}", name(page)));
        }
    }
    broken
}

/// Text in backticks, outside of fenced blocks.
fn inline_code(text: &str) -> Vec<String> {
    let prose: Vec<&str> =
        lines(text).filter(|(_, in_code)| !in_code).map(|(line, _)| line).collect();
    let prose = prose.join(" ");
    prose.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Paths of the repository that a page names in backticks.
fn missing_files(page: &Path, text: &str) -> Vec<String> {
    let rooms = ["src/", "tests/", "docs/", "cron/", "fixtures/", "migrations/"];
    inline_code(text)
        .into_iter()
        .filter(|code| rooms.iter().any(|room| code.starts_with(room)))
        // Placeholders for what the reader makes.
        .filter(|path| !path.contains(|c: char| c.is_whitespace() || "*{…".contains(c)))
        .filter(|path| !path.split('/').any(|part| part.starts_with("NAME")))
        .filter(|path| !root().join(path).exists())
        .map(|path| format!("{}: {path}", name(page)))
        .collect()
}

/// Calls of the program: in backticks, and after `$ ` or alone on a line in fenced blocks.
fn calls(text: &str) -> Vec<String> {
    let mut calls: Vec<String> =
        inline_code(text).into_iter().filter(|code| code.starts_with("tieout ")).collect();
    for (line, in_code) in lines(text) {
        let call = line.trim().trim_start_matches("$ ");
        // In between are screens of the program, which begin with `tieout: `.
        if in_code && call.starts_with("tieout ") && !call.starts_with("tieout: ") {
            calls.push(call.to_owned());
        }
    }
    calls
}

/// Why the program would not take these words; `None` where it would.
fn refusal(call: &str) -> Option<String> {
    let end = call.find(['|', '>', ';', '&', '#']).unwrap_or(call.len());
    // `2>&1` is the shell's.
    let own = call[..end].trim_end_matches(" 2");
    let words: Vec<&str> = own.split_whitespace().collect();
    let unquoted = words.iter().map(|word| word.trim_matches(['\'', '"']));
    let error = tieout::cli::command().try_get_matches_from(unquoted).err()?;
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        | ErrorKind::MissingSubcommand
        | ErrorKind::MissingRequiredArgument => None,
        _wrong => Some(error.to_string()),
    }
}

#[test]
fn every_relative_link_leads_somewhere() {
    let bad = broken_links(
        &root().join("docs/x.md"),
        "[a](reasons.md) [b](nowhere.md) [c](reasons.md#captured) [d](reasons.md#no)",
    );
    assert_eq!(bad, ["docs/x.md: nowhere.md", "docs/x.md: reasons.md#no"]);
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        assert_eq!(broken_links(&page, &text), Vec::<String>::new());
    }
}

#[test]
fn every_file_that_a_page_names_exists() {
    let bad = missing_files(&root().join("docs/x.md"), "`src/lib.rs` `src/none.rs` `src/NAME.rs`");
    assert_eq!(bad, ["docs/x.md: src/none.rs"]);
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        assert_eq!(missing_files(&page, &text), Vec::<String>::new());
    }
}

#[test]
fn every_call_in_a_page_is_one_that_the_program_takes() {
    assert!(refusal("tieout run --dry-run --id pay_9044").is_none());
    assert!(refusal("tieout runn").is_some());
    assert!(refusal("tieout run --dry").is_some());
    let sample = "`tieout run` and\n```console\n$ tieout db migrate\ntieout: partial: no\n```\n";
    assert_eq!(calls(sample), ["tieout run", "tieout db migrate"]);
    let mut seen = 0;
    for page in pages() {
        for call in calls(&std::fs::read_to_string(&page).unwrap()) {
            seen += 1;
            let refused = refusal(&call);
            assert!(refused.is_none(), "{}: `{call}`: {}", name(&page), refused.unwrap());
        }
    }
    assert!(seen > 20, "{seen} calls");
}

/// Every page can be reached from the index, and the index from the front page.
#[test]
fn the_index_names_every_page() {
    let index = std::fs::read_to_string(root().join("docs/README.md")).unwrap();
    for page in pages() {
        let file = page.file_name().unwrap().to_str().unwrap();
        let is_itself = file == "README.md";
        assert!(is_itself || index.contains(&format!("]({file})")), "{file}");
    }
    let front = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert!(front.contains("](docs/README.md)"), "the front page links the index");
}
