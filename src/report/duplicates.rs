//! What the captures of a row are to a person who decides it: which one it keeps, which are to be
//! given back, and which were.

use crate::model::evidence::{ObjectState, PspObject};
use crate::model::money::Money;
use crate::model::transaction::{Kind, Transaction};
use crate::report::back::{is_given_back, is_same};
use crate::report::exceptions::shown;
use crate::store::records::StoredInputs;

/// The captures of a row's own. What carries another row's tag, or is another row's reference, is
/// that row's money.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captures<'a> {
    /// The one to keep: what the row stores, else the oldest that captured exactly its amount; none
    /// where that does not fit.
    pub keep: Option<&'a str>,
    /// The others that were not given back whole, the oldest first.
    pub others: Vec<&'a str>,
    /// Those that were given back whole, the oldest first.
    gone: Vec<&'a str>,
}

impl<'a> Captures<'a> {
    /// As the sources showed them.
    pub fn of(inputs: &'a StoredInputs) -> Self {
        let row = &inputs.row;
        let looks: Vec<&PspObject> = shown(inputs).collect();
        let (gone, left): (Vec<&PspObject>, Vec<&PspObject>) =
            own(inputs).into_iter().partition(|object| is_given_back(object, &looks));
        let fits = |object: &&PspObject| is_equal(object, row.money);
        let stored = left.iter().copied().find(|object| is_stored(row, object));
        let keep = stored.or_else(|| left.iter().copied().find(fits)).filter(fits);
        let keep = keep.map(|object| object.reference.as_str());
        let names = |objects: Vec<&'a PspObject>| -> Vec<&'a str> {
            objects.into_iter().map(|object| object.reference.as_str()).collect()
        };
        let mut others = names(left);
        others.retain(|name| Some(*name) != keep);
        Self { keep, others, gone: names(gone) }
    }

    /// What needs no second refund, in a sentence.
    pub fn given_back(&self) -> Option<String> {
        let names = self.gone.join(", ");
        match self.gone.len() {
            0 => None,
            1 => Some(format!("{names} was given back whole")),
            _several => Some(format!("{names} were given back whole")),
        }
    }
}

/// Whether an object captured exactly what a row `wanted`.
pub fn is_equal(object: &PspObject, wanted: Option<Money>) -> bool {
    object.state == ObjectState::Captured && wanted.is_some() && object.captured == wanted
}

/// Each once, though several looks may call it by several of its ids.
fn own(inputs: &StoredInputs) -> Vec<&PspObject> {
    let row = &inputs.row;
    let is_claimed = |object: &PspObject| {
        inputs.claimed_references.iter().any(|(reference, _)| object.is_named(reference))
    };
    let mut own: Vec<&PspObject> = Vec::new();
    for (_, object) in inputs.objects() {
        let is_known = own.iter().any(|known| is_same(known, object));
        if object.has_captured() && is_own(row, object) && !is_claimed(object) && !is_known {
            own.push(object);
        }
    }
    own
}

fn is_stored(row: &Transaction, object: &PspObject) -> bool {
    row.psp_reference.as_deref().is_some_and(|stored| object.is_named(stored))
}

fn is_own(row: &Transaction, object: &PspObject) -> bool {
    let is_of_kind = match row.kind {
        Kind::Charge => object.kind != "refund" && object.kind != "payout",
        Kind::Refund => object.kind == "refund",
        Kind::Payout => object.kind == "payout",
    };
    let is_named = match (row.tag.usable(), object.tag.as_deref()) {
        (Some(own), Some(tag)) => tag == own,
        (Some(_), None) | (None, _) => is_stored(row, object),
    };
    is_of_kind && is_named
}
