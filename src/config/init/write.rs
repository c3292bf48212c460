//! A proposal as a commented tieout.toml.

use crate::config::document::quoted;
use crate::config::init::{Answers, OPEN, Proposal};
use crate::model::fill::filled;

/// What the file begins with.
const HEAD: &str = "\
# tieout.toml, proposed by `tieout config init` from the database's catalogue.
# Read every line: what stands behind `#` above a line is why it says that.
# A line with \"???\" could not be told, and `tieout config check` refuses it until
# it is answered.
# Every other setting with its default: `tieout config default`.
";

/// The words of `[database]`, as they are written.
#[derive(Debug, Clone)]
pub enum Address {
    /// The address itself; it holds no password.
    Url(String),
    /// The environment variable that holds it.
    Env(String),
}

/// The whole file.
pub fn file(
    proposal: &Proposal,
    answers: &Answers,
    address: &Address,
    search_path: Option<&str>,
) -> String {
    let mut text = HEAD.to_owned();
    let mut put = |line: &str| {
        text.push_str(line);
        text.push('\n');
    };
    put("");
    put("# The zone that finance closes its days in.");
    let zone = answers.timezone.as_deref().unwrap_or(OPEN);
    put(&format!("business_timezone = {}", quoted(zone)));
    put("");
    put("[database]");
    match address {
        Address::Url(url) => put(&format!("url = {}", quoted(url))),
        Address::Env(name) => put(&format!("url_env = {}", quoted(name))),
    }
    if let Some(path) = search_path {
        put(&format!("search_path = {}", quoted(path)));
    }
    put("");
    put("[[account]]");
    put(&format!("name = {}", quoted(&answers.account)));
    put("psp = \"stripe\"");
    put("mode = \"succeed_only\"");
    put("# Checked against every answer: a live key never meets test rows.");
    put(&format!("livemode = {}", answers.live));
    put("# The environment variable that holds the key; a restricted one that reads");
    put("# is enough.");
    put(&format!("key_env = {}", quoted(&answers.key_env)));
    put("# Where your application puts the tag at the PSP.");
    put(&format!("tag = {}", quoted(answers.tag_at.as_deref().unwrap_or(OPEN))));
    put("");
    put("[[table]]");
    put(&format!("name = {}", quoted(&proposal.name)));
    let lines = proposal.lines.iter().map(|(setting, choice)| ((*setting).to_owned(), choice));
    let offers = proposal.offers.iter().map(|(setting, choice)| (format!("# {setting}"), choice));
    for (setting, choice) in lines.chain(offers) {
        for line in wrapped(&choice.why) {
            put(&line);
        }
        put(&format!("{setting} = {}", choice.value));
    }
    put("# Writes succeeded and nothing else; \"full\" also hands rows back.");
    put("mode = \"succeed_only\"");
    put("");
    put("[[table.map]]");
    for (outcome, choice) in &proposal.map {
        for line in wrapped(&choice.why) {
            put(&line);
        }
        put(&format!("{outcome} = {}", choice.value));
    }
    if !proposal.set.is_empty() {
        put("");
        put("# Written with the status, in the same statement.");
        put("[table.set]");
        for part in ["always", "succeeded", "failed"] {
            let columns: Vec<String> = proposal
                .set
                .iter()
                .filter(|(of, ..)| *of == part)
                .map(|(_, column, template)| format!("{} = {}", key(column), quoted(template)))
                .collect();
            if !columns.is_empty() {
                put(&format!("{part} = {{ {} }}", columns.join(", ")));
            }
        }
    }
    text
}

/// A key as TOML writes it.
fn key(name: &str) -> String {
    let is_bare = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    match !name.is_empty() && name.bytes().all(is_bare) {
        true => name.to_owned(),
        false => quoted(name),
    }
}

/// A comment in lines of at most eighty columns.
fn wrapped(text: &str) -> Vec<String> {
    filled(text.split_whitespace(), 80, ("# ", "# "))
}
