//! New rows that a file pays are decided as its lines are matched, without a lease: once, whoever
//! else runs at the same moment, however a run ends, and never in the turn of rows that wait.

use std::time::Duration;

use super::files::{at_bank, bring, camt, credit, with_bank};
use crate::run::shop::{Engine, Payment, Shop, Words, at_text, on_both_databases, tieout_now};

on_both_databases!(
    two_runs_at_once_pay_each_new_row_once,
    a_run_that_is_killed_amid_new_rows_loses_and_doubles_none,
    new_rows_take_half_of_a_run_at_most,
    new_rows_outside_of_the_window_are_left_alone,
    new_rows_wait_where_their_account_is_paused,
);

/// A shop with new rows from 1 on, and a statement that pays them all.
async fn paid_by_file(engine: Engine, words: Words, count: i64) -> Shop {
    let shop = Shop::open_with(engine, words).await;
    let rows: Vec<Payment> = (1..=count).map(|id| at_bank(id, "processing")).collect();
    shop.insert(&rows).await;
    let pays: Vec<_> = (1..=count).map(|id| credit(10_000 + id, &format!("pay_{id}"))).collect();
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &pays), 0).await;
    shop
}

async fn paid(shop: &Shop) -> i64 {
    shop.count("payments where status = 'paid'").await
}

/// Each of so many rows was decided once, counted once, and has its line.
async fn each_was_paid_once(shop: &Shop, count: i64) {
    assert_eq!(paid(shop).await, count);
    assert_eq!(shop.count("tieout_journal").await, count);
    assert_eq!(shop.count("(select distinct key from tieout_journal) as k").await, count);
    assert_eq!(shop.count("tieout_lines where state = 'matched'").await, count);
    let taken = "select cast(sum(case side when 'claimed' then rows when 'released' then -rows \
                 else 0 end) as text) from tieout_run_totals";
    assert_eq!(shop.texts(taken).await, [count.to_string()]);
    shop.tieout(&["audit", "verify"]).await.ended(0);
    shop.check(false).await;
}

async fn two_runs_at_once_pay_each_new_row_once(engine: Engine) {
    let shop = paid_by_file(engine, with_bank(), 900).await;
    let (one, two) = tokio::join!(shop.run(), shop.run());
    for ran in [one, two] {
        // Five would say that it does not tie out.
        let end = &ran.ended(0).of_type("run_end")[0];
        assert_eq!(end["untied"], serde_json::json!([]), "{end}");
    }
    each_was_paid_once(&shop, 900).await;
    assert!(shop.run().await.ended(0).verdicts().is_empty(), "nothing is left");
}

async fn a_run_that_is_killed_amid_new_rows_loses_and_doubles_none(engine: Engine) {
    const COUNT: i64 = 4_000;
    let shop = paid_by_file(engine, with_bank(), COUNT).await;
    let mut child = shop.program(&["run", "--quiet"]).spawn().unwrap();
    // The first of several transactions is there.
    while paid(&shop).await == 0 && child.try_wait().unwrap().is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(child.kill().await);
    // The server ends a transaction whose client is gone a moment after.
    let some = loop {
        let some = paid(&shop).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        if paid(&shop).await == some {
            break some;
        }
    };
    assert!(some > 0, "it was killed amid its rows, or had done them");
    assert_eq!(shop.count("tieout_journal").await, some, "what was written is written whole");
    assert_eq!(shop.count("tieout_checks").await, some);
    assert_eq!(shop.count("tieout_lines where state = 'matched'").await, some);
    shop.ten_minutes_pass().await;
    shop.run().await.ended(0);
    each_was_paid_once(&shop, COUNT).await;
}

async fn new_rows_take_half_of_a_run_at_most(engine: Engine) {
    let words = Words { limits: "rows = 4".to_owned(), ..with_bank() };
    let shop = Shop::open_with(engine, words).await;
    let known: Vec<Payment> = (11..=13).map(|id| at_bank(id, "processing")).collect();
    shop.insert(&known).await;
    shop.run().await;
    let new: Vec<Payment> = (1..=6).map(|id| at_bank(id, "processing")).collect();
    shop.insert(&new).await;
    let pays: Vec<_> = (1..=6).map(|id| credit(10_000 + id, &format!("pay_{id}"))).collect();
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &pays), 0).await;
    shop.a_span_passes().await;
    let ran = shop.run().await.ended(3);
    assert!(ran.stderr.contains("limits.rows"), "{}", ran.stderr);
    let decided = ran.verdicts();
    let of_new = decided.keys().filter(|key| key.len() == 1).count();
    assert_eq!((decided.len(), of_new), (4, 2), "those that waited had their turn: {decided:?}");
    assert_eq!(paid(&shop).await, 2);
    shop.due_now().await;
    shop.run_with(&["--limit", "50"]).await;
    assert_eq!(paid(&shop).await, 6);
    shop.check(false).await;
}

async fn new_rows_outside_of_the_window_are_left_alone(engine: Engine) {
    let hour = 3_600;
    let shop = Shop::open_with(engine, with_bank()).await;
    let old = Payment { age: 5 * hour, attempted: Some(5 * hour), ..at_bank(1, "processing") };
    let young = Payment { age: 2 * hour, attempted: Some(2 * hour), ..at_bank(2, "processing") };
    shop.insert(&[old, young]).await;
    let pays = [credit(10_001, "pay_1"), credit(10_002, "pay_2")];
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &pays), 0).await;
    let (from, to) = (at_text(tieout_now() - 6 * hour), at_text(tieout_now() - 4 * hour));
    let ran = shop.run_with(&["--from", &from, "--to", &to]).await;
    assert_eq!([ran.verdict(1), ran.verdict(2)], ["succeeded settled", "not decided"]);
    assert_eq!(shop.status(2).await, "processing");
    assert_eq!(shop.count("tieout_checks where key = '2'").await, 0);
    let on = ["--on", "attempted", "--from", &from, "--to", &to];
    assert!(shop.run_with(&on).await.verdicts().is_empty());
    assert_eq!(shop.run().await.verdict(2), "succeeded settled");
    shop.check(false).await;
}

async fn new_rows_wait_where_their_account_is_paused(engine: Engine) {
    let shop = paid_by_file(engine, with_bank(), 2).await;
    shop.tieout(&["pause", "bank", "--why", "a test"]).await.ended(0);
    assert!(shop.run().await.ended(3).verdicts().is_empty());
    assert_eq!((paid(&shop).await, shop.count("tieout_journal").await), (0, 0));
    shop.tieout(&["resume", "bank"]).await.ended(0);
    shop.due_now().await;
    shop.run().await.ended(0);
    assert_eq!(paid(&shop).await, 2);
    shop.check(false).await;
}
