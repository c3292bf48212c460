//! stripe-stateful-mock: charges and refunds of API 2020-08-27, real idempotency, chains of
//! tokens that fail and then charge.
//!
//! Quirks: no PaymentIntents (404) and no search; `created` filters are ignored; `expand` is
//! ignored; a declined charge says `generic_decline` where its 402 said another code; connected
//! accounts are apart, and each test has its own.

use super::{Emulator, assert_ends, id_of, run_twice, shop_at, until_stuck};
use crate::run::shop::Payment;

/// What charges through it alone and has no search.
const CHARGES_ONLY: &str = "charges_by = [\"charge\"]\nsearch = false";

async fn mock() -> (Emulator, String) {
    let mut emulator = Emulator::at("TEST_STRIPE_MOCK_URL").await;
    let form = [("type".to_owned(), "custom".to_owned())];
    let account = id_of(&emulator.post("/v1/accounts", &form).await);
    let words = format!("{CHARGES_ONLY}\nstripe_account = \"{account}\"");
    emulator.connected = Some(account);
    (emulator, words)
}

async fn charge(emulator: &Emulator, number: i64, token: &str) -> (u16, serde_json::Value) {
    emulator.try_post("/v1/charges", &emulator.form(number, &[("source", token)])).await
}

#[tokio::test]
async fn charges_are_decided_by_what_they_became() {
    let (emulator, words) = mock().await;
    let shop = shop_at(&emulator, &words).await;
    assert_eq!(charge(&emulator, 1, "tok_visa").await.0, 200);
    assert_eq!(charge(&emulator, 2, "tok_chargeDeclinedInsufficientFunds").await.0, 402);
    assert_eq!(charge(&emulator, 3, "tok_chargeDeclinedFraudulent").await.0, 402);
    let held = emulator.form(4, &[("source", "tok_visa"), ("capture", "false")]);
    emulator.post("/v1/charges", &held).await;
    for _ in 0..2 {
        charge(&emulator, 5, "tok_visa").await;
    }
    // The first answer was a 500 and nothing was made; the worker's second call charged.
    let chain = format!("tok_500|tok_visa|{}", emulator.mark);
    assert_eq!(charge(&emulator, 6, &chain).await.0, 500);
    assert_eq!(charge(&emulator, 6, &chain).await.0, 200);
    let form = emulator.form(7, &[("source", "tok_visa")]);
    emulator.post_and_lose_the_answer("/v1/charges", &form).await;
    let given_back = charge(&emulator, 8, "tok_visa").await.1;
    emulator.post("/v1/refunds", &[("charge".to_owned(), id_of(&given_back))]).await;
    charge(&emulator, 9, "tok_createDispute").await;
    let mut other = emulator.form(10, &[("source", "tok_visa")]);
    other.retain(|(name, _)| name != "amount");
    other.push(("amount".to_owned(), "999999".to_owned()));
    emulator.post("/v1/charges", &other).await;
    let one = id_of(&charge(&emulator, 11, "tok_visa").await.1);
    let two = id_of(&charge(&emulator, 12, "tok_visa").await.1);
    let stored = |number, reference: &str| Payment {
        psp_ref: Some(reference.to_owned()),
        ..emulator.payment(number)
    };
    let mut rows: Vec<Payment> = (1..=10).map(|number| emulator.payment(number)).collect();
    rows.push(stored(11, &one));
    // The id of another row's charge, and one that the PSP does not know.
    rows.push(stored(13, &two));
    rows.push(stored(14, "ch_nobodyknows"));
    rows.push(emulator.payment(12));
    shop.insert(&rows).await;
    until_stuck().await;
    run_twice(&shop).await;
    let wanted = [
        (1, "succeeded captured", "paid"),
        (2, "retryable declined_retryable", "retry"),
        (3, "failed declined_final", "failed"),
        (4, "review authorized_uncaptured", "processing"),
        (5, "review duplicate_capture", "processing"),
        (6, "succeeded captured", "paid"),
        (7, "succeeded captured", "paid"),
        (8, "review refunded", "processing"),
        (9, "review disputed", "processing"),
        (10, "review amount_mismatch", "processing"),
        (11, "succeeded captured", "paid"),
        (12, "review reference_claimed", "processing"),
        (13, "review reference_mismatch", "processing"),
        (14, "review reference_unknown", "processing"),
    ];
    assert_ends(&shop, &emulator, &wanted).await;
}

#[tokio::test]
async fn a_key_that_was_used_twice_charged_once() {
    let (emulator, words) = mock().await;
    let shop = shop_at(&emulator, &words).await;
    let form = emulator.form(1, &[("source", "tok_visa")]);
    for _ in 0..3 {
        let call = emulator.client.post(format!("{}/v1/charges", emulator.url));
        let call = call.bearer_auth(&emulator.key).header("idempotency-key", &emulator.mark);
        let call = call.header("stripe-account", emulator.connected.as_ref().unwrap());
        assert_eq!(call.form(&form).send().await.unwrap().status(), 200);
    }
    shop.insert(&[emulator.payment(1)]).await;
    until_stuck().await;
    shop.run().await.ended(0);
    assert_ends(&shop, &emulator, &[(1, "succeeded captured", "paid")]).await;
}

/// `tok_forget` answers 200 and keeps nothing: the worst that a PSP can say.
#[tokio::test]
async fn a_charge_that_was_confirmed_and_forgotten_is_proven_absent_first() {
    let (emulator, words) = mock().await;
    let shop = shop_at(&emulator, &words).await;
    let forgotten = charge(&emulator, 2, "tok_forget").await;
    assert_eq!(forgotten.0, 200);
    assert_eq!(charge(&emulator, 1, "tok_forget").await.0, 200);
    let known = Payment { psp_ref: Some(id_of(&forgotten.1)), ..emulator.payment(2) };
    shop.insert(&[emulator.payment(1), known]).await;
    until_stuck().await;
    shop.run().await.ended(0);
    let waits = [
        (1, "wait within_grace", "processing"),
        // A reference that the PSP gave out and does not know is never absence.
        (2, "review reference_unknown", "processing"),
    ];
    assert_ends(&shop, &emulator, &waits).await;
    // Nothing newer shows that the tag still arrives.
    shop.a_span_passes().await;
    shop.run().await.ended(0);
    shop.a_span_passes().await;
    shop.run().await.ended(0);
    assert_eq!(shop.status(emulator.id(1)).await, "processing");
    // The next sale does; but the mock ignores the window's end, so it can be in no answer that
    // counts: the row waits, and nobody is charged on a list that was not what was asked for.
    let witness = id_of(&charge(&emulator, 3, "tok_visa").await.1);
    let sold = Payment { status: "paid", psp_ref: Some(witness), ..emulator.payment(3) };
    shop.insert(&[sold]).await;
    shop.a_span_passes().await;
    let ran = shop.run().await;
    assert!(ran.verdict(emulator.id(1)).starts_with("wait "), "{ran:?}");
    assert_eq!(shop.status(emulator.id(1)).await, "processing");
    shop.check(false).await;
}

#[tokio::test]
async fn a_list_longer_than_a_page_is_read_to_its_end() {
    let (emulator, words) = mock().await;
    // By one worker: slices side by side would meet the borders that the mock ignores, and wait.
    let shop = shop_at(&emulator, &format!("{words}\nconcurrency = 1")).await;
    let mut rows = Vec::new();
    for number in 1..=130 {
        assert_eq!(charge(&emulator, number, "tok_visa").await.0, 200);
        rows.push(emulator.payment(number));
    }
    shop.insert(&rows).await;
    until_stuck().await;
    shop.run().await.ended(0);
    let wanted: Vec<_> = (1..=130).map(|n| (n, "succeeded captured", "paid")).collect();
    assert_ends(&shop, &emulator, &wanted).await;
}

/// It answers objects of today to a question about an hour ago.
#[tokio::test]
async fn a_window_that_the_server_ignores_is_no_answer() {
    let (emulator, words) = mock().await;
    let shop = shop_at(&emulator, &words).await;
    charge(&emulator, 1, "tok_visa").await;
    // Longer ago than any zone can be wrong by.
    let long_ago = Payment { age: 110_000, attempted: Some(108_000), ..emulator.payment(1) };
    shop.insert(&[long_ago]).await;
    shop.run().await.ended(3);
    assert_ends(&shop, &emulator, &[(1, "wait psp_unavailable", "processing")]).await;
}

#[tokio::test]
async fn an_account_that_has_no_payment_intents_is_a_mistake_of_the_configuration() {
    let (emulator, words) = mock().await;
    let shop = shop_at(&emulator, &words.replace(CHARGES_ONLY, "search = false")).await;
    charge(&emulator, 1, "tok_visa").await;
    shop.insert(&[emulator.payment(1), emulator.payment(2)]).await;
    until_stuck().await;
    let ran = shop.run().await.ended(10);
    assert!(ran.stderr.contains("does not list as Stripe's API does"), "{}", ran.stderr);
    // The charge may have been seen by then, and a find is a find; nothing else is said.
    assert!(["processing", "paid"].contains(&shop.status(emulator.id(1)).await.as_str()));
    assert_ends(&shop, &emulator, &[(2, "wait psp_unavailable", "processing")]).await;
    shop.check(false).await;
}

/// Asked as the configuration is by default, with a search that is not there.
#[tokio::test]
async fn a_search_that_is_missing_hands_nothing_back() {
    let (emulator, words) = mock().await;
    let shop = shop_at(&emulator, &words.replace("search = false", "search = true")).await;
    let made = id_of(&charge(&emulator, 1, "tok_visa").await.1);
    shop.insert(&[Payment { psp_ref: Some(made), ..emulator.payment(1) }, emulator.payment(2)])
        .await;
    until_stuck().await;
    for _ in 0..4 {
        shop.run().await;
        shop.a_span_passes().await;
    }
    assert_eq!(shop.status(emulator.id(1)).await, "paid");
    assert_eq!(shop.status(emulator.id(2)).await, "processing");
    shop.check(false).await;
}
