//! The Dockerfile, held to what can be held of it where no engine builds it: that what the build
//! reads is copied and not left out of the context, that the image runs without rights, that
//! its user can write where a run writes, that nothing in it floats. The words are those of the
//! Dockerfile reference.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap()
}

/// Each instruction and its words, lines that go on joined.
fn instructions() -> Vec<(String, String)> {
    let joined = text("Dockerfile").replace("\\\n", " ");
    let lines = joined.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
    let split = |line: &str| {
        let (name, words) = line.split_once(' ').unwrap();
        (name.to_owned(), words.trim().to_owned())
    };
    lines.map(split).collect()
}

fn of(name: &str) -> Vec<String> {
    let all = instructions().into_iter().filter(|(own, _)| own == name);
    all.map(|(_, words)| words).collect()
}

/// What is copied from the sources: paths from the top.
fn copied() -> BTreeSet<String> {
    let of_sources = of("COPY").into_iter().filter(|words| !words.starts_with("--from="));
    let sources = of_sources.flat_map(|words| {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        words.split_last().unwrap().1.to_vec()
    });
    sources.collect()
}

fn is_copied(path: &str) -> bool {
    copied().iter().any(|own| path == own || path.starts_with(&format!("{own}/")))
}

#[test]
fn what_is_copied_is_there_and_in_the_context() {
    let ignored = text(".dockerignore");
    let kept: BTreeSet<&str> = ignored.lines().filter_map(|line| line.strip_prefix('!')).collect();
    assert_eq!(
        ignored.lines().next(),
        Some("*"),
        "nothing but what is named, secrets least of all"
    );
    for path in copied() {
        assert!(root().join(&path).exists(), "{path} is not there");
        assert!(kept.contains(path.as_str()), "{path} is not in the context");
    }
    assert_eq!(kept.len(), copied().len(), "the context has what nothing copies");
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// A file that is compiled in, and the targets that cargo looks for before it builds any.
#[test]
fn what_the_build_reads_is_copied() {
    let mut files = Vec::new();
    rust_files(&root().join("src"), &mut files);
    let mut read = 0;
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        for part in text.split("include_str!(\"").skip(1) {
            let (name, _) = part.split_once('"').unwrap();
            let path = file.parent().unwrap().join(name).canonicalize().unwrap();
            let path = path.strip_prefix(root().canonicalize().unwrap()).unwrap();
            assert!(is_copied(path.to_str().unwrap()), "{} is not copied", path.display());
            read += 1;
        }
    }
    assert!(read > 30, "{read} files are compiled in");
    let manifest: toml::Table = text("Cargo.toml").parse().unwrap();
    let targets = ["bench", "test"].into_iter().filter_map(|kind| manifest.get(kind));
    let paths = targets.flat_map(|list| list.as_array().unwrap()).map(|one| one["path"].as_str());
    for path in paths {
        let path = path.unwrap();
        assert!(is_copied(path), "{path} is not copied");
    }
    for path in ["Cargo.toml", "Cargo.lock", "build.rs", "packaging/functions.order"] {
        assert!(is_copied(path), "{path} is not copied");
    }
}

/// A run that decided something and may not write its report ends with 3.
#[test]
fn the_images_user_may_write_where_a_run_writes() {
    let user = of("USER").pop().unwrap();
    let owned: Vec<(String, String)> = of("COPY")
        .iter()
        .filter(|words| words.contains(&format!("--chown={user} ")))
        .map(|words| {
            let paths: Vec<&str> = words.split_whitespace().collect();
            let [.., from, to] = paths.as_slice() else { panic!("{words}") };
            ((*from).to_owned(), (*to).to_owned())
        })
        .collect();
    let env = of("ENV").join(" ");
    for name in ["TIEOUT_REPORT_DIR", "TIEOUT_FILES_SPOOL"] {
        let place = env.split_whitespace().find_map(|one| one.strip_prefix(&format!("{name}=")));
        let place = place.unwrap_or_else(|| panic!("{name} is not set: {env}"));
        // It is made where the image is built, and is the user's where it is shipped.
        let is_made = owned.iter().any(|(from, to)| {
            let made = place.strip_prefix(to.as_str()).map(|rest| format!("{from}{rest}"));
            let is_one =
                |run: &String| run.split_whitespace().any(|word| Some(word) == made.as_deref());
            of("RUN").iter().filter(|run| run.starts_with("mkdir -p ")).any(is_one)
        });
        assert!(is_made, "{name}={place} is nobody's: {owned:?}");
    }
}

#[test]
fn nothing_in_the_image_floats_and_it_runs_without_rights() {
    let bases = of("FROM");
    assert_eq!(bases.len(), 2, "one that builds, and one that is shipped");
    for base in &bases {
        let (name, tag) = base.split_whitespace().next().unwrap().rsplit_once(':').unwrap();
        assert!(tag != "latest" && !tag.is_empty(), "{name}:{tag}");
    }
    let rust: toml::Table = text("Cargo.toml").parse().unwrap();
    let minor = |version: &str| version.strip_prefix("1.").unwrap().parse::<u32>().unwrap();
    let least = minor(rust["package"]["rust-version"].as_str().unwrap());
    let (version, _) = bases[0].strip_prefix("rust:").unwrap().split_once('-').unwrap();
    assert!(minor(version) >= least, "{} is older than what the sources need", bases[0]);
    for run in of("RUN").iter().filter(|run| run.contains("apt-get install")) {
        assert!(run.contains("--no-install-recommends") && run.contains("--yes"), "{run}");
        assert!(run.contains("rm -rf /var/lib/apt/lists/*"), "{run}");
        let packages = run.split("--no-install-recommends").nth(1).unwrap();
        let packages = packages.split("&&").next().unwrap().split_whitespace();
        assert!(packages.clone().count() > 0, "{run}");
        packages.for_each(|package| assert!(package.contains('='), "{package} has no version"));
    }
    assert!(of("RUN").iter().any(|run| run.contains("--release --locked")), "the locked versions");
    let user = of("USER").pop().unwrap();
    assert!(user.split(':').all(|id| id.parse::<u32>().is_ok_and(|id| id > 0)), "{user}");
    for folder in of("WORKDIR") {
        assert!(folder.starts_with('/'), "{folder}");
    }
    // A shell would take the signals to itself, and the image has none.
    for words in of("ENTRYPOINT").into_iter().chain(of("CMD")) {
        assert!(serde_json::from_str::<Vec<String>>(&words).is_ok(), "{words}");
    }
    assert_eq!(of("ADD"), Vec::<String>::new(), "ADD fetches and unpacks");
    let said = format!("{:?}{:?}", of("ENV"), of("ARG")).to_lowercase();
    for word in ["password", "secret", "token", "_key="] {
        assert!(!said.contains(word), "{word} in the image");
    }
}
