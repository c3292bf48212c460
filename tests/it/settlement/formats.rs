//! What each fixture tells, held against golden texts: every reference, amount and problem.

use tieout::model::settlement::{Entry, Line, Statement, StatementEnd};
use tieout::settlement::Item;
use tieout::settlement::ledger::State;

use super::{FIXTURES, fixture, inspected, items};
use crate::support::golden::golden;

#[test]
fn every_fixture_tells_what_it_told() {
    for name in FIXTURES {
        let bytes = fixture(name);
        let found = inspected(&bytes);
        assert_eq!(found.state, State::Ok, "{name}: {:?}", found.sums.problems);
        let known = found.format.and_then(tieout::settlement::Format::known).unwrap();
        let mut text = format!("{} {}\n", known.name, found.version);
        for item in items(&bytes) {
            text.push_str(&told(&item));
            text.push('\n');
        }
        golden("fixtures/settlement/told", name, &text);
    }
}

fn told(item: &Item) -> String {
    match item {
        Item::Statement(statement) => told_statement(statement),
        Item::Entry(entry) => told_entry(entry),
        Item::Line(line) => told_line(line),
        Item::Control(control) => format!(
            "  control {}: {} {} against {:?}",
            control.line, control.field, control.expected, control.found
        ),
        Item::Problem(problem) => format!("  {}: {problem}", problem.severity.as_str()),
        Item::StatementEnd(end) => told_end(end),
    }
}

fn told_statement(statement: &Statement) -> String {
    format!(
        "statement {} at {}: {} {} id={} no={} {} {} {} {:?}",
        statement.number,
        statement.line,
        statement.account.as_deref().unwrap_or("-"),
        statement.currency.map_or("-".to_owned(), |c| c.to_string()),
        statement.id.as_deref().unwrap_or("-"),
        statement.sequence.as_deref().unwrap_or("-"),
        day(statement.from),
        day(statement.to),
        statement.finality.as_str(),
        statement.flags,
    )
}

fn told_end(end: &StatementEnd) -> String {
    let balance = |of: Option<tieout::model::settlement::Balance>| {
        of.map_or("-".to_owned(), |b| format!("{} {}@{}", b.minor, b.currency, day(b.date)))
    };
    format!(
        "end at {}: {} to {} {:?}",
        end.line,
        balance(end.opening),
        balance(end.closing),
        end.tie
    )
}

fn told_entry(entry: &Entry) -> String {
    format!(
        " entry {} at {}: {} {} {}{} {} booked={} value={} ref={} code={} {}",
        entry.number,
        entry.line,
        entry.direction.as_str(),
        entry.minor,
        entry.currency,
        if entry.reversal { " reversal" } else { "" },
        entry.status.as_str(),
        day(entry.booked_on),
        day(entry.value_on),
        entry.bank_reference.as_deref().unwrap_or("-"),
        entry.type_code.as_deref().unwrap_or("-"),
        entry.batch.as_ref().map_or("-".to_owned(), |batch| format!("{batch:?}")),
    )
}

fn told_line(line: &Line) -> String {
    let tags: Vec<String> =
        line.tags.iter().map(|tag| format!("{}={:?}", tag.kind.as_str(), tag.text)).collect();
    format!(
        "  line {}.{} at {}+{}: {} {} {} {}of={} why={} code={} [{}]",
        line.entry,
        line.number,
        line.line,
        line.byte,
        line.direction.as_str(),
        line.minor.map_or("-".to_owned(), |minor| minor.to_string()),
        line.currency,
        if line.itemised { "" } else { "(several) " },
        line.original_reference.as_deref().unwrap_or("-"),
        line.return_reason.as_deref().unwrap_or("-"),
        line.type_code.as_deref().unwrap_or("-"),
        tags.join(", "),
    )
}

fn day(day: Option<chrono::NaiveDate>) -> String {
    day.map_or("-".to_owned(), |day| day.to_string())
}
