//! Says which commit a release is built from, and in which order its functions are laid out.
//!
//! `tieout version` and reports name the commit.
//! `TIEOUT_GIT_COMMIT` says it where no repository is at hand (an image, a tarball). Else a
//! release asks git, and a source tree that was changed since its commit says so. Without git,
//! or in another project's repository, nothing is said. Other builds do not ask: after each
//! commit they would be compiled anew.
//!
//! A run with nothing due calls two thousand functions of fifty thousand. Laid out where they
//! fall, they touch half the program, and each page touched is memory; side by side they are a
//! tenth of it. The linker that rustup brings can do that; others are left alone.

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
    if let Some((order, words)) = order().filter(|_| is_release) {
        println!("cargo:rerun-if-changed={}", order.display());
        for word in words {
            println!("cargo:rustc-link-arg-bins={word}");
        }
    }
}

/// Made by packaging/order.sh.
const ORDER: &str = "packaging/functions.order";

/// The order of functions, and how to tell the linker. Nothing where somebody chose the linker or
/// its flags, or where there is none that knows the words.
fn order() -> Option<(PathBuf, Vec<String>)> {
    const TARGET: &str = "x86_64-unknown-linux-gnu";
    let is = |name: &str| variable(name).is_some_and(|value| value == TARGET);
    let chosen = ["RUSTC_LINKER", "CARGO_ENCODED_RUSTFLAGS"].map(variable);
    let is_chosen = chosen.into_iter().flatten().any(|value| !value.is_empty());
    if is_chosen || !is("TARGET") || !is("HOST") {
        return None;
    }
    let order = Path::new(&variable("CARGO_MANIFEST_DIR")?).join(ORDER);
    let output = Command::new(variable("RUSTC")?).arg("--print=sysroot").output().ok()?;
    let sysroot = String::from_utf8(output.stdout).ok()?;
    let linker = Path::new(sysroot.trim()).join("lib/rustlib").join(TARGET).join("bin/gcc-ld");
    let mut words = vec![
        format!("-B{}", linker.display()),
        "-fuse-ld=lld".to_owned(),
        format!("-Wl,--symbol-ordering-file={}", order.display()),
        "-Wl,--no-warn-symbol-ordering".to_owned(),
    ];
    if reads_packed_relocations() {
        words.push("-Wl,-z,pack-relative-relocs".to_owned());
    }
    (linker.join("ld.lld").exists() && order.exists()).then_some((order, words))
}

/// Whether this machine's loader can read the program's own addresses packed (glibc 2.36 and
/// later). The loader reads them all at each start: a tenth of the memory of a run with nothing
/// due. What is built here then asks for such a glibc by name where it is started.
fn reads_packed_relocations() -> bool {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let text = output.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    let version = text.as_deref().and_then(|text| text.trim().strip_prefix("glibc 2."));
    version.and_then(|minor| minor.parse::<u32>().ok()).is_some_and(|minor| minor >= 36)
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
