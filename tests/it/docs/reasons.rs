//! docs/reasons.md says something of every reason, in the order of their precedence.

use std::path::Path;

use tieout::model::reason::{Leads, Reason};

use super::{flat, read, root, sections};

const PARTS: [&str; 5] = ["Outcome.", "Means.", "tieout.", "Next.", "Example."];

/// A part's text, from its label to the next one.
fn part(body: &str, label: &str) -> Option<String> {
    let (_, rest) = body.split_once(&format!("**{label}**"))?;
    let end = PARTS.iter().filter_map(|other| rest.find(&format!("**{other}**"))).min();
    Some(flat(rest.get(..end.unwrap_or(rest.len()))?))
}

#[test]
fn the_page_of_reasons_is_the_enum_in_its_order() {
    let text = read("docs/reasons.md");
    let found: Vec<String> = sections(&text, 3).into_iter().map(|(code, _)| code).collect();
    let want: Vec<String> = Reason::ALL.iter().map(|r| format!("`{}`", r.as_str())).collect();
    assert_eq!(found, want);
}

#[test]
fn every_reason_is_told_whole_and_as_the_program_tells_it() {
    for ((heading, body), reason) in
        sections(&read("docs/reasons.md"), 3).into_iter().zip(Reason::ALL)
    {
        for label in PARTS {
            let said = part(&body, label).unwrap_or_default();
            assert!(!said.is_empty(), "{heading} lacks **{label}**");
        }
        let outcome = part(&body, "Outcome.").unwrap_or_default();
        match reason.leads() {
            Leads::To(to) => assert_eq!(outcome, to.as_str(), "{heading}"),
            Leads::ByPolicy => assert!(outcome.starts_with("by policy: "), "{heading}: {outcome}"),
        }
        let means = part(&body, "Means.").unwrap_or_default();
        assert_eq!(means, flat(reason.meaning()), "{heading}");
    }
}

/// What the page calls reserved is given nowhere, and what is given nowhere it calls reserved.
#[test]
fn reasons_that_nothing_gives_are_called_reserved() {
    let mut sources = String::new();
    for room in ["decide", "run", "store", "settlement"] {
        collect(&root().join("src").join(room), &mut sources);
    }
    assert!(sources.contains("Reason::Captured"), "the sources were read");
    for ((heading, body), reason) in
        sections(&read("docs/reasons.md"), 3).into_iter().zip(Reason::ALL)
    {
        let is_given = sources.contains(&format!("Reason::{reason:?}"));
        let is_reserved = body.contains("Reserved: ");
        assert_eq!(is_reserved, !is_given, "{heading}");
    }
}

fn collect(folder: &Path, text: &mut String) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, text);
        } else {
            text.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}
