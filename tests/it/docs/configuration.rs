//! docs/configuration.md is what the program prints of itself, and leaves no setting unsaid.

use tieout::config::reference::reference;
use tieout::config::schema::described;

use super::{read, root};

#[test]
fn the_reference_is_what_the_code_says() {
    let now = reference();
    let path = root().join("docs/configuration.md");
    if std::env::var_os("TIEOUT_BLESS").is_some_and(|word| !word.is_empty()) {
        std::fs::write(&path, &now).unwrap();
    }
    assert!(now == read("docs/configuration.md"), "TIEOUT_BLESS=1 writes it anew");
}

#[test]
fn every_setting_is_in_the_reference_and_says_what_it_is() {
    let page = reference();
    for (path, says) in described() {
        let name = path.rsplit('.').next().unwrap();
        let word = regex::Regex::new(&format!(r"\b{name}\b")).unwrap();
        assert!(word.is_match(&page), "{path}");
        assert!(!says.is_empty(), "{path} has no description");
    }
    for row in page.lines().filter(|line| line.starts_with("| `")) {
        assert!(!row.ends_with("|  |"), "{row}");
    }
}
