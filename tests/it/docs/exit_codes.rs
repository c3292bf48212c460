//! docs/exit-codes.md lists every code with its class, and says which of several wins.

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

/// The lists for schedulers leave no code out and name none twice.
#[test]
fn every_code_has_its_place_in_kubernetes_and_systemd() {
    let text = read("docs/exit-codes.md");
    for list in ["podFailurePolicy", "systemd"] {
        let row = |heading: &str| {
            let wanted = format!("{list}: {heading}");
            let line = text.lines().find(|line| line.contains(&wanted));
            let line = line.unwrap_or_else(|| panic!("no line `{wanted}`"));
            let (_, numbers) = line.rsplit_once(": ").unwrap();
            numbers.split([' ', ',']).filter_map(|n| n.parse().ok()).collect::<Vec<u8>>()
        };
        let mut all: Vec<u8> = [row("success"), row("again"), row("stop")].concat();
        all.sort_unstable();
        let want: Vec<u8> = by_number().iter().map(|exit| exit.code()).collect();
        assert_eq!(all, want, "{list}");
    }
}
