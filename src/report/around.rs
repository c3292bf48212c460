//! What was found around a row beside its own objects, a line each, for whoever reads a case.

use crate::model::evidence::PspObject;
use crate::model::time::to_short_text;
use crate::report::back::{Back, still_open};
use crate::store::records::StoredInputs;

/// References that other rows have, money of no row, and nearly equal tags.
pub fn lines(inputs: &StoredInputs) -> Vec<String> {
    let mut lines = Vec::new();
    for (reference, row) in &inputs.claimed_references {
        lines.push(format!("{reference} is the reference of row {row} already"));
    }
    for other in &inputs.untagged {
        lines.push(format!(
            "{} captured {} at {} belongs to no row (tag {})",
            other.reference,
            other.captured,
            to_short_text(other.created_at),
            other.tag.as_deref().unwrap_or("none")
        ));
    }
    for (reference, tag) in &inputs.near_misses {
        let mut looks = inputs.near_objects.iter().rev();
        let seen = looks.find(|object| object.reference == *reference);
        let seen = seen.map(|object| format!("; {}", seen_text(object))).unwrap_or_default();
        lines.push(format!("{reference} has nearly the tag: {tag}{seen}"));
    }
    lines
}

/// What stands at the PSP under a tag that is nearly the row's.
fn seen_text(object: &PspObject) -> String {
    let mut words = vec![format!("{} ({})", object.status, object.state.as_str())];
    words.push(match (object.captured, object.amount) {
        (Some(captured), _) => format!("captured {captured}"),
        (None, Some(amount)) => format!("amount {amount}"),
        (None, None) => "amount unknown".to_owned(),
    });
    words.extend(Back::of(&[object]).words());
    words.extend(still_open(object));
    words.push(format!("created {}", to_short_text(object.created_at)));
    words.join(", ")
}
