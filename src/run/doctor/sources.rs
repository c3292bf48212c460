//! Where settlement files come from: does each source answer, is it the trusted one, does it let
//! us in, and what lies there? Nothing is fetched.

use tokio::task::spawn_blocking;

use crate::run::doctor::secrets::is_open;
use crate::run::doctor::{Finding, Say, fail, ok, warn};
use crate::run::setup::Setup;
use crate::secret::EnvLookup;
use crate::settlement::sources::SourceError;
use crate::settlement::sources::fetch::{Look, look as look_at};
use crate::settlement::sources::settings::{Place, Source};
use crate::settlement::sources::trust::Trusted;

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
        say(told(source, looked));
        warnings(source).into_iter().for_each(&mut *say);
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
