//! Which row is meant by a text that is no key that tieout knows: the one with this tag, or with
//! this reference of a PSP. Only what an index answers is asked: a table may hold a hundred million
//! rows.

use std::collections::{BTreeMap, BTreeSet};

use crate::cli::screen;
use crate::config::Config;
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::error::StoreError;
use crate::store::inspect::{Inspect, NamedRow};
use crate::store::mapping::FilterValue;
use crate::store::source_table::SourceTable;

/// A tag that can be made in more ways is found by reading the whole table: it is not looked for.
const READINGS_MAX: usize = 4;

/// What a text is of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// What the PSP was told.
    Tag,
    /// What the PSP told, in tieout's own record.
    Recorded,
    /// The same in the row.
    Stored,
}

impl By {
    /// In a sentence.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Tag => "the tag",
            Self::Recorded => "the PSP's reference, as tieout recorded it,",
            Self::Stored => "the PSP's reference, as the row stores it,",
        }
    }
}

/// Rows by table and key.
pub(super) type Meant = BTreeMap<(String, String), By>;

/// A text that somebody named a row by, and where it is looked for.
pub(super) struct Finder<'a> {
    db: &'a Database,
    text: [String; 1],
    accounts: Vec<String>,
    tables: &'a [String],
    mapped: Vec<SourceTable>,
}

impl<'a> Finder<'a> {
    /// Reads the catalogue. Who may read tieout's records alone still finds what they say.
    pub(super) async fn of(
        text: &str,
        tables: &'a [String],
        config: &Config,
        db: &'a Database,
    ) -> Self {
        let accounts: Vec<String> = config.accounts.keys().cloned().collect();
        let mut mapped = db.map_tables(&config.tables, &accounts).await.unwrap_or_default();
        mapped.retain(|table| tables.contains(&table.settings.name));
        Self { db, text: [text.to_owned()], accounts, tables, mapped }
    }

    /// The row whose key this text is, written another way than the database writes it: a uuid in
    /// capitals, a time in another zone.
    pub(super) async fn written(&self) -> Option<(String, String)> {
        let mut found = Vec::new();
        for table in &self.mapped {
            let rows = self.db.named_rows(table, &self.text).await.unwrap_or_default();
            found.extend(rows.into_iter().map(|row| (table.settings.name.clone(), row.id)));
        }
        found.retain(|(_, key)| *key != self.text[0]);
        let [only] = found.as_slice() else { return None };
        Some(only.clone())
    }

    /// Why tieout has never looked at the row of one of these tables with this key, and what does;
    /// none where there is no such row.
    pub(super) async fn unseen(&self, tables: &[String], key: &str) -> Option<String> {
        let keys = [key.to_owned()];
        let mapped = self.mapped.iter().filter(|table| tables.contains(&table.settings.name));
        for table in mapped {
            let rows = self.db.named_rows(table, &keys).await.unwrap_or_default();
            if let Some(row) = rows.first() {
                return Some(why_unseen(table, row, key));
            }
        }
        None
    }

    /// The rows with this tag; where there is none, those with this reference.
    ///
    /// # Errors
    /// Where tieout's own records cannot be read.
    pub(super) async fn meant(&self) -> Result<Meant, StoreError> {
        let mut found = self.tagged().await;
        if found.is_empty() {
            found = self.recorded().await?;
            for (row, by) in self.stored().await {
                found.entry(row).or_insert(by);
            }
        }
        // A row without a key cannot be named.
        found.retain(|(_table, key), _by| !key.is_empty());
        Ok(found)
    }

    async fn tagged(&self) -> Meant {
        let mut found = Meant::new();
        for table in &self.mapped {
            for account in accounts_of(table).filter(|account| self.leads_to_tag(table, account)) {
                let rows = self.db.rows_tagged(table, account, &self.text).await;
                for row in rows.unwrap_or_default() {
                    found.insert((table.settings.name.clone(), row.key), By::Tag);
                }
            }
        }
        found
    }

    async fn recorded(&self) -> Result<Meant, StoreError> {
        let mut found = Meant::new();
        for account in &self.accounts {
            let owners = self.db.taken_references(account, &self.text).await?;
            let owners = owners.into_values().flatten();
            let owners = owners.filter(|(table, _key)| self.tables.contains(table));
            found.extend(owners.map(|row| (row, By::Recorded)));
        }
        Ok(found)
    }

    async fn stored(&self) -> Meant {
        let mut found = Meant::new();
        for table in &self.mapped {
            let column = table.settings.psp_reference.as_ref();
            if column.is_none_or(|column| table.unindexed.contains(column)) {
                continue;
            }
            for account in accounts_of(table) {
                let rows = self.db.keys_storing(table, account, &self.text).await;
                for (_reference, key) in rows.unwrap_or_default() {
                    found.insert((table.settings.name.clone(), key), By::Stored);
                }
            }
        }
        found
    }

    /// Whether an index leads from a tag to its row.
    fn leads_to_tag(&self, table: &SourceTable, account: &str) -> bool {
        let Some(template) = table.tag_template(account) else { return false };
        let Some(first) = template.columns().next() else { return false };
        let [text] = &self.text;
        let is_led = !table.unindexed.iter().any(|column| column == first);
        is_led && template.readings(text, READINGS_MAX).is_some()
    }
}

fn why_unseen(table: &SourceTable, row: &NamedRow, key: &str) -> String {
    if !row.belongs {
        return "the mapping's where leaves it out".to_owned();
    }
    let status = row.status.as_deref().unwrap_or("NULL");
    let is_it = |value: &FilterValue| value.0 == status;
    let settings = &table.settings;
    let mut succeeded =
        settings.map.iter().filter_map(|map| map.succeeded.as_ref()).chain(&settings.succeeded);
    let why = if table.processing_values().iter().any(|value| value == status) {
        return look_now(&format!("its status is `{status}`: {NOT_YET}"), key);
    } else if succeeded.any(is_it) {
        ": your application has it as succeeded, it is not stuck"
    } else if settings.named_values().any(is_it) {
        ", in which no row is stuck"
    } else {
        let next = "name it in [[table.map]] or in `ignore`";
        return format!("its status is `{status}`, which is not mapped; {next}");
    };
    let next = "`tieout run --all --since 3d` holds what has ended against the PSP, too";
    format!("its status is `{status}`{why}; {next}")
}

/// Why a row that counts as processing was never looked at.
const NOT_YET: &str = "it is not stuck yet, or no run came to it";

/// Why tieout has never looked at a row that is there, and what tries to.
pub(super) fn look_now(why: &str, key: &str) -> String {
    format!("{why}; `tieout run --dry-run --id {}` tries it now", screen::shell_word(key))
}

/// The accounts of a table's rows, each once.
fn accounts_of(table: &SourceTable) -> impl Iterator<Item = &str> {
    let names: BTreeSet<&str> = table.settings.accounts.values().map(String::as_str).collect();
    names.into_iter()
}
