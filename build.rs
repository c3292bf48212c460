//! Says which commit a release is built from: `tieout version` and reports name it.
//!
//! `TIEOUT_GIT_COMMIT` says it where no repository is at hand (an image, a tarball). Else a
//! release asks git, and a source tree that was changed since its commit says so. Without git,
//! or in another project's repository, nothing is said. Other builds do not ask: after each
//! commit they would be compiled anew.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What the program is made of.
const SOURCES: [&str; 5] = ["build.rs", "Cargo.lock", "Cargo.toml", "migrations", "src"];

fn main() {
    println!("cargo:rerun-if-env-changed=TIEOUT_GIT_COMMIT");
    println!("cargo:rerun-if-changed=build.rs");
    let given = variable("TIEOUT_GIT_COMMIT").filter(|commit| !commit.is_empty());
    let is_release = variable("PROFILE").is_some_and(|profile| profile == "release");
    let commit = given.or_else(|| {
        let folder = variable("CARGO_MANIFEST_DIR").filter(|_| is_release)?;
        let (commit, watched) = of_repository(Path::new(&folder))?;
        for path in watched {
            println!("cargo:rerun-if-changed={}", path.display());
        }
        Some(commit)
    });
    if let Some(commit) = commit.filter(|text| text.chars().all(|c| c.is_ascii_graphic())) {
        println!("cargo:rustc-env=TIEOUT_BUILT_FROM={commit}");
    }
}

#[expect(clippy::disallowed_methods, reason = "how cargo speaks to a build script")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The commit, and what may change it.
fn of_repository(folder: &Path) -> Option<(String, Vec<PathBuf>)> {
    let top = git(folder, &["rev-parse", "--show-toplevel"])?;
    // A copy of the sources within another repository is of none of its commits.
    if std::fs::canonicalize(top).ok()? != std::fs::canonicalize(folder).ok()? {
        return None;
    }
    let mut commit = git(folder, &["rev-parse", "HEAD"])?;
    let changes = git(folder, &[&["status", "--porcelain", "--"][..], &SOURCES].concat())?;
    if !changes.is_empty() {
        commit.push_str("-dirty");
    }
    // Grows with each commit and checkout. What is not there would be taken for changed for ever.
    let log = git(folder, &["rev-parse", "--git-path", "logs/HEAD"])?;
    let watched = SOURCES.map(|source| folder.join(source)).into_iter().chain([folder.join(log)]);
    Some((commit, watched.filter(|path| path.exists()).collect()))
}

/// What git answers; nothing where it is not installed or refuses.
fn git(folder: &Path, words: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(folder).args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
