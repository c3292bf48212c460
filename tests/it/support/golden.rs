//! Golden texts: what the program says, beside what it said when somebody last read it.
//!
//! `TIEOUT_BLESS=1` writes them anew; read the diff.

use std::path::Path;

/// Compares with `FOLDER/NAME.txt`, what differs from run to run masked.
#[track_caller]
pub fn golden(folder: &str, name: &str, text: &str) {
    let text = masked(text);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(name);
    let path = path.with_extension("txt");
    if std::env::var_os("TIEOUT_BLESS").is_some_and(|word| !word.is_empty()) {
        std::fs::write(&path, &text).unwrap();
    }
    let want = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == want, "{name}: now\n{text}--- golden\n{want}");
}

/// Ids, hashes, instants, days and spans by their kind.
fn masked(text: &str) -> String {
    let version = format!("tieout {}", env!("CARGO_PKG_VERSION"));
    let filters = [
        (r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "[run]"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "[time]"),
        (r"(reports/|^)\d{4}-\d\d-\d\d", "$1[day]"),
        (r"\b(pi|ch|re)_[0-9A-Za-z]+", "[$1]"),
        (r"\b[0-9a-f]{64}\b", "[sha256]"),
        (r"\b[0-9a-f]{12}\b", "[hash]"),
        (r"\d+\.\d s\b", "[span]"),
        (r"(C-\d+ +)\d+(min|h)\b", "$1[age]"),
        (r" on \S+ \(pid \d+\)", " on [host] (pid [pid])"),
        (r"\d+ look-ups?\b", "[n] look-ups"),
    ];
    filters.iter().fold(text.replace(&version, "tieout [version]"), |text, (pattern, by)| {
        let pattern = format!("(?m){pattern}");
        regex::Regex::new(&pattern).unwrap().replace_all(&text, *by).into_owned()
    })
}
