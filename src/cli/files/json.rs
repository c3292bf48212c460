//! `files inspect --json`: an object for each file.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cli::files::{Seen, Unread};
use crate::model::money::Currency;
use crate::model::settlement::{Flags, Problem};
use crate::settlement::ledger::{StatementSum, Sums, Totals};

/// Of a file, with what is known of it. Amounts are whole minor units.
#[derive(Serialize)]
pub struct Body<'a> {
    file: String,
    member: Option<&'a str>,
    format: Option<&'static str>,
    version: Option<&'a str>,
    encoding: Option<&'static str>,
    state: &'static str,
    entries: u64,
    lines: u64,
    not_itemised: u64,
    totals: BTreeMap<&'a str, TotalsBody>,
    booked_totals: BTreeMap<&'a str, TotalsBody>,
    statuses: BTreeMap<&'static str, u64>,
    statements: Vec<StatementBody<'a>>,
    statements_total: u64,
    references: BTreeMap<&'static str, u64>,
    problems: Vec<ProblemBody<'a>>,
    problems_total: u64,
}

#[derive(Serialize)]
struct TotalsBody {
    credit_minor: i128,
    debit_minor: i128,
    credits: u64,
    debits: u64,
}

impl From<&Totals> for TotalsBody {
    fn from(totals: &Totals) -> Self {
        Self {
            credit_minor: totals.credit_minor,
            debit_minor: totals.debit_minor,
            credits: totals.credits,
            debits: totals.debits,
        }
    }
}

#[derive(Serialize)]
struct StatementBody<'a> {
    line: u64,
    account: Option<&'a str>,
    currency: Option<&'a str>,
    id: Option<&'a str>,
    sequence: Option<&'a str>,
    from: Option<String>,
    to: Option<String>,
    finality: &'static str,
    flags: Vec<&'static str>,
    opening_minor: Option<i64>,
    closing_minor: Option<i64>,
    entries: u64,
    ties: Option<bool>,
}

impl<'a> From<&'a StatementSum> for StatementBody<'a> {
    fn from(sum: &'a StatementSum) -> Self {
        let head = &sum.head;
        Self {
            line: head.line,
            account: head.account.as_deref(),
            currency: head.currency.as_ref().map(Currency::code),
            id: head.id.as_deref(),
            sequence: head.sequence.as_deref(),
            from: head.from.map(|day| day.to_string()),
            to: head.to.map(|day| day.to_string()),
            finality: head.finality.as_str(),
            flags: flag_words(head.flags),
            opening_minor: sum.opening.map(|balance| balance.minor),
            closing_minor: sum.closing.map(|balance| balance.minor),
            entries: sum.entries,
            ties: sum.ties,
        }
    }
}

#[derive(Serialize)]
struct ProblemBody<'a> {
    line: u64,
    field: &'a str,
    expected: &'a str,
    found: &'a str,
    severity: &'static str,
}

impl<'a> From<&'a Problem> for ProblemBody<'a> {
    fn from(problem: &'a Problem) -> Self {
        Self {
            line: problem.line,
            field: &problem.field,
            expected: &problem.expected,
            found: &problem.found,
            severity: problem.severity.as_str(),
        }
    }
}

/// The words of a statement's flags.
pub fn flag_words(flags: Flags) -> Vec<&'static str> {
    let all = [
        (flags.copy, "copy"),
        (flags.duplicate, "duplicate"),
        (flags.deletion, "deletion"),
        (flags.correction, "correction"),
        (flags.test, "test"),
    ];
    all.into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect()
}

/// Of what was seen.
pub fn body<'a>(seen: &'a Seen) -> Body<'a> {
    let mut body = Body {
        file: seen.file.display().to_string(),
        member: seen.member.as_deref(),
        format: None,
        version: None,
        encoding: None,
        state: "unreadable",
        entries: 0,
        lines: 0,
        not_itemised: 0,
        totals: BTreeMap::new(),
        booked_totals: BTreeMap::new(),
        statuses: BTreeMap::new(),
        statements: Vec::new(),
        statements_total: 0,
        references: BTreeMap::new(),
        problems: Vec::new(),
        problems_total: 0,
    };
    match &seen.what {
        Ok(found) => {
            body.format = found.format.map(crate::settlement::Format::name);
            body.version = Some(found.version.as_str()).filter(|version| !version.is_empty());
            body.encoding = Some(found.encoding);
            body.state = found.state.as_str();
            add(&mut body, &found.sums);
        }
        Err(Unread { why, .. }) => {
            let (expected, severity) = ("a file that can be read", "error");
            body.problems =
                vec![ProblemBody { line: 0, field: "file", expected, found: why, severity }];
            body.problems_total = 1;
        }
    }
    body
}

fn add<'a>(body: &mut Body<'a>, sums: &'a Sums) {
    body.entries = sums.entries;
    body.lines = sums.lines;
    body.not_itemised = sums.not_itemised;
    body.totals = sums.totals.iter().map(|(c, t)| (c.code(), t.into())).collect();
    body.booked_totals = sums.booked.iter().map(|(c, t)| (c.code(), t.into())).collect();
    body.statuses = sums.statuses.iter().map(|(s, n)| (s.as_str(), *n)).collect();
    body.statements = sums.statements.iter().map(StatementBody::from).collect();
    body.statements_total = sums.statements_total;
    body.references = sums.references.iter().map(|(kind, n)| (kind.as_str(), *n)).collect();
    body.problems = sums.problems.iter().map(ProblemBody::from).collect();
    body.problems_total = sums.problems_total;
}
