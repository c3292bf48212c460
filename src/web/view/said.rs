//! What each source was asked and what it said, one line each.

use crate::model::count::counted;
use crate::model::evidence::{Answer, CompleteSearch, Evidence};
use crate::model::time::to_short_text;
use crate::report::around;
use crate::store::records::StoredInputs;

/// The lines of stored inputs.
pub fn lines(inputs: &StoredInputs) -> Vec<String> {
    let mut lines: Vec<String> = inputs.evidence.iter().map(line).collect();
    lines.extend(around::lines(inputs));
    for sibling in &inputs.siblings {
        lines.push(format!("row {} has the same natural key", sibling.id));
    }
    lines
}

fn line(evidence: &Evidence) -> String {
    let head = format!(
        "{} {}, by {}: ",
        to_short_text(evidence.asked_at),
        evidence.account,
        evidence.route.as_str()
    );
    let said = match &evidence.answer {
        Answer::Found { objects, search } => {
            let names: Vec<&str> = objects.iter().map(|object| object.reference.as_str()).collect();
            let whole = search.as_ref().map(|search| format!("; {}", covered(search)));
            format!("found {}{}", names.join(", "), whole.unwrap_or_default())
        }
        Answer::Nothing(search) => format!("found nothing; {}", covered(search)),
        Answer::UnknownReference(reference) => format!("knows no {reference}"),
        Answer::NoAnswer(cause) => format!("no answer ({}): {}", cause.kind.as_str(), cause.detail),
    };
    head + &said
}

fn covered(search: &CompleteSearch) -> String {
    let witness = match &search.witness {
        Some(witness) => format!("witness {}", witness.reference),
        None => "no witness".to_owned(),
    };
    let counts = if search.counts_as_miss { "" } else { ", a miss here does not count" };
    format!(
        "{} of {} … {} read to the end, {witness}{counts}",
        counted(search.listed, "object", "objects"),
        to_short_text(search.from),
        to_short_text(search.to)
    )
}
