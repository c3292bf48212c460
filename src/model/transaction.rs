//! One row of the user's own table, as the decision reads it.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::model::lean::is_default;
use crate::model::money::Money;
use crate::model::time::Instant;

/// Which row: the mapped table's name and the row's key as text.
///
/// A key of one column is that column's text. A composite key is a JSON array of its columns'
/// texts, in the order of the mapping: `["acme","7"]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RowKey {
    /// The mapping's `name`.
    pub table: String,
    /// The key's text.
    pub id: String,
}

impl RowKey {
    /// Joins key columns to the one text that names the row everywhere.
    pub fn id_of(parts: &[String]) -> String {
        match parts {
            [only] => only.clone(),
            several => serde_json::Value::from(several.to_vec()).to_string(),
        }
    }

    /// The key's columns; `count` says how many the mapping has.
    pub fn parts(&self, count: usize) -> Option<Vec<String>> {
        if count == 1 {
            return Some(vec![self.id.clone()]);
        }
        serde_json::from_str::<Vec<String>>(&self.id).ok().filter(|parts| parts.len() == count)
    }
}

/// What kind of movement a row intends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Money from a customer.
    Charge,
    /// Money back to a customer.
    Refund,
    /// Money to a bank account.
    Payout,
}

impl Kind {
    /// The word of the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Charge => "charge",
            Self::Refund => "refund",
            Self::Payout => "payout",
        }
    }

    /// Reads the word of the configuration.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Charge, Self::Refund, Self::Payout].into_iter().find(|k| k.as_str() == text)
    }

    /// An amount of this kind as totals, journal and reports carry it: + is money to the
    /// merchant. Rows and PSP objects themselves state what moves without a sign.
    pub fn signed(self, minor: i64) -> i64 {
        match self {
            Self::Charge => minor,
            Self::Refund | Self::Payout => minor.saturating_neg(),
        }
    }
}

/// Kinds of movement: several, or none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kinds(u8);

impl Kinds {
    /// One alone.
    pub fn only(kind: Kind) -> Self {
        let mut kinds = Self::default();
        kinds.add(kind);
        kinds
    }

    /// Takes one more.
    pub fn add(&mut self, kind: Kind) {
        self.0 |= match kind {
            Kind::Charge => 1,
            Kind::Refund => 2,
            Kind::Payout => 4,
        };
    }

    /// Whether this one is among them.
    pub fn has(self, kind: Kind) -> bool {
        self.shares(Self::only(kind))
    }

    /// Whether any of them is among those.
    pub fn shares(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }
}

impl FromIterator<Kind> for Kinds {
    fn from_iter<I: IntoIterator<Item = Kind>>(kinds: I) -> Self {
        let mut all = Self::default();
        kinds.into_iter().for_each(|kind| all.add(kind));
        all
    }
}

/// The PSP account a row belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccountRef {
    /// A configured account, by its name.
    Known(String),
    /// The row's value has no account in the mapping: `stripe/12`.
    Unmapped(String),
}

impl AccountRef {
    /// Whether the row may be this account's: it is, or nobody mapped whose it is.
    pub fn may_be(&self, account: &str) -> bool {
        match self {
            Self::Known(own) => own == account,
            Self::Unmapped(_) => true,
        }
    }

    /// The account's name, or the unmapped value, for reports.
    pub fn text(&self) -> &str {
        match self {
            Self::Known(text) | Self::Unmapped(text) => text,
        }
    }
}

/// The tag that the PSP was handed, or why there is none to ask by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TagState {
    /// Ask by this.
    Usable(String),
    /// The mapping has no tag: the row can be asked for by its PSP reference alone.
    Unmapped,
    /// The column is NULL, or a column in the template is (named here).
    Null(String),
    /// The tag is the empty text.
    Empty,
    /// Several rows carry this tag, so that none is settled by it alone.
    Shared(String),
    /// Longer than the place at the PSP holds.
    TooLong {
        /// The tag.
        tag: String,
        /// How many characters the place holds.
        max: usize,
    },
}

impl TagState {
    /// The tag where one may be asked by it.
    pub fn usable(&self) -> Option<&str> {
        match self {
            Self::Usable(tag) => Some(tag),
            Self::Unmapped
            | Self::Null(_)
            | Self::Empty
            | Self::Shared(_)
            | Self::TooLong { .. } => None,
        }
    }

    /// The tag's text for reports, usable or not.
    pub fn text(&self) -> &str {
        match self {
            Self::Usable(tag) | Self::Shared(tag) | Self::TooLong { tag, .. } => tag,
            Self::Unmapped | Self::Null(_) | Self::Empty => "",
        }
    }
}

/// How the mapping lets tieout know when the last attempt was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attempts {
    /// A column that the application writes before every send.
    Column,
    /// Declared: the application sends once, at the row's creation.
    Once,
    /// Nothing tells; absence can then never be proven.
    Unknown,
}

/// A column whose value the decision cannot read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowDefect {
    /// The mapped field: `amount`, `currency`, `created`.
    pub field: String,
    /// One sentence with the value.
    pub problem: String,
}

/// A row, read whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transaction {
    /// Which row.
    pub key: RowKey,
    /// The status column's exact text.
    pub status: String,
    /// Whether that status is one of the mapping's processing values.
    pub processing: bool,
    /// Whether that status is one of the mapping's succeeded values (and no processing one).
    #[serde(default, skip_serializing_if = "is_default")]
    pub succeeded: bool,
    /// Whether the mapping ignores that status, and says nothing else of it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ignored: bool,
    /// Charge, refund or payout.
    pub kind: Kind,
    /// The amount, where amount and currency could be read.
    pub money: Option<Money>,
    /// What could not be read; not empty means `row_unreadable`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub defects: Vec<RowDefect>,
    /// The account it was first sent to, as the row says.
    pub account: AccountRef,
    /// The tag.
    pub tag: TagState,
    /// The PSP's own id, where the application stored it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub psp_reference: Option<String>,
    /// The natural key, where mapped and not NULL: rows that share it are siblings.
    #[serde(default, skip_serializing_if = "is_default")]
    pub natural_key: Option<String>,
    /// The application's own idempotency key, where mapped.
    #[serde(default, skip_serializing_if = "is_default")]
    pub idempotency_key: Option<String>,
    /// When the row was made; NULL is a defect and reads as the beginning of time.
    pub created_at: Instant,
    /// The mapped last attempt.
    pub attempted_at: Option<Instant>,
    /// How attempts are known.
    pub attempts: Attempts,
    /// The exact text of every mapped column, in the database's own quoting: what apply compares.
    pub image: String,
}

impl Transaction {
    /// The row's fingerprint: SHA-256 of [`Transaction::image`], in hex.
    pub fn fingerprint(&self) -> String {
        fingerprint_of(&self.image)
    }

    /// Currency and signed amount for control totals: a row that could not be read counts as 0
    /// of no currency (the empty code), so that counts still tie out.
    pub fn total_bucket(&self) -> (String, i64) {
        match self.money {
            Some(money) => (money.currency.code().to_owned(), self.kind.signed(money.minor)),
            None => (String::new(), 0),
        }
    }
}

/// SHA-256 of a row's image, in hex.
pub fn fingerprint_of(image: &str) -> String {
    hex(&Sha256::digest(image.as_bytes()))
}

/// Bytes as lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    // Several times for each row of a run: by its digits, not by a formatter.
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or_default();
    let mut text = String::with_capacity(bytes.len().saturating_mul(2));
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 0x0f));
    }
    text
}

/// What is known of another row with the same natural key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiblingFact {
    /// The other row's key text.
    pub id: String,
    /// Where it stands.
    pub state: SiblingState,
    /// Whether it was created before this row (ties: by key).
    pub older: bool,
    /// Which files lack that would list what was attempted for it, in words, where they are waited
    /// for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
}

/// Where a sibling row stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SiblingState {
    /// Its status is the mapping's succeeded value, or tieout decided so.
    Succeeded,
    /// In a processing status; or handed back, and proved afresh since nobody took it.
    Processing,
    /// In a processing status, and something that its last look saw at the PSP may still be paid.
    Pending,
    /// In a processing status, found unpaid for good as it stands, and waiting for its siblings.
    Waiting,
    /// A person's, as a sibling has the payment; found unpaid for good as it stands.
    StandsBack,
    /// A person's, and the PSP captured money for it: of another amount, say.
    PaidCase,
    /// Its status is one of the mapping's retryable values, or its hand-back is not taken yet.
    HandedBack,
    /// It ended unpaid by its status, and the PSP has money for it.
    PaidAfterAll,
    /// Somebody else's status says that it ended unpaid, and the PSP was not asked about it.
    GivenUp,
    /// The mapping does not name its status, which says by its word that it was paid.
    SaysPaid,
    /// It ended, and no word of success is mapped: it may have been paid.
    Unclear,
    /// It ended unpaid: tieout ended it so, or the PSP shows nothing for it that is paid or may
    /// still be.
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn composite_keys_read_back() {
        let parts = vec!["ac\"me".to_owned(), "7".to_owned()];
        let key = RowKey { table: "t".into(), id: RowKey::id_of(&parts) };
        assert_eq!(key.parts(2), Some(parts));
        assert_eq!(key.parts(3), None);
        let single = RowKey { table: "t".into(), id: RowKey::id_of(&["[1]".to_owned()]) };
        assert_eq!(single.parts(1), Some(vec!["[1]".to_owned()]));
    }

    #[test]
    fn money_that_leaves_the_merchant_is_negative() {
        assert_eq!(Kind::Charge.signed(5), 5);
        assert_eq!(Kind::Refund.signed(5), -5);
        assert_eq!(Kind::Payout.signed(5), -5);
        assert_eq!(Kind::Refund.signed(i64::MIN), i64::MAX);
    }
}
