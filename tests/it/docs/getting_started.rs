//! docs/getting-started.md, word by word: its table, its configuration, its commands in their
//! order, and what they print, on both databases. The sandbox stands in the place of Stripe.

use std::path::Path;
use std::process::Command;

use tieout::sandbox::Sandbox;
use tieout::sandbox::seeds::Seed;
use tieout::sandbox::settings::Settings;
use tieout::sandbox::situations::Situation;

use super::{block, read};
use crate::run::shop::{Engine, on_both_databases};
use crate::support::postgres::postgres_database;
use crate::support::raw::Raw;
use crate::support::tieout_bin;

on_both_databases!(the_page_is_followed_word_by_word);

/// What is in the table of the page: a paid row, one paid twice, a declined one, one that never
/// arrived; and one that is none of tieout's.
const ROWS: &str = "insert into charges values
    (1001, 1999, 'EUR', 'processing', null, '{at}', '{at}'),
    (1002, 500, 'EUR', 'processing', null, '{at}', '{at}'),
    (1003, 1000, 'EUR', 'processing', null, '{at}', '{at}'),
    (1004, 1250, 'EUR', 'processing', null, '{at}', '{at}'),
    (1005, 100, 'EUR', 'new', null, '{at}', null)";

async fn the_page_is_followed_word_by_word(engine: Engine) {
    let page = read("docs/getting-started.md");
    let folder = tempfile::tempdir().unwrap();
    let server = match engine {
        Engine::Sqlite => None,
        Engine::Postgres => Some(postgres_database().await),
    };
    let file = format!("sqlite://{}", folder.path().join("shop.db").display());
    let url = server.as_ref().map_or("sqlite:shop.db", |server| server.url());
    let raw = Raw::open(server.as_ref().map_or(&file, |server| server.url())).await;
    let sent = chrono::Utc::now() - chrono::TimeDelta::hours(2);
    raw.execute(&block(&page, "sql")).await;
    raw.execute(&ROWS.replace("{at}", &sent.format("%Y-%m-%d %H:%M:%S").to_string())).await;

    let sandbox = Sandbox::start(Settings::default()).await.unwrap();
    let of = |tag: &str, amount, situation| Seed {
        live: true,
        ..Seed::captured("order_id", tag, amount, "eur")
            .standing(situation)
            .created_at(sent.timestamp())
    };
    let declined = of("1003", 1_000, Situation::Declined);
    let declined = Seed { decline_code: Some("insufficient_funds".to_owned()), ..declined };
    sandbox
        .seed([
            of("1001", 1_999, Situation::Succeeded),
            of("1002", 500, Situation::Succeeded),
            of("1002", 500, Situation::Succeeded),
            declined,
        ])
        .unwrap();
    for (command, printed) in steps(&page) {
        let bin = tieout_bin();
        let path = format!("{}:/usr/bin:/bin", bin.parent().unwrap().display());
        let output = Command::new("/bin/sh")
            .args(["-c", &command])
            .current_dir(folder.path())
            .env_clear()
            .env("PATH", path)
            // Names and spans differ in length from run to run: where lines break is not compared.
            .env("COLUMNS", "1000")
            .env("STRIPE_KEY", "rk_live_docs")
            .env("DATABASE_URL", url)
            .output()
            .unwrap();
        let (out, err) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "$ {command}\n{out}{err}");
        // Logs of a verbose run go to stderr, and a page shows what people read.
        let is_verbose = command.contains("--verbose");
        assert!(is_verbose || err.is_empty(), "$ {command}\n{err}");
        assert!(fits(&printed, &out), "$ {command}\nnow\n{out}the page\n{printed}");
        if command.contains("config init") {
            written_as_shown(&page, &folder.path().join("tieout.toml"), &sandbox.base_url());
        }
    }
    let rows = raw.rows("select cast(id as text), status from charges order by id").await;
    let statuses: Vec<&str> = rows.iter().map(|row| row[1].as_deref().unwrap()).collect();
    assert_eq!(statuses, ["succeeded", "processing", "processing", "processing", "new"]);
    raw.close().await;
}

/// The file that was proposed says what the page shows; the sandbox is put in the place of Stripe.
#[track_caller]
fn written_as_shown(page: &str, path: &Path, base_url: &str) {
    let written = std::fs::read_to_string(path).unwrap();
    let [now, shown] = [&written, &block(page, "toml")].map(|text| {
        let table: toml::Table = text.parse().unwrap();
        format!("{table:#?}")
    });
    assert_eq!(now, shown);
    assert_eq!(written.matches("livemode = true\n").count(), 1);
    let here = format!("livemode = true\nbase_url = \"{base_url}\"\n");
    std::fs::write(path, written.replace("livemode = true\n", &here)).unwrap();
}

/// The commands of the page's console blocks, each with what it is said to print.
pub(super) fn steps(page: &str) -> Vec<(String, String)> {
    let mut steps: Vec<(String, String)> = Vec::new();
    for block in super::blocks(page, "console") {
        for line in block.lines() {
            match line.strip_prefix("$ ") {
                Some(command) => steps.push((command.to_owned(), String::new())),
                None => {
                    let (_, printed) = steps.last_mut().expect("a command before its output");
                    printed.push_str(line);
                    printed.push('\n');
                }
            }
        }
    }
    assert!(steps.len() > 8, "{steps:?}");
    steps
}

/// Whether what was printed is what is told: `…` stands for any text within a line, alone on a
/// line for any number of lines.
pub(super) fn fits(told: &str, printed: &str) -> bool {
    let any_lines = "\u{0}";
    let mut pattern = String::from("^");
    for line in told.lines() {
        if line == "…" {
            pattern.push_str(r"(?:[^\n]*\n)*?");
            continue;
        }
        let line = regex::escape(&line.replace('…', any_lines)).replace(any_lines, r"[^\n]+?");
        pattern.push_str(&line);
        pattern.push_str(r"\n");
    }
    pattern.push('$');
    regex::Regex::new(&pattern).unwrap().is_match(printed)
}

#[test]
fn dots_stand_for_text_and_lines_and_nothing_else_does() {
    for (told, printed, want) in [
        ("a … c\n", "a b c\n", true),
        ("a … c\n", "a b d\n", false),
        ("a … c\n", "a b\nc\n", false),
        ("a\n…\nd\n", "a\nb\nc\nd\n", true),
        ("a\n…\nd\n", "a\nd\n", true),
        ("a\n", "a\nb\n", false),
        ("", "", true),
        ("", "a\n", false),
        ("a.c\n", "abc\n", false),
    ] {
        assert_eq!(fits(told, printed), want, "{told:?} {printed:?}");
    }
}
