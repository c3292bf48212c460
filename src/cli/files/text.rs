//! `files inspect` for people: what a file is, what it holds, whether it ties and if not, where.

use crate::cli::files::json::flag_words;
use crate::cli::files::{Seen, folded};
use crate::cli::page::one_line;
use crate::model::money::{Currency, grouped_text};
use crate::model::settlement::{Balance, EntryStatus, Severity};
use crate::settlement::ledger::{Inspection, State, StatementSum, Sums, Totals};

/// So many statements and problems are shown; `--json` has more.
const SHOWN: usize = 20;

/// All of a file.
pub fn lines(seen: &Seen, found: &Inspection) -> Vec<String> {
    let mut rows = vec![name(seen)];
    rows.extend(folded("  ", &headline(found)));
    if found.state != State::UnknownFormat {
        rows.extend(statements(&found.sums));
        rows.extend(totals(&found.sums));
        rows.extend(references(&found.sums));
    }
    rows.extend(problems(&found.sums, |_any| true));
    rows.push(String::new());
    rows
}

/// Only what is wrong with it.
pub fn wrong(seen: &Seen, found: &Inspection) -> Vec<String> {
    let mut rows = vec![name(seen)];
    rows.extend(folded("  ", &headline(found)));
    let is_unknown = found.state == State::UnknownFormat;
    rows.extend(problems(&found.sums, |severity| is_unknown || severity == Severity::Error));
    rows
}

fn name(seen: &Seen) -> String {
    let file = one_line(&seen.file.display().to_string());
    match &seen.member {
        Some(member) => format!("{file} · {}", one_line(member)),
        None => file,
    }
}

fn headline(found: &Inspection) -> String {
    let Some(format) = found.format else {
        return "no format that is read here was recognised; nothing was read. If it is one, \
                name it with --format"
            .to_owned();
    };
    let version = if found.version.is_empty() { "" } else { &format!(" {}", found.version) };
    let state = match found.state {
        State::Ok => whole(&found.sums),
        _bad => "quarantined: none of it may be used before a person has looked",
    };
    let title = format.known().map_or("described as", |known| known.title);
    format!("{title}{version} · {} · {state}", found.encoding)
}

/// What shows that a file is whole, of one that has no error.
fn whole(sums: &Sums) -> &'static str {
    let ties = |wanted| sums.statements.iter().any(|sum| sum.ties == Some(wanted));
    if ties(false) {
        "read to its end, but what would show that it is whole is lacking"
    } else if ties(true) || sums.controls > 0 {
        "ok: read to its end, and its own sums hold"
    } else {
        "ok: read to its end; it has no sum to tie it by"
    }
}

fn statements(sums: &Sums) -> Vec<String> {
    let mut rows = Vec::new();
    for sum in sums.statements.iter().take(SHOWN) {
        rows.extend(statement(sum));
    }
    let hidden = sums.statements_total.saturating_sub(u64::try_from(SHOWN).unwrap_or(0));
    if hidden > 0 {
        let listed = listed(sums.statements.len(), sums.statements_total);
        rows.push(format!("  … and {} more; {listed}", count(hidden.into())));
    }
    rows
}

/// What `--json` has of so many.
fn listed(listed: usize, total: u64) -> String {
    let of = u64::try_from(listed).unwrap_or(u64::MAX);
    if of < total { format!("--json lists the first {listed}") } else { "--json lists them".into() }
}

fn statement(sum: &StatementSum) -> Vec<String> {
    let head = &sum.head;
    let account = head.account.as_deref().unwrap_or("an account that is not named");
    let mut words = vec![account.to_owned()];
    words.extend(head.currency.map(|currency| currency.code().to_owned()));
    words.extend(match (head.from, head.to) {
        (Some(from), Some(to)) if from != to => Some(format!("{from} … {to}")),
        (from, to) => from.or(to).map(|day| day.to_string()),
    });
    words.extend(head.sequence.as_ref().map(|number| format!("no. {number}")));
    words.push(head.finality.as_str().to_owned());
    words.extend(flag_words(head.flags).into_iter().map(str::to_owned));
    let mut rows = folded("  ", &words.join(" · "));
    let ties = match sum.ties {
        Some(true) => "ties",
        Some(false) => "DOES NOT TIE",
        None => "nothing to tie",
    };
    let entries = format!("{} entries", count(sum.entries.into()));
    let shown = match (sum.opening, sum.closing) {
        (None, None) => format!("{entries} · {ties}"),
        (opening, closing) => {
            format!("{} + {entries} = {} · {ties}", balance(opening), balance(closing))
        }
    };
    rows.extend(folded("    ", &shown));
    rows
}

fn balance(balance: Option<Balance>) -> String {
    let known = |b: Balance| grouped_text(b.minor.into(), b.currency.exponent());
    balance.map_or_else(|| "no balance".to_owned(), known)
}

fn totals(sums: &Sums) -> Vec<String> {
    let counted = format!("{} entries, {} lines", count(sums.entries.into()), lines_of(sums));
    let mut rows = folded("  ", &counted);
    for (currency, totals) in &sums.totals {
        let money = |minor| amount(minor, *currency);
        rows.extend(folded(
            "    ",
            &format!(
                "{currency}  in {} ({}) · out {} ({}) · net {}",
                money(totals.credit_minor),
                count(totals.credits.into()),
                money(totals.debit_minor),
                count(totals.debits.into()),
                money(totals.net_minor()),
            ),
        ));
        rows.extend(booked(sums, *currency, totals));
    }
    rows.extend(unbooked(sums));
    rows
}

/// What of the totals was booked, where that is not all of them.
fn booked(sums: &Sums, currency: Currency, all: &Totals) -> Vec<String> {
    let own = sums.booked.get(&currency).copied().unwrap_or_default();
    if own == *all {
        return Vec::new();
    }
    let money = |minor| amount(minor, currency);
    let (credits, debits) = (count(own.credits.into()), count(own.debits.into()));
    let said = format!(
        "of it booked: in {} ({credits}) · out {} ({debits}) · net {}",
        money(own.credit_minor),
        money(own.debit_minor),
        money(own.net_minor()),
    );
    folded("         ", &said)
}

/// How many entries were not booked.
fn unbooked(sums: &Sums) -> Vec<String> {
    let others = sums.statuses.iter().filter(|(status, _)| **status != EntryStatus::Booked);
    let others: Vec<String> =
        others.map(|(status, n)| format!("{} {}", count((*n).into()), status.as_str())).collect();
    // What holds no amounts at all is an answer, and not money.
    if others.is_empty() || sums.totals.is_empty() {
        return Vec::new();
    }
    folded("    ", &format!("not booked: {}", others.join(", ")))
}

fn lines_of(sums: &Sums) -> String {
    match sums.not_itemised {
        0 => count(sums.lines.into()),
        some => {
            format!("{} ({} for several payments)", count(sums.lines.into()), count(some.into()))
        }
    }
}

fn references(sums: &Sums) -> Vec<String> {
    if sums.references.is_empty() {
        return Vec::new();
    }
    let kinds = sums.references.iter();
    let kinds: Vec<String> =
        kinds.map(|(kind, n)| format!("{} {}", kind.as_str(), count((*n).into()))).collect();
    folded("  references: ", &kinds.join(", "))
}

fn problems(sums: &Sums, which: impl Fn(Severity) -> bool) -> Vec<String> {
    let mut rows = Vec::new();
    let shown = sums.problems.iter().filter(|problem| which(problem.severity));
    for problem in shown.take(SHOWN) {
        let at = if problem.line == 0 { String::new() } else { format!("line {}: ", problem.line) };
        let text = format!(
            "{at}{}: expected {}, found {}",
            problem.field, problem.expected, problem.found
        );
        rows.extend(folded(&format!("  {}: ", problem.severity.as_str()), &text));
    }
    let shown = u64::try_from(SHOWN).unwrap_or(0);
    let hidden = sums.problems_total.saturating_sub(shown);
    if hidden > 0 {
        let listed = listed(sums.problems.len(), sums.problems_total);
        rows.push(format!("  … and {} more problems; {listed}", count(hidden.into())));
    }
    rows
}

fn amount(minor: i128, currency: Currency) -> String {
    grouped_text(minor, currency.exponent())
}

fn count(number: i128) -> String {
    grouped_text(number, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_listed_is_not_said_to_be() {
        assert_eq!(listed(200, 200), "--json lists them");
        assert_eq!(listed(200, 5_000), "--json lists the first 200");
    }
}
