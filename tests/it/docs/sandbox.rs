//! docs/sandbox.md, word by word against `tieout sandbox`: its rows, its files, its commands in
//! their order, on both databases; and its tables against the words that the sandbox takes.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tieout::sandbox::faults::{Action, FaultRule, Matches, PageSpot, Turn};
use tieout::sandbox::seeds::{Seed, SeedKind};
use tieout::sandbox::settings::Door;
use tieout::sandbox::situations::Situation;

use super::getting_started::{fits, steps};
use super::{block, blocks, read, sections};
use crate::run::shop::{Engine, on_both_databases};
use crate::support::postgres::postgres_database;
use crate::support::raw::Raw;
use crate::support::tieout_bin;

on_both_databases!(the_page_is_followed_word_by_word);

/// The port of the page; the test takes a free one.
const PORT: &str = "12111";

/// The sandbox as the page starts it.
struct Served {
    child: Child,
    port: String,
}

impl Served {
    fn start(folder: &Path, told: &str) -> Self {
        let mut child = Command::new(tieout_bin())
            .args(["sandbox", "--port", "0"])
            .current_dir(folder)
            .env_clear()
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = String::new();
        while !said.ends_with("Ctrl-C ends it.\n") {
            said.push_str(&lines.next().expect("it announces itself").unwrap());
            said.push('\n');
        }
        let port = said.split("127.0.0.1:").nth(1).unwrap();
        let port: String = port.chars().take_while(char::is_ascii_digit).collect();
        assert_eq!(said, told.replace(PORT, &port));
        Self { child, port }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// The configuration of the first page, with the account and the policy of this one.
fn configuration(page: &str) -> String {
    let mut whole: toml::Table = block(&read("docs/getting-started.md"), "toml").parse().unwrap();
    for more in blocks(page, "toml") {
        whole.extend(more.parse::<toml::Table>().unwrap());
    }
    whole.to_string()
}

async fn the_page_is_followed_word_by_word(engine: Engine) {
    let page = read("docs/sandbox.md");
    let mut steps = steps(&page).into_iter();
    let (command, told) = steps.next().unwrap();
    assert_eq!(command, "tieout sandbox");
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &told);
    let page = page.replace(PORT, &served.port);

    let server = match engine {
        Engine::Sqlite => None,
        Engine::Postgres => Some(postgres_database().await),
    };
    let file = format!("sqlite://{}", folder.path().join("shop.db").display());
    let url = server.as_ref().map_or("sqlite:shop.db", |server| server.url());
    let raw = Raw::open(server.as_ref().map_or(&file, |server| server.url())).await;
    raw.execute(&block(&read("docs/getting-started.md"), "sql")).await;
    raw.execute(&block(&page, "sql")).await;
    std::fs::write(folder.path().join("tieout.toml"), configuration(&page)).unwrap();
    for name in ["objects.json", "fill.json", "faults.json"] {
        let text = block(&page, &format!("json {name}"));
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let shell = |command: &str| {
        let bin = tieout_bin();
        let path = format!("{}:/usr/bin:/bin", bin.parent().unwrap().display());
        let output = Command::new("/bin/sh")
            .args(["-c", command])
            .current_dir(folder.path())
            .env_clear()
            .envs([("PATH", path.as_str()), ("COLUMNS", "1000"), ("DATABASE_URL", url)])
            .env("STRIPE_KEY", "sk_test_rehearsal")
            .output()
            .unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && err.is_empty(), "$ {command}\n{out}{err}");
        // curl ends its answer without a line's end.
        if out.is_empty() || out.ends_with('\n') { out } else { out + "\n" }
    };
    for (command, told) in steps {
        let command = command.replace(PORT, &served.port);
        let out = shell(&command);
        assert!(fits(&told, &out), "$ {command}\nnow\n{out}the page\n{told}");
    }
    // The page ends with an empty sandbox: the database seeds it, and a run finds what it says.
    let (name, line) = match engine {
        Engine::Sqlite => ("seeds-sqlite.sql", "sqlite3 "),
        Engine::Postgres => ("seeds-postgres.sql", "psql "),
    };
    std::fs::write(folder.path().join(name), block(&page, &format!("sql {name}"))).unwrap();
    raw.execute(
        "insert into charges values (1010, 1, 'EUR', 'processing', null, \
                 '2025-11-19 10:09:00', '2025-11-19 10:09:05')",
    )
    .await;
    let seeding = blocks(&page, "sh").concat();
    let seeding = seeding.lines().find(|text| text.starts_with(line)).unwrap().to_owned();
    let made: Value = serde_json::from_str(&shell(&seeding)).unwrap();
    assert_eq!(made["ids"].as_array().map(Vec::len), Some(4), "{made}");
    shell("tieout run");
    let rows = raw.rows("select cast(id as text), status from charges order by id").await;
    let statuses: Vec<&str> = rows.iter().map(|row| row[1].as_deref().unwrap()).collect();
    assert_eq!(statuses, ["succeeded", "succeeded", "succeeded", "succeeded", "processing"]);
    raw.close().await;
}

/// The words in backticks of a page's tables: (first cell, the whole line).
fn cells(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter(|line| line.starts_with("| `"));
    lines.map(|line| (line.split(" | ").next().unwrap().to_owned(), line.to_owned())).collect()
}

fn coded(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The words that a type takes, as its own refusal lists them.
fn words_of<T: DeserializeOwned>() -> BTreeSet<String> {
    let error = serde_json::from_value::<T>(json!("no such word")).err().unwrap().to_string();
    let listed = error.split("expected").nth(1).unwrap_or_else(|| panic!("{error}"));
    coded(listed).into_iter().collect()
}

fn section(heading: &str) -> String {
    let page = read("docs/sandbox.md");
    let found = sections(&page, 2).into_iter().find(|(name, _)| name == heading);
    found.unwrap_or_else(|| panic!("no section {heading}")).1
}

#[test]
fn every_field_and_situation_of_a_payment_is_told() {
    let text = section("Put payments into it");
    let told: BTreeSet<String> = cells(&text).iter().flat_map(|(cell, _)| coded(cell)).collect();
    let seed = serde_json::to_value(Seed::default()).unwrap();
    let mut there: BTreeSet<String> = seed.as_object().unwrap().keys().cloned().collect();
    there.extend(words_of::<Situation>());
    // Told with the decline code.
    assert!(there.remove("decline") && text.contains("`decline` says"));
    assert_eq!(told, there);
    for kind in words_of::<SeedKind>() {
        assert!(text.contains(&format!("`{kind}`")) || text.contains(&format!("`\"{kind}\"`")));
    }
}

#[test]
fn every_action_is_told_and_taken() {
    let text = section("Let it misbehave");
    let mut told = BTreeSet::new();
    for cell in cells(&text).iter().flat_map(|(cell, _)| coded(cell)).filter(|c| c != "action") {
        let value: Value = serde_json::from_str(&cell).unwrap_or_else(|e| panic!("{cell}: {e}"));
        let action: Action =
            serde_json::from_value(value).unwrap_or_else(|e| panic!("{cell}: {e}"));
        let name = serde_json::to_value(action).unwrap();
        told.insert(match name {
            Value::String(name) => name,
            other => other.as_object().unwrap().keys().next().unwrap().clone(),
        });
    }
    assert_eq!(told, words_of::<Action>());
    let rules = block(&read("docs/sandbox.md"), "json faults.json");
    serde_json::from_str::<Vec<FaultRule>>(&rules).unwrap();
    let matches = serde_json::to_value(Matches::default()).unwrap();
    let words = matches.as_object().unwrap().keys().cloned();
    for word in words.chain(words_of::<PageSpot>()) {
        assert!(text.contains(&format!("`{word}`")), "{word}");
    }
    for word in words_of::<Turn>() {
        assert!(text.contains(&format!("`{word}`")) || text.contains(&format!("{{\"{word}\":")));
    }
}

#[test]
fn every_door_is_told() {
    let text = section("Everything else");
    for word in words_of::<Door>() {
        assert!(text.contains(&format!("`{word}`")) || text.contains(&format!("\"{word}\"")));
    }
}
