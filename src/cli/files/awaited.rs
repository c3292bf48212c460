//! `files expected`: which files are to come, which came, and which are missing since when.

use serde_json::json;

use crate::cli::args::Common;
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::{database, out, sources};
use crate::config;
use crate::decide::expected::{Outlook, Stands};
use crate::exit::Exit;
use crate::model::time::to_text;
use crate::model::wildcard::fits;
use crate::run::expected::{Awaited, awaited};
use crate::settlement::sources::settings::Source;
use crate::store::driver::Driver;

/// Files that came of a kind, on a screen; --json shows all.
const CAME_SHOWN: usize = 5;

/// Missing ones on a screen.
const MISSING_SHOWN: usize = 20;

/// Options of `files expected`.
#[derive(Debug, clap::Args)]
pub struct Expected {
    /// Of which sources; default: all
    #[arg(value_name = "SOURCE")]
    sources: Vec<String>,
}

/// Runs `files expected`.
pub fn expected(options: &Expected, common: &Common) -> Result<Exit, Failure> {
    let config = config::load(common.config(), &[])?;
    let mut chosen: Vec<&Source> = Vec::new();
    for name in &options.sources {
        chosen.push(sources::named("files expected", name, &config)?);
    }
    if options.sources.is_empty() {
        chosen = config.sources.iter().collect();
    }
    database::to_read(&config, async |db| {
        let now = db.now().await.map_err(|error| Failure::store(&error))?;
        let mut exit = Exit::Ok;
        let mut is_any = false;
        for source in &chosen {
            let all = awaited(db, source, now).await.map_err(|error| Failure::run(&error))?;
            for one in &all {
                is_any = true;
                if !one.missing.is_empty() {
                    exit = Exit::Partial;
                }
                tell(one, common);
            }
        }
        if !is_any && !common.json && !common.quiet {
            out::stdout("no [[source.expected]] is configured");
        }
        Ok(exit)
    })
}

fn tell(awaited: &Awaited<'_>, common: &Common) {
    if common.json {
        for one in &awaited.outlook {
            out::stdout(&line("expected_file", body(awaited, one)));
        }
        return;
    }
    if common.quiet {
        return;
    }
    let file = &awaited.expected.file;
    let (name, by) = (&awaited.source.name, file.by.format("%H:%M"));
    out::stdout(&format!("{name}  {} by {by} {}", file.name, file.zone));
    if awaited.since.is_none() {
        out::stdout("    no file came yet: from the first one on, or from `since`, it is known");
        out::stdout("    which are missing");
    }
    for row in rows(awaited) {
        out::stdout(&format!("    {row}"));
    }
}

/// The newest that came, the oldest that are missing, and what is to come.
fn rows(awaited: &Awaited<'_>) -> Vec<String> {
    let of = |stands: Stands| awaited.outlook.iter().filter(move |one| one.stands == stands);
    let came = of(Stands::Came).count().saturating_sub(CAME_SHOWN);
    let missing = of(Stands::Missing).count();
    let mut shown: Vec<&Outlook> = of(Stands::Came).skip(came).collect();
    shown.extend(of(Stands::Missing).take(MISSING_SHOWN));
    shown.extend(of(Stands::Coming));
    shown.sort_by_key(|one| one.file.day);
    let mut rows: Vec<String> = Vec::new();
    if came > 0 {
        rows.push(format!("… {came} earlier came"));
    }
    rows.extend(shown.into_iter().map(|one| row(awaited, one)));
    if let Some(more) = missing.checked_sub(MISSING_SHOWN).filter(|more| *more > 0) {
        rows.push(format!("… {more} more are missing; --json shows all"));
    }
    rows
}

fn row(awaited: &Awaited<'_>, one: &Outlook) -> String {
    let zone = awaited.expected.file.zone;
    let due = one.file.due.with_timezone(&zone).format("%Y-%m-%d %H:%M");
    let (word, rest) = match (one.stands, awaited.uncounted(&one.file)) {
        (Stands::Came, _) => ("came", came(awaited, one).unwrap_or_default()),
        (_, Some((name, id, why))) => ("bad", format!("{name}: {} as file {id}", why.as_str())),
        (Stands::Missing, None) => ("MISSING", format!("{} since {due}", one.file.name)),
        (Stands::Coming, None) => ("to come", format!("{} until {due}", one.file.name)),
    };
    format!("{}  {word:<7}  {rest}", one.file.day)
}

/// The name that it came under; where every day's name is the same, that.
fn came(awaited: &Awaited<'_>, one: &Outlook) -> Option<String> {
    let mut good = awaited.came.iter().filter(|(_, _, why)| why.is_none());
    good.find(|(name, ..)| fits(&one.file.name, name)).map(|(name, ..)| name.clone())
}

fn body(awaited: &Awaited<'_>, one: &Outlook) -> serde_json::Value {
    let bad = awaited.uncounted(&one.file).filter(|_| one.stands != Stands::Came);
    let state = match (one.stands, bad) {
        (Stands::Came, _) => "came",
        (_, Some((_, _, why))) => why.as_str(),
        (Stands::Missing, None) => "missing",
        (Stands::Coming, None) => "coming",
    };
    let file = match one.stands {
        Stands::Came => came(awaited, one),
        Stands::Missing | Stands::Coming => bad.map(|(name, ..)| name.to_owned()),
    };
    json!({
        "source": awaited.source.name,
        "account": awaited.source.account,
        "expected": one.file.name,
        "day": one.file.day.to_string(),
        "due_at": to_text(one.file.due),
        "state": state,
        "file": file,
    })
}
