//! `files quarantine` and `files release`: what does not count, and letting it by a person's word.

use serde_json::json;

use crate::cli::args::{Common, yes_or_no};
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::files::folded;
use crate::cli::files::kept::{body, find, line_body, line_row, row};
use crate::cli::{database, out, person, runtime};
use crate::config::{self, names};
use crate::exit::Exit;
use crate::model::settlement::Problem;
use crate::model::time::to_short_text;
use crate::run::release::{Unread, release as let_count};
use crate::run::shutdown::Stop;
use crate::store::database::Database;
use crate::store::files::{FileDriver, FileFilter, FileRow, FileState, Held};
use crate::store::release::{Difference, Release as Done, Word};

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout files release 12 --reason confirmed --dry-run
  tieout files release 12 --reason confirmed

A quarantined file's lines are loaded and marked as untied. Of a corrected
statement only the difference to the earlier issue begins to count.";

/// The longest reason: it stands on one line of a screen.
const REASON_MAX: usize = 500;

/// Lines of a difference on a screen; --json shows all.
const SHOWN: usize = 40;

/// Options of `files quarantine`.
#[derive(Debug, clap::Args)]
pub struct Quarantine {
    /// Only files of this account
    #[arg(long, value_name = "ACCOUNT", env = names::FILES_ACCOUNT)]
    account: Option<String>,
    /// At most so many
    #[arg(long, value_name = "FILES", env = names::FILES_LIMIT, default_value_t = 20)]
    limit: u32,
}

/// Options of `files release`.
#[derive(Debug, clap::Args)]
pub struct Release {
    /// The file's number, or the beginning of its SHA-256
    #[arg(value_name = "FILE")]
    file: String,
    /// Why it may count, for whoever asks later
    #[arg(long, value_name = "TEXT", env = names::RELEASE_REASON)]
    reason: String,
    /// Show what would change, and change nothing
    #[arg(long, env = names::RELEASE_DRY_RUN, value_parser = yes_or_no)]
    dry_run: bool,
}

/// Runs `files quarantine`: the quarantined files and what is wrong with each.
pub fn quarantine(options: &Quarantine, common: &Common) -> Result<Exit, Failure> {
    let filter = FileFilter {
        account: options.account.clone().filter(|name| !name.is_empty()),
        state: Some(FileState::Quarantined),
        limit: i64::from(options.limit),
        ..FileFilter::default()
    };
    let config = config::load(common.config(), &[])?;
    database::with(&config, async |db| {
        let files = db.files(&filter).await.map_err(|error| Failure::store(&error))?;
        if files.is_empty() && !common.json && !common.quiet {
            out::stdout("no quarantined files");
        }
        for file in &files {
            if common.json {
                out::stdout(&line("settlement_file", body(file)));
                continue;
            }
            out::stdout(&row(file));
            file.problems.iter().flat_map(problem_rows).for_each(|text| out::stdout(&text));
        }
        Ok(Exit::Ok)
    })
}

fn problem_rows(problem: &Problem) -> Vec<String> {
    let place =
        if problem.line == 0 { "file".to_owned() } else { format!("line {}", problem.line) };
    let text = format!("{}: expected {}, found {}", problem.field, problem.expected, problem.found);
    folded(&format!("       {place:<10} "), &text)
}

/// Runs `files release`.
pub fn release(options: &Release, common: &Common) -> Result<Exit, Failure> {
    let reason = reason(&options.reason)?;
    let config = config::load(common.config(), &[])?;
    let setup = config.setup();
    runtime::block_on(Box::pin(async {
        let stop = Stop::new();
        let db = database::open(&config).await?;
        let ended = match runtime::listen(&stop, config.limits.grace) {
            Err(failure) => Err(failure),
            Ok(_listening) => {
                let word = Word { by: person::name(), why: reason.to_owned() };
                let asked = Asked { setup: &setup, db: &db, stop: &stop, word: &word };
                asked.release(options, common).await
            }
        };
        db.close().await;
        ended
    }))?
}

struct Asked<'a> {
    setup: &'a crate::run::setup::Setup,
    db: &'a Database,
    stop: &'a Stop,
    word: &'a Word,
}

impl Asked<'_> {
    async fn release(&self, options: &Release, common: &Common) -> Result<Exit, Failure> {
        let file = find(&options.file, self.db).await?;
        let differences = self.db.differences(file.id).await;
        let differences = differences.map_err(|error| Failure::store(&error))?;
        differences.iter().for_each(|difference| tell_difference(&file, difference, common));
        if options.dry_run {
            tell_plan(&file, &differences, common);
            return Ok(Exit::Ok);
        }
        let done = let_count(self.setup, self.db, &file, self.word, self.stop).await;
        let done = match done.map_err(|error| Failure::run(&error))? {
            Ok(Done::Dropped) => return Err(stopped(&file)),
            Ok(done) => done,
            Err(why) => return Err(unread(&file, &why)),
        };
        let held = find(&file.id.to_string(), self.db).await?.held;
        tell_done(&file, done, held, common);
        Ok(Exit::Ok)
    }
}

fn reason(text: &str) -> Result<&str, Failure> {
    let reason = text.trim();
    let is_fine =
        !reason.is_empty() && reason.len() <= REASON_MAX && !reason.contains(char::is_control);
    is_fine.then_some(reason).ok_or_else(|| {
        let text =
            format!("--reason: expected one line of 1 to {REASON_MAX} bytes; nothing was done");
        Failure::usage(text)
    })
}

fn stopped(file: &FileRow) -> Failure {
    let text = format!("file {} was not read to its end; nothing was changed", file.id);
    Failure::new(Exit::Partial, text, "release it again")
}

fn unread(file: &FileRow, why: &Unread) -> Failure {
    let (text, hint) = match why {
        Unread::Unknown => (
            "no format knows it, so that no line of it can be read".to_owned(),
            "describe it as a [[format]] and name that in its [[source]]: it is read again then",
        ),
        Unread::NotKept => (
            "its bytes are not in the spool any more".to_owned(),
            "bring it in again with `tieout ingest FILE`, then release it",
        ),
        Unread::Unreadable(why) => (
            format!("its bytes cannot be read: {why}"),
            "look at files.spool, or bring it in again with `tieout ingest FILE`",
        ),
        Unread::Untied(lines) => (
            format!(
                "it does not tie, and {lines} lines of a statement that does would count no more"
            ),
            "ask whoever sends it for a file that ties",
        ),
    };
    let text = format!("file {}: {text}; nothing was changed", file.id);
    Failure::new(Exit::Partial, text, hint)
}

fn tell_difference(file: &FileRow, difference: &Difference, common: &Common) {
    let Difference { statement, held_for, same, added, removed } = difference;
    if common.json {
        let counts = json!({
            "file": file.id,
            "statement": statement,
            "held_for": held_for.map(Held::as_str),
            "same": same,
            "added": added.iter().map(line_body).collect::<Vec<_>>(),
            "removed": removed.iter().map(line_body).collect::<Vec<_>>(),
        });
        return out::stdout(&line("settlement_difference", counts));
    }
    if common.quiet {
        return;
    }
    out::stdout(&format!(
        "statement {statement}: {same} lines as before, {} added, {} removed",
        added.len(),
        removed.len()
    ));
    let rows = removed.iter().map(|line| ("-", line)).chain(added.iter().map(|line| ("+", line)));
    for (mark, stored) in rows.clone().take(SHOWN) {
        out::stdout(&format!("  {mark} {}", line_row(stored)));
    }
    let all = added.len().saturating_add(removed.len());
    if let Some(more) = all.checked_sub(SHOWN).filter(|more| *more > 0) {
        out::stdout(&format!("  … {more} more; --json shows all"));
    }
    let lost = removed.iter().filter_map(|line| line.row.as_ref());
    for (table, key) in lost.take(SHOWN) {
        let text = format!(
            "{table} {key} was decided by a line that is not there any more: look at it with \
             `tieout explain {key}`"
        );
        folded("  ", &text).iter().for_each(|row| out::stdout(row));
    }
}

fn tell_plan(file: &FileRow, differences: &[Difference], common: &Common) {
    if common.json || common.quiet {
        return;
    }
    let text = match (file.state, differences.is_empty()) {
        (FileState::Quarantined, _) => "its lines would be loaded, marked as untied",
        (FileState::Loaded | FileState::Released, true) => "nothing of it is held",
        (FileState::Loaded | FileState::Released, false) => "that difference would count",
    };
    out::stdout(&format!("file {}: {text}; nothing was changed", file.id));
}

fn tell_done(file: &FileRow, done: Done, held: i64, common: &Common) {
    let (added, removed) = match done {
        Done::Done { added, removed } => (added, removed),
        Done::Nothing | Done::Dropped => (0, 0),
    };
    let is_changed = matches!(done, Done::Done { .. });
    if common.json {
        let body = json!({
            "file": file.id,
            "changed": is_changed,
            "added": added,
            "removed": removed,
            "held": held,
        });
        return out::stdout(&line("released", body));
    }
    if common.quiet {
        return;
    }
    let id = file.id;
    out::stdout(&match (is_changed, file.state, &file.changed) {
        (true, FileState::Quarantined, _) if held > 0 => format!(
            "file {id}: {added} lines are loaded, marked as untied; {held} of its statements came \
             before in other bytes and are held: `tieout files show {id}`"
        ),
        (true, FileState::Quarantined, _) => {
            format!(
                "file {id}: {added} lines are loaded, marked as untied; the next run matches them"
            )
        }
        (true, FileState::Loaded | FileState::Released, _) => format!(
            "file {id}: {added} lines begin to count and {removed} count no more; the next run \
             matches them"
        ),
        (false, _, Some((at, by, why))) => {
            let at = to_short_text(*at);
            format!("file {id} was released before, {at} by {by}: {why}; nothing was changed")
        }
        (false, _, None) => format!("nothing of file {id} is held; nothing was changed"),
    });
}
