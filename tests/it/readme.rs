//! What the README says is tried: its commands, its configuration, its links, its exit codes.
//!
//! A fenced block or command of another kind fails here until it is tried as well.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use regex::Regex;
use tieout::exit::Exit;
use tieout::model::reason::Reason;
use tieout::sandbox::Sandbox;
use tieout::sandbox::seeds::Seed;
use tieout::sandbox::settings::Settings;

use crate::run::shop::Ran;
use crate::support::postgres::postgres_database;
use crate::support::raw::Raw;
use crate::support::tieout_bin;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn readme() -> String {
    std::fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap()
}

/// The fenced blocks: language and text.
fn blocks(text: &str) -> Vec<(String, String)> {
    let fenced = Regex::new(r"(?ms)^```(\w*)\n(.*?)^```$").unwrap();
    fenced.captures_iter(text).map(|c| (c[1].to_owned(), c[2].to_owned())).collect()
}

/// The one that begins so.
fn block(language: &str, begins: &str) -> String {
    let mut own = blocks(&readme()).into_iter().filter(|(of, _)| of == language);
    let found = own.find(|(_, text)| text.starts_with(begins));
    found.unwrap_or_else(|| panic!("the README has no {language} block with {begins}")).1
}

/// The commands of a block of the shell, without what is said of them.
fn commands(block: &str) -> Vec<String> {
    block.lines().map(|line| line.split(" #").next().unwrap().trim().to_owned()).collect()
}

/// Runs the program as in a shell that has these variables and nothing else of tieout's.
fn tieout(folder: &Path, words: &[&str], env: &[(&str, &str)]) -> Ran {
    let mut command = std::process::Command::new(tieout_bin());
    command.args(words).current_dir(folder).env_clear().envs(env.iter().copied());
    Ran::of(&command.output().unwrap())
}

#[test]
fn every_fenced_block_is_of_a_kind_that_is_tried() {
    let shell = blocks(&readme()).into_iter().filter(|(language, _)| language == "sh");
    assert_eq!(shell.count(), 2, "another one is to be tried here as well");
    for (language, text) in blocks(&readme()) {
        let is_tried = matches!(language.as_str(), "sh" | "toml");
        let is_picture = language.is_empty() && text.contains('┌');
        assert!(is_tried || is_picture, "nobody tries this {language} block:\n{text}");
    }
}

/// Neither command needs anything: the one is tried here, the other is how this test was run.
#[test]
fn the_first_two_commands_do_what_they_say() {
    let commands = commands(&block("sh", "cargo "));
    assert_eq!(commands, ["cargo run --release -- demo", "./test"]);
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(Path::new(ROOT).join("test")).unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0o111, "./test can be run by everybody");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_makes_what_it_says_and_decides_nothing_twice() {
    let place = tempfile::tempdir().unwrap();
    let ran = tieout(place.path(), &["demo"], &[]).ended(0);
    assert!(ran.stdout.contains("`tieout run` would have exited 3 "), "{}", ran.stdout);
    let folder = place.path().join("tieout-demo");
    let raw = Raw::open(&format!("sqlite://{}", folder.join("demo.db").display())).await;
    let rows: i64 =
        raw.one("select cast(count(*) as text) from tieout_checks").await.parse().unwrap();
    assert!((200..1_000).contains(&rows), "a few hundred stuck rows, and not {rows}");
    assert!(folder.join("tieout.toml").is_file());
    // What it says to try next.
    let try_next = ran.stdout.split("Try next:").nth(1).unwrap();
    let spaces = Regex::new(" {2,}").unwrap();
    let id = raw.one("select min(key) from tieout_journal").await;
    let mut tried = 0;
    for line in try_next.lines().map(str::trim).filter(|line| line.starts_with("tieout ")) {
        let command = spaces.split(line).next().unwrap().replace(" ID", &format!(" {id}"));
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        // A file that does not tie is said to by the exit, too.
        let code = if command.contains("inspect") { 3 } else { 0 };
        let ran = tieout(&folder, &words, &[]).ended(code);
        assert!(!ran.stdout.is_empty(), "{command}");
        tried += 1;
    }
    assert!(tried >= 7, "{try_next}");
    what_the_demos_files_come_to(&raw, &ran.stdout, &folder).await;
    which_reasons_the_demo_shows(&raw).await;
    // Again: no row that is settled is decided anew.
    let settled = "select cast(count(*) as text) from tieout_journal where outcome in \
         ('succeeded', 'failed', 'retryable')";
    let keys = format!("{settled} group by table_name, key having count(*) > 1");
    tieout(place.path(), &["demo"], &[]).ended(0);
    assert_ne!(raw.one(settled).await, "0");
    assert_eq!(raw.rows(&keys).await.len(), 0, "a row was settled twice");
    assert_eq!(raw.one("select cast(count(*) as text) from tieout_files").await, "3");
}

/// Reasons that do not occur in the demo, and why. A new one is shown there, or stands here.
const NOT_IN_THE_DEMO: &[(Reason, &str)] = &[
    (Reason::Voided, "Stripe shows no voided captures, and no file of the demo tells of one"),
    (Reason::Expired, "a shipped rule ends the one that expired: its reason is `rule`"),
    (Reason::ByPerson, "no person decides while it runs"),
    (Reason::WriteRefused, "its own table refuses nothing"),
    (Reason::AccountUnavailable, "an account would have to be silent in it for six hours"),
    (Reason::HandbackNotTaken, "what it handed back was handed back hours ago, not a day"),
    (Reason::Returned, "no file of it tells of money that came back"),
    (Reason::Chargeback, "reserved"),
    (Reason::FeeVariance, "reserved"),
    (Reason::FxVariance, "reserved"),
    (Reason::ToleranceDelta, "it tolerates no difference: it is a beginning for one's own"),
    (Reason::ReferenceMissing, "each line of its files has a reference"),
    (Reason::ReferenceTruncated, "reserved"),
    (Reason::NotInFile, "reserved"),
    (Reason::NotAtPsp, "reserved"),
    (Reason::DateOutOfWindow, "it has no `date_window`"),
    (Reason::FileMissing, "it expects no file"),
    (Reason::FileLineRejected, "reserved"),
    (Reason::StatementCorrected, "no statement of it comes twice"),
    (Reason::PanDetected, "nobody's card number stands in it"),
];

/// Each situation of the decision table occurs, by every reason that the demo can show.
async fn which_reasons_the_demo_shows(raw: &Raw) {
    let shown = "select group_concat(reason, ' ') from (select reason from tieout_journal \
         union select reason from tieout_cases \
         union select reason from tieout_lines where reason is not null)";
    let shown = raw.one(shown).await;
    let shown: BTreeSet<&str> = shown.split(' ').collect();
    let hidden: BTreeSet<Reason> = NOT_IN_THE_DEMO.iter().map(|(reason, _)| *reason).collect();
    let wanted = Reason::ALL.iter().filter(|reason| !hidden.contains(reason));
    let wanted: BTreeSet<&str> = wanted.map(|reason| reason.as_str()).collect();
    assert_eq!(shown, wanted, "only the first shows what the second does not, and so back");
    // The accounts whose names say what is shown there.
    let told = "select group_concat(told, ' ') from (select distinct \
         c.provider || '=' || j.reason as told from charges c \
         join tieout_journal j on j.key = cast(c.id as text) \
         where c.provider in ('one_retry', 'broken_tag', 'slow_clock'))";
    let told = raw.one(told).await;
    let told: BTreeSet<&str> = told.split(' ').collect();
    let wanted = [
        "broken_tag=absence_brake",
        "broken_tag=absence_unproven",
        "broken_tag=within_grace",
        "one_retry=account_changed",
        "one_retry=declined_retryable",
        "one_retry=failure_not_final",
        "one_retry=gave_up",
        "one_retry=watched",
        "one_retry=within_grace",
        "slow_clock=captured",
        "slow_clock=clock_skew",
        "slow_clock=unprovable",
    ];
    assert_eq!(told, BTreeSet::from(wanted));
    let open = "select cast(count(*) as text) from charges c where c.status = 'processing' \
         and c.provider in ('one_retry', 'broken_tag', 'slow_clock')";
    assert_eq!(raw.one(open).await, "13", "none is handed back, and the two that were found end");
}

/// A bank's file that settles, one that is quarantined and says where it does not tie, and a
/// payout to the cent.
async fn what_the_demos_files_come_to(raw: &Raw, said: &str, folder: &Path) {
    let of = |status: &str| {
        format!(
            "select cast(count(*) as text) from charges where provider = 'bank' \
             and status = '{status}'"
        )
    };
    assert_eq!(raw.one(&of("succeeded")).await, "7");
    assert_eq!(raw.one(&of("processing")).await, "5");
    assert!(said.contains("\n7 stuck rows are paid by what the bank's statement says."), "{said}");
    let (_, quarantined) =
        said.split_once("bank/statement-2.xml: quarantined, none of its lines counts:").unwrap();
    let where_not = Regex::new(r"expected [\d.]+ EUR, found [\d.]+ EUR").unwrap();
    let told = quarantined.split_once("stuck rows are paid").unwrap().0.replace("\n    ", " ");
    assert!(where_not.is_match(&told), "{told}");
    assert!(said.contains("payout po_demo1: ") && said.contains("; the bank booked it"), "{said}");
    let path = said.lines().find_map(|line| line.trim().strip_prefix("less reports/")).unwrap();
    let payouts = std::fs::read_to_string(folder.join("reports").join(path)).unwrap();
    assert!(payouts.contains("po_demo1") && payouts.contains("explained"), "{payouts}");
}

const BILLING: &str = "
    create schema billing;
    create table billing.charges (
        id bigint primary key, provider text not null, status text not null,
        amount_cents bigint not null, currency text not null,
        created_at timestamptz not null, last_attempted_at timestamptz);
    create index on billing.charges (status);
    insert into billing.charges values
        (1, 'stripe', 'processing', 1999, 'EUR', now() - interval '3 hours',
         now() - interval '2 hours');";

/// Rows that ended, as every table has them.
const ENDED: &str = "
    insert into billing.charges
    select n, 'stripe', case when n % 2 = 0 then 'succeeded' else 'failed' end, 1999, 'EUR',
        now() - interval '4 hours', now() - interval '4 hours' from generate_series(2, 9) n";

const COLUMNS: &str = "select table_name || '.' || column_name || ' ' || data_type \
     from information_schema.columns where table_schema = 'billing' order by 1";

/// The ten lines as they are printed. What an editor is opened for is only where the PSP is.
#[tokio::test(flavor = "multi_thread")]
async fn ten_lines_lead_to_the_first_run() {
    let lines = commands(&block("sh", "export "));
    assert_eq!(lines.len(), 10);
    let place = tempfile::tempdir().unwrap();
    let database = postgres_database().await;
    database.execute(BILLING).await;
    database.execute(ENDED).await;
    let sandbox = Sandbox::start(Settings::default()).await.unwrap();
    let sent = chrono::Utc::now().timestamp() - 2 * 3_600;
    let paid = Seed::captured("internal_id", "1", 1_999, "eur").created_at(sent);
    sandbox.seed([paid]).unwrap();
    let names = ["DATABASE_URL", "STRIPE_KEY"];
    let env = [(names[0], database.url()), (names[1], "sk_test_readme")];
    assert!(names.iter().all(|name| lines[0].contains(&format!("{name}="))), "{}", lines[0]);
    assert_eq!(lines[2], "$EDITOR tieout.toml");
    for line in &lines[1..] {
        if line.starts_with('$') {
            let file = place.path().join("tieout.toml");
            let text = std::fs::read_to_string(&file).unwrap();
            let here = format!("psp = \"stripe\"\nbase_url = \"{}\"", sandbox.base_url());
            let asks_for = |line: &&str| !line.starts_with('#') && line.contains("???");
            assert_eq!(text.lines().find(asks_for), None, "nothing is left open");
            std::fs::write(&file, text.replacen("psp = \"stripe\"", &here, 1)).unwrap();
            continue;
        }
        let words = line.strip_prefix("tieout ").unwrap().replace('"', "");
        let ran = tieout(place.path(), &words.split(' ').collect::<Vec<_>>(), &env).ended(0);
        // From cron, a good run prints nothing.
        assert_eq!(ran.stdout.is_empty(), words == "run", "{line}: {}", ran.stdout);
    }
    let raw = Raw::open(database.url()).await;
    assert_eq!(raw.one("select status from billing.charges where id = 1").await, "succeeded");
    raw.close().await;
}

/// The configuration as it is printed, with nothing but the sandbox in the place of Stripe.
#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_works_as_it_is_told() {
    let text = block("toml", "business_timezone");
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("tieout.toml");
    let database = postgres_database().await;
    database.execute(BILLING).await;
    let env = [("DATABASE_URL", database.url()), ("STRIPE_KEY", "sk_test_readme")];
    let tieout = |words: &[&str]| tieout(place.path(), words, &env);

    std::fs::write(&file, &text).unwrap();
    tieout(&["config", "check"]).ended(0);

    let sandbox = Sandbox::start(Settings::default()).await.unwrap();
    let here = format!("livemode = false\nbase_url = \"{}\"", sandbox.base_url());
    assert_eq!(text.matches("livemode = true").count(), 1);
    std::fs::write(&file, text.replace("livemode = true", &here)).unwrap();
    let sent = chrono::Utc::now().timestamp() - 2 * 3_600;
    let paid = Seed::captured("internal_id", "1", 1_999, "eur").created_at(sent);
    sandbox.seed([paid]).unwrap();

    let raw = Raw::open(database.url()).await;
    let columns = raw.rows(COLUMNS).await;
    let charges = "select cast(c as text) from billing.charges c";
    let before = raw.one(charges).await;
    tieout(&["db", "migrate"]).ended(0);
    let ran = tieout(&["run", "--dry-run"]).ended(0);
    assert!(ran.stdout.contains("captured"), "{}", ran.stdout);
    assert_eq!(raw.one(charges).await, before);
    assert_eq!(raw.one("select cast(count(*) as text) from tieout_runs").await, "0");
    // From cron, a good run prints nothing.
    let ran = tieout(&["run"]).ended(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    assert_eq!(raw.one("select status from billing.charges").await, "succeeded");
    assert_eq!(raw.rows(COLUMNS).await, columns);
    tieout(&["explain", "1"]).ended(0);
    raw.close().await;
}

/// Every command that a text names is one that the program takes.
fn assert_taken(place: &str, command: &str) {
    let words = command.split_whitespace();
    let taken = tieout::cli::command().try_get_matches_from(words);
    let is_help = |error: &clap::Error| {
        matches!(
            error.kind(),
            clap::error::ErrorKind::DisplayHelp
                | clap::error::ErrorKind::DisplayVersion
                // A group of commands by its name.
                | clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        )
    };
    if let Err(error) = taken
        && !is_help(&error)
    {
        panic!("{place} says `{command}`: {error}");
    }
}

#[test]
fn every_command_that_is_named_exists() {
    let named = Regex::new(r"`(tieout [^`]+)`").unwrap();
    let mut count = 0;
    for name in ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/reports.md"] {
        let text = std::fs::read_to_string(Path::new(ROOT).join(name)).unwrap();
        for command in named.captures_iter(&text) {
            assert_taken(name, &command[1]);
            count += 1;
        }
    }
    assert!(count >= 5, "{count}");
}

#[test]
fn every_example_of_the_help_is_taken() {
    let mut commands = vec![tieout::cli::command()];
    let mut count = 0;
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands().cloned());
        let Some(after) = command.get_after_help() else { continue };
        let after = after.to_string();
        let examples = after.lines().filter_map(|line| line.strip_prefix("  tieout "));
        for example in examples {
            // Two blanks part a command from what is said of it; what else ends it is the shell's.
            let words = example.split("  ").next().unwrap().split(['|', '>']).next().unwrap();
            assert_taken(command.get_name(), &format!("tieout {words}"));
            count += 1;
        }
    }
    assert!(count >= 20, "{count}");
}

#[test]
fn every_link_leads_somewhere() {
    let link = Regex::new(r"\]\(([^)#]+)[^)]*\)").unwrap();
    for name in ["README.md", "CONTRIBUTING.md", "docs/reports.md"] {
        let path = Path::new(ROOT).join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        let targets = link.captures_iter(&text).map(|c| c[1].to_owned());
        for target in targets.filter(|target| !target.starts_with("http")) {
            assert!(path.parent().unwrap().join(&target).exists(), "{name}: {target}");
        }
    }
}

#[test]
fn the_table_of_exit_codes_is_the_programs() {
    let text = readme();
    let table = text.split("## Exit codes").nth(1).unwrap().split("An unknown code").next();
    let cell = Regex::new(r"\| (\d+(?:, \d+)*) \|").unwrap();
    let mut told: Vec<u8> = cell
        .captures_iter(table.unwrap())
        .flat_map(|c| c[1].split(", ").map(|code| code.parse().unwrap()).collect::<Vec<u8>>())
        .collect();
    told.sort_unstable();
    let mut all: Vec<u8> = Exit::BY_PRECEDENCE.iter().map(|exit| exit.code()).collect();
    all.sort_unstable();
    assert_eq!(told, all);
    let by_code: BTreeMap<u8, &str> =
        Exit::BY_PRECEDENCE.iter().map(|exit| (exit.code(), exit.class())).collect();
    assert_eq!(by_code.len(), all.len(), "two ends share a code");
}
