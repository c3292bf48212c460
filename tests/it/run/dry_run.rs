//! `--dry-run` writes nothing anywhere, and says what the next run then does.

use tieout::sandbox::seeds::Seed;
use tieout::sandbox::situations::Situation;

use super::shop::{Engine, Payment, Ran, Shop, on_both_databases};

on_both_databases!(a_rehearsal_writes_nothing_and_foretells_the_run, a_rehearsal_ends_as_the_run);

/// A shop with rows in several situations, some known from earlier runs and some new.
async fn busy(engine: Engine) -> Shop {
    let mut shop = Shop::open(engine).await;
    shop.background(60).await;
    let declined = Payment::stuck(4).captured().standing(Situation::Declined);
    shop.plant(vec![Seed { decline_code: Some("insufficient_funds".to_owned()), ..declined }]);
    shop.insert(&[Payment::stuck(2), Payment::stuck(4)]).await;
    shop.run().await.ended(0);
    shop.a_span_passes().await;
    shop.run_with(&["--id", "2"]).await.ended(0);
    shop.a_span_passes().await;
    let rows: Vec<Payment> = (5..=9).map(Payment::stuck).collect();
    shop.plant(rows.iter().take(4).map(Payment::captured).collect());
    shop.plant(vec![Seed { id: Some("pi_second".to_owned()), ..Payment::stuck(8).captured() }]);
    shop.insert(&rows).await;
    shop.insert(&[Payment { amount: None, ..Payment::stuck(10) }]).await;
    shop
}

fn transitions(ran: &Ran) -> Vec<String> {
    let line = |v: serde_json::Value| {
        format!(
            "{} {} {} {}→{} {} {}",
            v["txn_id"], v["outcome"], v["reason"], v["from"], v["to"], v["psp_txn"], v["handback"]
        )
    };
    let mut lines: Vec<String> = ran.of_type("verdict").into_iter().map(line).collect();
    lines.sort();
    lines
}

async fn a_rehearsal_writes_nothing_and_foretells_the_run(engine: Engine) {
    let shop = busy(engine).await;
    let (before, files) = (shop.dump().await, shop.files());
    let rehearsed = shop.run_with(&["--dry-run"]).await.ended(0);
    let text = shop.tieout(&["run", "--dry-run"]).await.ended(0);
    assert!(text.stdout.contains("DRY RUN") || text.stdout.contains("dry run"), "{}", text.stdout);
    assert_eq!(shop.dump().await, before, "not a row of any table");
    assert_eq!(shop.files(), files, "not a file");
    let ran = shop.run().await.ended(0);
    assert_eq!(transitions(&rehearsed), transitions(&ran));
    assert_eq!(transitions(&ran).len(), 8, "{:?}", transitions(&ran));
    assert_eq!(shop.status(2).await, "retry");
    assert_eq!(shop.status(5).await, "paid");
    shop.check(false).await;
}

async fn a_rehearsal_ends_as_the_run(engine: Engine) {
    let shop = busy(engine).await;
    shop.sandbox.scenario("outage").unwrap();
    let before = shop.dump().await;
    let rehearsed = shop.run_with(&["--dry-run"]).await.ended(3);
    assert_eq!(shop.dump().await, before);
    let ran = shop.run().await.ended(3);
    assert_eq!(transitions(&rehearsed), transitions(&ran));
    shop.check(false).await;
}
