//! `tieout run`: the main job. Words → options; events → screen, NDJSON, stderr.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use chrono::TimeDelta;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{ArgMatches, ValueEnum};

use crate::cli::args::{Common, Overriding, When, overrides, path, word, yes_or_no};
use crate::cli::failure::Failure;
use crate::cli::page;
use crate::cli::teller::{self, Teller};
use crate::cli::watched::watched;
use crate::cli::window::{Words, resolve};
use crate::config::sections::{FAIL_ON_WORDS, Origin, Override};
use crate::config::{self, Config, names};
use crate::exit::Exit;
use crate::model::count::counted;
use crate::model::near::nearest;
use crate::monitor::settings::is_scope;
use crate::run::events::Event;
use crate::run::setup::{On, RunOptions, Window};

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout run --dry-run                    what would be done; writes nothing
  tieout run                              every due row
  tieout run --date yesterday             one business day
  tieout run --from 2026-11-01 --to 2026-11-19 --yes
  tieout run --id pay_9044 --id pay_9045  these rows, now
  tieout run --psp stripe_live --max-duration 8min
  tieout run --all --since 3d             every row, against PSP and files

Dates are whole business days, the last one included; instants such as
2026-11-19T08:00:00Z are half-open. Without them every due row is taken.";

/// A window longer than this was probably not meant.
const LONG_WINDOW: TimeDelta = TimeDelta::days(31);

/// More rows than this were probably not meant.
const MANY_ROWS: i64 = 100_000;

/// Options of `run`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Rows of one business day: 2026-11-19, today, yesterday
    #[arg(
        long, value_name = "DAY", env = names::DATE, conflicts_with_all = ["from", "to", "since"],
        help_heading = "Which rows"
    )]
    date: Option<String>,
    /// Rows from this day or instant on
    #[arg(
        long, value_name = "WHEN", env = names::FROM, conflicts_with = "since",
        help_heading = "Which rows"
    )]
    from: Option<String>,
    /// Rows up to this day (included) or instant (excluded)
    #[arg(
        long, value_name = "WHEN", env = names::TO, conflicts_with = "since",
        help_heading = "Which rows"
    )]
    to: Option<String>,
    /// Rows of the last 90min, 6h, 3d
    #[arg(long, value_name = "SPAN", env = names::SINCE, help_heading = "Which rows")]
    since: Option<String>,
    /// Which timestamp the window cuts
    #[arg(
        long, value_enum, value_name = "TIME", env = names::ON, default_value_t = OnWord::Created,
        help_heading = "Which rows"
    )]
    on: OnWord,
    /// The zone of business days, instead of the configured one
    #[arg(long, value_name = "ZONE", env = names::TZ, help_heading = "Which rows")]
    tz: Option<String>,
    /// With a window: compare all its rows with the PSP's list and the files, too
    #[arg(long, env = names::ALL, value_parser = yes_or_no, help_heading = "Which rows")]
    all: bool,
    /// Exactly these rows, due or not
    #[arg(
        long, value_name = "ID", env = names::ID, value_delimiter = '\n', num_args = 1..,
        help_heading = "Which rows"
    )]
    id: Vec<String>,
    /// Exactly the rows whose ids stand in this file, one a line (- for stdin)
    #[arg(
        long, value_name = "FILE", env = names::IDS_FROM,
        value_parser = path(), conflicts_with = "id",
        help_heading = "Which rows"
    )]
    ids_from: Option<PathBuf>,
    /// Only rows of these accounts
    #[arg(
        long, alias = "source", value_name = "ACCOUNT", env = names::PSP, value_delimiter = ',',
        num_args = 1.., help_heading = "Which rows"
    )]
    psp: Vec<String>,
    /// Not rows younger than this; can only raise stuck_after
    #[arg(long, value_name = "SPAN", env = names::MIN_AGE, help_heading = "Which rows")]
    min_age: Option<String>,
    /// At most so many rows [default: 10000]
    #[arg(long, value_name = "ROWS", env = names::LIMIT, help_heading = "How")]
    limit: Option<String>,
    /// Begin nothing new after this long
    #[arg(long, value_name = "SPAN", env = names::MAX_DURATION, help_heading = "How")]
    max_duration: Option<String>,
    /// From a signal to the end [default: 8s]
    #[arg(long, value_name = "SPAN", env = names::GRACE, help_heading = "How")]
    grace: Option<String>,
    /// At most so many requests at a time, to each account [default: its own]
    #[arg(long, value_name = "N", env = names::CONCURRENCY, help_heading = "How")]
    concurrency: Option<String>,
    /// At most so many requests a second, to each account: 20 or 20/s [default: its own]
    #[arg(long, value_name = "N/s", env = names::RATE, help_heading = "How")]
    rate: Option<String>,
    /// Write nothing anywhere; print what would be done
    #[arg(
        long, env = names::DRY_RUN, value_parser = yes_or_no, help_heading = "How"
    )]
    dry_run: bool,
    /// Do not ask before a window of over 31 days or 100,000 rows
    #[arg(long, env = names::YES, value_parser = yes_or_no, help_heading = "How")]
    yes: bool,
    /// The run's id, a UUID [default: a new one]
    #[arg(long, value_name = "UUID", env = names::RUN_ID, help_heading = "How")]
    run_id: Option<String>,
    /// Which schedule it is of, to monitoring [default: monitoring.scope]
    #[arg(long, value_name = "NAME", env = names::SCOPE, help_heading = "How")]
    scope: Option<String>,
    /// Where the report goes [default: report.dir of the configuration]
    #[arg(long, value_name = "DIR", env = names::REPORT_DIR, help_heading = "What it prints")]
    report_dir: Option<String>,
    /// Exit 4 when one holds: cases, aged, empty, duplicates, differs
    #[arg(
        long, value_name = "LIST", env = names::FAIL_ON, value_parser = FailOnList,
        hide_possible_values = true, help_heading = "What it prints"
    )]
    fail_on: Option<String>,
    /// Progress on a terminal
    #[arg(
        long, value_enum, value_name = "WHEN", env = names::PROGRESS, default_value_t = When::Auto,
        help_heading = "What it prints"
    )]
    progress: When,
}

/// The words of `--fail-on`, for shells to complete; the configuration reads the list.
#[derive(Clone)]
struct FailOnList;

impl TypedValueParser for FailOnList {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(FAIL_ON_WORDS.iter().map(|(word, _)| PossibleValue::new(*word))))
    }
}

/// The words of `--on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnWord {
    Created,
    Attempted,
}

const OVERRIDING: [Overriding; 10] = [
    Overriding { id: "tz", flag: "--tz", env: names::TZ, path: "business_timezone" },
    Overriding { id: "min_age", flag: "--min-age", env: names::MIN_AGE, path: "limits.min_age" },
    Overriding { id: "limit", flag: "--limit", env: names::LIMIT, path: "limits.rows" },
    Overriding {
        id: "max_duration",
        flag: "--max-duration",
        env: names::MAX_DURATION,
        path: "limits.max_duration",
    },
    Overriding { id: "grace", flag: "--grace", env: names::GRACE, path: "limits.grace" },
    Overriding {
        id: "report_dir",
        flag: "--report-dir",
        env: names::REPORT_DIR,
        path: "report.dir",
    },
    Overriding {
        id: "concurrency",
        flag: "--concurrency",
        env: names::CONCURRENCY,
        path: config::EVERY_CONCURRENCY,
    },
    Overriding { id: "rate", flag: "--rate", env: names::RATE, path: config::EVERY_RATE },
    Overriding { id: "scope", flag: "--scope", env: names::SCOPE, path: "monitoring.scope" },
    Overriding { id: "fail_on", flag: "--fail-on", env: names::FAIL_ON, path: "report.fail_on" },
];

/// Variables of those flags that are set: what a run of this environment would go by.
pub fn set_by_variables() -> Vec<Override> {
    let set = OVERRIDING.iter().filter_map(|setting| {
        let (path, origin) = (setting.path, Origin::Env(setting.env));
        Some(Override { path, value: config::variable(setting.env)?, origin })
    });
    set.collect()
}

/// A schedule's name stands in addresses, file names and labels.
fn no_bad_scope(args: &Args, matches: &ArgMatches) -> Result<(), Failure> {
    let Some(scope) = word(args.scope.as_ref()).filter(|scope| !is_scope(scope)) else {
        return Ok(());
    };
    let given = match matches.value_source("scope") {
        Some(ValueSource::EnvVariable) => names::SCOPE,
        _flag => "--scope",
    };
    let expected = "expected 1 to 64 letters, digits, `_`, `-` or `.`; nothing was done";
    Err(Failure::usage(format!("{given} {scope}: {expected}")))
}

/// Flags that name rows: clap's id, and the flag as it is typed.
const NARROWING: [(&str, &str); 7] = [
    ("date", "--date"),
    ("from", "--from"),
    ("to", "--to"),
    ("since", "--since"),
    ("id", "--id"),
    ("ids_from", "--ids-from"),
    ("psp", "--psp"),
];

/// `--id "$ID"` of a shell's variable that is not set must never mean every row. An empty variable
/// of the environment counts as not set, as everywhere.
fn no_empty_words(matches: &ArgMatches) -> Result<(), Failure> {
    for (id, flag) in NARROWING {
        let is_typed = matches.value_source(id) == Some(ValueSource::CommandLine);
        let mut words = matches.get_raw(id).into_iter().flatten();
        if is_typed && words.all(OsStr::is_empty) {
            return Err(Failure::usage(format!("{flag} is empty; nothing was done")));
        }
    }
    Ok(())
}

/// Runs the command.
pub fn run(args: &Args, common: &Common, matches: &ArgMatches) -> Result<Exit, Failure> {
    no_empty_words(matches)?;
    no_bad_scope(args, matches)?;
    let config = config::load(common.config(), &overrides(matches, &OVERRIDING))?;
    let mut options = options(args, &config)?;
    // Of the rows that it was narrowed to nothing more would be known.
    let is_whole = options.window.is_none() && options.ids.is_none() && options.accounts.is_none();
    let is_typed = matches.value_source("limit") == Some(ValueSource::CommandLine);
    options.is_limit_asked = is_typed && word(args.limit.as_ref()).is_some();
    options.tells_waiting = is_whole && teller::is_for_a_person(common, options.dry_run);
    let run_id = options.run_id.take().unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
    options.run_id = Some(run_id.clone());
    let setup = config.setup();
    let is_scheduled = !options.dry_run && options.ids.is_none();
    let scheduled = is_scheduled.then_some(run_id.as_str());
    watched(&config, scheduled, options.dry_run, async |db, stop, note| {
        let mut teller = Teller::new(common, args.progress, &options, &setup);
        let mut tell = |event: Event| {
            note(&event);
            teller.tell(&event);
        };
        let ended = crate::run::run(&setup, &options, db, stop, &mut tell).await;
        ended.map_err(|error| Failure::run(&error))
    })
}

/// The options that the words mean.
fn options(args: &Args, config: &Config) -> Result<RunOptions, Failure> {
    let words = Words {
        date: word(args.date.as_ref()),
        from: word(args.from.as_ref()),
        to: word(args.to.as_ref()),
        since: word(args.since.as_ref()),
    };
    let on = match args.on {
        OnWord::Created => On::Created,
        OnWord::Attempted => On::Attempted,
    };
    let now = crate::clock::now();
    let window = resolve(&words, config.business_timezone.value, on, now)?;
    confirm(args, window.as_ref(), config.limits.rows, now)?;
    if args.all && window.as_ref().is_none_or(|window| window.from.is_none()) {
        let text = "--all needs a beginning, such as --since 3d: without one it would look at \
                    every row that ever failed; nothing was done";
        return Err(Failure::usage(text.to_owned()));
    }
    Ok(RunOptions {
        run_id: word(args.run_id.as_ref()).as_deref().map(run_id).transpose()?,
        window,
        ids: ids(args)?,
        accounts: accounts(&args.psp, config)?,
        min_age: config.limits.min_age,
        limit: config.limits.rows,
        batch: config.limits.batch,
        max_duration: config.limits.max_duration,
        dry_run: args.dry_run,
        given_up: args.all,
        fail_on: config.fail_on.clone(),
        ..RunOptions::default()
    })
}

fn run_id(text: &str) -> Result<String, Failure> {
    let id = uuid::Uuid::try_parse(text);
    id.map(|id| id.to_string())
        .map_err(|_bad| Failure::usage(format!("--run-id {text}: expected a UUID")))
}

fn accounts(asked: &[String], config: &Config) -> Result<Option<Vec<String>>, Failure> {
    let known: BTreeSet<&str> = config.accounts.keys().map(String::as_str).collect();
    let asked: Vec<String> = asked.iter().filter(|name| !name.is_empty()).cloned().collect();
    for name in &asked {
        if !known.contains(name.as_str()) {
            let help = match nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("configured: {}", known.into_iter().collect::<Vec<_>>().join(", ")),
            };
            return Err(Failure::usage(format!("--psp {name}: there is no such account; {help}")));
        }
    }
    Ok((!asked.is_empty()).then_some(asked))
}

fn ids(args: &Args) -> Result<Option<Vec<String>>, Failure> {
    let from = args.ids_from.as_ref().filter(|path| !path.as_os_str().is_empty());
    let Some(path) = from else {
        let ids: Vec<String> = args.id.iter().filter(|id| !id.is_empty()).cloned().collect();
        return Ok((!ids.is_empty()).then_some(ids));
    };
    let text = read_ids(path).map_err(|error| {
        let text = format!("--ids-from {}: {error}; nothing was done", path.display());
        Failure::usage(text)
    })?;
    // Spreadsheets begin a file with a byte order mark.
    let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim);
    let ids: Vec<String> = lines.filter(|line| !line.is_empty()).map(str::to_owned).collect();
    if ids.is_empty() {
        // No ids must never mean every row.
        let text =
            format!("--ids-from {}: the file names no row; nothing was done", path.display());
        return Err(Failure::usage(text));
    }
    Ok(Some(ids))
}

fn read_ids(path: &Path) -> std::io::Result<String> {
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        return Ok(text);
    }
    std::fs::read_to_string(path)
}

/// A window of many days or rows is confirmed, on a terminal; elsewhere it needs `--yes`.
fn confirm(
    args: &Args,
    window: Option<&Window>,
    rows: i64,
    now: crate::model::time::Instant,
) -> Result<(), Failure> {
    let long = window.and_then(|window| {
        let from = window.from?;
        let span = window.to.unwrap_or(now) - from;
        (span > LONG_WINDOW)
            .then(|| format!("the window has {}", counted(span.num_days(), "day", "days")))
    });
    let many = (rows > MANY_ROWS).then(|| format!("up to {rows} rows"));
    let Some(what) = long.or(many) else { return Ok(()) };
    if args.yes || args.dry_run {
        return Ok(());
    }
    if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        page::warn(&format!("{what}. Go on? [y/N]"));
        let mut answer = String::new();
        let read = std::io::stdin().read_line(&mut answer);
        if read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes") {
            return Ok(());
        }
    }
    Err(Failure::usage(format!("{what}; nothing was done; add --yes where that is meant")))
}
