//! Where settlement files come from: does each source answer, is it the trusted one, does it let
//! us in, and what lies there? Nothing is fetched.

use chrono::TimeDelta;
use tokio::task::spawn_blocking;

use crate::clock;
use crate::model::count::counted;
use crate::run::doctor::secrets::is_open;
use crate::run::doctor::{Finding, Say, fail, ok, warn};
use crate::run::setup::Setup;
use crate::secret::EnvLookup;
use crate::settlement::sources::SourceError;
use crate::settlement::sources::fetch::{Look, look as look_at};
use crate::settlement::sources::pick::Seen;
use crate::settlement::sources::settings::{Place, Source};
use crate::settlement::sources::trust::Trusted;

/// Whoever writes a file marks it within that.
const WAITED: TimeDelta = TimeDelta::days(1);

/// Asks every source, side by side; they are told in the configuration's order.
pub(super) async fn look(setup: &Setup, say: Say<'_>) {
    let mut asked = Vec::new();
    for source in &setup.sources {
        let looking = open(source.clone(), setup.env.clone()).await;
        asked.push((source, looking));
    }
    for (source, looking) in asked {
        let looked = match looking {
            Ok(looking) => looking.await.unwrap_or_else(|error| {
                let doing = format!("looking at {}", source.name);
                Err(SourceError::Unreachable { doing, problem: error.to_string() })
            }),
            Err(error) => Err(error),
        };
        let seen = looked.as_ref().map(|look| found_there(source, look)).unwrap_or_default();
        say(told(source, looked));
        seen.into_iter().chain(warnings(source)).for_each(&mut *say);
    }
}

type Looking = tokio::task::JoinHandle<Result<Look, SourceError>>;

async fn open(source: Source, env: EnvLookup) -> Result<Looking, SourceError> {
    let secrets = source.secrets(&env).await?;
    Ok(spawn_blocking(move || look_at(&source, &secrets)))
}

/// A source's name with its kind.
pub fn label(source: &Source) -> String {
    let kind = match source.place {
        Place::Sftp(_) => "sftp",
        Place::Folder(_) => "folder",
    };
    format!("{} {kind}", source.name)
}

fn told(source: &Source, looked: Result<Look, SourceError>) -> Finding {
    let what = label(source);
    match looked {
        Ok(look) => ok(&what, "source", look.text()),
        Err(error) => {
            let next = error.hint(&source.name);
            fail(&what, error.exit(), "source", error.to_string(), next)
        }
    }
}

/// What a source that answers shows, and what no run makes anything of.
fn found_there(source: &Source, look: &Look) -> Vec<Finding> {
    let what = label(source);
    let mut found = Vec::new();
    if let Some((count, one)) = look.fits_none() {
        let text = format!(
            "none of its {} fits `glob` ({}), such as {}: nothing is ever fetched",
            counted(count, "file", "files"),
            source.globs.join(", "),
            one.escape_debug()
        );
        let next = format!("mend `glob` of `{}`: `*` and `?` alone mean something", source.name);
        found.push(warn(&what, "glob_none", text, next));
    }
    if let Some((name, why)) = look.picked.refused.first() {
        let count = counted(look.picked.refused.len(), "name is", "names are");
        let text =
            format!("{count} refused, and each run ends with 3: {}: {why}", name.escape_debug());
        let next = format!("rename or remove it; all of them: tieout sources test {}", source.name);
        found.push(warn(&what, "names_refused", text, next));
    }
    if let Some((name, why)) = look.unread.first() {
        let count = look.unread.len();
        let text = format!(
            "{} cannot be opened, and each run ends with 3: {}: {why}",
            counted(count, "file", "files"),
            name.escape_debug()
        );
        let next = format!("let this login read {}, or move it away", their(count));
        found.push(warn(&what, "files_unreadable", text, next));
    }
    let long_ago = clock::now().checked_sub_signed(WAITED);
    let waits = |seen: &Seen| seen.written().is_some_and(|at| Some(at) < long_ago);
    let mut waiting = look.picked.waiting.iter().filter(|(seen, _)| waits(seen));
    if let Some((seen, why)) = waiting.next() {
        let count = counted(waiting.count().saturating_add(1), "file waits", "files wait");
        let text = format!("{count} for more than a day: {}: {why}", seen.name.escape_debug());
        let next = "ask the sender for it, or mend `marker`".to_owned();
        found.push(warn(&what, "files_waiting", text, next));
    }
    if let Some(why) = &look.archive {
        let text = format!("no file is put away, and each run with one ends with 3: {why}");
        let next = "name another folder as `archive`, or let this login make and fill that one";
        found.push(warn(&what, "archive", text, next));
    }
    found
}

fn their(count: usize) -> &'static str {
    if count == 1 { "it" } else { "them" }
}

/// What works, and should be known or mended.
fn warnings(source: &Source) -> Vec<Finding> {
    let what = label(source);
    let mut found = Vec::new();
    let of_server = match &source.place {
        Place::Sftp(server) => server.key_file.as_ref(),
        Place::Folder(_) => None,
    };
    let of_messages = source.decrypt.as_ref().map(|decrypt| &decrypt.key_file);
    for key in of_server.into_iter().chain(of_messages).filter(|key| is_open(key)) {
        let text = format!("others than its owner may read the key {}", key.display());
        found.push(warn(&what, "key_open", text, format!("chmod 600 {}", key.display())));
    }
    if let Place::Sftp(server) = &source.place {
        let problems = Trusted::of(server).map(|trusted| trusted.problems).unwrap_or_default();
        for problem in problems {
            let file = server.known_hosts.display();
            let text = format!("{file}:{} cannot be read, and says nothing then", problem.line);
            found.push(warn(&what, "known_hosts", text, "mend or remove that line"));
        }
    }
    if source.expected.is_empty() {
        let text = "it expects no file: nobody is told of one that does not come";
        let next = format!("add [[source.expected]] to `{}`", source.name);
        found.push(warn(&what, "no_expected", text.to_owned(), next));
    }
    for expected in &source.expected {
        if source.globs.iter().any(|glob| expected.file.may_fit(glob)) {
            continue;
        }
        let name = &expected.file.name;
        let text = format!(
            "no pattern of its `glob` ({}) fits the expected {name}: such a file is never \
             fetched, and missing each day",
            source.globs.join(", ")
        );
        let next = format!("add a pattern to `glob` of `{}`, or mend that name", source.name);
        found.push(warn(&what, "glob_expected", text, next));
    }
    found
}
