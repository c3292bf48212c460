//! The catalogue of configuration mistakes: for each file of `fixtures/config` the text that a
//! user sees, golden beside it. `TIEOUT_BLESS=1` writes the golden texts anew; read the diff.

use std::path::{Path, PathBuf};

use tieout::config::problem::ConfigError;
use tieout::config::sections::{Origin, Override};
use tieout::config::{Config, reading};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/config")
}

fn read(name: &str, overrides: &[Override]) -> Result<Config, ConfigError> {
    let text = std::fs::read_to_string(folder().join(name)).unwrap();
    // A bare name, so that messages do not depend on where the project lies.
    reading::read(Path::new(name), &text, overrides)
}

#[test]
fn every_mistake_has_its_text() {
    let mut differing = Vec::new();
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".toml") && !name.starts_with("fine"))
        .collect();
    names.sort();
    assert!(names.len() > 20, "the catalogue is there");
    for name in names {
        let error = match read(&name, &[]) {
            Err(error) => error,
            Ok(_config) => panic!("{name} was taken for a good configuration"),
        };
        let text = format!("{error}\nhint: {}\n", error.hint());
        let golden = folder().join(name.replace(".toml", ".expected"));
        if std::env::var_os("TIEOUT_BLESS").is_some() {
            std::fs::write(&golden, &text).unwrap();
        }
        let want = std::fs::read_to_string(&golden).unwrap_or_default();
        if text != want {
            differing.push(format!("--- {name}\n{text}--- expected\n{want}"));
        }
    }
    assert!(differing.is_empty(), "\n{}", differing.join("\n"));
}

/// Who mends one mistake is not to meet the next one only then.
#[test]
fn every_mistake_of_monitoring_is_told_at_once() {
    let text = std::fs::read_to_string(folder().join("fine.toml")).unwrap()
        + "[monitoring]\nrepeated = 0\nscoope = \"x\"\ninterval = \"soon\"\n\
           timeout = \"40s\"\nhealthcheck = { url_evn = \"PING\" }\n";
    let error = reading::read(Path::new("a.toml"), &text, &[]).unwrap_err().to_string();
    for says in [
        "unknown key `scoope` in [monitoring]",
        "`soon` is not a span",
        "`repeated` is 0; expected at least 1",
        "expected at most 30s",
        "unknown key `url_evn`",
    ] {
        assert!(error.contains(says), "{says}: {error}");
    }
    assert!(!error.contains("exactly one of"), "that follows: {error}");
}

/// Whatever setting it is of those that name where a secret is.
#[test]
fn a_secret_is_shown_nowhere_that_its_place_belongs() {
    let described = tieout::config::schema::described();
    let is_place = |path: &&String| path.ends_with("_env") || path.ends_with("_file");
    let places: Vec<&String> = described.keys().filter(is_place).collect();
    assert!(places.len() > 24, "{places:?}");
    for place in places {
        let is_column = ["table.", "format."].iter().any(|section| place.starts_with(section));
        assert!(!is_column, "{place}: below these the names are those of columns");
        let wrong = ["postgres://u:geheim@h/d", "rk_test_51Hgeheim", "a\\ngeheim", ""];
        let of_variables = if place.ends_with("_env") { "geheim 123" } else { "" };
        for value in wrong.into_iter().chain([of_variables]) {
            let text = format!("{place} = \"{value}\"\n");
            let error = reading::read(Path::new("a.toml"), &text, &[]).unwrap_err().to_string();
            assert!(error.contains("if this is the secret itself"), "{text}{error}");
            assert!(!error.contains("geheim"), "{text}{error}");
        }
    }
    // The columns of a table may be called as they like.
    let text = "table.set.always.app_env = \"a b\"\ntable.set.always.a_file = \"x://y\"\n";
    let error = reading::read(Path::new("a.toml"), text, &[]).unwrap_err().to_string();
    assert!(!error.contains("if this is the secret itself"), "{error}");
    // A file may be called as its key begins.
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("sk_live_of_shop"), "x").unwrap();
    let text = "account.key_file = \"sk_live_of_shop\"\n";
    let error = reading::read(&folder.path().join("a.toml"), text, &[]).unwrap_err().to_string();
    assert!(!error.contains("if this is the secret itself"), "{error}");
}

/// A secret that stands where none belongs is refused, and not repeated.
#[test]
fn what_is_refused_is_not_shown() {
    let fine = std::fs::read_to_string(folder().join("fine.toml")).unwrap();
    let alert = "[[monitoring.alert]]\nname = \"ops\"\n";
    for more in [
        format!("{alert}kind = \"slack\"\nurl = \"http://hooks.slack.com/services/geheim\"\n"),
        format!("{alert}kind = \"slack\"\nurl = \"hooks.slack.com/services/geheim\"\n"),
        format!("{alert}kind = \"slack\"\nurl = \"http://h.example?geheim\"\n"),
        "[monitoring]\nhealthcheck = { url = \"http://hc.example/geheim\" }\n".to_owned(),
        "[monitoring]\nprometheus = { push = 'http://push.example/geheim' }\n".to_owned(),
        "[[sink]]\nname = \"w\"\nkind = \"webhook\"\nurl = \"http://h.example/geheim\"\n"
            .to_owned(),
        "[[account]]\nbase_url = \"https://u:geheim@h.example\"\n".to_owned(),
    ] {
        let text = match more.strip_prefix("[[account]]\n") {
            Some(line) => fine.replacen("livemode =", &format!("{line}livemode ="), 1),
            None => fine.clone() + &more,
        };
        let error = reading::read(Path::new("a.toml"), &text, &[]).unwrap_err().to_string();
        assert!(!error.contains("geheim"), "{more}: {error}");
        assert!(error.contains("***"), "{more}: {error}");
    }
}

/// Where a file is no TOML nobody can tell where a value ends in it: names alone are shown.
#[test]
fn of_a_file_that_is_no_toml_no_value_is_shown() {
    for (lines, line, shown) in [
        ("key = sk_test_GEHEIM123456", 3, "key = *"),
        ("key_env = sk_test_GEHEIM123456", 3, "key_env = *"),
        ("  key_env = \t GEHEIM # GEHEIM", 3, "  key_env = \t *"),
        ("key_env sk_test_GEHEIM123456", 3, "*"),
        ("sk_test_GEHEIM123456", 3, "*"),
        ("sk_test_GEHEIM123456 = 1x", 3, "*"),
        ("R0VIRUlN=", 3, "*"),
        ("R0VIRUlN==", 3, "*"),
        ("url = postgres://u:GEHEIM@127.0.0.1/x", 3, "url = *"),
        ("postgres://u:GEHEIM@127.0.0.1/x?a=b", 3, "*"),
        ("password = GEHEIM", 3, "password = *"),
        ("password_env = \"GEHEIM\" x", 3, "password_env = \"******\"**"),
        ("password_env = \"GEHEIM", 3, "password_env = \"******"),
        ("passwort = \"GEHEIM\" x", 3, "passwort = \"******\"**"),
        ("sftp = { password = GEHEIM }", 3, "sftp = *"),
        ("key_command = [\n\"a\",\nGEHEIM\n]", 5, "*"),
        ("key_command = [\n\"a\"\n[GEHEIM, \"b\"]\n]", 5, "*"),
        ("a = \"\"\"\nhost = GEHEIM\n\"\"\" x", 5, "\"\"\"**"),
        ("a = \"\"\"\nhost = GEHEIM\\z\n\"\"\"", 4, "*"),
        ("a = '''\nhost = GEHEIM\u{1}\n'''", 4, "*"),
        ("[account GEHEIM", 3, "*"),
        ("[account] GEHEIM", 3, "[account]*"),
        ("[[account]", 3, "[[account]"),
        ("key.env = 1\nkey = 2\nkey = GEHEIM", 4, "key = *"),
    ] {
        let text = format!("# a = \"\"\"\n[[account]] # GEHEIM\n{lines}\n");
        let error = reading::read(Path::new("a.toml"), &text, &[]).unwrap_err().to_string();
        assert!(!error.contains("GEHEIM") && !error.contains("R0VIRUlN"), "{lines}: {error}");
        assert!(error.contains("not TOML: "), "{lines}: {error}");
        assert!(error.contains(&format!("\na.toml:{line}:")), "{lines}: {error}");
        let begin = format!("\n{line} | {shown}");
        assert!(error.contains(&begin), "{lines}: {error}");
    }
}

/// What is of another type than it should be is shown where it can be no secret.
#[test]
fn a_value_of_the_wrong_type_is_shown_where_it_is_no_secret() {
    let fine = std::fs::read_to_string(folder().join("fine.toml")).unwrap();
    for (line, said) in [
        ("key_command = \"echo GEHEIM\"", "`key_command` of [[account]] stripe_live: expected a"),
        ("key_command = [\"echo GEHEIM\", 5]", "`key_command.1` of [[account]]"),
        ("key_command = [\n\"echo GEHEIM\",\n5, \"GEHEIM\"]", "`key_command.1` of [[account]]"),
        ("key_command = { sh = \"echo GEHEIM\" }", "`key_command` of [[account]]"),
        ("base_url = [\"https://u:GEHEIM@h\"]", "`base_url` of [[account]]"),
        ("password = \"GEHEIM\"", "unknown key `password`"),
    ] {
        let text = fine.replacen("livemode =", &format!("{line}\nlivemode ="), 1);
        let error = reading::read(Path::new("a.toml"), &text, &[]).unwrap_err().to_string();
        assert!(!error.contains("GEHEIM"), "{line}: {error}");
        assert!(error.contains(said), "{line}: {error}");
    }
    let text = fine.replacen("livemode =", "livemode = \"shown\" #", 1);
    let error = reading::read(Path::new("a.toml"), &text, &[]).unwrap_err().to_string();
    assert!(error.contains("this is the text \"shown\", expected true or false"), "{error}");
}

/// PagerDuty's keys look like nothing; names of variables look like words.
#[test]
fn a_key_is_no_name_of_a_variable() {
    for (text, is_name) in [
        ("STRIPE_KEY", true),
        ("stripe.key-2", true),
        ("PRODUCTIONSTRIPEACCOUNT2026", true),
        ("EU_1_STRIPE_2_KEY_3", true),
        ("_KEY", true),
        ("1KEY", false),
        ("f3b1c8d90a7e4c52b6d1e0f9a8c7b6d5", false),
        ("R02DXQ7T9K4M1ZP8W3VY6N5JB0HCE2GA", false),
        ("SG_a8Kd93jfLw02Qm5xTz71", false),
        ("f3b1c8d9-0a7e-4c52-b6d1-e0f9a8c7b6d5", false),
    ] {
        assert_eq!(reading::may_name_a_variable(text), is_name, "{text}");
    }
}

fn value_of(config: &Config, path: &str) -> (String, String) {
    let shown = config.shown.iter().find(|shown| shown.path == path).expect(path);
    (shown.value.clone(), shown.origin.text())
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file_and_that_over_the_default() {
    let at = |path, origin| Override { path, value: "7".to_owned(), origin };
    for (overrides, want) in [
        (vec![], ("10000", "default")),
        (vec![at("limits.rows", Origin::Env("TIEOUT_LIMIT"))], ("7", "env TIEOUT_LIMIT")),
        (vec![at("limits.rows", Origin::Flag("--limit"))], ("7", "flag --limit")),
    ] {
        let config = read("fine.toml", &overrides).unwrap();
        assert_eq!(value_of(&config, "limits.rows"), (want.0.to_owned(), want.1.to_owned()));
    }
    let zone = Override {
        path: "business_timezone",
        value: "Asia/Tokyo".to_owned(),
        origin: Origin::Flag("--tz"),
    };
    let config = read("fine.toml", &[zone]).unwrap();
    assert_eq!(config.setup().business_timezone, chrono_tz::Asia::Tokyo);
    assert_eq!(value_of(&config, "business_timezone").1, "flag --tz");
    let config = read("fine.toml", &[]).unwrap();
    assert_eq!(value_of(&config, "business_timezone").1, "file");
}

#[test]
fn a_mistake_in_a_flag_or_variable_is_told_by_its_name() {
    for (origin, word) in [
        (Origin::Flag("--limit"), "--limit: `many`: expected a whole number"),
        (Origin::Env("TIEOUT_LIMIT"), "TIEOUT_LIMIT: `many`: expected a whole number"),
    ] {
        let given = Override { path: "limits.rows", value: "many".to_owned(), origin };
        let text = read("fine.toml", &[given]).unwrap_err().to_string();
        assert!(text.contains(word), "{text}");
    }
}

/// The commented file is a good configuration as it stands, and with every line uncommented;
/// what it says the defaults are is what they are.
#[test]
fn the_commented_file_tells_the_truth() {
    let place = Path::new("tieout.toml");
    let plain = reading::read(place, tieout::config::DEFAULT, &[]).unwrap();
    let uncommented: String = tieout::config::DEFAULT
        .lines()
        .filter(|line| !line.contains("default: ") && !line.starts_with("# attempts"))
        .filter(|line| !line.starts_with("# files"))
        .map(|line| match line.strip_prefix("# ") {
            Some(setting) if setting.split_once(" = ").is_some_and(|(key, _)| is_key(key)) => {
                format!("{setting}\n")
            }
            _other => format!("{line}\n"),
        })
        .collect();
    let full = reading::read(place, &uncommented, &[]).unwrap();
    for path in full.shown.iter().filter(|shown| shown.path.starts_with("policy.")) {
        let default = value_of(&plain, &path.path);
        assert_eq!((path.value.clone(), "default".to_owned()), default, "{}", path.path);
        let by_size = path.path == "policy.max_handbacks";
        assert!(by_size || path.origin == Origin::File, "{} is not in the file", path.path);
    }
    assert_eq!(full.report_dir, plain.report_dir);
}

/// One receiver of each kind, from the lines of the commented file that are its own.
#[test]
fn the_commented_receivers_are_good_ones() {
    let sample = tieout::config::DEFAULT.split_once("# [[monitoring.alert]]").unwrap().1;
    let lines: Vec<&str> = sample.lines().filter_map(|line| line.strip_prefix("#   ")).collect();
    assert!(lines.len() > 8, "{sample}");
    for (kind, left_out) in [
        ("webhook", "sendmail"),
        ("slack", "sendmail|key_env"),
        ("pagerduty", "sendmail|url_env"),
        ("sendmail", "url_env|key_env"),
    ] {
        let mut text = tieout::config::DEFAULT.to_owned() + "\n[[monitoring.alert]]\n";
        for line in &lines {
            let is_out = left_out.split('|').any(|word| {
                line.starts_with(word) || line.trim_end().ends_with(&format!("# {word}"))
            });
            if line.starts_with("kind") {
                text += &format!("kind = \"{kind}\"\n");
            } else if !is_out {
                text += &format!("{line}\n");
            }
        }
        let config = reading::read(Path::new("tieout.toml"), &text, &[]).unwrap();
        assert_eq!(config.monitoring.alert.len(), 1, "{kind}");
    }
}

/// What a sink says is held against the rest of the file, and told all at once.
#[test]
fn sinks_are_held_against_the_rest_of_the_file() {
    let text = std::fs::read_to_string(folder().join("fine.toml")).unwrap();
    let sink = |name: &str, more: &str| format!("\n[[sink]]\nname = \"{name}\"\n{more}\n");
    let file = "kind = \"file\"\npath = \"events.ndjson\"";
    let read = |more: &str| reading::read(Path::new("x.toml"), &format!("{text}{more}"), &[]);
    let config = read(&sink("a", file)).unwrap();
    assert_eq!(config.setup().sinks.len(), 1);
    let setup = config.setup();
    let charges = setup.tables.iter().find(|table| table.name == "charges").unwrap();
    assert!(setup.stages(charges));
    let wrong = sink("a", file)
        + &sink("a", file)
        + &sink("b", &format!("{file}\ntables = [\"chargs\"]"))
        + &sink("c", "kind = \"webhook\"\nurl = \"http://h.example\"\nkey_env = \"K\"")
        + "[delivery]\nafter_run = \"1h\"\n";
    let text = read(&wrong).unwrap_err().to_string();
    for words in [
        "[[sink]] a: `name`: another sink is called so",
        "[[sink]] b: `tables`: there is no [[table]] `chargs`",
        "[[sink]] c: `url`: its address is plain http",
        "`after_run`: expected at most 10min",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

fn is_key(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
}

#[test]
fn names_of_configurations_follow_what_they_name() {
    let text = std::fs::read_to_string(folder().join("fine.toml")).unwrap();
    let of = |text: &str| reading::read(Path::new("x.toml"), text, &[]).unwrap();
    let base = of(&text);
    let deciding = of(&text.replace("tag = \"{id}\"", "tag = \"pay_{id}\""));
    assert_ne!(base.config_sha256, deciding.config_sha256);
    assert_ne!(base.policy_version, deciding.policy_version);
    let asking = of(&text.replace("STRIPE_KEY", "STRIPE_KEY_2"));
    assert_ne!(base.config_sha256, asking.config_sha256);
    assert_eq!(base.policy_version, asking.policy_version, "how it is asked decides nothing");
    let same = of(&format!("# a comment\n{text}"));
    assert_eq!(base.config_sha256, same.config_sha256);
}

#[test]
fn every_row_of_a_table_may_belong_to_one_account() {
    let text = std::fs::read_to_string(folder().join("account_constant.toml")).unwrap();
    let text = text.replace("stripe_lve", "stripe_live");
    let config = reading::read(Path::new("x.toml"), &text, &[]).unwrap();
    assert!(config.tables[0].account.is_empty());
    assert_eq!(config.tables[0].accounts["*"], "stripe_live");
}
