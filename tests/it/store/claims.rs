//! Taking rows in, leasing them, giving them back.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use tieout::decide::decision::Asked;
use tieout::model::time::to_text;
use tieout::store::inspect::Ahead;
use tieout::store::records::ClaimFilter;

use super::world::{
    MAPPING, Under, World, at, hand_back, noon, retryable, review, succeeded, wait,
};

fn ids(claimed: &[tieout::store::records::Claimed]) -> Vec<&str> {
    claimed.iter().map(|c| c.row.key.id.as_str()).collect()
}

pub async fn stuck_rows_are_taken_in_once<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=3).await;
    w.raw
        .execute(
            "insert into charges (id, account, status, amount, currency, created_at, moto) values
             (10, 'stripe', 'new', 1, 'EUR', '2026-11-19T10:00:00Z', false),
             (11, 'stripe', 'paid', 1, 'EUR', '2026-11-19T10:00:00Z', false),
             (12, 'stripe', 'processing', 1, 'EUR', '2026-11-19T10:00:00Z', true),
             (13, 'stripe', 'processing', 1, 'EUR', '2026-11-19T11:59:00Z', false)",
        )
        .await;
    // Row 14 is old, and was sent again a minute ago.
    w.raw
        .execute(
            "insert into charges (id, account, status, amount, currency, created_at, attempted_at)
             values (14, 'stripe', 'sent', 1, 'EUR', '2026-11-19T08:00:00Z',
             '2026-11-19T11:59:00Z')",
        )
        .await;
    let filter = ClaimFilter { stuck_before: Some(at(-20)), ..ClaimFilter::default() };
    assert_eq!(w.store.enrol(&w.table, &filter, noon()).await.unwrap(), 3);
    assert_eq!(w.store.enrol(&w.table, &filter, noon()).await.unwrap(), 0);
    let check = w.store.check("charges", "2").await.unwrap().unwrap();
    assert_eq!(check.state, "open");
    assert!(check.next_check_at.is_some_and(|due_at| due_at <= noon()), "it is due at once");
    assert_eq!(check.history.first_seen_at, noon());
    for id in ["10", "11", "12", "13", "14"] {
        assert!(w.store.check("charges", id).await.unwrap().is_none(), "{id}");
    }
    let later = ClaimFilter { stuck_before: Some(at(0)), ..ClaimFilter::default() };
    assert_eq!(w.store.enrol(&w.table, &later, at(20)).await.unwrap(), 2);
    w.finish().await;
}

pub async fn a_changed_row_is_taken_in_again<D: Under>() {
    let w = World::<D>::of(
        "create table charges (id bigint primary key, account text, status text, amount bigint,
         currency text, created_at timestamptz, attempted_at timestamptz)",
        // No outcome has a value: all of them live in tieout's tables alone.
        r#"
        name = "charges"
        read = "charges"
        key = ["id"]
        tag = "{id}"
        amount = { column = "amount", unit = "minor" }
        currency = { column = "currency" }
        account = ["account"]
        accounts = { stripe = "stripe_live" }
        status = "status"
        created = "created_at"
        attempted = "attempted_at"
        time = "utc"
        mode = "full"
        channel = "outbox"
        map = [{ from = ["processing"] }]
        "#,
    )
    .await;
    w.raw
        .execute(
            "insert into charges values
             (1, 'stripe', 'processing', 100, 'EUR', '2026-11-19T10:00:00Z', null),
             (2, 'stripe', 'processing', 100, 'EUR', '2026-11-19T10:00:00Z', null),
             (3, 'stripe', 'processing', 100, 'EUR', '2026-11-19T10:00:00Z', null)",
        )
        .await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 10, noon()).await;
    let decide = |c: &tieout::store::records::Claimed| match c.row.key.id.as_str() {
        "1" => succeeded(c),
        "2" => review(c),
        _other => retryable(noon())(c),
    };
    w.apply("r1", &mut writer, &claimed, decide, noon()).await;
    let state = async |id| w.store.check("charges", id).await.unwrap().unwrap().state;
    assert_eq!([state("1").await, state("2").await, state("3").await], ["parked", "case", "watch"]);
    // Undisturbed, none of them comes back by itself.
    assert_eq!(w.store.enrol(&w.table, &ClaimFilter::default(), at(5)).await.unwrap(), 0);
    w.raw.execute("update charges set attempted_at = '2026-11-19T12:10:00Z'").await;
    assert_eq!(w.store.enrol(&w.table, &ClaimFilter::default(), at(30)).await.unwrap(), 3);
    let again = w.store.check("charges", "3").await.unwrap().unwrap();
    assert_eq!(again.state, "open");
    assert!(again.next_check_at.is_some_and(|due_at| due_at <= at(30)), "it is due at once");
    assert_eq!(again.history.fingerprint_seen_at, at(30));
    assert_eq!(again.history.aged_from, at(30));
    assert_eq!(again.history.first_seen_at, noon());
    assert_eq!((again.history.checks, again.history.handbacks), (0, 1));
    assert_eq!((again.history.watch_from, again.history.ended_as), (None, None));
    w.start("r2", at(30)).await;
    let claimed = w.claim("r2", 10, at(30)).await;
    assert_eq!(ids(&claimed), ["1", "2", "3"]);
    assert!(claimed.iter().all(|c| c.asked == Asked::Run && c.token == 2));
    assert!(claimed[1].open_case.is_some());
    assert_eq!(claimed[2].events, 1);
    w.finish().await;
}

pub async fn claims_go_by_the_oldest_due<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=4).await;
    w.store.enrol(&w.table, &ClaimFilter::default(), noon()).await.unwrap();
    for (id, minutes) in [(1, 5), (2, -30), (3, -10), (4, -20)] {
        w.raw
            .execute(&format!(
                "update tieout_checks set next_check_at = '{}' where key = '{id}'",
                to_text(at(minutes))
            ))
            .await;
    }
    w.start("r1", noon()).await;
    assert_eq!(ids(&w.claim("r1", 2, noon()).await), ["2", "4"]);
    assert_eq!(ids(&w.claim("r1", 9, noon()).await), ["3"], "row 1 is not due yet");
    assert_eq!(w.claim("r1", 9, at(6)).await.len(), 1);
    w.finish().await;
}

/// Each batch lists a short window of its own, and none lists the whole of it again.
pub async fn rows_that_are_taken_in_are_claimed_in_their_time<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=12).await;
    // As text, keys are in another order than their rows; and one is older than its key tells.
    w.raw.execute("update charges set created_at = '2026-11-19T01:00:00Z' where id = 7").await;
    let in_time = ["7", "1", "2", "3", "4", "5", "6", "8", "9", "10", "11", "12"];
    let all = ClaimFilter::default();
    for limit in [1, 5, 12, 40] {
        let preview = w.store.preview_due(&w.table, &all, limit, noon()).await.unwrap();
        let most = usize::try_from(limit).unwrap().min(in_time.len());
        assert_eq!(ids(&preview), in_time[..most], "{limit}");
    }
    w.start("r1", noon()).await;
    for batch in in_time.chunks(5) {
        assert_eq!(ids(&w.claim("r1", 5, noon()).await), batch);
    }
    w.finish().await;
}

/// The user's table may hold a hundred million rows, and so may tieout's memory of closed ones.
pub async fn the_claim_walks_indexes<D: Under>() {
    let w = World::<D>::new().await;
    let count = "with recursive g(n) as (select 1 union all select n + 1 from g where n < 20000)";
    w.raw
        .execute(&format!(
            "insert into charges (id, account, status, amount, currency, created_at)
             {count} select n, 'stripe', case when n % 1000 = 0 then 'processing' else 'paid' end,
             100, 'EUR', '2026-11-19T10:00:00Z' from g"
        ))
        .await;
    for (state, which, due) in [("open", "=", "'2026-11-19T11:00:00Z'"), ("closed", "<>", "null")] {
        w.raw
            .execute(&format!(
                "insert into tieout_checks (table_name, key, state, image, first_seen_at,
                 fingerprint_seen_at, aged_from, next_check_at)
                 {count} select 'charges', cast(n as text), '{state}', '', '2026-11-19T10:00:00Z',
                 '2026-11-19T10:00:00Z', '2026-11-19T10:00:00Z', {due} from g
                 where n % 1000 {which} 0"
            ))
            .await;
    }
    w.raw.execute("analyze").await;
    let filter = ClaimFilter { stuck_before: Some(at(-20)), ..ClaimFilter::default() };
    let plan = w.store.claim_plan(&w.table, &filter, 100, noon()).await.unwrap();
    for index in ["charges_status", "tieout_checks_due"] {
        assert!(plan.iter().any(|step| step.contains(index)), "{index}: {plan:#?}");
    }
    // PostgreSQL's and SQLite's words for reading a table from one end to the other.
    for walk in ["Seq Scan on charges", "Seq Scan on tieout_checks", "SCAN t", "SCAN c"] {
        assert!(plan.iter().all(|step| !step.contains(walk)), "{walk}: {plan:#?}");
    }
    w.finish().await;
}

/// Once it was analyzed with nothing but stuck rows in it, a batch would walk the whole table.
pub async fn a_table_of_one_status_is_written_by_its_key<D: Under>() {
    let w = World::<D>::new().await;
    w.raw
        .execute(
            "insert into charges (id, account, status, amount, currency, created_at)
             with recursive g(n) as (select 1 union all select n + 1 from g where n < 20000)
             select n, 'stripe', 'processing', 100, 'EUR', '2026-11-19T10:00:00Z' from g",
        )
        .await;
    w.raw.execute("analyze").await;
    let filter = ClaimFilter { stuck_before: Some(at(-20)), ..ClaimFilter::default() };
    let plan = w.store.claim_plan(&w.table, &filter, 100, noon()).await.unwrap();
    assert!(plan.iter().all(|step| !step.contains("SCAN w")), "{plan:#?}");
    // And rows that are named would be looked for among all.
    let ids = Some(vec!["3".to_owned(), "77".to_owned()]);
    let filter = ClaimFilter { ids, ..ClaimFilter::default() };
    let plan = w.store.claim_plan(&w.table, &filter, 100, noon()).await.unwrap();
    for walk in ["Seq Scan on charges", "SCAN t"] {
        assert!(plan.iter().all(|step| !step.contains(walk)), "{walk}: {plan:#?}");
    }
    w.finish().await;
}

pub async fn every_row_gets_its_turn<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=10).await;
    let mut seen = std::collections::BTreeSet::new();
    // Ten rows by four a run: three runs, and no row waits while another comes twice.
    for run in 0..3 {
        let (name, now) = (format!("r{run}"), at(run));
        let mut writer = w.start(&name, now).await;
        let claimed = w.claim(&name, 4, now).await;
        w.apply(&name, &mut writer, &claimed, wait(now), now).await;
        for id in ids(&claimed) {
            assert!(seen.insert(id.to_owned()), "{id} came twice");
        }
        w.close(&name, now).await;
    }
    assert_eq!(seen.len(), 10);
    w.finish().await;
}

/// A row that a file woke waits for what was due before it, and for nothing else: what a run gives
/// back, loses or leaves as it dies is due again behind it.
pub async fn what_comes_back_goes_behind<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=9).await;
    w.store.enrol(&w.table, &ClaimFilter::default(), noon()).await.unwrap();
    let later = to_text(at(600));
    let asleep = format!("update tieout_checks set next_check_at = '{later}' where key = '9'");
    w.raw.execute(&asleep).await;
    assert_eq!(w.store.wake("charges", &["9".to_owned()], at(1)).await.unwrap(), 1);
    w.start("stopped", at(2)).await;
    let claimed = w.claim("stopped", 3, at(2)).await;
    assert_eq!(ids(&claimed), ["1", "2", "3"]);
    w.store.release("stopped", &claimed, at(2)).await.unwrap();
    w.close("stopped", at(2)).await;
    w.start("killed", at(3)).await;
    assert_eq!(ids(&w.claim("killed", 3, at(3)).await), ["4", "5", "6"]);
    let closed = w.store.abandon_run("killed", at(6), TimeDelta::minutes(2)).await.unwrap();
    assert_eq!(closed.map(|run| run.released), Some(3));
    let mut writer = w.start("late", at(7)).await;
    let claimed = w.claim("late", 2, at(7)).await;
    assert_eq!(ids(&claimed), ["7", "8"]);
    w.raw.execute("update charges set amount = 1 where id in (7, 8)").await;
    let end = w.apply("late", &mut writer, &claimed, wait(at(7)), at(7)).await;
    assert_eq!(end, super::applies::done(0, 0, 2));
    w.close("late", at(7)).await;
    w.start("last", at(8)).await;
    assert_eq!(ids(&w.claim("last", 1, at(8)).await), ["9"], "woken a minute after noon");
    let rest = w.claim("last", 9, at(8)).await;
    assert_eq!(ids(&rest), ["1", "2", "3", "4", "5", "6", "7", "8"]);
    w.finish().await;
}

pub async fn windows_narrow<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=5).await;
    // Row 3 was sent again much later.
    w.raw.execute("update charges set attempted_at = '2026-11-19T11:50:00Z' where id = 3").await;
    let window = |from: i64, to: i64| (Some(at(from)), Some(at(to)));
    let (created_from, created_to) = window(-58, -56);
    let by_creation = ClaimFilter { created_from, created_to, ..ClaimFilter::default() };
    let (attempted_from, attempted_to) = window(-56, 0);
    let by_attempt = ClaimFilter { attempted_from, attempted_to, ..ClaimFilter::default() };
    w.start("r1", noon()).await;
    let preview = w.store.preview_due(&w.table, &by_attempt, 9, noon()).await.unwrap();
    assert_eq!(ids(&preview), ["3", "4", "5"]);
    // By the microsecond: what is on the minute is before the window's end, and its beginning.
    let past = TimeDelta::microseconds(1);
    let (from, to) = (created_from.map(|at| at + past), created_to.map(|at| at + past));
    let later = ClaimFilter { created_from: from, created_to: to, ..ClaimFilter::default() };
    let preview = w.store.preview_due(&w.table, &later, 9, noon()).await.unwrap();
    assert_eq!(ids(&preview), ["3", "4"]);
    // From is in, to is out.
    assert_eq!(ids(&w.claim_with("r1", &by_creation, 9, noon()).await), ["2", "3"]);
    assert_eq!(ids(&w.claim_with("r1", &by_attempt, 9, noon()).await), ["4", "5"]);
    assert_eq!(ids(&w.claim("r1", 9, noon()).await), ["1"]);
    // A row that was sent again after it was taken in is not stuck for now.
    let stuck = ClaimFilter { stuck_before: Some(at(-30)), ..ClaimFilter::default() };
    w.start("r2", at(10)).await;
    let claimed = w.claim_with("r2", &stuck, 9, at(10)).await;
    assert_eq!(BTreeSet::from_iter(ids(&claimed)), BTreeSet::from(["1", "2", "4", "5"]));
    w.finish().await;
}

pub async fn accounts_narrow<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=4).await;
    w.raw.execute("update charges set account = 'adyen' where id in (2, 3)").await;
    w.raw.execute("update charges set account = 'paypal' where id = 4").await;
    let of = |account: &str| ClaimFilter {
        accounts: Some(vec![account.to_owned()]),
        ..ClaimFilter::default()
    };
    w.start("r1", noon()).await;
    assert_eq!(ids(&w.claim_with("r1", &of("adyen_live"), 9, noon()).await), ["2", "3"]);
    assert_eq!(ids(&w.claim_with("r1", &of("stripe_live"), 9, noon()).await), ["1"]);
    let rest = w.claim("r1", 9, noon()).await;
    assert_eq!(ids(&rest), ["4"]);
    assert_eq!(rest[0].row.account.text(), "paypal");
    w.finish().await;
}

pub async fn named_rows_are_due_now<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=5).await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 3, noon()).await;
    let decide = |c: &tieout::store::records::Claimed| match c.row.key.id.as_str() {
        "1" => review(c),
        "2" => wait(noon())(c),
        _other => succeeded(c),
    };
    w.apply("r1", &mut writer, &claimed, decide, noon()).await;
    w.close("r1", noon()).await;
    w.start("r2", at(1)).await;
    let named = |ids: &[&str]| ClaimFilter {
        ids: Some(ids.iter().map(|id| (*id).to_owned()).collect()),
        ..ClaimFilter::default()
    };
    let filter = named(&["1", "2", "3", "5", "77"]);
    let preview = w.store.preview_due(&w.table, &filter, 9, at(1)).await.unwrap();
    let mut claimed = w.claim_with("r2", &filter, 9, at(1)).await;
    let by_id = |c: &tieout::store::records::Claimed| c.row.key.id.clone();
    claimed.sort_by_key(by_id);
    // 3 is paid: there is nothing to ask. 77 does not exist. 4 was not named.
    assert_eq!(ids(&claimed), ["1", "2", "5"]);
    assert_eq!(claimed[0].asked, Asked::Kick);
    assert!(claimed[0].open_case.is_some());
    assert_eq!([claimed[1].asked, claimed[2].asked], [Asked::Run, Asked::Run]);
    let mut previewed: Vec<String> = preview.iter().map(by_id).collect();
    previewed.sort();
    assert_eq!(previewed, ["1", "2", "5"]);
    w.store.release("r2", &claimed, at(1)).await.unwrap();
    let kicked = w.store.check("charges", "1").await.unwrap().unwrap();
    assert_eq!((kicked.state.as_str(), kicked.next_check_at), ("case", None));
    w.finish().await;
}

/// Rows that a run left, and none that it took, gave back, or that nobody would look at.
pub async fn what_a_run_leaves_is_still_due<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=3).await;
    w.start("r1", noon()).await;
    let filter = ClaimFilter { stuck_before: Some(at(-20)), ..ClaimFilter::default() };
    let is_due = async |run, now| w.store.is_due(run, &w.table, &filter, now).await.unwrap();
    assert!(!is_due("r1", noon()).await, "nothing was taken in");
    let claimed = w.claim_with("r1", &filter, 2, noon()).await;
    assert_eq!(claimed.len(), 2);
    assert!(is_due("r1", noon()).await);
    let last = w.claim_with("r1", &filter, 2, noon()).await;
    assert_eq!(last.len(), 1);
    assert!(!is_due("r1", noon()).await);
    w.store.release("r1", &claimed, noon()).await.unwrap();
    assert!(!is_due("r1", noon()).await, "it gave them back itself");
    w.start("r2", noon()).await;
    assert!(is_due("r2", noon()).await);
    assert!(!is_due("r2", at(-1)).await, "their time has not come");
    let named = ClaimFilter { ids: Some(vec!["3".to_owned()]), ..filter.clone() };
    let named = async |now| w.store.is_due("r2", &w.table, &named, now).await.unwrap();
    assert!(!named(noon()).await, "r1 has it");
    assert!(named(at(3)).await);
    // What left processing is only closed.
    w.raw.execute("update charges set status = 'paid'").await;
    assert!(!is_due("r2", at(3)).await);
    w.finish().await;
}

pub async fn times_ahead_are_counted<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=2).await;
    let filter = ClaimFilter::default();
    let ahead = async |filter: &ClaimFilter, after| {
        w.store.stuck_ahead(&w.table, filter, after).await.unwrap()
    };
    assert_eq!(ahead(&filter, noon()).await, Ahead::default());
    w.raw
        .execute(
            "insert into charges (id, account, status, amount, currency, created_at, attempted_at,
             moto) values
             (10, 'stripe', 'processing', 1, 'EUR', '2026-11-19T10:00:00Z',
              '2026-11-20T10:00:00Z', false),
             (11, 'stripe', 'processing', 1, 'EUR', '2027-01-01T00:00:00Z', null, false),
             (12, 'stripe', 'paid', 1, 'EUR', '2036-01-01T00:00:00Z', null, false),
             (13, 'stripe', 'processing', 1, 'EUR', '2036-01-01T00:00:00Z', null, true)",
        )
        .await;
    let newest = Some("2027-01-01T00:00:00Z".to_owned());
    assert_eq!(ahead(&filter, noon()).await, Ahead { rows: 2, newest: newest.clone() });
    assert_eq!(ahead(&filter, at(3 * 24 * 60)).await, Ahead { rows: 1, newest });
    let window = ClaimFilter { created_to: Some(noon()), ..ClaimFilter::default() };
    let newest = Some("2026-11-20T10:00:00Z".to_owned());
    assert_eq!(ahead(&window, noon()).await, Ahead { rows: 1, newest });
    let newest = w.store.newest_stuck(&w.table).await.unwrap();
    assert_eq!(newest.map(to_text).as_deref(), Some("2027-01-01T00:00:00.000000Z"));
    // No claim takes them for stuck; named, they are due like any other.
    let stuck = ClaimFilter { stuck_before: Some(at(-20)), ..ClaimFilter::default() };
    assert_eq!(w.store.enrol(&w.table, &stuck, noon()).await.unwrap(), 2);
    w.start("r1", noon()).await;
    let named = ClaimFilter { ids: Some(vec!["10".to_owned(), "11".to_owned()]), ..stuck };
    let preview = w.store.preview_due(&w.table, &named, 9, noon()).await.unwrap();
    assert_eq!(preview.len(), 2);
    assert_eq!(ids(&w.claim_with("r1", &named, 9, noon()).await), ["10", "11"]);
    w.finish().await;
}

pub async fn two_claimers_share_no_row<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=40).await;
    let other = D::again(&w.place).await;
    w.start("r1", noon()).await;
    w.start("r2", noon()).await;
    w.store.enrol(&w.table, &ClaimFilter::default(), noon()).await.unwrap();
    let filter = ClaimFilter::default();
    let until = at(2);
    let (one, two) = tokio::join!(
        w.store.claim_due("r1", &w.table, &filter, 25, noon(), until),
        other.claim_due("r2", &w.table, &filter, 25, noon(), until),
    );
    let (one, two) = (one.unwrap(), two.unwrap());
    assert!(ids(&one).iter().all(|id| !ids(&two).contains(id)));
    assert!(one.len() <= 25 && two.len() <= 25 && one.len() + two.len() >= 25);
    let rest = w.claim("r1", 25, noon()).await;
    assert_eq!(one.len() + two.len() + rest.len(), 40, "none is lost either");
    assert_eq!(w.claimed_total("r1").await.0 + w.claimed_total("r2").await.0, 40);
    w.finish().await;
}

pub async fn a_lapsed_lease_is_taken_over<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=3).await;
    let mut writer = w.start("r1", noon()).await;
    let first = w.claim("r1", 3, noon()).await;
    assert!(first.iter().all(|c| c.token == 1));
    w.start("r2", at(1)).await;
    assert!(w.claim("r2", 3, at(1)).await.is_empty(), "the lease holds");
    // A heartbeat renews it.
    assert!(w.store.heartbeat("r1", at(2), at(4)).await.unwrap());
    assert!(w.claim("r2", 3, at(3)).await.is_empty());
    let second = w.claim("r2", 2, at(5)).await;
    assert_eq!(second.len(), 2);
    assert!(second.iter().all(|c| c.token == 2), "the token grew");
    // Nobody took the third: its lapsed lease is still good.
    let third: Vec<_> = first.iter().filter(|c| c.row.key.id == "3").cloned().collect();
    let end = w.apply("r1", &mut writer, &third, succeeded, at(5)).await;
    assert_eq!(end, super::applies::done(1, 0, 0));
    assert_eq!(w.status("3").await, "paid");
    let totals = w.totals("r1").await;
    assert!(totals.contains(&("EUR/claimed".to_owned(), 3, 3 * 1900 + 6)), "{totals:?}");
    assert!(totals.contains(&("EUR/released".to_owned(), 2, 2 * 1900 + 3)), "{totals:?}");
    w.finish().await;
}

pub async fn released_rows_are_due_again<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=2).await;
    w.start("r1", noon()).await;
    let claimed = w.claim("r1", 2, noon()).await;
    w.store.release("r1", &claimed, at(1)).await.unwrap();
    w.store.release("r1", &claimed, at(1)).await.unwrap();
    assert!(w.totals("r1").await.contains(&("EUR/released".to_owned(), 2, 3803)));
    assert!(w.claim("r1", 2, at(1)).await.is_empty(), "none comes twice in one run");
    w.start("r2", at(1)).await;
    assert_eq!(w.claim("r2", 2, at(1)).await.len(), 2);
    w.finish().await;
}

pub async fn rows_that_left_are_closed<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=5).await;
    let mut writer = w.start("r1", noon()).await;
    let named = ClaimFilter { ids: Some(vec!["1".to_owned()]), ..ClaimFilter::default() };
    let kicked = w.claim_with("r1", &named, 9, noon()).await;
    w.apply("r1", &mut writer, &kicked, review, noon()).await;
    w.raw.execute("update charges set attempt = 2 where id = 1").await;
    w.store.enrol(&w.table, &ClaimFilter::default(), at(1)).await.unwrap();
    // The worker comes back for one, support deletes one, one turns out to be by phone.
    w.raw.execute("update charges set status = 'paid' where id in (1, 2)").await;
    w.raw.execute("delete from charges where id = 3").await;
    w.raw.execute("update charges set moto = true where id = 4").await;
    w.start("r2", at(1)).await;
    assert_eq!(ids(&w.claim("r2", 2, at(1)).await), ["5"]);
    for id in ["1", "2", "3", "4"] {
        assert_eq!(w.store.check("charges", id).await.unwrap().unwrap().state, "closed", "{id}");
    }
    let case = w.store.case(1).await.unwrap().unwrap();
    assert!(!case.open);
    assert_eq!(w.claimed_total("r2").await, (1, 1905), "what left is not counted");
    w.finish_unmapped().await;
}

pub async fn a_preview_writes_nothing<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=6).await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 3, noon()).await;
    w.apply("r1", &mut writer, &claimed, wait(noon()), noon()).await;
    w.close("r1", noon()).await;
    w.raw.execute("delete from tieout_checks where key = '6'").await;
    let dump = async || {
        w.raw
            .rows(
                "select key, state, coalesce(lease_run, ''), cast(next_check_at as text)
                    from tieout_checks order by key",
            )
            .await
    };
    let before = dump().await;
    let preview = w.store.preview_due(&w.table, &ClaimFilter::default(), 5, at(31)).await.unwrap();
    assert_eq!(dump().await, before);
    w.start("r2", at(31)).await;
    let real = w.claim("r2", 5, at(31)).await;
    assert_eq!(ids(&preview), ids(&real), "the plan is what the run then takes");
    for (planned, real) in preview.iter().zip(&real) {
        assert_eq!((&planned.row, planned.asked), (&real.row, real.asked));
        assert_eq!(planned.history, real.history);
    }
    w.finish().await;
}

pub async fn watched_rows_come_whatever_their_status<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=2).await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 2, noon()).await;
    w.apply("r1", &mut writer, &claimed, retryable(noon()), noon()).await;
    w.close("r1", noon()).await;
    assert_eq!(w.status("1").await, "retry");
    w.start("r2", at(14)).await;
    assert!(w.claim("r2", 9, at(14)).await.is_empty(), "not yet");
    w.raw.execute("update charges set status = 'paid' where id = 2").await;
    let claimed = w.claim("r2", 9, at(15)).await;
    assert_eq!(ids(&claimed), ["1", "2"]);
    assert!(claimed.iter().all(|c| c.asked == Asked::Watch));
    let last = claimed[0].history.last_handback.clone().unwrap();
    assert_eq!((last.number, last.at, last.taken_at), (1, noon(), None));
    w.finish_unmapped().await;
}

pub async fn a_hand_back_is_taken_when_the_status_leaves<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=2).await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 2, noon()).await;
    let decided = retryable(noon())(&claimed[0]);
    let charge_before = hand_back(&decided).charge_before();
    w.apply("r1", &mut writer, &claimed, retryable(noon()), noon()).await;
    w.close("r1", noon()).await;
    w.raw.execute("update charges set status = 'sent', attempt = 2 where id = 2").await;
    let mut writer = w.start("r2", at(20)).await;
    let claimed = w.claim("r2", 9, at(20)).await;
    assert_eq!(claimed.len(), 2);
    let taken = |id: &str| {
        let claimed = claimed.iter().find(|c| c.row.key.id == id).unwrap();
        (claimed.asked, claimed.history.last_handback.clone().unwrap())
    };
    assert_eq!(taken("1").1.taken_at, None);
    assert_eq!((taken("2").0, taken("2").1.taken_at), (Asked::Run, Some(at(20))));
    let stored = w.store.handbacks("charges", "2").await.unwrap();
    assert_eq!((stored.len(), stored[0].taken_at), (1, Some(at(20))));
    assert_eq!(stored[0].charge_before, charge_before);
    // The second hand-back of a row that took its first is number 2.
    let again: Vec<_> = claimed.into_iter().filter(|c| c.row.key.id == "2").collect();
    w.apply("r2", &mut writer, &again, retryable(at(20)), at(20)).await;
    let stored = w.store.handbacks("charges", "2").await.unwrap();
    assert_eq!(stored.iter().map(|h| h.number).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(stored[1].at, at(20));
    assert_eq!(stored[1].charge_before, at(20) + TimeDelta::hours(24));
    w.finish_unmapped().await;
}

/// A mapping may have a value for absence and none for a decline, or one in another of its lines:
/// the row then stays in processing, and that it is not `retry` says nothing.
pub async fn a_hand_back_without_a_status_is_taken_by_a_change<D: Under>() {
    let silent = MAPPING.replace("retryable = \"retry\"", "absent = \"canceled\"");
    let another = "absent = \"canceled\"\n    [[map]]\n    from = [\"sent\"]\n    \
                   retryable = \"retry\"\n    absent = \"canceled\"";
    let two = silent.replace(", \"sent\"]", "]").replace("absent = \"canceled\"", another);
    for mapping in [silent, two] {
        let mut w = World::<D>::new().await;
        w.table = w.mapped(&mapping).await;
        w.stuck(1..=4).await;
        let mut writer = w.start("r1", noon()).await;
        let claimed = w.claim("r1", 4, noon()).await;
        w.apply("r1", &mut writer, &claimed, retryable(noon()), noon()).await;
        w.close("r1", noon()).await;
        assert_eq!(w.status("1").await, "processing");
        // One was sent again and is stuck once more, one came to its end, one was given up.
        for change in [
            "attempted_at = '2026-11-19T12:10:00Z', attempt = 2 where id = 2",
            "status = 'paid' where id = 3",
            "status = 'canceled' where id = 4",
        ] {
            w.raw.execute(&format!("update charges set {change}")).await;
        }
        w.start("r2", at(20)).await;
        let claimed = w.claim("r2", 9, at(20)).await;
        let taken = |id: &str| {
            let claimed = claimed.iter().find(|c| c.row.key.id == id).unwrap();
            claimed.history.last_handback.clone().unwrap().taken_at
        };
        let all = ["1", "2", "3", "4"].map(taken);
        assert_eq!(all, [None, Some(at(20)), Some(at(20)), Some(at(20))], "{mapping}");
        let stored = w.store.handbacks("charges", "1").await.unwrap();
        assert_eq!((stored.len(), stored[0].taken_at), (1, None));
        w.finish_unmapped().await;
    }
}

/// A row under watch that its view does not show any more is looked for again as long as its table
/// has it, and is watched on once it is shown; one that is gone from its table is closed.
pub async fn a_watch_that_a_view_hides_goes_on<D: Under>() {
    let mut w = World::<D>::new().await;
    w.raw.execute("create view shown as select * from charges where note is null").await;
    let view = "read = \"shown\"\n    write = \"charges\"";
    w.table = w.mapped(&MAPPING.replace("read = \"charges\"", view)).await;
    w.stuck(1..=3).await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 9, noon()).await;
    w.apply("r1", &mut writer, &claimed, retryable(noon()), noon()).await;
    w.close("r1", noon()).await;
    w.raw.execute("update charges set note = 'hidden' where id = 1").await;
    w.raw.execute("delete from charges where id = 2").await;
    let stuck = ClaimFilter { stuck_before: Some(at(-20)), ..ClaimFilter::default() };
    w.start("r2", at(15)).await;
    assert_eq!(ids(&w.claim_with("r2", &stuck, 9, at(15)).await), ["3"]);
    w.close("r2", at(16)).await;
    let state = async |key: &str| {
        let check = w.store.check("charges", key).await.unwrap().unwrap();
        (check.state, check.next_check_at, check.lease)
    };
    assert_eq!(state("1").await, ("watch".to_owned(), Some(at(75)), None));
    assert_eq!(state("2").await, ("closed".to_owned(), None, None));
    // Shown again, it is watched on, with its hand-back.
    w.raw.execute("update charges set note = null where id = 1").await;
    w.start("r3", at(76)).await;
    let claimed = w.claim_with("r3", &stuck, 9, at(76)).await;
    let one = claimed.iter().find(|c| c.row.key.id == "1").unwrap();
    assert_eq!(one.asked, Asked::Watch);
    assert_eq!(one.history.last_handback.as_ref().map(|last| last.number), Some(1));
    w.close("r3", at(77)).await;
    // Not for ever.
    w.raw.execute("update charges set note = 'hidden' where id = 1").await;
    let later = noon() + TimeDelta::days(8);
    w.start("r4", later).await;
    w.claim_with("r4", &stuck, 9, later).await;
    assert_eq!(state("1").await.0, "closed");
    // Its worker may still come for what is only hidden, and never for what is gone.
    assert_eq!(w.raw.rows(HAND_BACKS).await, rows(["1 open", "2 row_gone", "3 open"]));
    w.finish_unmapped().await;
}

/// Why each hand-back ended.
const HAND_BACKS: &str =
    "select key || ' ' || coalesce(end_reason, 'open') from tieout_handbacks order by key";

fn rows<const N: usize>(texts: [&str; N]) -> Vec<Vec<Option<String>>> {
    texts.map(|text| vec![Some(text.to_owned())]).into()
}

/// Nobody can say what becomes of a payment whose row is gone, or has another key: nobody may send
/// it again.
pub async fn a_hand_back_of_a_row_that_is_gone_ends<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=4).await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 9, noon()).await;
    w.apply("r1", &mut writer, &claimed, retryable(noon()), noon()).await;
    w.close("r1", noon()).await;
    // A worker took one before its row was deleted.
    let took = "update tieout_handbacks set taken_at = '2026-11-19T12:05:00.000000Z' \
                where key = '4'";
    w.raw.execute(took).await;
    w.raw.execute("delete from charges where id in (1, 4)").await;
    w.raw.execute("update charges set id = 22 where id = 2").await;
    w.start("r2", at(15)).await;
    assert_eq!(ids(&w.claim("r2", 9, at(15)).await), ["3"]);
    let ends = ["1 row_gone", "2 row_gone", "3 open", "4 open"];
    assert_eq!(w.raw.rows(HAND_BACKS).await, rows(ends));
    let ended = w.store.handbacks("charges", "1").await.unwrap();
    assert_eq!(ended[0].ended_at, Some(at(15)));
    assert_eq!(w.store.check("charges", "1").await.unwrap().unwrap().state, "closed");
    w.finish_unmapped().await;
}

/// A view may show rows whose key it does not know: nothing could name them, and the others come.
pub async fn rows_without_a_key_hold_up_no_other<D: Under>() {
    let mut w = World::<D>::new().await;
    w.raw.execute("create table links (n bigint primary key, id bigint)").await;
    w.raw
        .execute(
            "create view charges_v as select l.id, c.account, c.status, c.amount, c.currency,
             c.created_at, c.attempted_at, c.psp_ref, c.subscription, c.moto, c.attempt
             from charges c join links l on l.n = c.id",
        )
        .await;
    let view = "read = \"charges_v\"\n    write = \"charges\"";
    w.table = w.mapped(&MAPPING.replace("read = \"charges\"", view)).await;
    w.stuck(1..=4).await;
    w.raw.execute("update charges set status = 'failed' where id = 4").await;
    w.raw.execute("insert into links values (1, 1), (2, null), (3, 3), (4, null)").await;
    let filter = ClaimFilter { given_up: true, ..ClaimFilter::default() };
    let preview = w.store.preview_due(&w.table, &filter, 9, noon()).await.unwrap();
    assert_eq!(ids(&preview), ["1", "3"]);
    w.start("r1", noon()).await;
    assert_eq!(ids(&w.claim_with("r1", &filter, 9, noon()).await), ["1", "3"]);
    // Such a row is another than those that have a key.
    w.raw.execute("update charges set psp_ref = 'pi_1' where id in (1, 2)").await;
    let asked = ["pi_1".to_owned()];
    let stored = w.store.keys_storing(&w.table, "stripe_live", &asked).await.unwrap();
    assert_eq!(stored.len(), 2, "{stored:?}");
    w.finish_unmapped().await;
}
