//! Do rows stand as paid ones do, whose money the PSP captured? A status that is mapped the wrong
//! way round, a last attempt that nobody writes, a column that is no reference, values that cannot
//! be read: of one row each is an accident, and of nearly all of them the mapping is wrong.
//!
//! Pure: the rows were looked up before, with the objects that they were paid by.

use std::collections::BTreeMap;

use chrono::TimeDelta;

use crate::exit::Exit;
use crate::model::card::masked;
use crate::model::time::{Instant, earlier};
use crate::model::transaction::{Attempts, Kind, Transaction};
use crate::run::doctor::agreement::{ENOUGH, Pair, is_nearly_all};
use crate::run::doctor::{Finding, fail, warn};
use crate::store::mapping::FilterValue;
use crate::store::source_table::SourceTable;
use crate::store::tellers::{is_on_its_way, may_be_on_its_way, plain, says_failure, says_success};

/// What was captured so long ago has got to where it stands.
const SETTLED_AFTER: TimeDelta = TimeDelta::days(1);

/// Parts of values of rows that were paid, and whose money went back.
const GIVEN_BACK: [&str; 8] =
    ["refund", "void", "cancel", "disput", "charge_back", "chargeback", "revers", "return"];

/// What is looked at in a row whose money was captured.
#[derive(Debug, Clone, Default)]
pub(super) struct Row {
    status: String,
    is_processing: bool,
    is_succeeded: bool,
    /// The column of sends is mapped, and empty.
    is_unsent: bool,
    /// The PSP's id that it stores.
    reference: Option<String>,
    /// Its tag; empty where it has none.
    tag: String,
    /// What cannot be read of it, besides its money.
    defect: Option<String>,
}

impl Row {
    pub(super) fn of(row: &Transaction) -> Self {
        let is_of = |field: &str| row.defects.iter().any(|defect| defect.field == field);
        let mut defects = row.defects.iter();
        let defect = defects.find(|it| !matches!(it.field.as_str(), "amount" | "currency"));
        Self {
            status: row.status.clone(),
            is_processing: row.processing,
            is_succeeded: row.succeeded,
            is_unsent: row.attempts == Attempts::Column
                && row.attempted_at.is_none()
                && !is_of("attempted"),
            reference: row.psp_reference.clone(),
            tag: row.tag.text().to_owned(),
            defect: defect.map(|it| format!("{}: {}", it.field, it.problem)),
        }
    }

    /// Whether it stores one of these ids.
    pub(super) fn stores(&self, ids: &[String]) -> bool {
        self.reference.as_ref().is_some_and(|reference| ids.contains(reference))
    }
}

/// What these rows say of the mapping; `now` by the database's clock, where it answered.
pub(super) fn of_rows(
    table: &SourceTable,
    name: &str,
    pairs: &[Pair],
    now: Option<Instant>,
) -> Vec<Finding> {
    let until = now.map(|now| earlier(now, SETTLED_AFTER));
    let is_old = |pair: &&Pair| until.is_some_and(|until| pair.object.created_at < until);
    let old: Vec<&Pair> = pairs.iter().filter(is_old).collect();
    let all = [
        of_statuses(table, name, pairs),
        of_processing(table, name, pairs, &old),
        of_failed(table, name),
        of_ignored(table, name, &old),
        of_tags(table, name, pairs),
        of_defects(table, name, pairs),
        of_references(table, name, pairs),
        of_sends(table, name, pairs),
    ];
    all.into_iter().flatten().collect()
}

/// The outcome that the mapping has this value for, where it is one that nobody paid for.
fn unpaid_word(table: &SourceTable, status: &str) -> Option<&'static str> {
    let is_it = |value: Option<&FilterValue>| value.is_some_and(|it| it.0 == status);
    table.settings.map.iter().find_map(|map| match () {
        () if is_it(map.failed.as_ref()) => Some("failed"),
        () if is_it(map.retryable.as_ref()) => Some("retryable"),
        () if is_it(map.absent.as_ref()) => Some("absent"),
        () => None,
    })
}

/// Rows that were paid, and stand at words of unpaid ones.
fn of_statuses(table: &SourceTable, name: &str, pairs: &[Pair]) -> Option<Finding> {
    let ended: Vec<&Pair> = pairs.iter().filter(|pair| !pair.paid.is_processing).collect();
    let unpaid: Vec<(&Pair, &str)> = ended
        .iter()
        .filter(|pair| !pair.paid.is_succeeded)
        .filter_map(|pair| Some((*pair, unpaid_word(table, &pair.paid.status)?)))
        .collect();
    let (first, word) = unpaid.first().copied()?;
    let succeeded = ended.iter().filter(|pair| pair.paid.is_succeeded).count();
    let is_most = unpaid.len().saturating_mul(2) > ended.len() && unpaid.len() > succeeded;
    if unpaid.len() < ENOUGH || !is_most {
        return None;
    }
    let of = &table.settings.name;
    let text = format!(
        "{} of {} rows of {of} whose money was captured stand at values that [[table.map]] has for \
         unpaid ones, and {succeeded} at one for succeeded: `{}` is `{}`, which it calls {word}, \
         and {} was captured; a run would write such words the wrong way round",
        unpaid.len(),
        ended.len(),
        first.key,
        first.paid.status,
        first.object.reference
    );
    let next = format!(
        "correct [[table.map]] of [[table]] {of}: are succeeded and {word} swapped? Until then \
         let no run write"
    );
    Some(fail(name, Exit::Config, "status_swapped", text, next))
}

/// Rows that were paid long ago, and that the mapping calls processing. Where no word tells which
/// way round it is, their worker may be down just as well.
fn of_processing(
    table: &SourceTable,
    name: &str,
    pairs: &[Pair],
    old: &[&Pair],
) -> Option<Finding> {
    let stuck: Vec<&Pair> = old.iter().copied().filter(|pair| pair.paid.is_processing).collect();
    if !is_nearly_all(stuck.len(), old.len()) || old.iter().any(|pair| pair.paid.is_succeeded) {
        return None;
    }
    let says_paid = stuck.iter().copied().find(|pair| says_success(&pair.paid.status));
    let first = says_paid.or(stuck.first().copied())?;
    let mut targets = table.settings.map.iter().filter_map(|map| map.succeeded.as_ref());
    let is_told = says_paid.is_some() || targets.any(|word| may_be_on_its_way(&word.0));
    // Of three rows in all a shop that just began would be told.
    let may_be = stuck.len() > ENOUGH && !pairs.iter().any(|pair| pair.paid.is_succeeded);
    if !is_told && !may_be {
        return None;
    }
    let of = &table.settings.name;
    let status = &first.paid.status;
    let text = format!(
        "`{status}` is mapped as processing: {} of {} rows of {of} whose money was captured over a \
         day ago stand at values of from, and none at one for succeeded: `{}` is `{status}`, and \
         {} was captured; a run would take paid rows for stuck ones",
        stuck.len(),
        old.len(),
        first.key,
        first.object.reference
    );
    let correct =
        format!("correct [[table.map]] of [[table]] {of}: are from and succeeded swapped?");
    Some(match is_told {
        true => {
            let next = format!("{correct} Until then let no run write");
            fail(name, Exit::Config, "status_swapped", text, next)
        }
        false => {
            let next = format!("{correct} Where nobody writes what was paid, mend that instead");
            warn(name, "status_swapped", text, next)
        }
    })
}

/// Failed rows that the mapping calls processing, and the other way round: no captured object tells
/// of such rows, and their words do.
fn of_failed(table: &SourceTable, name: &str) -> Option<Finding> {
    let (from, failed) = table.settings.map.iter().find_map(|map| {
        let failed = map.failed.as_ref().filter(|word| is_on_its_way(&word.0))?;
        let from = map.from.iter().find(|word| says_failure(&word.0))?;
        Some((&from.0, &failed.0))
    })?;
    let of = &table.settings.name;
    let text = format!(
        "`{from}` is mapped as processing in {of}, and `{failed}` as failed; a run would take \
         failed rows for stuck ones, and leave the stuck ones"
    );
    let next = format!(
        "correct [[table.map]] of [[table]] {of}: are from and failed swapped? Until then let no \
         run write"
    );
    Some(fail(name, Exit::Config, "status_swapped", text, next))
}

/// Rows that were paid long ago, and stand at one value that the mapping takes for nothing.
fn of_ignored(table: &SourceTable, name: &str, old: &[&Pair]) -> Option<Finding> {
    let said = table.ended_values();
    let is_given_back = |status: &str| {
        let status = plain(status);
        GIVEN_BACK.iter().any(|part| status.contains(part))
    };
    let mut by_word: BTreeMap<&str, Vec<&Pair>> = BTreeMap::new();
    for pair in old.iter().copied() {
        let Row { status, is_processing, is_succeeded, .. } = &pair.paid;
        let is_known = *is_processing || *is_succeeded || said.contains(status);
        if !is_known && !is_given_back(status) {
            by_word.entry(status).or_default().push(pair);
        }
    }
    let (word, rows) = by_word.into_iter().max_by_key(|(_, rows)| rows.len())?;
    let first = rows.first().filter(|_| rows.len() >= ENOUGH)?;
    let is_ignored = table.settings.ignore.iter().any(|ignored| ignored.0 == word);
    let how = if is_ignored { "ignored" } else { "neither mapped nor ignored" };
    let of = &table.settings.name;
    let text = format!(
        "{} of {} rows of {of} whose money was captured over a day ago stand at `{word}`, which is \
         {how}: `{}`, for which {} was captured; a row at it does not count as paid, neither for \
         itself nor for others with its natural key",
        rows.len(),
        old.len(),
        first.key,
        first.object.reference
    );
    let next = format!(
        "where `{word}` says that a row was paid, name it in succeeded of [[table]] {of}: \
         succeeded = [\"{word}\"]"
    );
    Some(warn(name, "success_word", text, next))
}

/// Rows that store what they were paid by, which carries another tag than theirs. A refund may well
/// carry its payment's.
fn of_tags(table: &SourceTable, name: &str, pairs: &[Pair]) -> Option<Finding> {
    let is_named = |pair: &&Pair| {
        let stored = pair.paid.reference.as_ref();
        let is_its = stored.is_some_and(|reference| pair.object.ids.contains(reference));
        is_its && pair.object.kind == Kind::Charge && !pair.paid.tag.is_empty()
    };
    let named = pairs.iter().filter(is_named);
    let tagged: Vec<(&Pair, &str)> =
        named.filter_map(|pair| Some((pair, pair.object.tag.as_deref()?))).collect();
    let other: Vec<(&Pair, &str)> =
        tagged.iter().copied().filter(|(pair, tag)| pair.paid.tag != *tag).collect();
    let (first, tag) = other.first().copied()?;
    if !is_nearly_all(other.len(), tagged.len()) {
        return None;
    }
    let of = &table.settings.name;
    let text = format!(
        "the tags of {} of {} rows of {of} are not those of the payments that they store: the tag \
         of `{}` is `{}`, and {} carries `{}`; no payment is found by such a tag, and no row is \
         proven absent",
        other.len(),
        tagged.len(),
        first.key,
        masked(&first.paid.tag),
        first.object.reference,
        masked(tag)
    );
    let next = format!("set tag of [[table]] {of} to what the application sends to the PSP");
    Some(fail(name, Exit::Config, "tag_differs", text, next))
}

/// A failure, where nearly all rows are so, and else a warning.
fn by_count(
    name: &str,
    code: &'static str,
    [count, all]: [usize; 2],
    text: String,
    next: String,
) -> Finding {
    match is_nearly_all(count, all) {
        true => fail(name, Exit::Config, code, text, next),
        false => warn(name, code, text, next),
    }
}

/// Rows of which a run could read neither when they were made nor what they are.
fn of_defects(table: &SourceTable, name: &str, pairs: &[Pair]) -> Option<Finding> {
    let unread: Vec<(&Pair, &String)> =
        pairs.iter().filter_map(|pair| Some((pair, pair.paid.defect.as_ref()?))).collect();
    let (first, defect) = unread.first().copied()?;
    let of = &table.settings.name;
    let text = format!(
        "{} of {} rows of {of} whose money was captured cannot be read: `{}`, {defect}; no such \
         row is settled without a person",
        unread.len(),
        pairs.len(),
        first.key
    );
    let field = defect.split(':').next().unwrap_or_default();
    let next = format!("correct {field} in [[table]] {of}, or let a view give what it says");
    Some(by_count(name, "rows_unreadable", [unread.len(), pairs.len()], text, next))
}

/// Rows that store another reference than any of what they were paid by.
fn of_references(table: &SourceTable, name: &str, pairs: &[Pair]) -> Option<Finding> {
    let column = table.settings.psp_reference.as_ref()?;
    let is_listed =
        |id: &String| pairs.iter().any(|pair| pair.object.ids.iter().any(|known| known == id));
    let stored: Vec<(&Pair, &String)> =
        pairs.iter().filter_map(|pair| Some((pair, pair.paid.reference.as_ref()?))).collect();
    let other: Vec<(&Pair, &String)> =
        stored.iter().copied().filter(|(_, reference)| !is_listed(reference)).collect();
    let (first, reference) = other.first().copied()?;
    let of = &table.settings.name;
    let text = format!(
        "{column} of {} of {} rows of {of} is none of the ids of what they were paid by: `{}` has \
         `{reference}`, and {} was captured; where it gets stuck, such a row needs a person",
        other.len(),
        stored.len(),
        first.key,
        first.object.reference
    );
    let next = format!(
        "map psp_reference of [[table]] {of} to the column of the PSP's own ids, or leave it out"
    );
    Some(by_count(name, "reference_differs", [other.len(), stored.len()], text, next))
}

/// A column of sends that most rows, which were sent, have nothing in.
fn of_sends(table: &SourceTable, name: &str, pairs: &[Pair]) -> Option<Finding> {
    let column = table.settings.attempted.as_ref()?;
    let unsent: Vec<&Pair> = pairs.iter().filter(|pair| pair.paid.is_unsent).collect();
    let first = unsent.first()?;
    if unsent.len() < ENOUGH || unsent.len().saturating_mul(2) <= pairs.len() {
        return None;
    }
    let of = &table.settings.name;
    let text = format!(
        "{} of {} rows of {of} whose money was captured have no {column}, `{}` for one: it is not \
         written before every send, so that a payment may be missed, and its row charged again",
        unsent.len(),
        pairs.len(),
        first.key
    );
    let next = format!(
        "map attempted of [[table]] {of} to a column that is written before every send; where \
         there is none, leave it out: then no row is proven absent"
    );
    Some(warn(name, "attempted_empty", text, next))
}
