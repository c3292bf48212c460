//! The wall: what `src/` may look like, read from its text.
//!
//! Each rule is a function from a path and a text to its complaints, tried first on a sample that
//! it must catch. A test that only ever saw good code would not know that it works.
//!
//! How to add a room: a line in `MAY_IMPORT`. Siblings never import each other, so a room lists
//! what stands left of it and nothing else.

mod rust_text;

use rust_text::{CodePath, Token, code_only, paths, tokens};
use std::path::Path;

/// What each room may import. Nobody but the faces knows `config`: a room has its own settings.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("clock", &[]),
    ("exit", &[]),
    ("secret", &[]),
    ("model", &[]),
    ("decide", &["model"]),
    ("store", &["model", "decide", "secret", "clock", "exit"]),
    ("psp", &["model", "decide", "secret", "clock", "exit"]),
    ("settlement", &["model", "decide", "secret", "clock", "exit"]),
    ("sinks", &["model", "decide", "secret", "clock", "exit"]),
    ("sandbox", &["model", "clock", "exit"]),
    ("report", &["model", "decide", "store", "psp", "settlement", "sinks", "clock", "exit"]),
    (
        "run",
        &[
            "model",
            "decide",
            "store",
            "psp",
            "settlement",
            "sinks",
            "report",
            "secret",
            "clock",
            "exit",
        ],
    ),
    ("monitor", &["model", "store", "psp", "report", "run", "secret", "clock", "exit"]),
    (
        "config",
        &[
            "model",
            "decide",
            "store",
            "psp",
            "settlement",
            "sinks",
            "report",
            "run",
            "monitor",
            "secret",
            "exit",
        ],
    ),
];

/// These see everything: they turn words into calls.
const FACES: &[&str] = &["cli", "web", "main", "lib"];

/// Words that a pure room does not know.
const IMPURE: &[&str] = &[
    "async",
    "await",
    "tokio",
    "sqlx",
    "reqwest",
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "std::io",
    "std::thread",
    "SystemTime",
    "Utc::now",
    "Local::now",
    "Instant::now",
    "rand",
    "tracing",
    "f32",
    "f64",
];

/// Words that say that something is not finished.
const UNFINISHED: &[&str] =
    &["dbg!", "todo!", "unimplemented!", "FIXME", "TODO", "(being written)"];

const LINE_WIDTH: usize = 100;
const FUNCTION_LINES: usize = 70;

#[test]
fn imports_go_one_way() {
    every_source(imports_against_the_wall);
}

#[test]
fn the_pure_rooms_know_no_effects() {
    every_source(impurities);
}

#[test]
fn nothing_is_left_unfinished() {
    every_source(unfinished);
}

#[test]
fn lines_are_short_enough_to_read_side_by_side() {
    every_source(wide_lines);
    every_test(wide_lines);
}

#[test]
fn every_file_says_what_it_is() {
    every_source(no_module_doc);
    every_test(no_module_doc);
}

#[test]
fn functions_fit_a_screen() {
    every_source(long_functions);
}

#[test]
fn dynamic_sql_is_vouched_for_in_the_store_alone() {
    every_source(dynamic_sql_elsewhere);
}

#[test]
fn names_are_re_exported_by_lib_alone() {
    every_source(re_exports);
}

#[test]
fn every_fixture_is_used() {
    let code: String =
        ["src", "tests", "benches"].map(sources).into_iter().flatten().map(|s| s.1).collect();
    let complaints = unused_fixtures(&files_under("fixtures"), &code);
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn the_table_of_rooms_is_the_rooms_there_are() {
    let known: Vec<&str> =
        MAY_IMPORT.iter().map(|(room, _)| *room).chain(FACES.iter().copied()).collect();
    for (path, _) in sources("src") {
        let room = &module_of(&path)[0];
        assert!(
            known.contains(&room.as_str()),
            "{path}: give the room {room} a line in MAY_IMPORT"
        );
    }
}

// ------------------------------------------------------------------------------------ the rules

/// Edges from one room to another that the table does not allow.
fn imports_against_the_wall(path: &str, text: &str) -> Vec<String> {
    let module = module_of(path);
    let Some((room, allowed)) = MAY_IMPORT.iter().find(|(room, _)| *room == module[0]) else {
        return Vec::new(); // a face
    };
    let edges = paths(&tokens(&code_only(text))).into_iter().filter_map(|found| {
        let target = room_reached(&module, &found)?;
        (target != *room && !allowed.contains(&target.as_str()))
            .then(|| format!("{path}:{}: {room} imports {target}: against the wall", found.line))
    });
    edges.collect()
}

/// Words of effects in the rooms that must have none, their tests included.
fn impurities(path: &str, text: &str) -> Vec<String> {
    if !["model", "decide"].contains(&module_of(path)[0].as_str()) {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    for found in paths(&tokens(&code_only(text))) {
        let words = found.segments.join("::");
        for impure in IMPURE {
            let segments: Vec<&str> = impure.split("::").collect();
            if found.segments.windows(segments.len()).any(|window| window == segments) {
                complaints.push(format!("{path}:{}: {words}: a pure room", found.line));
            }
        }
    }
    complaints
}

fn unfinished(path: &str, text: &str) -> Vec<String> {
    let complain = |(index, line): (usize, &str)| {
        let word = UNFINISHED.iter().find(|word| has_word(line, word))?;
        Some(format!("{path}:{}: {word} is left over", index + 1))
    };
    text.lines().enumerate().filter_map(complain).collect()
}

fn wide_lines(path: &str, text: &str) -> Vec<String> {
    let wide = text.lines().enumerate().filter(|(_, line)| line.chars().count() > LINE_WIDTH);
    wide.map(|(index, _)| format!("{path}:{}: over {LINE_WIDTH} columns", index + 1)).collect()
}

fn no_module_doc(path: &str, text: &str) -> Vec<String> {
    if text.starts_with("//! ") {
        return Vec::new();
    }
    vec![format!("{path}:1: begin with `//! `: what this is, and what it never does")]
}

/// Clippy counts the same, but not in code that a feature or a platform leaves out.
fn long_functions(path: &str, text: &str) -> Vec<String> {
    let code = code_only(text);
    let filled: Vec<bool> = code.lines().map(|line| !line.trim().is_empty()).collect();
    let tokens = tokens(&code);
    let mut complaints = Vec::new();
    for (at, token) in tokens.iter().enumerate().filter(|(_, token)| token.text == "fn") {
        let Some((open, close)) = body(&tokens[at..]) else { continue };
        let lines = filled[open.line - 1..close.line].iter().filter(|filled| **filled).count();
        if lines > FUNCTION_LINES + 2 {
            complaints.push(format!("{path}:{}: a function of {lines} lines", token.line));
        }
    }
    complaints
}

/// The braces around the body of the function that begins here; none for a signature alone.
fn body(tokens: &[Token]) -> Option<(&Token, &Token)> {
    let open = tokens.iter().position(|token| ["{", ";"].contains(&token.text.as_str()))?;
    let mut depth = 0_usize;
    for token in &tokens[open..] {
        match token.text.as_str() {
            "{" => depth += 1,
            "}" if depth == 1 => return Some((&tokens[open], token)),
            "}" => depth -= 1,
            _ if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

fn dynamic_sql_elsewhere(path: &str, text: &str) -> Vec<String> {
    if module_of(path)[0] == "store" {
        return Vec::new();
    }
    let all = tokens(&code_only(text));
    let vouched = all.iter().filter(|token| token.text == "AssertSqlSafe");
    vouched.map(|token| format!("{path}:{}: AssertSqlSafe outside store", token.line)).collect()
}

fn re_exports(path: &str, text: &str) -> Vec<String> {
    if module_of(path)[0] == "lib" {
        return Vec::new();
    }
    let all = tokens(&code_only(text));
    let pairs = all.windows(2).filter(|pair| pair[0].text == "pub" && pair[1].text == "use");
    pairs.map(|pair| format!("{path}:{}: re-exported outside lib.rs", pair[0].line)).collect()
}

/// A fixture is used when its name stands in the code, or a string that ends in its folder.
fn unused_fixtures(fixtures: &[String], code: &str) -> Vec<String> {
    let used = |path: &&String| {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        code.contains(name) || code.contains(&format!("{folder}\""))
    };
    let unused = fixtures.iter().filter(|path| !used(path));
    unused.map(|path| format!("{path}: no code mentions it")).collect()
}

// ------------------------------------------------------------------------------------- reading

fn every_source(rule: fn(&str, &str) -> Vec<String>) {
    hold("src", rule);
}

fn every_test(rule: fn(&str, &str) -> Vec<String>) {
    hold("tests", rule);
}

fn hold(folder: &str, rule: fn(&str, &str) -> Vec<String>) {
    let files = sources(folder);
    assert!(!files.is_empty(), "no source under {folder}");
    let complaints: Vec<String> = files.iter().flat_map(|(path, text)| rule(path, text)).collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// The Rust files under a folder of the project: path from the project's root, and text.
fn sources(folder: &str) -> Vec<(String, String)> {
    let rust = files_under(folder).into_iter().filter(|path| path.ends_with(".rs"));
    let read = |path: String| {
        let text = std::fs::read_to_string(root().join(&path)).expect("UTF-8 source");
        (path, text)
    };
    rust.map(read).collect()
}

/// Every file under a folder of the project, by its path from the project's root, in order.
fn files_under(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(root().join(&folder)) else { continue };
        for entry in entries.map(|entry| entry.expect("a readable folder")) {
            let path = format!("{folder}/{}", entry.file_name().to_str().expect("a UTF-8 name"));
            let kind = if entry.path().is_dir() { &mut folders } else { &mut found };
            kind.push(path);
        }
    }
    found.sort();
    found
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// `src/store/postgres.rs` is the module `store::postgres`, `src/store/mod.rs` is `store`.
fn module_of(path: &str) -> Vec<String> {
    let inner = path.split_once('/').map_or(path, |(_, inner)| inner);
    let inner = inner.trim_end_matches(".rs").trim_end_matches("/mod");
    inner.split('/').map(str::to_owned).collect()
}

/// The room that a path in a module leads to, if it leaves through `crate` or `super`.
fn room_reached(module: &[String], found: &CodePath) -> Option<String> {
    let segments: Vec<&str> = found
        .segments
        .iter()
        .map(String::as_str)
        .skip_while(|segment| *segment == "self")
        .collect();
    if segments.first() == Some(&"crate") {
        return segments.get(1).map(ToString::to_string);
    }
    let up = segments.iter().take_while(|segment| **segment == "super").count();
    // Only the way up to the crate's root comes out in another room; `pub(super)` goes nowhere.
    let root = up > 0 && up == module.len() + found.inline_depth;
    if root { segments.get(up).map(ToString::to_string) } else { None }
}

fn has_word(line: &str, word: &str) -> bool {
    let edge = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(at, _)| {
        edge(line[..at].chars().next_back()) && edge(line[at + word.len()..].chars().next())
    })
}

// ---------------------------------------------------------------------- each rule, on bad text

#[test]
fn the_wall_is_seen_through_every_door() {
    for (path, text, target) in [
        ("src/decide/mod.rs", "use crate::store::Claim;", "store"),
        ("src/model/money.rs", "fn f() -> crate::decide::X { g() }", "decide"),
        ("src/store/postgres.rs", "use crate::{model::Money, psp::http::{self as h}};", "psp"),
        ("src/psp/stripe.rs", "use super::super::store as s;", "store"),
        ("src/psp/mod.rs", "use super::{model, store};", "store"),
        ("src/psp/mod.rs", "mod tests { use super::super::store; }", "store"),
        ("src/report/csv.rs", "use crate::run;", "run"),
        ("src/run/mod.rs", "use crate::config::Config;", "config"),
        ("src/store/mod.rs", "use crate::Shortcut;", "Shortcut"),
        ("src/sandbox/mod.rs", "use crate::psp::Stripe;", "psp"),
        ("src/exit.rs", "use crate::model::Reason;", "model"),
        ("src/model/mod.rs", "use crate::clock;", "clock"),
    ] {
        let complaints = imports_against_the_wall(path, text);
        assert_eq!(complaints.len(), 1, "{path}: {text}: {complaints:?}");
        assert!(complaints[0].contains(&format!("imports {target}:")), "{complaints:?}");
    }
    for (path, text) in [
        ("src/decide/mod.rs", "use crate::model::Money; use super::model; mod t { use super::*; }"),
        (
            "src/store/postgres.rs",
            "use super::{Claim, sqlite}; // crate::psp\nuse crate::store::x;",
        ),
        ("src/run/mod.rs", "use crate::{store, psp, report, decide, model};"),
        ("src/cli/run.rs", "use crate::config::Config;"),
        ("src/main.rs", "use tieout::cli;"),
        ("src/model/mod.rs", "pub(super) fn f() { let s = \"crate::store\"; }"),
    ] {
        assert_eq!(imports_against_the_wall(path, text), Vec::<String>::new(), "{path}: {text}");
    }
}

#[test]
fn effects_are_seen_in_pure_rooms_alone() {
    for text in [
        "async fn f() {}",
        "x.await",
        "use tokio::time;",
        "use std::{fs, mem};",
        "std::env::var()",
        "chrono::Utc::now()",
        "Instant::now()",
        "fn f(x: f64) {}",
        "rand::random()",
        "use std::{collections::HashMap, time::SystemTime};",
        "tracing::info!(x)",
    ] {
        assert_eq!(impurities("src/model/x.rs", text).len(), 1, "{text}");
        assert_eq!(impurities("src/decide/mod.rs", text).len(), 1, "{text}");
        assert!(impurities("src/store/mod.rs", text).is_empty(), "{text}");
    }
    for text in
        ["let operand = now;", "// async rand f64", "let s = \"tokio\";", "Utc::timestamp()"]
    {
        assert!(impurities("src/model/x.rs", text).is_empty(), "{text}");
    }
}

#[test]
fn left_over_marks_are_seen() {
    for text in [
        "//! (being written)",
        "    dbg!(x);",
        "// FIXME: later",
        "todo!()",
        "// TODO(me)",
        "unimplemented!()",
    ] {
        assert_eq!(unfinished("src/x.rs", text).len(), 1, "{text}");
    }
    assert!(unfinished("src/x.rs", "// TODOS are nothing\nlet mastodon = 1;").is_empty());
}

#[test]
fn wide_lines_and_missing_docs_are_seen() {
    assert_eq!(wide_lines("src/x.rs", &"é".repeat(101)), ["src/x.rs:1: over 100 columns"]);
    assert!(wide_lines("src/x.rs", &"é".repeat(100)).is_empty());
    assert_eq!(no_module_doc("src/x.rs", "use std::fs;\n//! late").len(), 1);
    assert_eq!(no_module_doc("src/x.rs", "").len(), 1);
    assert!(no_module_doc("src/x.rs", "//! What it is.\n").is_empty());
}

#[test]
fn long_functions_are_seen() {
    let function = |lines: usize| {
        format!("trait T {{ fn g(); }}\nfn f() {{\n{}// why\n\n}}\n", "    x();\n".repeat(lines))
    };
    assert_eq!(long_functions("src/x.rs", &function(71)), ["src/x.rs:2: a function of 73 lines"]);
    assert!(long_functions("src/x.rs", &function(70)).is_empty());
}

#[test]
fn dynamic_sql_and_re_exports_are_seen() {
    let text = "sqlx::query(AssertSqlSafe(sql))";
    assert_eq!(dynamic_sql_elsewhere("src/report/mod.rs", text).len(), 1);
    assert!(dynamic_sql_elsewhere("src/store/postgres.rs", text).is_empty());
    assert_eq!(re_exports("src/store/mod.rs", "mod a;\npub use a::B;").len(), 1);
    assert!(re_exports("src/lib.rs", "pub use model::Money;").is_empty());
    assert!(re_exports("src/store/mod.rs", "use a::B; pub fn f() {}").is_empty());
}

#[test]
fn forgotten_fixtures_are_seen() {
    let fixtures =
        ["fixtures/psp/a.json", "fixtures/psp/b.json", "fixtures/config/c.toml"].map(String::from);
    let code = r#"include_str!("../fixtures/psp/a.json"); read_dir("fixtures/config")"#;
    assert_eq!(unused_fixtures(&fixtures, code), ["fixtures/psp/b.json: no code mentions it"]);
}
