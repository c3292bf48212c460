//! `tieout cases kick`: open cases decided again by today's rules, with fresh evidence.
//!
//! It opens a run of its own, with every gate of one. What the PSP says nothing about stays as it
//! was; what is still a person's goes back into its case.

use std::collections::{BTreeMap, HashMap};
use std::io::IsTerminal;

use serde_json::json;

use crate::cli::args::{Common, When, sentence, word, yes_or_no};
use crate::cli::cases::decide::may_carry_out;
use crate::cli::cases::select::{Outline, SAMPLES};
use crate::cli::cases::{amount_text, number_of};
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::teller::Teller;
use crate::cli::watched::watched;
use crate::cli::{database, out, page, person, screen};
use crate::config::{Config, names};
use crate::exit::Exit;
use crate::model::count::{counted, some_of};
use crate::model::near::nearest;
use crate::model::reason::{Outcome, Reason};
use crate::model::time::to_short_text;
use crate::model::transaction::RowKey;
use crate::run::events::{Event, Summary};
use crate::run::kick::{Chosen, Kick, Kicked, Which, choose};
use crate::run::setup::Setup;
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::effects::map_of;
use crate::store::inspect::Inspect;
use crate::store::records::{CaseRow, JournalRow};

/// Options of `cases kick`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// These cases: C-1043 or 1043
    #[arg(value_name = "CASE")]
    cases: Vec<String>,
    /// Every open case of this reason
    #[arg(long, value_name = "REASON", env = names::KICK_REASON)]
    reason: Option<String>,
    /// Every open case of which today's rules would make something else
    #[arg(long, env = names::KICK_FIXED_BY_RULES, value_parser = yes_or_no)]
    fixed_by_rules: bool,
    /// Every open case
    #[arg(long, env = names::KICK_ALL, value_parser = yes_or_no)]
    all: bool,
    /// At most so many, those first that were looked at longest ago
    #[arg(
        long, value_name = "CASES", env = names::KICK_LIMIT, default_value_t = 500,
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    limit: u32,
    /// Why, for the records
    #[arg(long, value_name = "TEXT", env = names::KICK_WHY)]
    why: Option<String>,
    /// Ask and decide, say what would change, and write nothing
    #[arg(long, env = names::KICK_DRY_RUN, value_parser = yes_or_no)]
    dry_run: bool,
    /// Do not ask before several are decided
    #[arg(long, env = names::KICK_YES, value_parser = yes_or_no)]
    yes: bool,
}

/// Runs the command.
pub fn run(args: &Args, common: &Common, config: &Config) -> Result<Exit, Failure> {
    let (which, asked) = which(args)?;
    let why = why(args, &asked)?;
    let setup = config.setup();
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let mut found = (Chosen::default(), None);
    database::with_dry(config, args.dry_run, async |db| {
        if !args.dry_run && !may_carry_out(db).await? {
            return Err(is_for_runs());
        }
        let chosen = choose(db, &setup, &which, limit).await.map_err(|e| Failure::store(&e))?;
        let user = db.rights().await.map_err(|e| Failure::store(&e))?.role;
        found = (chosen, user);
        Ok(Exit::Ok)
    })?;
    let (chosen, user) = found;
    refuse(&which, &chosen)?;
    if !common.quiet {
        left_out(&chosen, args.limit).iter().for_each(|text| page::warn(text));
    }
    if chosen.cases.is_empty() {
        return Ok(none(&asked, &chosen, (args.dry_run, common)));
    }
    confirm(args, &chosen.cases)?;
    let by = match user {
        Some(user) => format!("{} (database user {user})", person::name()),
        None => person::name(),
    };
    let kick = Kick { by, why, asked, cases: chosen.cases };
    kicked(&kick, args.dry_run, common, config, &setup)
}

/// A login for people needs no more rights: it is the wrong one for a run, and meant to be. What a
/// run would be refused first names a right of it, which nobody is to grant here.
fn is_for_runs() -> Failure {
    let text = "this login may not run, and a kick is a run; nothing was done";
    let hint = "kick as the login of the runs, or on the page of `tieout serve`; docs/security.md \
                tells who may what, and --dry-run needs to read alone";
    Failure::new(Exit::Auth, text, hint)
}

/// What the words mean, and the words for the records. One way of choosing, never two.
fn which(args: &Args) -> Result<(Which, String), Failure> {
    let reason = word(args.reason.as_ref());
    let cases: Vec<&String> = args.cases.iter().filter(|case| !case.is_empty()).collect();
    let ways = [!cases.is_empty(), reason.is_some(), args.fixed_by_rules, args.all];
    if ways.iter().filter(|given| **given).count() != 1 {
        return Err(Failure::usage(
            "expected one of: cases such as C-1043, --reason REASON, --fixed-by-rules, --all",
        ));
    }
    if let Some(reason) = reason {
        let known = Reason::ALL.iter().map(|reason| reason.as_str());
        let near = nearest(&reason, known);
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        return match Reason::parse(&reason) {
            Some(known) => Ok((Which::Reason(known), format!("--reason {reason}"))),
            None => {
                Err(Failure::usage(format!("--reason {reason}: there is no such reason{near}")))
            }
        };
    }
    if args.fixed_by_rules {
        return Ok((Which::FixedByRules, "--fixed-by-rules".to_owned()));
    }
    if args.all {
        return Ok((Which::All, "--all".to_owned()));
    }
    let numbers: Result<Vec<i64>, Failure> = cases.iter().map(|case| number_of(case)).collect();
    let numbers = numbers?;
    let asked: Vec<String> = numbers.iter().map(|number| format!("C-{number}")).collect();
    Ok((Which::Numbers(numbers), asked.join(" ")))
}

fn why(args: &Args, asked: &str) -> Result<String, Failure> {
    let Some(why) = word(args.why.as_ref()) else { return Ok(asked.to_owned()) };
    sentence("--why", &why, "").map(str::to_owned)
}

/// A case that was named and cannot be kicked ends the command before anything is done.
fn refuse(which: &Which, chosen: &Chosen) -> Result<(), Failure> {
    if let Some(number) = chosen.unknown.first() {
        let text = format!("there is no case C-{number}; nothing was done");
        return Err(Failure::new(Exit::Usage, text, "`tieout cases list` shows the open ones"));
    }
    if let Some(case) = chosen.closed.first() {
        let how = case.resolution.as_deref().unwrap_or("closed");
        let at = case.closed_at.map(|at| format!(" {}", to_short_text(at))).unwrap_or_default();
        let text = format!("case C-{} was closed{at}: {how}; nothing was done", case.number);
        let hint = "a closed case is not decided again; `tieout run --id ID` looks at a row that \
                    is stuck once more";
        return Err(Failure::new(Exit::Usage, text, hint));
    }
    let is_named = matches!(which, Which::Numbers(_));
    if let Some(number) = chosen.spoken_for.first().filter(|_| is_named) {
        let text = format!(
            "people approved what is to become of case C-{number}, and the next run carries it \
             out; nothing was done"
        );
        let hint = "`tieout run` carries it out; `tieout cases reject` takes the approval back, \
                    and then it can be kicked";
        return Err(Failure::new(Exit::Usage, text, hint));
    }
    Ok(())
}

/// What is not among the chosen cases and might have been expected there.
fn left_out(chosen: &Chosen, limit: u32) -> Vec<String> {
    let mut lines = Vec::new();
    if chosen.more {
        lines.push(format!(
            "tieout: there are more than {limit}: these are taken; kick again for the others, or \
             raise --limit"
        ));
    }
    if chosen.others > 0 {
        lines.push(format!(
            "tieout: {}, of an account, a file or a line: no rule decides such a one; `tieout \
             cases show` says what ends it",
            counted(chosen.others, "open case is left as it is", "open cases are left as they are")
        ));
    }
    if let Some(first) = chosen.spoken_for.first() {
        let first = some_of([format!("C-{first}")], chosen.spoken_for.len());
        lines.push(format!(
            "tieout: {} ({first}): people approved what is to become of it, and the next \
             run carries it out; `tieout cases reject` takes an approval back",
            counted(
                chosen.spoken_for.len(),
                "open case is left as it is",
                "open cases are left as they are"
            )
        ));
    }
    if chosen.unreadable > 0 {
        lines.push(format!(
            "tieout: of {} the stored evidence cannot be read, so that nobody knows what rules \
             make of it; `tieout cases kick --all` asks afresh",
            counted(chosen.unreadable, "open case", "open cases")
        ));
    }
    lines
}

fn none(asked: &str, chosen: &Chosen, (dry_run, common): (bool, &Common)) -> Exit {
    if common.json {
        out::stdout(&line("kick", summed(asked, None, &BTreeMap::new(), dry_run)));
    } else if !common.quiet {
        let other = if chosen.spoken_for.is_empty() { "" } else { "other " };
        page::say(&format!("no {other}open case of a row for {asked}; nothing was done"));
    }
    Exit::Ok
}

/// How many cases ended how, for programs.
fn summed(
    asked: &str,
    run_id: Option<&str>,
    ends: &BTreeMap<End, usize>,
    dry_run: bool,
) -> serde_json::Value {
    let count = |end: End| ends.get(&end).copied().unwrap_or(0);
    json!({
        "asked": asked,
        "run_id": run_id,
        "cases": ends.values().sum::<usize>(),
        "closed": count(End::Closed),
        "waiting": count(End::Waits).saturating_add(count(End::WaitsForAKick)),
        "review": count(End::StaysWithAPerson),
        "not_decided": count(End::NotDecided),
        "dry_run": dry_run,
    })
}

/// Several cases are confirmed on a terminal, or by `--yes`: first one sees what is meant.
fn confirm(args: &Args, cases: &[Kicked]) -> Result<(), Failure> {
    if args.yes || args.dry_run || !args.cases.is_empty() {
        return Ok(());
    }
    preview(cases).iter().for_each(|text| page::warn(text));
    if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        page::warn("Ask the PSP again and decide them by today's rules? [y/N]");
        let mut answer = String::new();
        let read = std::io::stdin().read_line(&mut answer);
        if read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes") {
            return Ok(());
        }
    }
    let text = format!("{}: nothing was done", counted(cases.len(), "case", "cases"));
    let hint = "--dry-run shows what would become of them; --yes decides them";
    Err(Failure::new(Exit::Usage, text, hint))
}

/// How many, their sums by currency, and a few of them.
fn preview(cases: &[Kicked]) -> Vec<String> {
    let amounts = cases.iter().map(|case| (case.currency.as_str(), case.amount_minor));
    let outline = Outline::of(amounts);
    let mut lines = vec![outline.head()];
    lines.extend(cases.iter().take(SAMPLES).map(|case| format!("  {}", headed(case))));
    lines.extend(outline.rest());
    lines
}

fn headed(case: &Kicked) -> String {
    let money = amount_text(&case.currency, case.amount_minor);
    let RowKey { table, id } = &case.key;
    format!("C-{}  {table}/{id}  {money}  {}", case.number, case.reason.as_str())
}

/// What the run told of the cases.
#[derive(Default)]
struct Heard {
    decided: HashMap<RowKey, JournalRow>,
    not: HashMap<RowKey, String>,
}

impl Heard {
    fn note(&mut self, event: &Event) {
        match event {
            Event::Decided(row) => {
                let key = RowKey { table: row.table.clone(), id: row.key.clone() };
                self.decided.insert(key, (**row).clone());
            }
            Event::NotApplied(row) => {
                let key = RowKey { table: row.table.clone(), id: row.key.clone() };
                match (row.reason, self.decided.get_mut(&key)) {
                    (Some(reason), Some(decided)) => {
                        (decided.outcome, decided.reason) = (Outcome::Review, reason);
                        decided.text.clone_from(&row.text);
                    }
                    (_superseded, _) => {
                        self.decided.remove(&key);
                        self.not.insert(key, row.text.clone());
                    }
                }
            }
            Event::NotLookedAt { table, id, why } => {
                let key = RowKey { table: table.clone(), id: id.clone() };
                self.not.insert(key, why.clone());
            }
            _other => {}
        }
    }
}

fn kicked(
    kick: &Kick,
    dry_run: bool,
    common: &Common,
    config: &Config,
    setup: &Setup,
) -> Result<Exit, Failure> {
    let options = kick.options(setup, config.limits.max_duration, dry_run);
    // People read of cases here, and not of rows; programs read both.
    let mut told = common.clone();
    told.quiet = !common.json || common.quiet;
    told.verbose = 0;
    watched(config, None, dry_run, async |db, stop, note| {
        let mut teller = Teller::new(&told, When::Never, &options, setup);
        let mut heard = Heard::default();
        let mut tell = |event: Event| {
            note(&event);
            heard.note(&event);
            teller.tell(&event);
        };
        let ended = crate::run::run(setup, &options, db, stop, &mut tell).await;
        let summary = ended.map_err(|error| Failure::run(&error))?;
        drop(teller);
        show(kick, &heard, &summary, (common, setup), db).await?;
        Ok(summary)
    })
}

/// What became of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Closed,
    Waits,
    WaitsForAKick,
    StaysWithAPerson,
    NotDecided,
}

impl End {
    fn of(
        row: Option<&JournalRow>,
        stored: Option<&CaseRow>,
        setup: &Setup,
        dry_run: bool,
    ) -> Self {
        let Some(row) = row else { return Self::NotDecided };
        let is_open = stored.is_some_and(|case| case.open);
        match row.outcome {
            Outcome::Review => Self::StaysWithAPerson,
            Outcome::Wait if has_left(setup, row) => Self::WaitsForAKick,
            Outcome::Wait => Self::Waits,
            _ended if !dry_run && is_open => Self::NotDecided,
            Outcome::Succeeded | Outcome::Retryable | Outcome::Failed => Self::Closed,
        }
    }

    fn words(self, dry_run: bool) -> &'static str {
        match (self, dry_run) {
            (Self::Closed, false) => "closed",
            (Self::Closed, true) => "would be closed",
            (Self::Waits, _) => "open, and the next runs go on with it",
            (Self::WaitsForAKick, _) => "open: it must wait, and only a later kick goes on with it",
            (Self::StaysWithAPerson, _) => "still a person's",
            (Self::NotDecided, _) => "as it was",
        }
    }
}

/// Whether the row has its mapping's review value, and is due to no run.
fn has_left(setup: &Setup, row: &JournalRow) -> bool {
    let table = setup.tables.iter().find(|table| table.name == row.table);
    table.is_some_and(|table| map_of(table, &row.status_before).is_none())
}

async fn show(
    kick: &Kick,
    heard: &Heard,
    summary: &Summary,
    (common, setup): (&Common, &Setup),
    db: &Database,
) -> Result<(), Failure> {
    let dry_run = summary.dry_run;
    let mut ends: BTreeMap<End, usize> = BTreeMap::new();
    for case in &kick.cases {
        let stored = db.case(case.number).await.map_err(|e| Failure::store(&e))?;
        let row = heard.decided.get(&case.key);
        let end = End::of(row, stored.as_ref(), setup, dry_run);
        let count = ends.entry(end).or_default();
        *count = count.saturating_add(1);
        let why = heard.not.get(&case.key).map(String::as_str);
        if common.json {
            out::stdout(&line("kicked_case", body(case, row, stored.as_ref(), why, dry_run)));
        } else if !common.quiet {
            lines(case, row, end, why, dry_run).iter().for_each(|text| page::say(text));
        }
    }
    if common.json {
        let run = (!dry_run).then_some(summary.run_id.as_str());
        out::stdout(&line("kick", summed(&kick.asked, run, &ends, dry_run)));
    }
    if common.json || common.quiet {
        return Ok(());
    }
    let ends: Vec<String> =
        ends.iter().map(|(end, count)| format!("{count} {}", end.words(dry_run))).collect();
    let cases = counted(kick.cases.len(), "case", "cases");
    page::say(&format!("{cases}: {}", ends.join("; ")));
    if dry_run {
        out::stdout("dry run: nothing was written anywhere");
    } else {
        page::say(&format!("run {}, recorded as kicked by {}", summary.run_id, kick.by));
        screen::tie_out(&summary.totals).iter().for_each(|text| page::say(text));
    }
    Ok(())
}

fn lines(
    case: &Kicked,
    row: Option<&JournalRow>,
    end: End,
    why: Option<&str>,
    dry_run: bool,
) -> Vec<String> {
    let mut lines = vec![headed(case)];
    if let Some(row) = row {
        lines.push(format!("    → {} · {}", row.outcome.screen(), row.reason.as_str()));
        lines.push(format!("    {}", row.text));
    }
    let because = why.map(|why| format!(": {why}")).unwrap_or_default();
    lines.push(format!("    {}{because}", end.words(dry_run)));
    lines
}

fn body(
    case: &Kicked,
    row: Option<&JournalRow>,
    stored: Option<&CaseRow>,
    why: Option<&str>,
    dry_run: bool,
) -> serde_json::Value {
    json!({
        "case_id": format!("C-{}", case.number),
        "table": case.key.table,
        "txn_id": case.key.id,
        "currency": case.currency,
        "amount_minor": case.amount_minor,
        "was": case.reason.as_str(),
        "outcome": row.map(|row| row.outcome),
        "reason": row.map(|row| row.reason.as_str()),
        "rule": row.and_then(|row| row.rule.as_deref()),
        "text": row.map(|row| row.text.as_str()),
        "not_decided": why,
        "open": stored.is_some_and(|case| case.open),
        "times_seen": stored.map(|case| case.times_seen),
        "dry_run": dry_run,
    })
}
