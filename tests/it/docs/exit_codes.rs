//! docs/exit-codes.md lists every code with its class, and says which of several wins.

use tieout::config::sections::FAIL_ON_WORDS;
use tieout::exit::Exit;

use super::{flat, read, sections};

fn by_number() -> Vec<Exit> {
    let mut all = Exit::BY_PRECEDENCE.to_vec();
    all.sort_by_key(|exit| exit.code());
    all
}

#[test]
fn the_page_of_exit_codes_is_the_enum() {
    let text = read("docs/exit-codes.md");
    let found: Vec<String> = sections(&text, 3).into_iter().map(|(heading, _)| heading).collect();
    let want: Vec<String> =
        by_number().iter().map(|exit| format!("{} {}", exit.code(), exit.class())).collect();
    assert_eq!(found, want);
    for (heading, body) in sections(&text, 3) {
        for label in ["**Means.**", "**Run again?**", "**Next.**"] {
            assert!(body.contains(label), "{heading} lacks {label}");
        }
    }
}

#[test]
fn the_page_says_which_of_several_codes_wins() {
    let numbers: Vec<String> =
        Exit::BY_PRECEDENCE.iter().map(|exit| exit.code().to_string()).collect();
    let want = format!("`{}`", numbers.join(" > "));
    assert!(flat(&read("docs/exit-codes.md")).contains(&want), "{want}");
}

#[test]
fn the_page_explains_every_word_of_fail_on() {
    let text = read("docs/exit-codes.md");
    let (_, table) = text.split_once("| word | holds where this run |\n| --- | --- |\n").unwrap();
    let rows = table.lines().map_while(|line| line.strip_prefix("| `")?.split_once("` | "));
    let found: Vec<&str> = rows.map(|(word, _)| word).collect();
    assert_eq!(found, FAIL_ON_WORDS.map(|(word, _)| word));
}

/// The numbers of a list, in the line that begins with these words.
fn list(name: &str) -> Vec<u8> {
    let text = read("docs/exit-codes.md");
    let line = text.lines().find(|line| line.contains(&format!("{name}: ")));
    let line = line.unwrap_or_else(|| panic!("no line `{name}`"));
    numbers(line.rsplit_once(": ").unwrap().1)
}

fn numbers(text: &str) -> Vec<u8> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

/// The lists for schedulers leave no code out and name none twice.
#[test]
fn every_code_has_its_place_in_kubernetes_and_systemd() {
    for scheduler in ["podFailurePolicy", "systemd"] {
        let part = |word: &str| list(&format!("{scheduler}: {word}"));
        let mut all: Vec<u8> = [part("success"), part("again"), part("stop")].concat();
        all.sort_unstable();
        let want: Vec<u8> = by_number().iter().map(|exit| exit.code()).collect();
        assert_eq!(all, want, "{scheduler}");
    }
}

#[test]
fn the_lists_are_those_of_the_ready_files() {
    let of_lines = |file: &str, begins: &str| -> Vec<Vec<u8>> {
        let text = read(file);
        let lines = text.lines().filter_map(|line| line.trim().strip_prefix(begins));
        lines.map(numbers).collect()
    };
    for stop in of_lines("cron/kubernetes.yaml", "values:") {
        assert_eq!(stop, list("podFailurePolicy: stop"));
    }
    let unit = "cron/systemd/tieout.service";
    let stop = of_lines(unit, "RestartPreventExitStatus=");
    assert_eq!(stop, [list("systemd: stop")]);
    let mut success = vec![0];
    success.extend(of_lines(unit, "SuccessExitStatus=").concat());
    assert_eq!(success, list("systemd: success"));
    assert!(!of_lines("cron/kubernetes.yaml", "values:").is_empty());
}
