//! Letting a file count by a person's word: what both databases share of it.
//!
//! A correction is the same statement in other bytes. What both issues have stays where it is
//! counted; what only the earlier had counts no more, and keeps the row and the run that it had;
//! what only the later has counts from now on. So nothing counts twice, however many issues
//! follow each other.

use crate::store::files::{Held, StoredLine};

/// A person's word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Who.
    pub by: String,
    /// Why.
    pub why: String,
}

/// What became of a file that a person let count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// Its lines count.
    Done {
        /// Lines that count from now on.
        added: u64,
        /// Lines that count no more.
        removed: u64,
    },
    /// There is nothing of it that does not count: it was released before, or never held.
    Nothing,
    /// It was not read to its end: nothing was changed.
    Dropped,
}

/// How a statement that is held differs from what counts of its earlier issues.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Its number in the file.
    pub statement: i64,
    /// Why it is held.
    pub held_for: Option<Held>,
    /// Lines that both have.
    pub same: u64,
    /// Lines that it alone has.
    pub added: Vec<StoredLine>,
    /// Lines that it has not, of earlier issues.
    pub removed: Vec<StoredLine>,
}

/// What two lines have in common that are the same: everything but where they stand.
const SAME: &str = "l.kind, l.direction, l.currency, l.amount_minor, l.gross_currency, \
     l.gross_minor, l.fee_currency, l.fee_minor, l.net_currency, l.net_minor, l.status, \
     l.itemised, l.tag, l.psp_reference, l.original, l.return_reason, l.type_code, \
     l.bank_reference, l.batch, l.booked_on, l.value_on, l.refs";

/// The words in which the two databases differ.
pub(in crate::store) struct Dialect {
    /// Makes one text of several values.
    pub array: &'static str,
    /// What makes it a text.
    pub as_text: &'static str,
    /// Equal, also where both are null.
    pub is: &'static str,
}

/// The tables `old` and `new` of a statement: file and number are the parameters 1 and 2. Both
/// have file_id, position, k (what the line says) and n (which of several that say the same).
pub(in crate::store) fn issues(dialect: &Dialect) -> String {
    let Dialect { array, as_text, is } = dialect;
    let key = format!("{array}({SAME}){as_text}");
    let lines = |from: &str| {
        format!(
            "select l.file_id, l.position, {key} as k, row_number() over (partition by {key} \
             order by l.file_id, l.position) as n from tieout_lines l {from}"
        )
    };
    let old = lines(
        "join same on same.file_id = l.file_id and same.number = l.statement \
         where l.state <> 'superseded' \
         and not (l.state = 'excluded' and coalesce(l.reason, '') = 'statement_corrected')",
    );
    let new = lines("where l.file_id = $1 and l.statement = $2");
    format!(
        "with same as (select o.file_id, o.number from tieout_statements o \
         join tieout_statements s on s.file_id = $1 and s.number = $2 \
         where o.state in ('live', 'superseded') and (s.statement_id <> '' or s.sequence <> '') \
         and o.account = s.account and o.bank_account = s.bank_account \
         and o.currency = s.currency and o.statement_id = s.statement_id \
         and o.sequence = s.sequence and o.finality = s.finality \
         and o.from_on {is} s.from_on and o.to_on {is} s.to_on), \
         old as ({old}), new as ({new})"
    )
}

/// What of `issues` only the earlier issues have, and only the later one.
pub(in crate::store) const REMOVED: &str = "select old.file_id, old.position from old \
     left join new on new.k = old.k and new.n = old.n where new.k is null";
pub(in crate::store) const ADDED: &str = "select new.file_id, new.position from new \
     left join old on old.k = new.k and old.n = new.n where old.k is null";

/// Whether a line may decide, as [`crate::store::files::decides`] says: of a line `l` in a
/// statement `s`.
pub(in crate::store) const DECIDES: &str = "(l.status = 'booked' \
     and l.kind not in ('fee', 'payout', 'attempt') \
     and (s.finality = 'final' or (s.finality = 'notice' and l.kind = 'return')))";

/// What ends the case of a file that a person let count.
pub(in crate::store) fn resolution(word: &Word) -> String {
    format!("released by {}: {}", word.by, word.why)
}
