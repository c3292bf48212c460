//! `tieout sources` and the doctor's lines, of the built program.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::names;
use super::sshd::{Setup, Sshd};
use crate::support::golden::golden;
use crate::support::{events, tieout_bin};

/// A whole configuration with these sources.
pub fn configure(folder: &Path, sections: &str) {
    let base = include_str!("../../../fixtures/config/fine.toml");
    let sections: String = sections
        .split("\n\n")
        .map(|section| {
            format!("\n[[source]]\n{}\n", section.replace("[[expected]]", "[[source.expected]]"))
        })
        .collect();
    std::fs::write(folder.join("tieout.toml"), format!("{base}\n{sections}")).unwrap();
}

struct Ran {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Ran {
    fn events(&self) -> Vec<Value> {
        events::check(&self.stdout);
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn tieout(folder: &Path, words: &[&str]) -> Ran {
    ran(Command::new(tieout_bin()).args(words).current_dir(folder).env_clear())
}

fn ran(command: &mut Command) -> Ran {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran {
        code: output.status.code().unwrap(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// What differs from server to server, masked.
fn told(sshd: &Sshd, ran: &Ran) -> String {
    let text = format!("exit {}\n--- stdout\n{}--- stderr\n{}", ran.code, ran.stdout, ran.stderr);
    let fingerprint = regex::Regex::new("SHA256:[A-Za-z0-9+/]{43}").unwrap();
    let text = fingerprint.replace_all(&text, "SHA256:[fingerprint]").into_owned();
    let user = format!("{}@127", super::sshd::user());
    text.replace(&sshd.port.to_string(), "[port]")
        .replace(&user, "[user]@127")
        .replace(&format!("as {}", super::sshd::user()), "as [user]")
        .replace(&format!("{}/", sshd.path("").display().to_string().trim_end_matches('/')), "")
}

#[test]
fn sources_are_listed_without_asking_anybody() {
    let sshd = Sshd::plain();
    let expected = "[[expected]]\nname = 'STMT_%Y%m%d*.xml'\nby = '07:30'\n";
    let folder = "name = 'inbox'\nkind = 'folder'\npath = 'srv'\nready = 'marker'\n\
                  marker = '{name}.done'\narchive = 'done'\nformat = 'camt.053'\n";
    let sections = format!("{}glob = ['*.xml']\n{expected}\n\n{folder}", sshd.section(""));
    configure(&sshd.path(""), &sections);
    let ran = tieout(&sshd.path(""), &["sources", "list"]);
    golden("fixtures/cli", "sources_list", &told(&sshd, &ran));
    let events = tieout(&sshd.path(""), &["sources", "list", "--json"]).events();
    assert_eq!(events[0]["host_keys"][0], format!("{} (ssh-ed25519)", sshd.fingerprint("ed25519")));
    assert_eq!(events[1]["archive"], "done");
    assert!(!sshd.log().contains("Connection from"), "{}", sshd.log());
    configure(&sshd.path(""), "");
    let path = sshd.path("tieout.toml");
    std::fs::write(&path, include_str!("../../../fixtures/config/fine.toml")).unwrap();
    let none = tieout(&sshd.path(""), &["sources", "test"]);
    assert_eq!((none.code, none.stdout.as_str()), (0, "no [[source]] is configured\n"));
}

#[test]
fn a_test_tells_every_source_and_ends_by_the_worst() {
    let sshd = Sshd::plain();
    sshd.put("a.xml", "<a/>");
    sshd.put("b\u{1b}.xml", "<b/>");
    let closed = sshd.section("").replace("bank-a", "bank-b").replace("'client'", "'stranger'");
    sshd.keygen("ed25519", "stranger", "");
    let folder = "name = 'inbox'\nkind = 'folder'\npath = 'none'\n";
    configure(&sshd.path(""), &format!("{}\n\n{closed}\n\n{folder}", sshd.section("")));
    let ran = tieout(&sshd.path(""), &["sources", "test"]);
    let date = regex::Regex::new(r"20\d\d-\d\d-\d\dT[\d:]+Z").unwrap();
    golden("fixtures/cli", "sources_test", &date.replace_all(&told(&sshd, &ran), "[time]"));
    assert_eq!(ran.code, 12);
    let json = tieout(&sshd.path(""), &["sources", "test", "--json"]);
    let events = json.events();
    assert_eq!(events[0]["files"], 1);
    assert_eq!(events[0]["refused"][0]["name"], "b\u{1b}.xml");
    assert_eq!((&events[1]["exit"], &events[1]["class"]), (&12.into(), &"auth".into()));
    assert_eq!(events[2]["state"], "failed");
    let one = tieout(&sshd.path(""), &["sources", "test", "bank-a", "--quiet"]);
    assert_eq!((one.code, one.stdout.as_str(), one.stderr.as_str()), (0, "", ""));
    let wrong = tieout(&sshd.path(""), &["sources", "test", "bank-c"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("did you mean `bank-"), "{}", wrong.stderr);
    assert_eq!(names(&sshd.path("srv")).len(), 2);
    assert!(!sshd.path("spool").exists());
    // Where what is fetched has no place.
    let spool = || {
        let events = tieout(&sshd.path(""), &["doctor", "--json"]).events();
        let of_spool = |event: &&serde_json::Value| event["code"] == "spool";
        events.iter().filter(of_spool).map(|event| event["state"].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(spool(), Vec::<String>::new());
    std::fs::write(sshd.path("spool"), "").unwrap();
    assert_eq!(spool(), ["\"fail\""]);
}

#[test]
fn a_key_is_trusted_by_a_person_alone() {
    let sshd = Sshd::start(Setup { host_keys: &["ed25519", "rsa"], ..Setup::default() });
    sshd.put("a.xml", "<a/>");
    configure(&sshd.path(""), &sshd.section(""));
    let file = sshd.path("known_hosts");
    std::fs::remove_file(&file).unwrap();
    let folder = sshd.path("");
    let run = |words: &[&str]| tieout(&folder, words);
    let unknown = run(&["sources", "test"]);
    assert_eq!(unknown.code, 13, "{}", unknown.stderr);
    golden("fixtures/cli", "sources_unknown_key", &told(&sshd, &unknown));
    // Nobody is asked where there is no terminal, and nothing is trusted.
    let alone = run(&["sources", "trust", "bank-a"]);
    assert_eq!((alone.code, file.exists()), (2, false), "{}", alone.stderr);
    let strange = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let wrong = run(&["sources", "trust", "bank-a", "--fingerprint", strange]);
    assert_eq!((wrong.code, file.exists()), (13, false), "{}", wrong.stderr);
    let odd = run(&["sources", "trust", "bank-a", "--fingerprint", "ab:cd"]);
    assert_eq!((odd.code, file.exists()), (2, false), "{}", odd.stderr);
    let rsa = sshd.fingerprint("rsa");
    let trusted = run(&["sources", "trust", "bank-a", "--fingerprint", &rsa]);
    golden("fixtures/cli", "sources_trust", &told(&sshd, &trusted));
    assert_eq!(run(&["sources", "test"]).code, 0);
    let text = std::fs::read_to_string(&file).unwrap();
    let again = run(&["sources", "trust", "bank-a", "--yes", "--json"]);
    assert_eq!((again.code, &again.events()[0]["changed"]), (0, &Value::Bool(false)));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn a_changed_key_is_never_trusted_without_comparing() {
    let mut sshd = Sshd::start(Setup { host_keys: &["rsa"], ..Setup::default() });
    configure(&sshd.path(""), &sshd.section(""));
    sshd.restart(Setup { host_keys: &["ed25519"], ..Setup::default() });
    let folder = sshd.path("");
    let run = |words: &[&str]| tieout(&folder, words);
    let changed = run(&["sources", "test"]);
    assert_eq!(changed.code, 13);
    golden("fixtures/cli", "sources_changed_key", &told(&sshd, &changed));
    let before = std::fs::read_to_string(sshd.path("known_hosts")).unwrap();
    let yes = run(&["sources", "trust", "bank-a", "--yes"]);
    assert_eq!(yes.code, 13, "{}", yes.stderr);
    assert_eq!(std::fs::read_to_string(sshd.path("known_hosts")).unwrap(), before);
    let own = sshd.fingerprint("ed25519");
    let trusted = run(&["sources", "trust", "bank-a", "--fingerprint", &own]);
    assert_eq!(trusted.code, 0, "{}", trusted.stderr);
    // Whoever holds the old key is still taken for the server.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = words(&trusted.stdout);
    assert!(said.contains("(ssh-rsa) is still trusted"), "{said}");
    assert!(said.contains("take line 1 out of"), "{said}");
    let again = words(&run(&["sources", "trust", "bank-a", "--fingerprint", &own]).stdout);
    assert!(again.contains("is still trusted"), "{again}");
    let text = std::fs::read_to_string(sshd.path("known_hosts")).unwrap();
    let rest: String = text.lines().skip(1).map(|line| format!("{line}\n")).collect();
    std::fs::write(sshd.path("known_hosts"), rest).unwrap();
    let alone = words(&run(&["sources", "trust", "bank-a", "--fingerprint", &own]).stdout);
    assert!(alone.contains("trusted already") && !alone.contains("is still trusted"), "{alone}");
    assert_eq!(run(&["sources", "test"]).code, 0);
    // A revoked one is trusted by nobody.
    let revoked = format!("@revoked * {}\n", sshd.host_key("ed25519"));
    std::fs::write(sshd.path("known_hosts"), &revoked).unwrap();
    let refused = run(&["sources", "trust", "bank-a", "--fingerprint", &own]);
    assert_eq!(refused.code, 13, "{}", refused.stderr);
    assert_eq!(std::fs::read_to_string(sshd.path("known_hosts")).unwrap(), revoked);
    // Where the configuration names fingerprints, a file would change nothing.
    std::fs::write(sshd.path("known_hosts"), "").unwrap();
    let strange = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    configure(&folder, &sshd.section(&format!("host_key = ['{strange}']\n")));
    let pinned = run(&["sources", "trust", "bank-a", "--fingerprint", &own]);
    assert_eq!(pinned.code, 10, "{}", pinned.stderr);
    assert!(pinned.stderr.contains(&format!("add \"{own}\" to it")), "{}", pinned.stderr);
}

/// What a source that answers shows, and no run makes anything of.
#[test]
fn the_doctor_tells_what_lies_there_and_is_never_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = folder.path().join("in");
    std::fs::create_dir(&inbox).unwrap();
    let of =
        |name: &str, more: &str| format!("name = '{name}'\nkind = 'folder'\npath = 'in'\n{more}");
    let found = |sections: &str| {
        configure(folder.path(), sections);
        let events = tieout(folder.path(), &["doctor", "--json"]).events();
        let own = ["glob_none", "names_refused", "files_waiting", "archive"];
        let text =
            |event: &serde_json::Value, of: &str| event[of].as_str().unwrap_or("").to_owned();
        let own = events.iter().filter(|event| own.contains(&text(event, "code").as_str()));
        own.map(|event| (text(event, "code"), text(event, "text"))).collect::<Vec<_>>()
    };
    let fine = of("a", "glob = ['*.xml']\narchive = 'done'\n");
    assert_eq!(found(&fine), [], "an empty inbox is no mistake");
    std::fs::write(inbox.join("a.xml"), "<a/>").unwrap();
    assert_eq!(found(&fine), []);
    let none = found(&of("a", "glob = ['*.XML', '[ab].xml']\n"));
    let says = "none of its 1 file fits `glob` (*.XML, [ab].xml), such as a.xml: nothing is ever";
    assert!(matches!(none.as_slice(), [(_, text)] if text.starts_with(says)), "{none:?}");
    let test = tieout(folder.path(), &["sources", "test"]).stdout;
    let says = "    unwanted 1 file there, such as a.xml: no `glob` (*.XML [ab].xml) fits\n";
    assert!(test.contains(says), "{test}");
    // A marker that never comes.
    let marked = of("a", "ready = 'marker'\nmarker = '{stem}.ok'\n");
    assert_eq!(found(&marked), [], "it may come yet");
    let file = std::fs::File::options().write(true).open(inbox.join("a.xml")).unwrap();
    let day = std::time::Duration::from_secs(25 * 3_600);
    file.set_modified(std::time::SystemTime::now() - day).unwrap();
    let waits = found(&marked);
    let says = "1 file waits for more than a day: a.xml: its marker file is not there";
    assert!(matches!(waits.as_slice(), [(_, text)] if text == says), "{waits:?}");
    std::fs::write(inbox.join("done"), "").unwrap();
    std::os::unix::fs::symlink("a.xml", inbox.join("b.xml")).unwrap();
    let codes: Vec<String> = found(&fine).into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, ["names_refused", "archive"]);
}

/// The codes and texts of the doctor's lines of these codes.
fn doctor_of(ran: &Ran, codes: &[&str]) -> Vec<(String, String)> {
    let text = |event: &Value, of: &str| event[of].as_str().unwrap_or("").to_owned();
    let events = ran.events().into_iter();
    let own = events.map(|event| (text(&event, "code"), text(&event, "text")));
    own.filter(|(code, _)| codes.contains(&code.as_str())).collect()
}

/// What each run would end with 3 for: a file that cannot be opened, an archive that cannot be
/// filled.
#[test]
fn the_doctor_tries_what_a_run_would_do_at_a_server() {
    let sshd = Sshd::plain();
    sshd.put("a.xml", "<a/>");
    sshd.put("b.xml", "<b/>");
    let rights = |name: &str, mode: u32| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(sshd.at(name), mode).unwrap();
    };
    let found = |more: &str| {
        configure(&sshd.path(""), &sshd.section(more));
        let ran = tieout(&sshd.path(""), &["doctor", "--json"]);
        doctor_of(&ran, &["files_unreadable", "archive"])
    };
    for fine in ["", "archive = 'x/y'\n", "archive = '..'\n"] {
        assert_eq!(found(fine), [], "{fine}");
    }
    rights("b.xml", 0o000);
    let one = found("");
    let says = "1 file cannot be opened, and each run ends with 3: b.xml: opening ./b.xml at 127";
    assert!(matches!(one.as_slice(), [(_, text)] if text.starts_with(says)), "{one:?}");
    let test = tieout(&sshd.path(""), &["sources", "test", "--json"]).events();
    assert_eq!(test[0]["ready"], serde_json::json!(["a.xml"]));
    assert_eq!(test[0]["refused"][0]["name"], "b.xml");
    assert_eq!(test[0]["archive_problem"], Value::Null);
    rights("b.xml", 0o644);
    std::fs::create_dir(sshd.at("shut")).unwrap();
    rights("shut", 0o555);
    std::os::unix::fs::symlink(".", sshd.at("here")).unwrap();
    let whole = format!("archive = '{}'\n", sshd.at("here").display());
    for (more, says) in [
        ("archive = 'a.xml'\n", "./a.xml is no folder"),
        ("archive = 'a.xml/x'\n", "is no folder"),
        ("archive = 'shut'\n", "nobody may write to ./shut"),
        ("archive = 'shut/x'\n", "nobody may write to ./shut"),
        ("archive = 'here'\n", "it is the source's own folder"),
        (&whole, "it is the source's own folder"),
    ] {
        let one = found(more);
        assert!(matches!(one.as_slice(), [(_, text)] if text.contains(says)), "{more}: {one:?}");
        let test = tieout(&sshd.path(""), &["sources", "test"]).stdout;
        assert!(test.contains("    archive  archiving to "), "{more}: {test}");
    }
    assert_eq!(names(&sshd.path("srv")), ["a.xml", "b.xml", "here", "shut"]);
}

/// The program, held to the rights of files, which root is not.
fn held_to_rights(folder: &Path, words: &[&str]) -> Ran {
    if !rustix::process::getuid().is_root() {
        return tieout(folder, words);
    }
    let mut command = Command::new("setpriv");
    command.arg("--bounding-set=-dac_override,-dac_read_search").arg(tieout_bin()).args(words);
    ran(command.current_dir(folder).env_clear())
}

#[test]
fn the_doctor_tries_what_a_run_would_do_in_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = folder.path().join("in");
    std::fs::create_dir_all(inbox.join("done")).unwrap();
    std::fs::write(inbox.join("a.xml"), "<a/>").unwrap();
    let rights = |name: &str, mode: u32| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(inbox.join(name), mode).unwrap();
    };
    let found = |more: &str| {
        let text = format!("name = 'a'\nkind = 'folder'\npath = 'in'\nready = 'rename'\n{more}");
        configure(folder.path(), &text);
        let ran = held_to_rights(folder.path(), &["doctor", "--json"]);
        let found = doctor_of(&ran, &["files_unreadable", "archive"]);
        found.into_iter().map(|(code, _)| code).collect::<Vec<_>>()
    };
    assert_eq!(found("archive = 'done'\n"), [""; 0]);
    assert_eq!(found("archive = 'new/x'\n"), [""; 0]);
    rights("a.xml", 0o000);
    assert_eq!(found(""), ["files_unreadable"]);
    rights("a.xml", 0o644);
    rights("done", 0o555);
    assert_eq!(found("archive = 'done'\n"), ["archive"]);
    assert_eq!(found("archive = 'done/x'\n"), ["archive"]);
    assert_eq!(found("archive = 'a.xml/x'\n"), ["archive"]);
    rights("done", 0o755);
    // A file cannot leave a folder that may not be written.
    rights("", 0o555);
    assert_eq!(found("archive = 'done'\n"), ["archive"]);
    rights("", 0o755);
    assert_eq!(names(&inbox), ["a.xml", "done"]);
}

/// One look cannot tell a file that is whole from one that grows.
#[test]
fn a_test_looks_again_where_a_file_was_written_just_now() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = folder.path().join("in");
    std::fs::create_dir(&inbox).unwrap();
    let source = |secs: u32| {
        let text = format!("name = 'a'\nkind = 'folder'\npath = 'in'\nstable_for = '{secs}s'\n");
        configure(folder.path(), &text);
    };
    source(2);
    for name in ["a.xml", "b.xml"] {
        std::fs::write(inbox.join(name), "<a").unwrap();
    }
    let grows = inbox.join("a.xml");
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let writer = std::thread::spawn(move || {
        let mut file = std::fs::File::options().append(true).open(grows).unwrap();
        while ended.try_recv().is_err() {
            std::io::Write::write_all(&mut file, b"a").unwrap();
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    });
    let test = tieout(folder.path(), &["sources", "test"]);
    let says = "a: a file was written just now: looking again in 2 s";
    assert!(test.stderr.contains(says), "{}", test.stderr);
    let test = tieout(folder.path(), &["sources", "test", "--json"]);
    end.send(()).unwrap();
    writer.join().unwrap();
    assert_eq!(test.events()[0]["ready"], serde_json::json!(["b.xml"]));
    assert_eq!(test.events()[0]["waiting"][0]["name"], "a.xml");
    assert_eq!(test.stderr, "");
    // What nobody has touched for long does not grow: nobody waits ten minutes to be told.
    source(600);
    for name in ["a.xml", "b.xml"] {
        let file = std::fs::File::options().write(true).open(inbox.join(name)).unwrap();
        let hours = std::time::Duration::from_secs(2 * 3_600);
        file.set_modified(std::time::SystemTime::now() - hours).unwrap();
    }
    let test = tieout(folder.path(), &["sources", "test", "--json"]).events();
    assert_eq!(test[0]["ready"], serde_json::json!(["a.xml", "b.xml"]));
}

#[test]
fn the_doctor_looks_at_every_source() {
    let sshd = Sshd::plain();
    sshd.put("a.xml", "<a/>");
    let expected = "[[expected]]\nname = 'STMT_%Y%m%d*.xml'\nby = '07:30'\n";
    let strange = sshd.section("").replace("bank-a", "bank-b");
    let strange = format!("{strange}known_hosts = 'none'\n");
    configure(&sshd.path(""), &format!("{}{expected}\n\n{strange}", sshd.section("")));
    let checks = |code: &str| -> Vec<(String, String, String)> {
        let ran = tieout(&sshd.path(""), &["doctor", "--json"]);
        let text = |event: &Value, name: &str| event[name].as_str().unwrap_or("").to_owned();
        let events = ran.events().into_iter().filter(|event| event["code"] == code);
        events.map(|e| (text(&e, "what"), text(&e, "state"), text(&e, "text"))).collect()
    };
    let sources = checks("source");
    let states: Vec<(&str, &str)> =
        sources.iter().map(|(what, state, _)| (what.as_str(), state.as_str())).collect();
    assert_eq!(states, [("bank-a sftp", "ok"), ("bank-b sftp", "fail")]);
    let own = format!("host key {} pinned, 1 file visible, newest ", sshd.fingerprint("ed25519"));
    assert!(sources[0].2.starts_with(&own), "{sources:?}");
    assert!(sources[1].2.contains("nothing is known yet of 127.0.0.1"), "{sources:?}");
    let unexpected = checks("no_expected");
    assert_eq!(unexpected.len(), 1);
    assert_eq!(unexpected[0].0, "bank-b sftp");
    assert_eq!(checks("glob_expected"), []);
    assert_eq!(checks("key_open"), []);
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(sshd.path("client"), open).unwrap();
    assert_eq!(checks("key_open").len(), 2);
    std::fs::write(sshd.path("known_hosts"), "garbage\n").unwrap();
    assert_eq!(checks("known_hosts")[0].0, "bank-a sftp");
    std::fs::write(sshd.path("known_hosts"), "@revoked * ssh-ed25519 !!\n").unwrap();
    let (_, state, text) = &checks("source")[0];
    assert!(state == "fail" && text.contains(":1 may revoke a key of 127.0.0.1"), "{text}");
    assert_eq!(checks("known_hosts"), []);
    let section = sshd.section("glob = ['*.csv', 'a_*']\n");
    configure(&sshd.path(""), &format!("{section}{expected}"));
    let text = "no pattern of its `glob` (*.csv, a_*) fits the expected STMT_%Y%m%d*.xml";
    assert!(checks("glob_expected")[0].2.starts_with(text), "{:?}", checks("glob_expected"));
    assert!(!sshd.path("spool").exists());
}

#[test]
fn a_test_tells_which_lines_of_known_hosts_it_cannot_read() {
    let sshd = Sshd::plain();
    configure(&sshd.path(""), &sshd.section(""));
    let known = std::fs::read_to_string(sshd.path("known_hosts")).unwrap();
    std::fs::write(sshd.path("known_hosts"), format!("{known}garbage\n")).unwrap();
    let ran = tieout(&sshd.path(""), &["sources", "test"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let says = "known_hosts:2 cannot be read, and says nothing then: key type: expected";
    assert!(ran.stderr.contains(says), "{}", ran.stderr);
}
