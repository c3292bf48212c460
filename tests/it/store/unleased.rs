//! New rows that are decided as they are met, without a lease: each is taken in with its decision,
//! once, whoever else takes it in at the same moment.

use tieout::model::reason::Outcome;
use tieout::store::records::{ApplyEnd, ClaimFilter, Claimed, UNLEASED};

use super::applies::done;
use super::world::{Under, World, at, noon, review, succeeded, wait};

/// Every row's.
const ACCOUNT: &str = "stripe_live";

/// The new ones of these rows.
async fn new_rows<D: Under>(w: &World<D>, filter: &ClaimFilter, keys: &[&str]) -> Vec<Claimed> {
    let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    let new = w.store.new_among(&w.table, filter, &keys).await.unwrap();
    let rows = w.store.rows_known_by(&w.table, ACCOUNT, &[], &[], &new).await.unwrap();
    let mut rows: Vec<Claimed> =
        rows.into_iter().map(|row| Claimed::unleased(row, noon())).collect();
    rows.sort_by(|one, other| one.row.key.id.cmp(&other.row.key.id));
    rows
}

fn keys(rows: &[Claimed]) -> Vec<&str> {
    rows.iter().map(|one| one.row.key.id.as_str()).collect()
}

pub async fn only_stuck_rows_that_nobody_took_in_are_new<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=6).await;
    w.raw.execute("update charges set status = 'paid' where id = 2").await;
    w.raw.execute("update charges set moto = true where id = 3").await;
    w.start("r1", noon()).await;
    let named = ClaimFilter { ids: Some(vec!["4".to_owned()]), ..ClaimFilter::default() };
    w.claim_with("r1", &named, 9, noon()).await;
    // Row 6 was sent again only now.
    let sent = tieout::model::time::to_text(at(-1));
    w.raw.execute(&format!("update charges set attempted_at = '{sent}' where id = 6")).await;
    let filter = ClaimFilter { stuck_before: Some(at(-20)), ..ClaimFilter::default() };
    let all = ["6", "5", "4", "3", "2", "1", "77", "x"];
    let found = new_rows(&w, &filter, &all).await;
    assert_eq!(keys(&found), ["1", "5"]);
    for one in &found {
        assert_eq!((one.token, one.open_case, one.events), (UNLEASED, None, 0));
        assert_eq!(one.history.first_seen_at, noon());
        assert!(one.row.processing && !one.row.image.is_empty());
    }
    let from = ClaimFilter { created_from: Some(at(-55)), ..filter };
    assert_eq!(keys(&new_rows(&w, &from, &all).await), ["5"]);
    let nobody = w.store.new_among(&w.table, &from, &[]).await.unwrap();
    assert!(nobody.is_empty());
    assert!(w.store.check("charges", "1").await.unwrap().is_none(), "nothing is written");
}

pub async fn a_new_row_is_taken_in_with_its_decision<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=3).await;
    let mut writer = w.start("r1", noon()).await;
    let found = new_rows(&w, &ClaimFilter::default(), &["1", "2", "3"]).await;
    let decide = |one: &Claimed| match one.row.key.id.as_str() {
        "1" => succeeded(one),
        "2" => review(one),
        _third => wait(noon())(one),
    };
    assert_eq!(w.apply("r1", &mut writer, &found, decide, at(1)).await, done(3, 0, 0));
    assert_eq!(w.status("1").await, "paid");
    let mut states = Vec::new();
    for id in ["1", "2", "3"] {
        let check = w.store.check("charges", id).await.unwrap().unwrap();
        assert_eq!((check.lease, check.history.checks), (None, 1));
        assert_eq!(check.history.first_seen_at, noon());
        assert_eq!(check.history.first_account.as_deref(), Some("stripe_live"));
        states.push((check.state, check.next_check_at));
    }
    let state = |word: &str, at| (word.to_owned(), at);
    assert_eq!(states, [state("closed", None), state("case", None), state("open", Some(at(30)))]);
    let totals = w.totals("r1").await;
    assert!(totals.contains(&("EUR/claimed".to_owned(), 3, 5706)), "{totals:?}");
    // The run had its turn with them, and so had nobody else: none comes again.
    assert_eq!(w.claim("r1", 9, at(40)).await, []);
    w.close("r1", at(41)).await;
    w.start("r2", at(42)).await;
    assert_eq!(keys(&w.claim("r2", 9, at(42)).await), ["3"]);
    w.store.release("r2", &[], at(42)).await.unwrap();
    w.finish().await;
}

pub async fn a_new_row_that_changed_is_due_for_another_run<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=2).await;
    let mut writer = w.start("r1", noon()).await;
    let found = new_rows(&w, &ClaimFilter::default(), &["1", "2"]).await;
    w.raw.execute("update charges set amount = 7 where id = 2").await;
    let end = w.apply_all("r1", &mut writer, &found, succeeded, at(1)).await;
    let ApplyEnd::Done { applied, superseded, not_applied, .. } = end else { panic!("{end:?}") };
    assert_eq!((applied, superseded, not_applied.len()), (1, 1, 1));
    assert_eq!(w.status("2").await, "processing");
    let check = w.store.check("charges", "2").await.unwrap().unwrap();
    assert_eq!((check.state.as_str(), check.next_check_at), ("open", Some(at(1))));
    assert_eq!(check.history.checks, 0);
    assert!(w.totals("r1").await.contains(&("EUR/claimed".to_owned(), 2, 3803)));
    w.close("r1", at(2)).await;
    let mut writer = w.start("r2", at(3)).await;
    let again = w.claim("r2", 9, at(3)).await;
    assert_eq!(keys(&again), ["2"]);
    assert_eq!(w.apply("r2", &mut writer, &again, succeeded, at(3)).await, done(1, 0, 0));
    w.close("r2", at(4)).await;
    w.finish().await;
}

pub async fn who_takes_a_new_row_in_first_has_it<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=3).await;
    let (mut mine, mut theirs) = (w.start("r1", noon()).await, w.start("r2", noon()).await);
    let found = new_rows(&w, &ClaimFilter::default(), &["1", "2", "3"]).await;
    // Another run decides one of them so, too, and leases another one.
    let one: Vec<Claimed> = found.iter().take(1).cloned().collect();
    assert_eq!(w.apply("r2", &mut theirs, &one, review, at(1)).await, done(1, 0, 0));
    let two = ClaimFilter { ids: Some(vec!["2".to_owned()]), ..ClaimFilter::default() };
    let leased = w.claim_with("r2", &two, 9, at(1)).await;
    assert_eq!(keys(&leased), ["2"]);
    let end = w.apply_all("r1", &mut mine, &found, succeeded, at(2)).await;
    let ApplyEnd::Done { applied, superseded, elsewhere, not_applied, .. } = end else {
        panic!("{end:?}")
    };
    assert_eq!((applied, superseded), (1, 0));
    let left: Vec<&str> = elsewhere.iter().map(|record| record.key.as_str()).collect();
    assert_eq!(left, ["1", "2"]);
    assert!(not_applied.iter().all(|row| row.why() == "superseded" && !row.paused));
    let statuses = [w.status("1").await, w.status("2").await, w.status("3").await];
    assert_eq!(statuses, ["processing", "processing", "paid"]);
    assert!(w.totals("r1").await.contains(&("EUR/claimed".to_owned(), 1, 1903)));
    for (id, decisions) in [("1", 1), ("2", 0), ("3", 1)] {
        let records = w.store.journal_of_row("charges", id).await.unwrap();
        assert_eq!(records.len(), decisions, "{id}");
    }
    assert_eq!(w.apply("r2", &mut theirs, &leased, succeeded, at(3)).await, done(1, 0, 0));
    let records = w.store.journal_of_row("charges", "2").await.unwrap();
    assert_eq!(records[0].outcome, Outcome::Succeeded);
    w.close("r1", at(4)).await;
    w.close("r2", at(4)).await;
    w.finish().await;
}

pub async fn what_a_run_took_in_so_it_decides_once<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=2).await;
    let mut writer = w.start("r1", noon()).await;
    let found = new_rows(&w, &ClaimFilter::default(), &["1", "2"]).await;
    assert_eq!(w.apply("r1", &mut writer, &found, wait(noon()), at(1)).await, done(2, 0, 0));
    assert_eq!(w.apply("r1", &mut writer, &found, succeeded, at(2)).await, done(0, 0, 0));
    assert_eq!(w.status("1").await, "processing");
    assert!(w.totals("r1").await.contains(&("EUR/claimed".to_owned(), 2, 3803)));
    w.close("r1", at(3)).await;
    w.finish().await;
}

pub async fn new_rows_of_a_paused_account_are_left_alone<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=2).await;
    let mut writer = w.start("r1", noon()).await;
    let found = new_rows(&w, &ClaimFilter::default(), &["1", "2"]).await;
    w.store.pause_account("stripe_live", "ada", "a look", noon()).await.unwrap();
    let end = w.apply_all("r1", &mut writer, &found, succeeded, at(1)).await;
    let ApplyEnd::Done { applied, paused, .. } = end else { panic!("{end:?}") };
    assert_eq!((applied, paused.get("stripe_live")), (0, Some(&2)));
    assert!(w.store.check("charges", "1").await.unwrap().is_none());
    assert_eq!(w.claimed_total("r1").await, (0, 0));
    w.close("r1", at(2)).await;
    w.finish().await;
}
