//! Evidence in words: what each source was asked and what it said, one line each.
//!
//! It reads the stored JSON and adds nothing to it. What an older or newer version stored is
//! shown as far as it can be read.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::decide::permit::stated_failure;
use crate::model::evidence::{Answer, CompleteSearch, Evidence, Failure, PspObject};
use crate::model::money::Money;
use crate::model::time::to_short_text;
use crate::model::transaction::SiblingState;
use crate::report::around;
use crate::report::back::{Back, still_open};
use crate::store::records::StoredInputs;

/// The lines of stored inputs; a note where they cannot be read.
pub fn lines(json: &str) -> Vec<String> {
    match serde_json::from_str::<StoredInputs>(json) {
        Ok(inputs) => of_inputs(&inputs),
        Err(_not_of_a_row) => figures(json),
    }
}

/// What a case about an account leans on, in words and in this order.
const FIGURES: [(&str, &str); 9] = [
    ("handbacks", "rows that would be handed back"),
    ("abandoned", "rows that would be ended as abandoned"),
    ("nearest", "captured objects nearest to them"),
    ("resolved", "of these objects, those of your rows"),
    ("usual_permille", "the account's usual share, in 1000"),
    ("listed", "objects listed"),
    ("unanswered_since", "no answer since"),
    ("rows", "rows asked for"),
    ("run", "in run"),
];

/// Figures; those that this version does not know by their name.
fn figures(json: &str) -> Vec<String> {
    let mut found = serde_json::from_str::<BTreeMap<String, Value>>(json).unwrap_or_default();
    found.remove("schema");
    let known = FIGURES.iter().filter_map(|(name, words)| Some((*words, found.remove(*name)?)));
    let known: Vec<(&str, Value)> = known.collect();
    let others = found.iter().map(|(name, value)| (name.as_str(), value.clone()));
    let lines: Vec<String> = known
        .into_iter()
        .chain(others)
        .filter_map(|(words, value)| match value {
            Value::String(text) => Some(format!("{words}: {text}")),
            Value::Number(number) => Some(format!("{words}: {number}")),
            _null_or_nested => None,
        })
        .collect();
    if lines.is_empty() { vec!["stored by another version: see --json".to_owned()] } else { lines }
}

/// What is to be said of a sibling besides that it is one.
fn words(state: SiblingState) -> &'static str {
    match state {
        SiblingState::Succeeded => ", and succeeded",
        SiblingState::Processing => ", and is processing",
        SiblingState::Pending => ", and may still be paid at the PSP",
        SiblingState::Waiting => ", and waits for the others",
        SiblingState::StandsBack => ", and is a person's, with no money found for it",
        SiblingState::PaidCase => ", and is a person's, with money captured for it",
        SiblingState::HandedBack => ", and is handed back",
        SiblingState::PaidAfterAll => ", and was paid at the PSP, whatever its status says",
        SiblingState::GivenUp => ", and was given up; the PSP was not asked about it",
        SiblingState::SaysPaid => ", and says by its status that it was paid",
        SiblingState::Unclear => ", and has a status that the mapping does not know",
        SiblingState::Other => ", and ended unpaid",
    }
}

fn of_inputs(inputs: &StoredInputs) -> Vec<String> {
    let mut lines: Vec<String> = inputs.evidence.iter().flat_map(of_evidence).collect();
    lines.extend(around::lines(inputs));
    for sibling in &inputs.siblings {
        lines.push(format!("row {} has the same natural key{}", sibling.id, words(sibling.state)));
    }
    lines
}

fn of_evidence(evidence: &Evidence) -> Vec<String> {
    let head = format!(
        "{} {} {}",
        to_short_text(evidence.asked_at),
        evidence.account,
        evidence.route.as_str()
    );
    match &evidence.answer {
        Answer::Found { objects, search } => {
            let covered = search.as_ref().map(covered).unwrap_or_default();
            let mut lines = vec![format!("{head}: found {}{covered}", objects.len())];
            lines.extend(objects.iter().map(|object| format!("  {}", of_object(object))));
            lines
        }
        Answer::Nothing(search) => {
            let witness = match &search.witness {
                Some(witness) => format!(
                    "; witness {} of {}",
                    witness.reference,
                    to_short_text(witness.created_at)
                ),
                None => "; no witness".to_owned(),
            };
            vec![format!("{head}: nothing{}{witness}", covered(search))]
        }
        Answer::UnknownReference(reference) => {
            vec![format!("{head}: knows no {reference}")]
        }
        Answer::NoAnswer(cause) => {
            vec![format!("{head}: no answer: {} ({})", cause.kind.as_str(), cause.detail)]
        }
    }
}

fn covered(search: &CompleteSearch) -> String {
    format!(
        " among {} {} created {} … {}",
        search.listed,
        search.kinds.join(", "),
        to_short_text(search.from),
        to_short_text(search.to)
    )
}

fn of_object(object: &PspObject) -> String {
    let money = |money: Option<Money>| money.map_or("–".to_owned(), |money| money.to_string());
    let captured = match object.captured {
        Some(captured) => format!(" captured {captured}"),
        None => format!(" amount {}", money(object.amount)),
    };
    let back = Back::of(&[object]).words().into_iter().chain(still_open(object));
    let back: String = back.map(|one| format!(", {one}")).collect();
    let tag = object.tag.as_deref().unwrap_or("none");
    let failed = stated_failure(object).map(Failure::words).filter(|words| !words.is_empty());
    let failed = failed.map(|words| format!(": {words}")).unwrap_or_default();
    format!(
        "{} {} ({}{failed}){captured}{back} created {} tag {tag}",
        object.reference,
        object.status,
        object.state.as_str(),
        to_short_text(object.created_at)
    )
}
