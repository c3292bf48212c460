//! Reports read from a real database, through the driver that the program uses.

use tieout::model::reason::Reason;
use tieout::report;
use tieout::report::aging::snapshot;
use tieout::report::build::BuildOptions;
use tieout::report::cells::Dialect;
use tieout::report::facts::AccountCaseNote;
use tieout::store::driver::AccountCase;
use tieout::store::records::{ClaimFilter, Claimed, RunEnd, RunState};
use tieout::store::sqlite::SqliteStore;

use super::vectors::{bytes_of, manifest, table};
use crate::store::world::{Under, World, at, failed, noon, retryable, review, succeeded, wait};

#[tokio::test]
async fn sqlite_gives_a_report_that_verifies_and_stays() {
    a_report_verifies_and_stays::<SqliteStore>().await;
}

#[tokio::test]
async fn sqlite_that_lost_a_row_of_its_totals_is_untied() {
    a_lost_total_is_untied::<SqliteStore>().await;
}

/// One row of each outcome, one that changes meanwhile, one that nobody decides.
async fn first_run<D: Under>(w: &World<D>) {
    w.stuck(1..=7).await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 9, noon()).await;
    w.raw.execute("update charges set amount = 5 where id = 2").await;
    let decided: Vec<Claimed> =
        claimed.into_iter().filter(|claimed| claimed.row.key.id != "7").collect();
    let decide = |claimed: &Claimed| match claimed.row.key.id.as_str() {
        "1" | "2" => succeeded(claimed),
        "3" => wait(noon())(claimed),
        "4" => review(claimed),
        "5" => retryable(noon())(claimed),
        _sixth => failed(claimed),
    };
    w.apply("r1", &mut writer, &decided, decide, noon()).await;
    end(w, "r1", 1, 1).await;
}

/// Closes a run with the notes that a run writes.
async fn end<D: Under>(w: &World<D>, run: &str, minute: i64, brakes: i64) {
    let case = AccountCase {
        account: "stripe_live".into(),
        reason: Reason::AbsenceBrake,
        text: format!("brake {brakes}"),
        evidence: format!("{{\"brakes\":{brakes}}}"),
        policy_version: "p1".into(),
    };
    let now = at(minute);
    let number = w.store.put_account_case(run, &case, now).await.unwrap();
    let began = w.store.run(run).await.unwrap().unwrap().started_at;
    let notes = serde_json::json!({
        "accounts": [{ "account": "stripe_live", "rows": 6, "answered": 6 }],
        "account_cases": [AccountCaseNote {
            number,
            account: case.account,
            reason: case.reason,
            text: case.text,
            evidence_sha256: None,
        }],
        "aging": snapshot(&w.store, began, now, chrono_tz::UTC).await.unwrap(),
    });
    let end = RunEnd {
        state: RunState::Complete,
        exit_code: 0,
        exit_class: "ok".into(),
        notes: notes.to_string(),
    };
    assert!(w.store.close_run(run, &end, now).await.unwrap().is_some());
}

/// The next run decides the case again, and ends the row that waited.
async fn second_run<D: Under>(w: &World<D>) {
    let mut writer = w.start("r2", at(60)).await;
    let ids = Some(vec!["3".to_owned(), "4".to_owned()]);
    let filter = ClaimFilter { ids, ..ClaimFilter::default() };
    let claimed = w.claim_with("r2", &filter, 9, at(60)).await;
    assert_eq!(claimed.len(), 2);
    let decide = |claimed: &Claimed| match claimed.row.key.id.as_str() {
        "3" => succeeded(claimed),
        _fourth => review(claimed),
    };
    w.apply("r2", &mut writer, &claimed, decide, at(60)).await;
    end(w, "r2", 61, 2).await;
}

async fn a_report_verifies_and_stays<D: Under>() {
    let w = World::<D>::new().await;
    first_run(&w).await;
    let root = tempfile::tempdir().unwrap();
    let options = BuildOptions::in_zone(chrono_tz::UTC);
    let first = report::build(&w.store, "r1", root.path(), &options).await.unwrap();
    assert_eq!((first.rows, first.untied.len()), (6, 0), "{:?}", first.findings);
    let found = report::verify_against(&w.store, &first.dir).await.unwrap();
    assert_eq!(found.findings, Vec::<String>::new());
    assert_eq!(found.audit_head, w.store.verify_audit().await.unwrap().head);
    let rows = table(&first.dir, "reconciliation.csv", Dialect::Plain);
    let outcomes: Vec<(&str, &str, &str)> =
        rows.iter().map(|row| (&*row["key"], &*row["outcome"], &*row["applied"])).collect();
    assert_eq!(
        outcomes,
        [
            ("1", "succeeded", "yes"),
            ("2", "succeeded", "superseded"),
            ("3", "wait", "yes"),
            ("4", "review", "yes"),
            ("5", "retryable", "yes"),
            ("6", "failed", "yes"),
        ]
    );
    let counts = &manifest(&first.dir)["counts"];
    assert_eq!((&counts["claimed"], &counts["released"]), (&7.into(), &1.into()));
    let before = bytes_of(&first.dir);

    second_run(&w).await;
    let again = report::build(&w.store, "r1", root.path(), &options).await.unwrap();
    assert!(again.replaced);
    assert_eq!(bytes_of(&again.dir), before, "built again after another run");
    let second = report::build(&w.store, "r2", root.path(), &options).await.unwrap();
    let found = report::verify_against(&w.store, &second.dir).await.unwrap();
    assert_eq!(found.findings, Vec::<String>::new());
    let seen = |dir| {
        let lines = table(dir, "exceptions.csv", Dialect::Plain);
        let read = ["case_id", "times_seen", "first_seen_run", "reason_text"];
        lines.iter().map(|line| read.map(|column| line[column].clone()).join("|")).collect()
    };
    let of_first: Vec<String> = seen(&again.dir);
    let of_second: Vec<String> = seen(&second.dir);
    assert_eq!(of_first, ["C-1|1|r1|because amount_mismatch", "C-2||r1|brake 1"]);
    assert_eq!(of_second, ["C-1|2|r1|because amount_mismatch", "C-2||r1|brake 2"]);
    w.finish_unmapped().await;
}

async fn a_lost_total_is_untied<D: Under>() {
    let w = World::<D>::new().await;
    first_run(&w).await;
    w.raw.execute("update tieout_run_totals set rows = rows - 1 where side = 'claimed'").await;
    let root = tempfile::tempdir().unwrap();
    let options = BuildOptions::in_zone(chrono_tz::UTC);
    let built = report::build(&w.store, "r1", root.path(), &options).await.unwrap();
    assert_eq!(built.untied, ["EUR"]);
    assert_eq!(manifest(&built.dir)["residuals"]["EUR"]["rows"], -1);
    let found = report::verify_against(&w.store, &built.dir).await.unwrap();
    assert_eq!((found.findings, found.untied), (vec![], vec!["EUR".to_owned()]));
}
