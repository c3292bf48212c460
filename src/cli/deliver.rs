//! `tieout deliver`: what was decided goes to the sinks; and what a person does about events that
//! could not be delivered, the dead letters.

pub mod letters;

use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::args::{Common, word, yes_or_no};
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::page::{self, say};
use crate::cli::{database, out, runtime, teller};
use crate::config::sections::read_span;
use crate::config::{self, Config, names};
use crate::exit::Exit;
use crate::model::near::nearest;
use crate::model::time::to_text;
use crate::run::deliver::{DeliverOptions, Delivered, SinkNote, SinkTurn, deliver, waits};
use crate::run::shutdown::Stop;

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout deliver                      what is due, to every sink
  tieout deliver --sink worker --now  to this one, left alone or not
  tieout deliver list                 what could not be delivered
  tieout deliver retry --error 422    try these again
  tieout deliver purge --id pay_9044 --reason booked-by-hand
  tieout deliver merge --reason newest-counts

`tieout run` delivers at its end by itself ([delivery] after_run).";

/// Options of `deliver`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Option<letters::Command>,
    /// Only to these sinks
    #[arg(long, value_name = "NAME", env = names::DELIVER_SINK, value_delimiter = ',')]
    sink: Vec<String>,
    /// Also to sinks that are left alone for a while, and what waits for another try
    #[arg(long, env = names::DELIVER_NOW, value_parser = yes_or_no)]
    now: bool,
    /// Begin nothing new after this long
    #[arg(long, value_name = "SPAN", env = names::DELIVER_MAX_DURATION)]
    max_duration: Option<String>,
}

/// Runs the command.
pub fn run(args: &Args, common: &Common) -> Result<Exit, Failure> {
    let config = config::load(common.config(), &[])?;
    match &args.command {
        None => send(args, common, &config),
        Some(command) => {
            let only_reads = matches!(command, letters::Command::List(_));
            database::with_as(&config, only_reads, async |db| {
                letters::run(command, common, &config, db).await
            })
        }
    }
}

fn send(args: &Args, common: &Common, config: &Config) -> Result<Exit, Failure> {
    let options = options(args, config)?;
    let setup = config.setup();
    let stop = Stop::new();
    let delivered: Delivered = runtime::block_on(Box::pin(async {
        let db = database::open(config).await?;
        let ended = match runtime::listen(&stop, config.limits.grace) {
            Err(failure) => Err(failure),
            Ok(_listening) => {
                let delivered = deliver(&setup, &db, &stop, &options).await;
                delivered.map_err(|error| Failure::run(&error))
            }
        };
        db.close().await;
        ended
    }))??;
    let mut exit = delivered.exit();
    for note in &delivered.notes {
        exit = exit.or_stronger(tell(note, common, &stop));
    }
    if let Some(stopped) = stop.exit() {
        exit = exit.or_stronger(stopped);
    }
    if common.json {
        let body = json!({
            "exit": exit.code(),
            "class": exit.class(),
            "suppressed": delivered.stale.suppressed,
            "lapsed": delivered.stale.lapsed,
        });
        out::stdout(&line("delivery_end", body));
    } else if delivered.stale.lapsed > 0 && teller::is_for_a_person(common, false) {
        say(&match delivered.stale.lapsed {
            1 => "1 hand-back was not taken in time; the next run proves its row afresh".to_owned(),
            many => format!(
                "{many} hand-backs were not taken in time; the next run proves their rows afresh"
            ),
        });
    }
    Ok(exit)
}

fn options(args: &Args, config: &Config) -> Result<DeliverOptions, Failure> {
    if config.sinks.is_empty() {
        let text = "no [[sink]] is configured; nothing was delivered";
        return Err(Failure::new(Exit::Config, text, "add [[sink]] to tieout.toml"));
    }
    let only: Vec<String> = args.sink.iter().filter(|name| !name.is_empty()).cloned().collect();
    for name in &only {
        let known: Vec<&str> = config.sinks.iter().map(|sink| sink.name.as_str()).collect();
        if !known.contains(&name.as_str()) {
            return Err(unknown("--sink", name, "sink", "configured", &known));
        }
    }
    let at_most = word(args.max_duration.as_ref())
        .map(|text| {
            let span = read_span(&text).ok().and_then(|span| span.to_std().ok());
            span.ok_or_else(|| {
                Failure::usage(format!("--max-duration {text}: expected a span such as 90s"))
            })
        })
        .transpose()?;
    Ok(DeliverOptions {
        only: (!only.is_empty()).then_some(only),
        at_most: at_most.filter(|most| *most > Duration::ZERO),
        now_at_all: args.now,
    })
}

/// A name that nothing has: a mistyped one must not look as if nothing waited there.
fn unknown(flag: &str, name: &str, what: &str, are: &str, known: &[&str]) -> Failure {
    let help = match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => format!("{are}: none."),
        None => format!("{are}: {}.", known.join(", ")),
    };
    Failure::usage(format!("{flag} {name}: there is no such {what}; {help} Nothing was done"))
}

/// Tells how a sink did; the exit that being cut short leads to.
fn tell(note: &SinkNote, common: &Common, stop: &Stop) -> Exit {
    if common.json {
        out::stdout(&line("delivery", body(note)));
    } else if teller::is_for_a_person(common, false) {
        say(&words(note));
    }
    if let Some((text, next)) = note.trouble() {
        page::warn(&format!("tieout: {}: {text}", note.exit.class()));
        page::warn(&format!("hint: {next}"));
    }
    let is_late = note.state == SinkTurn::CutShort && stop.requested().is_none();
    if is_late && note.waiting > note.later {
        let waits = waits(note.waiting, note.later);
        let text = format!("sink {}: time is over; {waits}", note.sink);
        page::warn(&format!("tieout: partial: {text}"));
        return Exit::Partial;
    }
    Exit::Ok
}

fn words(note: &SinkNote) -> String {
    let died = (i64::try_from(note.died).unwrap_or(i64::MAX), "refused");
    let counts = [
        (i64::try_from(note.delivered).unwrap_or(i64::MAX), "delivered"),
        (i64::try_from(note.put_off).unwrap_or(i64::MAX), "put off"),
        died,
        (note.waiting, "wait"),
        (note.dead, if note.dead == 1 { "dead letter" } else { "dead letters" }),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let mut words: Vec<String> = counts.map(|(count, word)| format!("{count} {word}")).collect();
    if note.state == SinkTurn::Busy {
        words.push("another process sends to it".to_owned());
    }
    if words.is_empty() {
        words.push("nothing due".to_owned());
    }
    format!("{:<12} {:<10}  {}", note.sink, note.kind, words.join(", "))
}

fn body(note: &SinkNote) -> Value {
    json!({
        "sink": note.sink,
        "kind": note.kind,
        "state": note.state,
        "delivered": note.delivered,
        "put_off": note.put_off,
        "died": note.died,
        "waiting": note.waiting,
        "dead": note.dead,
        "oldest_staged_at": note.oldest.map(to_text),
        "until": note.until.map(to_text),
        "error": note.error,
    })
}
