//! `tieout db prune`, killed at any instant: each run is there whole or gone whole, and the chain
//! verifies every time.

use std::time::Duration;

use tieout::sandbox::seeds::Seed;
use tieout::sandbox::situations::Situation;

use crate::run::shop::{Engine, Payment, Shop, Words, at_text, on_both_databases, tieout_now};

on_both_databases!(
    a_killed_prune_leaves_whole_runs,
    a_report_outlives_the_records_of_its_run,
    what_nobody_took_in_time_costs_no_attempt_after_a_prune,
    a_case_outlives_the_records_of_its_row,
);

const RUNS: i64 = 8;

/// A shop with old runs of some rows each.
async fn old_shop(engine: Engine) -> Shop {
    let mut shop = Shop::open_with(engine, Words::default().patient()).await;
    for run in 0..RUNS {
        let rows: Vec<Payment> = (1..=5).map(|n| Payment::stuck(run * 10 + n)).collect();
        shop.insert(&rows).await;
        shop.plant(rows.iter().map(Payment::captured).collect());
        shop.run().await.ended(0);
    }
    a_year_passes(&shop).await;
    shop
}

/// For runs, and for the evidence too, which nobody may change.
async fn a_year_passes(shop: &Shop) {
    let age = match shop.engine {
        Engine::Sqlite => {
            "drop trigger tieout_evidence_no_update;
             update tieout_evidence set created_at = '2020' || substr(created_at, 5);
             create trigger tieout_evidence_no_update before update on tieout_evidence begin
                select raise(abort, 'tieout_evidence is append-only: UPDATE is refused'); end;
             drop trigger if exists tieout_runs_closed;
             update tieout_runs set started_at = '2020' || substr(started_at, 5),
                ended_at = '2020' || substr(ended_at, 5)"
        }
        Engine::Postgres => {
            "alter table tieout_evidence disable trigger tieout_evidence_append_only;
             update tieout_evidence set created_at = created_at - interval '400 days';
             alter table tieout_evidence enable trigger tieout_evidence_append_only;
             alter table tieout_runs disable trigger tieout_runs_closed;
             update tieout_runs set started_at = started_at - interval '400 days',
                ended_at = ended_at - interval '400 days';
             alter table tieout_runs enable trigger tieout_runs_closed"
        }
    };
    shop.raw.execute(age).await;
}

/// A hand-back that lapsed is no attempt, however long ago it was.
async fn what_nobody_took_in_time_costs_no_attempt_after_a_prune(engine: Engine) {
    let words = Words { sinks: String::new(), ..Words::default() };
    let mut shop = Shop::open_with(engine, words.policy("max_retries", "1")).await;
    shop.background(60).await;
    shop.insert(&[Payment::stuck(1)]).await;
    shop.run_until_proven().await;
    let lapses = async || {
        let past = at_text(tieout_now() - 1);
        let late = format!(
            "update tieout_handbacks set charge_before = '{past}' \
                            where ended_at is null"
        );
        shop.raw.execute(&late).await;
        for _look in 0..3 {
            shop.run().await;
            shop.a_span_passes().await;
        }
    };
    let ends = "select coalesce(end_reason, 'open') from tieout_handbacks order by number";
    lapses().await;
    assert_eq!(shop.texts(ends).await, ["lapsed", "open"]);
    a_year_passes(&shop).await;
    shop.tieout(&["db", "prune", "--keep", "90d", "--yes"]).await.ended(0);
    assert_eq!(shop.count("tieout_journal").await, 0, "everything old is gone");
    lapses().await;
    assert_eq!(shop.texts(ends).await, ["lapsed", "lapsed", "open"]);
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    shop.tieout(&["audit", "verify"]).await.ended(0);
}

/// A row with a case is left alone, so that its records are pruned while a person still has it.
async fn a_case_outlives_the_records_of_its_row(engine: Engine) {
    let mut shop = Shop::open_with(engine, Words::default()).await;
    shop.background(30).await;
    let (odd, good) = (Payment::stuck(1), Payment::stuck(2));
    let refused = odd.captured().standing(Situation::Declined);
    shop.plant(vec![
        Seed { decline_code: Some("never_heard_of".to_owned()), ..refused },
        good.captured(),
    ]);
    shop.insert(&[odd, good]).await;
    shop.run().await;
    let case = shop.open_cases().await;
    assert_eq!(case.len(), 1, "{case:?}");
    let reason = case[0].strip_prefix("1 ").unwrap();
    a_year_passes(&shop).await;
    shop.tieout(&["db", "prune", "--keep", "90d", "--yes"]).await.ended(0);
    assert_eq!(shop.count("tieout_journal").await, 0, "everything old is gone");
    let screen = shop.tieout(&["explain", "1"]).await.ended(0).stdout;
    assert!(screen.contains("its decisions were pruned; its case is there"), "{screen}");
    assert!(screen.contains(&format!("C-1, open, {reason}: ")), "{screen}");
    assert!(screen.contains("next       case C-1, opened 20"), "{screen}");
    let row = &shop.tieout(&["explain", "1", "--json"]).await.ended(0).of_type("row")[0];
    assert_eq!(row["case"], "C-1", "{row}");
    let screen = shop.tieout(&["explain", "2"]).await.ended(0).stdout;
    assert!(screen.contains("its decisions were pruned\n"), "{screen}");
}

/// What the files prove by themselves is verified, and what nobody can prove any more is said.
async fn a_report_outlives_the_records_of_its_run(engine: Engine) {
    let shop = old_shop(engine).await;
    let run = shop.texts("select min(id) from tieout_runs").await.remove(0);
    let built = shop.tieout(&["report", "build", &run, "--json"]).await.ended(0);
    let dir = built.of_type("report_built")[0]["dir"].as_str().unwrap().to_owned();
    let words = ["report", "verify", &dir, "--database", "--json"];
    let told = shop.tieout(&words).await.ended(0);
    assert_eq!(told.of_type("report_verified")[0]["rebuilt"], "same");
    shop.tieout(&["db", "prune", "--keep", "90d", "--yes"]).await.ended(0);
    let told = shop.tieout(&words).await.ended(3);
    let event = &told.of_type("report_verified")[0];
    assert_eq!((&event["rebuilt"], &event["sound"]), (&"pruned".into(), &true.into()));
    assert!(told.stderr.contains("partial: its records were pruned 20"), "{}", told.stderr);
    let shown = shop.tieout(&["report", "verify", &run]).await.ended(0).stdout;
    assert!(shown.contains("by its files\n"), "{shown}");
    // A figure is found all the same, and so is another head.
    let file = shop.folder().join(&dir).join("manifest.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let head = event["audit_head"].as_str().unwrap();
    std::fs::write(&file, text.replace(head, &"0".repeat(64))).unwrap();
    let told = shop.tieout(&words).await.ended(16);
    assert!(told.stderr.contains("the audit head is 0000"), "{}", told.stderr);
}

async fn a_killed_prune_leaves_whole_runs(engine: Engine) {
    let shop = old_shop(engine).await;
    let prune = ["db", "prune", "--keep", "90d"];
    let said = shop.tieout(&prune).await.ended(2);
    assert!(said.stderr.contains("add --yes"), "{}", said.stderr);
    shop.tieout(&["db", "prune", "--keep", "1d", "--yes"]).await.ended(2);
    let planned = shop.tieout(&[&prune[..], &["--dry-run"]].concat()).await.ended(0).stdout;
    assert!(planned.contains("would delete 40 records of 8 runs"), "{planned}");
    let mut narrow = shop.program(&[&prune[..], &["--dry-run"]].concat());
    let shown = narrow.env_remove("COLUMNS").output().await.unwrap().stdout;
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    assert!(shown.contains("Nothing was deleted"), "{shown}");
    assert_eq!(shop.count("tieout_journal").await, 40);
    let payments = shop.dump().await.remove("payments");
    let mut left = vec![40];
    for pause in 0..12_u64 {
        let mut program = shop.program(&[&prune[..], &["--yes"]].concat()).spawn().unwrap();
        tokio::time::sleep(Duration::from_millis(20 + pause * 5)).await;
        let _ended_before = program.start_kill();
        program.wait().await.unwrap();
        left.push(shop.count("tieout_journal").await);
        let torn = "tieout_runs r where journal_count <> 5 \
                    or (select count(*) from tieout_journal j where j.run_id = r.id) not in (0, 5) \
                    or ((select count(*) from tieout_journal j where j.run_id = r.id) = 0) \
                    <> exists (select 1 from tieout_prunes p where p.run_id = r.id)";
        assert_eq!(shop.count(torn).await, 0, "a run is torn: {left:?}");
        shop.tieout(&["audit", "verify"]).await.ended(0);
    }
    shop.tieout(&[&prune[..], &["--yes"]].concat()).await.ended(0);
    assert_eq!(shop.count("tieout_journal").await, 0, "{left:?}");
    assert_eq!(shop.count("tieout_evidence").await, 0);
    assert_eq!(shop.count("tieout_references").await, 40, "one object explains one row, for ever");
    let verified = shop.tieout(&["audit", "verify"]).await.ended(0).stdout;
    assert!(verified.contains("8 runs were pruned, and their heads hold"), "{verified}");
    let run = shop.texts("select min(id) from tieout_runs").await.remove(0);
    let shown = shop.tieout(&["runs", "show", &run]).await.ended(0).stdout;
    assert!(shown.starts_with("pruned "), "{shown}");
    // What it noted at its end is all there is, and is told as that.
    let noted = "\nwhat it counted at its end:\n";
    let is_told = shown.split_once(noted).is_some_and(|(_, sums)| sums.contains("succeeded"));
    assert!(is_told && !shown.contains("nothing was due"), "{shown}");
    let built = shop.tieout(&["report", "build", &run]).await.ended(2);
    assert!(built.stderr.contains("its records are gone"), "{}", built.stderr);
    assert_eq!(shop.dump().await.remove("payments"), payments);
    // Life goes on over it.
    let row = Payment::stuck(901);
    shop.insert(std::slice::from_ref(&row)).await;
    shop.sandbox.seed(vec![row.captured()]).unwrap();
    shop.run().await.ended(0);
    shop.tieout(&["audit", "verify"]).await.ended(0);
}
