//! The command line: typed words → options, and what happened → screens, events, exit codes.
//!
//! One file a command. Nothing here decides about a payment, and nothing here writes to a user's
//! table: commands call the verbs of the rooms. Data goes to stdout; what went wrong, logs and
//! progress go to stderr. Text may change, `--json` and exit codes are the stable face.
//!
//! Adding a command: a variant of [`Command`] with its examples, a file with its `Args` and its
//! `run`, a line in `dispatch`, a snapshot in `tests/it/cli.rs`.

pub mod args;
pub mod runs;
pub mod explain;
pub mod evidence;
pub mod database;
pub mod db;
pub mod cases;
pub mod audit;
pub mod deliver;
pub mod demo;
pub mod doctor;
pub mod config;
pub mod events;
pub mod failure;
pub mod files;
pub mod generate;
pub mod ingest;
pub mod init;
pub mod logs;
pub mod meter;
pub mod out;
pub mod page;
pub mod pause;
pub mod person;
pub mod prune;
pub mod report;
pub mod rules;
pub mod run;
pub mod runtime;
pub mod sandbox;
pub mod serve;
pub mod sources;
pub mod standing;
pub mod schedule;
pub mod screen;
pub mod teller;
pub mod version;
pub mod watched;
pub mod window;

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::cli::args::Common;
use crate::cli::failure::Failure;
use crate::config::names;
use crate::exit::Exit;

/// Finds out what really happened to every payment that got stuck in processing.
#[derive(Debug, Parser)]
#[command(
    name = "tieout",
    version,
    max_term_width = 80,
    arg_required_else_help = true,
    subcommand_required = true,
    disable_help_subcommand = true,
    disable_help_flag = true,
    after_help = EXAMPLES
)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  tieout demo                       see a run, without any configuration
  tieout run --dry-run              what would be done with every due row
  tieout run                        from cron: silent when all is well
  tieout explain pay_9044           why is this row here?

Exit codes: 0 ok, 3 partial, 5 untied; every other is a failure (see README).
Every flag has an environment form, shown as [env: …]; flags win over it.";

/// What to do.
#[derive(Debug, Subcommand)]
enum Command {
    /// Find rows stuck in processing, ask the PSP, decide, apply, report
    #[command(after_help = run::EXAMPLES)]
    Run(Box<run::Args>),
    /// Show the main job on a database and a PSP of its own, in seconds
    #[command(after_help = demo::EXAMPLES)]
    Demo(demo::Args),
    /// Say everything known about one row, and why it stands where it stands
    #[command(after_help = explain::EXAMPLES)]
    Explain(explain::Args),
    /// Send what was decided to the sinks; look at what could not be delivered
    #[command(after_help = deliver::EXAMPLES)]
    Deliver(Box<deliver::Args>),
    /// Look at what waits for a person, and decide it
    #[command(subcommand, after_help = cases::EXAMPLES)]
    Cases(cases::Command),
    /// Look at the rules, try them, and see what other ones would change
    #[command(subcommand, after_help = rules::EXAMPLES)]
    Rules(rules::Command),
    /// Stop an account: none of its rows is written until it is resumed
    #[command(after_help = pause::EXAMPLES)]
    Pause(pause::Args),
    /// Let a paused account go on
    #[command(after_help = pause::RESUME_EXAMPLES)]
    Resume(pause::ResumeArgs),
    /// Build, verify and list reports
    #[command(subcommand, after_help = report::EXAMPLES)]
    Report(report::Command),
    /// Bring settlement files in: each whole and tied, or not at all
    #[command(after_help = ingest::EXAMPLES)]
    Ingest(ingest::Args),
    /// Look at settlement files
    #[command(subcommand, after_help = files::EXAMPLES)]
    Files(files::Command),
    /// Look at where settlement files come from
    #[command(subcommand, after_help = sources::EXAMPLES)]
    Sources(sources::Command),
    /// Look at what ran and how it ended
    #[command(subcommand, after_help = runs::EXAMPLES)]
    Runs(runs::Command),
    /// Verify the journal
    #[command(subcommand, after_help = audit::EXAMPLES)]
    Audit(audit::Command),
    /// Make or check tieout's own tables
    #[command(subcommand, after_help = db::EXAMPLES)]
    Db(db::Command),
    /// Look at the configuration
    #[command(subcommand, after_help = config::EXAMPLES)]
    Config(config::Command),
    /// Print ready files for cron, systemd, Kubernetes or Heroku
    #[command(subcommand, after_help = schedule::EXAMPLES)]
    Schedule(schedule::Command),
    /// Look at everything that a run stands on; writes nothing
    #[command(after_help = doctor::EXAMPLES)]
    Doctor,
    /// Serve a PSP that misbehaves on purpose, to rehearse a bad day
    #[command(after_help = sandbox::EXAMPLES)]
    Sandbox(sandbox::Args),
    /// Serve the review page: what waits for a person, in a browser
    #[command(after_help = serve::EXAMPLES)]
    Serve(serve::Args),
    /// Make man pages and shell completions
    #[command(after_help = generate::EXAMPLES)]
    Generate(generate::Args),
    /// Print the version
    #[command(after_help = version::EXAMPLES)]
    Version,
}

/// As [`Cli`], for the job alone: what cron starts every few minutes need not make, and hold in
/// memory, the words of every other command.
#[derive(Debug, Parser)]
#[command(name = "tieout", version, disable_help_subcommand = true, disable_help_flag = true)]
struct JobCli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Job,
}

#[derive(Debug, Subcommand)]
enum Job {
    Run(Box<run::Args>),
}

/// The words as the job's, where they are. Help and errors are the whole command line's.
fn as_job(words: &[OsString]) -> Option<(Cli, clap::ArgMatches)> {
    words.iter().find(|word| *word == "run")?;
    let matches = JobCli::command().try_get_matches_from(words).ok()?;
    let JobCli { common, command: Job::Run(args) } = JobCli::from_arg_matches(&matches).ok()?;
    Some((Cli { common, command: Command::Run(args) }, matches))
}

/// `tieout help cases show` is `tieout cases show --help`.
fn asking_for_help(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_some_and(|word| word == "help") {
        words.remove(1);
        words.push("--help".into());
    }
    words
}

/// Runs the program on its words; the process's end comes back.
pub fn main(words: impl IntoIterator<Item = OsString>) -> Exit {
    let words = asking_for_help(words.into_iter().collect());
    let parsed = as_job(&words).map_or_else(
        || {
            let command = command().color(colours(&words));
            let matches = command.try_get_matches_from(&words)?;
            Ok((Cli::from_arg_matches(&matches)?, matches))
        },
        Ok,
    );
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return usage(&error, wants_json(&words)),
    };
    if let Err(failure) = logs::start(&cli.common) {
        return failure::tell(&failure, &cli.common);
    }
    let exit = match dispatch(&cli, &matches) {
        Ok(exit) => exit,
        Err(failure) => failure::tell(&failure, &cli.common),
    };
    match out::lost() {
        None => exit,
        Some(why) => exit.or_stronger(lost(&why)),
    }
}

/// Tells that stdout took nothing.
fn lost(why: &dyn std::fmt::Display) -> Exit {
    page::warn(&format!(
        "tieout: {}: what was to be printed could not be written: {why}; what the command did \
         stands",
        Exit::Database.class()
    ));
    page::warn("hint: free the disk that stdout goes to, then run it again");
    Exit::Database
}

fn dispatch(cli: &Cli, matches: &clap::ArgMatches) -> Result<Exit, Failure> {
    let given = matches.subcommand().map_or(matches, |(_name, given)| given);
    let common = &cli.common;
    match &cli.command {
        Command::Run(args) => run::run(args, common, given),
        Command::Demo(args) => demo::run(args, common),
        Command::Config(command) => config::run(command, common),
        Command::Deliver(args) => deliver::run(args, common),
        Command::Ingest(args) => ingest::run(args, common),
        Command::Files(command) => files::run(command, common),
        Command::Sources(command) => sources::run(command, common),
        Command::Doctor => doctor::run(common),
        Command::Sandbox(args) => sandbox::run(args, common),
        Command::Serve(args) => serve::run(args, common),
        Command::Generate(args) => generate::run(args, self::command()),
        Command::Rules(command) => rules::run(command, common),
        Command::Schedule(command) => Ok(schedule::run(command, common)),
        Command::Version => version::run(common),
        Command::Report(command) => report::run(command, common, given),
        Command::Explain(args) => {
            let config = crate::config::load(common.config(), &[])?;
            database::to_read(&config, async |db| explain::run(args, common, &config, db).await)
        }
        Command::Cases(command) => cases::run(command, common),
        Command::Pause(args) => {
            let config = crate::config::load(common.config(), &[])?;
            database::with(&config, async |db| pause::run(args, common, &config, db).await)
        }
        Command::Resume(args) => {
            let config = crate::config::load(common.config(), &[])?;
            database::with(&config, async |db| pause::resume(args, common, &config, db).await)
        }
        Command::Runs(command) => {
            let config = crate::config::load(common.config(), &[])?;
            let reads = !matches!(command, runs::Command::Abandon(_));
            database::with_as(&config, reads, async |db| runs::run(command, common, db).await)
        }
        Command::Audit(command) => {
            let config = crate::config::load(common.config(), &[])?;
            database::to_read(&config, async |db| audit::run(command, common, db).await)
        }
        Command::Db(command) => {
            let config = crate::config::load(common.config(), &[])?;
            let only_reads = matches!(command, db::Command::Status(_) | db::Command::Roles(_));
            database::with_any(&config, only_reads, async |db| {
                db::run(command, common, &config, db).await
            })
        }
    }
}

/// The whole command line, for man pages, completions and the test that reads every flag.
pub fn command() -> clap::Command {
    with_examples(Cli::command(), "tieout", "")
}

/// A command without examples of its own shows those of the one above it that are about it.
fn with_examples(command: clap::Command, path: &str, above: &str) -> clap::Command {
    let examples = match command.get_after_help() {
        Some(own) => own.to_string(),
        None => {
            let start = format!("  {path}");
            let about = |line: &&str| {
                let rest = line.strip_prefix(&start);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            };
            let lines: Vec<&str> = above.lines().filter(about).collect();
            format!("Examples:\n{}", lines.join("\n"))
        }
    };
    command.after_help(examples.clone()).mut_subcommands(|inner| {
        let path = format!("{path} {}", inner.get_name());
        with_examples(inner, &path, &examples)
    })
}

/// Whether events are asked for, by words or a variable, of which not all can be meant.
fn wants_json(words: &[OsString]) -> bool {
    is_asked(words, "--json", names::JSON)
}

/// Help is coloured by the library, before it has read that it is not to be. NO_COLOR it heeds.
fn colours(words: &[OsString]) -> ColorChoice {
    match is_asked(words, "--no-color", names::TIEOUT_NO_COLOR) {
        true => ColorChoice::Never,
        false => ColorChoice::Auto,
    }
}

/// Whether a flag is set by words that nobody has read yet, or by its variable.
fn is_asked(words: &[OsString], flag: &str, name: &str) -> bool {
    let is_set = |text: String| args::yes_or_no(&text).unwrap_or(false);
    words.iter().any(|word| word == flag) || crate::config::variable(name).is_some_and(is_set)
}

/// Help and version are answers; everything else is a usage error, in the form of all errors.
fn usage(error: &clap::Error, json: bool) -> Exit {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => match error.print() {
            // A closed pipe (`tieout --help | head`) is no failure.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => lost(&error),
            _printed => Exit::Ok,
        },
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _printed = error.print();
            Exit::Usage
        }
        _wrong_words => {
            let text = error.render().to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
            let (first, rest) = first_sentence(text);
            let rest = if rest.is_empty() { "" } else { &format!("\n{rest}") };
            let text = format!("{first}; nothing was done{rest}");
            failure::tell_as(&Failure { exit: Exit::Usage, text, hint: None }, json)
        }
    }
}

/// The first sentence, whole: what is listed below a line that ends with a colon belongs to it.
fn first_sentence(text: &str) -> (String, &str) {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    if !first.ends_with(':') {
        return (first.to_owned(), rest);
    }
    let (list, rest) = rest.split_at(rest.find("\n\n").unwrap_or(rest.len()));
    let words: Vec<&str> = list.lines().map(str::trim).collect();
    (format!("{first} {}", words.join(", ")), rest.strip_prefix('\n').unwrap_or(rest))
}
