//! Of which kinds the rows are that have a tag. What a tag shows, it shows for rows of its own kind
//! alone: a refund that carries its payment's tag says nothing of how refunds are tagged.

use std::collections::HashMap;

use crate::model::transaction::{Kind, Kinds};
use crate::store::database::Database;
use crate::store::decode::kind_of;
use crate::store::driver::Driver;
use crate::store::error::StoreError;
use crate::store::source_table::SourceTable;

/// The rows of a table that have one tag; the default is none.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RowsOfTag {
    kinds: Kinds,
    /// One of them has a kind that nobody mapped.
    has_unmapped: bool,
}

impl RowsOfTag {
    fn add(&mut self, kind: Option<Kind>) {
        match kind {
            Some(kind) => self.kinds.add(kind),
            None => self.has_unmapped = true,
        }
    }

    /// Whether one of them is known to be of this kind.
    pub(super) fn has(self, kind: Kind) -> bool {
        self.kinds.has(kind)
    }

    /// Whether one of them explains a movement of one of these kinds: a row of no known kind may.
    pub(super) fn explain(self, moves: Kinds) -> bool {
        self.has_unmapped || self.kinds.shares(moves)
    }
}

/// The rows of these tags; a tag that no row has is left out.
pub(super) async fn rows_of_tags(
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
