//! Migrations, runs, and the audit chain.

use chrono::TimeDelta;
use tieout::model::reason::Reason;
use tieout::store::driver::{AccountCase, AccountState, CaseFilter, Driver as _};
use tieout::store::records::{ApplyEnd, RunState};

use super::world::{Under, World, at, noon, review, succeeded, wait};

pub async fn migrating_twice_changes_nothing<D: Under>() {
    let w = World::<D>::new().await;
    let (found, wanted) = w.store.schema_state().await.unwrap();
    assert!(found == wanted && wanted > 0, "{found} of {wanted}");
    w.stuck(1..=1).await;
    w.start("r1", noon()).await;
    w.claim("r1", 1, noon()).await;
    w.store.migrate().await.unwrap();
    assert_eq!(w.store.schema_state().await.unwrap(), (found, wanted));
    assert!(w.store.check("charges", "1").await.unwrap().is_some());
    w.finish().await;
}

pub async fn runs_open_live_and_close<D: Under>() {
    let w = World::<D>::new().await;
    w.start("r1", noon()).await;
    w.start("r2", at(1)).await;
    let run = w.store.run("r1").await.unwrap().unwrap();
    assert_eq!((run.state, run.started_at, run.ended_at), (RunState::Running, noon(), None));
    assert!(w.store.run("r9").await.unwrap().is_none());
    let newest: Vec<String> =
        w.store.runs(9).await.unwrap().into_iter().map(|run| run.id).collect();
    assert_eq!(newest, ["r2", "r1"]);
    assert_eq!(w.store.runs(1).await.unwrap().len(), 1);
    assert!(w.store.heartbeat("r1", at(2), at(4)).await.unwrap());
    assert_eq!(w.store.run("r1").await.unwrap().unwrap().heartbeat_at, at(2));
    // Closed in the other order: the chain is that of closing.
    assert!(w.close("r2", at(3)).await);
    assert!(w.close("r1", at(4)).await);
    assert!(!w.close("r1", at(5)).await, "closed before");
    assert!(!w.store.heartbeat("r1", at(5), at(7)).await.unwrap());
    let (one, two) = (w.store.run("r1").await.unwrap(), w.store.run("r2").await.unwrap());
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!((two.close_number, one.close_number), (Some(1), Some(2)));
    assert_eq!((one.exit_code, one.exit_class.as_deref()), (Some(0), Some("ok")));
    assert_eq!(one.ended_at, Some(at(4)));
    let finding = w.store.verify_audit().await.unwrap();
    assert_eq!((finding.runs, finding.head), (2, one.close_hash));
    let seen = w.store.now().await.unwrap();
    assert!((seen - chrono::Utc::now()).abs() < TimeDelta::minutes(1), "{seen}");
    w.finish().await;
}

pub async fn an_abandoned_run_is_closed_and_never_writes_again<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=5).await;
    let mut writer = w.start("dead", noon()).await;
    let claimed = w.claim("dead", 5, noon()).await;
    w.apply("dead", &mut writer, &claimed[..2], succeeded, noon()).await;
    w.start("alive", at(2)).await;
    let dead_after = TimeDelta::minutes(2);
    assert!(w.store.close_abandoned(at(2), dead_after).await.unwrap().is_empty(), "not yet");
    let closed = w.store.close_abandoned(at(3), dead_after).await.unwrap();
    let [abandoned] = closed.as_slice() else { panic!("{closed:?}") };
    assert_eq!((abandoned.id.as_str(), abandoned.heartbeat_at), ("dead", noon()));
    assert_eq!((abandoned.decided, abandoned.released), (2, 3));
    assert!(w.store.close_abandoned(at(3), dead_after).await.unwrap().is_empty());
    let run = w.store.run("dead").await.unwrap().unwrap();
    assert_eq!((run.state, run.exit_code, run.journal_count), (RunState::Abandoned, None, 2));
    assert_eq!(run.exit_class.as_deref(), Some("abandoned"));
    // It was only paused, and comes back.
    let end = w.apply("dead", &mut writer, &claimed[2..], succeeded, at(4)).await;
    assert_eq!(end, ApplyEnd::RunClosed);
    assert_eq!(w.status("3").await, "processing");
    w.totals("dead").await;
    assert_eq!(w.claim("alive", 9, at(4)).await.len(), 3);
    w.finish().await;
}

pub async fn one_silent_run_is_closed_by_name<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=2).await;
    w.start("one", noon()).await;
    w.start("two", noon()).await;
    w.claim("one", 2, noon()).await;
    let dead_after = TimeDelta::minutes(2);
    let abandon = async |run, now| w.store.abandon_run(run, now, dead_after).await.unwrap();
    assert_eq!(abandon("one", at(2)).await, None, "it may live");
    assert_eq!(abandon("none", at(3)).await, None);
    let closed = abandon("one", at(3)).await.unwrap();
    assert_eq!((closed.id.as_str(), closed.decided, closed.released), ("one", 0, 2));
    assert_eq!(abandon("one", at(3)).await, None, "closed before");
    let state = async |run| w.store.run(run).await.unwrap().unwrap().state;
    assert_eq!((state("one").await, state("two").await), (RunState::Abandoned, RunState::Running));
    w.finish().await;
}

pub async fn an_account_is_paused_and_resumed<D: Under>() {
    let w = World::<D>::new().await;
    assert_eq!(w.store.pauses().await.unwrap(), []);
    assert_eq!(w.store.resume_account("stripe_live").await.unwrap(), None);
    w.store.put_account_state("stripe_live", None, Some(970)).await.unwrap();
    let pause =
        async |why, now| w.store.pause_account("stripe_live", "ann", why, now).await.unwrap();
    let first = pause("audit", noon()).await;
    assert!(first.is_new && first.is_settled, "{first:?}");
    assert_eq!((first.pause.at, first.pause.why.as_str()), (noon(), "audit"));
    assert!(first.pause.by.starts_with("ann"), "{first:?}");
    let again = pause("another", at(1)).await;
    assert!(!again.is_new, "{again:?}");
    assert_eq!(again.pause, first.pause, "the first pause stands");
    w.store.pause_account("adyen_live", "ann", "too", at(2)).await.unwrap();
    let names = w.store.pauses().await.unwrap().into_iter().map(|pause| pause.account);
    assert_eq!(names.collect::<Vec<_>>(), ["adyen_live", "stripe_live"]);
    assert_eq!(w.store.resume_account("stripe_live").await.unwrap(), Some(first.pause));
    let state = w.store.account_state("stripe_live").await.unwrap();
    assert_eq!((state.paused, state.usual_permille), (None, Some(970)));
    assert_eq!(w.store.pauses().await.unwrap().len(), 1);
    w.finish().await;
}

/// An apply keeps what it read the switch under to its end: the pause waits for it, and where it
/// stands still, holds all the same and says so.
#[tokio::test]
async fn a_pause_waits_for_the_batch_that_is_being_written() {
    use tieout::store::postgres::PgStore;
    use tieout::store::settings::DatabaseSettings;
    let w = World::<PgStore>::new().await;
    let settings = DatabaseSettings {
        lock_timeout: TimeDelta::milliseconds(200),
        ..DatabaseSettings::of_url(&w.place)
    };
    let hasty = PgStore::connect(&settings).await.unwrap();
    let crate::support::raw::Raw::Postgres(pool) = &w.raw else { unreachable!() };
    let mut batch = pool.begin().await.unwrap();
    sqlx::query("select account from tieout_accounts where paused_at is not null for share")
        .execute(&mut *batch)
        .await
        .unwrap();
    let paused = hasty.pause_account("stripe_live", "ann", "audit", noon()).await.unwrap();
    assert!(paused.is_new && !paused.is_settled, "{paused:?}");
    let patient = w.store.clone();
    let waiting = tokio::spawn(async move {
        patient.pause_account("stripe_live", "ann", "audit", noon()).await.unwrap()
    });
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert!(!waiting.is_finished(), "it does not wait for the batch");
    batch.commit().await.unwrap();
    let paused = waiting.await.unwrap();
    assert!(!paused.is_new && paused.is_settled, "{paused:?}");
    w.finish().await;
}

pub async fn the_journal_is_append_only<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=2).await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 2, noon()).await;
    w.apply("r1", &mut writer, &claimed, wait(noon()), noon()).await;
    let mut refused = vec![
        "update tieout_journal set text = 'x'",
        "delete from tieout_journal",
        "delete from tieout_journal where seq = 2",
        "update tieout_evidence set body = 'x'",
        "delete from tieout_evidence",
    ];
    match w.raw.is_sqlite() {
        true => refused.push("insert or replace into tieout_journal select * from tieout_journal"),
        false => refused.extend(["truncate tieout_journal", "truncate tieout_evidence"]),
    }
    for sql in refused {
        let error = w.raw.try_execute(sql).await.expect_err(sql).to_string();
        assert!(error.contains("append-only"), "{sql}: {error}");
    }
    w.finish().await;
}

/// What is pruned goes by when a run ended: nobody says it anew.
pub async fn a_closed_run_is_not_changed<D: Under>() {
    let w = World::<D>::new().await;
    w.start("r1", at(1)).await;
    w.start("r2", at(2)).await;
    assert!(w.close("r1", at(3)).await);
    let past = "'2020-01-01T00:00:00.000000Z'";
    let mut refused = vec![
        format!("update tieout_runs set ended_at = {past} where close_number = 1"),
        format!("update tieout_runs set started_at = {past} where id = 'r1'"),
        format!("update tieout_runs set heartbeat_at = {past}"),
        "update tieout_runs set exit_code = 3 where id = 'r1'".to_owned(),
        "update tieout_runs set exit_class = null where id = 'r1'".to_owned(),
        "update tieout_runs set notes = '{\"accounts\":[]}' where id = 'r1'".to_owned(),
        "update tieout_runs set journal_count = 9 where id = 'r1'".to_owned(),
        "update tieout_runs set state = 'running', ended_at = null, close_number = null, \
         close_hash = null where id = 'r1'"
            .to_owned(),
    ];
    if w.raw.is_sqlite() {
        refused.push("insert or replace into tieout_runs select * from tieout_runs".to_owned());
    }
    for sql in &refused {
        let error = w.raw.try_execute(sql).await.expect_err(sql).to_string();
        assert!(error.contains("closed"), "{sql}: {error}");
    }
    assert_eq!(w.store.run("r1").await.unwrap().unwrap().ended_at, Some(at(3)));
    // What could not be told of its end is noted afterwards, and twice.
    for problem in ["hook: no answer in time", "hook: answered 500"] {
        w.store.note_monitoring("r1", &[problem.to_owned()]).await.unwrap();
        let notes = w.store.run("r1").await.unwrap().unwrap().notes;
        assert!(notes.contains(problem), "{notes}");
    }
    // One that goes on is its own.
    assert!(w.store.heartbeat("r2", at(4), at(6)).await.unwrap());
    assert!(w.close("r2", at(5)).await);
    w.finish().await;
}

/// Three closed runs of two writers, and one that goes on.
async fn a_guarded_chain<D: Under>() -> World<D> {
    let w = World::<D>::new().await;
    w.stuck(1..=9).await;
    for (number, decided) in [(1, 3), (2, 2), (3, 3)] {
        let (run, now) = (format!("r{number}"), at(number));
        let mut one = w.start(&run, now).await;
        let mut two = one.clone();
        two.name = "w2".to_owned();
        let claimed = w.claim(&run, decided, now).await;
        let (first, rest) = claimed.split_at(1);
        w.apply(&run, &mut two, first, review, now).await;
        w.apply(&run, &mut one, rest, succeeded, now).await;
        w.close(&run, now).await;
    }
    let mut writer = w.start("r4", at(9)).await;
    let claimed = w.claim("r4", 1, at(9)).await;
    w.apply("r4", &mut writer, &claimed, wait(at(9)), at(9)).await;
    w
}

/// The same, with nothing that keeps hands off it.
async fn a_chain<D: Under>() -> World<D> {
    let w = a_guarded_chain::<D>().await;
    let guards = if w.raw.is_sqlite() {
        "drop trigger tieout_journal_no_update; drop trigger tieout_journal_no_delete;
         drop trigger tieout_evidence_no_update; drop trigger tieout_evidence_no_delete;
         drop trigger tieout_runs_closed"
    } else {
        "alter table tieout_journal disable trigger all;
         alter table tieout_evidence disable trigger all;
         alter table tieout_runs disable trigger tieout_runs_closed"
    };
    w.finish().await;
    w.raw.execute(guards).await;
    w
}

/// Whole closed runs leave the journal, their heads stay, and nobody else gets anything out of it.
pub async fn old_runs_are_pruned_whole<D: Under>() {
    let w = a_guarded_chain::<D>().await;
    let cases = CaseFilter { open_only: true, limit: 9, ..CaseFilter::default() };
    let cases = w.store.cases(&cases).await.unwrap();
    assert_eq!(cases.len(), 3);
    let found = w.store.prunable(at(3)).await.unwrap();
    assert_eq!(found.runs, [("r1".to_owned(), 3), ("r2".to_owned(), 2)]);
    let pruned = w.store.prune_run(&found.one("r1", "ann"), at(60)).await.unwrap().unwrap();
    assert_eq!(pruned.records, 3);
    assert!(w.store.prune_run(&found.one("r1", "ann"), at(60)).await.unwrap().is_none(), "twice");
    assert!(w.store.prune_run(&found.one("r3", "ann"), at(60)).await.unwrap().is_none(), "young");
    assert!(w.store.prune_run(&found.one("r4", "ann"), at(60)).await.unwrap().is_none(), "open");
    assert!(w.store.journal_of_run("r1", None, 9).await.unwrap().is_empty());
    assert_eq!(w.store.pruned_at("r1").await.unwrap(), Some(at(60)));
    assert_eq!(w.store.pruned_at("r2").await.unwrap(), None);
    let finding = w.store.verify_audit().await.unwrap();
    assert_eq!(finding.breaks, Vec::<String>::new());
    assert_eq!((finding.runs, finding.pruned_runs, finding.records), (3, 1, 6));
    assert_eq!(finding.goes_back_to, Some(at(2)));
    for case in &cases {
        let evidence = case.evidence_sha256.as_deref().unwrap();
        assert!(w.store.evidence(evidence).await.unwrap().is_some(), "an open case lost its own");
    }
    assert!(w.store.check("charges", "1").await.unwrap().is_some(), "what is remembered stays");
    for sql in [
        "delete from tieout_journal where run_id = 'r2'",
        "delete from tieout_evidence",
        "update tieout_prunes set state = 'open'",
        "update tieout_prunes set heads = '[]'",
        "delete from tieout_prunes",
        "insert into tieout_prunes select 'r2', 'done', pruned_at, 'x', 0, '[]' from tieout_prunes",
        "insert into tieout_prunes select 'r4', 'open', pruned_at, 'x', 0, '[]' from tieout_prunes",
    ] {
        let error = w.raw.try_execute(sql).await.expect_err(sql).to_string();
        assert!(error.contains("append-only"), "{sql}: {error}");
    }
    w.finish().await;
    // A door that was left open on purpose: a server refuses it, and a file tells of it.
    let door =
        "insert into tieout_prunes select 'r2', 'open', pruned_at, 'x', 2, '[]' from tieout_prunes";
    match w.raw.try_execute(door).await {
        Ok(_done) if w.raw.is_sqlite() => {
            let breaks = breaks(&w).await;
            assert!(breaks.iter().any(|text| text.contains("left open")), "{breaks:?}");
        }
        Ok(_done) => panic!("an open prune was committed"),
        Err(error) => assert!(error.to_string().contains("ends in the transaction"), "{error}"),
    }
}

/// A row that comes under watch after it was looked for what to prune is not forgotten.
pub async fn a_run_that_ended_a_watched_row_is_kept<D: Under>() {
    let w = a_guarded_chain::<D>().await;
    let found = w.store.prunable(at(9)).await.unwrap();
    assert_eq!((found.runs.len(), found.runs_kept.all()), (3, 0));
    let row = "key = (select max(key) from tieout_journal where run_id = 'r1' \
               and outcome = 'succeeded')";
    let watch = "update tieout_checks set state = 'watch', \
                 watch_from = '2030-01-01T00:00:00.000000Z', \
                 next_check_at = '2030-01-02T00:00:00.000000Z'";
    w.raw.execute(&format!("{watch} where {row}")).await;
    assert!(w.store.prune_run(&found.one("r1", "ann"), at(60)).await.unwrap().is_none());
    assert!(w.store.prune_run(&found.one("r2", "ann"), at(60)).await.unwrap().is_some());
    let found = w.store.prunable(at(9)).await.unwrap();
    assert_eq!(found.runs, [("r3".to_owned(), 3)]);
    assert_eq!((found.runs_kept.watched, found.runs_kept.waited_for), (1, 0));
    let records = w.store.journal_of_run("r1", None, 9).await.unwrap();
    let leant_on = records.iter().all(|one| found.kept.contains(&one.evidence_sha256));
    assert!(records.len() == 3 && leant_on, "{:?}", found.kept);
    let over = "update tieout_checks set state = 'closed', next_check_at = null";
    w.raw.execute(&format!("{over} where {row}")).await;
    let found = w.store.prunable(at(9)).await.unwrap();
    assert_eq!((found.runs.len(), found.runs_kept.all()), (2, 0));
    assert!(w.store.prune_run(&found.one("r1", "ann"), at(60)).await.unwrap().is_some());
    w.finish().await;
}

/// The heads that a prune left are bound by the chain like the records were.
pub async fn heads_that_a_prune_left_are_held_against_the_chain<D: Under>() {
    let w = a_guarded_chain::<D>().await;
    let found = w.store.prunable(at(9)).await.unwrap();
    for run in ["r1", "r2", "r3"] {
        assert!(w.store.prune_run(&found.one(run, "ann"), at(60)).await.unwrap().is_some());
    }
    let finding = w.store.verify_audit().await.unwrap();
    assert_eq!((finding.breaks.len(), finding.pruned_runs), (0, 3));
    let guard = if w.raw.is_sqlite() {
        "drop trigger tieout_prunes_guard_update; drop trigger tieout_prunes_guard_delete;
         drop trigger tieout_prunes_guard_insert"
    } else {
        "alter table tieout_prunes disable trigger all"
    };
    w.raw.execute(guard).await;
    w.raw.execute("create table kept as select * from tieout_prunes").await;
    for change in [
        "update tieout_prunes set heads = '[]' where run_id = 'r2'",
        "update tieout_prunes set heads = replace(heads, 'w2', 'w3') where run_id = 'r1'",
        "update tieout_prunes set heads = 'none' where run_id = 'r1'",
        "delete from tieout_prunes where run_id = 'r3'",
    ] {
        w.raw.execute(change).await;
        assert!(!breaks(&w).await.is_empty(), "{change}");
        w.raw
            .execute("delete from tieout_prunes; insert into tieout_prunes select * from kept")
            .await;
    }
}

async fn breaks<D: Under>(w: &World<D>) -> Vec<String> {
    w.store.verify_audit().await.unwrap().breaks
}

/// Copies of what is tampered with, and the way back to them.
const KEEP: &str = "create table kept as select * from tieout_journal;
    create table kept_evidence as select * from tieout_evidence";
const RESTORE: &str = "delete from tieout_journal; insert into tieout_journal select * from kept;
    delete from tieout_evidence; insert into tieout_evidence select * from kept_evidence";

/// Runs `tamper`, must find it, runs `undo`, must find nothing.
async fn is_found<D: Under>(w: &World<D>, tamper: &str, undo: &str) {
    w.raw.execute(tamper).await;
    let found = breaks(w).await;
    assert!(!found.is_empty(), "nobody noticed: {tamper}");
    w.raw.execute(undo).await;
    assert_eq!(breaks(w).await, Vec::<String>::new(), "after undoing: {tamper}");
}

pub async fn verifying_finds_every_changed_field<D: Under>() {
    let w = a_chain::<D>().await;
    let finding = w.store.verify_audit().await.unwrap();
    assert_eq!((finding.records, finding.runs), (9, 3));
    let columns = if w.raw.is_sqlite() {
        "select name, lower(type) from pragma_table_info('tieout_journal') order by cid"
    } else {
        "select cast(column_name as text), cast(data_type as text)
         from information_schema.columns where table_name = 'tieout_journal'"
    };
    let columns = w.raw.rows(columns).await;
    w.raw.execute(KEEP).await;
    let mut tried = 0;
    assert!(columns.len() > 30);
    let words = |column: &str| match column {
        "asked" => Some("kick"),
        "outcome" => Some("failed"),
        "applied" => Some("withheld"),
        "reason" => Some("amount_mismatch"),
        "run_id" => Some("r4"),
        _other => None,
    };
    for place in ["run_id = 'r2' and writer = 'w1' and seq = 1", "run_id = 'r4' and seq = 1"] {
        for column in &columns {
            let [Some(name), Some(kind)] = column.as_slice() else { panic!("{column:?}") };
            let is_time = name == "at" || name.ends_with("_at");
            let changed = match (words(name), kind.as_str()) {
                (Some(word), _) => format!("'{word}'"),
                (None, "integer" | "bigint" | "smallint") => format!("coalesce({name}, 0) + 7"),
                (None, "text") if is_time => "'2020-01-01T00:00:00.000000Z'".to_owned(),
                (None, kind) if kind.starts_with("timestamp") => {
                    "'2020-01-01T00:00:00Z'".to_owned()
                }
                (None, _) => format!("coalesce({name}, '') || 'x'"),
            };
            if changed == "'r4'" && place.contains("r4") {
                continue;
            }
            let tamper = format!("update tieout_journal set {name} = {changed} where {place}");
            // What a constraint of the table forbids cannot be done at all: as good as found.
            if w.raw.try_execute(&tamper).await.is_ok() {
                assert!(!breaks(&w).await.is_empty(), "nobody noticed: {tamper}");
                tried += 1;
                w.raw.execute(RESTORE).await;
            }
        }
    }
    assert!(tried > 40, "only {tried} changes could be made");
    assert_eq!(breaks(&w).await, Vec::<String>::new());
    is_found(
        &w,
        "update tieout_evidence set body = body || ' '",
        "update tieout_evidence set body = substr(body, 1, length(body) - 1)",
    )
    .await;
    for (column, forward, back) in [
        ("state", "'partial'", "'complete'"),
        ("close_hash", "close_hash || 'x'", "substr(close_hash, 1, 64)"),
        ("journal_count", "journal_count + 1", "journal_count - 1"),
        ("close_number", "9", "2"),
    ] {
        let set =
            |value: &str| format!("update tieout_runs set {column} = {value} where id = 'r2'");
        is_found(&w, &set(forward), &set(back)).await;
    }
}

pub async fn verifying_finds_what_was_taken_away<D: Under>() {
    let w = a_chain::<D>().await;
    w.raw.execute(KEEP).await;
    for tamper in [
        // The first, one in the middle, the last of a writer, a writer, all of a run.
        "delete from tieout_journal where run_id = 'r1' and writer = 'w1' and seq = 1",
        "delete from tieout_journal where run_id = 'r3' and writer = 'w1' and seq = 1",
        "delete from tieout_journal where run_id = 'r3' and writer = 'w1' and seq = 2",
        "delete from tieout_journal where run_id = 'r3' and writer = 'w2'",
        "delete from tieout_journal where run_id = 'r3'",
        // The same of the run that goes on.
        "delete from tieout_journal where run_id = 'r4'",
        // Two records change places.
        "update tieout_journal set seq = 3 where run_id = 'r1' and writer = 'w1' and seq = 1;
         update tieout_journal set seq = 1 where run_id = 'r1' and writer = 'w1' and seq = 2;
         update tieout_journal set seq = 2 where run_id = 'r1' and writer = 'w1' and seq = 3",
        "delete from tieout_evidence where sha256 in (select min(sha256) from tieout_evidence)",
    ] {
        is_found(&w, tamper, RESTORE).await;
    }
    // A run that was taken out whole, with everything that it wrote.
    w.raw.execute("create table kept_runs as select * from tieout_runs").await;
    let foreign = if w.raw.is_sqlite() { "" } else { "set session_replication_role = replica; " };
    is_found(
        &w,
        &format!(
            "{foreign}delete from tieout_journal where run_id = 'r2';
             delete from tieout_runs where id = 'r2'"
        ),
        &format!(
            "{foreign}insert into tieout_runs select * from kept_runs where id = 'r2'; {RESTORE}"
        ),
    )
    .await;
}

pub async fn accounts_are_remembered<D: Under>() {
    let w = World::<D>::new().await;
    w.start("r1", noon()).await;
    assert_eq!(w.store.account_state("stripe_live").await.unwrap(), AccountState::default());
    w.store.put_account_state("stripe_live", Some(noon()), Some(970)).await.unwrap();
    let state = w.store.account_state("stripe_live").await.unwrap();
    assert_eq!((state.unanswered_since, state.usual_permille), (Some(noon()), Some(970)));
    w.raw
        .execute(
            "update tieout_accounts set paused_at = '2026-11-19T11:00:00.000000Z',
             paused_by = 'ann', paused_why = 'audit'",
        )
        .await;
    w.store.put_account_state("stripe_live", None, None).await.unwrap();
    let state = w.store.account_state("stripe_live").await.unwrap();
    assert_eq!(state.paused, Some((at(-60), "audit".to_owned())));
    assert_eq!((state.unanswered_since, state.usual_permille), (None, Some(970)));
    let case = AccountCase {
        account: "stripe_live".to_owned(),
        reason: Reason::AbsenceBrake,
        text: "the tag seems not to arrive".to_owned(),
        evidence: "{\"listed\":9}".to_owned(),
        policy_version: "p1".to_owned(),
    };
    let number = w.store.put_account_case("r1", &case, noon()).await.unwrap();
    assert_eq!(w.store.put_account_case("r1", &case, at(1)).await.unwrap(), number);
    let stored = w.store.case(number).await.unwrap().unwrap();
    assert_eq!((stored.subject_kind.as_str(), stored.subject.as_str()), ("account", "stripe_live"));
    assert_eq!(stored.times_seen, 2);
    let evidence = w.store.evidence(&stored.evidence_sha256.unwrap()).await.unwrap();
    assert_eq!(evidence.as_deref(), Some("{\"listed\":9}"));
    let close = async |reason| {
        w.store.close_account_case("r1", "stripe_live", reason, "it answers", at(2)).await.unwrap()
    };
    assert!(!close(Reason::AccountUnavailable).await, "of another reason");
    assert!(close(Reason::AbsenceBrake).await);
    assert!(!close(Reason::AbsenceBrake).await);
    let filter = CaseFilter { open_only: true, limit: 9, ..CaseFilter::default() };
    assert!(w.store.cases(&filter).await.unwrap().is_empty());
    w.finish().await;
}

#[tokio::test]
async fn both_migrations_make_the_same_tables() {
    use tieout::store::postgres::PgStore;
    use tieout::store::sqlite::SqliteStore;
    let (lite, server) = tokio::join!(World::<SqliteStore>::new(), World::<PgStore>::new());
    let columns = lite
        .raw
        .rows(
            "select t.name, c.name, cast(max(c.\"notnull\", c.pk > 0) as text)
             from pragma_table_list t join pragma_table_xinfo(t.name) c
             where t.name like 'tieout\\_%' escape '\\' and t.name <> 'tieout_migrations'
             order by 1, 2",
        )
        .await;
    let twins = server
        .raw
        .rows(
            "select cast(table_name as text), cast(column_name as text),
             case is_nullable when 'NO' then '1' else '0' end
             from information_schema.columns where table_name like 'tieout\\_%'
             and table_name <> 'tieout_migrations' order by table_name collate \"C\",
             column_name collate \"C\"",
        )
        .await;
    assert!(columns.len() > 100);
    assert_eq!(columns, twins);
    let indexes = "select name, 'x' from sqlite_master where type = 'index'
        and name like 'tieout\\_%' escape '\\' order by 1";
    let indexes = lite.raw.rows(indexes).await;
    let twins = server
        .raw
        .rows(
            "select cast(indexname as text), 'x' from pg_indexes where tablename like 'tieout\\_%'
             and not exists (select 1 from pg_constraint where conname = indexname)
             order by indexname collate \"C\"",
        )
        .await;
    assert_eq!(indexes, twins);
}
