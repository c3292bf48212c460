//! Fetching, against OpenSSH's own sshd on a loopback port: each test starts one, with its own
//! keys, algorithms and rights. A small proxy stands in between where the line is to be bad.

mod command;
pub mod decrypting;
mod faults;
mod fetching;
mod logging_in;
pub mod proxy;
pub mod sshd;
mod trusting;

use std::path::Path;

use tieout::settlement::sources::fetch::{Haul, Outcome, fetch};
use tieout::settlement::sources::settings::{Around, Secrets, Source, SourceSettings};
use tieout::settlement::sources::spool::{Fetched, Spool};

/// A source from the words of its section.
fn source(folder: &Path, text: &str) -> Source {
    let settings: SourceSettings = toml::from_str(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let at = |file: &Path| folder.join(file);
    let around = Around { at: &at, zone: chrono_tz::UTC };
    settings.check(around).unwrap_or_else(|wrong| panic!("{wrong:?}\n{text}"))
}

/// Fetches everything, without secrets.
fn fetch_all(source: &Source, spool: &Spool) -> Haul {
    fetch(source, &Secrets::default(), spool, &|_| false, &mut |_| true)
}

/// The files that came, in their order.
fn came(haul: &Haul) -> Vec<&Fetched> {
    let came = haul.files.iter().filter_map(|file| match file {
        Outcome::Fetched(fetched) => Some(fetched.as_ref()),
        _other => None,
    });
    came.collect()
}

/// What became of each file: `fetched a.xml`, `waiting b.xml`.
fn told(haul: &Haul) -> Vec<String> {
    let mut told: Vec<String> = haul.files.iter().map(outcome).collect();
    told.extend(haul.ended.as_ref().map(|error| format!("ended {error}")));
    told
}

fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Fetched(fetched) => format!("fetched {}", fetched.seen.name),
        Outcome::Sealed { fetched, error } => format!("sealed {}: {error}", fetched.seen.name),
        Outcome::Known(ready) => format!("known {}", ready.seen.name),
        Outcome::Waiting { name, why } => format!("waiting {name}: {why}"),
        Outcome::Refused { name, why } => format!("refused {name:?}: {why}"),
        Outcome::Failed { name, error } => format!("failed {name}: {error}"),
    }
}

/// The names that lie in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
