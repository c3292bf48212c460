//! `--dry-run` writes nothing anywhere, and says what the next run then does.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tieout::sandbox::faults::{Action, FaultRule};
use tieout::sandbox::seeds::Seed;
use tieout::sandbox::situations::Situation;

use super::files::{at_bank, bring, camt, credit, with_bank};
use super::shop::{Engine, Payment, Ran, Shop, on_both_databases};
use crate::support::raw::Raw;

on_both_databases!(
    a_rehearsal_writes_nothing_and_foretells_the_run,
    a_rehearsal_ends_as_the_run,
    a_rehearsal_looks_at_the_cases_that_lines_tell_of,
    a_rehearsal_of_a_window_leaves_out_what_the_run_does,
);

/// A shop with rows in several situations, some known from earlier runs and some new.
async fn busy(engine: Engine) -> Shop {
    let mut shop = Shop::open(engine).await;
    shop.background(60).await;
    let declined = Payment::stuck(4).captured().standing(Situation::Declined);
    shop.plant(vec![Seed { decline_code: Some("insufficient_funds".to_owned()), ..declined }]);
    shop.insert(&[Payment::stuck(2), Payment::stuck(4)]).await;
    shop.run().await.ended(0);
    shop.a_span_passes().await;
    shop.run_with(&["--id", "2"]).await.ended(0);
    shop.a_span_passes().await;
    let rows: Vec<Payment> = (5..=9).map(Payment::stuck).collect();
    shop.plant(rows.iter().take(4).map(Payment::captured).collect());
    shop.plant(vec![Seed { id: Some("pi_second".to_owned()), ..Payment::stuck(8).captured() }]);
    shop.insert(&rows).await;
    shop.insert(&[Payment { amount: None, ..Payment::stuck(10) }]).await;
    shop
}

fn transitions(ran: &Ran) -> Vec<String> {
    let line = |v: serde_json::Value| {
        format!(
            "{} {} {} {}→{} {} {}",
            v["txn_id"], v["outcome"], v["reason"], v["from"], v["to"], v["psp_txn"], v["handback"]
        )
    };
    let mut lines: Vec<String> = ran.of_type("verdict").into_iter().map(line).collect();
    lines.sort();
    lines
}

async fn a_rehearsal_writes_nothing_and_foretells_the_run(engine: Engine) {
    let shop = busy(engine).await;
    let (before, files) = (shop.dump().await, shop.files());
    let rehearsed = shop.run_with(&["--dry-run"]).await.ended(0);
    let text = shop.tieout(&["run", "--dry-run"]).await.ended(0);
    assert!(text.stdout.contains("DRY RUN") || text.stdout.contains("dry run"), "{}", text.stdout);
    assert_eq!(shop.dump().await, before, "not a row of any table");
    assert_eq!(shop.files(), files, "not a file");
    let ran = shop.run().await.ended(0);
    assert_eq!(transitions(&rehearsed), transitions(&ran));
    assert_eq!(transitions(&ran).len(), 8, "{:?}", transitions(&ran));
    assert_eq!(shop.status(2).await, "retry");
    assert_eq!(shop.status(5).await, "paid");
    shop.check(false).await;
}

async fn a_rehearsal_ends_as_the_run(engine: Engine) {
    let shop = busy(engine).await;
    shop.sandbox.scenario("outage").unwrap();
    let before = shop.dump().await;
    let rehearsed = shop.run_with(&["--dry-run"]).await.ended(3);
    assert_eq!(shop.dump().await, before);
    let ran = shop.run().await.ended(3);
    assert_eq!(transitions(&rehearsed), transitions(&ran));
    shop.check(false).await;
}

/// What a person is to decide, and files tell more of since: of the one more is paid than it asks
/// for, and the other's money comes in two files.
async fn a_rehearsal_looks_at_the_cases_that_lines_tell_of(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    shop.insert(&[1, 2, 3].map(|id| at_bank(id, "processing"))).await;
    let first = [credit(9_000, "pay_1"), credit(9_000, "pay_2"), credit(10_003, "pay_3")];
    bring(&shop, "first.xml", &camt("camt.053", "S1", &first), 0).await;
    shop.run().await.ended(0);
    assert_eq!(shop.open_cases().await, ["1 amount_mismatch", "2 amount_mismatch"]);
    shop.due_now().await;
    let second = [credit(10_001, "pay_1"), credit(10_003, "pay_3")];
    bring(&shop, "second.xml", &camt("camt.053", "S2", &second), 0).await;
    let before = shop.dump().await;
    let rehearsed = shop.run_with(&["--dry-run"]).await;
    assert_eq!(shop.dump().await, before);
    let ran = shop.run().await;
    assert_eq!(transitions(&rehearsed), transitions(&ran));
    assert_eq!(transitions(&ran).len(), 2, "{:?}", transitions(&ran));
    let again = shop.run_with(&["--dry-run"]).await;
    assert_eq!(transitions(&again), transitions(&shop.run().await), "it is told once");
    shop.check(false).await;
}

/// Lines contradict rows that ended, in the window and before it; and by how many are asked for.
async fn a_rehearsal_of_a_window_leaves_out_what_the_run_does(engine: Engine) {
    for (words, decided) in
        [(&["--since", "1d"][..], 1), (&["--id", "3"], 1), (&["--limit", "1"], 1), (&[], 3)]
    {
        let shop = Shop::open_with(engine, with_bank()).await;
        let old = |id| Payment { age: 5 * 86_400, ..at_bank(id, "paid") };
        shop.insert(&[old(1), old(2), at_bank(3, "paid")]).await;
        let lines = [credit(9_000, "pay_1"), credit(9_000, "pay_2"), credit(9_000, "pay_3")];
        bring(&shop, "stmt.xml", &camt("camt.053", "S1", &lines), 0).await;
        let rehearsed = shop.run_with(&[&["--dry-run"], words].concat()).await;
        let ran = shop.run_with(words).await;
        assert_eq!(transitions(&rehearsed), transitions(&ran), "{words:?}");
        assert_eq!(transitions(&ran).len(), decided, "{words:?}");
        shop.check(false).await;
    }
}

/// A login that may only read sees what the run does, whatever it asks for: nothing is asked of the
/// server that reading alone does not allow.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_that_may_only_read_foretells_the_run() {
    let mut shop = busy(Engine::Postgres).await;
    let before = shop.dump().await;
    let asked: [&[&str]; 3] = [
        &["--dry-run"],
        &["--dry-run", "--id", "5", "--id", "9"],
        &["--dry-run", "--all", "--since", "3h"],
    ];
    let mut whole = Vec::new();
    for words in asked {
        whole.push(shop.run_with(words).await);
    }
    shop.under_role("read").await;
    for (words, whole) in asked.iter().zip(&whole) {
        let read = shop.run_with(words).await;
        assert_eq!(read.code, whole.code, "{words:?}: {}", read.stderr);
        assert_eq!(transitions(&read), transitions(whole), "{words:?}");
        let compared = |ran: &Ran| ran.of_type("run_end")[0]["compared"].clone();
        assert_eq!(compared(&read), compared(whole), "{words:?}");
    }
    // What it foretells, it cannot do.
    let refused = shop.tieout(&["run"]).await.ended(10);
    assert!(refused.stderr.contains("may not write `status`"), "{}", refused.stderr);
    assert_eq!(shop.dump().await, before, "not a row of any table");
    shop.under_role("run").await;
    let ran = shop.run().await.ended(0);
    assert_eq!(transitions(&ran), transitions(&whole[0]));
    // A kick is a run, too.
    let kick = ["cases", "kick", "--all", "--dry-run"];
    let whole = shop.tieout(&kick).await;
    shop.under_role("read").await;
    let before = shop.dump().await;
    let read = shop.tieout(&kick).await;
    assert_eq!(read.code, whole.code, "{}", read.stderr);
    assert!(read.stdout.contains("dry run: nothing was written anywhere"), "{}", read.stdout);
    assert_eq!(shop.dump().await, before);
    shop.check(false).await;
}

/// The program, held to the rights of files, which root is not.
fn held_to_rights(shop: &Shop, args: &[&str]) -> tokio::process::Command {
    let program = shop.program(args);
    if !rustix::process::getuid().is_root() {
        return program;
    }
    let own = program.as_std();
    let mut command = tokio::process::Command::new("setpriv");
    command
        .arg("--bounding-set=-dac_override,-dac_read_search")
        .arg(own.get_program())
        .args(own.get_args())
        .env_clear()
        .envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .current_dir(shop.folder())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

fn allow(path: &Path, rights: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(rights)).unwrap();
}

/// Nothing holds the file of a shop open any more, and no log lies beside it.
async fn leave_alone(shop: &Shop) {
    shop.raw.clone().close().await;
    assert_eq!(beside(shop), [false, false]);
}

/// Whether the log and its index are there.
fn beside(shop: &Shop) -> [bool; 2] {
    ["shop.db-wal", "shop.db-shm"].map(|name| shop.folder().join(name).exists())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_only_reads_foretells_the_run() {
    let mut shop = busy(Engine::Sqlite).await;
    let before = shop.dump().await;
    shop.words.database = Some(format!("{}?mode=ro", shop.place()));
    shop.write_words();
    let read = shop.run_with(&["--dry-run"]).await.ended(0);
    let all = shop.run_with(&["--dry-run", "--all", "--since", "3h"]).await;
    assert!(all.of_type("run_end")[0]["compared"].is_object(), "{}", all.stderr);
    assert_eq!(shop.dump().await, before);
    let refused = shop.tieout(&["run"]).await.ended(10);
    assert!(refused.stderr.contains("read-only"), "{}", refused.stderr);
    shop.words.database = None;
    shop.write_words();
    let ran = shop.run().await.ended(0);
    assert_eq!(transitions(&read), transitions(&ran));
    shop.check(false).await;
}

/// Its user may not write the file, and make others beside it or not. Nothing is made there: what
/// that user made the application could not write, nor its own file any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_may_only_be_read_foretells_the_run() {
    let mut shop = busy(Engine::Sqlite).await;
    let whole = shop.run_with(&["--dry-run"]).await.ended(0);
    let (place, file) = (shop.place().to_owned(), shop.folder().join("shop.db"));
    leave_alone(&shop).await;
    let before = std::fs::read(&file).unwrap();
    for folder in [0o755, 0o555] {
        allow(&file, 0o444);
        allow(shop.folder(), folder);
        let mut plans = Vec::new();
        for words in [&["run", "--json", "--dry-run"][..], &["config", "check", "--connect"]] {
            plans.push(Ran::of(&held_to_rights(&shop, words).output().await.unwrap()));
        }
        allow(shop.folder(), 0o755);
        allow(&file, 0o644);
        for plan in &plans {
            assert_eq!(plan.code, Some(0), "{folder:o}: {}", plan.stderr);
        }
        assert_eq!(transitions(&plans[0]), transitions(&whole), "{folder:o}");
        assert_eq!(beside(&shop), [false, false], "{folder:o}");
    }
    assert!(std::fs::read(&file).unwrap() == before, "not a byte of it");
    // The application goes on as ever. While it has the file open its log is there, and is read.
    shop.raw = Raw::open(&place).await;
    shop.raw.execute("update payments set note = 'x' where id = 10").await;
    assert_eq!(beside(&shop), [true, true]);
    allow(&file, 0o444);
    let read = held_to_rights(&shop, &["run", "--json", "--dry-run"]).output().await.unwrap();
    allow(&file, 0o644);
    assert_eq!(transitions(&Ran::of(&read).ended(0)), transitions(&whole));
    let ran = shop.run().await.ended(0);
    assert_eq!(transitions(&ran), transitions(&whole));
    shop.check(false).await;
}

/// Whoever only looks needs no more than to read, by the rights or by the address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_may_only_be_read_is_looked_into() {
    let mut shop = busy(Engine::Sqlite).await;
    shop.run().await.ended(0);
    let file = shop.folder().join("shop.db");
    leave_alone(&shop).await;
    let before = std::fs::read(&file).unwrap();
    let place = shop.place().to_owned();
    let words: [&[&str]; 10] = [
        &["files", "list"],
        &["files", "quarantine"],
        &["files", "expected"],
        &["cases", "list"],
        &["explain", "10"],
        &["audit", "verify"],
        &["runs", "list"],
        &["rules", "stats"],
        &["deliver", "list"],
        &["db", "status"],
    ];
    let mut usual = Vec::new();
    for words in words {
        usual.push(shop.tieout(words).await);
    }
    leave_alone(&shop).await;
    for (file_rights, folder, end) in
        [(0o444, 0o755, ""), (0o444, 0o555, ""), (0o644, 0o555, ""), (0o644, 0o755, "?mode=ro")]
    {
        shop.words.database = Some(format!("{place}{end}"));
        shop.write_words();
        allow(&file, file_rights);
        allow(shop.folder(), folder);
        let mut all = Vec::new();
        for words in words {
            all.push(Ran::of(&held_to_rights(&shop, words).output().await.unwrap()));
        }
        allow(shop.folder(), 0o755);
        allow(&file, 0o644);
        for ((ran, usual), words) in all.iter().zip(&usual).zip(words) {
            let doing = format!("{words:?} {file_rights:o} {folder:o} {end}: {}", ran.stderr);
            // Ages and days go on with the clock.
            let rows = |ran: &Ran| (ran.code, ran.stdout.lines().count());
            assert_eq!(rows(ran), rows(usual), "{doing}");
        }
        // Who may write there makes a log as SQLite always does, whatever the address says.
        assert!(!end.is_empty() || beside(&shop) == [false, false], "{folder:o}");
        assert!(std::fs::read(&file).unwrap() == before, "not a byte of it");
    }
    // What writes says why it does not.
    let ran = shop.tieout(&["run"]).await.ended(10);
    assert!(ran.stderr.contains("says mode=ro, take that out"), "{}", ran.stderr);
}

/// Where no lock can be held, what was read may not fit together: that is told, and not a plan.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_written_while_it_is_read_is_told_of() {
    let mut shop = busy(Engine::Sqlite).await;
    let (place, file) = (shop.place().to_owned(), shop.folder().join("shop.db"));
    leave_alone(&shop).await;
    allow(&file, 0o444);
    shop.sandbox.clear_requests();
    shop.sandbox.fault(FaultRule::always(Action::Delay { ms: 900 }));
    let child = held_to_rights(&shop, &["run", "--dry-run"]).spawn().unwrap();
    for _try in 0..3_000 {
        if shop.sandbox.total_requests() > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    allow(&file, 0o644);
    shop.raw = Raw::open(&place).await;
    shop.insert(&[Payment::stuck(11)]).await;
    let ran = Ran::of(&child.wait_with_output().await.unwrap()).ended(14);
    assert!(ran.stderr.contains("was written while it was read"), "{}", ran.stderr);
    shop.sandbox.clear_faults();
    shop.run().await.ended(0);
    shop.check(false).await;
}
