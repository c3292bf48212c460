//! `tieout rules stats`: what each rule decided, and what no rule knew.

use std::collections::BTreeSet;

use serde_json::json;

use crate::cli::args::Common;
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::out;
use crate::cli::rules::Stats;
use crate::config::Config;
use crate::exit::Exit;
use crate::model::count::counted;
use crate::model::time::{Instant, parse_ago, to_short_text, to_text};
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::replay::{ReplayDriver, RuleCount};

/// The instant so long ago.
pub fn since(text: &str, now: Instant) -> Result<Instant, Failure> {
    let at = parse_ago(text, now).filter(|at| *at < now);
    at.ok_or_else(|| {
        Failure::usage(format!("--since {text}: expected a span such as 24h, 30d or 52w"))
    })
}

/// Runs the command.
pub async fn run(
    options: &Stats,
    common: &Common,
    config: &Config,
    db: &Database,
) -> Result<Exit, Failure> {
    let now = db.now().await.map_err(|e| Failure::store(&e))?;
    let since = since(&options.since, now)?;
    let counts = db.rule_counts(since).await.map_err(|e| Failure::store(&e))?;
    let known: BTreeSet<&str> = config.rules.rules.iter().map(|rule| rule.id.as_str()).collect();
    let is_known = |count: &RuleCount| count.rule.as_deref().is_some_and(|id| known.contains(id));
    if common.json {
        for count in &counts {
            out::stdout(&line("rule_stats", body(count, is_known(count))));
        }
        return Ok(Exit::Ok);
    }
    if common.quiet {
        return Ok(Exit::Ok);
    }
    out::stdout(&format!("since {}", to_short_text(since)));
    out::stdout("decisions     rows  last                  what came of it");
    let mut above = None;
    for count in &counts {
        if above != Some(&count.rule) {
            let gone = count.rule.is_some() && !is_known(count);
            let gone = if gone { ", not in force now" } else { "" };
            out::stdout(&format!("{}{gone}", count.rule.as_deref().unwrap_or("no rule knew it")));
            above = Some(&count.rule);
        }
        out::stdout(&format!(
            "{:>9} {:>8}  {}  {} · {}",
            count.decisions,
            count.rows,
            to_short_text(count.last_at),
            count.outcome.screen(),
            count.reason.as_str()
        ));
    }
    let used: BTreeSet<&str> = counts.iter().filter_map(|count| count.rule.as_deref()).collect();
    let idle = known.iter().filter(|id| !used.contains(*id)).count();
    let rules = counted(known.len(), "rule", "rules");
    out::stdout(&format!("{idle} of {rules} decided nothing since"));
    Ok(Exit::Ok)
}

fn body(count: &RuleCount, known: bool) -> serde_json::Value {
    json!({
        "rule": count.rule,
        "in_force": known,
        "outcome": count.outcome,
        "reason": count.reason.as_str(),
        "decisions": count.decisions,
        "rows": count.rows,
        "last_at": to_text(count.last_at),
    })
}
