//! (being written)

/// How one PSP account is asked.
#[derive(Debug, Clone)]
pub struct AccountSettings {
    /// Its name.
    pub name: String,
}
