//! `files quarantine` and `files release`: what does not count, and letting it by a person's word.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::cli::args::{Common, sentence, yes_or_no};
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::files::folded;
use crate::cli::files::kept::{body, find, is_configured, line_body, line_row, row};
use crate::cli::page::say;
use crate::cli::{database, out, person};
use crate::config::{self, names};
use crate::exit::Exit;
use crate::model::count::counted;
use crate::model::money::decimal_text;
use crate::model::settlement::Problem;
use crate::model::time::to_short_text;
use crate::run::release::{Preview, Refused, ReleasedNote, ask, preview, refusal};
use crate::run::setup::Setup;
use crate::store::batches::TABLE as BATCHES;
use crate::store::database::Database;
use crate::store::files::{FileDriver, FileFilter, FileRow, FileState, Held, LinePlace};
use crate::store::payouts::{PayoutKey, TABLE as PAYOUTS};
use crate::store::release::{Difference, Said, Spoken, Word};
use crate::store::still_told::Still;

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout files release 12 --reason confirmed --dry-run
  tieout files release 12 --reason confirmed

The next run carries it out: a quarantined file's lines are loaded and marked
as untied. Of a corrected statement only the difference to the earlier issue
begins to count.";

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
    database::to_read(&config, async |db| {
        let files = db.files(&filter).await.map_err(|error| Failure::store(&error))?;
        if files.is_empty() {
            is_configured(&filter, &config)?;
        }
        if files.is_empty() && !common.json && !common.quiet {
            out::stdout("no quarantined files");
        }
        for file in &files {
            if common.json {
                out::stdout(&line("settlement_file", body(file)));
                continue;
            }
            say(&row(file));
            file.problems.iter().flat_map(problem_rows).for_each(|text| out::stdout(&text));
            waiting(file, db).await?.iter().for_each(|text| out::stdout(text));
        }
        Ok(Exit::Ok)
    })
}

/// What waits for a run, of a file that a person has released.
pub(super) async fn waiting(file: &FileRow, db: &Database) -> Result<Vec<String>, Failure> {
    let spoken =
        db.releases_waiting(Some(file.id)).await.map_err(|error| Failure::store(&error))?;
    let rows = spoken.iter().flat_map(|spoken| {
        folded(&format!("{:<12}", "released"), &format!("it {}", waiting_words(spoken)))
    });
    Ok(rows.collect())
}

fn problem_rows(problem: &Problem) -> Vec<String> {
    let place =
        if problem.line == 0 { "file".to_owned() } else { format!("line {}", problem.line) };
    let text = format!("{}: expected {}, found {}", problem.field, problem.expected, problem.found);
    folded(&format!("       {place:<10} "), &text)
}

/// Runs `files release`.
pub fn release(options: &Release, common: &Common) -> Result<Exit, Failure> {
    let reason = sentence("--reason", &options.reason, "; nothing was done")?;
    let config = config::load(common.config(), &[])?;
    let setup = config.setup();
    let word = Word { by: person::name(), why: reason.to_owned() };
    database::with_dry(&config, options.dry_run, async |db| {
        Asked { setup: &setup, db, word: &word }.release(options, common).await
    })
}

struct Asked<'a> {
    setup: &'a Setup,
    db: &'a Database,
    word: &'a Word,
}

impl Asked<'_> {
    async fn release(&self, options: &Release, common: &Common) -> Result<Exit, Failure> {
        let file = find(&options.file, self.db).await?;
        let differences = self.db.differences(file.id).await;
        let differences = differences.map_err(|error| Failure::store(&error))?;
        differences.iter().for_each(|difference| tell_difference(&file, difference, common));
        let refused = refusal(self.setup, self.db, &file).await;
        if let Some(refused) = refused.map_err(|error| Failure::run(&error))? {
            return Err(refusal_of(&file, &refused));
        }
        let is_quarantined = file.state == FileState::Quarantined;
        let preview = if is_quarantined { preview(self.setup, &file).await } else { None };
        if preview.as_ref().is_some_and(|found| found.lines == 0) {
            return Err(refusal_of(&file, &Refused::NoLines));
        }
        if options.dry_run {
            tell_plan(&file, &differences, preview.as_ref(), common);
            return Ok(Exit::Ok);
        }
        let said = ask(self.db, &file, self.word).await.map_err(|error| Failure::run(&error))?;
        tell_said(&file, &said, &differences, self.word, common);
        Ok(Exit::Ok)
    }
}

fn refusal_of(file: &FileRow, refused: &Refused) -> Failure {
    let text = format!("file {}: {}; nothing was changed", file.id, refused.text());
    Failure::new(Exit::Partial, text, refused.hint())
}

fn tell_difference(file: &FileRow, difference: &Difference, common: &Common) {
    let Difference { statement, held_for, same, added, removed, still, later } = difference;
    if common.json {
        let counts = json!({
            "file": file.id,
            "statement": statement,
            "held_for": held_for.map(Held::as_str),
            "same": same,
            "added": added.iter().map(line_body).collect::<Vec<_>>(),
            "removed": removed.iter().map(line_body).collect::<Vec<_>>(),
            "still": still.iter().map(still_body).collect::<Vec<_>>(),
            "later_file": later,
        });
        return out::stdout(&line("settlement_difference", counts));
    }
    if common.quiet {
        return;
    }
    if let Some(later) = later {
        let text = format!("statement {statement} stays held: file {later} came later, and counts");
        return say(&text);
    }
    say(&format!(
        "statement {statement}: {} as before, {} added, {} removed",
        counted(same, "line", "lines"),
        added.len(),
        removed.len()
    ));
    let rows = removed.iter().map(|line| ("-", line)).chain(added.iter().map(|line| ("+", line)));
    for (mark, stored) in rows.clone().take(SHOWN) {
        say(&format!("  {mark} {}", line_row(stored)));
    }
    let all = added.len().saturating_add(removed.len());
    if let Some(more) = all.checked_sub(SHOWN).filter(|more| *more > 0) {
        out::stdout(&format!("  … {more} more; --json shows all"));
    }
    let lost = removed.iter().filter_map(|line| line.row.as_ref());
    for (table, key) in lost.take(SHOWN) {
        let payout = PayoutKey::parse(key).filter(|_| table == PAYOUTS);
        let text = match payout {
            Some(key) => format!(
                "payout {} of {} has a booking that is not there any more: see \
                 `tieout files show {}`",
                key.name(),
                key.account,
                key.file
            ),
            None if table == BATCHES => format!(
                "batch {key} has a booking that is not there any more: the next run looks at its \
                 payments again"
            ),
            None => format!(
                "{table} {key} has a line that is not there any more: see `tieout explain {key}`"
            ),
        };
        folded("  ", &text).iter().for_each(|row| out::stdout(row));
    }
    tell_still(still);
}

/// What another file goes on telling of what is taken out.
fn tell_still(still: &[Still]) {
    for Still { gone, by, file_name } in still.iter().take(SHOWN) {
        let text = format!(
            "line {gone} is told by {by} of {file_name}, too, which goes on counting and pays no \
             row without a person: release the correction of that file, too, where one comes"
        );
        folded("  ", &text).iter().for_each(|row| out::stdout(row));
    }
    if let Some(more) = still.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        out::stdout(&format!("  … {more} more; --json shows all"));
    }
}

fn still_body(still: &Still) -> Value {
    let Still { gone, by, file_name } = still;
    json!({
        "gone_file": gone.file,
        "gone_position": gone.position,
        "file": by.file,
        "position": by.position,
        "file_name": file_name,
    })
}

fn tell_plan(
    file: &FileRow,
    differences: &[Difference],
    preview: Option<&Preview>,
    common: &Common,
) {
    if common.json || common.quiet {
        return;
    }
    if let Some(preview) = preview {
        return tell_preview(file, preview);
    }
    let text = match (file.state, differences.is_empty()) {
        (FileState::Quarantined, _) => "its lines would be loaded, marked as untied",
        (FileState::Loaded | FileState::Released, true) => "nothing of it is held",
        (FileState::Loaded | FileState::Released, false) => "that difference would count",
    };
    say(&format!("file {}: {text}; nothing was changed", file.id));
}

/// What a release would load, by currency; what cannot be read is not among it.
fn tell_preview(file: &FileRow, preview: &Preview) {
    let lines = counted(preview.lines, "line", "lines");
    let text = format!(
        "file {}: {lines} of it would be loaded, marked as untied, and held where their statement \
         counts from another file; nothing was changed",
        file.id
    );
    folded("", &text).iter().for_each(|row| out::stdout(row));
    for (currency, (credit, debit)) in &preview.sums {
        let text = |minor: i128| decimal_text(minor, currency.exponent());
        out::stdout(&format!("  {currency}  in {}  out {}", text(*credit), text(*debit)));
    }
    if preview.problems > 0 {
        let problems = counted(preview.problems, "problem", "problems");
        let id = file.id;
        let text = format!("what cannot be read is not among them: {problems}, `files show {id}`");
        folded("  ", &text).iter().for_each(|row| out::stdout(row));
    }
}

/// What begins to count and what counts no more once the word is carried out, as it looks now.
fn counts(differences: &[Difference]) -> (u64, u64) {
    let count = |lines: usize| u64::try_from(lines).unwrap_or(u64::MAX);
    let carried = differences.iter().filter(|difference| difference.later.is_none());
    carried.fold((0, 0), |(added, removed), difference| {
        let Difference { added: more, removed: less, still, .. } = difference;
        // What another file goes on telling counts as before.
        let told: BTreeSet<LinePlace> = still.iter().map(|still| still.gone).collect();
        let gone = less.len().saturating_sub(told.len());
        (added.saturating_add(count(more.len())), removed.saturating_add(count(gone)))
    })
}

/// `2 lines begin to count and 1 counts no more`.
fn count_words(added: u64, removed: u64) -> String {
    let begin = counted(added, "line begins to count", "lines begin to count");
    match removed {
        0 => begin,
        1 => format!("{begin} and 1 counts no more"),
        many => format!("{begin} and {many} count no more"),
    }
}

fn tell_said(
    file: &FileRow,
    said: &Said,
    differences: &[Difference],
    word: &Word,
    common: &Common,
) {
    let (added, removed) = counts(differences);
    if common.json {
        let (by, why) = match said {
            Said::Waits(spoken) => (&spoken.word.by, &spoken.word.why),
            Said::Noted | Said::Nothing => (&word.by, &word.why),
        };
        let body = json!({
            "file": file.id,
            "changed": *said == Said::Noted,
            "waits": *said != Said::Nothing,
            "added": added,
            "removed": removed,
            "held": file.held,
            "by": by,
            "why": why,
            "refused": null,
        });
        return out::stdout(&line("released", body));
    }
    if common.quiet {
        return;
    }
    let id = file.id;
    let text = match (said, file.state, &file.changed) {
        (Said::Noted, FileState::Quarantined, _) => format!(
            "file {id} is released: the next `tieout run` or `tieout ingest` loads its lines, \
             marked as untied; nothing counts before"
        ),
        (Said::Noted, FileState::Loaded | FileState::Released, _) => format!(
            "file {id} is released: with the next `tieout run` or `tieout ingest` {}; nothing is \
             changed before",
            count_words(added, removed)
        ),
        (Said::Waits(spoken), ..) => {
            format!("file {id} {}; nothing was changed", waiting_words(spoken))
        }
        (Said::Nothing, _, Some((at, by, why))) => {
            let at = to_short_text(*at);
            format!("file {id} was released before, {at} by {by}: {why}; nothing was changed")
        }
        (Said::Nothing, _, None) => format!("nothing of file {id} is held; nothing was changed"),
    };
    folded("", &text).iter().for_each(|row| out::stdout(row));
}

/// Of a word that a run has yet to carry out.
pub(super) fn waiting_words(spoken: &Spoken) -> String {
    let Spoken { at, word, .. } = spoken;
    let at = to_short_text(*at);
    format!("was released {at} by {}: {}; the next run carries it out", word.by, word.why)
}

/// A word that a run carried out or refused, on one line.
pub(in crate::cli) fn released_words(note: &ReleasedNote) -> String {
    let ReleasedNote { file, by, why, loaded, added, removed, held, refused, .. } = note;
    let lead = format!("{:<12} file {file}", "released");
    if let Some(refused) = refused {
        return format!("{lead}: not carried out: {refused}");
    }
    let what = match loaded {
        true => format!("{} loaded, marked as untied", counted(added, "line", "lines")),
        false => count_words(*added, *removed),
    };
    let rest = match held {
        0 => String::new(),
        1 => format!("; 1 of its statements is held: `tieout files show {file}`"),
        many => format!("; {many} of its statements are held: `tieout files show {file}`"),
    };
    format!("{lead}: {what}{rest}; by {by}: {why}")
}

/// The same, as an event.
pub(in crate::cli) fn released_body(note: &ReleasedNote) -> Value {
    json!({
        "file": note.file,
        "changed": note.refused.is_none(),
        "waits": false,
        "added": note.added,
        "removed": note.removed,
        "held": note.held,
        "by": note.by,
        "why": note.why,
        "refused": note.refused,
    })
}
