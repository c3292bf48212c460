//! `tieout runs`: what ran, how it ended, what it did not examine.

use clap::Subcommand;
use serde_json::{Value, json};

use crate::cli::args::Common;
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::{out, page, screen};
use crate::config::names;
use crate::exit::Exit;
use crate::model::count::counted;
use crate::model::time::{Instant, from_text, to_short_text, to_text};
use crate::run::DEAD_AFTER;
use crate::store::driver::Driver;
use crate::store::error::StoreError;
use crate::store::records::{RunRow, RunState, TotalLine};

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout runs list                  the newest runs
  tieout runs show                  the newest, with its control totals
  tieout runs show 01990000-…       one of them
  tieout runs abandon 01990000-…    close one that shows no life";

/// What to do with runs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List runs, the newest first
    List(List),
    /// Show one run with its control totals and what it did not examine
    Show(Show),
    /// Close a run that shows no life; one that lives is left alone (exit 11)
    Abandon(Abandon),
}

/// Options of `runs list`.
#[derive(Debug, clap::Args)]
pub struct List {
    /// At most so many
    #[arg(long, value_name = "RUNS", env = names::RUNS_LIMIT, default_value_t = 20)]
    limit: u32,
}

/// Options of `runs show`.
#[derive(Debug, clap::Args)]
pub struct Show {
    /// The run's id [default: the newest]
    id: Option<String>,
}

/// Options of `runs abandon`.
#[derive(Debug, clap::Args)]
pub struct Abandon {
    /// The run's id
    id: String,
}

/// Runs the command.
pub async fn run<D: Driver>(command: &Command, common: &Common, db: &D) -> Result<Exit, Failure> {
    match command {
        Command::List(options) => list(options, common, db).await,
        Command::Show(options) => show(options, common, db).await,
        Command::Abandon(options) => abandon(&options.id, common, db).await,
    }
}

/// The shortest beginning of an id that is taken for it.
const SHORTEST: usize = 4;

/// How many of the newest runs a beginning is looked for in.
const LOOKED_AT: i64 = 100_000;

/// What is said where totals stood.
const PRUNED: &str = "its totals went with its records; where its report was kept, its \
                      summary.csv has them";

/// What is said before totals that the run noted itself.
const NOTED: &str = "what it counted at its end:";

fn unknown(text: String) -> Failure {
    Failure::new(Exit::Usage, text, "`tieout runs list` shows the runs there are")
}

/// Closes what shows no life. Every `tieout run` does so for all others when it starts; this is for
/// who does not want to wait for the next.
async fn abandon<D: Driver>(id: &str, common: &Common, db: &D) -> Result<Exit, Failure> {
    let now = db.now().await.map_err(|e| Failure::store(&e))?;
    let closed = db.abandon_run(id, now, DEAD_AFTER).await.map_err(|e| Failure::store(&e))?;
    let run = db.run(id).await.map_err(|e| Failure::store(&e))?;
    let run = run.ok_or_else(|| unknown(format!("there is no run {id}; nothing was done")))?;
    let silent = (now - run.heartbeat_at).num_seconds().max(0);
    if run.state == RunState::Running {
        let text = format!(
            "run {id} on {} (pid {}) is alive: heartbeat {silent} s ago; it was not closed",
            run.host, run.pid
        );
        let hint = format!(
            "end the process, then wait until it was silent for {} s",
            DEAD_AFTER.num_seconds()
        );
        return Err(Failure::new(Exit::Locked, text, hint));
    }
    if common.json {
        let mut body = body(&run, &[]);
        body["changed"] = json!(closed.is_some());
        out::stdout(&line("run", body));
    } else if !common.quiet {
        let text = match closed {
            Some(closed) => format!(
                "run {id} is closed as abandoned: silent for {silent} s, {} decided, {} released",
                screen::rows(closed.decided),
                closed.released
            ),
            None => format!("run {id} had ended before: {}; nothing was done", run.state.as_str()),
        };
        page::say(&text);
    }
    Ok(Exit::Ok)
}

async fn list<D: Driver>(options: &List, common: &Common, db: &D) -> Result<Exit, Failure> {
    let runs = db.runs(i64::from(options.limit)).await.map_err(|e| Failure::store(&e))?;
    if runs.is_empty() && !common.json && !common.quiet {
        out::stdout("no run yet");
    }
    for run in &runs {
        if common.json {
            out::stdout(&line("run", body(run, &[])));
        } else {
            page::say(&listed(run));
        }
    }
    Ok(Exit::Ok)
}

/// One run on one line: how it ended, or that it has not.
fn listed(run: &RunRow) -> String {
    let ended = match (run.exit_code, run.exit_class.as_deref()) {
        (Some(code), Some(class)) => format!("exit {code:<3} {class}"),
        _open => run.state.as_str().to_owned(),
    };
    format!("{}  {}  {ended}", run.id, to_short_text(run.started_at))
}

/// A run by its id, or by how the id of one alone begins.
async fn find<D: Driver>(id: &str, db: &D) -> Result<Option<RunRow>, Failure> {
    let known = db.run(id).await.map_err(|e| Failure::store(&e))?;
    if known.is_some() || id.len() < SHORTEST {
        return Ok(known);
    }
    let runs = db.runs(LOOKED_AT).await.map_err(|e| Failure::store(&e))?;
    let mut like_it = runs.into_iter().filter(|run| run.id.starts_with(id));
    match (like_it.next(), like_it.next()) {
        (Some(run), Some(other)) => Err(unknown(format!(
            "several runs begin with {id}: {}, {} …; nothing was done; name more of it",
            run.id, other.id
        ))),
        (only, _none) => Ok(only),
    }
}

async fn show<D: Driver>(options: &Show, common: &Common, db: &D) -> Result<Exit, Failure> {
    let run = match &options.id {
        Some(id) => find(id, db).await?,
        None => db.runs(1).await.map_err(|e| Failure::store(&e))?.into_iter().next(),
    };
    let Some(run) = run else {
        let text = match &options.id {
            Some(id) => {
                format!("there is no run {id}, and none whose id begins so; nothing was done")
            }
            None => "there is no run yet; nothing was done".to_owned(),
        };
        return Err(unknown(text));
    };
    let totals = db.run_totals(&run.id).await.map_err(|e| Failure::store(&e))?;
    let pruned_at = db.pruned_at(&run.id).await.map_err(|e| Failure::store(&e))?;
    let is_pruned = pruned_at.is_some();
    let withheld = withheld(db, &run, is_pruned).await.map_err(|e| Failure::store(&e))?;
    if common.json {
        let mut body = body(&run, &totals);
        body["pruned_at"] = json!(pruned_at.map(to_text));
        // Where the run noted it, and where it could not: programs find it in one place.
        if let (Some(rows), Some(notes)) = (withheld, body["notes"].as_object_mut()) {
            notes.insert("withheld".to_owned(), json!(rows));
        }
        out::stdout(&line("run", body));
    } else {
        if let Some(at) = pruned_at {
            out::stdout(&format!("pruned {}: its records are gone", to_short_text(at)));
        }
        lines(&run, &totals, withheld, is_pruned).iter().for_each(|line| page::say(line));
    }
    Ok(Exit::Ok)
}

fn lines(
    run: &RunRow,
    totals: &[TotalLine],
    withheld: Option<u64>,
    is_pruned: bool,
) -> Vec<String> {
    let exit = match (run.exit_code, &run.exit_class) {
        (Some(code), Some(class)) => format!(" · exit {code} ({class})"),
        _open => String::new(),
    };
    let mut lines = vec![
        format!("run {} · {} · {}{exit}", run.id, run.command, run.state.as_str()),
        format!(
            "from {} to {} on {} (pid {}), tieout {}",
            to_short_text(run.started_at),
            screen::at(run.ended_at),
            run.host,
            run.pid,
            run.version
        ),
    ];
    lines.extend(window(&run.scope, run.started_at));
    lines.push(format!("scope    {}", scope(&run.scope)));
    lines.push(format!("policy   {} · configuration {}", run.policy_version, run.config_sha256));
    let withheld = withheld_words(withheld).map(|words| format!("withheld {words}"));
    if run.state == RunState::Running {
        lines.extend(under_way(run, totals));
        lines.extend(withheld);
        return lines;
    }
    lines.push(format!("journal  {}", counted(run.journal_count, "record", "records")));
    let notes: Value = serde_json::from_str(&run.notes).unwrap_or_default();
    lines.extend(withheld);
    let noted_totals = noted_totals(&notes).filter(|_| is_pruned && totals.is_empty());
    let shown = |totals: &[TotalLine]| screen::totals(totals, &waits(&notes), &watched(&notes));
    match noted_totals {
        Some(noted) => {
            lines.push(NOTED.to_owned());
            lines.extend(shown(&noted));
        }
        None if is_pruned && totals.is_empty() => lines.push(PRUNED.to_owned()),
        // What it would have found, nobody knows.
        None if notes["error"].is_string() && totals.iter().all(|line| line.rows == 0) => {
            lines.push("no row was claimed".to_owned());
        }
        None => lines.extend(shown(totals)),
    }
    lines.extend(notes["error"].as_str().map(|text| format!("ended by: {text}")));
    for (label, name) in [("not examined", "not_examined"), ("monitoring", "monitoring")] {
        lines.extend(noted(&run.notes, name).iter().map(|text| format!("{label}: {text}")));
    }
    if let (Some(number), Some(hash)) = (run.close_number, &run.close_hash) {
        lines.push(format!("chain    closed as number {number}, hash {hash}"));
    }
    lines
}

/// How far a run is that has not ended. Rows that it holds are no difference: whether it ties out
/// shows when it is closed.
fn under_way(run: &RunRow, totals: &[TotalLine]) -> Vec<String> {
    let (mut claimed, mut accounted) = (0_i64, 0_i64);
    for sides in screen::sides(totals) {
        claimed = claimed.saturating_add(sides.claimed.rows);
        accounted = accounted.saturating_add(sides.accounted.rows);
    }
    let claimed = screen::rows(claimed);
    vec![
        format!("so far   under way: {claimed} claimed, {accounted} of them done with"),
        format!("         last sign of life at {}", to_short_text(run.heartbeat_at)),
        format!("         it ties out when it ends; {}", closed_by()),
    ]
}

/// From when on a run that has not ended is not waited for, and what ends it. A run that carries
/// out what people decided ends no other.
pub fn closed_by() -> String {
    format!(
        "silent for {} s it counts as dead, and the next `tieout run` closes it",
        DEAD_AFTER.num_seconds()
    )
}

/// What a run was told to look at, in words; what another version wrote stays as it is.
fn scope(text: &str) -> String {
    let Ok(scope) = serde_json::from_str::<Value>(text) else { return text.to_owned() };
    let list = |name: &str| {
        let items = scope[name].as_array()?;
        let items: Vec<String> =
            items.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        (!items.is_empty()).then_some(items)
    };
    let mut parts = Vec::new();
    let kick = &scope["kick"];
    if let (Some(asked), Some(by)) = (kick["asked"].as_str(), kick["by"].as_str()) {
        let cases = kick["cases"].as_array().map_or(0, Vec::len);
        let why = kick["why"].as_str().filter(|why| *why != asked);
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        return format!("{} kicked by {by} ({asked}){why}", counted(cases, "case", "cases"));
    }
    parts.push(match (scope["ids"].as_u64(), &scope["window"]) {
        (Some(ids), _) => format!("{} by id", screen::rows(ids)),
        (None, Value::Null) => "every due row".to_owned(),
        (None, _window) => "its window".to_owned(),
    });
    parts.extend(list("tables").map(|names| format!("of {}", names.join(", "))));
    parts.extend(list("accounts").map(|names| format!("at {}", names.join(", "))));
    parts.extend(scope["limit"].as_i64().map(|limit| format!("at most {limit}")));
    parts.extend(scope["timezone"].as_str().map(str::to_owned));
    parts.join(" · ")
}

/// A run's window as the run itself told it; what another version wrote stays as it is.
fn window(scope: &str, started_at: Instant) -> Vec<String> {
    let scope: Value = serde_json::from_str(scope).unwrap_or_default();
    let window = &scope["window"];
    if window.is_null() {
        return Vec::new();
    }
    let text = |name: &str| window[name].as_str();
    let end = |name: &str| match text(name) {
        Some(text) => from_text(text).map(Some).ok_or(text),
        None => Ok(None),
    };
    let ends = match (end("from"), end("to")) {
        (Ok(from), Ok(to)) => screen::instants(from, to, Some(started_at)),
        (from, to) => {
            let shown = |end: Result<Option<Instant>, &str>, open: &str| match end {
                Ok(at) => at.map_or_else(|| open.to_owned(), to_short_text),
                Err(text) => text.to_owned(),
            };
            format!("{} … {}", shown(from, "the beginning"), shown(to, "now"))
        }
    };
    let words = text("words").unwrap_or("of another version");
    let zone = scope["timezone"].as_str().unwrap_or("UTC");
    screen::window_lines(words, zone, text("on").unwrap_or("…"), &ends).to_vec()
}

/// Of the rows that wait: how many by reason.
pub fn waits(notes: &Value) -> Vec<(String, u64)> {
    let reasons = notes["waits"].as_object().into_iter().flatten();
    reasons.filter_map(|(reason, rows)| Some((reason.clone(), rows.as_u64()?))).collect()
}

/// Of the rows that wait: those that ended before. A run of an older version notes no sums.
pub fn watched(notes: &Value) -> Vec<TotalLine> {
    let lines = notes["watched"].as_array().into_iter().flatten();
    lines.filter_map(|line| sum_of(line, "watched")).collect()
}

/// How many rows the mode kept a decision from: as the run noted it at its end, else as its records
/// say. None where it noted nothing, and its records are gone.
pub async fn withheld<D: Driver>(
    db: &D,
    run: &RunRow,
    is_pruned: bool,
) -> Result<Option<u64>, StoreError> {
    let notes: Value = serde_json::from_str(&run.notes).unwrap_or_default();
    let noted = notes["withheld"].as_u64();
    // What ended a run may have come between what it wrote and what it counted.
    let is_whole = noted.is_some() && run.state != RunState::Failed;
    if is_whole || is_pruned {
        return Ok(noted);
    }
    let counted = db.withheld_of_run(&run.id).await?;
    Ok(u64::try_from(counted).ok())
}

/// The same in words; nothing where it kept nothing back.
pub fn withheld_words(rows: Option<u64>) -> Option<String> {
    rows.filter(|rows| *rows > 0).map(screen::withheld_words)
}

/// Both sides of the tie-out, as the run read them back at its end. A run of an older version, and
/// one that did not end by itself, notes none.
pub fn noted_totals(notes: &Value) -> Option<Vec<TotalLine>> {
    let lines = notes["totals"].as_array()?;
    lines.iter().map(|line| sum_of(line, line["bucket"].as_str()?)).collect()
}

fn sum_of(line: &Value, bucket: &str) -> Option<TotalLine> {
    Some(TotalLine {
        table: line["table"].as_str()?.to_owned(),
        currency: line["currency"].as_str()?.to_owned(),
        bucket: bucket.to_owned(),
        rows: line["rows"].as_i64()?,
        amount_minor: line["amount_minor_text"].as_str()?.parse().ok()?,
    })
}

/// The notes of a run's end name what was not examined, and what monitoring could not tell.
fn noted(notes: &str, name: &str) -> Vec<String> {
    let notes: Value = serde_json::from_str(notes).unwrap_or_default();
    let texts = notes.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    texts.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

fn body(run: &RunRow, totals: &[TotalLine]) -> Value {
    let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let totals: Vec<Value> = totals
        .iter()
        .map(|line| {
            json!({
                "table": line.table,
                "currency": line.currency,
                "bucket": line.bucket,
                "rows": line.rows,
                // Beyond 64 bits a JSON number would lose its last digits.
                "amount_minor": i64::try_from(line.amount_minor).ok(),
                "amount_minor_text": line.amount_minor.to_string(),
            })
        })
        .collect();
    json!({
        "run_id": run.id,
        "command": run.command,
        "state": run.state,
        "started_at": to_text(run.started_at),
        "heartbeat_at": to_text(run.heartbeat_at),
        "ended_at": run.ended_at.map(to_text),
        "host": run.host,
        "pid": run.pid,
        "version": run.version,
        "config_sha256": run.config_sha256,
        "policy_version": run.policy_version,
        "scope": parsed(&run.scope),
        "notes": parsed(&run.notes),
        "exit": run.exit_code,
        "class": run.exit_class,
        "journal_count": run.journal_count,
        "close_number": run.close_number,
        "close_hash": run.close_hash,
        "totals": totals,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_told_with_both_ends_its_zone_and_its_length() {
        let (from, to) = ("2026-11-19T09:39:20.759004Z", "2026-11-20T00:09:20.759004Z");
        let started_at = from_text("2026-11-22T09:39:20.700000Z").unwrap();
        let of = |asked: Value| {
            let scope = json!({ "window": asked, "timezone": "Europe/Berlin" }).to_string();
            window(&scope, started_at).join("\n")
        };
        for (asked, want) in [
            (
                json!({ "words": "since 3d", "from": from, "to": null, "on": "created" }),
                "window   since 3d Europe/Berlin · on created\n         \
                 = 2026-11-19T09:39:20Z … now, at its start 2026-11-22T09:39:20Z (72 h)",
            ),
            (
                json!({ "words": "a to b", "from": from, "to": to, "on": "attempted" }),
                "window   a to b Europe/Berlin · on attempted\n         \
                 = 2026-11-19T09:39:20Z … 2026-11-20T00:09:20Z (14 h 30 min)",
            ),
            (
                json!({ "words": "to b", "from": null, "to": to, "on": "created" }),
                "window   to b Europe/Berlin · on created\n         \
                 = the beginning … 2026-11-20T00:09:20Z",
            ),
            // Of another version: as it stands.
            (
                json!({ "words": "x", "from": "yesterday", "to": null, "on": "x" }),
                "window   x Europe/Berlin · on x\n         = yesterday … now",
            ),
        ] {
            assert_eq!(of(asked), want);
        }
        assert!(window("{\"window\":null}", started_at).is_empty());
    }

    #[test]
    fn totals_are_read_whole_or_not_at_all() {
        let line = |rows: Value| {
            json!({
                "table": "payments", "currency": "EUR", "bucket": "claimed", "rows": rows,
                "amount_minor_text": "-170141183460469231731687303715884105728",
            })
        };
        let want = TotalLine {
            table: "payments".to_owned(),
            currency: "EUR".to_owned(),
            bucket: "claimed".to_owned(),
            rows: 2,
            amount_minor: i128::MIN,
        };
        assert_eq!(noted_totals(&json!({ "totals": [line(json!(2))] })), Some(vec![want]));
        assert_eq!(noted_totals(&json!({ "totals": [] })), Some(Vec::new()));
        let odd = json!({ "totals": [line(json!(2)), line(json!("2"))] });
        for notes in [odd, json!({ "totals": null }), json!({})] {
            assert_eq!(noted_totals(&notes), None, "{notes}");
        }
    }
}
