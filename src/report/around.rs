//! What was found around a row beside its own objects, a line each, for whoever reads a case.

use crate::model::time::to_short_text;
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
        lines.push(format!("{reference} has nearly the tag: {tag}"));
    }
    lines
}
