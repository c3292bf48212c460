//! Journal records as lines of `reconciliation.csv` and `transitions.csv`.

use crate::report::aging::bucket;
use crate::report::captured::{self, Captured};
use crate::report::cells::Cell;
use crate::report::facts::Facts;
use crate::report::sorter::tuple_key;
use crate::store::effects::asked_text;
use crate::store::records::JournalRow;

/// Who decided: a run decides by rules, and people act through cases.
const ACTOR: &str = "tieout";

/// The order of `reconciliation.csv`: table, key, then the record's place in the journal.
pub fn order(record: &JournalRow) -> Vec<u8> {
    tuple_key(&[&record.table, &record.key, &record.writer], record.seq)
}

/// The row's amount: `None` where it could not be read.
pub fn local_minor(record: &JournalRow) -> Option<i128> {
    (!record.currency.is_empty()).then(|| i128::from(record.amount_minor))
}

/// The PSP's amount and its currency, where both are known.
pub fn psp_money(record: &JournalRow) -> Option<(&str, i128)> {
    let minor = i128::from(record.psp_amount_minor?);
    Some((record.psp_currency.as_deref()?, minor))
}

/// How many objects the PSP's amount is of: several captures under one tag are named together.
pub fn objects(record: &JournalRow) -> i64 {
    let named = record.psp_reference.as_deref().unwrap_or_default().split(' ').count();
    i64::try_from(named).unwrap_or(i64::MAX)
}

/// The PSP's amount less the row's: only within one currency.
pub fn difference(record: &JournalRow) -> Option<i128> {
    let (currency, psp) = psp_money(record)?;
    let local = local_minor(record)?;
    (currency == record.currency).then(|| psp.saturating_sub(local))
}

/// A line of `reconciliation.csv`.
pub fn reconciliation(record: &JournalRow, captured: &Captured, facts: &Facts) -> Vec<Cell> {
    let [amount, amount_minor] = Cell::money(&record.currency, local_minor(record));
    let psp = psp_money(record);
    let psp_currency = psp.map_or("", |(currency, _)| currency);
    let [psp_amount, psp_minor] = Cell::money(psp_currency, psp.map(|(_, minor)| minor));
    let [difference, difference_minor] = Cell::money(&record.currency, difference(record));
    let age = record.row_created_at.map(|created| facts.age_days(created));
    vec![
        Cell::text(&record.run_id),
        Cell::text(&record.table),
        Cell::text(&record.key),
        Cell::text(&record.account),
        Cell::text(&record.tag),
        Cell::word(&record.kind),
        Cell::word(&record.currency),
        amount,
        amount_minor,
        Cell::text(&record.status_before),
        Cell::text(&record.status_after),
        Cell::word(record.outcome.as_str()),
        Cell::word(record.reason.as_str()),
        Cell::text(&record.text),
        Cell::word(record.applied.as_str()),
        Cell::text_of(record.psp_reference.as_deref()),
        Cell::text_of(record.psp_status.as_deref()),
        psp_amount,
        psp_minor,
        difference,
        difference_minor,
        Cell::word(&record.evidence_sha256),
        Cell::at(record.row_created_at),
        Cell::at(record.row_attempted_at),
        Cell::int_of(age),
        age.map_or(Cell::Null, |days| Cell::word(bucket(days))),
        Cell::int(record.checks),
        Cell::at(record.next_check_at),
        Cell::int_of(record.handback_number),
        Cell::case(record.case_number),
        Cell::text(&record.policy_version),
        Cell::word(psp_currency),
        Cell::local(record.row_created_at, facts.zone),
        Cell::local(record.row_attempted_at, facts.zone),
        Cell::local(record.next_check_at, facts.zone),
        Cell::word(asked_text(record.asked)),
        Cell::text_of(record.rule.as_deref()),
        Cell::text(&record.writer),
        Cell::int(record.seq),
        captured::cell(captured),
    ]
}

/// A line of `transitions.csv`.
pub fn transition(record: &JournalRow, facts: &Facts) -> Vec<Cell> {
    vec![
        Cell::text(&record.run_id),
        Cell::int(record.seq),
        Cell::text(&record.key),
        Cell::text(&record.status_before),
        Cell::text(&record.status_after),
        Cell::word(record.reason.as_str()),
        Cell::word(ACTOR),
        Cell::word(&record.evidence_sha256),
        Cell::at(Some(record.at)),
        Cell::text(&record.prev_hash),
        Cell::word(&record.hash),
        Cell::text(&record.writer),
        Cell::text(&record.table),
        Cell::word(record.applied.as_str()),
        Cell::local(Some(record.at), facts.zone),
    ]
}
