//! `tieout explain ID`: everything known about one row, and why it stands where it stands.
//!
//! It reads tieout's own records, and where the text is no key that they know, by its indexes the
//! mapped table: no PSP is asked, nothing is written.

mod beside;
mod find;
mod undelivered;

use std::collections::BTreeSet;

use serde_json::json;

use crate::cli::args::Common;
use crate::cli::events::line;
use crate::cli::explain::find::{Finder, Meant, look_now};
use crate::cli::failure::Failure;
use crate::cli::rules::means;
use crate::cli::{evidence, out, page, screen, standing};
use crate::config::{Config, names};
use crate::exit::Exit;
use crate::model::evidence::Route;
use crate::model::money::{Currency, decimal_text};
use crate::model::reason::{Outcome, Reason};
use crate::model::time::{to_short_text, to_text};
use crate::model::transaction::{Kind, fingerprint_of};
use crate::run::expected::{Awaited, awaited};
use crate::settlement::sources::settings::Source;
use crate::store::database::Database;
use crate::store::driver::{CheckRow, Driver, Pause};
use crate::store::error::StoreError;
use crate::store::files::{FileDriver, FileFilter, FileRow, FileState};
use crate::store::outbox::{OutboxDriver, Undelivered};
use crate::store::records::{
    Applied, CaseRow, HandbackRow, JournalRow, StoredInputs, TABLE_REFUSED,
};

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout explain pay_9044
  tieout explain pi_3NqX2bLkdIwHu7ix    by the PSP's reference, or by the tag
  tieout explain 7 --table refunds
  tieout explain refunds/7              as lists and cases name it
  tieout explain '[\"acme\",\"7\"]'        a composite key
  tieout explain pay_9044 --json        with the evidence whole";

/// What the name of the rule ends with that decides beyond another one's limit.
const CAPPED: &str = ".capped";

/// Looks shown; `--json` has them all.
const LOOKS_SHOWN: usize = 12;

/// Options of `explain`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The row's key; or its tag, or the PSP's reference, where an index leads to it
    id: String,
    /// The mapped table [default: every one that knows the key]
    #[arg(long, value_name = "NAME", env = names::TABLE)]
    table: Option<String>,
}

/// What is known of one row.
struct Known {
    table: String,
    check: Option<CheckRow>,
    journal: Vec<JournalRow>,
    handbacks: Vec<HandbackRow>,
    undelivered: Vec<Undelivered>,
    evidence: Option<String>,
    case: Option<CaseRow>,
}

/// Explains a row.
pub async fn run(
    args: &Args,
    common: &Common,
    config: &Config,
    db: &Database,
) -> Result<Exit, Failure> {
    let tables = tables(args, config)?;
    if explained(&tables, &args.id, None, (common, config, db)).await? {
        return Ok(Exit::Ok);
    }
    // As it stands in every list: the table and the key.
    let listed = args.id.split_once('/').filter(|(table, _)| tables.iter().any(|it| it == table));
    if let Some((table, key)) = listed
        && explained(&[table.to_owned()], key, None, (common, config, db)).await?
    {
        return Ok(Exit::Ok);
    }
    let finder = Box::pin(Finder::of(&args.id, &tables, config, db)).await;
    let meant = Box::pin(finder.meant()).await.map_err(|e| Failure::store(&e))?;
    let written = match meant.is_empty() {
        true => Box::pin(finder.written()).await,
        false => None,
    };
    let mut rows = meant.iter();
    let ((table, key), by) = match (rows.next(), rows.next(), &written) {
        (Some((row, by)), None, _) => (row, format!("is {} of {}/{}", by.as_str(), row.0, row.1)),
        (None, _, Some(row)) => (row, format!("is written {}/{}", row.0, row.1)),
        _none_or_several => {
            let unseen = match meant.is_empty() {
                true => Box::pin(finder.unseen(&tables, &args.id)).await,
                false => None,
            };
            return Err(not_one(&args.id, &meant, unseen.as_deref()));
        }
    };
    let by = format!("{} {by}", args.id);
    let of_one = std::slice::from_ref(table);
    if explained(of_one, key, Some(by.as_str()), (common, config, db)).await? {
        return Ok(Exit::Ok);
    }
    let text = format!("{by}, and tieout has never looked at it");
    let unseen = Box::pin(finder.unseen(of_one, key))
        .await
        .unwrap_or_else(|| look_now("no run came to it", key));
    Err(Failure::new(Exit::Usage, text, unseen))
}

/// Tells of the row of this key in each of the tables, after how it was `found`; whether there is
/// one.
async fn explained(
    tables: &[String],
    key: &str,
    found: Option<&str>,
    (common, config, db): (&Common, &Config, &Database),
) -> Result<bool, Failure> {
    let mut is_any = false;
    for table in tables {
        let known = read(db, table, key).await.map_err(|e| Failure::store(&e))?;
        let Some(known) = known else { continue };
        is_any = true;
        let paused = paused(&known, config, db).await?;
        if common.json {
            out::stdout(&line("row", body(&known, paused.as_ref(), key)));
            continue;
        }
        found.into_iter().for_each(page::say);
        let mut files = missing(&known, config, db).await?;
        files.extend(untied(&known, db).await?);
        let beside = Box::pin(beside(&known, db)).await?;
        let lines = lines(&known, (&files, &beside), paused.as_ref(), key, (config, common));
        lines.iter().for_each(|line| page::say(line));
    }
    Ok(is_any)
}

/// Rows listed where a text means several.
const LISTED: usize = 20;

/// A text that means no row, or several.
fn not_one(id: &str, meant: &Meant, unseen: Option<&str>) -> Failure {
    if let Some(unseen) = unseen {
        let text = format!("tieout has never looked at a row {id}");
        return Failure::new(Exit::Usage, text, unseen);
    }
    if meant.is_empty() {
        let text = format!("tieout knows no row {id}, by its key, its tag or a PSP's reference");
        let hint = "a key of several columns is written '[\"acme\",\"7\"]'; a tag or a reference \
                    is looked for where an index leads to it: `tieout doctor` tells where none \
                    does";
        return Failure::new(Exit::Usage, text, hint);
    }
    let rows = meant.keys().take(LISTED).map(|(table, key)| format!("{table}/{key}"));
    let rows: Vec<String> = rows.collect();
    let more = meant.len().saturating_sub(rows.len());
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let text = format!("{id} is said of several rows: {}{more}", rows.join(", "));
    Failure::new(Exit::Usage, text, "name one of them by its key, and by --table")
}

fn tables(args: &Args, config: &Config) -> Result<Vec<String>, Failure> {
    let all: Vec<String> = config.tables.iter().map(|table| table.name.clone()).collect();
    match args.table.as_ref().filter(|name| !name.is_empty()) {
        None => Ok(all),
        Some(name) if all.contains(name) => Ok(vec![name.clone()]),
        Some(name) => {
            let text = format!("--table {name}: mapped are {}", all.join(", "));
            Err(Failure::usage(text))
        }
    }
}

async fn read<D: Driver + OutboxDriver>(
    db: &D,
    table: &str,
    id: &str,
) -> Result<Option<Known>, StoreError> {
    let check = db.check(table, id).await?;
    let journal = db.journal_of_row(table, id).await?;
    if check.is_none() && journal.is_empty() {
        return Ok(None);
    }
    let last = journal.last();
    let evidence = match last {
        Some(last) => db.evidence(&last.evidence_sha256).await?,
        None => None,
    };
    // What is open outlives the records of the runs that opened it.
    let open = check.as_ref().and_then(|check| check.open_case);
    let case = match last.map_or(open, |last| last.case_number) {
        Some(number) => db.case(number).await?,
        None => None,
    };
    let handbacks = db.handbacks(table, id).await?;
    let undelivered = db.undelivered_of_row(table, id).await?;
    let table = table.to_owned();
    Ok(Some(Known { table, check, journal, handbacks, undelivered, evidence, case }))
}

/// The files that are missing of the account's sources, while the row waits for what they say.
async fn missing(known: &Known, config: &Config, db: &Database) -> Result<Vec<String>, Failure> {
    let waits =
        |row: &&JournalRow| row.outcome == Outcome::Wait || row.reason == Reason::Unprovable;
    let Some(last) = known.journal.last().filter(waits) else { return Ok(Vec::new()) };
    let own = |source: &&Source| source.account.as_deref() == Some(last.account.as_str());
    let now = db.now().await.map_err(|error| Failure::store(&error))?;
    let mut lines: Vec<String> = Vec::new();
    for source in config.sources.iter().filter(own) {
        let all = awaited(db, source, now).await.map_err(|error| Failure::run(&error))?;
        lines.extend(all.iter().flat_map(Awaited::missing_lines));
    }
    Ok(lines)
}

/// The pause of the row's account, where the row is still followed: no look decides it meanwhile.
async fn paused(known: &Known, config: &Config, db: &Database) -> Result<Option<Pause>, Failure> {
    let is_followed = known.check.as_ref().is_some_and(|check| check.next_check_at.is_some());
    if !is_followed || known.case.as_ref().is_some_and(|case| case.open) {
        return Ok(None);
    }
    let pauses = db.pauses().await.map_err(|error| Failure::store(&error))?;
    let decided = known.journal.last().map(|last| last.account.as_str());
    // A row that was never decided is of its table's account, where that has one alone.
    let mapped = config.tables.iter().find(|table| table.name == known.table);
    let names: BTreeSet<&str> =
        mapped.into_iter().flat_map(|table| table.accounts.values().map(String::as_str)).collect();
    let only = names.first().copied().filter(|_| names.len() == 1);
    let account = decided.or(only);
    Ok(pauses.into_iter().find(|pause| Some(pause.account.as_str()) == account))
}

/// The files that the last decision heard of the row from although they do not tie, and who let
/// them count.
async fn untied(known: &Known, db: &Database) -> Result<Vec<String>, Failure> {
    let inputs = stored(known);
    let objects = inputs.iter().flat_map(StoredInputs::objects);
    let by_file = objects.filter(|(item, _)| item.route == Route::File);
    let files: BTreeSet<i64> = by_file.filter_map(|(_, object)| file_of(&object.status)).collect();
    let mut lines = Vec::new();
    for id in files {
        let filter = FileFilter { id: Some(id), limit: 1, ..FileFilter::default() };
        let found = db.files(&filter).await.map_err(|error| Failure::store(&error))?;
        let released = found.into_iter().find(|file| file.state == FileState::Released);
        let Some(FileRow { name, changed: Some((at, by, why)), .. }) = released else { continue };
        let at = to_short_text(at);
        lines.push(format!("file {id} ({name}) does not tie; {by} let it count at {at}: {why}"));
    }
    Ok(lines)
}

/// The lines of files under the row's names that the last decision was not made from.
async fn beside(known: &Known, db: &Database) -> Result<Vec<String>, Failure> {
    let Some((inputs, last)) = stored(known).zip(known.journal.last()) else {
        return Ok(Vec::new());
    };
    let lines = beside::lines(db, &last.account, inputs.inputs().row).await;
    lines.map_err(|error| Failure::store(&error))
}

/// The file of the line that a status of settlement files ends with: `CRDT (17:42)`.
fn file_of(status: &str) -> Option<i64> {
    let (_, place) = status.strip_suffix(')')?.rsplit_once('(')?;
    place.split_once(':')?.0.parse().ok()
}

/// What is said of a row. What people wrote stays as they wrote it: it is no command of tieout's.
fn lines(
    known: &Known,
    (files, beside): (&[String], &[String]),
    paused: Option<&Pause>,
    id: &str,
    (config, common): (&Config, &Common),
) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(last) = known.journal.last() {
        lines.push(format!(
            "{}/{id}  {}  {}  created {}",
            known.table,
            money(last),
            last.kind,
            screen::at(last.row_created_at)
        ));
        lines.push(format!("account    {} · tag {}", last.account, last.tag));
        lines.push(format!("status     {} (as last read or written)", last.status_after));
    } else {
        lines.extend(undecided(known, id));
    }
    lines.extend(state(known));
    lines.extend(looks(known));
    lines.extend(known.journal.last().into_iter().flat_map(|last| why(last, config)));
    let heard = known.evidence.as_deref().map(evidence::lines).unwrap_or_default();
    lines.extend(labelled("evidence", &heard));
    if let Some(inputs) = stored(known) {
        lines.extend(labelled("rules", &standing::rules_tried(&inputs, config)));
        let told = known.journal.last().map_or("", |last| last.text.as_str());
        lines.extend(labelled("means", &means::untold(&inputs, told, config)));
        lines.extend(labelled("proof", &proof(known, &inputs, config)));
    }
    lines.extend(labelled("files", files));
    lines.extend(labelled("beside", beside));
    lines.extend(labelled("misses", &misses(known)));
    lines.extend(labelled("hand-backs", &handbacks(known)));
    lines.extend(labelled("events", &undelivered::lines(&known.undelivered)));
    lines.push(format!("next       {}", next(known, common)));
    lines.extend(paused.map(|pause| {
        let resume = format!("`tieout resume {}`", pause.account);
        format!(
            "           not before {}: paused since {} by {}: {}",
            common.copyable(&resume),
            to_short_text(pause.at),
            pause.by,
            pause.why
        )
    }));
    lines
}

/// Why it was decided so, and what that kept from happening.
fn why(last: &JournalRow, config: &Config) -> Vec<String> {
    let limited = limit_of(last, config);
    let mut lines = vec![format!("why        {}: {}", last.reason.as_str(), last.text)];
    if let Some(rule) = limited {
        lines.push(format!(
            "           it was handed back as often as the `limit` of rule {rule} allows; its \
             `then` failed it, and not the PSP"
        ));
    } else if !says_it_all(last.reason) {
        lines.push(format!("           {}", last.reason.meaning()));
    }
    if let Some(rule) = &last.rule {
        lines.push(format!("           by rule {rule}, policy {}", last.policy_version));
    }
    let not_done = match limited.filter(|_| last.applied == Applied::Yes) {
        Some(rule) => format!("not handed back: the `limit` of rule {rule} is used up"),
        None => not_done(last).to_owned(),
    };
    lines.push(format!("not done   {not_done}"));
    lines
}

/// The rule whose limit of hand-backs failed the row: beyond it another rule of that name decides,
/// which nobody wrote down by itself.
fn limit_of<'a>(last: &'a JournalRow, config: &Config) -> Option<&'a str> {
    let decided = last.rule.as_deref().filter(|_| last.outcome == Outcome::Failed)?;
    let limited = decided.strip_suffix(CAPPED)?;
    let mut written = config.rule_files.iter().flat_map(|file| &file.written);
    (!written.any(|rule| rule.id == decided)).then_some(limited)
}

/// Whether the text of such a decision tells until when the call can still arrive: neither what the
/// reason means nor what a proof lacks says anything more then.
fn says_it_all(reason: Reason) -> bool {
    reason == Reason::WithinGrace
}

/// The beginning, where no decision is there to be read.
fn undecided(known: &Known, id: &str) -> Vec<String> {
    let history = known.check.as_ref().map(|check| &check.history);
    let was_looked_at = history.is_some_and(|history| history.checks > 0 || history.unanswered > 0);
    let Some(case) = &known.case else {
        let what = if was_looked_at { "its decisions were pruned" } else { "not decided yet" };
        return vec![format!("{}/{id}  {what}", known.table)];
    };
    let state = if case.open { "open" } else { "closed" };
    vec![
        format!("{}/{id}  its decisions were pruned; its case is there", known.table),
        format!("case       C-{}, {state}, {}: {}", case.number, case.reason.as_str(), case.text),
        format!("           {}", case.reason.meaning()),
    ]
}

/// What the last decision had of a proof of absence. A proof that was made is not made again: by
/// other settings of today it would be another one.
fn proof(known: &Known, inputs: &StoredInputs, config: &Config) -> Vec<String> {
    let Some(last) = known.journal.last() else { return Vec::new() };
    let by = format!("by policy {}, in force then", last.policy_version);
    if last.reason == Reason::Absent {
        return vec![format!("it was whole at {}, {by}", to_short_text(last.at))];
    }
    if last.reason == Reason::Watched || says_it_all(last.reason) {
        return Vec::new();
    }
    let proof = standing::proof(inputs, config);
    if proof.is_empty() || last.policy_version == config.policy_version {
        return proof;
    }
    vec![format!("as it says above, {by}; today's settings are others")]
}

/// The inputs of the last decision, where this version can read them.
fn stored(known: &Known) -> Option<StoredInputs> {
    known.evidence.as_deref().and_then(|text| serde_json::from_str(text).ok())
}

fn labelled(label: &str, texts: &[String]) -> Vec<String> {
    let label_of = |at: usize| if at == 0 { label } else { "" };
    texts.iter().enumerate().map(|(at, text)| format!("{:<11}{text}", label_of(at))).collect()
}

fn money(row: &JournalRow) -> String {
    match Currency::parse(&row.currency) {
        Ok(currency) => {
            let amount = decimal_text(i128::from(row.amount_minor), currency.exponent());
            format!("{amount} {currency}")
        }
        Err(_unreadable) => "amount unreadable".to_owned(),
    }
}

fn state(known: &Known) -> Vec<String> {
    let Some(check) = &known.check else { return Vec::new() };
    let history = &check.history;
    let mut lines = vec![format!(
        "first seen {} · answered {}×, unanswered {}× in a row · handed back {}×",
        to_short_text(history.first_seen_at),
        history.checks,
        history.unanswered,
        history.handbacks
    )];
    if let Some((run, until)) = &check.lease {
        lines.push(format!("held       by run {run} until {}", to_short_text(*until)));
    }
    lines
}

fn looks(known: &Known) -> Vec<String> {
    let skipped = known.journal.len().saturating_sub(LOOKS_SHOWN);
    let mut texts: Vec<String> = Vec::new();
    if skipped > 0 {
        texts.push(format!("… {skipped} earlier"));
    }
    texts.extend(known.journal.iter().skip(skipped).map(|row| {
        let applied = match row.applied {
            Applied::Yes => "",
            Applied::Superseded if row.text.contains(TABLE_REFUSED) => {
                " (its table refused the write: not applied)"
            }
            Applied::Superseded => " (changed meanwhile: not applied)",
            Applied::Withheld => " (withheld by the mode)",
        };
        let said = match row.reason {
            // It ended before: to wait is said of what still processes.
            Reason::Watched => row.reason.as_str().to_owned(),
            reason => format!("{} · {}", row.outcome.screen(), reason.as_str()),
        };
        format!("{}  {said}{applied}  run {}", to_short_text(row.at), row.run_id)
    }));
    labelled("looked up", &texts)
}

/// What the decision kept from happening.
fn not_done(last: &JournalRow) -> &'static str {
    match last.applied {
        Applied::Superseded if last.text.contains(TABLE_REFUSED) => {
            return "no status was written: the table refused it, and the next run tries again";
        }
        Applied::Superseded => {
            return "no status was written: the row or its case had changed meanwhile";
        }
        Applied::Withheld if last.outcome == Outcome::Retryable => {
            return "no status was written and nothing handed back: the mode withholds it";
        }
        Applied::Withheld => return "no status was written: the mode withholds it",
        Applied::Yes => {}
    }
    let is_charge = last.kind == Kind::Charge.as_str();
    match last.outcome {
        Outcome::Succeeded if !is_charge => "nothing is sent again: the money moved",
        Outcome::Succeeded => "nothing is charged again: the money moved",
        Outcome::Retryable if last.handback_number.is_none() && !is_charge => {
            "not handed back: by the mapping nobody sends it again"
        }
        Outcome::Retryable if last.handback_number.is_none() => {
            "not handed back: by the mapping nobody charges again"
        }
        Outcome::Retryable if !is_charge => "nothing was sent by tieout: the worker sends it again",
        Outcome::Retryable => "nothing was charged by tieout: the worker charges again",
        Outcome::Failed if !is_charge => {
            "not handed back: sending it again is pointless or forbidden"
        }
        Outcome::Failed => "not handed back: charging again is pointless or forbidden",
        Outcome::Wait if last.reason == Reason::Watched => {
            "no status was written: the row was ended before, and its tag is only looked at"
        }
        Outcome::Wait if last.reason == Reason::AbsenceBrake => {
            "not handed back, though absence was proven: the account's brake is on"
        }
        Outcome::Wait => "not marked succeeded, failed or retryable: nothing is proven yet",
        Outcome::Review => "no verdict was written: a person decides",
    }
}

fn misses(known: &Known) -> Vec<String> {
    let Some(check) = &known.check else { return Vec::new() };
    let now = fingerprint_of(&check.image);
    let texts = check.history.misses.iter().map(|miss| {
        let counts = if miss.fingerprint == now { "" } else { " (of the row as it was: void)" };
        format!(
            "{} {} {} nothing among {}{counts}",
            to_short_text(miss.search.asked_at),
            miss.account,
            miss.search.route.as_str(),
            miss.search.listed
        )
    });
    texts.collect()
}

fn handbacks(known: &Known) -> Vec<String> {
    let text = |handback: &HandbackRow| {
        let until = handback.same_key_until;
        let until = until.map(|at| format!(" until {}", to_short_text(at))).unwrap_or_default();
        let ended = handback.ended_at.map(|at| {
            let why = handback.end_reason.as_deref().unwrap_or("–");
            format!("ended {}: {why}", to_short_text(at))
        });
        let taken = handback.taken_at.map(|at| format!("taken {}", to_short_text(at)));
        let stands = match (taken, ended) {
            (Some(taken), Some(ended)) => format!("{taken}, {ended}"),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => "not taken yet".to_owned(),
        };
        let from = handback.not_before;
        let from = from.map(|at| format!("not before {}, ", to_short_text(at)));
        format!(
            "#{} at {} by {} ({}{until}), charge {}before {}, {stands}",
            handback.number,
            to_short_text(handback.at),
            handback.permit,
            handback.retry,
            from.unwrap_or_default(),
            to_short_text(handback.charge_before)
        )
    };
    known.handbacks.iter().map(text).collect()
}

fn next(known: &Known, common: &Common) -> String {
    if let Some(case) = known.case.as_ref().filter(|case| case.open) {
        let owner = case.owner.as_deref().unwrap_or("–");
        let opened = to_short_text(case.opened_at);
        return format!("case C-{}, opened {opened}, owner {owner}", case.number);
    }
    let Some(check) = &known.check else { return "nothing: it is not followed".to_owned() };
    let due = check.next_check_at.map(to_short_text);
    match (check.state.as_str(), due) {
        ("watch", Some(due)) => format!("its tag is looked at again at {due} (watch)"),
        (_, Some(due)) => {
            let last = known.journal.last();
            let is_held = last.is_some_and(|last| last.reason == Reason::AbsenceBrake);
            let list = common.copyable("tieout cases list --reason absence_brake");
            let case = is_held.then(|| format!("; the account has a case: {list}"));
            format!("looked at again at {due}{}", case.unwrap_or_default())
        }
        ("parked", None) => "left alone until the row changes".to_owned(),
        ("closed", None) => "nothing: it is ended".to_owned(),
        (state, None) => format!("nothing is planned ({state})"),
    }
}

fn body(known: &Known, paused: Option<&Pause>, id: &str) -> serde_json::Value {
    let evidence: serde_json::Value = known
        .evidence
        .as_deref()
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or(serde_json::Value::Null);
    let check = known.check.as_ref();
    json!({
        "table": known.table,
        "txn_id": id,
        "state": check.map(|check| &check.state),
        "next_check_at": check.and_then(|check| check.next_check_at).map(to_text),
        "lease": check.and_then(|check| check.lease.as_ref()).map(|(run, until)| {
            json!({ "run_id": run, "until": to_text(*until) })
        }),
        "paused": paused.map(|pause| json!({
            "account": pause.account,
            "since": to_text(pause.at),
            "by": pause.by,
            "why": pause.why,
        })),
        "history": check.map(|check| &check.history),
        "decisions": known.journal.iter().map(|row| json!({
            "at": to_text(row.at),
            "run_id": row.run_id,
            "outcome": row.outcome,
            "reason": row.reason.as_str(),
            "rule": row.rule,
            "text": row.text,
            "applied": row.applied,
            "from": row.status_before,
            "to": row.status_after,
            "psp_txn": row.psp_reference,
            "psp_status": row.psp_status,
            "evidence_sha256": row.evidence_sha256,
            "policy_version": row.policy_version,
            "hash": row.hash,
        })).collect::<Vec<_>>(),
        "handbacks": known.handbacks.iter().map(|handback| json!({
            "number": handback.number,
            "at": to_text(handback.at),
            "run_id": handback.run_id,
            "permit": handback.permit,
            "retry": handback.retry,
            "psp_txn": handback.psp_reference,
            "same_key_until": handback.same_key_until.map(to_text),
            "not_before": handback.not_before.map(to_text),
            "charge_before": to_text(handback.charge_before),
            "taken_at": handback.taken_at.map(to_text),
            "ended_at": handback.ended_at.map(to_text),
            "end_reason": handback.end_reason,
        })).collect::<Vec<_>>(),
        "undelivered": undelivered::body(&known.undelivered),
        "case": known.case.as_ref().map(|case| format!("C-{}", case.number)),
        "last_evidence": evidence,
    })
}
