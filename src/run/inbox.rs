//! The settlement files of a run: fetched and brought in before any row is decided.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::exit::Exit;
use crate::run::books::{Books, Tell};
use crate::run::bring::BroughtIn;
use crate::run::error::{Doing, RunError};
use crate::run::events::Event;
use crate::run::expected::awaited;
use crate::run::fetch::{Fetching, Told};
use crate::run::scene::Scene;
use crate::settlement::sources::settings::Source;
use crate::store::files::{AbsentCase, FileDriver};
use crate::store::inspect::NamedRow;

/// Fetches from the sources in scope and brings in what came. What could not be had is told, and
/// the run goes on without it. A dry run writes nothing anywhere, and so fetches nothing.
pub async fn bring_in(
    scene: &Scene<'_>,
    books: &mut Books,
    named: &[(String, NamedRow)],
    tell: Tell<'_>,
) -> Result<(), RunError> {
    if scene.options.dry_run {
        return Ok(());
    }
    let sources = in_scope(scene, named);
    let fetching = Fetching {
        setup: scene.setup,
        db: scene.db,
        run_id: scene.run_id,
        stop: scene.stop,
        at_most: share_of_time(scene),
    };
    fetching.all(&sources, &mut |told| take(books, told, tell)).await?;
    if scene.stop.requested().is_none() {
        for source in sources {
            tell_missing(scene, books, source, tell).await?;
        }
    }
    Ok(())
}

/// Says which files did not come, once by a case each, and closes the case when they are there.
async fn tell_missing(
    scene: &Scene<'_>,
    books: &mut Books,
    source: &Source,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    let now = scene.clock.now();
    let mut open: Vec<String> = Vec::new();
    for awaited in awaited(scene.db, source, now).await? {
        let Some(text) = awaited.text() else { continue };
        let case = AbsentCase {
            source: source.name.clone(),
            expected: awaited.expected.file.name.clone(),
            account: source.account.clone().unwrap_or_default(),
            text: text.clone(),
        };
        let put = scene.db.put_absent_case(scene.run_id, &case, now).await;
        put.doing("opening a case about missing files")?;
        open.push(case.subject());
        books.miss(Exit::Partial, text, tell);
    }
    let closed = scene.db.close_absent_cases(scene.run_id, &source.name, &open, now).await;
    closed.doing("closing cases about missing files").map(|_count| ())
}

/// A slow line must leave the rows their time.
fn share_of_time(scene: &Scene<'_>) -> Option<Duration> {
    let all = scene.options.max_duration?.to_std().ok()?;
    Some(all / 2)
}

/// The sources of the accounts that the run was narrowed to; of named rows, those of the accounts
/// that their tables know.
fn in_scope<'s>(scene: &Scene<'s>, named: &[(String, NamedRow)]) -> Vec<&'s Source> {
    let tables: BTreeSet<&str> = named.iter().map(|(table, _)| table.as_str()).collect();
    let of_named: BTreeSet<&str> = scene
        .setup
        .tables
        .iter()
        .filter(|table| tables.contains(table.name.as_str()))
        .flat_map(|table| table.accounts.values().map(String::as_str))
        .collect();
    let is_narrowed = scene.options.ids.is_some() || scene.options.kick.is_some();
    let is_asked = |account: &str| {
        let accounts = scene.options.accounts.as_ref();
        accounts.is_none_or(|names| names.iter().any(|name| name == account))
            && (!is_narrowed || of_named.contains(account))
    };
    let sources = scene.setup.sources.iter();
    sources.filter(|source| source.account.as_deref().is_some_and(is_asked)).collect()
}

fn take(books: &mut Books, told: Told, tell: Tell<'_>) {
    match told {
        Told::Coming { source, name, bytes, size } => {
            tell(Event::Fetching { source, name, bytes, size });
        }
        Told::BroughtIn(brought) => {
            if let Some(text) = trouble_text(&brought) {
                books.miss(Exit::Partial, text, tell);
            }
            tell(Event::BroughtIn(brought));
        }
        Told::Done(note) => {
            books.sources.push((*note).clone());
            tell(Event::Fetched(note));
        }
        Told::Missed(exit, text) => books.miss(exit, text, tell),
    }
}

/// What a run says of a file that does not count.
fn trouble_text(brought: &BroughtIn) -> Option<String> {
    let (text, next) = brought.trouble()?;
    Some(format!("source {}: {}: {text}; next: {next}", brought.source, brought.name))
}
