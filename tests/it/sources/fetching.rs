//! What comes of an inbox: which files are ready, what they are named, what is left alone.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tieout::model::transaction::hex;
use tieout::settlement::sources::fetch::{Settled, archive, fetch, look};
use tieout::settlement::sources::settings::{Secrets, Source};
use tieout::settlement::sources::spool::Spool;
use tieout::settlement::sources::{SourceError, open};

use super::sshd::{Setup, Sshd};
use super::{came, fetch_all, names, told};

/// The same inbox by both kinds of source.
fn both(sshd: &Sshd, more: &str) -> [Source; 2] {
    let ready = if more.contains("ready") { "" } else { "ready = 'rename'\n" };
    let folder = format!("name = 'inbox'\nkind = 'folder'\npath = 'srv'\n{ready}{more}");
    [sshd.source(more), super::source(&sshd.path(""), &folder)]
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

#[test]
fn files_come_whole_under_the_hash_of_their_bytes() {
    let sshd = Sshd::plain();
    let large: Vec<u8> =
        (0..5_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    sshd.put("b.xml", &large);
    sshd.put("a.xml", "<a/>");
    sshd.put("empty.xml", "");
    sshd.put("notes.txt", "no");
    for source in both(&sshd, "glob = ['*.xml']\n") {
        let spool = Spool::new(sshd.path(&format!("spool-{}", source.name)));
        let haul = fetch_all(&source, &spool);
        assert_eq!(told(&haul), ["fetched a.xml", "fetched b.xml", "fetched empty.xml"]);
        for (file, bytes) in came(&haul).into_iter().zip([&b"<a/>"[..], &large, b""]) {
            assert_eq!(file.sha256, sha256(bytes));
            assert_eq!(file.bytes, bytes.len() as u64);
            assert_eq!(std::fs::read(file.readable()).unwrap(), bytes);
            assert!(file.path.ends_with(&file.sha256), "{}", file.path.display());
            assert!(file.seen.modified.is_some());
        }
        let folder = sshd.path(&format!("spool-{}", source.name));
        assert_eq!(names(&folder).len(), 3, "nothing unfinished is left");
        let rights = std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777;
        assert_eq!(rights, 0o700);
        // A second time nothing comes that is known; a file that was written again does.
        let known: Vec<_> = came(&haul).iter().map(|file| file.seen.clone()).collect();
        let secrets = Secrets::default();
        let is_known = |seen: &_| known.contains(seen);
        let again = fetch(&source, &secrets, &spool, &is_known, &mut |_| true);
        assert_eq!(told(&again), ["known a.xml", "known b.xml", "known empty.xml"]);
        assert_eq!(again.visible.len(), 3);
        for file in came(&haul) {
            spool.forget(&file.sha256).unwrap();
            spool.forget(&file.sha256).unwrap();
        }
        assert_eq!(names(&folder), [""; 0]);
    }
}

#[test]
fn a_marker_or_a_second_look_says_that_a_file_is_whole() {
    let sshd = Sshd::plain();
    sshd.put("a.xml", "<a/>");
    sshd.put("b.xml", "<b/>");
    sshd.put("a.xml.done", "");
    sshd.put("c.xml.part", "<c");
    for source in both(&sshd, "ready = 'marker'\nmarker = '{name}.done'\n") {
        let haul = fetch_all(&source, &sshd.spool());
        let want = ["waiting b.xml: its marker file is not there", "fetched a.xml"];
        assert_eq!(told(&haul), want);
        assert_eq!(came(&haul)[0].marker.as_deref(), Some("a.xml.done"));
    }
    for mut source in both(&sshd, "ready = 'stable'\nglob = ['*.xml']\n") {
        source.stable_for = Duration::from_millis(200);
        let path = sshd.at("b.xml");
        let mut is_grown = false;
        let secrets = Secrets::default();
        let haul = fetch(&source, &secrets, &sshd.spool(), &|_| false, &mut |_| {
            if !is_grown {
                is_grown = true;
                let whole = std::fs::read_to_string(&path).unwrap();
                std::fs::write(&path, whole + "<more/>").unwrap();
            }
            true
        });
        let want = ["waiting b.xml: it was seen once, or is still growing", "fetched a.xml"];
        assert_eq!(told(&haul), want);
        // Where there is nothing new, nobody waits for a second look.
        source.stable_for = Duration::from_secs(600);
        let known = fetch(&source, &secrets, &sshd.spool(), &|_| true, &mut |_| true);
        assert_eq!(told(&known), ["known a.xml", "known b.xml"]);
    }
}

#[test]
fn what_is_no_file_or_has_an_odd_name_is_told_and_left_alone() {
    let sshd = Sshd::plain();
    std::fs::create_dir(sshd.at("folder")).unwrap();
    std::fs::create_dir(sshd.at("folder.xml")).unwrap();
    symlink("/etc/passwd", sshd.at("link.xml")).unwrap();
    symlink("nowhere", sshd.at("dangling.xml")).unwrap();
    let pipe = sshd.at("pipe.xml");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let odd: [&[u8]; 6] = [
        b"a\r\nb.xml",
        b"\xe2\x80\xaelmx.a",
        b"not utf-8 \xff.xml",
        b"a\\b.xml",
        b"\x1b[2J.xml",
        b"a\tb",
    ];
    for name in odd {
        let name = std::ffi::OsStr::from_bytes(name);
        std::fs::write(sshd.path("srv").join(name), "x").unwrap();
    }
    let long = format!("{}.xml", "x".repeat(251));
    for good in ["-rf.xml", "A.xml", "a.xml", "Überweisung 1.xml", "'; drop.xml", &long] {
        sshd.put(good, "x");
    }
    for source in both(&sshd, "") {
        let haul = fetch_all(&source, &sshd.spool());
        assert!(haul.ended.is_none(), "{:?}\n{}", haul.ended, sshd.log());
        let told = told(&haul);
        let refused: Vec<&String> = told.iter().filter(|one| one.starts_with("refused")).collect();
        assert_eq!(refused.len(), odd.len() + 3, "{told:#?}");
        for part in [
            "\"link.xml\": it is no regular file",
            "\"dangling.xml\": it is no regular file",
            "\"pipe.xml\": it is no regular file",
            "\"a\\r\\nb.xml\": its name holds characters that nobody sees",
            ".xml\": its name is not UTF-8",
            "\"a\\\\b.xml\": its name is a path",
        ] {
            assert!(refused.iter().any(|one| one.contains(part)), "{part}: {refused:#?}");
        }
        let fetched: Vec<&str> = came(&haul).iter().map(|file| file.seen.name.as_str()).collect();
        let want = ["'; drop.xml", "-rf.xml", "A.xml", "a.xml", &long, "Überweisung 1.xml"];
        assert_eq!(fetched, want);
        assert_eq!(names(&sshd.path("spool")).len(), 1, "one content, whatever its names");
    }
}

#[test]
fn files_are_put_away_after_the_commit_and_none_is_overwritten() {
    let sshd = Sshd::plain();
    for (at, source) in both(&sshd, "archive = 'done'\n").into_iter().enumerate() {
        let archive_to = sshd.at("done");
        let secrets = Secrets::default();
        let short = &sha256(b"<a/>")[..12];
        // The same bytes under the same name are sent twice; each is put away.
        for round in 0..2 {
            sshd.put("a.xml", "<a/>");
            sshd.put("b.xml", format!("<b{at}{round}/>"));
            let haul = fetch_all(&source, &sshd.spool());
            assert_eq!(told(&haul), ["fetched a.xml", "fetched b.xml"]);
            let files: Vec<Settled> = came(&haul).into_iter().map(Settled::from).collect();
            // Another file took the name of one that was fetched: it was never read.
            sshd.put("b.xml", "<other, longer/>");
            let failed = archive(&source, &secrets, &files).unwrap();
            let [(name, SourceError::Changed { .. })] = failed.as_slice() else {
                panic!("{failed:?}\n{}", sshd.log());
            };
            assert_eq!(name, "b.xml");
            assert!(sshd.at("b.xml").exists() && !sshd.at("a.xml").exists());
        }
        let want = [format!("a.xml.{short}"), format!("a.xml.{short}-2")];
        assert_eq!(names(&archive_to), want);
        std::fs::remove_dir_all(&archive_to).unwrap();
        std::fs::remove_file(sshd.at("b.xml")).unwrap();
    }
    // The marker goes with its file.
    for source in both(&sshd, "archive = 'done'\nready = 'marker'\nmarker = '{name}.ok'\n") {
        sshd.put("a.xml", "<a/>");
        sshd.put("a.xml.ok", "");
        let haul = fetch_all(&source, &sshd.spool());
        let files: Vec<Settled> = came(&haul).into_iter().map(Settled::from).collect();
        assert!(archive(&source, &Secrets::default(), &files).unwrap().is_empty());
        assert_eq!(names(&sshd.path("srv")), ["done"]);
        assert_eq!(names(&sshd.at("done")).len(), 2);
        std::fs::remove_dir_all(sshd.at("done")).unwrap();
    }
}

#[test]
fn a_file_is_put_away_on_another_disk() {
    let (inbox, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir_in("/dev/shm").unwrap());
    std::fs::create_dir(inbox.path().join("in")).unwrap();
    let device = |path: &Path| std::os::unix::fs::MetadataExt::dev(&path.metadata().unwrap());
    assert_ne!(device(inbox.path()), device(other.path()), "/dev/shm is no disk of its own");
    let from = inbox.path().join("in/a.xml");
    std::fs::write(&from, "some bytes").unwrap();
    let done = other.path().join("done");
    let text = format!(
        "name = 'inbox'\nkind = 'folder'\npath = 'in'\nready = 'rename'\narchive = '{}'\n",
        done.display()
    );
    let source = super::source(inbox.path(), &text);
    let spool = Spool::new(inbox.path().join("spool"));
    let haul = fetch(&source, &Secrets::default(), &spool, &|_| false, &mut |_| true);
    let files: Vec<Settled> = came(&haul).into_iter().map(Settled::from).collect();
    let failed = archive(&source, &Secrets::default(), &files).unwrap();
    assert!(failed.is_empty(), "{failed:?}");
    assert!(!from.exists());
    let short: String = files[0].sha256.chars().take(12).collect();
    assert_eq!(names(&done), [format!("a.xml.{short}")]);
}

#[test]
fn nothing_is_changed_where_no_archive_is_named_or_the_server_forbids_it() {
    let sshd = Sshd::start(Setup { sftp: "-R", ..Setup::default() });
    sshd.put("a.xml", "<a/>");
    let source = sshd.source("");
    let haul = fetch_all(&source, &sshd.spool());
    let files: Vec<Settled> = came(&haul).into_iter().map(Settled::from).collect();
    assert_eq!(files.len(), 1);
    assert!(archive(&source, &Secrets::default(), &files).unwrap().is_empty());
    let failed = archive(&sshd.source("archive = 'done'\n"), &Secrets::default(), &files).unwrap();
    let [(name, SourceError::Gone { problem, .. })] = failed.as_slice() else {
        panic!("{failed:?}\n{}", sshd.log());
    };
    assert_eq!((name.as_str(), problem.as_str()), ("a.xml", "permission denied"));
    assert_eq!(names(&sshd.path("srv")), ["a.xml"]);
}

#[test]
fn a_look_tells_what_is_there_and_fetches_nothing() {
    let sshd = Sshd::plain();
    sshd.put("a.xml", "<a/>");
    sshd.put("b.xml", "<b/>");
    let look = look(&sshd.source(""), &Secrets::default()).unwrap();
    let key = sshd.fingerprint("ed25519");
    let text = look.text();
    assert!(
        text.starts_with(&format!("host key {key} pinned, 2 files visible, newest 20")),
        "{text}"
    );
    assert!(!sshd.path("spool").exists());
    let mut shelf = open(&sshd.source(""), &Secrets::default()).unwrap();
    assert_eq!(shelf.stat("a.xml").unwrap().size, 4);
    assert!(matches!(shelf.stat("none.xml"), Err(SourceError::Gone { .. })));
}

#[test]
fn an_inbox_of_many_thousands_is_listed_whole() {
    let sshd = Sshd::plain();
    for at in 0..30_000 {
        std::fs::File::create(sshd.at(&format!("{at:06}.xml"))).unwrap();
    }
    for source in both(&sshd, "") {
        let look = look(&source, &Secrets::default()).unwrap();
        assert_eq!(look.newest().0, 30_000, "{}", sshd.log());
    }
}
