//! Dead letters: events that a sink refused, or failed at too often. They wait for a person, and so
//! do the later events of their rows. None ever expires.

use clap::Subcommand;
use serde_json::{Value, json};

use crate::cli::args::{Common, sentence, word, yes_or_no};
use crate::cli::deliver::unknown;
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::page::say;
use crate::cli::{out, person};
use crate::config::sections::read_span;
use crate::config::{Config, names};
use crate::exit::Exit;
use crate::model::count::counted;
use crate::model::time::{Instant, earlier, to_short_text, to_text};
use crate::sinks::settings::EVENT_KINDS;
use crate::store::driver::Driver;
use crate::store::outbox::{By, Deed, LetterFilter, Merging, OpenLetter, OutboxDriver};

/// Letters that a preview shows, as many as a list does.
const SAMPLES: i64 = 200;

/// What to do with dead letters.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what could not be delivered
    List(List),
    /// Try dead letters again
    Retry(Retry),
    /// Give dead letters up
    Purge(Purge),
    /// Of each row with dead letters send the newest, and give up the older ones
    Merge(Merge),
}

/// Which letters.
#[derive(Debug, clap::Args)]
pub struct Which {
    /// Only to this sink
    #[arg(long, value_name = "NAME", env = names::DELIVER_SINK)]
    sink: Option<String>,
    /// Only of this table
    #[arg(long, value_name = "NAME", env = names::DELIVER_TABLE)]
    table: Option<String>,
    /// Only of these rows
    #[arg(long, value_name = "ID", env = names::DELIVER_ID, value_delimiter = '\n')]
    id: Vec<String>,
    /// Only this event: transaction.retryable
    #[arg(long, value_name = "EVENT", env = names::DELIVER_EVENT)]
    event: Option<String>,
    /// Only where the sink's last words have this in them
    #[arg(long, value_name = "TEXT", env = names::DELIVER_ERROR)]
    error: Option<String>,
    /// Only those staged longer ago than this
    #[arg(long, value_name = "SPAN", env = names::DELIVER_OLDER_THAN)]
    older_than: Option<String>,
}

/// Options of `deliver list`.
#[derive(Debug, clap::Args)]
pub struct List {
    #[command(flatten)]
    which: Which,
    /// Those too that wait for their next try
    #[arg(long, env = names::DELIVER_WAITING, value_parser = yes_or_no)]
    waiting: bool,
    /// At most so many
    #[arg(long, value_name = "LETTERS", env = names::DELIVER_LIMIT, default_value_t = 200,
        value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

/// Options of `deliver retry`.
#[derive(Debug, clap::Args)]
pub struct Retry {
    #[command(flatten)]
    which: Which,
    /// Show what would be tried, and change nothing
    #[arg(long, env = names::DELIVER_DRY_RUN, value_parser = yes_or_no)]
    dry_run: bool,
}

/// Options of `deliver purge`.
#[derive(Debug, clap::Args)]
pub struct Purge {
    #[command(flatten)]
    which: Which,
    /// Those too that wait for their next try, as of a sink that is gone for good
    #[arg(long, env = names::DELIVER_WAITING, value_parser = yes_or_no)]
    waiting: bool,
    /// Why, for whoever asks later
    #[arg(long, value_name = "TEXT", env = names::DELIVER_REASON)]
    reason: String,
    /// Show what would be given up, and change nothing
    #[arg(long, env = names::DELIVER_DRY_RUN, value_parser = yes_or_no)]
    dry_run: bool,
}

/// Options of `deliver merge`.
#[derive(Debug, clap::Args)]
pub struct Merge {
    #[command(flatten)]
    which: Which,
    /// Why, for whoever asks later
    #[arg(long, value_name = "TEXT", env = names::DELIVER_REASON)]
    reason: String,
    /// Show what would be tried or given up, and change nothing
    #[arg(long, env = names::DELIVER_DRY_RUN, value_parser = yes_or_no)]
    dry_run: bool,
}

/// Runs the command.
pub async fn run<D: Driver + OutboxDriver>(
    command: &Command,
    common: &Common,
    config: &Config,
    db: &D,
) -> Result<Exit, Failure> {
    let now = db.now().await.map_err(|e| Failure::store(&e))?;
    known(which(command), config, db, now).await?;
    let (deed, filter, why, is_dry) = match command {
        Command::List(options) => {
            let state = (!options.waiting).then_some("dead");
            let filter = filter(&options.which, state, now)?;
            return list(&filter, i64::from(options.limit), common, db).await;
        }
        Command::Retry(options) => {
            let filter = filter(&options.which, Some("dead"), now)?;
            (Deed::Retry, filter, "", options.dry_run)
        }
        Command::Purge(options) => {
            let state = (!options.waiting).then_some("dead");
            let filter = filter(&options.which, state, now)?;
            narrowed(&options.which)?;
            (
                Deed::Purge,
                filter,
                sentence("--reason", &options.reason, "; nothing was done")?,
                options.dry_run,
            )
        }
        Command::Merge(options) => {
            let filter = filter(&options.which, Some("dead"), now)?;
            (
                Deed::Merge,
                filter,
                sentence("--reason", &options.reason, "; nothing was done")?,
                options.dry_run,
            )
        }
    };
    if is_dry {
        return preview(deed, &filter, common, db).await;
    }
    let who = person::name();
    let done = db.change_letters(deed, &filter, By { who: &who, why }, now).await;
    let done = done.map_err(|e| Failure::store(&e))?;
    if common.json {
        let body = json!({
            "deed": deed.as_str(),
            "again": done.again,
            "given_up": done.given_up,
            "by": who,
        });
        out::stdout(&line("letters", body));
    } else if !common.quiet {
        let again =
            counted(done.again, "dead letter is tried again", "dead letters are tried again");
        say(&match deed {
            Deed::Retry => again,
            Deed::Purge => counted(done.given_up, "letter was given up", "letters were given up"),
            Deed::Merge => format!(
                "of {} the newest letter is sent, and {} given up",
                counted(done.again, "row", "rows"),
                counted(done.given_up, "older one was", "older ones were")
            ),
        });
    }
    Ok(Exit::Ok)
}

fn which(command: &Command) -> &Which {
    match command {
        Command::List(options) => &options.which,
        Command::Retry(options) => &options.which,
        Command::Purge(options) => &options.which,
        Command::Merge(options) => &options.which,
    }
}

/// What is given up is not tried again: whoever means all of a sink names it. A table or an age
/// alone may be all there are.
fn narrowed(which: &Which) -> Result<(), Failure> {
    let words = [&which.sink, &which.event, &which.error];
    let is_narrowed = words.into_iter().any(|given| word(given.as_ref()).is_some())
        || which.id.iter().any(|id| !id.is_empty());
    match is_narrowed {
        true => Ok(()),
        false => Err(Failure::usage(
            "which letters? narrow them by --sink, --id, --event or --error (and by --table or \
             --older-than beside); nothing was done",
        )),
    }
}

/// Refuses the name of a sink or a table that is neither configured nor in the database: a sink
/// that left the configuration keeps its letters, and so does a table that is mapped no more.
async fn known<D: OutboxDriver>(
    which: &Which,
    config: &Config,
    db: &D,
    now: Instant,
) -> Result<(), Failure> {
    if let Some(name) = word(which.sink.as_ref()) {
        let mut known: Vec<&str> = config.sinks.iter().map(|sink| sink.name.as_str()).collect();
        if !known.contains(&name.as_str()) {
            let states = db.sink_states(now).await.map_err(|e| Failure::store(&e))?;
            known.extend(states.iter().map(|state| state.sink.as_str()));
            known.sort_unstable();
            known.dedup();
            if !known.contains(&name.as_str()) {
                return Err(unknown("--sink", &name, "sink", "known", &known));
            }
        }
    }
    let Some(name) = word(which.table.as_ref()) else { return Ok(()) };
    let known: Vec<&str> = config.tables.iter().map(|table| table.name.as_str()).collect();
    if known.contains(&name.as_str()) {
        return Ok(());
    }
    let filter = LetterFilter { table: Some(name.clone()), ..LetterFilter::default() };
    match db.open_letters(&filter, 1).await.map_err(|e| Failure::store(&e))? {
        (_letters, 0) => Err(unknown("--table", &name, "table", "mapped", &known)),
        (_letters, _some) => Ok(()),
    }
}

async fn list<D: OutboxDriver>(
    filter: &LetterFilter,
    limit: i64,
    common: &Common,
    db: &D,
) -> Result<Exit, Failure> {
    let (letters, all) = db.open_letters(filter, limit).await.map_err(|e| Failure::store(&e))?;
    for letter in &letters {
        show(letter, common);
    }
    if common.json || common.quiet {
        return Ok(Exit::Ok);
    }
    let shown = i64::try_from(letters.len()).unwrap_or(i64::MAX);
    if letters.is_empty() {
        say("nothing that could not be delivered");
    } else if all > shown {
        say(&format!("{shown} of {all}; --limit shows more"));
    }
    Ok(Exit::Ok)
}

async fn preview<D: OutboxDriver>(
    deed: Deed,
    filter: &LetterFilter,
    common: &Common,
    db: &D,
) -> Result<Exit, Failure> {
    if deed == Deed::Merge {
        return preview_merge(filter, common, db).await;
    }
    let (letters, all) = db.open_letters(filter, SAMPLES).await.map_err(|e| Failure::store(&e))?;
    show_all(&letters, all, common);
    if common.json {
        let body = json!({ "deed": deed.as_str(), "matching": all, "dry_run": true });
        out::stdout(&line("letters", body));
    } else if !common.quiet {
        let letters = counted(all, "letter", "letters");
        say(&format!("would {} {letters}. Nothing was changed", deed.as_str()));
    }
    Ok(Exit::Ok)
}

/// Shows what is given up, dead or waiting: that is what nobody can take back.
async fn preview_merge<D: OutboxDriver>(
    filter: &LetterFilter,
    common: &Common,
    db: &D,
) -> Result<Exit, Failure> {
    let merging = db.merging(filter, SAMPLES).await.map_err(|e| Failure::store(&e))?;
    let Merging { given_up, given_up_total: all, again } = merging;
    show_all(&given_up, all, common);
    if common.json {
        let body = json!({
            "deed": Deed::Merge.as_str(),
            "matching": all,
            "again": again,
            "given_up": all,
            "dry_run": true,
        });
        out::stdout(&line("letters", body));
    } else if !common.quiet {
        say(&format!(
            "would send the newest letter of {}, and give {} up. Nothing was changed",
            counted(again, "row", "rows"),
            counted(all, "older one", "older ones")
        ));
    }
    Ok(Exit::Ok)
}

/// Shows letters of a preview, and how many more there are than it shows.
fn show_all(letters: &[OpenLetter], all: i64, common: &Common) {
    letters.iter().for_each(|letter| show(letter, common));
    let more = all.saturating_sub(i64::try_from(letters.len()).unwrap_or(i64::MAX));
    if more > 0 && !common.json {
        say(&format!("… and {more} more"));
    }
}

fn show(open: &OpenLetter, common: &Common) {
    if common.json {
        out::stdout(&line("letter", body(open)));
        return;
    }
    let letter = &open.letter;
    say(&format!(
        "{:<12} {:<8} {} {} v{}  {}  staged {}",
        open.sink,
        open.state,
        letter.table,
        letter.key,
        letter.version,
        letter.kind,
        to_short_text(letter.staged_at),
    ));
    let error = open.last_error.as_deref().unwrap_or("not tried yet");
    let next = match open.state.as_str() {
        "waiting" => format!("; next try {}", to_short_text(open.next_attempt_at)),
        _dead => String::new(),
    };
    say(&format!("    {error} ({}){next}", counted(letter.attempts, "try", "tries")));
}

fn body(open: &OpenLetter) -> Value {
    let letter = &open.letter;
    json!({
        "sink": open.sink,
        "state": open.state,
        "event_id": letter.event_id,
        "event": letter.kind,
        "table": letter.table,
        "txn_id": letter.key,
        "version": letter.version,
        "attempts": letter.attempts,
        "staged_at": to_text(letter.staged_at),
        "next_attempt_at": to_text(open.next_attempt_at),
        "error": open.last_error,
    })
}

fn filter(
    which: &Which,
    state: Option<&'static str>,
    now: Instant,
) -> Result<LetterFilter, Failure> {
    let text = |value: &Option<String>| value.clone().filter(|text| !text.is_empty());
    if let Some(kind) = text(&which.event)
        && !EVENT_KINDS.contains(&kind.as_str())
    {
        let known = EVENT_KINDS.join(", ");
        return Err(Failure::usage(format!("--event {kind}: expected one of {known}")));
    }
    let staged_before = match text(&which.older_than) {
        None => None,
        Some(span) => {
            let read = read_span(&span).map_err(|expected| {
                Failure::usage(format!("--older-than {span}: expected {expected}"))
            });
            Some(earlier(now, read?))
        }
    };
    let ids: Vec<String> = which.id.iter().filter(|id| !id.is_empty()).cloned().collect();
    Ok(LetterFilter {
        state,
        sink: text(&which.sink),
        table: text(&which.table),
        keys: (!ids.is_empty()).then_some(ids),
        kind: text(&which.event),
        error: text(&which.error),
        staged_before,
    })
}
