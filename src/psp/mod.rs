//! (being written)

/// How one PSP account is asked.
#[derive(Debug, Clone, serde::Deserialize)]
pub struct AccountSettings {
    /// Its name.
    pub name: String,
    /// How far tieout may go with rows of this account.
    pub mode: crate::decide::policy::Mode,
}
