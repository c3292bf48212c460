//! Lines that a correction takes out and that a statement in another file tells as well: what both
//! databases share of finding them.
//!
//! A bank that sends a day twice, as camt.053 and as MT940, may correct the one alone. The other
//! goes on counting, so that nothing is lost, but it is no proof any more: a person is told with
//! the release, and no row is paid by it.

use crate::store::batches::TABLE as BATCHES;
use crate::store::files::LinePlace;
use crate::store::payouts::TABLE as PAYOUTS;
use crate::store::release::{ADDED, gone};
use crate::store::told::{BANKS, banks};

/// A line that a correction takes out, and the line of another file that goes on telling it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Still {
    /// What is taken out.
    pub gone: LinePlace,
    /// What tells it still.
    pub by: LinePlace,
    /// The name of that one's file.
    pub file_name: String,
}

/// Whether a format is a bank's statement.
pub fn is_banks(format: &str) -> bool {
    BANKS.contains(&format)
}

/// Behind [`crate::store::release::issues`]: the fields of [`Still`]. A line in whose place the
/// correction puts one of the same money, day and tag is told by that one.
pub(in crate::store) fn still(deletes: bool, is: &str) -> String {
    let gone = gone(deletes);
    let told = "reason = 'told_before'";
    let come = if deletes { "select file_id, position from new where false" } else { ADDED };
    format!(
        "select y.gone_file, y.gone_position, y.file_id, y.position, f.name from (\
         select g.file_id as gone_file, g.position as gone_position, l.file_id, l.position \
         from ({gone}) g join tieout_lines l on l.of_file = g.file_id \
         and l.of_position = g.position and l.{told} and l.state = 'excluded' \
         union select g.file_id, g.position, o.of_file, o.of_position from ({gone}) g \
         join tieout_lines o on o.file_id = g.file_id and o.position = g.position \
         and o.{told} and o.state = 'excluded') y \
         join tieout_lines l on l.file_id = y.file_id and l.position = y.position \
         and l.state <> 'superseded' join tieout_files f on f.id = y.file_id \
         left join ({gone}) h on h.file_id = y.file_id and h.position = y.position \
         left join (select distinct n.direction, n.currency, n.amount_minor, n.tag, n.booked_on \
         from ({come}) a join tieout_lines n on n.file_id = a.file_id \
         and n.position = a.position) c on c.amount_minor = l.amount_minor \
         and c.currency = l.currency and c.direction = l.direction and c.tag {is} l.tag \
         and c.booked_on {is} l.booked_on \
         where h.file_id is null and c.direction is null order by 1, 2, 3, 4"
    )
}

/// Lines of the account $1 that were told before by the line that a row succeeded by, and that a
/// correction took out which was let count since $2: where they stand, and the row, unless it was
/// looked at again.
pub(in crate::store) fn rows_of_told() -> String {
    format!(
        "select t.file_id, t.position, b.table_name, b.key from tieout_releases w \
         join tieout_statements o on o.rival_file = w.file_id and o.state = 'superseded' \
         join tieout_lines t on t.file_id = o.file_id and t.statement = o.number \
         join tieout_lines b on b.file_id = t.of_file and b.position = t.of_position \
         where w.state = 'carried_out' and w.ended_at >= $2 and o.account = $1 \
         and t.state = 'superseded' and t.reason = 'told_before' and t.again_run is null \
         and b.state = 'matched' and b.key is not null \
         and b.table_name not in ('{PAYOUTS}', '{BATCHES}') \
         and (b.reason in ('settled', 'tolerance_delta') or exists (select 1 \
         from tieout_references p where p.table_name = b.table_name and p.key = b.key \
         and p.account = b.account and p.psp_reference in (b.psp_reference, \
         b.file_id || ':' || b.position))) order by 1, 2"
    )
}

/// Whether the statements `o` and `s` are issues of one.
fn is_issue(o: &str, s: &str, is: &str) -> String {
    let same = ["account", "bank_account", "currency", "statement_id", "sequence", "finality"];
    let same = same.map(|column| format!("{o}.{column} = {s}.{column}")).join(" and ");
    format!("({same} and {o}.from_on {is} {s}.from_on and {o}.to_on {is} {s}.to_on)")
}

/// Of the lines that `places` (f, n) names, those of a bank's statement that tell what a correction
/// of another statement took out: where they stand, and what was taken out. Not one that the
/// corrected statement tells itself; nor, of one format, what only looks alike: that is a booking
/// of its own.
pub(in crate::store) fn doubted(places: &str, join: &str, is: &str) -> String {
    let (of_gone, of_told) = (is_issue("o", "s", is), is_issue("o", "r", is));
    let banks = banks();
    let gone = |on: &str| {
        format!(
            "select l.file_id, l.position, t.file_id as gone_file, t.position as gone_position, \
             t.statement as gone_statement from {places} \
             {join} tieout_lines l on l.file_id = p.f and l.position = p.n \
             {join} tieout_lines t on {on} and t.state = 'superseded' \
             and t.direction = l.direction and t.currency = l.currency \
             and t.amount_minor = l.amount_minor and t.file_id <> l.file_id"
        )
    };
    let (by_tag, by_place) = (
        gone("t.account = l.account and t.tag = l.tag and t.tag is not null"),
        gone(
            "t.of_file = l.file_id and t.of_position = l.position and t.of_file is not null \
             and t.reason = 'told_before'",
        ),
    );
    format!(
        "select x.file_id, x.position, x.gone_file, x.gone_position from ({by_tag} \
         union {by_place}) x \
         join tieout_lines l on l.file_id = x.file_id and l.position = x.position \
         join tieout_statements s on s.file_id = l.file_id and s.number = l.statement \
         join tieout_files f on f.id = l.file_id \
         join tieout_lines t on t.file_id = x.gone_file and t.position = x.gone_position \
         join tieout_statements o on o.file_id = x.gone_file and o.number = x.gone_statement \
         join tieout_files g on g.id = x.gone_file \
         where s.finality = 'final' and s.state <> 'held' and f.format in ({banks}) \
         and o.finality = 'final' and o.state = 'superseded' and g.format in ({banks}) \
         and (f.format <> g.format or t.of_file is not null) \
         and coalesce(l.booked_on, l.value_on) >= coalesce(o.from_on, t.booked_on) \
         and coalesce(l.booked_on, l.value_on) <= coalesce(o.to_on, t.booked_on) \
         and not {of_gone} and not exists (select 1 from tieout_lines q \
         join tieout_statements r on r.file_id = q.file_id and r.number = q.statement \
         where q.of_file = l.file_id and q.of_position = l.position and q.of_file is not null \
         and q.state = 'excluded' and q.reason = 'told_before' and {of_told}) \
         order by 1, 2, 3, 4"
    )
}

/// Nothing was ever taken out where no word of a person's was carried out.
pub(in crate::store) const ANY: &str =
    "select 1 from tieout_releases where state = 'carried_out' limit 1";
