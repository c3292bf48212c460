//! One statement in two formats: what both databases share of telling it.
//!
//! While a bank changes from MT940 to camt.053 it sends both, and their lines need not have a
//! reference in common. An account does not go twice from one balance to another: a statement of
//! the same account that does so to the same day, in another format, tells the same bookings. Their
//! lines are held against each other by what moved alone, the first of an amount the first, the
//! second the second; the day is left out, for MT940 may tell the value day alone. What is left
//! then on the one side without a tag, and comes to just what is left on the other in more lines,
//! is sums of these: they are told once, by the parts, or, where a notice has explained the sums,
//! by the sums.

use crate::store::batches::TABLE as BATCHES;
use crate::store::told::{COUNTS, Dialect, FRESH, NOTE, Side, is_one_account, is_worn};

/// Statements of a file and of others that are one: each pair under a number of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::store) struct Pairs {
    /// Of the file: number and pair.
    pub ours: Vec<(i64, i64)>,
    /// Of others: file, number and pair.
    pub theirs: Vec<(i64, i64, i64)>,
}

/// Whether two statements are one in two formats.
fn is_one(own: &Side, other: &Side) -> bool {
    let moved = own.opening.zip(own.closing).filter(|(before, after)| before != after);
    own.format != other.format
        && !own.currency.is_empty()
        && own.currency == other.currency
        && own.to.is_some()
        && own.to == other.to
        && moved.is_some()
        && moved == other.opening.zip(other.closing)
        && is_one_account(&own.bank_account, &other.bank_account, &own.currency)
}

/// The pairs of the file's own statements and those of others.
pub(in crate::store) fn pairs(mine: &[Side], others: &[Side]) -> Pairs {
    let mut pairs = Pairs::default();
    for own in mine {
        for other in others.iter().filter(|other| is_one(own, other)) {
            let pair = i64::try_from(pairs.ours.len()).unwrap_or(i64::MAX);
            pairs.ours.push((own.number, pair));
            pairs.theirs.push((other.file, other.number, pair));
        }
    }
    pairs
}

/// Marks the lines of the file $1 that statements which are one with its own told before. Where
/// only one of two has a tag, or the whole one, or says that the money came back, that line counts,
/// as long as no row has the other.
pub(in crate::store) fn by_sums(dialect: &Dialect) -> String {
    let sides = dialect.sides;
    let [ours, theirs] = dialect.lines_of_sides();
    let lines = |side: u8, from: &str, condition: &str| {
        format!(
            "select {side} as side, p.g, l.file_id, l.position, l.kind, l.direction, l.currency, \
             l.amount_minor, l.tag, l.state, l.table_name from {from} where {condition}"
        )
    };
    // What one of them tells already, under its reference, is no line's partner any more.
    let alone = |told: &str| {
        format!(
            "not exists (select 1 from tieout_lines z where z.of_file = l.file_id \
             and z.of_position = l.position and z.of_file is not null \
             and z.state = 'excluded' and z.reason = 'told_before'{told})"
        )
    };
    let mine = lines(0, &ours, &format!("{FRESH} and {}", alone("")));
    let elder = lines(1, &theirs, &format!("{COUNTS} and {}", alone(" and z.file_id = $1")));
    let first = |cell: &str| format!("first_value(r.{cell}) over twin as one_{cell}");
    let firsts = ["side", "file_id", "position", "kind", "tag", "state"].map(first).join(", ");
    let tells_more = format!(
        "coalesce(x.one_state = 'open' and (x.kind <> 'movement' and x.one_kind = 'movement' \
         or x.tag is not null and (x.one_tag is null or {})), 1 = 0)",
        is_worn("x.one_tag", "x.tag")
    );
    format!(
        "with {sides}, both_sides as materialized ({mine} union all {elder}), \
         ranked as (select b.*, row_number() over (partition by b.side, b.g, b.direction, \
         b.currency, b.amount_minor order by b.tag, b.file_id, b.position) as n \
         from both_sides b), \
         seen as (select r.*, {firsts} from ranked r window twin as (partition by r.g, \
         r.direction, r.currency, r.amount_minor, r.n order by r.side desc)), {}, \
         pick as (select x.file_id, x.position, x.one_file_id as by_file, \
         x.one_position as by_position from seen x where x.side = 0 and x.one_side = 1 \
         and not {tells_more} \
         union all select x.one_file_id, x.one_position, x.file_id, x.position from seen x \
         where x.side = 0 and x.one_side = 1 and {tells_more} union all {}) {NOTE}",
        left(),
        of_left()
    )
}

/// Of `ranked`: the lines that have no partner on the other side, with what both sides have of
/// such: how many, how many of them with a tag, of a row, or of a batch that notices list, and what
/// they come to; and the first of each.
fn left() -> String {
    let of = |side: u8, name: &str, what: &str| {
        format!("sum(case when l.side = {side} then {what} else 0 end) over own as {name}{side}")
    };
    let moved = "case l.direction when 'debit' then -l.amount_minor else l.amount_minor end";
    let sums = |side: u8| {
        [
            of(side, "count", "1"),
            of(side, "tags", "case when l.tag is null then 0 else 1 end"),
            of(side, "rows", "case when l.state = 'matched' then 1 else 0 end"),
            of(side, "batches", &format!("case when l.table_name = '{BATCHES}' then 1 else 0 end")),
            of(side, "moved", moved),
        ]
        .join(", ")
    };
    let first = |side: u8, order: &str| {
        format!(
            "first_value(l.file_id) over {order} as file{side}, \
             first_value(l.position) over {order} as position{side}"
        )
    };
    let (ours, theirs) = (first(0, "mine"), first(1, "elder"));
    format!(
        "alone as (select r.*, count(*) over (partition by r.g, r.direction, r.currency, \
         r.amount_minor, r.n) as fellows from ranked r), \
         left_over as (select l.*, {}, {}, {ours}, {theirs} from alone l where l.fellows = 1 \
         window own as (partition by l.g, l.currency), \
         mine as (partition by l.g, l.currency order by l.side, l.file_id, l.position), \
         elder as (partition by l.g, l.currency order by l.side desc, l.file_id, l.position))",
        sums(0),
        sums(1)
    )
}

/// Of what is left: sums and their parts, which are told by which.
fn of_left() -> String {
    let are_sums = |one: u8, other: u8| {
        format!(
            "x.count{one} > 0 and x.count{one} < x.count{other} and x.tags{one} = 0 \
             and x.moved{one} = x.moved{other}"
        )
    };
    let (ours, theirs) = (are_sums(0, 1), are_sums(1, 0));
    format!(
        "select x.file_id, x.position, x.file1, x.position1 from left_over x \
         where x.side = 0 and {ours} \
         union all select x.file_id, x.position, x.file0, x.position0 from left_over x \
         where x.side = 1 and {theirs} and x.rows1 = 0 \
         union all select x.file_id, x.position, x.file1, x.position1 from left_over x \
         where x.side = 0 and {theirs} and x.batches1 = x.count1"
    )
}

#[cfg(test)]
mod tests {
    use chrono::NaiveDate;

    use super::*;

    fn side(format: &str, bank_account: &str, closing: i64) -> Side {
        let day = NaiveDate::from_ymd_opt(2026, 11, 18);
        Side {
            file: 7,
            number: 1,
            format: format.to_owned(),
            bank_account: bank_account.to_owned(),
            currency: "EUR".to_owned(),
            from: day,
            to: day,
            opening: Some(100),
            closing: Some(closing),
        }
    }

    #[test]
    fn statements_in_two_formats_are_one_by_account_day_and_both_balances() {
        let swift = side("mt940", "12030000/0000202051", 250);
        let is_one = |other: Side| {
            let found = pairs(std::slice::from_ref(&swift), &[other]);
            assert_eq!(found.ours.len(), found.theirs.len());
            !found.ours.is_empty()
        };
        let camt = || side("camt.053", "DE02120300000000202051", 250);
        assert!(is_one(camt()) && is_one(Side { from: None, ..camt() }));
        for other in [
            side("mt940", "DE02120300000000202051", 250),
            side("camt.053", "DE02120300000000202052", 250),
            side("camt.053", "DE02120300000000202051", 251),
            Side { currency: "USD".to_owned(), ..camt() },
            Side { to: NaiveDate::from_ymd_opt(2026, 11, 19), ..camt() },
            Side { opening: None, ..camt() },
        ] {
            assert!(!is_one(other.clone()), "{other:?}");
        }
        let still = [side("mt940", "12030000/0000202051", 100)];
        let other = [side("camt.053", "DE02120300000000202051", 100)];
        assert_eq!(pairs(&still, &other), Pairs::default(), "of none that moved");
    }
}
