//! Batch bookings: one booking of a bank's statement that stands for many payments, and the lines
//! of notices that it is made of.
//!
//! The booking moves the money and says nothing of the payments; the notice lists them and decides
//! nothing, since no balance ties it. Where all that notices list under the booking's reference
//! comes to the booking's money, the booking vouches for its parts: it belongs to [`TABLE`], and
//! they count as if its own statement had listed them. The parts keep the booking's place, so that
//! none is ever a part of two. Bookings that carry one reference vouch only together, where all of
//! them come to all that is listed: they have one key then, and the parts keep the first's place.
//!
//! Not every bank says of a booking that it stands for many. One that names no payment, and whose
//! reference several lines of notices carry, may be such a one.

use crate::model::time::Instant;
use crate::store::error::StoreError;
use crate::store::files::{LinePlace, StoredLine};

/// What stands for a mapped table where a line is a batch booking that is explained.
pub const TABLE: &str = "tieout_batches";

/// What makes a line `l` an open batch booking, by its own word; as the index over them says it.
const BOOKING: &str = "l.state = 'open' and l.decides and not l.itemised \
     and l.kind = 'movement' and (l.bank_reference is not null or l.order_ref is not null)";

/// A line `x` that no correction took out and that repeats none: what both issues of a notice have
/// stays with the earlier one.
const STANDS: &str = "x.state <> 'superseded' \
     and not (x.state = 'excluded' and coalesce(x.reason, '') = 'statement_corrected')";

/// The same of a line `l` of the account `own` that does not say so: it has no tag, and several
/// lines of notices carry its reference. Where the account has no notices, no line is looked at.
/// That it `decides` stands there as the index over open lines says it.
fn unsaid(own: &str, decides: &str) -> String {
    format!(
        "l.state = 'open' and {decides} and l.itemised and l.kind = 'movement' \
         and l.tag is null and l.bank_reference is not null \
         and exists (select 1 from tieout_statements t where t.account = {own} \
         and t.state <> 'held' and t.finality = 'notice') \
         and (select count(*) from tieout_lines x where x.account = {own} \
         and x.bank_reference = l.bank_reference and x.bank_reference is not null \
         and (not x.decides or not x.itemised or x.kind = 'return' or x.of_file is not null) \
         and {STANDS} \
         and exists (select 1 from tieout_statements s where s.file_id = x.file_id \
         and s.number = x.statement and s.state <> 'held' and s.finality = 'notice')) > 1"
    )
}

/// Whether bookings say that they stand for several payments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// They do.
    Several,
    /// They do not, and notices may.
    Nothing,
}

impl Says {
    /// What makes a line `l` of the account `own`, as the statement has it, an open one of these.
    pub(in crate::store) fn bookings(self, own: &str, decides: &str) -> String {
        match self {
            Self::Several => BOOKING.to_owned(),
            Self::Nothing => unsaid(own, decides),
        }
    }
}

/// The verbs about batch bookings.
#[expect(async_fn_in_trait, reason = "called on concrete types only, never as dyn")]
pub trait BatchDriver {
    /// Bookings of an account that decide, stand for several payments, as they say or may, carry a
    /// reference that notices may carry too, and are nothing's yet: in their order, after a place.
    async fn open_batches(
        &self,
        account: &str,
        says: Says,
        after: Option<LinePlace>,
        limit: i64,
    ) -> Result<Vec<StoredLine>, StoreError>;

    /// What the notices of the booking's bank account that count list under its reference.
    async fn batch_parts(&self, booking: LinePlace, by: BatchBy) -> Result<BatchParts, StoreError>;

    /// Makes the booking its parts', and lets these count: all in one transaction, and only where
    /// the booking is open and as many parts are free as were counted. False: nothing was changed.
    async fn explain_batch(
        &self,
        run_id: &str,
        batch: &ExplainedBatch,
        now: Instant,
    ) -> Result<bool, StoreError>;
}

/// The reference that a booking and its parts have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchBy {
    /// The bank's own reference of the booking.
    BankReference,
    /// The order that the batch was made by.
    Order,
}

impl BatchBy {
    /// Both, the surer one first.
    pub const ALL: [Self; 2] = [Self::BankReference, Self::Order];

    pub(in crate::store) fn column(self) -> &'static str {
        match self {
            Self::BankReference => "bank_reference",
            Self::Order => "order_ref",
        }
    }
}

/// What notices list under a booking's reference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BatchParts {
    /// Their lines.
    pub lines: i64,
    /// Of those: payments with an amount in the booking's currency that are no other's part.
    pub usable: i64,
    /// What the lines come to, + being money to the merchant.
    pub minor: i128,
    /// What the notices say was taken of them besides, + being money to the merchant.
    pub charged: i128,
    /// Other batch bookings under the same reference.
    pub rivals: i64,
    /// Of those: open ones of the booking's currency and direction.
    pub fellows: i64,
    /// What the fellows come to, + being money to the merchant.
    pub fellow_minor: i128,
}

/// A booking that its parts explain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainedBatch {
    /// The booking.
    pub booking: LinePlace,
    /// What it has in common with its parts.
    pub by: BatchBy,
    /// How many parts were counted.
    pub lines: i64,
    /// What the batch is worth, + being money to the merchant: what its parts come to, and the
    /// booking and its fellows together, but for charges that are told.
    pub minor: i64,
    /// How many other bookings of the same reference they are the parts of as well.
    pub fellows: i64,
    /// Under which key it stands in [`TABLE`].
    pub key: String,
}

/// The key of a booking in [`TABLE`]: a JSON array of its account, reference, file and position.
pub fn key_of(booking: &StoredLine) -> String {
    let reference = booking.bank_reference.as_deref().unwrap_or_default();
    let LinePlace { file, position } = booking.place;
    serde_json::json!([booking.account, reference, file, position]).to_string()
}

/// A column of the booking at the places $1 and $2.
fn of_booking(column: &str) -> String {
    format!("(select b.{column} from tieout_lines b where b.file_id = $1 and b.position = $2)")
}

/// Lines `x` of the booking's account with its reference: each look-up is one by the index, whose
/// condition stands here word for word.
fn alike(by: BatchBy) -> String {
    let column = by.column();
    let listed = match by {
        BatchBy::BankReference => {
            " and (not x.decides or not x.itemised or x.kind = 'return' or x.of_file is not null)"
        }
        BatchBy::Order => "",
    };
    format!(
        "x.account = {} and x.{column} = {} and x.{column} is not null{listed} and {STANDS}",
        of_booking("account"),
        of_booking(column),
    )
}

/// The statement `s` is one of the same bank account, and no person holds it back.
fn same_account() -> &'static str {
    "s.state <> 'held' and s.bank_account = (select t.bank_account from tieout_statements t \
     join tieout_lines b on b.file_id = t.file_id and b.statement = t.number \
     where b.file_id = $1 and b.position = $2)"
}

const PART: &str = "(s.finality = 'notice' and x.kind in ('movement', 'return'))";

/// What a bank took of a batch, as a line of its notice beside the parts.
const CHARGE: &str = "(s.finality = 'notice' and x.kind = 'fee')";

/// So many days may lie between a booking and what a notice lists of it: a reference may be used
/// again, and money that was booked long before is no new payment's.
const APART: u8 = 10;

/// A line of a notice that may be a part: of about the booking's day, and free, or of a booking
/// that a correction took out. `days`: how many lie between two days.
fn usable(days: impl Fn(&str, &str) -> String) -> String {
    let apart = days("x.booked_on", &of_booking("booked_on"));
    format!(
        "(coalesce({apart} <= {APART}, 1 = 1) and x.itemised \
         and x.status in ('booked', 'info') and x.amount_minor is not null \
         and x.currency = {} and (x.kind = 'return' \
         or (x.state = 'excluded' and not x.decides and x.reason is null)) \
         and (x.of_file is null or exists (select 1 from tieout_lines o \
         where o.file_id = x.of_file and o.position = x.of_position and o.state = 'superseded')))",
        of_booking("currency")
    )
}

/// Another open booking that the same parts may be of.
fn fellow() -> String {
    format!(
        "(s.finality = 'final' and x.state = 'open' and x.decides and not x.itemised \
         and x.kind = 'movement' and x.amount_minor is not null and x.currency = {} \
         and x.direction = {} and not (x.file_id = $1 and x.position = $2))",
        of_booking("currency"),
        of_booking("direction"),
    )
}

/// The numbers of [`BatchParts`]; `sum` makes a sum of what it is given.
pub(in crate::store) fn parts_sql(
    by: BatchBy,
    sum: impl Fn(&str) -> String,
    days: impl Fn(&str, &str) -> String,
) -> String {
    let minor = sum(&format!(
        "case when not {PART} then 0 when x.direction = 'credit' then coalesce(x.amount_minor, 0) \
         else -coalesce(x.amount_minor, 0) end"
    ));
    let fellow = fellow();
    let of_fellows = sum(&format!(
        "case when not {fellow} then 0 when x.direction = 'credit' then x.amount_minor \
         else -x.amount_minor end"
    ));
    let charged = sum(&format!(
        "case when not {CHARGE} or x.currency <> {} then 0 when x.direction = 'credit' \
         then coalesce(x.amount_minor, 0) else -coalesce(x.amount_minor, 0) end",
        of_booking("currency")
    ));
    format!(
        "select count(case when {PART} then 1 end), count(case when {PART} and {} then 1 end), \
         {minor}, count(case when s.finality = 'final' and x.decides and not x.itemised \
         and not (x.file_id = $1 and x.position = $2) then 1 end), \
         count(case when {fellow} then 1 end), {of_fellows}, {charged} \
         from tieout_lines x cross join tieout_statements s \
         where {} and s.file_id = x.file_id and s.number = x.statement and {}",
        usable(days),
        alike(by),
        same_account(),
    )
}

/// The booking's fellows become the batch's: table, key, run, time and its worth are $3 to $7.
pub(in crate::store) fn fellows_sql(by: BatchBy) -> String {
    format!(
        "update tieout_lines as x set state = 'matched', table_name = $3, key = $4, \
         reason = null, run_id = $5, matched_at = $6, row_currency = x.currency, \
         row_minor = $7 where {} and exists (select 1 from tieout_statements s where \
         s.file_id = x.file_id and s.number = x.statement and {} and {})",
        alike(by),
        fellow(),
        same_account(),
    )
}

/// The parts count: the places $1 and $2 are the booking's.
pub(in crate::store) fn count_sql(by: BatchBy, days: impl Fn(&str, &str) -> String) -> String {
    format!(
        "update tieout_lines as x set decides = (1 = 1), of_file = $1, of_position = $2, \
         state = case x.state when 'excluded' then 'open' else x.state end \
         where {} and {} and exists (select 1 from tieout_statements s where \
         s.file_id = x.file_id and s.number = x.statement and {PART} and {})",
        alike(by),
        usable(days),
        same_account(),
    )
}

/// Parts of bookings that a correction took out, one of them or all, count no more; a row that has
/// one keeps it, as it keeps a line that was taken out itself. A return counts by its own notice.
pub(in crate::store) const PARTED: &str = "update tieout_lines as x set decides = \
     (x.state = 'matched'), state = case x.state when 'matched' then 'superseded' \
     else 'excluded' end where x.of_file is not null and x.kind <> 'return' \
     and x.state in ('open', 'matched') and exists (select 1 from tieout_lines b \
     where b.file_id = x.of_file and b.position = x.of_position and (b.state = 'superseded' \
     or (b.table_name = 'tieout_batches' and exists (select 1 from tieout_lines o \
     where o.table_name = b.table_name and o.key = b.key and o.key is not null \
     and o.state = 'superseded'))))";
