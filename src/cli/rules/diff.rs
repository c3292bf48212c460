//! `tieout rules diff`: what was decided, and the open cases, by other rules.
//!
//! Each stored decision is made twice from its stored inputs, by the rules in force and by the
//! other ones, under the same settings and at the same time: what differs, the rules differ in.
//! Nothing is asked, written or moved, and no more than a page is held at once.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::cli::args::Common;
use crate::cli::cases::amount_text;
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::meter::Counter;
use crate::cli::rules::{Diff, stats};
use crate::cli::{out, page};
use crate::config::Config;
use crate::decide::decision::Want;
use crate::decide::replay::WouldBe;
use crate::decide::rules::RuleSet;
use crate::exit::Exit;
use crate::model::count::counted;
use crate::model::reason::{Outcome, Reason};
use crate::model::time::{Instant, to_short_text, to_text};
use crate::psp::rules::{RuleFile, combine};
use crate::run::replay::{Replayed, Replays};
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::records::StoredInputs;
use crate::store::replay::{Decided, ReplayDriver};

/// Decisions read at once, each with its evidence.
const PAGE: i64 = 200;

/// Runs the command.
pub async fn run(
    options: &Diff,
    files: &[RuleFile],
    common: &Common,
    config: &Config,
    db: &Database,
) -> Result<Exit, Failure> {
    let other = combine(files);
    let now = db.now().await.map_err(|e| Failure::store(&e))?;
    let since = stats::since(&options.since, now)?;
    let setup = config.setup();
    let mut replays =
        Both { today: Replays::by(&setup, &setup.rules), other: Replays::by(&setup, &other) };
    let counter = Counter::new(common);
    let mut told = Told { common, counter, shown: options.limit, tally: Tally::default() };
    let mut after = 0;
    loop {
        let page = db.open_row_cases(after, PAGE).await.map_err(|e| Failure::store(&e))?;
        let Some((last, _)) = page.last() else { break };
        after = *last;
        for (number, decided) in &page {
            told.take(Some(*number), decided, replays.compare(decided), &other);
        }
        told.counter.show("open cases replayed:", told.tally.cases);
    }
    let mut after = None;
    loop {
        let page = db.decided_since(since, after, PAGE).await.map_err(|e| Failure::store(&e))?;
        let Some((last, _)) = page.last() else { break };
        after = Some(last.clone());
        for (_, decided) in &page {
            told.take(None, decided, replays.compare(decided), &other);
        }
        told.counter.show("decisions replayed:", told.tally.decisions);
    }
    let Told { counter, tally, .. } = told;
    drop(counter);
    tally.tell(common, since, &config.rules.version, &other.version);
    Ok(Exit::Ok)
}

/// What a decision is by both sets of rules.
enum Compared {
    /// The same.
    Same,
    /// Another one: by today's rules, and by the other ones.
    Changed(Box<(WouldBe, WouldBe)>),
    /// Its inputs are lost, or of a version that is not read here.
    Unreadable,
    /// Its account is not configured.
    Unknown,
}

/// Decides stored inputs by both sets of rules.
struct Both<'a> {
    today: Replays<'a>,
    other: Replays<'a>,
}

impl Both<'_> {
    fn compare(&mut self, decided: &Decided) -> Compared {
        let stored = decided.evidence.as_deref();
        let stored = stored.and_then(|text| serde_json::from_str::<StoredInputs>(text).ok());
        let Some(stored) = stored else { return Compared::Unreadable };
        match (self.today.would_be(&stored), self.other.would_be(&stored)) {
            (Replayed::Said(today), Replayed::Said(other)) if today != other => {
                Compared::Changed(Box::new((*today, *other)))
            }
            (Replayed::UnknownAccount, _) => Compared::Unknown,
            _same => Compared::Same,
        }
    }
}

#[derive(Default)]
struct Tally {
    decisions: u64,
    cases: u64,
    decisions_changed: u64,
    cases_changed: u64,
    unreadable: u64,
    unknown: u64,
    not_shown: u64,
    /// How many change from what to what.
    kinds: BTreeMap<(String, String), u64>,
}

struct Told<'a> {
    common: &'a Common,
    counter: Counter,
    /// So many more are shown.
    shown: u64,
    tally: Tally,
}

fn one_more(count: &mut u64) {
    *count = count.saturating_add(1);
}

impl Told<'_> {
    fn take(&mut self, case: Option<i64>, decided: &Decided, found: Compared, other: &RuleSet) {
        let tally = &mut self.tally;
        match found {
            Compared::Unreadable => return one_more(&mut tally.unreadable),
            Compared::Unknown => return one_more(&mut tally.unknown),
            Compared::Same | Compared::Changed(_) => {}
        }
        let (seen, changed) = match case {
            Some(_) => (&mut tally.cases, &mut tally.cases_changed),
            None => (&mut tally.decisions, &mut tally.decisions_changed),
        };
        one_more(seen);
        let Compared::Changed(both) = found else { return };
        one_more(changed);
        let (today, then) = *both;
        one_more(tally.kinds.entry((end(&today), becomes(&then))).or_default());
        if self.shown == 0 {
            return one_more(&mut tally.not_shown);
        }
        self.shown = self.shown.saturating_sub(1);
        if self.common.json {
            out::stdout(&line("rule_change", body(case, decided, &today, &then)));
        } else if !self.common.quiet {
            let texts = lines(case, decided, &today, &then, other);
            self.counter.pause(|| texts.iter().for_each(|text| page::say(text)));
        }
    }
}

impl Tally {
    fn tell(&self, common: &Common, since: Instant, today: &str, other: &str) {
        let tally = self;
        if common.json {
            let kinds = tally.kinds.iter();
            let changes: Vec<Value> = kinds
                .map(|((from, to), count)| json!({ "from": from, "to": to, "count": count }))
                .collect();
            let body = json!({
                "since": to_text(since),
                "rules_today": today,
                "rules_other": other,
                "decisions": tally.decisions,
                "decisions_changed": tally.decisions_changed,
                "cases": tally.cases,
                "cases_changed": tally.cases_changed,
                "unreadable": tally.unreadable,
                "unknown_account": tally.unknown,
                "changes": changes,
            });
            return out::stdout(&line("rules_diff", body));
        }
        if common.quiet {
            return;
        }
        page::say(&format!(
            "replayed {}, and {} since {}",
            counted(tally.cases, "open case", "open cases"),
            counted(tally.decisions, "decision", "decisions"),
            to_short_text(since)
        ));
        page::say(&format!(
            "rules {other} instead of {today} would change {} and {}; nothing was moved",
            counted(tally.cases_changed, "case", "cases"),
            counted(tally.decisions_changed, "decision", "decisions")
        ));
        if other == today {
            page::say(
                "these rules are in force already, so that there is nothing to compare: `tieout \
                 cases kick --fixed-by-rules --dry-run` shows what they make of the open cases",
            );
        }
        for ((from, to), count) in &tally.kinds {
            page::say(&format!("  {count:>6}  {from} → {to}"));
        }
        if tally.not_shown > 0 {
            page::say(&format!("and {} more, not shown: raise --limit", tally.not_shown));
        }
        if tally.unreadable > 0 {
            let text = "not replayed: the evidence was pruned, or another version wrote it";
            page::say(&format!("{} {text}", counted(tally.unreadable, "was", "were")));
        }
        if tally.unknown > 0 {
            let text = "not replayed: the account is not configured any more";
            page::say(&format!("{} {text}", counted(tally.unknown, "was", "were")));
        }
    }
}

fn end(would_be: &WouldBe) -> String {
    ended(would_be.outcome, would_be.reason)
}

/// Where the other rules lead, and what is lacking at most.
fn becomes(then: &WouldBe) -> String {
    match &then.afresh {
        Some(afresh) => format!("{}, once asked afresh", end(afresh)),
        None => end(then),
    }
}

fn ended(outcome: Outcome, reason: Reason) -> String {
    format!("{} · {}", outcome.screen(), reason.as_str())
}

fn lines(
    case: Option<i64>,
    decided: &Decided,
    today: &WouldBe,
    then: &WouldBe,
    other: &RuleSet,
) -> Vec<String> {
    let case = case.map_or_else(|| "decided".to_owned(), |number| format!("C-{number}"));
    let mut texts = vec![
        format!(
            "{case}  {}/{}  {}  {}",
            decided.table,
            decided.key,
            amount_text(&decided.currency, decided.amount_minor),
            to_short_text(decided.at)
        ),
        format!("    {} → {}", end(today), becomes(then)),
        match then.afresh {
            Some(_) => format!("    until then {}: {}", end(then), then.text),
            None => format!("    {}", then.text),
        },
    ];
    let recorded = (decided.outcome, decided.reason);
    if recorded != (today.outcome, today.reason) {
        texts.push(format!("    recorded then: {}", ended(decided.outcome, decided.reason)));
    }
    let last = then.afresh.as_deref().unwrap_or(then);
    let rule = last.rule.as_ref();
    let rule = rule.and_then(|id| other.rules.iter().find(|rule| rule.id == *id));
    if let Some(rule) = rule.filter(|rule| rule.effect.outcome() != last.outcome) {
        let says = rule.effect.outcome().as_str();
        texts.push(format!("    rule {} says {says}; that is not proven yet", rule.id));
    }
    if let Some(wants) = then.wants.filter(|_| then.afresh.is_none()) {
        texts.push(format!("    a run asks first for {}, and decides then", wanted(wants)));
    }
    if let Some(retry) = last.retry {
        let from = last.not_before.map(|at| format!(", not before {}", to_short_text(at)));
        texts.push(format!("    to be charged by {retry}{}", from.unwrap_or_default()));
    }
    texts
}

fn wanted(want: Want) -> &'static str {
    match want {
        Want::List => "the whole list of its window",
        Want::Search => "the search by its tag",
        Want::Siblings => "what its siblings come to",
    }
}

fn body(case: Option<i64>, decided: &Decided, today: &WouldBe, then: &WouldBe) -> Value {
    json!({
        "case_id": case.map(|number| format!("C-{number}")),
        "table": decided.table,
        "txn_id": decided.key,
        "at": to_text(decided.at),
        "currency": decided.currency,
        "amount_minor": decided.amount_minor,
        "recorded": {
            "outcome": decided.outcome,
            "reason": decided.reason.as_str(),
            "rule": decided.rule,
        },
        "today": side(today),
        "other": side(then),
    })
}

fn side(would_be: &WouldBe) -> Value {
    json!({
        "outcome": would_be.outcome,
        "reason": would_be.reason.as_str(),
        "rule": would_be.rule,
        "text": would_be.text,
        "retry": would_be.retry,
        "not_before": would_be.not_before.map(to_text),
        "asks_first": would_be.wants.map(wanted),
        "once_asked_afresh": would_be.afresh.as_ref().map(|afresh| afresh.outcome),
    })
}
