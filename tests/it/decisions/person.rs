//! What a person may decide, and what nobody may: the gate that a person's decision passes.
//!
//! Notation: `fixtures/decisions/person.txt`.

use tieout::decide::decision::{Inputs, Verdict};
use tieout::decide::person::{Refusal, Wish, Word, decide_by_person};
use tieout::model::reason::Reason;

use super::notation::read;

const TABLE: &str = include_str!("../../../fixtures/decisions/person.txt");

fn word(wish: &str, object: &str, who: &str) -> Word {
    Word {
        proposal: 7,
        wish: match wish {
            "succeeded" => Wish::Succeeded,
            "retryable" => Wish::Retryable,
            "failed" => Wish::Failed,
            other => panic!("{other}: no such wish"),
        },
        reference: (object != "-").then(|| object.to_owned()),
        why: "the customer called".to_owned(),
        proposed_by: "mara".to_owned(),
        approved_by: if who == "one" { "mara" } else { "tom" }.to_owned(),
    }
}

/// The end in a word or two, and what was said.
fn decided(cells: &[&str]) -> (String, String) {
    let [row, evidence, wish, object, who, ..] = cells else { panic!("{cells:?}") };
    let world = read(row, evidence, "-", "-", "kick");
    let inputs = Inputs {
        row: &world.row,
        siblings: &world.siblings,
        evidence: &world.evidence,
        claimed_references: &world.claimed_references,
        untagged: &world.untagged,
        near_misses: &world.near_misses,
        history: &world.history,
        asked: world.asked,
    };
    match decide_by_person(&inputs, &world.policy, world.now, &word(wish, object, who)) {
        Err(Refusal::NotNow(text)) => ("not now".to_owned(), text),
        Err(Refusal::Stands(text)) => ("stands".to_owned(), text),
        Err(Refusal::NeedsSecond(text)) => ("needs two".to_owned(), text),
        Ok(decision) => {
            assert_eq!(decision.reason, Reason::ByPerson);
            let last = if *who == "one" { "mara" } else { "tom" };
            let named = format!("(proposed by mara, approved by {last}; proposal 7)");
            assert!(decision.text.contains("the customer called"), "{}", decision.text);
            assert!(decision.text.ends_with(&named), "{}", decision.text);
            let end = match &decision.verdict {
                Verdict::Succeeded => {
                    format!("succeeded {}", decision.seen.as_ref().unwrap().reference)
                }
                Verdict::Retryable(hand_back) => {
                    assert_eq!(hand_back.permit().as_str(), "person");
                    assert!(decision.watch_at.is_some(), "the tag is watched");
                    hand_back.retry().as_str().to_owned()
                }
                Verdict::Failed => {
                    assert!(decision.watch_at.is_some(), "the tag is watched");
                    "failed".to_owned()
                }
                Verdict::Wait | Verdict::Review => panic!("{decision:?}"),
            };
            (end, decision.text)
        }
    }
}

#[test]
fn people_decide_what_the_table_leaves_open_and_nothing_against_it() {
    let mut failures = Vec::new();
    for line in TABLE.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        assert_eq!(cells.len(), 7, "{line}");
        let (end, text) = decided(&cells);
        if end != cells[5] || !text.contains(cells[6]) {
            failures.push(format!("{line}\n    {end}: {text}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
