//! localstripe: PaymentIntents with every state, cards that decline, refunds.
//!
//! Quirks: its lists refuse `created` (400; refunds 500) and are oldest first, and it has no
//! search, so it can be asked by reference alone; what it does not know is a 404 without a code;
//! an intent never says `amount_received`, its latest charge is always whole, and knows no tag.

use super::{Emulator, assert_ends, assert_ends_of, id_of, run_twice, shop_at, until_stuck};
use crate::run::shop::{Payment, Shop};

const GOOD: &str = "4242424242424242";
const DECLINED: &str = "4000000000000341";
const ASKS_THE_CUSTOMER: &str = "4000002500003155";

/// Rows without any tag: their reference is all that they are known by.
const UNTAGGED: &str = r#"
[[table]]
name = "untagged"
read = "untagged"
key = ["id"]
tag = "{tag}"
kind = { column = "kind", values = { charge = "charge", refund = "refund" } }
amount = { column = "amount", unit = "minor" }
currency = { const = "EUR" }
account = { const = "shop" }
status = "status"
created = "created_at"
attempted = "attempted_at"
psp_reference = "psp_ref"
mode = "full"
map = [{ from = ["processing"], succeeded = "paid", failed = "failed", retryable = "retry" }]
"#;

async fn localstripe() -> Emulator {
    Emulator::at("TEST_LOCALSTRIPE_URL").await
}

async fn card(emulator: &Emulator, number: &str) -> String {
    let form = [
        ("type", "card"),
        ("card[number]", number),
        ("card[exp_month]", "12"),
        ("card[exp_year]", "2050"),
        ("card[cvc]", "123"),
    ];
    let form = form.map(|(name, value)| (name.to_owned(), value.to_owned()));
    id_of(&emulator.post("/v1/payment_methods", &form).await)
}

/// An intent that is not confirmed yet.
async fn intent(emulator: &Emulator, number: i64, card_no: &str, manual: bool) -> String {
    let card = card(emulator, card_no).await;
    let method = if manual { "manual" } else { "automatic" };
    let form = [("payment_method", card.as_str()), ("capture_method", method)];
    id_of(&emulator.post("/v1/payment_intents", &emulator.form(number, &form)).await)
}

async fn confirmed(emulator: &Emulator, number: i64, card_no: &str, manual: bool) -> String {
    let id = intent(emulator, number, card_no, manual).await;
    emulator.try_post(&format!("/v1/payment_intents/{id}/confirm"), &[]).await;
    id
}

async fn insert(shop: &Shop, emulator: &Emulator, number: i64, reference: &str) {
    let Payment { id, amount, .. } = emulator.payment(number);
    let amount = amount.unwrap();
    let now = crate::run::shop::at_text(crate::run::shop::tieout_now());
    shop.raw
        .execute(&format!(
            "insert into untagged values ({id}, null, 'charge', 'processing', {amount}, \
             '{now}', '{now}', '{reference}')"
        ))
        .await;
}

/// A refund's row, which has its tag: a refund is looked at beside its payment's others.
async fn insert_refund(shop: &Shop, emulator: &Emulator, number: i64, reference: &str) {
    insert(shop, emulator, number, reference).await;
    let id = emulator.id(number);
    let set = format!("update untagged set kind = 'refund', tag = 'pay_{id}' where id = {id}");
    shop.raw.execute(&set).await;
}

async fn shop_of_untagged(emulator: &Emulator) -> Shop {
    let mut words = emulator.words("search = false");
    words.more = UNTAGGED.to_owned();
    let shop = Shop::open_with(crate::run::shop::Engine::Sqlite, words).await;
    shop.raw
        .execute(
            "create table untagged (id bigint primary key, tag text, kind text not null, \
             status text not null, amount bigint not null, created_at timestamptz not null, \
             attempted_at timestamptz not null, psp_ref text)",
        )
        .await;
    shop
}

async fn assert_untagged(shop: &Shop, emulator: &Emulator, wanted: &[(i64, &str, &str)]) {
    assert_ends_of(shop, "untagged", emulator, wanted).await;
}

#[tokio::test]
async fn what_is_asked_by_its_reference_is_decided_by_what_it_became() {
    let emulator = localstripe().await;
    let shop = shop_of_untagged(&emulator).await;
    let taken = confirmed(&emulator, 1, GOOD, false).await;
    let declined = confirmed(&emulator, 2, DECLINED, false).await;
    let held = confirmed(&emulator, 3, GOOD, true).await;
    let asks = confirmed(&emulator, 4, ASKS_THE_CUSTOMER, false).await;
    let left = intent(&emulator, 5, GOOD, false).await;
    emulator.post(&format!("/v1/payment_intents/{left}/cancel"), &[]).await;
    let lost = intent(&emulator, 6, GOOD, false).await;
    let confirm = format!("/v1/payment_intents/{lost}/confirm");
    emulator.post_and_lose_the_answer(&confirm, &[]).await;
    let given_back = confirmed(&emulator, 7, GOOD, false).await;
    let of = [("payment_intent".to_owned(), given_back.clone())];
    emulator.post("/v1/refunds", &of).await;
    let captured = confirmed(&emulator, 8, GOOD, true).await;
    emulator.post(&format!("/v1/payment_intents/{captured}/capture"), &[]).await;
    let other_amount = confirmed(&emulator, 9, GOOD, false).await;
    let cases = [
        (1, &taken, "succeeded captured", "paid"),
        // It says `card_declined` and not why: a person reads it.
        (2, &declined, "review decline_unknown", "processing"),
        (3, &held, "review authorized_uncaptured", "processing"),
        (4, &asks, "wait rule", "processing"),
        (5, &left, "failed rule", "failed"),
        (6, &lost, "succeeded captured", "paid"),
        (7, &given_back, "review refunded", "processing"),
        (8, &captured, "succeeded captured", "paid"),
        (10, &other_amount, "review amount_mismatch", "processing"),
    ];
    // A few at a time: for more of them it would be asked for a list, which it refuses.
    for some in cases.chunks(4) {
        for (number, reference, _, _) in some {
            insert(&shop, &emulator, *number, reference).await;
        }
        until_stuck().await;
        run_twice(&shop).await;
        let later = "update tieout_checks set next_check_at = '2100-01-01T00:00:00.000000Z' \
                     where state in ('open', 'watch')";
        shop.raw.execute(later).await;
    }
    let wanted = cases.map(|(number, _, verdict, status)| (number, verdict, status));
    assert_untagged(&shop, &emulator, &wanted).await;
}

#[tokio::test]
async fn refunds_are_looked_at_beside_their_payments_others() {
    let emulator = localstripe().await;
    let shop = shop_of_untagged(&emulator).await;
    let sold = confirmed(&emulator, 900, GOOD, false).await;
    let give_back = async |number: i64| {
        let mut form = emulator.form(number, &[("payment_intent", &sold)]);
        form.retain(|(name, _)| name != "currency");
        form.retain(|(name, _)| name != "amount");
        form.push(("amount".to_owned(), "400".to_owned()));
        id_of(&emulator.post("/v1/refunds", &form).await)
    };
    let once = give_back(1).await;
    let twice = give_back(2).await;
    give_back(2).await;
    // One at a time: for more of them it would be asked for a list, which it refuses.
    for (number, reference, verdict, status) in [
        (1, once, "succeeded captured", "paid"),
        (2, twice, "review duplicate_capture", "processing"),
    ] {
        insert_refund(&shop, &emulator, number, &reference).await;
        shop.raw.execute("update untagged set amount = 400").await;
        until_stuck().await;
        shop.run().await.ended(0);
        assert_untagged(&shop, &emulator, &[(number, verdict, status)]).await;
    }
}

#[tokio::test]
async fn its_lists_refuse_windows_and_no_row_is_touched() {
    let emulator = localstripe().await;
    let shop = shop_at(&emulator, "search = false").await;
    confirmed(&emulator, 1, GOOD, false).await;
    shop.insert(&[emulator.payment(1)]).await;
    until_stuck().await;
    let ran = shop.run().await.ended(10);
    assert!(ran.stderr.contains("does not list as Stripe's API does"), "{}", ran.stderr);
    assert_eq!(shop.status(emulator.id(1)).await, "processing");
    shop.check(false).await;
}

/// Its 404 carries no code: it could be anybody's, so it is no word about the reference.
#[tokio::test]
async fn a_404_without_a_code_is_no_answer_about_a_reference() {
    let emulator = localstripe().await;
    let shop = shop_of_untagged(&emulator).await;
    insert(&shop, &emulator, 1, "pi_nobodyknows").await;
    until_stuck().await;
    let ran = shop.run().await.ended(10);
    assert!(ran.stderr.contains("404 and not as Stripe's API does"), "{}", ran.stderr);
    assert_untagged(&shop, &emulator, &[(1, "wait psp_unavailable", "processing")]).await;
}

/// As the configuration is by default: the search is not there. Nor are lists of windows, and a
/// page of one is asked for to tell whether this is Stripe's API at all.
#[tokio::test]
async fn a_search_that_is_missing_decides_nothing() {
    let emulator = localstripe().await;
    let shop = shop_at(&emulator, "").await;
    confirmed(&emulator, 1, GOOD, false).await;
    shop.insert(&[emulator.payment(1)]).await;
    until_stuck().await;
    let ran = shop.run().await.ended(10);
    assert!(ran.stderr.contains("does not list as Stripe's API does"), "{}", ran.stderr);
    assert_ends(&shop, &emulator, &[(1, "wait psp_unavailable", "processing")]).await;
}
