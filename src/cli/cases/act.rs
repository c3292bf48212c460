//! `cases assign` and `cases comment`: who has a case, and what is said of it.

use std::path::PathBuf;

use crate::cli::args::{Common, path, word};
use crate::cli::cases::select::{Confirm, Named, Preview, done, identity, said, selected};
use crate::cli::failure::Failure;
use crate::config::names;
use crate::exit::Exit;
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::people::PeopleDriver;

/// The longest name of an owner, in characters.
const NAME_MAX: usize = 100;

/// Options of `cases assign`.
#[derive(Debug, clap::Args)]
pub struct Assign {
    /// Who; - for nobody
    #[arg(value_name = "NAME")]
    to: String,
    #[command(flatten)]
    named: Named,
    #[command(flatten)]
    confirm: Confirm,
}

/// Options of `cases comment`.
#[derive(Debug, clap::Args)]
pub struct Comment {
    #[command(flatten)]
    named: Named,
    /// The sentence
    #[arg(long, value_name = "TEXT", env = names::CASES_WHY)]
    why: String,
    /// A document that stands behind it: its name and SHA-256 go into the history
    #[arg(long, value_name = "FILE", env = names::CASES_ATTACH, value_parser = path())]
    attach: Option<PathBuf>,
    #[command(flatten)]
    confirm: Confirm,
}

/// Runs `cases assign`.
pub async fn assign(options: &Assign, common: &Common, db: &Database) -> Result<Exit, Failure> {
    let name = options.to.trim();
    let is_fit = (1..=NAME_MAX).contains(&name.chars().count());
    if !is_fit || name.contains(char::is_control) {
        let text =
            format!("{name}: expected a name of 1 to {NAME_MAX} characters, or - for nobody");
        return Err(Failure::usage(text));
    }
    let owner = (name != "-").then_some(name);
    let cases = selected(&options.named.cases, &options.named.select, true, db).await?;
    let action = format!("assign to {}", owner.unwrap_or("nobody"));
    let preview = Preview { action: &action, cases: &cases, says: &|_case| None, is_bound: false };
    if !preview.confirmed(&options.confirm, common, db).await? {
        return Ok(Exit::Ok);
    }
    let (by, _) = identity(db).await?;
    let numbers: Vec<i64> = cases.iter().map(|case| case.number).collect();
    let now = db.now().await.map_err(|e| Failure::store(&e))?;
    let changed = db.assign_cases(&numbers, owner, &by, now).await;
    let changed = changed.map_err(|e| Failure::store(&e))?;
    Ok(done(&action, changed, cases.len(), common))
}

/// Runs `cases comment`.
pub async fn comment(options: &Comment, common: &Common, db: &Database) -> Result<Exit, Failure> {
    let text = said(&options.why, options.attach.as_ref())?;
    // One may say something of a case that is closed, where it is named.
    let is_named = !options.named.cases.is_empty();
    let cases = selected(&options.named.cases, &options.named.select, !is_named, db).await?;
    let preview =
        Preview { action: "comment", cases: &cases, says: &|_case| None, is_bound: false };
    // What is added to one case alone takes nothing away.
    let Confirm { dry_run, seen, .. } = &options.confirm;
    let is_small = cases.len() == 1 && !dry_run && word(seen.as_ref()).is_none();
    if !is_small && !preview.confirmed(&options.confirm, common, db).await? {
        return Ok(Exit::Ok);
    }
    let (by, _) = identity(db).await?;
    let numbers: Vec<i64> = cases.iter().map(|case| case.number).collect();
    let now = db.now().await.map_err(|e| Failure::store(&e))?;
    let noted = db.comment_cases(&numbers, &text, &by, now).await;
    let noted = noted.map_err(|e| Failure::store(&e))?;
    Ok(done("comment", noted, cases.len(), common))
}
