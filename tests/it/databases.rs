//! PostgreSQL as it is found in the wild: poolers, replicas, roles that see little, connections
//! that break at the worst moment, rows that somebody else holds. The built program on the real
//! thing; what cannot be trusted is refused at start, and no trouble decides twice.

mod proxy;
mod starting;
mod trouble;

use crate::run::shop::{Engine, Payment, Shop, Words};

/// A shop on PostgreSQL with stuck rows that were captured.
async fn shop_with(words: Words, ids: std::ops::RangeInclusive<i64>) -> Shop {
    let mut shop = Shop::open_with(Engine::Postgres, words).await;
    let rows: Vec<Payment> = ids.map(Payment::stuck).collect();
    shop.insert(&rows).await;
    shop.plant(rows.iter().map(Payment::captured).collect());
    shop
}

/// Points the shop's program at another address of its database.
fn go_through(shop: &mut Shop, url: String) {
    shop.words.database = Some(url);
    shop.write_words();
}

/// Each row has been decided once, and is paid.
async fn assert_paid_once(shop: &Shop, ids: std::ops::RangeInclusive<i64>) {
    for id in ids {
        assert_eq!(shop.status(id).await, "paid", "row {id}");
        let decided = format!(
            "tieout_journal where key = '{id}' and outcome = 'succeeded' and applied = 'yes'"
        );
        assert_eq!(shop.count(&decided).await, 1, "row {id}");
    }
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    shop.check(false).await;
}
