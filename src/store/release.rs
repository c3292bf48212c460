//! Letting a file count by a person's word: what both databases share of it.
//!
//! The word is a record of its own and changes nothing. A run carries it out, with the rights of a
//! run: whoever may say the word writes no line, and no line is written by the word alone.
//!
//! A correction is the same statement in other bytes. What both issues have stays where it is
//! counted; what only the earlier had counts no more, and keeps the row and the run that it had;
//! what only the later has counts from now on. So nothing counts twice, however many issues
//! follow each other.

use crate::model::time::Instant;
use crate::store::files::{Held, StoredLine};
use crate::store::still_told::Still;

/// A person's word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Who.
    pub by: String,
    /// Why.
    pub why: String,
}

/// What a file was when a person's word was said about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// It was quarantined: its lines are to be loaded.
    Quarantined,
    /// Statements of it were held: they are to count.
    Held,
}

impl About {
    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Quarantined => "quarantined",
            Self::Held => "held",
        }
    }

    /// Reads the stable word.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Quarantined, Self::Held].into_iter().find(|about| about.as_str() == text)
    }
}

/// A word that waits for a run to carry it out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spoken {
    /// Its number: words are carried out in their order.
    pub number: i64,
    /// The file.
    pub file: i64,
    /// What the file was then.
    pub about: About,
    /// When it was said.
    pub at: Instant,
    /// The word; on PostgreSQL the name ends with the login.
    pub word: Word,
}

/// What became of a word that a person said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// It is noted, and waits for a run.
    Noted,
    /// One that was said before waits already.
    Waits(Spoken),
    /// There is nothing of the file that does not count.
    Nothing,
}

/// What became of a file whose word was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// Its lines count.
    Done {
        /// Lines that count from now on.
        added: u64,
        /// Lines that count no more.
        removed: u64,
    },
    /// The word waits no more, or the file is not any more what it was then: nothing was changed.
    Nothing,
    /// The file was not read to its end, or the run was closed: nothing was changed.
    Dropped,
    /// It has no line that can be read: nothing was changed.
    Empty,
    /// Of every statement that is held a later issue came, by this file, and counts or deleted it:
    /// nothing was changed.
    Later(i64),
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
    /// Those of them that a line of another file tells, too, which goes on counting.
    pub still: Vec<Still>,
    /// The file by which a later issue of it came that was let count: this one stays held.
    pub later: Option<i64>,
}

/// What two lines have in common that are the same: everything but where they stand.
pub(in crate::store) const SAME: &str = "l.kind, l.direction, l.currency, l.amount_minor, \
     l.gross_currency, l.gross_minor, l.fee_currency, l.fee_minor, l.net_currency, l.net_minor, \
     l.status, l.itemised, l.tag, l.psp_reference, l.original, l.return_reason, l.type_code, \
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

/// The tables `old` and `new` of a statement: its file, its number and the id by which its issues
/// are known ([`crate::store::pages`]) are the parameters 1 to 3. Both have file_id, position, k
/// (what the line says) and n (which of several that say the same). Rows of a file of rows are the
/// same whose text is, whatever was read from it; what has no such partner goes by what was read.
pub(in crate::store) fn issues(dialect: &Dialect) -> String {
    let Dialect { array, as_text, is } = dialect;
    let key = format!("{array}({SAME}){as_text}");
    let lines = |from: &str| {
        format!(
            "select x.*, row_number() over (partition by x.text order by x.file_id, x.position) \
             as nth from (select l.file_id, l.position, {key} as said, \
             case when l.raw <> '' and not {TAKES_PLACE} then l.raw end as text \
             from tieout_lines l {from}) x"
        )
    };
    let keyed = |side: &str, other: &str| {
        format!(
            "select x.file_id, x.position, x.k, row_number() over (partition by x.k \
             order by x.file_id, x.position) as n from (select o.file_id, o.position, \
             case when p.nth is null then 'said ' || o.said else 'text ' || o.text end as k \
             from {side} o left join {other} p on p.text = o.text and p.nth = o.nth) x"
        )
    };
    let old = lines(
        "join same on same.file_id = l.file_id and same.number = l.statement \
         where l.state <> 'superseded' \
         and not (l.state = 'excluded' and coalesce(l.reason, '') = 'statement_corrected')",
    );
    let new = lines("where l.file_id = $1 and l.statement = $2");
    let (old_keyed, new_keyed) = (keyed("old_lines", "new_lines"), keyed("new_lines", "old_lines"));
    format!(
        "with same as (select o.file_id, o.number {}), \
         old_lines as materialized ({old}), new_lines as materialized ({new}), \
         old as ({old_keyed}), new as ({new_keyed})",
        same(is)
    )
}

/// Whether an issue `o` counted before the statement `s` came, whatever its number says: files that
/// come at once have their numbers before they wait for each other. One that was quarantined until
/// later came by its number all the same.
const BEFORE: &str = "(o.file_id is not distinct from s.rival_file \
     and o.number is not distinct from s.rival_number \
     and exists (select 1 from tieout_files f where f.id = s.file_id and f.state = 'loaded' \
     and f.tried_run is null))";

/// The other issues `o` of a statement `s` that counted at some time, or that deleted it. Of one of
/// a file of rows, which has no id and is held for days that others told: all that came before it
/// and reach into its period.
fn same(is: &str) -> String {
    format!(
        "from tieout_statements o \
         join tieout_statements s on s.file_id = $1 and s.number = $2 \
         where o.state in ('live', 'superseded') \
         and o.account = s.account and o.bank_account = s.bank_account \
         and o.currency = s.currency and o.statement_id = $3 \
         and o.sequence = s.sequence and o.finality = s.finality \
         and case when s.statement_id <> '' or s.sequence <> '' \
         then o.from_on {is} s.from_on and o.to_on {is} s.to_on \
         else s.held_for = 'corrected' and o.state = 'live' \
         and (o.file_id < s.file_id or {BEFORE}) \
         and o.from_on <= s.to_on and o.to_on >= s.from_on end"
    )
}

/// The last file by which a later issue of a statement came that counted, or that deleted it: what
/// the bank has corrected since does not take the place of its correction.
pub(in crate::store) fn later(dialect: &Dialect) -> String {
    format!(
        "select o.file_id {} and (o.file_id, o.number) > (s.file_id, s.number) \
         and not {BEFORE} order by o.file_id desc limit 1",
        same(dialect.is)
    )
}

/// What of `issues` only the later issue has.
pub(in crate::store) const ADDED: &str = "select new.file_id, new.position from new \
     left join old on old.k = new.k and old.n = new.n where old.k is null";

/// Whether the statement $2 of the file $1 takes the place of others: one without an id or a number
/// stands beside them.
pub(in crate::store) const TAKES_PLACE: &str = "exists (select 1 from tieout_statements w \
     where w.file_id = $1 and w.number = $2 and (w.statement_id <> '' or w.sequence <> ''))";

/// What of `issues` counts no more: what only the earlier ones have, where the later one takes
/// their place; of what is deleted, all.
pub(in crate::store) fn gone(deletes: bool) -> String {
    if deletes {
        return "select file_id, position from old".to_owned();
    }
    format!(
        "select old.file_id, old.position from old \
         left join new on new.k = old.k and new.n = old.n where new.k is null and {TAKES_PLACE}"
    )
}

/// Has the open cases of rows say that a line of theirs, which a case may suggest to refund, was
/// taken out; to be run before it is.
pub(in crate::store) fn told_in_cases(deletes: bool) -> String {
    format!(
        "update tieout_cases as c set text = c.text || '; a correction took line F' || g.file_id \
         || ':' || g.position || ' out since: what it told is not so any more' \
         from ({}) g, tieout_lines l where l.file_id = g.file_id and l.position = g.position \
         and l.state = 'matched' and c.state = 'open' and c.subject_kind = 'row' \
         and c.table_name = l.table_name and c.subject = l.key",
        gone(deletes)
    )
}

/// Whether a line may decide, as [`crate::store::files::decides`] says: of a line `l` in a
/// statement `s`.
pub(in crate::store) const DECIDES: &str = "(l.status = 'booked' \
     and l.kind not in ('fee', 'payout', 'attempt') \
     and (s.finality = 'final' or (s.finality = 'notice' and l.kind = 'return')))";

/// What a file's case says of a word that a run could not carry out.
pub(in crate::store) fn refused_text(name: &str, spoken: &Spoken, why: &str) -> String {
    let stays = match spoken.about {
        About::Quarantined => "stays quarantined",
        About::Held => "stays held",
    };
    format!("{name} {stays}: the release by {} was not carried out: {why}", spoken.word.by)
}

/// How a word ended that was carried out.
pub(in crate::store) const CARRIED_OUT: &str = "carried out";

/// The words that wait ($1: of this file alone), in the order in which both databases' `spoken_of`
/// read them.
pub(in crate::store) const WAITING: &str = "select number, file_id, what, at, by_whom, why \
     from tieout_releases where state = 'waiting' \
     and ($1 is null or file_id = $1) order by number";

/// What ends the case of a file that a person let count.
pub(in crate::store) fn resolution(word: &Word) -> String {
    format!("released by {}: {}", word.by, word.why)
}
