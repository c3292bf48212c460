//! The ready files of `cron/`: held by the tools of what reads them, and run as they would be.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::run::shop::{Engine, KEY, Payment, Shop, Words};
use crate::support::tieout_bin;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn file(name: &str) -> String {
    std::fs::read_to_string(root().join("cron").join(name)).unwrap()
}

fn printed(words: &[&str]) -> String {
    let output = Command::new(tieout_bin()).args(words).env_clear().output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

const UNITS: [&str; 4] =
    ["tieout.service", "tieout.timer", "tieout-daily.service", "tieout-daily.timer"];

#[test]
fn what_is_printed_is_what_lies_in_cron() {
    for (kind, name) in
        [("cron", "tieout.crontab"), ("k8s", "kubernetes.yaml"), ("heroku", "heroku.txt")]
    {
        assert_eq!(printed(&["schedule", "print", kind]), file(name), "{kind}");
    }
    let all = printed(&["schedule", "print", "systemd"]);
    let wanted: String = UNITS
        .map(|unit| format!("# /etc/systemd/system/{unit}\n{}\n", file(&format!("systemd/{unit}"))))
        .concat();
    assert_eq!(all, wanted);
    let lines = printed(&["schedule", "print", "systemd", "--json"]);
    assert_eq!(lines.lines().count(), UNITS.len());
}

/// The words that a schedule starts must be words that this program takes.
#[test]
fn every_scheduled_command_is_one() {
    let mut found = 0;
    for name in ["tieout.crontab", "heroku.txt", "systemd/tieout.service"]
        .into_iter()
        .chain(["systemd/tieout-daily.service"])
    {
        for line in file(name).lines().filter(|line| !line.starts_with('#')) {
            let Some(at) = line.find("tieout run") else { continue };
            let words = line[at..].split(' ');
            let parsed = tieout::cli::command().try_get_matches_from(words);
            assert!(parsed.is_ok(), "{name}: {line}: {}", parsed.unwrap_err());
            found += 1;
        }
    }
    assert_eq!(found, 6, "two jobs each, and one a unit");
}

/// The nightly look fails, and is silent, by itself: what is remembered of its runs is its own.
#[test]
fn the_daily_look_is_a_schedule_of_its_own() {
    for kind in ["cron", "systemd", "k8s", "heroku"] {
        let text = printed(&["schedule", "print", kind]).replace("\", \"", " ").replace('"', " ");
        let is_run = |line: &&str| line.contains(" run ") && line.contains(" --max-duration ");
        let runs = text.lines().filter(|line| !line.starts_with('#')).filter(is_run);
        let (daily, often): (Vec<&str>, Vec<&str>) =
            runs.partition(|line| line.contains(" --all --since 3d "));
        assert_eq!((daily.len(), often.len()), (1, 1), "{kind}: {text}");
        assert!(daily[0].contains(" --scope daily "), "{kind}: {daily:?}");
        assert!(!often[0].contains("--scope"), "{kind}: {often:?}");
    }
}

fn systemd_analyze(args: &[&str]) -> Output {
    let run = Command::new("systemd-analyze").args(args).env("SYSTEMD_COLORS", "0").output();
    run.unwrap_or_else(|error| {
        panic!("systemd-analyze: {error}; install Debian's package `systemd`, then run this again")
    })
}

/// The units, with the program that was built in the place of the installed one.
fn units() -> (tempfile::TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let bin = tieout_bin().display().to_string();
    let write = |unit: &str| {
        let text = file(&format!("systemd/{unit}"));
        let path = folder.path().join(unit);
        std::fs::write(&path, text.replace("/usr/bin/tieout", &bin)).unwrap();
        path
    };
    let paths = UNITS.map(write).to_vec();
    (folder, paths)
}

#[test]
fn systemd_takes_the_units_and_finds_them_locked_up() {
    let (_kept, paths) = units();
    let paths: Vec<&str> = paths.iter().map(|path| path.to_str().unwrap()).collect();
    let verified = systemd_analyze(&[&["verify", "--man=no"], &paths[..]].concat());
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success() && said.is_empty(), "{said}");
    for path in paths.iter().filter(|path| path.ends_with(".service")) {
        let secure = systemd_analyze(&["security", "--offline=yes", "--threshold=20", path]);
        let said = String::from_utf8_lossy(&secure.stdout);
        assert!(secure.status.success(), "exposed more than 2.0: {said}");
    }
    // It would see a line that systemd does not know.
    let wrong = paths[0];
    let text = std::fs::read_to_string(wrong).unwrap() + "ProtectEverything=yes\n";
    std::fs::write(wrong, text).unwrap();
    let verified = systemd_analyze(&["verify", "--man=no", wrong]);
    assert!(String::from_utf8_lossy(&verified.stderr).contains("ProtectEverything"));
}

/// What the examples of monitoring write, the units say how to let it be written: the lines are
/// there to be taken, and systemd takes them.
#[test]
fn the_units_say_how_to_write_elsewhere() {
    let (_kept, paths) = units();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|end| end == "service")) {
        let text = std::fs::read_to_string(path).unwrap();
        for line in ["#User=tieout\n", "#ReadWritePaths=/var/lib/node_exporter "] {
            assert!(text.contains(line), "{line}: {}", path.display());
        }
        let taken = text.replace("#User=", "User=").replace("#ReadWritePaths=", "ReadWritePaths=");
        std::fs::write(path, taken).unwrap();
    }
    let words: Vec<&str> = paths.iter().map(|path| path.to_str().unwrap()).collect();
    let verified = systemd_analyze(&[&["verify", "--man=no"], &words[..]].concat());
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success() && said.is_empty(), "{said}");
    let page = std::fs::read_to_string(root().join("docs/monitoring.md")).unwrap();
    assert!(page.contains("ReadWritePaths=/var/lib/node_exporter"), "the page says why");
}

/// A shell as cron starts it, with the variables of the file itself; the command is missing.
fn shell_of(variables: &[(String, String)], bin: &Path, config: &Path) -> Command {
    let mut shell = Command::new("/usr/bin/env");
    shell.arg("-i").args(["HOME=/", "LOGNAME=tieout"]).current_dir("/");
    for (name, value) in variables {
        let value = match name.as_str() {
            "PATH" => format!("{}:{value}", bin.display()),
            "TIEOUT_CONFIG" => config.display().to_string(),
            // A place of this test, in the place of one that only the machine's owner makes.
            "TIEOUT_REPORT_DIR" => config.with_file_name("reports").display().to_string(),
            "TIEOUT_FILES_SPOOL" => config.with_file_name("spool").display().to_string(),
            _other => value.clone(),
        };
        shell.arg(format!("{name}={value}"));
    }
    shell.args(["/bin/sh", "-c"]);
    shell
}

/// As cron does: nothing of anybody's environment, /bin/sh, and the lines of the file itself.
#[tokio::test(flavor = "multi_thread")]
async fn the_lines_of_the_crontab_run_as_cron_runs_them() {
    let mut shop = Shop::open_with(Engine::Sqlite, Words::default().patient()).await;
    let stuck = Payment::stuck(1);
    shop.insert(std::slice::from_ref(&stuck)).await;
    shop.plant(vec![stuck.captured()]);
    // cron hands nothing over: what the configuration names is in a file that the lines read.
    let config = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let line = text.lines().find(|line| line.starts_with("url = ")).unwrap().to_owned();
    std::fs::write(&config, text.replace(&line, "url_env = \"SHOP_DATABASE\"")).unwrap();
    let address = line.trim_start_matches("url = ").trim_matches('"');
    let env = shop.folder().join("env");
    std::fs::write(&env, format!("SHOP_PSP_KEY='{KEY}'\nSHOP_DATABASE='{address}'\n")).unwrap();
    let printed = printed(&["schedule", "print", "cron", "--config", config.to_str().unwrap()]);
    assert!(printed.contains("\n# This tieout.toml names: SHOP_DATABASE, SHOP_PSP_KEY.\n"));
    let bin = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(tieout_bin(), bin.path().join("tieout")).unwrap();
    let mut variables: Vec<(String, String)> = Vec::new();
    let mut jobs = Vec::new();
    for line in file("tieout.crontab").lines().filter(|line| !line.starts_with('#')) {
        match line.split_once('=') {
            Some((name, value)) if !name.contains(' ') => {
                variables.push((name.to_owned(), value.to_owned()));
            }
            _job => jobs.push(line.to_owned()),
        }
    }
    assert_eq!(jobs.len(), 2);
    // The folder of the configuration is not the user's to write in.
    for name in ["TIEOUT_REPORT_DIR", "TIEOUT_FILES_SPOOL"] {
        let place = variables.iter().find(|(known, _)| known == name);
        assert!(place.is_some_and(|(_, at)| at.starts_with("/var/lib/tieout/")), "{place:?}");
    }
    for job in jobs {
        let fields: Vec<&str> = job.split_whitespace().collect();
        assert_eq!(fields[5], "tieout", "the sixth field is the user: {job}");
        let (_, command) = job.split_once("  tieout  ").unwrap();
        assert_eq!(command.matches("/etc/tieout/env").count(), 2, "{job}");
        let command = &command.replace("/etc/tieout/env", &env.display().to_string());
        assert!(!command.contains('%'), "cron makes a new line of it: {job}");
        let output = shell_of(&variables, bin.path(), &config).arg(command).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), said.as_ref()), (Some(0), ""), "{job}");
        assert!(output.stdout.is_empty(), "cron would send a mail: {output:?}");
        // Without the file it is said what is missing, and nothing is done.
        let without = command.replace(&env.display().to_string(), "/nowhere/env");
        let output = shell_of(&variables, bin.path(), &config).arg(without).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(10) && said.contains("SHOP_DATABASE"), "{said}");
    }
    assert_eq!(shop.status(1).await, "paid");
    shop.check(false).await;
}

/// A secret's name is an environment variable, or a credential that systemd handed over; the
/// other ways are a file and a command. None is ever printed.
#[tokio::test(flavor = "multi_thread")]
async fn secrets_come_as_credentials_files_and_commands() {
    let mut shop = Shop::open_with(Engine::Postgres, Words::default().patient()).await;
    let config = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let address = shop.place().to_owned();
    let credentials = tempfile::tempdir().unwrap();
    let put = |name: &str, value: &str| {
        std::fs::write(credentials.path().join(name), format!("{value}\n")).unwrap();
    };
    put("MY_DATABASE", &address);
    put("MY_KEY", KEY);
    put("password", "s3cret");
    let command = format!("[\"/bin/cat\", \"{}\"]", credentials.path().join("MY_KEY").display());
    let url = format!("url = \"{address}\"");
    let ways = [
        (url.clone(), "key_env = \"MY_KEY\"".to_owned()),
        (
            "url_env = \"MY_DATABASE\"".to_owned(),
            "key_file = \"$CREDENTIALS_DIRECTORY/MY_KEY\"".to_owned(),
        ),
        (
            "url_file = \"$CREDENTIALS_DIRECTORY/MY_DATABASE\"".to_owned(),
            format!("key_command = {command}"),
        ),
        (
            format!("{url}\npassword_file = \"$CREDENTIALS_DIRECTORY/password\""),
            "key_env = \"MY_KEY\"".to_owned(),
        ),
        (
            format!("{url}\npassword_command = [\"echo\", \"s3cret\"]"),
            "key_env = \"MY_KEY\"".to_owned(),
        ),
        (format!("{url}\npassword_env = \"password\""), "key_env = \"MY_KEY\"".to_owned()),
    ];
    for (number, (database, key)) in (1_i64..).zip(ways) {
        let stuck = Payment::stuck(number);
        shop.insert(std::slice::from_ref(&stuck)).await;
        shop.plant(vec![stuck.captured()]);
        let words = text.replace(&url, &database);
        std::fs::write(&config, words.replace("key_env = \"SHOP_PSP_KEY\"", &key)).unwrap();
        for args in [&["run", "-vvv"][..], &["config", "show", "--origin"], &["config", "check"]] {
            let mut program = shop.program(args);
            program.env_clear().env("CREDENTIALS_DIRECTORY", credentials.path());
            let output = program.output().await.unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{database} {key} {args:?}: {said}");
            assert!(!said.contains("s3cret") && !said.contains(KEY), "{args:?}: {said}");
        }
        assert_eq!(shop.status(number).await, "paid", "{database} {key}");
    }
}

/// What of a document its schema does not take, each by its place.
fn misfits(value: &serde_json::Value, schema: &serde_json::Value, at: &str) -> Vec<String> {
    use serde_json::Value;
    let mut found = Vec::new();
    let is = |name: &Value| match name.as_str().unwrap() {
        "string" => value.is_string(),
        "integer" => value.is_i64(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "null" => value.is_null(),
        other => panic!("{at}: the schema's type {other}"),
    };
    let fits = match &schema["type"] {
        Value::Null => true,
        Value::Array(names) => names.iter().any(is),
        name => is(name),
    };
    if !fits {
        found.push(format!("{at}: {value} is no {}", schema["type"]));
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        found.push(format!("{at}: {value} is none of {words:?}"));
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        if value.get(name.as_str().unwrap()).is_none() {
            found.push(format!("{at}: {name} is missing"));
        }
    }
    for (name, inner) in value.as_object().into_iter().flatten() {
        let at = format!("{at}.{name}");
        match (&schema["properties"][name], &schema["additionalProperties"]) {
            (Value::Null, Value::Object(_)) => {
                found.extend(misfits(inner, &schema["additionalProperties"], &at));
            }
            (Value::Null, Value::Bool(false)) => found.push(format!("{at}: there is none")),
            (Value::Null, _) => {}
            (known, _) => found.extend(misfits(inner, known, &at)),
        }
    }
    for (number, inner) in value.as_array().into_iter().flatten().enumerate() {
        found.extend(misfits(inner, &schema["items"], &format!("{at}[{number}]")));
    }
    found
}

fn json_of(yaml: &yaml_rust2::Yaml) -> serde_json::Value {
    use serde_json::{Value, json};
    use yaml_rust2::Yaml;
    match yaml {
        Yaml::String(text) => json!(text),
        Yaml::Integer(number) => json!(number),
        Yaml::Boolean(truth) => json!(truth),
        Yaml::Array(items) => Value::Array(items.iter().map(json_of).collect()),
        Yaml::Hash(fields) => {
            let field =
                |(name, value): (&Yaml, &Yaml)| (name.as_str().unwrap().to_owned(), json_of(value));
            Value::Object(fields.iter().map(field).collect())
        }
        other => panic!("{other:?}"),
    }
}

/// The first command of who comes: with the configuration and the secrets that it needs.
fn the_migration_has_what_it_reads(
    once: &serde_json::Value,
    cron: &serde_json::Value,
    schema: &serde_json::Value,
) {
    let mut as_cron = cron.clone();
    as_cron["spec"]["jobTemplate"]["spec"] = once["spec"].clone();
    assert_eq!(misfits(&as_cron, schema, "job"), Vec::<String>::new());
    let pod = &once["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(container["args"], serde_json::json!(["db", "migrate"]));
    let mount = &container["volumeMounts"][0];
    assert_eq!(mount["name"], "config");
    assert_eq!(mount["mountPath"], "/etc/tieout");
    assert_eq!(pod["volumes"][0]["configMap"]["name"], "tieout");
    let secrets = container["envFrom"].as_array().unwrap().iter();
    let secrets: Vec<&str> =
        secrets.map(|secret| secret["secretRef"]["name"].as_str().unwrap()).collect();
    assert_eq!(secrets, ["tieout", "tieout-owner"]);
    // What the file's head selects is what there is.
    for (job, part) in [(once, "migrate"), (cron, "run")] {
        assert_eq!(job["metadata"]["labels"]["app.kubernetes.io/component"], part);
        let selects = format!("-l app.kubernetes.io/component={part}");
        assert!(file("kubernetes.yaml").contains(&selects), "{selects}");
    }
}

/// What a package leaves where a timer was enabled: nothing, once it is purged.
#[test]
fn purging_the_package_takes_the_timers_links_along() {
    let folder = tempfile::tempdir().unwrap();
    let wants = folder.path().join("etc/systemd/system/timers.target.wants");
    std::fs::create_dir_all(&wants).unwrap();
    let links = ["tieout.timer", "tieout-daily.timer", "other.timer"];
    let left = |word: &str| -> Vec<String> {
        for link in links {
            drop(std::fs::remove_file(wants.join(link)));
            std::os::unix::fs::symlink("/nowhere", wants.join(link)).unwrap();
        }
        let script = root().join("packaging/debian/postrm");
        let run = Command::new("sh").arg(script).arg(word).env("DPKG_ROOT", folder.path()).status();
        assert!(run.unwrap().success(), "{word}");
        let found = std::fs::read_dir(&wants).unwrap();
        let mut found: Vec<String> =
            found.map(|link| link.unwrap().file_name().into_string().unwrap()).collect();
        found.sort();
        found
    };
    assert_eq!(left("remove").len(), 3);
    assert_eq!(left("purge"), ["other.timer"]);
}

#[test]
fn kubernetes_takes_the_cron_jobs() {
    let schema = root().join("fixtures/kubernetes/cronjob.schema.json");
    let schema = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    let jobs = yaml_rust2::YamlLoader::load_from_str(&file("kubernetes.yaml")).unwrap();
    let (once, jobs): (Vec<_>, Vec<_>) =
        jobs.iter().map(json_of).partition(|job| job["kind"] == "Job");
    assert_eq!((once.len(), jobs.len()), (1, 2));
    the_migration_has_what_it_reads(&once[0], &jobs[0], &schema);
    for job in &jobs {
        let job = job.clone();
        assert_eq!(misfits(&job, &schema, "job"), Vec::<String>::new());
        let pod = &job["spec"]["jobTemplate"]["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        let words = container["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
        let parsed =
            tieout::cli::command().try_get_matches_from(["tieout"].into_iter().chain(words));
        assert!(parsed.is_ok(), "{}", parsed.unwrap_err());
        // What it would see of a slip.
        for (pointer, wrong) in [
            ("/spec/concurrencyPolicy", serde_json::json!(7)),
            ("/spec/schedule", serde_json::json!(10)),
            ("/spec/jobTemplate/spec/backofLimit", serde_json::json!(2)),
        ] {
            let mut job = job.clone();
            let (place, name) = pointer.rsplit_once('/').unwrap();
            job.pointer_mut(place).unwrap()[name] = wrong;
            assert_eq!(misfits(&job, &schema, "job").len(), 1, "{pointer}");
        }
    }
    // Every exit code is placed: to be tried again, or not.
    let rules = &jobs[0]["spec"]["jobTemplate"]["spec"]["podFailurePolicy"]["rules"];
    assert_eq!(rules[0]["onExitCodes"]["values"], serde_json::json!([1, 2, 5, 10, 12, 13, 15, 16]));
}
