//! What receivers read of a run: counts, reasons, account names, ids. No row, no text of anybody.

use crate::exit::Exit;
use crate::model::count::counted;
use crate::model::reason::Outcome;
use crate::model::time::{span_text, to_short_text};
use crate::monitor::conditions::class_of;
use crate::monitor::facts::Facts;
use crate::store::watch::{Alert, Turn};

/// What a dead-man's switch keeps of a ping.
const PING_MAX: usize = 8 * 1024;

/// The summary of a ping.
pub fn ping(facts: &Facts<'_>) -> String {
    let tally = facts.tally;
    let mut lines = vec![format!(
        "run {} exit {} ({}) scope {}",
        facts.run_id,
        facts.exit.code(),
        facts.exit.class(),
        facts.scope
    )];
    if let Some(started_at) = tally.started_at {
        let span = span_text(facts.ended_at - started_at);
        lines.push(format!("from {} for {span}", to_short_text(started_at)));
    }
    for outcome in Outcome::ALL {
        let of = tally.decided.iter().filter(|((_, decided), _)| *decided == outcome);
        let rows: u64 = of.map(|(_, rows)| rows).sum();
        lines.push(format!("{}: {rows}", outcome.screen()));
    }
    lines.extend(tally.reasons.iter().map(|(reason, rows)| format!("reason {reason}: {rows}")));
    if let Some(summary) = facts.summary {
        let (opened, closed, open) = summary.cases;
        lines.push(format!("cases: {opened} new, {closed} closed, {open} open"));
        lines.push(format!("untied currencies: {}", summary.untied.len()));
    }
    for note in tally.accounts.values() {
        let (name, rows, answered) = (&note.account, note.rows, note.answered);
        let rows = counted(rows, "row", "rows");
        lines.push(format!("{name}: {answered} of {rows} answered, {} asked", note.requests));
    }
    for account in &facts.silent {
        lines.push(format!("{account}: gave no answer when it was asked last; its rows wait"));
    }
    if tally.not_examined > 0 {
        let things = match tally.not_examined {
            1 => "1 thing".to_owned(),
            several => format!("{several} things"),
        };
        lines.push(format!("not examined: {things}; see `tieout runs show`"));
    }
    cut(lines.join("\n"), PING_MAX)
}

/// The most that is kept of a text, cut between letters.
fn cut(mut text: String, most: usize) -> String {
    while text.len() > most {
        text.pop();
    }
    text
}

/// The one line above a digest.
pub fn headline(facts: &Facts<'_>, alerts: &[Alert]) -> String {
    let count = |turn| alerts.iter().filter(|alert| alert.turn == turn).count();
    let scope = facts.scope;
    match (count(Turn::Raised), count(Turn::Resolved)) {
        (raised, 0) => format!("tieout {scope}: {raised} raised"),
        (0, resolved) => format!("tieout {scope}: {resolved} resolved"),
        (raised, resolved) => format!("tieout {scope}: {raised} raised, {resolved} resolved"),
    }
}

/// The lines of a digest.
pub fn digest(facts: &Facts<'_>, alerts: &[Alert]) -> Vec<String> {
    let mut lines: Vec<String> = alerts.iter().map(line).collect();
    lines.push(format!(
        "run {} exit {} ({}); tieout runs show {}",
        facts.run_id,
        facts.exit.code(),
        facts.exit.class(),
        facts.run_id
    ));
    lines
}

fn line(alert: &Alert) -> String {
    let since = to_short_text(alert.raised_at);
    let (name, text) = (&alert.condition, &alert.text);
    match alert.turn {
        Turn::Raised => {
            let class = class_of(name).class();
            format!("RAISED {name} ({class}): {text} (since {since})")
        }
        Turn::Resolved => format!("RESOLVED {name}: it held since {since}: {text}"),
    }
}

/// PagerDuty's word for a class.
pub fn severity(class: Exit) -> &'static str {
    match class {
        Exit::Internal | Exit::Integrity | Exit::Untied => "critical",
        Exit::Trust | Exit::Auth | Exit::Config | Exit::Schema | Exit::Database => "error",
        Exit::Usage
        | Exit::Locked
        | Exit::Interrupted
        | Exit::Terminated
        | Exit::Partial
        | Exit::Attention => "warning",
        Exit::Ok => "info",
    }
}
