//! build.rs on its own: which commit it names, and that it names none where it cannot know; what
//! it tells the linker, and that it tells none that somebody chose.

use std::path::{Path, PathBuf};
use std::process::Command;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The script, compiled as cargo does it.
fn script(folder: &Path) -> PathBuf {
    let to = folder.join("script");
    let mut rustc = Command::new(option_env!("RUSTC").unwrap_or("rustc"));
    rustc.args(["--edition", "2024", "-A", "unknown_lints", "-o"]).arg(&to);
    let status = rustc.arg(Path::new(ROOT).join("build.rs")).status().unwrap();
    assert!(status.success());
    to
}

fn git(folder: &Path, words: &[&str]) -> String {
    let mut git = Command::new("git");
    git.current_dir(folder).args(["-c", "user.name=t", "-c", "user.email=t@example.com"]);
    let output = git.args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The lines that the script says of a source tree.
fn said(script: &Path, tree: &Path, profile: &str, env: &[(&str, &str)]) -> Vec<String> {
    let path = std::env::var("PATH").unwrap();
    let mut command = Command::new(script);
    command.env_clear().env("PATH", path).env("CARGO_MANIFEST_DIR", tree);
    command.env("PROFILE", profile).envs(env.iter().copied());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn commit(lines: &[String]) -> Option<&str> {
    lines.iter().find_map(|line| line.strip_prefix("cargo:rustc-env=TIEOUT_BUILT_FROM="))
}

fn sources(tree: &Path) {
    std::fs::create_dir_all(tree.join("src")).unwrap();
    std::fs::write(tree.join("src/main.rs"), "fn main() {}").unwrap();
    std::fs::write(tree.join("Cargo.toml"), "").unwrap();
}

#[test]
fn a_release_names_its_commit_and_nothing_is_named_that_is_not_known() {
    let folder = tempfile::tempdir().unwrap();
    let script = script(folder.path());
    let bare = folder.path().join("bare");
    sources(&bare);
    // No repository; no git; another profile: nothing, and no failure.
    assert_eq!(commit(&said(&script, &bare, "release", &[])), None);
    let tree = folder.path().join("tree");
    sources(&tree);
    git(&tree, &["init", "-q"]);
    git(&tree, &["add", "."]);
    git(&tree, &["commit", "-q", "-m", "one"]);
    let head = git(&tree, &["rev-parse", "HEAD"]);
    assert_eq!(commit(&said(&script, &tree, "release", &[("PATH", "")])), None);
    assert_eq!(commit(&said(&script, &tree, "debug", &[])), None);
    assert_eq!(commit(&said(&script, &tree, "release", &[])), Some(head.as_str()));
    // What is no source changes nothing; what is one, does.
    std::fs::write(tree.join("notes.txt"), "").unwrap();
    assert_eq!(commit(&said(&script, &tree, "release", &[])), Some(head.as_str()));
    std::fs::write(tree.join("src/main.rs"), "fn main() { }").unwrap();
    let dirty = format!("{head}-dirty");
    assert_eq!(commit(&said(&script, &tree, "release", &[])), Some(dirty.as_str()));
    // A copy within another repository is none of its commits.
    let inner = tree.join("vendor/tieout");
    sources(&inner);
    assert_eq!(commit(&said(&script, &inner, "release", &[])), None);
    // What is said wins, in every profile; what would forge a line for cargo is nothing.
    let given = |text: &str| {
        let lines = said(&script, &tree, "debug", &[("TIEOUT_GIT_COMMIT", text)]);
        commit(&lines).map(str::to_owned)
    };
    assert_eq!(given("abc123").as_deref(), Some("abc123"));
    assert_eq!(given("a\nb"), None);
    assert_eq!(given(""), None);
}

/// A path that is not there makes every build a new one.
#[test]
fn only_what_exists_is_watched() {
    let folder = tempfile::tempdir().unwrap();
    let script = script(folder.path());
    let tree = folder.path().join("tree");
    sources(&tree);
    git(&tree, &["init", "-q"]);
    git(&tree, &["add", "."]);
    git(&tree, &["commit", "-q", "-m", "one"]);
    let watched = |profile| {
        let lines = said(&script, &tree, profile, &[]);
        let paths = lines.iter().filter_map(|l| l.strip_prefix("cargo:rerun-if-changed="));
        paths.map(PathBuf::from).collect::<Vec<_>>()
    };
    assert_eq!(watched("debug"), [Path::new("build.rs")]);
    let watched = watched("release");
    assert!(watched.contains(&tree.join("src")), "{watched:?}");
    assert!(watched.iter().any(|path| path.ends_with("logs/HEAD")), "{watched:?}");
    for path in &watched[1..] {
        assert!(path.exists(), "{}", path.display());
    }
}

/// A program of that name which says this.
fn tool(folder: &Path, name: &str, says: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/sh\necho {says}\n")).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, executable).unwrap();
    path
}

#[test]
fn only_the_linker_of_the_toolchain_is_told_an_order() {
    let folder = tempfile::tempdir().unwrap();
    let script = script(folder.path());
    let tree = folder.path().join("tree");
    sources(&tree);
    std::fs::create_dir(tree.join("packaging")).unwrap();
    std::fs::write(tree.join("packaging/functions.order"), "main\n").unwrap();
    let linker = folder.path().join("lib/rustlib/x86_64-unknown-linux-gnu/bin/gcc-ld");
    std::fs::create_dir_all(&linker).unwrap();
    std::fs::write(linker.join("ld.lld"), "").unwrap();
    let rustc = tool(folder.path(), "rustc", &folder.path().display().to_string());
    let loader = |version: &str| {
        tool(folder.path(), "getconf", version);
        format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap())
    };
    let path = loader("glibc 2.35");
    let told = |tree: &Path, profile: &str, others: &[(&str, &str)]| {
        let linux = "x86_64-unknown-linux-gnu";
        let rustc = rustc.to_str().unwrap();
        let usual = [("TARGET", linux), ("HOST", linux), ("RUSTC", rustc), ("PATH", &path)];
        let lines = said(&script, tree, profile, &[&usual[..], others].concat());
        let words = lines.iter().filter_map(|l| l.strip_prefix("cargo:rustc-link-arg-bins="));
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    let order = tree.join("packaging/functions.order");
    let words = [
        format!("-B{}", linker.display()),
        "-fuse-ld=lld".to_owned(),
        format!("-Wl,--symbol-ordering-file={}", order.display()),
        "-Wl,--no-warn-symbol-ordering".to_owned(),
    ];
    assert_eq!(told(&tree, "release", &[("CARGO_ENCODED_RUSTFLAGS", "")]), words);
    // Packed addresses are for a loader that reads them; another would start nothing.
    let packed = [&words[..], &["-Wl,-z,pack-relative-relocs".to_owned()]].concat();
    for (version, words) in [
        ("glibc 2.36", &packed[..]),
        ("glibc 2.41", &packed),
        ("glibc 2.28", &words),
        ("glibc", &words),
        ("musl 1.2.5", &words),
    ] {
        loader(version);
        assert_eq!(told(&tree, "release", &[]), words, "{version}");
    }
    let none: [String; 0] = [];
    assert_eq!(told(&tree, "debug", &[]), none);
    for chosen in [
        ("CARGO_ENCODED_RUSTFLAGS", "-Clink-arg=-fuse-ld=mold"),
        ("RUSTC_LINKER", "clang"),
        ("TARGET", "aarch64-unknown-linux-gnu"),
        ("HOST", "aarch64-apple-darwin"),
        ("RUSTC", "/nowhere/rustc"),
    ] {
        assert_eq!(told(&tree, "release", &[chosen]), none, "{chosen:?}");
    }
    std::fs::remove_file(linker.join("ld.lld")).unwrap();
    assert_eq!(told(&tree, "release", &[]), none);
}

/// Libraries that a file asks for, as its packaging judges them.
fn needs(file: &Path) -> std::process::Output {
    let check = Path::new(ROOT).join("packaging/needs.sh");
    Command::new("bash").arg(check).arg(file).output().unwrap()
}

#[test]
fn the_program_asks_for_no_library_besides_glibc() {
    // A build for tests may take the machine's OpenSSL; zlib no build takes.
    let output = needs(&crate::support::tieout_bin());
    let said = String::from_utf8_lossy(&output.stderr);
    let is_openssl = |line: &&str| line.contains("libssl") || line.contains("libcrypto");
    let others: Vec<&str> = said.lines().filter(|line| !is_openssl(line)).collect();
    assert!(others.is_empty(), "{others:?}");
    // What it would see: a program that asks for another one.
    let folder = tempfile::tempdir().unwrap();
    let (source, other) = (folder.path().join("other.c"), folder.path().join("libother.so"));
    std::fs::write(&source, "int other(void) { return 0; }\n").unwrap();
    let built = |words: &[&std::ffi::OsStr]| {
        assert!(Command::new("cc").args(words).status().unwrap().success(), "{words:?}");
    };
    let [shared, out] = ["-shared", "-o"].map(std::ffi::OsStr::new);
    built(&[shared, out, other.as_os_str(), source.as_os_str()]);
    let asks = folder.path().join("asks.so");
    let keep = std::ffi::OsStr::new("-Wl,--no-as-needed");
    built(&[shared, out, asks.as_os_str(), source.as_os_str(), keep, other.as_os_str()]);
    let output = needs(&asks);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("libother.so"), "{said}");
}
