//! Settlement files as they are kept: a file, its statements, its lines, and whose each line is.
//!
//! Plain data, the same for both databases. A file's lines come in parts, so that memory is flat
//! however many there are, and become visible all together or not at all.

use chrono::NaiveDate;

use crate::model::money::{Currency, Money};
use crate::model::settlement::{Direction, EntryStatus, Finality, LineKind, Problem, Tag};
use crate::model::time::Instant;

/// A file on its way in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHead {
    /// SHA-256 of its bytes without any wrapping (compression, encryption).
    pub sha256: String,
    /// Where and as what it came.
    pub sighting: Sighting,
    /// Where its bytes are kept, relative to the spool.
    pub spooled_as: Option<String>,
    /// Its format's word.
    pub format: String,
    /// The version that it names.
    pub version: String,
}

/// A name under which a source showed some bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// The source's name; `local` for a path that a person gave.
    pub source: String,
    /// The name there: data, never a path.
    pub name: String,
    /// SHA-256 of the bytes as they came.
    pub raw_sha256: String,
    /// How many bytes came.
    pub raw_bytes: u64,
    /// When they were last changed there, as the source says.
    pub modified_at: Option<Instant>,
}

/// What comes of a file while it is read, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A statement begins; its lines follow.
    Statement(Box<NewStatement>),
    /// Some lines.
    Lines(Vec<NewLine>),
    /// The statement of this number ended.
    StatementEnd(Box<StatementClose>),
    /// The file ended and is whole: what came may become visible.
    Whole(Box<FileSums>),
    /// It does not tie, or could not be read: none of its lines may be used.
    Quarantine(Box<FileSums>),
}

/// A statement's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewStatement {
    /// Its place in the file, from 1.
    pub number: u64,
    /// The PSP account of the configuration that its lines belong to.
    pub account: String,
    /// As the file writes it.
    pub bank_account: String,
    /// The bank's id of it; may be empty.
    pub statement_id: String,
    /// Its number in the account's sequence; may be empty.
    pub sequence: String,
    /// What it may decide.
    pub finality: Finality,
    /// It lists every attempt, and not only what settled.
    pub covers_attempts: bool,
}

/// What is known at a statement's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementClose {
    /// Its place in the file.
    pub number: u64,
    /// Its currency, where it has one.
    pub currency: Option<Currency>,
    /// First day of its period.
    pub from: Option<NaiveDate>,
    /// Last day of its period.
    pub to: Option<NaiveDate>,
    /// Balance before its entries.
    pub opening_minor: Option<i64>,
    /// Balance after them.
    pub closing_minor: Option<i64>,
    /// Its entries.
    pub entries: u64,
    /// Its lines.
    pub lines: u64,
    /// Whether it ties; none: it declares nothing that could show it.
    pub ties: Option<bool>,
}

/// A file added up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileSums {
    /// Its statements.
    pub statements: u64,
    /// Its booked entries.
    pub entries: u64,
    /// Its lines.
    pub lines: u64,
    /// JSON: entries by currency.
    pub totals: String,
    /// The first problems.
    pub problems: Vec<Problem>,
    /// All of them.
    pub problems_total: u64,
}

/// A line on its way in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLine {
    /// Its place in the file, from 1.
    pub position: u64,
    /// The number of its statement.
    pub statement: u64,
    /// The number of its entry.
    pub entry: u64,
    /// The line of the file.
    pub file_line: u64,
    /// What it is.
    pub kind: LineKind,
    /// Where the money went.
    pub direction: Direction,
    /// As written, never negative; none where a batch's payment has no amount of its own.
    pub minor: Option<i64>,
    /// Of `minor`.
    pub currency: Currency,
    /// Before fees, where the file tells it apart.
    pub gross: Option<Money>,
    /// Fees; positive is what was taken.
    pub fee: Option<Money>,
    /// After fees.
    pub net: Option<Money>,
    /// How sure the bank is.
    pub status: EntryStatus,
    /// A booked line of a final statement: it may decide a row.
    pub decides: bool,
    /// False: it stands for several payments.
    pub itemised: bool,
    /// The texts that may be a row's tag, the likeliest first.
    pub tags: Vec<String>,
    /// The PSP's id of the payment.
    pub psp_reference: Option<String>,
    /// Of a return: which payment came back.
    pub original: Option<String>,
    /// Of a return: why.
    pub return_reason: Option<String>,
    /// The kind in the format's own codes.
    pub type_code: Option<String>,
    /// The bank's reference of the booking.
    pub bank_reference: Option<String>,
    /// The PSP's batch or payout.
    pub batch: Option<String>,
    /// When it was booked.
    pub booked_on: Option<NaiveDate>,
    /// From when it bears interest.
    pub value_on: Option<NaiveDate>,
    /// Every reference as the file has it.
    pub refs: Vec<Tag>,
    /// The file's own text.
    pub raw: String,
}

/// What became of a file that was brought in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileEnd {
    /// Its lines are there.
    Loaded {
        /// Its number.
        id: i64,
        /// How many statements are held: each was loaded before in other bytes.
        held: u64,
    },
    /// The same bytes were brought in before: nothing was done but to note the name.
    Known {
        /// The number it has.
        id: i64,
    },
    /// It is kept, and none of its lines counts.
    Quarantined {
        /// Its number.
        id: i64,
    },
    /// It was not read to its end (a signal, this machine's disk): nothing of it was kept.
    Dropped,
}

/// Where a line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinePlace {
    /// Its file.
    pub file: i64,
    /// Its place there, from 1.
    pub position: i64,
}

/// A line as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLine {
    /// Where it stands.
    pub place: LinePlace,
    /// SHA-256 of its file.
    pub file_sha256: String,
    /// The file's name.
    pub file_name: String,
    /// The line of the file.
    pub file_line: i64,
    /// The number of its statement.
    pub statement: i64,
    /// The PSP account.
    pub account: String,
    /// The format's word.
    pub format: String,
    /// What it is.
    pub kind: LineKind,
    /// Where the money went.
    pub direction: Direction,
    /// As written; none: no amount of its own.
    pub amount: Option<Money>,
    /// Its currency, amount or not.
    pub currency: Currency,
    /// Before fees.
    pub gross: Option<Money>,
    /// Fees.
    pub fee: Option<Money>,
    /// After fees.
    pub net: Option<Money>,
    /// It may decide a row.
    pub decides: bool,
    /// False: it stands for several payments.
    pub itemised: bool,
    /// The likeliest tag.
    pub tag: Option<String>,
    /// The PSP's id of the payment.
    pub psp_reference: Option<String>,
    /// Of a return: which payment came back.
    pub original: Option<String>,
    /// Of a return: why.
    pub return_reason: Option<String>,
    /// The kind in the format's own codes.
    pub type_code: Option<String>,
    /// The bank's reference.
    pub bank_reference: Option<String>,
    /// The PSP's batch or payout.
    pub batch: Option<String>,
    /// When it was booked.
    pub booked_on: Option<NaiveDate>,
    /// Value date.
    pub value_on: Option<NaiveDate>,
    /// Every reference.
    pub refs: Vec<Tag>,
    /// The row that it belongs to: table and key.
    pub row: Option<(String, String)>,
    /// When the file came in.
    pub received_at: Instant,
}
