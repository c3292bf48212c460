//! What rows with one natural key, or with one tag, are to each other: the drivers read them, this
//! says where each of them stands.

use std::collections::{HashMap, HashSet};

use crate::model::reason::{PARTLY_REFUNDED, Reason};
use crate::model::transaction::{AccountRef, Kind, SiblingFact, SiblingState, Transaction};
use crate::store::decode::{account_of, kind_of};
use crate::store::effects::{Beside, RowEffects, handed_back};
use crate::store::records::Tagged;
use crate::store::source_table::SourceTable;
use crate::store::tellers::says_success;

/// A row with some natural key, and what tieout remembers of it.
#[derive(Debug, Clone)]
pub(super) struct Sibling {
    pub(super) row: Transaction,
    /// tieout recorded a PSP reference as its success.
    pub(super) has_success: bool,
    /// It has a hand-back that is neither taken nor ended.
    pub(super) is_offered: bool,
    /// What its last decision, made on the row as it is now, is a wait for.
    pub(super) waits_for: Option<String>,
    /// Its last hand-back ended untaken, as a sibling might still be paid: it is proved afresh.
    pub(super) is_held: bool,
    /// tieout itself ended it unpaid, and nobody changed it since.
    pub(super) is_failed: bool,
    /// The reason of its open case; a `refunded` only where a part was, and a `sibling_row` only
    /// where nothing was captured for the row, and it is as it was judged.
    pub(super) open_case: Option<String>,
}

impl Sibling {
    fn state(&self, table: &SourceTable) -> SiblingState {
        let row = &self.row;
        let is_retryable = !row.processing && table.handed_back_values().contains(&row.status);
        let is_open = row.processing || (is_retryable && self.is_held);
        // By hand it may have been given up since, with its case still open; but where the case is
        // that money came for such a row, its status says nothing.
        let is_given_up = is_retryable || table.is_unpaid(&row.status);
        let is_news = |case: &Reason| !is_given_up || *case == Reason::LateContradiction;
        let case = self.open_case.as_deref().and_then(Reason::parse).filter(is_news);
        match () {
            () if self.has_success || row.succeeded => SiblingState::Succeeded,
            () if self.is_offered => SiblingState::HandedBack,
            () if case.is_some_and(|case| case.says_captured(PARTLY_REFUNDED)) => {
                SiblingState::PaidCase
            }
            () if case == Some(Reason::SiblingRow) => SiblingState::StandsBack,
            () if is_open => self.open_state(),
            () if is_retryable => SiblingState::HandedBack,
            () if table.is_unpaid(&row.status) && self.is_failed => SiblingState::Other,
            () if table.is_unpaid(&row.status) => SiblingState::GivenUp,
            () if says_success(&row.status) => SiblingState::SaysPaid,
            () => SiblingState::Unclear,
        }
    }

    /// Where a row stands that is to be decided.
    fn open_state(&self) -> SiblingState {
        let waits_for = |reason: Reason| self.waits_for.as_deref() == Some(reason.as_str());
        match () {
            () if waits_for(Reason::SiblingPending) => SiblingState::Waiting,
            () if waits_for(Reason::PspPending) || waits_for(Reason::Rule) => SiblingState::Pending,
            () => SiblingState::Processing,
        }
    }
}

/// Whether a row of `account` carries one of these tags, or stores one of these references. Where
/// neither are given, it is looked for by its key alone.
pub(super) fn is_known_by(
    row: &Transaction,
    account: &str,
    tags: &HashSet<&str>,
    references: &HashSet<&str>,
) -> bool {
    let is_tagged = row.tag.usable().is_some_and(|tag| tags.contains(tag));
    let is_named = row.psp_reference.as_deref().is_some_and(|name| references.contains(name));
    let is_known = is_tagged || is_named || (tags.is_empty() && references.is_empty());
    matches!(&row.account, AccountRef::Known(own) if own == account) && is_known
}

/// The others of the same kind, by their keys: a refund is no sibling of its charge.
pub(super) fn facts(
    table: &SourceTable,
    row: &Transaction,
    same_key: &[Sibling],
) -> Vec<SiblingFact> {
    let is_other = |other: &Transaction| other.key.id != row.key.id && other.kind == row.kind;
    let mut facts: Vec<SiblingFact> = same_key
        .iter()
        .filter(|sibling| is_other(&sibling.row))
        .map(|sibling| SiblingFact {
            id: sibling.row.key.id.clone(),
            state: sibling.state(table),
            older: (sibling.row.created_at, &sibling.row.key.id) < (row.created_at, &row.key.id),
            lacks: None,
        })
        .collect();
    facts.sort_by(|one, other| one.id.cmp(&other.id));
    facts
}

/// Which of these rows come too late as their siblings stand `now`: one of them was paid or handed
/// back since the row was decided, or goes first in this very batch, as the oldest does, or has
/// something at the PSP that may still be paid. What was known as it was decided is no news. A row
/// that goes to a person with money captured for it comes too late where a sibling succeeded. Rows
/// that are held beside others for their hand-backs alone are never late.
pub(super) fn overtaken(
    rows: &[(usize, &RowEffects)],
    now: &HashMap<String, Vec<SiblingFact>>,
) -> HashSet<usize> {
    let mut rows: Vec<(usize, &RowEffects, &Beside)> = rows
        .iter()
        .filter_map(|(index, row)| Some((*index, *row, row.beside.as_deref()?)))
        .collect();
    rows.sort_by(|(.., one), (.., other)| {
        let (one, other) = (&one.row, &other.row);
        (one.created_at, &one.key.id).cmp(&(other.created_at, &other.key.id))
    });
    let mut first: HashMap<&str, SiblingState> = HashMap::new();
    for &(_, effects, beside) in &rows {
        if !effects.goes_alone() {
            let is_case = effects.is_paid_case();
            let state = if is_case { SiblingState::PaidCase } else { SiblingState::Pending };
            first.insert(&beside.row.key.id, state);
        }
    }
    let mut late = HashSet::new();
    for (index, effects, beside) in rows {
        let goes_alone = effects.goes_alone();
        if !goes_alone && !effects.is_paid_case() {
            continue;
        }
        let yields_to = |state: SiblingState| match state {
            SiblingState::Succeeded => true,
            SiblingState::PaidCase => goes_alone,
            // Nobody charges beside a row that may have been paid, or is charged.
            SiblingState::HandedBack
            | SiblingState::Processing
            | SiblingState::Pending
            | SiblingState::PaidAfterAll
            | SiblingState::GivenUp
            | SiblingState::SaysPaid
            | SiblingState::Unclear => effects.handback.is_some(),
            SiblingState::Waiting | SiblingState::StandsBack | SiblingState::Other => false,
        };
        let is_news = |fact: &SiblingFact| {
            let state = first.get(fact.id.as_str()).copied().unwrap_or(fact.state);
            // Of what was given up before, the PSP was asked.
            let was_asked = |known| (state, known) == (SiblingState::GivenUp, SiblingState::Other);
            let is_it = |known: &SiblingFact| {
                known.id == fact.id && (known.state == state || was_asked(known.state))
            };
            yields_to(state) && !beside.siblings.iter().any(is_it)
        };
        if now.get(&beside.row.key.id).into_iter().flatten().any(is_news) {
            late.insert(index);
            continue;
        }
        if !goes_alone {
            continue;
        }
        let ends_as = match &effects.handback {
            Some(_) => SiblingState::HandedBack,
            None => SiblingState::Succeeded,
        };
        first.insert(&beside.row.key.id, ends_as);
    }
    late
}

/// Rows that nobody may be charged beside, with those of their siblings that are handed back `now`.
pub(super) fn handed_back_beside(
    rows: &[(usize, &RowEffects)],
    now: &HashMap<String, Vec<SiblingFact>>,
) -> HashMap<usize, Vec<String>> {
    let standing = rows.iter().filter(|(_, row)| row.ends_beside.is_some());
    let beside = standing.filter_map(|(index, row)| {
        let siblings = now.get(&row.beside.as_deref()?.row.key.id)?;
        let ids = handed_back(siblings.iter());
        (!ids.is_empty()).then_some((*index, ids))
    });
    beside.collect()
}

/// Rows that are alike in their tag's cells, their account's and their kind's, counted.
pub(super) struct Alike {
    /// The texts of the tag's cells, in the order of [`SourceTable::sharable_tag`].
    pub(super) tag: Vec<Option<String>>,
    /// The texts of the account's columns.
    pub(super) account: Vec<Option<String>>,
    /// The text of the kind's column.
    pub(super) kind: Option<String>,
    pub(super) rows: i64,
}

impl Alike {
    /// The tag that these rows have at `account`, and their kind, where it is known. A row whose
    /// account nobody mapped may be there; one of another account is not.
    fn tagged(
        &self,
        table: &SourceTable,
        account: &str,
        cells: &[usize],
    ) -> Option<(String, Option<Kind>)> {
        if !account_of(table, &self.account).may_be(account) {
            return None;
        }
        let texts: HashMap<&str, &str> = table
            .cells_at(cells)
            .zip(&self.tag)
            .filter_map(|(column, text)| Some((column.name.as_str(), text.as_deref()?)))
            .collect();
        let tag = table.tag_template(account)?.render(|column| texts.get(column).copied()).ok()?;
        Some((tag, kind_of(table, self.kind.as_deref())))
    }
}

/// One row of [`crate::store::driver::Driver::rows_tagged`], where its tag is one of those wanted.
pub(super) fn tagged(
    table: &SourceTable,
    account: &str,
    cells: &[usize],
    wanted: &HashSet<&str>,
    (key, row): (String, &Alike),
) -> Option<Tagged> {
    let (tag, kind) = row.tagged(table, account, cells)?;
    wanted.contains(tag.as_str()).then_some(Tagged { tag, key, kind })
}

/// The keys of those of `rows` whose tag another row of their kind has at `account` too. A row
/// whose account nobody mapped may be there.
pub(super) fn sharing(
    table: &SourceTable,
    account: &str,
    cells: &[usize],
    rows: &[&Transaction],
    alike: &[Alike],
) -> HashSet<String> {
    let mut counts: HashMap<(String, Option<Kind>), i64> = HashMap::new();
    for group in alike {
        let Some(tagged) = group.tagged(table, account, cells) else { continue };
        let count = counts.entry(tagged).or_default();
        *count = count.saturating_add(group.rows);
    }
    let count_of = |tag: &str, kind| counts.get(&(tag.to_owned(), kind)).copied().unwrap_or(0);
    let is_shared = |row: &Transaction| {
        let tag = row.tag.text();
        // What a row of no known kind moves could be this row's.
        count_of(tag, Some(row.kind)).saturating_add(count_of(tag, None)) > 1
    };
    rows.iter().filter(|row| is_shared(row)).map(|row| row.key.id.clone()).collect()
}
