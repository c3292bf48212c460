//! `tieout cases`: what waits for a person.

mod kick;

use clap::Subcommand;
use serde_json::json;

use crate::cli::args::{Common, yes_or_no};
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::{database, evidence, out, page};
use crate::config::names;
use crate::exit::Exit;
use crate::model::money::{Currency, decimal_text};
use crate::model::reason::Reason;
use crate::model::time::{Instant, to_short_text, to_text};
use crate::store::database::Database;
use crate::store::driver::{CaseFilter, Driver};
use crate::store::records::CaseRow;

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout cases list                              every open case
  tieout cases list --reason duplicate_capture
  tieout cases list --run 01990000-…             those a run opened
  tieout cases show C-1043                       with its evidence
  tieout cases kick --fixed-by-rules --dry-run   what today's rules make of them
  tieout cases kick --reason decline_unknown --yes   decide them again
  tieout cases kick C-1043 --why \"the PSP mended it\"";

/// Cases read from the database at once.
const PAGE: i64 = 500;

/// What to do with cases.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List open cases
    List(List),
    /// Show one case with its evidence
    Show(Show),
    /// Decide open cases again, by today's rules and what the PSP says now
    Kick(kick::Args),
}

/// Options of `cases list`.
#[derive(Debug, clap::Args)]
pub struct List {
    /// Closed ones too
    #[arg(long, env = names::CASES_ALL, value_parser = yes_or_no)]
    all: bool,
    /// Only of this reason
    #[arg(long, value_name = "REASON", env = names::CASES_REASON)]
    reason: Option<String>,
    /// Only those that this run opened
    #[arg(long, value_name = "UUID", env = names::CASES_RUN)]
    run: Option<String>,
    /// At most so many
    #[arg(long, value_name = "CASES", env = names::CASES_LIMIT, default_value_t = 200)]
    limit: u32,
}

/// Options of `cases show`.
#[derive(Debug, clap::Args)]
pub struct Show {
    /// The case: C-1043 or 1043
    case: String,
}

/// Runs the command.
pub fn run(command: &Command, common: &Common) -> Result<Exit, Failure> {
    match command {
        Command::List(options) => reading(common, async |db| list(options, common, db).await),
        Command::Show(options) => reading(common, async |db| show(options, common, db).await),
        Command::Kick(args) => kick::run(args, common),
    }
}

fn reading(
    common: &Common,
    work: impl AsyncFnOnce(&Database) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let config = crate::config::load(common.config(), &[])?;
    database::with(&config, work)
}

async fn list<D: Driver>(options: &List, common: &Common, db: &D) -> Result<Exit, Failure> {
    if let Some(reason) = &options.reason
        && Reason::parse(reason).is_none()
    {
        let known = Reason::ALL.iter().map(|reason| reason.as_str());
        let near = crate::config::problem::nearest(reason, known);
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        return Err(Failure::usage(format!("--reason {reason}: there is no such reason{near}")));
    }
    let now = db.now().await.map_err(|e| Failure::store(&e))?;
    let mut left = i64::from(options.limit);
    let mut filter = CaseFilter {
        open_only: !options.all,
        reason: options.reason.clone(),
        opened_run: options.run.clone(),
        ..CaseFilter::default()
    };
    let mut shown = 0_u32;
    while left > 0 {
        filter.limit = left.min(PAGE);
        let page = db.cases(&filter).await.map_err(|e| Failure::store(&e))?;
        let Some(last) = page.last() else { break };
        filter.after = Some(last.number);
        left = left.saturating_sub(i64::try_from(page.len()).unwrap_or(i64::MAX));
        for case in &page {
            if common.json {
                out::stdout(&line("case", body(case)));
            } else {
                if shown == 0 {
                    out::stdout("case    age    reason                        amount  subject");
                }
                out::stdout(&row(case, now));
            }
            shown = shown.saturating_add(1);
        }
    }
    if shown == 0 && !common.json && !common.quiet {
        out::stdout("no case");
    }
    Ok(Exit::Ok)
}

fn row(case: &CaseRow, now: Instant) -> String {
    let state = if case.open { "" } else { "  (closed)" };
    format!(
        "{:<7} {:<6} {:<23} {:>12}  {}{state}",
        format!("C-{}", case.number),
        age(case, now),
        case.reason.as_str(),
        money(case),
        subject(case)
    )
}

fn age(case: &CaseRow, now: Instant) -> String {
    let span = case.closed_at.unwrap_or(now) - case.opened_at;
    match (span.num_days(), span.num_hours()) {
        (0, 0) => format!("{}min", span.num_minutes().max(0)),
        (0, hours) => format!("{hours}h"),
        (days, _) => format!("{days}d"),
    }
}

fn money(case: &CaseRow) -> String {
    match Currency::parse(&case.currency) {
        Ok(currency) => {
            let amount = decimal_text(i128::from(case.amount_minor), currency.exponent());
            format!("{amount} {currency}")
        }
        Err(_none) => "–".to_owned(),
    }
}

fn subject(case: &CaseRow) -> String {
    if case.table.is_empty() {
        format!("{} {}", case.subject_kind, case.subject)
    } else {
        format!("{}/{}", case.table, case.subject)
    }
}

async fn show<D: Driver>(options: &Show, common: &Common, db: &D) -> Result<Exit, Failure> {
    let number = number(&options.case)?;
    let case = db.case(number).await.map_err(|e| Failure::store(&e))?;
    let Some(case) = case else {
        let text = format!("there is no case C-{number}");
        return Err(Failure::new(Exit::Usage, text, "`tieout cases list --all` shows them"));
    };
    let evidence = match &case.evidence_sha256 {
        Some(hash) => db.evidence(hash).await.map_err(|e| Failure::store(&e))?,
        None => None,
    };
    if common.json {
        let evidence = evidence.and_then(|text| serde_json::from_str(&text).ok());
        let evidence: serde_json::Value = evidence.unwrap_or_default();
        out::stdout(&line("case", json!({ "case": body(&case), "evidence": evidence })));
        return Ok(Exit::Ok);
    }
    screen(&case, evidence.as_deref()).iter().for_each(|line| page::say(line));
    Ok(Exit::Ok)
}

/// `C-1043`, `c-1043` or `1043`.
fn number(case: &str) -> Result<i64, Failure> {
    let digits = case.trim_start_matches(['C', 'c', '-']);
    digits
        .parse()
        .map_err(|_bad| Failure::usage(format!("{case}: expected a case's number such as C-1043")))
}

fn screen(case: &CaseRow, evidence: Option<&str>) -> Vec<String> {
    let owner = case.owner.as_deref().unwrap_or("–");
    let state = match (&case.open, case.closed_at) {
        (false, Some(at)) => format!("closed {}", to_short_text(at)),
        _open => "open".to_owned(),
    };
    let mut lines = vec![
        format!(
            "C-{}  {}  {}  {state}  owner {owner}",
            case.number,
            case.reason.as_str(),
            money(case)
        ),
        format!("subject   {}", subject(case)),
        format!("account   {}", case.account.as_deref().unwrap_or("–")),
        format!("why       {}", case.text),
        format!("          {}", case.reason.meaning()),
        format!("opened    {} by run {}", to_short_text(case.opened_at), case.opened_run),
        format!(
            "last seen {} by run {} (seen {}×)",
            to_short_text(case.last_seen_at),
            case.last_run,
            case.times_seen
        ),
    ];
    if let Some(rule) = &case.rule {
        lines.push(format!("rule      {rule}, policy {}", case.policy_version));
    }
    if let Some(resolution) = &case.resolution {
        lines.push(format!("ended     {resolution}"));
    }
    let heard = evidence.map(evidence::lines).unwrap_or_default();
    for (at, text) in heard.iter().enumerate() {
        lines.push(format!("{:<10}{text}", if at == 0 { "evidence" } else { "" }));
    }
    lines.extend(account_lines(case));
    if case.subject_kind == "row" {
        lines.push(format!("history   tieout explain {} --table {}", case.subject, case.table));
    }
    lines
}

/// What a case about an account kept from happening, and what ends it: no person's word does.
fn account_lines(case: &CaseRow) -> Vec<String> {
    let (not_done, next) = match case.reason {
        Reason::AbsenceBrake => (
            "no row of the account was ended by absence; what was found paid or declined was \
             decided as always",
            "`tieout doctor` says how many of the newest payments carry your tag; the runbook \
             (docs/runbook.md, the absence brake) says what to mend. Nobody approves it: the next \
             runs prove again, let go of what is absent then, and close the case",
        ),
        Reason::AccountUnavailable => (
            "no row of the account was changed, and none lost a turn",
            "`tieout doctor` asks the account now; the first answer that a run gets closes the \
             case",
        ),
        _of_a_row => return Vec::new(),
    };
    if !case.open {
        return Vec::new();
    }
    vec![format!("not done  {not_done}"), format!("next      {next}")]
}

fn body(case: &CaseRow) -> serde_json::Value {
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
