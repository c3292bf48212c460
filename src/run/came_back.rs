//! What came back, among the lines of a batch: refunds, chargebacks and returns by the PSP's ids
//! that they name payments by, and whose those payments are.
//!
//! Such a line may carry no tag of the payment's row, or that of the row which gave it back. An id
//! that payments under several tags carry is that of an order or a batch, and names none of them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::decide::settled::{moves, takes_back};
use crate::model::settlement::{Direction, LineKind};
use crate::model::transaction::{Kind, Transaction};
use crate::report::said::{
    back_id, failed_refund, given_back, ids_of, is_failed, moved, shared_ids,
};
use crate::run::by_files::Names;
use crate::run::error::{Doing, RunError};
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::files::{FileDriver, LinePlace, StoredLine};

/// Whose a line is, by its place among the others.
type Places = HashMap<String, Vec<usize>>;

/// What came back, and which payments it names. Lines are told by their place among all.
#[derive(Default)]
pub struct CameBack {
    /// By an id: the lines of what came back that name it.
    back: Places,
    /// By an id: the lines of what moved that are called by it.
    moved: Places,
    /// By an id that one of those names: the rows that succeeded by it, as table and key.
    taken: HashMap<String, Vec<(String, String)>>,
    /// By table and key of a row: the ids that it succeeded by.
    kept: HashMap<(String, String), Vec<String>>,
    /// Ids that payments under several tags carry.
    shared: HashSet<String>,
    /// Bookings out under the id of a payment that came in, and what that one's tag is.
    booked_out: HashMap<LinePlace, String>,
}

/// A line that names another payment than the row's whose tag it carries.
pub struct OfOther {
    /// The line.
    pub place: LinePlace,
    /// The tags of that payment.
    pub tags: Vec<String>,
    /// A row succeeded by it.
    pub is_taken: bool,
}

/// Whether a line of a PSP says itself that a payment went back, or that this was undone.
pub fn is_psps(line: &StoredLine) -> bool {
    line.psp_reference.is_some() && line.kind != LineKind::Movement
}

/// Whether a line undoes a refund or a chargeback, which it may name alone.
fn undoes(line: &StoredLine) -> bool {
    is_failed(line) || line.kind == LineKind::ChargebackReversed
}

const KINDS: [Kind; 3] = [Kind::Charge, Kind::Refund, Kind::Payout];

fn does_move(line: &StoredLine) -> bool {
    line.itemised && KINDS.iter().any(|kind| moves(line.kind, line.direction, *kind))
}

fn is_back(line: &StoredLine) -> bool {
    line.itemised && KINDS.iter().any(|kind| takes_back(line.kind, line.direction, *kind))
}

impl CameBack {
    /// Puts the lines beside these that carry an id of theirs, or one that a row succeeded by;
    /// those that carry what was `asked` are here.
    pub async fn about(
        db: &Database,
        account: &str,
        rows: &[&Transaction],
        (lines, asked): (&mut Vec<StoredLine>, &HashSet<&str>),
    ) -> Result<Self, RunError> {
        let kept = kept_by(db, account, rows).await?;
        let told = lines.iter().filter(|line| does_move(line) || is_back(line));
        let ids = told.flat_map(|line| Names::from(line).ids());
        let ids = ids.chain(kept.values().flatten().map(String::as_str));
        let ids: HashSet<&str> = ids.filter(|id| !asked.contains(id)).collect();
        let ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
        put_beside(db, account, lines, &ids, |line| does_move(line) || is_back(line)).await?;
        // What says that a refund failed, or undoes a chargeback, may name that one alone.
        let known: HashSet<&str> =
            asked.iter().copied().chain(ids.iter().map(String::as_str)).collect();
        let own = lines.iter().filter(|line| line.itemised).filter_map(back_id);
        let own: BTreeSet<&str> = own.filter(|id| !known.contains(id)).collect();
        let own: Vec<String> = own.into_iter().map(str::to_owned).collect();
        put_beside(db, account, lines, &own, undoes).await?;
        let shared = shared_ids(lines.iter());
        let by = |ids_of: &dyn Fn(&StoredLine) -> Vec<String>| {
            let mut places = Places::new();
            for (index, line) in lines.iter().enumerate() {
                // One id may stand in several columns of a line.
                let ids: BTreeSet<String> = ids_of(line).into_iter().collect();
                for id in ids.into_iter().filter(|id| !shared.contains(id)) {
                    places.entry(id).or_default().push(index);
                }
            }
            places
        };
        let texts = |ids: Vec<&str>| ids.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let back = by(&|line| match is_back(line) {
            true => texts(Names::from(line).ids().collect()),
            false => Vec::new(),
        });
        let moved = by(&|line| match does_move(line) {
            true => texts(ids_of(line).collect()),
            false => Vec::new(),
        });
        let named: Vec<String> = back.keys().cloned().collect();
        let taken = match named.is_empty() {
            true => HashMap::new(),
            false => {
                let taken = db.taken_references(account, &named).await;
                taken.doing("looking for rows that succeeded by a payment")?
            }
        };
        Ok(Self { back, moved, taken, kept, shared, booked_out: booked_out(lines) })
    }

    /// What came back of a row's payments among these lines, of which `found` carry its tag or
    /// what it stores. A booking under another row's tag (`is_anothers`) is that one's.
    pub fn of_row(
        &self,
        lines: &[StoredLine],
        (row, found): (&Transaction, &[usize]),
        is_anothers: &dyn Fn(&StoredLine) -> bool,
    ) -> Vec<usize> {
        if self.back.is_empty() {
            // So it is with banks' files, whose lines name no payment by an id of a PSP's.
            return Vec::new();
        }
        let own = found.iter().filter_map(|index| lines.get(*index));
        let is_moved =
            |line: &&StoredLine| moves(line.kind, line.direction, row.kind) && !is_anothers(line);
        let moved: Vec<&StoredLine> = own.filter(is_moved).collect();
        let kept = self.kept.get(&(row.key.table.clone(), row.key.id.clone()));
        let ids = moved.iter().flat_map(|line| ids_of(line));
        let ids = ids.chain(kept.into_iter().flatten().map(String::as_str));
        let named = ids.filter_map(|id| self.back.get(id)).flatten().copied();
        let is_its = |index: &usize| {
            lines.get(*index).is_some_and(|line| {
                takes_back(line.kind, line.direction, row.kind)
                    && (is_psps(line) || !is_anothers(line))
            })
        };
        let mut back: Vec<usize> = named.filter(is_its).collect();
        let undone: Vec<usize> = match row.kind {
            Kind::Charge => self.undone_among(lines, &back),
            Kind::Refund => moved.iter().flat_map(|line| self.failures_of(lines, line)).collect(),
            Kind::Payout => Vec::new(),
        };
        back.extend(undone);
        back
    }

    /// What says of refunds and chargebacks among these lines, by their own ids, that they failed
    /// or were undone.
    fn undone_among(&self, lines: &[StoredLine], back: &[usize]) -> Vec<usize> {
        let told = back.iter().filter_map(|index| lines.get(*index));
        let named = told.filter_map(back_id).filter_map(|id| self.back.get(id)).flatten().copied();
        named.filter(|index| lines.get(*index).is_some_and(undoes)).collect()
    }

    /// The refunds of one of which a line says that it failed, where it could be any of several:
    /// they are of the payment that it names, and of its money. None where there is but one.
    pub fn alike<'l>(&self, lines: &'l [StoredLine], failed: &StoredLine) -> Vec<&'l StoredLine> {
        let named = Names::from(failed).ids().filter_map(|id| self.back.get(id)).flatten();
        let named: BTreeSet<usize> = named.copied().collect();
        let is_its = |line: &&StoredLine| {
            line.kind == LineKind::Refund && moved(line).is_some() && moved(line) == moved(failed)
        };
        let found = named.into_iter().filter_map(|index| lines.get(index)).filter(is_its);
        let found: Vec<&StoredLine> = found.collect();
        if found.len() > 1 { found } else { Vec::new() }
    }

    /// What says that a refund failed without its id: of its payment, of its money, and of no other
    /// refund's.
    fn failures_of(&self, lines: &[StoredLine], refund: &StoredLine) -> Vec<usize> {
        let alike = |line: &&StoredLine| moved(line).is_some() && moved(line) == moved(refund);
        let beside = given_back(refund).and_then(|id| self.back.get(id)).into_iter().flatten();
        let beside: Vec<(usize, &StoredLine)> =
            beside.filter_map(|index| Some((*index, lines.get(*index)?))).collect();
        let refunds = beside.iter().map(|(_, line)| line);
        if refunds.filter(|line| line.kind == LineKind::Refund && alike(line)).count() != 1 {
            return Vec::new();
        }
        let is_nameless = |line: &StoredLine| {
            failed_refund(line).is_none_or(|failed| {
                !failed.is_sure && !self.moved.contains_key(&failed.id)
                    || given_back(refund) == Some(failed.id.as_str())
            })
        };
        let failed = beside.iter().filter(|(_, line)| is_failed(line) && alike(line));
        failed.filter(|(_, line)| is_nameless(line)).map(|(index, _)| *index).collect()
    }

    /// Of the lines that carry a row's tag or what it stores: those that name another payment than
    /// the row's by its id, each with the tags of that one and whether a row succeeded by it. Where
    /// none of the row's own is there, such a line is all that is known of it, and stays.
    pub fn of_others(
        &self,
        lines: &[StoredLine],
        row: &Transaction,
        found: &[usize],
    ) -> Vec<OfOther> {
        let of = |index: &usize| lines.get(*index);
        let is_own = |line: &StoredLine| moves(line.kind, line.direction, row.kind);
        let is_known = row.succeeded || found.iter().filter_map(of).any(is_own);
        if self.back.is_empty() || row.kind != Kind::Charge || !is_known {
            return Vec::new();
        }
        let may_be =
            |line: &&StoredLine| takes_back(line.kind, line.direction, row.kind) && is_psps(line);
        let told = found.iter().filter_map(of).filter(may_be);
        told.filter_map(|line| self.of_other(lines, (row, found), line)).collect()
    }

    fn of_other(
        &self,
        lines: &[StoredLine],
        (row, found): (&Transaction, &[usize]),
        line: &StoredLine,
    ) -> Option<OfOther> {
        let mut other = OfOther { place: line.place, tags: Vec::new(), is_taken: false };
        for id in Names::from(line).ids() {
            for (table, key) in self.taken.get(id).into_iter().flatten() {
                if (table, key) == (&row.key.table, &row.key.id) {
                    return None;
                }
                other.is_taken = true;
            }
            for index in self.moved.get(id).into_iter().flatten() {
                let moved = lines.get(*index)?;
                if is_failed(line) && self.is_given_back_by(lines, (row, found), moved) {
                    return None;
                }
                if !moves(moved.kind, moved.direction, Kind::Charge) {
                    continue;
                }
                if found.contains(index) {
                    return None;
                }
                other.tags.extend(moved.tag.clone());
            }
        }
        (other.is_taken || !other.tags.is_empty()).then_some(other)
    }

    /// Whether a line is a refund that gave the row's own payment back.
    fn is_given_back_by(
        &self,
        lines: &[StoredLine],
        (row, found): (&Transaction, &[usize]),
        refund: &StoredLine,
    ) -> bool {
        let id = given_back(refund).filter(|_| refund.kind == LineKind::Refund);
        let Some(id) = id else { return false };
        let own = (row.key.table.clone(), row.key.id.clone());
        let is_paid = |index: &usize| {
            let line = lines.get(*index).filter(|_| found.contains(index));
            line.is_some_and(|line| moves(line.kind, line.direction, Kind::Charge))
        };
        self.taken.get(id).is_some_and(|rows| rows.contains(&own))
            || self.moved.get(id).is_some_and(|lines| lines.iter().any(is_paid))
    }

    /// Whether an id names more payments than the row's, which these lines have under its tag.
    pub fn is_shared<'l>(
        &self,
        id: &str,
        mut tagged: impl Iterator<Item = &'l StoredLine>,
    ) -> bool {
        let is_called = |line: &StoredLine| does_move(line) && ids_of(line).any(|own| own == id);
        self.shared.contains(id) && tagged.any(is_called)
    }

    /// Whether a booking out carries the id of a payment that came in: it gives that one back, and
    /// its id is none of its own. Under the same tag it does where a refund's row has it.
    pub fn gives_back(&self, line: &StoredLine, has_row: bool) -> bool {
        let paid = self.booked_out.get(&line.place);
        paid.is_some_and(|tag| has_row || line.tag.as_ref() != Some(tag))
    }
}

/// The keys of those rows that succeeded, by table.
pub fn succeeded<'r>(rows: &[&'r Transaction]) -> BTreeMap<&'r str, Vec<String>> {
    let mut keys: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.succeeded) {
        keys.entry(&row.key.table).or_default().push(row.key.id.clone());
    }
    keys
}

/// Puts those lines beside these that carry one of the ids, and that are of a kind.
async fn put_beside(
    db: &Database,
    account: &str,
    lines: &mut Vec<StoredLine>,
    ids: &[String],
    is_its: fn(&StoredLine) -> bool,
) -> Result<(), RunError> {
    if ids.is_empty() {
        return Ok(());
    }
    let beside = db.lines_of(account, ids, &[]).await;
    let beside = beside.doing("looking for what came back of payments")?;
    let known: HashSet<LinePlace> = lines.iter().map(|line| line.place).collect();
    let is_new = |line: &StoredLine| !known.contains(&line.place);
    lines.extend(beside.into_iter().filter(|line| is_its(line) && is_new(line)));
    Ok(())
}

/// The ids that rows succeeded by, by tieout's own record.
async fn kept_by(
    db: &Database,
    account: &str,
    rows: &[&Transaction],
) -> Result<HashMap<(String, String), Vec<String>>, RunError> {
    let mut kept: HashMap<(String, String), Vec<String>> = HashMap::new();
    for (table, keys) in succeeded(rows) {
        let found = db.references_of(account, table, &keys).await;
        for (key, id) in found.doing("looking for what rows succeeded by")? {
            kept.entry((table.to_owned(), key)).or_default().push(id);
        }
    }
    Ok(kept)
}

/// Bookings out under the id of a payment that came in, with that one's tag.
fn booked_out(lines: &[StoredLine]) -> HashMap<LinePlace, String> {
    let booked = |way: Direction| {
        let is_its = move |line: &&StoredLine| {
            (line.kind, line.direction) == (LineKind::Movement, way) && line.itemised
        };
        let names = |line: &StoredLine| Some((line.psp_reference.clone()?, line.tag.clone()?));
        lines.iter().filter(is_its).filter_map(move |line| Some((line.place, names(line)?)))
    };
    let paid: HashMap<String, String> = booked(Direction::Credit).map(|(_, own)| own).collect();
    let out = booked(Direction::Debit);
    out.filter_map(|(place, (id, _))| Some((place, paid.get(&id)?.clone()))).collect()
}
