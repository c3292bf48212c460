//! What several captures under one tag come to, where they are of several currencies: no one
//! amount can show them, so the evidence is read for each.

use std::collections::BTreeMap;

use crate::model::evidence::{Answer, PspObject};
use crate::report::cells::Cell;
use crate::report::error::ReportError;
use crate::report::source::Source;
use crate::report::tie::Sum;
use crate::store::records::{JournalRow, StoredInputs};

/// By currency: how many captures, and their sum. Empty where one amount shows them all.
pub type Captured = BTreeMap<String, Sum>;

/// Reads what was captured, for the few records that one amount cannot show.
pub async fn captured<S: Source>(source: &S, record: &JournalRow) -> Result<Captured, ReportError> {
    let names = record.psp_reference.as_deref().filter(|names| names.contains(' '));
    let Some(names) = names.filter(|_| record.psp_amount_minor.is_none()) else {
        return Ok(Captured::new());
    };
    let read = source.evidence(&record.evidence_sha256).await;
    let stored = read.map_err(ReportError::store(&record.run_id))?;
    let inputs = stored.and_then(|text| serde_json::from_str::<StoredInputs>(&text).ok());
    Ok(inputs.map(|inputs| sums(&inputs, names, &record.kind)).unwrap_or_default())
}

fn sums(inputs: &StoredInputs, names: &str, kind: &str) -> Captured {
    let objects = inputs.evidence.iter().flat_map(|evidence| match &evidence.answer {
        Answer::Found { objects, .. } => objects.as_slice(),
        Answer::Nothing(_) | Answer::UnknownReference(_) | Answer::NoAnswer(_) => &[],
    });
    // Two routes may have told of one object: each name counts once.
    let mut by_name: BTreeMap<&str, &PspObject> = BTreeMap::new();
    for object in objects.filter(|object| object.captured.is_some()) {
        if let Some(name) = names.split(' ').find(|name| object.is_named(name)) {
            by_name.entry(name).or_insert(object);
        }
    }
    let mut sums = Captured::new();
    for money in by_name.into_values().filter_map(|object| object.captured) {
        let minor = i128::from(money.minor);
        let minor = if kind == "charge" { minor } else { minor.saturating_neg() };
        let sum = sums.entry(money.currency.code().to_owned()).or_default();
        *sum = sum.plus(Sum { rows: 1, amount_minor: minor });
    }
    sums
}

/// `1 EUR 1999; 1 USD 2500`: how many, currency, minor units.
pub fn cell(captured: &Captured) -> Cell {
    let of = |(code, sum): (&String, &Sum)| format!("{} {code} {}", sum.rows, sum.amount_minor);
    let texts: Vec<String> = captured.iter().map(of).collect();
    Cell::word(&texts.join("; "))
}
