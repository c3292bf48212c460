//! `tieout db prune`, killed at any instant: each run is there whole or gone whole, and the chain
//! verifies every time.

use std::time::Duration;

use tieout::sandbox::seeds::Seed;
use tieout::sandbox::situations::Situation;

use crate::run::people::{ONE_IS_ENOUGH, confirmed};
use crate::run::shop::{Engine, Payment, Ran, Shop, Words, at_text, on_both_databases, tieout_now};

on_both_databases!(
    a_killed_prune_leaves_whole_runs,
    a_report_outlives_the_records_of_its_run,
    what_nobody_took_in_time_costs_no_attempt_after_a_prune,
    a_case_outlives_the_records_of_its_row,
    a_closed_case_that_somebody_waits_for_is_kept,
    what_a_prune_left_is_purged,
    a_purge_shows_what_goes_and_how_many_stay,
    what_people_decided_is_known_while_its_row_is_watched,
    who_ended_a_watched_row_last_is_kept,
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

/// As the last look of every watch that ends leaves the rows.
async fn all_watches_end(shop: &Shop) {
    let end = "update tieout_checks set state = 'closed', next_check_at = null \
               where state = 'watch'";
    shop.raw.execute(end).await;
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
    all_watches_end(&shop).await;
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
    assert!(!planned.contains("keep"), "nothing stays: {planned}");
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
    // Nothing is left to ask about, and what was done is no plan.
    let said = shop.tieout(&prune).await.ended(0).stdout;
    assert!(said.starts_with("deleted 0 records of 0 runs that ended before "), "{said}");
    assert!(said.ends_with(", and 0 closed cases that they opened\n"), "{said}");
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

const PRUNE: &[&str] = &["db", "prune", "--keep", "90d"];
const PURGE: &[&str] = &["cases", "purge", "--keep", "90d"];

/// Rows that were captured twice, and the open case of each.
async fn with_cases(engine: Engine, rows: i64) -> Shop {
    let words = Words { more: ONE_IS_ENOUGH.to_owned(), ..Words::default() };
    let mut shop = Shop::open_with(engine, words).await;
    shop.background(60).await;
    let payments: Vec<Payment> = (1..=rows).map(Payment::stuck).collect();
    let again = |payment: &Payment| Seed { id: Some(other(payment.id)), ..payment.captured() };
    shop.insert(&payments).await;
    shop.plant(payments.iter().flat_map(|one| [one.captured(), again(one)]).collect());
    shop.run().await.ended(0);
    let subjects = shop.texts("select subject from tieout_cases order by number").await;
    assert!(subjects.iter().zip(1..).all(|(at, row)| *at == row.to_string()), "{subjects:?}");
    shop
}

fn other(row: i64) -> String {
    format!("pi_{row}{row}")
}

async fn decide(shop: &Shop, row: i64) {
    let (case, object) = (format!("C-{row}"), format!("pi_{row}"));
    let propose = ["cases", "propose", &case, "--as", "succeeded", "--object", &object, "--why"];
    confirmed(shop, &[&propose[..], &["x"]].concat()).await.ended(0);
    shop.a_span_passes().await;
    confirmed(shop, &["cases", "approve", &case, "--why", "checked"]).await.ended(0);
}

async fn propose_to_undo(shop: &Shop, row: i64) {
    let (case, object) = (format!("C-{row}"), other(row));
    let undo = ["cases", "undo", &case, "--as", "succeeded", "--object", &object, "--why", "x"];
    confirmed(shop, &undo).await.ended(0);
}

/// For cases too, and nobody looks at a row any more.
async fn a_year_passes_for_cases(shop: &Shop) {
    all_watches_end(shop).await;
    a_year_passes_under_watch(shop).await;
}

/// For cases too, which a run alone may close.
async fn a_year_passes_under_watch(shop: &Shop) {
    let age = match shop.engine {
        Engine::Sqlite => {
            "drop trigger if exists tieout_cases_close;
             update tieout_cases set opened_at = '2020' || substr(opened_at, 5),
                closed_at = '2020' || substr(closed_at, 5)"
        }
        Engine::Postgres => {
            "alter table tieout_cases disable trigger tieout_cases_close_guard;
             update tieout_cases set opened_at = opened_at - interval '400 days',
                closed_at = closed_at - interval '400 days';
             alter table tieout_cases enable trigger tieout_cases_close_guard"
        }
    };
    shop.raw.execute(age).await;
    a_year_passes(shop).await;
}

async fn cases(shop: &Shop) -> Vec<String> {
    let sql = "select 'C-' || cast(number as text) || coalesce(' of C-' || cast(merged_into as \
               text), '') from tieout_cases where number <= 3 order by number";
    shop.texts(sql).await
}

async fn said(shop: &Shop, words: &[&[&str]]) -> Ran {
    shop.tieout(&words.concat()).await.ended(0)
}

/// An undo that is approved is carried out after a prune as before it, and what two cases have in
/// common is not lost while one of them waits.
async fn a_closed_case_that_somebody_waits_for_is_kept(engine: Engine) {
    let mut shop = with_cases(engine, 2).await;
    let third = Payment::stuck(3);
    shop.insert(std::slice::from_ref(&third)).await;
    shop.plant(vec![third.captured(), Seed { id: Some(other(3)), ..third.captured() }]);
    shop.run().await.ended(0);
    confirmed(&shop, &["cases", "merge", "C-1", "C-3", "--why", "outage"]).await.ended(0);
    for row in 1..=3 {
        decide(&shop, row).await;
    }
    propose_to_undo(&shop, 3).await;
    confirmed(&shop, &["cases", "approve", "C-3", "--why", "yes", "--later"]).await.ended(0);
    a_year_passes_for_cases(&shop).await;
    let planned = said(&shop, &[PRUNE, &["--dry-run"]]).await.stdout;
    let why = ", and 1 closed case that they opened; would keep 2 other closed cases and 2 other \
               runs: 1 case of which a decision waits to be approved or carried out (`tieout cases \
               list --all --proposed open`, or `approved`), 1 case of which a part stays, 2 runs \
               by whose records such decisions are carried out. Nothing was deleted\n";
    assert!(planned.ends_with(why), "{planned}");
    let planned = said(&shop, &[PRUNE, &["--dry-run", "--json"]]).await.of_type("prune").remove(0);
    let done = said(&shop, &[PRUNE, &["--yes", "--json"]]).await.of_type("prune").remove(0);
    for event in [planned, done] {
        assert_eq!((&event["cases"], &event["cases_kept"]), (&1.into(), &2.into()), "{event}");
        assert_eq!((&event["runs"], &event["runs_kept"]), (&3.into(), &2.into()), "{event}");
    }
    assert_eq!(cases(&shop).await, ["C-1", "C-3 of C-1"]);
    assert_eq!(shop.count("tieout_journal where key <> '3'").await, 0, "everything else is gone");
    let shown = said(&shop, &[PURGE, &["--dry-run"]]).await.stdout;
    assert!(shown.starts_with("delete: 0 cases\n"), "{shown}");
    assert!(shown.contains("would delete 0 of 2 closed cases; 1 is left, of which a"), "{shown}");
    let purged = said(&shop, &[PURGE, &["--yes"]]).await.stdout;
    let why = "deleted 0 of 2 closed cases with all history; 1 is left, of which a decision waits";
    assert!(purged.contains(why) && purged.contains("; 1 is left, since"), "{purged}");
    assert_eq!(cases(&shop).await, ["C-1", "C-3 of C-1"]);
    shop.run().await.ended(0);
    let states = "select state from tieout_proposals where undoes";
    assert_eq!(shop.texts(states).await, ["carried_out"], "by what the records tell of its row");
    let done = said(&shop, &[PRUNE, &["--yes", "--json"]]).await.of_type("prune").remove(0);
    assert_eq!((&done["cases"], &done["cases_kept"]), (&1.into(), &0.into()), "{done}");
    let done = said(&shop, &[PURGE, &["--yes", "--json"]]).await.of_type("cases_done").remove(0);
    assert_eq!((&done["cases"], &done["left_out"]), (&1.into(), &0.into()), "{done}");
    assert_eq!(cases(&shop).await, Vec::<String>::new());
    shop.tieout(&["audit", "verify"]).await.ended(0);
}

/// A prune takes the closed cases of its runs; of the others it knows nothing any more.
async fn what_a_prune_left_is_purged(engine: Engine) {
    let shop = with_cases(engine, 2).await;
    decide(&shop, 1).await;
    a_year_passes_for_cases(&shop).await;
    let early = said(&shop, &[PURGE, &["--yes"]]).await.stdout;
    let why = "deleted 0 of 1 closed case with all history; 1 is left, since records name it or a \
               part of it is left: `tieout db prune` takes a closed case together with the run";
    assert!(early.contains(why), "{early}");
    let pruned = said(&shop, &[PRUNE, &["--yes"]]).await.stdout;
    assert!(pruned.contains(" and 1 closed case of 2 runs; the heads"), "{pruned}");
    assert!(pruned.ends_with("the heads of the chains are kept\n"), "{pruned}");
    assert_eq!(cases(&shop).await, ["C-2"], "it is open");
    decide(&shop, 2).await;
    a_year_passes_for_cases(&shop).await;
    let pruned = said(&shop, &[PRUNE, &["--yes"]]).await.stdout;
    assert!(pruned.contains(" and 0 closed cases of 1 run"), "{pruned}");
    let closed = shop.texts("select cast(closed_at as text) from tieout_cases").await.remove(0);
    let shown = said(&shop, &[PURGE, &["--dry-run"]]).await.stdout;
    assert!(shown.contains(&format!("closed {}", &closed[..10])), "{shown}");
    let purged = said(&shop, &[PURGE, &["--yes"]]).await.stdout;
    let whole = "deleted 1 of 1 closed case with all history\n";
    assert!(purged.ends_with(whole), "nothing is said to be left: {purged}");
    assert_eq!(cases(&shop).await, Vec::<String>::new());
}

/// What is shown before the yes is what goes: a case that stays is counted apart, with the reason.
async fn a_purge_shows_what_goes_and_how_many_stay(engine: Engine) {
    let shop = with_cases(engine, 2).await;
    a_year_passes_for_cases(&shop).await;
    said(&shop, &[PRUNE, &["--yes"]]).await;
    for row in 1..=2 {
        decide(&shop, row).await;
    }
    propose_to_undo(&shop, 1).await;
    a_year_passes_for_cases(&shop).await;
    said(&shop, &[PRUNE, &["--yes"]]).await;
    assert_eq!(cases(&shop).await, ["C-1", "C-2"]);
    let shown = said(&shop, &[PURGE, &["--dry-run"]]).await.stdout;
    assert!(shown.starts_with("delete: 1 case: "), "{shown}");
    assert!(shown.contains("C-2") && !shown.contains("C-1"), "{shown}");
    let why = "would delete 1 of 2 closed cases; 1 is left, of which a decision waits";
    assert!(shown.contains(why), "{shown}");
    let shown = said(&shop, &[PURGE, &["--dry-run", "--json"]]).await;
    let shown = shown.of_type("cases_preview").remove(0);
    assert_eq!((&shown["cases"], &shown["left_out"]), (&1.into(), &1.into()), "{shown}");
    assert_eq!(shown["samples"], serde_json::json!(["C-2"]), "{shown}");
    let purged = said(&shop, &[PURGE, &["--yes"]]).await.stdout;
    assert!(purged.contains("deleted 1 of 2 closed cases with all history; 1 is"), "{purged}");
    assert_eq!(cases(&shop).await, ["C-1"]);
}

async fn decided_by_people(shop: &Shop) -> Vec<String> {
    shop.texts("select key from tieout_journal where reason = 'by_person' order by key").await
}

/// The money that people decided over is no second case, however long the watch lasts; once it is
/// over, nobody needs to know.
async fn what_people_decided_is_known_while_its_row_is_watched(engine: Engine) {
    let shop = with_cases(engine, 2).await;
    decide(&shop, 2).await;
    all_watches_end(&shop).await;
    decide(&shop, 1).await;
    a_year_passes_under_watch(&shop).await;
    let states = "select key || ' ' || state from tieout_checks where key in ('1', '2') \
                  order by key";
    assert_eq!(shop.texts(states).await, ["1 watch", "2 closed"]);
    let planned = said(&shop, &[PRUNE, &["--dry-run"]]).await.stdout;
    assert!(planned.contains(" of 2 runs that ended before "), "{planned}");
    let why = "1 other run: 1 run that ended a row which is still watched (a later look needs its \
               record)";
    assert!(planned.contains(&format!("; would keep {why}. Nothing was deleted")), "{planned}");
    let done = said(&shop, &[PRUNE, &["--yes"]]).await.stdout;
    let end = format!(" of 2 runs; the heads of the chains are kept; kept {why}\n");
    assert!(done.starts_with("deleted ") && done.ends_with(&end), "{done}");
    assert_eq!(decided_by_people(&shop).await, ["1"]);
    shop.tieout(&["audit", "verify"]).await.ended(0);
    for state in ["watch", "closed"] {
        shop.due_now().await;
        let ran = shop.run().await.ended(0);
        assert_eq!(ran.verdict(1), "wait watched", "{}", ran.stdout);
        assert!(ran.stdout.contains("as people knew who decided the row; "), "{}", ran.stdout);
        assert_eq!(shop.texts("select state from tieout_checks where key = '1'").await, [state]);
        assert_eq!(shop.open_cases().await, Vec::<String>::new());
    }
    let done = said(&shop, &[PRUNE, &["--yes", "--json"]]).await.of_type("prune").remove(0);
    assert_eq!((&done["runs"], &done["runs_kept"]), (&1.into(), &0.into()), "{done}");
    assert_eq!(decided_by_people(&shop).await, Vec::<String>::new());
    shop.tieout(&["audit", "verify"]).await.ended(0);
}

/// Of the runs that ended a row the last one alone is kept, and a rule's as well.
async fn who_ended_a_watched_row_last_is_kept(engine: Engine) {
    let words = Words { sinks: String::new(), ..Words::default() };
    let mut shop = Shop::open_with(engine, words).await;
    shop.background(60).await;
    shop.insert(&[Payment::stuck(1)]).await;
    shop.run_until_proven().await;
    let past = at_text(tieout_now() - 1);
    let late = "update tieout_handbacks set charge_before";
    let late = format!("{late} = '{past}' where ended_at is null");
    shop.raw.execute(&late).await;
    for _look in 0..3 {
        shop.run().await;
        shop.a_span_passes().await;
    }
    let ends = "select run_id from tieout_journal where outcome = 'retryable' order by at";
    let ended = shop.texts(ends).await;
    assert_eq!(ended.len(), 2, "one lapsed, and was proved afresh");
    a_year_passes(&shop).await;
    let planned = said(&shop, &[PRUNE, &["--dry-run", "--json"]]).await.of_type("prune").remove(0);
    assert_eq!(planned["runs_kept"], 1, "{planned}");
    let done = said(&shop, &[PRUNE, &["--yes", "--json"]]).await.of_type("prune").remove(0);
    assert_eq!((&done["runs"], &done["runs_kept"]), (&planned["runs"], &1.into()), "{done}");
    assert_eq!(shop.texts(ends).await, ended[1..]);
    shop.tieout(&["audit", "verify"]).await.ended(0);
}

/// Who proposes something of a case while it is about to be deleted is not passed over.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_proposed_meanwhile_keeps_its_case() {
    let shop = with_cases(Engine::Postgres, 2).await;
    decide(&shop, 1).await;
    a_year_passes_for_cases(&shop).await;
    let said = proposed_meanwhile(&shop, 1, PRUNE).await;
    assert!(said.contains(" and 0 closed cases of 1 run; "), "{said}");
    let why = "; kept 1 other closed case: 1 case that somebody needs by now\n";
    assert!(said.ends_with(why), "{said}");
    decide(&shop, 2).await;
    a_year_passes_for_cases(&shop).await;
    shop.tieout(&[PRUNE, &["--yes"]].concat()).await.ended(0);
    let said = proposed_meanwhile(&shop, 2, PURGE).await;
    assert!(said.contains("deleted 0 of 2 closed cases"), "{said}");
    assert_eq!(cases(&shop).await, ["C-1", "C-2"]);
}

/// What is said by a command that deletes, and that waits for who proposes something of a case.
async fn proposed_meanwhile(shop: &Shop, case: i64, words: &[&str]) -> String {
    let mut held = shop.begin_holding(case).await;
    let propose = format!(
        "insert into tieout_proposals (case_number, what, undoes, why, evidence_sha256, \
         four_eyes, proposed_by, proposed_at, state) select number, 'failed', true, 'x', \
         evidence_sha256, false, session_user, now(), 'open' from tieout_cases \
         where number = {case}"
    );
    held.try_execute(&propose).await.unwrap();
    let deleting = shop.program(&[words, &["--yes"]].concat()).spawn().unwrap();
    shop.raw.until_a_lock_is_waited_for().await;
    held.try_execute("commit").await.unwrap();
    Ran::once_over(deleting).await.ended(0).stdout
}

/// Deciding is not deleting: who may is said.
#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_purge_is_told_who_may() {
    let mut shop = with_cases(Engine::Postgres, 1).await;
    a_year_passes_for_cases(&shop).await;
    said(&shop, &[PRUNE, &["--yes"]]).await;
    decide(&shop, 1).await;
    a_year_passes_for_cases(&shop).await;
    said(&shop, &[PRUNE, &["--yes"]]).await;
    for role in ["people", "run"] {
        shop.under_role(role).await;
        let ran = shop.tieout(&[PURGE, &["--yes"]].concat()).await.ended(12);
        let hint = "hint: purge as the owner of tieout's tables: the roles of `tieout db roles`";
        assert!(ran.stderr.contains(hint), "{role}: {}", ran.stderr);
    }
    assert_eq!(shop.count("tieout_cases").await, 1);
}
