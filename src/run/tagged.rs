//! Of which kinds the rows are that have a tag. What a tag shows, it shows for rows of its own kind
//! alone: a refund that carries its payment's tag says nothing of how refunds are tagged.
//!
//! Where tables count from one each, a payment's tag is by chance a refund's as well. There a tag
//! alone says nothing of either: what carries it is that row's whose money it moved.

use std::collections::HashMap;

use crate::model::money::Money;
use crate::model::transaction::{Kind, Kinds, Transaction};
use crate::run::match_lines::is_of;
use crate::store::database::Database;
use crate::store::decode::kind_of;
use crate::store::driver::Driver;
use crate::store::error::StoreError;
use crate::store::source_table::SourceTable;

/// An object, or a line of a file, that carries a tag.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen<'a> {
    /// What moved, where anything did.
    pub(super) money: Option<Money>,
    /// The PSP's id of it.
    pub(super) reference: &'a str,
    /// Other ids of it.
    pub(super) aliases: &'a [Box<str>],
}

/// One of several rows of one tag.
#[derive(Debug, Clone)]
struct Row {
    /// Of the table that was asked for, and not of another one.
    is_own: bool,
    kind: Kind,
    money: Option<Money>,
    reference: Option<Box<str>>,
}

impl Row {
    fn of(row: &Transaction, is_own: bool) -> Self {
        let reference = row.psp_reference.as_deref().map(Into::into);
        Self { is_own, kind: row.kind, money: row.money, reference }
    }

    /// Whether it moves exactly this money, or stores an id of it.
    fn is_paid_by(&self, seen: Seen<'_>) -> bool {
        let has_money = self.money.is_some() && self.money == seen.money;
        let is_its =
            |own: &str| *own == *seen.reference || seen.aliases.iter().any(|alias| *own == **alias);
        has_money || self.reference.as_deref().is_some_and(is_its)
    }
}

/// The rows of a table that have one tag; the default is none.
#[derive(Debug, Clone, Default)]
pub(super) struct RowsOfTag {
    kinds: Kinds,
    /// Of the rows of the account's other tables that have it.
    others: Kinds,
    /// One of them has a kind that nobody mapped.
    has_unmapped: bool,
    /// Each of them and of the others', where they are of several kinds; else nothing is kept.
    rows: Vec<Row>,
}

impl RowsOfTag {
    fn add(&mut self, kind: Option<Kind>) {
        match kind {
            Some(kind) => self.kinds.add(kind),
            None => self.has_unmapped = true,
        }
    }

    fn add_other(&mut self, row: &Transaction) {
        self.others.add(row.kind);
        self.rows.push(Row::of(row, false));
    }

    /// Whether rows of several kinds have the tag: then it alone does not say whose a thing is.
    fn is_of_several_kinds(&self) -> bool {
        let kinds = [Kind::Charge, Kind::Refund, Kind::Payout].into_iter();
        kinds.filter(|kind| self.kinds.has(*kind) || self.others.has(*kind)).count() > 1
    }

    /// Whether this may be a row's of this kind by all that is known: the tag is of one kind alone,
    /// or a row of this kind moved exactly this.
    pub(super) fn agree(&self, kind: Kind, seen: Seen<'_>) -> bool {
        let is_it = |row: &Row| row.is_own && row.kind == kind && row.is_paid_by(seen);
        !self.is_of_several_kinds() || self.rows.iter().any(is_it)
    }

    /// Whether one of them is known to be of this kind, and this to be its own.
    pub(super) fn has(&self, kind: Kind, seen: Seen<'_>) -> bool {
        self.kinds.has(kind) && self.agree(kind, seen)
    }

    /// Whether one of them is of one of these kinds, or may be.
    pub(super) fn are_of(&self, moves: Kinds) -> bool {
        self.has_unmapped || self.kinds.shares(moves)
    }

    /// Whether one of them explains a movement of one of these kinds so well that it is not that of
    /// another row of this kind: a row of no known kind may, and so may one of another table, where
    /// the table that was asked for has none.
    pub(super) fn explain(&self, moves: Kinds, kind: Kind, seen: Seen<'_>) -> bool {
        self.has_unmapped
            || self.is_elsewhere(moves)
            || (self.kinds.shares(moves) && self.agree(kind, seen))
    }

    /// No row of the table that was asked for has the tag.
    pub(super) fn is_none(&self) -> bool {
        !self.has_unmapped && self.kinds == Kinds::default()
    }

    /// A row of another table alone has the tag, and is of one of these kinds.
    fn is_elsewhere(&self, moves: Kinds) -> bool {
        self.is_none() && self.others.shares(moves)
    }

    /// Whether a movement of one of these kinds is some row's of the account, whosever.
    pub(super) fn resolve(&self, moves: Kinds, seen: Seen<'_>) -> bool {
        let is_it = |row: &Row| moves.has(row.kind) && row.is_paid_by(seen);
        let is_some = || !self.is_of_several_kinds() || self.rows.iter().any(is_it);
        self.has_unmapped || self.is_elsewhere(moves) || (self.kinds.shares(moves) && is_some())
    }
}

/// The rows of these tags; a tag that no row of the table has is left out. Where rows of another
/// kind have one too, in whichever of the account's `tables`, what they move is read as well.
pub(super) async fn rows_of_tags(
    db: &Database,
    table: &SourceTable,
    tables: &[SourceTable],
    account: &str,
    tags: &[String],
) -> Result<HashMap<String, RowsOfTag>, StoreError> {
    let mut rows = own_rows(db, table, account, tags).await?;
    if rows.is_empty() {
        return Ok(rows);
    }
    let found: Vec<String> = rows.keys().cloned().collect();
    let is_other = |other: &&SourceTable| is_of(other, account) && may_be_of_another(table, other);
    for other in tables.iter().filter(is_other) {
        for row in db.rows_known_by(other, account, &found, &[], &[]).await? {
            if let Some(of_tag) = rows.get_mut(row.tag.text()) {
                of_tag.add_other(&row);
            }
        }
    }
    let mut several = Vec::new();
    for (tag, of_tag) in &mut rows {
        match of_tag.is_of_several_kinds() {
            true => several.push(tag.clone()),
            false => of_tag.rows = Vec::new(),
        }
    }
    if several.is_empty() {
        return Ok(rows);
    }
    for row in db.rows_known_by(table, account, &several, &[], &[]).await? {
        if let Some(of_tag) = rows.get_mut(row.tag.text()) {
            of_tag.rows.push(Row::of(&row, true));
        }
    }
    Ok(rows)
}

/// The rows of the account's other tables that have these tags, which no row of the table has. They
/// show nothing of how its own rows are tagged; they say whose a payment is.
pub(super) async fn rows_elsewhere(
    db: &Database,
    table: &SourceTable,
    tables: &[SourceTable],
    account: &str,
    tags: &[String],
) -> Result<HashMap<String, RowsOfTag>, StoreError> {
    let mut rows: HashMap<String, RowsOfTag> = HashMap::new();
    for other in others_of(table, tables, account) {
        for row in db.rows_known_by(other, account, tags, &[], &[]).await? {
            rows.entry(row.tag.text().to_owned()).or_default().others.add(row.kind);
        }
    }
    Ok(rows)
}

/// The account's tables besides this one.
pub(super) fn others_of<'t>(
    table: &SourceTable,
    tables: &'t [SourceTable],
    account: &str,
) -> impl Iterator<Item = &'t SourceTable> {
    let is_other =
        |other: &&SourceTable| is_of(other, account) && other.settings.name != table.settings.name;
    tables.iter().filter(is_other)
}

/// Whether rows of another table may be of another kind than this one's.
fn may_be_of_another(table: &SourceTable, other: &SourceTable) -> bool {
    let constant = |one: &SourceTable| match one.layout.kind {
        Some(_) => None,
        None => kind_of(one, None),
    };
    let (own, others) = (constant(table), constant(other));
    other.settings.name != table.settings.name && (own.is_none() || own != others)
}

/// The kinds of the table's own rows.
async fn own_rows(
    db: &Database,
    table: &SourceTable,
    account: &str,
    tags: &[String],
) -> Result<HashMap<String, RowsOfTag>, StoreError> {
    let mut rows: HashMap<String, RowsOfTag> = HashMap::new();
    if table.layout.kind.is_some() {
        for one in db.rows_tagged(table, account, tags).await? {
            rows.entry(one.tag).or_default().add(one.kind);
        }
        return Ok(rows);
    }
    let kind = kind_of(table, None);
    for tag in db.resolve_tags(table, account, tags).await? {
        rows.entry(tag).or_default().add(kind);
    }
    Ok(rows)
}
