//! emulate (vercel-labs): PaymentIntents that are confirmed by a second call, and their charges,
//! listed newest first with honest `created[gte]`, `created[lte]`, `limit` and `starting_after`.
//!
//! Quirks: no search and no refunds (404); an intent never says `amount_received` nor its latest
//! charge; no declines; `expand` is ignored; after 5,000 requests of an hour a key gets 403.

use serde_json::Value;

use super::{Emulator, assert_ends, id_of, run_twice, shop_at, until_stuck};
use crate::run::shop::Payment;

const NO_SEARCH: &str = "search = false";

async fn emulate() -> Emulator {
    Emulator::at("TEST_EMULATE_URL").await
}

async fn intent(emulator: &Emulator, number: i64) -> String {
    id_of(&emulator.post("/v1/payment_intents", &emulator.form(number, &[])).await)
}

async fn paid(emulator: &Emulator, number: i64) -> String {
    let id = intent(emulator, number).await;
    emulator.post(&format!("/v1/payment_intents/{id}/confirm"), &[]).await;
    id
}

#[tokio::test]
async fn intents_are_decided_by_what_they_became() {
    let emulator = emulate().await;
    let shop = shop_at(&emulator, NO_SEARCH).await;
    paid(&emulator, 1).await;
    intent(&emulator, 2).await;
    let left = intent(&emulator, 3).await;
    emulator.post(&format!("/v1/payment_intents/{left}/cancel"), &[]).await;
    for _ in 0..2 {
        paid(&emulator, 4).await;
    }
    let lost = intent(&emulator, 5).await;
    let confirm = format!("/v1/payment_intents/{lost}/confirm");
    emulator.post_and_lose_the_answer(&confirm, &[]).await;
    let stored = paid(&emulator, 6).await;
    let others = paid(&emulator, 7).await;
    // A paid intent, and one beside it that the customer may still pay.
    paid(&emulator, 10).await;
    intent(&emulator, 10).await;
    let with = |number, reference: &str| Payment {
        psp_ref: Some(reference.to_owned()),
        ..emulator.payment(number)
    };
    let mut rows: Vec<Payment> = [1, 2, 3, 4, 5, 10].map(|n| emulator.payment(n)).into();
    rows.extend([with(6, &stored), with(8, &others), with(9, "pi_nobodyknows")]);
    rows.push(emulator.payment(7));
    shop.insert(&rows).await;
    until_stuck().await;
    run_twice(&shop).await;
    let wanted = [
        (1, "succeeded captured", "paid"),
        (2, "retryable unattempted", "retry"),
        (3, "failed rule", "failed"),
        (4, "review duplicate_capture", "processing"),
        (5, "succeeded captured", "paid"),
        (6, "succeeded captured", "paid"),
        (7, "review reference_claimed", "processing"),
        (8, "review reference_mismatch", "processing"),
        (9, "review reference_unknown", "processing"),
        (10, "succeeded captured", "paid"),
    ];
    assert_ends(&shop, &emulator, &wanted).await;
}

#[tokio::test]
async fn absence_is_proven_by_its_lists_and_a_witness() {
    let emulator = emulate().await;
    let shop = shop_at(&emulator, NO_SEARCH).await;
    shop.insert(&[emulator.payment(1)]).await;
    until_stuck().await;
    let mut sold = Vec::new();
    for number in 101..=130 {
        let id = paid(&emulator, number).await;
        sold.push(Payment { status: "paid", psp_ref: Some(id), ..emulator.payment(number) });
    }
    shop.insert(&sold).await;
    shop.run_until_proven().await.ended(0);
    assert_ends(&shop, &emulator, &[(1, "retryable absent", "retry")]).await;
}

/// As the configuration is by default: the search that a hand-back needs answers 404.
#[tokio::test]
async fn without_its_search_nothing_is_handed_back() {
    let emulator = emulate().await;
    let shop = shop_at(&emulator, "").await;
    shop.insert(&[emulator.payment(1)]).await;
    until_stuck().await;
    let witness = paid(&emulator, 2).await;
    let sold = Payment { status: "paid", psp_ref: Some(witness), ..emulator.payment(2) };
    shop.insert(&[sold]).await;
    shop.run_until_proven().await.ended(3);
    assert_ends(&shop, &emulator, &[(1, "wait psp_unavailable", "processing")]).await;
}

#[tokio::test]
async fn a_list_longer_than_a_page_is_read_to_its_end() {
    let emulator = emulate().await;
    let shop = shop_at(&emulator, NO_SEARCH).await;
    let mut rows = Vec::new();
    for number in 1..=230 {
        paid(&emulator, number).await;
        rows.push(emulator.payment(number));
    }
    shop.insert(&rows).await;
    until_stuck().await;
    shop.run().await.ended(0);
    let wanted: Vec<_> = (1..=230).map(|n| (n, "succeeded captured", "paid")).collect();
    assert_ends(&shop, &emulator, &wanted).await;
}

/// Its limit is a 403 without a code: to tieout a refused key, and no word about any row.
#[tokio::test]
async fn a_limit_that_answers_403_stops_the_account() {
    let emulator = emulate().await;
    let shop = shop_at(&emulator, NO_SEARCH).await;
    paid(&emulator, 1).await;
    shop.insert(&[emulator.payment(1)]).await;
    let mut answers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (client, key) = (emulator.client.clone(), emulator.key.clone());
        let url = format!("{}/v1/charges/ch_none", emulator.url);
        answers.spawn(async move {
            for _ in 0..700 {
                client.get(&url).bearer_auth(&key).send().await.unwrap();
            }
        });
    }
    answers.join_all().await;
    let refused: Value = emulator.get("/v1/charges").await;
    assert!(refused["message"].as_str().unwrap().contains("rate limit"), "{refused}");
    let ran = shop.run().await.ended(12);
    assert!(ran.stderr.contains("403"), "{}", ran.stderr);
    assert_eq!(shop.status(emulator.id(1)).await, "processing");
    shop.check(false).await;
}
