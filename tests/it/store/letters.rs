//! Letters that are due: found by keys whatever is believed of them, and in which order.

use tieout::model::time::{Instant, to_text};
use tieout::store::driver::Undone;
use tieout::store::outbox::{Health, Letter, LetterEnd, OutboxDriver, SinkLease, Turn, Which};

use super::world::{Under, World, at, noon};

/// Events of rows `from` to `to`, and their deliveries to `hook` in this state.
fn staged(from: i64, to: i64, state: &str) -> String {
    let now = to_text(noon());
    let ended = if state == "delivered" { format!("'{now}'") } else { "null".to_owned() };
    let rows = format!(
        "with recursive n(i) as (select {from} union all select i + 1 from n where i < {to})"
    );
    format!(
        "insert into tieout_outbox (event_id, table_name, key, version, kind, run_id, staged_at, \
         payload, distributed_at, delivered_at) {rows} select 'evt_' || cast(i as text), \
         'charges', cast(i as text), 1, 'transaction.succeeded', 'r1', '{now}', '{{}}', '{now}', \
         {ended} from n; \
         insert into tieout_deliveries (sink, event_id, table_name, key, version, state, \
         next_attempt_at, ended_at) {rows} select 'hook', 'evt_' || cast(i as text), 'charges', \
         cast(i as text), 1, '{state}', '{now}', {ended} from n"
    )
}

async fn leased<D: Under + OutboxDriver>(w: &World<D>, now: Instant) -> SinkLease {
    let until = now + chrono::TimeDelta::minutes(2);
    match w.store.lease_sink("hook", "me", now, until, false).await.unwrap() {
        Turn::Ours(lease) => lease,
        other => panic!("{other:?}"),
    }
}

async fn due<D: Under + OutboxDriver>(
    w: &World<D>,
    lease: &SinkLease,
    which: Which,
    now: Instant,
) -> Vec<Letter> {
    let until = now + chrono::TimeDelta::minutes(2);
    w.store.due_letters(lease, which, 200, now, until).await.unwrap().unwrap()
}

/// Statistics of a quiet hour say that nothing waits; then a burst comes. Each letter is still
/// found by the whole key, or draining grows with the square of the burst.
pub async fn what_is_due_is_found_by_its_key_whatever_the_statistics<D: Under + OutboxDriver>() {
    let w = World::<D>::new().await;
    w.start("r1", noon()).await;
    w.raw.execute(&staged(1, 1_000, "delivered")).await;
    w.raw.execute("analyze").await;
    w.raw.execute(&staged(1_001, 6_000, "waiting")).await;
    let (open, elders) = match w.raw.is_sqlite() {
        true => (
            "tieout_deliveries_open (sink=? AND table_name=? AND key=? AND version<?)",
            "(table_name=? AND key=? AND version<?)",
        ),
        false => (
            "Index Cond: ((sink = d.sink) AND (table_name = d.table_name) AND (key = d.key) \
             AND (version < d.version))",
            "Index Cond: ((table_name = d.table_name) AND (key = d.key) \
             AND (version < d.version))",
        ),
    };
    for (which, own) in
        [(Which::New, "tieout_deliveries_new"), (Which::Tried, "tieout_deliveries_tried")]
    {
        let plan = w.store.due_plan("hook", which, at(1)).await.unwrap().join("\n");
        for wanted in [own, open, elders] {
            assert!(plan.contains(wanted), "{which:?}: no {wanted} in\n{plan}");
        }
        // There is no hand-back at all: that walk costs nothing.
        let walks = ["Seq Scan on tieout_deliveries", "Seq Scan on tieout_outbox", "SCAN"];
        for walk in walks.into_iter().chain(["Join Filter", "tieout_outbox_new", "Sort", "ORDER"]) {
            assert!(!plan.contains(walk), "{which:?}: {walk} in\n{plan}");
        }
    }
    let lease = leased(&w, at(1)).await;
    assert_eq!(due(&w, &lease, Which::New, at(1)).await.len(), 200);
    assert_eq!(due(&w, &lease, Which::Tried, at(1)).await, []);
}

/// What failed is asked for apart, and neither hides the order of a row.
pub async fn new_letters_and_tried_ones_are_apart<D: Under + OutboxDriver>() {
    let w = World::<D>::new().await;
    w.start("r1", noon()).await;
    w.raw.execute(&staged(1, 3, "waiting")).await;
    // Row 2 has a second event, which waits for the first one, tried or not.
    w.raw
        .execute(
            "insert into tieout_outbox (event_id, table_name, key, version, kind, run_id, \
             staged_at, payload, distributed_at) select 'evt_2b', table_name, key, 2, kind, \
             run_id, staged_at, payload, distributed_at from tieout_outbox where key = '2'; \
             insert into tieout_deliveries (sink, event_id, table_name, key, version, state, \
             next_attempt_at) select sink, 'evt_2b', table_name, key, 2, state, next_attempt_at \
             from tieout_deliveries where key = '2'",
        )
        .await;
    let lease = leased(&w, at(1)).await;
    let names = async |which: Which, now: Instant| {
        let letters = due(&w, &lease, which, now).await;
        letters.into_iter().map(|letter| letter.event_id).collect::<Vec<_>>()
    };
    assert_eq!(names(Which::New, at(1)).await, ["evt_1", "evt_2", "evt_3"]);
    assert_eq!(names(Which::Tried, at(1)).await, [""; 0]);
    let again = LetterEnd::Again { at: at(2), attempts: 0, error: "answered 500".to_owned() };
    let ends = [("evt_2".to_owned(), again), ("evt_3".to_owned(), LetterEnd::Delivered)];
    assert!(w.store.settle_letters(&lease, &ends, at(1)).await.unwrap());
    assert_eq!(names(Which::New, at(1)).await, ["evt_1"], "evt_2b waits for evt_2");
    assert_eq!(names(Which::Tried, at(1)).await, [""; 0], "not before its time");
    assert_eq!(names(Which::Tried, at(2)).await, ["evt_2"]);
    let ends = [("evt_2".to_owned(), LetterEnd::Delivered)];
    assert!(w.store.settle_letters(&lease, &ends, at(2)).await.unwrap());
    assert_eq!(names(Which::New, at(2)).await, ["evt_1", "evt_2b"]);
    // An elder that has no deliveries yet holds the younger ones back too.
    w.raw.execute("update tieout_outbox set distributed_at = null where event_id = 'evt_2'").await;
    assert_eq!(names(Which::New, at(2)).await, ["evt_1"]);
}

/// A sink that took something and then nothing more begins its back-off anew.
pub async fn a_sink_that_took_something_begins_its_back_off_anew<D: Under + OutboxDriver>() {
    let w = World::<D>::new().await;
    let down = |took: bool| {
        let error = "3 in a row failed: answered 500".to_owned();
        Health::Failing { took, until: noon(), error }
    };
    let mut told = Vec::new();
    for (minute, took) in [(1, false), (2, false), (3, true), (4, false)] {
        let lease = leased(&w, at(minute)).await;
        w.store.release_sink(&lease, &down(took), at(minute)).await.unwrap();
        let state = w.store.sink_states(at(minute)).await.unwrap().remove(0);
        told.push((lease.failures, state.failing_since, state.last_delivered_at));
    }
    let (first, anew) = (Some(at(1)), Some(at(3)));
    assert_eq!(told, [(0, first, None), (1, first, None), (2, anew, anew), (1, anew, anew)]);
}

/// What waits for its own time does not wait for the sink; what failed does.
pub async fn what_waits_for_its_time_is_counted_apart<D: Under + OutboxDriver>() {
    let w = World::<D>::new().await;
    w.start("r1", noon()).await;
    w.raw.execute(&staged(1, 3, "waiting")).await;
    let later = format!("update tieout_deliveries set next_attempt_at = '{}'", to_text(at(30)));
    w.raw.execute(&format!("{later} where key in ('1', '2')")).await;
    w.raw.execute("update tieout_deliveries set last_error = 'no' where key = '2'").await;
    let counts = async |minute: i64| {
        let state = w.store.sink_states(at(minute)).await.unwrap().remove(0);
        (state.waiting, state.later, state.due())
    };
    assert_eq!(counts(1).await, (3, 1, 2));
    assert_eq!(counts(30).await, (3, 0, 3));
}

/// A run reads once whether there is anything to do before it looks at rows.
pub async fn what_is_undone_is_one_read<D: Under + OutboxDriver>() {
    let w = World::<D>::new().await;
    w.start("r1", noon()).await;
    let undone = async || w.store.undone(at(10)).await.unwrap();
    let (nothing, stale) = (Undone::default(), Undone { stale: true, ..Undone::default() });
    assert_eq!(undone().await, nothing);
    w.raw.execute(&staged(1, 2, "waiting")).await;
    assert_eq!(undone().await, nothing, "what waits for a sink is no run's");
    w.raw.execute("update tieout_outbox set distributed_at = null where key = '1'").await;
    assert_eq!(undone().await, Undone { events: true, ..Undone::default() });
    w.raw.execute("update tieout_outbox set distributed_at = staged_at").await;
    let hand_back = |minute: i64| {
        format!(
            "insert into tieout_handbacks (table_name, key, number, run_id, at, account, \
             fingerprint, permit, retry, charge_before, evidence_sha256) values ('charges', '2', \
             1, 'r1', '{0}', 'a', 'f', 'absent', 'new_attempt', '{1}', 'e')",
            to_text(noon()),
            to_text(at(minute))
        )
    };
    w.raw.execute(&hand_back(11)).await;
    w.raw.execute("update tieout_outbox set handback_number = 1 where key = '2'").await;
    assert_eq!(undone().await, nothing, "it may be charged still");
    let late = format!("update tieout_handbacks set charge_before = '{}'", to_text(at(10)));
    w.raw.execute(&late).await;
    assert_eq!(undone().await, stale, "nobody came in time");
    let taken = format!("update tieout_handbacks set taken_at = '{}'", to_text(noon()));
    w.raw.execute(&taken).await;
    assert_eq!(undone().await, stale, "its delivery is no news any more");
    w.raw
        .execute(&format!(
            "update tieout_deliveries set state = 'suppressed', ended_at = '{}', why = 'late'",
            to_text(at(9))
        ))
        .await;
    assert_eq!(undone().await, nothing);
}
