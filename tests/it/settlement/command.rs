//! `tieout files inspect`, from outside.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::golden::golden;
use crate::support::{events, tieout_bin};

/// Runs in the folder of the fixtures, with nothing of tieout in the environment.
fn inspect(words: &[&str]) -> (i32, String, String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/settlement");
    let mut command = Command::new(tieout_bin());
    command.args(["files", "inspect"]).args(words).current_dir(folder).env_clear();
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn events_of(words: &[&str]) -> (i32, Vec<Value>) {
    let (exit, stdout, _) = inspect(&[words, &["--json"]].concat());
    events::check(&stdout);
    (exit, stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[test]
fn people_read_what_it_is_and_whether_it_ties() {
    let (exit, stdout, stderr) = inspect(&["mt940_de.sta", "camt053_v08.xml", "pain002.xml"]);
    assert_eq!((exit, stderr.as_str()), (0, ""));
    golden("fixtures/cli", "files_inspect", &stdout);
    assert!(stdout.lines().all(|line| line.chars().count() <= 80), "{stdout}");
}

#[test]
fn where_it_does_not_tie_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("edited.sta");
    let good = String::from_utf8(super::fixture("mt940_nl.sta")).unwrap();
    std::fs::write(&path, good.replace("1119D25,00", "1119D52,00")).unwrap();
    let path = path.to_str().unwrap();
    let (exit, stdout, _) = inspect(&[path]);
    assert_eq!(exit, 3);
    golden("fixtures/cli", "files_inspect_untied", &stdout.replace(path, "edited.sta"));
    let (exit, events) = events_of(&[path]);
    assert_eq!((exit, events.len()), (3, 1));
    let event = &events[0];
    assert_eq!(event["state"], "quarantined");
    assert_eq!(event["entries"], 2);
    assert_eq!(event["totals"]["EUR"]["debit_minor"], 5_200);
    assert_eq!(event["statements"][0]["ties"], false);
    assert_eq!(event["statements"][1]["ties"], true);
    assert_eq!(event["problems"][0]["line"], 13);
}

#[test]
fn no_file_steers_the_terminal_that_it_is_shown_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sent\u{202e}ats.sta");
    let good = String::from_utf8(super::fixture("mt940_nl.sta")).unwrap();
    let hostile = good.replacen(":25:", ":25:\u{1b}[2J\u{1b}]0;ok\u{7}", 1);
    assert_ne!(hostile, good);
    std::fs::write(&path, hostile).unwrap();
    let path = path.to_str().unwrap();
    let (_, stdout, stderr) = inspect(&[path]);
    for shown in [&stdout, &stderr] {
        let raw = shown.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert_eq!(raw, None, "{shown}");
    }
    assert!(stdout.contains("sent\\u202eats.sta"), "{stdout}");
    let (_, events) = events_of(&[path]);
    assert_eq!(events[0]["file"], path);
}

#[test]
fn each_file_is_an_object() {
    let (exit, events) = events_of(&super::FIXTURES);
    assert_eq!((exit, events.len()), (0, super::FIXTURES.len()));
    let of = |name: &str| events.iter().find(|event| event["file"] == name).unwrap();
    let camt = of("camt053_v02.xml");
    assert_eq!(
        (&camt["format"], &camt["version"]),
        (&"camt.053".into(), &"camt.053.001.02".into())
    );
    assert_eq!((&camt["entries"], &camt["lines"]), (&3.into(), &4.into()));
    assert_eq!(camt["references"]["end_to_end_id"], 3);
    assert_eq!(camt["statements"][0]["opening_minor"], 100_000);
    assert_eq!(of("pain002.xml")["totals"], serde_json::json!({}));
}

#[test]
fn one_file_that_cannot_be_read_stops_no_other() {
    let (exit, stdout, stderr) = inspect(&["nowhere.xml", "camt054.xml", "--json"]);
    let events: Vec<Value> = stdout.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!((exit, events.len()), (3, 2));
    assert_eq!((&events[0]["state"], &events[1]["state"]), (&"unreadable".into(), &"ok".into()));
    assert!(stderr.contains("nowhere.xml cannot be read: No such file"), "{stderr}");
    let (exit, stdout, _) = inspect(&["told"]);
    assert_eq!((exit, stdout.as_str()), (3, ""), "a folder is no file");
    let (exit, events) = events_of(&["told/nacha.txt"]);
    assert_eq!((exit, &events[0]["state"]), (3, &"unknown_format".into()));
}

#[test]
fn what_holds_nothing_and_what_is_no_file_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.sta");
    std::fs::write(&empty, "").unwrap();
    let (exit, stdout, _) = inspect(&[empty.to_str().unwrap()]);
    assert!(exit == 3 && stdout.contains("it is empty"), "{exit} {stdout}");
    let broken = folder.path().join("a\nb.sta");
    std::fs::write(&broken, "").unwrap();
    let (_, stdout, _) = inspect(&[broken.to_str().unwrap()]);
    assert!(stdout.lines().next().unwrap().ends_with("a\\nb.sta"), "{stdout}");
    let nowhere = folder.path().join("c\nd.sta");
    let (_, _, stderr) = inspect(&[nowhere.to_str().unwrap()]);
    assert!(stderr.lines().next().unwrap().contains("c\\nd.sta"), "{stderr}");
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Nobody writes to it: to open it would wait for ever.
    let (exit, _, stderr) = inspect(&[pipe.to_str().unwrap()]);
    assert!(exit == 3 && stderr.contains("a pipe or a device"), "{exit} {stderr}");
}

#[test]
fn quiet_says_what_is_wrong_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("edited.sta");
    let good = String::from_utf8(super::fixture("mt940_nl.sta")).unwrap();
    std::fs::write(&path, good.replace("1119D25,00", "1119D52,00")).unwrap();
    let path = path.to_str().unwrap();
    let (exit, stdout, _) = inspect(&["-q", "mt940_nl.sta", path]);
    assert_eq!(exit, 3);
    let wants = ["edited.sta", "quarantined", "line 13: closing balance: expected 475.75 EUR"];
    assert!(wants.iter().all(|want| stdout.contains(want)), "{stdout}");
    assert!(!stdout.contains("mt940_nl.sta") && !stdout.contains("entries, "), "{stdout}");
    let (exit, stdout, _) = inspect(&["-q", "told/nacha.txt"]);
    assert!(exit == 3 && stdout.contains("no format that is read here"), "{exit} {stdout}");
    assert_eq!(inspect(&["-q", "mt940_nl.sta"]), (0, String::new(), String::new()));
}

#[test]
fn an_encoding_that_is_none_is_a_usage_error() {
    let (exit, stdout, stderr) = inspect(&["--encoding", "klingon", "mt940_nl.sta"]);
    assert_eq!((exit, stdout.as_str()), (2, ""));
    assert!(stderr.contains("--encoding `klingon` is no encoding"), "{stderr}");
    assert_eq!(inspect(&["--encoding", "windows-1252", "mt940_nl.sta"]).0, 0);
}

#[test]
fn a_person_says_the_currency_of_a_file_that_names_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bank.csv");
    std::fs::write(&file, "Date,Text,Debit,Credit\n2026-11-18,a,,1000\n2026-11-19,b,250,\n")
        .unwrap();
    let file = file.to_str().unwrap();
    let (exit, stdout, _) = inspect(&[file]);
    let said = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(exit == 3 && said.contains("or --currency CODE, which `currency` of a"), "{said}");
    for (code, credits) in [("gbp", 100_000), ("JPY", 1_000), ("BHD", 1_000_000)] {
        let (exit, events) = events_of(&["--currency", code, file]);
        let code = code.to_uppercase();
        assert_eq!((exit, &events[0]["format"]), (0, &"bank_csv".into()));
        assert_eq!(events[0]["version"], code.as_str(), "as what it was read");
        assert_eq!(events[0]["totals"][&code]["credit_minor"], credits);
    }
    // What the file names counts.
    let named =
        std::fs::read_to_string(file).unwrap().replace("Debit,Credit", "Debit EUR,Credit EUR");
    std::fs::write(file, named).unwrap();
    let (exit, events) = events_of(&["--currency", "GBP", file]);
    assert_eq!((exit, &events[0]["version"]), (0, &serde_json::Value::Null));
    assert_eq!(events[0]["totals"]["EUR"]["debit_minor"], 25_000);
    let (exit, stdout, stderr) = inspect(&["--currency", "XQX", file]);
    assert_eq!((exit, stdout.as_str()), (2, ""));
    assert!(
        stderr.contains("--currency: `XQX` is not an ISO 4217") && stderr.contains("as EUR"),
        "{stderr}"
    );
}

#[test]
fn a_format_can_be_named() {
    let (exit, _, stderr) = inspect(&["--format", "ofx", "camt054.xml"]);
    assert_eq!(exit, 2);
    assert!(stderr.contains("hint: one of: camt.052, camt.053"), "{stderr}");
    let (exit, events) = events_of(&["--format", "bai2", "camt054.xml"]);
    assert_eq!((exit, &events[0]["format"]), (3, &"bai2".into()));
    assert_eq!(events[0]["state"], "quarantined");
}

#[test]
fn what_is_no_settlement_file_is_told_by_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let space = "urn:iso:std:iso:20022:tech:xsd:pain.001.001.09";
    for (text, part) in [
        (&*format!("<?xml version=\"1.0\"?>\n<Document xmlns=\"{space}\"/>"), "pain.001, orders"),
        ("<!DOCTYPE html>\n<html><body>Login</body></html>", "an HTML page"),
        ("<html lang=\"de\"></html>", "an HTML page"),
        ("<Statement xmlns=\"urn:x\"><a/></Statement>", "first element is <Statement> of urn:x"),
        ("{\"data\": []}", "JSON"),
        ("[]", "JSON"),
        ("OFXHEADER:100\nDATA:OFXSGML\n", "OFX"),
        (":20:X\n:32A:260101EUR1,00\n", "none of MT940, MT942"),
        ("\n0740000000000000026ACCOUNT 01\n", "text that begins with `0740000000"),
        ("a\tb\tc\n1\t2\t3\n", "by tabs: a | b | c"),
    ] {
        let path = folder.path().join("file");
        std::fs::write(&path, text).unwrap();
        let (exit, events) = events_of(&[path.to_str().unwrap()]);
        assert_eq!((exit, &events[0]["state"]), (3, &"unknown_format".into()), "{text}");
        let problems = events[0]["problems"].as_array().unwrap();
        assert_eq!(problems.len(), 1, "{text}");
        let found = problems[0]["found"].as_str().unwrap();
        assert!(found.contains(part) && !found.contains('\t'), "{found}");
        assert_ne!(problems[0]["expected"], "", "{text}");
    }
}
