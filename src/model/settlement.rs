//! What a settlement file says: statements, booked movements, their lines, and the sums that the
//! file declares about itself.
//!
//! Pure data, as the parsers of `settlement` emit it and as matching reads it. A sign is never
//! folded into an amount here: amounts are as written, and the direction stands beside them.

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use crate::model::money::{Currency, Money};
use crate::model::time::Instant;

/// Where money went, seen from the account that the file is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Direction {
    /// In.
    Credit,
    /// Out.
    Debit,
}

impl Direction {
    /// Reads the stable word.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Credit, Self::Debit].into_iter().find(|word| word.as_str() == text)
    }

    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Credit => "credit",
            Self::Debit => "debit",
        }
    }

    /// What the money did, for people.
    pub fn said(self) -> &'static str {
        match self {
            Self::Credit => "came in",
            Self::Debit => "went out",
        }
    }

    /// The other way.
    pub fn opposite(self) -> Self {
        match self {
            Self::Credit => Self::Debit,
            Self::Debit => Self::Credit,
        }
    }

    /// `minor` with the sign of this direction.
    pub fn signed(self, minor: i64) -> i128 {
        let minor = i128::from(minor);
        match self {
            Self::Credit => minor,
            Self::Debit => minor.saturating_neg(),
        }
    }
}

/// How sure the bank is of a movement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntryStatus {
    /// Money moved. What a format without statuses lists is booked.
    Booked,
    /// Not yet.
    Pending,
    /// Said for information: it moved nothing by this statement.
    Info,
    /// Expected later.
    Future,
}

impl EntryStatus {
    /// Reads the stable word.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Booked, Self::Pending, Self::Info, Self::Future]
            .into_iter()
            .find(|word| word.as_str() == text)
    }

    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Booked => "booked",
            Self::Pending => "pending",
            Self::Info => "info",
            Self::Future => "future",
        }
    }
}

/// What a statement may decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Finality {
    /// A closed day or period: its lines are money.
    Final,
    /// Of the running day: it informs and never decides.
    Interim,
    /// Itemises or announces, without balances (camt.054, pain.002).
    Notice,
}

impl Finality {
    /// Reads the stable word.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Final, Self::Interim, Self::Notice].into_iter().find(|word| word.as_str() == text)
    }

    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Final => "final",
            Self::Interim => "interim",
            Self::Notice => "notice",
        }
    }
}

/// What a statement says of itself that keeps it from being loaded as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags {
    /// A copy of one sent before.
    pub copy: bool,
    /// A duplicate of one sent before.
    pub duplicate: bool,
    /// Deletes one sent before.
    pub deletion: bool,
    /// Corrects one sent before.
    pub correction: bool,
    /// A test; no money.
    pub test: bool,
}

/// The head of a statement (camt `Stmt`, an MT940 message, a BAI2 account, a batch, a payout).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Its place in the file, from 1.
    pub number: u64,
    /// The line that it begins on, from 1.
    pub line: u64,
    /// The account as written: an IBAN, a number, a merchant account.
    pub account: Option<String>,
    /// The account's currency; none where a statement holds several.
    pub currency: Option<Currency>,
    /// The bank's own id of it. Unique within an account and year at best.
    pub id: Option<String>,
    /// Its number in the account's sequence.
    pub sequence: Option<String>,
    /// Which page of the statement it is, in words, where it is not the first one.
    pub page: Option<String>,
    /// The period's first day, or the only one.
    pub from: Option<NaiveDate>,
    /// The period's last day.
    pub to: Option<NaiveDate>,
    /// What it may decide.
    pub finality: Finality,
    /// What else it says of itself.
    pub flags: Flags,
}

impl Statement {
    /// One that says nothing but where it stands.
    pub fn at(number: u64, line: u64, finality: Finality) -> Self {
        Self {
            number,
            line,
            account: None,
            currency: None,
            id: None,
            sequence: None,
            page: None,
            from: None,
            to: None,
            finality,
            flags: Flags::default(),
        }
    }
}

/// What [`page_from`] begins with.
pub const PAGE_FROM: &str = "page from ";

/// Which page of its statement one is that tells no number: the balance that it goes on from.
pub fn page_from(opening: Money) -> String {
    format!("{PAGE_FROM}{opening}")
}

/// A balance as declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Balance {
    /// Signed: credit positive.
    pub minor: i64,
    /// Its currency.
    pub currency: Currency,
    /// Of which day.
    pub date: Option<NaiveDate>,
    /// The line that it stands on.
    pub line: u64,
}

/// What is known of a statement once it has ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StatementEnd {
    /// The last line of it.
    pub line: u64,
    /// Balance before its entries.
    pub opening: Option<Balance>,
    /// Balance after its booked entries: opening + entries = closing is checked where both are.
    pub closing: Option<Balance>,
    /// What the head could not know yet.
    pub currency: Option<Currency>,
    /// The period, where only the end tells it.
    pub from: Option<NaiveDate>,
    /// As `from`.
    pub to: Option<NaiveDate>,
    /// The words by which its rows name the zone of their days, where they do.
    pub zones: Vec<String>,
    /// What ties it.
    pub tie: Tie,
}

/// What shows that a statement is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tie {
    /// Opening + booked entries = closing, where both balances are there.
    #[default]
    Balances,
    /// Controls of the format's own, which the parser has emitted: whether they hold.
    Declared(bool),
}

/// A booked movement as the bank counts it. A batch is one entry with many lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its place in the file, from 1.
    pub number: u64,
    /// The line that it begins on.
    pub line: u64,
    /// As written, never negative: the direction carries the sign.
    pub minor: i64,
    /// Its currency.
    pub currency: Currency,
    /// Where the money went. Where the two differ, the file's arithmetic was asked, not a flag.
    pub direction: Direction,
    /// It takes back an earlier movement of the other direction.
    pub reversal: bool,
    /// How sure the bank is.
    pub status: EntryStatus,
    /// When it was booked.
    pub booked_on: Option<NaiveDate>,
    /// From when it bears interest.
    pub value_on: Option<NaiveDate>,
    /// The bank's reference of the booking.
    pub bank_reference: Option<String>,
    /// The kind of booking in the format's own codes (`PMNT/RCDT/ESCT`, `NTRF`, `475`).
    pub type_code: Option<String>,
    /// What a batch says of itself.
    pub batch: Option<Batch>,
}

/// What a batch booking declares.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// How many payments it stands for. More than its lines: it is not itemised here.
    pub payments: Option<u64>,
    /// The message or file that it was ordered by.
    pub message_id: Option<String>,
    /// The batch within that message.
    pub payment_info_id: Option<String>,
}

/// What a reference is, so that matching can prefer one over another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TagKind {
    /// ISO 20022 `EndToEndId`, `EREF+`: the payer's, carried through. At most 35 characters.
    EndToEndId,
    /// `InstrId`: between payer and its bank.
    InstructionId,
    /// What the merchant sent to the PSP.
    MerchantReference,
    /// The customer's reference of a bank line (MT940 `:61:`, BAI2, NACHA individual id, `KREF+`).
    CustomerReference,
    /// Direct-debit mandate.
    Mandate,
    /// `PmtInfId`: of a batch.
    PaymentInfoId,
    /// `MsgId`: of a file of orders.
    MessageId,
    /// `TxId`.
    TransactionId,
    /// `UETR`: a UUID that SWIFT carries.
    Uetr,
    /// Structured creditor reference (`RF…`, QR reference, OCR number).
    CreditorReference,
    /// The bank's own reference of the line.
    BankReference,
    /// ACH trace number.
    Trace,
    /// A charge at the PSP.
    ChargeId,
    /// A payment or payment intent at the PSP.
    PaymentId,
    /// A refund at the PSP.
    RefundId,
    /// A dispute or chargeback at the PSP.
    DisputeId,
    /// A payout at the PSP.
    PayoutId,
    /// The order or invoice that a PSP was told.
    OrderId,
    /// A free field of the merchant's own.
    Custom,
    /// Unstructured text: to search in, the weakest.
    Text,
}

impl TagKind {
    /// All of them.
    pub const ALL: [Self; 20] = [
        Self::EndToEndId,
        Self::InstructionId,
        Self::MerchantReference,
        Self::CustomerReference,
        Self::Mandate,
        Self::PaymentInfoId,
        Self::MessageId,
        Self::TransactionId,
        Self::Uetr,
        Self::CreditorReference,
        Self::BankReference,
        Self::Trace,
        Self::ChargeId,
        Self::PaymentId,
        Self::RefundId,
        Self::DisputeId,
        Self::PayoutId,
        Self::OrderId,
        Self::Custom,
        Self::Text,
    ];

    /// Reads the stable word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EndToEndId => "end_to_end_id",
            Self::InstructionId => "instruction_id",
            Self::MerchantReference => "merchant_reference",
            Self::CustomerReference => "customer_reference",
            Self::Mandate => "mandate",
            Self::PaymentInfoId => "payment_info_id",
            Self::MessageId => "message_id",
            Self::TransactionId => "transaction_id",
            Self::Uetr => "uetr",
            Self::CreditorReference => "creditor_reference",
            Self::BankReference => "bank_reference",
            Self::Trace => "trace",
            Self::ChargeId => "charge_id",
            Self::PaymentId => "payment_id",
            Self::RefundId => "refund_id",
            Self::DisputeId => "dispute_id",
            Self::PayoutId => "payout_id",
            Self::OrderId => "order_id",
            Self::Custom => "custom",
            Self::Text => "text",
        }
    }
}

/// A reference that a line carries: a candidate for a row's tag.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tag {
    /// Which of the format's references it is.
    pub kind: TagKind,
    /// As written, without the blanks around it.
    pub text: String,
}

/// What a line is about. A bank's statement says only that money moved; a PSP's report says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LineKind {
    /// Money moved, in the direction given: a bank's booking.
    Movement,
    /// A customer paid.
    Payment,
    /// The merchant gave money back.
    Refund,
    /// The customer's bank took it back.
    Chargeback,
    /// A chargeback was undone.
    ChargebackReversed,
    /// What was sent or collected came back from the bank.
    Return,
    /// What the PSP or bank took for itself.
    Fee,
    /// The PSP paid out to the merchant's bank.
    Payout,
    /// Reserves, corrections, transfers between the merchant's own balances.
    Adjustment,
    /// A payment on its way or refused: it moved nothing.
    Attempt,
}

impl LineKind {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Movement,
        Self::Payment,
        Self::Refund,
        Self::Chargeback,
        Self::ChargebackReversed,
        Self::Return,
        Self::Fee,
        Self::Payout,
        Self::Adjustment,
        Self::Attempt,
    ];

    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Movement => "movement",
            Self::Payment => "payment",
            Self::Refund => "refund",
            Self::Chargeback => "chargeback",
            Self::ChargebackReversed => "chargeback_reversed",
            Self::Return => "return",
            Self::Fee => "fee",
            Self::Payout => "payout",
            Self::Adjustment => "adjustment",
            Self::Attempt => "attempt",
        }
    }

    /// Reads the stable word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// One payment, after batches are expanded: what is matched to a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The entry that it is of ([`Entry::number`]).
    pub entry: u64,
    /// Its place within that entry, from 1.
    pub number: u64,
    /// The line of the file that it begins on.
    pub line: u64,
    /// Where it begins, in bytes of the decoded text.
    pub byte: u64,
    /// What it is about.
    pub kind: LineKind,
    /// As written; none where the file gives a batch's payment no amount of its own.
    pub minor: Option<i64>,
    /// Of `minor`.
    pub currency: Currency,
    /// Its own direction: a netted batch holds both.
    pub direction: Direction,
    /// It takes back an earlier movement.
    pub reversal: bool,
    /// Before fees, signed by the direction's rule, where the format tells gross and net apart.
    pub gross: Option<SignedMoney>,
    /// Fees; positive is what was taken.
    pub fee: Option<SignedMoney>,
    /// After fees.
    pub net: Option<SignedMoney>,
    /// Every reference, in the order of the file.
    pub tags: Vec<Tag>,
    /// The PSP's own id of the payment.
    pub psp_reference: Option<String>,
    /// Of a return: which payment came back (a trace, an id).
    pub original_reference: Option<String>,
    /// Of a return: why, in the format's own code (`AC04`, `R01`).
    pub return_reason: Option<String>,
    /// The kind of line in the format's own codes.
    pub type_code: Option<String>,
    /// The PSP's batch or payout that paid it out.
    pub batch_id: Option<String>,
    /// When it was booked, where lines have dates of their own.
    pub booked_on: Option<NaiveDate>,
    /// False: it stands for several payments, and no single row may be matched to it.
    pub itemised: bool,
    /// What the file says, unread, cut at [`RAW_MAX`].
    pub raw: String,
}

/// A kept line as the decision about a row reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettledLine {
    /// What it is called everywhere: its file's number and its place there, `F17:42`.
    pub place: String,
    /// The format's word: one payment may stand in reports of several.
    pub format: String,
    /// What it is about.
    pub kind: LineKind,
    /// Where the money went.
    pub direction: Direction,
    /// What moved, before fees, without a sign; none where the file does not tell.
    pub money: Option<Money>,
    /// False: it informs, and decides nothing.
    pub decides: bool,
    /// False: it stands for several payments, and so for no row.
    pub itemised: bool,
    /// The PSP's id of the payment.
    pub payment: Option<String>,
    /// Of what comes back: which payment it was.
    pub original: Option<String>,
    /// Other ids of the payment.
    pub aliases: Vec<String>,
    /// Of what comes back: what the PSP calls that refund, dispute or reversal itself.
    pub event: Option<String>,
    /// Of what says that a refund failed: which one, where its report names it.
    pub failed: Option<FailedRefund>,
    /// Of a refund, and of what says that one failed: what the merchant calls that refund, where
    /// the report tells it beside the payment's reference.
    #[serde(default)]
    pub refund_reference: Option<String>,
    /// The PSP's batch or payout that it is in.
    pub payout: Option<String>,
    /// Why it came back or was refused, in the format's own code.
    pub code: Option<String>,
    /// The format's own word of what it is.
    pub word: Option<String>,
    /// The tag of another row, where this row is known to the line by its reference alone.
    pub anothers: Option<String>,
    /// When it was booked, else when it came in.
    pub at: Instant,
}

/// The refund that a line says to have failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedRefund {
    /// By what the line names it: its own id, or its payment's.
    pub id: String,
    /// The sender's reports always name it so. False: some call the failure so, and not the refund.
    pub is_sure: bool,
}

/// Why a payment's own line came back, by what that line itself says: the word of PayPal's status.
pub const UNDONE: &str = "V";

/// The direction in which a file books the money of a line. A payment's (or refund's) own line that
/// says of itself that it came back is told the way that the money went back, so that it settles
/// nothing; its file books it the other way, as the money came.
pub fn booked_way(
    (kind, direction): (LineKind, Direction),
    reason: Option<&str>,
    (payment, original): (Option<&str>, Option<&str>),
) -> Direction {
    let is_itself = payment.is_some() && payment == original;
    let is_undone = kind == LineKind::Return && reason == Some(UNDONE) && is_itself;
    if is_undone { direction.opposite() } else { direction }
}

/// How much of a line's own text is kept.
pub const RAW_MAX: usize = 16 * 1024;

impl Line {
    /// A line of one payment that carries all of `entry` and no reference yet.
    pub fn of(entry: &Entry) -> Self {
        Self {
            entry: entry.number,
            number: 1,
            line: entry.line,
            byte: 0,
            kind: LineKind::Movement,
            minor: Some(entry.minor),
            currency: entry.currency,
            direction: entry.direction,
            reversal: entry.reversal,
            gross: None,
            fee: None,
            net: None,
            tags: Vec::new(),
            psp_reference: None,
            original_reference: None,
            return_reason: None,
            type_code: None,
            batch_id: None,
            booked_on: None,
            itemised: true,
            raw: String::new(),
        }
    }

    /// The direction in which its file books its money: [`booked_way`].
    pub fn booked_way(&self) -> Direction {
        let names = (self.psp_reference.as_deref(), self.original_reference.as_deref());
        booked_way((self.kind, self.direction), self.return_reason.as_deref(), names)
    }

    /// One more reference, unless it is blank.
    ///
    /// PostgreSQL's texts cannot hold a NUL: the sign for it stands in its place, so that what is
    /// looked up by is what is kept.
    pub fn tag(&mut self, kind: TagKind, text: &str) {
        let text = text.trim();
        if !text.is_empty() {
            self.tags.push(Tag { kind, text: text.replace('\0', "\u{2400}") });
        }
    }
}

/// An amount that carries its own sign, and may be of another currency than its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignedMoney {
    /// Minor units.
    pub minor: i64,
    /// Of `minor`.
    pub currency: Currency,
}

/// Whether a problem keeps the file from being loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Said, and no more: real files deviate so without being wrong.
    Warning,
    /// The file is quarantined.
    Error,
}

impl Severity {
    /// Reads the stable word.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Warning, Self::Error].into_iter().find(|word| word.as_str() == text)
    }

    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{field}: expected {expected}, found {found}", of_line(*line))]
pub struct Problem {
    /// From 1; 0 where no line can be named.
    pub line: u64,
    /// The element, tag or column: `Ntry/Amt`, `:62F:`, `49 account total`.
    pub field: String,
    /// What would be right.
    pub expected: String,
    /// What stands there.
    pub found: String,
    /// Whether the file may still be loaded.
    pub severity: Severity,
}

/// Where no line can be named, none is said.
fn of_line(line: u64) -> String {
    if line == 0 { String::new() } else { format!("line {line}: ") }
}

impl Problem {
    /// One that quarantines the file.
    pub fn error(
        line: u64,
        field: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        let (field, expected, found) = (field.into(), expected.into(), found.into());
        Self { line, field, expected, found, severity: Severity::Error }
    }

    /// Whether nothing shows which way money went: then the sides of the lines are a guess, and no
    /// person's word makes more of it.
    pub fn leaves_sides_open(&self) -> bool {
        let says = |text: &str| text.contains("which way");
        self.severity == Severity::Error && (says(&self.expected) || says(&self.found))
    }

    /// One that is only said.
    pub fn warning(
        line: u64,
        field: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Warning, ..Self::error(line, field, expected, found) }
    }
}

/// A sum that a file declares about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control {
    /// The line that declares it.
    pub line: u64,
    /// Its name in the file: `90D sum`, `49 account total`, `9 entry hash`.
    pub field: String,
    /// The declared figure: a count, or minor units with their sign.
    pub expected: i128,
    /// What it is held against.
    pub found: Found,
    /// Of a sum of money; none of a count or hash.
    pub currency: Option<Currency>,
    /// What a difference means.
    pub severity: Severity,
}

/// Where the other side of a [`Control`] comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The parser counted it (hashes, record counts, sums that include more than entries).
    Is(i128),
    /// Entries since the statement began, as emitted: the reader of the items counts.
    Statement(Measure),
    /// Entries since the file began.
    File(Measure),
}

/// What is counted of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// How many.
    Entries,
    /// How many credits.
    Credits,
    /// How many debits.
    Debits,
    /// Sum of credits.
    CreditMinor,
    /// Sum of debits, positive.
    DebitMinor,
    /// Credits less debits.
    NetMinor,
}
