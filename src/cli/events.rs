//! `--json`: what a run tells, one object a line.
//!
//! Part of the stable face: types and fields are only ever added, under the schema's name that
//! every line carries. Amounts are whole minor units; instants are RFC 3339 in UTC.

use serde::Serialize;

use crate::cli::failure::SCHEMA;
use crate::cli::files::release::released_body;
use crate::cli::ingest;
use crate::cli::screen::{Sides, sides};
use crate::model::reason::Outcome;
use crate::model::time::{Instant, to_text};
use crate::run::events::{AccountNote, Event, Summary};
use crate::run::match_lines::LinesNote;
use crate::run::setup::{Setup, Window};
use crate::store::records::{Applied, JournalRow, NotApplied};

/// One line.
#[derive(Serialize)]
struct Line<'a, T> {
    schema: &'static str,
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(flatten)]
    body: T,
}

/// The line of an event. It holds no map but with text keys, so that it always serializes.
pub fn line(kind: &str, body: impl Serialize) -> String {
    serde_json::to_string(&Line { schema: SCHEMA, kind, body }).unwrap_or_default()
}

#[derive(Serialize)]
struct RunStart<'a> {
    run_id: &'a str,
    at: String,
    window: Option<WindowBody<'a>>,
    tz: &'a str,
    dry_run: bool,
    version: &'a str,
    config_sha256: &'a str,
    policy_version: &'a str,
}

#[derive(Serialize)]
struct WindowBody<'a> {
    from: Option<String>,
    to: Option<String>,
    tz: &'a str,
    on: &'static str,
    words: &'a str,
}

#[derive(Serialize)]
struct Verdict<'a> {
    table: &'a str,
    txn_id: &'a str,
    account: &'a str,
    tag: &'a str,
    outcome: Outcome,
    reason: &'static str,
    rule: Option<&'a str>,
    text: &'a str,
    from: &'a str,
    to: &'a str,
    psp_txn: Option<&'a str>,
    psp_status: Option<&'a str>,
    kind: &'a str,
    amount_minor: i64,
    currency: &'a str,
    next_check_at: Option<String>,
    handback: Option<u32>,
    evidence_sha256: &'a str,
    planned: &'static str,
}

#[derive(Serialize)]
struct NotAppliedBody<'a> {
    table: &'a str,
    txn_id: &'a str,
    why: &'static str,
    text: &'a str,
    outcome: Option<Outcome>,
    status: Option<&'a str>,
}

#[derive(Serialize)]
struct Abandoned<'a> {
    run_id: &'a str,
    heartbeat_at: String,
    decided: i64,
    released: i64,
}

#[derive(Serialize)]
struct TieOut<'a> {
    currency: &'a str,
    claimed_rows: i64,
    claimed_minor: i128,
    accounted_rows: i64,
    accounted_minor: i128,
    residual_minor: i128,
    tied: bool,
}

impl<'a> TieOut<'a> {
    fn of(sides: &'a Sides) -> Self {
        Self {
            currency: &sides.currency,
            claimed_rows: sides.claimed.rows,
            claimed_minor: sides.claimed.amount_minor,
            accounted_rows: sides.accounted.rows,
            accounted_minor: sides.accounted.amount_minor,
            residual_minor: sides.residual().amount_minor,
            tied: sides.tied,
        }
    }
}

#[derive(Serialize)]
struct RunEnd<'a> {
    run_id: &'a str,
    exit: u8,
    class: &'static str,
    dry_run: bool,
    started_at: String,
    ended_at: String,
    examined: u64,
    cases_new: u64,
    cases_closed: u64,
    cases_open: u64,
    waits: std::collections::BTreeMap<&'a str, u64>,
    totals: &'a [crate::store::records::TotalLine],
    untied: &'a [String],
    not_examined: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    approvals_refused: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<&'a LinesNote>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<&'a std::collections::BTreeMap<&'static str, u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payouts: Option<&'a std::collections::BTreeMap<&'static str, u64>>,
    report: Option<String>,
    audit_head: Option<&'a str>,
}

#[derive(Serialize)]
struct Rows<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<&'a str>,
    rows: usize,
}

#[derive(Serialize)]
struct UnmappedStatus<'a> {
    table: &'a str,
    value: &'a str,
}

#[derive(Serialize)]
struct NotLookedAt<'a> {
    table: &'a str,
    txn_id: &'a str,
    why: &'a str,
}

#[derive(Serialize)]
struct LineMatched<'a> {
    line: String,
    table: &'a str,
    txn_id: &'a str,
}

#[derive(Serialize)]
struct NotExamined<'a> {
    class: &'static str,
    code: u8,
    text: &'a str,
}

/// The lines of an event.
pub fn lines(event: &Event, setup: &Setup) -> Vec<String> {
    match event {
        Event::Started { run_id, window, dry_run, at } => {
            vec![started(run_id, window.as_ref(), *dry_run, *at, setup)]
        }
        Event::Abandoned(run) => {
            let body = Abandoned {
                run_id: &run.id,
                heartbeat_at: to_text(run.heartbeat_at),
                decided: run.decided,
                released: run.released,
            };
            vec![line("run_abandoned", body)]
        }
        Event::UnmappedStatus { table, value } => {
            vec![line("unmapped_status", UnmappedStatus { table, value })]
        }
        Event::Claimed { table, rows } => {
            vec![line("claimed", Rows { table: Some(table), account: None, rows: *rows })]
        }
        Event::Asking { account, rows } => {
            vec![line("asking", Rows { table: None, account: Some(account), rows: *rows })]
        }
        Event::Fetching { .. } => Vec::new(),
        Event::BroughtIn(brought) => vec![line("ingested", ingest::body(brought))],
        Event::Released(note) => vec![line("released", released_body(note))],
        Event::Fetched(note) => vec![line("fetched", &**note)],
        Event::Asked(note) => vec![asked(note)],
        Event::Decided(row) => vec![verdict(row)],
        Event::NotApplied(row) => vec![not_applied(row)],
        Event::NotLookedAt { table, id, why } => {
            vec![line("not_looked_at", NotLookedAt { table, txn_id: id, why })]
        }
        Event::LineMatched { place, table, id } => {
            let body = LineMatched { line: format!("F{place}"), table, txn_id: id };
            vec![line("line_matched", body)]
        }
        Event::NotExamined { exit, text } => {
            let body = NotExamined { class: exit.class(), code: exit.code(), text };
            vec![line("not_examined", body)]
        }
        Event::Ended(summary) => ended(summary),
    }
}

fn started(
    run_id: &str,
    window: Option<&Window>,
    dry_run: bool,
    at: Instant,
    setup: &Setup,
) -> String {
    let tz = setup.business_timezone.name();
    let window = window.map(|window| WindowBody {
        from: window.from.map(to_text),
        to: window.to.map(to_text),
        tz,
        on: window.on.as_str(),
        words: &window.words,
    });
    let body = RunStart {
        run_id,
        at: to_text(at),
        window,
        tz,
        dry_run,
        version: &setup.version,
        config_sha256: &setup.config_sha256,
        policy_version: &setup.policy_version,
    };
    line("run_start", body)
}

fn asked(note: &AccountNote) -> String {
    line("asked", note)
}

fn verdict(row: &JournalRow) -> String {
    let body = Verdict {
        table: &row.table,
        txn_id: &row.key,
        account: &row.account,
        tag: &row.tag,
        outcome: row.outcome,
        reason: row.reason.as_str(),
        rule: row.rule.as_deref(),
        text: &row.text,
        from: &row.status_before,
        to: &row.status_after,
        psp_txn: row.psp_reference.as_deref(),
        psp_status: row.psp_status.as_deref(),
        kind: &row.kind,
        amount_minor: row.amount_minor,
        currency: &row.currency,
        next_check_at: row.next_check_at.map(to_text),
        handback: row.handback_number,
        evidence_sha256: &row.evidence_sha256,
        planned: if row.applied == Applied::Withheld { "withheld" } else { "yes" },
    };
    line("verdict", body)
}

fn not_applied(row: &NotApplied) -> String {
    let body = NotAppliedBody {
        table: &row.table,
        txn_id: &row.key,
        why: row.why(),
        text: &row.text,
        outcome: row.reason.map(|_to_a_person| Outcome::Review),
        status: row.status.as_deref(),
    };
    line("not_applied", body)
}

fn ended(summary: &Summary) -> Vec<String> {
    let both = sides(&summary.totals);
    let mut lines: Vec<String> =
        both.iter().map(|sides| line("tieout", TieOut::of(sides))).collect();
    let body = RunEnd {
        run_id: &summary.run_id,
        exit: summary.exit.code(),
        class: summary.exit.class(),
        dry_run: summary.dry_run,
        started_at: to_text(summary.started_at),
        ended_at: to_text(summary.ended_at),
        examined: summary.decided,
        cases_new: summary.cases.0,
        cases_closed: summary.cases.1,
        cases_open: summary.cases.2,
        waits: summary.waits.iter().map(|(reason, rows)| (reason.as_str(), *rows)).collect(),
        totals: &summary.totals,
        untied: &summary.untied,
        not_examined: &summary.not_examined,
        approvals_refused: Some(summary.approvals_refused).filter(|refused| *refused > 0),
        lines: Some(&summary.lines).filter(|lines| lines.looked_at > 0),
        compared: Some(&summary.compared).filter(|compared| !compared.is_empty()),
        payouts: Some(&summary.payouts).filter(|payouts| !payouts.is_empty()),
        report: summary.report.as_ref().map(|dir| dir.display().to_string()),
        audit_head: summary.audit_head.as_deref(),
    };
    lines.push(line("run_end", body));
    lines
}
