//! The program from outside: exit code, stdout and stderr of the built binary, held against the
//! golden texts of `fixtures/cli`. `TIEOUT_BLESS=1` writes them anew; read the diff.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::golden::golden;
use crate::support::{events, tieout_bin};

/// Runs the program on words in an empty folder with nothing of tieout in its environment.
fn tieout(folder: &Path, words: &[&str], env: &[(&str, &str)]) -> String {
    let mut command = Command::new(tieout_bin());
    command.args(words).current_dir(folder).env_clear().envs(env.iter().copied());
    let output = command.output().expect("the built program starts");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    if words.contains(&"--json") && !words.contains(&"--help") {
        events::check(&text(&output.stdout));
    }
    let lines = |text: String| text.lines().map(|line| format!("{line}\n")).collect::<String>();
    format!(
        "exit {}\n--- stdout\n{}--- stderr\n{}",
        output.status.code().expect("an exit code"),
        lines(text(&output.stdout)),
        lines(text(&output.stderr))
    )
}

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/config").join(name);
    std::fs::read_to_string(path).unwrap()
}

fn folder_with(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tieout.toml"), fixture(name)).unwrap();
    let path = folder.path().to_owned();
    (folder, path)
}

#[test]
fn the_version_is_told_to_people_and_machines() {
    let folder = tempfile::tempdir().unwrap();
    golden("fixtures/cli", "version", &tieout(folder.path(), &["version"], &[]));
    let json = tieout(folder.path(), &["version", "--json"], &[]);
    assert!(json.starts_with("exit 0\n--- stdout\n{\"schema\":\"tieout/1\","), "{json}");
}

#[test]
fn help_may_be_asked_for_by_its_word() {
    let folder = tempfile::tempdir().unwrap();
    for words in [&[][..], &["run"], &["cases", "show"]] {
        let asked = tieout(folder.path(), &[&["help"], words].concat(), &[]);
        assert_eq!(asked, tieout(folder.path(), &[words, &["--help"]].concat(), &[]), "{words:?}");
        assert!(asked.starts_with("exit 0\n"), "{asked}");
    }
    let unknown = tieout(folder.path(), &["help", "nonsense"], &[]);
    assert!(unknown.starts_with("exit 2\n"), "{unknown}");
}

#[test]
fn help_fits_eighty_columns_and_shows_examples() {
    let folder = tempfile::tempdir().unwrap();
    let mut commands = vec![(Vec::<String>::new(), tieout::cli::command())];
    let mut count = 0;
    while let Some((words, command)) = commands.pop() {
        for inner in command.get_subcommands() {
            let words = words.iter().cloned().chain([inner.get_name().to_owned()]).collect();
            commands.push((words, inner.clone()));
        }
        let given: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
        let text = tieout(folder.path(), &given, &[]);
        assert!(text.starts_with("exit 0\n"), "{words:?}: {text}");
        let example = format!("\nExamples:\n  tieout {}", words.join(" "));
        let is_shown = text.contains(example.trim_end());
        assert!(is_shown, "{words:?} shows no example of itself: {text}");
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{words:?}: {line}");
        }
        count += 1;
    }
    assert!(count >= 30, "{count}");
}

fn made(words: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let text = tieout(folder.path(), words, &[]);
    assert!(text.starts_with("exit 0\n"), "{words:?}: {text}");
    text
}

/// Every command and every flag stands in what is generated from them.
#[test]
fn man_pages_and_completions_know_every_command_and_flag() {
    let folder = tempfile::tempdir().unwrap();
    // As on a fresh machine: nobody made the folder.
    let dir = folder.path().join("share/man1");
    let pages = dir.display().to_string();
    made(&["generate", "man", "--dir", &pages]);
    let shells = ["bash", "zsh", "fish", "powershell"].map(|kind| made(&["generate", kind]));
    let all = made(&["generate", "man"]);
    let mut command = tieout::cli::command();
    command.build();
    let mut commands = vec![(vec!["tieout".to_owned()], command)];
    let mut flags = 0;
    while let Some((names, command)) = commands.pop() {
        for inner in command.get_subcommands() {
            let names = names.iter().cloned().chain([inner.get_name().to_owned()]).collect();
            commands.push((names, inner.clone()));
        }
        let name = command.get_name();
        let file = dir.join(format!("{}.1", names.join("-")));
        let page = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{file:?}: {e}"));
        assert!(all.contains(page.trim_end()), "{names:?} is not among the printed pages");
        for shell in &shells {
            assert!(shell.contains(name), "{names:?}: no completion");
        }
        for flag in command.get_arguments().filter_map(|arg| arg.get_long()) {
            let escaped = flag.replace('-', "\\-");
            assert!(page.contains(&format!("\\-\\-{escaped}")), "{names:?} --{flag}: {page}");
            for (at, shell) in shells.iter().enumerate() {
                // fish names a long flag without its dashes.
                let shown = if at == 2 { format!("-l {flag}") } else { format!("--{flag}") };
                assert!(shell.contains(&shown), "{names:?} --{flag}: shell {at}");
            }
            flags += 1;
        }
    }
    assert!(flags > 200, "{flags}");
}

/// Help is written before the words are read; a terminal is not needed to be asked for colours.
#[test]
fn help_heeds_that_no_colours_are_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let forced = ("CLICOLOR_FORCE", "1");
    for (words, variable, is_coloured) in [
        (&["--help"][..], ("TIEOUT_NO_COLOR", ""), true),
        (&["run", "--help"], ("TIEOUT_NO_COLOR", "0"), true),
        (&["--help"], ("TIEOUT_NO_COLOR", "1"), false),
        (&["run", "--help"], ("TIEOUT_NO_COLOR", "yes"), false),
        (&["--no-color", "--help"], ("TIEOUT_NO_COLOR", ""), false),
        (&["run", "--help", "--no-color"], ("TIEOUT_NO_COLOR", ""), false),
    ] {
        let text = tieout(folder.path(), words, &[forced, variable]);
        assert_eq!(text.contains('\u{1b}'), is_coloured, "{words:?} {variable:?}: {text}");
    }
}

/// A page says what `--help` says: how it is called, by which variable, and the examples.
#[test]
fn a_man_page_has_what_the_help_has() {
    let text = made(&["generate", "man"]);
    assert!(!text.contains(".SH EXTRA"), "a section of the library's");
    let (_, page) = text.split_once(".TH tieout-db-prune 1").unwrap();
    let (page, _) = page.split_once(".TH ").unwrap();
    let synopsis = ".SH SYNOPSIS\n\\fBtieout db prune\\fR [OPTIONS] \\-\\-keep <SPAN>\n";
    assert!(page.contains(synopsis), "{page}");
    assert!(page.contains("\\fBTIEOUT_PRUNE_KEEP\\fR"), "{page}");
    assert!(page.contains(".SH EXAMPLES\n  tieout db prune"), "{page}");
}

#[test]
fn shells_complete_the_words_of_fail_on() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let text = made(&["generate", shell]);
        assert!(text.contains("duplicates"), "{shell}");
    }
    let (_keep, folder) = folder_with("fine.toml");
    let text = tieout(&folder, &["run", "--fail-on", "cases,nonsense"], &[]);
    assert!(text.contains("expected a list of cases, aged"), "{text}");
}

/// Precedence needs it, and a container has nothing but its environment.
#[test]
fn every_flag_has_an_environment_form_that_no_other_has() {
    let mut seen = std::collections::BTreeMap::new();
    let mut commands = vec![tieout::cli::command()];
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands().cloned());
        for flag in command.get_arguments().filter(|arg| arg.get_long().is_some()) {
            let name = flag.get_long().unwrap();
            if ["help", "version"].contains(&name) {
                continue;
            }
            let of = command.get_name();
            let env = flag.get_env().unwrap_or_else(|| panic!("{of} --{name} has no variable"));
            let env = env.to_str().unwrap().to_owned();
            assert!(env.starts_with("TIEOUT_"), "{of} --{name}: {env}");
            // Kubernetes sets these beside a service that is called `tieout`.
            assert!(!env.starts_with("TIEOUT_PORT") && !env.starts_with("TIEOUT_SERVICE"));
            let before = seen.insert(env.clone(), name.to_owned());
            assert!(before.is_none_or(|before| before == name), "{env} means two flags");
        }
    }
    assert!(seen.len() > 30, "{seen:?}");
}

#[test]
fn where_files_go_is_the_same_for_every_command() {
    let (_keep, folder) = folder_with("fine.toml");
    let env = [("TIEOUT_REPORT_DIR", "/var/a/reports"), ("TIEOUT_FILES_SPOOL", "/var/a/spool")];
    let shown = tieout(&folder, &["config", "show", "--origin"], &env);
    for (setting, place, name) in [
        ("report.dir", "/var/a/reports", "TIEOUT_REPORT_DIR"),
        ("files.spool", "/var/a/spool", "TIEOUT_FILES_SPOOL"),
    ] {
        let is_it = |line: &&str| line.starts_with(&format!("{setting} = \"{place}\""));
        let line = shown.lines().find(is_it);
        assert!(line.is_some_and(|line| line.ends_with(&format!("# env {name}"))), "{shown}");
    }
}

#[test]
fn a_variable_of_a_runs_flag_is_shown_where_it_overrides_the_file() {
    let (_keep, folder) = folder_with("fine.toml");
    let set = [
        ("limits.rows", "TIEOUT_LIMIT", "5"),
        ("limits.min_age", "TIEOUT_MIN_AGE", "2h"),
        ("limits.max_duration", "TIEOUT_MAX_DURATION", "9min"),
        ("limits.grace", "TIEOUT_GRACE", "5s"),
        ("monitoring.scope", "TIEOUT_SCOPE", "daily"),
        ("report.fail_on", "TIEOUT_FAIL_ON", "duplicates"),
        ("account.stripe_live.concurrency", "TIEOUT_CONCURRENCY", "3"),
        ("account.stripe_live.requests_per_second", "TIEOUT_RATE", "7"),
    ];
    let env = set.map(|(_, name, value)| (name, value));
    let shown = tieout(&folder, &["config", "show", "--origin"], &env);
    for (setting, name, value) in set {
        let line = shown.lines().find(|line| line.starts_with(&format!("{setting} = ")));
        let line = line.unwrap_or_else(|| panic!("{setting}: {shown}"));
        assert!(line.contains(value) && line.ends_with(&format!("# env {name}")), "{line}");
    }
}

#[test]
fn a_variable_that_a_run_would_refuse_is_no_good_configuration() {
    let (_keep, folder) = folder_with("fine.toml");
    let said = tieout(&folder, &["config", "check"], &[("TIEOUT_RATE", "fast")]);
    let is_named = said.contains("TIEOUT_RATE: `fast`: expected 1 to 1000");
    assert!(said.starts_with("exit 10") && is_named, "{said}");
}

/// Programs are told what they may count on.
#[test]
fn every_field_of_a_good_configuration_is_declared() {
    let (_keep, folder) = folder_with("fine.toml");
    let said = tieout(&folder, &["config", "check", "--json"], &[]);
    let event = said.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{said}"));
    let event: serde_json::Value = serde_json::from_str(event).unwrap();
    let schema = include_str!("../../schema/events.json");
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    let declared = &schema["$defs"]["config"]["properties"];
    for field in event.as_object().unwrap().keys() {
        let is_common = ["schema", "type"].contains(&field.as_str());
        assert!(is_common || declared[field].is_object(), "{field}: {event}");
    }
}

/// What nobody gave is in force as well: the reference names every default, and each is shown.
#[test]
fn every_default_of_the_reference_is_shown_with_its_origin() {
    let (_keep, folder) = folder_with("fine.toml");
    let more = "[[sink]]\nname = \"worker\"\nkind = \"file\"\npath = \"events.ndjson\"\n\
                [delivery]\nafter_run = \"7s\"\n\
                [[source]]\nname = \"bank\"\nkind = \"folder\"\npath = \"inbox\"\n";
    std::fs::write(folder.join("tieout.toml"), fixture("fine.toml") + more).unwrap();
    let shown = tieout(&folder, &["config", "show", "--origin"], &[]);
    let page = include_str!("../../docs/configuration.md");
    let (mut path, mut looked_at) = (None, 0);
    for line in page.lines() {
        if let Some(head) = line.strip_prefix("## `") {
            path = match head.trim_end_matches('`') {
                "[[account]]" => Some("account.stripe_live".to_owned()),
                "[[table]]" => Some("table.charges".to_owned()),
                one if one.starts_with("[[") => None,
                one => Some(one.trim_matches(['[', ']']).to_owned()),
            };
        }
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [name, _kind, default, ..] = cells[..] else { continue };
        let (Some(path), Some(name)) = (&path, name.strip_prefix('`')) else { continue };
        let path = format!("{path}.{} = ", name.trim_end_matches('`'));
        if ["–", "required", "none"].contains(&default) || path.starts_with("delivery.after_run")
        {
            continue;
        }
        let line = shown.lines().find(|line| line.starts_with(&path));
        let line = line.unwrap_or_else(|| panic!("{path}{default}: {shown}"));
        assert!(line.ends_with("# default"), "{line}");
        looked_at += 1;
    }
    assert!(looked_at > 50, "{looked_at}");
    for line in [
        "database.connections = 4 ",
        "account.stripe_live.deadline = \"20s\" ",
        "account.stripe_live.charges_by = [\"payment_intent\", \"charge\"] ",
        "cases.four_eyes_from = {} ",
        "sink.worker.timeout = \"10s\" ",
        "source.bank.stable_for = \"10s\" ",
        "source.bank.ready = \"stable\" ",
        "table.charges.channel = \"status\" ",
    ] {
        assert!(shown.contains(&format!("\n{line}")), "{line}: {shown}");
    }
    // What another kind has is not in force.
    for none in ["sink.worker.ttr", "source.bank.agent"] {
        assert!(!shown.contains(none), "{none}: {shown}");
    }
    let given = shown.lines().find(|line| line.starts_with("delivery.after_run = \"7s\""));
    assert!(given.is_some_and(|line| line.ends_with("# file")), "{shown}");
    assert_eq!(shown.matches("\ndelivery.after_run = ").count(), 1, "{shown}");
}

#[test]
fn wrong_words_are_usage_errors() {
    let (_keep, folder) = folder_with("fine.toml");
    golden(
        "fixtures/cli",
        "usage_unknown_flag",
        &tieout(&folder, &["run", "--dat", "2026-11-19"], &[]),
    );
    golden(
        "fixtures/cli",
        "usage_date_and_since",
        &tieout(&folder, &["run", "--date", "2026-11-19", "--since", "6h"], &[]),
    );
    golden(
        "fixtures/cli",
        "usage_date_words",
        &tieout(&folder, &["run", "--date", "19.11.2026"], &[]),
    );
    golden(
        "fixtures/cli",
        "usage_no_offset",
        &tieout(&folder, &["run", "--from", "2026-11-19T08:00:00"], &[]),
    );
    golden(
        "fixtures/cli",
        "usage_unknown_account",
        &tieout(&folder, &["run", "--psp", "stripe_life"], &[]),
    );
    golden(
        "fixtures/cli",
        "usage_ids_from_missing",
        &tieout(&folder, &["run", "--ids-from", "none.txt"], &[]),
    );
    golden("fixtures/cli", "usage_long_window", &tieout(&folder, &["run", "--since", "60d"], &[]));
    golden("fixtures/cli", "usage_run_id", &tieout(&folder, &["run", "--run-id", "7"], &[]));
    golden(
        "fixtures/cli",
        "usage_flag_variable",
        &tieout(&folder, &["run"], &[("TIEOUT_DRY_RUN", "perhaps")]),
    );
}

/// What is missing, or known, is named in the sentence that says so.
#[test]
fn a_sentence_with_a_list_goes_on_to_its_end() {
    let (_keep, folder) = folder_with("fine.toml");
    let text = tieout(&folder, &["pause", "stripe"], &[]);
    let (_, told) = text.split_once("--- stderr\n").unwrap();
    let (first, rest) = told.split_once('\n').unwrap();
    let said = "tieout: usage: the following required arguments were not provided: ";
    assert!(first.starts_with(said) && first.contains("--why <TEXT>"), "{text}");
    assert!(first.ends_with("; nothing was done") && rest.starts_with("\nUsage: "), "{text}");
    let text = tieout(&folder, &["ingest", "x.csv", "--account", "unlike"], &[]);
    assert!(text.contains(". Nothing was done\n"), "{text}");
}

/// Whoever reads events reads of this end too.
#[test]
fn wrong_words_are_an_event_where_events_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, by_variable): (&[_], &[_]) = (&[], &[("TIEOUT_JSON", "yes")]);
    for (words, env, message) in [
        (&["run", "--dat", "2026-11-19", "--json"][..], plain, "unexpected argument '--dat'"),
        (&["run", "--dat", "2026-11-19"], by_variable, "unexpected argument '--dat'"),
        (&["runn", "--json"], plain, "unrecognized subcommand 'runn'"),
        (&["--json"], plain, "'tieout' requires a subcommand"),
    ] {
        let text = tieout(folder.path(), words, env);
        let (stdout, stderr) = text.split_once("--- stderr\n").unwrap();
        let event = stdout.strip_prefix("exit 2\n--- stdout\n").unwrap();
        let said =
            format!("{{\"class\":\"usage\",\"code\":2,\"hint\":null,\"message\":\"{message}");
        assert!(event.starts_with(&said), "{words:?}: {text}");
        assert!(stderr.starts_with(&format!("tieout: usage: {message}")), "{words:?}: {text}");
    }
}

#[test]
fn a_missing_configuration_says_where_it_was_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    golden(
        "fixtures/cli",
        "config_not_found",
        &tieout(folder.path(), &["config", "check"], &[("HOME", "/home/nobody")]),
    );
    golden(
        "fixtures/cli",
        "config_unreadable",
        &tieout(folder.path(), &["config", "check", "--config", "other.toml"], &[]),
    );
}

/// What is copied from a screen must not go by another configuration.
#[test]
fn commands_to_copy_name_the_configuration_that_was_named() {
    let (_keep, folder) = folder_with("unknown_key.toml");
    std::fs::rename(folder.join("tieout.toml"), folder.join("other.toml")).unwrap();
    let named = "→ tieout --config other.toml config check\n";
    let by_flag = tieout(&folder, &["doctor", "--config", "other.toml"], &[]);
    assert!(by_flag.contains(named), "{by_flag}");
    let as_event = tieout(&folder, &["doctor", "--json", "--config", "other.toml"], &[]);
    assert!(
        as_event.contains("\"next\":\"tieout --config other.toml config check\""),
        "{as_event}"
    );
    // Whoever copies it has the variable as well.
    let by_variable = tieout(&folder, &["doctor"], &[("TIEOUT_CONFIG", "other.toml")]);
    assert!(by_variable.contains("→ tieout config check\n"), "{by_variable}");
}

#[test]
fn a_wrong_configuration_is_told_on_stderr_and_as_an_event() {
    let (_keep, folder) = folder_with("unknown_key.toml");
    golden("fixtures/cli", "config_unknown_key", &tieout(&folder, &["config", "check"], &[]));
    let text = tieout(&folder, &["run", "--json"], &[]);
    assert!(text.contains("{\"class\":\"config\",\"code\":10,"), "{text}");
}

/// As Windows' editors save it; and what is no text at all is told with its line.
#[test]
fn a_configuration_may_be_saved_in_utf_16() {
    let (_keep, folder) = folder_with("fine.toml");
    let plain = tieout(&folder, &["config", "check"], &[]);
    assert!(plain.starts_with("exit 0\n"), "{plain}");
    let units: Vec<u16> = format!("\u{feff}{}", fixture("fine.toml")).encode_utf16().collect();
    let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
    let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
    for bytes in [little, big] {
        std::fs::write(folder.join("tieout.toml"), bytes).unwrap();
        assert_eq!(tieout(&folder, &["config", "check"], &[]), plain);
    }
    std::fs::write(folder.join("tieout.toml"), b"# one\n# two \xe9\n").unwrap();
    let text = tieout(&folder, &["config", "check"], &[]);
    let told = "tieout.toml:2 is not UTF-8 text; nothing was done\nhint: save the file as UTF-8";
    assert!(text.starts_with("exit 10\n") && text.contains(told), "{text}");
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    let (_keep, folder) = folder_with("fine.toml");
    let empty = [("TIEOUT_JSON", ""), ("TIEOUT_QUIET", ""), ("TIEOUT_CONFIG", "")];
    golden("fixtures/cli", "config_empty_variable", &tieout(&folder, &["config", "check"], &empty));
}
