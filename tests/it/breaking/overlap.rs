//! Runs started over each other share the work row by row: what becomes of the rows is what one
//! run alone makes of them, and nobody looks at a row twice.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use tieout::sandbox::routes::Route;

use super::kill::outcome;
use crate::run::shop::{Engine, Payment, Ran, Shop, Words, on_both_databases};

on_both_databases!(two_at_once_do_the_work_of_one, eight_at_once_do_the_work_of_one);

const ROWS: i64 = 300;

async fn stage(engine: Engine) -> Shop {
    // A look-up that takes long is asked again; here nothing shall be asked twice.
    let words = Words { limits: "batch = 20".to_owned(), ..Words::default() }.patient();
    let mut shop = Shop::open_with(engine, words).await;
    shop.background(60).await;
    // Each stores its reference, so that each is fetched by itself and its look-ups can be told.
    let rows: Vec<Payment> = (1..=ROWS)
        .map(|id| Payment { psp_ref: Some(format!("pi_{id}")), ..Payment::stuck(id) })
        .collect();
    shop.plant(rows.iter().map(Payment::captured).collect());
    shop.insert(&rows).await;
    shop
}

async fn two_at_once_do_the_work_of_one(engine: Engine) {
    at_once(engine, 2).await;
}

async fn eight_at_once_do_the_work_of_one(engine: Engine) {
    at_once(engine, 8).await;
}

async fn at_once(engine: Engine, processes: usize) {
    let mut stage = stage(engine).await;
    let alone = stage.copy().await;
    alone.run().await.ended(0);
    let wanted = outcome(&alone).await;

    let shop = stage.copy().await;
    shop.sandbox.behave(|behaviour| behaviour.latency_ms = 10);
    shop.sandbox.clear_requests();
    let runs = join_all((0..processes).map(|_| shop.run())).await;
    let runs: Vec<Ran> = runs.into_iter().map(|ran| ran.ended(0)).collect();
    assert_eq!(outcome(&shop).await, wanted);

    let decided: usize = runs.iter().map(|ran| ran.verdicts().len()).sum();
    assert_eq!(decided, usize::try_from(ROWS).unwrap(), "no row is decided twice");
    let busy = runs.iter().filter(|ran| !ran.verdicts().is_empty()).count();
    assert!(busy > 1, "{busy} of {processes} runs had work");
    let twice = shop
        .texts(
            "select run_id || ' ' || key from tieout_journal group by run_id, key \
             having count(*) > 1",
        )
        .await;
    assert_eq!(twice, Vec::<String>::new());
    let mut fetched = BTreeMap::new();
    for request in shop.sandbox.requests() {
        if request.route == Route::GetIntent {
            *fetched.entry(request.path).or_insert(0) += 1;
        }
    }
    assert!(fetched.values().all(|times| *times == 1), "{fetched:?}");
    for ran in &runs {
        let untied: Vec<_> =
            ran.of_type("tieout").into_iter().filter(|line| line["tied"] != true).collect();
        assert!(untied.is_empty(), "{untied:?}");
    }
    shop.check(false).await;
    shop.tieout(&["audit", "verify"]).await.ended(0);
}
