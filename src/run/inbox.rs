//! The settlement files of a run: let count, fetched and brought in before any row is decided.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::exit::Exit;
use crate::run::books::{Books, Tell};
use crate::run::bring::BroughtIn;
use crate::run::error::RunError;
use crate::run::events::Event;
use crate::run::expected::note_missing;
use crate::run::fetch::{Fetching, Told};
use crate::run::pages::note_pages;
use crate::run::release::{Releasing, waiting};
use crate::run::scene::Scene;
use crate::settlement::sources::settings::Source;
use crate::store::inspect::NamedRow;

/// Carries out what people said of files that do not count by themselves (`releases`: where they
/// may have), fetches from the sources in scope and brings in what came. What could not be had is
/// told, and the run goes on without it.
pub async fn bring_in(
    scene: &Scene<'_>,
    books: &mut Books,
    named: &[(String, NamedRow)],
    releases: bool,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    let is_asked = accounts(scene, named);
    let Scene { setup, db, run_id, stop, .. } = *scene;
    let mut changed = BTreeSet::new();
    if releases {
        let releasing = Releasing { setup, db, run_id, stop };
        let take = &mut |told| take(books, told, tell);
        changed = Box::pin(releasing.all(&is_asked, take)).await?;
    }
    let sources = sources(scene, &is_asked);
    let fetching = Fetching {
        setup: scene.setup,
        db: scene.db,
        run_id: scene.run_id,
        stop: scene.stop,
        at_most: share_of_time(scene),
    };
    fetching.all(&sources, &mut |told| take(books, told, tell)).await?;
    if scene.stop.requested().is_none() {
        for source in &sources {
            tell_missing(scene, books, source, tell).await?;
        }
        let of_sources = sources.iter().filter_map(|source| source.account.as_deref());
        let own: BTreeSet<&str> = of_sources.chain(changed.iter().map(String::as_str)).collect();
        for account in own {
            let is_changed = changed.contains(account);
            note_pages(scene.db, scene.run_id, account, scene.clock.now(), is_changed).await?;
        }
    }
    Ok(())
}

/// The sources of these accounts.
fn sources<'s>(scene: &Scene<'s>, is_asked: impl Fn(&str) -> bool) -> Vec<&'s Source> {
    let is_in_scope = |source: &&Source| source.account.as_deref().is_some_and(&is_asked);
    scene.setup.sources.iter().filter(is_in_scope).collect()
}

/// Says what of all this a dry run leaves to the run: it decides by the files that are here.
pub async fn tell_left(
    scene: &Scene<'_>,
    books: &mut Books,
    named: &[(String, NamedRow)],
    tell: Tell<'_>,
) -> Result<(), RunError> {
    let is_asked = accounts(scene, named);
    let sources = sources(scene, &is_asked);
    if !sources.is_empty() {
        let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
        let text = format!(
            "a dry run fetches nothing, and the run first fetches from {}; next: `tieout ingest` \
             brings in what is there, and decides nothing",
            names.join(", ")
        );
        books.miss(Exit::Ok, text, tell);
    }
    for (spoken, _file) in waiting(scene.db, &is_asked).await? {
        let text = format!(
            "a dry run leaves file {} as it is, and the run first lets it count, as {} said",
            spoken.file, spoken.word.by
        );
        books.miss(Exit::Ok, text, tell);
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
    for text in note_missing(scene.db, scene.run_id, source, now).await? {
        books.miss(Exit::Partial, text, tell);
    }
    Ok(())
}

/// A slow line must leave the rows their time.
fn share_of_time(scene: &Scene<'_>) -> Option<Duration> {
    let all = scene.options.max_duration?.to_std().ok()?;
    Some(all / 2)
}

/// Which accounts the run was narrowed to; of named rows, those that their tables know.
fn accounts(scene: &Scene<'_>, named: &[(String, NamedRow)]) -> impl Fn(&str) -> bool {
    let tables: BTreeSet<&str> = named.iter().map(|(table, _)| table.as_str()).collect();
    let of_named: BTreeSet<&str> = scene
        .setup
        .tables
        .iter()
        .filter(|table| tables.contains(table.name.as_str()))
        .flat_map(|table| table.accounts.values().map(String::as_str))
        .collect();
    let is_narrowed = scene.options.ids.is_some() || scene.options.kick.is_some();
    let accounts = scene.options.accounts.as_ref();
    move |account: &str| {
        accounts.is_none_or(|names| names.iter().any(|name| name == account))
            && (!is_narrowed || of_named.contains(account))
    }
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
        Told::Released(note) => {
            books.releases.push((*note).clone());
            tell(Event::Released(note));
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
