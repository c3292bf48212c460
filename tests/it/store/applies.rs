//! Carrying decisions out.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use tieout::decide::decision::{Asked, Decision};
use tieout::decide::policy::Mode;
use tieout::model::reason::{Outcome, Reason};
use tieout::model::time::to_text;
use tieout::model::transaction::{SiblingFact, SiblingState, hex};
use tieout::store::driver::CaseFilter;
use tieout::store::effects::{Beside, RowEffects};
use tieout::store::records::{Applied, ApplyEnd, ClaimFilter, Claimed};

use super::world::{
    MAPPING, Under, World, at, eur, failed, noon, retryable, review, succeeded, succeeded_by, wait,
};

/// How many rows were carried out, withheld, superseded.
pub fn done(applied: usize, withheld: usize, superseded: usize) -> ApplyEnd {
    let (elsewhere, paused, not_applied) = (Vec::new(), BTreeMap::new(), Vec::new());
    ApplyEnd::Done { applied, withheld, superseded, elsewhere, paused, not_applied }
}

/// So many rows were carried out, and these given back, as their account is paused.
fn held<const N: usize>(accounts: [(&str, usize); N], applied: usize) -> ApplyEnd {
    let paused = accounts.map(|(account, rows)| (account.to_owned(), rows)).into();
    let (elsewhere, not_applied) = (Vec::new(), Vec::new());
    ApplyEnd::Done { applied, withheld: 0, superseded: 0, elsewhere, paused, not_applied }
}

/// What a decision was made from may be stored already.
pub async fn evidence_that_is_stored_stays<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=2).await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 9, noon()).await;
    let body = "{\"key\":\"2\",\"run\":\"r1\"}";
    let (sha256, early) = (hex(&Sha256::digest(body)), to_text(at(-60)));
    let values = format!("'{sha256}', '{body}', '{early}'");
    let stored = "insert into tieout_evidence (sha256, body, created_at) values";
    w.raw.execute(&format!("{stored} ({values})")).await;
    let end = w.apply("r1", &mut writer, &claimed, succeeded, at(1)).await;
    assert_eq!(end, done(2, 0, 0));
    let of_two = format!("select body from tieout_evidence where sha256 = '{sha256}'");
    assert_eq!(w.raw.rows(&of_two).await, [vec![Some(body.to_owned())]]);
    let records = w.store.journal_of_row("charges", "2").await.unwrap();
    assert_eq!(records[0].evidence_sha256, sha256);
    w.close("r1", at(2)).await;
    w.finish().await;
}

pub async fn a_success_writes_everything<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=2).await;
    w.raw.execute("update charges set psp_ref = 'pi_known', version = 7 where id = 2").await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 9, noon()).await;
    assert_eq!(claimed[0].row.money, Some(eur(1901)));
    let end = w.apply("r1", &mut writer, &claimed, succeeded, at(1)).await;
    assert_eq!(end, done(2, 0, 0));
    assert_eq!(writer.seq, 2);
    let rows =
        "select status, psp_ref, cast(version as text), substr(cast(updated_at as text), 1, 16)
                from charges order by id";
    let text = |text: &str| Some(text.to_owned());
    let updated = w.raw.rows("select substr(cast(updated_at as text), 1, 16) from charges").await;
    let stamp = updated[0][0].clone();
    assert!(stamp.is_some());
    assert_eq!(
        w.raw.rows(rows).await,
        [
            // A counter that was NULL begins at 1; a reference that is there stays.
            vec![text("paid"), text("pi_1"), text("1"), stamp.clone()],
            vec![text("paid"), text("pi_known"), text("8"), stamp],
        ]
    );
    let events = "select cast(charge_id as text), status, was from charge_events order by 1";
    assert_eq!(
        w.raw.rows(events).await,
        [
            vec![text("1"), text("paid"), text("processing")],
            vec![text("2"), text("paid"), text("processing")],
        ]
    );
    let records = w.store.journal_of_row("charges", "1").await.unwrap();
    let [record] = records.as_slice() else { panic!("{records:#?}") };
    assert_eq!((record.outcome, record.reason), (Outcome::Succeeded, Reason::Captured));
    assert_eq!(
        (record.status_before.as_str(), record.status_after.as_str()),
        ("processing", "paid")
    );
    assert_eq!((record.amount_minor, record.psp_amount_minor), (1901, Some(1901)));
    assert_eq!(record.hash, record.expected_hash());
    assert_eq!(record.fingerprint, claimed[0].row.fingerprint());
    let evidence = w.store.evidence(&record.evidence_sha256).await.unwrap().unwrap();
    assert!(evidence.contains("\"key\":\"1\""), "{evidence}");
    let check = w.store.check("charges", "1").await.unwrap().unwrap();
    assert_eq!((check.state.as_str(), check.lease), ("closed", None));
    assert_ne!(check.image, claimed[0].row.image, "the image is the one after the write");
    let outbox = "select kind, cast(version as text) from tieout_outbox order by key";
    assert_eq!(w.raw.rows(outbox).await[0], [text("transaction.succeeded"), text("1")]);
    assert!(w.totals("r1").await.contains(&("EUR/succeeded".to_owned(), 2, 3803)));
    assert!(w.close("r1", at(2)).await);
    w.finish().await;
}

pub async fn a_reference_that_is_empty_is_none<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=3).await;
    w.raw.execute("update charges set psp_ref = '' where id = 1").await;
    w.raw.execute("update charges set psp_ref = ' ' where id = 2").await;
    w.raw.execute("update charges set psp_ref = ' pi_known ' where id = 3").await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 9, noon()).await;
    let end = w.apply("r1", &mut writer, &claimed, succeeded, at(1)).await;
    assert_eq!(end, done(3, 0, 0));
    let rows = w.raw.rows("select psp_ref from charges order by id").await;
    let found: Vec<Option<&str>> = rows.iter().map(|row| row[0].as_deref()).collect();
    assert_eq!(found, [Some("pi_1"), Some("pi_2"), Some(" pi_known ")]);
    w.finish().await;
}

pub async fn a_wait_writes_no_status_but_compares<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=2).await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 9, noon()).await;
    w.raw.execute("update charges set amount = 1 where id = 2").await;
    let end = w.apply("r1", &mut writer, &claimed, wait(noon()), noon()).await;
    assert_eq!(end, done(1, 0, 1));
    assert_eq!(w.status("1").await, "processing");
    let one = w.store.check("charges", "1").await.unwrap().unwrap();
    assert_eq!((one.state.as_str(), one.next_check_at), ("open", Some(at(30))));
    assert_eq!(one.history.checks, 1);
    let two = w.store.check("charges", "2").await.unwrap().unwrap();
    assert_eq!((two.state.as_str(), two.next_check_at), ("open", Some(noon())), "due at once");
    assert_eq!(two.history.checks, 0);
    assert_eq!(w.raw.one("select cast(count(*) as text) from charge_events").await, "0");
    assert_eq!(w.raw.one("select cast(count(*) as text) from tieout_outbox").await, "0");
    w.close("r1", at(1)).await;
    // The next run sees the row as it is now.
    w.start("r2", at(1)).await;
    let claimed = w.claim("r2", 9, at(1)).await;
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].row.money, Some(eur(1)));
    assert_eq!(claimed[0].history.fingerprint_seen_at, at(1));
    w.finish().await;
}

pub async fn any_mapped_column_supersedes<D: Under>() {
    let changes = [
        ("account", "'adyen'"),
        ("status", "'sent'"),
        ("amount", "2"),
        ("amount", "null"),
        ("currency", "'USD'"),
        ("created_at", "'2026-11-18T00:00:00Z'"),
        ("attempted_at", "'2026-11-19T11:59:59Z'"),
        ("attempted_at", "null"),
        ("psp_ref", "'pi_other'"),
        ("psp_ref", "''"),
        ("subscription", "99"),
        ("moto", "true"),
        ("attempt", "2"),
    ];
    let w = World::<D>::new().await;
    let mapped: Vec<&str> = w.table.cells.iter().map(|c| c.name.as_str()).collect();
    for column in &mapped {
        assert!(*column == "id" || changes.iter().any(|(c, _)| c == column), "{column} is untried");
    }
    let count = i64::try_from(changes.len()).unwrap();
    // One row for each change and each way of deciding, and one that stays.
    w.stuck(1..=(2 * count + 1)).await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 99, noon()).await;
    for (place, (column, value)) in (1_i64..).zip(changes) {
        let sql = format!(
            "update charges set {column} = {value} where id in ({place}, {})",
            place + count
        );
        assert_eq!(w.raw.execute(&sql).await, 2);
    }
    w.raw.execute("delete from charges where id = 1").await;
    let decide = |c: &Claimed| match c.row.key.id.parse::<i64>().unwrap() {
        id if id <= count => succeeded(c),
        _other => wait(noon())(c),
    };
    let before = w.raw.rows("select cast(id as text), status from charges order by id").await;
    let end = w.apply("r1", &mut writer, &claimed, decide, noon()).await;
    assert_eq!(end, done(1, 0, claimed.len() - 1));
    let after = w.raw.rows("select cast(id as text), status from charges order by id").await;
    assert_eq!(before, after);
    for record in w.store.journal_of_run("r1", None, 99).await.unwrap() {
        let survives = record.key == (2 * count + 1).to_string();
        assert_eq!(record.applied == Applied::Yes, survives, "{record:#?}");
    }
    // A column that is not mapped is nobody's business.
    w.raw.execute("update charges set note = 'edited'").await;
    w.finish_unmapped().await;
}

/// Somebody else ended the row before what was decided could be written. Where money had been seen
/// for it, it comes once more whatever its status, unless that says that it was paid.
pub async fn money_seen_as_a_row_left_is_held_against_its_end<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=5).await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 9, noon()).await;
    for (id, change) in [
        (1, "status = 'failed'"),
        (2, "status = 'new'"),
        (3, "status = 'paid'"),
        (4, "status = 'failed'"),
        (5, "attempt = 2"),
    ] {
        w.raw.execute(&format!("update charges set {change} where id = {id}")).await;
    }
    // Of row 4 no money was seen.
    let decide = |c: &Claimed| match c.row.key.id.as_str() {
        "4" => wait(noon())(c),
        _other => succeeded(c),
    };
    assert_eq!(w.apply("r1", &mut writer, &claimed, decide, noon()).await, done(0, 0, 5));
    w.close("r1", at(1)).await;
    let named = |claimed: &[Claimed]| -> Vec<(String, Asked)> {
        let mut named: Vec<_> = claimed.iter().map(|c| (c.row.key.id.clone(), c.asked)).collect();
        named.sort_by(|one, other| one.0.cmp(&other.0));
        named
    };
    let asked = [("1", Asked::Watch), ("2", Asked::Watch), ("5", Asked::Run)];
    let asked = asked.map(|(id, why)| (id.to_owned(), why));
    let filter = ClaimFilter { stuck_before: Some(at(-20)), ..ClaimFilter::default() };
    let preview = w.store.preview_due(&w.table, &filter, 9, at(1)).await.unwrap();
    assert_eq!(named(&preview), asked);
    let mut writer = w.start("r2", at(1)).await;
    let claimed = w.claim_with("r2", &filter, 9, at(1)).await;
    assert_eq!(named(&claimed), asked);
    let decide = |c: &Claimed| match c.row.key.id.as_str() {
        "1" => review(c),
        "2" => Decision { reason: Reason::Watched, ..wait(at(1))(c) },
        _other => succeeded(c),
    };
    assert_eq!(w.apply("r2", &mut writer, &claimed, decide, at(1)).await, done(3, 0, 0));
    w.close("r2", at(2)).await;
    let mut states = Vec::new();
    for id in ["1", "2", "3", "4", "5"] {
        states.push(w.store.check("charges", id).await.unwrap().unwrap().state);
    }
    assert_eq!(states, ["case", "closed", "closed", "closed", "closed"]);
    assert_eq!(w.status("5").await, "paid");
    // It was one look.
    w.start("r3", at(60)).await;
    assert!(w.claim("r3", 9, at(60)).await.is_empty());
    w.finish_unmapped().await;
}

pub async fn a_pause_holds_up_to_the_commit<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=2).await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 2, noon()).await;
    w.store.put_account_state("stripe_live", None, None).await.unwrap();
    let pause = "update tieout_accounts set paused_at = '2026-11-19T12:00:00.000000Z', \
                 paused_by = 'ann', paused_why = 'audit'";
    assert_eq!(w.raw.execute(pause).await, 1);
    let end = w.apply("r1", &mut writer, &claimed, succeeded, noon()).await;
    assert_eq!(end, held([("stripe_live", 2)], 0));
    assert_eq!([w.status("1").await, w.status("2").await], ["processing", "processing"]);
    // They did not change: they are given back, and have no record.
    let totals = w.totals("r1").await;
    let rows = |name: &str| totals.iter().find(|(bucket, ..)| bucket == name).map(|(_, n, _)| *n);
    assert_eq!((rows("EUR/claimed"), rows("EUR/released"), totals.len()), (Some(2), Some(2), 2));
    assert!(w.store.journal_of_run("r1", None, 9).await.unwrap().is_empty());
    w.raw.execute("update tieout_accounts set paused_at = null, paused_by = null").await;
    let mut writer = w.start("r2", at(1)).await;
    let claimed = w.claim("r2", 2, at(1)).await;
    assert_eq!(claimed.len(), 2, "what was only paused is due again");
    let end = w.apply("r2", &mut writer, &claimed, succeeded, at(1)).await;
    assert_eq!(end, done(2, 0, 0));
    w.finish().await;
}

/// The rows of another account in the same batch are written.
pub async fn a_pause_holds_its_own_rows_alone<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=5).await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 5, noon()).await;
    let mut batch: Vec<RowEffects> =
        claimed.iter().map(|one| w.effect("r1", one, succeeded(one), noon())).collect();
    for index in [1_usize, 3] {
        batch[index].journal.account = "adyen_live".to_owned();
    }
    let kept: Vec<String> = [0_usize, 2, 4].map(|index| batch[index].journal.key.clone()).into();
    w.store.pause_account("adyen_live", "ann", "audit", noon()).await.unwrap();
    let end = w.store.apply("r1", &mut writer, &w.table, batch, noon()).await.unwrap();
    let ApplyEnd::Done { not_applied, .. } = &end else { panic!("the run is open") };
    let told: Vec<_> = not_applied.iter().map(|row| (row.why(), row.status.as_deref())).collect();
    assert_eq!(told, [("paused", None::<&str>); 2]);
    assert!(not_applied.iter().all(|row| !kept.contains(&row.key)), "{not_applied:?}");
    let mut end = end.clone();
    if let ApplyEnd::Done { not_applied, .. } = &mut end {
        not_applied.clear();
    }
    assert_eq!(end, held([("adyen_live", 2)], 3));
    let records = w.store.journal_of_run("r1", None, 9).await.unwrap();
    let written: Vec<String> = records.iter().map(|record| record.key.clone()).collect();
    assert_eq!(written, kept);
    assert!(w.close("r1", at(1)).await);
    assert_eq!(w.store.verify_audit().await.unwrap().breaks, Vec::<String>::new());
    w.finish().await;
}

pub async fn a_lost_lease_supersedes_and_ties_out<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=3).await;
    let mut slow = w.start("slow", noon()).await;
    let first = w.claim("slow", 3, noon()).await;
    let mut quick = w.start("quick", at(5)).await;
    let second = w.claim("quick", 2, at(5)).await;
    // The slow one comes to: two of its leases are lost, one lapsed and is still its own.
    let end = w.apply("slow", &mut slow, &first, succeeded, at(6)).await;
    assert_eq!(end, done(1, 0, 2));
    assert_eq!([w.status("1").await, w.status("3").await], ["processing", "paid"]);
    let held = w.store.check("charges", "1").await.unwrap().unwrap();
    assert_eq!(held.lease, Some(("quick".to_owned(), at(7))), "the new owner's lease stands");
    let totals = w.totals("slow").await;
    assert!(totals.contains(&("EUR/superseded".to_owned(), 2, 3803)), "{totals:?}");
    let end = w.apply("quick", &mut quick, &second, succeeded, at(6)).await;
    assert_eq!(end, done(2, 0, 0));
    // Applying twice is as good as applying once.
    w.apply("quick", &mut quick, &second, failed, at(6)).await;
    assert_eq!(w.status("1").await, "paid");
    w.totals("quick").await;
    w.finish().await;
}

pub async fn modes_withhold<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=6).await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 9, noon()).await;
    let modes = [
        (Mode::Observe, succeeded(&claimed[0]), true),
        (Mode::Observe, retryable(noon())(&claimed[1]), true),
        (Mode::SucceedOnly, succeeded(&claimed[2]), false),
        (Mode::SucceedOnly, retryable(noon())(&claimed[3]), true),
        (Mode::SucceedOnly, failed(&claimed[4]), true),
        (Mode::Observe, review(&claimed[5]), false),
    ];
    let batch = claimed
        .iter()
        .zip(&modes)
        .map(|(c, (mode, decision, _))| w.effect_in(*mode, "r1", c, decision.clone(), noon()))
        .collect();
    let end = w.store.apply("r1", &mut writer, &w.table, batch, noon()).await.unwrap();
    assert_eq!(end, done(2, 4, 0));
    // Of this run alone, and whether it ends by itself or not.
    w.start("r2", noon()).await;
    for (run, withheld) in [("r1", 4), ("r2", 0), ("none", 0)] {
        assert_eq!(w.store.withheld_of_run(run).await.unwrap(), withheld, "{run}");
    }
    for (claimed, (mode, decision, withheld)) in claimed.iter().zip(&modes) {
        let key = &claimed.row.key.id;
        let record = w.store.journal_of_row("charges", key).await.unwrap().remove(0);
        assert_eq!(record.applied == Applied::Withheld, *withheld, "{mode:?} {decision:?}");
        let expected = if key == "3" { "paid" } else { "processing" };
        assert_eq!(w.status(key).await, expected);
    }
    assert_eq!(w.raw.one("select cast(count(*) as text) from tieout_outbox").await, "1");
    assert_eq!(w.raw.one("select cast(count(*) as text) from tieout_handbacks").await, "0");
    let open = w.store.check("charges", "1").await.unwrap().unwrap();
    assert_eq!(open.state, "open", "what is withheld is asked again");
    w.totals("r1").await;
    w.finish().await;
}

pub async fn a_review_opens_one_case<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=2).await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 9, noon()).await;
    w.apply("r1", &mut writer, &claimed, review, noon()).await;
    w.close("r1", at(1)).await;
    let open = CaseFilter { open_only: true, limit: 9, ..CaseFilter::default() };
    let cases = w.store.cases(&open).await.unwrap();
    assert_eq!(cases.len(), 2);
    let case = &cases[0];
    assert_eq!(
        (case.subject.as_str(), case.reason, case.open),
        ("1", Reason::AmountMismatch, true)
    );
    assert_eq!((case.amount_minor, case.currency.as_str(), case.times_seen), (1901, "EUR", 1));
    assert_eq!((case.opened_at, case.opened_run.as_str()), (noon(), "r1"));
    let record = w.store.journal_of_row("charges", "1").await.unwrap().remove(0);
    assert_eq!(record.case_number, Some(case.number));
    // Kicked twice: once again review, then decided.
    let ids = || tieout::store::records::ClaimFilter {
        ids: Some(vec!["1".to_owned()]),
        ..tieout::store::records::ClaimFilter::default()
    };
    let mut writer = w.start("r2", at(2)).await;
    let kicked = w.claim_with("r2", &ids(), 9, at(2)).await;
    assert_eq!((kicked[0].asked, kicked[0].open_case), (Asked::Kick, Some(case.number)));
    w.apply("r2", &mut writer, &kicked, review, at(2)).await;
    let again = w.store.case(case.number).await.unwrap().unwrap();
    assert_eq!((again.times_seen, again.last_seen_at, again.opened_at), (2, at(2), noon()));
    let mut writer = w.start("r3", at(3)).await;
    let kicked = w.claim_with("r3", &ids(), 9, at(3)).await;
    w.apply("r3", &mut writer, &kicked, succeeded, at(3)).await;
    let closed = w.store.case(case.number).await.unwrap().unwrap();
    assert_eq!((closed.open, closed.closed_at), (false, Some(at(3))));
    assert!(closed.resolution.unwrap().contains("captured"));
    assert_eq!(w.status("1").await, "paid");
    let counts = w.store.case_counts("r1").await.unwrap();
    assert_eq!((counts.opened, counts.closed, counts.open), (2, 0, 1));
    assert_eq!(w.store.case_counts("r3").await.unwrap().closed, 1);
    let by_reason = CaseFilter {
        reason: Some("amount_mismatch".to_owned()),
        after: Some(case.number),
        limit: 9,
        ..CaseFilter::default()
    };
    assert_eq!(w.store.cases(&by_reason).await.unwrap().len(), 1);
    w.finish().await;
}

pub async fn a_hand_back_is_numbered<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=1).await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 9, noon()).await;
    w.apply("r1", &mut writer, &claimed, retryable(noon()), noon()).await;
    w.close("r1", noon()).await;
    let handback = w.store.handbacks("charges", "1").await.unwrap().remove(0);
    assert_eq!((handback.number, handback.account.as_str()), (1, "stripe_live"));
    assert_eq!((handback.permit.as_str(), handback.retry.as_str()), ("unattempted", "same_object"));
    assert_eq!(handback.psp_reference.as_deref(), Some("pi_1"));
    assert_eq!(handback.fingerprint, claimed[0].row.fingerprint());
    let check = w.store.check("charges", "1").await.unwrap().unwrap();
    assert_eq!((check.state.as_str(), check.next_check_at), ("watch", Some(at(15))));
    assert_eq!(check.history.ended_as, Some(Outcome::Retryable));
    assert_eq!(check.history.watch_from, Some(noon()));
    // Money shows up before anyone took it: the hand-back is over, and a second one follows it.
    let mut writer = w.start("r2", at(15)).await;
    let watched = w.claim("r2", 9, at(15)).await;
    assert_eq!(watched[0].asked, Asked::Watch);
    w.apply("r2", &mut writer, &watched, review, at(15)).await;
    let open = "select cast(count(*) as text) from tieout_handbacks where ended_at is null";
    assert_eq!(w.raw.one(open).await, "0");
    let named = tieout::store::records::ClaimFilter {
        ids: Some(vec!["1".to_owned()]),
        ..tieout::store::records::ClaimFilter::default()
    };
    let mut writer = w.start("r3", at(60)).await;
    let kicked = w.claim_with("r3", &named, 9, at(60)).await;
    w.apply("r3", &mut writer, &kicked, retryable(at(60)), at(60)).await;
    let stored = w.store.handbacks("charges", "1").await.unwrap();
    assert_eq!(stored.iter().map(|h| h.number).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(w.raw.one(open).await, "1");
    // The database itself refuses two at a time.
    let twice = "insert into tieout_handbacks (table_name, key, number, run_id, at, account,
        fingerprint, permit, retry, charge_before, evidence_sha256) select table_name, key, 3,
        run_id, at, account, fingerprint, permit, 'new_attempt', charge_before, evidence_sha256
        from tieout_handbacks where number = 2";
    assert!(w.raw.try_execute(twice).await.is_err());
    w.finish().await;
}

pub async fn one_reference_explains_one_row<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=4).await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 9, noon()).await;
    // Rows 1 and 2 in one batch, row 3 in the next; row 4 has an object of its own.
    let shared = |c: &Claimed| succeeded_by(c, "pi_shared");
    let end = w.apply("r1", &mut writer, &claimed[..2], shared, noon()).await;
    assert_eq!(end, done(2, 0, 0));
    w.apply("r1", &mut writer, &claimed[2..3], shared, noon()).await;
    w.apply("r1", &mut writer, &claimed[3..], succeeded, noon()).await;
    let statuses: Vec<String> =
        [w.status("1").await, w.status("2").await, w.status("3").await, w.status("4").await].into();
    assert_eq!(statuses, ["paid", "processing", "processing", "paid"]);
    for key in ["2", "3"] {
        let record = w.store.journal_of_row("charges", key).await.unwrap().remove(0);
        assert_eq!((record.outcome, record.reason), (Outcome::Review, Reason::ReferenceClaimed));
        assert_eq!(record.text, "pi_shared already explains charges 1");
        assert!(record.case_number.is_some());
        let check = w.store.check("charges", key).await.unwrap().unwrap();
        assert_eq!((check.state.as_str(), check.history.ended_as), ("case", None));
    }
    w.totals("r1").await;
    w.finish().await;
}

pub async fn one_refused_row_of_fifty_is_a_case<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=50).await;
    // One period of a subscription is paid once, says the user's own index.
    w.raw
        .execute(
            "create unique index paid_once on charges (subscription) where status = 'paid';
             insert into charges (id, account, status, amount, currency, created_at, subscription)
             values (100, 'stripe', 'paid', 1, 'EUR', '2026-11-01T00:00:00Z', 23)",
        )
        .await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 99, noon()).await;
    assert_eq!(claimed.len(), 50);
    let end = w.apply("r1", &mut writer, &claimed, succeeded, noon()).await;
    assert_eq!(end, done(50, 0, 0));
    assert_eq!(w.status("23").await, "processing");
    let paid = "select cast(count(*) as text) from charges where status = 'paid'";
    assert_eq!(w.raw.one(paid).await, "50");
    assert_eq!(w.raw.one("select cast(count(*) as text) from charge_events").await, "49");
    let record = w.store.journal_of_row("charges", "23").await.unwrap().remove(0);
    assert_eq!((record.outcome, record.reason), (Outcome::Review, Reason::WriteRefused));
    assert_eq!(record.status_after, "processing");
    let case = w.store.case(record.case_number.unwrap()).await.unwrap().unwrap();
    assert_eq!((case.reason, case.subject.as_str()), (Reason::WriteRefused, "23"));
    assert!(w.totals("r1").await.contains(&("EUR/review".to_owned(), 1, 1923)));
    w.finish().await;
}

/// What a decision changes, held against these siblings as it is written.
fn beside(mut effect: RowEffects, claimed: &Claimed, siblings: &[SiblingFact]) -> RowEffects {
    let (row, siblings) = (claimed.row.clone(), siblings.to_vec());
    effect.beside = Some(Box::new(Beside { row, siblings }));
    effect
}

fn counts(end: ApplyEnd) -> (usize, usize) {
    let ApplyEnd::Done { applied, superseded, .. } = end else { panic!("the run is open") };
    (applied, superseded)
}

/// Two runs decide rows with one natural key at once, and neither saw the other's success.
pub async fn of_a_natural_key_one_is_paid_whoever_writes_it<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=40).await;
    w.raw.execute("update charges set subscription = id % 20 where id not in (20, 40)").await;
    w.raw.execute("update charges set subscription = null where id in (20, 40)").await;
    let again = D::again(&w.place).await;
    let (mut one, mut other) = (w.start("r1", noon()).await, w.start("r2", noon()).await);
    let mine = w.claim("r1", 20, noon()).await;
    let theirs = w.claim("r2", 20, noon()).await;
    let batch = |run: &str, rows: &[Claimed]| -> Vec<RowEffects> {
        let effect = |c: &Claimed| beside(w.effect(run, c, succeeded(c), noon()), c, &[]);
        rows.iter().map(effect).collect()
    };
    let (first, second) = tokio::join!(
        w.store.apply("r1", &mut one, &w.table, batch("r1", &mine), noon()),
        again.apply("r2", &mut other, &w.table, batch("r2", &theirs), noon()),
    );
    let (first, second) = (counts(first.unwrap()), counts(second.unwrap()));
    assert_eq!((first.0 + second.0, first.1 + second.1), (21, 19), "NULL is no key");
    let twice = "select cast(subscription as text) from charges where status = 'paid' \
                 and subscription is not null group by subscription having count(*) > 1";
    assert!(w.raw.rows(twice).await.is_empty());
    let due = "select cast(count(*) as text) from tieout_checks \
               where state = 'open' and lease_run is null";
    assert_eq!(w.raw.one(due).await, "19", "they are decided again");
    w.finish().await;
}

/// Of one batch the oldest row goes first; what was known as a row was decided is no news.
pub async fn nobody_is_charged_again_beside_what_a_sibling_became<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=3).await;
    w.raw.execute("update charges set subscription = 1").await;
    let mut writer = w.start("r1", noon()).await;
    let mut claimed = w.claim("r1", 9, noon()).await;
    claimed.sort_by(|one, other| other.row.key.id.cmp(&one.row.key.id));
    let [third, second, first] = claimed.as_slice() else { panic!("{claimed:?}") };
    let fact = |id: &str, state| SiblingFact { id: id.to_owned(), state, older: true, lacks: None };
    let known = [fact("1", SiblingState::Processing), fact("2", SiblingState::Processing)];
    let batch = vec![
        beside(w.effect("r1", second, succeeded(second), noon()), second, &[]),
        beside(w.effect("r1", first, succeeded(first), noon()), first, &[]),
        beside(w.effect("r1", third, retryable(noon())(third), noon()), third, &known),
    ];
    let end = w.store.apply("r1", &mut writer, &w.table, batch, noon()).await.unwrap();
    assert_eq!(counts(end), (1, 2));
    let status = [w.status("1").await, w.status("2").await, w.status("3").await];
    assert_eq!(status, ["paid", "processing", "processing"]);
    let none = "select cast(count(*) as text) from tieout_handbacks";
    assert_eq!(w.raw.one(none).await, "0");
    w.close("r1", at(1)).await;
    let mut writer = w.start("r2", at(1)).await;
    let claimed = w.claim("r2", 9, at(1)).await;
    let second = claimed.iter().find(|one| one.row.key.id == "2").unwrap();
    let known = [fact("1", SiblingState::Succeeded)];
    let batch = vec![beside(w.effect("r2", second, succeeded(second), at(1)), second, &known)];
    let end = w.store.apply("r2", &mut writer, &w.table, batch, at(1)).await.unwrap();
    assert_eq!(counts(end), (1, 0));
    w.finish().await;
}

/// What was given up since a row was decided, nobody was asked about.
pub async fn nobody_is_charged_again_beside_what_was_given_up_since<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=2).await;
    w.raw.execute("update charges set subscription = 1").await;
    let fact = |state| [SiblingFact { id: "2".to_owned(), state, older: false, lacks: None }];
    let decided =
        [("r1", fact(SiblingState::Processing), (0, 1)), ("r2", fact(SiblingState::Other), (1, 0))];
    for (now, (run, known, written)) in [noon(), at(40)].into_iter().zip(decided) {
        w.raw.execute("update charges set status = 'processing' where id = 2").await;
        let mut writer = w.start(run, now).await;
        let claimed = w.claim(run, 9, now).await;
        let first = claimed.iter().find(|one| one.row.key.id == "1").unwrap();
        w.raw.execute("update charges set status = 'failed' where id = 2").await;
        let batch = vec![beside(w.effect(run, first, retryable(now)(first), now), first, &known)];
        let end = w.store.apply(run, &mut writer, &w.table, batch, now).await.unwrap();
        assert_eq!(counts(end), written, "{run}");
        w.close(run, now).await;
    }
    assert_eq!(w.status("1").await, "retry");
    w.finish().await;
}

/// Something is seen at the PSP for a row, and may still be paid.
fn open(claimed: &Claimed) -> Decision {
    Decision { seen: succeeded(claimed).seen, ..wait(noon())(claimed) }
}

/// A hand-back that was made since a row was decided ends as well: who waits is proved afresh. Of
/// one batch nobody is handed back beside such a row.
pub async fn what_may_still_be_paid_ends_hand_backs_beside_it<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=3).await;
    w.raw.execute("update charges set subscription = 1").await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 9, noon()).await;
    let [first, _, third] = claimed.as_slice() else { panic!("{claimed:?}") };
    let fact =
        |id: &str, state| SiblingFact { id: id.to_owned(), state, older: false, lacks: None };
    let unpaid = [fact("2", SiblingState::Waiting), fact("3", SiblingState::Waiting)];
    let waits = "update tieout_checks set last_reason = 'sibling_pending' where key in ('2', '3')";
    w.raw.execute(waits).await;
    let batch = vec![
        beside(w.effect("r1", first, retryable(noon())(first), noon()), first, &unpaid),
        beside(w.effect("r1", third, open(third), noon()), third, &[]),
    ];
    let end = w.store.apply("r1", &mut writer, &w.table, batch, noon()).await.unwrap();
    assert_eq!(counts(end), (1, 1), "nobody is handed back beside what may still be paid");
    w.close("r1", at(1)).await;
    w.raw.execute("update tieout_checks set last_reason = 'sibling_pending' where key = '3'").await;
    let mut writer = w.start("r2", at(1)).await;
    let claimed = w.claim("r2", 9, at(1)).await;
    let first = claimed.iter().find(|one| one.row.key.id == "1").unwrap();
    let batch = vec![beside(w.effect("r2", first, retryable(at(1))(first), at(1)), first, &unpaid)];
    let end = w.store.apply("r2", &mut writer, &w.table, batch, at(1)).await.unwrap();
    assert_eq!(counts(end), (1, 0));
    assert_eq!(w.status("1").await, "retry");
    w.close("r2", at(2)).await;
    // What is only waited for, with nothing at the PSP, ends nothing.
    let mut writer = w.start("r3", at(40)).await;
    let claimed = w.claim("r3", 9, at(40)).await;
    let of = |id: &str| claimed.iter().find(|one| one.row.key.id == id).unwrap();
    let (second, third) = (of("2"), of("3"));
    let alone = wait(at(40))(second);
    let batch = vec![beside(w.effect("r3", second, alone, at(40)), second, &[])];
    w.store.apply("r3", &mut writer, &w.table, batch, at(40)).await.unwrap();
    let ends = async || w.store.handbacks("charges", "1").await.unwrap().remove(0).end_reason;
    assert_eq!(ends().await, None);
    let seen = Decision { next_check_at: Some(at(70)), ..open(third) };
    let batch = vec![beside(w.effect("r3", third, seen, at(40)), third, &[])];
    w.store.apply("r3", &mut writer, &w.table, batch, at(40)).await.unwrap();
    assert_eq!(ends().await.as_deref(), Some("sibling_pending"));
    let check = w.store.check("charges", "1").await.unwrap().unwrap();
    assert_eq!((check.state.as_str(), check.next_check_at), ("watch", Some(at(40))));
    assert_eq!((check.history.aged_from, check.history.misses.len()), (at(40), 0));
    // It is proved afresh, and costs none of its attempts; to the others it is a row to be decided.
    let siblings = w.store.siblings(&w.table, &[&second.row]).await.unwrap();
    let states: Vec<SiblingState> = siblings["2"].iter().map(|fact| fact.state).collect();
    assert_eq!(states, [SiblingState::Processing, SiblingState::Pending]);
    w.close("r3", at(41)).await;
    w.start("r4", at(60)).await;
    let claimed = w.claim("r4", 9, at(60)).await;
    let first = claimed.iter().find(|one| one.row.key.id == "1").unwrap();
    let past = first.history.last_handback.clone().unwrap();
    assert_eq!((first.asked, past.lapsed, past.stopped), (Asked::Watch, true, false));
    assert_eq!((first.history.handbacks, first.history.tries()), (1, 0));
    w.finish().await;
}

/// What was captured for a row that goes to a person counts as well, also where nobody knew of it
/// as its sibling was decided.
pub async fn who_is_paid_beside_a_case_is_decided_anew<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=2).await;
    w.raw.execute("update charges set subscription = 1").await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 9, noon()).await;
    let of = |id: &str| claimed.iter().find(|one| one.row.key.id == id).unwrap();
    let (first, second) = (of("1"), of("2"));
    let known = |id: &str| {
        [SiblingFact {
            id: id.to_owned(),
            state: SiblingState::Processing,
            older: false,
            lacks: None,
        }]
    };
    let case = Decision { seen: succeeded(second).seen, ..review(second) };
    let batch = vec![
        beside(w.effect("r1", first, succeeded(first), noon()), first, &known("2")),
        beside(w.effect("r1", second, case, noon()), second, &known("1")),
    ];
    let end = w.store.apply("r1", &mut writer, &w.table, batch, noon()).await.unwrap();
    assert_eq!(counts(end), (1, 1));
    assert_eq!(w.status("1").await, "processing");
    let siblings = w.store.siblings(&w.table, &[&first.row]).await.unwrap();
    assert_eq!(siblings["1"][0].state, SiblingState::PaidCase);
    // One that is as it was judged, and a person's for a sibling alone, stands back.
    for (text, state) in [
        ("absent, but row 1 with the same natural key was paid", SiblingState::StandsBack),
        ("pi_2 captured, and row 1 with the same natural key was paid", SiblingState::Processing),
    ] {
        let set = format!("update tieout_cases set reason = 'sibling_row', text = '{text}'");
        w.raw.execute(&set).await;
        let siblings = w.store.siblings(&w.table, &[&first.row]).await.unwrap();
        assert_eq!(siblings["1"][0].state, state, "{text}");
    }
    w.raw.execute("update tieout_cases set reason = 'amount_mismatch', text = ''").await;
    w.finish().await;
}

/// A row that was paid is paid whatever its mode writes of it.
pub async fn what_a_mode_withholds_ends_hand_backs_beside_it<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=2).await;
    w.raw.execute("update charges set subscription = 1").await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 9, noon()).await;
    let [first, second] = claimed.as_slice() else { panic!("{claimed:?}") };
    let batch = vec![w.effect("r1", first, retryable(noon())(first), noon())];
    w.store.apply("r1", &mut writer, &w.table, batch, noon()).await.unwrap();
    let paid = w.effect_in(Mode::Observe, "r1", second, succeeded(second), noon());
    let end = w.store.apply("r1", &mut writer, &w.table, vec![beside(paid, second, &[])], noon());
    assert_eq!(end.await.unwrap(), done(0, 1, 0));
    let ended = w.store.handbacks("charges", "1").await.unwrap().remove(0);
    assert_eq!(ended.end_reason.as_deref(), Some("sibling_row"));
    w.close("r1", at(1)).await;
    w.start("r2", at(1)).await;
    let claimed = w.claim("r2", 9, at(1)).await;
    let first = claimed.iter().find(|one| one.row.key.id == "1").unwrap();
    let past = first.history.last_handback.clone().unwrap();
    assert_eq!((first.asked, past.lapsed, past.stopped), (Asked::Watch, false, true));
    w.finish().await;
}

pub async fn a_trigger_that_meddles_is_a_case<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=4).await;
    let triggers = if w.raw.is_sqlite() {
        "create trigger raises before update on charges when new.id = 1
         begin select raise(abort, 'not this one, 4111 1111 1111 1111'); end;
         create trigger skips before update on charges when new.id = 2
         begin select raise(ignore); end;
         create trigger undoes after update on charges when new.id = 3
         begin update charges set status = old.status, psp_ref = old.psp_ref where id = 3; end;"
    } else {
        "create function meddles() returns trigger language plpgsql as $$ begin
           if new.id = 1 then raise exception 'not this one, 4111 1111 1111 1111'; end if;
           if new.id = 2 then return null; end if;
           if new.id = 3 then return old; end if;
           return new; end $$;
         create trigger meddles before update on charges
         for each row execute function meddles();"
    };
    w.raw.execute(triggers).await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 9, noon()).await;
    let end = w.apply("r1", &mut writer, &claimed, succeeded, noon()).await;
    assert_eq!(end, done(4, 0, 0));
    for key in ["1", "2", "3"] {
        assert_eq!(w.status(key).await, "processing");
        let record = w.store.journal_of_row("charges", key).await.unwrap().remove(0);
        assert_eq!(record.reason, Reason::WriteRefused, "{key}: {}", record.text);
    }
    let record = w.store.journal_of_row("charges", "1").await.unwrap().remove(0);
    let said = "the database refused the change: not this one, **** **** **** 1111";
    assert!(record.text.starts_with(said), "{}", record.text);
    let record = w.store.journal_of_row("charges", "2").await.unwrap().remove(0);
    let said = format!("a trigger of {} kept the row from being written", w.table.write);
    assert!(record.text.ends_with(&said), "{}", record.text);
    assert_eq!(w.status("4").await, "paid");
    w.finish().await;
}

/// Of one refused row a person can say something, and of a table that refuses every row nobody:
/// its rows wait for whoever mends it.
pub async fn a_table_that_refuses_every_row_opens_no_case<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=12).await;
    let (broken, mended) = if w.raw.is_sqlite() {
        let broken = "create trigger broken before update on charges
             begin select raise(abort, 'no audit today'); end;";
        (broken, "drop trigger broken")
    } else {
        let broken = "create function broken() returns trigger language plpgsql as $$ begin
               raise exception 'no audit today'; end $$;
             create trigger broken before update on charges
             for each row execute function broken();";
        (broken, "drop trigger broken on charges")
    };
    w.raw.execute(broken).await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 20, noon()).await;
    assert_eq!(claimed.len(), 12);
    let end = w.apply_all("r1", &mut writer, &claimed, succeeded, noon()).await;
    let ApplyEnd::Done { applied, superseded, not_applied, .. } = end else {
        panic!("the run is open")
    };
    assert_eq!((applied, superseded, not_applied.len()), (0, 12, 12));
    for row in &not_applied {
        assert!(row.refused.as_deref().unwrap().contains("no audit today"), "{row:?}");
        assert_eq!((row.why(), row.status.as_deref()), ("superseded", None));
        assert!(row.text.contains("the database refused its table: no audit today"), "{row:?}");
    }
    let cases = "select cast(count(*) as text) from tieout_cases";
    assert_eq!(w.raw.one(cases).await, "0");
    w.raw.execute(mended).await;
    let mut writer = w.start("r2", at(1)).await;
    let claimed = w.claim("r2", 20, at(1)).await;
    let end = w.apply("r2", &mut writer, &claimed, succeeded, at(1)).await;
    assert_eq!(end, done(12, 0, 0));
    assert_eq!(w.status("7").await, "paid");
    w.finish().await;
}

/// A table that lets any row of the batch be written refuses rows, however many and in whatever
/// words: each is a person's.
pub async fn rows_that_are_refused_beside_written_ones_are_cases<D: Under>() {
    for (last, class) in [(6, "42501"), (1, "42501"), (6, "P0001")] {
        let w = World::<D>::new().await;
        w.stuck(1..=12).await;
        let closed = if w.raw.is_sqlite() {
            format!(
                "create trigger closed before update on charges when new.id <= {last}
                 begin select raise(abort, 'this month is closed'); end;"
            )
        } else {
            format!(
                "create function closed() returns trigger language plpgsql as $$ begin
                   if new.id <= {last} then
                     raise exception 'this month is closed' using errcode = '{class}';
                   end if;
                   return new; end $$;
                 create trigger closed before update on charges
                 for each row execute function closed();"
            )
        };
        w.raw.execute(&closed).await;
        let mut writer = w.start("r1", noon()).await;
        let claimed = w.claim("r1", 20, noon()).await;
        let end = w.apply("r1", &mut writer, &claimed, succeeded, noon()).await;
        assert_eq!(end, done(12, 0, 0), "{last} {class}");
        for id in 1..=12 {
            let key = id.to_string();
            let record = w.store.journal_of_row("charges", &key).await.unwrap().remove(0);
            let (status, reason) = match id <= last {
                true => ("processing", Reason::WriteRefused),
                false => ("paid", Reason::Captured),
            };
            assert_eq!(record.reason, reason, "{last} {class} {id}: {}", record.text);
            assert_eq!(w.status(&key).await, status, "{last} {class}");
        }
        w.finish().await;
    }
}

/// A deploy took away what a trigger names: no row of its table can be written, be they few, and
/// none is to blame. What is not written of the batch is decided all the same.
pub async fn a_trigger_that_names_what_is_not_there_leaves_its_table<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=3).await;
    let asks = if w.raw.is_sqlite() { "select" } else { "perform" };
    let asks = format!("{asks} unheard_of(1)");
    let bodies = [
        ("insert into nowhere values (1)", "no such table: main.nowhere"),
        ("update charge_events set unheard = 1", "no such column: unheard"),
        (asks.as_str(), "no such function: unheard_of"),
        ("insert into charge_events (unheard) values (1)", "has no column named unheard"),
    ];
    let mut hour = 0;
    for (event, relation) in [("update", "charges"), ("insert", "charge_events")] {
        for (body, words) in bodies {
            let fires = format!("before {event} on {relation}");
            let (broken, mended, words) = if w.raw.is_sqlite() {
                let broken = format!("create trigger broken {fires} begin {body}; end");
                (broken, "drop trigger broken".to_owned(), words)
            } else {
                let broken = format!(
                    "create or replace function broken() returns trigger language plpgsql as $$
                     begin {body}; return new; end $$;
                     create trigger broken {fires} for each row execute function broken()"
                );
                (broken, format!("drop trigger broken on {relation}"), "(42")
            };
            w.raw.execute(&broken).await;
            hour += 1;
            let (run, now) = (format!("r{hour}"), at(60 * hour));
            let mut writer = w.start(&run, now).await;
            let claimed = w.claim(&run, 9, now).await;
            let third_waits =
                |c: &Claimed| if c.row.key.id == "3" { wait(now)(c) } else { succeeded(c) };
            let end = w.apply_all(&run, &mut writer, &claimed, third_waits, now).await;
            let ApplyEnd::Done { applied, superseded, not_applied, .. } = end else {
                panic!("the run is open")
            };
            assert_eq!((applied, superseded, not_applied.len()), (1, 2, 2), "{fires} {body}");
            for row in &not_applied {
                assert!(row.refused.as_deref().unwrap().contains(words), "{row:?}");
            }
            w.raw.execute(&mended).await;
        }
    }
    let written = "select cast(count(*) as text) from charge_events";
    let cases = "select cast(count(*) as text) from tieout_cases";
    assert_eq!([w.raw.one(written).await, w.raw.one(cases).await], ["0", "0"]);
    let mut writer = w.start("r99", at(900)).await;
    let claimed = w.claim("r99", 9, at(900)).await;
    let end = w.apply("r99", &mut writer, &claimed, succeeded, at(900)).await;
    assert_eq!((end, w.raw.one(written).await.as_str()), (done(3, 0, 0), "3"));
    w.finish().await;
}

/// A person is told whether or not the user's table can be written: the case is tieout's own. What
/// changed meanwhile is decided again all the same.
pub async fn a_case_is_opened_though_its_status_is_refused<D: Under>() {
    let mut w = World::<D>::new().await;
    let review = "retryable = \"retry\"\n    review = \"manual\"";
    w.table = w.mapped(&MAPPING.replace("retryable = \"retry\"", review)).await;
    let raises = match w.raw.is_sqlite() {
        true => "select raise(abort, 'nothing is manual')",
        false => "raise exception 'nothing is manual'",
    };
    let missing = "insert into nowhere values (1)";
    // One row, and so many that it is the table's refusal; of either kind.
    let mut first = 1;
    for (number, (body, rows)) in [(raises, 2), (raises, 8), (missing, 2)].into_iter().enumerate() {
        let (run, now) = (format!("r{number}"), noon());
        w.stuck(first..=first + rows - 1).await;
        let mut writer = w.start(&run, now).await;
        let claimed = w.claim(&run, 20, now).await;
        assert_eq!(i64::try_from(claimed.len()).unwrap(), rows);
        w.raw.execute(&format!("update charges set amount = 1 where id = {first}")).await;
        let (broken, mended) = match w.raw.is_sqlite() {
            true => (
                format!("create trigger broken before update on charges begin {body}; end"),
                "drop trigger broken",
            ),
            false => (
                format!(
                    "create or replace function broken() returns trigger language plpgsql as $$
                     begin {body}; return new; end $$;
                     create trigger broken before update on charges
                     for each row execute function broken()"
                ),
                "drop trigger broken on charges",
            ),
        };
        w.raw.execute(&broken).await;
        let end = w.apply_all(&run, &mut writer, &claimed, review_of_money, now).await;
        w.raw.execute(mended).await;
        let ApplyEnd::Done { applied, superseded, not_applied, .. } = end else {
            panic!("the run is open")
        };
        assert_eq!((applied, superseded), (claimed.len() - 1, 1), "{body}");
        for row in not_applied.iter().filter(|row| row.key != first.to_string()) {
            assert_eq!((row.why(), row.refused.as_deref()), ("duplicate_capture", None), "{row:?}");
            assert_eq!(row.status.as_deref(), Some("processing"));
            let record = w.store.journal_of_row("charges", &row.key).await.unwrap().remove(0);
            assert_eq!((record.applied, record.reason), (Applied::Yes, Reason::DuplicateCapture));
            assert_eq!(record.status_after, "processing");
            let case = w.store.case(record.case_number.unwrap()).await.unwrap().unwrap();
            assert_eq!((case.open, case.reason), (true, Reason::DuplicateCapture));
            assert!(case.text.contains("the status `manual` was not written"), "{}", case.text);
            assert_eq!(w.store.check("charges", &row.key).await.unwrap().unwrap().state, "case");
        }
        let open = "select cast(count(*) as text) from tieout_cases where state = 'open'";
        let left = first.to_string();
        w.raw.execute(&format!("delete from charges where id = {left}")).await;
        first += rows;
        let cases = usize::try_from(first).unwrap() - 1 - (number + 1);
        assert_eq!(w.raw.one(open).await, cases.to_string(), "{body}");
        w.close(&run, now).await;
    }
    w.finish_unmapped().await;
}

/// Paid twice.
fn review_of_money(claimed: &Claimed) -> Decision {
    let (seen, reason) = (succeeded(claimed).seen, Reason::DuplicateCapture);
    Decision { seen, reason, ..review(claimed) }
}

/// Both tables of a join have an id and a status, and the mapping names the wrong one.
pub async fn a_write_to_another_table_than_the_views_is_undone<D: Under>() {
    let mut w = World::<D>::new().await;
    w.stuck(1..=3).await;
    w.raw
        .execute(
            "create table orders (id bigint primary key, status text not null,
                updated_at timestamptz, version integer, psp_ref text);
             insert into orders (id, status) values (1, 'complete'), (2, 'processing');
             create view charges_seen as select c.*, o.status as order_status
                from charges c left join orders o on o.id = c.id",
        )
        .await;
    let wrong = "read = \"charges_seen\"\nwrite = \"orders\"";
    let wrong = w.mapped(&MAPPING.replace("read = \"charges\"", wrong)).await;
    w.table = wrong;
    let orders =
        "select id || ' ' || status || ' ' || coalesce(psp_ref, '-') from orders order by id";
    let before = w.raw.rows(orders).await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 9, noon()).await;
    let end = w.apply("r1", &mut writer, &claimed, succeeded, noon()).await;
    assert_eq!(end, done(3, 0, 0));
    assert_eq!(w.raw.rows(orders).await, before, "another table's rows are not ours to write");
    for (key, why) in [("1", "was undone"), ("2", "was undone"), ("3", "has no row of the key")] {
        assert_eq!(w.status(key).await, "processing");
        let record = w.store.journal_of_row("charges", key).await.unwrap().remove(0);
        assert_eq!(record.reason, Reason::WriteRefused, "{key}: {}", record.text);
        assert!(record.text.contains(why), "{key}: {}", record.text);
        assert!(record.text.contains("orders"), "{key}: {}", record.text);
    }
    w.finish().await;
}

/// A view that shows rows by their status would show none of these any more: nobody would look at
/// them again, and what was written would be told as not written.
pub async fn a_row_that_its_view_hides_once_written_is_a_case<D: Under>() {
    let mut w = World::<D>::new().await;
    w.raw
        .execute("create view stuck_charges as select * from charges where status = 'processing'")
        .await;
    let mut views = vec!["read = \"stuck_charges\"\n    write = \"charges\""];
    if !w.raw.is_sqlite() {
        views.push("read = \"stuck_charges\"");
    }
    for ((run, first), view) in [("r1", 1), ("r2", 11)].into_iter().zip(views) {
        w.table = w.mapped(&MAPPING.replace("read = \"charges\"", view)).await;
        w.stuck(first..=first + 3).await;
        let mut writer = w.start(run, noon()).await;
        let claimed = w.claim(run, 9, noon()).await;
        let decide = |c: &Claimed| match c.row.key.id.parse::<i64>().unwrap() - first {
            0 => succeeded(c),
            1 => retryable(noon())(c),
            2 => failed(c),
            _other => wait(noon())(c),
        };
        let end = w.apply(run, &mut writer, &claimed, decide, noon()).await;
        assert_eq!(end, done(4, 0, 0), "{view}");
        for key in (first..first + 3).map(|id| id.to_string()) {
            assert_eq!(w.status(&key).await, "processing", "{view} {key}");
            let record = w.store.journal_of_row("charges", &key).await.unwrap().remove(0);
            assert_eq!(record.reason, Reason::WriteRefused, "{view} {key}: {}", record.text);
            assert!(record.text.contains("whatever its status"), "{key}: {}", record.text);
        }
        let written = "charges where psp_ref is not null or updated_at is not null";
        for none in [written, "charge_events", "tieout_handbacks"] {
            let count = format!("select cast(count(*) as text) from {none}");
            assert_eq!(w.raw.one(&count).await, "0", "{view} {none}");
        }
        w.totals(run).await;
    }
    w.finish().await;
}

/// Where a trigger puts a row elsewhere once it is written, the row is decided all the same: it is
/// gone from what is read and from what is written.
pub async fn a_row_that_a_trigger_takes_away_is_decided<D: Under>() {
    let mut w = World::<D>::new().await;
    w.stuck(1..=2).await;
    w.raw.execute("create view all_charges as select * from charges").await;
    w.raw.execute("create table archive (id bigint primary key, psp_ref text)").await;
    let trigger = if w.raw.is_sqlite() {
        "create trigger takes after update on charges when new.status = 'paid' begin
         insert into archive values (new.id, new.psp_ref);
         delete from charges where id = new.id; end;"
    } else {
        "create function takes() returns trigger language plpgsql as $$ begin
           if new.status = 'paid' then
             insert into archive values (new.id, new.psp_ref);
             delete from charges where id = new.id;
           end if;
           return null; end $$;
         create trigger takes after update on charges for each row execute function takes();"
    };
    w.raw.execute(trigger).await;
    let view = "read = \"all_charges\"\n    write = \"charges\"";
    for (run, read) in [("r1", "read = \"charges\""), ("r2", view)] {
        w.table = w.mapped(&MAPPING.replace("read = \"charges\"", read)).await;
        let mut writer = w.start(run, noon()).await;
        let claimed = w.claim(run, 1, noon()).await;
        assert_eq!(claimed.len(), 1);
        let key = claimed[0].row.key.id.clone();
        let end = w.apply(run, &mut writer, &claimed, succeeded, noon()).await;
        assert_eq!(end, done(1, 0, 0));
        let record = w.store.journal_of_row("charges", &key).await.unwrap().remove(0);
        let told = (record.applied, record.status_after.as_str());
        assert_eq!(told, (Applied::Yes, "paid"), "{key}: {}", record.text);
        let archived = format!("select psp_ref from archive where id = {key}");
        assert_eq!(w.raw.one(&archived).await, format!("pi_{key}"));
        w.close(run, at(1)).await;
    }
    w.finish_unmapped().await;
}

/// A row whose status is put back would be decided again by each run, for ever; one that is given
/// another status is not what was decided.
pub async fn a_trigger_that_comes_after_the_write_is_a_case<D: Under>() {
    let mut w = World::<D>::new().await;
    w.stuck(1..=3).await;
    let trigger = if w.raw.is_sqlite() {
        "create trigger undoes after update on charges when new.id = 1 and new.status = 'paid'
         begin update charges set status = old.status where id = 1; end;
         create trigger moves after update on charges when new.id = 3 and new.status = 'paid'
         begin update charges set status = 'failed' where id = 3; end;"
    } else {
        "create function undoes() returns trigger language plpgsql as $$ begin
           if new.id = 1 and new.status = 'paid' then
             update charges set status = old.status where id = 1;
           end if;
           if new.id = 3 and new.status = 'paid' then
             update charges set status = 'failed' where id = 3;
           end if;
           return null; end $$;
         create trigger undoes after update on charges for each row execute function undoes();"
    };
    w.raw.execute(trigger).await;
    w.table = w.mapped(MAPPING).await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 9, noon()).await;
    assert_eq!(w.apply("r1", &mut writer, &claimed, succeeded, noon()).await, done(3, 0, 0));
    let statuses = [w.status("1").await, w.status("2").await, w.status("3").await];
    assert_eq!(statuses, ["processing", "paid", "processing"]);
    let left = "select cast(count(*) as text) from charges where id in (1, 3) and psp_ref is null";
    assert_eq!(w.raw.one(left).await, "2", "all of the write is undone");
    for key in ["1", "3"] {
        let record = w.store.journal_of_row("charges", key).await.unwrap().remove(0);
        assert_eq!(record.reason, Reason::WriteRefused, "{key}: {}", record.text);
        assert!(record.text.contains("trigger"), "{key}: {}", record.text);
    }
    w.finish().await;
}

/// What is not found by its key after the write was written all the same: told as changed by
/// somebody else, it would be paid in the table, and nobody would know.
pub async fn a_row_whose_key_changes_with_the_write_is_a_case<D: Under>() {
    let mut w = World::<D>::new().await;
    w.stuck(1..=3).await;
    w.raw.execute("alter table charges add column rev integer not null default 1").await;
    // On PostgreSQL one is counted up before the write, and one after it.
    let triggers = if w.raw.is_sqlite() {
        "create trigger counts after update of status on charges when new.id < 3
         begin update charges set rev = rev + 1 where id = new.id; end;"
    } else {
        "create function counts() returns trigger language plpgsql as $$ begin
           if new.id = 1 then new.rev := old.rev + 1; end if;
           return new; end $$;
         create trigger counts before update on charges for each row execute function counts();
         create function moves() returns trigger language plpgsql as $$ begin
           if new.id = 2 and new.rev = 1 then update charges set rev = 2 where id = 2; end if;
           return null; end $$;
         create trigger moves after update on charges for each row execute function moves();"
    };
    w.raw.execute(triggers).await;
    w.table = w.mapped(&MAPPING.replace("key = [\"id\"]", "key = [\"id\", \"rev\"]")).await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 9, noon()).await;
    assert_eq!(w.apply("r1", &mut writer, &claimed, succeeded, noon()).await, done(3, 0, 0));
    for (id, status) in [("1", "processing"), ("2", "processing"), ("3", "paid")] {
        assert_eq!(w.status(id).await, status, "{id}");
    }
    let left = "select cast(count(*) as text) from charges where rev = 1 and id < 3 \
                and psp_ref is null and updated_at is null";
    assert_eq!(w.raw.one(left).await, "2", "all of the write is undone");
    let events = "select cast(count(*) as text) from charge_events";
    assert_eq!(w.raw.one(events).await, "1");
    for key in ["[\"1\",\"1\"]", "[\"2\",\"1\"]"] {
        let record = w.store.journal_of_row("charges", key).await.unwrap().remove(0);
        assert_eq!(record.reason, Reason::WriteRefused, "{key}: {}", record.text);
        assert!(record.text.contains("under its key (id, rev)"), "{key}: {}", record.text);
    }
    w.finish_unmapped().await;
}

/// What was told as decided, and did not come to be, is named row by row.
pub async fn what_was_not_carried_out_is_named<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=4).await;
    w.raw
        .execute(
            "create unique index paid_once on charges (subscription) where status = 'paid';
             insert into charges (id, account, status, amount, currency, created_at, subscription)
             values (100, 'stripe', 'paid', 1, 'EUR', '2026-11-01T00:00:00Z', 3)",
        )
        .await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 9, noon()).await;
    assert_eq!(claimed.len(), 4);
    w.raw.execute("update charges set amount = 1 where id = 2").await;
    // Rows 1 and 4 were captured by one object.
    let decide = |one: &Claimed| match one.row.key.id.as_str() {
        "1" | "4" => succeeded_by(one, "pi_shared"),
        _other => succeeded(one),
    };
    let end = w.apply_all("r1", &mut writer, &claimed, decide, noon()).await;
    let ApplyEnd::Done { applied, withheld, superseded, mut not_applied, .. } = end else {
        panic!("the run is open")
    };
    assert_eq!((applied, withheld, superseded), (3, 0, 1));
    not_applied.sort_by(|one, other| one.key.cmp(&other.key));
    let told: Vec<_> = not_applied
        .iter()
        .map(|row| (row.key.as_str(), row.why(), row.status.as_deref()))
        .collect();
    assert_eq!(
        told,
        [
            ("2", "superseded", None),
            ("3", "write_refused", Some("processing")),
            ("4", "reference_claimed", Some("processing")),
        ]
    );
    assert!(not_applied.iter().all(|row| row.table == "charges"), "{not_applied:?}");
    let record = w.store.journal_of_row("charges", "3").await.unwrap().remove(0);
    assert_eq!(not_applied[1].text, record.text);
    w.finish().await;
}

pub async fn a_closed_run_writes_nothing<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=2).await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 9, noon()).await;
    let before = writer.clone();
    assert!(w.close("r1", at(1)).await);
    let end = w.apply("r1", &mut writer, &claimed, succeeded, at(1)).await;
    assert_eq!(end, ApplyEnd::RunClosed);
    assert_eq!(writer, before);
    assert_eq!(w.status("1").await, "processing");
    assert!(w.store.journal_of_run("r1", None, 9).await.unwrap().is_empty());
    assert!(w.totals("r1").await.contains(&("EUR/released".to_owned(), 2, 3803)));
    assert!(w.claim("r1", 9, at(1)).await.is_empty(), "a closed run claims nothing");
    w.finish().await;
}

pub async fn composite_keys_and_views<D: Under>() {
    let mapping = MAPPING
        .replace("read = \"charges\"", "read = \"charges_seen\"\nwrite = \"tenant_charges\"")
        .replace("key = [\"id\"]", "key = [\"tenant\", \"id\"]")
        .replace("tag = \"pay_{id}\"", "tag = \"{order_number}-{id}\"")
        .replace("charge-{id}-{attempt}", "{tenant}-{id}")
        .replace("natural_key = [\"subscription\"]", "natural_key = []")
        .replace("psp_reference = \"psp_ref\"", "");
    let mapping = mapping.split("[set]").next().unwrap();
    let w = World::<D>::of(
        "create table orders (id bigint primary key, number text, currency text);
         create table tenant_charges (tenant text not null, id bigint not null, order_id bigint,
           account text, status text, amount bigint, created_at timestamptz,
           attempted_at timestamptz, moto boolean not null default false,
           primary key (tenant, id));
         create view charges_seen as select c.tenant, c.id, c.account, c.status, c.amount,
           c.created_at, c.attempted_at, c.moto,
           (select o.number from orders o where o.id = c.order_id) as order_number,
           (select o.currency from orders o where o.id = c.order_id) as currency
           from tenant_charges c;
         insert into orders values (1, 'A-7', 'EUR'), (2, 'B-8', 'jpy');
         insert into tenant_charges (tenant, id, order_id, account, status, amount, created_at)
           values ('ac\"me', 1, 1, 'stripe', 'processing', 100, '2026-11-19T10:00:00Z'),
           ('globex', 1, 2, 'stripe', 'processing', 200, '2026-11-19T10:00:00Z'),
           ('globex', 2, 2, 'stripe', 'processing', 300, '2026-11-19T10:00:00Z')",
        mapping,
    )
    .await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 9, noon()).await;
    let keys: Vec<&str> = claimed.iter().map(|c| c.row.key.id.as_str()).collect();
    assert_eq!(keys, ["[\"ac\\\"me\",\"1\"]", "[\"globex\",\"1\"]", "[\"globex\",\"2\"]"]);
    assert_eq!(claimed[0].row.tag.text(), "A-7-1");
    // The parent is part of the row: a change of it supersedes too.
    w.raw.execute("update orders set currency = 'EUR' where id = 2").await;
    let end = w.apply("r1", &mut writer, &claimed, succeeded, noon()).await;
    assert_eq!(end, done(1, 0, 2));
    let statuses = "select status from tenant_charges order by tenant, id";
    let statuses: Vec<_> = w.raw.rows(statuses).await.into_iter().flatten().flatten().collect();
    assert_eq!(statuses, ["paid", "processing", "processing"]);
    w.totals("r1").await;
    w.close("r1", noon()).await;
    let mut writer = w.start("r2", at(1)).await;
    let claimed = w.claim("r2", 9, at(1)).await;
    assert_eq!(w.apply("r2", &mut writer, &claimed, failed, at(1)).await, done(2, 0, 0));
    w.finish_unmapped().await;
}
