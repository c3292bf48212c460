//! A mapped table as the catalogue confirms it.

use crate::store::mapping::TableSettings;

/// A mapping that fits its database.
#[derive(Debug, Clone)]
pub struct SourceTable {
    /// The mapping.
    pub settings: TableSettings,
}
