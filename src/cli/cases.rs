//! `tieout cases`: what waits for a person, and what people say of it.
//!
//! Nobody's word edits evidence or writes a status: a decision is proposed, approved as it was
//! seen, and carried out by the code that carries out every decision.

pub mod select;
mod act;
mod decide;
mod kept;
mod kick;
pub mod review;
mod second;
mod show;
mod tidy;

use clap::Subcommand;
use serde_json::json;

use crate::cli::args::{Common, yes_or_no};
use crate::cli::cases::select::{Select, sum_body, sums_text};
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::{database, out, page};
use crate::config::{Config, names};
use crate::exit::Exit;
use crate::model::count::counted;
use crate::model::money::{Currency, decimal_text};
use crate::model::time::{Instant, to_text};
use crate::report::past::with_undone;
use crate::store::database::Database;
use crate::store::driver::{CaseFilter, Driver};
use crate::store::people::PeopleDriver;
use crate::store::records::CaseRow;

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout cases list                              every open case
  tieout cases list --reason duplicate_capture --older-than 3d
  tieout cases show C-1043                       side by side, with its history
  tieout cases review --reason duplicate_capture one after the other, by keyboard
  tieout cases assign mara --reason duplicate_capture
  tieout cases comment C-1043 --why called
  tieout cases propose C-1043 --as succeeded --object pi_1 --why confirmed
  tieout cases approve C-1043 --why checked      asks the PSP again
  tieout cases kick --fixed-by-rules --dry-run   what today's rules make of them
  tieout cases kick --reason decline_unknown --yes   decide them again
  tieout cases reject C-1043 --why unclear
  tieout cases undo C-1043 --as failed --why mistaken
  tieout cases merge C-1040 C-1043 C-1044 --why outage
  tieout cases merge C-1040 --reason psp_status_unknown --why outage
  tieout cases export --reason orphan --format json
  tieout cases purge --keep 400d

Without a case, the filters say which: all of them at once, with a preview
first. A script adds --yes and the --seen that the preview shows.";

/// Cases read from the database at once.
pub const PAGE: i64 = 500;

/// What to do with cases.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List open cases
    List(Box<List>),
    /// Show one case: evidence side by side, history, what is suggested
    Show(show::Show),
    /// Decide open cases again, by today's rules and what the PSP says now
    Kick(kick::Args),
    /// Work through cases one after the other, by keyboard, in a terminal
    Review(Box<review::Review>),
    /// Give cases to somebody
    Assign(Box<act::Assign>),
    /// Add a sentence to the history of cases
    Comment(Box<act::Comment>),
    /// Propose a decision of cases
    Propose(Box<decide::Propose>),
    /// Approve what was proposed, and carry it out
    Approve(Box<decide::Approve>),
    /// Turn down what was proposed, or take one's own proposal back
    Reject(Box<decide::Reject>),
    /// Propose a decision that takes the place of a person's earlier one
    Undo(Box<decide::Undo>),
    /// Make cases of one cause parts of one case
    Merge(Box<tidy::Merge>),
    /// Print what list shows, as CSV or JSON, whole
    Export(Box<tidy::Export>),
    /// Delete old closed cases that `db prune` left: no record names them any more
    Purge(tidy::Purge),
}

/// Options of `cases list`.
#[derive(Debug, clap::Args)]
pub struct List {
    #[command(flatten)]
    select: Select,
    /// Closed ones too
    #[arg(long, env = names::CASES_ALL, value_parser = yes_or_no)]
    all: bool,
    /// At most so many
    #[arg(long, value_name = "CASES", env = names::CASES_LIMIT, default_value_t = 200)]
    limit: u32,
}

/// Runs the command.
pub fn run(command: &Command, common: &Common) -> Result<Exit, Failure> {
    let config = crate::config::load(common.config(), &[])?;
    match command {
        Command::Approve(options) => decide::approve(options, common, &config),
        Command::Kick(args) => kick::run(args, common, &config),
        Command::Review(options) => review::review(options, common, &config),
        Command::List(_)
        | Command::Show(_)
        | Command::Assign(_)
        | Command::Comment(_)
        | Command::Propose(_)
        | Command::Reject(_)
        | Command::Undo(_)
        | Command::Merge(_)
        | Command::Export(_)
        | Command::Purge(_) => {
            let only_reads =
                matches!(command, Command::List(_) | Command::Show(_) | Command::Export(_));
            database::with_as(&config, only_reads, async |db| {
                on_database(command, common, &config, db).await
            })
        }
    }
}

async fn on_database(
    command: &Command,
    common: &Common,
    config: &Config,
    db: &Database,
) -> Result<Exit, Failure> {
    match command {
        Command::List(options) => list(options, common, config, db).await,
        Command::Show(options) => show::show(options, common, config, db).await,
        Command::Assign(options) => act::assign(options, common, db).await,
        Command::Comment(options) => act::comment(options, common, db).await,
        Command::Propose(options) => decide::propose(options, common, config, db).await,
        Command::Reject(options) => decide::reject(options, common, db).await,
        Command::Undo(options) => decide::undo(options, common, config, db).await,
        Command::Merge(options) => tidy::merge(options, common, db).await,
        Command::Export(options) => tidy::export(options, db).await,
        Command::Purge(options) => tidy::purge(options, common, db).await,
        Command::Approve(_) | Command::Review(_) | Command::Kick(_) => {
            Err(Failure::usage("it opens a run of its own"))
        }
    }
}

async fn list(
    options: &List,
    common: &Common,
    config: &Config,
    db: &Database,
) -> Result<Exit, Failure> {
    let now = db.now().await.map_err(|e| Failure::store(&e))?;
    let mut filter = options.select.filter(now)?;
    filter.open_only = !options.all;
    let whole = filter.clone();
    let mut left = i64::from(options.limit);
    let mut shown = 0_i64;
    while left > 0 {
        filter.limit = left.min(PAGE);
        let page = db.cases(&filter).await.map_err(|e| Failure::store(&e))?;
        let Some(last) = page.last() else { break };
        filter.after = Some(last.number);
        left = left.saturating_sub(i64::try_from(page.len()).unwrap_or(i64::MAX));
        let page = with_undone(db, page).await.map_err(|e| Failure::store(&e))?;
        for case in &page {
            if common.json {
                out::stdout(&line("case", body(case)));
            } else {
                if shown == 0 {
                    out::stdout("case    age    reason                        amount  subject");
                }
                page::say(&row(case, now));
            }
            shown = shown.saturating_add(1);
        }
    }
    if shown == 0 && left > 0 && !common.json && !common.quiet {
        let unknown = options.select.unknown(config).map(|why| format!("; {why}"));
        page::say(&format!("no case{}", unknown.unwrap_or_default()));
    }
    if left == 0 && (common.json || !common.quiet) {
        tell_rest(&whole, shown, common, db).await?;
    }
    Ok(Exit::Ok)
}

/// A list that was cut says so, with what there is in all: to a program as an event, and to who
/// reads what it says besides.
async fn tell_rest(
    filter: &CaseFilter,
    shown: i64,
    common: &Common,
    db: &Database,
) -> Result<(), Failure> {
    let sums = db.case_sums(filter).await.map_err(|e| Failure::store(&e))?;
    let all = sums.iter().fold(0_i64, |all, sum| all.saturating_add(sum.cases));
    if all <= shown {
        return Ok(());
    }
    let of = counted(all, "case", "cases");
    if !common.json {
        page::say(&format!("{shown} of {of} shown: {}", sums_text(&sums)));
        out::stdout("--limit shows more; `tieout cases export` prints all of them");
        return Ok(());
    }
    let sums: Vec<_> = sums.iter().map(sum_body).collect();
    out::stdout(&line("cases_cut", json!({ "shown": shown, "matching": all, "sums": sums })));
    if !common.quiet {
        page::warn(&format!(
            "tieout: {shown} of {of} shown; --limit shows more, and `tieout cases export --format \
             json` prints all of them"
        ));
    }
    Ok(())
}

/// A case's number as it is typed: C-1043 or 1043.
pub fn number_of(text: &str) -> Result<i64, Failure> {
    let digits = text.trim_start_matches(['C', 'c', '-']);
    let number = digits.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| Failure::usage(format!("{text}: expected a case's number such as C-1043")))
}

/// A case that must be there.
pub async fn find(number: i64, db: &Database) -> Result<CaseRow, Failure> {
    let case = db.case(number).await.map_err(|e| Failure::store(&e))?;
    case.ok_or_else(|| {
        let text = format!("there is no case C-{number}; nothing was done");
        Failure::new(Exit::Usage, text, "`tieout cases list --all` shows them")
    })
}

/// One line of a list.
pub fn row(case: &CaseRow, now: Instant) -> String {
    let owner = case.owner.as_ref().map(|owner| format!("  {owner}")).unwrap_or_default();
    let state = if case.open { owner } else { "  (closed)".to_owned() };
    format!(
        "{:<7} {:<6} {:<23} {:>12}  {}{state}",
        format!("C-{}", case.number),
        age(case, now),
        case.reason.as_str(),
        money(case),
        crate::cli::page::one_line(&subject(case))
    )
}

/// How long it is or was open.
pub fn age(case: &CaseRow, now: Instant) -> String {
    let span = case.closed_at.unwrap_or(now) - case.opened_at;
    match (span.num_days(), span.num_hours()) {
        (0, 0) => format!("{}min", span.num_minutes().max(0)),
        (0, hours) => format!("{hours}h"),
        (days, _) => format!("{days}d"),
    }
}

/// Its amount, for people.
pub fn money(case: &CaseRow) -> String {
    amount_text(&case.currency, case.amount_minor)
}

/// An amount as lists of cases show it; of no currency there is none.
pub fn amount_text(currency: &str, amount_minor: i64) -> String {
    match Currency::parse(currency) {
        Ok(currency) => {
            let amount = decimal_text(i128::from(amount_minor), currency.exponent());
            format!("{amount} {currency}")
        }
        Err(_none) => "–".to_owned(),
    }
}

/// What it is about.
pub fn subject(case: &CaseRow) -> String {
    if case.table.is_empty() {
        format!("{} {}", case.subject_kind, case.subject)
    } else {
        format!("{}/{}", case.table, case.subject)
    }
}

/// A case as an event.
pub fn body(case: &CaseRow) -> serde_json::Value {
    json!({
        "case_id": format!("C-{}", case.number),
        "open": case.open,
        "subject_kind": case.subject_kind,
        "table": case.table,
        "subject": case.subject,
        "account": case.account,
        "reason": case.reason.as_str(),
        "text": case.text,
        "currency": case.currency,
        "amount_minor": case.amount_minor,
        "rule": case.rule,
        "policy_version": case.policy_version,
        "evidence_sha256": case.evidence_sha256,
        "opened_at": to_text(case.opened_at),
        "opened_run": case.opened_run,
        "last_seen_at": to_text(case.last_seen_at),
        "last_run": case.last_run,
        "times_seen": case.times_seen,
        "owner": case.owner,
        "closed_at": case.closed_at.map(to_text),
        "resolution": case.resolution,
    })
}
