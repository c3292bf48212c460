//! SIGKILL at random instants, a hundred times over one database: what the killed runs left is
//! whole at every stop, and what comes of the rows is what unbroken runs make of their like.

use std::collections::BTreeMap;
use std::time::Duration;

use tieout::sandbox::seeds::Seed;
use tieout::sandbox::situations::Situation;

use super::chance::Chance;
use crate::run::shop::{Engine, Payment, Ran, Shop, Words, on_both_databases};

on_both_databases!(a_run_killed_at_any_instant_loses_and_doubles_nothing);

/// Kills on each database that must meet a living run.
const KILLS: u32 = 100;
/// After so many of them a run is let live: absence is handed back at a run's end alone, and the
/// work left over must not grow without end.
const LIVE_EVERY: u32 = 5;
/// New rows come in groups, one of each kind.
const KINDS: i64 = 7;

/// A row of each kind, with what the PSP knows of it: they end in every way there is, some at
/// the first look, some at the second, and absence is proven at the third.
async fn put_one_of_each(shop: &mut Shop, group: i64) {
    let rows: Vec<Payment> =
        (group * KINDS..(group + 1) * KINDS).map(|id| Payment::stuck(id + 1)).collect();
    let declined = |row: &Payment, code: &str| Seed {
        decline_code: Some(code.to_owned()),
        ..row.captured().standing(Situation::Declined)
    };
    let seeds = rows.iter().filter_map(|row| match row.id % KINDS {
        1 => Some(row.captured()),
        2 => Some(Seed { amount: 1, ..row.captured() }),
        3 => Some(row.captured().standing(Situation::RequiresCapture)),
        4 => Some(declined(row, "insufficient_funds")),
        5 => Some(declined(row, "stolen_card")),
        _absent_or_unreadable => None,
    });
    shop.plant(seeds.collect());
    let unreadable =
        |row: Payment| Payment { amount: row.amount.filter(|_| row.id % KINDS != 0), ..row };
    let rows: Vec<Payment> = rows.into_iter().map(unreadable).collect();
    shop.insert(&rows).await;
}

/// What became of each row of a group, without its name.
fn of_group(outcome: &BTreeMap<String, String>, group: i64) -> Vec<String> {
    let ids = (group * KINDS..(group + 1) * KINDS).map(|id| (id + 1).to_string());
    ids.map(|id| outcome[&id].replace(&format!("pi_{id}"), "pi")).collect()
}

/// What became of everything: by row its status, reference, ends, hand-backs, events, cases.
pub async fn outcome(shop: &Shop) -> BTreeMap<String, String> {
    let count = |from: &str, key: &str| {
        format!("(select cast(count(*) as text) from {from} x where x.{key} = cast(p.id as text))")
    };
    let ends = "(select * from tieout_journal where applied = 'yes' \
                and outcome in ('succeeded', 'retryable', 'failed'))";
    let columns = [
        "p.status".to_owned(),
        "coalesce(p.psp_ref, '-')".to_owned(),
        count(ends, "key"),
        count("tieout_handbacks", "key"),
        count("tieout_outbox", "key"),
        count("tieout_references", "key"),
        count("tieout_cases", "subject"),
        "coalesce((select max(k.reason || ' ' || k.state) from tieout_cases k \
         where k.subject = cast(p.id as text)), '-')"
            .to_owned(),
    ];
    let sql = format!(
        "select cast(p.id as text), {} from payments p where p.id < 900000",
        columns.join(", ")
    );
    let rows = shop.raw.rows(&sql).await.into_iter();
    rows.map(|row| {
        let texts: Vec<String> = row.into_iter().map(Option::unwrap_or_default).collect();
        (texts[0].clone(), texts[1..].join(" "))
    })
    .collect()
}

/// Kills a run after so long. Says whether it was still alive.
async fn killed(shop: &Shop, after: Duration) -> bool {
    let mut child = shop.program(&["run"]).spawn().unwrap();
    tokio::time::sleep(after).await;
    let alive = child.try_wait().unwrap().is_none();
    child.kill().await.unwrap();
    alive
}

/// Time passes: leases lapse, and what is planned for later is due; nothing is watched again.
async fn time_passes(shop: &Shop) {
    shop.ten_minutes_pass().await;
    let due = "update tieout_checks set next_check_at = first_seen_at where state = 'open'";
    shop.raw.execute(due).await;
}

fn tied(ran: &Ran) {
    let untied: Vec<_> =
        ran.of_type("tieout").into_iter().filter(|line| line["tied"] != true).collect();
    assert!(untied.is_empty(), "{untied:?}");
}

/// Unbroken runs until nothing is left to do.
async fn come_to_rest(shop: &Shop) {
    for _look in 0..10 {
        tokio::time::sleep(Duration::from_millis(1_300)).await;
        time_passes(shop).await;
        tied(&shop.run().await.ended(0));
        if shop.count("tieout_checks where state = 'open'").await == 0 {
            return;
        }
    }
    panic!("rows are still undecided after ten unbroken runs");
}

async fn a_run_killed_at_any_instant_loses_and_doubles_nothing(engine: Engine) {
    let mut chance = Chance::from_environment();
    let words = Words { limits: "batch = 10".to_owned(), ..Words::default() };
    let words = words.policy("watch", "[\"1h\"]").policy("max_handbacks", "100000").patient();
    let mut shop = Shop::open_with(engine, words).await;
    shop.background(60).await;
    shop.sandbox.behave(|behaviour| behaviour.latency_ms = 5);
    put_one_of_each(&mut shop, 0).await;
    come_to_rest(&shop).await;
    let unbroken = of_group(&outcome(&shop).await, 0);
    shop.check(false).await;

    // About as long as a run takes, found by trying: kills must meet it at every instant of its
    // life, on a machine of whatever speed and load.
    let mut life = Duration::from_millis(200);
    let (mut kills, mut runs, mut groups) = (0, 0, 1);
    while kills < KILLS {
        // Every other run goes on with what the one before left, and nothing else.
        if runs % 2 == 0 {
            put_one_of_each(&mut shop, groups).await;
            groups += 1;
        }
        runs += 1;
        if killed(&shop, chance.below(life)).await {
            kills += 1;
            life = life.mul_f64(1.05);
        } else {
            life = life.mul_f64(0.8);
        }
        time_passes(&shop).await;
        if runs % LIVE_EVERY == 0 {
            shop.check(false).await;
            tied(&shop.run().await.ended(0));
        }
    }
    let abandoned = shop.count("tieout_runs where state = 'abandoned'").await;
    come_to_rest(&shop).await;
    let after = outcome(&shop).await;
    for group in 0..groups {
        assert_eq!(of_group(&after, group), unbroken, "group {group} of {groups}");
    }
    assert_eq!(shop.count("tieout_runs where state = 'running'").await, 0);
    assert_eq!(shop.count("tieout_checks where lease_run is not null").await, 0);
    shop.check(false).await;
    shop.tieout(&["audit", "verify"]).await.ended(0);
    eprintln!("{kills} of {runs} runs were killed, {abandoned} in the middle of their work");
    assert!(abandoned > 10, "kills must meet runs at work: {abandoned}");
}
